"""Learning curves: accuracy by training size, with controls, baselines and code length."""
