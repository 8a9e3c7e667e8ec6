"""Kinds of knowledge bases: the registry, the derived commands, and credit on its way to cards."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path

import pytest

from kb_cache import base
from kb_cache.base import KINDS, Kind, find_kind
from kb_cache.fetching import fetch
from kb_cache.knowledge import Combined, Loaded, manifest_entry
from kb_cache.wordnet.load import load_wordnet
from kbprobe.errors import KbprobeError, UsageError
from kbprobe.format.licences import (
    UNSTATED,
    attributions_of,
    question_languages,
    sources_of,
    works_of,
)
from kbprobe.options import option_name
from tests.commands import run_here

REPOSITORY = Path(__file__).resolve().parents[2]
PAIRS = "poodle\tdog\ndog\tanimal\ncat\tanimal\nPoodle\tdog\n"

RunCli = Callable[..., "subprocess.CompletedProcess[str]"]


def test_naming_a_kind_imports_none_of_the_others() -> None:
    code = (
        "import sys; from kb_cache.base import find_kind, kind_names; kind_names()\n"
        "print([m for m in sys.modules if m.startswith('kb_cache.')])\n"
        "find_kind('gcide')\n"
        "heavy = {'pyarrow', 'nltk', 'lemminflect', 'pyoxigraph'}\n"
        "packages = ('kb_cache.wordnet', 'kb_cache.conceptnet', 'kb_cache.wikidata')\n"
        "print([m for m in sys.modules if m.startswith(packages) or m in heavy])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.splitlines() == ["['kb_cache.base']", "[]"], done.stderr


@pytest.mark.parametrize("name", sorted(KINDS))
def test_every_kind_says_how_it_is_fetched_and_whom_to_credit(name: str) -> None:
    kind = find_kind(name)
    assert kind.name == name
    assert isinstance(kind, Kind)
    assert kind.licence
    # A user's own facts are nobody else's.
    assert bool(kind.attribution) == (kind.licence != UNSTATED)
    assert kind.citation.startswith("@") == (kind.licence != UNSTATED)
    assert kind.language
    assert kind.fetch_command("x") == f"kb-cache fetch {name} --from PATH --name x"
    assert kind.entry_name("x") == kind.entry_name(f"{name}-x") == f"{name}-x"
    if kind.download:
        assert kind.fetch_command(kind.downloaded_name) == f"kb-cache fetch {name}"


def test_unknown_and_broken_kinds_are_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=r"no kind of knowledge base 'wordnte'.*'wordnet'"):
        find_kind("wordnte")
    monkeypatch.setattr(base, "KINDS", {})
    base.register("lost", "no_such_module:KIND")
    base.register("odd", "kb_cache.base:KINDS")
    with pytest.raises(KbprobeError, match=r"'lost' \(no_such_module:KIND\) cannot be imported"):
        find_kind("lost")
    with pytest.raises(KbprobeError, match="is not a kind of knowledge base"):
        find_kind("odd")


@pytest.mark.parametrize("name", sorted(KINDS))
def test_the_commands_options_are_those_of_the_model(run_cli: RunCli, name: str) -> None:
    shown = run_cli("fetch", name, "--help").stdout
    for field in find_kind(name).options.model_fields:
        assert ("--from" if field == "source" else option_name(field)) in shown
    assert str(find_kind(name).__doc__).splitlines()[0] in shown


def test_options_are_checked_by_the_model(cache: Path, mini: Path) -> None:
    with pytest.raises(UsageError, match=r"fetch wordnet has no option --langage.*language"):
        fetch("wordnet", source=mini, langage="de")
    with pytest.raises(UsageError, match="needs the source: give it with --from PATH"):
        fetch("wordnet")
    with pytest.raises(UsageError, match="state it with --attribution TEXT"):
        fetch("wordnet", source=mini, name="mini", licence="CC-BY-4.0")


def test_data_of_ones_own_is_credited_as_stated(cache: Path, mini: Path) -> None:
    credit = {"licence": "CC-BY-4.0", "attribution": "By Ada.", "language": "de"}
    fetch("wordnet", source=mini, name="mini", **credit)
    wordnet = load_wordnet("mini")
    assert (wordnet.licence, wordnet.attribution, wordnet.citation) == ("CC-BY-4.0", "By Ada.", "")
    assert manifest_entry(wordnet)["sources"] == [
        {**credit, "name": "wordnet-mini", "version": "3.0", "digest": wordnet.digest,
         "citation": ""}
    ]  # fmt: skip
    assert question_languages(sources_of(manifest_entry(wordnet))) == ["de"]
    (cache / "snapshots" / "wordnet-mini" / "synsets.parquet").write_bytes(b"")
    assert load_wordnet("mini").attribution == "By Ada."  # rebuilt with the same options


class Pair(Combined):
    @property
    def sources(self) -> list[Loaded]:
        return [
            loaded("a-1", attribution="By A.", citation="@misc{a}"),
            loaded("b-2", attribution="By B.", citation="@misc{b}", language="de"),
        ]


def loaded(name: str, **credit: str) -> Loaded:
    return Loaded(name, "1", "d", "CC-BY-4.0", **credit)


def test_several_as_one_keep_all_attributions() -> None:
    both = Pair()
    assert (both.name, both.licence, both.language) == ("a-1+b-2", "CC-BY-4.0", "en+de")
    assert (both.attribution, both.citation) == ("By A.\n\nBy B.", "@misc{a}\n\n@misc{b}")
    sources = sources_of(json.loads(json.dumps(manifest_entry(both))))
    assert attributions_of(sources) == ["By A.", "By B."]
    assert works_of(sources, "olmpics")[1:] == ["@misc{a}", "@misc{b}"]
    assert question_languages(sources) == ["en", "de"]
    assert question_languages(sources, "fr") == ["fr"]


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder with the knowledge base of docs/add-a-knowledge-base.md, as if installed."""
    text = (REPOSITORY / "docs" / "add-a-knowledge-base.md").read_text("utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    (entry,) = re.findall(r'^taxonomy = "(.*)"$', text, re.MULTILINE)
    metadata = tmp_path / "site" / "acme_taxonomy-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-taxonomy\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[{base.ENTRY_POINTS}]\ntaxonomy = {entry}\n")
    (tmp_path / "site" / "acme_taxonomy.py").write_text(code, "utf-8")
    return tmp_path / "site"


@pytest.mark.slow
def test_the_tutorials_knowledge_base_works_as_it_says(
    site: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run_process(*words: str) -> subprocess.CompletedProcess[str]:
        path = os.pathsep.join([str(site), str(REPOSITORY)])
        environment = os.environ | {"PYTHONPATH": path, "KBPROBE_CACHE": str(cache)}
        return subprocess.run(
            [sys.executable, *words], capture_output=True, text=True, env=environment, timeout=300
        )

    monkeypatch.syspath_prepend(site)
    monkeypatch.setattr(base, "_installed", base._installed.__wrapped__)  # not cached
    run = partial(run_here, "kb_cache.cli")
    source = tmp_path / "animals.tsv"
    source.write_text(PAIRS, "utf-8")
    command = ("-m", "kb_cache.cli")
    assert "taxonomy" in run_process(*command, "fetch", "--help").stdout
    done = run("fetch", "taxonomy", "--from", str(source), "--lower-case")
    assert done.stdout.startswith("taxonomy-animals: 4 things, "), done.stderr
    rows = json.loads(run("list", "--json").stdout)
    (row,) = (row for row in rows if row["where"] == "cache")
    assert (row["name"], row["kind"], row["sound"]) == ("taxonomy-animals", "taxonomy", True)
    assert "4 things" in run("list").stdout
    (cache / "snapshots" / "taxonomy-animals" / "things.parquet").write_bytes(b"")
    repaired = run("verify", "taxonomy-animals", "--repair")
    assert repaired.stdout == "taxonomy-animals: rebuilt\n", repaired.stderr
    found = import_module("acme_taxonomy").load_taxonomy("animals")
    things = found.things["name"].to_pylist()
    above = [things[at] for at in found.kinds().walk(things.index("poodle")).node.tolist()]
    entry = manifest_entry(found)["sources"][0]
    assert above == ["dog", "animal"]
    assert entry["attribution"].startswith("Contains the Acme taxonomy")
    assert (entry["licence"], entry["language"]) == ("CC-BY-4.0", "en")
    source.write_text("one column\n", "utf-8")
    failed = run("fetch", "taxonomy", "--from", str(source))
    assert failed.returncode == 1
    assert "animals.tsv, line 1: two columns expected" in failed.stderr
    module = site / "acme_taxonomy.py"
    text = module.read_text("utf-8").replace("raise SourceError(", "raise NoSuch(")
    module.write_text(text, "utf-8")
    failed = run_process(*command, "fetch", "taxonomy", "--from", str(source))
    assert failed.returncode == 1
    assert f"NoSuch' is not defined. It was raised by {module}, line " in failed.stderr
