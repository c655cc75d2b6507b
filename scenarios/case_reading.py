"""Reads a case for `llmsim decisions` and says in one line what is wrong with one."""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path
from typing import Any

from .operation_reading import check_operations

_REQUEST_KEYS = {
    "id": str,
    "arrival_step": int,
    "prompt_token_ids": list,
    "output_len": int,
    "priority": int,
    "output_token_ids": list,
    "accept": list,
    "ignore_eos": bool,
}
_NEEDED = ("id", "arrival_step", "prompt_token_ids", "output_len")
_A_NUMBER = {"step": "a step", "i": "the number i of an operation"}


class CaseError(ValueError):
    """A case cannot be read or run; the message names the file and the place."""


def read_case(path: Path) -> dict[str, Any]:
    """The case in a JSON file, gzipped or not: `config`, `requests` or `ops`, maybe `log`. Raises CaseError."""
    try:
        data = path.read_bytes()
        case = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    except OSError as error:
        raise CaseError(f"{path}: {error.strerror or error}") from None
    except (EOFError, zlib.error, UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise CaseError(f"{path}: not a JSON case: {error}") from None
    _check_case(path, case)
    checked: dict[str, Any] = case
    return checked


def _check_case(path: Path, case: Any) -> None:
    if not isinstance(case, dict):
        raise CaseError(f"{path}: not a JSON object")
    if "ops" in case and "requests" in case:
        raise CaseError(f"{path}: ops: stands beside requests; a case has one of them")
    for key, kind in (("config", dict), ("ops" if "ops" in case else "requests", list)):
        if not isinstance(case.get(key), kind):
            raise CaseError(f"{path}: {key}: is missing, or not what it should be")
    if "ops" in case:
        _check_operations(path, case)
    else:
        _check_requests(path, case)


def _check_operations(path: Path, case: dict[str, Any]) -> None:
    try:
        check_operations(case)
    except ValueError as error:
        raise CaseError(f"{path}: {error}") from None
    _check_log(path, case.get("log", []), "operations", "i")


def _check_requests(path: Path, case: dict[str, Any]) -> None:
    seen: set[str] = set()
    for index, request in enumerate(case["requests"]):
        _check_request(f"{path}: requests[{index}]", request)
        if request["id"] in seen:
            raise CaseError(f"{path}: requests[{index}].id: {request['id']!r} is there twice")
        seen.add(request["id"])
    _check_log(path, case.get("log", []), "steps", "step")


def _check_log(path: Path, log: Any, lines: str, key: str) -> None:
    if not isinstance(log, list):
        raise CaseError(f"{path}: log: is not a list of {lines}")
    for index, line in enumerate(log):
        if not isinstance(line, dict) or type(line.get(key)) is not int:
            raise CaseError(f"{path}: log[{index}]: is not an object with {_A_NUMBER[key]}")


def _check_request(where: str, request: Any) -> None:
    if not isinstance(request, dict):
        raise CaseError(f"{where}: not a JSON object")
    for key in _NEEDED:
        if key not in request:
            raise CaseError(f"{where}.{key}: is missing")
    for key, value in request.items():
        kind = _REQUEST_KEYS.get(key)
        if kind is None:
            raise CaseError(f"{where}.{key}: unknown key; choose {', '.join(_REQUEST_KEYS)}")
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise CaseError(f"{where}.{key}: {value!r} is not of type {kind.__name__}")
        if isinstance(value, list) and not all(isinstance(item, int) and not isinstance(item, bool) for item in value):
            raise CaseError(f"{where}.{key}: holds something that is no integer")
    if request["arrival_step"] < 0:
        raise CaseError(f"{where}.arrival_step: {request['arrival_step']} is negative")
    if min(request.get("accept") or [0]) < 0:
        raise CaseError(f"{where}.accept: {min(request['accept'])} is negative")
    outputs = request.get("output_token_ids")
    if outputs and len(outputs) < request["output_len"]:
        raise CaseError(f"{where}.output_token_ids: {len(outputs)} tokens for output_len {request['output_len']}")
