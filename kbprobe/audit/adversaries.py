"""The shortcuts of the deep check: adversaries, which see all but what should be needed.

Some see only the choices or parts of the question; others do not read a row's texts at all, but use
other rows, ids and positions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kbprobe.arrays import Bools, Floats, Ints
from kbprobe.audit.encoder import encode, tuned_scores
from kbprobe.audit.features import character_tfidf, cosines_within, others_mean, ranks, word_tfidf
from kbprobe.audit.learners import (
    SEED,
    boosted,
    counts_in_train,
    gold_scores,
    linear_ngrams,
    reduced,
    right_elsewhere,
)
from kbprobe.audit.rows import Rows, choose_rows, has_constant_choices
from kbprobe.audit.verdicts import Shortcut
from kbprobe.columns import to_numpy
from kbprobe.format.dataset import read_rows
from kbprobe.format.setups import ACCEPTABILITY, NLI, SPLITS

if TYPE_CHECKING:
    import pyarrow as pa
    from scipy.sparse import csr_matrix

    from kbprobe.format.manifest import Manifest, SplitFiles

_WORD = re.compile(r"\w+")


Cosines = Callable[[Sequence[str], Sequence[str]], Floats]
"""Returns the cosine of the vectors of each pair of texts."""


class Cues(NamedTuple):
    """What the caller knows of texts and nodes.

    Attributes:
        frequencies: returns the Zipf frequencies of texts.
        of_nodes: returns numbers of nodes, given their distinct names: arrays of NaN and numbers.
        cosines: the measures of similarity by name.
        encoder: a transformers model (folder or id) that reads texts; "" for none.
    """

    frequencies: Callable[[Sequence[str]], Floats]
    of_nodes: Callable[[npt.NDArray[np.str_]], Sequence[Floats]]
    cosines: Mapping[str, Cosines]
    encoder: str = ""


@dataclass(frozen=True, kw_only=True)
class DeepRows(Rows):
    """The whole train split, and the whole scored split after it.

    Attributes:
        nodes: (rows, K) the values of ``choice_nodes``; "" if there are none.
        arguments: name -> (rows,) texts, "" where a row has no such argument.
        sentences: (rows,) the sentences to be judged, if rows ask whether one is acceptable;
            otherwise empty.
        concept: (rows,) integer labels.
        ids: (rows,) the rows' ids.
        place: (rows,) the row's number within its split.
        cues: what the caller knows.
    """

    nodes: npt.NDArray[np.str_]
    arguments: Mapping[str, list[str]]
    sentences: list[str]
    concept: Ints
    ids: list[str]
    place: Ints
    cues: Cues

    @cached_property
    def is_train(self) -> Bools:
        """(rows,) whether it is a row of the train split."""
        return np.asarray(self.split == SPLITS.index("train"))

    @cached_property
    def used_choices(self) -> tuple[list[str], Ints]:
        """The distinct texts that the used rows show, and (used rows, K) index into them or -1."""
        codes = self.choices[self.used]
        shown, local = np.unique(codes[codes >= 0], return_inverse=True)
        local_codes = np.full(codes.shape, -1)
        local_codes[codes >= 0] = local
        return self.texts.take(shown).to_pylist(), local_codes

    @cached_property
    def character_ngrams(self) -> csr_matrix:
        """Character n-grams of the texts of `used_choices`."""
        return character_tfidf(self.used_choices[0])


COLUMNS = (
    "id", "question", "premise", "hypothesis", "choices", "answer", "cluster", "concept",
    "choice_nodes", "distractor_family", "arguments", "setup",
)  # fmt: skip


def read(folder: Path, manifest: Manifest, config: str, seed: int, cues: Cues) -> DeepRows | None:
    """Read the train split of a config and the one to score: test, or else validation.

    If there are many rows, `choose_rows` selects some. Rows without an answer are
    left out.

    Returns:
        None if neither test nor validation has labelled rows.

    Raises:
        KbprobeError: a file is missing or damaged.
    """
    files = manifest.split_files(config)
    for split in (SPLITS[2], SPLITS[1]):
        scored = _labelled(folder, files.get(split))
        if scored is not None:
            train = _labelled(folder, files.get(SPLITS[0]))
            return _rows([scored[:0] if train is None else train, scored], seed, cues)
    return None


def _labelled(folder: Path, files: SplitFiles | None) -> pa.Table | None:
    """Return a split's rows whose answer is one of several choices; None if there are none."""
    import pyarrow.compute as pc

    if files is None:
        return None
    table = read_rows(folder, files).select(list(COLUMNS))
    width = pc.list_value_length(pc.struct_field(table["choices"], "text"))
    sound = pc.and_(pc.greater(width, 1), pc.greater_equal(table["answer"], 0))
    table = table.filter(pc.and_(sound, pc.less(table["answer"], width)))
    return table if table.num_rows else None


def _rows(tables: Sequence[pa.Table], seed: int, cues: Cues) -> DeepRows:
    import pyarrow as pa
    import pyarrow.compute as pc

    sizes = [table.num_rows for table in tables]
    table = pa.concat_tables(tables).combine_chunks()
    texts = pc.struct_field(table["choices"], "text")
    width = to_numpy(pc.list_value_length(texts))
    shown = np.arange(width.max()) < width[:, None]
    coded = pc.list_flatten(texts).combine_chunks().dictionary_encode()
    choices = np.full(shown.shape, -1)
    choices[shown] = to_numpy(coded.indices)
    nodes = np.full(shown.shape, "", dtype=object)
    known = to_numpy(pc.fill_null(pc.list_value_length(table["choice_nodes"]), 0)) == width
    nodes[shown & known[:, None]] = pc.list_flatten(
        table["choice_nodes"].filter(pa.array(known))
    ).to_pylist()
    asked = pc.binary_join_element_wise(
        *(pc.fill_null(table[name], "") for name in ("question", "premise", "hypothesis")), "\x1f"
    )
    cluster = _codes(table["cluster"])
    questions = asked.combine_chunks().dictionary_encode()
    setups = pc.unique(table["setup"]).to_pylist()
    split = np.repeat([0, 2], sizes)
    family = pc.fill_null(table["distractor_family"], "").combine_chunks().dictionary_encode()
    names = np.array(family.dictionary.to_pylist(), dtype=np.str_)
    order = np.argsort(names)
    return DeepRows(
        texts=coded.dictionary,
        choices=choices,
        answer=to_numpy(table["answer"]).astype(np.int64),
        questions=questions.dictionary,
        question=to_numpy(questions.indices).astype(np.int64),
        split=split,
        cluster=cluster,
        family=np.argsort(order)[to_numpy(family.indices)],
        family_names=tuple(names[order].tolist()),
        sample=choose_rows(split, cluster, choices, seed),
        natural=setups == [NLI],
        nodes=nodes.astype(np.str_),
        arguments=_arguments(table["arguments"].to_pylist()),
        sentences=table["question"].to_pylist() if setups == [ACCEPTABILITY] else [],
        concept=_codes(table["concept"]),
        ids=table["id"].to_pylist(),
        place=np.concatenate([np.arange(size) for size in sizes]),
        cues=cues,
    )


def _codes(column: Any) -> Ints:
    coded = column.combine_chunks().dictionary_encode()
    return to_numpy(coded.indices.fill_null(-1)).astype(np.int64)


def _arguments(column: Sequence[list[dict[str, str]] | None]) -> dict[str, list[str]]:
    given = [{entry["name"]: entry["value"] or "" for entry in row or ()} for row in column]
    names = sorted({name for row in given for name in row})
    return {name: [row.get(name, "") for row in given] for name in names}


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
