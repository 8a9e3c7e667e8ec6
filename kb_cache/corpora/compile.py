"""Compiling the source of a corpus into tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from kb_cache.base import Progress
from kb_cache.corpora.annotate import Annotator
from kb_cache.corpora.pairs import Pair
from kb_cache.corpora.reading import Skipped
from kb_cache.corpora.rows import RawDocument, RawPair, RawText, tables_of
from kb_cache.corpora.source import CorpusSource, PlainDocument, read_items
from kbprobe.errors import SourceError

if TYPE_CHECKING:
    import pyarrow as pa


def compile_corpus(
    source: CorpusSource,
    name: str,
    annotator: Annotator,
    *,
    columns: Mapping[str, str],
    genres: Sequence[str] = (),
    progress: Progress | None = None,
) -> tuple[dict[str, pa.Table], tuple[str, ...]]:
    """Compile a corpus into the tables that `kb_cache.corpora.types.Corpus` describes.

    Args:
        source: its files.
        name: of the corpus, for its documents and pairs.
        annotator: splits and tags what comes without sentences or tokens.
        columns: see `kb_cache.corpora.source.read_items`.
        genres: keep documents of these genres alone; none: of any.
        progress: called with documents and pairs done, and how many there are.

    Returns:
        The tables, and notes on what was skipped.

    Raises:
        SourceError: a file is malformed, or nothing is left.
    """
    skipped = Skipped()
    documents: list[RawDocument | PlainDocument] = []
    pairs: list[Pair] = []
    for item in read_items(source, columns, skipped):
        if isinstance(item, Pair):
            pairs.append(item)
        elif genres and item.genre not in genres:
            skipped.add("documents of other genres were left out", item.id)
        else:
            documents.append(item)
    total = len(documents) + len(pairs)
    report = progress or (lambda done, total: None)
    finished = [one for one in _annotated(documents, annotator, skipped) if one.paragraphs]
    report(len(documents), total)
    raw_pairs = _with_tokens(pairs, annotator)
    report(total, total)
    if not finished and not raw_pairs:
        left_out = " ".join(skipped.notes())
        raise SourceError(f"{source.path} holds no sentence and no pair. {left_out}".strip())
    named = [one._replace(id=id_) for one, id_ in zip(finished, _unique(finished), strict=True)]
    paired = [one._replace(id=id_) for one, id_ in zip(raw_pairs, _unique(raw_pairs), strict=True)]
    return tables_of(named, paired, name), (*annotator.note(), *skipped.notes())


def _annotated(
    documents: Sequence[RawDocument | PlainDocument], annotator: Annotator, skipped: Skipped
) -> list[RawDocument]:
    """Give plain documents their sentences and tokens."""
    plain = {at: one for at, one in enumerate(documents) if isinstance(one, PlainDocument)}
    paragraphs: dict[int, list[list[RawText]]] = {at: [] for at in plain}
    if plain:
        texts = ((_At(at, one.id), text) for at, one in plain.items() for text in one.paragraphs)
        for key, sentences in annotator.paragraphs(texts, skipped):
            paragraphs[key.row].append(sentences)
    finished = []
    for at, one in enumerate(documents):
        if isinstance(one, RawDocument):
            finished.append(one)
        elif paragraphs[at]:
            finished.append(RawDocument(one.id, paragraphs[at], one.has_paragraphs, one.genre))
        else:
            skipped.add("documents without a sentence were left out", one.id)
    return finished


class _At:
    """The row of a document, which shows its id in notes."""

    def __init__(self, row: int, id_: str) -> None:
        self.row, self.id = row, id_

    def __str__(self) -> str:
        return self.id


def _with_tokens(pairs: Sequence[Pair], annotator: Annotator) -> list[RawPair]:
    """Give pairs their tokens; each distinct text is annotated once."""
    if not pairs:
        return []
    distinct = list(
        dict.fromkeys(text for pair in pairs for text in (pair.premise, pair.hypothesis))
    )
    made = dict(zip(distinct, annotator.passages(distinct), strict=True))
    return [RawPair(one.id, made[one.premise], made[one.hypothesis], one.label) for one in pairs]


def _unique(items: Iterable[RawDocument | RawPair]) -> list[str]:
    """The items' ids; one that occurs again gets a number."""
    seen: Counter[str] = Counter()
    found = []
    for item in items:
        seen[item.id] += 1
        found.append(item.id if seen[item.id] == 1 else f"{item.id}#{seen[item.id]}")
    return found
