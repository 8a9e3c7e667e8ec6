"""The texts of GCIDE: its characters, and what is removed, split off, or rejected as damaged.

The texts come from three places (Webster 1913, WordNet 1.5, volunteers), which differ in style.
Cleaned definitions have one form: a capital at the beginning, a full stop at the end, no label, no
cross-reference, no usage. Otherwise a missing full stop would reveal that a usage followed.

An entity is an opening angle, a name and a slash; nothing closes it. What follows it up to the
next angle is ordinary text, which a reader that takes it for a tag would lose.
"""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

import yaml

#: Represents a character that the typists could not read (``<?/``).
ILLEGIBLE = "�"

_COMMENT = re.compile(r"<!?--.*?-->|<!(?!--).*?!>", re.DOTALL)
_ENTITY = re.compile(r"<(\?|[A-Za-z][A-Za-z0-9]{0,11})/>?")
_ESCAPE = re.compile(r"\\'([0-9a-f]{2})")

_CHARACTERS = yaml.safe_load(
    Path(__file__).with_name("data").joinpath("characters.yaml").read_text(encoding="utf-8")
)
_NAMED: dict[str, str] = _CHARACTERS["named"]
#: Endings of entities that put a mark on a letter: ``amac`` is ā.
_MARKS: dict[str, str] = _CHARACTERS["marks"]
#: Characters of the old font, by their code.
_FONT: dict[int, str] = _CHARACTERS["font"]


_BLANK = re.compile(r"\s{1000,}")


def entity(name: str) -> str | None:
    """Return the characters that an entity represents, or None if it is unknown.

    >>> entity("ae"), entity("amac"), entity("OMEGA"), entity("qqq")
    ('æ', 'ā', 'Ω', None)
    """
    if name in _NAMED:
        return _NAMED[name]
    letter, mark = name[:1], _MARKS.get(name[1:])
    if mark is not None:
        return unicodedata.normalize("NFC", letter + mark)
    size = "CAPITAL" if name.isupper() else "SMALL"
    try:
        return unicodedata.lookup(f"GREEK {size} LETTER {name.upper()}")
    except KeyError:
        return None


def decode(text: str) -> str:
    """Replace entities and escapes by the characters they represent, and remove comments.

    An unknown entity becomes `ILLEGIBLE`, so that the gap is visible.
    """

    def replace(match: re.Match[str]) -> str:
        found = entity(match[1])
        if found is None:
            return ILLEGIBLE
        # A decoded angle bracket must not be mistaken for the beginning of a tag.
        return {"<": "‹", ">": "›"}.get(found, found)

    # From a damaged file; some patterns would take hours on it.
    text = _BLANK.sub(" ", text)
    if "<" in text:
        text = _ENTITY.sub(replace, _COMMENT.sub("", text))
    return _ESCAPE.sub(lambda match: _FONT.get(int(match[1], 16), ILLEGIBLE), text)


_POS_WORDS = {
    "n": "noun", "vb. n": "noun", "v": "verb", "imp": "verb", "p. p": "verb", "p. pr": "verb",
    "pret": "verb", "imperative": "verb", "p. a": "adjective", "p.a": "adjective",
    "a": "adjective", "adj": "adjective", "superl": "adjective", "compar": "adjective",
    "adv": "adverb", "ads": "adverb",
}  # fmt: skip
_POS_START = re.compile(
    r"(?:(?:prop|pr|peop|obs|strong|pred|rare|postnominal|interrog)\.?\s+)*"
    r"(vb\. n|p\. pr|p\. p|p\.? ?a|imperative|imp|pret|adverb|adv|ads|adj|superl|compar|n|v|a)\b",
    re.IGNORECASE,
)
_PERSON = re.compile(r"(?:third|[123](?:st|d|rd)\.?) (?:(?:&|and) |[123]d )*(?:pers?|sing|pres)")

_SOURCE = r"(?:\d{4} Webster|Webster \d{4}(?: Suppl\.?)?|WordNet \d\.\d|PJC|Century(?: Dict\.?)?)"
#: The label of a passage's source, which an extractor left in or cut in half.
_SOURCE_LABEL = re.compile(rf"\[?\s*\+?{_SOURCE}\s*\]|\[\s*{_SOURCE}\b")

_SENSE_NUMBER = re.compile(r"\{[^{}]{1,12}\}")
_ELLIPSIS = re.compile(r"\.(?: \.){2,3}(?!\w)")
_SPACE = re.compile(r"\s+")
_SPACE_BEFORE = re.compile(r" +([,;:!?)\]]|\.(?!\.))")
_BRACKETS = re.compile(r"\s*\[([^\[\]]*)\]")
_FIELD = re.compile(r"\(([A-Z][A-Za-z.,& ]{1,40})\)\s*(?=[A-Z])")
_LABEL_DASH = re.compile(r";\s*--\s*")
_DASH = re.compile(r"\s*--\s*|\s*—\s*")
_AFTER_BRACKET = re.compile(r"([([]) +")
_EMPTY_PART = re.compile(r"[;,:]+(?=[;.])")
_STRAY_STOP = re.compile(r"(?<=[a-z]{4})\.,")
_DOUBLE_STOP = re.compile(r"\.{2}(?!\.)(?<!\.{3})")
_NUMBERING = re.compile(r"\(?\b[a-z0-9]\)")
_STRAY = re.compile(r"[<>{}\\]")
_AS = re.compile(r"^\W*(?:as|thus),?\s+")
_AND_SO_ON = re.compile(r",? ?(?:and so on|etc)\.?$")

_VERB = r"(?:see(?: also)?|same as|cf\.|confer|compare)"
_REFERENCE = re.compile(
    rf"(?:^|(?<=[.;:,)\]—-])\s*)(?:(?:or|and|also)\s+)?{_VERB}\s+", re.IGNORECASE
)
_IN_PARENTHESES = re.compile(rf"\s*\({_VERB}\s[^()]*\)", re.IGNORECASE)
_WORD = re.compile(r"[\w'’-]+")
# fmt: off
#: What a reference contains besides names and numbers: "See Dog, n., 2, and Note under Hound."
_CONNECTIVES = frozenset((
    "n", "v", "a", "t", "i", "p", "adj", "adv", "pl", "pr", "vb", "pref", "suff", "prep", "conj",
    "interj", "pron", "imp", "prop", "under", "of", "and", "or", "in", "the", "to", "for", "also",
    "sense", "senses", "def", "definition", "note", "below", "above", "illust", "illustration",
    "vocabulary", "phrase", "phrases", "first", "second", "third", "fourth", "last",
))
#: What precedes "of Feel" if a definition only names the form: "imp. & p. p. of Feel".
_GRAMMAR = frozenset((
    "obs", "imp", "pret", "pl", "plural", "sing", "singular", "pres", "present", "past", "tense",
    "participle", "compar", "comparative", "superl", "superlative", "pers", "indic", "subj",
    "contr", "contraction", "var", "alt", "variant", "form", "spelling", "old", "archaic",
    "obsolete", "alternative", "another", "former", "early", "poss", "possessive", "dat", "nom",
    "obj", "fem", "masc", "imperative", "inf", "strong", "vb", "pr", "p", "n", "a", "v", "t", "i",
    "adv", "an", "the", "1st", "2d", "3d", "3rd", "third", "rare", "and", "or", "dialectal",
    "corruption", "abbreviation", "abbrev",
))
# fmt: on
#: Of these, the ones that are insufficient by themselves: "A form of government".
_WEAK_GRAMMAR = frozenset(("a", "an", "the", "form", "past", "present", "and", "or"))
_OF = frozenset(("of", "from", "for"))
_FORM_STARTS = _GRAMMAR | _OF
_SENTENCE_END = re.compile(r"(?<=[a-z)\]”\"]{2}[.!?])\s+(?=[A-Z(])")

_USAGE = re.compile(r"(?P<open>[;:—.(]|--)\s*(?:as|thus),\s+")
_REMARK = re.compile(
    r"(?:hence|whence|also|especially|esp|specifically|specif|sometimes|often|usually|commonly|"
    r"called|said|used|figuratively|formerly|opposed|distinguished|particularly)\b"
)
_USAGE_END = re.compile(r";?\s+--\s+|(?<=[a-z)]{2})\.\s+(?=[A-Z(])")

_GLUED = re.compile(
    r"[a-z)][,;:!?][A-Za-z]|\. \.[A-Za-z]|[a-z]{2}\.[A-Z][a-z]|"
    r"[a-z]{2}(?<!\bMac)(?<!\bFitz)[A-Z][a-z]"
)
_ADDRESS = re.compile(r"https?:|www\.")
_GAP = re.compile(r"[^\W_]  [^\W_]|,  [^\W_]|\( *\)|\(,|, *,|\( *[;.]")
_HYPHEN_MARKS = re.compile(r"\w[\"`*]\w|[`\"]\w+\*")


def part_of_speech(abbreviation: str) -> str:
    """Return the printed part of speech as one of `kb_cache.gcide.types.POS`; the first counts.

    >>> [part_of_speech(text) for text in ("v. t. & i.", "prop. n. pl.", "adv. & a.", "prep.")]
    ['verb', 'noun', 'adverb', 'other']
    """
    text = _SPACE.sub(" ", abbreviation).strip().lower()
    if _PERSON.match(text):
        return "verb"
    match = _POS_START.match(text)
    return _POS_WORDS.get(match[1], "other") if match else "other"


def printed_part_of_speech(text: str) -> str:
    """Return only the abbreviation, if an extractor ran half of the entry into it.

    >>> printed_part_of_speech("p. p.  Furnished with a chape. [Obs.] Chaucer.")
    'p. p.'
    """
    return _SPACE.sub(" ", re.split(r"  +[A-Z\[]| ?[(\[]| \. |$", text.strip(), maxsplit=1)[0])


#: What `tidy` replaces in turn: a part of every match, the pattern, and its replacement.
_TIDIED = (
    (". .", _ELLIPSIS, "..."),
    ("--", _LABEL_DASH, "; "),
    ("--", _DASH, " — "),
    ("—", _DASH, " — "),
    (" ", _SPACE_BEFORE, r"\1"),
    ("", _EMPTY_PART, ""),
    (" ", _AFTER_BRACKET, r"\1"),
    (".,", _STRAY_STOP, ","),
    ("..", _DOUBLE_STOP, "."),
)


def tidy(text: str) -> str:
    """Normalise spacing, dashes, ellipses and remnants of numbering."""
    text = " ".join(_SENSE_NUMBER.sub("", text).split())
    for sign, pattern, replacement in _TIDIED:
        # Most texts lack most signs, and are not searched for the whole pattern.
        if sign in text:
            text = pattern.sub(replacement, text)
    return text.strip(" ,;:—-")


def damage(text: str) -> str | None:
    """Return why a text cannot be trusted as the source gives it, or None.

    The signs are those of passages that an extractor dropped: words run together at a verse's
    end, a source's label in the middle, brackets that never close, a missing word.
    """
    if ILLEGIBLE in text:
        return "illegible in the source"
    if ("[" in text or "]" in text) and _SOURCE_LABEL.search(text):
        return "cut short"
    if _GLUED.search(text) and not _ADDRESS.search(text):
        return "words run together"
    plain = _SENSE_NUMBER.sub("", text)
    if _STRAY.search(plain) or _HYPHEN_MARKS.search(plain) or _GAP.search(plain):
        return "gap or stray markup"
    if not _balanced(text):
        return "brackets do not match"
    return None


_ALL_BRACKETS = frozenset("()[]")


def _balanced(text: str) -> bool:
    if _ALL_BRACKETS.isdisjoint(text):
        return True
    depth = 0
    # "(a)" and "a)" number the parts of a definition: a lone ")" after them is not an error.
    for char in _NUMBERING.sub("", text):
        depth += (char in "([") - (char in ")]")
        if depth < 0:
            return False
    return depth == 0


def split_usage(definition: str, word: str = "") -> tuple[str, str]:
    """Split "; as, a sly dog; a lazy dog" off a definition.

    The usage ends with the text, with a dash or a word that begins a remark ("hence", "also
    called"), or with a sentence that is followed by another; what comes after it stays with the
    definition. So do phrases between two usages that lack the headword.

    >>> split_usage("A fellow; as, a sly dog; a lazy dog; -- used in contempt. See Hound.")
    ('A fellow; -- used in contempt. See Hound.', 'a sly dog; a lazy dog')
    """
    match = _USAGE.search(definition)
    if match is None:
        return definition, ""
    head, rest = definition[: match.start()].rstrip(), definition[match.end() :]
    if match["open"] == "(":
        usage, closed, tail = rest.partition(")")
        return (f"{head}{tail}", tidy_usage(usage)) if closed else (definition, "")
    end = _USAGE_END.search(rest)
    usage, tail = (rest[: end.start()], rest[end.start() :]) if end else (rest, "")
    remarks, usages = _sort_pieces(usage, word)
    remark = "".join(f"; {text}" for text in remarks) + tail
    if match["open"] == "." and not remark.startswith("."):
        remark = f".{remark}"
    return head + remark, tidy_usage("; ".join(usages))


def _sort_pieces(usage: str, word: str) -> tuple[list[str], list[str]]:
    """Separate usages from the remarks between them: "old rags; hence, sham; as, sham art"."""
    remarks: list[str] = []
    usages: list[str] = []
    pending: list[str] = []
    in_remark = False
    beginning = word[:4]
    for piece in re.split(r";\s*", usage):
        if again := re.match(r"(?:as|thus),\s+", piece):
            # Text between two usages explains the next one, unless it shows the word.
            for between in pending:
                (usages if beginning in between.lower() else remarks).append(between)
            pending, in_remark = [], False
            usages.append(piece[again.end() :])
        elif in_remark or (_REMARK.match(piece) and not (beginning and beginning in piece)):
            in_remark = True
            remarks.append(piece)
        elif usages:
            pending.append(piece)
        else:
            usages.append(piece)
    return remarks, usages + pending


def tidy_usage(usage: str) -> str:
    """Clean a usage that may still begin with "as,"."""
    if not usage:
        return ""
    return _AND_SO_ON.sub("", tidy(_AS.sub("", _BRACKETS.sub("", usage))).rstrip(". "))


def without_references(definition: str) -> str:
    """Remove "See Dog.", "Cf. Hound, n., 2." and similar references, which may leave nothing."""
    definition = _IN_PARENTHESES.sub("", _SENSE_NUMBER.sub("", definition))
    kept = []
    for sentence in _SENTENCE_END.split(definition):
        while (start := _final_reference(sentence)) is not None:
            sentence = sentence[:start]
        if sentence.strip(" .,;:-—"):
            kept.append(sentence)
    return " ".join(kept)


def _final_reference(sentence: str) -> int | None:
    """Return where the reference at the end of a sentence begins, or None."""
    for match in _REFERENCE.finditer(sentence):
        rest = _WORD.findall(sentence[match.end() :])
        # "See Crow blackbird, under Crow": compounds have parts in lower case.
        plain = sum(not _is_referent(word) for word in rest)
        if rest and (len(rest) <= 3 or plain <= len(rest) // 4):
            return match.start()
    return None


def _is_referent(word: str) -> bool:
    return not word[0].islower() or word.lower() in _CONNECTIVES


def is_form_of(definition: str) -> bool:
    """Return whether a definition only says of which word this is a form.

    >>> [is_form_of(text) for text in ("imp. & p. p. of Feel.", "Of Feel.", "Of low rank.")]
    [True, True, False]
    """
    plain = re.sub(r"\([^()]*\)", "", definition)
    first = _WORD.search(plain)
    if first is None or first[0].lower() not in _FORM_STARTS:
        return False
    words = _WORD.findall(plain)
    at = next((i for i, word in enumerate(words) if word.lower() not in _GRAMMAR), len(words))
    if at >= len(words) - 1 or words[at].lower() not in _OF:
        return False
    rest = words[at + 1 :]
    if at == 0:
        return rest[0][0].isupper() and all(word.lower() in _CONNECTIVES for word in rest[1:])
    strong = any(word.lower() not in _WEAK_GRAMMAR for word in words[:at])
    return strong and (len(rest) == 1 or all(map(_is_referent, rest)))


def split_labels(definition: str) -> tuple[str, str, str]:
    """Take "(Bot.)" from the front of a definition and "[Obs.]" from anywhere in it.

    Returns:
        The definition without them, the field and the mark; "" for missing ones.
    """
    field = ""
    if match := _FIELD.match(definition):
        field, definition = match[1], definition[match.end() :]
    marks = [mark for mark in _BRACKETS.findall(definition) if len(mark) <= 30]
    return _BRACKETS.sub("", definition), field, marks[0].strip() if marks else ""


def finish(definition: str) -> str:
    """Return a definition with an initial capital and a full stop."""
    definition = tidy(definition).rstrip(" ,;:—-")
    if not definition:
        return ""
    if definition[-1] not in ".!?":
        definition = definition.rstrip(".") + "."
    return definition[0].upper() + definition[1:]
