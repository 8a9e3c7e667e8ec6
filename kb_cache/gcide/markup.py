r"""The characters of GCIDE's files: entities (``<ae/``), escapes (``\'94``) and comments.

An entity is an opening angle, a name and a slash; nothing closes it. What follows it up to the
next angle is ordinary text, which a reader that takes it for a tag would lose.
"""

from __future__ import annotations

import re
import unicodedata

#: Stands for a character that the typists could not read (``<?/``).
ILLEGIBLE = "�"

_COMMENT = re.compile(r"<!?--.*?-->|<!(?!--).*?!>", re.DOTALL)
_ENTITY = re.compile(r"<(\?|[A-Za-z][A-Za-z0-9]{0,11})/>?")
_ESCAPE = re.compile(r"\\'([0-9a-f]{2})")

# fmt: off
_NAMED = {
    "?": ILLEGIBLE, "br": "\n", "ae": "æ", "AE": "Æ", "oe": "œ", "OE": "Œ", "edh": "ð",
    "EDH": "Ð", "thorn": "þ", "THORN": "Þ", "yogh": "ȝ", "th": "th", "nsc": "ɴ", "nsm": "ṉ",
    "schwa": "ə", "lt": "<", "gt": ">", "amp": "&", "pound": "£", "deg": "°", "middot": "·",
    "prime": "′", "bprime": "″", "sec": "″", "min": "′", "mdash": "—", "ndash": "–",
    "ldquo": "“", "rdquo": "”", "lsquo": "‘", "rsquo": "’", "frac12": "½", "frac13": "⅓",
    "frac14": "¼", "frac23": "⅔", "frac34": "¾", "frac18": "⅛", "divide": "÷", "times": "×",
    "root": "√", "rarr": "→", "sharp": "♯", "flat": "♭", "natural": "♮", "sect": "§",
    "para": "¶", "dag": "†", "ddag": "‡", "hand": "", "par": "", "cre": "˘", "oomac": "o͞o",
    "oocr": "o͝o", "sigmat": "ς", "sum": "∑", "infin": "∞", "star": "★", "aemac": "ǣ",
    "oemac": "ō", "or": "or", "and": "and",
    "asl": "a", "esl": "e", "isl": "i", "osl": "o", "usl": "u",
    "ait": "a", "eit": "e", "iit": "i", "oit": "o", "uit": "u",
}
#: Endings of entities that put a mark on a letter: ``amac`` is ā.
_MARKS = {
    "acute": "\u0301", "grave": "\u0300", "cir": "\u0302", "til": "\u0303", "um": "\u0308",
    "uml": "\u0308", "mac": "\u0304", "smac": "\u0304", "cr": "\u0306", "car": "\u030c",
    "ring": "\u030a", "dot": "\u0307", "sdot": "\u0323", "ced": "\u0327", "dd": "\u0324",
}
#: Characters of the old font, by their code.
_FONT = {
    0x80: "Ç", 0x81: "ü", 0x82: "é", 0x83: "â", 0x84: "ä", 0x85: "à", 0x86: "å", 0x87: "ç",
    0x88: "ê", 0x89: "ë", 0x8A: "è", 0x8B: "ï", 0x8C: "î", 0x8D: "ì", 0x8E: "Ä", 0x8F: "Å",
    0x90: "É", 0x91: "æ", 0x92: "Æ", 0x93: "ô", 0x94: "ö", 0x95: "ò", 0x96: "û", 0x97: "ù",
    0x98: "ÿ", 0x99: "Ö", 0x9A: "Ü", 0x9C: "£", 0xA0: "á", 0xA1: "í", 0xA2: "ó", 0xA3: "ú",
    0xA4: "ñ", 0xA5: "Ñ", 0xA6: "⅔", 0xA7: "⅓", 0xA9: "″", 0xAB: "½", 0xAC: "¼",
    0xB0: ILLEGIBLE, 0xB5: "", 0xB6: "″", 0xB7: "′", 0xB8: "”", 0xBA: "", 0xBC: "§", 0xBD: "“",
    0xBE: "ā", 0xBF: "‘", 0xC0: "ṉ", 0xC1: "♯", 0xC2: "♭", 0xC3: "–", 0xC4: "—", 0xC5: "t",
    0xC6: "ī", 0xC7: "ē", 0xC8: "ḍ", 0xC9: "ṇ", 0xCA: "ṭ", 0xCB: "ĕ", 0xCC: "ĭ", 0xCE: "ŏ",
    0xCF: "-", 0xD0: "—", 0xD1: "Œ", 0xD2: "œ", 0xD3: "ō", 0xD4: "ū", 0xD5: "ǒ", 0xD6: "ǣ",
    0xD7: "ō", 0xD8: "", 0xDC: "ŭ", 0xDD: "ă", 0xDE: "˘", 0xDF: "ȳ", 0xE0: "a", 0xE1: "e",
    0xE2: "i", 0xE3: "o", 0xE4: "u", 0xE5: "ȧ", 0xE6: "μ", 0xE7: "h", 0xEB: "ð", 0xED: "þ",
    0xEE: "ã", 0xEF: "ṅ", 0xF0: "ṛ", 0xF4: "ȝ", 0xF5: "—", 0xF6: "÷", 0xF7: "≈", 0xF8: "°",
    0xF9: "·", 0xFA: "·", 0xFB: "√",
}
# fmt: on


_BLANK = re.compile(r"\s{1000,}")


def entity(name: str) -> str | None:
    """Return the characters that an entity stands for, None if it is unknown.

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
    """Replace entities and escapes by what they stand for, and remove comments; tags stay.

    An unknown entity becomes `ILLEGIBLE`, so that the gap is visible.
    """

    def replace(match: re.Match[str]) -> str:
        found = entity(match[1])
        if found is None:
            return ILLEGIBLE
        # A decoded angle must not be taken for the beginning of a tag.
        return {"<": "‹", ">": "›"}.get(found, found)

    # Of a damaged file: it would keep some patterns busy for hours.
    text = _BLANK.sub(" ", text)
    text = _ENTITY.sub(replace, _COMMENT.sub("", text))
    return _ESCAPE.sub(lambda match: _FONT.get(int(match[1], 16), ILLEGIBLE), text)
