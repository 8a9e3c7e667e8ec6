"""From candidates to a labelled probe: rows that annotators, or readings, have decided on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from builders.engine.drops import DropLog
from builders.engine.plan import Plan
from builders.engine.render.assemble import id_texts, row_identity, row_ids
from builders.engine.strategies import FromAnnotators
from builders.labels.verdicts import (
    BALANCE,
    LANGUAGE_MODEL,
    NONE,
    Readings,
    about_votes,
    agreed,
    annotator_names,
    read_verdicts,
)
from kbprobe.arrays import Bools, Ints

OTHER = "the votes contradict the intended label"

CANDIDATES = (
    "Nobody has labelled these rows yet: they are candidates (answer -1). "
    "`release-probe annotate` makes sheets for annotators, and `build-probe {name} --labels FILE` "
    "the probe."
)
VOTED = "Votes of annotators: the answer of a row is what most of them said."


@dataclass(frozen=True)
class Decided:
    """The annotators' decisions on a plan's rows.

    Attributes:
        rows: the rows that are kept.
        answer: (rows,) index of the answer to each row.
        about: the description of the answers for manifest and card.
        lines: the lines of the probe's labels file.
        dropped: number of dropped rows, by reason.
    """

    rows: Ints
    answer: Ints
    about: Mapping[str, Any]
    lines: Sequence[Mapping[str, Any]]
    dropped: Mapping[str, int]


def unlabelled(rows: int, probe: str) -> FromAnnotators:
    """Return the answers of rows that have not been labelled yet."""
    return FromAnnotators(np.zeros(rows, np.bool_), {"source": CANDIDATES.format(name=probe)})


def decide_rows(
    plan: Plan,
    probe: str,
    knowledge: str,
    answers: Sequence[str],
    options: Any,
    *,
    voted: str = VOTED,
    read: Readings = NONE,
    calibration: str = "",
    intended: Ints | None = None,
    balance: Callable[[Ints, Ints], Bools] | None = None,
    remedy: str = "Loosen --min-agreement or --min-votes.",
) -> Decided:
    """Read votes or labels, and decide on the rows of a plan of candidates.

    Args:
        plan: the candidates; their ids do not depend on their answers.
        probe: the probe's name.
        knowledge: the name of the knowledge base that it is built from.
        answers: the possible answers, in the order in which every row shows them.
        options: the options of the build: ``labels`` (the files), ``min_votes`` and
            ``min_agreement``.
        voted: a description of where the answers come from if ``options`` names files.
        read: the readings to use otherwise.
        calibration: a description of how far the readings agree with people.
        intended: (rows,) the intended answers: rows decided otherwise are dropped, as Kim et al.
            (2019) do for acceptability. None: the answer is the one with most votes.
        balance: given the remaining rows and their answers, marks those to keep.
        remedy: what to do if no row is left.

    Raises:
        UsageError: a file cannot be read, has faulty lines, or no row is left.
    """
    ids = id_texts(row_ids(plan, row_identity(probe, knowledge))).to_pylist()
    place = {name: index for index, name in enumerate(ids)}
    files = [Path(path) for path in options.labels]
    if files:
        given = read_verdicts(files, ids, answers, options.min_votes)
    else:
        given = read.verdicts(ids, plan.question_keys, answers)
    verdicts = {verdict.id: verdict for verdict in agreed(given, options.min_agreement)}
    if intended is not None:
        for verdict in list(verdicts.values()):
            if verdict.kept and verdict.answer != intended[place[verdict.id]]:
                verdicts[verdict.id] = verdict.left_out(OTHER)
    kept = [verdict for verdict in verdicts.values() if verdict.kept]
    rows = np.array([place[verdict.id] for verdict in kept], dtype=np.int64)
    answer = np.array([verdict.answer for verdict in kept], dtype=np.int64)
    stay = np.ones(rows.size, np.bool_) if balance is None else balance(rows, answer)
    for index in np.flatnonzero(~stay).tolist():
        verdicts[kept[index].id] = kept[index].left_out(BALANCE)
    judged = list(verdicts.values())
    dropped = DropLog()
    for reason in sorted(verdict.reason for verdict in judged if not verdict.kept):
        dropped[f"labels: {reason}"] += 1
    dropped["labels: candidates not judged"] = len(ids) - len(judged)
    dropped.require(int(stay.sum()), remedy, f"{probe}: no labelled row is left")
    names, source = annotator_names(judged), voted if files else read.source(calibration)
    return Decided(
        rows[stay],
        answer[stay],
        about_votes(judged, source, "human" if files else LANGUAGE_MODEL),
        [verdict.line(names, answers) for verdict in judged],
        +dropped,
    )


def answered(
    plan: Plan, decided: Decided, relation: str | None = None, *, natural: bool = False
) -> Plan:
    """Return the decided rows, each with its answer before the other choices.

    ``relation`` says how the answers were determined, ``natural`` whether they are left unbalanced.
    """
    taken = plan.take(decided.rows)
    order = np.argsort(taken.nodes != decided.answer[:, None], axis=1, kind="stable")
    labelled = np.ones(decided.rows.size, dtype=np.bool_)
    return replace(
        taken,
        nodes=np.take_along_axis(taken.nodes, order, axis=1),
        relation=relation or taken.relation,
        answers=FromAnnotators(labelled, decided.about, decided.lines, natural),
        dropped=+DropLog({**plan.dropped, **decided.dropped}),
    )
