"""fenchel warm: compile ahead what a first fit would compile."""

import time

import click

from fenchel.cli.output import Table, print_table

KINDS = ("lr", "maxent", "tagger", "crf")
WORDS = [["a", "b", "c"], ["b", "a"], ["c"], ["a", "c"]] * 5  # events, or sentences of words


@click.command(short_help="Compile ahead.")
@click.argument("kinds", nargs=-1, type=click.Choice(KINDS), metavar="[KIND]...")
def warm(kinds):
    """Compile what the first fits and predictions of these kinds would, and keep it for later processes.

    lr is LogisticRegression and LinearSVC, maxent MaxEnt, tagger MaxEntTagger, crf ChainCRF; all of them if
    none is named. For images and clusters: set NUMBA_CACHE_DIR to a folder that goes with the image.

    \b
    Example:
      fenchel warm
      NUMBA_CACHE_DIR=/opt/kernels fenchel warm crf
    """
    from fenchel._math import log1pexp

    rows = []
    for kind in kinds or KINDS:
        start = time.perf_counter()
        _TASKS[kind]()
        rows.append([kind, f"{time.perf_counter() - start:.1f} s"])
    print_table(Table(["kind", "took"], rows, title=f"kernels in {_folder(log1pexp)}"))


def _folder(kernel):
    """Where compiled code is kept; that of one kernel stands for all."""
    return getattr(kernel._cache, "cache_path", None) or "this process only: no folder can be written"


def _lr():
    import numpy as np
    import scipy.sparse as sp

    from fenchel.estimators.flat import LinearSVC, LogisticRegression

    X = np.random.default_rng(0).normal(size=(1500, 20))  # a dense table; its first rows are too few for one
    for labels in (2, 5):
        y = np.arange(X.shape[0]) % labels
        for some in (X, X[:100], sp.csr_matrix(X[:100])):
            for kind in (LogisticRegression, LinearSVC):
                kind(tol=0.1).fit(some, y[: some.shape[0]]).predict(some)


def _maxent():
    from fenchel.estimators.maxent import MaxEnt

    MaxEnt().fit(WORDS, ["x", "y", "z", "x"] * 5).predict_proba(WORDS)


def _tagger():
    from fenchel.estimators.tagger import MaxEntTagger

    MaxEntTagger().fit(WORDS, WORDS).predict(WORDS)


def _crf():
    from fenchel.estimators.chain import ChainCRF

    X = [[[word] for word in sentence] for sentence in WORDS]
    for settings in ({}, {"observed": True}):
        model = ChainCRF(**settings).fit(X, WORDS)
        model.predict(X)
        model.predict_marginals(X)


_TASKS = {"lr": _lr, "maxent": _maxent, "tagger": _tagger, "crf": _crf}
