"""Cross-validation of classifiers of labels over a probe's folds ([F], Table 2)."""
