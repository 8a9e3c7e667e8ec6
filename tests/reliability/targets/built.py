"""What is read back of a built probe: its manifest, card and figures, and the key of its sheets.

The folder's other files are sound. A damaged manifest goes to everything that starts from one.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from tests.reliability.target import Target

_ROWS = 300
_SPLIT = "test"


def _probe(folder: Path) -> Path:
    from builders.engine.pipeline import build, write
    from builders.engine.probe import find_probe
    from builders.engine.request import Request

    probe = find_probe("object_comparison")
    options = probe.options.parse({"limit": _ROWS}, probe.name)
    write(build(Request(probe, options)), folder / "probe")
    return folder / "probe"


def _manifest(folder: Path) -> list[Path]:
    return [_probe(folder) / "manifest.json"]


def _read_manifest(path: Path) -> str:
    from kbprobe.format.manifest import read_manifest

    return read_manifest(path).rows_digest


def _use_manifest(path: Path) -> int:
    """Export, annotate, check, describe and rebuild a probe; count what is not refused."""
    from builders.engine.pipeline import request_of
    from evaluation.items.sources import open_probe
    from kbprobe.errors import KbprobeError
    from kbprobe.format.manifest import read_manifest
    from release.annotation.options import SheetOptions
    from release.annotation.plan import plan_sheets
    from release.checks.checking import check
    from release.croissant import croissant
    from release.exports.exporting import export

    folder, aside = path.parent, path.parents[1] / "out"
    sheets = SheetOptions(n=10, gold_checks=0.2)
    uses: list[Callable[[], object]] = [
        lambda: request_of(read_manifest(folder)).is_in(folder, overwrite=False),
        lambda: plan_sheets(folder, sheets),
        lambda: export(folder, "lm-eval", aside, overwrite=True),
        lambda: check(folder),
        lambda: croissant(folder),
        lambda: open_probe(folder, split=_SPLIT),
    ]
    done, refused = 0, None
    for use in uses:
        try:
            use()
        except KbprobeError as error:
            refused = error
        else:
            done += 1
    shutil.rmtree(aside, ignore_errors=True)
    if refused is not None:
        raise refused
    return done


def _beside(folder: Path) -> list[Path]:
    return [_probe(folder) / "README.md"]


def _check(path: Path) -> int:
    from release.checks.checking import check

    return len(check(path.parent).failed)


def _key(folder: Path) -> list[Path]:
    from release.annotation.round_trip import export_sheets

    probe = _probe(folder)
    export_sheets(probe, folder / "sheets", n=10, gold_checks=0.2, repeats=0.1)
    items = (folder / "sheets" / "key.json").read_text("utf-8").split('"item_id": "')[1:]
    rows = [f"{item.partition(chr(34))[0]},A,ann\n" for item in items]
    (folder / "votes.csv").write_text("item_id,answer,annotator\n" + "".join(rows), "utf-8")
    return [folder / "sheets" / "key.json"]


def _import(path: Path) -> int:
    from release.annotation.round_trip import import_votes

    folder = path.parents[1]
    return len(
        import_votes(folder / "probe", [folder / "votes.csv"], key=path, skip_bad=True).labels
    )


def _score(path: Path) -> int:
    from release.annotation.soundness import score

    folder = path.parents[1]
    return score(folder / "probe", [folder / "votes.csv"], path, skip_bad=True).rows


TARGETS = [
    Target("manifest", _manifest, _read_manifest),
    Target("manifest-used", _manifest, _use_manifest, names_file=False),
    Target("card", _beside, _check, names_file=False),
    Target("key", _key, _import, names_file=False),
    Target("key-scored", _key, _score, names_file=False),
]
