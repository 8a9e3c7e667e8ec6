"""The report: a page made from result files."""
