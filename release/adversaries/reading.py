"""Reading what adversaries see from a probe on disk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kbprobe.arrays import Ints
from kbprobe.columns import to_numpy
from kbprobe.format.rows import read_rows
from kbprobe.format.setups import ACCEPTABILITY, SPLITS
from release.adversaries.types import Rows

if TYPE_CHECKING:
    import pyarrow as pa

    from kbprobe.format.manifest import KnowledgeBase, Manifest, SplitFiles

TRAINED_ROWS = 3_000
SCORED_ROWS = 20_000
LARGEST_SET = 0.01
"""Share of the rows that may show the same choices where these are sampled together."""

COLUMNS = (
    "id", "question", "premise", "hypothesis", "choices", "answer", "cluster", "concept",
    "choice_nodes", "distractor_family", "arguments", "setup",
)  # fmt: skip


def read(folder: Path, manifest: Manifest, config: str, seed: int) -> Rows | None:
    """Read the train split of a config and the one to score: test, or else validation.

    At most ``TRAINED_ROWS`` rows are trained on, whole clusters at a time, and ``SCORED_ROWS``
    scored: all rows with the same choices at a time, so that choice groups stay whole, or whole
    clusters where most rows show the same choices. Rows without an answer are left out.

    Returns:
        None where neither test nor validation has labelled rows.

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
    judged = pc.unique(table["setup"]).to_pylist() == [ACCEPTABILITY]
    rng = np.random.default_rng(seed)
    ends = np.cumsum(sizes)
    train, scored = np.arange(ends[0]), np.arange(ends[0], ends[1])
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
        sentences=table["question"].to_pylist() if judged else [],
        concept=_codes(table["concept"]),
        ids=table["id"].to_pylist(),
        place=np.concatenate([np.arange(size) for size in sizes]),
        is_train=np.arange(ends[1]) < ends[0],
        train=_whole(cluster, train, TRAINED_ROWS, rng),
        scored=_whole(_together(choices, cluster, scored), scored, SCORED_ROWS, rng),
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


def _together(choices: Ints, cluster: Ints, rows: Ints) -> Ints:
    """Return a number for each row: rows of one number are sampled together."""
    _, same = np.unique(np.sort(choices, axis=1), axis=0, return_inverse=True)
    return same if np.bincount(same[rows]).max() <= LARGEST_SET * rows.size else cluster


def _whole(unit: Ints, rows: Ints, most: int, rng: np.random.Generator) -> Ints:
    """Return the rows of random units, about as many as allowed and at least one unit."""
    if rows.size <= most:
        return rows
    units, local, sizes = np.unique(unit[rows], return_inverse=True, return_counts=True)
    order = rng.permutation(units.size)
    kept = np.zeros(units.size, dtype=np.bool_)
    kept[order[: max(1, np.searchsorted(np.cumsum(sizes[order]), most, side="right"))]] = True
    return rows[kept[local]]


def _word_list(languages: Sequence[str]) -> str:
    """Return the first language that there are word frequencies of, or else English."""
    from wordfreq import available_languages

    return next((one for one in languages if one in available_languages()), "en")


def _wordnet(base: KnowledgeBase) -> str:
    sources = (base.model_extra or {}).get("sources") or [base.model_dump()]
    return next((one["name"] for one in sources if one["name"].startswith("wordnet-")), "")
