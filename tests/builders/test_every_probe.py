"""What every probe must do, whatever it asks: a new probe is tested here without more code."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

import builders
from builders.engine.pipeline import Built, write
from builders.engine.probe import find_probe
from builders.engine.render.template_file import Template
from builders.engine.request import Request
from kbprobe.errors import MissingDependencyError, SnapshotError, UsageError
from kbprobe.format.card import pretty_name
from kbprobe.format.dataset import data_folder
from kbprobe.format.items import COLUMNS, LABELS, arrow_schema
from kbprobe.format.manifest import SCHEMA_VERSION
from kbprobe.format.setups import CLOZE, MASK, NO_LANGUAGE, SETUPS
from tests.conftest import Make
from tests.real_data import BESIDE, MINIATURE, OWN_DATA, SAMPLE

Rows = list[dict[str, Any]]

LIMIT = 200
LEAST = 40
"""Least rows of a limited build."""


def knowledge_option(name: str) -> str:
    """Return the option of a probe that names what `conceptnet` or `wikidata` loads, if any."""
    fields = find_probe(name).options.model_fields
    if "conceptnet" in fields and fields["conceptnet"].default:
        return "conceptnet"
    return "dump" if "dump" in fields else ""


BY_NAME = pytest.mark.parametrize("name", builders.names())
LIKE_OTHERS = (
    *("fw_comparatives", "fw_coordination", "fw_definiteness", "fw_negation", "fw_prepositions"),
    *("fw_quantification", "fw_spatial", "fw_wh_words", "property_conjunction_but_not"),
    *("encyclopedic_composition", "taxonomy_conjunction", "wordnet_hyponymy"),
)
"""Probes whose plan and miniature are those of others, which are tested by default, or that take
long to build."""
EVERY = pytest.mark.parametrize(
    ("name", "extent"),
    [
        *(
            pytest.param(
                *(name, MINIATURE),
                id=name,
                marks=pytest.mark.slow if name in LIKE_OTHERS else (),
            )
            for name in builders.names()
        ),
        *(
            pytest.param(name, SAMPLE, id=f"{name}-{SAMPLE}", marks=pytest.mark.real_data)
            for name in builders.names()
            if knowledge_option(name) and BESIDE.is_dir()
        ),
    ],
    indirect=["extent"],
)
"""Every probe; those that use real data, on every extent that is at hand."""

QUICK = (
    *("age_comparison", "always_never", "dictionary_wordsense", "fw_eos", "multihop_comparison"),
    *("object_comparison", "wordnet_antonymy", "wordnet_hypernymy", "wordnet_synonymy"),
)
"""Probes that are soon built, among them one of each kind of plan."""

BUILT_SOON = pytest.mark.parametrize(
    ("name", "extent"), [(name, MINIATURE) for name in QUICK], ids=QUICK, indirect=["extent"]
)
"""The quick probes; `test_manifest_fixtures` builds each one once more, on the samples as well."""

READ_WITH_OTHERS = {
    "max_fill": "sampling",
    "max_requests": "endpoint",
    "min_agreement": "labels",
    "min_votes": "labels",
    "offline": "endpoint",
    "refresh": "endpoint",
    "sister_depth": "families",
}
"""Options that are read where another is given; `test_probe_options` gives it."""

READ_WITH_OTHERS_HERE = {
    ("property_conjunction", "perturbations"),
    ("property_conjunction_but_not", "perturbations"),
    ("taxonomy_conjunction", "min_weight"),
}
"""Options that are so in one probe, and read by default in others: with uniform sampling, with
ConceptNet. `test_probe_options` says why they change nothing there."""

READ = "read.txt"
"""The file that names the options that were read in a limited build."""

Write = Callable[..., None]
Limited = Callable[[str, str, int], Path]


@pytest.fixture(scope="session")
def write_limited(
    open_conceptnet: Callable[[str], str],
    open_wikidata: Callable[[str], str],
    open_gcide: Callable[[], str],
    miniature: str,
    build_soon: Callable[[Request], Built],
) -> Write:
    """Build a probe from real data of some extent, cut to some rows, and write it to a folder."""
    opened = {"conceptnet": open_conceptnet, "dump": open_wikidata}

    def write_to(name: str, extent: str, seed: int, folder: Path, **more: Any) -> None:
        probe = find_probe(name)
        options: dict[str, Any] = {"limit": LIMIT, **probe.quick, **OWN_DATA.get(name, {})}
        if probe.controls:
            options["controls"] = True
        if option := knowledge_option(name):
            options[option] = opened[option](extent)
        if name.startswith("wordnet_") or name == "antonym_negation":
            # Others ask for words that are not in it.
            options["wordnet"] = miniature
        try:
            if "gcide" in probe.options.model_fields:
                options["gcide"] = open_gcide()
            parsed = probe.options.parse({**options, **more}, name)
            probe.open(parsed)
        except (MissingDependencyError, SnapshotError) as error:
            pytest.skip(f"the knowledge base of {name} is not here: {error}")
        write(build_soon(Request(probe, parsed, seed)), folder)
        (folder / READ).write_text("\n".join(sorted(parsed.reads())))

    return write_to


@pytest.fixture(scope="session")
def limited(write_limited: Write, shared: Callable[[str, Make], Path]) -> Limited:
    """Return the folder of a limited build, which is made once for all processes."""

    def folder_of(name: str, extent: str, seed: int) -> Path:
        def make(folder: Path) -> None:
            unfinished = folder.with_name(f"{folder.name}, unfinished")
            write_limited(name, extent, seed, unfinished)
            unfinished.rename(folder)

        return shared(f"limited, {name}, {extent}, {seed}", make)

    return folder_of


@pytest.fixture
def folder(name: str, extent: str, limited: Limited) -> Path:
    return limited(name, extent, 0)


@pytest.fixture
def rows(folder: Path) -> Rows:
    return [row for path in files(folder) for row in pq.read_table(path).to_pylist()]


def files(folder: Path, config: str = "default") -> list[Path]:
    return sorted(data_folder(folder, config).iterdir())


def template_of(name: str) -> Template:
    probe = find_probe(name)
    return probe.template(probe.options.parse(OWN_DATA.get(name, {}), name))


@EVERY
def test_the_schema_is_that_of_items(folder: Path, rows: Rows, name: str) -> None:
    for path in files(folder):
        schema = pq.read_schema(path)
        assert schema.names == list(COLUMNS)
        assert schema.equals(arrow_schema(), check_metadata=False)
        assert b"huggingface" in schema.metadata
    assert LEAST <= len(rows) <= LIMIT
    assert {row["schema_version"] for row in rows} == {SCHEMA_VERSION}
    assert {row["setup"] for row in rows} == {find_probe(name).setup}
    assert find_probe(name).setup in SETUPS


@EVERY
def test_every_option_has_a_reader(folder: Path, name: str) -> None:
    options = find_probe(name).options.model_fields.keys()
    others = {option for option, other in READ_WITH_OTHERS.items() if other in options}
    others |= {option for probe, option in READ_WITH_OTHERS_HERE if probe == name}
    instead = {"endpoint"} if "dump" in options else set()
    read = (folder / READ).read_text().split()
    assert options - others - instead - set(read) == set()


@EVERY
def test_ids_are_unique(rows: Rows, name: str) -> None:
    assert len({row["id"] for row in rows}) == len(rows)


@EVERY
def test_answers_point_to_the_gold(rows: Rows, name: str) -> None:
    for row in rows:
        texts, labels = row["choices"]["text"], row["choices"]["label"]
        assert labels == list(LABELS[: len(texts)])
        golds = [at for at, family in enumerate(row["choice_families"]) if family == "gold"]
        assert 0 <= row["answer"] < len(texts)
        assert row["answerKey"] == labels[row["answer"]]
        assert golds == [row["answer"]]
        assert row["choice_hops"][row["answer"]] == row["hops"]
        lists = (row["choice_nodes"], row["choice_families"], row["choice_hops"])
        assert {len(some) for some in lists} == {len(texts)}


@EVERY
def test_no_row_repeats_a_choice(rows: Rows, name: str) -> None:
    for row in rows:
        texts = [text.casefold() for text in row["choices"]["text"]]
        assert len(set(texts)) == len(texts)
        assert len(set(row["choice_nodes"])) == len(texts)
        assert all(text.strip() == text != "" for text in row["choices"]["text"])


FLAGGED = (
    *("antonym_negation", "encyclopedic_composition", "property_conjunction"),
    *("property_conjunction_but_not", "taxonomy_conjunction", "wordnet_antonymy"),
    *("wordnet_hypernymy", "wordnet_meronymy"),
)
"""Probes whose full tier has more questions than the clean one, one of each kind of plan."""


@pytest.mark.parametrize(
    ("name", "extent"),
    [
        pytest.param(name, MINIATURE, marks=() if name in QUICK else pytest.mark.slow)
        for name in FLAGGED
    ],
    ids=FLAGGED,
    indirect=["extent"],
)
def test_only_train_has_flags_in_a_split_for_training(
    name: str, extent: str, write_limited: Write, tmp_path: Path
) -> None:
    folder = tmp_path / "probe"
    write_limited(name, extent, 0, folder, for_training=True, limit=None)
    splits = {path.name.split("-")[0]: pq.read_table(path).to_pylist() for path in files(folder)}
    flagged = {split: sum(bool(row["flags"]) for row in rows) for split, rows in splits.items()}
    assert flagged.pop("train") > 0
    assert set(flagged.values()) <= {0}
    for column in ("cluster", "concept"):
        asked = [{row[column] for row in rows} for rows in splits.values()]
        assert sum(map(len, asked)) == len(set().union(*asked))
    manifest = json.loads((folder / "manifest.json").read_text())
    few = sum(bool(row["flags"]) for row in splits["train"])
    assert manifest["counts"]["flagged"] == few
    card = (folder / "README.md").read_text()
    assert f"{few:,} of {len(splits['train']):,} train rows have flags" in card
    assert "Train is of the *full* tier" in card


@EVERY
def test_splits_share_no_cluster(folder: Path, name: str) -> None:
    clusters = [set(pq.read_table(path)["cluster"].to_pylist()) for path in files(folder)]
    assert len(set().union(*clusters)) == sum(map(len, clusters))


@EVERY
def test_stems_are_rendered_with_the_templates_wordings(rows: Rows, name: str) -> None:
    template = template_of(name)
    wordings = {wording.id for wording in template.questions}
    used = {row["template"] for row in rows}
    assert used <= wordings
    assert len(used) > 1 or len(wordings) == 1
    for row in rows:
        assert row["question"].strip() == row["question"] != ""
        assert "{{" not in row["question"]
        assert [one["name"] for one in row["arguments"]] == list(template.arguments)
        # A stem may begin with an argument.
        stem = row["question"].casefold()
        # What stands at several places of it is joined.
        places = [part for one in row["arguments"] for part in one["value"].split(" | ")]
        assert all(place.casefold() in stem for place in places)
        assert row["context"] in row["question"]
        assert row["surface_form"] in row["context"]
        assert row["triples"]
        assert row["concept"] in (row["triples"][0]["subject"], row["triples"][0]["object"])
        assert row["cluster"]
        if row["setup"] == CLOZE:
            assert row["question"].count(MASK) == 1


@EVERY
def test_controls_show_the_same_rows_without_their_language(
    folder: Path, rows: Rows, name: str
) -> None:
    for control in find_probe(name).controls:
        shown = [row for path in files(folder, control) for row in pq.read_table(path).to_pylist()]
        for row, plain in zip(shown, rows, strict=True):
            assert row["question"] != plain["question"]
            for column in row.keys() - {"question", "choices"}:
                assert row[column] == plain[column], column
            values = [one["value"] for one in row["arguments"]]
            assert all(value.casefold() in row["question"].casefold() for value in values)
            if row["setup"] == CLOZE:
                assert row["question"].count(MASK) == 1
            if control == NO_LANGUAGE:
                rest = row["question"].replace(MASK, " ")
                for value in sorted(values, key=len, reverse=True):
                    rest = rest.replace(value, " ")
                assert not rest.strip()
            else:
                assert row["choices"] == plain["choices"]


@EVERY
def test_variants_ask_the_same_rows_otherwise(folder: Path, rows: Rows, name: str) -> None:
    default = {row["id"]: row for row in rows}
    for variant in find_probe(name).variants:
        for path in files(folder, variant):
            for row in pq.read_table(path).to_pylist():
                plain = default[row["id"]]
                assert row["question"] != plain["question"]
                assert row["cluster"] == plain["cluster"]
                assert row["template"] == plain["template"]
                # The labels of a setup are no choices of another.
                if not SETUPS[plain["setup"]].labels:
                    assert sorted(row["choices"]["text"]) == sorted(plain["choices"]["text"])
                names = [one["name"] for one in row["arguments"]]
                assert names == [one["name"] for one in plain["arguments"]]
                values = [one["value"] for one in row["arguments"]]
                assert all(value.casefold() in row["question"].casefold() for value in values)


@BUILT_SOON
def test_building_again_gives_the_same_bytes(
    folder: Path, tmp_path: Path, write_limited: Write, name: str, extent: str
) -> None:
    write_limited(name, extent, 0, tmp_path / "again")
    again = {path.name: path.read_bytes() for path in files(tmp_path / "again")}
    assert again == {path.name: path.read_bytes() for path in files(folder)}


@pytest.mark.slow
@BUILT_SOON
def test_another_seed_gives_another_draw(
    folder: Path, rows: Rows, limited: Limited, name: str, extent: str
) -> None:
    again = limited(name, extent, 1)
    table = pa.concat_tables(pq.read_table(path) for path in files(again))
    other = set(table["id"].to_pylist())
    assert len(other) >= min(len(rows), LIMIT) / 2
    if len(rows) < LIMIT and len(other) < LIMIT:
        # All that there is was asked: what is left to chance is what is in which split.
        first = pq.read_table(files(folder)[0])["id"].to_pylist()
        assert set(first) != set(pq.read_table(files(again)[0])["id"].to_pylist())
        return
    # Of a probe that readers answered, nearly all rows that were read are in any draw.
    most = 1.0 if name == "always_never" else 0.6
    assert len(other & {row["id"] for row in rows}) < most * len(other)


@EVERY
def test_card_and_manifest_tell_what_is_there(folder: Path, rows: Rows, name: str) -> None:
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["probe"] == name
    assert manifest["counts"]["rows"] == len(rows)
    assert manifest["request"]["options"]["limit"] == LIMIT
    assert manifest["about"] == template_of(name).about
    assert manifest["knowledge_base"]["digest"]
    assert "unlabelled" not in manifest["counts"]
    assert manifest["audit"]["baselines"]
    recorded = {file["path"]: file["sha256"] for file in manifest["files"]}
    probe = find_probe(name)
    configs = ("default", *probe.controls, *probe.variants, *probe.sub_questions)
    assert recorded == {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for config in configs
        for path in files(folder, config)
    }
    card = (folder / "README.md").read_text(encoding="utf-8")
    header = yaml.safe_load(card.split("---\n")[1])
    assert [config["config_name"] for config in header["configs"]] == list(configs)
    assert [config.get("default", False) for config in header["configs"]].index(True) == 0
    for config in header["configs"]:
        assert config["data_files"] == [
            {"split": file["split"], "path": file["path"]}
            for file in manifest["files"]
            if file["config"] == config["config_name"]
        ]
    assert f"# {pretty_name(name)}\n" in card
    assert f"The probe `{name}`, built by kbprobe" in card
    for option in manifest["request"]["options"]:
        assert f"`--{option.replace('_', '-')}`" in card
    for column in COLUMNS:
        assert f"| `{column}` |" in card


@BY_NAME
def test_every_option_is_described_and_unknown_ones_are_refused(name: str) -> None:
    model = find_probe(name).options
    for option, info in model.model_fields.items():
        assert info.description, option
        assert info.description.endswith((".", ")")), option
        assert not info.is_required(), option
    with pytest.raises(UsageError, match=rf"{name} has no option --no-such"):
        model.parse({"no_such": 1}, name)
    for impossible in ({"choices": 1}, {"choices": 27}, {"limit": 0}, {"split_shares": (1, 1, 1)}):
        (option,) = impossible  # Where the probe does not have it, it is refused as well.
        with pytest.raises(UsageError, match=f"--{option.replace('_', '-')}"):
            model.parse(impossible, name)


@BY_NAME
def test_the_template_has_several_wordings_and_a_summary(name: str) -> None:
    template = template_of(name)
    assert template.probe == name
    # Sentences to judge are shown as they are.
    assert len(template.questions) > 1 or SETUPS[find_probe(name).setup].labels
    assert len({wording.text for wording in template.questions}) == len(template.questions)
    assert template.about.strip()
    assert template.choice
    summary = find_probe(name).summary
    assert "\n" not in summary
    assert summary.endswith((".", "?"))
