"""The senses of words that may be asked about: how common each is, and reasons to exclude it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from builders.english.inflection import is_plural
from builders.english.nouns import Nouns
from builders.english.screen import (
    OFFENSIVE,
    in_usage_domains,
    offensive_senses,
    offensive_words,
    whole_words,
)
from builders.english.word_lists import word_list
from builders.judged.model import judged_model
from builders.wordnet.synsets import known_synsets
from kb_cache.frequency import zipf_frequencies
from kb_cache.wordnet.types import WordNet
from kbprobe.arrays import Bools, Floats, Ints, mask_at
from kbprobe.columns import codes, mask, single_chunk, to_numpy

KINDS = ("noun", "verb", "adjective", "adjective", "adverb")
"""Names of parts of speech, by the codes of ``WordNet.pos_codes``."""

ADJECTIVE = KINDS.index("adjective")

_WORD = "^[a-z]{3,}$"
_UNUSUAL = (
    *("slang.n.02", "archaism.n.01", "dialect.n.01", "plural.n.01", "superlative.n.01"),
    *("combining_form.n.01", "abbreviation.n.01", "trade_name.n.01", "trademark.n.02"),
)
"""Usage domains whose senses are not asked about."""

_NOTABLE = 0.2
"""Share of a word's uses from which an offensive sense excludes the word in all its senses."""

UNTAGGED_SHARE = 0.6
"""Minimum share of a word's uses for a sense that occurs in no tagged text."""

_INCOMPLETE = ("able", "due", "like", "other", "same", "unable", "unlike", "worth")
"""Adjectives that are incomplete without a complement."""

_SINGLE_THINGS = ("noun.animal", "noun.event", "noun.location")
"""Kinds of nouns that take an article even if their plural is not in use (*a demise*)."""

_NOT_ASKED = ("noun.body", "noun.quantity")
"""Kinds of nouns that do not work in questions: "it was a dozen"."""

_MATTERS = frozenset(
    f"noun.{kind}"
    for kind in (
        "act", "attribute", "cognition", "event", "feeling", "motive", "phenomenon", "possession",
        "process", "relation", "state",
    )
)  # fmt: skip
"""Kinds of uncountable nouns that fit after "a matter of": it was a matter of courage."""

_KNOWN = 3.0
"""Minimum frequency (Zipf) of a countable noun that fits after "a matter of" nevertheless."""

_STUFF = ("noun.food", "noun.substance", "noun.time")
"""Kinds of nouns that are used without an article: it was brine; it was daytime."""

_INNER = ("feeling.n.01", "trait.n.01", "emotional_state.n.01", "intelligence.n.01")
_SAID_OF_PEOPLE = r"(?i)^\(?(?:used )?(?:especially )?(?:of|by) (?:a )?(?:person|people)"
"""Nouns from which adjectives describing people are derived, and how glosses mark such
adjectives."""

_NO_OPPOSITES = ("cardinal.a.02", "ordinal.a.02", "chromatic.a.03", "achromatic.a.01")
"""Heads of groups of numbers and colours, which have no opposites (*auburn*)."""

_AMERICAN = re.compile("is(?:e|ed|er|ing|able|ation)$|yse$|our")
"""Spellings that differ in American English."""

_OBJECTS: Mapping[int, str] = {1: "thing", 2: "", 8: "it", 9: "them"}
"""WordNet's frame -> the object that completes "she was going to VERB"; "thing" means that the
subject is a thing ("it was going to expand")."""

_PREFERRED = ("", "it", "them", "thing")


@dataclass(frozen=True)
class SenseColumns:
    """WordNet's senses as columns.

    Attributes:
        lemma: the word.
        synset: its synset.
        kind: the part of speech, see `KINDS`.
        share: the share of the word's uses as that part of speech that have this sense.
        used_as: the share of the word's uses in which it is that part of speech.
        zipf: the word's frequency; 0 unless it is a single word of a part of speech asked about.
        defect: the reason not to ask about it; empty for most.
        doubtful: whether it looks like a participle that tagged texts hardly use as an adjective,
            or is one of several senses that do not occur in tagged texts, and not the most likely
            one.
        members: synset -> those of its senses that are one word each.
        first: (word, part of speech) -> its commonest sense.
    """

    wordnet: WordNet
    lemma: Sequence[str]
    synset: Ints
    kind: Sequence[str]
    share: Floats
    used_as: Floats
    zipf: Floats
    defect: Sequence[str]
    doubtful: Bools
    members: Mapping[int, Sequence[int]]
    first: Mapping[tuple[str, str], int]

    @classmethod
    def of(
        cls,
        wordnet: WordNet,
        pos: Sequence[str],
        min_zipf: float,
        tokenizer: str = "",
        screen: bool = True,
        stiff: Mapping[str, Collection[str]] = MappingProxyType({}),
    ) -> SenseColumns:
        """Read and check every sense.

        Args:
            wordnet: the source of the senses.
            pos: the parts of speech asked about.
            min_zipf: minimum frequency of a word.
            tokenizer: id or folder of a tokenizer that must keep each word whole; "" for none.
            screen: whether offensive words and senses have a defect.
            stiff: part of speech -> words that have a defect as such.

        Raises:
            MissingDependencyError: transformers, for ``tokenizer``, is not installed.
            UsageError: the tokenizer cannot be loaded.
        """
        column = single_chunk(wordnet.senses["lemma"])
        lemma: list[str] = column.to_pylist()
        synset = wordnet.sense_synset
        # Adjectives and satellites count as one part of speech.
        code = np.array(list(map(KINDS.index, KINDS)))[wordnet.pos_codes[synset]]
        share, used_as = _shares(wordnet, pc.utf8_lower(column), code)
        wanted = np.isin(code, [KINDS.index(name) for name in pos])
        rows = np.flatnonzero(mask(pc.match_substring_regex(column, _WORD)) & wanted)
        zipf = np.zeros(len(lemma))
        zipf[rows] = zipf_frequencies([lemma[row] for row in rows.tolist()])
        kind = [KINDS[number] for number in code.tolist()]
        members: dict[int, list[int]] = defaultdict(list)
        for row, owner in zip(rows.tolist(), synset[rows].tolist(), strict=True):
            members[owner].append(row)
        firsts = rows[to_numpy(wordnet.senses["number"])[rows] == 1].tolist()
        first = {(lemma[row], kind[row]): row for row in firsts}
        defect = [""] * len(lemma)
        participle = mask(pc.match_substring_regex(column, "(?:ed|ing)$")) & (code == ADJECTIVE)
        count = to_numpy(wordnet.senses["count"])
        doubtful = (participle & (count < 2)) | ((count == 0) & (share < UNTAGGED_SHARE))
        senses = cls(
            wordnet, lemma, synset, kind, share, used_as, zipf, defect, doubtful, members, first
        )
        for reason, faulty in _defects(senses, rows, min_zipf, tokenizer, screen):
            for row in rows[faulty].tolist():
                defect[row] = defect[row] or reason
        for row in rows.tolist():
            if lemma[row] in stiff.get(kind[row], ()):
                defect[row] = defect[row] or "a word that is stilted in these sentences"
        return senses


def _shares(wordnet: WordNet, word: pa.Array, code: Ints) -> tuple[Floats, Floats]:
    """Return each sense's share of its word's uses, and that of its part of speech.

    WordNet's counts are sparse; where there are none, its order of senses is used.
    """
    entry = to_numpy(word.dictionary_encode().indices).astype(np.int64) * len(KINDS) + code
    use = to_numpy(wordnet.senses["count"]) + 1.0 / to_numpy(wordnet.senses["number"])
    as_kind = np.bincount(entry, weights=use)[entry]
    in_all = np.bincount(entry // len(KINDS), weights=use)[entry // len(KINDS)]
    return use / as_kind, as_kind / in_all


def _defects(
    senses: SenseColumns, rows: Ints, min_zipf: float, tokenizer: str, screen: bool
) -> Iterator[tuple[str, Bools]]:
    """Yield reasons not to ask about a sense, each with the mask of ``rows`` that it concerns."""
    wordnet, synset = senses.wordnet, senses.synset
    words = [senses.lemma[row] for row in rows.tolist()]
    yield f"a word rarer than Zipf {min_zipf:g}", senses.zipf[rows] < min_zipf
    if tokenizer:
        yield "a word that the tokenizer splits", ~whole_words(words, tokenizer)
    if screen:
        rude = offensive_senses(wordnet)
        notable = np.flatnonzero(rude[synset] & (senses.share >= _NOTABLE)).tolist()
        spoilt = {senses.lemma[row].lower() for row in notable} | word_list("coarse")
        yield (
            OFFENSIVE,
            rude[synset[rows]] | np.isin(words, sorted(spoilt)) | offensive_words(words),
        )
    yield (
        "a sense that is slang, archaic, a plural, a superlative ...",
        in_usage_domains(wordnet, _UNUSUAL)[synset[rows]],
    )
    odd = word_list("odd_words", "builders.antonyms")
    yield "a word that is odd in these sentences", np.isin(words, sorted(odd))
    yield "a word known in another sense", np.isin(words, sorted(word_list("unfamiliar_senses")))
    listed = set(zip(senses.lemma, senses.synset.tolist(), strict=True))
    american = [_AMERICAN.sub(_american, word) for word in words]
    spelled = zip(words, american, synset[rows].tolist(), strict=True)
    yield (
        "a British spelling, where WordNet has the American",
        np.array([word != new and (new, of) in listed for word, new, of in spelled], np.bool_),
    )
    attributive = _is_one_of(wordnet.senses["syntactic_marker"], ("(a)", "(ip)"))
    relational = _is_one_of(wordnet.synsets["lexname"], ("adj.pert",))
    yield (
        "a part of the body, or a quantity",
        _is_one_of(wordnet.synsets["lexname"], _NOT_ASKED)[synset[rows]],
    )
    single = np.zeros(len(wordnet), dtype=np.bool_)
    heads = known_synsets(wordnet, _NO_OPPOSITES)
    source, target = wordnet.edges("similar_to")
    single[source[np.isin(target, heads)]] = True
    single[heads] = True
    yield (
        "an adjective that does not follow a verb, or has no opposite (main, neural, ten, auburn)",
        attributive[rows] | (relational | single)[synset[rows]] | np.isin(words, _INCOMPLETE),
    )


def _american(ending: re.Match[str]) -> str:
    return {"our": "or", "yse": "yze"}.get(ending[0]) or "iz" + ending[0][2:]


def _is_one_of(column: pa.ChunkedArray, names: Sequence[str]) -> Bools:
    code, words = codes(column)
    return np.asarray(np.isin(words, names)[code])


class Carriers:
    """Finds the carrier sentence that fits two words; each word is looked up once."""

    def __init__(
        self, senses: SenseColumns, people: Collection[str] = (), things: Collection[str] = ()
    ) -> None:
        self._senses, self._people = senses, word_list("said_of_people").union(people)
        self._both = word_list("said_of_both").difference(things)
        self._nouns = {word for word, kind in senses.first if kind == "noun"}
        code, names = codes(senses.wordnet.synsets["lexname"])
        self._kind = [names[number] for number in code.tolist()]
        self._forms = Nouns(senses.wordnet, sorted(self._nouns))
        self._number: dict[str, str | None] = {}
        self._objects = _objects(senses.wordnet)
        self._of_people = _of_people(senses)

    def of(self, one: int, other: int) -> tuple[str, ...] | None:
        """Return the carrier of two senses (see `Pair`), or None if they fit in none."""
        kind = self._senses.kind[one]
        if kind == "noun":
            first, second = self._noun(one), self._noun(other)
            if {first, second} == {"counted", "matter"} and self._matters(one, other):
                first = second = "matter"  # For example "a matter of war" and "a matter of peace".
            # A noun with an article and one without ("a birth", "dying") rarely go together.
            return None if first is None or first != second else (kind, first)
        if kind == "verb":
            common = self._objects[one] & self._objects[other]
            return (kind, min(common, key=_PREFERRED.index)) if common else None
        subjects = self._subjects(one) & self._subjects(other)
        people = bool(self._of_people[one] and self._of_people[other])
        # If both fit, WordNet decides: is it said of people?
        if not subjects or (len(subjects) == 2 and not people):
            return (kind,) if subjects else None
        return (kind, "person") if "person" in subjects else (kind,)

    def _matters(self, *senses: int) -> bool:
        """Return whether all of the nouns are known well, and used without an article."""
        return all(
            self._kind[self._senses.synset[sense]] in _MATTERS
            and self._senses.zipf[sense] >= _KNOWN
            and self._forms.material(self._senses.lemma[sense]) == self._senses.lemma[sense]
            for sense in senses
        )

    def _subjects(self, sense: int) -> frozenset[str]:
        """Return what an adjective can describe: a person, a thing, or either."""
        word = self._senses.lemma[sense]
        if word in self._people:
            return frozenset({"person"})
        return frozenset({"person", "thing"} if word in self._both else {"thing"})

    def _noun(self, sense: int) -> str | None:
        """Return how a noun is used, or None if it is not asked about.

        That is "person"; "counted" for other nouns with an article; "matter" for nouns after "a
        matter of"; "" for substances and times.
        """
        noun, kind = self._senses.lemma[sense], self._kind[self._senses.synset[sense]]
        if noun not in self._number:
            counted = "counted" if self._forms.is_counted(noun) else ""
            plural = is_plural(noun) or (noun[-1] == "s" and noun[:-1] in self._nouns)
            self._number[noun] = None if plural else counted
        if self._number[noun] is None:
            return None
        if kind == "noun.person":
            return "person"
        if kind == "noun.Tops":
            return None  # "It was a person".
        if kind in _SINGLE_THINGS or self._number[noun]:
            return "counted"
        if noun.endswith("ing"):
            return None  # "It was waking", as if it were a verb.
        if kind in _MATTERS:
            return "matter"
        return "" if kind in _STUFF else None


def _objects(wordnet: WordNet) -> list[frozenset[str]]:
    """Return the objects of `_OBJECTS` that each sense can take."""
    found: list[set[str]] = [set() for _ in range(wordnet.senses.num_rows)]
    number = to_numpy(wordnet.frames["frame"])
    some = np.flatnonzero(np.isin(number, list(_OBJECTS)))
    synset = to_numpy(wordnet.frames["synset"])[some].tolist()
    sense = to_numpy(wordnet.frames["sense"])[some].tolist()
    start = wordnet.sense_start
    for frame, of, row in zip(number[some].tolist(), synset, sense, strict=True):
        for one in range(start[of], start[of + 1]) if row < 0 else (row,):
            found[one].add(_OBJECTS[frame])
    return [frozenset(objects) for objects in found]


def _of_people(senses: SenseColumns) -> Bools:
    """Mark adjectives that describe people: derived from nouns of feelings and traits, or by gloss.

    A similar adjective describes whatever its head describes.
    """
    wordnet = senses.wordnet
    kind, kinds = codes(wordnet.pointers["kind"])
    derived = kind == kinds.index("derivation")
    source, target = (
        to_numpy(single_chunk(wordnet.pointers[name]).filter(derived))
        for name in ("source", "target")
    )
    inner = known_synsets(wordnet, _INNER)
    below = wordnet.hyponyms.walk(inner).node
    told = mask_at(len(wordnet), source[np.isin(target, np.concatenate([inner, below]))])
    told |= mask(pc.match_substring_regex(wordnet.synsets["gloss"], _SAID_OF_PEOPLE))
    satellite, head = wordnet.edges("similar_to")
    told[satellite[told[head]]] = True
    return np.asarray(told[senses.synset])


LEAST_CHANCE = 0.7
"""Minimum probability that readers accept a pair of antonyms, for the full tier."""

LEAST_SHARE = 0.02
"""Lower bound of shares of senses: all smaller ones count as equally rare."""

FLAGS = {
    "doubtful_pair": "Antonyms that readers are likely to find arguable, according to a model of "
    "the pairs that they judged.",
    "comparative": "A word is a comparative or superlative: it was *smaller* than what?",
}
"""Reasons to keep a question out of the clean tier."""

_IRREGULAR = (
    "better", "best", "elder", "eldest", "farther", "further", "furthest", "inner", "latter",
    "least", "less", "lesser", "more", "most", "upper", "worse", "worst",
)  # fmt: skip


def antonym_features(
    senses: SenseColumns, paths: Sequence[Sequence[int]], relations: Sequence[Sequence[str]]
) -> Mapping[str, Floats]:
    """Return the features of each pair for the model of judged antonyms.

    Args:
        senses: all senses of WordNet.
        paths: for each pair, the path from the first word's sense to the second's (rows of
            ``WordNet.senses``).
        relations: the edges between them.
    """
    ends = [(path[0], path[-1]) for path in paths]
    kind = np.array([senses.kind[one] for one, _ in ends], dtype=np.str_)
    similar = np.array([edges.count("similar to") for edges in relations])
    least = np.array([min(senses.share[sense] for sense in path) for path in paths])
    doubtful = np.array([senses.doubtful[one] * 1 + senses.doubtful[two] for one, two in ends])
    return {
        "similar": (similar == 1) * 1.0,
        "similar_both": (similar == 2) * 1.0,
        "synonyms": np.array([float(edges.count("synonym")) for edges in relations]),
        "log_share": np.log(np.maximum(least, LEAST_SHARE)),
        "doubtful": doubtful * 1.0,
        "noun": (kind == "noun") * 1.0,
        "verb": (kind == "verb") * 1.0,
    }


def doubts(
    senses: SenseColumns, path: Sequence[int], antonym: bool, chance: float
) -> Iterator[str]:
    """Yield the flags of a path of senses (rows of ``WordNet.senses``).

    Args:
        senses: all senses of WordNet.
        path: from the first word's sense to the second's.
        antonym: whether it leads to an antonym.
        chance: the probability that readers accept it as such.
    """
    if antonym and chance < judged_model("antonym").thresholds["antonym_negation"]:
        yield "doubtful_pair"
    if any(
        senses.kind[end] == "adjective" and is_compared(senses.lemma[end], senses)
        for end in (path[0], path[-1])
    ):
        yield "comparative"


def is_compared(word: str, senses: SenseColumns) -> bool:
    """Return whether an adjective is the comparative or superlative of another."""
    if word in _IRREGULAR:
        return True
    for ending in ("er", "est"):
        if not word.endswith(ending):
            continue
        bare = word.removesuffix(ending)
        bases = [bare, bare + "e"]
        if bare[-2:-1] == bare[-1:]:
            bases.append(bare[:-1])
        if bare.endswith("i"):
            bases.append(bare[:-1] + "y")
        if any((base, "adjective") in senses.first for base in bases):
            return True
    return False
