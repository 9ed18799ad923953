"""What a fitted tagger does on the command line: `predict`, `evaluate`, `inspect`."""

from itertools import islice

from fenchel.cli.failures import Failure
from fenchel.cli.lr import class_table
from fenchel.cli.output import Table, count, listed, say, source
from fenchel.cli.sentences import are_spans, iterate_lines, read

BATCH = 1000  # sentences of a file that are labelled at a time
WIDTH = 100  # columns that a table of all transitions may have
SHOWN = 20  # transitions, where the table would be wider


# ---- predict


def predict(model, data, given, probabilities):
    """Of a column file its own lines with the label behind; of a CRFsuite file labels alone.

    Yields a sentence at a time where they come in one by one, from standard input.
    """
    sentences = _column_sentences(model, data) if _has_columns(model) else _attribute_sentences(data)
    while some := list(islice(sentences, 1 if data == "-" else BATCH)):
        answers = iter(
            _answers(model, [X for _, X in some if X is not None], probabilities, given.get("nbest"))
        )
        blocks = [_block(lines, next(answers) if X is not None else ()) for lines, X in some]
        yield "\n".join(line for block in blocks for line in block)


def _column_sentences(model, data):
    """(lines, list of tuples of strings) of each sentence, without the label's column if there is one."""
    wanted = model.source_.extractor.n_columns
    for lines, tokens in iterate_lines(data):
        if tokens is None:
            yield lines, None
            continue
        if tokens.n_columns not in (wanted, wanted + 1):
            found = f"{source(data)}: {count(tokens.n_columns, 'column')}"
            raise Failure(
                f"{found}, but the model was trained on {wanted + 1}; give those, or all but the label"
            )
        yield lines, [token[:wanted] for token in next(tokens.sentences())]


def _attribute_sentences(data):
    from fenchel.io.crfsuite import iterate_crfsuite

    for sequence in iterate_crfsuite(data):
        yield None, sequence.attributes


def _answers(model, X, probabilities, nbest):
    """For each sentence a list of (heading or None, cells of each token)."""
    if not X:
        return []
    shares = model.predict_marginals(X) if probabilities else [None] * len(X)
    if nbest is None:
        several = [[(None, labels)] for labels in model.predict(X)]
    else:
        several = [
            [(f"# {rank} {score:.6f}", labels) for rank, (labels, score) in enumerate(found, start=1)]
            for found in model.predict_nbest(X, nbest)
        ]
    places = {label: k for k, label in enumerate(model.classes_.tolist())}
    return [
        [(heading, _cells(labels, mu, places)) for heading, labels in found]
        for found, mu in zip(several, shares, strict=True)
    ]


def _cells(labels, mu, places):
    """What stands behind each token: its label and, if wanted, the probability of that."""
    if mu is None:
        return [(str(label),) for label in labels]
    return [(str(label), f"{mu[t, places[label]]:.6f}") for t, label in enumerate(labels)]


def _block(lines, answers):
    """The lines to print for a sentence: its own, blank ones included, with the cells behind."""
    if not answers:
        return lines
    heading, cells = answers[0]
    if lines is not None and heading is None:
        behind = iter(cells)
        return [_append(line, next(behind)) if line.strip() else line for line in lines]
    out, tokens = [], [""] * len(cells) if lines is None else [line for line in lines if line.strip()]
    for heading, cells in answers:
        out += [heading] if heading else []
        out += [_append(line, more) for line, more in zip(tokens, cells, strict=True)]
        out.append("")
    return out


def _append(line, cells):
    between = "\t" if "\t" in line or not line else " "
    return between.join([line.rstrip(), *cells] if line else cells)


# ---- evaluate


def evaluate(model, data, given):
    """Accuracy, and the scores of each type of span as conlleval gives them, else of each label."""
    import numpy as np

    corpus = _read_for(model, data)
    predicted = _predict_text(model, corpus)
    truth, guessed = (np.array([label for labels in y for label in labels]) for y in (corpus.y, predicted))
    whole = sum(a == b for a, b in zip(corpus.y, predicted, strict=True))
    facts = {
        "sentences": f"{len(corpus.y)}, {whole} of them without an error",
        "tokens": f"{truth.size}",
        "accuracy": f"{np.mean(truth == guessed):.6g}",
    }
    known = [str(label) for label in model.classes_]
    _warn_of_new_labels(corpus, known)
    if are_spans(known):
        return facts, _span_table(corpus.y, predicted)
    return facts, class_table(truth, guessed, np.array(sorted({*known, *corpus.labels})))


def _warn_of_new_labels(corpus, known):
    new = [label for label in corpus.labels if label not in set(known)]
    if new:
        tokens = sum(label in new for labels in corpus.y for label in labels)
        what = f"{count(len(new), 'label')} new to the model, counted as wrong ({count(tokens, 'token')})"
        say(f"fenchel: warning: {corpus.name} has {what}: {listed(new)}")


def _span_table(truth, predicted):
    from fenchel.spans import span_scores

    scores = span_scores(truth, predicted)
    columns = ["span", "precision %", "recall %", "F1 %", "true", "predicted", "right"]
    rows = [
        [name, *(f"{100 * share:.2f}" for share in (row.precision, row.recall, row.f1))]
        + [str(number) for number in (row.n_true, row.n_predicted, row.n_right)]
        for name, row in (("all", scores), *scores.types.items())
    ]
    return Table(columns, rows, numbers=set(columns[1:]))


# ---- inspect


def inspect(model, top):
    """Labels and sizes; transitions; the heaviest attributes of each label."""
    import numpy as np

    weights, labels = model.weights_, [str(label) for label in model.classes_]
    edges = model.sizes_[1]
    facts = {
        "labels": listed(labels, 30),
        "attributes": f"{model.sizes_[0]:,}" + (f", and {edges:,} of pairs of labels" if edges else ""),
        "weights": f"{weights.size:,}, {np.count_nonzero(weights):,} of them other than 0",
    }
    if _has_columns(model, strict=False):
        extractor = model.source_.extractor
        facts["read as"] = f"{extractor.n_columns + 1} columns, template {extractor.template.name}"
    return facts, *_transition_tables(model, labels), _attribute_table(model, labels, top)


def _transition_tables(model, labels):
    """All transitions, or the heaviest where there are too many to see; none if the model has none."""
    table = model.transitions_
    if not table.any():
        return []
    banned = {tuple(pair) for pair in model.banned or ()}

    def cell(a, b, digits):
        is_banned = (model.classes_[a], model.classes_[b]) in banned
        return "ban" if is_banned else f"{table[a, b]:+.{digits}f}"

    named, numbered = ["from \\ to", *labels], ["from \\ to", *map(str, range(1, len(labels) + 1))]
    rows = [f"{number} {label}" for number, label in zip(numbered[1:], labels, strict=True)]
    for heads, starts, digits in ((named, labels, 2), (numbered, rows, 1)):
        if _width(heads, starts, digits) <= WIDTH:
            cells = [
                [start, *(cell(a, b, digits) for b in range(len(labels)))] for a, start in enumerate(starts)
            ]
            title = "transitions, from the label of the row to that of the column"
            return [Table(heads, cells, set(heads[1:]), title)]
    return [_heaviest_transitions(table, labels, cell)]


def _width(heads, starts, digits):
    """Columns of the terminal that a table of numbers as +1.23 needs."""
    numbers = sum(max(len(head), 3 + digits) + 3 for head in heads[1:])
    return max(map(len, [heads[0], *starts])) + numbers


def _heaviest_transitions(table, labels, cell):
    pairs = [(a, b) for a in range(len(labels)) for b in range(len(labels))]
    heaviest = sorted(pairs, key=lambda pair: -abs(table[pair]))[:SHOWN]
    rows = [[labels[a], labels[b], cell(a, b, 2)] for a, b in heaviest]
    return Table(
        ["from", "to", "weight"], rows, {"weight"}, f"heaviest transitions ({len(rows)} of {table.size:,})"
    )


def _attribute_table(model, labels, most):
    import numpy as np

    names, rows = model.attribute_names_, []
    for label, weights in zip(labels, model.coef_, strict=True):
        heaviest = np.argsort(-np.abs(weights), kind="stable")[:most]
        rows += [[label, names[a], f"{weights[a]:+.4f}"] for a in heaviest if weights[a]]
    return Table(["label", "attribute", "weight"], rows, {"weight"}, "heaviest attributes of each label")


# ---- data


def _read_for(model, data):
    """Labelled sentences of the format a model was trained on."""
    if not _has_columns(model):
        return read(data, "crfsuite")
    corpus, wanted = read(data, "columns"), model.source_.extractor.n_columns + 1
    if corpus.columns != wanted:
        found = f"{corpus.name}: {count(corpus.columns, 'column')}"
        raise Failure(f"{found}, but the model was trained on {wanted}, the label being the last")
    return corpus


def _has_columns(model, strict=True):
    """Whether a model reads column files; if not, it reads attributes."""
    source_, named = model.source_, model.source_.kind == "named"
    if strict and (source_.kind == "numbered" or (named and source_.function is not None)):
        raise Failure("the model was trained in Python on what no file holds; use it there, by fenchel.load")
    return source_.kind == "template"


def _predict_text(model, corpus):
    predicted = model.predict(corpus.X)
    if model.classes_.dtype.kind == "U":
        return predicted
    return [list(map(str, labels)) for labels in predicted]
