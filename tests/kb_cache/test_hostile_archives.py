"""Archives made to fill memory or disk, or to lead out of their folder."""

from __future__ import annotations

import bz2
import gzip
import io
import tarfile
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from evaluation.items.sources import open_probe
from kb_cache import unpack
from kb_cache.conceptnet.source import read_edges
from kb_cache.conceptnet.types import Malformed, Selection
from kb_cache.corpora.reading import read_all
from kb_cache.gcide.source import read_source
from kb_cache.omw.kind import read_source as read_lexicon
from kb_cache.vectors.source import read_batches
from kb_cache.vectors.source import read_source as find_vectors
from kb_cache.wikidata.kind import RdfFile
from kbprobe.errors import KbprobeError, SourceError

PACK = {".gz": gzip.compress, ".bz2": bz2.compress}
EDGE = '/a/x\t/r/IsA\t/c/en/dog\t/c/en/pet\t{"dataset": "/d/x", "weight": 2.0, "license": "cc"}\n'
TRIPLE = "<http://a> <http://b> <http://c> .\n"
QUESTION = '{"id": "a", "question": {"stem": "?", "choices": []}, "answerKey": "A"}\n'


@pytest.fixture(autouse=True)
def small_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two MB instead of 256: what is tested is what happens beyond."""
    monkeypatch.setattr(unpack, "ALWAYS", 2 << 20)


def bomb(path: Path, line: str) -> Path:
    """Write 32 MB of a line, which take some hundred KB or less."""
    path.write_bytes(PACK[path.suffix]((line * (1 + (32 << 20) // len(line))).encode()))
    assert path.stat().st_size * unpack.MOST_TIMES < 32 << 20
    return path


@pytest.mark.parametrize("ending", [".gz", pytest.param(".bz2", marks=pytest.mark.slow)])
def test_a_bomb_is_no_source(tmp_path: Path, ending: str) -> None:
    edges = bomb(tmp_path / f"edges.csv{ending}", EDGE)
    with pytest.raises(SourceError, match=r"unpacks to more than.*unpack it") as raised:
        list(read_edges(edges, Selection(), Malformed(edges)))
    assert str(edges) in str(raised.value)
    triples = bomb(tmp_path / f"x.nt{ending}", TRIPLE)
    with pytest.raises(SourceError, match=r"x.nt.*unpacks to more than"):
        list(RdfFile(triples).triples())
    vectors = bomb(tmp_path / f"glove.txt{ending}", "word 0.1 0.2 0.3\n")
    with pytest.raises(SourceError, match=r"glove.txt.*unpacks to more than"):
        list(read_batches(find_vectors(vectors), lambda *_: None))
    with pytest.raises(SourceError, match=r"text.txt.*unpacks to more than"):
        read_all(bomb(tmp_path / f"text.txt{ending}", "A sentence.\n"))


@contextmanager
def in_memory(most: int) -> Iterator[None]:
    """Assert that no more than ``most`` bytes are allocated at a time."""
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < most, f"{peak:,} bytes"


LEXICONS = ("<?xml version='1.0'?>", "# Name\tita\thttp://x\twordnet\n")


@pytest.mark.parametrize("head", LEXICONS, ids=["lmf", "tab"])
def test_a_lexicon_is_unpacked_as_far_as_the_limit(tmp_path: Path, head: str) -> None:
    path = tmp_path / "lexicon.gz"
    path.write_bytes(gzip.compress(head.encode() + b"\n" * (64 << 20), 9))
    with (
        in_memory(40 << 20),
        pytest.raises(SourceError, match=r"lexicon.gz: it unpacks to more than"),
    ):
        read_lexicon(path)


@pytest.mark.parametrize("head", LEXICONS, ids=["lmf", "tab"])
def test_a_lexicon_has_a_limit_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, head: str
) -> None:
    for module in ("wordnet.lmf", "omw.kind"):
        monkeypatch.setattr(f"kb_cache.{module}.LARGEST", 1 << 20)
    path = tmp_path / "lexicon"
    path.write_bytes(head.encode() + b"\n" * (2 << 20))
    with pytest.raises(SourceError, match="holds more than 1,048,576 bytes, the most that is read"):
        read_lexicon(path)


@pytest.mark.parametrize("packed", ["x.zip", "x", "x.tgz"])
def test_many_members_are_as_limited_as_one(tmp_path: Path, packed: str) -> None:
    """Each has less than the limit; the source, a zip, a folder or a tar, has more."""
    path, text = tmp_path / packed, b"A text. " * (15 << 14)
    if packed == "x.zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for number in range(8):
                archive.writestr(f"{number}.txt", text)
    elif packed == "x.tgz":
        tar_of(path, *(tarfile.TarInfo(f"{number}.txt") for number in range(8)), content=text)
    else:
        path.mkdir()
        for number in range(8):
            (path / f"{number}.txt.gz").write_bytes(gzip.compress(text))
    with in_memory(16 << 20), pytest.raises(SourceError, match=r"unpacks to more than.*unpack it"):
        read_all(path)


@pytest.mark.parametrize("read", [read_all, read_source])
def test_a_header_of_a_tar_is_no_text_to_unpack(
    tmp_path: Path, read: Callable[[Path], object]
) -> None:
    """The name of a member may have any length, and is unpacked to see whether a file is a tar."""
    name = tarfile.TarInfo("././@LongLink")
    name.type, name.size = tarfile.GNUTYPE_LONGNAME, 64 << 20
    path = tmp_path / "x.tgz"
    path.write_bytes(gzip.compress(name.tobuf(tarfile.GNU_FORMAT) + b"a" * (64 << 20)))
    with in_memory(16 << 20), pytest.raises(SourceError, match=r"x.tgz: it unpacks to more than"):
        read(path)


def test_a_zip_whose_directory_lies(tmp_path: Path) -> None:
    """Deflate is unpacked in parts; bzip2 and LZMA, which zipfile unpacks at once, are refused."""
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.txt", bytes(64 << 20))
    said = path.read_bytes()
    path.write_bytes(said.replace((64 << 20).to_bytes(4, "little"), (9).to_bytes(4, "little")))
    with in_memory(16 << 20), pytest.raises(SourceError, match=r"x.zip is damaged.*CRC"):
        read_all(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("a.txt", "A text.")
    with pytest.raises(SourceError, match=r"a.txt is packed with bzip2 or LZMA.*unpack it"):
        read_all(path)


def test_a_bomb_is_no_probe(tmp_path: Path) -> None:
    with pytest.raises(KbprobeError, match=r"test.jsonl.gz cannot be read: it unpacks to more"):
        open_probe(bomb(tmp_path / "test.jsonl.gz", QUESTION))


@pytest.mark.slow
def test_what_repeats_itself_less_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.nt.gz"
    path.write_bytes(gzip.compress("".join(f"<a:{n}> <a:b> <a:c> .\n" for n in range(200_000))
                                   .encode()))  # fmt: skip
    assert sum(1 for _ in RdfFile(path).triples()) == 200_000


@pytest.mark.parametrize("name", ["dict/words_A.json", "text.txt"])
def test_a_zip_with_a_bomb_in_it(tmp_path: Path, name: str) -> None:
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, bytes(32 << 20))
    with pytest.raises(SourceError, match=r"x.zip.*unpacks to more than"):
        read_source(path) if "words" in name else read_all(path)


def tar_of(path: Path, *members: tarfile.TarInfo, content: bytes = b"") -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for member in members:
            member.size = len(content) if member.isfile() else 0
            tar.addfile(member, io.BytesIO(content))
    return path


def test_members_cannot_leave_an_archive(tmp_path: Path) -> None:
    """Nothing is written; a link is no file, whatever it points to."""
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    link, outside = tarfile.TarInfo("words_A.json"), tarfile.TarInfo("../../../x/words_B.json")
    link.type, link.linkname = tarfile.SYMTYPE, str(secret)
    found = read_source(tar_of(tmp_path / "x.tgz", outside, link, content=b"{}"))
    assert dict(found.files) == {"words_B.json": b"{}"}
    assert {path.name for path in tmp_path.iterdir()} == {"secret.txt", "x.tgz"}
    with pytest.raises(SourceError, match=r"is not GCIDE"):
        read_source(tar_of(tmp_path / "y.tgz", link))


def test_a_tar_of_too_many_or_too_large_members(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpack, "MOST_MEMBERS", 20)
    many = [tarfile.TarInfo(f"words_{n}.json") for n in range(30)]
    with pytest.raises(SourceError, match=r"more than 20 members.*give that folder"):
        read_source(tar_of(tmp_path / "x.tgz", *many))
    monkeypatch.setattr("kb_cache.gcide.source._MAX_FILE_BYTES", 1 << 20)
    with pytest.raises(SourceError, match=r"or x of 3,000,000 bytes"):
        read_source(tar_of(tmp_path / "y.tgz", tarfile.TarInfo("x"), content=bytes(3_000_000)))


def test_a_link_out_of_a_folder_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("A secret.")
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "a.txt").write_text("A text.")
    (folder / "b.txt").symlink_to(folder / "a.txt")
    assert list(read_all(folder)) == ["a.txt", "b.txt"]
    (folder / "c.txt").symlink_to(tmp_path / "secret.txt")
    with pytest.raises(
        SourceError, match=r"c.txt is a link to .*secret.txt, outside of the folder"
    ):
        read_all(folder)
