"""What runs would send to an endpoint, without sending it."""

from __future__ import annotations

from collections.abc import Sequence

from evaluation.endpoints.handle import open_handle
from evaluation.runs.executor import model_of, open_sub_questions
from evaluation.runs.reading import SplitReader
from evaluation.runs.ready import ReadyScorers
from evaluation.runs.run import Run, open_run
from evaluation.runs.spec import RunSpec
from evaluation.workers import ALONE
from kb_cache.store import cache_dir
from kbprobe.errors import UsageError
from kbprobe.progress import silent


def announce_requests(specs: Sequence[RunSpec]) -> list[Run]:
    """Have the scorer of each run report how many prompts it would send, and about how many tokens.

    Only what identifies a model is sent: nothing to a chat API, a short text to other endpoints.

    Returns:
        The runs, with those of the single facts that their questions combine.

    Raises:
        UsageError: a model is not behind an endpoint, or a run cannot be made.
        KbprobeError: a probe cannot be read, or the endpoint cannot be reached.
    """
    runs: list[Run] = []
    reader = SplitReader()
    for spec in specs:
        if spec.run.endpoint is None:
            raise UsageError("--dry-run tells what is sent to --endpoint URL: give it as well")
        run = open_run(spec, open_handle(*model_of(spec), cache_dir()), reader)
        facts = open_sub_questions(run)
        with ReadyScorers(ALONE, silent) as scorers:
            for one in (run, facts):
                if one is not None:
                    scorers.get(one).scorer.encode(one.items)
                    runs.append(one)
    return runs
