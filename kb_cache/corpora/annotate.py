"""Sentences, tokens and annotation, by spaCy, for text that comes without them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from importlib.metadata import version as package_version
from typing import TYPE_CHECKING, Any

from kb_cache.corpora.reading import LONGEST, Skipped
from kb_cache.corpora.rows import RawText
from kbprobe.errors import MissingDependencyError, SourceError, require

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Span

#: The extra of kbprobe that installs spaCy.
EXTRA = "corpora"
#: Pipelines without a model: "blank:en".
BLANK = "blank:"
#: Characters that spaCy is given at a time; its parser takes about 1 GB for a million.
PIECE = 100_000


class Annotator:
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
        """Versions of what the annotation depends on; nothing if none was needed."""
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
        """Yield the sentences of paragraphs, each given with a key, which is handed back.

        A paragraph longer than `PIECE` is divided at spaces, so that its key comes more than
        once; one without sentences does not come.
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
    """A pipeline of spaCy is not installed."""

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

    They end where a sentence seems to end, if there is such a place, or else between words.
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
    """Take a text and its annotation from spaCy; what is unknown there is unknown here.

    ``parsed`` tells whether the whole document is, which spaCy finds out token by token.
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
