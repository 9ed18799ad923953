"""One self-contained page of runs and a model: no other file, no network, no markup but its own.

What comes from data (labels, features, names of files) is escaped where it enters: `_text` for the page,
`_script` for what the drawing script reads. Charts are drawn by page.js from the numbers of the traces; the
same numbers stand below them as tables. A library of charts would add 4 MB to each page, and an extra to
install before the first one is seen.
"""

import json
import re
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from math import isfinite, sqrt

from fenchel.report.tables import Table
from fenchel.trace import Step, Trace, distances_to_optimum

SEARCHED = 12  # rows from which on a table has a field to search in it
SHOWN = 300  # rows of a trace that its table shows; the chart has all


def page(title: str, lead: Sequence[str], traces: Sequence[Trace], sections: Sequence[tuple]) -> str:
    """The page as text.

    lead: sentences under the title. sections: (heading, facts, tables), facts a dict of name and value.
    """
    body = [f"<h1>{_text(title)}</h1>", *(f"<p class=lead>{_text(one)}</p>" for one in lead)]
    if traces:
        body.append(_runs(traces))
    body += [_section(*section) for section in sections]
    return _PAGE.format(
        title=_text(title),
        style=_own_file("page.css"),
        body="\n".join(body),
        data=_script(_all_series(traces)),
        script=_own_file("page.js"),
    )


_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:">
<title>{title}</title>
<style>
{style}
</style>
</head>
<body>
<main>
{body}
</main>
<script type="application/json" id="traces">{data}</script>
<script>
{script}
</script>
</body>
</html>
"""


# ---- runs


def _runs(traces):
    """Charts of all runs and, folded, their rows."""
    measures = " / ".join(dict.fromkeys(trace.measure for trace in traces))
    parts = [
        "<section><h2>How the gap closed</h2>",
        *_race_figure(traces),
        f'<figure data-chart="distance" data-log="y"><figcaption>{_text(measures)}: how far the objective '
        f"may still be above the best possible one.{_dotted(traces)} Drag to zoom, double-click to see all "
        "again.</figcaption></figure>",
        '<figure data-chart="bounds"><figcaption>Objective (full line) and the proven bound below it '
        "(dashed): the optimum lies between them.</figcaption></figure>",
    ]
    if any(isfinite(score) for trace in traces for score in trace.column("validation")):
        parts.append(
            '<figure data-chart="validation"><figcaption>Score on held-out data.</figcaption></figure>'
        )
    parts += [
        f"<details><summary>Numbers of {_text(trace.solver)}</summary>{_table(trace_table(trace))}</details>"
        for trace in traces
    ]
    return "\n".join([*parts, "</section>"])


def _dotted(traces):
    """What the dotted lines are, where there are some."""
    estimated = any(trace.steps for trace in traces)
    return " Dotted: what the solver made of it on its way, which proves nothing." if estimated else ""


def _are_rivals(traces):
    """Whether several runs are on one problem, so that they have one optimum."""
    return len(traces) > 1 and len({trace.problem for trace in traces}) == 1


def _race_figure(traces):
    """Of rivals the figure of the papers: how far each objective is above the optimum."""
    if not _are_rivals(traces):
        return []
    return [
        '<figure data-chart="optimum" data-log="y"><figcaption>Relative distance to the optimum, which is '
        "taken to be the best bound that any of the runs has proven.</figcaption></figure>"
    ]


def trace_table(trace: Trace) -> Table:
    """The rows of a trace: passes, seconds, objective, bound, distance."""
    columns = ["passes", "seconds", "objective", "bound", trace.measure]
    rows = [
        [f"{row.passes:.4g}", f"{row.seconds:.3g}", f"{row.primal:.8g}", f"{row.dual:.8g}", f"{far:.2e}"]
        for row, far in zip(trace, trace.distances(), strict=True)
    ]
    return Table(columns, rows[-SHOWN:], set(columns))


def _all_series(traces):
    """What page.js draws, of rivals with their distance to the optimum."""
    series = [_series(trace) for trace in traces]
    if _are_rivals(traces):
        for one, far in zip(series, distances_to_optimum(traces), strict=True):
            one["optimum"] = [x if isfinite(x) else None for x in far]
    return series


def _series(trace):
    """What page.js draws: a column of numbers each, null where there is none."""
    columns = {name: trace.column(name) for name in ("passes", "seconds", "primal", "dual", "validation")}
    columns["distance"] = trace.distances()
    steps = {name: [getattr(step, name) for step in trace.steps] for name in Step._fields}
    return {
        "name": trace.solver,
        "problem": trace.problem,
        **_with_nulls(columns),
        "steps": _with_nulls(steps),
    }


def _with_nulls(columns):
    """Columns of numbers as JSON can hold them."""
    return {name: [x if isfinite(x) else None for x in column] for name, column in columns.items()}


# ---- facts and tables


def _section(heading, facts, tables):
    parts = [f"<section><h2>{_text(heading)}</h2>"]
    if facts:
        pairs = "".join(f"<dt>{_text(name)}</dt><dd>{_text(value)}</dd>" for name, value in facts.items())
        parts.append(f"<dl>{pairs}</dl>")
    return "\n".join([*parts, *(_table(table) for table in tables), "</section>"])


def _table(table):
    """A table, with a field to search in it where it is long."""
    numbers = [name in table.numbers for name in table.columns]
    head = "".join(
        _cell("th scope=col", name, number) for name, number in zip(table.columns, numbers, strict=True)
    )
    heat = _largest(table.rows) if table.heat else 0.0
    body = "".join(f"<tr>{_row(row, numbers, heat)}</tr>" for row in table.rows)
    caption = f"<caption>{_text(table.title)}</caption>" if table.title else ""
    search = ""
    if len(table.rows) > SEARCHED:
        search = '<input type="search" placeholder="search" aria-label="search in this table">'
    rows = f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
    drawn = f"<table{' class=heat' if heat else ''}>{caption}{rows}</table>"
    return f"<div class=table>{search}{drawn}</div>"


def _row(row, numbers, heat):
    if not heat:
        return "".join(_cell("td", cell, number) for cell, number in zip(row, numbers, strict=True))
    cells = [_cell("th scope=row", row[0], False)]
    return "".join(cells + [_cell(f"td{_shade(cell, heat)}", cell, True) for cell in row[1:]])


def _cell(tag, text, number):
    return f"<{tag}{' class=number' if number else ''}>{_text(text)}</{tag.split()[0]}>"


def _largest(rows):
    return max((abs(_number(cell)) for row in rows for cell in row[1:]), default=0.0)


def _shade(cell, largest):
    """Colour and strength of a cell; thousands of right answers must not hide ten wrong ones."""
    value = _number(cell)
    return f' style="--heat:{sqrt(abs(value) / largest):.2f}" data-sign="{"+" if value >= 0.0 else "-"}"'


def _number(cell):
    """The number of a cell; 0 where it is a word, such as "ban"."""
    return float(cell) if re.fullmatch(r"[+-]?[0-9.]+(e[+-]?[0-9]+)?", str(cell)) else 0.0


# ---- text


def facts_of_run(header: dict) -> dict[str, str]:
    """Settings, versions and machine out of the header of a trace file."""
    facts = {}
    for name, value in header.items():
        if name not in {"format_version", "certificate", "steps"}:
            inner = value.items() if isinstance(value, dict) else None
            facts[name] = ", ".join(f"{k} {v}" for k, v in inner) if inner else str(value)
    return facts


def _own_file(name):
    return (files("fenchel") / "report" / name).read_text(encoding="utf-8").strip()


def _text(value):
    """As text in the page, whatever it is."""
    return escape(str(value))


def _script(value):
    """As JSON inside a script element, which nothing in it can end."""
    return json.dumps(value, allow_nan=False).replace("<", "\\u003c")
