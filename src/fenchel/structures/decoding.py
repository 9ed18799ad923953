"""Labels for sequences whose truth nobody knows: best and k best sequences, marginals, log-probabilities."""

from math import inf
from typing import NamedTuple

import numpy as np

from fenchel._cache import helper, njit
from fenchel._packed import packed
from fenchel.structures import lattice
from fenchel.structures.layouts.tables import LatticeTables, scores, tokens


@packed
class Unlabelled(NamedTuple):
    """Sequences to be labelled with a chain's weights."""

    layout: LatticeTables
    w: np.ndarray  # [W | V | T]
    banned: np.ndarray  # (K·K,) uint8, or empty
    allowed: np.ndarray  # (N·K,) uint8, 0 where a label cannot be; empty: all can be


@helper(cache=True, nogil=True)
def _lattice(data, i, s):
    """s = scores of the nodes and edges of sequence i, −∞ where a label is not allowed; written."""
    scores(data.layout, i, data.w, 0.0, s)
    if data.allowed.size > 0:
        K = data.layout.labels
        first = np.int64(data.layout.starts[i]) * K
        for j in range(tokens(data.layout, i) * K):
            if data.allowed[first + j] == 0:
                s[j] = -inf


@helper(cache=True, nogil=True)
def _room(data, start, stop):
    """An array for the largest lattice of start ≤ i < stop."""
    most = np.uint64(1)
    for i in range(start, stop):
        most = max(most, data.layout.offsets[i + 1] - data.layout.offsets[i])
    return np.empty(np.int64(most))


@njit(cache=True, nogil=True)
def best_labels(data, start, stop, out):
    """The best labels of start ≤ i < stop; out (N,) written. Returns a sequence no labels fit, or −1."""
    s, layout = _room(data, start, stop), data.layout
    for i in range(start, stop):
        T = tokens(layout, i)
        if T > 0:
            _lattice(data, i, s)
            labels = out[layout.starts[i] : layout.starts[i + 1]]
            if lattice.viterbi(T, layout.labels, s, layout.stride, data.banned, labels) == -inf:
                return i
    return -1


@njit(cache=True, nogil=True)
def node_marginals(data, start, stop, out, levels):
    """Marginals of the labels of each token; out (N, K), levels (n,) = log Z written. Returns as above."""
    s, mu, layout = _room(data, start, stop), _room(data, start, stop), data.layout
    for i in range(start, stop):
        begin, T = layout.starts[i], tokens(layout, i)
        levels[i] = 0.0
        if T == 0:
            continue
        _lattice(data, i, s)
        steps = np.empty(T)
        lattice.forward_backward(T, layout.labels, s, layout.stride, data.banned, mu, steps)
        for t in range(T):
            levels[i] += steps[t]
            for k in range(layout.labels):
                out[begin + np.uint64(t), k] = mu[t * layout.labels + k]
        if levels[i] == -inf:
            return i
    return -1


@njit(cache=True, nogil=True)
def several_best(data, i, labels, values):
    """The k best labellings of sequence i; labels (k, T) and their scores (k,) written. Returns how many."""
    s, layout = _room(data, i, i + 1), data.layout
    _lattice(data, i, s)
    T = tokens(layout, i)
    return lattice.best_sequences(T, layout.labels, s, layout.stride, data.banned, labels, values)


@njit(cache=True, nogil=True)
def leads(data, start, stop, labels, cost, back, out):
    """How far given labels are ahead of all others, each of which gains what its changes cost.

    labels (N,), the best ones of each sequence; cost (N,) of a label changed at a token, with the transition
    into it; back (N,) more where the next label is not changed. out (n,) = s(y) − max_{y′ ≠ y} s(y′) + costs;
    written. A Viterbi pass over sequences that have left y already: `left`.
    """
    s, layout = _room(data, start, stop), data.layout
    K = layout.labels
    left, ahead = np.empty(K), np.empty(K)
    for i in range(start, stop):
        T, begin, along = tokens(layout, i), np.int64(layout.starts[i]), 0.0
        out[i] = inf
        if T > 0:
            _lattice(data, i, s)
        for t in range(T):
            y, before = labels[begin + t], labels[begin + t - 1] if t > 0 else -1
            edge = T * K + (t - 1) * layout.stride
            for b in range(K):
                best = -inf
                price = 0.0 if b == y else cost[begin + t]
                if t == 0:
                    best = -inf if b == y else price
                else:
                    for a in range(K):
                        if data.banned.size == 0 or data.banned[a * K + b] == 0:
                            step = s[edge + a * K + b] + price
                            if b == y and a != before:
                                step += back[begin + t - 1]
                            best = max(best, left[a] + step)
                            if a == before and b != y:
                                best = max(best, along + step)
                ahead[b] = best + s[t * K + b]
            along += s[t * K + y]
            if t > 0:
                along += s[edge + before * K + y]
            for b in range(K):
                left[b] = ahead[b]
        for b in range(K if T > 0 else 0):
            out[i] = min(out[i], along - left[b])
