"""Measure how fast a tagged corpus is read and compiled, at 1, 4 and 16 times its size.

    python benchmarks/corpora.py [--from masc_tagged.zip] [--times 1,4,16] [--rounds N] [--json]

``--from`` is NLTK's archive of MASC, or a folder of such files; by default the archive next to the
repository, or else the extract in the tests, which only shows that both sides run.

Measured, each in a fresh process, best of the rounds:

- **ours**: reading the files and joining the words,
  compiling into tables, writing the snapshot, loading it and finding the form of every token.
- **reference**: NLTK's ``TaggedCorpusReader`` and ``TreebankWordDetokenizer``, a dict for each
  token with its offsets, and ``pyarrow.Table.from_pylist``; as one would write it in ten minutes.
  It ends where our compiling ends, and runs on the original text only.

Sentences/s cover reading and compiling, by wall-clock time and by CPU time, which is less affected
by other jobs on the machine. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from processes import ROOT, Report, best_of

DATA = ROOT.parent / "shared" / "data" / "nltk_data" / "corpora" / "masc_tagged.zip"
EXTRACT = ROOT / "tests" / "data" / "miniatures" / "corpora" / "masc_tagged"
"""Some files of MASC, used if the whole corpus is not next to the repository."""


def ours(folder: Path) -> Report:
    from kb_cache.base import Compiled
    from kb_cache.corpora.annotate import TextAnnotator, compile_corpus
    from kb_cache.corpora.source import read_source
    from kb_cache.corpora.types import Corpus
    from kb_cache.snapshot import SourceInfo, read_info, read_tables, write_snapshot

    start, cpu = time.perf_counter(), time.process_time()
    source = read_source(folder)
    tables, _ = compile_corpus(source, "corpus-x", TextAnnotator("blank:en"), columns={})
    compiled, cpu = time.perf_counter(), time.process_time() - cpu
    with tempfile.TemporaryDirectory() as name:
        target = Path(name)
        write_snapshot(
            target, Compiled("", tables), kind="corpus", name="x", version="", licence="",
            source=SourceInfo(""),
        )  # fmt: skip
        written = time.perf_counter()
        info = read_info(target)
        corpus = Corpus(**info.identity, tables=read_tables(target, info))
        tokens = len(corpus.sentences.forms)
        loaded = time.perf_counter()
    return {
        "sentences": len(corpus.sentences), "tokens": tokens, "read": compiled - start, "cpu": cpu,
        "write": written - compiled, "load": loaded - written,
    }  # fmt: skip


def reference(folder: Path) -> Report:
    import nltk
    import pyarrow as pa
    from nltk.corpus.reader import TaggedCorpusReader
    from nltk.tokenize.treebank import TreebankWordDetokenizer

    nltk.data.path.append(str(folder))
    start, cpu = time.perf_counter(), time.process_time()
    reader = TaggedCorpusReader(str(folder), r".*/.*\.txt", sep="_")
    detokenizer = TreebankWordDetokenizer()
    sentences, tokens = [], []
    for document in reader.fileids():
        for number, paragraph in enumerate(reader.tagged_paras(document)):
            for sentence in paragraph:
                text = detokenizer.detokenize([word for word, _ in sentence])
                at = 0
                for word, tag in sentence:
                    found = text.find(word, at)
                    at = max(at, found + len(word))
                    tokens.append({"sentence": len(sentences), "start": found, "tag": tag})
                sentences.append({"document": document, "paragraph": number, "text": text})
    for rows in (sentences, tokens):
        pa.Table.from_pylist(rows)
    return {
        "sentences": len(sentences),
        "tokens": len(tokens),
        "read": time.perf_counter() - start,
        "cpu": time.process_time() - cpu,
    }


# The parent process.


def measured(side: str, folder: Path, rounds: int) -> Report:
    """Run one side in fresh processes; keep the fastest run."""
    best = best_of(rounds, "read", __file__, "--child", side, "--from", str(folder))
    best["sentences_per_second"] = best["sentences"] / best["read"]
    best["sentences_per_cpu_second"] = best["sentences"] / best["cpu"]
    return best


def copies(source: Path, times: int, folder: Path) -> None:
    """Copy or unpack a corpus several times, each under folders of its own."""
    for copy in range(times):
        target = folder / f"copy{copy:02}"
        if source.is_dir():
            shutil.copytree(source, target / source.name)
        else:
            shutil.unpack_archive(source, target)


def run(archive: Path, times: list[int], rounds: int) -> Iterator[tuple[str, Report]]:
    for number in times:
        with tempfile.TemporaryDirectory() as name:
            copies(archive, number, Path(name))
            yield f"ours, {number} x", measured("ours", Path(name), rounds)
            if number == 1:
                yield "reference, 1 x", measured("reference", Path(name), rounds)


def described(report: Report) -> str:
    """Format a report as one line."""
    later = [f"{what} {report[what]:.1f} s" for what in ("write", "load") if what in report]
    return ", ".join(
        [
            f"{report['sentences']:,} sentences, {report['tokens']:,} tokens",
            f"read and compiled in {report['read']:.1f} s, {report['cpu']:.1f} s of processor time",
            f"{report['sentences_per_second']:,.0f} sentences/s",
            f"{report['sentences_per_cpu_second']:,.0f} per second of processor time",
            *later,
            f"peak {report['peak_mib']:,.0f} MiB",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    default = DATA if DATA.exists() else EXTRACT
    parser.add_argument("--from", dest="source", type=Path, metavar="PATH", default=default)
    parser.add_argument("--times", default="1,4,16")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--child", choices=["ours", "reference"], help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        print(json.dumps({"ours": ours, "reference": reference}[given.child](given.source)))
        return
    if not given.source.exists():
        raise SystemExit(f"--from {given.source}: there is no such file or folder")
    results = {}
    for name, report in run(given.source, [int(n) for n in given.times.split(",")], given.rounds):
        results[name] = report
        if not given.json:
            print(f"{name}: {described(report)}", flush=True)
    if given.json:
        print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
