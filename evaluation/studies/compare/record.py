"""The contents of ``compare.json``: what each number means, and how it is computed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from statistics import fmean, stdev

import numpy as np
from pydantic import Field

from evaluation.items.types import ids_of
from evaluation.results import intervals
from evaluation.results.analyses.generated import generated_of
from evaluation.results.breakdown import cluster_codes, named_rows
from evaluation.results.pairs import holm, mcnemar
from evaluation.results.types import METRIC_OF, Estimate, Model
from evaluation.results.words import natural_key
from evaluation.runs.reading import SplitReader
from evaluation.runs.spec import RunSpec
from evaluation.studies.base import Finished, StudyRequest
from evaluation.studies.compare.agreement import Agreement, MeanAgreement, agreement_of, mean_of
from evaluation.studies.counting import group_by
from evaluation.studies.labels import Labelled, labelled_by_probe
from evaluation.studies.pairing import PairedRows, are_configs, are_renderings, gather, pair_rows
from evaluation.studies.records import Record
from kbprobe.errors import UsageError, require
from kbprobe.options import Options


class CompareOptions(Options):
    """What is compared, and how."""

    controls: tuple[str, ...] = Field(
        (),
        description="Configs of the probes that ask the same rows in another wording, such as "
        "no_language,perturbed: each model is compared with itself on them (with --model).",
    )
    partial: bool = Field(False, description="Compare the items that both have, if not all.")
    seed: int = Field(0, ge=0, description="Seed of the bootstrap.")


class ComparedRun(Record):
    """One of the runs compared."""

    label: str = Field(description="The model, and what distinguishes it from the others.")
    folder: str
    model: str
    revision: str | None
    random_weights: int | None = Field(
        description="Seed that its weights were drawn with; null where they were not."
    )
    dtype: str
    scorer: str
    written: bool = Field(False, description="Whether the model wrote answers to choose.")
    metric: str = Field(description="What predictions were made with: acc, acc_norm, ...")
    group: int = Field(description="Runs of one group are on the same rows: they are compared.")
    chance: float = Field(description="Mean of one over the number of choices.")
    accuracy: Estimate = Field(description="Accuracy on all rows that it scored.")


class FamilyDifference(Model):
    """The two runs on the rows of one distractor family."""

    family: str
    first: float = Field(description="Accuracy of the first run.")
    second: float
    difference: Estimate = Field(description="Second minus first, in percentage points.")


class Control(Model):
    """A model on a control, and on the same rows of the probe itself."""

    config: str = Field(description="The control's config.")
    probe: Estimate = Field(description="Share of the rows answered right in the probe.")
    control: Estimate = Field(description="Share of the rows answered right in the control.")
    difference: Estimate = Field(description="Probe minus control, in percentage points.")
    sensitivity: float = Field(
        description="The difference, or 0 where the control is answered as well: what LangSense "
        "averages over a learning curve (Talmor et al. 2020)."
    )


class Pair(Record):
    """Two runs on the same items."""

    probe: str
    second_probe: str | None = Field(
        None,
        description="The probe of the second run where it is another config of the same build, "
        "such as a control: rows are paired by their ids. Null where both are on the same probe.",
    )
    split: str
    first: ComparedRun
    second: ComparedRun
    only_first: int = Field(description="Items that only the first run was asked.")
    only_second: int
    set_aside: int = Field(description="Items asked of both, and not scored by one or both.")
    compared: int = Field(description="Items scored by both: all numbers below are of them.")
    clusters: int
    accuracy_first: Estimate
    accuracy_second: Estimate
    difference: Estimate = Field(description="Second minus first, in percentage points.")
    only_first_right: int = Field(description="Items that the first run alone gets right.")
    only_second_right: int
    mcnemar_p: float = Field(
        description="Exact McNemar test, two-sided: takes rows to be independent."
    )
    p_value: float = Field(
        description="Exact randomisation test, two-sided: the runs swapped in whole clusters. The "
        "same as McNemar's where every cluster is a row, and the one to quote elsewhere."
    )
    prediction_overlap: float = Field(description="Share of items with the same prediction.")
    both_wrong: int
    error_overlap: float | None = Field(
        description="Share of the items both get wrong with the same wrong choice; null if none."
    )
    agreement: Agreement = Field(description="How similar their answers are.")
    control: Control | None = Field(
        description="One model on a probe (first) and on a control of it (second); null for other "
        "pairs."
    )
    by_family: list[FamilyDifference]


class Wording(Model):
    """A wording, by the accuracy of all runs on the rows that have it."""

    template: str = Field(description="Its id.")
    accuracy: Estimate = Field(description="Mean accuracy over the runs.")
    runs: list[float] = Field(description="Accuracy of each run.")


class Restarts(Model):
    """Models of one architecture whose weights were drawn at random."""

    group: int = Field(description="The group that their runs are of.")
    model: str = Field(description="The model whose architecture they have.")
    labels: list[str] = Field(description="Labels of their runs.")
    accuracy: float = Field(description="Their mean accuracy.")
    deviation: float = Field(description="Standard deviation of their accuracies (n - 1).")
    overlap: float = Field(description="Mean share of equal predictions over pairs of them.")
    kappa: float | None = Field(description="Mean kappa over pairs; null if one is null.")


SHOWN_PAIRS = 10
"""Number of pairs that ``print`` shows of a comparison."""


class Comparison(Model):
    """Several runs, compared pairwise on the same rows."""

    schema_version: str = "1.3"
    runs: list[ComparedRun]
    pairs: list[Pair] = Field(description="Each run with every later one of its group.")
    warnings: list[str] = Field(
        default_factory=list,
        description="What else the runs differ in that accuracies may be due to.",
    )
    holm_p: list[float] = Field(
        description="The pairs' p values, adjusted for their number (Holm, 1979)."
    )
    prediction_overlap: list[list[float | None]] = Field(
        description="Share of identical predictions, run by run; 1 on the diagonal; null for runs "
        "of two groups."
    )
    difference: list[list[float | None]] = Field(
        description="Accuracy of the row's run less that of the column's, in points; null as above."
    )
    wordings: list[Wording] = Field(
        default_factory=list,
        description="Each wording, that with the highest mean over the runs first (Talmor et al. "
        "2020 choose it); empty unless all runs are on the same rows, of several wordings.",
    )
    restarts: list[Restarts] = Field(
        default_factory=list, description="Random restarts, where there are two or more."
    )
    mean: list[MeanAgreement] = Field(
        default_factory=list,
        description="Agreement of each two models, averaged over the probes; empty if there is "
        "one, or not all models are on all probes.",
    )

    def __repr__(self) -> str:
        lines = (
            f"{pair.second.label} less {pair.first.label}: {pair.difference.value:+.1f} points "
            f"[{pair.difference.low:+.1f}, {pair.difference.high:+.1f}]"
            for pair in self.pairs[:SHOWN_PAIRS]
        )
        more = len(self.pairs) - SHOWN_PAIRS
        return "\n".join(
            [f"Comparison of {len(self.runs)} runs", *lines, *([f"and {more} more"] * (more > 0))]
        )

    __str__ = __repr__

    def of_group(self, group: int) -> Comparison:
        """Return the comparison of the runs of one group."""
        at = [number for number, run in enumerate(self.runs) if run.group == group]
        own = [number for number, pair in enumerate(self.pairs) if pair.first.group == group]
        runs = [self.runs[number] for number in at]
        return self.model_copy(
            update={
                "runs": runs,
                "pairs": [self.pairs[number] for number in own],
                "warnings": scoring_warnings(runs),
                "holm_p": [self.holm_p[number] for number in own],
                "restarts": [one for one in self.restarts if one.group == group],
                "prediction_overlap": [[self.prediction_overlap[i][j] for j in at] for i in at],
                "difference": [[self.difference[i][j] for j in at] for i in at],
            }
        )


def expand(request: StudyRequest) -> list[RunSpec]:
    """Return the runs of each model on each probe and its controls."""
    options: CompareOptions = request.options
    configs = (None, *options.controls)
    if len(request.models) * len(configs) == 1:
        raise UsageError(
            "compare takes two runs or more: name another --model, configs of the probe with "
            "--controls no_language,perturbed, or folders of results without --model"
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


def collect(request: StudyRequest, finished: Sequence[Finished]) -> Comparison:
    """Compare results in folders."""
    if request.options.controls:
        raise UsageError(
            "--controls names configs to evaluate, with --model. Folders of results on a probe and "
            "on its controls are compared without it"
        )
    return summarise(request, finished)


def summarise(request: StudyRequest, finished: Sequence[Finished]) -> Comparison:
    """Compare each pair of runs on the items that both scored."""
    require("statsmodels", "eval", "comparing results")
    options: CompareOptions = request.options
    groups = labelled_by_probe(finished, "compare", together=are_renderings)
    held = [(one, _describe(one, group)) for group, own in enumerate(groups) for one in own]
    # The runs are listed in the given order.
    places = {id(run): place for place, run in enumerate(finished)}
    held.sort(key=lambda described: places[id(described[0].run)])
    runs, at = [run for _, run in held], range(len(held))
    compared = {
        (i, j): _compare(held[i], held[j], options)
        for i, j in combinations(at, 2)
        if runs[i].group == runs[j].group
    }
    pairs = list(compared.values())
    overlap, gains = {(i, i): 1.0 for i in at}, {(i, i): 0.0 for i in at}
    for (i, j), pair in compared.items():
        overlap[i, j] = overlap[j, i] = pair.prediction_overlap
        gains[i, j], gains[j, i] = 0.0 - pair.difference.value, pair.difference.value
    return Comparison(
        runs=runs,
        pairs=pairs,
        warnings=scoring_warnings(runs),
        holm_p=holm([pair.p_value for pair in pairs]),
        prediction_overlap=[[overlap.get((i, j)) for j in at] for i in at],
        difference=[[gains.get((i, j)) for j in at] for i in at],
        wordings=_wordings(finished, options.seed),
        restarts=_restarts(runs, pairs),
        mean=_means(pairs),
    )


def _restarts(runs: Sequence[ComparedRun], pairs: Sequence[Pair]) -> list[Restarts]:
    """Summarise random restarts, for each architecture that has several."""
    random = (run for run in runs if run.random_weights is not None)
    by_model = group_by(random, lambda run: (run.group, run.model))
    found = []
    for (group, model), held in by_model.items():
        if len(held) < 2:
            continue
        among = [pair.agreement for pair in pairs if pair.first in held and pair.second in held]
        kappas = [one.kappa.value for one in among if one.kappa is not None]
        values = [run.accuracy.value for run in held]
        found.append(
            Restarts(
                group=group,
                model=model,
                labels=[run.label for run in held],
                accuracy=fmean(values),
                deviation=stdev(values),
                overlap=fmean(one.overlap.value for one in among),
                kappa=fmean(kappas) if len(kappas) == len(among) else None,
            )
        )
    return found


def _means(pairs: Sequence[Pair]) -> list[MeanAgreement]:
    """Average agreement over probes, if there are several and all models were run on all."""
    groups: dict[int, dict[frozenset[str], Pair]] = {}
    for pair in pairs:
        named = groups.setdefault(pair.first.group, {})
        named[frozenset((pair.first.label, pair.second.label))] = pair
    first, *others = groups.values()
    if not others or any(one.keys() != first.keys() for one in others):
        return []
    if len(pairs) != len(groups) * len(first):
        return []  # Runs on several configs share their labels.
    return [
        mean_of(
            (pair.first.label, pair.second.label),
            [one[names].agreement for one in groups.values()],
            [one[names].compared for one in groups.values()],
        )
        for names, pair in first.items()
    ]


def _wordings(finished: Sequence[Finished], seed: int) -> list[Wording]:
    """Average the accuracy of the runs by wording, on the rows that all runs scored."""
    if len({one.results.probe.fingerprint for one in finished}) > 1:
        return []
    items, answers = gather(finished)
    whole, cluster = np.flatnonzero(answers.scored.all(axis=1)), cluster_codes(items)
    tries = np.full(len(cluster), len(finished))
    found = []
    for template, of_template in named_rows(items["template"].take(whole)):
        rows = whole[of_template]
        right = answers.right[rows]
        mean = intervals.repeated_share(right.sum(axis=1), tries[rows], cluster[rows], seed)
        means = right.mean(axis=0).tolist()
        found.append(Wording(template=template, accuracy=mean, runs=means))
    ordered = sorted(found, key=lambda one: -one.accuracy.value)
    return ordered if len(ordered) > 1 else []


def _describe(one: Labelled, group: int) -> ComparedRun:
    results = one.run.results
    return ComparedRun.of(
        one.run,
        label=one.label,
        folder=str(one.run.folder),
        written=generated_of(results) is not None,
        metric=METRIC_OF[results.metrics.normalization],
        group=group,
    )


def scoring_warnings(runs: Sequence[ComparedRun]) -> list[str]:
    """Return warnings if the runs score choices, or normalize scores, in different ways."""
    warnings = []
    written = [run.label for run in runs if run.written]
    if 0 < len(written) < len(runs):
        warnings.append(
            f"choices are compared by written answers, or by letters, in {', '.join(written)}, and "
            "by scores such as log-likelihoods elsewhere: a difference may be due to how the model "
            "was asked alone"
        )
    if len({run.metric for run in runs}) == 1:
        return warnings
    by_metric = {metric: name for name, metric in METRIC_OF.items()}
    told = "; ".join(
        f"{run.label}: {run.metric} (--normalization {by_metric[run.metric]})" for run in runs
    )
    return [
        *warnings,
        f"the runs compare choices by scores of different normalization ({told}), and part of a "
        "difference may be due to that alone. Evaluate them with the same one, such as "
        "--normalization sum, which every scorer takes",
    ]


def _compare(
    one: tuple[Labelled, ComparedRun], two: tuple[Labelled, ComparedRun], options: CompareOptions
) -> Pair:
    first, second, seed = one[0].run, two[0].run, options.seed
    paired = pair_rows(first, second, partial=options.partial)
    (right, also_right), cluster = paired.right, paired.clusters
    same, wrong = paired.same, ~right & ~also_right
    alone, also_alone = int((right & ~also_right).sum()), int((also_right & ~right).sum())
    config = _config_of_control(one, two)
    return Pair.of(
        first,
        second_probe=second.results.probe.name if are_configs(first, second) else None,
        only_first=paired.only_first,
        only_second=paired.only_second,
        set_aside=paired.set_aside,
        first=one[1],
        second=two[1],
        compared=right.size,
        clusters=int(cluster.max()) + 1,
        accuracy_first=intervals.accuracy(right, cluster, seed),
        accuracy_second=intervals.accuracy(also_right, cluster, seed),
        difference=intervals.paired_difference(right, also_right, cluster, seed),
        only_first_right=alone,
        only_second_right=also_alone,
        mcnemar_p=mcnemar(alone, also_alone),
        p_value=paired.p_value,
        prediction_overlap=float(same.mean()),
        both_wrong=int(wrong.sum()),
        error_overlap=float(same[wrong].mean()) if wrong.any() else None,
        agreement=agreement_of(right, also_right, same, paired.choices, cluster, seed),
        control=None if config is None else _control(paired, config, seed),
        by_family=[
            FamilyDifference(
                family=family,
                first=float(right[rows].mean()),
                second=float(also_right[rows].mean()),
                difference=intervals.paired_difference(
                    right[rows], also_right[rows], cluster[rows], seed
                ),
            )
            for family, rows in sorted(
                named_rows(paired.first["distractor_family"]),
                key=lambda named: natural_key(named[0]),
            )
        ],
    )


def _config_of_control(
    one: tuple[Labelled, ComparedRun], two: tuple[Labelled, ComparedRun]
) -> str | None:
    """Return the second run's config, if it is a control of the first's probe, of one model."""
    first, second = one[0].run, two[0].run
    if one[1].label != two[1].label or not are_configs(first, second):
        return None
    if first.spec is not None and second.spec is not None:
        return second.spec.run.config if first.spec.run.config is None else None
    name, of_control = (run.results.probe.name for run in (first, second))
    config = of_control.removeprefix(f"{name}-")
    return None if config == of_control else config


def _control(paired: PairedRows, config: str, seed: int) -> Control:
    (right, in_control), cluster = paired.right, paired.clusters
    difference = intervals.paired_difference(in_control, right, cluster, seed)
    return Control(
        config=config,
        probe=intervals.accuracy(right, cluster, seed),
        control=intervals.accuracy(in_control, cluster, seed),
        difference=difference,
        sensitivity=max(0.0, difference.value),
    )
