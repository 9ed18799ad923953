"""Visits of a sentence whose dual variables are a sparse flow: what makes them cheap.

A flow gives mass to pairs of neighbouring labels; those with mass at a token are its support. Moving mass
from the worst path inside the support to the best one is a pairwise step, and where the two paths differ in
several stretches each stretch takes a step of its own:

    γ = min(slope / curvature, least mass of the worst path there),   curvature = m_i/λ ‖A_iᵀ(best − worst)‖²

Masses are multiples of QUANTUM, so that sums of them are exact: the flow stays a flow, whatever is moved.
Scores after a step come from the Gram matrix of the tokens of a sentence; w is written once, behind a visit.
With a mask of weights that matrix would be another for each label: w is written after each step then, and
what is looked at next is scored anew.
"""

from typing import NamedTuple

import numpy as np

from fenchel._cache import helper, njit
from fenchel._lanes import larger, load, spread, store, zeros
from fenchel.solvers.cdoutputs.weights import (
    HALF,
    LOWER,
    ZERO,
    fetch,
    place_of,
    score,
    square_by_weights,
    write_weights,
)
from fenchel.structures.lattice_lanes import KERNEL, LANES, ONE

QUANTUM = 2.0**-50  # sums of multiples of it up to 1 are exact


class Flow(NamedTuple):
    """The support of each of N tokens, in slots: pairs of labels (before, here) with mass, in all 1."""

    begin: np.ndarray  # (N + 1,) uint64 where the slots of each token begin
    used: np.ndarray  # (N,) uint64
    pairs: np.ndarray  # uint32, before · 2¹⁶ + here; of a first token: here
    mass: np.ndarray  # multiples of QUANTUM
    wanted: np.ndarray  # (N,) uint8, 1 where a pair found no slot


class Gram(NamedTuple):
    """⟨x_t, x_u⟩ for the tokens u of the same sentence where it is not 0; empty with a mask."""

    begin: np.ndarray  # (N + 1,) uint64
    tokens: np.ndarray  # uint32, within the sentence
    values: np.ndarray


class Room(NamedTuple):
    """Scratch for any sentence: (T, width) but the paths, (T,); moved is zero between visits."""

    s: np.ndarray
    ahead: np.ndarray
    moved: np.ndarray
    back: np.ndarray  # uint64
    best: np.ndarray  # (T,) uint64
    worst: np.ndarray  # (T,) uint64


@helper(**KERNEL)
def best_path(T, K, width, s, edges, ahead, best):
    """The path of largest score; ahead, best written. Returns its score."""
    z = zeros(8)
    for k in range(ZERO, width, LANES):
        store(ahead, k, load(s, k, z))
    for t in range(ONE, T):
        at = t * width
        for k in range(ZERO, width, LANES):
            top = spread(ahead[at - width], z) + load(edges, k, z)
            for a in range(ONE, K):
                top = larger(spread(ahead[at - width + a], z) + load(edges, a * width + k, z), top)
            store(ahead, at + k, top + load(s, at + k, z))
    label, at = ZERO, (T - ONE) * width
    for k in range(ONE, K):
        label = k if ahead[at + k] > ahead[at + label] else label
    value = ahead[at + label]
    for step in range(ONE, T):
        best[T - step], begin = label, (T - step - ONE) * width
        before, most = ZERO, ahead[begin] + edges[label]
        for a in range(ONE, K):
            here = ahead[begin + a] + edges[a * width + label]
            before, most = (a, here) if here > most else (before, most)
        label = before
    best[ZERO] = label
    return value


@helper(**KERNEL)
def part_score(width, s, edges, t, pair):
    """What a pair of labels scores at t."""
    return s[t * width + (pair & LOWER)] + (edges[place_of(pair, width)] if t > ZERO else 0.0)


@helper(**KERNEL)
def path_inside(d, flow, i, low, high, sign, s, edges, room, path):
    """The path of largest sign · score in the support of low ≤ t ≤ high; room.ahead, room.back, path written.

    Returns its score, and the mean one of the flow. path[low − 1], if there is one, is written too.
    """
    width, first, mean = d.labels.width, d.starts[i], 0.0
    ahead, back = room.ahead, room.back
    for t in range(low, high + ONE):
        begin, at = flow.begin[first + t], t * width
        end = begin + flow.used[first + t]
        for e in range(begin, end):
            ahead[at + (np.uint64(flow.pairs[e]) & LOWER)] = -np.inf
        for e in range(begin, end):
            a, b = np.uint64(flow.pairs[e]) >> HALF, np.uint64(flow.pairs[e]) & LOWER
            here = part_score(width, s, edges, t, np.uint64(flow.pairs[e]))
            mean += flow.mass[e] * here
            here = sign * here + (ahead[at - width + a] if t > low else 0.0)
            if here > ahead[at + b]:
                ahead[at + b], back[at + b] = here, a
    at, token = high * width, first + high
    label = np.uint64(flow.pairs[flow.begin[token]]) & LOWER
    for e in range(flow.begin[token], flow.begin[token] + flow.used[token]):
        b = np.uint64(flow.pairs[e]) & LOWER
        label = b if ahead[at + b] > ahead[at + label] else label
    value = sign * ahead[at + label]
    for step in range(high - low + ONE):
        t = high - step
        path[t] = label
        label = back[t * width + label]
    if low > ZERO:
        path[low - ONE] = label
    return value, mean


@helper(**KERNEL)
def find(flow, token, pair):
    """The slot of a pair of labels at a token; where there is none, the one behind its support."""
    end = flow.begin[token] + flow.used[token]
    for e in range(flow.begin[token], end):
        if np.uint64(flow.pairs[e]) == pair:
            return e
    return end


@helper(**KERNEL)
def pair_at(path, t):
    """The pair of labels that a path has at t."""
    return path[t] if t == ZERO else (path[t - ONE] << HALF) + path[t]


@helper(**KERNEL)
def slope_and_mass(d, flow, q, i, low, last, room):
    """What the best path scores more than the worst from low to last, and the least mass of the worst there.

    No mass can move where a pair of the best path finds no slot: flow.wanted is written then.
    """
    width, first = d.labels.width, d.starts[i]
    slope, mass = 0.0, 1.0
    for t in range(low, last + ONE):
        here, there = pair_at(room.best, t), pair_at(room.worst, t)
        slope += part_score(width, room.s, q.edges, t, here) - part_score(width, room.s, q.edges, t, there)
        token = first + t
        mass = min(mass, flow.mass[find(flow, token, there)])
        if find(flow, token, here) == flow.begin[token + ONE]:
            flow.wanted[token] = 1
            mass = 0.0
    return slope, mass


@helper(**KERNEL)
def agreement(p, q, r, s, of_p, of_q):
    """⟨1_p − 1_q, 1_r − 1_s⟩, p and q counted so often."""
    return of_p * ((p == r) - (p == s)) + of_q * ((q == s) - (q == r))


@helper(**KERNEL)
def curvature(d, gram, q, i, low, high, last, room):
    """‖A_iᵀ(best − worst)‖² over the tokens low … high and the transitions low … last."""
    first, width, total = d.starts[i], d.labels.width, 0.0
    best, worst = room.best, room.worst
    for t in range(low, high + ONE):
        for e in range(gram.begin[first + t], gram.begin[first + t + ONE]):
            u = np.uint64(gram.tokens[e])
            if low <= u <= high:
                total += gram.values[e] * agreement(best[t], worst[t], best[u], worst[u], 1.0, 1.0)
    if d.masked:
        total += square_by_weights(d, q, i, low, high, best, worst)
    if q.moves:
        for t in range(max(low, ONE), last + ONE):
            here, there = pair_at(best, t), pair_at(worst, t)
            own = d.edge_keep[place_of(here, width)], d.edge_keep[place_of(there, width)]
            for u in range(max(low, ONE), last + ONE):
                total += agreement(here, there, pair_at(best, u), pair_at(worst, u), own[0], own[1])
    return total


@helper(**KERNEL)
def shift(flow, token, pair, mass):
    """Add to, or take from, the mass of a pair; one of no mass leaves the support. flow written."""
    e = find(flow, token, pair)
    last = flow.begin[token] + flow.used[token]
    if e == last:
        flow.pairs[e], flow.mass[e] = pair, 0.0
        flow.used[token] += ONE
        last += ONE
    flow.mass[e] += mass
    if flow.mass[e] == 0.0:
        flow.pairs[e], flow.mass[e] = flow.pairs[last - ONE], flow.mass[last - ONE]
        flow.used[token] -= ONE


@helper(**KERNEL)
def move(d, gram, flow, q, i, low, high, last, mass, room):
    """Move mass from the worst path to the best; flow, q.edges, room.s, room.moved written.

    Labels differ from low to high, pairs from low to last.
    """
    width, first = d.labels.width, d.starts[i]
    step = d.rates[i] * mass
    for t in range(low, high + ONE):
        b, w = room.best[t], room.worst[t]
        room.moved[t * width + b] += mass
        room.moved[t * width + w] -= mass
        for e in range(gram.begin[first + t], gram.begin[first + t + ONE]):
            at, x = np.uint64(gram.tokens[e]) * width, step * gram.values[e]
            room.s[at + b] -= x
            room.s[at + w] += x
    for t in range(low, last + ONE):
        here, there = pair_at(room.best, t), pair_at(room.worst, t)
        shift(flow, first + t, there, -mass)
        shift(flow, first + t, here, mass)
        if t > ZERO:
            q.edges[place_of(here, width)] -= step * d.edge_keep[place_of(here, width)]
            q.edges[place_of(there, width)] += step * d.edge_keep[place_of(there, width)]


@helper(**KERNEL)
def step_by_stretches(d, gram, flow, q, i, low, high, room):
    """A step for each stretch of low … high where best and worst path differ; all written.

    Returns how many were made.
    """
    T, made, t = d.starts[i + ONE] - d.starts[i], 0, low
    while t <= high:
        if room.best[t] == room.worst[t]:
            t += ONE
            continue
        end = t
        while end < high and room.best[end + ONE] != room.worst[end + ONE]:
            end += ONE
        last = min(end + ONE, T - ONE)
        if d.masked and made > 0:
            score(d, q, i, t, last, room.s)
        slope, mass = slope_and_mass(d, flow, q, i, t, last, room)
        if slope > 0.0 and mass > 0.0:
            bend = d.rates[i] * curvature(d, gram, q, i, t, end, last, room)
            if slope < bend * mass:
                mass = np.floor(slope / bend / QUANTUM) * QUANTUM
            if mass > 0.0:
                move(d, gram, flow, q, i, t, end, last, mass, room)
                made += 1
                if d.masked:
                    write_weights(d, q, i, t, end, room.moved)
        t = end + ONE
    return made


@helper(**KERNEL)
def visit(d, gram, flow, q, i, low, high, ask, rounds, enough, room):
    """Steps on the tokens low … high, towards the best path of all (ask) or of the support; all written.

    At most so many rounds, until the gap is `enough` at most or a tenth of the first, which is returned.
    """
    K, width, gap, total = d.labels.count, d.labels.width, 0.0, 0
    for turn in range(rounds):
        if turn == 0 or d.masked:
            score(d, q, i, low, high, room.s)
        if ask:
            top = best_path(high + ONE, K, width, room.s, q.edges, room.ahead, room.best)
        else:
            top, _ = path_inside(d, flow, i, low, high, 1.0, room.s, q.edges, room, room.best)
        _, mean = path_inside(d, flow, i, low, high, -1.0, room.s, q.edges, room, room.worst)
        gap = max(top - mean, 0.0) if turn == 0 else gap
        if top - mean <= enough or (turn > 0 and top - mean <= 0.1 * gap):
            break
        made = step_by_stretches(d, gram, flow, q, i, low, high, room)
        total += made
        if made == 0:
            break
    if total > 0 and not d.masked:
        write_weights(d, q, i, low, high, room.moved)
    return gap


@njit(**KERNEL)
def visit_all(d, gram, flow, q, order, ask, rounds, enough, gaps, skip, room):
    """Visit the sentences of the order: whole, asking the oracle, or stretches of more than one pair a token.

    gaps: of sentences (n,), or of stretches at their first token (N,); stretches of a gap below `skip` are
    left out. flow, q, gaps, room written. Returns how many tokens were visited.
    """
    tokens = ZERO
    for k in range(order.size):
        i = order[k]
        if k + 1 < order.size:
            fetch(d, flow, q, order[k + 1], ask)
        first, T = d.starts[i], d.starts[i + ONE] - d.starts[i]
        low = ZERO
        while low < T:
            high = T - ONE
            if not ask:
                if flow.used[first + low] == ONE:
                    low += ONE
                    continue
                high = low
                while high + ONE < T and flow.used[first + high + ONE] > ONE:
                    high += ONE
            at = i if ask else first + low
            if ask or gaps[at] >= skip:
                tokens += high - low + ONE
                gaps[at] = visit(d, gram, flow, q, i, low, high, ask, rounds, enough, room)
            low = high + ONE
    return tokens


@njit(**KERNEL)
def certify(d, flow, q, start, stop, mass, room):
    """Σ m_i loss_i, Σ m_i · block gap and a bound of Σ m_i ‖y_i − μ_i‖₁ over start ≤ i < stop."""
    K, width, value, gap, moved = d.labels.count, d.labels.width, 0.0, 0.0, 0.0
    for i in range(start, stop):
        first, T = d.starts[i], d.starts[i + ONE] - d.starts[i]
        score(d, q, i, ZERO, T - ONE, room.s)
        top = best_path(T, K, width, room.s, q.edges, room.ahead, room.best)
        truth, mean, off = 0.0, 0.0, 0.0
        for t in range(T):
            token = first + t
            room.worst[t] = d.y[token]
            true = pair_at(room.worst, t)
            truth += part_score(width, room.s, q.edges, t, true)
            for e in range(flow.begin[token], flow.begin[token] + flow.used[token]):
                pair = np.uint64(flow.pairs[e])
                mean += flow.mass[e] * part_score(width, room.s, q.edges, t, pair)
                off += 4.0 * flow.mass[e] if pair != true else 0.0
        value += mass[i] * max(top - truth, 0.0)
        gap += mass[i] * max(top - mean, 0.0)
        moved += mass[i] * off
    return value, gap, moved
