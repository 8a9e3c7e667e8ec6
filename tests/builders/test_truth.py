"""Every row of full builds is true, by what NLTK's own WordNet objects say.

Nothing here looks at the graphs or tables that the builders walked. The data files are read back
as they were written, names are looked up in NLTK, and every row is checked; none is sampled.
Rows that state the same fact (the same concept, gold and distractor) share one look at NLTK.
"""

from __future__ import annotations

import pickle
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.conftest import Make
from tests.real_data import nltk_data

pytestmark = pytest.mark.real_data
BUILDS = [
    pytest.param((f"wordnet_{name}", kind), marks=pytest.mark.slow, id=f"wordnet_{name} {kind}")
    for name in ("definitions", "hypernymy", "hyponymy", "synonymy")
    for kind in ("default", "published", *["unmatched"] * (name == "hyponymy"))
]
POS_NAMES = {"n": "noun", "v": "verb", "a": "adjective", "s": "adjective", "r": "adverb"}

Ints = npt.NDArray[np.int64]
LEVELS = {"sibling": 1, "cousin": 2, "second_cousin": 3}


# What NLTK says


@dataclass
class Oracle:
    """What NLTK says of every synset, as plain Python values by the synset's number.

    ``parents`` are hypernyms and instance hypernyms, ``class_parents`` hypernyms alone, and
    ``heads`` the parents or, for an adjective satellite, the adjective that heads its cluster.
    ``files`` are the lexicographer files.
    """

    names: list[str] = field(default_factory=list)
    pos: list[str] = field(default_factory=list)
    definitions: list[str] = field(default_factory=list)
    examples: list[frozenset[str]] = field(default_factory=list)
    lemmas: list[list[str]] = field(default_factory=list)
    lower_lemmas: list[frozenset[str]] = field(default_factory=list)
    parents: list[frozenset[int]] = field(default_factory=list)
    class_parents: list[frozenset[int]] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    heads: list[frozenset[int]] = field(default_factory=list)

    number: dict[str, int] = field(default_factory=dict)
    called: dict[str, set[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # Shortest distances to all that stands above a synset, itself (0) included.
        self.above = lru_cache(maxsize=None)(lambda node: distances(self.parents, node))
        self.above_in_class = lru_cache(maxsize=None)(
            lambda node: distances(self.class_parents, node)
        )
        self.above_in_level = lru_cache(maxsize=None)(lambda node: distances(self.heads, node))

    @classmethod
    def of(cls, synsets: Sequence[Any]) -> Oracle:
        """Ask NLTK everything once."""
        oracle = cls()
        oracle.number = {synset.name(): i for i, synset in enumerate(synsets)}

        def numbers(related: Sequence[Any]) -> frozenset[int]:
            return frozenset(oracle.number[synset.name()] for synset in related)

        for synset in synsets:
            oracle.names.append(synset.name())
            oracle.pos.append(POS_NAMES[synset.pos()])
            oracle.definitions.append(synset.definition())
            oracle.examples.append(frozenset(synset.examples()))
            oracle.lemmas.append([name.replace("_", " ") for name in synset.lemma_names()])
            oracle.lower_lemmas.append(frozenset(name.lower() for name in synset.lemma_names()))
            classes = numbers(synset.hypernyms())
            parents = classes | numbers(synset.instance_hypernyms())
            heads = numbers(synset.similar_tos()) if synset.pos() == "s" else frozenset()
            oracle.class_parents.append(classes)
            oracle.files.append(synset.lexname())
            oracle.parents.append(parents)
            oracle.heads.append(parents | heads)
        for node, words in enumerate(oracle.lower_lemmas):
            for word in words:
                oracle.called.setdefault(word, set()).add(node)
        return oracle

    def up(self, node: int, edges: int) -> frozenset[int]:
        """What stands at the end of some path of ``edges`` edges up: parents, grandparents."""
        level = frozenset([node])
        for _ in range(edges):
            level = frozenset(parent for one in level for parent in self.heads[one])
        return level

    def share_a_word(self, node: int, other: int) -> bool:
        """Whether two synsets share a lemma in any case."""
        return not self.lower_lemmas[node].isdisjoint(self.lower_lemmas[other])

    def look_alike(self, node: int, other: int) -> bool:
        """Whether two synsets are one, share a lemma in any case, or have the same gloss."""
        return (
            node == other
            or self.share_a_word(node, other)
            or self.definitions[node] == self.definitions[other]
        )

    def namesakes(self, node: int) -> set[int]:
        """All synsets that share a lemma with one, itself included."""
        return {other for word in self.lower_lemmas[node] for other in self.called[word]}

    def adjacent(self, node: int, other: int) -> bool:
        """Whether one of two synsets is right above the other."""
        return node in self.parents[other] or other in self.parents[node]


def distances(parents: list[frozenset[int]], node: int) -> dict[int, int]:
    """Breadth-first walk up; it ends in WordNet's cycles too."""
    found = {node: 0}
    frontier = {node}
    while frontier:
        frontier = {parent for one in frontier for parent in parents[one]} - found.keys()
        found.update(dict.fromkeys(frontier, max(found.values()) + 1))
    return found


@contextmanager
def wordnet_of_nltk() -> Iterator[Any]:
    """NLTK's reader of WordNet 3.0; skips the test where it is not here."""
    import nltk
    from nltk.corpus import LazyCorpusLoader
    from nltk.corpus.reader import WordNetCorpusReader

    found = nltk_data()
    # NLTK refuses to read outside of the folders that it knows.
    saved = list(nltk.data.path)
    nltk.data.path[:] = [str(found)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about translations, which are not here
        yield LazyCorpusLoader("wordnet", WordNetCorpusReader, None)
    nltk.data.path[:] = saved


@pytest.fixture(scope="module")
def oracle(shared: Callable[[str, Make], Path]) -> Oracle:
    """What NLTK says, read once for all processes: its objects take half a minute."""

    def make(folder: Path) -> None:
        folder.mkdir()
        with wordnet_of_nltk() as reader:
            oracle = Oracle.of([synset for pos in "nvar" for synset in reader.all_synsets(pos)])
        columns = {column.name: getattr(oracle, column.name) for column in fields(oracle)}
        (folder / "columns").write_bytes(pickle.dumps(columns))

    return Oracle(**pickle.loads((shared("NLTK's WordNet", make) / "columns").read_bytes()))


# The rows of a build


@dataclass(frozen=True)
class Coded:
    """A column as codes (of each row, or of each row and choice) and the texts they stand for."""

    codes: Ints
    texts: list[str]

    def numbers(self, oracle: Oracle) -> Ints:
        """The synset numbers of a column of names; an unknown name raises KeyError."""
        return np.array([oracle.number[text] for text in self.texts], dtype=np.int64)[self.codes]


@dataclass(frozen=True)
class Rows:
    """All rows of a build; the lists have K entries a row, in the order shown."""

    probe: str
    kind: str
    relation: str
    table: pa.Table
    answer: Ints
    hops: Ints
    concept: Ints
    nodes: Ints
    gold: Ints
    texts: Coded
    distractors: npt.NDArray[np.bool_]

    @property
    def published(self) -> bool:
        return self.kind == "published"

    def ints(self, name: str) -> Ints:
        column = self.table[name].combine_chunks()
        if pa.types.is_list(column.type):
            return np.asarray(column.values).astype(np.int64).reshape(len(self.table), -1)
        return np.asarray(column).astype(np.int64)

    def coded(self, name: str) -> Coded:
        return coded(self.table[name].combine_chunks())

    def cells(self, *columns: Ints) -> tuple[Ints, ...]:
        """The values of each distractor's cell: columns of rows are repeated for each of them."""
        wide = [
            np.broadcast_to(c if c.ndim == 2 else c[:, None], self.nodes.shape) for c in columns
        ]
        return tuple(column[self.distractors] for column in wide)


def coded(column: Any) -> Coded:
    rows = len(column)
    values = column.values if pa.types.is_list(column.type) else column
    if not pa.types.is_dictionary(values.type):
        values = values.dictionary_encode()
    codes = np.asarray(values.indices).astype(np.int64)
    shaped = codes.reshape(rows, -1) if pa.types.is_list(column.type) else codes
    return Coded(shaped, values.dictionary.to_pylist())


@pytest.fixture(scope="module", params=BUILDS)
def rows(request: pytest.FixtureRequest, built: Callable[..., Path], oracle: Oracle) -> Rows:
    probe, kind = request.param
    files = sorted((built(probe, kind) / "data").glob("*.parquet"))
    table = pa.concat_tables(pq.read_table(file) for file in files)
    nodes = coded(table["choice_nodes"].combine_chunks()).numbers(oracle)
    answer = np.asarray(table["answer"]).astype(np.int64)
    line = np.arange(len(table))
    distractors = np.ones(nodes.shape, dtype=np.bool_)
    distractors[line, answer] = False
    return Rows(
        probe,
        kind,
        probe.removeprefix("wordnet_"),
        table,
        answer,
        np.asarray(table["hops"]).astype(np.int64),
        coded(table["concept"].combine_chunks()).numbers(oracle),
        nodes,
        nodes[line, answer],
        coded(table["choices"].combine_chunks().field("text")),
        distractors,
    )


def distinct(*columns: Ints) -> Iterator[tuple[int, ...]]:
    """The distinct combinations of parallel columns of small integers."""
    shape = [int(column.max(initial=0)) + 1 for column in columns]
    keys = np.sort(np.ravel_multi_index(columns, shape))
    keys = keys[np.concatenate([[True], keys[1:] != keys[:-1]])] if keys.size else keys
    return zip(*(part.tolist() for part in np.unravel_index(keys, shape)), strict=True)


def none_of(oracle: Oracle, found: Iterator[tuple[int, ...]], what: str) -> None:
    """Fail with the names of the first few combinations found, synset numbers first."""
    first = [next(found, None) for _ in range(5)]
    wrong = [combination for combination in first if combination]
    shown = [tuple(oracle.names[node] for node in one[:3]) + one[3:] for one in wrong]
    assert not wrong, f"{what}: {shown}"


# The tests


def test_golds_are_true(rows: Rows, oracle: Oracle) -> None:
    """The gold stands exactly ``hops`` edges above or below the concept, or is the concept."""

    def is_true(concept: int, gold: int, hops: int) -> bool:
        if rows.relation == "hypernymy":
            return oracle.above_in_class(concept).get(gold) == hops > 0
        if rows.relation == "hyponymy":
            return oracle.above_in_class(gold).get(concept) == hops > 0
        return concept == gold and hops == 0

    asked = distinct(rows.concept, rows.gold, rows.hops)
    wrong = ((c, g, g, h) for c, g, h in asked if not is_true(c, g, h))
    none_of(oracle, wrong, "(concept, gold, gold, hops) is not true")


def test_no_distractor_is_true_or_looks_like_gold_or_concept(rows: Rows, oracle: Oracle) -> None:
    """In the builds of today, it is not true of another sense of the word either."""

    def is_true(concept: int, gold: int, node: int) -> bool:
        senses = {concept} if rows.published else oracle.namesakes(concept)
        # In matched groups, what is true of another sense of a noun, of another kind, is wrong.
        if oracle.pos[concept] == "noun":
            senses = {sense for sense in senses if oracle.files[sense] == oracle.files[concept]}
        match rows.relation:
            case "hypernymy":
                return any(node in oracle.above(sense) for sense in senses)
            case "hyponymy":
                return not senses.isdisjoint(oracle.above(node))
            case "definitions":
                # Other senses of the word are wrong: the sentence tells which of them is meant.
                same = oracle.definitions[node] == oracle.definitions[gold]
                return node == gold or same or oracle.adjacent(node, gold)
        return oracle.adjacent(node, gold)

    def looks_alike(concept: int, gold: int, node: int) -> bool:
        if rows.relation == "definitions":
            return False
        return oracle.look_alike(node, gold) or oracle.look_alike(node, concept)

    cells = distinct(*rows.cells(rows.concept, rows.gold, rows.nodes))
    wrong = (cell for cell in cells if is_true(*cell) or looks_alike(*cell))
    none_of(oracle, wrong, "(concept, gold, distractor) could be taken for right")


def test_whoever_sees_the_choices_alone_is_right_by_chance(rows: Rows) -> None:
    """Each choice is the gold as often as each other one, wherever they are shown together."""
    if rows.published:
        return
    together: dict[tuple[int, ...], Counter[int]] = {}
    for nodes, gold in zip(np.sort(rows.nodes, axis=1).tolist(), rows.gold.tolist(), strict=True):
        together.setdefault(tuple(nodes), Counter())[gold] += 1
    for nodes, golds in together.items():
        assert set(golds) == set(nodes)
        assert len(set(golds.values())) == 1


def test_no_question_is_asked_twice_with_the_same_choices(rows: Rows) -> None:
    if rows.published:
        return
    question = rows.coded("question").codes.tolist()
    asked = zip(question, rows.gold.tolist(), np.sort(rows.nodes, axis=1).tolist(), strict=True)
    counted = Counter((question, gold, *nodes) for question, gold, nodes in asked)
    assert max(counted.values()) == 1


def test_no_choice_repeats_within_a_row(rows: Rows) -> None:
    for values in (rows.nodes, rows.texts.codes):
        ordered = np.sort(values, axis=1)
        assert not (ordered[:, 1:] == ordered[:, :-1]).any()
    folded = [text.casefold() for text in rows.texts.texts]
    number = {text: i for i, text in enumerate(dict.fromkeys(folded))}
    ordered = np.sort(np.array([number[text] for text in folded])[rows.texts.codes], axis=1)
    same = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
    assert not same.any(), rows.table.filter(pa.array(same)).slice(0, 2).to_pylist()


def test_families_and_distances_are_what_they_say(rows: Rows, oracle: Oracle) -> None:
    """Each distractor stands where its family and distance k' put it."""
    family, distance = rows.coded("choice_families"), rows.ints("choice_hops")
    # A row's gold says "gold" and its hops, a fill "random" and 0, the rest what the row says.
    named = np.array(family.texts)[family.codes]
    of_row = rows.table["distractor_family"].to_numpy()[:, None]
    if "near" in of_row:
        # In matched groups, each choice has a kind of its own.
        within = (*LEVELS, "other_sense", "child", "parent", "sister")
        assert set(named[rows.distractors & (of_row == "near")]) <= {"near", *within}
        named = np.where(np.isin(named, within) & (of_row == "near"), "near", named)
    filled = rows.distractors & (named != of_row)
    assert ((named == "gold") == ~rows.distractors).all()
    assert (distance[~rows.distractors] == rows.hops).all()
    assert (named[filled] == "random").all()
    assert (distance[named == "random"] == 0).all()
    stays = rows.distractors & ~filled
    expected = np.broadcast_to(rows.ints("distractor_hops")[:, None], stays.shape)
    assert (distance[stays] == expected[stays]).all()
    if not rows.published:
        # Where a word has too few senses, those of other words fill up the choices.
        assert (of_row.repeat(filled.shape[1], axis=1)[filled] == "same_word").all()

    def stands(concept: int, gold: int, node: int, hops: int, name: str, reach: int) -> bool:
        match name:
            case "random":
                return oracle.pos[node] == oracle.pos[gold]
            case "same_word":
                return reach == 0 and oracle.share_a_word(gold, node)
            case "sibling" | "cousin" | "second_cousin":
                # In matched groups the distance is that of the row, 0.
                assert reach in (0, LEVELS[name])
                shared = oracle.up(gold, LEVELS[name]) & oracle.up(node, LEVELS[name])
                return bool(shared) and (not reach or oracle.files[gold] == oracle.files[node])
            case "other_sense" | "child" | "parent":
                return reach == 0
            case "field":
                assert reach == 0
                if rows.relation == "hyponymy":  # golds of concepts of one file
                    above = oracle.above_in_class(node).keys() - {node}
                    return oracle.files[concept] in {oracle.files[one] for one in above}
                return oracle.files[gold] == oracle.files[node] and oracle.pos[gold] in (
                    "noun",
                    "verb",
                )
            case "near":
                return reach == 0 and oracle.pos[node] == oracle.pos[gold]
            case "quality":
                assert reach == 0
                return oracle.pos[node] == oracle.pos[gold] in ("adjective", "adverb")
            case "sister" if not reach:
                return bool(oracle.up(concept, 1) & oracle.up(node, 1))
            case "sister":
                above = oracle.above_in_level(node)
                in_own_branch = above.get(concept, reach + 1) <= reach
                below_a_parent = any(above.get(top) == reach for top in oracle.heads[concept])
                return below_a_parent and not in_own_branch
            case "hyponym":
                return oracle.above(node).get(concept) == reach
            case "hypernym":
                return oracle.above(concept).get(node) == reach
            case "sibling_branch" | "cousin_branch" | "second_cousin_branch":
                assert reach == LEVELS[name.removesuffix("_branch")]
                return bool(branches(oracle, concept, node, hops, reach))
        pytest.fail(f"no test knows the family {name!r}")

    cells = rows.cells(rows.concept, rows.gold, rows.nodes, rows.hops, family.codes, distance)
    wrong = (
        (concept, gold, node, hops, code, reach)
        for concept, gold, node, hops, code, reach in distinct(*cells)
        if not stands(concept, gold, node, hops, family.texts[code], reach)
    )
    none_of(oracle, wrong, f"(concept, gold, distractor, hops, family of {family.texts}, k')")


def branches(oracle: Oracle, concept: int, node: int, hops: int, reach: int) -> frozenset[int]:
    """The siblings (reach 1) or cousins (2, 3) of the concept that stand ``hops`` above a node."""
    tops = oracle.up(concept, reach)
    above = oracle.above_in_class(node)
    return frozenset(
        branch
        for branch, distance in above.items()
        if distance == hops and branch != concept and not tops.isdisjoint(oracle.up(branch, reach))
    )


@pytest.mark.slow
def test_at_most_one_distractor_hangs_on_each_branch(
    built: Callable[..., Path], oracle: Oracle
) -> None:
    """In hyponymy's level families, as the gold hangs alone on its branch."""
    folder = built("wordnet_hyponymy", "unmatched") / "data"
    table = pq.read_table(folder, columns=["concept", "hops", "answer", "choice_nodes",
                                           "distractor_family", "distractor_hops"])  # fmt: skip
    looked_at = 0
    for row in table.to_pylist():
        if not row["distractor_family"].endswith("_branch"):
            continue
        looked_at += 1
        concept = oracle.number[row["concept"]]
        hangs_on = [
            branches(oracle, concept, oracle.number[name], row["hops"], row["distractor_hops"])
            for at, name in enumerate(row["choice_nodes"])
            if at != row["answer"]
        ]
        assert can_differ(hangs_on), row
    assert looked_at > 500


def can_differ(sets: Sequence[frozenset[int]], taken: frozenset[int] = frozenset()) -> bool:
    """Whether one member can be picked from each set, all different."""
    if not sets:
        return True
    return any(can_differ(sets[1:], taken | {one}) for one in sets[0] - taken)


def test_stems_show_an_example_that_holds_the_word_or_the_gloss(rows: Rows, oracle: Oracle) -> None:
    context, word = rows.coded("context"), rows.coded("surface_form")
    if rows.relation == "synonymy":
        assert context.texts == word.texts == [""]
        check_that_stems_show_the_gloss(rows, oracle)
        return
    for concept, sentence, form in distinct(rows.concept, context.codes, word.codes):
        text, surface = context.texts[sentence], word.texts[form]
        whole = (example for example in oracle.examples[concept] if example.startswith(text))
        assert any(not example[len(text) :].strip(" .,;:") for example in whole), text
        assert surface
        assert re.search(rf"(?<!\w){re.escape(surface)}(?!\w)", text), (surface, text)
    stem = rows.coded("question")
    for question, sentence, form in distinct(stem.codes, context.codes, word.codes):
        assert context.texts[sentence] in stem.texts[question]
        assert word.texts[form] in stem.texts[question]


def test_triples_make_the_gold_true(rows: Rows, oracle: Oracle) -> None:
    if rows.relation in ("hypernymy", "hyponymy"):
        check_that_triples_lead_from_concept_to_gold(rows, oracle)
    else:
        check_that_triples_are_texts_of_the_concept(rows, oracle)


def check_that_stems_show_the_gloss(rows: Rows, oracle: Oracle) -> None:
    stem = rows.coded("question")
    arguments = rows.table["arguments"].combine_chunks().values
    assert arguments.field("name").unique().to_pylist() == ["gloss"]
    gloss = coded(arguments.field("value"))
    for question, concept, shown in distinct(stem.codes, rows.concept, gloss.codes):
        assert gloss.texts[shown] in stem.texts[question]
        assert is_cut_from(gloss.texts[shown], oracle.definitions[concept])


def check_that_triples_lead_from_concept_to_gold(rows: Rows, oracle: Oracle) -> None:
    lists = rows.table["triples"].combine_chunks()
    offsets = np.asarray(lists.offsets)
    start = coded(lists.values.field("subject")).numbers(oracle)
    end = coded(lists.values.field("object")).numbers(oracle)
    assert (np.diff(offsets) == rows.hops).all()
    assert (start[offsets[:-1]] == rows.concept).all()
    assert (end[offsets[1:] - 1] == rows.gold).all()
    inside = np.ones(start.size, dtype=np.bool_)
    inside[offsets[:-1]] = False
    assert (start[inside] == end[np.flatnonzero(inside) - 1]).all()
    assert lists.values.field("relation").unique().to_pylist() == [rows.relation[:-1]]
    for one, other in distinct(start, end):
        lower, upper = (one, other) if rows.relation == "hypernymy" else (other, one)
        assert upper in oracle.class_parents[lower], (oracle.names[one], oracle.names[other])


def check_that_triples_are_texts_of_the_concept(rows: Rows, oracle: Oracle) -> None:
    lists = rows.table["triples"].combine_chunks()
    owner = np.repeat(rows.concept, np.diff(np.asarray(lists.offsets)))
    assert (coded(lists.values.field("subject")).numbers(oracle) == owner).all()
    relation, text = (coded(lists.values.field(part)) for part in ("relation", "object"))
    stated: dict[int, list[str]] = {}
    for concept, kind, words in distinct(owner, relation.codes, text.codes):
        if relation.texts[kind] == "definition":
            assert text.texts[words] == oracle.definitions[concept]
        else:
            assert relation.texts[kind] == "lemma"
            stated.setdefault(concept, []).append(text.texts[words])
    if rows.relation == "synonymy":
        assert stated.keys() == set(rows.concept.tolist())
        for concept, lemmas in stated.items():
            assert sorted(lemmas) == sorted(set(oracle.lemmas[concept]))


def test_choices_show_the_lemmas_and_glosses_of_their_nodes(rows: Rows, oracle: Oracle) -> None:
    shortened = 0
    texts: dict[int, set[str]] = {}
    for node, code in distinct(rows.nodes.ravel(), rows.texts.codes.ravel()):
        text, lemmas = rows.texts.texts[code], oracle.lemmas[node]
        texts.setdefault(node, set()).add(text)
        if rows.relation == "synonymy":
            assert text == ", ".join(lemmas)
            continue
        gloss = text
        if rows.relation != "definitions":
            names = f"{lemmas[0]} (or {' or '.join(lemmas[1:3])})" if lemmas[1:] else lemmas[0]
            to = "to " if oracle.pos[node] == "verb" else ""
            if rows.relation == "hyponymy":
                assert text == f"{to}{names}"
                continue
            before = f"{to}{names}, defined as "
            assert text.startswith(before)
            gloss = text.removeprefix(before)[1:-1]
        assert is_cut_from(gloss, oracle.definitions[node]), (gloss, oracle.definitions[node])
        shortened += gloss != oracle.definitions[node]
    # Remains of examples are cut from three in a hundred of WordNet's glosses.
    assert shortened <= len(texts) / 20
    assert all(len(shown) == 1 for shown in texts.values())


def is_cut_from(shown: str, whole: str) -> bool:
    """Whether ``shown`` is a text of some words that remains when parts of ``whole`` are cut."""
    letters = iter(whole)
    return bool(shown.strip()) and (shown == whole or all(letter in letters for letter in shown))


def test_part_of_speech_is_the_concepts(rows: Rows, oracle: Oracle) -> None:
    pos = rows.coded("pos")
    for concept, code in distinct(rows.concept, pos.codes):
        assert pos.texts[code] == oracle.pos[concept]
    if rows.relation == "definitions":
        assert set(pos.texts) == set(POS_NAMES.values())


# The ruler itself


def test_the_oracle_knows_true_from_false(oracle: Oracle) -> None:
    """A checker that finds nothing wrong is worth no more than what it can find."""
    number = oracle.number
    dog, animal, canine = (number[name] for name in ("dog.n.01", "animal.n.01", "canine.n.02"))
    assert oracle.above(dog)[canine] == 1
    assert oracle.above(dog)[animal] == 2  # by way of domestic_animal.n.01
    assert dog not in oracle.above(animal)
    assert oracle.above(number["restrain.v.01"])[number["inhibit.v.04"]] == 1
    assert oracle.above(number["inhibit.v.04"])[number["restrain.v.01"]] == 1
    assert oracle.above_in_class(number["einstein.n.01"]) == {number["einstein.n.01"]: 0}
    assert oracle.look_alike(dog, number["cad.n.01"])  # also called "dog"
    assert not oracle.look_alike(dog, canine)
    assert not is_cut_from("a dog's bark", "the bark of a dog")
    assert not can_differ([frozenset({1}), frozenset({1})])
    assert can_differ([frozenset({1, 2}), frozenset({1})])
