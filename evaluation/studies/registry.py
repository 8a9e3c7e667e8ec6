"""The registered studies."""

from __future__ import annotations

from evaluation.registry import Registry
from evaluation.studies.base import Study

STUDIES = Registry[Study](
    "study",
    "kbprobe.studies",
    Study,
    {
        "zero_shot": "evaluation.studies.zero_shot:ZERO_SHOT",
        "compare": "evaluation.studies.compare:COMPARE",
        "controls": "evaluation.studies.controls:CONTROLS",
        "facts": "evaluation.studies.facts:FACTS",
        "curve": "evaluation.studies.curve:CURVE",
        "medals": "evaluation.studies.medals:MEDALS",
        "inoculate": "evaluation.studies.inoculate:INOCULATE",
        "overlap": "evaluation.studies.overlap:OVERLAP",
        "items": "evaluation.studies.items:ITEMS",
        "power": "evaluation.studies.power:POWER",
        "crossval": "evaluation.studies.crossval:CROSSVAL",
        "baselines": "evaluation.studies.baselines:BASELINES",
        "transfer": "evaluation.studies.transfer:TRANSFER",
        "orders": "evaluation.studies.orders:ORDERS",
        "prompts": "evaluation.studies.prompts:PROMPTS",
        "revisions": "evaluation.studies.revisions:REVISIONS",
    },
)
