"""Documents: one renderer each for pages, Markdown and terminals; escaped, and legible."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from evaluation.report import cells
from evaluation.report.figures import SHADES, diverging_rules, luminance
from evaluation.report.html import render_page
from evaluation.report.markdown import render_markdown
from evaluation.report.matrices import INDEX, arrange, points_scale
from evaluation.report.terminal import print_document
from evaluation.results.types import Estimate
from kbprobe.document import (
    Across,
    Bar,
    Basis,
    Caveats,
    Cell,
    Chart,
    Choice,
    Conclusion,
    Document,
    Dot,
    Dots,
    Findings,
    Fold,
    Heading,
    HeatMap,
    Level,
    Line,
    Number,
    Panel,
    Part,
    Picture,
    Question,
    Section,
    Table,
    Text,
    Tiles,
)
from tests.evaluation.test_curve_page import HOSTILE, read


def estimate(value: float) -> Estimate:
    return Estimate(value=value, low=value - 0.1, high=value + 0.1, n=100, method="wilson")


def heat_of(name: str) -> HeatMap:
    numbers: list[list[Number | None]] = [[estimate(0.5), None], [0.25, estimate(0.8)]]
    marked = frozenset({(0, 0), (1, 1)})
    return HeatMap(
        name,
        name,
        [name, "y"],
        ["x", name],
        numbers,
        marked=marked,
        groups=[(name, 2)],
        lines={(1, 0): ("n 9",)},
        faint=frozenset({(1, 0)}),
        chance=(0.2, 0.5),
        foot=1,
        links={(0, 0): "s1"},
    )


def question_of(name: str) -> Question:
    choices = [
        Choice("A", name, True, False, 0.4, "−1.0"),
        Choice("B", name, False, True, 0.6, "0"),
    ]
    return Question(name, name, choices, False, True, name, 3, [Basis(name, name, name)])


def document_of(name: str) -> Document:
    """Return a document with every kind of part, all of which have this name in them."""
    line = Line(name, [0, 1, 2], [estimate(0.5), estimate(0.6), 0.7])
    table = Table.of(
        [estimate(0.3)],
        {name: lambda _: Cell(name, "", (name,)), "share": cells.share, "none": lambda _: "–"},
        name,
    )
    parts: list[Part | None] = [
        Tiles({name: Cell("1", name)}),
        Text("**bold** and `code`"),
        Heading(name),
        Findings([name]),
        Caveats([name]),
        table,
        Table(("folded",), [("within",)], fold="Unfold"),
        heat_of(name),
        Chart(name, [Panel([line], [Level(name, 0.2)], name)], Across(name), note=name),
        Dots(name, [Dot(name, estimate(0.4))], [Level(name, 0.2)], parts=name),
        Conclusion(name, name, "success"),
        Table((name, "bars", ""), [(name, estimate(0.9), Bar(estimate(0.9), 0.5))], name),
        Fold(name, [Picture(name, 2.0, lambda figure: figure.subplots()), question_of(name), None]),
        Fold("empty", [None]),
        Findings([]),
        None,
    ]
    sections = [Section(name, parts), Section("second", [])]
    return Document(name, name, sections, ["**Read** it."])


def test_a_heat_map_holds_its_numbers_and_intervals() -> None:
    (_, first), (_, second) = arrange(heat_of("x")).rows
    # 0.5 where guessing gives 0.2, and 0.8 where it gives 0.5: the second is further above chance.
    assert first == [(Cell("50.0%", "40.0% to 60.0%"), "d14 marked"), None]
    assert second == [
        (Cell("25.0%", lines=("n 9",)), "few"),
        (Cell("80.0%", "70.0% to 90.0%"), "d16 marked"),
    ]


def test_colours_are_of_what_is_above_chance() -> None:
    heat = HeatMap(
        "", "", ["a"], ["two", "five", "below"], [[0.5, 0.2, 0.1]], chance=(0.5, 0.2, 0.5)
    )
    shades = arrange(heat).rows[0][1]
    assert [cell and cell[1] for cell in shades] == ["d10", "d10", "d2"]
    raw = arrange(replace(heat, chance=())).rows[0][1]
    assert [cell and cell[1] for cell in raw] == ["s10", "s4", "s2"], "shares, not accuracies"


def test_pairs_are_given_in_one_order_or_the_other() -> None:
    heat = HeatMap.of_pairs("", "", ["a", "b"], {("b", "a"): 0.5})
    assert heat.cells == [[None, 0.5], [0.5, None]]


def test_a_page_has_every_part_and_names_are_escaped() -> None:
    page = render_page(document_of(HOSTILE), "x.json")
    reader = read(page)
    assert reader.tags["script"] == 0
    assert reader.tags["svg"] == reader.tags["figure"] == 3
    assert reader.tags["details"] == 2
    assert reader.tags["tfoot"] == reader.tags["article"] == 1
    assert '<a href="#s1"><b>50.0%</b>' in page
    assert "--at: 90.00%; --low: 80.00%; --high: 100.00%; --level: 50.00%" in page
    assert max(reader.ids.values()) == 1
    assert all(link[1:] in reader.ids for link in reader.links)
    for text in ("20.0% to 40.0%", "<b>bold</b> and <code>code</code>", "<b>Read</b> it."):
        assert text in page
    assert "Generated from x.json alone." in page


def test_markdown_has_every_part_but_figures_and_names_are_escaped() -> None:
    text = render_markdown(document_of(HOSTILE))
    assert "<script" not in text
    for shown in ("30.0% (20.0% to 40.0%)", "### Unfold", "| within |", "**Read** it.", "80.0%"):
        assert shown in text
    assert "(60.0%, 0) ▸ model’s choice" in text
    assert "90.0% (80.0% to 100.0%) |\n" in text, "nothing for the bar"


def test_a_terminal_leaves_out_what_unfolds(capsys: pytest.CaptureFixture[str]) -> None:
    print_document(document_of("name"))
    shown = capsys.readouterr().out
    assert "30.0% (20.0% to 40.0%)" in shown
    assert "80.0% (70.0% to 90.0%)" in shown
    assert shown.startswith("\nname\n  bold and code"), "the title of the section comes first"
    assert "within" not in shown
    assert "second" not in shown, "a section without parts says nothing"


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
    assert all(f".{INDEX.palette}{step} {{" in rules for step in range(SHADES + 1))
