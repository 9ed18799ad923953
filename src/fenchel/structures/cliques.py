"""Message passing on a junction tree: log-partition, marginals of tables, the best labels.

The table of a clique C_v over its separator S_v and its last node v, row by row, ψ(s, k), is the sum of what
enters it. Towards the root each row sends on one number, and keeps p(v = k | S_v = s):

    message(s) = log Σ_k e^ψ(s, k),   p(k | s) = e^(ψ(s, k) − message(s))

Back from the root, p(s, k) = p(s) p(k | s), with p(s) summed up from the clique the message went to. Every
number on the way is a probability or a logarithm: scores of any size do. −∞ are labels that cannot be.

plans, room: see `plans.py`; p, c, view: numbers of a plan, a clique, a view. s, mu: scores, marginals of a
block. labels: of the nodes. digits: zeros, as many as the most axes of a clique.
"""

from math import log, log1p

import numpy as np
from numba import types

from fenchel._cache import external, helper
from fenchel._math import REORDER
from fenchel._packed import bare, type_of
from fenchel.graphs import join_graphs
from fenchel.structures.plans import make_plans
from fenchel.structures.stretches import largest, normalise

NO, ONE = np.uint64(0), np.uint64(1)
KERNEL = {"cache": True, "nogil": True, "fastmath": REORDER}


@helper(**KERNEL)
def _exchange(plans, c, view, back, digits, room):
    """Add what a view shows to the table of clique c, row by row; room written.

    back: add the table to what is shown, which sums over the axes that it does not have.
    """
    first, last = plans.axes[c], plans.axes[c + ONE] - ONE
    at, steps, labels, table = plans.begins[view], plans.steps_at[view], plans.labels[last], plans.places[c]
    inner = plans.steps[steps + last - first]
    for row in range(table, table + plans.volumes[c], labels):
        for k in range(labels):
            if back:
                room[at + k * inner] += room[row + k]
            else:
                room[row + k] += room[at + k * inner]
        for a in range(last - first - ONE, -1, -1):  # the labels of the other axes count up like digits
            step, size = plans.steps[steps + np.uint64(a)], plans.labels[first + np.uint64(a)]
            digits[a] += ONE
            at += step
            if digits[a] < size:
                break
            at -= step * size
            digits[a] = NO


@helper(**KERNEL)
def _gather(plans, p, s, hard):
    """Tables and messages from the leaves to the roots. Returns digits and the room.

    hard: messages are max_k ψ, and tables stay ψ.
    """
    digits, room = np.zeros(np.int64(plans.most), np.uint64), np.empty(np.int64(plans.rooms[p]))
    for j in range(plans.blocks[p]):
        room[j] = s[j]
    for c in range(plans.cliques[p], plans.cliques[p + ONE]):
        begin, message, labels = plans.places[c], plans.messages[c], plans.labels[plans.axes[c + ONE] - ONE]
        for j in range(begin, begin + plans.volumes[c]):
            room[j] = 0.0
        for view in range(plans.views[c], plans.views[c + ONE]):
            _exchange(plans, c, view, False, digits, room)
        for row in range(begin, begin + plans.volumes[c], labels):
            room[message] = largest(row, row + labels, room) if hard else normalise(row, row + labels, room)
            message += ONE
    return digits, room


@helper(**KERNEL)
def _distribute(plans, p, digits, room, mu):
    """Marginals of all tables, from the roots to the leaves, after `_gather`; room, mu written."""
    for j in range(plans.fronts[p]):
        room[j] = 0.0
    for back in range(plans.cliques[p + ONE] - plans.cliques[p]):
        c = plans.cliques[p + ONE] - ONE - back
        begin, message, labels = plans.places[c], plans.messages[c], plans.labels[plans.axes[c + ONE] - ONE]
        if plans.axes[c] + ONE == plans.axes[c + ONE]:
            room[message] = 1.0
        for row in range(begin, begin + plans.volumes[c], labels):
            for k in range(labels):
                room[row + k] *= room[message]
            message += ONE
        for view in range(plans.views[c], plans.views[c + ONE]):
            _exchange(plans, c, view, True, digits, room)
    for j in range(plans.blocks[p]):
        mu[j] = room[j]


# ---- one labelling


@helper(**KERNEL)
def _entry(plans, c, view, labels):
    """Where a view of clique c has the entry of these labels."""
    at, step = plans.begins[view], plans.steps_at[view]
    for a in range(plans.axes[c], plans.axes[c + ONE]):
        at += plans.steps[step] * np.uint64(labels[plans.nodes[a]])
        step += ONE
    return at


@helper(**KERNEL)
def _row(plans, c, labels):
    """Which row of clique c has these labels of its separator."""
    row = NO
    for a in range(plans.axes[c], plans.axes[c + ONE] - ONE):
        row = row * plans.labels[a] + np.uint64(labels[plans.nodes[a]])
    return row


@helper(cache=True, nogil=True, fastmath=False)
def _surprise(plans, c, labels, room):
    """−log p(v | S_v) after `_gather`, with all its digits where it is small, and where p underflows."""
    last, row, others = plans.axes[c + ONE] - ONE, _row(plans, c, labels), 0.0
    begin, own = plans.places[c] + row * plans.labels[last], np.uint64(labels[plans.nodes[last]])
    for k in range(plans.labels[last]):
        others += room[begin + k] if k != own else 0.0
    if room[begin + own] > 0.5:
        return -log1p(-others)
    if room[begin + own] > 1e-290:
        return -log(room[begin + own])
    score = room[plans.messages[c] + row]
    for view in range(plans.views[c], plans.views[c + ONE]):
        score -= room[_entry(plans, c, view, labels)]
    return score


# ---- the oracles, compiled once: in each of their callers they would take a second or two

LABELS, NUMBERS = types.CPointer(types.uint32), types.CPointer(types.float64)
PLANS = type_of(make_plans(join_graphs([0, 1], [[]]), (1,), False))


@external(types.float64(PLANS, types.uint64, LABELS, NUMBERS, NUMBERS, types.boolean))
def sum_over(plans, i, labels, s, mu, back):
    """Marginals at the scores s of graph i, if `back`; mu written. Returns −log p(labels)."""
    p, loss = plans.of[i], 0.0
    digits, room = _gather(plans, p, bare(s), False)
    for c in range(plans.cliques[p], plans.cliques[p + ONE]):
        loss += _surprise(plans, c, bare(labels), room)
    if back:
        _distribute(plans, p, digits, room, bare(mu))
    return loss


@external(types.float64(PLANS, types.uint64, LABELS, NUMBERS))
def find_best(plans, i, labels, s):
    """The best labels of graph i, of equals the first at a clique; labels written. Returns their score."""
    p, labels, score = plans.of[i], bare(labels), 0.0
    _, room = _gather(plans, p, bare(s), True)
    for back in range(plans.cliques[p + ONE] - plans.cliques[p]):
        c = plans.cliques[p + ONE] - ONE - back
        last = plans.axes[c + ONE] - ONE
        row, best = plans.places[c] + _row(plans, c, labels) * plans.labels[last], NO
        for k in range(plans.labels[last]):
            best = k if room[row + k] > room[row + best] else best
        labels[plans.nodes[last]] = best
        score += room[plans.messages[c]] if plans.axes[c] + ONE == plans.axes[c + ONE] else 0.0
    return score


@external(types.float64(PLANS, types.uint64, LABELS, NUMBERS))
def output_score(plans, i, labels, s):
    """⟨s, the labels as marginals⟩."""
    p, s, score = plans.of[i], bare(s), 0.0
    for c in range(plans.cliques[p], plans.cliques[p + ONE]):
        for view in range(plans.views[c], plans.received[c]):
            score += s[_entry(plans, c, view, bare(labels))]
    return score


@external(types.void(PLANS, types.uint64, LABELS, NUMBERS))
def write_output(plans, i, labels, mu):
    """The labels as marginals; mu written."""
    p, mu = plans.of[i], bare(mu)
    for j in range(plans.blocks[p]):
        mu[j] = 0.0
    for c in range(plans.cliques[p], plans.cliques[p + ONE]):
        for view in range(plans.views[c], plans.received[c]):
            mu[_entry(plans, c, view, bare(labels))] = 1.0
