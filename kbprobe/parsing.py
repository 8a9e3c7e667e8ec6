"""Reading of untrusted JSON and YAML, within limits and with validated types.

Every file that a command reads back goes through here. Any fault raises a `UsageError` that names
the file and the place in it; no content can exhaust memory or the stack.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from kbprobe.errors import UsageError
from kbprobe.options import explain_all
from kbprobe.reading import not_utf8, read_bytes, sentence

if TYPE_CHECKING:
    import yaml

MAX_JSON_BYTES = 1 << 28
"""Maximum bytes of a JSON file; the largest that kbprobe writes (keys of sheets) have 10 MB."""
MAX_YAML_BYTES = 1 << 20
"""Maximum bytes of a YAML file, which people write by hand."""
MAX_VALUES = 20_000_000
"""Maximum number of values in a JSON file (by commas and brackets): about 60 bytes each."""
MAX_DEPTH = 64
MAX_NODES = 100_000
"""Maximum number of values in a YAML file, counting those that aliases repeat each time."""
MAX_INTEGER = (1 << 63) - 1

_Model = TypeVar("_Model", bound=BaseModel)
_Value = TypeVar("_Value")
_Number = TypeVar("_Number", int, float)
_DECIMAL = {
    "int": re.compile(r"[-+]?(?:0b[01_]+|0[0-7_]+|0|[1-9][0-9_]*|0x[0-9a-fA-F_]+)$"),
    "float": re.compile(
        r"(?:[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?"
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
    ),
}
"""YAML 1.1's forms of numbers, without those to base 60 (``1:30``), which take quadratic time."""
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def read_json(path: Path, remedy: str = "") -> Any:
    """Return the value that a JSON file holds; see `json_value`.

    Raises:
        FileNotFoundError: there is no such file; the caller should say what to do about it.
        UsageError: it cannot be read, is too large, or `json_value` refuses it.
    """
    return json_value(read_bytes(path, MAX_JSON_BYTES, remedy), str(path), remedy)


def read_yaml(path: Path, remedy: str = "") -> Any:
    """Return the value that a YAML file holds; see `yaml_value`.

    Raises:
        FileNotFoundError: there is no such file.
        UsageError: it cannot be read, is too large, or `yaml_value` refuses it.
    """
    return yaml_value(read_bytes(path, MAX_YAML_BYTES, remedy), str(path), remedy)


def read_record(path: Path, model: type[_Model], remedy: str = "") -> _Model:
    """Read a JSON file into a model; see `validated`.

    Raises:
        FileNotFoundError: there is no such file.
        UsageError: it cannot be read or is damaged; the message names the field.
    """
    return validated(read_json(path, remedy), model, str(path), remedy)


def json_value(content: str | bytes, source: str, remedy: str = "") -> Any:
    """Return the value that a JSON text holds: objects, lists, texts, booleans, finite numbers.

    Args:
        content: the text, or its bytes in UTF-8.
        source: what messages call it, such as its path.
        remedy: a sentence for messages that says what to do.

    Raises:
        UsageError: it is not JSON, is nested deeper than `MAX_DEPTH`, or holds what no reader
            agrees on: a key given twice, an integer beyond 64 bits, NaN or infinity, half of a
            surrogate pair.
    """
    refuse = _refusing(source, remedy)
    try:
        text = content.decode("utf-8-sig") if isinstance(content, bytes) else content
        if sum(map(text.count, ",[{")) > MAX_VALUES:
            refuse(f"holds more than {MAX_VALUES:,} values")
        value = json.loads(
            text,
            object_pairs_hook=_unique,
            parse_int=_integer,
            parse_float=lambda digits: _within_bounds(float(digits)),
            parse_constant=_constant,
        )
        if _SURROGATE.search(text):
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeDecodeError as error:
        refuse(not_utf8(error))
    except UnicodeEncodeError:
        refuse("holds half of a surrogate pair, which is no character")
    except json.JSONDecodeError as error:
        refuse(f"is not JSON: {error.msg} (line {error.lineno}, column {error.colno})")
    except ValueError as error:
        refuse(f"cannot be read as JSON: {error}")
    except RecursionError:
        refuse("is nested too deeply")
    if _deeper(value, MAX_DEPTH):
        refuse(f"is nested more than {MAX_DEPTH} levels deep")
    return value


def yaml_value(content: str | bytes, source: str, remedy: str = "") -> Any:
    """Return the value that a YAML text holds: mappings, lists, texts, booleans, finite numbers.

    Dates stay strings, as they were written. Anchors, aliases and merge keys work within
    `MAX_NODES`.

    Raises:
        UsageError: it is not YAML, or too deep or too large, or holds something else; the
            message names the line.
    """
    import yaml

    refuse = _refusing(source, remedy)
    try:
        if len(content) > MAX_YAML_BYTES:
            refuse(f"has more than {MAX_YAML_BYTES:,} bytes, the most that is read")
        text = content.decode("utf-8-sig") if isinstance(content, bytes) else content
        loader = _loader()(text)
        try:
            root = loader.get_single_node()
            if root is None:
                return None
            _check_nodes(root)
            value = loader.construct_document(root)
            for number in _numbers(value):
                _within_bounds(number)
        finally:
            loader.dispose()
    except UnicodeDecodeError as error:
        refuse(not_utf8(error))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}: " if mark else ""
        refuse(f"is not YAML: {where}{error.problem or error.context}")
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        refuse(f"is not YAML: line {line}: {error.reason}")
    except RecursionError:
        refuse("is nested too deeply")
    except (ValueError, KeyError) as error:
        if "integer string conversion" in str(error):  # Python's own limit
            refuse("cannot be read as YAML: a number is beyond 64 bits")
        # A tag that does not fit its value, such as !!bool x.
        refuse(f"cannot be read as YAML: {error}")
    return value


def own_yaml(text: str) -> Any:
    """Return the value that a YAML text of kbprobe's own holds."""
    import yaml

    # LibYAML, where PyYAML was built with it, is ten times as fast; its messages differ.
    return yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # nosec B506


def validated(
    value: Any, kind: type[_Value] | TypeAdapter[_Value], source: str, remedy: str = ""
) -> _Value:
    """Convert a plain value to a model, or to another type that pydantic validates.

    Raises:
        UsageError: it does not fit; the message names the fields, by their path.
    """
    adapter = kind if isinstance(kind, TypeAdapter) else TypeAdapter(kind)
    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        told = explain_all(error.errors(include_url=False))
        raise UsageError(sentence(f"{source}: {told}", remedy)) from None


def _refusing(source: str, remedy: str) -> Callable[[str], NoReturn]:
    def refuse(problem: str) -> NoReturn:
        raise UsageError(sentence(f"{source} {problem}", remedy)) from None

    return refuse


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the key {twice!r} is given twice")
    return found


def _integer(text: str) -> int:
    if len(text) > 20:  # before Python converts it, which is slow
        raise ValueError(f"the number {text[:20]}... is beyond 64 bits")
    return _within_bounds(int(text))


def _within_bounds(number: _Number) -> _Number:
    if isinstance(number, float) and not math.isfinite(number):
        raise ValueError(f"{number} is not a finite number")
    if isinstance(number, int) and abs(number) > MAX_INTEGER:
        raise ValueError("a number is beyond 64 bits; put quotes around it if it is a text")
    return number


def _constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number of JSON")


def _deeper(value: Any, limit: int) -> bool:
    """Return whether lists and mappings are nested more than ``limit`` deep."""
    level = [value]
    for _ in range(limit + 1):
        level = [
            part
            for outer in level
            if isinstance(outer, (dict, list))
            for part in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(part, (dict, list))
        ]
        if not level:
            return False
    return True


def _loader() -> type[yaml.SafeLoader]:
    """A loader of plain values: no dates, no sets, no bytes, no numbers that are not finite."""
    import yaml

    class PlainLoader(yaml.SafeLoader):
        """Resolves as YAML 1.1 does, except for dates and base-60 numbers, which stay strings."""

        yaml_implicit_resolvers = {  # noqa: RUF012
            first: [
                (tag, _DECIMAL.get(tag.rpartition(":")[2], pattern))
                for tag, pattern in pairs
                if not tag.endswith(":timestamp")
            ]
            for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
        }
        _composed = 0

        def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
            self._composed += 1
            if self._composed > MAX_NODES:
                problem = f"more than {MAX_NODES:,} values"
                raise yaml.composer.ComposerError(None, None, problem, self.get_mark())
            return super().compose_node(parent, index)

    return PlainLoader


def _check_nodes(root: yaml.Node) -> None:
    """Raise one of yaml's own errors for what is too deep, too large, or not a plain value.

    Each node is visited once, however many aliases refer to it; its size counts for each of them.
    """
    import yaml

    sizes: dict[int, int] = {}
    plain = {
        f"tag:yaml.org,2002:{name}"
        for name in ("map", "seq", "str", "int", "float", "bool", "null", "merge")
    }

    def refuse(node: yaml.Node, problem: str) -> NoReturn:
        raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)

    def size(node: yaml.Node, depth: int) -> int:
        if depth > MAX_DEPTH:
            refuse(node, f"nested more than {MAX_DEPTH} levels deep, or an alias of itself")
        if (known := sizes.get(id(node))) is not None:
            return known
        if node.tag not in plain:
            refuse(node, f"{node.tag.rsplit(':')[-1]!r} is not a kind of value that is read here")
        total = 1
        if isinstance(node, yaml.MappingNode):
            names: set[str] = set()
            for key, value in node.value:
                if key.tag not in ("tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"):
                    refuse(key, "a key must be a text; put quotes around it")
                if key.value in names:
                    refuse(key, f"the key {key.value!r} is given twice")
                names.add(key.value)
                total += 1 + size(value, depth + 1)
        elif isinstance(node, yaml.SequenceNode):
            total += sum(size(part, depth + 1) for part in node.value)
        if total > MAX_NODES:
            refuse(node, f"more than {MAX_NODES:,} values")
        sizes[id(node)] = total
        return total

    size(root, 0)


def _numbers(value: Any) -> Iterator[int | float]:
    """Yield all numbers in lists and mappings."""
    if isinstance(value, Mapping | list):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from _numbers(part)
    elif isinstance(value, int | float):
        yield value
