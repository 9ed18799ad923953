"""The kind `crf`: taggers, on column files or files of attributes. Chains of labels, log or hinge loss."""

import time
from itertools import islice

import click

from fenchel.cli import options
from fenchel.cli.failures import Failure
from fenchel.cli.lr import class_table
from fenchel.cli.output import Table, count, listed, say, source
from fenchel.cli.path import Task, path_options, require_path, run_path
from fenchel.cli.race import race_options, run_race
from fenchel.cli.sentences import (
    FORMATS,
    PRESET_FOR,
    Corpus,
    are_spans,
    iterate_lines,
    read,
    refuse_banned,
)
from fenchel.cli.train import finish, fit_and_save, require_places, training_options

READS = {"nbest"}
BATCH = 1000  # sentences of a file that are labelled at a time
WIDTH = 100  # columns that a table of all transitions may have
SHOWN = 20  # transitions, where the table would be wider


def _pair(_context, _parameter, values):
    """Each "A B" as a pair of labels."""
    pairs = [tuple(value.split()) for value in values]
    for value, pair in zip(values, pairs, strict=True):
        if len(pair) != 2:
            raise click.BadParameter(f'{value!r} is not two labels with a blank between, as "O I-NP".')
    return pairs or None


data_options = options.together(
    click.option(
        "--format",
        type=click.Choice(FORMATS),
        default=None,
        show_default="as DATA look",
        help="columns: a token a line, the label in the last column. crfsuite: label TAB attribute TAB ...",
    ),
    click.option(
        "--template",
        default=None,
        show_default="pos for 2 columns, chunk for 3, ner for 4",
        metavar="NAME|FILE",
        help="How columns become attributes: a preset (chunk, ner, pos) or a template of CRF++ or Wapiti.",
    ),
    click.option(
        "--loss",
        type=click.Choice(["log", "hinge"]),
        default="log",
        help="log: conditional random field. hinge: max-margin Markov network.",
    ),
    click.option(
        "--min-count",
        type=click.IntRange(min=1),
        default=1,
        metavar="N",
        help="Leave out attributes that fewer tokens have.",
    ),
    click.option("--observed", is_flag=True, help="Weights only for attributes with labels they were seen with."),
    click.option("--bias", is_flag=True, help="Add a weight for each label."),
    click.option("--boundaries", is_flag=True, help="Add weights for each label in first and in last place."),
    click.option(
        "--ban",
        "banned",
        multiple=True,
        callback=_pair,
        metavar='"A B"',
        help='Label B never follows label A, as "O I-NP". May be given several times.',
    ),
)

c2_option = click.option(
    "--c2",
    type=options.NOT_NEGATIVE,
    default=None,
    show_default="-C holds",
    metavar="FLOAT",
    help="Instead of -C: CRFsuite's constant, as in Σ loss + c2 ‖w‖²; it is 1/(2C).",
)


@click.command(short_help="Labels of sequences, from a column file.")
@click.argument("data")
@training_options
@c2_option
@data_options
def train(data, output, valid, trace, quiet, **settings):
    """Train a tagger on DATA: a conditional random field or, with --loss hinge, a max-margin network.

    DATA is a column file: a token a line, its columns between blanks or tabs, the label last, a blank line
    behind each sentence. A template says what the tagger sees of the columns; `fenchel attributes` shows it.
    Or it is a CRFsuite file: label TAB attribute TAB ..., told from columns by its first lines (--format
    decides). A name that ends in .gz is gunzipped, - is standard input. With --valid the F1 of spans is
    reported if labels are of the kind B-NP I-NP O, else the accuracy; with --trace at every check.

    \b
    Example:
      fenchel train crf train.txt -o model.fenchel --template chunk --valid test.txt
      fenchel train crf train.txt -o model.fenchel --ban "O I-NP" --c2 0.1 --min-count 2

    Exit code 0: proven within tol of the optimum. 1: not converged or interrupted, the model is saved all
    the same. 2: wrong usage or wrong input.
    """
    require_places(output, trace, (data, valid, settings["template"]))
    options.require_one_stdin(data, valid)
    corpus, model = _prepare(data, settings)
    encoded = _encode(model, corpus, quiet)
    held_out = valid and _read_beside(valid, corpus)
    fit_and_save(
        model,
        lambda: model.fit_encoded(encoded),
        output=output,
        trace=trace,
        quiet=quiet,
        validate=held_out and _validation(model, encoded, held_out),
    )
    if held_out:
        say(f"{_measure(corpus.labels)} {_score(model, held_out):.6g} on {source(valid)}", quiet)
    finish(model, output)


@click.command(short_help="Labels of sequences, from a column file.")
@click.argument("data")
@race_options
@c2_option
@data_options
def race(data, solvers, output, quiet, **settings):
    """Run several solvers on the same problem, made of the column file or CRFsuite file DATA.

    Prints a table, the first to reach tol on top. Seconds are the solver's own: neither compiling nor
    checking the gap is counted. --max-passes and --max-seconds hold for each solver.

    \b
    Example:
      fenchel race crf train.txt --template chunk --solvers eg,sdca,lbfgs --output race/

    Exit code 0: all converged. 1: some did not. 2: wrong usage or wrong input.
    """
    corpus, model = _prepare(data, settings)
    problem = model.problem(_encode(model, corpus, quiet))
    run_race(problem, _few(model, corpus), solvers, output, quiet, settings | {"C": model.C})


@click.command(short_help="Labels of sequences, from a column file.")
@click.argument("data")
@path_options
@click.option(
    "--constant",
    type=click.Choice(["C", "c2"]),
    default="C",
    help="What goes from --from to --to: C, or CRFsuite's c2 as in Σ loss + c2 ‖w‖².",
)
@data_options
def path(data, valid, cv, output, traces, quiet, constant, **settings):
    """Train on the column file or CRFsuite file DATA for a whole sequence of constants, strong to weak.

    Each model starts from the one before. Prints a table: passes, seconds, proven gap and, with --valid or
    --cv, the score of each constant (F1 of spans if labels are of the kind B-NP I-NP O, else accuracy); then
    the best. Each fold learns its attributes anew. --max-passes and --max-seconds hold for each constant.

    \b
    Example:
      fenchel path crf train.txt --template chunk --from 0.01 --to 10 --cv 5 -o best.fenchel

    Exit code 0: every model is proven within tol of its optimum. 1: some are not. 2: wrong usage or input.
    """
    require_path(output, traces, data, valid, cv)
    options.require_one_stdin(data, valid)
    corpus, model = _prepare(data, settings)
    held_out = valid and _read_beside(valid, corpus)
    run_path(_path_task(model, corpus, held_out, constant, quiet), settings, cv, output, traces, quiet)


def _path_task(model, corpus, held_out, constant, quiet):
    import numpy as np
    from sklearn.base import clone

    encoded = _encode(model, corpus, quiet)

    def fold(train, test):
        part = corpus.take(train)
        known = _clone_for(model, part)
        numbers = _encode(known, part)
        return known.problem(numbers), _validation(known, numbers, corpus.take(test))

    def fitted(fit):
        best = clone(model).set_params(C=fit.constant if constant == "C" else _C_of(fit.constant))
        best._remember(fit.result)
        return best.set_weights(encoded, fit.result.w)

    return Task(
        problem=model.problem(encoded),
        small=_few(model, corpus),
        strata=np.zeros(len(corpus.y), dtype=int),
        fold=fold,
        fitted=fitted,
        validate=held_out and _validation(model, encoded, held_out),
        constant=constant,
        measure=_measure(corpus.labels),
    )


# ---- predict


def predict(model, data, given, probabilities):
    """Of a column file its own lines with the label behind; of a CRFsuite file labels alone.

    Yields a sentence at a time where they come in one by one, from standard input.
    """
    sentences = _column_sentences(model, data) if _has_columns(model) else _attribute_sentences(data)
    while some := list(islice(sentences, 1 if data == "-" else BATCH)):
        answers = iter(_answers(model, [X for _, X in some if X is not None], probabilities, given.get("nbest")))
        blocks = [_block(lines, next(answers) if X is not None else ()) for lines, X in some]
        yield "\n".join(line for block in blocks for line in block)


def _column_sentences(model, data):
    """(lines, list of tuples of strings) of each sentence, without the label's column if there is one."""
    wanted = model.source_.extractor.n_columns
    for lines, tokens in iterate_lines(data):
        if tokens is None:
            yield lines, None
            continue
        if tokens.n_columns not in (wanted, wanted + 1):
            found = f"{source(data)}: {count(tokens.n_columns, 'column')}"
            raise Failure(f"{found}, but the model was trained on {wanted + 1}; give those, or all but the label")
        yield lines, [token[:wanted] for token in next(tokens.sentences())]


def _attribute_sentences(data):
    from fenchel.io.crfsuite import iterate_crfsuite

    for sequence in iterate_crfsuite(data):
        yield None, sequence.attributes


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


# ---- evaluate


def evaluate(model, data, given):
    """Accuracy, and the scores of each type of span as conlleval gives them, else of each label."""
    import numpy as np

    corpus = _read_for(model, data)
    predicted = _predict_text(model, corpus)
    truth, guessed = (np.array([label for labels in y for label in labels]) for y in (corpus.y, predicted))
    whole = sum(a == b for a, b in zip(corpus.y, predicted, strict=True)) / len(corpus.y)
    facts = {
        "sentences": f"{len(corpus.y)}",
        "tokens": f"{truth.size}",
        "accuracy": f"{np.mean(truth == guessed):.6g}",
        "all right": f"{whole:.6g} of the sentences",
    }
    known = [str(label) for label in model.classes_]
    _warn_of_new_labels(corpus, known)
    if are_spans(known):
        return facts, _span_table(corpus.y, predicted)
    return facts, class_table(truth, guessed, np.array(sorted({*known, *corpus.labels})))


def _warn_of_new_labels(corpus, known):
    new = [label for label in corpus.labels if label not in set(known)]
    if new:
        tokens = sum(label in new for labels in corpus.y for label in labels)
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


def inspect(model, top):
    """Labels and sizes; transitions; the heaviest attributes of each label."""
    import numpy as np

    weights, labels = model.weights_, [str(label) for label in model.classes_]
    edges = model.sizes_[1]
    facts = {
        "labels": listed(labels, 30),
        "attributes": f"{model.sizes_[0]:,}" + (f", and {edges:,} of pairs of labels" if edges else ""),
        "weights": f"{weights.size:,}, {np.count_nonzero(weights):,} of them other than 0",
    }
    if _has_columns(model, strict=False):
        extractor = model.source_.extractor
        facts["read as"] = f"{extractor.n_columns + 1} columns, template {extractor.template.name}"
    most = 5 if top is None else top
    return facts, *_transition_tables(model, labels), _attribute_table(model, labels, most)


def _transition_tables(model, labels):
    """All transitions, or the heaviest where there are too many to see; none if the model has none."""
    table = model.transitions_
    if not table.any():
        return []
    banned = {tuple(pair) for pair in model.banned or ()}

    def cell(a, b):
        return "banned" if (model.classes_[a], model.classes_[b]) in banned else f"{table[a, b]:+.2f}"

    if sum(max(len(label), 6) + 3 for label in ["from \\ to", *labels]) <= WIDTH:
        rows = [[label, *(cell(a, b) for b in range(len(labels)))] for a, label in enumerate(labels)]
        title = "transitions, from the label of the row to that of the column"
        return [Table(["from \\ to", *labels], rows, set(labels), title)]
    heaviest = sorted(_pairs(len(labels)), key=lambda pair: -abs(table[pair]))[:SHOWN]
    rows = [[labels[a], labels[b], cell(a, b)] for a, b in heaviest]
    title = f"heaviest transitions ({len(rows)} of {table.size:,})"
    return [Table(["from", "to", "weight"], rows, {"weight"}, title)]


def _pairs(K):
    return [(a, b) for a in range(K) for b in range(K)]


def _attribute_table(model, labels, most):
    import numpy as np

    names, rows = model.attribute_names_, []
    for label, weights in zip(labels, model.coef_, strict=True):
        heaviest = np.argsort(-np.abs(weights), kind="stable")[:most]
        rows += [[label, names[a], f"{weights[a]:+.4f}"] for a in heaviest if weights[a]]
    return Table(["label", "attribute", "weight"], rows, {"weight"}, "heaviest attributes of each label")


# ---- settings and data


def _prepare(data, settings):
    """The sentences of DATA, and the estimator that shall be fitted to them."""
    template, format = settings["template"], settings["format"]
    if template and format == "crfsuite":
        raise click.UsageError("--template goes with columns; a CRFsuite file has its attributes already.")
    corpus = read(data, "columns" if template else format)
    if corpus.columns and not template:
        template = PRESET_FOR.get(corpus.columns)
        if not template:
            raise Failure(f"{corpus.name}: there is no default for {corpus.columns} columns; give --template")
    refuse_banned(corpus, settings["banned"])
    return corpus, _estimator(settings, template)


def _estimator(settings, template):
    from fenchel.estimators.chain import ChainCRF

    chosen = options.estimator_settings(settings)
    if settings.get("c2") is not None:
        if options.given("C"):
            raise click.UsageError("-C and --c2 are two ways to say the same; give one of them.")
        chosen["C"] = _C_of(settings["c2"])
    names = ("loss", "min_count", "observed", "bias", "boundaries", "banned")
    return ChainCRF(**chosen, template=template, **{name: settings[name] for name in names})


def _C_of(c2):
    """Σ loss + c2‖w‖² is C Σ loss + ½‖w‖² times a number."""
    return 0.5 / c2 if c2 else float("inf")


def _encode(model, corpus: Corpus, quiet=True):
    """The corpus as numbers, its attributes learnt."""
    started = time.perf_counter()
    encoded = model.encode_training(corpus.X, corpus.y, corpus.weight)
    seconds = corpus.seconds + time.perf_counter() - started
    by = f" by the template {model.template}" if model.template else ""
    attributes = count(encoded.sequences.rows.n_columns + encoded.sequences.edges.n_columns, "attribute")
    say(f"{corpus.name}: {corpus.sizes()}, {attributes}{by}, read in {seconds:.2g} s", quiet)
    return encoded


def _clone_for(model, part):
    """The estimator without bans of labels that a part of the data does not have."""
    from sklearn.base import clone

    known = set(part.labels)
    banned = [pair for pair in model.banned or () if known.issuperset(pair)]
    return clone(model).set_params(banned=banned or None)


def _few(model, corpus, size=5):
    """The problem of a few sentences: enough to compile every kernel."""
    part = corpus.take(list(range(min(size, len(corpus.y)))))
    small = _clone_for(model, part).set_params(min_count=1)
    return small.problem(_encode(small, part))


def _read_beside(path, corpus):
    """Held-out sentences, of the format of the others."""
    held_out = read(path, "columns" if corpus.columns else "crfsuite")
    if held_out.columns != corpus.columns:
        found = f"{held_out.name}: {count(held_out.columns, 'column')}"
        raise Failure(f"{found}, expected {corpus.columns} as in {corpus.name}")
    return held_out


def _read_for(model, data):
    """Labelled sentences of the format a model was trained on."""
    if not _has_columns(model):
        return read(data, "crfsuite")
    corpus, wanted = read(data, "columns"), model.source_.extractor.n_columns + 1
    if corpus.columns != wanted:
        found = f"{corpus.name}: {count(corpus.columns, 'column')}"
        raise Failure(f"{found}, but the model was trained on {wanted}, the label being the last")
    return corpus


def _has_columns(model, strict=True):
    """Whether a model reads column files; if not, it reads attributes."""
    source_, named = model.source_, model.source_.kind == "named"
    if strict and (source_.kind == "numbered" or (named and source_.function is not None)):
        raise Failure("the model was trained in Python on what no file holds; use it there, by fenchel.load")
    return source_.kind == "template"


# ---- scores


def _predict_text(model, corpus):
    predicted = model.predict(corpus.X)
    if model.classes_.dtype.kind == "U":
        return predicted
    return [list(map(str, labels)) for labels in predicted]


def _measure(labels):
    return "F1" if are_spans(labels) else "accuracy"


def _score(model, corpus):
    """F1 of spans, or the fraction of labels that are right."""
    if not are_spans(model.classes_.tolist()):
        return model.score(corpus.X, corpus.y)
    from fenchel.spans import span_scores

    return span_scores(corpus.y, model.predict(corpus.X)).f1


def _validation(model, encoded, held_out):
    """validate(w, b) of `solve`: the score on held-out sentences."""
    from sklearn.base import clone

    judge = clone(model)
    return lambda w, b: _score(judge.set_weights(encoded, w), held_out)
