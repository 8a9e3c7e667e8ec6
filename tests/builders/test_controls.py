"""Control renderings: the same rows once more, without their language; and what they need."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

import builders
import kbprobe
from builders.engine.card import told_wordings
from builders.engine.pipeline import build, write
from builders.engine.probe import find_probe, probe
from builders.engine.render.assemble import QuestionBatch
from builders.engine.render.controls import (
    NONSENSE,
    SEPARATOR,
    BlankArguments,
    KeepArguments,
    ReplaceWords,
    mark_beside,
    nonsense_answers,
    nonsense_in,
    perturbed,
    without_language,
)
from builders.engine.render.jinja import TemplateError, render_batch
from builders.engine.render.template_file import Wording, key_words_of_text
from evaluation.items.sources import open_probe
from kbprobe.errors import KbprobeError, UsageError
from kbprobe.format.dataset import damaged_files
from kbprobe.format.items import plain as plain_table
from kbprobe.format.manifest import read_manifest
from kbprobe.format.setups import CONTROLS, MASK
from kbprobe.rng import RandomGenerator
from tests.builders.toy_cloze import ANSWERS, NAME, TOY, registered, request, written

__all__ = ["registered"]

Run = Callable[..., "subprocess.CompletedProcess[str]"]
Rows = list[dict[str, Any]]
CONFIGS = ("default", "no_language", "perturbed")


def rows_of(folder: Path, config: str) -> Rows:
    data = folder / "data" if config == "default" else folder / config / "data"
    return [row for path in sorted(data.iterdir()) for row in pq.read_table(path).to_pylist()]


@pytest.fixture(scope="session")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("toy") / NAME)


@pytest.fixture(scope="session")
def rows(toy: Path) -> dict[str, Rows]:
    return {config: rows_of(toy, config) for config in CONFIGS}


# What the configs hold


@pytest.mark.parametrize("control", CONTROLS)
def test_a_control_has_the_same_rows_but_for_what_is_shown(
    rows: dict[str, Rows], control: str
) -> None:
    assert len(rows[control]) == len(rows["default"]) == 1200
    for shown, row in zip(rows[control], rows["default"], strict=True):
        for column in row.keys() - {"question", "choices"}:
            assert shown[column] == row[column], column
        assert shown["question"] != row["question"]
        assert shown["choices"]["label"] == row["choices"]["label"]


def test_no_language_keeps_the_mask_and_the_arguments_as_they_stand(
    rows: dict[str, Rows],
) -> None:
    for row in rows["no_language"]:
        first, second = (one["value"] for one in row["arguments"])
        expected = {"claim": f"{MASK} {first} {second}", "likeness": f"{second} {first} {MASK}"}
        assert row["question"] == expected[row["template"]]


def test_no_language_keeps_the_arguments_of_wordings_that_show_none_of_them() -> None:
    wordings = tuple(
        Wording(name, text, (), 1)
        for name, text in (("a", "Is {{ x }} it?"), ("b", "Is {{ lemma }}?"))
    )
    template = replace(TOY.template(TOY.options()), questions=wordings, arguments=("x", "y"))
    fields = {name: pa.array([name, name]) for name in ("x", "y", "lemma")}
    batch = QuestionBatch(template, fields, np.arange(2), np.arange(2))
    assert without_language(batch).to_pylist() == ["x", "x y"]


def test_each_answer_has_one_nonsense_word(rows: dict[str, Rows]) -> None:
    pairs = {
        pair
        for plain, shown in zip(rows["default"], rows["no_language"], strict=True)
        for pair in zip(plain["choices"]["text"], shown["choices"]["text"], strict=True)
    }
    assert {answer for answer, _ in pairs} == set(ANSWERS)
    assert len(pairs) == len({nonsense for _, nonsense in pairs}) == len(ANSWERS)
    assert {nonsense for _, nonsense in pairs} <= set(NONSENSE)


@pytest.mark.slow
def test_the_nonsense_words_are_seeded(tmp_path: Path) -> None:
    drawn = {
        tuple(sorted({text for row in rows_of(folder, "no_language") for text in texts_of(row)}))
        for seed in range(4)
        for folder in [written(tmp_path / str(seed), seed=seed, pairs=8)]
    }
    assert len(drawn) > 1


def texts_of(row: dict[str, Any]) -> list[str]:
    return list(row["choices"]["text"])


def test_perturbed_replaces_the_key_words_and_nothing_else(rows: dict[str, Rows]) -> None:
    wordings = {
        "claim": r'(\w+) (\w+) \[MASK\] (?:one )?"{first}", \1 \2 {strong} {second}\.',
        "likeness": r"{second}, (\w+) {upper}, (\w+) \[MASK\] {strong}",
    }
    drawn = set()
    for plain, shown in zip(rows["default"], rows["perturbed"], strict=True):
        first, second = (one["value"] for one in plain["arguments"])
        strong = next(text for text in texts_of(plain) if text != "not")
        pattern = wordings[plain["template"]].format(
            first=first, upper=first.upper(), second=second, strong=strong
        )
        match = re.fullmatch(pattern, shown["question"])
        assert match, shown["question"]
        assert set(match.groups()) <= set(NONSENSE)
        assert texts_of(shown) == texts_of(plain)
        drawn.add((plain["template"], match.groups()))
    assert len(drawn) == 2 * len(NONSENSE) ** 2  # each pair of words, in each wording


def test_all_words_outside_of_the_data_can_be_key_words(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text(
        "question: [{id: own, text: 'It isn''t {{ first }} but [MASK], {{ second }}?', "
        "key_words: all}]",
        encoding="utf-8",
    )
    done = build(replace(request(template=own, pairs=40), audit=False))
    plain, shown = (done.configs[config]["test"].table().to_pylist() for config in CONFIGS[::2])
    for before, after in zip(plain, shown, strict=True):
        first, second = (one["value"] for one in before["arguments"])
        match = re.fullmatch(rf"(\w+) (\w+) {first} (\w+) \[MASK\], {second}\?", after["question"])
        assert match, after["question"]
        assert set(match.groups()) <= set(NONSENSE)


def test_no_nonsense_word_is_a_word_of_the_question_or_a_choice() -> None:
    """Words of the question itself: "a fee"; and of the choices: "to snap"."""
    texts = pa.array([f"[MASK] is {word}." for word in NONSENSE] + ["Foo, DA and fees"])
    choices = pa.array(["a snap", "other", "foes"])
    codes = np.array([[1, 2]] * len(NONSENSE) + [[1, 2], [0, 1]])
    question = np.array([*range(len(NONSENSE)), len(NONSENSE), 0])
    taken = nonsense_in(texts)
    mark_beside(taken, question, nonsense_in(choices), codes)
    expected = np.eye(len(NONSENSE) + 1, len(NONSENSE), dtype=np.bool_)
    expected[-1, [NONSENSE.index("foo"), NONSENSE.index("da")]] = True
    expected[0, NONSENSE.index("snap")] = True
    assert (taken == expected).all()

    wording = Wording("own", "{{ x }} meets [MASK]", ("meets",), 1)
    template = replace(TOY.template(TOY.options()), questions=(wording,))
    fields = {"x": pa.array([*NONSENSE, "foo da"])}
    lines = np.arange(len(NONSENSE) + 1)
    batch = QuestionBatch(template, fields, lines, np.zeros_like(lines))
    for seed in range(20):
        shown = perturbed(batch, lines, taken, RandomGenerator.of(seed, "t")).to_pylist()
        drawn = [text.split()[-2] for text in shown]
        assert not any(taken[line, NONSENSE.index(word)] for line, word in enumerate(drawn))
    answers = pa.array(["not", "really"])
    two_free = np.ones(len(NONSENSE), dtype=np.bool_)
    two_free[[2, 5]] = False
    for seed in range(20):
        nonsense = nonsense_answers(answers, two_free, RandomGenerator.of(seed, "t"))
        assert set(nonsense.to_pylist()) == {NONSENSE[2], NONSENSE[5]}


@pytest.mark.parametrize(
    "name",
    [
        "taxonomy_conjunction",
        "property_conjunction",
        "property_conjunction_but_not",
        "encyclopedic_composition",
    ],
)
def test_no_relation_word_of_a_conjunction_is_left(name: str) -> None:
    declared = find_probe(name)
    for wording in declared.template(declared.options()).questions:
        replaced = {word for phrase in wording.key_words for word in phrase.split()}
        fields = declared.question_fields or ("entity",)
        left = set(key_words_of_text(wording.text, fields)) - replaced
        assert left <= {"a", "an", "are", "have", "is", "that", "The", "the", "What"}, wording.id


def test_controls_leave_the_default_config_as_it_is(tmp_path: Path, toy: Path) -> None:
    alone = written(tmp_path / NAME, controls=False)
    assert sorted(path.name for path in alone.iterdir()) == ["README.md", "data", "manifest.json"]
    for path in (alone / "data").iterdir():
        assert path.read_bytes() == (toy / "data" / path.name).read_bytes()
    assert "build-probe toy_cloze --no-controls\n" in (alone / "README.md").read_text()


def test_rows_of_a_limited_build_are_shown_alike(tmp_path: Path, rows: dict[str, Rows]) -> None:
    folder = written(tmp_path / "limited", limit=60)
    for config in CONFIGS:
        full = {row["id"]: row for row in rows[config]}
        limited = rows_of(folder, config)
        assert 50 < len(limited) <= 60
        assert all(full[row["id"]] == row for row in limited)


def test_clusters_that_are_not_concepts_stay_whole(tmp_path: Path, rows: dict[str, Rows]) -> None:
    names = [row["cluster"] for row in rows["default"]]
    assert len(set(names)) == 600
    assert len({row["concept"] for row in rows["default"]}) == 1200
    assert all(names.count(name) == 2 for name in names[:50])
    changes = sum(one != other for one, other in pairwise(names))
    assert changes == 599, "rows of a cluster stand together"
    manifest = json.loads((written(tmp_path / "l", limit=61) / "manifest.json").read_text())
    assert manifest["counts"]["rows"] == 60
    assert (manifest["counts"]["clusters"], manifest["counts"]["concepts"]) == (30, 60)


def test_relations_may_differ_from_row_to_row(rows: dict[str, Rows]) -> None:
    for row in rows["default"]:
        assert row["relation"] == (
            "antonym" if texts_of(row)[row["answer"]] == "not" else "synonym"
        )


# Files, card, loading


def test_manifest_and_card_list_each_config(toy: Path) -> None:
    manifest = json.loads((toy / "manifest.json").read_text())
    _, front, text = (toy / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    configs = yaml.safe_load(front)["configs"]
    assert [config["config_name"] for config in configs] == list(CONFIGS)
    assert [config.get("default", False) for config in configs] == [True, False, False]
    for config in configs:
        files = [file for file in manifest["files"] if file["config"] == config["config_name"]]
        assert config["data_files"] == [
            {"split": file["split"], "path": file["path"]} for file in files
        ]
        assert [file["split"] for file in files] == ["train", "validation", "test"]
    assert manifest["files"][3]["path"] == "no_language/data/train-00000-of-00001.parquet"
    for control, about in CONTROLS.items():
        assert f"| `{control}` | {about} |" in text


@pytest.mark.parametrize("config", [None, *CONFIGS])
def test_datasets_loads_each_config(
    toy: Path, tmp_path: Path, rows: dict[str, Rows], config: str | None
) -> None:
    import datasets

    loaded = datasets.load_dataset(str(toy), config, cache_dir=str(tmp_path / "hf"))
    expected = {row["id"]: row for row in rows[config or "default"]}
    assert list(loaded) == ["train", "validation", "test"]
    assert {row["id"]: row for split in loaded.values() for row in split.to_list()} == expected


@pytest.mark.parametrize("config", CONFIGS)
def test_each_config_loads_and_opens_for_evaluation(
    toy: Path, rows: dict[str, Rows], config: str
) -> None:
    expected = {row["id"]: row for row in rows[config]}
    loaded = kbprobe.load(toy, config)
    assert {row["id"]: row for split in loaded.values() for row in split.to_list()} == expected
    opened = open_probe(str(toy), config=config)
    assert opened.name == (NAME if config == "default" else f"{NAME}-{config}")
    assert opened.items
    for item in opened.items:
        assert item.question == expected[item.id]["question"]
        assert list(item.choices) == texts_of(expected[item.id])


def test_an_unknown_config_is_answered_with_those_that_there_are(
    toy: Path, registered: str
) -> None:
    with pytest.raises(
        UsageError, match=r"no config 'no_langauge'.*'no_language'.*It has: default"
    ):
        kbprobe.load(toy, "no_langauge")
    with pytest.raises(UsageError, match=r"controls=True. It has: default\."):
        builders.build(NAME, pairs=8, controls=False, config="perturbed")


@pytest.mark.slow
def test_building_from_python_gives_the_config_asked_for(
    tmp_path: Path, toy: Path, registered: str
) -> None:
    ids = {config: kbprobe.load(toy, config)["test"]["id"] for config in CONFIGS}
    for output in (None, tmp_path / "out", tmp_path / "out"):  # the third finds the second
        built = builders.build(NAME, config="no_language", output=output, audit=True)
        assert built["test"]["id"] == ids["no_language"] == ids["default"]
        assert MASK in built["test"]["question"][0]
        assert set(built["test"]["choices"][0]["text"]) <= set(NONSENSE)
    assert kbprobe.load(tmp_path / "out")["test"]["id"] == ids["default"]


def test_damage_to_a_control_is_found(tmp_path: Path) -> None:
    folder = written(tmp_path / NAME, pairs=40)
    damaged = folder / "perturbed" / "data" / "test-00000-of-00001.parquet"
    damaged.write_bytes(b"")
    assert len(damaged_files(folder, read_manifest(folder).files)) == 1
    with pytest.raises(KbprobeError, match="perturbed/data/test"):
        kbprobe.load(folder, "perturbed")
    assert kbprobe.load(folder)["test"].num_rows  # what is asked for is whole


@pytest.mark.slow
def test_json_lines_and_rebuilding_cover_controls(
    tmp_path: Path, registered: str, build_probe: Run
) -> None:
    done = build_probe(NAME, "--pairs", "80", "--format", "jsonl", "-o", "probe")
    assert done.returncode == 0, done.stderr
    assert "\nno_language: " in done.stdout
    folder = tmp_path / "probe"
    lines = [
        [json.loads(line) for line in (folder / place / "test.jsonl").read_text().splitlines()]
        for place in ("data", "no_language/data", "perturbed/data")
    ]
    assert len({tuple(row["id"] for row in some) for some in lines}) == 1
    assert open_probe(str(folder), config="perturbed").items[0].question == lines[2][0]["question"]
    assert build_probe("--from-manifest", "probe").returncode == 0
    again = build_probe(NAME, "--pairs", "80", "--format", "jsonl", "-o", "probe")
    assert "already holds exactly this" in again.stdout
    other = build_probe(NAME, "--pairs", "80", "--format", "jsonl", "--no-controls", "-o", "probe")
    assert other.returncode == 2
    assert "another request" in other.stderr
    # Another row in a control is another row.
    manifest = json.loads((folder / "manifest.json").read_text())
    entry = next(file for file in manifest["files"] if file["config"] == "perturbed")
    entry |= {"sha256": "0" * 64, "rows_sha256": "0" * 64}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    failed = build_probe("--from-manifest", "probe")
    assert failed.returncode == 1
    assert f"{entry['path']}: other rows" in failed.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", ["wordnet_definitions", "wordnet_hypernymy"])
def test_open_choices_stay_and_wordnetqa_has_controls_on_demand(
    name: str, miniature: str, tmp_path: Path
) -> None:
    words = {"wordnet": miniature, "pos": ("verb",), "limit": 60, "audit": False}
    with pytest.raises(UsageError, match=r"no config 'perturbed'\. Build it with controls=True"):
        builders.build(name, config="perturbed", **words)
    builders.build(name, output=tmp_path / name, controls=True, **words)
    plain, bare, odd = (kbprobe.load(tmp_path / name, config)["test"] for config in CONFIGS)
    assert plain["id"] == bare["id"] == odd["id"]
    assert plain["choices"] == bare["choices"] == odd["choices"]
    assert bare["question"] == [row["arguments"][0]["value"] for row in plain]
    for before, after, row in zip(plain["question"], odd["question"], plain, strict=True):
        assert before != after
        assert row["context"] in after
        assert row["surface_form"] in after


# What a template must offer


TEMPLATE = """\
extends: false
question: [{{id: own, text: '{text}', key_words: {key_words}}}]
arguments: {arguments}
"""


def with_template(tmp_path: Path, **changes: str) -> Path:
    text = {
        "text": "{{ first }} [MASK] meets {{ second }}",
        "key_words": "[meets]",
        "arguments": "[first]",
    }
    path = tmp_path / "own.yaml"
    path.write_text(TEMPLATE.format(**{**text, **changes}), encoding="utf-8")
    return path


def test_a_wording_without_a_mask_is_refused_before_anything_is_planned(tmp_path: Path) -> None:
    planless = replace(TOY, plan=lambda *_: pytest.fail("it was planned"))
    template = with_template(tmp_path, text="{{ first }} meets {{ second }}")
    with pytest.raises(TemplateError, match=r"own\.yaml: .* shows \[MASK\] .* 'own'"):
        build(replace(request(template=template), probe=planless))


@pytest.mark.parametrize(
    ("changes", "lacking"),
    [
        ({"key_words": "[]"}, {"perturbed": "own.yaml has no 'key_words', .* the wording 'own'"}),
        ({"arguments": "[]"}, {"no_language": "own.yaml names no 'arguments'"}),
    ],
)
def test_what_a_template_does_not_allow_is_left_out_and_said(
    tmp_path: Path, changes: dict[str, str], lacking: dict[str, str]
) -> None:
    asked = request(template=with_template(tmp_path, **changes), pairs=60)
    made = build(asked)
    assert set(made.configs) == {"default", "no_language", "perturbed"} - {*lacking}
    manifest = write(made, tmp_path / "probe")
    card = (tmp_path / "probe" / "README.md").read_text(encoding="utf-8")
    for control, reason in lacking.items():
        assert re.fullmatch(f"{reason}.*", manifest["template"]["controls_lacking"][control])
        assert f"There is no config {control}: own.yaml" in card
        with pytest.raises(UsageError, match=f"has no config '{control}'. {reason}"):
            asked.check_config(control)


def test_key_words_can_be_left_out(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    text = "{{ first }} [MASK] meets {{ second }}"
    path.write_text(f"extends: true\nquestion: [{{id: own, text: '{text}'}}]\n", encoding="utf-8")
    made = build(request(template=path, pairs=60))
    assert "perturbed" not in made.configs
    added = made.manifest["template"]["added_rows"]
    rows = [row for items in made.splits.values() for row in plain_table(items.table()).to_pylist()]
    assert added == {"own": sum(row["template"] == "own" for row in rows)}
    assert told_wordings(made.manifest)[0] == (
        f"Of {len(rows)} rows, the wordings of own.yaml ask {added['own']} "
        f"({added['own'] / len(rows):.1%})."
    )


def test_without_controls_a_template_need_not_offer_them(tmp_path: Path) -> None:
    path = with_template(tmp_path, key_words="[]", arguments="[]")
    made = build(request(template=path, controls=False, pairs=8))
    assert list(made.configs) == ["default"]
    assert "controls_lacking" not in made.manifest["template"]


def test_one_wording_asks_all_rows() -> None:
    def rows(**options: Any) -> list[dict[str, Any]]:
        splits = build(request(controls=False, pairs=60, **options)).splits.values()
        return [row for items in splits for row in plain_table(items.table()).to_pylist()]

    every = rows()
    wordings = {row["template"] for row in every}
    assert len(wordings) > 1
    for wording in wordings:
        made = rows(wording=wording)
        assert [row["id"] for row in made] == [row["id"] for row in every]
        assert {row["template"] for row in made} == {wording}
    with pytest.raises(UsageError, match=r"no wording 'no-such'.*--wording takes: ") as error:
        rows(wording="no-such")
    assert all(wording in str(error.value) for wording in wordings)


@pytest.mark.parametrize(
    "text",
    [
        "{{ first }} [MASK] meets [MASK] {{ second }}",
        '{% if pos == "noun" %}[MASK] {% endif %}{{ first }} meets {{ second }}',
    ],
)
def test_a_cloze_question_shows_its_mask_once(tmp_path: Path, text: str) -> None:
    with pytest.raises(TemplateError, match=r"own \(text\): .* exactly once, not as in"):
        build(request(template=with_template(tmp_path, text=text.replace("'", "''"))))


def test_an_unknown_control_setup_or_paper_is_refused() -> None:
    for wrong in ({"controls": ["no_langauge"]}, {"setup": "mlm"}, {"paper": "mine"}):
        register = probe(
            "other_toy",
            options=TOY.options,
            open=TOY.open,
            question_fields=(),
            choice_fields=(),
            **wrong,  # type: ignore[arg-type]
        )
        with pytest.raises(KbprobeError, match=r"other_toy: .* is none of"):
            register(TOY.plan)
    with pytest.raises(UsageError):
        find_probe("other_toy")


# Changes to a syntax tree


def kept(source: str, arguments: tuple[str, ...] = ("x", "y"), **fields: str) -> str:
    values = {"x": "X", "y": "Y", "z": "Z", **fields}
    rewrite = KeepArguments(frozenset(arguments))
    (text,) = render_batch(source, {name: [value] for name, value in values.items()}, "t", rewrite)
    return re.sub(f"{SEPARATOR}+", " ", text).strip()


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("A {{ x }} year old is [MASK] than a {{ y }}.", "X [MASK] Y"),
        ("{{y}}{{x|quoted}}[MASK]", "Y X [MASK]"),
        ("{{ z }} and {{ x | lower | capitalize_first }}", "X"),
        ("{% if z == 'Z' %}{{ x }}{% else %}{{ y }}{% endif %} [MASK]", "X [MASK]"),
        ("{% if x == 'X' %}[MASK]{% endif %} is {{ y }}", "[MASK] Y"),
        ("{{ x if z == y else 'none' }}, {{ y if z == 'Z' }}", "Y"),
        ("{{ 'a ' ~ x ~ y }} {{ x == y }}", "X Y"),
        ("{{ y | default('none') }} {{ (z, x) }}", "Y X"),
        ("only words", ""),
    ],
)
def test_arguments_are_kept_where_they_stand(source: str, expected: str) -> None:
    assert kept(source) == expected


def test_spaces_within_an_argument_are_kept() -> None:
    assert kept("a {{ x }} of [MASK]", x="two  words") == "two  words [MASK]"


def test_blanks_stand_for_arguments_alone() -> None:
    source = "{% if z == 'Z' %}An {{ x | quoted }}{% endif %} is {{ z }} {{ 'a' ~ y }}."
    rewrite = BlankArguments(frozenset("xy"))
    fields = {"x": ["1", "2"], "y": ["3", "4"], "z": ["Z", "z"]}
    assert render_batch(source, fields, "t", rewrite) == ["An _ is Z _.", "is z _."]


def test_key_words_are_replaced_as_whole_words_and_not_in_the_data() -> None:
    rewrite = ReplaceWords(
        ("kind of", "kind", "of"), (("kind", "nonsense_0"), ("of", "nonsense_1"))
    )
    fields = {"x": ["kind of"], "nonsense_0": ["blah"], "nonsense_1": ["ya"]}
    source = "Kind kind\n  of {{ x }}, mankind, {% if x == 'kind of' %}of{% endif %} it"
    (text,) = render_batch(source, fields, "t", rewrite)
    assert text == "Kind blah ya kind of, mankind, ya it"


def test_a_control_is_one_rendering_call_for_each_wording(monkeypatch: pytest.MonkeyPatch) -> None:
    from builders.engine.render import assemble as stems

    calls: list[int] = []

    def counted(source: str, fields: Any, where: str, rewrite: Any = None) -> list[str]:
        calls.append(len(next(iter(fields.values()))))
        return render_batch(source, fields, where, rewrite)

    monkeypatch.setattr(stems, "render_batch", counted)
    build(replace(request(pairs=3000), audit=False))
    # Text and two controls, in two wordings each, and the three arguments once; frames are rendered
    # for the audit alone.
    assert len(calls) == 7
    assert sum(calls) == 3 * 3000 + 3


def test_choices_of_any_table_can_stand_beside_concepts_of_another(rows: dict[str, Rows]) -> None:
    assert {node for row in rows["default"] for node in row["choice_nodes"]} == set(ANSWERS)
    plan = build(replace(request(pairs=8), audit=False)).splits["train"].table()
    assert pa.types.is_dictionary(plan["concept"].type)
    assert not set(plan["concept"].to_pylist()) & set(ANSWERS)
    assert np.unique(plan["choices"].combine_chunks().field("text").value_lengths()).tolist() == [2]
