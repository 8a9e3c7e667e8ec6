"""What rows of WordNet probes state of words, and questions that ask for each relation in turn.

A question asks for one relation of a word. Its right answers are what the rows state in that
relation, and its wrong ones what they state in the others: *a kind of dog* is no right answer where
the parts of a dog are asked for. Words are asked about in their first sense, the one that a reader
takes them in without context.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from evaluation.items.built import manifest_of_build, rows_of_build
from evaluation.runs.spec import RunSpec
from evaluation.studies.base import StudyRequest
from evaluation.studies.own_questions import dataset_of, question_row
from kbprobe.errors import UsageError, did_you_mean
from kbprobe.format.items import COMMON
from kbprobe.format.setups import QUESTION
from kbprobe.options import Metavar, Options
from kbprobe.parsing import read_yaml

INVERSE = {
    "hypernym": "hyponym",
    "hyponym": "hypernym",
    "holonym": "meronym",
    "meronym": "holonym",
    "antonym": "antonym",
    "synonym": "synonym",
}
"""The six relations, and what the relation is in the other direction."""

_STATED = {
    "hypernym": "hypernym",
    "hyponym": "hyponym",
    **dict.fromkeys(("part", "member", "substance"), "meronym"),
    "antonym": "antonym",
}
_DEFINITION, _LEMMA = "definition", "lemma"
_PARTS_OF_SPEECH = {"n": "noun", "v": "verb", "a": "adjective", "s": "adjective", "r": "adverb"}
_NODE = re.compile(r"(.+)\.([nvasr])\.(\d+)")

_NEEDED = (
    "name several of wordnet_hypernymy, wordnet_hyponymy, wordnet_meronymy, wordnet_antonymy and "
    "wordnet_synonymy, built with one --seed"
)

MOST = 4
"""Maximum number of words asked for, or offered, in one relation: the most frequent ones."""

MOST_NAMED = 10
"""Maximum number of people's answers in a question: those named most often."""


class RelationsOptions(Options):
    """How many words are asked about, and what people answer."""

    words: int | None = Field(
        None,
        ge=1,
        description="Maximum number of words to ask about: those with the most relations, and "
        "the most frequent, first, each followed by what is related to it. By default, all.",
    )
    people: Annotated[str | None, Metavar("FILE")] = Field(
        None,
        min_length=1,
        description="A table of what people answered, one row a person and prompt: columns word, "
        "relation and answers (separated by semicolons).",
    )


class AskedWord(NamedTuple):
    """A word that is asked about, in the sense of one node."""

    word: str
    pos: str
    node: str


Relata = dict[str, list[str]]
"""What a word is related to, by relation."""


def expand(request: StudyRequest) -> list[RunSpec]:
    """Return a run of each model on the questions, and one on those that people answered."""
    probes = request.named_probes()
    relata = read_relata(probes)
    kept = _related_first(relata, request.options.words)
    sets = {"relations": [row for asked in kept for row in _rows(asked, relata)]}
    if not sets["relations"]:
        raise UsageError(
            f"the rows of {', '.join(probes)} state two relations of no word: {_NEEDED}"
        )
    if request.options.people is not None:
        sets["people"] = list(_people_rows(read_people(request.options.people)))
    datasets = {name: dataset_of(name, rows) for name, rows in sets.items()}
    return [
        request.within_model(request.spec(rows, model, facts=False), name)
        for model in request.models
        for name, rows in datasets.items()
    ]


def read_relata(probes: Sequence[str]) -> dict[AskedWord, Relata]:
    """Return the words that can be asked about, and what all rows of the probes relate them to.

    They have two relations or more, in their first sense. Synonyms of these that no node is called
    by are asked about as well, if the rows know them in no other sense.

    Raises:
        UsageError: a folder holds no built probe, one in another language than English, or one
            that states none of the relations.
        KbprobeError: a file is damaged.
    """
    edges: set[tuple[str, str, str]] = set()
    lemmas: defaultdict[str, list[str]] = defaultdict(list)
    spelt: dict[str, str] = {}
    stating: set[str] = set()
    for probe, row in ((name, row) for name in probes for row in _probe_rows(name)):
        for triple in row["triples"]:
            start, name, end = triple["subject"], triple["relation"], triple["object"]
            if name == _LEMMA:
                lemmas[start].append(end)
            elif (relation := _STATED.get(name)) is not None:
                edges |= {(start, relation, end), (end, INVERSE[relation], start)}
            else:
                continue
            stating.add(probe)
        spelt.update(_spelt(row))
    if idle := [probe for probe in probes if probe not in stating]:
        raise UsageError(
            f"{', '.join(idle)}: no row states any of the relations {', '.join(INVERSE)} of common "
            f"words. Leave out what states none; {_NEEDED}"
        )
    of_node: defaultdict[str, defaultdict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for start, relation, end in edges:
        of_node[start][relation].add(_word(end, spelt))
    for node in {*of_node, *lemmas}:
        of_node[node]["synonym"] = {_word(node, spelt), *lemmas.get(node, ())}
    senses: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for node in sorted(of_node):
        for word in sorted(of_node[node]["synonym"]):
            senses[word, _pos(node)].append(node)
    relata = {}
    for (word, pos), nodes in senses.items():
        first = next((node for node in nodes if _is_first(node, word)), None)
        asked = AskedWord(word, pos, first or nodes[0])
        if first is None and (len(nodes) > 1 or _is_named(asked)):
            continue
        own = _chosen(word, of_node[asked.node], [of_node[node] for node in nodes])
        if len(own) > 1:
            relata[asked] = own
    wanted = {
        (asked.node, text)
        for asked, own in relata.items()
        if _is_named(asked)
        for text in own.get("synonym", ())
    }
    return {
        asked: own
        for asked, own in relata.items()
        if _is_named(asked) or (asked.node, asked.word) in wanted
    }


_READ = ["triples", "choices", "choice_nodes", "content"]


def _probe_rows(probe: str) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of a probe that are about common words; raises as `read_relata`."""
    manifest = manifest_of_build(probe, "relations reads what the triples of rows state")
    if set(manifest.language) != {"en"}:
        raise UsageError(
            f"{probe} is in {', '.join(manifest.language)}, and relations asks in English: build "
            "it with --language en"
        )
    for row in rows_of_build(probe, manifest, _READ):
        if row["content"] in ("", COMMON):
            yield row


def _spelt(row: Mapping[str, Any]) -> dict[str, str]:
    """Return how choices spell the words of their nodes, with capital letters where they have."""
    spelt = {}
    for node, text in zip(row["choice_nodes"] or (), row["choices"]["text"], strict=False):
        word = _word(node, {})
        start = text.removeprefix("to ")[: len(word)]
        if start.casefold() == word:
            spelt[node] = start
    return spelt


def _word(node: str, spelt: Mapping[str, str]) -> str:
    """Return the word that a node is called by."""
    known = _NODE.fullmatch(node)
    return spelt.get(node) or (known[1].replace("_", " ") if known else node)


def _pos(node: str) -> str:
    known = _NODE.fullmatch(node)
    return _PARTS_OF_SPEECH[known[2]] if known else ""


def _is_first(node: str, word: str) -> bool:
    """Return whether a node is the first sense of a word that it is called by."""
    known = _NODE.fullmatch(node)
    first = known is not None and int(known[3]) == 1
    return first and _word(node, {}) == word.casefold()


def _chosen(
    word: str, own: Mapping[str, set[str]], senses: Sequence[Mapping[str, set[str]]]
) -> Relata:
    """Choose what is asked for and offered: the most frequent relata of a word, without giveaways.

    Left out is what shares a word with the one asked about, and what it is related to in several
    ways, if only in another of its senses.
    """
    from kb_cache.frequency import zipf_frequencies

    ways = {(name, text) for sense in senses for name, texts in sense.items() for text in texts}
    several = {text for text, n in Counter(text for _, text in ways).items() if n > 1}
    chosen = {}
    for relation in INVERSE:
        texts = sorted(
            text
            for text in own.get(relation, ())
            if text not in several and not _share_a_word(text, word)
        )
        if texts:
            frequency = dict(zip(texts, zipf_frequencies(texts).tolist(), strict=True))
            chosen[relation] = sorted(texts, key=lambda text: -frequency[text])[:MOST]
    return chosen


def _share_a_word(text: str, other: str) -> bool:
    words, others = (re.split(r"[\s-]", one.casefold()) for one in (text, other))
    return not {*words}.isdisjoint(others)


def _related_first(relata: Mapping[AskedWord, Relata], most: int | None) -> list[AskedWord]:
    """Return the words to ask about, so that both directions of a relation are asked for."""
    from kb_cache.frequency import zipf_frequencies

    if most is None or most >= len(relata):
        return [*relata]
    by_word: defaultdict[tuple[str, str], list[AskedWord]] = defaultdict(list)
    for asked in relata:
        by_word[asked.word, asked.pos].append(asked)
    kept: dict[AskedWord, None] = {}
    frequency = dict(zip(relata, zipf_frequencies([asked.word for asked in relata]), strict=True))
    for asked in sorted(relata, key=lambda asked: (-len(relata[asked]), -frequency[asked])):
        kept[asked] = None
        for word in chain.from_iterable(relata[asked].values()):
            kept.update(dict.fromkeys(by_word.get((word, asked.pos), ())))
        if len(kept) >= most:
            break
    return [*kept][:most]


def _is_named(asked: AskedWord) -> bool:
    """Return whether the node is called by the word, and not by a synonym."""
    return _word(asked.node, {}) == asked.word.casefold()


def _rows(asked: AskedWord, relata: Mapping[AskedWord, Relata]) -> Iterator[dict[str, Any]]:
    """Yield a row for each relation of a word and each of its right answers.

    Of words that a node is not called by, only synonyms are asked for, as the other direction.
    """
    own = relata[asked]
    for relation, golds in own.items():
        if relation != "synonym" and not _is_named(asked):
            continue
        others = {word: name for name, words in own.items() for word in words if name != relation}
        for gold in golds:
            yield _row(asked, relation, gold, {**others, gold: "gold"})


def _row(asked: AskedWord, relation: str, gold: str, kinds: Mapping[str, str]) -> dict[str, Any]:
    return question_row(
        "/".join((asked.node, asked.word, relation, gold)),
        _wordings()[relation].format(word=asked.word, pos=asked.pos),
        kinds,
        gold,
        setup=QUESTION,
        cluster=asked.node,
        concept=asked.node,
        surface_form=asked.word,
        pos=asked.pos,
        template=relation,
    )


@lru_cache(maxsize=1)
def _wordings() -> dict[str, str]:
    """Return the wording of each relation."""
    path = Path(__file__).parents[1] / "data" / "relations.yaml"
    wordings: dict[str, str] = read_yaml(path)
    return wordings


People = dict[tuple[str, str], Counter[str]]
"""How often people named each answer, by word and relation."""


def read_people(path: str) -> People:
    """Read what people answered.

    Raises:
        UsageError: there is no such file, it cannot be read, lacks a column, names another
            relation, or has no question with two answers that were named differently often.
    """
    from kb_cache.tables.read import read_table

    if not Path(path).is_file():
        raise UsageError(f"--people {path}: there is no such file")
    table = read_table(Path(path))
    needed = ("word", "relation", "answers")
    if missing := [name for name in needed if name not in table.column_names]:
        raise UsageError(
            f"--people {path} has no column {', '.join(missing)}; it has "
            f"{', '.join(table.column_names)}. Each row is what one person answered to one prompt, "
            "in the columns word, relation and answers"
        )
    named: People = {}
    for row in table.select(needed).to_pylist():
        relation = _relation(row["relation"] or "", path)
        answers = row["answers"] or ()
        texts = answers.split(";") if isinstance(answers, str) else answers
        counts = named.setdefault((_plain(row["word"] or ""), relation), Counter())
        counts.update({_plain(text) for text in texts} - {""})
    if next(_people_rows(named), None) is None:
        raise UsageError(
            f"--people {path}: no word has two answers to one relation that two rows or more name, "
            "one more often than the other, so there is nothing to compare. Each row is what one "
            "person answered to one prompt; answers in one cell are separated by semicolons"
        )
    return named


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def _relation(given: str, path: str) -> str:
    """Return the relation that a name stands for: ``hypernym`` or ``hypernymy``."""
    name = given.strip().casefold()
    name = name if name in INVERSE else name.removesuffix("y")
    if name not in INVERSE:
        hint = did_you_mean(name, INVERSE)
        raise UsageError(
            f"--people {path}: {given!r} is none of the relations {', '.join(INVERSE)}.{hint}"
        )
    return name


def _people_rows(named: People) -> Iterator[dict[str, Any]]:
    """Yield a question for each word and relation, with what several people named as choices.

    The answer named most often is the gold. The words are nouns.
    """
    for (word, relation), counts in sorted(named.items()):
        ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
        kept = [text for text, n in ranked[:MOST_NAMED] if n > 1 and text != word]
        if len({counts[text] for text in kept}) > 1:
            kinds = {**dict.fromkeys(kept, "named"), kept[0]: "gold"}
            yield _row(AskedWord(word, "noun", word), relation, kept[0], kinds)
