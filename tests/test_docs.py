"""The guides: their commands exist with the options shown, their links lead somewhere."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from builders.engine.registry import OWN_FILES, PROBES
from evaluation.learners.registry import LEARNERS
from evaluation.options import CHANGING_ROWS, TRAINING
from evaluation.scorers.registry import SCORERS
from evaluation.studies.baselines import READS
from evaluation.studies.registry import DEFAULT, OWN
from kbprobe.__main__ import COMMANDS
from kbprobe.options import option_name

ROOT = Path(__file__).resolve().parents[1]
OTHERS = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "benchmarks/README.md")
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *(ROOT / name for name in OTHERS)])
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def blocks(page: Path, *languages: str) -> Iterator[str]:
    """Yield the code blocks of a page that are in one of some languages."""
    for language, text in FENCE.findall(page.read_text(encoding="utf-8")):
        if language in languages:
            yield text


def shell_lines(page: Path) -> Iterator[str]:
    """Yield the command lines of a page: of a console's transcript those after a prompt."""
    for text in blocks(page, "sh", "bash"):
        yield from text.replace("\\\n", " ").splitlines()
    for text in blocks(page, "console"):
        joined = text.replace("\\\n", " ")
        yield from (line[2:] for line in joined.splitlines() if line.startswith("$ "))


def our_commands(page: Path) -> Iterator[list[str]]:
    """Yield the words of each of kbprobe's commands on a page, the program's name first."""
    for line in shell_lines(page):
        for part in line.split("&&"):
            words = shlex.split(part, comments=True)
            for at, word in enumerate(words):
                name = Path(word).name
                if name in COMMANDS:
                    redirected = [i for i, w in enumerate(words) if w in (">", "|", ";", "2>&1")]
                    yield [name, *words[at + 1 : min([*redirected, len(words)])]]
                    break


TUTORIALS = (
    "docs/add-a-knowledge-base.md",
    "docs/add-a-probe.md",
    "docs/add-a-scorer.md",
    "docs/add-a-study.md",
)
"""Pages whose commands use what the page itself adds: each has a test that follows it."""


@pytest.mark.parametrize("name", [name for name in NAMES if name not in TUTORIALS])
def test_commands_have_the_options_shown(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    for program, *words in our_commands(ROOT / name):
        try:
            # Options are parsed before --help is acted on: unknown ones are an error.
            code = import_module(COMMANDS[program]).main([*words, "--help"])
        except SystemExit as stopped:
            code = stopped.code
        shown = capsys.readouterr()
        assert not code, f"{program} {shlex.join(words)}: {shown.err}"
        assert "Usage" in shown.out, f"{program} {shlex.join(words)}"


@pytest.mark.parametrize("name", NAMES)
def test_python_examples_compile_and_name_what_exists(name: str) -> None:
    for text in blocks(ROOT / name, "python"):
        tree = ast.parse(text, filename=name)
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
                if node.module.split(".")[0] not in ("kbprobe", *_PACKAGES):
                    continue
                module = import_module(node.module)
                missing = [alias.name for alias in node.names if not _has(module, alias.name)]
                assert not missing, f"{name}: {node.module} has no {', '.join(missing)}"


_PACKAGES = ("kb_cache", "builders", "evaluation", "release")


def _has(module: object, name: str) -> bool:
    if hasattr(module, name):
        return True
    try:
        import_module(f"{module.__name__}.{name}")  # type: ignore[attr-defined]
    except ModuleNotFoundError:
        return False
    return True


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_somewhere(name: str) -> None:
    page = ROOT / name
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        path, _, anchor = target.partition("#")
        if path.startswith(("http:", "https:", "mailto:")):
            continue
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), f"{name} links to {target}, which does not exist"
        if anchor and linked.suffix == ".md":
            headings = re.findall(r"^#+ (.+)$", linked.read_text(encoding="utf-8"), re.M)
            slugs = {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}
            assert anchor in slugs, f"{name} links to {target}; {linked.name} has no such heading"


@pytest.mark.parametrize("name", [name for name in NAMES if name not in TUTORIALS])
def test_modules_that_are_named_exist(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    packages = "|".join(("kbprobe", "templates", "benchmarks", "tests", *_PACKAGES))
    for path in re.findall(rf"`((?:{packages})/[a-z0-9_/.-]+\.\w+)`", text):
        assert (ROOT / path).exists(), f"{name} names {path}, which does not exist"


def test_pages_are_found() -> None:
    assert len(PAGES) > 10
    assert sum(len(list(our_commands(page))) for page in PAGES) > 50


@pytest.mark.parametrize("name", NAMES)
def test_paragraphs_and_items_do_not_run_together(name: str) -> None:
    """Where lines were wrapped anew, two spaces are left of a break, or an item runs on."""
    text = FENCE.sub("", (ROOT / name).read_text(encoding="utf-8"))
    assert re.findall(r"^(?![|> ]).*[.:;!?]  +\S.*", text, re.M) == []
    assert re.findall(r"^ *(?:[-*]|\d+\.) .*(?:\n +\S.*)*\n(?!\d+\. )[\w*`(\[].*", text, re.M) == []


def _rows(*pages: str) -> set[str]:
    """Return the names that begin a row of a table on some pages."""
    text = "\n".join((ROOT / page).read_text(encoding="utf-8") for page in pages)
    return set(re.findall(r"^\| `(\w+)`", text, re.MULTILINE))


def test_tables_have_a_row_for_each_probe_baseline_and_learner() -> None:
    pages = ("learning-curves", "cross-validation", "baselines", "transfer")
    places = [f"docs/{page}.md" for page in pages]
    assert _rows("README.md") == PROBES.keys() - set(OWN_FILES)
    assert _rows("docs/baselines.md") == READS.keys()
    assert _rows(*places) >= {*LEARNERS.names()}


NAMED = {
    "README.md": [rf"(`|evaluate-probe ){name}\b" for name in OWN if name != DEFAULT],
    "docs/evaluate.md docs/endpoints.md docs/baselines.md": [
        rf"(`|--scorer ){name}\b" for name in SCORERS.names()
    ],
    "docs/evaluate.md": [rf"{option_name(name)}\b" for name in TRAINING.union(CHANGING_ROWS)],
}
"""What pages name: studies, scorers, and options that change the rows, or what is learnt."""


@pytest.mark.parametrize("names", NAMED)
def test_pages_name_all_that_there_is(names: str) -> None:
    text = "\n".join((ROOT / name).read_text(encoding="utf-8") for name in names.split())
    assert not [pattern for pattern in NAMED[names] if not re.search(pattern, text)]
