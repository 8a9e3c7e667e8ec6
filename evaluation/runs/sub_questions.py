"""The single facts that a probe's questions rest on, asked of the same model.

A built probe may have sub-questions: configs whose rows ask for one fact each, and which the rows
of the default config name in ``fact_ids``. Those that the evaluated rows name are asked once each,
whichever split they are in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from evaluation.items.sources import open_probe
from evaluation.items.types import ProbeSplit, ids_of, joined
from evaluation.learners.base import HeadLearner
from evaluation.results.analyses import facts as facts_analysis
from evaluation.results.analyses.composition import relate, with_facts
from evaluation.runs.evaluation import Evaluation
from evaluation.runs.run import Run


def sub_question_configs(rows: ProbeSplit) -> list[str]:
    """Return the configs that ask for the facts which rows rest on, from the manifest."""
    return [*rows.manifest.sub_questions] if rows.manifest else []


def open_sub_questions(run: Run) -> Run | None:
    """Return the run of the facts that a run's rows rest on; None where none are there or wanted.

    The model is the one that answers the rows: what is fine-tuned learns from their train split.
    Shots are examples of facts, and never one of those asked. A head on frozen vectors is of the
    rows alone: its facts are not asked.

    Raises:
        UsageError: shots are wanted, and the sub-questions have no train split.
        KbprobeError: a sub-question cannot be read.
    """
    rows, configs = run.rows, sub_question_configs(run.rows)
    if not run.spec.run.facts or rows.links is None or not configs:
        return None
    if isinstance(run.learner, HeadLearner):
        return None
    named = {name for ids in rows.links.fact_ids for name in ids}
    facts = _joined(rows, configs, list(_rows_in(run, configs, named)))
    if facts is None:
        return None
    if run.train is None or run.learner is not None:
        return replace(run, rows=facts)
    parts = [open_probe(run.spec.probe, split="train", config=config) for config in configs]
    examples = [
        part.take([row for row, name in enumerate(ids_of(part.items)) if name not in named])
        for part in parts
    ]
    train = _joined(rows, configs, [part for part in examples if len(part.items)])
    return replace(run, rows=facts, train=train)


def relate_sub_questions(run: Run, done: Evaluation, facts: Evaluation) -> Evaluation:
    """Return a run's evaluation with what its rows owe to the facts that they rest on."""
    links = run.rows.links
    if links is None:
        return done
    predictions = with_facts(done.predictions, links, facts.predictions)
    block = relate(
        predictions,
        links,
        facts.predictions,
        facts.results.metrics,
        sub_question_configs(run.rows),
        run.spec.run.seed,
    )
    return Evaluation(done.results.with_analysis(facts_analysis.NAME, block), predictions, facts)


def _rows_in(run: Run, configs: Sequence[str], named: set[str]) -> Iterator[ProbeSplit]:
    """Read the named rows of every split of some configs."""
    for entry in run.rows.manifest.files if run.rows.manifest else ():
        if entry.config in configs:
            part = open_probe(run.spec.probe, split=entry.split, config=entry.config)
            rows = [row for row, name in enumerate(ids_of(part.items)) if name in named]
            if rows:
                yield part.take(rows)


def _joined(
    rows: ProbeSplit, configs: Sequence[str], parts: Sequence[ProbeSplit]
) -> ProbeSplit | None:
    """Put rows of several splits and configs together; None where there are none."""
    if not parts:
        return None
    manifest = rows.manifest and rows.manifest.model_copy(update={"audit": None})
    found = joined(parts, f"{rows.name}-{'+'.join(configs)}", rows.split)
    return replace(found, manifest=manifest, links=None)
