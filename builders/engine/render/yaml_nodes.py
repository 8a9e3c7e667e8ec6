"""YAML files that users may write, read as nodes rather than values: nodes know their lines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from builders.engine.render.jinja import TemplateError

if TYPE_CHECKING:
    import yaml

MAX_BYTES = 1 << 18
STRING = "tag:yaml.org,2002:str"
BOOLEAN = "tag:yaml.org,2002:bool"


def read_nodes(path: Path, source: str, what: str) -> tuple[str, yaml.Node]:
    """Read a file; return its text and its root node.

    Args:
        path: the file.
        source: how messages name it.
        what: what it should be ("a template file").

    Raises:
        TemplateError: it cannot be read, is too large, no text, no YAML, or empty.
    """
    import yaml

    def refused(problem: str, line: int = 0) -> TemplateError:
        return TemplateError(problem, where=f"{source}:{line}" if line else source, line=line)

    try:
        with path.open("rb") as file:
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
