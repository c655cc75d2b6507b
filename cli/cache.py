"""`llmsim cache`: what a prefix cache of each size would find of a traffic, by eviction policy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..scenarios.progress import CountProgress, StudyProgress
from ..scenarios.studies.cache_sources import Source
from ..scenarios.studies.cache_study import CacheStudy, parse_blocks, parse_evictions
from ..scenarios.studies.cache_table import cache_heading, cache_table
from ..scenarios.writable import check_file
from .options import AsJson, Jobs, Overrides
from .speech import people, print_json, say, warn


def cache(
    source: Annotated[
        Path,
        typer.Argument(
            help="A jsonl trace with hash_ids, gzipped or not, or a scenario's YAML.",
            metavar="TRACE",
            show_default=False,
        ),
    ],
    blocks: Annotated[
        str | None,
        typer.Option(
            help="Cache sizes; where left out from 1 % to 100 % of the distinct blocks.",
            metavar="N,N",
            show_default=False,
        ),
    ] = None,
    eviction: Annotated[
        str, typer.Option(help="Policies; with parameters as {name: slru, threshold: 3}.", metavar="NAME,NAME")
    ] = "lru,lfu",
    block_size: Annotated[
        int | None,
        typer.Option(
            min=1, help="Tokens a block. A trace's is found out; a scenario's is the engine's.", show_default=False
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Draw the hit rates here, as a PNG.", show_default=False)
    ] = None,
    jobs: Jobs = None,
    overrides: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Hit rates of a prefix cache by size and eviction policy, without time, and the best that any policy could do.

    Requests come one after another; each finds its longest cached beginning and leaves all of its prompt's blocks.

    Example: llmsim cache conversation_trace.jsonl.gz --blocks 1000,10000,100000 --eviction lru,lfu -o hits.png
    """
    evictions = parse_evictions(eviction)
    sizes = parse_blocks(blocks) if blocks is not None else None
    if output is not None:
        check_file(output)
    with CountProgress(people, "requests read") as reading:
        study = CacheStudy(Source(source, block_size, overrides or []), warn, reading.update)
    with study:
        sizes = sizes or study.default_blocks()
        with StudyProgress(people, len(sizes) * len(evictions)) as progress:
            report = study.run(evictions, sizes, jobs, progress.advance)
    say(cache_heading(report))
    people.print(cache_table(report))
    say("Hit rates in % of the prompts' blocks. No policy finds more than belady, which knows the future.")
    if output is not None:
        from ..scenarios.studies.cache_picture import draw_cache

        draw_cache(report, output)
        say(f"picture in {output}")
    if as_json:
        print_json(report)
