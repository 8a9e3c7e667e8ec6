"""What people do in notebooks: list, evaluate, look, save, compare; and tables for papers."""

from __future__ import annotations

import csv
import io
import json
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import evaluation
import kbprobe
from evaluation.result import Result
from evaluation.results.frames import tables_within
from kbprobe.errors import UsageError
from kbprobe.tables import FORMATS, PlainTable, as_written


@pytest.fixture(scope="module")
def results() -> tuple[Result, Result]:
    probe = kbprobe.build("age_comparison", limit=60)
    one, other = (
        kbprobe.evaluate(probe, "none", scorer="random", guess_seed=seed) for seed in (0, 3)
    )
    return one, other


class Cells(HTMLParser):
    """Collects the texts of a page's cells, and its other tags."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.cells: list[str] = []
        self.tags: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_data(self, data: str) -> None:
        if self.cells and data.strip():
            self.cells[-1] += data


texts = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=8)
tables = st.integers(1, 4).flatmap(
    lambda width: st.builds(
        PlainTable,
        st.lists(texts, min_size=width, max_size=width),
        st.lists(
            st.lists(texts | st.integers(-9999, 9999) | st.none(), min_size=width, max_size=width),
            max_size=4,
        ),
        st.just(()),
        st.just(()),
        st.lists(texts, max_size=2),
    )
)


@given(tables)
def test_csv_gives_back_every_cell(table: PlainTable) -> None:
    read = list(csv.reader(io.StringIO(table.text("csv"))))
    expected = [
        ["" if cell is None else str(cell) for cell in row] for row in (table.head, *table.rows)
    ]
    # Of a single empty cell nothing is left but the end of its line.
    assert [[as_written(cell) for cell in row] or [""] for row in read] == expected


@given(tables)
def test_no_cell_breaks_out_of_its_table(table: PlainTable) -> None:
    lines = 1 + len(table.rows)
    markdown = table.text("markdown").split("\n")
    assert len(markdown) == lines + 2 + 2 * (len(table.footnotes) + len(table.notes))
    markdown = markdown[: lines + 1]
    columns = len(table.head)
    assert all(line.replace(r"\|", "").count("|") == columns + 1 for line in markdown)
    latex = table.text("latex").split("\n")
    assert len(latex) == lines + 7 + len(table.footnotes) + len(table.notes)
    assert sum(line.endswith(r"\\") for line in latex) == lines + len(table.footnotes)
    found = Cells(table.html("<b>"))
    assert len(found.cells) == lines * columns
    assert found.tags == {"table", "caption", "tr", "th"} | ({"td"} if table.rows else set())


def test_every_probe_is_listed_with_its_state() -> None:
    listed = kbprobe.list_probes()
    assert {one.name for one in listed} >= {"wordnet_hypernymy", "age_comparison"}
    assert all(one.remedy or one.state == "ready" for one in listed)
    assert len(Cells(listed._repr_html_()).cells) == 6 * (1 + len(listed))


def test_a_built_probe_shows_itself() -> None:
    probe = kbprobe.build("object_comparison", limit=60)
    assert repr(probe).startswith("ProbeSplits('object_comparison', 'default': train ")
    assert len(Cells(probe._repr_html_()).cells) == 5 * 6
    frame = probe.to_pandas()
    assert len(frame) == sum(len(rows) for rows in probe.values())
    assert frame.columns[0] == "split"
    assert set(frame["split"]) == set(probe)


@pytest.mark.slow
def test_results_show_themselves(results: tuple[Result, Result]) -> None:
    one, _ = results
    value = f"{100 * one.accuracy:.1f}"
    assert value in one._repr_html_()
    assert f"accuracy {one.accuracy:.3f}" in repr(one)
    page = one.report()
    assert "<!doctype html>" in page.text.lower()
    shown = page._repr_html_()
    assert shown.startswith("<iframe srcdoc=")
    assert "sandbox" in shown
    assert "<script" not in shown
    assert list(one.table().head)[:3] == ["probe", "split", "model"]


@pytest.mark.slow
def test_results_are_saved_once_and_read_back(
    results: tuple[Result, Result], tmp_path: Path
) -> None:
    one, other = results
    folder = one.save(tmp_path / "one")
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    assert one.save(folder) == folder
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before
    assert evaluation.load(folder).results == one.results
    with pytest.raises(UsageError, match="holds other results"):
        other.save(folder)
    other.save(folder, overwrite=True)
    assert evaluation.load(folder).results == other.results
    page = one.report().save(tmp_path / "page.html")
    assert page.read_text(encoding="utf-8") == one.report().text


@pytest.mark.slow
def test_results_in_memory_and_in_folders_are_compared(
    results: tuple[Result, Result], tmp_path: Path
) -> None:
    one, other = results
    folder = other.save(tmp_path / "other")
    summary, again = kbprobe.compare(one, other), kbprobe.compare(one, folder)
    (pair,), (same,) = (one.tables["contrasts"] for one in (summary, again))
    assert pair["difference"] == same["difference"]
    assert [row["folders"] for row in summary.tables["runs"]] == [["result 1"], ["result 2"]]
    assert again.tables["runs"][1]["folders"] == [str(folder)]


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMATS)
def test_the_command_writes_tables(
    results: tuple[Result, Result], form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from evaluation.cli import main

    for number, one in enumerate(results):
        one.save(tmp_path / "all" / str(number))
    with pytest.raises(SystemExit) as done:
        main(["table", str(tmp_path / "all" / "0"), "--to", form, "--columns", "all"])
    assert not done.value.code
    table = results[0].table()
    # Without a model, a result is called by its scorer.
    rows = [["random" if cell == "none" else cell for cell in row] for row in table.rows]
    own = table._replace(rows=rows).text(form)  # type: ignore[arg-type]
    made = capsys.readouterr().out.split("\n")
    assert [line for line in own.split("\n") if line.strip() not in map(str.strip, made)] == []
    summary = {"pairs": [{"probe": "p", "by": [{"family": "f", "n": 1}, {"family": "g", "n": 2}]}]}
    (tmp_path / "s.json").write_text(json.dumps(summary), encoding="utf-8")
    with pytest.raises(SystemExit) as done:
        main(["table", str(tmp_path / "s.json"), "--name", "pairs.by", "--to", form])
    assert not done.value.code
    expected = tables_within(summary)["pairs.by"]
    assert expected.head == ["pairs.probe", "family", "n"]
    assert expected.rows == [["p", "f", 1], ["p", "g", 2]]
    assert capsys.readouterr().out == expected.text(form)  # type: ignore[arg-type]


def test_tables_that_are_not_there_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from evaluation.cli import main

    path = tmp_path / "s.json"
    path.write_text(json.dumps({"a": [{"x": 1}], "b": [{"x": 1}]}), encoding="utf-8")
    for words, said in (
        ([str(path)], "Choose with --name: a, b"),
        ([str(path), "--name", "aa"], "Did you mean"),
        ([str(tmp_path / "none")], "There is no folder"),
        ([str(tmp_path), "--name", "a"], "name its file"),
    ):
        with pytest.raises(SystemExit) as done:
            main(["table", *words])
        assert done.value.code == 2
        assert said in capsys.readouterr().err
