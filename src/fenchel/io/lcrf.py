"""CRFsuite's binary models: linear chains as its tagger reads them, little-endian throughout.

    lCRF, size, FOMC, version, features, labels L, attributes A, where the five chunks begin
    FEAT: weights, each with its type (0 state, 1 transition), source and label
    CQDB twice: a hash table of the labels' names, and one of the attributes'
    LFRF, AFRF: for each label (attribute) the numbers of its weights

A file is looked at whole before it is believed: every offset, number and name.
"""

import struct
from typing import NamedTuple

import numpy as np

from fenchel._memory import require_memory
from fenchel.errors import DataError
from fenchel.io.files import open_input, open_output
from fenchel.io.models import ModelError

MAGIC = b"lCRF"
_HEADER = struct.Struct("<4sI4s9I")
_VERSION = 100
_STATE, _TRANSITION = 0, 1
_FEATURE = np.dtype([("type", "<u4"), ("source", "<u4"), ("label", "<u4"), ("weight", "<f8")])
_ORDER_MARK = 0x62445371
_TABLES, _RECORDS = 256, 24 + 8 * 256  # hash tables of a database, and where its records begin


class LinearChain(NamedTuple):
    """Weights of attributes with labels (A, L), and of labels with the next label (L, L); 0 where none."""

    labels: list
    attributes: list
    states: np.ndarray
    transitions: np.ndarray


# ---- reading


def is_lcrf(path) -> bool:
    """Whether a file begins as such a model does."""
    try:
        with open_input(path) as stream:
            return stream.read(4) == MAGIC
    except (OSError, DataError):
        return False  # whoever reads it says what is wrong


def read_lcrf(path) -> LinearChain:
    """The model of a file; ModelError where it is damaged or something else."""
    try:
        with open_input(path) as stream:
            return _read(stream.read())
    except DataError as error:
        raise ModelError(path, error.message) from None
    except (ValueError, MemoryError) as error:
        raise ModelError(path, f"not a model of CRFsuite, or a damaged one ({error})") from None


def _read(content) -> LinearChain:
    if len(content) < _HEADER.size:
        raise ValueError(f"{len(content)} bytes")
    magic, size, kind, version, _, L, A, *chunks = _HEADER.unpack_from(content)
    if (magic, kind, version) != (MAGIC, b"FOMC", _VERSION):
        raise ValueError(f"it begins with {content[:4]!r}, {content[8:12]!r} and version {version}")
    if size != len(content):
        raise ValueError(f"{len(content)} bytes, but it says {size}")
    for tag, at in zip((b"FEAT", b"CQDB", b"CQDB", b"LFRF", b"AFRF"), chunks, strict=True):
        if content[at : at + 4] != tag:
            raise ValueError(f"there is no {tag.decode()} at byte {at}")
    features = _features(content, chunks[0])
    labels, attributes = _names(content, chunks[1], L), _names(content, chunks[2], A)
    if not labels:
        raise ValueError("it has no labels")
    require_memory(8 * L * (A + L), f"the weights of {A} attributes with {L} labels", "use fewer")
    states = _weights(features[features["type"] == _STATE], (A, L))
    return LinearChain(labels, attributes, states, _weights(features[features["type"] != _STATE], (L, L)))


def _unpack(content, form, at, end):
    """Numbers at a place that must end before `end`."""
    if at + struct.calcsize(form) > end:
        raise ValueError(f"it ends within the numbers at byte {at}")
    return struct.unpack_from(form, content, at)


def _features(content, at):
    size, count = _unpack(content, "<II", at + 4, len(content))
    if size != 12 + _FEATURE.itemsize * count or at + size > len(content):
        raise ValueError(f"{count} weights do not fit in {size} bytes from byte {at} on")
    features = np.frombuffer(content, _FEATURE, count, at + 12)
    if not (features["type"] <= _TRANSITION).all() or not np.isfinite(features["weight"]).all():
        raise ValueError("a weight is of no known type, or not finite")
    return features


def _weights(features, shape):
    """(sources, labels) of the weights; those of one pair add up."""
    if (features["source"] >= shape[0]).any() or (features["label"] >= shape[1]).any():
        raise ValueError(f"a weight is of none of {shape[0]} sources and {shape[1]} labels")
    out = np.zeros(shape)
    np.add.at(out, (features["source"], features["label"]), features["weight"])
    return out


def _names(content, base, expected):
    """The names of a database in the order of their numbers."""
    size, flag, mark, count, backward = _unpack(content, "<5I", base + 4, len(content))
    if flag != 0 or mark != _ORDER_MARK or count != expected:
        raise ValueError(
            f"the names at byte {base} are {count} of kind {flag}, expected {expected} of kind 0"
        )
    if base + size > len(content):
        raise ValueError(f"the names at byte {base} go beyond the end")
    if count == 0:
        return []
    places = _unpack(content, f"<{min(count, size)}I", base + backward, base + size)
    names = [_name(content, base + at, base + size, k) for k, at in enumerate(places)]
    if len(set(names)) < count:
        raise ValueError(f"one of the names at byte {base} comes twice")
    return names


def _name(content, at, end, number):
    found, length = _unpack(content, "<II", at, end)
    key = content[at + 8 : at + 8 + length]
    if found != number or length == 0 or at + 8 + length > end or key.find(b"\0") != length - 1:
        raise ValueError(f"the name of number {number} is damaged")
    return key[:-1].decode("utf-8", "surrogateescape")


# ---- writing


def write_lcrf(path, model: LinearChain) -> None:
    """Write the weights other than 0; attributes without one are left out. Names must not hold NUL."""
    kept = np.flatnonzero(model.states.any(axis=1))
    states, names = model.states[kept], [model.attributes[k] for k in kept.tolist()]
    features = _in_order(states, model.transitions)
    chunks = [struct.pack("<4sII", b"FEAT", 12 + features.nbytes, features.size) + features.tobytes()]
    places = [_HEADER.size, _HEADER.size + len(chunks[0])]
    for chunk in (_database(model.labels), _database(names)):
        chunks.append(chunk)
        places.append(places[-1] + len(chunk))
    chunks.append(bytes(-places[-1] % 4))
    places[-1] += len(chunks[-1])
    counts, more = np.count_nonzero(states, axis=1), np.count_nonzero(model.transitions, axis=1)
    chunks.append(_references(b"LFRF", more, counts.sum(), places[-1], empty=2))
    places.append(places[-1] + len(chunks[-1]))
    chunks.append(_references(b"AFRF", counts, 0, places[-1]))
    size = places[-1] + len(chunks[-1])
    if size >= 2**32:
        raise ValueError(
            f"the model takes {size} bytes, but CRFsuite's files end at 4 GiB; train with c1 > 0"
        )
    header = _HEADER.pack(MAGIC, size, b"FOMC", _VERSION, 0, len(model.labels), len(names), *places)
    with open_output(path) as stream:
        stream.writelines([header, *chunks])


def _in_order(states, transitions):
    """The records of all weights: states by attribute, then transitions."""
    parts = []
    for kind, weights in ((_STATE, states), (_TRANSITION, transitions)):
        sources, labels = np.nonzero(weights)
        part = np.zeros(sources.size, _FEATURE)
        part["type"], part["source"], part["label"] = kind, sources, labels
        part["weight"] = weights[sources, labels]
        parts.append(part)
    return np.concatenate(parts)


def _database(names) -> bytes:
    """A hash table of names: slots (hash, place of the record), and the places by number."""
    keys = [name.encode("utf-8", "surrogateescape") + b"\0" for name in names]
    lengths = np.fromiter(map(len, keys), np.int64, len(keys))
    places = (_RECORDS + np.concatenate([[0], np.cumsum(8 + lengths)])).tolist()
    hashes = hash_keys(keys).tolist()
    tables = [[] for _ in range(_TABLES)]
    for number, value in enumerate(hashes):
        tables[value % _TABLES].append((value, places[number]))
    at, heads, filled = places[-1], [], []
    for table in tables:
        slots = _slots(table)
        heads += [at if table else 0, len(slots)]
        filled += [number for slot in slots for number in slot]
        at += 8 * len(slots)
    records = [struct.pack("<II", k, len(key)) + key for k, key in enumerate(keys)]
    size = at + 4 * len(keys)
    head = struct.pack("<4s5I", b"CQDB", size, 0, _ORDER_MARK, len(keys), at if keys else 0)
    heads, filled, backward = (np.array(part, "<u4").tobytes() for part in (heads, filled, places[:-1]))
    return b"".join([head, heads, *records, filled, backward])


def _slots(table):
    """Twice as many slots as entries; each entry in the first free one from (hash >> 8) on."""
    slots = [(0, 0)] * (2 * len(table))
    for value, place in table:
        at = (value >> 8) % len(slots)
        while slots[at][1]:
            at = (at + 1) % len(slots)
        slots[at] = value, place
    return slots


def _references(tag, counts, first, base, empty=0) -> bytes:
    """For each label or attribute how many weights it has and their numbers, which go on from `first`.

    empty: slots behind them that no longer mean anything.
    """
    n, ends = counts.size, np.cumsum(counts + 1)
    places = base + 12 + 4 * (n + empty) + 4 * (ends - counts - 1)
    numbers = np.empty(ends[-1] if n else 0, "<u4")
    is_count = np.zeros(numbers.size, bool)
    is_count[ends - counts - 1] = True
    numbers[is_count], numbers[~is_count] = counts, first + np.arange(counts.sum())
    content = np.concatenate([places, np.zeros(empty, np.int64)]).astype("<u4").tobytes() + numbers.tobytes()
    return struct.pack("<4sII", tag, 12 + len(content), n + empty) + content


# ---- Jenkins' hash


def hash_keys(keys: list[bytes]) -> np.ndarray:
    """(n,) uint32, `hashlittle` of lookup3 with seed 0; keys with as many blocks of 12 bytes at once."""
    out = np.empty(len(keys), np.uint32)
    blocks = np.fromiter(((max(len(key), 1) - 1) // 12 for key in keys), np.int64, len(keys))
    for rounds in np.unique(blocks).tolist():
        where = np.flatnonzero(blocks == rounds)
        some = [keys[k] for k in where.tolist()]
        text = b"".join(key.ljust(12 * (rounds + 1), b"\0") for key in some)
        words = np.frombuffer(text, "<u4").reshape(len(some), rounds + 1, 3).astype(np.uint32)
        lengths = np.fromiter(map(len, some), np.uint32, len(some))
        out[where] = _hash_words(words, lengths)
    return out


def _hash_words(words, lengths):
    a = b = c = np.uint32(0xDEADBEEF) + lengths
    for block in range(words.shape[1]):
        a, b, c = a + words[:, block, 0], b + words[:, block, 1], c + words[:, block, 2]
        if block + 1 < words.shape[1]:
            a, b, c = _mix(a, b, c)
    for shift in (14, 11, 25, 16, 4, 14, 24):
        c = (c ^ b) - _turn(b, shift)
        a, b, c = b, c, a
    return b


def _mix(a, b, c):
    for shift in (4, 6, 8, 16, 19, 4):
        a = (a - c) ^ _turn(c, shift)
        a, b, c = b, c + b, a
    return a, b, c


def _turn(x, bits):
    return (x << np.uint32(bits)) | (x >> np.uint32(32 - bits))
