"""The causal scorer on tiny seeded checkpoints, against a reference written for clarity."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from tokenizers import processors
from transformers.utils.chat_template_utils import render_jinja_template

from benchmarks import naive_causal
from evaluation.items.types import Item
from evaluation.models.capabilities import CAUSAL_LM
from evaluation.models.checkpoint import open_checkpoint
from evaluation.models.handle import ModelInMemory
from evaluation.models.loading import load_tokenizer
from evaluation.scorers.base import Floats
from evaluation.scorers.causal import forked, forward, prompted
from evaluation.scorers.causal.chat_renderer import answered
from evaluation.scorers.causal.forward import Sharing
from evaluation.scorers.causal.layout import cut_out, grow_trees
from evaluation.scorers.causal.options import CausalOptions, PromptOptions
from evaluation.scorers.causal.prompted import ChatTemplate
from evaluation.scorers.causal.prompts import Prompt
from evaluation.scorers.causal.scorer import CausalScorer
from kbprobe.errors import KbprobeError, UsageError
from tests.evaluation import tiny_architectures, tiny_causal
from tests.evaluation.scored import questions, score

FAMILIES = list(tiny_causal.FAMILIES)
FORKED = ["bloom", "mamba"]
TOLERANCE = 1e-4
WORDS = tiny_causal.TEXT.split()


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    """Load a family once."""
    torch.set_num_threads(1)
    kept: dict[str, tuple[Any, Any]] = {}

    def load(name: str) -> tuple[Any, Any]:
        if name not in kept:
            folder = tiny_causal.write(
                name,
                tmp_path_factory.mktemp(name),
                chat_template=tiny_causal.CHAT_TEMPLATE,
            )
            kept[name] = tiny_causal.load(name, folder)
        return kept[name]

    return load


def question(text: str, *choices: str, name: str = "") -> Item:
    return Item(name or text, "mc_qa", text, choices, 0)


def cloze(text: str, *choices: str, name: str = "") -> Item:
    return Item(name or text, "mc_mlm", text, choices, 0)


ODD_ITEMS = [
    question("", "a dog", "a cat"),
    question("A dog is a kind of", "animal", "", " ", "  animal  ", "rodent\n"),
    question("Ein Wort mit Ümläuten 猫 🐈", "naïve café", "犬", "🐕 dog", "e\u0301", "\u00e9"),
    question("What is it? ", "a dog", "a mouse"),
    question("\n", "a dog", "a mouse"),
    cloze("A [MASK] is a kind of animal.", "dog", "vehicle or so"),
    cloze("[MASK] can fly.", "A robin", "Penguins"),
    cloze("What swims well is a [MASK]", "penguin", "robin"),
]


def reference(
    model: Any, tokenizer: Any, items: Sequence[Item], prompt: Prompt | None = None
) -> Floats:
    """One forward pass for each choice."""
    length = getattr(model.config, "max_position_embeddings", 2048)
    scores: list[float] = []
    for item in items:
        by_rotation = [
            naive_causal.score_choices(model, tokenizer, context, continuations, length)
            for context, continuations in (prompt or Prompt()).render(item)
        ]
        scores += np.mean(by_rotation, axis=0).tolist()
    return np.array(scores)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("pack", [True, False])
def test_fast_equals_naive(loaded, family, pack, monkeypatch):
    monkeypatch.setitem(forked.LEAST_TOKENS, "cpu", 1)
    model, tokenizer = loaded(family)
    items = questions(WORDS, 12) + ODD_ITEMS
    scorer = CausalScorer(model, tokenizer, pack=pack)
    shared = Sharing.STATE if family in FORKED else Sharing.MASK
    assert scorer.sharing == (shared if pack else Sharing.NONE)
    scores, encoded = score(scorer, items)
    np.testing.assert_allclose(scores, reference(model, tokenizer, items), rtol=0, atol=TOLERANCE)
    assert not encoded.set_aside
    assert encoded.branched.any() == pack


@pytest.mark.parametrize("family", ["llama", "bloom"])
def test_scores_do_not_depend_on_batch_or_order(loaded, family):
    model, tokenizer = loaded(family)
    items = questions(WORDS, 16, seed=2)
    scorer = CausalScorer(model, tokenizer)
    alone, _ = score(scorer, items, budget=1)
    for budget, seed in ((64, None), (10_000, None), (0, 1), (0, 2)):
        np.testing.assert_allclose(score(scorer, items, budget, seed)[0], alone, atol=TOLERANCE)
    backwards, _ = score(scorer, items[::-1])
    straight = alone.reshape(len(items), -1)[::-1].ravel()
    np.testing.assert_allclose(backwards, straight, atol=TOLERANCE)


def test_a_question_is_read_once_for_all_items_that_ask_it(loaded):
    _, tokenizer = loaded("gpt2")
    items = [
        question("A dog is", "a cat", "an animal", name="1"),
        question("A dog is", "a vehicle", "an animal", name="2"),
    ]
    scorer = CausalScorer(*loaded("gpt2"))
    encoded = scorer.encode(items)
    assert encoded.lengths.size == 1
    choices = {choice for item in items for choice in item.choices}
    read = {tuple(tokenizer.encode(f" {choice}")[:-1]) for choice in choices}
    prefixes = {path[: end + 1] for path in read for end in range(len(path))}
    assert encoded.lengths[0] == len(tokenizer.encode("A dog is")) + len(prefixes)
    assert encoded.slot_choice.size == 4


def test_questions_that_begin_alike_do_not_share_a_sequence(loaded):
    items = [cloze("A [MASK] can fly.", "dog"), cloze("A [MASK] can swim.", "dog")]
    encoded = CausalScorer(*loaded("gpt2")).encode(items)
    assert sorted(encoded.item) == [0, 1]


def test_single_token_choices_cost_only_their_question(loaded):
    """Also where a model cannot read packed: nothing of such a choice is read."""
    model, tokenizer = loaded("bloom")
    words = [" a", " dog", " is", " kind"]
    assert all(len(tokenizer.encode(word)) == 1 for word in words)
    encoded = CausalScorer(model, tokenizer).encode([question("A mouse", *map(str.strip, words))])
    assert encoded.lengths.tolist() == [len(tokenizer.encode("A mouse"))]
    assert encoded.notes == {}


def test_packed_sequences_share_lines_so_that_little_is_padded(loaded):
    encoded = CausalScorer(*loaded("llama")).encode(questions(WORDS, 24, seed=7))
    packed = np.flatnonzero(encoded.branched)
    batch = cut_out(encoded, packed)
    assert len(batch.tokens) < len(packed)
    real = int(encoded.lengths[packed].sum())
    assert real >= 0.8 * batch.tokens.size


def test_unpacked_questions_are_counted(loaded, monkeypatch):
    items = [question("A dog is", "an animal that can fly", "a rodent that swims well")]
    for family in ("mamba", "llama"):
        assert CausalScorer(*loaded(family)).encode(items).notes == {}

    def no_cache(*_args):
        raise TypeError("no cache")

    monkeypatch.setattr(forward, "forked_cells", no_cache)
    assert CausalScorer(*loaded("mamba")).encode(items).notes == {"unpacked": 1}


def test_short_questions_are_read_again_where_that_is_faster(loaded):
    scorer = CausalScorer(*loaded("mamba"))
    short, long = ([question(text, "an animal", "a city")] for text in ("A", "A dog is " * 9))
    assert not scorer.encode(short).branched.any()
    assert scorer.encode(long).branched.any()


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_long_prompts_lose_their_beginning(loaded, family):
    model, tokenizer = loaded(family)
    text = " ".join(WORDS * 3)
    fitting = next(
        " ".join(WORDS[start:] * 2)
        for start in range(len(WORDS))
        if len(tokenizer.encode(" ".join(WORDS[start:] * 2))) <= 118
    )
    items = [
        question(text, "a dog", "a kind of animal that can fly", name="long"),
        question(fitting, "x", fitting[:100], name="one choice too long"),
        question("A dog is", "an animal", "a mouse", name="short"),
    ]
    scores, encoded = score(CausalScorer(model, tokenizer), items)
    assert encoded.notes["truncated"] == 2
    assert encoded.lengths.max() == 128
    np.testing.assert_allclose(scores, reference(model, tokenizer, items), atol=TOLERANCE)


def test_what_cannot_be_scored_is_set_aside(loaded):
    model, tokenizer = loaded("gpt2")
    long = " ".join(WORDS * 3)
    items = [
        question("A dog is", "an animal", long),
        question("A dog is", "an animal", "a mouse"),
        cloze("A dog is an animal[MASK]", "", "."),
    ]
    scores, encoded = score(CausalScorer(model, tokenizer), items)
    assert set(encoded.set_aside) == {0, 2}
    assert "longer than the model reads: " in encoded.set_aside[0]
    assert "no token" in encoded.set_aside[2]
    assert set(encoded.slot_choice) == {2, 3}
    np.testing.assert_allclose(scores[2:4], reference(model, tokenizer, items[1:2]), atol=TOLERANCE)


@pytest.mark.parametrize("family", ["mistral", "gpt-neo", "gemma2"])
def test_packed_sequences_stay_in_the_attention_window(loaded, family):
    model, tokenizer = loaded(family)
    items = questions(WORDS, 10, seed=5, longest=30)
    scorer = CausalScorer(model, tokenizer)
    scores, encoded = score(scorer, items)
    window = getattr(model.config, "sliding_window", None) or model.config.window_size
    assert encoded.branched.any()
    assert encoded.lengths[encoded.branched].max() <= window < encoded.lengths.max()
    np.testing.assert_allclose(scores, reference(model, tokenizer, items), atol=TOLERANCE)


@pytest.mark.parametrize("options", [{"letters": True}, {"prompt": "Q: {question}\nA:"}])
def test_prompts_are_scored_as_rendered(loaded, options):
    prompt = Prompt(PromptOptions(**options))
    model, tokenizer = loaded("llama")
    items = questions(WORDS, 5, seed=3, longest=4)
    scores, encoded = score(CausalScorer(model, tokenizer, prompt=prompt), items)
    expected = reference(model, tokenizer, items, prompt)
    np.testing.assert_allclose(scores, expected, atol=TOLERANCE)
    if prompt.options.letters:
        assert set(encoded.choice_tokens) == {len(tokenizer.encode("x A")) - 2}


def test_letters_do_not_depend_on_the_order_of_choices(loaded):
    model, tokenizer = loaded("gpt2")
    item = question("What can fly?", "a robin", "a dog", "a mouse")
    turned = question("What can fly?", "a dog", "a mouse", "a robin")
    prompt = Prompt(PromptOptions(letters=True))
    scores, encoded = score(CausalScorer(model, tokenizer, prompt=prompt), [item])
    other, _ = score(CausalScorer(model, tokenizer, prompt=prompt), [turned])
    np.testing.assert_allclose(scores[[1, 2, 0]], other, atol=TOLERANCE)
    assert encoded.lengths.size == 3


@pytest.mark.slow
def test_chat_goes_through_the_template(loaded):
    model, tokenizer = loaded("gpt2")
    scores, _ = score(
        CausalScorer(model, tokenizer, prompt=Prompt(chat=True)), [question("Fly?", "no", "a dog")]
    )
    context = "<user>Fly?\n<assistant>\n"
    expected = naive_causal.score_choices(model, tokenizer, context, ["no", "a dog"], 128)
    np.testing.assert_allclose(scores, expected, atol=TOLERANCE)


def test_chat_without_a_template_is_refused(loaded, monkeypatch):
    model, tokenizer = loaded("gpt2")
    monkeypatch.setattr(tokenizer, "chat_template", None)
    with pytest.raises(UsageError, match="no chat template"):
        CausalScorer(model, tokenizer, prompt=Prompt(chat=True))


@pytest.mark.slow
def test_a_chat_is_what_transformers_writes(loaded, monkeypatch):
    """In a process of its own, with the texts of special tokens and without others' errors."""
    _, tokenizer = loaded("gpt2")
    monkeypatch.setattr(
        tokenizer, "chat_template", "{{ bos_token }}{{ eos_token }}" + tiny_causal.CHAT_TEMPLATE
    )
    written = ChatTemplate(tokenizer)
    for text in ("Fly?", "Ça \u2028 va \ud83d\n<|endoftext|>", "x" * 200_000):
        messages = [{"role": "user", "content": text}, {"role": "assistant", "content": "no"}]
        assert written.render(messages) == tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=True
        )
    monkeypatch.setattr(
        type(tokenizer), "apply_chat_template", lambda *_, **__: "by code of its own"
    )
    assert ChatTemplate(tokenizer).render(messages) == "by code of its own"


@pytest.mark.slow
def test_a_template_is_told_the_same_day_in_every_run(loaded, monkeypatch):
    _, tokenizer = loaded("gpt2")
    monkeypatch.setattr(tokenizer, "chat_template", "Today: {{ strftime_now('%d %b %Y') }}")
    messages = [{"role": "user", "content": "Fly?"}]
    assert ChatTemplate(tokenizer).render(messages) == "Today: 26 Jul 2024"
    assert ChatTemplate(tokenizer, "2025-01-31").render(messages) == "Today: 31 Jan 2025"
    dated = CausalOptions(chat=True, chat_date="2025-01-31")
    assert dated.model_dump()["chat_date"] == "2025-01-31"
    assert CausalOptions(chat=True).model_dump() != dated.model_dump()
    for wrong, said in (({"chat": True, "chat_date": "today"}, "no date"), ({}, "give --chat")):
        with pytest.raises(ValueError, match=said):
            CausalOptions(**{"chat_date": "2025-01-31", **wrong})


@pytest.mark.slow
def test_a_template_that_refuses_system_prompts_names_the_option(loaded, monkeypatch):
    _, tokenizer = loaded("gpt2")
    refusing = "{% if messages[0].role == 'system' %}{{ raise_exception('No system') }}{% endif %}"
    monkeypatch.setattr(tokenizer, "chat_template", refusing + tiny_causal.CHAT_TEMPLATE)
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Fly?"}]
    written = ChatTemplate(tokenizer)
    with pytest.raises(KbprobeError, match=r"No system\). Leave --system out"):
        written.render(messages)
    assert written.render(messages[1:]).startswith("<user>Fly?")


LOOP = "{% for i in range(99999) %}" * 2 + "{% endfor %}" * 2
GROWING = (
    "{% set a = namespace(a='a') %}{% for i in range(50) %}{% set a.a = a.a * 2 %}{% endfor %}"
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("template", "problem"),
    [
        (LOOP, "writing a chat took longer than 1 seconds"),
        pytest.param(
            GROWING,
            "writing a chat took more than 1,073,741,824 bytes of memory",
            marks=pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits memory"),
        ),
    ],
)
def test_a_chat_template_is_bounded(loaded, monkeypatch, template, problem):
    _, tokenizer = loaded("gpt2")
    monkeypatch.setattr(tokenizer, "chat_template", template)
    monkeypatch.setattr(prompted, "SECONDS", 1.0 if template is LOOP else 60.0)
    with pytest.raises(KbprobeError, match=rf"{problem}.* Correct it.*leave --chat out") as raised:
        ChatTemplate(tokenizer).render([{"role": "user", "content": "Fly?"}])
    assert tokenizer.name_or_path in str(raised.value)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("\n{% for x in %}", "line 2: TemplateSyntaxError: Expected an expression"),
        ("{{ raise_exception('No user may\nspeak') }}", "TemplateError: No user may"),
        ("{{ messages.x.y }}", "UndefinedError: 'list object' has no attribute 'x'"),
        ("{{ messages[0].content + 1 }}", "TypeError: "),
        ("{{ 'a' * 140000 }}", "a chat became 140,000 characters long, and at most 131,076 fit"),
    ],
)
def test_what_is_wrong_with_a_chat_template_is_said(template, problem):
    messages = [{"role": "user", "content": "Fly?"}]
    answer = answered(render_jinja_template, {"chat_template": template}, messages)
    assert answer["error"].startswith(problem)


def test_a_model_that_is_not_causal_is_refused(loaded):
    _, tokenizer = loaded("gpt2")
    config = transformers.BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=48,
        is_decoder=False,
        initializer_range=0.3,
    )
    torch.manual_seed(0)
    with pytest.raises(UsageError, match="not causal"):
        CausalScorer(transformers.BertLMHeadModel(config), tokenizer)


def test_a_head_that_is_never_called_is_no_obstacle(loaded, monkeypatch):
    model, tokenizer = loaded("gpt2")
    items = questions(WORDS, 4)
    expected, _ = score(CausalScorer(model, tokenizer), items)
    for head in (None, torch.nn.Identity()):
        monkeypatch.setattr(model, "get_output_embeddings", lambda head=head: head)
        np.testing.assert_allclose(
            score(CausalScorer(model, tokenizer), items)[0], expected, atol=TOLERANCE
        )


@pytest.mark.parametrize("limit", [0, 9, 14, 1000])
def test_trees_hold_every_path_once(limit):
    draw = random.Random(limit)
    continuations = [tuple(draw.choices(range(3), k=draw.randint(1, 5))) for _ in range(40)]
    context = [7, 8, 9]
    trees = grow_trees(context, continuations, limit=limit)
    found = {}
    for tree in trees:
        size = len(tree.tokens)
        assert not tree.branched or size <= limit
        visible = [[j for j in range(i + 1) if i < tree.ends[j]] for i in range(size)]
        assert tree.branched == any(len(seen) <= i for i, seen in enumerate(visible))
        assert tree.positions == [len(seen) - 1 for seen in visible]
        for number, after in tree.paths:
            read = [tree.tokens[token] for token in visible[after[-1]]]
            assert read == [*context, *continuations[number][:-1]]
            assert after == visible[after[-1]][len(context) - 1 :]
            found[number] = tree
    assert sorted(found) == list(range(40))
    assert (len(trees) == 1) == (limit == 1000)


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_equals_lm_evaluation_harness(loaded, family):
    huggingface = pytest.importorskip(
        "lm_eval.models.huggingface", reason="comparing needs lm-evaluation-harness"
    )
    from lm_eval.api.instance import Instance

    model, tokenizer = loaded(family)
    items = questions(WORDS, 10, seed=4) + [item for item in ODD_ITEMS if item.question.strip()]
    items = [item for item in items if not item.question.startswith("[MASK]")]
    rendered = [Prompt().render(item)[0] for item in items]
    requests = [
        Instance("loglikelihood", {}, (context, continuation), number)
        for context, continuations in rendered
        for number, continuation in enumerate(continuations)
    ]
    # Its cache of logits confuses two pairs whose tokens together are the same (version 0.4.13).
    peer = huggingface.HFLM(pretrained=model, tokenizer=tokenizer, batch_size=4, logits_cache=False)
    expected = [score for score, _ in peer.loglikelihood(requests, disable_tqdm=True)]
    scores, _ = score(CausalScorer(model, tokenizer), items)
    np.testing.assert_allclose(scores, expected, rtol=0, atol=TOLERANCE)


def _ending_tokenizer(single: str) -> Any:
    """Llama's tokenizer with other special tokens around a text."""
    backend = tiny_causal.sentencepiece()
    backend.post_processor = processors.TemplateProcessing(
        single=single, pair=f"{single} $B", special_tokens=[("<s>", 1), ("</s>", 2)]
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend, **tiny_causal.LLAMA_SPECIALS
    )


@pytest.mark.parametrize("single", ["<s> $A </s>", "$A </s>", "$A"])
def test_a_token_that_ends_every_text_is_neither_read_nor_scored(loaded, single):
    model, _ = loaded("llama")
    tokenizer = _ending_tokenizer(single)
    before = [1] * single.startswith("<s>")
    items = [
        question("A dog is a kind of", "animal", "rodent", "dog that can swim"),
        question("A robin can", "fly", "swim well"),
    ]
    expected = []
    for item in items:
        for choice in item.choices:
            given, both = (
                [*before, *tokenizer(text, add_special_tokens=False)["input_ids"]]
                for text in (item.question, f"{item.question} {choice}")
            )
            with torch.no_grad():
                logits = model(torch.tensor([both])).logits[0].log_softmax(-1)
            own = range(len(given), len(both))
            expected.append(sum(float(logits[at - 1, both[at]]) for at in own))
    scores, _ = score(CausalScorer(model, tokenizer), items)
    np.testing.assert_allclose(scores, expected, atol=TOLERANCE)


def test_a_tokenizer_drops_no_merges(tmp_path):
    """BPE-dropout is for training: each run would read other tokens."""
    folder = tiny_causal.write("gpt2", tmp_path / "gpt2")
    config = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    config["model"]["dropout"] = 0.9
    (folder / "tokenizer.json").write_text(json.dumps(config), encoding="utf-8")
    model = transformers.GPT2LMHeadModel.from_pretrained(folder)
    in_memory = ModelInMemory(model, transformers.AutoTokenizer.from_pretrained(folder))
    read = [load_tokenizer(open_checkpoint(str(folder))), in_memory.load(CAUSAL_LM)[1]]
    for own in read:
        assert len({tuple(own("A domestic animal")["input_ids"]) for _ in range(20)}) == 1
    assert read[0]("a dog")["input_ids"] == read[1]("a dog")["input_ids"]


def test_an_end_that_cannot_be_left_out_is_refused(loaded):
    model, _ = loaded("llama")

    class Ending(transformers.PreTrainedTokenizerFast):
        def __call__(self, *texts, **options):
            ids = super().__call__(*texts, **options)
            ids["input_ids"] = [[*own, 2] for own in ids["input_ids"]]
            return ids

    ending = Ending(tokenizer_object=tiny_causal.sentencepiece(), **tiny_causal.LLAMA_SPECIALS)
    with pytest.raises(UsageError, match="even without special tokens"):
        CausalScorer(model, ending)


def test_positions_that_are_counted_from_the_padding_token_leave_fewer_tokens():
    model, tokenizer = tiny_architectures.roberta_decoder()
    items = [question(" ".join(WORDS * 3), "a dog", "a river")]
    scorer = CausalScorer(model, tokenizer)
    scores, encoded = score(scorer, items)
    assert int(encoded.lengths.max()) == 64
    assert encoded.notes["truncated"] == 1
    assert np.isfinite(scores).all()


def test_a_word_without_an_embedding_is_named(loaded):
    model, _ = loaded("gpt2")
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tiny_causal.byte_level(), **tiny_causal.GPT2_SPECIALS
    )
    tokenizer.add_tokens(["zorbish"])
    scorer = CausalScorer(model, tokenizer)
    scorer.encode([question("A dog is", "small", "large")])
    for item in (question("A zorbish is", "small", "large"), question("A", "dog", "zorbish")):
        with pytest.raises(
            UsageError, match=r"401 tokens.*400 emb.*resize_token_embeddings\(401\)"
        ):
            scorer.encode([item])
