"""Kernels of arc features: an arc's features as keys, which a hash table numbers.

The templates are those of McDonald, Crammer and Pereira (2005), Table 1, as collins2008 7.2 uses them: of
head and modifier the word and the tag, alone and together; the tags between them; the tags next to them; and
how far and on which side the head is. Each is there twice, alone and with direction and distance.

A key is a number with the fields as its digits, so that it can be read back (`fields_of`):

    key = (value · TEMPLATES + template) · ATTACHMENTS + attachment
    value = ((head word · W + word) · T + head tag) · T + tag, 0 for what a template does not look at,
            or four tags in base T where it looks at tags alone

with W words and T tags, both from 0 for one never seen; 1 is the root's, and tag 2 is beyond the sentence.
"""

from typing import NamedTuple

import numpy as np

from fenchel._cache import helper, njit
from fenchel._interrupts import held

UNSEEN, ROOT, OUTSIDE = 0, 1, 2  # codes; those of words go on from 2, those of tags from 3
FIELDS = ("head", "head tag", "word", "tag")
# The first thirteen: which of head word, head tag, word and tag they look at.
LEXICAL = ((0, 1), (0,), (1,), (2, 3), (2,), (3,), (0, 1, 2, 3), (1, 2, 3), (0, 2, 3), (0, 1, 3), (0, 1, 2))
LEXICAL += ((0, 2), (1, 3))
# Tags alone: one between head and word; neighbours of both, four ways; nothing but the attachment.
TAGS = (("head tag", "tag between", "tag"), ("head tag", "tag after head", "tag before", "tag"))
TAGS += (
    ("tag before head", "head tag", "tag before", "tag"),
    ("head tag", "tag after head", "tag", "tag after"),
)
TAGS += (("tag before head", "head tag", "tag", "tag after"), ())
BETWEEN, AROUND, ALONE = 13, 14, 18
TEMPLATES, ATTACHMENTS = 19, 15
DISTANCES = ("1", "2", "3", "4", "5", "6-10", "11+")
FIXED = 35  # features of an arc beside those of tags between
_ZERO, _ONE, _PAIR = np.uint64(0), np.uint64(1), np.uint64(2)
_ODD, _MIX = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
_HALF = np.uint64(32)
ABSENT = np.uint32(0xFFFFFFFF)


class Sentences(NamedTuple):
    """Codes of n sentences of N words."""

    starts: np.ndarray  # (n + 1,) uint64
    words: np.ndarray  # (N,) uint64, below n_words
    tags: np.ndarray  # (N,) uint64, below n_tags
    n_words: np.uint64
    n_tags: np.uint64


class Counted(NamedTuple):
    """The first `size` keys, in the order met, in how many arcs each is, and their slots as in a Table."""

    keys: np.ndarray
    counts: np.ndarray
    slots: np.ndarray
    size: np.uint64

    def often(self, min_count: int) -> np.ndarray:
        """The keys of so many arcs."""
        return self.keys[: self.size][self.counts[: self.size] >= min_count]


def nothing_counted() -> Counted:
    """Before the first sentence."""
    return Counted(np.empty(1024, np.uint64), np.empty(1024, np.uint32), np.zeros(4096, np.uint32), _ZERO)


class Table(NamedTuple):
    """Keys and their numbers: slots[p] holds number + 1 of the key in place p, 0 where there is none."""

    slots: np.ndarray  # uint32, a power of two of them
    keys: np.ndarray  # (d,) uint64
    hashed: int  # 0, or how many columns there are without a table: a key's is its hash


@helper(cache=True, nogil=True, forceinline=True)
def _hash(key):
    h = (key ^ (key >> _HALF)) * _MIX
    h = (h ^ (h >> _HALF)) * _ODD
    return h ^ (h >> _HALF)


@helper(cache=True, nogil=True)
def _attachment(h, m):
    """1 to 14: the side of the head and the class of its distance."""
    far = m - h if h < m else h - m
    near = far - 1 if far <= 5 else (5 if far <= 10 else 6)
    return np.uint64(1 + (0 if h < m else 7) + near)


@helper(cache=True, nogil=True, forceinline=True)
def _put(value, template, attached, keys, count):
    """The key without and with the attachment; keys written. Returns how many there are now.

    template: unsigned, as a plain number would have Numba compile this anew for each.
    """
    key = (value * np.uint64(TEMPLATES) + template) * np.uint64(ATTACHMENTS)
    keys[count], keys[count + _ONE] = key, key + attached
    return count + _PAIR


@njit(cache=True, nogil=True)
def arc_keys(d, i, h, m, keys):
    """The keys of the arc from h (0: the root) to word m of sentence i; keys written. Returns how many."""
    W, T, begin = d.n_words, d.n_tags, d.starts[i]
    n = np.int64(d.starts[i + 1] - begin)
    hw, ht = np.uint64(ROOT), np.uint64(ROOT)
    if h > 0:
        hw, ht = d.words[begin + np.uint64(h - 1)], d.tags[begin + np.uint64(h - 1)]
    mw, mt = d.words[begin + np.uint64(m - 1)], d.tags[begin + np.uint64(m - 1)]
    attached, count, TT = _attachment(h, m), np.uint64(0), T * T
    head, word = hw * W * TT, mw * TT
    tag = ht * T
    count = _put(head + tag, np.uint64(0), attached, keys, count)
    count = _put(head, np.uint64(1), attached, keys, count)
    count = _put(tag, np.uint64(2), attached, keys, count)
    count = _put(word + mt, np.uint64(3), attached, keys, count)
    count = _put(word, np.uint64(4), attached, keys, count)
    count = _put(mt, np.uint64(5), attached, keys, count)
    count = _put(head + word + tag + mt, np.uint64(6), attached, keys, count)
    count = _put(word + tag + mt, np.uint64(7), attached, keys, count)
    count = _put(head + word + mt, np.uint64(8), attached, keys, count)
    count = _put(head + tag + mt, np.uint64(9), attached, keys, count)
    count = _put(head + word + tag, np.uint64(10), attached, keys, count)
    count = _put(head + word, np.uint64(11), attached, keys, count)
    count = _put(tag + mt, np.uint64(12), attached, keys, count)
    h_next, h_last = _tag_at(d, begin, n, h + 1), _tag_at(d, begin, n, h - 1)
    m_next, m_last = _tag_at(d, begin, n, m + 1), _tag_at(d, begin, n, m - 1)
    count = _put(((ht * T + h_next) * T + m_last) * T + mt, np.uint64(AROUND), attached, keys, count)
    count = _put(((h_last * T + ht) * T + m_last) * T + mt, np.uint64(AROUND + 1), attached, keys, count)
    count = _put(((ht * T + h_next) * T + mt) * T + m_next, np.uint64(AROUND + 2), attached, keys, count)
    count = _put(((h_last * T + ht) * T + mt) * T + m_next, np.uint64(AROUND + 3), attached, keys, count)
    keys[count] = np.uint64(ALONE * ATTACHMENTS) + attached
    count += _ONE
    for b in range(min(h, m) + 1, max(h, m)):
        between, new = d.tags[begin + np.uint64(b - 1)], True
        for other in range(min(h, m) + 1, b):
            new = new and d.tags[begin + np.uint64(other - 1)] != between
        if new:
            count = _put((ht * T + between) * T + mt, np.uint64(BETWEEN), attached, keys, count)
    return count


@helper(cache=True, nogil=True)
def _tag_at(d, begin, n, at):
    """The tag of word `at`, the root's, or that of what is outside."""
    if at < 0 or at > n:
        return np.uint64(OUTSIDE)
    return np.uint64(ROOT) if at == 0 else d.tags[begin + np.uint64(at - 1)]


@helper(cache=True, nogil=True, forceinline=True)
def _find(table, key):
    """The number of a key, or ABSENT."""
    if table.hashed > 0:
        return np.uint32(_hash(key) & np.uint64(table.hashed - 1))
    mask = np.uint64(table.slots.size - 1)
    at = _hash(key) & mask
    while table.slots[at] > 0:
        number = table.slots[at] - np.uint32(1)
        if table.keys[number] == key:
            return number
        at = (at + _ONE) & mask
    return ABSENT


@njit(cache=True, nogil=True)
def look_up(table, keys, columns):
    """The number of each key, or ABSENT; columns written."""
    for k in range(keys.size):
        columns[k] = _find(table, keys[k])


@njit(cache=True, nogil=True)
def fill_slots(keys, count, slots):
    """Place the first keys, slots written; returns the first that is there twice, or −1."""
    mask = np.uint64(slots.size - 1)
    for a in range(np.uint64(count)):
        at = _hash(keys[a]) & mask
        while slots[at] > 0:
            if keys[slots[at] - np.uint32(1)] == keys[a]:
                return np.int64(a)
            at = (at + _ONE) & mask
        slots[at] = np.uint32(a + _ONE)
    return -1


def count_keys(d, heads, observed, room, counted: Counted) -> Counted:
    """All keys that were Counted, with those of these sentences; of true arcs alone, if `observed`.

    room: for the keys of an arc.
    """
    with held():
        keys, counts, slots, size = _count_keys(d, heads, observed, room, *counted)
    return Counted(keys, counts, slots, np.uint64(size))


@njit(cache=True, nogil=True)
def _count_keys(d, heads, observed, room, keys, counts, slots, size):
    """The fields of `count_keys`."""
    for i in range(np.uint64(d.starts.size - 1)):
        n = np.int64(d.starts[i + _ONE] - d.starts[i])
        for m in range(1, n + 1):
            true = heads[d.starts[i] + np.uint64(m - 1)]
            for h in range(true if observed else 0, true + 1 if observed else n + 1):
                for k in range(arc_keys(d, i, h, m, room) if h != m else np.uint64(0)):
                    mask, key = np.uint64(slots.size - 1), room[k]
                    at = _hash(key) & mask
                    while slots[at] > 0 and keys[slots[at] - np.uint32(1)] != key:
                        at = (at + _ONE) & mask
                    if slots[at] > 0:
                        counts[slots[at] - np.uint32(1)] += np.uint32(1)
                        continue
                    if size == np.uint64(keys.size):
                        keys, counts = _longer(keys), _longer(counts)
                    keys[size], counts[size] = key, 1
                    size += _ONE
                    slots[at] = np.uint32(size)
                    if size > np.uint64(slots.size // 2):
                        slots = np.zeros(2 * slots.size, np.uint32)
                        fill_slots(keys, size, slots)
    return keys, counts, slots, size


@helper(cache=True, nogil=True)
def _longer(array):
    longer = np.empty(2 * array.size, array.dtype)
    for i in range(array.size):
        longer[i] = array[i]
    return longer


@njit(cache=True, nogil=True)
def fill_rows(d, table, heads, room, indptr, indices):
    """A row for each arc, or for that of each word and its head where heads (N,) are given.

    indptr, indices written; returns the number of entries. Features that share a column by their hash are two
    entries of it, which add up.
    """
    count, arc, chosen = np.uint64(0), np.uint64(0), heads.size > 0
    for i in range(np.uint64(d.starts.size - 1)):
        n = np.int64(d.starts[i + _ONE] - d.starts[i])
        for m in range(1, n + 1):
            first = heads[d.starts[i] + np.uint64(m - 1)] if chosen else 0
            for h in range(first, first + 1 if chosen else n + 1):
                if h == m:
                    continue
                arc += _ONE
                for k in range(arc_keys(d, i, h, m, room)):
                    number = _find(table, room[k])
                    if number != ABSENT:
                        indices[count] = number
                        count += _ONE
                indptr[arc] = count
    return count


@njit(cache=True, nogil=True)
def score_arcs(d, start, stop, table, w, room, first, scores):
    """The scores of all arcs of the sentences start ≤ i < stop; written to scores[first] and behind."""
    at = np.uint64(first)
    for i in range(np.uint64(start), np.uint64(stop)):
        n = np.int64(d.starts[i + _ONE] - d.starts[i])
        for m in range(1, n + 1):
            for h in range(n + 1):
                if h != m:
                    total = 0.0
                    for k in range(arc_keys(d, i, h, m, room)):
                        number = _find(table, room[k])
                        total += w[number] if number != ABSENT else 0.0
                    scores[at] = total
                    at += _ONE
