"""The options that probes share, as typed models, and those that name knowledge bases.

A probe's own options extend :class:`ProbeOptions`. Every option is used: a model leaves out what
its probe does not need (`ProbeOptions.WITHOUT`), and a build refuses an option that is set but
never read (`ProbeOptions.unread`).
"""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple, Self, TypeVar

from pydantic import Field, ModelWrapValidatorHandler, field_validator, model_validator
from pydantic_core import CoreSchema, core_schema

from kbprobe.errors import UsageError
from kbprobe.format.setups import SPLITS
from kbprobe.options import RARE, Metavar, Options, named, option_name

if TYPE_CHECKING:
    from kbprobe.arrays import Bools, Ints

RANDOM = "random"
"""The distractor family of all nodes of the gold's kind; it supplements the others."""


TRAINING_ROWS = 4_002
"""Maximum train rows with ``--for-training``: 4,000, the largest size of learning curves, are also
there in choice groups of three."""


class ProbeOptions(Options):
    """Options that most probes have.

    Attributes:
        WITHOUT: options of the parent models that the probe does not use, and therefore lacks.
        TRAINING: the defaults of other options with ``--for-training``.
    """

    __slots__ = ("_read",)

    WITHOUT: ClassVar[tuple[str, ...]] = ()
    TRAINING: ClassVar[Mapping[str, Any]] = named(train_rows=TRAINING_ROWS)

    tier: Literal["clean", "full"] = Field(
        "clean",
        description="clean: questions that a careful person can answer; full: also those that the "
        "column flags marks as doubtful.",
    )
    for_training: bool = Field(
        False,
        description="Make a train split for learning curves: 4,000 rows where there are as many, "
        "of the full tier if there are tiers, and with a larger share if these need it. Validation "
        "and test remain clean.",
    )
    screen: bool = Field(
        True,
        description="Leave out slurs and obscenities in questions, golds and distractors.",
    )
    choices: int = Field(5, ge=2, le=26, description="Choices of a question, the gold included.")
    train_rows: int = Field(
        4000,
        ge=0,
        description="Maximum rows of the train split, in whole clusters or choice groups (0: all).",
    )
    validation_rows: Annotated[int, RARE] = Field(
        0,
        ge=0,
        description="Maximum rows of the validation split, in whole clusters or choice groups (0: "
        "all).",
    )
    test_rows: int = Field(
        0,
        ge=0,
        description="Maximum rows of the test split, in whole clusters or choice groups (0: all).",
    )
    rows_by: Annotated[Literal["groups", "clusters"], RARE] = Field(
        "groups",
        description="What --validation-rows and --test-rows keep whole: choice groups, where there "
        "are any, so that the choices alone tell nothing; or clusters, so that strict accuracy is "
        "of whole ones.",
    )
    split_shares: Annotated[tuple[float, float, float], RARE] = Field(
        (0.25, 0.25, 0.5),
        description="Shares of the clusters in train, validation and test, before --train-rows.",
    )
    limit: int | None = Field(
        None,
        ge=1,
        description="Maximum rows in total, in whole clusters or choice groups, drawn with the "
        "seed.",
    )
    wording: Annotated[str, RARE, Metavar("ID")] = Field(
        "",
        description="Ask with one of the wordings: its id, as build-probe show NAME lists them; "
        "all of them if empty.",
    )
    controls: bool = Field(
        True,
        description="Write the probe's control renderings, if it has any, as further configs.",
    )
    variants: bool = Field(
        True,
        description="Write the probe's variants, which ask its rows in other ways, as further "
        "configs.",
    )

    @property
    def builds(self) -> dict[str, Self]:
        """The builds that these options request: suffix of the folder's name -> options."""
        return {"": self}

    @model_validator(mode="wrap")
    @classmethod
    def _with_defaults_for_training(
        cls, values: dict[str, Any], handler: ModelWrapValidatorHandler[Self]
    ) -> Self:
        options = handler(values)
        if "for_training" in cls.model_fields and options.for_training:
            if "tier" in cls.model_fields and options.tier == "full":
                raise ValueError(
                    "--for-training makes validation and test of the clean tier, and train of the "
                    "full one: leave out --tier full, or, for all splits of the full tier, give "
                    f"--tier full --train-rows {TRAINING_ROWS} without --for-training"
                )
            return handler({**cls.training_defaults(), **values})
        return options

    @classmethod
    def training_defaults(cls) -> dict[str, Any]:
        """Return the defaults of other options with ``--for-training``."""
        return {**ProbeOptions.TRAINING, **cls.TRAINING}

    def may_be_doubtful(self, split: Ints) -> Bools:
        """Return for the split of each line whether the line may have flags in the clean tier."""
        doubtful: Bools = (split == SPLITS.index("train")) & self.for_training
        return doubtful

    @property
    def all_clean(self) -> bool:
        """Whether no row of any split may have flags."""
        return self.tier == "clean" and not self.for_training

    @classmethod
    def parse(cls, values: dict[str, Any], owner: str) -> Self:
        """Validate options as `Options.parse` does; validation does not mark options as read."""
        options = super().parse(values, owner)
        options.reads().clear()
        # This has been read: it changes the defaults of others.
        options.reads().update({"for_training"}.intersection(cls.model_fields))
        return options

    def only(self, names: Collection[str]) -> Self:
        """Return the options with these values, and defaults otherwise: the key of a cache."""
        return type(self)(**{name: getattr(self, name) for name in names})

    def unread(self) -> list[str]:
        """Return the options that differ from their defaults but have not been read."""
        values = self.model_dump()
        return [
            name
            for name, info in type(self).model_fields.items()
            if name not in self.reads() and values[name] != info.default
        ]

    @classmethod
    def left_out(cls) -> set[str]:
        """Return the options of parent models that this one does not have."""
        return {name for base in cls.__mro__ for name in vars(base).get("WITHOUT", ())}

    @classmethod
    def __pydantic_init_subclass__(cls, **settings: Any) -> None:
        super().__pydantic_init_subclass__(**settings)
        for name in cls.left_out():
            cls.__pydantic_fields__.pop(name, None)

    def __getattribute__(self, name: str) -> Any:
        value = super().__getattribute__(name)
        if name in type(self).__pydantic_fields__:
            self.reads().add(name)
        return value

    def reads(self) -> set[str]:
        """Return the names of the options that were read, from this object or its original."""
        try:
            read: set[str] = object.__getattribute__(self, "_read")
        except AttributeError:
            read = set()
            object.__setattr__(self, "_read", read)
        return read

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy; options read from it count as read from the original."""
        copied = super().model_copy(update=update, deep=deep)
        object.__setattr__(copied, "_read", self.reads())
        return copied

    @field_validator("split_shares", check_fields=False)
    @classmethod
    def _shares_add_up(cls, shares: tuple[float, float, float]) -> tuple[float, float, float]:
        if min(shares) < 0 or not math.isclose(sum(shares), 1.0, abs_tol=1e-6):
            raise ValueError("three numbers of 0 or more that add up to 1, such as 0.25,0.25,0.5")
        return shares


class LabelOptions(ProbeOptions):
    """Options of probes whose rows people label."""

    labels: Annotated[tuple[str, ...], Metavar("FILE,...")] = Field(
        (),
        description="Files of votes, or of labels: make the labelled probe from the candidates of "
        "the same options and seed.",
    )
    min_votes: int = Field(1, ge=1, description="Votes (--labels) that a row needs to be labelled.")
    min_agreement: float = Field(
        0.5, ge=0, le=1, description="Minimum share of a row's votes (--labels) for its answer."
    )


class MatchOptions(ProbeOptions):
    """Options of probes whose choices may be matched on similarity."""

    match: Annotated[str, Metavar("similarity|none|MODEL,...")] = Field(
        "similarity",
        description="similarity: choose questions such that the choice most similar to the "
        "question is right about as often as others, by encoders whose vectors come with kbprobe; "
        "MODEL,...: by these text encoders (folders or Hub ids; needs the extra eval); none: do "
        "not match.",
    )

    @field_validator("match")
    @classmethod
    def _one_way_to_match(cls, match: str) -> str:
        names = [name.strip() for name in match.split(",")]
        names = [low if (low := name.lower()) in ("similarity", "none") else name for name in names]
        if not all(names) or (len(names) > 1 and {"similarity", "none"} & {*names}):
            raise ValueError("similarity, none, or models alone, with commas between them")
        if len({*names}) < len(names):
            raise ValueError("a model is named twice")
        return ",".join(names)

    @property
    def matched(self) -> bool:
        """Whether choices are matched on similarity."""
        return self.match != "none"

    @property
    def encoders(self) -> tuple[str, ...]:
        """The models that encode the texts; none: the vectors that come with kbprobe."""
        return () if self.match in ("similarity", "none") else tuple(self.match.split(","))


class DrawOptions(MatchOptions):
    """Options of probes whose distractors are drawn by :func:`builders.engine.rows.draw_plan`."""

    RANDOM_SHARE: ClassVar[float] = 0.33

    sampling: Literal["grouped", "uniform"] = Field(
        "grouped",
        description="grouped: questions share their choices, each of which is right once, so that "
        "the choices alone tell nothing; uniform: every candidate alike, as published.",
    )
    once: Annotated[bool, RARE] = Field(
        False,
        description="Ask each question once, with distractors of the first family that has "
        "enough, for manual scoring; by default with those of every family.",
    )
    perturbations: Annotated[int | None, RARE] = Field(
        None,
        ge=1,
        le=50,
        description="Maximum rows of a question with distractors of one family and distance (by "
        "default 4 in matched groups, otherwise 2).",
    )
    random_share: Annotated[float | None, RARE] = Field(
        None,
        ge=0,
        le=1,
        description="Maximum share of rows with random distractors, the easy reference, where "
        "there are other families (by default 0.2 with matched groups, otherwise 0.33). It holds "
        "for the whole build, from which --limit draws.",
    )
    max_fill: Annotated[int | None, RARE] = Field(
        None,
        ge=0,
        description="Random fills allowed where a family runs short, under --sampling uniform "
        "(by default all but one).",
    )
    cap_per_gold: Annotated[int, RARE] = Field(
        40, ge=0, description="Maximum questions with the same gold in a split (0: no cap)."
    )

    stem_overlap: Annotated[Literal["drop", "keep"], RARE] = Field(
        "drop",
        description="What to do with questions whose gold is given away by a word that it shares "
        "with the question.",
    )

    @property
    def matched(self) -> bool:
        """Whether choices are matched on similarity."""
        return self.sampling == "grouped" and super().matched

    @property
    def uses(self) -> int:
        """The maximum number of rows of a question with distractors of one family."""
        return self.perturbations or (4 if self.matched else 2)

    @property
    def most_random(self) -> float:
        """The maximum share of rows with random distractors."""
        if self.random_share is not None:
            return self.random_share
        return min(self.RANDOM_SHARE, 0.2) if self.matched else self.RANDOM_SHARE

    @property
    def fills(self) -> int:
        """The maximum number of random fills in a row."""
        most = self.choices - 2
        return most if self.max_fill is None else min(self.max_fill, most)


OptionsT = TypeVar("OptionsT", bound=ProbeOptions)


logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Snapshot:
    """Marks an option whose values name snapshots of a kind.

    "KIND-NAME" and "NAME" are the same request: the first is stored as the second.

    Attributes:
        kind: of knowledge base.
        required: whether a build needs one even if the option is empty.
    """

    kind: str
    required: bool = False

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> CoreSchema:
        """Validate as the annotated type, then shorten the names."""
        return core_schema.no_info_after_validator_function(self._shortened, handler(source))

    def _shortened(self, value: Any) -> Any:
        prefix = f"{self.kind}-"
        if isinstance(value, tuple):
            return tuple(name.removeprefix(prefix) for name in value)
        return value.removeprefix(prefix)


WordNetName = Annotated[
    str,
    Snapshot("wordnet"),
    Metavar("NAME"),
    Field(description="Which WordNet: 3.0 is built in (see kb-cache list)."),
]
KindsWordNetName = Annotated[
    WordNetName, Field(description="Which WordNet tells kinds and parts of speech.")
]
ConceptNetName = Annotated[
    str,
    Snapshot("conceptnet"),
    Metavar("NAME"),
    Field(description="Which ConceptNet (see kb-cache list); 5.7, or the only one in the cache."),
]
GcideName = Annotated[str, Snapshot("gcide", required=True), Metavar("NAME")]
WikidataName = Annotated[str, Snapshot("wikidata", required=True), Metavar("NAME")]
CorpusNames = Annotated[tuple[str, ...], Snapshot("corpus"), Metavar("NAME,...")]

Tokenizer = Annotated[
    str,
    Metavar("MODEL"),
    Field(
        description="A transformers tokenizer (folder or Hub id) that must keep every word whole; "
        "by default word frequency decides."
    ),
]


class SnapshotOption(NamedTuple):
    """An option that names snapshots.

    Attributes:
        field: the name of the field of the options model.
        kind: of knowledge base.
        default: the snapshots named by default.
        required: whether a build needs one even if the option names none.
    """

    field: str
    kind: str
    default: tuple[str, ...]
    required: bool


def snapshot_options(model: type[ProbeOptions]) -> Iterator[SnapshotOption]:
    """Yield the options of a model that name snapshots."""
    for field, info in model.model_fields.items():
        for note in info.metadata:
            if isinstance(note, Snapshot):
                yield SnapshotOption(field, note.kind, _names(info.default), note.required)


def _names(value: Any) -> tuple[str, ...]:
    """Return the snapshots that an option's value names; none if it is empty."""
    return tuple(filter(None, value if isinstance(value, tuple) else (value,)))


def with_snapshots(options: OptionsT, owner: str) -> OptionsT:
    """Check that the snapshots named by the options exist.

    If the default does not exist but exactly one other of its kind does, that one is used.

    Raises:
        UsageError: one does not exist; the message names the option and its possible values.
    """
    from kb_cache.store import snapshot_names

    changed = {}
    for option in snapshot_options(type(options)):
        wanted = _names(getattr(options, option.field))
        missing = [name for name in wanted if name not in snapshot_names(option.kind, name)]
        if not missing:
            continue
        known = snapshot_names(option.kind)
        if option.field in options.model_fields_set or len(known) != 1:
            raise _missing(option, missing[0], known, owner)
        logger.warning(
            "%s uses the %s snapshot %r, the only one in the cache (%s %s would be the default)",
            owner, option.kind, known[0], option_name(option.field), missing[0],
        )  # fmt: skip
        changed[option.field] = known[0]
    return options.model_copy(update=changed) if changed else options


def _missing(option: SnapshotOption, name: str, known: list[str], owner: str) -> UsageError:
    from kb_cache.base import find_kind

    fetch = find_kind(option.kind).fetch_command(name)
    if not known:
        own = "" if "--from" in fetch else f", or {fetch} --from FILE for a file of your own"
        return UsageError(
            f"{owner} needs a {option.kind} snapshot, and the cache has none. "
            f"Add one with: {fetch}{own}"
        )
    flag = option_name(option.field)
    return UsageError(
        f"{owner}: there is no {option.kind} snapshot {name!r} ({flag}). There are: "
        f"{', '.join(known)}. Choose one with {flag} {known[0]}, or add it with: {fetch}"
    )
