"""``evaluate-probe surprisal``: the bits that each token of each choice costs a causal LM."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kbprobe.errors import UsageError
from kbprobe.progress import shown_progress
from kbprobe.terminal import echo

if TYPE_CHECKING:
    from evaluation.surprisal.table import Surprisals

SURPRISAL_HELP = (
    "Write the surprisal of every token of every choice, in bits, and bits per byte, as a Parquet "
    "file with a row for each choice. For causal LMs."
)
CAUSAL_RUN = frozenset(
    {
        *("config", "split", "limit", "limit_by", "seed", "fold"),
        *("prompt", "chat", "shots", "shots_seed", "shots_order", "pack"),
        *("batch_tokens", "device", "dtype", "revision", "trust_remote_code", "model_args"),
    }
)
"""The options of runs and of causal LMs that surprisals depend on."""
_DEFAULT = Path("results", "surprisal")


def write_surprisals(
    probe: str, model: str, output: Path | None, overwrite: bool, options: Mapping[str, Any]
) -> None:
    """Compute the surprisals of a probe, write them and print a summary.

    Raises:
        UsageError: the file exists and ``overwrite`` is off; or as
            :func:`evaluation.surprisal.table.surprisals`.
    """
    from evaluation.surprisal.table import surprisals
    from kbprobe.files import replacing_file
    from kbprobe.format.parquet import write_parquet

    target = output or _DEFAULT / f"{Path(probe).name}-{Path(model).name}.parquet"
    if target.exists() and not overwrite:
        raise UsageError(f"{target} exists: name another file with -o, or add --overwrite")
    with shown_progress(True, {"scoring": "rows"}) as progress:
        found = surprisals(probe, model, progress, **options)
    with replacing_file(target) as file:
        write_parquet(found.table, file)
    echo(f"Wrote {target}", err=True)
    for line in summary(found):
        echo(line)


def summary(found: Surprisals) -> list[str]:
    """Say how many choices there are, their mean bits per byte, and what was set aside."""
    import pyarrow.compute as pc

    lines = []
    for name, gold in (("golds", True), ("other choices", False)):
        some = found.table.filter(pc.equal(found.table["gold"], gold))
        if len(some):
            per_byte = pc.sum(some["bits"]).as_py() / max(pc.sum(some["bytes"]).as_py(), 1)
            lines.append(
                f"{name}: {len(some):,}, {per_byte:.3f} bits per byte, "
                f"{pc.mean(some['bits']).as_py():.2f} bits each"
            )
    if found.set_aside:
        (first, reason), *_ = found.set_aside.items()
        lines.append(f"set aside: {len(found.set_aside):,} rows, such as {first}: {reason}")
    return lines
