"""Make docs/gallery.md: a row of every probe and config, with figures of its card, of real builds.

    python .ci/site/gallery.py --conceptnet english-sample --dump sample

builds every probe with its default options and all configs, in a temporary folder. ConceptNet and
Wikidata are named by their snapshots (``kb-cache list``); the page says what these hold.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import builders
from builders.engine.card import command_of
from builders.engine.probe import find_probe
from builders.engine.registry import PROBES
from builders.engine.request import Request
from kb_cache.base import find_kind
from kb_cache.listing import contents, holdings
from kbprobe.format.dataset import data_folder
from kbprobe.format.manifest import read_manifest
from kbprobe.format.rows import rows_by_id
from kbprobe.format.setups import DEFAULT_CONFIG
from kbprobe.tables import in_markdown

DOCS = Path(__file__).resolve().parents[2] / "docs"
SPLIT = "test"
LONG = 200
"""Characters of choices that are shown only once."""
CHOSEN = {"conceptnet": "conceptnet", "dump": "wikidata"}
"""Options that name a snapshot without a fixed default, and its kind."""

HEAD = """\
# Gallery

One row of every probe and of each of its configs: the first row of the test split, as built with
the default options and seed 0, with some figures of the probe's card. The right answer is bold. A
config that asks the same rows (a control, a variant) is shown with the same row.

*Off chance* is how far the audit's highest score lies above chance, in points: what can be answered
without reading the whole question. A build's card has all baselines with their intervals. Probes
that people are to label have no answers yet, and so no audit of them.

This page is made by `.ci/site/gallery.py`, which builds every probe.

| probe | rows | chance | highest baseline | off chance |
|---|---:|---:|---:|---:|
"""


def shown(name: str, samples: Mapping[str, str]) -> tuple[str, str]:
    """Build a probe and return its row of the table and its section of the page.

    Args:
        name: the probe.
        samples: option of a probe that names a snapshot -> the snapshot.
    """
    fields = find_probe(name).options.model_fields
    options: dict[str, Any] = {
        key: value
        for key, value in samples.items()
        # Some probes can do without ConceptNet, and do by default.
        if key in fields and (fields[key].default or key == "dump")
    }
    if find_probe(name).controls and not fields["controls"].default:
        options["controls"] = True
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / name
        builders.build(name, output=folder, audit=True, **options)
        manifest = read_manifest(folder).model_dump()
        return _line(name, manifest), "\n".join(_lines(name, folder, manifest, options))


def _line(name: str, manifest: Mapping[str, Any]) -> str:
    start = f"| [`{name}`](#{name}) | {manifest['counts']['rows']:,} |"
    if (found := _highest(manifest["audit"])) is None:
        return f"{start} | | |"
    _, best, chance = found
    off = 100 * (best["accuracy"] - chance)
    return f"{start} {chance:.1%} | {best['accuracy']:.1%} | {off:+.1f} |"


def _lines(
    name: str, folder: Path, manifest: Mapping[str, Any], options: Mapping[str, Any]
) -> Iterator[str]:
    counts = manifest["counts"]
    configs = list(dict.fromkeys(file["config"] for file in manifest["files"]))
    default = _rows(folder, DEFAULT_CONFIG)
    row = next(iter(default.values()))
    probe = find_probe(name)
    request = Request(probe, probe.options.model_validate(options))

    yield f"## {name}\n"
    yield f"{PROBES[name].summary} [More]({_page(name)})\n"
    yield f"```sh\n{command_of(request)}\n```\n"
    yield from _shown(row)
    yield ""
    if others := [config for config in configs if config != DEFAULT_CONFIG]:
        yield "| config | rows | a row |\n|---|---:|---|"
        for config in others:
            rows = _rows(folder, config)
            same = rows.get(row["id"]) or next(iter(rows.values()))
            total = sum(file["rows"] for file in manifest["files"] if file["config"] == config)
            asked = f"{in_markdown(_question(same))} ({_choices(same, row)})"
            yield f"| `{config}` | {total:,} | {asked} |"
        yield ""
    splits = ", ".join(f"{split} {rows:,}" for split, rows in _in_order(counts["splits"]))
    yield f"- **Rows**: {counts['rows']:,} ({splits}), in {counts['clusters']:,} clusters"
    yield f"- **Distractors**: {_families(counts['cells'])}"
    yield f"- **Audit**: {_audit(manifest['audit'])}"
    yield f"- **Source**: {_sources(manifest, options)}"


def _rows(folder: Path, config: str) -> dict[str, dict[str, Any]]:
    """Return the rows of a config's test split by id, the first ones first."""
    (path,) = data_folder(folder, config).glob(f"{SPLIT}-*.parquet")
    table = pq.read_table(path)
    return rows_by_id(table, table["id"].to_pylist())


def _shown(row: Mapping[str, Any]) -> Iterator[str]:
    yield f"> {in_markdown(_question(row))}\n>"
    for at, text in enumerate(row["choices"]["text"]):
        yield f"> - {_bold(in_markdown(text), at == row['answer'])}"


def _question(row: Mapping[str, Any]) -> str:
    return str(row["question"])


def _choices(row: Mapping[str, Any], default: Mapping[str, Any]) -> str:
    """Return the choices of a config's row; long ones that the default row has are not repeated."""
    if row["choices"] == default["choices"] and sum(map(len, row["choices"]["text"])) > LONG:
        return "the same choices"
    texts = enumerate(row["choices"]["text"])
    return " / ".join(_bold(in_markdown(text), at == row["answer"]) for at, text in texts)


def _bold(text: str, right: bool) -> str:
    return f"**{text}**" if right else text


def _in_order(splits: Mapping[str, int]) -> list[tuple[str, int]]:
    return [(name, splits[name]) for name in ("train", "validation", SPLIT) if name in splits]


def _families(cells: Mapping[str, Mapping[str, int]]) -> str:
    """Return the families of distractors with their rows, of all hops."""
    rows: dict[str, int] = {}
    for families in cells.values():
        for family, count in families.items():
            rows[family] = rows.get(family, 0) + count
    ordered = sorted(rows.items(), key=lambda one: (-one[1], one[0]))
    shown = [f"{in_markdown(family)} {count:,}" for family, count in ordered[:6]]
    if more := ordered[6:]:
        shown.append(f"{len(more)} more families {sum(count for _, count in more):,}")
    return ", ".join(shown)


def _highest(audit: Mapping[str, Any] | None) -> tuple[str, Mapping[str, Any], float] | None:
    """Return the baseline that scores highest, its scores and chance; None: there is none."""
    if not audit or not audit["baselines"]:
        return None
    name, cells = max(audit["baselines"].items(), key=lambda one: one[1]["all"]["accuracy"])
    return name, cells["all"], audit["chance"]


def _audit(audit: Mapping[str, Any] | None) -> str:
    if (found := _highest(audit)) is None:
        return "none: the rows have no answers yet"
    name, best, chance = found
    return (
        f"chance {chance:.1%}; the highest baseline, *{in_markdown(name)}*, {best['accuracy']:.1%} "
        f"(95% interval {100 * best['low']:.1f} to {100 * best['high']:.1f})"
    )


def _sources(manifest: Mapping[str, Any], options: Mapping[str, Any]) -> str:
    knowledge = manifest["knowledge_base"]
    text = f"{knowledge['name'].replace('+', ', ')} ({knowledge['licence']})"
    for option, kind in CHOSEN.items():
        if (snapshot := options.get(option)) is None:
            continue
        held = contents(holdings()[f"{kind}-{snapshot}"].row())
        text += f". A sample, not all of {find_kind(kind).title}: {held}"
    return text


def _page(name: str) -> str:
    """Return the page that says most of a probe."""
    pages = [page for page in sorted((DOCS / "probes").glob("*.md")) if "reading" not in page.stem]
    best = max(pages, key=lambda page: (page.stem == name, page.read_text("utf-8").count(name)))
    return best.relative_to(DOCS).as_posix()


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for option, kind in CHOSEN.items():
        parser.add_argument(f"--{option}", required=True, help=f"snapshot of {kind}")
    parser.add_argument("--output", type=Path, default=DOCS / "gallery.md")
    given = vars(parser.parse_args())
    output: Path = given.pop("output")
    table, sections = [], []
    for name in PROBES:
        print(name, file=sys.stderr)
        line, section = shown(name, given)
        table.append(line)
        sections.append(section)
    text = HEAD + "\n".join(table) + "\n\n" + "\n\n".join(sections) + "\n"
    output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
