"""Compiled kernels are cached in a folder named by a hash of the sources that have kernels.

Numba keys a cached kernel by its own file only: after an edit of a helper in another file its callers would
run stale. Both test workers share the folder. This must happen before Numba is imported.
"""

import hashlib
import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "src" / "fenchel"


# A module without any of these has nothing that is compiled, nor a constant that kernels take in.
KERNELS = (b"njit", b"helper", b"_kernel", b".implement(", b"IntEnum", b"NamedTuple")


def hash_of_sources() -> str:
    """Sixteen digits that change with the name or the text of any module that kernels depend on."""
    digest = hashlib.sha256()
    for path in sorted(SOURCES.rglob("*.py")):
        text = path.read_bytes()
        if path.name.startswith("_") or any(mark in text for mark in KERNELS):
            digest.update(path.relative_to(SOURCES).as_posix().encode() + b"\0" + text + b"\0")
    return digest.hexdigest()[:16]


os.environ["NUMBA_CACHE_DIR"] = str(ROOT / ".numba_cache" / hash_of_sources())
