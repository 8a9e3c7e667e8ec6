"""Classes that are numbered: their names decide, and labels of NLI without names are refused."""

import json
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import ClassLabel, Dataset, DatasetDict, Features, List, Value

import evaluation
from evaluation.items.folds import open_rows
from evaluation.items.sources import open_probe
from evaluation.options import RunOptions
from evaluation.runs.reading import SplitReader
from kb_cache.hub import read_hub
from kbprobe.errors import KbprobeError, UsageError

ORDER = ["Entails", "contradiction", "neutral"]
GOLDS = ["entailment", "contradiction", "neutral"]


def numbered(names, label="label", numbers=(0, 1, 2, -1), start=""):
    texts = ("premise", "hypothesis") if label == "label" else ("sentence1", "sentence2")
    kinds = {**dict.fromkeys(texts, Value("string")), label: Value("int64")}
    if names:
        kinds[label] = ClassLabel(names=names)
    rows = [{texts[0]: f"{start}p{n}", texts[1]: f"h{n}", label: n} for n in numbers]
    return Dataset.from_list(rows, Features(kinds))


def golds(source, **options):
    return golds_of(open_probe(source, **options))


def golds_of(rows):
    return [item.choices[item.answer] for item in rows.items]


def write_lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


@pytest.mark.parametrize("label", ["label", "gold_label"])
@pytest.mark.parametrize("place", ["memory", "p:q.parquet"])
def test_the_names_of_classes_decide(place, label, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source = numbered(ORDER, label)
    if place != "memory":
        source.to_parquet(str(tmp_path / place))
        source = place
    assert golds(source) == GOLDS, "-1 is no label"


@pytest.mark.parametrize("names", [["yes", "no", "maybe"], ["entailment", "not_entailment", "x"]])
def test_other_names_are_refused(names):
    with pytest.raises(KbprobeError, match=r"row 2: label is .*; the labels of NLI are entailment"):
        open_probe(numbered(names))


def test_two_of_the_three_labels_suffice_and_those_of_rte_do_not():
    assert golds(numbered(["contradiction", "entailment"], numbers=(0, 1))) == [
        "contradiction",
        "entailment",
    ]
    with pytest.raises(KbprobeError, match="label is 'not_entailment'; the labels of NLI are"):
        open_probe(numbered(["entailment", "not_entailment"], numbers=(0, 1)))


def test_numbers_without_a_class_are_refused(tmp_path):
    table = numbered(None, numbers=(0, 3)).with_format("arrow")[:]
    named = numbered(ORDER).features.arrow_schema.metadata
    pq.write_table(table.replace_schema_metadata(named), tmp_path / "p.parquet")
    with pytest.raises(KbprobeError, match="label is 3; its classes are 0 to 2"):
        open_probe(str(tmp_path / "p.parquet"))


def test_files_of_one_split_that_number_their_classes_differently(tmp_path):
    for number, names in enumerate((ORDER, ORDER[::-1])):
        part = numbered(names, numbers=(0,), start=str(number))
        part.to_parquet(str(tmp_path / f"test-0000{number}-of-00002.parquet"))
    assert golds(str(tmp_path)) == ["entailment", "neutral"]


@pytest.mark.parametrize("configs", [True, False])
def test_a_folder_whose_card_names_the_classes(configs, tmp_path):
    numbers = [{"premise": f"p{n}", "hypothesis": f"h{n}", "label": n} for n in (0, 1, 2, -1)]
    for split in ("train", "test"):
        write_lines(tmp_path / f"{split}.jsonl", numbers)
    names = "".join(f"          '{at}': {name}\n" for at, name in enumerate(ORDER))
    (tmp_path / "README.md").write_text(
        "---\ndataset_info:\n  features:\n  - name: premise\n    dtype: string\n"
        "  - name: hypothesis\n    dtype: string\n  - name: label\n    dtype:\n"
        f"      class_label:\n        names:\n{names}"
        + configs * "configs:\n- config_name: default\n  data_files:\n  - split: train\n"
        + configs * "    path: train.jsonl\n  - split: test\n    path: test.jsonl\n"
        + "---\n"
    )
    folder = str(tmp_path)
    assert golds(folder) == GOLDS
    train = SplitReader().train(folder, RunOptions(train=1))
    assert golds_of(train) == GOLDS


BARE = {
    "numbers": (0, 1, 2, -1),
    "texts": ("0", "1", "2", "-1"),
    "pandas": (0.0, 1.0, 2.0, None),
}


@pytest.mark.parametrize("kind", BARE)
@pytest.mark.parametrize("column", ["label", "gold_label"])
def test_numbers_without_names_are_refused_until_their_order_is_stated(kind, column, tmp_path):
    first, second = ("premise", "hypothesis") if column == "label" else ("sentence1", "sentence2")
    rows = [{first: f"p{n}", second: f"h{n}", column: n} for n in BARE[kind]]
    lines = write_lines(tmp_path / "pairs.jsonl", rows)
    table = str(tmp_path / "pairs.parquet")
    pq.write_table(pa.Table.from_pylist(rows), table)
    for source in (
        lines,
        table,
        Dataset.from_list(rows),
        DatasetDict(test=Dataset.from_list(rows)),
    ):
        with pytest.raises(KbprobeError, match=f"{column} is a number in 3 of . rows .*--label-na"):
            open_probe(source)
        assert golds(source, label_names=ORDER) == GOLDS


def test_classes_that_are_named_by_their_numbers_have_no_names(tmp_path):
    source = numbered(["0", "1", "2"])
    with pytest.raises(KbprobeError, match="--label-names entailment,neutral,contradiction"):
        open_probe(source)
    assert golds(source, label_names=ORDER) == GOLDS


def test_an_order_that_the_names_contradict_is_refused():
    assert golds(numbered(ORDER), label_names=GOLDS) == GOLDS
    with pytest.raises(UsageError, match=r"are others than --label-names .*Leave the option out"):
        open_probe(numbered(ORDER), label_names=GOLDS[::-1])
    with pytest.raises(KbprobeError, match="label is 2, and --label-names names those from 0 to 1"):
        open_probe(numbered(None), label_names=GOLDS[:2])


@pytest.mark.parametrize("names", [("yes", "no"), ("neutral",), ("neutral", "neutral")])
def test_names_that_are_no_labels_of_nli_are_refused(names):
    with pytest.raises(UsageError, match="--label-names: must name two or three of entailment"):
        RunOptions.parse({"label_names": names}, "evaluate")


def test_the_stated_order_is_that_of_all_splits_and_of_rows_to_learn_from(tmp_path):
    rows = [{"premise": f"p{n}", "hypothesis": f"h{n}", "label": n} for n in (0, 1, 2)]
    sources = [write_lines(tmp_path / f"{split}.jsonl", rows) for split in ("train", "test")]
    probe = str(tmp_path)
    options = RunOptions(
        train=1, label_names=ORDER, train_on=sources[0], mix_in=sources[0], mix_rows=1
    )
    reader = SplitReader()
    parts = [reader.rows(probe, options), reader.train(probe, options), reader.mixed(options)]
    assert [golds_of(part) for part in parts] == [GOLDS] * 3
    other = options.model_copy(update={"label_names": tuple(GOLDS[::-1])})
    assert golds_of(reader.rows(probe, other)) == GOLDS[::-1], "not the rows kept in memory"
    assert golds_of(open_rows(probe, "all", label_names=ORDER)) == GOLDS * 2


def test_results_tell_the_stated_order(tmp_path):
    rows = [{"premise": f"p{n}", "hypothesis": f"h{n}", "label": n % 3} for n in range(9)]
    for split in ("train", "test"):
        write_lines(
            tmp_path / f"{split}.jsonl", [{**row, "idx": split + row["premise"]} for row in rows]
        )
    asked = {"learner": "majority", "train": 9, "output": str(tmp_path / "results")}
    done = evaluation.evaluate(str(tmp_path), "none", label_names=ORDER, **asked)
    assert done.results.scoring.options["label_names"] == tuple(ORDER)
    again = evaluation.evaluate(str(tmp_path), "none", label_names=ORDER, **asked)
    assert again.results.probe.fingerprint == done.results.probe.fingerprint
    with pytest.raises(UsageError, match="--label-names"):
        evaluation.evaluate(str(tmp_path), "none", label_names=GOLDS[::-1], **asked)


# --- Choices ----------------------------------------------------------------------------------


def choices(**columns):
    rows = [
        {"question": f"q{n}", "choices": {"text": ["a", "b"], "label": labels}, "answerKey": key}
        for n, (labels, key) in enumerate(columns["rows"])
    ]
    features = Features(
        question=Value("string"),
        choices={"text": List(Value("string")), "label": List(columns["label"])},
        answerKey=columns["key"],
    )
    return Dataset.from_list(
        [{"id": str(n), **row} for n, row in enumerate(rows)],
        Features(id=Value("string"), **features),
    )


@pytest.mark.parametrize(
    ("names", "labels", "expected"),
    [
        (["A", "B"], ["A", "B"], ["a", "b"]),
        (["B", "A"], ["A", "B"], ["b", "a"]),
        (["A", "B"], ["B", "A"], ["b", "a"]),
        (["1", "2"], ["1", "2"], ["a", "b"]),
        (["0", "1"], ["A", "B"], ["a", "b"]),
        (["0", "1"], ["1", "0"], ["b", "a"]),
    ],
)
def test_answers_that_are_classes_are_their_names(names, labels, expected):
    rows = [(labels, 0), (labels, 1)]
    assert golds(choices(rows=rows, key=ClassLabel(names=names), label=Value("string"))) == expected


def test_labels_of_choices_that_are_classes_are_refused():
    source = choices(
        rows=[(["1", "2"], "2")], key=Value("string"), label=ClassLabel(names=["1", "2"])
    )
    with pytest.raises(KbprobeError, match=r"choices holds numbers that stand for names .* lists"):
        open_probe(source)


def test_rows_of_labels_whose_answers_are_classes():
    row = {
        "id": "1",
        "setup": "acceptability",
        "question": "It rains.",
        "choices": {"text": ["unacceptable", "acceptable"], "label": ["A", "B"]},
        "answer": 1,
        "answerKey": "B",
    }
    plain = Dataset.from_list([row])
    assert golds(plain) == ["acceptable"]
    for column in ("setup", "answerKey"):
        assert golds(plain.class_encode_column(column)) == ["acceptable"]
    named = plain.cast_column("answer", ClassLabel(names=["acceptable", "unacceptable"]))
    with pytest.raises(KbprobeError, match="answer is the text 'unacceptable', not the index"):
        open_probe(named)


def test_a_file_that_was_replaced_at_the_same_time_is_read_anew(tmp_path, monkeypatch):
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "hf")
    folder = tmp_path / "pairs"
    folder.mkdir()
    (folder / "README.md").write_text(
        "---\nconfigs:\n- config_name: default\n  data_files:\n  - split: test\n"
        "    path: test.jsonl\n---\n"
    )
    row = {"premise": "p", "hypothesis": "h", "label": "neutral"}
    path = folder / "test.jsonl"
    for label in ("neutral", "entailment"):
        write_lines(path, [{**row, "label": label}])
        os.utime(path, ns=(10**18, 10**18))
        assert golds(str(folder)) == [label]
        table = read_hub(f"hub:{folder}")[0]
        assert table.rows["label"] == [label]
