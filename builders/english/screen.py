"""Screens: offensive content that no question may show, and words that a tokenizer splits.

Two sources are used. WordNet's usage domains and glosses mark senses ("ethnic slur", "obscene terms
for ..."), so that *cock* the bird is kept and *cock* the slang word is not. A word list
(``data/offensive.txt``; its source and licence are named there) contains obscenities and slurs
without an innocent main sense, which are offensive in any text, including definitions and examples.
Words with an innocent main sense (``data/offensive_senses.txt``) are only offensive if the sense is
not stated.

Names of diseases, organs and acts are not obscenities: a probe of knowledge may ask about them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from builders.english.word_lists import word_list
from kb_cache.derived import derived
from kb_cache.wordnet.types import WordNet
from kbprobe.arrays import Bools, mask_at
from kbprobe.columns import codes, mask, positions, single_chunk
from kbprobe.errors import UsageError, require

OFFENSIVE = "offensive, see --no-screen"
"""The reason by which screened questions are counted."""

RUDE_DOMAINS = ("disparagement.n.01", "ethnic_slur.n.01", "obscenity.n.02")
"""WordNet's usage domains of offensive words."""

_OFFENDS = (
    r"\(ethnic slur\)|\b(?:obscene|offensive|derogatory|disparaging|insulting|pejorative|vulgar)"
    r"(?: \w+){0,3}? (?:expression|name|slang|term|word)s? (?:for|of|used)\b"
    r"|\bslang\b.{0,40}? for (?:an? )?(?:\w+ ){0,2}(?:man|men|person|people|woman|women)\b"
)
"""Labels that dictionaries give to such words, but not to words about them ("an obscene word")."""

_INNOCENT = tuple(
    f"noun.{kind}" for kind in ("animal", "artifact", "food", "object", "plant", "substance")
)
"""Lexicographer files in which words of ``offensive_senses`` are harmless names."""


@cache
def _listed() -> str:
    """Return the listed words as a pattern; spaces and hyphens in entries are equivalent."""
    words = (word.replace("-", "[ _-]").replace("*", r"\w*") for word in word_list("offensive"))
    return rf"\b(?:{'|'.join(sorted(words))})\b"


def offensive_texts(texts: pa.Array | pa.ChunkedArray) -> Bools:
    """Mark the texts that contain a listed word, or that define a word as offensive.

    >>> offensive_texts(pa.array(["a shitty day", "Shittah wood", "obscene terms for penis"]))
    array([ True, False,  True])
    """
    pattern = f"(?:{_listed()})|(?:{_OFFENDS})"
    return mask(pc.match_substring_regex(texts, pattern, ignore_case=True))


def offensive_words(words: Sequence[str] | pa.Array) -> Bools:
    """Mark words, shown without a definition, that are offensive in one of their senses.

    >>> offensive_words(["pussy", "pussy willow", "redskins"])
    array([ True, False,  True])
    """
    array = words if isinstance(words, pa.Array) else pa.array(list(words), pa.string())
    coarse = pa.array(sorted(word_list("offensive_senses")))
    return offensive_texts(array) | mask(pc.is_in(pc.utf8_lower(array), value_set=coarse))


@derived
def offensive_senses(wordnet: WordNet) -> Bools:
    """Mark the synsets that are offensive in themselves, by usage domain or by gloss.

    For questions that show one lemma of a synset, which has to be screened separately.
    """
    return in_usage_domains(wordnet, RUDE_DOMAINS) | offensive_texts(wordnet.synsets["gloss"])


@derived
def offensive_synsets(wordnet: WordNet) -> Bools:
    """Mark the synsets that are offensive in themselves or because of one of their lemmas.

    Such a synset is excluded with all its lemmas, since templates decide which of them to show.
    """
    lemmas, synset = wordnet.lemma_texts(), wordnet.sense_synset
    lexname, names = codes(wordnet.synsets["lexname"])
    coarse = (wordnet.pos_codes == 0) & ~np.isin(names, _INNOCENT)[lexname]
    listed = offensive_texts(lemmas) | (offensive_words(lemmas) & coarse[synset])
    marked = offensive_senses(wordnet).copy()
    marked[synset[listed]] = True
    return marked


def in_usage_domains(wordnet: WordNet, domains: Sequence[str]) -> Bools:
    """Mark the synsets that belong to given usage domains with some or all of their lemmas."""
    known = positions(single_chunk(wordnet.synsets["name"]), pa.array(list(domains)))
    source, domain = wordnet.edges("usage_domain")
    return mask_at(len(wordnet), source[np.isin(domain, known[known >= 0])])


def whole_words(words: Sequence[str], tokenizer: str) -> Bools:
    """Return which words a tokenizer keeps whole inside a sentence.

    Args:
        words: the words; any that the tokenizer does not know is not kept whole.
        tokenizer: a transformers tokenizer, by folder or Hub id.

    Raises:
        MissingDependencyError: transformers is not installed.
        UsageError: the tokenizer cannot be loaded.
    """
    require("transformers", "eval", "--tokenizer")
    from transformers import AutoTokenizer

    from kbprobe.checkpoints import FILES, reading

    with reading(f"--tokenizer: cannot load {tokenizer!r}", Path(tokenizer), FILES, UsageError):
        loaded = AutoTokenizer.from_pretrained(tokenizer, trust_remote_code=False)
    if not words:
        return np.zeros(0, dtype=np.bool_)
    pieces = loaded([f" {word}" for word in words], add_special_tokens=False)["input_ids"]
    unknown = loaded.unk_token_id
    return np.array([len(ids) == 1 and ids[0] != unknown for ids in pieces], dtype=np.bool_)
