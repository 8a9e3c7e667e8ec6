"""Packages that are imported without those that they would import in vain."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kbprobe.errors import MissingDependencyError, extras_of_modules, naming_extras
from kbprobe.plugins import without


def test_hidden_packages_are_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    with without("colorsys"):
        with pytest.raises(ModuleNotFoundError, match="colorsys"):
            __import__("colorsys")
        assert __import__("sched")
    assert __import__("colorsys")


def test_a_deferred_module_is_imported_when_it_is_needed() -> None:
    script = (
        "import sys\nfrom kbprobe.plugins import deferred\n"
        "with deferred('xml.sax', 'parseString'):\n"
        "    from xml.sax import parseString\n"
        "    from xml.sax.handler import ContentHandler\n"
        "assert 'xml.sax' not in sys.modules\n"
        "parseString('<a/>', ContentHandler())\n"
        "assert sys.modules['xml.sax'].parseString is not parseString\n"
        "del sys.modules['xml.sax']\n"
        "with deferred('xml.sax', 'parseString'):\n"
        "    from xml.sax import make_parser\n"
        "    from xml.sax import parseString\n"
        "assert parseString is sys.modules['xml.sax'].parseString"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "absent", "then"),
    [
        (
            "from kbprobe.plugins import let_arrow_ignore_pandas; let_arrow_ignore_pandas()\n"
            "import pyarrow as pa\n"
            "assert pa.array(['a']).to_pylist() == ['a']",
            "pandas",
            "assert pa.table({'a': [1]}).to_pandas()['a'].tolist() == [1]",
        ),
        (
            "from builders.english.inflection import gerund, noun_plural\n"
            "assert noun_plural('mouse') == 'mice' and gerund('lie') == 'lying'",
            "spacy",
            "",
        ),
        (
            "from builders.english.inflection import with_article\n"
            "assert with_article('FBI agent') == 'an FBI agent'\n"
            "import inflect, typeguard\n"
            "assert 'typeguard' not in inflect.engine.a.__code__.co_names",
            "spacy",
            "assert typeguard.typechecked.__module__.startswith('typeguard')",
        ),
        (
            "from builders.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass",
            "pydantic",
            "",
        ),
        (
            "import evaluation, kbprobe.errors\n"
            "try: evaluation.study('curve', 'missing', 'missing')\n"
            "except kbprobe.errors.UsageError: pass",
            "spacy",
            "import pandas as pd, pyarrow as pa\n"
            "assert pa.array(pd.Series([1.0, float('nan')])).null_count == 1",
        ),
    ],
    ids=["arrow", "lemminflect", "inflect", "help", "study"],
)
def test_what_is_not_imported(code: str, absent: str, then: str) -> None:
    script = f"import sys\n{code}\nassert {absent!r} not in sys.modules\n{then}"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_missing_module_names_its_extra() -> None:
    with pytest.raises(MissingDependencyError, match=r"pip install '\.\[eval\]'"), naming_extras():
        raise ModuleNotFoundError("No module named 'safetensors'", name="safetensors.torch")
    with pytest.raises(ModuleNotFoundError, match="elsewhere"), naming_extras():
        raise ModuleNotFoundError("No module named 'elsewhere'", name="elsewhere")
    extras = extras_of_modules()
    assert extras["sklearn"] == "release"
    assert extras["matplotlib"] == "report"
    assert "numpy" not in extras


def test_evaluation_needs_no_extra_to_be_imported() -> None:
    script = (
        "import sys\nsys.modules['safetensors'] = None\n"
        "import evaluation.learners.kept, evaluation.runs.executor"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
