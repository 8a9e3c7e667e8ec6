"""Every option of every probe does something: something reads it, and its value matters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import builders
from builders.comparisons.options import AgeOptions
from builders.engine.card import command_of
from builders.engine.options import TRAINING_ROWS
from builders.engine.pipeline import Built
from builders.engine.probe import find_probe
from builders.engine.request import Request
from kbprobe.errors import KbprobeError, MissingDependencyError, UsageError
from kbprobe.options import choices_of
from tests.builders.test_every_probe import QUICK
from tests.real_data import MINIATURE, OWN_DATA

Values = dict[str, Any]
Made = tuple[dict[str, int], dict[tuple[str, str], pa.Table]]
Rows = Callable[[str, Values], Made]

PUBLISHED = {"tier": "full", "sampling": "uniform", "families": ("paper",)}

GOES_WITH: dict[str, Values] = {
    "max_fill": PUBLISHED,
    "min_agreement": {"labels": ("no_such_votes.csv",)},
    "min_votes": {"labels": ("no_such_votes.csv",)},
    "other_pos": {"pos": ("noun", "verb")},
    "rows_by": {"test_rows": 12},
    "sister_depth": PUBLISHED,
}
"""Options that do something only where others are given."""

NOT_HERE = {
    ("encyclopedic_composition", "max_listed"): "the miniature states no sitelinks",
    ("encyclopedic_composition", "min_sitelinks"): "the miniature states no sitelinks",
    ("age_comparison", "rows_by"): "it has no choice groups",
    ("always_never", "rows_by"): "the same",
    ("always_never", "screen"): "no row that was read is offensive",
    ("facts", "hops"): "no object of the table is a subject",
    ("dictionary_wordsense", "screen"): "no sentence of the miniature is offensive",
    ("property_conjunction", "perturbations"): "the miniature has one set of distractors each",
    ("property_conjunction_but_not", "perturbations"): "the same",
    ("wordnet_synonymy", "tier"): "no row of it is doubtful",
    ("taxonomy_conjunction", "min_weight"): "it is read where a ConceptNet is given",
    ("wordnet_synonymy", "common_only"): "the miniature names hardly any name twice",
}
"""What is read and changes nothing in these builds, and why."""

OTHER: Values = {
    "bucket_bounds": (0.5, 20.0),
    "cap_per_gold": 1,
    "cap_per_word": 5,
    "caps": (1, 1, 2),
    "choices": 4,
    "evaluation_ages": (15, 30),
    "evaluation_domains": ("vehicle",),
    "evaluation_rows": 100,
    "families": ("sister",),
    "golds_per_hop": 1,
    "labels": ("no_such_votes.csv",),
    "language": "sq",
    "level": 1.5,
    "limit": 60,
    "max_fill": 1,
    "max_hops": 3,
    "max_listed": 2,
    "max_pairs": 50,
    "max_requests": 1,
    "max_rows": 40,
    "max_tokens": 15,
    "min_agreement": 0.9,
    "min_depth": 6,
    "min_objects": 100,
    "min_sitelinks": 60,
    "min_tokens": 12,
    "min_votes": 3,
    "min_weight": 5,
    "min_zipf": 4.5,
    "no_answer": ("Known to the ancients.",),
    "only_paths": ("no_such_path",),
    "per_family": 50,
    "per_sentence": 1,
    "perturbations": 1,
    "random_share": 0.5,
    "sigma": 9,
    "sister_depth": 1,
    "split_shares": (0.1, 0.3, 0.6),
    "stop_golds": ("group.n.01", "change.v.01", "move.v.02"),
    "train_ages": (43, 90),
    "train_domains": ("vehicle",),
    "test_rows": 1,
    "tolerance": 0.5,
    "train_rows": 1,
    "validation_rows": 1,
}
"""A value that is not the default, where an option's type does not name another."""


def another(name: str, info: Any, value: Any) -> Any:
    """Return another value of an option than the one given."""
    allowed = choices_of(info)
    if name in OTHER and not (name == "families" and allowed):
        return OTHER[name]
    if isinstance(value, bool):
        return not value
    if allowed and isinstance(value, tuple):
        return next((one,) for one in allowed if (one,) != value)
    if allowed:
        return next(one for one in allowed if one != value)
    assert isinstance(info.default, str | tuple), f"give {name} a value in OTHER"
    return "no_such_name" if isinstance(info.default, str) else ("no_such_name",)


@pytest.fixture(scope="module")
def knowledge(
    open_conceptnet: Callable[[str], str], open_wikidata: Callable[[str], str], miniature: str
) -> Callable[[str], Values]:
    """Return the options that name the knowledge base of a probe, which is loaded."""

    def options(name: str) -> Values:
        fields = find_probe(name).options.model_fields
        if name in OWN_DATA:
            return OWN_DATA[name]
        if name.startswith("wordnet_") or name == "antonym_negation":
            return {"wordnet": miniature}
        if "conceptnet" in fields and fields["conceptnet"].default:
            return {"conceptnet": open_conceptnet(MINIATURE)}
        return {"dump": open_wikidata(MINIATURE)} if "dump" in fields else {}

    return options


@pytest.fixture(scope="module")
def rows(
    knowledge: Callable[[str], Values],
    open_gcide: Callable[[], str],
    build_soon: Callable[[Request], Built],
) -> Rows:
    """Return what a limited build with some options left out, and its tables."""
    made: dict[str, Made] = {}

    def tables(name: str, options: Values) -> Made:
        probe = find_probe(name)
        values = {"limit": 200, **knowledge(name), **probe.quick, **options}
        if "gcide" in probe.options.model_fields:
            try:
                values = {"gcide": open_gcide(), **values}
            except MissingDependencyError as error:
                pytest.skip(str(error))
        key = f"{name} {sorted(values.items())}"
        if key not in made:
            built = build_soon(Request(probe, probe.options.parse(values, name), audit=False))
            tables = {
                (config, split): items.table()
                for config, splits in built.configs.items()
                for split, items in splits.items()
            }
            made[key] = built.manifest["counts"]["dropped"], tables
        return made[key]

    return tables


def matters(name: str, option: str, rows: Rows) -> bool:
    """Return whether another value of an option changes what is built, or is refused."""
    probe = find_probe(name)
    info, more = probe.options.model_fields[option], GOES_WITH.get(option, {})
    more = {key: value for key, value in more.items() if key in probe.options.model_fields}
    value = {**probe.quick, **more}.get(option, info.default)
    try:
        left_out, changed = rows(name, {**more, option: another(option, info, value)})
    except KbprobeError:
        return True
    dropped, before = rows(name, more)
    return (
        left_out != dropped
        or changed.keys() != before.keys()
        or any(not changed[key].equals(before[key]) for key in before)
    )


def tried() -> dict[str, list[str]]:
    """Each probe's options that are tried there: those that probes share, in one of them.

    That each probe reads all of its options is tested in `test_every_probe`.
    """
    first: dict[tuple[type, str], str] = {}
    for name in sorted(builders.names(), key=lambda name: name not in QUICK):
        model = find_probe(name).options
        for option, info in model.model_fields.items():
            if len(choices_of(info)) != 1 and (name, option) not in NOT_HERE:
                declares = next(kind for kind in model.__mro__ if option in kind.__annotations__)
                first.setdefault((declares, option), name)
    options: dict[str, list[str]] = {}
    for (_, option), name in first.items():
        options.setdefault(name, []).append(option)
    return options


TRIED = tried()


@pytest.mark.slow
@pytest.mark.parametrize("name", TRIED)
def test_another_value_of_each_option_changes_something_or_is_refused(
    name: str, rows: Rows
) -> None:
    assert [option for option in TRIED[name] if not matters(name, option, rows)] == []


@pytest.mark.slow
def test_an_option_that_nothing_reads_is_refused(miniature: str) -> None:
    with pytest.raises(UsageError, match="nothing in this build reads --sister-depth 3"):
        builders.build("wordnet_antonymy", wordnet=miniature, audit=False, sister_depth=3)
    chosen: Values = {"families": ("near",), "random_share": 0.5}
    with pytest.raises(UsageError, match="nothing in this build reads --random-share"):
        builders.build("wordnet_antonymy", wordnet=miniature, audit=False, **chosen)
    with pytest.raises(UsageError, match="wordnet_antonymy has no option --stem-overlap"):
        builders.build("wordnet_antonymy", stem_overlap="keep")


@pytest.mark.slow
@pytest.mark.parametrize("sampling", ["grouped", "uniform"])
def test_once_asks_each_question_once(sampling: str, miniature: str) -> None:
    made = {}
    for once in (True, False):
        options: Values = {"sampling": sampling, "once": once, "wordnet": miniature}
        splits = builders.build("wordnet_antonymy", train_rows=0, audit=False, **options)
        made[once] = [
            (row["question"], row["choice_nodes"][row["answer"]])
            for rows in splits.values()
            for row in rows
        ]
    assert len(made[True]) == len(set(made[True])) > 50
    assert len(made[False]) > len(set(made[False]))


def test_what_a_model_reads_for_itself_does_not_count_as_read() -> None:
    class OneSided(AgeOptions):
        WITHOUT = ("controls",)

    options = OneSided.parse({"train_ages": (50, 90), "limit": 20}, "")
    assert options.unread() == ["limit", "train_ages"]
    assert options.model_copy().limit == 20
    assert options.unread() == ["train_ages"]
    assert options.only(["train_ages"]).train_ages == (50, 90)
    assert options.unread() == []
    assert OneSided.left_out() == {"tier", "screen", "choices", "controls"}
    assert not OneSided.left_out() & options.model_dump().keys()


def test_a_split_for_training_has_its_own_defaults(miniature: str) -> None:
    probe = find_probe("antonym_negation")
    by_default = probe.options.parse({}, probe.name)
    options = probe.options.parse({"for_training": "true", "wordnet": miniature}, probe.name)
    assert (options.split_shares, options.train_rows) == ((0.6, 0.1, 0.3), TRAINING_ROWS)
    assert (by_default.split_shares, by_default.train_rows) == ((0.4, 0.2, 0.4), 4000)
    given = {"for_training": True, "train_rows": 4000, "split_shares": "0.5,0.2,0.3"}
    options = probe.options.parse({**given, "wordnet": miniature}, probe.name)
    assert (options.split_shares, options.train_rows) == ((0.5, 0.2, 0.3), 4000)
    shown = command_of(Request(probe, options))
    assert "--for-training" in shown
    assert "--train-rows 4000" in shown
    again = probe.options.parse(options.model_dump(mode="json"), probe.name)
    assert again == options


def test_no_split_of_function_words_is_for_training() -> None:
    with pytest.raises(UsageError, match="fw_eos has no option --for-training"):
        builders.build("fw_eos", for_training=True)
