"""Small invented parts of Wikidata, as N-Triples."""

from __future__ import annotations

from collections.abc import Iterable

ENTITY = "http://www.wikidata.org/entity/"
PROP = "http://www.wikidata.org/prop/"
XSD = "http://www.w3.org/2001/XMLSchema#"
LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
WIKIBASE = "http://wikiba.se/ontology#"

SYLLABLES = ("ba", "de", "fi", "go", "lu", "ma", "ne", "pi", "ro", "su", "ta", "vo")


def invented(number: int) -> str:
    """A name of four syllables, another for each number."""
    digits = [number // 12**place % 12 for place in range(4)]
    return "".join(SYLLABLES[digit] for digit in digits).capitalize()


class Toy:
    """Triples, gathered."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.statements = 0

    def triple(self, subject: str, predicate: str, object_: str) -> None:
        self.lines.append(f"<{subject}> <{predicate}> {object_} .")

    def link(self, subject: str, name: str, target: str) -> None:
        """State that an entity, by a property, leads to another."""
        self.triple(ENTITY + subject, f"{PROP}direct/{name}", f"<{ENTITY}{target}>")

    def links(self, subject: str, name: str, targets: Iterable[str]) -> None:
        for target in targets:
            self.link(subject, name, target)

    def date(self, subject: str, name: str, date: str) -> None:
        literal = f'"{date}T00:00:00Z"^^<{XSD}dateTime>'
        self.triple(ENTITY + subject, f"{PROP}direct/{name}", literal)

    def label(self, subject: str, text: str, *languages: str) -> None:
        for language in languages or ("en",):
            self.triple(ENTITY + subject, LABEL, f'"{text}"@{language}')

    def thing(self, subject: str, kind: str, text: str, *languages: str) -> str:
        """State what an entity is and how it is called; return it."""
        self.link(subject, "P31", kind)
        self.label(subject, text, *languages)
        return subject

    def old_statement(self, subject: str, name: str, target: str) -> None:
        """State what is no longer so: not among the direct statements."""
        self.statements += 1
        statement = f"{ENTITY}statement/S{self.statements}"
        self.triple(ENTITY + subject, PROP + name, f"<{statement}>")
        self.triple(statement, f"{PROP}statement/{name}", f"<{ENTITY}{target}>")

    def dated_statement(self, subject: str, name: str, date: str, precision: int) -> None:
        """State a date in full, with its precision."""
        self.date(subject, name, date)
        self.statements += 1
        statement = f"{ENTITY}statement/S{self.statements}"
        literal = f'"{date}T00:00:00Z"^^<{XSD}dateTime>'
        self.triple(ENTITY + subject, PROP + name, f"<{statement}>")
        self.triple(statement, f"{PROP}statement/{name}", literal)
        value = f"http://www.wikidata.org/value/V{self.statements}"
        self.triple(statement, f"{PROP}statement/value/{name}", f"<{value}>")
        self.triple(value, f"{WIKIBASE}timeValue", literal)
        number = f'"{precision}"^^<{XSD}integer>'
        self.triple(value, f"{WIKIBASE}timePrecision", number)

    def sitelinks(self, subject: str, number: int) -> None:
        literal = f'"{number}"^^<{XSD}integer>'
        self.triple(ENTITY + subject, f"{WIKIBASE}sitelinks", literal)

    def sitelinks_of_data(self, subject: str, number: int) -> None:
        """State sitelinks as raw dumps do: of the data node about an entity."""
        node = f"https://www.wikidata.org/wiki/Special:EntityData/{subject}"
        self.triple(node, "http://schema.org/about", f"<{ENTITY}{subject}>")
        self.triple(node, f"{WIKIBASE}sitelinks", f'"{number}"^^<{XSD}integer>')

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"


def bands(count: int = 30, *languages: str) -> Toy:
    """Bands of two members each, formed in years two apart: Q1000 and up; members Q2000 and up."""
    toy = Toy()
    for at in range(count):
        band = toy.thing(f"Q{1000 + at}", "Q215380", f"The {invented(100 + at)}", *languages)
        toy.date(band, "P571", f"{1950 + 2 * at}-01-01")
        for member in (2 * at, 2 * at + 1):
            name = f"{invented(500 + 2 * member)} {invented(900 + member)}"
            person = toy.thing(f"Q{2000 + member}", "Q5", name, *languages)
            if member % 3:
                toy.link(person, "P463", band)
            else:
                toy.link(band, "P527", person)
    return toy
