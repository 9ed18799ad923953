"""fenchel attributes: what a tagger sees of each token."""

from itertools import pairwise

import click

from fenchel.cli import options
from fenchel.cli.failures import Failure
from fenchel.cli.output import source
from fenchel.cli.sentences import tabs_alone


@click.command(short_help="Show the attributes that a template makes of a column file.")
@click.argument("data", type=options.FILE)
@click.option(
    "--template",
    required=True,
    metavar="NAME|FILE",
    help="A preset (chunk, ner, pos), or a template of CRF++ or Wapiti.",
)
@click.option("--unlabelled", is_flag=True, help="The last column is not the label, but one like the others.")
@click.option(
    "--crfsuite", is_flag=True, help="Print CRFsuite's format instead: label TAB attribute TAB ..., escaped."
)
@options.separator
def attributes(data, template, unlabelled, crfsuite, separator):
    """Print each token of the column file DATA, and behind it its attributes, tabs between.

    The last column is the label, as in training, which no template sees. Attributes of pairs of labels (the
    B lines of a template) have `(edge)` behind. Gzip is gunzipped, - is standard input.

    \b
    Example:
      fenchel attributes train.txt --template chunk | head
      fenchel attributes train.txt --template my.template --crfsuite > train.crfsuite
    """
    from fenchel.io.columns import read_columns

    if unlabelled and crfsuite:
        raise click.UsageError("CRFsuite's format has a label on each line; leave --unlabelled out.")
    tokens = read_columns(data, tabs_alone(separator))
    if tokens.n_columns < 2 and not unlabelled:
        raise Failure(f"{source(data)}: 1 column, expected at least a word and its label (or --unlabelled)")
    X = tokens if unlabelled else tokens.without_last()[0]
    unary, edges = _named(X, template)
    if crfsuite:
        _write_crfsuite(tokens, unary, edges, template)
    else:
        _show(tokens, unary, edges)


def _named(X, template):
    """For each token the list of its attributes, and of its attributes of pairs of labels; None without."""
    from fenchel.features.attributes import Extractor

    extractor = Extractor(template)
    unary, edges = extractor.fit(X)
    groups = extractor.to_arrays()
    if edges is not None:
        edges = _lists(edges, extractor.edge_names(), groups["edge_groups"].tolist())
    return _lists(unary, extractor.names(), groups["groups"].tolist()), edges


def _lists(rows, names, groups):
    """The names of each row, in the order of the template's lines."""
    columns = rows.indices.tolist()
    of_tokens = (columns[a:b] for a, b in pairwise(rows.indptr.tolist()))
    return [[names[a] for a in sorted(of_token, key=groups.__getitem__)] for of_token in of_tokens]


def _show(tokens, unary, edges):
    t = 0
    for sentence in tokens.sentences():
        lines = []
        for token in sentence:
            more = [f"{name} (edge)" for name in edges[t]] if edges else []
            lines.append("\t".join([" ".join(token), *unary[t], *more]))
            t += 1
        click.echo("\n".join([*lines, ""]))


def _write_crfsuite(tokens, unary, edges, template):
    from fenchel.io.crfsuite import Sequence, write_crfsuite
    from fenchel.io.events import Attributes

    if edges:
        raise Failure(f"{template}: has attributes of pairs of labels, which CRFsuite's format cannot hold")
    labels, starts = tokens.column(tokens.n_columns - 1), tokens.starts.tolist()
    all_attributes = [Attributes(names, [1.0] * len(names)) for names in unary]
    write_crfsuite("-", (Sequence(labels[a:b], all_attributes[a:b]) for a, b in pairwise(starts)))
