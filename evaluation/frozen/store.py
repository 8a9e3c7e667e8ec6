"""Vectors on disk: computed once for each text and model, and reused by every study.

A folder, named by a hash of all that vectors depend on except the text (weights, tokenizer, dtype,
kind of vector), grows part by part: ``NAME.texts.npy`` holds the hashes of a part's texts and how
many tokens each has, ``NAME.vectors.npy`` their vectors, memory-mapped when read. Each part is
written as a whole, so that a run that was killed resumes after the last one; ``NAME.part.json``,
which is written last, has the digest that verifies both when they are first used. Vectors are
computed in batches; a different batch changes them only by rounding (about 1e-6 in float32).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel

from evaluation.content import content_hash
from evaluation.frozen.readers import Text, VectorReader, Vectors
from evaluation.scorers.batching import BackOff, Rows
from evaluation.workers import Workers
from kbprobe.arrays import DAMAGED_ARRAY, Ints
from kbprobe.errors import KbprobeError, UsageError
from kbprobe.files import file_state, regular_path, replacing_file, write_file
from kbprobe.files.cache import unusable
from kbprobe.parsing import read_record
from kbprobe.terminal.progress import Progress

VECTORS = "vectors"
"""The folder of all vectors, in kbprobe's cache."""

_TEXT = np.dtype([("high", "<u8"), ("low", "<u8"), ("tokens", "<i4")])
_BATCHES_PER_PART = 16
"""Approximate number of batches in a part: the more, the less padding, but the more is lost if a
run is killed."""
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


class _StoredPart(BaseModel):
    """The contents of ``NAME.part.json``."""

    parameters: int
    sha256: str


class VectorStore:
    """The vectors of one kind and one model."""

    def __init__(self, folder: Path, content: Mapping[str, Any], model: str) -> None:
        """Set the location of the store; nothing is written yet.

        Args:
            folder: the folder of all stores.
            content: everything that vectors depend on except the text.
            model: the user's name for the model, stored with the vectors for information.
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
        """Return the vectors of distinct texts; those not stored are computed by the reader.

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

        A part that is damaged is ignored, and its vectors are computed again.
        """
        held = []
        for path in sorted(self.folder.glob("*.texts.npy")):
            with suppress(*DAMAGED_ARRAY):
                # Mapped: a damaged header that says terabytes is refused, not allocated.
                texts = np.array(np.load(regular_path(path), mmap_mode="r"))
                if texts.dtype == _TEXT and texts.ndim == 1:
                    held.append((path.name.removesuffix(".texts.npy"), texts))
        while True:
            places = _places(keys, [texts for _, texts in held])
            used = np.unique(np.searchsorted(_ends(held), places[places >= 0], side="right"))
            damaged = {int(at) for at in used if _part(self.folder, held[at][0]) is None}
            if not damaged:
                return places, held
            held = [part for at, part in enumerate(held) if at not in damaged]

    def _gather(self, places: Ints, held: list[tuple[str, npt.NDArray[Any]]]) -> Found:
        gathered = np.empty((len(places), 0), dtype=np.float32)
        tokens, start, parameters = 0, 0, 0
        for name, texts in held:
            here = (places >= start) & (places < start + len(texts))
            if here.any():
                part = _part(self.folder, name)
                if part is None:
                    raise KbprobeError(f"{self.folder / name}: vectors were damaged while in use")
                vectors = np.load(regular_path(_file(self.folder, name, "vectors")), mmap_mode="r")
                if not gathered.shape[1]:
                    gathered = np.empty((len(places), vectors.shape[1]), dtype=np.float32)
                gathered[here] = vectors[places[here] - start]
                tokens += int(texts["tokens"][places[here] - start].sum())
                parameters = part.parameters
            start += len(texts)
        return Found(gathered, tokens, parameters)

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
                found = []
                for own in back_off.batches(vectors_of, encoded.lengths, batch_tokens):
                    found.append(own)
                    done += len(own[0])
                    progress("reading vectors", done, total)
                batches, parts_of = map(np.concatenate, zip(*found, strict=True))
                vectors = parts_of[np.argsort(batches)]
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
                described = {"model": self._model, "content": self._content}
                write_file(self.folder / "about.json", json.dumps(described, indent=2))
            for what, values in (("vectors", vectors), ("texts", texts)):
                target = _file(self.folder, name, what)
                with replacing_file(target, durable=False) as aside, aside.open("wb") as file:
                    np.save(file, values)
            # Written last: it marks a part as complete.
            part = _StoredPart(parameters=parameters, sha256=_digest(parameters, texts, vectors))
            write_file(_record(self.folder, name), part.model_dump_json())
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


def _places(keys: npt.NDArray[Any], parts: Sequence[npt.NDArray[Any]]) -> Ints:
    """Return the positions of keys in concatenated parts; -1: absent."""
    known = np.concatenate([np.empty(0, _TEXT), *parts])
    if not len(known):
        return np.full(len(keys), -1, dtype=np.int64)
    order = np.lexsort((known["low"], known["high"]))
    # Sorted by both halves, and searched by the first: the second is compared.
    at = np.searchsorted(known["high"][order], keys["high"])
    at = order[np.minimum(at, len(known) - 1)]
    same = (known["high"][at] == keys["high"]) & (known["low"][at] == keys["low"])
    return np.where(same, at, -1)


def _ends(held: Sequence[tuple[str, npt.NDArray[Any]]]) -> Ints:
    return np.cumsum([len(texts) for _, texts in held], dtype=np.int64)


def _part(folder: Path, name: str) -> _StoredPart | None:
    """Return the record of a part; None if it is damaged or unfinished."""
    paths = (_file(folder, name, "texts"), _file(folder, name, "vectors"), _record(folder, name))
    try:
        stamps = tuple(file_state(path.stat()) for path in paths)
    except OSError:
        return None
    return _verified(paths, stamps)


@lru_cache(maxsize=4096)
def _verified(
    paths: tuple[Path, Path, Path], _stamps: tuple[tuple[int, ...], ...]
) -> _StoredPart | None:
    """Hash a part, once as long as its files are unchanged: about 1 GB per second."""
    try:
        part = read_record(paths[2], _StoredPart)
        texts, vectors = (np.load(regular_path(path), mmap_mode="r") for path in paths[:2])
    except (*DAMAGED_ARRAY, UsageError):
        return None
    if vectors.ndim != 2 or vectors.dtype.kind != "f" or len(vectors) != len(texts):
        return None
    return part if _digest(part.parameters, texts, vectors) == part.sha256 else None


def _digest(parameters: int, texts: npt.NDArray[Any], vectors: npt.NDArray[Any]) -> str:
    # The same bytes mean different numbers in another type or order.
    kinds = [(values.dtype.str, values.shape) for values in (texts, vectors)]
    digest = hashlib.sha256(f"{parameters} {kinds}".encode())
    for values in (texts, vectors):
        digest.update(np.ascontiguousarray(values).view(np.uint8).data)
    return digest.hexdigest()


def _file(folder: Path, name: str, what: str) -> Path:
    return folder / f"{name}.{what}.npy"


def _record(folder: Path, name: str) -> Path:
    return folder / f"{name}.part.json"
