"""Runs each command and the Python API with whatever extras are installed.

Each works, or ends in the message that names the extra that is missing. Run by ``.ci/extras``:

    python .ci/extras.py FOLDER EXTRA

EXTRA is the one that is installed, "" for none; what needs another one is then left out.
"""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

PROBE = "probes/age_comparison"
SNIPPET = """
import kbprobe
probe = kbprobe.build("age_comparison", limit=50)
kbprobe.evaluate(probe, "model")
"""


class Case(NamedTuple):
    """A command, and what it needs.

    Attributes:
        words: its words; the first is a command of kbprobe, or ``python``.
        module: the module without which it cannot run; empty: it always can.
        extra: the extra that brings the module.
        ends: what its message says although nothing is missing; empty: it ends well.
        each: whether it runs beside each extra, also one that it does not need.
    """

    words: str
    module: str = ""
    extra: str = ""
    ends: str = ""
    each: bool = False


CASES = (
    Case("build-probe age_comparison --limit 500 --quiet", each=True),
    Case("build-probe list"),
    Case("build-probe show wordnet_hypernymy"),
    Case("kb-cache list", each=True),
    Case("kb-cache fetch wordnet --from probes", "nltk", "wordnet", "probes"),
    Case("evaluate-probe --help", each=True),
    Case(f"evaluate-probe {PROBE} --model model", "torch", "eval", "model"),
    Case(f"evaluate-probe curve {PROBE} --sizes 62 --model model", ends="model"),
    Case(f"evaluate-probe {PROBE} -m none --scorer random -o random", "torch", "eval"),
    Case(f"release-probe check {PROBE}", each=True),
    Case(f"release-probe check {PROBE} --deep", "sklearn", "release"),
    Case(f"release-probe export {PROBE} --to lm-eval -o exported"),
    Case(f"release-probe {PROBE} --repo-id me/ages --dry-run", "huggingface_hub", "release"),
    Case("python -c SNIPPET", "torch", "eval", "model"),
)


def main() -> None:
    """Run the cases in a new folder."""
    folder, installed = Path(sys.argv[1]), sys.argv[2]
    folder.mkdir()
    cases = (case for case in CASES if not installed or case.each or case.extra == installed)
    wrong = [problem for case in cases if (problem := problem_of(case, folder))]
    print("".join(wrong), end="", file=sys.stderr)
    sys.exit(bool(wrong))


def problem_of(case: Case, folder: Path) -> str:
    """Run a case; return what is wrong with how it ended, or an empty string."""
    words = [SNIPPET if word == "SNIPPET" else word for word in case.words.split()]
    program = words[1:] if words[0] == "python" else ["-m", "kbprobe", *words]
    command = [sys.executable, "-P", *program]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    output = done.stdout + done.stderr
    if case.module and find_spec(case.module) is None:
        right = bool(done.returncode) and f"pip install '.[{case.extra}]'" in output
    elif case.ends:
        right = bool(done.returncode) and case.ends in done.stderr
    else:
        right = not done.returncode
    if right and "fault of kbprobe" not in output:
        return ""
    return f"{case.words} (exit {done.returncode}):\n{output}\n"


if __name__ == "__main__":
    main()
