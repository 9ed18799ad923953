"""The model file: safetensors arrays with a JSON header. Reading one executes nothing.

Header fields (all strings, as the format wants): format_version, class, settings, facts, versions; the last
three are JSON. An array that is mostly zeros is stored as the positions and values of the others,
name.positions and name.values, and its shape in the field `sparse`, JSON too; the format is then 2.
`io.tensors` says how such a file is written and read.
"""

import json
import platform
from importlib.metadata import version
from math import prod
from pathlib import Path

import numpy as np

from fenchel import __version__
from fenchel._memory import require_memory
from fenchel.errors import DataError
from fenchel.io._json import parse_json
from fenchel.io.tensors import read_tensors, write_tensors

FORMATS = PLAIN, SPARSE = "1", "2"  # without and with the field `sparse`


class ModelError(DataError):
    """A model file that cannot be read; the message names it and says why."""

    def __init__(self, path, message):
        super().__init__(str(path), None, message)
        self.args = str(path), message


def write_model(path, kind: str, settings: dict, facts: dict, arrays: dict[str, np.ndarray]) -> None:
    """Write a model: its class name, constructor settings, other facts and arrays."""
    arrays, shapes = _without_zeros(arrays)
    header = {
        "format_version": SPARSE if shapes else PLAIN,
        "class": kind,
        "settings": json.dumps(settings),
        "facts": json.dumps(facts),
        "versions": json.dumps(library_versions()),
    }
    if shapes:
        header["sparse"] = json.dumps(shapes)
    write_tensors(path, arrays, header)


def read_model(path) -> tuple[str, dict, dict, dict[str, np.ndarray]]:
    """(class name, settings, facts, arrays) of a model file; ModelError where it is damaged or foreign."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such model file")
    if not path.is_file():
        raise ModelError(path, "not a file, expected a fenchel model")
    try:
        header, arrays = read_tensors(path, "fenchel model")
    except DataError as error:
        raise ModelError(path, error.message) from None
    _check_header(path, header)
    try:
        arrays = _with_zeros(arrays, parse_json(header.get("sparse", "{}")))
        return header["class"], parse_json(header["settings"]), parse_json(header["facts"]), arrays
    except (KeyError, ValueError, TypeError, AttributeError, MemoryError) as error:
        raise ModelError(path, f"the header of the model file is damaged ({error})") from None


def _without_zeros(arrays) -> tuple[dict, dict]:
    """The arrays, those that are smaller so by their non-zeros; and the shapes of these."""
    out, shapes = {}, {}
    for name, array in arrays.items():
        array = np.asarray(array)
        if array.dtype != np.float64 or 2 * np.count_nonzero(array) >= array.size:
            out[name] = array
            continue
        positions = np.flatnonzero(array)
        out[f"{name}.positions"], out[f"{name}.values"] = positions, array.ravel()[positions]
        shapes[name] = list(array.shape)
    return out, shapes


def _with_zeros(arrays, shapes) -> dict:
    """The inverse of `_without_zeros`; ValueError where positions are not those of such an array."""
    for name, shape in shapes.items():
        positions, values = arrays.pop(f"{name}.positions"), arrays.pop(f"{name}.values")
        if not all(type(length) is int and length >= 0 for length in shape):
            raise ValueError(f"the shape of {name} is {shape!r}")
        size = prod(shape)
        require_memory(8 * size, f"the array {name} of {size} numbers", "the file claims too many")
        whole = positions.ndim == values.ndim == 1 and positions.size == values.size
        if not whole or positions.dtype != np.int64 or values.dtype != np.float64:
            raise ValueError(f"{name} has no positions and values that go together")
        if positions.size and (positions[0] < 0 or positions[-1] >= size or (np.diff(positions) <= 0).any()):
            raise ValueError(f"the positions of {name} do not increase from 0 to {size}")
        arrays[name] = np.zeros(size)
        arrays[name][positions] = values
        arrays[name] = arrays[name].reshape(shape)
    return arrays


def _check_header(path, header):
    found = header.get("format_version")
    if found is None or "class" not in header:
        raise ModelError(path, "a safetensors file, but not a fenchel model")
    if found not in FORMATS:
        message = f"model format {found[:20]}, but this fenchel reads formats {' and '.join(FORMATS)}"
        raise ModelError(path, f"{message}; use the fenchel that wrote it, or a newer one")


def library_versions() -> dict[str, str]:
    """Versions of everything a model's numbers depend on."""
    names = ("numpy", "scipy", "numba", "scikit-learn")
    own = {"fenchel": __version__, "python": platform.python_version()}
    return own | {name: version(name) for name in names}
