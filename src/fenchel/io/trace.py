"""The trace file: JSON lines, a header and then one object per check, so that a run can be drawn next year.

The header holds format_version, solver, problem, versions, machine and whatever the writer adds (seed, C,
tol, ...). JSON has no nan and no infinity: nan is null, infinities are the strings "inf" and "-inf".
"""

import json
import os
import platform
from dataclasses import asdict, fields
from math import isfinite, isnan, nan
from pathlib import Path

from fenchel.io.errors import DataError
from fenchel.io.files import open_output
from fenchel.io.models import library_versions
from fenchel.trace import Row, Trace

FORMAT_VERSION = 1
_COLUMNS = {field.name: field.type for field in fields(Row)}


def write_trace(path, trace: Trace, **facts) -> None:
    """Write a trace and facts about its run; the file takes its name only once it is complete."""
    header = {
        "format_version": FORMAT_VERSION,
        "solver": trace.solver,
        "problem": trace.problem,
        "versions": library_versions(),
        "machine": machine(),
    }
    objects = [header | facts, *(asdict(row) for row in trace)]
    text = "".join(json.dumps(_to_json(one), ensure_ascii=False, allow_nan=False) + "\n" for one in objects)
    with open_output(path) as stream:
        stream.write(text.encode())


def read_trace(path) -> Trace:
    """The trace that `write_trace` wrote; DataError names the line that is damaged."""
    lines = _lines(Path(path))
    header = _object(path, 1, lines[0] if lines else "")
    found = header.get("format_version")
    if not isinstance(found, int) or "solver" not in header:
        raise DataError(str(path), 1, "not the header of a fenchel trace")
    if found != FORMAT_VERSION:
        raise DataError(str(path), 1, f"trace format {found}, but this fenchel reads format {FORMAT_VERSION}")
    rows = [_row(path, number, line) for number, line in enumerate(lines[1:], start=2)]
    return Trace(header["solver"], header.get("problem", ""), rows)


def machine() -> dict:
    """What the seconds of a run depend on; no name that tells whose machine it is."""
    return {
        "system": f"{platform.system()} {platform.release()}",
        "architecture": platform.machine(),
        "processor": _processor(),
        "cores": os.cpu_count(),
    }


def _processor():
    """The processor's model, where the system tells it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
            return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or "unknown"


def _to_json(value):
    """The value with every float that JSON cannot hold replaced."""
    if isinstance(value, dict):
        return {key: _to_json(item) for key, item in value.items()}
    if isinstance(value, float) and not isfinite(value):
        return None if isnan(value) else str(value)
    return value


def _lines(path):
    try:
        # Not splitlines(): a name in the header may hold one of the other characters that end a line.
        lines = path.read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError:
        raise DataError(str(path), None, "not a text file, expected a fenchel trace") from None
    if lines[-1]:
        raise DataError(str(path), len(lines), "the line does not end: the file is cut short")
    return lines[:-1]


def _object(path, number, line):
    try:
        value = json.loads(line)
    except json.JSONDecodeError as error:
        raise DataError(str(path), number, f"not JSON ({error.msg}, column {error.colno})") from None
    if not isinstance(value, dict):
        raise DataError(str(path), number, f"a {type(value).__name__}, expected an object")
    return value


def _row(path, number, line):
    values = _object(path, number, line)
    if values.keys() != _COLUMNS.keys():
        odd = sorted(values.keys() ^ _COLUMNS.keys())
        how = "missing" if odd[0] in _COLUMNS else "unknown"
        raise DataError(str(path), number, f"field {odd[0]!r} is {how}")
    return Row(**{name: _number(path, number, name, value) for name, value in values.items()})


def _number(path, number, name, value):
    try:
        if isinstance(value, bool):
            raise ValueError
        return nan if value is None else _COLUMNS[name](value)
    except (TypeError, ValueError):
        raise DataError(str(path), number, f"{name} is {value!r}, expected a number") from None
