"""fenchel shard: text of any size as arrays on disk, to train on without having it in memory."""

import time
from contextlib import ExitStack

import click

from fenchel.cli import options
from fenchel.cli.groups import KindGroup, kind_help
from fenchel.cli.kinds import Kind
from fenchel.cli.output import count, listed, say
from fenchel.cli.progress import reading
from fenchel.cli.recognise import expecting

AFTER = """The files are read a megabyte at a time: once, or once more to count names and attributes. The
folder is there when it is whole: an error or an interrupt leaves nothing behind, and the command can be given
again. `fenchel train KIND FOLDER` trains on it, in Python fit(Shards(FOLDER))."""


def _command(kind: Kind) -> click.Command:
    """fenchel shard KIND."""
    text = kind_help(kind, "shard", f"Write {kind.file}, however large, as shards on disk.", AFTER)

    @click.command(kind.name, help=text, short_help=kind.summary)
    @click.argument("data", nargs=-1, required=True)
    @click.option("-o", "--output", required=True, metavar="FOLDER", help="The folder to make.")
    @options.count(
        "--rows",
        None,
        "Examples of a shard, at least. Fewer mix better, more are read faster from slow disks.",
        show_default="what makes 4 MB",
    )
    @options.flag("--overwrite", "Replace shards that are in the folder already.")
    @options.quiet
    @options.together(*kind.shard_options)
    def command(data, output, quiet, **settings):
        start = time.perf_counter()
        with reading(listed(data), quiet), ExitStack() as looking:
            for path in data:
                looking.enter_context(expecting(kind.name, path, bool(settings.get("format"))))
            shards = kind.shard(data, output, settings)
        seconds = time.perf_counter() - start
        sizes = f"{count(shards.n, kind.noun)} in {count(shards.pieces.size - 1, 'shard')}"
        say(f"{output}: {sizes}, {shards.size / 1e6:,.1f} MB, written in {seconds:.2g} s", quiet)

    return command


@click.group(cls=KindGroup, make=_command, kinds=("lr", "maxent", "crf", "parser"))
def shard():
    """Write text of any size as arrays on disk, for data larger than memory.

    \b
    Example:
      fenchel shard lr part1.svm.gz part2.svm.gz -o shards/
      fenchel train lr shards/ -o model.fenchel
    """
