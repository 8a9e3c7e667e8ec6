"""Reading the wordnets of the Open Multilingual Wordnet: tab files, and lexicons in WN-LMF.

The first line of a tab file is "# NAME, CODE, ADDRESS, LICENCE", the others "SYNSET, TYPE, TEXT"
or, for definitions and examples, "SYNSET, TYPE, NUMBER, TEXT", all separated by tabs. TYPE is
"lemma", "def" or "exe", with or without "CODE:" before it.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from kb_cache.base import Source
from kb_cache.omw.load import is_damaged
from kb_cache.unpack import read_unpacked
from kb_cache.wordnet.lmf import LARGEST, is_lmf, read_lmf
from kbprobe.errors import SourceError
from kbprobe.files import file_sha256

ADDRESS = "https://raw.githubusercontent.com/omwn/omw-data/main/wns/{code}/wn-data-{code}.tab"
"""Where each wordnet's tab file is published."""

LICENCES: Mapping[str, str] = {
    "wordnet": "LicenseRef-WordNet",
    "mit": "MIT",
    "odc-by 1.0": "ODC-By-1.0",
    "apache 2.0": "Apache-2.0",
    "cc by": "CC-BY-3.0",
    "cc by 3.0": "CC-BY-3.0",
    "cc by 4.0": "CC-BY-4.0",
    "cc by-sa 3.0": "CC-BY-SA-3.0",
    "cc by sa 3.0": "CC-BY-SA-3.0",
    "cc by-sa 4.0": "CC-BY-SA-4.0",
    "cc by sa 4.0": "CC-BY-SA-4.0",
}
"""Licences as first lines state them -> their SPDX ids."""

_SYNSET = re.compile(r"\d{8}-[nvasr]")
_NO_WORD = re.compile(r"(?:PSEUDO)?GAP!?|\s*", re.IGNORECASE)
#: Italian tab files part elided articles and prepositions from the next word: "d' aviazione".
_ELIDED = re.compile(r"(?i)\b((?:d|c|s|l|un|(?:de|a|da|ne|su|co)ll|quell|quest|bell|sant)['’]) ")
_OFFSET = re.compile(r"-(\d{8})-([nvasr])$")
_REMARK = re.compile(r"\s*\([^()]*\)")
_COMMA = re.compile(r",(?!(?<=\d,)\d)")
_TYPED_AFTER = re.compile(r"(?<=[aeiouAEIOU])`")
_ADDRESS_ALONE = re.compile(r"\S*(?:www\.|://|\.org/|\.com/)\S*")
_HEADER = re.compile(r"#\s*([^\t]+)\t([a-z]{3})\b[^\t]*\t([^\t]*)\t([^\t]+)")


@dataclass(frozen=True)
class LexiconSource(Source):
    """A tab file, read.

    Attributes:
        title: the wordnet's name.
        code: the language, as an ISO 639-3 code.
        address: of the wordnet.
        stated_licence: the licence stated on the first line.
        lemmas, definitions, examples: pairs (synset, text) in the order of the file.
        left_out: reason why lines were left out -> how many.
    """

    title: str = ""
    code: str = ""
    address: str = ""
    stated_licence: str = ""
    lemmas: tuple[tuple[str, str], ...] = ()
    definitions: tuple[tuple[str, str], ...] = ()
    examples: tuple[tuple[str, str], ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)


def _with_accents(text: str) -> str:
    """Return a text with typed grave accents moved onto the preceding letters.

    >>> _with_accents("piu` generazioni")
    'più generazioni'
    """
    return unicodedata.normalize("NFC", _TYPED_AFTER.sub("\u0300", text))


def _words(text: str) -> list[str]:
    """Split what a line gives as one lemma, without remarks in parentheses or spaces in elisions.

    Commas between capitalised parts ("Atlanta, Georgia") and between digits belong to the word.

    >>> _words("cauteloso(a)"), _words("lende,material"), _words("2,4,6-trinitrotoluen")
    (['cauteloso'], ['lende', 'material'], ['2,4,6-trinitrotoluen'])
    """
    plain = _ELIDED.sub(r"\1", _REMARK.sub("", text))
    words = [word.strip(" ;") for word in _COMMA.split(plain)]
    is_name = ", " in plain and all(word[:1].isupper() for word in words)
    return [plain.strip(" ;")] if is_name else words


@cache
def lexicons() -> Mapping[str, Mapping[str, Any]]:
    """Return the known wordnets, by ISO 639-3 code."""
    import yaml

    file = Path(__file__).with_name("data") / "lexicons.yaml"
    found: dict[str, Mapping[str, Any]] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return found


def code_of(language: str) -> str | None:
    """Return the ISO 639-3 code of the wordnet in a language, given either of its codes.

    >>> code_of("it"), code_of("ita"), code_of("xx")
    ('ita', 'ita', None)
    """
    known = lexicons()
    by_language = {entry["language"]: code for code, entry in known.items()}
    return by_language.get(language, language if language in known else None)


def read_source(path: Path) -> LexiconSource:
    """Read a tab file, plain or compressed with gzip or bzip2, or the same wordnet in WN-LMF.

    Raises:
        SourceError: it cannot be read, or is not such a file.
    """
    return _read_lmf(path) if is_lmf(path) else _read_tab(path)


def _read_lmf(path: Path) -> LexiconSource:
    """Read a lexicon whose synsets are named by the offsets of Princeton WordNet 3.0.

    This is the case in lexicons published by the Open Multilingual Wordnet: "omw-it-02084071-n".
    """
    source = read_lmf(path)
    lexicon = source.lexicon
    synsets = {one["id"]: _OFFSET.search(one["id"]) for one in lexicon.get("synsets", ())}
    if not lexicon["id"].startswith("omw-") or not any(synsets.values()):
        raise SourceError(
            f"{path} has synsets of its own: kb-cache fetch wordnet {lexicon['id']} --from {path}"
        )
    named = {
        identity: f"{found[1]}-{found[2].replace('s', 'a')}"
        for identity, found in synsets.items()
        if found
    }
    left_out: Counter[str] = Counter()
    lemmas, examples = [], []
    for entry in lexicon.get("entries", ()):
        for sense in entry.get("senses", ()):
            if sense["synset"] not in named:
                left_out["of no synset"] += 1
                continue
            at = named[sense["synset"]]
            lemmas += [(at, word) for word in _words(entry["lemma"]["writtenForm"]) if word]
            examples += [(at, one["text"]) for one in sense.get("examples", ())]
    known = [one for one in lexicon.get("synsets", ()) if one["id"] in named]
    examples += [(named[one["id"]], text["text"]) for one in known for text in one["examples"]]
    definitions = [(named[one["id"]], text["text"]) for one in known for text in one["definitions"]]
    language = source.language
    return LexiconSource(
        path,
        source.sha256,
        language,
        title=lexicon["label"],
        code=code_of(language) or language,
        address=lexicon.get("url") or "",
        stated_licence=lexicon["license"],
        lemmas=tuple(dict.fromkeys(lemmas)),
        definitions=tuple(dict.fromkeys(definitions)),
        examples=tuple(dict.fromkeys(examples)),
        left_out=left_out,
    )


def _read_tab(path: Path) -> LexiconSource:
    try:
        lines = read_unpacked(path, LARGEST).decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise SourceError(f"{path} is not in UTF-8: {error}") from error
    header = _HEADER.match(lines[0]) if lines else None
    if header is None:
        raise SourceError(
            f"{path} is no tab file of the Open Multilingual Wordnet: its first line should be "
            "'# NAME, CODE, ADDRESS, LICENCE', parted by tabs"
        )
    kinds: dict[str, list[tuple[str, str]]] = {"lemma": [], "def": [], "exe": []}
    left_out: Counter[str] = Counter()
    for line in lines[1:]:
        if not line.strip() or line.startswith("#"):
            continue
        synset, _, rest = line.partition("\t")
        kind, _, text = rest.partition("\t")
        kind = kind.rpartition(":")[2]
        if kind not in kinds:
            left_out["of another type than lemma, def and exe"] += 1
            continue
        text = " ".join(text.rpartition("\t")[2].replace("_", " ").split())
        if not _SYNSET.fullmatch(synset):
            left_out["of no synset"] += 1
        elif kind == "lemma" and _NO_WORD.fullmatch(text):
            left_out["that say that the language has no word"] += 1
        elif kind == "def" and _ADDRESS_ALONE.fullmatch(text):
            left_out["whose definition is an address"] += 1
        else:
            texts = _words(text) if kind == "lemma" else [_with_accents(text)]
            if kind == "lemma" and any(is_damaged(one) for one in texts):
                left_out["whose word has remains of markup or encodings, or is two words"] += 1
                continue
            kinds[kind] += [(synset.replace("-s", "-a"), one) for one in texts if one]
    if not kinds["lemma"]:
        raise SourceError(f"{path} holds no lemmas")
    title, code, address, licence = (part.strip() for part in header.groups())
    return LexiconSource(
        path,
        {path.name: file_sha256(path)},
        lexicons().get(code, {}).get("language", code),
        title=title,
        code=code,
        address=address,
        stated_licence=licence,
        lemmas=tuple(dict.fromkeys(kinds["lemma"])),
        definitions=tuple(dict.fromkeys(kinds["def"])),
        examples=tuple(dict.fromkeys(kinds["exe"])),
        left_out=left_out,
    )
