"""Ontologies and thesauri: OBO, OBO Graphs, and OWL or SKOS in RDF."""

SUFFIXES = (".obo", ".json", ".owl", ".rdf", ".ttl", ".nt", ".skos")
"""The endings of files that can be read; all may be followed by ``.gz``."""


def is_ontology(name: str) -> bool:
    """Return whether a file name is that of an ontology that can be read.

    >>> is_ontology("go.obo"), is_ontology("hp.owl.gz"), is_ontology("facts.csv")
    (True, True, False)
    """
    return name.lower().removesuffix(".gz").endswith(SUFFIXES)
