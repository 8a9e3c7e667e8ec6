"""Published files of questions, in every format that is evaluated, and labels of rows."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

from tests.reliability.target import Refused, Target

_DATA = Path(__file__).parents[2] / "evaluation" / "data"
_FILES = (
    "arc/ARC-Challenge-Test.jsonl",
    "dictionary_qa/dev.jsonl",
    "olmpics/age_comparison_dev.jsonl",
    "olmpics/property_conjunction_dev.jsonl",
    "wordnet_qa/hypernymy/dev.jsonl",
)

Question = tuple[str, tuple[str, ...], str]


def _published(folder: Path) -> list[Path]:
    files = [Path(shutil.copy(_DATA / name, folder / name.replace("/", "-"))) for name in _FILES]
    listed = folder / "listed.json"
    rows = [json.loads(line) for line in files[0].read_text("utf-8").splitlines()]
    listed.write_text(json.dumps(rows), "utf-8")
    packed = folder / "packed.jsonl.gz"
    packed.write_bytes(gzip.compress(files[2].read_bytes()))
    return [*files, listed, packed]


def _read(path: Path) -> list[Question]:
    """Return question, texts of the choices and text of the gold of every row."""
    from evaluation.items.sources import WHOLE, open_probe

    try:
        items = open_probe(path, split=WHOLE).items
    except Exception as error:
        if "it has no split" not in str(error):
            raise
        items = open_probe(path).items
    return [(item.question, tuple(item.choices), item.choices[item.answer]) for item in items]


def _expected(path: Path) -> list[Question]:
    """Read the rows as the papers describe them."""
    try:
        content = path.read_bytes()
        text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode("utf-8-sig")
        if text.lstrip().startswith("["):
            rows = json.loads(text)
        else:
            rows = [json.loads(line) for line in text.split("\n") if line.strip()]
        return [_question(row) for row in rows]
    except Exception as error:
        raise Refused(f"{type(error).__name__}: {error}") from error


def _question(row: dict[str, Any]) -> Question:
    asked = row["question"]
    stem = asked if isinstance(asked, str) else asked.get("stem", row.get("question_stem"))
    choices = row["choices"] if "choices" in row else asked["choices"]
    if isinstance(choices, dict):
        choices = [
            {"text": text, "label": label}
            for text, label in zip(choices["text"], choices["label"], strict=True)
        ]
    texts = [choice["text"] for choice in choices]
    labels = [str(choice["label"]) for choice in choices]
    key = row["answerKey"]
    gold = texts[labels.index(str(key)) if str(key) in labels else int(key)]
    if any(not isinstance(text, str) for text in (stem, *texts)):
        raise TypeError("no text")
    if 1 < texts.count(gold) < len(texts):  # published rows repeat the gold among the choices
        first = labels.index(str(key)) if str(key) in labels else int(key)
        texts = [text for at, text in enumerate(texts) if at == first or text != gold]
    return stem, tuple(texts), gold


def _own(folder: Path) -> list[Path]:
    """Write rows of kbprobe's own schema, as Parquet."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from kbprobe.format.items import arrow_schema

    schema = arrow_schema()
    rows = [
        {
            **dict.fromkeys(schema.names),
            "id": f"row-{at}",
            "question": f"Is {at} even?",
            "choices": {"text": ["yes", "no"], "label": ["A", "B"]},
            "answer": at % 2,
            "answerKey": "AB"[at % 2],
            "setup": "mc_qa",
            "cluster": f"c{at // 2}",
            "hops": 1,
            "schema_version": "1.0",
            "arguments": [{"name": "n", "value": str(at)}],
            "fact_ids": [f"f{at}"],
            "relation": "parity",
        }
        for at in range(12)
    ]
    table = pa.Table.from_pylist([{k: row.get(k) for k in schema.names} for row in rows], schema)
    pq.write_table(table, folder / "test.parquet", write_page_checksum=True)
    return [folder / "test.parquet"]


def _recast(folder: Path) -> list[Path]:
    rows = [
        {
            "context": f"Alice ate {at} apples.",
            "hypothesis": f"Alice ate more than {at - 1} apples.",
            "label": "entailed",
            "label-set": ["entailed", "not-entailed"],
            "pair-id": f"p{at}",
        }
        for at in range(1, 11)
    ]
    from kbprobe.format.setups import NLI, SETUPS

    labels = list(SETUPS[NLI].labels)
    for row in rows:
        row |= {"label": labels[0], "label-set": labels}
    about = [{"pair-id": row["pair-id"], "misc": {"fold1": "test"}} for row in rows]
    (folder / "toy_data.json").write_text(json.dumps(rows))
    (folder / "toy_metadata.json").write_text(json.dumps(about))
    return [folder / "toy_data.json", folder / "toy_metadata.json"]


def _read_recast(path: Path) -> list[Question]:
    return _read(path.parent / "toy_data.json")


def _labels(folder: Path) -> list[Path]:
    from kbprobe.format.labels import write_labels

    vote = {"annotator": "annotator 1", "answer": 1, "label": "often"}
    labels = [
        {
            "id": f"row-{at}", "answer": at % 3, "label": ["never", "often", "always"][at % 3],
            "kept": True, "reason": "", "agreement": 0.5, "rule": "majority", "votes": [vote],
        }
        for at in range(12)
    ]  # fmt: skip
    files = [folder / "labels.jsonl", folder / "labels.parquet"]
    for file in files:
        write_labels(file, labels)
    votes = [f"row-{at},{name},often\n" for at in range(12) for name in ("ann", "bob")]
    (folder / "votes.csv").write_text("id,annotator,vote\n" + "".join(votes))
    return [*files, folder / "votes.csv"]


def _read_labels(path: Path) -> int:
    from builders.labels.verdicts import read_verdicts

    answers = ("never", "often", "always")
    return len(read_verdicts([path], [f"row-{at}" for at in range(12)], answers, 1))


TARGETS = [
    Target("labels", _labels, _read_labels),
    Target("published", _published, _read, _expected, both_refuse=False),
    Target("published-parquet", _own, _read),
    Target("published-recast", _recast, _read_recast, names_file=False),
]
