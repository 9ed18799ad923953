"""Options that several commands share, each with its meaning, default and unit."""

import click
from click.shell_completion import CompletionItem

from fenchel.solvers import SOLVERS, solver_class


class SolverName(click.ParamType):
    """A name of SOLVERS or "auto"; a wrong one is answered by the nearest right one."""

    name = "solver"

    def convert(self, value, param, ctx):
        if value == "auto" or value in SOLVERS:
            return value
        try:
            solver_class(value)
        except ValueError as error:  # it knows the nearest name
            self.fail(str(error), param, ctx)

    def shell_complete(self, ctx, param, incomplete):
        return [CompletionItem(name) for name in ("auto", *SOLVERS) if name.startswith(incomplete)]


class SolverNames(click.ParamType):
    """Names of SOLVERS with commas between, each once."""

    name = "solvers"

    def shell_complete(self, ctx, param, incomplete):
        before, comma, last = incomplete.rpartition(",")
        return [CompletionItem(f"{before}{comma}{name}") for name in SOLVERS if name.startswith(last)]

    def convert(self, value, param, ctx):
        if not isinstance(value, str):
            return value
        names = [name.strip() for name in value.split(",") if name.strip()]
        if not names:
            self.fail("no solver is named; `fenchel solvers` lists them", param, ctx)
        if "auto" in names:
            self.fail("'auto' is a choice among solvers; name those that shall race", param, ctx)
        for name in names:
            SolverName().convert(name, param, ctx)
        return tuple(dict.fromkeys(names))


FILE = click.Path(allow_dash=True)  # nothing is looked at but by the shell, which completes its name
POSITIVE = click.FloatRange(min=0.0, min_open=True)
NOT_NEGATIVE = click.FloatRange(min=0.0)


def count(name: str, default: int | None, help: str, **more):
    """An option that is a whole number, at least 1."""
    number = {"type": click.IntRange(min=1), "default": default, "metavar": "N"}
    return click.option(name, help=help, **number, **more)


def flag(name: str, help: str):
    """An option that is there or not."""
    return click.option(name, is_flag=True, help=help)


def together(*options):
    """One decorator out of several options, listed in this order by --help."""

    def decorate(command):
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


solver = click.option(
    "--solver",
    type=SolverName(),
    default="auto",
    metavar="NAME",
    help="Which solver trains; `fenchel solvers` lists them. auto chooses by loss and size.",
)
constant = click.option(
    "-C",
    "C",
    type=POSITIVE,
    default=1.0,
    metavar="FLOAT",
    help="Weight of the losses: minimises C Σ loss + ½‖w‖². inf means no regulariser, and no proof.",
)
tol = click.option(
    "--tol",
    type=NOT_NEGATIVE,
    default=1e-3,
    metavar="FLOAT",
    help="Stop when gap ≤ tol · objective; 0.001 is proven within 0.1 % of the optimum. No unit.",
)
max_passes = count("--max-passes", 1000, "Stop after so many passes over the data.")
max_seconds = click.option(
    "--max-seconds",
    type=NOT_NEGATIVE,
    default=None,
    show_default="no limit",
    metavar="S",
    help="Stop after so many seconds.",
)
seed = click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Seed of the random order of examples or features.",
)
threads = count(
    "--threads",
    None,
    "Threads for passes over all examples. The result does not depend on it.",
    show_default="all cores, where it pays",
)
loss = click.option(
    "--loss",
    type=click.Choice(["log", "hinge"]),
    default="log",
    help="log: logistic regression, maximum entropy. hinge: support vector machine.",
)
separator = click.option(
    "--separator",
    type=click.Choice(["blank", "tab"]),
    default="blank",
    show_default=True,
    help="What is between columns: blanks and tabs, or tabs alone, so that tokens may hold blanks.",
)

c1 = click.option(
    "--c1",
    type=NOT_NEGATIVE,
    default=None,
    show_default="no L1 term",
    metavar="FLOAT",
    help="With --c2: CRFsuite's constants, as in Σ loss + c1 ‖w‖₁ + c2 ‖w‖². Weights that do not pay are 0.",
)
l1_ratio = click.option(
    "--l1-ratio",
    type=click.FloatRange(0.0, 1.0),
    default=0.0,
    metavar="R",
    help="C Σ loss + R ‖w‖₁ + (1 − R)/2 ‖w‖²: with R > 0 weights that do not pay are exactly 0.",
)
init = click.option(
    "--init",
    type=FILE,
    metavar="MODEL",
    help="Go on from this model: from the weights of labels and features that DATA share with it. Options of "
    "the model that are not given (-C, --template, ...) are as it was trained.",
)
class_weight = click.option(
    "--class-weight",
    multiple=True,
    show_default="all examples weigh 1",
    metavar="LABEL=W|balanced",
    help="Examples of LABEL weigh W (LIBLINEAR's -wi); may be given several times. balanced: each class "
    "weighs the same in total, n / (classes · its examples) per example.",
)


def class_weights(words: tuple[str, ...], label=str) -> dict | str | None:
    """The estimator's class_weight of --class-weight; label makes a label of its text."""
    if not words or words == ("balanced",):
        return words[0] if words else None
    weights = {}
    for word in words:
        name, equals, text = word.rpartition("=")
        try:
            weight = float(text) if equals and name else -1.0
        except ValueError:
            weight = -1.0
        if not 0.0 <= weight < float("inf"):
            raise click.UsageError(f"--class-weight {word}: expected LABEL=WEIGHT, or balanced alone.")
        weights[label(name)] = weight
    return weights


def class_weight_words(weights: dict | str | None, text=str) -> tuple[str, ...]:
    """--class-weight of an estimator's class_weight."""
    if weights is None or isinstance(weights, str):
        return () if weights is None else (weights,)
    return tuple(f"{text(label)}={weight:g}" for label, weight in weights.items())


hash_bits = click.option(
    "--hash-bits",
    type=click.IntRange(1, 30),
    default=None,
    show_default="names and numbers as they are",
    metavar="B",
    help="2^B columns, which features share by the hash of their name or number: nothing is kept of them.",
)
valid = click.option(
    "--valid", type=FILE, metavar="FILE", help="Labelled data; the model's score on them is reported."
)
zero_based = flag(
    "--zero-based",
    "libsvm: the file counts features from 0, not from 1. Say it alike for training and prediction.",
)
quiet = click.option(
    "-q", "--quiet", is_flag=True, help="Only warnings and errors on stderr: no sizes, bar or certificate."
)


json = click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print JSON for programs to read, one object on a line; docs/command-line.md lists the keys.",
)


# What every run of a solver takes, in the order of `--help`.
limits = (tol, max_passes, max_seconds, seed, threads)
solving = (constant, *limits)


# ---- other names of the constant -C

# name: what it is, and what it may be
OTHER_CONSTANTS = {
    "sigma2": ("the variance of the prior, as in mean loss + ‖w‖²/(2·sigma2)", POSITIVE),
    "c2": ("CRFsuite's constant, as in Σ loss + c2 ‖w‖²; it is 1/(2C)", NOT_NEGATIVE),
}


def other_constant(name: str | None):
    """--sigma2 or --c2, for a kind that has it."""
    if name is None:
        return together()
    about, type = OTHER_CONSTANTS[name]
    help = f"Instead of -C: {about}."
    return click.option(f"--{name}", type=type, show_default="-C holds", metavar="FLOAT", help=help)


def choice_of_constant(name: str | None):
    """--constant of a path, for a kind that has another one than C."""
    if name is None:
        return together()
    help = f"What goes from --from to --to: C, or {name}, {OTHER_CONSTANTS[name][0]}."
    return click.option("--constant", type=click.Choice(["C", name]), default="C", help=help)


# ---- event files


def event_format(**settings):
    """--format, required where no model knows it."""
    return click.option("--format", type=click.Choice(["opennlp", "megam", "tadm"]), **settings)


event_marks = (
    flag("--explicit", "megam: each class has features of its own, after a # (megam's -explicit)."),
    flag("--values", "megam: a value follows each feature (megam's -fvals)."),
    flag("--real-values", "opennlp: name=1.5 is the feature name of value 1.5, not a feature of that name."),
)

# What `predict` and `evaluate` take, for any kind of model.
reading = together(
    zero_based,
    event_format(default=None, show_default="the model's", help="How event files are written."),
    *event_marks,
    click.option(
        "--section",
        type=click.Choice(["train", "dev", "test"]),
        default=None,
        show_default="train",
        help="megam: which part to read of a file with DEV and TEST lines.",
    ),
)


def estimator_settings(settings) -> dict:
    """The arguments that all estimators share, from the options of a command."""
    names = {"max_iter": "max_passes", "random_state": "seed", "n_jobs": "threads"}
    names |= {name: name for name in ("C", "solver", "tol", "max_seconds")}
    return {name: settings[option] for name, option in names.items() if option in settings}


def given(option: str) -> bool:
    """Whether the user said it, even if it is the default."""
    source = click.get_current_context().get_parameter_source(option)
    return source is not None and source.name == "COMMANDLINE"


def require_one_stdin(*files) -> None:
    """Standard input can be read once."""
    if files.count("-") > 1:
        raise click.UsageError("only one of DATA and --valid can be - (standard input).")
