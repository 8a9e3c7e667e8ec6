"""Reading of OWL ontologies and SKOS thesauri in RDF: RDF/XML, Turtle and N-Triples.

Of OWL, superclasses and equivalent classes are read that have a name, are a part of one (a plain
restriction) or an intersection with such; others, such as unions, are counted. Imports are named,
never fetched.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, TypeAlias

from kb_cache.ontologies.obo import PART_OF
from kb_cache.ontologies.types import OntologyTerm, Stated
from kbprobe.errors import UsageError, naming_extras

if TYPE_CHECKING:
    import pyoxigraph

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
OWL = "http://www.w3.org/2002/07/owl#"
SKOS = "http://www.w3.org/2004/02/skos/core#"
OBO = "http://purl.obolibrary.org/obo/"
OBO_IN_OWL = "http://www.geneontology.org/formats/oboInOwl#"

THESES = "http://purl.org/iso25964/skos-thes#"

LABELS = (f"{SKOS}prefLabel", f"{RDFS}label")
DEFINITIONS = (f"{OBO}IAO_0000115", f"{SKOS}definition", f"{OBO_IN_OWL}hasDefinition")
SYNONYMS = (f"{OBO_IN_OWL}hasExactSynonym", f"{SKOS}altLabel")
RELATED = (
    *(f"{OBO_IN_OWL}has{scope}Synonym" for scope in ("Broad", "Narrow", "Related")),
    f"{SKOS}hiddenLabel",
)
KINDS = (
    *(f"{RDFS}subClassOf", f"{SKOS}broader", f"{SKOS}broaderTransitive"),
    *(f"{THESES}broaderGeneric", f"{THESES}broaderInstantial"),
)
REFERENCES = (f"{OBO_IN_OWL}hasDbXref", f"{SKOS}exactMatch", f"{SKOS}closeMatch")
PARTS = (f"{THESES}broaderPartitive",)
KINDS_OF_IT = (f"{SKOS}narrower", f"{SKOS}narrowerTransitive", f"{THESES}narrowerGeneric")
EQUIVALENT = (f"{OWL}equivalentClass", f"{SKOS}exactMatch")
HEADERS = (f"{OWL}Ontology", f"{SKOS}ConceptScheme")
FIELDS = (f"{OBO_IN_OWL}hasOBONamespace", f"{SKOS}inScheme")
TERMS = (f"{OWL}Class", f"{RDFS}Class", f"{SKOS}Concept")
CREDITED = ("/dc/terms", "/elements/1.1", "creativecommons.org/ns")
CREDITS = {"license": "licence", "licence": "licence", "rights": "licence", "title": "title"}

LONGEST_LIST = 100
"""Maximum number of classes of an intersection that are read."""

FORMATS = {
    "owl": "RDF_XML",
    "rdf": "RDF_XML",
    "skos": "RDF_XML",
    "ttl": "TURTLE",
    "nt": "N_TRIPLES",
}
"""The ending of a file -> the format, as pyoxigraph names it."""


Node: TypeAlias = "pyoxigraph.NamedNode | pyoxigraph.BlankNode | pyoxigraph.Literal"
Statements: TypeAlias = Mapping[str, list[Node]]
"""Predicate -> its objects, of one subject."""
About: TypeAlias = Mapping[str, dict[str, list[Node]]]


@naming_extras()
def read_rdf(content: bytes, place: str, ending: str, language: str) -> Stated:
    """Read an ontology in RDF.

    Args:
        content: the bytes of the file.
        place: its name in messages.
        ending: its ending, a key of `FORMATS`.
        language: of labels; those without a language are of every language.

    Raises:
        UsageError: it is not the RDF that its ending says.
        MissingDependencyError: pyoxigraph is not installed.
    """
    from pyoxigraph import RdfFormat, parse

    about: About = defaultdict(lambda: defaultdict(list))
    skipped: Counter[str] = Counter()
    try:
        for triple in parse(content, getattr(RdfFormat, FORMATS[ending]), lenient=True):
            predicate = triple.predicate.value
            if predicate == f"{OWL}imports":
                skipped[f"imports {triple.object.value} (not read)"] += 1
            elif predicate in KINDS_OF_IT:
                about[str(triple.object)][KINDS[1]].append(triple.subject)
            elif predicate in EQUIVALENT:
                about[str(triple.object)][predicate].append(triple.subject)
            about[str(triple.subject)][predicate].append(triple.object)
    except (SyntaxError, ValueError, OSError) as error:
        raise UsageError(f"{place} cannot be read as {FORMATS[ending]}: {error}") from error
    terms = {
        subject: stated
        for subject, stated in about.items()
        if subject.startswith("<")
        and (_is_one_of(stated, TERMS) or not stated.keys().isdisjoint(KINDS))
    }
    languages = Counter(
        getattr(label, "language", None) or "no language"
        for stated in terms.values()
        for name in LABELS
        for label in stated.get(name, ())
    )
    read = [_term_of(name, stated, about, language, skipped) for name, stated in terms.items()]
    return Stated(read, *_credits(about), skipped, languages)


def _is_one_of(stated: Statements, classes: Collection[str]) -> bool:
    return any(kind.value in classes for kind in stated.get(f"{RDF}type", ()))


def _credits(about: About) -> tuple[str, str]:
    """Return the licence and the title that the header states: terms may have others."""
    found: dict[str, str] = {}
    for stated in about.values():
        if _is_one_of(stated, HEADERS):
            for predicate, values in stated.items():
                namespace, _, name = predicate.replace("#", "/").rpartition("/")
                if name in CREDITS and namespace.endswith(CREDITED):
                    found.setdefault(CREDITS[name], values[0].value)
    return found.get("licence", ""), found.get("title", "")


def _named(node: Node, about: About) -> tuple[list[str], list[str]] | None:
    """Return what a class is a kind of and a part of, by a description; None if it is another one.

    It is a class with a name, a part of one, or an intersection with such.
    """
    if str(node).startswith("<"):
        return [str(node)], []
    stated = about.get(str(node), {})
    properties = [one.value for one in stated.get(f"{OWL}onProperty", ())]
    some = [str(one) for one in stated.get(f"{OWL}someValuesFrom", ())]
    if properties and properties[0] in PART_OF and some and some[0].startswith("<"):
        return [], some
    kinds: list[str] = []
    parts: list[str] = []
    rest = [*stated.get(f"{OWL}intersectionOf", ())]
    while rest and str(rest[0]) in about and len(kinds) + len(parts) < LONGEST_LIST:
        cell = about[str(rest[0])]
        for member in cell.get(f"{RDF}first", ()):
            if str(member).startswith("<"):
                kinds.append(str(member))
            elif found := _named(member, about):
                kinds += found[0]
                parts += found[1]
        rest = [*cell.get(f"{RDF}rest", ())]
    return (kinds, parts) if kinds or parts else None


def _term_of(
    subject: str, stated: Statements, about: About, language: str, skipped: Counter[str]
) -> OntologyTerm:
    def texts(names: tuple[str, ...]) -> list[str]:
        literals = [value for name in names for value in stated.get(name, ())]
        tags = [(getattr(one, "language", None) or language).lower() for one in literals]
        wanted = language.lower()
        if wanted not in tags:
            tags = [tag.partition("-")[0] for tag in tags]
        return [one.value for one, tag in zip(literals, tags, strict=True) if tag == wanted]

    kinds: list[str] = []
    parts = [str(one) for name in PARTS for one in stated.get(name, ())]
    same: list[str] = []
    for name in (*KINDS, *EQUIVALENT):
        for node in stated.get(name, ()):
            if name in EQUIVALENT and str(node).startswith("<"):
                same.append(str(node))
            elif found := _named(node, about):
                kinds += found[0]
                parts += found[1]
            else:
                skipped["a superclass that is no class with a name"] += 1
    labels, definitions = texts(LABELS), texts(DEFINITIONS)
    fields = next((stated[name] for name in FIELDS if name in stated), ())
    return OntologyTerm(
        subject,
        labels[0] if labels else "",
        definitions[0] if definitions else "",
        fields[0].value if fields else "",
        [*labels[1:], *texts(SYNONYMS)],
        texts(RELATED),
        [one.value for name in REFERENCES for one in stated.get(name, ())],
        [*dict.fromkeys(kinds)],
        parts,
        same=same,
        obsolete=any(value.value == "true" for value in stated.get(f"{OWL}deprecated", ())),
    )
