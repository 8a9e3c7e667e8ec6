"""What learners of heads on fixed vectors differ in: their vectors and their modules.

MLM-Baseline of oLMpics is an untrained masked-LM head on the word vectors of a cloze's first words.
The vectors of the first 20 tokens are concatenated and padded with zeros; a token without a
vector, such as the mask, is all zeros. It knows only words and their positions.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np
import torch
from torch import nn

from evaluation.frozen.heads import CandidateHead, FreshBody, LabelHead, ModelBody, UnitHead
from evaluation.frozen.readers import (
    AnswerReader,
    LastReader,
    MaskReader,
    MaxReader,
    PairReader,
    Text,
    VectorReader,
    answer_prompt,
)
from evaluation.frozen.store import VECTORS, VectorStore
from evaluation.frozen.training import FeatureRows, HeadCost, HeadPlan, RowTable, fit_side_by_side
from evaluation.items.types import Item
from evaluation.learners.base import HeadTraining
from evaluation.models.capabilities import Capability, head_that_gives
from evaluation.models.loading import load_tokenizer, refuse_unembedded
from evaluation.results.metrics import Scores
from evaluation.scorers.causal.layout import PairTokenizer
from evaluation.scorers.causal.prompts import Rendered
from evaluation.scorers.masked.pieces import Placer, unreadable
from evaluation.scorers.masked.scorer import gap_of_item
from evaluation.scorers.readable import SpecialTexts, unknown_token, unreadable_items
from evaluation.vectors.options import word_vectors
from kb_cache.vectors.texts import tokenize
from kb_cache.vectors.types import WordVectors
from kbprobe.arrays import Ints
from kbprobe.errors import UsageError
from kbprobe.format.setups import SETUPS

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

_AT_ONCE = 4096
_TOKENS_AROUND = 16
"""Upper bound on the special tokens that tokenizers add to a pair, and on unused positions."""


def row_table(
    items: Sequence[Item], vectors: Ints, candidates: Ints, device: torch.device
) -> RowTable:
    """Return rows as heads read them; the arrays are those of :class:`RowTable`."""
    answers = np.array([item.answer for item in items], dtype=np.int64)
    parts = (torch.from_numpy(part).to(device) for part in (vectors, candidates, answers))
    return RowTable(*parts)


Pieces = tuple[int, ...]
"""The token ids of a candidate in its context."""


class CandidateHeads(HeadPlan):
    """Heads with the candidates' output embeddings, and a body that the vectors pass first."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}

    @abstractmethod
    def start(self, seed: int) -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
        """Return the initial weights of a head.

        Returns:
            Its own body; output embeddings, shape [candidates, dimensions]; and biases.
        """

    def numbered(self, choices: Sequence[Sequence[Hashable]]) -> Ints:
        """Number the candidates of rows, shape [rows, most choices]; -1 if there is none."""
        width = max(map(len, choices), default=0)
        table = np.full((len(choices), width), -1, dtype=np.int64)
        for row, candidates in enumerate(choices):
            for at, candidate in enumerate(candidates):
                table[row, at] = self._numbers.setdefault(candidate, len(self._numbers))
        return table

    def candidates(self) -> list[Hashable]:
        """Return the distinct candidates of all rows, in the order of their numbers."""
        return list(self._numbers)

    def modules(
        self, fitted: Sequence[RowTable], seeds: Sequence[int]
    ) -> list[tuple[nn.Module, RowTable]]:
        """Make heads over the candidates that occur in the rows; others stay as they are."""
        shown = [_shown(rows) for rows in fitted]
        most = max(map(len, shown))
        made: list[tuple[nn.Module, RowTable]] = []
        for rows, own, seed in zip(fitted, shown, seeds, strict=True):
            body, all_weights, all_biases = self.start(seed)
            weight = all_weights.new_zeros(most, all_weights.shape[1])
            bias = all_biases.new_zeros(most)
            weight[: len(own)], bias[: len(own)] = all_weights[own], all_biases[own]
            local = torch.searchsorted(own, rows.candidates.clamp(min=0))
            local = torch.where(rows.candidates < 0, -1, local)
            head = CandidateHead(body, weight, bias)
            made.append((head, RowTable(rows.vectors, local, rows.answers)))
        return made

    def whole(
        self, parameters: dict[str, torch.Tensor], rows: RowTable, seed: int
    ) -> dict[str, torch.Tensor]:
        """Insert the fitted candidates' output embeddings into those of all candidates."""
        own = _shown(rows)
        _, weight, bias = self.start(seed)
        weight, bias = weight.clone(), bias.clone()
        weight[own], bias[own] = parameters["weight"][: len(own)], parameters["bias"][: len(own)]
        return {**parameters, "weight": weight, "bias": bias}


def _shown(rows: RowTable) -> torch.Tensor:
    shown: torch.Tensor = torch.unique(rows.candidates[rows.candidates >= 0])
    return shown


def output_vectors(
    model: PreTrainedModel, candidates: Sequence[Pieces]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a model's output embeddings and biases for candidates, in float32 on the CPU.

    A candidate of several tokens has the mean of its tokens' embeddings.

    Returns:
        Shapes [candidates, dimensions] and [candidates].
    """
    decoder = model.get_output_embeddings()
    flat = torch.tensor([piece for pieces in candidates for piece in pieces])
    counts = torch.tensor([len(pieces) for pieces in candidates])
    owner = torch.repeat_interleave(torch.arange(len(counts)), counts)
    with torch.no_grad():
        rows = decoder.weight[flat.to(decoder.weight.device)].float().cpu()
        weight = torch.zeros(len(counts), rows.shape[1]).index_add_(0, owner, rows)
        bias = torch.zeros(len(counts))
        if decoder.bias is not None:
            own = decoder.bias[flat.to(decoder.bias.device)].float().cpu()
            bias.index_add_(0, owner, own)
    return weight / counts.unsqueeze(1), bias / counts


def pieces_of(
    items: Sequence[Item], tokenizer: PreTrainedTokenizerBase, capabilities: Capability
) -> tuple[list[list[Pieces]], dict[int, str]]:
    """Tokenize the choices of clozes in context, or after the prompt of a causal LM.

    Returns:
        For each item the tokens of its choices; and the items that cannot be scored, with reasons.
    """
    if Capability.MASKED_SCORES in capabilities:
        placed = Placer(tokenizer).place(
            [gap_of_item(item) for item in items], [item.choices for item in items]
        )
        found = [[tuple(filled.pieces) for filled in row] for row in placed]
    else:
        prompts = [
            Rendered(answer_prompt(item.question), tuple(f" {choice}" for choice in item.choices))
            for item in items
        ]
        pairs = PairTokenizer(tokenizer).encode(prompts)
        found = [[tuple(tokens) for tokens in pair.continuations] for pair in pairs]
    unknown, reasons = unknown_token(tokenizer), SpecialTexts(tokenizer).obstacles(items)
    for row, choices in enumerate(found):
        for text, pieces in zip(items[row].choices, choices, strict=True):
            if reason := unreadable(text, pieces, unknown):
                reasons.setdefault(row, reason)
    return found, reasons


class ModelPlan(HeadPlan):
    """A plan whose vectors are computed by a model, once for each text."""

    def __init__(self, training: HeadTraining, kind: type[VectorReader]) -> None:
        """Set the kind of vectors; the model is loaded only when needed."""
        self._training, self._kind = training, kind

    def _load(self) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
        return self._training.model.load(head_that_gives(self._kind.needs))

    def set_aside(self, items: Sequence[Item]) -> Mapping[int, str]:
        """Return the rows that the model does not read as they are; its weights stay unloaded."""
        return unreadable_items(items, load_tokenizer(self._training.model.checkpoint))

    def _reader(self) -> VectorReader:
        return self._kind(*self._load())

    def read(self, splits: Sequence[tuple[Sequence[Item], Ints]]) -> list[FeatureRows]:
        """Read the vectors of some rows of each split; see :meth:`HeadPlan.read`."""
        numbers: dict[Text, int] = {}
        places = [self._places(items, rows, numbers) for items, rows in splits]
        model = self._training.model
        checkpoint = model.checkpoint
        content = {
            "kind": {"name": self._kind.name, "version": self._kind.version},
            "weights": checkpoint.weights_sha256,
            "tokenizer": checkpoint.tokenizer_sha256,
            "model_args": dict(checkpoint.loading),
            "dtype": model.dtype_name,
            "device": model.device.type,
        }
        store = VectorStore(self._training.folder / VECTORS, content, checkpoint.id)
        found = store.get(
            list(numbers),
            self._reader,
            model.batch_tokens,
            self._training.workers,
            self._training.progress,
        )
        self.cost = HeadCost(len(numbers), found.tokens, found.parameters)
        self.vectors = self._ready(torch.from_numpy(found.vectors).to(model.device))
        return [self._rows(items, place) for (items, _), place in zip(splits, places, strict=True)]

    def _places(self, items: Sequence[Item], rows: Ints, numbers: dict[Text, int]) -> Ints:
        """Number the texts of some rows, shape [items, texts of a row]; 0 for the others."""
        texts = {row: self._kind.texts(items[row]) for row in rows.tolist()}
        width = max(map(len, texts.values()), default=1)
        places = np.zeros((len(items), width), dtype=np.int64)
        for row, own in texts.items():
            places[row, : len(own)] = [numbers.setdefault(text, len(numbers)) for text in own]
        return places

    def _ready(self, vectors: torch.Tensor) -> torch.Tensor:
        """Return the vectors as the heads read them."""
        return vectors

    def _rows(self, items: Sequence[Item], places: Ints) -> FeatureRows:
        raise NotImplementedError


class CandidatePlan(ModelPlan, CandidateHeads):
    """Heads that start from the model's own output embeddings."""

    def __init__(
        self,
        training: HeadTraining,
        kind: type[VectorReader],
        body: Callable[[PreTrainedModel], nn.Module] | None = None,
        trained: bool = False,
    ) -> None:
        """Set the layers between the vectors and the output embeddings.

        Args:
            training: what is to be fitted.
            kind: one vector per row.
            body: makes these layers from the model; None: there are none.
            trained: whether these layers are trained as well.
        """
        ModelPlan.__init__(self, training, kind)
        CandidateHeads.__init__(self)
        self._make_body, self._trained = body, trained
        self._body: nn.Module = nn.Identity()
        self._pieces: dict[int, list[list[Pieces]]] = {}

    def set_aside(self, items: Sequence[Item]) -> Mapping[int, str]:
        """Return the rows with a candidate that the tokenizer cannot represent, and why."""
        model, tokenizer = self._load()
        self._pieces[id(items)], reasons = pieces_of(items, tokenizer, self._kind.needs)
        pieces = [own for row in self._pieces[id(items)] for own in row]
        refuse_unembedded(model, tokenizer, (), pieces)
        return reasons

    def read(self, splits: Sequence[tuple[Sequence[Item], Ints]]) -> list[FeatureRows]:
        """Read vectors, and the output embeddings that the candidates start from."""
        model, _ = self._load()
        if self._make_body is not None:
            self._body = self._make_body(model)
        rows = super().read(splits)
        weight, bias = output_vectors(model, cast(list[Pieces], self.candidates()))
        device = self.vectors.device
        self._output_vectors = weight.to(device), bias.to(device)
        return rows

    def start(self, seed: int) -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
        """Return the model's own weights; see :meth:`CandidateHeads.start`."""
        body = copy.deepcopy(self._body) if self._trained else nn.Identity()
        return body, *self._output_vectors

    def _ready(self, vectors: torch.Tensor) -> torch.Tensor:
        if self._trained:
            return vectors
        with torch.inference_mode():
            parts = [self._body(part) for part in vectors.split(_AT_ONCE)]
        return torch.cat(parts).clone()

    def _rows(self, items: Sequence[Item], places: Ints) -> FeatureRows:
        pieces = self._pieces[id(items)]
        counts = [len(choice) for row in pieces for choice in row]
        several = sum(any(len(choice) > 1 for choice in row) for row in pieces)
        table = row_table(items, places, self.numbered(pieces), self.vectors.device)
        return FeatureRows(table, np.array(counts, dtype=np.int64), {"several_pieces": several})


class UnitPlan(ModelPlan):
    """Heads of one linear layer on the vector of each question-choice pair."""

    def set_aside(self, items: Sequence[Item]) -> Mapping[int, str]:
        """Return the rows that the model does not read, those with too long a choice included.

        The model is loaded only if there are choices that may be too long.
        """
        checkpoint = self._training.model.checkpoint
        limit = load_tokenizer(checkpoint).model_max_length
        limit = min(limit, getattr(checkpoint.config, "max_position_embeddings", None) or limit)
        # Apart from special tokens, no tokenizer produces more tokens than bytes.
        rows = [
            row
            for row, item in enumerate(items)
            if max(len(text.encode("utf-8", "surrogatepass")) for text in item.choices)
            > limit - _TOKENS_AROUND
        ]
        reasons = dict(super().set_aside(items))
        if rows:
            found = self._reader().set_aside([items[row] for row in rows])
            reasons |= {rows[at]: reason for at, reason in found.items()}
        return reasons

    def _rows(self, items: Sequence[Item], places: Ints) -> FeatureRows:
        counts = np.array([len(item.choices) for item in items])
        width = max(places.shape[1], int(counts.max(initial=1)))
        places = np.pad(places, ((0, 0), (0, width - places.shape[1])))
        candidates = np.where(np.arange(width) < counts[:, None], 0, -1)
        ones = np.ones(int(counts.sum()), dtype=np.int64)
        return FeatureRows(row_table(items, places, candidates, self.vectors.device), ones, {})

    def module(self, rows: RowTable, generator: torch.Generator) -> nn.Module:
        """Initialise a linear layer."""
        return UnitHead(self.vectors.shape[1], generator)


class LabelPlan(ModelPlan):
    """Small classifiers of texts: a score for each label of the rows' setup."""

    def _rows(self, items: Sequence[Item], places: Ints) -> FeatureRows:
        labels = SETUPS[items[0].setup].labels
        number_of = {label: number for number, label in enumerate(labels)}
        numbers = [[number_of[label] for label in item.choices] for item in items]
        ones = np.ones(sum(map(len, numbers)), dtype=np.int64)
        table = row_table(items, places, np.array(numbers, dtype=np.int64), self.vectors.device)
        return FeatureRows(table, ones, {})

    def module(self, rows: RowTable, generator: torch.Generator) -> nn.Module:
        """Initialise a classifier; its rows have a choice for every label."""
        return LabelHead(self.vectors.shape[1], rows.candidates.shape[1], generator)


FIRST = 20
"""Number of tokens of a question that are read."""


class WordPlan(CandidateHeads):
    """Heads on word vectors: body and output embeddings are initialised from the seed."""

    def __init__(self, training: HeadTraining, words: WordVectors) -> None:
        """Set the word vectors."""
        super().__init__()
        self._device, self._words = training.model.device, words

    def set_aside(self, items: Sequence[Item]) -> Mapping[int, str]:
        """Return nothing: any text can be read."""
        return {}

    def read(self, splits: Sequence[tuple[Sequence[Item], Ints]]) -> list[FeatureRows]:
        """Look up the words of some rows of each split."""
        asked = [items[row].question for items, rows in splits for row in rows.tolist()]
        questions = {text: number for number, text in enumerate(dict.fromkeys(asked))}
        tokens = [tokenize(text)[:FIRST] for text in questions]
        flat = [token for row in tokens for token in row]
        distinct = {token: number for number, token in enumerate(dict.fromkeys(flat))}
        known = self._words.rows(list(distinct))
        table = np.zeros((len(distinct), self._words.dimensions), dtype=np.float32)
        table[known >= 0] = self._words.matrix[known[known >= 0]]
        vectors = np.zeros((len(tokens), FIRST, self._words.dimensions), dtype=np.float32)
        for row, own in enumerate(tokens):
            vectors[row, : len(own)] = table[[distinct[token] for token in own]]
        self.vectors = torch.from_numpy(vectors).flatten(1).to(self._device)
        read = [self._rows(items, rows, questions) for items, rows in splits]
        body, weight, bias = self.start(0)
        numbers = sum(part.numel() for part in (*body.parameters(), weight, bias))
        self.cost = HeadCost(len(questions), len(flat), numbers)
        return read

    def start(self, seed: int) -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
        """Initialise a head; see :meth:`CandidateHeads.start`."""
        generator = torch.Generator().manual_seed(seed)
        candidates, width = len(self.candidates()), self.vectors.shape[1]
        body = FreshBody(width, generator)
        weight = torch.empty(candidates, width).normal_(0, 0.02, generator=generator)
        bias = torch.zeros(candidates)
        return body.to(self._device), weight.to(self._device), bias.to(self._device)

    def _rows(self, items: Sequence[Item], rows: Ints, questions: Mapping[str, int]) -> FeatureRows:
        places = np.zeros((len(items), 1), dtype=np.int64)
        places[rows, 0] = [questions[items[row].question] for row in rows.tolist()]
        table = self.numbered([item.choices for item in items])
        count = sum(len(item.choices) for item in items)
        return FeatureRows(
            row_table(items, places, table, self._device), np.ones(count, dtype=np.int64), {}
        )


def fit_linear(training: HeadTraining) -> Iterator[tuple[int, Scores]]:
    """Fit a language model's output embeddings.

    Raises:
        UsageError: the model has none.
    """
    checkpoint = training.model.checkpoint
    if Capability.MASKED_SCORES in checkpoint.capabilities:
        plan = CandidatePlan(training, MaskReader, ModelBody)
    elif Capability.CAUSAL_SCORES in checkpoint.capabilities:
        plan = CandidatePlan(training, AnswerReader)
    else:
        raise UsageError(
            f"--learner linear trains a language model's output embeddings, but {checkpoint.id} "
            f"({checkpoint.architecture}) has none. Use --learner frozen."
        )
    return fit_side_by_side(training, plan)


def fit_mlp(training: HeadTraining) -> Iterator[tuple[int, Scores]]:
    """Fit the whole head of a masked LM."""
    plan = CandidatePlan(training, MaskReader, ModelBody, trained=True)
    return fit_side_by_side(training, plan)


def fit_frozen(training: HeadTraining) -> Iterator[tuple[int, Scores]]:
    """Fit a linear layer on the vectors of question-choice pairs."""
    causal = Capability.CAUSAL_SCORES in training.model.checkpoint.capabilities
    kind = LastReader if causal else PairReader
    return fit_side_by_side(training, UnitPlan(training, kind))


def fit_pooled(training: HeadTraining) -> Iterator[tuple[int, Scores]]:
    """Fit small classifiers of labels on texts."""
    return fit_side_by_side(training, LabelPlan(training, MaxReader))


def fit_mlm_baseline(training: HeadTraining) -> Iterator[tuple[int, Scores]]:
    """Fit MLM-Baseline."""
    words = word_vectors(training.fittings[0].options)
    return fit_side_by_side(training, WordPlan(training, words))
