"""Runs each command and the README's Python snippet with whatever extras are installed.

Each works, or ends in the message that names the extra that is missing. Run by ``.ci/extras``.
"""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

BIN = Path(sys.executable).parent
PROBE = "probes/wordnet_hypernymy"
SNIPPET = """
import kbprobe
probe = kbprobe.build("wordnet_hypernymy", max_hops=2, limit=50)
kbprobe.evaluate(probe, "model")
"""
# The words of a command, and the module and extra without which it cannot run.
CASES: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (("build-probe", "wordnet_hypernymy", "--limit", "500"), "", ""),
    (("build-probe", "list"), "", ""),
    (("kb-cache", "list"), "", ""),
    (("evaluate-probe", "--help"), "", ""),
    (("evaluate-probe", PROBE, "--model", "model"), "torch", "eval"),
    (("evaluate-probe", "curve", PROBE, "--sizes", "5", "--model", "model"), "torch", "eval"),
    (("evaluate-probe", PROBE, "--scorer", "random", "-o", "a"), "matplotlib", "eval"),
    (("release-probe", "check", PROBE), "", ""),
    (("release-probe", "check", PROBE, "--deep"), "sklearn", "release"),
    (("release-probe", "export", PROBE, "--to", "lm-eval", "-o", "exported"), "", ""),
    (("python", "-c", SNIPPET), "torch", "eval"),
)


def main() -> None:
    """Run the cases in the folder that is named."""
    work = Path(sys.argv[1])
    work.mkdir()
    # A model that is not there: with the extra, that is the error.
    failed = 0
    for words, module, extra in CASES:
        command = [str(BIN / words[0]), *words[1:]]
        done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)
        said = done.stdout + done.stderr
        missing = bool(module) and find_spec(module) is None
        no_model = "model" in words or words[0] == "python"
        named = f"pip install '.[{extra}]'" in said
        right = named if missing else (no_model and "model" in said) or not done.returncode
        if not right or "fault of kbprobe" in said or "ModuleNotFoundError" in said.split("\n")[-2]:
            failed += 1
            print(f"{' '.join(words)!r} (exit {done.returncode}):\n{said}", file=sys.stderr)
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
