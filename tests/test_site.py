"""The documentation as a site: it builds without a warning, and its pages read as on GitHub."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"

needs_docs = pytest.mark.skipif(
    not (find_spec("mkdocs") and find_spec("material") and find_spec("mkdocstrings")),
    reason="needs the tools of the site: pip install '.[docs]'",
)
posix = pytest.mark.posix


def test_every_page_is_in_the_navigation() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    named = re.findall(r"^ +- [^\n]*: ([\w/-]+\.md)$", text, re.M)
    pages = [page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")]
    assert sorted(named) == sorted(pages)


def test_objects_of_the_api_page_exist_and_have_docstrings() -> None:
    text = (DOCS / "api.md").read_text(encoding="utf-8")
    named = re.findall(r"^<!-- ::: ([\w.]+) -->$", text, re.M)
    assert len(named) > 40
    for name in named:
        module, _, attribute = name.rpartition(".")
        found = getattr(__import__(module, fromlist=[attribute]), attribute)
        assert found.__doc__, name


def test_public_functions_are_on_the_api_page() -> None:
    import evaluation
    import kbprobe
    import release

    text = (DOCS / "api.md").read_text(encoding="utf-8")
    for package in (kbprobe, evaluation, release):
        for name in set(package.__all__) - {"__version__"}:
            function = getattr(package, name)
            where = f"{function.__module__}.{function.__qualname__}"
            assert f"<!-- ::: {where} -->" in text, where


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as CI builds it."""
    folder = tmp_path_factory.mktemp("site")
    command = ["bash", str(ROOT / ".ci" / "docs"), sys.executable, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@posix
@pytest.mark.slow
@needs_docs
def test_the_site_is_built_and_its_links_lead_somewhere(site: Path) -> None:
    text = (site / "api.html").read_text(encoding="utf-8")
    assert 'id="evaluation.scorers.base.ScorerEntry"' in text
    assert ":::" not in text
    # Links out of docs/ lead to pages of the site.
    assert (site / "repository" / "index.html").exists()
    assert (site / "repository" / "evaluation" / "runs" / "spec.py.html").exists()


STRUCTURE = ("h1", "h2", "h3", "li", "tr", "pre", "img", "blockquote", "strong", "em")


@posix
@pytest.mark.slow
@needs_docs
def test_pages_have_the_structure_that_github_shows(site: Path) -> None:
    """Python-Markdown reads lists and nested blocks unlike GitHub: pages avoid the difference."""
    from markdown_it import MarkdownIt

    github = MarkdownIt("commonmark").enable("table")
    different = {}
    for page in sorted(DOCS.rglob("*.md")):
        if page.name == "api.md":
            continue  # has the documentation of objects besides
        rendered = github.render(page.read_text(encoding="utf-8"))
        built = (site / page.relative_to(DOCS).with_suffix(".html")).read_text(encoding="utf-8")
        article = built[built.index("<article") : built.index("</article>")]
        if (found := _structure(article)) != (expected := _structure(rendered)):
            different[page.name] = (found - expected, expected - found)
    assert different == {}


def _structure(html: str) -> Counter[str]:
    return Counter({tag: len(re.findall(rf"<{tag}[ >]", html)) for tag in STRUCTURE})


def test_dead_links_of_a_site_are_found(tmp_path: Path) -> None:
    check: dict[str, Any] = runpy.run_path(str(ROOT / ".ci" / "site" / "links.py"))
    (tmp_path / "a.html").write_text('<h2 id="b">x</h2><a href="c.html">1</a><img src="d.png">')
    (tmp_path / "e.html").write_text('<a href="a.html#b">1</a><a href="a.html#f">2</a>')
    assert sorted(check["dead_links"](tmp_path)) == [
        "a.html: c.html",
        "a.html: d.png",
        "e.html: a.html#f",
    ]
