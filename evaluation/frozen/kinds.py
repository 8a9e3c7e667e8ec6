"""Kinds of vectors: the texts of an item, and the vector of a model that represents each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evaluation.items.types import Item
from evaluation.models.capabilities import Capability
from kbprobe.arrays import Ints

Text = tuple[str, ...]
"""What is read as one sequence: a question, or a question and a choice; hashed as is."""

Vectors = npt.NDArray[np.float32]
"""Shape [texts, dimensions]."""


class VectorReader(ABC):
    """Computes the vectors of texts with one loaded model.

    Attributes:
        parameters: the number of the model's parameters.
    """

    parameters: int

    def set_aside(self, items: Sequence[Item]) -> Mapping[int, str]:
        """Return the items that are too long for this kind of vector, and why; others are cut."""
        return {}

    @abstractmethod
    def encode(self, texts: Sequence[Text]) -> Any:
        """Tokenize texts; what is returned has ``lengths``, shape [texts]."""

    @abstractmethod
    def vectors(self, encoded: Any, sequences: Ints) -> Vectors:
        """Return the vectors of some texts, run as one batch, shape [n, dimensions]."""


@dataclass(frozen=True)
class VectorKind:
    """Declares a kind of vectors.

    Attributes:
        name: part of the key of stored vectors.
        version: incremented whenever vectors may change; part of the key.
        needs: what a model must be able to do.
        texts: the texts of one item: one, or one for each of its choices.
        reader: makes a reader from a loaded model and its tokenizer.
    """

    name: str
    version: int
    needs: Capability
    texts: Callable[[Item], list[Text]]
    reader: Callable[[Any, Any], VectorReader]
