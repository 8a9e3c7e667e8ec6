"""Readers' judgements of pairs, and models fitted on them that decide which rows are asked."""
