"""What ``build-probe list`` shows: every probe, what it needs, and whether that is available."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from textwrap import wrap
from typing import Any

from builders.engine.options import ProbeOptions, SnapshotOption, snapshot_options
from builders.engine.probe import third_party_probes
from builders.engine.registry import PROBES
from kb_cache.base import find_kind
from kb_cache.store import snapshot_names
from kbprobe.options import option_name
from kbprobe.tables import PlainTable

ROWS = Path(__file__).with_name("data") / "rows.csv"
"""The rows of each probe's default build; ``.ci/site/figures.py`` writes the file."""
ROWS_COUNTED_ON = "the English part of ConceptNet 4 and a sample of Wikidata"
"""The samples of growing knowledge bases on which rows were counted."""

READY, CHOOSE, FETCH = "ready", "choose", "fetch first"
_HEAD = ("PROBE", "ROWS", "NEEDS", "STATE", "ASKS")


@dataclass(frozen=True)
class Listed:
    """An entry of the list of probes.

    Attributes:
        name: the probe's name.
        summary: what it asks.
        rows: of a build with the default options; None where that is unknown.
        needs: the kinds of knowledge bases that such a build uses.
        state: "ready", "choose" (an option must say which of several snapshots), "fetch first".
        remedy: the command or option that makes it ready; empty if it is.
    """

    name: str
    summary: str
    rows: int | None
    needs: tuple[str, ...]
    state: str
    remedy: str


class ProbeList(list[Listed]):
    """Probes, which a notebook shows as a table."""

    def table(self) -> PlainTable:
        """Return the table."""
        rows = [
            [
                probe.name,
                probe.rows,
                ", ".join(probe.needs),
                probe.state,
                probe.remedy,
                probe.summary,
            ]
            for probe in self
        ]
        return PlainTable(["probe", "rows", "needs", "state", "remedy", "asks"], rows)

    def _repr_html_(self) -> str:
        return self.table().html()


def listed_probes() -> list[Listed]:
    """Return all probes by name, without importing built-in probes or the building code."""
    rows = default_rows()
    listed = [
        _listed(name, probe.summary, rows.get(name), probe.options)
        for name, probe in PROBES.items()
    ] + [_listed(probe.name, probe.summary, None, probe.options) for probe in third_party_probes()]
    return sorted(listed, key=lambda probe: probe.name)


def default_rows() -> dict[str, int]:
    """Return the rows of each probe's build with the default options."""
    lines = ROWS.read_text(encoding="utf-8").splitlines()
    return {name: int(rows) for name, rows in csv.reader(lines)}


def _listed(name: str, summary: str, rows: int | None, model: type[ProbeOptions]) -> Listed:
    needed = [option for option in snapshot_options(model) if option.default or option.required]
    states = [_state(option) for option in needed]
    state, remedy = next((pair for pair in states if pair[0] != READY), (READY, ""))
    return Listed(name, summary, rows, tuple(option.kind for option in needed), state, remedy)


def _state(option: SnapshotOption) -> tuple[str, str]:
    """Return whether a default build finds what an option names, and what to do if not."""
    default = option.default or (find_kind(option.kind).downloaded_name,)
    known = snapshot_names(option.kind, default[0])
    if set(default) <= set(known) or (option.default and len(known) == 1):
        return READY, ""
    kind = find_kind(option.kind)
    if not option.default and kind.stand_in():
        return READY, ""
    if known:
        return CHOOSE, f"{option_name(option.field)} {'|'.join(known)}"
    return FETCH, kind.remedy


def table(probes: list[Listed], width: int | None = None) -> Iterator[str]:
    """Yield the lines of the list, followed by what to do for probes that are not ready.

    ``width`` is the terminal's: what a probe asks is on a line of its own where rows are wider.
    """
    lines = [_HEAD] + [
        (
            probe.name,
            "-" if probe.rows is None else f"{probe.rows:,}",
            ", ".join(probe.needs) or "-",
            probe.state,
            probe.summary,
        )
        for probe in probes
    ]
    widths = [max(len(line[i]) for line in lines) for i in range(len(_HEAD))]
    apart = width is not None and sum(widths) + 2 * (len(widths) - 1) > width
    for line in lines:
        cells = [text.ljust(room) for text, room in zip(line, widths, strict=True)]
        cells[1] = line[1].rjust(widths[1])
        shown = cells[:-1] if apart else cells
        yield "  ".join(shown).rstrip()[:width]
        if apart and width is not None:
            yield from wrap(line[-1], width, initial_indent="  ", subsequent_indent="  ")
    yield ""
    for state, remedy in dict.fromkeys(
        (probe.state, probe.remedy) for probe in probes if probe.remedy
    ):
        names = ", ".join(probe.name for probe in probes if probe.remedy == remedy)
        own = " (or add --from FILE)" if state == FETCH and "--from" not in remedy else ""
        yield f"{names}: {state}: {remedy}{own}"
    yield (
        "Rows are those of a build with the default options; probes that need ConceptNet or "
        f"Wikidata were counted on {ROWS_COUNTED_ON}."
    )


def records(probes: list[Listed]) -> list[dict[str, Any]]:
    """Return the list in machine-readable form."""
    return [asdict(probe) for probe in probes]
