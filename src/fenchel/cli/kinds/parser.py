"""The kind `parser`: heads of words, from a treebank."""

from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import NamedTuple

import click

import fenchel
from fenchel.cli import options
from fenchel.cli.kinds.base import TERMINAL, Calls, Kind, Weights
from fenchel.cli.kinds.classes import class_table, confusion_table, weights_fact
from fenchel.cli.output import HASHED, certificate_fact, count, json_line
from fenchel.cli.stored import Stored, is_folder, refuse_reading, shard_treebanks, take_over
from fenchel.report.tables import Table, Told, number

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


READING = (
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


class Parser(Kind):
    """DependencyParser on CoNLL-X, CoNLL-U and three-column files."""

    classes = ("DependencyParser",)
    summary = "Heads of words, from a treebank."
    makes = "a dependency parser: a conditional random field or, with --loss hinge, a max-margin model,"
    file = "the treebank DATA"
    about = """DATA is of the format CoNLL-X or CoNLL-U, ten columns with tabs between, or has a word, its tag
    and its head on a line. Trees whose arcs cross are left out, and counted. Where DATA have labels of arcs a
    second model learns those. Gzip is gunzipped, - is standard input. DATA may also be a folder that `fenchel
    shard parser` has written, for data larger than memory. With --valid the share of right heads (UAS) is
    reported; with --trace at every check."""
    calls = Calls(
        train=(
            "train.conllu -o parser.fenchel --valid dev.conllu",
            "train.conll -o parser.fenchel -C 0.3 --tags coarse --no-labels",
        ),
        race=("train.conll --solvers eg-gap,lbfgs,sgd --tol 0.01 --output race/",),
        path=("train.conll --from 0.01 --to 1 --steps 7 --valid dev.conll -o best.fenchel",),
        shard=("part1.conllu.gz part2.conllu.gz -o shards/ --min-count 5",),
    )
    options = (
        options.loss,
        *READING,
    )
    shard_options = READING
    arguments = ("loss", "min_count", "observed", "hash_bits", "single_root")
    reads = frozenset({"nbest"})
    noun = "sentence"

    # ---- training

    def estimator(self, settings):
        model = super().estimator(settings)
        model.read_as = {"tags": settings["tags"], "single_root": settings["single_root"]}
        return model

    def shard(self, paths, folder, settings):
        return shard_treebanks(paths, folder, settings)

    def read(self, path, settings):
        if is_folder(path):
            refuse_reading(path, ("tags",))
            return replace(Stored.of(path, "trees", self.name), labelled=settings["labels"])
        found = _read(path, settings["tags"], settings["single_root"])
        return found if settings["labels"] else Trees(found.X, found.y, None)

    def read_like(self, path, examples, settings):
        tags = examples.read_as["tags"] if isinstance(examples, Stored) else settings["tags"]
        return _read(path, tags, False)

    def encode(self, model, examples):
        if isinstance(examples, Stored):
            take_over(model, examples.shards, ("min_count", "observed", "hash_bits", "single_root"))
            model.read_as = examples.read_as
            data = model.encode_training(examples.shards)
            return data if examples.labelled else data.without_labels()
        return model.encode_training(examples.X, examples.y, examples.labels)

    def sizes(self, model, examples, data):
        crossing = len(data.left_out)
        left = f" ({crossing} with arcs that cross left out)" if crossing else ""
        labels = "" if data.classes is None else f", {count(data.classes.size, 'label')}"
        stored = isinstance(examples, Stored)  # where those left out are not counted
        words = count(data.heads.size if stored else examples.X.n_tokens, "word")
        features = count(data.features.n_columns, "feature")
        sentences = count(examples.n + crossing * stored, "sentence")
        return f"{sentences}{left}, {words}, {features}{labels}"

    def measure(self, examples):
        return "UAS"

    # ---- fitted models

    def why_no_probabilities(self, model, form):
        if form.probabilities and not form.json:
            return "words have no common list of heads; --marginals gives that of each head, --json has all"
        return super().why_no_probabilities(model, form)

    def predict(self, model, path, given, form):
        """The lines of the file with heads, and labels where the model has some, in their columns."""
        from fenchel.io.treebanks import iterate_sentences

        sentences, tags = iterate_sentences(path), model.read_as.get("tags", "fine")
        while some := list(islice(sentences, 1 if path == "-" else BATCH)):
            X = [one.tokens(tags) for one in some if one.fields]
            shares = iter(model.predict_marginals(X) if form.shares and X else [None] * len(X))
            trees, lines = iter(_trees(model, X, given.get("nbest")) if X else []), []
            for one in some:
                if one.fields:
                    lines += _block(one, next(trees), next(shares), form)
                elif not (form.labels_only or form.json):
                    lines += one.lines
            if lines:
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
        counts = {"count": examples.n, "right": whole}
        facts = {"sentences": Told(counts, f"{examples.n}, {whole} of them with all heads right")}
        columns = ["words", "number", "UAS %", *(["LAS %"] if labelled else [])]
        rows = [
            [name, number(n), *(number(100.0 * share, ".2f") for share in found if share is not None)]
            for name, (n, *found) in scores.items()
        ]
        return facts, Table(columns, rows, numbers=set(columns[1:]), key="words")

    def details(self, model, examples):
        """Heads by the length of the arc; scores of labels, and which were taken for which."""
        import numpy as np

        from fenchel.metrics import scores_by_length

        heads = model.predict(examples.X)
        columns = ["distance to the head", "precision", "recall", "F1", "true arcs"]
        rows = [
            [name, *(number(score, ".4f") for score in scores), number(arcs)]
            for name, (*scores, arcs) in scores_by_length(examples.y, heads).items()
        ]
        tables = [Table(columns, rows, set(columns[1:]), "heads by the length of the arc", key="lengths")]
        if model.labels_ is None or examples.labels is None:
            return tables
        both = examples.labels, model.predict_labels(examples.X, examples.y)
        truth, guessed = (np.array(list(chain.from_iterable(some))) for some in both)
        named = class_table(truth, guessed, None), confusion_table(truth, guessed)
        named[0].title = "labels of the true arcs"
        return [*tables, *named]

    def inspect(self, model, top, width=TERMINAL):
        """Words, tags and labels; the heaviest features."""
        import numpy as np

        features, w, hashed = model.features_, model.coef_, model.hash_bits is not None
        met = {"words": number(len(features.words), ","), "tags": number(len(features.tags), ",")}
        facts = {
            **({"hashed": HASHED} if hashed else met),
            "weights": weights_fact(w),
            "left out": Told(
                len(model.left_out_), f"{count(len(model.left_out_), 'sentence')} with arcs that cross"
            ),
        }
        if model.labels_ is not None:
            labels = [str(label) for label in model.labels_.classes]
            facts["labels"] = Told(labels, ", ".join(labels))
            facts["certificate of labels"] = certificate_fact(model.labels_.certificate)
        if hashed:
            return facts, []
        heaviest = np.argsort(-np.abs(w), kind="stable")[:top]
        rows = [[features.name_of_column(int(j)), number(w[j], "+.4f")] for j in heaviest]
        return facts, [Table(["feature", "weight"], rows, {"weight"}, "heaviest features", key="features")]

    def weights(self, model):
        return [Weights("feature", model.features_.names(), [None], model.coef_[:, None])]

    def compile(self):
        sentences, heads = [[("a", "A"), ("b", "B")], [("b", "B")]] * 3, [[2, 0], [0]] * 3
        model = fenchel.DependencyParser(min_count=1).fit(sentences, heads, [["x", "y"], ["y"]] * 3)
        model.predict_marginals(sentences), model.predict_labels(sentences), model.predict_nbest(sentences)


def _read(path, tags, single_root) -> Trees:
    from fenchel.io.treebanks import read_treebank

    found = read_treebank(path, tags=tags, single_root=single_root)
    return Trees(found.tokens, found.heads, found.labels)


class _Tree(NamedTuple):
    """A tree of a sentence: heads, labels of arcs or None, log-probability where several are asked for."""

    heads: list
    labels: list | None
    log_probability: float | None


def _trees(model, X, nbest):
    """For each sentence a list of _Trees."""
    several = (
        [[(heads, None)] for heads in model.predict(X)] if nbest is None else model.predict_nbest(X, nbest)
    )
    out = []
    for sentence, found in zip(X, several, strict=True):
        labels = [None] * len(found)
        if model.labels_ is not None:
            labels = model.predict_labels([sentence] * len(found), [heads for heads, _ in found])
        out.append([_Tree(heads, own, score) for (heads, score), own in zip(found, labels, strict=True)])
    return out


def _block(one, found, mu, form):
    """The lines of a sentence for each of its trees."""
    if form.json:
        return [_json(found, mu, form)]
    out = []
    for rank, tree in enumerate(found, start=1):
        several = tree.log_probability is not None
        own = None if mu is None else [mu[k, head] for k, head in enumerate(tree.heads)]
        lines = _bare(tree, own) if form.labels_only else _filled(one, tree, own)
        out += [*([f"# {rank} {tree.log_probability:.6f}"] if several else []), *lines]
        out += [""] if several and lines[-1].strip() else []
    return out


def _filled(one, tree, shares):
    """The lines of the file with the tree in their columns, and the probability of each head behind."""
    lines = one.with_tree(tree.heads, tree.labels)
    for place, p in zip(one.places, shares or (), strict=shares is not None):
        lines[place] += f"\t{p:.6f}"
    return lines


def _bare(tree, shares):
    """Of each word its head, label and probability of the head, where there are such; a blank line behind."""
    columns = [map(str, tree.heads)]
    columns += [map(str, tree.labels)] if tree.labels is not None else []
    columns += [(f"{p:.6f}" for p in shares)] if shares is not None else []
    return [*map("\t".join, zip(*columns, strict=True)), ""]


def _json(found, mu, form):
    """{"heads": [...], "labels": [...]}, with probabilities; or of several trees {"nbest": [...]}."""
    trees = []
    for tree in found:
        one = {"heads": tree.heads}
        if tree.labels is not None:
            one["labels"] = [str(label) for label in tree.labels]
        if tree.log_probability is not None:
            one["log_probability"] = tree.log_probability
        if mu is not None:
            own = [mu[k, head] for k, head in enumerate(tree.heads)]
            one["probabilities"] = mu.tolist() if form.probabilities else [float(p) for p in own]
        trees.append(one)
    return json_line(trees[0] if found[0].log_probability is None else {"nbest": trees})
