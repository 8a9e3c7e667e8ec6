"""A probe of another package: found by its entry point, built with its own template."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import builders
from builders.engine import probe as registry
from kbprobe import plugins
from release.checks.checking import check
from release.croissant import croissant

Run = Callable[..., "subprocess.CompletedProcess[str]"]

MODULE = '''
"""Which letter follows which: the smallest probe that uses all that a probe may use."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pydantic import Field

from builders.engine.draw.families import Family, DrawRequest, Truth, perturb
from builders.engine.options import RANDOM
from builders.engine.options import ProbeOptions
from builders.engine.plan import Facts, Nodes, Questions
from builders.engine.probe import probe
from builders.engine.rows import RowArrays, plan_rows
from builders.engine.splits import assign_splits


@dataclass(frozen=True)
class Alphabet:
    name: str = "alphabet"
    version: str = "1"
    digest: str = "0" * 64
    licence: str = "CC0-1.0"
    letters: str = "abcdefghijklmnopqrstuvwxyz"


class LetterOptions(ProbeOptions):
    step: int = Field(1, ge=1, le=5, description="How many letters on.")


@probe(
    "acme_letters",
    options=LetterOptions,
    open=lambda options: Alphabet(),
    question_fields=("letter",),
    choice_fields=("letter",),
)
def acme_letters(alphabet, options, rng):
    """Which letter follows another?"""
    size = len(alphabet.letters)
    letters = pa.array(list(alphabet.letters))
    concept = np.arange(size - options.step)
    gold = concept + options.step
    split = assign_splits(concept, options.split_shares, rng.child("splits"))
    kind = np.zeros(size, dtype=np.int64)
    (drawn,) = perturb(
        DrawRequest(concept, gold, kind[gold]),
        [Family(RANDOM, 0, gold)],
        Truth(size, np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)),
        kind,
        distractors=options.choices - 1,
        max_fill=0,
        repeats=1,
        rng=rng.child("distractors"),
    )
    rows = drawn.rows
    return plan_rows(
        RowArrays(
            nodes=np.concatenate([gold[rows, None], drawn.nodes], axis=1),
            split=split[rows],
            concept=concept[rows],
            question=concept[rows],
            fact=concept[rows],
            hops=options.step,
        ),
        relation="follows",
        questions=Questions.from_columns(
            np.arange(size), {"letter": letters}, surface_form="letter"
        ),
        choices=Nodes.from_columns(letters, field="letter"),
        facts=Facts.from_codes(concept, 0, gold, letters, ("follows",)),
        families=(RANDOM,),
    )
'''

TEMPLATE = """\
probe: acme_letters
about: Which letter follows another?
question:
  - id: after
    text: 'Which letter comes after {{ letter | upper }}?'
    key_words: [after]
choice: the letter {{ letter }}
arguments: [letter]
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder with an installed package: one module, its template, its metadata."""
    site = tmp_path / "site"
    metadata = site / "acme_probes-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-probes\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[kbprobe.probes]\nletters = acme_probes\n")
    (site / "acme_probes.py").write_text(MODULE)
    (site / "acme_letters.yaml").write_text(TEMPLATE)
    return site


@pytest.fixture
def run(build_probe: Run, site: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Run ``build-probe`` where that package is installed, and forget it after the test."""
    # Modules register their probes when they are first imported, which must not be forgotten.
    for name in builders.names():
        registry.find_probe(name)
    monkeypatch.syspath_prepend(site)
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))
    monkeypatch.setattr(registry, "_broken", {})
    monkeypatch.setattr(plugins, "_told", set())
    monkeypatch.setattr(plugins, "_others", set())
    yield build_probe
    sys.modules.pop("acme_probes", None)


@pytest.fixture
def run_process(build_probe_process: Run, environment: dict[str, str], site: Path) -> Run:
    """Run ``build-probe`` so in a process of its own."""
    path = os.pathsep.join([str(site), environment["PYTHONPATH"]])
    return lambda *args: build_probe_process(*args, PYTHONPATH=path)


@pytest.mark.slow
def test_it_is_listed_shown_and_described(run: Run, run_process: Run) -> None:
    listed = {one["name"]: one for one in json.loads(run_process("list", "--json").stdout)}
    own = listed["acme_letters"]
    assert own["summary"] == "Which letter follows another?"
    assert (own["rows"], own["needs"], own["state"]) == (None, [], "ready")
    assert listed.keys() == {"acme_letters", *builders.names()}
    shown = run("show", "acme_letters")
    assert shown.returncode == 0, shown.stderr
    assert "Which letter comes after" in shown.stdout
    described = run("acme_letters", "--help")
    assert "--step" in described.stdout
    assert "How many letters on." in described.stdout


def test_it_is_built_with_its_own_template(run: Run, tmp_path: Path) -> None:
    done = run("acme_letters", "--step", "2", "--choices", "4", "-o", "probe")
    assert done.returncode == 0, done.stderr
    assert "choice-only model" in done.stdout
    rows = pq.read_table(tmp_path / "probe" / "data").to_pylist()
    assert len(rows) == 24
    for row in rows:
        following = chr(ord(row["concept"]) + 2)
        assert row["question"] == f"Which letter comes after {row['concept'].upper()}?"
        assert row["choices"]["text"][row["answer"]] == f"the letter {following}"
        assert len(set(row["choices"]["text"])) == 4
        assert row["triples"] == [
            {"subject": row["concept"], "relation": "follows", "object": following}
        ]
        assert row["arguments"] == [{"name": "letter", "value": row["concept"]}]
    manifest = json.loads((tmp_path / "probe" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["knowledge_base"]["name"] == "alphabet"
    assert manifest["template"]["sources"] == ["acme_letters.yaml"]
    assert "CC0-1.0" in (tmp_path / "probe" / "README.md").read_text(encoding="utf-8")
    assert run("--from-manifest", "probe").returncode == 0
    assert manifest["language"] == ["en"]  # where a knowledge base says nothing of it


def test_credit_and_language_travel_from_the_knowledge_base_to_card_and_croissant(
    run: Run, site: Path, tmp_path: Path
) -> None:
    credit = "Contains the Acme alphabet, by the Acme authors."
    stated = f"""    licence: str = "CC-BY-4.0"
    attribution: str = "{credit}"
    citation: str = "@misc{{acme-2026, title = {{The Alphabet}}}}"
    language: str = "de"
"""
    module = site / "acme_probes.py"
    module.write_text(MODULE.replace('    licence: str = "CC0-1.0"\n', stated))
    done = run("acme_letters", "-o", "probe")
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "probe"
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["knowledge_base"]["sources"] == [
        {"name": "alphabet", "version": "1", "digest": "0" * 64, "licence": "CC-BY-4.0",
         "attribution": credit, "citation": "@misc{acme-2026, title = {The Alphabet}}",
         "language": "de"}
    ]  # fmt: skip
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert f"\n{credit}\n" in card
    assert "\n@misc{acme-2026, title = {The Alphabet}}\n" in card
    assert card.startswith("---\nlanguage:\n- de\nlicense: cc-by-4.0\n")
    assert "conceptnet" not in card.lower()
    described = croissant(folder)
    assert described["creditText"] == credit
    assert described["inLanguage"] == "de"
    assert "acme-2026" in described["citeAs"]
    licences = [one for one in check(folder).findings if one.name == "licence"]
    assert [one.verdict for one in licences] == ["ok"]
    (folder / "README.md").write_text(card.replace(credit, ""), encoding="utf-8")
    found = [one for one in check(folder).failed if one.name == "licence"]
    assert "attribution" in found[0].what


def test_its_template_can_be_replaced_and_its_faults_are_named(run: Run, site: Path) -> None:
    (site / "acme_letters.yaml").write_text(TEMPLATE.replace("letter | upper", "lettre"))
    failed = run("acme_letters", "-o", "probe")
    assert failed.returncode == 2
    assert "acme_letters.yaml:5: question[0].text: unknown field 'lettre'" in failed.stderr
    assert "Did you mean 'letter'?" in failed.stderr


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("import no_such_module\n", "No module named 'no_such_module'"),
        (MODULE.replace("acme_letters", "wordnet_hyponymy"), "Rename one of them"),
        ("raise SystemExit(3)\n", "3"),
    ],
    ids=["import", "duplicate", "exit"],
)
def test_a_broken_package_is_left_out_with_a_warning(
    run: Run, site: Path, fault: str, message: str
) -> None:
    (site / "acme_probes.py").write_text(fault)
    done = run("list", "--json")
    assert done.returncode == 0
    assert [one["name"] for one in json.loads(done.stdout)] == builders.names()
    assert "warning: the probe 'letters' of another package was left out" in done.stderr
    assert message in done.stderr
    assert run("show", "wordnet_hyponymy").returncode == 0
    asked = run("show", "letters")
    assert asked.returncode == 1
    assert "the probe 'letters' of another package, acme_probes cannot be used" in asked.stderr
    assert "Traceback" not in asked.stderr
