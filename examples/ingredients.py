"""Ingredient lines: a conditional random field finds quantity, unit, name, preparation and comment.

Trains on the bundled sample, certifies the model, scores it on lines it has not seen, labels new ones, obeys
constraints and explains a decision.
"""

from importlib.resources import files

from fenchel import ChainCRF
from fenchel.io.columns import read_columns
from fenchel.spans import span_scores, spans

SAMPLE = files("fenchel") / "samples" / "ingredients.txt"
NEW = ["3 tablespoons of chopped walnuts", "1 red cabbage , finely shredded", "a pinch of salt , to taste"]


def read():
    """The sample as (words, labels) to train on and, every fifth line, to test on."""
    tokens = read_columns(SAMPLE)
    test = [i % 5 == 4 for i in range(len(tokens))]
    return tokens[[not held for held in test]].without_last(), tokens[test].without_last()


def labels_of(y):
    return [[label for (label,) in sentence] for sentence in y.sentences()]


def show(words, labels):
    """quantity: 1; name: red cabbage; ..."""
    return "; ".join(f"{kind.lower()}: {' '.join(words[a:b])}" for kind, a, b in spans(labels))


def main():
    (X, y), (X_test, y_test) = read()
    model = ChainCRF(C=3.0, template="pos").fit(X, y)
    print(f"{X.n_tokens} words in {len(X)} lines, {len(model.attribute_names_)} attributes.")
    print(f"Trained: {model.certificate_}.\n")
    print(f"{len(X_test)} other lines:\n{span_scores(labels_of(y_test), model.predict(X_test))}\n")
    new = [line.split() for line in NEW]
    for words, labels in zip(new, model.predict(new), strict=True):
        print(show(words, labels))
    known = [[None, None, None, None, "B-NAME"]]
    print("\nHad somebody told us that the name of the first starts at 'walnuts':")
    print(show(new[0], model.predict(new[:1], allowed=known)[0]))
    print(f"\nWhy the first is what it is:\n{model.explain(new[0])}")


if __name__ == "__main__":
    main()
