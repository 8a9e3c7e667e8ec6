"""Scores choices with an encoder-decoder model: the question is read, the choice is written.

Questions are scored as in lm-evaluation-harness: the log-likelihood of the choice's tokens in the
decoder, without the end of the sequence. Clozes are asked as in the model's denoising pretraining
(:mod:`evaluation.scorers.seq2seq.scorer`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from evaluation.items.types import Item, choice_starts
from evaluation.models.capabilities import is_encoder_decoder
from evaluation.models.loading import padding_token, refuse_unembedded
from evaluation.scorers.base import ScorerInputs, aside
from evaluation.scorers.causal.prompted import PromptedScorer, longest_text
from evaluation.scorers.causal.prompts import Prompt
from evaluation.scorers.causal.scorer import CausalScorer
from evaluation.scorers.masked.pieces import Filled, Gap, Placer, unreadable
from evaluation.scorers.readable import unknown_candidate
from evaluation.scorers.seq2seq.forward import Seq2SeqRunner, supports_reuse
from evaluation.scorers.seq2seq.layout import (
    AskedSources,
    Ids,
    Seq2SeqEncoded,
    SourceTokenizer,
    TargetTokenizer,
    lay_out,
)
from kbprobe.arrays import Floats, Ints
from kbprobe.errors import UsageError
from kbprobe.format.setups import CLOZE, MASK

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

_SENTINELS = ("▁<extra_id_{}>", "<extra_id_{}>")
"""mT5's sentinels, which include a space mark; its tokenizer may add untrained ones."""


@dataclass(frozen=True)
class GapFormat:
    """How a model was pretrained to fill gaps: as T5 with sentinels, or as BART with a mask.

    T5 reads "A <extra_id_0> can fly." and writes "<extra_id_0> robin <extra_id_1>". The sentinel
    after the candidate is scored: it says that nothing more is missing.

    BART reads "A <mask> can fly." and writes "A robin can fly.". What stands before the gap is
    given, since all candidates share it; the candidate and the rest of the text with its end are
    scored.

    Attributes:
        start: the tokens that the decoder starts from.
        gap: the token in the candidate's place: the first sentinel, or the mask.
        end: the second sentinel; None: the whole text is written.
    """

    start: Ids
    gap: int
    end: int | None

    def write(self, filled: Filled) -> tuple[Ids, Ids, Ids]:
        """Return what the encoder reads, what the decoder is given, and what is scored after it."""
        source = (*filled.left, self.gap, *filled.right)
        if self.end is None:
            return source, (*self.start, *filled.left), (*filled.pieces, *filled.right)
        return source, (*self.start, self.gap), (*filled.pieces, self.end)


def gap_format(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, start: Ids
) -> GapFormat | str:
    """Return how a model was pretrained to fill gaps, or why that is not known."""
    vocabulary: dict[str, int] = tokenizer.get_vocab()
    embeddings: Any = model.get_input_embeddings()
    known = len(embeddings.weight)
    for written in _SENTINELS:
        first, second = (vocabulary.get(written.format(number), known) for number in (0, 1))
        if max(first, second) < known:
            return GapFormat(start, first, second)
    if model.config.model_type == "bart" and tokenizer.mask_token_id is not None:
        return GapFormat(start[:1], tokenizer.mask_token_id, None)
    return (
        f"the tokenizer of {tokenizer.name_or_path!r} has no sentinels (<extra_id_0>, "
        f"<extra_id_1>) as T5's, and a model of type {model.config.model_type} is not known to be "
        "pretrained on a mask as BART is"
    )


_ENCODER_LENGTHS = ("n_positions", "max_encoder_position_embeddings", "max_position_embeddings")
_DECODER_LENGTHS = ("n_positions", "max_decoder_position_embeddings", "max_position_embeddings")
_TRIAL = {
    "The capital of a country is the city where its government meets, and so": (
        "a city by the sea is the capital of a country whose government meets by the sea",
        "many people of the country know its name",
        "many people",
        "it is",
    ),
    "A dog is": ("an animal", "a city by the river"),
}
"""Texts and targets that are scored to find out what a model can do."""


_Numbered = tuple[int, Item, int]
"""An item with its number, and the number of its first choice."""

_Found = tuple[list[AskedSources], dict[int, str]]
"""The texts and targets of some items; and for some choices, why items are set aside."""


class Seq2SeqScorer(PromptedScorer):
    """Scores choices with an encoder-decoder language model.

    A choice's score is the log-likelihood of what the decoder writes for it (nats, summed over its
    tokens), or the mean of it over the rotations of a lettered prompt.

    All items that ask the same question share the encoder's pass over it. A model's limitations are
    found by testing it once on fixed texts: one that caches no states of the decoder, or whose
    scores change with padding, reads the question again for each choice.

    A question that is too long loses its beginning, and its item is counted in the notes as
    ``truncated``; questions that have to be read again for each choice are counted as
    ``unpacked``. An item is set aside if a choice leaves no token to score or is longer than the
    model writes, if a cloze is longer than it reads, and for the reasons of
    :mod:`evaluation.scorers.readable`. No such item is an example in a prompt.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        prompt: Prompt | None = None,
        pack: bool = True,
        score_end: bool = False,
    ) -> None:
        """Set the loaded model, on its device and in any dtype, and its tokenizer.

        Args:
            model: from ``AutoModelForSeq2SeqLM``; it is put into evaluation mode.
            tokenizer: the checkpoint's.
            prompt: how items are put to the model; by default, the question as it is.
            pack: read a question once for all its choices, if the model allows it.
            score_end: score the tokens that the tokenizer puts after a written text, too. After
                the candidate of a cloze, what ends it is scored anyway.

        Raises:
            UsageError: a chat was asked for and the tokenizer has no chat template; the model has
                no language-model head; or it is not known what its decoder starts from.
            KbprobeError: its scores are not finite.
        """
        super().__init__(tokenizer, prompt)
        self._model = model.eval()
        if model.get_output_embeddings() is None:
            raise UsageError(
                f"{type(model).__name__} has no language-model head: load the checkpoint with "
                "AutoModelForSeq2SeqLM"
            )
        config = model.config
        reads, writes = (
            longest_text(getattr(config, part, config), tokenizer, names, network)
            for part, names, network in (
                ("encoder", _ENCODER_LENGTHS, model.get_encoder()),
                ("decoder", _DECODER_LENGTHS, model.get_decoder()),
            )
        )
        self._longest_source, self._longest_target = reads, writes
        self._sources = SourceTokenizer(tokenizer, reads)
        self._targets = TargetTokenizer(model, tokenizer)
        self._end: Ids = self._targets.end if score_end else ()
        self._gaps = gap_format(model, tokenizer, self._targets.start)
        self._placer: Placer | None = None
        # Masked in the encoder, and after everything that counts in the decoder.
        self._runner = Seq2SeqRunner(model, padding_token(model, tokenizer), reuses=False)
        self._supports_reuse = supports_reuse(self._runner, self._trial())
        self._runner.reuses = pack and self._supports_reuse

    @property
    def packs(self) -> bool:
        """Whether questions are read once for all their choices."""
        return self._runner.reuses

    def encode(self, items: Sequence[Item]) -> Seq2SeqEncoded:
        """Tokenize all items; see :class:`Seq2SeqScorer` for what is set aside or cut.

        Raises:
            UsageError: the prompt cannot hold an item, or it is a cloze and the model is not known
                to fill gaps.
        """
        starts = choice_starts(items)
        item_of = np.repeat(np.arange(len(items)), np.diff(starts)).tolist()
        numbered = list(zip(range(len(items)), items, starts[:-1].tolist(), strict=True))
        asked, reasons = self._questions([one for one in numbered if not self._is_gap(one[1])])
        clozes, further = self._clozes([one for one in numbered if self._is_gap(one[1])])
        set_aside = self._set_aside(items, item_of, {**reasons, **further})
        kept: list[AskedSources] = []
        choice_tokens = np.zeros(int(starts[-1]))
        truncated: set[int] = set()
        unpacked = 0
        for one in asked + clozes:
            targets = {
                target: scored
                for target, choices in one.targets.items()
                if (scored := [choice for choice in choices if item_of[choice] not in set_aside])
            }
            if not targets:
                continue
            kept.append(one._replace(targets=targets))
            for target, choices in targets.items():
                choice_tokens[choices] += one.weight * len(target)
                if one.cut:
                    truncated.update(item_of[choice] for choice in choices)
            unpacked += not self._supports_reuse and len(targets) > 1
        counts = {"truncated": len(truncated), "unpacked": unpacked}
        notes = {note: count for note, count in counts.items() if count}
        encoded = lay_out(kept, np.rint(choice_tokens).astype(np.int64), set_aside, notes)
        self._refuse_unembedded(encoded)
        return encoded

    def score(self, encoded: Seq2SeqEncoded, sequences: Ints) -> Floats:
        """Run some sequences as one batch; see :meth:`Scorer.score`."""
        return self._runner.score(encoded, sequences)

    def _is_gap(self, item: Item) -> bool:
        return item.setup == CLOZE and not self.prompt.options.letters

    def _questions(self, numbered: Sequence[_Numbered]) -> _Found:
        """Ask for the choices of questions, whose contexts the encoder reads."""
        contexts = self._contexts(numbered)
        sources = self._sources(one.context for one in contexts)
        targets = self._targets(text for one in contexts for text in one.choices)
        asked: list[AskedSources] = []
        reasons: dict[int, str] = {}
        for one in contexts:
            wanted: dict[Ids, list[int]] = {}
            for text, choices in one.choices.items():
                tokens = (*targets[text], *self._end) if targets[text] else ()
                wanted.setdefault(tokens, []).extend(choices)
                reason = unknown_candidate(text.strip(), tokens, self._unknown)
                if not tokens:
                    reason = aside("a choice of which the tokenizer leaves nothing", repr(text))
                if reason := self._too_long(self._targets.start, tokens) or reason:
                    reasons |= dict.fromkeys(choices, reason)
            source, cut = sources[one.context]
            asked.append(
                AskedSources(one.item, source, self._targets.start, wanted, one.weight, cut)
            )
        return asked, reasons

    def _clozes(self, numbered: Sequence[_Numbered]) -> _Found:
        """Ask for the candidates of clozes, as the model was pretrained to fill gaps."""
        if not numbered:
            return [], {}
        rendered = [
            (number, first, item, Gap(one.context, item.question.partition(MASK)[2]), weight)
            for number, item, first in numbered
            for one, weight in self.render(item)
        ]
        form = self._format_of(numbered[0][1])
        if self._placer is None:
            self._placer = Placer(self._tokenizer, "an encoder-decoder model that fills gaps")
        placed = self._placer.place(
            [gap for *_, gap, _ in rendered], [item.choices for _, _, item, _, _ in rendered]
        )
        asked: dict[tuple[str, Gap, Ids, Ids], AskedSources] = {}
        reasons: dict[int, str] = {}
        for (number, first, item, gap, weight), found in zip(rendered, placed, strict=True):
            for choice, (text, filled) in enumerate(zip(item.choices, found, strict=True), first):
                source, given, target = form.write(filled)
                reason = unreadable(text, filled.pieces, self._unknown)
                reason = reason or self._too_long(given, target)
                if len(source) > self._longest_source:
                    reason = aside(
                        "a cloze longer than the model reads",
                        f"{len(source):,} of at most {self._longest_source:,} tokens",
                    )
                if reason is not None:
                    reasons[choice] = reason
                # Texts of different questions are kept apart; a sequence serves one question.
                one = asked.setdefault(
                    (item.question, gap, source, given),
                    AskedSources(number, source, given, {}, weight),
                )
                one.targets.setdefault(target, []).append(choice)
        return list(asked.values()), reasons

    def _format_of(self, item: Item) -> GapFormat:
        if isinstance(self._gaps, str):
            raise UsageError(
                f"item {item.id} is a cloze, and {self._gaps}: nothing says how to ask it for a "
                "word in a gap. Add --letters, or name another --config or --model."
            )
        return self._gaps

    def _too_long(self, given: Ids, target: Ids) -> str | None:
        # The last token is predicted and never read.
        length = len(given) + len(target) - 1
        if length <= self._longest_target:
            return None
        return aside(
            "a choice longer than the model writes",
            f"{length:,} of at most {self._longest_target:,} tokens",
        )

    def _refuse_unembedded(self, encoded: Seq2SeqEncoded) -> None:
        """Refuse tokens without embeddings: all that the decoder reads it may also write."""
        written = [encoded.given, encoded.row_tokens, encoded.cell_target]
        refuse_unembedded(self._model, self._tokenizer, [encoded.tokens], written)

    def _trial(self) -> list[AskedSources]:
        sources = self._sources(_TRIAL)
        targets = self._targets(text for texts in _TRIAL.values() for text in texts)
        asked: list[AskedSources] = []
        number = 0
        for context, texts in _TRIAL.items():
            one = AskedSources(0, sources[context].tokens, self._targets.start, {}, 1.0)
            for text in texts:
                room = self._longest_target - len(one.given) + 1
                one.targets.setdefault(targets[text][:room], []).append(number)
                number += 1
            asked.append(one)
        self._refuse_unembedded(lay_out(asked, np.zeros(number, dtype=np.int64), {}, {}))
        return asked


def likelihood_scorer(inputs: ScorerInputs) -> PromptedScorer:
    """Make the log-likelihood scorer of a causal LM, or of an encoder-decoder model."""
    kind = Seq2SeqScorer if is_encoder_decoder(inputs.model.config) else CausalScorer
    return kind.from_inputs(inputs)
