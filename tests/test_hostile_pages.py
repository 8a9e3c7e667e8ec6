"""Pages, sheets and terminals with hostile texts: none becomes an element, formula or command."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from evaluation.cli import main as evaluate_probe
from evaluation.items.columns import ItemColumns
from evaluation.report.page import render
from evaluation.report.suite import make_suite_page
from kbprobe.format.manifest import read_manifest, write_manifest
from kbprobe.format.sheets import write_reading
from kbprobe.tables import as_written, neutral
from release.annotation.round_trip import export_sheets
from release.annotation.votes import read_votes
from release.cli import main as release_probe
from release.exports.exporting import export
from tests.chromium import CHROMIUM, NO_CHROMIUM, browser
from tests.evaluation.saved_runs import save_run
from tests.evaluation.test_report import probe, run
from tests.release import annotation_toy

ROOT = Path(__file__).resolve().parents[1]
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
SCRIPT = "<script>document.title='ran'</script>"
HOSTILE = (
    SCRIPT,
    f"</title></style></script>{SCRIPT}",
    "<img src=x onerror=\"document.title='ran'\">",
    "' onmouseover='document.title=1' x='",
    '"><svg/onload=document.title="ran">',
    "<!--",
    "]]><iframe src='javascript:1'>",
    "{{ 7 * 7 }}{% raw %}",
    "javascript:document.title='ran'",
    "&lt;script&gt;\u2028\u202e",
)
TEMPLATES = sorted(
    path
    for folder in ("builders", "evaluation", "kbprobe", "release")
    for path in (ROOT / folder).rglob("*.html.j2")
    if "<html" in path.read_text("utf-8").lower()
)


class Elements(HTMLParser):
    """Collects the elements of a page, each with the names of its attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, ...]] = []
        self.metas: list[dict[str, str | None]] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag != "wbr":  # where a long name may break
            self.found.append((tag, *sorted(name for name, _ in attrs)))
        if tag == "meta":
            self.metas.append(dict(attrs))


def report_page(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The report of a run in which all names and texts of the probe begin with a text."""
    split = probe(
        64,
        cluster=[f"{text}c{row // 8}" for row in range(64)],
        distractor_family=[f"{text}{row // 3 % 3}" for row in range(64)],
        pos=[f"{text}p{row % 2}" for row in range(64)],
        template=[f"{text}t{row % 4}" for row in range(64)],
    )
    items = ItemColumns.of(
        [
            replace(
                item,
                question=text + item.question,
                choices=tuple(text + choice for choice in item.choices),
            )
            for item in split.items
        ]
    )
    split = replace(split, name=f"{text}probe", source=f"{text}source", items=items)
    results, predictions = run(split, baselines={f"{text}majority": 0.3, f"{text}other": 0.2})
    model = results.model.model_copy(
        update={"id": f"{text}/{text}", "architecture": text, "finetuning": {text: text}}
    )
    return render(results.model_copy(update={"model": model}), predictions)


def hostile_probe(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A built probe whose texts begin with a text, and whose name and description are one."""
    plain = annotation_toy.make_row

    def make_row(*args: Any) -> dict[str, Any]:
        row = plain(*args)
        row["question"] = text + row["question"]
        row["choices"]["text"] = [text + choice for choice in row["choices"]["text"]]
        return row

    with monkeypatch.context() as patch:
        patch.setattr(annotation_toy, "make_row", make_row)
        made = annotation_toy.make_probe(folder / "probe")
    manifest = read_manifest(made)
    write_manifest(made, {**manifest.content, "probe": f"{text}toy", "about": text})
    return made


def reading_page(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    write_reading(hostile_probe(text, folder, monkeypatch), folder / "out", 5, blind=True)
    return (folder / "out" / "sheets" / "reading.html").read_text("utf-8")


def instructions_page(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    export_sheets(hostile_probe(text, folder, monkeypatch), folder / "out", n=5)
    return (folder / "out" / "sheets" / "instructions.html").read_text("utf-8")


def suite_page(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The page of a suite of two models, in which all names and texts begin with a text."""
    for model, said in (("one", [0, 1]), ("two", [0, 0])):
        save_run(
            folder / "suite" / model, f"{text}/{text}{model}", said * 20,
            [f"{text}c{row // 4}" for row in range(40)],
            ids=[f"{text}{row}" for row in range(40)],
            families=[f"{text}{row % 2}" for row in range(40)],
            probe=f"{text}probe",
            choices=[f"{text}gold", f"{text}wrong"],
            architecture=text, revision=text,
        )  # fmt: skip
    (folder / "suite" / "damaged").mkdir()
    (folder / "suite" / "damaged" / "results.json").write_text(
        f'{{"schema_version": "{text[:4]}"}}'
    )
    return make_suite_page(folder / "suite").path.read_text("utf-8")


SCRIPTLESS = (report_page, reading_page, instructions_page)
PAGES = (*SCRIPTLESS, suite_page)


@pytest.mark.slow
@pytest.mark.parametrize("made", PAGES)
def test_no_element_and_no_attribute_comes_from_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: Callable[..., str]
) -> None:
    """Hostile texts give no kind of element or attribute that harmless ones do not give."""
    harmless = Elements(made("harmless ", tmp_path / "harmless", monkeypatch))
    assert len(harmless.found) > 20
    for number, text in enumerate(("".join(HOSTILE), *HOSTILE[1:5])):
        page = Elements(made(text, tmp_path / str(number), monkeypatch))
        # Not all in the same order: which questions are samples depends on their texts.
        assert set(page.found) <= set(harmless.found), text
        assert sum(tag in ("title", "style", "html") for tag, *_ in page.found) == 3
        assert not any(name.startswith("on") for _, *names in page.found for name in names)
        tags = [tag for tag, *_ in page.found]
        assert not {"img", "iframe", "object", "link"} & set(tags)
        for tag in ("script", "form"):
            assert tags.count(tag) == [other for other, *_ in harmless.found].count(tag)
            assert made not in SCRIPTLESS or tag not in tags


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_every_page_has_a_policy_before_anything_else(template: Path) -> None:
    """No script at all, no request; styles are in the page, also in attributes."""
    metas = Elements(re.sub(r"{%.*?%}", "", template.read_text("utf-8"))).metas
    assert metas[0] == {"charset": "utf-8"}
    assert metas[1] == {"http-equiv": "Content-Security-Policy", "content": POLICY}


def test_a_page_with_scripts_allows_these_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = suite_page("".join(HOSTILE), tmp_path, monkeypatch)
    scripts = re.findall(r'<script type="module">(.*?)</script>', page, re.DOTALL)
    digests = [base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in scripts]
    assert len(digests) == 2
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    policy = POLICY.replace("style-src", f"script-src {allowed}; style-src")
    assert Elements(page).metas[1]["content"] == policy


@pytest.mark.slow
@pytest.mark.skipif(not CHROMIUM, reason=NO_CHROMIUM)
@pytest.mark.parametrize("made", PAGES)
def test_a_browser_runs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: Callable[..., str]
) -> None:
    """Not what is in the data; nor, by the policy, what would get past the escaping."""
    page = made("".join(HOSTILE), tmp_path / "made", monkeypatch)
    assert title(page, tmp_path) != "ran"
    content, end = page.rsplit("</body>", 1)
    unescaped = f"{content}{''.join(HOSTILE[:5])}</body>{end}"
    assert title(unescaped, tmp_path) != "ran"
    without = re.sub(r'(http-equiv="Content-Security-Policy") content="[^"]*"', r"\1", unescaped)
    assert title(without, tmp_path) == "ran"  # else this test would show nothing


@pytest.mark.slow
@pytest.mark.skipif(not CHROMIUM, reason=NO_CHROMIUM)
def test_scripts_show_hostile_texts_as_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the scripts make of the data, in tables, heat maps and lists: texts stay texts."""
    text = "".join(HOSTILE)
    suite_page(text, tmp_path, monkeypatch)
    page = tmp_path / "suite" / "report.html"
    with browser(tmp_path / "chromium") as tab:
        tab.open(page)
        tab.wait("performance.getEntriesByName('complete').length > 0")
        tab.run("document.getElementById('other').value = '1'")
        tab.run("document.getElementById('filter').dispatchEvent(new Event('input'))")
        tab.wait("document.querySelectorAll('#rows thead th').length == 8")
        tab.run("document.querySelectorAll('#rows .open').forEach((one) => one.click())")
        tab.run("document.querySelector('[aria-labelledby=maps] td a').click()")
        tab.wait("!document.getElementById('rows').classList.contains('stale')")
        shown = tab.run("document.querySelector('#rows .open').textContent")
        assert shown == f"q {text}0"
        assert (
            tab.run("document.querySelectorAll('img, iframe, main svg, main script').length") == 0
        )
        assert tab.run("document.title") != "ran"
        assert tab.problems == []
        assert tab.requests == [page.as_uri()]


def title(page: str, folder: Path) -> str:
    """The title of a page after a browser has loaded it, and run what it runs."""
    file = folder / "page.html"
    file.write_text(page, encoding="utf-8")
    command = [
        str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom",
        "--virtual-time-budget=2000", f"--user-data-dir={folder / 'chromium'}", file.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    found = re.search(r"<title>(.*?)</title>", done.stdout, re.DOTALL)
    assert found, done.stderr
    return found[1]


FORMULAS = ("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "=cmd|'/C calc'!A0", "＝1", " =1")


@pytest.mark.slow
def test_cells_of_sheets_are_no_formulas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, text in enumerate(FORMULAS):
        made = hostile_probe(text, tmp_path / str(number), monkeypatch)
        export_sheets(made, tmp_path / str(number) / "sheets", n=5)
        write_reading(made, tmp_path / str(number) / "reading", 5, blind=False)
        files = list((tmp_path / str(number)).rglob("*.csv"))
        assert len(files) == 2
        for file in files:
            content = file.read_text("utf-8-sig")
            for row in csv.reader(io.StringIO(content, newline="")):
                assert not any(cell.strip().startswith(tuple("=+-@＝")) for cell in row)


@pytest.mark.parametrize("text", [*FORMULAS, "'=1", "''=1", "'tis", "A", "", "'"])
def test_a_neutral_cell_is_read_as_it_was(text: str) -> None:
    assert as_written(neutral(text)) == text


def test_votes_on_ids_and_by_names_that_are_formulas_match(tmp_path: Path) -> None:
    """As our sheets write them, as a spreadsheet saves them, and as they are."""
    votes = [("=1+1", "-ann"), ("@x", "-ann"), ("plain", "-ann")]
    for number, written in enumerate((neutral, str)):
        path = tmp_path / f"{number}.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["item_id", "annotator", "answer"])
            writer.writerows([written(item), written(who), "A"] for item, who in votes)
        read, problems = read_votes([path])
        assert not problems
        assert [(vote.item_id, vote.annotator) for vote in read] == votes


CONTROLS = "\x1b]0;title\x07\x1b[31m\x9b2J\r\u202e"
UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]")


@pytest.mark.slow
def test_a_terminal_obeys_no_text_of_a_probe_or_a_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    hostile_probe(CONTROLS, tmp_path, monkeypatch)
    for model, said in (("one", [0, 1]), ("two", [0, 0]), ("three", [1, 0])):
        save_run(
            tmp_path / model, f"{CONTROLS}{model}", said * 20,
            [f"{CONTROLS}c{row // 4}" for row in range(40)],
            ids=[f"{CONTROLS}{row}" for row in range(40)],
            families=[f"{CONTROLS}{row % 2}" for row in range(40)],
            probe=f"{CONTROLS}probe", choices=[f"{CONTROLS}gold", f"{CONTROLS}wrong"],
        )  # fmt: skip
    commands: tuple[tuple[Any, str], ...] = (
        (release_probe, "check probe"),
        (release_probe, "check probe --json"),
        (release_probe, "export probe --to lm-eval -o out"),
        (release_probe, "annotate export probe --n 5 -o sheets"),
        (evaluate_probe, "compare one two -o compared"),
        (evaluate_probe, "items one two three -o items"),
        (evaluate_probe, "table one two --to markdown"),
        (evaluate_probe, "table one two --to csv"),
        (evaluate_probe, f"compare one {CONTROLS.replace(' ', '')}"),
    )
    for command, words in commands:
        with pytest.raises(SystemExit):
            command(words.split(" "))
        said = capsys.readouterr()
        shown = said.out.replace("\r\n", "\n") + said.err
        assert shown, words
        assert not UNSEEN.search(shown), words
    for file in tmp_path.rglob("*.csv"):
        assert not UNSEEN.search(file.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")), file


def test_everything_is_printed_in_one_place() -> None:
    """Text of data reaches the terminal through the package `kbprobe.terminal` alone."""
    printing = re.compile(
        r"^(?!.*(>>>|\.\.\. )).*(click\.s?echo\(|(?<![\w.])print\(|rich\.console)"
    )
    own = {f"kbprobe/{name}.py" for name in ("terminal/__init__", "terminal/console", "__main__")}
    own.add("evaluation/scorers/causal/chat_renderer.py")  # prints to the process that started it
    others = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for folder in ("builders", "evaluation", "kb_cache", "kbprobe", "release")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if path.relative_to(ROOT).as_posix() not in own
        for line in path.read_text("utf-8").splitlines()
        if printing.match(line)
    ]
    assert others == ["kb_cache/conceptnet/filter.py: print(report)"], (
        "in the example of a docstring"
    )
    assert "import rich.console" not in (ROOT / "evaluation/results/console.py").read_text("utf-8")


@pytest.mark.parametrize("text", HOSTILE)
def test_no_element_of_an_exported_page_comes_from_data(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = hostile_probe(text, tmp_path, monkeypatch)
    export(made, "lm-eval", tmp_path / "out")
    page = (tmp_path / "out" / "README.md").read_text("utf-8")
    assert Elements(re.sub(r"<https://\S+>", "", page)).found == []
