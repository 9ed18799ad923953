"""Event files for the command line: which options go with which format, and files as encoded events."""

from dataclasses import dataclass, replace
from itertools import chain
from itertools import count as numbers

import click

from fenchel.cli.failures import Failure
from fenchel.cli.output import count

# format: the options it knows; `section` is not kept with a model
FORMATS = {"opennlp": {"real_values"}, "megam": {"explicit", "values", "section"}, "tadm": set()}


@dataclass(frozen=True)
class EventFiles:
    """Events of files one after the other, read anew with each iter()."""

    paths: tuple[str, ...]
    reading: dict

    def __iter__(self):
        from fenchel.io.events import read_events

        return chain.from_iterable(read_events(path, **self.reading) for path in self.paths)


def reading_of(given: dict) -> dict:
    """Arguments of `read_events` from options; one that does not go with the format is an error."""
    reading = {name: value for name, value in given.items() if value not in (None, False)}
    if "format" not in reading:
        raise click.UsageError(
            "Missing option '--format', one of opennlp, megam, tadm; only shards know their own."
        )
    for name in reading.keys() - {"format"} - FORMATS[reading["format"]]:
        home = next(format for format, known in FORMATS.items() if name in known)
        option = f"--{name.replace('_', '-')}"
        raise click.UsageError(f"{option} is an option of {home} files, but --format is {reading['format']}.")
    if reading["format"] == "opennlp":
        reading.setdefault("real_values", False)
    return reading


def reading_like(model, given: dict) -> dict:
    """The same for a model: as its training data were read, unless another format is given."""
    known = {} if "format" in given else dict(model.read_as)
    if not known and "format" not in given:
        raise Failure("the model does not say in which format its events were; give --format")
    options = set().union(*FORMATS.values()) | {"format"}
    if known and (known.get("format") not in FORMATS or known.keys() - options):
        raise Failure("the model says in words unknown here how its events were read; give --format")
    reading = reading_of(known | given)
    layout = "joint" if is_joint(reading) else "crossed"
    if layout != model.layout_:
        wants = "candidates (tadm, megam --explicit)" if model.layout_ == "joint" else "labels and features"
        raise Failure(f"the model was trained on files of {wants}; {reading['format']} as given is not")
    return reading


def is_joint(reading: dict) -> bool:
    """Whether each event of the file has candidates of its own."""
    return reading["format"] == "tadm" or reading.get("explicit", False)


def read(path, reading: dict, vocabulary=None, min_count: int = 1, hash_bits=None):
    """The events of a file, encoded as they are read: their text is never held whole."""
    from fenchel.estimators.encoded import encode_events, encode_joint
    from fenchel.features.hashing import require_no_counts

    y, weight = [], []
    encode = encode_joint if is_joint(reading) else encode_events
    events = _features(path, reading, y, weight)
    require_no_counts(min_count, hash_bits)
    data = encode(events, vocabulary=vocabulary, min_count=min_count, hash_bits=hash_bits)
    return replace(data, y=y, weight=_weights(weight))


def write_shards(paths, folder, reading: dict, **settings):
    """The `fenchel.Shards` of the events of these files."""
    from fenchel.io.sharding import shard_events

    if is_joint(reading):
        raise Failure("shards hold labels and features; files of candidates are trained on as they are")
    if settings["min_count"] > 1 and "-" in paths:
        raise Failure("--min-count reads twice, but standard input is there once; give a file")
    return shard_events(EventFiles(paths, reading), folder, read_as=reading, **settings)


def read_stored(folder):
    """The same from a folder of shards."""
    from fenchel.estimators.encoded import events_on_disk
    from fenchel.io.shards import Shards

    return events_on_disk(Shards(folder))


def sizes(data) -> str:
    """How many events, labels or candidates, features and non-zeros."""
    inside = f"{data.rows.shape[0]:,} candidates" if data.joint else count(data.classes.size, "label")
    features = f"{count(data.rows.n_columns, 'feature')}, {count(data.rows.nnz, 'non-zero')}"
    return f"{count(data.n, 'event')}, {inside}, {features}"


def _features(path, reading, y, weight):
    """Yield the features of each event; its label and weight go to y and weight."""
    from fenchel.io.events import read_events

    for event in read_events(path, **reading):
        if is_joint(reading):
            y.append(_truth(event.counts))
            weight.append(sum(event.counts))
            yield event.candidates
        else:
            y.append(event.label)
            weight.append(event.weight)
            yield event.attributes


def _truth(counts):
    """The candidate that was right, or a dict of shares where more than one was."""
    total = sum(counts)
    shares = {k: c / total for k, c in zip(numbers(), counts, strict=False) if c}
    return next(iter(shares)) if len(shares) == 1 else shares


def _weights(weight):
    import numpy as np

    weight = np.array(weight)
    return None if (weight == 1.0).all() else weight
