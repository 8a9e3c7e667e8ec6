"""WordNet: compiled from its database files, handed over as tables and graphs."""
