"""The libsvm (svmlight) text format: one example a line, `label index:value index:value ...`.

Blanks are spaces and tabs, indices start at 1 and increase, zeros are left out.  `#` starts a comment,
`qid:n` after the label is skipped, and so are empty lines.
"""

import codecs
import math
import re
from typing import NamedTuple

import numpy as np
from scipy import sparse

from fenchel._cache import helper, njit
from fenchel.errors import DataError
from fenchel.io._numbers import MANY, scan_digits, scan_number
from fenchel.io._text import open_text
from fenchel.io.files import open_output

BLOCK = 1 << 20  # bytes of text parsed at a time (more is no faster); a longer line makes a longer block
_MAX_FEATURES = 2**31 - 1  # column indices are int32
_TOKEN = re.compile(rb"[^ \t\r\n#]*")
_SPACE, _TAB, _RETURN, _NEWLINE, _HASH, _COLON = (np.uint8(ord(c)) for c in " \t\r\n#:")


def read_libsvm(path, n_features=None, zero_based=False):
    """Read a libsvm file.

    Parameters
    ----------
    path : str or Path
        A file, gunzipped if it is gzip, or "-" for standard input.
    n_features : int, optional
        Number of columns; a larger index is then an error.  By default the largest index says it.
    zero_based : bool
        Whether indices start at 0 instead of 1.

    Returns
    -------
    X : csr_matrix of shape (n, n_features), float64, columns of each row increasing, no stored zeros
    y : array of shape (n,), float64

    Raises
    ------
    DataError
        At the first malformed line, which it names.
    """
    columns = [bytearray() for _ in Rows._fields]  # they grow in place: the result is never held twice
    width = 0
    for rows, block_width in iterate_libsvm(path, n_features, zero_based):
        for column, part in zip(columns, rows, strict=True):
            column.extend(part)
        width = max(width, block_width)
    return _assemble(columns, width if n_features is None else n_features)


def iterate_libsvm(path, n_features=None, zero_based=False):
    """Yield (Rows, number of columns) for a megabyte of a libsvm file at a time; as `read_libsvm`."""
    base, line, empty = 0 if zero_based else 1, 1, True
    limit = _MAX_FEATURES if n_features is None else min(n_features, _MAX_FEATURES)
    with open_text(path) as (stream, source):
        for text in _blocks(stream):
            rows, width, at = _parse(text, base, limit)
            if at < len(text):
                raise DataError(source, line + text.count(b"\n", 0, at), _explain(text, at, base, limit))
            yield rows, width
            line, empty = line + text.count(b"\n"), empty and not rows.labels.size
    if empty:
        raise DataError(source, None, "no examples found")


def iterate_rows(path, n_features=None, zero_based=False):
    """Yield (X, y) for a megabyte of a libsvm file at a time; columns as many as it has, or n_features."""
    for rows, width in iterate_libsvm(path, n_features, zero_based):
        if rows.labels.size:
            yield _matrix(rows, width if n_features is None else n_features), rows.labels


class Rows(NamedTuple):
    """Parsed examples: labels (n,), sizes (n,) of the rows, indices and values (nnz,) of all rows in turn."""

    labels: np.ndarray
    sizes: np.ndarray
    indices: np.ndarray
    values: np.ndarray


_DTYPES = Rows(np.float64, np.int32, np.int32, np.float64)


def _assemble(columns, width):
    """Make (X, y) of the bytes of each column of Rows, without copying them."""
    rows = Rows(*(np.frombuffer(*pair) for pair in zip(columns, _DTYPES, strict=True)))
    return _matrix(rows, width), rows.labels


def _matrix(rows, width):
    indptr = np.zeros(rows.labels.size + 1, dtype=np.int64)
    np.cumsum(rows.sizes, out=indptr[1:])
    X = sparse.csr_matrix((rows.values, rows.indices, indptr), shape=(rows.labels.size, width), copy=False)
    X.has_canonical_format = True  # the parser refused anything else
    return X


def _blocks(stream):
    """Yield the stream as bytes of about BLOCK each that end in a newline."""
    pieces, first = [], True
    while piece := stream.read(BLOCK):
        if first:
            piece, first = piece.removeprefix(codecs.BOM_UTF8), False
        cut = piece.rfind(b"\n") + 1
        pieces.append(piece[:cut] if cut else piece)
        if cut:
            yield b"".join(pieces)
            pieces = [piece[cut:]]
    if rest := b"".join(pieces):
        yield rest + b"\n"


def _parse(text, base, limit):
    """Parse whole lines; return (Rows, number of columns, offset of the first wrong token or len(text))."""
    lines = text.count(b"\n")
    features = min(text.count(b":"), len(text) // 4)  # at most: the shortest, " 1:1", has four bytes
    rows = Rows(*(np.empty(n, t) for n, t in zip((lines, lines, features, features), _DTYPES, strict=True)))
    label_at, value_at = np.empty(lines, np.int64), np.empty(features, np.int64)
    n, nnz, at = _parse_lines(np.frombuffer(text, np.uint8), base, limit, rows, label_at, value_at)
    rows = Rows(rows.labels[:n], rows.sizes[:n], rows.indices[:nnz], rows.values[:nnz])
    at = min(at, _convert_rest(text, rows.labels, label_at), _convert_rest(text, rows.values, value_at))
    width = int(rows.indices.max(initial=-1)) + 1  # zeros included: one says that its column exists
    if at == len(text):
        nnz = _drop_zeros(rows)
    return rows._replace(indices=rows.indices[:nnz], values=rows.values[:nnz]), width, at


def _convert_rest(text, numbers, token_at):
    """Replace each nan by Python's float of its token; return where the first infinite is, or len(text)."""
    rest = np.flatnonzero(np.isnan(numbers))
    starts = token_at[rest]
    tokens = (_TOKEN.match(text, start)[0] for start in starts.tolist())
    numbers[rest] = [float(token[token.find(b":") + 1 :]) for token in tokens]
    overflows = starts[np.isinf(numbers[rest])]
    return int(overflows.min(initial=len(text)))


@njit(cache=True, nogil=True)
def _parse_lines(text, base, limit, rows, label_at, value_at):
    """Parse lines into `rows` and the offsets of their tokens into `label_at` and `value_at`, all written.

    Returns (examples, values, offset of the first wrong token or the size of the text).  What is wrong with
    the token is found out later, in Python.
    """
    n = nnz = at = 0
    while at < text.size:
        at = _skip_blanks(text, at)
        if not _ends_line(text[at]):
            rows.labels[n], end = scan_number(text, at)
            label_at[n] = at
            if not _ends_token(text[end]):
                break
            first = nnz
            nnz, at = _parse_features(text, _skip_qid(text, end), base, limit, rows, nnz, value_at)
            if not _ends_line(text[at]):
                break
            rows.sizes[n] = nnz - first
            n += 1
        while text[at] != _NEWLINE:
            at += 1
        at += 1
    return n, nnz, at


@njit(cache=True, nogil=True)
def _parse_features(text, at, base, limit, rows, nnz, value_at):
    """Parse `index:value` tokens; return (nnz, offset of the end of the line or of a wrong token)."""
    previous = base - 1
    while True:
        at = _skip_blanks(text, at)
        if _ends_line(text[at]):
            return nnz, at
        index, colon = scan_digits(text, at, 0)
        if colon == at or text[colon] != _COLON or index <= previous or index - base >= limit:
            return nnz, at
        value, end = scan_number(text, colon + 1)
        if end == colon + 1 or not _ends_token(text[end]):
            return nnz, at
        rows.indices[nnz] = index - base
        rows.values[nnz] = value
        value_at[nnz] = at
        nnz += 1
        previous = index
        at = end


@njit(cache=True, nogil=True)
def _drop_zeros(rows):
    """Move the non-zero values of each row together, in place; return how many there are."""
    kept = at = 0
    for i in range(rows.sizes.size):
        first = kept
        for _ in range(rows.sizes[i]):
            if rows.values[at] != 0:
                rows.indices[kept] = rows.indices[at]
                rows.values[kept] = rows.values[at]
                kept += 1
            at += 1
        rows.sizes[i] = kept - first
    return kept


@helper(cache=True, nogil=True)
def _skip_blanks(text, at):
    while text[at] in (_SPACE, _TAB, _RETURN):
        at += 1
    return at


@helper(cache=True, nogil=True)
def _skip_qid(text, at):
    """Skip blanks and `qid:...` if it comes next."""
    at = _skip_blanks(text, at)
    for i, byte in enumerate(b"qid:"):
        if text[at + i] != byte:  # a newline differs, so this never runs over the end
            return at
    while not _ends_token(text[at]):
        at += 1
    return at


@helper(cache=True, nogil=True)
def _ends_line(byte):
    return byte in (_NEWLINE, _HASH)


@helper(cache=True, nogil=True)
def _ends_token(byte):
    return byte in (_SPACE, _NEWLINE, _HASH, _TAB, _RETURN)


def _explain(text, at, base, limit):
    """Say in a sentence what is wrong with the token at text[at]."""
    before = text[text.rfind(b"\n", 0, at) + 1 : at].rsplit(None, 1)
    token = _TOKEN.match(text, at)[0].decode("utf-8", "backslashreplace")
    if not before:
        return _explain_label(token)
    index, _, value = token.partition(":")
    if not value:
        return f"feature {_quote(token)} has no value, expected index:value"
    if not (index.isascii() and index.isdigit()):
        return f"feature {_quote(token)} does not start with a whole number, expected index:value"
    number, previous = _integer(index), before[-1].partition(b":")[0]
    if number < base:
        return f"index {number}, but indices start at {base} (use zero_based=True)"
    if b":" in before[-1] and previous.isdigit() and number <= _integer(previous):
        return f"index {number} after index {_integer(previous)}, expected increasing indices"
    if number - base >= limit:
        found = "more than 18 digits" if number == MANY else number
        reason = "indices are 32-bit" if limit == _MAX_FEATURES else f"n_features={limit}"
        return f"index {found}, expected at most {limit - 1 + base} ({reason})"
    return _explain_value(value)


def _explain_label(token):
    if "," in token:
        return (
            f"label {_quote(token)} joins several labels, expected one number (multilabel data are not read)"
        )
    if _is_infinite(token):
        return f"label {_quote(token)} is not finite"
    return f"{_quote(token)} is not a number, expected a label"


def _explain_value(token):
    if _is_infinite(token):
        return f"value {_quote(token)} is not finite"
    return f"value {_quote(token)} is not a number"


def _is_infinite(token):
    try:
        return not math.isfinite(float(token))
    except ValueError:
        return False


def _integer(digits):
    return int(digits) if len(digits) <= 18 else MANY


def _quote(token):
    return repr(token if len(token) <= 40 else token[:40] + "...")


def write_libsvm(path, X, y, zero_based=False):
    """Write a libsvm file that `read_libsvm(path, n_features=X.shape[1])` reads back to the same bits.

    Parameters
    ----------
    path : str or Path
        A file, gzipped if its name ends in ".gz" and replaced only once the new one is complete, or "-" for
        standard output.
    X : sparse matrix or array of shape (n, n_features), finite
    y : array of shape (n,), finite
    zero_based : bool
        Whether to count indices from 0 instead of 1.
    """
    X = X.tocsr() if sparse.issparse(X) else np.asarray(X)
    y = np.asarray(y, dtype=np.float64)
    if X.ndim != 2 or y.shape != X.shape[:1]:
        raise ValueError(f"X of shape {X.shape} and y of shape {y.shape}, expected (n, n_features) and (n,)")
    for name, numbers in (("X", X.data if sparse.issparse(X) else X), ("y", y)):
        if not np.isfinite(numbers).all():
            raise ValueError(f"{name} has values that are nan or infinite, expected finite ones")
    step = 1024 if sparse.issparse(X) else max(1, 2**20 // max(1, X.shape[1]))
    with open_output(path) as stream:
        for i in range(0, X.shape[0], step):
            stream.write(_format_rows(X[i : i + step], y[i : i + step], 0 if zero_based else 1))


def _format_rows(X, y, base):
    """The lines of a few rows, as bytes."""
    X = sparse.csr_matrix(
        X, dtype=np.float64, copy=True
    )  # a copy: the caller's may be unsorted, and stays so
    X.sum_duplicates()
    X.eliminate_zeros()
    features = [
        f" {j}:{_shortest(v)}" for j, v in zip((X.indices + base).tolist(), X.data.tolist(), strict=True)
    ]
    ends = X.indptr.tolist()
    return "".join(
        f"{_shortest(label)}{''.join(features[ends[i] : ends[i + 1]])}\n"
        for i, label in enumerate(y.tolist())
    ).encode()


def _shortest(number):
    return repr(number).removesuffix(".0")
