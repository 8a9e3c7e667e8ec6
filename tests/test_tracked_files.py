"""What must not be in a public repository: secrets, and paths of somebody's machine."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

FORBIDDEN = {
    "a private key": r"-----BEGIN [A-Z ]*PRIVATE KEY",
    "a token of the Hub": r"\bhf_(?!abcdefgh)[A-Za-z0-9]{20,}",
    "a token of GitHub": r"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{30,})",
    "a token of PyPI": r"\bpypi-[A-Za-z0-9_-]{30,}",
    "a key of AWS": r"\bAKIA[0-9A-Z]{16}\b",
    # Examples are at home with me, you or user.
    "a home folder": r"(?<![\w.~])/(?:home|Users|root|work)/(?!(?:me|user|you)/)[\w.-]+/",
    "a home folder of Windows": r"[A-Z]:\\+Users\\+(?!(?:me|user|you)\b)\w",
}


@pytest.mark.slow
def test_no_secrets_and_no_private_paths() -> None:
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z"], capture_output=True, check=False
    )
    if listed.returncode:
        pytest.skip("not a git clone")
    found = []
    for name in filter(None, listed.stdout.decode().split("\0")):
        path = ROOT / name
        content = path.read_bytes() if path.is_file() else b""
        if b"\0" in content[:8000]:
            continue
        text = content.decode("utf-8", "replace")
        for what, pattern in FORBIDDEN.items():
            if match := re.search(pattern, text):
                line = text.count("\n", 0, match.start()) + 1
                found.append(f"{name}:{line} holds {what}: {match[0][:60]}")
    assert found == []


@pytest.mark.parametrize(
    "text", ["/home" + "/ann/x", "see /root" + "/cache/x", "C:" + r"\Users\ann", "hf_" + "Q" * 30]
)
def test_such_texts_are_found(text: str) -> None:
    assert any(re.search(pattern, text) for pattern in FORBIDDEN.values())
