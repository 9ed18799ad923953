"""fenchel cv: how good a model of these settings is on data it was not trained on, by folds."""

import warnings

import click

from fenchel.cli import options
from fenchel.cli.failures import FAILED, Failure
from fenchel.cli.groups import KindGroup
from fenchel.cli.kinds import Kind
from fenchel.cli.output import print_json, print_table, say
from fenchel.cli.path import folds
from fenchel.cli.race import gap_cell
from fenchel.cli.training import read_training
from fenchel.report.tables import Table, mean_table, number

ABOUT = """Each of K folds is left out in its turn, a model is trained on the others and scored on it. Prints
score and proven gap of each fold, and the means over folds of the table that `evaluate` prints."""

AFTER = (
    "Exit code 0: every model is proven within tol of its optimum. 1: some are not. 2: wrong usage or input."
)


def _command(kind: Kind) -> click.Command:
    """fenchel cv KIND."""
    call = kind.calls.cv or kind.calls.train[0].partition(" ")[0] + " -k 5"
    example = f"\b\nExample:\n  fenchel cv {kind.name} {call}"
    text = f"Score models of {kind.file} by cross-validation.\n\n{ABOUT}\n\n{example}\n\n{AFTER}"

    @click.command(kind.name, help=text, short_help=kind.summary)
    @click.argument("data", type=options.FILE)
    @click.option(
        "-k", "--folds", "k", type=click.IntRange(min=2), default=5, metavar="K", help="How many folds."
    )
    @options.solver
    @options.together(*options.solving, options.quiet, options.json)
    @options.other_constant(kind.other_constant)
    @options.together(*kind.options)
    def command(data, k, quiet, as_json, **settings):
        training = read_training(kind, data, settings, quiet)
        if k > training.examples.n:
            raise Failure(f"-k {k} needs as many examples; there are {training.examples.n}")
        _cross_validate(training, k, settings["seed"], quiet, as_json)

    return command


@click.group(cls=KindGroup, make=_command, short_help="Score models by cross-validation.")
def cv():
    """Score models by cross-validation: each of K folds is left out of training in its turn.

    \b
    Example:
      fenchel cv crf train.txt -k 5 --template chunk

    `fenchel cv KIND --help` lists the options. `fenchel path --cv K` compares constants.
    """


def _cross_validate(training, k, seed, quiet, as_json):
    """Fit and score fold by fold; print; set the exit code."""
    kind, rows, tables, short = training.kind, [], [], 0
    measure = kind.measure(training.examples)
    for fold, (train, test) in enumerate(folds(kind.strata(training.examples), k, seed), start=1):
        model, held_out = _fitted(training.take(train)), training.examples.take(test)
        score = kind.score(model, held_out)
        say(f"fold {fold} of {k}: {measure} {score:.6g}", quiet)
        certificate = gap_cell(model.certificate_)
        rows.append([number(fold), number(held_out.n), number(score, ".6g"), certificate])
        tables.append(kind.scores(model, held_out)[1])
        short += not model.certificate_.converged
    columns = ["fold", f"{kind.noun}s", measure, "relative gap"]
    shown = [Table(columns, rows, set(columns), key="folds")]
    if tables[0] is not None:
        shown.append(mean_table(tables, f"means over {k} folds"))
    scores = [float(row[2]) for row in rows]
    mean = sum(scores) / k
    spread = (sum((score - mean) ** 2 for score in scores) / k) ** 0.5
    if as_json:
        print_json({"measure": measure, "mean": mean, "spread": spread}, shown)
    else:
        for table in shown:
            print_table(table)
        click.echo(f"\n{measure}  {mean:.6g} ± {spread:.4f}")
    if short:
        remedy = "raise --max-passes or --max-seconds"
        say(f"fenchel: warning: {short} of {k} models fell short of --tol; {remedy}")
        click.get_current_context().exit(FAILED)


def _fitted(part):
    """The model of the folds that are not left out."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # said at the end, in the words of options
        return part.model.fit_encoded(part.data)
