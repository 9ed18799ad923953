"""fenchel trains log-linear and max-margin models to a proven distance from the optimum.

    from fenchel import LogisticRegression
    model = LogisticRegression(C=1.0).fit(X, y)
    print(model.certificate_)      # converged: objective 0.094542375 is proven within 0.0023 % ...

Estimators, as in scikit-learn: LogisticRegression, LogisticRegressionCV, LinearSVC (tables of numbers);
MaxEnt (events with named features); ChainCRF, MaxEntTagger (sequences); GraphCRF (graphs); DependencyParser
(trees of words). Each has fit, predict, score, save and, once fitted, certificate_ and trace_. load(path)
reads what save wrote.

The level below: problems (what is minimised), solvers (who minimises it), solve, path, Start.
The command line: fenchel --help.
"""

from importlib import import_module

__version__ = "0.1.0"

# name: module that defines it. Imported on first use, so that importing fenchel compiles and loads nothing.
_PUBLIC = {
    "LogisticRegression": "fenchel.estimators.flat",
    "LogisticRegressionCV": "fenchel.estimators.crossvalidated",
    "LinearSVC": "fenchel.estimators.flat",
    "MaxEnt": "fenchel.estimators.maxent",
    "MaxEntTagger": "fenchel.estimators.tagger",
    "ChainCRF": "fenchel.estimators.chain",
    "DependencyParser": "fenchel.estimators.parser",
    "load": "fenchel.saved",
    "Checkpoint": "fenchel.estimators.checkpoint",
    "Shards": "fenchel.io.shards",
    "GraphCRF": "fenchel.estimators.graph",
    "Graph": "fenchel.features.graphs",
    "solve": "fenchel.loop",
    "path": "fenchel.paths",
    "Start": "fenchel.solvers.base",
}
_MODULES = ("problems", "solvers")


class _Names(list):
    """What `from fenchel import *` brings, without being asked for each name by help().

    help(fenchel) prints whole what is `in` __all__, three thousand lines of classes; the text above will do.
    """

    def __contains__(self, name):
        return False


__all__ = _Names([*_PUBLIC, *_MODULES])


def __getattr__(name):
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    if name in _MODULES:
        return import_module(f"fenchel.{name}")
    raise AttributeError(f"module 'fenchel' has no attribute {name!r}")


def __dir__():
    return [*globals(), *_PUBLIC, *_MODULES]
