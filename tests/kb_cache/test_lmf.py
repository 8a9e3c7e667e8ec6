"""WN-LMF: a lexicon with synsets of its own, one over Princeton's, and what is refused."""

from __future__ import annotations

import gzip
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from wn import lmf

from builders.function_words.nli.lexicon import WordKinds
from builders.wordnet.features import features_of
from kb_cache.fetching import fetch
from kb_cache.omw.load import load_in_language, load_lexicon
from kb_cache.wordnet.lmf import is_lmf, read_lmf, spdx_of
from kb_cache.wordnet.load import load_wordnet
from kb_cache.wordnet.types import WordNet
from kbprobe.errors import SourceError, UsageError
from tests.kb_cache.conftest import RunCli
from tests.kb_cache.lmf_export import as_lmf, lexicon_of

MINI = Path(__file__).parent / "data" / "mini-wordnet"
LexiconDict = dict[str, Any]


@pytest.fixture
def mini(cache: Path) -> WordNet:
    fetch("wordnet", source=MINI, name="mini")
    return load_wordnet("mini")


def plain(table: pa.Table, *without: str) -> list[dict[str, Any]]:
    return table.drop_columns(list(without)).to_pylist()


def pointers(wordnet: WordNet) -> set[tuple[Any, ...]]:
    return {tuple(one.values()) for one in wordnet.pointers.to_pylist()}


def write(path: Path, lexicon: LexiconDict, *more: LexiconDict) -> Path:
    lmf.dump({"lmf_version": "1.4", "lexicons": [lexicon, *more]}, path)
    return path


def same_but_for_the_format(one: WordNet, other: WordNet) -> None:
    """Compare a WordNet with its WN-LMF edition read back."""
    squeezed = [" ".join(gloss.split()) for gloss in one.synsets["gloss"].to_pylist()]
    assert other.synsets["gloss"].to_pylist() == squeezed
    assert plain(other.synsets, "name", "gloss") == plain(one.synsets, "name", "gloss")
    # The format has no lexical ids. Words that differ in case alone may be numbered otherwise.
    assert plain(other.senses, "lex_id", "number") == plain(one.senses, "lex_id", "number")
    numbers = zip(*(wn.senses["number"].to_pylist() for wn in (one, other)), strict=True)
    assert sum(a != b for a, b in numbers) < 0.001 * len(one.senses)
    names = other.synsets["name"].to_pylist()
    assert len(set(names)) == len(names)
    # Relations that are stated in one direction are made in both.
    more = pointers(other) - pointers(one)
    assert pointers(one) <= pointers(other)
    assert len(more) < 0.001 * len(one.pointers)


def test_a_wordnet_is_the_same_when_read_as_a_lexicon(mini: WordNet, tmp_path: Path) -> None:
    fetch("wordnet", source=as_lmf(mini, tmp_path / "mini.xml"), name="lexicon")
    lexicon = load_wordnet("lexicon")
    same_but_for_the_format(mini, lexicon)
    assert plain(lexicon.examples) == plain(mini.examples)
    assert plain(lexicon.mentions) == plain(mini.mentions)
    assert plain(lexicon.frames) == plain(mini.frames)
    assert lexicon.synset_id("dog.n.01") == mini.synset_id("dog.n.01")


@pytest.mark.slow
def test_the_whole_wordnet_is_the_same(cache: Path, tmp_path: Path) -> None:
    wordnet = load_wordnet()
    fetch("wordnet", source=as_lmf(wordnet, tmp_path / "wordnet.xml"), name="lexicon")
    same_but_for_the_format(wordnet, load_wordnet("lexicon"))


def compressed(path: Path) -> Path:
    target = path.with_suffix(".xml.gz")
    target.write_bytes(gzip.compress(path.read_bytes()))
    return target


def archived(path: Path) -> Path:
    target = path.with_name("lexicon.tar.xz")
    (path.parent / "LICENSE").write_text("Do what you like.", encoding="utf-8")
    with tarfile.open(target, "w:xz") as tar:
        for file in (path, path.parent / "LICENSE"):
            tar.add(file, arcname=f"lexicon/{file.name}")
    return target


@pytest.mark.parametrize("pack", [compressed, archived])
def test_lexicons_are_read_packed(
    mini: WordNet, tmp_path: Path, pack: Callable[[Path], Path]
) -> None:
    path = as_lmf(mini, tmp_path / "mini.xml")
    assert is_lmf(pack(path))
    assert read_lmf(pack(path)).lexicon["synsets"] == read_lmf(path).lexicon["synsets"]
    assert not is_lmf(MINI)
    assert not is_lmf(MINI / "data.noun")


def test_a_lexicon_says_whom_to_credit(mini: WordNet, run_cli: RunCli, tmp_path: Path) -> None:
    path = as_lmf(
        mini, tmp_path / "odenet.xml", label="Offenes Deutsches WordNet", language="de",
        license="https://creativecommons.org/licenses/by-sa/4.0/", url="https://example.org/odenet",
    )  # fmt: skip
    done = run_cli("fetch", "wordnet", "odenet", "--from", str(path))
    assert done.returncode == 0, done.stderr
    wordnet = load_wordnet("odenet")
    assert (wordnet.licence, wordnet.language) == ("CC-BY-SA-4.0", "de")
    assert "Offenes Deutsches WordNet 1 (https://example.org/odenet)" in wordnet.attribution


def test_a_licence_that_is_not_known_has_to_be_stated(mini: WordNet, tmp_path: Path) -> None:
    path = as_lmf(mini, tmp_path / "own.xml", license="ask us")
    with pytest.raises(SourceError, match=r"'ask us'.*--licence SPDX and --attribution"):
        fetch("wordnet", source=path, name="own")
    fetch("wordnet", source=path, name="own", licence="CC-BY-4.0", attribution="By us.")
    assert load_wordnet("own").attribution == "By us."


def test_licences_are_known_by_their_addresses() -> None:
    assert spdx_of("http://creativecommons.org/licenses/by/3.0/legalcode") == "CC-BY-3.0"
    assert spdx_of("https://wordnet.princeton.edu/license") == "LicenseRef-WordNet"
    assert spdx_of("GPL-3.0-or-later") == "GPL-3.0-or-later"
    assert spdx_of("all rights reserved") == ""


def test_what_is_below_a_gap_is_below_what_is_above_it(mini: WordNet, tmp_path: Path) -> None:
    """A lexicon may have synsets without words, to connect others."""
    lexicon = lexicon_of(mini)
    canine = mini.hypernyms.neighbours(mini.synset_id("dog.n.01")).tolist()[-1]
    gap = lexicon["synsets"][canine]["id"]
    for entry in lexicon["entries"]:
        entry["senses"] = [one for one in entry["senses"] if one["synset"] != gap]
    senses = {one["id"] for entry in lexicon["entries"] for one in entry["senses"]}
    for entry in lexicon["entries"]:
        for sense in entry["senses"]:
            sense["relations"] = [one for one in sense["relations"] if one["target"] in senses]
    fetch("wordnet", source=write(tmp_path / "gap.xml", lexicon), name="gap")
    found = load_wordnet("gap")
    assert len(found) == len(mini) - 1
    above = mini.hypernyms.neighbours(canine).tolist()
    names = {mini.synsets["name"][one].as_py() for one in above}
    dog = found.hypernyms.neighbours(found.synset_id("dog.n.01")).tolist()
    assert names
    assert names <= {found.synsets["name"][one].as_py() for one in dog}


@pytest.mark.slow
def test_a_lexicon_over_princetons_synsets_is_a_language_of_it(cache: Path, tmp_path: Path) -> None:
    wordnet = load_wordnet()
    row = wordnet.synset_id("dog.n.01")
    name = f"omw-it-{wordnet.synsets['offset'][row].as_py():08}-n"
    lexicon = lexicon_of(wordnet_of_none(wordnet)) | {
        "id": "omw-it", "label": "MultiWordNet", "language": "it",
        "license": "https://creativecommons.org/licenses/by/3.0/",
        "synsets": [{"id": name, "ili": "", "partOfSpeech": "n",
                     "definitions": [{"text": "animale domestico"}],
                     "examples": [{"text": "il cane abbaia"}]}],
        "entries": [{"id": "e1", "lemma": {"writtenForm": "cane", "partOfSpeech": "n"},
                     "senses": [{"id": "s1", "synset": name}]}],
    }  # fmt: skip
    path = write(tmp_path / "omw-it.xml", lexicon)
    fetch("omw", source=path, name="it")
    assert load_lexicon("it").licence == "CC-BY-3.0"
    italian = load_in_language("it")
    assert italian.words(row) == ["cane"]
    assert italian.synsets["gloss"][row].as_py() == "animale domestico"
    assert len(italian.mentions) == 1
    own = as_lmf(load_mini(), tmp_path / "own.xml")
    with pytest.raises(
        SourceError, match=r"synsets of its own: kb-cache fetch wordnet test --from"
    ):
        fetch("omw", source=own, name="it")


def load_mini() -> WordNet:
    fetch("wordnet", source=MINI, name="mini")
    return load_wordnet("mini")


def wordnet_of_none(wordnet: WordNet) -> WordNet:
    """A WordNet without synsets, for what its lexicon says of itself."""
    from dataclasses import replace

    names = ("synsets", "senses", "examples", "mentions", "pointers", "frames")
    return replace(wordnet, **{name: getattr(wordnet, name).slice(0, 0) for name in names})


DOCTYPE = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE LexicalResource SYSTEM '
    '"http://globalwordnet.github.io/schemas/WN-LMF-1.4.dtd">\n'
)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("<?xml version='1.0'?>\n<html/>\n", "is not a sound WN-LMF file"),
        (DOCTYPE + "<LexicalResource><Lexicon", "is not a sound WN-LMF file"),
        (DOCTYPE + "<LexicalResource></LexicalResource>", "should hold one whole lexicon"),
        (DOCTYPE, "is not a sound WN-LMF file"),
    ],
)
def test_what_is_no_lexicon_is_refused(cache: Path, tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "bad.xml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SourceError, match=why):
        fetch("wordnet", source=path, name="bad")


def test_two_lexicons_and_loose_ends_are_refused(mini: WordNet, tmp_path: Path) -> None:
    lexicon = lexicon_of(mini)
    with pytest.raises(SourceError, match="one whole lexicon; it holds test 1, other 1"):
        read_lmf(write(tmp_path / "two.xml", lexicon, {**lexicon_of(mini), "id": "other"}))
    lexicon["synsets"][0]["relations"] = [{"relType": "hypernym", "target": "nowhere"}]
    with pytest.raises(SourceError, match=r"hypernym of test-.* leads to nowhere"):
        fetch("wordnet", source=write(tmp_path / "loose.xml", lexicon), name="loose")


def test_words_that_are_not_english_need_their_language(mini: WordNet, tmp_path: Path) -> None:
    import builders

    fetch("wordnet", source=as_lmf(mini, tmp_path / "de.xml", language="de"), name="german")
    with pytest.raises(UsageError, match="not English: add --language de"):
        builders.build("wordnet_hypernymy", output=tmp_path / "probe", wordnet="german")
    with pytest.raises(UsageError, match="no wordings in the language 'de'"):
        builders.build(
            "wordnet_hypernymy", output=tmp_path / "probe", wordnet="german", language="de"
        )


def test_members_may_be_entries(mini: WordNet, tmp_path: Path) -> None:
    lexicon = lexicon_of(mini)
    entry = {one["id"]: each["id"] for each in lexicon["entries"] for one in each["senses"]}
    for synset in lexicon["synsets"]:
        synset["members"] = [entry[name] for name in synset["members"]]
    lexicon["entries"].reverse()  # only the members tell the order
    fetch("wordnet", source=write(tmp_path / "words.xml", lexicon), name="words")
    found = load_wordnet("words")
    assert found.senses["lemma"].to_pylist() == mini.senses["lemma"].to_pylist()


def test_topics_are_read_from_subjects_and_their_absence_is_told(
    mini: WordNet, run_cli: RunCli, tmp_path: Path
) -> None:
    lexicon = lexicon_of(mini)
    for synset in lexicon["synsets"]:
        synset["meta"] = {"subject": synset.pop("lexfile")}
    fetch("wordnet", source=write(tmp_path / "subject.xml", lexicon), name="subject")
    assert load_wordnet("subject").synsets["lexname"].to_pylist() == (
        mini.synsets["lexname"].to_pylist()
    )
    for synset in lexicon["synsets"]:
        synset["meta"] = {"subject": "by hand"}
    path = write(tmp_path / "none.xml", lexicon)
    told = run_cli("fetch", "wordnet", "none", "--from", str(path))
    assert "synsets state no topic" in told.stdout + told.stderr
    none = load_wordnet("none")
    assert not none.in_files("noun.person").any()
    words = WordKinds(none)
    assert (words.noun_kind("dog"), words.fixed_phrases > set()) == ("", True)
    files = features_of(none)._files
    assert ("noun.animal" in {name for _, name in files}, {at for at, _ in files}) == (True, {-1})


def test_ids_given_twice_are_refused(mini: WordNet, tmp_path: Path) -> None:
    lexicon = lexicon_of(mini)
    lexicon["synsets"].append(lexicon["synsets"][0])
    with pytest.raises(SourceError, match=f"the same id: {lexicon['synsets'][0]['id']}"):
        fetch("wordnet", source=write(tmp_path / "twice.xml", lexicon), name="twice")
