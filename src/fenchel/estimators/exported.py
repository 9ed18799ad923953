"""Models as other programs read them."""

import numpy as np

from fenchel.io.lcrf import LinearChain, write_lcrf
from fenchel.io.liblinear import LinearModel, write_liblinear


def export_to_crfsuite(model, path) -> None:
    """Write a fitted ChainCRF as CRFsuite's binary model; ValueError where it has what that cannot hold."""
    reason = _obstacle(model)
    if reason:
        raise ValueError(f"CRFsuite's models {reason}")
    write_lcrf(
        path,
        LinearChain(
            model.classes_.tolist(),
            model.attribute_names_,
            np.ascontiguousarray(model.coef_.T),
            model.transitions_,
        ),
    )


def _obstacle(model) -> str:
    """What keeps CRFsuite's tagger from giving the same labels, and the way out; empty where nothing does."""
    (bias, boundaries), names = model._added, model.attribute_names_
    strange = [label for label in model.classes_.tolist() if not isinstance(label, str)]
    holds_nul = [name for name in [*names, *model.classes_.tolist()] if "\0" in str(name)]
    if bias:
        return 'have no weight of a label alone; fit with bias=False and an attribute "bias" on every token'
    if boundaries:
        return "have no weights of first and last labels; fit with boundaries=False and attributes for that"
    if model.edge_coef_.size:
        return "have no attributes of pairs of labels; fit without B lines in the template"
    if model.banned:
        return "cannot ban transitions; fit with banned=None"
    if strange:
        return f"have labels that are strings, not {strange[0]!r}; fit with str(label)"
    if holds_nul:
        return f"cannot hold the name {holds_nul[0]!r}, which has a NUL in it"
    return ""


def export_to_liblinear(model, path) -> None:
    """Write a fitted LogisticRegression or LinearSVC as LIBLINEAR's text model, whose labels are the same.

    So are probabilities of two classes; of more, LIBLINEAR's are one-against-rest.
    """
    machine = "L2R_L1LOSS_SVC_DUAL" if model.classes_.size == 2 else "MCSVM_CS"
    solver = machine if model.loss == "hinge" else "L2R_LR"
    write_liblinear(path, LinearModel(model.classes_, model.coef_, model.intercept_, solver))
