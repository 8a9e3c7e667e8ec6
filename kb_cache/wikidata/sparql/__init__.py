"""SPARQL: endpoints, their answers, and the cache of answers."""
