"""Licences: what sources ask for, what follows for the whole, and what cannot be mixed."""

from __future__ import annotations

from itertools import combinations, permutations

import pytest

from kb_cache.base import KINDS, OwnDataOptions, find_kind
from kbprobe.format.licences import UNSTATED, licences, parts_of, terms_of

WORDNET, CC0, BY = "LicenseRef-WordNet", "CC0-1.0", "CC-BY-4.0"
BY_SA_3, BY_SA, GPL, GPL_3 = "CC-BY-SA-3.0", "CC-BY-SA-4.0", "GPL-3.0-or-later", "GPL-3.0-only"
NC, NC_SA, ND = "CC-BY-NC-4.0", "CC-BY-NC-SA-4.0", "CC-BY-ND-4.0"


@pytest.mark.parametrize(
    ("parts", "whole", "hub"),
    [
        ((WORDNET,), WORDNET, "other"),
        ((CC0,), CC0, "cc0-1.0"),
        ((CC0, WORDNET), WORDNET, "other"),
        ((CC0, "MIT"), "MIT", "mit"),
        ((CC0, BY), BY, "cc-by-4.0"),
        ((WORDNET, BY), f"{WORDNET} AND {BY}", "other"),
        ((WORDNET, BY_SA), BY_SA, "cc-by-sa-4.0"),
        ((BY, BY_SA), BY_SA, "cc-by-sa-4.0"),
        ((CC0, GPL), GPL, "gpl-3.0"),
        ((WORDNET, GPL), GPL, "gpl-3.0"),
        (("Apache-2.0", GPL), GPL, "gpl-3.0"),
        # Creative Commons names version 3 of the GPL, not later ones.
        ((GPL, BY_SA), GPL_3, "gpl-3.0"),
        ((GPL, BY_SA, WORDNET, CC0, BY), GPL_3, "gpl-3.0"),
        ((BY_SA_3, WORDNET), BY_SA_3, "cc-by-sa-3.0"),
        ((BY_SA_3, BY_SA), BY_SA, "cc-by-sa-4.0"),
        ((NC, NC_SA), NC_SA, "cc-by-nc-sa-4.0"),
        ((NC, CC0), NC, "cc-by-nc-4.0"),
    ],
)
def test_what_follows_whatever_the_order(parts: tuple[str, ...], whole: str, hub: str) -> None:
    for order in list(permutations(parts))[:24]:
        found = terms_of(" AND ".join(order))
        assert set(parts_of(found.expression)) == set(parts_of(whole))
        assert found.front_matter["license"] == hub
        assert len(found.parts) == len(parts)


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ((BY_SA_3, GPL), "its own later versions alone"),
        ((NC, BY_SA), "forbids commercial use"),
        ((NC, GPL), "no further restriction"),
        ((NC_SA, BY_SA), "commercial use"),
        ((ND,), "must not be shared"),
        ((ND, CC0), "must not be shared"),
    ],
)
def test_a_mix_that_cannot_be_is_refused_with_the_reason(
    parts: tuple[str, ...], reason: str
) -> None:
    for order in permutations(parts):
        assert reason in terms_of(" AND ".join(order)).problem


def test_among_many_the_two_at_odds_are_named() -> None:
    problem = terms_of(" AND ".join((WORDNET, GPL, CC0, BY_SA_3))).problem
    assert "GPL-3.0-or-later and CC-BY-SA-3.0" in problem
    assert WORDNET not in problem


def test_an_unknown_licence_is_named_with_the_nearest() -> None:
    problem = terms_of("CC-BY-SA-4.1").problem
    assert problem.startswith("no licence 'CC-BY-SA-4.1'")
    assert "Did you mean" in problem


def test_every_pair_is_decided_alike_in_both_orders() -> None:
    def outcome(*parts: str) -> object:
        return frozenset(parts_of(terms_of(" AND ".join(parts)).expression))

    for one, other in combinations(licences(), 2):
        assert outcome(one, other) == outcome(other, one)
        assert outcome(one, other, CC0) == outcome(CC0, other, one)


def test_our_own_sources_are_declared_and_say_whom_to_credit() -> None:
    for kind in map(find_kind, KINDS):
        if kind.licence == UNSTATED:
            assert issubclass(kind.options, OwnDataOptions)
            continue
        assert kind.licence in licences()
        assert kind.attribution
        assert kind.citation.startswith("@")


def test_a_probe_for_private_use_may_mix_what_it_likes() -> None:
    terms = terms_of(f"{BY_SA_3} AND {GPL}")
    assert terms.front_matter == {"license": "unknown"}
    assert "no licence suits both" in terms.problem
    own = terms_of("LicenseRef-Mine")
    assert own.front_matter == {"license": "other", "license_name": "licenseref-mine"}
    assert own.problem


def test_the_front_matter_names_what_the_hub_has_no_name_for() -> None:
    assert terms_of(WORDNET).front_matter == {
        "license": "other",
        "license_name": "wordnet",
        "license_link": "https://wordnet.princeton.edu/license-and-commercial-use",
    }
    terms = terms_of(f"{WORDNET} AND {BY_SA}")
    assert terms.front_matter == {"license": "cc-by-sa-4.0"}
    assert [title for title, _, _ in terms.parts] == [
        "WordNet licence",
        "Creative Commons BY-SA 4.0",
    ]
