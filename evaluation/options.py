"""The options of an evaluation: the same from the command line and from Python.

Some are of every run; the rest are those of the registered scorers and learners, each of which
brings a model of its own. A caller sees all of them as one flat set of names.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from enum import Flag, auto
from functools import partial
from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator
from pydantic.fields import FieldInfo

from evaluation.items.recast import meaning
from kbprobe.errors import UsageError, did_you_mean, key_hint
from kbprobe.format.setups import NLI, SETUPS
from kbprobe.options import MAX_SEED, Metavar, Options, Role, option_name, role
from kbprobe.parsing import json_value


class Models(Flag):
    """Kinds of models, by location."""

    CHECKPOINT = auto()
    """Found by its name and loaded."""
    LOADED = auto()
    """Loaded by the caller, in memory."""
    ENDPOINT = auto()
    """Behind an endpoint."""


@dataclass(frozen=True)
class RunRole(Role):
    """The purpose of a run option, from which everything that depends on it is derived.

    Attributes:
        models: the kinds of models that it applies to; others refuse it.
        recorded: where results record it: among ``scoring.options`` if it differs from its default;
            in a ``field`` of their own; or nowhere (``no``), since they do not depend on it. Those
            on which results depend are part of the names of folders.
        rows: whether it selects which rows of the split are evaluated, or changes what they show.
    """

    models: Models = ~Models(0)
    recorded: Literal["options", "field", "no"] = "options"
    rows: Literal["selects", "changes"] | None = None


NOT_LOADED = Models.CHECKPOINT | Models.ENDPOINT
CHECKPOINT = partial(RunRole, "Model", models=Models.CHECKPOINT)
TRAIN = partial(RunRole, "Training", models=NOT_LOADED)
REQUESTS = RunRole("Endpoint", rare=True, models=Models.ENDPOINT, recorded="no")


def run_role(info: FieldInfo) -> RunRole:
    """Return what an option of runs is for."""
    found = role(info)
    assert isinstance(found, RunRole)
    return found


CHAT_DATE = "2024-07-26"
"""The day that Llama 3's template names where it is told none."""


class ChatOption(Options):
    """Whether questions are put to a model as in a chat, and on which day."""

    chat: Annotated[bool, RunRole("Scoring")] = Field(
        False,
        description="Use the chat template, or the endpoint's chat API.",
    )
    chat_date: Annotated[
        str,
        Metavar("DATE"),
        RunRole("Scoring", rare=True, models=Models.CHECKPOINT | Models.LOADED),
    ] = Field(
        CHAT_DATE,
        description="With --chat: the day that is today to a chat template which asks for it, such "
        "as Llama 3's.",
    )

    @field_validator("chat_date", mode="before")
    @classmethod
    def _as_iso_date(cls, value: Any) -> Any:
        if isinstance(value, date):  # as YAML reads it
            return value.isoformat()[:10]
        try:
            return date.fromisoformat(value).isoformat()
        except (TypeError, ValueError):
            raise ValueError(f"{value!r} is no date of the form {CHAT_DATE}") from None

    @model_validator(mode="after")
    def _has_a_chat_to_date(self) -> Self:
        if self.chat_date != CHAT_DATE and not self.chat:
            raise ValueError("--chat-date is shown by chat templates: give --chat as well")
        return self


class ModelOptions(ChatOption):
    """How a model is found and run."""

    batch_tokens: Annotated[int | None, RunRole("Model", rare=True, recorded="no")] = Field(
        None,
        ge=1,
        description="Tokens per batch, padding included; by default 1024 on a CPU and 16384 on a "
        "GPU.",
    )
    device: Annotated[str, CHECKPOINT(recorded="no")] = Field(
        "auto",
        pattern=r"^(auto|[a-z]+(:\d+)?)$",
        description="auto (a GPU if available), cpu, cuda, cuda:1 or mps.",
    )
    device_map: Annotated[
        Literal["auto", "balanced", "balanced_low_0", "sequential"] | None,
        CHECKPOINT(recorded="no", rare=True),
    ] = Field(
        None,
        description="Spread the layers of one model over all GPUs, and over main memory if they "
        "do not suffice, as accelerate does; for models that one GPU cannot hold.",
    )
    dtype: Annotated[
        Literal["auto", "float32", "bfloat16", "float16"],
        RunRole("Model", models=NOT_LOADED, recorded="field"),
    ] = Field(
        "auto",
        description="Data type of the weights, also at --endpoint; auto: bfloat16 on a GPU, "
        "otherwise float32.",
    )
    revision: Annotated[str | None, CHECKPOINT(recorded="field")] = Field(
        None, description="Branch, tag or commit of a checkpoint on the Hub."
    )
    random_weights: Annotated[int | None, CHECKPOINT(recorded="field", rare=True)] = Field(
        None,
        ge=0,
        le=MAX_SEED,
        description="Initialise the weights at random with this seed instead of loading those of "
        "the checkpoint: the architecture without pre-training.",
    )
    model_args: Annotated[dict[str, Any], CHECKPOINT(recorded="field", rare=True)] = Field(
        {}, description="Further arguments of from_pretrained, as key=value,key=value."
    )
    trust_remote_code: Annotated[bool, CHECKPOINT(recorded="no", rare=True)] = Field(
        False, description="Run the Python code that comes with the checkpoint. Read it first."
    )

    endpoint: Annotated[str | None, Metavar("URL"), RunRole("Endpoint", models=Models.ENDPOINT)] = (
        Field(
            None,
            min_length=1,
            description="OpenAI-compatible API that serves the model, such as "
            "http://localhost:8000/v1. The key is read from the environment: KBPROBE_API_KEY.",
        )
    )
    send_key: Annotated[bool, REQUESTS] = Field(
        True, description="Send KBPROBE_API_KEY, if it is set, to --endpoint."
    )
    concurrency: Annotated[int, REQUESTS] = Field(
        8, ge=1, le=256, description="Number of simultaneous requests to --endpoint."
    )
    request_timeout: Annotated[float, REQUESTS] = Field(
        120.0, gt=0, le=86400, description="Seconds to wait for an answer of --endpoint."
    )
    max_requests: Annotated[int | None, REQUESTS] = Field(
        None,
        ge=1,
        description="Stop after this many requests to --endpoint for a model, retries included; "
        "the same command continues from there.",
    )
    max_prompt_tokens: Annotated[int | None, REQUESTS] = Field(
        None,
        ge=1,
        description="Stop after this many prompt tokens sent to --endpoint for a model.",
    )

    @field_validator("model_args", mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        return parse_model_args(value) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _of_an_endpoint_or_not(self) -> ModelOptions:
        for name in self.model_dump(exclude_defaults=True, include={*ModelOptions.model_fields}):
            models = run_role(ModelOptions.model_fields[name]).models
            if self.endpoint is None and models == Models.ENDPOINT:
                raise ValueError(f"{option_name(name)} requires --endpoint URL")
            if self.endpoint is not None and Models.ENDPOINT not in models:
                raise ValueError(
                    f"{option_name(name)} is for models that are loaded here: leave out either it "
                    "or --endpoint"
                )
        return self

    @model_validator(mode="after")
    def _spread_or_on_a_device(self) -> ModelOptions:
        if self.device_map is not None and self.device != "auto":
            raise ValueError("--device-map spreads a model over devices: leave --device out")
        if self.device_map is not None and self.random_weights is not None:
            raise ValueError(
                "--device-map spreads weights as they are read from files: leave "
                "either it or --random-weights out"
            )
        return self

    @model_validator(mode="after")
    def _no_option_among_the_arguments(self) -> ModelOptions:
        for name, instead in _HAVE_OPTIONS.items():
            if name in self.model_args:
                raise ValueError(f"{name} does not go into --model-args: {instead}")
        return self


class RunOptions(ModelOptions):
    """What is evaluated, and with what: the options of every run."""

    split: Annotated[str, RunRole("Probe", recorded="field")] = Field(
        "test", description="Split to evaluate; all: all splits together."
    )
    config: Annotated[str | None, RunRole("Probe", recorded="field")] = Field(
        None, description="Config of the probe, such as no_language; by default its default config."
    )
    label_names: Annotated[tuple[str, ...], RunRole("Probe", rare=True, rows="changes")] = Field(
        (),
        description="What the labels of NLI rows mean that are numbers without names, in order "
        "from 0, such as entailment,neutral,contradiction; in every probe of the run.",
    )
    fold: Annotated[int | None, RunRole("Probe", rare=True, rows="selects")] = Field(
        None,
        ge=0,
        description="Cross-validation: evaluate this fold of the split alone, and fit on the other "
        "folds instead of the train split.",
    )
    facts: Annotated[bool, RunRole("Probe", rare=True, recorded="no")] = Field(
        True,
        description="Where questions combine single facts that the probe also asks about: evaluate "
        "these as well, and relate the questions to them.",
    )
    limit: Annotated[int | None, RunRole("Probe", recorded="field", rows="selects")] = Field(
        None, ge=1, le=MAX_SEED, description="Maximum number of rows, drawn with --seed."
    )
    limit_by: Annotated[
        Literal["groups", "clusters", "rows"], RunRole("Probe", rare=True, rows="selects")
    ] = Field(
        "groups",
        description="What --limit draws: whole choice groups, where rows are in such, so that "
        "the choices alone tell nothing, otherwise whole clusters; whole clusters, as strict "
        "accuracy requires; or single rows, which cover more clusters.",
    )
    seed: Annotated[int, RunRole("Probe", recorded="field")] = Field(
        0,
        ge=0,
        le=MAX_SEED,
        description="Random seed of samples, examples, training and intervals.",
    )
    scorer: Annotated[str | None, RunRole("Scoring", recorded="field")] = Field(
        None,
        description="How choices are scored: a name, or FILE.py:NAME; by default as suits the "
        "model.",
    )
    learner: Annotated[str | None, TRAIN(recorded="field")] = Field(
        None,
        description="What --train fits: a name, or FILE.py:NAME; by default as suits the model.",
    )
    train: Annotated[int | None, TRAIN(recorded="field")] = Field(
        None, ge=1, description="Fit a learner on this many rows of the train split first."
    )
    train_seed: Annotated[int | None, TRAIN(recorded="field", rare=True)] = Field(
        None,
        ge=0,
        le=MAX_SEED,
        description="Random seed of training, including the choice of training rows; by default "
        "--seed.",
    )
    train_on: Annotated[str | None, Metavar("PROBE"), TRAIN(rare=True)] = Field(
        None,
        min_length=1,
        description="Fit on the train split of this probe (its default config) instead of the "
        "evaluated one.",
    )
    mix_in: Annotated[str | None, Metavar("PROBE"), TRAIN(rare=True)] = Field(
        None,
        min_length=1,
        description="Also fit on rows of the train split of this probe or dataset.",
    )
    mix_rows: Annotated[int | None, TRAIN(rare=True)] = Field(
        None, ge=1, description="Number of rows from --mix-in."
    )
    inputs: Annotated[Literal["all", "choices"], RunRole("Scoring", rare=True, rows="changes")] = (
        Field(
            "all",
            description="What the model sees of a question with choices: everything, or only the "
            "choices.",
        )
    )
    labels: Annotated[Literal["gold", "random"], TRAIN(rare=True, rows="changes")] = Field(
        "gold",
        description="Answers of the rows: gold, or random ones determined by the first argument of "
        "each row, in training and evaluation (the control task of Hewitt and Liang 2019).",
    )
    normalization: Annotated[
        Literal["sum", "char", "byte", "token"] | None, RunRole("Scoring", recorded="field")
    ] = Field(
        None,
        description="Divide log-likelihoods by characters, bytes, tokens or nothing (sum); by "
        "default char for causal LMs that answer questions, otherwise sum.",
    )
    similarity: Annotated[str | None, Metavar("MODEL"), RunRole("Scoring")] = Field(
        None,
        min_length=1,
        description="Encoder of texts, a folder or a Hub id, whose most similar choice is a "
        "baseline beside that of the small encoder which comes with kbprobe.",
    )
    seen: Annotated[str | None, Metavar("FILE"), RunRole("Scoring", rare=True)] = Field(
        None,
        min_length=1,
        description="Texts of the task that the model was trained on, a file or a folder: accuracy "
        "on rows whose concept occurs in them, and on others.",
    )
    unigrams: Annotated[str | None, Metavar("FILE"), RunRole("Scoring", rare=True)] = Field(
        None,
        min_length=1,
        description="Counts of words in the model's pre-training corpus (a word, a tab and a count "
        "on each line), or texts whose words are counted: frequencies are these instead of "
        "wordfreq's.",
    )
    cache: Annotated[bool, RunRole("Scoring", rare=True, recorded="no")] = Field(
        True, description="Reuse scores computed before, and keep new ones."
    )

    @field_validator("label_names")
    @classmethod
    def _names_labels_of_nli(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        labels = [meaning(NLI, name) for name in value]
        if None in labels or len({*labels}) < len(labels) or len(labels) == 1:
            known = ", ".join(SETUPS[NLI].labels)
            raise ValueError(f"must name two or three of {known}, each once")
        return value

    @model_validator(mode="after")
    def _loaded_for_scoring_alone(self) -> RunOptions:
        if self.device_map is not None and self.train is not None:
            raise ValueError("--device-map is for scoring: leave either it or --train out")
        return self

    @model_validator(mode="after")
    def _learner_has_rows(self) -> RunOptions:
        if self.learner is not None and self.train is None:
            raise ValueError("--learner fits on the rows of --train: give --train N as well")
        if self.train_seed is not None and self.train is None:
            raise ValueError("--train-seed requires --train: give --train N as well")
        for name in ("train_on", "mix_in"):
            if getattr(self, name) is not None and self.train is None:
                raise ValueError(f"{option_name(name)} requires --train: give --train N as well")
        if self.limit_by != "groups" and self.limit is None:
            raise ValueError("--limit-by requires --limit: give --limit N as well")
        if self.fold is not None and self.train_on is not None:
            raise ValueError("--fold fits on the other folds: leave --train-on out")
        if (self.mix_in is None) != (self.mix_rows is None):
            raise ValueError("--mix-in and --mix-rows go together: give both")
        if self.labels == "random" and self.train is None:
            raise ValueError("--labels random requires a learner: give --train N as well")
        return self


def options_that(suits: Callable[[RunRole], bool]) -> tuple[str, ...]:
    """Return the names of options of runs whose role suits."""
    return tuple(name for name, info in RunOptions.model_fields.items() if suits(run_role(info)))


TRAINING = frozenset(options_that(lambda role: role.section == "Training"))
"""Options of fitting a learner, which do not apply to models without training."""

RECORDED = options_that(lambda role: role.recorded == "options")
"""Options that ``scoring.options`` of results record where they differ from their defaults."""

SELECTING = options_that(lambda role: role.rows == "selects")
"""Options that select which rows of a split are evaluated."""

CHANGING_ROWS = options_that(lambda role: role.rows is not None)
"""Options with which other rows are evaluated than those of the split as they are."""


TEXTS = ("seen", "unigrams")
"""Options that name files of texts."""

HASHED = ("similarity", *TEXTS)
"""Options that name what results depend on and scores do not; its hash is recorded as well."""


def digest_name(option: str) -> str:
    """Return the name of the hash of what an option of :data:`HASHED` names, where recorded."""
    return f"{option}_sha256"


def not_default(names: Collection[str], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of some options of runs that differ from their defaults.

    ``options`` has values by name; what is missing has its default.

    >>> not_default(SELECTING, {"limit": 200, "limit_by": "groups"})
    {'limit': 200}
    """
    fields = RunOptions.model_fields
    return {
        name: options[name]
        for name in names
        if name in options and options[name] != fields[name].default
    }


def written_out(options: Mapping[str, Any]) -> str:
    """Write options as they are given on the command line.

    >>> written_out({"limit": 200, "limit_by": "rows"})
    '--limit 200 --limit-by rows'
    """
    return " ".join(f"{option_name(name)} {value}" for name, value in options.items())


_HAVE_OPTIONS = {
    "trust_remote_code": "use --trust-remote-code",
    "device_map": "use --device-map",
    "dtype": "use --dtype",
    "torch_dtype": "use --dtype",
    "revision": "use --revision",
    "config": "the checkpoint's own is used",
    "gguf_file": "name the file itself with --model",
    "subfolder": "name the folder itself with --model",
    "variant": "name a folder that holds these weights alone",
    "weights_only": "weights are read as tensors alone, which runs no code in them",
    "allow_all_kernels": "kernels of others are code that --trust-remote-code does not cover",
}


def parse_model_args(text: str) -> dict[str, Any]:
    """Parse ``key=value,key=value``; values are read as JSON where they are JSON, else as text.

    >>> parse_model_args("attn_implementation=eager,low_cpu_mem_usage=true")
    {'attn_implementation': 'eager', 'low_cpu_mem_usage': True}

    Raises:
        ValueError: a part is not of the form key=value.
    """
    return dict(key_and_value(part.strip()) for part in text.split(",") if part.strip())


def key_and_value(text: str) -> tuple[str, Any]:
    """Parse ``key=value``; the value is read as JSON where it is JSON, else as text.

    Raises:
        ValueError: the text is not of this form.
    """
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ValueError(f"{text!r} is not of the form key=value")
    try:
        return name, json_value(value, name)
    except UsageError:
        return name, value


def parse_options(
    values: Mapping[str, Any], further: Sequence[type[Options]], owner: str
) -> tuple[RunOptions, dict[str, Any]]:
    """Validate options given by name: those of every run, and those of ``further`` models.

    Returns:
        The options of every run, and the validated values of the others that were given.

    Raises:
        UsageError: no options model has such an option, or a value is impossible.
    """
    known = {*RunOptions.model_fields, *(name for one in further for name in one.model_fields)}
    for name in values:
        if name not in known:
            fields = [field for one in further for field in one.model_fields.items()]
            listed = [(option_name(field), info.description) for field, info in fields]
            hint = key_hint(name, listed) or did_you_mean(name, known)
            raise UsageError(f"{owner} has no option {option_name(name)}.{hint}")

    def given(model: type[Options]) -> dict[str, Any]:
        return {name: value for name, value in values.items() if name in model.model_fields}

    run = RunOptions.parse(given(RunOptions), owner)
    others: dict[str, Any] = {}
    for model in further:
        if own := given(model):
            validated = model.parse(own, owner)
            others |= {name: getattr(validated, name) for name in own}
    return run, others
