"""Probes of tables: golds stated, distractors not, and what is left out."""

from __future__ import annotations

import csv
import gzip
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import builders
from builders.tables.alike import are_years, one_letter_apart, within
from builders.tables.ways import WayToAsk
from builders.tables.wordings import wordings_of
from kb_cache.fetching import fetch
from kb_cache.tables.texts import plain, quantity
from kbprobe.errors import KbprobeError, UsageError
from kbprobe.format.manifest import read_manifest
from tests.real_data import OWN

ELEMENTS = OWN / "elements.csv"

Fact = tuple[str, str, str]


def build(table: Any, **options: Any) -> list[dict[str, Any]]:
    """Build the probe of a table, and return its rows."""
    made = builders.build("facts", table=table, audit=False, **options)
    return [row for split in made.values() for row in split]


def people(count: int = 60, cities: int = 30) -> list[Fact]:
    """Facts about people, each born in one city, and of cities, each in one of some countries."""
    facts = [(f"Person {n}", "bornIn", f"City {n % cities}") for n in range(count)]
    return [*facts, *((f"City {n}", "country", f"Land {n + 500}") for n in range(cities))]


def in_wide_table(relations: Sequence[str]) -> set[Fact]:
    with ELEMENTS.open(encoding="utf-8", newline="") as file:
        return {
            (row["name"], relation, row[relation].strip())
            for row in csv.DictReader(file)
            for relation in relations
        }


def test_golds_are_stated_and_distractors_are_not() -> None:
    relations = ("discovery_year", "discoverers", "series")
    stated = in_wide_table(relations)
    rows = build(ELEMENTS, columns="subject=name", relations=relations, min_objects=8)
    assert {row["relation"] for row in rows} == set(relations)
    assert len(rows) > 300
    for row in rows:
        texts = row["choices"]["text"]
        for place, text in enumerate(texts):
            fact = row["concept"], row["relation"], text
            assert (fact in stated) == (place == row["answer"]), row


def test_each_choice_of_a_group_is_right_once() -> None:
    rows = build(ELEMENTS, columns={"subject": "name"}, relations="discoverers")
    golds = Counter((frozenset(row["choices"]["text"]), row["answerKey"]) for row in rows)
    for choices in {choices for choices, _ in golds}:
        assert len({golds[choices, label] for label in "ABCDE"}) == 1


def test_relations_with_several_objects_are_asked_about_only_if_they_are_closed() -> None:
    facts = people() + [(f"Person {n}", "speaks", f"Language {n % 25}") for n in range(60)]
    facts += [(f"Person {n}", "speaks", f"Language {(n + 1) % 25}") for n in range(30)]
    assert {row["relation"] for row in build(facts)} == {"bornIn", "country"}
    closed = build(facts, closed="speaks")
    assert "speaks" in {row["relation"] for row in closed}
    stated = set(facts)
    for row in closed:
        wrong = [text for at, text in enumerate(row["choices"]["text"]) if at != row["answer"]]
        assert not any((row["concept"], row["relation"], text) in stated for text in wrong)
    single = build(facts, functional="speaks")
    assert {row["concept"] for row in single if row["relation"] == "speaks"} <= {
        f"Person {n}" for n in range(30, 60)
    }


def test_inverse_questions_and_paths() -> None:
    rows = build(people(), inverse=True, hops=2, stem_overlap="keep")
    relations = {row["relation"] for row in rows}
    assert relations == {"bornIn", "bornIn (inverse)", "country", "country (inverse)",
                         "bornIn, country"}  # fmt: skip
    born = {one: city for one, relation, city in people() if relation == "bornIn"}
    lands = {city: land for city, relation, land in people() if relation == "country"}
    stated = {*people()}
    for row in rows:
        gold = row["choices"]["text"][row["answer"]]
        wrong = {*row["choices"]["text"]} - {gold}
        (triple,) = row["triples"]
        if row["hops"] == 1:
            assert (triple["subject"], triple["relation"], triple["object"]) in stated
        if row["relation"] == "bornIn, country":
            assert gold == lands[born[row["concept"]]]
        elif row["relation"] == "bornIn (inverse)":
            assert born[gold] == row["concept"]
            assert row["concept"] not in {born[one] for one in wrong}


def test_a_transitive_relation_reaches_further() -> None:
    facts = [(f"Part {n}", "part of", f"Whole {n // 2}") for n in range(60)]
    facts += [(f"Whole {n}", "part of", f"Machine {n}") for n in range(30)]
    rows = build(facts, transitive="part of", min_objects=5, match="none")
    for row in rows:
        if row["concept"].startswith("Part"):
            number = int(row["concept"].split()[1]) // 2
            gold = row["choices"]["text"][row["answer"]]
            assert gold == f"Whole {number}"
            assert f"Machine {number}" not in row["choices"]["text"]


def test_numbers_that_are_near_are_not_choices_of_one_question() -> None:
    facts = [(f"Town {n}", "population", f"{int(1000 * 1.07**n):,}") for n in range(60)]
    rows = build(facts, tolerance=0.2, match="none")
    assert rows
    for row in rows:
        values = [int(text.replace(",", "")) for text in row["choices"]["text"]]
        gold = values[row["answer"]]
        others = values[: row["answer"]] + values[row["answer"] + 1 :]
        assert all(abs(gold - other) >= 0.2 * max(gold, other) for other in others)


def test_columns_of_kinds_splits_and_years(tmp_path: Path) -> None:
    path = tmp_path / "facts.tsv"
    lines = ["subject\trelation\tobject\tobject_kind\tsplit\twhen"]
    for n in range(80):
        kind = ("river", "peak")[n % 2]
        split = ("train", "test")[n < 40]
        lines.append(f"Land {n}\tlargest\tThing{n}\t{kind}\t{split}\t2020")
        lines.append(f"Land {n}\tlargest\tOld{n}\t{kind}\t{split}\t1990")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    made = builders.build(str(path), columns="year=when", audit=False)
    assert set(made) == {"train", "test"}
    for name, split in made.items():
        for row in split:
            numbers = [int(text.removeprefix("Thing")) for text in row["choices"]["text"]]
            assert len({number % 2 for number in numbers}) == 1
            assert (int(row["concept"].split()[1]) < 40) == (name == "test")


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("name,capital\nFrance,Paris\n", {}, "has no column named subject"),
        ("subject,capital\nFrance,Paris\n", {}, "--relations capital"),
        ("subject,capital\nFrance,Paris\n", {"relations": "captal"}, "Did you mean 'capital'"),
        ("subject,capital\nFrance,Paris\n", {"relations": "capital"}, "fewer than --min-objects"),
        ("subject,relation,object\na,b\n", {}, "has 2 columns instead of 3"),
        ("subject,subject\na,b\n", {}, "two columns 'subject'"),
        ("subject,relation,object\nx,r,\n", {}, "the cell is empty: 1"),
        ("", {}, "cannot be read"),
        ("subject,relation,object\nx,r,y\n", {"closed": "z"}, "--closed z"),
        ("subject,relation,object\nx,r,y\n", {"columns": "subjct=x"}, "no such role"),
        ("subject,relation,object,split\nx,r,y,dev2\n", {}, "'dev2'"),
    ],
)
def test_what_is_wrong_with_a_table_is_said(
    tmp_path: Path, content: str, options: dict[str, Any], message: str
) -> None:
    path = tmp_path / "facts.csv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(UsageError) as raised:
        builders.build(str(path), audit=False, **options)
    assert message in str(raised.value)


def test_values_that_are_no_table_are_refused() -> None:
    for value in (5, [(1, 2)], []):
        with pytest.raises(UsageError):
            builders.build("facts", table=value)
    with pytest.raises(KbprobeError, match=r"no such file: nothing\.csv"):
        builders.build("nothing.csv")


def test_every_kind_of_python_table_gives_the_same_rows(tmp_path: Path) -> None:
    import datasets
    import pandas as pd
    import pyarrow as pa

    facts = people()
    names = ("subject", "relation", "object")
    table = pa.table(dict(zip(names, map(list, zip(*facts, strict=True)), strict=True)))
    dicts = [dict(zip(names, fact, strict=True)) for fact in facts]
    expected = build(facts)
    for value in (table, dicts, pd.DataFrame(dicts), datasets.Dataset.from_list(dicts)):
        assert build(value) == expected
    path = tmp_path / "facts.jsonl"
    pd.DataFrame(dicts).to_json(path, orient="records", lines=True)
    assert asked_in(build(str(path))) == asked_in(expected)


def test_a_file_that_was_changed_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "facts.csv"
    for country in ("Land", "Realm"):
        lines = [f"City {n},country,{country} {n + 500}" for n in range(40)]
        path.write_text("subject,relation,object\n" + "\n".join(lines), encoding="utf-8")
        rows = build(str(path))
        assert all(text.startswith(country) for row in rows for text in row["choices"]["text"])


def golds(rows: list[dict[str, Any]]) -> set[Fact]:
    return {
        (row["concept"], row["relation"], row["choices"]["text"][row["answer"]]) for row in rows
    }


def wrong_answers(rows: list[dict[str, Any]]) -> set[Fact]:
    return {
        (row["concept"], row["relation"], text)
        for row in rows
        for place, text in enumerate(row["choices"]["text"])
        if place != row["answer"]
    }


def likes(count: int = 60, *more: Fact) -> list[Fact]:
    return [*((f"P{n}", "likes", f"F{n % 25}z") for n in range(count)), *more]


def test_a_relation_named_of_says_what_the_subject_is() -> None:
    facts = [(f"Town {n}", "capital of", f"Land {n + 700}") for n in range(40)]
    for row in build(facts, inverse=True):
        if row["relation"] == "capital of":
            assert re.fullmatch(r"Town \d+ is the capital of( which of these\?)?", row["question"])
        else:
            assert re.fullmatch(
                r"(What is the|The) capital of Land \d+(\?| is)", row["question"]
            ), row["question"]


def test_what_holds_the_other_way_round_is_no_distractor() -> None:
    facts = [(f"P{n}", "knows", f"P{(n + step) % 60}") for n in range(60) for step in (1, 2)]
    rows = build(facts, closed="knows", match="none")
    both = {*facts, *((target, relation, subject) for subject, relation, target in facts)}
    assert golds(rows) <= {*facts}
    assert not wrong_answers(rows) & both


def test_what_is_left_out_of_a_functional_relation_stays_true_of_paths() -> None:
    facts = [(f"P{n}", "born in", f"City {n % 30}") for n in range(60)]
    facts += [("P0", "born in", "City 7"), *((f"City {n}", "country", f"Land {n + 40}")
                                            for n in range(30))]  # fmt: skip
    options = {"functional": "born in", "hops": 2, "stem_overlap": "keep", "inverse": True}
    rows = build(facts, match="none", **options)
    assert {row["hops"] for row in rows} == {1, 2}
    assert {row["hops"] for row in rows if "," in row["relation"]} == {2}
    assert not any(row["concept"] == "P0" for row in rows if "inverse" not in row["relation"])
    inverse = {(one, other) for one, relation, other in wrong_answers(rows)
               if relation == "born in (inverse)"}  # fmt: skip
    assert not inverse & {(target, subject) for subject, _, target in facts}


def test_a_path_is_asked_about_if_all_its_middles_lead_on() -> None:
    facts = [(f"P{n}", "lives in", f"City {(n + step) % 30}") for n in range(60) for step in (0, 1)]
    facts += [(f"City {n}", "country", f"Land {n + 40}") for n in range(29)]
    rows = build(facts, closed="lives in", hops=2, stem_overlap="keep", match="none")
    asked = {row["concept"] for row in rows if row["hops"] == 2}
    assert asked
    assert not asked & {f"P{n}" for n in (28, 29, 58, 59)}


@pytest.mark.parametrize("sampling", ["grouped", "uniform"])
def test_choices_are_of_one_relation_kind_and_unit(sampling: str) -> None:
    facts = [(f"P{n}", "length", f"{3 * (n + 3) ** 3} {'km' if n % 2 else 'm'}") for n in range(80)]
    options = {} if sampling == "grouped" else {"sampling": sampling}
    for row in build([*facts, *likes()], **options):
        units = {text.rpartition(" ")[2] for text in row["choices"]["text"]}
        if row["relation"] == "length":
            assert len(units) == 1
        else:
            assert all(unit.startswith("F") for unit in units)


@pytest.mark.parametrize("other", ["St Xavier{n}", "ST. XAVIER{n}", "St. Xávier{n}"])
def test_subjects_that_read_alike_share_what_is_true(other: str) -> None:
    facts = [(f"St. Xavier{n}", "patron of", f"Town {n}") for n in range(26)]
    facts += [(other.format(n=n), "patron of", f"Town {(n + 1) % 26}") for n in range(26)]
    rows = build(facts, closed="patron of", match="none", stem_overlap="keep")
    assert rows
    for row in rows:
        own = int(re.sub(r"\D", "", row["concept"]))
        right = {f"Town {own}", f"Town {(own + 1) % 26}"}
        assert sum(text in right for text in row["choices"]["text"]) == 1


def test_a_subject_that_is_its_own_object_has_another_one() -> None:
    facts = [(f"Isle {n}", "country", f"Realm {n % 25}") for n in range(60)]
    facts += [("Isle 3", "country", "Isle 3")]
    with pytest.raises(UsageError, match="several objects for 1 of 60 subjects"):
        build(facts)
    rows = build(facts, functional="country")
    assert "Isle 3" not in {row["concept"] for row in rows}


def test_chains_are_followed_across_spellings() -> None:
    facts = [(f"Part{chr(97 + n)}x", "inside", f"WHOLE{chr(97 + n)}x") for n in range(26)]
    facts += [(f"whole{chr(97 + n)}x", "inside", f"Box{chr(97 + n)}x") for n in range(26)]
    rows = build(facts, transitive="inside", match="none", stem_overlap="keep")
    assert rows
    for row in rows:
        letter = row["concept"][-2]
        assert sum(text[-2] == letter for text in row["choices"]["text"]) == 1


def test_stated_splits_may_share_answers() -> None:
    header = "subject,relation,object,split\n"
    lines = [f"P{n},likes,F{n % 25}z,{('train', 'test')[n % 2]}" for n in range(100)]
    rows = build_csv(header + "\n".join(lines), match="none")
    assert {row["concept"] for row in rows} >= {f"P{n}" for n in range(20)}


def test_four_digits_are_years_only_where_the_relation_says_so() -> None:
    facts = [(f"P{n}", "elevation", str(1000 + 20 * n)) for n in range(50)]
    for row in build(facts, min_objects=5, match="none"):
        values = [int(text) for text in row["choices"]["text"]]
        gold = values.pop(row["answer"])
        assert all(abs(gold - other) > 0.0999 * max(gold, other) for other in values)


def test_lists_as_json_and_python_write_them(tmp_path: Path) -> None:
    content = "subject\trelation\tobject\n" + "".join(
        f"P{n}\tlikes\t{cell}\n"
        for n in range(60)
        for cell in (f'["F{n % 25}z", "G{n % 25}z"]' if n % 3 else f"['G{n % 25}z', 'F{n % 25}z']",)
    )
    path = tmp_path / "facts.tsv"
    path.write_text(content + "Q\tlikes\tn/a\n", encoding="utf-8")
    texts = {text for _, _, text in golds(build(str(path), closed="likes"))}
    assert texts
    assert all(re.fullmatch(r"[FG]\d+z", text) for text in texts)


def test_a_table_that_is_kept_again_is_read_again(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KBPROBE_CACHE", str(cache))
    path = tmp_path / "facts.csv"
    for country in ("Land", "Realm"):
        lines = [f"City {n},country,{country} {n + 500}" for n in range(40)]
        path.write_text("subject,relation,object\n" + "\n".join(lines), encoding="utf-8")
        fetch("table", source=path, name="own")
        rows = build("own")
        assert all(text.startswith(country) for row in rows for text in row["choices"]["text"])


def test_a_fact_is_in_one_split_however_it_is_asked() -> None:
    made = builders.build(
        "facts", table=people(300, 40), inverse=True, hops=2, split_shares=(0.5, 0.2, 0.3),
        stem_overlap="keep", match="none", min_objects=5, audit=False,
    )  # fmt: skip
    ends = {}
    for name, split in made.items():
        asked = golds(list(split))
        ends[name] = {one for one, _, _ in asked} | {other for _, _, other in asked}
    assert set(ends) == {"train", "validation", "test"}
    assert not ends["train"] & ends["test"]
    assert not ends["train"] & ends["validation"]


def test_the_latest_year_counts() -> None:
    header = "subject,relation,object,when\n"
    lines = [f"P{n},likes,F{n % 25}z,{year}" for n in range(60) for year in (1990, 2020)]
    lines += [f"P{n},likes,Old{n},2000" for n in range(60)]
    rows = build_csv(header + "\n".join(lines), columns="year=when", match="none")
    assert len({row["concept"] for row in rows}) > 50
    assert not any("Old" in text for _, _, text in golds(rows) | wrong_answers(rows))


def build_csv(content: str, **options: Any) -> list[dict[str, Any]]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "facts.csv"
        path.write_text(content, encoding="utf-8")
        return build(str(path), **options)


def test_other_names_of_a_right_answer_are_no_distractors() -> None:
    rows = [f"P{n},likes,F{n % 25}z,Fruit {n % 25}" for n in range(60)]
    rows += [f"Q{n},likes,Fruit {n % 25}," for n in range(60)]
    content = "subject,relation,object,object_aliases\n" + "\n".join(rows)
    for row in build_csv(content):
        numbers = [re.sub(r"\D", "", text) for text in row["choices"]["text"]]
        assert len({*numbers}) == len(numbers), row["choices"]["text"]


def test_subjects_and_relations_that_differ_in_case_are_one() -> None:
    facts = [(f"P{n}", ("Likes", "likes")[n % 2], f"F{n % 25}z") for n in range(60)]
    assert {row["relation"] for row in build(facts)} == {"Likes"}
    facts = [(f"P{n}", ("likes", "likes_")[n % 2], f"F{n % 25}z") for n in range(60)]
    assert len({row["concept"] for row in build(facts, match="none")}) > 50
    with pytest.raises(UsageError, match=r"'likes' has several objects for 1 of 60 subjects"):
        build(likes(60, ("p7", "likes", "F3z")))
    rows = build(likes(60, ("p7", "likes", "F3z")), functional="likes")
    assert "P7" not in {row["concept"] for row in rows}


def test_links_of_another_relation_are_no_choices_of_one_question() -> None:
    facts = likes(60) + [(f"F{n}z", "grows in", f"F{n + 1}z") for n in range(0, 24, 2)]
    for row in build(facts, relations="likes,grows in", match="none"):
        gold = row["choices"]["text"][row["answer"]]
        number = int(re.sub(r"\D", "", gold))
        assert f"F{number ^ 1}z" not in row["choices"]["text"] or number == 24


def test_kinds_are_kept_apart_even_of_one_text() -> None:
    header = "subject,relation,object,object_kind\n"
    lines = [f"P{n},likes,F{n % 25}z,{('a', 'b')[n >= 30]}" for n in range(60)]
    rows = build_csv(header + "\n".join(lines))
    kinds = {"a": {f"F{n % 25}z" for n in range(30)}, "b": {f"F{n % 25}z" for n in range(30, 60)}}
    for row in rows:
        kind = "ab"[int(row["concept"][1:]) >= 30]
        assert {*row["choices"]["text"]} <= kinds[kind]


def test_the_tables_own_sentences_ask() -> None:
    header = "subject,relation,object,sentence\n"
    lines = [f"P{n},likes,F{n % 25}z,[X] is fond of [Y] ." for n in range(60)]
    rows = build_csv(header + "\n".join(lines), columns="sentence=sentence")
    assert {re.sub(r"\d+", "", row["question"]) for row in rows} == {"P is fond of"}
    for sentence, message in (
        ("[Y] is liked by [X]", "must end its sentence"),
        ("is fond of [Y]", "does not name"),
    ):
        with pytest.raises(UsageError, match=message):
            build_csv(header + f"a,likes,b,{sentence}\n", columns="sentence=sentence")


def test_dates_and_whole_numbers_of_frames_are_written_plainly() -> None:
    import pandas as pd

    days = pd.date_range("1900-01-01", periods=40, freq="500D")
    frame = pd.DataFrame({"subject": [f"P{n}" for n in range(40)], "relation": "born on",
                          "object": days})  # fmt: skip
    assert {text for _, _, text in golds(build(frame))} <= {str(day.date()) for day in days}
    frame["object"] = [float(1000 + 40 * n) for n in range(39)] + [None]
    assert all(text.isdigit() for _, _, text in golds(build(frame)))
    frame["object"] = pd.to_timedelta(range(40), unit="h")
    with pytest.raises(UsageError, match="'object' holds duration"):
        build(frame)


def test_names_of_classes_and_datasets_of_a_folder(tmp_path: Path) -> None:
    import datasets

    names = [f"name {n}q" for n in range(25)]
    features = datasets.Features({
        "subject": datasets.Value("string"), "relation": datasets.Value("string"),
        "object": datasets.ClassLabel(names=names),
    })  # fmt: skip
    columns = {"subject": [f"P{n}" for n in range(60)], "relation": ["class"] * 60,
               "object": [n % 25 for n in range(60)]}  # fmt: skip
    rows = datasets.Dataset.from_dict(columns, features=features)
    assert {text for _, _, text in golds(build(rows))} <= {*names}
    with pytest.raises(UsageError, match="name one split of the DatasetDict: train"):
        build(datasets.DatasetDict(train=rows))
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "data.csv").write_text(
        "subject,relation,object\n" + "".join(",".join(fact) + "\n" for fact in likes()),
        encoding="utf-8",
    )
    assert asked_in(build(f"hub:{folder}")) == asked_in(build(likes()))


def test_the_same_build_twice_reads_every_option() -> None:
    assert build(likes(), closed="likes") == build(likes(), closed="likes")


def test_braces_in_names_and_names_that_collide() -> None:
    facts = [(one, "a {{ 7*7 }} {% x %}", other) for one, _, other in likes()]
    assert all("7*7" in row["question"] for row in build(facts))
    twice = [(one, name, other) for one, _, other in likes() for name in ("x", "x (inverse)")]
    with pytest.raises(UsageError, match="two relations are called"):
        build(twice, inverse=True)


def test_files_as_spreadsheets_write_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = "subject,relation,object\n" + "".join(",".join(fact) + "\n" for fact in likes())
    expected = asked_in(build_csv(content))
    for written in (
        content.replace("\n", "\r"), content.replace("\n", "\r\n"), content.replace(",", ";"),
        "\ufeff" + content,
    ):  # fmt: skip
        path = tmp_path / "facts.csv"
        path.write_bytes(written.encode())
        assert asked_in(build(str(path))) == expected
    for written_bytes, message in (
        (content.replace("P3,", '"P3,').encode(), "columns instead of 3"),
        (content.replace("P3,", "Pé,").encode("latin-1"), "is not UTF-8"),
    ):
        path.write_bytes(written_bytes)
        with pytest.raises(UsageError, match=message):
            build(str(path))
    monkeypatch.setattr("kb_cache.unpack.ALWAYS", 1 << 16)
    packed = tmp_path / "facts.csv.gz"
    packed.write_bytes(gzip.compress(content.encode()))
    assert asked_in(build(str(packed))) == expected
    for written_bytes, message in (
        (b"no gzip", "is no gzip file"),
        (gzip.compress(b"," * (1 << 20)), "unpacks to more than"),
    ):
        packed.write_bytes(written_bytes)
        with pytest.raises(UsageError, match=message):
            build(str(packed))
    other = tmp_path / "facts.xlsx"
    other.write_bytes(b"PK")
    with pytest.raises(UsageError, match=r"tables end with \.csv"):
        builders.build(str(other))


def asked_in(rows: list[dict[str, Any]]) -> list[tuple[str, list[str]]]:
    return sorted((row["question"], row["choices"]["text"]) for row in rows)


def test_a_wording_of_one_relation_leaves_those_of_others() -> None:
    every = build(people())
    chosen = next(row["template"] for row in every if row["relation"] == "country")
    rows = build(people(), wording=chosen)
    assert [row["id"] for row in rows] == [row["id"] for row in every]
    for row, before in zip(rows, every, strict=True):
        assert row["template"] == (chosen if row["relation"] == "country" else before["template"])
    assert len({row["template"] for row in every if row["relation"] == "country"}) > 1


def test_a_file_of_wordings(tmp_path: Path) -> None:
    path = tmp_path / "wordings.yaml"
    path.write_text('bornIn: "Where was {{ word }} born?"\n', encoding="utf-8")
    rows = build(people(), template=path)
    asked = {row["question"] for row in rows if row["relation"] == "bornIn"}
    assert asked
    assert all(text.startswith("Where was Person") for text in asked)
    for content, message in (
        ("birth: x {{ word }}\n", "'birth' is no relation"),
        ("bornIn: where?\n", "does not show the subject"),
        ("- a\n", "it has no wordings"),
    ):
        path.write_text(content, encoding="utf-8")
        with pytest.raises(UsageError) as raised:
            build(people(), template=path)
        assert message in str(raised.value)


def test_the_manifest_builds_the_same_rows_again(tmp_path: Path) -> None:
    builders.build("facts", table=people(), output=tmp_path / "one")
    manifest = read_manifest(tmp_path / "one")
    again = builders.build("facts", table=manifest.content["request"]["options"]["table"])
    assert again["test"].to_list() == build(people())


@given(st.lists(st.floats(-1e6, 1e6, allow_nan=False), max_size=30), st.floats(0, 0.9))
@settings(deadline=None, max_examples=60)
def test_near_numbers_are_those_of_a_loop(numbers: list[float], tolerance: float) -> None:
    import numpy as np

    values = np.array(numbers, dtype=np.float64)
    one, other = within(values, tolerance)
    found = {frozenset(pair) for pair in zip(one.tolist(), other.tolist(), strict=True)}
    for a in range(len(numbers)):
        for b in range(a):
            low, high = sorted((numbers[a], numbers[b]))
            if low > 0 and abs(low - high * (1 - tolerance)) > 1e-9 * high:
                assert (frozenset((a, b)) in found) == (low > high * (1 - tolerance))


def test_labels_and_values() -> None:
    assert plain("Köln") == plain("koln") == plain("KÖLN!")
    texts = ["Burkina", "Burkino", "Burkinas", "Chad", "Chas"]
    pairs = {frozenset(pair) for pair in zip(*map(list, one_letter_apart(texts)), strict=True)}
    assert frozenset((0, 1)) in pairs
    assert frozenset((3, 4)) not in pairs
    assert are_years(["1969", "2001"])
    assert not are_years(["1969", "12"])


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("12 kg", 12, "kg"), ("1,900", 1900, ""), ("$1,900", 1900, "$"), ("163,5", 163.5, ""),
        ("1.234.567", 1234567, ""), ("1 234 567", 1234567, ""), ("ca. 30 %", 30, "%"),
        ("−5", -5, ""), ("1.5e3", 1500, ""), ("1969-07-20", 1969, "date"),
        ("1969-07-20 10:00", 1969, "date"), ("20 July 1969", 1969, "date"),
        ("July 1969", 1969, "month"), ("20.07.1969", 1969, "date"), ("0,125", 0.125, ""),
        ("$1,200 million", 1.2e9, "$"), ("$1.2 billion", 1.2e9, "$"),
        ("7.860 g/cm3", 7.86, "g/cm3"),
        ("1.234,5", 1234.5, ""), ("12,34,567", 1234567, ""), ("1969/07/20", 1969, "date"),
        ("July 20th, 1969", 1969, "date"), ("5 MW", 5, "MW"), ("5 mW", 5, "mW"),
    ],
)  # fmt: skip
def test_numbers_are_read_as_people_write_them(text: str, value: float, unit: str) -> None:
    assert quantity(text) == (value, unit)


def test_what_is_no_number() -> None:
    assert not any(map(quantity, ["two", "Apollo 11", "10-20", "1,2,3", "B-52", ""]))


@pytest.mark.parametrize(
    ("name", "wording"),
    [
        ("cause of death", "The cause of death of {} is"),
        ("is owned by", "{} is owned by"),
        ("founded by", "{} was founded by"),
        ("HasA", "{} has a"),
        ("led by", "{} was led by"),
        ("plays instrument", "{} plays the instrument"),
        ("Area (sq km)", "The area of {} is"),
        ("No. of moons", "The number of moons of {} is"),
        ("took place in", "{} took place in"),
        ("made from material", "{} is made from"),
        ("located in the administrative territorial entity", "{} is located in"),
        ("# of employees", "The number of employees of {} is"),
        ("member of sports team", "{} is a member of the sports team"),
        ("gas", "The gas of {} is"),
        ("analysis", "The analysis of {} is"),
        ("official languages", "The official languages of {} are"),
        ("http://schema.org/birthPlace", "The birth place of {} is"),
        ("capital of", "{} is the capital of"),
    ],
)
def test_names_of_relations_are_read_as_people_mean_them(name: str, wording: str) -> None:
    assert wordings_of(WayToAsk((name,)))[1] == wording


def test_python_says_what_was_left_out(caplog: pytest.LogCaptureFixture) -> None:
    import pandas as pd

    facts = [*people(), *((f"P{n}", "likes", f"F{m}z") for n in range(30) for m in (n, n + 1))]
    probe = builders.build(table=facts, audit=False)
    assert any("'likes' has several objects" in reason for reason in probe.left_out)
    assert "see left_out" in repr(probe)
    frame = pd.DataFrame({"name": [f"P{n}" for n in range(60)],
                          "works": [f"F{n % 25}z; G{n}z" for n in range(60)]})  # fmt: skip
    options = {"columns": {"subject": "name"}, "relations": "works", "stem_overlap": "keep"}
    assert build(frame.set_index("name"), **options)
    assert "--separator ';'" in caplog.text


def test_a_participle_with_years_asks_for_the_year() -> None:
    assert wordings_of(WayToAsk(("First appeared",), dated=True))[1] == "{} first appeared in"
    assert wordings_of(WayToAsk(("Founded",), dated=True))[1] == "{} was founded in"


@pytest.mark.parametrize(
    "name", ["capital", "capitalOf", "part of", "has part", "is in", "", "x y"]
)
@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("inverse", [False, True])
def test_every_name_has_wordings(name: str, several: bool, inverse: bool) -> None:
    for text in wordings_of(WayToAsk((name,), inverse, several)):
        assert text.count("{}") == 1
        assert "  " not in text.replace("{}", "X")
