"""GraphCRF: labels for the nodes of graphs, by conditional random fields and max-margin Markov networks."""

from itertools import pairwise

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fenchel import problems
from fenchel._threads import for_each_share
from fenchel.constants import CONSTANTS, SPARSE
from fenchel.estimators.base import Trained, classes_to_facts
from fenchel.estimators.graph_explanation import GraphExplanation, explain_graph
from fenchel.estimators.graph_labels import LabelledGraphs, as_graphs, code_nodes, join_classes
from fenchel.estimators.matching import match_numbers
from fenchel.estimators.restored import read_classes, read_weights
from fenchel.estimators.sequence_labels import allowed_labels, check_sequence_weights, cut, fraction_right
from fenchel.estimators.settings import check_settings
from fenchel.features.graphs import Graph, GraphAttributes, NumberedGraphs, reworded
from fenchel.structures import graph_decoding
from fenchel.structures.graph_decoding import UnlabelledGraphs
from fenchel.structures.junction import Junction


class GraphCRF(Trained):
    """Labels for the nodes of graphs, with a proof of how far the model is from the optimum.

    p(y | x) ∝ exp(Σ_v x_v · W[:, y_v] + Σ over edges and cliques of a table's entry at the labels of its
    nodes).  Minimises  C Σ_i v_i loss_i + ½‖w‖² over graphs i of weight v_i. With loss="log" a conditional
    random field, with "hinge" a max-margin Markov network whose margin is the number of wrong nodes.
    Inference is exact: chains, trees, skip-chains, narrow grids; a graph too entangled for that is an error.

    Parameters
    ----------
    C : float, default 1.0
        Inverse regularisation strength; inf means none.
    loss : "log" or "hinge", default "log"
    min_count : int, default 1
        A named attribute that fewer nodes (or edges) have is left out.
    solver, tol, max_iter, max_seconds, warm_start, random_state, n_jobs, verbose, callbacks
        As in LogisticRegression. A warm start goes on from the last weights where labels, attributes and
        kinds of links are the same.

    Attributes
    ----------
    classes_ : array (L,) of the labels, those of one type of nodes after those of another
    types_ : dict from type to the slice of classes_ that has its labels
    coef_ : array (L, A); attribute_names_ : list of A names
    tables_ : dict from (types of the nodes, name of the attribute or None) to the table of weights of such
        edges or cliques, an array with an axis for each node
    n_iter_, certificate_, trace_ : as in LogisticRegression

    Examples
    --------
    >>> from fenchel import GraphCRF
    >>> graphs = [([["sun"], ["sun"], ["fog"]], [(0, 1), (1, 2)]), ([["fog"], ["fog"]], [(0, 1)])]
    >>> model = GraphCRF(C=10.0).fit(graphs, [["dry", "dry", "wet"], ["wet", "wet"]])
    >>> model.predict([([["fog"], ["sun"]], [(0, 1)])])
    [['wet', 'dry']]
    """

    def __init__(
        self,
        C=1.0,
        *,
        loss="log",
        min_count=1,
        solver="auto",
        tol=1e-3,
        max_iter=1000,
        max_seconds=None,
        warm_start=False,
        random_state=None,
        n_jobs=None,
        verbose=0,
        callbacks=None,
    ):
        self.C = C
        self.loss = loss
        self.min_count = min_count
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callbacks = callbacks

    # ---- training

    def fit(self, graphs, y, sample_weight=None):
        """Fit the model to labelled graphs.

        Parameters
        ----------
        graphs : list of Graph, or of tuples (nodes, edges[, edge_features, cliques, types])
        y : for each graph a list with the label of each node
        sample_weight : array (n,) or None
            How much each graph counts.
        """
        return self.fit_encoded(self.encode_training(graphs, y, sample_weight))

    def encode_training(self, graphs, y, sample_weight=None) -> LabelledGraphs:
        """Labelled graphs as numbers; learns attributes, types and labels."""
        check_settings(self)
        graphs = as_graphs(graphs)
        if not graphs:
            raise ValueError("there is no graph; at least one labelled graph is needed")
        source, data = GraphAttributes.learn(graphs, self.min_count)
        codes, classes = code_nodes(y, data.graphs.starts, data.graphs.types, len(source.types))
        with reworded("graph", "node"):
            weight = check_sequence_weights(sample_weight, len(graphs))
        return LabelledGraphs(data, codes, classes, source, weight)

    def problem(self, data: LabelledGraphs, **changes):
        """What this model minimises on the graphs.

        changes: arguments of `problems.graph` that take the place of this model's, as lam does of C.
        """
        check_settings(self)
        settings = dict(
            loss=self.loss,
            labels=[some.size for some in data.classes],
            sample_weight=data.weight,
            threads=self.n_jobs,
        )
        constant = {} if changes.keys() & (CONSTANTS.keys() | SPARSE.keys()) else {"C": self.C}
        numbers = data.numbers
        return problems.graph(
            numbers.rows.matrix, data.codes, numbers.graphs, **(settings | constant | changes)
        )

    def shared_with(self, origin, data):
        """All weights, where they are of the same things; else none."""
        old, new = _meaning(origin.source_, origin._classes), _meaning(data.source, data.classes)
        size = origin.weights_.size
        return {"weight": match_numbers(size, size if old == new else 0)}

    def _weights_from(self, origin, data, shared):
        return origin.weights_ * float(shared["weight"].is_whole), 0.0

    def set_weights(self, data: LabelledGraphs, w, b=0.0):
        """Make this the model of weights w, as `solve` gives them; there is no intercept b."""
        learnt = {"source_": data.source, "weights_": w, "_classes": data.classes}
        vars(self).update(learnt | {"classes_": join_classes(data.classes)})
        return self

    # ---- what was learnt

    @property
    def first_labels_(self) -> list:
        """Where in classes_ the labels of each type begin, and where the last ones end."""
        return np.cumsum([0, *(some.size for some in self._classes)]).tolist()

    @property
    def types_(self) -> dict:
        return dict(
            zip(self.source_.types, map(slice, *zip(*pairwise(self.first_labels_), strict=True)), strict=True)
        )

    @property
    def attribute_names_(self) -> list:
        check_is_fitted(self, "weights_")
        return self.source_.nodes.names()

    @property
    def coef_(self) -> np.ndarray:
        A, L = self.source_.nodes.sizes[0], self.classes_.size
        return self.weights_[: A * L].reshape(A, L).T

    @property
    def tables_(self) -> dict:
        source, out, at = self.source_, {}, self.source_.nodes.sizes[0] * self.classes_.size
        names = [None, *(source.edges.names() if source.edges else [])]
        for kind, attribute in source.tables.columns.tolist():
            types = source.tables.kinds[kind]
            shape = [self._classes[each].size for each in types]
            end = at + int(np.prod(shape))
            key = tuple(source.types[each] for each in types), names[attribute]
            out[key], at = self.weights_[at:end].reshape(shape), end
        return out

    # ---- prediction

    def encode(self, graphs) -> NumberedGraphs:
        """Graphs as this model's numbers; attributes it does not know are left out."""
        check_is_fitted(self, "weights_")
        return graphs if isinstance(graphs, NumberedGraphs) else self.source_.read(as_graphs(graphs))

    def _unlabelled(self, graphs, allowed):
        data = self.encode(graphs)
        structure = Junction(data.graphs, tuple(some.size for some in self._classes))
        where = [
            {label: k + first for k, label in enumerate(some.tolist())}
            for some, first in zip(self._classes, self.first_labels_, strict=False)
        ]
        with reworded("graph", "node"):
            allowed = allowed_labels(allowed, data.graphs.starts, where, data.graphs.types)
        return UnlabelledGraphs(
            layout=structure.tables(data.rows, self.weights_.size),
            w=self.weights_,
            plans=structure.plans,
            allowed=allowed,
        )

    def predict_codes(self, graphs, *, allowed=None) -> np.ndarray:
        """(N,) the best label of every node of all graphs in turn, as its number in classes_."""
        data = self._unlabelled(graphs, allowed)
        codes = np.empty(data.layout.rows.shape[0], np.uint32)
        self._decode(data, lambda start, stop: graph_decoding.best_labels(data, start, stop, codes))
        return codes + data.layout.first_label.astype(np.int64)

    def predict(self, graphs, *, allowed=None) -> list:
        """The best labels of each graph together, as lists.

        allowed : for each graph None or a list that holds, for each node, None (any label), a label that is
            known already, or a list of labels to choose from
        """
        graphs = self.encode(graphs)
        codes = self.predict_codes(graphs, allowed=allowed)
        return cut(self.classes_[codes], graphs.graphs.starts)

    def _decode(self, data, task):
        n, work = data.layout.starts.size - 1, data.layout.rows.nnz * data.layout.labels
        stuck = max(for_each_share(n, work, self.n_jobs, task), default=-1)
        if stuck >= 0:
            raise ValueError(f"graph {stuck}: no labels satisfy the constraints; allow more labels there")

    def predict_marginals(self, graphs, *, allowed=None) -> list:
        """The probability of each label at each node, given what is allowed: for each graph an array (N, L).

        Columns as in classes_; labels of other types have 0. Log loss only.
        """
        if self.loss != "log":
            raise ValueError(f"a GraphCRF with loss={self.loss!r} has no marginals; fit with loss='log'")
        data = self._unlabelled(graphs, allowed)
        starts = data.layout.starts.astype(np.int64)
        mu, best = np.zeros((starts[-1], self.classes_.size)), np.empty(starts[-1], np.uint32)
        self._decode(data, lambda a, b: graph_decoding.node_marginals(data, a, b, best, mu))
        return [mu[a:b] for a, b in pairwise(starts.tolist())]

    def score(self, graphs, y, sample_weight=None) -> float:
        """The fraction of nodes labelled right."""
        with reworded("graph", "node"):
            return fraction_right(self.predict(graphs), y, sample_weight)

    def explain(self, graph: Graph) -> GraphExplanation:
        """Why each node of one graph gets its label; str() of the result is a table."""
        return explain_graph(self, graph)

    # ---- the model file

    def _to_file(self):
        facts, arrays = self.source_.to_file()
        facts = {"source": facts, "classes": [classes_to_facts(some) for some in self._classes]}
        return {"weights": self.weights_} | arrays, facts

    def _from_file(self, arrays, facts):
        self.source_ = GraphAttributes.from_file(facts["source"], arrays)
        self._classes = [read_classes(some) for some in facts["classes"]]
        if len(self._classes) != len(self.source_.types):
            raise ValueError(f"{len(self._classes)} sets of labels for {len(self.source_.types)} types")
        self.classes_ = join_classes(self._classes)
        widths = self.source_.tables.widths([some.size for some in self._classes])
        size = self.source_.nodes.sizes[0] * self.classes_.size + int(widths.sum())
        self.weights_ = read_weights(arrays, "weights", (size,))


def _meaning(source, classes):
    """What each weight is of, so that two can be compared."""
    edges = source.edges.names() if source.edges else []
    tables = source.tables.kinds, source.tables.columns.tolist()
    return source.nodes.names(), edges, source.types, tables, [some.tolist() for some in classes]
