"""Running a scorer in parts: resumed, shared and cached, with the same scores in the end."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation.items.types import Item, choice_starts
from evaluation.runs.score_cache import ScoreCache, content_hash
from evaluation.runs.scoring import score_items
from evaluation.scorers.base import Encoded, Scorer
from evaluation.workers import Session, Workers
from kbprobe.errors import KbprobeError


class LetterCounter(Scorer):
    """Scores a choice by its letters and those of the question: no model, but the same path.

    One sequence for each distinct question, one slot for each choice of its items, and a second
    sequence for long choices, so that sums over slots are exercised.
    """

    kind = "masked_lm"
    version = 1

    def __init__(self, fail_after=None):
        self.fail_after = fail_after
        self.run = []
        self.encoded = []

    def encode(self, items):
        self.encoded.append([item.id for item in items])
        starts = choice_starts(items)
        asked: dict[str, list[int]] = {}
        for row, item in enumerate(items):
            asked.setdefault(item.question, []).append(row)
        slots, owners, self.values = [], [], []
        for rows in asked.values():
            choices = [int(c) for row in rows for c in range(starts[row], starts[row + 1])]
            texts = [text for row in rows for text in items[row].choices]
            slots.append(choices)
            owners.append(rows[0])
            self.values.append([len(items[rows[0]].question) + len(text) for text in texts])
            long = [(c, 0.5) for c, text in zip(choices, texts, strict=True) if len(text) > 3]
            if long:
                slots.append([c for c, _ in long])
                owners.append(rows[0])
                self.values.append([value for _, value in long])
        lengths = np.array([len(items[row].question) + 2 for row in owners], dtype=np.int64)
        return Encoded(
            lengths=lengths,
            item=np.array(owners, dtype=np.int64),
            slot_starts=np.cumsum([0, *map(len, slots)]),
            slot_choice=np.array([c for each in slots for c in each], dtype=np.int64),
            choice_tokens=np.ones(starts[-1], dtype=np.int64),
            notes={"counted": len(items)},
        )

    def score(self, encoded, sequences):
        if self.fail_after is not None and len(self.run) >= self.fail_after:
            raise KeyboardInterrupt
        self.run.append(sequences)
        return np.array([value for s in sequences for value in self.values[s]], dtype=float)

    def score_name(self, items):
        return "log-likelihood"


def expected(items):
    return [
        len(item.question) + len(text) + (0.5 if len(text) > 3 else 0)
        for item in items
        for text in item.choices
    ]


def some_items(count=60):
    return [
        Item(f"i{n}", "mc_qa", "q" * (n % 7 + 1) + str(n % 40), ("a", "bb" * (n % 3 + 1), "ccc"), 0)
        for n in range(count)
    ]


def run(items, folder: Path, scorer=None, tokens=8, workers=None):
    cache = ScoreCache({"test": 1}, folder)
    more = () if workers is None else (Session(workers=workers),)
    return score_items(items, scorer or LetterCounter(), cache, tokens, 7, *more)


words = st.text("abcdefgh", min_size=1, max_size=6)
rows = st.tuples(words, st.lists(words, min_size=2, max_size=5, unique=True))


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.lists(rows, min_size=1, max_size=30), st.integers(1, 40))
def test_scores_are_the_sums_over_slots_whatever_the_parts(tmp_path_factory, drawn, tokens):
    items = [Item(str(n), "mc_qa", q, tuple(c), 0) for n, (q, c) in enumerate(drawn)]
    scores, effort = run(items, tmp_path_factory.mktemp("cache"), tokens=tokens)
    assert scores.scores.tolist() == expected(items)
    assert effort.rows == len(items)
    assert scores.parameters == 7


def test_equal_questions_share_one_sequence(tmp_path):
    items = [Item(str(n), "mc_qa", "same", ("a", "b"), 0) for n in range(20)]
    _, effort = run(items, tmp_path)
    assert effort.sequences == 1


@pytest.mark.parametrize("fail_after", [0, 1, 3, 8])
def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path, fail_after):
    items = some_items()
    with pytest.raises(KeyboardInterrupt):
        run(items, tmp_path, LetterCounter(fail_after))
    second = LetterCounter()
    scores, effort = run(items, tmp_path, second)
    whole, all_effort = run(items, tmp_path / "other")
    assert scores.scores.tobytes() == whole.scores.tobytes()
    assert effort.sequences <= all_effort.sequences
    if fail_after == 8:
        assert effort.sequences < all_effort.sequences, "parts that were done are not done again"


def test_only_what_is_not_scored_yet_is_encoded_and_a_part_at_a_time(tmp_path):
    items = [Item(f"i{n}", "mc_qa", f"question {n}", ("a", "bb"), 0) for n in range(300)]
    with pytest.raises(KeyboardInterrupt):
        run(items, tmp_path, LetterCounter(40), tokens=24)
    parts = list(ScoreCache({"test": 1}, tmp_path).folder.glob("part-*"))
    done = {row for part in parts for row in pq.read_table(part)["row"].to_pylist()}
    assert len(done) > 30
    second = LetterCounter()
    scores, effort = run(items, tmp_path, second, tokens=24)
    assert scores.scores.tolist() == expected(items)
    assert (scores.notes, scores.sequences) == ({"counted": 300}, 300)
    measured, *encoded = second.encoded
    assert len(measured) == 32, "how many parts there are is estimated from some questions"
    missing = [item.id for n, item in enumerate(items) if n not in done]
    assert sorted(name for part in encoded for name in part) == sorted(missing)
    assert effort.rows == 300 - len(done)
    assert max(map(len, encoded)) < 40


def test_what_cannot_be_divided_is_encoded_at_once(tmp_path):
    class Whole(LetterCounter):
        divisible = False

    items, scorer = some_items(), Whole()
    scores, _ = run(items, tmp_path, scorer)
    assert scores.scores.tolist() == expected(items)
    assert scorer.encoded == [[item.id for item in items]]


def test_a_finished_entry_is_read_back_whole_and_its_parts_are_gone(tmp_path):
    items = some_items()
    scores, _ = run(items, tmp_path)
    cache = ScoreCache({"test": 1}, tmp_path)
    found = cache.read(choice_starts(items))
    assert found is not None
    assert found.scores.tobytes() == scores.scores.tobytes()
    assert (found.notes, found.score_name) == ({"counted": 60}, "log-likelihood")
    assert not list(cache.folder.glob("part-*"))


def test_damaged_files_are_scored_again(tmp_path):
    items = some_items()
    with pytest.raises(KeyboardInterrupt):
        run(items, tmp_path, LetterCounter(8))
    cache = ScoreCache({"test": 1}, tmp_path)
    part = sorted(cache.folder.glob("part-*"))[0]
    part.write_bytes(part.read_bytes()[:40])
    scores, _ = run(items, tmp_path)
    assert scores.scores.tolist() == expected(items)
    whole = cache.folder / "scores.parquet"
    whole.write_bytes(b"PAR1 nonsense")
    assert cache.read(choice_starts(items)) is None


@pytest.mark.slow
def test_no_flipped_bit_gives_other_scores(tmp_path):
    """Every 41st bit of a whole entry, and of a part: damage is noticed, or changes nothing."""
    items = some_items(12)
    starts = choice_starts(items)
    whole, _ = run(items, tmp_path, tokens=400)
    cache = ScoreCache({"test": 1}, tmp_path)
    rows = np.arange(4)
    first = replace(whole, scores=whole.scores[: starts[4]], tokens=whole.tokens[: starts[4]])
    # Reading a whole entry removes its parts: the part is of an entry of its own.
    unfinished = ScoreCache({"test": 2}, tmp_path)
    unfinished.write_part(0, rows, starts, first)
    readers = {
        cache.folder / "scores.parquet": lambda: cache.read(starts),
        unfinished.folder / "part-00000.parquet": lambda: unfinished.read_part(0, rows, starts),
    }
    for path, read in readers.items():
        told = read()
        assert told is not None
        sound, noticed, flips = path.read_bytes(), 0, 0
        for bit in range(0, 8 * len(sound), 41):
            damaged = bytearray(sound)
            damaged[bit // 8] ^= 1 << bit % 8
            path.write_bytes(damaged)
            found, flips = read(), flips + 1
            noticed += found is None
            assert found is None or repr(found) == repr(told), f"bit {bit} of {path.name}"
        assert noticed > flips / 2
        path.write_bytes(sound)


def test_scores_of_another_entry_are_not_read(tmp_path):
    items = some_items(6)
    run(items, tmp_path)
    cache, other = ScoreCache({"test": 1}, tmp_path), ScoreCache({"test": 2}, tmp_path)
    other.folder.mkdir()
    (other.folder / "scores.parquet").write_bytes((cache.folder / "scores.parquet").read_bytes())
    assert other.read(choice_starts(items)) is None


def test_another_number_of_processes_takes_over(tmp_path):
    items = some_items()
    # The second of three processes does its share and dies with the others' undone.
    with pytest.raises(KbprobeError, match="was not scored by the process"):
        run(items, tmp_path, workers=Workers(1, 3))
    done = len(list(ScoreCache({"test": 1}, tmp_path).folder.glob("part-*")))
    assert done > 0
    scores, effort = run(items, tmp_path)
    assert scores.scores.tolist() == expected(items)
    assert 0 < effort.rows < len(items)


def test_items_set_aside_have_no_score(tmp_path):
    class Choosy(LetterCounter):
        def encode(self, items):
            aside = {row: "too odd" for row, item in enumerate(items) if item.id == "i2"}
            return replace(super().encode(items), set_aside=aside)

    items = some_items(5)
    scores, _ = run(items, tmp_path, Choosy())
    assert np.isnan(scores.scores[6:9]).all()
    assert np.isfinite(np.delete(scores.scores, [6, 7, 8])).all()
    found = ScoreCache({"test": 1}, tmp_path).read(choice_starts(items))
    assert found is not None
    assert found.set_aside == {2: "too odd"}


def test_the_key_hangs_on_every_part_and_on_no_order():
    parts = {"weights": "a", "dtype": "float32", "options": {"x": 1, "y": 2}}
    shuffled = {"options": {"y": 2, "x": 1}, "dtype": "float32", "weights": "a"}
    assert content_hash(parts) == content_hash(shuffled)
    changed = [{**parts, name: "other"} for name in parts]
    assert len({content_hash(each) for each in [parts, *changed]}) == 4


def test_a_cache_that_cannot_be_written_says_where(tmp_path):
    (tmp_path / "scores").write_text("in the way")
    with pytest.raises(KbprobeError, match="cache folder"):
        run(some_items(3), tmp_path / "scores")
