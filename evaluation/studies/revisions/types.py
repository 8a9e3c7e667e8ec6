"""The summary of the study, ``revisions.json``, and what each number means."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from evaluation.results.sealed import Sealed, read_sealed
from evaluation.results.types import Estimate, Model
from kbprobe.errors import UsageError
from kbprobe.parsing import validated

NAME = "revisions"
SCHEMA_VERSION = "1.0"


class Change(Model):
    """How the answers of a revision differ from those of another one, on the same questions."""

    questions: int = Field(description="Questions that both revisions answered.")
    difference: Estimate = Field(
        description="Accuracy less that of the other revision, in percentage points; both are "
        "resampled together, by cluster."
    )
    p_value: float = Field(
        description="Exact randomisation test, two-sided: the revisions swapped in whole clusters."
    )
    became_right: float = Field(description="Share of the questions that only this one has right.")
    became_wrong: float = Field(description="Share that only the other revision has right.")


class RevisionPoint(Model):
    """One revision of a model on a probe."""

    name: str = Field(description="Branch, tag or commit; of a folder, the checkpoint in it.")
    step: int | None = Field(description="The training step that it is named after, if any.")
    commit: str | None = Field(description="The commit on the Hub; null for a folder.")
    weights_sha256: str = Field(description="Hash of weights and configuration.")
    folder: str | None = Field(description="The folder of its results; null: none was written.")
    scored: int = Field(description="Questions that it answered.")
    accuracy: Estimate = Field(description="Accuracy on these.")
    since_first: Change | None = Field(description="Beside the first revision; null for that one.")
    since_previous: Change | None = Field(description="Beside the revision before; null: none is.")
    until_last: Change | None = Field(
        description="How the last revision differs from this one; null for the last."
    )
    learnt_for_good: int = Field(
        description="Questions that were wrong before, are right here, and right ever after."
    )
    forgotten_for_good: int = Field(
        description="Questions that were right before, are wrong here, and wrong ever after."
    )


class QuestionHistory(Model):
    """One question over the revisions."""

    id: str = Field(description="The item's id.")
    cluster: str | None = Field(description="Its cluster; null if it has none.")
    question: str | None = Field(description="Its text.")
    answers: str = Field(
        description="A letter for each revision, in order: r right, w wrong, . not scored."
    )
    learnt: str | None = Field(
        description="The last revision at which it became right; null: it never did."
    )
    forgotten: str | None = Field(
        description="The last revision at which it became wrong; null: it never did."
    )
    changes: int = Field(description="How often it became right or wrong.")


class FailedRevision(Model):
    """A revision that could not be evaluated."""

    name: str
    step: int | None
    error: str = Field(description="Why.")


class ModelRevisions(Model):
    """The revisions of a model on a probe."""

    probe: str = Field(description="The probe's name.")
    split: str = Field(description="The split evaluated.")
    model: str = Field(description="The model, as it was given.")
    scorer: str = Field(description="What choices were scored by.")
    rows: int = Field(description="Questions asked.")
    clusters: int = Field(description="Clusters with a question that the first revision answered.")
    chance: float = Field(description="Mean of one over the number of choices.")
    baselines: dict[str, float] = Field(
        description="Accuracy of each artefact baseline of the probe's audit."
    )
    by_step: bool = Field(description="Whether all revisions are named after their steps.")
    points: list[RevisionPoint] = Field(description="The revisions, in order.")
    failed: list[FailedRevision] = Field(description="Revisions that are not among the points.")
    always_right: int = Field(description="Questions that every revision that answered has right.")
    never_right: int = Field(description="Questions that none has right.")
    wavering: int = Field(description="Questions that became right or wrong more than once.")
    questions: list[QuestionHistory] = Field(description="The questions, in the probe's order.")


class RevisionsSummary(Model, Sealed):
    """The contents of ``revisions.json``."""

    schema_version: str = Field(SCHEMA_VERSION, description="Version of this schema.")
    models: list[ModelRevisions] = Field(description="Each model on each probe.")


def read_revisions(folder: Path) -> RevisionsSummary:
    """Read ``revisions.json`` of a folder, or the file itself.

    Raises:
        UsageError: there is none, or it is damaged or of another schema.
    """
    path = folder if folder.is_file() else folder / f"{NAME}.json"
    again = "Run evaluate-probe revisions again with the same -o: finished runs are reused."
    try:
        held = read_sealed(path, again, [SCHEMA_VERSION])
    except FileNotFoundError:
        raise UsageError(
            f"{folder} holds no study of revisions (no {NAME}.json). Make it with: "
            f"evaluate-probe revisions PROBE --model MODEL --revisions A,B -o {folder}"
        ) from None
    return validated(held, RevisionsSummary, str(path), again)
