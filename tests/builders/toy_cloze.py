"""A cloze probe small enough to know by heart, with shortcuts to plant; and what registers it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pytest
from pydantic import Field

from builders.engine import probe as registry
from builders.engine.options import ProbeOptions
from builders.engine.pipeline import build, write
from builders.engine.plan import Facts, Nodes, Plan, Questions
from builders.engine.probe import Probe
from builders.engine.request import Request
from builders.engine.rows import RowArrays, plan_rows
from builders.engine.splits import assign_splits
from kbprobe.format.items import Coded
from kbprobe.rng import RandomGenerator

NAME = "toy_cloze"
ANSWERS = ("not", "really", "very")
Leak = Literal["none", "frame", "prefix", "length", "frequency", "likeness"]


@dataclass(frozen=True)
class Words:
    name: str = "words"
    version: str = "1"
    digest: str = "1" * 64
    licence: str = "CC0-1.0"


class ToyOptions(ProbeOptions):
    """Options of toy_cloze."""

    choices: int = Field(2, ge=2, le=2, description="Answers to choose from.")
    train_rows: int = Field(0, ge=0, description="Most rows of the train split (0: all).")
    split_shares: tuple[float, float, float] = Field((0.5, 0.1, 0.4), description="Shares.")
    pairs: int = Field(1200, ge=1, description="Pairs of words.")
    leak: Leak = Field("none", description="The shortcut to plant.")


def words(count: int, seed: int) -> list[str]:
    """Distinct made-up words of six letters."""
    chance = np.random.default_rng(seed)
    letters = chance.choice(list("abcdefghijklmnopqrstuvwxyz"), (2 * count, 6))
    return list(dict.fromkeys("".join(line) for line in letters))[:count]


def toy_cloze(knowledge: Words, options: ToyOptions, rng: RandomGenerator) -> Plan:
    """Is a word the opposite of another?"""
    count = options.pairs
    pair = np.arange(count)
    opposite = rng.child("label").uniform(pair) < 0.5
    first, second = words(count, 1), words(count, 2)
    noun = rng.child("pos").uniform(pair) < 0.5
    if options.leak == "frame":
        noun = opposite
    for at in np.flatnonzero(opposite).tolist():
        if options.leak == "prefix":
            second[at] = "un" + second[at][2:]
        elif options.leak == "length":
            second[at] += "qzx"[: 1 + at % 3]
        elif options.leak == "frequency":
            second[at] = ("house", "water", "great", "little")[at % 4]
        elif options.leak == "likeness":
            second[at] = first[at][:4] + second[at][:2]
    very = pair % 2 == 1
    other = np.where(very, 2, 1)
    nodes = np.where(
        opposite[:, None], np.stack([0 * pair, other], 1), np.stack([other, 0 * pair], 1)
    )
    cluster = pair // 2
    return plan_rows(
        RowArrays(
            nodes=nodes,
            split=assign_splits(cluster, options.split_shares, rng.child("splits")),
            concept=pair,
        ),
        questions=Questions.from_columns(
            pair + 1000,
            {
                "first": first,
                "second": second,
                "pos": np.where(noun, "noun", "adjective"),
                "strong": np.where(very, "very", "really"),
            },
            pos="pos",
        ),
        choices=Nodes.from_columns(ANSWERS, field="word"),
        families=["constant"],
        relation=pa.array(np.where(opposite, "antonym", "synonym")),
        concepts=pa.array(first),
        facts=Facts.from_codes(pair, 0, pair + count, pa.array(first + second), ("meets",)),
        cluster=Coded(pa.array([f"pairs {at}" for at in range(count)]), cluster),
    )


TOY = Probe(
    NAME,
    plan=toy_cloze,
    options=ToyOptions,
    open=lambda _: Words(),
    question_fields=("first", "second", "pos", "strong"),
    choice_fields=("word",),
    setup="mc_mlm",
    controls=("no_language", "perturbed"),
)


def request(seed: int = 0, template: Path | None = None, **options: Any) -> Request:
    return Request(TOY, TOY.options.parse(options, NAME), seed, template)


def written(folder: Path, seed: int = 0, **options: Any) -> Path:
    write(build(request(seed, **options)), folder)
    return folder


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> str:
    """Have the probe found by its name."""
    registry.all_probes()
    monkeypatch.setitem(registry._registered, NAME, TOY)
    return NAME
