"""What a new user meets first: which knowledge base is taken, what the list says, wrong names."""

from __future__ import annotations

import gzip
import json
import logging
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import builders
from builders.engine.command import Failures, named_jobs
from builders.engine.options import snapshot_options
from builders.engine.probe import all_probes
from builders.engine.registry import OWN_FILES, PROBES
from kb_cache.fetching import fetch
from kbprobe.errors import UsageError
from tests.real_data import MINIATURE, conceptnet_file

Run = Callable[..., "subprocess.CompletedProcess[str]"]
VALUES = {"seed": 0, "template": None, "format": "parquet", "audit": True}
CONCEPTNET_BY_DEFAULT = ["always_never", "property_conjunction", "property_conjunction_but_not"]
CONCEPTNET_BY_OPTION = ["antonym_negation", "taxonomy_conjunction"]
MANIFESTS = Path(__file__).resolve().parents[1] / "data" / "manifests"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    monkeypatch.setenv("KBPROBE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("KBPROBE_CONTACT", raising=False)
    return tmp_path / "cache"


@pytest.fixture
def edges(tmp_path: Path) -> Path:
    """A small file of ConceptNet."""
    with gzip.open(conceptnet_file(MINIATURE), "rt", encoding="utf-8") as lines:
        text = "".join(line for line, _ in zip(lines, range(50), strict=False))
    path = tmp_path / "my-edges.csv"
    path.write_text(text, encoding="utf-8")
    return path


def chosen(probe: str, **given: str) -> str:
    """The ConceptNet that a request names in the end."""
    ((request, _),) = named_jobs([probe], given, None, VALUES, Failures(1))
    return str(request.options.model_dump()["conceptnet"])


@pytest.mark.parametrize("probe", CONCEPTNET_BY_DEFAULT)
def test_the_only_conceptnet_is_taken_and_named(
    probe: str, cache: Path, edges: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(UsageError, match=r"cache has none.*kb-cache fetch conceptnet --from FILE"):
        chosen(probe)
    fetch("conceptnet", source=edges)
    with caplog.at_level(logging.WARNING):
        assert chosen(probe) == "my-edges"
    assert f"{probe} uses the conceptnet snapshot 'my-edges'" in caplog.text


@pytest.mark.parametrize("probe", CONCEPTNET_BY_DEFAULT)
def test_of_several_the_option_and_its_values_are_named(
    probe: str, cache: Path, edges: Path
) -> None:
    for name in ("one", "two"):
        fetch("conceptnet", source=edges, name=name)
    with pytest.raises(UsageError, match=r"There are: one, two\. Choose one with --conceptnet one"):
        chosen(probe)
    fetch("conceptnet", source=edges, name="5.7")
    assert chosen(probe) == "5.7"


@pytest.mark.parametrize("probe", [*CONCEPTNET_BY_DEFAULT, *CONCEPTNET_BY_OPTION])
def test_a_name_with_and_without_its_kind_is_one_request(
    probe: str, cache: Path, edges: Path
) -> None:
    fetch("conceptnet", source=edges, name="conceptnet-mine")
    assert chosen(probe, conceptnet="mine") == chosen(probe, conceptnet="conceptnet-mine") == "mine"
    with pytest.raises(UsageError, match=r"no conceptnet snapshot '5\.7' \(--conceptnet\)"):
        chosen(probe, conceptnet="5.7")  # named, so that no other may stand in


def test_every_option_that_names_a_snapshot_says_so() -> None:
    for name, entry in PROBES.items():
        named = {option.field for option in snapshot_options(entry.options)}
        fields = entry.options.model_fields.keys()
        assert named == fields & {"conceptnet", "wordnet", "gcide", "dump", "corpus"}, name


def test_the_list_tells_rows_needs_and_state(build_probe: Run, cache: Path, edges: Path) -> None:
    def listed() -> dict[str, dict[str, object]]:
        return {one["name"]: one for one in json.loads(build_probe("list", "--json").stdout)}

    before = listed()
    assert list(before) == builders.names() == list(all_probes())
    for name in OWN_FILES:
        assert before[name]["rows"] is None
    for name, probe in all_probes().items():
        if name in OWN_FILES:
            continue
        counts = json.loads((MANIFESTS / f"{name}.json").read_text(encoding="utf-8"))["counts"]
        assert (before[name]["summary"], before[name]["rows"]) == (probe.summary, counts["rows"])
    assert before["wordnet_hypernymy"]["state"] == "ready"
    assert before["age_comparison"]["needs"] == []
    for name in CONCEPTNET_BY_DEFAULT:
        assert before[name]["needs"] == ["conceptnet", "wordnet"]
        assert before[name]["state"] == "fetch first"
        assert before[name]["remedy"] == "kb-cache fetch conceptnet"
    assert before["encyclopedic_composition"]["state"] == "fetch first"
    fetch("conceptnet", source=edges)
    assert {listed()[name]["state"] for name in CONCEPTNET_BY_DEFAULT} == {"ready"}
    fetch("conceptnet", source=edges, name="two")
    after = listed()["always_never"]
    assert (after["state"], after["remedy"]) == ("choose", "--conceptnet my-edges|two")
    shown = build_probe("list").stdout
    assert "always_never, property_conjunction, property_conjunction_but_not: choose: " in shown


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nosuch", "--foo", "3"], "no probe is called 'nosuch'."),
        (["--overwrite", "nosuch", "--foo"], "no probe is called 'nosuch'."),
        (["--seed", "3", "wordnet_hypernimy", "--foo"], "Did you mean 'wordnet_hypernymy'?"),
        (["wordnet_hypernymy", "nosuch", "--foo"], "no probe is called 'nosuch'."),
        (["lst"], "Did you mean 'list'?"),
        (["shw", "wordnet_hypernymy"], "Did you mean 'show'?"),
        (
            ["wordnet_hypernymy", "--max-hop", "3"],
            "wordnet_hypernymy has no option --max-hop. Did you mean '--max-hops'? "
            "More: build-probe wordnet_hypernymy --help",
        ),
        (
            ["wordnet_antonymy", "wordnet_synonymy", "--max-hops", "3"],
            "wordnet_antonymy and wordnet_synonymy have no option --max-hops. These have it: "
            "ontology, taxonomy_conjunction, wordnet_hypernymy, wordnet_hyponymy.",
        ),
        (
            ["property_conjunction", "--language", "de"],
            "property_conjunction has no option --language. These have it: encyclopedic_",
        ),
        (["--recipe", "x", "--max-hops", "3"], "no probe is named that would have the option"),
    ],
)
def test_the_first_thing_wrong_is_named(build_probe: Run, words: list[str], message: str) -> None:
    done = build_probe(*words)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stdout == ""
