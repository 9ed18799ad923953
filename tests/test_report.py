"""The page of `fenchel report`: self-contained, safe, and drawn by a real browser where there is one."""

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from math import inf, nan

import pytest

from commands import fails, run, write_classes
from fenchel.io.trace import write_trace
from fenchel.report.page import page
from fenchel.report.tables import Table
from fenchel.trace import Row, Trace

EVIL = "<script>alert(1)</script>"
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def trace(solver="cd-dual"):
    rows = [
        Row(float(k), 10 * k, k, 0.1 * k, 1.0 + 0.5**k, 1.0 - 0.5**k, 0.5 ** (k - 1), validation=0.9)
        for k in range(6)
    ]
    return Trace(solver, "binary log, n = 10", [Row(0.0, 0, 0, 0.0, inf, nan, inf), *rows])


class Elements(HTMLParser):
    """Names, attributes and text of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.words = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.words.append(data)


@pytest.fixture
def text():
    table = Table(["label", "weight"], [[EVIL, "+1.5"], *([f"a{k}", "-0.5"] for k in range(20))], {"weight"})
    heat = Table(["from", "x"], [["x", "+2.0"], ["y", "ban"]], {"x"}, heat=True)
    return page(EVIL, [EVIL], [trace(EVIL), trace()], [(EVIL, {EVIL: EVIL}, [table, heat])])


def test_labels_and_names_are_text_and_never_markup(text):
    elements = Elements(text)
    scripts = [attributes for tag, attributes in elements.tags if tag == "script"]
    assert scripts == [{"type": "application/json", "id": "traces"}, {}]
    assert "".join(elements.words).count(EVIL) >= 6
    assert not any(name.startswith("on") for _, attributes in elements.tags for name in attributes)


def test_a_page_asks_for_nothing_from_elsewhere(text):
    assert not re.search(r"""(src|href)\s*=|url\((?!#)|@import|https?://(?!www\.w3\.org/2000/svg)""", text)


def test_the_script_is_given_the_numbers_of_all_traces_and_null_for_what_is_none(text):
    data = re.search(r'<script type="application/json" id="traces">(.*?)</script>', text, re.DOTALL)[1]
    first, second = json.loads(data)
    assert (first["name"], second["name"]) == (EVIL, "cd-dual")
    assert second["passes"] == trace().column("passes")
    assert second["primal"][0] is None
    assert second["distance"][-1] == pytest.approx(trace().distances()[-1])


def test_report_of_a_model_with_its_run_and_scores(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_classes(tmp_path)
    assert run("train", "lr", "three.svm", "-o", "model.fenchel", "--trace", "run.jsonl").exit_code == 0
    result = run("report", "model.fenchel", "run.jsonl", "--test", "three-test.svm", "-o", "page.html")
    assert (result.exit_code, result.stdout) == (0, ""), result.output
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    words = "".join(Elements(text).words)
    for expected in ("is proven within", "accuracy", "confusion", "heaviest features", "processor"):
        assert expected in words


def test_report_refuses_what_it_cannot_show(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_trace("run.jsonl", trace())
    (tmp_path / "other.txt").write_text("hello\n")
    assert "other.txt:1" in fails("report", "other.txt", "-o", "page.html")
    assert "goes with a model" in fails("report", "run.jsonl", "--test", "x", "-o", "page.html")
    assert "no folder" in fails("report", "run.jsonl", "-o", "nowhere/page.html")
    assert "no such file" in fails("report", "missing.jsonl", "-o", "page.html")
    assert not (tmp_path / "page.html").exists()


TYPING = """<script>
const field = document.querySelector("input[type=search]");
field.value = "A7"; field.dispatchEvent(new Event("input"));
const left = [...field.parentElement.querySelectorAll("tbody tr")].filter(row => !row.hidden);
document.title = `${left.length} left, ${document.querySelectorAll("svg path.curve").length} curves`;
</script>"""


@pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine to load the page in")
def test_a_browser_draws_the_curves_and_searches(text, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(text.replace("</body>", f"{TYPING}</body>"), encoding="utf-8")
    quiet = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync"
    offline = "--disable-background-networking --disable-component-update --enable-logging=stderr"
    profile = f"--user-data-dir={tmp_path / 'profile'}"
    command = [BROWSER, *quiet.split(), *offline.split(), profile, "--dump-dom", path.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert "CONSOLE" not in done.stderr
    # two traces: to the optimum, gap, objective and bound, validation; each against passes and seconds
    assert "<title>1 left, 20 curves</title>" in done.stdout


def test_the_demo_trains_shows_and_leaves_its_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("demo")
    assert result.exit_code == 0, result.output
    for expected in ("is proven within", "QUANTITY", "transitions", "unit: cup", "demo-output/page.html"):
        assert expected in result.stdout
    files = sorted(path.name for path in (tmp_path / "demo-output").iterdir())
    assert files == ["model.fenchel", "page.html", "run.jsonl", "test.txt", "train.txt"]
    again = run("evaluate", "demo-output/model.fenchel", "demo-output/test.txt")
    assert again.stdout.splitlines()[0] in result.stdout
