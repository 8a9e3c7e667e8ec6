"""Every option of every probe does something: something reads it, and its value matters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import builders
from builders.engine.pipeline import build
from builders.engine.probe import find_probe
from builders.engine.request import Request
from kbprobe.errors import KbprobeError, MissingDependencyError, UsageError
from kbprobe.options import choices_of
from tests.real_data import MINIATURE

Values = dict[str, Any]
Rows = Callable[[str, Values], dict[tuple[str, str], pa.Table]]

GOES_WITH: dict[str, Values] = {
    "every_family": {"tier": "full"},
    "max_distance": {"families": ("paper",)},
    "max_fill": {"families": ("paper",)},
    "max_majority": {"silver": True},
    "min_agreement": {"labels": ("no_such_votes.csv",)},
    "min_votes": {"labels": ("no_such_votes.csv",)},
    "perturbations": {"tier": "full", "every_family": True},
    "proposer_top_k": {"proposer": "no_such_model"},
    "sister_depth": {"families": ("sister",)},
}
"""Options that are read only where others are given."""

OTHER: Values = {
    "cap_per_gold": 1,
    "cap_per_question": 1,
    "cap_per_word": 5,
    "choices": 4,
    "evaluation_ages": (15, 30),
    "evaluation_domains": ("vehicle",),
    "evaluation_rows": 100,
    "families": ("paper",),
    "further_share": 0.1,
    "golds_per_concept": 1,
    "golds_per_hop": 1,
    "labels": ("no_such_votes.csv",),
    "language": "sq",
    "level": 1.5,
    "limit": 60,
    "max_context": 60,
    "max_contexts": 2,
    "max_definition": 60,
    "max_distance": 1,
    "max_fill": 3,
    "max_holders": 5,
    "max_hops": 1,
    "max_listed": 20,
    "max_majority": 0.9,
    "max_pairs": 50,
    "max_per_bearer": 1,
    "max_per_entity": 1,
    "max_per_gold": 2,
    "max_reach": 100,
    "max_requests": 1,
    "max_same_word": 1,
    "max_share": 0.2,
    "max_tokens": 15,
    "min_agreement": 0.9,
    "min_answer_zipf": 4.5,
    "min_depth": 6,
    "min_lemmas": 4,
    "min_ratio": 20,
    "min_ratio_uneven": 20,
    "min_share": 0.9,
    "min_sitelinks": 60,
    "min_tokens": 12,
    "min_votes": 3,
    "min_weight": 5,
    "min_weight_firm": 6,
    "min_weight_loose": 5,
    "min_zipf": 4.5,
    "only_paths": ("no_such_path",),
    "out_of_range": (300, 330),
    "pairs_per_word": 1,
    "per_family": 50,
    "per_sentence": 1,
    "perturbations": 2,
    "proposer_top_k": 3,
    "reference_year": 2000,
    "sigma": 9,
    "sister_depth": 1,
    "split_shares": (0.1, 0.3, 0.6),
    "stop_concepts": ("tree.n.01",),
    "stop_golds": (),
    "test_trees": ("animal",),
    "train_ages": (43, 90),
    "train_domains": ("vehicle",),
    "train_rows": 20,
    "train_trees": ("person",),
    "validation_trees": ("job",),
}
"""A value that is not the default, where an option's type does not name another."""


def another(name: str, info: Any) -> Any:
    """Return another value of an option than its default."""
    if name in OTHER and (name != "families" or not choices_of(info)):
        return OTHER[name]
    if isinstance(info.default, bool):
        return not info.default
    if allowed := choices_of(info):
        if isinstance(info.default, tuple):
            return tuple(allowed[:1]) if info.default != allowed[:1] else tuple(allowed[1:2])
        return next(value for value in allowed if value != info.default)
    assert isinstance(info.default, str | tuple), f"give {name} a value in OTHER"
    return "no_such_name" if isinstance(info.default, str) else ("no_such_name",)


@pytest.fixture(scope="module")
def knowledge(
    open_conceptnet: Callable[[str], str], open_wikidata: Callable[[str], str]
) -> Callable[[str], Values]:
    """Return the options that name the knowledge base of a probe, which is loaded."""

    def options(name: str) -> Values:
        fields = find_probe(name).options.model_fields
        if "conceptnet" in fields and fields["conceptnet"].default:
            return {"conceptnet": open_conceptnet(MINIATURE)}
        return {"dump": open_wikidata(MINIATURE)} if "dump" in fields else {}

    return options


@pytest.fixture(scope="module")
def rows(knowledge: Callable[[str], Values], open_gcide: Callable[[], str]) -> Rows:
    """Return the tables of a limited build with some options, by config and split."""
    made: dict[str, dict[tuple[str, str], pa.Table]] = {}

    def tables(name: str, options: Values) -> dict[tuple[str, str], pa.Table]:
        probe = find_probe(name)
        if "gcide" in probe.options.model_fields:
            try:
                open_gcide()
            except MissingDependencyError as error:
                pytest.skip(str(error))
        values = {"limit": 200, **knowledge(name), **probe.quick, **options}
        key = f"{name} {sorted(values.items())}"
        if key not in made:
            built = build(Request(probe, probe.options.parse(values, name), audit=False))
            made[key] = {
                (config, split): items.table()
                for config, splits in built.configs.items()
                for split, items in splits.items()
            }
        return made[key]

    return tables


EVERY = [
    pytest.param(name, option, id=f"{name}-{option}")
    for name in builders.names()
    for option, info in find_probe(name).options.model_fields.items()
    if choices_of(info) == () or len(choices_of(info)) > 1
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "option"), EVERY)
def test_another_value_gives_other_rows_or_is_refused(name: str, option: str, rows: Rows) -> None:
    info = find_probe(name).options.model_fields[option]
    more = GOES_WITH.get(option, {})
    try:
        changed = rows(name, {**more, option: another(option, info)})
    except KbprobeError as error:
        changed = None
        print("REFUSED", name, option, str(error)[:200])
    if changed is not None:
        before = rows(name, more)
        assert changed.keys() != before.keys() or any(
            not changed[key].equals(before[key]) for key in before
        )
