"""load: any saved estimator, by the class name in its file."""

from importlib import import_module

import numpy as np

from fenchel.io.lcrf import is_lcrf
from fenchel.io.liblinear import LOGISTIC, is_liblinear, read_liblinear
from fenchel.io.models import ModelError, read_model
from fenchel.trace import Certificate

SAVED = ("LogisticRegression", "LogisticRegressionCV", "LinearSVC", "MaxEnt", "MaxEntTagger", "ChainCRF")
SAVED += ("GraphCRF", "DependencyParser", "CRF")


def _class(name):
    """Imported when a model of it is met: one file needs one of them."""
    return getattr(import_module("fenchel.compat" if name == "CRF" else "fenchel"), name)


def load(path):
    """The fitted estimator that `save` wrote to `path`. Loading executes nothing from the file.

    A binary model of CRFsuite becomes a `fenchel.compat.CRF`, a text model of LIBLINEAR a LogisticRegression
    or, where its probabilities would be others (one against the rest) or there are none, a LinearSVC.
    """
    if is_lcrf(path):
        return _class("CRF").from_crfsuite(path)
    if is_liblinear(path):
        return _from_liblinear(path)
    kind, settings, facts, arrays = read_model(path)
    if kind not in SAVED:
        raise ModelError(path, f"holds a model of class {kind[:40]!r}, which this fenchel does not know")
    try:
        return _class(kind).from_file(settings, facts, arrays)
    except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError) as error:
        raise ModelError(path, f"the model file is damaged ({error!r})") from None


def _from_liblinear(path):
    """The model predicts, but nothing is proven of it."""
    labels, weights, intercepts, solver = read_liblinear(path)
    logistic = solver in LOGISTIC and labels.size == 2
    model = _class("LogisticRegression" if logistic else "LinearSVC")()
    model.classes_, model.n_features_in_ = labels, weights.shape[1]
    model.coef_, model.intercept_ = np.ascontiguousarray(weights), intercepts
    model.certificate_, model.n_iter_ = Certificate.unknown(), np.array([0])
    return model
