"""Probes of real tables and ontologies of others, which stand beside a clone."""

from __future__ import annotations

import csv
import gzip
import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import builders
from kbprobe.audit.verdicts import MARGIN
from tests.real_data import beside

pytestmark = [pytest.mark.slow, pytest.mark.real_data]


def rows_of(name: str, **options: Any) -> list[dict[str, Any]]:
    made = builders.build(name, audit=False, **options)
    return [row for split in made.values() for row in split]


def guessed_from_choices(rows: list[dict[str, Any]]) -> float:
    """Return how often the choice that is most often right elsewhere is right."""
    right: dict[str, int] = defaultdict(int)
    for row in rows:
        right[row["choices"]["text"][row["answer"]]] += 1
    hits = 0.0
    for row in rows:
        scores = [right[text] for text in row["choices"]["text"]]
        scores[row["answer"]] -= 1
        best = [at for at, score in enumerate(scores) if score == max(scores)]
        hits += (row["answer"] in best) / len(best)
    return hits / len(rows)


def test_countries() -> None:
    path = beside("own_facts", "countries.csv")
    several = ("languages", "currencies", "borders")
    relations = ("capital", "subregion", *several)
    stated: dict[tuple[str, str], set[str]] = defaultdict(set)
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            for relation in relations:
                stated[row["name"], relation] |= {text for text in row[relation].split("|") if text}
    rows = rows_of(
        str(path), columns="subject=name", relations=relations, separator="|", closed=several,
        inverse=True, min_objects=10,
    )  # fmt: skip
    assert len(rows) > 5_000
    for row in rows:
        relation, inverse, _ = row["relation"].partition(" (inverse)")
        for place, text in enumerate(row["choices"]["text"]):
            subject, target = (text, row["concept"]) if inverse else (row["concept"], text)
            assert (target in stated[subject, relation]) == (place == row["answer"]), row
    # Each choice of a group is right equally often; some choices stand in more groups than others.
    assert guessed_from_choices(rows) < 0.2 + 2 * MARGIN


def above(path: Path) -> tuple[Mapping[str, str], Mapping[str, set[str]]]:
    """Return the labels of live terms, and the labels of all that each is a kind of."""
    names, parents, dead = {}, defaultdict(list), set()
    term = ""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            if line.startswith("["):
                term = ""
            elif line.startswith("id: "):
                term = line[4:].strip()
            elif line.startswith("name: "):
                names[term] = line[6:].strip()
            elif line.startswith("is_a: "):
                parents[term].append(line[6:].split()[0])
            elif line.startswith("is_obsolete: true"):
                dead.add(term)
    found: dict[str, set[str]] = {}

    def of(term: str) -> set[str]:
        if term not in found:
            found[term] = set()
            for parent in parents[term]:
                found[term] |= of(parent) | {names[parent]}
        return found[term]

    return {term: name for term, name in names.items() if term not in dead}, {
        term: of(term) for term in names if term not in dead
    }


@pytest.mark.parametrize("ask", ["hypernymy", "conjunction"])
def test_the_gene_ontology(ask: str) -> None:
    path = beside("own_facts", "go.obo.gz")
    names, kinds = above(path)
    term_of = {name: term for term, name in names.items()}
    rows = rows_of(f"{path}:{ask}", max_hops=2)
    assert len(rows) > (500, 5_000)[ask == "hypernymy"]
    for row in rows:
        asked = re.findall(r'"(.+?)"(?= |$)', row["question"])
        if any('"' in name or name not in term_of for name in asked):
            continue  # a label with quotation marks
        common = set.intersection(*(kinds[term_of[name]] for name in asked))
        for place, text in enumerate(row["choices"]["text"]):
            assert (text in common) == (place == row["answer"]), row


def test_a_thesaurus() -> None:
    path = beside("own_facts", "yso-archaeology.ttl")
    english = rows_of(f"{path}:synonymy", stem_overlap="keep", match="none")
    finnish = rows_of(f"{path}:synonymy", stem_overlap="keep", match="none", labels="fi")
    assert english
    assert finnish
    assert not {row["question"] for row in english} & {row["question"] for row in finnish}
