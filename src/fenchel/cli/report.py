"""fenchel report: one page of runs and a model, to look at, to send, to print."""

import os

import click

from fenchel.cli import options
from fenchel.cli.failures import Failure, require_place, writing
from fenchel.cli.inspect import facts_of
from fenchel.cli.kinds import kind_of, reading_for
from fenchel.cli.output import say

TOP = 200  # heaviest features that a page lists, of taggers for each label: there is a field to search in
WIDTH = 400  # columns of a table, which moves sideways in the page


@click.command(short_help="Write a page of runs and a model.")
@click.argument("files", nargs=-1, required=True, type=options.FILE)
@click.option(
    "-o", "--output", required=True, type=options.FILE, metavar="PAGE", help="The HTML file to write."
)
@click.option(
    "--test",
    type=options.FILE,
    metavar="DATA",
    help="Labelled data: adds scores and confusions of labels, of parsers scores by length.",
)
@options.reading
@options.quiet
def report(files, output, test, quiet, **settings):
    """Write one HTML page of FILES: traces of runs (`train --trace`, `race --output`), and at most one model.

    The page needs no network and no other file. It shows how the gap closed, against passes and seconds, the
    certificate in words, the heaviest features, transitions of a tagger, scores on --test, settings and
    machine.

    \b
    Example:
      fenchel train crf train.txt -o model.fenchel --trace run.jsonl
      fenchel report model.fenchel run.jsonl --test test.txt -o page.html
      fenchel report race/*.jsonl -o race.html
    """
    require_place(output)
    models = [path for path in files if _is_model(path)]
    if len(models) > 1:
        raise Failure(f"{models[1]}: a page shows one model, and {models[0]} is another")
    if test and not models:
        raise Failure("--test goes with a model; none of the files is one")
    runs = [path for path in files if path not in models]
    write_page(output, models[0] if models else None, runs, test, settings)
    say(f"page written to {output}", quiet)


def write_page(output, model, runs, test=None, settings=None) -> None:
    """The page of a model file, trace files and labelled data, any of them absent."""
    from fenchel.io.files import open_output
    from fenchel.io.trace import read_run
    from fenchel.report.page import facts_of_run, page
    from fenchel.saved import load

    traces, lead, sections = [], [], []
    fitted = load(model) if model else None
    if fitted is not None:
        lead.append(str(fitted.certificate_))
        sections = _model_sections(fitted, model, test, settings or {})
    for path in runs:
        trace, header = read_run(path)
        traces.append(trace)
        sections.append((f"Run {os.path.basename(path)}", facts_of_run(header), []))
    title = f"{type(fitted).__name__} {os.path.basename(model)}" if model else _title(traces)
    content = page(title, lead, traces, sections)
    with writing(output), open_output(output) as stream:
        stream.write(content.encode(errors="replace"))


def _model_sections(fitted, path, test, settings):
    """Scores first, then what the model holds."""
    kind, sections = kind_of(fitted), []
    if test:
        examples = kind.labelled(fitted, test, reading_for(fitted, settings))
        facts, table = kind.scores(fitted, examples)
        tables = [*([table] if table else []), *kind.details(fitted, examples)]
        sections.append((f"Scores on {os.path.basename(test)}", facts, tables))
    facts, tables = kind.inspect(fitted, TOP, WIDTH)
    sections.append(("The model", facts_of(fitted, path) | facts, tables))
    return sections


def _title(traces):
    return f"{len(traces)} runs" if len(traces) > 1 else f"A run of {traces[0].solver}"


def _is_model(path):
    """Whether a file is a model, which begins with a length of eight bytes; a trace is text."""
    with open(path, "rb") as stream:
        return b"\0" in stream.read(8)
