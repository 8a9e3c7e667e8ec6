"""From candidates to the labelled probe: rows decided by annotators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from builders.engine.drops import DropLog
from builders.engine.labels import (
    LANGUAGE_MODEL,
    NONE,
    Readings,
    about_votes,
    agreed,
    annotator_names,
    read_verdicts,
)
from builders.engine.plan import Plan
from builders.engine.render.assemble import id_texts, row_identity, row_ids
from builders.function_words.options import FunctionWordOptions
from kbprobe.arrays import Ints

OTHER = "the votes contradict the intended label"


class Decided(NamedTuple):
    """The annotators' decisions on a plan's rows.

    Attributes:
        rows: the rows that are kept.
        answer: (rows,) index of the answer to each row.
        about: the text on the answers for manifest and card.
        lines: the lines of the probe's labels file.
        dropped: number of dropped rows, by reason.
    """

    rows: Ints
    answer: Ints
    about: Mapping[str, Any]
    lines: Sequence[Mapping[str, Any]]
    dropped: Mapping[str, int]


def decide_rows(
    plan: Plan,
    probe: str,
    knowledge: str,
    answers: Sequence[str],
    options: FunctionWordOptions,
    source: str,
    intended: Ints | None = None,
    read: Readings = NONE,
) -> Decided:
    """Read votes or labels, and decide on the rows of a plan of candidates.

    Args:
        plan: the candidates; their ids do not depend on their answers.
        probe: the probe's name.
        knowledge: the name of what it is built from.
        answers: the possible answers, in the order in which every row shows them.
        options: the build's options; ``labels`` names the files.
        source: where the answers come from, in words.
        intended: (rows,) the intended answers: rows decided otherwise are dropped, as Kim et al.
            (2019) do for acceptability. None: the answer is the one with most votes.
        read: the readings to use if ``options`` names no file.

    Raises:
        UsageError: a file cannot be read, has faulty lines, or no row is left.
    """
    ids = id_texts(row_ids(plan, row_identity(probe, knowledge))).to_pylist()
    place = {name: at for at, name in enumerate(ids)}
    files = [Path(path) for path in options.labels]
    if files:
        given = read_verdicts(files, ids, answers, options.min_votes)
    else:
        given = read.verdicts(ids, plan.question_keys, answers)
    verdicts = agreed(given, options.min_agreement)
    if intended is not None:
        verdicts = [
            one.left_out(OTHER) if one.kept and one.answer != intended[place[one.id]] else one
            for one in verdicts
        ]
    dropped = DropLog()
    for reason in sorted(one.reason for one in verdicts if not one.kept):
        dropped[f"labels: {reason}"] += 1
    dropped["labels: candidates not judged"] = len(ids) - len(verdicts)
    kept = [one for one in verdicts if one.kept]
    dropped.require(
        len(kept), "Loosen --min-agreement or --min-votes.", f"{probe}: no labelled row is left"
    )
    names = annotator_names(verdicts)
    return Decided(
        np.array([place[one.id] for one in kept], dtype=np.int64),
        np.array([one.answer for one in kept], dtype=np.int64),
        about_votes(verdicts, source, "human" if files else LANGUAGE_MODEL),
        [one.line(names, answers) for one in verdicts],
        +dropped,
    )
