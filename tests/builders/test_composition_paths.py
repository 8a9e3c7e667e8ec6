"""Files of paths: what replaces what, and how faults are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.compositions.paths import load_paths
from kbprobe.errors import UsageError


def test_a_files_path_replaces_the_built_in_one_of_its_name(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(
        "paths:\n  - id: band-start\n    hops: [band, band-formed]\n"
        '    questions: {en: ["How old is the band of {{ entity }}?"]}\n',
        encoding="utf-8",
    )
    paths = load_paths(str(file))
    assert [one.text for one in paths.paths["band-start"].questions["en"]] == [
        "How old is the band of {{ entity }}?"
    ]
    assert len(paths.paths) == len(load_paths().paths)
    assert paths.template().digest != load_paths().template().digest


GOOD = """
paths:
  - id: mine
    hops: [actor, spouse]
    questions: {en: ["Who is married to one in {{ entity }}?"]}
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the file is empty"),
        ("paths: []", "declares neither"),
        ("[1, 2", "not valid YAML"),
        ("just words", "must be names with values"),
        ("paths: 3", "expected a text, not '3'"),
        ("paths: &a [*a]", "not valid YAML|aliases"),
        ("paths: &a [x]\nhops: *a", "aliases"),
        ("paths: " + "[" * 40 + "]" * 40, "nested too deep"),
        ("paths: !!python/object:os.system {}", "."),
        ("paths: []\npaths: []", "the key 'paths' is given twice"),
        ("? [a]\n: b", "a key must be a word"),
        (GOOD.replace("id: mine", "id: Mine Own"), r"path 'Mine Own': id: "),
        (GOOD.replace("id: mine", "id: fact-mine"), r"path 'fact-mine': id: names that begin"),
        (GOOD.replace("actor, spouse", ""), r"path 'mine': hops: "),
        (GOOD.replace("    questions:", "#"), r"path 'mine': .*several hops needs its own"),
        (GOOD.replace("actor, spouse", "headquarters"), "begins no path"),
        (GOOD.replace("actor, spouse", "actor, spoise"), r"hops\[1\]: .*Did you mean 'spouse'"),
        (GOOD.replace("actor, spouse", "actor, actor"), "one is given twice"),
        (GOOD.replace("actor, spouse", "spouse, headquarters"), "."),
        (GOOD.replace("actor, spouse", "headquarters, founded"), "begins no path"),
        (GOOD.replace("actor, spouse", "band-formed, spouse"), "leads to a year"),
        (GOOD.replace("{{ entity }}", "it"), r"path 'mine': questions.en.0: .*does not show"),
        (GOOD.replace("entity", "film"), r"path 'mine': questions.en.0: unknown field 'film'"),
        (GOOD.replace("{{ entity }}", "{{ entity.x() }}"), r"path 'mine': questions.en.0: "),
        (
            GOOD.replace("{{ entity }}", "{{ entity"),
            "not valid Jinja",
        ),
        (GOOD.replace("{en:", "{de:"), "path 'mine': questions: none in the language 'en'"),
        (GOOD.replace("{en:", "{English:"), "path 'mine': questions"),
        (GOOD.replace("hops:", "hop:"), "path 'mine': hop: "),
        (GOOD + GOOD.replace("paths:\n", ""), "path 'mine' is given twice"),
        ("hops:\n  - {id: x, edges: [P1 | P2], choices: same_kind}", "hop 'x': edges.0: "),
        ("hops:\n  - {id: x, edges: [], choices: same_kind}", "hop 'x': edges: "),
        ("hops:\n  - {id: x, edges: [P1], choices: near}", "hop 'x': choices: "),
        (
            "hops:\n  - {id: x, edges: [P1], choices: near_years, "
            'questions: {en: ["{{ entity }}"]}}',
            "hop 'x': the rule near_years goes with",
        ),
    ],
)
def test_faulty_files_are_refused_by_name_and_place(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(text, encoding="utf-8")
    if "spouse, headquarters" in text:  # sound as a declaration; nothing is there to be found
        assert load_paths(str(file)).paths["mine"].hops == ("spouse", "headquarters")
        return
    with pytest.raises(UsageError, match=said) as caught:
        load_paths(str(file))
    assert str(caught.value).startswith(str(file))
    assert len(str(caught.value)) < 2000


@pytest.mark.parametrize("content", [b"\xff\xfe", b"paths: \x00", b"x" * 300_000])
def test_files_that_are_no_text_are_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "mine.yaml"
    file.write_bytes(content)
    with pytest.raises(UsageError, match=r"mine\.yaml"):
        load_paths(str(file))
    with pytest.raises(UsageError, match="cannot be read"):
        load_paths(str(tmp_path / "none.yaml"))


def test_a_path_of_one_hop_takes_the_questions_of_its_hop(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("paths:\n  - {id: mine, hops: [actor]}\n", encoding="utf-8")
    paths = load_paths(str(file), ("mine",))
    assert paths.paths["mine"].questions == paths.hops["actor"].questions
    assert paths.asked == {"mine"}
    assert len(load_paths(str(file), ("mine", "film-actor-spouse")).asked) == 4


def test_properties_by_number_are_asked_for_by_their_names() -> None:
    paths = load_paths("P36:capital, P37:official languages,^P36:capital")
    assert list(paths.paths) == ["p36-capital", "p37-official-languages", "p36-of-capital"]
    texts = [wording.text for wording in paths.template().questions]
    assert texts == [
        "What is the capital of {{ the }}{{ entity }}?",
        "The capital of {{ the }}{{ entity }} is",
        "Which of these is a capital of {{ the }}{{ entity }}?",
        "One capital of {{ the }}{{ entity }} is",
        "What is the official language of {{ the }}{{ entity }}?",
        "The official language of {{ the }}{{ entity }} is",
        "Which of these is an official language of {{ the }}{{ entity }}?",
        "One official language of {{ the }}{{ entity }} is",
        "{{ entity }} is the capital of which of these?",
        "{{ entity }} is the capital of",
        "{{ entity }} is the capital of which of these?",
        "{{ entity }} is the capital of",
    ]
    assert list(load_paths("P36:capital", ("band-start",)).paths) == ["band-start"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("P36", r"^--paths: 'P36' is no property with a name.* such as P36:capital"),
        ("P36:", "'P36:' is no property"),
        ("P36: ", "'P36:' is no property"),
        ("Q36:capital", "'Q36:capital' is no property"),
        ("p36:capital", "'p36:capital' is no property"),
        ("P0:capital", "'P0:capital' is no property"),
        ("P36:{{ entity }}", "is no property"),
        ("P36:capital,", "'' is no property"),
        ("P36:capital,currency", "'currency' is no property"),
        ("P19/P17:country of birth", "longer paths are declared in a file"),
        ("P36:capital,P36:seat", "P36 is given twice"),
        ("x.yaml", r"^x\.yaml: cannot be read: .*such as P36:capital"),
        ("P36.yaml", r"^P36\.yaml: cannot be read"),
    ],
)
def test_properties_without_number_or_name_are_refused(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        load_paths(text)


def test_names_of_properties_are_english() -> None:
    with pytest.raises(UsageError, match=r"--paths: path 'p36-capital': .* 'de' .*--language"):
        load_paths("P36:capital", language="de")
