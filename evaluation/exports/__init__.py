"""Results in formats that others read: the Hub's ``.eval_results``, and Every Eval Ever's."""
