"""The cached answers of SPARQL endpoints, as ``kb-cache`` lists, verifies and clears them."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kb_cache import store
from kb_cache.base import Holding
from kb_cache.listing import age, date, row
from kb_cache.wikidata.sparql.answers import DamagedAnswer, answers_dir, read

_ANSWER = re.compile(r"[0-9a-f]{64}\.json\.gz")
#: Left by a process that was killed while it wrote an answer.
_INCOMPLETE = re.compile(r"\.[0-9a-f]{64}\.json\.gz\.new-[0-9a-f]{16}")


def endpoints_answers() -> list[EndpointAnswers]:
    """Return the cached answers of each endpoint, sorted by name.

    Raises:
        CacheError: the cache folder cannot be read.
    """
    with store.usable(answers_dir()):
        folders = answers_dir().iterdir() if answers_dir().exists() else ()
        return [EndpointAnswers(folder) for folder in sorted(folders) if folder.is_dir()]


class EndpointAnswers(Holding):
    """The cached answers of one endpoint; its name is "sparql-..."."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.name = folder, f"sparql-{folder.name}"

    def row(self) -> dict[str, Any]:
        """Return the entry of ``kb-cache list --json``."""
        with store.usable(self.folder):
            stats = [path.stat() for path in self._files(_ANSWER)]
        times, now = [stat.st_mtime for stat in stats], time.time()
        newest, oldest = max(times, default=0.0), min(times, default=0.0)
        ages = dict.fromkeys((age(now - newest), age(now - oldest)))
        return row(
            self.name, kind="answers", rows={"answers": len(stats)},
            bytes=sum(stat.st_size for stat in stats), age=" to ".join(ages) if stats else "-",
            created=date(newest), oldest=date(oldest), folder=str(self.folder),
            endpoint=self._endpoint(),
        )  # fmt: skip

    def damage(self) -> list[str]:
        """Read every answer, and compare it with its checksum."""
        return [f"{path.name}: {problem}" for path, problem in self._damaged().items()]

    def repair(self) -> str:
        """Remove damaged answers."""
        self._unlink(self._damaged())
        return "damaged answers removed; they are asked for again when needed"

    def remove(self) -> bool:
        """Remove all answers and incomplete files; other files stay."""
        self._unlink([*self._files(_ANSWER), *self._files(_INCOMPLETE)])
        with store.usable(self.folder):
            if not any(self.folder.iterdir()):
                self.folder.rmdir()
        return True

    def _files(self, name: re.Pattern[str]) -> list[Path]:
        with store.usable(self.folder):
            return sorted(path for path in self.folder.iterdir() if name.fullmatch(path.name))

    def _unlink(self, paths: Iterable[Path]) -> None:
        with store.usable(self.folder):
            for path in paths:
                path.unlink(missing_ok=True)

    def _damaged(self) -> dict[Path, str]:
        found = {}
        for path in self._files(_ANSWER):
            try:
                read(path)
            except DamagedAnswer as error:
                found[path] = str(error)
            except FileNotFoundError:  # removed meanwhile
                continue
        return found

    def _endpoint(self) -> str:
        """The endpoint's address, "" if no answer of it can be read."""
        for path in self._files(_ANSWER):
            try:
                return read(path).endpoint
            except (DamagedAnswer, OSError):
                continue
        return ""
