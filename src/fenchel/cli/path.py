"""fenchel path: one problem for a whole sequence of constants, with validation scores."""

import dataclasses
from math import isfinite, isnan, nan

import click

from fenchel.cli import options
from fenchel.cli.failures import FAILED, Failure, writing
from fenchel.cli.groups import KindGroup, kind_help
from fenchel.cli.kinds import Kind
from fenchel.cli.output import key_of, print_facts, print_json, print_table, say
from fenchel.cli.progress import gap_bar
from fenchel.cli.race import gap_cell, solve_limits, warm_up
from fenchel.cli.traces import draw, save_trace, trace_folder
from fenchel.cli.train import REMEDIES, require_places
from fenchel.cli.training import Training, read_held_out, read_training
from fenchel.report.tables import Table, Told, number
from fenchel.trace import Status

PICTURE = "path.png"

ABOUT = """Each model starts from the one before. Prints a table: passes, seconds, proven gap and, with
--valid or --cv, the score of each constant (accuracy, or of spans F1); then the best. --max-passes and
--max-seconds hold for each constant."""

AFTER = """Exit code 0: every model is proven within tol of its optimum. 1: some are not. 2: wrong usage or
input."""


def _finite(_context, _parameter, value):
    if not isfinite(value):
        raise click.BadParameter(f"{value} is not a finite number.")
    return value


path_options = options.together(
    click.option(
        "--from",
        "first",
        type=options.POSITIVE,
        default=0.001,
        callback=_finite,
        metavar="FLOAT",
        help="One end of the constants, as in C Σ loss + ½‖w‖².",
    ),
    click.option(
        "--to",
        "last",
        type=options.POSITIVE,
        default=100.0,
        callback=_finite,
        metavar="FLOAT",
        help="The other end.",
    ),
    options.count("--steps", 11, "How many constants, each the same multiple of the one before."),
    options.valid,
    click.option(
        "--cv",
        type=click.IntRange(min=2),
        metavar="K",
        help="Instead: the mean score of K folds, each left out of training in its turn.",
    ),
    options.solver,
    *options.limits,
    click.option(
        "-o",
        "--output",
        type=options.FILE,
        metavar="MODEL",
        help="Write a model: of the highest score or, without --valid or --cv, the last.",
    ),
    click.option(
        "--traces",
        type=options.FILE,
        metavar="DIR",
        help="Write DIR/C-0.1.jsonl (a trace per constant) and DIR/path.png (a plot).",
    ),
    options.quiet,
    options.json,
)


def _command(kind: Kind) -> click.Command:
    """fenchel path KIND."""
    what = "constants, from strong to weak regularisation"
    before = f"Train on {kind.file} for a whole sequence of {what}.\n\n{ABOUT}"

    @click.command(kind.name, help=kind_help(kind, "path", before, AFTER), short_help=kind.summary)
    @click.argument("data", type=options.FILE)
    @path_options
    @options.choice_of_constant(kind.other_constant)
    @options.together(*kind.options)
    def command(data, valid, cv, output, traces, quiet, as_json, constant="C", **settings):
        if valid and cv:
            raise click.UsageError("--valid and --cv are two ways to measure accuracy; give one of them.")
        require_places((output,), (data, valid, settings.get("template")))
        trace_folder(traces, PICTURE)
        options.require_one_stdin(data, valid)
        training = read_training(kind, data, settings, quiet)
        if cv and cv > training.examples.n:
            raise Failure(f"--cv {cv} needs as many examples; there are {training.examples.n}")
        held_out = read_held_out(training, valid, settings, quiet)
        fits, scores = _fit_and_score(training, held_out, constant, cv, settings, quiet)
        best = _show(training, constant, fits, scores, as_json)
        if traces:
            _write_traces(traces, constant, fits, settings)
        if output:
            _save(training.fitted(constant, fits[best]), output, quiet)
        _finish(fits, cv and len(scores[0]) < cv, settings)

    return command


@click.group(cls=KindGroup, make=_command, short_help="Train for a sequence of constants and compare.")
def path():
    """Train for a whole sequence of constants, from strong to weak regularisation.

    \b
    Example:
      fenchel path lr train.svm --from 0.001 --to 100 --cv 5 -o best.fenchel

    `fenchel path KIND --help` lists the options.
    """


def _fit_and_score(training: Training, held_out, constant, cv, settings, quiet):
    """The fit of every constant, and for each the list of its scores, NaN where there is nothing to score."""
    problem = training.problem()
    warm_up(training.few().problem(), _solver(problem, settings))
    validate = held_out and training.validation(held_out)
    fits = _fit_all(problem, validate, constant, settings, quiet, tell=True)
    if cv and not _interrupted(fits):
        return fits, _cross_validate(training, cv, constant, settings, quiet)
    return fits, [[fit.score] for fit in fits]


def _show(training: Training, constant, fits, scores, as_json) -> int:
    """Print the table and the best constant; the number of that, or without scores of the last."""
    measure, best = training.kind.measure(training.examples), _best(scores)
    table, facts = _table(constant, measure, fits, scores), {}
    if best is not None:
        value, score = fits[best].constant, _mean(scores[best])
        told = {key_of(constant): value, key_of(measure): score}
        facts = {"best": Told(told, f"{constant} = {value:g}, {measure} {score:.6g}")}
    if as_json:
        print_json({"measure": measure} | facts, [table])
    else:
        print_table(table)
        if facts:
            click.echo()
            print_facts(facts)
    return -1 if best is None else best


def _solver(problem, settings):
    """One to compile with; `path` chooses anew for each constant."""
    from fenchel.choosing import as_solver, require

    solver = as_solver(settings["solver"], problem)
    require(problem, solver)
    return solver


def constants(settings) -> list[float]:
    """From one end to the other in equal factors; powers of ten come out as such."""
    import numpy as np

    values = np.geomspace(settings["first"], settings["last"], settings["steps"])
    return list(dict.fromkeys(float(f"{value:.12g}") for value in values))


def _fit_all(problem, validate, constant, settings, quiet, tell=False):
    """The fits of all constants, from the strongest regulariser on."""
    from fenchel.paths import path as fit_path

    def after_fit(fit):
        say(f"{constant} = {fit.constant:g}: {fit.result.certificate}", quiet)

    with gap_bar(settings["tol"], quiet) as callbacks:
        fits = fit_path(
            problem,
            settings["solver"],
            seed=settings["seed"],
            **solve_limits(settings),
            validate=validate,
            callbacks=callbacks,
            after_fit=after_fit if tell else None,
            **{constant: constants(settings)},
        )
    return list(fits)


def _interrupted(fits):
    return fits[-1].result.status is Status.INTERRUPTED


def _cross_validate(training, k, constant, settings, quiet):
    """Of each constant, the scores on the folds left out; Ctrl-C leaves those of the folds done."""
    scores, strata = [], training.kind.strata(training.examples)
    for fold, (train, test) in enumerate(folds(strata, k, settings["seed"]), start=1):
        part = training.take(train)
        validate = part.validation(training.examples.take(test))
        fits = _fit_all(part.problem(), validate, constant, settings, quiet)
        if _interrupted(fits):
            break
        say(f"fold {fold} of {k}: {sum(fit.result.certificate.passes for fit in fits):.4g} passes", quiet)
        scores.append([fit.score for fit in fits])
    return list(zip(*scores, strict=True)) or [[nan]] * len(constants(settings))


def folds(strata, k: int, seed: int) -> list:
    """k pairs (train, test) of arrays of numbers: random, but of each stratum a like share in every fold."""
    import numpy as np

    order = np.random.default_rng(seed).permutation(len(strata))
    order = order[np.argsort(np.asarray(strata)[order], kind="stable")]
    number = np.empty(len(strata), dtype=int)
    number[order] = np.arange(len(strata)) % k
    return [(np.flatnonzero(number != fold), np.flatnonzero(number == fold)) for fold in range(k)]


def _mean(scores):
    return sum(scores) / len(scores)


def _best(scores):
    """Which constant has the highest score, of equals the most regularised; None without scores."""
    if isnan(scores[0][0]):
        return None
    return max(range(len(scores)), key=lambda k: _mean(scores[k]))


def _table(constant, measure, fits, scores):
    columns = [constant, "passes", "seconds", "objective", "relative gap", measure, "end"]
    rows = [_cells(fit, some) for fit, some in zip(fits, scores, strict=False)]
    if isnan(scores[0][0]):
        columns, rows = _without(columns, 5), [_without(row, 5) for row in rows]
    return Table(columns, rows, numbers=set(columns) - {"end"}, key="constants")


def _without(cells, k):
    return cells[:k] + cells[k + 1 :]


def _cells(fit, scores):
    import numpy as np

    certificate = fit.result.certificate
    spread = f" ± {np.std(scores):.4f}" if len(scores) > 1 else ""
    return [
        number(fit.constant, "g"),
        number(certificate.passes, ".4g"),
        number(certificate.seconds, ".3g"),
        number(certificate.primal, ".8g"),
        gap_cell(certificate),
        number(_mean(scores), ".6g", spread),
        certificate.status.value,
    ]


def _write_traces(traces, constant, fits, settings):
    folder = trace_folder(traces, PICTURE)
    named = []
    for fit in fits:
        result, value = fit.result, f"{fit.constant:g}"
        path = folder / f"{constant}-{value}.jsonl"
        save_trace(path, result.trace, result.certificate, settings | {constant: fit.constant})
        about = result.trace.problem.partition(", λ")[0]  # λ is another in each
        named.append(dataclasses.replace(result.trace, solver=f"{constant} = {value}", problem=about))
    draw(folder / PICTURE, named, settings["tol"], one_problem=False)


def _save(model, output, quiet):
    with writing(output):
        model.save(output)
    say(f"model written to {output}", quiet)


def _finish(fits, folds_missing, settings):
    """End with exit code 1 and a warning unless every constant reached tol and every fold was done."""
    short, wanted = [fit for fit in fits if not fit.result.certificate.converged], len(constants(settings))
    if short:
        remedy = REMEDIES[short[0].result.status]
        fell = f"{len(short)} of {wanted} constants fell short of --tol {settings['tol']:g}"
        say(f"fenchel: warning: {fell}; to reach it, {remedy}")
    if len(fits) < wanted or folds_missing:
        say("fenchel: warning: interrupted; the table shows what was done")
    if short or len(fits) < wanted or folds_missing:
        click.get_current_context().exit(FAILED)
