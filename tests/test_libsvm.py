"""The libsvm reader and writer, and the number parser under them."""

import gzip
import io
import os
import pickle
import random
import struct
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_svmlight_file

from fenchel.errors import DataError
from fenchel.io import libsvm
from fenchel.io._numbers import scan_number
from fenchel.io.libsvm import read_libsvm, write_libsvm


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write bytes to train.svm in a folder of its own and go there, so that errors name `train.svm`."""
    monkeypatch.chdir(tmp_path)

    def write(text, name="train.svm"):
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return name

    return write


class Stdio:
    """Stands for sys.stdin or sys.stdout."""

    def __init__(self, content=b""):
        self.buffer = io.BytesIO(content)


def random_data(n=200, d=50, seed=0):
    X = sparse.random(n, d, density=0.1, format="csr", random_state=seed)
    y = np.random.default_rng(seed).normal(size=n)
    return sparse.csr_matrix(X), y


def assert_same_bits(X, y, X2, y2):
    assert y2.tobytes() == y.tobytes()
    assert X2.shape == X.shape
    assert np.array_equal(X2.indptr, X.indptr)
    assert np.array_equal(X2.indices, X.indices)
    assert X2.data.tobytes() == X.data.tobytes()


# Round trips


@pytest.mark.parametrize("name", ["a.svm", "a.svm.gz"])
@pytest.mark.parametrize("zero_based", [False, True])
def test_round_trip(tmp_path, name, zero_based):
    X, y = random_data()
    X = sparse.csr_matrix(sparse.diags((np.arange(200) % 7 != 3).astype(float)) @ X)  # some rows become empty
    X.eliminate_zeros()
    X.sort_indices()
    assert 0 in np.diff(X.indptr)
    write_libsvm(tmp_path / name, X, y, zero_based=zero_based)
    assert_same_bits(X, y, *read_libsvm(tmp_path / name, n_features=50, zero_based=zero_based))
    assert os.listdir(tmp_path) == [name]


def test_round_trip_of_awkward_values(tmp_path):
    values = [
        1e-300,
        1e300,
        -1e300,
        5e-324,
        1.7976931348623157e308,
        0.1,
        3,
        -7,
        2**53 + 2,
        1e22,
        1e23,
        1 / 3,
        -2e-7,
    ]
    X = sparse.csr_matrix(np.array([values]))
    y = np.array([-0.0])
    write_libsvm(tmp_path / "a", X, y)
    assert_same_bits(X, y, *read_libsvm(tmp_path / "a"))


def test_round_trip_of_awkward_labels(tmp_path):
    y = np.array([0.0, -0.0, 1, -1, 0.1, 1e300, 1e-300, 5e-324])
    X = sparse.csr_matrix((y.size, 4))
    write_libsvm(tmp_path / "a", X, y)
    assert_same_bits(X, y, *read_libsvm(tmp_path / "a", n_features=4))


def test_round_trip_across_blocks(tmp_path, monkeypatch):
    X, y = random_data()
    write_libsvm(tmp_path / "a", X, y)
    for block in (1, 7, 64, 1000):
        monkeypatch.setattr(libsvm, "BLOCK", block)
        assert_same_bits(X, y, *read_libsvm(tmp_path / "a", n_features=50))


def test_result_is_canonical_and_writable(write):
    X, y = read_libsvm(write("1 1:2 3:4\n-1 2:5\n"))
    assert isinstance(X, sparse.csr_matrix)
    assert X.indices.dtype == X.indptr.dtype == np.int32
    assert X.data.dtype == y.dtype == np.float64
    assert X.has_canonical_format
    X.data[0] = y[0] = 9
    assert X.toarray().tolist() == [[9, 0, 4], [0, 5, 0]]


# The reader


AWKWARD = (
    b"# a comment first\n"
    b"\n"
    b"+1 1:0.5   3:-2e-3\t10:1E5  \r\n"
    b"  -1.5e0\t2:.25 4:5. # and why\n"
    b"   \t \r\n"
    b"2 qid:17 1:1 2:+3\n"
    b"0 # no features\n"
    b"-0\n"
    b"3 1:123456789012345678901234567890 2:0.1000000000000000055511151231257827 4:1e-320\n"
    b"7 00010:1"
)


def test_awkward_formatting_as_scikit_learn(write):
    name = write(AWKWARD)
    X, y = read_libsvm(name)
    reference, labels = load_svmlight_file(name, zero_based=False)
    assert y.tobytes() == labels.tobytes()
    assert X.shape == reference.shape == (7, 10)
    assert X.toarray().tobytes() == reference.toarray().tobytes()


def test_awkward_formatting_across_blocks(write, monkeypatch):
    X, y = read_libsvm(write(AWKWARD))
    for block in range(1, 60):
        monkeypatch.setattr(libsvm, "BLOCK", block)
        assert_same_bits(X, y, *read_libsvm("train.svm"))


def test_comment_may_touch_a_token(write):
    X, y = read_libsvm(write("1#x\n2 1:3#y:z 7\n3 qid:4#\n"))
    assert y.tolist() == [1, 2, 3]
    assert X.toarray().tolist() == [[0], [3], [0]]


def test_explicit_zeros_are_dropped_but_count_as_columns(write):
    X, _ = read_libsvm(write("1 1:0 2:3 3:-0.0\n1 4:4 5:1e-999\n"))
    assert X.nnz == 2
    assert X.indptr.tolist() == [0, 1, 2]
    assert X.indices.tolist() == [1, 3]
    assert X.shape == (2, 5)


def test_largest_index(write):
    X, _ = read_libsvm(write("1 2147483647:1\n"))
    assert X.shape == (1, 2**31 - 1)
    assert X.indices.tolist() == [2**31 - 2]


def test_zero_based(write):
    X, _ = read_libsvm(write("1 0:5 2:6\n"), zero_based=True)
    assert X.toarray().tolist() == [[5, 0, 6]]


def test_no_features_at_all(write):
    X, y = read_libsvm(write("1\n-1\n"))
    assert X.shape == (2, 0)
    assert y.tolist() == [1, -1]


def test_stdin(monkeypatch):
    monkeypatch.setattr(sys, "stdin", Stdio(b"1 2:3\n"))
    X, y = read_libsvm("-")
    assert X.toarray().tolist() == [[0, 3]]
    assert y.tolist() == [1]


def test_gzip_of_several_members(write):
    name = write(gzip.compress(b"1 1:2\n-1") + gzip.compress(b" 1:3\n"), "train.svm.gz")
    X, y = read_libsvm(name)
    assert X.toarray().tolist() == [[2], [3]]
    assert y.tolist() == [1, -1]


# Errors


ERRORS = [
    ("abc 1:2", "'abc' is not a number, expected a label"),
    ("1:2 2:3", "'1:2' is not a number, expected a label"),
    ("1x 1:2", "'1x' is not a number, expected a label"),
    ("1e 1:2", "'1e' is not a number, expected a label"),
    ("1_0 1:2", "'1_0' is not a number, expected a label"),
    ("- 1:2", "'-' is not a number, expected a label"),
    ("nan 1:2", "label 'nan' is not finite"),
    ("-inf 1:2", "label '-inf' is not finite"),
    ("1e999 1:2", "label '1e999' is not finite"),
    ("1,3 1:2", "label '1,3' joins several labels, expected one number (multilabel data are not read)"),
    ("1 3", "feature '3' has no value, expected index:value"),
    ("1 3: 4:5", "feature '3:' has no value, expected index:value"),
    ("1 x:2", "feature 'x:2' does not start with a whole number, expected index:value"),
    ("1 -1:2", "feature '-1:2' does not start with a whole number, expected index:value"),
    ("1 :2", "feature ':2' does not start with a whole number, expected index:value"),
    ("1 1:2 qid:3", "feature 'qid:3' does not start with a whole number, expected index:value"),
    ("1 0:2", "index 0, but indices start at 1 (use zero_based=True)"),
    ("1 7:1 4:2", "index 4 after index 7, expected increasing indices"),
    ("9 qid:8 7:1 7:2", "index 7 after index 7, expected increasing indices"),
    ("1 2147483648:1", "index 2147483648, expected at most 2147483647 (indices are 32-bit)"),
    (
        "1 99999999999999999999999:1",
        "index more than 18 digits, expected at most 2147483647 (indices are 32-bit)",
    ),
    ("1 5:nan", "value 'nan' is not finite"),
    ("1 5:+Infinity", "value '+Infinity' is not finite"),
    ("1 5:-1e400", "value '-1e400' is not finite"),
    ("1 5:1:2", "value '1:2' is not a number"),
    ("1 5:0x10", "value '0x10' is not a number"),
    ("1 5:1e+", "value '1e+' is not a number"),
    ("1 5:.", "value '.' is not a number"),
    (b"1 5:\xff", r"value '\\xff' is not a number"),
    (b"\x00\x1b[1m 5:1", r"'\x00\x1b[1m' is not a number, expected a label"),
    ("z" * 10**5, f"'{'z' * 40}...' is not a number, expected a label"),
]


@pytest.mark.parametrize("line, message", ERRORS)
@pytest.mark.parametrize("block", [None, 16])
def test_error_names_file_line_and_trouble(write, monkeypatch, line, message, block):
    if block:
        monkeypatch.setattr(libsvm, "BLOCK", block)
    line = line if isinstance(line, bytes) else line.encode()
    for ending in (b"", b"\n", b"\r\n", b" # why\n1 1:1\n1 bad\n"):
        name = write(b"# first\n1 1:1 2:1\r\n\n-1 9:1\n" + line + ending)
        with pytest.raises(DataError) as caught:
            read_libsvm(name)
        assert str(caught.value) == f"train.svm:5: {message}"
        assert (caught.value.source, caught.value.line, caught.value.message) == ("train.svm", 5, message)


def test_error_line_far_down(write):
    good = "1 1:0.25 2:0.5\n" * 200_000
    assert len(good) > 2 * libsvm.BLOCK
    with pytest.raises(
        DataError, match=r"^train.svm:200001: index 1 after index 2, expected increasing indices$"
    ):
        read_libsvm(write(good + "1 2:1 1:1\n"))


@pytest.mark.parametrize("text", ["1 1:1e999\n1e999\nx\n", "1e999\n1 1:1e999\nx\n", "x\n1 1:1e999\n1e999"])
def test_first_of_several_errors_is_named(write, text):
    with pytest.raises(DataError, match=r"^train.svm:1: "):
        read_libsvm(write(text))


def test_index_beyond_n_features(write):
    name = write("1 3:1\n1 4:1\n")
    assert read_libsvm(name, n_features=6)[0].shape == (2, 6)
    with pytest.raises(DataError, match=r"^train.svm:2: index 4, expected at most 3 \(n_features=3\)$"):
        read_libsvm(name, n_features=3)
    with pytest.raises(DataError, match=r"^train.svm:2: index 4, expected at most 3 \(n_features=4\)$"):
        read_libsvm(name, n_features=4, zero_based=True)


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing\n", "  "])
def test_no_examples(write, text):
    with pytest.raises(DataError, match=r"^train.svm: no examples found$"):
        read_libsvm(write(text))


def test_damaged_gzip(write):
    whole = gzip.compress(b"1 1:2\n" * 1000)
    for damaged in (whole[:-12], whole[:30], whole[:20] + b"\xff" * 20 + whole[40:]):
        with pytest.raises(DataError, match=r"^train.svm.gz: not a whole gzip file \(.+\)$"):
            read_libsvm(write(damaged, "train.svm.gz"))


def test_missing_file(tmp_path):
    for name in ("none.svm", "none.svm.gz"):
        with pytest.raises(FileNotFoundError):
            read_libsvm(tmp_path / name)


def test_stdin_error_and_pickle(monkeypatch):
    monkeypatch.setattr(sys, "stdin", Stdio(b"x\n"))
    with pytest.raises(DataError) as caught:
        read_libsvm("-")
    assert str(pickle.loads(pickle.dumps(caught.value))) == "<stdin>:1: 'x' is not a number, expected a label"


# The writer


def test_text_written(tmp_path):
    X = np.array([[0, 1.0, -0.0, 0.1], [0, 0, 0, 0], [1e300, -3, 0, 1e16]])
    write_libsvm(tmp_path / "a", X, [1, -1, 0.5])
    assert (tmp_path / "a").read_text() == "1 2:1 4:0.1\n-1\n0.5 1:1e+300 2:-3 4:1e+16\n"


def test_stdout(monkeypatch):
    monkeypatch.setattr(sys, "stdout", Stdio())
    write_libsvm("-", np.eye(2), [1, 2], zero_based=True)
    assert sys.stdout.buffer.getvalue() == b"1 0:1\n2 1:1\n"


def test_dense_and_other_sparse_forms_agree(tmp_path):
    X, y = random_data(n=3000, d=7)
    for name, form in (
        ("csr", X),
        ("dense", X.toarray()),
        ("csc", X.tocsc()),
        ("array", sparse.coo_array(X)),
    ):
        write_libsvm(tmp_path / name, form, y)
        assert (tmp_path / name).read_bytes() == (tmp_path / "csr").read_bytes()


def test_unsorted_input_is_sorted_and_left_alone(tmp_path):
    X = sparse.csr_matrix((np.array([3.0, 1, 2, 0]), np.array([2, 0, 2, 1]), np.array([0, 4])), shape=(1, 3))
    write_libsvm(tmp_path / "a", X, [1])
    assert (tmp_path / "a").read_text() == "1 1:1 3:5\n"
    assert X.indices.tolist() == [2, 0, 2, 1]


def test_same_data_give_the_same_gzip_bytes(tmp_path):
    X, y = random_data()
    for name in ("a.gz", "b.gz"):
        write_libsvm(tmp_path / name, X, y)
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()


@pytest.mark.parametrize(
    "X, y, message",
    [
        (np.array([[np.nan]]), [1], "X has values that are nan or infinite"),
        (sparse.csr_matrix([[np.inf]]), [1], "X has values that are nan or infinite"),
        (np.eye(1), [np.inf], "y has values that are nan or infinite"),
        (np.eye(2), [1], r"X of shape \(2, 2\) and y of shape \(1,\)"),
        (np.ones(2), [1, 1], r"X of shape \(2,\) and y of shape \(2,\)"),
    ],
)
def test_writer_refuses(tmp_path, X, y, message):
    with pytest.raises(ValueError, match=message):
        write_libsvm(tmp_path / "a", X, y)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["a.svm", "a.svm.gz"])
@pytest.mark.parametrize("trouble", [OSError, KeyboardInterrupt])
def test_failure_midway_leaves_the_old_file(tmp_path, monkeypatch, name, trouble):
    X, y = random_data(n=3000)
    write_libsvm(tmp_path / name, X[:2], y[:2])
    old = (tmp_path / name).read_bytes()
    format_rows, calls = libsvm._format_rows, []

    def fail_late(*arguments):
        calls.append(arguments)
        if len(calls) == 3:
            raise trouble
        return format_rows(*arguments)

    monkeypatch.setattr(libsvm, "_format_rows", fail_late)
    with pytest.raises(trouble):
        write_libsvm(tmp_path / name, X, y)
    assert len(calls) == 3
    assert (tmp_path / name).read_bytes() == old
    assert os.listdir(tmp_path) == [name]


def test_link_stays_a_link_and_a_device_a_device(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "target")
    write_libsvm(tmp_path / "link", np.eye(1), [1])
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "1 1:1\n"
    (tmp_path / "null").symlink_to(os.devnull)
    write_libsvm(tmp_path / "null", np.eye(1), [1])
    assert not os.path.isfile(os.devnull)


# Numbers


def tokens(n):
    """Decimal texts of many shapes, ties between neighbouring floats among them."""
    rng = random.Random(0)
    for _ in range(n):
        tie = 2**53 * 10 + rng.randrange(10**6) * 20 + 10  # halfway between integers above 2^53, times ten
        yield repr(rng.random())
        yield repr(rng.gauss(0, 1) * 10.0 ** rng.randint(-40, 40))
        yield f"{rng.uniform(-1000, 1000):.{rng.randint(0, 20)}f}"
        yield f"{rng.randrange(10 ** rng.randint(1, 25))}e{rng.randint(-330, 280)}"
        yield f"{rng.choice('+-')}{rng.randrange(10**18)}E{rng.choice(['', '+', '-'])}{rng.randint(0, 25)}"
        yield f"{tie}e-1"
        yield f"{tie + rng.choice([-1, 1])}e-1"
        yield f".{rng.randrange(10**17)}"
        yield f"{rng.randrange(1000)}."


@pytest.mark.parametrize("scan", [scan_number, scan_number.py_func], ids=["kernel", "python"])
def test_number_is_python_float(scan):
    certain = 0
    for token in tokens(20_000 if scan is scan_number else 200):
        value, end = scan(np.frombuffer(token.encode() + b"\n", np.uint8), 0)
        assert end == len(token)
        if not np.isnan(value):
            certain += 1
            assert struct.pack("d", value) == struct.pack("d", float(token)), token
    assert certain > 0


def test_short_numbers_need_no_second_look():
    for token in (
        "0",
        "-0",
        "+1",
        "0.1",
        "1e22",
        "123456789.25",
        "9007199254740993",
        "0.30000000000000004",
        "0e999",
    ):
        value, _ = scan_number(np.frombuffer(token.encode() + b"\n", np.uint8), 0)
        assert struct.pack("d", value) == struct.pack("d", float(token))


@pytest.mark.parametrize("token", ["", "-", "+", ".", "e5", "nan", "inf", "-.", "x", "+-1"])
def test_what_is_no_number(token):
    assert scan_number(np.frombuffer(token.encode() + b"\n", np.uint8), 0)[1] == 0


def test_numbers_read_from_a_file(write):
    texts = [token for token in tokens(3000) if abs(float(token)) > 0]
    X, y = read_libsvm(write("".join(f"{token} 1:{token}\n" for token in texts)))
    expected = np.array([float(token) for token in texts])
    assert y.tobytes() == expected.tobytes()
    assert X.data.tobytes() == expected.tobytes()


def test_kernels_stay_in_bounds(tmp_path):
    """The same awkward lines, parsed with Numba's bounds checks on, in a process of its own."""
    program = "\n".join(
        [
            "import ast, sys",
            "from fenchel.io.libsvm import _parse",
            "for line in ast.literal_eval(sys.stdin.read()):",
            "    _parse(line, 1, 2**31 - 1)",
        ]
    )
    lines = [line if isinstance(line, bytes) else line.encode() for line, _ in ERRORS] + AWKWARD.split(b"\n")
    endings = [b"1 q", b"1 qid", b"1 qid:", b"1 1", b"1 1:", b"1 1:-", b"1 1:1e", b"1 1:1e-", b"+", b"1."]
    environment = os.environ | {
        "NUMBA_BOUNDSCHECK": "1",
        "NUMBA_CACHE_DIR": str(tmp_path),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    subprocess.run(
        [sys.executable, "-c", program],
        input=repr([line + b"\n" for line in lines + endings]),
        env=environment,
        text=True,
        check=True,
    )
