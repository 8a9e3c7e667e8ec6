"""The registered studies."""

from __future__ import annotations

from evaluation.registry import Registry
from evaluation.studies.base import Study

STUDIES = Registry[Study](
    "study",
    "kbprobe.studies",
    Study,
    [
        "evaluation.studies.zero_shot:ZERO_SHOT",
        "evaluation.studies.compare.study:COMPARE",
        "evaluation.studies.controls:CONTROLS",
        "evaluation.studies.facts:FACTS",
        "evaluation.studies.curve:CURVE",
        "evaluation.studies.medals:MEDALS",
        "evaluation.studies.inoculate:INOCULATE",
        "evaluation.studies.overlap:OVERLAP",
        "evaluation.studies.items:ITEMS",
        "evaluation.studies.power:POWER",
        "evaluation.studies.crossval:CROSSVAL",
        "evaluation.studies.baselines:BASELINES",
        "evaluation.studies.transfer:TRANSFER",
        "evaluation.studies.orders:ORDERS",
        "evaluation.studies.prompts:PROMPTS",
        "evaluation.studies.revisions:REVISIONS",
    ],
)
