"""The corpora of a build, and the labels that annotators gave to its candidates."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from builders.engine.labels import files_digest
from builders.function_words.options import FunctionWordOptions
from builders.function_words.tokens import TaggedTexts
from kb_cache.corpora.load import load_corpora
from kb_cache.corpora.types import Corpora, Corpus, TextCorpus


class LabelledCorpora(Corpora):
    """Corpora, and the sha256 of the label files that are read with them."""

    def __init__(self, sources: Sequence[Corpus], labels: str) -> None:
        super().__init__(sources)
        self.labels = labels

    @property
    def digest(self) -> str:
        """The digests of the corpora and of the label files."""
        return f"{self._joined('digest', '+')}+{self.labels}"


@lru_cache(maxsize=4)
def _loaded(names: tuple[str, ...]) -> TextCorpus:
    return load_corpora(tuple(dict.fromkeys(names)))


def open_corpora(options: FunctionWordOptions) -> TextCorpus:
    """Load the corpora that the options name, once per process.

    Raises:
        UsageError: a corpus or a file of labels does not exist.
    """
    corpora = _loaded(options.corpus)
    if not options.labels:
        return corpora
    sources = corpora.sources if isinstance(corpora, Corpora) else (corpora,)
    return LabelledCorpora(sources, files_digest(options.labels))


@lru_cache(maxsize=2)
def tagged_sentences(corpus: TextCorpus) -> TaggedTexts:
    """Return the sentences of a corpus with their words and tags as codes; cached.

    Raises:
        UsageError: they have no tags.
    """
    return TaggedTexts.of(corpus.sentences, corpus.name)
