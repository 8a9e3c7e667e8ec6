"""Names of folders: of probes and models, and of the options that differ from their defaults."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_GENERIC = re.compile(
    r"(pytorch_)?model|(final|best|last|latest)([-_](model|checkpoint))?|out(put)?|weights|hf|"
    r"(checkpoint|ckpt|epoch|step|run|seed)?[-_]?\d*|[0-9a-f]{40}",
    re.IGNORECASE,
)
"""Last parts of paths that say nothing about the model: ``model``, ``checkpoint-100``."""

_TELLING = 3
"""Maximum number of parts of a path in a name."""

_LONGEST = 100
"""Maximum number of characters of options in a folder's name; longer ones end in a hash."""


def telling_parts(parts: Sequence[str]) -> list[str]:
    """Return the last parts of a path, as few as are needed for a meaningful name.

    >>> telling_parts(["models", "tuned", "checkpoint-100"]), telling_parts(["models", "roberta"])
    (['tuned', 'checkpoint-100'], ['roberta'])
    """
    count = 1
    while count < min(_TELLING, len(parts)) and _GENERIC.fullmatch(parts[-count]):
        count += 1
    return list(parts[-count:])


def folder_name(source: str) -> str:
    """Name a folder after a path that exists, or after a Hub id.

    >>> folder_name("FacebookAI/roberta-large")
    'FacebookAI--roberta-large'
    """
    return folder_names([source])[source]


def folder_names(sources: Sequence[str]) -> dict[str, str]:
    """Name a folder for each probe or model, using as much of its path as makes the name unique.

    Two spellings of the same path get the same name.
    """
    paths = {one: Path(one).resolve() for one in sources if Path(one).exists()}
    parts = {one: list(path.relative_to(path.anchor).parts) for one, path in paths.items()}
    taken = {one: len(telling_parts(own)) for one, own in parts.items()}
    names = {one: one.strip("/").replace("/", "--") for one in sources}
    while True:
        names |= {one: "-".join(own[-taken[one] :]) or "root" for one, own in parts.items()}
        places = {(names[one], str(paths.get(one, one))) for one in sources}
        counts = Counter(name for name, _ in places)
        short = [one for one in parts if counts[names[one]] > 1 and taken[one] < len(parts[one])]
        if not short:
            return names | {
                # Hub ids that read alike with their slashes replaced.
                one: f"{name}-{hashlib.sha256(one.encode()).hexdigest()[:8]}"
                for one, name in names.items()
                if counts[name] > 1 and one not in parts
            }
        for one in short:
            taken[one] += 1


def options_name(options: Mapping[str, Any], tag: str = "") -> str:
    """Name a folder after options that differ from their defaults, and after a tag.

    >>> options_name({"limit": 200, "letters": True, "facts": False, "split": "validation"})
    'limit-200+letters+no-facts+split-validation'
    >>> options_name({"train_on": "probes/age_comparison"}, tag="second")
    'train-on-age_comparison+second'
    """
    name = "+".join(_spelled(option.replace("_", "-"), value) for option, value in options.items())
    if len(name) > _LONGEST:
        digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
        name = f"{name[: _LONGEST - 9].rstrip('+-')}-{digest}"
    return "+".join(filter(None, (name, tag)))


def _spelled(option: str, value: Any) -> str:
    if isinstance(value, bool):
        return option if value else f"no-{option}"
    if isinstance(value, Mapping):
        value = ",".join(f"{key}={inner}" for key, inner in value.items())
    elif isinstance(value, tuple | list):
        value = ",".join(map(str, value))
    text = str(value)
    # Of a path or a Hub id the end; of a text such as a prompt a hash, as it cannot name a folder.
    text = text.rstrip("/").rpartition("/")[2] or text
    if not re.fullmatch(r"[\w.,=@-]{1,40}", text, re.ASCII):
        text = hashlib.sha256(str(value).encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{option}-{text}"
