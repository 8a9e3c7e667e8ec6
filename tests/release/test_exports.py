"""What is exported, and into which folder; the harnesses themselves have tests of their own."""

import ast
import json
import os
import shutil

import pyarrow.parquet as pq
import pytest
import yaml

import kbprobe
from evaluation.items.sources import open_probe
from kbprobe.errors import KbprobeError, UsageError
from release.annotation.round_trip import export_sheets
from release.checks.checking import check
from release.cli import main
from release.exports.exporting import RECORD, export
from release.exports.flat import BLANK
from release.exports.source import rendered
from release.exports.targets import TARGETS, find_target
from tests.release.exports_toy import CLOZES, ODD, rows, write_probe


@pytest.fixture
def odd(tmp_path):
    """Questions, and clozes as a further config, with texts that are hard to carry."""
    questions = {"test": rows(ODD), "validation": rows(ODD)}
    return write_probe(
        tmp_path / "odd",
        {"default": questions, "clozes": {"test": rows(CLOZES, "mc_mlm")}},
    )


def bytes_of(folder):
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def test_the_command_knows_every_target():
    assert set(TARGETS) == {"lm-eval", "lighteval", "inspect", "jsonl-arc"}
    assert all(find_target(name).title for name in TARGETS)


@pytest.mark.parametrize("to", TARGETS)
def test_the_same_request_gives_the_same_bytes(odd, tmp_path, to):
    first, second = (export(odd, to, tmp_path / name) for name in ("one", "two"))
    assert bytes_of(first.folder) == bytes_of(second.folder)
    assert {path.name for path in tmp_path.iterdir()} == {"odd", "one", "two"}
    page = (first.folder / "README.md").read_text(encoding="utf-8")
    assert all(command in page for command in first.commands)
    assert all(name in page for name in first.tasks)
    assert first.rows == {"kbprobe_toy_s_probe": len(ODD), "kbprobe_toy_s_probe_clozes": 3}
    again = export(odd, to, tmp_path / "one")
    assert again.found
    assert (again.tasks, again.commands) == (first.tasks, first.commands)


@pytest.mark.parametrize("to", TARGETS)
@pytest.mark.parametrize("name", ["../../out", "/tmp/out", "x/../../out", ".."])
def test_a_config_cannot_lead_out_of_the_folder(odd, tmp_path, to, name):
    text = (odd / "manifest.json").read_text(encoding="utf-8")
    (odd / "manifest.json").write_text(text.replace('"clozes"', json.dumps(name)), encoding="utf-8")
    with pytest.raises(UsageError, match=r"cannot be the name of a folder|manifest.json"):
        export(odd, to, tmp_path / "one" / "two" / "three")
    assert {path.name for path in tmp_path.iterdir()} <= {"odd", "one"}


def test_nothing_ends_a_docstring_of_a_task_file():
    text = 'x."""\nimport os\n\\'
    tasks = [{"name": "t", "place": text}]
    module = rendered("targets/inspect.py.j2", tasks=tasks, metadata=(), repo_id=None)
    body = ast.parse(module).body
    imported = [name.name for one in body if isinstance(one, ast.Import) for name in one.names]
    assert imported == ["pyarrow.parquet"]
    (task,) = (one for one in body if isinstance(one, ast.FunctionDef) and one.name == "t")
    assert ast.get_docstring(task, clean=False) == f"Rows of {text}."


@pytest.mark.parametrize("to", ["lighteval", "inspect"])
def test_task_files_are_python(odd, tmp_path, to):
    for name, options in (("own", {}), ("hub", {"repo_id": "me/odd"})):
        done = export(odd, to, tmp_path / name, **options)
        text = (done.folder / "task.py").read_text(encoding="utf-8")
        compile(text, "task.py", "exec")
        assert all(task in text for task in done.tasks)


@pytest.mark.parametrize("to", TARGETS)
def test_two_exports_beside_each_other_have_other_names(odd, tmp_path, to):
    """A harness that is given the folder of both would run one of them under both names."""
    other = write_probe(tmp_path / "another", {"default": {"test": rows(ODD[:2])}})
    first = export(odd, to, tmp_path / "exports" / "first")
    with pytest.raises(UsageError, match=r"first has a task kbprobe_toy_s_probe .* --name NAME"):
        export(other, to, tmp_path / "exports" / "second")
    second = export(other, to, tmp_path / "exports" / "second", name="seed 1")
    assert set(second.tasks) == {"kbprobe_seed_1"}
    assert not set(first.tasks) & set(second.tasks)
    assert export(other, to, tmp_path / "exports" / "second", name="seed 1").found
    export(other, next(name for name in TARGETS if name != to), tmp_path / "exports" / "third")


def test_arc_lines_are_read_back_as_the_same_rows(odd, built_probe, tmp_path):
    for number, (folder, configs) in enumerate(
        [
            (odd, ["default", "clozes"]),
            (built_probe("antonym_negation"), ["default", "no_language", "perturbed"]),
        ]
    ):
        done = export(folder, "jsonl-arc", tmp_path / str(number))
        for config in configs:
            was = open_probe(str(folder), config=config)
            place = done.folder if config == "default" else done.folder / config
            now = open_probe(str(place / "test.jsonl"))
            assert now.fingerprint == was.fingerprint
            assert now.items == was.items
            assert now.about.select(["cluster", "hops"]).equals(
                was.about.select(["cluster", "hops"])
            )
            by_folder = open_probe(str(done.folder), config=None if config == "default" else config)
            assert by_folder.items == was.items
    line = json.loads((tmp_path / "0" / "test.jsonl").read_text(encoding="utf-8").split("\n")[0])
    assert list(line)[:3] == ["id", "question", "answerKey"]
    assert line["question"]["choices"][0] == {"text": "{{ question }}", "label": "A"}


def test_rows_copied_for_harnesses_are_those_of_the_probe(odd, tmp_path):
    done = export(odd, "lm-eval", tmp_path / "out")
    for path in ("data/test-00000-of-00001.parquet", "clozes/data/test-00000-of-00001.parquet"):
        assert (done.folder / path).read_bytes() == (odd / path).read_bytes()


def test_inspect_shows_a_blank_for_the_mask(odd, tmp_path):
    done = export(odd, "inspect", tmp_path / "out")
    shown = pq.read_table(done.folder / "clozes" / "data" / "test.parquet").to_pylist()
    assert shown[0]["input"] == CLOZES[0][0].replace("[MASK]", BLANK)
    assert [row["target"] for row in shown] == ["A", "B", "A"]
    assert shown[1]["choices"] == CLOZES[1][1]


def test_a_published_probe_is_read_from_the_hub(odd, tmp_path):
    done = export(odd, "lm-eval", tmp_path / "out", repo_id="me/odd")
    assert not list(done.folder.rglob("*.parquet"))
    task = yaml.safe_load((done.folder / "kbprobe_toy_s_probe_clozes.yaml").read_text())
    assert (task["dataset_path"], task["dataset_name"]) == ("me/odd", "clozes")
    with pytest.raises(UsageError, match="USER/NAME"):
        export(odd, "lm-eval", tmp_path / "other", repo_id="odd")
    done = export(odd, "inspect", tmp_path / "inspect", repo_id="me/odd")
    assert not list(done.folder.rglob("*.parquet"))
    text = (done.folder / "task.py").read_text(encoding="utf-8")
    assert "'me/odd'" in text
    assert "ask('kbprobe_toy_s_probe_clozes', 'clozes-flat')" in text
    with pytest.raises(UsageError, match="split test alone"):
        export(
            odd,
            "inspect",
            tmp_path / "other",
            repo_id="me/odd",
            split="validation",
            configs=["default"],
        )


def test_solved_examples_come_from_another_split_that_is_labelled(tmp_path):
    folder = write_probe(
        tmp_path / "probe",
        {"default": {"test": rows(ODD), "validation": rows(ODD, answer=-1), "train": rows(ODD)}},
    )
    done = export(folder, "lm-eval", tmp_path / "out")
    task = yaml.safe_load((done.folder / "kbprobe_toy_s_probe.yaml").read_text())
    assert task["fewshot_split"] == "train"
    assert set(task["dataset_kwargs"]["data_files"]) == {"test", "train"}
    done = export(folder, "lm-eval", tmp_path / "train", split="train")
    assert list(done.tasks) == ["kbprobe_toy_s_probe_train"]


@pytest.mark.parametrize("to", TARGETS)
def test_rows_that_cannot_be_scored_are_refused(tmp_path, to):
    cases = {
        r"2 of 3 rows have no answer yet": rows(ODD[:1]) + rows(ODD[1:3], answer=-1),
        r"holds rows of nli, which need a classifier": rows(ODD, "nli"),
        r"clozes without exactly one \[MASK\]": rows(ODD, "mc_mlm"),
        r"holds no rows": [],
    }
    for number, (message, some) in enumerate(cases.items()):
        folder = write_probe(tmp_path / f"probe{number}", {"default": {"test": some}})
        with pytest.raises(UsageError, match=message):
            export(folder, to, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_export_is_not_written_into_the_probe(tmp_path):
    folder = write_probe(tmp_path / "probe", {"default": {"test": rows(ODD)}})
    with pytest.raises(UsageError, match=r"is in the probe's folder: choose one outside it \(-o\)"):
        export(folder, "lm-eval", folder / "data" / "lm-eval")
    assert not (folder / "data" / "lm-eval").exists()


def test_lm_eval_cannot_ask_everything(tmp_path):
    mixed = write_probe(
        tmp_path / "mixed", {"default": {"test": rows(ODD) + rows(CLOZES, "mc_mlm")}}
    )
    with pytest.raises(UsageError, match="mixes mc_mlm and mc_qa rows"):
        export(mixed, "lm-eval", tmp_path / "out")
    digits = write_probe(
        tmp_path / "digits", {"default": {"test": rows([("12[MASK]", ["3", "4"])], "mc_mlm")}}
    )
    with pytest.raises(UsageError, match="digits alone before"):
        export(digits, "lm-eval", tmp_path / "out")
    assert export(digits, "lighteval", tmp_path / "out").rows == {"kbprobe_toy_s_probe": 1}


def test_what_is_there_is_not_lost(odd, tmp_path):
    out = tmp_path / "out"
    export(odd, "lm-eval", out)
    before = bytes_of(out)
    with pytest.raises(UsageError, match="an export built from another request"):
        export(odd, "inspect", out)
    digits = write_probe(
        tmp_path / "digits", {"default": {"test": rows([("12[MASK]", ["3", "4"])], "mc_mlm")}}
    )
    with pytest.raises(UsageError, match="digits alone"):  # found out while it is written
        export(digits, "lm-eval", out, overwrite=True)
    assert bytes_of(out) == before
    (out / "logs").mkdir()
    (out / "logs" / "run.eval").write_bytes(b"log")
    (out / "task.py").mkdir()
    (out / "task.py" / "mine.py").write_bytes(b"pass")
    with pytest.raises(UsageError, match=r"where new ones belong: task\.py/mine\.py"):
        export(odd, "inspect", out, overwrite=True)
    assert bytes_of(out) == {**before, "logs/run.eval": b"log", "task.py/mine.py": b"pass"}
    shutil.rmtree(out / "task.py")
    export(odd, "inspect", out, overwrite=True)
    assert (out / "logs" / "run.eval").read_bytes() == b"log"
    assert not list(out.glob("kbprobe_*.yaml"))
    (out / "task.py").write_text("changed")
    with pytest.raises(UsageError, match="is damaged"):
        export(odd, "inspect", out)
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("years of work")
    with pytest.raises(UsageError, match="not an export"):
        export(odd, "inspect", mine, overwrite=True)
    assert (mine / "thesis.txt").exists()


READERS = {
    "export": lambda probe, out: export(probe, "lm-eval", out),
    "annotate": lambda probe, out: export_sheets(probe, out, n=1),
    "evaluate": lambda probe, _: open_probe(str(probe)),
    "load": lambda probe, _: kbprobe.load(probe),
}


@pytest.mark.posix
@pytest.mark.parametrize("link", ["data/test-00000-of-00001.parquet", "data", "README.md"])
def test_a_link_out_of_the_folder_is_followed_by_no_command(odd, tmp_path, link):
    outside = tmp_path / "outside"
    if not (odd / link).exists():
        (odd / link).write_text("beside the data")
    (odd / link).rename(outside)
    (odd / link).symlink_to(outside)
    for read in READERS.values():
        with pytest.raises(UsageError, match=r"is a link to .*, outside of the folder"):
            read(odd, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    (failed,) = check(odd).findings
    assert "is a link to" in failed.what
    (odd / link).unlink()
    (odd / link).symlink_to(os.path.relpath(odd / "moved", (odd / link).parent))
    outside.rename(odd / "moved")
    assert READERS["evaluate"](odd, None).items, "a link within the folder is one of the probe"


@pytest.mark.posix
def test_links_of_the_hubs_cache_are_followed(odd, tmp_path):
    """It keeps each file once, below ``blobs``, and a folder of links for each revision."""
    blobs, probe = tmp_path / "datasets--x" / "blobs", tmp_path / "datasets--x" / "snapshots" / "a1"
    blobs.mkdir(parents=True)
    for number, path in enumerate(sorted(odd.rglob("*"))):
        if path.is_file():
            shutil.copyfile(path, blobs / str(number))
            link = probe / path.relative_to(odd)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(blobs / str(number))
    assert kbprobe.load(probe)["test"].num_rows


def test_what_a_harness_leaves_behind_is_no_change(odd, tmp_path):
    out = tmp_path / "out"
    export(odd, "inspect", out)
    (out / "logs").mkdir()
    (out / "logs" / "run.eval").write_bytes(b"log")
    assert export(odd, "inspect", out).found


def test_damage_and_wrong_names_are_named(odd, tmp_path):
    with pytest.raises(UsageError, match="Did you mean 'lm-eval'"):
        export(odd, "lm_eval", tmp_path / "out")
    with pytest.raises(UsageError, match="It has: default, clozes"):
        export(odd, "lm-eval", tmp_path / "out", configs=["controls"])
    with pytest.raises(UsageError, match="no split 'dev'"):
        export(odd, "lm-eval", tmp_path / "out", split="dev")
    path = odd / "data" / "test-00000-of-00001.parquet"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(KbprobeError, match="differs from its checksum"):
        export(odd, "lm-eval", tmp_path / "out")


def test_the_command_prints_what_to_run(odd, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(["export", "odd", "--to", "lm-eval", "--config", "default"])
    assert ended.value.code == 0
    told = capsys.readouterr()
    assert told.out.splitlines()[0] == "cd exports/odd-lm-eval"
    assert told.out.splitlines()[1].endswith("--tasks kbprobe_toy_s_probe")
    assert (tmp_path / "exports" / "odd-lm-eval" / RECORD).is_file()
    with pytest.raises(SystemExit) as ended:
        main(["export", "odd", "--to", "inspect", "--json"])
    assert ended.value.code == 0
    assert json.loads(capsys.readouterr().out)["rows"]["kbprobe_toy_s_probe"] == len(ODD)
