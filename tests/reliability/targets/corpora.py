"""Corpora in each format that is read, and word vectors as text."""

from __future__ import annotations

import json
import math
import re
import shutil
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tests.real_data import MINIATURES
from tests.reliability.compiling import compiled
from tests.reliability.target import Refused, Target, Undecided

if TYPE_CHECKING:
    from kb_cache.corpora.annotate import TextAnnotator

_CORPORA = MINIATURES / "corpora"
_GLOVE = Path(__file__).parents[2] / "data" / "glove.sample.50d.txt"
_LINES = 200


def _head(source: Path, target: Path, lines: int = _LINES) -> Path:
    """Copy the first lines of a file."""
    with source.open("rb") as file:
        target.write_bytes(b"".join(islice(file, lines)))
    return target


def _conllu(folder: Path) -> list[Path]:
    return [_head(_CORPORA / "ewt-miniature.conllu", folder / "ewt.conllu")]


@cache
def _annotator() -> TextAnnotator:
    """One for all cases: to make it takes ten times as long as to read a file."""
    from kb_cache.corpora.annotate import TextAnnotator

    return TextAnnotator("blank:en")


def _read_corpus(path: Path) -> dict[str, int]:
    from kb_cache.corpora.annotate import compile_corpus
    from kb_cache.corpora.source import read_source

    tables, _ = compile_corpus(
        read_source(path), "x", _annotator(), columns={}, genres=(), progress=lambda *_: None
    )
    return {name: table.num_rows for name, table in tables.items()}


def _read_forms(path: Path) -> tuple[list[list[str]], int]:
    """The forms of the tokens of every sentence of a treebank, and how many are left out."""
    from kb_cache.corpora.conllu import read_conllu
    from kb_cache.corpora.reading import Skipped, decoded

    _read_corpus(path)  # what is left is compiled
    skipped = Skipped()
    text = decoded(path.read_bytes(), path.name, skipped)
    forms = [
        [sentence.text[a:b] for a, b in zip(sentence.starts, sentence.ends, strict=True)]
        for document in read_conllu(path.name, text, skipped)
        for paragraph in document.paragraphs
        for sentence in paragraph
    ]
    return forms, sum(skipped.counts.values())


def _expected_forms(path: Path) -> tuple[list[list[str]], int]:
    """Read them by https://universaldependencies.org/format.html, a block of lines at a time."""
    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:  # read as Windows-1252, line by line
        raise Undecided(str(error)) from error
    text = re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufeff]", "", text)
    lines = re.sub(r"\r\n?", "\n", text).split("\n")
    blocks: list[list[list[str]]] = [[]]
    for line in lines:
        if not line.strip():
            blocks.append([])
        elif not line.startswith("#"):
            blocks[-1].append(line.split("\t"))
    if any(sum(len("".join(row[1:2])) + 1 for row in block) > 9_000 for block in blocks):
        raise Undecided("a sentence may be too long")
    found = [_forms(block) for block in blocks if block]
    return [forms for forms in found if forms], sum(not forms for forms in found)


def _forms(rows: list[list[str]]) -> list[str] | None:
    """The forms of a sentence's tokens, None if a row is malformed."""
    if any(len(row) != 10 or not row[1] for row in rows):
        return None
    forms, waiting = [], [row for row in rows if "." not in row[0]]
    while waiting:
        row = waiting.pop(0)
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", row[0])
        if match is None:
            return None
        if not match[2]:
            forms.append(row[1])
            continue
        size = max(0, int(match[2]) - int(match[1]) + 1)
        parts, waiting = waiting[:size], waiting[size:]
        if not parts or parts[-1][0] != match[2]:
            return None
        whole = "".join(part[1] for part in parts) == row[1]
        forms += [part[1] for part in parts] if whole else [row[1]]
    return forms or None


def _pairs(folder: Path) -> list[Path]:
    return [
        _head(_CORPORA / "snli-miniature.jsonl", folder / "snli.jsonl", 40),
        _head(_CORPORA / "mnli-miniature.tsv", folder / "mnli.tsv", 40),
        Path(shutil.copy(_CORPORA / "rte-miniature.xml", folder / "rte.xml")),
    ]


def _texts(folder: Path) -> list[Path]:
    (folder / "plain.txt").write_text("One day it rained. They stayed.\n\nThen it was over.\n" * 5)
    rows = [{"id": f"d{at}", "text": f"Text number {at}. It is short."} for at in range(10)]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "list.json").write_text(json.dumps(rows))
    return [folder / "plain.txt", folder / "rows.jsonl", folder / "list.json"]


def _tagged(folder: Path) -> list[Path]:
    shutil.copytree(_CORPORA / "masc_tagged", folder / "masc")
    return sorted(path for path in (folder / "masc").rglob("*") if path.is_file())


def _read_tagged(path: Path) -> dict[str, int]:
    return _read_corpus(next(parent for parent in path.parents if parent.name == "masc"))


def _glove(folder: Path) -> list[Path]:
    plain = _head(_GLOVE, folder / "glove.txt", 60)
    lines = plain.read_bytes()
    stated = folder / "word2vec.txt"
    stated.write_bytes(b"%d %d\n" % (lines.count(b"\n"), lines.split(b"\n")[0].count(b" ")) + lines)
    return [plain, stated]


def _read_vectors(path: Path) -> list[tuple[str, bytes]]:
    from kb_cache.vectors.types import MATRIX_FILE, MATRIX_FOLDER

    folder = path.parent / "compiled"
    words = compiled("vectors", path, folder).tables["words"]["word"].to_pylist()
    matrix = np.fromfile(folder / MATRIX_FOLDER / MATRIX_FILE, dtype="<f4")
    rows = matrix.reshape(len(words), -1)
    return [(word, row.tobytes()) for word, row in zip(words, rows, strict=True)]


def _expected_vectors(path: Path) -> list[tuple[str, bytes]]:
    """Read a line at a time, each number with Python's own parser; of a word the first vector."""
    lines = path.read_bytes().removesuffix(b"\n").split(b"\n")
    first = lines[0].rstrip(b" \r").split(b" ")
    stated = len(first) == 2 and all(one.isdigit() for one in first)
    dimensions = int(first[1]) if stated else len(first) - 1
    if stated and int(first[0]) != len(lines) - 1:
        raise Refused("another number of words than the first line states")
    found: dict[str, bytes] = {}
    for line in lines[stated:]:
        word, *numbers = line.rstrip(b" \r").rsplit(b" ", dimensions)
        try:
            values = [float(number) for number in numbers]
            text = word.decode()
        except ValueError as error:
            raise Refused(str(error)) from error
        if len(values) != dimensions or not all(map(math.isfinite, values)):
            raise Refused(f"{line[:40]!r}")
        if text:
            found.setdefault(text, np.array(values, dtype="<f4").tobytes())
    return list(found.items())


TARGETS = [
    Target("corpus-conllu", _conllu, _read_forms, _expected_forms, both_refuse=False),
    Target("corpus-pairs", _pairs, _read_corpus),
    Target("corpus-tagged", _tagged, _read_tagged, names_file=False),
    Target("corpus-texts", _texts, _read_corpus),
    Target("vectors", _glove, _read_vectors, _expected_vectors, both_refuse=False),
]
