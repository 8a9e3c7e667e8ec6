"""WordNet as flat Arrow tables and graphs over integer synset ids.

>>> from kb_cache.wordnet.load import load_wordnet
>>> wn = load_wordnet("3.0")
>>> dog = wn.synset_id("dog.n.01")
>>> wn.synsets["gloss"][dog].as_py()[:41]
'a member of the genus Canis (probably des'
>>> [wn.synsets["name"][i].as_py() for i in wn.hypernyms.neighbours(dog).tolist()]
['domestic_animal.n.01', 'canine.n.02']
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from kb_cache.graph import Graph
from kb_cache.knowledge import Loaded
from kbprobe.arrays import Bools, Ints, run_starts
from kbprobe.columns import codes, single_chunk, to_numpy
from kbprobe.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    import pyarrow as pa

KIND = "wordnet"

#: Parts of speech in the order of their codes in `WordNet.pos_codes`: noun, verb, adjective,
#: adjective satellite, adverb.
POS = "nvasr"

#: Pointer symbols of the source files and the names by which we call them.
POINTERS: Mapping[str, str] = {
    "!": "antonym",
    "@": "hypernym", "@i": "instance_hypernym", "~": "hyponym", "~i": "instance_hyponym",
    "#m": "member_holonym", "#s": "substance_holonym", "#p": "part_holonym",
    "%m": "member_meronym", "%s": "substance_meronym", "%p": "part_meronym",
    "=": "attribute", "+": "derivation",
    ";c": "topic_domain", "-c": "in_topic_domain", ";r": "region_domain", "-r": "in_region_domain",
    ";u": "usage_domain", "-u": "in_usage_domain",
    "*": "entailment", ">": "cause", "^": "also_see", "$": "verb_group", "&": "similar_to",
    "<": "participle", "\\": "pertainym",
}  # fmt: skip

#: The lexicographer files in the order of their numbers. The list has not changed since
#: WordNet 1.5, so it can stand in for a distribution's missing ``lexnames`` file.
LEXNAMES = (
    "adj.all", "adj.pert", "adv.all", "noun.Tops", "noun.act", "noun.animal", "noun.artifact",
    "noun.attribute", "noun.body", "noun.cognition", "noun.communication", "noun.event",
    "noun.feeling", "noun.food", "noun.group", "noun.location", "noun.motive", "noun.object",
    "noun.person", "noun.phenomenon", "noun.plant", "noun.possession", "noun.process",
    "noun.quantity", "noun.relation", "noun.shape", "noun.state", "noun.substance", "noun.time",
    "verb.body", "verb.change", "verb.cognition", "verb.communication", "verb.competition",
    "verb.consumption", "verb.contact", "verb.creation", "verb.emotion", "verb.motion",
    "verb.perception", "verb.possession", "verb.social", "verb.stative", "verb.weather",
    "adj.ppl",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class WordNet(Loaded):
    """One version of WordNet.

    A synset's id is its row in `synsets`: nouns, verbs, adjectives (satellites among them),
    adverbs, each in the order of the source file. Ids are not stable between versions of
    WordNet; ``offset`` and ``name`` identify a synset within one version.

    Attributes:
        synsets: ``name`` ("dog.n.01", as NLTK names it), ``pos`` (one of `POS`), ``offset``,
            ``lexname`` ("noun.animal"), ``gloss``.
        senses: a row for each lemma of each synset, in WordNet's order: ``synset``, ``lemma``
            (underscores kept), ``number`` (the synset's place among the lemma's synsets of that
            part of speech, 1 being the commonest; satellites are counted as adjectives),
            ``key`` (sense key), ``count`` (occurrences in the tagged corpora), ``lex_id``,
            ``syntactic_marker`` ("", "(a)", "(p)" or "(ip)").
        examples: ``synset``, ``text``; several for a synset stand in WordNet's order.
        mentions: where a sense's lemma occurs in an example of its synset: ``example`` and
            ``sense`` (rows of those tables), ``start`` and ``end`` (character offsets: the
            surface form is ``text[start:end]``). At most one row for each pair.
        pointers: every relation: ``kind`` (a value of `POINTERS`), ``source`` and ``target``
            (synsets), ``source_sense`` and ``target_sense`` (rows of `senses`; -1 where the
            pointer holds between whole synsets). Sorted by kind, source, target.
        frames: verb frames: ``synset``, ``sense`` (-1: the frame fits every lemma), ``frame``
            (WordNet's number), ``text`` ("Somebody %s something").
    """

    synsets: pa.Table
    senses: pa.Table
    examples: pa.Table
    mentions: pa.Table
    pointers: pa.Table
    frames: pa.Table

    def __len__(self) -> int:
        """Number of synsets."""
        return int(self.synsets.num_rows)

    def __repr__(self) -> str:
        return f"<WordNet {self.name}: {len(self):,} synsets, digest {self.digest[:12]}>"

    @property
    def structure(self) -> WordNet:
        """The WordNet that has definitions and words for all synsets: itself.

        A WordNet in another language has few of its own, and points to Princeton's.
        """
        return self

    @property
    def languages(self) -> tuple[WordNet, ...]:
        """The WordNets whose words must all suit a question: itself, and those asked alike."""
        return (self,)

    @cached_property
    def has_words(self) -> Bools:
        """(synsets,) whether there is a word for each, which is so in English."""
        return np.asarray(np.diff(self.sense_start) > 0)

    @cached_property
    def pos_codes(self) -> npt.NDArray[np.int8]:
        """The part of speech of every synset, as an index into `POS`."""
        stored, names = codes(self.synsets["pos"])
        return np.asarray(np.array([POS.index(name) for name in names], dtype=np.int8)[stored])

    @cached_property
    def sense_synset(self) -> Ints:
        """(senses,) the synset of each."""
        return to_numpy(self.senses["synset"]).astype(np.int64)

    @cached_property
    def first_nouns(self) -> Bools:
        """(senses,) marks the first sense of each lemma as a noun."""
        nouns = self.pos_codes[self.sense_synset] == POS.index("n")
        return np.asarray(nouns & (to_numpy(self.senses["number"]) == 1))

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.synsets["name"].to_pylist())}

    @cached_property
    def sense_start(self) -> Ints:
        """Row bounds: the senses of synset ``i`` are ``sense_start[i]:sense_start[i + 1]``."""
        return _bounds(to_numpy(self.senses["synset"]), len(self))

    @cached_property
    def hypernyms(self) -> Graph:
        """Synset to its class hypernyms ("dog" to "canine"); instances have none here."""
        return self.graph("hypernym")

    @cached_property
    def instance_hypernyms(self) -> Graph:
        """Synset of an individual to its classes ("Einstein" to "physicist")."""
        return self.graph("instance_hypernym")

    @cached_property
    def isa(self) -> Graph:
        """Class and instance hypernyms together: what makes "x is a y" true."""
        return self.graph("hypernym", "instance_hypernym")

    @cached_property
    def hyponyms(self) -> Graph:
        """`hypernyms` the other way round."""
        return self.hypernyms.reversed

    def graph(self, *kinds: str) -> Graph:
        """The union of the edges of some pointer kinds, over synsets; see `edges`."""
        ends = [self.edges(kind) for kind in kinds]
        source = np.concatenate([source for source, _ in ends])
        target = np.concatenate([target for _, target in ends])
        return Graph.from_edges(len(self), source, target)

    def edges(self, kind: str) -> tuple[Ints, Ints]:
        """Source and target synsets of every pointer of a kind: two parallel int64 arrays.

        Lexical pointers (antonym, derivation, ...) give their synsets; for the senses take
        `pointers`.

        Raises:
            UsageError: an unknown kind.
        """
        if kind not in POINTERS.values():
            raise UsageError(
                f"WordNet has no pointer kind {kind!r}.{did_you_mean(kind, POINTERS.values())} "
                f"There are: {', '.join(sorted(set(POINTERS.values())))}."
            )
        stored, names = codes(self.pointers["kind"])
        rows = np.flatnonzero(stored == (names.index(kind) if kind in names else -1))
        source, target = to_numpy(self.pointers["source"]), to_numpy(self.pointers["target"])
        return source[rows].astype(np.int64), target[rows].astype(np.int64)

    def in_files(self, *names: str) -> Bools:
        """Mark the synsets of some lexicographer files ("noun.animal"); none, if none has them."""
        file, files = codes(self.synsets["lexname"])
        return np.asarray(np.isin(files, names)[file], dtype=np.bool_)

    def synset_ids(self, names: Iterable[str]) -> Ints:
        """Return the row of each synset, as `synsets` names it; -1: there is none."""
        return np.array([self._ids.get(name, -1) for name in names], dtype=np.int64)

    def synset_id(self, name: str) -> int:
        """Return the row of a synset, given its name; UsageError if there is none.

        As with NLTK, any of its lemmas will do, with the number that this lemma gives it:
        "big.a.01" is large.a.01.
        """
        found = self._ids.get(name)
        if found is None:
            found = self._id_by_lemma(name.lower())
        if found is None:
            # Comparing against 117,659 names would take seconds: compare with namesakes.
            near = [known for known in self._ids if known[:3] == name[:3].lower()]
            raise UsageError(f"{self.name} has no synset {name!r}.{did_you_mean(name, near)}")
        return found

    def _id_by_lemma(self, name: str) -> int | None:
        """The synset that a name means though its lemma is not the synset's first."""
        import pyarrow.compute as pc

        parts = name.rsplit(".", 2)  # a lemma may hold dots: "u.s..n.01"
        if len(parts) < 3 or parts[1] not in tuple(POS) or not parts[2].isdecimal():
            return None
        lemma, pos, number = parts
        same = pc.equal(pc.utf8_lower(self.senses["lemma"]), lemma)
        rows = self.senses.filter(same).select(["synset", "number"]).to_pylist()
        wanted = "as" if pos == "a" else pos
        rows = [row for row in rows if POS[self.pos_codes[row["synset"]]] in wanted]
        rows.sort(key=lambda row: row["number"])
        at = int(number) - 1
        return int(rows[at]["synset"]) if 0 <= at < len(rows) else None

    def lemma_texts(self) -> pa.Array:
        """The lemma of every sense with spaces instead of underscores."""
        import pyarrow.compute as pc

        return single_chunk(pc.replace_substring(self.senses["lemma"], "_", " "))


def _bounds(sorted_ids: npt.NDArray[np.int32], size: int) -> Ints:
    return run_starts(np.bincount(sorted_ids, minlength=size))
