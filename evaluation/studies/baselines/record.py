"""Recording the figures in a built probe: ``baselines.json`` in its folder, a table in its card."""

from __future__ import annotations

from pathlib import Path

from evaluation.studies.base import StudyRequest
from evaluation.studies.baselines.types import BaselinesSummary, Measurement
from kbprobe.cli import kbprobe_version
from kbprobe.errors import UsageError
from kbprobe.format.baselines import (
    BaselineFigure,
    BaselineFigures,
    record_baselines,
    rows_digests,
)
from kbprobe.format.manifest import read_manifest
from kbprobe.format.setups import DEFAULT_CONFIG
from kbprobe.options import option_name

_TRAIN = "train"


def check_recordable(request: StudyRequest) -> None:
    """Refuse to record, before anything is run, what would not stand for a whole probe.

    Raises:
        UsageError: a probe is not the folder of a built one; or a part of it is evaluated.
    """
    if not request.options.record:
        return
    run = request.defaults.run
    if run.limit is not None:
        raise UsageError("--record is for all rows of a probe: leave --limit out")
    if run.config not in (None, DEFAULT_CONFIG):
        raise UsageError("--record is for a probe's default config: leave --config out")
    for probe in request.probes:
        if not isinstance(probe, str) or not Path(probe).is_dir():
            raise UsageError(
                f"--record writes into the folder of a built probe, but {probe} is not one: leave "
                f"{option_name('record')} out, or build one with: build-probe NAME -o DIR"
            )
        read_manifest(Path(probe))


def record(request: StudyRequest, summary: BaselinesSummary) -> None:
    """Write the figures into the probes, where the request asks for it.

    Raises:
        UsageError: a card cannot be read.
        KbprobeError: a data file is damaged, or a file cannot be written.
    """
    if not request.options.record:
        return
    for probe, one in zip(request.probes, summary.probes, strict=True):
        folder = Path(str(probe))
        record_baselines(folder, _figures(folder, one))


def _figures(folder: Path, one: Measurement) -> BaselineFigures:
    trained = any(held.train_rows is not None for held in one.baselines)
    splits = [one.split, *([_TRAIN] if trained else [])]
    return BaselineFigures(
        probe=one.probe,
        split=one.split,
        rows=one.rows,
        chance=one.chance,
        rows_sha256=rows_digests(read_manifest(folder), splits),
        kbprobe_version=kbprobe_version(),
        figures=[
            BaselineFigure(
                name=held.name,
                reads=held.reads,
                train_rows=held.train_rows,
                draws=len(held.draws),
                accuracy=held.accuracy.value,
                low=held.accuracy.low,
                high=held.accuracy.high,
            )
            for held in one.baselines
        ],
    )
