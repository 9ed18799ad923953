"""The model file of a linear classifier."""

import numpy as np

from fenchel.estimators.base import classes_to_facts
from fenchel.estimators.inputs import dense
from fenchel.estimators.restored import read_classes, read_count, read_offset_range, read_weights


class LinearFiles:
    """What LogisticRegression and LinearSVC write, and read again."""

    def _to_file(self):
        facts = classes_to_facts(self.classes_) | {"n_features_in": int(self.n_features_in_)}
        if hasattr(self, "feature_names_in_"):
            facts["feature_names_in"] = [str(name) for name in self.feature_names_in_]
        if self.offset_range_ is not None and np.isfinite(self.offset_range_).all():
            facts["offset_range"] = np.asarray(self.offset_range_).tolist()
        facts["dtype"] = self.coef_.dtype.name
        weights = {"coef": dense(self.coef_), "intercept": self.intercept_}
        return {name: array.astype(np.float64) for name, array in weights.items()}, facts

    def _from_file(self, arrays, facts):
        self.classes_ = read_classes(facts, least=2)
        if (self.classes_[1:] <= self.classes_[:-1]).any():
            raise ValueError("the classes do not increase")
        outputs = 1 if self.classes_.size == 2 else self.classes_.size
        self.n_features_in_ = read_count(facts, "n_features_in", least=1)
        self.coef_ = read_weights(arrays, "coef", (outputs, self.n_features_in_))
        self.intercept_ = read_weights(arrays, "intercept", (outputs,))
        if facts.get("dtype") == "float32":
            if max(np.abs(self.coef_).max(), np.abs(self.intercept_).max()) > np.finfo(np.float32).max:
                raise ValueError("coef holds values that are no float32")
            self.coef_, self.intercept_ = self.coef_.astype(np.float32), self.intercept_.astype(np.float32)
        if "offset_range" in facts:
            self._offsets = read_offset_range(facts["offset_range"], outputs)
        if "feature_names_in" in facts:
            names = facts["feature_names_in"]
            if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                raise ValueError("feature_names_in is not a list of names")
            if len(names) != self.n_features_in_:
                raise ValueError(f"{len(names)} names of {self.n_features_in_} features")
            self.feature_names_in_ = np.array(names, dtype=object)
