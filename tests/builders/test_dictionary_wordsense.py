"""dictionary_wordsense: true golds, false distractors, splits apart, the balance, odd options."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from builders.dictionary.probes import (
    alike_pairs,
    clauses,
    dictionary_wordsense,
    sense_names,
    shown_definition,
)
from builders.engine.pipeline import Built, build, write
from builders.engine.probe import find_probe
from builders.engine.request import Request
from builders.english.kin import holds_kin, shares_a_word
from kb_cache.gcide.kind import GCIDE
from kb_cache.gcide.load import load_gcide
from kb_cache.gcide.types import Gcide
from kbprobe.errors import MissingDependencyError, UsageError
from kbprobe.format.items import plain
from kbprobe.format.manifest import MOST_SIMILAR

NAME = "dictionary_wordsense"
ALL = {"train_rows": 0}
Rows = list[dict[str, Any]]

SYLLABLES = ("ba", "de", "fi", "go", "lu", "ma", "ne", "pi", "ro", "su", "ta", "vo")


def invented(number: int) -> str:
    """A word of four syllables, another for each number."""
    digits = [number // 12**place % 12 for place in (0, 1, 2, 3)]
    return "".join(SYLLABLES[digit] for digit in digits)


def dictionary() -> Gcide:
    """A dictionary of 300 invented words, among them every oddity that the builder must see."""
    # Without vowels, so that they are no kin of the words that define them.
    words = sorted(re.sub("[aeiou]", "x", f"x{invented(7 * i)}") for i in range(300))
    senses: list[dict[str, Any]] = []
    contexts: list[dict[str, Any]] = []

    def add(word: int, pos: str, definition: str, *texts: str, kind: str = "usage") -> None:
        number = 1 + sum(sense["word"] == word for sense in senses)
        for text in texts:
            start = text.find(words[word])
            end = start + len(words[word]) if start >= 0 else -1
            contexts.append(
                {"sense": len(senses), "kind": kind, "text": text, "author": ""}
                | {"start": start, "end": end}
            )
        senses.append(
            {"word": word, "entry": 1, "number": number, "pos": pos, "definition": definition}
        )

    for i, word in enumerate(words):
        for j in range(1 + i % 4):
            at = 20 * i + 4 * j
            definition = f"{invented(at + 1)} {invented(at + 2)} {invented(at + 3)}"
            used = [f"we saw {nth} {word} there" for nth in ("one", "no")[: 1 + i // 2 % 2]]
            add(i, ("noun", "verb")[i % 3 == 0], definition.capitalize() + ".", *used)
        if i % 4 == 3:
            add(i, "adjective", f"Quite {invented(20 * i + 19)}.", f"a {word} thing over there")
    last = len(words) - 1
    add(last, "noun", "Without an example.")
    add(last, "noun", f"What {words[last]} is.", f"this holds {words[last]} itself")
    add(last, "noun", "See Elsewhere.", f"go and see {words[last]} now")
    add(last, "noun", "A thing of too many words " * 20, f"it goes on {words[last]} and on")
    add(last, "noun", "Never found.", "a context without it")
    add(last, "noun", "Shown bare.", f"a {words[last]}")
    # Two words with one definition.
    for number in (1, 2):
        senses[first_of(senses, number)]["definition"] = "The very same thing."
    order = sorted(range(len(senses)), key=lambda at: senses[at]["word"])
    place = {old: new for new, old in enumerate(order)}
    for context in contexts:
        context["sense"] = place[context["sense"]]
    contexts.sort(key=lambda context: context["sense"])
    table = pa.Table.from_pylist([senses[at] for at in order])
    pos = table.schema.get_field_index("pos")
    table = table.set_column(pos, "pos", table["pos"].dictionary_encode())
    return Gcide(
        "gcide-invented",
        "1",
        "0" * 64,
        "GPL-3.0-or-later",
        pa.table({"word": words}),
        table,
        pa.Table.from_pylist(contexts),
        attribution=GCIDE.attribution,
    )


def word_of(name: str) -> str:
    return name.rsplit(".", 2)[0]


def first_of(senses: Rows, word: int) -> int:
    return next(at for at, sense in enumerate(senses) if sense["word"] == word)


@pytest.fixture(scope="module")
def gcide() -> Gcide:
    return dictionary()


def built(gcide: Gcide, seed: int = 0, **options: Any) -> Built:
    probe = replace(find_probe(NAME), open=lambda _: gcide, plan=dictionary_wordsense)
    return build(Request(probe, probe.options.parse(options, NAME), seed))


def rows_of(done: Built) -> dict[str, Rows]:
    return {split: plain(items.table()).to_pylist() for split, items in done.splits.items()}


@pytest.fixture(scope="module")
def splits(gcide: Gcide) -> dict[str, Rows]:
    return rows_of(built(gcide, **ALL))


def check_rows(gcide: Gcide, splits: dict[str, Rows], *, uniform: bool = False) -> None:
    """Hold every row against the dictionary's tables."""
    number = {name: at for at, name in enumerate(sense_names(gcide).to_pylist())}
    words = gcide.words["word"].to_pylist()
    senses, contexts = gcide.senses.to_pylist(), gcide.contexts.to_pylist()
    shown: dict[int, set[tuple[str, str]]] = {}
    for row in contexts:
        if row["start"] >= 0:
            surface = row["text"][row["start"] : row["end"]]
            shown.setdefault(row["sense"], set()).add((row["text"].rstrip(" .,;:"), surface))
    golds: list[str] = []
    asked: list[str] = []
    every = [row for rows in splits.values() for row in rows]
    for row in every:
        nodes = [number[name] for name in row["choice_nodes"]]
        gold = senses[nodes[row["answer"]]]
        assert row["concept"] == row["cluster"] == row["choice_nodes"][row["answer"]]
        # A full stop stays only behind an abbreviation ("etc.").
        context = row["context"].rstrip(" .,;:")
        assert (context, row["surface_form"]) in shown[nodes[row["answer"]]]
        assert row["triples"] == [
            {"subject": row["concept"], "relation": "definition", "object": gold["definition"]}
        ]
        assert row["pos"] == gold["pos"]
        texts = [shown_definition(senses[node]["definition"]) for node in nodes]
        assert row["choices"]["text"] == texts
        assert len({text.lower().strip(" .") for text in texts}) == len(texts)
        assert all(node in shown for node in nodes), "a sense without an example is no distractor"
        others = [at for at in range(len(nodes)) if at != row["answer"]]
        same = [at for at in others if senses[nodes[at]]["word"] == gold["word"]]
        drawn = [at for at in others if row["choice_families"][at] == "same_word"]
        # Of all senses alike, some of one word may come together.
        assert drawn == same or (uniform and not drawn)
        assert {row["choice_families"][at] for at in others} <= {"same_word", "random"}
        assert row["distractor_hops"] == 0
        # A row of a group of other words' senses says so, even if its group has kin.
        assert row["distractor_family"] == ("same_word" if drawn else "random")
        golds.append(texts[row["answer"]])
        asked.append(words[gold["word"]])
        for at in others:
            other = texts[at]
            assert not clauses(other) & clauses(golds[-1]) - common(gcide)
    at = np.arange(len(every))
    surface, context = ([row[name] for row in every] for name in ("surface_form", "context"))
    for column, compare in ((asked, holds_kin), (surface, holds_kin), (context, shares_a_word)):
        assert not compare(pa.array(column), at, pa.array(golds), at).any()


def common(gcide: Gcide) -> set[str]:
    if gcide.name not in _common:
        seen = Counter(
            clause
            for at in gcide.candidates.tolist()
            for clause in clauses(gcide.senses["definition"][at].as_py())
        )
        _common[gcide.name] = {clause for clause, count in seen.items() if count > 20}
    return _common[gcide.name]


_common: dict[str, set[str]] = {}


def check_splits(splits: dict[str, Rows]) -> None:
    seen: dict[tuple[str, str], set[str]] = {}
    for split, rows in splits.items():
        for row in rows:
            for name, text in zip(row["choice_nodes"], row["choices"]["text"], strict=True):
                seen.setdefault(("sense", name), set()).add(split)
                seen.setdefault(("word", word_of(name)), set()).add(split)
                seen.setdefault(("text", text.lower().strip(" .")), set()).add(split)
    assert {len(where) for where in seen.values()} == {1}


def test_golds_are_true_and_distractors_false(gcide: Gcide, splits: dict[str, Rows]) -> None:
    assert set(splits) == {"train", "validation", "test"}
    assert sum(map(len, splits.values())) > 500
    check_rows(gcide, splits)


def test_words_senses_and_definitions_stay_in_one_split(splits: dict[str, Rows]) -> None:
    check_splits(splits)


def test_choices_are_of_one_part_of_speech(gcide: Gcide, splits: dict[str, Rows]) -> None:
    names = sense_names(gcide).to_pylist()
    pos = dict(zip(names, gcide.senses["pos"].to_pylist(), strict=True))
    for row in (row for rows in splits.values() for row in rows):
        assert {pos[name] for name in row["choice_nodes"]} == {row["pos"]}


def test_every_definition_is_a_distractor_four_times_for_each_time_it_is_gold(
    splits: dict[str, Rows],
) -> None:
    for rows in splits.values():
        uses = Counter(name for row in rows for name in row["choice_nodes"])
        golds = Counter(row["concept"] for row in rows)
        assert uses == Counter({name: 5 * count for name, count in golds.items()})


@pytest.mark.parametrize("cut", ["train_rows", "limit"])
def test_a_cut_leaves_groups_whole(gcide: Gcide, cut: str) -> None:
    some = rows_of(built(gcide, **{**ALL, cut: 23}))
    rows = some["train"] if cut == "train_rows" else [row for part in some.values() for row in part]
    assert 0 < len(rows) <= 23
    golds: dict[frozenset[str], list[str]] = defaultdict(list)
    for row in rows:
        golds[frozenset(row["choice_nodes"])].append(row["choice_nodes"][row["answer"]])
    assert all(sorted(group) == sorted(found) for group, found in golds.items())


def test_rows_of_a_group_show_the_same_choices_each_the_gold_of_one(
    splits: dict[str, Rows],
) -> None:
    for rows in splits.values():
        golds: dict[tuple[str, ...], list[str]] = {}
        places: Counter[int] = Counter()
        for row in rows:
            golds.setdefault(tuple(row["choice_nodes"]), []).append(row["concept"])
            places[row["answer"]] += 1
        # The same five senses may be asked about in several contexts each.
        assert all(
            Counter(found) == Counter(shown * (len(found) // 5)) for shown, found in golds.items()
        )
        assert len(set(places.values())) == 1


def test_senses_of_a_word_stand_together(splits: dict[str, Rows]) -> None:
    rows = [row for some in splits.values() for row in some]
    same = [row["choice_families"].count("same_word") for row in rows]
    assert set(same) == {0, 1, 2, 3}
    shown = {(name, row["pos"]) for row in rows for name in row["choice_nodes"]}
    fellows = Counter((word_of(name), pos) for name, pos in shown)
    beside: dict[tuple[str, str], list[int]] = defaultdict(list)
    for row, count in zip(rows, same, strict=True):
        others = fellows[word_of(row["concept"]), row["pos"]] - 1
        assert count <= others
        if others:
            beside[row["concept"], row["context"]].append(count)
    assert len(beside) > 500
    alone = [question for question, counts in beside.items() if not any(counts)]
    # Only where fewer questions are left about another sense than about this one.
    assert len(alone) < 0.1 * len(beside)
    # Rows without another sense are the easy reference.
    assert 0.1 < same.count(0) / len(rows) < 0.4


@pytest.mark.slow
def test_words_with_one_definition_stay_together(gcide: Gcide) -> None:
    shared = [
        at
        for at, text in enumerate(gcide.senses["definition"].to_pylist())
        if text == "The very same thing."
    ]
    assert len({int(gcide.word_ids[at]) for at in shared}) == 2
    names = sense_names(gcide).to_pylist()
    for seed in range(6):
        splits = rows_of(built(gcide, seed, **ALL))
        where = {
            split
            for split, rows in splits.items()
            for row in rows
            if row["concept"] in {names[at] for at in shared}
        }
        assert len(where) == 1
        check_splits(splits)


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("To adorn; to deck.", "To deck.", True),
        ("To express sorrow; to weep; to mourn.", "To mourn for; to bewail.", True),
        ("To receive into the womb.", "To have a child in the womb.", True),
        ("To perceive by the mind.", "To apprehend with the mind or heart.", True),
        ("A sewer.", "a sewer", True),
        ("A long seat.", "A heap of sand.", False),
        ("Esp., a bird.", "Hence: a hat.", False),
    ],
)
def test_near_equal_definitions_of_a_word_are_alike(one: str, other: str, alike: bool) -> None:
    found = alike_pairs(np.array([3, 5]), [one, other], np.array([0, 0]), 10)
    assert found.tolist() == ([35, 53] if alike else [])


@pytest.mark.parametrize(
    ("definition", "shown"),
    [
        ("Fig.: To ascertain; to test.", "To ascertain; to test."),
        ("hence, agreeable to feel.", "Hence, agreeable to feel."),
        ("Also, malleable; opposed to hard.", "Malleable; opposed to hard."),
        ("To strike; hence:", "To strike"),
        ("Hence.", "Hence."),
        ("A fig.", "A fig."),
    ],
)
def test_what_ties_a_definition_to_another_is_not_shown(definition: str, shown: str) -> None:
    assert shown_definition(definition) == shown


def test_a_clause_that_words_share_makes_them_alike() -> None:
    definitions = ["To trim; to adorn.", "To adorn, as a hat.", "To break."]
    found = alike_pairs(np.arange(3), definitions, np.array([0, 1, 2]), 3)
    assert found.tolist() == [1, 3]


def files(folder: Path) -> Iterator[Path]:
    return folder.rglob("*.parquet")


def test_the_card_names_the_licence(gcide: Gcide, tmp_path: Path) -> None:
    write(built(gcide), tmp_path / NAME)
    manifest = json.loads((tmp_path / NAME / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["knowledge_base"]["licence"] == "GPL-3.0-or-later"
    card = (tmp_path / NAME / "README.md").read_text(encoding="utf-8")
    assert "license: gpl-3.0" in card
    assert "GNU Collaborative International Dictionary of English" in card


def test_what_is_left_out_is_counted(gcide: Gcide) -> None:
    dropped = built(gcide).manifest["counts"]["dropped"]
    assert dropped["the definition sends the reader elsewhere"] == 1
    assert dropped["the definition is too long"] == 1
    assert dropped["the context is the word alone, or too long"] == 1
    assert dropped["the definition holds the word asked about"] == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "holds"),
    [
        ({"choices": 2}, lambda row: len(row["choice_nodes"]) == 2),
        ({"choices": 6}, lambda row: len(row["choice_nodes"]) == 6),
        ({"pos": ("noun",)}, lambda row: row["pos"] == "noun"),
        ({"sampling": "uniform"}, lambda row: True),
        ({"other_pos": True}, lambda row: True),
        ({"split_shares": (0, 0, 1)}, lambda row: True),
    ],
)
def test_options_do_what_they_say(
    gcide: Gcide, options: dict[str, Any], holds: Callable[[dict[str, Any]], bool]
) -> None:
    splits = rows_of(built(gcide, **options))
    assert splits
    check_rows(gcide, splits, uniform=options.get("sampling") == "uniform")
    check_splits(splits)
    assert all(holds(row) for rows in splits.values() for row in rows)


def test_senses_of_another_part_of_speech_are_an_option(gcide: Gcide) -> None:
    names = sense_names(gcide).to_pylist()
    pos = dict(zip(names, gcide.senses["pos"].to_pylist(), strict=True))
    splits = rows_of(built(gcide, other_pos=True, **ALL))
    mixed = [row for rows in splits.values() for row in rows if row["pos"] == "adjective"]
    assert any(pos[name] != "adjective" for row in mixed for name in row["choice_nodes"])


@pytest.mark.parametrize(
    "options",
    [
        {"contexts": ("quotation",)},
        {"pos": ("other",)},
    ],
)
def test_options_that_leave_nothing_say_so(gcide: Gcide, options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="no question is left"):
        built(gcide, **options)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("pos", ()),
        ("pos", ("preposition",)),
        ("contexts", ()),
        ("random_share", 1.5),
        ("sampling", "fair"),
        ("stem_overlap", "maybe"),
    ],
)
def test_impossible_values_are_refused(option: str, value: Any) -> None:
    with pytest.raises(UsageError, match=f"--{option.replace('_', '-')}"):
        find_probe(NAME).options.parse({option: value}, NAME)


def test_an_unknown_dictionary_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KBPROBE_CACHE", str(tmp_path))
    probe = find_probe(NAME)
    with pytest.raises(UsageError):
        probe.open(probe.options.parse({"gcide": "no-such"}, NAME))


# The real dictionary


@pytest.fixture(scope="module")
def real(open_whole_gcide: Callable[[], None]) -> Gcide:
    try:
        open_whole_gcide()
    except MissingDependencyError as error:
        pytest.skip(f"there is no GCIDE here: {error}")
    return load_gcide()


@pytest.mark.slow
def test_the_real_dictionary_reaches_its_bars(
    real: Gcide, manifest_of: Callable[[str, str], dict[str, Any]]
) -> None:
    assert real.candidates.size >= 30_000
    manifest = manifest_of(NAME, "default")
    counts, audit = manifest["counts"], manifest["audit"]
    assert counts["rows"] >= 8_500
    assert counts["cells"]["0"]["same_word"] >= 0.6 * counts["rows"]
    assert audit["flags"] == []
    for name in audit["baselines"].keys() - {MOST_SIMILAR}:
        cells = audit["baselines"][name]
        assert cells["all"]["accuracy"] <= 0.25, name
    # In all families; in each, as a group has rows of several, what 700 rows allow.
    cells = audit["baselines"]["choice-only model"]
    assert cells["all"]["accuracy"] <= 0.201
    assert max(cell["accuracy"] for cell in cells.values()) <= 0.25
    assert set(audit["leakage"].values()) == {0}


@pytest.mark.slow
def test_every_row_of_the_real_build_is_true(
    real: Gcide, built: Callable[[str, str], Path]
) -> None:
    splits = {
        path.name.partition("-")[0]: pq.read_table(path).to_pylist()
        for path in sorted((built(NAME, "default") / "data").iterdir())
    }
    check_rows(real, splits)
    check_splits(splits)
