"""The engine that all probes share: plans, distractors, rendering, splits, audits, datasets."""
