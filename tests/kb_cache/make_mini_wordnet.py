"""Cut a miniature WordNet, in the real format, out of the real one.

Only needed to change ``data/mini-wordnet``, which is kept with the tests:

    python tests/kb_cache/make_mini_wordnet.py DICT_FOLDER

Every line is the original one, but for the pointers that lead out of the selection (dropped) and
the byte offsets (computed anew: readers of WordNet seek by them).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

from kb_cache.wordnet.load import load_wordnet
from kb_cache.wordnet.source import DATA_FILES, EXCEPTION_FILES

SEEDS = """
dog.n.01 cat.n.01 puppy.n.01 canine.n.02 einstein.n.01 attorney_general.n.01 entity.n.01
restrain.v.01 inhibit.v.04 hunker_down.v.03 flip_one's_lid.v.01 get_cracking.v.01 run.v.01
walk.v.01 be.v.01 good.a.01 bad.a.01 nice.s.02 big.a.01 small.a.01 alphabetic.a.01 bull's_eye.n.01
quickly.r.01 slowly.r.01 quick.s.01 huge.s.01 well.r.01 badly.r.01
""".split()  # noqa: SIM905
HERE = Path(__file__).parent / "data" / "mini-wordnet"
FILE_OF_POS = dict(zip("nvar", DATA_FILES, strict=True)) | {"s": "data.adj"}
Key = tuple[str, int]


def selection() -> set[Key]:
    """The seeds, all that they hang from, and the heads of satellites, as (file, offset)."""
    wordnet = load_wordnet("3.0")
    seeds = [wordnet.synset_id(name) for name in SEEDS]
    pos, offset = wordnet.synsets["pos"].to_pylist(), wordnet.synsets["offset"].to_pylist()
    satellites = [row for row in seeds if pos[row] == "s"]
    heads = wordnet.graph("similar_to").walk(satellites, 1).node.tolist()
    rows = {*seeds, *wordnet.isa.walk(seeds).node.tolist(), *heads}
    return {(FILE_OF_POS[pos[row]], offset[row]) for row in rows}


def cut(line: str, chosen: set[Key]) -> str:
    """Drop a data line's pointers to synsets that are not chosen; mark offsets for `place`."""
    columns, gloss = line.split("|", 1)
    fields = columns.split()
    at = 4 + 2 * int(fields[3], 16)
    pointers = [fields[i : i + 4] for i in range(at + 1, at + 1 + 4 * int(fields[at]), 4)]
    rest = fields[at + 1 + 4 * len(pointers) :]
    kept = [
        (symbol, f"<{FILE_OF_POS[pos]}:{int(offset)}>", pos, senses)
        for symbol, offset, pos, senses in pointers
        if (FILE_OF_POS[pos], int(offset)) in chosen
    ]
    head = [*fields[1:at], f"{len(kept):03d}", *(word for pointer in kept for word in pointer)]
    return " ".join([*head, *rest]) + " |" + gloss


def main(source: Path) -> None:
    """Write ``data/mini-wordnet``."""
    chosen = selection()
    HERE.mkdir(parents=True, exist_ok=True)
    lines: dict[str, list[tuple[int, str]]] = {}
    headers: dict[str, str] = {}
    for name in DATA_FILES:
        text = (source / name).read_text("ascii").splitlines(keepends=True)
        headers[name] = "".join(line for line in text if line.startswith("  "))
        lines[name] = [
            (int(line[:8]), cut(line, chosen))
            for line in text
            if not line.startswith("  ") and (name, int(line[:8])) in chosen
        ]
    new: dict[Key, int] = {}
    for name in DATA_FILES:
        at = len(headers[name])
        for offset, line in lines[name]:
            new[name, offset] = at
            at += 9 + len(re.sub(r"<\S+?>", "00000000", line))

    def place(match: re.Match[str]) -> str:
        name, offset = match[1].split(":")
        return f"{new[name, int(offset)]:08d}"

    for name in DATA_FILES:
        body = "".join(
            f"{new[name, offset]:08d} " + re.sub(r"<(\S+?)>", place, line)
            for offset, line in lines[name]
        )
        (HERE / name).write_text(headers[name] + body, "ascii", newline="\n")
        index = name.replace("data", "index")
        (HERE / index).write_text(cut_index(source / index, name, new), "ascii", newline="\n")
    keys = sense_keys(source, new)
    copy_lines(source / "cntlist.rev", lambda line: line.split()[0] in keys)
    words = {key.split("%")[0] for key in keys}
    for name in EXCEPTION_FILES:
        copy_lines(source / name, lambda line: not words.isdisjoint(line.split()[1:]))
    for name in ("lexnames", "LICENSE.txt"):
        copy_lines(source / name, lambda line: True)


def cut_index(path: Path, data: str, new: dict[Key, int]) -> str:
    """The lines of an index file for the words that are left."""
    kept = []
    for line in path.read_text("ascii").splitlines(keepends=True):
        if line.startswith("  "):
            kept.append(line)
            continue
        lemma, pos, count, pointers, *rest = line.split()
        symbols, offsets = rest[: int(pointers)], rest[int(pointers) + 2 :]
        assert len(offsets) == int(count)
        left = [f"{new[data, int(o)]:08d}" for o in offsets if (data, int(o)) in new]
        if left:
            fields = [lemma, pos, str(len(left)), pointers, *symbols, str(len(left)), "0", *left]
            kept.append(" ".join(fields) + "  \n")
    return "".join(kept)


def sense_keys(source: Path, new: dict[Key, int]) -> set[str]:
    """Write the cut index.sense; return the keys in it."""
    kept = []
    for line in (source / "index.sense").read_text("ascii").splitlines():
        key, offset, number, count = line.split()
        name = FILE_OF_POS["nvars"[int(key.split("%")[1][0]) - 1]]
        if (name, int(offset)) in new:
            kept.append(f"{key} {new[name, int(offset)]:08d} {number} {count}\n")
    (HERE / "index.sense").write_text("".join(kept), "ascii", newline="\n")
    return {line.split()[0] for line in kept}


def copy_lines(path: Path, wanted: Callable[[str], bool]) -> None:
    """Copy the wanted lines of a file."""
    lines = [line for line in path.read_text("ascii").splitlines(keepends=True) if wanted(line)]
    (HERE / path.name).write_text("".join(lines), "ascii", newline="\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
