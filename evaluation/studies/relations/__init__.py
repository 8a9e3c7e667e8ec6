"""Measure whether a model tells six semantic relations apart.

Listed under: Commands to evaluate.

Takes the words that the rows of WordNet probes relate to others, asks for each relation of a word
in turn, and offers what is related to it in the others (after Cao, Yamada, Teufel and Tokunaga,
Language Resources and Evaluation, 2025): soundness, completeness, symmetry, asymmetry and
distinguishability; with people's answers, prototypicality.
"""

from evaluation.studies.base import Study
from evaluation.studies.own_questions import FIXED
from evaluation.studies.relations.questions import RelationsOptions, expand
from evaluation.studies.relations.tables import summarise

RELATIONS = Study(
    name=__name__,
    help=__doc__,
    expand=expand,
    summarise=summarise,
    options=RelationsOptions,
    fixed=FIXED,
)
"""The study."""
