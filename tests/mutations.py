"""Damage to files, of every kind that files meet: each function takes a random generator and bytes.

The same seed gives the same bytes in every process and on every machine.
"""

import gzip
import json
import random
import re

import numpy as np
from safetensors.numpy import load, save

NUMBERS = (
    *(b"1e400", b"-1e400", b"1e-400", b"99999999999999999999", b"-1", b"0", b"nan", b"inf", b"-inf"),
    *(b"2147483647", b"2147483648", b"9007199254740993", b"18446744073709551616", b"1_000", b"0x10", b"1f"),
    *(b"+5", b"-0", b".5", b"5.", b"1e", b"1e+", b"--1", b"1.2.3", b"9" * 5000, b"0." + b"3" * 400, b"1e22"),
    *("٣".encode(), "１".encode(), b"123456789012345678", b"0.1234567890123456789", b"8.5e-23", b"1e23"),
)
ODD_BYTES = (
    *(
        b"\x00",
        b"\xff",
        b"\xfe\xff",
        b"\xef\xbb\xbf",
        b"\xed\xa0\x80",
        b"\xc0\xaf",
        b"\xf5\x80\x80\x80",
        b"\x80",
    ),
    *("\u2028".encode(), "\u2029".encode(), "\x85".encode(), "\xa0".encode(), "\u3000".encode()),
    *(
        b"\x0b",
        b"\x0c",
        b"\x1c",
        b"\x1f",
        b"\r",
        b"\r\n",
        b"\n\n",
        b"\t",
        b" ",
        b":",
        b"::",
        b"\\",
        b"\\:",
        b"#",
    ),
    *(
        b"@",
        b"@weight:",
        b"$$$WEIGHT ",
        b"$$$TASK",
        b"DEV\n",
        b"TEST\n",
        b"&header\n",
        b"/\n",
        b"qid:",
        b"=",
        b'"',
    ),
    *(
        b"%x[",
        b"%t[0,0,",
        b"%x[@",
        b"*",
        b"[",
        b"{",
        b"}",
        b"]",
        b"null",
        b"true",
        b",",
        "é".encode(),
        b"\x1f\x8b",
    ),
)
_NUMBER = re.compile(rb"[+-]?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?")


def generator(*names) -> random.Random:
    """A generator whose numbers depend on the names alone."""
    return random.Random(":".join(map(str, names)))


def damaged(rng, samples: list[bytes]) -> bytes:
    """One of the samples after one to four kinds of damage; now and then gzipped, and damaged again."""
    data = rng.choice(samples)
    for _ in range(rng.randint(1, 4)):
        data = rng.choice(KINDS)(rng, data, samples)
    if rng.random() < 0.1:
        data = gzip.compress(data, 6, mtime=0)
        if rng.random() < 0.6:
            data = rng.choice(ON_BYTES)(rng, data, samples)
    return data


def damaged_words(rng, samples: list[bytes]) -> bytes:
    """A binary file with one to three of its 32-bit numbers changed, or damaged like any other."""
    if rng.random() < 0.3:
        return damaged(rng, samples)
    data = bytearray(rng.choice(samples))
    for _ in range(rng.randint(1, 3)):
        at = 4 * rng.randrange(min(len(data), rng.choice((48, 10**9))) // 4)
        wrong = rng.choice((0, 1, rng.randrange(64), len(data) - rng.randrange(64), 2**31, 2**32 - 1))
        data[at : at + 4] = (wrong % 2**32).to_bytes(4, "little")
    return bytes(data)


# ---- bytes


def flip(rng, data, samples):
    if not data:
        return data
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]


def delete(rng, data, samples):
    first, last = _span(rng, data)
    return data[:first] + data[last:]


def repeat(rng, data, samples):
    first, last = _span(rng, data)
    return data[:last] + data[first:last] * rng.choice((1, 2, 10)) + data[last:]


def insert(rng, data, samples):
    at = rng.randint(0, len(data))
    return data[:at] + rng.choice(ODD_BYTES) + data[at:]


def truncate(rng, data, samples):
    return data[: rng.randint(0, len(data))]


def splice(rng, data, samples):
    """The beginning of one file and the end of another."""
    other = rng.choice(samples)
    return data[: rng.randint(0, len(data))] + other[rng.randint(0, len(other)) :]


def flood(rng, data, samples):
    """One of a few bytes, many times: long lines, long tokens, many fields."""
    at, size = rng.randint(0, len(data)), rng.choice((10, 100, 1000, 10_000, 100_000))
    piece = rng.choice(
        (
            b":",
            b"\t",
            b" ",
            b"a",
            b"1",
            b"\\",
            b"1:1 ",
            b"\n",
            b"#",
            b"[",
            b"\x00",
            b"%x[0,0]",
            b"a\t",
            b"B\n",
        )
    )
    return data[:at] + (piece * size)[:size] + data[at:]


def _span(rng, data):
    first = rng.randint(0, len(data))
    return first, min(len(data), first + rng.choice((1, 1, 2, 5, 20)))


# ---- lines and numbers


def change_number(rng, data, samples):
    found = list(_NUMBER.finditer(data[:20_000]))
    if not found:
        return data
    one = rng.choice(found)
    return data[: one.start()] + rng.choice(NUMBERS) + data[one.end() :]


def change_lines(rng, data, samples):
    """A line twice, away, or elsewhere."""
    lines = data.split(b"\n")
    at, to = rng.randrange(len(lines)), rng.randrange(len(lines))
    line = lines[at]
    if rng.random() < 0.5:
        del lines[at]
    if rng.random() < 0.7:
        lines.insert(to, line)
    return b"\n".join(lines)


def change_ends(rng, data, samples):
    return data.replace(b"\n", rng.choice((b"\r\n", b"\r", b"\n\n", b"\n\r", "\u2028".encode(), b"\x0c")))


def add_mark(rng, data, samples):
    return rng.choice((b"\xef\xbb\xbf", b"\xff\xfe", b"\x1f\x8b", b"\x1f")) + data


ON_BYTES = (flip, delete, repeat, insert, truncate, splice)
KINDS = (*ON_BYTES, *ON_BYTES, change_number, change_number, change_lines, change_ends, flood, add_mark)


# ---- model files: safetensors with JSON inside

VALUES = (
    *(None, True, False, -1, 0, 1, 2, 3, 7, 10**9, 2**31, 2**63, -(2**63), 10**400, 0.5, -0.0, 1e308),
    *(
        float("nan"),
        float("inf"),
        "",
        "x",
        "object",
        "O",
        "<U1000000000",
        "V9",
        "<M8[ns]",
        "<f8",
        "<c16",
        ">i4",
    ),
    *(
        "nan",
        "5",
        "1" * 5000,
        "ä\ud800",
        "%x[0,0]",
        [],
        [None],
        [[]],
        ["a", "a"],
        [1, 2, 3],
        [["a", "b"]],
        {},
    ),
    *(
        {"name": "none such", "options": {}},
        {"name": "cd-dual", "options": {"odd": 1}},
        {"name": 5},
        {"a": {"b": []}},
    ),
)
DTYPES = ("float64", "float32", "int64", "int32", "int8", "uint8", "uint32", "uint64", "bool", "float16")


def damaged_model(rng, samples: list[bytes]) -> bytes:
    """A model file with wrong values in its header, wrong arrays, or wrong bytes anywhere."""
    if rng.random() < 0.3:
        return damaged(rng, samples)
    arrays, header = open_model(rng.choice(samples))
    for _ in range(rng.randint(1, 3)):
        if rng.random() < 0.5:
            _change_header(rng, header)
        else:
            _change_array(rng, arrays)
    if rng.random() < 0.05:
        _, header = open_model(rng.choice(samples))
    data = save(arrays, metadata=header)
    return flip(rng, data, samples) if rng.random() < 0.1 else data


def open_model(data: bytes) -> tuple[dict, dict]:
    """(arrays, header) of the bytes of a model file."""
    size = int.from_bytes(data[:8], "little")
    return load(data), json.loads(data[8 : 8 + size])["__metadata__"]


def _change_header(rng, header):
    field = rng.choice(list(header) or ["class"])
    if field not in ("settings", "facts") or rng.random() < 0.05:
        wrong = rng.choice(
            ("", "2", "{", "[]", "null", "5", "[" * 100_000, "1" * 5000, "ChainCRF", "MaxEnt", "NaN")
        )
        header[field] = wrong
        return
    try:
        value = json.loads(header[field])
    except (ValueError, RecursionError):
        return
    # a lone surrogate goes in as an escape; safetensors takes UTF-8 only
    header[field] = json.dumps(_change_value(rng, value))


def _change_value(rng, value):
    """The value with one place in it changed, taken away or added."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(list(value))
        if rng.random() < 0.1:
            return {k: v for k, v in value.items() if k != key}
        return value | {key: _change_value(rng, value[key])}
    if isinstance(value, list) and value and rng.random() < 0.6:
        at = rng.randrange(len(value))
        changed = [_change_value(rng, value[at])] if rng.random() < 0.8 else rng.choice(([], [value[at]] * 2))
        return value[:at] + changed + value[at + 1 :]
    if isinstance(value, str) and rng.random() < 0.4:
        return damaged(rng, [value.encode("utf-8", "surrogatepass")])[:100_000].decode("utf-8", "replace")
    return rng.choice(VALUES)


def _change_array(rng, arrays):
    if not arrays:
        return
    name = rng.choice(list(arrays))
    array = np.array(arrays[name])
    kind = rng.choice(
        ("value", "value", "value", "dtype", "shape", "cut", "grow", "away", "other", "swap", "axis")
    )
    if kind == "value" and array.size:
        _change_entry(rng, array)
    elif kind == "dtype":
        with np.errstate(all="ignore"):
            array = array.astype(rng.choice(DTYPES))
    elif kind == "shape":
        array = array.reshape(rng.choice(((-1,), (1, -1), (-1, 1), array.shape[::-1])))
    elif kind in ("cut", "grow") and array.ndim:
        array = array[:-1] if kind == "cut" else np.concatenate([array, array[-1:]])
    elif kind == "axis":
        array = array[:0]
    elif kind == "other":
        array = np.array(arrays[rng.choice(list(arrays))])
    elif kind == "swap" and array.size:
        array = np.array(rng.sample(array.ravel().tolist(), array.size), array.dtype).reshape(array.shape)
    arrays[name] = np.ascontiguousarray(array)
    if kind == "away":
        del arrays[name]


def _change_entry(rng, array):
    """One entry becomes an odd one of its type, in place."""
    flat = array.reshape(-1)
    wrong = (-1, 0, 1, 2, 255, 2**31 - 1, 2**32 - 1, 2**63, 1e308, -1e308, float("nan"), float("inf"), 1e20)
    with np.errstate(all="ignore"):
        flat[rng.randrange(flat.size)] = np.array(rng.choice(wrong)).astype(array.dtype)
