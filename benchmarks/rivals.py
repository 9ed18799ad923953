"""Other people's solvers of L2 logistic regression without intercept, behind one face.

RIVALS minimise  P(w) = C sum_i log(1 + exp(-y_i w.x_i)) + 1/2 ||w||^2  for y_i in {-1, +1}.
MULTINOMIAL minimise  P(W) = C sum_i (log sum_k exp(x_i.w_k) - x_i.w_{y_i}) + 1/2 ||W||^2  for y_i in
{0, ..., K - 1}. On 20newsgroups all come within 1e-6 of the same optimum, and lbfgs, newton-cg and Cyanure,
run at a tolerance of 1e-8, within 1e-9.

A rival has a `name`; `tolerances`, from loose to tight, in the unit of its own stopping test;
`skip(X)`, a reason not to run it on X, or None; and `fit(X, y, C, tol) -> w`, (d,) or (d, K), which does all
that a user's call would do: conversion to the rival's own format, copies, checks of the input.
"""

import warnings

import numpy as np

MAX_ITER = 10_000  # high enough that the tolerance, not the count, ends a run


def spaced(first, last, per_decade=4):
    """Tolerances from 10^first down to 10^last, evenly spaced in the exponent, to two digits."""
    count = round((first - last) * per_decade) + 1
    return [float(f"{10.0**e:.1e}") for e in np.linspace(first, last, count)]


class Liblinear:
    """LIBLINEAR through its own Python package: -s 0 (trust-region Newton) or -s 7 (dual coordinate descent).

    A SciPy csr_matrix is turned into LIBLINEAR's node array by the package's compiled loop. Weights are
    read from the model's array at once: `get_decfun` makes one foreign call per feature.
    -e bounds: -s 0, ||g(w)|| <= eps * min(pos, neg)/n * ||g(0)||; -s 7, the largest dual violation, which
    falls in jumps over the first passes: its loose tolerances stand closer, or it would pay for passes
    it did not need. Its random stream goes on from fit to fit, so its excess varies between runs.
    """

    def __init__(self, kind, label, tolerances):
        self.kind, self.name, self.tolerances = kind, f"liblinear -s {kind} ({label})", tolerances

    def skip(self, X):
        return None

    def fit(self, X, y, C, tol):
        from liblinear.liblinearutil import parameter, problem, train

        model = train(problem(y, X, bias=-1), parameter(f"-s {self.kind} -c {C!r} -e {tol!r} -B -1 -q"))
        # The weights speak for the first label LIBLINEAR lists. A copy, for the model frees its memory.
        return np.ctypeslib.as_array(model.w, (model.nr_feature,)) * float(model.label[0])


class ScikitLearn:
    """scikit-learn's LogisticRegression with one of its solvers.

    tol bounds: lbfgs, newton-cg and newton-cholesky, the largest entry of the gradient of P/(C n);
    liblinear, as -s 0 above; sag and saga, the change of the largest weight over a pass, relative
    to that weight.
    """

    def __init__(self, solver, tolerances, most_features=None):
        self.solver, self.name, self.tolerances = solver, f"scikit-learn {solver}", tolerances
        self.most_features = most_features

    def skip(self, X):
        p = X.shape[1]
        if self.most_features is None or p <= self.most_features:
            return None
        return f"the Hessian would be {p} x {p}, {8e-9 * p * p:.0f} GB"

    def fit(self, X, y, C, tol):
        from sklearn.linear_model import LogisticRegression

        model = LogisticRegression(
            C=C, solver=self.solver, tol=tol, fit_intercept=False, max_iter=MAX_ITER, random_state=0
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return model.fit(X, y).coef_.T.squeeze()


class Cyanure:
    """Cyanure's Classifier, solver "auto" (MISO, accelerated when badly conditioned), on all cores.

    It minimises mean loss + lambda_1/2 ||w||^2, which is P/(C n) at lambda_1 = 1/(C n). tol bounds the
    duality gap relative to the objective, looked at every 5 passes (its default: each pass was no faster).
    """

    name = "cyanure auto"
    tolerances = spaced(1, -8)

    def __init__(self, loss="logistic"):
        self.loss = loss

    def skip(self, X):
        return None

    def fit(self, X, y, C, tol):
        from cyanure.estimators import Classifier

        model = Classifier(
            loss=self.loss,
            penalty="l2",
            fit_intercept=False,
            lambda_1=1.0 / (C * X.shape[0]),
            solver="auto",
            tol=tol,
            duality_gap_interval=5,
            max_iter=MAX_ITER,
            verbose=False,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.squeeze(model.fit(X, y).coef_)


RIVALS = [
    Liblinear(0, "trust region", spaced(1, -6)),
    Liblinear(7, "dual", spaced(1.5, 0, per_decade=12) + spaced(-0.25, -6)),
    ScikitLearn("lbfgs", spaced(-1, -9)),
    ScikitLearn("liblinear", spaced(1, -6)),
    ScikitLearn("newton-cg", spaced(-1, -8)),
    ScikitLearn("newton-cholesky", spaced(-1, -8), most_features=5000),
    ScikitLearn("sag", spaced(0, -8)),
    ScikitLearn("saga", spaced(0, -8)),
    Cyanure(),
]

# Not here: LIBLINEAR, whose only joint model of several classes is a support vector machine; newton-cholesky,
# whose Hessian has (d K)^2 entries; NLTK, which has no regulariser (see gis.py).
MULTINOMIAL = [
    ScikitLearn("lbfgs", spaced(-1, -9)),
    ScikitLearn("newton-cg", spaced(-1, -8)),
    ScikitLearn("sag", spaced(0, -8)),
    ScikitLearn("saga", spaced(0, -8)),
    Cyanure("multiclass-logistic"),
]
