"""Measure accuracy by the number of training rows; award medals.

Listed under: Commands to train models.

Compares with zero-shot accuracy, baselines and controls. Without --model, the curves in folders
that this command wrote are joined.
"""

from evaluation.options import TRAINING
from evaluation.studies.base import Study
from evaluation.studies.curve.axes import CurveOptions, expand
from evaluation.studies.curve.numbers import collect, read_curves, summarise

CURVE = Study(
    name=__name__,
    help=__doc__,
    expand=expand,
    summarise=summarise,
    collect=collect,
    read=read_curves,
    options=CurveOptions,
    fixed=TRAINING - {"train_on", "mix_in", "mix_rows"}
    | {*("config", "fold", "facts", "scorer", "random_weights", "next_size")},
)
"""The study."""
