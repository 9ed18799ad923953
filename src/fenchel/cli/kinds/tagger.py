"""The kind `tagger`: Ratnaparkhi's tagger of words, one after the other, on column files."""

import click

import fenchel
from fenchel.cli import options
from fenchel.cli.failures import Failure
from fenchel.cli.kinds.base import TERMINAL, WORDS, Calls, Weights
from fenchel.cli.kinds.tagging import Tagging, attribute_table, separator_of, tagger_facts
from fenchel.cli.output import count
from fenchel.cli.sentences import guess_format, iterate_lines, read, tabs_alone
from fenchel.errors import DataError
from fenchel.report.tables import Told, number


class WordTagger(Tagging):
    """MaxEntTagger on the first column of a file, the words, and the last, their tags."""

    classes = ("MaxEntTagger",)
    summary = "Tags of words one after the other, from a column file."
    compiling = 10
    makes = "a maximum entropy tagger with beam search"
    file = "the column file DATA"
    about = """DATA has a token a line, its columns between blanks or tabs, and a blank line behind each
    sentence. The word is the first column and the tag the last; columns between are not looked at. The tagger
    sees a frequent word or the spelling of a rare one, two words on either side, one and two tags before.
    Gzip is gunzipped, - is standard input. With --valid the F1 of spans is reported if tags are of the kind
    B-NP I-NP O, else the accuracy; with --trace at every check."""
    calls = Calls(
        train=(
            "train.txt -o tagger.fenchel --valid test.txt",
            "train.txt -o tagger.fenchel -C 3 --rare 3 --beam 10",
        ),
        race=("train.txt --min-count 2 --solvers cd-dual,lbfgs,sdca --output race/",),
        path=("train.txt --from 0.1 --to 10 --steps 5 --valid test.txt -o best.fenchel",),
    )
    options = (
        options.count("--beam", 5, "Beginnings of a tag sequence that the search keeps from word to word."),
        options.count("--rare", 5, "A word that DATA has fewer times is known by its spelling."),
        options.count("--min-count", 1, "Leave out attributes that fewer tokens have; frequent words stay."),
        click.option(
            "--tag-dictionary/--no-tag-dictionary",
            default=True,
            help="Whether a frequent word takes only tags that it has in DATA.",
        ),
        options.flag("--observed", "Weights only for attributes with tags they were seen with."),
        options.separator,
    )
    arguments = ("beam", "rare", "min_count", "tag_dictionary", "observed")
    other_constant = "sigma2"

    def read(self, path, settings):
        return _read_words(path, tabs_alone(settings["separator"]))

    def read_like(self, path, examples, settings):
        return _read_words(path, examples.separator)

    def sizes(self, model, examples, data):
        return f"{examples.sizes()}, {count(data.rows.n_columns, 'attribute')}"

    def why_no_probabilities(self, model, form):
        return "a MaxEntTagger has no probability of each tag; --nbest gives those of whole sentences"

    def read_for(self, model, path):
        return _read_words(path, separator_of(model))

    def sentences(self, model, path):
        for lines, tokens in iterate_lines(path, separator_of(model)):
            yield lines, None if tokens is None else tokens.column(0)

    def inspect(self, model, top, width=TERMINAL):
        """Tags and sizes, and the heaviest attributes of each tag."""
        words, frequent = len(model.features_.words), model.features_.n_frequent
        facts = tagger_facts(model, number(model.features_.size, ","), model.coef_)
        counts = {"count": words, "frequent": frequent}
        facts["words"] = Told(counts, f"{words:,}, {frequent:,} of them frequent")
        return facts, [attribute_table(model, top)]

    def weights(self, model):
        return [Weights("feature", model.attribute_names_, model.classes_.tolist(), model.coef_.T)]

    def compile(self):
        fenchel.MaxEntTagger().fit(WORDS, WORDS).predict(WORDS)


def _read_words(path, separator):
    """A column file; a CRFsuite file, which is none, is told apart."""
    try:
        return read(path, "columns", separator)
    except DataError:
        if path == "-" or guess_format(path) == "columns":
            raise
        raise Failure(f"{path}: looks like a CRFsuite file, which holds no words; `crf` reads it") from None
