"""The dataset card (``README.md``) of a probe, for people and for the Hub."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import yaml
from jinja2 import Environment, StrictUndefined, Template

from builders.engine.drops import told_fewer
from builders.engine.plan import left_out
from builders.engine.request import Request
from kbprobe.audit.report import baseline_table, missing_baselines, on_similarity, unflagged
from kbprobe.format.card import Configs, canary_of, front_matter, pretty_name
from kbprobe.format.items import (
    COLUMNS,
    COMMON,
    MOST_NAMES,
    Items,
    ItemsInParts,
    arrow_schema,
    plain,
)
from kbprobe.format.licences import (
    attributions_of,
    languages_of,
    software_entry,
    sources_of,
    terms_of,
    works_of,
)
from kbprobe.format.manifest import on_matching
from kbprobe.format.setups import CLOZE, CONTROLS, DEFAULT_CONFIG
from kbprobe.options import option_name, spelled
from kbprobe.tables import in_markdown


class ClusterSizes(NamedTuple):
    """Rows per cluster: minimum, median and maximum."""

    least: int
    median: int
    most: int


def card_text(manifest: Mapping[str, Any], request: Request, configs: Configs) -> str:
    """Render ``README.md`` of a built probe, front matter included; ``manifest`` lists its files.

    The first row of each config is shown.
    """
    terms = terms_of(manifest["knowledge_base"]["licence"])
    front = front_matter(manifest, request.probe.setup, terms.front_matter, configs)
    rows = {name: first_row(splits) for name, splits in configs.items()}
    sample = rows.pop(DEFAULT_CONFIG)
    cells = manifest["counts"]["cells"]
    sources = sources_of(manifest["knowledge_base"])
    return _template().render(
        front_matter=yaml.safe_dump(front, sort_keys=False, allow_unicode=True, width=1000),
        m=manifest,
        title=pretty_name(manifest["probe"]),
        sample=sample,
        sample_json=json.dumps(sample, indent=2, ensure_ascii=False),
        controls=[(name, CONTROLS[name], row) for name, row in rows.items() if name in CONTROLS],
        sub_questions=[
            (name, manifest["sub_questions"][name], row)
            for name, row in rows.items()
            if name in manifest["sub_questions"]
        ],
        variants=[
            (name, request.probe.variants[name].summary, manifest["variants"][name], row)
            for name, row in rows.items()
            if name in manifest["variants"]
        ],
        cluster_sizes=_cluster_sizes(configs[DEFAULT_CONFIG]),
        cell_names=list(dict.fromkeys(name for row in cells.values() for name in row)),
        encyclopedic=_encyclopedic(manifest["counts"]),
        flags=_flags(manifest, request),
        limits=[
            *limits(manifest, request.probe.setup),
            *getattr(request.knowledge, "limits", ()),
        ],
        columns=[
            (name, _type_name(arrow_schema().field(name).type), COLUMNS[name]) for name in COLUMNS
        ],
        command=command_of(request),
        options=[
            (
                name.replace("_", "-"),
                spelled(value),
                type(request.options).model_fields[name].description,
            )
            for name, value in request.options
        ],
        sources=sources,
        terms=terms,
        attributions=attributions_of(sources),
        works=works_of(sources, request.probe.paper),
        introduced=bool(request.probe.paper),
        software=software_entry(manifest["kbprobe_version"]),
        canary=canary_of(manifest["probe"], manifest["request"]["seed"]),
    )


@cache
def _template() -> Template:
    """Compile the card's template, once per process."""
    environment = Environment(  # nosec B701 # Markdown, not HTML
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Callable[..., str | list[str]]] = {
        "baselines": lambda audit: baseline_table(audit, with_picks=True).markdown(),
        "cell": in_markdown,
        "count": "{:,}".format,
        "missing_baselines": missing_baselines,
        "fewer": told_fewer,
        "unflagged": unflagged,
        "wordings": told_wordings,
    }
    environment.filters |= filters
    source = Path(__file__).with_name("card.md.j2").read_text(encoding="utf-8")
    return environment.from_string(source)


def told_wordings(manifest: Mapping[str, Any]) -> list[str]:
    """Return sentences on what a user's wordings ask, and on the configs that they do not allow.

    >>> template = {"sources": ["x.yaml", "mine.yaml"], "added_rows": {"which": 50}}
    >>> told_wordings({"template": template, "counts": {"rows": 400}})
    ['Of 400 rows, the wordings of mine.yaml ask 50 (12.5%).']
    """
    template, rows = manifest["template"], manifest["counts"]["rows"]
    sentences = []
    if (added := template.get("added_rows")) is not None:
        total = sum(added.values())
        each = ", ".join(f"{name} {count:,}" for name, count in added.items())
        sentences.append(
            f"Of {rows:,} rows, the wordings of {template['sources'][-1]} ask {total:,} "
            f"({total / rows:.1%}){f': {each}' if len(added) > 1 else ''}."
        )
    for control, lacking in template.get("controls_lacking", {}).items():
        sentences.append(f"There is no config {control}: {lacking}.")
    return sentences


def limits(manifest: Mapping[str, Any], setup: str) -> list[str]:
    """Return the limits of a probe: those of all probes, of its setup, and of this build."""
    counts, audit = manifest["counts"], manifest["audit"]
    source = manifest["knowledge_base"]["name"]
    limitations = [
        "A right answer shows that a model prefers the gold to these distractors in this wording. "
        "It does not show that the model would say so unasked, or in other words (compare the "
        "column `template`), or that it could use what it knows.",
        f"True and false are those of {source}. It has gaps, so that a distractor may be true in "
        "the world, and errors and rare senses, so that a gold may surprise a reader.",
        f"The text of {source} is public. Any model may have read it: having seen it and knowing "
        "it are not told apart here.",
        "Rows of one cluster stand or fall together: clusters are the units of intervals.",
        f"Its questions are in one language ({', '.join(languages_of(manifest))}): what a model "
        "knows in others does not show.",
    ]
    if setup == CLOZE:
        limitations.append(
            "The answer is put in one place of the question. A model whose tokenizer splits an "
            "answer is asked something different from one that keeps it whole."
        )
    if counts["filled_choices"]:
        limitations.append(
            f"{counts['filled_choices']:,} choices are random fills, where a family had too few "
            "distractors (`choice_families`)."
        )
    if audit is None:
        limitations.append(
            "This build was not audited: it is not known what can be answered without knowing "
            "anything."
        )
    elif missing := missing_baselines(audit):
        limitations.append(missing)
    elif audit["flags"]:
        limitations.append(
            f"{len(audit['flags'])} of the audit's scores are off chance. An accuracy that does "
            "not clearly pass them shows no knowledge."
        )
    if audit is not None and (similarity := on_similarity(audit)):
        limitations.append(similarity)
    if manifest["request"]["options"].get("for_training"):
        flagged, train = counts.get("flagged", 0), counts["splits"]["train"]
        doubtful = f" {flagged:,} of {train:,} train rows have flags (see below)." * bool(flagged)
        limitations.append(
            f"It was built to train on (`--for-training`).{doubtful} What is said of how sound the "
            "probe is holds for validation and test alone. Their rows, and how many there are, "
            "differ from the default build's: compare accuracies within one build."
        )
    if matching := manifest.get("matching"):
        limitations.append(on_matching([encoder["name"] for encoder in matching["encoders"]]))
    return limitations


def command_of(request: Request) -> str:
    """Return the command line of a request, with only the options that differ from the defaults."""
    words = ["build-probe", request.probe.name]
    model, shown = type(request.options), dict(request.options)  # which does not count as read
    others = model.training_defaults() if shown.get("for_training") else {}
    for name, value in shown.items():
        if value == others.get(name, model.model_fields[name].default):
            continue
        if isinstance(value, bool):
            words.append(option_name(name if value else f"no_{name}"))
        else:
            words += [option_name(name), spelled(value)]
    if request.seed:
        words += ["--seed", str(request.seed)]
    if request.format != "parquet":
        words += ["--format", request.format]
    if request.template:
        words += ["--template", request.template.name]
    if not request.audit:
        words.append("--no-audit")
    return " ".join(words)


def first_row(splits: Mapping[str, Items | ItemsInParts]) -> dict[str, Any]:
    """Return the first row of a config."""
    row: dict[str, Any] = plain(next(iter(splits.values())).table(0, 1)).to_pylist()[0]
    return row


def _encyclopedic(counts: Mapping[str, Any]) -> float:
    """Return the share of rows about names if the headline leaves them out, otherwise 0."""
    common = counts.get("content", {}).get(COMMON, counts["rows"])
    share = 1 - common / counts["rows"]
    return float(share) if share > MOST_NAMES else 0.0


def _flags(manifest: Mapping[str, Any], request: Request) -> list[tuple[str, str, int, int]]:
    """Return the probe's flags: their meanings, and how many rows have them and are excluded."""
    marked, dropped = manifest["counts"].get("flags", {}), manifest["counts"]["dropped"]
    return [
        (name, text, marked.get(name, 0), dropped.get(left_out(name), 0))
        for name, text in request.probe.flags.items()
    ]


def _cluster_sizes(splits: Mapping[str, Items | ItemsInParts]) -> ClusterSizes:
    sizes = []
    for items in splits.values():
        counted = np.bincount(items.clusters)
        sizes.append(counted[counted > 0])
    every = np.concatenate(sizes)
    return ClusterSizes(int(every.min()), int(np.median(every)), int(every.max()))


def _type_name(kind: pa.DataType) -> str:
    if hasattr(kind, "value_type"):
        return f"list of {_type_name(kind.value_type)}"
    if kind.num_fields:
        fields = (kind.field(at) for at in range(kind.num_fields))
        return "{" + ", ".join(f"{field.name}: {_type_name(field.type)}" for field in fields) + "}"
    return str(kind)
