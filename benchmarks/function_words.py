"""Measure how fast the function-word probes read sentences, at 1, 4 and 16 times a corpus.

    python benchmarks/function_words.py [--corpus masc-extract] [--times 1,4,16] [--json]

Copies of a sentence differ in their last noun, so that each is processed and none is dropped as a
duplicate. Measured, in CPU time: from the loaded corpus to the plan of the NLI probes, with the
word knowledge from WordNet in memory; and to the candidates of the acceptability probes, from which
a balanced choice of a bounded size is then made. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

from builders.engine.drops import DropLog
from builders.function_words.candidates import swap_candidates
from builders.function_words.nli import probes
from builders.function_words.nli.lexicon import lexicon
from builders.function_words.nli.options import NliOptions
from builders.function_words.nli.probes import CorpusAndWordNet
from builders.function_words.options import AcceptabilityOptions, SentenceEndOptions
from builders.function_words.sentence_ends import sentence_end_candidates
from builders.function_words.swaps import coordination_swaps, definiteness_swaps, wh_swaps
from builders.function_words.tokens import natural_sentences, tagged_sentences
from kb_cache.corpora.load import load_corpus
from kb_cache.corpora.rows import RawDocument, RawText, corpus_of
from kb_cache.corpora.types import Corpus
from kb_cache.wordnet.load import load_wordnet
from kbprobe.rng import RandomGenerator

NAMES = ("prepositions", "comparatives", "quantification", "spatial", "negation")
SWAPS = {
    "wh_words": wh_swaps,
    "definiteness": definiteness_swaps,
    "coordination": coordination_swaps,
}
EOS = "eos"


def copied(corpus: Corpus, times: int) -> Corpus:
    """Return a corpus in which each document occurs several times, with different nouns."""
    texts, documents = corpus.sentences, []
    for copy in range(times):
        sentences: list[list[RawText]] = [[] for _ in corpus.document_ids]
        for row, document in enumerate(corpus.sentence_document.tolist()):
            of = slice(int(texts.token_start[row]), int(texts.token_start[row + 1]))
            tags, words = texts.xpos.of(of), texts.words(row)
            at = max((at for at, tag in enumerate(tags) if tag == "NN"), default=-1)
            if copy and at >= 0:
                words[at] += "x" * copy
            starts, ends, text = [], [], ""
            for word in words:
                text += " " if text and word[0].isalnum() else ""
                starts.append(len(text))
                text += word
                ends.append(len(text))
            sentences[document].append(RawText(text, starts, ends, xpos=tags))
        names = (f"{name}-{copy}" for name in corpus.document_ids)
        documents += [
            RawDocument(*one) for one in zip(names, ([x] for x in sentences), strict=True)
        ]
    return corpus_of(documents, name=f"x{times}")


def asked(name: str, texts: CorpusAndWordNet) -> int:
    """Return the rows of a probe's plan, or the candidates of an acceptability probe."""
    if name in NAMES:
        return len(getattr(probes, f"fw_{name}")(texts, NliOptions(), RandomGenerator.of(0)))
    options = SentenceEndOptions() if name == EOS else AcceptabilityOptions()
    limits = options.min_tokens, options.max_tokens
    tagged = tagged_sentences(texts.corpus)
    allowed = natural_sentences(tagged, *limits, DropLog(), screen=options.screen)
    if isinstance(options, SentenceEndOptions):
        rng = RandomGenerator.of(0)
        found = sentence_end_candidates(tagged, texts.corpus, allowed, options.sigma, rng)
    else:
        found = swap_candidates(tagged, list(SWAPS[name](tagged, allowed)))
    return len(found.sentence)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", default="masc-extract")
    parser.add_argument("--times", default="1,4,16")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    wordnet, corpus = load_wordnet("3.0"), load_corpus(given.corpus)
    assert lexicon(wordnet).opposites
    found: list[dict[str, Any]] = []
    for times in map(int, given.times.split(",")):
        texts = CorpusAndWordNet(copied(corpus, times), wordnet)
        for name in (*NAMES, *SWAPS, EOS):
            start = time.process_time()
            rows = asked(name, texts)
            seconds, read = time.process_time() - start, len(texts.corpus.sentences)
            line = {"probe": f"fw_{name}", "times": times, "sentences": read, "rows": rows}
            found.append({**line, "seconds": round(seconds, 2), "per_s": round(read / seconds)})
            if not given.json:
                print(found[-1], flush=True)
    if given.json:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
