"""Transitions between the labels of a chain as a table that fits the terminal, or the page."""

from fenchel.report.tables import Table, number

SHOWN = 20  # transitions, where the table would be wider


def transition_tables(model, width: int) -> list[Table]:
    """All transitions, or the heaviest where that would be wider than `width`; none if the model has none."""
    table, labels = model.transitions_, [str(label) for label in model.classes_]
    if not table.any():
        return []
    banned = {tuple(pair) for pair in model.banned or ()}

    def cell(a, b, digits):
        is_banned = (model.classes_[a], model.classes_[b]) in banned
        return "ban" if is_banned else number(table[a, b], f"+.{digits}f")

    named, numbered = ["from \\ to", *labels], ["from \\ to", *map(str, range(1, len(labels) + 1))]
    rows = [f"{number} {label}" for number, label in zip(numbered[1:], labels, strict=True)]
    for heads, starts, digits in ((named, labels, 2), (numbered, rows, 1)):
        if _width(heads, starts, digits) <= width:
            cells = [
                [start, *(cell(a, b, digits) for b in range(len(labels)))] for a, start in enumerate(starts)
            ]
            title = "transitions, from the label of the row to that of the column"
            return [Table(heads, cells, set(heads[1:]), title, heat=True, key="transitions")]
    return [_heaviest(table, labels, cell)]


def _width(heads, starts, digits):
    """Columns of the terminal that a table of numbers as +1.23 needs."""
    numbers = sum(max(len(head), 3 + digits) + 3 for head in heads[1:])
    return max(map(len, [heads[0], *starts])) + numbers


def _heaviest(table, labels, cell):
    pairs = [(a, b) for a in range(len(labels)) for b in range(len(labels))]
    heaviest = sorted(pairs, key=lambda pair: -abs(table[pair]))[:SHOWN]
    rows = [[labels[a], labels[b], cell(a, b, 2)] for a, b in heaviest]
    title = f"heaviest transitions ({len(rows)} of {table.size:,})"
    return Table(["from", "to", "weight"], rows, {"weight"}, title, key="transitions")
