"""Reading of OWL ontologies and SKOS thesauri in RDF: RDF/XML, Turtle and N-Triples.

Of OWL, named superclasses and plain restrictions (part of some X) are read; what else a class is
said to be, such as a union, is counted. Imports are named, never fetched.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING

from kb_cache.ontologies.obo import PART_OF
from kb_cache.ontologies.types import Stated, Term
from kbprobe.errors import UsageError, naming_extras

if TYPE_CHECKING:
    import pyoxigraph

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
OWL = "http://www.w3.org/2002/07/owl#"
SKOS = "http://www.w3.org/2004/02/skos/core#"
OBO = "http://purl.obolibrary.org/obo/"
OBO_IN_OWL = "http://www.geneontology.org/formats/oboInOwl#"

LABELS = (f"{SKOS}prefLabel", f"{RDFS}label")
DEFINITIONS = (f"{OBO}IAO_0000115", f"{SKOS}definition", f"{OBO_IN_OWL}hasDefinition")
SYNONYMS = (f"{OBO_IN_OWL}hasExactSynonym", f"{SKOS}altLabel")
RELATED = (
    *(f"{OBO_IN_OWL}has{scope}Synonym" for scope in ("Broad", "Narrow", "Related")),
    f"{SKOS}hiddenLabel",
)
KINDS = (f"{RDFS}subClassOf", f"{SKOS}broader", f"{SKOS}broaderGeneric")
REFERENCES = (f"{OBO_IN_OWL}hasDbXref", f"{SKOS}exactMatch", f"{SKOS}closeMatch")
PARTS = (f"{SKOS}broaderPartitive",)
KINDS_OF_IT = (f"{SKOS}narrower", f"{SKOS}narrowerGeneric")
FIELDS = (f"{OBO_IN_OWL}hasOBONamespace", f"{SKOS}inScheme")
TERMS = (f"{OWL}Class", f"{RDFS}Class", f"{SKOS}Concept")
CREDITS = {"license": "licence", "licence": "licence", "rights": "licence", "title": "title"}

FORMATS = {
    "owl": "RDF_XML",
    "rdf": "RDF_XML",
    "skos": "RDF_XML",
    "ttl": "TURTLE",
    "nt": "N_TRIPLES",
}
"""The ending of a file -> the format, as pyoxigraph names it."""


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

    about: dict[str, dict[str, list[pyoxigraph.NamedNode | pyoxigraph.BlankNode]]] = {}
    about = defaultdict(lambda: defaultdict(list))
    credits_: dict[str, str] = {}
    skipped: Counter[str] = Counter()
    try:
        for triple in parse(content, getattr(RdfFormat, FORMATS[ending]), lenient=True):
            predicate = triple.predicate.value
            name = predicate.rpartition("/")[2].rpartition("#")[2]
            if predicate == f"{OWL}imports":
                skipped[f"imports {triple.object.value} (not read)"] += 1
            elif (name in CREDITS and "/elements/1.1/" in predicate) or "/dc/terms/" in predicate:
                credits_.setdefault(CREDITS.get(name, name), triple.object.value)
            if predicate in KINDS_OF_IT:
                about[str(triple.object)][KINDS[1]].append(triple.subject)
            about[str(triple.subject)][predicate].append(triple.object)
    except (SyntaxError, ValueError, OSError) as error:
        raise UsageError(f"{place} cannot be read as {FORMATS[ending]}: {error}") from error
    wanted = {f"<{name}>" for name in TERMS}
    terms = {
        subject: stated
        for subject, stated in about.items()
        if subject.startswith("<") and wanted & {str(kind) for kind in stated.get(f"{RDF}type", ())}
    }
    languages = Counter(
        getattr(label, "language", None) or "no language"
        for stated in terms.values()
        for name in LABELS
        for label in stated.get(name, ())
    )
    read = [_term_of(name, stated, about, language, skipped) for name, stated in terms.items()]
    credits = credits_.get("licence", ""), credits_.get("title", "")
    return Stated(read, *credits, skipped, languages)


def _term_of(
    subject: str,
    stated: Mapping[str, list[pyoxigraph.NamedNode | pyoxigraph.BlankNode]],
    about: Mapping[str, Mapping[str, list[pyoxigraph.NamedNode | pyoxigraph.BlankNode]]],
    language: str,
    skipped: Counter[str],
) -> Term:
    def texts(names: tuple[str, ...]) -> list[str]:
        literals = [value for name in names for value in stated.get(name, ())]
        in_it = [
            one for one in literals if (getattr(one, "language", None) or language) == language
        ]
        return [one.value for one in in_it]

    kinds: list[str] = []
    parts = [str(one) for name in PARTS for one in stated.get(name, ())]
    for value in (one for name in KINDS for one in stated.get(name, ())):
        if str(value).startswith("<"):
            kinds.append(str(value))
            continue
        restriction = about.get(str(value), {})
        properties = [one.value for one in restriction.get(f"{OWL}onProperty", ())]
        some = restriction.get(f"{OWL}someValuesFrom", ())
        if properties and properties[0] in PART_OF and some and str(some[0]).startswith("<"):
            parts.append(str(some[0]))
        else:
            skipped["a superclass that is no class with a name"] += 1
    labels, definitions = texts(LABELS), texts(DEFINITIONS)
    fields = next((stated[name] for name in FIELDS if name in stated), ())
    return Term(
        subject,
        labels[0] if labels else "",
        definitions[0] if definitions else "",
        fields[0].value if fields else "",
        texts(SYNONYMS),
        texts(RELATED),
        [one.value for name in REFERENCES for one in stated.get(name, ())],
        [*dict.fromkeys(kinds)],
        parts,
        any(value.value == "true" for value in stated.get(f"{OWL}deprecated", ())),
    )
