"""encyclopedic_composition in German: labels, wordings, golds true and distractors false."""

from __future__ import annotations

import gzip
import re
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from builders.compositions.collecting import collect
from builders.compositions.facts import Collected
from builders.compositions.paths import load_paths
from kb_cache.fetching import fetch
from kb_cache.wikidata.load import load_wikidata
from kb_cache.wikidata.types import Wikidata
from tests.builders.test_encyclopedic_composition import EDGES, built, flat, rows_of, valid_answers
from tests.real_data import MINIATURE, MINIATURES, wikidata_file

LABELS = MINIATURES / "wikidata-miniature-de.tsv"
LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
ENTITY = "http://www.wikidata.org/entity/"
PATHS = ("band-start", "film-actor-spouse", "film-director-country")
Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def german() -> dict[str, str]:
    """The German label of each entity that has one."""
    lines = LABELS.read_text(encoding="utf-8").splitlines()
    return dict(line.split("\t") for line in lines)


@pytest.fixture(scope="module")
def wikidata(german: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Wikidata:
    """The miniature with German labels beside its English ones."""
    path = tmp_path_factory.mktemp("german") / "wikidata.nt"
    added = "".join(
        f'<{ENTITY}{entity}> <{LABEL}> "{text}"@de .\n' for entity, text in german.items()
    )
    with gzip.open(wikidata_file(MINIATURE), "rt", encoding="utf-8") as file:
        path.write_text(file.read() + added, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KBPROBE_CACHE", str(path.parent / "cache"))
        fetch("wikidata", source=path, name="german")
        return load_wikidata("german")


@pytest.fixture(scope="module")
def knowledge(wikidata: Wikidata) -> Collected:
    return collect(wikidata, load_paths(language="de"))


def test_the_case_of_a_tag_does_not_matter(wikidata: Wikidata, german: dict[str, str]) -> None:
    """Stores and Wikidata write zh-hans for zh-Hans."""
    paths = replace(load_paths(only=("band-start",), language="de"), language="DE")
    labels = collect(wikidata, paths).labels
    assert labels
    assert labels.items() <= {entity: text.strip() for entity, text in german.items()}.items()


@pytest.fixture(scope="module")
def rows(knowledge: Collected) -> Rows:
    return flat(rows_of(built(knowledge=knowledge, language="de", tier="full")))


@pytest.mark.slow
def test_questions_and_choices_are_german(rows: Rows, german: dict[str, str]) -> None:
    assert len(rows) > 100
    assert set(PATHS) <= Counter(row["distractor_family"] for row in rows).keys()
    for row in rows:
        assert german[row["concept"]] in row["question"]
        assert not re.search(r"\b(which|was|the director|of these)\b", row["question"].lower())
        for node, text in zip(row["choice_nodes"], row["choices"]["text"], strict=True):
            assert text == german.get(node, node)
    shown = {text for row in rows for text in row["choices"]["text"]}
    assert {"Vereinigtes Königreich", "Vereinigte Staaten", "Deutschland"} <= shown


@pytest.mark.slow
def test_golds_are_true_and_distractors_false_by_the_source(
    rows: Rows, wikidata: Wikidata, german: dict[str, str]
) -> None:
    for family in PATHS:
        some = [row for row in rows if row["distractor_family"] == family]
        asked = {german[row["concept"]] for row in some}
        valid = valid_answers(wikidata, EDGES[family], asked, language="de")
        for row in some:
            answers = valid[german[row["concept"]]]
            for at, node in enumerate(row["choice_nodes"]):
                assert (node in answers) == (at == row["answer"]), row
