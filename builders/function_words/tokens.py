"""The corpora of a build; texts as arrays of word and tag codes; which are ordinary sentences.

Corpora contain headlines, lists, addresses and broken-off speech. They cannot be originals in
acceptability judgements, since readers reject them even unchanged.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from builders.engine.drops import DropLog
from builders.english.screen import OFFENSIVE, offensive_texts
from builders.english.word_lists import word_list
from builders.function_words.options import FunctionWordOptions
from builders.labels.verdicts import files_digest
from kb_cache.corpora.load import load_corpora
from kb_cache.corpora.types import CodedLabels, Corpora, Corpus, TextCorpus, Texts
from kbprobe.arrays import Bools, Ints, mask_at
from kbprobe.columns import mask, to_numpy
from kbprobe.errors import UsageError

NO_WORD = ""
"""Code for positions before the first and after the last token of a text."""


@dataclass(frozen=True, eq=False)
class TaggedTexts:
    """Texts with the lower-case form and the Penn Treebank tag of each token.

    Masks are (tokens,) arrays over all texts.

    Attributes:
        texts: the texts.
        code: (tokens,) index of each token's lower-case form in ``words``.
        words: the distinct lower-case forms.
        tags: the tags.
    """

    texts: Texts
    code: Ints
    words: tuple[str, ...]
    tags: CodedLabels

    @classmethod
    def of(cls, texts: Texts, name: str) -> TaggedTexts:
        """Read the texts of a corpus.

        Args:
            texts: the texts.
            name: what the corpus is called in errors.

        Raises:
            UsageError: its tokens have no Penn Treebank tags.
        """
        if texts.tokens and not texts.xpos.known:
            raise UsageError(
                f"{name} has no part-of-speech tags (Penn Treebank, as in CoNLL-U's fifth column): "
                "have it tagged when it is fetched (see kb-cache fetch corpus --help), or name "
                "another one with --corpus"
            )
        forms = texts.forms
        number: dict[str, int] = {}
        lower = [number.setdefault(form.lower(), len(number)) for form in forms.names]
        code = np.array(lower, dtype=np.int64)[forms.codes] if lower else np.empty(0, np.int64)
        return cls(texts, code, tuple(number), texts.xpos)

    @cached_property
    def _code_of(self) -> dict[str, int]:
        return {word: at for at, word in enumerate(self.words)}

    @cached_property
    def text(self) -> Ints:
        """(tokens,) the text of each token."""
        return self.texts.token_text

    def word(self, token: int) -> str:
        """Return a token in lower case."""
        return self.words[int(self.code[token])]

    def is_word(self, *words: str) -> Bools:
        """Mark the tokens that are one of these words, ignoring case."""
        return self.is_one_of(words)

    def is_one_of(self, words: Collection[str]) -> Bools:
        """Mark the tokens that are one of a list's words, ignoring case."""
        chosen = mask_at(len(self.words) + 1, [self._code_of.get(word, -1) for word in words])
        chosen[-1] = False
        return chosen[self.code]

    def ends_with(self, *endings: str) -> Bools:
        """Mark the tokens whose lower-case form has one of these endings."""
        return np.array([word.endswith(endings) for word in self.words], dtype=np.bool_)[self.code]

    def has_tag(self, *tags: str) -> Bools:
        """Mark the tokens with one of these tags; "VB*" matches all tags that begin with "VB"."""
        exact = {tag for tag in tags if not tag.endswith("*")}
        begins = tuple(tag[:-1] for tag in tags if tag.endswith("*"))
        return self.tags.where(
            [name in exact or bool(begins and name.startswith(begins)) for name in self.tags.names]
        )

    def near(self, marked: Bools, offset: int) -> Bools:
        """Mark the tokens with a marked token of the same text ``offset`` positions later."""
        found = np.zeros_like(marked)
        size = marked.size
        if abs(offset) >= size:
            return found
        here = slice(max(-offset, 0), size - max(offset, 0))
        there = slice(max(offset, 0), size - max(-offset, 0))
        found[here] = marked[there] & (self.text[here] == self.text[there])
        return found

    @cached_property
    def first(self) -> Bools:
        """Mark the first token of each text."""
        found = np.zeros(self.code.size, dtype=np.bool_)
        starts = self.texts.token_start
        found[starts[:-1][np.diff(starts) > 0]] = True
        return found

    def in_text(self, marked: Bools) -> Bools:
        """Return (texts,) whether a text has a marked token."""
        return self.count(marked) > 0

    def count(self, marked: Bools) -> Ints:
        """Return (texts,) the number of marked tokens of each text."""
        return np.bincount(self.text[marked], minlength=len(self.texts)).astype(np.int64)

    def words_at(self, token: Ints, offset: int) -> list[str]:
        """Return the lower-case words ``offset`` positions from some tokens, "" beyond the text."""
        at = np.clip(token + offset, 0, max(self.code.size - 1, 0))
        inside = (at == token + offset) & (self.text[at] == self.text[token])
        return [
            self.words[code] if there else NO_WORD
            for code, there in zip(self.code[at].tolist(), inside.tolist(), strict=True)
        ]

    def words_behind(self, tokens: Ints) -> list[str]:
        """Return the next word after each of some tokens as in the text, skipping punctuation."""
        starts, ends = self.texts.start, self.texts.end
        bounds = self.texts.token_start
        found = []
        texts = self.texts.text.take(self.text[tokens]).to_pylist() if tokens.size else []
        for token, row, text in zip(
            tokens.tolist(), self.text[tokens].tolist(), texts, strict=True
        ):
            following = (text[starts[at] : ends[at]] for at in range(token + 1, bounds[row + 1]))
            found.append(next((word for word in following if word[0].isalnum()), ""))
        return found


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


PACKAGE = "builders.function_words"

FINITE = ("VBD", "VBZ", "VBP", "MD")
_OPENS = "^[\"“‘'(\\[]*[A-Z0-9]"
_ENDS = "[.?!][\"”’')\\]]*$"
_ODD = (
    r"[@<>=|*_~^\\{}\[\]/#]|https?:|www\.|--|\.\.|…|\?[?!]|![?!]| [-–—]$|\x{fffd}|[\x{80}-\x{9f}]"
    r"|[.?!][\"”’')]* +[A-Z0-9]?[^.?!]*[.?!][\"”’')\]]*$"
    r"|\d{5}|\d:\d\d|\w- | -\w| [”’]|[“‘] "
)
"""Addresses, markup, broken-off text, damaged characters, or a second sentence in the text."""

_SPEAKER = r"^[\"“]?(?:[\w.'’]+ ?){1,4}:|^(?:Hi|Hello|Dear|Hey)\b"

_SPOKEN = ("UH", "FW", "LS", "SYM", "GW", "ADD", "NFP", "XX", "AFX")
"""Tags of interjections, foreign words, list marks and non-words."""


def unnatural(tagged: TaggedTexts, fewest: int, most: int) -> Mapping[str, Bools]:
    """Return which texts are not ordinary sentences: reason -> (texts,) mask.

    Args:
        tagged: the texts.
        fewest: minimum number of tokens of a sentence, including punctuation.
        most: maximum number of tokens.
    """
    texts = tagged.texts
    text = texts.text.cast(pa.large_string())
    length = np.diff(texts.token_start)
    reasons = {
        f"not {fewest} to {most} tokens": (length < fewest) | (length > most),
        "does not begin or end as a sentence": ~(_matches(text, _OPENS) & _matches(text, _ENDS)),
        "holds an address, markup or damaged text": _matches(text, _ODD),
        "begins with the name of a speaker, or a salutation": _matches(text, _SPEAKER),
        "unbalanced quotation marks or brackets": _unbalanced(text),
        "mostly capitals": _shouted(tagged),
        "begins with a title, or holds one": _titled(tagged),
        "no finite verb, or none with a subject": ~_has_clause(tagged),
        "broken-off or disfluent speech": _disfluent(tagged),
    }
    return reasons


def natural_sentences(
    tagged: TaggedTexts, fewest: int, most: int, dropped: DropLog, *, screen: bool
) -> Bools:
    """Mark the sentences that may be shown, and count the others by reason.

    Args:
        tagged: the sentences.
        fewest: minimum number of tokens.
        most: maximum number of tokens.
        dropped: counts of sentences, added to.
        screen: whether to drop offensive sentences.
    """
    reasons = unnatural(tagged, fewest, most)
    tests = {f"sentences: {reason}": wrong for reason, wrong in reasons.items()}
    if screen:
        tests[OFFENSIVE] = offensive_texts(tagged.texts.text.cast(pa.string()))
    return dropped.sift(tests)


def _matches(text: pa.Array, pattern: str) -> Bools:
    return mask(pc.match_substring_regex(text, pattern))


def _unbalanced(text: pa.Array) -> Bools:
    def count(mark: str) -> Ints:
        return to_numpy(pc.count_substring(text, mark).cast(pa.int64()))

    odd = count('"') % 2 == 1
    for opening, closing in (("(", ")"), ("“", "”")):
        odd |= count(opening) != count(closing)
    # Single quotation marks that are not apostrophes, and the quotation marks of LaTeX.
    return np.asarray(odd | _matches(text, r"(?:^|[\s(])['‘]|``|''|['’](?:[\s.,;:)]|$)"))


def _shouted(tagged: TaggedTexts) -> Bools:
    names = tagged.texts.forms.names
    upper = tagged.texts.forms.where([len(name) > 1 and name.isupper() for name in names])
    words = tagged.texts.forms.where([name[:1].isalpha() for name in names])
    capital = tagged.texts.forms.where([name[:1].isupper() for name in names])
    total = np.maximum(tagged.count(words), 1)
    return np.asarray(
        (tagged.count(upper & words) * 5 > total) | (tagged.count(capital & words) * 2 > total)
    )


def _titled(tagged: TaggedTexts) -> Bools:
    """Mark texts with a capitalized word that is neither a name nor the beginning of a sentence."""
    capital = tagged.texts.forms.where([name[:1].isupper() for name in tagged.texts.forms.names])
    plain = tagged.has_tag("VB*", "MD", "RB", "IN", "DT", "PRP", "CC", "WRB", "WP", "PRP$", "TO")
    opens = tagged.near(~tagged.has_tag("NN*", "VB*", "JJ*", "RB", "IN", "DT", "PRP*", "CC"), -1)
    odd = capital & plain & ~tagged.first & ~opens & ~tagged.is_word("i")
    return tagged.in_text(odd)


def _has_clause(tagged: TaggedTexts) -> Bools:
    finite = tagged.has_tag(*FINITE)
    nominal = tagged.has_tag("NN*", "PRP", "EX", "DT", "WP", "CD", "WDT")
    return tagged.in_text(finite) & tagged.in_text(nominal)


def _disfluent(tagged: TaggedTexts) -> Bools:
    repeated = np.zeros(tagged.code.size, dtype=np.bool_)
    if tagged.code.size > 1:
        repeated[1:] = tagged.code[1:] == tagged.code[:-1]
        repeated &= ~tagged.first & ~tagged.is_word("had", "that", "very", "so")
    marked = tagged.has_tag(*_SPOKEN) | repeated | tagged.is_one_of(word_list("spoken", PACKAGE))
    return tagged.in_text(marked)
