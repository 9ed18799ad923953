"""fenchel warm: compile ahead what a first fit would compile."""

import time

import click

from fenchel.cli.kinds import KINDS, load_kind
from fenchel.cli.output import print_table
from fenchel.report.tables import Table


@click.command(short_help="Compile ahead.")
@click.argument("kinds", nargs=-1, type=click.Choice(list(KINDS)), metavar="[KIND]...")
def warm(kinds):
    """Compile what the first fits and predictions of these kinds would, and keep it for later processes.

    lr is LogisticRegression and LinearSVC, maxent MaxEnt, tagger MaxEntTagger, crf ChainCRF, parser
    DependencyParser; all of them if none is named. For images and clusters: set NUMBA_CACHE_DIR to a folder
    that goes with the image.

    \b
    Example:
      fenchel warm
      NUMBA_CACHE_DIR=/opt/kernels fenchel warm crf
    """
    from fenchel._math import log1pexp

    rows = []
    for kind in kinds or KINDS:
        start = time.perf_counter()
        load_kind(kind).compile()
        rows.append([kind, f"{time.perf_counter() - start:.1f} s"])
    # where one kernel is kept stands for all
    folder = log1pexp.stats.cache_path or "this process only: no folder can be written"
    print_table(Table(["kind", "took"], rows, title=f"kernels in {folder}"))
