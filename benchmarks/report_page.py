"""Measure the page of a suite: its size, and the time it takes to make and to open.

    python benchmarks/report_page.py [--models 10] [--rows 50000] [--rounds 5] [--keep DIR] [--json]
                                     [--probes 14]

Two suites are made: ``--probes`` probes of real text, as ``build-probe`` makes them (at most 4,000
rows each, about half of them in the split ``test``), and one probe of ``--rows`` rows. The
**answers are synthetic**: no model is run. Each of the ``--models`` models has a seeded random
ability, each probe a seeded random difficulty, and each score is drawn at random around both, lower
if the distractors are close to the gold. Everything else is as after an evaluation: scores become
predictions, metrics and intervals by the functions that evaluation uses, and files are written as
it writes them.

Measured on each page:

- **make**: seconds that ``evaluate-probe report FOLDER`` takes, from start to end, and its memory.
- **open**: headless Chromium loads the file; the page's script sets marks of the User Timing API
  when the leaderboard can be sorted (``ready``), when the first questions are shown (``rows``) and
  when the heat maps are (``complete``). They count from the start of navigation; medians of
  ``--rounds`` fresh browsers.
- **find**: seconds until a text has been searched in all questions of all probes, which are
  unpacked first, and the rows found are shown. The page's delay of 0.2 s after the last key press
  is not included.

WordNet is found as in ``build-probe`` (``$NLTK_DATA``). Without Chromium the pages are made, but
not opened.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

os.environ["TQDM_DISABLE"] = "1"
ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

PROBES = (
    "wordnet_antonymy",
    "wordnet_definitions",
    "wordnet_hypernymy",
    "wordnet_hyponymy",
    "wordnet_meronymy",
    "wordnet_synonymy",
    "dictionary_wordsense",
    "taxonomy_conjunction",
    "age_comparison",
    "object_comparison",
    "multihop_comparison",
    "antonym_negation",
    "fw_wh_words",
    "fw_eos",
)
LIMIT = 4000

LARGE = "wordnet_hypernymy"
PUBLISHED = (
    "--tier", "full", "--families", "paper", "--sampling", "uniform",
    "--max-hops", "4", "--cap-per-gold", "0", "--train-rows", "0", "--split-shares", "0.1,0.1,0.8",
    "--no-audit",
)  # fmt: skip
"""The probe's published form, which has many rows: each question with every distractor family."""
TARGET_SECONDS = 2.0


def build_probes(
    folder: Path, names: tuple[str, ...], limit: int, further: tuple[str, ...] = ()
) -> None:
    """Build probes into a folder, except those that are already there."""
    command = [sys.executable, "-m", "builders.cli", *names, "--limit", str(limit)]
    target = folder / names[0] if len(names) == 1 else folder
    command += [*further, "-o", str(target)]
    subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)


def random_scores(split: Any, generator: np.random.Generator, ability: float) -> Any:
    """Draw a score for each choice: the gold's is higher by the ability on average."""
    from evaluation.items.types import choice_starts
    from evaluation.results.metrics import Scores

    starts = choice_starts(split.items)
    near = split.about["distractor_hops"].to_pylist()
    scores = generator.gumbel(size=int(starts[-1]))
    for row, item in enumerate(split.items):
        scores[starts[row] + item.answer] += ability - 0.8 / (near[row] or 2)
    return Scores(
        scores=scores,
        tokens=np.ones(scores.size, np.int64),
        set_aside={},
        notes={},
        score_name="logit",
        sequences=scores.size,
        sequence_tokens=scores.size,
        parameters=0,
    )


def save_run(split: Any, folder: Path, model: int, seed: int, ability: float) -> None:
    """Write the results of one model on one probe, as an evaluation does."""
    from evaluation.results.metrics import measure, of_audit, predictions_table
    from evaluation.results.types import (
        ModelInfo,
        ProbeInfo,
        Results,
        Scoring,
        Timings,
        write_predictions,
        write_results,
    )

    generator = np.random.default_rng([seed, model])
    predictions = predictions_table(split, random_scores(split, generator, ability), "sum", 1e-4)
    audit = split.manifest.audit if split.manifest else None
    metrics = measure(
        predictions,
        clustered=split.clustered,
        normalization="sum",
        by_length=False,
        seed=0,
        tie_tolerance=1e-4,
    ).model_copy(update=of_audit(audit) if audit else {})
    digest = f"{model:064x}"
    results = Results(
        probe=ProbeInfo(
            name=split.name,
            source=split.name,
            split=split.split,
            rows=len(split.items),
            clusters=split.clusters,
            fingerprint=split.fingerprint,
            request=None,
            kbprobe_version=None,
        ),
        model=ModelInfo(
            id=f"synthetic/model-{model + 1:02d}",
            revision=None,
            architecture="SyntheticForMaskedLM",
            parameters=10_000_000 * (model + 1),
            weights_sha256=digest,
            tokenizer_sha256=digest,
            dtype="float32",
            device="cpu",
            finetuning=None,
        ),
        scoring=Scoring(
            scorer="masked_lm",
            version=1,
            score="logit",
            options={},
            notes={},
            key=f"{seed:032x}{model:032x}",
        ),
        metrics=metrics,
        seed=0,
        timings=Timings(
            load=0.0,
            train=0.0,
            encode=0.0,
            score=0.0,
            total=0.0,
            sequences=0,
            tokens=0,
            scored_sequences=0,
            rows_per_second=None,
        ),
        versions={"kbprobe": "synthetic"},
    )
    folder.mkdir(parents=True, exist_ok=True)
    write_predictions(predictions, folder)
    write_results(results, folder)


def make_suite(
    probes: Path, names: tuple[str, ...], results: Path, models: int, rows: int | None = None
) -> int:
    """Write the results of all models on all probes; return the number of questions."""
    from evaluation.items.sampling import sample
    from evaluation.items.sources import open_probe

    abilities = np.random.default_rng(0).uniform(0.8, 2.8, models)
    questions = 0
    for number, name in enumerate(names):
        split = open_probe(str(probes / name))
        if rows is not None and len(split.items) > rows:
            split = sample(split, rows, "rows", 0)
        questions += len(split.items)
        harder = float(np.random.default_rng([1, number]).uniform(0.0, 1.2))
        for model in range(models):
            save_run(
                split, results / name / f"model-{model + 1:02d}", model, number,
                float(abilities[model]) - harder,
            )  # fmt: skip
    return questions


def make_page(results: Path, page: Path) -> dict[str, float]:
    """Run the command; return its seconds, its peak memory in MiB and the size of the page."""
    command = [sys.executable, "-m", "evaluation.cli", "report", str(results), "-o", str(page)]
    began = time.perf_counter()
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    if status:
        raise SystemExit(f"{' '.join(command)} failed")
    size = page.stat().st_size / 1e6
    return {"make_seconds": seconds, "make_mib": usage.ru_maxrss / 1024, "page_mb": size}


def open_page(page: Path, scratch: Path, rounds: int) -> dict[str, float]:
    """Open the page in fresh browsers; return medians in seconds."""
    from tests.chromium import browser

    times: dict[str, list[float]] = {"ready": [], "rows": [], "complete": [], "find": []}
    for number in range(rounds):
        with browser(scratch / f"profile-{number}") as tab:
            tab.size(1280, 900)
            tab.open(page)
            tab.wait("performance.getEntriesByName('complete').length > 0")
            for name in ("ready", "rows", "complete"):
                at = tab.run(f"performance.getEntriesByName({name!r})[0].startTime")
                times[name].append(at / 1000)
            times["find"].append(tab.run(FIND) / 1000)
            if tab.problems:
                raise SystemExit(f"{page}: {tab.problems}")
    return {f"{name}_seconds": statistics.median(held) for name, held in times.items()}


FIND = """
(async () => {
  const began = performance.now();
  document.getElementById("probe").value = "";
  document.getElementById("text").value = "house";
  const rows = document.getElementById("rows");
  const done = new Promise((end) => {
    new MutationObserver(() => rows.classList.contains("stale") || end(performance.now() - began))
      .observe(rows, { attributeFilter: ["class"] });
  });
  document.getElementById("filter").dispatchEvent(new Event("input"));
  return done;
})()
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=int, default=10)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--probes", type=int, default=len(PROBES), metavar="N", help="the first N")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="Keep probes, results and pages.")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    from tests.chromium import CHROMIUM, NO_CHROMIUM

    with tempfile.TemporaryDirectory() as scratch:
        folder = (options.keep or Path(scratch)).resolve()
        suites = {
            f"{options.probes} probes": (PROBES[: options.probes], LIMIT, (), None),
            f"{options.rows:,} rows": ((LARGE,), 2 * options.rows, PUBLISHED, options.rows),
        }
        found = {}
        for number, (title, (names, limit, further, rows)) in enumerate(suites.items()):
            place = folder / str(number)
            build_probes(place / "probes", names, limit, further)
            questions = make_suite(place / "probes", names, place / "results", options.models, rows)
            made = make_page(place / "results", place / "report.html")
            opened = {}
            if CHROMIUM:
                profiles = Path(scratch) / f"b{number}"
                opened = open_page(place / "report.html", profiles, options.rounds)
            found[title] = {"models": options.models, "questions": questions, **made, **opened}
    if options.json:
        print(json.dumps(found, indent=2))
        return
    for title, numbers in found.items():
        print(f"{title}, {options.models} models:")
        for name, value in numbers.items():
            print(f"  {name:18} {value:,.2f}")
        if not CHROMIUM:
            print(f"  not opened: {NO_CHROMIUM}")
            continue
        met = "met" if numbers["rows_seconds"] < TARGET_SECONDS else "MISSED"
        print(f"  opens in under {TARGET_SECONDS:g} s: {met}")


if __name__ == "__main__":
    main()
