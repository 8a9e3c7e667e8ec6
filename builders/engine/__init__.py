"""What every probe shares: plans, distractors, rendering, splits, audits, datasets."""
