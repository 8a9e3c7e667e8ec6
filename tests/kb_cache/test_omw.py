"""The Open Multilingual Wordnet: tab files, what they are compiled to, the join with WordNet."""

from __future__ import annotations

from pathlib import Path

import pytest

from kb_cache.fetching import fetch
from kb_cache.omw.kind import read_source
from kb_cache.omw.load import load_in_language, load_lexicon
from kb_cache.wordnet.load import load_wordnet
from kbprobe.errors import SourceError, UsageError
from tests.kb_cache.conftest import REPOSITORY, RunCli

SAMPLES = REPOSITORY / "tests" / "data" / "omw"
ITALIAN, PORTUGUESE = (SAMPLES / f"wn-data-{code}.tab.gz" for code in ("ita", "por"))

HEADER = "# Toy\tita\thttp://example.org\tCC BY 3.0\n"


def toy(folder: Path, lines: str, header: str = HEADER) -> Path:
    path = folder / "wn-data-ita.tab"
    path.write_text(header + lines, encoding="utf-8")
    return path


def test_the_command_makes_an_entry_of_the_language(run_cli: RunCli) -> None:
    done = run_cli("fetch", "omw", "it", "--from", str(ITALIAN))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("omw-it: 2,")
    listed = run_cli("list", "--json").stdout
    assert "omw-it" in listed


def test_a_lexicon_carries_its_licence_credits_and_language(cache: Path) -> None:
    fetch("omw", source=PORTUGUESE, name="pt")
    lexicon = load_lexicon("pt")
    assert (lexicon.licence, lexicon.language) == ("CC-BY-SA-3.0", "pt")
    assert "OpenWN-PT (https://github.com/arademaker/openWordnet-PT)" in lexicon.attribution
    assert "de-paiva-etal-2012" in lexicon.citation


@pytest.mark.slow
def test_words_definitions_and_examples_join_princetons_synsets(cache: Path) -> None:
    fetch("omw", source=ITALIAN, name="it")
    wordnet = load_in_language("it")
    bread = wordnet.synset_id("bread.n.01")
    assert wordnet.words(bread)[0] == "pane"
    assert wordnet.structure.synset_id("bread.n.01") == bread
    assert not wordnet.has_words[wordnet.synset_id("dog.n.01")]
    assert wordnet.licence == "LicenseRef-WordNet AND CC-BY-3.0"
    assert [source.name for source in wordnet.sources] == ["wordnet-3.0", "omw-it"]
    texts, lemmas = wordnet.examples["text"].to_pylist(), wordnet.lemma_texts().to_pylist()
    assert len(wordnet.mentions) > 10
    for row in wordnet.mentions.to_pylist():
        found = texts[row["example"]][row["start"] : row["end"]]
        assert found.lower() == lemmas[row["sense"]].lower()


def test_lines_are_cleaned(tmp_path: Path) -> None:
    source = read_source(
        toy(
            tmp_path,
            "07679356-n\tita:lemma\tGAP!\n"
            "07679356-n\tita:lemma\tpane_bianco (cibo)\n"
            "07679356-n\tita:lemma\tforma d' olio,pagnotta\n"
            "07679356-n\tita:def\t0\tit.wikipedia.org/wiki/Pane\n"
            "07679356-n\tita:def\t1\tcibo di farina\n"
            "no synset\tita:lemma\tpane\n"
            "07679356-n\tita:domain\tfood\n",
        )
    )
    assert [word for _, word in source.lemmas] == ["pane bianco", "forma d'olio", "pagnotta"]
    assert [text for _, text in source.definitions] == ["cibo di farina"]
    assert sum(source.left_out.values()) == 4


@pytest.mark.parametrize(
    ("header", "lines", "message"),
    [
        ("", "07679356-n\tita:lemma\tpane\n", "its first line should be"),
        (HEADER, "07679356-n\tita:def\t0\tcibo\n", "holds no lemmas"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, header: str, lines: str, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        read_source(toy(tmp_path, lines, header))


def test_errors_name_the_address_and_the_command(run_cli: RunCli) -> None:
    told = run_cli("fetch", "omw", "it").stderr
    assert "omw-data/main/wns/ita/wn-data-ita.tab" in told
    assert "kb-cache fetch omw it --from wn-data-ita.tab" in told
    assert "wordnets are published for: ar, bg" in run_cli("fetch", "omw", "xx").stderr
    assert "name the language" in run_cli("fetch", "omw", "--from", str(ITALIAN)).stderr
    told = run_cli("fetch", "omw", "pt", "--from", str(ITALIAN)).stderr
    assert "is of the language it (ita), not pt" in told


def test_an_unknown_licence_must_be_stated(cache: Path, tmp_path: Path) -> None:
    path = toy(tmp_path, "07679356-n\tita:lemma\tpane\n", "# T\txyz\thttp://x\town terms\n")
    with pytest.raises(SourceError, match="--licence SPDX and --attribution TEXT"):
        fetch("omw", source=path, name="xyz")
    fetch("omw", source=path, name="xyz", licence="CC-BY-4.0", attribution="By T.")
    assert load_lexicon("xyz").attribution == "By T."


@pytest.mark.slow  # compiles a WordNet
def test_another_wordnet_is_refused(cache: Path) -> None:
    from kb_cache.omw.load import in_language
    from kb_cache.wordnet.load import load_wordnet
    from tests.kb_cache.conftest import MINI

    fetch("omw", source=ITALIAN, name="it")
    fetch("wordnet", source=MINI, name="mini")
    with pytest.raises(UsageError, match=r"--wordnet 3\.0"):
        in_language(load_wordnet("mini"), load_lexicon("it"))


def test_spellings_abbreviations_and_damaged_words_are_sorted_out(
    cache: Path, tmp_path: Path
) -> None:
    words = ["MI", "milano", "parola{{m}}", "caffe", "caffè", "libri", "libro", "bar/osteria"]
    lines = "".join(f"02084071-n\tita:lemma\t{word}\n" for word in words)
    lines += "02084071-n\tita:def\t0\tmolto piu` di un cane\n"
    fetch("omw", source=toy(tmp_path, lines), name="it")
    lexicon = load_lexicon("it")
    assert set(lexicon.lemmas["lemma"].to_pylist()) == {"MI", "milano", "caffè", "libro"}
    assert lexicon.lemmas["lemma"].to_pylist()[-1] == "MI"
    assert lexicon.definitions["text"].to_pylist() == ["molto più di un cane"]


def test_names_have_the_capitals_of_english_and_english_definitions_are_left_out(
    cache: Path, tmp_path: Path
) -> None:
    wordnet = load_wordnet("3.0")
    at = wordnet.synset_id("brooklyn_bridge.n.01")
    offset = f"{wordnet.synsets['offset'][at].as_py():08d}-n"
    gloss = wordnet.synsets["gloss"][at].as_py()
    lines = f"{offset}\tita:lemma\tPonte di brooklyn\n{offset}\tita:def\t0\t{gloss.capitalize()}.\n"
    fetch("omw", source=toy(tmp_path, lines), name="it")
    italian = load_in_language("it")
    assert italian.words(at) == ["Ponte di Brooklyn"]
    assert italian.synsets["gloss"][at].as_py() == ""


def test_another_wordnet_of_a_language_keeps_its_own_licence(cache: Path, tmp_path: Path) -> None:
    header = "# ItalWordnet\tita\thttp://example.org\t{}\n"
    line = "02084071-n\tita:lemma\tcane\n"
    fetch("omw", source=toy(tmp_path, line, header.format("ODC-BY 1.0 ")), name="it")
    lexicon = load_lexicon("it")
    assert lexicon.licence == "ODC-By-1.0"
    assert "MultiWordNet" not in lexicon.citation
    with pytest.raises(SourceError, match=r"own terms.*state it with --licence"):
        fetch("omw", source=toy(tmp_path, line, header.format("own terms")), name="it")


def test_commas_of_names_and_formulas_part_no_words(tmp_path: Path) -> None:
    words = "Atlanta, Georgia, Usa", "2,4,6-trinitrotoluen", "pas, ker"
    lines = "".join(f"02084071-n\tita:lemma\t{word}\n" for word in words)
    found = [word for _, word in read_source(toy(tmp_path, lines)).lemmas]
    assert found == [*words[:2], "pas", "ker"]
