"""encyclopedic_composition: true golds, false distractors, splits apart, paths from files."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import builders.compositions.probes  # noqa: F401
from builders.compositions import chains
from builders.compositions.chains import DOUBTS, share_a_word
from builders.compositions.collecting import collect
from builders.compositions.facts import UNKNOWN, Collected, entity_of, year_of
from builders.compositions.paths import load_paths
from builders.engine.pipeline import Built, build, write
from builders.engine.probe import find_probe
from builders.engine.request import Request
from kb_cache.fetching import fetch
from kb_cache.wikidata.load import load_wikidata
from kb_cache.wikidata.sparql.types import Term
from kb_cache.wikidata.types import Wikidata
from kbprobe.errors import SourceError, UsageError
from kbprobe.format.items import plain
from tests.builders.toy_wikidata import Toy, bands, invented
from tests.real_data import MINIATURE, ON_MINIATURE, SAMPLE

NAME = "encyclopedic_composition"
WD = "http://www.wikidata.org/entity/"
WDT = "http://www.wikidata.org/prop/direct/"
ALL = {"train_rows": 0, "controls": False}
Rows = list[dict[str, Any]]
Cut = Callable[[Toy], str]

PAPERS = ("band-start", "film-actor-spouse", "founder-company-headquarters")
EDGES = {
    "band-start": "{ ?start wdt:P463 ?band } UNION { ?band wdt:P527 ?start } "
    "?band wdt:P571|wdt:P2031 ?answer",
    "film-actor-spouse": "?start wdt:P161/(wdt:P26|^wdt:P26) ?answer",
    "founder-company-headquarters": "?company wdt:P112 ?start ; wdt:P159 ?answer",
    "film-director-country": "?start wdt:P57/wdt:P27 ?answer",
    "student-university-founded": "?start wdt:P69/wdt:P571 ?answer",
    "founder-company-headquarters-country": "?company wdt:P112 ?start ; wdt:P159/wdt:P17 ?answer",
    "film-director-university-founded": "?start wdt:P57/wdt:P69/wdt:P571 ?answer",
    "film-director-born": "?start wdt:P57/wdt:P569 ?answer",
    "film-director-birthplace": "?start wdt:P57/wdt:P19 ?answer",
    "film-composer-born": "?start wdt:P86/wdt:P569 ?answer",
    "film-composer-birthplace": "?start wdt:P86/wdt:P19 ?answer",
    "film-composer-country": "?start wdt:P86/wdt:P27 ?answer",
    "band-place": "?band wdt:P740 ?answer . "
    "{ ?start wdt:P463 ?band } UNION { ?band wdt:P527 ?start }",
    "student-university-place": "?start wdt:P69/(wdt:P159|wdt:P131) ?answer",
    "band": "?start wdt:P463|^wdt:P527 ?answer",
    "band-formed": "?start wdt:P571|wdt:P2031 ?answer",
    "actor": "?start wdt:P161 ?answer",
    "spouse": "?start wdt:P26|^wdt:P26 ?answer",
    "founded": "?answer wdt:P112 ?start",
    "headquarters": "?start wdt:P159 ?answer",
    "country-of-place": "?start wdt:P17 ?answer",
    "director": "?start wdt:P57 ?answer",
    "citizenship": "?start wdt:P27 ?answer",
    "studied-at": "?start wdt:P69 ?answer",
    "university-founded": "?start wdt:P571 ?answer",
    "university-place": "?start wdt:P159|wdt:P131 ?answer",
    "band-from": "?start wdt:P740 ?answer",
    "composer": "?start wdt:P86 ?answer",
    "born": "?start wdt:P569 ?answer",
    "birthplace": "?start wdt:P19 ?answer",
}
"""Every valid answer, asked for by hand: what the builder finds hop by hop."""


@pytest.fixture
def dump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cut:
    """Load triples into a cache of this test's own; return the dump's name."""
    monkeypatch.setenv("KBPROBE_CACHE", str(tmp_path / "cache"))

    def load(toy: Toy) -> str:
        path = tmp_path / "toy.nt"
        path.write_text(toy.text, encoding="utf-8")
        fetch("wikidata", source=path, name="toy")
        return "toy"

    return load


def built(seed: int = 0, knowledge: Collected | None = None, **options: Any) -> Built:
    probe = find_probe(NAME)
    if knowledge is not None:
        probe = replace(probe, open=lambda _: knowledge)
    parsed = probe.options.parse({**ALL, **options}, NAME)
    return build(Request(probe, parsed, seed, audit=False))


def rows_of(done: Built, config: str = "default") -> dict[str, Rows]:
    return {name: plain(items.table()).to_pylist() for name, items in done.configs[config].items()}


def flat(splits: dict[str, Rows]) -> Rows:
    return [row for rows in splits.values() for row in rows]


def gold(row: dict[str, Any]) -> str:
    return str(row["choices"]["text"][row["answer"]])


# ---- real triples


@pytest.fixture(scope="module")
def sample(wikidata: str) -> Wikidata:
    return load_wikidata(wikidata)


@pytest.fixture(scope="module")
def knowledge(sample: Wikidata) -> Collected:
    return collect(sample, load_paths())


@pytest.fixture(scope="module")
def real(knowledge: Collected) -> Built:
    return built(knowledge=knowledge)


@pytest.fixture(scope="module")
def full(knowledge: Collected) -> Built:
    return built(knowledge=knowledge, tier="full")


def read_alike(text: str) -> str:
    return " ".join("".join(c if c.isalnum() else " " for c in text.casefold()).split())


def valid_answers(
    sample: Wikidata, edges: str, labels: Iterable[str], language: str = "en"
) -> dict[str, set[str]]:
    """All answers by the label of the entity asked about, as Q-ids or years."""
    texts = " ".join(f'"{escaped(label)}"@{language}' for label in sorted(set(labels)))
    query = (
        f"SELECT DISTINCT ?label ?answer WHERE {{ VALUES ?label {{ {texts} }} "
        f"?start rdfs:label ?label . {edges} }}"
    )
    found: dict[str, set[str]] = defaultdict(set)
    for label, answer in sample.select(query).rows:
        assert label is not None
        assert answer is not None
        node = answer.value.removeprefix(WD) if answer.kind == "uri" else answer.value[:4]
        found[label.value].add(node if answer.kind == "uri" else str(int(node)))
    return found


def escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


@pytest.mark.parametrize("config", ["default", "facts"])
def test_golds_are_true_and_distractors_false_by_the_sources_own_word(
    real: Built, sample: Wikidata, knowledge: Collected, config: str, extent: str
) -> None:
    rows = flat(rows_of(real, config))
    labels = knowledge.labels
    assert len(rows) > {MINIATURE: 450, SAMPLE: 1000}[extent]
    for family in {row["distractor_family"] for row in rows}:
        some = [row for row in rows if row["distractor_family"] == family]
        asked = {labels[row["concept"]] for row in some}
        valid = valid_answers(sample, EDGES[family], asked)
        for row in some:
            answers = valid[labels[row["concept"]]]
            texts = {read_alike(labels.get(node, node)) for node in answers}
            for at, node in enumerate(row["choice_nodes"]):
                shown = row["choices"]["text"][at]
                assert shown == (labels[node] if node.startswith("Q") else node)
                assert (node in answers) == (at == row["answer"]), row
                assert (read_alike(shown) in texts) == (at == row["answer"]), row


@pytest.mark.slow
def test_triples_are_the_sources_and_lead_from_the_entity_to_the_gold(
    real: Built, sample: Wikidata
) -> None:
    rows = flat(rows_of(real))
    for row in rows:
        at = row["concept"]
        for triple in row["triples"]:
            ends = [triple["subject"], triple["object"]]
            assert at in ends
            at = ends[1 - ends.index(at)]
        assert at == row["choice_nodes"][row["answer"]]
        assert row["hops"] == len(row["triples"])
        steps = row["relation"].split("/")
        assert [step.strip("^") for step in steps] == [t["relation"] for t in row["triples"]]
        assert row["cluster"] in row["triples"][-1].values()
    stated = {(t["subject"], t["relation"], t["object"]) for row in rows for t in row["triples"]}
    names = sorted({name for _, name, _ in stated})
    for name in names:
        answer = sample.select(f"SELECT ?s ?o WHERE {{ ?s wdt:{name} ?o }}")
        known = {
            (s.value.removeprefix(WD), o.value.removeprefix(WD))
            for s, o in answer.rows
            if s and o and o.kind == "uri"
        }
        known |= {
            (s.value.removeprefix(WD), year_of(o))
            for s, o in answer.rows
            if s and o and o.kind == "literal"
        }
        assert {(s, o) for s, p, o in stated if p == name} <= known


def test_no_entity_asked_about_and_no_fact_is_in_two_splits(real: Built) -> None:
    for config in ("default", "facts"):
        splits = rows_of(real, config)
        facts: dict[tuple[str, ...], set[str]] = defaultdict(set)
        asked: dict[str, set[str]] = defaultdict(set)
        stems: dict[str, set[str]] = defaultdict(set)
        for split, rows in splits.items():
            for row in rows:
                stems[row["concept"]].add(split)
                at = row["concept"]
                for triple in row["triples"]:
                    asked[at].add(split)
                    ends = sorted((triple["subject"], triple["object"]))
                    facts[triple["relation"], *ends].add(split)
                    at = next(end for end in ends if end != at)
        assert set(map(len, asked.values())) == {1}
        assert set(map(len, facts.values())) == {1}
        assert set(map(len, stems.values())) == {1}


@pytest.mark.slow
def test_all_that_is_asked_about_one_bearer_shows_the_same_choices(
    real: Built, full: Built
) -> None:
    # Else its answer is the one choice that recurs.
    for rows in (*rows_of(real).values(), *rows_of(full).values()):
        shown: dict[tuple[str, str], set[frozenset[str]]] = defaultdict(set)
        questions: Counter[tuple[str, str]] = Counter()
        for row in rows:
            node = row["choice_nodes"][row["answer"]]
            shown[row["cluster"], node].add(frozenset(row["choice_nodes"]))
            questions[row["distractor_family"] + row["concept"], node] += 1
        assert set(map(len, shown.values())) == {1}
        assert set(questions.values()) == {1}


@pytest.mark.slow
def test_no_path_has_more_than_its_share_of_a_clean_build(real: Built) -> None:
    for rows in rows_of(real).values():
        count = Counter(row["distractor_family"] for row in rows)
        assert max(count.values()) <= 0.43 * len(rows)


@pytest.mark.slow
def test_only_the_full_tier_holds_what_is_in_doubt(
    sample: Wikidata, real: Built, full: Built
) -> None:
    assert not any(row["flags"] for row in flat(rows_of(real)))
    rows = flat(rows_of(full))
    found = {name for row in rows for name in row["flags"]}
    assert {"one_sided", "several_values", "unknown_life"} <= found <= set(DOUBTS)
    answer = sample.select("SELECT ?s ?o WHERE { ?s wdt:P26 ?o }")
    pairs = ((entity_of(one), entity_of(other)) for one, other in answer.rows)
    stated = set(pairs)
    for row in rows:
        if row["distractor_family"] == "film-actor-spouse":
            couple = row["triples"][1]["subject"], row["triples"][1]["object"]
            assert ({couple, couple[::-1]} <= stated) == ("one_sided" not in row["flags"])


@pytest.mark.slow
@ON_MINIATURE
def test_published_wordings_are_there_by_option(sample: Wikidata, real: Built) -> None:
    options = {"only_paths": PAPERS, "published_wordings": True}
    probe = find_probe(NAME)
    request = Request(probe, probe.options.parse({**ALL, **options}, NAME), 0, audit=False)
    texts = {wording.text for wording in request.wordings.questions if "paper" in wording.id}
    assert texts == {
        "When did the band where {{ entity }} played first form?",
        "Who is the spouse of the actor that played in {{ entity }}?",
        "Where is the headquarters of the company that {{ entity }} established located?",
    }
    asked = collect(sample, load_paths(only=PAPERS, as_published=True))
    rows = flat(rows_of(built(knowledge=asked, **options)))
    assert {row["template"] for row in rows} == {
        f"{row['distractor_family']}-paper" for row in rows
    }
    assert not any("paper" in row["template"] for row in flat(rows_of(real)))


def test_some_spouse_of_a_set_is_never_asked_for(real: Built) -> None:
    golds: dict[frozenset[str], set[str]] = defaultdict(set)
    for row in flat(rows_of(real)):
        if row["distractor_family"] == "film-actor-spouse":
            golds[frozenset(row["choice_nodes"])].add(row["choice_nodes"][row["answer"]])
    # People of several spouses can be asked for in two sets.
    assert sum(found == choices for choices, found in golds.items()) <= 0.05 * len(golds) + 1


def test_years_are_near_and_as_far_apart_as_sources_differ(real: Built) -> None:
    gaps = []
    for row in flat(rows_of(real)):
        if row["choices"]["text"][0].isdigit():
            years = sorted(map(int, row["choices"]["text"]))
            least = 2 if row["distractor_family"].endswith("born") else 5
            assert min(b - a for a, b in pairwise(years)) >= least
            assert years[-1] - years[0] <= 3 * least
            gaps += [abs(year - int(gold(row))) for year in years if str(year) != gold(row)]
    assert sorted(gaps)[len(gaps) // 2] <= 8


def test_what_is_right_elsewhere_hardly_excludes_a_choice(real: Built, extent: str) -> None:
    """Who knows the answers of all other bearers, and takes a choice that is not among them."""
    credit = []
    for rows in rows_of(real).values():
        right: dict[str, set[str]] = defaultdict(set)
        for row in rows:
            right[row["choice_nodes"][row["answer"]]].add(row["cluster"])
        for row in rows:
            left = [node for node in row["choice_nodes"] if not right[node] - {row["cluster"]}]
            own = row["choice_nodes"][row["answer"]]
            credit.append((own in left) / len(left) if left else 1 / 3)
    # Where each choice is asked for once, all but a few are excluded: 80% and more.
    assert sum(credit) / len(credit) < {MINIATURE: 0.6, SAMPLE: 0.5}[extent]


@pytest.mark.slow
@ON_MINIATURE
def test_a_part_of_the_facts_does_not_answer(knowledge: Collected) -> None:
    from builders.compositions.probes import encyclopedic_composition
    from kbprobe.rng import RandomGenerator

    options = find_probe(NAME).options.parse(ALL, NAME)
    plan = encyclopedic_composition(knowledge, options, RandomGenerator.of(0, NAME))
    assert plan.oracles.keys() == {"kind", "last fact", "first facts"}
    for oracle in plan.oracles.values():
        assert oracle.target == pytest.approx(2 / 3)
        assert 0.3 < oracle.credit.mean() < 0.6


def test_every_fact_of_a_question_is_asked_alone_in_the_same_split(real: Built) -> None:
    facts = {
        row["id"]: (split, row) for split, rows in rows_of(real, "facts").items() for row in rows
    }
    used = set()
    for split, rows in rows_of(real).items():
        for row in rows:
            assert len(row["fact_ids"]) == len(row["triples"])
            for name, triple in zip(row["fact_ids"], row["triples"], strict=True):
                where, fact = facts[name]
                used.add(name)
                assert where == split
                assert fact["triples"] == [triple]
                assert fact["hops"] == 1
    assert used == facts.keys()


@pytest.mark.slow
def test_no_name_gives_an_answer_away(real: Built) -> None:
    for row in (*flat(rows_of(real)), *flat(rows_of(real, "facts"))):
        assert not share_a_word(row["arguments"][0]["value"], gold(row)), row["question"]


@pytest.mark.slow
@ON_MINIATURE
def test_unambiguous_questions_have_one_answer(sample: Wikidata, knowledge: Collected) -> None:
    rows = flat(rows_of(built(knowledge=knowledge, unambiguous=True)))
    assert len(rows) > 200
    for family in {row["distractor_family"] for row in rows}:
        some = [row for row in rows if row["distractor_family"] == family]
        labels = [knowledge.labels[row["concept"]] for row in some]
        valid = valid_answers(sample, EDGES[family], labels)
        assert all(len(valid[label]) == 1 for label in labels)


@pytest.mark.slow
@ON_MINIATURE
def test_caps_hold_within_a_path(knowledge: Collected) -> None:
    caps = 1, 2, 3
    rows = flat(rows_of(built(knowledge=knowledge, caps=caps)))
    cells: list[Counter[Any]] = [Counter() for _ in caps]
    for row in rows:
        node = row["choice_nodes"][row["answer"]]
        for counts, cell in zip(cells, (row["concept"], row["cluster"], node), strict=True):
            counts[row["distractor_family"], cell] += 1
    assert tuple(max(counts.values()) for counts in cells) == caps


@pytest.mark.slow
@ON_MINIATURE
def test_server_store_and_cache_give_the_same_bytes(
    oxigraph_server: str, wikidata: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kb_cache.wikidata.sparql.endpoint import QueryLimits, SparqlEndpoint
    from kb_cache.wikidata.sparql.session import CachedEndpoint

    options = {"dump": wikidata, "only_paths": PAPERS}
    store = find_probe(NAME).open(find_probe(NAME).options.parse(options, NAME))
    monkeypatch.setenv("KBPROBE_CACHE", str(tmp_path / "cache"))
    patient = CachedEndpoint(SparqlEndpoint(oxigraph_server, limits=QueryLimits(pause=0.0)))
    server = collect(patient, load_paths(only=PAPERS), min_sitelinks=20, max_listed=500)
    offline = {"endpoint": oxigraph_server, "offline": True, "only_paths": PAPERS}
    cache = Request(find_probe(NAME), find_probe(NAME).options.parse(offline, NAME))
    assert store.digest == server.digest == cache.knowledge.digest
    assert [q["query"] for q in server.queries] == [q["query"] for q in cache.knowledge.queries]
    written = {}
    for name, source in (("store", store), ("server", server), ("cache", cache.knowledge)):
        write(built(knowledge=source, limit=300, only_paths=PAPERS), tmp_path / name)
        written[name] = {
            path.relative_to(tmp_path / name): path.read_bytes()
            for path in (tmp_path / name).rglob("*.parquet")
        }
    assert written["store"] == written["server"] == written["cache"]
    assert len(written["store"]) == 6


BY_NUMBER = {
    MINIATURE: {"P57": "director", "P495": "country of origin"},
    SAMPLE: {"P36": "capital", "P37": "official language"},
}
"""Properties of real triples, the second of which often leads to several things."""


def test_a_property_alone_has_golds_stated_and_distractors_not(
    sample: Wikidata, wikidata: str, extent: str
) -> None:
    names = BY_NUMBER[extent]
    done = built(dump=wikidata, paths=",".join(f"{edge}:{name}" for edge, name in names.items()))
    assert list(done.configs) == ["default"]  # questions about one fact rest on no others
    rows = flat(rows_of(done))
    assert {row["relation"] for row in rows} == names.keys()
    assert len(rows) > {MINIATURE: 100, SAMPLE: 500}[extent]
    several = Counter[str]()
    for edge, name in names.items():
        some = [row for row in rows if row["relation"] == edge]
        shown = {row["concept"]: label_in(row) for row in some}
        valid = valid_answers(sample, f"?start wdt:{edge} ?answer", shown.values())
        for row in some:
            answers = valid[shown[row["concept"]]]
            for at, node in enumerate(row["choice_nodes"]):
                assert (node in answers) == (at == row["answer"]), row
            assert row["hops"] == 1
            assert row["fact_ids"] == []
            assert row["triples"] == [
                {
                    "subject": row["concept"],
                    "relation": edge,
                    "object": row["choice_nodes"][row["answer"]],
                }
            ]
            one_of_several = row["question"].startswith(("Which of these is a", "One "))
            assert one_of_several == (len(answers) > 1), row
            several[name] += one_of_several
    assert several[[*names.values()][1]] > 20


def label_in(row: dict[str, Any]) -> str:
    return str(next(one["value"] for one in row["arguments"] if one["name"] == "entity"))


def test_several_objects_can_be_left_out(wikidata: str, extent: str) -> None:
    edge, name = [*BY_NUMBER[extent].items()][1]
    done = built(dump=wikidata, paths=f"{edge}:{name}", unambiguous=True)
    rows = flat(rows_of(done))
    assert rows
    assert all(row["question"].startswith(("What is", "The ")) for row in rows)
    assert len({row["concept"] for row in rows}) == len(rows)


@pytest.mark.parametrize("paths", ["P99999:nothing", "P27:country,P99999:nothing", "P569:birth"])
@ON_MINIATURE
def test_a_property_that_leads_to_no_entity_is_named(wikidata: str, paths: str) -> None:
    wanted = paths.rpartition("P")[2].partition(":")[0]
    with pytest.raises(SourceError, match=f"miniature states no entity as P{wanted} of another"):
        built(dump=wikidata, paths=paths)


@pytest.mark.slow
@ON_MINIATURE
def test_a_server_lists_what_has_a_property_as_a_store_does(
    oxigraph_server: str, sample: Wikidata, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kb_cache.wikidata.sparql.endpoint import QueryLimits, SparqlEndpoint
    from kb_cache.wikidata.sparql.session import CachedEndpoint

    monkeypatch.setenv("KBPROBE_CACHE", str(tmp_path / "cache"))
    patient = CachedEndpoint(SparqlEndpoint(oxigraph_server, limits=QueryLimits(pause=0.0)))
    paths = load_paths("P495:country of origin")
    assert collect(patient, paths).digest == collect(sample, paths).digest


# ---- invented sources


def test_band_members_are_found_from_either_end(dump: Cut) -> None:
    done = built(dump=dump(bands()), only_paths=("band-start",))
    rows = flat(rows_of(done))
    assert len(rows) > 40
    assert {row["relation"] for row in rows} == {"P463/P571", "^P527/P571"}
    for row in rows:
        member = int(row["concept"][1:]) - 2000
        assert gold(row) == str(1950 + 2 * (member // 2))


def test_a_second_start_counts_only_where_there_is_no_first(dump: Cut) -> None:
    toy = bands()
    for at in range(0, 30, 3):  # true as well, so no distractor; but not asked for
        toy.date(f"Q{1000 + at}", "P2031", f"{1953 + 2 * at}-01-01")
    rows = flat(rows_of(built(dump=dump(toy), only_paths=("band-start",))))
    assert {row["relation"].split("/")[1] for row in rows} == {"P571"}
    for row in rows:
        band = int(row["cluster"][1:]) - 1000
        if band % 3 == 0:
            assert str(1953 + 2 * band) not in row["choices"]["text"]


def test_a_source_with_ranks_precision_and_sitelinks_is_read_to_the_full(dump: Cut) -> None:
    toy = bands()
    for at in range(30):
        toy.sitelinks(f"Q{1000 + at}", 10 + at)
    for member in range(2000, 2060):
        toy.sitelinks(f"Q{member}", 50 if member != 2041 else 3)
    toy.old_statement("Q2040", "P463", "Q1021")
    toy.dated_statement("Q1029", "P571", "2010-01-01", 8)  # a decade
    rows = flat(rows_of(built(dump=dump(toy), only_paths=("band-start",), min_sitelinks=15)))
    clusters = {row["cluster"] for row in rows}
    assert clusters <= {f"Q{1000 + at}" for at in range(5, 30)}
    assert len(clusters) >= 12
    assert "Q2041" not in {row["concept"] for row in rows}
    for row in rows:
        assert "2010" not in row["choices"]["text"]
        if row["concept"] == "Q2040":
            assert gold(row) == "1990"
            assert "1992" not in row["choices"]["text"]


def test_centuries_are_not_asked_about_as_years(
    dump: Cut, caplog: pytest.LogCaptureFixture
) -> None:
    toy = bands()
    done = built(dump=dump(toy), only_paths=("band-start",))
    assert not [row for row in flat(rows_of(done)) if gold(row) == "2000"]  # 1 January
    assert "states no precision of dates for band-formed" in caplog.text
    reason = "band-start: the date is not exact to the year"
    assert done.manifest["counts"]["dropped"][reason] == 2


def test_what_cannot_be_asked_is_dropped_and_counted(dump: Cut) -> None:
    toy = bands()
    toy.date("Q1000", "P571", "1950-01-01")
    strange = {
        "Q3000": ("Q5", "Vadu"),  # no label in English
        "Q3001": ("Q5", "Q3001"),  # a number for a name
        "Q3002": ("Q5", f"{invented(101)} Rosu"),  # has the name of the band
        "Q3003": ("Q144", "Fido"),  # a dog
        "Q3004": ("Q5", "Nepi"),  # died before the band was formed
        "Q3005": ("Q5", "Lugo 1996"),  # names the year
    }
    for at, (person, (kind, name)) in enumerate(strange.items()):
        toy.thing(person, kind, name, "fr" if at == 0 else "en")
        toy.link(person, "P463", "Q1001" if at == 2 else f"Q{1018 + at}")
    toy.date("Q3004", "P570", "1950-05-05")
    toy.thing("Q3006", "Q5", "Supi", "en")
    toy.thing("Q1100", "Q215380", "The Untold", "en")
    toy.link("Q3006", "P463", "Q1100")
    toy.triple(f"{WD}Q1100", f"{WDT}P571", "_:unknown")
    done = built(dump=dump(toy), only_paths=("band-start",), caps=(4, 0, 40))
    dropped = done.manifest["counts"]["dropped"]
    expected = {
        "a label is missing, or no name": 2,
        "a name gives an answer away": 2,
        "something on the way is not of the class asked for, or no class is stated": 1,
        "the year is later than the life of somebody on the way": 1,
        "the value is unknown, or no year after Christ": 1,
    }
    assert (
        expected.items()
        <= {reason.removeprefix("band-start: "): count for reason, count in dropped.items()}.items()
    )
    assert not {row["concept"] for row in flat(rows_of(done))} & (strange.keys() | {"Q3006"})


def test_only_the_best_known_are_looked_up(dump: Cut) -> None:
    toy = bands()
    for number in (*range(1000, 1030), *range(2000, 2060)):
        toy.sitelinks(f"Q{number}", number % 1000)
    options = {"only_paths": ("band-start",), "min_sitelinks": 0, "max_listed": 24}
    rows = flat(rows_of(built(dump=dump(toy), **options)))
    assert {row["cluster"] for row in rows} <= {f"Q{1000 + at}" for at in range(18, 30)}
    assert {row["concept"] for row in rows} <= {f"Q{2000 + at}" for at in range(36, 60)}


def test_sitelinks_of_data_nodes_are_read_for_each_entity(dump: Cut) -> None:
    toy = bands()
    toy.sitelinks_of_data("Q1000", 3)  # the others are not described
    rows = flat(rows_of(built(dump=dump(toy), only_paths=("band-start",))))
    assert len({row["cluster"] for row in rows}) > 20
    assert "Q1000" not in {row["cluster"] for row in rows}


def test_sitelinks_of_data_nodes_select_the_best_known(dump: Cut) -> None:
    toy = bands()
    for number in (*range(1000, 1030), *range(2000, 2060)):
        toy.sitelinks_of_data(f"Q{number}", number % 1000)
    options = {"only_paths": ("band-start",), "min_sitelinks": 0, "max_listed": 24}
    rows = flat(rows_of(built(dump=dump(toy), **options)))
    assert rows
    assert {row["concept"] for row in rows} <= {f"Q{2000 + at}" for at in range(36, 60)}


@pytest.mark.parametrize("state", [Toy.sitelinks, Toy.sitelinks_of_data])
def test_too_few_sitelinks_name_the_option(
    dump: Cut, state: Callable[[Toy, str, int], None]
) -> None:
    toy = bands()
    for number in (*range(1000, 1030), *range(2000, 2060)):
        state(toy, f"Q{number}", 3)
    with pytest.raises(SourceError, match="at least 20 sitelinks; --min-sitelinks 0"):
        built(dump=dump(toy), only_paths=("band-start",))


def test_a_fact_alone_starts_at_the_best_known_that_have_it(dump: Cut) -> None:
    toy = places()
    for at in range(45):
        toy.sitelinks(f"Q{500 + at}", at)
    done = built(dump=dump(toy), paths="P159:seat", min_sitelinks=0, max_listed=30)
    rows = flat(rows_of(done))
    assert rows
    assert {row["concept"] for row in rows} <= {f"Q{515 + at}" for at in range(30)}


def test_what_a_right_answer_lies_in_is_no_distractor(dump: Cut) -> None:
    toy = places()
    countries = {f"Q{10 + at}" for at in range(3)}
    for country in countries:
        toy.link(country, "P31", "Q515")  # so that countries stand beside towns
    for at in range(45):
        toy.link(f"Q{500 + at}", "P276", f"Q{400 + at}" if at % 2 else f"Q{10 + at % 3}")
    name, beside = dump(toy), 0
    for seed in range(3):
        for row in flat(rows_of(built(seed, dump=name, paths="P276:location", caps=(0, 0, 0)))):
            town = row["choice_nodes"][row["answer"]]
            if town not in countries:
                assert f"Q{10 + (int(town[1:]) - 400) % 3}" not in row["choice_nodes"]
                beside += bool(countries & {*row["choice_nodes"]})
    assert beside > 10


def test_one_hop_beside_several(dump: Cut, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("paths:\n  - {id: who-founded, hops: [founded]}\n", encoding="utf-8")
    done = built(
        dump=dump(places()),
        paths=str(file),
        only_paths=("who-founded", "founder-company-headquarters"),
    )
    rows, facts = flat(rows_of(done)), flat(rows_of(done, "facts"))
    assert {(row["distractor_family"].partition(":")[0], row["hops"]) for row in rows} == {
        ("who-founded", 1),
        ("founder-company-headquarters", 2),
    }
    named = {name for row in rows if row["hops"] == 2 for name in row["fact_ids"]}
    assert named == {row["id"] for row in facts}
    assert {name for row in rows if row["hops"] == 1 for name in row["fact_ids"]} == {""}


def couples() -> Toy:
    """Forty films with an actor each, and the actor's spouse; the first two films have one name."""
    toy = Toy()
    for at in range(40):
        film = f"The {invented(3000 + max(at, 1))}"
        toy.thing(f"Q{100 + at}", "Q11424", film)
        for number, end in ((200 + at, "P161"), (300 + at, "P26")):
            name = f"{invented(number * 7)} {invented(number * 11)}"
            person = toy.thing(f"Q{number}", "Q5", name)
            toy.link(f"Q{100 + at}" if end == "P161" else f"Q{200 + at}", end, person)
            if end == "P26":
                toy.link(person, end, f"Q{200 + at}")
            toy.link(person, "P21", "Q6581072" if number % 2 else "Q6581097")
            toy.date(person, "P569", f"{1900 + at}-02-03")
    return toy


def test_spouses_stand_beside_people_of_their_country_profession_gender_and_era(dump: Cut) -> None:
    toy = couples()
    for at in range(40):  # half of them are of one country and profession, half of another
        toy.link(f"Q{300 + at}", "P27", f"Q{30 + at // 2 % 2}")
        toy.link(f"Q{300 + at}", "P106", f"Q{40 + at // 2 % 2}")
    rows = flat(rows_of(built(dump=dump(toy), only_paths=("film-actor-spouse",))))
    assert len(rows) > 15
    near = [row for row in rows if set(row["choice_families"]) == {"gold", "film-actor-spouse"}]
    assert len(near) > 8
    for row in near:
        assert len({int(node[1:]) // 2 % 2 for node in row["choice_nodes"]}) == 1
    for row in rows:
        if "film-actor-spouse: any person" in row["choice_families"]:
            continue
        numbers = [int(node[1:]) for node in row["choice_nodes"]]
        assert len({number % 2 for number in numbers}) == 1
        assert max(numbers) - min(numbers) <= 25


@pytest.mark.slow
def test_the_answers_of_a_namesake_are_no_distractors(dump: Cut) -> None:
    for seed in range(6):
        options = {"dump": dump(couples()), "only_paths": ("film-actor-spouse",)}
        for row in flat(rows_of(built(seed, **options, tier="full"))):
            if row["concept"] in ("Q100", "Q101"):
                assert len({"Q300", "Q301"} & set(row["choice_nodes"])) == 1
                assert row["flags"] == ["shared_name"]
        asked = {row["concept"] for row in flat(rows_of(built(seed, **options)))}
        assert not asked & {"Q100", "Q101"}


def test_films_are_told_apart_by_their_years(dump: Cut) -> None:
    """A title of several well-known films is in doubt, unless the source states the year."""
    toy = couples()
    shared = ("Sabrina", "Ben-Hur", "Godzilla")
    for at, title in enumerate(shared, 5):
        toy.lines = [
            line.replace(f'"The {invented(3000 + at)}"', f'"{title}"') for line in toy.lines
        ]
    toy.date("Q105", "P577", "1954-09-09")
    toy.date("Q105", "P577", "1955-02-03")
    options: dict[str, Any] = {"dump": dump(toy), "only_paths": ("film-actor-spouse",)}
    rows = flat(rows_of(built(**options, tier="full")))
    flags = {row["arguments"][0]["value"]: row["flags"] for row in rows}
    assert {title: flags[title] for title in shared if title in flags}.items() <= {
        "Sabrina": [],
        "Ben-Hur": ["shared_name"],
        "Godzilla": ["shared_name"],
    }.items()
    assert len(flags.keys() & set(shared)) >= 2
    for row in rows:
        title = row["arguments"][0]["value"]
        year = " (1954)" if title == "Sabrina" else ""
        assert f'the film "{title}"{year}' in row["question"]


def test_a_band_of_a_persons_name_leaves_the_person_in_doubt(dump: Cut) -> None:
    toy = bands()
    named = [line.split('"')[1] for line in toy.lines if "Q2003> <http://www.w3" in line]
    toy.thing("Q1200", "Q215380", *named)
    rows = flat(rows_of(built(dump=dump(toy), only_paths=("band-start",), tier="full")))
    flags = {row["concept"]: row["flags"] for row in rows}
    assert {concept for concept, some in flags.items() if "shared_name" in some} == {"Q2003"}


def test_facts_that_readers_found_wrong_are_not_asked_about(
    dump: Cut, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = frozenset({("Q2001", "P463", "Q1000"), ("Q1001", "P527", "Q2003")})
    monkeypatch.setattr(chains, "_wrong_statements", lambda: wrong)
    done = built(dump=dump(bands()), only_paths=("band-start",))
    dropped = done.manifest["counts"]["dropped"]
    assert dropped["band-start: a reader found a fact on the way wrong"] == 2
    assert not {row["concept"] for row in flat(rows_of(done))} & {"Q2001", "Q2003"}


def test_no_question_presupposes_a_single_university_or_band() -> None:
    paths = load_paths()
    for path in paths.paths.values():
        for wording in path.questions["en"]:
            presupposes = ("a university or college. ", "a company. ", "in a band. ")
            assert wording.published or not any(words in wording.text for words in presupposes)


@pytest.mark.parametrize("tags", [("mul", "mul"), ("en", "mul"), ("mul", "en")])
def test_labels_for_all_languages_show_namesakes(dump: Cut, tags: tuple[str, str]) -> None:
    toy = couples()
    name = f'The "{invented(3001)}" and  #'
    toy.lines = [line for line in toy.lines if invented(3001) not in line]
    for film, tag in zip(("Q100", "Q101"), tags, strict=True):
        toy.label(film, name.replace('"', r"\""), tag)
    options: dict[str, Any] = {"dump": dump(toy), "only_paths": ("film-actor-spouse",)}
    rows = flat(rows_of(built(**options, tier="full")))
    asked = [row for row in rows if row["concept"] in ("Q100", "Q101")]
    assert asked
    for row in asked:
        assert row["flags"] == ["shared_name"]
        assert len({"Q300", "Q301"} & set(row["choice_nodes"])) == 1


@pytest.mark.slow
def test_marriage_is_true_from_both_ends_and_circles_are_not_asked(dump: Cut) -> None:
    toy = couples()
    toy.link("Q305", "P26", "Q206")  # the spouse of one actor is that of another, too
    toy.link("Q110", "P161", "Q310")  # the spouse plays in the film as well
    rows = flat(rows_of(built(dump=dump(toy), only_paths=("film-actor-spouse",))))
    golds = {(row["concept"], row["choice_nodes"][row["answer"]]) for row in rows}
    assert ("Q110", "Q310") in golds or ("Q110", "Q210") in golds
    splits = rows_of(built(dump="toy", only_paths=("film-actor-spouse",)))
    homes = defaultdict(set)
    for split, some in splits.items():
        for row in some:
            for triple in row["triples"]:
                homes[frozenset((triple["subject"], triple["object"]))].add(split)
    assert set(map(len, homes.values())) == {1}


def students() -> Toy:
    """Thirty universities with two students each, all born forty years after it was founded."""
    toy = Toy()
    for at in range(30):
        place = toy.thing(f"Q{700 + at}", "Q3918", f"University of {invented(40 + 7 * at)}")
        toy.date(place, "P571", f"{1700 + 6 * at}-01-01")
        for member in (2 * at, 2 * at + 1):
            name = f"{invented(13 + 31 * member)} {invented(7000 + member)}"
            person = toy.thing(f"Q{800 + member}", "Q5", name)
            toy.link(person, "P69", place)
            toy.date(person, "P569", f"{1740 + 6 * at}-01-01")
    return toy


def doubts_of(done: Built) -> dict[str, list[str]]:
    return {row["concept"]: row["flags"] for row in flat(rows_of(done))}


def test_little_known_places_of_study_are_left_to_full(dump: Cut) -> None:
    options: dict[str, Any] = {
        "dump": dump(students()),
        "only_paths": ("student-university-founded",),
    }
    flags = doubts_of(built(**options, tier="full")).values()
    assert flags
    assert all("little_known" in some for some in flags)  # two students each


@pytest.mark.slow
def test_years_agree_with_the_lives_of_students(dump: Cut, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chains, "STUDENTS", 2)
    toy = students()
    toy.date("Q720", "P571", "1822-01-01")  # a second founding
    toy.date("Q725", "P1619", "1855-01-01")  # opened five years later
    for person, place in (("Q900", "Q710"), ("Q901", "Q711"), ("Q902", "Q712")):
        toy.thing(person, "Q5", invented(15_000 + int(person[1:])))
        toy.link(person, "P69", place)
    toy.date("Q901", "P569", "1700-01-01")  # 66 when it was founded
    toy.date("Q902", "P570", "1702-01-01")  # dead for seventy years
    options: dict[str, Any] = {"dump": dump(toy), "only_paths": ("student-university-founded",)}
    full = doubts_of(built(**options, tier="full"))
    assert not full.keys() & {"Q901", "Q902"}
    assert full["Q900"] == ["unknown_life"]
    assert {tuple(full[name]) for name in ("Q822", "Q824") if name in full} == {("contradicted",)}
    assert {tuple(full[name]) for name in ("Q840", "Q841") if name in full} == {("several_values",)}
    clean = flat(rows_of(built(**options)))
    assert clean
    assert not any(row["flags"] for row in clean)
    assert not {row["cluster"] for row in clean} & {"Q711", "Q712", "Q720"}
    for row in clean:
        if row["cluster"] == "Q725":
            years = [int(text) for text in row["choices"]["text"]]
            assert not any(1850 < year < 1860 for year in years)
    asked = [row["question"] for row in flat(rows_of(built(**options), "facts"))]
    assert any("was the University of" in text for text in asked)


def test_marriages_are_doubted_that_one_spouse_only_has_or_that_are_none(dump: Cut) -> None:
    toy = couples()
    for at in range(12):
        toy.lines.remove(f"<{WD}Q{310 + at}> <{WDT}P26> <{WD}Q{210 + at}> .")
        toy.link(f"Q{225 + at}", "P451", f"Q{325 + at}")
    options: dict[str, Any] = {"dump": dump(toy), "only_paths": ("film-actor-spouse",)}
    full = doubts_of(built(**options, tier="full"))
    for concept, flags in full.items():
        at = int(concept[1:]) - 100
        assert ("one_sided" in flags) == (10 <= at < 22)
        assert ("contested" in flags) == (25 <= at < 37)
    assert {"one_sided", "contested"} <= {name for flags in full.values() for name in flags}
    clean = {int(name[1:]) - 100 for name in doubts_of(built(**options))}
    assert clean
    assert not clean & {*range(10, 22), *range(25, 37)}


def test_those_of_another_occupation_are_not_asked_about(dump: Cut) -> None:
    toy = couples()
    for at in range(40):
        toy.link(f"Q{200 + at}", "P106", "Q33999" if at % 2 else "Q82955")  # actor, politician
    done = built(dump=dump(toy), only_paths=("film-actor-spouse",))
    assert {int(row["concept"][1:]) % 2 for row in flat(rows_of(done))} == {1}
    reason = "film-actor-spouse: somebody on the way has other occupations"
    assert done.manifest["counts"]["dropped"][reason] >= 19


def places() -> Toy:
    """Founders of companies with headquarters in towns of three countries; one lies in another."""
    toy = Toy()
    for country in range(3):
        toy.thing(f"Q{10 + country}", "Q6256", invented(20_000 + country * 77))
    for at in range(45):
        town = toy.thing(f"Q{400 + at}", "Q515", invented(5000 + 13 * at))
        toy.link(town, "P17", f"Q{10 + at % 3}")
        company = toy.thing(f"Q{500 + at}", "Q4830453", f"{invented(8000 + 17 * at)} Works")
        founder = toy.thing(f"Q{600 + at}", "Q5", invented(11_000 + 19 * at))
        toy.link(company, "P112", founder)
        toy.link(company, "P159", town)
    toy.link("Q403", "P131", "Q400")
    return toy


@pytest.mark.slow
def test_towns_stand_beside_those_of_their_country_and_none_lies_in_another(dump: Cut) -> None:
    name = dump(places())
    near = 0
    for seed in range(8):
        done = built(seed, dump=name, only_paths=("founder-company-headquarters",))
        for row in flat(rows_of(done)):
            towns = [int(node[1:]) - 400 for node in row["choice_nodes"]]
            assert not {0, 3} <= set(towns)
            if set(row["choice_families"]) == {"gold", "founder-company-headquarters"}:
                assert len({town % 3 for town in towns}) == 1
                near += 1
    assert near > 100


def test_a_path_of_three_hops_asks_for_its_end(dump: Cut) -> None:
    done = built(dump=dump(places()), only_paths=("founder-company-headquarters-country",))
    rows = flat(rows_of(done))
    assert len(rows) > 10
    for row in rows:
        assert row["hops"] == 3
        assert row["relation"] == "^P112/P159/P17"
        at = int(row["concept"][1:]) - 600
        assert row["choice_nodes"][row["answer"]] == f"Q{10 + at % 3}"


def test_another_language_takes_its_own_labels_and_questions(dump: Cut) -> None:
    toy = bands(30, "en", "de")
    toy.label("Q2001", "Ein Sonderfall", "mul")  # German comes first
    done = built(dump=dump(toy), language="de", only_paths=("band-start",))
    rows = [*flat(rows_of(done)), *flat(rows_of(done, "facts"))]
    assert all("Band" in row["question"] or row["hops"] == 1 for row in rows)
    assert any(row["question"].startswith("In welchem dieser Jahre") for row in rows)
    assert not any("Sonderfall" in row["question"] for row in rows)
    with pytest.raises(UsageError, match=r"'fr' \(there are: de, en\)"):
        load_paths(language="fr")


def test_labels_for_all_languages_serve_where_there_is_no_own(dump: Cut) -> None:
    done = built(dump=dump(bands(30, "mul")), only_paths=("band-start",))
    assert len(flat(rows_of(done))) > 40


NEW_PATH = """
hops:
  - id: birthplace
    edges: [P19]
    to: [Q515]
    choices: same_country
    questions:
      en: ["Where was {{ entity }} born?"]
paths:
  - id: band-member-birthplace
    hops: [band-of, birthplace]
    questions:
      en: ["Where was a member of {{ entity }} born?", "A member of {{ entity }} is from where?"]
"""


def test_a_path_comes_from_a_file_alone(dump: Cut, tmp_path: Path) -> None:
    toy = bands()
    for at in range(60):
        town = toy.thing(f"Q{4000 + at}", "Q515", invented(9000 + 29 * at))
        toy.link(f"Q{2000 + at}", "P19", town)
        toy.link(town, "P17", "Q10")
    file = tmp_path / "mine.yaml"
    member = """
  - id: band-of
    edges: [P527, ^P463]
    from: [Q215380]
    to: [Q5]
    choices: like_people
    questions:
      en: ["Who is in {{ entity }}?"]
"""
    file.write_text(NEW_PATH.replace("hops:\n", f"hops:{member}", 1), encoding="utf-8")
    done = built(dump=dump(toy), paths=str(file), only_paths=("band-member-birthplace",))
    rows = flat(rows_of(done))
    assert len(rows) > 20
    assert {row["relation"] for row in rows} == {"P527/P19", "^P463/P19"}
    assert {row["distractor_family"] for row in rows} == {"band-member-birthplace"}
    facts = flat(rows_of(done, "facts"))
    assert {row["distractor_family"] for row in facts} == {"band-of", "birthplace"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"only_paths": ("band-strat",)}, "Did you mean 'band-start'"),
        ({"language": "deutsch!"}, "--language"),
        ({"dump": "toy", "offline": True}, "--offline and --refresh are about"),
        ({"offline": True, "refresh": True}, "exclude each other"),
        ({"caps": (4, 10, -1)}, "--caps: three numbers of 0 or more"),
        ({"dump": "nowhere"}, "nowhere"),
    ],
)
def test_impossible_options_say_what_is_wrong(
    options: dict[str, Any], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KBPROBE_CACHE", str(tmp_path / "cache"))
    with pytest.raises(UsageError, match=said):
        built(**options)


def test_the_public_service_is_asked_by_default() -> None:
    from kb_cache.wikidata.sparql.endpoint import WIKIDATA

    assert find_probe(NAME).options.parse({}, NAME).model_dump()["endpoint"] == WIKIDATA


def test_offline_says_that_the_answers_are_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kb_cache.wikidata.sparql.session import NotCached

    monkeypatch.setenv("KBPROBE_CACHE", str(tmp_path / "cache"))
    with pytest.raises(NotCached):
        built(offline=True)


def test_too_small_a_source_says_what_was_left_out(dump: Cut) -> None:
    with pytest.raises(UsageError, match=r"no question is left .*too few wrong answers"):
        built(dump=dump(bands(2)), only_paths=("band-start",))


def test_names_that_give_an_answer_away() -> None:
    assert share_a_word("The Boston Band", "Boston")
    assert share_a_word("American Recordings", "United States of America")
    assert share_a_word("Band of 1969", "1969")
    assert not share_a_word("The Cure", "The Hague")
    assert not share_a_word("A B", "B C")


def test_terms_are_read_as_entities_and_years_or_as_unknown() -> None:
    date = f"{XSD}dateTime"
    assert entity_of(Term(f"{WD}Q42")) == "Q42"
    assert year_of(Term("1969-01-01T00:00:00Z", "literal", date)) == "1969"
    assert year_of(Term("0850-01-01T00:00:00Z", "literal", date)) == "850"
    for term in (None, Term("b0", "bnode"), Term(f"{WD}P31"), Term("x", "literal")):
        assert entity_of(term) == UNKNOWN
        assert year_of(term) == UNKNOWN
    for text in ("-0044-03-15T00:00:00Z", "0000-01-01T00:00:00Z", "NaT", "123456-01-01T00:00:00Z"):
        assert year_of(Term(text, "literal", date)) == UNKNOWN


XSD = "http://www.w3.org/2001/XMLSchema#"
