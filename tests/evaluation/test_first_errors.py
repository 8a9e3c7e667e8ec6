"""What is wrong is said at once, the first thing first: before torch is imported."""

import json
import os
import re
import subprocess
import sys

import pytest

from tests.evaluation import tiny_masked
from tests.evaluation.saved_runs import save_run
from tests.evaluation.test_evaluate import write_probe

WRONG = {
    "curv sizes --model tiny": "no study or command 'curv'.*Did you mean 'curve'",
    "compre a b": "no study or command 'compre'.*Did you mean 'compare'",
    "sizs --model tiny": "no file or folder 'sizs'. Did you mean 'sizes'",
    "sizs": "no file or folder 'sizs'",
    "sizes": "no model is named: name one with --model",
    "sizes --model ./tony": "no checkpoint at ./tony.*Did you mean",
    "sizes --model empty": "empty holds no checkpoint",
    "sizes --model .": "no config.json.*Name one of those within: tiny",
    "tiny --model tiny": "tiny holds a model, not a probe: name it with --model",
    "sizes --model tiny --split wrong": "sizes has no split 'wrong'. It has: dev, test",
    "sizes --model ./tony --split wrong": "sizes has no split 'wrong'",
    "sizes --model tiny --config wrong": "sizes has no config 'wrong'",
    "sizes --model tiny --scorer masked": "no scorer 'masked'. Did you mean 'masked_lm'",
    "sizes --model tiny --train 5 --learner lineer": "no learner 'lineer'. Did you mean 'linear'",
    "sizes --model tiny --train 5 --train-on nowhere": "no file or folder 'nowhere'",
    "sizes --model tiny --train 5": "sizes has no split 'train'",
    "sizes --model tiny --shots 2": "sizes has no split 'train'",
    "sizes --model none": "there is no model to score with",
    "sizes --model tiny -o users": "users holds what kbprobe did not write",
    "sizes --model tiny -o done/results.json/x": "is a file, not a folder",
    "sizes --model tiny -o sizes/x": "holds the probe itself",
    "sizes --model tiny -o done --split wrong": "sizes has no split 'wrong'",
    "sizes --model tiny -o done --limit 5": "--limit is not given there and 5 now",
    "sizes --model tiny -o done --split dev": "--split is test there and dev now",
    "sizes --model tiny --limit-by rows": "--limit-by requires --limit",
    "sizes --model tiny --limit x": "--limit: must be a whole number",
    "sizes --model tiny --inputs most": "--inputs: must be one of all, choices",
    "curve sizes --model tiny --split wrong": "sizes has no split 'wrong'",
    "curve sizes --model tiny --learners lineer": "no learner 'lineer'",
    "compare sizes --model tiny --controls wrong": "sizes has no config 'wrong'",
    "compare done": "compare takes at least two results",
    "compare sizes --model tiny": "compare takes two runs or more",
    "report users": "There are no results in users",
}

PROGRAM = """
import json, re, sys
from contextlib import redirect_stderr
from io import StringIO
from evaluation.cli import main
found = {}
for words in json.load(sys.stdin):
    said = StringIO()
    try:
        with redirect_stderr(said):
            main(words.split())
    except SystemExit as done:
        found[words] = [done.code, said.getvalue()]
slow = [name for name in ("torch", "transformers", "matplotlib") if name in sys.modules]
print(json.dumps([found, slow]))
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """Run all wrong requests in one process; what they said, and what was imported."""
    folder = tmp_path_factory.mktemp("world")
    for name in ("sizes", "empty", "users"):
        (folder / name).mkdir()
    write_probe(folder / "sizes" / "test.jsonl", rows=24)
    write_probe(folder / "sizes" / "dev.jsonl", rows=12)
    (folder / "users" / "notes.txt").write_text("mine")
    tiny_masked.write("bert-uncased", folder / "tiny")
    save_run(folder / "done", "tiny", [0] * 24, probe="sizes")
    environment = {**os.environ, "KBPROBE_CACHE": str(folder / "cache"), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=json.dumps(list(WRONG)),
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("words", WRONG)
def test_the_first_thing_wrong_is_named(answers, words):
    code, said = answers[0][words]
    assert code == 2
    assert re.search(WRONG[words], said, re.DOTALL), said
    assert "Traceback" not in said


def test_neither_torch_nor_transformers_is_imported_for_it(answers):
    assert answers[1] == []
