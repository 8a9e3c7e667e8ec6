"""Learning curves: accuracy by training size, with controls, baselines and code length."""

from evaluation.studies.base import Study
from evaluation.studies.curve.axes import FIXED, CurveOptions, expand
from evaluation.studies.curve.document import document
from evaluation.studies.curve.numbers import summarise

CURVE = Study(
    name="curve",
    help="Learning curves: accuracy after training on more and more rows, compared with zero-shot "
    "accuracy, baselines and controls.",
    expand=expand,
    summarise=summarise,
    document=document,
    options=CurveOptions,
    fixed=FIXED,
)
"""The study."""
