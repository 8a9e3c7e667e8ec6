"""Adversaries that see only the choices, or parts of the question."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kb_cache.frequency import zipf_frequencies
from kb_cache.vectors.load import load_vectors
from kb_cache.vectors.texts import cosines_of_means
from kbprobe.arrays import Floats, Ints
from kbprobe.checkpoints import FILES, reading
from kbprobe.errors import KbprobeError, UsageError, require
from release.adversaries.rows import SEED, boosted, gold_scores, others_mean, ranks, reduced
from release.adversaries.types import Guesses, Rows

if TYPE_CHECKING:
    import torch
    from scipy.sparse import csr_matrix


_WORD = re.compile(r"\w+")


def surface(rows: Rows) -> Guesses:
    """Gradient boosting over numbers of each choice, absolute and relative to the row's others."""
    texts, codes = rows.used_choices
    of_texts = _of_texts(texts, rows.word_list)
    columns = [np.where(codes >= 0, values[codes], np.nan) for values in of_texts]
    columns += _cosines(rows.character_ngrams, codes)
    columns += _of_nodes(rows)
    features = [one for x in columns for one in (x, x - others_mean(x), ranks(x))]
    return Guesses("surface", gold_scores(rows, np.stack(features, axis=2)))


def _of_texts(texts: list[str], language: str) -> list[Floats]:
    """Return characters, words, and the least and mean Zipf frequency of the words of each text."""
    words = [_WORD.findall(text.lower()) for text in texts]
    known = sorted({word for several in words for word in several})
    zipf = dict(zip(known, zipf_frequencies(known, language), strict=True))
    frequencies = [[zipf[word] for word in several] or [0.0] for several in words]
    return [
        np.array([len(text) for text in texts], dtype=np.float64),
        np.array([len(several) for several in words], dtype=np.float64),
        np.array([min(several) for several in frequencies]),
        np.array([sum(several) / len(several) for several in frequencies]),
    ]


def _cosines(vectors: csr_matrix, codes: Ints) -> list[Floats]:
    """Return the mean and the maximum cosine of each choice with the row's others."""
    width = codes.shape[1]
    cosine = np.full((*codes.shape, width), np.nan)
    for one in range(width):
        for other in range(one):
            both = np.flatnonzero((codes[:, one] >= 0) & (codes[:, other] >= 0))
            pairs = vectors[codes[both, one]].multiply(vectors[codes[both, other]])
            cosine[both, one, other] = cosine[both, other, one] = pairs.sum(axis=1).ravel()
    known = ~np.isnan(cosine)
    mean = np.where(known, cosine, 0).sum(axis=2) / np.maximum(known.sum(axis=2), 1)
    greatest = np.where(known, cosine, -1).max(axis=2)
    return [np.where(codes >= 0, part, np.nan) for part in (mean, greatest)]


def _of_nodes(rows: Rows) -> list[Floats]:
    """Return each synset's depth and hyponyms, if the choices' nodes are synsets of WordNet."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from kb_cache.wordnet.load import load_wordnet

    if not rows.wordnet:
        return []
    try:
        wordnet = load_wordnet(rows.wordnet)
    except KbprobeError:
        return []
    names, local = np.unique(rows.nodes[rows.used], return_inverse=True)
    found = pc.index_in(pa.array(names.tolist()), wordnet.synsets["name"].combine_chunks())
    synset = np.array([-1 if one is None else one for one in found.to_pylist()])
    if (synset < 0).all():
        return []
    below = np.bincount(wordnet.hyponyms.walk(synset).source, minlength=synset.size)
    of_names = (wordnet.isa.depths()[synset].astype(np.float64), np.log1p(below))
    shape = rows.nodes[rows.used].shape
    return [np.where(synset < 0, np.nan, column)[local].reshape(shape) for column in of_names]


def meaning(rows: Rows, encoder: str = "") -> Guesses:
    """Gradient boosting over a vector of each choice, as such and less the mean of the others.

    Args:
        rows: what to train on and what to score.
        encoder: a transformers model whose mean-pooled vectors are used; "" for TF-IDF of words and
            character n-grams. Either is reduced to a few dimensions (SVD).
    """
    texts, codes = rows.used_choices
    vectors = reduced(encode(texts, encoder)) if encoder else reduced(_tfidf(rows))
    shown = np.where((codes >= 0)[:, :, None], vectors[codes], np.float32(np.nan))
    features = np.concatenate([shown, shown - others_mean(shown)], axis=2)
    return Guesses("meaning", gold_scores(rows, features))


def _tfidf(rows: Rows) -> Any:
    from scipy.sparse import hstack
    from sklearn.feature_extraction.text import TfidfVectorizer

    words = TfidfVectorizer(token_pattern=r"\w+", max_features=30_000, dtype=np.float32)
    parts = [words.fit_transform(rows.used_choices[0]), rows.character_ngrams]
    return hstack(parts, format="csr")


Cosines = Callable[[Sequence[str], Sequence[str]], Floats]
"""Returns the cosine of the vectors of each pair of texts."""


def likeness(rows: Rows, encoder: str = "") -> Iterator[Guesses]:
    """Pick the most similar choice by word vectors and by an encoder, without any knowledge.

    The choice most similar to the question is reported: a question's topic may suggest its answer.
    The choice most similar to the others must not be the gold more often than by chance.
    """
    for name, cosines in _measures(encoder):
        choices = rows.choices[rows.scored]
        shown = rows.shown[rows.scored]
        row, column = np.nonzero(shown)
        texts = [rows.texts[code] for code in choices[row, column]]
        asked = [rows.questions[rows.question[line]] for line in rows.scored[row]]
        similar = np.full(choices.shape, -np.inf)
        similar[row, column] = cosines(asked, texts)
        yield Guesses(f"similar:{name}", similar, trained=False, judged=False)
        total = np.where(shown, 0.0, -np.inf)
        for other in range(1, choices.shape[1]):
            next_to = (column + other) % choices.shape[1]
            both = shown[row, next_to]
            pairs = [rows.texts[code] for code in choices[row, next_to][both]]
            found = cosines([text for text, keep in zip(texts, both, strict=True) if keep], pairs)
            np.add.at(total, (row[both], column[both]), found)
        yield Guesses(f"central:{name}", total, trained=False)


def _measures(encoder: str) -> Iterator[tuple[str, Cosines]]:
    """Yield the available measures: word vectors, if any are installed, and the encoder."""
    try:
        vectors = load_vectors(None)
    except KbprobeError:
        pass
    else:
        yield "words", lambda left, right: cosines_of_means(left, right, vectors).scores
    if encoder:
        yield "encoder", lambda left, right: _encoded(left, right, encoder)


def _encoded(left: Sequence[str], right: Sequence[str], encoder: str) -> Floats:
    texts = sorted({*left, *right})
    number = {text: at for at, text in enumerate(texts)}
    vectors = encode(texts, encoder)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    one, other = ([number[text] for text in side] for side in (left, right))
    return np.asarray(np.einsum("ij,ij->i", vectors[one], vectors[other]), dtype=np.float64)


MOST_SETS = 4
"""Maximum number of distinct sets of choices in a probe with a few fixed answers."""


def arguments(rows: Rows) -> Iterator[Guesses]:
    """Predict the answer's text from each argument alone; nothing if choices differ by row."""
    sets = np.unique(np.sort(rows.choices[rows.used], axis=1), axis=0).shape[0]
    if sets > MOST_SETS or 2 * sets > rows.used.size or np.unique(rows.gold[rows.train]).size < 2:
        return
    for name, values in rows.arguments.items():
        yield Guesses(f"argument:{name}", _of_argument(rows, [values[row] for row in rows.used]))


def _of_argument(rows: Rows, values: list[str]) -> Floats:
    """Average the predictions of a linear model of n-grams and of boosting over numbers."""
    gold = rows.gold[rows.train]
    answers, said = _linear(values, gold, analyzer="char_wb", ngram_range=(1, 4))
    lengths = np.array([len(value) for value in values], dtype=np.float64)
    frequencies = zipf_frequencies(values, rows.word_list)
    numbers = np.stack([lengths, frequencies, np.array([_number(one) for one in values])], axis=1)
    _, chances = boosted(numbers, gold, iterations=60)
    return _of_answers(rows, answers, (said + chances) / 2)


def _linear(texts: list[str], gold: Ints, **ngrams: Any) -> tuple[Ints, Floats]:
    """Fit a linear model of n-grams on the first texts; predict the others.

    Returns:
        The classes, and the probability of each for the other texts, (other texts, classes).
    """
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    features = TfidfVectorizer(**ngrams).fit_transform(texts)
    model = LogisticRegression(C=3.0, max_iter=500).fit(features[: gold.size], gold)
    return model.classes_, model.predict_proba(features[gold.size :])


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return np.nan


def sentences(rows: Rows) -> Iterator[Guesses]:
    """Predict the answer from parts of the sentence; nothing if rows ask something else."""
    if not rows.sentences or np.unique(rows.gold[rows.train]).size < 2:
        return
    used = [rows.sentences[row] for row in rows.used]
    lengths = [[len(text), len(text.split()), len(text) / len(text.split())] for text in used]
    yield Guesses("sentence:length", _of_numbers(rows, np.array(lengths)))
    seen = rows.concept[rows.used].astype(np.float64)
    yield Guesses("sentence:document", _of_numbers(rows, np.stack([seen, _shown(rows)], axis=1)))
    for name, texts in rows.arguments.items():
        places = [texts[row] for row in rows.used]
        answers, chances = _linear(
            places, rows.gold[rows.train], token_pattern=r"\S+", ngram_range=(1, 3)
        )
        yield Guesses(f"place:{name} n-grams", _of_answers(rows, answers, chances))


def _shown(rows: Rows) -> Floats:
    """Return, for each row, how many rows of its split are from the same document."""
    keys = rows.concept * 2 + rows.is_train
    _, local, counts = np.unique(keys, return_inverse=True, return_counts=True)
    return counts[local][rows.used].astype(np.float64)


def _of_numbers(rows: Rows, features: Floats) -> Floats:
    answers, chances = boosted(features, rows.gold[rows.train], iterations=60)
    return _of_answers(rows, answers, chances)


def _of_answers(rows: Rows, answers: Ints, chances: Floats) -> Floats:
    """Return the scores of each scored row's choices, given those of the answers' texts."""
    found = np.zeros((rows.scored.size, len(rows.texts)))
    found[:, answers] = chances
    return np.asarray(found[np.arange(rows.scored.size)[:, None], rows.choices[rows.scored]])


BATCH = 64
LONGEST = 256
"""Maximum number of tokens read per text."""

EPOCHS, ROWS, LEARNING_RATE = 2, 16, 5e-5
"""Hyperparameters of fine-tuning; ``ROWS`` is the number of rows in a batch."""


def encode(texts: list[str], name: str) -> npt.NDArray[np.float32]:
    """Return the mean of the last hidden states of each text's tokens, (texts, dimensions).

    Args:
        texts: what to encode.
        name: a folder or an id on the Hub, of any model that ``AutoModel`` loads.

    Raises:
        MissingDependencyError: torch or transformers is not installed.
        UsageError: the model cannot be loaded.
    """
    import torch

    tokenizer, model = _loaded(name)
    model.eval()
    vectors = np.empty((len(texts), model.config.hidden_size), dtype=np.float32)
    # Texts of similar length are batched together, to reduce padding.
    order = np.argsort([len(text) for text in texts], kind="stable")
    with torch.inference_mode():
        for batch in np.split(order, np.arange(BATCH, order.size, BATCH)):
            some = _pooled(tokenizer, model, [texts[at] for at in batch])
            vectors[batch] = some.cpu().numpy()
    return vectors


def tuned(rows: Rows, name: str) -> Guesses:
    """Fine-tune a whole encoder to distinguish the gold from other choices, without questions.

    A new linear head scores the mean-pooled vector of each choice; the loss is the cross-entropy
    over the choices of a row.

    Raises:
        MissingDependencyError, UsageError: see :func:`encode`.
    """
    import torch

    tokenizer, model = _loaded(name)
    texts, codes = rows.used_choices
    train, scored = codes[: rows.train.size], codes[rows.train.size :]
    answers = torch.from_numpy(rows.answer[rows.train]).to(model.device)
    with torch.random.fork_rng():
        torch.manual_seed(SEED)
        head = torch.nn.Linear(model.config.hidden_size, 1).to(model.device)
        weights = [*model.parameters(), *head.parameters()]
        optimizer = torch.optim.AdamW(weights, lr=LEARNING_RATE, weight_decay=0.01)
        steps = EPOCHS * -(-len(train) // ROWS)
        schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, steps)
        model.train()
        for epoch in range(EPOCHS):
            order = np.random.default_rng(epoch).permutation(len(train))
            for batch in np.split(order, np.arange(ROWS, order.size, ROWS)):
                scores = _scores(tokenizer, model, head, texts, train[batch])
                loss = torch.nn.functional.cross_entropy(scores, answers[batch])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                schedule.step()
    model.eval()
    with torch.inference_mode():
        of_rows = [
            _scores(tokenizer, model, head, texts, some).cpu().numpy()
            for some in np.split(scored, np.arange(BATCH, len(scored), BATCH))
        ]
    return Guesses("tuned", np.concatenate(of_rows).astype(np.float64))


def _loaded(name: str) -> tuple[Any, Any]:
    for package in ("torch", "transformers"):
        require(package, "eval", "--encoder")
    import torch
    from transformers import AutoModel, AutoTokenizer
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    with reading(f"--encoder {name} cannot be loaded", Path(name), FILES, UsageError):
        tokenizer = AutoTokenizer.from_pretrained(name, trust_remote_code=False)
        model = AutoModel.from_pretrained(name, trust_remote_code=False)
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    tokenizer.padding_side = "right"
    return tokenizer, model.to("cuda" if torch.cuda.is_available() else "cpu")


def _pooled(tokenizer: Any, model: Any, texts: list[str]) -> torch.Tensor:
    """Return the mean of the last hidden states of each text's tokens, (texts, dimensions)."""
    given = tokenizer(
        texts, padding=True, truncation=True, max_length=LONGEST, return_tensors="pt"
    ).to(model.device)
    states = model(**given).last_hidden_state.float()
    mask = given["attention_mask"][:, :, None]
    pooled: torch.Tensor = (states * mask).sum(dim=1) / mask.sum(dim=1).clamp(min=1)
    return pooled


def _scores(tokenizer: Any, model: Any, head: Any, texts: list[str], codes: Ints) -> torch.Tensor:
    """Score the choices of some rows, (rows, K); minus infinity if a row has no such choice.

    Each distinct text is read once.
    """
    import torch

    used, local = np.unique(codes[codes >= 0], return_inverse=True)
    of_text = head(_pooled(tokenizer, model, [texts[code] for code in used])).squeeze(1)
    scores = torch.full(codes.shape, -torch.inf, device=of_text.device)
    scores[torch.from_numpy(codes >= 0)] = of_text[torch.from_numpy(local).to(of_text.device)]
    return scores
