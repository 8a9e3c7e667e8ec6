"""Time of checking a probe and preparing its release, compared with a straightforward reader.

    python benchmarks/release.py [--rows N] [--rounds N] [--json]

Measured, each in a fresh process, best of the rounds, on a built WordNet probe whose rows are
multiplied to at least ``--rows`` (other ids, questions and clusters, so that none is a duplicate):

- **ours**: ``release.check``, the card of the release and ``croissant.json``: all that precedes an
  upload, each timed separately.
- **reference**: ``datasets``, a loop over rows as dicts, sets of ids, questions and clusters, and
  ``hashlib`` over the files: the same checks of rows and files as one would write them in ten
  minutes. It makes no card.

Imports are counted on neither side; "wall" is the process from start to end. The only assertion is
that both sides find nothing wrong.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from processes import ROOT, Report, best_of

PROBE = "wordnet_hypernymy"
OPTIONS: dict[str, Any] = {"train_rows": 0, "cap_per_gold": 0}
REPOSITORY = "me/probe"

# Before this file's own folder, so that ``release`` is the package.
sys.path.insert(0, str(ROOT))


def multiplied(folder: Path, rows: int) -> None:
    """Build a probe and repeat its rows, distinguished by a number, until there are enough."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    from builders.engine.pipeline import build, write
    from builders.engine.probe import find_probe
    from builders.engine.request import Request
    from kbprobe.format.card import size_category
    from release.cards import join_card, split_card

    probe = find_probe(PROBE)
    write(build(Request(probe, probe.options.parse(OPTIONS, PROBE))), folder)
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    times = -(-rows // manifest["counts"]["rows"])
    told = ("id", "question", "cluster", "concept")
    for entry in manifest["files"]:
        with pq.ParquetFile(folder / entry["path"]) as file:
            table, stored = file.read(), file.metadata.metadata[b"huggingface"]
        copies = []
        for number in range(times):
            copy = table
            for name in told:
                texts = pc.binary_join_element_wise(table[name], str(number), " ")
                copy = copy.set_column(copy.schema.get_field_index(name), name, texts)
            copies.append(copy.cast(table.schema))
        file_path = folder / entry["path"]
        options: dict[str, Any] = {"compression": "zstd", "store_schema": False}
        with pq.ParquetWriter(file_path, table.schema, **options) as writer:
            writer.write_table(pa.concat_tables(copies), row_group_size=1 << 16)
            writer.add_key_value_metadata({"huggingface": stored})
        content = file_path.read_bytes()
        entry["sha256"] = hashlib.sha256(content).hexdigest()
        entry["bytes"], entry["rows"] = len(content), entry["rows"] * times
    counts = manifest["counts"]
    before, splits = counts["rows"], dict(counts["splits"])
    counts["splits"] = {name: one * times for name, one in splits.items()}
    for name in ("rows", "concepts", "clusters"):
        counts[name] *= times
    path.write_text(json.dumps(manifest), encoding="utf-8")
    front, text = split_card((folder / "README.md").read_text(encoding="utf-8"))
    text = text.replace(f"{before:,} rows", f"{counts['rows']:,} rows")
    for name, one in splits.items():
        text = text.replace(f"| {name} | {one:,} |", f"| {name} | {one * times:,} |")
    (info,) = front["dataset_info"]
    for split in info["splits"]:
        split["num_examples"] *= times
    info["download_size"] = sum(entry["bytes"] for entry in manifest["files"])
    front["size_categories"] = [size_category(counts["rows"])]
    (folder / "README.md").write_text(join_card(front, text), encoding="utf-8")


# What runs in the child processes.


def ours(folder: Path) -> Report:
    import pyarrow.json
    import pyarrow.parquet  # noqa: F401 - imports are not counted

    import release.checks.cards
    import release.checks.rows  # noqa: F401
    from release.checks.checking import check
    from release.croissant import croissant_text
    from release.hub.package import publication_card

    start = time.perf_counter()
    report = check(folder)
    checked = time.perf_counter()
    publication_card(folder, repo_id=REPOSITORY, version="v1.0.0")
    croissant_text(folder, repo_id=REPOSITORY, version="v1.0.0")
    end = time.perf_counter()
    faults = [f"{one.name}: {one.what}" for one in report.failed]
    return {
        "check": checked - start,
        "card": end - checked,
        "seconds": end - start,
        "faults": faults,
    }


def reference(folder: Path) -> Report:
    from datasets import load_dataset

    start = time.perf_counter()
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    faults = []
    for entry in manifest["files"]:
        if hashlib.sha256((folder / entry["path"]).read_bytes()).hexdigest() != entry["sha256"]:
            faults.append(entry["path"])
    ids, seen = set(), set()
    placed: dict[str, str] = {}
    asked: dict[tuple[str, str], str] = {}
    files = {one["split"]: str(folder / one["path"]) for one in manifest["files"]}
    cache = tempfile.mkdtemp(dir=folder.parent)
    for split, rows in load_dataset("parquet", data_files=files, cache_dir=cache).items():
        for row in rows:
            texts, answer = row["choices"]["text"], row["answer"]
            gold = texts[answer]
            key = (row["question"], tuple(sorted(texts)))
            wrong = (
                row["id"] in ids
                or not 0 <= answer < len(texts)
                or row["answerKey"] != row["choices"]["label"][answer]
                or row["choice_families"][answer] != "gold"
                or len(set(texts)) != len(texts)
                or not all(text.strip() for text in (row["question"], *texts))
                or key in seen
                or placed.setdefault(row["cluster"], split) != split
                or asked.setdefault((row["question"], gold), split) != split
            )
            if wrong:
                faults.append(row["id"])
            ids.add(row["id"])
            seen.add(key)
    return {"seconds": time.perf_counter() - start, "faults": faults[:3]}


# The parent process.


def measured(side: str, folder: Path, rounds: int) -> Report:
    """Return the best of several runs, each in its own process."""
    environment = {"HF_DATASETS_DISABLE_PROGRESS_BARS": "1"}
    best = best_of(rounds, "seconds", __file__, "--child", side, str(folder), **environment)
    if best["faults"]:
        raise SystemExit(f"{side} finds fault: {best['faults']}")
    return best


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    words = parser.parse_args()
    if words.child:
        side, folder = words.child
        print(json.dumps({"ours": ours, "reference": reference}[side](Path(folder))))
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "probe"
        multiplied(folder, words.rows)
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        report = {
            "rows": manifest["counts"]["rows"],
            "bytes": sum(entry["bytes"] for entry in manifest["files"]),
            "ours": measured("ours", folder, words.rounds),
            "reference": measured("reference", folder, 1),
        }
    if words.json:
        print(json.dumps(report))
        return
    mine, other = report["ours"], report["reference"]
    print(f"{report['rows']:,} rows, {report['bytes'] / 1e6:.1f} MB, {os.cpu_count()} cores\n")
    print(
        f"ours        {mine['seconds']:6.2f} s   (check {mine['check']:.2f}, card and Croissant "
        f"{mine['card']:.2f}; wall {mine['wall']:.2f})"
    )
    print(f"reference   {other['seconds']:6.2f} s   (wall {other['wall']:.2f})")
    print(f"ratio       {other['seconds'] / mine['seconds']:6.1f}")


if __name__ == "__main__":
    main()
