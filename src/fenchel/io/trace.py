"""The trace file: JSON lines, a header and then one object per check, so that a run can be drawn next year.

The header holds format_version, solver, problem, steps (passes, seconds, estimated relative gap and, on a
cluster, bytes sent so far of each),
versions, machine and whatever the writer adds (seed, C, tol, ...). JSON has no nan and no infinity: nan is
null, infinities are the strings "inf" and "-inf".
"""

import json
import os
import platform
from dataclasses import asdict, fields
from math import inf, isfinite, isnan, nan

from fenchel.errors import DataError
from fenchel.io._json import parse_json
from fenchel.io.files import open_input, open_output
from fenchel.io.models import library_versions
from fenchel.trace import Row, Step, Trace

FORMAT_VERSION = 1
_COLUMNS = {field.name: field.type for field in fields(Row)}
_WORDS = {None: nan, "inf": inf, "-inf": -inf}  # the floats that JSON has not


def write_trace(path, trace: Trace, **facts) -> None:
    """Write a trace and facts about its run; the file takes its name only once it is complete."""
    header = {
        "format_version": FORMAT_VERSION,
        "solver": trace.solver,
        "problem": trace.problem,
        "steps": [list(step if step.bytes == step.bytes else step[:3]) for step in trace.steps],
        "versions": library_versions(),
        "machine": machine(),
    }
    objects = [header | facts, *(asdict(row) for row in trace)]
    text = "".join(json.dumps(_to_json(one), ensure_ascii=False, allow_nan=False) + "\n" for one in objects)
    with open_output(path) as stream:
        stream.write(text.encode())


def read_trace(path) -> Trace:
    """The trace that `write_trace` wrote; DataError names the line that is damaged."""
    return read_run(path)[0]


def read_run(path) -> tuple[Trace, dict]:
    """The trace, and the header: what else was written of the run."""
    lines = _lines(path)
    header = _object(path, 1, lines[0] if lines else "")
    found = header.get("format_version")
    names = header.get("solver"), header.get("problem", "")
    if type(found) is not int or not all(isinstance(name, str) for name in names):
        raise DataError(str(path), 1, "not the header of a fenchel trace")
    if found != FORMAT_VERSION:
        raise DataError(str(path), 1, f"trace format {found}, but this fenchel reads format {FORMAT_VERSION}")
    rows = [_row(path, number, line) for number, line in enumerate(lines[1:], start=2)]
    return Trace(*names, rows, _steps(path, header.get("steps", []))), header


def _steps(path, found):
    """The steps of the header; older files have none."""
    try:
        return [Step(*(float(_WORDS.get(number, number)) for number in step)) for step in found]
    except (TypeError, ValueError, OverflowError):
        raise DataError(str(path), 1, "steps must be lists of three numbers") from None


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
    if isinstance(value, list):
        return [_to_json(item) for item in value]
    if isinstance(value, float) and not isfinite(value):
        return None if isnan(value) else str(value)
    return value


def _lines(path):
    try:
        with open_input(path) as stream:
            # Not splitlines(): a name in the header may hold one of the other characters that end a line.
            lines = stream.read().decode().replace("\r\n", "\n").split("\n")
    except UnicodeDecodeError:
        raise DataError(str(path), None, "not a text file, expected a fenchel trace") from None
    if lines[-1]:
        raise DataError(str(path), len(lines), "the line does not end: the file is cut short")
    return lines[:-1]


def _object(path, number, line):
    try:
        value = parse_json(line)
    except json.JSONDecodeError as error:
        raise DataError(str(path), number, f"not JSON ({error.msg}, column {error.colno})") from None
    except ValueError as error:
        raise DataError(str(path), number, f"not JSON that can be read ({error})") from None
    if not isinstance(value, dict):
        raise DataError(str(path), number, f"a {type(value).__name__}, expected an object")
    return value


def _row(path, number, line):
    values = {"bytes": None} | _object(path, number, line)  # older files have none
    if values.keys() != _COLUMNS.keys():
        odd = sorted(values.keys() ^ _COLUMNS.keys())
        how = "missing" if odd[0] in _COLUMNS else "unknown"
        raise DataError(str(path), number, f"field {odd[0]!r} is {how}")
    return Row(**{name: _number(path, number, name, value) for name, value in values.items()})


def _number(path, number, name, value):
    """The value of a field: a whole number where the column counts something, else a float."""
    try:
        if _COLUMNS[name] is float and (value is None or isinstance(value, str)):
            return _WORDS[value]
        if type(value) not in (int, float) or _COLUMNS[name](value) != value:
            raise ValueError
        return _COLUMNS[name](value)
    except (KeyError, ValueError, OverflowError):
        shown = repr(value)[:40]
        raise DataError(str(path), number, f"{name} is {shown}, expected a number") from None
