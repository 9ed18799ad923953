"""The kind `crf`: taggers, on column files or files of attributes. Chains of labels, log or hinge loss."""

import click

import fenchel
from fenchel.cli import options
from fenchel.cli.failures import Failure
from fenchel.cli.kinds.base import TERMINAL, WORDS, Calls, Weights
from fenchel.cli.kinds.tagging import Tagging, attribute_table, separator_of, tagger_facts
from fenchel.cli.kinds.transitions import transition_tables
from fenchel.cli.output import HASHED, count, escaped, source
from fenchel.cli.sentences import (
    FORMATS,
    iterate_lines,
    preset_for,
    read,
    read_beside,
    refuse_banned,
    tabs_alone,
)
from fenchel.cli.stored import Stored, is_folder, refuse_reading, shard_sentences, take_over
from fenchel.report.tables import Told


def _pair(_context, _parameter, values):
    """Each "A B" as a pair of labels."""
    pairs = [tuple(value.split()) for value in values]
    for value, pair in zip(values, pairs, strict=True):
        if len(pair) != 2:
            raise click.BadParameter(f'{value!r} is not two labels with a blank between, as "O I-NP".')
    return pairs or None


READING = (
    click.option(
        "--format",
        type=click.Choice(FORMATS),
        default=None,
        show_default="as DATA look",
        help="columns: a token a line, the label in the last column. crfsuite: label TAB attribute TAB ...",
    ),
    options.separator,
    click.option(
        "--template",
        default=None,
        show_default="pos for 2 columns, chunk for 3 (ner if labels are names: PER, LOC, ...), ner for 4",
        metavar="NAME|FILE",
        help="How columns become attributes: a preset (chunk, ner, pos), or a template of CRF++ or Wapiti.",
    ),
    options.count("--min-count", 1, "Leave out attributes that fewer tokens have."),
    options.hash_bits,
    options.flag("--bias", "Add a weight for each label."),
    options.flag("--boundaries", "Add weights for each label in first and in last place."),
)


class Chain(Tagging):
    """ChainCRF with a template over columns, or on attributes as they are given."""

    classes = ("ChainCRF",)
    makes = "a tagger: a conditional random field or, with --loss hinge, a max-margin network,"
    file = "the column file or CRFsuite file DATA"
    about = """A column file has a token a line, its columns between blanks or tabs, the label last, and a
    blank line behind each sentence. A template says what the tagger sees of the columns; `fenchel attributes`
    shows it. A CRFsuite file has lines label TAB attribute TAB ..., and is told from columns by its first
    lines (--format decides). Gzip is gunzipped, - is standard input. DATA may also be a folder that `fenchel
    shard crf` has written, for data larger than memory. With --valid the F1 of spans is reported if labels
    are of the kind B-NP I-NP O, else the accuracy; with --trace at every check."""
    calls = Calls(
        train=(
            "train.txt -o model.fenchel --template chunk --valid test.txt",
            'train.txt -o model.fenchel --ban "O I-NP" --c2 0.1 --min-count 2',
            "train.txt -o model.fenchel --observed --c1 0.1 --c2 0.1",
        ),
        race=("train.txt --template chunk --solvers eg,sdca,lbfgs --output race/",),
        path=("train.txt --template chunk --from 0.01 --to 10 --cv 5 -o best.fenchel",),
        shard=("part1.txt.gz part2.txt.gz -o shards/ --template chunk --min-count 2",),
    )
    options = (
        *READING,
        click.option(
            "--loss",
            type=click.Choice(["log", "hinge"]),
            default="log",
            help="log: conditional random field. hinge: max-margin Markov network.",
        ),
        options.flag("--observed", "Weights only for attributes with labels they were seen with."),
        options.c1,
        click.option(
            "--ban",
            "banned",
            multiple=True,
            callback=_pair,
            metavar='"A B"',
            help='Label B never follows label A, as "O I-NP". May be given several times.',
        ),
    )
    shard_options = READING
    arguments = (
        "template",
        "loss",
        "min_count",
        "hash_bits",
        "observed",
        "c1",
        "bias",
        "boundaries",
        "banned",
    )
    other_constant = "c2"

    # ---- training

    def estimator(self, settings):
        _require_columns(settings)
        return super().estimator(settings)

    def shard(self, paths, folder, settings):
        _require_columns(settings)
        return shard_sentences(paths, folder, settings, tabs_alone(settings["separator"]))

    def settings_of(self, model):
        """Its template as it was, whether or not the file of that name is still there."""
        own = super().settings_of(model)
        if model.source_.kind == "template":
            template = model.source_.extractor.template
            own["template"] = template.name if template.dialect == "preset" else template
        return own

    def read(self, path, settings):
        if is_folder(path):
            refuse_reading(path, ("format", "separator"))
            return Stored.of(path, "sequences", self.name)
        format = "columns" if settings["template"] else settings["format"]
        return read(path, format, tabs_alone(settings["separator"]))

    def read_like(self, path, examples, settings):
        return read_beside(path, examples)

    def encode(self, model, examples):
        """By the template that goes with the columns and the labels, unless there is one."""
        if isinstance(examples, Stored):
            take_over(model, examples.shards, ("min_count", "hash_bits", "bias", "boundaries"))
            model.read_as = {"separator": "tab"} if examples.separator else {}
            return model.encode_training(examples.shards)
        if examples.columns and not model.template:
            model.template = preset_for(examples)
            if not model.template:
                columns = f"{examples.columns} columns"
                raise Failure(f"{examples.name}: there is no default for {columns}; give --template")
        refuse_banned(examples, model.banned)
        return model.encode_training(examples.X, examples.y, examples.weight)

    def clone_for(self, model, part):
        """The estimator without bans of labels that a part of the data does not have."""
        known = set(part.labels)
        banned = [pair for pair in model.banned or () if known.issuperset(pair)]
        return super().clone_for(model, part).set_params(banned=banned or None)

    def sizes(self, model, examples, data):
        extractor = getattr(data.source, "extractor", None)
        by = f" by the template {extractor.template.name}" if extractor else ""
        attributes = data.sequences.rows.n_columns + data.sequences.edges.n_columns
        sentences = f"{count(examples.n, 'sentence')}, {count(data.codes.size, 'token')}"
        columns = f", {count(examples.columns, 'column')}" if examples.columns else ""
        labels = count(len(examples.labels), "label")
        return f"{sentences}{columns}, {labels}, {count(attributes, 'attribute')}{by}"

    # ---- fitted models

    def read_for(self, model, path):
        if not _has_columns(model):
            return read(path, "crfsuite")
        corpus, wanted = read(path, "columns", separator_of(model)), model.source_.extractor.n_columns + 1
        if corpus.columns != wanted:
            found = f"{corpus.name}: {count(corpus.columns, 'column')}"
            raise Failure(f"{found}, but the model was trained on {wanted}, the label being the last")
        return corpus

    def sentences(self, model, path):
        return _column_sentences(model, path) if _has_columns(model) else _attribute_sentences(path)

    def inspect(self, model, top, width=TERMINAL):
        """Labels and sizes; transitions; the heaviest attributes of each label."""
        attributes, edges = model.sizes_
        words = f"{attributes:,}" + (f", and {edges:,} of pairs of labels" if edges else "")
        counted = Told({"count": attributes, "of_pairs": edges}, words)
        facts = tagger_facts(model, counted, model.weights_)
        if model.source_.kind == "template":
            extractor = model.source_.extractor
            facts["read as"] = f"{extractor.n_columns + 1} columns, template {extractor.template.name}"
        if model.hash_bits is not None:
            return facts | {"hashed": HASHED}, transition_tables(model, width)
        return facts, [*transition_tables(model, width), attribute_table(model, top)]

    def weights(self, model):
        labels, edges = model.classes_.tolist(), model.source_.edge_names()
        names = model.attribute_names_ if model.hash_bits is None else range(model.sizes_[0])
        return [
            Weights("transition", labels, labels, model.transitions_),
            *(
                Weights(f"pair\t{escaped(name)}", labels, labels, table)
                for name, table in zip(edges, model.edge_coef_, strict=True)
            ),
            Weights("feature", names, labels, model.coef_.T),
        ]

    def compile(self):
        X = [[[word] for word in sentence] for sentence in WORDS]
        for observed in (False, True):
            model = fenchel.ChainCRF(observed=observed).fit(X, WORDS)
            model.predict(X)
            model.predict_marginals(X)


def _require_columns(settings):
    """Refuse options that do not go with CRFsuite's files."""
    if settings["template"] and settings["format"] == "crfsuite":
        raise click.UsageError("--template goes with columns; a CRFsuite file has its attributes already.")
    if settings["separator"] == "tab" and settings["format"] == "crfsuite":
        raise click.UsageError("--separator goes with columns; a CRFsuite file always has tabs.")


def _has_columns(model):
    """Whether a model reads column files; if not, it reads attributes."""
    features = model.source_
    if features.kind == "numbered" or (features.kind == "named" and features.function is not None):
        raise Failure("the model was trained in Python on what no file holds; use it there, by fenchel.load")
    return features.kind == "template"


def _column_sentences(model, path):
    """(lines, list of tuples of strings) of each sentence, without the label's column if there is one."""
    wanted = model.source_.extractor.n_columns
    for lines, tokens in iterate_lines(path, separator_of(model)):
        if tokens is None:
            yield lines, None
            continue
        if tokens.n_columns not in (wanted, wanted + 1):
            found = f"{source(path)}: {count(tokens.n_columns, 'column')}"
            raise Failure(
                f"{found}, but the model was trained on {wanted + 1}; give those, or all but the label"
            )
        yield lines, [token[:wanted] for token in next(tokens.sentences())]


def _attribute_sentences(path):
    from fenchel.io.crfsuite import iterate_crfsuite

    for sequence in iterate_crfsuite(path):
        yield None, sequence.attributes
