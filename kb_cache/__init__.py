"""Knowledge bases, compiled once and handed over as flat typed tables and graphs."""
