"""The shortcuts of the deep check: adversaries, which see all but what should be needed.

Some see only the choices or parts of the question; others do not read a row's texts at all, but use
other rows, ids and positions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from kbprobe.arrays import Floats, Ints
from kbprobe.audit.deep_rows import DeepRows
from kbprobe.audit.encoder import encode, tuned_scores
from kbprobe.audit.features import cosines_within, others_mean, ranks, word_tfidf
from kbprobe.audit.learners import (
    SEED,
    boosted,
    counts_in_train,
    gold_scores,
    linear_ngrams,
    reduced,
    right_elsewhere,
)
from kbprobe.audit.rows import Rows, has_constant_choices
from kbprobe.audit.verdicts import Shortcut

_WORD = re.compile(r"\w+")


def adversaries(rows: DeepRows) -> Iterator[Shortcut]:
    """Yield every adversary that makes sense for the rows.

    Raises:
        MissingDependencyError, UsageError: see :func:`kbprobe.audit.encoder.encode`.
    """
    if rows.train.size:
        yield surface(rows)
        yield meaning(rows)
        if rows.cues.encoder:
            yield tuned(rows)
        yield from arguments(rows)
        yield from sentences(rows)
    yield from likeness(rows)
    yield from elimination(rows)
    yield from recurrence(rows)
    if rows.train.size:
        yield from order(rows)


def _trained(name: str, scores: Floats) -> Shortcut:
    return Shortcut(name, scores, trained=True)


def surface(rows: DeepRows) -> Shortcut:
    """Gradient boosting over numbers of each choice, absolute and relative to the row's others."""
    texts, codes = rows.used_choices
    columns = [np.where(codes >= 0, values[codes], np.nan) for values in _of_texts(rows, texts)]
    columns += cosines_within(rows.character_ngrams, codes)
    names, local = np.unique(rows.nodes[rows.used], return_inverse=True)
    columns += [values[local].reshape(codes.shape) for values in rows.cues.of_nodes(names)]
    features = [part for x in columns for part in (x, x - others_mean(x), ranks(x))]
    return _trained("surface", gold_scores(rows, np.stack(features, axis=2)))


def _of_texts(rows: DeepRows, texts: list[str]) -> list[Floats]:
    """Return characters, words, and the least and mean Zipf frequency of the words of each text."""
    words = [_WORD.findall(text.lower()) for text in texts]
    known = sorted({word for several in words for word in several})
    zipf = dict(zip(known, rows.cues.frequencies(known), strict=True))
    frequencies = [[zipf[word] for word in several] or [0.0] for several in words]
    return [
        np.array([len(text) for text in texts], dtype=np.float64),
        np.array([len(several) for several in words], dtype=np.float64),
        np.array([min(several) for several in frequencies]),
        np.array([sum(several) / len(several) for several in frequencies]),
    ]


def meaning(rows: DeepRows) -> Shortcut:
    """Gradient boosting over a vector of each choice, as such and less the mean of the others.

    Vectors are the encoder's or, without one, TF-IDF of words and character n-grams. Either is
    reduced to a few dimensions (SVD).
    """
    from scipy.sparse import hstack

    texts, codes = rows.used_choices
    if rows.cues.encoder:
        vectors = reduced(encode(texts, rows.cues.encoder))
    else:
        vectors = reduced(hstack([word_tfidf(texts), rows.character_ngrams], format="csr"))
    shown = np.where((codes >= 0)[:, :, None], vectors[codes], np.float32(np.nan))
    features = np.concatenate([shown, shown - others_mean(shown)], axis=2)
    return _trained("meaning", gold_scores(rows, features))


def tuned(rows: DeepRows) -> Shortcut:
    """The encoder, fine-tuned on choices."""
    texts, codes = rows.used_choices
    train, scored = codes[: rows.train.size], codes[rows.train.size :]
    answer = rows.answer[rows.train]
    return _trained("tuned", tuned_scores(texts, train, answer, scored, rows.cues.encoder, SEED))


def likeness(rows: DeepRows) -> Iterator[Shortcut]:
    """Pick the most similar choice by each measure of similarity, without any knowledge.

    The choice most similar to the question is reported: a question's topic may suggest its answer.
    The choice most similar to the others must not be the gold more often than by chance.
    """
    choices, shown = rows.choices[rows.scored], rows.shown[rows.scored]
    row, column = np.nonzero(shown)

    def texts_of(codes: Ints) -> list[str]:
        texts: list[str] = rows.texts.take(codes).to_pylist()
        return texts

    for name, cosines in rows.cues.cosines.items():
        asked = rows.questions.take(rows.question[rows.scored[row]]).to_pylist()
        similar = np.full(choices.shape, -np.inf)
        similar[row, column] = cosines(asked, texts_of(choices[row, column]))
        yield Shortcut(f"similar:{name}", similar, judged=False)
        total = np.where(shown, 0.0, -np.inf)
        for other in range(1, choices.shape[1]):
            next_to = (column + other) % choices.shape[1]
            both = shown[row, next_to]
            cells = row[both], column[both]
            pairs = texts_of(choices[cells]), texts_of(choices[row[both], next_to[both]])
            np.add.at(total, cells, cosines(*pairs))
        yield Shortcut(f"central:{name}", total)


def arguments(rows: DeepRows) -> Iterator[Shortcut]:
    """Predict the answer's text from each argument alone; nothing if choices differ by row."""
    constant = has_constant_choices(rows.choices[rows.used] + 1)
    if not constant or np.unique(rows.gold[rows.train]).size < 2:
        return
    for name, values in rows.arguments.items():
        yield _trained(f"argument:{name}", _of_argument(rows, [values[row] for row in rows.used]))


def _of_argument(rows: DeepRows, values: list[str]) -> Floats:
    """Average the predictions of a linear model of n-grams and of boosting over numbers."""
    gold = rows.gold[rows.train]
    answers, linear = linear_ngrams(values, gold, analyzer="char_wb", ngram_range=(1, 4))
    lengths = np.array([len(value) for value in values], dtype=np.float64)
    written = np.array([_number(value) for value in values])
    numbers = np.stack([lengths, rows.cues.frequencies(values), written], axis=1)
    _, chances = boosted(numbers, gold, iterations=60)
    return _of_answers(rows, answers, (linear + chances) / 2)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return np.nan


def sentences(rows: DeepRows) -> Iterator[Shortcut]:
    """Predict the answer from parts of the sentence; nothing if rows ask something else."""
    if not rows.sentences or np.unique(rows.gold[rows.train]).size < 2:
        return
    used = [rows.sentences[row] for row in rows.used]
    lengths = [[len(text), len(text.split()), len(text) / len(text.split())] for text in used]
    yield _trained("sentence:length", _of_numbers(rows, np.array(lengths)))
    seen = rows.concept[rows.used].astype(np.float64)
    yield _trained("sentence:document", _of_numbers(rows, np.stack([seen, _shown(rows)], axis=1)))
    for name, texts in rows.arguments.items():
        places = [texts[row] for row in rows.used]
        answers, chances = linear_ngrams(
            places, rows.gold[rows.train], token_pattern=r"\S+", ngram_range=(1, 3)
        )
        yield _trained(f"place:{name} n-grams", _of_answers(rows, answers, chances))


def _shown(rows: DeepRows) -> Floats:
    """Return, for each row, how many rows of its split are from the same document."""
    keys = rows.concept * 2 + rows.is_train
    _, local, counts = np.unique(keys, return_inverse=True, return_counts=True)
    return counts[local][rows.used].astype(np.float64)


def _of_numbers(rows: DeepRows, features: Floats) -> Floats:
    answers, chances = boosted(features, rows.gold[rows.train], iterations=60)
    return _of_answers(rows, answers, chances)


def _of_answers(rows: DeepRows, answers: Ints, chances: Floats) -> Floats:
    """Return the scores of each scored row's choices, given those of the answers' texts."""
    scores = np.zeros((rows.scored.size, len(rows.texts)))
    scores[:, answers] = chances
    return np.take_along_axis(scores, rows.choices[rows.scored], axis=1)


def elimination(rows: Rows) -> Iterator[Shortcut]:
    """Pick the choice that is right least, or most, often in rows of other folds.

    Each choice of a group is right once by design, so the results for clusters are reported but not
    judged.
    """
    # Rows with the same choices, in any order, have the same number.
    _, same = np.unique(np.sort(rows.choices, axis=1), axis=0, return_inverse=True)
    for name, group in (("clusters", rows.cluster), ("choices", same.reshape(-1))):
        rate = right_elsewhere(rows, group[rows.scored])
        judged = name == "choices"
        yield Shortcut(f"elimination:{name}:least", -rate, judged=judged)
        yield Shortcut(f"elimination:{name}:most", rate, judged=judged)


def recurrence(rows: DeepRows) -> Iterator[Shortcut]:
    """Pick the choice shown in most, or fewest, rows of the same question (or cluster).

    It sees all rows of the split: golds that are asked for several times recur, while their
    distractors change. A model that answers rows one by one cannot exploit this, so it is only
    reported. For the whole split, where the pattern is weaker, gradient boosting is fitted on the
    counts, and is judged.
    """
    for name, group in (("question", rows.question), ("cluster", rows.cluster)):
        times = _times_shown(rows, group)[rows.scored]
        yield Shortcut(f"recurrence:{name}:most", times, judged=False)
        yield Shortcut(f"recurrence:{name}:least", -times, judged=False)

    if rows.train.size:
        times = np.where(rows.shown, np.log(_times_shown(rows, np.zeros_like(rows.answer))), np.nan)
        times = times[rows.used]
        # Only relative values: absolute counts depend on the size of the split.
        features = np.stack([times - others_mean(times), ranks(times)], axis=2)
        yield _trained("recurrence:split", gold_scores(rows, features))


def _times_shown(rows: DeepRows, group: Ints) -> Floats:
    """Count the rows of the same split and group that show a choice; at least 1."""
    keys = (group * 2 + rows.is_train)[:, None] * (len(rows.texts) + 1) + rows.choices
    used, times = np.unique(keys[rows.shown], return_counts=True)
    place = np.minimum(np.searchsorted(used, keys), used.size - 1)
    return np.asarray(times[place], dtype=np.float64)


CYCLES = range(2, 9)
BITS = 64


def order(rows: DeepRows) -> Iterator[Shortcut]:
    """Predict the gold's position without any text."""
    width, same = rows.choices.shape[1], np.zeros_like(rows.answer)
    counts = counts_in_train(same, rows.answer, width, rows.train, rows.scored)
    yield _trained("order:position", counts)
    if np.unique(rows.answer[rows.train]).size > 1:
        for name, features in (
            ("number", _numbers(rows)),
            ("id", _bits([rows.ids[row] for row in rows.used])),
            ("previous", _previous(rows)),
        ):
            yield _trained(f"order:{name}", _of_position(rows, features))


def _of_position(rows: DeepRows, features: Floats) -> Floats:
    positions, chances = boosted(features, rows.answer[rows.train], iterations=60)
    scores = np.zeros((rows.scored.size, rows.choices.shape[1]))
    scores[:, positions] = chances
    return scores


def _numbers(rows: DeepRows) -> Floats:
    """Return each row's index in its split: as it is, as a share, and modulo small numbers."""
    place = rows.place[rows.used]
    sizes = np.where(rows.is_train, rows.is_train.sum(), (~rows.is_train).sum())[rows.used]
    return np.stack([place, place / sizes, *(place % cycle for cycle in CYCLES)], axis=1)


def _bits(ids: list[str]) -> Floats:
    """Return the bits of ids: of hexadecimal numbers, or of the last characters."""
    numbers = np.array([_integer(name) % 2**BITS for name in ids], dtype=np.uint64)
    return (numbers[:, None] >> np.arange(BITS, dtype=np.uint64) & np.uint64(1)).astype(np.float64)


def _integer(name: str) -> int:
    try:
        return int(name, 16)
    except ValueError:
        return int.from_bytes(name.encode(), "big")


def _previous(rows: DeepRows) -> Floats:
    """Return the gold positions of the two rows before, and whether they ask the same question."""
    columns: list[Ints] = []
    for back in (1, 2):
        inside = rows.place >= back
        columns.append(np.where(inside, np.roll(rows.answer, back), -1))
        columns.append(inside & (np.roll(rows.question, back) == rows.question))
    return np.stack(columns, axis=1)[rows.used].astype(np.float64)
