"""The two adapters of GCIDE: each on a small dictionary in its format, and against each other."""

from __future__ import annotations

import json
import shutil
import tarfile
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb_cache.gcide.compile import compile_gcide
from kb_cache.gcide.source import RawEntry, read_json, read_source
from kb_cache.gcide.tagged import read_tagged
from kbprobe.errors import SourceError

DATA = Path(__file__).parent / "data"
TAGGED, JSON = DATA / "gcide-mini", DATA / "gcide-mini-json"


def tagged(text: str) -> list[RawEntry]:
    return list(read_tagged({"CIDE.A": text.encode()}, Counter()))


def paragraph(definition: str, more: str = "") -> str:
    return f"<p><ent>dab</ent><br/\n<hw>dab</hw> <pos>n.</pos> <def>{definition}</def>{more}</p>"


def rows(path: Path) -> list[dict[str, Any]]:
    """What compiling makes of a source: senses with their word and contexts."""
    tables, _ = compile_gcide(read_source(path))
    words = tables["words"]["word"].to_pylist()
    contexts = tables["contexts"].to_pylist()
    senses: list[dict[str, Any]] = tables["senses"].to_pylist()
    for at, sense in enumerate(senses):
        sense["word"] = words[sense["word"]]
        sense["contexts"] = [context for context in contexts if context["sense"] == at]
    return senses


def test_both_adapters_find_the_same_dictionary() -> None:
    """What the JSON cannot hold (fields, marks, authors, inline quotations) left aside."""
    both = []
    for path in (TAGGED, JSON):
        seen = []
        for sense in rows(path):
            contexts = [
                (c["kind"], c["text"], c["start"], c["end"])
                for c in sense["contexts"]
                if c["text"] != "To dab him in the neck."
            ]
            key = (sense["word"], sense["entry"], sense["number"], sense["pos"])
            seen.append((*key, sense["printed_pos"], sense["definition"], contexts))
        both.append(seen)
    assert both[0] == both[1]
    assert len(both[0]) == 8


def test_the_tagged_dictionary_in_full() -> None:
    senses = rows(TAGGED)
    first, second, fish = senses[:3]
    assert first["definition"] == "To touch lightly with something soft; often with at."
    assert [c["text"] for c in first["contexts"]] == [
        "to dab a wound; to dab paint on a wall",
        "She dabbed her eyes ... and Smiled at the œdema.",
    ]
    quotation = first["contexts"][1]
    assert quotation["author"] == "A. Writer."
    assert quotation["text"][quotation["start"] : quotation["end"]] == "dabbed"
    assert second["mark"] == "Obs."
    assert second["contexts"][0]["author"] == "Sir T. Other."
    assert (fish["field"], fish["contexts"]) == ("Zoöl.", [])
    assert fish["definition"] == "A small flat fish of the family Pleuronectidæ."
    assert [(s["word"], s["pos"], s["entry"]) for s in senses if s["word"] == "dacian"] == [
        ("dacian", "adjective", 1),
        ("dacian", "noun", 2),
    ]
    assert [s["number"] for s in senses if s["word"] == "dabster"] == [1, 2]


@pytest.mark.parametrize("path", [TAGGED, JSON])
def test_what_is_dropped_is_counted(path: Path) -> None:
    _, report = compile_gcide(read_source(path))
    assert report.definitions == {
        "cross-reference only": 1,
        "illegible in the source": 1,
        "form of another word": 1,
    }
    assert report.read == 11
    assert "8 of 11 definitions kept." in report.notes()


def test_quotations_of_phrases_are_not_the_last_senses() -> None:
    _, report = compile_gcide(read_source(JSON))
    assert report.contexts == {"quotations of phrases": 2}


@pytest.mark.parametrize(
    ("more", "usage", "quotations"),
    [
        ("<p><q>A <qex>dab</qex> of it.</q> <rj><qau>Me.</qau></rj></p>", "",
         (("A dab of it.", "Me."),)),
        ("<p><q>A dab of it.</q></p><p><q>Two dabs.</q> <qau>Me.</qau></p>", "",
         (("A dab of it.", ""), ("Two dabs.", "Me."))),
        (" <ldquo/A <xex>dab</xex> of it.<rdquo/ <au>Me.</au>", "", (("A dab of it.", "Me."),)),
        (r" \'bdA dab.\'b8 and \'bdTwo dabs.\'b8 <au>Me.</au>", "",
         (("A dab.", ""), ("Two dabs.", "Me."))),
        (" <as>as, a <ex>dab</ex> of it</as>.", "a dab of it", ()),
        (" <illu>a dab of it</illu>", "a dab of it", ()),
        ("<p><note>See “A dab.”</note></p>", "", ()),
        ("<p><cs><col>dab hand</col> <cd>skill</cd> <q>A dab hand.</q></cs></p>", "", ()),
        ("<p><cs><col>dab hand</col></cs></p><p><q>A dab hand.</q></p>", "", ()),
        ("<syn><b>Syn. --</b> pad.</syn> <usage>“A pad.”</usage>", "", ()),
    ],
)  # fmt: skip
def test_contexts(more: str, usage: str, quotations: tuple[tuple[str, str], ...]) -> None:
    (entry,) = tagged(paragraph("A pad.", more))
    assert [s.definition for s in entry.senses] == ["A pad."]
    assert "; ".join(entry.senses[0].usage) == usage
    assert tuple(entry.senses[0].quotations) == quotations


@pytest.mark.parametrize(
    "definition",
    [
        "A pad",
        "A <it>pad</it>",
        "A <it>pad",
        "A</it> pad",
        "A <pos>pad</pos>",
        "A pad <altsp>[Written also <asp>dabb</asp>.]</altsp>",
        "A pad <mark>[Obs.]</mark>",
        "A pad<-- a comment <def> -->",
        "A <?>pad",
    ],
)
def test_markup_within_a_definition(definition: str) -> None:
    (entry,) = tagged(paragraph(definition))
    text = entry.senses[0].definition.replace("<?>", "").strip()
    assert text == "A pad"


@pytest.mark.parametrize(
    "text",
    [
        "<p><ent>dab</ent> <pos>n.</pos> <ety>[L. <def>A pad.</def>",
        "<p><ent>dab</ent> <pos>n.</pos> <pr>(d<acr/b <def>A pad.</def></p>",
        "<p><ent>dab</ent> <pos>n.</pos> <def>A pad.",
        "<p><ent>dab</ent> <pos>n.</pos> <def>A pad.<p><q>A dab.</q></p>",
        "<p><ent>dab</ent> <pos>n.</pos> <def>A pad. <sn>2.</sn></def></def></p>",
        "<p><hw>dab</hw> <pos>n.</pos> <def>A pad.<br/\n[<source>PJC</source>]</p>",
    ],
)
def test_what_is_left_open_swallows_nothing(text: str) -> None:
    (entry,) = tagged(text)
    assert (entry.word, entry.pos) == ("dab", "n.")
    assert [sense.definition for sense in entry.senses] == ["A pad."]


WORDS = st.from_regex(r"\A[a-z]{1,8}( [a-z]{1,8}){0,5}\Z")
TAGS = ("it", "ety", "def", "q", "cs", "p", "as", "hw", "pos", "sn", "au", "qau", "rj", "ent",
        "note", "def2", "mhw", "source", "nonsense")  # fmt: skip
SCRAPS = ("<ae/", "<?", "<", ">", "<--", "-->", r"\'94", r"\'zz", "[", "“", "”", "&", "word", " ")
NOISE = st.lists(
    st.sampled_from([*(f"<{tag}>" for tag in TAGS), *(f"</{tag}>" for tag in TAGS), *SCRAPS]),
    max_size=40,
).map("".join)


@given(NOISE)
def test_no_markup_makes_the_parser_fail(noise: str) -> None:
    for entry in tagged(f"<p><ent>dab</ent> {noise}</p>"):
        assert entry.word
        assert entry.senses


@given(st.lists(st.tuples(WORDS, WORDS, WORDS), min_size=1, max_size=6), st.data())
def test_no_definition_or_quotation_is_lost(
    senses: list[tuple[str, str, str]], data: st.DataObject
) -> None:
    """Stray and unclosed tags of inline type may stand anywhere between the parts."""
    strays = st.sampled_from(["", "</it>", "<it>", "<ety>[L.", "</def>", "<pr>(?)", "</cs>", "<b>"])
    parts = ["<p><ent>dab</ent> <pos>n.</pos>"]
    for definition, quotation, author in senses:
        parts += [
            f"<sn>1.</sn> {data.draw(strays)}<def>{definition}</def> {data.draw(strays)}",
            f"</p><p><q>{quotation}</q> <rj><qau>{author}</qau></rj>",
        ]
    (entry,) = tagged("".join(parts) + "</p>")
    assert [(s.definition, tuple(s.quotations)) for s in entry.senses] == [
        (definition, ((quotation, author),)) for definition, quotation, author in senses
    ]


@given(st.binary(max_size=300))
def test_no_bytes_make_the_parser_fail(content: bytes) -> None:
    list(read_tagged({"CIDE.A": content}, Counter()))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "words_A.json is not JSON"),
        (b"[]", "not a JSON object of words"),
        (b'{"dab": {"entry": "dab"}}', "the entry of 'dab' is not as expected: KeyError"),
        (b'{"dab": {"entry": "dab", "pos": [{"part_of_speech": "n."}]}}', "KeyError"),
        (b'{"dab": {"entry": 1, "pos": [{}]}}', "TypeError"),
        (b'{"dab": []}', "TypeError"),
        (b"\xff\xfe", "not UTF-8"),
        (b"[" * 100_000, "nested too deeply"),
    ],
)
def test_json_of_another_shape_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        list(read_json({"words_A.json": content}))


@pytest.mark.parametrize("tail", ["Milton.", "Shak.", "Mrs. Browning"])
def test_a_verse_cut_at_its_author_is_left_out(tail: str) -> None:
    block = {
        "part_of_speech": "n.",
        "definitions": [
            {"text": "A pad.", "examples": [f"The dabs, they fill {tail}", f"A dab by {tail}"]}
        ],
    }
    content = json.dumps({"dab": {"entry": "dab", "pos": [block]}}).encode()
    (entry,) = read_json({"words_D.json": content})
    assert entry.senses[0].quotations == [(f"A dab by {tail}", "")]
    assert entry.lost == {"cut short": 1}


def test_folders_archives_and_single_files(tmp_path: Path) -> None:
    tree = tmp_path / "gcide-0.53"
    shutil.copytree(TAGGED, tree)
    (tree / "COPYING").write_bytes(b"GPL")
    (tree / "README").write_bytes(b"not read")
    with tarfile.open(tmp_path / "gcide-0.53.tar.xz", "w:xz") as archive:
        archive.add(tree, "gcide-0.53")
    with zipfile.ZipFile(tmp_path / "a.whl", "w") as wheel:
        wheel.write(JSON / "words_D.json", "dictionary/data/en/words_D.json")
    whole = read_source(tree)
    assert (whole.format, whole.version, whole.licence) == ("tagged", "0.53", b"GPL")
    assert list(whole.files) == ["CIDE.D"]
    packed = read_source(tmp_path / "gcide-0.53.tar.xz")
    assert (packed.sha256, packed.version, packed.licence) == (whole.sha256, "0.53", b"GPL")
    single = read_source(tree / "CIDE.D")
    assert (single.sha256, single.version) == (whole.sha256, "0.53")
    wheel_source = read_source(tmp_path / "a.whl")
    assert (wheel_source.format, wheel_source.version) == ("json", None)
    assert wheel_source.sha256 == read_source(JSON).sha256


def test_what_is_not_gcide_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no such file"):
        read_source(tmp_path / "nothing")
    with pytest.raises(SourceError, match=r"is not GCIDE.*CIDE\.A"):
        read_source(tmp_path)
    (tmp_path / "page.html").write_text("<html>")
    with pytest.raises(SourceError, match="neither a folder nor an archive"):
        read_source(tmp_path / "page.html")
    shutil.copy(TAGGED / "CIDE.D", tmp_path)
    shutil.copy(JSON / "words_D.json", tmp_path)
    with pytest.raises(SourceError, match="holds both"):
        read_source(tmp_path)
