"""Draws: choosing rows and distractors so that nothing but the question tells the answer.

Three strategies, each with its guarantee in its module; families choose one and parametrise it.

======================  ==============================================  ===========================
Strategy                What it balances                                Probes
======================  ==============================================  ===========================
balanced candidates     Each node, or label of nodes, is a distractor   ``wordnet_*``,
(:mod:`.balanced`)      K - 1 times for each time it is gold, as        ``property_conjunction*``,
                        nearly as the rows' own candidates allow.       ``taxonomy_conjunction``
balanced selection      Rows of each label are equally many in every    ``antonym_negation``,
(:mod:`.selection`)     stratum, exactly, and alike in further          ``object_comparison``
                        features, as nearly as a local search finds.
choice groups           K rows show the same K choices, each of them    ``wordnet_*``,
(:mod:`.pools`)         the gold of one: chance is exact.               ``dictionary_wordsense``
======================  ==============================================  ===========================

Comparisons of ages need no strategy: every set of ages is asked about in all orders, which makes it
a choice group by itself. :mod:`.families` applies balanced candidates to pools of related nodes.
``encyclopedic_composition`` has choice sets of its own (:mod:`builders.compositions.draws`).

All of them depend on the rows and the random generator alone: not on the order in which rows are
drawn, nor on the number of workers.
"""
