"""A WordNet as a WN-LMF file, to be read back."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import wn.lmf

from kb_cache.wordnet.types import WordNet

_RELATIONS = {
    "also_see": "also", "cause": "causes", "entailment": "entails", "similar_to": "similar",
    "verb_group": "similar", "member_holonym": "holo_member", "part_holonym": "holo_part",
    "substance_holonym": "holo_substance", "member_meronym": "mero_member",
    "part_meronym": "mero_part", "substance_meronym": "mero_substance",
    "topic_domain": "domain_topic", "in_topic_domain": "has_domain_topic",
    "region_domain": "domain_region", "in_region_domain": "has_domain_region",
    "usage_domain": "exemplifies", "in_usage_domain": "is_exemplified_by",
}  # fmt: skip


def as_lmf(wordnet: WordNet, path: Path, **stated: Any) -> Path:
    """Write a WordNet as a lexicon; ``stated`` replaces what the lexicon says of itself."""
    lexicon = lexicon_of(wordnet) | stated
    wn.lmf.dump({"lmf_version": "1.4", "lexicons": [lexicon]}, path)  # type: ignore[list-item]
    return path


def lexicon_of(wordnet: WordNet) -> dict[str, Any]:
    """Return a WordNet as the lexicon that `wn.lmf.load` would return."""
    synsets, senses = wordnet.synsets.to_pylist(), wordnet.senses.to_pylist()
    name = [f"test-{one['offset']:08}-{one['pos']}" for one in synsets]
    identity = [f"{name[one['synset']]}-{at}" for at, one in enumerate(senses)]
    synset_relations, sense_relations = defaultdict(list), defaultdict(list)
    for one in wordnet.pointers.to_pylist():
        kind = _RELATIONS.get(one["kind"], one["kind"])
        if one["source_sense"] < 0:
            end = {"relType": kind, "target": name[one["target"]]}
            synset_relations[one["source"]].append(end)
        else:
            end = {"relType": kind, "target": identity[one["target_sense"]]}
            sense_relations[one["source_sense"]].append(end)
    texts, examples = sorted(set(wordnet.frames["text"].to_pylist())), defaultdict(list)
    frames = defaultdict(list)
    for one in wordnet.frames.to_pylist():
        first, last = wordnet.sense_start[one["synset"]], wordnet.sense_start[one["synset"] + 1]
        for at in range(first, last) if one["sense"] < 0 else [one["sense"]]:
            frames[at].append(f"f{texts.index(one['text'])}")
    for one in wordnet.examples.to_pylist():
        examples[one["synset"]].append({"text": one["text"]})
    entries: dict[tuple[str, str], dict[str, Any]] = {}
    for at in sorted(range(len(senses)), key=lambda at: senses[at]["number"]):
        one = senses[at]
        part = synsets[one["synset"]]["pos"].replace("s", "a")
        lemma = {"writtenForm": one["lemma"].replace("_", " "), "partOfSpeech": part}
        new = {"id": f"test-e{len(entries)}", "lemma": lemma, "senses": []}
        # Entries by lower case: readers need not put those that differ in case together again.
        entry = entries.setdefault((one["lemma"], part), new)
        entry["senses"].append(
            {
                "id": identity[at],
                "synset": name[one["synset"]],
                "n": one["number"],
                "meta": {"identifier": one["key"]},
                "counts": [{"value": one["count"]}] if one["count"] else [],
                "adjposition": one["syntactic_marker"].strip("()"),
                "relations": sense_relations[at],
                "subcat": frames[at],
            }
        )
    return {
        "id": "test",
        "label": "WordNet for tests",
        "language": "en",
        "email": "nobody@example.org",
        "license": "https://wordnet.princeton.edu/license-and-commercial-use",
        "version": "1",
        "entries": list(entries.values()),
        "synsets": [
            {
                "id": name[row],
                "ili": "",
                "partOfSpeech": one["pos"],
                "definitions": [{"text": one["gloss"]}],
                "examples": examples[row],
                "relations": synset_relations[row],
                "members": identity[wordnet.sense_start[row] : wordnet.sense_start[row + 1]],
                "lexfile": one["lexname"],
            }
            for row, one in enumerate(synsets)
        ],
        "frames": [
            {"id": f"f{at}", "subcategorizationFrame": _dashes(text)}
            for at, text in enumerate(texts)
        ],
    }  # fmt: skip


def _dashes(frame: str) -> str:
    """Return a frame as lexicons write it: "Somebody ----s something", "It is ----ing"."""
    return re.sub("%s(?!ing)", "----s", frame).replace("%s", "----")
