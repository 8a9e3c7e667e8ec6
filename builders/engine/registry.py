"""The table of our probes: names, and where each is defined.

Nothing that it names is imported before it is used: a command that lists probes or shows the
options of one loads neither the others nor NumPy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from builders.engine.options import ProbeOptions


class Entry(NamedTuple):
    """A probe that is not loaded yet.

    Attributes:
        planner: "module:function", the function that is decorated with ``probe``.
        options_model: "module:class", the model of its options.
        summary: what it asks, in one line: the first of the planner's docstring.
    """

    planner: str
    options_model: str
    summary: str

    @property
    def options(self) -> type[ProbeOptions]:
        """The model of the probe's options."""
        model: type[ProbeOptions] = load(self.options_model)
        return model


def load(reference: str) -> Any:
    """Import what "module:name" names."""
    module, _, name = reference.partition(":")
    return getattr(import_module(module), name)


PROBES: dict[str, Entry] = {
    "age_comparison": Entry(
        "builders.comparisons.probes:age_comparison",
        "builders.comparisons.options:AgeOptions",
        "Is a person of one age younger or older than a person of another?",
    ),
    "always_never": Entry(
        "builders.always_never.probes:always_never",
        "builders.always_never.options:AlwaysNeverOptions",
        "Do cats never, rarely, sometimes, often or always drink coffee?",
    ),
    "antonym_negation": Entry(
        "builders.antonyms.probes:antonym_negation",
        "builders.antonyms.options:AntonymOptions",
        'Is it "not" or "really" hot, if it is cold?',
    ),
    "dictionary_wordsense": Entry(
        "builders.dictionary.probes:dictionary_wordsense",
        "builders.dictionary.options:WordSenseOptions",
        "Which definition of a dictionary fits a word in its usage or quotation?",
    ),
    "encyclopedic_composition": Entry(
        "builders.compositions.probes:encyclopedic_composition",
        "builders.compositions.options:CompositionOptions",
        "What lies at the end of a path of two or three facts?",
    ),
    "multihop_comparison": Entry(
        "builders.comparisons.probes:multihop_comparison",
        "builders.comparisons.options:MultihopOptions",
        "Which of several people, given by their ages, is the oldest or the youngest?",
    ),
    "object_comparison": Entry(
        "builders.comparisons.probes:object_comparison",
        "builders.comparisons.options:ObjectOptions",
        "Is one thing typically larger or smaller than another?",
    ),
    "property_conjunction": Entry(
        "builders.properties.probes:property_conjunction",
        "builders.properties.options:PropertyOptions",
        "Which of three things has both of two properties?",
    ),
    "property_conjunction_but_not": Entry(
        "builders.properties.probes:property_conjunction_but_not",
        "builders.properties.options:ExceptionOptions",
        "Which of three things has one property but not another?",
    ),
    "taxonomy_conjunction": Entry(
        "builders.taxonomy.probes:taxonomy_conjunction",
        "builders.taxonomy.options:TaxonomyOptions",
        "What are two things both a type of?",
    ),
    "wordnet_antonymy": Entry(
        "builders.wordnet.antonymy:wordnet_antonymy",
        "builders.wordnet.options:AntonymyOptions",
        "Which of five words means the opposite of another, in a given sense?",
    ),
    "wordnet_definitions": Entry(
        "builders.wordnet.probes:wordnet_definitions",
        "builders.wordnet.options:DefinitionsOptions",
        "Which of five definitions fits the word, as used in a sentence?",
    ),
    "wordnet_hypernymy": Entry(
        "builders.wordnet.probes:wordnet_hypernymy",
        "builders.wordnet.options:HypernymyOptions",
        "Which of five concepts is the word, as used in a sentence, a kind of?",
    ),
    "wordnet_hyponymy": Entry(
        "builders.wordnet.probes:wordnet_hyponymy",
        "builders.wordnet.options:HyponymyOptions",
        "Which of five concepts is a specific kind of the word, as used in a sentence?",
    ),
    "wordnet_meronymy": Entry(
        "builders.wordnet.meronymy:wordnet_meronymy",
        "builders.wordnet.options:MeronymyOptions",
        "Which of five concepts is a part, a member or a substance of another?",
    ),
    "wordnet_synonymy": Entry(
        "builders.wordnet.probes:wordnet_synonymy",
        "builders.wordnet.options:SynonymyOptions",
        "Which of five sets of words fits a definition?",
    ),
}
"""Our probes by name, in alphabetical order."""
