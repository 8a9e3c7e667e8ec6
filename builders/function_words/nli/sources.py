"""The sentences and pairs of a corpus from which hypotheses are made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from builders.engine.drops import DropLog
from builders.function_words.nli.clauses import FINITE, Sentence
from builders.function_words.nli.options import NliOptions
from builders.function_words.nli.pairs import PairSource
from builders.function_words.patterns import Patterns
from builders.function_words.tokens import TaggedTexts, natural_sentences, tagged_sentences
from kb_cache.corpora.types import TextCorpus
from kbprobe.arrays import Bools
from kbprobe.columns import mask

LEAST_HYPOTHESIS = 4
"""Minimum number of tokens of the hypothesis of a pair."""


class Origin(NamedTuple):
    """The origin of a source.

    Attributes:
        document: the unit that is never divided between splits: a document, or the premise of
            pairs.
        cluster: the sentence, or the pair.
        row: the document's row in the corpus; -1 for pairs.
    """

    document: str
    cluster: str
    row: int = -1


def sources(
    corpus: TextCorpus, words: Sequence[str], options: NliOptions, dropped: DropLog
) -> Iterator[tuple[Origin, PairSource]]:
    """Yield the sentences, then the pairs, that may contain one of some words.

    Args:
        corpus: documents, pairs, or both.
        words: lower-case first words of the words or phrases to look for; empty: any text.
        options: limits of length, and whether texts are screened.
        dropped: counts the others, by reason.
    """
    if len(corpus.sentences):
        yield from _sentences(corpus, words, options, dropped)
    if len(corpus.pairs):
        yield from _pairs(corpus, words, options, dropped)


def _sentences(
    corpus: TextCorpus, words: Sequence[str], options: NliOptions, dropped: DropLog
) -> Iterator[tuple[Origin, PairSource]]:
    tagged = tagged_sentences(corpus)
    fit = natural_sentences(
        tagged, options.min_tokens, options.max_tokens, dropped, screen=options.screen
    )
    fit &= dropped.drop("sentences: not plain statements", fit & ~_plain(tagged)) | ~fit
    rows = np.flatnonzero(fit & _holding(tagged, words))
    document, paragraph = corpus.sentence_document, corpus.sentence_paragraph
    follows = np.append(False, fit[:-1] & (paragraph[1:] == paragraph[:-1]))
    first = np.searchsorted(document, np.arange(len(corpus.document_ids)))
    names = corpus.document_source
    seen: set[str] = set()
    for row in rows.tolist():
        sentence = _sentence(tagged, row)
        if sentence.text in seen:
            dropped["sentences: the same text occurs before"] += 1
            continue
        seen.add(sentence.text)
        of = int(document[row])
        name = f"{names[of]}:{corpus.document_ids[of]}"
        before = tagged.texts.text[row - 1].as_py() if follows[row] else ""
        origin = Origin(name, f"{name}#{row - int(first[of])}", of)
        yield origin, PairSource(sentence, sentence, before)


def _pairs(
    corpus: TextCorpus, words: Sequence[str], options: NliOptions, dropped: DropLog
) -> Iterator[tuple[Origin, PairSource]]:
    pairs = corpus.pairs
    if not pairs.passages.xpos.known:
        dropped["pairs: no part-of-speech tags"] += len(pairs)
        return
    tagged = TaggedTexts.of(pairs.passages, corpus.name)
    fewest = min(LEAST_HYPOTHESIS, options.min_tokens)
    fit = natural_sentences(tagged, fewest, options.max_tokens, dropped, screen=options.screen)
    plain = fit & _plain(tagged) & _holding(tagged, words)
    rows = np.flatnonzero(fit[pairs.premise] & plain[pairs.hypothesis])
    seen: set[tuple[str, str]] = set()
    for row in rows.tolist():
        premise = _sentence(tagged, int(pairs.premise[row]))
        hypothesis = _sentence(tagged, int(pairs.hypothesis[row]))
        if (premise.text, hypothesis.text) in seen:
            dropped["pairs: the same texts occur before"] += 1
            continue
        seen.add((premise.text, hypothesis.text))
        name = f"{pairs.source[row]}:{pairs.id[row].as_py()}"
        yield Origin(f"premise: {premise.text}", name), PairSource(premise, hypothesis)


def _plain(tagged: TaggedTexts) -> Bools:
    """Mark the texts that are plain statements.

    They contain no quotation, bracket, dash, colon or question, do not begin with a conjunction or
    bare verb, do not end with an abbreviation, and contain no capital that indicates a preceding
    heading.
    """
    forms, finite = tagged.texts.forms, tagged.has_tag(*FINITE)
    patterns = Patterns(
        tagged,
        "not_plain",
        first=tagged.first,
        last=_last(tagged),
        capital=forms.where([name[:1].isupper() and name != "I" for name in forms.names]),
        lower_i=forms.where([name == "i" for name in forms.names]),
        only_verb=finite & (tagged.count(finite) == 1)[tagged.text],
    )
    wrong = np.logical_or.reduce([found for _, found, _ in patterns.frames()])
    return ~_fragments(tagged) & ~tagged.in_text(wrong)


def _fragments(tagged: TaggedTexts) -> Bools:
    """Mark the texts whose root has no subject according to a parse."""
    texts = tagged.texts
    subject = texts.deprel.where(
        [name.startswith(("nsubj", "expl")) for name in texts.deprel.names]
    )
    root = texts.head == texts.position
    governed = texts.token_start[tagged.text] + texts.head
    of_root = subject & (texts.head >= 0)
    of_root[of_root] = root[governed[of_root]]
    return np.asarray(tagged.in_text(root) & ~tagged.in_text(of_root))


def _last(tagged: TaggedTexts) -> Bools:
    found = np.zeros(tagged.code.size, dtype=np.bool_)
    starts = tagged.texts.token_start
    found[starts[1:][np.diff(starts) > 0] - 1] = True
    return found


def _holding(tagged: TaggedTexts, words: Sequence[str]) -> Bools:
    if not words:
        return np.ones(len(tagged.texts), dtype=np.bool_)
    return tagged.in_text(tagged.is_one_of(words))


def _sentence(tagged: TaggedTexts, row: int) -> Sentence:
    texts = tagged.texts
    of_text = slice(int(texts.token_start[row]), int(texts.token_start[row + 1]))
    text = texts.text[row].as_py()
    start, end = texts.start[of_text].tolist(), texts.end[of_text].tolist()
    words = [text[begin:stop] for begin, stop in zip(start, end, strict=True)]
    return Sentence(text, start, end, words, texts.xpos.of(of_text))


def in_corpus(corpus: TextCorpus, texts: Sequence[str]) -> Bools:
    """Mark the texts that are sentences or passages of a corpus."""
    known = pa.chunked_array([corpus.sentences.text, corpus.pairs.passages.text])
    return mask(pc.is_in(pa.array(list(texts), pa.large_string()), value_set=known))
