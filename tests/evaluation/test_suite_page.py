"""The page of a suite: what is on it, and how it behaves in a browser."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import evaluation
from evaluation.cli import main
from evaluation.names import DisplayNames
from evaluation.report.suite.collect import StoredRun, collect
from evaluation.report.suite.leaderboard import arrange, probe_names, system_names
from evaluation.report.suite.page import as_script
from evaluation.results.types import FACTS, PREDICTIONS, RESULTS, Metrics
from kbprobe.errors import UsageError
from kbprobe.tables import neutral
from tests.chromium import CHROMIUM, NO_CHROMIUM, Browser, browser
from tests.evaluation.sample_results import results_of
from tests.evaluation.saved_runs import save_run

IDS = [f"r{row:02d}" for row in range(60)]
CLUSTERS = [f"c{row // 3}" for row in range(60)]
FAMILIES = ["near" if row % 2 else "far" for row in range(60)]
GOOD, BAD = [0] * 50 + [1] * 10, [2] * 40 + [0] * 20


def save_suite(folder: Path) -> Path:
    """Two models on two probes; a third one on one of them."""
    for probe in ("ages", "words"):
        for model, said in (("org/good", GOOD), ("org/bad", BAD)):
            where = folder / probe / model.replace("/", "--")
            save_run(
                where, model, said, CLUSTERS, ids=IDS, families=FAMILIES, probe=probe,
                weights_sha256=model.ljust(64, "0"),
            )  # fmt: skip
    save_run(
        folder / "ages" / "other", "org/other", GOOD, CLUSTERS, ids=IDS, families=FAMILIES,
        probe="ages", weights_sha256="c" * 64,
    )  # fmt: skip
    return folder


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_suite(tmp_path_factory.mktemp("suite"))


@pytest.fixture(scope="module")
def page(suite: Path) -> Path:
    return evaluation.report_suite(suite, suite / "page.html").path


def test_systems_by_probes_the_best_first(suite: Path) -> None:
    board = arrange(collect(suite, 100))
    assert [probe.name for probe in board.probes] == ["ages", "words"]
    assert [system.name for system in board.systems] == ["org/good", "org/bad", "org/other"]
    good, bad, other = board.systems
    # Of three choices, 50 of 60 right: what is above chance, of what there is above it.
    assert good.mean == pytest.approx((50 / 60 - 1 / 3) / (1 - 1 / 3))
    assert other.mean is None  # Not on all probes: it is not ranked among the others.
    assert [entry and entry.reaches for entry in bad.entries] == ["nothing", "nothing"]
    assert good.reaching("shortcut") == 2


def named(**fields: dict[str, Any]) -> StoredRun:
    """A run of which only what names it is looked at."""
    return StoredRun(
        "folder", results_of(Metrics.model_construct(normalization="sum"), **fields), None
    )


def test_systems_are_named_by_what_tells_them_apart() -> None:
    """By no more: the second probe's options differ as well, but not between its models."""
    trained = {"learner": "linear", "train_seed": 0, "epochs": 3}
    runs = [
        named(model={"id": "a/plain"}),
        named(model={"id": "a/plain"}, probe={"name": "b"}, scoring={"options": {"letters": True}}),
        named(model={"id": "/x/tuned"}, scoring={"options": {**trained, "train": 100}}),
        named(model={"id": "/x/tuned"}, scoring={"options": {**trained, "train": 200}}),
        named(
            model={"id": "/x/tuned"},
            scoring={"options": {**trained, "train": 200, "train_seed": 1}},
        ),
        named(model={"id": "/y/one", "weights_sha256": "1" * 64}),
        named(model={"id": "/z/one", "weights_sha256": "2" * 64}, probe={"name": "b"}),
        named(model={"id": "none"}, scoring={"scorer": "random"}),
    ]
    assert system_names(runs) == [
        "a/plain",
        "a/plain",
        "tuned, train 100",
        "tuned, train 200, train seed 0",
        "tuned, train 200, train seed 1",
        "one, model /y/one",
        "one, model /z/one",
        "random",
    ]


def test_no_name_is_given_to_a_name() -> None:
    runs = [
        named(model={"id": "a/weak"}),
        named(model={"id": "a/strong"}),
    ]
    turned = DisplayNames({"a/weak": "a/strong", "a/strong": "a/weak"})
    assert system_names(runs, turned) == ["a/strong", "a/weak"]
    chained = DisplayNames({"a/weak": "a/strong", "a/strong": "Foo"})
    assert system_names(runs, chained) == ["a/strong", "Foo"]
    scored = [
        named(model={"id": "a/weak"}, scoring={"scorer": how}) for how in ("masked", "causal")
    ]
    whole = DisplayNames({"a/weak": "Weak", "a/weak, scorer causal": "Weak as a decoder"})
    assert system_names(scored, whole) == ["Weak, scorer masked", "Weak as a decoder"]
    assert not whole.unused


def test_probes_are_named_by_what_tells_them_apart() -> None:
    runs = [
        named(probe={"name": "ages", "fingerprint": "a"}),
        named(probe={"name": "ages", "fingerprint": "b", "split": "train"}),
        named(probe={"name": "words", "fingerprint": "c"}, scoring={"options": {"fold": 1}}),
        named(probe={"name": "words", "fingerprint": "d"}, scoring={"options": {"fold": 2}}),
        named(probe={"name": "parts", "fingerprint": "e", "rows": 1200}),
        named(probe={"name": "parts", "fingerprint": "f", "rows": 200}),
    ]
    assert probe_names(runs) == [
        "ages (test)",
        "ages (train)",
        "words (fold 1)",
        "words (fold 2)",
        "parts (1,200 rows)",
        "parts (200 rows)",
    ]


def test_damaged_folders_are_named_and_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    suite = save_suite(tmp_path / "suite")
    edited = suite / "ages" / "org--bad" / RESULTS
    edited.write_text(edited.read_text("utf-8").replace("org/bad", "org/best"), encoding="utf-8")
    (suite / "words" / "org--bad" / PREDICTIONS).unlink()
    (suite / "other tool").mkdir()
    (suite / "other tool" / RESULTS).write_text('{"results": {}}', encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        main(["report", str(suite)])
    assert ended.value.code == 0
    said = capsys.readouterr()
    assert said.out == f"{suite / 'report.html'}\n"
    assert said.err.count("left out:") == 3
    for name in ("ages/org--bad", "words/org--bad", "other tool"):
        assert str(suite / name) in said.err
    page = (suite / "report.html").read_text("utf-8")
    assert "3 folders left out" in page
    assert "org/bad" not in re.sub("<ul class=.cautions.*?</ul>", "", page, flags=re.S)


def test_a_folder_without_results_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = save_run(tmp_path / "run", "m", [0, 1])
    (run / PREDICTIONS).write_bytes(b"damaged")
    with pytest.raises(SystemExit) as ended:
        main(["report", str(tmp_path)])
    assert ended.value.code == 1
    assert "holds no results that can be read" in capsys.readouterr().err
    (run / RESULTS).unlink()
    with pytest.raises(UsageError, match=r"There are no results in .*evaluate-probe PROBE"):
        collect(tmp_path, 0)
    with pytest.raises(UsageError, match="There is no folder"):
        collect(tmp_path / "none", 0)


def test_copies_facts_and_hidden_folders_are_no_runs_of_their_own(tmp_path: Path) -> None:
    for name in ("run", ".run.new-1", "copy"):
        save_run(tmp_path / name, "m", [0, 1])
    save_run(tmp_path / "run" / FACTS, "m", [0, 0], probe="facts")
    found = collect(tmp_path, 0)
    assert [run.folder for run in found.runs] == ["copy"]
    assert found.left_out == [f"{tmp_path / 'run'} holds the same results as {tmp_path / 'copy'}."]


def test_one_page_at_a_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["report", str(tmp_path), str(tmp_path), "-o", "page.html"])
    assert ended.value.code == 2
    assert "-o names one page, but 2 folders are given" in capsys.readouterr().err


def test_the_same_results_give_the_same_bytes(suite: Path, page: Path) -> None:
    again = evaluation.report_suite(suite, suite / "again.html").path
    assert again.read_bytes() == page.read_bytes()


def test_rows_are_sampled_or_left_out(suite: Path) -> None:
    found = collect(suite, 10)
    assert {len(rows) for rows in found.rows.values()} == {10}
    assert {run.answers and len(run.answers.picked) for run in found.runs} == {10}
    assert found.runs[0].results.metrics.items == 60
    without = evaluation.report_suite(suite, suite / "without.html", rows=0)
    text = without.path.read_text("utf-8")
    assert "packed-0" not in text
    assert "made without questions" in text


def test_a_bundle_of_another_form_is_refused() -> None:
    with pytest.raises(ValueError, match="no default export"):
        as_script("export{A as B}")


# --- in a browser ----------------------------------------------------------------------------

BOARD = "[aria-labelledby=leaderboard] > .wide table"


@pytest.fixture(scope="module")
def tab(page: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if not CHROMIUM:
        pytest.skip(NO_CHROMIUM)
    with browser(tmp_path_factory.mktemp("chromium")) as opened:
        opened.size(1280, 900)
        yield opened


@pytest.fixture
def opened(tab: Browser, page: Path) -> Browser:
    """The page, freshly loaded."""
    tab.call("Page.navigate", url="about:blank")
    tab.requests.clear()
    tab.problems.clear()
    show(tab, page)
    return tab


def show(tab: Browser, page: Path, fragment: str = "") -> None:
    tab.open(page, fragment)
    tab.wait("performance.getEntriesByName('complete').length > 0")


def texts(tab: Browser, selector: str) -> list[str]:
    found: list[str] = tab.run(
        f"[...document.querySelectorAll({json.dumps(selector)})].map((one) => one.innerText.trim())"
    )
    return found


def choose(tab: Browser, **values: Any) -> None:
    for field, value in values.items():
        tab.run(f"document.getElementById('{field}').value = {json.dumps(str(value))}")
        event = "new Event('input', {bubbles: true})"
        tab.run(f"document.getElementById('{field}').dispatchEvent({event})")
    tab.run("new Promise((done) => setTimeout(done, 250))")
    tab.wait("!document.getElementById('rows').classList.contains('stale')")


def test_nothing_is_asked_for_and_nothing_goes_wrong(opened: Browser, page: Path) -> None:
    assert opened.requests == [page.as_uri()]
    assert opened.problems == []
    assert texts(opened, "#found") == ["60 of 60 questions: ages, org/good."]
    assert len(texts(opened, "#rows tbody tr")) == 25


@pytest.mark.slow
def test_leaderboard_is_sorted_by_mouse_and_keyboard(opened: Browser) -> None:
    names = f"{BOARD} tbody th"
    assert texts(opened, names) == ["org/good", "org/bad", "org/other"]
    opened.run(f"document.querySelectorAll('{BOARD} thead th')[1].click()")
    opened.run(f"document.querySelectorAll('{BOARD} thead th')[1].click()")
    assert texts(opened, names) == ["org/other", "org/bad", "org/good"]
    opened.run(f"document.querySelector('{BOARD} thead th [role=button]').focus()")
    for kind in ("keyDown", "keyUp"):
        opened.call("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", text="\r")
    opened.wait(f"document.querySelector('{BOARD} tbody th').innerText == 'org/bad'")
    assert texts(opened, names) == ["org/bad", "org/good", "org/other"]


def test_questions_are_filtered_and_compared(opened: Browser) -> None:
    choose(opened, model=0, show="wrong")
    assert texts(opened, "#found") == ["10 of 60 questions: ages, org/good, wrong."]
    choose(opened, family="near")
    assert texts(opened, "#found") == ["5 of 60 questions: ages, org/good, wrong, near."]
    choose(opened, family="", other=1, show="only")
    assert texts(opened, "#found")[0].startswith("40 of 60 questions: ")
    choose(opened, show="differ", text="R59")
    assert texts(opened, "#found")[0].startswith("1 of 60 questions: ")
    assert texts(opened, "#rows tbody td")[:4] == ["q r59", "gold", "✗ wrong", "✓ gold"]
    opened.run("document.querySelector('#rows .open').click()")
    (detail,) = texts(opened, ".detail")
    assert "id r59" in detail
    assert "chosen by org/bad (" in detail
    choose(opened, text="", probe="", show="any")
    assert texts(opened, "#found")[0].startswith("120 of 120 questions: ")


@pytest.mark.slow
def test_a_link_opens_a_selection(opened: Browser, page: Path) -> None:
    choose(opened, probe=1, model=1, show="right", family="far")
    fragment = opened.run("location.hash")
    opened.call("Page.navigate", url="about:blank")
    show(opened, page, fragment)
    assert texts(opened, "#found")[0].startswith("10 of 60 questions: ")
    opened.call("Page.navigate", url="about:blank")
    show(opened, page, "#probe=99&show=constructor&model=x&other=0")
    assert opened.problems == []
    assert texts(opened, "#found")[0].startswith("60 of 60 questions: ")


@pytest.mark.slow
def test_heat_maps_lead_to_questions(opened: Browser) -> None:
    maps = "[aria-labelledby=maps] details:first-of-type"
    opened.run(f"document.querySelector('{maps}').open = true")
    assert texts(opened, f"{maps} caption") == ["org/good", "org/bad", "org/other"]
    assert texts(opened, f"{maps} td b")[:4] == ["83.3%", "83.3%", "33.3%", "33.3%"]
    opened.run(f"document.querySelectorAll('{maps} td a')[2].click()")
    opened.wait("document.getElementById('found').textContent.startsWith('30 ')")
    assert opened.run("document.getElementById('model').value") == "1"


CATCH = """
window.caught = [];
URL.createObjectURL = (blob) => { window.caught.push(blob); return "#"; };
"""


def downloaded(tab: Browser, name: str) -> str:
    tab.run(CATCH)
    tab.run(f"document.querySelector('[data-download=\"{name}\"]').click()")
    return str(tab.run("window.caught[0].text()"))


@pytest.mark.slow
def test_downloads(opened: Browser) -> None:
    rows = list(csv.DictReader(io.StringIO(downloaded(opened, "leaderboard.csv"))))
    assert [row["model"] for row in rows[:2]] == ["org/good", "org/good"]
    assert float(rows[0]["accuracy"]) == pytest.approx(50 / 60)
    tex = downloaded(opened, "leaderboard.tex")
    assert "\\begin{tabular}{lrrr}" in tex
    assert "org/good & 75.0 & 83.3 & 83.3 \\\\" in tex
    choose(opened, show="wrong")
    rows = list(csv.DictReader(io.StringIO(downloaded(opened, "questions.csv"))))
    assert [row["id"] for row in rows] == IDS[50:]
    assert {row["choice"] for row in rows} == {"wrong"}
    assert downloaded(opened, "questions.tex").count("q r5") == 10


@pytest.mark.slow
def test_cells_are_no_formulas_and_latex_is_escaped(tmp_path: Path, tab: Browser) -> None:
    odd = ["=1+1", "-1", "' =1", "＝1", "'tis", "100% & $x_1^2$ #{\\a}", 'a"b', "plain"]
    save_run(tmp_path / "run", "=m", [0] * 8, probe="+p", choices=("@gold", "x"), ids=odd)
    show(tab, evaluation.report_suite(tmp_path).path)
    rows = list(csv.DictReader(io.StringIO(downloaded(tab, "questions.csv"))))
    assert [row["id"] for row in rows] == [neutral(name) for name in odd]
    assert {(row["probe"], row["model"], row["choice"]) for row in rows} == {
        ("'+p", "'=m", "'@gold")
    }
    tex = downloaded(tab, "questions.tex")
    escaped = "100\\% \\& \\$x\\_1\\textasciicircum{}2\\$ \\#\\{\\textbackslash{}a\\}"
    assert f"& {escaped} &" in tex


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_reaches_beyond_the_window(opened: Browser, width: int) -> None:
    opened.size(width, 844, mobile=width < 400)
    try:
        assert opened.run("document.documentElement.scrollWidth") <= width
        # Every control has a name, and is large enough for a finger on a phone.
        unnamed = (
            "[...document.querySelectorAll('select, input')].filter((one) => !one.labels.length)"
        )
        assert opened.run(f"{unnamed}.length") == 0
        if width < 400:
            small = (
                "[...document.querySelectorAll('.controls select')].map((one) => one.offsetHeight)"
            )
            assert min(opened.run(small)) >= 40
    finally:
        opened.size(1280, 900)


def test_an_edge_with_columns_beyond_it_is_marked(opened: Browser) -> None:
    """On a phone the leaderboard scrolls sideways; arrows say so until its end is reached."""
    wide = "document.querySelector('[aria-labelledby=leaderboard] .wide')"
    arrows = f"Number(getComputedStyle({wide}, '::after').opacity)"
    assert opened.run(arrows) == 0, "all columns are seen"
    opened.size(300, 844, mobile=True)
    try:
        opened.wait(f"{arrows} == 1")
        opened.run(f"{wide}.scrollLeft = 9999")
        opened.wait(f"{arrows} == 0")
    finally:
        opened.size(1280, 900)
