"""fenchel demo: a tagger of ingredient lines, from data to a page, in the steps a user would take."""

import sys
from math import log10
from pathlib import Path

import click

from fenchel.cli.failures import writing
from fenchel.cli.output import print_facts, print_table
from fenchel.trace import percent

FIFTH = 5  # every so-manieth line of the sample is held out
SHOWN = 10  # lines that are shown with their labels
EXPLAINED = "1 cup toasted walnuts , for serving"
WIDTH = 40  # of the bars
TOL, CONSTANT, TEMPLATE = 1e-4, 3.0, "pos"
COLOURS = {
    "QUANTITY": "cyan",
    "UNIT": "green",
    "NAME": "bold yellow",
    "PREPARATION": "magenta",
    "COMMENT": "dim",
}


@click.command(short_help="Train and show a tagger on the bundled sample.")
@click.option(
    "-o",
    "--output",
    default="demo-output",
    metavar="FOLDER",
    help="Where data, model, trace and page are written; made if need be.",
)
def demo(output):
    """Train a tagger on bundled ingredient lines, prove how good it is, show what it does, write a page.

    It goes through `train`, `evaluate`, `predict`, `inspect` and `report`; the files it leaves are for trying
    these by hand.

    \b
    Example:
      fenchel demo
      fenchel predict demo-output/model.fenchel demo-output/test.txt
    """
    from fenchel.cli.kinds import load_kind
    from fenchel.cli.report import write_page

    folder = Path(output)
    with writing(folder):
        folder.mkdir(exist_ok=True)
    train, test = _write_data(folder)
    model = _train(train, folder)
    kind = load_kind("crf")
    _say(f"On lines that it has never seen ({test}):")
    facts, table = kind.scores(model, kind.labelled(model, str(test), {}))
    print_facts(facts)
    print_table(table)
    _, (transitions, *_rest) = kind.inspect(model, 1)
    print_table(transitions)
    _show_lines(model, test)
    _say(f"Why it reads {EXPLAINED!r} as it does:")
    click.echo(str(model.explain(EXPLAINED.split())))
    page = folder / "page.html"
    write_page(page, str(folder / "model.fenchel"), [str(folder / "run.jsonl")], str(test))
    _say(f"All of it as a page to look at: {page}")


def _say(sentence):
    click.echo(f"\n{sentence}")


def _write_data(folder):
    """The bundled sample as two files, every fifth line in the second."""
    from importlib.resources import files

    sample = files("fenchel") / "samples" / "ingredients.txt"
    lines = sample.read_text(encoding="utf-8").strip().split("\n\n")
    parts = {
        "train.txt": [line for i, line in enumerate(lines) if i % FIFTH != FIFTH - 1],
        "test.txt": lines[FIFTH - 1 :: FIFTH],
    }
    for name, some in parts.items():
        with writing(folder / name):
            (folder / name).write_text("\n\n".join(some) + "\n", encoding="utf-8")
    return folder / "train.txt", folder / "test.txt"


def _train(path, folder):
    """A ChainCRF fitted with a look at the gap after every pass, saved with its trace."""
    import fenchel
    from fenchel.cli.kinds import load_kind
    from fenchel.cli.traces import save_trace, settings_of

    kind = load_kind("crf")
    corpus = kind.read(str(path), {"template": TEMPLATE, "format": "columns", "separator": None})
    model = fenchel.ChainCRF(C=CONSTANT, template=TEMPLATE, tol=TOL, callbacks=[_draw_gap])
    data = kind.encode(model, corpus)
    click.echo(f"Training a conditional random field on {kind.sizes(model, corpus, data)}.")
    click.echo("How far its objective may be above the best possible one, after each pass:\n")
    model.fit_encoded(data, check_every=1.0)
    click.echo(f"\n{model.trace_.solver} {model.certificate_}")
    with writing(folder):
        model.save(folder / "model.fenchel")
    save_trace(folder / "run.jsonl", model.trace_, model.certificate_, settings_of(model))
    return model


def _draw_gap(trace):
    """A line for a check whose gap is less than two thirds of any before: a bar on a logarithmic scale."""
    *before, gap = trace.distances()
    if not 0.0 < gap < min(before, default=1e9) / 1.5:
        return
    share = min(max(1.0 + log10(min(gap, 1.0)) / -log10(TOL / 10), 0.0), 1.0)
    click.echo(f"  pass {trace[-1].passes:4.0f}  {percent(gap):>9}  {'█' * max(round(WIDTH * share), 1)}")


def _show_lines(model, test):
    """Some of the held-out lines with what was found in them, in colour where there is some."""
    from rich.console import Console
    from rich.text import Text

    from fenchel.io.columns import read_columns

    lines = [[word for (word,) in line] for line in read_columns(test).without_last()[0].sentences()]
    some = lines[:: max(len(lines) // SHOWN, 1)][:SHOWN]
    console = Console(file=sys.stdout, highlight=False, width=None if sys.stdout.isatty() else 200)
    legend = Text("Some of its lines: ")
    for kind, colour in COLOURS.items():
        legend.append(kind.lower(), style=colour).append(" ")
    click.echo()
    console.print(legend)
    for words, labels in zip(some, model.predict(some), strict=True):
        console.print(_coloured(words, labels) if console.is_terminal else _in_words(words, labels))


def _coloured(words, labels):
    from rich.text import Text

    line = Text("  ")
    for word, label in zip(words, labels, strict=True):
        line.append(word, style=COLOURS.get(str(label).partition("-")[2], "")).append(" ")
    return line


def _in_words(words, labels):
    """quantity: 1; name: red cabbage; ..."""
    from rich.text import Text

    from fenchel.spans import spans

    found = (f"{kind.lower()}: {' '.join(words[a:b])}" for kind, a, b in spans(list(map(str, labels))))
    return Text("  " + "; ".join(found))
