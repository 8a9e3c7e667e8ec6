"""Bounds of options and of names of files."""

import pytest

from kbprobe.errors import UsageError
from kbprobe.files.locks import is_shortened, short_name
from release.annotation.options import SheetOptions


@pytest.mark.parametrize("value", [{"batch": 10**21}, {"n": 10**23}, {"seed": "1" + "0" * 20}])
def test_integers_that_no_file_can_keep_are_refused(value):
    with pytest.raises(UsageError, match=f"--{next(iter(value))}: must be at most"):
        SheetOptions.parse(value, "annotate")


def test_long_names_are_cut_between_characters():
    name = short_name("é" * 120)
    assert name.encode().decode() == name
    assert is_shortened(name)
