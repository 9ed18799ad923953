"""Other people's solvers of logistic regression with an L1 term behind one face.

They minimise  P(w) = C sum_i loss_i(w) + r ||w||_1 + (1 - r)/2 ||w||^2  for two classes, y_i in {-1, +1}, or
several, y_i in {0, ..., K - 1}; r = 1 is the lasso. An intercept has no penalty, and stands behind w. A rival
has what those of `rivals.py` have, and `takes(r, several, intercept)`, whether it can. One thread each:
seconds are those of the processor.
"""

import warnings

import numpy as np

from rivals import MAX_ITER, Liblinear, spaced


class LiblinearL1(Liblinear):
    """LIBLINEAR -s 6: newGLMNET (Yuan, Ho and Lin 2012); -R leaves the intercept without penalty."""

    def __init__(self, ratio=1.0, intercept=False):
        super().__init__(6, "newGLMNET", spaced(1, -2, per_decade=12) + spaced(-2.25, -6))
        self.intercept = intercept

    def takes(self, ratio, several, intercept):
        return ratio == 1.0 and not several

    def fit(self, X, y, C, tol):
        from liblinear.liblinearutil import parameter, problem, train

        bias, more = (1, "-B 1 -R") if self.intercept else (-1, "-B -1")
        model = train(problem(y, X, bias=bias), parameter(f"-s 6 -c {C!r} -e {tol!r} {more} -q"))
        size = model.nr_feature + self.intercept
        return np.ctypeslib.as_array(model.w, (size,)) * float(model.label[0])


class SparseRival:
    """One with a ratio; `fit` hides warnings, since the objective is judged, not the tolerance."""

    def __init__(self, ratio=1.0, intercept=False):
        self.ratio, self.intercept = ratio, intercept

    def takes(self, ratio, several, intercept):
        return True

    def skip(self, X):
        return None

    def fit(self, X, y, C, tol):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return coefficients(self.model(X, y, C, tol).fit(X, y), X.shape[1], self.intercept)


def coefficients(model, d, intercept):
    """(d,) or (d, K) weights, behind them the intercepts if there are some."""
    w = np.squeeze(np.atleast_2d(np.asarray(model.coef_)))
    w = w if w.shape[0] == d else w.T
    return np.concatenate([w, np.reshape(model.intercept_, (1, *w.shape[1:]))]) if intercept else w


class Celer(SparseRival):
    """celer's LogisticRegression: working sets, proximal Newton; tol bounds the gap relative to P(0)."""

    name, tolerances = "celer", spaced(0, -9)

    def takes(self, ratio, several, intercept):
        return ratio == 1.0 and not several and not intercept

    def model(self, X, y, C, tol):
        from celer import LogisticRegression

        return LogisticRegression(C=C, tol=tol, fit_intercept=False, max_iter=200)


class Skglm(SparseRival):
    """skglm's SparseLogisticRegression: working sets, proximal Newton; tol bounds the largest violation."""

    name, tolerances = "skglm", spaced(-1, -10)

    def takes(self, ratio, several, intercept):
        return not several

    def model(self, X, y, C, tol):
        from skglm import SparseLogisticRegression

        alpha = 1.0 / (C * X.shape[0])
        return SparseLogisticRegression(
            alpha,
            l1_ratio=self.ratio,
            tol=tol,
            fit_intercept=self.intercept,
            max_iter=200,
            max_epochs=MAX_ITER,
        )


class CyanureL1(SparseRival):
    """Cyanure's Classifier, solver "auto"; tol bounds the gap relative to the objective."""

    name, tolerances = "cyanure auto", spaced(1, -9)

    def model(self, X, y, C, tol):
        from cyanure.estimators import Classifier

        lam = 1.0 / (C * X.shape[0])
        lasso = self.ratio == 1.0
        return Classifier(
            loss="multiclass-logistic" if y.min() == 0 else "logistic",
            penalty="l1" if lasso else "elasticnet",
            lambda_1=lam * self.ratio,
            lambda_2=lam * (1.0 - self.ratio),
            fit_intercept=self.intercept,
            tol=tol,
            duality_gap_interval=5,
            max_iter=MAX_ITER,
            n_threads=1,
            verbose=False,
        )


class Saga(SparseRival):
    """scikit-learn's LogisticRegression by saga; tol bounds the change of the largest weight in a pass."""

    name, tolerances = "scikit-learn saga", spaced(0, -7)

    def model(self, X, y, C, tol):
        from sklearn.linear_model import LogisticRegression

        settings = {"C": C, "l1_ratio": self.ratio, "tol": tol, "max_iter": MAX_ITER}
        return LogisticRegression(solver="saga", fit_intercept=self.intercept, random_state=0, **settings)


RIVALS = [LiblinearL1, Celer, Skglm, CyanureL1, Saga]


def taking(ratio, several, intercept):
    """The rivals that take the case, made for it."""
    made = [rival(ratio, intercept) for rival in RIVALS]
    return [rival for rival in made if rival.takes(ratio, several, intercept)]
