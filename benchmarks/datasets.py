"""The data sets of the benchmarks: (X, y) of each, ready to train on.

X is a CSR matrix (float64 values, int32 indices), one row per example. `load(name)` gives the binary sets, y
holds -1. and +1; `newsgroups20()`, `mnist()` and `brown_contexts(n)` have classes, y holds 0, ..., K - 1.
`sentences(name)` gives corpora of labelled sentences, (train, test), as fenchel Tokens: columns of strings,
the label in the last; `letters()` gives words of handwritten letters, (train, test), each (X, y).
The raw files are read from the folder named by the environment variable FENCHEL_DATA; the
vectorised matrix is kept as .npz under ~/.cache/fenchel-benchmarks/, because vectorising text takes long.
"""

import gzip
import os
import re
import sys
import tarfile
from collections import Counter
from pathlib import Path

import numpy as np
import scipy.sparse as sp

VARIABLE = "FENCHEL_DATA"
CACHE = Path.home() / ".cache" / "fenchel-benchmarks"


def load(name):
    """Return (X, y) of the binary set `name`; y holds -1. and +1."""
    if name not in SETS:
        raise ValueError(f"unknown set {name!r}; the sets are {', '.join(SETS)}")
    member, read = SETS[name]
    return _cached(name, lambda: read(_raw(name, member)))


def newsgroups20():
    """11,314 posts in 20 groups, numbered in the order of names; X is that of `load("20newsgroups")`."""
    return _cached("newsgroups20", lambda: _read_groups(_raw(*NEWSGROUPS)))


def mnist():
    """60,000 digits, 28 x 28 pixels between 0 and 1, 10 classes. CSR: a fifth of the pixels is not black."""
    return _cached("mnist", lambda: _read_digits(*(_raw("mnist", member) for member in DIGITS)))


def mnist_test():
    """The 10,000 digits of MNIST's test set, like `mnist()`."""
    members = (member.replace("train", "t10k") for member in DIGITS)
    return _cached("mnist-t10k", lambda: _read_digits(*(_raw("mnist", member) for member in members)))


def webkb():
    """2,803 stemmed web pages of universities in 4 classes, TF-IDF."""
    return _cached("webkb", lambda: _read_pages(_raw("webkb", "webkb-train-stemmed.txt.gz")))


def brown_contexts(n=200_000):
    """The first n tokens of the Brown corpus: binary attributes of contexts; classes are tags."""
    return _cached(f"brown-{n}", lambda: _read_contexts(_raw("brown", "brown.tar.gz"), n))


def sentences(name):
    """(train, test) of the corpus `name`, as Tokens whose last column is the label."""
    if name not in CORPORA:
        raise ValueError(f"unknown corpus {name!r}; the corpora are {', '.join(CORPORA)}")
    return CORPORA[name]()


def letters():
    """(train, test), each (X, y): 6,251 and 626 handwritten words, a row of 128 pixels for each letter."""
    return tuple(_read_words(_raw("ocr", f"ocr_{half}.mat")) for half in ("train", "test"))


def write_columns(tokens, path):
    """Write Tokens as a column file: a token a line, a blank line behind each sentence."""
    with open(path, "w", encoding="utf-8") as file:
        for sentence in tokens.sentences():
            file.writelines(" ".join(token) + "\n" for token in sentence)
            file.write("\n")


def _cached(key, read):
    """(X, y) kept under `key`; if they are not, what `read()` gives, then kept."""
    matrix, labels = CACHE / f"{key}-X.npz", CACHE / f"{key}-y.npz"
    if matrix.exists() and labels.exists():
        return _canonical(sp.load_npz(matrix)), np.load(labels)["y"]
    X, y = read()
    X, y = _canonical(X), np.asarray(y)
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


def _read_pages(path):
    """Lines of a label, a tab and a text."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    with gzip.open(path, "rt", encoding="utf-8") as file:
        labels, texts = zip(*(line.rstrip("\n").split("\t") for line in file), strict=True)
    return TfidfVectorizer().fit_transform(texts), np.unique(labels, return_inverse=True)[1]


def _read_imdb(path):
    """25,000 film reviews, positive (+1) against negative (-1)."""
    return _vectorise(path, "utf-8", {"pos": 1.0, "neg": -1.0}.get)


def _read_20newsgroups(path):
    """11,314 posts, alt.atheism (+1) against the other 19 groups (-1)."""
    return _vectorise(path, "latin-1", lambda group: 1.0 if group == "alt.atheism" else -1.0)


def _read_groups(path):
    """The posts of `_read_20newsgroups`, each labelled by its group."""
    X, groups = _vectorise(path, "latin-1", str)
    return X, np.unique(groups, return_inverse=True)[1]


def _read_digits(images, labels):
    """Parse idx files: a big-endian head (16 bytes for images, 8 for labels), then bytes."""
    pixels = np.frombuffer(gzip.decompress(images.read_bytes()), np.uint8, offset=16)
    y = np.frombuffer(gzip.decompress(labels.read_bytes()), np.uint8, offset=8)
    return sp.csr_matrix(pixels.reshape(y.size, -1)) / 255.0, y.astype(np.int64)


def _read_words(path):
    """Parse a Matlab file: a row for each letter; y is 1 to 26, and 0 on the row behind each word."""
    from scipy.io import loadmat

    data = loadmat(path, squeeze_me=True)
    ends = np.flatnonzero(data["y"] == 0)
    spans = [slice(a, b) for a, b in zip([0, *(ends[:-1] + 1)], ends, strict=True)]
    y = np.array([*" abcdefghijklmnopqrstuvwxyz"])[data["y"]]
    return [sp.csr_matrix(data["X"][span], dtype=float) for span in spans], [list(y[span]) for span in spans]


def _read_contexts(path, n):
    """Attributes as Ratnaparkhi's (1998), tags as huang2010's section 5.1, of n tokens.

    A word seen fewer than RARE times in these n tokens is described by its letters; an attribute seen
    fewer than RARE times is dropped.
    """
    from sklearn.feature_extraction.text import CountVectorizer

    sentences = _first(_tagged(path), n)
    counts = Counter(word for words, _ in sentences for word in words)
    contexts = (each for words, tags in sentences for each in _contexts(words, tags, counts))
    X = CountVectorizer(analyzer=iter, min_df=RARE, dtype=np.float64).fit_transform(contexts)
    tags = [tag for _, tags in sentences for tag in tags]
    return X, np.unique(tags, return_inverse=True)[1]


def _tagged(path):
    """Yield (words, tags) of each sentence of the Brown corpus, its texts in the order of their names."""
    texts = {parts[-1]: text for parts, text in _stream(path, "ascii")}
    for name in sorted(name for name in texts if re.fullmatch(r"c[a-r]\d\d", name)):
        for line in texts[name].splitlines():
            pairs = [token.rsplit("/", 1) for token in line.split()]
            if pairs:
                yield [word for word, _ in pairs], [_plain(tag) for _, tag in pairs]


def _plain(tag):
    """A Brown tag without its modifiers of style: foreign word, title, headline, cited word."""
    return re.sub(r"(-(tl|hl|nc))+$", "", tag.removeprefix("fw-"))


def _first(sentences, n):
    """The sentences that hold the first n tokens, the last one cut."""
    chosen, left = [], n
    for words, tags in sentences:
        chosen.append((words[:left], tags[:left]))
        left -= len(words)
        if left <= 0:
            return chosen
    raise ValueError(f"the Brown corpus has {n - left:,} tokens, not {n:,}")


def _contexts(words, tags, counts):
    """Yield the list of attributes of each token of a sentence; the tags before it are the true ones."""
    words, tags = ["", "", *words, "", ""], ["", "", *tags]
    for i in range(2, len(words) - 2):
        word = words[i]
        around = [f"{k:+d}={words[i + k]}" for k in (-2, -1, 1, 2)]
        before = [f"tag={tags[i - 1]}", f"tags={tags[i - 2]} {tags[i - 1]}"]
        yield around + before + (_spelling(word) if counts[word] < RARE else [f"word={word}"])


def _spelling(word):
    """Attributes of a rare word: its first and last letters, up to four, and what it contains."""
    ends = [f"{side}={part}" for k in range(1, 5) for side, part in (("^", word[:k]), ("$", word[-k:]))]
    kinds = {"digit": r"\d", "upper": "[A-Z]", "hyphen": "-"}
    return list(dict.fromkeys(ends)) + [kind for kind, pattern in kinds.items() if re.search(pattern, word)]


def _chunks():
    """CoNLL-2000, English: word, part of speech, chunk. 8,936 and 2,012 sentences of newspaper."""
    return _column_files("conll2000", "train.txt.gz", "test.txt.gz")


def _names():
    """CoNLL-2002, Dutch: word, part of speech, named entity. 15,806 and (testb) 5,195 sentences."""
    return _column_files("conll2002", "ned.train.gz", "ned.testb.gz")


def _column_files(name, *members):
    from fenchel.io.columns import read_columns

    return tuple(read_columns(_raw(name, member)) for member in members)


def _parts_of_speech():
    """The Wall Street Journal's treebank sample: word, part of speech. 199 texts, the last fifth to test."""
    from fenchel.features.tokens import Tokens

    path = _raw("dependency_treebank", "dependency_treebank.tar.gz")
    texts = sorted((parts[-1], text) for parts, text in _stream(path, "utf-8") if parts[-1].endswith(".dp"))
    cut = round(0.8 * len(texts))
    halves = texts[:cut], texts[cut:]
    return tuple(Tokens.from_sentences(s for _, text in half for s in _trees(text)) for half in halves)


def _trees(text):
    """Yield each sentence of a treebank text as [(word, part of speech), ...]; heads are left out."""
    for block in re.split(r"\n\s*\n", text.strip()):
        yield [tuple(line.split("\t")[:2]) for line in block.splitlines()]


def _brown_sentences():
    """The Brown corpus: word, part of speech. 57,340 sentences, every tenth of them to test.

    A tag is what stands before its first modifier: style, negation, a second word of a contraction, and, but
    of pronouns, the possessive.
    """
    from fenchel.features.tokens import Tokens

    halves = [], []
    for i, (words, tags) in enumerate(_tagged(_raw("brown", "brown.tar.gz"))):
        short = [re.match(r"w?p+\$+|\W*[^-+*$]*", tag)[0] for tag in tags]
        halves[i % 10 == 9].append(list(zip(words, short, strict=True)))
    return tuple(map(Tokens.from_sentences, halves))


RARE = 5
NEWSGROUPS = ("20newsgroups", "20news-bydate-train.tar.gz")
DIGITS = ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz")
SETS = {
    "a9a": ("a9a.gz", _read_a9a),
    "imdb": ("aclImdb-train.tar.gz", _read_imdb),
    "20newsgroups": (NEWSGROUPS[1], _read_20newsgroups),
}
CLASSES = {"newsgroups20": newsgroups20, "mnist": mnist, "brown": brown_contexts}
CORPORA = {"conll2000": _chunks, "ner": _names, "pos": _parts_of_speech, "brown": _brown_sentences}


if __name__ == "__main__":
    for each in sys.argv[1:] or SETS:
        X, y = load(each)
        print(f"{each}: {X.shape[0]} x {X.shape[1]}, {X.nnz} non-zeros, {int((y > 0).sum())} positive")
    for each, read in CLASSES.items():
        X, y = read()
        print(f"{each}: {X.shape[0]} x {X.shape[1]}, {X.nnz} non-zeros, {y.max() + 1} classes")
    for each in CORPORA:
        print(f"{each}: {', '.join(map(str, sentences(each)))}")
