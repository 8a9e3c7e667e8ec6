"""What a wrong first call of publishing is told."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import release
from kbprobe.errors import UsageError
from kbprobe.format.manifest import read_manifest
from kbprobe.format.sheets import read_key
from release import cli
from release.annotation.round_trip import export_sheets
from release.checks.findings import Finding, once
from tests.release.annotation_toy import long_csv, make_probe
from tests.release.test_check import edit_manifest, edit_rows


@pytest.fixture(autouse=True)
def no_token(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Work in an empty folder."""
    monkeypatch.chdir(tmp_path)


def test_what_is_no_folder_is_refused() -> None:
    probe: Any = {"test": []}
    with pytest.raises(UsageError, match=r"not take a dict.*kbprobe\.build\(NAME, output=DIR\)"):
        release.publish(probe, "me/probe")


def test_a_missing_folder_is_told_before_a_missing_token() -> None:
    with pytest.raises(UsageError, match="nosuch holds no built probe"):
        release.publish("nosuch", "me/probe")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["chek", "probe"], "'chek' is neither a subcommand nor a folder"),
        (["chek", "probe", "--repo-id", "me/x"], "Did you mean 'check'?"),
        (["nosuch"], "'nosuch' is neither a subcommand nor a folder"),
        (["annotate", "imprt"], "Did you mean 'import'?"),
    ],
)
def test_a_misspelt_subcommand_is_told_before_missing_options(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(words)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("endpoint", [None, "http://127.0.0.1:9"])
def test_a_dry_run_needs_no_network(
    endpoint: str | None,
    request: pytest.FixtureRequest,
    probe_copy: Callable[[str], Path],
    capsys: pytest.CaptureFixture[str],
) -> None:
    if endpoint:  # tests run in huggingface_hub's offline mode else
        request.getfixturevalue("online")
    folder = probe_copy("wordnet_hypernymy")
    done = release.publish(folder, "me/probe", dry_run=True, endpoint=endpoint)
    assert done.changed
    assert {one.state for one in done.plan.changes} == {"new"}
    assert ("127.0.0.1:9 cannot be reached" if endpoint else "HF_HUB_OFFLINE") in done.unread
    words = [str(folder), "--repo-id", "me/probe", "--dry-run"]
    with pytest.raises(SystemExit) as ended:
        cli.main([*words, "--endpoint", endpoint] if endpoint else words)
    assert not ended.value.code
    shown = capsys.readouterr().out
    assert f"Everything counts as new: {done.unread}" in shown
    assert "+++ to be published" not in shown  # no comparison with a card that is not there


def test_the_check_says_once_what_is_so_in_several_configs() -> None:
    said = [
        Finding("answers", "failed", "2 rows: not labelled yet", "default: ids a and b", "Label."),
        Finding("rows", "ok", "default: 2 rows"),
        Finding("answers", "failed", "2 rows: not labelled yet", "other: ids a and b", "Label."),
        Finding("answers", "failed", "2 rows: not labelled yet", "third: ids c and d", "Label."),
        Finding("rows", "ok", "other: 2 rows"),
    ]
    places = ["default, other: ids a and b", "", "third: ids c and d", ""]
    assert [one.where for one in once(said)] == places


def test_candidates_are_counted_and_said_to_lack_answers(
    probe_copy: Callable[[str], Path],
) -> None:
    def unlabel(rows: list[dict[str, Any]]) -> None:
        for row in rows:
            row.update(answer=-1, answerKey="")

    folder = probe_copy("antonym_negation")
    manifest = read_manifest(folder).content
    for entry in manifest["files"]:
        edit_rows(folder, unlabel, entry["split"], entry["config"])
    rows = manifest["counts"]["rows"]
    edit_manifest(folder, lambda found: found["counts"].update(unlabelled=rows))
    found = release.check(folder)
    (answers,) = [one for one in found.failed if one.name == "answer"]
    assert answers.what == f"{rows} rows: answer has no answer yet"
    assert answers.where.startswith("default, no_language, perturbed: ids ")
    sizes = [one.what for one in found.findings if one.name == "rows"]
    assert len(sizes) == 3
    assert all(f"{rows} rows, no fault found" in size for size in sizes)


def test_votes_that_agree_on_nothing_are_reported_all_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    probe, sheets = make_probe(tmp_path / "toy"), tmp_path / "sheets"
    export_sheets(probe, sheets, n=8)
    items = [one.item_id for one in read_key(sheets / "key.json").items]
    votes = [(item, who, said) for item in items for who, said in zip("xyz", "ABC", strict=True)]
    (tmp_path / "votes.csv").write_text(long_csv(votes), encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        cli.main(
            ["annotate", "import", str(probe), "--votes", str(tmp_path / "votes.csv"), "--key",
             str(sheets / "key.json"), "-o", str(tmp_path / "gold"),
             "--labels", str(tmp_path / "labels.jsonl")]
        )  # fmt: skip
    assert ended.value.code == 2
    shown = capsys.readouterr()
    assert "agreement: 0.0% of pairs, Krippendorff's alpha" in shown.out
    assert "annotators:\n  x: 8 votes" in shown.out
    assert "gold standard: 0 rows kept" in shown.out
    assert "no row is in the gold standard" in shown.err
    assert len((tmp_path / "labels.jsonl").read_text().splitlines()) == 8
    assert not (tmp_path / "gold").exists()


SUBCOMMANDS = {
    "builders": ["list", "show", "wordnet_hypernymy", "always_never antonym_negation"],
    "evaluation": ["report", "curve", "cache"],
    "kb_cache": ["list", "fetch", "fetch conceptnet", "fetch corpus", "verify", "clear"],
    "release": [
        "check", "verify", "export", "annotate", "annotate export", "annotate import",
        "annotate score",
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("package", "words"),
    [(package, words) for package, subs in SUBCOMMANDS.items() for words in ["", *subs]],
)
def test_h_asks_for_help_everywhere(
    package: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code = import_module(f"{package}.cli").main([*words.split(), "-h"])
    except SystemExit as ended:
        code = ended.code
    shown = capsys.readouterr()
    assert not code, shown.err
    assert re.search(r"-h[,/] ?--help", shown.out)
    # Values are called by their type, not by click's or by the option's name.
    assert not re.search(r"--[\w-]+ (TEXT|INTEGER|FLOAT|PATH|DIRECTORY)\b", without(shown.out))


def without(text: str) -> str:
    """The help without the options whose value really is a text, or any path."""
    return re.sub(
        r"--(message|attribution|citation|prompt|content-free) TEXT|--from PATH", "", text
    )
