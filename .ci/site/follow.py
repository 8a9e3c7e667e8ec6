"""Follow a page of the documentation: run its commands and Python examples, one after the other.

    python .ci/site/follow.py docs/tutorial.md FOLDER

runs them in FOLDER. Lines that install something are left out: what they install is expected.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```$", re.M | re.S)
INSTALLS = re.compile(r"pip install|python3? -m venv")
MODULES = {
    "build-probe": "builders.cli",
    "evaluate-probe": "evaluation.cli",
    "kb-cache": "kb_cache.cli",
    "release-probe": "release.cli",
}


def steps(text: str) -> Iterator[list[str]]:
    """Yield the steps of a page as commands of this interpreter."""
    for language, block in BLOCK.findall(text):
        if language == "python":
            yield [sys.executable, "-c", block]
            continue
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if not words or INSTALLS.search(line):
                continue
            if words[0] not in MODULES:
                raise ValueError(f"not a command of kbprobe: {line}")
            yield [sys.executable, "-m", MODULES[words[0]], *words[1:]]


def follow(page: Path, folder: Path, replaced: Mapping[str, str] | None = None) -> int:
    """Run the steps of a page in a folder and return how many there were.

    Args:
        page: the page.
        folder: where to run them.
        replaced: texts of the page that are read as others, such as the path of a model.

    Raises:
        RuntimeError: a step failed.
    """
    text = page.read_text(encoding="utf-8")
    for old, new in (replaced or {}).items():
        if old not in text:
            raise ValueError(f"{page} does not hold {old!r}")
        text = text.replace(old, new)
    commands = list(steps(text))
    for command in commands:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command[1:])}\n{done.stdout}{done.stderr}")
        print(done.stdout)
    return len(commands)


if __name__ == "__main__":
    follow(Path(sys.argv[1]), Path(sys.argv[2]))
