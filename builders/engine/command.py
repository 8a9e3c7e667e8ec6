"""How ``build-probe`` builds probes, given their names, a recipe or a manifest.

The building code is imported only when it is needed, so that finished builds are recognised
quickly.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from builders.engine.options import with_snapshots
from builders.engine.own_files import own_file
from builders.engine.probe import find_probe
from builders.engine.request import Request
from kbprobe.cli import kbprobe_version
from kbprobe.errors import KbprobeError, UsageError
from kbprobe.files import scratch_folder, sweep
from kbprobe.files.targets import taking
from kbprobe.format.manifest import Manifest, jsonable, read_manifest
from kbprobe.format.setups import SPLITS
from kbprobe.options import option_name
from kbprobe.plugins import let_arrow_ignore_pandas
from kbprobe.terminal import echo

if TYPE_CHECKING:
    from builders.engine.pipeline import Built
    from builders.engine.recipe import Declared


PROGRAM = "build-probe"
DEFAULT_PARENT = Path("probes")

Job = tuple[Request, Path]
"""What to build, and the folder to write it to."""


class Reading(NamedTuple):
    """The sheet to write with each probe: how many rows, whether blind, and where."""

    rows: int
    blind: bool
    folder: Path | None

    def write(self, probe: Path, seed: int, overwrite: bool) -> None:
        """Write the sheet of a built probe, and say where."""
        from kbprobe.format.sheets import KEY, SHEETS, write_reading

        output = self.folder or probe.with_name(f"{probe.name}-reading")
        write_reading(probe, output, self.rows, blind=self.blind, seed=seed, overwrite=overwrite)
        echo(f"Wrote {self.rows} rows to read to {output / SHEETS}.", err=True)
        if self.blind:
            score = f"release-probe annotate score {probe} --key {output / KEY} --votes FILE..."
            echo(
                f"Give readers that folder alone: {output / KEY} tells the rows. Then: {score}",
                err=True,
            )


class Failures:
    """The probes of a command that cannot be built; of several, the others are built."""

    def __init__(self, total: int) -> None:
        self.total = total
        self._names: list[str] = []

    def add(self, name: str, error: KbprobeError) -> None:
        """Print why a probe is not built; raise the error if it is the only probe."""
        if self.total == 1:
            raise error
        echo(f"{PROGRAM}: error: {name}: {error}", err=True)
        self._names.append(name)

    def raise_if_any(self) -> None:
        """Raise an error that names all probes that were not built."""
        if self._names:
            raise KbprobeError(
                f"{len(self._names)} of {self.total} probes were not built, for the reasons above: "
                f"{', '.join(self._names)}"
            )


def named_jobs(
    names: Iterable[str],
    given: Mapping[str, Any],
    output: Path | None,
    values: Mapping[str, Any],
    failures: Failures,
) -> list[Job]:
    """Return the jobs of some probes; errors name a probe that lacks an option of the others.

    Args:
        names: the probes.
        given: the options of probes given on the command line, as strings.
        output: the probe's folder; for several probes, their parent folder.
        values: seed, template, format and audit.
        failures: takes the probes whose knowledge base is missing.
    """
    named = [(name, own_file(name)) for name in dict.fromkeys(names)]
    jobs = []
    for name_or_file, own in named:
        probe = find_probe(own.probe if own else name_or_file)
        fields = probe.options.model_fields
        for name in sorted(given.keys() - fields.keys()):
            echo(
                f"{PROGRAM}: {probe.name} has no {option_name(name)}: it is built without that.",
                err=True,
            )
        options = {name: value for name, value in given.items() if name in fields}
        options |= own.options if own else {}
        folder = (output or DEFAULT_PARENT) / (own.folder if own else probe.name)
        if output is not None and len(named) == 1:
            folder = output
        chosen = probe.options.parse(options, probe.name)
        try:
            chosen = with_snapshots(chosen, probe.name)
        except KbprobeError as error:
            failures.add(probe.name, error)
            continue
        for ending, each in chosen.builds.items():
            place = folder.with_name(f"{folder.name}-{ending}") if ending else folder
            request = Request(probe, each, **values)
            if each.wording:
                _ = request.wordings  # Like other options, it is refused before anything is built.
            jobs.append((request, place))
    return jobs


def _allow_open_files(locks: int) -> None:
    """Let this process open a lock file for each of many probes, as far as the system allows it."""
    try:
        import resource
    except ImportError:  # not on Windows, which has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = locks + 256
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _keep_freed_memory() -> None:
    """Let this process use the memory of freed arrays again, rather than return it.

    The system clears every page that it hands out, which takes a tenth of a build.
    """
    if sys.platform != "linux":
        return
    with suppress(OSError, AttributeError):  # another C library than glibc
        set_option = ctypes.CDLL(None).mallopt
        set_option(-3, 1 << 25)  # M_MMAP_THRESHOLD, of which this is the most
        set_option(-1, 1 << 29)  # M_TRIM_THRESHOLD


def run_jobs(
    jobs: Iterable[Job],
    overwrite: bool,
    as_json: bool,
    reading: Reading | None = None,
    brief: bool = False,
    failures: Failures | None = None,
    workers: int | None = None,
) -> None:
    """Build what does not exist yet, report each build, and write its reading sheet if requested.

    A ``brief`` report is a single line. Up to ``workers`` processes build, by default as many as
    fit on this machine.

    Raises:
        KbprobeError: some probes cannot be built; the others are, first.
    """
    let_arrow_ignore_pandas()
    jobs, waiting, held = list(jobs), [], dict[Path, ExitStack]()
    failures = failures or Failures(len(jobs))
    _allow_open_files(len(jobs))
    _keep_freed_memory()
    with ExitStack() as all_held:
        again = {}
        # All processes use the same order, so that no two wait for each other.
        for folder in sorted((folder for _, folder in jobs), key=os.path.realpath):
            held[folder] = all_held.enter_context(ExitStack())
            try:
                again[folder] = held[folder].enter_context(taking(folder, overwrite))
            except KbprobeError as error:
                failures.add(str(folder), error)
        for request, folder in ((asked, place) for asked, place in jobs if place in again):
            try:
                is_there = request.is_in(folder, again[folder])
            except KbprobeError as error:
                failures.add(str(folder), error)
                continue
            if is_there:
                manifest = read_manifest(folder)
                held[folder].close()
                rows = f"{manifest.counts.rows:,} rows"
                echo(f"{folder} already holds exactly this ({rows}).", err=as_json)
                _report(manifest.content, None, folder, as_json)
                if reading:
                    reading.write(folder, request.seed, overwrite)
            else:
                waiting.append((request, folder))
        if not waiting:
            failures.raise_if_any()
            return
        from builders.engine.drops import told_fewer
        from builders.engine.pipeline import build_all
        from builders.engine.side_by_side import MEMORY, build_outcomes, start_builds
        from kbprobe.forks import process_count
        from kbprobe.terminal.progress import Phases, shown_phase

        def failed(folder: Path, error: KbprobeError) -> None:
            failures.add(str(folder), error)
            held[folder].close()

        def report(written: dict[str, Any], built: Built, folder: Path) -> None:
            if brief and not as_json:
                echo(f"{folder}: {_split_rows(read_manifest(folder))}")
                for sentence in told_fewer(written):
                    echo(f"  {sentence}")
            else:
                _report(written, built, folder, as_json)

        def build_here(jobs: Sequence[Job], progress: Phases) -> None:
            for built, written, folder in build_all(jobs, progress, failed):
                with progress.paused():
                    report(written, built, folder)
                    close(built.request, folder)

        def close(request: Request, folder: Path) -> None:
            held[folder].close()
            if reading:
                reading.write(folder, request.seed, overwrite)

        if (count := process_count(len(waiting), workers, MEMORY)) == 1:
            with shown_phase() as progress:
                build_here(waiting, progress)
        else:
            with start_builds(waiting, report, count) as forks, shown_phase() as progress:
                outcomes = build_outcomes(forks, waiting, progress)
                for (request, folder), outcome in zip(waiting, outcomes, strict=True):
                    if outcome is None:  # An error that ends the command, or too little memory.
                        build_here([(request, folder)], progress)
                        continue
                    with progress.paused():
                        outcome.show()
                        if outcome.error is None:
                            close(request, folder)
                        else:
                            failed(folder, outcome.error)
    failures.raise_if_any()


def preview(jobs: Iterable[Job], as_json: bool) -> None:
    """Build in memory, without an audit, and print some rows of each relation.

    Raises:
        KbprobeError: a probe cannot be built.
    """
    let_arrow_ignore_pandas()
    from builders.engine.pipeline import build
    from builders.engine.summary import PREVIEWED, rows_of_relations, show_preview
    from kbprobe.terminal.progress import shown_phase

    for request, _ in jobs:
        with shown_phase() as progress:
            built = build(replace(request, audit=False), progress)
            progress("")
        rows = rows_of_relations(built, PREVIEWED)
        if as_json:
            echo(json.dumps({"counts": built.manifest["counts"], "rows": rows}, default=jsonable))
        else:
            show_preview(built, rows)


def _split_rows(manifest: Manifest) -> str:
    counts = manifest.counts.splits
    return ", ".join(f"{name} {counts[name]:,}" for name in SPLITS if counts[name])


def finish(declared: Declared, as_json: bool) -> None:
    """Compare the checksums of a suite that was built, write its record, and report on it."""
    if (suite := declared.finish()) is None:
        return
    rows = sum(read_manifest(folder).counts.splits["test"] for _, folder in declared.jobs)
    if suite.standard:
        said = f"All {len(declared.stated or {})} files have the checksums of {suite.name}."
    elif declared.recipe.checksums is not None:
        said = f"Not compared with the checksums of {suite.name}, which are of another seed."
    else:
        said = "The recipe states no checksums."
    probes = f"{(count := len(suite.probes))} probe{'s' * (count != 1)}"
    echo(f"{declared.folder}: {probes}, {rows:,} rows of test. {said}", err=as_json)


def _report(manifest: dict[str, Any], built: Built | None, folder: Path, as_json: bool) -> None:
    if as_json:
        echo(json.dumps({"folder": str(folder), **manifest}, default=jsonable))
    elif built is not None:
        from builders.engine.summary import show

        show(manifest, built, folder)


def rebuild(
    path: Path,
    output: Path | None,
    template: Path | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Rebuild what a manifest records, and compare the files' checksums.

    Raises:
        KbprobeError: knowledge base, template or rows are not those of the manifest.
    """
    from builders.engine.pipeline import build, request_of, same_rows, write
    from kbprobe.terminal.progress import shown_phase

    old = read_manifest(path)
    request = request_of(old, template)
    # Before --wording chooses: it may name one that only the right template has.
    wordings = request.probe.all_wordings(request.options, template)
    compared = {
        "knowledge base": (
            old.request.knowledge_base,
            request.knowledge.digest,
            "fetch the version that the manifest names (kb-cache fetch)",
        ),
        "template": (
            old.request.template_digest,
            wordings.digest,
            f"give the template with --template ({old.template.sources[-1]})",
        ),
    }
    for what, (then, now, remedy) in compared.items():
        if then != now:
            raise KbprobeError(
                f"{path} was built with another {what} ({then[:12]}; here {now[:12]}): {remedy}"
            )
    if kbprobe_version() != old.kbprobe_version:
        echo(
            f"{PROGRAM}: built by kbprobe {old.kbprobe_version}, this is {kbprobe_version()}",
            err=True,
        )
    with ExitStack() as held:
        if output is None:
            folder = held.enter_context(scratch_folder()) / "probe"
        else:
            folder = output
            if request.is_in(folder, held.enter_context(taking(folder, overwrite))):
                echo(f"{folder} already holds exactly this.", err=as_json)
                return
        built = build(request, held.enter_context(shown_phase()))
        new = write(built, folder)
    if as_json:
        _report(new, built, folder, as_json)
    differences = same_rows(old, new)
    if any(not difference.endswith("now)") for difference in differences):
        raise KbprobeError("the rebuilt probe differs: " + "; ".join(differences))
    if not as_json:
        rows = new["counts"]["rows"]
        echo("\n".join([*differences, f"Rebuilt: {rows:,} rows, the same."]))


def clean(folder: Path, as_json: bool) -> None:
    """Remove what interrupted commands left in and below an output folder, and report it.

    Raises:
        UsageError: there is no such folder.
    """
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder: give one with --clean DIR")
    removed = []
    for parent, _, _ in os.walk(folder):
        removed += sweep(Path(parent))
    if as_json:
        echo(json.dumps({"folder": str(folder), "removed": [str(path) for path in removed]}))
        return
    for path in removed:
        echo(f"{path}: removed")
    if not removed:
        echo(f"Nothing was left in {folder} by interrupted commands.")
