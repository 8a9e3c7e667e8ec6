"""The rows of a built probe as the deep check sees them: read from its data files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kbprobe.arrays import Bools, Floats, Ints
from kbprobe.audit.features import character_tfidf
from kbprobe.audit.rows import Rows, choose_rows
from kbprobe.columns import to_numpy
from kbprobe.format.dataset import read_rows
from kbprobe.format.setups import ACCEPTABILITY, NLI, SPLITS

if TYPE_CHECKING:
    import pyarrow as pa
    from scipy.sparse import csr_matrix

    from kbprobe.format.manifest import Manifest, SplitFiles

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
