"""From candidates to the labelled probe: rows that annotators have decided on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from builders.engine.drops import DropLog
from builders.engine.labels import about_votes, agreed, annotator_names, read_verdicts
from builders.engine.plan import Plan
from builders.engine.readings import LANGUAGE_MODEL, NONE, Readings
from builders.engine.render.assemble import id_texts, row_identity, row_ids
from builders.function_words.options import FunctionWordOptions
from kbprobe.arrays import Ints

OTHER = "the votes contradict the intended label"


class Decided(NamedTuple):
    """What annotators said of a plan's rows.

    Attributes:
        rows: the rows that are kept.
        answer: (rows,) index of the answer that each was given.
        about: what manifest and card say of the answers.
        lines: those of the probe's labels file.
        dropped: how many rows are left out, by reason.
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
        answers: what may be answered, in the order in which every row shows it.
        options: ``labels`` names the files.
        source: where the answers come from, in words.
        intended: (rows,) the answers that rows are made for: those with another are left out, as
            Kim et al. (2019) do for acceptability. None: the answer is what most votes say.
        read: the readings to decide by where ``options`` names no file.

    Raises:
        UsageError: a file cannot be read, lines of it are at fault, or no row is left.
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
