"""English function words: what content words are told from."""

from __future__ import annotations

FUNCTION_WORDS = (
    "about above after again against all also and another any are around away back been before "
    "behind being below between both but can cannot could did does doing done down during each "
    "either else etc every few for from get had has have having her here him his how into its "
    "itself just less like made make makes many may more most much must neither nor not off one "
    "only onto other others our out over own same several she should since some something "
    "someone such than that the their them then there these they thing this those through too "
    "toward two under until upon use used very was were what when where which while who whom "
    "whose will with within without would you your"
)
"""English words of three letters and more that say nothing about what a text is about."""
