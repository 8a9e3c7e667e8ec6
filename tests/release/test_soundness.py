"""Reading by people: sheets written with a build, scored, and written into card and manifest."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from kbprobe.errors import KbprobeError, UsageError
from kbprobe.format.card import with_section
from kbprobe.format.dataset import CARD, load
from kbprobe.format.manifest import MANIFEST, read_manifest
from kbprobe.format.sheets import KEY, read_key, write_reading
from release.annotation.round_trip import export_sheets
from release.annotation.soundness import score, soundness_text, write_soundness
from release.checks.checking import check
from tests.commands import run_here
from tests.release.annotation_toy import make_probe, right_answers, sheet_rows

Row = dict[str, str]


@pytest.fixture(scope="module")
def probe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_probe(tmp_path_factory.mktemp("probe") / "toy")


@pytest.fixture(scope="module")
def reading(probe: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("reading") / "out"
    write_reading(probe, out, 40, blind=True, seed=3)
    return out


def letters(reading: Path, setup: str = "mc_qa") -> dict[str, str]:
    """The right answer of each item."""
    right = right_answers(setup)
    key = read_key(reading / KEY)
    points = {"entailment": "5", "neutral": "3", "contradiction": "1"}
    if key.scheme == "scale":
        names = ("entailment", "neutral", "contradiction")
        return {item.item_id: points[names[right[item.id]]] for item in key.items}
    return {item.item_id: "ABCD"[item.order.index(right[item.id])] for item in key.items}


def fill(reading: Path, path: Path, name: str, said: Callable[[int, Row], tuple[str, str]]) -> Path:
    """Fill in a sheet as a reader would, and save it as a spreadsheet does."""
    rows = sheet_rows(reading)
    for at, row in enumerate(rows):
        row["answer"], row["natural"] = said(at, row)
    rows[0]["annotator"] = name
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    path.write_text(text.getvalue(), encoding="utf-8")
    return path


@pytest.fixture
def sheets(reading: Path, tmp_path: Path) -> list[Path]:
    """Ann finds all 40 rows sound but 2; Bob all but 4, in other ways."""
    right = letters(reading)

    def ann(at: int, row: Row) -> tuple[str, str]:
        return {0: "two", 1: "none"}.get(at, right[row["item_id"]]), "5"

    def bob(at: int, row: Row) -> tuple[str, str]:
        wrong = "A" if right[row["item_id"]] != "A" else "B"
        said = {0: "two", 1: wrong, 2: "", 3: "nonsense"}.get(at, right[row["item_id"]].lower())
        return said, "" if at % 2 else "3.0"

    return [
        fill(reading, tmp_path / "ann.csv", "ann", ann),
        fill(reading, tmp_path / "bob.csv", "bob", bob),
    ]


class Page(HTMLParser):
    """The tags and the text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


class TestSheet:
    def test_it_shows_rows_of_the_test_split_and_nothing_else_of_them(
        self, probe: Path, reading: Path
    ) -> None:
        rows = {row["id"]: row for row in load(probe)["test"]}
        key = read_key(reading / KEY)
        found = sheet_rows(reading)
        assert len(found) == len({item.id for item in key.items}) == 40
        for number, (shown, item) in enumerate(zip(found, key.items, strict=True), 1):
            row = rows[item.id]
            assert shown["number"] == str(number)
            assert shown["item_id"] == item.item_id
            assert shown["question"].lstrip("'") == f"{row['question']} …"
            assert [shown[name].lstrip("'") for name in "ABCD"] == row["choices"]["text"]
            assert not any(shown[name] for name in ("answer", "natural", "annotator", "comment"))
        sheets = b"".join(path.read_bytes() for path in (reading / "sheets").iterdir())
        assert not re.search(rb"test-\d{4}|sister|answerKey|rows_sha256", sheets)

    def test_cells_are_no_formulas_and_the_page_runs_nothing(self, tmp_path: Path) -> None:
        probe = make_probe(tmp_path / "toy")
        write_reading(probe, tmp_path / "out", 20, blind=True)
        for row in sheet_rows(tmp_path / "out"):
            assert not any(cell.startswith(("=", "+", "-", "@")) for cell in row.values())
        text = (tmp_path / "out" / "sheets" / "reading.html").read_text(encoding="utf-8")
        page = Page(text)
        assert not {"script", "img", "iframe", "link", "form"} & set(page.tags)
        assert text.count('class="row"') == 20
        for mark in ("none", "two", "nonsense", "natural"):
            assert mark in page.text

    def test_texts_are_escaped_in_the_page(self, tmp_path: Path) -> None:
        probe = make_probe(tmp_path / "toy")
        manifest = read_manifest(probe).content
        (probe / MANIFEST).write_text(
            json.dumps({**manifest, "probe": "<script>alert(1)</script>"}), encoding="utf-8"
        )
        write_reading(probe, tmp_path / "out", 5, blind=True)
        page = Page((tmp_path / "out" / "sheets" / "reading.html").read_text(encoding="utf-8"))
        assert "script" not in page.tags

    def test_the_same_seed_gives_the_same_bytes(self, probe: Path, tmp_path: Path) -> None:
        for name, seed in (("one", 1), ("two", 1), ("three", 2)):
            write_reading(probe, tmp_path / name, 30, blind=True, seed=seed)
        files = {
            name: [path.read_bytes() for path in sorted((tmp_path / name).rglob("*.*"))]
            for name in ("one", "two", "three")
        }
        assert files["one"] == files["two"] != files["three"]

    def test_without_blind_answers_are_shown_and_there_is_no_key(
        self, probe: Path, tmp_path: Path
    ) -> None:
        write_reading(probe, tmp_path / "out", 20, blind=False)
        assert not (tmp_path / "out" / KEY).exists()
        rows = {row["choices"]["text"][0]: row for row in load(probe)["test"]}
        for shown in sheet_rows(tmp_path / "out"):
            assert shown["key"] == rows[shown["A"].lstrip("'")]["answerKey"]
        text = (tmp_path / "out" / "sheets" / "reading.html").read_text(encoding="utf-8")
        assert text.count('<li class="right">') == 20

    def test_a_sheet_is_not_overwritten_unasked(self, probe: Path, tmp_path: Path) -> None:
        written = write_reading(probe, tmp_path / "out", 5, blind=True)
        assert write_reading(probe, tmp_path / "out", 5, blind=True) == written, "the same"
        with pytest.raises(UsageError, match=r"Replace it with --overwrite, or choose .*--sheet"):
            write_reading(probe, tmp_path / "out", 6, blind=True)
        write_reading(probe, tmp_path / "out", 6, blind=True, overwrite=True)
        with (tmp_path / "out" / "sheets" / "reading.csv").open("a") as sheet:
            sheet.write("filled in")
        with pytest.raises(UsageError, match=r"never replaced: sheets/reading\.csv"):
            write_reading(probe, tmp_path / "out", 5, blind=True, overwrite=True)
        (tmp_path / "other").mkdir()
        (tmp_path / "other" / "thesis.txt").write_text("mine", encoding="utf-8")
        with pytest.raises(UsageError, match="left alone"):
            write_reading(probe, tmp_path / "other", 5, blind=True, overwrite=True)
        with pytest.raises(UsageError, match="fewer than --sample 61"):
            write_reading(probe, tmp_path / "large", 61, blind=True)

    def test_rows_without_answers_cannot_be_read(self, tmp_path: Path) -> None:
        probe = make_probe(tmp_path / "toy", labelled=False)
        with pytest.raises(UsageError, match="0 rows with an answer"):
            write_reading(probe, tmp_path / "out", 5, blind=True)


class TestScore:
    def test_what_is_sound(self, probe: Path, reading: Path, sheets: list[Path]) -> None:
        found = score(probe, sheets, reading / KEY)
        assert (found.readers, found.rows, found.sound.n) == (2, 40, 80)
        assert found.sound.value == pytest.approx(74 / 80)
        assert 0.8 < found.sound.low < 74 / 80 < found.sound.high < 1
        assert found.sound_to_all == 36
        assert found.said == {
            "another answer": 1, "none": 1, "nonsense": 1, "two": 2, "unanswered": 1,
        }  # fmt: skip
        assert sum(one.n for one in found.by_family.values()) == 80
        assert set(found.by_family) == {"random", "sister"}
        # 40 ratings of 5 and, of every other row that Bob answered, 3.
        assert found.ratings == 59
        assert found.natural_share == pytest.approx(40 / 59)
        assert found.natural == pytest.approx((40 * 5 + 19 * 3) / 59)
        assert found.summary.startswith("read by two readers, 40 rows, 92% sound (")
        text = soundness_text(found, most=3)
        assert "... and 3 more" in text
        assert "natural, from 1 to 5: 4.4 on average" in text

    def test_all_sound_is_certain_of_no_more_than_the_sample_tells(
        self, probe: Path, reading: Path, tmp_path: Path
    ) -> None:
        right = letters(reading)
        sheet = fill(reading, tmp_path / "a.csv", "ann", lambda _, row: (right[row["item_id"]], ""))
        found = score(probe, [sheet], reading / KEY)
        assert found.sound.value == found.sound.high == 1
        assert 0.75 < found.sound.low < 0.95
        assert found.natural is None
        assert found.unsound == []
        assert found.summary.startswith("read by one reader, 40 rows, 100% sound (")

    @pytest.mark.parametrize("setup", ["mc_mlm", "acceptability", "nli"])
    def test_every_setup(self, setup: str, tmp_path: Path) -> None:
        probe = make_probe(tmp_path / "toy", setup)
        out = tmp_path / "out"
        write_reading(probe, out, 20, blind=True)
        right = letters(out, setup)
        sheet = fill(
            out,
            tmp_path / "a.csv",
            "ann",
            lambda at, row: (right[row["item_id"]] if at else "nonsense", "4"),
        )
        assert score(probe, [sheet], out / KEY).sound.value == pytest.approx(19 / 20)

    def test_sheets_of_annotate_export_are_scored_too(self, probe: Path, tmp_path: Path) -> None:
        """What is empty in a sheet that a reader did not get says nothing."""
        out = tmp_path / "out"
        export_sheets(probe, out, n=40, seed=3, batch=20)
        right = letters(out)
        rows = [row for row in sheet_rows(out) if row["batch"] == "1"]
        lines = ["item_id,annotator,answer"]
        lines += [f"{row['item_id']},ann,{right[row['item_id']]}" for row in rows]
        (tmp_path / "a.csv").write_text("\n".join(lines), encoding="utf-8")
        found = score(probe, [tmp_path / "a.csv"], out / KEY)
        assert (found.sound.value, found.rows) == (1, 20)

    @pytest.mark.parametrize(
        ("said", "problem"),
        [
            (("F", "5"), "'F' is none of A, B, C, D, none, two, nonsense"),
            (("=1+1", "5"), "is none of"),
            (("A", "6"), "natural is '6', not a number from 1 to 5"),
            (("A", "very"), "natural is 'very'"),
            (("A" * 5000, "5"), "is none of"),
            (("<b>A</b>", "5"), "is none of"),
        ],
    )
    def test_bad_cells_are_named(
        self, said: tuple[str, str], problem: str, probe: Path, reading: Path, tmp_path: Path
    ) -> None:
        right = letters(reading)
        sheet = fill(
            reading,
            tmp_path / "a.csv",
            "ann",
            lambda at, row: said if at == 7 else (right[row["item_id"]], "5"),
        )
        with pytest.raises(KbprobeError, match=r"row 9.*") as error:
            score(probe, [sheet], reading / KEY)
        assert problem in str(error.value)
        found = score(probe, [sheet], reading / KEY, skip_bad=True)
        assert found.sound.n == 40

    @pytest.mark.parametrize(
        "content",
        [
            b"",
            b"\x00\xff\xfe",
            b"item_id,answer\nr000000000000,A\n",
            b"question\nWhat?\n",
            b'item_id,answer,annotator\n"r1,A,ann\n',
            "item_id,answer,annotator\nr１２,Ａ,ann\n".encode(),
        ],
    )
    def test_what_is_no_sheet_is_refused(
        self, content: bytes, probe: Path, reading: Path, tmp_path: Path
    ) -> None:
        (tmp_path / "a.csv").write_bytes(content)
        for skip_bad in (False, True):
            with pytest.raises(KbprobeError, match=r"a\.csv|No answer"):
                score(probe, [tmp_path / "a.csv"], reading / KEY, skip_bad=skip_bad)

    def test_the_same_sheet_twice_is_refused(
        self, probe: Path, reading: Path, sheets: list[Path]
    ) -> None:
        with pytest.raises(KbprobeError, match="repeats the vote of ann"):
            score(probe, [sheets[0], sheets[0]], reading / KEY)

    def test_a_key_of_another_build_is_refused(
        self, probe: Path, reading: Path, sheets: list[Path], tmp_path: Path
    ) -> None:
        key = json.loads((reading / KEY).read_text(encoding="utf-8"))
        for change, message in (
            ({"rows_sha256": "0" * 64}, "another build"),
            ({"probe": "other"}, "is the key of other"),
        ):
            (tmp_path / KEY).write_text(json.dumps({**key, **change}), encoding="utf-8")
            with pytest.raises(UsageError, match=message):
                score(probe, sheets, tmp_path / KEY)


class TestIntoCard:
    @pytest.fixture
    def read(self, probe: Path, reading: Path, sheets: list[Path], tmp_path: Path) -> Path:
        folder = shutil.copytree(probe, tmp_path / "read")
        write_soundness(folder, score(folder, sheets, reading / KEY))
        return folder

    def test_card_and_manifest_say_what_was_found(self, probe: Path, read: Path) -> None:
        card = (read / CARD).read_text(encoding="utf-8")
        assert "## Soundness\n\nRead by two readers, 40 rows, 92% sound (" in card
        assert "| all | 80 | 92.5% |" in card
        assert "ann" not in re.sub(r"[a-z]*ann[a-z]+", "", card)
        old, new = read_manifest(probe).content, read_manifest(read).content
        reading = new.pop("reading")
        assert old == new
        assert reading["summary"].startswith("read by two readers, 40 rows")
        assert reading["by_family"].keys() == {"random", "sister"}
        assert not {"unsound", "annotators"} & reading.keys()
        rest = card.replace(card[card.index("## Soundness") : card.index("## Licence")], "")
        assert rest == (probe / CARD).read_text(encoding="utf-8")

    def test_the_check_shows_it(self, read: Path, reading: Path, sheets: list[Path]) -> None:
        def finding() -> Any:
            (found,) = [one for one in check(read).findings if one.name == "reading on record"]
            return found

        manifest = read_manifest(read).content
        manifest["counts"] = {"rows": 120, "splits": {}, "concepts": 1, "clusters": 1}
        manifest["request"]["format"] = "parquet"

        def write(manifest: dict[str, Any]) -> None:
            (read / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")

        write(manifest)
        assert finding().verdict == "ok"
        assert finding().what == manifest["reading"]["summary"]
        write({**manifest, "reading": {**manifest["reading"], "passed": False}})
        assert finding().verdict == "warning"
        # Rows that are not those that were read.
        files = [{**entry, "rows_sha256": "0" * 64} for entry in manifest["files"]]
        write({**manifest, "files": files})
        assert finding().verdict == "failed"
        assert "other rows" in finding().what
        write(manifest)
        card = (read / CARD).read_text(encoding="utf-8").replace("92% sound", "99% sound")
        (read / CARD).write_text(card, encoding="utf-8")
        assert "the card does not say" in finding().what

    def test_a_second_reading_replaces_the_first(
        self, read: Path, reading: Path, sheets: list[Path]
    ) -> None:
        write_soundness(read, score(read, sheets[:1], reading / KEY))
        card = (read / CARD).read_text(encoding="utf-8")
        assert card.count("## Soundness") == 1
        assert "Read by one reader" in card
        assert "two readers" not in card

    def test_damaged_data_gets_no_record(
        self, read: Path, reading: Path, sheets: list[Path]
    ) -> None:
        found = score(read, sheets, reading / KEY)
        (read / "data" / "train-00000-of-00001.parquet").write_bytes(b"PAR1")
        before = (read / CARD).read_bytes()
        with pytest.raises(KbprobeError, match="differs from its checksum"):
            write_soundness(read, found)
        assert (read / CARD).read_bytes() == before


def test_sections_stand_before_those_that_tell_how_it_was_built() -> None:
    card = "---\na: 1\n---\n\n# t\n\n## A\n\na\n\n## Build it again\n\nb\n"
    once = with_section(card, "New", "text")
    assert once == card.replace("## Build", "## New\n\ntext\n\n## Build")
    assert with_section(once, "New", "other") == once.replace("text", "other")
    assert with_section("# t\n", "New", "text") == "# t\n\n## New\n\ntext\n"


def run(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


DOCS = Path(__file__).parents[2] / "docs" / "publish-annotation.md"


def commands(heading: str) -> list[str]:
    """The shell commands of a section of the docs."""
    section = DOCS.read_text(encoding="utf-8").split(f"## {heading}\n")[1].split("\n## ")[0]
    (block,) = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    return block.replace("\\\n", " ").splitlines()


def words_of(command: str) -> Sequence[str]:
    program, *rest = command.split()
    module = {"build-probe": "builders.cli", "release-probe": "release.cli"}[program]
    return [module, *rest]


@pytest.mark.slow  # processes of their own; other tests do the same in this one
def test_the_commands_of_the_docs(tmp_path: Path) -> None:
    """Each in a process of its own, the sheets filled in between."""
    build, scored, checked = commands("Have a build read")
    done = run(*words_of(build), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "key.json tells the rows" in done.stderr
    probe = tmp_path / "probes" / "wordnet_hypernymy"
    reading = tmp_path / "probes" / "wordnet_hypernymy-reading"
    rows = {row["id"]: row for row in load(probe)["test"]}
    right = {item.item_id: rows[item.id]["answerKey"] for item in read_key(reading / KEY).items}
    (tmp_path / "filled").mkdir()
    for name in ("ann", "bob"):
        fill(
            reading,
            tmp_path / "filled" / f"{name}.csv",
            name,
            lambda at, row: (right[row["item_id"]] if at else "two", "4"),
        )
    # A shell expands the pattern.
    files = [str(path) for path in sorted((tmp_path / "filled").glob("*.csv"))]
    words = [word for part in words_of(scored) for word in (files if "*" in part else [part])]
    done = run(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "read by two readers, 60 rows, 98% sound (" in done.stdout
    done = run(*words_of(checked), cwd=tmp_path)
    assert "read by two readers, 60 rows, 98% sound (" in " ".join(done.stdout.split())
    # The same request leaves the reading alone; another build has none.
    run(*words_of(build.replace(" --sample 60 --blind", "")), cwd=tmp_path)
    assert read_manifest(probe).reading
    again = build.replace(" --sample 60 --blind", " --seed 1 --overwrite")
    done = run(*words_of(again), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert read_manifest(probe).reading is None
    assert "## Soundness" not in (probe / CARD).read_text(encoding="utf-8")
    done = run(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert "another build" in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["wordnet_synonymy", "--blind"], "need --sample"),
        (["wordnet_synonymy", "--sheet", "x"], "need --sample"),
        (["wordnet_synonymy", "--sample", "0"], "--sample"),
        (["wordnet_synonymy", "wordnet_hyponymy", "--sample", "9", "--sheet", "x"], "one probe"),
        (["--from-manifest", "m", "--sample", "9"], "cannot be combined with"),
    ],
)
def test_options_that_make_no_sense(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run_here("builders.cli", *words)
    assert done.returncode == 2
    assert message in done.stderr
    assert not list(tmp_path.iterdir())
