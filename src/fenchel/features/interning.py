"""Kernels that turn tokens into attributes: keys of integers, numbered by hash tables.

The key of an attribute is the k values of its line's macros.  Lines with the same text around their macros
are a group, and share their attributes; every group has a table of its own, so that a line with few values
works in the fastest cache.  A slot of a table is 0 where it is empty, else the upper half of the key's hash
and the attribute's number + 1: the hash proposes, the comparison of keys decides.
"""

from typing import NamedTuple

import numpy as np

from fenchel._cache import helper, njit
from fenchel._interrupts import held

ABSENT = np.uint32(0xFFFFFFFF)  # no such value, no such attribute
FROM_TOKEN, FROM_FIRST, FROM_LAST = np.uint64(0), np.uint64(1), np.uint64(2)
FIRST, LAST = np.uint64(1), np.uint64(2)  # as in lines.PLACES
_OFTEN = np.uint32(0xFFFFFFFE)  # to be kept, but without a number yet
_LOW = np.uint64(0xFFFFFFFF)
_ZERO, _ONE = np.uint64(0), np.uint64(1)
_HIGH = np.uint64(32)
_ODD = np.uint64(0x9E3779B97F4A7C15)
_MIX = np.uint64(0xD6E8FEB86659FD93)


class Plan(NamedTuple):
    """The L lines of a template with M macros in all.

    begin: (L + 1,) uint64; the macros of line l are begin[l]:begin[l + 1].  group, place: (L,) uint64.
    source (M,) uint64, offset (M,) int64, anchor (M,) uint64.  skip_first: whether the first tokens have none
    (attributes of edges).
    """

    begin: np.ndarray
    group: np.ndarray
    place: np.ndarray
    source: np.ndarray
    offset: np.ndarray
    anchor: np.ndarray
    skip_first: bool


class Grid(NamedTuple):
    """What the D sources hold at each token, as value ids or ABSENT.

    values: (D · size,) uint32, source after source, each sentence with `reach` places of padding on both
    sides. starts: (n + 1,) int64, where the sentences start among the tokens.
    """

    values: np.ndarray
    starts: np.ndarray
    reach: int
    size: int


class Met(NamedTuple):
    """The attributes of a group of lines that were met so far: keys of `width` values, and their slots."""

    slots: np.ndarray
    keys: np.ndarray
    count: np.uint64
    width: np.uint64


def nothing_met(width) -> Met:
    """Before the first."""
    return Met(np.zeros(1024, np.uint64), np.empty(1024 * int(width), np.uint32), _ZERO, np.uint64(width))


class Table(NamedTuple):
    """A attributes in a hash table for each of G groups.

    keys: (K,) uint32, those of attribute a from key_begin[a]; width: (G,) values in a key of each group.
    slots: uint64; those of group g are slots[slot_begin[g] + i], 0 ≤ i ≤ mask[g].
    """

    keys: np.ndarray
    key_begin: np.ndarray
    width: np.ndarray
    slots: np.ndarray
    slot_begin: np.ndarray
    mask: np.ndarray


@njit(cache=True, nogil=True)
def lay_out(starts, codes, column, ids, base, stride, pads, reach, out):
    """Fill the values of a Grid, out (D, size): of source d, ids[base[d] + stride[d] · codes[column[d], t]].

    At distance k from the sentence it is pads[d, 0, k − 1] before and pads[d, 1, k − 1] behind, the last of
    them for all larger distances.
    """
    for d in range(np.uint64(base.size)):
        at = _ZERO
        for s in range(np.uint64(starts.size - 1)):
            for k in range(reach, 0, -1):
                out[d, at] = pads[d, _ZERO, np.uint64(min(k, pads.shape[2]) - 1)]
                at += _ONE
            for t in range(np.uint64(starts[s]), np.uint64(starts[s + _ONE])):
                out[d, at] = ids[base[d] + stride[d] * np.uint64(codes[column[d], t])]
                at += _ONE
            for k in range(1, reach + 1):
                out[d, at] = pads[d, _ONE, np.uint64(min(k, pads.shape[2]) - 1)]
                at += _ONE


# Kernels called for each occurrence take arrays, not named tuples: taking an array out of one counts its
# references up and down, and looking up an attribute took 120 ns instead of 67 ns.
@helper(cache=True, nogil=True, forceinline=True)
def find_key(values, shift, anchor, macro, last_macro, t, first, end, key):
    """Whether all macros of a line have a value at place t of the sentence first:end; the key is written."""
    j = _ZERO
    for m in range(macro, last_macro):
        origin = t if anchor[m] == FROM_TOKEN else first if anchor[m] == FROM_FIRST else end
        value = values[origin + shift[m]]
        if value == ABSENT:
            return False
        key[j] = value
        j += _ONE
    return True


@helper(cache=True, nogil=True, forceinline=True)
def is_placed(place, skip_first, t, first, end):
    """Whether a line has an attribute at place t of the sentence first:end at all."""
    if t == first and skip_first:
        return False
    return not ((place == FIRST and t != first) or (place == LAST and t + _ONE != end))


@helper(cache=True, nogil=True)
def shifts(plan, size):
    """(M,) how far the value of each macro is from the place it counts from, in values of a Grid."""
    shift = np.empty(plan.source.size, np.uint64)
    for m in range(shift.size):
        shift[m] = plan.source[m] * np.uint64(size) + np.uint64(plan.offset[m])  # of −1 it wraps around
    return shift


@helper(cache=True, nogil=True, forceinline=True)
def key_tag(keys, begin, width):
    """A hash of 32 bits: it chooses the slot and is kept there."""
    h = _ODD
    for j in range(begin, begin + width):
        h = (h ^ np.uint64(keys[j])) * _MIX
        h ^= h >> _HIGH
    return (h * _ODD) >> _HIGH


@helper(cache=True, nogil=True, forceinline=True)
def _same(keys, at, key, begin, width):
    for j in range(width):  # noqa: SIM110, all() of a generator does not compile
        if keys[at + j] != key[begin + j]:
            return False
    return True


# ---- learning


@helper(cache=True, nogil=True)
def _doubled(slots):
    """The table with twice the slots."""
    bigger = np.zeros(2 * slots.size, np.uint64)
    mask = np.uint64(bigger.size - 1)
    for i in range(slots.size):
        entry = slots[i]
        if entry != _ZERO:
            at = (entry >> _HIGH) & mask
            while bigger[at] != _ZERO:
                at = (at + _ONE) & mask
            bigger[at] = entry
    return bigger


@helper(cache=True, nogil=True)
def _longer(array):
    longer = np.empty(2 * array.size, array.dtype)
    for i in range(array.size):
        longer[i] = array[i]
    return longer


@helper(cache=True, nogil=True, forceinline=True)
def _find_slot(slots, keys, key, width, tag):
    """The slot of a key of a group, or the empty one where it belongs."""
    mask = np.uint64(slots.size - 1)
    at = tag & mask
    while slots[at] != _ZERO:
        entry = slots[at]
        if entry >> _HIGH == tag and _same(keys, ((entry & _LOW) - _ONE) * width, key, _ZERO, width):
            break
        at = (at + _ONE) & mask
    return at


def intern_group(plan, grid, lines, met: Met, numbers) -> Met:
    """Number the attributes of a group of lines in the order met; return all that were Met with these.

    numbers (L, N) written in the rows of the lines: the attribute at each token, or ABSENT.
    """
    with held():
        slots, keys, count = _intern_group(plan, grid, lines, *met, numbers)
    return Met(slots, keys, np.uint64(count), met.width)


@njit(cache=True, nogil=True)
def _intern_group(plan, grid, lines, slots, keys, count, width, numbers):
    """The fields of `intern_group`."""
    key = np.empty(width, np.uint32)
    values, starts, anchor, shift = grid.values, grid.starts, plan.anchor, shifts(plan, grid.size)
    skip_first, reach = plan.skip_first, np.uint64(grid.reach)
    for line in lines:
        place, macro, last_macro = plan.place[line], plan.begin[line], plan.begin[line + _ONE]
        at = _ZERO
        for s in range(np.uint64(starts.size - 1)):
            first = at + reach
            pad, end = first - np.uint64(starts[s]), first + np.uint64(starts[s + _ONE] - starts[s])
            at = end + reach
            for t in range(first, end):
                numbers[line, t - pad] = ABSENT
                if not is_placed(place, skip_first, t, first, end):
                    continue
                if not find_key(values, shift, anchor, macro, last_macro, t, first, end, key):
                    continue
                tag = key_tag(key, _ZERO, width)
                slot = _find_slot(slots, keys, key, width, tag)
                if slots[slot] == _ZERO:
                    if (count + _ONE) * width > np.uint64(keys.size):
                        keys = _longer(keys)
                    for j in range(width):
                        keys[count * width + j] = key[j]
                    count += _ONE
                    slots[slot] = tag << _HIGH | count
                    numbers[line, t - pad] = count - _ONE
                    if count > np.uint64(slots.size // 2):
                        slots = _doubled(slots)
                else:
                    numbers[line, t - pad] = (slots[slot] & _LOW) - _ONE
    return slots, keys, count


@njit(cache=True, nogil=True)
def renumber(numbers, group, group_begin, min_count):
    """New numbers for the attributes seen often enough, in the order first seen, token by token.

    numbers (L, N) within each group.  Returns new (A,), ABSENT where it is seldom.
    """
    new = np.zeros(group_begin[-1], np.uint32)
    n_lines, n_tokens = np.uint64(numbers.shape[0]), np.uint64(numbers.shape[1])
    for line in range(n_lines):
        first = group_begin[group[line]]
        for t in range(n_tokens):
            if numbers[line, t] != ABSENT:
                new[first + numbers[line, t]] += np.uint32(1)
    for a in range(new.size):
        new[a] = _OFTEN if new[a] >= min_count else ABSENT
    count = np.uint32(0)
    for t in range(n_tokens):
        for line in range(n_lines):
            if numbers[line, t] != ABSENT:
                a = group_begin[group[line]] + numbers[line, t]
                if new[a] == _OFTEN:
                    new[a] = count
                    count += np.uint32(1)
    return new


@helper(cache=True, nogil=True, forceinline=True)
def _sort(indices, begin, end, gap):
    """Sort every gap-th number of the row begin:end, from each of the first on."""
    for i in range(begin + gap, end):
        a, at = indices[i], i
        while at >= begin + gap and indices[at - gap] > a:
            indices[at] = indices[at - gap]
            at -= gap
        indices[at] = a


@helper(cache=True, nogil=True, forceinline=True)
def finish_row(indices, data, begin, end):
    """Sort the row begin:end and add up what is there more than once; return its new end."""
    if end - begin > np.uint64(
        30
    ):  # Shell's sort: by gaps first, as insertion moves each number step by step
        _sort(indices, begin, end, np.uint64(23))
        _sort(indices, begin, end, np.uint64(7))
    _sort(indices, begin, end, _ONE)
    twice = False
    for i in range(begin, end):
        data[i] = 1.0
        twice |= i > begin and indices[i] == indices[i - _ONE]
    return _add_up(indices, data, begin, end) if twice else end


@helper(cache=True, nogil=True)
def _add_up(indices, data, begin, end):
    """Make neighbours of the same number one; return the new end of the row."""
    last = begin
    for i in range(begin + _ONE, end):
        if indices[i] == indices[last]:
            data[last] += 1.0
        else:
            last += _ONE
            indices[last] = indices[i]
            data[last] = 1.0
    return last + _ONE


@njit(cache=True, nogil=True)
def fill_rows(numbers, group, group_begin, new, indptr, indices, data):
    """Rows of the attributes kept, after `renumber`; indptr, indices, data written; returns their number."""
    n_lines, n_tokens = np.uint64(numbers.shape[0]), np.uint64(numbers.shape[1])
    nnz = _ZERO
    for t in range(n_tokens):
        begin = nnz
        for line in range(n_lines):
            if numbers[line, t] != ABSENT:
                a = new[group_begin[group[line]] + numbers[line, t]]
                if a != ABSENT:
                    indices[nnz] = a
                    nnz += _ONE
        nnz = finish_row(indices, data, begin, nnz)
        indptr[t + _ONE] = nnz
    return nnz


# ---- looking up


@njit(cache=True, nogil=True)
def fill_table(groups, table):
    """Put all attributes in their slots, written; return the first whose key is not its alone, or −1."""
    for a in range(np.uint64(groups.size)):
        g, begin = groups[a], table.key_begin[a]
        tag = key_tag(table.keys, begin, table.width[g])
        at = tag & table.mask[g]
        while table.slots[table.slot_begin[g] + at] != _ZERO:
            entry = table.slots[table.slot_begin[g] + at]
            other = table.key_begin[(entry & _LOW) - _ONE]
            if entry >> _HIGH == tag and _same(table.keys, other, table.keys, begin, table.width[g]):
                return np.int64(a)
            at = (at + _ONE) & table.mask[g]
        table.slots[table.slot_begin[g] + at] = tag << _HIGH | (a + _ONE)
    return -1


@njit(cache=True, nogil=True, forceinline=True)
def _look_up(slots, first, mask, keys, key_begin, key, width):
    """The attribute of a key, or ABSENT."""
    tag = key_tag(key, _ZERO, width)
    at = tag & mask
    while True:
        entry = slots[first + at]
        if entry == _ZERO:
            return ABSENT
        if entry >> _HIGH == tag:
            a = (entry & _LOW) - _ONE
            if _same(keys, key_begin[a], key, _ZERO, width):
                return np.uint32(a)
        at = (at + _ONE) & mask


@njit(cache=True, nogil=True)
def look_up_rows(plan, grid, table, indptr, indices, data):
    """Rows of the attributes that the table holds; indptr, indices, data written; returns their number."""
    values, starts, anchor, shift = grid.values, grid.starts, plan.anchor, shifts(plan, grid.size)
    skip_first, reach, begin, places, group = (
        plan.skip_first,
        np.uint64(grid.reach),
        plan.begin,
        plan.place,
        plan.group,
    )
    keys, key_begin, width, slots = table.keys, table.key_begin, table.width, table.slots
    slot_begin, mask = table.slot_begin, table.mask
    key = np.empty(plan.source.size, np.uint32)
    n_lines, nnz, token, at = np.uint64(group.size), _ZERO, _ZERO, _ZERO
    for s in range(np.uint64(starts.size - 1)):
        first = at + reach
        end = first + np.uint64(starts[s + _ONE] - starts[s])
        at = end + reach
        for t in range(first, end):
            row = nnz
            for k in range(n_lines):
                if not is_placed(places[k], skip_first, t, first, end):
                    continue
                if not find_key(values, shift, anchor, begin[k], begin[k + _ONE], t, first, end, key):
                    continue
                g = group[k]
                a = _look_up(slots, slot_begin[g], mask[g], keys, key_begin, key, width[g])
                if a != ABSENT:
                    indices[nnz] = a
                    nnz += _ONE
            nnz = finish_row(indices, data, row, nnz)
            token += _ONE
            indptr[token] = nnz
    return nnz
