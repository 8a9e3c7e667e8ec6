"""Rendering of templates in bulk, in a sandbox that a stranger's template cannot misuse.

A template is data that people share, so it may neither run code nor exhaust the machine. Jinja's
own sandbox only prevents the former. Here a template is parsed, and its syntax tree may hold
nothing but the constructs listed in ``_ALLOWED``: fields, conditions, one level of loops over a
field, and the filters of ``FILTERS`` with constant arguments. Without assignment, arithmetic, calls
and nested loops, the length of a rendered text is bounded by the template's length times that of
its fields.

A rendering call costs Jinja far more than the text that it makes. ``render_batch`` therefore
wraps the checked tree into one loop over all rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from builders.english.definite import with_the
from builders.english.inflection import noun_plural, with_article
from kbprobe.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from jinja2 import Environment, Template, nodes

__all__ = ["FILTERS", "Checked", "Rewrite", "TemplateError", "check_source", "render_batch"]

MAX_SOURCE = 4_000
MAX_DEPTH = 24
CHUNK = 50_000
#: ASCII's record separator, which ends each row's text. Data that contain it are rendered singly.
_END = "\x1e"
_ROWS = "batch_"
_SPACE = " \t\r\n"


class TemplateError(UsageError):
    """A template cannot be read, uses forbidden constructs, or fails on its data.

    Attributes:
        problem: the message without its location.
        line: the line of the template's text, from 1; 0 if unknown.
    """

    def __init__(self, problem: str, *, where: str = "", line: int = 0) -> None:
        super().__init__(f"{where}: {problem}" if where else problem)
        self.problem = problem
        self.line = line


def _expect(value: object, name: str, *kinds: type) -> Any:
    if not isinstance(value, kinds):
        expected = "a text" if str in kinds else "a list"
        raise TypeError(f"the filter {name!r} takes {expected}, not a {type(value).__name__}")
    return value


def _quoted(text: str) -> str:
    """Wrap in double quotes, or in single ones if the text itself contains double quotes.

    Double quotes come first since apostrophes are common in running text, where a single quote
    would seem to end the quotation.
    """
    return f"'{text}'" if '"' in text else f'"{text}"'


def _quoted_aside(text: str) -> str:
    """Wrap in quotes, followed by a comma unless the text is a complete sentence.

    >>> _quoted_aside("she left"), _quoted_aside("Who left?")
    ('"she left",', '"Who left?"')
    """
    return _quoted(text) + "," * (not text.endswith(("?", "!", ".")))


def _as_term(text: str) -> str:
    """Introduce a quoted text as a word or an expression.

    >>> _as_term("root"), _as_term("root for")
    ('the word "root"', 'the expression "root for"')
    """
    return f"the {'expression' if ' ' in text else 'word'} {_quoted(text)}"


def _capitalize_first(text: str) -> str:
    return text[:1].upper() + text[1:]


def _first(value: Sequence[object]) -> object:
    if not value:
        raise ValueError("the filter 'first' takes a list that is not empty")
    return value[0]


class Filter(NamedTuple):
    """A filter: its function, the types that it takes, and its arguments."""

    function: Callable[..., object]
    takes: tuple[type, ...] = (str,)
    arguments: tuple[int, int] = (0, 0)  # minimum and maximum; all are constant strings


#: The filters that a template may use.
FILTERS: Mapping[str, Filter] = {
    "a": Filter(with_article),
    "as_term": Filter(_as_term),
    "capitalize_first": Filter(_capitalize_first),
    "definite": Filter(with_the, (str,), (0, 1)),
    "default": Filter(lambda value, other: value or other, (object,), (1, 1)),
    "first": Filter(_first, (list, tuple)),
    # Strings are refused although Python could join their letters: nested joins would multiply.
    "join": Filter(lambda value, by="": by.join(map(str, value)), (list, tuple), (0, 1)),
    "length": Filter(len, (list, tuple, str)),
    "lower": Filter(str.lower),
    "plural": Filter(noun_plural),
    "quoted": Filter(_quoted),
    "quoted_aside": Filter(_quoted_aside),
    "trim": Filter(str.strip),
    "upper": Filter(str.upper),
}


def _type_checked(name: str, filter_: Filter) -> Callable[..., object]:
    """Return a filter's function, with a check of the value's type that names the filter."""
    function, takes, _ = filter_
    return lambda value, *arguments: function(
        value if type(value) in takes else _expect(value, name, *takes), *arguments
    )


_TESTS = ("eq", "in", "ne", "none")
_LOOP_ATTRIBUTES = ("first", "index", "last", "length")
_ALLOWED = {
    *("Template", "Output", "TemplateData", "Name", "Const", "List", "Tuple", "If", "For"),
    *("CondExpr", "Filter", "Test", "Compare", "Operand", "And", "Or", "Not", "Concat"),
    *("Getitem", "Getattr"),
}
_ARITHMETIC = ["Add", "Sub", "Mul", "Div", "FloorDiv", "Mod", "Pow", "Neg", "Pos"]
_TAGS = ["Block", "Extends", "Include", "Import", "Macro", "With"]
_CONSTRUCTS = {
    **dict.fromkeys(_ARITHMETIC, "arithmetic"),
    **{tag: f"{{% {tag.lower()} %}}" for tag in _TAGS},
    "Assign": "{% set %}",
    "AssignBlock": "{% set %}",
    "Call": "a call such as f(x)",
    "Slice": "a slice such as x[1:]",
}


@cache
def _environment() -> Environment:
    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(autoescape=False, undefined=StrictUndefined)
    environment.globals = {}
    environment.filters = {name: _type_checked(name, given) for name, given in FILTERS.items()}
    environment.tests = {name: environment.tests[name] for name in _TESTS}
    return environment


def _list(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def _refuse(problem: str, node: nodes.Node) -> NoReturn:
    raise TemplateError(problem, line=node.lineno)


class _NameChecker:
    """Walks a syntax tree and refuses anything not known to be harmless."""

    def __init__(self, fields: Collection[str]) -> None:
        self.fields = frozenset(fields)
        self.used: set[str] = set()

    def check(self, node: nodes.Node, local: frozenset[str] = frozenset(), depth: int = 0) -> None:
        """Check a node and its descendants; ``local`` holds the names defined by a loop."""
        kind = type(node).__name__
        if depth > MAX_DEPTH:
            _refuse(f"nested more than {MAX_DEPTH} deep; write it in simpler steps", node)
        if kind not in _ALLOWED:
            construct = _CONSTRUCTS.get(kind, f"the construct {kind}")
            _refuse(f"{construct} is not allowed in a template", node)
        if kind == "Getattr":
            self._attribute(node, local)
        elif kind == "For":
            self._loop(node, local, depth)
        else:
            rule = getattr(self, f"_{kind.lower()}", None)
            if rule is not None:
                rule(node, local)
            for child in node.iter_child_nodes():
                self.check(child, local, depth + 1)

    def _name(self, node: Any, local: frozenset[str]) -> None:
        if node.name in local and node.name != "loop":
            return
        if node.name not in self.fields:
            _refuse(
                f"unknown field {node.name!r}.{did_you_mean(node.name, self.fields)} "
                f"Known fields: {_list(self.fields)}",
                node,
            )
        self.used.add(node.name)

    def _filter(self, node: Any, local: frozenset[str]) -> None:
        filter_ = FILTERS.get(node.name)
        if filter_ is None:
            _refuse(
                f"unknown filter {node.name!r}.{did_you_mean(node.name, FILTERS)} "
                f"Known filters: {_list(FILTERS)}",
                node,
            )
        constant = all(isinstance(getattr(arg, "value", None), str) for arg in node.args)
        if not constant or node.kwargs or node.dyn_args or node.dyn_kwargs:
            _refuse(f"the filter {node.name!r} takes only texts in quotes as arguments", node)
        fewest, most = filter_.arguments
        if not fewest <= len(node.args) <= most:
            number = len(node.args)
            _refuse(f"the filter {node.name!r} takes {most} argument(s), not {number}", node)

    def _test(self, node: Any, local: frozenset[str]) -> None:
        if node.name not in _TESTS:
            _refuse(f"unknown test {node.name!r}. Known tests: {_list(_TESTS)}", node)
        named = node.kwargs or node.dyn_args or node.dyn_kwargs
        if named or len(node.args) != (node.name != "none"):
            _refuse(f"the test {node.name!r} has wrong arguments", node)

    def _getitem(self, node: Any, local: frozenset[str]) -> None:
        # Jinja looks up an attribute if an item is missing, so a string in brackets is equivalent
        # to a dot. A number is not.
        value = getattr(node.arg, "value", None)
        if type(node.node).__name__ != "Name" or type(value) is not int:
            _refuse("only a field may be indexed, by a number: x[0]", node)

    def _attribute(self, node: Any, local: frozenset[str]) -> None:
        inside = "loop" in local and getattr(node.node, "name", "") == "loop"
        if not inside or node.attr not in _LOOP_ATTRIBUTES:
            allowed = _list(f"loop.{name}" for name in _LOOP_ATTRIBUTES)
            _refuse(
                f"the attribute .{node.attr} is not allowed in a template. "
                f"Allowed within a loop: {allowed}",
                node,
            )

    def _loop(self, node: Any, local: frozenset[str], depth: int) -> None:
        target = getattr(node.target, "name", "")
        if local:
            _refuse("a loop within a loop is not allowed in a template", node)
        if node.recursive:
            _refuse("a recursive loop is not allowed in a template", node)
        if not target.isascii() or not target.isidentifier() or target == "loop":
            _refuse("a loop needs one plain variable: {% for x in field %}", node)
        if target in self.fields:
            _refuse(f"the loop variable {target!r} has the name of a field; rename it", node)
        if type(node.iter).__name__ != "Name":
            _refuse("a loop may only run over a field: {% for x in field %}", node)
        self.check(node.iter, local, depth + 1)
        if node.test is not None:
            self.check(node.test, frozenset({target}), depth + 1)
        for child in node.body:
            self.check(child, frozenset({target, "loop"}), depth + 1)
        for child in node.else_:
            self.check(child, local, depth + 1)


@dataclass(frozen=True)
class Checked:
    """The result of checking a template's text.

    Attributes:
        fields: the fields that it uses, sorted.
        literals: its literal parts, in order, with runs of white space as one space.
    """

    fields: tuple[str, ...]
    literals: tuple[str, ...]


def _parse(source: str, fields: Collection[str]) -> tuple[nodes.Template, Checked]:
    from jinja2 import TemplateSyntaxError
    from jinja2.nodes import TemplateData

    if len(source) > MAX_SOURCE:
        raise TemplateError(f"longer than {MAX_SOURCE:,} characters", line=1)
    checker = _NameChecker(fields)
    try:
        tree = _environment().parse(source)
        checker.check(tree)
    except TemplateSyntaxError as error:
        raise TemplateError(f"not valid Jinja: {error.message}", line=error.lineno) from error
    except (RecursionError, ValueError) as error:  # deep nesting; numbers of too many digits
        raise TemplateError(f"not valid Jinja: {error}", line=1) from error
    literals = []
    for node in tree.find_all(TemplateData):
        node.data = re.sub(f"[{_SPACE}]+", " ", node.data)
        literals.append(node.data)
    return tree, Checked(tuple(sorted(checker.used)), tuple(literals))


def check_source(source: str, fields: Collection[str]) -> Checked:
    """Check a template's text without rendering it.

    Args:
        source: Jinja text.
        fields: the names that it may use.

    Raises:
        TemplateError: invalid Jinja, an unknown field or filter, or a construct that is not
            allowed. ``line`` gives the line of ``source``.

    >>> check_source('a type of {{ word | quoted }}', ["word", "gloss"])
    Checked(fields=('word',), literals=('a type of ',))
    """
    return _parse(source, fields)[1]


def fields_of(source: str) -> set[str]:
    """Return the fields that a template uses, given its text, which was already checked."""
    from jinja2.meta import find_undeclared_variables

    return find_undeclared_variables(_environment().parse(source))


Rewrite = Callable[["nodes.Template"], None]
"""Changes a checked syntax tree in place. Hashable, so that compiled trees can be cached."""


@lru_cache(maxsize=1024)
def _compiled(
    source: str, fields: frozenset[str], rewrite: Rewrite | None
) -> tuple[Template, tuple[str, ...]]:
    """Compile a template to a loop over rows, which are tuples of the fields that it uses."""
    from jinja2 import Template, nodes

    tree, checked = _parse(source, fields)
    used = checked.fields
    if rewrite is not None:
        rewrite(tree)
        used = tuple(sorted({name.name for name in tree.find_all(nodes.Name)} & fields))
    # The loop is put around the tree, not around the text: a "-%}" at the end of the text would
    # swallow the separator, which counts as white space.
    body = [*tree.body, nodes.Output([nodes.TemplateData(_END)])]
    row = nodes.Tuple([nodes.Name(name, "store") for name in used], "store")
    loop = nodes.For(row, nodes.Name(_ROWS, "load"), body, [], None, False)
    tree.body = [loop]
    tree.set_lineno(1).set_environment(_environment())
    code = _environment().compile(tree)
    return Template.from_code(_environment(), code, {}), used


def _render_rows(template: Template, rows: Sequence[tuple[object, ...]]) -> list[str]:
    *texts, _ = template.render({_ROWS: rows}).split(_END)
    if len(texts) != len(rows):
        texts = [template.render({_ROWS: [row]})[: -len(_END)] for row in rows]
    return [text.strip(_SPACE) for text in texts]


def _first_failure(template: Template, rows: Sequence[tuple[object, ...]]) -> int:
    for number, row in enumerate(rows):
        try:
            template.render({_ROWS: [row]})
        except _runtime_errors():
            return number
    return 0


def render_batch(
    source: str,
    fields: Mapping[str, Sequence[object]],
    where: str,
    rewrite: Rewrite | None = None,
) -> list[str]:
    """Render a template for many rows, tens of thousands in a call.

    In the template's literal parts a run of white space (such as a line break of a YAML block)
    becomes one space; the rendered text is stripped; data are unchanged.

    Args:
        source: Jinja text; it may use any of ``fields``.
        fields: name to values, all of the same length ``n``. Texts, numbers or lists of texts.
        where: names the template in messages, such as ``templates/x.yaml:7: choice``.
        rewrite: changes the checked syntax tree before it is rendered; it may introduce additional
            fields, which must be in ``fields``.

    Returns:
        ``n`` texts.

    Raises:
        TemplateError: the template is refused (see ``check_source``) or fails on a row.
        ValueError: there are no fields, or they have different lengths.

    >>> render_batch("{{ a }}{% if b %} or {{ b }}{% endif %}", {"a": "xy", "b": ["z", ""]}, "doc")
    ['x or z', 'y']
    """
    lengths = {name: len(values) for name, values in fields.items()}
    if len(set(lengths.values())) != 1:
        raise ValueError(f"{where}: the fields need one common length, not {lengths}")
    try:
        template, names = _compiled(source, frozenset(fields), rewrite)
    except TemplateError as error:
        raise TemplateError(error.problem, where=where, line=error.line) from error
    count = next(iter(lengths.values()))
    if not names:
        return _render_rows(template, [()]) * count
    texts: list[str] = []
    for start in range(0, count, CHUNK):
        rows = list(zip(*(fields[name][start : start + CHUNK] for name in names), strict=True))
        try:
            texts += _render_rows(template, rows)
        except _runtime_errors() as error:
            number = _first_failure(template, rows)
            given = dict(zip(names, rows[number], strict=True))
            raise TemplateError(f"{error} (row {start + number}: {given})", where=where) from error
    return texts


@cache
def _runtime_errors() -> tuple[type[Exception], ...]:
    from jinja2 import TemplateRuntimeError

    return (TemplateRuntimeError, TypeError, ValueError, LookupError)
