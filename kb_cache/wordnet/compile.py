"""Compiling a WordNet database in NLTK's layout into tables.

NLTK's own reader parses the files, so that what we hold is what NLTK's users see; we add the
mentions, and the checks that turn a broken file into an error that names the line.

Importing this module imports NLTK (a second or two): import it where it is used.
"""

from __future__ import annotations

import io
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from nltk.corpus.reader.wordnet import VERB_FRAME_STRINGS, WordNetCorpusReader, WordNetError
from nltk.data import PathPointer

from kb_cache.base import Progress
from kb_cache.mentions import Inflections, MentionFinder
from kb_cache.wordnet.source import DATA_FILES, EXCEPTION_FILES, WordNetSource
from kb_cache.wordnet.types import POINTERS
from kbprobe.arrays import Ints
from kbprobe.errors import SourceError

_DATA_POS = dict(zip(DATA_FILES, "nvar", strict=True))
_FILE_SUFFIX = {pos: name.removeprefix("data.") for name, pos in _DATA_POS.items()}
_KIND_CODE = {symbol: code for code, symbol in enumerate(POINTERS)}


class _Bytes(io.BytesIO):
    """A file in memory that returns text at byte offsets, like NLTK's streams."""

    def readline(self, size: int | None = -1) -> str:  # type: ignore[override]
        return super().readline(size).decode("utf-8")

    def __next__(self) -> str:  # type: ignore[override]
        return super().__next__().decode("utf-8")


class _DatabaseFiles(PathPointer):  # type: ignore[misc]
    """Files in memory, as the root of a corpus reader.

    NLTK requires paths to be within ``nltk.data.path``, which is global; a root that is not a path
    avoids changing it.
    """

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.files = files

    def open(self, encoding: str | None = None) -> Any:
        raise IsADirectoryError

    def file_size(self) -> int:
        return 0

    def join(self, fileid: str) -> Any:
        return self


class _DatabaseReader(WordNetCorpusReader):  # type: ignore[misc]
    """NLTK's reader over files in memory."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The multilingual functions")
            super().__init__(_DatabaseFiles(files), None)

    def open(self, file: str) -> _Bytes:
        return _Bytes(self.root.files[file])

    def map_wn(self, version: str = "wordnet") -> None:
        """Skip the map to WordNet 3.0, which needs that corpus to be installed."""


class _DataLine(NamedTuple):
    """The position of a synset in the source: ``data.noun``, line 30."""

    file: str
    number: int
    offset: int


def compile_wordnet(source: WordNetSource, progress: Progress | None = None) -> dict[str, pa.Table]:
    """Compile a WordNet into the tables that `kb_cache.wordnet.types.WordNet` describes.

    Deterministic: the same source, NLTK and lemminflect give equal tables. ``progress`` is called
    now and then with (synsets done, synsets in all).

    Raises:
        SourceError: a file is malformed; the message names file and line.
    """
    reader = _open_reader(source.files)
    lines = list(_lines(source.files))
    tables = _Tables(source.files, lines, reader)
    for row, line in enumerate(lines):
        tables.add(row, line, _read_synset(reader, line))
        if progress and (row % 1000 == 0 or row + 1 == len(lines)):
            progress(row + 1, len(lines))
    return tables.finish()


def _open_reader(files: Mapping[str, bytes]) -> _DatabaseReader:
    _check_lexnames(files["lexnames"])
    try:
        return _DatabaseReader(files)
    except WordNetError as error:  # "file index.noun, line 31: ..."
        raise SourceError(str(error).removeprefix("file ")) from error
    except (ValueError, LookupError, StopIteration, RuntimeError) as error:
        raise SourceError(_blame(files, error)) from error


def _check_lexnames(content: bytes) -> None:
    for i, line in enumerate(content.splitlines()):
        fields = line.split()
        if len(fields) != 3 or not fields[0].isdigit() or int(fields[0]) != i:
            raise SourceError(
                f"lexnames, line {i + 1}: expected '{i:02d} NAME NUMBER', found "
                f"{line[:80].decode(errors='replace')!r}"
            )


def _blame(files: Mapping[str, bytes], error: Exception) -> str:
    """Find the line on which NLTK gave up without saying so: it is not UTF-8, or is too short."""
    for name, content in files.items():
        for number, line in enumerate(content.splitlines(), start=1):
            try:
                text = line.decode()
            except UnicodeDecodeError as bad:
                return f"{name}, line {number}: not UTF-8 ({bad.reason} at byte {bad.start})"
            fields = text.split()
            if name in EXCEPTION_FILES and not fields:
                return f"{name}, line {number}: empty"
            if name.startswith("index.") and name != "index.sense" and not text.startswith(" "):
                pointers = fields[3] if len(fields) > 3 and fields[3].isdecimal() else "0"
                synsets = fields[2] if len(fields) > 2 and fields[2].isdecimal() else "1"
                if len(fields) < 6 + int(pointers) + int(synsets):
                    return f"{name}, line {number}: cut short: {text[:80]!r}"
    return f"the database cannot be read: {type(error).__name__}: {error}"


def _lines(files: Mapping[str, bytes]) -> Iterator[_DataLine]:
    for name in DATA_FILES:
        offset = 0
        for number, line in enumerate(files[name].splitlines(keepends=True), start=1):
            if not line[:1].isspace():
                if line[:8] != b"%08d" % offset:
                    raise SourceError(
                        f"{name}, line {number}: starts with {line[:8].decode(errors='replace')!r}"
                        f" but stands at byte {offset}; the file was edited or its line ends "
                        "were converted. Take the original file."
                    )
                yield _DataLine(name, number, offset)
            offset += len(line)


def _read_synset(reader: _DatabaseReader, line: _DataLine) -> Any:
    try:
        with warnings.catch_warnings():
            # NLTK warns and goes on, with None, where a pointer leads nowhere.
            warnings.filterwarnings("error", message="No WordNet synset found")
            return reader.synset_from_pos_and_offset(_DATA_POS[line.file], line.offset)
    except Exception as error:
        # The reader fails in many ways (also StopIteration, AssertionError, a Warning) on lines
        # that are cut short; each means the same to the user. None of our code runs in the try.
        reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        if isinstance(error, KeyError):  # a part of speech of a word that no index has
            reason = f"a word of it is not in index.{line.file.removeprefix('data.')}"
        raise SourceError(f"{line.file}, line {line.number}: {reason[:300]}") from error


class _Tables:
    """Collects the columns of all tables, synset by synset."""

    def __init__(
        self, files: Mapping[str, bytes], lines: Sequence[_DataLine], reader: _DatabaseReader
    ) -> None:
        self._index = reader._lemma_pos_offset_map
        self._synset = {(_DATA_POS[line.file], line.offset): row for row, line in enumerate(lines)}
        self._counts = _counts(files["cntlist.rev"])
        self._finder = MentionFinder(_inflections(files))
        #: The rows of each table, in the order of its columns.
        self._rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in _SCHEMAS}
        self._sense_start: list[int] = []
        # Pointers as integers: kind, source, target, source lemma, target lemma (-1: none).
        # Lemmas become rows of ``senses`` once all synsets have theirs.
        self._pointers: list[tuple[int, int, int, int, int]] = []

    def add(self, row: int, line: _DataLine, synset: Any) -> None:
        """Add one synset, which must be the next."""
        name, pos = synset.name(), synset.pos()
        gloss = synset.definition()
        self._rows["synsets"].append((name, pos, synset.offset(), synset.lexname(), gloss))
        senses = self._rows["senses"]
        first = len(senses)
        self._sense_start.append(first)
        for lemma in synset.lemmas():
            number = self._sense_number(lemma.name(), synset)
            key, marker = lemma.key(), lemma.syntactic_marker() or ""
            count = self._counts.get(key, 0)
            senses.append((row, lemma.name(), number, key, count, lemma._lex_id, marker))
        self._add_examples(row, first, synset)
        self._add_pointers(row, line, synset)
        self._add_frames(row, first, synset)

    def _sense_number(self, lemma: str, synset: Any) -> int:
        """WordNet's own sense number: satellites are counted among the adjectives."""
        pos = "a" if synset.pos() == "s" else synset.pos()
        try:
            return 1 + int(self._index[lemma.lower()][pos].index(synset.offset()))
        except (KeyError, ValueError) as error:
            raise SourceError(
                f"index.{_FILE_SUFFIX[pos]} does not list {lemma} at {synset.offset():08d}"
            ) from error

    def _add_examples(self, row: int, first: int, synset: Any) -> None:
        examples, mentions = self._rows["examples"], self._rows["mentions"]
        for text in synset.examples():
            for sense, lemma in enumerate(synset.lemma_names(), start=first):
                span = self._finder.find(text, lemma, synset.pos())
                if span is not None:
                    mentions.append((len(examples), sense, *span))
            examples.append((row, text))

    def _add_pointers(self, row: int, line: _DataLine, synset: Any) -> None:
        position = {lemma.name(): i for i, lemma in enumerate(synset.lemmas())}
        for symbol, targets in synset._pointers.items():
            for pos, offset in targets:
                self._add_pointer(line, symbol, row, (pos, offset), -1, -1)
        for (lemma, symbol), lexical in synset._lemma_pointers.items():
            for pos, offset, target in lexical:
                self._add_pointer(line, symbol, row, (pos, offset), position[lemma], target)

    def _add_pointer(
        self, line: _DataLine, symbol: str, row: int, to: tuple[str, int], source: int, target: int
    ) -> None:
        pos, offset = to
        target_row = self._synset.get(("a" if pos == "s" else pos, offset))
        if symbol not in _KIND_CODE or target_row is None:
            what = "is of an unknown kind" if symbol not in _KIND_CODE else "leads to no synset"
            raise SourceError(
                f"{line.file}, line {line.number}: the pointer '{symbol} {offset:08d} {pos}' {what}"
            )
        self._pointers.append((_KIND_CODE[symbol], row, target_row, source, target))

    def _add_frames(self, row: int, first: int, synset: Any) -> None:
        shared = Counter(synset.frame_ids())
        frames = [(-1, frame) for frame in synset.frame_ids()]
        for sense, lemma in enumerate(synset.lemmas(), start=first):
            frames += [(sense, f) for f in (Counter(lemma.frame_ids()) - shared).elements()]
        self._rows["frames"] += [(row, *frame, VERB_FRAME_STRINGS[frame[1]]) for frame in frames]

    def finish(self) -> dict[str, pa.Table]:
        """Make the Arrow tables."""
        tables = tables_of(self._rows)
        owner = tables["senses"]["synset"].to_numpy()
        try:
            tables["pointers"] = pointer_table(self._pointers, self._sense_start, owner)
        except ForeignLemmaError as error:
            name = self._rows["synsets"][error.source][0]
            raise SourceError(
                f"a lexical pointer of {name} leads to a word that its target lacks"
            ) from error
        return tables


class ForeignLemmaError(ValueError):
    """A lexical pointer leads to a lemma that its target does not have; ``source`` is its row."""

    def __init__(self, source: int) -> None:
        super().__init__(f"a lexical pointer of synset {source} leads to no lemma of its target")
        self.source = source


def tables_of(rows: Mapping[str, list[tuple[Any, ...]]]) -> dict[str, pa.Table]:
    """Return the tables but for the pointers, given the rows of each in its columns' order."""
    tables = {}
    for name, schema in _SCHEMAS.items():
        found = rows.get(name, [])
        columns = zip(*found, strict=True) if found else [()] * len(schema)
        arrays = [pa.array(x, kind) for x, (_, kind) in zip(columns, schema, strict=True)]
        tables[name] = pa.table(arrays, schema=pa.schema(schema))
    return tables


def pointer_table(
    pointers: Iterable[tuple[int, int, int, int, int]],
    sense_start: Sequence[int],
    synset_of_sense: Ints,
) -> pa.Table:
    """Return the table of pointers, sorted, each once.

    Args:
        pointers: kind (its place in `POINTERS`), source and target (synsets), and the lemmas in
            them between which it holds, as places among their senses (-1: none).
        sense_start: (synsets,) the first sense of each.
        synset_of_sense: (senses,) the synset of each.

    Raises:
        ForeignLemmaError: a target has no such lemma.
    """
    unique = np.array(list(pointers) or np.empty((0, 5)), dtype=np.int64)
    unique = np.unique(unique, axis=0)
    kind, source, target, source_lemma, target_lemma = unique.T
    start = np.array(sense_start, dtype=np.int64)
    source_sense = np.where(source_lemma < 0, -1, start[source] + source_lemma)
    target_sense = np.where(target_lemma < 0, -1, start[target] + target_lemma)
    owner = synset_of_sense[target_sense.clip(max=len(synset_of_sense) - 1)]
    bad = np.flatnonzero((target_sense >= 0) & (owner != target))
    if bad.size:
        raise ForeignLemmaError(int(source[bad[0]]))
    kinds = pa.DictionaryArray.from_arrays(
        pa.array(kind, pa.int8()), pa.array(list(POINTERS.values()))
    )
    ends = {"source": source, "target": target,
            "source_sense": source_sense, "target_sense": target_sense}  # fmt: skip
    return pa.table(
        {"kind": kinds, **{name: pa.array(end, pa.int32()) for name, end in ends.items()}}
    )


_CATEGORY = pa.dictionary(pa.int8(), pa.string())
_SCHEMAS: Mapping[str, list[tuple[str, pa.DataType]]] = {
    "synsets": [
        ("name", pa.string()), ("pos", _CATEGORY), ("offset", pa.int32()), ("lexname", _CATEGORY),
        ("gloss", pa.string()),
    ],
    "senses": [
        ("synset", pa.int32()), ("lemma", pa.string()), ("number", pa.int16()),
        ("key", pa.string()), ("count", pa.int32()), ("lex_id", pa.int8()),
        ("syntactic_marker", _CATEGORY),
    ],
    "examples": [("synset", pa.int32()), ("text", pa.string())],
    "mentions": [
        ("example", pa.int32()), ("sense", pa.int32()), ("start", pa.int32()), ("end", pa.int32()),
    ],
    "frames": [
        ("synset", pa.int32()), ("sense", pa.int32()), ("frame", pa.int8()), ("text", _CATEGORY),
    ],
}  # fmt: skip


def _counts(content: bytes) -> dict[str, int]:
    """Sense key to count, from cntlist.rev (``key sense_number count``)."""
    counts = {}
    for number, line in enumerate(content.decode(errors="replace").splitlines(), start=1):
        match = re.fullmatch(r"(\S+) \d+ (\d+)\s*", line)
        if match is None:
            raise SourceError(
                f"cntlist.rev, line {number}: expected 'key sense count', found {line[:80]!r}"
            )
        counts[match[1]] = int(match[2])
    return counts


def _inflections(files: Mapping[str, bytes]) -> Inflections:
    exceptions: dict[str, dict[str, list[str]]] = {}
    for name, pos in zip(EXCEPTION_FILES, "nvar", strict=True):
        forms = exceptions[pos] = {}
        for number, line in enumerate(files[name].decode(errors="replace").split("\n"), start=1):
            form, *bases = line.split() or [""]
            if form and not bases:
                raise SourceError(f"{name}, line {number}: expected 'form base', found {line!r}")
            if form:
                forms[form] = bases
    return Inflections(WordNetCorpusReader.MORPHOLOGICAL_SUBSTITUTIONS, exceptions)
