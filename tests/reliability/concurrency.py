"""Commands that run at once on one target and one cache: no lost result, no mixed one.

Of equal requests all succeed, and the result is that of a lone run. Of different ones exactly those
succeed whose result is there; the others wait, and are refused then.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.reliability.commands import COMMANDS, Command, Held, Stage, staged
from tests.reliability.forks import Ended, Run

#: What a refusal may say: another process writes, or has written, something else there.
_REFUSED = re.compile(
    r"another request|holds other|exists already|"
    r"has changed since|are of|another --name"
)


@dataclass
class AtOnce:
    """What became of runs that were started at once."""

    name: str
    runs: int = 0
    succeeded: int = 0
    refused: int = 0
    failures: list[str] = field(default_factory=list)


def same_at_once(stage: Stage, command: Command, number: int, apart: float = 0.0) -> AtOnce:
    """Start equal requests at once: all succeed, and leave what one leaves."""
    done = AtOnce(f"{command.name}, {number} equal", number)
    reference = _alone(stage, command, command.argv)
    command.prepare(stage)
    runs = [command.run(stage) for _ in range(number)]
    for ended in stage.run(*runs, apart=apart):
        done.succeeded += not ended.code
        if ended.code:
            done.failures.append(f"exit code {ended.code}: {ended.said[-400:]}")
    done.failures += Held.of(stage).differences(reference)
    return done


def different_at_once(stage: Stage, command: Command, number: int, apart: float = 0.0) -> AtOnce:
    """Start two kinds of requests for one target: one kind succeeds, and is what is there."""
    done = AtOnce(f"{command.name}, {number} of two kinds", number)
    words = [command.argv, command.other]
    references = [_alone(stage, command, argv) for argv in words]
    command.prepare(stage)
    runs = [command.run(stage, words[at % 2]) for at in range(number)]
    ended = stage.run(*runs, apart=apart)
    held = Held.of(stage)
    there = [at for at in range(2) if held.outputs == references[at].outputs]
    for at, one in enumerate(ended):
        done.succeeded += not one.code
        done.refused += bool(one.code)
        done.failures += _wrong(one, at % 2, there)
    if not there:
        done.failures.append("what is there is of no request alone")
    left = held.others - references[0].others - references[1].others
    done.failures += [f"left: {name}" for name in sorted(left)]
    return done


def _wrong(ended: Ended, kind: int, there: Sequence[int]) -> list[str]:
    """Say what is wrong with an exit code, given which kinds' results are there."""
    if ended.code == 0 and kind not in there:
        return [f"succeeded, and its result is not there: {ended.said[-300:]}"]
    if ended.code and not _REFUSED.search(ended.said):
        return [f"exit code {ended.code}: {ended.said[-400:]}"]
    return []


def _alone(stage: Stage, command: Command, argv: str) -> Held:
    command.prepare(stage)
    stage.must(command.run(stage, argv))
    return Held.of(stage)


def run_concurrent(only: str, _seed: int) -> int:
    """Run each command 4 and 8 times at once, print a table, and return how many failed."""
    found, console = [], Console(stderr=True)
    with tempfile.TemporaryDirectory() as folder, staged(Path(folder)) as stage:
        for command in (command for command in COMMANDS if only in command.name):
            stage.must(_learning(stage, command))
            for number in (4, 8):
                found.append(same_at_once(stage, command, number))
                if command.other:
                    found.append(different_at_once(stage, command, number, apart=0.02))
            for done in found[-4:]:
                for failure in done.failures[:4]:
                    console.print(f"{done.name}: {failure}", markup=False, highlight=False)
    shown = Table(title="At once")
    for name in ("commands", "succeeded", "refused", "failures"):
        shown.add_column(name, justify="left" if name == "commands" else "right")
    for done in found:
        shown.add_row(done.name, str(done.succeeded), str(done.refused), str(len(done.failures)))
    Console(width=100, file=sys.stdout).print(shown)
    return sum(len(done.failures) for done in found)


def _learning(stage: Stage, command: Command) -> Run:
    command.prepare(stage)
    return command.run(stage, learn=True)
