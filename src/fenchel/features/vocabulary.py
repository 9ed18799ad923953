"""Names of features and their numbers."""

from functools import partial
from itertools import pairwise, repeat

import numpy as np

from fenchel.features.naming import Naming, Pairs


class Vocabulary:
    """Distinct names, numbered from 0 in the order they were first seen.

    A name is any string: it may be empty, hold blanks or newlines.
    """

    def __init__(self, names=()):
        self._ids = _Numbered()
        self._pairs = None
        for name in names:
            self.add(name)

    def __len__(self):
        return len(self._ids)

    def __contains__(self, name):
        return name in self._ids

    def __repr__(self):
        return f"<Vocabulary of {len(self)} names>"

    @property
    def names(self) -> list:
        """The names in the order of their ids, as a new list."""
        return list(self._ids)

    def name_of(self, number: int) -> str:
        """The name of an id."""
        return self.names[number]

    def add(self, name) -> int:
        """The id of a name, which becomes the next one if it is new."""
        return self._ids[name]

    def get(self, name, default=-1) -> int:
        """The id of a name, or the default if it is unknown."""
        return self._ids.get(name, default)

    def numbering(self, grow=False, unknown=-1):
        """A function from names to an iterator over their ids, as `add` (grow) or `get` gives them.

        For millions of names: nothing of it runs in Python but for new ones.
        """
        if grow:
            return partial(map, self._ids.__getitem__)
        return lambda names: map(self._ids.get, names, repeat(unknown))

    def pairs(self, naming: Naming, grow=False) -> Pairs:
        """From (key, value) to columns, as `add` (grow) or `get` gives them; unknown ones behind the others.

        What was met before is remembered, from training to prediction.
        """
        unknown, met = None if grow else len(self), self._pairs
        if met is None or met.full or met.naming != naming or met.unknown not in (None, unknown):
            met = Pairs(naming, self._ids.__getitem__)
        if met.unknown != unknown:  # what was met while names were added stays right
            met.unknown, met.number = unknown, lambda name: self._ids.get(name, unknown)
        self._pairs = met
        return met

    def __getstate__(self):
        return vars(self) | {"_pairs": None}

    def copy(self) -> "Vocabulary":
        """The same names with the same ids; adding to one leaves the other alone."""
        other = Vocabulary()
        other._ids.update(self._ids)
        return other

    def keep(self, which) -> "Vocabulary":
        """The names that a mask over all of them or an array of ids gives, in its order, numbered anew."""
        names = self.names
        return _from_distinct(names[i] for i in _chosen(which, len(names)))

    def to_arrays(self) -> dict:
        """The names as arrays: "text" (uint8), their UTF-8 in one piece, and "offsets" (n + 1,) uint64.

        Name i is text[offsets[i]:offsets[i + 1]].  Lone surrogates are kept, as three bytes, so that any
        string comes back.
        """
        encoded = [name.encode("utf-8", "surrogatepass") for name in self._ids]
        offsets = np.zeros(len(encoded) + 1, np.uint64)
        np.cumsum(np.fromiter(map(len, encoded), np.uint64, len(encoded)), out=offsets[1:])
        return {"text": np.frombuffer(b"".join(encoded), np.uint8), "offsets": offsets}

    @classmethod
    def from_arrays(cls, text, offsets) -> "Vocabulary":
        """The vocabulary whose `to_arrays` gave these; ValueError if they are damaged."""
        text, offsets = np.asarray(text), np.asarray(offsets)
        _check_arrays(text, offsets)
        encoded, ends = text.tobytes(), offsets.tolist()
        return _from_distinct(_decode(encoded[i:j], k) for k, (i, j) in enumerate(pairwise(ends)))


class _Numbered(dict):
    """A dict that gives each new name the next number.

    Looking a name up and adding it is then one call that runs in C but for new names, and so it is only new
    names whose type needs a check.
    """

    def __missing__(self, name):
        if not isinstance(name, str):
            raise TypeError(f"the name {name!r} is a {type(name).__name__}, expected a string")
        self[name] = number = len(self)
        return number


def _from_distinct(names):
    """A vocabulary of names none of which may come twice: that would shift all later ids."""
    vocabulary = Vocabulary()
    for number, name in enumerate(names):
        if vocabulary.add(name) != number:
            raise ValueError(f"the name {name!r} comes twice, as {vocabulary.get(name)} and as {number}")
    return vocabulary


def _chosen(which, n):
    """The ids, as a list of int, that a mask of size n or an array of ids stands for."""
    which = np.asarray(which)
    if which.dtype == bool:
        if which.shape != (n,):
            raise ValueError(f"the mask has shape {which.shape}, expected ({n},), one entry per name")
        return np.flatnonzero(which).tolist()
    if which.size == 0:
        return []
    if which.ndim != 1 or which.dtype.kind not in "iu":
        raise ValueError(f"expected a mask or a list of ids, got {which.dtype} of shape {which.shape}")
    if which.min() < 0 or which.max() >= n:
        wrong = int(which.min() if which.min() < 0 else which.max())
        raise ValueError(f"id {wrong} is none of the {n} in the vocabulary")
    return which.tolist()


def _check_arrays(text, offsets):
    """Make sure that the offsets cut the text into names."""
    if text.dtype != np.uint8 or text.ndim != 1:
        raise ValueError(f"damaged vocabulary: text is {text.dtype} of {text.ndim} axes, expected uint8 of 1")
    if offsets.dtype.kind not in "iu" or offsets.ndim != 1:
        kind = f"{offsets.dtype} of {offsets.ndim} axes"
        raise ValueError(f"damaged vocabulary: offsets are {kind}, expected uint64 of 1")
    if offsets.size == 0 or offsets[0] != 0:
        raise ValueError("damaged vocabulary: offsets do not start at 0")
    falls = np.flatnonzero(offsets[1:] < offsets[:-1])  # a difference of unsigned numbers is never negative
    if falls.size:
        raise ValueError(f"damaged vocabulary: offsets decrease after name {falls[0]}")
    if offsets[-1] != text.size:
        raise ValueError(f"damaged vocabulary: offsets end at {offsets[-1]}, the text at {text.size}")


def _decode(encoded, number):
    try:
        return encoded.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        raise ValueError(f"damaged vocabulary: name {number} is not UTF-8") from None
