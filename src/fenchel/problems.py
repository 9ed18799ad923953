"""Problems from arrays: the level below the estimators.

from fenchel import problems, solvers, solve
result = solve(problems.binary(X, y, C=1.0), solvers.CDDual(), tol=1e-6)
"""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from fenchel import arrays, trees
from fenchel._memory import require_memory
from fenchel._mixed import Mixed
from fenchel._sparse import Rows, as_features, as_rows
from fenchel.data import merge_contexts, weighted_examples
from fenchel.graphs import Graphs
from fenchel.losses import LOSSES
from fenchel.problem import Problem
from fenchel.regularizers import regularizer
from fenchel.structures.binary import Binary
from fenchel.structures.chain import Chain
from fenchel.structures.crossed import Crossed
from fenchel.structures.joint import Joint
from fenchel.structures.junction import Junction
from fenchel.structures.layouts.arcs import arc_targets
from fenchel.structures.projective import Projective


def binary(
    X,
    y,
    *,
    loss="log",
    fit_intercept=False,
    intercept_scaling=None,
    sample_weight=None,
    threads=None,
    disk=None,
    **constant,
) -> Problem:
    """Two classes: logistic regression (loss="log") or the linear support vector machine (loss="hinge").

    X: (n, d) dense or sparse. y: (n,) labels 0/1 or −1/+1; with the log loss also probabilities of the
    class 1. One regularisation constant of `fenchel.constants`, by name: C=1.0 unless given; for weights that
    are exactly zero one of ‖w‖₁ too: c1 with c2, rho1 with rho2, l1 with lam, l1_ratio with C or alpha.
    fit_intercept adds a free (unpenalised) offset; with intercept_scaling=s, and always with the hinge
    loss, a penalised constant feature s (default 1) instead, as LIBLINEAR does. threads: for passes over all
    examples; None uses all cores where it pays. The numbers do not depend on it. disk: the `Shards` whose
    rows X are, if they are.
    """
    loss = _loss(loss)
    X, y = arrays.matrix(X), arrays.probabilities(y, loss)
    arrays.require_as_many(X, y)
    X, free, disk = _with_intercept(X, loss, fit_intercept, intercept_scaling, disk)
    _require_room(X.shape[1])
    examples, total = weighted_examples(as_features(X), y, sample_weight, disk=disk)
    one = not (examples.y < 1.0).any() or not (examples.y > 0.0).any()
    if one and not _is_part(disk):
        raise ValueError("only one class has examples of positive weight; two are needed")
    return Problem(examples, Binary(), loss, regularizer(total, constant), free, threads, total)


def flat(
    X,
    y,
    *,
    loss="log",
    labels=None,
    fit_intercept=False,
    intercept_scaling=None,
    observed=False,
    sample_weight=None,
    merge=True,
    threads=None,
    disk=None,
    **constant,
) -> Problem:
    """K labels crossed with attributes: multinomial logistic regression, or the Crammer-Singer machine.

    X: (n, A) dense or sparse. y: (n,) labels 0 … K − 1; with the log loss also (n, K) probabilities, dense or
    sparse, each row summing to one. labels: K, where y alone does not tell. Constant, intercept, weights and
    threads as in `binary`; free intercepts have mean zero over the labels. The weights of the result are
    W (A, K) row by row. observed: only pairs of attribute and label that the data show have a weight; or
    (A·K,) bool, the weights there are. merge: make examples of equal features one (with the hinge loss: of
    equal features and label), unless X is a large dense table or on disk; the objective is the same.
    """
    loss = _loss(loss)
    X, targets = arrays.matrix(X), arrays.distributions(y, labels, loss)
    arrays.require_as_many(X, targets)
    X, free, disk = _with_intercept(X, loss, fit_intercept, intercept_scaling, disk)
    _require_room(X.shape[1] * targets.shape[1])
    examples, total = weighted_examples(as_features(X), targets, sample_weight, disk=disk)
    if free and not _is_part(disk):
        arrays.require_every_label(examples)
    if merge and isinstance(examples.rows, Rows) and disk is None:
        examples = merge_contexts(examples, by_target=loss.hinge)
    structure = Crossed(targets.shape[1])
    structure.mask = _mask(observed, structure, examples)
    return Problem(examples, structure, loss, regularizer(total, constant), free, threads, total)


def joint(F, y, starts, *, loss="log", sample_weight=None, merge=True, threads=None, **constant) -> Problem:
    """Candidate sets: maximum entropy with any features f(x, y), or its max-margin counterpart.

    F: (M, d) dense or sparse, a row per candidate, those of an example one after the other. starts: (n + 1,)
    where the candidates of each example begin, from 0 to M. y: (n,) which candidate of the example is
    true, from 0; with the log loss also (M,) probabilities of the candidates. Constant, weights, threads and
    merging as in `flat`; there is no intercept.
    """
    loss, F = _loss(loss), arrays.matrix(F)
    starts = arrays.starts_of(starts, F.shape[0], "F", "example {} has no candidates; at least one is needed")
    y = arrays.candidate_targets(y, starts, loss)
    _require_room(F.shape[1])
    examples, total = weighted_examples(as_rows(F), y, sample_weight, starts)
    examples = merge_contexts(examples, by_target=loss.hinge) if merge else examples
    size = int(np.diff(examples.starts).max())
    return Problem(examples, Joint(size), loss, regularizer(total, constant), False, threads, total)


def chain(
    X,
    y,
    starts,
    *,
    loss="log",
    labels=None,
    edges=None,
    transitions=True,
    observed=False,
    banned=None,
    sample_weight=None,
    token_weight=None,
    threads=None,
    disk=None,
    **constant,
) -> Problem:
    """Sequences of labels: linear-chain conditional random fields, or max-margin Markov networks.

    X: (N, A) dense or sparse, a row of attributes per token, those of a sequence one after the other; or
    `Mixed`, both side by side.
    y: (N,) labels 0 … K − 1. starts: (n + 1,) where the tokens of each sequence begin, from 0 to N.
    edges: (N, B) attributes of the transition into each token, each with a weight for every pair of labels.
    transitions: whether each pair of neighbouring labels has a weight. observed: only pairs of attribute and
    label, and of neighbouring labels, that the data show have one; or (d,) bool, the weights there are, in
    the order of the result. banned: (K, K) bool, pairs that cannot be.
    token_weight: (N,) what a wrong label costs under the hinge loss; 1 unless given. Constant, sample_weight
    (per sequence), labels, threads and disk as in `flat`. The weights of the result are
    [W (A, K) | V (B, K, K) | transitions (K, K)], row by row. Start, end and bias of a label are attributes
    that X holds.
    """
    loss, X = _loss(loss), arrays.matrix(X)
    N = X.shape[0]
    starts = arrays.starts_of(starts, N, "X", "sequence {} has no tokens; at least one is needed")
    codes, size = arrays.label_codes(y, N, labels)
    E = sp.csr_matrix((N, 0)) if edges is None else arrays.matrix(edges)
    E = E if isinstance(E, Rows) else as_rows(E)
    if E.shape[0] != N:
        raise ValueError(f"edges has {E.shape[0]} rows but X has {N}; they must match")
    _require_room(X.shape[1] * size + (E.shape[1] + transitions) * size**2)
    more = {"edges": E, "cost": arrays.token_costs(token_weight, N, loss), "disk": disk}
    examples, total = weighted_examples(
        X if isinstance(X, Mixed) else as_features(X), codes, sample_weight, starts, **more
    )
    structure = Chain(size, bool(transitions), E.shape[1], unrolled=E.shape[1] > 0)
    structure = replace(structure, banned=arrays.banned_pairs(banned, size, examples))
    structure = replace(structure, mask=_mask(observed, structure, examples))
    return Problem(examples, structure, loss, regularizer(total, constant), False, threads, total)


def projective(
    F,
    heads,
    starts,
    *,
    single_root=True,
    loss="log",
    sample_weight=None,
    threads=None,
    disk=None,
    **constant,
) -> Problem:
    """Projective trees: dependency parsing, conditional random fields or max-margin over trees.

    F: (M, d) sparse, or `Rows`: a row for each arc, of n words n·n, a word's possible heads one after the
    other: the root, then the other words in their order. starts: (n + 1,) where the words of each sentence
    begin, from 0 to N. heads: (N,) the true ones, 0 for the root, else a word of the sentence from 1.
    single_root: whether only one word has the root as its head. With the hinge loss a wrong head costs 1.
    Constant, weights, threads and disk as in `flat`.
    """
    loss, heads = _loss(loss), arrays.head_numbers(heads)
    starts = arrays.starts_of(starts, heads.size, "heads", "sentence {} has no words; at least one is needed")
    rows = F if isinstance(F, Rows) else as_rows(arrays.matrix(F))
    offsets = trees.arc_offsets(starts)
    if rows.shape[0] != int(offsets[-1]):
        raise ValueError(f"F has {rows.shape[0]} rows, expected {offsets[-1]}: n·n arcs of n words each")
    for i, (a, b) in enumerate(
        pairwise(starts.tolist()) if disk is None else ()
    ):  # there they were looked at
        _require_projective(i, heads[a:b].tolist(), single_root)
    _require_room(rows.n_columns)
    examples, total = weighted_examples(rows, arc_targets(heads, starts), sample_weight, offsets, disk=disk)
    structure = Projective(bool(single_root))
    return Problem(examples, structure, loss, regularizer(total, constant), False, threads, total)


def _require_projective(i, heads, single_root):
    fault = trees.fault(heads, single_root)
    if fault is not None:
        raise ValueError(f"sentence {i}, word {fault[0]}: {fault[1]}")
    if not trees.is_projective(heads):
        raise ValueError(f"sentence {i}: arcs cross, but trees are projective here; leave it out")


def graph(
    X, y, graphs: Graphs, *, loss="log", labels=None, sample_weight=None, threads=None, **constant
) -> Problem:
    """Labels of the nodes of graphs: conditional random fields, or max-margin Markov networks.

    X: (N, A) dense or sparse, a row of attributes per node, those of a graph one after the other. y: (N,)
    labels, those of each type of nodes counted from 0. graphs: the shapes, of `fenchel.graphs.join_graphs`.
    labels: how many each type has, where y alone does not tell. Constant, sample_weight (per graph) and
    threads as in `flat`. The weights of the result are [W (A, L) | tables of the links], L labels of all
    types, one type after the other; `graphs.tables` says which tables there are.
    """
    loss, X = _loss(loss), arrays.matrix(X)
    N = X.shape[0]
    arrays.starts_of(graphs.starts, N, "X", "graph {} has no nodes; at least one is needed")
    codes, sizes = arrays.codes_by_type(y, graphs.types, labels)
    _require_room(X.shape[1] * sum(sizes) + int(graphs.tables.widths(sizes).sum()))
    more = {"cost": np.ones(N), "graphs": graphs}
    examples, total = weighted_examples(as_features(X), codes, sample_weight, graphs.starts, **more)
    structure = Junction(examples.graphs, sizes)
    return Problem(examples, structure, loss, regularizer(total, constant), False, threads, total)


def _is_part(disk) -> bool:
    """Whether there are more examples elsewhere."""
    return disk is not None and disk.total is not None


def _mask(observed, structure, examples):
    """(d,) bool, the weights there are; None for all."""
    if isinstance(observed, (bool, np.bool_)):
        return structure.observed(examples) if observed else None
    mask = np.asarray(observed, dtype=bool)
    size = examples.rows.n_columns * structure.outputs + structure.extra
    if mask.shape != (size,):
        raise ValueError(f"observed has shape {mask.shape}, expected True, False or a mask ({size},)")
    return None if mask.all() else mask


def _loss(name):
    if not isinstance(name, str) or name not in LOSSES:
        raise ValueError(f"unknown loss {name!r}; there are {', '.join(LOSSES)}")
    return LOSSES[name]


def _with_intercept(X, loss, fit_intercept, scaling, disk):
    """X, with a constant column where the intercept is penalised; whether it is free; where X lies."""
    if loss.hinge and scaling is None:
        scaling = 1.0
    if not fit_intercept or scaling is None:
        return X, bool(fit_intercept), disk
    if disk is None:
        return arrays.with_constant(X, scaling), False, None
    longer = disk.with_constant(arrays.scaling(scaling))
    return longer.rows, False, longer


def _require_room(weights: int) -> None:
    require_memory(6 * 8 * weights, f"training {weights} weights", "hash or renumber the features")
