"""The commands that are killed and run at once, on small real data, and what they write."""

from __future__ import annotations

import csv
import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.real_data import MINIATURES
from tests.release.hub_server import REPO, TOKEN, HubServer
from tests.reliability.forks import Ended, ForkServer, Run

_DATA = Path(__file__).parents[1]
_WORDNET = _DATA / "kb_cache" / "data" / "mini-wordnet"
_GCIDE = _DATA / "kb_cache" / "data" / "gcide-mini-json"
_VECTORS = _DATA / "data" / "glove.sample.50d.txt"


class Stage:
    """A fork server, the inputs of all commands, and the folders that they write to.

    Attributes:
        inputs: a built probe, sheets, votes, a recipe and a model, made as users make them.
        world: the folders of one run: ``out`` (where it runs), ``cache`` and ``tmp``. They are
            emptied for each run, and have the same path for all.
    """

    def __init__(self, folder: Path, evaluation: bool = True) -> None:
        self.inputs, self.world = folder / "inputs", folder / "world"
        self.evaluation = evaluation
        self._forks, self.hub = ForkServer(folder / "forks", evaluation), HubServer()
        self.inputs.mkdir()
        self.hub.account(TOKEN, "me")
        (self.inputs / "token").write_text(TOKEN)
        (self.inputs / "recipe.yaml").write_text(
            "output: built\nprobes:\n"
            "  - {probe: age_comparison, options: {limit: 60}}\n"
            "  - {probe: object_comparison, options: {limit: 60}}\n"
        )
        if evaluation:
            from tests.evaluation import tiny_masked

            tiny_masked.write("bert-uncased", self.inputs / "model")
        self.clear()
        probe = "age_comparison --limit 120 -o"
        self.must(self.at("builders.cli", *probe.split(), str(self.inputs / "probe")))
        sheets = f"annotate export {self.inputs}/probe --n 20 --checks 0 -o {self.inputs}/sheets"
        self.must(self.at("release.cli", *sheets.split()))
        self._vote()

    def _vote(self) -> None:
        """Answer the sheets as three people would who know most answers."""
        rows = list(csv.DictReader((self.inputs / "sheets/sheets/batch-001.csv").open("r")))
        for person in range(3):
            votes = [(row["item_id"], "AB"[(at + person) % 7 == 0]) for at, row in enumerate(rows)]
            lines = [f"{item},{answer},p{person}" for item, answer in votes]
            text = "\n".join(["item_id,answer,annotator", *lines]) + "\n"
            (self.inputs / f"votes-{person}.csv").write_text(text)

    def at(self, main: str, *argv: str, **how: Any) -> Run:
        """Make a run in the world."""
        world = {"KBPROBE_CACHE": str(self.world / "cache"), "TMPDIR": str(self.world / "tmp")}
        env = {**world, **how.pop("env", {})}
        return Run(main, argv, str(self.world / "out"), env, **how)

    def run(self, *runs: Run, apart: float = 0.0) -> list[Ended]:
        """Run commands at once."""
        return self._forks.run(*runs, apart=apart)

    def must(self, run: Run) -> Ended:
        """Run a command that must succeed."""
        (ended,) = self.run(run)
        if ended.code:
            raise AssertionError(f"{run.main} {run.argv}: exit code {ended.code}\n{ended.said}")
        return ended

    def clear(self) -> None:
        """Make the world empty, and the Hub."""
        shutil.rmtree(self.world, ignore_errors=True)
        for name in ("out", "cache", "tmp"):
            (self.world / name).mkdir(parents=True)
        self.hub.repos, self.hub.objects, self.hub.parts = {}, {}, {}

    def close(self) -> None:
        """End the fork server."""
        self._forks.__exit__()


@contextmanager
def staged(folder: Path, evaluation: bool = True) -> Iterator[Stage]:
    """Make a stage, with its Hub, for as long as the block lasts."""
    stage = Stage(folder, evaluation)
    with stage.hub:
        try:
            yield stage
        finally:
            stage.close()


@dataclass(frozen=True)
class Command:
    """A command that writes.

    Attributes:
        name: for people.
        main: its module.
        argv: its words; ``{inputs}`` and ``{hub}`` stand for the stage's.
        other: words of another request for the same target; empty: there is none, or each may
            replace what the one before has written.
        before: commands that are run first, undisturbed.
        evaluation: whether it needs torch.
        short: whether the default tests kill it.
    """

    name: str
    main: str
    argv: str
    other: str = ""
    before: tuple[tuple[str, str], ...] = ()
    evaluation: bool = False
    short: bool = False

    def run(self, stage: Stage, argv: str = "", **how: Any) -> Run:
        """Make a run of it, or of other words, in the world."""
        return stage.at(self.main, *_words(argv or self.argv, stage), **how)

    def prepare(self, stage: Stage) -> None:
        """Empty the world and run what comes before."""
        stage.clear()
        for main, argv in self.before:
            stage.must(stage.at(main, *_words(argv, stage)))


def _words(argv: str, stage: Stage) -> list[str]:
    known = {"inputs": stage.inputs, "hub": stage.hub.url, "repo": REPO}
    places = {"data": _DATA, "wordnet": _WORDNET, "gcide": _GCIDE, "vectors": _VECTORS}
    return [word.format(**known, **places, miniatures=MINIATURES) for word in argv.split()]


_BUILD, _KB, _RELEASE, _EVALUATE = "builders.cli", "kb_cache.cli", "release.cli", "evaluation.cli"
_MODEL = "--model {inputs}/model --device cpu"

COMMANDS: tuple[Command, ...] = (
    Command("fetch wordnet", _KB, "fetch wordnet --from {wordnet} --name mini"),
    Command(
        "fetch conceptnet",
        _KB,
        "fetch conceptnet --from {miniatures}/conceptnet-miniature.csv.gz --name mini",
    ),
    Command("fetch gcide", _KB, "fetch gcide --from {gcide} --name mini"),
    Command(
        "fetch wikidata",
        _KB,
        "fetch wikidata --from {miniatures}/wikidata-miniature.nt.gz --name mini --licence "
        "CC0-1.0 --attribution Wikidata --language en",
    ),
    Command(
        "fetch corpus",
        _KB,
        "fetch corpus --from {miniatures}/corpora/snli-miniature.jsonl --name mini "
        "--licence CC-BY-SA-4.0 --attribution SNLI --pipeline blank:en",
    ),
    Command("fetch vectors", _KB, "fetch vectors --from {vectors} --name mini", short=True),
    Command(
        "build",
        _BUILD,
        "age_comparison --limit 60 -o probe",
        "age_comparison --limit 60 --seed 1 -o probe",
        short=True,
    ),
    Command(
        "build --overwrite",
        _BUILD,
        "age_comparison --limit 60 --overwrite -o probe",
        before=((_BUILD, "age_comparison --limit 30 -o probe"),),
    ),
    Command("build --sample", _BUILD, "age_comparison --limit 60 --sample 5 --blind -o probe"),
    Command("recipe", _BUILD, "--recipe {inputs}/recipe.yaml"),
    Command("rebuild", _BUILD, "--from-manifest {inputs}/probe/manifest.json"),
    Command(
        "annotate export",
        _RELEASE,
        "annotate export {inputs}/probe --n 20 -o sheets",
        "annotate export {inputs}/probe --n 20 --seed 1 -o sheets",
        short=True,
    ),
    Command(
        "annotate import",
        _RELEASE,
        "annotate import {inputs}/probe --votes {inputs}/votes-0.csv {inputs}/votes-1.csv "
        "{inputs}/votes-2.csv --key {inputs}/sheets/key.json -o gold --labels labels.jsonl",
        "annotate import {inputs}/probe --votes {inputs}/votes-0.csv "
        "--key {inputs}/sheets/key.json --min-votes 1 -o gold",
    ),
    Command(
        "export",
        _RELEASE,
        "export {inputs}/probe --to lm-eval -o export",
        "export {inputs}/probe --to lighteval -o export",
        short=True,
    ),
    Command(
        "publish",
        _RELEASE,
        "{inputs}/probe --repo-id {repo} --endpoint {hub} --token-file {inputs}/token --tag v1",
    ),
    Command(
        "publish --canary-column",
        _RELEASE,
        "{inputs}/probe --repo-id {repo} --endpoint {hub} --token-file {inputs}/token "
        "--canary-column",
    ),
    Command(
        "evaluate",
        _EVALUATE,
        "{inputs}/probe " + _MODEL + " -o results",
        "{inputs}/probe " + _MODEL + " --split train -o results",
        evaluation=True,
        short=True,
    ),
    Command(
        "evaluate --no-cache",
        _EVALUATE,
        "{inputs}/probe " + _MODEL + " --no-cache -o results",
        evaluation=True,
    ),
    Command(
        "evaluate heads",
        _EVALUATE,
        "{inputs}/probe " + _MODEL + " --learner linear --train 40 --epochs 1 -o results",
        evaluation=True,
    ),
    Command(
        "evaluate fine-tuned",
        _EVALUATE,
        "{inputs}/probe " + _MODEL + " --learner full_mlm --train 24 --epochs 1 -o results",
        evaluation=True,
    ),
    Command(
        "study",
        _EVALUATE,
        "curve {inputs}/probe "
        + _MODEL
        + " --model none --sizes 10,20 --seeds 2 --learners majority,linear -o s",
        "curve {inputs}/probe "
        + _MODEL
        + " --model none --sizes 10 --seeds 2 --learners majority,linear -o s",
        evaluation=True,
    ),
)


@dataclass(frozen=True)
class Held:
    """What the folders of a world hold: hashes by path, without what differs between any two runs.

    Attributes:
        outputs: the files that were written for users, and those of the Hub.
        others: the paths of all files and folders of cache and temporary folder.
    """

    outputs: Mapping[str, str]
    others: frozenset[str] = field(default_factory=frozenset)

    @classmethod
    def of(cls, stage: Stage) -> Held:
        """Look at the world."""
        outputs = {}
        for path in sorted((stage.world / "out").rglob("*")):
            name = path.relative_to(stage.world).as_posix()
            outputs[name] = _hash(path) if path.is_file() else "folder"
        for repo in stage.hub.repos.values():
            head = repo.find("main")
            for name, blob in head.files.items() if head else ():
                content = stage.hub.objects[blob.sha256] if blob.sha256 else blob.content
                outputs[f"hub/{repo.name}/{name}"] = hashlib.sha256(content).hexdigest()
            tags = sorted(getattr(repo, "tags", {}))
            outputs[f"hub/{repo.name}"] = f"tags {tags}"
        paths = (path for name in ("cache", "tmp") for path in (stage.world / name).rglob("*"))
        return cls(outputs, frozenset(path.relative_to(stage.world).as_posix() for path in paths))

    def differences(self, reference: Held) -> list[str]:
        """Say in what this differs from what an undisturbed run left."""
        found = [f"left: {name}" for name in sorted(self.others - reference.others)]
        for name in sorted(self.outputs.keys() | reference.outputs.keys()):
            one, other = self.outputs.get(name), reference.outputs.get(name)
            if one != other:
                what = "missing" if one is None else "left" if other is None else "other bytes"
                found.append(f"{what}: {name}")
        return found


def _hash(path: Path) -> str:
    """Hash a file without the times that it took, which differ between any two runs."""
    content = path.read_bytes()
    if path.suffix == ".json":
        # What a killed command was writing, next to the place where it belongs, may be cut.
        with suppress(json.JSONDecodeError):
            content = json.dumps(_timeless(json.loads(content)), sort_keys=True).encode()
    elif path.suffix == ".html":
        return "a page"
    return hashlib.sha256(content).hexdigest()


#: Keys of results that tell how long something took, and of checksums over these.
_TIMES = ("timings", "results.json", "curve.json")


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _timeless(one) for key, one in value.items() if key not in _TIMES}
    return [_timeless(one) for one in value] if isinstance(value, list) else value
