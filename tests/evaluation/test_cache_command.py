"""``evaluate-probe cache``: what is kept, how large it is, and how it goes."""

import json

import pytest

from evaluation.cache import KINDS, held
from evaluation.cli import main


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("KBPROBE_CACHE", str(tmp_path))
    entries = [
        *(("scores", "a" * 64, "key.json", "x" * 10), ("scores", "b" * 64, "key.json", "x" * 20)),
        *(("vectors", "c" * 64, "about.json", "x" * 30),),
        *(("vectors", "d" * 64, "about.json", '{"model": "tiny"}'),),
    ]
    others = ["scores/exam/key.json", "vectors/art/about.json", f"finetuned/{'e' * 64}/a.txt"]
    for kind, name, record, content in entries + [(*o.split("/"), "mine") for o in others]:
        (tmp_path / kind / name).mkdir(parents=True)
        (tmp_path / kind / name / record).write_text(content)
    (tmp_path / "snapshots" / "kept").mkdir(parents=True)
    yield tmp_path
    assert all((tmp_path / name).is_file() for name in others)


def run(*words, code=0):
    with pytest.raises(SystemExit) as done:
        main(["cache", *words])
    assert (done.value.code or 0) == code


def test_it_lists_kinds_and_models_with_their_sizes(capsys):
    run("--json")
    rows = json.loads(capsys.readouterr().out)
    assert [(row["kind"], row["entries"], row["bytes"]) for row in rows] == [
        ("scores", 2, 30),
        ("vectors", 1, 30),
        ("vectors", 1, 17),
    ]
    assert [row["what"] for row in rows if row["kind"] == "vectors"] == [
        "hidden states of an unknown model",
        "hidden states of tiny",
    ]
    run("scores")
    shown = capsys.readouterr()
    assert "scores" in shown.out
    assert "vectors" not in shown.out
    assert "evaluate-probe cache KIND --clear" in shown.err


def test_it_removes_one_kind_or_all_and_nothing_else(cache, capsys, monkeypatch):
    run("scores", "--clear", "--yes")
    assert {one.kind for one in held()} == {"vectors"}
    run("--clear", "--all", "--yes")
    assert held() == []
    assert (cache / "snapshots" / "kept").is_dir()
    run("--clear", "--all", "--yes")
    assert "nothing to remove" in capsys.readouterr().err
    run()
    assert "In " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("vector",), "Did you mean 'vectors'"),
        (
            ("--clear",),
            "one of scores, endpoints, vectors, finetuned, or --all",
        ),
        (("scores", "--clear", "--all"), "say what to remove"),
        (("--yes",), "--all and --yes require --clear"),
    ],
)
def test_what_makes_no_sense_is_refused(words, message, capsys):
    run(*words, code=2)
    assert message in capsys.readouterr().err


def test_the_kinds_are_the_folders_that_evaluations_write():
    from evaluation.endpoints.served import ENDPOINTS
    from evaluation.frozen.store import VECTORS
    from evaluation.runs.score_cache import SCORES

    assert list(KINDS)[:3] == [SCORES, ENDPOINTS, VECTORS]
