"""Reading ConceptNet's files line by line: what is read is what a plain parser reads."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kb_cache.conceptnet import source as conceptnet_lines
from kb_cache.conceptnet.source import read_edges
from kb_cache.conceptnet.types import TOLERATED, Malformed, Selection
from kbprobe.errors import SourceError, UsageError

MINI = Path(__file__).parent / "data" / "conceptnet-mini.csv"
LINE = (
    '/a/[/r/IsA/,/c/en/dog/,/c/en/pet/]\t/r/IsA\t/c/en/dog\t/c/en/pet\t{"dataset": "/d/x", '
    '"license": "cc:by-sa/4.0", "weight": 2.0}\n'
)
ALL = Selection(languages=())
Rows = list[dict[str, Any]]


def read(path: Path, selection: Selection | None = None) -> tuple[Rows, Malformed]:
    malformed = Malformed(path)
    rows: Rows = []
    for batch in read_edges(path, selection or Selection(), malformed):
        rows += batch.to_pylist()
    return rows, malformed


def read_text(folder: Path, text: str | bytes, selection: Selection | None = None) -> Any:
    path = folder / "edges.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read(path, selection)


# A term: anything but what separates columns, lines and the parts of a URI. Underscores and the
# like at its ends are never written by ConceptNet.
_terms = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Z"], exclude_characters="/"), min_size=1
)
_languages = st.sampled_from(["en", "de", "zh"])
_uris = st.builds(
    lambda language, term, sense: f"/c/{language}/{term}{sense}",
    _languages,
    _terms,
    st.sampled_from(["", "/n", "/n/wn/animal", "/v/wikt/en_1", "/n/"]),
)
_edges = st.fixed_dictionaries(
    {
        "relation": st.sampled_from(["IsA", "NotDesires", "dbpedia/genre", "ExternalURL"]),
        "start": _uris,
        "end": st.one_of(_uris, st.just("http://example.org/a_b")),
        "weight": st.one_of(
            st.integers(-3, 10**6), st.floats(allow_nan=False, allow_infinity=False)
        ),
        "dataset": st.text(st.characters(exclude_categories=["Cs"]), min_size=1),
        "surface": st.one_of(st.none(), st.text(st.characters(exclude_categories=["Cs"]))),
        "ascii": st.booleans(),
    }
)
#: Lines that cannot be read, whatever the selection.
_bad = st.sampled_from(
    [
        "",
        "one column",
        "a\tb\tc\td",
        "a\tb\tc\td\te\tf",
        "/a/\tIsA\t/c/en/a\t/c/en/b\t{}",
        "/a/\t/r/IsA\tdog\t/c/en/b\t{}",
    ]
)


def line_of(edge: dict[str, Any]) -> str:
    info = {"dataset": edge["dataset"], "license": "cc:by/4.0", "weight": edge["weight"]}
    info["sources"] = [{"contributor": "/s/x", "weight": "no weight"}]
    if edge["surface"] is not None:
        info["surfaceText"] = edge["surface"]
    uri = f"/a/[/r/{edge['relation']}/,{edge['start']}/,{edge['end']}/]"
    text = json.dumps(info, ensure_ascii=edge["ascii"])
    return "\t".join([uri, f"/r/{edge['relation']}", edge["start"], edge["end"], text])


def expected(edges: list[dict[str, Any] | str], selection: Selection) -> Rows:
    """What a plain parser makes of the lines."""
    rows = []
    for edge in edges:
        if isinstance(edge, str):
            continue
        ends = [edge[end].split("/") for end in ("start", "end")]
        if any(
            end[1] != "c" or (selection.languages and end[2] not in selection.languages)
            for end in ends
        ):
            continue
        if selection.relations and edge["relation"] not in selection.relation_names:
            continue
        row = {key: edge[key] for key in ("relation", "weight", "dataset", "surface")}
        row |= {end: edge[end].rstrip("/") for end in ("start", "end")}
        rows.append(row)
    return rows


@pytest.mark.slow
@settings(
    deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    edges=st.lists(st.one_of(_edges, _bad), min_size=1, max_size=12),
    languages=st.sampled_from([(), ("en",), ("en", "de")]),
    relations=st.sampled_from([(), ("Desires",), ("IsA", "dbpedia/genre")]),
    packed=st.booleans(),
    newline=st.sampled_from(["\n", "\r\n"]),
    block=st.sampled_from([1 << 14, 4 << 20]),
)
def test_as_a_plain_parser(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    edges: list[dict[str, Any] | str],
    languages: tuple[str, ...],
    relations: tuple[str, ...],
    packed: bool,
    newline: str,
    block: int,
) -> None:
    monkeypatch.setattr(conceptnet_lines, "_BLOCK", block)
    selection = Selection(languages, relations)
    # Enough sound lines to be recognized, and not to be refused.
    lines = [LINE.rstrip("\n")] * 30
    lines += [edge if isinstance(edge, str) else line_of(edge) for edge in edges]
    content = (newline.join(lines) + newline).encode()
    path = tmp_path / "edges"
    path.write_bytes(gzip.compress(content) if packed else content)
    rows, malformed = read(path, selection)
    sound = 30 if not relations or "IsA" in relations else 0
    assert rows[sound:] == expected(edges, selection)
    bad = [30 + i for i, edge in enumerate(edges, start=1) if isinstance(edge, str)]
    assert malformed.count == len(bad)
    assert malformed.lines == len(lines)
    named = [int(text.split(":")[0].removeprefix("line ")) for text in malformed.first]
    # Lines with another number of columns are noticed first, a block at a time.
    assert set(named) <= set(bad)
    assert len(named) == min(len(bad), 5)


@settings(
    deadline=None, max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.one_of(
        st.binary(max_size=300),
        st.binary(max_size=100).map(lambda noise: LINE.encode() * 3 + noise),
        st.binary(max_size=100).map(lambda noise: gzip.compress(LINE.encode() * 3) + noise),
        st.binary(max_size=100).map(lambda noise: b"IsA\ta\tb\n" * 3 + noise),
        st.binary(max_size=100).map(lambda noise: b"SQLite format 3\x00" + noise),
    )
)
def test_any_bytes_are_read_or_refused(tmp_path: Path, content: bytes) -> None:
    refused = ""
    try:
        rows, malformed = read_text(tmp_path, content)
    except SourceError as error:
        refused = str(error)
    assert str(tmp_path) in refused or len(rows) + malformed.count <= malformed.lines


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (LINE.replace("{", "["), "its last column is not a JSON object with a weight"),
        (LINE.replace("2.0", '"2.0"'), "not a JSON object with a weight"),
        (LINE.replace("2.0", "NaN"), "not a JSON object with a weight"),
        (LINE.replace("2.0", "1e999"), "not a JSON object with a weight"),
        (LINE.replace("2.0", "9" * 400), "not a JSON object with a weight"),
        (LINE.replace("2.0", "true"), "not a JSON object with a weight"),
        (LINE.replace(', "weight": 2.0', ""), "not a JSON object with a weight"),
        (LINE.replace("/d/x", "\\ud800"), "not a JSON object with a weight"),
        (LINE.replace("}", "}{}"), "not a JSON object with a weight"),
        (LINE.replace('"/d/x"', "[" * 20_000), "not a JSON object with a weight"),
        (LINE.replace("\t{", "\t\t{"), "6 columns instead of 5"),
        (LINE.replace("/c/en/dog\t", "/c/en/\t"), "its start has no text"),
        (LINE.replace("\t/c/en/pet\t", "\t/c/en//n\t"), "its end has no text"),
        ("\n", "1 columns instead of 5"),
        (LINE.replace("\t/r/IsA", "\tIsA"), "its second column is not a relation"),
        (LINE.replace("\t/c/en/dog", "\tdog"), "its third column is not a concept"),
        (b"\xff\xfe\n", "1 columns instead of 5"),
        (LINE.encode().replace(b"\t/c/en/pet\t", b"\t/c/en/\xff\t"), "not UTF-8"),
        (LINE.encode().replace(b"/d/x", b"\xc3"), "not UTF-8"),
    ],
)
def test_a_malformed_line_is_counted_and_named(tmp_path: Path, bad: str | bytes, why: str) -> None:
    raw = bad if isinstance(bad, bytes) else bad.encode()
    rows, malformed = read_text(tmp_path, LINE.encode() * 4 + raw + LINE.encode())
    assert len(rows) == 5
    assert malformed.count == 1
    assert malformed.first[0].startswith("line 5: ")
    assert why in malformed.first[0]
    assert malformed.notes[0].startswith("1 malformed line was left out: line 5: ")


def test_line_numbers_across_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conceptnet_lines, "_BLOCK", 1 << 10)
    lines = [LINE] * 2000
    for number, bad in ((50, "x\n"), (700, "\n"), (1300, LINE.replace("{", "")), (1999, "y\n")):
        lines[number - 1] = bad
    _, malformed = read_text(tmp_path, "".join(lines))
    assert sorted(int(t.split(":")[0][5:].replace(",", "")) for t in malformed.first) == [
        50, 700, 1300, 1999,
    ]  # fmt: skip


def test_too_many_malformed_lines(tmp_path: Path) -> None:
    rows, malformed = read_text(tmp_path, LINE * 30 + "x\n" * TOLERATED)
    assert (len(rows), malformed.count) == (30, TOLERATED)
    with pytest.raises(SourceError, match=r"11 of 41 lines are malformed.*line 31: 1 columns"):
        read_text(tmp_path, LINE * 30 + "x\n" * (TOLERATED + 1))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not ConceptNet"),
        (b"<html><body>Not found</body></html>\n", "its first line is '<html><body>Not found"),
        (b"a,b,c,d,e\n" * 30, "is not ConceptNet"),
        (b"PK\x03\x04" + bytes(100), "is not ConceptNet"),
        (b"\x1f\x8b" + b"x" * 100, "cannot read"),
        (
            gzip.compress(LINE.encode() * 50_000)[:-4000],
            "cannot read .* after line [1-9].*: Compressed file ended",
        ),
        (gzip.compress(LINE.encode()) + b"trailing", "cannot read"),
        (LINE.encode() * 30 + b"x" * (24 << 20), "line 31 is longer than 16,777,216 bytes"),
    ],
)
def test_what_is_no_conceptnet_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        read_text(tmp_path, content)


def test_missing_files_and_folders(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no such file"):
        read(tmp_path / "nowhere.csv")
    with pytest.raises(SourceError, match="cannot read"):
        read(tmp_path)


def test_selection_and_progress() -> None:
    done: list[tuple[int, int]] = []
    malformed = Malformed(MINI)
    batches = read_edges(
        MINI, Selection(("en", "de"), ("Synonym",)), malformed, lambda *at: done.append(at)
    )
    assert [batch.to_pylist()[0]["start"] for batch in batches] == ["/c/en/dog/n"]
    assert done[-1] == (MINI.stat().st_size, MINI.stat().st_size)
    relations = {row["relation"] for row in read(MINI, Selection(relations=("Desires",)))[0]}
    assert relations == {"Desires", "NotDesires"}
    assert not any("http" in row["end"] for row in read(MINI, ALL)[0])


def test_triples(tmp_path: Path) -> None:
    text = "IsA\tguide dog\tpet\nNotDesires\tperson\t be ill \nIsA\ta/b\tpet\nIsA\t\tpet\n" * 2
    rows, malformed = read_text(tmp_path, text)
    assert rows[1] == {
        "relation": "NotDesires", "start": "/c/en/person", "end": "/c/en/be_ill", "weight": 1.0,
        "dataset": "/d/cn100k", "surface": None,
    }  # fmt: skip
    assert rows[0]["start"] == "/c/en/guide_dog"
    assert malformed.first[:2] == [
        "line 3: its start is not a term",
        "line 4: its start is not a term",
    ]
    assert read_text(tmp_path, text, Selection(("de",)))[0] == []


@pytest.mark.parametrize("selection", [{"languages": ("/c/en",)}, {"relations": ("/r/IsA",)}])
def test_a_selection_by_uri_is_refused(selection: dict[str, tuple[str, ...]]) -> None:
    with pytest.raises(UsageError, match=r"is not (a language code|the name of a relation)"):
        Selection(**selection)
