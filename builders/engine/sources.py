"""Options that name snapshots of knowledge bases, and which snapshot is taken by default."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, TypeVar

from pydantic_core import CoreSchema, core_schema

from builders.engine.options import ProbeOptions
from kbprobe.errors import UsageError
from kbprobe.options import Metavar, option_name

logger = logging.getLogger(__name__)

OptionsT = TypeVar("OptionsT", bound=ProbeOptions)


@dataclass(frozen=True)
class Snapshot:
    """Marks an option whose values name snapshots of a kind.

    "KIND-NAME" and "NAME" are the same request: the first is stored as the second.

    Attributes:
        kind: of knowledge base.
        required: whether a build needs one even where the option is empty.
    """

    kind: str
    required: bool = False

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> CoreSchema:
        """Validate as the annotated type is, then shorten the names."""
        return core_schema.no_info_after_validator_function(self._shortened, handler(source))

    def _shortened(self, value: Any) -> Any:
        prefix = f"{self.kind}-"
        if isinstance(value, tuple):
            return tuple(name.removeprefix(prefix) for name in value)
        return value.removeprefix(prefix)


WordNetName = Annotated[str, Snapshot("wordnet"), Metavar("NAME")]
ConceptNetName = Annotated[str, Snapshot("conceptnet"), Metavar("NAME")]
GcideName = Annotated[str, Snapshot("gcide", required=True), Metavar("NAME")]
WikidataName = Annotated[str, Snapshot("wikidata", required=True), Metavar("NAME")]
CorpusNames = Annotated[tuple[str, ...], Snapshot("corpus"), Metavar("NAME,...")]


class SnapshotOption(NamedTuple):
    """An option that names snapshots.

    Attributes:
        field: of the options model.
        kind: of knowledge base.
        default: the snapshots that it names by default.
        required: whether a build needs one even where it names none.
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
    """The snapshots that an option's value names; an empty one names none."""
    return tuple(filter(None, value if isinstance(value, tuple) else (value,)))


def with_snapshots(options: OptionsT, owner: str) -> OptionsT:
    """Check that the snapshots which the options name are there.

    Where the default is not, and there is one other of its kind, that is taken.

    Raises:
        UsageError: one is not there; the message names the option and the values it may have.
    """
    from kb_cache.catalogue import snapshot_names

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
