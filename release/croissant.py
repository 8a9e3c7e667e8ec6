"""Croissant: the description of a probe that search engines and dataset tools read.

The format is specified at https://docs.mlcommons.org/croissant/docs/croissant-spec-1.1.html. Each
data file is a file object with its checksum, and a record set for its config and split. So a reader
fetches only the split that it asks for, and can tell that it is what was built. The responsible-AI
fields are those of :mod:`release.responsible_ai`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kbprobe.format.attribution import attributions_of, terms_of
from kbprobe.format.card import COLUMN, canary_of, pretty_name
from kbprobe.format.dataset import CARD
from kbprobe.format.items import COLUMNS
from kbprobe.format.licences import LICENCES, parts_of
from kbprobe.format.manifest import read_manifest
from release.cards import credited
from release.checks.files import GIT, item_schema
from release.exports.flat import ABOUT, FlatConfig
from release.responsible_ai import RAI_CONFORMS_TO, responsible_ai

if TYPE_CHECKING:
    import pyarrow as pa

    from kbprobe.format.manifest import DataFile, SplitFiles

CONFORMS_TO = "http://mlcommons.org/croissant/1.1"
PARQUET, JSON_LINES = "application/x-parquet", "application/jsonlines"
_OWN = (
    "arrayShape", "citeAs", "column", "containedIn", "equivalentProperty", "extract", "field",
    "fileObject", "fileProperty", "fileSet", "format", "includes", "isArray", "isLiveDataset",
    "jsonPath", "key", "md5", "parentField", "path", "recordSet", "references", "regex",
    "repeated", "replace", "samplingRate", "separator", "source", "subField", "transform",
)  # fmt: skip
CONTEXT: Mapping[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    **{name: f"cr:{name}" for name in _OWN},
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "description": {"@container": "@language"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "name": {"@container": "@language"},
    "rai": "http://mlcommons.org/croissant/RAI/",
    "sc": "https://schema.org/",
}
"""The JSON-LD context that the specification prescribes."""

HUB = "https://huggingface.co/datasets"


def croissant(
    folder: Path,
    *,
    repo_id: str = "",
    version: str = "",
    prefix: str = "",
    flat: Sequence[FlatConfig] = (),
) -> dict[str, Any]:
    """Describe a built probe in Croissant.

    Args:
        folder: the probe.
        repo_id: ``USER/NAME`` on the Hub, where its files are; without one, files are referred to
            by their paths in the folder.
        version: the tag of the release; files are then those of the tag.
        prefix: the folder of its files in the repository, with a slash.
        flat: configs of flat rows that are published beside its own.

    Raises:
        UsageError: the folder holds no probe, or a damaged manifest.
    """
    manifest = read_manifest(folder)
    base = manifest.knowledge_base
    credits = attributions_of(credited(base))
    card = _card(folder)
    number = version.removeprefix("v")
    splits = [
        split for config in manifest.configs for split in manifest.split_files(config).values()
    ]
    schema = item_schema(manifest.schema_version, manifest.canary_column)
    host = f"{HUB}/{repo_id}/resolve/{version or 'main'}/{prefix}" if repo_id else ""
    return {
        "@context": dict(CONTEXT),
        "@type": "sc:Dataset",
        "conformsTo": [CONFORMS_TO, RAI_CONFORMS_TO],
        "name": manifest.probe,
        "alternateName": pretty_name(manifest.probe),
        "description": f"{manifest.about} Built by kbprobe {manifest.kbprobe_version} from "
        f"{base.name}. {canary_of(manifest.probe, manifest.request.seed)}",
        "inLanguage": manifest.language[0] if len(manifest.language) == 1 else [*manifest.language],
        "isLiveDataset": False,
        "license": _licence_links(base.licence),
        **_cited(card),
        **responsible_ai(manifest, card),
        **({"creditText": "\n\n".join(credits)} if credits else {}),
        "creator": {"@type": "sc:Organization", "name": "The kbprobe authors"},
        **({"version": number} if number else {}),
        **({"url": f"{HUB}/{repo_id}"} if repo_id else {}),
        "keywords": ["probing", "language models", *base.name.split("+")],
        "distribution": [
            *(_file_object(entry, host) for entry in manifest.files),
            *(_file_object(entry, host) for one in flat for entry in one.files.files),
            *_file_sets(
                [*splits, *(one.files for one in flat)],
                f"{HUB}/{repo_id}/tree/{version or 'main'}" if repo_id else "",
                prefix,
            ),
        ],
        "recordSet": [
            *(_record_set(split, schema, {**COLUMNS, COLUMN: "The canary."}) for split in splits),
            *(_record_set(one.files, one.schema, ABOUT) for one in flat),
        ],
    }


def croissant_text(folder: Path, **options: Any) -> str:
    """Return ``croissant.json`` of a built probe; takes what :func:`croissant` takes."""
    return json.dumps(croissant(folder, **options), indent=2, ensure_ascii=False) + "\n"


def _card(folder: Path) -> str:
    path = folder / CARD
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def _cited(card: str) -> dict[str, str]:
    """Return the works that the card asks to cite."""
    found = re.search(r"^```bibtex\n(.*?)^```", card, re.DOTALL | re.MULTILINE)
    return {"citeAs": found[1].strip()} if found else {}


def _licence_links(expression: str) -> list[str]:
    whole = terms_of(expression).expression
    links = [LICENCES[name].link for name in parts_of(whole) if name in LICENCES]
    return links or list(parts_of(expression))


def _file_object(entry: DataFile, host: str) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        "@id": entry.path,
        "name": entry.path,
        "description": f"Split {entry.split} of the config {entry.config}: {entry.rows:,} rows.",
        "contentUrl": host + entry.path,
        "contentSize": f"{entry.bytes} B",
        "encodingFormat": JSON_LINES if entry.path.endswith(".jsonl") else PARQUET,
        "sha256": entry.sha256,
    }


def _file_sets(splits: Sequence[SplitFiles], repo: str, prefix: str) -> list[dict[str, Any]]:
    """Describe the files of each split that has several, and the repository that holds them."""
    sets = [
        {
            "@type": "cr:FileSet",
            "@id": _name_of_files(split),
            "name": _name_of_files(split),
            "description": f"The {len(split.files)} files of the split {split.split}.",
            **({"containedIn": {"@id": "repo"}} if repo else {}),
            "encodingFormat": PARQUET,
            "includes": f"{prefix}{_folder_of(split)}/{split.split}-*.parquet",
        }
        for split in splits
        if len(split.files) > 1
    ]
    if not sets or not repo:
        return sets
    held = {
        "@type": "cr:FileObject",
        "@id": "repo",
        "name": "repo",
        "description": "The git repository on the Hub.",
        "contentUrl": repo,
        "encodingFormat": GIT,
        # A repository has no checksum; those of its files are above.
        "sha256": "https://github.com/mlcommons/croissant/issues/80",
    }
    return [held, *sets]


def _folder_of(split: SplitFiles) -> str:
    return Path(split.files[0].path).parent.as_posix()


def _name_of_files(split: SplitFiles) -> str:
    return f"{split.config}/{split.split}.files"


def _record_set(split: SplitFiles, schema: pa.Schema, texts: Mapping[str, str]) -> dict[str, Any]:
    """Describe the rows of a split; ``texts`` says what each column holds."""
    at, first = f"{split.config}/{split.split}", split.files[0].path
    place: dict[str, Any] = {"fileObject": {"@id": first}}
    if len(split.files) > 1:
        place = {"fileSet": {"@id": _name_of_files(split)}}
    fields = [
        _field(
            f"{at}/{one.name}",
            texts[one.name],
            one.type,
            {**place, "extract": {"column": one.name}},
        )
        for one in schema
    ]
    return {
        "@type": "cr:RecordSet",
        "@id": at,
        "name": at,
        "description": f"{split.rows:,} rows.",
        "key": {"@id": f"{at}/id"},
        "field": fields,
    }


def _field(place: str, text: str, kind: pa.DataType, source: Mapping[str, Any]) -> dict[str, Any]:
    """Describe a column; a struct, or a list of structs, has a field for each of its parts."""
    is_list = hasattr(kind, "value_type")
    inner = kind.value_type if is_list else kind
    about = {"@type": "cr:Field", "@id": place, "name": place, "description": text}
    if not inner.num_fields:
        return {
            **about,
            "dataType": "sc:Text" if str(inner) == "string" else "sc:Integer",
            **({"isArray": True, "arrayShape": "-1"} if is_list else {}),
            "source": source,
        }
    column = source["extract"]["column"]
    parts = (inner.field(at) for at in range(inner.num_fields))
    subfields = [
        _field(
            f"{place}/{part.name}",
            f"`{part.name}` of `{column}`.",
            part.type,
            {**source, "transform": {"jsonPath": part.name}},
        )
        for part in parts
    ]
    return {**about, **({"repeated": True} if is_list else {}), "subField": subfields}
