"""The command ``build-probe``: what it prints, refuses and builds, and its exit codes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import builders
from builders.engine.listing import listed_probes, table
from builders.engine.probe import find_probe

Built = Callable[[str, str], Path]
Run = Callable[..., "subprocess.CompletedProcess[str]"]

NAME = "wordnet_hyponymy"
SMALL = ("--wordnet", "miniature", "--pos", "noun", "--limit", "200", "--no-audit")


def manifest_in(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "manifest.json").read_text(encoding="utf-8")))


def refused(done: subprocess.CompletedProcess[str]) -> str:
    """Check that a request was refused in plain words; return them."""
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    first, *rest = done.stderr.splitlines()
    # click adds how the command is called; our own refusals are one line.
    assert rest == [] or rest[0].startswith("Usage: ")
    assert first.startswith("build-probe: error: ")
    return first


# Names and options


def test_show_tells_wordings_options_and_defaults(build_probe: Run) -> None:
    shown = build_probe("show", NAME)
    assert shown.returncode == 0, shown.stderr
    probe = find_probe(NAME)
    text = " ".join(shown.stdout.split())
    assert probe.summary in text
    assert "paper:" in text
    for name in probe.options.model_fields:
        assert f"--{name.replace('_', '-')}" in text


@pytest.mark.slow
def test_help_without_a_probe_names_them_all(build_probe_process: Run) -> None:
    for args in (["--help"], []):
        shown = build_probe_process(*args)
        assert shown.returncode == 0
        for name in builders.names():
            assert name in shown.stdout
        assert "--seed" in shown.stdout


@pytest.mark.parametrize("name", builders.names())
def test_help_of_a_probe_describes_each_of_its_options(build_probe: Run, name: str) -> None:
    shown = build_probe(name, "--help-all")
    assert shown.returncode == 0
    text = "".join(shown.stdout.split())
    probe = find_probe(name)
    assert "".join(probe.summary.split()) in text
    for option, info in probe.options.model_fields.items():
        assert f"--{option.replace('_', '-')}" in text
        assert info.description
        assert "".join(info.description.split()) in text


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["wordnet_hypernimy"], ["'wordnet_hypernimy'", "Did you mean 'wordnet_hypernymy'?"]),
        (["show", "wordnet_hypernimy"], ["Did you mean 'wordnet_hypernymy'?", "build-probe list"]),
        ([NAME, "--max-hop", "2"], ["--max-hop", "--max-hops"]),
        ([NAME, "--families", "sistr"], ["--families", "'sistr'", "Did you mean 'sister'?"]),
        ([NAME, "--families", "sibling"], ["'sibling'", "sibling_branch"]),
        ([NAME, "--wordnet", "3.00"], ["'3.00'", "--wordnet 3.0", "kb-cache fetch"]),
        ([NAME, "--max-hops", "0"], ["--max-hops", "at least 1", "'0'"]),
        ([NAME, "--max-hops", "two"], ["--max-hops", "'two'"]),
        ([NAME, "--choices", "1"], ["--choices", "at least 2", "'1'"]),
        ([NAME, "--choices", "30"], ["--choices", "at most 26", "'30'"]),
        ([NAME, "--limit", "0"], ["--limit", "'0'"]),
        ([NAME, "--seed", "x"], ["--seed", "'x'"]),
        ([NAME, "--pos", "adjective"], ["--pos", "noun, verb", "'adjective'"]),
        ([NAME, "--split-shares", "0.5,0.5,0.5"], ["--split-shares", "add up to 1"]),
        ([NAME, "--split-shares", "0.5,0.5"], ["--split-shares"]),
        ([NAME, "--split-shares", "-1,1,1"], ["--split-shares", "0 or more"]),
        ([NAME, "--sampling", "fair"], ["--sampling", "grouped, uniform", "'fair'"]),
        ([NAME, "--format", "csv"], ["--format", "'csv'", "parquet"]),
        ([NAME, "--template", "none.yaml"], ["none.yaml", "No such file"]),
        ([NAME, "--stop-golds", "dog.n.99"], ["'dog.n.99'", "Did you mean"]),
        ([NAME, *SMALL, "--min-zipf", "8"], ["no question is left", "too rare"]),
        (["--recipe", "none.yaml"], ["none.yaml", "No such file"]),
        (["--from-manifest", "none.json"], ["none.json"]),
        (["--json"], ["name the probes", "--recipe", "--from-manifest"]),
        ([NAME, "--recipe", "none.yaml"], ["one of them"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_impossible_requests_are_refused_in_one_line(
    build_probe: Run, tmp_path: Path, args: list[str], words: list[str]
) -> None:
    message = refused(build_probe(*args))
    for word in words:
        assert word in message
    assert not (tmp_path / "probes").exists()


@pytest.mark.slow
def test_a_refusal_is_the_same_in_a_process_of_its_own(
    build_probe: Run, build_probe_process: Run
) -> None:
    args = ["wordnet_hypernimy", "--max-hops", "0"]
    alone, here = build_probe_process(*args), build_probe(*args)
    assert refused(alone) == refused(here)


@pytest.mark.parametrize(
    "args",
    [
        ["--choices", "26", "--families", "hypernym", "--sampling", "uniform", "--max-fill", "0"],
        ["--min-depth", "30"],
    ],
    ids=" ".join,
)
def test_options_that_leave_no_question_are_refused(build_probe: Run, args: list[str]) -> None:
    assert "no question is left" in refused(build_probe(NAME, *SMALL, *args))


@pytest.mark.slow
def test_a_traceback_is_shown_with_debug_alone(build_probe_process: Run) -> None:
    shown = build_probe_process(NAME, "--max-hops", "0", "--debug")
    assert shown.returncode != 0
    assert "Traceback" in shown.stderr
    assert "UsageError" in shown.stderr


# Builds


def test_the_end_of_a_build_tells_what_was_built(
    build_probe: Run, build_probe_process: Run, tmp_path: Path
) -> None:
    done = build_probe(NAME, *SMALL[:-1])
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "probes" / NAME
    manifest = manifest_in(folder)
    counts = manifest["counts"]
    assert f"{counts['rows']:,} rows" in done.stdout
    assert f"{counts['question_answer_pairs']:,} distinct" in done.stdout
    assert f"{counts['concepts']:,} concepts" in done.stdout
    assert "Rows by distractor family and hops" in done.stdout
    assert "choice-only model" in done.stdout
    assert done.stdout.count("  * ") == 3  # three samples, the gold of each marked
    assert f'load_dataset("{Path("probes") / NAME}")' in done.stdout
    assert done.stderr == ""
    told = re.search(r"\nLeft out:\n((?:  .*\n)+)", done.stdout)
    assert told
    largest = max(counts["dropped"].items(), key=lambda one: one[1])
    assert told[1].startswith(f"  {largest[1]:,}: {largest[0]}")
    assert len(told[1].splitlines()) <= 4
    assert sum(int(part.split(":")[0].replace(",", "")) for part in told[1].splitlines()) == sum(
        counts["dropped"].values()
    )

    again = build_probe_process(NAME, *SMALL[:-1], PYTHONPROFILEIMPORTTIME="1")
    assert again.returncode == 0
    assert "builders.engine.request" in again.stderr
    for what_builds in ("builders.engine.pipeline", "kbprobe.audit.report", "rich.console"):
        assert what_builds not in again.stderr
    assert "already holds exactly this" in again.stdout
    assert manifest_in(folder) == manifest


@pytest.mark.slow
def test_two_probes_in_one_call_share_options_and_get_a_folder_each(
    build_probe: Run, tmp_path: Path
) -> None:
    names = [NAME, "wordnet_definitions"]
    done = build_probe(*names, *SMALL, "--max-hops", "2", "-o", "both", "--json")
    assert done.returncode == 0, done.stderr
    # The one that lacks an option of the other is named.
    assert (
        done.stderr
        == "build-probe: wordnet_definitions has no --max-hops: it is built without that.\n"
    )
    printed = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["probe"] for one in printed] == names
    for one, name in zip(printed, names, strict=True):
        assert Path(one.pop("folder")) == Path("both") / name
        assert one == manifest_in(tmp_path / "both" / name)
        assert 100 < one["counts"]["rows"] <= 200
    assert printed[0]["request"]["options"]["max_hops"] == 2
    assert set(printed[0]["counts"]["cells"]) <= {"1", "2"}


def test_a_wrong_second_probe_stops_before_the_first(build_probe: Run, tmp_path: Path) -> None:
    refused(build_probe(NAME, "wordnet_antonymie", *SMALL, "-o", "both"))
    assert not (tmp_path / "both").exists()


@pytest.mark.slow
def test_options_change_what_is_built(build_probe: Run, tmp_path: Path) -> None:
    done = build_probe(
        NAME, *SMALL, "--choices", "3", "--families", "random,sister", "--sampling", "uniform",
        "--sister-depth", "1", "--seed", "7", "-o", "probe",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    manifest = manifest_in(tmp_path / "probe")
    assert manifest["request"]["seed"] == 7
    assert {label for row in manifest["counts"]["cells"].values() for label in row} == {
        "random",
        "sister 1",
    }
    rows = pq.read_table(tmp_path / "probe" / "data").to_pylist()
    assert {len(row["choices"]["text"]) for row in rows} == {3}
    assert {row["pos"] for row in rows} == {"noun"}
    assert 0 < len(rows) <= 200


# Recipes and manifests


@pytest.mark.slow
def test_a_recipe_builds_what_it_declares(build_probe: Run, tmp_path: Path) -> None:
    (tmp_path / "recipe.yaml").write_text(
        f"""
output: set
seed: 3
probes:
  - probe: {NAME}
    options: {{wordnet: miniature, pos: [noun], limit: 60}}
  - probe: {NAME}
    output: easy
    seed: 4
    options: {{wordnet: miniature, pos: [noun], limit: 60, families: [random]}}
""",
        encoding="utf-8",
    )
    done = build_probe("--recipe", "recipe.yaml", "--no-audit")
    assert done.returncode == 0, done.stderr
    requests = [manifest_in(tmp_path / "set" / name)["request"] for name in (NAME, "easy")]
    assert [request["seed"] for request in requests] == [3, 4]
    assert [request["options"]["families"] for request in requests] == [
        ["near", "random"],
        ["random"],
    ]
    again = build_probe("--recipe", "recipe.yaml", "--no-audit")
    assert again.stdout.count("already holds exactly this") == 2


@pytest.mark.parametrize(
    ("recipe", "words"),
    [
        (f"probes: [{{probe: {NAME}, option: {{}}}}]", ["probes.0.option", "is unknown"]),
        (f"probe: {NAME}", ["recipe.yaml", "probes", "is missing"]),
        ("probes: []", ["recipe.yaml", "probes", "at least one"]),
        ("probes: [{probe: wordnet_hyponimy}]", ["Did you mean 'wordnet_hyponymy'?"]),
        (f"probes: [{{probe: {NAME}, options: {{max_hop: 2}}}}]", ["recipe.yaml", "max_hops"]),
        (f"probes: [{{probe: {NAME}, options: {{max_hops: 0}}}}]", ["recipe.yaml", "max-hops"]),
        (f"probes: [{{probe: {NAME}}}, {{probe: {NAME}}}]", ["recipe.yaml", "'output'"]),
        ("probes: [", ["recipe.yaml", "YAML"]),
        ("just a text", ["recipe.yaml"]),
        ("probes: [{probe: " + "[" * 9_999 + "]" * 9_999 + "}]", ["recipe.yaml", "nested"]),
        (
            "a0: &a0 [x]\n"
            + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 20)),
            ["recipe.yaml", "more than 100,000 values"],
        ),
        (f"seed: {'9' * 5_000}\nprobes: [{{probe: {NAME}}}]", ["recipe.yaml", "64 bits"]),
        (f"seed: 2024-02-30\nprobes: [{{probe: {NAME}}}]", ["seed", "whole number"]),
        (f"seed: .nan\nprobes: [{{probe: {NAME}}}]", ["recipe.yaml", "not a finite number"]),
        (f"probes: [{{probe: {NAME}, probe: {NAME}}}]", ["line 1", "given twice"]),
        (
            f"probes: [{{probe: {NAME}, output: ../x}}]",
            ["probes.0.output", "within the parent of all probes"],
        ),
        (
            f"probes: [{{probe: {NAME}, output: /x}}]",
            ["probes.0.output", "within the parent of all probes"],
        ),
        (f"probes: [{', '.join([f'{{probe: {NAME}}}'] * 1_001)}]", ["probes", "at most 1000"]),
        ("probes: !!python/object:os.system {}", ["recipe.yaml", "line 1"]),
    ],
)
def test_a_faulty_recipe_is_refused(
    build_probe: Run, tmp_path: Path, recipe: str, words: list[str]
) -> None:
    (tmp_path / "recipe.yaml").write_text(recipe, encoding="utf-8")
    done = build_probe("--recipe", "recipe.yaml")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["recipe.yaml"]


@pytest.fixture
def folder(built: Built, tmp_path: Path) -> Path:
    """A copy of a small built probe, which a test may change."""
    return Path(shutil.copytree(built(NAME, "small"), tmp_path / "probe"))


@pytest.mark.slow
def test_a_manifest_is_built_again_and_found_the_same(
    build_probe: Run, folder: Path, tmp_path: Path
) -> None:
    done = build_probe("--from-manifest", folder / "manifest.json", "-o", "again")
    assert done.returncode == 0, done.stderr
    assert "the same" in done.stdout
    for file in manifest_in(folder)["files"]:
        there = tmp_path / "again" / file["path"]
        assert there.read_bytes() == (folder / file["path"]).read_bytes()
    # Without an output it compares and leaves nothing behind; a folder will do for its manifest.
    before = sorted(path.name for path in tmp_path.iterdir())
    assert build_probe("--from-manifest", folder).returncode == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == before


@pytest.mark.slow
@pytest.mark.parametrize("key", ["sha256", "rows"])
def test_a_manifest_of_other_rows_is_found_out(build_probe: Run, folder: Path, key: str) -> None:
    """Its checksums were changed, or its options do not make the rows that it tells of."""
    manifest = manifest_in(folder)
    if key == "sha256":
        manifest["files"][0] |= {"sha256": "0" * 64, "rows_sha256": "0" * 64}
    else:
        manifest["request"]["options"]["limit"] = 150
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    done = build_probe("--from-manifest", folder / "manifest.json")
    assert done.returncode == 1
    assert manifest["files"][0]["path"] in done.stderr
    assert "other rows" in done.stderr
    assert "the same" not in done.stdout


def test_a_manifest_with_an_option_that_was_removed_is_refused(
    build_probe: Run, folder: Path
) -> None:
    manifest = manifest_in(folder)
    manifest["request"]["options"]["max_contexts"] = 3
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    done = build_probe("--from-manifest", folder / "manifest.json")
    assert done.returncode == 2
    assert "the manifest records options that" in done.stderr
    assert "--max-contexts. Rebuild it with the version" in done.stderr


@pytest.mark.parametrize("key", ["knowledge_base", "template_digest"])
def test_a_manifest_from_another_source_is_refused(
    build_probe: Run, folder: Path, key: str
) -> None:
    manifest = manifest_in(folder)
    manifest["request"][key] = "f" * 64
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    done = build_probe("--from-manifest", folder / "manifest.json")
    assert done.returncode in (1, 2)
    assert "ffffffffffff" in done.stderr
    assert "Traceback" not in done.stderr


# Templates


TEMPLATE = f"""\
probe: {NAME}
extends: true
question:
  - id: mine
    text: 'Name a sort of {{{{ word | quoted }}}}, as in {{{{ sentence | quoted }}}}:'
    key_words: [sort of]
"""


@pytest.mark.slow
def test_a_template_adds_wordings(build_probe: Run, tmp_path: Path, built: Built) -> None:
    (tmp_path / "mine.yaml").write_text(TEMPLATE, encoding="utf-8")
    done = build_probe(NAME, *SMALL, "--template", "mine.yaml", "-o", "probe")
    assert done.returncode == 0, done.stderr
    rows = pq.read_table(tmp_path / "probe" / "data").to_pylist()
    mine = [row["question"] for row in rows if row["template"] == "mine"]
    assert 0 < len(mine) < len(rows)
    assert all(question.startswith("Name a sort of ") for question in mine)
    assert manifest_in(tmp_path / "probe")["template"]["sources"][-1] == "mine.yaml"
    # A wording changes no row's identity.
    ids = {row["id"] for row in pq.read_table(built(NAME, "small") / "data").to_pylist()}
    assert {row["id"] for row in rows} == ids
    # The manifest names the template, and rebuilding asks for it.
    refused_ = build_probe("--from-manifest", "probe")
    assert refused_.returncode in (1, 2)
    assert "mine.yaml" in refused_.stderr
    again = build_probe("--from-manifest", "probe", "--template", "mine.yaml")
    assert again.returncode == 0, again.stderr


def test_rebuilding_a_wording_of_a_template_asks_for_the_template(
    build_probe: Run, tmp_path: Path
) -> None:
    (tmp_path / "mine.yaml").write_text(TEMPLATE, encoding="utf-8")
    asked = ("--template", "mine.yaml", "--wording", "mine")
    done = build_probe(NAME, *SMALL, *asked, "-o", "probe")
    assert done.returncode == 0, done.stderr
    without = build_probe("--from-manifest", "probe")
    assert without.returncode == 1
    assert "built with another template" in without.stderr
    assert "--template (mine.yaml)" in without.stderr


def test_a_wording_of_one_probe_alone_is_refused_before_any_is_built(
    build_probe: Run, tmp_path: Path
) -> None:
    names = ("wordnet_antonymy", "age_comparison")
    wording = build_probe("show", names[0]).stdout.split("Wordings:\n  ")[1].split(":")[0]
    refused_ = build_probe(*names, "--wording", wording, "-o", "both")
    assert refused_.returncode == 2
    assert f"age_comparison has no wording '{wording}'" in refused_.stderr
    assert not (tmp_path / "both").exists()


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ("word | quoted", "wrd | quoted", "mine.yaml:5: question[0].text: unknown field 'wrd'"),
        ("extends", "extend", "mine.yaml:2: unknown key 'extend'. Did you mean 'extends'?"),
        ("[sort of]", "[kind of]", "mine.yaml:6: question[0].key_words[0]: 'kind of'"),
        ("word | quoted }}", "word | quoted", "mine.yaml:5: question[0].text: not valid Jinja"),
        (NAME, "wordnet_hypernymy", "mine.yaml:1: probe: this file is for the probe"),
        ("question:", "question: [", "mine.yaml:4: not valid YAML"),
    ],
)
def test_a_broken_template_is_refused_with_file_line_and_key(
    build_probe: Run, tmp_path: Path, old: str, new: str, where: str
) -> None:
    (tmp_path / "mine.yaml").write_text(TEMPLATE.replace(old, new, 1), encoding="utf-8")
    message = refused(build_probe(NAME, *SMALL, "--template", "mine.yaml"))
    assert where in message
    assert not (tmp_path / "probes").exists()


def test_a_probe_that_fails_leaves_the_others_built(build_probe: Run, tmp_path: Path) -> None:
    (tmp_path / NAME).mkdir()
    (tmp_path / NAME / "mine.txt").write_text("kept")
    done = build_probe(NAME, "age_comparison", "--limit", "20", "--no-audit", "-o", str(tmp_path))
    assert done.returncode == 1
    assert f"{tmp_path / NAME} holds files that are not a probe" in done.stderr
    assert f"1 of 2 probes were not built, for the reasons above: {tmp_path / NAME}" in done.stderr
    assert manifest_in(tmp_path / "age_comparison")["counts"]["rows"]


def test_options_of_several_values_take_text_in_python_as_well() -> None:
    asked = find_probe(NAME).options
    assert asked.parse({"pos": "noun"}, NAME) == asked.parse({"pos": ("noun",)}, NAME)
    assert asked.parse({"pos": "noun, verb"}, NAME).model_dump()["pos"] == ("noun", "verb")


def test_the_list_shows_in_a_narrow_terminal_what_each_probe_asks() -> None:
    lines = list(table(listed_probes(), width=80))
    asked = " ".join(" ".join(lines).split())
    assert max(map(len, lines[: lines.index("")])) <= 80
    assert all(one.summary in asked for one in listed_probes())
