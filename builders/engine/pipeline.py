"""A build from beginning to end: plan, assemble, audit, write."""

from __future__ import annotations

import platform
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from builders.engine.card import card_text
from builders.engine.draw.families import family_label
from builders.engine.drops import beyond, why_fewer
from builders.engine.options import RANDOM, ProbeOptions
from builders.engine.plan import Flags, Plan, left_out
from builders.engine.plan import report as oracle_report
from builders.engine.probe import find_probe
from builders.engine.render.assemble import Assembled, assemble, row_identity, variant_of
from builders.engine.render.blocks import Blocks
from builders.engine.request import Request
from builders.engine.strategies import FromAnnotators
from kb_cache.knowledge import manifest_entry, source_records
from kbprobe.arrays import Bools, Ints, ragged_ranges, sorted_unique
from kbprobe.audit.report import Totals, audit
from kbprobe.audit.rows import choose_rows, first_units
from kbprobe.cli import kbprobe_version
from kbprobe.errors import KbprobeError, UsageError
from kbprobe.files import replacing_folder
from kbprobe.format.card import Configs
from kbprobe.format.dataset import CARD, data_folder, probe_files, write_annotations
from kbprobe.format.items import Items, ItemsInParts, plain
from kbprobe.format.licences import question_languages
from kbprobe.format.manifest import SCHEMA_VERSION, Manifest, write_manifest
from kbprobe.format.rows import UNLABELLED, CodedRows, problems
from kbprobe.format.setups import DEFAULT_CONFIG, SPLITS
from kbprobe.format.shards import Shard, write_shards
from kbprobe.options import option_name, spelled
from kbprobe.rng import RandomGenerator

CHECKED_ROWS = 100
"""Number of rows of each split that are checked against their setup."""

Progress = Callable[[str], None]


@dataclass
class Built:
    """A finished build in memory: the items of each config and split, and the manifest so far.

    ``seconds`` holds the wall time of each phase. ``annotations`` are the lines of the labels file
    of a probe answered by people.
    """

    request: Request
    manifest: dict[str, Any]
    configs: Configs
    seconds: dict[str, float] = field(default_factory=dict)
    annotations: Sequence[Mapping[str, Any]] = ()

    @property
    def in_parts(self) -> bool:
        """Whether rows are rendered while they are written, because there are many."""
        return any(
            isinstance(items, ItemsInParts)
            for splits in self.configs.values()
            for items in splits.values()
        )

    @property
    def splits(self) -> Mapping[str, Items | ItemsInParts]:
        """The splits of the default config."""
        return self.configs[DEFAULT_CONFIG]


def build(request: Request, progress: Progress = lambda _: None) -> Built:
    """Plan, render and audit a probe, without writing anything.

    Args:
        request: what to build; its knowledge base and template are loaded first.
        progress: called with the name of each phase.

    Raises:
        UsageError: the options leave no question to ask, or a template is faulty.
        KbprobeError: the knowledge base cannot be loaded, or a row is not sound.
    """
    probe, options = request.probe, request.options
    seconds: dict[str, float] = {}

    @contextmanager
    def phase(name: str) -> Iterator[None]:
        progress(f"{probe.name}: {name}")
        start = time.perf_counter()
        yield
        seconds[name] = time.perf_counter() - start

    with phase("knowledge base"):
        template, knowledge, controls = request.wordings, request.knowledge, request.controls
    rng = RandomGenerator.of(request.seed, probe.name)
    with phase("plan"):
        plan = _cut(probe.plan(knowledge, options, rng), options, rng)
        variant_plans = {name: plan.variants[name] for name in request.variants}
        _refuse_unread(options, probe.name)
    with phase("render"):
        named = getattr(knowledge, "structure", knowledge).name
        identity, rng = row_identity(probe.name, named), rng.child("assemble")
        sub_questions = {
            name: assemble(
                _asked_for(some, plan), template, probe.setup, identity.child(name), rng.child(name)
            )
            for name, some in plan.sub_questions.items()
        }
        done = assemble(
            plan,
            template,
            probe.setup,
            identity,
            rng,
            controls=controls,
            facts=[*sub_questions.values()],
        )
        del plan  # `done` has these rows in another order; both would be kept until the end.
        asked_again = {name: variant_of(some, done) for name, some in variant_plans.items()}
        variants = {
            name: assemble(
                some, template, probe.variants[name].setup or probe.setup, identity, rng, like=done
            )
            for name, some in asked_again.items()
            if len(some)
        }
        if len(done) == 0:
            raise KbprobeError("no row is left to write")
        rendered = {
            name: Blocks(rows)
            for name, rows in {DEFAULT_CONFIG: done, **sub_questions, **variants}.items()
        }
        configs = {}
        for name, blocks in rendered.items():
            blocks.prepare()
            configs[name] = blocks.splits()
            if name == DEFAULT_CONFIG:
                configs |= {control: blocks.splits(control) for control in controls}
        for name in rendered:
            _check_rows(name, configs[name])
    reports: dict[str, dict[str, Any] | None] = {}
    if request.audit:
        with phase("audit"):
            reports = {
                name: _audited(rendered[name], request)
                for name in (DEFAULT_CONFIG, *sub_questions)
                if rendered[name].done.plan.known.any()
            }
    manifest: dict[str, Any] = {
        "probe": probe.name,
        "about": template.about,
        "schema_version": SCHEMA_VERSION,
        "kbprobe_version": kbprobe_version(),
        "request": request.description(),
        "knowledge_base": manifest_entry(knowledge),
        "language": question_languages(
            source_records(knowledge), getattr(options, "language", "").partition(",")[0]
        ),
        "template": {
            "digest": template.digest,
            "sources": [Path(source).name for source in template.sources],
            **({"added_rows": _added_rows(done)} if template.added else {}),
            **({"controls_lacking": lacking} if (lacking := request.controls_lacking) else {}),
        },
        "environment": {
            "python": platform.python_version(),
            "pyarrow": version("pyarrow"),
            "numpy": version("numpy"),
        },
        "screen": {
            # A probe of another package may have the option and not screen.
            "on": options.screen and "screen" in options.reads()
            if "screen" in type(options).model_fields
            else None,
            "rows": rendered[DEFAULT_CONFIG].listed_rows,
        },
        "counts": {
            **_counts(done),
            **({"fewer": fewer} if (fewer := _fewer(done.plan, options)) else {}),
        },
        "audit": reports.get(DEFAULT_CONFIG),
        "sub_questions": {
            name: {"counts": _counts(sub_question), "audit": reports.get(name)}
            for name, sub_question in sub_questions.items()
        },
        "variants": {name: _variant_counts(variant, done) for name, variant in variants.items()},
        "files": [],
    }
    if encoders := done.plan.matched_on:
        named = [{"name": name, "sha256": digest} for name, digest in encoders.items()]
        manifest["matching"] = {"encoders": named}
    lines: Sequence[Mapping[str, Any]] = ()
    if isinstance(done.plan.answers, FromAnnotators):
        manifest["annotation"] = dict(done.plan.answers.about)
        lines = done.plan.answers.lines
    return Built(request, manifest, configs, seconds, lines)


def _added_rows(done: Assembled) -> dict[str, int]:
    """Return the number of rows of each wording that a user's file adds."""
    template = done.template
    rows = np.bincount(done.wording[done.plan.question], minlength=len(template.questions))
    return {
        wording.id: count
        for wording, count in zip(template.questions, rows.tolist(), strict=True)
        if wording.id in template.added
    }


def _check_rows(config: str, splits: Mapping[str, Items | ItemsInParts]) -> None:
    """Check the first rows of each split against their setup, as a release checks all of them.

    All rows are made the same way; masks and repeated choices have been checked in every one.

    Raises:
        KbprobeError: a row cannot be asked in its setup.
    """
    for split, items in splits.items():
        table = plain(items.table(0, CHECKED_ROWS))
        for problem in problems(CodedRows(table), built=True):
            if problem.what != UNLABELLED:
                row = int(problem.rows[0])
                what = f"{problem.field} {problem.in_row(table, row)}"
                raise KbprobeError(
                    f"{config}, {split}, row {table['id'][row]}, made with the wording "
                    f"{table['template'][row].as_py()!r}: {what}"
                )


def build_all(
    jobs: Sequence[tuple[Request, Path]],
    progress: Progress = lambda _: None,
    failed: Callable[[Path, KbprobeError], None] | None = None,
) -> Iterator[tuple[Built, dict[str, Any], Path]]:
    """Build several probes, each written while the next one is planned.

    Yields each build, its manifest and its folder, in the given order; ``failed`` is told of each
    probe that cannot be built; without it, the first one ends the builds.

    Raises:
        OSError: a folder cannot be written; probes finished before are kept.
    """
    with ThreadPoolExecutor(max_workers=1) as writer:
        writing: tuple[Built, Future[dict[str, Any]], Path] | None = None
        for number, (request, folder) in enumerate(jobs, 1):
            place = f" ({number} of {len(jobs)})" if len(jobs) > 1 else ""
            try:
                built = build(request, partial(_placed, progress, place))
            except KbprobeError as error:
                if failed is None:
                    raise
                failed(folder, error)
                continue
            if writing is not None:
                yield writing[0], writing[1].result(), writing[2]
            writing = None
            if number < len(jobs) and not built.in_parts:
                writing = (built, writer.submit(write, built, folder), folder)
            else:
                # Nothing is left to do meanwhile, or it is much and takes memory; here Ctrl-C stops
                # the writing.
                progress(f"{built.request.probe.name}: write")
                yield built, write(built, folder), folder
        if writing is not None:  # the last one failed
            yield writing[0], writing[1].result(), writing[2]


def _placed(progress: Progress, place: str, phase: str) -> None:
    progress(f"{phase}{place}")


def write(built: Built, folder: Path) -> dict[str, Any]:
    """Write a build into ``folder`` atomically; return its manifest.

    Large builds are rendered here, block by block.

    Raises:
        OSError: the folder cannot be written, or the disk is full.
    """
    start = time.perf_counter()
    with replacing_folder(folder, probe_files(folder)) as aside:
        shards = write_shards(aside, built.configs, built.request.format, data_folder)
        manifest = {**built.manifest, "files": [shard.file for shard in shards]}
        configs = _with_sizes(built.configs, shards)
        if manifest["screen"]["rows"] is None:
            default = (one.counted for one in shards if one.file.config == DEFAULT_CONFIG)
            manifest["screen"] = {**manifest["screen"], "rows": sum(default)}
        if built.annotations:
            annotations = write_annotations(aside, built.annotations)
            manifest["annotation"] = {**manifest["annotation"], "file": annotations}
        card = card_text(manifest, built.request, configs)
        (aside / CARD).write_text(card, encoding="utf-8", newline="\n")
        write_manifest(aside, manifest)
    built.seconds["write"] = time.perf_counter() - start
    return manifest


def _with_sizes(configs: Configs, shards: Iterable[Shard]) -> Configs:
    """Record the sizes of items made in parts, measured when each part was laid out."""
    total: Counter[tuple[str, str]] = Counter()
    for shard in shards:
        total[shard.file.config, shard.file.split] += shard.num_bytes
    return {
        config: {
            split: items
            if isinstance(items, Items)
            else replace(items, num_bytes=total[config, split])
            for split, items in splits.items()
        }
        for config, splits in configs.items()
    }


def request_of(manifest: Manifest, template: Path | None = None) -> Request:
    """Return the request that a manifest records; a template file must be given again.

    Raises:
        UsageError: the manifest is of another layout, or names an unknown probe or option.
    """
    recorded = manifest.request
    probe = find_probe(recorded.probe or manifest.probe)
    if gone := [name for name in recorded.options if name not in probe.options.model_fields]:
        raise UsageError(
            f"the manifest records options that {probe.name} does not have here: "
            f"{', '.join(map(option_name, gone))}. Rebuild it with the version of kbprobe that "
            f"built it ({manifest.kbprobe_version}), or, if they had their defaults, take them out "
            "of the manifest"
        )
    options = probe.options.parse(recorded.options, probe.name)
    return Request(probe, options, recorded.seed, template, recorded.format, recorded.audit)


def _asked_for(sub_question: Plan, plan: Plan) -> Plan:
    """Restrict a plan of sub-questions to the rows that ask for facts of the plan's rows."""
    facts = plan.facts
    assert facts.sub_question is not None, (
        "a plan with sub-questions says in Facts.sub_question which asks what"
    )
    used = np.unique(plan.fact)
    edges = ragged_ranges(facts.indptr[used], np.diff(facts.indptr)[used])
    return sub_question.take(np.isin(sub_question.question_keys, facts.sub_question[edges]))


def _audited(blocks: Blocks, request: Request) -> dict[str, Any]:
    """Audit a sample of the rows that have an answer; only the sample is rendered."""
    done, plan = blocks.done, blocks.done.plan
    known = np.flatnonzero(plan.known)
    split, cluster = plan.split[known], plan.cluster.codes[known]
    totals = Totals.of(
        plan.nodes.shape[1],
        done.gold[known],
        split,
        cluster,
        plan.question[known],
        plan.nodes[:, 0][known],
    )
    sample = choose_rows(split, cluster, plan.nodes[known], request.seed)
    rows = sample.rows
    decided = request.probe.arguments_decide
    report = audit(blocks.audit_rows(known[rows], sample.within(rows), decided), totals)
    scored = known[sample.scored]
    if oracles := plan.oracles_on(scored):
        names = plan.family.values.to_pylist()
        report["oracles"] = oracle_report(
            oracles, plan.family.codes[scored], names, plan.hops[scored]
        )
    return report


def _refuse_unread(options: ProbeOptions, owner: str) -> None:
    """Raise an error if an option was given that this build does not read.

    Raises:
        UsageError: there is one; the message says what it is for.
    """
    for name in options.unread():
        given = f"{option_name(name)} {spelled(getattr(options, name))}"
        remedy = "Leave it out, or give the option that it belongs to."
        if name in ("controls", "variants"):
            remedy = f"{owner} has none: leave it out."
        raise UsageError(
            f"{owner}: nothing in this build reads {given}, so that it would change nothing. It "
            f"is for: {type(options).model_fields[name].description} {remedy}"
        )


def _cut(plan: Plan, options: ProbeOptions, rng: RandomGenerator) -> Plan:
    """Limit the splits, then the total, to the requested rows, keeping clusters or groups whole.

    Splits are cut in choice groups, if there are any, so that the choices alone tell nothing; with
    ``--rows-by clusters`` all but train in clusters, so that strict accuracy is of whole ones.

    Raises:
        UsageError: not even the smallest cluster or group fits.
    """
    in_groups = options.rows_by == "groups"
    for code, split in enumerate(SPLITS):
        if most := getattr(options, f"{split}_rows"):
            keep, unit = plan.split != code, plan.cluster.codes
            if split == "train" or in_groups:
                unit = plan.order.kept_together(unit)
            rows = rng.child(f"{split} rows")
            keep[~keep] = _first(unit[~keep], f"{split}_rows", most, rows)
            plan = plan.keep(beyond(f"{split}_rows"), keep)
    if options.limit is not None and len(plan) > options.limit:
        together = plan.order.kept_together(plan.cluster.codes)
        keep = _first(together, "limit", options.limit, rng.child("limit"))
        plan = plan.keep(beyond("limit"), keep)
    return plan


def _fewer(plan: Plan, options: ProbeOptions) -> dict[str, dict[str, int | str]]:
    """Return by option how many rows it asks for and how many there are, and why these are fewer.

    Rows that are missing only because groups stay whole, or that another of these options leaves
    out, do not count.
    """
    found: dict[str, dict[str, int | str]] = {}
    of_splits = [f"{split}_rows" for split in SPLITS]
    for name, info in type(options).model_fields.items():
        if name not in ("limit", *of_splits):
            continue
        asked, split = getattr(options, name), name.removesuffix("_rows")
        rows = len(plan)
        if split in SPLITS:
            rows = int((plan.split == SPLITS.index(split)).sum())
        others = of_splits if name == "limit" else ["limit"]
        if not asked or asked == info.default or asked - rows < plan.nodes.shape[1]:
            continue
        if not any(beyond(one) in plan.dropped for one in (name, *others)):
            flags = plan.flags.names if split == "train" and plan.flags else ()
            elsewhere = {left_out(flag) for flag in flags if options.for_training}
            dropped = {why: n for why, n in plan.dropped.items() if why not in elsewhere}
            found[name] = {"asked": asked, "rows": rows, "reason": why_fewer(dropped)}
    return found


def _first(together: Ints, option: str, rows: int, rng: RandomGenerator) -> Bools:
    keep = first_units(together, rows, rng)
    if together.size and not keep.any():
        smallest = np.unique(together, return_counts=True)[1].min()
        raise UsageError(
            f"{option_name(option)} {rows}: rows that belong together are kept together, and the "
            f"fewest are {smallest}; give at least {smallest}"
        )
    return keep


def _counts(done: Assembled) -> dict[str, Any]:
    """Count rows by split and by hops x family cell, clusters, questions, and what was left out."""
    plan = done.plan
    clusters = np.bincount(plan.cluster.codes)
    clusters = clusters[clusters > 0]
    pairs = plan.question.astype(np.int64) * len(plan.choices.names) + plan.nodes[:, 0]
    pairs = sorted_unique(pairs[plan.known])
    unlabelled = int((~plan.known).sum())
    cells: dict[str, dict[str, int]] = {}
    names = plan.family.values.to_pylist()
    family = plan.family.codes
    random = np.array([name == RANDOM for name in names])[plan.choice_family[:, 1:]]
    span = int(plan.distance.max()) + 1
    cell = (plan.hops.astype(np.int64) * len(names) + family) * span + plan.distance
    _, first, counts = np.unique(cell, return_index=True, return_counts=True)
    for row, count in zip(first.tolist(), counts.tolist(), strict=True):
        label = family_label(names[family[row]], int(plan.distance[row]))
        cells.setdefault(str(plan.hops[row]), {})[label] = count
    return {
        "rows": len(plan),
        "splits": {name: int((plan.split == code).sum()) for code, name in enumerate(SPLITS)},
        "questions": int(np.unique(plan.question).size),
        "question_answer_pairs": int(pairs.size),
        "concepts": int(np.unique(plan.concept.codes).size),
        "clusters": int(clusters.size),
        "mean_cluster": round(float(clusters.mean()), 2),
        "golds": int(np.unique(plan.nodes[plan.known, 0]).size),
        **({"unlabelled": unlabelled} if unlabelled else {}),
        "filled_choices": int((random & (plan.choice_family[:, 1:] != family[:, None])).sum()),
        "cells": cells,
        **_contents(plan),
        **_flag_counts(plan.flags),
        "dropped": {reason: count for reason, count in plan.dropped.items() if count},
    }


def _flag_counts(flags: Flags | None) -> dict[str, Any]:
    """Count the rows with each flag, and those with any; empty if none has one."""
    if flags is None or not flags.flagged.any():
        return {}
    return {"flags": flags.counts(), "flagged": int(np.count_nonzero(flags.flagged))}


def _contents(plan: Plan) -> dict[str, dict[str, int]]:
    """Count the rows by what they ask about, if known."""
    column = plan.questions.columns.get("content")
    if column is None:
        return {}
    counted = column.take(pa.array(plan.question)).value_counts().to_pylist()
    return {"content": {one["values"]: one["counts"] for one in counted}}


def _variant_counts(variant: Assembled, done: Assembled) -> dict[str, int]:
    """Count a variant's rows, and those whose right answer differs from the default config's."""
    order = np.argsort(done.ids)
    row = order[np.searchsorted(done.ids, variant.ids, sorter=order)]
    other = done.plan.nodes[row, 0] != variant.plan.nodes[:, 0]
    return {"rows": len(variant), "other_answers": int(np.count_nonzero(other))}


def same_rows(old: Manifest, new: Mapping[str, Any]) -> list[str]:
    """Compare the files of two manifests; return the differences, or an empty list."""
    before = {entry.path: entry for entry in old.files}
    after = {entry.path: entry for entry in new["files"]}
    differences = []
    for path in sorted(before.keys() | after.keys()):
        if path not in after or path not in before:
            where = "the manifest" if path in before else "the new build"
            differences.append(f"{path} is only in {where}")
        elif before[path].sha256 != after[path].sha256:
            if before[path].rows_sha256 == after[path].rows_sha256:
                then, now = old.environment.get("pyarrow"), new["environment"]["pyarrow"]
                by = f"pyarrow {then} then, {now} now" if then != now else "by another kbprobe"
                differences.append(f"{path}: the same rows, encoded otherwise ({by})")
            else:
                differences.append(f"{path}: other rows")
    return differences
