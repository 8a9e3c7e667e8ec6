"""Names of tasks: what other harnesses and the Hub call a split of a config of a probe."""

from __future__ import annotations

import re

from kbprobe.format.setups import DEFAULT_CONFIG

TEST = "test"
"""The split that tasks evaluate unless they say otherwise."""


def task_name(
    probe: str,
    config: str = DEFAULT_CONFIG,
    split: str = TEST,
    published_as: str = DEFAULT_CONFIG,
) -> str:
    """Return the task of a split: letters, digits and underscores, which every harness accepts.

    Args:
        probe: the probe's name.
        config: one of its configs.
        split: the split that is evaluated.
        published_as: the probe's name in a repository of several probes.

    >>> task_name("wordnet hypernymy", "no-language")
    'kbprobe_wordnet_hypernymy_no_language'
    >>> task_name("wordnet_hypernymy", split="train", published_as="italian")
    'kbprobe_wordnet_hypernymy_train_italian'
    """
    parts = ["kbprobe", probe]
    parts += [config] if config != DEFAULT_CONFIG else []
    parts += [split] if split != TEST else []
    parts += [published_as] if published_as != DEFAULT_CONFIG else []
    return re.sub(r"\W+", "_", "_".join(parts), flags=re.ASCII).lower()
