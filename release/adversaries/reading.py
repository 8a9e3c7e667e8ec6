"""Reading what adversaries see from a probe on disk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kbprobe.arrays import Ints
from kbprobe.audit import choose_rows
from kbprobe.columns import to_numpy
from kbprobe.format.rows import read_rows
from kbprobe.format.setups import ACCEPTABILITY, NLI, SPLITS
from release.adversaries.types import Rows

if TYPE_CHECKING:
    import pyarrow as pa

    from kbprobe.format.manifest import KnowledgeBase, Manifest, SplitFiles

COLUMNS = (
    "id", "question", "premise", "hypothesis", "choices", "answer", "cluster", "concept",
    "choice_nodes", "distractor_family", "arguments", "setup",
)  # fmt: skip


def read(folder: Path, manifest: Manifest, config: str, seed: int) -> Rows | None:
    """Read the train split of a config and the one to score: test, or else validation.

    Of many rows `kbprobe.audit.choose_rows` chooses some. Rows without an answer are left out.

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
    """Return the first language that there are word frequencies of, or else English."""
    from wordfreq import available_languages

    return next((one for one in languages if one in available_languages()), "en")


def _wordnet(base: KnowledgeBase) -> str:
    sources = (base.model_extra or {}).get("sources") or [base.model_dump()]
    return next((one["name"] for one in sources if one["name"].startswith("wordnet-")), "")
