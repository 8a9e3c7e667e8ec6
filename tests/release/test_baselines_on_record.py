"""Baselines on record: written by the study, shown by the card, checked and published."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import evaluation
from builders.engine.card import limits
from evaluation.report.page import cautions as page_cautions
from evaluation.report.page import summary
from evaluation.results.summary import cautions as in_terminal
from evaluation.studies.scorecard import Scorecard
from kbprobe.audit.recorded import read_baselines
from kbprobe.errors import KbprobeError, UsageError
from kbprobe.format.dataset import BASELINES
from kbprobe.format.manifest import MOST_SIMILAR
from release.checks.checking import check
from release.checks.findings import Finding
from release.hub.names import add_canary_column
from release.hub.package import pack
from tests.conftest import Make
from tests.evaluation import tiny_multiple_choice

Probe = Callable[[str], Path]


@pytest.fixture
def measured(built_probe: Probe, shared: Callable[[str, Make], Path], tmp_path: Path) -> Path:
    """A built probe with two baselines on record, which a test may damage."""

    def make(folder: Path) -> None:
        shutil.copytree(built_probe("wordnet_hypernymy"), folder)
        record(folder)

    return Path(shutil.copytree(shared("baselines on record", make), tmp_path / "measured"))


def record(folder: Path, seeds: int = 2) -> None:
    names = ("random", "majority")
    evaluation.study("baselines", folder, record=True, baselines=names, seeds=seeds, device="cpu")


def finding(folder: Path) -> Finding | None:
    found = [one for one in check(folder).findings if one.name == "baselines on record"]
    return found[0] if found else None


@pytest.mark.slow
def test_the_check_and_the_card_show_the_figures(measured: Path) -> None:
    figures = read_baselines(measured)
    assert figures is not None
    assert [one.name for one in figures.figures] == ["random", "majority"]
    found = finding(measured)
    assert found is not None
    assert found.verdict == "ok"
    card = (measured / "README.md").read_text(encoding="utf-8")
    for one in figures.figures:
        assert f"{one.name} {one.accuracy:.1%}" in found.what
        assert f"| {one.accuracy:.1%} | {one.low:.1%} | {one.high:.1%} |" in card
    assert check(measured).passed


def test_a_run_is_compared_with_the_figures(measured: Path) -> None:
    figures = read_baselines(measured)
    assert figures is not None
    compared = evaluation.evaluate(measured, None, scorer="random")
    baselines = compared.results.metrics.baselines
    for figure in figures.figures:
        assert baselines[figure.label] == figure.accuracy
    assert "majority, trained on" in " ".join(baselines)


def test_a_run_is_compared_with_the_figures_of_a_probe_without_audit(measured: Path) -> None:
    path = measured / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**manifest, "audit": None}), encoding="utf-8")
    results = evaluation.evaluate(measured, None, scorer="random").results
    metrics = results.metrics
    assert {"random", "most similar choice"} < metrics.baselines.keys()
    assert metrics.oracles == {}
    [sentence] = [said for said in summary(results) if "strongest" in said]
    assert sentence.startswith("The strongest baseline apart from the most similar choice, “")


@pytest.mark.slow
def test_an_encoder_is_recorded_and_compared_with_on_the_same_rows(
    measured: Path, tmp_path: Path
) -> None:
    encoder = str(tiny_multiple_choice.write(tmp_path / "tiny-encoder", "Bert"))
    own = {"record": True, "baselines": ("random",), "seeds": 1, "device": "cpu"}
    evaluation.study("baselines", measured, similarity=encoder, **own)
    figures = read_baselines(measured)
    assert figures is not None
    figure = figures.figures[-1]
    assert figure.name == f"{MOST_SIMILAR}, by tiny-encoder"
    assert '"sha256": null' not in (measured / BASELINES).read_text(encoding="utf-8")
    direct = evaluation.evaluate(measured, encoder, scorer="embedding", dtype="float32").results
    assert direct.metrics.accuracy.value == pytest.approx(figure.accuracy)
    assert direct.model.weights_sha256 == figure.sha256
    # Recorded alone, it is one of the shortcuts; named, it is compared with on the same rows.
    plain = evaluation.evaluate(measured, None, scorer="random").results.metrics
    assert plain.baselines[figure.label] == figure.accuracy
    assert plain.similarity is not None
    assert plain.similarity.encoder is None
    folder = tmp_path / "done"
    done = evaluation.evaluate(
        measured, None, scorer="random", similarity=encoder, output=folder
    ).results
    similarity = done.metrics.similarity
    assert similarity is not None
    both = {name: done.metrics.baselines[name] for name in (MOST_SIMILAR, figure.label)}
    assert similarity.name == max(both, key=both.__getitem__)
    assert similarity.accuracy.value == max(both.values())
    assert done.scoring.options["similarity_sha256"] == figure.sha256
    with pytest.raises(UsageError, match=r"--similarity is .* there and not given now"):
        evaluation.evaluate(measured, None, scorer="random", output=folder)


def test_encoders_that_choices_are_matched_on_are_named(measured: Path) -> None:
    path = measured / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    encoders = [{"name": f"acme/{name}", "sha256": 64 * name[0]} for name in ("a-small", "b-large")]
    matched = {**manifest, "matching": {"encoders": encoders}}
    path.write_text(json.dumps(matched), encoding="utf-8")
    results = evaluation.evaluate(measured, None, scorer="random").results
    sentence = "matched on acme/a-small and acme/b-large: encoders used for matching do badly"
    for remarks in (page_cautions(results), in_terminal(results), limits(matched, "mc_qa")):
        assert any(sentence in remark for remark in remarks)
    card = evaluation.study("scorecard", measured, "none", scorer="random")
    assert isinstance(card, Scorecard)
    assert any(sentence in remark for remark in card.models[0].probes[0].remarks)
    one = results.model.model_copy(update={"weights_sha256": 64 * "a"})
    own = results.model_copy(update={"model": one})
    assert any("This model is one of the encoders" in remark for remark in page_cautions(own))


def test_a_probe_without_figures_has_no_finding(built_probe: Probe) -> None:
    assert finding(built_probe("wordnet_hypernymy")) is None


@pytest.mark.slow
def test_measuring_again_replaces_them(measured: Path) -> None:
    record(measured, seeds=3)
    figures = read_baselines(measured)
    assert figures is not None
    assert {one.draws for one in figures.figures} == {3}
    card = (measured / "README.md").read_text(encoding="utf-8")
    assert card.count("\n## Baselines\n") == 1
    assert check(measured).passed


def test_figures_of_other_rows_are_found(measured: Path) -> None:
    path = measured / BASELINES
    held = json.loads(path.read_text(encoding="utf-8"))
    held["rows_sha256"]["train"] = "0" * 64
    path.write_text(json.dumps(held), encoding="utf-8")
    found = finding(measured)
    assert found is not None
    assert (found.verdict, found.what) == ("failed", "they are of other rows than these")
    assert f"evaluate-probe baselines {measured} --record" in found.remedy


@pytest.mark.parametrize(
    ("text", "problem"),
    [("{", "cannot be read"), ('{"format": "1.0"}', "probe Field required")],
)
def test_damaged_figures_are_found(text: str, problem: str, measured: Path) -> None:
    (measured / BASELINES).write_text(text, encoding="utf-8")
    found = finding(measured)
    assert found is not None
    assert found.verdict == "failed"
    assert problem in found.what
    with pytest.raises(UsageError, match=r"cannot be read: \w.*Delete it, and record them again"):
        read_baselines(measured)


def test_a_card_without_them_is_found(measured: Path, built_probe: Probe) -> None:
    card = built_probe("wordnet_hypernymy") / "README.md"
    (measured / "README.md").write_bytes(card.read_bytes())
    found = finding(measured)
    assert found is not None
    assert (found.verdict, found.where) == ("failed", "README.md")


@pytest.mark.slow
def test_nothing_is_recorded_of_damaged_rows(probe_copy: Probe) -> None:
    folder = probe_copy("antonym_negation")
    (folder / "no_language" / "data" / "test-00000-of-00001.parquet").write_bytes(b"damaged")
    with pytest.raises(KbprobeError, match="differs from its checksum"):
        record(folder)
    assert not (folder / BASELINES).exists()


def test_publishing_takes_them_along(measured: Path, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    published = {"repo_id": "me/probe", "config": "default", "version": ""}
    package = pack(measured, check(measured), scratch, **published)
    [sent] = [file for file in package.files if file.path == BASELINES]
    assert sent.content() == (measured / BASELINES).read_bytes()
    assert "## Baselines" in package.text
    add_canary_column(measured, tmp_path / "canary")
    found = finding(tmp_path / "canary")
    assert found is not None
    assert found.verdict == "ok"
