"""The command line: `llmsim run scenarios/agent.yaml` and its neighbours.

Tables, progress and warnings go to stderr and are for people; `--json` prints one JSON object on stdout. A user's
mistake is one line and exit code 2; a check that failed exits 1.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from . import __version__
from .policies import registry
from .policies.core import specs
from .policies.core.journal import JournalError, Replay, read_journal
from .scenarios.assembly import Assembly, assemble
from .scenarios.case_reading import CaseError, read_case
from .scenarios.checking import check_report, print_check
from .scenarios.decisions import VllmDecisions
from .scenarios.drawing import draw
from .scenarios.errors import ScenarioError
from .scenarios.listings import gpu_table, known_names, model_table, policy_table
from .scenarios.loading import load_scenario
from .scenarios.log_comparison import first_difference
from .scenarios.log_writing import write_log
from .scenarios.progress import RunProgress, StudyProgress
from .scenarios.results import next_free
from .scenarios.run import JOURNAL, run_into
from .scenarios.schema import json_schema
from .scenarios.studies.compare import compare_folders
from .scenarios.studies.comparison_table import comparison_tables
from .scenarios.studies.grid import parse_vary
from .scenarios.studies.parallel import GC_THRESHOLDS
from .scenarios.studies.replications import replicate, replications_table, with_seeds
from .scenarios.studies.sweep import Sweep, SweepInterrupted
from .scenarios.studies.sweep_table import json_rows, sweep_table
from .scenarios.tables import print_summary
from .scenarios.traffic_picture import draw_traffic
from .scenarios.traffic_report import observe, traffic_report
from .scenarios.traffic_tables import print_traffic
from .scenarios.yaml_reading import read_yaml_mapping

app = typer.Typer(
    name="llmsim",
    help="What would an LLM inference engine do? A discrete-event simulator of schedulers, KV caches and policies.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
# typer may bring a click of its own: its exceptions are reached through typer.
ClickException: type[Exception] = typer.BadParameter.__mro__[2]
INTERRUPTED = 130
"""The exit code of what Ctrl-C ended: 128 + SIGINT."""
people = Console(stderr=True, highlight=False)

ScenarioPath = Annotated[Path, typer.Argument(help="A scenario's YAML file.", show_default=False)]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", help="Override a key: engine.max_num_seqs=64. May be given again.", metavar="KEY=VALUE"),
]
Jobs = Annotated[int | None, typer.Option(min=1, help="Processes; one a core where left out.", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    """What would an LLM inference engine do? A discrete-event simulator of schedulers, KV caches and policies."""
    if version:
        print(f"llmsim {__version__}")
    elif context.invoked_subcommand is None:
        print(context.get_help())


@app.command()
def run(
    scenario: ScenarioPath,
    overrides: Overrides = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="The result folder; results/NAME-NNN where left out.", show_default=False),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the result folder if it is there.")] = False,
    journal: Annotated[bool, typer.Option("--journal", help="Write journal.jsonl.gz, for `llmsim replay`.")] = False,
    replications: Annotated[int, typer.Option(min=1, help="Runs, with seeds from run.seed on, and their means.")] = 1,
    jobs: Jobs = None,
    as_json: AsJson = False,
) -> None:
    """Run a scenario, print what the engine did, write a result folder.

    Example: llmsim run scenarios/agent.yaml --set workload.rate=8 -o results/agent-8rps
    """
    loaded = load_scenario(scenario, overrides or [])
    assembly = assemble(loaded, warn)
    target = output or next_free(assembly.scenario.name)
    if replications > 1:
        assemblies = [assemble(seeded) for seeded in with_seeds(loaded, replications)]
        with StudyProgress(people, replications) as study:
            whole = replicate(
                assemblies, target, force=force, journal=journal, jobs=jobs, warn=warn, on_run=study.advance
            )
        people.print(replications_table(whole))
        say(f"results in {target}")
        if as_json:
            print_json(whole)
        return
    with RunProgress(people, assembly.scenario) as progress:
        summary = run_into(assembly, target, force=force, journal=journal, warn=warn, on_progress=progress.update)
    print_summary(summary, people)
    say(f"results in {target}")
    if as_json:
        print_json(summary)


@app.command()
def sweep(
    scenario: ScenarioPath,
    output: Annotated[Path, typer.Option("-o", "--output", help="The sweep's folder.", show_default=False)],
    vary: Annotated[
        list[str] | None,
        typer.Option("--vary", help="A key and its values: workload.rate=4,8. May be given again.", metavar="KEY=A,B"),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each setting, with seeds from run.seed on.")] = 1,
    jobs: Jobs = None,
    overrides: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Run a scenario under every combination of values, on all cores, into one table: OUTPUT/sweep.parquet.

    What is finished is kept: the same command goes on where a sweep was stopped, and more values or seeds add to it.

    Example: llmsim sweep scenarios/agent.yaml --vary policies.chunk_size.tokens=512,2048 --seeds 3 -o sweeps/chunk
    """
    values = parse_vary(vary or [])
    raw = read_yaml_mapping(scenario)
    study = Sweep(raw, scenario, values, num_seeds=seeds, folder=output, overrides=overrides or [], warn=warn)
    if study.num_known:
        say(f"{study.num_known:,} of {len(study.points):,} runs are known from before")
    with StudyProgress(people, len(study.points), study.num_known) as progress:
        frame = study.run(jobs, progress.advance)
    people.print(sweep_table(frame, list(values)))
    say(f"{len(frame):,} rows in {study.folder.table}")
    if as_json:
        print_json({"path": str(study.folder.table), "num_known": study.num_known, "rows": json_rows(frame)})


@app.command()
def compare(
    a: Annotated[Path, typer.Argument(help="A result folder.", show_default=False)],
    b: Annotated[Path, typer.Argument(help="Another one, of the same traffic.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Compare two results of the same traffic request by request: by how much B is later than A, and how sure that is.

    Example: llmsim compare results/agent-001 results/agent-002
    """
    comparison = compare_folders(a, b)
    people.print(comparison_tables(comparison))
    if as_json:
        print_json(comparison)


@app.command()
def check(scenario: ScenarioPath, overrides: Overrides = None, as_json: AsJson = False) -> None:
    """Check a scenario without running it: its keys, its trace, and whether model and KV cache fit the GPU.

    Example: llmsim check scenarios/agent.yaml --set hardware.gpu=a100-80g
    """
    assembly: Assembly = assemble(load_scenario(scenario, overrides or []), warn)
    report = check_report(assembly, warn)
    print_check(assembly, report, people)
    if as_json:
        print_json(report)


@app.command()
def workload(
    scenario: ScenarioPath,
    overrides: Overrides = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Draw the traffic here, as a PNG.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Describe a scenario's traffic without running it: lengths, arrivals, how much prompts share, a picture.

    Example: llmsim workload scenarios/agent.yaml -o traffic.png
    """
    traffic = observe(assemble(load_scenario(scenario, overrides or [])), warn)
    report = traffic_report(traffic)
    print_traffic(report, people)
    if output is not None:
        draw_traffic(traffic, output)
        say(f"picture in {output}")
    if as_json:
        print_json(report)


@app.command("list")
def list_known(
    what: Annotated[str, typer.Argument(help="models, gpus or policies", metavar="models|gpus|policies")],
    as_json: AsJson = False,
) -> None:
    """List the models, GPUs or policies that a scenario can name.

    Example: llmsim list policies
    """
    tables = {"models": model_table, "gpus": gpu_table, "policies": policy_table}
    if what not in tables:
        raise typer.BadParameter(f"'{what}' is unknown; choose {', '.join(tables)}")
    if as_json:
        print_json(known_names(what))
    else:
        Console(highlight=False).print(tables[what]())


@app.command()
def schema() -> None:
    """Print the JSON Schema of scenarios, with which editors complete and check a YAML.

    Example: llmsim schema > scenario.schema.json
    """
    print_json(json_schema())


@app.command()
def plot(
    result: Annotated[Path, typer.Argument(help="A result folder.", show_default=False)],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="The picture; RESULT/result.png where left out.")
    ] = None,
) -> None:
    """Draw a result: TTFT and ITL, running and waiting requests, KV use over time.

    Example: llmsim plot results/agent-001
    """
    picture = output or result / "result.png"
    draw(result, picture)
    say(f"picture in {picture}")


@app.command()
def decisions(
    case: Annotated[Path, typer.Argument(help="A case: JSON, gzipped or not.", show_default=False)],
    preset: Annotated[str, typer.Option(help="The engine whose decisions are wanted.")] = "vllm",
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write the log here, not on stdout.")] = None,
    check_log: Annotated[bool, typer.Option("--check", help="Compare with the log that the case carries.")] = False,
) -> None:
    """Drive the engine core step by step, without time, and print what it decided, one JSON object a step.

    Example: llmsim decisions tests/golden/vllm/crowded.json.gz --check
    """
    if preset != "vllm":
        raise typer.BadParameter(f"--preset: '{preset}' is unknown; choose vllm")
    loaded = read_case(case)
    if check_log and "log" not in loaded:
        raise CaseError(f"{case}: log: is missing; --check compares with it")
    try:
        lines = VllmDecisions(loaded).log()
        if check_log:
            report_check(case, loaded, first_difference(loaded["log"], lines))
        elif output is not None:
            write_log(output, lines)
        else:
            for line in lines:
                print(json.dumps(line, separators=(",", ":")))
    except CaseError:
        raise
    except ValueError as error:
        raise CaseError(f"{case}: {error}") from None


@app.command()
def replay(
    journal: Annotated[
        Path, typer.Argument(help="A result folder of a run with --journal, or its journal.", show_default=False)
    ],
    as_json: AsJson = False,
) -> None:
    """Feed a run's journal to a fresh core: every plan and token time must come out the same.

    Example: llmsim replay results/agent-001
    """
    journal = journal / JOURNAL if (journal / JOURNAL).is_file() else journal
    replayed = Replay(read_journal(journal), str(journal))
    difference = replayed.run()
    if difference is not None:
        say(f"{journal}: {difference}")
    else:
        say(f"{replayed.num_plans:,} plans and {replayed.num_finished:,} finished requests are identical")
    if as_json:
        counts = {"num_plans": replayed.num_plans, "num_finished": replayed.num_finished}
        print_json({"identical": difference is None, "difference": difference, **counts})
    if difference is not None:
        raise typer.Exit(1)


def report_check(path: Path, case: dict[str, Any], difference: str | None) -> None:
    """Say whether a decision log is the case's own; exit 1 if not."""
    if difference is None:
        say(f"{path}: {len(case['log']):,} steps are identical")
    else:
        say(f"{path}: {difference}")
        raise typer.Exit(1)


def say(text: str) -> None:
    """One line on stderr, however long."""
    people.print(escape(text), soft_wrap=True)


def warn(text: str) -> None:
    """Say on stderr what was found odd and what was done about it."""
    people.print(f"[yellow]warning:[/] {escape(text)}", soft_wrap=True)


def print_json(value: Any) -> None:
    """One JSON object on stdout."""
    print(json.dumps(value, indent=2, allow_nan=False))


def main(arguments: list[str] | None = None) -> None:
    """The console script: errors in one line, and exit codes."""
    gc.set_threshold(*GC_THRESHOLDS)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # tidied up after as Ctrl-C is
    try:
        status = app(args=arguments, prog_name="llmsim", standalone_mode=False)
        if status == INTERRUPTED:
            raise KeyboardInterrupt  # typer has turned it into a status
        sys.stdout.flush()
    except (ScenarioError, CaseError, JournalError, registry.PolicyError, specs.UnknownName) as error:
        fail(str(error))
    except ClickException as error:
        fail(str(getattr(error, "format_message", error.__str__)()))
    except SweepInterrupted as interrupted:
        print(interrupted, file=sys.stderr)
        sys.exit(INTERRUPTED)
    except BrokenPipeError:  # whoever read has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:  # a full disk, say
        fail(f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror or error))
    except (KeyboardInterrupt, typer.Abort):
        print("interrupted; nothing was written", file=sys.stderr)
        sys.exit(INTERRUPTED)
    sys.exit(status if isinstance(status, int) else 0)


def fail(message: str) -> None:
    """One line on stderr, exit code 2."""
    print(f"error: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(2)
