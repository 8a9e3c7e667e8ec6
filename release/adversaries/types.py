"""The input of adversaries, read from a probe on disk, and their results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from kbprobe.arrays import Bools, Floats, Ints
from kbprobe.audit.rows import choose_rows
from kbprobe.audit.verdicts import FEW_ROWS, FEWEST_ROWS, Bar, commonest, credit_of
from kbprobe.columns import to_numpy
from kbprobe.format.dataset import read_rows
from kbprobe.format.setups import ACCEPTABILITY, NLI, SPLITS
from kbprobe.intervals import mean_credit

if TYPE_CHECKING:
    import pyarrow as pa
    from scipy.sparse import csr_matrix

    from kbprobe.format.manifest import KnowledgeBase, Manifest, SplitFiles


Verdict = Literal["exceeds", "ok", "few rows", "reported"]
"""``reported``: not judged, since it uses the question, or the way in which rows are balanced."""


@dataclass(frozen=True)
class Rows:
    """The rows that adversaries are trained on and those that they are scored on.

    Row arrays hold the whole train split first and the whole scored split after it.

    Attributes:
        texts: the distinct texts of choices.
        choices: (rows, K) index into ``texts``; -1 if a row has fewer than K choices.
        answer: (rows,) the gold's column.
        nodes: (rows, K) the values of ``choice_nodes``; "" if there are none.
        question, cluster: (rows,) integer labels; ``questions`` are the distinct questions' texts.
        family: (rows,) names of the distractor families.
        arguments: name -> (rows,) texts, "" where a row has no such argument.
        sentences: (rows,) the sentences to be judged, if rows ask whether one is acceptable;
            otherwise empty.
        natural: whether the answers are left unbalanced, as annotators found them.
        concept: (rows,) integer labels.
        ids: (rows,) the rows' ids.
        place: (rows,) the row's number within its split.
        is_train: (rows,) whether it is a row of the train split.
        train, scored: rows to train on and to score; without a train split, none to train on.
        word_list: the language of the texts, by its name in wordfreq.
        wordnet: the WordNet of the nodes, by its name in ``kb-cache list``; "" for none.
    """

    texts: list[str]
    choices: Ints
    answer: Ints
    nodes: npt.NDArray[np.str_]
    question: Ints
    questions: list[str]
    cluster: Ints
    family: npt.NDArray[np.str_]
    arguments: Mapping[str, list[str]]
    sentences: list[str]
    natural: bool
    concept: Ints
    ids: list[str]
    place: Ints
    is_train: Bools
    train: Ints
    scored: Ints
    word_list: str
    wordnet: str

    @cached_property
    def shown(self) -> Bools:
        """(rows, K) whether there is a choice."""
        return self.choices >= 0

    @cached_property
    def is_gold(self) -> Bools:
        """(rows, K) whether the choice is the gold."""
        return np.asarray(np.arange(self.choices.shape[1]) == self.answer[:, None])

    @cached_property
    def gold(self) -> Ints:
        """(rows,) index of the gold's text."""
        return self.choices[np.arange(self.answer.size), self.answer]

    @cached_property
    def used(self) -> Ints:
        """The rows to train on, then those to score."""
        return np.concatenate([self.train, self.scored])

    @cached_property
    def used_choices(self) -> tuple[list[str], Ints]:
        """The distinct texts that the used rows show, and (used rows, K) index into them or -1."""
        codes = self.choices[self.used]
        found, local = np.unique(codes[codes >= 0], return_inverse=True)
        local_codes = np.full(codes.shape, -1)
        local_codes[codes >= 0] = local
        return [self.texts[code] for code in found], local_codes

    @cached_property
    def character_ngrams(self) -> csr_matrix:
        """TF-IDF of n-grams of two to four characters within words, for texts of `used_choices`."""
        from sklearn.feature_extraction.text import TfidfVectorizer

        return TfidfVectorizer(
            analyzer="char_wb", ngram_range=(2, 4), max_features=30_000, dtype=np.float32
        ).fit_transform(self.used_choices[0])


class Guesses(NamedTuple):
    """An adversary's scores of every choice of the scored rows, (scored rows, K); the best wins.

    Attributes:
        name, scores: the adversary's name and scores.
        trained: whether it was fitted on train.
        judged: whether it must not exceed chance; otherwise it is only reported.
    """

    name: str
    scores: Floats
    trained: bool = True
    judged: bool = True


class Outcome(NamedTuple):
    """How often an adversary was right on a config.

    ``low`` and ``high`` bound a 95% interval whose units are clusters.
    """

    config: str
    adversary: str
    accuracy: float
    low: float
    high: float
    chance: float
    rows: int
    verdict: Verdict
    remedy: str


def outcomes(
    config: str, guesses: Guesses, rows: Rows, remedy: str, adversaries: int
) -> Iterator[Outcome]:
    """Score an adversary on all rows, and yield each family in which it exceeds chance.

    ``adversaries`` is the number of adversaries judged on every family. The intervals of families
    are corrected for the number of tests, since a few of so many would exceed chance by luck. If n
    choices tie for the best, each counts 1 / n.
    """
    shown = rows.shown[rows.scored]
    credit = credit_of(np.where(shown, guesses.scores, -np.inf), rows.answer[rows.scored])
    family = rows.family[rows.scored]
    every = np.ones(credit.size, dtype=np.bool_)
    yield _outcome(config, guesses, credit, shown, rows, every, remedy)
    names = np.unique(family)
    for name in names if names.size > 1 else ():
        named = guesses._replace(name=f"{guesses.name}, {name} rows")
        tests = names.size * max(adversaries, 1)
        found = _outcome(config, named, credit, shown, rows, family == name, remedy, tests)
        if found.verdict == "exceeds":
            yield found


def _outcome(
    config: str,
    guesses: Guesses,
    credit: Floats,
    shown: Bools,
    rows: Rows,
    some: Bools,
    remedy: str,
    tests: int = 1,
) -> Outcome:
    """Estimate the accuracy on some of the scored rows, and compare it with chance.

    The interval is widened so that ``tests`` of them hold simultaneously. Where
    answers are left unbalanced, always giving the most common one counts as chance.
    """
    found = mean_credit(credit[some], rows.cluster[rows.scored][some], tests)
    chance = float((1 / shown[some].sum(axis=1)).mean())
    if rows.natural:
        chance = max(chance, commonest(rows.gold[rows.scored[some]]))
    fewest = min(found.n, rows.train.size) if guesses.trained else found.n
    verdict: Verdict = "ok"
    if not guesses.judged:
        verdict = "reported"
    elif fewest < FEWEST_ROWS:
        verdict = FEW_ROWS
    elif Bar(chance).verdict(found) == "high":
        verdict = "exceeds"
    remedy = remedy if verdict == "exceeds" else ""
    ends = found.value, found.low, found.high
    return Outcome(config, guesses.name, *ends, chance, found.n, verdict, remedy)


COLUMNS = (
    "id", "question", "premise", "hypothesis", "choices", "answer", "cluster", "concept",
    "choice_nodes", "distractor_family", "arguments", "setup",
)  # fmt: skip


def read(folder: Path, manifest: Manifest, config: str, seed: int) -> Rows | None:
    """Read the train split of a config and the one to score: test, or else validation.

    If there are many rows, `kbprobe.audit.choose_rows` selects some. Rows without an answer are
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
            return _rows([scored[:0] if train is None else train, scored], manifest, seed)
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


def _rows(tables: Sequence[pa.Table], manifest: Manifest, seed: int) -> Rows:
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
    is_train = np.arange(sum(sizes)) < sizes[0]
    sample = choose_rows(np.where(is_train, 0, 2), cluster, choices, seed)
    return Rows(
        texts=coded.dictionary.to_pylist(),
        choices=choices,
        answer=to_numpy(table["answer"]).astype(np.int64),
        nodes=nodes.astype(np.str_),
        question=to_numpy(questions.indices).astype(np.int64),
        questions=questions.dictionary.to_pylist(),
        cluster=cluster,
        family=np.array(pc.fill_null(table["distractor_family"], "").to_pylist(), dtype=np.str_),
        arguments=_arguments(table["arguments"].to_pylist()),
        sentences=table["question"].to_pylist() if setups == [ACCEPTABILITY] else [],
        natural=setups == [NLI],
        concept=_codes(table["concept"]),
        ids=table["id"].to_pylist(),
        place=np.concatenate([np.arange(size) for size in sizes]),
        is_train=is_train,
        train=sample.train,
        scored=sample.scored,
        word_list=_word_list(manifest.language),
        wordnet=_wordnet(manifest.knowledge_base),
    )


def _codes(column: Any) -> Ints:
    coded = column.combine_chunks().dictionary_encode()
    return to_numpy(coded.indices.fill_null(-1)).astype(np.int64)


def _arguments(column: Sequence[list[dict[str, str]] | None]) -> dict[str, list[str]]:
    given = [{one["name"]: one["value"] or "" for one in row or ()} for row in column]
    names = sorted({name for row in given for name in row})
    return {name: [row.get(name, "") for row in given] for name in names}


def _word_list(languages: Sequence[str]) -> str:
    """Return the first language with known word frequencies, or else English."""
    from wordfreq import available_languages

    return next((one for one in languages if one in available_languages()), "en")


def _wordnet(base: KnowledgeBase) -> str:
    sources = (base.model_extra or {}).get("sources") or [base.model_dump()]
    return next((one["name"] for one in sources if one["name"].startswith("wordnet-")), "")
