"""Compiling a WN-LMF lexicon into the tables of `kb_cache.wordnet.types.WordNet`.

Where the format differs from the files of Princeton WordNet, or contains less:

- Names of synsets are made as NLTK makes them: first lemma, part of speech, place among the senses
  of the lemma ("dog.n.01").
- A lexicon may state a relation in one direction alone; both are made.
- Synsets without a word (gaps in a language) and those of other parts of speech than noun, verb,
  adjective and adverb are left out. What is below one of them is connected to what is above it.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from nltk.corpus.reader.wordnet import VERB_FRAME_STRINGS, WordNetCorpusReader

from kb_cache.base import Progress
from kb_cache.mentions import Inflections, ListedForms, MentionFinder
from kb_cache.wordnet.compile import pointer_table, tables_of
from kb_cache.wordnet.lmf import LmfSource
from kb_cache.wordnet.types import LEXNAMES, POINTERS
from kbprobe.errors import SourceError

_ORDER = {"n": 0, "v": 1, "a": 2, "s": 2, "r": 3}
_CODES = {name: code for code, name in enumerate(POINTERS.values())}

_KINDS: Mapping[str, str] = {
    **{name: name for name in (
        "antonym", "hypernym", "hyponym", "instance_hypernym", "instance_hyponym", "attribute",
        "derivation", "participle", "pertainym",
    )},
    "also": "also_see", "causes": "cause", "entails": "entailment", "similar": "similar_to",
    "holo_member": "member_holonym", "holo_part": "part_holonym",
    "holo_substance": "substance_holonym", "mero_member": "member_meronym",
    "mero_part": "part_meronym", "mero_substance": "substance_meronym",
    "domain_topic": "topic_domain", "has_domain_topic": "in_topic_domain",
    "domain_region": "region_domain", "has_domain_region": "in_region_domain",
    "exemplifies": "usage_domain", "is_exemplified_by": "in_usage_domain",
}  # fmt: skip
"""Relations of WN-LMF -> the pointers of Princeton WordNet. Others are left out."""

_INVERSE: Mapping[str, str] = {
    **{name: name for name in ("antonym", "attribute", "derivation", "similar_to", "verb_group")},
    "hypernym": "hyponym", "instance_hypernym": "instance_hyponym",
    "member_holonym": "member_meronym", "part_holonym": "part_meronym",
    "substance_holonym": "substance_meronym", "topic_domain": "in_topic_domain",
    "region_domain": "in_region_domain", "usage_domain": "in_usage_domain",
}  # fmt: skip
_BOTH_WAYS = {**_INVERSE, **{inverse: kind for kind, inverse in _INVERSE.items()}}
_PASSED_ON = ("hypernym", "instance_hypernym")
"""Transitive relations, which are continued across synsets that are left out."""

_FRAMES = {text: number for number, text in enumerate(VERB_FRAME_STRINGS) if text}


class _LmfSense(NamedTuple):
    """A sense of the lexicon, with its entry's id and lemma, and its place among the senses."""

    entry: str
    lemma: str
    number: int
    sense: Mapping[str, Any]
    frames: tuple[str, ...]


def compile_lmf(
    source: LmfSource, progress: Progress | None = None
) -> tuple[dict[str, pa.Table], tuple[str, ...]]:
    """Compile a lexicon; return its tables, and notes of what was left out.

    Raises:
        SourceError: synsets or senses are named that are not there, or nothing is left.
    """
    return _LmfLexicon(source).compile(progress)


class _LmfLexicon:
    """A lexicon on its way into tables."""

    def __init__(self, source: LmfSource) -> None:
        self._lexicon = source.lexicon
        self._path = source.path
        self._frames = {
            frame["id"]: frame["subcategorizationFrame"]
            for frame in self._lexicon.get("frames", ())
            if frame.get("id")
        }
        self._check_ids()
        self._all = {synset["id"]: synset for synset in self._lexicon.get("synsets", ())}
        self._senses = self._senses_of_synsets()
        kept = [
            synset
            for synset in self._all.values()
            if synset.get("partOfSpeech") in _ORDER and self._senses.get(synset["id"])
        ]
        self._synsets = sorted(kept, key=lambda synset: _ORDER[synset["partOfSpeech"]])  # stable
        if not self._synsets:
            raise SourceError(f"{source.path} holds no synset with a word")
        self._row = {synset["id"]: row for row, synset in enumerate(self._synsets)}
        english = source.language.partition("-")[0] == "en"
        rules = WordNetCorpusReader.MORPHOLOGICAL_SUBSTITUTIONS
        forms = self._other_forms()
        self._finder = MentionFinder(Inflections(rules, forms) if english else ListedForms(forms))
        self._unknown: dict[str, int] = defaultdict(int)

    def _check_ids(self) -> None:
        """Refuse ids that several entries, senses or synsets have: relations would be ambiguous."""
        entries = self._lexicon.get("entries", ())
        found = Counter(item["id"] for item in (*entries, *self._lexicon.get("synsets", ())))
        found.update(sense["id"] for entry in entries for sense in entry.get("senses", ()))
        if repeated := [name for name, count in found.items() if count > 1]:
            more = f" and {len(repeated) - 3:,} more" if len(repeated) > 3 else ""
            raise SourceError(
                f"{self._path} gives several entries, senses or synsets the same id: "
                f"{', '.join(repeated[:3])}{more}. Ids must be unique: rename or remove the "
                f"repetitions (python -m wn validate {self._path} lists them all)"
            )

    def _senses_of_synsets(self) -> dict[str, list[_LmfSense]]:
        """Return the senses of each synset, in its order.

        Entries that differ in case are one lemma, as in WordNet: *march*, *March*.
        """
        of_lemma: dict[tuple[str, str], list[tuple[str, Mapping[str, Any], Any]]] = defaultdict(
            list
        )
        for entry in self._lexicon.get("entries", ()):
            lemma = entry["lemma"]["writtenForm"].replace(" ", "_")
            part = entry["lemma"]["partOfSpeech"]
            for sense in entry.get("senses", ()):
                if sense["synset"] not in self._all:
                    raise SourceError(
                        f"{self._path}: the sense {sense['id']} is of the synset "
                        f"{sense['synset']}, which is not there"
                    )
                found = of_lemma[lemma.lower(), "a" if part == "s" else part]
                found.append((lemma, sense, entry))
        senses_of: dict[str, list[_LmfSense]] = defaultdict(list)
        for found in of_lemma.values():
            found.sort(key=lambda entry: int(entry[1].get("n") or 0))  # stable
            for number, (lemma, sense, entry) in enumerate(found, start=1):
                frames = tuple(self._frames_of(sense, entry))
                senses_of[sense["synset"]].append(
                    _LmfSense(entry["id"], lemma, number, sense, frames)
                )
        for name, group in senses_of.items():
            place = {member: at for at, member in enumerate(self._all[name].get("members") or ())}
            # Members are senses (WN-LMF 1.1) or, in Open English WordNet, entries.
            group.sort(
                key=lambda word, place=place: place.get(  # type: ignore[misc]
                    word.sense["id"], place.get(word.entry, len(place))
                )
            )
        return senses_of

    def _frames_of(self, sense: Mapping[str, Any], entry: Mapping[str, Any]) -> Iterator[str]:
        """Yield the frames of a verb's sense as WordNet writes them."""
        texts = [self._frames[name] for name in sense.get("subcat") or () if name in self._frames]
        texts += [
            frame["subcategorizationFrame"]
            for frame in entry.get("frames", ())
            if sense["id"] in (frame.get("senses") or [sense["id"]])
        ]
        for text in texts:
            plain = re.sub(r"-{2,}s\b", "%s", text)
            yield re.sub(r"-{2,}(?=ing\b)", "%s", plain)

    def _other_forms(self) -> dict[str, dict[str, list[str]]]:
        """Return forms beside the lemmas, by part of speech: form -> lemmas."""
        found: dict[str, dict[str, list[str]]] = {part: {} for part in "nvar"}
        for entry in self._lexicon.get("entries", ()):
            part = entry["lemma"]["partOfSpeech"].replace("s", "a")
            for form in entry.get("forms", ()) if part in found else ():
                lemma = entry["lemma"]["writtenForm"].lower()
                found[part].setdefault(form["writtenForm"].lower(), []).append(lemma)
        return found

    def compile(self, progress: Progress | None) -> tuple[dict[str, pa.Table], tuple[str, ...]]:
        rows: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
        start, place = [], {}
        for row, synset in enumerate(self._synsets):
            senses = self._senses[synset["id"]]
            start.append(len(rows["senses"]))
            place.update({word.sense["id"]: (row, at) for at, word in enumerate(senses)})
            self._add(rows, row, synset, senses)
            if progress and (row % 1000 == 0 or row + 1 == len(self._synsets)):
                progress(row + 1, len(self._synsets))
        owner = np.array([sense[0] for sense in rows["senses"]])
        tables = tables_of(rows)
        tables["pointers"] = pointer_table(self._pointers(place), start, owner)
        return tables, tuple(self._notes())

    def _add(
        self,
        rows: dict[str, list[tuple[Any, ...]]],
        row: int,
        synset: Mapping[str, Any],
        senses: Sequence[_LmfSense],
    ) -> None:
        part = synset["partOfSpeech"]
        name = f"{senses[0].lemma.lower()}.{part}.{senses[0].number:02}"
        offset = re.search(r"-(\d{8})-[nvasr]$", synset["id"])
        gloss = "; ".join(definition["text"] for definition in synset.get("definitions", ()))
        rows["synsets"].append(
            (name, part, int(offset[1]) if offset else row, _topic_of(synset), gloss)
        )
        first = len(rows["senses"])
        for word in senses:
            sense = word.sense
            key = (sense.get("meta") or {}).get("identifier") or sense["id"]
            count = sum(int(count["value"]) for count in sense.get("counts", ()))
            where = sense.get("adjposition")
            marker = f"({where})" if where else ""
            rows["senses"].append((row, word.lemma, word.number, key, count, 0, marker))
        texts = [example["text"] for example in synset.get("examples", ())]
        texts += [example["text"] for some in senses for example in some.sense.get("examples", ())]
        for text in dict.fromkeys(texts):
            for at, word in enumerate(senses, start=first):
                span = self._finder.find(text, word.lemma, part)
                if span is not None:
                    rows["mentions"].append((len(rows["examples"]), at, *span))
            rows["examples"].append((row, text))
        for frame in sorted(
            {_FRAMES[text] for word in senses for text in word.frames if text in _FRAMES}
        ):
            text = VERB_FRAME_STRINGS[frame]
            having = [at for at, word in enumerate(senses, start=first) if text in word.frames]
            ends = [-1] if len(having) == len(senses) else having
            rows["frames"] += [(row, at, frame, text) for at in ends]

    def _pointers(
        self, place: Mapping[str, tuple[int, int]]
    ) -> Iterable[tuple[int, int, int, int, int]]:
        """Yield kind, source, target, and the lemmas' places in them (-1: of the whole synset)."""
        for synset in self._synsets:
            source = self._row[synset["id"]]
            for name, target in self._reached(synset):
                yield from self._both(name, (source, -1), (self._row[target], -1))
            for word in self._senses[synset["id"]]:
                for relation in word.sense.get("relations", ()):
                    name, target = relation["relType"], relation["target"]
                    if (kind := self._kind(name, synset)) is None:
                        continue
                    if target in place:
                        yield from self._both(kind, place[word.sense["id"]], place[target])
                    elif target in self._row:
                        end = self._row[target], -1
                        yield from self._both(kind, place[word.sense["id"]], end)

    def _reached(self, synset: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Yield the relations of a synset to those that are kept, through those that are not."""
        for relation in synset.get("relations", ()):
            target = relation["target"]
            if target not in self._all:
                raise SourceError(
                    f"{self._path}: {relation['relType']} of {synset['id']} leads to {target}, "
                    "which is not there"
                )
            if (kind := self._kind(relation["relType"], synset)) is None:
                continue
            if target in self._row:
                yield kind, target
            elif kind in _PASSED_ON:
                for other in self._above(target, {synset["id"]}):
                    yield kind, other

    def _above(self, name: str, seen: set[str]) -> Iterator[str]:
        """Yield the nearest kept hypernyms of a synset that is left out."""
        seen.add(name)
        for relation in self._all[name].get("relations", ()):
            target = relation["target"]
            if relation["relType"] in _PASSED_ON and target not in seen:
                if target in self._row:
                    yield target
                elif target in self._all:
                    yield from self._above(target, seen)

    def _kind(self, name: str, synset: Mapping[str, Any]) -> str | None:
        kind = _KINDS.get(name)
        if kind is None:
            self._unknown[name] += 1
        # Lexicons derived from WordNet have its groups of verbs as similar ones.
        grouped = kind == "similar_to" and synset["partOfSpeech"] == "v"
        return "verb_group" if grouped else kind

    @staticmethod
    def _both(
        kind: str, source: tuple[int, int], target: tuple[int, int]
    ) -> Iterator[tuple[int, int, int, int, int]]:
        yield _CODES[kind], source[0], target[0], source[1], target[1]
        if inverse := _BOTH_WAYS.get(kind):
            yield _CODES[inverse], target[0], source[0], target[1], source[1]

    def _notes(self) -> Iterator[str]:
        if out := len(self._all) - len(self._synsets):
            yield f"{out:,} synsets left out: they have no word, or are of another part of speech"
        if without := sum(not _topic_of(synset) for synset in self._synsets):
            yield (
                f"{without:,} of {len(self._synsets):,} synsets state no topic (lexfile or "
                "dc:subject, such as noun.animal): probes do not screen them by topic"
            )
        if self._unknown:
            names = ", ".join(f"{name} {n:,}" for name, n in sorted(self._unknown.items()))
            yield f"relations left out that WordNet does not have: {names}"


def _topic_of(synset: Mapping[str, Any]) -> str:
    """Return the lexicographer file of a synset; "" if none is stated.

    Lexicons in WN-LMF 1.0 state it as ``dc:subject``, which may also be anything else.
    """
    subject = (synset.get("meta") or {}).get("subject") or ""
    return synset.get("lexfile") or (subject if subject in LEXNAMES else "")
