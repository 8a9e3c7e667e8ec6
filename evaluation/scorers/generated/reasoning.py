"""Reasoning that models write before an answer, and the markers between the two.

Models mark reasoning with tags (``<think>``), special tokens (``<|START_THINKING|>``), or channels
(``<|channel|>analysis``; without special tokens ``analysis...assistantfinal``). Templates may write
the opening marker at the end of the prompt, so that an answer holds the closing one alone.
"""

from __future__ import annotations

import re

_TAG = r"(?:think|thinking|thought|reasoning|seed:think)"
_OPENING = (
    rf"(?i:<{_TAG}>)|\[THINK\]|<\|START_THINKING\|>|<\|begin_of_thought\|>|◁think▷"
    r"|<\|channel>thought|<\|channel\|>(?:\s*analysis\s*<\|message\|>)?"
)
_CLOSING = (
    rf"(?i:</{_TAG}>)|\[/THINK\]|<\|END_THINKING\|>|<\|end_of_thought\|>|◁/think▷|<channel\|>"
    r"|<\|channel\|>\s*final\b[^<]*(?:<\|constrain\|>[^<]*)?<\|message\|>"
)
_MARKER = re.compile(
    rf"(?P<closing>{_CLOSING}|assistantfinal|\Afinal(?=[A-Z(*{{\\]))"
    rf"|(?P<opening>{_OPENING}|\Aanalysis(?=\w))"
)
_OPENED = re.compile(rf"(?:{_OPENING})\s*\Z")
_OF_MARKER = re.compile(rf"{_OPENING}|{_CLOSING}|<\|message\|>")
_ENDING = re.compile(r"<\|(?:end|return|call|START_RESPONSE|END_RESPONSE|im_end|eot_id)\|>")


def without_reasoning(text: str) -> str:
    r"""Return what follows the last marker that ends reasoning; "" if reasoning does not end.

    >>> without_reasoning("At first the answer is A ... </think>\n\nB")
    'B'
    >>> without_reasoning("<|channel|>analysis<|message|>A?<|end|><|channel|>final<|message|>B")
    'B'
    >>> without_reasoning("<think>The answer is A")
    ''
    """
    start = 0
    for marker in _MARKER.finditer(text):
        start = len(text) if marker["opening"] else marker.end()
    return _ENDING.sub("", text[start:]).strip()


def opened_reasoning(prompt: str) -> str:
    """Return the marker with which a prompt ends, if it leaves reasoning open; otherwise ""."""
    found = _OPENED.search(prompt[-100:])
    return found[0] if found else ""


def is_marker(token: str) -> bool:
    """Return whether a special token is a marker of reasoning, or a part of one."""
    return _OF_MARKER.fullmatch(token) is not None
