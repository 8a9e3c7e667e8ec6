"""Merging cards: what others wrote is kept, what was generated is replaced."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbprobe.errors import UsageError
from release.cards import join_card, parse_header, sections, split_header
from release.hub.repo_card import (
    ABSENT,
    hub_front,
    marked,
    merge,
    merge_card,
    unmarked,
)

FRONT: dict[str, Any] = {
    "license": "other",
    "tags": ["probing", "kbprobe"],
    "configs": [
        {
            "config_name": "default",
            "default": True,
            "data_files": [{"split": "test", "path": "data/test.parquet"}],
        }
    ],
}
TEXT = """# a probe

What it is.

## A row

```sh
## no heading
```

## Counts

300 rows.
"""
FIRST = merge_card("default", FRONT, TEXT, None, {}).text

trees = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["a", "b", "c"]),
    lambda inner: (
        st.dictionaries(st.sampled_from("xyz"), inner, max_size=3)
        | st.lists(st.sampled_from(["a", "b", "c"]), unique=True, max_size=3)
    ),
    max_leaves=8,
)


@given(trees, trees)
def test_what_one_side_alone_changed_is_taken(base: Any, changed: Any) -> None:
    assert merge(base, base, changed) == merge(base, changed, base) == changed


@given(trees, trees, trees)
def test_merging_again_changes_nothing(base: Any, ours: Any, theirs: Any) -> None:
    merged = merge(base, ours, theirs)
    if merged is not ABSENT:
        assert merge(ours, ours, merged) == merged


def test_lists_are_merged_by_entry() -> None:
    assert merge(["a", "b"], ["a", "c"], ["mine", "b", "a"]) == ["mine", "a", "c"]
    base = [{"name": "x", "n": 1}, {"name": "gone", "n": 1}]
    ours = [{"name": "x", "n": 2}, {"name": "new", "n": 1}]
    theirs = [{"name": "theirs"}, {"name": "x", "n": 1, "by hand": True}, {"name": "gone", "n": 1}]
    assert merge(base, ours, theirs) == [
        {"name": "theirs"},
        {"name": "x", "n": 2, "by hand": True},
        {"name": "new", "n": 1},
    ]


def test_where_both_changed_a_value_the_new_one_is_taken() -> None:
    theirs = {"license": "mit", "pretty_name": "Mine"}
    assert merge({"license": "other"}, {"license": "cc0-1.0"}, theirs) == {
        "license": "cc0-1.0",
        "pretty_name": "Mine",
    }


# Cards.


def test_a_first_card_has_marks_around_all_its_text() -> None:
    header, rest = split_header(FIRST)
    assert parse_header(header) == FRONT
    assert rest == "\n" + marked("default", TEXT)
    assert unmarked(rest).strip() == TEXT.strip()


def test_the_same_card_again_is_the_same_text() -> None:
    again = merge_card("default", FRONT, TEXT, FIRST, FRONT)
    assert again.text == FIRST
    assert again.kept == ()


def test_code_that_looks_like_a_heading_is_none() -> None:
    assert list(sections(TEXT)) == ["", "A row", "Counts"]


BY_HAND = (
    FIRST.replace("tags:", "# why these\npretty_name:   'Mine'  # mine\ntags:")
    .replace("- kbprobe\n", "- kbprobe\n- my-tag\n")
    .replace("<!-- kbprobe:begin", "A word before.\n\n<!-- kbprobe:begin", 1)
    + "\n## Mine\n\nKeep   this.\n"
)


def test_what_was_written_by_hand_is_kept() -> None:
    new = TEXT.replace("300", "400")
    front = {**FRONT, "tags": ["probing", "kbprobe", "new"], "size_categories": ["n<1K"]}
    merged = merge_card("default", front, new, BY_HAND, FRONT)
    assert merged.text.startswith(BY_HAND[: BY_HAND.index("tags:")])
    for kept in ("# why these\npretty_name:   'Mine'  # mine\n", "A word before.\n\n<!--"):
        assert kept in merged.text
    assert merged.text.endswith("<!-- kbprobe:end default -->\n\n## Mine\n\nKeep   this.\n")
    assert "400 rows." in merged.text
    assert "300 rows." not in merged.text
    assert hub_front(merged.text) == {
        **front,
        "tags": ["probing", "kbprobe", "new", "my-tag"],
        "pretty_name": "Mine",
    }
    assert merged.kept == ("tags",)
    again = merge_card("default", front, new, merged.text, front)
    assert again.text == merged.text


def test_nothing_new_leaves_the_card_as_it_is_to_the_byte() -> None:
    for hub in (BY_HAND, BY_HAND + "\n\n"):
        assert merge_card("default", FRONT, TEXT, hub, FRONT).text == hub


def test_text_between_the_marks_is_replaced() -> None:
    hub = FIRST.replace("300 rows.", "300 rows, I say.")
    new = TEXT.replace("300", "400")
    assert merge_card("default", FRONT, new, hub, FRONT).text == FIRST.replace("300", "400")


def test_a_card_of_somebody_elses_is_kept_above_ours() -> None:
    hub = "---\nlicense: other\nviewer: false\n---\n# My page\n\n## Counts\n\nMine.\n"
    merged = merge_card("default", FRONT, TEXT, hub, {})
    assert "viewer: false\n" in merged.text
    assert "# My page\n\n## Counts\n\nMine.\n\n<!-- kbprobe:begin default" in merged.text


def test_several_probes_have_a_part_each() -> None:
    other = {"license": "other", "configs": [{"config_name": "b", "data_files": []}]}
    both = merge_card("b", other, "# b\n\n## Counts\n\n7 rows.\n", FIRST, {}).text
    assert both.count("kbprobe:begin") == 2
    assert "300 rows." in both
    names = [one["config_name"] for one in hub_front(both)["configs"]]
    assert names == ["default", "b"]
    newer = merge_card("default", FRONT, TEXT.replace("300", "400"), both, FRONT).text
    assert "7 rows." in newer
    assert "400 rows." in newer


def test_front_matter_that_is_no_yaml_is_not_overwritten() -> None:
    with pytest.raises(UsageError, match=r"not YAML.*Correct the lines"):
        merge_card("default", FRONT, TEXT, "---\na: [\n---\n# x\n", {})
    with pytest.raises(UsageError, match="not a mapping"):
        merge_card("default", FRONT, TEXT, "---\n- a\n---\n# x\n", {})


def test_windows_line_ends_are_read() -> None:
    hub = FIRST.replace("\n", "\r\n")
    assert merge_card("default", FRONT, TEXT, hub, FRONT).text == FIRST


def test_entries_keep_their_spelling() -> None:
    text = "# head\na: 'x'   # why\nb:\n  - 1\n\n# of c\nc: {d: e}\n"
    front = {**parse_header(text), "b": [1, 2]}
    expected = "# head\na: 'x'   # why\nb:\n- 1\n- 2\n# of c\nc: {d: e}\n"
    assert join_card(front, "", text) == f"---\n{expected}---\n"
