"""Reading of template files: one YAML file per probe, with its wordings.

A file is read as YAML nodes rather than as values, since nodes know their lines: every message
names the file, the line and the key. See ``docs/add-a-template.md`` for the format.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from builders.engine.render.jinja import Checked, TemplateError, check_source
from builders.engine.strategies import name_of_wording
from kbprobe.errors import UsageError, did_you_mean
from kbprobe.format.setups import MASK
from kbprobe.reading import open_file

if TYPE_CHECKING:
    import yaml

MAX_BYTES = 1 << 18
MAX_DEPTH = 12
STRING = "tag:yaml.org,2002:str"
BOOLEAN = "tag:yaml.org,2002:bool"


def read_nodes(path: Path, source: str, what: str) -> tuple[str, yaml.Node]:
    """Read a file; return its text and its root node.

    Args:
        path: the file.
        source: its name in messages.
        what: what it should be ("a template file").

    Raises:
        TemplateError: it cannot be read, is too large, is not text or YAML, or is empty.
    """
    import yaml

    def refused(problem: str, line: int = 0) -> TemplateError:
        return TemplateError(problem, where=f"{source}:{line}" if line else source, line=line)

    try:
        with open_file(path) as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise refused(f"cannot be read: {error.strerror or error}") from error
    if len(raw) > MAX_BYTES:
        raise refused(f"larger than {MAX_BYTES >> 10} KiB: not {what}")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise refused("not UTF-8 text; save the file as UTF-8", line) from error
    try:
        # Composing makes nodes only: no tag can construct an object.
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = f"not valid YAML: {error.problem or error.context}"
        raise refused(problem, mark.line + 1 if mark else 1) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise refused(f"not valid YAML: {error.reason}", line) from error
    except RecursionError as error:
        raise refused("not valid YAML: nested too deep", 1) from error
    if root is None:
        raise refused("the file is empty", 1)
    return text, root


def plain_values(root: yaml.Node, source: str) -> Any:
    """Turn nodes into lists, dicts with texts as keys, texts and booleans.

    Raises:
        UsageError: there is something else; the message names the line of ``source``.
    """
    import yaml

    seen: set[int] = set()

    def refuse(node: yaml.Node, problem: str) -> UsageError:
        return UsageError(f"{source}:{node.start_mark.line + 1}: {problem}")

    def value(node: yaml.Node, depth: int) -> Any:
        if id(node) in seen:
            raise refuse(node, "aliases (*name) are not allowed here; write it out")
        seen.add(id(node))
        if depth > MAX_DEPTH:
            raise refuse(node, "nested too deep")
        if isinstance(node, yaml.SequenceNode):
            return [value(item, depth + 1) for item in node.value]
        if isinstance(node, yaml.MappingNode):
            found: dict[str, Any] = {}
            for key, item in node.value:
                if not isinstance(key, yaml.ScalarNode):
                    raise refuse(key, "a key must be a word")
                if key.value in found:
                    raise refuse(key, f"the key {key.value!r} is given twice")
                found[key.value] = value(item, depth + 1)
            return found
        if node.tag == BOOLEAN:
            # YAML 1.1 reads the language code "no" as false.
            return node.value.lower() in ("true", "yes", "on")
        if node.tag != STRING:
            raise refuse(node, f"expected a text, not {node.value!r}; put quotes around it")
        return node.value

    return value(root, 0)


__all__ = ["Template", "TemplateError", "Wording", "key_words_of_text", "load_template", "names"]

_KEYS = ("about", "arguments", "choice", "extends", "probe", "question")
_WORDING_KEYS = ("id", "key_words", "text")

ALL_WORDS = "all"
"""The value of ``key_words`` that means every word of the text."""
_ID = re.compile(r"[a-z0-9][a-z0-9_-]*")
_WORD = re.compile(r"\w+(?:['’-]\w+)*")


@dataclass(frozen=True)
class Wording:
    """One way to ask a probe's question.

    Attributes:
        id: unique within the probe; the items' column ``template``.
        text: Jinja text.
        key_words: the words that carry the question's meaning, as they occur in ``text``; the
            control ``perturbed`` needs some.
        line: where ``text`` starts in its file, from 1.
    """

    id: str
    text: str
    key_words: tuple[str, ...]
    line: int


@dataclass(frozen=True)
class Template:
    """All texts of a probe.

    Attributes:
        probe: the probe's name.
        about: what the probe asks, in a sentence.
        questions: the wordings, at least one.
        choice: Jinja text of a choice; empty for a probe whose choices have no template.
        arguments: the question fields that a No-Language control keeps.
        digest: sha256 of the content, independent of layout and comments.
        sources: the files that it came from, the built-in one first.
        added: the ids of the wordings that a user's file adds to others.
    """

    probe: str
    about: str
    questions: tuple[Wording, ...]
    choice: str
    arguments: tuple[str, ...]
    digest: str
    sources: tuple[str, ...]
    added: tuple[str, ...] = ()

    def chosen(self, wording: str, sets: Collection[str] = (), *, named: bool = False) -> Template:
        """Keep the wordings that ``--wording`` names.

        Args:
            wording: an id; one of ``sets``, for all of its wordings; or "" for all wordings.
            sets: the families that may be chosen as a whole (`of_family`).
            named: whether questions of each name have wordings of their own, so that an id only
                leaves out the others of its name (`name_of_wording`).

        Raises:
            UsageError: there is no such wording.
        """
        if not wording:
            return self
        if wording in sets:
            return self.of_family(wording, sets, "--wording")
        ids = [one.id for one in self.questions]
        if wording not in ids:
            known = "".join(f"{name} (a set of wordings), " for name in sets)
            raise UsageError(
                f"{self.probe} has no wording {wording!r}.{did_you_mean(wording, [*sets, *ids])} "
                f"--wording takes: {known}{', '.join(one for one in ids if one not in sets)}"
            )
        name = name_of_wording(wording)
        kept = tuple(
            one
            for one in self.questions
            if one.id == wording or (named and name_of_wording(one.id) != name)
        )
        return dataclasses.replace(self, questions=kept)

    def of_family(self, family: str, families: Collection[str], option: str) -> Template:
        """Leave out the wordings of other families: the part of an id before the first "-".

        Wordings that belong to none of ``families`` are kept. ``option`` chose the family.

        Raises:
            UsageError: none is left.
        """
        others = set(families) - {family}
        kept = tuple(
            wording for wording in self.questions if wording.id.split("-")[0] not in others
        )
        if not kept:
            raise UsageError(
                f"{self.sources[-1]}: all wordings have ids of another family than {option} "
                f"{family}; rename them, or choose another family"
            )
        return dataclasses.replace(self, questions=kept)


def names() -> list[str]:
    """Return the names of the built-in templates, sorted, without reading any."""
    entries = (entry.name for entry in resources.files("templates").iterdir())
    stems = (name.removesuffix(".yaml") for name in entries if name.endswith(".yaml"))
    return sorted(name for name in stems if "." not in name)


def languages(probe: str) -> list[str]:
    """Return the languages for which a probe has wordings besides NAME.yaml's, sorted."""
    entries = (entry.name for entry in resources.files("templates").iterdir())
    parts = (name.split(".") for name in entries)
    return sorted(part[1] for part in parts if len(part) == 3 and part[0] == probe)


def key_words_of_text(text: object, fields: Collection[str]) -> tuple[str, ...]:
    """Return the distinct words of a template's text outside its data, except the mask.

    This is the meaning of ``key_words: all``. A text that is not a valid template has none.

    >>> key_words_of_text("What is {{ x }} but isn't {{ y }}: a [MASK]?", ["x", "y"])
    ('What', 'is', 'but', "isn't", 'a')
    """
    try:
        literals = check_source(str(text), fields).literals
    except TemplateError:
        return ()
    words = (word for part in literals for word in _WORD.findall(part.replace(MASK, " ")))
    return tuple(dict.fromkeys(words))


def load_template(
    probe: str,
    *,
    question_fields: Collection[str],
    choice_fields: Collection[str],
    override: Path | None = None,
    builtin: Path | None = None,
    language: str = "",
) -> Template:
    """Load a probe's template and check all of it.

    Args:
        probe: a name among ``names()``, unless ``builtin`` is given.
        question_fields: the fields that a question may use.
        choice_fields: the fields that a choice may use; if there are none, no choice is needed.
        override: a user's file. It replaces what it gives, key by key; with ``extends: true``
            its questions are added to the built-in ones, and replace those with the same id.
        builtin: the probe's own file, for a probe that another package defines.
        language: of the wordings; "" for those of NAME.yaml. Where there are none in it, a whole
            file may be given as ``override``.

    Raises:
        TemplateError: an unknown probe, a file that cannot be read, or anything wrong in it.
    """
    if builtin is None and probe not in (known := names()):
        hint = did_you_mean(probe, known) or f" Known: {', '.join(known)}"
        raise TemplateError(f"no template for a probe named {probe!r}.{hint}")
    file = f"{probe}.{language}.yaml" if language else f"{probe}.yaml"
    path = Path(str(resources.files("templates"))) / file
    if language and builtin is None and not path.is_file():
        if override is None:
            raise _no_wordings(probe, language)
        builtin, override = override, None
    source = f"templates/{file}" if builtin is None else str(builtin)
    base = _Reader(source, question_fields, choice_fields).read(builtin or path, probe)
    for key in ("probe", "about", "question", "arguments", *(["choice"] if choice_fields else [])):
        if key not in base:
            raise TemplateError(f"the key {key!r} is missing", where=f"{source}:1")
    sources: tuple[str, ...] = (source,)
    added: tuple[str, ...] = ()
    if override is not None:
        given = _Reader(str(override), question_fields, choice_fields).read(override, probe)
        if given.get("extends") and "question" in given:
            added = tuple(wording.id for wording in given["question"])
            both = (*base["question"], *given["question"])
            given["question"] = tuple({wording.id: wording for wording in both}.values())
        base |= given
        sources = (*sources, str(override))
    template = Template(
        probe=probe,
        about=base["about"],
        questions=base["question"],
        choice=base.get("choice", ""),
        arguments=base["arguments"],
        digest="",
        sources=sources,
        added=added,
    )
    return dataclasses.replace(template, digest=_digest(template))


def _no_wordings(probe: str, language: str) -> TemplateError:
    there = [code for code in languages(probe) if code != "en"]
    like = f"templates/{probe}{f'.{there[0]}' if there else ''}.yaml"
    return TemplateError(
        f"{probe} has no wordings in the language {language!r}. There are: "
        f"{', '.join(['en', *there])}. To add some, write a file with the keys of {like} (about, "
        f"question, choice, arguments) and give it with --template FILE; see docs/languages.md"
    )


def _digest(template: Template) -> str:
    content = dataclasses.asdict(template)
    del content["digest"], content["sources"], content["added"]
    for question in content["questions"]:
        del question["line"]
    canonical = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()


class _Reader:
    """Reads one file into a dict with the keys among ``_KEYS`` that the file contains."""

    def __init__(
        self, source: str, question_fields: Collection[str], choice_fields: Collection[str]
    ) -> None:
        self.source = source
        self.question_fields = question_fields
        self.choice_fields = choice_fields
        self.text = ""

    def error(self, problem: str, line: int, key: str = "") -> TemplateError:
        where = f"{self.source}:{line}" + (f": {key}" if key else "")
        return TemplateError(problem, where=where, line=line)

    def read(self, path: Path, probe: str) -> dict[str, Any]:
        self.text, root = read_nodes(path, self.source, "a template file")
        given = self._mapping(root, "", _KEYS)
        readers: dict[str, Callable[[yaml.Node, str], Any]] = {
            "about": self._string,
            "arguments": self._arguments,
            "choice": lambda node, key: self._jinja(node, key, self.choice_fields)[0],
            "extends": self._boolean,
            "probe": self._string,
            "question": self._questions,
        }
        content = {key: readers[key](node, key) for key, node in given.items()}
        if content.get("probe", probe) != probe:
            problem = f"this file is for the probe {content['probe']!r}, not for {probe!r}"
            raise self.error(problem, _line(given["probe"]), "probe")
        return content

    def _mapping(self, node: yaml.Node, key: str, known: Collection[str]) -> dict[str, yaml.Node]:
        import yaml

        if not isinstance(node, yaml.MappingNode):
            raise self.error(f"expected the keys {', '.join(known)}", _line(node), key)
        found: dict[str, yaml.Node] = {}
        for name_node, value in node.value:
            name = name_node.value if isinstance(name_node, yaml.ScalarNode) else "?"
            line = _line(name_node)
            if name not in known:
                hint = did_you_mean(name, known)
                problem = f"unknown key {name!r}.{hint} Known keys: {', '.join(known)}"
                raise self.error(problem, line, key)
            if name in found:
                raise self.error(f"the key {name!r} is given twice", line, key)
            found[name] = value
        return found

    def _sequence(self, node: yaml.Node, key: str, what: str) -> list[yaml.Node]:
        import yaml

        if not isinstance(node, yaml.SequenceNode):
            raise self.error(f"expected a list of {what}", _line(node), key)
        return list(node.value)

    def _string(self, node: yaml.Node, key: str) -> str:
        if node.tag != STRING or not isinstance(node.value, str):
            problem = "expected a text; put quotes around what YAML reads as something else"
            raise self.error(problem, _line(node), key)
        if not node.value.strip():
            raise self.error("the text is empty", _line(node), key)
        return node.value

    def _boolean(self, node: yaml.Node, key: str) -> bool:
        if node.tag != BOOLEAN:
            raise self.error("expected true or false", _line(node), key)
        return str(node.value).lower() in ("true", "yes", "on")

    def _strings(self, node: yaml.Node, key: str, what: str) -> tuple[str, ...]:
        items = self._sequence(node, key, what)
        texts = [self._string(item, f"{key}[{i}]") for i, item in enumerate(items)]
        for i, text in enumerate(texts):
            if text in texts[:i]:
                raise self.error(f"{text!r} is given twice", _line(items[i]), f"{key}[{i}]")
        return tuple(texts)

    def _jinja(self, node: yaml.Node, key: str, fields: Collection[str]) -> tuple[str, Checked]:
        text = self._string(node, key)
        try:
            return text, check_source(text, fields)
        except TemplateError as error:
            line = self._jinja_line(node, fields)
            raise self.error(error.problem, line, key) from error

    def _jinja_line(self, node: yaml.Node, fields: Collection[str]) -> int:
        """Find the file's line of an error in a scalar.

        YAML may have folded line breaks. To Jinja a line break is equivalent to a space, so the
        scalar as written in the file has the same error, on the right line.
        """
        start = _line(node)
        try:
            check_source(self.text[node.start_mark.index : node.end_mark.index], fields)
        except TemplateError as error:
            return start + max(error.line - 1, 0)
        return start

    def _arguments(self, node: yaml.Node, key: str) -> tuple[str, ...]:
        arguments = self._strings(node, key, "question fields")
        for i, name in enumerate(arguments):
            if name not in self.question_fields:
                known = ", ".join(sorted(self.question_fields)) or "none"
                hint = did_you_mean(name, self.question_fields)
                problem = f"unknown field {name!r}.{hint} Known fields: {known}"
                raise self.error(problem, _line(node.value[i]), f"{key}[{i}]")
        return arguments

    def _questions(self, node: yaml.Node, key: str) -> tuple[Wording, ...]:
        items = self._sequence(node, key, "questions")
        if not items:
            raise self.error("at least one question is needed", _line(node), key)
        wordings: list[Wording] = []
        for i, item in enumerate(items):
            wording = self._wording(item, f"{key}[{i}]")
            if any(wording.id == other.id for other in wordings):
                problem = f"the id {wording.id!r} is given twice"
                raise self.error(problem, _line(item), f"{key}[{i}].id")
            wordings.append(wording)
        return tuple(wordings)

    def _wording(self, node: yaml.Node, key: str) -> Wording:
        given = self._mapping(node, key, _WORDING_KEYS)
        for name in ("id", "text"):
            if name not in given:
                raise self.error(f"the key {name!r} is missing", _line(node), key)
        identifier = self._string(given["id"], f"{key}.id")
        if not _ID.fullmatch(identifier):
            problem = f"{identifier!r} is no id: use a-z, 0-9, '_' and '-'"
            raise self.error(problem, _line(given["id"]), f"{key}.id")
        text, checked = self._jinja(given["text"], f"{key}.text", self.question_fields)
        if "key_words" not in given:
            return Wording(identifier, text, (), _line(given["text"]))
        if given["key_words"].tag == STRING and given["key_words"].value == ALL_WORDS:
            words = key_words_of_text(text, self.question_fields)
            return Wording(identifier, text, words, _line(given["text"]))
        words = self._strings(given["key_words"], f"{key}.key_words", f"words, or {ALL_WORDS!r}")
        for i, word in enumerate(words):
            whole = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)")
            if not any(whole.search(literal) for literal in checked.literals):
                problem = f"{word!r} does not occur in the text outside of {{{{ }}}} and {{% %}}"
                line = _line(given["key_words"].value[i])
                raise self.error(problem, line, f"{key}.key_words[{i}]")
        return Wording(identifier, text, words, _line(given["text"]))


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1
