"""Reading the original files of GCIDE, ``CIDE.A`` to ``CIDE.Z``.

The markup resembles SGML, but tags are left open or closed twice, and entities are written
``<ae/``. So a paragraph is read tag by tag: an opening tag that is not allowed where it occurs
closes what was left open, a closing tag without an opening one is ignored, and no tag stays open
across paragraphs. No text of a definition or quotation is lost by that. Phrases (``cs``), notes and
etymologies are left out on purpose.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

from kb_cache.gcide.markup import decode
from kb_cache.gcide.source import RawEntry, RawSense

_PARAGRAPH = re.compile(r"<p>(.*?)(?=</p>|<p>|\Z)", re.DOTALL)
_TAG = re.compile(r"<(/?)([A-Za-z][\w.]*)>")
_QUOTED = re.compile(r"“([^“”]+)”")

#: Tags whose text we keep, each by itself.
_KEPT = frozenset(("ent", "hw", "pos", "fld", "mark", "def", "as", "illu", "q", "qau", "au"))
#: Tags whose whole content is left out. Phrases (``cs``) have definitions of their own.
_LEFT_OUT = frozenset((
    "ety", "pr", "cs", "note", "syn", "vmorph", "nmorph", "amorph", "altsp", "source", "wordforms",
    "wf", "plu", "pluf", "sing", "singf", "table", "usage", "sd", "sn", "comm", "centered", "ant",
    "figure", "img", "cas", "hypen",
))  # fmt: skip
#: Tags that begin a part of the entry: they close whatever is open but these containers.
_PARTS = frozenset(("ent", "hw", "sn", "def", "q", "qau", "cs", "note", "syn", "source"))
_CONTAINERS = frozenset(("mhw", "def2", "rj", "cs", "note", "wordforms", "table", "usage", "syn"))
#: Of the parts, those that also stand within another kept part.
_INNER = {"q": "def", "ent": "ent"}


def read_tagged(files: Mapping[str, bytes], unknown: Counter[str]) -> Iterator[RawEntry]:
    """Yield the entries of all files (UTF-8, or else Latin-1), in their order.

    ``unknown`` counts the names of the entities that are not known.
    """
    for content in files.values():
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError:
            text = content.decode("latin-1")
        yield from _entries(decode(text, unknown))


class _Reader:
    """Assembles entries from the pieces of paragraphs."""

    def __init__(self) -> None:
        self.done: list[RawEntry] = []
        self.senses: list[RawSense] = []
        self.word = self.pos = self.field = ""
        self.in_phrases = self.headed = False

    def flush(self) -> None:
        """End the entry that is being read."""
        if self.word and self.senses:
            self.done.append(RawEntry(self.word, self.pos, self.senses))
        self.senses = []

    def take(self, tag: str, text: str) -> None:
        """Take a piece: the text of a kept tag, or of none ("")."""
        text = text.strip()
        sense = self.senses[-1] if self.senses and not self.in_phrases else None
        if tag in ("ent", "hw"):
            self.headword(tag, text)
        elif tag == "pos":
            self.part_of_speech(text)
        elif tag == "cs":
            self.in_phrases = True
        elif tag == "fld":
            self.field = text.strip(" ()[]")
        elif tag == "def":
            # The bracket of a source's label, where the definition was left open.
            self.senses.append(RawSense(text.removesuffix("[").strip(), field=self.field))
            self.in_phrases, self.field = False, ""
        elif sense is None:
            return
        elif tag in ("as", "illu"):
            sense.usage.append(re.sub(r"^as,\s+", "", text.strip(" ;,.")))
        elif tag == "mark":
            sense.mark = sense.mark or text.strip(" []")
        elif tag == "q":
            sense.quotations.append((text, ""))
        elif tag == "":
            sense.quotations += [(quoted, "") for quoted in _QUOTED.findall(text)]
        elif sense.quotations and not sense.quotations[-1][1]:
            sense.quotations[-1] = (sense.quotations[-1][0], text)

    def headword(self, tag: str, text: str) -> None:
        word = text if tag == "ent" else re.sub(r"[\"*`‖″′]", "", text)
        # Of several headwords of one paragraph the first stands for all: the same definition
        # under two words would be two right answers to one question.
        if self.headed and not self.senses:
            self.word = self.word or word
            return
        self.flush()
        self.word, self.pos, self.headed, self.in_phrases = word, "", True, False

    def part_of_speech(self, text: str) -> None:
        if self.senses:
            self.flush()
            self.pos = text
        else:
            self.pos = self.pos or text


def _entries(text: str) -> Iterator[RawEntry]:
    reader = _Reader()
    for paragraph in _PARAGRAPH.finditer(text):
        reader.headed, reader.field = False, ""
        for tag, piece in _pieces(paragraph[1]):
            reader.take(tag, piece)
        yield from reader.done
        reader.done.clear()
    reader.flush()
    yield from reader.done


def _pieces(paragraph: str) -> Iterator[tuple[str, str]]:
    """Cut a paragraph into ``(kept tag, text)``; the tag is "" for text outside of any.

    A definition comes before the pieces (usage, mark) that stand within it.
    """
    open_tags: list[str] = []
    texts: list[tuple[str, list[str]]] = [("", [])]
    held: list[tuple[str, str]] = []

    def close(down_to: int) -> Iterator[tuple[str, str]]:
        while len(open_tags) > down_to:
            tag = open_tags.pop()
            if texts[-1][0] == tag and tag in _KEPT:
                name, parts = texts.pop()
                piece = (name, "".join(parts))
                if any(outer == "def" for outer, _ in texts):
                    held.append(piece)
                    continue
                yield piece
                yield from held
                held.clear()

    def loose() -> Iterator[tuple[str, str]]:
        if texts[0][1]:
            yield "", "".join(texts[0][1])
            texts[0][1].clear()

    position = 0
    for match in _TAG.finditer(paragraph):
        _keep(paragraph[position : match.start()], open_tags, texts)
        position = match.end()
        tag = match[2].lower()
        if match[1]:
            if tag in open_tags:
                yield from close(len(open_tags) - 1 - open_tags[::-1].index(tag))
            continue
        if tag in _PARTS:
            yield from close(_standing(open_tags, tag))
        if tag in ("sn", "def", "q", "au", "cs") and not _left_out(open_tags):
            yield from loose()
        if tag == "cs" and not _left_out(open_tags):
            yield "cs", ""
        if tag in _KEPT and not _left_out(open_tags) and not _plain_inside(tag, texts):
            texts.append((tag, []))
        open_tags.append(tag)
    _keep(paragraph[position:], open_tags, texts)
    yield from close(0)
    yield from loose()


def _standing(open_tags: list[str], tag: str) -> int:
    """How many of the open tags can hold ``tag``: the containers, counted from outside."""
    for depth, outer in enumerate(open_tags):
        if outer not in _CONTAINERS and _INNER.get(tag) != outer:
            return depth
    return len(open_tags)


def _left_out(open_tags: list[str]) -> bool:
    return any(tag in _LEFT_OUT for tag in open_tags)


def _plain_inside(tag: str, texts: list[tuple[str, list[str]]]) -> bool:
    """Whether a tag is a mere change of type where it stands: "Same as Dog, <pos>n.</pos>"."""
    return len(texts) > 1 and tag in ("pos", "ent", "hw", "fld")


def _keep(text: str, open_tags: list[str], texts: list[tuple[str, list[str]]]) -> None:
    if text and not _left_out(open_tags):
        texts[-1][1].append(text)
