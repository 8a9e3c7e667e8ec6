"""Pairs of questions that stand or fall together: found as a plain loop finds them, and counted."""

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import builders
import evaluation
import kbprobe
from evaluation.results.analyses.consistency import (
    ANALYSIS,
    FEWEST,
    KINDS,
    measure_consistency,
    measure_pairs,
    pairs_of,
)
from kbprobe.errors import UsageError


def row(question="q", concept="c", hops=1, family="f", template="t", gold="g", args=(), right=True):
    return {
        "question": question,
        "concept": concept,
        "hops": hops,
        "distractor_family": family,
        "template": template,
        "choices": ["other", gold],
        "answer": 1,
        "prediction": 1 if right else 0,
        "correct": right,
        "arguments": [{"name": f"x{n}", "value": value} for n, value in enumerate(args)],
        "cluster": concept,
    }


def table(rows):
    found = pa.Table.from_pylist(rows)
    kinds = pa.list_(pa.struct([("name", pa.string()), ("value", pa.string())]))
    at = found.column_names.index("arguments")
    found = found.set_column(at, "arguments", pa.array([one["arguments"] for one in rows], kinds))
    found = found.set_column(2, "hops", found["hops"].cast(pa.int64()))
    coded = {"question", "concept", "distractor_family", "template", "cluster"}
    for name in coded:
        at = found.column_names.index(name)
        found = found.set_column(at, name, found[name].dictionary_encode())
    return found


def naive(rows):
    """Group the rows by all that a pair has in common, and link neighbours that differ."""
    said = [tuple(one["value"] for one in row["arguments"]) for row in rows]
    ways = {
        "distractors": (
            lambda n, r: (r["question"], r["choices"][1]),
            lambda n, r: n,
            lambda n: True,
        ),
        "wordings": (
            lambda n, r: (
                (r["concept"], said[n], r["choices"][1], r["hops"], r["distractor_family"])
            ),
            lambda n, r: r["template"],
            lambda n: True,
        ),
        "arguments": (
            lambda n, r: (tuple(sorted(said[n])), r["distractor_family"], r["hops"]),
            lambda n, r: said[n],
            lambda n: len(said[n]) > 1,
        ),
        "negation": (
            lambda n, r: (r["concept"], tuple(sorted(r["choices"]))),
            lambda n, r: r["choices"][1],
            lambda n: False,  # tested below: no two rows here have the same choices
        ),
        "hops": (
            lambda n, r: (r["question"], r["concept"], r["distractor_family"]),
            lambda n, r: r["hops"],
            lambda n: rows[n]["hops"] is not None,
        ),
    }
    for kind, (common, differs, usable) in ways.items():
        groups = {}
        for n, one in enumerate(rows):
            if usable(n):
                groups.setdefault(common(n, one), {}).setdefault(differs(n, one), []).append(n)
        # Each value of what differs is linked with one other value: as many pairs as steps.
        if steps := sum(len(values) - 1 for values in groups.values()):
            yield kind, steps, common, differs


words = st.sampled_from(["a", "b"])
rows_of = st.lists(
    st.builds(
        row,
        question=words,
        concept=words,
        hops=st.sampled_from([None, 1, 2, 3]),
        family=words,
        template=words,
        gold=words,
        args=st.lists(words, max_size=2),
    ),
    min_size=1,
    max_size=12,
)


@given(rows_of)
def test_pairs_are_those_of_a_plain_loop(rows):
    found = dict(pairs_of(table(rows)))
    expected = {kind: rest for kind, *rest in naive(rows)}
    assert found.keys() == expected.keys() <= KINDS.keys()
    for kind, (steps, common, differs) in expected.items():
        pairs = list(zip(*(side.tolist() for side in found[kind]), strict=True))
        assert len(pairs) == steps
        for one, other in pairs:
            assert common(one, rows[one]) == common(other, rows[other])
            assert differs(one, rows[one]) != differs(other, rows[other])


def asked(verdicts):
    """Two questions with the same gold about each of many concepts, right or wrong as told."""
    return table(
        [
            row(f"q{n}", f"c{n}", family=family, gold=f"g{n}", right=right)
            for n, both in enumerate(verdicts)
            for family, right in zip(("near", "random"), both, strict=True)
        ]
    )


def test_answers_that_hang_together_gain_and_mirrored_ones_lose():
    together = [(n % 2 == 0,) * 2 for n in range(40)]
    (one,) = measure_consistency(asked(together), 0).kinds
    assert (one.kind, one.pairs, one.both.value) == ("distractors", 40, 0.5)
    assert (one.independent, one.most, one.gain.value) == (0.25, 0.5, 25.0)
    assert 0 < one.gain.low < 25 < one.gain.high
    more = measure_consistency(asked(together * 3), 0).kinds[0].gain
    assert 15 < more.low < 25 <= more.high + 1
    (mirrored,) = measure_consistency(asked([(a, not b) for a, b in together]), 0).kinds
    assert (mirrored.both.value, mirrored.gain.value) == (0.0, -25.0)
    assert mirrored.gain.high < 0
    assert measure_consistency(asked(together), 0) == measure_consistency(asked(together), 0)


def test_the_order_of_a_pair_that_means_nothing_changes_nothing():
    """A model that always says one answer gets half of all comparisons right, and no pair."""
    right = np.array([True] * 40)
    cluster = np.arange(40)
    older = measure_pairs("arguments", right, ~right, cluster, 0)
    assert (older.both.value, older.independent, older.gain.value) == (0.0, 0.25, -25.0)
    assert older.gain.high < 0
    assert older == measure_pairs("arguments", ~right, right, cluster, 0)
    # The accuracies of two probes, or of two distances, are those of the one and the other.
    assert measure_pairs("probes", right, ~right, cluster, 0).independent == 0.0


@pytest.mark.parametrize(("pairs", "share"), [(100, 0.95), (55, 0.9), (55, 0.1), (30, 0.2)])
def test_independent_answers_seldom_look_dependent(pairs, share):
    generator, found = np.random.default_rng(0), 0
    for _ in range(100):
        first, second = generator.random((2, pairs)) < share
        gain = measure_pairs("probes", first, second, np.arange(pairs), 0).gain
        found += gain.low > 0 or gain.high < 0
    assert found <= 5


def test_nothing_is_said_of_few_clusters_or_of_rows_set_aside():
    assert measure_consistency(asked([(True, False)] * (FEWEST - 1)), 0) is None
    unscored = asked([(True, True)] * 40).set_column(7, "prediction", pa.nulls(80, pa.int64()))
    assert unscored.column_names[7] == "prediction"
    assert measure_consistency(unscored, 0) is None


def test_the_section_says_which_pairs_hang_together():
    block = measure_consistency(asked([(n % 2 == 0,) * 2 for n in range(40)]), 0)
    said, table = ANALYSIS.parts(None, block)
    assert "With the same question with other distractors, both questions are right more" in (
        said.text
    )
    assert table.rows[0][1:4:2] == ("40", "25.0%")


def test_a_synonym_and_an_opposite_of_one_word_are_a_pair():
    rows = [
        row(f"q{n}{gold}", f"c{n}", gold=gold, args=(f"x{n}", gold))
        | {"choices": ["really", "not"]}
        for n in range(2)
        for gold in ("really", "not")
    ]
    for one in rows:
        one["answer"] = one["choices"].index(one["arguments"][1]["value"])
    # The same two things in another order, with the other answer: a pair of "arguments".
    swapped = rows[0] | {"answer": 1, "arguments": rows[0]["arguments"][::-1], "question": "q"}
    found = dict(pairs_of(table([*rows, swapped])))
    assert {kind: len(first) for kind, (first, _) in found.items()} == {
        "arguments": 1,
        "negation": 2,
    }


@pytest.fixture(scope="module")
def both_ends(tmp_path_factory, open_wordnet):
    """Two probes that ask for the same edges from either end."""
    folder, wordnet = tmp_path_factory.mktemp("ends"), open_wordnet()
    given = {"wordnet": wordnet, "match": "none", "train_rows": 0, "controls": False}
    for probe in ("wordnet_hypernymy", "wordnet_hyponymy"):
        builders.build(probe, output=folder / probe, audit=False, **given)
    return [str(folder / probe) for probe in ("wordnet_hypernymy", "wordnet_hyponymy")]


@pytest.mark.slow
def test_two_probes_are_paired_by_the_edges_that_both_ask_for(both_ends):
    summary = evaluation.study("consistency", both_ends, "none", scorer="random")
    over = SimpleNamespace(**summary.tables["pairs"][0])
    assert (over.kind, over.probes) == ("probes", "wordnet_hypernymy, wordnet_hyponymy")
    up, down = (
        Counter(
            frozenset(frozenset((one["subject"], one["object"])) for one in triples)
            for triples in kbprobe.load(probe)["test"]["triples"]
        )
        for probe in both_ends
    )
    assert over.pairs == sum((up & down).values()) > 30
    assert over.gain.low < 0 < over.gain.high
    within = [row["differ"] for row in summary.rows("pairs", probes="wordnet_hypernymy")]
    assert KINDS["distractors"] in within


@pytest.mark.slow
def test_probes_without_common_facts_are_refused(both_ends, tmp_path):
    with pytest.raises(
        UsageError, match=r"questions about the same facts in \d+ clusters, where 30"
    ):
        evaluation.study("consistency", both_ends, "none", scorer="random", limit=20)
    (tmp_path / "rows.jsonl").write_text("{}")
    with pytest.raises(UsageError, match="only folders written by build-probe"):
        evaluation.study("consistency", str(tmp_path / "rows.jsonl"), "none", scorer="random")
