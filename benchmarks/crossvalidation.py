"""LogisticRegressionCV(Cs=10, cv=5) against scikit-learn's, at equal precision of every fit behind a score.

    FENCHEL_DATA=folder python benchmarks/crossvalidation.py [--sets mnist,newsgroups20] [--tol 1e-3]
        [--use 1] [--patience 600] [--theirs 1e-6,1e-7]

scikit-learn's tolerance (lbfgs, its default) is tightened by tens until the worst of its fits is as near the
optimum as ours, by the excess (P - bound)/P over the bounds that our certificates prove. Seconds of the
processor, one thread each; a whole `fit`, refit included. scikit-learn's runs that exceed --patience seconds
are ended and said to have taken at least that. --theirs: the tolerances tried, none for ours alone. --use:
only so many of the folds, for both; the choice is then by these alone.
"""

import argparse
import time
import warnings
from multiprocessing import Process, Queue

import numpy as np
from scipy.special import logsumexp
from threadpoolctl import threadpool_limits

import datasets

SETS = {"mnist": datasets.mnist_test, "newsgroups20": datasets.newsgroups20}


def objective(X, y, coefs, C):
    """mean loss + ||W||^2/(2 C n), of coefficients with the intercept last."""
    S = X @ coefs[:, :-1].T + coefs[:, -1]
    loss = np.mean(logsumexp(S, axis=1) - S[np.arange(y.size), y])
    return loss + 0.5 * np.sum(coefs[:, :-1] ** 2) / (C * y.size)


def excesses(X, y, folds, Cs, paths, bounds):
    """(folds, Cs) by how much each fit is above what is proven, relative to that."""
    values = [
        [objective(X[train], y[train], paths[k, 0, c], C) for c, C in enumerate(Cs)]
        for k, (train, _) in enumerate(folds)
    ]
    return np.array(values) / bounds - 1.0


def ours(X, y, folds, tol):
    """(seconds, C, scores, paths, bounds on each optimum)."""
    from fenchel import LogisticRegressionCV

    start = time.process_time()
    model = LogisticRegressionCV(cv=folds, tol=tol, n_jobs=1, max_iter=10_000).fit(X, y)
    seconds = time.process_time() - start
    for row in model.certificates_.reshape(len(folds), -1):
        print("  " + ", ".join(f"{c.seconds:.2f} s {c.relative_gap:.0e}" for c in row), flush=True)
    bounds = np.array([each.dual for each in model.certificates_.flat]).reshape(len(folds), -1)
    return seconds, model.C_, model.scores_, model.coefs_paths_, bounds


def theirs(X, y, folds, tol, answers):
    """The same of scikit-learn's, put into the queue; bounds are not known."""
    from sklearn.linear_model import LogisticRegressionCV

    warnings.simplefilter("ignore")
    start = time.process_time()
    settings = {"l1_ratios": (0.0,), "scoring": "accuracy", "use_legacy_attributes": False}
    with threadpool_limits(1):
        model = LogisticRegressionCV(cv=folds, tol=tol, max_iter=100_000, **settings).fit(X, y)
    answers.put((time.process_time() - start, model.C_, model.scores_, model.coefs_paths_))


def within(patience, *arguments):
    """What `theirs` answers, or None after so many seconds of wall-clock time."""
    answers = Queue()
    process = Process(target=theirs, args=(*arguments, answers))
    process.start()
    try:
        return answers.get(timeout=patience)
    except Exception:  # queue.Empty
        return None
    finally:
        process.terminate()


def compare(name, options):
    """The lines of one set."""
    from sklearn.model_selection import StratifiedKFold

    X, y = SETS[name]()
    y = y.astype(int)
    folds = list(StratifiedKFold(options.folds).split(X, y))[: options.use]
    Cs = np.logspace(-4, 4, 10)
    ours(X[::20], y[::20], list(StratifiedKFold(options.folds).split(X[::20], y[::20]))[:1], 0.1)  # compiles
    seconds, C, scores, paths, bounds = ours(X, y, folds, options.tol)
    worst = excesses(X, y, folds, Cs, paths, bounds).max()
    print(f"{name}: fenchel {seconds:.1f} s, C = {C:.4g}, accuracy {scores.mean(axis=(0, 1)).max():.4f}, "
          f"worst excess {worst:.1e}", flush=True)  # fmt: skip
    for tol in options.theirs:
        found = within(options.patience, X, y, folds, tol)
        if found is None:
            print(f"{name}: scikit-learn, tol {tol:g}: more than {options.patience:g} s", flush=True)
            return
        excess = excesses(X, y, folds, Cs, found[3], bounds).max()
        print(f"{name}: scikit-learn, tol {tol:g}: {found[0]:.1f} s ({found[0] / seconds:.1f} x), "
              f"C = {found[1]:.4g}, worst excess {excess:.1e}", flush=True)  # fmt: skip
        if excess <= max(worst, options.tol):
            return


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=lambda text: text.split(","), default=list(SETS))
    parser.add_argument("--tol", type=float, default=1e-3, help="of our certificates (default: 1e-3)")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--use", type=int, default=None, help="how many of the folds (default: all)")
    parser.add_argument(
        "--theirs",
        type=lambda text: [float(each) for each in text.split(",") if each],
        default=[1e-4, 1e-5, 1e-6, 1e-7, 1e-8],
        help="scikit-learn's tolerances (default: 1e-4 to 1e-8)",
    )
    parser.add_argument("--patience", type=float, default=600.0, help="seconds for a run of scikit-learn's")
    options = parser.parse_args()
    for name in options.sets:
        compare(name, options)


if __name__ == "__main__":
    main()
