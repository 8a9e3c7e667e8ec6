"""Text corpora as flat arrays: documents, paragraphs, sentences, tokens; premises, hypotheses.

>>> from kb_cache.corpora.rows import RawDocument, corpus_of, words_in
>>> corpus = corpus_of([RawDocument("a", [[words_in("I see.", ["I", "see", "."])]])])
>>> corpus.sentences.text[0].as_py(), corpus.sentences.words(0)
('I see.', ['I', 'see', '.'])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from kb_cache.knowledge import Combined, Loaded
from kbprobe.arrays import Bools, Ints, run_starts
from kbprobe.columns import mask, single_chunk, to_numpy
from kbprobe.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

KIND = "corpus"

Int32s = npt.NDArray[np.int32]

#: The annotation that tokens may have; `layers` says which of them a corpus has.
LAYERS = ("upos", "xpos", "lemma", "deprel", "head")

#: Names of the tables of a snapshot, each with the columns that refer to rows of other tables.
TABLES: Mapping[str, Mapping[str, str]] = {
    "documents": {},
    "paragraphs": {"document": "documents"},
    "sentences": {"paragraph": "paragraphs"},
    "tokens": {},
    "pairs": {"premise": "passages", "hypothesis": "passages"},
    "passages": {},
    "passage_tokens": {},
}


@dataclass(frozen=True, eq=False, repr=False)
class CodedLabels:
    """A label for each of many things: ``names[codes[i]]``, or none if the code is -1.

    The order of the names has no meaning.
    """

    codes: Int32s
    names: Sequence[str]

    @classmethod
    def of_column(cls, column: pa.ChunkedArray | pa.Array) -> CodedLabels:
        """Read a dictionary column; a null means no label."""
        array = single_chunk(column)
        stored = to_numpy(array.indices.fill_null(-1)).astype(np.int32)
        return cls(stored, tuple(array.dictionary.to_pylist()))

    def __repr__(self) -> str:
        return f"<Labels: {len(self):,} of {len(self.names):,} kinds>"

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, at: int) -> str:
        code = int(self.codes[at])
        return self.names[code] if code >= 0 else ""

    @property
    def known(self) -> bool:
        """Whether anything has a label."""
        return bool((self.codes >= 0).any())

    def of(self, rows: Ints | slice) -> list[str]:
        """Return the labels of some rows; "" for none."""
        return [self.names[code] if code >= 0 else "" for code in self.codes[rows].tolist()]

    def is_in(self, *wanted: str) -> Bools:
        """Return for each row whether its label is one of these."""
        return self.where([name in wanted for name in self.names])

    def where(self, chosen: Sequence[bool] | Bools) -> Bools:
        """Return for each row whether its label is chosen; ``chosen`` is parallel to `names`."""
        return np.append(np.asarray(chosen, dtype=np.bool_), False)[self.codes]


@dataclass(frozen=True, eq=False, repr=False)
class Texts:
    """Many texts with their tokens: the sentences of documents, or the passages of pairs.

    The tokens of text ``i`` are ``token_start[i]:token_start[i + 1]``. They are in the text's
    order and do not overlap.

    Attributes:
        text: a large_string array.
        token_start: int64, one longer than ``text``.
        start, end: of every token, character offsets into its text: ``text[start:end]``.
        upos, xpos: universal part of speech; the source's own tag ("NNS").
        lemma: as the source has it.
        deprel: the dependency relation to the head.
        head: the head's position in its text, counted in tokens; the root of a tree is its own
            head; -1 where unknown.
    """

    text: pa.Array
    token_start: Ints
    start: Int32s
    end: Int32s
    upos: CodedLabels
    xpos: CodedLabels
    lemma: CodedLabels
    deprel: CodedLabels
    head: Int32s

    @classmethod
    def of_tables(cls, texts: pa.Table, tokens: pa.Table) -> Texts:
        """Reassemble the texts from the tables of `kb_cache.corpora.rows.tables_of`."""
        token_start = run_starts(to_numpy(texts["tokens"]).astype(np.int64))
        length = to_numpy(tokens["length"]).astype(np.int64)
        # The end of each token in the run of all texts, less where its own text begins there.
        ends = np.cumsum(to_numpy(tokens["gap"]) + length)
        before = np.concatenate([[0], ends])[token_start[:-1]]
        ends -= np.repeat(before, np.diff(token_start))
        return cls(
            text=single_chunk(texts["text"]),
            token_start=token_start,
            start=(ends - length).astype(np.int32),
            end=ends.astype(np.int32),
            head=to_numpy(tokens["head"]).astype(np.int32),
            **{name: CodedLabels.of_column(tokens[name]) for name in LAYERS if name != "head"},
        )

    def __repr__(self) -> str:
        return f"<Texts: {len(self):,} with {self.tokens:,} tokens>"

    def __len__(self) -> int:
        """Number of texts."""
        return len(self.token_start) - 1

    @property
    def tokens(self) -> int:
        """Number of tokens."""
        return len(self.start)

    @cached_property
    def token_text(self) -> Ints:
        """The row of the text of every token."""
        return np.repeat(np.arange(len(self), dtype=np.int64), np.diff(self.token_start))

    @cached_property
    def position(self) -> Ints:
        """The position of every token in its text, counted in tokens."""
        return np.arange(self.tokens, dtype=np.int64) - self.token_start[self.token_text]

    @cached_property
    def forms(self) -> CodedLabels:
        """The form of every token as it is in the text, with its case."""
        return CodedLabels.of_column(self._words.dictionary_encode())

    def words(self, row: int) -> list[str]:
        """Return the tokens of a text as they are in it."""
        text = self.text[row].as_py()
        of_text = slice(int(self.token_start[row]), int(self.token_start[row + 1]))
        spans = zip(self.start[of_text].tolist(), self.end[of_text].tolist(), strict=True)
        return [text[start:end] for start, end in spans]

    def layer_mask(self, layer: str) -> Bools:
        """Return for every token whether it has that annotation (one of `LAYERS`)."""
        found = getattr(self, layer)
        return np.asarray((found.codes if isinstance(found, CodedLabels) else found) >= 0)

    @property
    def _words(self) -> pa.Array:
        """The tokens as an array of strings: the texts' bytes, without those between tokens."""
        import pyarrow as pa

        if not self.tokens:
            return pa.array([], pa.large_string())
        _, bounds, data = self.text.buffers()
        bounds = np.frombuffer(bounds, np.int64)[self.text.offset :][: len(self) + 1]
        utf8 = np.frombuffer(data, np.uint8)[bounds[0] : bounds[-1]]
        # Where each character begins, in bytes: not at continuation bytes (10xxxxxx).
        byte = np.append(np.flatnonzero((utf8 & 0xC0) != 0x80), len(utf8))
        text_at = np.searchsorted(byte, bounds[:-1] - bounds[0])[self.token_text]
        start, end = byte[text_at + self.start], byte[text_at + self.end]
        inside = np.zeros(len(utf8) + 1, np.int8)
        inside[start] += 1
        inside[end] -= 1  # tokens may touch: the end of one is the beginning of the next
        kept = utf8[np.cumsum(inside[:-1], dtype=np.int8).astype(np.bool_)]
        offsets = run_starts((end - start).astype(np.int64))
        return pa.LargeStringArray.from_buffers(
            self.tokens, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(kept))
        )


@dataclass(frozen=True, eq=False, repr=False)
class SentencePairs:
    """Pairs of a premise and a hypothesis, each of which is one or more sentences.

    Attributes:
        id: a string array; ids are unique within a source.
        source: the corpus of every pair.
        label: as the source gives it ("entailment", "TRUE"); none where it gives none.
        premise, hypothesis: rows of ``passages``.
        passages: the texts.
    """

    id: pa.Array
    source: CodedLabels
    label: CodedLabels
    premise: Ints
    hypothesis: Ints
    passages: Texts

    def __repr__(self) -> str:
        return f"<Pairs: {len(self):,} of {', '.join(self.source.names)}>"

    def __len__(self) -> int:
        return len(self.premise)


class _Views:
    """The views of a corpus, made from its tables on first use.

    Documents and paragraphs are in the source's order, and so are sentences: two of them are
    neighbours in the text if their rows are and they have the same paragraph.
    """

    tables: Mapping[str, pa.Table]

    def __len__(self) -> int:
        """Number of sentences and pairs."""
        return int(self.tables["sentences"].num_rows + self.tables["pairs"].num_rows)

    @cached_property
    def document_ids(self) -> list[str]:
        """The id of every document, unique within its source."""
        found: list[str] = self.tables["documents"]["id"].to_pylist()
        return found

    @cached_property
    def document_source(self) -> CodedLabels:
        """The corpus to which every document belongs."""
        return CodedLabels.of_column(self.tables["documents"]["source"])

    @cached_property
    def document_genre(self) -> CodedLabels:
        """The genre of every document, as the source calls it."""
        return CodedLabels.of_column(self.tables["documents"]["genre"])

    @cached_property
    def has_paragraphs(self) -> Bools:
        """Whether the source of each document marks paragraphs; if not, it has one."""
        return mask(self.tables["documents"]["has_paragraphs"])

    @cached_property
    def paragraph_document(self) -> Ints:
        """The document of every paragraph."""
        return to_numpy(self.tables["paragraphs"]["document"]).astype(np.int64)

    @cached_property
    def sentence_paragraph(self) -> Ints:
        """The paragraph of every sentence."""
        return to_numpy(self.tables["sentences"]["paragraph"]).astype(np.int64)

    @cached_property
    def sentence_document(self) -> Ints:
        """The document of every sentence."""
        return self.paragraph_document[self.sentence_paragraph]

    @cached_property
    def sentences(self) -> Texts:
        """The sentences of all documents."""
        return Texts.of_tables(self.tables["sentences"], self.tables["tokens"])

    @cached_property
    def pairs(self) -> SentencePairs:
        """The pairs of premise and hypothesis; a corpus of documents has none."""
        table = self.tables["pairs"]
        return SentencePairs(
            id=single_chunk(table["id"]),
            source=CodedLabels.of_column(table["source"]),
            label=CodedLabels.of_column(table["label"]),
            premise=to_numpy(table["premise"]).astype(np.int64),
            hypothesis=to_numpy(table["hypothesis"]).astype(np.int64),
            passages=Texts.of_tables(self.tables["passages"], self.tables["passage_tokens"]),
        )

    @cached_property
    def layers(self) -> Mapping[str, frozenset[str]]:
        """The annotation (`LAYERS`) that any token has, by source."""
        found: dict[str, set[str]] = {}
        of_passage = np.full(len(self.pairs.passages), -1, dtype=np.int64)
        of_passage[self.pairs.premise] = self.pairs.source.codes
        of_passage[self.pairs.hypothesis] = self.pairs.source.codes
        of_sentence = self.document_source.codes[self.sentence_document]
        for texts, sources, labels in (
            (self.sentences, of_sentence, self.document_source),
            (self.pairs.passages, of_passage, self.pairs.source),
        ):
            of_token = sources[texts.token_text]
            for name in labels.names:
                found.setdefault(name, set())
            for layer in LAYERS:
                for code in np.unique(of_token[texts.layer_mask(layer)]).tolist():
                    found[labels.names[code]].add(layer)
        return {name: frozenset(layers) for name, layers in found.items()}


@dataclass(frozen=True, eq=False)
class Corpus(_Views, Loaded):
    """One compiled corpus.

    Attributes:
        tables: of the snapshot. ``documents``: ``id``, ``source``, ``genre`` (null where
            unknown), ``has_paragraphs``. ``paragraphs``: ``document``. ``sentences``:
            ``paragraph``, ``text``, ``tokens`` (their number). ``tokens``: ``gap`` (characters
            between the token before it, or the text's beginning, and its own beginning),
            ``length``, ``upos``, ``xpos``, ``lemma``, ``deprel`` (null where unknown), ``head``.
            ``pairs``: ``id``, ``source``, ``label``, ``premise`` and ``hypothesis`` (rows of
            ``passages``). ``passages`` and ``passage_tokens`` are like sentences and tokens.
    """

    tables: Mapping[str, pa.Table]

    def __repr__(self) -> str:
        return f"<Corpus {self.name}: {_size(self.tables)}, digest {self.digest[:12]}>"


class Corpora(_Views, Combined):
    """Several corpora as one; rows follow the order of the corpora."""

    def __init__(self, sources: Sequence[Corpus]) -> None:
        self._sources = tuple(sources)
        repeated = {
            source.name for source in sources if [s.name for s in sources].count(source.name) > 1
        }
        if not sources or repeated:
            what = f"{', '.join(sorted(repeated))} twice" if repeated else "none"
            raise UsageError(f"corpora must be given, each once; given: {what}")

    @property
    def sources(self) -> tuple[Corpus, ...]:
        """The corpora, in the order in which they were given."""
        return self._sources

    @cached_property
    def tables(self) -> Mapping[str, pa.Table]:  # type: ignore[override]  # a property suits
        """The tables of all corpora, one after the other."""
        return {name: self._joined_table(name, refers) for name, refers in TABLES.items()}

    def _joined_table(self, name: str, refers: Mapping[str, str]) -> pa.Table:
        import pyarrow as pa
        import pyarrow.compute as pc

        parts, before = [], dict.fromkeys(TABLES, 0)
        for source in self.sources:
            table = source.tables[name]
            for column, target in refers.items():
                at = table.column_names.index(column)
                moved = pc.add(table[column], pa.scalar(before[target], table[column].type))
                table = table.set_column(at, column, moved)
            parts.append(table)
            before = {each: rows + source.tables[each].num_rows for each, rows in before.items()}
        return pa.concat_tables(parts).unify_dictionaries()

    def __repr__(self) -> str:
        return f"<Corpora {self.name}: {_size(self.tables)}>"


#: What probes are built from.
TextCorpus = Corpus | Corpora


def combined(corpora: Sequence[Corpus]) -> TextCorpus:
    """Return one corpus as it is, and several as one."""
    return corpora[0] if len(corpora) == 1 else Corpora(corpora)


def _size(tables: Mapping[str, pa.Table]) -> str:
    counted = ("documents", "sentences", "pairs")
    return ", ".join(f"{tables[name].num_rows:,} {name}" for name in counted)
