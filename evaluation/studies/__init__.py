"""Studies: several runs, and what they show together. One file each (docs/add-a-study.md)."""
