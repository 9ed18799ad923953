"""The data of the experiments, train and test, prepared as the papers say.

Raw files are read from the folder named by FENCHEL_DATA, by `benchmarks/datasets.py` where that knows them.
Vectorised text is kept under ~/.cache/fenchel-experiments. A file that is not there is a FileNotFoundError
that names it.
"""

import gzip
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random

import numpy as np
import scipy.sparse as sp

from benchmarks import datasets
from fenchel.features.tokens import Tokens

CACHE = Path.home() / ".cache" / "fenchel-experiments"
ONE_SIDE = ("comp.", "sci.", "misc.forsale")  # groups of the one class of the binary newsgroups


# ---- documents: (X, y, X of the test set, y of it), y in {−1, +1}


@cache
def documents(name: str) -> tuple:
    """a9a as it is; imdb and 20newsgroups as TF-IDF, each row of length 1.

    The groups comp.*, sci.* and misc.forsale against the other ten, as in news20.binary.
    """
    return _kept(name, {"a9a": _adults, "imdb": _films, "20newsgroups": _posts}[name])


def _adults():
    from sklearn.datasets import load_svmlight_file

    halves = []
    for member in ("a9a.gz", "a9a.t.gz"):
        with gzip.open(datasets._raw("a9a", member), "rb") as file:
            halves += load_svmlight_file(file, n_features=123)
    return tuple(halves)


def _films():
    return _texts("imdb", "aclImdb-{}.tar.gz", "utf-8", {"pos": 1.0, "neg": -1.0}.get)


def _posts():
    side = lambda group: 1.0 if group.startswith(ONE_SIDE) else -1.0  # noqa: E731
    return _texts("20newsgroups", "20news-bydate-{}.tar.gz", "latin-1", side)


def _texts(name, member, encoding, label):
    from sklearn.feature_extraction.text import TfidfVectorizer

    halves = []
    for part in ("train", "test"):
        stream = datasets._stream(datasets._raw(name, member.format(part)), encoding)
        halves.append(sorted((parts, text) for parts, text in stream if label(parts[-2]) is not None))
    vectorizer = TfidfVectorizer()
    X = vectorizer.fit_transform(text for _, text in halves[0])
    other = vectorizer.transform(text for _, text in halves[1])
    y, truth = (np.array([label(parts[-2]) for parts, _ in half]) for half in halves)
    return X, y, other, truth


def _kept(key: str, read: Callable[[], tuple]) -> tuple:
    """(X, y, X, y) from the cache, or as read and then kept."""
    path = CACHE / f"{key}.npz"
    if not path.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        X, y, other, truth = read()
        parts = {"y": y, "truth": truth}
        for name, matrix in (("X", X), ("T", other)):
            csr = sp.csr_matrix(matrix, dtype=np.float64)
            csr.sum_duplicates()
            parts |= {name + part: getattr(csr, part) for part in ("data", "indices", "indptr")}
            parts[name + "shape"] = csr.shape
        datasets._store(path, lambda file: np.savez(file, **parts))
    found = np.load(path)
    X, other = (
        sp.csr_matrix(
            tuple(found[name + part] for part in ("data", "indices", "indptr")), shape=found[name + "shape"]
        )
        for name in ("X", "T")
    )
    return X, found["y"], other, found["truth"]


# ---- web pages


@cache
def pages(features: int = 300, seed: int = 0) -> tuple:
    """WebKB, zhang2005 5: (X, y, X of the test set, y), 4 classes, 70 % to train at random.

    f_j = N_j/N over the `features` words of largest information gain about the class; documents that have
    none of them are left out.
    """
    from sklearn.feature_extraction.text import CountVectorizer

    labels, texts = _labelled_pages()
    X = CountVectorizer().fit_transform(texts).astype(np.float64)
    y = np.unique(labels, return_inverse=True)[1]
    train = np.random.default_rng(seed).permutation(y.size) < 0.7 * y.size
    X = X[:, np.sort(np.argsort(-information_gain(X[train], y[train]), kind="stable")[:features])].tocsr()
    sums = np.asarray(X.sum(axis=1)).ravel()
    X = sp.diags(1.0 / np.maximum(sums, 1.0)) @ X
    train, test = (np.flatnonzero(part & (sums > 0)) for part in (train, ~train))
    return X[train], y[train], X[test], y[test]


def _labelled_pages() -> tuple[list[str], list[str]]:
    labels, texts = [], []
    for half in ("train", "test"):
        path = datasets._raw("webkb", f"webkb-{half}-stemmed.txt.gz")
        with gzip.open(path, "rt", encoding="utf-8") as file:
            for line in file:
                label, _, text = line.rstrip("\n").partition("\t")
                labels.append(label)
                texts.append(text)
    return labels, texts


def page_count() -> int:
    """All pages of WebKB's four classes."""
    return len(_labelled_pages()[0])


def information_gain(X, y) -> np.ndarray:
    """(words,) H(class) − H(class | whether the word is there), in nats."""
    present = (X > 0).astype(np.float64)
    classes = np.eye(y.max() + 1)[y]
    with_word = present.T @ classes
    without = classes.sum(axis=0) - with_word
    share = with_word.sum(axis=1) / y.size
    return _entropy(classes.sum(axis=0)) - share * _entropy(with_word) - (1.0 - share) * _entropy(without)


def _entropy(counts):
    """Of the distributions in the last axis; 0 where there is nothing."""
    p = counts / np.maximum(counts.sum(axis=-1, keepdims=True), 1e-300)
    return -np.sum(p * np.log(np.maximum(p, 1e-300)), axis=-1)


# ---- tagged sentences: (train, test) as Tokens, the tag in the last column


@cache
def parts_of_speech() -> tuple[Tokens, Tokens]:
    """CoNLL-2000: words and parts of speech."""
    return tuple(_columns(tokens, (0, 1)) for tokens in datasets.sentences("conll2000"))


@cache
def chunks() -> tuple[Tokens, Tokens]:
    """CoNLL-2000: words, parts of speech, chunks."""
    return datasets.sentences("conll2000")


@cache
def brown(share: float, seed: int = 0) -> tuple[Tokens, Tokens]:
    """Four fifths of the articles to train, of which a `share` is used; tags without modifiers of style.

    huang2010 5.1: fw, tl, nc and hl are omitted, which leaves 185 of 472 tags.
    """
    texts = _brown_texts()
    names, cut = _shuffled(texts, seed)
    halves = (
        names[:cut][: max(round(share * cut), 1)],
        names[cut:][: max(round(share * (len(names) - cut)), 1)],
    )
    return tuple(Tokens.from_sentences(s for name in half for s in _article(texts[name])) for half in halves)


def brown_labels(draws: int = 20) -> list[int]:
    """How many tags four fifths of the articles have, in random draws; the first is that of `brown`."""
    texts = _brown_texts()
    tags = {name: {tag for s in _article(text) for _, tag in s} for name, text in texts.items()}
    counts = []
    for seed in range(draws):
        names, cut = _shuffled(texts, seed)
        counts.append(len(set().union(*(tags[name] for name in names[:cut]))))
    return counts


def _brown_texts() -> dict[str, str]:
    """{article: text}."""
    path = datasets._raw("brown", "brown.tar.gz")
    found = {parts[-1]: text for parts, text in datasets._stream(path, "ascii")}
    return {k: text for k, text in found.items() if len(k) == 4 and k[0] == "c" and k[2:].isdigit()}


def _shuffled(texts, seed: int) -> tuple[list[str], int]:
    """The articles in random order, and how many of them train."""
    names = sorted(texts)
    Random(seed).shuffle(names)
    return names, round(0.8 * len(names))


def _article(text):
    for line in text.splitlines():
        pairs = [token.rsplit("/", 1) for token in line.split()]
        if pairs:
            yield [(word, datasets._plain(tag)) for word, tag in pairs]


def _columns(tokens: Tokens, which) -> Tokens:
    return Tokens.from_columns([tokens.column(j) for j in which], tokens.starts)


# ---- handwriting, digits and trees


@cache
def letters() -> tuple:
    """lepriol2018: (words, labels, words of the test set, labels), pixels of each letter.

    The last of ten folds is the test set, as in the program that its authors published: 6,202 words train.
    """
    from scipy.io import loadmat

    path = datasets._raw("ocr", "ocr.mat")
    words, labels = datasets._read_words(path)
    folds = loadmat(path, variable_names=["fold"], squeeze_me=True)["fold"]
    begins = np.cumsum([0, *(len(word) + 1 for word in labels[:-1])])  # a row behind each word
    test = folds[begins] == 9
    return tuple([part[k] for k in np.flatnonzero(of)] for of in (~test, test) for part in (words, labels))


@cache
def digits() -> tuple:
    """MNIST as collins2008 7.1 has it: 59,000 to train, 10,000 to validate; pixels between 0 and 1."""
    (X, y), (other, truth) = datasets.mnist(), datasets.mnist_test()
    return X[:59_000], y[:59_000], other, truth


@cache
def spanish(train: int = 2306) -> tuple:
    """collins2008 7.2: projective sentences of CoNLL-2007's Spanish training set, the first ones to train.

    (sentences, heads, sentences to validate, heads).
    """
    from fenchel import trees
    from fenchel.io.treebanks import read_treebank

    found = read_treebank(datasets._raw("conll2007", "esp.train.gz"))
    keep = [i for i, heads in enumerate(found.heads) if trees.is_projective(heads)]
    tokens, heads = found.tokens[keep], [found.heads[i] for i in keep]
    return tokens[:train], heads[:train], tokens[train:], heads[train:]
