"""Templates, rendered as Jinja itself renders them; and files of paths over properties."""

from __future__ import annotations

import re
import shutil
from importlib import resources
from pathlib import Path

from tests.reliability.target import Refused, Target

_PROBE = "wordnet_hypernymy"
#: Fields that are not texts.
_LISTS = {"others": ["bank", "slope"]}


def _templates(folder: Path) -> list[Path]:
    home = Path(str(resources.files("templates")))
    return [Path(shutil.copy(home / f"{_PROBE}.yaml", folder))]


def _fields() -> tuple[tuple[str, ...], tuple[str, ...]]:
    from builders.engine.probe import find_probe

    probe = find_probe(_PROBE)
    return tuple(probe.question_fields), tuple(probe.choice_fields)


def _sample(names: tuple[str, ...]) -> dict[str, object]:
    return {name: _LISTS.get(name, f"some {name}") for name in names}


def _render(path: Path) -> list[str]:
    from builders.engine.render.jinja import render_batch
    from builders.engine.render.template_file import load_template

    of_question, of_choice = _fields()
    template = load_template(
        _PROBE, question_fields=of_question, choice_fields=of_choice, builtin=path
    )
    texts = [(wording.text, of_question) for wording in template.questions]
    texts += [(template.choice, of_choice)] * bool(of_choice)
    return [
        render_batch(text, {k: [v] for k, v in _sample(names).items()}, str(path))[0]
        for text, names in texts
    ]


def _render_plainly(path: Path) -> list[str]:
    """Render with Jinja's own environment, what YAML's own loader reads."""
    import yaml
    from jinja2 import Environment, StrictUndefined, TemplateError

    from builders.engine.render.jinja import FILTERS

    environment = Environment(undefined=StrictUndefined)
    environment.filters |= {name: given.function for name, given in FILTERS.items()}
    of_question, of_choice = _fields()
    try:
        said = yaml.load(path.read_text("utf-8-sig"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        texts = [(wording["text"], of_question) for wording in said["question"]]
        texts += [(said["choice"], of_choice)] * bool(of_choice)
        found = []
        for text, names in texts:
            if not isinstance(text, str):
                raise TypeError("a template is a text")
            rendered = environment.from_string(re.sub(r"[ \t\r\n]+", " ", text))
            found.append(rendered.render(_sample(names)).strip())
    except (
        yaml.YAMLError,
        TemplateError,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,  # of PyYAML, for a date that is none
        RecursionError,
    ) as error:
        raise Refused(str(error)) from error
    return found


def _paths(folder: Path) -> list[Path]:
    """Write the declarations of the built-in paths as a user's file has them."""
    import yaml

    home = Path(str(resources.files("templates")))
    built_in = yaml.safe_load((home / "encyclopedic_composition.yaml").read_text("utf-8"))
    file = folder / "paths.yaml"
    path = next(path for path in built_in["paths"] if len(path["hops"]) > 1)
    declared = {
        "hops": [hop for hop in built_in["hops"] if hop["id"] in path["hops"]],
        "paths": [path],
    }
    file.write_text(yaml.safe_dump(declared, sort_keys=False), "utf-8")
    return [file]


def _read_paths(path: Path) -> int:
    from builders.compositions.paths import load_paths

    return len(load_paths(str(path)).paths)


TARGETS = [
    Target("templates", _templates, _render, _render_plainly, both_refuse=False),
    Target("paths", _paths, _read_paths),
]
