"""What kinds of taggers share: labelled sentences, F1 of spans, lines with labels behind them."""

from abc import abstractmethod
from collections.abc import Iterator
from itertools import islice

from fenchel.cli.kinds.base import Kind
from fenchel.cli.kinds.classes import class_table, confusion_table
from fenchel.cli.kinds.proven import proven_facts
from fenchel.cli.output import Table, count, listed, say
from fenchel.cli.sentences import Corpus, are_spans

BATCH = 1000  # sentences of a file that are labelled at a time


class Tagging(Kind):
    """A kind whose examples are a Corpus, and whose estimators predict lists of labels."""

    summary = "Labels of sequences, from a column file."
    reads = frozenset({"nbest"})
    noun = "sentence"
    top = 5  # of each label

    @abstractmethod
    def read_for(self, model, path: str) -> Corpus:
        """Labelled sentences for a fitted model."""

    @abstractmethod
    def sentences(self, model, path: str) -> Iterator[tuple]:
        """(lines, sentence) as they come in, to label; None for a sentence is lines to print as they are.

        lines: those of a column file, blank ones included; None where labels are printed alone.
        """

    # ---- scores

    def measure(self, examples):
        return "F1" if are_spans(examples.labels) else "accuracy"

    def score(self, model, examples):
        """F1 of spans, or the fraction of labels that are right."""
        if not are_spans(model.classes_.tolist()):
            return super().score(model, examples)
        from fenchel.spans import span_scores

        return span_scores(examples.tags, model.predict(examples.X)).f1

    # ---- predict

    def predict(self, model, path, given, probabilities):
        """Of a column file its own lines with the label behind; of a CRFsuite file labels alone.

        Yields a sentence at a time where they come in one by one, from standard input.
        """
        sentences = self.sentences(model, path)
        while some := list(islice(sentences, 1 if path == "-" else BATCH)):
            X = [sentence for _, sentence in some if sentence is not None]
            answers = iter(_answers(model, X, probabilities, given.get("nbest")))
            blocks = [_block(lines, next(answers) if x is not None else ()) for lines, x in some]
            yield "\n".join(line for block in blocks for line in block)

    # ---- evaluate

    def labelled(self, model, path, given):
        return self.read_for(model, path)

    def scores(self, model, corpus):
        """Accuracy, and the scores of each type of span as conlleval gives them, else of each label."""
        import numpy as np

        predicted = _tagged(model, corpus)
        truth, guessed = _flat(corpus.tags), _flat(predicted)
        whole = sum(a == b for a, b in zip(corpus.tags, predicted, strict=True))
        facts = {
            "sentences": f"{corpus.n}, {whole} of them without an error",
            "tokens": f"{truth.size}",
            "accuracy": f"{np.mean(truth == guessed):.6g}",
        }
        if hasattr(model, "proven"):
            facts |= proven_facts(model, corpus.X)
        known = [str(label) for label in model.classes_]
        _warn_of_new_labels(corpus, known)
        if are_spans(known):
            return facts, _span_table(corpus.tags, predicted)
        return facts, class_table(truth, guessed, np.array(sorted({*known, *corpus.labels})))

    def confusion(self, model, corpus):
        return confusion_table(_flat(corpus.tags), _flat(_tagged(model, corpus)))


def _tagged(model, corpus):
    """What the model says of the sentences."""
    return [list(map(str, labels)) for labels in model.predict(corpus.X)]


def _flat(sentences):
    """The labels of all tokens, (N,)."""
    import numpy as np

    return np.array([label for labels in sentences for label in labels])


def _answers(model, X, probabilities, nbest):
    """For each sentence a list of (heading or None, cells of each token)."""
    if not X:
        return []
    shares = model.predict_marginals(X) if probabilities else [None] * len(X)
    if nbest is None:
        several = [[(None, labels)] for labels in model.predict(X)]
    else:
        several = [
            [(f"# {rank} {score:.6f}", labels) for rank, (labels, score) in enumerate(found, start=1)]
            for found in model.predict_nbest(X, nbest)
        ]
    places = {label: k for k, label in enumerate(model.classes_.tolist())}
    return [
        [(heading, _cells(labels, mu, places)) for heading, labels in found]
        for found, mu in zip(several, shares, strict=True)
    ]


def _cells(labels, mu, places):
    """What stands behind each token: its label and, if wanted, the probability of that."""
    if mu is None:
        return [(str(label),) for label in labels]
    return [(str(label), f"{mu[t, places[label]]:.6f}") for t, label in enumerate(labels)]


def _block(lines, answers):
    """The lines to print for a sentence: its own, blank ones included, with the cells behind."""
    if not answers:
        return lines
    heading, cells = answers[0]
    if lines is not None and heading is None:
        behind = iter(cells)
        return [_append(line, next(behind)) if line.strip() else line for line in lines]
    out, tokens = [], [""] * len(cells) if lines is None else [line for line in lines if line.strip()]
    for heading, cells in answers:
        out += [heading] if heading else []
        out += [_append(line, more) for line, more in zip(tokens, cells, strict=True)]
        out.append("")
    return out


def _append(line, cells):
    between = "\t" if "\t" in line or not line else " "
    return between.join([line.rstrip(), *cells] if line else cells)


def _warn_of_new_labels(corpus, known):
    new = [label for label in corpus.labels if label not in set(known)]
    if new:
        tokens = sum(label in new for labels in corpus.tags for label in labels)
        what = f"{count(len(new), 'label')} new to the model, counted as wrong ({count(tokens, 'token')})"
        say(f"fenchel: warning: {corpus.name} has {what}: {listed(new)}")


def _span_table(truth, predicted):
    from fenchel.spans import span_scores

    scores = span_scores(truth, predicted)
    columns = ["span", "precision %", "recall %", "F1 %", "true", "predicted", "right"]
    rows = [
        [name, *(f"{100 * share:.2f}" for share in (row.precision, row.recall, row.f1))]
        + [str(number) for number in (row.n_true, row.n_predicted, row.n_right)]
        for name, row in (("all", scores), *scores.types.items())
    ]
    return Table(columns, rows, numbers=set(columns[1:]))


# ---- inspect


def tagger_facts(model, attributes: str, weights) -> dict[str, str]:
    """Labels, attributes, and how many weights there are."""
    import numpy as np

    return {
        "labels": listed([str(label) for label in model.classes_], 30),
        "attributes": attributes,
        "weights": f"{weights.size:,}, {np.count_nonzero(weights):,} of them other than 0",
    }


def attribute_table(model, most: int) -> Table:
    """The heaviest attributes of each label."""
    import numpy as np

    names, rows = model.attribute_names_, []
    for label, weights in zip(model.classes_, model.coef_, strict=True):
        heaviest = np.argsort(-np.abs(weights), kind="stable")[:most]
        rows += [[str(label), names[a], f"{weights[a]:+.4f}"] for a in heaviest if weights[a]]
    return Table(["label", "attribute", "weight"], rows, {"weight"}, "heaviest attributes of each label")
