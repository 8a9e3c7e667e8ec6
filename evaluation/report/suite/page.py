"""The page of a suite: one file that shows all results below a folder, without a server.

The page is a pure function of the results: no date, no machine. Other than the report of one run
it needs scripts; its content security policy allows exactly those that are part of it, by their
hashes, and nothing from elsewhere. Texts of probes and models are data: the scripts show them as
text.
"""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup

from evaluation.report.breakdowns import SMALL
from evaluation.report.page import strongest_baseline
from evaluation.report.suite import leaderboard
from evaluation.report.suite.collect import Answers, Collection, collect
from evaluation.report.suite.leaderboard import Leaderboard
from evaluation.report.suite.library import inline, table_library
from evaluation.report.suite.rows import columns_of, pack
from evaluation.report.templates import environment
from evaluation.results.types import REPORT
from kbprobe.errors import KbprobeError, require
from kbprobe.files import write_file

DEFAULT_ROWS = 50_000
"""Questions of each probe that the page holds at most."""

_HERE = Path(__file__).parent
_SCRIPTS = ("downloads.js", "questions.js", "suite.js")
"""One module: the last one starts the page."""
_LICENCES = "licences.js"
"""Those of the library, which has the notices of its parts at its end."""


class SuitePage(NamedTuple):
    """A page that was written.

    Attributes:
        path: the file.
        models: systems on it: models, and what was done to them.
        probes: probes on it.
        results: how many there are of these on those.
        left_out: why each folder that is not on it was left out.
    """

    path: Path
    models: int
    probes: int
    results: int
    left_out: tuple[str, ...]


def make_suite_page(
    folder: Path, output: Path | None = None, rows: int = DEFAULT_ROWS
) -> SuitePage:
    """Write the page of all results below a folder; the same results give the same bytes.

    Args:
        folder: the folder, which may hold results itself.
        output: the file to write; None: ``report.html`` in the folder.
        rows: questions of each probe to hold at most; of more a sample is drawn. 0: none, for a
            page that is to be published while the questions are not.

    Raises:
        UsageError: there is no such folder, or no results in it that can be read.
        MissingDependencyError: itables or matplotlib is not installed.
        KbprobeError: the page cannot be written.
    """
    require("matplotlib", "report", "making the page of a suite")
    library = table_library()
    found = collect(folder, rows)
    board = leaderboard.arrange(found)
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
    """Return the page.

    Args:
        found: what was read.
        board: the same, arranged.
        library: the script that defines ``DataTable``.
    """
    texts = {name: _HERE.joinpath(name).read_text("utf-8") for name in (_LICENCES, *_SCRIPTS)}
    own = inline("\n".join(texts[name] for name in _SCRIPTS))
    scripts = (texts[_LICENCES] + library, own)
    blocks = _blocks(found, board)
    head, results = leaderboard.table_of_results(board)
    templates = environment(_HERE)
    templates.filters |= {"hundredths": lambda share: f"{100 * share:.1f}", "short_count": short}
    return templates.get_template("suite.html.j2").render(
        board=board,
        found=found,
        hashes=[_hash(script) for script in scripts],
        # Ours and the library's: `inline` keeps them from ending their element.
        scripts=[Markup(script) for script in scripts],  # nosec B704
        strongest=strongest_baseline,
        blocks=blocks,
        maps=pack(leaderboard.heat_maps(board)),
        about={
            "models": [system.name for system in board.systems],
            "probes": [probe.name for probe in board.probes],
            "small": SMALL,
            "head": head,
            "results": results,
        },
        questions=sum(probe.rows for probe in board.probes),
    )


def short(count: int) -> str:
    """Spell a number of parameters in three digits.

    >>> short(135_000_000), short(7_240_000_000), short(950)
    ('135M', '7.24B', '950')
    """
    for unit, letter in ((10**9, "B"), (10**6, "M")):
        if count >= unit:
            return f"{count / unit:.3g}{letter}"
    return f"{count:,}"


def _blocks(found: Collection, board: Leaderboard) -> list[str]:
    """Return the questions of each probe, packed; none where the page is to hold none."""
    packed = []
    for number, probe in enumerate(board.probes):
        if (rows := found.rows.get(probe.key)) is None:
            continue
        answers: dict[int, Answers] = {
            at: entry.run.answers
            for at, system in enumerate(board.systems)
            if (entry := system.entries[number]) is not None and entry.run.answers is not None
        }
        packed.append(pack(columns_of(rows, probe.rows, answers)))
    return packed


def _hash(script: str) -> str:
    """Return the source of a script as a content security policy names it."""
    digest: Any = hashlib.sha256(script.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
