"""Compare a build with what people answered to prompts about the same words and relations.

    python benchmarks/people.py human_responses.json.gz probes/wordnet_hypernymy probes/...

Counts by probe and family the rows about a word that people were asked about, those of them that
show a distractor which two or more answers name for the same relation (``--least``), and those
whose gold an answer names; then lists the rows with such a distractor. Whether it is right in the
sense that the row asks about is for a reader to say: people saw the word alone.

The answers are those of Cao, Yamada, Teufel and Tokunaga (Language Resources and Evaluation 2025;
github.com/hancules/ProbeResponses), which state no licence: kbprobe brings none of them. The file
holds ``{word: {relation: {prompt: [[answers of one person], ...]}}}``, as JSON or JSON in gzip,
with the relations hyp (hypernyms), rhyp (hyponyms), mero (parts), ant and syn. Several answers of a
prompt are those of different people; those of several prompts need not be.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

RELATIONS = {
    "hypernym": "hyp",
    "hyponym": "rhyp",
    "part": "mero",
    "member": "mero",
    "substance": "mero",
    "antonym": "ant",
    "synonym": "syn",
}
"""The names of relations in the column ``relation`` of a row, and in the file of answers."""

COLUMNS = ("rows", "about a word", "contradicted", "gold named")

Answers = Mapping[tuple[str, str], Counter[str]]
"""How many answers name each word, by word asked about and relation."""


@dataclass
class Comparison:
    """The rows of a probe beside people's answers.

    Attributes:
        counts: by family the numbers of `COLUMNS`.
        contradicted: the rows with a distractor that people name, and these distractors.
    """

    counts: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    contradicted: list[tuple[Mapping[str, Any], list[str]]] = field(default_factory=list)

    def line(self, families: Iterable[str]) -> list[int]:
        """Return the numbers over some families."""
        return [sum(self.counts[name][column] for name in families) for column in COLUMNS]


def main() -> None:
    """Print the counts of each probe, and the rows that people contradict."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("answers", type=Path, metavar="ANSWERS", help="The file of answers.")
    parser.add_argument("probes", nargs="+", type=Path, metavar="PROBE", help="Built probes.")
    parser.add_argument("--least", type=int, default=2, metavar="N", help="Answers that count [2].")
    options = parser.parse_args()
    answers = read_answers(options.answers)
    found = {
        folder.name: compared(rows_of(folder), answers, options.least) for folder in options.probes
    }
    print("".ljust(44), *(name.rjust(12) for name in COLUMNS))
    total = [0] * len(COLUMNS)
    for probe, comparison in found.items():
        every = comparison.line(comparison.counts)
        total = [one + other for one, other in zip(total, every, strict=True)]
        for name, line in [
            (probe, every),
            *((f"  {name}", comparison.line([name])) for name in sorted(comparison.counts)),
        ]:
            print(name.ljust(44), *(f"{number:,}".rjust(12) for number in line))
    if len(found) > 1:
        print("all".ljust(44), *(f"{number:,}".rjust(12) for number in total))
    for probe, comparison in found.items():
        for row, named in comparison.contradicted:
            gold = row["choices"]["text"][row["answer"]]
            print(f"\n{probe} {row['id']} ({row['distractor_family']}): {row['question']}")
            print(f"  gold: {gold}")
            for text in named:
                print(f"  people: {text}")


def read_answers(path: Path) -> Answers:
    """Count the answers that name each word, by word asked about and relation."""
    packed = path.read_bytes()
    content = gzip.decompress(packed) if path.suffix == ".gz" else packed
    found: dict[tuple[str, str], Counter[str]] = {}
    for word, relations in json.loads(content).items():
        for relation, prompts in relations.items():
            counted = found.setdefault((plain(word), relation), Counter())
            for people in prompts.values():
                for named in people:
                    counted.update({plain(text) for text in named})
    return found


def rows_of(folder: Path) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of a probe's default config, of all splits."""
    from kbprobe.format.dataset import read_rows
    from kbprobe.format.manifest import read_manifest
    from kbprobe.format.setups import DEFAULT_CONFIG

    for split in read_manifest(folder).split_files(DEFAULT_CONFIG).values():
        for batch in read_rows(folder, split).to_batches(max_chunksize=1 << 12):
            yield from batch.to_pylist()


def compared(rows: Iterable[Mapping[str, Any]], answers: Answers, least: int = 2) -> Comparison:
    """Compare rows with answers; a distractor counts that ``least`` of them name."""
    found = Comparison()
    for row in rows:
        counts = found.counts[row["distractor_family"]]
        counts["rows"] += 1
        relation = RELATIONS.get(row["relation"], "")
        asked = [
            answers[word, relation] for word in words_asked(row) if (word, relation) in answers
        ]
        if not asked:
            continue
        named: Counter[str] = sum(asked, Counter())
        most = [max(named[word] for word in words_of(text)) for text in row["choices"]["text"]]
        wrong = [
            text
            for place, text in enumerate(row["choices"]["text"])
            if place != row["answer"] and most[place] >= least
        ]
        counts["about a word"] += 1
        counts["gold named"] += most[row["answer"]] > 0
        if wrong:
            counts["contradicted"] += 1
            found.contradicted.append((row, wrong))
    return found


def words_asked(row: Mapping[str, Any]) -> Sequence[str]:
    """Return the words that a row is about: as it stands there, its lemma, and its synset's name.

    >>> words_asked({"concept": "hallway.n.01", "surface_form": "hall", "arguments": []})
    ['hallway', 'hall']
    """
    shown = [argument["value"] for argument in row["arguments"] if argument["name"] == "word"]
    synset = re.sub(r"\.[a-z]\.\d+$", "", row["concept"])
    return list(
        dict.fromkeys(filter(None, map(plain, (synset, row["surface_form"] or "", *shown))))
    )


def words_of(choice: str) -> Sequence[str]:
    """Return the words that a choice shows.

    >>> words_of('layer (or bed), defined as "single thickness"'), words_of("unite, unify")
    (['layer', 'bed'], ['unite', 'unify'])
    """
    words = re.split(r" \(or | or |, |\)", choice.split(", defined as ")[0])
    return [plain(word) for word in words if word] or [""]


def plain(text: str) -> str:
    """Return a word in lower case, its parts with spaces between them."""
    return re.sub(r"[\s_-]+", " ", text).strip().casefold()


if __name__ == "__main__":
    main()
