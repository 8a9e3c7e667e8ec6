"""The table of our probes: names, and where each is defined.

Nothing that it names is imported before it is used: a command that lists probes or shows the
options of one loads neither the others nor NumPy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from builders.engine.options import ProbeOptions


class Entry(NamedTuple):
    """A probe that is not loaded yet.

    Attributes:
        source: the heading under which help lists it: what it is built from above all.
        place: the module of ``builders`` that registers it when imported.
        model: the model of its options, in the module ``options`` beside that one.
        summary: what it asks, in one line: the first of the planner's docstring.
    """

    source: str
    place: str
    model: str
    summary: str

    @property
    def module(self) -> str:
        """The module whose import registers the probe."""
        return f"builders.{self.place}"

    @property
    def options(self) -> type[ProbeOptions]:
        """The model of the probe's options."""
        module = import_module(f"{self.module.rpartition('.')[0]}.options")
        model: type[ProbeOptions] = getattr(module, self.model)
        return model


SOURCES = (
    "From WordNet",
    "From ConceptNet",
    "From Wikidata",
    "From the dictionary GCIDE",
    "From a text corpus",
    "Without a knowledge base",
)
"""What probes are built from above all, as help lists them."""
WORDNET, CONCEPTNET, WIKIDATA, GCIDE, CORPUS, NONE = SOURCES

PROBES: dict[str, Entry] = {
    "age_comparison": Entry(
        NONE,
        "comparisons.probes",
        "AgeOptions",
        "Is a person of one age younger or older than a person of another?",
    ),
    "always_never": Entry(
        CONCEPTNET,
        "always_never.probes",
        "AlwaysNeverOptions",
        "Do cats never, rarely, sometimes, often or always drink coffee?",
    ),
    "antonym_negation": Entry(
        WORDNET,
        "antonyms.probes",
        "AntonymOptions",
        'Is it "not" or "really" hot, if it is cold?',
    ),
    "dictionary_wordsense": Entry(
        GCIDE,
        "dictionary.probes",
        "WordSenseOptions",
        "Which definition of a dictionary fits a word in its usage or quotation?",
    ),
    "encyclopedic_composition": Entry(
        WIKIDATA,
        "compositions.probes",
        "CompositionOptions",
        "What lies at the end of a path of two or three facts?",
    ),
    "fw_comparatives": Entry(
        CORPUS,
        "function_words.nli.probes",
        "NliOptions",
        "Does it follow if a comparative is its opposite, or is denied: more, less, larger?",
    ),
    "fw_coordination": Entry(
        CORPUS,
        "function_words.probes",
        "LongSentenceOptions",
        "Is a sentence acceptable, or was its and, or or but exchanged?",
    ),
    "fw_definiteness": Entry(
        CORPUS,
        "function_words.probes",
        "LongSentenceOptions",
        'Is a sentence acceptable, or were its articles exchanged, "the" for "a" or "an"?',
    ),
    "fw_eos": Entry(
        CORPUS,
        "function_words.probes",
        "SentenceEndOptions",
        "Do two sentences, without punctuation and capitals, end where they are parted?",
    ),
    "fw_negation": Entry(
        CORPUS,
        "function_words.nli.probes",
        "NegationOptions",
        'Does it follow under "not", an antonym, or both, in premise, hypothesis, or both?',
    ),
    "fw_prepositions": Entry(
        CORPUS,
        "function_words.nli.probes",
        "PrepositionOptions",
        "Does it follow if a preposition is another: in, behind, before, without?",
    ),
    "fw_quantification": Entry(
        CORPUS,
        "function_words.nli.probes",
        "NliOptions",
        "Does it follow if a quantity is another, or is denied: all, some, half, three?",
    ),
    "fw_spatial": Entry(
        CORPUS,
        "function_words.nli.probes",
        "NliOptions",
        "Does it follow if a place is the opposite, or is denied: left, right, above, behind?",
    ),
    "fw_wh_words": Entry(
        CORPUS,
        "function_words.probes",
        "WhWordOptions",
        "Is a sentence acceptable, or was its who, what, where, when, why or how exchanged?",
    ),
    "multihop_comparison": Entry(
        NONE,
        "comparisons.probes",
        "MultihopOptions",
        "Which of several people, given by their ages, is the oldest or the youngest?",
    ),
    "object_comparison": Entry(
        NONE,
        "comparisons.probes",
        "ObjectOptions",
        "Is one thing typically larger or smaller than another?",
    ),
    "property_conjunction": Entry(
        CONCEPTNET,
        "properties.probes",
        "PropertyOptions",
        "Which of three things has both of two properties?",
    ),
    "property_conjunction_but_not": Entry(
        CONCEPTNET,
        "properties.probes",
        "PropertyOptions",
        "Which of three things has one property but not another?",
    ),
    "taxonomy_conjunction": Entry(
        WORDNET,
        "taxonomy.probes",
        "TaxonomyOptions",
        "What are two things both a type of?",
    ),
    "wordnet_antonymy": Entry(
        WORDNET,
        "wordnet.probes",
        "AntonymyOptions",
        "Which of five words means the opposite of another, in a given sense?",
    ),
    "wordnet_definitions": Entry(
        WORDNET,
        "wordnet.probes",
        "DefinitionsOptions",
        "Which of five definitions fits the word, as used in a sentence?",
    ),
    "wordnet_hypernymy": Entry(
        WORDNET,
        "wordnet.probes",
        "HypernymyOptions",
        "Which of five concepts is the word, as used in a sentence, a kind of?",
    ),
    "wordnet_hyponymy": Entry(
        WORDNET,
        "wordnet.probes",
        "HyponymyOptions",
        "Which of five concepts is a specific kind of the word, as used in a sentence?",
    ),
    "wordnet_meronymy": Entry(
        WORDNET,
        "wordnet.probes",
        "MeronymyOptions",
        "Which of five concepts is a part, a member or a substance of another?",
    ),
    "wordnet_synonymy": Entry(
        WORDNET,
        "wordnet.probes",
        "SynonymyOptions",
        "Which of five sets of words fits a definition?",
    ),
}
"""Our probes by name, in alphabetical order."""
