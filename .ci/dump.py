"""Write the bytes of all builds and the numbers of all studies, to compare two states of the code.

    python .ci/dump.py before --conceptnet english-sample --dump sample
    python .ci/dump.py after --conceptnet english-sample --dump sample
    diff -r before after

With names of studies, only these are run, and nothing else is built.

``builds.txt`` has the SHA-256 of every data file of all default builds and of kbprobe-1. There is a
file for each study: its numbers and names, a line each, without what differs from run to run
(times, paths, versions, keys of the score cache). The studies run on small probes and tiny models
with seeded random weights: their numbers mean nothing, except that a redesign must not change them.
ConceptNet and Wikidata are named by their snapshots (``kb-cache list``); without them, and without
the package that brings GCIDE, the probes that need them are left out, which is said.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / ".ci" / "site")]

import gallery  # noqa: E402

from builders.engine.registry import PROBES  # noqa: E402

VOLATILE = {
    "created", "date", "device_name", "environment", "folder", "key", "kbprobe_version", "path",
    "python", "seconds", "source", "timings", "versions",
}  # fmt: skip
"""Fields that differ between runs, or between versions of the code, with the same numbers."""

PROBES_OF_STUDIES = {
    "clozes": ("age_comparison", "--limit", "600"),
    "acceptability": ("fw_wh_words", "--limit", "200"),
    "questions": ("wordnet_hypernymy", "--limit", "4000"),
    "inverse": ("wordnet_hyponymy", "--limit", "4000"),
}
STUDIES: dict[str, tuple[str, ...]] = {
    "zero_shot": ("clozes", "questions", "-m", "causal", "-m", "masked", "--limit", "60"),
    "letters": ("questions", "-m", "causal", "--letters", "--limit", "20"),
    "pmi": ("questions", "-m", "causal", "--scorer", "pmi", "--limit", "20"),
    "train": ("clozes", "-m", "masked", "--train", "32", "--epochs", "1", "--limit", "40"),
    "compare": (
        *("compare", "clozes", "-m", "causal", "-m", "masked", "-m", "trained/checkpoint-1"),
        *("--limit", "60"),
    ),
    "controls": ("compare", "clozes", "-m", "masked", "--controls", "no_language", "--limit", "60"),
    "scorecard": ("scorecard", "suite", "-m", "none", "--scorer", "random", "--limit", "40"),
    "baselines": (
        *("baselines", "questions", "--baselines", "random,majority", "--seeds", "2"),
        *("--limit", "200"),
    ),
    "consistency": (
        *("consistency", "questions", "inverse", "-m", "none", "--scorer", "random"),
        *("--split", "all"),
    ),
    "curve": ("curve", "clozes", "-m", "masked", "--sizes", "62,125", "--seeds", "2", "--controls"),
    "crossval": (
        *("crossval", "acceptability", "--split", "all", "-m", "masked", "--random-init", "1"),
    ),
    "transfer": (
        *("transfer", "questions", "inverse", "-m", "choices", "--train", "16"),
        *("--epochs", "1", "--seeds", "2", "--limit", "40"),
    ),
    "inoculate": (
        *("inoculate", "inverse", "-m", "choices", "--original", "questions", "--sizes", "16"),
        *("--learning-rates", "1e-5", "--epoch-counts", "1", "--seeds", "2"),
    ),
    "orders": ("orders", "questions", "-m", "causal", "--orders", "4", "--limit", "12"),
    "prompts": ("prompts", "questions", "-m", "causal", "--limit", "20", "--shots", "1",
                "--shots-seeds", "0,1"),
    "revisions": ("revisions", "clozes", "-m", "trained", "--revisions", "checkpoint-*",
                  "--limit", "40"),
}  # fmt: skip
OF_RESULTS: dict[str, tuple[str, ...]] = {
    "items": ("items", "compare/clozes"),
    "power": ("power", "compare/clozes/causal", "compare/clozes/masked"),
}
"""Studies of the results of others."""


def main() -> None:
    """Build, evaluate and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", type=Path)
    parser.add_argument("studies", nargs="*", choices=[*STUDIES, *OF_RESULTS, []], metavar="STUDY")
    parser.add_argument("--conceptnet", help="snapshot of ConceptNet")
    parser.add_argument("--dump", help="snapshot of Wikidata")
    given = vars(parser.parse_args())
    output: Path = given.pop("output").resolve()
    output.mkdir(parents=True)
    studies = given.pop("studies")
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        if not studies:
            lines = [*_builds({key: value for key, value in given.items() if value})]
            (output / "builds.txt").write_text("\n".join(sorted(lines)) + "\n", "utf-8")
        elif "scorecard" in studies:
            _run("builders.cli", "--suite", "kbprobe-1", "-o", "suite")
        for name, (probe, *options) in PROBES_OF_STUDIES.items():
            _run("builders.cli", probe, *options, "-o", name)
        write_models(Path())
        for name, arguments in (STUDIES | OF_RESULTS).items():
            if studies and name not in studies:
                continue
            where = () if name in OF_RESULTS else ("--device", "cpu")
            _run("evaluation.cli", *arguments, *where, "-o", name)
            numbers = [*_numbers_of_folder(Path(name))]
            (output / f"{name}.txt").write_text("\n".join(numbers) + "\n", "utf-8")


def _builds(samples: Mapping[str, str]) -> Iterator[str]:
    """Build all probes and kbprobe-1; yield a line for each data file."""
    for name in PROBES:
        options = gallery.sources(name, {"conceptnet": "", "dump": ""} | samples)
        if "" in options.values():
            print(f"{name} is left out: it needs a snapshot", file=sys.stderr)
            continue
        flags = [part for key, value in options.items() for part in (f"--{key}", value)]
        _run("builders.cli", name, *flags, "-o", f"builds/{name}")
        yield from _digests(Path("builds", name))
    _run("builders.cli", "--suite", "kbprobe-1", "-o", "suite")
    yield from _digests(Path("suite"))


def _digests(folder: Path) -> Iterator[str]:
    for path in sorted(folder.rglob("*.parquet")):
        with path.open("rb") as file:
            yield f"{path.as_posix()} {file_digest(file, 'sha256').hexdigest()}"


def _numbers_of_folder(folder: Path) -> Iterator[str]:
    """Yield the numbers of a folder's JSON files, and a digest of each column of predictions."""
    import pyarrow.parquet as pq

    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.suffix == ".json":
            yield from _numbers(json.loads(path.read_text("utf-8")), name)
        elif path.name == "predictions.parquet":
            for column in (table := pq.read_table(path)).column_names:
                values = list(_numbers(table[column].to_pylist(), column))
                yield f"{name}.{column} {sha256(chr(10).join(values).encode()).hexdigest()}"


def _numbers(value: Any, name: str) -> Iterator[str]:
    if isinstance(value, dict):
        for key in sorted(value.keys() - VOLATILE):
            if not key.endswith(("sha256", "seconds")):
                yield from _numbers(value[key], f"{name}.{key}")
    elif isinstance(value, list):
        for number, part in enumerate(value):
            yield from _numbers(part, f"{name}.{number}")
    elif isinstance(value, float):
        yield f"{name} {value:.6g}"
    else:
        yield f"{name} {value!r}"


def _run(module: str, *arguments: str) -> None:
    """Run a command of this checkout; end with what it printed if it fails."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONSAFEPATH": "1"}
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")


def write_models(folder: Path) -> None:
    """Write tiny models of three task types that read bytes, and checkpoints of one."""
    import torch
    import transformers as t
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    specials = ["<pad>", "<s>", "</s>", "<mask>"]
    byte = Tokenizer(models.BPE({c: n for n, c in enumerate(specials + letters)}, []))
    byte.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    byte.decoder = decoders.ByteLevel()
    names = dict(
        zip(("pad_token", "bos_token", "eos_token", "mask_token"), specials, strict=True),
        cls_token="<s>",
        sep_token="</s>",
    )
    causal = t.PreTrainedTokenizerFast(tokenizer_object=byte, **names)
    bert = Tokenizer.from_str(byte.to_str())
    bert.post_processor = processors.BertProcessing(("</s>", 2), ("<s>", 1))
    masked = t.PreTrainedTokenizerFast(tokenizer_object=bert, **names)
    size = {"vocab_size": 4 + len(letters), "pad_token_id": 0}
    small = {
        "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
        "intermediate_size": 32, "max_position_embeddings": 1024,
    }  # fmt: skip
    gpt = t.GPT2Config(n_layer=2, n_head=2, n_embd=16, n_positions=1024, **size)
    architectures = {
        "causal": (t.GPT2LMHeadModel, gpt, causal),
        "masked": (t.BertForMaskedLM, t.BertConfig(**small, **size), masked),
        "choices": (t.BertForMultipleChoice, t.BertConfig(**small, **size), masked),
    }
    for seed, (name, (kind, config, tokenizer)) in enumerate(architectures.items()):
        for path in {"masked": (name, "trained/checkpoint-1", "trained/checkpoint-2")}.get(
            name, (name,)
        ):
            torch.manual_seed(seed + len(path))
            kind(config).save_pretrained(folder / path)
            tokenizer.save_pretrained(folder / path)


if __name__ == "__main__":
    main()
