"""fenchel dump: all weights of a model as text."""

from contextlib import nullcontext

import click

from fenchel.cli import options
from fenchel.cli.failures import writing
from fenchel.cli.kinds import kind_of
from fenchel.cli.output import escaped

LINES = 1 << 14  # that are made and written at a time


@click.command(short_help="Write all weights of a model as text.")
@click.argument("model", type=options.FILE)
@click.option(
    "-o",
    "--output",
    type=options.FILE,
    default="-",
    metavar="FILE",
    help="Where to; gzipped if it ends in .gz.",
)
@options.flag("--zeros", "Weights that are 0 too.")
def dump(model, output, zeros):
    """Write the weights of MODEL, a line each, tabs between: what it is of, and the number.

    \b
    feature      NAME   LABEL   WEIGHT      lr (NAME counts from 1; of two classes LABEL is what a positive
                                            weight speaks for), maxent, tagger, crf; parser without a LABEL
    intercept    LABEL  WEIGHT              lr
    transition   FROM   TO      WEIGHT      crf
    pair         NAME   FROM    TO  WEIGHT  crf: attributes of pairs of labels

    Weights have all their digits, so that the numbers read back are the same. In names backslash, tab and
    line end are written \\\\ \\t \\n. Lines of # come first: class, certificate, how many weights there are.

    \b
    Example:
      fenchel dump model.fenchel | grep '^transition'
      fenchel dump model.fenchel -o model.txt.gz
    """
    from fenchel.io.files import open_output
    from fenchel.saved import load

    fitted = load(model)
    parts = kind_of(fitted).weights(fitted)
    named = nullcontext() if output == "-" else writing(output)  # of a pipe that is closed nothing is said
    with named, open_output(output) as stream:
        stream.write(_head(fitted, parts).encode())
        for part in parts:
            for text in _texts(part, zeros):
                stream.write(text.encode())


def _head(fitted, parts):
    count = sum(part.weights.size for part in parts)
    return f"# {type(fitted).__name__}\n# {fitted.certificate_}\n# {count} weights\n"


def _texts(part, zeros):
    """Yield the lines of a table of weights, many at a time.

    A line is what comes before, the name of its row, what comes between, the name of its column, the weight;
    all but the rows' names and the weights are the same for each row, and made once.
    """
    import numpy as np

    weights = np.atleast_2d(part.weights)
    ends = [f"\t{escaped(name)}\t" if name is not None else "\t" for name in part.columns]
    step = max(1, LINES // max(len(ends), 1))
    for first in range(0, weights.shape[0], step):
        some = weights[first : first + step]
        rows, columns = np.nonzero(some) if not zeros else np.divmod(np.arange(some.size), some.shape[1])
        heads = [f"{part.what}\t{escaped(name)}" for name in part.rows[first : first + step]]
        numbers = map(repr, some[rows, columns].tolist())
        lines = zip(rows.tolist(), columns.tolist(), numbers, strict=True)
        if text := "\n".join([heads[i] + ends[k] + number for i, k, number in lines]):
            yield f"{text}\n"
