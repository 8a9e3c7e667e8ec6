"""GCIDE, WordNet's database files, and a lexicon in WN-LMF."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from tests.kb_cache.lmf_export import as_lmf
from tests.reliability.compiling import compiled
from tests.reliability.target import Refused, Target

_DATA = Path(__file__).parents[2] / "kb_cache" / "data"


def _gcide(folder: Path) -> list[Path]:
    return [Path(shutil.copy(_DATA / "gcide-mini-json" / "words_D.json", folder))]


def _read_gcide(path: Path) -> int:
    tables = compiled("gcide", path, path.parent / "compiled").tables
    return int(tables["senses"].num_rows)


def _wordnet(folder: Path) -> list[Path]:
    home = folder / "dict"
    shutil.copytree(_DATA / "mini-wordnet", home)
    return sorted(path for path in home.iterdir() if path.name != "LICENSE.txt")


def _read_wordnet(path: Path) -> list[tuple[str, int]]:
    """Compile the database that a file belongs to; return each synset's gloss and words' number."""
    tables = compiled("wordnet", path.parent, path.parent.parent / "compiled").tables
    words = [0] * tables["synsets"].num_rows
    for synset in tables["senses"]["synset"].to_pylist():
        words[synset] += 1
    glosses = tables["synsets"]["gloss"].to_pylist()
    return sorted(zip(map(_first_clause, glosses), words, strict=True))


def _first_clause(gloss: str) -> str:
    """The beginning of a gloss without its examples, which are in quotation marks."""
    return re.split('[;"]', re.sub('"[^"]*"', "", gloss))[0].strip()


def _expected_wordnet(path: Path) -> list[tuple[str, int]]:
    """Read glosses and numbers of words from the lines of data.*, as wndb(5WN) has them."""
    found = []
    for name in ("data.noun", "data.verb", "data.adj", "data.adv"):
        content = (path.parent / name).read_bytes() if (path.parent / name).exists() else b""
        for line in content.decode("utf-8", "replace").split("\n"):
            if line[:1].isspace() or not line.strip():  # the licence
                continue
            head, bar, gloss = line.partition("|")
            fields = head.split()
            if not bar or len(fields) < 4 or not re.fullmatch(r"[0-9a-fA-F]{2}", fields[3]):
                raise Refused(f"{name}: {line[:40]!r}")
            found.append((_first_clause(gloss), int(fields[3], 16)))
    return sorted(found)


def _lexicon(folder: Path) -> list[Path]:
    from kb_cache.wordnet.compile import compile_wordnet
    from kb_cache.wordnet.source import read_source
    from kb_cache.wordnet.types import WordNet

    tables = compile_wordnet(read_source(_DATA / "mini-wordnet"))
    stated = dict.fromkeys(("name", "version", "digest", "licence", "attribution"), "")
    return [as_lmf(WordNet(**stated, **tables), folder / "lexicon.xml")]


def _read_lexicon(path: Path) -> int:
    tables = compiled("wordnet", path, path.parent / "compiled").tables
    return int(tables["senses"].num_rows)


TARGETS = [
    Target("lmf", _lexicon, _read_lexicon),
    Target("gcide", _gcide, _read_gcide),
    Target(
        "wordnet", _wordnet, _read_wordnet, _expected_wordnet, names_file=False, both_refuse=False
    ),
]
