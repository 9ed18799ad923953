"""The data sets of the binary benchmarks: `load(name)` gives (X, y).

X is a CSR matrix (float64 values, int32 indices), one row per example; y holds -1. and +1.
The raw files are read from the folder named by the environment variable FENCHEL_DATA; the
vectorised matrix is kept as .npz under ~/.cache/fenchel-benchmarks/, because vectorising text takes long.
"""

import gzip
import os
import sys
import tarfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp

VARIABLE = "FENCHEL_DATA"
CACHE = Path.home() / ".cache" / "fenchel-benchmarks"


def load(name):
    """Return (X, y) of the set `name`, from the cache if it is there, else from the raw file."""
    if name not in SETS:
        raise ValueError(f"unknown set {name!r}; the sets are {', '.join(SETS)}")
    matrix, labels = CACHE / f"{name}-X.npz", CACHE / f"{name}-y.npz"
    if matrix.exists() and labels.exists():
        return _canonical(sp.load_npz(matrix)), np.load(labels)["y"]
    member, read = SETS[name]
    X, y = read(_raw(name, member))
    X, y = _canonical(X), np.asarray(y, dtype=np.float64)
    CACHE.mkdir(parents=True, exist_ok=True)
    _store(matrix, lambda file: sp.save_npz(file, X))
    _store(labels, lambda file: np.savez(file, y=y))
    return X, y


def _raw(name, member):
    """The path of the raw file of a set; one sentence says what is missing."""
    folder = os.environ.get(VARIABLE)
    path = Path(folder or ".") / name / member
    if not folder or not path.is_file():
        raise FileNotFoundError(
            f"the set {name!r} needs the file {name}/{member} in the folder that the "
            f"environment variable {VARIABLE} names ({'not set' if not folder else 'not found there'})."
        )
    return path


def _canonical(X):
    """CSR, float64, int32, sorted indices without duplicates."""
    X = sp.csr_matrix(X, dtype=np.float64)
    X.sum_duplicates()
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X


def _store(path, write):
    """Write a file under a temporary name, then rename: two processes never see half a file."""
    partial = path.with_name(f"{path.stem}.{os.getpid()}.npz")
    write(partial)
    partial.replace(path)


def _read_a9a(path):
    """Parse libsvm text: 123 features, labels already -1 and +1."""
    from sklearn.datasets import load_svmlight_file

    with gzip.open(path, "rb") as file:
        return load_svmlight_file(file, n_features=123)


def _stream(path, encoding):
    """Yield (parts of the member's name, text) for each file of a tar.gz, never unpacked on disk."""
    with tarfile.open(path, "r|gz") as archive:
        for member in archive:
            if member.isfile():
                yield Path(member.name).parts, archive.extractfile(member).read().decode(encoding)


def _vectorise(path, encoding, label):
    """TF-IDF with scikit-learn's defaults; `label(folder)` is -1, +1, or None to leave a text out.

    The folder is the one the text lies in. Texts are put in the order of their names, so that
    the matrix does not depend on the order of the archive.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts = sorted((parts, text) for parts, text in _stream(path, encoding) if label(parts[-2]) is not None)
    X = TfidfVectorizer().fit_transform(text for _, text in texts)
    return X, [label(parts[-2]) for parts, _ in texts]


def _read_imdb(path):
    """25,000 film reviews, positive (+1) against negative (-1)."""
    return _vectorise(path, "utf-8", {"pos": 1.0, "neg": -1.0}.get)


def _read_20newsgroups(path):
    """11,314 posts, alt.atheism (+1) against the other 19 groups (-1)."""
    return _vectorise(path, "latin-1", lambda group: 1.0 if group == "alt.atheism" else -1.0)


SETS = {
    "a9a": ("a9a.gz", _read_a9a),
    "imdb": ("aclImdb-train.tar.gz", _read_imdb),
    "20newsgroups": ("20news-bydate-train.tar.gz", _read_20newsgroups),
}


if __name__ == "__main__":
    for each in sys.argv[1:] or SETS:
        X, y = load(each)
        print(f"{each}: {X.shape[0]} x {X.shape[1]}, {X.nnz} non-zeros, {int((y > 0).sum())} positive")
