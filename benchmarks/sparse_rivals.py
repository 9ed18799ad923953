"""Other people's solvers of logistic regression with an L1 term, without intercept, behind one face.

They minimise  P(w) = C sum_i loss_i(w) + r ||w||_1 + (1 - r)/2 ||w||^2  for two classes, y_i in {-1, +1}, or
several, y_i in {0, ..., K - 1}; r = 1 is the lasso. A rival has what those of `rivals.py` have, and `takes(r,
several)`, whether it can. One thread each: seconds are those of the processor.
"""

import warnings

import numpy as np

from rivals import MAX_ITER, Liblinear, spaced


class LiblinearL1(Liblinear):
    """LIBLINEAR -s 6: newGLMNET (Yuan, Ho and Lin 2012)."""

    def __init__(self):
        super().__init__(6, "newGLMNET", spaced(1, -6))

    def takes(self, ratio, several):
        return ratio == 1.0 and not several

    def with_ratio(self, ratio):
        return self


class SparseRival:
    """One with a ratio; `fit` hides warnings, since the objective is judged, not the tolerance."""

    def __init__(self, ratio=1.0):
        self.ratio = ratio

    def with_ratio(self, ratio):
        return type(self)(ratio)

    def skip(self, X):
        return None

    def fit(self, X, y, C, tol):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.squeeze(np.asarray(self.model(X, y, C, tol).fit(X, y).coef_)).T


class Celer(SparseRival):
    """celer's LogisticRegression: working sets, proximal Newton; tol bounds the gap relative to P(0)."""

    name, tolerances = "celer", spaced(0, -9)

    def takes(self, ratio, several):
        return ratio == 1.0 and not several

    def model(self, X, y, C, tol):
        from celer import LogisticRegression

        return LogisticRegression(C=C, tol=tol, fit_intercept=False, max_iter=200)


class Skglm(SparseRival):
    """skglm's SparseLogisticRegression: working sets, proximal Newton; tol bounds the largest violation."""

    name, tolerances = "skglm", spaced(-1, -10)

    def takes(self, ratio, several):
        return not several

    def model(self, X, y, C, tol):
        from skglm import SparseLogisticRegression

        alpha = 1.0 / (C * X.shape[0])
        return SparseLogisticRegression(
            alpha, l1_ratio=self.ratio, tol=tol, fit_intercept=False, max_iter=200, max_epochs=MAX_ITER
        )


class CyanureL1(SparseRival):
    """Cyanure's Classifier, solver "auto"; tol bounds the gap relative to the objective."""

    name, tolerances = "cyanure auto", spaced(1, -9)

    def takes(self, ratio, several):
        return True

    def model(self, X, y, C, tol):
        from cyanure.estimators import Classifier

        lam = 1.0 / (C * X.shape[0])
        lasso = self.ratio == 1.0
        return Classifier(
            loss="multiclass-logistic" if y.min() == 0 else "logistic",
            penalty="l1" if lasso else "elasticnet",
            lambda_1=lam * self.ratio,
            lambda_2=lam * (1.0 - self.ratio),
            fit_intercept=False,
            tol=tol,
            duality_gap_interval=5,
            max_iter=MAX_ITER,
            n_threads=1,
            verbose=False,
        )


class Saga(SparseRival):
    """scikit-learn's LogisticRegression by saga; tol bounds the change of the largest weight in a pass."""

    name, tolerances = "scikit-learn saga", spaced(0, -7)

    def takes(self, ratio, several):
        return True

    def model(self, X, y, C, tol):
        from sklearn.linear_model import LogisticRegression

        settings = {"C": C, "l1_ratio": self.ratio, "tol": tol, "max_iter": MAX_ITER}
        return LogisticRegression(solver="saga", fit_intercept=False, random_state=0, **settings)


RIVALS = [LiblinearL1(), Celer(), Skglm(), CyanureL1(), Saga()]


def taking(ratio, several):
    """The rivals that take the case, with that ratio."""
    return [rival.with_ratio(ratio) for rival in RIVALS if rival.takes(ratio, several)]
