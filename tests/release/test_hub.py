"""Publishing on a loopback Hub: one commit, nothing of others lost, no token told."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import release
from release.hub import client
from release.hub.publishing import Publication
from release.hub.repo_card import hub_front
from tests.release.hub_server import REPO, HubServer, publish, refusal

NAME = "wordnet_hypernymy"
Copy = Callable[[str], Path]


def states(done: Publication) -> dict[str, str]:
    return {one.path: one.state for one in done.plan.changes}


def edit(hub: HubServer, old: str, new: str, repo: str = REPO) -> None:
    """Change the card by hand."""
    card = hub.content(repo, "README.md").decode()
    assert old in card
    hub.put(repo, {"README.md": card.replace(old, new, 1).encode()})


def commits(hub: HubServer, repo: str = REPO) -> int:
    return len(hub.repos[repo].commits)


# What is published.


@pytest.mark.parametrize("part", [0, 10_000])
def test_all_that_the_manifest_names_is_published_and_nothing_else(
    hub: HubServer, probe_copy: Copy, part: int
) -> None:
    hub.part = part
    folder = probe_copy(NAME)
    (folder / "notes.txt").write_text("mine")
    (folder / ".DS_Store").write_text("")
    done = publish(hub, folder, tag="v1.0", private=True)
    manifest = json.loads((folder / "manifest.json").read_text())
    data = {entry["path"] for entry in manifest["files"]}
    beside = {"README.md", "eval.yaml", "manifest.json", "croissant.json", "release.json"}
    flat = {"flat/data/test-00000-of-00001.parquet"}
    assert hub.paths(REPO) == data | flat | beside | {".gitattributes"}
    for path in (*data, "manifest.json"):
        assert hub.content(REPO, path) == (folder / path).read_bytes()
    assert set(states(done).values()) == {"new"}
    assert hub.repos[REPO].private
    assert hub.repos[REPO].tags == {"v1.0": done.commit}
    assert done.changed
    assert commits(hub) == 2
    record = json.loads(hub.content(REPO, "release.json"))
    assert record["request"] == manifest["request"]
    made_once_the_hub_is_read = {"README.md", "eval.yaml", "release.json"}
    assert {
        one["path"] for one in record["files"]
    } == data | flat | beside - made_once_the_hub_is_read
    assert {one["name"] for one in record["check"]} >= {"checksums", "rows", "card", "licence"}
    card = hub.content(REPO, "README.md").decode()
    assert f'load_dataset("{REPO}"' in card
    assert "This is version v1.0" in card


def test_what_was_hashed_by_the_check_is_not_hashed_again(
    hub: HubServer, probe_copy: Copy, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> bytes:
        raise AssertionError("a data file is hashed for the second time")

    monkeypatch.setattr("huggingface_hub.lfs.sha_fileobj", never)
    assert publish(hub, probe_copy(NAME)).changed


@pytest.mark.slow
def test_publishing_twice_changes_nothing(hub: HubServer, probe_copy: Copy) -> None:
    folder = probe_copy("antonym_negation")
    first = publish(hub, folder, tag="v1")
    sent = len(hub.asked("PUT", "/lfs/"))
    again = publish(hub, folder, tag="v1")
    assert not again.changed
    assert again.commit == first.commit
    assert set(states(again).values()) == {"same"}
    assert commits(hub) == 2
    assert len(hub.asked("PUT", "/lfs/")) == sent
    assert not hub.asked("POST", "/commit/")[1:]


@pytest.mark.slow
def test_a_card_edited_by_hand_is_merged(hub: HubServer, probe_copy: Copy) -> None:
    folder = probe_copy(NAME)
    publish(hub, folder)
    edit(hub, "tags:\n", "viewer: false   # by hand\ntags:\n- mine\n")
    hub.put(REPO, {"README.md": hub.content(REPO, "README.md") + b"\n## Thanks\n\nTo all.\n"})
    before = hub.content(REPO, "README.md")
    assert not publish(hub, folder).changed
    assert hub.content(REPO, "README.md") == before
    done = publish(hub, folder, tag="v2")
    card = hub.content(REPO, "README.md").decode()
    assert states(done)["README.md"] == "changed"
    for kept in (
        "viewer: false   # by hand\n",
        "- mine\n",
        "\n## Thanks\n\nTo all.\n",
    ):
        assert kept in card
    assert "This is version v2" in card
    assert done.plan.card.kept == ("tags",)


@pytest.mark.slow
def test_files_of_the_earlier_release_go_and_those_of_others_stay(
    hub: HubServer, probe_copy: Copy
) -> None:
    publish(hub, probe_copy("antonym_negation"))
    hub.put(REPO, {"figures/one.png": b"png", "more/data/test.parquet": b"PAR1", "LICENSE": b"x"})
    done = publish(hub, probe_copy(NAME))
    gone = {path for path, state in states(done).items() if state == "deleted"}
    assert gone == {
        f"{config}/data/{split}-00000-of-00001.parquet"
        for config in ("no_language", "perturbed")
        for split in ("train", "validation", "test")
    } | {
        f"{config}-flat/data/test-00000-of-00001.parquet" for config in ("no_language", "perturbed")
    }
    assert {"figures/one.png", "more/data/test.parquet", "LICENSE"} < hub.paths(REPO)
    assert not gone & hub.paths(REPO)
    front = hub_front(hub.content(REPO, "README.md").decode())
    assert [one["config_name"] for one in front["configs"]] == ["default", "flat"]


@pytest.mark.slow
def test_a_probe_beside_another_leaves_it_alone(hub: HubServer, probe_copy: Copy) -> None:
    hypernyms, antonyms = probe_copy(NAME), probe_copy("antonym_negation")
    publish(hub, hypernyms)
    shared = {"README.md", "eval.yaml"}
    before = {path: hub.content(REPO, path) for path in hub.paths(REPO) - shared}
    done = publish(hub, antonyms, config_name="antonyms")
    assert {path.split("/")[0] for path in states(done)} == {*shared, "antonyms"}
    for path, content in before.items():
        assert hub.content(REPO, path) == content
    card = hub.content(REPO, "README.md").decode()
    front = hub_front(card)
    names = [
        *("default", "flat", "antonyms", "antonyms-no_language", "antonyms-perturbed"),
        *("antonyms-flat", "antonyms-no_language-flat", "antonyms-perturbed-flat"),
    ]
    assert [one["config_name"] for one in front["configs"]] == names
    assert [one["config_name"] for one in front["dataset_info"]] == names
    assert [one["config_name"] for one in front["configs"] if one.get("default")] == ["default"]
    assert front["pretty_name"] == "WordNet hypernymy"
    assert f'load_dataset("{REPO}", "antonyms-no_language")' in card
    assert card.count("kbprobe:begin") == 2
    for config, folder in (("antonyms", antonyms), ("default", hypernyms)):
        assert not publish(hub, folder, config_name=config).changed
    assert release.verify(REPO, endpoint=hub.url).passed


def test_a_folder_that_holds_something_else_is_left_alone(hub: HubServer, probe_copy: Copy) -> None:
    hub.put(REPO, {"antonyms/mine.txt": b"mine"})
    folder = probe_copy("antonym_negation")
    assert "Choose another --config-name" in refusal(hub, folder, config_name="antonyms")
    assert "use letters" in refusal(hub, folder, config_name="data")


@pytest.mark.slow
def test_data_of_others_is_not_replaced(hub: HubServer, probe_copy: Copy) -> None:
    path = "data/test-00000-of-00001.parquet"
    hub.put(REPO, {path: b"PAR1"})
    folder = probe_copy(NAME)
    message = refusal(hub, folder)
    assert f"other files than release-probe published there: {path}." in message
    assert not hub.asked("POST", "/commit/")
    publish(hub, folder, replace=True)
    assert hub.content(REPO, path) == (folder / path).read_bytes()
    hub.put(REPO, {"croissant.json": b"{}"})
    assert "croissant.json" in refusal(hub, folder)


def test_configs_of_one_name_cannot_be_in_one_repository(hub: HubServer, probe_copy: Copy) -> None:
    publish(hub, probe_copy(NAME), config_name="perturbed")
    message = refusal(hub, probe_copy("antonym_negation"))
    assert "with a config 'perturbed'" in message
    assert "Choose another --config-name" in message


@pytest.mark.posix
def test_links_are_not_followed(hub: HubServer, probe_copy: Copy) -> None:
    folder = probe_copy(NAME)
    outside = folder.parent / "outside"
    shutil.move(folder / "data", outside)
    (folder / "data").symlink_to(outside)
    assert "is a link" in refusal(hub, folder)
    other = probe_copy("antonym_negation")
    (other / "README.md").rename(outside / "README.md")
    (other / "README.md").symlink_to(outside / "README.md")
    assert "is a link" in refusal(hub, other)
    assert not hub.repos


@pytest.mark.slow
def test_the_canary_can_be_a_column(hub: HubServer, probe_copy: Copy) -> None:
    import pyarrow.parquet as pq

    folder = probe_copy(NAME)
    publish(hub, folder, canary_column=True)
    path = folder.parent / "got.parquet"
    path.write_bytes(hub.content(REPO, "data/test-00000-of-00001.parquet"))
    assert "canary" in pq.read_schema(path).names
    assert release.verify(REPO, endpoint=hub.url).passed
    assert not publish(hub, folder, canary_column=True).changed


# Checks first.


def test_a_failed_check_blocks_unless_forced_and_the_card_says_so(
    hub: HubServer, probe_copy: Copy
) -> None:
    folder = probe_copy(NAME)
    card = folder / "README.md"
    card.write_text(card.read_text().replace("## What it cannot show", "## Praise"))
    message = refusal(hub, folder)
    assert "--force" in message
    assert not hub.seen
    done = publish(hub, folder, force=True)
    assert done.forced == ("card",)
    assert "its check before release failed" in hub.content(REPO, "README.md").decode()
    assert json.loads(hub.content(REPO, "release.json"))["forced"] == ["card"]


def test_what_its_manifest_does_not_describe_is_not_even_forced(
    hub: HubServer, probe_copy: Copy
) -> None:
    folder = probe_copy(NAME)
    path = folder / "data" / "test-00000-of-00001.parquet"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    assert "not even with --force" in refusal(hub, folder, force=True)
    path.unlink()
    assert "not even with --force" in refusal(hub, folder, force=True)
    assert not hub.seen


# Moved remotes, branches, tags, pull requests.


@pytest.mark.slow
def test_a_remote_that_moves_is_read_again_and_not_clobbered(
    hub: HubServer, probe_copy: Copy
) -> None:
    folder = probe_copy(NAME)
    publish(hub, folder)

    def somebody() -> None:
        edit(hub, "tags:\n", "viewer: false\ntags:\n")
        hub.put(REPO, {"theirs.txt": b"theirs"})

    hub.fail("POST", "/commit/", hook=somebody)
    done = publish(hub, folder, tag="v2")
    assert hub.content(REPO, "theirs.txt") == b"theirs"
    card = hub.content(REPO, "README.md").decode()
    assert "viewer: false" in card
    assert "This is version v2" in card
    assert hub.repos[REPO].tags == {"v2": done.commit}
    assert len(hub.asked("PUT", "/lfs/")) == 4


def test_a_remote_that_never_rests_stops_it(hub: HubServer, probe_copy: Copy) -> None:
    numbers = iter(range(100))

    def somebody() -> None:
        hub.put(REPO, {"a": b"%d" % next(numbers)})

    somebody()
    hub.fail("POST", "/commit/", times=99, hook=somebody)
    message = refusal(hub, probe_copy(NAME))
    assert "412" in message
    assert "4 times in a row; nothing was committed" in message


@pytest.mark.parametrize("empty", [False, True])
def test_a_listing_without_an_end_is_refused(
    hub: HubServer, probe_copy: Copy, monkeypatch: pytest.MonkeyPatch, empty: bool
) -> None:
    hub.put(REPO, {f"{number}.txt": b"" for number in range(30)})
    hub.endless = empty
    monkeypatch.setattr(client, *(("LISTING", 0.5) if empty else ("MAX_LISTED", 20)))
    message = refusal(hub, probe_copy(NAME))
    assert ("did not end within" if empty else "more than 20 entries") in message


def test_a_commit_whose_answer_was_lost_is_not_made_twice(hub: HubServer, probe_copy: Copy) -> None:
    hub.fail("POST", "/commit/", drop="after")
    done = publish(hub, probe_copy(NAME), tag="v1")
    assert commits(hub) == 2
    assert hub.repos[REPO].tags == {"v1": done.commit}


@pytest.mark.slow
def test_a_tag_is_not_moved(hub: HubServer, probe_copy: Copy) -> None:
    folder = probe_copy(NAME)
    first = publish(hub, folder, tag="v1")
    other = probe_copy("antonym_negation")
    assert "tags are not moved. Choose another --tag" in refusal(hub, other, tag="v1")
    assert hub.repos[REPO].tags == {"v1": first.commit}
    assert commits(hub) == 2
    edit(hub, "tags:\n", "viewer: false\ntags:\n")
    assert not publish(hub, folder, tag="v1").changed


def test_a_tag_is_made_though_the_commit_was_there(hub: HubServer, probe_copy: Copy) -> None:
    hub.fail("POST", "/tag/", status=500, times=9)
    folder = probe_copy(NAME)
    assert "tagging v1" in refusal(hub, folder, tag="v1")
    hub.faults.clear()
    done = publish(hub, folder, tag="v1")
    assert not done.changed
    assert hub.repos[REPO].tags == {"v1": done.commit}


def test_a_branch_is_made(hub: HubServer, probe_copy: Copy) -> None:
    done = publish(hub, probe_copy(NAME), revision="draft")
    assert hub.repos[REPO].branches["draft"] == done.commit
    assert hub.paths(REPO) == {".gitattributes"}


def test_a_pull_request_takes_no_right_to_write(hub: HubServer, probe_copy: Copy) -> None:
    hub.put("you/theirs", {"README.md": b"# Theirs\n"})
    folder = probe_copy(NAME)
    assert "403" in refusal(hub, folder, "you/theirs")
    done = publish(hub, folder, "you/theirs", create_pr=True)
    assert done.url.endswith("/you/theirs/discussions/1")
    assert hub.paths("you/theirs") == {".gitattributes", "README.md"}
    assert "# Theirs" in hub.content("you/theirs", "README.md", "refs/pr/1").decode()
    assert "exclude each other" in refusal(hub, folder, create_pr=True, tag="v1")


@pytest.mark.slow
def test_the_same_pull_request_is_not_opened_twice(hub: HubServer, probe_copy: Copy) -> None:
    hub.put(REPO, {"README.md": b"# Mine\n"})
    folder = probe_copy(NAME)
    hub.fail("POST", "/commit/", drop="after")
    first = publish(hub, folder, create_pr=True)
    again = publish(hub, folder, create_pr=True)
    assert not again.changed
    assert (again.url, again.commit) == (first.url, first.commit)
    assert list(hub.repos[REPO].pulls) == ["refs/pr/1"]
    hub.repos[REPO].closed.add("refs/pr/1")
    assert publish(hub, folder, create_pr=True).url.endswith("/2")


def test_options_that_are_none_are_refused(hub: HubServer, probe_copy: Copy) -> None:
    folder = probe_copy(NAME)
    assert "Did you mean 'revision'?" in refusal(hub, folder, revison="draft")
    assert "replace" in refusal(hub, folder, replace="mine")
    assert "not a valid tag" in refusal(hub, folder, tag="a b")
    assert "leave --revision out" in refusal(hub, folder, create_pr=True, revision="draft")
    assert not hub.seen


def test_private_is_not_published_openly(hub: HubServer, probe_copy: Copy) -> None:
    hub.put(REPO, {"a": b""})
    message = refusal(hub, probe_copy(NAME), private=True)
    assert "is public, but --private was given" in message


# A dry run.


@pytest.mark.slow
def test_a_dry_run_only_reads_and_takes_no_token(hub: HubServer, probe_copy: Copy) -> None:
    folder = probe_copy(NAME)
    done = publish(hub, folder, dry_run=True, token=None)
    assert done.changed
    assert set(states(done).values()) == {"new"}
    assert "+# WordNet" in done.plan.card_diff
    publish(hub, folder)
    hub.seen.clear()
    edit(hub, "tags:\n", "viewer: false\ntags:\n")
    done = publish(hub, folder, tag="v2", dry_run=True, token=None)
    assert {path for path, state in states(done).items() if state == "changed"} == {
        "README.md",
        "croissant.json",
        "release.json",
    }
    assert "+" in done.plan.card_diff
    assert "viewer" not in done.plan.card_diff.replace(" viewer: false", "")
    assert {one.method for one in hub.seen} <= {"GET", "HEAD"}
    assert not any(one.token for one in hub.seen)
    assert not hub.repos[REPO].tags
