"""Beam search for the most probable tags of a sentence under a model of one tag after the other.

log p(y | x) = Σ_t log p(y_t | x, y_{t−1}, y_{t−2}), each term a softmax over all K tags (Ratnaparkhi, 1996,
section "Search"). Word by word the `width` best beginnings are kept; with a width of K^T the search is exact.

Of each beginning two (T, width) tables hold its last tag, and which beginning of one word less it goes on
from.
Equal probabilities: what goes on from the better beginning comes first, then the lower tag.
"""

from math import exp, log
from typing import NamedTuple

import numpy as np

from fenchel._cache import helper, njit
from fenchel._memory import require_memory


class Local(NamedTuple):
    """The model of one tag: weights, and the columns of the attributes that are made of tags."""

    weights: np.ndarray  # (A, K)
    previous: np.ndarray  # (K + 1,) int32
    pair: np.ndarray  # (K + 1, K + 1) int32
    allowed: np.ndarray  # (frequent words + 1, K) bool; the last row for all other words


class Beam(NamedTuple):
    """The buffers of a search, for sentences of up to T words."""

    tag: np.ndarray  # (T, width) int32
    parent: np.ndarray  # (T, width) int32
    total: np.ndarray  # (width,) log-probability of each beginning, the best first
    score: np.ndarray  # (width,) a heap with the worst on top: log-probability
    number: np.ndarray  # (width,) int64, and beginning · K + tag
    static: np.ndarray  # (K,) scores of a word's tags by all but the tags before
    log_p: np.ndarray  # (K,)


def make_beam(longest: int, labels: int, width: int) -> Beam:
    """Buffers for sentences of `longest` words; no wider than there are sequences."""
    width = int(min(width, labels ** min(longest, 64)))
    require_memory(8 * longest * width, f"a beam of {width} over {longest} words", "lower beam")
    back = np.empty((longest, width), np.int32), np.empty((longest, width), np.int32)
    heap = np.empty(width), np.empty(width), np.empty(width, np.int64)
    return Beam(*back, *heap, np.empty(labels), np.empty(labels))


@njit(cache=True, nogil=True)
def search_all(tokens, local, beam, best, tags, log_p):
    """The `best` sequences of each sentence: tags (best, n) and log_p (sentences, best) are written.

    log_p is −∞ where a sentence has fewer sequences; its tags are then left as they are.
    """
    for i in range(tokens.starts.size - 1):
        first, last = tokens.starts[i], tokens.starts[i + 1]
        size = _search(tokens, first, last, local, beam)
        for r in range(best):
            log_p[i, r] = beam.total[r] if r < size else -np.inf
            if r < size:
                _read_back(beam, r, first, last, tags[r])


@njit(cache=True, nogil=True)
def _search(tokens, first, last, local, beam):
    """Leave the best sequences of a sentence in the beam; return how many there are."""
    beam.total[0] = 0.0
    size = 1
    for t in range(first, last):
        row = tokens.frequent[tokens.word[t]]
        if row < 0:
            row = local.allowed.shape[0] - 1
        _score_word(tokens, t, local.weights, beam.static)
        size = _advance(t - first, size, row, local, beam)
    return size


@helper(cache=True, nogil=True)
def _read_back(beam, rank, first, last, tags):
    """Write the tags of the sequence of that rank, from its end, to tags[first:last]."""
    e = rank
    for t in range(last - first - 1, -1, -1):
        tags[first + t] = beam.tag[t, e]
        e = beam.parent[t, e]


@helper(cache=True, nogil=True)
def _score_word(tokens, t, W, s):
    """s = Σ W[column] over the attributes of token t that are not made of tags; s (K,) written."""
    for k in range(s.size):
        s[k] = 0.0
    v = tokens.word[t]
    for p in range(tokens.own_starts[v], tokens.own_starts[v + 1]):
        _add_weights(W, tokens.own[p], s)
    for j in range(tokens.around.shape[1]):
        _add_weights(W, tokens.around[t, j], s)


@helper(cache=True, nogil=True)
def _add_weights(W, column, s):
    """s += W[column], unless there is no such column; s (K,) written."""
    if column >= 0:
        j = np.uint64(column)
        for k in range(np.uint64(s.size)):
            s[k] += W[j, k]


@helper(cache=True, nogil=True)
def _advance(t, size, row, local, beam):
    """Go one word further from each of `size` beginnings; return how many there are then."""
    K, kept = beam.static.size, 0
    for e in range(size):
        # No logarithm of a probability is positive, and the beginnings are sorted: none to come can enter.
        if kept == beam.score.size and beam.total[e] < beam.score[0]:
            break
        one = beam.tag[t - 1, e] if t > 0 else K
        two = beam.tag[t - 2, beam.parent[t - 1, e]] if t > 1 else K
        _log_softmax(beam.static, local, one, two, beam.log_p)
        for k in range(K):
            if local.allowed[row, k]:
                kept = _offer(beam.score, beam.number, kept, beam.total[e] + beam.log_p[k], e * K + k)
    _sort_heap(beam.score, beam.number, kept)
    for e in range(kept):
        beam.total[e] = beam.score[e]
        beam.parent[t, e], beam.tag[t, e] = beam.number[e] // K, beam.number[e] % K
    return kept


@helper(cache=True, nogil=True)
def _log_softmax(static, local, one, two, log_p):
    """log p(· | x, tag before, tag two before); log_p (K,) written, none above 0."""
    for k in range(static.size):
        log_p[k] = static[k]
    _add_weights(local.weights, local.previous[one], log_p)
    _add_weights(local.weights, local.pair[two, one], log_p)
    top = log_p[0]
    for k in range(1, log_p.size):
        top = max(top, log_p[k])
    total = 0.0
    for k in range(log_p.size):
        log_p[k] -= top
        total += exp(log_p[k])
    shift = log(total)
    for k in range(log_p.size):
        log_p[k] -= shift


# ---- the heap of the best so far: the worst on top, each entry no worse than its parent


@njit(cache=True, nogil=True)
def _offer(score, number, kept, s, n):
    """Take (s, n) in if there is room or it beats the worst; return how many entries there are."""
    if kept < score.size:
        _sift_up(score, number, kept, s, n)
        return kept + 1
    if _is_worse(score[0], number[0], s, n):
        _sift_down(score, number, kept, s, n)
    return kept


@helper(cache=True, nogil=True)
def _is_worse(s, n, other_s, other_n):
    return s < other_s or (s == other_s and n > other_n)


@helper(cache=True, nogil=True)
def _sift_up(score, number, at, s, n):
    """Put (s, n) at the free place `at` or, while parents are better, above."""
    while at > 0:
        above = (at - 1) // 2
        if not _is_worse(s, n, score[above], number[above]):
            break
        score[at], number[at] = score[above], number[above]
        at = above
    score[at], number[at] = s, n


@helper(cache=True, nogil=True)
def _sift_down(score, number, kept, s, n):
    """Put (s, n) in the place of the top or, while children are worse, below."""
    at, below = 0, 1
    while below < kept:
        if below + 1 < kept and _is_worse(score[below + 1], number[below + 1], score[below], number[below]):
            below += 1
        if not _is_worse(score[below], number[below], s, n):
            break
        score[at], number[at] = score[below], number[below]
        at, below = below, 2 * below + 1
    score[at], number[at] = s, n


@njit(cache=True, nogil=True)
def _sort_heap(score, number, kept):
    """Make the heap an array with the best first: the worst goes to the end, again and again."""
    for end in range(kept - 1, 0, -1):
        s, n = score[end], number[end]
        score[end], number[end] = score[0], number[0]
        _sift_down(score, number, end, s, n)
