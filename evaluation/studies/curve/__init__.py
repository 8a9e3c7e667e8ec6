"""Measure accuracy by the number of training rows; award medals.

Listed under: Commands to train models.
"""

from evaluation.options import TRAINING
from evaluation.studies.base import Study
from evaluation.studies.curve.axes import CurveOptions, expand
from evaluation.studies.curve.document import document
from evaluation.studies.curve.numbers import collect, summarise
from evaluation.studies.curve.record import read_curves

CURVE = Study(
    name="curve",
    help="Learning curves: accuracy after training on more and more rows, compared with zero-shot "
    "accuracy, baselines and controls; and medals, which say which models know which probes. "
    "Without --model, the curves in folders that this command wrote are joined.",
    expand=expand,
    summarise=summarise,
    collect=collect,
    read=lambda folder: (folder, read_curves(folder)),
    document=document,
    options=CurveOptions,
    fixed=TRAINING - {"train_on", "mix_in", "mix_rows"}
    | {*("config", "fold", "facts", "scorer", "random_weights", "next_size")},
)
"""The study."""
