from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from evaluation.items.types import Item, ItemColumns, ProbeSplit, fingerprint
from evaluation.names import model_name
from evaluation.report.breakdowns import heat_map, joined_sizes
from evaluation.report.charts import draw_chart
from evaluation.report.figures import SHADES, draw, luminance, shade, style_rules
from evaluation.report.html import render_page
from evaluation.report.markdown import render_markdown
from evaluation.report.page import (
    cautions,
    document,
    make_report,
    render,
    summary,
    verdict,
)
from evaluation.results.colours import colour, colours
from evaluation.results.examples import (
    CHOICES_SHOWN,
    confident_mistakes,
    drawn,
    worst_clusters,
)
from evaluation.results.metrics import Scores, compared, measure, predictions_table, softmax
from evaluation.results.similarity import measure_similarity, with_similarity
from evaluation.results.summary import cautions as in_terminal
from evaluation.results.types import (
    PREDICTIONS,
    RESULTS,
    ClusterSize,
    Estimate,
    Group,
    Normalization,
    Results,
    Similarity,
    Stratum,
    write_predictions,
    write_results,
)
from evaluation.results.verdicts import other_verdicts, wording_remark
from evaluation.results.words import against_chance, clip, percent, points
from kbprobe.document import Across, Chart, Conclusion, Document, Line, Panel, Section
from kbprobe.errors import MissingDependencyError, UsageError
from kbprobe.format.manifest import MOST_SIMILAR, Audit, Manifest
from tests.evaluation.sample_results import results_of

SECTIONS = ("hops", "clusters", "calibration", "breakdowns", "worst", "samples", "provenance")
TOLERANCE = 1e-4
ABOUT = ("cluster", "hops", "distractor_family", "distractor_hops", "pos", "template", "concept")


def probe(rows: int = 240, width: int = 5, **columns: Any) -> ProbeSplit:
    """Clusters of eight questions; ``columns`` replace those that say where rows belong."""
    generator = np.random.default_rng(0)
    items = ItemColumns.of(
        [
            Item(
                id=f"id{row:05}",
                setup="mc_qa",
                question=f"Question {row} about concept {row // 8}?",
                choices=tuple(
                    f"choice {row} {'x' * int(generator.integers(9))}" for _ in range(width)
                ),
                answer=int(generator.integers(width)),
            )
            for row in range(rows)
        ]
    )
    values: dict[str, Any] = {
        "cluster": [f"concept{row // 8}" for row in range(rows)],
        "hops": [1 + row % 3 for row in range(rows)],
        "distractor_family": [("random", "sister", "sister")[row // 3 % 3] for row in range(rows)],
        "distractor_hops": [row // 3 % 3 for row in range(rows)],
        "pos": [("noun", "verb")[row % 2] for row in range(rows)],
        "template": [f"wording{row % 4}" for row in range(rows)],
        "concept": [f"concept{row // 8}" for row in range(rows)],
    } | columns
    kinds = [pa.int32() if name.endswith("hops") else pa.string() for name in ABOUT]
    arrays = [pa.array(values[name], kind) for name, kind in zip(ABOUT, kinds, strict=True)]
    about = pa.table(arrays, names=list(ABOUT))
    clustered = values["cluster"] != [item.id for item in items]
    return ProbeSplit("probe", "probes/probe", "test", items, about, clustered, fingerprint(items))


def run(
    split: ProbeSplit,
    *,
    normalization: Normalization = "sum",
    score: str = "log-likelihood",
    set_aside: dict[int, str] | None = None,
    baselines: dict[str, float] | None = None,
    gain: float = 2.0,
    finetuning: dict[str, Any] | None = None,
    oracles: dict[str, dict[str, float]] | None = None,
) -> tuple[Results, pa.Table]:
    """Score with a seeded generator that favours the gold by ``gain``."""
    generator = np.random.default_rng(1)
    values = [generator.normal(-20, 2, len(item.choices)) for item in split.items]
    for item, scores in zip(split.items, values, strict=True):
        scores[item.answer] += gain
    numbers = np.concatenate(values)
    tokens = np.full(numbers.size, 3)
    scores = Scores(numbers, tokens, set_aside or {}, {}, score, 1, 1, 7)
    predictions = predictions_table(split, scores, normalization, TOLERANCE)
    metrics = measure(
        predictions,
        clustered=split.clustered,
        normalization=normalization,
        by_length=score == "log-likelihood",
        seed=0,
        tie_tolerance=TOLERANCE,
    ).model_copy(update={"baselines": baselines or {}, "oracles": oracles or {}})
    results = results_of(
        metrics,
        probe={
            "name": split.name,
            "source": split.source,
            "split": split.split,
            "rows": len(split.items),
            "fingerprint": split.fingerprint,
        },
        model={"finetuning": finetuning},
        scoring={"score": score},
    )
    return results, predictions


def page_of(split: ProbeSplit, **options: Any) -> str:
    return render(*run(split, **options))


def saved(folder: Path, split: ProbeSplit, **options: Any) -> Path:
    results, predictions = run(split, **options)
    write_results(results, folder)
    write_predictions(predictions, folder)
    return folder


class _Page(HTMLParser):
    """Collects tags, the text of all elements, and what would be fetched."""

    VOID = ("meta", "wbr")

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.ids: set[str] = set()
        self.fetched: list[str] = []
        self.handlers: list[str] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in self.VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.add(value or "")
            if name in ("src", "href", "xlink:href", "srcset", "action", "data"):
                self.fetched.append(value or "")
            if name.startswith("on"):
                self.handlers.append(name)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return "".join(self.texts)


def well_formed(page: str) -> _Page:
    """Parse a page; it must close what it opens and stand alone."""
    parsed = _Page(page)
    assert parsed.open == []
    assert "script" not in parsed.tags
    assert parsed.handlers == []
    assert all(target.startswith("#") for target in parsed.fetched)
    assert {target[1:] for target in parsed.fetched} <= parsed.ids
    assert set(SECTIONS) <= parsed.ids
    assert not re.search(r"url\(|@import|nan%", page)
    return parsed


@pytest.mark.slow
def test_the_same_files_give_the_same_bytes(tmp_path: Path) -> None:
    folder = saved(tmp_path, probe(), baselines={"longest choice": 0.3})
    path = make_report(folder)
    first = path.read_bytes()
    path.unlink()
    assert make_report(folder) == folder / "report.html"
    assert path.read_bytes() == first
    assert sorted(file.name for file in folder.iterdir()) == [PREDICTIONS, "report.html", RESULTS]


@pytest.mark.slow
def test_shortcuts_have_the_intervals_of_the_audit() -> None:
    ends = {"longest choice": (0.2012, 0.3012), "majority position": (0.2875, 0.3425)}
    results, predictions = run(
        probe(), baselines={"longest choice": 0.25, "majority position": 0.31}
    )
    known = results.metrics.model_copy(update={"baseline_intervals": ends})
    text = well_formed(render(results.model_copy(update={"metrics": known}), predictions)).text
    assert text.count("28.7% to 34.2%") == 3, "among the tiles, in the table, and in that of all"
    assert text.count("20.1% to 30.1%") == 1
    assert "not recorded" not in text
    assert "not recorded" in well_formed(render(results, predictions)).text


def test_all_sections_and_headline_numbers_are_there() -> None:
    results, predictions = run(
        probe(), baselines={"longest choice": 0.25, "majority position": 0.31}, set_aside={3: "why"}
    )
    parsed = well_formed(render(results, predictions))
    metrics = results.metrics
    assert metrics.strict_accuracy is not None
    for expected in (
        percent(metrics.accuracy.value),
        percent(metrics.accuracy.low),
        percent(metrics.strict_accuracy.value),
        "majority position",
        "31.0%",
        "1 of 240 questions (0.4%) were set aside and not scored (why: 1)",
        "some/model",
        "a" * 64,
    ):
        assert expected in parsed.text


def test_a_run_is_a_document_in_markdown_too() -> None:
    results, predictions = run(probe(), baselines={"longest choice": 0.25, "other": 0.2})
    text = render_markdown(document(results, predictions))
    accuracy = results.metrics.accuracy
    ends = f"{percent(accuracy.low)} to {percent(accuracy.high)}"
    assert f"| accuracy | {percent(accuracy.value)} ({ends}) |" in text, "without bars"
    assert "| hops k | sister k′ 1 |" in text
    assert "▸ model’s choice" in text
    assert "### concept" in text, "a cluster"


def test_texts_are_escaped_and_cannot_break_the_page() -> None:
    attacks = (
        '"><img src=x onerror=alert(1)>',
        "</td></table></main><script>alert(1)</script>",
        "</title></style><iframe src=https://example.com>",
        "שלום \u202eevil مرحبا",
        "🧠👩🏽‍🔬 {{ 7 * 7 }} {% raw %}",
        "bell\x07 return\r nul\x00 https://example.com/?a=1&b=2",
    )
    plain = probe(48)
    items = tuple(
        replace(
            item,
            id=f"{item.id}{attacks[0]}",
            question=attacks[row % len(attacks)],
            choices=tuple(
                f"{attacks[(row + place) % len(attacks)]}{place}"
                for place in range(len(item.choices))
            ),
        )
        for row, item in enumerate(plain.items)
    )
    names = {
        name: [f"{value}{attacks[1]}" for value in plain.about[name].to_pylist()]
        for name in ("cluster", "distractor_family", "template", "pos", "concept")
    }
    hostile = replace(probe(48, **names), items=ItemColumns.of(items), name=attacks[2])
    page = page_of(hostile, baselines={attacks[0]: 0.9}, finetuning={attacks[1]: attacks[2]})
    parsed = well_formed(page)
    assert "iframe" not in parsed.tags
    assert "img" not in parsed.tags
    for text in (*attacks[:5], "bell␇ return␍ nul␀ https://example.com/?a=1&b=2"):
        assert text in parsed.text
    assert "49" not in re.findall(r"👩🏽‍🔬 (\S+)", parsed.text)


def test_long_texts_and_many_choices_are_cut_and_say_so() -> None:
    split = probe(16, width=40)
    items = tuple(replace(item, question="x" * 100_000) for item in split.items)
    page = page_of(replace(split, items=ItemColumns.of(items)))
    parsed = well_formed(page)
    assert "(99,000 more characters)" in parsed.text
    assert f"{40 - CHOICES_SHOWN} choices with lower scores are not shown." in parsed.text
    assert len(page) < 400_000
    assert clip("abc", 3) == "abc"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("columns", "options", "expected"),
    [
        ({"cluster": [f"id{row:05}" for row in range(240)]}, {}, "The rows name no clusters"),
        ({}, {"score": "logit"}, "There is nothing to normalize"),
        ({"hops": [1] * 240}, {}, "Hatched cells"),
        ({"distractor_family": [None] * 240}, {}, "not given"),
        (
            {"hops": [None] * 240, "distractor_family": [None] * 240}
            | {"distractor_hops": [None] * 240},
            {},
            "there is nothing to compare",
        ),
        ({"template": [f"w{row}" for row in range(240)]}, {}, "The other 228"),
        ({"template": ["one"] * 240}, {}, "All rows have the same wording: one."),
        ({"pos": [None] * 240}, {}, "The rows name no part of speech."),
        ({}, {"gain": 100.0}, "There are none."),
        ({}, {"gain": -100.0}, "0 of 8 right"),
        ({}, {"set_aside": dict.fromkeys(range(0, 240, 8), "w")}, "No cluster was scored whole"),
        ({}, {"normalization": "char"}, "per character (used here)"),
    ],
)
def test_odd_cases(columns: dict[str, Any], options: dict[str, Any], expected: str) -> None:
    assert expected in well_formed(page_of(probe(**columns), **options)).text


@pytest.mark.parametrize(("rows", "width"), [(1, 5), (2, 2), (16, 20)])
def test_small_probes(rows: int, width: int) -> None:
    well_formed(page_of(probe(rows, width)))


@pytest.mark.slow
def test_a_large_run_stays_small(tmp_path: Path) -> None:
    folder = saved(tmp_path, probe(20_000, template=[f"w{row % 997}" for row in range(20_000)]))
    path = make_report(folder)
    assert path.stat().st_size < 400_000


def test_missing_files_name_the_folder_and_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"{re.escape(str(tmp_path))}.*evaluate-probe PROBE"):
        make_report(tmp_path)
    folder = saved(tmp_path, probe(8))
    (folder / PREDICTIONS).unlink()
    with pytest.raises(UsageError, match=f"{re.escape(str(tmp_path))}.*Evaluate again"):
        make_report(folder)
    assert not (folder / "report.html").exists()


def test_a_missing_package_is_told_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kbprobe.errors.find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match=r"matplotlib.*pip install '\.\[eval\]'"):
        render_page(Document("study", "of charts", [Section("", [chart(3)])]), "results")


def test_files_of_two_runs_are_refused(tmp_path: Path) -> None:
    folder = saved(tmp_path, probe(16))
    write_predictions(run(probe(16), gain=-100.0)[1], folder)
    with pytest.raises(UsageError, match="not of the same run"):
        make_report(folder)


# --- what is shown is true --------------------------------------------------------------------


@pytest.mark.parametrize("normalization", ["sum", "char", "byte", "token"])
def test_shares_are_those_of_the_predictions(normalization: Normalization) -> None:
    _, predictions = run(probe(), normalization=normalization)
    for row in predictions.slice(0, 40).to_pylist():
        values = compared(row["scores"], row["tokens"], row["choices"], normalization)
        assert int(values.argmax()) == row["prediction"]
        assert softmax(values).max() == pytest.approx(row["probability"], abs=1e-6)


def test_a_choice_that_is_ruled_out_has_no_share() -> None:
    assert softmax(np.array([-np.inf, 0.0])).tolist() == [0.0, 1.0]
    assert softmax(np.array([-np.inf, -np.inf])).tolist() == [0.5, 0.5]


def test_confident_mistakes_are_wrong_and_in_order_one_a_cluster() -> None:
    _, predictions = run(probe())
    rows = {row["id"]: row for row in predictions.to_pylist()}
    picked = [rows[question.id] for question in confident_mistakes(predictions, "sum", 6)]
    assert len(picked) == 6
    assert not any(row["correct"] for row in picked)
    shares = [row["probability"] for row in picked]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] == max(row["probability"] for row in rows.values() if not row["correct"])
    assert len({row["cluster"] for row in picked}) == 6


def test_a_sample_does_not_hang_on_the_order_of_rows() -> None:
    _, predictions = run(probe())
    backwards = predictions.take(list(reversed(range(predictions.num_rows))))
    for correct in (True, False):
        sample = drawn(predictions, "sum", 6, correct=correct)
        assert sample == drawn(backwards, "sum", 6, correct=correct)
        assert all(question.right is correct for question in sample)


def test_worst_clusters_are_the_worst_then_the_largest() -> None:
    sizes = [2, 3, 5, 4]
    clusters = [name for name, size in zip("abcd", sizes, strict=True) for _ in range(size)]
    _, predictions = run(probe(14, cluster=clusters), gain=-100.0)
    right = np.zeros(14, dtype=bool)
    right[10] = True  # in d
    predictions = predictions.set_column(8, "correct", pa.array(right))
    worst = worst_clusters(predictions, "sum")
    assert [(cluster.name, cluster.rows, cluster.right) for cluster in worst.shown] == [
        ("c", 5, 0),
        ("b", 3, 0),
        ("d", 4, 1),
    ]
    assert (worst.eligible, worst.none_right) == (3, 2)
    wrong = 13 / 14
    assert worst.by_chance == pytest.approx(wrong**3 + wrong**5 + wrong**4)
    assert [question.right for question in worst.shown[2].questions] == [False] * 3 + [True]


def _stratum(
    hops: int | None, family: str | None, distance: int | None, value: float, n: int
) -> Stratum:
    accuracy = Estimate(value=value, low=0.0, high=1.0, n=n, method="wilson")
    return Stratum(hops=hops, family=family, distractor_hops=distance, accuracy=accuracy)


def test_heat_map_is_arranged_and_pooled() -> None:
    heat = heat_map(
        [
            _stratum(2, "sister", 2, 0.5, 10),
            _stratum(1, "sister", 1, 1.0, 30),
            _stratum(1, "random", 0, 0.0, 10),
            _stratum(None, None, None, 0.5, 2),
        ],
        "caption",
        totals=True,
    )
    assert heat is not None
    assert heat.groups == (("sister", 2), ("random", 1), ("not given", 1), ("all", 1))
    assert heat.columns == ["k′ 1", "k′ 2", "", "", ""]
    assert heat.column_names == ["sister k′ 1", "sister k′ 2", "random", "not given", "all"]
    assert heat.apart == {2, 4}
    assert heat.rows == ["1", "2", "not given", "all"]
    assert heat.cells[1][2] is None
    assert (heat.cells[0][4], heat.lines[0, 4]) == (0.75, ("n 40",))
    assert (heat.cells[3][0], heat.lines[3, 0]) == (1.0, ("n 30",))
    assert (heat.cells[3][4], heat.lines[3, 4]) == (36 / 52, ("n 52",))
    assert (0, 0) in heat.faint
    assert (3, 4) not in heat.faint
    assert heat_map([_stratum(1, "random", 0, 0.5, 10)], "") is None


@pytest.mark.parametrize("families", [("random",), ("sister", "level")])
def test_nothing_stands_apart_without_both_kinds_of_families(families: tuple[str, ...]) -> None:
    table = [_stratum(hops, name, 1, 0.5, 10) for hops in (1, 2) for name in families]
    heat = heat_map(table, "")
    assert heat is not None
    assert heat.apart == frozenset()


@pytest.mark.slow
def test_near_and_random_distractors_are_reported_apart_beside_the_oracles() -> None:
    families = [("sister", "cousin", "random")[row % 3] for row in range(240)]
    shares = {"all": 0.4321, "near": 0.3123, "sister": 0.3, "cousin": 0.32, "random": 0.8764}
    results, predictions = run(
        probe(distractor_family=families), oracles={"the field of the word": shares}
    )
    near, random = results.metrics.near_accuracy, results.metrics.random_accuracy
    assert near is not None
    assert random is not None
    page = render(results, predictions)
    text = well_formed(page).text
    assert text.count(f"{percent(near.value)}") >= 3, "a tile, a bar, and next to the oracles"
    assert f"random ones: {percent(random.value)}" in text
    assert page.count("apart") > 2
    assert "the field of the word31.2%87.6%43.2%" in text
    without, predictions = run(probe(distractor_family=["sister"] * 240))
    assert "Near distractors" not in render(without, predictions)


def test_joined_cluster_sizes_count_what_they_join() -> None:
    results, _ = run(probe())
    sizes = [
        ClusterSize(size=1, clusters=30, accuracy=0.5, strict=0.5, independent=0.5),
        ClusterSize(size=2, clusters=10, accuracy=0.6, strict=0.4, independent=0.36),
        ClusterSize(size=4, clusters=10, accuracy=0.3, strict=0.2, independent=0.1),
        ClusterSize(size=9, clusters=2, accuracy=0.0, strict=0.0, independent=0.0),
    ]
    joined = joined_sizes(results.metrics.model_copy(update={"cluster_sizes": sizes}))
    assert [(entry.label, entry.clusters) for entry in joined] == [("1", 30), ("2 to 9", 22)]
    assert joined[1].strict.value == pytest.approx(6 / 22)
    assert joined[1].independent == pytest.approx(4.6 / 22)
    assert joined[1].accuracy == pytest.approx(24 / 78)
    assert joined[1].size == pytest.approx(78 / 22)
    assert joined[1].strict.low < 6 / 22 < joined[1].strict.high


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (0.5, 0.6, "lies above that"),
        (0.1, 0.2, "lies below that"),
        (0.35, 0.5, "does not separate the model from that"),
        (0.2, 0.6, "is too wide, on so few rows, to separate the model from that"),
    ],
)
def test_summary_places_the_interval_against_the_strongest_shortcut(
    low: float, high: float, said: str
) -> None:
    results, _ = run(probe(), baselines={"a": 0.3, "b": 0.4, "c": 0.4})
    assert results.metrics.strongest_baseline == ("b", 0.4)
    accuracy = results.metrics.accuracy.model_copy(update={"low": low, "high": high})
    metrics = results.metrics.model_copy(update={"accuracy": accuracy})
    text = " ".join(summary(results.model_copy(update={"metrics": metrics})))
    assert f"the interval {said}." in text
    assert "is over the 30 clusters, not over the rows" in text
    tones = {"success": "lies above", "failure": "lies below", "partial": ("does not", "is too")}
    assert said.startswith(tones[verdict(metrics)[0]])


def of(value: float, low: float, high: float) -> Estimate:
    return Estimate(value=value, low=low, high=high, n=400, method="wilson")


@pytest.mark.parametrize(
    ("accuracy", "difference", "tone", "words"),
    [
        ((0.6, 0.55, 0.65), (11, 6, 16), "success", "Above chance, and above similarity alone"),
        ((0.5, 0.45, 0.55), (1, -4, 6), "partial", "Above chance, but not above similarity alone"),
        ((0.4, 0.35, 0.45), (-9, -14, -4), "partial", "Above chance, but below similarity alone"),
        ((0.2, 0.15, 0.25), (-29, -34, -24), "partial", "Not distinguishable"),
    ],
)
def test_the_headline_says_whether_similarity_is_beaten(
    accuracy: tuple[float, ...], difference: tuple[float, ...], tone: str, words: str
) -> None:
    results, _ = run(probe(), baselines={"longest choice": 0.21})
    similarity = Similarity(accuracy=of(0.49, 0.44, 0.54), difference=of(*difference))
    metrics = results.metrics.model_copy(update={"accuracy": of(*accuracy)})
    metrics = with_similarity(metrics, {MOST_SIMILAR: similarity})
    found, headline = verdict(metrics)
    assert (found, headline[: len(words)]) == (tone, words)
    # It is the strongest baseline, and no shortcut: the interval is compared with those.
    assert metrics.strongest_baseline == ("most similar choice", 0.49)
    assert metrics.strongest_shortcut == ("longest choice", 0.21)
    text = " ".join(summary(results.model_copy(update={"metrics": metrics})))
    assert "is right in 49.0% of the same questions" in text
    assert f"{points(difference[0])} points from that" in text


@pytest.mark.parametrize(
    ("accuracy", "shortcut", "tone", "words"),
    [
        ((0.6, 0.55, 0.65), 0.3, "success", "Above chance, and above “longest choice”"),
        ((0.3, 0.25, 0.35), 0.3, "partial", "Above chance, but not above “longest choice”"),
        ((0.3, 0.25, 0.35), 0.4, "failure", "Above chance, but below “longest choice”"),
        ((0.3, 0.25, 0.35), None, "success", "Above chance; no other baseline was measured"),
        ((0.2, 0.15, 0.25), 0.3, "failure", "Not distinguishable from chance"),
    ],
)
def test_the_headline_names_the_baseline_that_is_beaten_or_not(
    accuracy: tuple[float, ...], shortcut: float | None, tone: str, words: str
) -> None:
    baselines = {} if shortcut is None else {"longest choice": shortcut, "first choice": 0.2}
    results, _ = run(probe(), baselines=baselines)
    metrics = results.metrics.model_copy(update={"accuracy": of(*accuracy)})
    assert metrics.similarity is None
    assert verdict(metrics) == (tone, words)
    text = " ".join(summary(results.model_copy(update={"metrics": metrics})))
    assert "How far similarity alone gets was not measured" in text


def test_a_shortcut_that_is_not_beaten_is_named_beside_similarity() -> None:
    results, _ = run(probe(), baselines={"longest choice": 0.7})
    similarity = Similarity(accuracy=of(0.49, 0.44, 0.54), difference=of(11, 6, 16))
    metrics = results.metrics.model_copy(update={"accuracy": of(0.6, 0.55, 0.65)})
    _, words = verdict(with_similarity(metrics, {MOST_SIMILAR: similarity}))
    assert words == "Above chance and similarity alone, but below “longest choice”"


def test_a_normalization_that_decides_the_verdict_is_in_the_headline() -> None:
    results, predictions = run(probe())
    level, above, chance = of(0.22, 0.17, 0.27), of(0.3, 0.25, 0.35), results.metrics.chance
    assert chance == pytest.approx(0.2)
    accuracies = {"acc": above, "acc_norm": level, "acc_bytes": level, "acc_tokens": above}
    changed = {"normalization": "char", "accuracy": level, "accuracies": accuracies}
    metrics = results.metrics.model_copy(update=changed)
    decides = "the normalization decides: as sums (30.0%) and per token (30.0%) it is above chance"
    assert other_verdicts(metrics) == decides
    page = document(results.model_copy(update={"metrics": metrics}), predictions)
    conclusion = page.sections[0].parts[0]
    assert isinstance(conclusion, Conclusion)
    assert conclusion.text == f"Not distinguishable from chance; but {decides}"
    # Above chance in any case, and above similarity by one of them only.
    alike = dict.fromkeys(accuracies, above)
    worse, better = of(1, -4, 6), of(8, 3, 13)
    similarity = Similarity(
        accuracy=of(0.22, 0.17, 0.27),
        difference=worse,
        differences={"acc": worse, "acc_norm": worse, "acc_bytes": worse, "acc_tokens": better},
    )
    changed = {"accuracy": above, "accuracies": alike, "similarity": similarity}
    metrics = metrics.model_copy(update=changed)
    assert other_verdicts(metrics).endswith("per token (30.0%) it is above similarity")
    assert other_verdicts(metrics.model_copy(update={"similarity": None})) == ""


def test_the_difference_from_similarity_is_measured_by_each_normalization() -> None:
    rows = probe()
    _, predictions = run(rows)
    found = measure_similarity(rows, predictions, 0, None, ["sum", "char"])[MOST_SIMILAR]
    assert found.differences["acc"].value == found.difference.value
    assert found.differences.keys() == {"acc", "acc_norm"}


def test_wordings_that_differ_are_told_with_their_rows_and_clusters() -> None:
    results, _ = run(probe())

    def worded(*shares: float) -> str | None:
        wordings = [
            Group(name=f"w{number}", accuracy=of(share, share - 0.1, share + 0.1))
            for number, share in enumerate(shares)
        ]
        return wording_remark(results.metrics.model_copy(update={"by_template": wordings}))

    remark = worded(0.3, 0.9, 0.5)
    assert remark is not None
    assert "90.0% (80.0% to 100.0%) of 400 rows with “w1”, 30.0% (20.0% to 40.0%) of 400" in remark
    assert worded(0.3, 0.4) is None
    assert worded(0.3) is None
    # These do not overlap as two, and do as the extremes of twenty.
    assert worded(0.3, 0.54) is not None
    assert worded(0.3, 0.54, *[0.4] * 18) is None


def test_a_similarity_of_other_rows_is_not_shown() -> None:
    results, _ = run(probe(), baselines={MOST_SIMILAR: 0.5, "longest choice": 0.21})
    assert with_similarity(results.metrics, {}).baselines == {"longest choice": 0.21}


def test_similarity_is_measured_once_for_all_models(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = probe()
    first = measure_similarity(rows, run(rows)[1], 0)
    monkeypatch.setattr("evaluation.results.similarity.similarities", None)
    second = measure_similarity(rows, run(rows, gain=0.0)[1], 0)
    assert first[MOST_SIMILAR].accuracy == second[MOST_SIMILAR].accuracy
    assert first[MOST_SIMILAR].difference != second[MOST_SIMILAR].difference
    # What was not scored does not count.
    with pytest.raises(TypeError):
        measure_similarity(rows, run(rows, set_aside={0: "too long"})[1], 0)


def test_few_rows_have_the_same_choices_by_chance() -> None:
    texts = ("a living animal", "a port where ships land")
    items = [
        Item(f"r{row}", "mc_qa", ("dog, an animal", "harbour, a port")[row % 2], texts, row % 2)
        for row in range(8)
    ]
    rows = replace(probe(8, 2), items=ItemColumns.of(items))
    _, predictions = run(rows)
    assert measure_similarity(rows, predictions, 0) == {}
    cell = {"accuracy": 0.5, "low": 0.4, "high": 0.6, "rows": 100}
    baselines = {MOST_SIMILAR: {"all": cell}}
    audit = Audit.model_validate(
        {"baselines": baselines, "flags": (), "chance": 0.5, "scored_rows": 100}
    )
    manifest = Manifest.model_construct(audit=audit)
    found = measure_similarity(replace(rows, manifest=manifest), predictions, 0)
    assert found[MOST_SIMILAR].accuracy.value == 1.0


def test_similarity_is_measured_on_the_rows_of_the_run() -> None:
    golds = ["a living animal", "a port where ships land", "a sharp blade"]
    asked = ["dog, an animal", "harbour, a port by the sea", "knife with a blade"]
    items = [
        Item(
            f"r{row}",
            "mc_qa",
            asked[row % 3],
            tuple(f"{golds[(row + n) % 3]} ({row})" for n in range(2)),
            0,
        )
        for row in range(60)
    ]
    rows = replace(probe(60, 2), items=ItemColumns.of(items))
    _, predictions = run(rows)
    found = measure_similarity(rows, predictions, 0)[MOST_SIMILAR]
    assert found.accuracy.value == 1.0
    right = np.mean(predictions["correct"].to_pylist())
    assert found.difference.value == pytest.approx(100 * (right - 1))


def test_similarity_says_nothing_where_all_rows_have_the_same_choices() -> None:
    items = [Item(f"r{row}", "mc_mlm", f"{row} is [MASK]", ("old", "new"), 0) for row in range(60)]
    rows = replace(probe(60, 2), items=ItemColumns.of(items))
    _, predictions = run(rows)
    assert measure_similarity(rows, predictions, 0) == {}


@pytest.mark.parametrize("known", [False, True], ids=["unknown words", "one question"])
def test_similarity_says_nothing_where_no_choice_is_more_similar(known: bool) -> None:
    texts = ("harbour", "sword") if known else ("\U0001f600", "\U0001f601")
    items = [
        Item(f"r{row}", "mc_qa", "What is it?", tuple(f"{text} {row}" for text in texts), 0)
        for row in range(60)
    ]
    rows = replace(probe(60, 2), items=ItemColumns.of(items))
    _, predictions = run(rows)
    assert measure_similarity(rows, predictions, 0) == {}


def test_choices_that_are_equally_similar_are_drawn_from() -> None:
    """Counted as wrong, they would put any model above similarity."""
    faces = [chr(0x1F600 + number) for number in range(60)]
    items = [
        Item(f"r{row}", "mc_qa", "a dog", (faces[row % 60], faces[(row + 1) % 60]), row % 2)
        for row in range(398)
    ]
    items += [Item(f"d{row}", "mc_qa", "a sword", ("a sword", "a dog"), 0) for row in range(2)]
    rows = replace(probe(400, 2), items=ItemColumns.of(items))
    _, predictions = run(rows)
    found = measure_similarity(rows, predictions, 0)[MOST_SIMILAR]
    assert 0.4 < found.accuracy.value < 0.6


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (0.51, 0.6, "above chance"),
        (0.3, 0.4, "below chance"),
        (0.45, 0.55, "not distinguishable from chance"),
        (0.3, 0.7, "too few rows to say whether it is above chance"),
    ],
)
def test_an_interval_is_compared_with_chance_in_words(low: float, high: float, said: str) -> None:
    estimate = Estimate(value=(low + high) / 2, low=low, high=high, n=9, method="wilson")
    assert against_chance(estimate, 0.5) == said
    few = estimate.model_copy(update={"n": 1})
    assert against_chance(few, 0.5) == "too few rows to say whether it is above chance"


def test_families_of_numbers_are_in_their_order() -> None:
    ages = ["20 or more years apart", "5-9 years apart", "random", "10-19 years apart"]
    results, _ = run(probe(distractor_family=[ages[row % 4] for row in range(240)]))
    found = heat_map(results.metrics.table, "")
    assert found is not None
    names = [name for name, _ in found.groups]
    assert names == ["5-9 years apart", "10-19 years apart", "20 or more years apart", "random"]


def test_wrong_and_sure_are_only_those_that_are_sure() -> None:
    results, predictions = run(probe())
    sure = [question for question in confident_mistakes(predictions, "sum", 100)]
    shares = [max(choice.share for choice in question.choices) for question in sure]
    assert all(share >= 0.8 for share in shares)
    column = predictions.schema.get_field_index("probability")
    unsure = pa.array([0.79] * predictions.num_rows, pa.float32())
    doubting = predictions.set_column(column, "probability", unsure)
    assert confident_mistakes(doubting, "sum", 100) == []
    page = render(results, doubting)
    section = page[page.index("Wrong and sure of it") : page.index("Wrong, drawn at random")]
    assert "80.0% or more" in section
    assert "There are none." in section


def chart(points: int) -> Chart:
    """Return a chart with this many points, each with its interval, and a dashed line."""
    estimate = Estimate(value=0.3, low=0.2, high=0.4, n=40, method="wilson")
    across = range(points)
    lines = [
        Line("measured", across, [estimate] * points),
        Line("expected", across, [0.25] * points, "reference", "dashed", marker=""),
    ]
    return Chart("Two lines.", [Panel(lines)], Across("size", "names", [*map(str, across)]))


def test_two_points_are_not_joined_by_a_line() -> None:
    # Bars of intervals have no square ends; lines do.
    lines = re.compile(r"stroke: var\(--model\); stroke-width: 1.5; stroke-linecap: square")
    drawn = [str(draw_chart(chart(points), "sizes")) for points in (2, 3)]
    assert [len(lines.findall(picture)) for picture in drawn] == [0, 2]  # and in the legend


def test_summary_of_independent_rows_says_so() -> None:
    rows = 40
    results, _ = run(probe(rows, cluster=[f"id{row:05}" for row in range(rows)]))
    text = " ".join(summary(results))
    assert "takes the questions to be independent" in text
    assert "The probe has no audit" in text
    assert "cluster" not in text.replace("no two rows share a cluster", "")


@pytest.mark.parametrize(
    ("kind", "told"), [(None, False), ("human", False), ("language model", True)]
)
def test_answers_that_no_person_gave_are_said_to_be_such(kind: str | None, told: bool) -> None:
    metrics = run(probe())[0].metrics
    results = results_of(metrics, probe={"annotator_kind": kind})
    said = "nswers given by no person (annotators: language model)"
    assert any(said in line for line in cautions(results)) == told
    assert any(said in line for line in in_terminal(results)) == told


def test_cautions_count_ties_and_what_was_set_aside() -> None:
    results, _ = run(probe(), set_aside={0: "too long", 1: "too long"})
    metrics = results.metrics.model_copy(update={"ties": 5, "ties_wrong": 0.123})
    found = " ".join(cautions(results.model_copy(update={"metrics": metrics})))
    assert "2 of 240 questions (0.8%) were set aside and not scored (too long: 2)" in found
    assert percent(metrics.accuracy.value * 238 / 240) in found
    assert "In 5 of the questions scored" in found
    assert "12.3%" in found
    assert cautions(run(probe(), score="logit")[0]) == []


# --- charts -----------------------------------------------------------------------------------


def shades() -> list[tuple[str, str, str, str]]:
    """Ground and ink of each shade, first in light, then in dark."""
    rule = r"\.s\d+ \{ background: light-dark\((.*), (.*)\); color: light-dark\((.*), (.*)\); \}"
    return re.findall(rule, style_rules())


def test_numbers_are_readable_on_every_shade() -> None:
    assert len(shades()) == SHADES + 1
    for light, dark, on_light, on_dark in shades():
        for ground, ink in ((light, on_light), (dark, on_dark)):
            pair = sorted((luminance(ground), luminance(ink)))
            assert (pair[1] + 0.05) / (pair[0] + 0.05) >= 4.5


def test_shades_change_evenly_from_none_to_all() -> None:
    assert [shade(share) for share in (-1, 0, 0.024, 0.026, 0.5, 1, 2)] == [0, 0, 0, 1, 10, 20, 20]
    light, dark = ([luminance(rule[at]) for rule in shades()] for at in (0, 1))
    assert light == sorted(light, reverse=True)
    assert dark == sorted(dark)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Blues", "Oranges_r"])
def test_palettes_are_those_of_matplotlib(name: str) -> None:
    to_hex = pytest.importorskip("matplotlib.colors").to_hex
    steps = [step / 256 for step in range(257)]
    theirs = pytest.importorskip("matplotlib").colormaps[name]
    assert [colour(name, step) for step in steps] == [to_hex(theirs(step)) for step in steps]


@pytest.mark.slow
def test_figures_take_the_colours_of_the_page_and_share_no_ids() -> None:
    pictures = [draw_chart(chart(points), f"c{points}") for points in (2, 3)]
    ids: list[str] = []
    for picture in pictures:
        assert "<text" in picture, "text stays text"
        assert "var(--model)" in picture
        assert not any(light in picture for light, _ in colours().values())
        assert "metadata" not in picture
        found = re.findall(r' id="([^"]*)"', picture)
        assert set(found) == set(re.findall(r'href="#([^"]*)"', picture))
        ids += found
    assert len(set(ids)) == len(ids)


def test_texts_in_figures_are_escaped() -> None:
    def plot(figure: Any) -> None:
        figure.subplots().set_title("</svg><script>$x^2$ & שלום \u4f60")

    picture = draw("name", '"><b>', 2.0, plot)
    assert "<script" not in picture
    assert "<b>" not in picture
    assert "$x^2$ &amp; שלום \u4f60" in picture


def test_models_are_named_by_the_end_of_their_path() -> None:
    named = ["org/name", "/models/a.gguf", "./tuned/", "a/b/c", "C:\\models\\tuned", "bert"]
    assert [model_name(name) for name in named] == [
        "org/name",
        "a.gguf",
        "tuned",
        "c",
        "tuned",
        "bert",
    ]


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("/models/roberta/model", "roberta"),
        ("roberta/model", "roberta"),
        ("runs/roberta/final/", "roberta"),
        ("runs/roberta/model.gguf", "roberta"),
        ("runs/roberta/checkpoint-100", "roberta/checkpoint-100"),
        ("runs/roberta/final/checkpoint-100", "roberta/checkpoint-100"),
        (f"/cache/hub/models--org--bert-base/snapshots/{40 * 'a'}", "org/bert-base"),
        ("model", "model"),
        ("/", "/"),
        ("", ""),
    ],
)
def test_folders_that_say_nothing_are_left_out_of_a_model_s_name(source: str, name: str) -> None:
    assert model_name(source) == name


def test_differences_are_spelled_with_their_sign() -> None:
    assert [points(value) for value in (-33.14, 0.0, 2.0)] == ["−33.1", "+0.0", "+2.0"]
