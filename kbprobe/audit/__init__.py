"""The audit: how often rows are answered right without what should be needed.

It works on rows alone. What a caller knows beyond them, such as the frequency of words, the depth
of a concept or the similarity of texts, it passes as columns or functions. A build ends with the
quick part (:mod:`kbprobe.audit.report`); the deep check of a release adds stronger learners. Both
fit *shortcuts* on train, score another split, and compare the accuracy with chance in the same way
(:mod:`kbprobe.audit.verdicts`).
"""
