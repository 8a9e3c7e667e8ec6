"""Heads on frozen models: vectors read once, many heads at once, each as if trained alone."""

from __future__ import annotations

import copy
import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import evaluation
from evaluation.frozen import plans as plans_module
from evaluation.frozen import store as store_module
from evaluation.frozen import training as fitting_module
from evaluation.frozen.heads import CandidateHead, FreshBody, LabelHead, ModelBody, UnitHead
from evaluation.frozen.plans import CandidatePlan, UnitPlan, WordPlan
from evaluation.frozen.readers import (
    AnswerReader,
    LastReader,
    MaskReader,
    PairReader,
    answer_prompt,
)
from evaluation.frozen.training import RowTable, UntrainedHead, score_rows, train_heads
from evaluation.items.control_task import control_keys, random_labels
from evaluation.items.sources import open_probe
from evaluation.items.types import Item, choice_starts
from evaluation.learners.base import HeadFitting, HeadTraining, slanted_triangle
from evaluation.learners.entries import HeadOptions
from evaluation.models.handle import ModelHandle
from evaluation.options import ModelOptions
from evaluation.runs import checks as checks_module
from evaluation.runs.executor import execute
from evaluation.runs.spec import RunSpec
from evaluation.scorers.masked.scorer import MaskedScorer
from evaluation.workers import ALONE
from kb_cache.fetching import fetch
from kb_cache.vectors.load import load_vectors
from kbprobe.errors import KbprobeError, UsageError
from kbprobe.terminal.progress import silent
from tests.evaluation import jsonl_probe, tiny_causal, tiny_masked

torch.set_num_threads(1)

SAMPLE = Path(__file__).parents[1] / "data" / "glove.sample.50d.txt"


ADJECTIVES = ("red", "small", "large", "domestic")


def planted(count: int, first: int = 0) -> tuple[Item, ...]:
    """Rows whose answer one word of the question decides; each is asked several times."""
    rows = []
    for number in range(first, first + count):
        word, adjective = ("dog", "car")[number % 2], ADJECTIVES[number // 2 % 4]
        text = f"The {word} is [MASK] than a {adjective} house."
        rows.append(Item(f"row-{number}", "mc_mlm", text, ("older", "larger"), number % 2))
    return tuple(rows)


def numbered(rows: tuple[Item, ...]) -> tuple[Item, ...]:
    """Make every question a question of its own."""
    return tuple(
        replace(row, question=f"{row.question[:-1]} number {row.id.removeprefix('row-')}.")
        for row in rows
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("frozen")


@pytest.fixture(scope="module")
def bert(folder):
    return str(tiny_masked.write("bert-uncased", folder / "bert"))


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("KBPROBE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def probe(tmp_path):
    jsonl_probe.write(tmp_path / "probe", {"train": planted(96), "test": planted(64, first=1000)})
    return str(tmp_path / "probe")


def training(model: str, fittings, folder: Path) -> HeadTraining:
    return HeadTraining(ModelHandle(model, ModelOptions()), fittings, folder, ALONE, silent)


def fitting(train, scored, count=None, seed=0, **options) -> HeadFitting:
    count = len(train) if count is None else count
    return HeadFitting(train, range(len(train)), count, scored, seed, HeadOptions(**options))


# Vectors and heads as they are before any training


@pytest.mark.slow
@pytest.mark.parametrize("family", list(tiny_masked.FAMILIES))
@pytest.mark.parametrize("trained", [False, True], ids=["linear", "mlp"])
def test_an_untrained_head_gives_the_masked_scorer_s_logits(family, trained, tmp_path):
    model = str(tiny_masked.write(family, tmp_path / family))
    rows = tuple(
        Item(text, "mc_mlm", text, choices, 0)
        for text, *choices in (
            ("A dog is a kind of [MASK].", "animal", "rodent", "dog"),
            ("The robin [MASK] swims well .", "never", "always", "often"),
            ("A penguin [MASK] fly, but it swims well and what is a bus?", "can", "cannot", "may"),
        )
        for choices in [tuple(choices)]
    )[:2]
    plan = CandidatePlan(training(model, [], tmp_path / "cache"), MaskReader, ModelBody, trained)
    assert not plan.set_aside(rows)
    if family == "deberta-v3-head":
        with pytest.raises(KbprobeError, match="cannot be trained on its own"):
            plan.read([(rows, np.arange(len(rows)))])
        return
    (read,) = plan.read([(rows, np.arange(len(rows)))])
    ((module, local),) = plan.modules([read.table], [0])
    parameters = dict(module.named_parameters())
    found = score_rows(module, parameters, plan.vectors, local)
    loaded, tokenizer = tiny_masked.load(Path(model))
    scorer = MaskedScorer(loaded, tokenizer)
    encoded = scorer.encode(rows)
    expected = np.zeros(choice_starts(rows)[-1])
    expected[encoded.slot_choice] = scorer.score(encoded, np.arange(len(encoded.lengths)))
    np.testing.assert_allclose(found.numpy().ravel(), expected, atol=2e-4)
    # Parameters of the whole, with none of them trained, are those that the model has.
    whole = plan.whole(parameters, read.table, 0)
    again = score_rows(module, whole, plan.vectors, read.table)
    torch.testing.assert_close(again, found)


def test_a_candidate_of_several_pieces_starts_from_their_mean(bert, tmp_path):
    rows = (Item("1", "mc_mlm", "It is a [MASK].", ("dog", "dogs"), 0),)
    plan = CandidatePlan(training(bert, [], tmp_path), MaskReader, ModelBody)
    plan.set_aside(rows)
    (read,) = plan.read([(rows, np.arange(1))])
    ((module, _),) = plan.modules([read.table], [0])
    loaded, tokenizer = tiny_masked.load(Path(bert))
    pieces = tokenizer("dogs", add_special_tokens=False)["input_ids"]
    assert len(pieces) == 2
    mean = loaded.get_output_embeddings().weight[pieces].mean(0)
    assert any(torch.allclose(row, mean) for row in module.weight)
    assert read.notes == {"several_pieces": 1}
    assert read.tokens.tolist() == [1, 2]


def test_causal_models_are_read_where_the_answer_comes(tmp_path):
    tiny_causal.write("gpt2", tmp_path / "gpt2")
    rows = planted(3)
    plan = CandidatePlan(training(str(tmp_path / "gpt2"), [], tmp_path), AnswerReader)
    assert not plan.set_aside(rows)
    (read,) = plan.read([(rows, np.arange(3))])
    model, tokenizer = plan._load()
    for row, at in zip(rows, read.table.vectors[:, 0].tolist(), strict=True):
        assert answer_prompt(row.question).endswith("house.\nAnswer:")
        batch = tokenizer(answer_prompt(row.question), return_tensors="pt")
        with torch.no_grad():
            state = model.base_model(**batch)[0][0, -1]
        torch.testing.assert_close(plan.vectors[at], state, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("kind", [PairReader, LastReader], ids=lambda kind: kind.name)
def test_pairs_are_read_alone_as_in_a_batch(kind, bert, tmp_path):
    model = bert
    if kind is LastReader:
        tiny_causal.write("gpt2", tmp_path / "gpt2")
        model = str(tmp_path / "gpt2")
    rows = (
        Item("1", "mc_qa", "What is a dog?", ("an animal", "a bus", "a car or a truck"), 0),
        Item("2", "mc_qa", "Is it red?", ("really", "not really"), 1),
    )
    plan = UnitPlan(training(model, [], tmp_path), kind)
    (read,) = plan.read([(rows, np.arange(2))])
    assert read.table.candidates.tolist() == [[0, 0, 0], [0, 0, -1]]
    loaded, tokenizer = plan._load()
    for row, places in zip(rows, read.table.vectors.tolist(), strict=True):
        for choice, place in zip(row.choices, places, strict=False):
            with torch.no_grad():
                if kind is PairReader:
                    output = loaded(**tokenizer(row.question, choice, return_tensors="pt"))
                    expected = output[0][0, 0]
                    assert getattr(output, "pooler_output", None) is None, "never trained"
                else:
                    batch = tokenizer(f"{row.question} {choice}", return_tensors="pt")
                    expected = loaded.base_model(**batch)[0][0, -1]
            torch.testing.assert_close(plan.vectors[place], expected, atol=1e-5, rtol=1e-4)


# Training side by side


def random_rows(count, vectors, candidates, choices, seed):
    generator = torch.Generator().manual_seed(seed)
    table = RowTable(
        torch.randint(vectors, (count, 1), generator=generator),
        torch.stack(
            [torch.randperm(candidates, generator=generator)[:choices] for _ in range(count)]
        ),
        torch.randint(choices - 1, (count,), generator=generator),
    )
    table.candidates[::5, -1] = -1  # rows with a choice less
    return table


def alone(head: UntrainedHead, vectors, options, rate):
    """Train one head by the book: torch's own optimizer, clipping and indexing."""
    module = copy.deepcopy(head.module)
    weights = [weight for weight in module.parameters() if weight.requires_grad]
    groups = [
        {
            "params": [w for w in weights if w.dim() > 1],
            "weight_decay": options.settings.weight_decay,
        },
        {"params": [w for w in weights if w.dim() <= 1], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(
        [g for g in groups if g["params"]], lr=rate, betas=options.settings.betas
    )
    count = len(head.rows.answers)
    batches = [
        rows[at : at + options.settings.train_batch]
        for epoch in range(options.epochs)
        for rows in [np.random.default_rng([head.seed, epoch]).permutation(count)]
        for at in range(0, count, options.settings.train_batch)
    ]
    for step, rows in enumerate(batches):
        for group in optimizer.param_groups:
            group["lr"] = rate * slanted_triangle(step, len(batches), options.settings.warmup)
        table = head.rows.take(torch.from_numpy(rows))
        scores = module(vectors[table.vectors], table.candidates.clamp(min=0))
        scores = scores.masked_fill(table.candidates < 0, -math.inf)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(scores, table.answers).backward()
        torch.nn.utils.clip_grad_norm_(weights, options.settings.max_grad_norm)
        optimizer.step()
    return module


def candidate_heads(number, body):
    generator = torch.Generator().manual_seed(1)
    for seed in range(number):
        made = FreshBody(12, generator) if body else torch.nn.Identity()
        weight = torch.randn(9, 12, generator=generator)
        head = CandidateHead(made, weight, torch.randn(9, generator=generator))
        yield UntrainedHead(head, random_rows(70, 40, 9, 4, seed), seed)


def unit_heads(number):
    for seed in range(number):
        rows = random_rows(70, 40, 9, 4, seed)
        several = torch.randint(40, (70, 4), generator=torch.Generator().manual_seed(seed))
        unit = UnitHead(12, torch.Generator().manual_seed(seed))
        yield UntrainedHead(unit, replace(rows, vectors=several), seed)


def label_heads(number):
    for seed in range(number):
        generator = torch.Generator().manual_seed(seed)
        rows = RowTable(
            torch.randint(40, (70, 1), generator=generator),
            torch.stack([torch.randperm(3, generator=generator) for _ in range(70)]),
            torch.randint(3, (70,), generator=generator),
        )
        yield UntrainedHead(LabelHead(12, 3, generator), rows, seed)


HEADS = {
    "linear": lambda number: list(candidate_heads(number, body=False)),
    "mlp": lambda number: list(candidate_heads(number, body=True)),
    "frozen": lambda number: list(unit_heads(number)),
    "pooled": lambda number: list(label_heads(number)),
}


@pytest.mark.parametrize("kind", HEADS)
@pytest.mark.parametrize("at_once", [1, 2, 5])
def test_heads_are_trained_as_if_each_were_alone(kind, at_once):
    vectors = torch.randn(40, 12, generator=torch.Generator().manual_seed(3))
    options = HeadOptions(epochs=3, training={"max_grad_norm": 0.5})
    heads = HEADS[kind](5)
    for start in range(0, 5, at_once):
        chunk = heads[start : start + at_once]
        trained = train_heads(chunk, vectors, options, 3e-3)
        for number, head in enumerate(chunk):
            expected = alone(head, vectors, options, 3e-3)
            for name, weight in expected.named_parameters():
                torch.testing.assert_close(trained.of(number)[name], weight, atol=1e-4, rtol=1e-4)
            assert not torch.equal(next(head.module.parameters()), next(expected.parameters()))


def test_training_that_diverges_says_so():
    vectors = torch.full((40, 12), 1e30)
    with pytest.raises(KbprobeError, match="Use a lower --learning-rate"):
        train_heads(HEADS["linear"](2), vectors, HeadOptions(), 1e30)


STRONG = {"train": 96, "epochs": 60, "learning_rate": 0.02, "training": {"weight_decay": 0.0}}
"""Learns whatever can be learnt: so do rates from 0.01 to 0.05, with any seed. At 0.1, rounding in
the processor's kernels decides where the MLP ends.
"""


@pytest.mark.slow
@pytest.mark.parametrize("learner", ["linear", "mlp", "frozen"])
def test_a_planted_signal_is_learnt(learner, bert, probe):
    done = evaluation.evaluate(probe, bert, learner=learner, **STRONG)
    assert done.results.metrics.accuracy.value == 1.0
    assert done.results.analyses["fitting"]["seen"] is None
    usual = evaluation.evaluate(probe, bert, learner=learner, train=12)
    assert usual.results.model.finetuning["learning_rate"] == {"mlp": 1e-4}.get(learner, 1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("learner", ["linear", "frozen"])
def test_a_causal_model_learns_it_too(learner, probe, tmp_path):
    tiny_causal.write("gpt2", tmp_path / "gpt2")
    done = evaluation.evaluate(probe, tmp_path / "gpt2", learner=learner, **STRONG)
    assert done.results.metrics.accuracy.value == 1.0


@pytest.mark.slow
def test_random_labels_are_memorised_where_they_recur_and_nowhere_else(bert, probe, tmp_path):
    seen = evaluation.evaluate(probe, bert, learner="mlp", labels="random", **STRONG)
    assert seen.results.analyses["fitting"]["seen"] == 1.0
    assert seen.results.metrics.accuracy.value == 1.0
    rows, others = numbered(planted(96)), numbered(planted(200, first=1000))
    jsonl_probe.write(tmp_path / "apart", {"train": rows, "test": others})
    unseen = evaluation.evaluate(
        str(tmp_path / "apart"), bert, learner="mlp", labels="random", **STRONG
    )
    assert unseen.results.analyses["fitting"]["seen"] == 0.0
    assert 0.4 < unseen.results.metrics.accuracy.value < 0.6


# MLM-Baseline: heads on word vectors


@pytest.fixture
def glove(cache):
    """The sample of GloVe in the test's own cache."""
    fetch("vectors", source=SAMPLE, name="sample")
    return load_vectors()


def test_the_baseline_reads_the_first_twenty_words_laid_end_to_end(glove, tmp_path):
    long = "the dog [MASK] than " + "a red house , " * 10
    rows = (
        Item("1", "mc_mlm", "The dog [MASK] zyzzyva.", ("older", "larger"), 0),
        Item("2", "mc_mlm", long, ("older", "larger", "red"), 0),
    )
    plan = WordPlan(training("none", [], tmp_path), glove)
    assert not plan.set_aside(rows)
    (read,) = plan.read([(rows, np.arange(2))])
    vectors = plan.vectors.view(2, 20, 50)
    known = {word: glove.matrix[glove.rows([word])[0]] for word in ("the", "dog", ".", "house")}
    for at, word in ((0, "the"), (1, "dog"), (4, ".")):
        np.testing.assert_array_equal(vectors[0, at], known[word])
    assert not vectors[0, 2].any(), "the mask"
    assert not vectors[0, 3].any(), "a word without a vector"
    assert not vectors[0, 5:].any(), "padding"
    np.testing.assert_array_equal(vectors[1, 6], known["house"])
    assert vectors[1, 19].any(), "the text goes on, and is not read"
    assert read.table.candidates.tolist() == [[0, 1, -1], [0, 1, 2]]


@pytest.mark.slow
def test_the_baseline_learns_a_planted_signal_without_a_model(glove, probe):
    done = evaluation.evaluate(
        probe, "none", learner="mlm_baseline", train=96, epochs=60, learning_rate=1e-2
    )
    assert done.results.metrics.accuracy.value == 1.0
    assert done.results.model.parameters > 1_000_000
    assert done.results.scoring.options["weight_decay"] == 0.0
    assert done.results.scoring.options["vectors_digest"] == glove.digest


# Runs: vectors once, scores found again, whatever happens between


def curve(probe, model, **changes):
    return [
        RunSpec.parse(
            probe,
            model,
            {"learner": learner, "train": size, "train_seed": seed, "next_size": 48, **changes},
        )
        for learner in ("linear", "mlp")
        for size in (12, 24)
        for seed in (0, 1)
    ]


def tables(specs):
    return [outcome.or_raise().predictions for outcome in execute(specs)]


@pytest.fixture
def forwards(monkeypatch):
    """Count the texts that go through the model."""
    counted = []
    read = store_module.VectorStore._write

    def count(self, keys, *further):
        counted.append(len(keys))
        return read(self, keys, *further)

    monkeypatch.setattr(store_module.VectorStore, "_write", count)
    return counted


@pytest.mark.slow
def test_each_text_goes_through_the_model_once(bert, probe, forwards, monkeypatch):
    first = tables(curve(probe, bert))
    rows = {row.question for row in (*planted(96), *planted(64, first=1000))}
    assert 0 < sum(forwards) <= len(rows)
    read = sum(forwards)
    # Other sizes, seeds and settings need the texts that were not drawn before, and no others.
    tables(curve(probe, bert, epochs=1, next_size=96))
    assert sum(forwards) == len(rows) or sum(forwards) > read
    assert sum(forwards) <= len(rows)
    monkeypatch.setattr(ModelHandle, "load", None)
    again = tables(curve(probe, bert))
    assert all(one.equals(two) for one, two in zip(first, again, strict=True))


def test_a_split_is_tokenized_once_for_all_its_runs(bert, probe, monkeypatch):
    tokenized = []
    pieces_of = plans_module.pieces_of

    def count(items, *further):
        tokenized.append(len(items))
        return pieces_of(items, *further)

    monkeypatch.setattr(plans_module, "pieces_of", count)
    assert len(tables(curve(probe, bert))) == 8
    assert sorted(tokenized) == [64, 64, 96, 96]  # for each of the two learners


def test_a_split_is_looked_for_once_before_all_runs(bert, probe, monkeypatch):
    specs = [
        RunSpec.parse(probe, bert, {"learner": "linear", "train": 8, "train_seed": seed})
        for seed in range(3)
    ]
    looked_for = []
    find_split = checks_module.find_split

    def count(source, **names):
        looked_for.append(names["split"])
        return find_split(source, **names)

    monkeypatch.setattr(checks_module, "find_split", count)
    checks_module.check_runs(specs, overwrite=False)
    assert sorted(looked_for) == ["test", "train"]


@pytest.mark.slow
def test_chunks_change_nothing(bert, probe, monkeypatch, tmp_path):
    first = tables(curve(probe, bert))
    monkeypatch.setattr(fitting_module, "_BYTES_OF_CHUNK", {"cpu": 1})
    monkeypatch.setenv("KBPROBE_CACHE", str(tmp_path / "other"))
    for one, two in zip(first, tables(curve(probe, bert)), strict=True):
        for mine, others in zip(one["scores"].to_pylist(), two["scores"].to_pylist(), strict=True):
            assert mine == pytest.approx(others, abs=1e-4)


def test_the_code_length_is_that_of_the_rows_drawn_next(bert, probe):
    spec = RunSpec.parse(probe, bert, {"learner": "linear", "train": 24, "next_size": 40})
    (outcome,) = execute([spec])
    found = outcome.or_raise().results.analyses["fitting"]
    assert found["next_rows"] == 16
    # The same head, scoring those rows as if they were the test split.
    from evaluation.items.sampling import draw_items

    train = open_probe(probe, split="train")
    ahead = train.take(draw_items(train.items, 40, 0)[24:])
    jsonl_probe.write(Path(probe), {"test": ahead.items, "train": train.items[:0]})
    rows = [item for item in train.items if item.id not in {one.id for one in ahead.items}]
    jsonl_probe.write(Path(probe), {"test": ahead.items, "train": rows})
    fitted = [train.items[row] for row in draw_items(train.items, 24, 0)]
    assert [rows[row].id for row in draw_items(rows, 24, 0)] == [item.id for item in fitted]
    spec = RunSpec.parse(probe, bert, {"learner": "linear", "train": 24})
    (outcome,) = execute([spec])
    predictions = outcome.or_raise().predictions.to_pylist()
    scores = np.array([row["scores"] for row in predictions])
    shares = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    bits = -np.log2(shares[np.arange(16), [row["answer"] for row in predictions]]).sum()
    assert found["next_bits"] == pytest.approx(bits, rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("what", ["vectors.npy", "texts.npy", "part.json", "flipped bit"])
def test_a_damaged_part_is_read_again(bert, probe, cache, forwards, what):
    first = tables(curve(probe, bert))
    suffix = "vectors.npy" if what == "flipped bit" else what
    part = min((cache / "vectors").glob(f"*/*.{suffix}"))
    content = bytearray(part.read_bytes())
    if what == "flipped bit":
        content[-3] ^= 1  # which makes a number a little larger
    else:
        content = b"none"
    part.write_bytes(content)
    for folder in (cache / "scores").iterdir():
        for path in folder.iterdir():
            path.unlink()
    before = len(forwards)
    again = tables(curve(probe, bert))
    assert len(forwards) > before
    for one, two in zip(first, again, strict=True):
        assert one["prediction"].equals(two["prediction"])


_KILLED = """
import sys
from evaluation.runs.executor import execute
from tests.evaluation.test_frozen import curve
import torch
torch.set_num_threads(1)
for outcome in execute(curve(sys.argv[1], sys.argv[2], batch_tokens=64)):
    outcome.or_raise()
"""


@pytest.mark.posix
@pytest.mark.slow
def test_a_run_that_is_killed_ends_with_the_same_numbers(bert, probe, tmp_path, monkeypatch):
    root = Path(__file__).resolve().parents[2]
    environment = {**os.environ, "KBPROBE_CACHE": str(tmp_path / "killed"), "PYTHONPATH": str(root)}
    words = [sys.executable, "-c", _KILLED, probe, bert]
    process = subprocess.Popen(words, env=environment, cwd=root)
    while process.poll() is None and not list((tmp_path / "killed").glob("vectors/*/*.part.json")):
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    subprocess.run(words, env=environment, cwd=root, check=True)
    whole = tables(curve(probe, bert, batch_tokens=64))
    monkeypatch.setenv("KBPROBE_CACHE", str(tmp_path / "killed"))
    monkeypatch.setattr(ModelHandle, "load", None)
    resumed = tables(curve(probe, bert, batch_tokens=64))
    assert all(one.equals(two) for one, two in zip(whole, resumed, strict=True))


def test_without_the_cache_nothing_is_kept(bert, probe, cache):
    (outcome,) = execute(
        [RunSpec.parse(probe, bert, {"learner": "linear", "train": 12, "cache": False})]
    )
    outcome.or_raise()
    assert not list(cache.glob("scores/*"))
    assert not list(cache.glob("vectors/*"))


# Random labels


def test_random_labels_go_by_the_first_argument(tmp_path):
    rows = planted(16)
    jsonl_probe.write(tmp_path, {"test": rows})
    split = open_probe(str(tmp_path))
    keys = [["dog", "cat"][number % 2] for number in range(16)]
    import pyarrow as pa

    from evaluation.items.types import arguments_type

    arguments = pa.array([[{"name": "x", "value": key}] for key in keys], arguments_type())
    split = replace(split, arguments=arguments)
    assert control_keys(split) == keys
    assert control_keys(replace(split, arguments=None)) == [row.question for row in rows]
    for seed in range(8):
        found = random_labels(split, seed)
        answers = {(key, item.answer) for key, item in zip(keys, found.items, strict=True)}
        assert len(answers) == 2, "one answer for each argument"
        assert found.fingerprint != split.fingerprint or found.items == split.items
    drawn = {tuple(item.answer for item in random_labels(split, s).items) for s in range(20)}
    assert len(drawn) == 4


# Refusals


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"learner": "linear", "train": 97}, "--train 97 .* Use --train 96 or less"),
        ({"labels": "random"}, "--labels random requires a learner"),
        ({"train_seed": 1}, "--train-seed requires --train"),
        ({"learner": "full", "train": 9, "next_size": 20}, "--next-size is for heads"),
        ({"learner": "linear", "train": 9, "scorer": "masked_lm"}, "go with --scorer masked_lm"),
    ],
)
def test_what_does_not_go_together_is_refused(options, message, bert, probe):
    with pytest.raises(UsageError, match=message):
        evaluation.evaluate(probe, bert, **options)


def test_questions_are_not_clozes(bert, tmp_path):
    rows = tuple(Item(str(n), "mc_qa", f"What {n}?", ("a dog", "a cat"), 0) for n in range(8))
    jsonl_probe.write(tmp_path, {"train": rows[:4], "test": rows[4:]})
    with pytest.raises(UsageError, match="setup mc_qa, and linear takes only mc_mlm"):
        evaluation.evaluate(str(tmp_path), bert, learner="linear", train=4)


def test_rows_that_cannot_be_fitted_on_are_left_out_and_counted(bert, tmp_path):
    odd = replace(planted(1)[0], id="odd", choices=("older", "дом"))
    jsonl_probe.write(tmp_path, {"train": (*planted(20), odd), "test": (*planted(8, 500), odd)})
    with pytest.raises(UsageError, match=r"train shares 1 rows"):
        evaluation.evaluate(str(tmp_path), bert, learner="linear", train=20)
    elsewhere = replace(odd, id="odd-2", question="A car is [MASK] than a house.")
    jsonl_probe.write(
        tmp_path, {"train": (*planted(20), odd), "test": (*planted(8, 500), elsewhere)}
    )
    done = evaluation.evaluate(str(tmp_path), bert, learner="linear", train=20)
    assert done.results.metrics.set_aside == {
        "a candidate with characters unknown to the tokenizer": 1
    }
    assert done.results.scoring.notes["train_set_aside"] == 1
    with pytest.raises(UsageError, match=r"1 of the 21 are set aside .*Use --train 20 or less"):
        evaluation.evaluate(str(tmp_path), bert, learner="linear", train=21)
