"""The paths that encyclopedic_composition asks about, as declared in YAML files.

A *hop* is one step in the knowledge base, with a question for this step alone; a *path* is a chain
of one or more hops, with a question for its end. See docs/probes/encyclopedic_composition.md.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from kbprobe.errors import UsageError, did_you_mean
from kbprobe.options import explain

if TYPE_CHECKING:
    from builders.engine.render.template_file import Template

PROBE = "encyclopedic_composition"
BUILT_IN = "templates/encyclopedic_composition.yaml"
ENTITY = "entity"
"""The field in every question that shows the label of the entity asked about."""

ARTICLE = "the"
"""The field for its definite article and a space; empty for most names."""

YEAR = "year"
"""The field for the entity's year in parentheses, after a space; empty if the source states none.
"""

FIELDS = (ENTITY, ARTICLE, YEAR)

SEVERAL = "_several"
"""The end of the name of wordings for several answers."""

BY_NUMBER = "--paths"
"""Where paths come from that are properties with names: ``--paths P36:capital``."""

_BY_NUMBER = re.compile(r"\s*\^?[a-z]?[0-9]+\s*([:,/]|$)", re.IGNORECASE)
_NAMED = re.compile(r"\s*(\^?P[1-9][0-9]*)\s*:\s*([^\W_][^{}%#\n]*)")

Id = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$", max_length=60)]
Language = Annotated[str, Field(pattern=r"^[a-z]{2,3}(-[a-z0-9]+)*$")]
Item = Annotated[str, Field(pattern=r"^Q[1-9][0-9]*$")]
Property = Annotated[str, Field(pattern=r"^\^?P[1-9][0-9]*$")]
Properties = Annotated[str, Field(pattern=r"^\^?P[1-9][0-9]*(/\^?P[1-9][0-9]*)*$")]
Rule = Literal["near_years", "like_people", "same_country", "same_kind"]


class _PathEntry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class PathWording(_PathEntry):
    """A question: Jinja text with ``{{ entity }}``, and its key words.

    Attributes:
        text: may show ``{{ the }}`` before the entity, its article and a space, or nothing; and
            ``{{ year }}`` after it, " (2002)" or nothing (see `Hop.source_year`).
        key_words: what the control ``perturbed`` replaces.
        published: whether the text is from the paper; such texts are used only with
            ``--published-wordings``.
        several: whether the text is for questions with several valid answers; the others are then
            for those with one.
    """

    text: str
    key_words: tuple[str, ...] = ()
    published: bool = False
    several: bool = False

    @model_validator(mode="before")
    @classmethod
    def _bare_text(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {"text": value}
        from builders.engine.render.template_file import ALL_WORDS, key_words_of_text

        if isinstance(value, dict) and value.get("key_words") == ALL_WORDS:
            return {**value, "key_words": key_words_of_text(value.get("text"), FIELDS)}
        return value

    @model_validator(mode="after")
    def _is_sound(self) -> PathWording:
        from builders.engine.render.jinja import TemplateError, check_source

        try:
            checked = check_source(self.text, FIELDS)
        except TemplateError as error:
            raise ValueError(error.problem) from None
        if ENTITY not in checked.fields:
            raise ValueError("the text does not show {{ entity }}")
        for word in self.key_words:
            whole = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)")
            if not word.strip() or not any(whole.search(part) for part in checked.literals):
                raise ValueError(f"the key word {word!r} does not occur in the text")
        return self


Questions = Mapping[Language, Annotated[tuple[PathWording, ...], Field(min_length=1)]]


class Way(NamedTuple):
    """A property, followed from its subject or (``^``) from its object."""

    name: str
    inverse: bool


class Hop(_PathEntry):
    """One step from an entity to a value, by one of a few properties.

    Attributes:
        id: its name.
        edges: properties ("P161"), or properties followed backwards ("^P527").
        fallback: whether a later property gives golds only if the earlier ones give nothing.
        value: what the step leads to.
        source: classes (P31, P279*); a path begins only with entities of one of them.
        target: classes; golds must be of one of them (none: of any class).
        never: classes; golds must not be of any of them.
        told_by: properties that replace missing classes: a value without a class that has one of
            them counts as one of ``target``.
        source_told_by: the same for an entity and ``source``.
        source_not_told_by: properties whose presence means that an entity without a class is not
            one of ``source``.
        source_year: a property with the year of a start, which tells works of one title apart.
        source_occupations, occupations: occupations (P106); a person with stated occupations must
            have one of them to be asked about, or to be a gold.
        single: whether several values contradict each other, as founding years do.
        mutual: whether a fact stated from one end only is doubtful, as with marriages.
        contested_by: properties that make a fact doubtful if they lead to its value as well.
        also: properties, or chains of them ("P19/P17"), that lead to answers under other readings
            of the question, which are never distractors.
        until_age: maximum age of a person at such a step, which limits a year that follows.
        apart: minimum number of years between two choices, and between a distractor and all valid
            answers: sources differ on foundings by some years, on births hardly.
        listed: which end is looked up first if a path begins here: the one that has a small class
            or can be selected by sitelinks.
        choices: the rule for distractors.
        questions: language -> questions that ask for this step alone.
    """

    id: Id
    edges: Annotated[tuple[Property, ...], Field(min_length=1)]
    fallback: bool = False
    value: Literal["entity", "year"] = "entity"
    source: tuple[Item, ...] = Field((), alias="from")
    target: tuple[Item, ...] = Field((), alias="to")
    never: tuple[Item, ...] = ()
    told_by: tuple[Property, ...] = ()
    source_told_by: tuple[Property, ...] = Field((), alias="from_told_by")
    source_not_told_by: tuple[Property, ...] = Field((), alias="from_not_told_by")
    source_year: Property | None = Field(None, alias="from_year")
    source_occupations: tuple[Item, ...] = Field((), alias="from_occupations")
    occupations: tuple[Item, ...] = Field((), alias="to_occupations")
    single: bool = False
    mutual: bool = False
    contested_by: tuple[Property, ...] = ()
    also: tuple[Properties, ...] = ()
    until_age: int = Field(0, ge=0)
    apart: int = Field(5, ge=1)
    listed: Literal["from", "to"] = "from"
    choices: Rule
    questions: Questions

    @model_validator(mode="after")
    def _fits_together(self) -> Hop:
        if (self.value == "year") != (self.choices == "near_years"):
            raise ValueError("the rule near_years goes with `value: year`, and with nothing else")
        if self.value == "year" and (self.target or self.never or self.listed == "to"):
            raise ValueError("a year has no class (to, never) and cannot be listed")
        if self.value == "year" and any(edge.startswith("^") for edge in self.edges):
            raise ValueError("a property that leads to a year cannot be followed backwards")
        told_by = (*self.told_by, *self.source_told_by, *self.source_not_told_by)
        if any(name.startswith("^") for name in told_by):
            raise ValueError(
                "told_by, from_told_by and from_not_told_by take properties of the entity itself"
            )
        if self.value == "year" and (self.occupations or self.contested_by):
            raise ValueError("to_occupations and contested_by are about entities, not years")
        if self.mutual and not any(
            Way(way.name, not way.inverse) in self.ways for way in self.ways
        ):
            raise ValueError("what is mutual is followed from both ends: edges: [P26, ^P26]")
        if len(set(self.edges)) < len(self.edges):
            raise ValueError("a property is given twice")
        return self

    @cached_property
    def ways(self) -> tuple[Way, ...]:
        """The properties, with their directions."""
        return tuple(Way(edge.removeprefix("^"), edge.startswith("^")) for edge in self.edges)

    @property
    def start_classes(self) -> tuple[str, ...]:
        """The classes of the end that is listed."""
        return self.source if self.listed == "from" else self.target

    @property
    def start_told_by(self) -> tuple[str, ...]:
        """The properties that replace missing classes of the end that is listed."""
        return self.source_told_by if self.listed == "from" else self.told_by


class Path(_PathEntry):
    """One hop or a chain of hops, and the question that asks for its end.

    Attributes:
        id: its name, which is also the name of its family in the items.
        hops: names of hops.
        published: whether it is from the paper; see ``--further-share``.
        questions: language -> questions; a path of one hop without any takes those of its hop.
    """

    id: Id
    hops: Annotated[tuple[Id, ...], Field(min_length=1, max_length=4)]
    published: bool = False
    questions: Questions = Field(default_factory=dict)

    @field_validator("id")
    @classmethod
    def _is_free(cls, name: str) -> str:
        if name.startswith("fact-"):
            raise ValueError("names that begin with 'fact-' are those of single hops' questions")
        return name

    @model_validator(mode="after")
    def _asks(self) -> Path:
        if len(self.hops) > 1 and not self.questions:
            raise ValueError("questions: a path of several hops needs its own")
        return self


class _PathFile(_PathEntry):
    hops: tuple[Hop, ...] = ()
    paths: tuple[Path, ...] = ()


@dataclass(frozen=True)
class PathSet:
    """Paths to ask about, and the hops that they are made of.

    Attributes:
        paths: by name, in the order of the files.
        hops: by name: those that the paths use.
        language: of labels and questions.
        as_published: whether paths with published wordings use only these; otherwise only the
            others are used.
    """

    paths: Mapping[str, Path]
    hops: Mapping[str, Hop]
    language: str
    as_published: bool = False

    def of(self, path: Path) -> tuple[Hop, ...]:
        """The hops of a path."""
        return tuple(self.hops[name] for name in path.hops)

    @cached_property
    def asked(self) -> frozenset[str]:
        """The names of wordings: of paths, and of hops (``fact-NAME``).

        Those for several answers, where there are others, are under ``NAME_several``.
        """
        return frozenset(name for name, _ in self._questions())

    def _questions(self) -> Iterable[tuple[str, tuple[PathWording, ...]]]:
        chained = {name for path in self.paths.values() if len(path.hops) > 1 for name in path.hops}
        asked = [(name, path.questions) for name, path in self.paths.items()]
        asked += [
            (f"fact-{name}", self.hops[name].questions) for name in self.hops if name in chained
        ]
        for name, questions in asked:
            used = self._used(questions)
            one = tuple(text for text in used if not text.several)
            yield name, one or used
            if one and len(one) < len(used):
                yield f"{name}{SEVERAL}", tuple(text for text in used if text.several)

    def _used(self, questions: Questions) -> tuple[PathWording, ...]:
        texts = questions[self.language]
        return tuple(text for text in texts if text.published == self.as_published) or texts

    @cached_property
    def digest(self) -> str:
        """A hash of everything that determines the queries to the knowledge base."""
        import json

        content = [
            [path.model_dump(mode="json", exclude={"questions"}) for path in self.paths.values()],
            [hop.model_dump(mode="json", exclude={"questions"}) for hop in self.hops.values()],
            self.language,
        ]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def template(self) -> Template:
        """Return all questions of all paths and hops as one template."""
        from builders.engine.render.template_file import Template, Wording

        wordings = tuple(
            Wording(
                f"{name}-{'paper' if asking.published else number}",
                asking.text,
                asking.key_words,
                1,
            )
            for name, questions in self._questions()
            for number, asking in enumerate(questions, 1)
        )
        texts = repr([(wording.id, wording.text, wording.key_words) for wording in wordings])
        return Template(
            probe=PROBE,
            about="What lies at the end of a path of two or three facts?",
            questions=wordings,
            choice="{{ label }}",
            arguments=(ENTITY,),
            digest=hashlib.sha256(texts.encode("utf-8", "surrogatepass")).hexdigest(),
            sources=(BUILT_IN,),
        )


def load_paths(
    file: str = "", only: tuple[str, ...] = (), language: str = "en", as_published: bool = False
) -> PathSet:
    """Load the built-in paths and those of a user's file, which override built-in names.

    Args:
        file: the user's file, or properties as :func:`paths_of_properties` reads them; none if
            empty.
        only: names of the paths to keep; if empty, all, or those of the properties alone.
        language: the language to ask in.
        as_published: see :class:`PathSet`.

    Raises:
        UsageError: the file cannot be read, something in it is wrong, a path is unknown, or a
            question is missing in the language. The message names the file, the entry and the key.
    """
    given = _built_in()
    hops = {hop.id: (hop, BUILT_IN) for hop in given.hops}
    paths = {path.id: (path, BUILT_IN) for path in given.paths}
    if file:
        there = FilePath(file).exists()
        by_number = bool(_BY_NUMBER.match(file)) and not there
        if not (by_number or there):
            raise UsageError(
                f"{file}: cannot be read: there is no such file. {BY_NUMBER} takes a YAML file, or "
                "properties with their names, such as P36:capital"
            )
        more = paths_of_properties(file) if by_number else read_file(FilePath(file), file)
        source = BY_NUMBER if by_number else file
        hops |= {hop.id: (hop, source) for hop in more.hops}
        paths |= {path.id: (path, source) for path in more.paths}
        if by_number:
            only = only or tuple(path.id for path in more.paths)
    for name in only:
        if name not in paths:
            raise UsageError(
                f"{PROBE}: there is no path {name!r}.{did_you_mean(name, paths)} "
                f"Paths: {', '.join(paths)}"
            )
    kept = {name: entry for name, entry in paths.items() if not only or name in only}
    used: dict[str, Hop] = {}
    asked: dict[str, Path] = {}
    for path, source in kept.values():
        for at, name in enumerate(path.hops):
            where = f"{source}: path {path.id!r}: hops[{at}]"
            if name not in hops:
                raise UsageError(
                    f"{where}: there is no hop {name!r}.{did_you_mean(name, hops)} "
                    f"Hops: {', '.join(hops)}"
                )
            hop = used.setdefault(name, hops[name][0])
            if hop.value == "year" and at < len(path.hops) - 1:
                raise UsageError(f"{where}: {name!r} leads to a year, from which no hop continues")
        if len(set(path.hops)) < len(path.hops):
            raise UsageError(f"{source}: path {path.id!r}: hops: one is given twice")
        if not used[path.hops[0]].start_classes and source != BY_NUMBER:
            end = used[path.hops[0]].listed
            raise UsageError(
                f"{source}: path {path.id!r}: hops[0]: {path.hops[0]!r} begins no path, for it "
                f"names no classes of {end!r} to look up"
            )
        if not path.questions:
            path = path.model_copy(update={"questions": used[path.hops[0]].questions})
        _check_language(path.questions, language, f"{source}: path {path.id!r}")
        asked[path.id] = path
    for name, hop in used.items():
        _check_language(hop.questions, language, f"{hops[name][1]}: hop {name!r}")
    return PathSet(asked, used, language, as_published)


def paths_of_properties(text: str) -> _PathFile:
    """Return a path of one hop for each property that a text names: ``P36:capital,P38:currency``.

    The questions come from the names, as those of `facts` do. Nothing is known of the classes of
    the ends, so a path starts at any entity that has the property, and distractors are of the same
    class where there are enough.

    Raises:
        UsageError: a property has no number or no name, or is given twice.
    """
    from builders.tables.ways import WayToAsk
    from builders.tables.wordings import wordings_of

    hops: dict[str, Hop] = {}
    for entry in text.split(","):
        found = _NAMED.fullmatch(entry)
        if not found:
            raise UsageError(
                f"{BY_NUMBER}: {entry.strip()!r} is no property with a name. Write its number, a "
                "colon and what it is called, such as P36:capital or P36:capital,P38:currency "
                "(^P36 follows it backwards); longer paths are declared in a file"
            )
        edge, name = found[1], found[2].strip()
        way = Way(edge.removeprefix("^"), edge.startswith("^"))
        if edge in hops:
            raise UsageError(f"{BY_NUMBER}: {edge} is given twice")
        questions = [
            {
                "text": asking.replace(" {}", " {{ the }}{{ entity }}").replace(
                    "{}", "{{ entity }}"
                ),
                "key_words": "all",
                "several": several,
            }
            for several in (False, True)
            for asking in wordings_of(
                WayToAsk((name,), inverse=way.inverse, several=several, single=not several)
            )
        ]
        words = re.findall("[a-z0-9]+", f"{way.name} {'of' * way.inverse} {name}".lower())
        hops[edge] = Hop.model_validate(
            {
                "id": "-".join(words)[:60],
                "edges": (edge,),
                # What borders on it is no distractor if only that states it.
                "also": (way.name if way.inverse else f"^{way.name}",),
                "choices": "same_kind",
                "questions": {"en": questions},
            }
        )
    paths = tuple(Path(id=hop.id, hops=(hop.id,)) for hop in hops.values())
    return _PathFile(hops=tuple(hops.values()), paths=paths)


@cache
def _built_in() -> _PathFile:
    path = FilePath(str(resources.files("templates"))) / f"{PROBE}.yaml"
    return read_file(path, BUILT_IN)


def _check_language(questions: Questions, language: str, where: str) -> None:
    if language not in questions:
        raise UsageError(
            f"{where}: questions: none in the language {language!r} (there are: "
            f"{', '.join(sorted(questions))}). Add some, choose another --language, or leave it "
            "out by --only-paths"
        )


def read_file(path: FilePath, source: str) -> _PathFile:
    """Read a file of hops and paths.

    Raises:
        UsageError: it cannot be read, or anything in it is wrong.
    """
    from builders.engine.render.template_file import plain_values, read_nodes

    values = plain_values(read_nodes(path, source, "a file of paths")[1], source)
    try:
        file = _PathFile.model_validate(values)
    except ValidationError as error:
        problems = [_located(problem, values) for problem in error.errors()]
        more = f" (and {len(problems) - 5} more)" if len(problems) > 5 else ""
        raise UsageError(f"{source}: " + "; ".join(problems[:5]) + more) from None
    for kind, entries in (("hop", file.hops), ("path", file.paths)):
        names = [entry.id for entry in entries]
        for name in names:
            if names.count(name) > 1:
                raise UsageError(f"{source}: {kind} {name!r} is given twice")
    if not file.hops and not file.paths:
        raise UsageError(f"{source}: it declares neither `paths` nor `hops`")
    return file


def _located(problem: Any, values: Any) -> str:
    """Format a problem with the name of its entry: ``path 'x': questions.en.0: ...``."""
    place = tuple(problem["loc"])
    kind = {"hops": "hop", "paths": "path"}.get(str(place[0])) if place else None
    if kind is None or len(place) < 2:
        return explain(problem)
    entry = values[place[0]][place[1]]
    name = entry.get("id") if isinstance(entry, dict) else None
    label = repr(name) if isinstance(name, str) else f"number {place[1] + 1}"
    return f"{kind} {label}: " + explain({**problem, "loc": place[2:]})
