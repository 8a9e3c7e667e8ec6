"""Tables and figures for a paper: what they show, and what they refuse."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from matplotlib.colors import to_hex

from evaluation import compare
from evaluation.names import NO_NAMES
from evaluation.papers.figure import figure_of
from evaluation.report.figures import luminance, new_figure
from evaluation.report.vector import _charts, _heat_map
from evaluation.results.frames import tables_within
from evaluation.results.pairs import read_pair
from evaluation.results.similarity import measure_similarity, with_similarity
from evaluation.results.types import Estimate, read_results, write_results
from evaluation.results.types import Similarity as SimilarityBlock
from evaluation.results.verdicts import other_verdicts
from evaluation.studies.base import finished_in, write_record
from kbprobe.document import Chart, HeatMap
from kbprobe.format.manifest import EncoderDigest
from kbprobe.tables import Measured, PlainTable
from tests.commands import run_here
from tests.evaluation.sample_curves import curve_runs, summary_of
from tests.evaluation.saved_runs import save_run

ROWS = 80
FAMILIES = ["sister", "random"] * (ROWS // 2)
HOPS = [1 + row // 20 for row in range(ROWS)]


def answers(right: int) -> list[int]:
    """Return the choices of a model that gets the first rows right; the gold is choice 0."""
    return [int(row >= right) for row in range(ROWS)]


def save(folder: Path, name: str, right: int, **more: Any) -> Path:
    more = {"families": FAMILIES, "hops": HOPS, **more}
    return save_run(folder / name, f"models/{name}/model", answers(right), **more)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Two models, the better of which is right on many more of the rows."""
    save(tmp_path / "results", "strong", 60)
    save(tmp_path / "results", "weak", 30)
    return tmp_path / "results"


def table(*words: object, code: int = 0) -> str:
    done = run_here("evaluation.cli", "table", *words)
    assert done.returncode == code, done.stderr
    return done.stderr if code else done.stdout


def figure(*words: object, code: int = 0) -> str:
    done = run_here("evaluation.cli", "figure", *words)
    assert done.returncode == code, done.stderr
    return done.stderr if code else done.stdout


def records(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_an_interval_is_plus_or_minus_only_where_it_is_even() -> None:
    even, uneven = Measured(0.5, 0.4, 0.6, 9, "share"), Measured(0.3, 0.219, 0.396, 9, "share")
    one = PlainTable(["model", "x"], [["a", even]])
    assert r"a & $50.0 \pm 10.0$ \\" in one.text("latex")
    assert "| a | 50.0 ± 10.0 |" in one.text("markdown")
    both = PlainTable(["model", "x"], [["a", even], ["b", uneven._replace(best=True)]])
    assert "$50.0_{-10.0}^{+10.0}$" in both.text("latex"), "a column has one form"
    assert r"$\mathbf{30.0}_{-8.1}^{+9.6}$" in both.text("latex")
    assert "| b | **30.0** (21.9 to 39.6) |" in both.text("markdown")
    assert both.flat.head == ["model", "x", "x_low", "x_high", "x_n"]
    assert records(both.text("csv"))[1]["x"] == "0.3", "all digits, and no percent"
    points = PlainTable(["x"], [[Measured(-3.14, -5.0, 1.0, kind="points")]])
    assert "−3.1 (−5.0 to +1.0)" in points.text("markdown")
    assert "$-3.1_{-1.9}^{+4.1}$" in points.text("latex")
    bound = PlainTable(["x"], [[Measured(1.0, 0.9, 1.0, kind="share")]])
    assert "$100.0_{-10.0}^{+0.0}$" in bound.text("latex")


@pytest.mark.parametrize("name", ["[mask]", "*best*"])
def test_a_name_is_not_taken_for_an_argument_in_latex(name: str) -> None:
    table = PlainTable(["[model]"], [[name], [f"{name} 2"], ["c"]], rules=[1]).text("latex")
    lines = table.splitlines()
    assert {f"{{}}{name} \\\\", f"{{}}{name} 2 \\\\", "{}[model] \\\\", "c \\\\"} <= {*lines}


def test_notes_and_names_cannot_leave_latex_s_comments_and_cells() -> None:
    text = PlainTable(["m"], [["a\n\\input{x} & %"]], notes=["one\n\\input{y}"]).text("latex")
    assert not any(line.startswith("\\input") for line in text.splitlines())
    assert r"a \textbackslash{}input\{x\} \& \% \\" in text


def test_the_default_table_is_short_and_names_what_each_number_is(results: Path) -> None:
    text = table(results, "--to", "latex")
    assert r"\usepackage{booktabs}" in text
    assert r"Model & Accuracy & Near \\" in text, "similarity was not measured on these rows"
    asked = table(results, "--to", "latex", "--columns", "accuracy,beyond_similarity")
    assert r"Model & Accuracy & Beyond similarity \\" in asked
    assert "80 questions in 80 clusters" in text
    assert [line.split(" & ")[0] for line in text.splitlines() if " & $" in line] == [
        "strong",
        "weak",
    ]
    old = ("probe", "split", "model", "accuracy_low", "strict", "ties", "best_baseline", "seed")
    (first, _) = records(table(results, "--columns", "all"))
    assert set(old) <= set(first)
    assert list(records(table(results))[0])[:3] == ["model", "accuracy", "accuracy_low"]


def test_only_a_best_that_differs_is_bold(results: Path, tmp_path: Path) -> None:
    text = table(results, "--to", "latex", "--columns", "accuracy,near,random,ties")
    bold = next(line for line in text.splitlines() if "strong" in line)
    assert bold.count(r"\mathbf") == 3
    assert text.count(r"\mathbf") == 3
    assert "paired difference" in text
    # Two models whose intervals of accuracy overlap differ, as they are right on the same rows.
    close = tmp_path / "close"
    save(close, "a", 60)
    save(close, "b", 52)
    a, b = (read_results(close / name).metrics.accuracy for name in "ab")
    assert a.low < b.high
    assert table(close, "--to", "latex", "--columns", "accuracy").count(r"\mathbf") == 1
    save(close, "c", 60)
    text = table(close, "--to", "markdown", "--columns", "accuracy")
    assert "**" not in text, "the two best do not differ"
    assert "Bold" not in text


def test_an_encoder_that_choices_are_matched_on_is_not_ranked(tmp_path: Path) -> None:
    for name, right, sha256 in (("first", 60, "a"), ("second", 30, "b"), ("encoder", 70, "c")):
        folder = save(tmp_path, name, right, weights_sha256=64 * sha256)
        read = read_results(folder)
        matched = [EncoderDigest(name="encoder", sha256=64 * "c")]
        probe = read.probe.model_copy(update={"matched_on": matched})
        write_results(read.model_copy(update={"probe": probe}), folder)
    words = (tmp_path, "--columns", "accuracy,near", "--to")
    latex = {line.split(" & ")[0]: line for line in table(*words, "latex").splitlines()}
    assert r"\mathbf" not in latex[r"encoder$^\dagger$"]
    assert latex["first"].count(r"\mathbf") == 2, "the encoder is better, and not compared with"
    assert any(
        line.startswith(r"\multicolumn{3}{l}{\footnotesize $^\dagger$ The choices are matched on")
        for line in latex
    )
    text = table(*words, "markdown")
    assert "| encoder† |" in text
    assert "\n† The choices are matched on this encoder" in text
    assert "every other model without †" in text
    assert "†" not in table(*words, "csv")


def test_what_a_verdict_depends_on_is_said_of_each_model(results: Path) -> None:
    read = read_results(results / "weak")
    low = Estimate(value=0.1, low=0.05, high=0.2, n=ROWS, method="wilson")
    more = {"accuracies": {**read.metrics.accuracies, "acc_norm": low}}
    changed = read.model_copy(update={"metrics": read.metrics.model_copy(update=more)})
    write_results(changed, results / "weak")
    said = other_verdicts(changed.metrics)
    assert "the normalization decides" in said
    assert f"% made, weak: {said}." in table(results, "--to", "latex")


def test_probes_have_their_own_best_and_are_ruled_off(results: Path) -> None:
    save(results, "other", 20, probe="other", ids=[f"o{row}" for row in range(ROWS)])
    text = table(results, "--to", "latex", "--columns", "accuracy", "--baselines")
    lines = text.splitlines()
    rules = [lines[number + 1] for number, line in enumerate(lines) if line == r"\midrule"]
    assert [rule.split(" & ")[:2] for rule in rules] == [
        ["made", "strong"],
        ["made", "Chance"],
        ["other", "other"],
        ["other", "Chance"],
    ]
    other = next(line for line in lines if line.startswith("other & other"))
    assert r"\mathbf" not in other, "there is no other model to differ from"


def test_what_is_reached_without_knowledge_has_rows(results: Path) -> None:
    read = read_results(results / "strong")
    share = Estimate(value=0.4, low=0.3, high=0.5, n=ROWS, method="wilson")
    beyond = Estimate(value=35.0, low=30.0, high=40.0, n=ROWS, method="wilson")
    similarity = SimilarityBlock(
        name="most similar choice", accuracy=share, difference=beyond, encoder=None
    )
    known = {"baselines": {"most similar choice": 0.4, "longest": 0.36}, "similarity": similarity}
    changed = read.model_copy(update={"metrics": read.metrics.model_copy(update=known)})
    write_results(changed, results / "strong")
    rows = {row["model"]: row for row in records(table(results, "--baselines"))}
    assert list(rows) == ["strong", "weak", "Chance", "Most similar choice", "Longest"]
    assert float(rows["Chance"]["near"]) == pytest.approx(1 / 3)
    assert rows["Most similar choice"]["accuracy_low"] == "0.3"
    assert rows["Longest"]["accuracy"] == "0.36"
    assert rows["Longest"]["beyond_similarity"] == ""
    assert rows["strong"]["beyond_similarity"] == "35.0"


def similar_rows() -> dict[str, Any]:
    """Return rows whose gold is in the question, so that similarity is right on all of them."""
    texts = ("dog", "stone", "idea")
    return {
        "questions": [f"A {texts[row % 3]} is a {texts[row % 3]}." for row in range(ROWS)],
        "choices": [(texts[row % 3], texts[(row + 1) % 3], f"thing {row}") for row in range(ROWS)],
    }


def measure(folder: Path, named: SimilarityBlock | None = None) -> None:
    """Record similarity in results: a measured one, or that by the encoder of kbprobe."""
    read, predictions = read_pair(folder)
    found = {named.name: named} if named else measure_similarity(None, predictions, 0)
    metrics = with_similarity(read.metrics, found)
    write_results(read.model_copy(update={"metrics": metrics}), folder)


def test_all_models_are_compared_with_similarity_by_one_encoder(tmp_path: Path) -> None:
    places = [
        save(tmp_path / "r", name, right, **similar_rows())
        for name, right in (("strong", 60), ("weak", 30))
    ]
    named = SimilarityBlock(
        name="most similar choice, by minilm",
        accuracy=Estimate(value=0.4, low=0.3, high=0.5, n=ROWS, method="wilson"),
        difference=Estimate(value=35.0, low=30.0, high=40.0, n=ROWS, method="wilson"),
        encoder=EncoderDigest(name="models/minilm", sha256="0" * 64),
    )
    measure(places[0], named)
    measure(places[1])
    rows = {row["model"]: row for row in records(table(tmp_path / "r", "--baselines"))}
    assert rows["Most similar choice"]["accuracy"] == "1.0"
    assert {name: rows[name]["beyond_similarity"] for name in ("strong", "weak")} == {
        "strong": "-25.0",
        "weak": "-62.5",
    }
    assert "similarity is by the encoder of kbprobe" in table(tmp_path / "r", "--to", "latex")
    figure(tmp_path / "r", "-o", tmp_path / "f.svg")
    drawn = {row["series"]: row for row in records((tmp_path / "f.svg.csv").read_text())}
    assert drawn["most similar choice"]["value"] == "1.0"


def test_similarity_on_other_rows_of_each_model_has_no_row(tmp_path: Path) -> None:
    shown = {**similar_rows(), "families": FAMILIES, "hops": HOPS}
    measure(save_run(tmp_path / "r" / "a", "a", answers(60), **shown))
    measure(save_run(tmp_path / "r" / "b", "b", [None] * 40 + [0] * 40, **shown))
    rows = [row["model"] for row in records(table(tmp_path / "r", "--baselines"))]
    assert rows == ["b", "a", "Chance"]
    text = table(tmp_path / "r", "--to", "markdown")
    assert "similarity differs, as models were scored on other rows" in text
    assert "made, b: 40 rows set aside: odd" in text
    for kind in ("accuracy", "hops"):
        figure(tmp_path / "r", "--kind", kind, "-o", tmp_path / "f.svg")
        drawn = records((tmp_path / "f.svg.csv").read_text())
        assert {row["series"] for row in drawn} == {"a", "b", "chance"}


def test_names_are_given_to_models_folders_probes_and_baselines(
    results: Path, tmp_path: Path
) -> None:
    names = tmp_path / "names.yaml"
    names.write_text("strong: Strong & Co.\nweak: Weak\nchance: Guessing\n")
    text = table(results, "--to", "latex", "--names", names, "--baselines")
    assert r"Strong \& Co. & " in text
    assert "Guessing & " in text
    names.write_text(f"{results.as_posix()}/weak: By folder\nmodels/strong/model: By id\nmade: P\n")
    text = table(results, "--names", names, "--columns", "probe,accuracy")
    assert [(row["probe"], row["model"]) for row in records(text)] == [
        ("P", "By id"),
        ("P", "By folder"),
    ]


def test_names_of_nothing_that_is_shown_are_told(results: Path, tmp_path: Path) -> None:
    names = tmp_path / "names.yaml"
    names.write_text("strong: S\nwaek: W\nchance: Guessing\n")
    for words in (["table"], ["figure", "-o", tmp_path / "f.svg"]):
        done = run_here("evaluation.cli", *words, results, "--names", names)
        assert done.returncode == 0
        assert "nothing shown is called 'waek'" in done.stderr
        assert "chance" not in done.stderr
    done = run_here("evaluation.cli", "compare", results, "--names", names)
    assert "nothing shown is called 'waek', 'chance'" in done.stderr


def test_wordings_of_a_probe_tell_its_builds_apart(results: Path) -> None:
    for wording in ("", "kind-of"):
        request = {"options": {"wording": wording}}
        asked = [f"{wording} {row}" for row in range(ROWS)]
        save(results, f"w{wording}", 20, probe="worded", request=request, questions=asked)
    named = {row["probe"] for row in records(table(results))}
    assert named == {"made", "worded (all wordings)", "worded (wording kind-of)"}


def test_a_page_of_all_results_shows_the_names_given(results: Path, tmp_path: Path) -> None:
    names = tmp_path / "names.yaml"
    names.write_text("strong: The Strong One\n")
    done = run_here("evaluation.cli", "report", results, "--rows", 0, "--names", names)
    assert done.returncode == 0, done.stderr
    assert "The Strong One" in (results / "report.html").read_text()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- a\n", "maps nothing to names"),
        ("", "maps nothing to names"),
        ("a: 1\n", "where both are to be texts"),
        ("a: [", "names.yaml"),
        ("weak: Same\nstrong: Same\n", "are both called 'Same'"),
    ],
)
def test_names_that_cannot_be_used_are_refused(
    results: Path, tmp_path: Path, text: str, said: str
) -> None:
    (tmp_path / "names.yaml").write_text(text)
    assert said in table(results, "--names", tmp_path / "names.yaml", code=2)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--columns", "acuracy"], "Did you mean"),
        (["--columns", ""], "there is no column ''"),
        (["--names", "nowhere.yaml"], "there is no file nowhere.yaml"),
        (["--name", "runs"], "name its file"),
    ],
)
def test_what_a_table_cannot_show_is_named(results: Path, words: list[str], said: str) -> None:
    assert said in table(results, *words, code=2)


def test_a_study_s_table_is_printed_in_its_units(tmp_path: Path) -> None:
    runs = curve_runs(lambda *_: 0.6, sizes=(62, 125), draws=2, model="models/bert/model")
    write_record("curve", summary_of(runs), {}, tmp_path)
    path = tmp_path / "curve.json"
    words = (path, "--name", "curves", "--to", "markdown", "--columns", "model,ws,further")
    text = table(*words)
    assert "| model | WS | further |" in text, "columns are called as on the page"
    assert "Some sizes were trained on 2 draws of rows only" in text
    assert "% " + text.split("\n\n")[-1].strip() in table(*words[:4], "latex", *words[5:])
    assert "| bert | 60.0 (" in text
    assert "| +0.0 (" in text, "points have a sign"
    whole = records(table(path, "--name", "curves"))
    assert {"ws", "ws_low", "ws_high", "ws_n"} <= set(whole[0])
    assert whole[0]["model"] == "models/bert/model", "CSV keeps ids"
    assert "--baselines adds rows" in table(path, "--baselines", code=2)
    assert "There are: " in table(path, "--name", "curves", "--columns", "w", code=2)


def test_shares_of_a_summary_are_in_percent_where_it_says_which_they_are() -> None:
    share = {"value": 0.5, "low": 0.4, "high": 0.6, "n": 9, "method": "wilson"}
    row = {"model": "a", "same": share, "expected": 0.2, "kappa": 0.2, "each": [1 / 3, 1.0]}
    summary = {
        "tables": {"pairs": [row]},
        "units": {"pairs": {"same": "share", "expected": "share"}},
    }
    text = tables_within(summary)["pairs"].text("markdown")
    assert "| a | 50.0 ± 10.0 | 20.0 | 0.2000 | 0.3333, 1.0000 |" in text
    assert "Shares in percent" in text
    text = tables_within({"pairs": [row]})["pairs"].text("markdown")
    assert "| a | 0.500 ± 0.100 | 0.2000 |" in text
    assert "shares between 0 and 1" in text
    assert "percent" not in text


def test_shares_without_intervals_have_a_unit_too(results: Path) -> None:
    found = compare([results / "strong", results / "weak"])
    assert found.units["contrasts"]["expected"] == "share"
    assert "kappa" not in found.units["contrasts"]
    assert "rows" not in found.units["contrasts"]


@pytest.mark.parametrize(
    "kind",
    ["accuracy", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("hops", "heatmap"))],
)
def test_a_figure_is_of_the_size_asked_for_with_its_numbers(
    results: Path, tmp_path: Path, kind: str
) -> None:
    place = tmp_path / "out" / "f.pdf"
    assert figure(results, "--kind", kind, "-o", place) == f"{place}\n{place}.csv\n"
    first = place.read_bytes()
    assert b"/FontFile2" in first
    assert b"/Type3" not in first
    width = first.split(b"/MediaBox [ 0 0 ")[1].split()[0]
    assert float(width) == pytest.approx(3.3 * 72)
    rows = records(Path(f"{place}.csv").read_text())
    assert {row["series"] for row in rows} >= {"strong", "weak"} or kind == "heatmap"
    figure(results, "--kind", kind, "-o", place)
    assert place.read_bytes() == first, "the same bytes for the same numbers"


def test_numbers_of_figures_are_those_of_the_results(results: Path, tmp_path: Path) -> None:
    figure(results, "--kind", "hops", "-o", tmp_path / "hops.svg", "--width", "double")
    rows = records((tmp_path / "hops.svg.csv").read_text())
    strong = {row["place"]: float(row["value"]) for row in rows if row["series"] == "strong"}
    assert strong == {"1": 1.0, "2": 1.0, "3": 1.0, "4": 0.0}
    assert [row["rows"] for row in rows if row["series"] == "strong"] == ["20"] * 4
    (tmp_path / "accuracy.csv").write_text("a table of the user's")
    figure(results, "-o", tmp_path / "accuracy.png")
    assert (tmp_path / "accuracy.csv").read_text() == "a table of the user's"
    rows = records((tmp_path / "accuracy.png.csv").read_text())
    accuracy = read_results(results / "weak").metrics.accuracy
    weak, near, random = (row for row in rows if row["series"] == "weak")
    assert (float(weak["value"]), float(weak["low"])) == (accuracy.value, accuracy.low)
    panels = [row["panel"] for row in (weak, near, random)]
    assert panels == ["made", "made, near distractors", "made, random distractors"]
    assert float(near["value"]) == read_results(results / "weak").metrics.near_accuracy.value
    assert float(rows[-1]["value"]) == pytest.approx(1 / 3)
    assert rows[-1]["series"] == "chance"


def save_with_similarity(folder: Path, name: str, right: int) -> None:
    """Save a run on rows about which similarity is right in the first half."""
    choices = [("river", f"stone {row}", f"cloud {row}") for row in range(ROWS)]
    asked = ["A river is a river"] * (ROWS // 2) + ["It rains from a cloud"] * (ROWS // 2)
    run = finished_in(save(folder, name, right, choices=choices, questions=asked))
    found = measure_similarity(None, run.evaluation.predictions, 0)
    metrics = with_similarity(run.results.metrics, found)
    write_results(run.results.model_copy(update={"metrics": metrics}), folder / name)


def test_what_is_beyond_similarity_is_shown_of_near_rows(tmp_path: Path) -> None:
    save_with_similarity(tmp_path, "strong", 70)
    save_with_similarity(tmp_path, "weak", 30)
    text = table(tmp_path, "--to", "latex")
    assert r"Model & Accuracy & Near & Near, beyond similarity \\" in text
    strong = next(line for line in text.splitlines() if line.startswith("strong"))
    # Of the 40 near rows the model has 35, similarity 20.
    assert strong.split(" & ")[3].startswith(r"$\mathbf{+37.5}")
    rows = records(table(tmp_path, "--columns", "near_beyond_similarity,beyond_similarity"))
    assert [float(row["near_beyond_similarity"]) for row in rows] == [37.5, -12.5]
    assert [row["near_beyond_similarity_n"] for row in rows] == ["40", "40"]


def test_similarity_has_its_interval_and_the_name_given_to_it_in_figures(tmp_path: Path) -> None:
    for name in ("one", "two"):
        save_with_similarity(tmp_path / "results", name, 30)
    names = tmp_path / "names.yaml"
    names.write_text("most similar choice: Similarity\nchance: Guessing\n")
    for kind in ("accuracy", "hops"):
        place = tmp_path / f"{kind}.pdf"
        figure(tmp_path / "results", "--kind", kind, "-o", place, "--names", names)
        rows = records(Path(f"{place}.csv").read_text())
        assert {row["series"] for row in rows} == {"one", "two", "Similarity", "Guessing"}
        similar = [row for row in rows if row["series"] == "Similarity"]
        assert all(float(row["low"]) < float(row["high"]) for row in similar)
        assert sum(int(row["rows"]) for row in similar) == (80 if kind == "hops" else 160)


def test_curves_of_models_are_drawn_together(tmp_path: Path) -> None:
    runs = [
        run
        for name, share in (("one", 0.6), ("two", 0.8))
        for run in curve_runs(
            lambda *_, share=share: share, sizes=(62, 125, 250), draws=2, model=name
        )
    ]
    write_record("curve", summary_of(runs), {}, tmp_path)
    figure(tmp_path, "--kind", "curve", "-o", tmp_path / "curve.pdf")
    rows = records((tmp_path / "curve.pdf.csv").read_text())
    two = [(row["place"], float(row["value"])) for row in rows if row["series"] == "two"]
    assert two == [("62", 0.8), ("125", 0.8), ("250", 0.8)]
    assert [row["series"] for row in rows[-2:]] == ["baseline: majority <b>&", "chance"]


def test_curves_are_drawn_together_on_the_same_rows_alone(tmp_path: Path) -> None:
    """Two samples of a probe, and on the first another run of the model, and a copy."""
    folders = [tmp_path / name for name in ("first", "other", "again", "copy")]
    for folder, share, rows in zip(folders, (0.6, 0.8, 0.7, 0.6), (120, 90, 120, 120), strict=True):
        runs = curve_runs(
            lambda *_, share=share: share, sizes=(62, 125), draws=2, model="bert", rows=rows
        )
        write_record("curve", summary_of(runs), {}, folder)
    figure(*folders, folders[0], "--kind", "curve", "-o", tmp_path / "curve.svg")
    drawn = records((tmp_path / "curve.svg.csv").read_text())
    lines = [(row["panel"], row["series"], row["value"]) for row in drawn if row["place"] == "62"]
    assert lines == [
        ("ages (120 rows)", f"bert ({folders[0]})", "0.6"),
        ("ages (120 rows)", f"bert ({folders[2]})", "0.7"),
        ("ages (90 rows)", "bert", "0.8"),
    ]


def test_a_model_looks_the_same_in_all_charts_which_have_one_scale(tmp_path: Path) -> None:
    save(tmp_path, "a", 60)
    save(tmp_path, "b", 50)
    save(tmp_path / "other", "b", 20, probe="other", ids=[f"o{row}" for row in range(ROWS)])
    charts = [part for part in figure_of([tmp_path], "hops", NO_NAMES) if isinstance(part, Chart)]
    looks = [{line.name: (line.ink, line.marker) for line in c.panels[0].lines} for c in charts]
    assert [set(own) for own in looks] == [{"a", "b"}, {"b"}]
    assert looks[0]["b"] == looks[1]["b"] != looks[0]["a"]
    drawn = _charts(charts, 3.3)
    assert len({axes.get_ylim() for axes in drawn.axes}) == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-o", "f.jpg"], "ends in .pdf, .svg, .png"),
        (["-o", "f"], "ends in .pdf, .svg, .png"),
        (["-o", "f.pdf", "--width", "wide"], "name single, double, or inches"),
        (["-o", "f.pdf", "--width", "nan"], "name single, double, or inches"),
        (["-o", "f.pdf", "--width", "0"], "name single, double, or inches"),
        (["-o", "f.pdf", "--kind", "curve"], "no summary of the study curve"),
    ],
)
def test_figures_that_cannot_be_drawn_are_refused(
    results: Path, words: Sequence[str], said: str
) -> None:
    assert said in figure(results, *words, code=2)


@pytest.mark.parametrize("share", [0.02, 0.3, 0.5, 0.7, 0.98])
def test_the_hatching_of_few_questions_is_seen_on_each_shade_but_not_through_numbers(
    share: float,
) -> None:
    axes = new_figure(3, 3).subplots()
    faint = frozenset({(0, 0)})
    heat = HeatMap("", "", ["a"], ["b", "c"], [[share, share]], faint=faint, chance=(0.2, 0.5))
    _heat_map(axes, heat, 9)
    hatched, plain = axes.patches
    text, other = axes.texts
    assert hatched.get_hatch()
    assert not plain.get_hatch()
    shades = [
        luminance(to_hex(colour)) for colour in (hatched.get_facecolor(), hatched.get_edgecolor())
    ]
    assert (max(shades) + 0.05) / (min(shades) + 0.05) > 1.5
    box = text.get_bbox_patch()
    assert box is not None
    assert box.get_facecolor() == hatched.get_facecolor()
    assert other.get_bbox_patch() is None


def test_hops_that_do_not_vary_are_no_figure(tmp_path: Path) -> None:
    save(tmp_path, "same", 30, hops=[1] * ROWS, families=["sister"] * ROWS)
    for kind in ("hops", "heatmap"):
        said = figure(tmp_path, "--kind", kind, "-o", tmp_path / "f.pdf", code=2)
        assert "draw --kind accuracy" in said
