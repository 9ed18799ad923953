"""Labels for sequences whose truth nobody knows: best and k best sequences, marginals, log-probabilities."""

from math import inf
from typing import NamedTuple

import numpy as np

from fenchel import _sparse
from fenchel._cache import helper, njit
from fenchel.structures import lattice
from fenchel.structures.chain_weights import gather


class Unlabelled(NamedTuple):
    """Sequences to be labelled with a chain's weights; names and shapes as in `ChainBlocks`."""

    rows: _sparse.Rows  # (N, A)
    edges: _sparse.Rows  # (N, B)
    starts: np.ndarray  # (n + 1,) uint64
    w: np.ndarray  # [W | V | T]
    labels: int
    tables: int  # 1 with a table of transitions, else 0
    banned: np.ndarray  # (K·K,) uint8, or empty
    allowed: np.ndarray  # (N·K,) uint8, 0 where a label cannot be; empty: all can be


@helper(cache=True, nogil=True)
def stride_of(data):
    return data.labels**2 if data.edges.n_columns > 0 else 0


@njit(cache=True, nogil=True)
def _room(data, T):
    """Numbers of a lattice of T tokens."""
    K = data.labels
    return T * K + ((T - 1) * K * K if stride_of(data) > 0 else K * K)


@helper(cache=True, nogil=True)
def _lattice(data, i, s):
    """s = scores of the nodes and edges of sequence i, −∞ where a label is not allowed; written."""
    K, begin = np.uint64(data.labels), data.starts[i]
    T = data.starts[i + 1] - begin
    V, pairs = np.uint64(data.rows.n_columns) * K, K * K
    table = V + np.uint64(data.edges.n_columns) * pairs
    for j in range(_room(data, np.int64(T))):
        s[j] = 0.0
    for t in range(T):
        gather(data.rows, begin + t, K, data.w, np.uint64(0), s, t * K)
        if data.allowed.size > 0:
            for k in range(K):
                if data.allowed[(begin + t) * K + k] == 0:
                    s[t * K + k] = -inf
    for t in range(np.uint64(1), T if stride_of(data) > 0 else np.uint64(2)):
        at = T * K + (t - np.uint64(1)) * pairs
        if data.tables > 0:
            for j in range(pairs):
                s[at + j] = data.w[table + j]
        if data.edges.n_columns > 0:
            gather(data.edges, begin + t, pairs, data.w, V, s, at)


@njit(cache=True, nogil=True)
def longest(data, start, stop):
    most = 1
    for i in range(start, stop):
        most = max(most, np.int64(data.starts[i + 1] - data.starts[i]))
    return most


@njit(cache=True, nogil=True)
def best_labels(data, start, stop, out):
    """The best labels of start ≤ i < stop; out (N,) written. Returns a sequence no labels fit, or −1."""
    s = np.empty(_room(data, longest(data, start, stop)))
    for i in range(start, stop):
        T = np.int64(data.starts[i + 1] - data.starts[i])
        if T > 0:
            _lattice(data, i, s)
            labels = out[data.starts[i] : data.starts[i + 1]]
            if lattice.viterbi(T, data.labels, s, stride_of(data), data.banned, labels) == -inf:
                return i
    return -1


@njit(cache=True, nogil=True)
def node_marginals(data, start, stop, out, levels):
    """Marginals of the labels of each token; out (N, K), levels (n,) = log Z written. Returns as above."""
    room = _room(data, longest(data, start, stop))
    s, mu, steps = np.empty(room), np.empty(room), np.empty(longest(data, start, stop))
    for i in range(start, stop):
        begin, T = data.starts[i], np.int64(data.starts[i + 1] - data.starts[i])
        levels[i] = 0.0
        if T == 0:
            continue
        _lattice(data, i, s)
        lattice.forward_backward(T, data.labels, s, stride_of(data), data.banned, mu, steps)
        for t in range(T):
            levels[i] += steps[t]
            for k in range(data.labels):
                out[begin + np.uint64(t), k] = mu[t * data.labels + k]
        if levels[i] == -inf:
            return i
    return -1


@njit(cache=True, nogil=True)
def several_best(data, i, labels, scores):
    """The k best label sequences of sequence i; labels (k, T), scores (k,) written. Returns how many."""
    T = np.int64(data.starts[i + 1] - data.starts[i])
    s = np.empty(_room(data, T))
    _lattice(data, i, s)
    return lattice.best_sequences(T, data.labels, s, stride_of(data), data.banned, labels, scores)
