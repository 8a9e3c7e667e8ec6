"""A run with its model opened and its rows read: all that its scores depend on, and their hash."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from evaluation.content import content_hash, installed_version
from evaluation.items.control_task import control_keys
from evaluation.items.sampling import check_count, draw_items
from evaluation.items.text_files import TextFiles
from evaluation.items.types import Item, ProbeSplit, fingerprint, ids_of, setups_of, take_items
from evaluation.learners.base import (
    HeadFitting,
    LearnerEntry,
    ModelLearner,
    has_setting,
)
from evaluation.learners.registry import choose_learner
from evaluation.models.handle import ModelHandle
from evaluation.options import TEXTS, RunOptions
from evaluation.runs.encoders import encoder_options, open_encoder
from evaluation.runs.reading import SplitReader, read_facts
from evaluation.runs.spec import RunSpec, plugins
from evaluation.scorers.base import ScorerEntry
from evaluation.scorers.entries import EMBEDDING
from evaluation.scorers.registry import choose_scorer
from kbprobe.errors import UsageError
from kbprobe.format.setups import DEFAULT_CONFIG, LABELLED_SETUPS, QUESTION
from kbprobe.options import Options, option_name

SCORING_VERSIONS = ("torch", "transformers")
"""Packages whose versions scores depend on."""


@dataclass(frozen=True)
class Run:
    """A run that is ready to be looked up or scored; its model is not yet loaded.

    ``learner`` is None where the model is scored as it is, ``train``, the rows that may be learnt
    from, where nothing needs them, ``mixed`` where no others are mixed in, and
    ``encoder`` where no other similarity than that of the static encoder is measured.
    """

    spec: RunSpec
    model: ModelHandle
    scorer: ScorerEntry
    learner: LearnerEntry | None
    rows: ProbeSplit
    train: ProbeSplit | None
    mixed: ProbeSplit | None = None
    encoder: ModelHandle | None = None

    @property
    def of_encoder(self) -> Run | None:
        """The run of the encoder on the same rows: how similar each choice is to its question."""
        if self.encoder is None or not all(map(EMBEDDING.takes, setups_of(self.rows.items))):
            return None
        given = RunOptions(scorer=EMBEDDING.name, device=self.spec.run.device, dtype="float32")
        options = encoder_options(self.encoder)
        spec = RunSpec(self.spec.probe, self.encoder.checkpoint.id, given, options)
        return Run(spec, self.encoder, EMBEDDING, None, self.rows, None)

    @cached_property
    def texts(self) -> dict[str, TextFiles]:
        """The texts that the model has read, by the option that names them."""
        return texts_of(self.spec.run)

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
        """The rows that may be learnt from, likewise; none where nothing needs them.

        Runs of one split share the sequence, so that its rows are read once for all their heads.
        """
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
        return draw_items(self.train.items, len(self.train.items), self.train_seed)

    @cached_property
    def drawn_mixed(self) -> list[int]:
        """The rows that are mixed in, of all that might be."""
        if self.mixed is None:
            return []
        return draw_items(self.mixed.items, self.spec.run.mix_rows or 0, self.train_seed)

    @property
    def fitted_items(self) -> list[Item]:
        """All rows that the learner is fitted on."""
        own = take_items(self.train_items, self.drawn[: self.spec.run.train])
        if self.mixed is None:
            return own
        return own + take_items(self.scorer.asked(self.mixed.items), self.drawn_mixed)

    @cached_property
    def first_items(self) -> list[Item]:
        """The single facts that the learner is fitted on before its rows, if they are wanted."""
        if not getattr(self.learner_options, "facts_first", False):
            return []
        return list(self.scorer.asked(read_facts(self.spec.probe, self.rows)))

    @property
    def seen(self) -> float | None:
        """Share of rows whose random answer follows from training rows; None for gold answers."""
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
        train, order = self.train_items, self.drawn
        if self.mixed is not None:
            train = self.fitted_items
            count, order = len(train), list(range(len(train)))
        return HeadFitting(train, order, count, self.items, self.train_seed, options)

    @property
    def overlap(self) -> int:
        """The number of rows whose cluster also occurs in train."""
        if self.train is None or not self.rows.clustered or not self.train.clustered:
            return 0
        learnt = set(self.train.about["cluster"].to_pylist())
        return sum(name in learnt for name in self.rows.about["cluster"].to_pylist())

    @property
    def all_questions(self) -> bool:
        """Whether every row is a question with answers, and none a cloze."""
        return setups_of(self.rows.items) == {QUESTION}

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
        """Whether fitting must produce something to keep, so that cached scores are not enough."""
        learner = self.learner
        return isinstance(learner, ModelLearner) and learner.wanted(self.learner_options)

    @cached_property
    def content(self) -> dict[str, Any]:
        """Everything that the scores depend on, by content.

        Names are not among it: a checkpoint that was moved finds its scores, and one that was
        replaced under the same name does not.
        """
        checkpoint, items = self.model.checkpoint, self.rows.items

        def named(entry: ScorerEntry | LearnerEntry, options: Options) -> dict[str, Any]:
            own = options.model_dump(mode="json")
            found = {"name": entry.name, "version": entry.version, "options": own}
            return {**found, **entry.content(options)}

        # Of examples in prompts, or of the learner.
        seed = self.spec.run.seed if self.learner is None else self.train_seed
        learner = None
        if self.learner is not None and self.learner_options is not None:
            learner = {
                **named(self.learner, self.learner_options),
                "rows": self.spec.run.train,
            }
            if self.first_items:
                first = {"rows": fingerprint(self.first_items), "seed": self.spec.run.seed}
                learner["first"] = first
            if self.mixed is not None:
                rows = self.spec.run.mix_rows
                learner["mixed"] = {"train": self.mixed.fingerprint, "rows": rows}
        return {
            "model": {
                "weights": checkpoint.weights_sha256,
                "tokenizer": checkpoint.tokenizer_sha256,
                "model_args": self.spec.run.model_args,
                "dtype": self.model.dtype_name,
                "device": self.model.device_name,
                "batch_tokens": self.model.batch_tokens,
                **({"once": checkpoint.once} if checkpoint.once else {}),
            },
            "rows": self.rows.fingerprint if self.items is items else fingerprint(self.items),
            "scorer": named(self.scorer, self.scorer_options),
            "learner": learner,
            "train": None if self.train is None else self.train.fingerprint,
            "seed": None if self.train is None else seed,
            "versions": {name: installed_version(name) for name in SCORING_VERSIONS},
        }

    @cached_property
    def key(self) -> str:
        """Hash of :attr:`content`: what scores, and so finished runs, are found by."""
        return content_hash(self.content)

    @cached_property
    def fitting_key(self) -> str:
        """Hash of all that a fitted learner depends on: runs that share it are fitted once."""
        deciding = {name: value for name, value in self.content.items() if name != "rows"}
        return content_hash(deciding)


def open_run(spec: RunSpec, model: ModelHandle, reader: SplitReader | None = None) -> Run:
    """Choose scorer and learner, and read the rows that they need.

    Runs that are opened with one ``reader`` share the rows that they have in common.

    Raises:
        UsageError: no scorer or learner suits the checkpoint; an option is of another one; there
            is no such probe or split, or its rows are malformed, unlabelled or of a setup that
            is not scored; what is learnt from would be asked again.
        KbprobeError: the probe cannot be read.
    """
    options, learner = spec.run, None
    if options.train is not None:
        learner = choose_learner(model.checkpoint, options.learner, options.scorer)
    scorer = learner.scorer if learner else choose_scorer(model.checkpoint, options.scorer)
    reader = reader or SplitReader()
    _refuse_idle_options(spec, scorer, learner)
    for texts in texts_of(options).values():
        texts.files()
    rows = reader.rows(spec.probe, options)
    if options.seen is not None:
        _check_concepts(rows)
    _check_setups(rows, spec, learner, scorer)
    uses_train = learner is not None or scorer.uses_train(spec.plugin_options(scorer.options))
    train = _open_train(spec, rows, reader) if uses_train else None
    mixed = reader.mixed(options)
    if train is not None:
        check_count(train.items, options.train or 0, "--train", train.source)
    if mixed is not None:
        check_count(mixed.items, options.mix_rows or 0, "--mix-rows", mixed.source)
        _refuse_shared(spec, rows, mixed, own=options.mix_in == spec.probe)
    for split in filter(None, (train, mixed)):
        _check_setups(split, spec, learner, scorer)
        _check_labels(rows, split)
    run = Run(spec, model, scorer, learner, rows, train, mixed, open_encoder(options))
    if options.normalization not in (None, "sum") and run.default_normalization is None:
        raise UsageError(
            f"--normalization {options.normalization} divides log-likelihoods of answers by their "
            f"length; the scores of {scorer.name} are of another kind here (logits, letters, "
            "labels or clozes). Leave it out."
        )
    return run


def _check_setups(
    rows: ProbeSplit, spec: RunSpec, learner: LearnerEntry | None, scorer: ScorerEntry
) -> None:
    """Refuse rows that the learner is not fitted on, or the scorer does not read."""
    for setup in sorted(setups_of(rows.items)):
        for entry in (learner, scorer):
            if entry is not None and not entry.takes(setup):
                raise UsageError(_other_setup(rows, setup, spec, entry))


def texts_of(options: RunOptions) -> dict[str, TextFiles]:
    """Return the texts that options name, by the option."""
    given = {name: getattr(options, name) for name in TEXTS}
    return {n: TextFiles(option_name(n), source) for n, source in given.items() if source}


def _check_concepts(rows: ProbeSplit) -> None:
    """Refuse to look for the concepts of rows that name none."""
    about = rows.about
    known = sum(len(about) - about[name].null_count for name in ("concept", "surface_form"))
    if not known or setups_of(rows.items) & set(LABELLED_SETUPS):
        raise UsageError(
            f"--seen: the rows of {rows.source} ask about no concept, such as a word, whose "
            "occurrence could be looked up. Leave it out."
        )


def _check_labels(rows: ProbeSplit, learnt: ProbeSplit) -> None:
    """Refuse to learn from rows with other labels than those evaluated."""
    asked, known = (setups_of(part.items) for part in (rows, learnt))
    if asked != known and (asked | known) & set(LABELLED_SETUPS):
        raise UsageError(
            f"{learnt.source} has rows of the setup {', '.join(sorted(known))}, and {rows.source} "
            f"of {', '.join(sorted(asked))}: the rows to fit on must have the same labels. "
            "Name another --train-on or --mix-in."
        )


def _other_setup(
    rows: ProbeSplit, setup: str, spec: RunSpec, entry: ScorerEntry | LearnerEntry
) -> str:
    """Word the refusal of rows of a setup that a scorer or learner does not take."""
    said = (
        f"{rows.source} has rows of the setup {setup}, and {entry.name} takes "
        f"only {', '.join(entry.setups)}."
    )
    if setup not in LABELLED_SETUPS:
        return f"{said} Name another --model or --scorer, or another --config."
    known = rows.manifest.configs if rows.manifest else ()
    configs = sorted({*known} - {DEFAULT_CONFIG})
    named = f" ({', '.join(configs)})" if configs else ""
    remedy = "name such a --model"
    if spec.run.train is not None:
        remedy = "leave --train out, or fit a classifier with --learner pooled or full_labels"
    return (
        f"{said} Labels are given by a sequence classifier, or by a language model that is "
        f"asked for them: {remedy}. Or name a --config{named} whose rows are questions with "
        "choices, such as pairs of sentences."
    )


def _open_train(spec: RunSpec, rows: ProbeSplit, reader: SplitReader) -> ProbeSplit:
    train = reader.train(spec.probe, spec.run)
    own = spec.run.train_on in (None, spec.probe)
    if own and spec.run.fold is None and train.split == rows.split:
        raise UsageError(_asked_again(spec, rows, "its rows"))
    _refuse_shared(spec, rows, train, own)
    return train


def _refuse_shared(spec: RunSpec, rows: ProbeSplit, learnt: ProbeSplit, own: bool) -> None:
    """Refuse to fit on rows that are evaluated.

    Those of the same probe are known by their ids; ids of another dataset may be equal by chance.
    """
    if own:
        shared = len(set(ids_of(learnt.items)) & set(ids_of(rows.items)))
    else:
        shared = len(set(learnt.items) & set(rows.items))
    if shared:
        raise UsageError(_asked_again(spec, rows, f"{shared:,} rows"))


def _asked_again(spec: RunSpec, rows: ProbeSplit, shared: str) -> str:
    return (
        f"{spec.probe_name}: train shares {shared} with the split to evaluate, "
        f"{rows.split!r}: the model would be tested on training rows. Name another --split, or a "
        "probe whose splits are disjoint."
    )


def _refuse_idle_options(spec: RunSpec, scorer: ScorerEntry, learner: LearnerEntry | None) -> None:
    """Refuse an option that neither scorer nor learner reads: it is a misunderstanding."""
    used = {*scorer.options.model_fields, *(learner.options.model_fields if learner else ())}
    for name in spec.options.keys() - used:
        owners = [entry for entry in plugins() if name in entry.options.model_fields]
        if spec.options[name] == owners[0].options.model_fields[name].default:
            continue
        if learner is None and isinstance(owners[0], LearnerEntry):
            raise UsageError(f"{option_name(name)} requires --train: give --train N as well")
        others = " or ".join(dict.fromkeys(entry.label for entry in owners))
        raise UsageError(
            f"{option_name(name)} is for {others}, and {spec.model} is scored as a "
            f"{scorer.label}. Leave it out, or choose with --scorer."
        )
    for key in spec.options.get("training", {}):
        if learner is not None and not has_setting(learner.options, key):
            raise UsageError(
                f"--training {key} is for networks with LSTMs, not for {learner.name}: leave it out"
            )
