"""The page of a suite: one file that shows all results below a folder, without a server.

The page depends only on the results, not on the date or the machine. Unlike the report of a single
run it needs scripts; its content security policy allows exactly those that are part of it, by
their hashes, and nothing from elsewhere. Texts of probes and models are data, which the scripts
insert as text.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from markupsafe import Markup

from evaluation.names import NO_NAMES, DisplayNames
from evaluation.report.html import render_page
from evaluation.report.suite import leaderboard
from evaluation.report.suite.collect import Collection, PickedChoices, collect
from evaluation.report.suite.document import document
from evaluation.report.suite.leaderboard import Leaderboard
from evaluation.results.types import PREDICTIONS, REPORT, RESULTS
from kbprobe.columns import single_chunk, to_numpy
from kbprobe.errors import KbprobeError, require
from kbprobe.files import write_file

if TYPE_CHECKING:
    import pyarrow as pa

_EXPORTS = re.compile(r"export\s*\{([^}]*)\};?")
_DEFAULT = re.compile(r"(?:^|,)\s*([\w$]+) as default\s*(?:,|$)")


def table_library() -> str:
    """Return DataTables, with its licences, as a script that defines ``window.DataTable``.

    Raises:
        MissingDependencyError: itables is not installed.
        KbprobeError: its version contains DataTables in a different form.
    """
    require("itables", "report", "making the page of a suite")
    spec = find_spec("itables")  # Importing it would import pandas as well.
    try:
        if spec is None or spec.origin is None:
            raise ValueError("no folder of the package")
        bundle = Path(spec.origin).parent / "html" / "dt_bundle.js"
        return as_script(bundle.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise KbprobeError(
            "The installed itables does not hold DataTables in the form that is expected "
            f"({error}). Install a version that is known to work: pip install 'itables>=2.9,<3'"
        ) from error


def as_script(module: str) -> str:
    """Convert a module to a script: instead of exporting a class, it sets ``window.DataTable``.

    >>> as_script("class A{} export{B as other,A as default};")
    'class A{} window.DataTable=A;'

    Raises:
        ValueError: it has no default export.
    """
    exports = _EXPORTS.findall(module)
    name = _DEFAULT.search(exports[0]) if len(exports) == 1 else None
    if name is None:
        raise ValueError("no default export")
    script = _EXPORTS.sub(lambda _: f"window.DataTable={name[1]};", module)
    return inline(script)


def inline(script: str) -> str:
    r"""Escape a script for embedding in a page: nothing in it may end its element, or hide the end.

    Such texts occur in strings and regular expressions, where the backslash changes nothing.

    >>> print(inline("'<!--' + '</script>'"))
    '<\!--' + '<\/script>'
    """
    script = script.replace("\r\n", "\n").replace("<!--", r"<\!--")
    return re.sub(r"</(?=script)", r"<\\/", script, flags=re.IGNORECASE)


_FILTERED = ("hops", "distractor_family")
_SHOWN = ("distractor_hops", "concept", "cluster", "pos", "template")


def pack(value: Any) -> str:
    """Return a value as compressed JSON text: the same bytes for the same value."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    data = gzip.compress(text.encode("utf-8"), compresslevel=6, mtime=0)
    return base64.b64encode(data).decode("ascii")


def columns_of(rows: pa.Table, total: int, answers: Mapping[int, PickedChoices]) -> dict[str, Any]:
    """Return what the page contains of a probe's rows, which may be a sample of ``total``."""
    choices = single_chunk(rows["choices"])
    widths = np.diff(to_numpy(choices.offsets))
    columns = {name: _coded(rows[name]) for name in (*_FILTERED, *_SHOWN)}
    return {
        "total": total,
        "id": rows["id"].to_pylist(),
        "question": _coded(_questions(rows)),
        # Most probes have the same number of choices in each row: a single number suffices.
        "width": int(widths[0]) if len(set(widths.tolist())) == 1 else widths.tolist(),
        "choices": _coded(choices.flatten()),
        "gold": rows["answer"].to_pylist(),
        # Columns without values, and clusters of single rows, carry no information.
        "columns": {
            name: held
            for name, held in columns.items()
            if held["values"] and not rows[name].equals(rows["id"])
        },
        "answers": {
            str(system): {"picked": held.picked.tolist(), "share": held.share.tolist()}
            for system, held in sorted(answers.items())
        },
    }


def _questions(rows: pa.Table) -> pa.Array:
    """Return the texts of the questions, each after its premise if it has one."""
    import pyarrow as pa
    import pyarrow.compute as pc

    questions = single_chunk(rows["question"])
    if "premise" not in rows.column_names:
        return questions
    whole = pc.binary_join_element_wise(single_chunk(rows["premise"]), questions, "\n")
    return pc.coalesce(whole, questions).cast(pa.string())


def _coded(column: pa.Array | pa.ChunkedArray) -> dict[str, list[Any]]:
    """Return the distinct values of a column and the index of each row's value; -1 for none."""
    coded = single_chunk(column).dictionary_encode()
    return {
        "values": coded.dictionary.to_pylist(),
        "codes": coded.indices.fill_null(-1).to_pylist(),
    }


DEFAULT_ROWS = 50_000
"""Maximum number of questions of each probe on the page."""

_HERE = Path(__file__).parent
_SCRIPTS = ("downloads.js", "questions.js", "suite.js")
"""Joined into one module; the last one starts the page."""
_LICENCES = "licences.js"
"""The licences of the library, which has the notices of its parts at its end."""


class SuitePage(NamedTuple):
    """A page that was written, what is on it, and why each other folder was left out."""

    path: Path
    models: int
    probes: int
    results: int
    left_out: tuple[str, ...]


def make_suite_page(
    folder: Path,
    output: Path | None = None,
    rows: int = DEFAULT_ROWS,
    names: DisplayNames = NO_NAMES,
) -> SuitePage:
    """Write the page of all results below a folder; the same results give the same bytes.

    Args:
        folder: the folder, which may contain results itself.
        output: the file to write; None: ``report.html`` in the folder.
        rows: the maximum number of questions of each probe; if there are more, a sample is drawn.
            0: none, for a page that is published without the questions.
        names: the names given to models, probes and folders of results.

    Raises:
        UsageError: there is no such folder, or no results in it that can be read.
        MissingDependencyError: itables or matplotlib is not installed.
        KbprobeError: the page cannot be written.
    """
    require("matplotlib", "report", "making the page of a suite")
    library = table_library()
    found = collect(folder, rows)
    board = leaderboard.arrange(found, names)
    page = render(found, board, library)
    path = folder / REPORT if output is None else output
    try:
        write_file(path, page.encode("utf-8", errors="backslashreplace"))
    except OSError as error:
        raise KbprobeError(
            f"{path} cannot be written ({error.strerror}): name another file with -o, or see to "
            "the folder's permissions and the space left"
        ) from error
    counts = len(board.systems), len(board.probes), len(found.runs)
    return SuitePage(path, *counts, tuple(found.left_out))


def render(found: Collection, board: Leaderboard, library: str) -> str:
    """Return the page of a collection, which the leaderboard arranges."""
    texts = {name: _HERE.joinpath(name).read_text("utf-8") for name in (_LICENCES, *_SCRIPTS)}
    own = inline("\n".join(texts[name] for name in _SCRIPTS))
    scripts = (texts[_LICENCES] + library, own)
    table = leaderboard.table_of_results(board)
    return render_page(
        document(found, board),
        f"the folders’ {RESULTS} and {PREDICTIONS}",
        "suite/suite.html.j2",
        hashes=[_hash(script) for script in scripts],
        # Our scripts and the library's: `inline` keeps them from ending their element.
        scripts=[Markup(script) for script in scripts],  # nosec B704
        blocks=_blocks(found, board),
        about={
            "models": [system.name for system in board.systems],
            "probes": [probe.name for probe in board.probes],
            "head": table.head,
            "results": table.rows,
        },
    )


def _blocks(found: Collection, board: Leaderboard) -> list[str]:
    """Return the packed questions of each probe; empty if the page is to have none."""
    packed = []
    for number, probe in enumerate(board.probes):
        if (rows := found.rows.get(probe.key)) is None:
            continue
        answers: dict[int, PickedChoices] = {
            at: entry.run.answers
            for at, system in enumerate(board.systems)
            if (entry := system.entries[number]) is not None and entry.run.answers is not None
        }
        packed.append(pack(columns_of(rows, probe.rows, answers)))
    return packed


def _hash(script: str) -> str:
    """Return the hash of a script as a source expression of a content security policy."""
    digest: Any = hashlib.sha256(script.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
