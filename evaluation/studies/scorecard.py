"""Score models on a suite of probes by one number.

Listed under: Commands to evaluate.

The score is mean accuracy above chance.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Annotated

import pyarrow as pa
from pydantic import Field

from evaluation.report import cells
from evaluation.report.markdown import render_table
from evaluation.results import intervals
from evaluation.results.analyses.labels import labels_of
from evaluation.results.breakdown import by_hops
from evaluation.results.similarity import measure_similarity
from evaluation.results.types import Estimate, Model, Results, Similarity
from evaluation.results.words import (
    answers_remark,
    counts,
    headline_remark,
    matched_remark,
    matching_remark,
    name_or_count,
    percent,
    score,
)
from evaluation.runs.spec import RunSpec
from evaluation.studies.base import Finished, Study, StudyRequest, read_summary
from evaluation.studies.contamination import (
    Contamination,
    contamination_table,
    measure_contamination,
    siblings,
)
from evaluation.studies.labels import run_labels
from kbprobe import document as doc
from kbprobe.cli import kbprobe_version
from kbprobe.errors import UsageError
from kbprobe.format.manifest import MOST_SIMILAR
from kbprobe.format.sealed import Sealed
from kbprobe.format.suite import Suite, suite_of, verify
from kbprobe.options import Metavar, Options

NAME = "scorecard"
"""The study's name."""

SCHEMA_VERSION = "1.0"


class ProbeScore(Model):
    """A model on one probe."""

    probe: str = Field(description="The probe's name.")
    folder: str = Field(
        description="The folder of its results, relative to the score card's; empty where nothing "
        "is written."
    )
    rows_sha256: str = Field(description="Hash of the rows evaluated.")
    rows: int = Field(description="Rows scored, of which all numbers are.")
    clusters: int = Field(description="Clusters that they belong to.")
    chance: float = Field(description="Mean of one over the number of choices.")
    accuracy: Estimate = Field(description="Share of the rows answered right.")
    score: Estimate = Field(description="(accuracy - chance) / (1 - chance).")
    near_accuracy: Estimate | None = Field(description="Accuracy with near distractors.")
    random_accuracy: Estimate | None = Field(description="Accuracy with random distractors.")
    strict_accuracy: Estimate | None = Field(
        description="Share of the clusters with every question right; null where no cluster has "
        "several."
    )
    strict_chance: float | None = Field(description="Strict accuracy to expect from guessing.")
    hops: dict[str, Estimate] = Field(description="Accuracy by the number of hops to the gold.")
    oracles: dict[str, dict[str, float]] = Field(
        description="Share that readers of partial knowledge get right: what each knows -> family."
    )
    best_baseline: tuple[str, float] | None = Field(
        description="The baseline with the highest accuracy: of the audit, recorded, or similarity."
    )
    beyond_similarity: Estimate | None = Field(
        None,
        description="Score minus that of the choice most similar to the question, on the same "
        "rows; null where similarity says nothing.",
    )
    remarks: list[str] = Field(description="Caveats.")


class Overall(Model):
    """A model on all probes: means over the probes, each corrected for chance as `score` is."""

    score: Estimate = Field(description="Mean over all probes.")
    near: Estimate | None = Field(description="With near distractors: over the probes with both.")
    random: Estimate | None = Field(description="With random distractors: over the same probes.")
    strict: Estimate | None = Field(description="Strict cluster accuracy: over the probes with it.")
    beyond: Estimate | None = Field(
        None, description="Score minus that of similarity: over the probes where it says something."
    )
    chance: float | None = Field(
        None, description="Mean of the accuracies that guessing gives, not corrected: score 0."
    )


OVERALL_MEANS = {
    "score": "accuracy",
    "near": "accuracy with near distractors, over the probes that have near and random ones",
    "random": "accuracy with random distractors, over the same probes",
    "strict": "strict cluster accuracy, over the probes whose clusters have several questions",
}
"""The numbers of a score card, and what each averages over the probes."""


BEYOND = "beyond similarity"
"""The head of columns of the score minus that of similarity."""


CHANCE = "chance"
"""The head of columns of the accuracy of guessing."""


class ModelCard(Model):
    """A model on all probes."""

    label: str = Field(description="The model, and what distinguishes it from others.")
    model: str = Field(description="As it was given.")
    options: dict[str, object] = Field(description="Options of runs that are not the defaults.")
    overall: Overall = Field(description="Means over the probes.")
    probes: list[ProbeScore] = Field(description="Each probe, in the order given.")
    contamination: Contamination | None = Field(
        description="Scores minus those on fresh rows; null without --fresh."
    )


class Scorecard(Model, Sealed):
    """Models on a suite; the one with the highest score first."""

    schema_version: str = Field(SCHEMA_VERSION, description="Version of this schema.")
    suite: str | None = Field(
        description="Name of the suite; null where all or some of the probes belong to none."
    )
    standard: bool = Field(
        description="Whether the scores are of all rows of the standard suite, whose checksums "
        "were verified when it was built."
    )
    rows_sha256: str = Field(description="Hash of the rows of all probes: equal for equal rows.")
    models: list[ModelCard] = Field(description="Each model.")

    @property
    def document(self) -> doc.Document:
        """The document."""
        return _document(self)

    @property
    def sheets(self) -> dict[str, str]:
        """A short table for a README or a model card, by file name."""
        return _badge(self)


def read_card(folder: Path) -> Scorecard | None:
    """Read the score card in a folder, if there is one.

    Raises:
        UsageError: it is damaged, or of another version.
    """
    if not (folder / f"{NAME}.json").is_file():
        return None
    return read_summary(folder, NAME, Scorecard, SCHEMA_VERSION, "PROBE... --model MODEL")


SIBLINGS = "fresh"
"""The folder of results on the sibling suite, within the study's folder."""


class ScorecardOptions(Options):
    """What a suite is compared with."""

    fresh: Annotated[str | None, Metavar("DIR")] = Field(
        None,
        min_length=1,
        description="Folder of a sibling of the suite, built with another seed: evaluates it as "
        "well, and measures contamination.",
    )


def _expand(request: StudyRequest) -> list[RunSpec]:
    """Return the runs: of each model on all probes, then on their siblings."""
    _refuse_two_builds(request.named_probes())
    place = None if request.output is None else request.output / SIBLINGS
    fresh = replace(request, probes=siblings(request), output=place)
    return [
        part.spec(probe, model, facts=False)
        for model in request.models
        for part in (request, fresh)
        for probe in part.named_probes()
    ]


def _refuse_two_builds(probes: Sequence[str]) -> None:
    """Refuse two builds of a suite, most of whose rows are the same, as parts of one mean."""
    builds: dict[str, Path] = {}
    for folder, suite in filter(None, map(suite_of, probes)):
        if (other := builds.setdefault(suite.name, folder)) != folder:
            raise UsageError(
                f"{other} and {folder} are two builds of {suite.name}, and rows of both would "
                "count twice in the mean. Name one of them, and the other with --fresh to measure "
                "contamination."
            )


def _summarise(request: StudyRequest, finished: Sequence[Finished]) -> Scorecard:
    """Score each model on the probes, and on their siblings if there are any."""
    probes = request.named_probes()
    count = len(probes)
    each, cards = count + len(siblings(request)), []
    labels = run_labels(finished[::each])
    for first in range(0, len(finished), each):
        runs, fresh = finished[first : first + count], finished[first + count : first + each]
        cards.append(_card(request, probes, runs, fresh, labels[first // each]))
    suite = _suite(probes)
    sampled = any(run.results.probe.split_rows for run in finished)
    digests = [probe.rows_sha256 for probe in cards[0].probes]
    return Scorecard(
        suite=None if suite is None else f"{suite.title}{', a sample' * sampled}",
        standard=suite is not None and suite.standard and not sampled,
        rows_sha256=hashlib.sha256(" ".join(digests).encode()).hexdigest(),
        models=sorted(cards, key=lambda card: -card.overall.score.value),
    )


def _suite(probes: Sequence[str]) -> Suite | None:
    """Return the suite that consists of exactly these probes; None if there is none."""
    if (built := suite_of(probes[0])) is None:
        return None
    folder, suite = built
    verify(folder, suite)
    every = {os.path.realpath(folder / member.folder) for member in suite.probes}
    return suite if every == {os.path.realpath(probe) for probe in probes} else None


def _card(
    request: StudyRequest,
    probes: Sequence[str],
    runs: Sequence[Finished],
    fresh: Sequence[Finished],
    label: str,
) -> ModelCard:
    scores = [_score(request, probe, run) for probe, run in zip(probes, runs, strict=True)]
    both = [probe for probe in scores if probe.near_accuracy and probe.random_accuracy]
    spec = runs[0].spec
    assert spec is not None
    given = spec.named_options()
    return ModelCard(
        label=label,
        model=spec.model,
        options={name: value for name, value in given.items() if name in request.values},
        overall=Overall(
            score=intervals.mean_of_independent([probe.score for probe in scores]),
            near=_mean((probe.near_accuracy, probe.chance) for probe in both),
            random=_mean((probe.random_accuracy, probe.chance) for probe in both),
            strict=_mean((probe.strict_accuracy, probe.strict_chance) for probe in scores),
            beyond=_mean((probe.beyond_similarity, 0.0) for probe in scores),
            chance=fmean(probe.chance for probe in scores),
        ),
        probes=scores,
        contamination=measure_contamination(request, probes, runs, fresh) if fresh else None,
    )


def _mean(numbers: Iterable[tuple[Estimate | None, float | None]]) -> Estimate | None:
    """Average numbers, each corrected for its chance, over the probes that have them."""
    several = [
        intervals.corrected(number, chance)
        for number, chance in numbers
        if number is not None and chance is not None
    ]
    return intervals.mean_of_independent(several) if several else None


def _score(request: StudyRequest, probe: str, run: Finished) -> ProbeScore:
    metrics = run.results.metrics
    several = any(size.size > 1 for size in metrics.cluster_sizes)
    similarity = _similarity(run.results, run.predictions)
    remarks = [
        headline_remark(metrics),
        answers_remark(run.results),
        matching_remark(run.results),
        matched_remark(run.results),
    ]
    remarks += [f"{n:,} rows set aside: {why}" for why, n in sorted(metrics.set_aside.items())]
    return ProbeScore(
        probe=Path(probe).name,
        folder=os.path.relpath(run.folder, request.output) if run.folder and request.output else "",
        rows_sha256=run.results.probe.fingerprint,
        rows=metrics.accuracy.n,
        clusters=metrics.clusters,
        chance=metrics.chance,
        accuracy=metrics.accuracy,
        near_accuracy=metrics.near_accuracy,
        random_accuracy=metrics.random_accuracy,
        oracles=metrics.oracles,
        score=intervals.corrected(metrics.accuracy, metrics.chance),
        strict_accuracy=metrics.strict_accuracy if several else None,
        strict_chance=metrics.strict_chance if several else None,
        hops=_by_hops(run.predictions),
        best_baseline=metrics.strongest_baseline,
        # Accuracies are in shares, differences in points; a score leaves out what guessing gives.
        beyond_similarity=similarity
        and intervals.linear(similarity.difference, 0.01 / (1 - metrics.chance), 0.0),
        remarks=[remark for remark in remarks if remark],
    )


def _similarity(results: Results, predictions: pa.Table) -> Similarity | None:
    """Return the model beside similarity; measured now where earlier results lack it."""
    if results.metrics.similarity is not None or labels_of(results) is not None:
        return results.metrics.similarity
    return measure_similarity(None, predictions, results.seed).get(MOST_SIMILAR)


def _by_hops(predictions: pa.Table) -> dict[str, Estimate]:
    """Return the accuracy by hops; empty if all rows have the same number of hops."""
    parts = by_hops(predictions)
    return {part.name: part.accuracy for part in parts} if len(parts) > 1 else {}


def card_name(card: Scorecard) -> str:
    """Return the name of what a score card is of: the suite, a probe, or how many there are."""
    return card.suite or name_or_count([score.probe for score in card.models[0].probes], "probes")


def _badge(card: Scorecard) -> dict[str, str]:
    """Return a short table for a README or a model card."""
    rows: list[doc.Row] = [
        [
            ", ".join([model.label, *(f"{k} {v}" for k, v in model.options.items())]),
            *(_number(name, model) for name in OVERALL_MEANS),
            _number("beyond", model),
            cells.share(model.overall.chance),
        ]
        for model in card.models
    ]
    table = render_table(doc.Table((card_name(card), *OVERALL_MEANS, BEYOND, CHANCE), rows))
    made_from = f"Rows {card.rows_sha256[:12]}, kbprobe {kbprobe_version()}"
    return {"badge.md": f"{table}\n\n{made_from}\n"}


def _document(card: Scorecard) -> doc.Document:
    """Return the document of a score card."""
    caption = (
        "Means over the probes, each corrected for chance: 0 is chance, 100 all right. The last "
        "column is the mean accuracy of guessing"
    )
    numbers: dict[str, Callable[[ModelCard], doc.Value]] = {
        name: partial(_number, name) for name in OVERALL_MEANS
    }
    numbers[BEYOND] = partial(_number, "beyond")
    numbers[CHANCE] = lambda model: cells.share(model.overall.chance)
    overview: list[doc.Part] = [
        doc.Tiles({model.label: cells.score(model.overall.score) for model in card.models[:4]}),
        doc.Findings([_sentence(card, model) for model in card.models]),
        doc.Caveats(_caveats(card)),
        doc.Table.of(card.models, {"model": lambda model: model.label, **numbers}, caption),
    ]
    return doc.Document(
        "Score card",
        f"{card_name(card)}: {name_or_count([model.label for model in card.models], 'models')}",
        [
            doc.Section("", overview),
            *(
                doc.Section(
                    model.label,
                    [
                        doc.Table.of(model.probes, _PROBES, "Accuracy and score by probe"),
                        _by_number_of_hops(model),
                        model.contamination and contamination_table(model.contamination),
                    ],
                )
                for model in card.models
            ),
        ],
    )


def _number(name: str, model: ModelCard) -> doc.Cell:
    return cells.score(getattr(model.overall, name))


def _sentence(card: Scorecard, model: ModelCard) -> str:
    fresh = ""
    if model.contamination is not None and model.contamination.difference is not None:
        less = cells.points(model.contamination.difference)
        fresh = f", and {less.text} points ({less.note}) against fresh rows"
    return f"{model.label}: {score(model.overall.score.value)} on {card_name(card)}{fresh}."


def _caveats(card: Scorecard) -> list[str]:
    notes = []
    if card.suite is not None and not card.standard:
        notes.append(
            "These are not scores on the standard suite: the rows are of another seed, or a "
            "sample, or no checksums were compared."
        )
    for model in card.models:
        if model.options:
            options = ", ".join(f"{name} {value}" for name, value in model.options.items())
            notes.append(f"{model.label} was evaluated with options of its own: {options}.")
        if model.contamination is not None and model.contamination.left_out:
            notes.append(
                f"Contamination is not measured on {', '.join(model.contamination.left_out)}: the "
                f"sibling has fewer than {intervals.FEWEST} clusters that the suite lacks."
            )
    of_probes = [
        f"{probe.probe}: {remark}"
        for model in card.models
        for probe in model.probes
        for remark in probe.remarks
    ]
    return [*notes, *dict.fromkeys(of_probes)]


def _value(estimate: Estimate | None) -> float | None:
    return None if estimate is None else estimate.value


_PROBES: Mapping[str, Callable[[ProbeScore], doc.Value]] = {
    "probe": lambda probe: probe.probe,
    "rows": lambda probe: probe.rows,
    "clusters": lambda probe: probe.clusters,
    CHANCE: lambda probe: probe.chance,
    "accuracy": lambda probe: probe.accuracy,
    "score": lambda probe: cells.score(probe.score.value),
    "near": lambda probe: _counted(probe.near_accuracy),
    "random": lambda probe: _counted(probe.random_accuracy),
    "strict": lambda probe: _value(probe.strict_accuracy),
    "best baseline": lambda probe: probe.best_baseline and probe.best_baseline[1],
    BEYOND: lambda probe: cells.score(_value(probe.beyond_similarity)),
    "best oracle": lambda probe: _best_oracle(probe),
}
"""The columns of the table of probes."""


def _best_oracle(probe: ProbeScore) -> doc.Cell:
    """Return the accuracy of the best oracle of partial knowledge, and what it knows."""
    known = {what: families["all"] for what, families in probe.oracles.items()}
    best = max(known, key=known.__getitem__, default=None)
    return cells.NONE if best is None else doc.Cell(percent(known[best]), best)


def _by_number_of_hops(model: ModelCard) -> doc.Table:
    """Return the accuracies by hops of the probes with several numbers of hops."""
    probes = [probe for probe in model.probes if probe.hops]
    numbers = sorted({hops for probe in probes for hops in probe.hops}, key=int)
    rows: list[doc.Row] = [
        [probe.probe, probe.chance, *(_counted(probe.hops.get(hops)) for hops in numbers)]
        for probe in probes
    ]
    caption = "Accuracy by number of hops, with the rows and clusters that it is of"
    return doc.Table(["probe", CHANCE, *numbers], rows, caption)


def _counted(accuracy: Estimate | None) -> doc.Cell:
    return cells.share(accuracy)._replace(note="" if accuracy is None else counts(accuracy))


SCORECARD = Study(
    name=__name__,
    help=__doc__,
    expand=_expand,
    summarise=_summarise,
    options=ScorecardOptions,
    # Scores must be for the same rows for everyone.
    fixed=frozenset({"config", "split", "facts", "fold", "labels"}),
)
"""The study."""
