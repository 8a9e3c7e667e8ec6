"""The report: ``report.html``, one page made from ``results.json`` and ``predictions.parquet``.

The page depends only on the two files (and on the two files of the facts, if rows rest on facts),
not on the date or the machine. It is self-contained, runs no scripts and loads nothing from
elsewhere: its content security policy forbids both, whatever the texts of a probe may contain.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from evaluation.names import model_name
from evaluation.report import cells
from evaluation.report.breakdowns import heat_map, joined_sizes
from evaluation.report.html import render_page
from evaluation.results.analyses import all_analyses
from evaluation.results.analyses.base import ResultFiles
from evaluation.results.analyses.facts import facts_of
from evaluation.results.analyses.labels import labels_of
from evaluation.results.breakdown import by_frequency, by_negation, headline_rows
from evaluation.results.examples import (
    SURE,
    WORST_LEAST,
    Cluster,
    confident_mistakes,
    worst_clusters,
)
from evaluation.results.examples import drawn as examples_of
from evaluation.results.intervals import linear
from evaluation.results.pairs import read_pair
from evaluation.results.parts import SMALL, shares
from evaluation.results.types import (
    FACTS,
    FEW_WORDS,
    METRIC_OF,
    PER,
    PREDICTIONS,
    REPORT,
    RESULTS,
    Estimate,
    Group,
    Metrics,
    Results,
    Similarity,
    remarks,
)
from evaluation.results.verdicts import other_verdicts, wording_remark
from evaluation.results.words import (
    Place,
    clip,
    counts,
    difference,
    interval,
    percent,
    place,
    points,
    remarks_on_rows,
)
from kbprobe import document as doc
from kbprobe.errors import UsageError
from kbprobe.files import write_file

if TYPE_CHECKING:
    import pyarrow as pa

SHOWN_GROUPS = 12
LISTED_GROUPS = 200
"""Maximum number of templates shown at once, and in all, including those folded away."""

SAMPLED = 6
"""Number of questions of each kind in the sample."""

LENGTH_OF = {
    "sum": "not divided by length",
    "char": "divided by the choice's characters",
    "byte": "divided by the choice's bytes",
    "token": "divided by the choice's tokens",
}
"""What a choice's score is divided by before choices are compared, by normalization."""


class Share(NamedTuple):
    """A share with the ends of its interval."""

    value: float
    low: float
    high: float


def make_report(folder: Path) -> Path:
    """Write ``report.html`` into a folder of results; return its path.

    The same files give the same bytes. If rows rest on facts, the subfolder ``facts`` holds the
    results of the facts; without it no examples of facts are shown.

    Raises:
        UsageError: a file of results is missing or damaged, or the two are not of the same run.
        MissingDependencyError: the page has figures, and matplotlib is not installed.
        OSError: the page cannot be written.
    """
    results, predictions = read_pair(folder)
    return write_page(folder, results, predictions, _facts_of(folder, results))


def write_page(
    folder: Path, results: Results, predictions: pa.Table, facts: pa.Table | None = None
) -> Path:
    """Write the page of results that are at hand; see :func:`make_report` and :func:`document`."""
    page = render(results, predictions, facts)
    write_file(folder / REPORT, page.encode("utf-8", errors="backslashreplace"))
    return folder / REPORT


def _facts_of(folder: Path, results: Results) -> pa.Table | None:
    """Read the predictions of the facts that rows rest on; None if there are none."""
    facts = facts_of(results)
    if facts is None or not (folder / FACTS / RESULTS).is_file():
        return None
    read, predictions = read_pair(folder / FACTS)
    metrics = read.metrics
    if (metrics.items, metrics.accuracy) != (facts.asked, facts.accuracy):
        raise UsageError(
            f"{folder / FACTS} holds other facts than those that {folder / RESULTS} is about. "
            "Evaluate again."
        )
    return predictions


def render(results: Results, predictions: pa.Table, facts: pa.Table | None = None) -> str:
    """Return the page of a run: see :func:`document`.

    Raises:
        MissingDependencyError: the page has figures, and matplotlib is not installed.
    """
    source = f"{RESULTS} and {PREDICTIONS}"
    if facts is not None:
        source += f", here and in the folder {FACTS},"
    return render_page(document(results, predictions, facts), source)


def document(
    results: Results, predictions: pa.Table, facts: pa.Table | None = None
) -> doc.Document:
    """Return the document of results, their predictions, and those of the facts, if any."""
    predictions = headline_rows(predictions)
    files = ResultFiles(results, predictions, facts)
    analyses = [
        doc.Section(analysis.title, parts, analysis.link, analysis.name)
        for analysis in all_analyses()
        if (parts := analysis.section(files))
    ]
    metrics, probe = results.metrics, results.probe
    clustered = metrics.clusters < metrics.accuracy.n or metrics.strict_accuracy is not None
    return doc.Document(
        f"{probe.name} · {probe.split}",
        model_name(results.model.id),
        [
            _result(results, predictions),
            doc.Section("Hops and distractors", _hops(metrics), name="hops"),
            *analyses,
            doc.Section(
                "Clusters: right about all of it?", _clusters(metrics), "Clusters", "clusters"
            ),
            doc.Section(
                "Calibration: does it know when it is right?",
                _calibration(metrics),
                "Calibration",
                "calibration",
            ),
            doc.Section("Breakdowns", _breakdowns(results, predictions), name="breakdowns"),
            doc.Section("Worst clusters", _worst(results, predictions, clustered), name="worst"),
            doc.Section("Questions", _samples(results, predictions), name="samples"),
            doc.Section("Provenance", [provenance(results)], name="provenance"),
        ],
    )


def _result(results: Results, predictions: pa.Table) -> doc.Section:
    """Return the first section: the numbers, what is reached without knowledge, and caveats."""
    metrics, model = results.metrics, results.model
    tone, words = verdict(metrics)
    if other := other_verdicts(metrics):
        tone, words = "partial", f"{words}; but {other}"
    first, *further = summary(results)
    examples = [
        example
        for correct in (True, False)
        for example in examples_of(predictions, metrics.normalization, 1, correct=correct)
    ]
    parameters = f", {model.parameters:,} parameters" if model.parameters else ""
    tuned = ", **fine-tuned before it was scored**" if model.finetuning else ""
    scorer = results.scoring.scorer.replace("_", " ").replace("lm", "LM")
    return doc.Section(
        "",
        [
            doc.Conclusion(words, first, tone),
            _tiles(results),
            _reached(metrics),
            _shortcuts(metrics),
            doc.Heading("One of the questions") if examples else None,
            *examples[:1],
            doc.Heading("How far to trust it"),
            *map(doc.Text, further),
            doc.Caveats(cautions(results)),
            doc.Text(
                f"{model.architecture}{parameters}, {model.dtype} on {model.device}{tuned}. Scored "
                f"as {scorer}: {results.scoring.score}, {LENGTH_OF[metrics.normalization]} "
                f"({METRIC_OF[metrics.normalization]}).",
                note=True,
            ),
        ],
    )


def _tiles(results: Results) -> doc.Tiles:
    metrics, probe = results.metrics, results.probe
    tiles = {"Accuracy": cells.headline(metrics.accuracy)}
    if metrics.near_accuracy is not None and metrics.random_accuracy is not None:
        random = metrics.random_accuracy
        near = cells.headline(metrics.near_accuracy)
        line = f"random ones: {percent(random.value)} ({interval(random)}) of {counts(random)}"
        tiles["Near distractors"] = near._replace(lines=(*near.lines, line))
    tiles["Chance"] = doc.Cell(percent(metrics.chance), "one over the choices")
    if metrics.strongest_baseline is not None:
        name, value = metrics.strongest_baseline
        known = metrics.baseline_intervals.get(name)
        ends = f"{percent(known[0])} to {percent(known[1])}" if known else "not recorded"
        tiles["Strongest baseline"] = doc.Cell(percent(value), f"95%: {ends}", (clip(name, 60),))
    if metrics.similarity is not None:
        beyond = metrics.similarity.difference
        ends = f"points, 95%: {points(beyond.low)} to {points(beyond.high)}"
        of = f"{_similarity_by(metrics.similarity)}: {percent(metrics.similarity.accuracy.value)}"
        tiles["Beyond similarity"] = doc.Cell(points(beyond.value), ends, (of,))
    if metrics.strict_accuracy is not None:
        less = metrics.strict_difference
        lines = () if less is None else (f"{difference(less)}",)
        strict = percent(metrics.strict_accuracy.value)
        tiles["Whole concepts right"] = doc.Cell(strict, "strict cluster accuracy", lines)
    scored = f"of {probe.split_rows or metrics.items:,}"
    if metrics.strict_accuracy is not None:
        of = f" of {probe.split_clusters:,}" if probe.split_clusters else ""
        scored = f"{scored}; {metrics.clusters:,}{of} clusters"
    tiles["Questions scored"] = doc.Cell(f"{metrics.scored:,}", scored)
    return doc.Tiles(tiles)


def _reached(metrics: Metrics) -> doc.Table:
    """Return the table of the accuracies, and of what is reached without knowledge."""
    chance, strict = metrics.chance, metrics.strict_accuracy
    named: list[tuple[str, Estimate | None]] = [
        ("accuracy", metrics.accuracy),
        ("accuracy, near distractors", metrics.near_accuracy),
        ("accuracy, random distractors", metrics.random_accuracy),
    ]
    rows: list[doc.Row] = [
        (name, share, counts(share), doc.Bar(share, chance)) for name, share in named if share
    ]
    if strict is not None:
        name = "strict cluster accuracy: every question about a concept"
        rows.append((name, strict, f"{strict.n:,} clusters", doc.Bar(strict, None, "soft")))
    if metrics.strongest_baseline is not None:
        name, value = metrics.strongest_baseline
        ends = metrics.baseline_intervals.get(name)
        what, share, bar = _shortcut(f"baseline: {name}", value, ends, chance)
        rows.append((what, share, "", bar))
    caption = "Beside what is reached without knowledge. The dashed line is chance."
    return doc.Table(("what", "value", "of", ""), rows, caption)


def _shortcuts(metrics: Metrics) -> doc.Table | None:
    """Return the table of all baselines; None if there are no several."""
    if len(metrics.baselines) < 2:
        return None
    return doc.Table(
        ("baseline", "accuracy", ""),
        [
            _shortcut(name, value, metrics.baseline_intervals.get(name), metrics.chance)
            for name, value in metrics.ranked_baselines
        ],
        "Accuracy of each baseline, all families of distractors together: of the probe’s audit, of "
        "those recorded with the probe, and of similarity on the rows evaluated",
        fold=f"All {len(metrics.baselines)} baselines",
    )


def _shortcut(name: str, value: float, ends: tuple[float, float] | None, chance: float) -> doc.Row:
    """Return a row with the accuracy of a baseline, whose interval the audit may not have."""
    if ends is None:
        return (
            clip(name, 80),
            doc.Cell(percent(value), "not recorded"),
            doc.Bar(value, chance, "reference"),
        )
    share = Share(value, *ends)
    return (clip(name, 80), share, doc.Bar(share, chance, "reference"))


def _hops(metrics: Metrics) -> list[doc.Part | None]:
    heat = heat_map(
        metrics.table,
        "Accuracy by hops (rows) and by distractor family and distance (columns)",
        totals=True,
        chance=metrics.chance,
    )
    if heat is None:
        text = "The rows do not differ in hops or in distractors, or do not say, so there is "
        return [doc.Text(f"{text}nothing to compare.", note=True)]
    apart = "; random ones, the easy reference, stand apart" if len(heat.apart) > 1 else ""
    return [
        doc.Text(
            "Accuracy, its 95% interval and the rows of each cell. Down: hops k from the concept "
            "to the right answer. Across: where the wrong choices come from, and their distance "
            f"k′{apart}.",
            note=True,
        ),
        heat,
        doc.Text(
            f"The mark on the scale is chance, {percent(metrics.chance)}: colours are of what is "
            "above or below it, as a share of what there is above it. Hatched cells have fewer "
            f"than {SMALL} rows: too few to read.",
            note=True,
        ),
        _oracles(metrics),
    ]


def _oracles(metrics: Metrics) -> doc.Table | None:
    """Return the table of what oracles with partial knowledge reach; None if there are none."""
    if not metrics.oracles:
        return None
    own = (metrics.near_accuracy, metrics.random_accuracy, metrics.accuracy)
    names = ("near", "random", "all")
    return doc.Table(
        ("who knows only", *names),
        [
            *((knows, *map(shares.get, names)) for knows, shares in metrics.oracles.items()),
            ("this model", *(share and share.value for share in own)),
        ],
        "What the questions need: the accuracy of oracles that know a part of what is asked, and "
        "of this model",
    )


def _clusters(metrics: Metrics) -> list[doc.Part | None]:
    sizes = joined_sizes(metrics)
    strict = metrics.strict_accuracy
    if strict is None or not sizes:
        named = metrics.clusters < metrics.accuracy.n
        text = (
            "No cluster was scored whole, so strict cluster accuracy is not known."
            if named
            else "The rows name no clusters, so strict cluster accuracy has no meaning here."
        )
        return [doc.Text(text, note=True)]
    text = (
        "A cluster is all questions about one concept. A model that knows the concept gets them "
        "right together; one that is right by accident gets them all right ever more rarely the "
        "more there are."
    )
    if strict.n < metrics.clusters:
        left = metrics.clusters - strict.n
        text += f" The {left:,} clusters with a question that was set aside are left out."
    head = ("questions", "clusters", "row accuracy", "strict accuracy", "if independent", "")
    return [
        doc.Text(text, note=True),
        doc.Table(
            head,
            [
                (
                    s.label,
                    s.clusters,
                    s.accuracy,
                    s.strict,
                    s.independent,
                    doc.Bar(s.strict, s.independent),
                )
                for s in sizes
            ],
            "Strict accuracy by cluster size; the dashed line is what independent answers would "
            "give. Neighbouring sizes are joined where there are few clusters.",
        ),
    ]


def _calibration(metrics: Metrics) -> list[doc.Part | None]:
    bins = [entry for entry in metrics.calibration if entry.n]
    if not bins:
        return [doc.Text("Nothing was scored.", note=True)]
    error, brier = f"**{100 * metrics.calibration_error:.1f} points**", ""
    if metrics.brier is not None:
        brier = f" Brier score: **{metrics.brier:.3f}** (0 is best, 2 worst)."
    divided = (
        ""
        if metrics.normalization == "sum"
        else " Scores divided by length make flatter shares than the model’s own probabilities: "
        "here, read whether accuracy rises with confidence rather than how far it is from the "
        "dashed line. The error is not comparable with that of a run whose scores are sums "
        "(`--normalization sum`)."
    )
    return [
        doc.Text(
            "Confidence is the predicted choice’s share: the softmax over the choices of the score "
            "that is compared. Where accuracy is left of the dashed line, the mean confidence, the "
            f"model is surer than it is right. Expected calibration error: {error}, the mean "
            f"distance of the two over all predictions.{brier} Faint rows have fewer than {SMALL} "
            f"predictions, too few to read.{divided}",
            note=True,
        ),
        doc.Table(
            ("confidence", "predictions", "mean confidence", "accuracy", ""),
            [
                (
                    f"{percent(b.low)} to {percent(b.high)}",
                    b.n,
                    b.confidence,
                    b.accuracy,
                    doc.Bar(b.accuracy, b.confidence),
                )
                for b in bins
            ],
            "Accuracy by confidence; the dashed line is the mean confidence",
            faint=frozenset(row for row, entry in enumerate(bins) if entry.n < SMALL),
        ),
    ]


def _breakdowns(results: Results, predictions: pa.Table) -> list[doc.Part | None]:
    metrics = results.metrics
    used = METRIC_OF[metrics.normalization]
    named = [
        (f"{name}, {PER[how]}{' (used here)' if name == used else ''}", metrics.accuracies[name])
        for how, name in METRIC_OF.items()
        if name in metrics.accuracies
    ]
    caption = "Accuracy by how scores are normalized for the length of the choice"
    content = (
        doc.Heading("Content"),
        doc.Text(
            "What the questions ask about: common words, or names that an encyclopedia lists.",
            note=True,
        ),
        *_groups(metrics.by_content, "content", metrics.chance),
    )
    return [
        doc.Heading("Length normalization"),
        shares("what is compared", caption, named, metrics.chance)
        if len(named) > 1
        else doc.Text("There is nothing to normalize: scores are compared as they are.", note=True),
        doc.Heading("Wording"),
        *_groups(metrics.by_template, "wording", metrics.chance),
        doc.Heading("Part of speech"),
        *_groups(metrics.by_pos, "part of speech", metrics.chance),
        *(content if metrics.by_content else ()),
        *_by_negation(by_negation(predictions), metrics.chance),
        *_by_frequency(
            [] if FEW_WORDS in results.scoring.notes else by_frequency(predictions),
            metrics.chance,
            results.scoring.options.get("unigrams"),
        ),
    ]


def _by_negation(groups: Sequence[Group], chance: float) -> list[doc.Part]:
    """Return the accuracies by how texts are negated; nothing for other rows."""
    if not groups:
        return []
    named = [(group.name, group.accuracy) for group in groups]
    return [
        doc.Heading("Negation"),
        doc.Text(
            "How premise and hypothesis are negated, taken together: lexically by an antonym, "
            "explicitly by “not”.",
            note=True,
        ),
        shares("negation", "Accuracy by negation", named, chance),
    ]


def _by_frequency(groups: Sequence[Group], chance: float, corpus: str | None) -> list[doc.Part]:
    """Return the accuracies by the frequency of the word asked about, from the rarest."""
    if not groups:
        return []
    named = [(group.name, group.accuracy) for group in groups]
    return [
        doc.Heading("Frequency"),
        doc.Text(
            "How frequent the word asked about is, on the Zipf scale: 3 is once in a million words "
            f"of {Path(corpus or 'English').name}, and each unit ten times as often.",
            note=True,
        ),
        shares("Zipf frequency", "Accuracy by the frequency of the word", named, chance),
    ]


def _groups(groups: Sequence[Group], what: str, chance: float) -> list[doc.Part]:
    """Return the accuracies of groups of rows, those with the most rows first."""
    ordered = sorted(groups, key=lambda group: (-group.accuracy.n, group.name))
    named = [(group.name, group.accuracy) for group in ordered]
    if not named:
        return [doc.Text(f"The rows name no {what}.", note=True)]
    if len(named) == 1:
        return [doc.Text(f"All rows have the same {what}: {clip(named[0][0], 80)}.", note=True)]
    caption, rest = f"Accuracy by {what}", named[SHOWN_GROUPS:]
    if not rest:
        return [shares(what, caption, named, chance)]
    first = f"{caption}, the {SHOWN_GROUPS} with the most rows"
    listed = rest[: LISTED_GROUPS - SHOWN_GROUPS]
    further: list[doc.Part] = [shares(what, f"{caption}, continued", listed, chance)]
    if len(listed) < len(rest):
        left = len(rest) - len(listed)
        text = f"{left:,} more, all with fewer rows, are in {RESULTS}."
        further.append(doc.Text(text, note=True))
    return [
        shares(what, first, named[:SHOWN_GROUPS], chance),
        doc.Fold(f"The other {len(rest):,}", further),
    ]


def _reading(results: Results) -> doc.Text:
    length = LENGTH_OF[results.metrics.normalization]
    return doc.Text(
        "In each question the bar is a choice’s share of the softmax, and the number after it the "
        f"score that is compared: {results.scoring.score}, {length}.",
        note=True,
    )


def _worst(results: Results, predictions: pa.Table, clustered: bool) -> list[doc.Part]:
    if not clustered:
        return [doc.Text("The rows name no clusters.", note=True)]
    worst = worst_clusters(predictions, results.metrics.normalization)
    if not worst.shown:
        text = f"No cluster of at least {WORST_LEAST} scored questions has a wrong answer."
        return [doc.Text(text, note=True)]
    text = (
        f"Lowest accuracy among the {worst.eligible:,} clusters of at least {WORST_LEAST} scored "
        f"questions; of equals, the largest. In {worst.none_right:,} of these, no answer is right; "
        f"this would be so in about {worst.by_chance:.0f} if rows were right independently of each "
        "other."
    )
    folds = [_cluster(cluster, number == 0) for number, cluster in enumerate(worst.shown)]
    return [doc.Text(text, note=True), _reading(results), *folds]


def _cluster(cluster: Cluster, is_open: bool) -> doc.Fold:
    left = cluster.rows - len(cluster.questions)
    more = doc.Text(f"{left} more are in {PREDICTIONS}.", note=True) if left else None
    title = f"{clip(cluster.name, 120)}: {cluster.right} of {cluster.rows} right"
    return doc.Fold(title, [*cluster.questions, more], is_open)


def _samples(results: Results, predictions: pa.Table) -> list[doc.Part]:
    normalization = results.metrics.normalization
    wrong, right = (
        examples_of(predictions, normalization, SAMPLED, correct=correct)
        for correct in (False, True)
    )
    sure = confident_mistakes(predictions, normalization, SAMPLED)
    surest = f"The wrong predictions with the highest share, {percent(SURE)} or more, one from each"
    parts: list[doc.Part] = [_reading(results)]
    for title, about, questions in (
        ("Wrong and sure of it", f"{surest} cluster.", sure),
        ("Wrong, drawn at random", "Typical mistakes.", wrong),
        ("Right, drawn at random", "What a right answer looks like.", right),
    ):
        parts += [doc.Heading(title), doc.Text(about, note=True), *questions]
        if not questions:
            parts.append(doc.Text("There are none.", note=True))
    return parts


def summary(results: Results) -> list[str]:
    """Return sentences on the headline number and how far it can be trusted."""
    metrics = results.metrics
    accuracy = metrics.accuracy
    right = round(accuracy.value * accuracy.n)
    if accuracy.method != "wilson":
        trust = (
            f"is over the {metrics.clusters:,} clusters, not over the rows: questions "
            "about one concept tend to be right or wrong together, so ten about one concept "
            "say less than ten about ten."
        )
    else:
        trust = (
            "takes the questions to be independent of each other, as no two rows "
            "share a cluster; it is too narrow if some of them ask about the same thing."
        )
    sentences = [
        f"The model picks the right choice for {right:,} of {accuracy.n:,} scored questions: "
        f"{percent(accuracy.value)}, where guessing gives {percent(metrics.chance)}.",
        f"The 95% interval, {interval(accuracy)}, {trust}",
        _against_floor(metrics),
    ]
    if metrics.similarity is not None:
        sentences.append(_against_similarity(metrics.similarity))
    elif labels_of(results) is None:
        sentences.append(
            "How far similarity alone gets was not measured: the rows all choose among the same "
            "few answers, or no choice is more similar to its question than another."
        )
    strict, difference = metrics.strict_accuracy, metrics.strict_difference
    if strict is not None and difference is not None:
        sentences.append(
            f"It gets every question right in {percent(strict.value)} of {strict.n:,} clusters "
            f"(95% interval {interval(strict)}), {abs(difference.value):.1f} points "
            f"{'below' if difference.value <= 0 else 'above'} its accuracy."
            + (
                ""
                if metrics.strict_chance is None
                else f" By guessing, {percent(metrics.strict_chance)} is to be expected."
            )
        )
    return sentences


_TONES: dict[Place, doc.Tone] = {
    "above": "success",
    "below": "failure",
    "level": "partial",
    "few": "partial",
}

_AGAINST_CHANCE: dict[Place, str] = {
    "below": "Below chance",
    "level": "Not distinguishable from chance",
    "few": "Too few rows to say whether it is above chance",
}

_BUT: dict[Place, str] = {
    "below": ", but below {}",
    "level": ", but not above {}",
    "few": "; too few rows to say whether it is above {}",
}


def verdict(metrics: Metrics) -> tuple[doc.Tone, str]:
    """Return a few words on what the model beats, and what not.

    It is compared with chance; with the strongest baseline other than similarity; and, on the same
    rows, with the choice most similar to the question.

    Returns:
        Whether it is good news, and the words.
    """
    tone = _TONES[_against_level(metrics)]
    if (where := place(metrics.accuracy, metrics.chance)) != "above":
        return tone, _AGAINST_CHANCE[where]
    others: dict[str, Place] = {}
    if metrics.similarity is not None:
        others[_similarity_by(metrics.similarity)] = _beyond(metrics.similarity)
    if (shortcut := metrics.strongest_shortcut) is not None:
        other = place(metrics.accuracy, shortcut[1])
        # Similarity is the stronger one as a rule, and says enough.
        if metrics.similarity is None or other != "above":
            others[f"“{clip(shortcut[0], 60)}”"] = other
    if not others:
        return tone, "Above chance; no other baseline was measured"
    lost = {name: other for name, other in others.items() if other != "above"}
    words = "Above chance"
    if beaten := [name for name in others if name not in lost]:
        words += f" and {beaten[0]}" if lost else f", and above {beaten[0]}"
    words += "".join(_BUT[other].format(name) for name, other in lost.items())
    return "partial" if lost and tone == "success" else tone, words


def _similarity_by(similarity: Similarity) -> str:
    encoder = similarity.encoder
    return "similarity alone" if encoder is None else f"similarity by {model_name(encoder.name)}"


def _against_level(metrics: Metrics) -> Place:
    """Return where the interval lies: against chance, or the best shortcut if that is better."""
    shortcut = metrics.strongest_shortcut
    return place(metrics.accuracy, max(metrics.chance, shortcut[1] if shortcut else 0.0))


def _beyond(similarity: Similarity) -> Place:
    """Return where the paired difference from similarity lies."""
    return place(linear(similarity.difference, 0.01, 0.0), 0.0)


def _against_similarity(similarity: Similarity) -> str:
    """Compare with the choice most similar to the question."""
    difference = similarity.difference
    meaning: dict[Place, str] = {
        "above": "it does better than knowing which words are about the same thing",
        "below": "it does worse than knowing which words are about the same thing",
        "level": "knowing which words are about the same thing could explain its accuracy",
        "few": "there are too few rows to say whether it does better",
    }
    encoder = similarity.encoder
    by = "a small static encoder" if encoder is None else f"the encoder {model_name(encoder.name)}"
    return (
        f"The choice most similar to the question, by {by} without any training, "
        f"is right in {percent(similarity.accuracy.value)} of the same questions. The model is "
        f"{points(difference.value)} points from that (95% interval {points(difference.low)} to "
        f"{points(difference.high)}): {meaning[_beyond(similarity)]}."
    )


def _against_floor(metrics: Metrics) -> str:
    words: dict[Place, str] = {
        "above": "lies above",
        "below": "lies below",
        "level": "does not separate the model from",
        "few": "is too wide, on so few rows, to separate the model from",
    }
    lies = words[_against_level(metrics)]
    floor = metrics.strongest_shortcut
    if floor is None:
        return (
            f"The interval {lies} chance. The probe has no audit, so it is not known how far "
            "shortcuts alone would get."
        )
    name, value = floor
    return (
        f"The strongest baseline apart from the most similar choice, “{clip(name, 60)}”, gets "
        f"{percent(value)} without knowing the answer: the interval {lies} "
        f"{'that' if value >= metrics.chance else 'chance'}."
    )


def cautions(results: Results) -> list[str]:
    """Return caveats to know before quoting the number."""
    metrics = results.metrics
    found = [f"{remark[0].upper()}{remark[1:]}." for remark in remarks_on_rows(results)]
    aside = sum(metrics.set_aside.values())
    if aside:
        reasons = "; ".join(f"{reason}: {n:,}" for reason, n in sorted(metrics.set_aside.items()))
        counted = metrics.accuracy.value * metrics.scored / metrics.items
        found.append(
            f"{aside:,} of {metrics.items:,} questions ({percent(aside / metrics.items)}) were "
            f"set aside and not scored ({reasons}). Counting them as wrong, accuracy would be "
            f"{percent(counted)}."
        )
    if metrics.ties:
        apart = "are equal"
        if metrics.tie_tolerance:
            apart = f"lie within {metrics.tie_tolerance:g} of each other, which is numerical noise"
        found.append(
            f"In {metrics.ties:,} of the questions scored the best two scores {apart}: a tie. "
            f"Counting ties as wrong, accuracy would be {percent(metrics.ties_wrong)}."
        )
    spread = [estimate.value for estimate in metrics.accuracies.values()]
    if len(spread) > 1 and max(spread) - min(spread) >= 0.05:
        found.append(
            f"Accuracy is {percent(min(spread))} to {percent(max(spread))}, depending on how "
            "scores are normalized for length. Choose before you look, and name the choice."
        )
    if metrics.strict_accuracy is not None and metrics.clusters < 30:
        found.append(
            f"There are only {metrics.clusters} clusters: intervals over so few are rough."
        )
    if wording := wording_remark(metrics):
        found.append(f"{wording[0].upper()}{wording[1:]}.")
    found += [f"{remark}." for remark in remarks(results)]
    return found


def provenance(results: Results) -> doc.Table:
    """Return the table of every field that describes the run."""
    sections: dict[str, dict[str, Any]] = {
        "Probe": results.probe.model_dump(),
        "Model": results.model.model_dump(),
        "Scoring": {**results.scoring.model_dump(), "seed": results.seed},
        "Timings, in seconds": results.timings.model_dump(),
        "Versions": {**results.versions, "results schema": results.schema_version},
    }
    return doc.Table(
        ("field", "value", "part"),
        [
            (name.replace("_", " "), clip(_spelled(value), 4000), title)
            for title, fields in sections.items()
            for name, value in fields.items()
        ],
        names=3,
        fold="Everything that was run, and with what",
    )


def _spelled(value: Any) -> str:
    """Format a field's value for readers; nested values stay JSON."""
    if value is None:
        return "none"
    if isinstance(value, bool | dict | list):
        return json.dumps(value, indent=1, ensure_ascii=False, sort_keys=True)
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.2f}" if isinstance(value, float) else str(value)
