"""What the numbers say, in sentences."""

from __future__ import annotations

from evaluation.results.types import Estimate
from evaluation.results.words import percent, points
from evaluation.studies.inoculate.types import Inoculated, ModelInoculation


def sentences(one: ModelInoculation, probe: Inoculated) -> list[str]:
    """Describe what training on a probe changed: in words, for the best number of rows."""
    best = probe.at_best
    said = [
        f"Before: {percent(probe.test_before.value)} of the test questions right "
        f"(chance {percent(probe.chance)}). After {best.size:,} rows: {percent(best.test.value)}, "
        f"a difference of {_difference(best.gain)} points.",
        f"Cost on the original task: {_difference(best.cost)} points, from "
        f"{percent(one.original_before.value)} to {percent(best.original.value)}"
        + ("." if best.cost.low > 0 or best.cost.high < 0 else "; its interval includes zero."),
        _verdict(probe),
    ]
    if probe.strict_before is not None and best.strict is not None:
        said.append(
            f"Clusters with every question answered correctly: "
            f"{percent(probe.strict_before.value)} before, "
            f"{percent(best.strict.value)} after."
        )
    return said


def _verdict(probe: Inoculated) -> str:
    """Read the outcome as Liu et al. 2019 do: what a gain at little cost says, or none."""
    best = probe.at_best
    if best.gain.low <= 0:
        return (
            "No gain can be detected: the model lacks the knowledge that the probe asks for and "
            "cannot learn it from so few rows, or none of the settings is suitable."
        )
    if best.cost.value >= best.gain.value:
        return (
            "The gain is no larger than the cost: the model has forgotten the original task rather "
            "than adapted to the probe."
        )
    return (
        "The gain is larger than the cost: at least this part of what the model got wrong "
        f"before training can be learnt from {best.size:,} rows. Compare it with what models "
        "without pre-training learn from as many rows (evaluate-probe baselines)."
    )


def _difference(estimate: Estimate) -> str:
    return f"{points(estimate.value)} ({points(estimate.low)} to {points(estimate.high)})"
