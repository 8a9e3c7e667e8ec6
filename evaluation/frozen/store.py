"""Vectors on disk: computed once for each text and model, and reused by every study.

A folder, named by a hash of all that vectors depend on except the text (weights, tokenizer, dtype,
kind of vector), grows part by part: ``NAME.texts.npy`` holds the hashes of a part's texts and how
many tokens each has, ``NAME.vectors.npy`` their vectors, memory-mapped when read. A part is
written at once, so that a run that was killed resumes after the last one. Vectors are computed
in batches; a different batch changes them only by rounding (about 1e-6 in float32).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evaluation.content import content_hash
from evaluation.frozen.kinds import Text, VectorReader, Vectors
from evaluation.progress import Progress
from evaluation.scorers.batching import BackOff, Rows, cut_batches
from evaluation.workers import Workers
from kb_cache.store import unusable
from kbprobe.arrays import Ints
from kbprobe.errors import KbprobeError
from kbprobe.files import write_file

VECTORS = "vectors"
"""The folder of all vectors, in kbprobe's cache."""

_TEXT = np.dtype([("high", "<u8"), ("low", "<u8"), ("tokens", "<i4")])
_BATCHES_PER_PART = 8
"""Approximate number of batches in a part."""
_CHARACTERS = 4
"""Approximate number of characters per token: parts are cut before texts are tokenized."""


@dataclass(frozen=True)
class Found:
    """The vectors of some texts.

    Attributes:
        vectors: shape [texts, dimensions].
        tokens: of all texts together.
        parameters: the number of parameters of the model that computed them.
    """

    vectors: Vectors
    tokens: int
    parameters: int


class VectorStore:
    """The vectors of one kind and one model."""

    def __init__(self, folder: Path, content: Mapping[str, Any], model: str) -> None:
        """Name the store; nothing is written yet.

        Args:
            folder: the folder of all stores.
            content: all that vectors depend on except the text.
            model: what the user calls the model; kept beside the vectors for people to read.
        """
        self._content, self._model = content, model
        self.folder = folder / content_hash(content)

    def get(
        self,
        texts: Sequence[Text],
        reader: Callable[[], VectorReader],
        batch_tokens: int,
        workers: Workers,
        progress: Progress,
    ) -> Found:
        """Return the vectors of texts, computing those that are not stored yet.

        Args:
            texts: without duplicates.
            reader: gives the reader; called only if a vector is missing.
            batch_tokens: padded tokens in a batch.
            workers: the processes that share the work.
            progress: told of every batch.

        Raises:
            KbprobeError: the model cannot be run, memory is insufficient, or the store cannot be
                written.
        """
        keys = _keys(texts)
        places, held = self._find(keys)
        workers.wait()
        if (places < 0).any():
            self._read(texts, keys, places, reader(), batch_tokens, workers, progress)
            places, held = self._find(keys)
            if (places < 0).any():
                raise KbprobeError(f"{self.folder} lost vectors while they were written: run again")
        return self._gather(places, held)

    def _find(self, keys: npt.NDArray[Any]) -> tuple[Ints, list[tuple[str, npt.NDArray[Any]]]]:
        """Return each text's position in the concatenated parts (-1: absent), and the parts.

        A part that cannot be read is ignored, and its vectors are computed again.
        """
        held = []
        for path in sorted(self.folder.glob("*.texts.npy")):
            try:
                texts = np.load(path)
                vectors = np.load(_vectors(path), mmap_mode="r")
            except (OSError, ValueError):
                continue
            if texts.dtype == _TEXT and len(vectors) == len(texts):
                held.append((path.name, texts))
        if not held:
            return np.full(len(keys), -1, dtype=np.int64), held
        known = np.concatenate([texts for _, texts in held])
        order = np.lexsort((known["low"], known["high"]))
        # Sorted by both halves, and searched by the first: the second is compared.
        at = np.searchsorted(known["high"][order], keys["high"])
        at = order[np.minimum(at, len(known) - 1)]
        same = (known["high"][at] == keys["high"]) & (known["low"][at] == keys["low"])
        return np.where(same, at, -1), held

    def _gather(self, places: Ints, held: list[tuple[str, npt.NDArray[Any]]]) -> Found:
        about = json.loads((self.folder / "about.json").read_text(encoding="utf-8"))
        vectors = np.empty((len(places), about["dimensions"]), dtype=np.float32)
        tokens, start = 0, 0
        for name, texts in held:
            here = (places >= start) & (places < start + len(texts))
            if here.any():
                part = np.load(_vectors(self.folder / name), mmap_mode="r")
                vectors[here] = part[places[here] - start]
                tokens += int(texts["tokens"][places[here] - start].sum())
            start += len(texts)
        return Found(vectors, tokens, about["parameters"])

    def _read(
        self,
        texts: Sequence[Text],
        keys: npt.NDArray[Any],
        places: Ints,
        reader: VectorReader,
        batch_tokens: int,
        workers: Workers,
        progress: Progress,
    ) -> None:
        """Compute the missing vectors, in parts determined by all texts together."""
        size = sum(len(part) for text in texts for part in text) / _CHARACTERS
        parts = max(1, round(size / (_BATCHES_PER_PART * batch_tokens)))
        part_of = keys["low"] % np.uint64(parts)
        missing = places < 0
        todo = np.unique(part_of[missing]).tolist()
        mine = todo[workers.rank :: workers.count]
        total, done = int((missing & np.isin(part_of, mine)).sum()), 0
        back_off = BackOff()
        with workers.together():
            for part in mine:
                rows = np.flatnonzero(missing & (part_of == part))
                encoded = reader.encode([texts[row] for row in rows.tolist()])
                vectors_of = partial(reader.vectors, encoded)
                batches, found = cut_batches(encoded.lengths, batch_tokens), []
                for batch in batches:
                    found.append(back_off.run(vectors_of, encoded.lengths, batch))
                    done += len(batch)
                    progress("reading vectors", done, total)
                vectors = np.concatenate(found)[np.argsort(np.concatenate(batches))]
                if not np.isfinite(vectors).all():
                    raise KbprobeError(
                        "the model's hidden states are not finite: try --dtype float32"
                    )
                self._write(keys[rows], encoded.lengths, vectors, reader.parameters)
        workers.wait()

    def _write(self, keys: npt.NDArray[Any], tokens: Ints, vectors: Rows, parameters: int) -> None:
        texts = keys.copy()
        texts["tokens"] = tokens
        name = hashlib.sha256(keys.tobytes()).hexdigest()[:16]
        try:
            if not (self.folder / "about.json").is_file():
                about = {"dimensions": vectors.shape[1], "parameters": parameters}
                described = {**about, "model": self._model, "content": self._content}
                write_file(self.folder / "about.json", json.dumps(described, indent=2))
            # The texts are written last: they mark a part as complete.
            for what, values in (("vectors", vectors), ("texts", texts)):
                aside = self.folder / f".{name}.{what}.{os.getpid()}.npy"
                np.save(aside, values)
                aside.replace(self.folder / f"{name}.{what}.npy")
        except OSError as error:
            raise unusable(self.folder, error) from error


def _keys(texts: Sequence[Text]) -> npt.NDArray[Any]:
    """Hash texts: an array of :data:`_TEXT`, with no tokens yet."""
    keys = np.zeros(len(texts), dtype=_TEXT)
    digests = b"".join(
        hashlib.blake2b("\0".join(text).encode("utf-8", "surrogatepass"), digest_size=16).digest()
        for text in texts
    )
    halves = np.frombuffer(digests, dtype="<u8").reshape(-1, 2)
    keys["high"], keys["low"] = halves[:, 0], halves[:, 1]
    return keys


def _vectors(texts: Path) -> Path:
    return texts.with_name(texts.name.replace(".texts.npy", ".vectors.npy"))
