"""Labels of NLI sets that are numbered: the names of their classes decide."""

import pytest
from datasets import ClassLabel, Dataset, Features, Value

from evaluation.items.sources import open_probe
from kbprobe.errors import KbprobeError


def numbered(names):
    features = Features(
        premise=Value("string"), hypothesis=Value("string"), label=ClassLabel(names=names)
    )
    rows = [{"premise": f"p{n}", "hypothesis": f"h{n}", "label": n} for n in (0, 1, 2, -1)]
    return Dataset.from_list(rows, features)


@pytest.mark.parametrize("place", ["memory", "p:q.parquet"])
def test_the_names_of_classes_decide(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source = numbered(["Entails", "contradiction", "neutral"])
    if place != "memory":
        source.to_parquet(str(tmp_path / place))
        source = place
    items = open_probe(source).items
    golds = [item.choices[item.answer] for item in items]
    assert golds == ["entailment", "contradiction", "neutral"], "-1 is no label"


def test_other_names_are_refused():
    with pytest.raises(KbprobeError, match="the classes of label are yes, no, maybe"):
        open_probe(numbered(["yes", "no", "maybe"]))
