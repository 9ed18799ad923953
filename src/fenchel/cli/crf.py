"""The kind `crf`: taggers, on column files or files of attributes. Chains of labels, log or hinge loss."""

import time

import click

from fenchel.cli import options
from fenchel.cli.failures import Failure
from fenchel.cli.output import count, say, source
from fenchel.cli.path import Task, path_options, require_path, run_path
from fenchel.cli.race import race_options, run_race
from fenchel.cli.sentences import (
    FORMATS,
    PRESET_FOR,
    Corpus,
    are_spans,
    read,
    refuse_banned,
)
from fenchel.cli.tagging import evaluate, inspect, predict
from fenchel.cli.train import finish, fit_and_save, require_places, training_options

__all__ = ["READS", "TOP", "evaluate", "inspect", "path", "predict", "race", "train"]

READS = {"nbest"}
TOP = 5  # of each label


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
    click.option(
        "--observed", is_flag=True, help="Weights only for attributes with labels they were seen with."
    ),
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
    decides). Gzip is gunzipped, - is standard input. With --valid the F1 of spans is
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


# ---- scores


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
