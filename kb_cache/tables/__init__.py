"""Tables of facts that users state."""

SUFFIXES = (".csv", ".tsv", ".jsonl", ".parquet")
"""The endings of files that can be read; all may be followed by ``.gz``."""


def is_table(name: str) -> bool:
    """Return whether a file name is that of a table that can be read.

    >>> is_table("facts.csv"), is_table("facts.tsv.gz"), is_table("facts.py")
    (True, True, False)
    """
    return name.lower().removesuffix(".gz").endswith(SUFFIXES)
