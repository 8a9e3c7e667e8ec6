"""Studies: several runs whose results are summarised together (docs/add-a-study.md)."""
