"""Annotation sheets out, votes back, a gold standard from them: on small probes of every kind."""

from __future__ import annotations

import csv
import itertools
import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kbprobe.errors import KbprobeError, UsageError
from kbprobe.format.dataset import damaged_files, load
from kbprobe.format.labels import read_labels
from kbprobe.format.manifest import read_manifest, write_manifest
from kbprobe.format.sheets import read_key
from kbprobe.tables import neutral
from release.annotation.round_trip import export_sheets, import_votes
from tests.commands import run_here
from tests.release.annotation_toy import (
    NLI,
    answers,
    long_csv,
    make_probe,
    right_answers,
    sheet_rows,
)

SKILLS = {"ann": 0.9, "bob": 0.8, "cy": 0.7}


@pytest.fixture(scope="module")
def probe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_probe(tmp_path_factory.mktemp("probe") / "toy", controls=["no_language"])


@pytest.fixture(scope="module")
def sheets(probe: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("sheets") / "out"
    export_sheets(probe, out, n=40, seed=3, batch=20, gold_checks=0.15, repeats=0.1)
    return out


def vote(folder: Path, sheets: Path, setup: str = "mc_qa", **skills: float) -> Path:
    """Write the votes of some simulated annotators as a long table."""
    right = right_answers(setup)
    votes = [
        (item, who, said)
        for number, (who, skill) in enumerate((skills or SKILLS).items())
        for item, said in answers(sheets, right, skill, number).items()
    ]
    path = folder / "votes.csv"
    path.write_text(long_csv(votes), encoding="utf-8")
    return path


def files_of(folder: Path) -> dict[str, bytes]:
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


class TestExport:
    def test_a_sheet_shows_each_row_once_with_all_its_choices(
        self, probe: Path, sheets: Path
    ) -> None:
        rows = {row["id"]: row for split in load(probe).values() for row in split}
        key = {item.item_id: item for item in read_key(sheets / "key.json").items}
        found = sheet_rows(sheets)
        assert len(found) == len(key) == len({row["item_id"] for row in found})
        for row in found:
            item = key[row["item_id"]]
            texts = rows[item.id]["choices"]["text"]
            assert [row[letter].lstrip("'") for letter in "ABCD"] == [texts[i] for i in item.order]
            assert row["answer"] == row["annotator"] == ""
            assert row["batch"] == str(item.batch)
        assert len({item.order for item in key.values()}) > 10

    def test_kinds_batches_and_splits_are_as_asked_for(self, sheets: Path) -> None:
        items = read_key(sheets / "key.json").items
        kinds = Counter(item.kind for item in items)
        assert kinds["item"] == 40
        for batch, count in Counter(item.batch for item in items).items():
            own = [item for item in items if item.batch == batch]
            assert count <= 20
            assert Counter(item.kind for item in own)["check"] == 3
            assert Counter(item.kind for item in own)["repeat"] == 2
            places = {(item.kind, item.id): at for at, item in enumerate(own)}
            for (kind, row), at in places.items():
                if kind == "repeat":
                    assert at - places["item", row] >= len(own) // 4
        right = right_answers()
        for item in items:
            assert (item.split == "test") == (item.kind != "check")
            assert item.answer == (right[item.id] if item.kind == "check" else -1)

    def test_sheets_tell_nothing_of_the_answer(self, sheets: Path) -> None:
        public = b"".join(
            data for path, data in files_of(sheets).items() if path.startswith("sheets/batch")
        )
        header = public.split(b"\r\n")[0]
        assert header == (
            b'"item_id","batch","question","A","B","C","D","answer","annotator","comment"'
        )
        for secret in (b"test-0", b"train-0", b"check", b"repeat"):
            assert secret not in public

    def test_the_same_request_gives_the_same_bytes_and_is_told_to_be_there(
        self, probe: Path, tmp_path: Path
    ) -> None:
        for name in ("one", "two"):
            assert not export_sheets(probe, tmp_path / name, n=30, seed=5)[1]
        assert files_of(tmp_path / "one") == files_of(tmp_path / "two")
        files, found = export_sheets(probe, tmp_path / "one", n=30, seed=5)
        assert found
        assert [path.as_posix() for path in files] == list(files_of(tmp_path / "one"))
        files, _ = export_sheets(probe, tmp_path / "three", n=3)
        assert [path.as_posix() for path in files] == list(files_of(tmp_path / "three"))
        with pytest.raises(UsageError, match="from another request"):
            export_sheets(probe, tmp_path / "one", n=30, seed=6)
        export_sheets(probe, tmp_path / "one", n=30, seed=6, overwrite=True)
        assert files_of(tmp_path / "one") != files_of(tmp_path / "two")

    def test_what_people_put_into_the_folder_is_not_lost(self, probe: Path, tmp_path: Path) -> None:
        out = tmp_path / "out"
        export_sheets(probe, out, n=30, batch=10)
        (out / "sheets" / "ann.csv").write_text("votes")
        (out / ".hidden").write_text("mine")
        export_sheets(probe, out, n=3, overwrite=True)
        assert set(files_of(out)) == {
            *(".hidden", "key.json", "sheets.json", "sheets/ann.csv", "sheets/batch-001.csv"),
            "sheets/instructions.html",
        }
        with (out / "sheets" / "batch-001.csv").open("a") as sheet:
            sheet.write("filled in")
        before = files_of(out)
        for overwrite in (False, True):
            with pytest.raises(UsageError, match=r"never replaced: sheets/batch-001\.csv"):
                export_sheets(probe, out, n=4, overwrite=overwrite)
        assert files_of(out) == before

    def test_nobody_else_may_read_the_key(self, probe: Path, tmp_path: Path) -> None:
        export_sheets(probe, tmp_path / "out", n=3)
        modes = {path.name: path.stat().st_mode & 0o077 for path in (tmp_path / "out").iterdir()}
        assert modes["key.json"] == modes["sheets.json"] == 0
        assert modes["sheets"]

    def test_what_is_no_export_is_never_replaced(self, probe: Path, tmp_path: Path) -> None:
        (tmp_path / "mine").mkdir()
        (tmp_path / "mine" / "thesis.txt").write_text("all my work")
        with pytest.raises(UsageError, match="left alone"):
            export_sheets(probe, tmp_path / "mine", n=3, overwrite=True)
        assert files_of(tmp_path / "mine") == {"thesis.txt": b"all my work"}

    def test_a_larger_sample_holds_the_smaller_one(self, probe: Path, tmp_path: Path) -> None:
        for n in (10, 20):
            export_sheets(probe, tmp_path / str(n), n=n, seed=1)
        small, large = (
            {item.id for item in read_key(tmp_path / str(n) / "key.json").items} for n in (10, 20)
        )
        assert small < large

    def test_stratified_samples_are_even(self, probe: Path, tmp_path: Path) -> None:
        export_sheets(probe, tmp_path / "c", n=20, stratify=("cluster",))
        ids = [item.id for item in read_key(tmp_path / "c" / "key.json").items]
        assert len({int(row[-4:]) // 3 for row in ids}) == 20
        export_sheets(probe, tmp_path / "h", n=20, stratify=("hops", "distractor_family"))
        ids = [item.id for item in read_key(tmp_path / "h" / "key.json").items]
        assert Counter(int(row[-4:]) % 2 for row in ids) == {0: 10, 1: 10}

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"n": 61}, "60 rows, fewer than --n 61"),
            ({"split": "tset"}, "no split 'tset'. Did you mean 'test'"),
            ({"config": "nolang"}, "no config 'nolang'"),
            ({"stratify": ("answer",)}, "'answer' is none of cluster"),
            ({"batch": 2, "gold_checks": 0.5, "repeats": 0.4}, "leaves no room"),
        ],
    )
    def test_impossible_requests_name_the_remedy(
        self, probe: Path, tmp_path: Path, options: dict[str, Any], message: str
    ) -> None:
        with pytest.raises(UsageError, match=message):
            export_sheets(probe, tmp_path / "out", **options)
        assert not (tmp_path / "out").exists()

    def test_a_damaged_probe_is_refused(self, tmp_path: Path) -> None:
        folder = make_probe(tmp_path / "toy")
        with (folder / "data" / "test-00000-of-00001.parquet").open("ab") as file:
            file.write(b"x")
        with pytest.raises(KbprobeError, match="differs from its checksum"):
            export_sheets(folder, tmp_path / "out", n=3)

    def test_instructions_escape_what_they_show(self, sheets: Path) -> None:
        page = (sheets / "sheets" / "instructions.html").read_text(encoding="utf-8")
        assert "What is &lt;it&gt; &amp; why?" in page
        assert "<it>" not in page
        assert all(f"<kbd>{mark}</kbd>" in page for mark in ("none", "two", "nonsense"))

    def test_spreadsheets_find_no_formula(self, sheets: Path) -> None:
        for row in sheet_rows(sheets):
            for cell in row.values():
                assert not cell.lstrip().startswith(tuple("=+-@\t\r"))
        assert sheet_rows(sheets)[0]["question"].startswith("'+What")

    @pytest.mark.parametrize(
        "text", ["=1", "+1", "-1", "@A", "\t=1", "\n=1", " =1", "\u00a0@x", "＝1", "|x", "%x"]
    )
    def test_neutral_cells_begin_with_an_apostrophe(self, text: str) -> None:
        assert neutral(text) == f"'{text}"
        assert neutral(f"x{text}") == f"x{text}"

    def test_pandas_reads_a_sheet_as_csv_does(self, sheets: Path) -> None:
        import pandas

        paths = sorted((sheets / "sheets").glob("*.csv"))
        frames = [pandas.read_csv(path, dtype=str, keep_default_na=False) for path in paths]
        assert pandas.concat(frames).to_dict("records") == sheet_rows(sheets)

    def test_fixed_answers_keep_one_order_and_a_gap_stands_for_the_mask(
        self, tmp_path: Path
    ) -> None:
        folder = make_probe(tmp_path / "toy", "mc_mlm")
        export_sheets(folder, tmp_path / "out", n=12)
        rows = sheet_rows(tmp_path / "out")
        assert {(row["A"], row["B"], row["C"]) for row in rows} == {
            ("always", "sometimes", "never")
        }
        assert all("_____" in row["question"] and "[MASK]" not in row["question"] for row in rows)


class TestImport:
    def test_the_round_trip_equals_a_plain_computation(
        self, probe: Path, sheets: Path, tmp_path: Path
    ) -> None:
        path = vote(tmp_path, sheets)
        done = import_votes(probe, [path], key=sheets / "key.json")
        items = {
            item.item_id: item
            for item in read_key(sheets / "key.json").items
            if item.kind == "item"
        }
        by_row: dict[str, list[str | int]] = {item.id: [] for item in items.values()}
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                if (item := items.get(row["item_id"])) is not None:
                    said = row["answer"]
                    by_row[item.id].append(
                        item.order["ABCD".index(said)] if len(said) == 1 else said
                    )
        right = right_answers()
        kept = set()
        for label in done.labels:
            said = Counter(by_row[label["id"]])
            best, most = said.most_common(1)[0]
            expected = best if most >= 2 and isinstance(best, int) else -1
            assert label["answer"] == expected
            assert Counter(v["answer"] for v in label["votes"]) == Counter(
                a if isinstance(a, int) else -1 for a in by_row[label["id"]]
            )
            if expected == right[label["id"]]:
                kept.add(label["id"])
            assert label["kept"] == (label["id"] in kept)
        assert {label["id"] for label in done.labels} == set(by_row)
        report = done.report
        assert report.kept == len(kept)
        flat = [(row, a) for row, said in by_row.items() for a in said]
        assert report.votes == len(flat) == 120
        assert report.vote_accuracy is not None
        assert report.vote_accuracy.value == pytest.approx(
            sum(a == right[row] for row, a in flat) / len(flat)
        )
        assert report.label_accuracy is not None
        assert report.label_accuracy.value == pytest.approx(len(kept) / 40)
        pairs = [
            sum(a == b for a, b in itertools.combinations(said, 2)) / 3 for said in by_row.values()
        ]
        assert report.agreement.pairwise == pytest.approx(sum(pairs) / len(pairs))
        assert report.agreement.alpha == pytest.approx(naive_alpha(list(by_row.values())))

    def test_sheets_filled_in_are_read_as_they_come_back(
        self, probe: Path, sheets: Path, tmp_path: Path
    ) -> None:
        paths = []
        for number, (who, skill) in enumerate(SKILLS.items()):
            said = answers(sheets, right_answers(), skill, number)
            for sheet in sorted((sheets / "sheets").glob("*.csv")):
                with sheet.open(encoding="utf-8", newline="") as file:
                    rows = list(csv.DictReader(file))
                for row in rows:
                    row["answer"] = f" {said[row['item_id']].lower()}."
                rows[4]["annotator"] = who
                paths.append(tmp_path / f"{who}-{sheet.name}")
                with paths[-1].open("w", encoding="utf-8", newline="") as file:
                    writer = csv.DictWriter(file, list(rows[0]))
                    writer.writeheader()
                    writer.writerows(rows)
        back = import_votes(probe, paths, key=sheets / "key.json")
        assert (
            back.labels
            == import_votes(probe, [vote(tmp_path, sheets)], key=sheets / "key.json").labels
        )

    def test_annotators_who_fail_the_checks_are_named_and_left_out_if_asked(
        self, probe: Path, sheets: Path, tmp_path: Path
    ) -> None:
        path = vote(tmp_path, sheets, ann=1.0, bob=1.0, cy=1.0, troll=0.0)
        key = sheets / "key.json"
        done = import_votes(probe, [path], key=key, pass_checks=0.7)
        assert {who.name: who.failed for who in done.report.annotators}["troll"]
        assert done.report.votes == 160
        left = import_votes(probe, [path], key=key, pass_checks=0.7, exclude_failing=True)
        assert [who.name for who in left.report.annotators if who.excluded] == ["troll"]
        assert left.report.votes == 120
        assert all(len(label["votes"]) == 3 for label in left.labels)

    def test_repeats_tell_who_is_of_one_mind(
        self, probe: Path, sheets: Path, tmp_path: Path
    ) -> None:
        right = right_answers()
        votes = [(i, "sure", a) for i, a in answers(sheets, right, 1, 0, marks=0).items()]
        votes += [(i, "unsure", "A") for i, _, _ in list(votes)]
        path = tmp_path / "v.csv"
        path.write_text(long_csv(votes), encoding="utf-8")
        done = import_votes(probe, [path], key=sheets / "key.json")
        who = {one.name: one for one in done.report.annotators}
        repeats = sum(item.kind == "repeat" for item in read_key(sheets / "key.json").items)
        assert who["sure"].repeats == who["sure"].repeats_same == repeats
        assert who["unsure"].repeats_same < repeats

    def test_min_votes_and_rules(self, probe: Path, sheets: Path, tmp_path: Path) -> None:
        path, key = vote(tmp_path, sheets, ann=0.9, bob=0.5), sheets / "key.json"
        few = import_votes(probe, [path], key=key)
        assert few.report.kept == 0
        assert few.report.dropped == {"too few votes": 40}
        assert few.report.label_accuracy is None
        both = import_votes(probe, [path], key=key, min_votes=2, rule="unanimous")
        assert 0 < both.report.kept < 40
        with pytest.raises(UsageError, match="must be majority, unanimous or at-least-N"):
            import_votes(probe, [path], key=key, rule="most")

    def test_pairs_of_sentences_are_judged_on_a_scale(self, tmp_path: Path) -> None:
        folder = make_probe(tmp_path / "toy", "nli")
        export_sheets(folder, tmp_path / "out", n=4)
        rows = sheet_rows(tmp_path / "out")
        assert list(rows[0]) == [
            "item_id", "batch", "premise", "hypothesis", "answer", "annotator", "comment",
        ]  # fmt: skip
        said = [("5", "4", "1"), ("3", "3.0", "nonsense"), ("1", "2", "3"), ("5", "3", "1")]
        votes = [
            (row["item_id"], f"w{n}", answer)
            for row, three in zip(rows, said, strict=True)
            for n, answer in enumerate(three)
        ]
        path = tmp_path / "v.csv"
        path.write_text(long_csv(votes), encoding="utf-8")
        wrong = tmp_path / "wrong.csv"
        wrong.write_text(long_csv([(rows[0]["item_id"], "w", "two")]), encoding="utf-8")
        with pytest.raises(KbprobeError, match="'two' is none of 5, 4, 3, 2, 1, nonsense"):
            import_votes(folder, [wrong], key=tmp_path / "out" / "key.json")
        done = import_votes(folder, [path], key=tmp_path / "out" / "key.json")
        by_row = {label["id"]: label for label in done.labels}
        order = [item.id for item in read_key(tmp_path / "out" / "key.json").items]
        found = [(by_row[row]["label"], by_row[row]["reason"]) for row in order]
        assert found == [
            (NLI[0], ""),
            ("", "found senseless"),
            (NLI[2], ""),
            ("", "no answer has enough votes"),
        ]
        assert done.report.agreement.alpha_ordinal is not None

    def test_votes_without_a_key_name_the_probes_own_ids(self, probe: Path, tmp_path: Path) -> None:
        right = right_answers()
        votes = [(f"test-{at:04d}", who, "ABCD"[right[f"test-{at:04d}"]])
                 for at in range(9) for who in "abc"]  # fmt: skip
        path = tmp_path / "v.csv"
        path.write_text(long_csv(votes), encoding="utf-8")
        done = import_votes(probe, [path])
        assert done.report.kept == done.report.rows == 9
        assert done.report.agreement.alpha == 1
        assert done.report.vote_accuracy is not None
        assert done.report.vote_accuracy.high == 1

    def test_sheets_read_without_their_key_say_what_is_lacking(
        self, probe: Path, sheets: Path, tmp_path: Path
    ) -> None:
        with pytest.raises(KbprobeError, match=r"need their key: --key SHEETS/key\.json"):
            import_votes(probe, [vote(tmp_path, sheets)])

    def test_a_key_of_another_build_is_refused(
        self, probe: Path, sheets: Path, tmp_path: Path
    ) -> None:
        other = make_probe(tmp_path / "other", "mc_mlm")
        path = vote(tmp_path, sheets)
        with pytest.raises(UsageError, match="another build of toy"):
            import_votes(other, [path], key=sheets / "key.json")
        (tmp_path / "key.json").write_text("{}")
        with pytest.raises(UsageError, match="annotate export did not write it"):
            import_votes(probe, [path], key=tmp_path / "key.json")

    @pytest.mark.parametrize(
        ("name", "value", "problem"),
        [
            ("anrwer", 0, r"items\.\d+\.anrwer: is unknown"),
            ("kind", "item", r"items\.\d+: .*'answer' is that of a check.* for item"),
            ("answer", -1, r"items\.\d+: .*'answer' is that of a check.* got -1 for check"),
        ],
    )
    def test_a_key_is_read_strictly(
        self, probe: Path, sheets: Path, tmp_path: Path, name: str, value: object, problem: str
    ) -> None:
        """A check without its answer would fail every annotator."""
        held = json.loads((sheets / "key.json").read_text())
        check = next(item for item in held["items"] if item["kind"] == "check")
        if name == "anrwer":
            del check["answer"]
        check[name] = value
        path = tmp_path / "key.json"
        path.write_text(json.dumps(held))
        with pytest.raises(UsageError, match=rf"{path}: {problem}.*Export the sheets again"):
            import_votes(probe, [vote(tmp_path, sheets)], key=path)
        path.write_text(json.dumps({**json.loads((sheets / "key.json").read_text()), "sede": 1}))
        with pytest.raises(UsageError, match="sede: is unknown"):
            read_key(path)


class TestGold:
    def test_the_gold_standard_is_a_probe(self, probe: Path, sheets: Path, tmp_path: Path) -> None:
        done = import_votes(probe, [vote(tmp_path, sheets)], key=sheets / "key.json")
        gold = tmp_path / "gold"
        assert not done.write(gold)
        assert done.write(gold)
        kept = {label["id"] for label in done.labels if label["kept"]}
        manifest = read_manifest(gold)
        assert damaged_files(gold, manifest.files) == []
        built = {row["id"]: row for row in load(probe)["test"]}
        rows = {row["id"]: row for row in load(gold)["test"]}
        assert rows == {row: built[row] for row in kept}
        assert {row["id"] for row in load(gold, "no_language")["test"]} == kept
        assert read_labels(gold / "annotations.jsonl") == done.labels
        assert manifest.content["annotation"]["kept"] == len(kept) == manifest.counts.rows
        card = (gold / "README.md").read_text(encoding="utf-8")
        assert "Public domain." in card
        assert "kbprobe canary GUID 0" in card
        everything = b"".join(files_of(gold).values())
        assert b"annotator-1" in everything
        assert b'"ann"' not in everything

    def test_datasets_and_evaluation_read_it(
        self, probe: Path, sheets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        import datasets

        from evaluation.items.sources import open_probe

        done = import_votes(probe, [vote(tmp_path, sheets)], key=sheets / "key.json")
        done.write(tmp_path / "gold", other_splits=True)
        loaded = datasets.load_dataset(str(tmp_path / "gold"), cache_dir=str(tmp_path / "cache"))
        assert set(loaded) == {"train", "validation", "test"}
        assert loaded["test"].num_rows == done.report.kept
        assert loaded["train"].num_rows == 40
        opened = open_probe(str(tmp_path / "gold"))
        assert [item.id for item in opened.items] == loaded["test"]["id"]
        assert opened.clustered

    def test_candidates_without_labels_get_them(self, tmp_path: Path) -> None:
        folder = make_probe(tmp_path / "toy", "mc_mlm", labelled=False)
        out = tmp_path / "out"
        with pytest.raises(UsageError, match=r"there are 0\. Name some with --checks"):
            export_sheets(folder, out, n=30, gold_checks=0.1)
        export_sheets(folder, out, n=30)
        path = vote(tmp_path, out, "mc_mlm", a=1, b=1, c=1, d=0.2, e=0.2)
        done = import_votes(folder, [path], key=out / "key.json")
        assert done.report.vote_accuracy is None
        for name in ("labels.jsonl", "labels.parquet"):
            done.write_labels(tmp_path / name)
            labels = read_labels(tmp_path / name)
            assert [label["id"] for label in labels] == [label["id"] for label in done.labels]
            for label in labels:
                assert set(label) >= {"id", "answer", "label", "votes", "agreement"}
        right = right_answers("mc_mlm")
        assert all(label["answer"] in (right[label["id"]], -1) for label in done.labels)
        done.write(tmp_path / "gold")
        rows = load(tmp_path / "gold")["test"]
        assert {row["id"]: row["answer"] for row in rows} == {
            label["id"]: label["answer"] for label in done.labels if label["kept"]
        }
        assert all(row["answerKey"] == "ABC"[row["answer"]] for row in rows)
        # What people agreed on once serves as checks the next time.
        export_sheets(
            folder,
            tmp_path / "next",
            n=20,
            seed=9,
            gold_checks=0.1,
            checks=tmp_path / "labels.jsonl",
        )
        checks = [i for i in read_key(tmp_path / "next" / "key.json").items if i.kind == "check"]
        assert len(checks) == 5
        assert all(item.answer == right[item.id] for item in checks)

    def test_a_label_that_is_not_the_built_answer_takes_its_triples_away(
        self, probe: Path, sheets: Path, tmp_path: Path
    ) -> None:
        items = [i for i in read_key(sheets / "key.json").items if i.kind == "item"][:6]
        votes = [(item.item_id, who, "A") for item in items for who in "abc"]
        path = tmp_path / "v.csv"
        path.write_text(long_csv(votes), encoding="utf-8")
        done = import_votes(probe, [path], key=sheets / "key.json", keep="voted")
        done.write(tmp_path / "gold")
        right = right_answers()
        for row in load(tmp_path / "gold")["test"]:
            assert bool(row["triples"]) == (row["answer"] == right[row["id"]])
        assert not (tmp_path / "gold" / "no_language").exists()

    def test_people_replace_answers_that_no_person_gave(self, tmp_path: Path) -> None:
        read = make_probe(tmp_path / "read", "mc_mlm")
        source = {"annotation": {"annotator_kind": "language model", "source": "Readings."}}
        write_manifest(read, {**read_manifest(read).content, **source})
        with pytest.raises(UsageError, match="whose answer is known; there are 0"):
            export_sheets(read, tmp_path / "checked", n=20, gold_checks=0.1)
        export_sheets(read, tmp_path / "sheets", n=20)
        key = tmp_path / "sheets" / "key.json"
        votes = [(item.item_id, who, "A") for item in read_key(key).items for who in "abc"]
        path = tmp_path / "v.csv"
        path.write_text(long_csv(votes), encoding="utf-8")
        done = import_votes(read, [path], key=key)
        done.write(tmp_path / "gold")
        rows = load(tmp_path / "gold")["test"]
        assert len(rows) == 20
        assert {row["choices"]["text"][row["answer"]] for row in rows} == {"always"}
        annotation = read_manifest(tmp_path / "gold").annotation
        assert annotation is not None
        assert annotation.annotator_kind == "human"

    def test_another_gold_standard_is_not_overwritten(
        self, probe: Path, sheets: Path, tmp_path: Path
    ) -> None:
        path, key = vote(tmp_path, sheets), sheets / "key.json"
        import_votes(probe, [path], key=key).write(tmp_path / "gold")
        other = import_votes(probe, [path], key=key, rule="unanimous")
        with pytest.raises(UsageError, match="--overwrite"):
            other.write(tmp_path / "gold")
        other.write(tmp_path / "gold", overwrite=True)
        assert read_manifest(tmp_path / "gold").content["annotation"]["rule"] == "unanimous"


def naive_alpha(units: list[list[Any]]) -> float:
    """Krippendorff's alpha, nominal, pair by pair: 1 - observed / expected disagreement."""
    units = [said for said in units if len(said) > 1]
    values = [value for said in units for value in said]
    observed = sum(
        sum(a != b for a, b in itertools.permutations(said, 2)) / (len(said) - 1) for said in units
    ) / len(values)
    expected = sum(a != b for a, b in itertools.permutations(values, 2)) / (
        len(values) * (len(values) - 1)
    )
    return 1 - observed / expected


class TestCommand:
    def run(self, *words: str | Path) -> subprocess.CompletedProcess[str]:
        return run_here("release.cli", "annotate", *words)

    def test_there_and_back(self, probe: Path, tmp_path: Path) -> None:
        out = tmp_path / "sheets"
        done = self.run("export", probe, "--n", "20", "--seed", "4", "-o", out)
        assert done.returncode == 0, done.stderr
        assert "Keep" in done.stderr
        path = vote(tmp_path, out)
        done = self.run(
            "import", probe, "--votes", path, "--key", out / "key.json",
            "-o", tmp_path / "gold", "--labels", tmp_path / "labels.jsonl",
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert "Krippendorff's alpha" in done.stdout
        assert (tmp_path / "gold" / "manifest.json").exists()
        assert len(read_labels(tmp_path / "labels.jsonl")) == 20
        done = self.run("import", probe, "--votes", path, "--key", out / "key.json", "--json")
        assert json.loads(done.stdout)["votes"] == 60

    def test_bad_votes_are_all_named_and_nothing_is_written(
        self, probe: Path, sheets: Path, tmp_path: Path
    ) -> None:
        item = read_key(sheets / "key.json").items[0].item_id
        path = tmp_path / "v.csv"
        path.write_text(
            long_csv([(item, "a", "F"), ("qnone", "a", "A"), (item, "b", "A"), (item, "b", "B")])
        )
        words = ("import", probe, "--votes", path, "--key", sheets / "key.json")
        done = self.run(*words, "-o", tmp_path / "gold", "--labels", tmp_path / "l.jsonl")
        assert done.returncode == 1
        assert f"{path}, row 2: 'F' is none of A, B, C, D, none, two, nonsense" in done.stderr
        assert f"{path}, row 3: no item 'qnone'" in done.stderr
        assert f"{path}, row 5: contradicts the vote of b at {path}, row 4" in done.stderr
        assert not (tmp_path / "gold").exists()
        assert not (tmp_path / "l.jsonl").exists()
        done = self.run(*words, "--skip-bad", "--json")
        assert done.returncode == 0
        assert len(json.loads(done.stdout)["left_out"]) == 3
