"""Reading back: what was published is what was built, and what differs from it is named."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import release
from evaluation.items.sources import open_probe
from kbprobe.errors import KbprobeError, UsageError
from kbprobe.format.dataset import load
from release.cli import main
from release.exports.flat import BLANK
from release.hub.verification import Verification
from tests.release.hub_server import TOKEN, HubServer, let_through

REPO = "me/antonyms"
TEST = "data/test-00000-of-00001.parquet"
CONFIGS = ("default", "no_language", "perturbed")
REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def published(built_probe: Callable[[str], Path]) -> Iterator[tuple[HubServer, Path]]:
    """A probe with controls, published once."""
    folder = built_probe("antonym_negation")
    with pytest.MonkeyPatch.context() as patch, HubServer() as hub:
        let_through(patch)
        hub.account(TOKEN, "me")
        release.publish(folder, REPO, endpoint=hub.url, token=TOKEN, tag="v1")
        yield hub, folder


@pytest.fixture
def hub(published: tuple[HubServer, Path], monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    """The server, put back as it was after the test."""
    let_through(monkeypatch)
    server = published[0]
    server.seen.clear()
    head = server.repos[REPO].branches["main"]
    yield server
    server.repos[REPO].branches["main"] = head
    server.faults.clear()


def verify(hub: HubServer, **options: Any) -> Verification:
    found: Verification = release.verify(REPO, endpoint=hub.url, **options)
    return found


def failures(hub: HubServer, **options: Any) -> dict[str, str]:
    return {one.name: f"{one.what} {one.where}" for one in verify(hub, **options).failed}


@pytest.mark.slow
def test_what_was_published_is_verified_without_fetching_it(
    published: tuple[HubServer, Path], hub: HubServer
) -> None:
    found = verify(hub, against=published[1])
    assert found.passed
    assert found.commit == hub.repos[REPO].branches["main"]
    assert [one.name for one in found.findings] == [
        "manifest",
        "checksums",
        "record",
        "card",
        "tasks",
        "against",
    ]
    assert not hub.asked("GET", r"/resolve/.*\.parquet")
    assert verify(hub, revision="v1").commit == found.commit
    assert verify(hub, download=True).passed
    assert len(hub.asked("GET", r"/resolve/.*\.parquet")) == 9 + 3


def test_listings_of_many_pages_are_read(hub: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "page", 2)
    assert verify(hub).passed
    assert len(hub.asked("GET", "/tree/")) > 5


def test_what_differs_is_named(hub: HubServer) -> None:
    hub.put(REPO, {TEST: b"PAR1", "no_language/" + TEST: None, "more/extra.parquet": b"PAR1"})
    found = verify(hub)
    told = {one.name: one for one in found.findings}
    assert not found.passed
    assert told["files"].where == f"no_language/{TEST}"
    assert TEST in told["checksums"].where
    assert told["other files"].where == "more/extra.parquet"
    assert told["other files"].verdict == "warning"
    assert verify(hub, revision="v1").passed


def test_a_file_of_the_same_size_is_told_apart(hub: HubServer) -> None:
    content = hub.content(REPO, TEST)
    hub.put(REPO, {TEST: bytes([content[0] ^ 1]) + content[1:]})
    assert TEST in failures(hub)["checksums"]


def test_a_store_that_does_not_hold_what_it_says_is_found_by_fetching(hub: HubServer) -> None:
    commit = hub.repos[REPO].find("main")
    assert commit is not None
    sha256 = commit.files[TEST].sha256
    sound = hub.objects[sha256]
    hub.objects[sha256] = sound[:-1] + b"x"
    try:
        assert verify(hub).passed
        assert TEST in failures(hub, download=True)["checksums"]
    finally:
        hub.objects[sha256] = sound


@pytest.mark.slow
def test_flat_rows_and_tasks_are_compared_too(hub: HubServer) -> None:
    flat = f"flat/{TEST}"
    hub.put(REPO, {flat: hub.content(REPO, flat)[:-4] + b"1RAP"})
    assert flat in failures(hub)["record"]
    registered = hub.content(REPO, "eval.yaml")
    hub.put(REPO, {"eval.yaml": registered.replace(b"config: flat", b"config: flatter")})
    assert "kbprobe_antonym_negation" in failures(hub)["tasks"]
    hub.put(REPO, {"eval.yaml": b"tasks: all"})
    assert "list of tasks" in failures(hub)["tasks"]


@pytest.mark.parametrize("path", ["manifest.json", "croissant.json"])
def test_what_was_edited_beside_the_data_is_found(hub: HubServer, path: str) -> None:
    hub.put(REPO, {path: hub.content(REPO, path).replace(b"antonym", b"Antonym", 1)})
    assert path in failures(hub)["record"]


def test_a_card_that_loads_something_else_is_found(hub: HubServer) -> None:
    card = hub.content(REPO, "README.md").decode()
    changed = card.replace("path: data/test-", "path: data/train-", 1)
    hub.put(REPO, {"README.md": changed.encode()})
    assert "default" in failures(hub)["card"]
    hub.put(REPO, {"README.md": card.replace("license: ", "licence: ").encode()})
    assert verify(hub).passed
    hub.put(REPO, {"README.md": None})
    assert "card" in failures(hub)


@pytest.mark.parametrize(
    "path", ["../outside.parquet", "/etc/passwd", "data/../../x.parquet", "data\\x.parquet"]
)
def test_a_manifest_whose_paths_lead_outside_is_refused(hub: HubServer, path: str) -> None:
    manifest = json.loads(hub.content(REPO, "manifest.json"))
    manifest["files"][0]["path"] = path
    hub.put(REPO, {"manifest.json": json.dumps(manifest).encode()})
    assert "a path within the probe's folder" in failures(hub)["manifest"]


@pytest.mark.parametrize("content", [b"{", b'{"probe": 3}', b'{"probe": "x", "files": []}'])
def test_a_damaged_manifest_is_a_finding(hub: HubServer, content: bytes) -> None:
    hub.put(REPO, {"manifest.json": content})
    assert "manifest" in failures(hub)


def test_another_build_is_not_this_one(hub: HubServer, built_probe: Callable[[str], Path]) -> None:
    assert "against" in failures(hub, against=built_probe("wordnet_hypernymy"))


def test_what_is_not_ours_is_refused(hub: HubServer) -> None:
    hub.put("you/other", {"README.md": b"# x"})
    with pytest.raises(KbprobeError, match=r"holds no manifest.json of kbprobe"):
        release.verify("you/other", endpoint=hub.url)
    with pytest.raises(KbprobeError, match="no such dataset"):
        release.verify("you/none", endpoint=hub.url)
    with pytest.raises(KbprobeError, match="no such branch, tag or commit"):
        verify(hub, revision="v9")
    with pytest.raises(UsageError, match="holds no built probe"):
        verify(hub, against=Path("/nowhere"))


def test_a_connection_that_breaks_while_fetching_is_told(hub: HubServer) -> None:
    hub.fail("GET", r"/resolve/.*\.parquet", status=503, times=99)
    with pytest.raises(KbprobeError, match=r"fetching data/.*503"):
        verify(hub, download=True)


# With the commands, as users have them.


def environment(hub: HubServer, home: Path) -> dict[str, str]:
    gone = ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "HF_TOKEN")
    rest = {name: value for name, value in os.environ.items() if name not in gone}
    return rest | {
        "HF_ENDPOINT": hub.url,
        "HF_HOME": str(home),
        "HF_HUB_DISABLE_XET": "1",
        "PYTHONPATH": str(REPOSITORY),
        "PYTHONWARNINGS": "ignore",
    }


@pytest.mark.slow
def test_what_is_loaded_from_the_hub_equals_what_was_built(
    published: tuple[HubServer, Path], hub: HubServer, tmp_path: Path
) -> None:
    program = """
import sys
from datasets import load_dataset
for config in sys.argv[2:]:
    load_dataset(sys.argv[1], config).save_to_disk(f"{config}-loaded")
load_dataset(sys.argv[1]).save_to_disk("unnamed-loaded")
"""
    subprocess.run(
        [sys.executable, "-c", program, REPO, *CONFIGS, "flat"],
        env=environment(hub, tmp_path / "home"),
        cwd=tmp_path,
        check=True,
        capture_output=True,
        timeout=300,
    )
    import datasets

    for name, config in (*zip(CONFIGS, CONFIGS, strict=True), ("unnamed", "default")):
        loaded = datasets.load_from_disk(str(tmp_path / f"{name}-loaded"))
        built = load(published[1], config)
        assert loaded.keys() == built.keys()
        for split in built:
            assert loaded[split].features == built[split].features
            assert loaded[split].to_list() == built[split].to_list()
    # Flat rows are those of the default config, for whoever asks for them.
    flat = datasets.load_from_disk(str(tmp_path / "flat-loaded"))
    items = open_probe(str(published[1])).items
    assert list(flat) == ["test"]
    assert flat["test"].num_columns == 10
    for row, item in zip(flat["test"], items, strict=True):
        assert row["input"] == item.question.replace("[MASK]", BLANK)
        assert (tuple(row["choices"]), row["target"]) == (item.choices, "AB"[item.answer])


@pytest.mark.slow
def test_the_commands_publish_and_verify(
    hub: HubServer,
    probe_copy: Callable[[str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def run(*words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            main([*words, "--endpoint", hub.url])
        told = capsys.readouterr()
        return int(left.value.code or 0), told.out, told.err

    folder = str(probe_copy("wordnet_hypernymy"))
    there = (folder, "--repo-id", "me/cli")
    code, out, err = run(*there)
    assert code == 2
    assert "hf auth login" in err
    code, out, err = run(*there, "--dry-run")
    assert code == 0, err
    assert "+ new " in out
    assert "Dry run: 9 files (" in out
    assert "+# " not in out, "a card that is new as a whole is not shown as a difference"
    assert "me/cli" not in hub.repos
    token_file = tmp_path / "token"
    token_file.write_text(f"{TOKEN}\n")
    code, out, err = run(*there, "--tag", "v1", "--token-file", str(token_file))
    assert code == 0, err
    assert f"Published {hub.url}/datasets/me/cli" in out
    assert "tagged v1" in out
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    code, out, err = run(*there, "--tag", "v1", "--json")
    assert code == 0, err
    told = json.loads(out)
    assert told["changed"] is False
    assert {one["state"] for one in told["files"]} == {"same"}
    code, out, err = run("verify", "me/cli", "--against", folder)
    assert code == 0, err
    assert "is as it was published." in out
    hub.put("me/cli", {TEST: b"PAR1"})
    code, out, err = run("verify", "me/cli", "--json")
    assert code == 1
    assert json.loads(out)["passed"] is False


@pytest.mark.slow
def test_no_command_tells_the_token(
    published: tuple[HubServer, Path], hub: HubServer, tmp_path: Path
) -> None:
    """In a process of its own, with all that it can be made to say."""
    hub.fail("POST", "/commit/", status=403)
    words = (str(published[1]), "--repo-id", REPO, "--tag", "v2", "--debug")
    debug = {"HF_TOKEN": TOKEN, "HF_DEBUG": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "release.cli", *words],
        env=environment(hub, tmp_path / "home") | debug,
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 1
    assert "has no right to do that" in done.stderr
    assert "Traceback" in done.stderr
    assert "<TOKEN>" in done.stderr
    assert TOKEN not in done.stdout + done.stderr


@pytest.mark.parametrize("content", ["", "two words", "hf_ä"])
def test_a_token_file_that_holds_none_is_not_shown(
    hub: HubServer, tmp_path: Path, content: str
) -> None:
    from release.cli import read_token

    path = tmp_path / "token"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(UsageError, match="holds no token") as caught:
        read_token(path)
    assert not content or content not in str(caught.value)
    with pytest.raises(UsageError, match="cannot be read"):
        read_token(tmp_path)


def test_a_published_probe_is_checked_like_a_built_one(hub: HubServer, tmp_path: Path) -> None:
    for path in hub.paths(REPO):
        target = tmp_path / "got" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(hub.content(REPO, path))
    report = release.check(tmp_path / "got")
    assert report.passed, report.failed
