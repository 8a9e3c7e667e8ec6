"""Recipes: a YAML file that declares a set of probes to build.

.. code-block:: yaml

    output: probes            # the parent of all folders (default: probes)
    seed: 0                   # for the probes that give none of their own
    probes:
      - probe: wordnet_hypernymy
        options: {max_hops: 4}
      - probe: wordnet_hypernymy
        output: hypernymy-published
        options: {families: [paper], sampling: uniform}
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kbprobe.errors import UsageError
from kbprobe.options import explain


class Entry(BaseModel):
    """One probe of a recipe."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    probe: str
    output: str | None = None
    seed: int | None = None
    template: Path | None = None
    options: dict[str, Any] = Field(default_factory=dict)


class Recipe(BaseModel):
    """A declared set of probes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    output: Path = Path("probes")
    seed: int = 0
    probes: tuple[Entry, ...] = Field(min_length=1)


def load_recipe(path: Path) -> Recipe:
    """Read a recipe; template files are looked for beside it.

    Raises:
        UsageError: the file cannot be read or is no recipe; the message names file and key.
    """
    import yaml

    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}. Name a recipe file.") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not YAML: {error}") from None
    try:
        recipe = Recipe.model_validate(content)
    except ValidationError as error:
        raise UsageError(f"{path}: {'; '.join(explain(p) for p in error.errors())}") from None
    folders = [entry.output or entry.probe for entry in recipe.probes]
    for folder in folders:
        if folders.count(folder) > 1:
            raise UsageError(
                f"{path}: two probes would go to {folder!r}; give one of them its own 'output'"
            )
    found = [
        entry
        if entry.template is None
        else entry.model_copy(update={"template": path.parent / entry.template})
        for entry in recipe.probes
    ]
    return recipe.model_copy(update={"probes": tuple(found)})
