"""Tables on terminals of any width: no name is dropped, no number cut."""

import re
from io import StringIO

import pytest
from rich import box
from rich.console import Console

from evaluation.results.console import broken, print_rows

HEADS = ("probe", "model", "rows", "accuracy", "chance", "strict", "difference", "ties", "rows/s")
ROWS = [
    (
        "wordnet_hypernymy-no_language (validation)",
        "FacebookAI/roberta-large-mnli-tuned",
        "199 of 33,308",
        "53.0 [46.0, 60.0]",
        "50.0",
        "16.0 [8.3, 28.5]",
        "-37.0",
        "1,204",
        "2,327.3",
    ),
    (
        "age_comparison (test)",
        "gpt2",
        "1,000",
        "98.0 [96.0, 99.1]",
        "50.0",
        "-",
        "-",
        "0",
        "cached",
    ),
]


def printed(width, heads=HEADS, rows=ROWS, names=2):
    console = Console(width=width, file=StringIO(), force_terminal=True, color_system=None)
    print_rows(heads, rows, names=names, console=console, lines=box.SIMPLE_HEAD)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [20, 40, 60, 80, 100, 112, 120, 160, 400])
def test_every_name_and_number_is_there_whole(width):
    text = printed(width)
    joined = re.sub(r"[\s─]+", "", text)
    for row in ROWS:
        for number in row[2:]:
            assert number in text
        # Names may be broken: their pieces are all there.
        for name in row[:2]:
            for piece in re.findall(r"[^\s_/.()-]+", name):
                assert piece in text or piece in joined
    assert "…" not in text


@pytest.mark.parametrize("width", [80, 112, 120])
def test_tables_stay_within_the_terminal(width):
    assert max(map(len, printed(width).splitlines())) <= width


def test_a_narrow_terminal_gets_lists():
    lines = [line.rstrip() for line in printed(60).splitlines()]
    assert (
        lines[0]
        == "wordnet_hypernymy-no_language (validation), FacebookAI/roberta-large-mnli-tuned"
    )
    assert lines[1:3] == ["  rows        199 of 33,308", "  accuracy    53.0 [46.0, 60.0]"]


def test_output_that_is_captured_has_all_the_width_it_needs(capsys):
    names = tuple("x" * 90 + str(n) for n in range(2))
    print_rows(HEADS, [(*names, *ROWS[0][2:])] * 2)
    lines = capsys.readouterr().out.splitlines()
    assert sum(names[0] in line and names[1] in line for line in lines) == 2


@pytest.mark.parametrize("width", [1, 5, 12, 30])
@pytest.mark.parametrize("name", ["a_b/c-d.e f", "x" * 50, "", "checkpoint-100", "naïve–größer"])
def test_broken_names_keep_every_character(name, width):
    lines = broken(name, width).split("\n")
    assert all(len(line) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == name.replace(" ", "")
