"""What came of all items: one HTML page, and the same as RESULTS.md."""

import base64
import os
import re
from collections import Counter
from html import escape
from pathlib import Path

from experiments.claims import Outcome, Table
from experiments.lab import Lab

HEADS = ("holds", "does not hold", "data not available")
SEVERAL = {"holds": "hold", "does not hold": "do not hold"}
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem }
img { max-width: 100% } table { border-collapse: collapse; margin: .6rem 0; font-size: 13px }
td, th { border: 1px solid #ccc; padding: .15rem .5rem; text-align: left } blockquote { color: #666 }
.number { text-align: right; font-variant-numeric: tabular-nums }
caption { text-align: left; white-space: nowrap; padding-bottom: .2rem } li { margin-bottom: .3rem }
.margin { color: #555; display: block; font-size: 13px; line-height: 1.4 } .reason { display: block }
.holds { color: #06703a } .does { color: #a8321a } .data { color: #777 }
@media (prefers-color-scheme: dark) {
  body { background: #181818; color: #ddd } img { background: #fff } .margin { color: #aaa } a { color: #8cf }
}
"""


def write(outcomes: list[Outcome], html: Path, markdown: Path, papers: dict[str, str], note: str) -> None:
    """papers: {short name: title}, in the order of the page. note: `conditions`."""
    html.write_text(as_html(outcomes, papers, note), encoding="utf-8")
    markdown.write_text(as_markdown(outcomes, papers, note, markdown.parent), encoding="utf-8")


def counts(outcomes: list[Outcome]) -> Counter:
    """How many claims hold, do not hold, and lack their data."""
    return Counter(verdict.word for outcome in outcomes for verdict in outcome.verdicts)


def summary(outcomes) -> str:
    found = counts(outcomes)
    words = [*HEADS, *sorted(set(found) - set(HEADS))]
    told = (f"{found[word]} {word if found[word] == 1 else SEVERAL.get(word, word)}" for word in words)
    return f"{sum(found.values())} claims: " + ", ".join(told)


def conditions(lab: Lab) -> str:
    """What the seconds belong to."""
    what = "Subsets and runs of half a second: this shows the machinery, nothing else. " if lab.quick else ""
    where = ". And: ".join(sorted(lab.machines))
    clocks = Counter(lab.clocks.values())
    whose = "Seconds are the processor's" + (
        f" in {clocks['processor']} of {clocks.total()} runs, a clock's on the wall in the others"
        if clocks["wall"]
        else ""
    )
    return f"{what}{where}. Runs use one thread. {whose}; none pass while a point is measured."


# ---- Markdown


def as_markdown(outcomes, papers, note, folder: Path) -> str:
    lines = ["# The five papers, run again", "", summary(outcomes), "", note, ""]
    heads = [*HEADS, *sorted(set(counts(outcomes)) - set(HEADS))]
    lines += ["| paper | " + " | ".join(heads) + " |", "|---|" + "--:|" * len(heads)]
    for short, of in by_paper(outcomes, papers):
        lines.append(f"| [{short}](#{short}) | " + " | ".join(str(counts(of)[head]) for head in heads) + " |")
    for short, of in by_paper(outcomes, papers):
        lines += ["", f"## {short}", "", papers[short]]
        for outcome in of:
            lines += _item_markdown(outcome, folder)
    return "\n".join(lines) + "\n"


def _item_markdown(outcome, folder) -> list[str]:
    item = outcome.item
    lines = ["", f"### {item.name}: {item.title}", "", f"> {item.statement}", ""]
    lines += [item.here, ""] if item.here else []
    lines += [outcome.missing, ""] if outcome.missing else []
    if outcome.figure:
        lines += [f"![{item.title}]({Path(os.path.relpath(outcome.figure, folder)).as_posix()})", ""]
    for table in outcome.tables:
        lines += [*_table_markdown(table), ""]
    for claim, verdict in _judged(outcome):
        why = f" {claim.reason}" if verdict.holds is False and claim.reason else ""
        lines.append(f"- **{verdict.word}**: “{claim.text}” {_sentence(verdict.margin)}{why}")
    return lines


def _sentence(text: str) -> str:
    return text if not text or text.endswith(".") else f"{text}."


def _table_markdown(table: Table) -> list[str]:
    rows = ["| " + " | ".join(map(str, row)) + " |" for row in [table.header, *table.rows]]
    rows.insert(1, "|" + "---|" * len(table.header))
    return [*([table.caption, ""] if table.caption else []), *rows]


def by_paper(outcomes, papers):
    """(short name, its outcomes) of each paper that has some."""
    for short in papers:
        of = [outcome for outcome in outcomes if outcome.item.name.split(".")[0] == short]
        if of:
            yield short, of


# ---- pages of the documentation

CLAIMS = "<!-- claims -->", "<!-- end of claims -->"


def fill(path: Path, outcomes: list[Outcome]) -> None:
    """Put the verdicts between the two marks of a page, in the place of what was there."""
    before, _, rest = path.read_text(encoding="utf-8").partition(CLAIMS[0])
    _, _, after = rest.partition(CLAIMS[1])
    lines = [CLAIMS[0], "", f"{summary(outcomes)}.", ""]
    for outcome in outcomes:
        lines += [_short_verdict(outcome.item.name, *pair) for pair in _judged(outcome)]
    path.write_text(before + "\n".join([*lines, "", CLAIMS[1]]) + after, encoding="utf-8")


def _short_verdict(name, claim, verdict) -> str:
    why = f" {claim.reason}" if verdict.holds is False else ""
    return f"- {name.partition('.')[2]}, **{verdict.word}**: “{claim.text}”{why}"


def _judged(outcome: Outcome):
    return zip(outcome.item.claims, outcome.verdicts, strict=True)


# ---- HTML


def as_html(outcomes, papers, note) -> str:
    parts = ["<!doctype html><meta charset='utf-8'><title>The five papers, run again</title>"]
    parts += [f"<style>{STYLE}</style><h1>The five papers, run again</h1>"]
    parts += [f"<p><b>{escape(summary(outcomes))}</b></p><p>{escape(note)}</p>"]
    parts.append(_contents_html(outcomes, papers))
    for short, of in by_paper(outcomes, papers):
        parts.append(f"<h2 id='{short}'>{escape(papers[short])}</h2><p>{escape(summary(of))}</p>")
        parts += map(_item_html, of)
    return "\n".join(parts)


def _contents_html(outcomes, papers) -> str:
    """The papers with their counts, each linked to its part."""
    heads = [*HEADS, *sorted(set(counts(outcomes)) - set(HEADS))]
    rows = ["<tr><th>paper</th>" + "".join(f"<th>{head}</th>" for head in heads) + "</tr>"]
    for short, of in by_paper(outcomes, papers):
        cells = "".join(_cell_html(counts(of)[head]) for head in heads)
        rows.append(f"<tr><td><a href='#{short}'>{escape(papers[short])}</a></td>{cells}</tr>")
    return "<table>" + "".join(rows) + "</table>"


def _item_html(outcome: Outcome) -> str:
    item = outcome.item
    parts = [f"<h3 id='{item.name}'>{escape(item.name)}: {escape(item.title)}</h3>"]
    parts.append(f"<blockquote>{escape(item.statement)}</blockquote>")
    parts += [f"<p>{_with_code(text)}</p>" for text in (item.here, outcome.missing) if text]
    if outcome.figure:
        image = base64.b64encode(outcome.figure.read_bytes()).decode()
        parts.append(f"<img alt='{escape(item.title, quote=True)}' src='data:image/png;base64,{image}'>")
    parts += map(_table_html, outcome.tables)
    parts.append("<ul>")
    for claim, verdict in _judged(outcome):
        why = (
            f" <i class='reason'>{_with_code(claim.reason)}</i>"
            if verdict.holds is False and claim.reason
            else ""
        )
        parts.append(
            f"<li><b class='{verdict.word.split()[0]}'>{verdict.word}</b>: “{escape(claim.text)}” "
            f"<span class='margin'>{escape(_sentence(verdict.margin))}</span>{why}</li>"
        )
    return "\n".join([*parts, "</ul>"])


def _with_code(text: str) -> str:
    """What stands between backticks as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text, quote=False))


def _table_html(table: Table) -> str:
    head = "".join(f"<th>{escape(str(cell))}</th>" for cell in table.header)
    rows = ("".join(map(_cell_html, row)) for row in table.rows)
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    caption = f"<caption>{escape(table.caption)}</caption>" if table.caption else ""
    return f"<table>{caption}<tr>{head}</tr>{body}</table>"


def _cell_html(cell) -> str:
    """Numbers, and words in the place of one, to the right."""
    text = str(cell)
    of = " class='number'" if re.fullmatch(r"[-\d.,e+ ]+%?|never|not known", text) else ""
    return f"<td{of}>{escape(text)}</td>"
