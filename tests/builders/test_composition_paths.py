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
        (GOOD.replace("actor, spouse", "actor"), r"path 'mine': hops: "),
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
