"""What ``evaluate`` returns: results that save themselves and show themselves in notebooks."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaluation.runs.evaluation import Evaluation
from kbprobe.errors import naming_extras

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evaluation.studies.table import StudyTables
    from kbprobe.tables import PlainTable


@dataclass(frozen=True)
class Page:
    """An HTML page, which a notebook shows in a separate frame."""

    text: str

    def _repr_html_(self) -> str:
        # In a frame, the page's own style and content-security policy hold.
        framed = escape(self.text, quote=True)
        return f'<iframe srcdoc="{framed}" sandbox style="width: 100%; height: 40em"></iframe>'

    def save(self, path: str | Path) -> Path:
        """Write the page to a file, and return its path.

        Raises:
            OSError: the file cannot be written.
        """
        from kbprobe.files import write_file

        write_file(Path(path), self.text.encode("utf-8", errors="backslashreplace"))
        return Path(path)


@dataclass(frozen=True)
class Result(Evaluation):
    """A model on a probe: the numbers, and a row for each item.

    >>> result = kbprobe.evaluate("probes/age_comparison", "roberta-base")  # doctest: +SKIP
    >>> result.save("results/ages")  # doctest: +SKIP
    >>> result.report()  # shown in a notebook  # doctest: +SKIP
    """

    @classmethod
    def of(cls, evaluation: Evaluation) -> Result:
        """Make a result of an evaluation."""
        return cls(*(getattr(evaluation, one.name) for one in fields(evaluation)))

    @property
    def accuracy(self) -> float:
        """The share of rows answered correctly."""
        return self.results.metrics.accuracy.value

    def table(self) -> PlainTable:
        """Return the table of the numbers: one row."""
        from evaluation.results.frames import table_of

        return table_of([self.results])

    def report(self) -> Page:
        """Return the report's page.

        Raises:
            MissingDependencyError: the page has figures, and matplotlib is not installed.
        """
        from evaluation.report.page import render

        facts = None if self.facts is None else self.facts.predictions
        return Page(render(self.results, self.predictions, facts))

    def save(self, folder: str | Path, *, overwrite: bool = False) -> Path:
        """Write results, predictions and report into a folder, atomically; return the folder.

        If the folder already holds the same results, they are kept.

        Raises:
            UsageError: the folder holds other results, or something else.
            OSError: it cannot be written.
        """
        from evaluation.runs.folders import earlier_results, save
        from kbprobe.errors import UsageError, path_argument
        from kbprobe.files.targets import taking

        place = path_argument("save(folder=...)", folder, "the folder to write")
        with taking(place, overwrite) as overwrite:
            earlier = earlier_results(place, overwrite)
            if earlier is None:
                save(self, place)
            elif earlier.results.model_dump(exclude={"timings"}) != self.results.model_dump(
                exclude={"timings"}
            ):
                raise UsageError(
                    f"{place} holds other results. Replace them with overwrite=True, or choose "
                    "another folder."
                )
        return place

    def _repr_html_(self) -> str:
        from evaluation.names import model_name
        from evaluation.results.summary import cautions
        from kbprobe.tables import PlainTable

        results = self.results
        table = self.table()
        cells = zip(table.titles, table.rows[0], strict=True)
        shown = PlainTable(
            ["", results.probe.name], [[name, cell] for name, cell in cells if cell is not None]
        )
        said = "".join(f"<li>{escape(line)}</li>" for line in cautions(results))
        on = f"{results.probe.name} ({results.probe.split})"
        caption = f"{model_name(results.model.id)} on {on}, shares in percent"
        return f"{shown.html(caption)}<ul>{said}</ul>"

    def __repr__(self) -> str:
        metrics, results = self.results.metrics, self.results
        return (
            f"Result({results.model.id!r} on {results.probe.name!r}, {results.probe.split}: "
            f"accuracy {metrics.accuracy.value:.3f} [{metrics.accuracy.low:.3f}, "
            f"{metrics.accuracy.high:.3f}] of {metrics.scored:,} rows)"
        )


_COMPARED = "results that kbprobe.evaluate returned, folders of results, or one list of these"


@naming_extras()
def compare(
    *results: Result | str | Path | Sequence[Result | str | Path], **options: Any
) -> StudyTables:
    """Compare results on the same rows: those of several models, or of one before and after.

    Args:
        results: two or more, in memory or in folders, or a list of them; one is enough with
            ``against="similarity"``. Each pair is compared.
        **options: those of the study ``compare``, as ``evaluate-probe compare --help`` lists them.

    Returns:
        The comparison's summary, a pydantic model.

    Raises:
        UsageError: the results are not for the same rows, are fewer than two, or are not results.
    """
    from evaluation.runs.folders import save
    from evaluation.studies.base import Finished, StudyRequest, finished_in, summarise_folders
    from evaluation.studies.registry import STUDIES
    from kbprobe.errors import path_argument
    from kbprobe.files import scratch_folder

    if len(results) == 1 and isinstance(results[0], list | tuple):
        results = tuple(results[0])
    with scratch_folder() as scratch:

        def read(folder: Path) -> Finished:
            run = finished_in(folder)
            # Temporary folders, which are deleted afterwards, are not recorded.
            named = folder.relative_to(scratch) if folder.is_relative_to(scratch) else folder
            return replace(run, folder=named)

        study = replace(STUDIES.get("compare"), read=read)
        request = StudyRequest.parse(study, (), (), options, None, "compare")
        places = []
        for number, one in enumerate(results, 1):
            if isinstance(one, Evaluation):
                # Read from files, whose checksums are verified, as the command does.
                place = scratch / f"result {number}"
                save(one, place, report=False)
                places.append(place)
            else:
                places.append(path_argument("compare(results=...)", one, _COMPARED))
        summary: StudyTables = summarise_folders(request, places)
        return summary
