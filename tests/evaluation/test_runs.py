"""The seams: registries, options of scorers and learners, and runs known by their content."""

import json
import re
import shlex
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from datasets import DatasetDict

import evaluation
from evaluation.cli import main
from evaluation.learners.registry import LEARNERS
from evaluation.models.capabilities import Capability, head_that_gives
from evaluation.models.handle import ModelHandle
from evaluation.options import RunOptions
from evaluation.registry import Registry
from evaluation.runs.run import open_run
from evaluation.runs.spec import RunSpec
from evaluation.scorers.base import Encoded, Scorer, ScorerEntry
from evaluation.scorers.registry import SCORERS
from evaluation.studies.registry import STUDIES
from kbprobe.errors import KbprobeError, UsageError
from kbprobe.files import file_sha256

DOCS = Path(__file__).resolve().parents[2] / "docs"


pytestmark = pytest.mark.usefixtures("in_world")


def code_of(page, name, number=0):
    """Run a block of Python of a page as a module of a name; return what it defines."""
    block = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)[number]
    module = type(sys)(name)
    # Types that are named in annotations are looked up in the module.
    sys.modules[module.__name__] = module
    exec(compile(block, page, "exec"), vars(module))
    return module


@pytest.fixture
def twice():
    entry = SCORERS.add(code_of("add-a-scorer.md", "my_package.twice").TWICE)
    yield entry
    SCORERS.remove(entry.name)


@pytest.fixture
def sizes():
    entry = STUDIES.add(code_of("add-a-study.md", "my_package.sizes").SIZES)
    yield entry
    STUDIES.remove(entry.name)


def run(*words, code=0):
    with pytest.raises(SystemExit) as done:
        main([*map(str, words)])
    assert (done.value.code or 0) == code


# The worked examples of the documentation


def test_the_page_on_scorers_adds_one(twice):
    second = "{question} It is"
    found = evaluation.evaluate("questions", "gpt2", scorer="twice", second=second)
    parts = [
        evaluation.evaluate("questions", "gpt2", normalization="sum", **options)
        for options in ({}, {"prompt": second})
    ]
    lists = [done.predictions["scores"].to_pylist() for done in (found, *parts)]
    for mean, one, other in zip(*lists, strict=True):
        expected = [(a + b) / 2 for a, b in zip(one, other, strict=True)]
        assert mean == pytest.approx(expected, abs=1e-3)
    assert found.results.scoring.scorer == "twice"
    assert found.results.scoring.options["second"] == second
    assert found.results.metrics.normalization == "sum"


def test_a_scorer_without_a_model_counts_words_as_on_the_page_or_says_what_it_has_to_return():
    entry = SCORERS.add(code_of("add-a-scorer.md", "my_package.overlap", 1).OVERLAP)
    try:
        found = evaluation.evaluate("questions", "none", scorer="overlap")
        for row in found.predictions.to_pylist():
            words = set(row["question"].lower().split())
            shared = [len(words & set(choice.lower().split())) for choice in row["choices"]]
            assert row["scores"] == shared
        wrong = type(
            "Wrong", (type(entry.make(None)),), {"choice_scores": lambda self, items: [1.0]}
        )
        with pytest.raises(UsageError, match=r"^Wrong\.choice_scores has to return an array"):
            wrong().encode([])
    finally:
        SCORERS.remove("overlap")


@pytest.mark.slow
def test_its_options_are_the_command_s_and_its_limits_are_kept(twice, tmp_path, capsys):
    words = ("questions", "--model", "gpt2", "-o", tmp_path / "out")
    run(*words, "--scorer", "twice", "--second", "{question} is", "--shots", "1")
    capsys.readouterr()
    run(*words, "--second", "{question} is", code=2)
    said = "--second is for scorer after two prompts, and gpt2 is scored as a causal LM"
    assert said in capsys.readouterr().err
    run("clozes", "--model", "gpt2", "--scorer", "twice", code=2)
    assert "setup mc_mlm, and twice takes only mc_qa" in capsys.readouterr().err
    run(*words, "--scorer", "twice", "--secnd", "It is", code=2)
    assert "--second" in capsys.readouterr().err
    with pytest.raises(UsageError, match=r"no option --secnd\. Did you mean 'second'"):
        evaluation.evaluate("questions", "gpt2", scorer="twice", secnd="It is")


@pytest.fixture
def files(world):
    """The page's scorer and a learner in files, which are forgotten afterwards."""
    page = (DOCS / "add-a-scorer.md").read_text()
    block = re.search(r"```python\n(.*?)```", page, re.DOTALL).group(1)
    (world / "twice.py").write_text(block)
    (world / "frequent.py").write_text(
        "from dataclasses import replace\n"
        "from evaluation.learners.entries import MAJORITY\n"
        "FREQUENT, RARE = (replace(MAJORITY, name=name) for name in ('frequent', 'rare'))\n"
    )
    yield page
    for registry, names in ((SCORERS, ["twice"]), (LEARNERS, ["frequent", "rare"])):
        for name in names:
            registry.remove(name)
    for module in ("twice", "frequent"):
        sys.modules.pop(module, None)


@pytest.mark.slow
def test_the_page_s_command_runs_as_printed(files, world, tmp_path, capsys):
    printed = re.search(r"```sh\nevaluate-probe (.*)\n(evaluate-probe .*)\n```", files)
    words = shlex.split(printed[1].replace("probes/wordnet_hypernymy", "questions"))
    run(*words, "-o", tmp_path / "out")
    made = evaluation.load(tmp_path / "out").results.scoring
    assert (made.scorer, made.options["second"]) == ("twice", "{question} It is")
    assert made.options["source_sha256"] == file_sha256(world / "twice.py")
    run(*shlex.split(printed[2])[1:])
    assert "--second" in capsys.readouterr().out
    for text in ("twice.py", "twice.py:TWICE", str(world / "twice.py")):
        again = evaluation.evaluate("questions", "gpt2", scorer=text, second="{question} It is")
        assert again.results.scoring == made
    SCORERS.remove("twice")
    del sys.modules["twice"]
    (world / "twice.py").write_text((world / "twice.py").read_text() + "# edited\n")
    edited = evaluation.evaluate("questions", "gpt2", scorer="twice.py", second="{question} It is")
    assert edited.results.scoring.key != made.key


def test_learners_can_be_files(files, tmp_path, capsys):
    words = ("questions", "--model", "none", "-o", tmp_path / "out", "--train", "20")
    run(*words, "--learner", "frequent.py:FREQUENT")
    learnt = evaluation.load(tmp_path / "out").results.model.finetuning
    assert learnt["learner"] == "frequent"
    assert learnt["source_sha256"]
    curve = {"learners": ("frequent.py:RARE",), "sizes": (8,), "seeds": 1}
    tables = evaluation.study("curve", "questions", "none", **curve).tables
    assert tables["curves"][0]["learner"] == "rare"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--scorer", "nowhere.py"], "nowhere.py is not a Python file; name a scorer, or FILE.py"),
        (["--scorer", "twice.py:ONCE"], "defines no scorer 'ONCE'. Name one: twice.py:TWICE"),
        (["--scorer=frequent.py"], "frequent.py defines no scorers."),
        (
            ["--learner", "frequent.py", "--train", "8"],
            "2 learners. Name one: frequent.py:FREQUENT or frequent.py:RARE",
        ),
        (["--scorer", "taken.py"], "there is a scorer named 'random' already. Rename this one"),
        (
            ["--scorer", "broken.py"],
            "broken.py cannot be imported: NameError: name 'scorer' is not defined (",
        ),
    ],
)
def test_files_that_do_not_define_what_is_named(files, words, said, world, capsys):
    (world / "broken.py").write_text("scorer\n")
    (world / "taken.py").write_text(
        "from dataclasses import replace\n"
        "from evaluation.scorers.entries import RANDOM\n"
        "OWN = replace(RANDOM)\n"
    )
    run("questions", "--model", "none", *words, code=1 if "broken.py" in words else 2)
    assert said in capsys.readouterr().err


def test_an_error_of_a_file_names_its_line(files, world, tmp_path, capsys):
    path = world / "twice.py"
    text = path.read_text().replace("options.second", "options.no_such")
    path.write_text(text)
    line = next(at for at, one in enumerate(text.splitlines(), 1) if "no_such" in one)
    words = ("questions", "--model", "gpt2", "-o", tmp_path / "out")
    run(*words, "--scorer", "twice.py", "--second", "It is", code=1)
    said = capsys.readouterr().err
    assert f"It was raised by {path}, line {line}, which is not part of kbprobe" in said


@pytest.mark.parametrize(
    "options", [{"scorer": "twice.py"}, {"learner": "frequent.py:RARE", "train": 8}]
)
def test_a_suite_file_runs_no_code(files, options, world, tmp_path, capsys):
    (world / "twice.py").write_text("raise SystemExit('it ran')\n")
    suite = {"probes": ["questions"], "models": ["gpt2"], "options": options}
    (tmp_path / "suite.yaml").write_text(json.dumps(suite))
    run("suite", tmp_path / "suite.yaml", code=2)
    assert "is a Python file, and a suite file runs no code" in capsys.readouterr().err


def test_a_study_of_a_notebook_needs_a_name(sizes):
    with pytest.raises(ValueError, match="give it a name and a help"):
        replace(sizes, name="__main__")


@pytest.mark.slow
def test_the_page_on_studies_adds_one(sizes, tmp_path, capsys):
    words = ("sizes", "questions", "--model", "encoder", "--epochs", "1", "-o", tmp_path)
    run(*words, "--sizes", "6,12", "--seeds", "0,1", "--json")
    shown = capsys.readouterr()
    rows = json.loads(shown.out)["tables"]["runs"]
    assert [(row["size"], row["model"]) for row in rows] == [(6, "encoder"), (12, "encoder")]
    assert "(sizes.html, sizes.json, sizes.md)" in shown.err
    one = evaluation.load(tmp_path / "questions" / "encoder" / "train-12" / "seed-1").results
    assert one.model.finetuning["train"] == 12
    assert one.seed == 1
    both = [
        evaluation.load(tmp_path / "questions/encoder/train-12" / f"seed-{seed}").results
        for seed in (0, 1)
    ]
    values = [results.metrics.accuracy.value for results in both]
    assert rows[1]["accuracy"]["value"] == pytest.approx(sum(values) / 2)
    assert json.loads((tmp_path / "sizes.json").read_text())["tables"]["runs"] == rows
    again = evaluation.study(
        "sizes", "questions", "encoder", output=tmp_path, sizes=(6, 12), seeds=(0, 1), epochs=1
    )
    assert [row["accuracy"].value for row in again.tables["runs"]] == [
        row["accuracy"]["value"] for row in rows
    ]
    run(*words, "--train", "3", code=2)
    assert "--train" in capsys.readouterr().err


class LongestChoice(Scorer):
    """Prefers the choice with the most characters."""

    def encode(self, items):
        lengths = np.array([len(text) for item in items for text in item.choices])
        numbers = np.arange(len(lengths))
        item = np.repeat(np.arange(len(items)), [len(item.choices) for item in items])
        return Encoded(lengths, item, np.arange(len(lengths) + 1), numbers, np.ones_like(numbers))

    def score(self, encoded, sequences):
        return encoded.lengths[sequences].astype(float)

    def score_name(self, items):
        return "characters"


def test_a_baseline_needs_no_model(tmp_path, capsys):
    entry = ScorerEntry(
        name="longest",
        label="longest choice",
        needs=Capability.NOTHING,
        make=lambda _: LongestChoice(),
    )
    SCORERS.add(entry)
    try:
        out = tmp_path / "out"
        run("questions", "--model", "none", "--scorer", "longest", "-o", out)
        done = evaluation.load(out)
        for row in done.predictions.to_pylist():
            lengths = [len(text) for text in row["choices"]]
            assert row["prediction"] == lengths.index(max(lengths))
        assert done.results.model.parameters == 0
        assert done.results.timings.load == 0
        with pytest.raises(UsageError, match="--scorer longest reads no model"):
            evaluation.evaluate("questions", "gpt2", scorer="longest")
    finally:
        SCORERS.remove("longest")
    with pytest.raises(UsageError, match="Without a model, name with --scorer"):
        evaluation.evaluate("questions", "none")
    with pytest.raises(UsageError, match="--train"):
        evaluation.evaluate("questions", "none", train=5)


# Runs


def key(probe="questions", model="gpt2", **options):
    spec = RunSpec.parse(probe, model, options)
    return open_run(spec, ModelHandle(model, spec.run)).key


def test_a_run_is_known_by_its_content(world, tmp_path):
    first = key()
    assert key(str(world / "questions"), str(world / "gpt2")) == first, "names do not matter"
    assert key(shots=0, split="test", normalization="sum", facts=False) == first
    lines = (world / "questions" / "test.jsonl").read_text().splitlines()
    (tmp_path / "test.jsonl").write_text("\n".join(lines) + "\n")
    assert key(str(tmp_path)) == first, "nor does the file"
    (tmp_path / "test.jsonl").write_text("\n".join(lines[1:]) + "\n")
    others = [key(str(tmp_path)), key(model="llama"), key(shots=1), key(shots=1, seed=1)]
    others += [key(letters=True), key(dtype="bfloat16"), key(batch_tokens=64)]
    encoder = {"model": "encoder", "train": 6}
    others += [key(**encoder), key(**{**encoder, "train": 7}), key(**encoder, seed=1)]
    others += [key(**encoder, epochs=2), key(model="choice")]
    assert len({first, *others}) == 1 + len(others)
    assert key(seed=1) == first, "nothing is drawn"
    assert key(**encoder, keep_checkpoint="x") == key(**encoder), "where to keep it is no content"


def test_raising_a_version_leaves_earlier_scores_alone(monkeypatch):
    first = key(scorer="causal_lm")
    entry = SCORERS.get("causal_lm")
    raised = ScorerEntry(**{**vars(entry), "version": entry.version + 1})
    with monkeypatch.context() as patch:
        patch.setitem(SCORERS._loaded, "causal_lm", raised)
        assert key(scorer="causal_lm") != first
    assert key(scorer="causal_lm") == first
    monkeypatch.setattr("evaluation.content.FORMAT", 99)
    assert key(scorer="causal_lm") != first


def test_a_run_varies_in_what_is_named_alone():
    spec = RunSpec.parse("questions", "encoder", {"train": 6, "epochs": 2, "limit": 5})
    varied = spec.vary(train=12, seed=3, learning_rate=1e-3)
    assert (varied.run.train, varied.run.seed, varied.run.limit) == (12, 3, 5)
    assert dict(varied.options) == {"epochs": 2, "learning_rate": 1e-3}
    with pytest.raises(UsageError, match="--seed"):
        spec.vary(seed=-1)


def test_a_data_set_in_memory_is_scored_as_from_its_files(world):
    from datasets import load_dataset

    files = {name: str(world / "questions" / f"{name}.jsonl") for name in ("train", "test")}
    probe = load_dataset("json", data_files=files, cache_dir=str(world / "datasets"))
    assert isinstance(probe, DatasetDict)
    found = evaluation.evaluate(probe, "gpt2", shots=1)
    assert found.predictions.equals(evaluation.evaluate("questions", "gpt2", shots=1).predictions)


# Registries and options


def test_models_say_what_they_can_do():
    causal, encoder = (
        ModelHandle(name, RunSpec.parse("", name, {}).run).checkpoint.capabilities
        for name in ("gpt2", "encoder")
    )
    assert Capability.CAUSAL_SCORES | Capability.HIDDEN_STATES in causal
    assert Capability.MASKED_SCORES not in causal
    assert encoder == Capability.HIDDEN_STATES | Capability.TRAINABLE
    assert head_that_gives(Capability.HIDDEN_STATES).auto_class == "AutoModel"
    assert head_that_gives(Capability.CHOICE_HEAD).name == "multiple_choice"


def test_hidden_states_are_those_of_the_encoder_alone():
    handle = ModelHandle("bert", RunSpec.parse("", "bert", {}).run)
    model, tokenizer = handle.load(head_that_gives(Capability.HIDDEN_STATES))
    batch = tokenizer("a dog", return_tensors="pt")
    vectors = model(**batch).last_hidden_state
    assert vectors.shape == (1, batch["input_ids"].shape[1], model.config.hidden_size)
    whole, _ = handle.load(handle.checkpoint.head)
    same = whole(**batch, output_hidden_states=True).hidden_states[-1]
    assert torch.allclose(vectors, same, atol=1e-5)


@pytest.mark.slow
def test_studies_of_folders_by_name(tmp_path):
    for model in ("gpt2", "llama"):
        evaluation.evaluate("questions", model, output=tmp_path / model)
    found = evaluation.study("compare", [tmp_path / "gpt2", tmp_path / "llama"], seed=1)
    assert [row["model"] for row in found.rows("runs")] == ["gpt2", "llama"]
    with pytest.raises(UsageError, match="no option --shots"):
        evaluation.study("compare", [tmp_path / "gpt2", tmp_path / "llama"], shots=1)
    with pytest.raises(UsageError, match="at least two results"):
        evaluation.study("compare", tmp_path / "gpt2")
    with pytest.raises(UsageError, match="no model is named"):
        evaluation.study("orders", "questions")


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        ("gpt2", {"multi_piece": "skip"}, "--multi-piece is for masked LM"),
        ("gpt2", {"epochs": 2}, "--epochs requires --train"),
        ("gpt2", {"learner": "full"}, "--learner fits on the rows of --train"),
        ("encoder", {"train": 6, "learner": "ful"}, "no learner 'ful'. Did you mean"),
        ("encoder", {"train": 6, "shots": 2}, "--shots is for .*causal LM"),
        ("encoder", {"train": 6, "scorer": "causal_lm"}, "does not go with --scorer causal_lm"),
        ("gpt2", {"scorer": "casual_lm"}, "no scorer 'casual_lm'. Did you mean 'causal_lm'"),
        ("gpt2", {"letters": True, "normalization": "char"}, "--normalization char"),
        ("gpt2", {"shots": 65}, "--shots"),
        ("encoder", {"train": 99}, r"--train 99 .* --train 24 or less"),
    ],
)
def test_options_that_do_not_go_together_are_refused(model, options, message):
    with pytest.raises(UsageError, match=message):
        evaluation.evaluate("questions", model, **options)


def test_a_default_given_for_another_scorer_is_no_misunderstanding():
    evaluation.evaluate("questions", "gpt2", limit=3, multi_piece="pll", epochs=4)


def test_one_checkpoint_is_kept_for_one_run(capsys, tmp_path):
    words = ("questions", "clozes", "--model", "encoder", "--train", "6", "-o", tmp_path)
    run(*words, "--keep-checkpoint", tmp_path / "kept", code=2)
    assert "--keep-checkpoint is for a single run" in capsys.readouterr().err


class Entry:
    def __init__(self, name):
        self.name = name


def test_a_registry_takes_entries_of_its_kind_once():
    registry = Registry[Entry]("entry", "kbprobe.nothing", Entry, {})
    assert registry.add(Entry("one")).name == "one"
    with pytest.raises(KbprobeError, match="second entry named 'one'"):
        registry.add(Entry("one"))
    with pytest.raises(KbprobeError, match="is a str, and no entry"):
        registry.add("two")
    with pytest.raises(UsageError, match=r"no entry 'ome'\. Did you mean 'one'"):
        registry.get("ome")
    assert [entry.name for entry in registry] == registry.names() == ["one"]


def test_entry_points_are_found_and_a_broken_one_breaks_nothing(monkeypatch, capsys):
    class Point:
        def __init__(self, name, loaded):
            self.name, self.value, self.module = name, f"package:{name}", "package"
            self._loaded = loaded

        def load(self):
            if isinstance(self._loaded, Exception):
                raise self._loaded
            return self._loaded

    points = [Point("good", Entry("good")), Point("bad", ImportError("no module 'x'"))]
    monkeypatch.setattr("evaluation.registry.entry_points", lambda group: points)
    registry = Registry[Entry]("scorer", "kbprobe.scorers", Entry, {})
    assert registry.names() == ["good"]
    assert (
        "the scorer 'bad' of another package was left out: ImportError" in capsys.readouterr().err
    )


def test_names_of_options_mean_one_thing():
    """Scorers and learners share one flat set of option names on the command line."""
    owners = {}
    for entry in (*SCORERS, *LEARNERS):
        for name, field in entry.options.model_fields.items():
            # A scorer that heeds an option of runs inherits it.
            shared = RunOptions.model_fields.get(name)
            assert shared is None or shared.description == field.description
            assert owners.setdefault(name, field.description) == field.description
