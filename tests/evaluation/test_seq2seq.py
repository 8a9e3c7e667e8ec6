"""The scorer of encoder-decoder models on tiny seeded checkpoints, against a plain reference."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import evaluation
from benchmarks import naive_seq2seq
from evaluation.items.types import Item
from evaluation.models.capabilities import SEQ2SEQ_LM
from evaluation.models.checkpoint import open_checkpoint
from evaluation.scorers.base import ScorerInputs
from evaluation.scorers.causal.options import PromptOptions
from evaluation.scorers.causal.prompts import Prompt
from evaluation.scorers.entries import PMI
from evaluation.scorers.registry import choose_scorer
from evaluation.scorers.seq2seq import forward
from evaluation.scorers.seq2seq.scorer import Seq2SeqScorer
from kbprobe.errors import KbprobeError, UsageError
from tests.evaluation import jsonl_probe, tiny_masked, tiny_seq2seq
from tests.evaluation.scored import questions, score

FAMILIES = list(tiny_seq2seq.FAMILIES)
GAPS = ["t5", "mt5", "bart"]
TOLERANCE = 1e-4
WORDS = [word for word in tiny_masked.TEXT.split() if word.isalpha()]

Load = Callable[[str], tuple[Any, Any]]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Write a family once."""
    torch.set_num_threads(1)
    kept: dict[str, Path] = {}

    def write(name: str) -> Path:
        if name not in kept:
            kept[name] = tiny_seq2seq.write(name, tmp_path_factory.mktemp(name))
        return kept[name]

    return write


@pytest.fixture(scope="module")
def loaded(folders: Callable[[str], Path]) -> Load:
    kept: dict[str, tuple[Any, Any]] = {}

    def load(name: str) -> tuple[Any, Any]:
        if name not in kept:
            kept[name] = tiny_seq2seq.load(folders(name))
        return kept[name]

    return load


def question(text: str, *choices: str) -> Item:
    return Item(text, "mc_qa", text, choices, 0)


def cloze(text: str, *choices: str) -> Item:
    return Item(text, "mc_mlm", text, choices, 0)


def make_clozes(rows: int, seed: int = 0) -> list[Item]:
    draw = random.Random(seed)
    items = []
    for row in range(rows):
        sides = [" ".join(draw.choices(WORDS, k=draw.randint(1, 7))) for _ in range(2)]
        choices = [" ".join(draw.choices(WORDS, k=draw.randint(1, 3))) for _ in range(3)]
        items.append(Item(f"gap-{row}", "mc_mlm", " [MASK] ".join(sides), tuple(choices), 0))
    return items


def reference(name: str, model: Any, tokenizer: Any, items: Sequence[Item]) -> list[float]:
    """One forward pass for each choice."""
    scores: list[float] = []
    for item in items:
        if item.setup == "mc_qa":
            scores += naive_seq2seq.score_choices(model, tokenizer, item.question, item.choices)
            continue
        before, after = item.question.split(" [MASK] ")
        gap = (model, tokenizer, before, item.choices, after)
        if name == "bart":
            scores += naive_seq2seq.fill_mask(*gap)
        else:
            mark = "▁" if name == "mt5" else ""
            names = [f"{mark}<extra_id_{number}>" for number in (0, 1)]
            first, second = tokenizer.convert_tokens_to_ids(names)
            scores += naive_seq2seq.fill_with_sentinels(*gap, (first, second))
    return scores


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "pack"), [*((name, True) for name in FAMILIES), ("t5", False), ("bart", False)]
)
def test_scores_equal_one_forward_pass_for_each_choice(loaded: Load, name: str, pack: bool) -> None:
    model, tokenizer = loaded(name)
    items = questions(WORDS, 6, longest=6) + (make_clozes(3) if name in GAPS else [])
    items.append(question("", "a dog", "a mouse"))
    scorer = Seq2SeqScorer(model, tokenizer, pack=pack)
    assert scorer.packs == pack
    scores, encoded = score(scorer, items)
    expected = reference(name, model, tokenizer, items)
    np.testing.assert_allclose(scores, expected, rtol=0, atol=TOLERANCE)
    assert not encoded.set_aside
    assert not encoded.notes
    assert np.ptp(scores) > 1


@pytest.mark.slow
@pytest.mark.parametrize("name", list(tiny_seq2seq.OTHERS))
def test_other_architectures(name: str) -> None:
    model, tokenizer = tiny_seq2seq.other(name)
    assert SEQ2SEQ_LM.fits(type(model).__name__, model.config)
    items = questions(WORDS, 6, longest=6)
    scorer = Seq2SeqScorer(model, tokenizer)
    assert scorer.packs == (name not in tiny_seq2seq.QUESTION_AGAIN)
    scores, _ = score(scorer, items)
    expected = reference(name, model, tokenizer, items)
    np.testing.assert_allclose(scores, expected, rtol=0, atol=TOLERANCE)


def test_the_documentation_lists_what_is_tested() -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "models.md").read_text("utf-8")
    lines = re.findall(r"^\| encoder-decoder \| read (.+) \| (.+) \|$", text, re.M)
    listed = {how: set(re.findall(r"`([\w-]+)`", names)) for how, names in lines}
    tested = {*FAMILIES, *tiny_seq2seq.OTHERS} - {"flan-t5"}  # Its type is T5's.
    again = tiny_seq2seq.QUESTION_AGAIN
    assert listed == {"once": tested - again, "for each choice": again}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["t5", "bart"])
def test_scores_do_not_depend_on_batch_or_order(loaded: Load, name: str) -> None:
    items = questions(WORDS, 5, seed=2, longest=6) + make_clozes(4, seed=2)
    scorer = Seq2SeqScorer(*loaded(name))
    alone, _ = score(scorer, items, budget=1)
    for budget, seed in ((30, None), (0, 1)):
        np.testing.assert_allclose(score(scorer, items, budget, seed)[0], alone, atol=TOLERANCE)


def test_a_question_is_read_once_for_all_items_that_ask_it(loaded: Load) -> None:
    model, tokenizer = loaded("t5")
    items = [
        Item("1", "mc_qa", "A dog is", ("a cat", "an animal"), 0),
        Item("2", "mc_qa", "A dog is", ("a vehicle", "an animal"), 0),
        Item("3", "mc_qa", "A cat is", ("a dog", "cat"), 0),
    ]
    scorer = Seq2SeqScorer(model, tokenizer)
    read: list[int] = []
    hook = model.get_encoder().register_forward_pre_hook(
        lambda _module, _args, given: read.append(given["input_ids"].numel()), with_kwargs=True
    )
    _, encoded = score(scorer, items)
    hook.remove()
    assert sum(read) == len(encoded.tokens) == sum(len(tokenizer(t)[0]) for t in ("A dog is",) * 2)


@pytest.mark.parametrize("name", GAPS)
def test_a_gap_next_to_punctuation_holds_the_pieces_of_the_sentence(
    loaded: Load, name: str
) -> None:
    model, tokenizer = loaded(name)
    encoded = Seq2SeqScorer(model, tokenizer).encode([cloze('It is a "[MASK]".', "dog", "cat")])
    whole = tokenizer('It is a "dog".')["input_ids"]
    source = encoded.tokens.tolist()
    assert len(source) == len(whole)
    (at,) = [at for at, token in enumerate(source) if token != whole[at]]
    first = encoded.cell_target[0]
    assert whole[at] in (first, *encoded.cell_target)
    assert source[at] not in whole


def test_choices_that_cannot_be_scored_set_their_items_aside(loaded: Load) -> None:
    scorer = Seq2SeqScorer(*loaded("t5"))
    long = "dog " * 200
    items = [
        question("A dog is", "an animal", long),
        question("A dog is", "an animal", " "),
        question("A cat is", "an animal", "猫"),
        question("A <extra_id_0> is", "an animal", "a mouse"),
        cloze(f"{long} [MASK] is", "dog", "mouse"),
        question(f"{long} is", "an animal", "a mouse"),
        question("A dog is", "an animal", "a mouse"),
    ]
    scores, encoded = score(scorer, items)
    kinds = [reason.partition(":")[0] for _, reason in sorted(encoded.set_aside.items())]
    assert kinds == [
        "a choice longer than the model writes",
        "a choice of which the tokenizer leaves nothing",
        "a candidate with characters unknown to the tokenizer",
        "a text that holds a special token of the model",
        "a cloze longer than the model reads",
    ]
    assert encoded.notes == {"truncated": 1}
    assert encoded.lengths.max() == 128
    plain, _ = score(scorer, items[-1:])
    np.testing.assert_allclose(scores[-2:], plain, atol=TOLERANCE)


def test_a_literal_sentinel_sets_an_item_aside_also_where_it_is_an_ordinary_piece(
    loaded: Load,
) -> None:
    items = [question("A <extra_id_0> is", "an animal", "a mouse"), question("A dog is", "a", "b")]
    assert list(Seq2SeqScorer(*loaded("mt5")).encode(items).set_aside) == [0]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("t5", "A [MASK] is a [MASK].", r"exactly one \[MASK\]"),
        ("pegasus", "A [MASK] is an animal.", r"no sentinels.*--letters"),
    ],
)
def test_clozes_that_a_model_cannot_be_asked_are_refused(
    loaded: Load, name: str, text: str, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        Seq2SeqScorer(*loaded(name)).encode([cloze(text, "dog", "cat")])


def test_the_end_and_letters(loaded: Load) -> None:
    model, tokenizer = loaded("t5")
    item = question("A dog is", "an animal", "a mouse")
    scores, _ = score(Seq2SeqScorer(model, tokenizer, score_end=True), [item])
    source = tokenizer(item.question)["input_ids"]
    targets = [tokenizer(text)["input_ids"] for text in item.choices]
    expected = [naive_seq2seq.log_likelihood(model, source, [0], target) for target in targets]
    np.testing.assert_allclose(scores, expected, atol=TOLERANCE)

    prompt = Prompt(PromptOptions(letters=True))
    gap = cloze("A [MASK] is an animal.", "dog", "bus")
    scores, _ = score(Seq2SeqScorer(*loaded("pegasus"), prompt=prompt), [gap])
    rotations = [
        naive_seq2seq.score_choices(*loaded("pegasus"), one.context, one.continuations)
        for one in prompt.render(gap)
    ]
    np.testing.assert_allclose(scores, np.mean(rotations, axis=0), atol=TOLERANCE)


def test_pmi_subtracts_the_log_likelihood_for_the_neutral_text(loaded: Load) -> None:
    model, tokenizer = loaded("t5")
    items = questions(WORDS, 4, longest=6)
    options = PMI.options(neutral="It is")
    scorer = PMI.make(ScorerInputs(model, tokenizer, options))
    scores, encoded = score(scorer, items)
    neutral = [Item(item.id, "mc_qa", "It is", item.choices, 0) for item in items]
    given, alone = (reference("t5", model, tokenizer, some) for some in (items, neutral))
    np.testing.assert_allclose(scores, np.subtract(given, alone), atol=TOLERANCE)
    assert len(encoded.lengths) == len({item.question for item in items}) + 1


def test_a_model_that_keeps_nothing_reads_the_question_again(
    loaded: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, tokenizer = loaded("bart")

    def keeps_nothing(*_: object) -> None:
        raise TypeError("'NoneType' object is not iterable")

    monkeypatch.setattr(forward, "_selected", keeps_nothing)
    items = questions(WORDS, 4, longest=6)
    scorer = Seq2SeqScorer(model, tokenizer)
    scores, encoded = score(scorer, items)
    assert not scorer.packs
    assert encoded.notes == {"unpacked": len(encoded.lengths)}
    expected = reference("bart", model, tokenizer, items)
    np.testing.assert_allclose(scores, expected, atol=TOLERANCE)


def test_numbers_beyond_float16_are_refused(folders: Callable[[str], Path]) -> None:
    model, tokenizer = tiny_seq2seq.load(folders("t5"), torch.float16)
    Seq2SeqScorer(model, tokenizer)
    with torch.no_grad():
        model.encoder.block[0].layer[0].SelfAttention.o.weight.mul_(1e5)
    with pytest.raises(KbprobeError, match=r"float16.*--dtype bfloat16"):
        Seq2SeqScorer(model, tokenizer)


def test_a_checkpoint_that_names_no_start_is_refused(loaded: Load) -> None:
    model, tokenizer = loaded("t5")
    start, model.config.decoder_start_token_id = model.config.decoder_start_token_id, None
    try:
        with pytest.raises(UsageError, match="decoder_start_token_id"):
            Seq2SeqScorer(model, tokenizer)
    finally:
        model.config.decoder_start_token_id = start


def test_the_architecture_decides(folders: Callable[[str], Path], tmp_path: Path) -> None:
    for name in ("t5", "bart"):
        found = open_checkpoint(str(folders(name)))
        assert choose_scorer(found).name == "seq2seq_lm"
        assert choose_scorer(found, "pmi").name == "pmi"
        for other in ("causal_lm", "masked_lm", "classifier"):
            with pytest.raises(UsageError, match=f"--scorer {other}.*encoder-decoder"):
                choose_scorer(found, other)
    config = json.loads((folders("bart") / "config.json").read_text())
    for file in folders("bart").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "config.json").write_text(json.dumps({**config, "architectures": ["BartModel"]}))
    assert choose_scorer(open_checkpoint(str(tmp_path))).name == "seq2seq_lm"


def test_a_probe_is_evaluated(
    folders: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KBPROBE_CACHE", str(tmp_path / "cache"))
    train = [question(f"Is it {n}?", "a dog", "a mouse") for n in range(4)]
    test = [question(f"It is {n}, a", "dog", "mouse that swims") for n in range(4)]
    probe = jsonl_probe.write(tmp_path / "probe", {"train": train, "test": test})
    done = evaluation.evaluate(probe, str(folders("t5")), shots=1)
    metrics = done.results.metrics
    assert done.results.scoring.scorer == "seq2seq_lm"
    assert metrics.normalization == "char"
    assert list(metrics.accuracies) == ["acc", "acc_norm", "acc_bytes", "acc_tokens"]


@pytest.mark.slow
def test_the_command(folders: Callable[[str], Path], tmp_path: Path) -> None:
    probe = jsonl_probe.write(tmp_path / "probe", {"test": make_clozes(6)})
    command = [sys.executable, "-m", "evaluation.cli", probe, "-m", str(folders("bart")), "--json"]
    done = subprocess.run(
        [*command, "-o", str(tmp_path / "out"), "--no-cache"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout)["scoring"]["score"] == "log-likelihood"
