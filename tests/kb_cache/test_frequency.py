"""Word frequencies: wordfreq's numbers, whether its files are read directly or by the package."""

from __future__ import annotations

import gzip
from importlib.machinery import ModuleSpec
from pathlib import Path

import msgpack
import pytest
import wordfreq

from kb_cache import frequency


@pytest.mark.parametrize("language", ["en", "it"])
def test_frequencies_are_those_of_wordfreq(language: str) -> None:
    lists = frequency._words_by_frequency(language)
    assert lists == wordfreq.get_frequency_list(language, wordlist="best")
    words = [words[-1] for words in lists if words and words[-1].isalpha()][::40]
    expected = [wordfreq.zipf_frequency(word, language) for word in words]
    found = frequency.zipf_frequencies(words, language)
    assert found.tolist() == pytest.approx(expected, abs=0.01)


def test_files_of_another_layout_are_left_to_wordfreq(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = wordfreq.get_frequency_list("en", wordlist="best")
    spec = ModuleSpec("wordfreq", None, is_package=True)
    spec.submodule_search_locations = [str(tmp_path)]
    monkeypatch.setattr(frequency, "find_spec", lambda _: spec)
    assert frequency._words_by_frequency("en") == expected, "there is no such file"
    (tmp_path / "data").mkdir()
    with gzip.open(tmp_path / "data" / "large_en.msgpack.gz", "wb") as file:
        file.write(msgpack.packb([{"format": "cB", "version": 2}, ["odd"]]))
    assert frequency._words_by_frequency("en") == expected, "it is of another version"
