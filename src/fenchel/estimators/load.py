"""load: any saved estimator, by the class name in its file."""

from fenchel.estimators.chain import ChainCRF
from fenchel.estimators.flat import LinearSVC, LogisticRegression
from fenchel.estimators.maxent import MaxEnt
from fenchel.estimators.tagger import MaxEntTagger
from fenchel.io.models import ModelError, read_model

SAVED = {cls.__name__: cls for cls in (LogisticRegression, LinearSVC, MaxEnt, MaxEntTagger, ChainCRF)}


def load(path):
    """The fitted estimator that `save` wrote to `path`. Loading executes nothing from the file."""
    kind, settings, facts, arrays = read_model(path)
    if kind not in SAVED:
        raise ModelError(path, f"holds a model of class {kind[:40]!r}, which this fenchel does not know")
    try:
        return SAVED[kind].from_file(settings, facts, arrays)
    except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError) as error:
        raise ModelError(path, f"the model file is damaged ({error!r})") from None
