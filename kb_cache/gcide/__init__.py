"""GCIDE, the GNU Collaborative International Dictionary of English."""
