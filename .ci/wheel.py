"""Check built distributions: .ci/wheel.py DIST. They hold all of the packages and nothing else."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("builders", "evaluation", "kb_cache", "kbprobe", "release", "templates")
SDIST = (
    *("CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "LICENSE", "NOTICE", "README.md"),
    *("SECURITY.md", "constraints.txt", "pyproject.toml"),
)
"""What else a source distribution needs, or should tell."""


def tracked(*paths: str) -> set[str]:
    """The files that git knows below some paths."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--", *paths]
    listed = subprocess.run(command, capture_output=True, check=True).stdout
    return set(filter(None, listed.decode().split("\0")))


def compare(what: str, found: set[str], wanted: set[str]) -> list[str]:
    """Return a line for each file that is missing, or too many."""
    missing = [f"{what} lacks {name}" for name in sorted(wanted - found)]
    return missing + [f"{what} holds {name} besides" for name in sorted(found - wanted)]


def main() -> int:
    """Compare the wheel and the source distribution with the files in git."""
    (wheel,), (sdist,) = (list(Path(sys.argv[1]).glob(end)) for end in ("*.whl", "*.tar.gz"))
    packages = tracked(*PACKAGES)
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
    held = {name for name in names if ".dist-info/" not in name}
    wrong = compare("the wheel", held, packages)
    with tarfile.open(sdist) as source:
        inside = {member.name.partition("/")[2] for member in source if member.isfile()}
    ours = {name for name in inside if name.partition("/")[0] in PACKAGES}
    wrong += compare("the sdist", ours, packages)
    wrong += [f"the sdist lacks {name}" for name in SDIST if name not in inside]
    wrong += [f"the sdist holds {name} besides" for name in inside if name.startswith("tests/")]
    print("\n".join(wrong) or f"{wheel.name}: {len(held)} files, those of the packages in git")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
