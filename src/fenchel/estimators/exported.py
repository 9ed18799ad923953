"""Models as other programs read them."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fenchel.estimators.inputs import dense
from fenchel.io.lcrf import LinearChain, write_lcrf
from fenchel.io.liblinear import LinearModel, write_liblinear
from fenchel.io.onnx import OnnxModel, write_onnx


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


class LinearExports:
    """How linear models of rows are written for other programs: LogisticRegression, LinearSVC."""

    def _require_columns(self, where):
        """Refuse weights whose columns only this library finds."""
        check_is_fitted(self)
        if self.hash_bits is not None:
            raise ValueError(f"{where} does not hash columns as hash_bits={self.hash_bits} does; fit without")

    def to_liblinear(self, path) -> None:
        """Write the model as LIBLINEAR's text file, which its `predict` reads: the same labels.

        Labels must be whole numbers. Probabilities are the same for two classes only: of more, LIBLINEAR's
        are one-against-rest.
        """
        self._require_columns("LIBLINEAR")
        machine = "L2R_L1LOSS_SVC_DUAL" if self.classes_.size == 2 else "MCSVM_CS"
        solver = machine if self.loss == "hinge" else "L2R_LR"
        write_liblinear(path, LinearModel(self.classes_, dense(self.coef_), self.intercept_, solver))

    def to_onnx(self, path) -> None:
        """Write the model as an ONNX graph: X (n, d) of float64 to label, and probabilities or scores (n, K).

        The certificate and names of features are among its notes. Needs the package onnx, which
        pip install 'fenchel[onnx]' brings.
        """
        self._require_columns("ONNX")
        if len({isinstance(label, str) for label in self.classes_.tolist()}) > 1:
            raise ValueError("ONNX has labels that are all strings or all numbers; fit with str(label)")
        facts = {"class": type(self).__name__, "certificate": str(self.certificate_)}
        if hasattr(self, "feature_names_in_"):
            facts["features"] = "\n".join(map(str, self.feature_names_in_))
        weights, intercepts = (np.asarray(dense(a), np.float64) for a in (self.coef_, self.intercept_))
        write_onnx(path, OnnxModel(self.classes_, weights, intercepts, self.loss == "log", facts))
