"""The papers' tables for a user's models: ``evaluate-probe reproduce NAME --model MODEL``.

A paper is a declaration: which studies run on which probes with which options, and which published
table each of their numbers belongs to. What all papers share is in `evaluation.reproduce.frame`.
"""
