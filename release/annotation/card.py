"""The card of a gold standard."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kbprobe.errors import UsageError
from kbprobe.format.card import front_matter
from kbprobe.format.dataset import CARD
from kbprobe.format.items import COLUMNS
from kbprobe.format.setups import CONTROLS
from kbprobe.options import option_name, spelled
from release.annotation.options import VoteOptions
from release.cards import LICENCE, join_card, sections, split_card

if TYPE_CHECKING:
    from kbprobe.format.card import Configs

_SECTIONS = ("What it cannot show", "Build it again", "Licence", "Citation", "Canary")
"""Sections of the source's card that apply to its rows wherever they are used."""

_ORIGIN = {
    "agreed": "The answers are the ones the probe was built with or, where it had none, the ones "
    "that people voted for.",
    "voted": "The answers are the ones that people voted for, whatever the probe was built with.",
}


def gold_card(
    source: Path, manifest: Mapping[str, Any], configs: Configs, sample: Mapping[str, Any]
) -> str:
    """Render ``README.md`` of a gold standard, with ``sample`` as its row.

    Limits, licence, citations and canary are those of ``source``, the probe that was annotated.

    Raises:
        UsageError: the source's card is missing or has no front matter.
    """
    from jinja2 import Environment, StrictUndefined

    old, parts = _source_card(source)
    licence = {name: old[name] for name in LICENCE if name in old}
    front = front_matter(manifest, str(sample["setup"]), licence, configs)
    front["pretty_name"] += ", gold standard"
    front["annotations_creators"] = ["machine-generated", "crowdsourced"]
    front["tags"] = [*front["tags"], "human-annotated"]
    template = Path(__file__).with_name("card.md.j2").read_text(encoding="utf-8")
    environment = Environment(
        undefined=StrictUndefined, keep_trailing_newline=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["count"] = "{:,}".format
    text = environment.from_string(template).render(
        m=manifest,
        a=manifest["annotation"],
        sample=json.dumps(sample, indent=2, ensure_ascii=False),
        columns=COLUMNS,
        sections={name: parts.get(name, "") for name in _SECTIONS},
        origin=_ORIGIN[manifest["annotation"]["keep"]],
        controls={name: text for name, text in CONTROLS.items() if name in configs},
        command=_command(manifest),
    )
    return join_card(front, text)


def _command(manifest: Mapping[str, Any]) -> str:
    """Return the command that makes the gold standard; options at their default are left out."""
    words = ["release-probe annotate import DIR --votes FILE..."]
    if manifest["request"]["annotation"]["key"]:
        words.append("--key key.json")
    fields = VoteOptions.model_fields
    for name, value in manifest["annotation"]["options"].items():
        if value is True:
            words.append(option_name(name))
        elif value != fields[name].default:
            words += [option_name(name), spelled(value)]
    return " ".join([*words, "-o GOLD"])


def _source_card(folder: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """Read the front matter and the sections of a card, without their headings."""
    path = folder / CARD
    try:
        front, text = split_card(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, UsageError) as error:
        raise UsageError(f"{path} cannot be read: {error}. Build the probe again.") from None
    return front, {name: part.partition("\n")[2].strip() for name, part in sections(text).items()}
