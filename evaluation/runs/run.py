"""A run with its model opened and its rows read: all that its scores depend on, and their hash."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from evaluation.content import content_hash, installed_version
from evaluation.items.control_task import control_keys
from evaluation.items.types import LABELLED_SETUPS, Item, ProbeSplit, fingerprint
from evaluation.learners.base import (
    HeadFitting,
    LearnerEntry,
    ModelLearner,
    Training,
    check_count,
    draw_rows,
)
from evaluation.learners.registry import choose_learner
from evaluation.models.capabilities import head_that_gives
from evaluation.models.handle import ModelHandle
from evaluation.progress import Progress, silent
from evaluation.runs.reading import SplitReader
from evaluation.runs.spec import RunSpec, plugins
from evaluation.scorers.base import ReadyScorer, ScorerEntry, ScorerInputs
from evaluation.scorers.registry import choose_scorer
from evaluation.workers import ALONE, Workers
from kbprobe.errors import UsageError
from kbprobe.format.dataset import DEFAULT_CONFIG
from kbprobe.options import Options, option_name


@dataclass(frozen=True)
class Run:
    """A run that is ready to be looked up or scored; its model is not yet loaded.

    ``learner`` is None where the model is scored as it is, and ``train``, the rows that may be
    learnt from, where nothing needs them.
    """

    spec: RunSpec
    model: ModelHandle
    scorer: ScorerEntry
    learner: LearnerEntry | None
    rows: ProbeSplit
    train: ProbeSplit | None

    @cached_property
    def scorer_options(self) -> Options:
        """The scorer's own options."""
        return self.spec.plugin_options(self.scorer.options)

    @cached_property
    def learner_options(self) -> Options | None:
        """The learner's own options, its learning rate filled in; None where nothing is learnt."""
        if self.learner is None:
            return None
        options, rate = self.spec.plugin_options(self.learner.options), self.learner.learning_rate
        if rate is None or getattr(options, "learning_rate", None) is not None:
            return options
        return options.model_copy(update={"learning_rate": rate})

    @cached_property
    def items(self) -> Sequence[Item]:
        """The rows as the scorer takes them: those of labels may be put into words."""
        return self.scorer.asked(self.rows.items)

    @cached_property
    def train_items(self) -> Sequence[Item]:
        """The rows that may be learnt from, likewise; none where nothing needs them."""
        return () if self.train is None else self.scorer.asked(self.train.items)

    @property
    def train_seed(self) -> int:
        """The seed of all that the learner draws."""
        own = self.spec.run.train_seed
        return self.spec.run.seed if own is None else own

    @cached_property
    def drawn(self) -> list[int]:
        """All rows of train in the order of the draw: the learner is fitted on the first."""
        if self.train is None:
            return []
        return draw_rows(self.train.items, len(self.train.items), self.train_seed)

    @property
    def seen(self) -> float | None:
        """Share of the rows whose random answer the rows fitted on tell; None: of gold answers."""
        if self.train is None or self.spec.run.labels == "gold":
            return None
        keys = control_keys(self.train)
        told = {keys[row] for row in self.drawn[: self.spec.run.train]}
        asked = control_keys(self.rows)
        return sum(key in told for key in asked) / len(asked)

    @property
    def head_fitting(self) -> HeadFitting:
        """What a learner of heads is to fit, and the rows that the head is to score."""
        count, options = self.spec.run.train or 0, self.learner_options
        return HeadFitting(
            self.train_items, self.drawn, count, self.items, self.train_seed, options
        )

    @property
    def overlap(self) -> int:
        """How many rows are of a cluster that train has as well."""
        if self.train is None or not self.rows.clustered or not self.train.clustered:
            return 0
        learnt = set(self.train.about["cluster"].to_pylist())
        return sum(name in learnt for name in self.rows.about["cluster"].to_pylist())

    @property
    def all_questions(self) -> bool:
        """Whether every row is a question with answers, and none a cloze."""
        return all(item.setup == "mc_qa" for item in self.rows.items)

    @property
    def default_normalization(self) -> str | None:
        """What scores are divided by unless the user says otherwise; None: they never are."""
        # A cloze's score is of the sentence, and a letter's of the letter, not of a choice's text.
        return self.scorer.normalization(self.scorer_options) if self.all_questions else None

    @property
    def normalization(self) -> str:
        """What scores are divided by before choices are compared."""
        return self.spec.run.normalization or self.default_normalization or "sum"

    @property
    def must_fit(self) -> bool:
        """Whether something is to be kept that is not there yet: scores are not enough then."""
        learner = self.learner
        return isinstance(learner, ModelLearner) and learner.wanted(self.learner_options)

    @cached_property
    def content(self) -> dict[str, Any]:
        """Everything that the scores depend on, by content.

        Names are not among it: a checkpoint that was moved finds its scores, and one that was
        replaced under the same name does not.
        """
        checkpoint, rows = self.model.checkpoint, self.rows.items

        def named(entry: ScorerEntry | LearnerEntry, options: Options) -> dict[str, Any]:
            own = options.model_dump(mode="json")
            return {"name": entry.name, "version": entry.version, "options": own}

        learner = None
        if self.learner is not None and self.learner_options is not None:
            learner = {
                **named(self.learner, self.learner_options),
                **self.learner.content(self.learner_options),
                "rows": self.spec.run.train,
            }
        return {
            "model": {
                "weights": checkpoint.weights_sha256,
                "tokenizer": checkpoint.tokenizer_sha256,
                "model_args": self.spec.run.model_args,
                "dtype": self.model.dtype_name,
                "device": self.model.device.type,
                "batch_tokens": self.model.batch_tokens,
            },
            "rows": self.rows.fingerprint if self.items is rows else fingerprint(self.items),
            "scorer": named(self.scorer, self.scorer_options),
            "learner": learner,
            "train": None if self.train is None else self.train.fingerprint,
            "seed": self._seed_of_content,
            "versions": {name: installed_version(name) for name in ("torch", "transformers")},
        }

    @property
    def _seed_of_content(self) -> int | None:
        """The seed that scores depend on, if any: of the learner, or of examples in prompts."""
        if self.train is None:
            return None
        return self.spec.run.seed if self.learner is None else self.train_seed

    @cached_property
    def key(self) -> str:
        """Hash of :attr:`content`: what scores, and so finished runs, are found by."""
        return content_hash(self.content)


def open_run(spec: RunSpec, model: ModelHandle, reader: SplitReader | None = None) -> Run:
    """Choose scorer and learner, and read the rows that they need.

    Runs that are opened with one ``reader`` share the rows that they have in common.

    Raises:
        UsageError: no scorer or learner suits the checkpoint; an option is of another one; there
            is no such probe or split, or its rows are malformed, unlabelled or of a set-up that
            is not scored; what is learnt from would be asked again.
        KbprobeError: the probe cannot be read.
    """
    options, learner = spec.run, None
    if options.train is not None:
        learner = choose_learner(model.checkpoint, options.learner, options.scorer)
    scorer = learner.scorer if learner else choose_scorer(model.checkpoint, options.scorer)
    reader = reader or SplitReader()
    _refuse_idle_options(spec, scorer, learner)
    rows = reader.rows(spec.probe, options)
    for setup in sorted({item.setup for item in rows.items}):
        for entry in (learner, scorer):
            if entry is not None and not entry.takes(setup):
                raise UsageError(_other_setup(rows, setup, spec, entry))
    uses_train = learner is not None or scorer.uses_train(spec.plugin_options(scorer.options))
    train = _open_train(spec, rows, reader) if uses_train else None
    if train is not None:
        check_count(train.items, options.train or 0)
    run = Run(spec, model, scorer, learner, rows, train)
    if options.normalization not in (None, "sum") and run.default_normalization is None:
        raise UsageError(
            f"--normalization {options.normalization} divides log-likelihoods of answers by their "
            f"length; the scores of {scorer.name} are of another kind here (logits, letters, "
            "labels or clozes). Leave it out."
        )
    return run


@contextmanager
def ready_scorers(
    run: Run, workers: Workers = ALONE, progress: Progress = silent
) -> Iterator[Callable[[Run], ReadyScorer]]:
    """Give what makes the scorer of a run when it is first needed: loaded, or fitted on its train.

    All that is scored within the block, the run's rows and its sub-questions, is scored with one
    model. A learner that was fitted is released when the block ends.
    """
    with ExitStack() as stack:

        @cache
        def fitted(learner: ModelLearner) -> ReadyScorer:
            drawn = [run.train_items[row] for row in run.drawn[: run.spec.run.train]]
            seed, options = run.train_seed, run.learner_options
            training = Training(run.model, drawn, seed, options, workers, progress)
            return stack.enter_context(learner.fit(training))

        def ready(scored: Run) -> ReadyScorer:
            progress("loading", 0, 0)
            if isinstance(run.learner, ModelLearner):
                return fitted(run.learner)
            further = (scored.scorer_options, scored.train_items, scored.spec.run.seed)
            if not run.scorer.needs:
                return ReadyScorer(scored.scorer.make(ScorerInputs(None, None, *further)), 0)
            head = run.model.checkpoint.head
            if run.scorer.needs not in head.gives:
                head = head_that_gives(run.scorer.needs)
            model, tokenizer = run.model.load(head)
            scorer = scored.scorer.make(ScorerInputs(model, tokenizer, *further))
            return ReadyScorer(scorer, model.num_parameters())

        yield ready


def _other_setup(
    rows: ProbeSplit, setup: str, spec: RunSpec, entry: ScorerEntry | LearnerEntry
) -> str:
    """Word the refusal of rows of a set-up that a scorer or learner does not take."""
    said = (
        f"{spec.probe_name} has rows of the set-up {setup}, and {entry.name} takes "
        f"{', '.join(entry.setups)} alone."
    )
    if setup not in LABELLED_SETUPS:
        return f"{said} Name another --model or --scorer, or another --config."
    files = (rows.manifest or {}).get("files") or ()
    configs = sorted({entry["config"] for entry in files if "config" in entry} - {DEFAULT_CONFIG})
    named = f" ({', '.join(configs)})" if configs else ""
    remedy = "name such a --model" if spec.run.train is None else "leave --train out"
    return (
        f"{said} Labels are given by a sequence classifier, or by a causal or masked LM that is "
        f"asked for them: {remedy}. Or name a --config{named} whose rows are questions with "
        "choices, such as pairs of sentences."
    )


def _open_train(spec: RunSpec, rows: ProbeSplit, reader: SplitReader) -> ProbeSplit:
    train = reader.train(spec.probe, spec.run)
    seen = {item.id for item in train.items} & {item.id for item in rows.items}
    if train.split == rows.split or seen:
        shared = f"{len(seen):,} rows" if seen else "its rows"
        raise UsageError(
            f"{spec.probe_name}: train shares {shared} with the split to evaluate, "
            f"{rows.split!r}: what was learnt would be asked again. Name another --split, or a "
            "probe whose splits are disjoint."
        )
    return train


def _refuse_idle_options(spec: RunSpec, scorer: ScorerEntry, learner: LearnerEntry | None) -> None:
    """Refuse an option that neither scorer nor learner reads: it is a misunderstanding."""
    used = {*scorer.options.model_fields, *(learner.options.model_fields if learner else ())}
    for name in spec.options.keys() - used:
        owners = [entry for entry in plugins() if name in entry.options.model_fields]
        if spec.options[name] == owners[0].options.model_fields[name].default:
            continue
        if learner is None and isinstance(owners[0], LearnerEntry):
            raise UsageError(f"{option_name(name)} is of --train: give --train N as well")
        others = " or ".join(entry.label for entry in owners)
        raise UsageError(
            f"{option_name(name)} is for {others}, and {spec.model} is scored as a "
            f"{scorer.label}. Leave it out, or choose with --scorer."
        )
