"""The checkpoint file: safetensors arrays with a JSON header that has a digest of them. Nothing is executed.

Header fields: checkpoint_version, fingerprint (JSON: of what run it is), state (JSON), digest. The digest
finds damage, not malice: unlike a model, a checkpoint of somebody else's is nothing to go on from.
`io.tensors` says how such a file is written and read.
"""

import hashlib
import json
from pathlib import Path

import numpy as np

from fenchel.errors import DataError
from fenchel.io._json import parse_json
from fenchel.io.tensors import read_tensors, write_tensors

VERSION = "1"


def write_checkpoint(path, fingerprint: dict, arrays: dict[str, np.ndarray], state) -> None:
    """Write what `snapshots.freeze` made."""
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    texts = {"fingerprint": json.dumps(fingerprint), "state": json.dumps(state)}
    write_tensors(path, arrays, texts | {"checkpoint_version": VERSION, "digest": _digest(arrays, texts)})


def read_checkpoint(path) -> tuple[dict, dict[str, np.ndarray], object]:
    """(fingerprint, arrays, state); DataError where the file is damaged or no checkpoint."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"{path}: no such checkpoint")
    header, arrays = read_tensors(path, "checkpoint")
    found = header.get("checkpoint_version")
    if found is None:
        raise DataError(str(path), None, "a safetensors file, but not a checkpoint")
    if found != VERSION:
        message = f"checkpoint format {found[:20]}, but this fenchel reads format {VERSION}"
        raise DataError(str(path), None, f"{message}; use the fenchel that wrote it, or start anew")
    texts = {name: header.get(name, "") for name in ("fingerprint", "state")}
    if header.get("digest") != _digest(arrays, texts):
        raise DataError(str(path), None, "the checkpoint is damaged: its digest is another")
    arrays = {name: array.copy() for name, array in arrays.items()}  # the file's own may not be written to
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
