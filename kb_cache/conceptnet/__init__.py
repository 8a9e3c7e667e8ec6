"""ConceptNet: compiled from a dump or a database, handed over as tables and graphs."""
