"""The masked-LM scorer on tiny seeded checkpoints of every family."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks import naive_masked as naive
from evaluation.items.types import Item, choice_starts
from evaluation.runs.score_cache import ScoreCache
from evaluation.runs.scoring import score_items
from evaluation.scorers.masked.pieces import Gap, Placer
from evaluation.scorers.masked.scorer import MaskedScorer
from evaluation.workers import Session, Workers
from kbprobe.errors import KbprobeError, UsageError
from tests.evaluation import tiny_masked as tiny

FAMILIES = list(tiny.FAMILIES)
SENTENCEPIECE = ("xlm-roberta", "albert", "deberta-v2", "deberta-v3-head")
# SentencePiece begins a new word after a mask; see MaskedScorer.
SPACES_APART = [family for family in FAMILIES if family not in SENTENCEPIECE]


def cloze(question: str, *choices: str, name: str = "") -> Item:
    return Item(name or question, "mc_mlm", question, choices, 0)


def question(text: str, *choices: str) -> Item:
    return Item(text, "mc_qa", text, choices, 0)


# Whole words in the tiny vocabularies of every family, wherever they stand.
SINGLE = [
    cloze("A dog is a kind of [MASK].", "animal", "rodent", "dog"),
    cloze("A dog is a kind of [MASK].", "mammal", "vehicle", name="the same text again"),
    cloze("The robin [MASK] swims well .", "never", "always", "often", "rarely"),
    cloze("A penguin [MASK] fly, but it swims well - and what is a bus?", "can", "cannot"),
]
PLACES = [
    cloze("[MASK] is an animal, and a mouse is one too.", "dog", "Cat", "mouse"),
    cloze('The word "[MASK]" means to move fast.', "run", "swims", "fast"),
    cloze("A domestic animal ([MASK]) is red", "dog", "cat", "mammal"),
    cloze("A robin is an [MASK], not a car", "animal", "organism", "herbivore"),
    cloze("It's the [MASK]'s toy.", "child", "dog", "animal"),
    cloze("A  house ,  the  [MASK]  .", "car", "bus", "vehicle"),
    cloze("well-[MASK]-well", "fast", "dog", "red"),
    cloze("\tParis is the\n[MASK]\nof France", "capital", "house", "word"),
    cloze("Paris is a [MASK]", "capital", " house ", "word"),
]
MULTIPLE = [
    cloze("A grand piano is a [MASK] and it is red.", "musical instrument", "penguins", "dog"),
    cloze("[MASK] is small.", "grand-piano", "dog", "animals"),
    cloze('The word "[MASK]" means nothing.', "not really", "vehicles", "farms"),
]
QUESTIONS = [
    question("What is a dog?", "a domestic animal", "penguins.", "an instrument (musical)"),
    question("What is a dog?", "dog", "cat"),
    question("Which is larger, a mouse or a house? Answer:", "a mouse", "a house", "it's red"),
]
EVERYTHING = [*SINGLE, *PLACES, *MULTIPLE, *QUESTIONS]


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Tiny models are slower on several threads, and much slower on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return a function that gives the model and the tokenizer of a family, made once."""
    folder = tmp_path_factory.mktemp("tiny")
    made: dict[str, Any] = {}

    def get(family: str) -> Any:
        if family not in made:
            made[family] = tiny.load(tiny.write(family, folder / family))
        return made[family]

    return get


def run(scorer: MaskedScorer, encoded: Any, batch: int, seed: int | None = None) -> Any:
    """Score everything, in batches, in a shuffled order; add up the slots of each choice."""
    order = np.arange(len(encoded.lengths))
    if seed is not None:
        np.random.default_rng(seed).shuffle(order)
    scores = np.zeros(len(encoded.choice_tokens))
    for start in range(0, len(order), batch):
        part = order[start : start + batch]
        values = scorer.score(encoded, part)
        slots = np.concatenate(
            [np.arange(encoded.slot_starts[at], encoded.slot_starts[at + 1]) for at in part]
        )
        assert values.shape == slots.shape
        assert values.dtype == np.float64
        np.add.at(scores, encoded.slot_choice[slots], values)
    return scores


def reference(items: Any, model: Any, tokenizer: Any, log_probs: bool) -> Any:
    return np.concatenate(naive.score(items, model, tokenizer, log_probs))


@pytest.mark.parametrize("family", FAMILIES)
class TestEqualToTheNaivePath:
    @pytest.mark.parametrize("log_probs", [False, True])
    def test_single_pieces(self, checkpoints: Any, family: str, log_probs: bool) -> None:
        model, tokenizer = checkpoints(family)
        scorer = MaskedScorer(model, tokenizer, log_probs=log_probs)
        encoded = scorer.encode(SINGLE)
        assert set(encoded.choice_tokens) == {1}
        assert scorer.score_name(SINGLE) == ("log-likelihood" if log_probs else "logit")
        expected = reference(SINGLE, model, tokenizer, log_probs)
        for batch, seed in ((1, None), (3, 5), (64, 6)):
            np.testing.assert_allclose(run(scorer, encoded, batch, seed), expected, atol=1e-4)

    def test_all_places_several_pieces_and_questions(self, checkpoints: Any, family: str) -> None:
        model, tokenizer = checkpoints(family)
        scorer = MaskedScorer(model, tokenizer)
        encoded = scorer.encode(EVERYTHING)
        starts = choice_starts(EVERYTHING)
        kept = [number for number in range(len(EVERYTHING)) if number not in encoded.set_aside]
        assert len(kept) > len(EVERYTHING) - 4
        assert scorer.score_name(EVERYTHING) == "log-likelihood"
        expected = reference([EVERYTHING[number] for number in kept], model, tokenizer, True)
        choices = np.concatenate([np.arange(starts[at], starts[at + 1]) for at in kept])
        for batch, seed in ((1, None), (3, 1), (64, 2)):
            scores = run(scorer, encoded, batch, seed)
            np.testing.assert_allclose(scores[choices], expected, atol=1e-4)

    def test_log_probabilities_differ_as_logits_do(self, checkpoints: Any, family: str) -> None:
        model, tokenizer = checkpoints(family)
        found = []
        for log_probs in (False, True):
            scorer = MaskedScorer(model, tokenizer, log_probs=log_probs)
            found.append(run(scorer, scorer.encode(SINGLE), 64))
        for start, stop in zip(choice_starts(SINGLE), choice_starts(SINGLE)[1:], strict=False):
            logits, log_likelihoods = (scores[start:stop] for scores in found)
            assert (log_likelihoods < 0).all()
            np.testing.assert_allclose(
                np.diff(logits), np.diff(log_likelihoods), atol=1e-4, rtol=1e-4
            )

    def test_tokens_are_those_of_the_whole_sentence(self, checkpoints: Any, family: str) -> None:
        _, tokenizer = checkpoints(family)
        texts = [item.question for item in (*SINGLE, *PLACES, *MULTIPLE)]
        texts += [
            "[MASK]",
            "“[MASK]”…",
            "a/[MASK]",
            "[MASK]?!",
            "x\u00a0[MASK]\u2003y",
            "(a)[MASK]b",
        ]
        words = [
            "dog",
            "Cat",
            "Mr",
            "instrument",
            "grand-piano",
            "it's",
            "musical instrument",
            "café",
        ]
        gaps = [Gap(*text.split("[MASK]")) for text in texts]
        for gap, filled in zip(
            gaps, Placer(tokenizer).place(gaps, [words] * len(gaps)), strict=True
        ):
            for word, found in zip(words, filled, strict=True):
                expected = tokenizer(gap.left + word + gap.right)["input_ids"]
                assert [*found.left, *found.pieces, *found.right] == expected
                assert len(found.words) == len(found.pieces)
                unspaced = tokenizer.decode(list(found.pieces)).replace(" ", "").lower()
                assert tokenizer.unk_token_id in found.pieces or word[:2].lower() in unspaced

    def test_the_shortcuts_are_taken(self, checkpoints: Any, family: str) -> None:
        model, tokenizer = checkpoints(family)
        head = MaskedScorer(model, tokenizer)._head
        assert head.gathers
        assert head.selects == (family != "deberta-v3-head")
        assert not model.base_model._forward_hooks
        assert "forward" not in vars(model.get_output_embeddings())


class TestSequences:
    def test_one_for_each_text(self, checkpoints: Any) -> None:
        encoded = MaskedScorer(*checkpoints("bert-uncased")).encode(SINGLE)
        assert len(encoded.lengths) == 3
        assert encoded.item.tolist() == [0, 2, 3]
        assert np.diff(encoded.slot_starts).tolist() == [5, 4, 2]
        assert encoded.slot_choice.tolist() == list(range(11))

    @pytest.mark.parametrize("family", SPACES_APART)
    def test_equal_to_replacing_the_mask(self, checkpoints: Any, family: str) -> None:
        model, tokenizer = checkpoints(family)
        scorer = MaskedScorer(model, tokenizer)
        # A byte-level tokenizer keeps two spaces or a newline, which the mask would eat.
        items = [item for item in PLACES if not re.search(r"\s\s|[\t\n]", item.question)]
        encoded = scorer.encode(items)
        masked = {
            tuple(tokenizer(item.question.replace("[MASK]", tokenizer.mask_token))["input_ids"])
            for item in items
        }
        ids, lengths = (
            encoded.padded(np.arange(encoded.item.size), encoded.tokens, 0),
            encoded.lengths,
        )
        found = {tuple(row[:length]) for row, length in zip(ids.tolist(), lengths, strict=True)}
        assert masked <= found

    def test_texts_share_no_sequence(self, checkpoints: Any) -> None:
        items = [
            cloze("A dog is a [MASK].", "animal", "house"),
            cloze("A DOG is a [MASK].", "animal", "house"),
        ]
        encoded = MaskedScorer(*checkpoints("bert-uncased")).encode(items)
        assert encoded.item.tolist() == [0, 1]

    def test_first_pieces_share_a_sequence(self, checkpoints: Any) -> None:
        items = [cloze("A [MASK] is red.", "penguins", "vehicles", "farmsy")]
        encoded = MaskedScorer(*checkpoints("bert-cased")).encode(items)
        assert encoded.choice_tokens.tolist() == [2, 2, 2]
        assert len(encoded.lengths) == 4

    def test_candidates_that_an_uncased_model_cannot_tell_apart(self, checkpoints: Any) -> None:
        items = [cloze("A dog is a kind of [MASK].", "Animal", "animal", "dog")]
        scorer = MaskedScorer(*checkpoints("bert-uncased"))
        first, second, third = run(scorer, scorer.encode(items), 64)
        assert first == second != third

    def test_a_word_that_swallows_its_neighbour(self, checkpoints: Any) -> None:
        model, tokenizer = checkpoints("xlm-roberta")
        items = [cloze("A dog is a [MASK].", "dog", "Mr", "cat")]
        scorer = MaskedScorer(model, tokenizer)
        encoded = scorer.encode(items)
        assert tokenizer.convert_ids_to_tokens(encoded.slot_piece.tolist()) == [
            "▁dog",
            "▁cat",
            "▁Mr.",
        ]
        expected = reference(items, model, tokenizer, False)
        np.testing.assert_allclose(run(scorer, encoded, 64), expected, atol=1e-4)


class TestItemsThatCannotBeScored:
    ITEMS = (
        cloze("A dog is a [MASK].", "animal", "rodent"),
        cloze("A dog is a [MASK].", "penguins", "animal", name="q2"),
    )

    def test_skip(self, checkpoints: Any) -> None:
        scorer = MaskedScorer(*checkpoints("bert-cased"), multi_piece="skip")
        encoded = scorer.encode(self.ITEMS)
        assert encoded.set_aside == {1: "a candidate of several pieces: 'penguins' (penguin ##s)"}
        assert encoded.choice_tokens.tolist() == [1, 1, 0, 0]
        assert scorer.score_name(self.ITEMS) == "logit"
        assert not encoded.log_probs

    def test_error(self, checkpoints: Any) -> None:
        scorer = MaskedScorer(*checkpoints("bert-cased"), multi_piece="error")
        with pytest.raises(UsageError, match=r"item q2: .*pieces: 'penguins' \(penguin ##s\)"):
            scorer.encode(self.ITEMS)
        with pytest.raises(UsageError, match="--multi-piece pll"):
            scorer.encode(self.ITEMS)

    @pytest.mark.parametrize("multi_piece", ["pll", "skip"])
    @pytest.mark.parametrize("family", ["bert-uncased", "xlm-roberta"])
    def test_unknown_tokens(self, checkpoints: Any, family: str, multi_piece: Any) -> None:
        items = [*SINGLE, cloze("A dog is a [MASK].", "animal", "犬", name="q2")]
        scorer = MaskedScorer(*checkpoints(family), multi_piece=multi_piece)
        encoded = scorer.encode(items)
        assert list(encoded.set_aside) == [4]
        assert "characters unknown to the tokenizer: '犬'" in encoded.set_aside[4]
        assert scorer.score_name(items) == "logit"

    def test_nothing_is_left_of_a_candidate(self, checkpoints: Any) -> None:
        items = [cloze("A dog is a [MASK].", "animal", "\u200b")]
        encoded = MaskedScorer(*checkpoints("bert-uncased")).encode(items)
        assert "the tokenizer leaves nothing: " in encoded.set_aside[0]

    @pytest.mark.parametrize("text", ["A dog is an animal.", "A [MASK] is a [MASK]."])
    def test_masks(self, checkpoints: Any, text: str) -> None:
        with pytest.raises(UsageError, match=r"item q7: a cloze holds exactly one \[MASK\]"):
            MaskedScorer(*checkpoints("bert-uncased")).encode([cloze(text, "a", "b", name="q7")])

    def test_a_candidate_longer_than_the_model(self, checkpoints: Any) -> None:
        items = [question("What is a dog?", "dog " * 70, "cat")]
        encoded = MaskedScorer(*checkpoints("roberta")).encode(items)
        assert "leaves no room for its context" in encoded.set_aside[0]


class TestLongTexts:
    @pytest.mark.parametrize(("family", "limit"), [("bert-uncased", 64), ("roberta", 62)])
    @pytest.mark.parametrize(
        ("before", "after"), [(90, 0), (0, 90), (70, 70), (5, 90), (90, 5), (50, 30)]
    )
    def test_cut_around_the_mask(
        self, checkpoints: Any, family: str, limit: int, before: int, after: int
    ) -> None:
        model, tokenizer = checkpoints(family)
        text = " ".join([*["dog"] * before, "[MASK]", *["cat"] * after])
        items = [*SINGLE, cloze(text, "animal", "small house")]
        scorer = MaskedScorer(model, tokenizer)
        encoded = scorer.encode(items)
        assert encoded.notes == {"truncated": 1}
        assert encoded.lengths.max() == limit
        ids, lengths = (
            encoded.padded(np.arange(encoded.item.size), encoded.tokens, 0),
            encoded.lengths,
        )
        assert (ids[np.arange(len(ids)), encoded.position] == tokenizer.mask_token_id).all()
        assert set(ids[np.arange(len(ids)), lengths - 1]) == {tokenizer.sep_token_id}
        kept = limit - 2 - 2
        sides = np.array([encoded.position[encoded.item == len(SINGLE)].min() - 1, 0])
        sides[1] = kept - sides[0]
        assert min(sides) >= min(before, after, kept // 2)
        assert np.isfinite(run(scorer, encoded, 64)).all()

    def test_a_tokenizer_that_cuts_by_itself(self, checkpoints: Any, tmp_path: Path) -> None:
        model, tokenizer = tiny.load(tiny.write("bert-uncased", tmp_path))
        tokenizer.backend_tokenizer.enable_truncation(4)
        tokenizer.backend_tokenizer.enable_padding(length=9)
        encoded = MaskedScorer(model, tokenizer).encode(SINGLE)
        expected = MaskedScorer(*checkpoints("bert-uncased")).encode(SINGLE)
        np.testing.assert_array_equal(encoded.tokens, expected.tokens)


class TestModelsThatDoOtherwise:
    def test_a_head_that_looks_at_all_positions(self, checkpoints: Any, tmp_path: Path) -> None:
        """Scored with the plain forward, which is counted, and right."""
        _, tokenizer = checkpoints("bert-uncased")
        model, _ = tiny.load(tiny.write("bert-uncased", tmp_path))
        head = model.cls.forward
        model.cls.forward = lambda hidden: head(hidden + hidden.mean(1, keepdim=True))
        scorer = MaskedScorer(model, tokenizer)
        encoded = scorer.encode(SINGLE)
        assert encoded.notes == {"plain_forward": 3}
        # One at a time, since such a head sees the padding.
        expected = reference(SINGLE, model, tokenizer, False)
        np.testing.assert_allclose(run(scorer, encoded, 1), expected, atol=1e-4)

    def test_a_bias_and_a_soft_cap_after_the_last_layer(
        self, checkpoints: Any, tmp_path: Path
    ) -> None:
        _, tokenizer = checkpoints("bert-uncased")
        model, _ = tiny.load(tiny.write("bert-uncased", tmp_path))
        head = model.cls.forward
        bias = torch.linspace(-2, 2, model.config.vocab_size)
        model.cls.forward = lambda hidden: torch.tanh((head(hidden) + bias) / 5) * 5
        scorer = MaskedScorer(model, tokenizer)
        assert scorer._head.selects
        expected = reference(SINGLE, model, tokenizer, False)
        np.testing.assert_allclose(run(scorer, scorer.encode(SINGLE), 64), expected, atol=1e-4)

    def test_another_layer_named_as_the_last(self, checkpoints: Any, tmp_path: Path) -> None:
        _, tokenizer = checkpoints("bert-uncased")
        model, _ = tiny.load(tiny.write("bert-uncased", tmp_path))
        other = torch.nn.Linear(32, model.config.vocab_size)
        model.get_output_embeddings = lambda: other
        scorer = MaskedScorer(model, tokenizer)
        assert scorer._head.gathers
        assert scorer._head.selects
        expected = reference(SINGLE, model, tokenizer, False)
        np.testing.assert_allclose(run(scorer, scorer.encode(SINGLE), 64), expected, atol=1e-4)

    def test_bfloat16_takes_the_shortcuts_too(self, checkpoints: Any, tmp_path: Path) -> None:
        model, tokenizer = tiny.load(tiny.write("roberta", tmp_path))
        expected = reference(SINGLE, model, tokenizer, False)
        scorer = MaskedScorer(model.to(torch.bfloat16), tokenizer)
        assert scorer._head.gathers
        assert scorer._head.selects
        scores = run(scorer, scorer.encode(SINGLE), 64)
        np.testing.assert_allclose(scores, expected, atol=0.5)

    def test_no_mask_token(self, checkpoints: Any, tmp_path: Path) -> None:
        model, tokenizer = tiny.load(tiny.write("bert-uncased", tmp_path))
        tokenizer.mask_token = None
        with pytest.raises(UsageError, match="has no mask token"):
            MaskedScorer(model, tokenizer)


class TestInParts:
    """What scores are depends on all items: the same whichever part shows it, and when."""

    SINGLE = tuple(cloze(f"A dog {n} is a [MASK].", "animal", "rodent") for n in range(20))
    LATE = (*SINGLE, cloze("A dog is a [MASK].", "penguins", "animal", name="q2"))

    @pytest.mark.parametrize(("items", "name"), [(SINGLE, "logit"), (LATE, "log-likelihood")])
    def test_one_kind_of_score(self, checkpoints: Any, items: Any, name: str) -> None:
        scorer = MaskedScorer(*checkpoints("bert-cased"))
        parts = [items[at : at + 4] for at in range(0, len(items), 4)]
        found, coming = scorer.encode_parts(parts)
        encoded = list(coming)
        assert found == name == scorer.score_name(items)
        assert {part.log_probs for part in encoded} == {name == "log-likelihood"}
        scores = np.concatenate([run(scorer, part, 64) for part in encoded])
        np.testing.assert_allclose(scores, run(scorer, scorer.encode(items), 64), atol=1e-5)

    def test_decided_by_parts_that_are_done(self, checkpoints: Any) -> None:
        scorer = MaskedScorer(*checkpoints("bert-cased"))
        name, coming = scorer.encode_parts([self.SINGLE[:4]], "log-likelihood")
        assert name == "log-likelihood"
        assert next(coming).log_probs

    @pytest.mark.parametrize("workers", [1, 2])
    def test_a_run(self, checkpoints: Any, tmp_path: Any, workers: int) -> None:
        scorer = MaskedScorer(*checkpoints("bert-cased"))
        cache = ScoreCache({}, tmp_path)
        for rank in range(1, workers):
            with pytest.raises(KbprobeError, match="not scored by the process"):
                score_items(self.LATE, scorer, cache, 8, 0, Session(workers=Workers(rank, workers)))
        scores, _ = score_items(self.LATE, scorer, cache, 8, 0)
        assert scores.score_name == "log-likelihood"
        expected = run(scorer, scorer.encode(self.LATE), 64)
        np.testing.assert_allclose(scores.scores, expected, atol=1e-5)

    def test_a_refusal_comes_before_any_scores(self, checkpoints: Any) -> None:
        scorer = MaskedScorer(*checkpoints("bert-cased"), multi_piece="error")
        with pytest.raises(UsageError, match="item q2"):
            scorer.encode_parts([self.SINGLE, self.LATE[-1:]])


@pytest.mark.parametrize("family", FAMILIES)
class TestAgainstMinicons:
    def test_clozes(self, checkpoints: Any, family: str) -> None:
        minicons = pytest.importorskip("minicons.scorer", reason="compares with minicons")
        model, tokenizer = checkpoints(family)
        theirs = minicons.MaskedLMScorer(model, "cpu", tokenizer=tokenizer)
        # It looks for a word as it is tokenized alone: byte-level BPE needs its space, and
        # SentencePiece one after it.
        items = [
            cloze("A dog is an [MASK] of France", "animal", "organism", "dog"),
            cloze("The robin [MASK] swims well .", "never", "always", "often", "rarely"),
            cloze("A grand [MASK] is red.", "penguins", "vehicles", "piano"),
        ]
        pairs = [
            (item.question.replace("[MASK]", choice), f" {choice}")
            for item in items
            for choice in item.choices
        ]
        expected = theirs.cloze(pairs, PLL_metric="within_word_l2r")
        scorer = MaskedScorer(model, tokenizer, log_probs=True)
        encoded = scorer.encode(items)
        assert encoded.choice_tokens.max() > 1
        np.testing.assert_allclose(run(scorer, encoded, 64), expected, atol=1e-4)

    def test_questions(self, checkpoints: Any, family: str) -> None:
        minicons = pytest.importorskip("minicons.scorer", reason="compares with minicons")
        model, tokenizer = checkpoints(family)
        theirs = minicons.MaskedLMScorer(model, "cpu", tokenizer=tokenizer)
        # Its own ``encode`` calls a method that tokenizers no longer have.
        theirs.encode = lambda texts, manual_special: tokenizer(texts, padding="longest")
        expected = theirs.conditional_score(
            [item.question for item in QUESTIONS for _ in item.choices],
            [choice for item in QUESTIONS for choice in item.choices],
            reduction=lambda pieces: pieces.sum().item(),
            PLL_metric="within_word_l2r",
        )
        scorer = MaskedScorer(model, tokenizer)
        found = run(scorer, scorer.encode(QUESTIONS), 64)
        np.testing.assert_allclose(found, expected, atol=1e-4)
