"""``evaluate-probe surprisal``: the bits that each token of each choice costs a causal LM."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evaluation.options import RunOptions
from evaluation.scorers.causal.options import CausalOptions
from kbprobe.cli import command
from kbprobe.errors import UsageError
from kbprobe.options import command_option, given_of, role
from kbprobe.terminal import echo
from kbprobe.terminal.progress import shown_progress

if TYPE_CHECKING:
    from evaluation.surprisal.table import Surprisals

_NOT_READ = {"facts", "random_weights", "letters", "order"}
_FIELDS = {
    name: field
    for name, field in {**RunOptions.model_fields, **CausalOptions.model_fields}.items()
    if name not in _NOT_READ and role(field).section in ("Probe", "Model", "")
}
"""The options of probes, models and causal LMs that surprisals depend on."""
_DEFAULT = Path("results", "surprisal")


@command(
    "surprisal",
    help="Write the surprisal of every token of every choice, in bits, and bits per byte, as a "
    "Parquet file with a row for each choice. For causal LMs.",
)
@click.argument("probe", metavar="PROBE")
@click.option("-m", "--model", metavar="MODEL", required=True, help="A folder or a Hub id.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="File to write. [default: results/surprisal/PROBE-MODEL.parquet]",
)
@click.option("--overwrite", is_flag=True, help="Replace an existing file.")
def surprisal_command(
    probe: str, model: str, output: Path | None, overwrite: bool, **values: Any
) -> None:
    """Compute the surprisals of a probe, write them and print a summary."""
    from evaluation.surprisal.table import surprisals
    from kbprobe.files import replacing_file
    from kbprobe.format.parquet import write_parquet

    target = output or _DEFAULT / f"{Path(probe).name}-{Path(model).name}.parquet"
    if target.exists() and not overwrite:
        raise UsageError(f"{target} exists: name another file with -o, or add --overwrite")
    with shown_progress(True, {"scoring": "rows"}) as progress:
        found = surprisals(probe, model, progress, **given_of(_FIELDS, values))
    with replacing_file(target) as file:
        write_parquet(found.table, file)
    echo(f"Wrote {target}", err=True)
    for line in summary(found):
        echo(line)


surprisal_command.params += [
    command_option(name, field, "Scoring") for name, field in _FIELDS.items()
]


def summary(found: Surprisals) -> list[str]:
    """Return how many choices there are, their mean bits per byte, and what was set aside."""
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
