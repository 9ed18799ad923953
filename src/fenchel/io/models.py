"""The model file: safetensors arrays with a JSON header. Reading one executes nothing.

Header fields (all strings, as the format wants): format_version, class, settings, facts, versions; the last
three are JSON. A file is written under a temporary name and renamed, so that a full disk or an interrupt
never leaves half a model in the place of a whole one.
"""

import json
import platform
from importlib.metadata import version
from pathlib import Path

import numpy as np

from fenchel import __version__
from fenchel.io.files import open_output

FORMAT_VERSION = 1


class ModelError(ValueError):
    """A model file that cannot be read; the message names it and says why."""


def write_model(path, kind: str, settings: dict, facts: dict, arrays: dict[str, np.ndarray]) -> None:
    """Write a model: its class name, constructor settings, other facts and arrays."""
    from safetensors.numpy import save

    header = {
        "format_version": str(FORMAT_VERSION),
        "class": kind,
        "settings": json.dumps(settings),
        "facts": json.dumps(facts),
        "versions": json.dumps(library_versions()),
    }
    content = save({name: np.ascontiguousarray(array) for name, array in arrays.items()}, metadata=header)
    with open_output(path) as stream:
        stream.write(content)


def read_model(path) -> tuple[str, dict, dict, dict[str, np.ndarray]]:
    """(class name, settings, facts, arrays) of a model file; ModelError where it is damaged or foreign."""
    from safetensors import SafetensorError, safe_open

    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such model file")
    if not path.is_file():
        raise ModelError(f"{path}: not a file, expected a fenchel model")
    try:
        with safe_open(path, framework="numpy") as file:
            header = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError) as error:
        raise ModelError(f"{path}: not a fenchel model, or a damaged one ({error})") from None
    _check_header(path, header)
    try:
        return header["class"], json.loads(header["settings"]), json.loads(header["facts"]), arrays
    except (KeyError, json.JSONDecodeError) as error:
        raise ModelError(f"{path}: the header of the model file is damaged ({error})") from None


def _check_header(path, header):
    found = header.get("format_version")
    if found is None or "class" not in header:
        raise ModelError(f"{path}: a safetensors file, but not a fenchel model")
    if found != str(FORMAT_VERSION):
        raise ModelError(
            f"{path}: model format {found}, but this fenchel reads format {FORMAT_VERSION}; "
            f"use the fenchel that wrote it, or a newer one"
        )


def library_versions() -> dict[str, str]:
    """Versions of everything a model's numbers depend on."""
    names = ("numpy", "scipy", "numba", "scikit-learn")
    own = {"fenchel": __version__, "python": platform.python_version()}
    return own | {name: version(name) for name in names}
