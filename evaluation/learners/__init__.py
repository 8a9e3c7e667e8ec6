"""Learners: models fitted on a probe's train split before the probe is scored."""
