"""Probes of ontologies and thesauri of others."""
