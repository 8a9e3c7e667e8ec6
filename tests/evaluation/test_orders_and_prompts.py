"""Orders of choices and several prompts in one run: equal to a run of each, and what is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from itertools import combinations, permutations
from statistics import mean, pstdev, stdev
from types import SimpleNamespace

import numpy as np
import pytest

import evaluation
from evaluation.cli import main
from evaluation.items.orders import Order
from evaluation.results import intervals
from evaluation.studies.prompts import PromptsOptions
from evaluation.studies.table import StudyTables
from kbprobe.errors import UsageError
from kbprobe.format.sealed import read_sealed
from tests.evaluation import tiny_causal, tiny_masked, tiny_seq2seq
from tests.test_docs import ROOT, blocks

MODEL = "tiny-gpt2"
WORDS = ("dog", "cat", "mouse", "robin", "penguin", "car", "bus", "truck", "city", "country")
PROMPTS = """
plain: "{question}"
qa: "Q: {question}\\nA:"
letters:
  letters: true
"""


def write_rows(folder, split, sizes, first=0, setup="mc_qa", spoilt=(), long=()):
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{split}.jsonl").open("w") as file:
        for at, size in enumerate(sizes, start=first):
            texts = [f"a {WORDS[(at + 3 * n) % len(WORDS)]}" for n in range(size)]
            if at in spoilt:
                texts[0] = "an <|endoftext|>"
            if at in long:
                texts[0] = "a long word " * 60
            question = f"What is {WORDS[at % 7]} {at}?"
            row = {
                "id": f"row-{at}",
                "setup": setup,
                "question": question if setup == "mc_qa" else f"{question} [MASK].",
                "choices": {"text": texts, "label": list("ABCDEFG"[:size])},
                "answer": at % size,
                "answerKey": "ABCDEFG"[at % size],
                "cluster": f"c{at // 2}",
            }
            file.write(json.dumps(row) + "\n")


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("world")
    write_rows(folder / "threes", "test", [3] * 40, spoilt=(7,))
    write_rows(folder / "threes", "train", [3] * 12, first=100)
    write_rows(folder / "mixed", "test", [2, 3, 4] * 8)
    write_rows(folder / "long", "test", [3] * 12, long=(2, 3))
    write_rows(folder / "clozes", "test", [3] * 4, setup="mc_mlm")
    tiny_causal.write("gpt2", folder / MODEL)
    tiny_masked.write("bert-uncased", folder / "tiny-bert")
    (folder / "prompts.yaml").write_text(PROMPTS)
    return folder


@pytest.fixture(scope="module")
def orders(world, tmp_path_factory):
    """The study of all orders, its cache, and a run of each order by itself."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(world)
        patch.setenv("KBPROBE_CACHE", str(tmp_path_factory.mktemp("cache")))
        found = evaluation.study("orders", "threes", MODEL)
        patch.setenv("KBPROBE_CACHE", str(tmp_path_factory.mktemp("other")))
        runs = {
            order: evaluation.evaluate("threes", MODEL, letters=True, order=order).to_pandas()
            for order in map("".join, permutations("ABC"))
        }
    return found, runs


@pytest.fixture(scope="module")
def asked_alone(world, tmp_path_factory):
    """A run of each of the prompts, and the cache that it leaves."""
    cache = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(world)
        patch.setenv("KBPROBE_CACHE", str(cache))
        return {
            "plain": evaluation.evaluate("threes", MODEL, prompt="{question}"),
            "qa": evaluation.evaluate("threes", MODEL, prompt=r"Q: {question}\nA:"),
            "letters": evaluation.evaluate("threes", MODEL, letters=True),
        }, cache


@pytest.fixture(scope="module")
def prompts(world, asked_alone, tmp_path_factory):
    """The study of the prompts, when each has been scored."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(world)
        patch.setenv("KBPROBE_CACHE", str(asked_alone[1]))
        output = tmp_path_factory.mktemp("out")
        found = evaluation.study("prompts", "threes", MODEL, prompts="prompts.yaml", output=output)
    return found


pytestmark = pytest.mark.usefixtures("in_world")


def run(*words, code=0):
    with pytest.raises(SystemExit) as done:
        main([*map(str, words)])
    assert (done.value.code or 0) == code


def spread_of(summary):
    (row,) = summary.tables["spread"]
    return SimpleNamespace(**row)


@pytest.mark.slow
def test_all_orders_are_equal_to_a_run_of_each(orders):
    found, runs = orders
    assert [row["order"] for row in found.tables["runs"]] == list(runs)
    accuracies = [frame.correct.dropna().mean() for frame in runs.values()]
    own = [row["accuracy"].value for row in found.tables["runs"]]
    assert own == pytest.approx(accuracies)
    spread = spread_of(found)
    assert spread.exhaustive
    assert (spread.rows, spread.scored, spread.skipped, spread.partly) == (40, 39, 1, 0)
    assert any("1 of 40 rows" in note for note in found.notes)
    assert spread.accuracy.value == pytest.approx(mean(accuracies))
    assert spread.accuracy.low <= spread.accuracy.value <= spread.accuracy.high
    assert (spread.lowest, spread.highest) == pytest.approx((min(accuracies), max(accuracies)))
    assert spread.deviation == pytest.approx(stdev(accuracies))
    said = np.array([frame.prediction.dropna() for frame in runs.values()], dtype=int).T
    flips = [len(set(row)) > 1 for row in said.tolist()]
    assert 0 < mean(flips) == pytest.approx(spread.flipped.value)
    alike = [a == b for row in said.tolist() for a, b in combinations(row, 2)]
    assert spread.consistency.value == pytest.approx(mean(alike))
    right = np.array([frame.correct.dropna() for frame in runs.values()], dtype=bool)
    assert spread.always.value == pytest.approx(right.all(axis=0).mean())
    assert spread.ever.value == pytest.approx(right.any(axis=0).mean())


def test_accuracy_and_answers_by_letter_are_counted(orders):
    found, runs = orders
    asked, right, answered = Counter(), Counter(), Counter()
    for order, frame in runs.items():
        for row in frame.dropna(subset="prediction").itertuples():
            gold, chosen = ("ABC"[order.index("ABC"[int(c)])] for c in (row.answer, row.prediction))
            asked[gold] += 1
            right[gold] += bool(row.correct)
            answered[chosen] += 1
    for row in map(lambda values: SimpleNamespace(**values), found.tables["letters"]):
        assert row.accuracy.value == pytest.approx(right[row.letter] / asked[row.letter])
        assert row.chosen.value == pytest.approx(answered[row.letter] / (6 * 39))
        assert row.expected == pytest.approx(1 / 3)
    recalls = [right[letter] / asked[letter] for letter in "ABC"]
    assert spread_of(found).recall_deviation == pytest.approx(pstdev(recalls))


def test_an_order_is_what_the_choices_in_that_order_give(orders, tmp_path, in_world):
    """Against a probe whose file has its choices in the other order, asked as they are."""
    _, runs = orders
    lines = (in_world / "threes" / "test.jsonl").read_text().splitlines()
    rows = list(map(json.loads, lines))
    for row in rows:
        texts = row["choices"]["text"]
        row["choices"]["text"] = [texts["ABC".index(letter)] for letter in "CAB"]
        row["answer"] = "CAB".index("ABC"[row["answer"]])
        row["answerKey"] = "ABC"[row["answer"]]
    (tmp_path / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    asked = evaluation.evaluate(tmp_path, MODEL, letters=True, order="ABC").to_pandas()
    own = [[row["ABC".index(letter)] for letter in "CAB" if len(row)] for row in runs["CAB"].scores]
    assert [list(row) for row in asked.scores] == own


def test_the_rotations_averaged_are_the_ordinary_lettered_scores(orders):
    _, runs = orders
    averaged = evaluation.evaluate("threes", MODEL, letters=True).to_pandas()
    for row, *each in zip(
        averaged.scores, *(runs[o].scores for o in ("ABC", "BCA", "CAB")), strict=True
    ):
        assert list(row) == pytest.approx([mean(scores) for scores in zip(*each, strict=True)])


def test_the_mean_score_over_all_orders_decides(orders):
    found, runs = orders
    frames = [frame.dropna(subset="prediction") for frame in runs.values()]
    best = [
        int(np.argmax(np.mean([np.asarray(scores, float) for scores in each], axis=0)))
        for each in zip(*(frame.scores for frame in frames), strict=True)
    ]
    assert spread_of(found).averaged.value == pytest.approx((frames[0].answer == best).mean())


def test_questions_with_other_numbers_of_choices_get_drawn_orders():
    found = evaluation.study("orders", "mixed", MODEL, orders=4)
    assert not spread_of(found).exhaustive
    assert [row["order"] for row in found.tables["runs"]] == ["0", "1", "2", "3"]
    for row in found.tables["runs"]:
        alone = evaluation.evaluate("mixed", MODEL, letters=True, order=int(row["order"]))
        assert alone.results.metrics.accuracy == row["accuracy"]
    letters = found.tables["letters"]
    assert [row["letter"] for row in letters] == list("ABCD")
    assert letters[3]["expected"] == pytest.approx(1 / 4)
    assert sum(row["accuracy"].n for row in letters[:2]) > 24


@pytest.mark.slow
def test_encoder_decoder_models_have_orders_too(tmp_path):
    tiny_seq2seq.write("t5", tmp_path / "tiny-t5")
    write_rows(tmp_path / "twos", "test", [2] * 12)
    probe, model = tmp_path / "twos", tmp_path / "tiny-t5"
    found = evaluation.study("orders", probe, model)
    assert [row["order"] for row in found.tables["runs"]] == ["AB", "BA"]
    for row in found.tables["runs"]:
        alone = evaluation.evaluate(probe, model, letters=True, order=row["order"])
        assert alone.results.scoring.scorer == "seq2seq_lm"
        assert alone.results.metrics.accuracy == row["accuracy"]


@pytest.mark.slow
def test_the_command_writes_a_sealed_summary_and_a_page(tmp_path, capsys):
    out = tmp_path / "out"
    run("orders", "mixed", "--model", MODEL, "--orders", 2, "-o", out)
    shown = capsys.readouterr()
    assert "flipped" in shown.out
    assert "orders.html" in shown.err
    summary = StudyTables.model_validate(read_sealed(out / "orders.json", "", "2.0"))
    assert summary.tables["spread"][0]["rows"] == 24
    assert summary.columns["letters"]["chosen"] == "Share of answers that are this letter."
    assert {path.name for path in (out / "mixed" / MODEL).iterdir()} == {"order-0", "order-1"}
    assert "By letter" in (out / "orders.html").read_text()


@pytest.mark.slow
def test_prompts_are_equal_to_a_run_of_each_and_nothing_is_scored_twice(asked_alone, prompts):
    alone, found = asked_alone[0], prompts
    assert [row["prompt"] for row in found.tables["runs"]] == list(alone)
    for row in found.tables["runs"]:
        assert row["accuracy"] == alone[row["prompt"]].results.metrics.accuracy
        assert (row["scored"], row["skipped"]) == (39, 1)
        assert evaluation.load(row["folders"][0]).results.timings.scored_sequences == 0
    values = {name: one.results.metrics.accuracy.value for name, one in alone.items()}
    assert spread_of(found).accuracy.value == pytest.approx(mean(values.values()))
    assert spread_of(found).deviation == pytest.approx(stdev(values.values()))
    (extremes,) = found.tables["extremes"]
    assert values[extremes["second"]] == max(values.values())
    assert values[extremes["first"]] == min(values.values())
    lead = 100 * (max(values.values()) - min(values.values()))
    assert extremes["difference"].value == pytest.approx(lead)
    frames = {name: one.to_pandas().dropna(subset="prediction") for name, one in alone.items()}
    pairs = {(pair["first"], pair["second"]): pair for pair in found.tables["contrasts"]}
    for (first, second), pair in pairs.items():
        same = frames[first].prediction == frames[second].prediction
        assert pair["same"].value == pytest.approx(same.mean())
        assert pair["rows"] == 39
    assert pairs.keys() == set(combinations(alone, 2))
    assert "Scores are not divided by the same length" in " ".join(found.notes)


def test_rows_scored_with_some_prompts_only_are_counted_and_named():
    """A choice too long to be scored can still be shown, cut off, behind a letter."""
    prompts = {"plain": "{question}", "letters": {"letters": True}}
    found = evaluation.study("prompts", "long", MODEL, prompts=prompts)
    alone = [
        evaluation.evaluate("long", MODEL, prompt="{question}").to_pandas(),
        evaluation.evaluate("long", MODEL, letters=True).to_pandas(),
    ]
    runs = found.tables["runs"]
    assert [(row["scored"], row["skipped"]) for row in runs] == [(10, 2), (12, 0)]
    assert [row["accuracy"].value for row in runs] == pytest.approx(
        [frame.correct.dropna().mean() for frame in alone]
    )
    spread = spread_of(found)
    assert (spread.rows, spread.scored, spread.partly, spread.skipped) == (12, 10, 2, 0)
    both = [frame.correct[alone[0].prediction.notna()].astype(bool) for frame in alone]
    assert spread.accuracy.value == pytest.approx(
        mean(map(float, (both[0].mean(), both[1].mean())))
    )
    assert spread.ever.value == pytest.approx((both[0] | both[1]).mean())
    assert "2 of 12 rows are skipped with some prompts only" in found.notes[0]
    assert any("cut to fit" in note for note in found.notes)


@pytest.mark.slow
def test_examples_vary_by_seed_and_by_order():
    given = {"shots": 2, "shots_seeds": (0, 5), "shots_orders": (2,)}
    prompts = {"plain": "{question}", "qa": "Q: {question}"}
    found = evaluation.study("prompts", "threes", MODEL, prompts=prompts, **given)
    runs = found.tables["runs"]
    assert [row["prompt"] for row in runs][:2] == [
        "plain, examples-0, order-2",
        "plain, examples-5, order-2",
    ]
    last = runs[-1]
    alone = evaluation.evaluate(
        "threes", MODEL, prompt="Q: {question}", shots=2, shots_seed=5, shots_order=2
    )
    assert last["accuracy"] == alone.results.metrics.accuracy
    values = [row["accuracy"].value for row in runs]
    groups = found.tables["groups"]
    assert [(row["prompt"], row["runs"]) for row in groups] == [("plain", 2), ("qa", 2)]
    assert groups[1]["deviation"] == pytest.approx(stdev(values[2:]))
    same = evaluation.evaluate("threes", MODEL, shots=2, seed=5)
    other = evaluation.evaluate("threes", MODEL, shots=2, shots_seed=5)
    assert [list(row) for row in same.to_pandas().scores] == [
        list(row) for row in other.to_pandas().scores
    ], "the seed of examples draws those of --seed"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"prompts\.yaml must hold prompts by name"),
        ("[1, 2]", "must hold prompts by name"),
        ("a: 1", "a must be a template or options by name"),
        ("a/b: '{question}'", "'a/b' cannot name a prompt"),
        ("1: '{question}'", "a key must be a text"),
        ("a: {promt: x}", r"a has no option 'promt'\. There are: prompt, letters"),
        ("a: {shots: many}", r"prompts\.yaml: a: --shots: must be a whole number"),
        ("a: '{question}'\nb: no field", r"prompt b: --prompt 'no field' must hold"),
        ("a: {letters: true, prompt: '{question}'}", r"prompt a: --prompt .*\{choices\}"),
        ("a: '{question}'\nb: '{question}'", "the prompts a and b are the same"),
        ("a: '{question}'", r"two or more: .*--prompts FILE.*--shots-seeds 0,1,2"),
        ("a: '{question}'\na: 'Q: {question}'", "twice|duplicate|second"),
        ("a: {", "prompts.yaml"),
    ],
)
def test_odd_files_of_prompts_are_refused_before_a_model_is_opened(
    tmp_path, monkeypatch, text, message
):
    monkeypatch.setattr("evaluation.runs.executor.ModelHandle", None)
    file = tmp_path / "prompts.yaml"
    file.write_text(text)
    with pytest.raises(UsageError, match=message):
        evaluation.study("prompts", "threes", MODEL, prompts=file)


@pytest.mark.parametrize(
    ("study", "probe", "model", "options", "message"),
    [
        ("orders", "threes", "tiny-bert", {}, "orders takes a model whose scorer shows lettered"),
        ("prompts", "threes", "tiny-bert", {"prompts": {"a": "{question}", "b": "{question}?"}},
         "prompts takes a model whose scorer takes a prompt, .*scored as a masked LM"),
        ("prompts", "clozes", MODEL, {"prompts": {"a": "{question}", "b": "Q: {question}"}},
         "clozes, prompt b: item row-0 is a cloze"),
        ("prompts", "threes", MODEL, {"shots_seeds": (1, 2)}, "--shots N"),
        ("prompts", "threes", MODEL, {"shots_seeds": (1, 1), "shots": 2}, "two or more"),
        ("prompts", "threes", MODEL, {"prompt": "{question}", "prompts": {"a": "{question}"}},
         "leave one out"),
        ("orders", "threes", MODEL, {"letters": True}, "sets letters itself"),
        ("orders", "threes", MODEL, {"orders": 1}, "--orders: must be at least 2"),
        ("orders", "nowhere", MODEL, {}, "nowhere"),
    ],
)  # fmt: skip
def test_what_cannot_be_varied_is_refused_before_a_model_is_opened(
    monkeypatch, study, probe, model, options, message
):
    monkeypatch.setattr("evaluation.runs.executor.ModelHandle", None)
    with pytest.raises(UsageError, match=message):
        evaluation.study(study, probe, model, **options)


def test_a_repeated_share_is_that_of_its_clusters():
    generator = np.random.default_rng(0)
    cluster = generator.integers(0, 80, 400)
    right = generator.random(400) < 0.2 + 0.6 * (cluster % 3 == 0)
    own = intervals.accuracy(right, cluster, 1)
    again = intervals.repeated_share(5 * right.astype(int), np.full(400, 5), cluster, 1)
    assert again == own, "five equal answers to each row are worth one"


def test_drawn_orders_do_not_depend_on_other_rows():
    order = Order.parse("3")
    assert order.places("row-1", 4) == order.places("row-1", 4)
    drawn = {order.places(f"row-{at}", 3) for at in range(100)}
    assert len(drawn) == 6


@pytest.mark.slow
def test_the_commands_in_processes_of_their_own(tmp_path):
    """The same command again finds its runs; what is wrong is one line, without a traceback."""

    def command(*words):
        words = [sys.executable, "-m", "evaluation.cli", *map(str, words)]
        return subprocess.run(words, capture_output=True, text=True, check=False)

    asked = ("prompts", "threes", "--model", MODEL, "--prompts", "prompts.yaml", "-o", tmp_path)
    first, again = command(*asked), command(*asked, "--json")
    assert (first.returncode, again.returncode) == (0, 0), (first.stderr, again.stderr)
    assert "two prompts give the same answer to" in first.stdout
    held = read_sealed(tmp_path / "prompts.json", "", "2.0")
    assert json.loads(again.stdout) == held
    wrong = command("prompts", "threes", "--model", MODEL, "--prompts", "nofile")
    assert wrong.returncode == 2
    assert wrong.stderr.splitlines() == [
        "evaluate-probe: error: prompts: --prompts: must be a YAML file of prompts by name that "
        "exists (got 'nofile')"
    ]


def test_the_file_of_the_guide_is_a_file_of_prompts(tmp_path):
    guide = ROOT / "docs" / "orders-and-prompts.md"
    (text,) = blocks(guide, "yaml")
    (tmp_path / "prompts.yaml").write_text(text)
    options = PromptsOptions.parse({"prompts": tmp_path / "prompts.yaml"}, "prompts")
    assert options.prompts["qa"] == {"prompt": r"Question: {question}\nAnswer:"}
    assert options.prompts["letters"] == {"letters": True}
