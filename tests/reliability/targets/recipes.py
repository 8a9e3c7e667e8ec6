"""Recipes: sets of probes declared in YAML."""

from __future__ import annotations

from pathlib import Path

from tests.reliability.target import Target

_RECIPE = """\
output: probes
seed: 3
probes:
  - probe: wordnet_hypernymy
    seed: 1
    options: {families: [paper], sampling: uniform, train_rows: 0, min_zipf: 2.5}
  - probe: wordnet_hyponymy
    output: few
    template: wording.yaml
    options: &few
      split_shares: [0.25, 0.25, 0.5]
      once: true
      tier: full
      perturbations: 2
  - probe: wordnet_meronymy
    options: {relations: [part]}
  - probe: wordnet_hypernymy
    output: again
    options:
      <<: *few
      max_hops: 3
"""


def _recipes(folder: Path) -> list[Path]:
    (folder / "recipe.yaml").write_text(_RECIPE)
    return [folder / "recipe.yaml"]


def _read(path: Path) -> int:
    from builders.engine.recipe import read_recipe

    values = {"template": None, "format": "parquet", "audit": False}
    return len(read_recipe(path, None, values).jobs)


TARGETS = [Target("recipes", _recipes, _read)]
