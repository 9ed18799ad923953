"""Why a word has this head rather than another: what features add to the scores of the two arcs."""

from collections import Counter
from dataclasses import dataclass

from fenchel.estimators.explanation import Shown

SHOWN = 15  # features in the printed table


@dataclass(frozen=True, repr=False)
class HeadExplanation(Shown):
    """Two heads of a word, 0 for the root: their scores, and what makes the difference.

    features: list of (name, weight), those of the first arc as they are and those of the second with the
    other sign, the heaviest first; what both have is left out.
    """

    word: int
    head: int
    other: int
    scores: tuple[float, float]
    features: list

    def _brief(self):
        return f"head {self.head} of word {self.word} rather than {self.other}"

    def __str__(self):
        lines = [
            f"word {self.word}: head {self.head} (score {self.scores[0]:+.3f}) rather than {self.other} "
            f"({self.scores[1]:+.3f}), {self.scores[0] - self.scores[1]:+.3f} ahead"
        ]
        lines += [f"{weight:+9.3f}  {name}" for name, weight in self.features[:SHOWN]]
        more = len(self.features) - SHOWN
        return "\n".join(lines + [f"... and {more} more"] * (more > 0))


def explain_head(model, tokens, word: int, head: int, other: int) -> HeadExplanation:
    """Of the first of these sentences."""
    sentences, w = model.features_.code(tokens), model.coef_
    arcs = [Counter(model.features_.names_of_arc(sentences, 0, h, word)) for h in (head, other)]
    scores = tuple(sum(float(w[j]) * times for (_, j), times in arc.items()) for arc in arcs)
    shares = {name: float(w[j]) * times for (name, j), times in (arcs[0] - arcs[1]).items()}
    shares |= {name: -float(w[j]) * times for (name, j), times in (arcs[1] - arcs[0]).items()}
    ordered = sorted(shares.items(), key=lambda pair: -abs(pair[1]))
    return HeadExplanation(word, head, other, scores, ordered)
