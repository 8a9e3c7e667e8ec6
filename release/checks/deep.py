"""The deep check: adversaries on every config with its own questions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kb_cache.frequency import zipf_frequencies
from kb_cache.vectors.load import load_vectors
from kb_cache.vectors.texts import cosines_of_means
from kbprobe.arrays import Floats, Ints
from kbprobe.audit.adversaries import Cosines, Cues, DeepRows, adversaries, read
from kbprobe.audit.verdicts import (
    ALL,
    MARGIN,
    AuditTable,
    Bar,
    Judged,
    Line,
    Shortcut,
    Verdict,
    commonest,
    judge,
)
from kbprobe.errors import BUILT, KbprobeError, path_argument, require
from kbprobe.format.manifest import Manifest, read_manifest
from kbprobe.format.setups import DEFAULT_CONFIG
from kbprobe.intervals import Estimate
from release.cards import record
from release.checks.findings import REBUILD, CheckReport, Finding

NAME = "adversaries"
REMEDIES = {
    "surface": "Draw distractors that are like golds in form: --sampling grouped, --families.",
    "meaning": "Draw distractors from where golds come from: --sampling grouped, --families.",
    "tuned": "Draw distractors from where golds come from: --sampling grouped, --families.",
    "central": "Draw distractors as like one another as the gold is like them: --sampling grouped.",
    "similar": "Draw distractors from the neighbourhood of the gold: --families near.",
    "elimination": "Let a choice be right as often in any row that shows it: --sampling grouped.",
    "argument": "Ask about each argument with each answer equally often, in every split.",
    "sentence": "Ask about each document with acceptable and unacceptable sentences alike.",
    "place": "Change words as often into one another as back, whatever stands beside them.",
    "recurrence": "Ask each question once (--once), build without --limit, or show no model "
    "several of its rows.",
    "order": "Shuffle rows and choices by the seed, and let ids depend on neither.",
}
LABELLED = "Label the rows, or build it larger (--limit) or with other --split-shares."
"""The remedy if a split lacks rows with answers."""

UNREADABLE = ("manifest", "files", "checksums", "row numbers", "schema")
"""Findings after which rows are not read."""


class AdversaryOutcome(NamedTuple):
    """How often an adversary was right on a config.

    Attributes:
        config, adversary: which.
        accuracy: the estimate; the units of its interval are clusters.
        chance: what it was compared with.
        verdict: ``high`` if it exceeds chance; ``reported`` if it is not judged, since it uses the
            question, or the way in which rows are balanced.
        remedy: what to do about it.
    """

    config: str
    adversary: str
    accuracy: Estimate
    chance: float
    verdict: Verdict
    remedy: str

    def as_dict(self) -> dict[str, Any]:
        """Return the outcome in a form that JSON can represent."""
        numbers = Judged("", self.accuracy, Bar(self.chance), self.verdict).as_dict()
        return {**self._asdict(), **numbers}


def outcomes(
    config: str, shortcut: Shortcut, rows: DeepRows, judged_adversaries: int
) -> Iterator[AdversaryOutcome]:
    """Score an adversary on all rows, and yield each family in which it exceeds chance.

    ``judged_adversaries`` is the number of adversaries judged on every family. Where answers are
    left unbalanced, always giving the most common one counts as chance.
    """

    def bar_of(some: Ints) -> Bar:
        chance = float((1 / rows.shown[some].sum(axis=1)).mean())
        return Bar(max(chance, commonest(rows.gold[some])) if rows.natural else chance, low=False)

    families = np.unique(rows.family[rows.scored]).size
    for cell in judge(rows, shortcut, bar_of, families * max(judged_adversaries, 1)):
        high = cell.verdict == "high"
        if cell.family == ALL or (high and families > 1):
            of = "" if cell.family == ALL else f", {cell.family} rows"
            remedy = REMEDIES[shortcut.name.partition(":")[0]] if high else ""
            numbers = cell.accuracy, cell.bar.chance, cell.verdict
            yield AdversaryOutcome(config, f"{shortcut.name}{of}", *numbers, remedy)


@dataclass(frozen=True)
class DeepAudit:
    """The results of all adversaries.

    Attributes:
        outcomes: one for each config and adversary.
        unscored: configs without labelled rows outside train, none of whose adversaries ran.
        untrained: configs without labelled rows in train, for which trained adversaries did not
            run.
    """

    outcomes: tuple[AdversaryOutcome, ...]
    unscored: tuple[str, ...]
    untrained: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether no adversary exceeds chance."""
        return all(outcome.verdict != "high" for outcome in self.outcomes)

    @property
    def _judged(self) -> list[AdversaryOutcome]:
        return [one for one in self.outcomes if one.verdict != "reported"]

    def as_dict(self) -> dict[str, Any]:
        """Return the audit in a form that JSON can represent."""
        outcomes = [one.as_dict() for one in self.outcomes]
        return {**vars(self), "passed": self.passed, "outcomes": outcomes}

    def findings(self) -> Iterator[Finding]:
        """Yield a finding for each adversary that exceeds chance, and for any that did not run."""
        for one in self.outcomes:
            if one.verdict == "high":
                accuracy, low, high, _ = Line((), one.accuracy, one.chance).numbers
                share = f"{accuracy} ({low}\N{EN DASH}{high})"
                what = f"{one.adversary}: {share} right, chance is {one.chance:.1%}"
                yield Finding(NAME, "failed", what, one.config, one.remedy)
        for config in self.unscored:
            what = "none ran: no labelled rows in test or validation"
            yield Finding(NAME, "warning", what, config, LABELLED)
        for config in self.untrained:
            what = "none was trained: no labelled rows in train"
            yield Finding(NAME, "warning", what, config, LABELLED)
        few = sum(one.verdict == "few rows" for one in self.outcomes)
        if few:
            what = f"too few rows for a verdict on {few} of {len(self._judged)}"
            yield Finding(NAME, "warning", what, "", "Build it larger (--limit).")
        if self.passed and self.outcomes and not few:
            what = f"none of {len(self._judged)} exceeds chance by more than {MARGIN:.0%}"
            yield Finding(NAME, "ok", what.replace("%", " points"))

    @property
    def summary(self) -> str:
        """The audit in one line, as shown on the card and by the check."""
        if not self.outcomes:
            return "no adversary ran"
        exceeding = sum(one.verdict == "high" for one in self.outcomes)
        unsure = sum(one.verdict == "few rows" for one in self.outcomes)
        verb = "exceed" if exceeding > 1 else "exceeds"
        many = f"{exceeding or 'none'} of {len(self._judged)} adversaries"
        text = f"{many} {verb} chance by more than 5 points"
        return f"{text} (too few rows for a verdict on {unsure})" if unsure else text

    @property
    def table(self) -> AuditTable:
        """The table of all adversaries."""
        lines = [
            Line(
                (one.adversary, one.config),
                one.accuracy,
                one.chance,
                one.verdict,
                (f"{one.accuracy.n:,}", one.verdict),
            )
            for one in self.outcomes
        ]
        return AuditTable(("adversary", "config"), lines, ("rows", "verdict"))

    def as_markdown(self) -> str:
        """Return the section for the card."""
        about = (
            "Models that see the data without what should be needed, trained on train and scored "
            "on test (`release-probe check --deep`). Accuracy with its 95% interval, clusters as "
            "units; an adversary exceeds chance if the whole interval is above it and the accuracy "
            "by more than 5 points."
        )
        return f"{about}\n\n{self.table.markdown()}"

    def show(self) -> None:
        """Print a table of all adversaries."""
        from kbprobe.terminal.console import Console

        console = Console(highlight=False)
        if not console.is_terminal:
            console.width = 240  # it would be 80 in a file or pipe
        title = "Adversaries: accuracy, with a 95% interval by cluster"
        console.print("", self.table.terminal(title))


def audit(folder: str | Path, encoder: str = "", seed: int = 0) -> DeepAudit:
    """Run every adversary on a built probe: its default config, and its sub-question configs.

    Args:
        folder: the probe, as ``build-probe`` wrote it.
        encoder: a transformers model (folder or id) that reads the choices; "" for none.
        seed: selects the rows if there are more than are trained on or scored.

    Raises:
        MissingDependencyError: scikit-learn is not installed.
        UsageError: the folder holds no probe, or one of another version, or ``encoder`` does not
            load.
        KbprobeError: a file is missing or damaged.
    """
    path = path_argument("audit(folder=...)", folder, BUILT)
    require("sklearn", "release", "the deep audit")
    manifest = read_manifest(path)
    cues = cues_of(manifest, encoder)
    done: list[AdversaryOutcome] = []
    unscored, untrained = [], []
    for config in (DEFAULT_CONFIG, *manifest.sub_questions):
        rows = read(path, manifest, config, seed, cues)
        if rows is None:
            unscored.append(config)
            continue
        if not rows.train.size:
            untrained.append(config)
        every = list(adversaries(rows))
        judged = sum(shortcut.judged for shortcut in every)
        for shortcut in every:
            done += outcomes(config, shortcut, rows, judged)
    return DeepAudit(tuple(done), tuple(unscored), tuple(untrained))


def cues_of(manifest: Manifest, encoder: str = "") -> Cues:
    """Return what is known of a probe's texts and nodes: frequencies, WordNet, similarity."""
    from wordfreq import available_languages

    languages = available_languages()
    language = next((name for name in manifest.language if name in languages), "en")
    base = manifest.knowledge_base
    sources = (base.model_extra or {}).get("sources") or [base.model_dump()]
    wordnet = next((one["name"] for one in sources if one["name"].startswith("wordnet-")), "")
    cosines: dict[str, Cosines] = {}
    try:
        vectors = load_vectors(None)
    except KbprobeError:
        pass  # none are installed
    else:
        cosines["words"] = lambda left, right: cosines_of_means(left, right, vectors).scores
    if encoder:
        from kbprobe.audit.encoder import encoded_cosines

        cosines["encoder"] = partial(encoded_cosines, name=encoder)
    frequencies = partial(zipf_frequencies, language=language)
    return Cues(frequencies, partial(_numbers_of_synsets, wordnet), cosines, encoder)


def _numbers_of_synsets(wordnet: str, names: npt.NDArray[np.str_]) -> Sequence[Floats]:
    """Return the depths and hyponyms of nodes; nothing if none is a synset of the WordNet."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from kb_cache.wordnet.load import load_wordnet
    from kbprobe.columns import to_numpy

    if not wordnet:
        return []
    try:
        loaded = load_wordnet(wordnet)
    except KbprobeError:
        return []
    places = pc.index_in(pa.array(names.tolist()), loaded.synsets["name"].combine_chunks())
    synset = to_numpy(places.fill_null(-1)).astype(np.int64)
    if (synset < 0).all():
        return []
    below = np.bincount(loaded.hyponyms.walk(synset).source, minlength=synset.size)
    numbers = (loaded.isa.depths()[synset].astype(np.float64), np.log1p(below))
    return [np.where(synset < 0, np.nan, column) for column in numbers]


def write_outcomes(folder: str | Path, done: DeepAudit, encoder: str = "") -> None:
    """Write the results of all adversaries into a built probe's card and manifest.

    Raises:
        UsageError, KbprobeError, OSError: see :func:`release.cards.record`.
    """
    about = {**done.as_dict(), "encoder": Path(encoder).name}
    record(folder, "adversaries", done.summary, about, done.as_markdown())


@dataclass(frozen=True)
class DeepReport(CheckReport):
    """The findings in one built probe, including those of the adversaries."""

    deep: DeepAudit

    def as_dict(self) -> dict[str, Any]:
        """Return findings and outcomes in a form that JSON can represent."""
        return {**super().as_dict(), "deep": self.deep.as_dict()}

    def show(self, summary: str, as_json: bool) -> None:
        """Print everything as JSON, or as text: the findings, then every adversary."""
        super().show(summary, as_json)
        if not as_json:
            self.deep.show()


def deepened(report: CheckReport, encoder: str = "") -> CheckReport:
    """Add the adversaries' findings to those of a check, unless files failed it.

    Raises:
        MissingDependencyError, UsageError: see :func:`audit`.
    """
    if any(one.name in UNREADABLE for one in report.failed):
        what = "none ran: they need undamaged files"
        return CheckReport(
            (*report.findings, Finding(NAME, "failed", what, "", REBUILD)), report.folder
        )
    done = audit(report.folder, encoder)
    return DeepReport((*report.findings, *done.findings()), report.folder, done)
