"""Measure the figures that the documentation states, and write them where it states them.

    python .ci/site/figures.py all --conceptnet english-sample --dump sample
    python .ci/site/figures.py wordnet_hypernymy taxonomy_conjunction
    python .ci/site/figures.py all --training
    python .ci/site/figures.py

With names of probes, or ``all``, it builds them in a temporary folder and writes what they give to
``docs/figures/builds.json``, to the gallery, to the rows that ``build-probe list`` shows, and, if
figures changed, to the manifests that the tests keep. ConceptNet and Wikidata are named by their
snapshots (``kb-cache list``). Languages whose lexicon was not fetched keep their figures.
``--training`` builds probes with ``--for-training`` alone, and leaves other figures as they are.
``answers.json``, ``kbprobe-1.json`` and ``scores.json`` in that folder are written by
``answers.py``, ``suite.py`` and ``scores.py``, and ``readings.json`` by hand: who read how many
rows of a probe, how many of them were sound, and the ``rows_digest`` of the build, where it is
known.

In any case it then fills in the marked places of all pages. In text, a figure stands between
``<!--= wordnet_hypernymy.rows -->`` and ``<!--/-->``, not at the start of a line, where Markdown
would take it for a block of HTML. ``<!-- figures: 3=rows, 4=full -->`` before a table is for its
third and fourth columns, in the rows whose first cell names a probe.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import gallery
from answers import ANSWERS, shown
from scores import PARTS, SCORES, in_hundredths

import builders
import templates
from builders.engine.listing import ROWS
from builders.engine.options import RANDOM
from builders.engine.probe import find_probe
from builders.engine.registry import OWN_FILES, PROBES
from evaluation.studies.curve.axes import CurveOptions
from kb_cache.store import snapshot_names
from kbprobe.errors import UsageError
from kbprobe.format.manifest import MOST_SIMILAR, Manifest, manifest_text, read_manifest

ROOT = Path(__file__).resolve().parents[2]
BUILDS = ROOT / "docs" / "figures" / "builds.json"
READINGS = BUILDS.with_name("readings.json")
MATCHING, MPNET = BUILDS.with_name("matching.json"), "all-mpnet-base-v2"
SUITES = (BUILDS.with_name("kbprobe-1.json"), BUILDS.with_name("kbprobe-2.json"))
PAIRS = ROOT / "builders" / "judged" / "data" / "pairs.csv"
MODELS = PAIRS.with_name("models.json")
KEPT = ROOT / "tests" / "data" / "manifests"
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))

BUILT = [name for name in PROBES if name not in OWN_FILES]
"""The probes that have a default build: those of users' files have none."""

LANGUAGES = ("it", "pt", "sq")
WORDNETQA = ("wordnet_definitions", "wordnet_hypernymy", "wordnet_hyponymy", "wordnet_synonymy")
PUBLISHED = {"tier": "full", "families": ("paper",), "sampling": "uniform"}
"""Distractors as in the WordNetQA paper, which `WORDNETQA` are measured with as well."""

INLINE = re.compile(r"(<!--= (.+?) -->).*?(?=<!--/-->)", re.S)
TABLE = re.compile(r"^(<!-- figures: )(.+)( -->\n\n)((?:\|.*\n)+)", re.M)
PROBE = re.compile(r"\| \[?`(\w+)`")

Figures = dict[str, dict[str, Any]]


class Measured(NamedTuple):
    """What the builds of a probe give: figures, a section of the gallery, the default manifest."""

    figures: dict[str, Any]
    section: str
    manifest: Manifest


def measured(name: str, samples: Mapping[str, str], scratch: Path) -> Measured:
    """Build a probe in all ways that pages have figures of.

    Args:
        name: the probe.
        samples: option of a probe that names a snapshot -> the snapshot.
        scratch: folder to build in.
    """
    given = gallery.sources(name, samples)

    def built(variant: str, audit: bool = False, **options: Any) -> Manifest:
        builders.build(name, output=scratch / variant, audit=audit, **given, **options)
        return read_manifest(scratch / variant)

    manifest = full = built("default", audit=True)
    if "tier" in find_probe(name).options.model_fields:
        full = built("full", tier="full")
    figures = {**of_default(manifest), "full": full.content["counts"]["rows"]}
    figures |= for_training(name, given, scratch)
    folder = Path(templates.__file__).parent
    for language in LANGUAGES:
        if (folder / f"{name}.{language}.yaml").exists() and language in snapshot_names("omw"):
            try:
                found = built(language, language=language)
            except UsageError as error:
                print(f"  {language}: {error}", file=sys.stderr)
            else:
                figures[language] = found.content["counts"]["rows"]
    if manifest.matching is not None:
        figures["unmatched"] = _similarity(built("unmatched", audit=True, match="none"))
    if name in WORDNETQA:
        figures["published"] = _audit(built("published", audit=True, **PUBLISHED))
    controls = gallery.controls(name)
    shown = scratch / "gallery" if controls else scratch / "default"
    if controls:
        built("gallery", audit=True, **controls)
    section = gallery.section(name, shown, {**given, **controls})
    return Measured(figures, section, manifest)


def of_default(manifest: Manifest) -> dict[str, Any]:
    """Return the figures of a default build."""
    counts, annotation = manifest.content["counts"], manifest.annotation
    return {
        "rows": counts["rows"],
        "read": annotation is not None and annotation.annotator_kind == "language model",
        **_agreement(manifest),
        "clusters": counts["clusters"],
        "splits": counts["splits"],
        "rows_digest": manifest.rows_digest,
        **_audit(manifest),
        "similarity": _similarity(manifest),
    }


def for_training(name: str, given: Mapping[str, Any], scratch: Path) -> dict[str, Any]:
    """Return the figures of a build with ``--for-training``; none if the probe lacks it.

    Args:
        name: the probe.
        given: the options that name its snapshots.
        scratch: folder to build in.
    """
    if "for_training" not in find_probe(name).options.model_fields:
        return {}
    folder = scratch / "training"
    builders.build(name, output=folder, audit=False, for_training=True, **given)
    counts = read_manifest(folder).content["counts"]
    splits, sizes = counts["splits"], CurveOptions.model_fields["sizes"].default
    possible = [size for size in sizes if size <= splits["train"]]
    return {
        "training": {
            "train": splits["train"],
            "flagged": counts.get("flagged", 0),
            "sizes": f"{len(possible)} of {len(sizes)}",
            "test": splits["test"],
        }
    }


def _audit(manifest: Manifest) -> dict[str, Any]:
    """Return chance and the accuracy of each baseline, of all families; empty without an audit."""
    if manifest.audit is None:
        return {}
    baselines = manifest.audit.baselines.items()
    return {
        "chance": round(manifest.audit.chance, 6),
        "baselines": {name: round(cells["all"].value, 6) for name, cells in baselines},
    }


def _similarity(manifest: Manifest) -> dict[str, Any]:
    """Return the accuracy of the most similar choice, in rows with near and random distractors."""
    cells = manifest.audit.baselines.get(MOST_SIMILAR, {}) if manifest.audit else {}
    near = [cell for name, cell in cells.items() if name not in (RANDOM, "all")]
    found = {"random": cells[RANDOM].value} if RANDOM in cells else {}
    if near and sum(cell.n for cell in near):
        rows = sum(cell.n for cell in near)
        found["near"] = round(sum(cell.value * cell.n for cell in near) / rows, 6)
    return found


def _agreement(manifest: Manifest) -> dict[str, Any]:
    """Return how far the readers agree who answered the rows of a probe, if anybody did."""
    votes = manifest.content.get("annotation") or {}
    if "krippendorff_alpha" not in votes:
        return {}
    alpha = f"{votes['krippendorff_alpha']:.3f}"
    unanimous = votes["unanimous"] / votes["labels"]
    return {"answers": votes["labels"], "unanimous": unanimous, "alpha": alpha}


def load() -> Figures:
    """Return the figures of each probe, and under ``all`` those of several together."""
    figures: Figures = json.loads(BUILDS.read_text("utf-8"))
    by_hand = json.loads(READINGS.read_text("utf-8"))
    read = by_hand["readings"]
    for name, probe in figures.items():
        probe["listed"] = f"{probe['rows']:,}{' ¹' * probe['read']}"
        own = [one for one in read if one["probe"] == name]
        probe["sound"] = ", ".join(f"{one['sound']} of {_readings(one)}" for one in own)
        current = sum(one.get("rows_digest") == probe["rows_digest"] for one in own)
        probe["current"] = f"{current} of {len(own)}"
        for one in own:
            probe |= _details(one)
    for one in by_hand["natural"]:
        figures[one["probe"]] |= {"premises": one["premises"], "hypotheses": one["hypotheses"]}
    for one in by_hand["matched"]:
        first, second = one["sound"]
        ease = [" / ".join(map(str, reader)) for reader in one["ease"]]
        own = figures[one["probe"]].setdefault("matched", {})
        own[one["part"]] = f"{first}, {second} of {one['rows']}"
        own[f"{one['part']} ease"] = "; ".join(ease)
    for one in by_hand["languages"]:
        key = f"sound in {one['language']}"
        figures[one["probe"]][key] = f"{', '.join(map(str, one['sound']))} of {one['rows']}"
    for one in by_hand["people"]:
        figures[one["probe"]]["people"] = _beside_people([one])
    for one in json.loads(MATCHING.read_text("utf-8")):
        figures[one["probe"]].setdefault("encoders", {})[one["match"]] = one["near"]
    matched = [
        probe for probe in figures.values() if "unmatched" in probe and probe["chance"] == 0.2
    ]
    near, random, unmatched = (
        [probe[build][part] for probe in matched if part in probe[build]]
        for build, part in (("similarity", "near"), ("similarity", RANDOM), ("unmatched", "near"))
    )
    by_mpnet, without = (
        [
            probe["encoders"][match][MPNET]
            for name, probe in figures.items()
            if name.startswith("wordnet") and "unmatched" in probe
        ]
        for match in ("similarity", "none")
    )
    latest = {one["probe"]: one for one in read}
    shares = [one["sound"] / _readings(one) for one in latest.values()]
    matched_shares = [
        sum(one["sound"]) / (len(one["sound"]) * one["rows"])
        for one in by_hand["matched"]
        if one["part"] == "near"
    ]
    current = sum(
        one.get("rows_digest") == figures[name]["rows_digest"] for name, one in latest.items()
    )
    rows = sum(map(_readings, read))
    with PAIRS.open(encoding="utf-8", newline="") as file:
        judged = [(row["reader_a"], row["reader_b"]) for row in csv.DictReader(file)]
    twice = [pair for pair in judged if all(pair)]
    figures["all"] = {
        "least similar": min(near),
        "most similar": max(near),
        "least similar random": min(random),
        "most similar random": max(random),
        "least similar unmatched": min(unmatched),
        "most similar unmatched": max(unmatched),
        "least similar by MPNet": min(by_mpnet),
        "most similar by MPNet": max(by_mpnet),
        "least unmatched by MPNet": min(without),
        "most unmatched by MPNet": max(without),
        "least sound": min(shares),
        "most sound": max(shares),
        "least sound matched": min(matched_shares),
        "most sound matched": max(matched_shares),
        "sound": sum(one["sound"] for one in read) / rows,
        "read": rows,
        "read current": f"{current} of {len(latest)}",
        "judged pairs": len(judged),
        "judged twice": len(twice),
        "judged agreement": sum(one == other for one, other in twice) / len(twice),
        **_judged_matched(),
        "judged kinds": _lines(PAIRS.with_name("kinds.csv")),
        "judged alone": _lines(PAIRS.with_name("alone.csv")),
        "judged classes": _lines(PAIRS.with_name("classes.csv")),
        **by_hand["voted"],
        **by_hand["people read"],
        "people": _beside_people(by_hand["people"]),
    }
    for suite in SUITES:
        for name, found in json.loads(suite.read_text("utf-8")).items():
            figures[name][suite.stem] = found
    for model, card in json.loads(SCORES.read_text("utf-8")).items():
        figures["all"][model] = {
            name: in_hundredths(estimate) for name, estimate in card["overall"].items()
        }
        for probe, found in card["probes"].items():
            figures[probe][model] = {part: found[part][0] for part in PARTS if part in found}
    answers = json.loads(ANSWERS.read_text("utf-8"))
    figures["answers"] = {name: shown(found) for name, found in answers.items()}
    return figures


def _judged_matched() -> dict[str, Any]:
    """Return how many distractors of matched groups were judged, and the share accepted."""
    with PAIRS.with_name("matched_pairs.csv").open(encoding="utf-8", newline="") as file:
        rows = [r for r in csv.DictReader(file) if r["family"] not in ("gold", "people")]
    found: dict[str, Any] = {"judged matched": len(rows)}
    for probe in dict.fromkeys(row["probe"] for row in rows):
        own = [row["reader_a"] != "false" for row in rows if row["probe"] == probe]
        found[f"accepted {probe}"] = sum(own) / len(own)
    model = json.loads(MODELS.read_text("utf-8"))["matched_distractor"]
    for probe, (beyond, within) in model["about"]["alike"].items():
        found |= {f"alike {probe}": beyond, f"unlike {probe}": within}
    return found


def _lines(table: Path) -> int:
    """Return how many rows a CSV file has below its header."""
    return len(table.read_text(encoding="utf-8").splitlines()) - 1


def _readings(reading: Mapping[str, Any]) -> int:
    """Return how many rows were read, each counted once for every reader."""
    return int(reading["rows"] * reading.get("readers", 1))


def _beside_people(found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the figures of some probes' rows beside what people answered."""
    rows, named, gold = (sum(one[name] for one in found) for name in ("rows", "named", "gold"))
    return {
        "rows": rows,
        "named": f"{named:,} ({named / rows:.1%})",
        "named rows": named,
        "gold": f"{gold:,} ({gold / rows:.0%})",
    }


def _details(reading: Mapping[str, Any]) -> dict[str, str]:
    """Return what some readings say besides how many rows are sound."""
    details = {}
    if "key" in reading:
        details["key"] = f"{reading['key']} of {_readings(reading)}"
    if "published" in reading:
        details["published sound"] = "{1} of {0}".format(*reading["published"])
    if "ease" in reading:
        details["ease"] = " / ".join(map(str, reading["ease"]))
    if "parts" in reading:
        parts = reading["parts"].items()
        details["sound by part"] = ", ".join(f"{name} {ok} of {n}" for name, (n, ok) in parts)
    return details


def filled(text: str, figures: Figures) -> str:
    """Return a page with the figures in its marked places.

    Raises:
        KeyError: there is no such figure.
    """

    def table(match: re.Match[str]) -> str:
        columns = [column.split("=") for column in match[2].split(", ")]
        lines = []
        for line in match[4].splitlines(keepends=True):
            cells = re.split(r"(?<!\\)\|", line)
            probe = PROBE.match(line)
            for number, figure in columns if probe else ():
                # A cell without a figure says why: it is written by hand.
                with suppress(KeyError):
                    cells[int(number)] = f" {_figure(figures, f'{probe[1]}.{figure}')} "
            lines.append("|".join(cells))
        return match[1] + match[2] + match[3] + "".join(lines)

    return INLINE.sub(lambda match: match[1] + _figure(figures, match[2]), TABLE.sub(table, text))


def _figure(figures: Figures, place: str) -> str:
    """Return a figure as it is written: a count, or a share of 1 in per cent."""
    found: Any = figures
    for key in place.split("."):
        found = found[key]
    if isinstance(found, float):
        return f"{100 * found:.1f}".removesuffix(".0") + "%"
    return f"{found:,}" if isinstance(found, int) else str(found)


def main() -> None:
    """Measure probes, and fill in pages."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("probes", nargs="*", choices=[*BUILT, "all", []], metavar="PROBE")
    parser.add_argument("--conceptnet", default="english-sample", help="snapshot of ConceptNet")
    parser.add_argument("--dump", default="sample", help="snapshot of Wikidata")
    parser.add_argument("--training", action="store_true", help="builds for training alone")
    given = vars(parser.parse_args())
    probes, training = given.pop("probes"), given.pop("training")
    builds = json.loads(BUILDS.read_text("utf-8"))
    sections = gallery.sections()
    for name in BUILT if "all" in probes else probes:
        print(name, file=sys.stderr)
        with tempfile.TemporaryDirectory() as scratch:
            if training:
                sources = gallery.sources(name, given)
                builds[name] |= for_training(name, sources, Path(scratch))
                continue
            new = measured(name, given, Path(scratch))
        old = builds.get(name, {})
        builds[name] = {key: old[key] for key in LANGUAGES if key in old} | new.figures
        sections[name] = new.section
        kept = KEPT / f"{name}.json"
        if not kept.exists() or of_default(read_manifest(kept)) != of_default(new.manifest):
            kept.write_text(manifest_text(new.manifest.content), "utf-8")
    if probes:
        builds = {name: builds[name] for name in BUILT}
        BUILDS.write_text(json.dumps(builds, indent=1, ensure_ascii=False) + "\n", "utf-8")
        with ROWS.open("w", encoding="utf-8", newline="") as file:
            rows = ((name, build["rows"]) for name, build in builds.items())
            csv.writer(file, lineterminator="\n").writerows(rows)
        gallery.write(builds, sections)
    figures = load()
    for page in PAGES:
        text = page.read_text("utf-8")
        if (new_text := filled(text, figures)) != text:
            page.write_text(new_text, "utf-8")
            print(page.relative_to(ROOT), file=sys.stderr)


if __name__ == "__main__":
    main()
