"""Compiling a corpus into tables: sentences, tokens and annotation, by spaCy where needed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from importlib.metadata import version as package_version
from typing import TYPE_CHECKING, Any

from kb_cache.base import Progress
from kb_cache.corpora.reading import LONGEST, Skipped
from kb_cache.corpora.rows import RawDocument, RawPair, RawText, tables_of
from kb_cache.corpora.source import CorpusSource, PlainDocument, PlainPair, read_items
from kbprobe.errors import MissingDependencyError, SourceError, require

if TYPE_CHECKING:
    import pyarrow as pa
    from spacy.language import Language
    from spacy.tokens import Span


#: The extra of kbprobe that installs spaCy.
EXTRA = "corpora"
#: Pipelines without a model: "blank:en".
BLANK = "blank:"
#: Characters that spaCy is given at a time; its parser takes about 1 GB for a million.
PIECE = 100_000


class TextAnnotator:
    """Splits texts into sentences and tokens, and tags, lemmatises and parses them.

    Annotation for which the pipeline has no component is unknown. It is loaded when first needed.
    """

    def __init__(self, pipeline: str) -> None:
        self.pipeline = pipeline
        self.used = False

    @cached_property
    def _nlp(self) -> Language:
        require("spacy", EXTRA, "Splitting text into sentences and tokens")
        import spacy

        self.used = True
        if self.pipeline.startswith(BLANK):
            nlp = spacy.blank(self.pipeline.removeprefix(BLANK))
        else:
            try:
                nlp = spacy.load(self.pipeline, exclude=["ner"])
            except OSError as error:
                raise MissingPipelineError(self.pipeline) from error
        if not any(nlp.has_pipe(name) for name in ("parser", "senter", "sentencizer")):
            nlp.add_pipe("sentencizer")
        return nlp

    @property
    def created_by(self) -> dict[str, str]:
        """Versions of the packages that the annotation depends on; empty if none was needed."""
        if not self.used:
            return {}
        meta = self._nlp.meta
        model = {self.pipeline: str(meta.get("version", ""))} if not self._blank else {}
        return {"spacy": package_version("spacy"), **model}

    @property
    def _blank(self) -> bool:
        return self.pipeline.startswith(BLANK)

    def note(self) -> tuple[str, ...]:
        """Return a note on the annotation, for the snapshot."""
        if not self.used:
            return ()
        by = f"Sentences and tokens are by spaCy's {self.pipeline}"
        return (f"{by}, by rules alone: there are no tags." if self._blank else f"{by}.",)

    def passages(self, texts: Iterable[str]) -> Iterator[RawText]:
        """Yield each text with its tokens; texts are of `PIECE` characters at most."""
        for doc in self._nlp.pipe(texts, batch_size=64):
            yield _raw(doc[:], doc.has_annotation("DEP"))

    def paragraphs(
        self, paragraphs: Iterable[tuple[Any, str]], skipped: Skipped
    ) -> Iterator[tuple[Any, list[RawText]]]:
        """Yield the sentences of paragraphs, each given with a key, which is returned with them.

        A paragraph longer than `PIECE` is divided at spaces, so that its key occurs more than once;
        a paragraph without sentences is not yielded.
        """
        pieces = ((piece, key) for key, text in paragraphs for piece in _pieces(text, key, skipped))
        for doc, key in self._nlp.pipe(pieces, as_tuples=True, batch_size=64):
            sentences: list[RawText] = []
            parsed = doc.has_annotation("DEP")
            for span in doc.sents:
                sentence = _raw(span, parsed)
                if len(sentence.text) > LONGEST:
                    why = f"sentences of more than {LONGEST:,} characters were left out"
                    skipped.add(why, str(key))
                    if sentences:
                        yield key, sentences
                    sentences = []
                elif sentence.text:
                    sentences.append(sentence)
            if sentences:
                yield key, sentences


class MissingPipelineError(MissingDependencyError):
    """A spaCy pipeline is not installed."""

    def __init__(self, pipeline: str) -> None:
        SourceError.__init__(
            self,
            f"spaCy's pipeline {pipeline!r}, which splits and tags text that comes without "
            f"sentences or tags, is not installed. Install it with: python -m spacy download "
            f"{pipeline}, or name another one with --pipeline; --pipeline {BLANK}en needs no "
            "model and gives no tags",
        )


def _pieces(text: str, key: Any, skipped: Skipped) -> Iterator[str]:
    """Divide a text into pieces that spaCy can take, with single spaces.

    They end where a sentence seems to end, if possible, or otherwise between words.
    """
    words = text.split()
    if len(text) > PIECE:
        skipped.add(f"paragraphs of more than {PIECE:,} characters were divided", str(key))
        kept = [word for word in words if len(word) <= LONGEST]
        if len(kept) < len(words):
            why = f"words of more than {LONGEST:,} characters were left out"
            skipped.add(why, str(key), len(words) - len(kept))
        words = kept
    text, begin = " ".join(words), 0
    while begin < len(text):
        end = len(text)
        if end - begin > PIECE:
            within = begin, begin + PIECE
            found = max(text.rfind(mark, *within) for mark in (". ", "! ", "? ")) + 1
            end = found or text.rfind(" ", *within)
        yield text[begin:end]
        begin = end + 1


def _raw(span: Span, parsed: bool) -> RawText:
    """Convert a text and its annotation from spaCy; what is unknown there is unknown here.

    ``parsed`` says whether the whole document is parsed, which spaCy checks token by token.
    """
    tokens = [token for token in span if not token.is_space]
    if not tokens:
        return RawText("")
    first = tokens[0].idx
    starts = [token.idx - first for token in tokens]
    ends = [start + len(token.text) for start, token in zip(starts, tokens, strict=True)]
    text = span.text[first - span[0].idx :][: ends[-1]]
    row = {token.i: at for at, token in enumerate(tokens)}
    return RawText(
        text,
        starts,
        ends,
        [token.pos_ or None for token in tokens],
        [token.tag_ or None for token in tokens],
        [token.lemma_ or None for token in tokens],
        [token.dep_ or None for token in tokens],
        [row.get(token.head.i, -1) for token in tokens] if parsed else (),
    )


def compile_corpus(
    source: CorpusSource,
    name: str,
    annotator: TextAnnotator,
    *,
    columns: Mapping[str, str],
    genres: Sequence[str] = (),
    progress: Progress | None = None,
) -> tuple[dict[str, pa.Table], tuple[str, ...]]:
    """Compile a corpus into the tables that `kb_cache.corpora.types.Corpus` describes.

    Args:
        source: its files.
        name: the name of the corpus, for its documents and pairs.
        annotator: splits and tags texts without sentences or tokens.
        columns: see `kb_cache.corpora.source.read_items`.
        genres: keep only documents of these genres; if empty, all.
        progress: called with the number of documents and pairs done, and the total.

    Returns:
        The tables, and notes on what was skipped.

    Raises:
        SourceError: a file is malformed, or nothing is left.
    """
    skipped = Skipped()
    documents: list[RawDocument | PlainDocument] = []
    pairs: list[PlainPair] = []
    for item in read_items(source, columns, skipped):
        if isinstance(item, PlainPair):
            pairs.append(item)
        elif genres and item.genre not in genres:
            skipped.add("documents of other genres were left out", item.id)
        else:
            documents.append(item)
    total = len(documents) + len(pairs)
    report = progress or (lambda done, total: None)
    finished = [
        document for document in _annotated(documents, annotator, skipped) if document.paragraphs
    ]
    report(len(documents), total)
    raw_pairs = _with_tokens(pairs, annotator)
    report(total, total)
    if not finished and not raw_pairs:
        left_out = " ".join(skipped.notes())
        raise SourceError(f"{source.path} holds no sentence and no pair. {left_out}".strip())
    named = [
        document._replace(id=id_) for document, id_ in zip(finished, _unique(finished), strict=True)
    ]
    paired = [
        pair._replace(id=id_) for pair, id_ in zip(raw_pairs, _unique(raw_pairs), strict=True)
    ]
    notes = (*annotator.note(), *skipped.notes(), *_unusable(finished))
    return tables_of(named, paired, name), notes


def _unusable(documents: Sequence[RawDocument]) -> Iterator[str]:
    """Yield notes on documents that no probe can use: forms are hidden, or tags not Penn's."""
    sentences = [
        sentence for document in documents for some in document.paragraphs for sentence in some
    ]
    hidden = sum(not sentence.text.strip(" _.,;:!?") for sentence in sentences)
    if hidden * 2 > len(sentences):
        yield (
            f"{hidden:,} of {len(sentences):,} sentences have hidden forms (_): the treebank is "
            "published without its text. Restore the forms with the treebank's own script, and "
            "fetch the result."
        )
    tags = [tag for sentence in sentences for tag in sentence.xpos if tag]
    if tags and not any(tag.startswith(("NN", "VB")) for tag in tags):
        yield (
            f"None of the tags (such as {', '.join(sorted(set(tags))[:3])}) is a noun or verb of "
            "the Penn Treebank, which probes of function words need. Fetch the same text as plain "
            "text (.txt) to have it tagged by --pipeline."
        )


def _annotated(
    documents: Sequence[RawDocument | PlainDocument], annotator: TextAnnotator, skipped: Skipped
) -> list[RawDocument]:
    """Add sentences and tokens to plain documents."""
    plain = {at: one for at, one in enumerate(documents) if isinstance(one, PlainDocument)}
    paragraphs: dict[int, list[list[RawText]]] = {at: [] for at in plain}
    if plain:
        texts = (
            (_At(at, document.id), text)
            for at, document in plain.items()
            for text in document.paragraphs
        )
        for key, sentences in annotator.paragraphs(texts, skipped):
            paragraphs[key.row].append(sentences)
    finished = []
    for at, document in enumerate(documents):
        if isinstance(document, RawDocument):
            finished.append(document)
        elif paragraphs[at]:
            finished.append(
                RawDocument(document.id, paragraphs[at], document.has_paragraphs, document.genre)
            )
        else:
            skipped.add("documents without a sentence were left out", document.id)
    return finished


class _At:
    """The row of a document, which shows its id in notes."""

    def __init__(self, row: int, id_: str) -> None:
        self.row, self.id = row, id_

    def __str__(self) -> str:
        return self.id


def _with_tokens(pairs: Sequence[PlainPair], annotator: TextAnnotator) -> list[RawPair]:
    """Add tokens to pairs; each distinct text is annotated once."""
    if not pairs:
        return []
    distinct = list(
        dict.fromkeys(text for pair in pairs for text in (pair.premise, pair.hypothesis))
    )
    made = dict(zip(distinct, annotator.passages(distinct), strict=True))
    return [
        RawPair(pair.id, made[pair.premise], made[pair.hypothesis], pair.label) for pair in pairs
    ]


def _unique(items: Iterable[RawDocument | RawPair]) -> list[str]:
    """The items' ids; one that occurs again gets a number."""
    seen: Counter[str] = Counter()
    found = []
    for item in items:
        seen[item.id] += 1
        found.append(item.id if seen[item.id] == 1 else f"{item.id}#{seen[item.id]}")
    return found
