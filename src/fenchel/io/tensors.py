"""Files of named arrays with a header of strings, in the format safetensors: reading one executes nothing.

What models and checkpoints have in common. A file is written under a temporary name and renamed, so that a
full disk, an interrupt or a kill never leaves half a file in the place of a whole one.
"""

import shutil
import tempfile
from contextlib import contextmanager

import numpy as np

from fenchel.errors import DataError
from fenchel.io.files import gunzipped, open_output


def write_tensors(path, arrays: dict[str, np.ndarray], header: dict[str, str]) -> None:
    """Write arrays and header; a name that ends in .gz is compressed."""
    from safetensors.numpy import save

    content = save({name: np.ascontiguousarray(array) for name, array in arrays.items()}, metadata=header)
    with open_output(path) as stream:
        stream.write(content)


def read_tensors(path, what: str) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    """(header, arrays); DataError says that the file is not `what` where it is damaged or foreign."""
    from safetensors import SafetensorError, safe_open

    try:
        with _plain_file(path) as plain, safe_open(plain, framework="numpy") as file:
            names = file.keys()
            return file.metadata() or {}, {name: file.get_tensor(name) for name in names}
    except DataError:
        raise
    # AttributeError and the like: types of numbers that safetensors knows and NumPy does not
    except (SafetensorError, OSError, ValueError, TypeError, AttributeError, KeyError) as error:
        raise DataError(str(path), None, f"not a {what}, or a damaged one ({error})") from None


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
