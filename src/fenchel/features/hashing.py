"""Columns of names by their hash: 2^bits of them, whatever the names are, and none of these is kept."""

from functools import partial
from zlib import crc32

import numpy as np
import scipy.sparse as sp

from fenchel.features.naming import Naming, Pairs
from fenchel.features.vocabulary import Vocabulary

MOST_MET = 2**19  # names that are remembered with their column: a look-up costs less than a hash
ODD = 0x9E3779B97F4A7C15  # 2^64 divided by the golden mean: multiples of it spread evenly


class Hashed:
    """What a `Vocabulary` is to encoding, with 2^bits columns that names share by chance."""

    def __init__(self, bits: int):
        self.bits, self._pairs = int(bits), None
        self._met = _Places(self.bits)

    def __len__(self):
        return 2**self.bits

    def __contains__(self, name):
        return isinstance(name, str)

    def __repr__(self):
        return f"<names by their hash, {len(self)} columns>"

    def __getstate__(self):
        return {"bits": self.bits}

    def __setstate__(self, state):
        self.__init__(**state)

    @property
    def names(self) -> list:
        raise unnamed(self.bits)

    def name_of(self, column: int) -> str:
        return f"column {column}"

    def add(self, name) -> int:
        """The column of a name; each has one."""
        return self._met[name]

    def get(self, name, default=-1) -> int:
        """The same."""
        return self._met[name]

    def numbering(self, grow=False, unknown=-1):
        """As of `Vocabulary`."""
        return partial(map, self._met.__getitem__)

    def pairs(self, naming: Naming, grow=False) -> Pairs:
        """As of `Vocabulary`."""
        if self._pairs is None or self._pairs.full or self._pairs.naming != naming:
            self._pairs = Pairs(naming, self._met.__getitem__)
        return self._pairs

    def copy(self) -> "Hashed":
        """Nothing is added to it."""
        return self

    def to_arrays(self) -> dict:
        """For `read_names`."""
        return {"hash_bits": np.array([self.bits], np.uint8)}


class _Places(dict):
    """From names to columns, by the upper bits of a product with the CRC-32 of a name's UTF-8."""

    def __init__(self, bits):
        self._shift = 64 - bits

    def __missing__(self, name):
        if not isinstance(name, str):
            raise TypeError(f"the name {name!r} is a {type(name).__name__}, expected a string")
        if len(self) >= MOST_MET:
            self.clear()
        found = crc32(name.encode("utf-8", "surrogatepass")) * ODD % 2**64 >> self._shift
        self[name] = found
        return found


def unnamed(bits: int) -> ValueError:
    """What to raise where names are asked for."""
    return ValueError(
        f"features were hashed to 2^{bits} columns, and their names are not kept; train without hash_bits"
    )


def names_for(hash_bits: int | None) -> Vocabulary | Hashed:
    """What names are to be numbered by, before the first."""
    return Vocabulary() if hash_bits is None else Hashed(hash_bits)


def read_names(arrays: dict) -> Vocabulary | Hashed:
    """What gave these arrays; ValueError if they are damaged."""
    if "hash_bits" not in arrays:
        return Vocabulary.from_arrays(arrays["text"], arrays["offsets"])
    bits = np.asarray(arrays["hash_bits"])
    if bits.shape != (1,) or bits.dtype != np.uint8 or not 1 <= bits[0] <= 30:
        raise ValueError("damaged vocabulary: hash_bits is no number from 1 to 30")
    return Hashed(int(bits[0]))


def require_no_counts(min_count: int, hash_bits: int | None) -> None:
    """Refuse to count what is not named."""
    if hash_bits is not None and min_count > 1:
        raise ValueError(
            f"min_count={min_count} counts features by their names, but hash_bits={hash_bits} keeps none; "
            f"leave one of them out"
        )


def hashed_columns(X, hash_bits: int) -> sp.csr_matrix:
    """The columns of X (n, d) by their hash, (n, 2^hash_bits); those that meet are added up."""
    X = sp.csr_matrix(X)
    columns = (X.indices.astype(np.uint64) + np.uint64(1)) * np.uint64(ODD) >> np.uint64(64 - hash_bits)
    shape = X.shape[0], 2**hash_bits
    found = sp.csr_matrix((X.data.copy(), columns.astype(np.int32), X.indptr.copy()), shape=shape)
    found.sum_duplicates()
    return found
