"""Results: metrics, intervals and what they mean."""
