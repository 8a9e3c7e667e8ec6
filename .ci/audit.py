"""Look this environment's packages up among known vulnerabilities, by pip-audit.

Without a network there is nothing to look them up in: that is said, and is a failure only with
``--required``. pip-audit itself then reports "No known vulnerabilities found", or a traceback.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

COMMAND = (
    *(sys.executable, "-m", "pip_audit", "--local", "--skip-editable"),
    *("--format", "json", "--progress-spinner", "off"),
)


def packages() -> list[dict[str, Any]] | None:
    """Ask pip-audit; None where it could not ask for any package."""
    done = subprocess.run(COMMAND, capture_output=True, text=True, check=False)
    try:
        found = [p for p in json.loads(done.stdout)["dependencies"] if p["name"] != "kbprobe"]
    except (ValueError, KeyError):
        print(done.stderr.strip().rpartition("\n")[2], file=sys.stderr)
        return None
    return found if any("vulns" in package for package in found) else None


def main() -> int:
    """Print what was found; 1 for any vulnerability, or for none asked where that is required."""
    found = packages()
    if found is None:
        print("pip-audit: skipped: no advisory database could be reached")
        return int("--required" in sys.argv[1:])
    known = [(package, flaw) for package in found for flaw in package.get("vulns", [])]
    for package, flaw in known:
        versions = ", ".join(flaw["fix_versions"]) or "none"
        print(f"{package['name']} {package['version']}: {flaw['id']} (fixed in: {versions})")
    asked = sum("vulns" in package for package in found)
    unknown = f", {len(found) - asked} not in the database" if asked < len(found) else ""
    print(f"pip-audit: {asked} packages looked up{unknown}, {len(known)} known vulnerabilities")
    return int(bool(known))


if __name__ == "__main__":
    sys.exit(main())
