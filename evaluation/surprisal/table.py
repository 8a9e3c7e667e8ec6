"""A row for each choice of each question: its tokens, and the bits that each of them costs.

The surprisal of a token is the negative logarithm, to base 2, of its probability after all that
stands before it. The log-likelihood of a choice, its score, is minus the sum of the surprisals of
its tokens, times ln 2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from evaluation.items.sources import ProbeSource
from evaluation.items.types import Item, choice_starts, take_items
from evaluation.runs.executor import model_of
from evaluation.runs.ready import ReadyScorers
from evaluation.runs.run import Run, open_run
from evaluation.runs.spec import RunSpec
from evaluation.workers import ALONE
from kbprobe.errors import UsageError
from kbprobe.terminal.progress import Progress, silent

if TYPE_CHECKING:
    import pyarrow as pa

    from evaluation.scorers.causal.scorer import CausalScorer

SCORER = "causal_lm"
_ROWS_AT_ONCE = 512


class Surprisals(NamedTuple):
    """The table, and why rows are not in it.

    Attributes:
        table: ``id``, ``choice`` (its place in the row), ``gold``, ``text`` (what is scored: the
            choice and, in a cloze, what follows it), ``tokens``, ``token_ids``, ``surprisal`` (bits
            of each token), ``bits`` (their sum), ``bytes`` (of the text in UTF-8) and
            ``bits_per_byte``.
        set_aside: the rows that cannot be scored: id -> the reason.
    """

    table: pa.Table
    set_aside: dict[str, str]


def surprisals(
    probe: ProbeSource, model: str | Path, progress: Progress = silent, **options: Any
) -> Surprisals:
    """Compute the surprisal of every token of every choice.

    Args:
        probe: as for :func:`evaluation.evaluate`.
        model: a causal LM.
        progress: told of every batch.
        **options: those of runs and of the causal-LM scorer, but for ``letters``.

    Raises:
        UsageError: as :func:`evaluation.evaluate`; the model is not scored as a causal LM; or
            letters are scored.
        KbprobeError: the probe or the model cannot be read or run.
    """
    from evaluation.endpoints.handle import open_handle
    from kb_cache.store import cache_dir

    spec = RunSpec.parse(
        str(probe) if isinstance(probe, Path) else probe, str(model), options, None
    )
    with ReadyScorers(ALONE, progress) as scorers:
        run = open_run(spec, open_handle(*model_of(spec), cache_dir()))
        _refuse_others(run)
        scorer: Any = scorers.get(run).scorer
        rows: list[dict[str, Any]] = []
        set_aside: dict[str, str] = {}
        for start in range(0, len(run.items), _ROWS_AT_ONCE):
            stop = min(start + _ROWS_AT_ONCE, len(run.items))
            items = list(take_items(run.items, np.arange(start, stop)))
            rows += _rows(scorer, items, run.model.batch_tokens, set_aside)
            progress("scoring", stop, len(run.items))
    return Surprisals(_as_table(rows), set_aside)


def _refuse_others(run: Run) -> None:
    if run.learner is not None or run.scorer.name != SCORER:
        raise UsageError(
            f"surprisals are of causal LMs as they are, and {run.model.checkpoint.id} would be "
            f"scored by {run.learner.name if run.learner else run.scorer.name}: name a causal LM, "
            "and leave out --train and --scorer"
        )
    if getattr(run.scorer_options, "letters", False):
        raise UsageError("--letters scores letters, and surprisals are of choices: leave it out")


def _rows(
    scorer: CausalScorer, items: Sequence[Item], batch_tokens: int, set_aside: dict[str, str]
) -> Iterator[dict[str, Any]]:
    """Yield the rows of some items, and note those that cannot be scored."""
    from evaluation.scorers.batching import BackOff

    encoded = scorer.encode(items)
    set_aside |= {items[number].id: reason for number, reason in encoded.set_aside.items()}
    cells = np.empty(int(encoded.cell_starts[-1]))
    score = partial(scorer.token_log_probs, encoded)
    for batch, values in BackOff().batches(score, encoded.lengths, batch_tokens):
        cells[encoded.cells(batch)[2]] = values
    slot_of = dict(zip(encoded.slot_choice.tolist(), range(len(encoded.slot_choice)), strict=True))
    starts = choice_starts(items)
    for number, item in enumerate(items):
        if number in encoded.set_aside:
            continue
        ((rendered, _),) = scorer.render(item)
        for choice, text in enumerate(rendered.continuations):
            slot = slot_of[int(starts[number]) + choice]
            here = slice(int(encoded.cell_starts[slot]), int(encoded.cell_starts[slot + 1]))
            ids = encoded.cell_target[here].tolist()
            # Without the space between question and choice, as --normalization byte counts.
            written = text.removeprefix(" ")
            bits = -cells[here] / np.log(2)
            size = len(written.encode("utf-8", "surrogatepass"))
            yield {
                "id": item.id,
                "choice": choice,
                "gold": choice == item.answer,
                "text": written,
                "tokens": scorer.token_texts(ids),
                "token_ids": ids,
                "surprisal": bits.tolist(),
                "bits": float(bits.sum()),
                "bytes": size,
                "bits_per_byte": float(bits.sum()) / size if size else None,
            }


def _as_table(rows: list[dict[str, Any]]) -> pa.Table:
    import pyarrow as pa

    schema = pa.schema(
        {
            "id": pa.string(),
            "choice": pa.int32(),
            "gold": pa.bool_(),
            "text": pa.string(),
            "tokens": pa.list_(pa.string()),
            "token_ids": pa.list_(pa.int32()),
            "surprisal": pa.list_(pa.float64()),
            "bits": pa.float64(),
            "bytes": pa.int32(),
            "bits_per_byte": pa.float64(),
        }
    )
    return pa.Table.from_pylist(rows, schema=schema)
