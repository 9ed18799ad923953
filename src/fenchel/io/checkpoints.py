"""The checkpoint file: safetensors arrays with a JSON header that has a digest of them. Nothing is executed.

Header fields: checkpoint_version, fingerprint (JSON: of what run it is), state (JSON), digest. Written under
a temporary name and renamed: a kill at any moment leaves the last whole one.
"""

import hashlib
import json
from pathlib import Path

import numpy as np

from fenchel.errors import DataError
from fenchel.io._json import parse_json
from fenchel.io.files import open_output

VERSION = "1"


def write_checkpoint(path, fingerprint: dict, arrays: dict[str, np.ndarray], state) -> None:
    """Write what `snapshots.freeze` made."""
    from safetensors.numpy import save

    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    texts = {"fingerprint": json.dumps(fingerprint), "state": json.dumps(state)}
    header = texts | {"checkpoint_version": VERSION, "digest": _digest(arrays, texts)}
    content = save(arrays, metadata=header)
    with open_output(path) as stream:
        stream.write(content)


def read_checkpoint(path) -> tuple[dict, dict[str, np.ndarray], object]:
    """(fingerprint, arrays, state); DataError where the file is damaged or no checkpoint."""
    from safetensors import SafetensorError, safe_open

    if not Path(path).is_file():
        raise FileNotFoundError(f"{path}: no such checkpoint")
    try:
        with safe_open(path, framework="numpy") as file:
            header = file.metadata() or {}
            arrays = {name: file.get_tensor(name).copy() for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError, TypeError, AttributeError, KeyError) as error:
        raise DataError(str(path), None, f"not a checkpoint, or a damaged one ({error})") from None
    if header.get("checkpoint_version") != VERSION:
        raise DataError(str(path), None, "not a checkpoint that this fenchel reads")
    texts = {name: header.get(name, "") for name in ("fingerprint", "state")}
    if header.get("digest") != _digest(arrays, texts):
        raise DataError(str(path), None, "the checkpoint is damaged: its digest is another")
    return parse_json(texts["fingerprint"]), arrays, parse_json(texts["state"])


def _digest(arrays, texts) -> str:
    """Of all that is in the file, in the order of names."""
    digest = hashlib.blake2b(digest_size=16)
    for name, text in sorted(texts.items()):
        digest.update(f"{name}:{text}".encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name}:{array.dtype}:{array.shape}".encode())
        digest.update(np.ascontiguousarray(array))
    return digest.hexdigest()
