"""What pages of studies share: heat maps, links, tables; escaped, and legible in both schemes."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed")

from evaluation.report.figures import diverging_rules, luminance
from evaluation.report.matrices import INDEX, SHARES, Matrix, make_matrix, points_scale
from evaluation.report.templates import environment
from evaluation.results.types import Estimate
from tests.evaluation.test_curve_page import HOSTILE, read

PAGE = """{% extends "base.html.j2" %}
{% from "study.html.j2" import contents, heat, tile with context %}
{% block style %}{% include "matrix.css.j2" %}{% endblock %}
{% block main %}
{{ contents([("a", name), ("b", "B")]) }}
<dl class="tiles">{{ tile(name, "5", name) }}</dl>
{{ heat(matrix) }}
{% endblock %}"""


def estimate(value: float) -> Estimate:
    return Estimate(value=value, low=value - 0.1, high=value + 0.1, n=100, method="wilson")


def matrix_of(name: str) -> Matrix:
    cells: list[list[Estimate | float | None]] = [[estimate(0.5), None], [0.25, estimate(0.8)]]
    return make_matrix(
        name, name, [name, "y"], ["x", name], cells, SHARES, lambda row, column: row == column
    )


def test_a_heat_map_holds_its_numbers_and_intervals() -> None:
    matrix = matrix_of("x")
    (_, first), (_, second) = matrix.rows
    assert first == [("50.0%", "40.0% to 60.0%", "s10", True), None]
    assert second == [("25.0%", "", "s5", False), ("80.0%", "70.0% to 90.0%", "s16", True)]


def test_names_are_escaped() -> None:
    template = environment().from_string(PAGE)
    page = template.render(name=HOSTILE, matrix=matrix_of(HOSTILE))
    reader = read(page)
    assert reader.tags["script"] == 0
    assert reader.tags["td"] == 4
    assert "40.0% to 60.0%" in page


def test_differences_are_shaded_by_sign_and_size() -> None:
    scale = points_scale([-3.0, 22.0])
    assert (scale.low, scale.high) == (-22.0, 22.0)
    assert [scale.shade(value) for value in (-22.0, 0.0, 22.0)] == ["d0", "d10", "d20"]
    assert points_scale([0.4]).high == 10.0, "noise about 0 stays pale"
    assert (INDEX.shade(-1.0), INDEX.shade(1.0), INDEX.spell(-0.25)) == ("d0", "d20", "−0.25")


def test_type_is_legible_on_all_shades_and_signs_are_told_apart() -> None:
    rule = r"\.d(\d+) \{ background: light-dark\((\S+), (\S+)\); color: light-dark\((\S+), (\S+)\)"
    rules = re.findall(rule, diverging_rules())
    assert len(rules) == 20
    for _, *colours in rules:
        for ground, ink in zip(colours[:2], colours[2:], strict=True):
            light, dark = sorted((luminance(ground), luminance(ink)), reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 4.5
    assert len({tuple(colours[:2]) for _, *colours in rules}) == 20


def test_all_classes_of_a_ramp_have_a_rule() -> None:
    rules = str(diverging_rules())
    assert all(f".{name} {{" in rules for name in INDEX.ramp)
