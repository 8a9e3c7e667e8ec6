"""The page of learning curves: whole, escaped, without a script, and the same bytes each time."""

from __future__ import annotations

import re
from collections import Counter
from html.parser import HTMLParser

import pytest

from evaluation.report.figures import luminance
from evaluation.results.colours import SERIES
from evaluation.studies.curve import CURVE
from evaluation.studies.table import StudyTables
from tests.evaluation.sample_curves import curve_runs, summary_of

HOSTILE = "</title><script>alert(1)</script>"
VOID = {"meta", "link", "br", "hr", "img", "input", "wbr"}


class Reader(HTMLParser):
    """Checks that elements are closed in order, and keeps what there is."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: Counter[str] = Counter()
        self.ids: Counter[str] = Counter()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        held = dict(attrs)
        self.tags[tag] += 1
        self.links += [value for name in ("href", "src", "xlink:href") if (value := held.get(name))]
        if held.get("id"):
            self.ids[str(held["id"])] += 1
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    assert reader.open == []
    return reader


def render(summary: StudyTables) -> str:
    """Return the page of a summary."""
    return CURVE.files(summary)["curve.html"]


@pytest.fixture(scope="module")
def summary() -> StudyTables:
    """Two learners with controls, random models, and a series of revisions."""
    runs = curve_runs(
        lambda _, size, draw: 0.5 + size / 2000 + draw / 50,
        sizes=(62, 250, 500),
        draws=2,
        renderings=("probe", "no_language", "random_labels"),
        block_bits=0.7,
    )
    runs += curve_runs(lambda *_: 0.9, sizes=(62, 250, 500), draws=2, learner="mlp", zero_shot=None)
    runs += curve_runs(lambda *_: 0.5, sizes=(62,), draws=1, zero_shot=None, random_weights=0)
    for revision in ("step10", "step1000"):
        runs += curve_runs(lambda *_: 0.6, sizes=(62,), draws=1, revision=revision, model="org/m")
    return summary_of(runs)


@pytest.mark.slow
def test_the_page_is_whole_and_asks_for_nothing(summary: StudyTables) -> None:
    page = render(summary)
    reader = read(page)
    assert reader.tags["script"] == 0
    assert "default-src 'none'" in page
    assert max(reader.ids.values()) == 1, "ids of figures are kept apart"
    assert all(link.startswith("#") and link[1:] in reader.ids for link in reader.links)
    assert reader.tags["svg"] == reader.tags["figure"] == 5
    for text in ("WS", "MAX", "LangSense", "chance", "zero-shot", "How to read it", "compression"):
        assert text in page
    assert "By training step" in page
    assert "Random initialisation" in page


@pytest.mark.slow
def test_figures_are_in_the_colours_of_the_page(summary: StudyTables) -> None:
    page = render(summary)
    for figure in re.findall(r"<svg.*?</svg>", page, re.S):
        assert "var(--series0)" in figure
        assert not any(light in figure for light, _ in SERIES.values())


def test_colours_of_lines_are_readable_in_light_and_dark() -> None:
    for light, dark in SERIES.values():
        for colour, ground in ((light, "#ffffff"), (dark, "#10151b")):
            pair = sorted((luminance(colour), luminance(ground)))
            assert (pair[1] + 0.05) / (pair[0] + 0.05) >= 4.5, colour


def test_names_cannot_leave_their_place() -> None:
    runs = curve_runs(
        lambda *_: 0.7,
        sizes=(62, 125),
        draws=1,
        probe=HOSTILE,
        model=HOSTILE,
        baselines={HOSTILE: 0.6},
    )
    page = render(summary_of(runs))
    assert read(page).tags["script"] == 0
    assert "alert(1)" in page


def test_learners_without_a_model_are_drawn_beside_those_of_models() -> None:
    runs = curve_runs(lambda *_: 0.7, sizes=(62, 125), draws=1)
    runs += curve_runs(
        lambda *_: 0.6,
        sizes=(62, 125),
        draws=1,
        model="none",
        learner="mlm_baseline",
        zero_shot=None,
    )
    page = render(summary_of(runs))
    first, second = re.findall(r"<svg.*?</svg>", page, re.S)
    assert "mlm_baseline (no model)" in first
    assert "(no model)" not in second


@pytest.mark.slow
def test_every_number_of_the_tables_is_on_the_page(summary: StudyTables) -> None:
    page = render(summary)
    for point in summary.tables["runs"]:
        assert f"{100 * point['accuracy'].value:.1f}%" in page
    for curve in summary.tables["curves"]:
        assert f"{100 * curve['ws'].low:.1f}% to {100 * curve['ws'].high:.1f}%" in page
