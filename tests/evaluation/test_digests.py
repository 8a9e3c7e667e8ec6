"""Files known by their content."""

import hashlib
import os
import time

import pytest

from kbprobe import checkpoint_files as files
from kbprobe.checkpoint_files import digest_of_files, file_digest


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("KBPROBE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(files, "_SETTLED_NS", 0)


def test_it_is_the_sha256_and_is_remembered(tmp_path, monkeypatch):
    file = tmp_path / "weights"
    file.write_bytes(b"abc")
    assert file_digest(file) == hashlib.sha256(b"abc").hexdigest()
    monkeypatch.setattr(hashlib, "file_digest", None)
    assert file_digest(file) == hashlib.sha256(b"abc").hexdigest()


def test_weights_replaced_under_the_same_name_have_another_digest(tmp_path):
    file = tmp_path / "weights"
    file.write_bytes(b"abc")
    first = file_digest(file)
    before = file.stat()
    other = tmp_path / "other"
    other.write_bytes(b"abd")
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(file)
    assert file_digest(file) != first, "same size and time, another file"


def test_weights_rewritten_in_place_at_the_same_time_have_another_digest(tmp_path):
    file = tmp_path / "weights"
    file.write_bytes(b"abc")
    first, before = file_digest(file), file.stat()
    time.sleep(0.02)
    file.write_bytes(b"abd")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file_digest(file) != first, "same size, time and inode, other content"


def test_a_file_that_changed_just_now_is_hashed_anew(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_SETTLED_NS", 10**12)
    file = tmp_path / "weights"
    file.write_bytes(b"abc")
    file_digest(file)
    assert not (tmp_path / "cache" / "hashes").exists()


@pytest.mark.posix
def test_a_blob_of_the_hub_is_hashed_and_not_trusted_by_name(tmp_path):
    blob = tmp_path / "blobs" / ("0f" * 32)
    blob.parent.mkdir()
    blob.write_bytes(b"abc")
    link = tmp_path / "model.safetensors"
    link.symlink_to(blob)
    assert file_digest(link) == hashlib.sha256(b"abc").hexdigest()


def test_a_damaged_note_and_a_cache_that_cannot_be_written_cost_nothing(tmp_path, monkeypatch):
    file = tmp_path / "weights"
    file.write_bytes(b"abc")
    wanted = file_digest(file)
    for note in (tmp_path / "cache" / "hashes").iterdir():
        note.write_text("{")
    assert file_digest(file) == wanted
    for note in (tmp_path / "cache" / "hashes").iterdir():
        assert wanted[:2] == "ba"
        note.write_text(note.read_text().replace(wanted, f"bb{wanted[2:]}"))
    assert file_digest(file) == wanted, "a flipped bit is no other hash of the weights"
    blocked = tmp_path / "blocked"
    blocked.write_text("")
    monkeypatch.setenv("KBPROBE_CACHE", str(blocked))
    assert file_digest(file) == wanted


def test_several_files_hang_on_names_and_contents_not_on_where_they_are(tmp_path):
    def written(folder, **contents):
        (tmp_path / folder).mkdir()
        for name, text in contents.items():
            (tmp_path / folder / name).write_text(text)
        return digest_of_files((tmp_path / folder).iterdir())

    one = written("one", a="1", b="2")
    assert one == written("two", b="2", a="1")
    assert one != written("three", a="2", b="1")
    assert one != written("four", a="1", c="2")
