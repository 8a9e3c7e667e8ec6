"""Train on a few rows; measure gains here and losses elsewhere.

Listed under: Commands to train models.

Trains a multiple-choice model on a few rows of a probe, and measures what accuracy it gains there
and loses on its original task.
"""

from evaluation.options import TRAINING
from evaluation.studies.base import Study
from evaluation.studies.inoculate.axes import InoculateOptions, expand, follow
from evaluation.studies.inoculate.tables import summarise

INOCULATE = Study(
    name=__name__,
    help=__doc__,
    expand=expand,
    follow=follow,
    summarise=summarise,
    options=InoculateOptions,
    fixed=TRAINING
    | {
        *("split", "fold", "config", "facts", "scorer", "inputs", "random_weights"),
        *("learning_rate", "epochs"),
    },
)
"""The study."""
