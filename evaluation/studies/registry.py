"""The registered studies: modules of this package whose docstring names a section of the help."""

from __future__ import annotations

from importlib import resources

from evaluation.registry import Registry
from evaluation.studies.base import LISTED, Study
from kbprobe.cli import Subcommand

EVALUATE, COLLECT = "Commands to evaluate", "Commands to collect results"
SECTIONS = (
    EVALUATE,
    "Commands to compare results",
    "Commands to train models",
    "Commands to vary the setup",
)
"""The sections of the help that list studies."""

DEFAULT = "zero_shot"
"""The study of a command without a name, which is listed first."""


def _built_in() -> dict[str, Subcommand]:
    """Read the built-in studies from docstrings, since importing all of them takes seconds."""
    listed = {}
    # As a resource, since kbprobe may be imported from a zipped wheel.
    for path in resources.files("evaluation.studies").iterdir():
        file = path / "__init__.py" if path.is_dir() else path
        if not (file.name.endswith(".py") and file.is_file()):
            continue
        docstring = file.read_text(encoding="utf-8").split('"""', 2)[1]
        if (section := LISTED.search(docstring)) is not None:
            name, sentence = path.name.removesuffix(".py"), docstring.partition("\n")[0]
            place = f"evaluation.studies.{name}:{name.upper()}"
            listed[name] = Subcommand(section[1], sentence, place)

    def order(name: str) -> tuple[int, bool, str]:
        return SECTIONS.index(listed[name].section), name != DEFAULT, name

    return {name: listed[name] for name in sorted(listed, key=order)}


OWN = _built_in()
"""Built-in studies, as the help lists them."""

STUDIES = Registry[Study](
    "study", "kbprobe.studies", Study, {name: listed.place for name, listed in OWN.items()}
)
