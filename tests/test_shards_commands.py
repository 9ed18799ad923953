"""The command line on shards: options that have no meaning there, folds, disks that are full, ends."""

import signal
import subprocess
import sys
import time
from subprocess import PIPE

import pytest

import fenchel
from commands import fails, run, write_classes, write_events
from test_full_disk import full_disk


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_classes(tmp_path)
    write_events(tmp_path)
    (tmp_path / "words.txt").write_text("a T X\nb U Y\n\nb T Y\na U X\n\n" * 3)
    (tmp_path / "trees.conll").write_text(
        "1\ta\t_\tA\tA\t_\t2\tx\t_\t_\n2\tb\t_\tB\tB\t_\t0\ty\t_\t_\n\n" * 3
    )
    return tmp_path


FILES = {"lr": "train.svm", "maxent": "train.events", "crf": "words.txt", "parser": "trees.conll"}
SHARDING = {"maxent": ("--format", "opennlp"), "crf": ("--template", "pos"), "parser": ("--min-count", 1)}


def shard(kind, *options):
    done = run("shard", kind, FILES[kind], "-o", f"{kind}-shards", *SHARDING.get(kind, ()), *options)
    assert done.exit_code == 0, done.output
    return f"{kind}-shards"


@pytest.mark.parametrize(
    "kind, words",
    [
        ("lr", ("--features", 9)),
        ("lr", ("--zero-based",)),
        ("maxent", ("--format", "megam")),
        ("maxent", ("--real-values",)),
        ("crf", ("--format", "columns")),
        ("crf", ("--separator", "tab")),
        ("parser", ("--tags", "fine")),
    ],
)
def test_options_of_reading_belong_to_the_shards(folder, kind, words):
    told = fails("train", kind, shard(kind), "-o", "model", *words)
    assert told == f"{kind}-shards: {words[0]} belongs to the shards; give it to `fenchel shard`, not here"


def test_the_file_beside_shards_may_be_of_another_kind(folder):
    (folder / "from-0.svm").write_text("1 0:1 2:1\n-1 1:1\n")
    assert run("train", "lr", shard("lr"), "-o", "m", "--valid", "from-0.svm", "--zero-based").exit_code == 0
    (folder / "other.megam").write_text("sport ball goal\ntrade market price\n")
    words = "--valid", "other.megam", "--format", "megam"
    assert run("train", "maxent", shard("maxent"), "-o", "m", *words).exit_code == 0


@pytest.mark.parametrize("kind, default", [("maxent", 1), ("crf", 1), ("parser", 3)])
def test_a_count_that_is_not_that_of_the_shards_is_refused(folder, kind, default):
    place = shard(kind, "--min-count", 2)
    told = fails("train", kind, place, "-o", "model", "--min-count", default)
    assert f"the shards were written with --min-count 2, not {default}; leave that out" in told
    assert run("train", kind, place, "-o", "model", "--min-count", 2).exit_code == 0
    assert run("train", kind, place, "-o", "model").exit_code == 0
    assert fenchel.load("model").min_count == 2


@pytest.mark.parametrize("kind", ["lr", "maxent"])
def test_folds_of_shards_are_those_of_the_file(folder, kind):
    place, file = shard(kind), (FILES[kind], *SHARDING.get(kind, ()))
    for verb, *words in (("cv", "-k", 3), ("path", "--cv", 3, "--from", 0.1, "--to", 1, "--steps", 2)):
        here, there = run(verb, kind, place, *words), run(verb, kind, *file, *words)
        assert here.exit_code == there.exit_code == 0, here.output
        assert scores(here.stdout) == scores(there.stdout)


def scores(table):
    """The accuracies and numbers of passes of a table, none of its seconds."""
    return [[word for word in line.split() if word.startswith("0.")][-1:] for line in table.splitlines()]


@pytest.mark.parametrize("kind", FILES)
def test_a_full_disk_is_told_by_the_name_of_the_folder(folder, kind):
    words = "shard", kind, FILES[kind], "-o", "shards", *SHARDING.get(kind, ())
    with full_disk(40):
        told = fails(*words, code=1)
    assert told == f"{folder}/shards: file too large"
    assert not [path.name for path in folder.iterdir() if "shards" in path.name]


def test_a_disk_without_room_for_shards_written_once_more_is_named(folder):
    place = shard("lr", "--rows", 20)
    with full_disk(40):
        told = fails("train", "lr", place, "-o", "model", "--loss", "hinge", "-q", code=1)
    assert told == f"{place}, 0.0 MB to write the shards once more: file too large"


def start_sharding(folder) -> subprocess.Popen:
    """A process that writes shards of what comes from its input, and has begun."""
    call = [sys.executable, "-m", "fenchel", "shard", "lr", "-", "-o", "out"]
    process, others = subprocess.Popen(call, stdin=PIPE, stderr=PIPE, cwd=folder), begun(folder)
    while process.poll() is None and begun(folder) == others:
        time.sleep(0.02)
    return process


def begun(folder):
    return {path.parent for path in folder.glob(".out.*/*.bin")}


def remains(folder):
    return [path.name for path in folder.iterdir() if "out" in path.name]


def test_kill_cleans_up_as_ctrl_c_does(folder):
    process = start_sharding(folder)
    process.send_signal(signal.SIGTERM)
    assert process.communicate()[1] == b"fenchel: interrupted\n"
    assert process.returncode == 1 and not remains(folder)


def test_what_a_killed_run_has_left_goes_with_the_next_one(folder):
    dead, alive = start_sharding(folder), start_sharding(folder)
    dead.kill()
    dead.communicate()
    assert len(remains(folder)) == 2
    assert run("shard", "lr", "train.svm", "-o", "out").exit_code == 0
    assert len(remains(folder)) == 2  # the shards, and those of the run that goes on
    alive.send_signal(signal.SIGINT)
    alive.communicate()
    assert remains(folder) == ["out"]


@pytest.mark.parametrize("kind", ["crf", "parser"])
def test_a_file_of_another_kind_is_recognised_before_it_is_sharded(folder, kind):
    told = fails("shard", kind, FILES[kind], "train.svm", "-o", "shards", *SHARDING[kind])
    assert (
        told
        == f"train.svm: is no data for `{kind}`; it looks like a libsvm file, which `lr` or `maxent` reads"
    )
    assert not (folder / "shards").exists()


def test_of_several_files_the_one_at_fault_is_recognised(folder):
    told = fails("shard", "lr", "train.svm", "words.txt", "test.svm", "-o", "shards")
    assert told.startswith("words.txt:1: 'a' is not a number") and "it looks like a column file" in told


def test_a_weight_of_a_label_that_is_none_names_it(folder):
    told = fails("train", "lr", "train.svm", "-o", "model", "-q", "--class-weight", "7=2")
    assert told == "--class-weight has 7.0, which is no label; there are -1.0, 1.0"
