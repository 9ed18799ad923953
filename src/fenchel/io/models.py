"""The model file: safetensors arrays with a JSON header. Reading one executes nothing.

Header fields (all strings, as the format wants): format_version, class, settings, facts, versions; the last
three are JSON. A file is written under a temporary name and renamed, so that a full disk or an interrupt
never leaves half a model in the place of a whole one.
"""

import json
import platform
import shutil
import tempfile
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

import numpy as np

from fenchel import __version__
from fenchel.errors import DataError
from fenchel.io._json import parse_json
from fenchel.io.files import gunzipped, open_output

FORMAT_VERSION = 1


class ModelError(DataError):
    """A model file that cannot be read; the message names it and says why."""

    def __init__(self, path, message):
        super().__init__(str(path), None, message)
        self.args = str(path), message


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
        raise ModelError(path, "not a file, expected a fenchel model")
    try:
        with _plain_file(path) as plain, safe_open(plain, framework="numpy") as file:
            header = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except DataError as error:
        raise ModelError(path, error.message) from None
    # AttributeError and the like: types of numbers that safetensors knows and NumPy does not
    except (SafetensorError, OSError, ValueError, TypeError, AttributeError, KeyError) as error:
        raise ModelError(path, f"not a fenchel model, or a damaged one ({error})") from None
    _check_header(path, header)
    try:
        return header["class"], parse_json(header["settings"]), parse_json(header["facts"]), arrays
    except (KeyError, ValueError) as error:
        raise ModelError(path, f"the header of the model file is damaged ({error})") from None


@contextmanager
def _plain_file(path):
    """The path, or that of a temporary file with what is inside, where the file is gzipped."""
    with open(path, "rb") as file:
        inside = gunzipped(file, str(path))
        if inside is file:
            yield path
            return
        with tempfile.NamedTemporaryFile() as temporary:
            shutil.copyfileobj(inside, temporary)
            temporary.flush()
            yield temporary.name


def _check_header(path, header):
    found = header.get("format_version")
    if found is None or "class" not in header:
        raise ModelError(path, "a safetensors file, but not a fenchel model")
    if found != str(FORMAT_VERSION):
        message = f"model format {found[:20]}, but this fenchel reads format {FORMAT_VERSION}"
        raise ModelError(path, f"{message}; use the fenchel that wrote it, or a newer one")


def library_versions() -> dict[str, str]:
    """Versions of everything a model's numbers depend on."""
    names = ("numpy", "scipy", "numba", "scikit-learn")
    own = {"fenchel": __version__, "python": platform.python_version()}
    return own | {name: version(name) for name in names}
