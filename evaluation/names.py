"""Names of folders: of probes and models, and of the options that differ from their defaults."""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from kbprobe.errors import UsageError
from kbprobe.terminal import echo

_SILENT = (
    r"((pytorch_)?model|(final|best|last|latest)([-_](model|checkpoint))?|out(put)?|weights|hf|"
    r"snapshots|[0-9a-f]{40})(\.gguf)?"
)
"""Last parts of paths that say nothing: ``model``, ``final``, ``snapshots/HASH``."""

_GENERIC = rf"{_SILENT}|(checkpoint|ckpt|epoch|step|run|seed)?[-_]?\d*"
"""These, and parts that only number a model: ``checkpoint-100``."""

_HUB_CACHE = re.compile(r"models--(.+?)--(.+)")
"""The Hub's cache has the files of ``org/name`` in ``models--org--name/snapshots/HASH``."""

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
    while count < min(_TELLING, len(parts)) and _is(_GENERIC, parts[-count]):
        count += 1
    return list(parts[-count:])


def _is(kind: str, part: str) -> bool:
    return re.fullmatch(kind, part, re.IGNORECASE) is not None


def model_name(source: str) -> str:
    """Return the name that a model is shown by: a Hub id, or the telling end of a path.

    Folders that say nothing are left out, such as ``model``; a checkpoint's number is kept.

    >>> model_name("models/roberta/model"), model_name("FacebookAI/roberta-large")
    ('roberta', 'FacebookAI/roberta-large')
    >>> model_name("/home/me/tuned/final/checkpoint-100"), model_name("../../x")
    ('tuned/checkpoint-100', 'x')
    >>> model_name("/home/me/model"), model_name("models/tuned/a.gguf")
    ('model', 'a.gguf')
    """
    parts = [part for part in source.replace("\\", "/").split("/") if part not in ("", ".", "..")]
    if source.startswith("/") and len(parts) > 2 and parts[0] in ("home", "Users"):
        parts = parts[2:]  # The owner of a home folder says nothing about the model.
    if not parts:
        return source
    is_path = source.startswith(("/", ".", "~")) or source[-1] == "/" or _is(_SILENT, parts[-1])
    if len(parts) == 2 and not is_path:
        return source
    telling = telling_parts(parts)
    shown = [part for part in telling if not _is(_SILENT, part)] or telling[-1:]
    return "/".join(_HUB_CACHE.sub(r"\1/\2", part) for part in shown)


def places_by_name(names: Sequence[Any]) -> Iterator[list[int]]:
    """Yield the places of each name, in the order of the names."""
    groups: dict[Any, list[int]] = defaultdict(list)
    for place, name in enumerate(names):
        groups[name].append(place)
    yield from groups.values()


def told_apart(names: Sequence[str], traits: Sequence[Sequence[str]]) -> list[str]:
    """Return names, of which equal ones are followed by what distinguishes them.

    Args:
        names: the names.
        traits: what may distinguish each, the most informative first; as many for each.

    >>> told_apart(["ages", "ages", "words"], [["40 rows", "a"], ["80 rows", "b"], ["9 rows", "c"]])
    ['ages (40 rows)', 'ages (80 rows)', 'words']
    """
    told: list[list[str]] = [[] for _ in names]
    for level in range(max(map(len, traits), default=0)):
        for group in places_by_name([(name, *told[i]) for i, name in enumerate(names)]):
            if len({traits[i][level] for i in group}) > 1:
                for i in group:
                    told[i] += filter(None, [traits[i][level]])
    return [
        f"{name} ({', '.join(parts)})" if parts else name
        for name, parts in zip(names, told, strict=True)
    ]


@dataclass(frozen=True)
class DisplayNames:
    """Names that a user gives to models, probes and folders of results, by what they replace.

    Attributes:
        given: the names, by what they replace.
        source: the file that they were read from; None: there are none.
        used: those of ``given`` that have been looked up.
    """

    given: Mapping[str, str]
    source: Path | None = None
    used: set[str] = field(default_factory=set)

    def of(self, name: str) -> str:
        """Return the name given to what is called ``name``, or that itself."""
        return self.get(name) or name

    def of_model(self, source: str) -> str:
        """Return the name given to a model, by its path or id or by the end of it."""
        return self.get(source) or self.of(model_name(source))

    def of_folder(self, folder: str) -> str | None:
        """Return the name given to a folder of results, by its path or its last part."""
        return self.get(folder) or self.get(folder.rpartition("/")[2])

    @property
    def unused(self) -> list[str]:
        """What nothing that was shown is called, in the order of the file."""
        return [key for key in self.given if key not in self.used]

    def note_unused(self) -> None:
        """Name what nothing is called on stderr."""
        if self.unused:
            named = ", ".join(map(repr, self.unused))
            echo(f"{self.source}: nothing shown is called {named}", err=True)

    def get(self, name: str) -> str | None:
        """Return the name given to what is called ``name``, if one is."""
        if name in self.given:
            self.used.add(name)
        return self.given.get(name)


NO_NAMES = DisplayNames({})
"""No names: everything is shown by its own."""


def names_option(purpose: str = "to print") -> Callable[[Any], Any]:
    """Return the option of commands that names the file of :func:`read_names`."""
    return click.option(
        "--names",
        "names_file",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help=f"YAML file that maps models, folders of results or probes to the names {purpose}.",
    )


def read_names(path: Path | None) -> DisplayNames:
    """Read names from a YAML file that maps each model, probe or folder to its name.

    Args:
        path: the file; None: no names are given.

    Raises:
        UsageError: there is no such file, or it is no mapping of texts to texts.
    """
    from kbprobe.parsing import read_yaml

    if path is None:
        return NO_NAMES
    remedy = "Write a line for each name, such as FacebookAI/roberta-large: RoBERTa"
    try:
        names = read_yaml(path, remedy)
    except FileNotFoundError:
        raise UsageError(f"there is no file {path}. {remedy}") from None
    if not isinstance(names, dict) or not names:
        raise UsageError(f"{path} maps nothing to names. {remedy}")
    for key, name in names.items():
        if not (isinstance(key, str) and isinstance(name, str) and key and name.strip()):
            raise UsageError(
                f"{path} maps {key!r} to {name!r}, where both are to be texts. {remedy}"
            )
    return DisplayNames({key.rstrip("/"): name.strip() for key, name in names.items()}, path)


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
