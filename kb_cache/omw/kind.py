"""The Open Multilingual Wordnet as a kind of knowledge base: one entry for each language."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field

from kb_cache.base import Compiled, Download, Kind, OwnDataOptions, Progress, versions_of
from kb_cache.omw.load import one_spelling_each, without_variants
from kb_cache.omw.source import ADDRESS, LICENCES, LexiconSource, code_of, lexicons, read_source
from kb_cache.omw.types import KIND
from kb_cache.wordnet.lmf import spdx_of
from kbprobe.errors import SourceError, UsageError
from kbprobe.options import named

if TYPE_CHECKING:
    import pyarrow as pa


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
