"""Antonym and synonym pairs from WordNet and ConceptNet that a reader would accept as such.

In WordNet, both relations hold between single senses of words. A pair is only good if those senses
are common: nobody thinks of *straight* in the sense "honest" as the opposite of *corrupt*. Each
pair therefore has a *fit*. For antonyms, it is the probability that readers accept them, according
to a model fitted on pairs that they judged. For synonyms, it is the geometric mean of the shares
that the two senses have in the uses of their words (in WordNet's tagged texts).
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, combinations, product
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from builders.antonyms.options import AntonymOptions
from builders.antonyms.readings import WordReadings, readings, word_pairs
from builders.antonyms.senses import LEAST_CHANCE, Carriers, SenseColumns, antonym_features, doubts
from builders.engine.drops import DropLog
from builders.english.word_lists import word_groups
from builders.judged.model import judged_model
from builders.relations import common_beginning
from kb_cache.conceptnet.types import ConceptNet
from kb_cache.wordnet.types import POS, WordNet
from kbprobe.arrays import Bools
from kbprobe.columns import codes, mask, single_chunk, to_numpy

STEM = 6
"""Number of letters by which words are compared: *danger* also matches *dangerous*."""


def close_satellites(senses: SenseColumns) -> dict[int, list[int]]:
    """Return the close satellites (synsets) of each head synset that has antonyms.

    Args:
        senses: all senses of the WordNet in question.
    """
    wordnet = senses.wordnet
    kind, kinds = codes(wordnet.pointers["kind"])
    opposed = single_chunk(wordnet.pointers["source"]).filter(kind == kinds.index("antonym"))
    group: dict[int, list[int]] = defaultdict(list)
    for source, target in zip(*map(np.ndarray.tolist, wordnet.edges("similar_to")), strict=True):
        group[target].append(source)
    gloss = single_chunk(wordnet.synsets["gloss"])
    start = wordnet.sense_start

    def words(synset: int) -> set[str]:
        return {word[:STEM] for word in senses.lemma[start[synset] : start[synset + 1]]}

    def definition(synset: int) -> set[str]:
        said = re.sub('".*', "", gloss[synset].as_py().lower())
        return {word[:STEM] for word in re.findall("[a-z]+", said)}

    close: dict[int, list[int]] = {}
    for head in sorted(set(opposed.to_pylist()) & group.keys()):
        defined, of_head = definition(head), words(head)
        others = [(synset, words(synset)) for synset in group[head]]
        near = []
        for satellite, own in others:
            further = of_head.union(*(them for one, them in others if one != satellite)) - own
            if own & defined or further & definition(satellite):
                near.append(satellite)
        close[head] = near
    return close


SIMILAR_FIT, LEAST_SHARE = 0.45, 0.4
"""Minimum fit of synonyms linked through similar adjectives, and minimum share of either sense of
synonyms: one rare sense spoils a pair, however common the other is."""

SYNONYM_FIT, FIT_PER_ZIPF = 0.6, 0.1
OPPOSED_FIT, OPPOSED_SHARE = 0.35, 0.15
"""Minimum fit of synonyms: for words of Zipf 3, and lower for more frequent ones, which have more
senses and are common among antonyms but rare among synonyms; and minimum fit and share if a word
also has antonyms. Such words are the most useful, since they can be asked about with both answers,
and readers accept them nearly as often."""

LEAST_USE = 0.4
"""Minimum share of a word's uses with the part of speech asked about (*brave* is in principle also
a noun). Direct antonyms among adjectives are exempt: they are known as adjectives (*kind*,
*unkind*)."""

_ARGUABLE = "readers are likely to find them arguable"
_RARE = "in rare senses of the words alone"
_UNTAGGED = "a sense that is in no tagged text, or a participle rather than an adjective"
_SELDOM = "a word seldom used as that part of speech"
_DOUBTS = (_ARGUABLE, _RARE, _UNTAGGED, _SELDOM)
"""Reasons not to ask about a pair that a reader's judgement of it overrides."""

_KIND_OF = {"n": "noun", "v": "verb", "a": "adjective", "s": "adjective"}
"""ConceptNet's codes for parts of speech."""


Known = tuple[int, int]


class WordPair(NamedTuple):
    """Two words and the relation between them.

    Attributes:
        words: in alphabetical order.
        pos: "adjective", "noun" or "verb".
        antonym: whether they are antonyms rather than synonyms.
        fit: 0 to 1, see the module's description.
        carrier: the part of speech and whatever else the carrier sentence shows of the two words:
            ``("noun", "counted")`` where they have articles, ``("verb", "it")``.
        path: the knowledge base's names of the senses from the first word to the second.
        relations: the edges between them; one less.
        known: for `matching`, the number of senses and of synonyms of each word in WordNet.
        narrower: the word that is only similar to another adjective (*colossal*), if exactly one
            is; else "".
        doubts: the pair's flags (`doubts.FLAGS`), which keep it out of the clean tier.
    """

    words: tuple[str, str]
    pos: str
    antonym: bool
    fit: float
    carrier: tuple[str, ...]
    path: tuple[str, ...]
    relations: tuple[str, ...]
    known: tuple[Known, Known] = ((1, 1), (1, 1))
    narrower: str = ""
    doubts: tuple[str, ...] = ()


class _WordLink(NamedTuple):
    """A path between two senses (rows of ``WordNet.senses``), not tested yet."""

    senses: tuple[int, ...]
    relations: tuple[str, ...]
    names: tuple[str, ...] = ()
    """The edges of ConceptNet, if the link comes from there."""

    @property
    def antonym(self) -> bool:
        return "antonym" in self.relations

    @property
    def ends(self) -> tuple[int, int]:
        return self.senses[0], self.senses[-1]


class _Best(NamedTuple):
    """A sort key for the links of two words: larger is better."""

    sound: bool
    nearness: int
    fit: float
    link: _WordLink


_Key = tuple[bool, tuple[str, str], str]
"""Whether they are antonyms, the words in alphabetical order, and the part of speech."""


def sense_names(wordnet: WordNet) -> pa.Array:
    """Return the name of every sense, as NLTK names lemmas: ``hot.a.01.hot``."""
    synset = single_chunk(wordnet.synsets["name"]).take(single_chunk(wordnet.senses["synset"]))
    return pc.binary_join_element_wise(synset, single_chunk(wordnet.senses["lemma"]), ".")


def find_pairs(
    wordnet: WordNet, conceptnet: ConceptNet | None, options: AntonymOptions, dropped: DropLog
) -> list[WordPair]:
    """Find all pairs that can be asked about.

    Args:
        wordnet: the source of senses, parts of speech and most pairs.
        conceptnet: adds its Antonym and Synonym edges.
        options: what to ask about.
        dropped: counts the pairs of antonyms that are left out, by reason.

    Returns:
        The pairs, each two words once, antonyms first, sorted.

    Raises:
        MissingDependencyError: transformers, for ``--tokenizer``, is not installed.
        UsageError: the tokenizer cannot be loaded.
    """
    judged = readings() if options.judged else WordReadings()
    senses = SenseColumns.of(
        wordnet,
        options.asked_pos,
        options.min_zipf,
        options.tokenizer,
        options.screen,
        judged.stiff,
    )
    links = _wordnet_links(senses, options.indirect)
    if conceptnet is not None:
        links = chain(links, _conceptnet_links(conceptnet, senses))
    best = _best_links(senses, links)
    chances = _chances(senses, best)
    labels = Counter(words for words, _ in {(words, antonym) for antonym, words, _ in best})
    names, carriers = sense_names(wordnet), Carriers(senses, judged.people, judged.things)
    entries = _entries(senses)
    groups = word_groups("odd_pairs", "builders.antonyms")
    odd = judged.arguable | word_pairs((one, others) for one, *others in groups)
    pairs: dict[tuple[str, str], WordPair] = {}
    opposed: set[str] = set()
    opposed_as: dict[str, set[str]] = defaultdict(set)
    # Antonyms first: which pairs of synonyms are accepted depends on them.
    for antonym, words, kind in sorted(best, key=lambda key: (not key[0], *key)):
        _, _, fit, link = best[antonym, words, kind]
        fit = chances.get((antonym, words, kind), fit)
        carrier = None
        why = _unsound(senses, link, fit, not opposed.isdisjoint(words))
        if frozenset(words) in judged.accepted[antonym]:
            fit, why = 1.0, "" if why in _DOUBTS else why
        if not why and not options.look_alikes and look_alike(*words):
            why = "the words look alike"
        if not why and frozenset(words) in odd:
            why = "a reader found the pair odd"
        if not why and labels[words] > 1:
            why = "antonyms in one sense, synonyms in another"
        if not why and options.judged and kind != "adjective" and not antonym:
            # Other nouns and verbs are not matched with antonyms, and nobody has read them.
            why = "" if opposed_as[kind] & set(words) else "no antonym of either word"
        if not why and words in pairs:
            why = "asked about as another part of speech"
        if not why and (carrier := carriers.of(*link.ends)) is None:
            why = "no sentence has room for both (plurals, verbs that need more than an object)"
        if carrier is None:
            if antonym:
                dropped[f"antonyms: {why}"] += 1
            continue
        if antonym:
            opposed.update(words)
            opposed_as[kind].update(words)
        path = link.names or tuple(names[sense].as_py() for sense in link.senses)
        similar = _satellites(senses, link)
        pairs[words] = WordPair(
            words,
            kind,
            antonym,
            fit,
            carrier,
            path,
            link.relations,
            known=(entries[words[0], kind], entries[words[1], kind]),
            narrower=similar[0] if len(similar) == 1 else "",
            doubts=tuple(doubts(senses, link.senses, antonym, fit)),
        )
    return list(pairs.values())


def _chances(senses: SenseColumns, best: Mapping[_Key, _Best]) -> dict[_Key, float]:
    """Return the probability that readers accept each pair of antonyms linked by WordNet."""
    keys = [key for key, found in best.items() if key[0] and not found.link.names]
    links = [best[key].link for key in keys]
    features = antonym_features(
        senses, [link.senses for link in links], [link.relations for link in links]
    )
    return dict(zip(keys, judged_model("antonym").chance(features).tolist(), strict=True))


def _satellites(senses: SenseColumns, link: _WordLink) -> list[str]:
    """Return the ends of a link that are reached through a similar adjective."""
    if "similar to" not in link.relations:
        return []
    ends = zip(link.ends, (link.relations[0], link.relations[-1]), strict=True)
    satellite = POS.index("s")
    return [
        senses.lemma[end]
        for end, relation in ends
        if relation == "similar to" and senses.wordnet.pos_codes[senses.synset[end]] == satellite
    ]


def _entries(senses: SenseColumns) -> dict[tuple[str, str], Known]:
    """Return `WordPair.known` of each word and part of speech."""
    count = Counter(senses.lemma)
    size = np.bincount(senses.synset)
    rows = sorted(chain.from_iterable(senses.members.values()), key=lambda row: -senses.share[row])
    entries: dict[tuple[str, str], Known] = {}
    for row in rows:
        word = senses.lemma[row]
        synonyms = int(size[senses.synset[row]])
        entries.setdefault((word, senses.kind[row]), (count[word], synonyms))
    return entries


def _best_links(senses: SenseColumns, links: Iterable[_WordLink]) -> dict[_Key, _Best]:
    """Choose one link for each two words: of sound senses, short, and with a good fit."""
    best: dict[_Key, _Best] = {}
    for link in links:
        one, other = link.ends
        if senses.lemma[one] == senses.lemma[other]:
            continue
        # ConceptNet's links are between words, so their senses are unknown.
        fit = 1.0 if link.names else math.sqrt(senses.share[one] * senses.share[other])
        if senses.lemma[one] > senses.lemma[other]:
            link = _WordLink(link.senses[::-1], link.relations[::-1], link.names[::-1])
            one, other = other, one
        sound = not (senses.defect[one] or senses.defect[other])
        found = _Best(sound, -len(link.relations), fit, link)
        key = link.antonym, (senses.lemma[one], senses.lemma[other]), senses.kind[one]
        if key not in best or found[:3] > best[key][:3]:
            best[key] = found
    return best


def _unsound(senses: SenseColumns, link: _WordLink, fit: float, opposed: bool) -> str:
    """Return why readers might not accept the words as synonyms or antonyms; "" if they would."""
    one, other = link.ends
    # A similar adjective has the antonyms of its head, provided that readers know it.
    for sense in link.senses if "similar to" in link.relations else link.ends:
        if senses.defect[sense]:
            return senses.defect[sense]
    stated = link.relations == ("antonym",)
    if link.antonym:
        if fit < LEAST_CHANCE:
            return _ARGUABLE
    elif not link.names:
        least = OPPOSED_SHARE if opposed and link.relations == ("synonym",) else LEAST_SHARE
        rare = min(senses.share[one], senses.share[other]) < least
        if rare or fit < _least_fit(min(senses.zipf[one], senses.zipf[other]), link, opposed):
            return _RARE
        if senses.doubtful[one] or senses.doubtful[other]:
            return _UNTAGGED
    known = stated and senses.kind[one] == "adjective"
    if not known and min(senses.used_as[one], senses.used_as[other]) < LEAST_USE:
        return _SELDOM
    return ""


def _least_fit(zipf: float, link: _WordLink, opposed: bool) -> float:
    """Return the minimum fit of synonyms; ``zipf`` is the rarer word's frequency."""
    if "similar to" in link.relations:
        return SIMILAR_FIT
    least = SYNONYM_FIT - FIT_PER_ZIPF * max(zipf - 3, 0)
    return min(least, OPPOSED_FIT) if opposed else least


def look_alike(one: str, other: str) -> bool:
    """Return whether two words share most of their letters, as derived words do.

    That is a common beginning of four letters, or of three and half of the shorter word; or a
    common stretch of at least four that is 60% or more of the shorter word, or the whole of it; or
    all but one letter, the first being the same. Antonyms of that kind (*happy*, *unhappy*) are
    recognizable by their prefix, synonyms (*comic*, *comical*; *mold*, *mould*) by their suffix or
    spelling.

    >>> look_alike("increase", "decrease"), look_alike("mold", "mould"), look_alike("hot", "cold")
    (True, True, False)
    """
    stretch, shorter = common_stretch(one, other), min(len(one), len(other))
    beginning = common_beginning(one, other)
    # The letters left between the common beginning and the common ending.
    ending = min(common_beginning(one[::-1], other[::-1]), shorter - beginning)
    return (
        beginning >= min(4, max(3, shorter / 2))
        or stretch >= min(shorter, max(4, 0.6 * shorter))
        or (beginning > 0 and max(len(one), len(other)) - beginning - ending == 1)
    )


def common_stretch(one: str, other: str) -> int:
    """Return the length of the longest run of letters that two words share."""
    longest = 0
    for start in range(len(one)):
        while start + longest < len(one) and one[start : start + longest + 1] in other:
            longest += 1
    return longest


def _wordnet_links(senses: SenseColumns, indirect: bool) -> Iterator[_WordLink]:
    """Yield synonyms (senses of one synset) and antonyms.

    According to WordNet, *rise* and *fall* are antonyms, and *ascend* is a synonym of *rise*: so
    *ascend* and *fall* are antonyms by two edges.
    """
    wordnet = senses.wordnet
    for members in senses.members.values():
        for pair in combinations(members, 2):
            yield _WordLink(pair, ("synonym",))
    satellites = {
        head: list(chain.from_iterable(senses.members.get(synset, ()) for synset in close))
        for head, close in (close_satellites(senses) if indirect else {}).items()
    }
    for head, close in satellites.items():
        for similar in product(close, senses.members.get(head, ())):
            yield _WordLink(similar, ("similar to",))
    kind, kinds = codes(wordnet.pointers["kind"])
    stated = np.flatnonzero(kind == kinds.index("antonym"))
    ends = (
        to_numpy(wordnet.pointers[name])[stated].tolist()
        for name in ("source", "source_sense", "target", "target_sense")
    )
    for source, one, target, other in zip(*ends, strict=True):
        rights = senses.members.get(target, ())
        for left in senses.members.get(source, ()):
            for right in rights:
                path = tuple(dict.fromkeys((left, one, other, right)))
                before, after = ("synonym",) * (left != one), ("synonym",) * (right != other)
                yield _WordLink(path, (*before, "antonym", *after))
        for left, right in product(satellites.get(source, ()), rights):
            path = tuple(dict.fromkeys((left, one, other, right)))
            yield _WordLink(path, ("similar to", "antonym", "synonym")[: len(path) - 1])
        for left, right in product(satellites.get(source, ()), satellites.get(target, ())):
            yield _WordLink((left, one, other, right), ("similar to", "antonym", "similar to"))


def _conceptnet_links(conceptnet: ConceptNet, senses: SenseColumns) -> Iterator[_WordLink]:
    """Yield ConceptNet's English antonyms and synonyms whose words are in WordNet.

    If ConceptNet gives no part of speech, the only one that both words have in WordNet is used, if
    there is exactly one.
    """
    text = single_chunk(conceptnet.concepts["text"])
    pos, pos_names = codes(conceptnet.concepts["pos"])
    known = _known_words(conceptnet, senses)
    for relation in ("Antonym", "Synonym"):
        if relation not in conceptnet.relation_names:
            continue
        edges = conceptnet.edges(relation)
        both = known[edges.start] & known[edges.end]
        for ends in zip(edges.start[both].tolist(), edges.end[both].tolist(), strict=True):
            words = [text[end].as_py() for end in ends]
            given = [pos_names[pos[end]] for end in ends]
            kinds = {_KIND_OF.get(name, "") for name in given if name} or set(_KIND_OF.values())
            shared = [kind for kind in kinds if all((w, kind) in senses.first for w in words)]
            if len(shared) != 1 or len({name for name in given if name}) > 1:
                continue
            rows = tuple(senses.first[word, shared[0]] for word in words)
            named = zip(words, given, strict=True)
            names = tuple("/".join(filter(None, ("/c/en", *parts))) for parts in named)
            yield _WordLink(rows, (relation.lower(),), names)


def _known_words(conceptnet: ConceptNet, senses: SenseColumns) -> Bools:
    """Mark ConceptNet's English concepts that are words in WordNet."""
    words = pa.array(sorted({word for word, _ in senses.first}))
    is_word = pc.is_in(conceptnet.concepts["text"], value_set=words)
    return mask(pc.and_(is_word, pc.equal(conceptnet.concepts["language"], "en")))
