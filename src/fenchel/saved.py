"""load: any saved estimator, by the class name in its file."""

import numpy as np

from fenchel.compat.crf import CRF
from fenchel.estimators.chain import ChainCRF
from fenchel.estimators.crossvalidated import LogisticRegressionCV
from fenchel.estimators.flat import LinearSVC, LogisticRegression
from fenchel.estimators.graph import GraphCRF
from fenchel.estimators.maxent import MaxEnt
from fenchel.estimators.parser import DependencyParser
from fenchel.estimators.tagger import MaxEntTagger
from fenchel.io.lcrf import is_lcrf
from fenchel.io.liblinear import LOGISTIC, is_liblinear, read_liblinear
from fenchel.io.models import ModelError, read_model
from fenchel.trace import Certificate

CLASSES = (LogisticRegression, LogisticRegressionCV, LinearSVC, MaxEnt, MaxEntTagger, ChainCRF, GraphCRF)
CLASSES += (CRF, DependencyParser)
SAVED = {cls.__name__: cls for cls in CLASSES}


def load(path):
    """The fitted estimator that `save` wrote to `path`. Loading executes nothing from the file.

    A binary model of CRFsuite becomes a `fenchel.compat.CRF`, a text model of LIBLINEAR a LogisticRegression
    or, where its probabilities would be others (one against the rest) or there are none, a LinearSVC.
    """
    if is_lcrf(path):
        return CRF.from_crfsuite(path)
    if is_liblinear(path):
        return _from_liblinear(path)
    kind, settings, facts, arrays = read_model(path)
    if kind not in SAVED:
        raise ModelError(path, f"holds a model of class {kind[:40]!r}, which this fenchel does not know")
    try:
        return SAVED[kind].from_file(settings, facts, arrays)
    except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError) as error:
        raise ModelError(path, f"the model file is damaged ({error!r})") from None


def _from_liblinear(path):
    """The model predicts, but nothing is proven of it."""
    labels, weights, intercepts, solver = read_liblinear(path)
    model = LogisticRegression() if solver in LOGISTIC and labels.size == 2 else LinearSVC()
    model.classes_, model.n_features_in_ = labels, weights.shape[1]
    model.coef_, model.intercept_ = np.ascontiguousarray(weights), intercepts
    model.certificate_, model.n_iter_ = Certificate.unknown(), np.array([0])
    return model
