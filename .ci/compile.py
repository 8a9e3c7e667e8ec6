"""Compute the tables of the embedded WordNet that come with the package.

    python .ci/compile.py

Needed after a change to a module with such a rule: until then, its tables are computed on each
machine, and a test fails.
"""

from __future__ import annotations

from builders.english.screen import offensive_senses, offensive_synsets
from builders.wordnet.content import contents
from builders.wordnet.features import judged_synsets, synset_words
from builders.wordnet.neighbourhoods import blocks
from builders.wordnet.synsets import _zipf, alike, normalised_lemmas
from kb_cache.derived import ship, shipped_path
from kb_cache.wordnet.load import load_wordnet

SHIPPED = (
    *(offensive_senses, offensive_synsets, contents, judged_synsets, synset_words, blocks),
    *(_zipf, alike, normalised_lemmas),
)
"""Rules that take long for a small table."""

if __name__ == "__main__":
    wordnet = load_wordnet()
    for rule in SHIPPED:  # none is computed from an outdated table of another
        shipped_path(rule, wordnet).unlink(missing_ok=True)
    for rule in SHIPPED:
        path = ship(rule, wordnet)
        print(f"{path.stat().st_size:9,} bytes  {path}")
