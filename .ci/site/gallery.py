"""The page docs/gallery.md: a row of every probe and config, with figures of its card.

``figures.py`` builds the probes and writes the page. The page says what the snapshots of ConceptNet
and Wikidata hold.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from builders.engine.card import command_of
from builders.engine.probe import find_probe
from builders.engine.registry import PROBES
from builders.engine.request import Request
from kb_cache.base import find_kind
from kb_cache.listing import contents, holdings
from kbprobe.format.dataset import data_folder, rows_by_id
from kbprobe.format.manifest import read_manifest
from kbprobe.format.setups import DEFAULT_CONFIG
from kbprobe.tables import in_markdown

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = DOCS / "gallery.md"
SPLIT = "test"
CHOSEN = {"conceptnet": "conceptnet", "dump": "wikidata"}
"""Options that name a snapshot without a fixed default, and its kind."""

HEAD = """\
# Gallery

One row of every probe and of each of its configs: the first row of the test split, as built with
the default options and seed 0. The right answer is bold. Configs that ask the same rows are shown
with the same row, and their choices where they differ.

The *highest baseline* is that of the audit: what can be answered without reading the whole
question. A build's card has all baselines with their intervals. `.ci/site/figures.py` builds every
probe and writes this page.

| probe | rows | chance | highest baseline |
|---|---:|---:|---|
"""


def sources(name: str, samples: Mapping[str, str]) -> dict[str, Any]:
    """Return the options that name the snapshots of a probe's default build.

    Args:
        name: the probe.
        samples: option of a probe that names a snapshot -> the snapshot.
    """
    fields = find_probe(name).options.model_fields
    # Some probes can do without ConceptNet, and do by default.
    chosen = (key for key in samples if key in fields and (fields[key].default or key == "dump"))
    return {key: samples[key] for key in chosen}


def controls(name: str) -> dict[str, Any]:
    """Return the option that adds the controls of a probe; empty where they need none."""
    probe = find_probe(name)
    wanted = probe.controls and not probe.options.model_fields["controls"].default
    return {"controls": True} if wanted else {}


def section(name: str, folder: Path, options: Mapping[str, Any]) -> str:
    """Return the section of a probe that was built with some options."""
    return "\n".join(_lines(name, folder, read_manifest(folder).model_dump(), options))


def sections() -> dict[str, str]:
    """Return the sections of the page as it is, by probe."""
    _, *parts = re.split(r"^(?=## )", PAGE.read_text(encoding="utf-8"), flags=re.M)
    return {part[3:].partition("\n")[0]: part.strip() for part in parts}


def write(builds: Mapping[str, Mapping[str, Any]], sections: Mapping[str, str]) -> None:
    """Write the page: a table of the builds' figures, and the sections of the probes."""
    table = "\n".join(_line(name, build) for name, build in builds.items())
    parts = [HEAD + table, *(sections[name] for name in builds)]
    PAGE.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def _line(name: str, build: Mapping[str, Any]) -> str:
    start = f"| [`{name}`](#{name}) | {build['rows']:,} |"
    if "baselines" not in build:
        return f"{start} | |"
    best = max(build["baselines"], key=lambda baseline: build["baselines"][baseline])
    highest = f"{build['baselines'][best]:.1%}, {in_markdown(best)}"
    return f"{start} {build['chance']:.1%} | {highest} |"


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
        for config in others:
            rows = _rows(folder, config)
            same = rows.get(row["id"]) or next(iter(rows.values()))
            total = sum(file["rows"] for file in manifest["files"] if file["config"] == config)
            number = f" ({total:,} rows)" if total != counts["rows"] else ""
            asked = in_markdown(_question(same))
            if (choices := _choices(same)) != _choices(row):
                asked += f" ({choices})"
            yield f"- `{config}`{number}: {asked}"
        yield ""
    splits = ", ".join(f"{split} {rows:,}" for split, rows in _in_order(counts["splits"]))
    yield f"**Rows**: {counts['rows']:,} ({splits}), in {counts['clusters']:,} clusters"
    yield ""
    yield f"**Source**: {_sources(manifest, options)}"


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


def _choices(row: Mapping[str, Any]) -> str:
    texts = enumerate(row["choices"]["text"])
    return " / ".join(_bold(in_markdown(text), at == row["answer"]) for at, text in texts)


def _bold(text: str, right: bool) -> str:
    return f"**{text}**" if right else text


def _in_order(splits: Mapping[str, int]) -> list[tuple[str, int]]:
    return [(name, splits[name]) for name in ("train", "validation", SPLIT) if name in splits]


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
    pages = sorted((DOCS / "probes").glob("*.md"))
    best = max(pages, key=lambda page: (page.stem == name, page.read_text("utf-8").count(name)))
    return best.relative_to(DOCS).as_posix()
