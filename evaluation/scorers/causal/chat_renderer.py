"""Renders chats, one line of JSON each, in a process started by `evaluation.scorers.causal`.

The first line contains the template and what it refers to, every other line a chat. Each is
answered with a line: ``{"text": ...}`` or ``{"error": ...}``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import datetime, tzinfo
from typing import Any

MEMORY = 1 << 30
"""Memory limit of this process in bytes, on systems that support one."""
CHARACTERS = 1 << 17
"""Maximum number of characters of a rendered chat, beyond those of its messages."""


def answered(render: Callable[..., Any], setting: dict[str, Any], chat: Any) -> dict[str, str]:
    """Return the answer to one line."""
    try:
        (text,), _ = render(conversations=[chat], add_generation_prompt=True, **setting)
    except MemoryError:
        return {"error": f"writing a chat took more than {MEMORY:,} bytes of memory"}
    except Exception as error:  # templates come from others: any error is possible
        line = getattr(error, "lineno", None)
        place = f"line {line}: " if line else ""
        said = str(error).splitlines() or [""]
        return {"error": f"{place}{type(error).__name__}: {said[0]:.300}"}
    most = CHARACTERS + sum(len(message["content"]) for message in chat)
    if len(text) > most:
        return {"error": f"a chat became {len(text):,} characters long, and at most {most:,} fit"}
    return {"text": text}


def main() -> None:
    """Answer line by line until the input ends."""
    from transformers.utils import chat_template_utils

    try:
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    except (ImportError, OSError, ValueError):  # not on this system
        pass
    setting = json.loads(sys.stdin.buffer.readline())
    day = datetime.fromisoformat(setting.pop("day"))

    class Clock(datetime):
        """The clock that templates are told the time of: it is always midnight of the day."""

        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Any:
            """Return the beginning of the day."""
            return day

    # The template's function strftime_now reads it; one given as an argument is not called.
    vars(chat_template_utils)["datetime"] = Clock
    render = chat_template_utils.render_jinja_template
    print("{}", flush=True)
    for line in sys.stdin.buffer:
        print(
            json.dumps(answered(render, setting, json.loads(line))),
            flush=True,
        )


if __name__ == "__main__":
    main()
