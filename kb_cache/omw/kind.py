"""The Open Multilingual Wordnet as a kind of knowledge base: one entry for each language.

Its wordnets are read from tab files, and from lexicons in WN-LMF. The first line of a tab file is
"# NAME, CODE, ADDRESS, LICENCE", the others "SYNSET, TYPE, TEXT" or, for definitions and examples,
"SYNSET, TYPE, NUMBER, TEXT", all separated by tabs. TYPE is "lemma", "def" or "exe", with or
without "CODE:" before it.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby, product
from math import prod
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from kb_cache.base import Compiled, Download, Kind, OwnDataOptions, Progress, Source, versions_of
from kb_cache.omw.types import KIND
from kb_cache.unpack import read_unpacked
from kb_cache.wordnet.lmf import LARGEST, is_lmf, read_lmf, spdx_of
from kbprobe.errors import SourceError, UsageError
from kbprobe.files import file_sha256
from kbprobe.options import named

if TYPE_CHECKING:
    import pyarrow as pa

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
_MOST_FORMS = 64
_NO_LETTERS_OF_WORDS = re.compile(r"[{}<>\[\]$=?_\xad\ufffd]")
_ALTERNATIVES = re.compile(r"[^\W\d_]{4}.*/|/.*[^\W\d_]{4}")
_ACCENTS = "\u0300\u0301\u0302\u0303"  # grave, acute, circumflex, tilde
_LATIN_MARKS = re.compile("[\u0300-\u036f]")


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


def without_variants(
    lemmas: Iterable[tuple[str, str]], endings: Mapping[str, str]
) -> list[tuple[str, str]]:
    """Drop words of a synset that are plurals of another one, or differ only in case.

    Of spellings that differ in case, the one with the fewest capitals is kept.

    Args:
        lemmas: pairs (synset, word).
        endings: of plurals, each with that of its singular.

    >>> pairs = [("1-n", word) for word in ("Anfíbios", "anfíbio", "anfíbios", "rã")]
    >>> [word for _, word in without_variants(pairs, {"s": ""})]
    ['anfíbio', 'rã']
    """
    found = []
    for synset, group in groupby(sorted(lemmas, key=itemgetter(0)), key=itemgetter(0)):
        spellings: dict[str, str] = {}
        for _, word in group:
            plain = word.lower()
            spellings[plain] = min(
                spellings.get(plain, word),
                word,
                key=lambda spelling: sum(letter.isupper() for letter in spelling),
            )
        for plain, word in spellings.items():
            if not any(singular in spellings for singular in _singulars(plain, endings)):
                found.append((synset, word))
    return found


def _singulars(text: str, endings: Mapping[str, str]) -> Iterator[str]:
    """Yield possible singulars of a word or expression by its endings, word by word."""
    forms = [
        [
            word,
            *(word.removesuffix(old) + new for old, new in endings.items() if word.endswith(old)),
        ]
        for word in text.split(" ")
    ]
    if prod(map(len, forms)) > _MOST_FORMS:
        return
    for words in product(*forms):
        if (one := " ".join(words)) != text:
            yield one


def is_damaged(word: str) -> bool:
    """Return whether a word contains remnants of markup or encodings, or is two words in one.

    >>> [is_damaged(word) for word in ("capital{{m}}", "mercado/mercadinho", "km/h", "pré-pago")]
    [True, True, False, False]
    """
    return bool(_NO_LETTERS_OF_WORDS.search(word) or _ALTERNATIVES.search(word))


def one_spelling_each(lemmas: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Drop spellings that differ from another one only by accents, hyphens and spaces.

    The spelling with most accents is kept, since lexicons omit accents more often than they add
    them; of several, the first. The diaeresis does not count, since Portuguese no longer uses it.

    >>> one_spelling_each([("1-n", "proteina"), ("1-n", "proteína"), ("2-n", "proteina")])
    [('1-n', 'proteína'), ('2-n', 'proteina')]
    """
    ordered = list(lemmas)
    best: dict[tuple[str, str], tuple[int, int]] = {}
    for at, (synset, word) in enumerate(ordered):
        apart = unicodedata.normalize("NFD", word.lower())
        plain = re.sub(r"[\W_]", "", _LATIN_MARKS.sub("", apart)) or word
        rank = (-sum(apart.count(mark) for mark in _ACCENTS), at)
        best[synset, plain] = min(best.get((synset, plain), rank), rank)
    return [ordered[at] for at in sorted(at for _, at in best.values())]


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
    synsets = {synset["id"]: _OFFSET.search(synset["id"]) for synset in lexicon.get("synsets", ())}
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
            examples += [(at, example["text"]) for example in sense.get("examples", ())]
    known = [synset for synset in lexicon.get("synsets", ()) if synset["id"] in named]
    examples += [
        (named[synset["id"]], text["text"]) for synset in known for text in synset["examples"]
    ]
    definitions = [
        (named[synset["id"]], text["text"]) for synset in known for text in synset["definitions"]
    ]
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
            if kind == "lemma" and any(is_damaged(word) for word in texts):
                left_out["whose word has remains of markup or encodings, or is two words"] += 1
                continue
            kinds[kind] += [(synset.replace("-s", "-a"), word) for word in texts if word]
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


class LexiconOptions(OwnDataOptions):
    """Options of ``kb-cache fetch omw``."""

    HELP = named(
        source="The tab file (wn-data-ita.tab), plain, gzip or bzip2, or the same wordnet in "
        "WN-LMF (omw-it.xml, or in a tar)."
    )
    language: str = Field(
        "", description="Language of the words (BCP 47); by default that of the file's first line."
    )


class LexiconKind(Kind[LexiconSource, LexiconOptions]):
    """Compile a wordnet of the Open Multilingual Wordnet.

    NAME is its language: it, pt, sq. Its tab files hold words, definitions and examples for the
    synsets of Princeton WordNet 3.0.
    """

    name = KIND
    title = "a wordnet of the Open Multilingual Wordnet"
    options = LexiconOptions
    #: That of most; an entry has its own lexicon's.
    licence = "CC-BY-3.0"
    language = "mul"
    attribution = (
        "Words, definitions and examples are as distributed by the Open Multilingual Wordnet "
        "(https://omwn.org/)."
    )
    citation = """@inproceedings{bond-foster-2013,
  title     = {Linking and Extending an {O}pen {M}ultilingual {W}ordnet},
  author    = {Bond, Francis and Foster, Ryan},
  booktitle = {Proceedings of the 51st Annual Meeting of the Association for Computational Linguistics},
  pages     = {1352--1362},
  year      = {2013}
}"""  # noqa: E501  # BibTeX reads no broken title
    contents = "{lemmas:,} words, {definitions:,} definitions, {examples:,} examples"
    #: Without it, the address of the language's file is told.
    needs_source = False

    @property
    def remedy(self) -> str:
        """Name the language and the file."""
        return f"kb-cache fetch {self.name} LANG --from FILE"

    def locate(self, options: LexiconOptions) -> Path | None:
        """Return the path given; the entry's name is the language."""
        if not options.name and options.source is not None:
            raise UsageError(
                "name the language: kb-cache fetch omw LANG --from FILE, LANG being it, pt, sq, ..."
            )
        return super().locate(options)

    def how_to_add(self, name: str) -> str:
        """Return where the language's file is published, and the command that reads it."""
        wanted = name.removeprefix(f"{self.name}-")
        if (code := code_of(wanted)) is None:
            return super().how_to_add(name)
        address = ADDRESS.format(code=code)
        return (
            f"Download {address}, then: "
            f"kb-cache fetch omw {wanted} --from {address.rpartition('/')[2]}"
        )

    def download_for(self, options: LexiconOptions) -> Download | None:
        """Return where the file is published: these files have no fixed versions to be checked."""
        wanted = options.name.removeprefix(f"{self.name}-")
        if code_of(wanted) is None:
            known = ", ".join(sorted(entry["language"] for entry in lexicons().values()))
            raise UsageError(
                f"kb-cache fetch omw needs a tab file: give it with --from FILE. "
                f"{f'No address is known for {wanted!r}; ' if wanted else ''}wordnets are "
                f"published for: {known}"
            )
        raise UsageError(
            f"kb-cache fetch omw {wanted} needs its tab file. {self.how_to_add(wanted)}"
        )

    def read(self, path: Path, options: LexiconOptions) -> LexiconSource:
        """Read the file into memory."""
        source = read_source(path)
        wanted = options.name.removeprefix(f"{self.name}-")
        if (code := code_of(wanted)) is not None and code != source.code:
            raise SourceError(
                f"{path} is of the language {source.version} ({source.code}), not {wanted}: "
                f"kb-cache fetch omw {source.version} --from {path}"
            )
        if not (options.licence or _licence_of(source)):
            raise SourceError(
                f"{path} is under {source.stated_licence!r}, a licence that kbprobe does not know: "
                "state it with --licence SPDX and --attribution TEXT"
            )
        return source

    def usual_credits(self, options: LexiconOptions, source: LexiconSource) -> Mapping[str, str]:
        """Return the credits stated by the file's first line and the list of wordnets."""
        cited = (_known(source).get("citation", ""), self.citation)
        return {
            "licence": _licence_of(source),
            "attribution": f"Contains words, definitions and examples of {source.title} "
            f"({source.address}), licence {source.stated_licence}. {self.attribution}",
            "citation": "\n\n".join(filter(None, cited)),
        }

    def compile(
        self, source: LexiconSource, options: LexiconOptions, folder: Path, progress: Progress
    ) -> Compiled:
        """Turn the lines into the tables of `kb_cache.omw.types.Lexicon`."""
        definitions: dict[str, list[str]] = {}
        for synset, text in source.definitions:
            definitions.setdefault(synset, []).append(text)
        joined = [(synset, "; ".join(texts)) for synset, texts in definitions.items()]
        return Compiled(
            description=f"{source.title}, of the Open Multilingual Wordnet",
            tables={
                "lemmas": _table(_commonest_first(source), "lemma"),
                "definitions": _table(joined, "text"),
                "examples": _table(source.examples, "text"),
            },
            notes=tuple(
                f"{count:,} lines left out {why}" for why, count in source.left_out.items()
            ),
            created_by=versions_of("wordfreq"),
        )

    def language_of(self, options: LexiconOptions, source: LexiconSource) -> str:
        """Return the language given, or that of the entry's name."""
        return options.language or options.name.removeprefix(f"{self.name}-")


def _known(source: LexiconSource) -> Mapping[str, str]:
    """Return what is known of the file's wordnet; nothing for another one of its language."""
    entry = lexicons().get(source.code, {})
    return entry if source.title.casefold() == entry.get("title", "").casefold() else {}


def _licence_of(source: LexiconSource) -> str:
    stated = source.stated_licence
    plain = LICENCES.get(stated.lower().strip(), "") or spdx_of(stated)
    return plain or _known(source).get("licence", "")


def _commonest_first(source: LexiconSource) -> list[tuple[str, str]]:
    """Order words by frequency: tab files list those of a synset in alphabetical order.

    Words with fewer than two letters ("5" for five), and abbreviations of two ("MI" for Milan),
    come last. If no frequencies are known, the order of the file is kept. Plurals and other
    spellings of a word in the same synset are left out.
    """
    from kb_cache.frequency import has_frequencies, zipf_frequencies

    endings = lexicons().get(source.code, {}).get("plurals", {})
    kept = without_variants(source.lemmas, endings)
    words = [lemma for _, lemma in kept]
    zipf = [0.0] * len(words)
    if has_frequencies(language := source.version or source.code):
        zipf = zipf_frequencies(words, language).tolist()
    few = [sum(letter.isalpha() for letter in word) < 2 + word.isupper() for word in words]
    order = sorted(range(len(words)), key=lambda at: (few[at], -zipf[at]))
    return one_spelling_each(kept[at] for at in order)


def _table(pairs: list[tuple[str, str]] | tuple[tuple[str, str], ...], column: str) -> pa.Table:
    import pyarrow as pa

    ordered = sorted(pairs, key=lambda pair: pair[0])  # stable: a synset's keep their order
    return pa.table(
        {
            "synset": pa.array([synset for synset, _ in ordered], pa.string()),
            column: pa.array([text for _, text in ordered], pa.string()),
        }
    )


OMW = LexiconKind()
