"""Vectors as they are sent: sparse where that is smaller, and sums of answers."""

from typing import NamedTuple

import numpy as np

ENTRY = 12  # bytes of a number and its place


class Packed(NamedTuple):
    """A vector of `size` numbers that are 0 but for these."""

    size: int
    indices: np.ndarray  # uint32, increasing
    values: np.ndarray


def packed(v: np.ndarray) -> np.ndarray | Packed:
    """The vector as it takes fewer bytes."""
    places = np.flatnonzero(v)
    if ENTRY * places.size >= v.nbytes or v.size > np.iinfo(np.uint32).max:
        return v
    return Packed(v.size, places.astype(np.uint32), v[places])


def dense(v: np.ndarray | Packed) -> np.ndarray:
    """All numbers of it."""
    if not isinstance(v, Packed):
        return v
    out = np.zeros(v.size)
    out[v.indices] = v.values
    return out


def add_to(out: np.ndarray, v: np.ndarray | Packed) -> None:
    """out += v; out written."""
    if isinstance(v, Packed):
        out[v.indices] += v.values
    else:
        out += v


def plus(a, b):
    """The sum of two answers: numbers, vectors, or tuples of these."""
    if isinstance(a, tuple) and not isinstance(a, Packed):
        return tuple(plus(one, other) for one, other in zip(a, b, strict=True))
    if not isinstance(a, Packed) and not isinstance(b, Packed):
        return a + b
    total = dense(a).copy()
    add_to(total, b)
    return packed(total)


def total(answers: list):
    """Their sum, two and two: as exact as a tree makes it, and the same wherever it is added up."""
    while len(answers) > 1:
        pairs = [plus(a, b) for a, b in zip(answers[::2], answers[1::2], strict=False)]
        answers = pairs + answers[2 * len(pairs) :]
    return answers[0]


def size_of(value) -> int:
    """Bytes that it takes to send a value, about."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, tuple | list):
        return sum(map(size_of, value))
    if isinstance(value, dict):
        return sum(map(size_of, value.values()))
    return 8
