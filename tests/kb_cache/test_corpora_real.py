"""The corpora as they are published: MASC, RTE and Universal Dependencies English EWT."""

from __future__ import annotations

import gzip
import zipfile
from pathlib import Path

import numpy as np
import pytest

from kb_cache.corpora.load import load_corpora, load_corpus
from kb_cache.corpora.tagged import detokenise
from kb_cache.corpora.types import Corpus
from kb_cache.fetching import fetch
from kb_cache.snapshot import read_info
from kb_cache.store import find
from tests.real_data import beside

pytestmark = pytest.mark.real_data
MASC = ("nltk_data", "corpora", "masc_tagged.zip")


@pytest.fixture(scope="module")
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("corpora")


@pytest.fixture
def in_cache(cache_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One cache for all tests of this module."""
    monkeypatch.setenv("KBPROBE_CACHE", str(cache_folder))
    return cache_folder


def corpus(folder: Path, name: str, *source: str, **options: str) -> Corpus:
    """Load a corpus, compiled by the first test that asks for it."""
    path = beside(*source)
    if not (folder / "snapshots" / f"corpus-{name}").exists():
        fetch("corpus", source=path, name=name, **options)
    return load_corpus(name)


@pytest.fixture
def masc(in_cache: Path) -> Corpus:
    return corpus(in_cache, "masc", *MASC)


@pytest.fixture
def ewt(in_cache: Path) -> Corpus:
    return corpus(in_cache, "ewt", "ud_english_ewt")


def test_masc_has_every_word_of_its_files(masc: Corpus) -> None:
    words: list[str] = []
    with zipfile.ZipFile(beside(*MASC)) as archive:
        for name in sorted(archive.namelist()):
            if name.endswith(".txt") and "categories" not in name:
                tokens = archive.read(name).decode("utf-8").split()
                words += [t.rpartition("_")[0] for t in tokens if t.strip("_") and "_" in t[1:-1]]
    escaped = {"``": '"', "''": '"'}
    # Soft hyphens and other controls are dropped within words.
    forms = masc.sentences.forms.of(slice(None))
    assert abs(len(forms) - len(words)) < 100
    assert len(masc.sentences) > 34_400
    assert len(masc.document_ids) == 392
    common = sum(a == escaped.get(b, b) for a, b in zip(forms[:5000], words[:5000], strict=True))
    assert common > 4_900


def test_text_of_masc_reads_as_it_is_printed(masc: Corpus) -> None:
    texts = masc.sentences.text.to_pylist()
    spaced = sum(any(mark in text for mark in (" . ", " , ", " ?", " n't", "( ")) for text in texts)
    assert spaced < 0.002 * len(texts)
    assert "Shouldn’t you?" in texts


def test_masc_has_paragraphs_genres_and_tags(masc: Corpus) -> None:
    assert masc.has_paragraphs.mean() > 0.85
    assert len(masc.document_genre.names) == 20
    known = masc.sentences.layer_mask("upos").mean()
    assert known > 0.99
    assert masc.sentences.layer_mask("xpos").all()


def test_ewt_keeps_its_text_to_the_letter(ewt: Corpus) -> None:
    stated = []
    for part in ("dev", "test"):
        path = beside("ud_english_ewt", f"en_ewt-ud-{part}.conllu.gz")
        lines = gzip.decompress(path.read_bytes()).decode("utf-8").split("\n")
        stated += [line.removeprefix("# text = ") for line in lines if line.startswith("# text = ")]
    assert ewt.sentences.text.to_pylist() == stated
    sentences = ewt.sentences
    roots = np.bincount(sentences.token_text[sentences.head == sentences.position])
    assert roots.tolist() == [1] * len(sentences)


def test_joining_the_words_of_ewt_gives_its_text(ewt: Corpus) -> None:
    """98.7% of the gaps between words are as printed; the others are mostly its authors' slips."""
    gaps = wrong = 0
    sentences = ewt.sentences
    for row in range(len(sentences)):
        span = slice(int(sentences.token_start[row]), int(sentences.token_start[row + 1]))
        words = sentences.words(row)
        _, starts, _ = detokenise(words, sentences.xpos.of(span))
        made = np.diff(starts) > [len(word) for word in words[:-1]]
        stated = sentences.start[span][1:] > sentences.end[span][:-1]
        gaps += len(made)
        wrong += int((made != stated).sum())
    assert wrong < 0.015 * gaps


def test_pairs_of_rte_have_tokens_and_labels(in_cache: Path) -> None:
    rte = corpus(in_cache, "rte", "nltk_data", "corpora", "rte.zip", pipeline="blank:en")
    assert len(rte.pairs) == 4_167
    assert set(rte.pairs.label.names) == {"TRUE", "FALSE", "YES", "NO"}
    assert (rte.pairs.label.codes >= 0).all()
    assert len(set(rte.pairs.id.to_pylist())) == 4_167
    assert rte.pairs.passages.tokens > 150_000
    both = load_corpora(["rte", "masc-extract"])
    assert len(both.pairs) == 4_167
    assert len(both.sentences) == len(load_corpus().sentences)


def test_the_extract_is_made_of_masc(masc: Corpus, tmp_path: Path) -> None:
    """The command that the docs state makes the snapshot that comes with the package."""
    info = read_info(find("masc-extract", "corpus").folder)
    made = fetch(
        "corpus",
        source=beside(*MASC),
        name="masc-extract",
        genre=tuple(info.source.options["genre"]),  # type: ignore[index]
        output=tmp_path / "extract",
    )
    assert read_info(made.folder).digest == info.digest
    assert set(load_corpus().document_ids) < set(masc.document_ids)
