"""Names of tasks: what other harnesses and the Hub call a split of a config of a probe."""

from __future__ import annotations

import re


def task_name(*parts: str) -> str:
    """Join words to a name that every harness accepts: letters, digits and underscores.

    >>> task_name("wordnet hypernymy", "no-language")
    'kbprobe_wordnet_hypernymy_no_language'
    """
    return re.sub(r"\W+", "_", "_".join(("kbprobe", *parts)), flags=re.ASCII).lower()
