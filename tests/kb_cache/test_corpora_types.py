"""The tables of corpora, and the views that probes are built from."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb_cache.corpora.rows import RawDocument, RawPair, RawText, corpus_of, words_in
from kb_cache.corpora.types import Corpora, combined
from kbprobe.errors import UsageError

SEE = words_in(
    "I don't see.", ["I", "do", "n't", "see", "."], upos=["PRON", None, "PART", "VERB", "PUNCT"]
)
BARE = RawText("Naïve “café” 😀!")
PARSED = RawText("Go now", (0, 3), (2, 6), ("VERB", "ADV"), (), (), ("root", "advmod"), (0, 0))


def small(name: str = "small"):  # type: ignore[no-untyped-def]
    documents = [
        RawDocument("a", [[SEE, BARE], [PARSED]], genre="letter"),
        RawDocument("b", [[SEE]], has_paragraphs=False),
    ]
    return corpus_of(documents, [RawPair("1", SEE, PARSED, "TRUE"), RawPair("2", BARE, SEE)], name)


def test_sentences_know_their_paragraph_and_document() -> None:
    corpus = small()
    assert corpus.sentences.text.to_pylist() == [SEE.text, BARE.text, PARSED.text, SEE.text]
    assert corpus.sentence_paragraph.tolist() == [0, 0, 1, 2]
    assert corpus.sentence_document.tolist() == [0, 0, 0, 1]
    assert corpus.has_paragraphs.tolist() == [True, False]
    assert corpus.document_genre.of(slice(None)) == ["letter", ""]
    assert corpus.document_source.of(slice(None)) == ["corpus-small"] * 2


def test_tokens_and_their_annotation() -> None:
    sentences = small().sentences
    assert sentences.words(0) == ["I", "do", "n't", "see", "."]
    assert sentences.words(1) == []
    assert sentences.token_start.tolist() == [0, 5, 5, 7, 12]
    assert sentences.upos.of(slice(0, 7)) == ["PRON", "", "PART", "VERB", "PUNCT", "VERB", "ADV"]
    assert sentences.upos.is_in("VERB").tolist()[:7] == [0, 0, 0, 1, 0, 1, 0]
    assert sentences.head.tolist()[4:8] == [-1, 0, 0, -1]
    assert sentences.position.tolist()[4:8] == [4, 0, 1, 0]
    assert sentences.forms.of(slice(3, 7)) == ["see", ".", "Go", "now"]


def test_pairs_are_texts_as_sentences_are() -> None:
    pairs = small().pairs
    assert pairs.label.of(slice(None)) == ["TRUE", ""]
    assert pairs.passages.words(int(pairs.hypothesis[0])) == ["Go", "now"]
    assert pairs.passages.text[int(pairs.premise[1])].as_py() == BARE.text


def test_layers_are_those_that_any_token_has() -> None:
    parsed = corpus_of([RawDocument("x", [[PARSED]])], name="parsed")
    assert small().layers == {"corpus-small": {"upos", "deprel", "head"}}
    assert corpus_of([RawDocument("x", [[BARE]])]).layers == {"corpus-given": set()}
    plain = corpus_of([RawDocument("x", [[words_in("No.", ["No", "."])]])], name="plain")
    both = combined([parsed, plain])
    assert both.layers == {"corpus-parsed": {"upos", "deprel", "head"}, "corpus-plain": set()}


def test_several_corpora_are_one() -> None:
    one, two = small("one"), small("two")
    both = combined([one, two])
    assert isinstance(both, Corpora)
    assert both.name == "corpus-one+corpus-two"
    assert both.sentences.text.to_pylist() == one.sentences.text.to_pylist() * 2
    assert both.sentence_document.tolist() == [0, 0, 0, 1, 2, 2, 2, 3]
    assert both.sentences.words(4) == one.sentences.words(0)
    assert both.sentences.upos.of(slice(12, 19)) == one.sentences.upos.of(slice(0, 7))
    assert both.pairs.passages.words(int(both.pairs.premise[2])) == ["I", "do", "n't", "see", "."]
    assert both.pairs.source.of(slice(None)) == ["corpus-one"] * 2 + ["corpus-two"] * 2
    assert combined([one]) is one


@pytest.mark.parametrize("names", [[], ["one", "one"]])
def test_corpora_are_given_each_once(names: list[str]) -> None:
    with pytest.raises(UsageError, match="each once"):
        Corpora([small(name) for name in names])


@pytest.mark.parametrize("spans", [[(0, 2), (1, 3)], [(2, 3), (0, 1)], [(1, 1)], [(0, 9)]])
def test_spans_that_are_not_tokens_are_refused(spans: list[tuple[int, int]]) -> None:
    text = RawText("abc", [start for start, _ in spans], [end for _, end in spans])
    with pytest.raises(ValueError, match="token"):
        corpus_of([RawDocument("x", [[text]])])


def test_a_word_that_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match="'cat' is not in ' dog'"):
        words_in("a dog", ["a", "cat"])


@given(
    st.lists(
        st.lists(st.text(st.characters(exclude_categories=["Z", "C"]), min_size=1), max_size=5),
        max_size=6,
    )
)
def test_offsets_give_the_words_back(sentences: list[list[str]]) -> None:
    texts = [words_in(" ".join(words), words) for words in sentences]
    corpus = corpus_of([RawDocument("x", [texts])])
    assert [corpus.sentences.words(row) for row in range(len(texts))] == sentences
    assert corpus.sentences.forms.of(slice(None)) == [word for words in sentences for word in words]
