"""How the command line speaks: messages to stderr, tables and lines to stdout."""

import sys
from itertools import islice

import click

from fenchel.report.tables import Table

PIPE_WIDTH = 10_000  # columns where there is no terminal: rich would fold at 80, `grep` wants whole rows


def say(message: str, quiet: bool = False) -> None:
    """A message for the person at the terminal."""
    if not quiet:
        click.echo(message, err=True)


def print_facts(facts: dict[str, str]) -> None:
    """name and value, a line each, values aligned."""
    width = max(map(len, facts), default=0)
    for name, value in facts.items():
        click.echo(f"{name:<{width}}  {value}")


def print_table(table: Table) -> None:
    """A table on stdout, folded at the terminal's width; one line per row where there is no terminal."""
    from rich import box
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    console = Console(file=sys.stdout, width=None if sys.stdout.isatty() else PIPE_WIDTH, highlight=False)
    drawn = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for heading in table.columns:
        drawn.add_column(heading, justify="right" if heading in table.numbers else "left", overflow="fold")
    for row in table.rows:
        drawn.add_row(*map(Text, row))  # Text: a bracket in a name is no markup
    with console.capture() as captured:
        console.print(drawn)
    if table.title:
        click.echo(f"\n{table.title}")
    # Rich pads every line to the width of the table.
    click.echo("\n".join(line.rstrip() for line in captured.get().rstrip().split("\n")))


def in_pieces(lines, size: int = 10_000):
    """Yield the lines joined, many at a time: an echo of each costs more than making it."""
    lines = iter(lines)
    while some := list(islice(lines, size)):
        yield "\n".join(some)


def count(number: int, noun: str) -> str:
    """1 example, 32,561 examples."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def label_text(label) -> str:
    """A class as it stood in the file; a number but for its sign: 1, not 1.0 or +1."""
    return label if isinstance(label, str) else repr(float(label) + 0.0).removesuffix(".0")


def listed(labels, most: int = 10) -> str:
    """a, b, c, ... (46)."""
    some = ", ".join(map(label_text, labels[:most]))
    return some if len(labels) <= most else f"{some}, ... ({len(labels)})"


def source(path) -> str:
    """The name of an input in messages."""
    return "<stdin>" if path == "-" else path
