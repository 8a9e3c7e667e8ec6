"""What a scorer declares; NumPy is not imported here, so that ``evaluate-probe --help`` is fast."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from evaluation.models.capabilities import Capability
from kbprobe.format.setups import LABELLED_SETUPS, SCORED_SETUPS
from kbprobe.options import Options

if TYPE_CHECKING:
    from evaluation.items.types import Item


class ScorerInputs(NamedTuple):
    """The inputs from which a scorer is made.

    Attributes:
        model: the loaded model, in evaluation mode, on its device (``PreTrainedModel``); None if
            the scorer needs no model.
        tokenizer: the model's fast tokenizer; None if there is no model.
        options: the scorer's own options.
        examples: the train split, if the entry requests it; otherwise empty.
        seed: the seed of everything that the scorer draws.
    """

    model: Any
    tokenizer: Any
    options: Any
    examples: Sequence[Item] = ()
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class ScorerEntry:
    """Declares a scorer: what the registry, the command line and the score cache need to know.

    Attributes:
        name: its name in results and on the command line.
        label: its name in messages and in the help of its options: ``masked LM``.
        needs: what a model must be able to do.
        make: makes the :class:`evaluation.scorers.base.Scorer`. Import torch and transformers in
            it, not at the top of the file, so that ``evaluate-probe --help`` stays fast
            (:func:`evaluation.registry.imported`).
        version: increased whenever scores may change; part of the key of cached scores.
        options: the model of its options. A field declared with ``exclude=True`` does not affect
            scores.
        setups: the setups of items that it scores.
        wording: the one of these to which :func:`evaluation.items.wordings.worded` converts rows of
            labels (``acceptability``, ``nli``); if None, it does not score such rows unless they
            are among ``setups``.
        uses_train: whether, with these options, it takes examples from the train split; by default
            those that are given as ``shots``.
        normalization: what log-likelihoods of answers are divided by unless the user says
            otherwise; None: its scores are of another kind, and are never divided.
        content: what else its scores depend on, with these options, such as the digest of word
            vectors: part of their key, and named in results.
    """

    name: str
    label: str
    needs: Capability
    make: Callable[[ScorerInputs], Any]
    version: int = 1
    options: type[Options] = Options
    setups: tuple[str, ...] = SCORED_SETUPS
    wording: str | None = None
    uses_train: Callable[[Any], bool] = lambda options: getattr(options, "shots", 0) > 0
    normalization: Callable[[Any], str | None] = lambda _options: None
    content: Callable[[Any], Mapping[str, str]] = lambda _options: {}

    def takes(self, setup: str) -> bool:
        """Return whether it scores rows of a setup, as they are or reworded."""
        return setup in self.setups or (self.wording is not None and setup in LABELLED_SETUPS)

    def asked(self, items: Sequence[Item]) -> Sequence[Item]:
        """Return items in the form that it scores: rows of labels may be reworded."""
        from evaluation.items.types import setups_of
        from evaluation.items.wordings import worded

        if self.wording is None or setups_of(items) <= set(self.setups):
            return items
        return worded(items, self.wording)
