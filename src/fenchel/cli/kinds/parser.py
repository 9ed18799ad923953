"""The kind `parser`: heads of words, from a treebank."""

from dataclasses import dataclass
from itertools import islice

import click

import fenchel
from fenchel.cli import options
from fenchel.cli.kinds.base import Calls, Kind
from fenchel.cli.output import Table, count

BATCH = 200  # sentences of a file that are parsed at a time


@dataclass(frozen=True)
class Trees:
    """Sentences of a file with their heads, and labels of arcs or None."""

    X: object
    y: list
    labels: list | None

    @property
    def n(self) -> int:
        return len(self.y)

    def take(self, numbers) -> "Trees":
        """Some of the sentences, by their numbers."""
        labels = None if self.labels is None else [self.labels[i] for i in numbers]
        return Trees(self.X[numbers], [self.y[i] for i in numbers], labels)


class Parser(Kind):
    """DependencyParser on CoNLL-X, CoNLL-U and three-column files."""

    classes = ("DependencyParser",)
    summary = "Heads of words, from a treebank."
    makes = "a dependency parser: a conditional random field or, with --loss hinge, a max-margin model,"
    file = "the treebank DATA"
    about = """DATA is of the format CoNLL-X or CoNLL-U, ten columns with tabs between, or has a word, its tag
    and its head on a line. Trees whose arcs cross are left out, and counted. Where DATA have labels of arcs a
    second model learns those. Gzip is gunzipped, - is standard input. With --valid the share of right heads
    (UAS) is reported; with --trace at every check."""
    calls = Calls(
        train=(
            "train.conllu -o parser.fenchel --valid dev.conllu",
            "train.conll -o parser.fenchel -C 0.3 --tags coarse --no-labels",
        ),
        race=("train.conll --solvers eg-gap,lbfgs,sgd --tol 0.01 --output race/",),
        path=("train.conll --from 0.01 --to 1 --steps 7 --valid dev.conll -o best.fenchel",),
    )
    options = (
        options.loss,
        click.option(
            "--tags",
            type=click.Choice(["fine", "coarse"]),
            default="fine",
            help="Ten columns: POSTAG or XPOS (fine), or CPOSTAG or UPOS (coarse).",
        ),
        options.count("--min-count", 3, "Leave out features that fewer arcs have."),
        options.flag("--observed", "Weights only for features of true arcs."),
        click.option(
            "--hash-bits",
            type=click.IntRange(min=1, max=30),
            default=None,
            metavar="B",
            help="No table of features: 2^B weights, which features share by chance.",
        ),
        click.option(
            "--single-root/--multi-root",
            default=True,
            help="Whether only one word of a sentence has the root as its head.",
        ),
        click.option("--labels/--no-labels", default=True, help="Whether to learn the labels of arcs."),
    )
    arguments = ("loss", "min_count", "observed", "hash_bits", "single_root")
    reads = frozenset({"nbest"})
    noun = "sentence"

    # ---- training

    def estimator(self, settings):
        model = super().estimator(settings)
        model.read_as = {"tags": settings["tags"], "single_root": settings["single_root"]}
        return model

    def read(self, path, settings):
        found = _read(path, settings["tags"], settings["single_root"])
        return found if settings["labels"] else Trees(found.X, found.y, None)

    def read_like(self, path, examples, settings):
        return _read(path, settings["tags"], False)

    def encode(self, model, examples):
        return model.encode_training(examples.X, examples.y, examples.labels)

    def sizes(self, model, examples, data):
        crossing = len(data.left_out)
        left = f" ({crossing} with arcs that cross left out)" if crossing else ""
        labels = "" if data.classes is None else f", {count(data.classes.size, 'label')}"
        words = count(examples.X.n_tokens, "word")
        features = count(data.features.n_columns, "feature")
        return f"{count(examples.n, 'sentence')}{left}, {words}, {features}{labels}"

    def measure(self, examples):
        return "UAS"

    # ---- fitted models

    def predict(self, model, path, given, probabilities):
        """The lines of the file with heads, and labels where the model has some, in their columns."""
        from fenchel.io.treebanks import iterate_sentences

        sentences, tags = iterate_sentences(path), model.read_as.get("tags", "fine")
        while some := list(islice(sentences, 1 if path == "-" else BATCH)):
            X = [one.tokens(tags) for one in some]
            shares = model.predict_marginals(X) if probabilities else [None] * len(X)
            lines = []
            for one, found, mu in zip(some, _trees(model, X, given.get("nbest")), shares, strict=True):
                lines += _block(one, found, mu)
            yield "\n".join(lines)

    def labelled(self, model, path, given):
        return _read(path, model.read_as.get("tags", "fine"), False)

    def scores(self, model, examples):
        """UAS and LAS, with and without punctuation."""
        from fenchel.metrics import attachment_scores

        heads = model.predict(examples.X)
        labelled = model.labels_ is not None and examples.labels is not None
        labels = (examples.labels, model.predict_labels(examples.X, heads)) if labelled else (None, None)
        scores = attachment_scores(examples.X.column(0), examples.y, heads, *labels)
        whole = sum(a == b for a, b in zip(examples.y, heads, strict=True))
        facts = {"sentences": f"{examples.n}, {whole} of them with all heads right"}
        columns = ["words", "number", "UAS %", *(["LAS %"] if labelled else [])]
        rows = [
            [name, str(n), *(f"{100.0 * share:.2f}" for share in found if share is not None)]
            for name, (n, *found) in scores.items()
        ]
        return facts, Table(columns, rows, numbers=set(columns[1:]))

    def inspect(self, model, top):
        """Words, tags and labels; the heaviest features."""
        import numpy as np

        features, w = model.features_, model.coef_
        facts = {
            "words": f"{len(features.words):,}",
            "tags": f"{len(features.tags):,}",
            "weights": f"{w.size:,}, {np.count_nonzero(w):,} of them other than 0",
            "left out": f"{count(len(model.left_out_), 'sentence')} with arcs that cross",
        }
        if model.labels_ is not None:
            facts["labels"] = ", ".join(map(str, model.labels_.classes))
            facts["certificate of labels"] = str(model.labels_.certificate)
        heaviest = np.argsort(-np.abs(w), kind="stable")[:top]
        rows = [[features.name_of_column(int(j)), f"{w[j]:+.4f}"] for j in heaviest]
        return facts, [Table(["feature", "weight"], rows, {"weight"}, "heaviest features")]

    def compile(self):
        sentences, heads = [[("a", "A"), ("b", "B")], [("b", "B")]] * 3, [[2, 0], [0]] * 3
        model = fenchel.DependencyParser(min_count=1).fit(sentences, heads, [["x", "y"], ["y"]] * 3)
        model.predict_marginals(sentences), model.predict_labels(sentences), model.predict_nbest(sentences)


def _read(path, tags, single_root) -> Trees:
    from fenchel.io.treebanks import read_treebank

    found = read_treebank(path, tags=tags, single_root=single_root)
    return Trees(found.tokens, found.heads, found.labels)


def _trees(model, X, nbest):
    """For each sentence a list of (heading or None, heads, labels or None)."""
    several = (
        [[(heads, None)] for heads in model.predict(X)] if nbest is None else model.predict_nbest(X, nbest)
    )
    out = []
    for sentence, found in zip(X, several, strict=True):
        labels = [None] * len(found)
        if model.labels_ is not None:
            labels = model.predict_labels([sentence] * len(found), [heads for heads, _ in found])
        headings = [
            None if score is None else f"# {rank} {score:.6f}" for rank, (_, score) in enumerate(found, 1)
        ]
        out.append([(h, heads, own) for h, (heads, _), own in zip(headings, found, labels, strict=True)])
    return out


def _block(one, found, mu):
    """The lines of a sentence for each of its trees."""
    if not one.fields:
        return one.lines
    out = []
    for heading, heads, labels in found:
        lines = one.with_tree(heads, labels)
        for k, place in enumerate(one.places if mu is not None else ()):
            lines[place] += f"\t{mu[k, heads[k]]:.6f}"
        out += [*([heading] if heading else []), *lines]
        out += [""] if heading and lines[-1].strip() else []
    return out
