"""What a causal model reads: contexts and continuations, examples, letters, chats."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest

from evaluation.items.types import Item
from evaluation.scorers.causal.options import CausalOptions, PromptOptions
from evaluation.scorers.causal.prompts import Message, Prompt, parse_template
from kbprobe.errors import UsageError

ROBIN = Item("robin", "mc_qa", "What can fly?", ("a dog", "a robin", "a car"), 1)
CLOZE = Item("cloze", "mc_mlm", "A [MASK] can fly, really.", ("dog", "robin"), 1)
TRAIN = [
    Item(f"train-{row}", "mc_qa", f"What is {row // 2}?", (f"no {row}", f"yes {row}"), 1)
    for row in range(40)
]


def to_chat(messages: list[Message]) -> str:
    return "".join(f"<{turn['role']}>{turn['content']}" for turn in messages) + "<assistant>"


def test_default_is_question_space_choice():
    [rendered] = Prompt().render(ROBIN)
    assert rendered == ("What can fly?", (" a dog", " a robin", " a car"))


def test_cloze_is_the_filled_in_sentence():
    [rendered] = Prompt().render(CLOZE)
    assert rendered == ("A ", ("dog can fly, really.", "robin can fly, really."))
    for choice, continuation in zip(CLOZE.choices, rendered.continuations, strict=True):
        filled = CLOZE.question.replace("[MASK]", choice)
        assert rendered.context + continuation == filled


@pytest.mark.parametrize("question", ["No mask here.", "[MASK] and [MASK]"])
def test_cloze_without_exactly_one_mask_is_refused(question):
    with pytest.raises(UsageError, match="exactly one"):
        Prompt().render(Item("odd", "mc_mlm", question, ("a", "b"), 0))


def test_template():
    prompt = Prompt(PromptOptions(prompt=parse_template(r"Q: {question} {{sic}}\nA:")))
    [rendered] = prompt.render(ROBIN)
    assert rendered.context == "Q: What can fly? {sic}\nA:"
    assert rendered.continuations[0] == " a dog"


def test_braces_in_a_question_are_left_alone():
    item = Item("braces", "mc_qa", "What is {question} or {0}?", ("a {b}", "c"), 0)
    [rendered] = Prompt(PromptOptions(prompt="Q: {question}")).render(item)
    assert rendered == ("Q: What is {question} or {0}?", (" a {b}", " c"))


@pytest.mark.parametrize(
    "template",
    ["", "no field", "{choice}", "{question} {answer}", "{question", "{}", "{question!r}",
     "{question:>5}", "{question.upper}", "{question} {choices}", "{question} {0}"],
)  # fmt: skip
def test_bad_templates_are_refused(template):
    with pytest.raises(UsageError, match="--prompt"):
        Prompt(PromptOptions(prompt=template))


def test_letters_take_turns():
    rendered = Prompt(PromptOptions(letters=True)).render(ROBIN)
    assert rendered[0].context == (
        "Question: What can fly?\nA. a dog\nB. a robin\nC. a car\nAnswer:"
    )
    assert rendered[1].context.splitlines()[1:4] == ["A. a robin", "B. a car", "C. a dog"]
    assert [one.continuations for one in rendered] == [
        (" A", " B", " C"),
        (" C", " A", " B"),
        (" B", " C", " A"),
    ]
    for one in rendered:
        for choice, letter in zip(ROBIN.choices, one.continuations, strict=True):
            assert f"\n{letter.strip()}. {choice}\n" in one.context


def test_lettered_cloze_shows_a_blank():
    context = Prompt(PromptOptions(letters=True)).render(CLOZE)[0].context
    assert "A ____ can fly" in context
    assert "[MASK]" not in context


def test_lettered_template():
    prompt = Prompt(PromptOptions(prompt="{question}\n{choices}\n=>", letters=True))
    assert prompt.render(ROBIN)[0].context.endswith("C. a car\n=>")
    with pytest.raises(UsageError, match="choices"):
        Prompt(PromptOptions(prompt="{question}", letters=True))


def test_more_choices_than_letters_are_refused():
    item = Item("many", "mc_qa", "Which?", tuple(map(str, range(27))), 0)
    with pytest.raises(UsageError, match="27 choices"):
        Prompt(PromptOptions(letters=True)).render(item)


def test_shots_are_answered_questions_with_empty_lines_between():
    [rendered] = Prompt(PromptOptions(shots=2), TRAIN).render(ROBIN)
    *shots, last = rendered.context.split("\n\n")
    assert last == ROBIN.question
    assert len(shots) == 2
    answered = {f"{item.question} {item.choices[item.answer]}" for item in TRAIN}
    assert set(shots) <= answered


def test_cloze_shots_are_filled_in():
    train = [
        Item(f"{row}", "mc_mlm", f"[MASK] is {row}.", (f"No{row}", f"Yes{row}"), 1)
        for row in range(5)
    ]
    [rendered] = Prompt(PromptOptions(shots=1), train).render(CLOZE)
    shot, rest = rendered.context.split("\n\n")
    assert shot in {f"Yes{row} is {row}." for row in range(5)}
    assert rest == "A "


def test_shots_depend_on_seed_and_question_alone():
    shuffled = random.Random(1).sample(TRAIN, len(TRAIN))
    prompts = [Prompt(PromptOptions(shots=3), train, seed=5) for train in (TRAIN, shuffled)]
    others = [Item(f"{row}", "mc_qa", f"Why {row}?", ("a", "b"), 0) for row in range(20)]
    first = [prompts[0].render(item) for item in others]
    assert first == [prompts[1].render(item) for item in reversed(others)][::-1]
    assert len({rendered.context.split("\n\n")[0] for [rendered] in first}) > 5
    reseeded = Prompt(PromptOptions(shots=3), TRAIN, seed=6)
    assert first != [reseeded.render(item) for item in others]


def test_no_shot_asks_the_same_question():
    prompt = Prompt(PromptOptions(shots=19), TRAIN)
    for item in TRAIN:
        [rendered] = prompt.render(item)
        asked = [text.split("?")[0] for text in rendered.context.split("\n\n")]
        assert len(asked) == len(set(asked)) == 20


def test_too_few_examples_are_refused():
    with pytest.raises(UsageError, match="more than 20 distinct questions"):
        Prompt(PromptOptions(shots=20), TRAIN)


def test_chat_has_turns_and_no_space_before_the_answer():
    [rendered] = Prompt(chat=True).render(ROBIN, to_chat)
    assert rendered == ("<user>What can fly?<assistant>", ROBIN.choices)
    [rendered] = Prompt(PromptOptions(shots=1), TRAIN, chat=True).render(ROBIN, to_chat)
    assert rendered.context.startswith("<user>What is ")
    assert "<assistant>yes " in rendered.context
    assert rendered.context.endswith("<user>What can fly?<assistant>")
    lettered = Prompt(PromptOptions(letters=True), chat=True)
    assert lettered.render(ROBIN, to_chat)[0].continuations[0] == "A"


@pytest.mark.parametrize(
    "prompt", [Prompt(chat=True), Prompt(PromptOptions(prompt="Q: {question}"))]
)
def test_plain_clozes_fit_no_other_prompt(prompt):
    with pytest.raises(UsageError, match="filled-in sentence"):
        prompt.render(CLOZE, to_chat)


def test_one_order_is_shown_alone():
    [rendered] = Prompt(PromptOptions(letters=True, order="CAB")).render(ROBIN)
    assert rendered.context.splitlines()[1:4] == ["A. a car", "B. a dog", "C. a robin"]
    assert rendered.continuations == (" B", " C", " A")


def test_successive_numbers_are_rotations_of_one_drawn_order():
    items = [replace(ROBIN, id=f"{n}") for n in range(200)]
    shown = [[Prompt(PromptOptions(letters=True, order=f"{n}")).render(item) for item in items]
             for n in range(6)]  # fmt: skip
    for per_item in zip(*shown, strict=True):
        letters = [rendered.continuations for [rendered] in per_item]
        for block in (letters[:3], letters[3:]):
            assert all(len(set(taken)) == 3 for taken in zip(*block, strict=True))
    counts = Counter(rendered.continuations for [rendered] in shown[0])
    assert len(counts) == 6
    assert min(counts.values()) > 200 / 6 / 2


@pytest.mark.parametrize(
    "order", ["", "A", "AC", "ABA", "BAX", "ab", "-1", "1.5", "\u0663", "9" * 30, "A,B", True]
)
def test_odd_orders_are_refused(order):
    with pytest.raises(UsageError, match=r"--order: must be"):
        CausalOptions.parse({"order": order, "letters": True}, "owner")


def test_an_order_of_other_choices_names_the_item_and_the_remedy():
    with pytest.raises(UsageError, match=r"item robin has 3 choices and the order BA 2.*--order 0"):
        Prompt(PromptOptions(letters=True, order="BA")).render(ROBIN)


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        ({"order": "1"}, "--letters"),
        ({"shots_seed": 1}, "--shots N"),
        ({"shots_order": 0}, "--shots N"),
    ],
)
def test_options_that_would_do_nothing_are_refused(options, remedy):
    with pytest.raises(UsageError, match=remedy):
        CausalOptions.parse(options, "owner")


def test_examples_in_another_order_are_the_same_examples():
    prompt = Prompt(PromptOptions(shots=4), TRAIN)
    orders = set()
    for seed in range(20):
        reordered = Prompt(PromptOptions(shots=4, shots_order=seed), TRAIN)
        [own], [other] = (one.render(ROBIN) for one in (prompt, reordered))
        texts = [one.context.split("\n\n") for one in (own, other)]
        assert sorted(texts[0][:-1]) == sorted(texts[1][:-1])
        assert texts[0][-1] == texts[1][-1]
        orders.add(tuple(texts[1]))
    assert len(orders) > 10


def test_a_prompt_has_one_spelling():
    for text in ("Q: {question}\nA:", r"Q: {question}\nA:"):
        assert CausalOptions(prompt=text).prompt == r"Q: {question}\nA:"
