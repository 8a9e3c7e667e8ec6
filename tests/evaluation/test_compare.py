"""Comparisons of runs against counts by hand and tests by enumeration."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation import compare
from evaluation.cli import main
from evaluation.results.intervals import paired_test
from evaluation.results.pairs import holm, mcnemar
from evaluation.results.types import read_results, write_results
from evaluation.studies.agreement import kappas_of
from evaluation.studies.base import StudyRequest, read_summary, summarise_folders
from evaluation.studies.compare import COMPARE, CompareOptions
from evaluation.studies.table import StudyTables
from evaluation.tables_command import open_table
from kbprobe.errors import UsageError
from kbprobe.format.manifest import EncoderDigest
from tests.evaluation.saved_runs import reseal, save_run
from tests.evaluation.test_curve_page import HOSTILE, read

Save = Callable[..., Path]


@pytest.fixture
def save(tmp_path: Path) -> Save:
    """Write the folder of a run whose predictions are given; None: set aside."""

    def write(model: str, *arguments: Any, folder: str | None = None, **named: Any) -> Path:
        return save_run(tmp_path / (folder or model), model, *arguments, **named)

    return write


def page_of(found: StudyTables) -> str:
    return COMPARE.files(found)["compare.html"]


def pairs_of(found: StudyTables) -> list[SimpleNamespace]:
    """Return the table of contrasts."""
    return [SimpleNamespace(**row) for row in found.tables["contrasts"]]


def printed(found: StudyTables) -> str:
    with redirect_stdout(io.StringIO()) as out:
        COMPARE.display(found)
    return out.getvalue()


# --- tests of significance --------------------------------------------------------------------


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_is_the_sign_test_on_what_tells_them_apart(one: int, two: int) -> None:
    n = one + two
    tail = sum(math.comb(n, k) for k in range(min(one, two) + 1)) / 2**n
    assert mcnemar(one, two) == pytest.approx(min(1.0, 2 * tail))


@pytest.mark.slow
def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_rejects_what_the_step_down_procedure_rejects(p_values: list[float]) -> None:
    level, order = 0.05, sorted(range(len(p_values)), key=lambda at: p_values[at])
    rejected = set()
    for rank, at in enumerate(order):
        if p_values[at] * (len(p_values) - rank) > level:
            break
        rejected.add(at)
    assert {at for at, p in enumerate(holm(p_values)) if p <= level} == rejected


# --- two runs ---------------------------------------------------------------------------------


def test_two_runs_by_hand(save: Save) -> None:
    one = save(
        "one", [0, 0, 1, 2, 1, None], list("aabbcc"), families=["x", "x", "x", "y", "y", "y"]
    )
    two = save("two", [0, 1, 0, 1, 1, 0], list("aabbcc"), families=["x", "x", "x", "y", "y", "y"])
    found = compare([one, two])
    (pair,) = pairs_of(found)
    assert (pair.first, pair.second) == ("one", "two")
    assert (pair.rows, pair.skipped, pair.clusters) == (5, 1, 3)
    assert (pair.only_first, pair.only_second) == (0, 0)
    assert (pair.accuracy_first.value, pair.accuracy_second.value) == (0.4, 0.4)
    assert pair.difference.value == 0.0
    assert pair.difference.low < 0.0 < pair.difference.high
    assert (pair.only_first_right, pair.only_second_right) == (1, 1)
    assert pair.p_mcnemar == pair.p_value == 1.0
    assert pair.same.value == pytest.approx(2 / 5)
    # Both are right on 2 of 5 rows; errors of three choices fall on either of two.
    assert pair.expected == pytest.approx(0.4 * 0.4 + 0.6 * 0.6 / 2)
    assert (pair.both_wrong, pair.same_error.value, pair.expected_error) == (2, 0.5, 0.5)
    # Agreement on being right: rows 0, 3 and 4; by chance .4 x .4 + .6 x .6.
    assert pair.kappa == pytest.approx((3 / 5 - 0.52) / (1 - 0.52)), "too few for an interval"
    parts = {
        part["part"]: (part["accuracy_first"].value, part["accuracy_second"].value, part["rows"])
        for part in found.tables["families"]
    }
    assert parts == {"x": (pytest.approx(2 / 3), pytest.approx(2 / 3), 3), "y": (0.0, 0.0, 2)}


def test_b_minus_a_and_turned_round(save: Save) -> None:
    chance = np.random.default_rng(0)
    clusters = [f"c{row // 5}" for row in range(1_000)]
    weak = [int(x) for x in chance.integers(0, 3, 1_000)]
    strong = [0 if chance.random() < 0.3 else choice for choice in weak]
    one, two = save("weak", weak, clusters), save("strong", strong, clusters)
    there, back = pairs_of(compare([one, two]))[0], pairs_of(compare([two, one]))[0]
    gain = 100 * (strong.count(0) - weak.count(0)) / 1_000
    assert there.difference.value == pytest.approx(gain)
    assert back.difference.value == pytest.approx(-gain)
    assert there.difference.method == "paired cluster bootstrap"
    assert 0 < there.difference.low < gain < there.difference.high
    assert there.only_first_right == back.only_second_right == 0
    assert max(there.p_value, back.p_value) < 1e-6
    assert compare([one, two]) == compare([one, two])


def test_a_run_beside_itself(save: Save) -> None:
    one = save("one", [0] * 40, folder="a")
    two = save("one", [0] * 40, folder="b")
    pair = pairs_of(compare([one, two]))[0]
    assert pair.first == f"one, {one}"
    assert (pair.difference.value, pair.p_value, pair.p_mcnemar) == (0.0, 1.0, 1.0)
    assert (pair.same.value, pair.same_error) == (1.0, None)


def test_other_rows_are_refused_unless_partial(save: Save) -> None:
    one = save("one", [0, 1, 0, 1], ids=["a", "b", "c", "d"])
    two = save("two", [2, 0, 1], ids=["e", "d", "b"])
    with pytest.raises(UsageError, match=r"of 4 and 3 items they share 2.*--partial"):
        compare([one, two])
    pair = pairs_of(compare([one, two], partial=True))[0]
    assert (pair.rows, pair.only_first, pair.only_second) == (2, 2, 1)
    assert (pair.accuracy_first.value, pair.accuracy_second.value) == (0.0, 0.5)
    assert pair.same.value == 0.5  # b: 1 and 1; d: 1 and 0.


def test_one_folder_stands_for_the_results_within_it(save: Save) -> None:
    one, two = save("one", [0, 1], folder="both/one"), save("two", [1, 1], folder="both/two")
    request = StudyRequest(COMPARE, options=CompareOptions())
    assert summarise_folders(request, [one.parent]) == summarise_folders(request, [one, two])
    deeper = save("one", [1, 1], folder="all/probe/one", probe="other")
    save("two", [0, 1], folder="all/probe/two", probe="other")
    save("one", [0], folder="all/probe/one/facts", probe="facts")
    save("two", [0, 1], folder="all/study/two", probe="other")  # The same results again.
    assert len(summarise_folders(request, [one.parent, deeper.parent.parent]).tables["runs"]) == 4
    with pytest.raises(UsageError, match="at least two results"):
        summarise_folders(request, [one])


def test_what_cannot_be_paired(save: Save) -> None:
    one = save("one", [0, 1], ids=["a", "b"])
    with pytest.raises(UsageError, match=r"the only results on made \(test\)"):
        compare([one, save("two", [0, 1], ids=["a", "c"], probe="other")], partial=True)
    with pytest.raises(UsageError, match="they share 0"):
        compare([one, save("three", [0, 1], ids=["c", "d"])], partial=True)
    with pytest.raises(UsageError, match="other golds"):
        compare([one, save("four", [0, 1], ids=["a", "b"], gold=1)], partial=True)
    with pytest.raises(UsageError, match="items with the same id"):
        compare([one, save("five", [0, 1, 1], ids=["a", "a", "b"])], partial=True)
    with pytest.raises(UsageError, match=r"at least two.*--against similarity"):
        compare([one])
    with pytest.raises(UsageError, match="holds no results"):
        compare([one, one / "nowhere"])


BUILD = {"probe": "made", "seed": 0}


def test_a_control_beside_its_own_probe(save: Save) -> None:
    """Rows pair by id, and answers by their text: another config may have them in other places."""
    turned = ("worse", "wrong", "gold")
    own = save("m", [0, 1, 2, 0], folder="own", request=BUILD)
    control = save(
        "m", [2, 2, 0, 1], folder="c", request=BUILD, probe="made-plain", gold=2, choices=turned
    )
    found = compare([own, control])
    pair = pairs_of(found)[0]
    assert (pair.first, pair.second, pair.rows) == ("m, made", "m, made-plain", 4)
    assert (pair.accuracy_first.value, pair.accuracy_second.value) == (0.5, 0.5)
    assert (pair.only_first_right, pair.only_second_right) == (1, 1)
    assert pair.same.value == 0.5, "rows 0 (gold) and 2 (worse)"
    # Results on a config do not hold the request of the build: its folder is the same.
    folders = [
        save("m", [0, 1], folder=f"f{n}", request=given, probe=probe, source="probes/made")
        for n, (given, probe) in enumerate([(BUILD, "made"), (None, "made-plain")])
    ]
    assert compare(folders).tables["controls"][0]["control"] == "plain"
    text = printed(found)
    assert "m, made-plain" in text
    assert "rows are paired by ids" in text


def test_the_same_questions_in_two_languages(save: Save) -> None:
    """Probes built to be parallel pair by id; answers agree by their place, not by their text."""

    def built(languages: str, parallel: bool = True) -> dict[str, Any]:
        return {**BUILD, "options": {"language": languages, "parallel": parallel}}

    italian = ("giusto", "errato", "peggiore")
    own = save("m", [0, 1, 2, 0], folder="en", request=built("en,it"))
    other = save("m", [0, 0, 2, 1], folder="it", request=built("it,en"), choices=italian)
    found = compare([own, other])
    text = printed(found)
    assert "m, en" in text
    assert "m, it" in text
    pair = pairs_of(found)[0]
    assert (pair.rows, pair.accuracy_first.value, pair.accuracy_second.value) == (4, 0.5, 0.5)
    assert pair.same.value == 0.5, "rows 0 and 2"
    for folder, request in (("x", built("it,pt")), ("y", built("it", parallel=False))):
        apart = save("m", [0, 0, 2, 1], folder=folder, request=request, choices=italian)
        with pytest.raises(UsageError, match="--partial"):
            compare([own, apart])


def test_controls_are_of_the_same_build_and_rows(save: Save) -> None:
    own = save("m", [0, 1], folder="own", request=BUILD)
    other = save("m", [0, 1], folder="o", request={**BUILD, "seed": 1}, probe="made-x", gold=1)
    fewer = save("m", [0], folder="f", request=BUILD, probe="made-plain", gold=1)
    assert compare([own, other]).tables.keys() == {"probes", "across"}, "not paired by ids"
    with pytest.raises(UsageError, match="--partial"):
        compare([own, fewer])
    assert pairs_of(compare([own, fewer], partial=True))[0].rows == 1


def test_other_normalizations_are_warned_of(save: Save) -> None:
    runs = [save("a", [0, 1]), save("b", [0, 0]), save("c", [0, 0], normalization="char")]
    assert compare(runs[:2]).notes[1:] == []
    assert "normalization" not in printed(compare(runs[:2]))
    for some in (runs, runs[1:]):
        found = compare(some)
        assert "b: acc (--normalization sum); c: acc_norm (--normalization char)" in str(
            found.notes
        )
        assert "The runs compare choices by scores of different" in printed(found)


def test_repeated_ids_pair_on_exactly_the_same_rows(save: Save) -> None:
    one = save("one", [0, 1, 2], ids=["a", "a", "b"])
    two = save("two", [0, 1, 1], ids=["a", "a", "b"])
    assert pairs_of(compare([one, two]))[0].same.value == pytest.approx(2 / 3)


def test_no_item_scored_by_both(save: Save) -> None:
    with pytest.raises(UsageError, match=r"no item was scored by both \(2 were asked of both\)"):
        compare([save("one", [0, None]), save("two", [None, 0])])


def test_files_of_two_runs_in_one_folder(save: Save) -> None:
    one, two = save("one", [0, 1]), save("two", [0, 1, 1])
    (two / "predictions.parquet").replace(one / "predictions.parquet")
    with pytest.raises(UsageError, match=r"predictions\.parquet was changed.*--overwrite"):
        compare([one, one])
    reseal(one)
    with pytest.raises(UsageError, match=r"counts 2 items.*not of the same run"):
        compare([one, one])


# --- several runs -----------------------------------------------------------------------------


def test_several_runs_as_matrices(save: Save) -> None:
    said = {"a": [0, 0, 0, 0], "b": [0, 0, 1, 1], "c": [0, 2, 1, 2]}
    found = compare([save(name, choices) for name, choices in said.items()])
    assert [row["run"] for row in found.tables["runs"]] == list(said)
    pairs = pairs_of(found)
    assert [pair.same.value for pair in pairs] == [0.5, 0.25, 0.5]
    assert [pair.difference.value for pair in pairs] == [-50, -75, -25]
    assert [pair.p_holm for pair in pairs] == holm([pair.p_value for pair in pairs])


def test_what_is_printed(save: Save) -> None:
    families = ["sister"] * 20 + ["random"] * 20
    folders = [
        save("org/[one]", [0] * 30 + [1] * 10, families=families, folder="a"),
        save("two", [0] * 20 + [1] * 19 + [None], families=families, folder="b"),
        save("three", [2] * 40, families=families, folder="c"),
    ]
    text = printed(compare(folders[:2]))
    for part in ("made (test)", "org/[one]", "76.9", "−25.6 points", "sister", "1 skipped by"):
        assert part in text
    text = printed(compare(folders))
    for part in ("org/[one]", "three", "same answer", "74.4%", "+75.0"):
        assert part in text


def test_the_page_and_the_table_of_pairs(save: Save, tmp_path: Path) -> None:
    chance = np.random.default_rng(4)
    weak = chance.integers(0, 3, 300).tolist()
    strong = [0 if chance.random() < 0.4 else choice for choice in weak]
    other = [0 if chance.random() < 0.4 else choice for choice in weak]
    folders = [save("weak", weak), save("strong", strong), save(HOSTILE, other, folder="h")]
    request = StudyRequest(COMPARE, options=CompareOptions(), output=tmp_path / "out")
    found: StudyTables = summarise_folders(request, folders)
    page = (tmp_path / "out" / "compare.html").read_text()
    assert page == page_of(found), "the same bytes each time"
    assert read(page).tags["script"] == 0
    first, _, last = pairs_of(found)
    assert first.p_holm <= 0.05 < last.p_holm
    assert "2 of 3 pairs differ at a level of 5%, adjusted for their number (Holm)" in page
    assert page.count(" marked") == 4, "both cells of the two pairs that differ"
    table = open_table((tmp_path / "out" / "compare.json",), "contrasts")
    assert table.rows[0][list(table.head).index("difference")].value == first.difference.value


def test_the_page_of_two_runs_has_families(save: Save) -> None:
    families = ["sister"] * 20 + ["random"] * 20
    folders = [save(n, [v] * 40, families=families) for n, v in (("one", 0), ("two", 1))]
    page = page_of(compare(folders))
    assert "two minus one: −100.0 points" in page
    assert "second less" not in page
    assert "By distractor family" in page
    assert "pairs differ" not in page


def test_the_wording_with_the_highest_mean_comes_first(save: Save) -> None:
    templates = ["plain"] * 4 + ["paper"] * 4
    said = {"a": [0, 1, 1, 1, 0, 0, 0, 1], "b": [1, 1, 0, 1, 0, 0, None, 1]}
    folders = [save(name, choices, templates=templates) for name, choices in said.items()]
    found = compare(folders)
    # A row that one of them set aside counts for neither.
    wordings = found.tables["wordings"]
    means = {row["template"]: (row["accuracy"].value, row["accuracy"].n) for row in wordings}
    assert list(means) == ["paper", "plain"]
    assert means == {"paper": (pytest.approx(4 / 6), 3), "plain": (0.25, 4)}
    assert [(row["rows"], row["clusters"]) for row in wordings] == [(3, 3), (4, 4)]
    assert wordings[1]["runs"] == [0.25, 0.25]
    assert "By wording: mean accuracy over the models" in page_of(found)
    assert "By wording: mean accuracy" in printed(found)
    alike = [save(name, [0, 1], templates=["plain"] * 2, folder=name * 2) for name in "ab"]
    assert compare(alike).tables["wordings"] == []
    assert "By wording" not in page_of(compare(alike))


# --- one interval, several probes, and similarity ----------------------------------------------


@given(st.integers(0, 2**32 - 1), st.integers(2, 60), st.integers(1, 4), st.floats(0, 0.5))
def test_p_is_below_the_level_where_the_interval_excludes_0_and_nowhere_else(
    seed: int, clusters: int, size: int, gain: float
) -> None:
    generator = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(clusters), size)
    first = generator.random(cluster.size) < 0.4
    second = first | (generator.random(cluster.size) < gain)
    test = paired_test(first, second & (generator.random(cluster.size) < 0.95), cluster, 0)
    excludes = test.difference.low > 0 or test.difference.high < 0
    assert (test.p_value < 0.05) == excludes


def test_a_difference_has_one_interval_wherever_it_is_shown(save: Save) -> None:
    """The table of controls once had the interval of other resamples, in the other direction."""
    own = save("m", [0, 1, 2, 0] * 20, folder="own", request=BUILD)
    control = save("m", [0, 0, 1, 1] * 20, folder="c", request=BUILD, probe="made-plain")
    found = compare([own, control])
    (pair,), (of_control,) = pairs_of(found), found.tables["controls"]
    assert of_control["difference"] == pair.difference
    assert of_control["p_value"] == pair.p_value
    shown = re.findall(r"[+−][\d.]+ (?:points )?\([^)]*\)", printed(found))
    assert len({text.replace("points ", "") for text in shown}) == 1


def test_a_model_on_two_probes_is_compared_above_chance_and_unpaired(save: Save) -> None:
    """60% of two choices and 60% of three: the second is further above chance."""
    right = [0] * 120 + [1] * 80
    clusters = [f"c{row // 2}" for row in range(200)]
    two = save("m", right, clusters, folder="two", probe="pairs", choices=("yes", "no"))
    three = save("m", right, clusters, folder="three", probe="triples")
    found = compare([two, three])
    (pair,) = found.rows("across")
    assert (pair["first"], pair["second"]) == ("pairs (test)", "triples (test)")
    assert pair["difference"].value == pytest.approx(100 * (0.4 - 0.2))
    assert pair["difference"].low < 20 < pair["difference"].high
    assert (pair["p_value"] < 0.05) == (pair["difference"].low > 0)
    assert [(row["rows"], row["clusters"]) for row in found.rows("probes")] == [(200, 100)] * 2
    back = compare([three, two]).rows("across")[0]["difference"]
    assert (back.value, back.low) == pytest.approx((-20, -pair["difference"].high))
    text = printed(found)
    assert "triples (test) minus pairs (test): +20.0 points" in text
    assert "Unpaired: the probes have different rows" in text
    alike = compare([two, save("m", right, clusters, folder="x", probe="x", choices=("a", "b"))])
    assert alike.rows("across")[0]["p_value"] > 0.9


def test_a_model_against_similarity(save: Save) -> None:
    """Each question names its gold: similarity is always right, and the model in half."""
    rows = 60
    texts = [("dog", "stone", "idea"), ("stone", "idea", "dog"), ("idea", "dog", "stone")]
    varied = {
        "questions": [f"A {texts[row % 3][0]} is a {texts[row % 3][0]}." for row in range(rows)],
        "choices": [texts[row % 3] + (f"thing {row}",) for row in range(rows)],
    }
    model = save("m", [row % 2 for row in range(rows)], **varied)
    found = compare([model], against="similarity")
    (pair,) = pairs_of(found)
    assert (pair.first, pair.second) == ("most similar choice", "m")
    assert (pair.accuracy_first.value, pair.accuracy_second.value) == (1.0, 0.5)
    assert pair.difference.value == -50.0
    assert "m minus most similar choice: −50.0 points" in printed(found)
    assert "different normalization" not in printed(found)
    same = save("n", [0, 1] * 3, probe="same")
    with pytest.raises(UsageError, match=r"says nothing about the rows of same.*--against"):
        compare([same], against="similarity")
    others = [save("k", [0] * rows, **varied), save("o", [0] * 6, probe="same")]
    found = compare([model, same, *others], against="similarity")
    assert "Similarity says nothing about the rows of same." in found.notes


def test_an_adjusted_p_is_named_wherever_it_is_shown(save: Save) -> None:
    """One pair on each of two probes: adjusted for both."""
    first, second = [0] * 30 + [1] * 30, [0] * 37 + [1] * 23
    runs = [save(name, said) for name, said in (("a", first), ("b", second))]
    text = printed(compare(runs))
    assert ", p = 0.0" in text
    assert "Holm" not in text
    others = [
        save(name, said, folder=f"{name}2", probe="other", ids=[f"o{row}" for row in range(60)])
        for name, said in (("a", first), ("b", [*first[:-1], 0]))
    ]
    text = printed(compare([*runs, *others]))
    assert text.count(", p (Holm) ") == 2
    assert text.count("p (Holm)") == 4, "in the table of each probe as well"


def test_samples_of_a_probe_have_one_similarity_baseline(save: Save) -> None:
    """Of rows 0 to 59 and 30 to 89, whose golds are named in the questions."""
    texts = ("dog", "stone", "idea")

    def sample(name: str, first: int, asked: str = "A {0} is a {0}.", **more: Any) -> Path:
        rows = range(first, first + 60)
        return save(
            name,
            [row % 2 for row in rows],
            ids=[f"i{row}" for row in rows],
            questions=[asked.format(texts[row % 3]) for row in rows],
            choices=[(texts[row % 3], texts[(row + 1) % 3], f"thing {row}") for row in rows],
            **more,
        )

    samples = [sample("one", 0), sample("two", 30)]
    found = compare(samples, against="similarity", partial=True)
    (baseline, *_) = found.tables["runs"]
    assert (baseline["run"], baseline["counted"], baseline["clusters"]) == (
        "most similar choice",
        90,
        90,
    )
    shown = [(pair.first, pair.second, pair.rows) for pair in pairs_of(found)]
    assert shown == [
        ("most similar choice", "one", 60),
        ("most similar choice", "two", 60),
        ("one", "two", 30),
    ]
    builds = [*samples, sample("other", 0, "Every {0} is a {0}.", source="probes/other")]
    found = compare(builds, against="similarity", partial=True)
    labels = [row["run"] for row in found.tables["runs"]]
    assert len(set(labels)) == len(labels) == 5
    assert labels[:2] == [f"most similar choice, rows of {of}" for of in (samples[0], builds[2])]


def test_what_a_model_has_beyond_similarity_is_told_of_near_rows(save: Save) -> None:
    """Similarity is right of random distractors alone, and the model of near ones."""
    rows = 60
    named = ["A river is a river"] * 30 + ["It rains from a cloud"] * 30
    model = save(
        "m",
        [1] * 30 + [0] * 30,
        questions=named,
        choices=[("river", f"stone {row}", f"cloud {row}") for row in range(rows)],
        families=["random"] * 30 + ["sister"] * 30,
    )
    found = compare([model], against="similarity")
    parts = {row["part"]: row["difference"].value for row in found.tables["near_and_random"]}
    assert parts == {"near": 100.0, "random": -100.0}
    assert found.sentences[0].startswith("With near distractors, m minus most similar choice: +100")


def test_where_a_comparison_is_written_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["compare", "--help"])
    assert "nothing is written without it" in " ".join(capsys.readouterr().out.split())


def test_models_have_the_names_given_and_matched_encoders_are_named(
    save: Save, tmp_path: Path
) -> None:
    folders = [save(name, [0, 1] * 4, weights_sha256=64 * name) for name in "ab"]
    for folder in folders:
        read = read_results(folder)
        matched = [EncoderDigest(name="a", sha256=64 * "a")]
        probe = read.probe.model_copy(update={"matched_on": matched})
        write_results(read.model_copy(update={"probe": probe}), folder)
    names = tmp_path / "names.yaml"
    names.write_text("a: Encoder\nb: Model\n")
    found = compare(folders, names=str(names))
    assert [row["run"] for row in found.tables["runs"]] == ["Encoder", "Model"]
    (note,) = (note for note in found.notes if "matched on" in note)
    assert note.startswith("Encoder: this model is one of the encoders")
    with pytest.raises(UsageError, match=r"there is no file nowhere\.yaml"):
        compare(folders, names="nowhere.yaml")


def test_two_wordings_of_a_probe_are_paired_by_ids(save: Save) -> None:
    def built(wording: str, **more: object) -> dict[str, Any]:
        options = {"wording": wording, "choices": 3, **more}
        request = {"probe": "made", "seed": 0, "template_digest": wording, "options": options}
        return {"request": request, "questions": [f"{wording} {row}" for row in range(6)]}

    one = save("m", [0, 0, 0, 1, 1, 2], **built(""), folder="one", choices=["a", "b", "c"])
    two = save("m", [0, 0, 1, 1, 1, 0], **built("kind-of"), folder="two", choices=["x", "y", "z"])
    found = compare([one, two])
    (pair,) = pairs_of(found)
    assert (pair.first, pair.second) == ("m, all wordings", "m, wording kind-of")
    assert (pair.rows, pair.same.value) == (6, pytest.approx(4 / 6))
    assert any("in other wordings" in note for note in found.notes)
    three = save("m", [0] * 6, **built("kind-of", pos="noun"), folder="three")
    with pytest.raises(UsageError, match="not on the same rows"):
        compare([one, three])


def test_a_wording_that_reverses_a_ranking_is_told(save: Save) -> None:
    templates = ["plain"] * 40 + ["paper"] * 40
    first, second = [0] * 40 + [1] * 40, [1] * 40 + [0] * 40
    folders = [
        save(name, said, templates=templates) for name, said in (("a", first), ("b", second))
    ]
    text = printed(compare(folders))
    assert "Wording reverses a ranking: b minus a is +100.0 points" in text
    assert "with paper (40 rows), −100.0 points" in text
    alike = [save(f"{n}2", first, templates=templates) for n in "ab"]
    assert "Wording reverses" not in printed(compare(alike))


def test_the_same_result_is_no_second_model(save: Save, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = save("a", [0, 1] * 10), save("b", [1, 1] * 10)
    found = compare([one, two, one.parent / "." / one.name / ".." / one.name])
    assert [pair.second for pair in pairs_of(found)] == ["b"]
    assert f"{one.name}, which is named twice" in capsys.readouterr().err
    with pytest.raises(UsageError, match="takes at least"):
        compare([one, Path(str(one))])


def test_wordings_reverse_no_ranking_of_models_that_guess(save: Save) -> None:
    rng = np.random.default_rng(1)
    templates = [f"wording {row % 20}" for row in range(600)]
    folders = [
        save(f"guess{n}", rng.integers(0, 2, 600).tolist(), templates=templates) for n in range(4)
    ]
    assert "Wording reverses" not in printed(compare(folders))


# --- agreement --------------------------------------------------------------------------------


def independent(
    seed: int, shares: tuple[float, ...], rows: int = 1_500, errors_alike: bool = False
) -> list[list[int]]:
    """Return answers of models that are right independently of each other."""
    random = np.random.default_rng(seed)
    tempting = random.integers(1, 3, rows)
    answers = []
    for share in shares:
        wrong = tempting if errors_alike else random.integers(1, 3, rows)
        answers.append(np.where(random.random(rows) < share, 0, wrong).tolist())
    return answers


def test_independent_models_share_what_is_expected(save: Save) -> None:
    clusters = [f"c{row // 3}" for row in range(1_500)]
    answers = independent(0, (0.8, 0.7))
    folders = [save(f"m{n}", a, clusters) for n, a in enumerate(answers)]
    pair = pairs_of(compare(folders))[0]
    assert pair.same.low < pair.expected < pair.same.high
    assert pair.same.value > 0.5, "overlap is high without anything in common"
    assert pair.kappa.low < 0 < pair.kappa.high
    assert pair.same_error.low < 0.5 < pair.same_error.high


def test_errors_that_are_alike_are_found(save: Save) -> None:
    answers = independent(1, (0.4, 0.4), errors_alike=True)
    summary = compare([save(f"m{n}", a) for n, a in enumerate(answers)])
    pair = pairs_of(summary)[0]
    assert pair.same_error.value == 1.0
    assert pair.expected_error == pytest.approx(0.5)


def test_two_choices_tell_nothing_of_errors(save: Save) -> None:
    folders = [save(m, [0, 1, 1], choices=("yes", "no")) for m in ("one", "two")]
    summary = compare(folders)
    pair = pairs_of(summary)[0]
    assert (pair.both_wrong, pair.same_error, pair.expected_error) == (0, None, None)
    assert pair.expected == pytest.approx(1 / 9 + 4 / 9)
    assert "no row of three choices or more" in page_of(summary)


def test_kappa_is_null_where_nothing_varies(save: Save) -> None:
    found = compare([save("one", [0, 0]), save("two", [0, 0])])
    assert pairs_of(found)[0].kappa is None
    assert np.isnan(kappas_of(np.array([[5.0, 0.0, 0.0, 0.0]]))).all()


@pytest.mark.slow
def test_several_probes_and_their_mean(save: Save, tmp_path: Path) -> None:
    folders = []
    for number, probe in enumerate(("ages", "sizes")):
        answers = independent(number, (0.6, 0.5, 0.4))
        folders += [
            save(
                f"m{n}",
                a,
                folder=f"{probe}{n}",
                probe=probe,
                ids=[f"{probe}{row}" for row in range(len(a))],
            )
            for n, a in enumerate(answers)
        ]
    request = StudyRequest(COMPARE, options=CompareOptions(), output=tmp_path / "out")
    summary: StudyTables = summarise_folders(request, folders)
    pairs = pairs_of(summary)
    assert [pair.probe for pair in pairs] == ["ages"] * 3 + ["sizes"] * 3
    assert len(summary.tables["mean"]) == 3
    for number, mean in enumerate(summary.tables["mean"]):
        held = [pairs[at] for at in (number, number + 3)]
        assert mean["same"].value == pytest.approx(np.mean([p.same.value for p in held]))
        widths = [p.same.high - p.same.low for p in held]
        width = mean["same"].high - mean["same"].low
        assert width < max(widths), "two probes tell more than one"
    written = read_summary(tmp_path / "out", "compare", StudyTables, "2.0", "")
    assert written.tables == summary.tables
    page = (tmp_path / "out" / "compare.html").read_text()
    assert read(page).tags["script"] == 0
    assert "Mean over 2 probes" in page
    assert summary.document is not None
    assert summary.document.title == "2 probes"
    assert page == page_of(summary), "the same bytes each time"
    # Without one of the models on one of the probes there is no mean.
    assert "mean" not in compare(folders[:-1]).tables


@pytest.mark.slow
def test_labels_tell_runs_apart(save: Save) -> None:
    trained = {"learner": "full", "train": 500, "seed": 0}
    folders = [
        save("org/m", [0, 1], folder="0"),
        save("org/m", [0, 1], folder="1", random_weights=0),
        save("org/m", [1, 1], folder="2", random_weights=1),
        save("org/m", [0, 0], folder="3", finetuning=trained),
        save("org/m", [0, 1], folder="4", finetuning=trained | {"train": 100}),
        save("none", [0, 1], folder="5", finetuning=trained | {"learner": "esim"}),
        save("none", [0, 1], folder="6"),
    ]
    one = compare(folders)
    assert [row["run"] for row in one.tables["runs"]] == [
        "org/m",
        "org/m, random weights 0",
        "org/m, random weights 1",
        "org/m, full, 500 rows",
        "org/m, full, 100 rows",
        "esim",
        "multiple_choice",
    ]
    (restarts,) = one.tables["restarts"]
    assert restarts["runs"] == ["org/m, random weights 0", "org/m, random weights 1"]
    assert (restarts["accuracy"], restarts["same"]) == (0.25, 0.5)
    assert restarts["deviation"] == pytest.approx(np.std([0.5, 0.0], ddof=1))
    assert "Random initialisations" in page_of(one)


def test_the_command_prints_the_comparison(save: Save, capsys: pytest.CaptureFixture[str]) -> None:
    folders = [str(save(m, a)) for m, a in (("one", [0, 1, 1]), ("two", [0, 2, 0]))]
    with pytest.raises(SystemExit) as stopped:
        main(["compare", *folders])
    assert stopped.value.code == 0
    shown = capsys.readouterr()
    assert "33.3% (" in shown.out
    assert "fewer than 50 rows" in shown.out
