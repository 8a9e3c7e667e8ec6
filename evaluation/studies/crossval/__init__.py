"""Cross-validation of labels: each fold of a probe is scored by learners fitted on the others.

The probes, and the table of accuracies, are those of Kim et al. (2019), Table 2.
"""

from evaluation.studies.base import Study
from evaluation.studies.crossval.document import document
from evaluation.studies.crossval.record import FIXED, CrossvalOptions, expand, summarise

CROSSVAL = Study(
    name="crossval",
    help="Cross-validation: fit label classifiers on all folds of a probe but one, evaluate them "
    "on that fold, and compare with the majority label and randomly initialised encoders.",
    expand=expand,
    summarise=summarise,
    document=document,
    options=CrossvalOptions,
    fixed=FIXED,
    modelless=True,
)
"""The study."""
