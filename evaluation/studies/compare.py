"""Compare models question by question: with each other, controls, or similarity.

Listed under: Commands to compare results.

Name folders of results, each of which stands for all results below it; or probes and models, which
are evaluated first. A model alone on its probe is compared with itself on the other probes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import Field

from evaluation.items.types import ids_of
from evaluation.models.checkpoint import NO_MODEL
from evaluation.names import model_name, read_names
from evaluation.report import cells
from evaluation.results import intervals
from evaluation.results.analyses.generated import generated_of
from evaluation.results.breakdown import cluster_codes, named_rows, scored_rows
from evaluation.results.pairs import holm
from evaluation.results.similarity import similarity_answers
from evaluation.results.types import METRIC_OF, Estimate
from evaluation.results.words import (
    coefficient,
    difference,
    matched_remark,
    p_value,
    percent,
    with_p,
)
from evaluation.runs.evaluation import Evaluation
from evaluation.runs.reading import SplitReader
from evaluation.runs.spec import RunSpec
from evaluation.studies.across_probes import (
    ProbePair,
    ProbeRun,
    pairs_of_probes,
    section_of_probes,
)
from evaluation.studies.agreement import mean_of
from evaluation.studies.base import Finished, Study, StudyRequest
from evaluation.studies.counting import group_by
from evaluation.studies.labels import Labelled, labelled_groups, require_models
from evaluation.studies.pairing import are_configs, are_renderings, are_wordings, gather
from evaluation.studies.table import (
    CONTRAST,
    Column,
    Contrast,
    DataTable,
    RunRow,
    Section,
    StudyTables,
    contrasts_table,
    fields,
    place_of,
    runs_table,
    summary_of,
)
from kbprobe import document as doc
from kbprobe.columns import single_chunk
from kbprobe.errors import UsageError
from kbprobe.format.manifest import MOST_SIMILAR
from kbprobe.options import Metavar, Options

if TYPE_CHECKING:
    import pyarrow as pa

LEVEL = 0.05
"""Differences with an adjusted p of this or less are described first, and outlined."""


class CompareOptions(Options):
    """What is compared, and how."""

    controls: tuple[str, ...] = Field(
        (),
        description="Configs of the probes that ask the same rows in another wording, such as "
        "no_language,perturbed: each model is compared with itself on them (with --model).",
    )
    against: Literal["similarity"] | None = Field(
        None,
        description="similarity: compare the models also with the choice most similar to the "
        "question, by the small encoder that comes with kbprobe.",
    )
    partial: bool = Field(False, description="Compare the items that both have, if not all.")
    names: Annotated[str | None, Metavar("FILE")] = Field(
        None,
        description="YAML file that maps models or folders of results to the names to print.",
    )
    seed: int = Field(0, ge=0, description="Seed of the bootstrap.")


def _expand(request: StudyRequest) -> list[RunSpec]:
    """Return the runs of each model on each probe and its controls."""
    options: CompareOptions = request.options
    configs = (None, *options.controls)
    if len(request.models) * len(configs) * len(request.probes) == 1 and not options.against:
        raise UsageError(
            "compare takes two runs or more: name another --model, another probe, configs of the "
            "probe with --controls no_language,perturbed, --against similarity, or folders of "
            "results without --model"
        )
    _check_controls(request)
    return [
        # Sub-questions have no controls.
        request.spec(probe, model, config=config, facts=False)
        for model in request.models
        for probe in request.probes
        for config in configs
    ]


def _check_controls(request: StudyRequest) -> None:
    """Check that controls have the same rows as their probe, before any model is loaded."""
    reader, options = SplitReader(), request.defaults.run
    for probe in request.probes if request.options.controls else ():
        own = set(ids_of(reader.rows(probe, options).items))
        for config in request.options.controls:
            varied = options.model_copy(update={"config": config})
            asked = set(ids_of(reader.rows(probe, varied).items))
            if asked != own:
                raise UsageError(
                    f"{config} does not ask the rows of the probe: {len(asked - own):,} of its "
                    f"rows are not in the probe, and {len(own - asked):,} of the probe's not in "
                    "it. Name configs that share their ids with --controls."
                )


def _collect(request: StudyRequest, finished: Sequence[Finished]) -> StudyTables:
    """Compare results in folders."""
    if request.options.controls:
        raise UsageError(
            "--controls names configs to evaluate, with --model. Folders of results on a probe and "
            "on its controls are compared without it"
        )
    return _summarise(request, finished)


AXES: dict[str, Column[Finished]] = {
    "run": Column(
        "The model, and what distinguishes it from the others.", lambda run: str(run.folder)
    ),
    "config": Column(
        "The probe or its config, where runs on several are compared.",
        lambda run: run.results.probe.name,
    ),
}
RUNS: dict[str, Column[RunRow]] = {
    "model": Column("The model, as it was given.", lambda row: _of(row).model.id, None),
    "revision": Column("Its commit on the Hub.", lambda row: _of(row).model.revision, None),
    "random_weights": Column(
        "Seed that its weights were drawn with; null where they were not.",
        lambda row: _of(row).model.random_weights,
        None,
    ),
    "dtype": Column("Type that the weights were run in.", lambda row: _of(row).model.dtype, None),
    "scorer": Column("What choices were scored by.", lambda row: _of(row).scoring.scorer, None),
    "generated": Column(
        "Whether the model generated answers to choose.",
        lambda row: generated_of(_of(row)) is not None,
        None,
    ),
    "counted": Column("Rows that accuracy is of.", lambda row: row.accuracy.n, head="rows"),
    "counted_clusters": Column(
        "Clusters of these rows.", lambda row: _of(row).metrics.clusters, head="clusters"
    ),
    "metric": Column(
        "What predictions were made with: acc, acc_norm, ...",
        lambda row: METRIC_OF[_of(row).metrics.normalization],
    ),
}
DIFFERENCES = (
    *("first", "second", "rows", "clusters", "accuracy_first", "accuracy_second", "difference"),
    *("p_value", "p_mcnemar"),
)
SIMILARITY = (
    *("first", "second", "only_first_right", "only_second_right", "same", "expected", "kappa"),
    *("both_wrong", "same_error", "expected_error"),
)
PAIRS = tuple(dict.fromkeys([*DIFFERENCES, *SIMILARITY, "only_first", "only_second", "skipped"]))
PARTS = ("part", *DIFFERENCES[:-2])


def _of(row: RunRow) -> Any:
    return row.runs[0].results


def _models(rows: Sequence[RunRow]) -> list[RunRow]:
    """Return the rows without that of similarity."""
    return [row for row in rows if _of(row).scoring.scorer != MOST_SIMILAR]


def _summarise(request: StudyRequest, finished: Sequence[Finished]) -> StudyTables:
    """Compare each pair of runs on the items that both scored."""
    options: CompareOptions = request.options
    without: Sequence[str] = ()
    if options.against is not None:
        baselines, without = _similarity_baselines(finished, options.seed)
        finished = [*baselines, *finished]
    if len(finished) < 2:
        raise UsageError(
            "compare takes at least two results: name further folders, or --against similarity to "
            "compare a model with the choice most similar to the question"
        )
    names = read_names(None if options.names is None else Path(options.names))
    groups = labelled_groups(finished, are_renderings, names)
    names.note_unused()
    across = {label: [ProbeRun.of(run) for run in runs] for label, runs in _alone(groups).items()}
    rows = [_rows(group) for group in groups if len(group) > 1]
    pairs = [
        [
            Contrast.of(first, second, options.seed, partial=options.partial)
            for first, second in combinations(own, 2)
        ]
        for own in rows
    ]
    between = {label: pairs_of_probes(runs, options.seed) for label, runs in across.items()}
    every: list[Contrast | ProbePair] = [pair for own in pairs for pair in own]
    every += [pair for own in between.values() for pair in own]
    adjusted = dict(zip(map(id, every), holm([pair.p_value for pair in every]), strict=True))
    sections = [_section(*group, adjusted, options.seed) for group in zip(rows, pairs, strict=True)]
    if mean := _mean(pairs):
        sections.append(mean)
    sections += [
        section_of_probes(label, across[label], own, adjusted) for label, own in between.items()
    ]
    if without:
        note = f"Similarity says nothing about the rows of {', '.join(without)}."
        sections[0] = replace(sections[0], notes=[*sections[0].notes, note])
    kind = "Paired comparison" if pairs else "Comparison of probes"
    return summary_of("compare", kind, sections, "probes" if pairs else "models")


def _similarity_baselines(
    finished: Sequence[Finished], seed: int
) -> tuple[list[Finished], list[str]]:
    """Return the similarity baseline of each build of a probe, as a run on the rows of all runs.

    Returns:
        The baselines, and the probes about whose rows similarity says nothing.

    Raises:
        UsageError: it says nothing about any row.
    """
    baselines: list[Finished] = []
    without: list[str] = []
    samples = group_by(finished, lambda run: run.results.probe.fingerprint).values()
    largest = [max(runs, key=lambda run: run.results.metrics.scored) for runs in samples]
    builds = group_by(largest, _build)
    named = [probe for probe, *_ in builds]
    for build, runs in builds.items():
        run = max(runs, key=lambda run: run.results.metrics.scored)
        rows, asked = _all_rows(run, runs)
        answers = similarity_answers(rows, seed)
        if answers is None:
            without.append(run.results.probe.name)
            continue
        _, right, cluster = scored_rows(answers)
        accuracy = intervals.accuracy(right, cluster, seed)
        results = run.results
        changed = {
            "probe": results.probe.model_copy(update={"fingerprint": asked}),
            "model": results.model.model_copy(
                update={"id": NO_MODEL, "random_weights": None, "finetuning": None}
            ),
            "scoring": results.scoring.model_copy(update={"scorer": MOST_SIMILAR}),
            "metrics": results.metrics.model_copy(
                update={
                    "accuracy": accuracy,
                    "clusters": accuracy.clusters,
                    "accuracies": {},
                    "normalization": "sum",
                    "similarity": None,
                }
            ),
            "analyses": {},
        }
        evaluation = Evaluation(results.model_copy(update=changed), answers)
        several = named.count(build[0]) > 1
        place = Path(f"rows of {run.folder}" if several else MOST_SIMILAR)
        baselines.append(Finished(evaluation, folder=place))
    if not baselines:
        raise UsageError(
            f"similarity says nothing about the rows of {', '.join(without)}: they all choose "
            "among the same few answers, or have no choice more similar to its question than "
            "another. Leave out --against similarity."
        )
    return baselines, without


def _build(run: Finished) -> tuple[tuple[str, str], str]:
    """Return the name and split of a run's probe, and what distinguishes the build from others."""
    probe = run.results.probe
    return (probe.name, probe.split), repr(probe.request or probe.source)


def _all_rows(run: Finished, runs: Sequence[Finished]) -> tuple[pa.Table, str]:
    """Return the rows of a run and those that runs on other samples add, and a fingerprint."""
    import pyarrow as pa
    import pyarrow.compute as pc

    tables = [run.predictions, *(other.predictions for other in runs if other is not run)]
    if len(tables) == 1:
        return run.predictions, run.results.probe.fingerprint
    union = pa.concat_tables(tables, promote_options="default")
    ids = single_chunk(union["id"])
    every = union.take(pc.index_in(ids.unique(), value_set=ids))
    if every.num_rows == run.predictions.num_rows:
        return run.predictions, run.results.probe.fingerprint
    return every, "+".join(sorted(one.results.probe.fingerprint for one in runs))


def _alone(groups: Sequence[Sequence[Labelled]]) -> dict[str, list[Finished]]:
    """Return the runs of models that are alone on a probe, by label, with those on other probes.

    Raises:
        UsageError: a model that is alone on its probe has no results on another one.
    """
    probes: dict[str, list[Finished]] = {}
    for group in groups:
        # Of the configs of a probe, the first counts.
        for label, run in {label: run for run, label in reversed(group)}.items():
            probes.setdefault(label, []).append(run)
    alone = [group for group in groups if len(group) == 1]
    for group in alone:
        if len(probes[group[0].label]) == 1:
            require_models(group, "compare", or_else="; or name its results on another probe")
    return {group[0].label: probes[group[0].label] for group in alone}


def _rows(group: Sequence[Labelled]) -> list[RunRow]:
    """Return the runs of a group, with their labels."""
    probes = {run.results.probe.name for run, _ in group}
    several = len(probes) > 1
    return [
        RunRow({"run": label, "config": run.results.probe.name if several else None}, [run])
        for run, label in group
    ]


def _section(
    rows: Sequence[RunRow], pairs: Sequence[Contrast], holm_p: Mapping[int, float], seed: int
) -> Section:
    """Report the runs on one probe, its configs, or its languages."""
    adjusted: Column[Contrast] = Column(
        "The p, adjusted for the number of pairs of all probes (Holm, 1979).",
        lambda pair: holm_p[id(pair)],
        p_value,
        "p (Holm)",
    )
    contrasts = contrasts_table(pairs, PAIRS, further={"p_holm": adjusted})
    runs = runs_table(rows, AXES, RUNS)
    families = [part for pair in pairs for part in pair.by("distractor_family")]
    by_family = contrasts_table(families, PARTS, "families")
    near = [part for pair in pairs for part in pair.near_and_random()]
    by_distance = contrasts_table(near, PARTS, "near_and_random")
    beyond = [part for part in near if not _models([part.first])]
    controls = DataTable("controls", [p for p in pairs if _config_of_control(p)], _CONTROLS)
    wordings = DataTable(
        "wordings", _wordings([row.runs[0] for row in _models(rows)], seed), _WORDINGS
    )
    restarts = DataTable("restarts", _restarts(rows, pairs), _RESTARTS)
    # The similarity of a model's answers to a probe and to its controls is not informative.
    similar = not controls.records or len({row.axes["run"] for row in rows}) > 1
    names = [row.label for row in rows]
    maps: list[doc.HeatMap] = []
    if similar and len(rows) > 2:
        maps = [_differences_map(names, pairs, holm_p), *_agreement_maps(names, contrasts.values)]
    chances = {percent(row.chance) for row in rows}
    return Section(
        place_of(rows[0].runs[0], "probe", "split"),
        [runs, contrasts, by_family, by_distance, controls, wordings, restarts],
        [
            runs.shown(
                "Accuracy of each model on the rows that it scored; chance is "
                f"{' or '.join(sorted(chances))}",
                (
                    *("run", *(["config"] if rows[0].axes["config"] else [])),
                    *("metric", "accuracy", "counted", "counted_clusters"),
                ),
                names=2,
            ),
            controls.shown(
                "Accuracy on the probe and on its controls, on the rows that both scored", names=2
            ),
            *maps,
            contrasts.shown(
                "Accuracy of each pair on the rows that both scored, and B minus A in points",
                (*DIFFERENCES[:-1], *(["p_holm"] if len(holm_p) > 1 else [])),
                names=2,
            ),
            contrasts.shown(
                "How similar the answers of each pair are. Expected: for independent models with "
                "the same accuracies, if each wrong choice is equally likely. Errors: of rows with "
                "three choices or more.",
                SIMILARITY,
                names=2,
            )
            if similar
            else None,
            replace(by_distance, records=beyond).shown(
                "Against similarity, with near and with random distractors", names=3
            )
            if beyond
            else None,
            by_family.shown("By distractor family", names=3)
            if len(pairs) == 1 and not beyond
            else None,
            wordings.shown("By wording: mean accuracy over the models, the highest first"),
            restarts.shown("Random initialisations"),
        ],
        [
            *_beyond_similarity(beyond),
            *_differing(pairs, holm_p),
            *_reversals(pairs),
            *(_consistent(pairs) if similar else []),
        ],
        [*_caveats(pairs), *_warnings(rows), *(_few_errors(pairs) if similar else [])],
    )


def _differing(pairs: Sequence[Contrast], holm_p: Mapping[int, float]) -> list[str]:
    """Describe the pairs that differ, the largest difference first."""
    shown = sorted(pairs, key=lambda pair: -abs(pair.difference.value))
    sentences = []
    if len(pairs) > 1:
        shown = [pair for pair in shown if holm_p[id(pair)] <= LEVEL]
        every = len(holm_p)
        number = "their number" if every == len(pairs) else f"the number of all {every} pairs"
        sentences.append(
            f"{len(shown)} of {len(pairs)} pairs differ at a level of {100 * LEVEL:g}%, adjusted "
            f"for {number} (Holm)."
        )
    for pair in shown[:3]:
        gain = f"{pair.subtraction}: {difference(pair.difference)}"
        sentences.append(f"{with_p(gain, holm_p[id(pair)], len(holm_p))}.")
    return sentences


def _beyond_similarity(parts: Sequence[Contrast]) -> list[str]:
    """Describe the models with near distractors, minus similarity: the largest difference first."""
    near = [part for part in parts if part.name == "near"]
    return [
        f"With near distractors, {part.subtraction}: {difference(part.difference)}."
        for part in sorted(near, key=lambda part: -part.difference.value)[:3]
    ]


def _reversals(pairs: Sequence[Contrast]) -> list[str]:
    """Describe the models that wordings rank in either order, by the largest contradiction.

    The best and the worst of all wordings are tested at a level that is divided by the number of
    wordings and pairs that they were chosen from (Bonferroni): models that guess have no order.
    """
    by_wording = [
        (pair, pair.by("template"))
        for pair in pairs
        for runs in ((pair.first.runs[0], pair.second.runs[0]),)
        if not are_configs(*runs) and not are_wordings(*runs)
    ]
    level = LEVEL / max(1, sum(len(parts) for _, parts in by_wording))
    reversals = []
    for pair, parts in by_wording:
        best = max(parts, key=lambda part: part.gain, default=pair)
        worst = min(parts, key=lambda part: part.gain, default=pair)
        if best.gain > 0 > worst.gain and max(best.p_value, worst.p_value) <= level:
            reversals.append((best.gain - worst.gain, pair, best, worst))
    if not reversals:
        return []
    _, pair, best, worst = max(reversals, key=lambda reversal: reversal[0])
    each = ", ".join(
        f"{difference(part.difference)} with {part.name} ({part.clusters.size:,} rows)"
        for part in (best, worst)
    )
    count = f" ({len(reversals)} of {len(pairs)} pairs)" if len(pairs) > 1 else ""
    return [f"Wording reverses a ranking{count}: {pair.subtraction} is {each}."]


def _consistent(pairs: Sequence[Contrast]) -> list[str]:
    """Describe the pair whose answers are the most similar."""
    varying = [pair for pair in pairs if pair.agreement.kappa is not None]
    if not varying:
        return []
    pair = max(varying, key=lambda pair: _value(pair.agreement.kappa))
    return [
        f"Most consistent: {pair.first.label} and {pair.second.label}, kappa "
        f"{coefficient(_value(pair.agreement.kappa))}; the same answer to "
        f"{percent(pair.same.value)} of the rows, where {percent(pair.agreement.expected)} is "
        "expected of independent models."
    ]


def _value(number: Estimate | float | None) -> float:
    if isinstance(number, Estimate):
        return number.value
    return number or 0.0


def _caveats(pairs: Sequence[Contrast]) -> list[str]:
    """Describe the rows that are not compared."""
    left = [
        (pair, counts)
        for pair in pairs
        if any(counts := (pair.paired.only_first, pair.paired.only_second, pair.paired.set_aside))
    ]
    caveats = []
    if len(pairs) == 1 and left:
        pair, counts = left[0]
        whats = (
            f"asked of {pair.first.label} alone",
            f"asked of {pair.second.label} alone",
            "skipped by one or both",
        )
        named = [f"{n:,} {what}" for n, what in zip(counts, whats, strict=True) if n]
        caveats.append(f"Rows left out: {', '.join(named)}.")
    elif left:
        least = min(pair.clusters.size for pair, _ in left)
        caveats.append(
            f"{len(left)} of {len(pairs)} pairs are compared only on the rows that both scored, at "
            f"least {least:,}."
        )
    encoders = {
        (similarity.encoder.name, row.label): similarity
        for pair in pairs
        if not _models([pair.first])
        for row in (pair.second,)
        if (similarity := _of(row).metrics.similarity) and similarity.encoder
    }
    caveats += [
        f"{label} minus similarity by {model_name(name)}, as measured when it was evaluated: "
        f"{difference(similarity.difference)}."
        for (name, label), similarity in encoders.items()
    ]
    if any(are_configs(pair.first.runs[0], pair.second.runs[0]) for pair in pairs):
        caveats.append("Some runs are on another config of the probe; rows are paired by ids.")
    if any(are_wordings(pair.first.runs[0], pair.second.runs[0]) for pair in pairs):
        caveats.append(
            "Some runs are on the same questions in other wordings; rows are paired by ids, and a "
            "difference may be due to the wording."
        )
    return caveats


def _warnings(rows: Sequence[RunRow]) -> list[str]:
    """Return warnings of models that are not to be ranked, or not scored in the same way."""
    # The most similar choice is not scored by a model, and does not depend on lengths.
    models = _models(rows)
    warnings = [
        f"{row.label}: {remark}, and does badly on near ones by construction. It is not to be "
        "ranked."
        for row in models
        if (remark := matched_remark(_of(row)))
    ]
    generated = [row.label for row in rows if RUNS["generated"].value(row)]
    if 0 < len(generated) < len(models):
        warnings.append(
            f"Choices are compared by generated answers, or by letters, in {', '.join(generated)}, "
            "and by scores such as log-likelihoods elsewhere: a difference may be due to how the "
            "model was asked alone."
        )
    divided = {row.label: _of(row).metrics.normalization for row in models}
    if len(set(divided.values())) > 1:
        each = "; ".join(
            f"{label}: {METRIC_OF[name]} (--normalization {name})"
            for label, name in divided.items()
        )
        warnings.append(
            f"The runs compare choices by scores of different normalization ({each}), and part of "
            "a difference may be due to that alone. Evaluate them with the same one, such as "
            "--normalization sum, which every scorer takes."
        )
    return warnings


def _few_errors(pairs: Sequence[Contrast]) -> list[str]:
    wrong = [pair.agreement.both_wrong for pair in pairs]
    if not any(wrong):
        return [
            "Error overlap is not shown: there is no row of three choices or more that both models "
            "of a pair get wrong."
        ]
    if few := [count for count in wrong if 0 < count < 50]:
        return [
            f"{len(few)} of {len(wrong)} pairs have fewer than 50 rows that both get wrong: look "
            "at the intervals."
        ]
    return []


def _differences_map(
    names: Sequence[str], pairs: Sequence[Contrast], holm_p: Mapping[int, float]
) -> doc.HeatMap:
    """Return the heat map of differences, of rows minus columns, without its diagonal."""
    numbers = {(pair.second.label, pair.first.label): pair.difference.value for pair in pairs}
    numbers |= {(column, row): 0.0 - value for (row, column), value in numbers.items()}
    places = {name: place for place, name in enumerate(names)}
    differing = [
        (places[first], places[second])
        for pair in pairs
        if holm_p[id(pair)] <= LEVEL
        for first, second in [(pair.first.label, pair.second.label)]
    ]
    return doc.HeatMap.of_pairs(
        "Accuracy of the row’s model minus that of the column’s, in points. Outlined: p ≤ "
        f"{LEVEL:g} after Holm’s adjustment.",
        "model / model",
        names,
        numbers,
        "points",
        frozenset({*differing, *((column, row) for row, column in differing)}),
    )


def _agreement_maps(names: Sequence[str], pairs: Sequence[Mapping[str, Any]]) -> list[doc.HeatMap]:
    """Return the heat maps of kappa, of equal answers, and of equal errors if there are any."""
    maps: dict[str, tuple[doc.Scale, str]] = {
        "kappa": (
            "coefficient",
            "Error consistency: Cohen’s kappa of being right on the same questions. 0: as "
            "independent models; 1: on exactly the same.",
        ),
        "same": (
            "share",
            "Prediction overlap: share of questions with the same answer. It rises with accuracy.",
        ),
        "same_error": (
            "share",
            "Agreement on errors: of the questions that both get wrong, the share with the same "
            "wrong choice.",
        ),
    }
    return [
        doc.HeatMap.of_pairs(
            caption,
            "model / model",
            names,
            {(pair["first"], pair["second"]): pair[name] for pair in pairs},
            scale,
        )
        for name, (scale, caption) in maps.items()
        if any(pair[name] is not None for pair in pairs)
    ]


_RESTARTS = fields(
    {
        "model": "The model whose architecture several runs with random weights have.",
        "runs": "Their labels.",
        "accuracy": "Their mean accuracy.",
        "deviation": "Standard deviation of their accuracies (n - 1).",
        "same": "Mean share of equal predictions over pairs of them.",
        "kappa": "Mean kappa over pairs; null if one is null.",
    },
    {"deviation": "sd", "same": "same answer"},
    hidden=("runs",),
)


def _restarts(rows: Sequence[RunRow], pairs: Sequence[Contrast]) -> list[dict[str, Any]]:
    """Summarise random restarts, for each architecture that has several."""
    drawn = [row for row in rows if _of(row).model.random_weights is not None]
    restarts = []
    for model, own in group_by(drawn, lambda row: _of(row).model.id).items():
        among = [pair for pair in pairs if pair.first in own and pair.second in own]
        if not among:
            continue
        kappas = [pair.agreement.kappa for pair in among]
        values = [row.accuracy.value for row in own]
        restarts.append(
            {
                "model": model,
                "runs": [row.label for row in own],
                "accuracy": fmean(values),
                "deviation": stdev(values),
                "same": fmean(pair.same.value for pair in among),
                "kappa": None if None in kappas else fmean(map(_value, kappas)),
            }
        )
    return restarts


_MEAN = fields(
    {
        "first": "Label of one model.",
        "second": "Label of the other.",
        "same": "Share of equal answers: mean over probes, which are taken to be independent.",
        "same_error": "Share of equal wrong choices; null if it is null on a probe.",
        "kappa": "Likewise.",
    }
)


def _mean(groups: Sequence[Sequence[Contrast]]) -> Section | None:
    """Average agreement over probes, if there are several and all models were run on all."""
    named = [
        {frozenset((pair.first.label, pair.second.label)): pair for pair in pairs}
        for pairs in groups
    ]
    first, *others = named or [{}]
    if not others or any(pair.keys() != first.keys() for pair in others):
        return None
    rows = []
    for labels, pair in first.items():
        own = [group[labels] for group in named]
        rows.append(
            {
                "first": pair.first.label,
                "second": pair.second.label,
                "same": mean_of([pair.same for pair in own]),
                "same_error": mean_of([pair.agreement.errors for pair in own]),
                "kappa": mean_of([pair.agreement.kappa for pair in own]),
            }
        )
    names = list(
        dict.fromkeys(row.label for pair in groups[0] for row in (pair.first, pair.second))
    )
    note = "Each probe has equal weight. Intervals assume that the probes are independent."
    return Section(
        {},
        [DataTable("mean", rows, _MEAN)],
        [doc.Text(note, note=True), *_agreement_maps(names, rows)],
        heading=f"Mean over {len(groups)} probes",
    )


_WORDINGS = fields(
    {
        "template": "The wording's id.",
        "accuracy": "Mean accuracy over the runs.",
        "rows": "Rows with it that all runs scored.",
        "clusters": "Their clusters.",
        "runs": "Accuracy of each run.",
    },
    {"template": "wording", "accuracy": "mean"},
    hidden=("runs",),
)


def _wordings(finished: Sequence[Finished], seed: int) -> list[dict[str, Any]]:
    """Average the accuracy of the runs by wording, on the rows that all runs scored."""
    if len({run.results.probe.fingerprint for run in finished}) > 1:
        return []
    items, answers = gather(finished)
    whole, cluster = np.flatnonzero(answers.scored.all(axis=1)), cluster_codes(items)
    tries = np.full(len(cluster), len(finished))
    wordings = []
    for template, of_template in named_rows(items["template"].take(whole)):
        rows = whole[of_template]
        right = answers.right[rows]
        mean = intervals.repeated_share(right.sum(axis=1), tries[rows], cluster[rows], seed)
        means = right.mean(axis=0).tolist()
        counts = {"rows": rows.size, "clusters": np.unique(cluster[rows]).size}
        wordings.append({"template": template, "accuracy": mean, **counts, "runs": means})
    # The one with the highest mean is what Talmor et al. (2020) choose.
    ordered = sorted(wordings, key=lambda wording: -wording["accuracy"].value)
    return ordered if len(ordered) > 1 else []


def _config_of_control(pair: Contrast) -> str | None:
    """Return the second run's config, if it is a control of the first's probe, of one model."""
    first, second = pair.first.runs[0], pair.second.runs[0]
    if pair.first.axes["run"] != pair.second.axes["run"] or not are_configs(first, second):
        return None
    if first.spec is not None and second.spec is not None:
        return second.spec.run.config if first.spec.run.config is None else None
    name, of_control = (run.results.probe.name for run in (first, second))
    config = of_control.removeprefix(f"{name}-")
    return None if config == of_control else config


_CONTROLS: dict[str, Column[Contrast]] = {
    "run": Column("The run on the probe.", lambda pair: pair.first.label),
    "control": Column("The control's config.", _config_of_control),
    "rows": Column("Rows that were scored in both.", lambda pair: pair.clusters.size),
    "clusters": CONTRAST["clusters"],
    "in_probe": Column(
        "Accuracy on these rows of the probe.", lambda pair: pair.accuracies[0], head="accuracy"
    ),
    "in_control": Column(
        "Accuracy in the control.", lambda pair: pair.accuracies[1], head="in the control"
    ),
    "difference": Column(
        "Control minus probe, in percentage points: the same as in the table of contrasts.",
        lambda pair: pair.difference,
        cells.points,
        "control minus probe, points",
    ),
    "sensitivity": Column(
        "Probe minus control, or 0 where the control is answered as well: what LangSense averages "
        "over a learning curve (Talmor et al. 2020).",
        lambda pair: max(0.0, -pair.difference.value),
        None,
    ),
    "p_value": CONTRAST["p_value"],
}


COMPARE = Study(
    name=__name__,
    help=__doc__,
    expand=_expand,
    summarise=_summarise,
    collect=_collect,
    options=CompareOptions,
    fixed=frozenset({"config", "facts"}),
    nested=True,
)
"""The study."""
