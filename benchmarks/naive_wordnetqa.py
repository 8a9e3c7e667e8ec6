"""Reference implementation: WordNetQA rows as one would generate them without our engine.

NLTK's synset objects, Python loops, ``random.Random``, one ``Template.render`` for every stem and
every choice text, a dict for every row, ``Table.from_pylist``, Parquet. It asks the same as
``build-probe`` with ``--families paper --sampling uniform`` and no cap: the same questions,
families, rules of truth and wordings, and all columns of an item. It caches what a competent
engineer would cache: all synsets are loaded beforehand, neighbours are cached, and a concept's
pools are computed once for all its questions.

Borrowed from kbprobe: the options' defaults, the templates' text, the schema, the glosses without
leftovers of examples, the lemmas of words, the rules for related words, and the table ``mentions``,
which locates words in their examples. (That table took minutes to compute when the snapshot was
compiled, and is counted on neither side.)
"""

from __future__ import annotations

import random
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import nltk
import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from nltk.corpus.reader.wordnet import Synset, WordNetCorpusReader

import templates
from builders.engine.render.jinja import FILTERS
from builders.english import kin
from builders.english.contexts import kinds_of_context, without_full_stop
from builders.english.kin import lemmas
from builders.wordnet.families import MAX_DISTANCE
from builders.wordnet.synsets import shown_glosses
from kb_cache.frequency import FUNCTION_WORDS
from kb_cache.wordnet.load import load_wordnet
from kbprobe.format.items import LABELS, arrow_schema
from kbprobe.format.manifest import SCHEMA_VERSION

POS_NAMES = {"n": "noun", "v": "verb", "a": "adjective", "s": "adjective", "r": "adverb"}
SPLITS = ("train", "validation", "test")
RELATIONS = {
    "wordnet_definitions": "definition",
    "wordnet_hypernymy": "hypernym",
    "wordnet_hyponymy": "hyponym",
    "wordnet_synonymy": "synonym",
}
CHUNK = 10_000  # rows kept in memory as dicts before they are written

_WORD = re.compile(r"[^\W_]+")
_FUNCTION_WORDS = frozenset(FUNCTION_WORDS.split())


class Context(NamedTuple):
    """An example of a concept, and its word in it."""

    sentence: str
    kind: str
    word: str
    lemma: str


NO_CONTEXT = Context("", "", "", "")


class Question(NamedTuple):
    """One question: a stem and its gold."""

    concept: Synset
    gold: Synset
    hops: int
    context: Context
    triples: list[dict[str, str]]


class Choice(NamedTuple):
    """A synset with the family that it was drawn from and its distance in that family."""

    synset: Synset
    family: str
    distance: int


class Pool(NamedTuple):
    """The distractors that a family offers for a concept."""

    family: str
    distance: int
    nodes: list[Synset]


class Lexicon:
    """All of WordNet as NLTK objects, with the look-ups that every probe needs."""

    def __init__(self) -> None:
        reader = WordNetCorpusReader(nltk.data.find("corpora/wordnet"), None)
        self.by_pos: dict[str, list[Synset]] = defaultdict(list)
        self.sharing: dict[str, set[Synset]] = defaultdict(set)
        for synset in reader.all_synsets():
            self.by_pos[POS_NAMES[synset.pos()]].append(synset)
            for key in looks(synset):
                self.sharing[key].add(synset)
        self.contexts = contexts_by_synset()

    def alike(self, synset: Synset) -> set[Synset]:
        """Return the synsets that share a lemma or the gloss, including the synset itself."""
        return {other for key in looks(synset) for other in self.sharing[key]}


def contexts_by_synset() -> dict[str, list[Context]]:
    """Read the contexts of each synset from the table of mentions."""
    wordnet = load_wordnet()
    texts = wordnet.examples["text"].to_pylist()
    shown = without_full_stop(wordnet.examples["text"].combine_chunks()).to_pylist()
    kinds = kinds_of_context(wordnet.examples["text"].combine_chunks()).to_pylist()
    lemmas = wordnet.lemma_texts().to_pylist()
    owners = wordnet.examples["synset"].to_pylist()
    names = wordnet.synsets["name"].to_pylist()
    found: dict[str, list[Context]] = defaultdict(list)
    before = -1
    for mention in wordnet.mentions.to_pylist():
        example, start, end = mention["example"], mention["start"], mention["end"]
        if example != before and len(texts[example]) - (end - start) >= 6:
            word, lemma = texts[example][start:end], lemmas[mention["sense"]]
            context = Context(shown[example], kinds[example], word, lemma)
            found[names[owners[example]]].append(context)
        before = example
    return found


@cache
def lemmas_of(synset: Synset) -> list[str]:
    return [name.replace("_", " ") for name in synset.lemma_names()]


@cache
def _shown_glosses() -> dict[str, str]:
    wordnet = load_wordnet()
    names = wordnet.synsets["name"].to_pylist()
    return dict(zip(names, shown_glosses(wordnet).to_pylist(), strict=True))


def gloss_of(synset: Synset) -> str:
    return _shown_glosses()[synset.name()]


@cache
def looks(synset: Synset) -> tuple[str, ...]:
    """Return what makes synsets look the same: lemmas without punctuation, and the gloss."""
    lemmas = ("".join(_WORD.findall(lemma.lower())) for lemma in lemmas_of(synset))
    return (*lemmas, f"gloss: {gloss_of(synset)}")


Step = Callable[[Synset], list[Synset]]
class_up: Step = cache(Synset.hypernyms)
class_down: Step = cache(Synset.hyponyms)
parents: Step = cache(lambda synset: synset.hypernyms() + synset.instance_hypernyms())
children: Step = cache(lambda synset: synset.hyponyms() + synset.instance_hyponyms())


def levels(start: Synset, step: Step, depth: int) -> list[list[Synset]]:
    """Search breadth-first from a synset: ``levels(...)[k]`` are the synsets at exactly k steps."""
    seen = {start}
    found = [[start]]
    while found[-1] and len(found) <= depth:
        found.append([])
        for synset in found[-2]:
            for neighbour in step(synset):
                if neighbour not in seen:
                    seen.add(neighbour)
                    found[-1].append(neighbour)
    return found + [[]] * (depth + 1 - len(found))


def path_to(start: Synset, goal: Synset, step: Step, relation: str) -> list[dict[str, str]]:
    """Return a shortest path as triples, one for each edge."""
    before: dict[Synset, Synset] = {start: start}
    queue = [start]
    while goal not in before:
        queue = [
            neighbour
            for synset in queue
            for neighbour in step(synset)
            if before.setdefault(neighbour, synset) is synset
        ]
    edges = []
    while goal != start:
        names = {"subject": before[goal].name(), "relation": relation, "object": goal.name()}
        edges.append(names)
        goal = before[goal]
    return edges[::-1]


def is_function_word(word: str) -> bool:
    return len(word) < kin.SHORTEST or word in _FUNCTION_WORDS


@cache
def lemmas_of_word(word: str) -> frozenset[str]:
    return frozenset(lemmas(pa.array([word]))[1].to_pylist())


@cache
def keys_of(word: str) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """Return the keys shared with related words, and those of contained and containing words."""
    alike, held, holds = set(), set(), set()
    for form in (lemma.replace("y", "i")[: kin.LONGEST] for lemma in lemmas_of_word(word)):
        alike.add(form)
        for start in (form, re.sub(kin.PREFIX.replace(r"\pL", "[^\\W\\d_]"), r"\1", form)):
            if len(start) >= kin.START:
                alike.add("^" + start[: kin.START])
        if len(form) >= kin.INNER:
            held.add("*" + form[: kin.INNER])
        holds |= {"*" + form[i : i + kin.INNER] for i in range(1, len(form) - kin.INNER + 1)}
        if len(form) == kin.START and form not in kin.AS_ENDINGS and not form.endswith("ing"):
            held.add("$" + form)
        if len(form) > kin.START:
            holds.add("$" + form[-kin.START :])
        if len(form) == 3 or (len(form) == 4 and form.endswith("e")):
            held.add("+" + form[:3])
        if re.match(kin.ENDING.replace(r"\pL", "[^\\W\\d_]"), form):
            holds.add("+" + form[:3])
    return frozenset(alike), frozenset(held), frozenset(holds)


def akin(one: str, other: str) -> bool:
    if is_function_word(other):
        return bool(keys_of(one)[0] & {form.replace("y", "i") for form in lemmas_of_word(other)})
    alike, held, holds = keys_of(one)
    other_alike, other_held, other_holds = keys_of(other)
    return bool(alike & other_alike or held & other_holds or holds & other_held)


def holds_kin(asked: str, text: str) -> bool:
    words = _WORD.findall(asked.lower())
    asked_about = [word for word in words if not is_function_word(word)] or words
    return any(akin(one, other) for other in _WORD.findall(text.lower()) for one in asked_about)


def share_a_word(left: str, right: str) -> bool:
    sides = (
        {
            lemma
            for word in _WORD.findall(text.lower())
            if not is_function_word(word)
            for lemma in lemmas_of_word(word)
        }
        for text in (left, right)
    )
    return bool(set.intersection(*sides))


class Generator:
    """One probe's rows."""

    def __init__(self, name: str, lexicon: Lexicon, options: Any, seed: int = 0) -> None:
        self.name, self.lexicon, self.seed = name, lexicon, seed
        self.relation = RELATIONS[name]
        self.options = options
        self.seen: set[str] = set()
        source = Path(templates.__path__[0]) / f"{name}.yaml"
        declared = yaml.safe_load(source.read_text(encoding="utf-8"))
        jinja = jinja2.Environment()
        jinja.filters |= {name: given.function for name, given in FILTERS.items()}
        self.wordings = [(w["id"], jinja.from_string(w["text"])) for w in declared["question"]]
        self.choice = jinja.from_string(declared["choice"])
        self.arguments: list[str] = declared["arguments"]

    def concepts(self) -> list[Synset]:
        """Return the concepts that may be asked about, in random order."""
        known = [s for pos in self.options.pos for s in self.lexicon.by_pos[pos]]
        if self.relation == "synonym":
            asked = [s for s in known if len(s.lemma_names()) >= 2]
        else:
            asked = [s for s in known if s.name() in self.lexicon.contexts]
        random.Random(f"{self.seed} {self.name}").shuffle(asked)
        return asked

    def questions(self, concept: Synset, rng: random.Random) -> Iterator[Question]:
        """Return every question about a concept."""
        for gold, hops, triples in self._golds(concept, rng):
            contexts = self.lexicon.contexts.get(concept.name(), [])
            for context in [NO_CONTEXT] if self.relation == "synonym" else contexts:
                if not self._given_away(concept, gold, context.sentence, context.word):
                    yield Question(concept, gold, hops, context, triples)

    def _golds(
        self, concept: Synset, rng: random.Random
    ) -> Iterator[tuple[Synset, int, list[dict[str, str]]]]:
        if self.relation in ("definition", "synonym"):
            name, gloss = concept.name(), concept.definition()
            triples = [{"subject": name, "relation": "definition", "object": gloss}]
            if self.relation == "synonym":
                triples += [
                    {"subject": name, "relation": "lemma", "object": lemma}
                    for lemma in lemmas_of(concept)
                ]
            yield concept, 0, triples
            return
        up = self.relation == "hypernym"
        step = class_up if up else class_down
        stopped, same = set(self.options.stop_golds), self.lexicon.alike(concept)
        for hops, level in enumerate(levels(concept, step, self.options.max_hops)):
            golds = [s for s in level if hops and s not in same and s.name() not in stopped]
            if not up and len(golds) > self.options.golds_per_hop:
                golds = rng.sample(golds, self.options.golds_per_hop)
            for gold in golds:
                yield gold, hops, path_to(concept, gold, step, self.relation)

    def _given_away(self, concept: Synset, gold: Synset, sentence: str, word: str) -> bool:
        """Return whether a word shared by stem and gold gives the gold away."""
        if self.relation == "synonym":
            return holds_kin(" ".join(lemmas_of(gold)), gloss_of(concept))
        names, gloss = " ".join(lemmas_of(gold)[:3]), gloss_of(gold)
        if share_a_word(gloss, sentence):
            return True
        if self.relation == "definition":
            return holds_kin(word, gloss)
        return holds_kin(names, sentence) or holds_kin(word, f"{names} {gloss}")

    def forbidden(self, concept: Synset) -> set[Synset]:
        """Return the synsets that are true of a concept, or look like it."""
        true = {concept}
        if self.relation in ("hypernym", "hyponym"):
            step = parents if self.relation == "hypernym" else children
            true.update(s for level in levels(concept, step, 40) for s in level)
        return {other for synset in true for other in self.lexicon.alike(synset)}

    def pools(self, concept: Synset, banned: set[Synset]) -> list[Pool]:
        """Return each family's distractors for a concept."""
        found = [Pool("random", 0, self.lexicon.by_pos[POS_NAMES[concept.pos()]])]
        for family in self.options.family_list[1:]:
            if family == "sister":
                reached = self._sisters(concept)
            else:
                step = parents if family == "hypernym" else children
                reached = levels(concept, step, MAX_DISTANCE)
            for distance, nodes in enumerate(reached):
                if distance:
                    found.append(Pool(family, distance, [s for s in nodes if s not in banned]))
        return found

    def _sisters(self, concept: Synset) -> list[list[Synset]]:
        depth = self.options.sister_depth
        own = {s for level in levels(concept, children, depth) for s in level}
        below = [levels(parent, children, depth) for parent in parents(concept)]
        return [
            list(dict.fromkeys(s for found in below for s in found[k] if s not in own))
            for k in range(depth + 1)
        ]

    def rows(self, concept: Synset) -> Iterator[dict[str, Any]]:
        """Return all rows about a concept: each question with each family and distance."""
        rng = random.Random(f"{self.seed} {self.name} {concept.name()}")
        split = rng.choices(SPLITS, self.options.split_shares)[0]
        banned = self.forbidden(concept)
        pools = self.pools(concept, banned)
        for question in self.questions(concept, rng):
            like_gold = self.lexicon.alike(question.gold)
            for pool in pools:
                chosen = self._draw(pool, question.gold, (banned, like_gold), rng)
                row = chosen and self._row(question, pool, chosen, rng)
                if row:
                    yield {"split": split, **row}

    def _draw(
        self, pool: Pool, gold: Synset, out: tuple[set[Synset], set[Synset]], rng: random.Random
    ) -> list[Choice]:
        """Draw four distractors, filled up with random ones; none if the family is empty."""
        (banned, like_gold), wanted = out, self.options.choices - 1
        drawn: list[Choice] = []
        if pool.family != "random":
            some = rng.sample(pool.nodes, min(wanted + len(like_gold), len(pool.nodes)))
            usable = [s for s in some if s not in like_gold][:wanted]
            drawn = [Choice(s, pool.family, pool.distance) for s in usable]
            if not drawn:
                return []
        chosen = {choice.synset for choice in drawn}
        everything = self.lexicon.by_pos[POS_NAMES[gold.pos()]]
        while len(drawn) < wanted:
            other = rng.choice(everything)
            if other not in banned and other not in like_gold and other not in chosen:
                chosen.add(other)
                drawn.append(Choice(other, "random", 0))
        return drawn

    def _row(
        self, question: Question, pool: Pool, drawn: list[Choice], rng: random.Random
    ) -> dict[str, Any] | None:
        concept, gold = question.concept, question.gold
        key = (self.name, concept.name(), question.context.sentence, gold.name())
        identity = "|".join((*key, *sorted(c.synset.name() for c in drawn)))
        row_id = blake2b(identity.encode(), digest_size=8).hexdigest()
        choices = [Choice(gold, "gold", question.hops), *drawn]
        rng.shuffle(choices)
        texts = [self._choice_text(choice.synset) for choice in choices]
        if row_id in self.seen or len(set(texts)) < len(texts):
            return None
        self.seen.add(row_id)
        answer = [choice.family for choice in choices].index("gold")
        wording, template = rng.choice(self.wordings)
        fields = {
            **question.context._asdict(),
            "gloss": gloss_of(concept),
            "pos": POS_NAMES[concept.pos()],
        }
        return {
            "id": row_id,
            "question": template.render(fields),
            "choices": {"text": texts, "label": list(LABELS[: len(texts)])},
            "answer": answer,
            "answerKey": LABELS[answer],
            "setup": "mc_qa",
            "cluster": concept.name(),
            "concept": concept.name(),
            "relation": self.relation,
            "hops": question.hops,
            "distractor_family": pool.family,
            "distractor_hops": pool.distance,
            "choice_nodes": [choice.synset.name() for choice in choices],
            "choice_families": [choice.family for choice in choices],
            "choice_hops": [choice.distance for choice in choices],
            "context": question.context.sentence,
            "surface_form": question.context.word,
            "pos": fields["pos"],
            "template": wording,
            "arguments": [{"name": name, "value": fields[name]} for name in self.arguments],
            "triples": question.triples,
            "premise": "",
            "hypothesis": "",
            "flags": [],
            "schema_version": SCHEMA_VERSION,
        }

    def _choice_text(self, synset: Synset) -> str:
        names, pos = lemmas_of(synset), POS_NAMES[synset.pos()]
        fields = {"lemma": names[0], "others": names[1:3], "lemmas": names, "pos": pos}
        return self.choice.render(fields, gloss=gloss_of(synset))


def generate(generator: Generator, rows_wanted: int | None, folder: Path) -> dict[str, Any]:
    """Write a probe's rows, whole concepts until ``rows_wanted``; return rows and seconds."""
    asked = generator.concepts()  # a fixed cost, not timed: it must not be extrapolated
    start, rows, done = time.perf_counter(), 0, 0
    schema = arrow_schema()
    waiting: dict[str, list[dict[str, Any]]] = {split: [] for split in SPLITS}
    folder.mkdir(parents=True)
    paths = {split: folder / f"{split}.parquet" for split in SPLITS}
    writers = {s: pq.ParquetWriter(path, schema, compression="zstd") for s, path in paths.items()}
    for concept in asked:
        if rows_wanted is not None and rows >= rows_wanted:
            break
        done += 1
        for row in generator.rows(concept):
            rows += 1
            split = row.pop("split")
            waiting[split].append(row)
            if len(waiting[split]) == CHUNK:
                writers[split].write_table(pa.Table.from_pylist(waiting.pop(split), schema))
                waiting[split] = []
    for split, writer in writers.items():
        writer.write_table(pa.Table.from_pylist(waiting[split], schema))
        writer.close()
    return {"rows": rows, "concepts": done, "seconds": time.perf_counter() - start}
