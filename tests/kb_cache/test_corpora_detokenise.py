"""Joining tokens as they are printed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb_cache.corpora.tagged import detokenise, unescaped

PRINTED = [
    "I don't know, he can't say (yet): it's 5% of $10!",
    'She said, "It was sad," and left.',
    '"Now I can," he said, "buy a soda."',
    "The dogs' owner called 'stop' twice.",
    "You’ll see “that” — no…",
    "His/her pre-war car cost 1,500 (see p. 3).",
    "We cannot go; I'm gonna stay.",
    "[Colbert]: A touch... of destiny?!",
    "O'Neill, YOU'RE late.",
    "AT 9:30 the 10-20 people, 3 of them, left HK$5.",
]
TOKENS = [
    "I do n't know , he ca n't say ( yet ) : it 's 5 % of $ 10 !",
    'She said , " It was sad , " and left .',
    '" Now I can , " he said , " buy a soda . "',
    "The dogs ' owner called ' stop ' twice .",
    "You ’ ll see “ that ” — no …",
    "His / her pre- war car cost 1,500 ( see p. 3 ) .",
    "We can not go ; I 'm gon na stay .",
    "[ Colbert ] : A touch ... of destiny ? !",
    "O ' Neill , YOU ' RE late .",
    "AT 9 : 30 the 10 - 20 people , 3 of them , left HK $ 5 .",
]


@pytest.mark.parametrize(("tokens", "printed"), list(zip(TOKENS, PRINTED, strict=True)))
def test_text_reads_as_it_is_printed(tokens: str, printed: str) -> None:
    expected = printed.replace(" — ", "—")
    assert detokenise(tokens.split())[0] == expected


def test_a_hyphen_and_a_dash_are_told_apart_by_their_tag() -> None:
    words = ["a", "round", "-", "trip", "-", "now"]
    assert detokenise(words, ["DT", "JJ", "-", "NN", ":", "RB"])[0] == "a round-trip - now"
    assert detokenise(["pre-", "and", "post-", "war"])[0] == "pre- and post-war"
    assert detokenise(["-", "-", "Maureen"])[0] == "-- Maureen"


def test_a_quotation_goes_on_over_sentences() -> None:
    first, _, still_open = detokenise(["He", "said", ":", '"', "Go", "."])
    assert (first, still_open) == ('He said: "Go.', True)
    second, _, still_open = detokenise(["Now", ".", '"', "And", "left", "."], (), still_open)
    assert (second, still_open) == ('Now." And left.', False)
    # One mark was missing before: this sentence opens and closes its own.
    own = ["He", "said", ",", '"', "I", "know", ".", '"']
    assert detokenise(own, (), True)[0] == 'He said, "I know."'


def test_escaped_brackets_and_quotation_marks_are_what_stood_in_the_text() -> None:
    words = [unescaped(word) for word in ["``", "-LRB-", "a", "-RRB-", "''", "x"]]
    assert detokenise(words)[0] == '"(a)" x'


words = st.one_of(
    st.sampled_from(" ".join(TOKENS).split()),
    st.text(st.characters(exclude_categories=["Z", "C"]), min_size=1, max_size=5),
)


@given(st.lists(words, min_size=1, max_size=15), st.booleans())
def test_offsets_give_the_tokens_back_and_nothing_else_is_added(
    tokens: list[str], open_quote: bool
) -> None:
    text, starts, _ = detokenise(tokens, (), open_quote)
    assert [text[at : at + len(token)] for at, token in zip(starts, tokens, strict=True)] == tokens
    assert text.replace(" ", "") == "".join(tokens)
    assert "  " not in text
    assert text == text.strip()
