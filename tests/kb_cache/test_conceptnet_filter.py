"""What the noise filters remove, and what they say of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kb_cache.conceptnet.filter import (
    ADJECTIVE,
    NO_FILTER,
    NOUN,
    VERB,
    filter_noise,
    parts_of_speech,
)
from kb_cache.conceptnet.load import load_conceptnet
from kb_cache.conceptnet.types import ConceptNet
from kb_cache.fetching import fetch
from kb_cache.wordnet.load import load_wordnet
from kbprobe.errors import UsageError

MINI = Path(__file__).parent / "data" / "conceptnet-mini.csv"


@pytest.fixture
def mini_net(cache: Path) -> ConceptNet:
    fetch("conceptnet", source=MINI, name="mini")
    return load_conceptnet("mini")


def statements(cn: ConceptNet) -> set[str]:
    names = cn.concepts["text"].to_pylist()
    found = set()
    for relation in cn.relation_names:
        for negated in (False, True):
            start, end, _ = cn.edges(relation, negated)
            said = f"not {relation}" if negated else relation
            found |= {
                f"{names[s]} {said} {names[e]}"
                for s, e in zip(start.tolist(), end.tolist(), strict=True)
            }
    return found


@pytest.mark.parametrize(
    ("on", "removed"),
    [
        ({"self_loops": True}, {"cat HasProperty cat"}),
        ({"contradictions": True}, {"snow HasProperty cold", "snow not HasProperty cold"}),
        (
            {"min_weight": 1.5},
            {"snow not HasProperty cold", "cat not IsA dog", "dogs FormOf dog"},
        ),
        ({"stop_words": True}, {"something HasProperty white"}),
        ({"min_length": 3}, {"o UsedFor cut"}),
        ({"max_words": 3}, {"knife UsedFor cut bread fast kitchen"}),
        ({"min_zipf": 3.2}, {"man best friend AtLocation kennel"}),
        (
            {"known_terms": True},
            {
                "knife UsedFor cut bread fast kitchen",
                "man best friend AtLocation kennel",
                "something HasProperty white",
                "dogs FormOf dog",
            },
        ),
        ({"parts_of_speech": True}, {"protest HasProperty verb", "cat HasProperty cat"}),
    ],
)
def test_each_filter_alone(mini_net: ConceptNet, on: dict[str, Any], removed: set[str]) -> None:
    left, report = filter_noise(mini_net, NO_FILTER._replace(**on))
    assert statements(mini_net) - statements(left) == removed
    assert len(report.steps) == 1
    assert report.steps[0].removed == len(removed)
    assert report.steps[0].left == left.assertions.num_rows
    assert left.concepts is mini_net.concepts


def test_all_filters_and_the_report(mini_net: ConceptNet) -> None:
    left, report = filter_noise(mini_net)
    assert statements(left) == {
        "dog IsA animal",
        "dog IsA canine",
        "cat IsA animal",
        "animal IsA organism",
        "organism IsA entity",
        "snow HasProperty white",
        "cat Desires milk",
        "person not Desires pain",
        "knife UsedFor cut",
        "hot Antonym cold",
    }
    assert report.edges == mini_net.assertions.num_rows == 20
    assert sum(step.removed for step in report.steps) == 20 - len(statements(left))
    lines = str(report).splitlines()
    assert lines[0].split() == ["filter", "removed", "left"]
    assert lines[1].split() == ["(none)", "20"]
    assert [line.rsplit(maxsplit=2)[0].strip() for line in lines[2:]] == [
        "self-loops",
        "contradictions",
        "weight below 2",
        "stop words",
        "shorter than 3 characters",
        "more than 3 words",
        "Zipf frequency below 3",
        "part of speech unknown",
        "part of speech unfit",
    ]


def test_no_filter(mini_net: ConceptNet) -> None:
    left, report = filter_noise(mini_net, NO_FILTER)
    assert left.assertions.equals(mini_net.assertions)
    assert report.steps == ()


def test_contradictions_hold_between_words_not_senses(cache: Path, tmp_path: Path) -> None:
    source = tmp_path / "senses.csv"
    line = '/a/\t/r/{}\t/c/en/{}\t/c/en/pet\t{{"weight": 3}}\n'
    source.write_text(line.format("IsA", "dog/n") + line.format("NotIsA", "dog"), "utf-8")
    fetch("conceptnet", source=source)
    options = NO_FILTER._replace(contradictions=True)
    left, _ = filter_noise(load_conceptnet("senses"), options)
    assert left.assertions.num_rows == 0


def test_other_languages_are_refused(cache: Path) -> None:
    fetch("conceptnet", source=MINI, name="all", language=())
    with pytest.raises(UsageError, match=r"knows English alone\. Fetch it with --language en"):
        filter_noise(load_conceptnet("all"))


def test_parts_of_speech() -> None:
    words = pa.array(["dog", "read", "run", "guide dog", "blue", "man best friend"])
    found = parts_of_speech(words, load_wordnet())
    assert found.dtype == np.uint8
    assert found.tolist() == [NOUN, VERB, NOUN | VERB, NOUN, found[4], 0]
    assert found[4] & ADJECTIVE
