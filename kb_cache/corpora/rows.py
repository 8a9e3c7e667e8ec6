"""Conversion of documents and pairs, as readers yield them, to the tables of a corpus."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kb_cache.corpora.types import KIND, Corpus
from kb_cache.snapshot import content_digest
from kbprobe.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

Labels = Sequence[str | None]


class RawText(NamedTuple):
    """A sentence or passage with its tokens.

    Attributes:
        text: the text as it should be read.
        starts, ends: character offsets of the tokens, ascending, not overlapping.
        upos, xpos, lemma, deprel: one for each token, None if unknown; empty if all are unknown.
        head: position of each token's head, its own for the root, -1 where unknown.
    """

    text: str
    starts: Sequence[int] = ()
    ends: Sequence[int] = ()
    upos: Labels = ()
    xpos: Labels = ()
    lemma: Labels = ()
    deprel: Labels = ()
    head: Sequence[int] = ()


class RawDocument(NamedTuple):
    """A document: paragraphs of sentences.

    ``has_paragraphs`` is false if the source does not mark them: then there is one.
    """

    id: str
    paragraphs: Sequence[Sequence[RawText]]
    has_paragraphs: bool = True
    genre: str | None = None


class RawPair(NamedTuple):
    """A premise and a hypothesis; the label is as in the source, or None."""

    id: str
    premise: RawText
    hypothesis: RawText
    label: str | None = None


def words_in(text: str, words: Iterable[str], **annotation: Sequence[str | None]) -> RawText:
    """Return a text whose tokens are these words, found in it from left to right.

    >>> words_in("No, I don't.", ["No", ",", "I", "do", "n't", "."]).starts
    [0, 2, 4, 6, 8, 11]

    Raises:
        UsageError: a word is not in what is left of the text.
    """
    starts, ends, at = [], [], 0
    for word in words:
        found = text.find(word, at)
        if found < 0 or not word:
            raise UsageError(f"{word!r} is not in {text[at:]!r}")
        at = found + len(word)
        starts.append(found)
        ends.append(at)
    return RawText(text, starts, ends, **annotation)  # type: ignore[arg-type]  # head is not given


@dataclass
class _TextColumns:
    """The columns of texts and their tokens, as lists."""

    text: list[str] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    starts: list[Sequence[int]] = field(default_factory=list)
    ends: list[Sequence[int]] = field(default_factory=list)
    layers: dict[str, list[Labels]] = field(
        default_factory=lambda: {name: [] for name in ("upos", "xpos", "lemma", "deprel")}
    )
    head: list[Sequence[int]] = field(default_factory=list)

    def add(self, text: RawText) -> int:
        """Append a text; return its row."""
        count = len(text.starts)
        unknown: tuple[None, ...] = (None,) * count
        self.text.append(text.text)
        self.tokens.append(count)
        self.starts.append(text.starts)
        self.ends.append(text.ends)
        for name, column in self.layers.items():
            column.append(getattr(text, name) or unknown)
        self.head.append(text.head or (-1,) * count)
        return len(self.text) - 1

    def tables(self, **more: pa.Array) -> tuple[pa.Table, pa.Table]:
        """Return the table of the texts, with additional columns, and that of the tokens."""
        import pyarrow as pa

        counts = np.array(self.tokens, dtype=np.int64)
        total = int(counts.sum())
        starts, ends, head = (
            np.fromiter(chain.from_iterable(column), np.int64)
            for column in (self.starts, self.ends, self.head)
        )
        labels = {
            name: pa.array(list(chain.from_iterable(column)), pa.string()).dictionary_encode()
            for name, column in self.layers.items()
        }
        # The end of the previous token, 0 for the first of a text.
        before = np.concatenate([[0], ends[:-1]]) if total else ends
        first = np.cumsum(counts)[:-1]
        before[first[(first < total)]] = 0
        if any(len(column) != total for column in (starts, ends, head, *labels.values())):
            raise ValueError("annotation and tokens differ in number")
        if (starts < before).any() or (ends <= starts).any():
            raise ValueError("tokens overlap, are empty, or are not in the text's order")
        last = np.repeat([len(text) for text in self.text], counts)
        if (ends > last).any():
            raise ValueError("a token ends behind its text")
        texts = {
            **more,
            "text": pa.array(self.text, pa.large_string()),
            "tokens": pa.array(counts, pa.int32()),
        }
        tokens = {
            "gap": pa.array(starts - before, pa.int32()),
            "length": pa.array(ends - starts, pa.int32()),
            **labels,
            "head": pa.array(head, pa.int32()),
        }
        return pa.table(texts), pa.table(tokens)


def tables_of(
    documents: Iterable[RawDocument], pairs: Iterable[RawPair], source: str
) -> dict[str, pa.Table]:
    """Return the tables that `kb_cache.corpora.types.Corpus` describes.

    Args:
        documents: each with at least one sentence in every paragraph.
        pairs: each with a text in premise and hypothesis.
        source: name of the corpus, for its documents and pairs.
    """
    import pyarrow as pa

    ids: list[str] = []
    genres: list[str | None] = []
    marked: list[bool] = []
    paragraph_document: list[int] = []
    sentence_paragraph: list[int] = []
    sentences, passages = _TextColumns(), _TextColumns()
    for document in documents:
        for paragraph in document.paragraphs:
            for sentence in paragraph:
                sentences.add(sentence)
                sentence_paragraph.append(len(paragraph_document))
            paragraph_document.append(len(ids))
        ids.append(document.id)
        genres.append(document.genre)
        marked.append(document.has_paragraphs)
    pair_rows = [
        (pair.id, pair.label, passages.add(pair.premise), passages.add(pair.hypothesis))
        for pair in pairs
    ]
    pair_ids, labels, premises, hypotheses = zip(*pair_rows, strict=True) if pair_rows else [()] * 4
    sentence_table, token_table = sentences.tables(
        paragraph=pa.array(sentence_paragraph, pa.int32())
    )
    passage_table, passage_token_table = passages.tables()
    return {
        "documents": pa.table(
            {
                "id": pa.array(ids, pa.string()),
                "source": pa.array([source] * len(ids), pa.string()).dictionary_encode(),
                "genre": pa.array(genres, pa.string()).dictionary_encode(),
                "has_paragraphs": pa.array(marked, pa.bool_()),
            }
        ),
        "paragraphs": pa.table({"document": pa.array(paragraph_document, pa.int32())}),
        "sentences": sentence_table,
        "tokens": token_table,
        "pairs": pa.table(
            {
                "id": pa.array(pair_ids, pa.string()),
                "source": pa.array([source] * len(pair_ids), pa.string()).dictionary_encode(),
                "label": pa.array(labels, pa.string()).dictionary_encode(),
                "premise": pa.array(premises, pa.int32()),
                "hypothesis": pa.array(hypotheses, pa.int32()),
            }
        ),
        "passages": passage_table,
        "passage_tokens": passage_token_table,
    }


def corpus_of(
    documents: Iterable[RawDocument] = (),
    pairs: Iterable[RawPair] = (),
    name: str = "given",
    **credits: str,
) -> Corpus:
    """Return a corpus of documents and pairs that are in memory.

    ``credits`` are fields of `kb_cache.knowledge.Loaded`, such as ``licence``.
    """
    full = f"{KIND}-{name}"
    tables = tables_of(documents, pairs, full)
    described = {"version": name, "licence": "CC0-1.0", **credits}
    return Corpus(full, digest=content_digest(tables), tables=tables, **described)
