"""Named tuples that kernels get as one pointer: `_packed.py`."""

from typing import NamedTuple

import numpy as np
import pytest

from fenchel._cache import helper, njit
from fenchel._packed import bare, packed, tail


class Inner(NamedTuple):
    bytes: np.ndarray
    share: float


@packed
class Outer(NamedTuple):
    numbers: np.ndarray
    count: int
    yes: bool
    inner: Inner
    places: np.ndarray
    one: np.uint64


def outer(numbers):
    inner = Inner(np.array([7, 200], np.uint8), 0.25)
    return Outer(numbers, -3, True, inner, np.array([4, 2**32 - 1], np.uint32), np.uint64(2**63))


@njit
def read(d):
    return d.numbers[1], d.count, d.yes, d.inner.bytes[1], d.inner.share, d.places[1], d.one, d.numbers.size


@njit
def write(d):
    _scale(d, tail(d.numbers, 1))
    bare(d.numbers.data)[np.uint32(0)] = d.count


@helper
def _scale(d, numbers):
    for j in range(numbers.size):
        numbers[j] *= d.inner.share


def test_kernels_read_every_kind_of_field():
    assert read(outer(np.array([1.0, 2.5, 3.0]))) == (2.5, -3, True, 200, 0.25, 2**32 - 1, 2**63, 3)
    assert read(outer(np.array([0.5, -1.5])))[::7] == (-1.5, 2), "the same kernel, another tuple"


def test_what_kernels_write_is_in_the_arrays():
    numbers = np.array([1.0, 8.0, 12.0])
    write(outer(numbers))
    assert numbers.tolist() == [-3.0, 2.0, 3.0]


def test_arrays_with_gaps_are_refused():
    with pytest.raises(TypeError, match="flat ones without gaps"):
        read(outer(np.arange(6.0)[::2]))


class Interrupted(Outer):
    @property
    def block(self):
        raise KeyboardInterrupt


def test_an_interrupt_on_the_way_into_a_kernel_is_an_exception():
    with pytest.raises(KeyboardInterrupt):
        read(Interrupted(*outer(np.ones(2))))
