"""Message passing on a junction tree: log-partition, marginals of tables, the best labels.

The table of a clique C_v over its separator S_v and its last node v, row by row, ψ(s, k), is the sum of what
enters it. Towards the root each row sends on one number, and keeps p(v = k | S_v = s):

    message(s) = log Σ_k e^ψ(s, k),   p(k | s) = e^(ψ(s, k) − message(s))

Back from the root, p(s, k) = p(s) p(k | s), with p(s) summed up from the clique the message went to. Every
number on the way is a probability or a logarithm: scores of any size do. −∞ are labels that cannot be.

plan: of a graph, see `elimination.py`; c: where a clique begins in it. s, mu: scores, marginals of a block.
room: for tables and messages. labels: of the nodes. digits: zeros, as many as the most axes of a clique.
"""

from math import exp, inf, log, log1p

import numpy as np
from numba import carray

from fenchel._cache import external, helper
from fenchel._lanes import exp_lanes, load, spread, store, total, zeros
from fenchel._math import REORDER
from fenchel.structures import elimination

ONE, TWO, NO = np.uint64(1), np.uint64(2), np.uint64(0)
SIZE, ROOM, MESSAGES = map(np.uint64, (elimination.SIZE, elimination.ROOM, elimination.MESSAGES))
TABLES, CLIQUES, MOST = map(np.uint64, (elimination.TABLES, elimination.CLIQUES, elimination.AXES))
AT, MESSAGE, VOLUME = map(np.uint64, (elimination.AT, elimination.MESSAGE, elimination.VOLUME))
AXIS, ENTERS = map(np.uint64, (elimination.AXIS, elimination.ENTERS))
HEAD, CLIQUE = np.uint64(elimination.HEAD), np.uint64(elimination.CLIQUE)
KERNEL = {"cache": True, "nogil": True, "fastmath": REORDER}
INLINE = KERNEL | {"forceinline": True}
IN_ORDER = KERNEL | {
    "fastmath": {"contract", "arcp", "nsz"}
}  # of what calls exponentials in vector registers
LANES = np.uint64(8)


# ---- the words of a plan


@helper(**INLINE)
def plan_of(plans, i):
    p = plans.of[i]
    return plans.words[plans.starts[p] : plans.starts[p + ONE]]


@helper(**INLINE)
def table_word(plan, t):
    """Where the size of table t stands; its count is behind it."""
    return HEAD + TWO * t


@helper(**INLINE)
def _clique(plan, number):
    return plan[table_word(plan, plan[TABLES]) + number]


@helper(**INLINE)
def _last_size(plan, c):
    """Labels of the node that goes."""
    return plan[c + CLIQUE + plan[c + AXIS] - ONE]


@helper(**INLINE)
def _node(plan, c, a):
    """The node of axis a."""
    return plan[c + CLIQUE + plan[c + AXIS] + a]


@helper(**INLINE)
def _entering(plan, c, number):
    """Where a table or message that enters clique c stands: two words, then its steps."""
    axes = plan[c + AXIS]
    return c + CLIQUE + TWO * axes + number * (TWO + axes)


# ---- what enters a clique


@helper(**INLINE)
def _next_row(plan, c, e, digits, at):
    """Where what enters has the next row of the clique; digits written."""
    a = plan[c + AXIS] - ONE
    while a > NO:
        a -= ONE
        step, size = plan[e + TWO + a], plan[c + CLIQUE + a]
        digits[a] += ONE
        at += step
        if digits[a] < size:
            break
        at -= step * size
        digits[a] = NO
    return at


@helper(**KERNEL)
def _take_in(plan, c, e, source, digits, room):
    """Add what enters to the table of clique c; room written."""
    labels, inner, at = _last_size(plan, c), plan[e + ONE + plan[c + AXIS]], plan[e + ONE]
    for row in range(plan[c + AT], plan[c + AT] + plan[c + VOLUME], labels):
        if inner == ONE:
            for k in range(labels):
                room[row + k] += source[at + k]
        else:
            for k in range(labels):
                room[row + k] += source[at + k * inner]
        at = _next_row(plan, c, e, digits, at)


@helper(**KERNEL)
def _sum_out(plan, c, e, digits, room, target):
    """Add the table of clique c to what entered it, summed over the other axes; target written."""
    labels, inner, at = _last_size(plan, c), plan[e + ONE + plan[c + AXIS]], plan[e + ONE]
    for row in range(plan[c + AT], plan[c + AT] + plan[c + VOLUME], labels):
        if inner == ONE:
            for k in range(labels):
                target[at + k] += room[row + k]
        else:
            for k in range(labels):
                target[at + k * inner] += room[row + k]
        at = _next_row(plan, c, e, digits, at)


# ---- messages


@helper(**KERNEL)
def gather(plan, s, hard, digits, room):
    """Tables and messages from the leaves to the roots; room written. Returns log Z, the sum of the roots'.

    hard: messages are max_k ψ, and tables stay ψ; the best score is returned.
    """
    level = 0.0
    for number in range(plan[CLIQUES]):
        c = _clique(plan, number)
        begin, end, labels = plan[c + AT], plan[c + AT] + plan[c + VOLUME], _last_size(plan, c)
        for j in range(begin, end):
            room[j] = 0.0
        for n in range(plan[c + ENTERS]):
            e = _entering(plan, c, n)
            _take_in(plan, c, e, room if plan[e] > NO else s, digits, room)
        message = plan[c + MESSAGE]
        for row in range(begin, end, labels):
            room[message] = _top(room, row, labels) if hard else _normalise(room, row, labels)
            message += ONE
        if plan[c + AXIS] == ONE:
            level += room[plan[c + MESSAGE]]
    return level


@helper(**KERNEL)
def _top(room, row, labels):
    top = -inf
    for k in range(labels):
        top = max(top, room[row + k])
    return top


@helper(**IN_ORDER)
def _normalise(room, row, labels):
    """p(k | s) in the place of ψ(s, k), written, eight labels at a time; returns the message."""
    top = _top(room, row, labels)
    if top == -inf:
        for k in range(labels):
            room[row + k] = 0.0
        return -inf
    z = zeros(8)
    sums, peak, rest, whole = z, spread(top, z), 0.0, labels & ~np.uint64(7)
    least = exp_lanes(spread(-inf, z))  # what is taken for e^−∞
    for k in range(NO, whole, LANES):
        p = exp_lanes(load(room, row + k, z) - peak) - least
        store(room, row + k, p)
        sums = sums + p
    for k in range(whole, labels):
        room[row + k] = exp(room[row + k] - top)
        rest += room[row + k]
    sum_of_all = total(sums) + rest
    for k in range(labels):
        room[row + k] /= sum_of_all
    return top + log(sum_of_all)


@helper(**KERNEL)
def distribute(plan, digits, room, mu):
    """Marginals of all tables, from the roots to the leaves, after `gather`; room, mu written."""
    for j in range(plan[SIZE]):
        mu[j] = 0.0
    for j in range(plan[MESSAGES], plan[ROOM]):
        room[j] = 0.0
    for back in range(plan[CLIQUES]):
        c = _clique(plan, plan[CLIQUES] - ONE - back)
        labels, message = _last_size(plan, c), plan[c + MESSAGE]
        if plan[c + AXIS] == ONE:
            room[message] = 1.0
        for row in range(plan[c + AT], plan[c + AT] + plan[c + VOLUME], labels):
            for k in range(labels):
                room[row + k] *= room[message]
            message += ONE
        for n in range(plan[c + ENTERS]):
            e = _entering(plan, c, n)
            _sum_out(plan, c, e, digits, room, room if plan[e] > NO else mu)


# ---- one labelling


@helper(**KERNEL)
def _row_of(plan, c, labels):
    """Where clique c has the row of these labels of its separator."""
    at = NO
    for a in range(plan[c + AXIS] - ONE):
        at = at * plan[c + CLIQUE + a] + np.uint64(labels[_node(plan, c, a)])
    return plan[c + AT] + at * _last_size(plan, c)


@helper(**KERNEL)
def _entry_of(plan, c, e, labels):
    """Where what enters clique c has the entry of these labels."""
    at = plan[e + ONE]
    for a in range(plan[c + AXIS]):
        at += plan[e + TWO + a] * np.uint64(labels[_node(plan, c, a)])
    return at


@helper(**KERNEL)
def write_output(plan, labels, mu):
    """The labels as marginals; mu written."""
    for j in range(plan[SIZE]):
        mu[j] = 0.0
    for number in range(plan[CLIQUES]):
        c = _clique(plan, number)
        for n in range(plan[c + ENTERS]):
            e = _entering(plan, c, n)
            if plan[e] == NO:
                mu[_entry_of(plan, c, e, labels)] = 1.0


@helper(**KERNEL)
def labels_in(plan, n, mu):
    """(n,) the labels that a 0/1 vector stands for."""
    labels, at = np.zeros(n, np.uint32), NO
    for v in range(np.uint64(n)):
        for k in range(plan[table_word(plan, v)]):
            labels[v] = k if mu[at + k] > 0.5 else labels[v]
        at += plan[table_word(plan, v)]
    return labels


@helper(**KERNEL)
def _piece_of(plan, c, e, piece):
    """The piece that nodes of a table which enters clique c have, or 0; of messages 0."""
    found = NO
    for a in range(plan[c + AXIS] if plan[e] == NO else NO):
        if plan[e + TWO + a] > NO:
            found = max(found, piece[_node(plan, c, a)])
    return found


@helper(**KERNEL)
def spread_over(plan, one, other, piece):
    """Give the piece of a node to the nodes of its tables whose labels differ too; piece (n,) written.

    Returns whether there were such without one.
    """
    grown = False
    for number in range(plan[CLIQUES]):
        c = _clique(plan, number)
        for m in range(plan[c + ENTERS]):
            e = _entering(plan, c, m)
            found = _piece_of(plan, c, e, piece)
            for a in range(plan[c + AXIS] if found > NO else NO):
                v = _node(plan, c, a)
                if plan[e + TWO + a] > NO and one[v] != other[v] and piece[v] == NO:
                    piece[v], grown = found, True
    return grown


@helper(**KERNEL)
def write_pieces(plan, one, other, piece, pieces):
    """The piece of each part of either labelling that is not one of both; pieces written."""
    for j in range(plan[SIZE]):
        pieces[j] = NO
    for number in range(plan[CLIQUES]):
        c = _clique(plan, number)
        for m in range(plan[c + ENTERS]):
            e = _entering(plan, c, m)
            found = _piece_of(plan, c, e, piece)
            if found > NO:
                pieces[_entry_of(plan, c, e, one)] = found
                pieces[_entry_of(plan, c, e, other)] = found


@helper(cache=True, nogil=True, fastmath=False)
def output_score(plan, labels, s):
    """⟨s, the labels as marginals⟩."""
    score = 0.0
    for number in range(plan[CLIQUES]):
        c = _clique(plan, number)
        for n in range(plan[c + ENTERS]):
            e = _entering(plan, c, n)
            if plan[e] == NO:
                score += s[_entry_of(plan, c, e, labels)]
    return score


@helper(cache=True, nogil=True, fastmath=False)
def surprise(plan, labels, s, room):
    """−log p(labels) = Σ_v −log p(v | S_v) after `gather`: terms ≥ 0 of full precision, nothing cancels."""
    score = 0.0
    for number in range(plan[CLIQUES]):
        c = _clique(plan, number)
        row, own = _row_of(plan, c, labels), np.uint64(labels[_node(plan, c, plan[c + AXIS] - ONE)])
        chance, others = room[row + own], 0.0
        for k in range(_last_size(plan, c)):
            others += room[row + k] if k != own else 0.0
        if chance > 0.5:
            score -= log1p(-others)
        elif chance > 1e-290:
            score -= log(chance)
        else:
            message = plan[c + MESSAGE] + (row - plan[c + AT]) // _last_size(plan, c)
            score += room[message] - _potential(plan, c, labels, s, room)
    return score


@helper(cache=True, nogil=True, fastmath=False)
def _potential(plan, c, labels, s, room):
    """ψ at these labels, which underflow has taken away."""
    score = 0.0
    for n in range(plan[c + ENTERS]):
        e = _entering(plan, c, n)
        score += (room if plan[e] > NO else s)[_entry_of(plan, c, e, labels)]
    return score


@helper(**KERNEL)
def best_labels(plan, s, labels):
    """The labels of the best score, of equals the first at a clique; written. Returns that score."""
    digits, room = new_room(plan)
    score = gather(plan, s, True, digits, room)
    for back in range(plan[CLIQUES]):
        c = _clique(plan, plan[CLIQUES] - ONE - back)
        row, best = _row_of(plan, c, labels), NO
        for k in range(_last_size(plan, c)):
            best = k if room[row + k] > room[row + best] else best
        labels[_node(plan, c, plan[c + AXIS] - ONE)] = best
    return score


@helper(**KERNEL)
def new_room(plan):
    """digits and room."""
    return np.zeros(np.int64(plan[MOST]), np.uint64), np.empty(np.int64(plan[ROOM]))


# ---- the oracles, compiled once: in each of their callers they would take a second or two


PLAN, LABELS, NUMBERS = "CPointer(uint64)", "CPointer(uint32)", "CPointer(float64)"
ANY = 2**40  # a length that no array has: of pointers it is not known


@external(f"float64({PLAN}, {LABELS}, {NUMBERS}, {NUMBERS}, int64)")
def sum_over(plan, labels, s, mu, back):
    """Marginals at the scores s, if `back` is not 0; mu written. Returns −log p(labels)."""
    plan, labels, s = carray(plan, ANY), carray(labels, ANY), carray(s, ANY)
    digits, room = new_room(plan)
    gather(plan, s, False, digits, room)
    loss = surprise(plan, labels, s, room)
    if back != 0:
        distribute(plan, digits, room, carray(mu, ANY))
    return loss


@external(f"float64({PLAN}, {LABELS}, {NUMBERS})")
def find_best(plan, labels, s):
    """`best_labels`."""
    return best_labels(carray(plan, ANY), carray(s, ANY), carray(labels, ANY))
