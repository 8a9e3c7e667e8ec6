"""A build from beginning to end: plan, assemble, audit, write."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from builders.engine.options import ProbeOptions
from builders.engine.probe import find_probe
from builders.engine.request import Request
from builders.engine.splits import first_clusters
from builders.engine.strategies import FromAnnotators
from kb_cache.base import manifest_entry, source_records
from kbprobe.arrays import ragged_ranges
from kbprobe.cli import kbprobe_version
from kbprobe.errors import KbprobeError, UsageError, did_you_mean
from kbprobe.format.attribution import question_languages
from kbprobe.format.dataset import DEFAULT_CONFIG
from kbprobe.format.setups import SPLITS
from kbprobe.rng import RandomGenerator

if TYPE_CHECKING:
    from builders.engine.plan import Plan
    from builders.engine.render.assemble import Assembled
    from builders.engine.render.template_file import Template
    from kbprobe.format.items import Items

Progress = Callable[[str], None]


@dataclass
class Built:
    """A finished build, in memory: the items of each config and split, and the manifest so far.

    ``seconds`` holds the wall time of each phase. ``annotations`` are the lines of the labels file
    that goes with a probe whose answers people gave.
    """

    request: Request
    manifest: dict[str, Any]
    configs: dict[str, dict[str, Items]]
    seconds: dict[str, float] = field(default_factory=dict)
    annotations: Sequence[Mapping[str, Any]] = ()

    @property
    def splits(self) -> dict[str, Items]:
        """The splits of the default config."""
        return self.configs[DEFAULT_CONFIG]


@dataclass(frozen=True)
class Prepared:
    """A request with what it needs: its knowledge base and its template."""

    request: Request
    knowledge: Any
    template: Template

    def description(self) -> dict[str, Any]:
        """The request as the manifest records it: enough to build the same bytes again."""
        request = self.request
        return {
            "probe": request.probe.name,
            "options": request.options.model_dump(mode="json"),
            "seed": request.seed,
            "format": request.format,
            "audit": request.audit,
            "template_digest": self.template.digest,
            "knowledge_base": self.knowledge.digest,
            "kbprobe_version": kbprobe_version(),
        }

    def check_config(self, config: str) -> None:
        """Make sure that a config will be there.

        Raises:
            UsageError: it will not; the message names those that will.
        """
        request = self.request
        known = (DEFAULT_CONFIG, *request.controls, *request.variants, *request.probe.sub_questions)
        if config not in known:
            remedy = " Build it with controls=True." * (config in request.probe.controls)
            remedy += " Build it with variants=True." * (config in request.probe.variants)
            raise UsageError(
                f"{self.request.probe.name} has no config {config!r}.{remedy}"
                f"{did_you_mean(config, known)} It has: {', '.join(known)}."
            )

    def is_in(self, folder: Path, overwrite: bool) -> bool:
        """Tell whether a folder holds exactly what is asked for, undamaged.

        Raises:
            UsageError: it holds something else, and ``overwrite`` is not set or of no avail.
        """
        from kbprobe.format.dataset import check_target

        return check_target(folder, self.description(), overwrite)


def prepare(request: Request) -> Prepared:
    """Load what a request needs: its knowledge base and its template.

    Raises:
        UsageError: the template is at fault.
        KbprobeError: the knowledge base cannot be loaded.
    """
    from builders.engine.render.controls import check_template

    probe = request.probe
    template = probe.template(request.options, request.template)
    check_template(template, probe.setup, request.controls)
    return Prepared(request, probe.open(request.options), template)


def build(asked: Request | Prepared, progress: Progress = lambda _: None) -> Built:
    """Plan, render and audit a probe; nothing is written.

    Args:
        asked: what to build; of a request, knowledge base and template are loaded first.
        progress: told the name of each phase.

    Raises:
        UsageError: the options leave no question to ask, or a template is at fault.
        KbprobeError: the knowledge base cannot be loaded.
    """
    from builders.engine.audit.report import audit
    from builders.engine.render.assemble import assemble, row_identity, variant_of
    from kbprobe.format.items import SCHEMA_VERSION

    request = asked.request if isinstance(asked, Prepared) else asked
    probe, options = request.probe, request.options
    seconds: dict[str, float] = {}

    @contextmanager
    def phase(name: str) -> Iterator[None]:
        progress(f"{probe.name}: {name}")
        start = time.perf_counter()
        yield
        seconds[name] = time.perf_counter() - start

    with phase("knowledge base"):
        prepared = asked if isinstance(asked, Prepared) else prepare(asked)
    knowledge, template = prepared.knowledge, prepared.template
    rng = RandomGenerator.of(request.seed, probe.name)
    with phase("plan"):
        plan = _cut(probe.plan(knowledge, options, rng), options, rng)
    with phase("render"):
        identity = row_identity(probe.name, knowledge.name)
        assembling = rng.child("assemble")
        sub_questions = {
            name: assemble(
                _asked_for(sub_question, plan),
                probe.shape(),
                template,
                identity.child(name),
                assembling.child(name),
            )
            for name, sub_question in plan.sub_questions.items()
        }
        done = assemble(
            plan,
            probe.shape(),
            template,
            identity,
            assembling,
            request.controls,
            sub_questions.values(),
        )
        asked_again = {name: variant_of(plan.variants[name], done) for name in request.variants}
        variants = {
            name: assemble(variant, probe.shape(name), template, identity, assembling, like=done)
            for name, variant in asked_again.items()
            if len(variant)
        }
    report, reports = None, dict.fromkeys(sub_questions)
    if request.audit:
        with phase("audit"):
            if done.plan.known.any():
                report = audit(done.audit_rows(), request.seed)
            reports = {
                name: audit(sub_question.audit_rows(), request.seed)
                for name, sub_question in sub_questions.items()
            }
    configs = {
        control or DEFAULT_CONFIG: _split_items(done, control)
        for control in (None, *request.controls)
    }
    others = {**sub_questions, **variants}
    configs |= {name: _split_items(other) for name, other in others.items()}
    manifest: dict[str, Any] = {
        "probe": probe.name,
        "about": template.about,
        "schema_version": SCHEMA_VERSION,
        "kbprobe_version": kbprobe_version(),
        "request": prepared.description(),
        "knowledge_base": manifest_entry(knowledge),
        "language": question_languages(source_records(knowledge), getattr(options, "language", "")),
        "template": {
            "digest": template.digest,
            "sources": [Path(source).name for source in template.sources],
        },
        "environment": {
            "python": platform.python_version(),
            "pyarrow": version("pyarrow"),
            "numpy": version("numpy"),
        },
        "counts": _counts(done),
        "audit": report,
        "sub_questions": {
            name: {"counts": _counts(sub_question), "audit": reports[name]}
            for name, sub_question in sub_questions.items()
        },
        "variants": {name: _variant_counts(variant, done) for name, variant in variants.items()},
        "files": [],
    }
    lines: Sequence[Mapping[str, Any]] = ()
    if isinstance(done.plan.answers, FromAnnotators):
        manifest["annotation"] = dict(done.plan.answers.about)
        lines = done.plan.answers.lines
    return Built(request, manifest, configs, seconds, lines)


def build_all(
    jobs: Sequence[tuple[Request | Prepared, Path]], progress: Progress = lambda _: None
) -> Iterator[tuple[Built, dict[str, Any], Path]]:
    """Build several probes, each written while the next one is planned.

    Yields each build, its manifest and its folder, in the order given.

    Raises:
        OSError: a folder cannot be written; probes finished before are kept.
    """
    with ThreadPoolExecutor(max_workers=1) as writer:
        writing: tuple[Built, Future[dict[str, Any]], Path] | None = None
        for number, (asked, folder) in enumerate(jobs, 1):
            built = build(asked, progress)
            if writing is not None:
                yield writing[0], writing[1].result(), writing[2]
            if number < len(jobs):
                writing = (built, writer.submit(write, built, folder), folder)
            else:
                # Nothing is left to do meanwhile; here Ctrl-C stops the writing.
                progress(f"{built.request.probe.name}: write")
                yield built, write(built, folder), folder


def write(built: Built, folder: Path, workers: int = 2) -> dict[str, Any]:
    """Write a build into ``folder``, whole or not at all; return its manifest.

    Raises:
        OSError: the folder cannot be written, or the disk is full.
    """
    from builders.engine.card import card_text
    from kbprobe.files import replacing_folder
    from kbprobe.format.dataset import CARD, write_annotations, write_configs
    from kbprobe.format.manifest import write_manifest

    start = time.perf_counter()
    with replacing_folder(folder) as aside:
        files = write_configs(aside, built.configs, built.request.format, workers)
        manifest = {**built.manifest, "files": files}
        if built.annotations:
            annotations = write_annotations(aside, built.annotations)
            manifest["annotation"] = {**manifest["annotation"], "file": annotations}
        card = card_text(manifest, built.request, built.configs)
        (aside / CARD).write_text(card, encoding="utf-8")
        write_manifest(aside, manifest)
    built.seconds["write"] = time.perf_counter() - start
    return manifest


def request_of(manifest: Mapping[str, Any], template: Path | None = None) -> Request:
    """Return the request that a manifest records; a template file must be given again.

    Raises:
        UsageError: the manifest is of another layout, or names an unknown probe or option.
    """
    recorded = manifest["request"]
    try:
        probe = find_probe(recorded["probe"])
        options = probe.options.parse(recorded["options"], probe.name)
        return Request(
            probe, options, recorded["seed"], template, recorded["format"], recorded["audit"]
        )
    except KeyError as error:
        raise UsageError(
            f"the manifest's request lacks {error}; it cannot be built again"
        ) from None


def _asked_for(sub_question: Plan, plan: Plan) -> Plan:
    """Cut a sub-question plan to the rows that ask for facts of the plan's rows."""
    facts = plan.provenance.facts
    assert facts.sub_question is not None, (
        "a plan with sub-questions says in Facts.sub_question which asks what"
    )
    used = np.unique(plan.provenance.fact)
    edges = ragged_ranges(facts.indptr[used], np.diff(facts.indptr)[used])
    return sub_question.take(np.isin(sub_question.question_keys, facts.sub_question[edges]))


def _split_items(done: Assembled, control: str | None = None) -> dict[str, Items]:
    """Return the items of each split that has any."""
    rows = {name: np.flatnonzero(done.plan.split == code) for code, name in enumerate(SPLITS)}
    return {name: done.items(some, control) for name, some in rows.items() if some.size}


def _cut(plan: Plan, options: ProbeOptions, rng: RandomGenerator) -> Plan:
    """Cut the train split, then the whole, to the rows asked for: whole clusters or groups only."""
    if options.train_rows:
        train = np.flatnonzero(plan.split == 0)
        together = plan.order.kept_together(plan.cluster.codes)[train]
        kept = first_clusters(together, options.train_rows, rng.child("train rows"))
        plan = _dropping(plan, train[~kept], "beyond --train-rows")
    if options.limit is not None and len(plan) > options.limit:
        together = plan.order.kept_together(plan.cluster.codes)
        kept = first_clusters(together, options.limit, rng.child("limit"))
        plan = _dropping(plan, np.flatnonzero(~kept), "beyond --limit")
        if len(plan) == 0:
            raise UsageError(
                f"--limit {options.limit} is less than the rows of any one cluster; raise it"
            )
    return plan


def _dropping(plan: Plan, rows: np.ndarray[Any, Any], reason: str) -> Plan:
    keep = np.ones(len(plan), dtype=np.bool_)
    keep[rows] = False
    return plan.take(keep).with_dropped(reason, int(rows.size))


def _counts(done: Assembled) -> dict[str, Any]:
    """Rows by split and by hops x family cell, clusters, questions, and what was left out."""
    from builders.engine.draw.families import family_label

    plan = done.plan
    if len(plan) == 0:
        raise KbprobeError("no row is left to write")
    clusters = np.unique(plan.cluster.codes, return_counts=True)[1]
    pairs = np.unique((plan.question * len(plan.choices.names) + plan.nodes[:, 0])[plan.known])
    unlabelled = int((~plan.known).sum())
    cells: dict[str, dict[str, int]] = {}
    names = plan.family.values.to_pylist()
    origin, family = plan.provenance, plan.family.codes
    span = int(origin.distance.max()) + 1
    cell = (origin.hops * len(names) + family) * span + origin.distance
    _, first, counts = np.unique(cell, return_index=True, return_counts=True)
    for row, count in zip(first.tolist(), counts.tolist(), strict=True):
        label = family_label(names[family[row]], int(origin.distance[row]))
        cells.setdefault(str(origin.hops[row]), {})[label] = count
    return {
        "rows": len(plan),
        "splits": {name: int((plan.split == code).sum()) for code, name in enumerate(SPLITS)},
        "questions": int(np.unique(plan.question).size),
        "question_answer_pairs": int(pairs.size),
        "concepts": int(np.unique(origin.concept.codes).size),
        "clusters": int(clusters.size),
        "mean_cluster": round(float(clusters.mean()), 2),
        "golds": int(np.unique(plan.nodes[plan.known, 0]).size),
        **({"unlabelled": unlabelled} if unlabelled else {}),
        "filled_choices": int((origin.choice_family[:, 1:] != family[:, None]).sum()),
        "cells": cells,
        "dropped": {reason: count for reason, count in plan.dropped.items() if count},
    }


def _variant_counts(variant: Assembled, done: Assembled) -> dict[str, int]:
    """How many rows a variant has, and of how many another answer is right than in the default."""
    gold = dict(zip(done.columns["id"].to_pylist(), done.plan.nodes[:, 0].tolist(), strict=True))
    pairs = zip(variant.columns["id"].to_pylist(), variant.plan.nodes[:, 0].tolist(), strict=True)
    return {
        "rows": len(variant.plan),
        "other_answers": sum(gold[row] != answer for row, answer in pairs),
    }


def same_rows(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Compare two manifests' files; return what differs, an empty list if nothing does."""
    before = {entry["path"]: entry for entry in old["files"]}
    after = {entry.path: entry for entry in new["files"]}
    differences = []
    for path in sorted(before.keys() | after.keys()):
        if path not in after or path not in before:
            where = "the manifest" if path in before else "the new build"
            differences.append(f"{path} is only in {where}")
        elif before[path]["sha256"] != after[path].sha256:
            if before[path]["rows_sha256"] == after[path].rows_sha256:
                differences.append(
                    f"{path}: the same rows, encoded otherwise (pyarrow "
                    f"{old['environment']['pyarrow']} then, {new['environment']['pyarrow']} now)"
                )
            else:
                differences.append(f"{path}: other rows")
    return differences
