"""Wikidata: dumps queried in process, and SPARQL endpoints."""
