"""Commands on full and read-only file systems; and without a home, in a plain locale."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.reliability.commands import COMMANDS, Command, Held, Stage, staged
from tests.reliability.disk import NoMounts, on_small_disks, small_disk

pytestmark = [pytest.mark.slow, pytest.mark.posix]
SHORT = [command for command in COMMANDS if command.short and not command.evaluation]
AS_OTHERS = (
    *("fetch wordnet", "fetch gcide", "fetch corpus", "rebuild", "publish"),
    *("evaluate --no-cache", "evaluate heads"),
)
"""Commands that write where others do, by the same code: "fetch conceptnet", "build --overwrite",
"publish --canary-column", "evaluate", "study". ``--disks`` tries them as well."""
OTHERS = [command for command in COMMANDS if command not in SHORT and command.name not in AS_OTHERS]

PARTS = ("build", "publish", "evaluate", "evaluate --no-cache", "evaluate heads")
"""Commands all of whose code others run: ``--overwrite``, ``--canary-column``, those that train."""
MORE = [command for command in COMMANDS if command.name not in PARTS]


def staged_once(tmp_path_factory: pytest.TempPathFactory, evaluation: bool) -> Iterator[Stage]:
    with staged(tmp_path_factory.mktemp("stage"), evaluation) as made:
        yield made


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    yield from staged_once(tmp_path_factory, evaluation=False)


@pytest.fixture(scope="module")
def whole_stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    yield from staged_once(tmp_path_factory, evaluation=True)


@pytest.fixture(scope="module")
def mounts(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Skip what needs file systems of its own where this process may not mount any."""
    try:
        with small_disk(tmp_path_factory.mktemp("disk"), 1):
            pass
    except NoMounts as reason:
        pytest.skip(f"only the superuser may mount a small file system: {reason}")


@pytest.mark.parametrize("command", SHORT, ids=lambda command: command.name)
def test_a_full_or_read_only_output(mounts: None, stage: Stage, command: Command) -> None:
    place = "cache" if command.main == "kb_cache.cli" else "out"
    done = on_small_disks(stage, command, (place,), shares=(0.0, 0.5))
    assert done.failures == []
    assert not done.succeeded, "each of the three must have failed"


@pytest.mark.parametrize("command", OTHERS, ids=lambda command: command.name)
def test_every_folder_full_and_read_only(
    mounts: None, whole_stage: Stage, command: Command
) -> None:
    assert on_small_disks(whole_stage, command, shares=(0.6,)).failures == []


@pytest.mark.parametrize("command", MORE, ids=lambda command: command.name)
def test_no_home_a_plain_locale_and_spaces(whole_stage: Stage, command: Command) -> None:
    """A real process, with the result of one that has a home and UTF-8."""
    command.prepare(whole_stage)
    run = command.run(whole_stage)
    whole_stage.must(run)
    expected = Held.of(whole_stage).outputs
    command.prepare(whole_stage)
    place = Path(run.cwd) / "a b'c"
    place.mkdir()
    keep = {name: os.environ[name] for name in ("PATH",) if name in os.environ}
    environment = {
        **keep, "PYTHONPATH": os.pathsep.join(sys.path), "KBPROBE_CACHE": str(place / "the cache"),
        "HOME": "/nonexistent", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0",
        "COLUMNS": "100", "HF_HUB_DISABLE_XET": "1", "HF_DATASETS_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",  # their number changes the last bits of sums
    }  # fmt: skip
    for main, argv in (*command.before, (command.main, list(run.argv))):
        words = argv.split() if isinstance(argv, str) else argv
        done = subprocess.run(
            [sys.executable, "-m", main, *words],
            capture_output=True, env=environment, cwd=place, timeout=300, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr.decode("utf-8", "replace")
    prefix = f"{place.relative_to(whole_stage.world).as_posix()}/"
    found = Held.of(whole_stage).outputs
    ours = {
        name.replace(prefix, "out/"): digest
        for name, digest in found.items()
        if (name.startswith(prefix) or name.startswith("hub/")) and "the cache" not in name
    }
    assert ours == expected
