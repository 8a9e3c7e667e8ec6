"""Publishing where things go wrong: what is told, what is kept, and where no token ever is."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import release
from release.hub.client import Hub, hub_error
from tests.release.hub_server import REPO, TOKEN, HubServer, publish, refusal

NAME = "wordnet_hypernymy"
Copy = Callable[[str], Path]


# Faults.


@pytest.mark.slow
def test_uploads_go_on_where_they_were_broken_off(
    hub: HubServer, probe_copy: Copy, online: list[float]
) -> None:
    folder = probe_copy("antonym_negation")
    hub.fail("PUT", "/lfs/", drop="midway")
    hub.fail("PUT", "/lfs/", status=500)
    publish(hub, folder)
    assert online
    hub.repos.clear()
    kept = dict(list(hub.objects.items())[:5])
    hub.objects.clear()
    hub.objects.update(kept)
    hub.seen.clear()
    publish(hub, folder)
    assert len(hub.asked("PUT", "/lfs/")) == 12 - 5


def test_publishing_again_after_a_failure_sends_nothing_twice(
    hub: HubServer, probe_copy: Copy
) -> None:
    folder = probe_copy(NAME)
    hub.fail("POST", "/commit/", status=503, times=99)
    message = refusal(hub, folder)
    assert "503" in message
    assert "not sent twice" in message
    sent = len(hub.asked("PUT", "/lfs/"))
    assert sent >= 3
    hub.faults.clear()
    assert publish(hub, folder).changed
    assert len(hub.asked("PUT", "/lfs/")) == sent


READ = ("GET", "/revision/main")
COMMIT = ("POST", "/commit/")
FAULTS: dict[str, tuple[tuple[str, str], dict[str, Any], str]] = {
    "token refused": (
        READ,
        {"status": 401, "message": "Invalid credentials in Authorization header"},
        "the token is wrong or has expired",
    ),
    "gated": (READ, {"status": 403, "code": "GatedRepo"}, "Ask for access on its page"),
    "no right": (COMMIT, {"status": 403}, "this token has no right to do that"),
    "no right to send": (
        ("POST", "/preupload/"),
        {"status": 403},
        "this token has no right to do that",
    ),
    "full": (
        ("POST", "/objects/batch"),
        {"status": 403, "message": "Private repository storage limit reached"},
        "storage is full",
    ),
    "conflict": (COMMIT, {"status": 409}, "somebody else changed it"),
    "too large": (COMMIT, {"status": 413}, "too large"),
    "bad request": (COMMIT, {"status": 400, "message": "no such field"}, "no such field"),
    "limited": (
        READ,
        {"status": 429, "headers": {"Retry-After": "3600"}},
        "too many requests. Try again in 3,600 s",
    ),
    "limited while committing": (
        COMMIT,
        {"status": 429, "headers": {"Retry-After": "3600"}},
        "too many requests. Try again in 3,600 s",
    ),
    "server": (READ, {"status": 502}, "the Hub itself has a problem"),
    "gone": (READ, {"drop": "before"}, "cannot be reached, or the connection broke"),
    "gone while committing": (COMMIT, {"drop": "before"}, "the connection broke"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_say_what_and_what_to_do(
    hub: HubServer, probe_copy: Copy, name: str, online: list[float]
) -> None:
    hub.put(REPO, {"a": b""})
    where, how, told = FAULTS[name]
    hub.fail(*where, **{"times": 99, **how})
    before = hub.repos[REPO].branches["main"]
    message = refusal(hub, probe_copy(NAME))
    assert told in message
    assert REPO in message
    assert hub.repos[REPO].branches["main"] == before
    assert max(online, default=0) <= 60


@pytest.mark.parametrize("name", ["limited", "server", "gone", "gone while committing", "conflict"])
def test_faults_that_pass_are_waited_for(
    hub: HubServer, probe_copy: Copy, name: str, online: list[float]
) -> None:
    hub.put(REPO, {"a": b""})
    where, how, _ = FAULTS[name]
    hub.fail(*where, **{**how, "times": 2, "headers": {"Retry-After": "7"}})
    assert publish(hub, probe_copy(NAME)).changed
    assert online
    if name == "limited":
        assert 7 in online


def test_a_repository_of_somebody_elses_says_so(hub: HubServer, probe_copy: Copy) -> None:
    folder = probe_copy(NAME)
    assert "403" in refusal(hub, folder, "you/new")
    hub.put("you/hidden", {"a": b""})
    hub.repos["you/hidden"].private = True
    assert "it is private and this token cannot see it" in refusal(hub, folder, "you/hidden")
    assert "USER/NAME" in refusal(hub, folder, "hypernyms")
    hub.account("hf_reads", "me", writes=False)
    hub.put(REPO, {"a": b""})
    assert "this token has no right to do that" in refusal(hub, folder, token="hf_reads")


def test_offline_is_told(hub: HubServer, probe_copy: Copy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert "HF_HUB_OFFLINE is set" in refusal(hub, probe_copy(NAME))


# Tokens.


def test_no_token_is_told_before_anything_is_done(hub: HubServer, probe_copy: Copy) -> None:
    message = refusal(hub, probe_copy(NAME), token=None)
    assert "hf auth login" in message
    assert not hub.seen


@pytest.mark.slow
def test_the_token_is_nowhere_but_in_requests(
    hub: HubServer,
    probe_copy: Copy,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setattr("huggingface_hub.constants.HF_DEBUG", True)
    caplog.set_level(logging.DEBUG)
    hub_log = logging.getLogger("huggingface_hub")
    monkeypatch.setattr(hub_log, "propagate", True)
    monkeypatch.setattr(hub_log, "level", logging.DEBUG)
    folder = probe_copy(NAME)
    told: list[str] = []
    done = publish(hub, folder, token=None, tag="v1", progress=told.append)
    hub.fail("POST", "/commit/", status=403)
    refusal(hub, folder, token=None, tag="v2")
    assert release.verify(REPO, endpoint=hub.url).passed
    logged = caplog.text + "".join(capfd.readouterr()) + "".join(told) + repr(done)
    assert "authenticated: True" in logged
    assert TOKEN not in logged
    assert any(one.token == TOKEN for one in hub.seen)
    for path in hub.paths(REPO):
        assert TOKEN.encode() not in hub.content(REPO, path)
    assert TOKEN not in json.dumps(done.as_dict())


def test_a_token_that_the_server_repeats_is_not_told(hub: HubServer, probe_copy: Copy) -> None:
    folder = probe_copy(NAME)
    hub.put(REPO, {"a": b""})
    hub.fail("POST", "/commit/", status=403, message=f"{TOKEN} may not write here")
    assert "(token) may not write here" in refusal(hub, folder)
    hub.fail("GET", "/revision/", status=500, message=f"no hf_{'x' * 30}", times=9)
    assert "no (token)" in refusal(hub, folder)


def test_a_token_in_a_file_is_not_published(hub: HubServer, probe_copy: Copy) -> None:
    folder = probe_copy(NAME)
    card = folder / "README.md"
    card.write_text(f"{card.read_text()}\nhf_{'a' * 34}\n")
    message = refusal(hub, folder)
    assert "README.md holds a token" in message
    assert "aaaa" not in message
    assert not hub.asked("POST", "/commit/|/preupload/")


def test_an_address_is_shown_without_its_password() -> None:
    hub = Hub("me/probe", "http://me:secret@127.0.0.1:9")
    error = hub_error(OSError("http://me:secret@127.0.0.1:9/api"), "reading", hub.endpoint, None)
    for shown in (hub.url, repr(hub), str(error)):
        assert "secret" not in shown
        assert "127.0.0.1:9" in shown
