"""Heads of words as trees: what is wrong with them, and whether arcs cross.

The heads of a sentence of n words are n numbers, 0 for the root, else a word from 1.
"""

from collections.abc import Sequence

import numpy as np


def arc_offsets(starts) -> np.ndarray:
    """(n + 1,) uint64 where the arcs of each sentence begin, n·n of n words; starts (n + 1,): its words."""
    lengths = np.diff(np.asarray(starts, np.int64))
    return np.concatenate([[0], np.cumsum(lengths * lengths)]).astype(np.uint64)


def fault(heads: Sequence[int], single_root: bool = False) -> tuple[int, str] | None:
    """The first word (from 1) whose head is at fault and why; None where the heads are a tree."""
    n = len(heads)
    for word, head in enumerate(heads, 1):
        if not 0 <= head <= n:
            return word, f"head {head} is out of range, expected 0 (the root) to {n}"
        if head == word:
            return word, f"word {word} is its own head"
    roots = [word for word, head in enumerate(heads, 1) if head == 0]
    done = [False] * (n + 1)
    done[0] = True
    for word in range(1, n + 1):
        path, at = [], word
        while not done[at] and at not in path:
            path.append(at)
            at = heads[at - 1]
        if not done[at]:
            cycle = path[path.index(at) :]
            return min(cycle), f"heads go round in a circle: {' -> '.join(map(str, [*cycle, at]))}"
        for each in path:
            done[each] = True
    if single_root and len(roots) > 1:
        return roots[1], f"a second root, after word {roots[0]}; expected one; single_root=False allows it"
    return None


def is_projective(heads: Sequence[int]) -> bool:
    """Whether no two arcs of a tree cross, those of the root included."""
    spans = sorted((min(h, m), -max(h, m)) for m, h in enumerate(heads, 1))
    open_ends: list[int] = []
    for begin, end in spans:
        while open_ends and open_ends[-1] <= begin:
            open_ends.pop()
        if open_ends and -end > open_ends[-1]:
            return False
        open_ends.append(-end)
    return True
