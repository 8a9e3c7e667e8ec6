"""Commands killed at random moments and run again: the same bytes, and nothing left.

Half of the kills come at a moment drawn from the time that an undisturbed run takes, half before a
file operation drawn from those that it makes: most of a run computes, and what it writes takes
milliseconds.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from rich.console import Console
from rich.table import Table

from tests.reliability.commands import COMMANDS, Command, Held, Stage, staged

#: Differences of a command that are shown.
_SHOWN = 4


@dataclass
class Kills:
    """What became of a command's kills.

    Attributes:
        name: the command.
        kills: how many were tried.
        killed: of these, how many came before the end of the run.
        again: how many reruns were killed as well, before the last that was not.
        seconds: what an undisturbed run takes.
        failures: what was wrong, one text for each failed case.
        left: how often each kind of thing was left after the kill and swept by the rerun.
    """

    name: str
    kills: int = 0
    killed: int = 0
    again: int = 0
    seconds: float = 0.0
    failures: list[str] = field(default_factory=list)
    left: Counter[str] = field(default_factory=Counter)


def kill(stage: Stage, command: Command, kills: int, seed: int) -> Kills:
    """Kill a command a number of times, run it again each time, and compare what is there.

    Every fourth time the second run is killed as well, before a third.
    """
    done = Kills(command.name)
    command.prepare(stage)
    stage.must(command.run(stage, learn=True))
    command.prepare(stage)
    ended = stage.must(command.run(stage))
    reference, operations = Held.of(stage), ended.operations
    done.seconds = ended.seconds
    for case in range(kills):
        random = Random(f"{seed}/{command.name}/{case}")
        command.prepare(stage)
        done.kills += 1
        for repeated in range(1 + (case % 4 == 3)):
            how: dict[str, float | int] = (
                {"kill_after": random.uniform(0.001, ended.seconds)}
                if random.random() < 0.5 or not operations
                else {"kill_at": random.randint(1, operations)}
            )
            (struck,) = stage.run(command.run(stage, **how))
            if repeated:
                done.again += struck.killed
            else:
                done.killed += struck.killed
            if not struck.killed and struck.code:
                done.failures.append(f"case {case}: exit code {struck.code}: {struck.said[-500:]}")
        done.left.update({_kind(name) for name in Held.of(stage).differences(reference)})
        (again,) = stage.run(command.run(stage))
        if again.code:
            done.failures.append(f"case {case} {how}: exit code {again.code}: {again.said[-500:]}")
        elif found := Held.of(stage).differences(reference):
            more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
            done.failures.append(f"case {case} {how}: {'; '.join(found[:_SHOWN])}{more}")
    return done


def _kind(difference: str) -> str:
    return difference.partition(":")[0]


def run_kills(kills: int, only: str, seed: int) -> int:
    """Kill each command so many times, print a table, and return how many cases failed."""
    found, console = [], Console(stderr=True)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, staged(Path(folder)) as stage:
        for command in (command for command in COMMANDS if only in command.name):
            done = kill(stage, command, kills, seed)
            found.append(done)
            console.print(f"{command.name}: {len(done.failures)} failed", highlight=False)
            for failure in done.failures[:_SHOWN]:
                console.print(f"  {failure}", markup=False, highlight=False)
    Console(width=100, file=sys.stdout).print(table(found))
    console.print(f"{time.monotonic() - began:.0f} s")
    return sum(len(done.failures) for done in found)


def table(found: Sequence[Kills]) -> Table:
    """Return the figures of all commands."""
    shown = Table(title="Killed and run again")
    for name in ("command", "kills", "while it ran", "twice", "one run (s)", "failed"):
        shown.add_column(name, justify="left" if name == "command" else "right")
    for done in found:
        shown.add_row(
            done.name,
            f"{done.kills:,}",
            f"{done.killed:,}",
            f"{done.again:,}",
            f"{done.seconds:.2f}",
            f"{len(done.failures):,}",
        )
    return shown
