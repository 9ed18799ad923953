"""The command line: verbs over files. Results go to stdout, all else to stderr.

Exit codes: 0 done; 1 not converged, interrupted, or failed while running; 2 wrong usage or wrong input.
A verb is a file here and a line in COMMANDS. A kind of model (`lr`, `crf`) is a file in `kinds` and
a line in `kinds.KINDS`. All of them import what is heavy inside functions: `--help` must not wait for Numba.
"""

import signal

import click

from fenchel import __version__
from fenchel.cli.groups import Root, debug_option
from fenchel.cli.late import import_late

COMMANDS = {
    "demo": "fenchel.cli.demo:demo",
    "train": "fenchel.cli.train:train",
    "shard": "fenchel.cli.shard:shard",
    "predict": "fenchel.cli.predict:predict",
    "evaluate": "fenchel.cli.evaluate:evaluate",
    "race": "fenchel.cli.race:race",
    "path": "fenchel.cli.path:path",
    "cv": "fenchel.cli.cv:cv",
    "inspect": "fenchel.cli.inspect:inspect",
    "dump": "fenchel.cli.dump:dump",
    "report": "fenchel.cli.report:report",
    "convert": "fenchel.cli.convert:convert",
    "attributes": "fenchel.cli.attributes:attributes",
    "solvers": "fenchel.cli.solvers:solvers",
    "warm": "fenchel.cli.warm:warm",
    "completion": "fenchel.cli.completion:completion",
}


@click.group(
    cls=Root,
    targets=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True, "max_content_width": 100},
)
@click.version_option(__version__, prog_name="fenchel", message="%(prog)s %(version)s")
@debug_option
def cli():
    """Train log-linear and max-margin models to a proven distance from the optimum.

    \b
    Example:
      fenchel train lr train.svm -o model.fenchel
      fenchel evaluate model.fenchel test.svm
    """


def _interrupted(*_):
    """`kill`, and batch systems whose time is up, end a command as Ctrl-C does: it cleans up, or saves."""
    raise KeyboardInterrupt


def main():
    """The entry point of `fenchel` and of `python -m fenchel`."""
    for name in (
        "scipy.stats",
        "pandas",
    ):  # scikit-learn imports them for little: half a second of each start
        import_late(name)
    signal.signal(signal.SIGTERM, _interrupted)
    cli(prog_name="fenchel")
