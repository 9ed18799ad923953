"""Parts of speech: a maximum entropy tagger with beam search, after Ratnaparkhi (1996).

Trains on a few sentences of its own, certifies the model, tags new ones and explains a decision.
"""

from fenchel import MaxEntTagger

# word/TAG: determiner, noun, verb, adjective, preposition, pronoun, full stop.
TEXT = """
the/D old/A miller/N walks/V to/P the/D bridge/N ./.
she/R reads/V a/D long/A letter/N from/P the/D clerk/N ./.
a/D boat/N waits/V under/P the/D bridge/N ./.
the/D clerk/N walks/V home/N ./.
he/R likes/V long/A walks/N by/P the/D river/N ./.
they/R planned/V a/D walk/N to/P the/D harbour/N ./.
the/D boats/N carried/V wool/N and/C salt/N ./.
we/R walk/V and/C they/R wait/V ./.
the/D wait/N was/V long/A ./.
she/R signed/V the/D old/A map/N ./.
the/D captain/N signed/V letters/N in/P the/D cabin/N ./.
a/D walk/N in/P the/D rain/N helps/V ./.
they/R wait/V for/P a/D boat/N ./.
he/R carried/V the/D boxes/N to/P the/D mill/N ./.
the/D long/A wait/N planned/V by/P the/D captain/N was/V over/A ./.
we/R like/V the/D river/N and/C the/D harbour/N ./.
"""
NEW = ["they like the walk .", "we walk to a cottage .", "she repaired the wait ."]


def read(lines):
    """Sentences as lists of words, and their tags."""
    pairs = [[token.rpartition("/")[::2] for token in line.split()] for line in lines]
    return [[word for word, _ in of] for of in pairs], [[tag for _, tag in of] for of in pairs]


def main():
    X, y = read(TEXT.strip().split("\n"))
    model = MaxEntTagger(C=10.0, rare=2, tol=1e-6).fit(X, y)
    print(f"{sum(map(len, X))} words in {len(X)} sentences, {model.classes_.size} tags.")
    print(f"Trained: {model.certificate_}.\n")
    new = [line.split() for line in NEW]
    for words, ((tags, p), *_) in zip(new, model.predict_nbest(new, 2), strict=True):
        print("  ".join(f"{word}/{tag}" for word, tag in zip(words, tags, strict=True)), f"  log p = {p:.3f}")
    print(f"\nWhy {new[0][3]!r} is what it is:\n\n{model.explain(new[0], 3)}\n")
    print("Heaviest weights for a verb:")
    for feature, _, weight in model.top_features(5, label="V"):
        print(f"  {weight:+.3f}  {feature}")


if __name__ == "__main__":
    main()
