"""Frozen models: vectors computed once, and many heads trained on them side by side.

While a head is trained and the model below it is not, the vectors that it reads never change. So
each distinct text goes through the model once (:mod:`evaluation.frozen.store`), whatever the
number of sizes, seeds, learners and epochs, and the heads of all of them are trained as one
batched computation (:mod:`evaluation.frozen.training`).
"""
