"""Corpora that we know by name: whom to credit for them, and where they are."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kb_cache.base import Download

_NLTK = "https://raw.githubusercontent.com/nltk/nltk_data/gh-pages/packages/corpora"


@dataclass(frozen=True)
class Known:
    """A published corpus.

    Attributes:
        licence, attribution, citation: see `kb_cache.base.Loaded`.
        nltk: its name among the corpora of NLTK's data; "" if it is not one.
        download: where it can be had.
    """

    licence: str
    attribution: str
    citation: str
    nltk: str = ""
    download: Download | None = None


KNOWN: Mapping[str, Known] = {
    "masc": Known(
        licence="LicenseRef-MASC",
        attribution=(
            "Contains text of MASC, the Manually Annotated Sub-Corpus of the Open American "
            "National Corpus (http://www.anc.org/data/masc/), Copyright (C) 2014 American National "
            "Corpus, in the edition of NLTK. It may be used, also commercially, and "
            "redistributed."
        ),
        citation="""@inproceedings{ide-etal-2010,
  title     = "The {M}anually {A}nnotated {S}ub-{C}orpus: A Community Resource for and by the People",
  author    = {Ide, Nancy and Baker, Collin and Fellbaum, Christiane and Passonneau, Rebecca},
  booktitle = {Proceedings of the {ACL} 2010 Conference Short Papers},
  pages     = {68--73},
  year      = {2010}
}""",  # noqa: E501  # BibTeX reads no broken title
        nltk="masc_tagged",
        download=Download(
            url=f"{_NLTK}/masc_tagged.zip",
            sha256="678a5141cf3381bedb1839c58a330507337be07c7c71603279c0ef5337032304",
            bytes=1_602_143,
        ),
    ),
    "rte": Known(
        licence="LicenseRef-RTE",
        attribution=(
            "Contains pairs of the PASCAL Recognising Textual Entailment Challenges 1, 2 and 3, "
            "organised by the PASCAL Network of Excellence, in the edition of NLTK. Their "
            "publishers state no licence."
        ),
        citation="""@inproceedings{dagan-etal-2006,
  title     = {The {PASCAL} Recognising Textual Entailment Challenge},
  author    = {Dagan, Ido and Glickman, Oren and Magnini, Bernardo},
  booktitle = {Machine Learning Challenges},
  series    = {Lecture Notes in Computer Science},
  volume    = {3944},
  pages     = {177--190},
  year      = {2006}
}""",
        nltk="rte",
        download=Download(
            url=f"{_NLTK}/rte.zip",
            sha256="2f806ead4d53171601254747c3b7c97d758e63a6ef54e3c010a6d62885ab214a",
            bytes=386_303,
        ),
    ),
    "ewt": Known(
        licence="CC-BY-SA-4.0",
        attribution=(
            "Contains sentences of Universal Dependencies English EWT "
            "(https://universaldependencies.org/treebanks/en_ewt/), built on the source material "
            "of the English Web Treebank (LDC2012T13); CC BY-SA 4.0."
        ),
        citation="""@inproceedings{silveira-etal-2014,
  title     = "A Gold Standard Dependency Corpus for {E}nglish",
  author    = {Silveira, Natalia and Dozat, Timothy and de Marneffe, Marie-Catherine and Bowman, Samuel and Connor, Miriam and Bauer, John and Manning, Chris},
  booktitle = {Proceedings of the Ninth International Conference on Language Resources and Evaluation},
  pages     = {2897--2904},
  year      = {2014}
}""",  # noqa: E501
    ),
}  # fmt: skip


def known(name: str) -> Known | None:
    """Return the corpus of that name; "ewt-dev" and "masc-extract" are parts of those we know."""
    return KNOWN.get(name) or KNOWN.get(name.partition("-")[0])


def in_nltk_data(corpus: Known) -> Path | None:
    """Return where NLTK keeps a corpus on this machine; None if it does not."""
    stated = [Path(root) for root in os.environ.get("NLTK_DATA", "").split(os.pathsep) if root]
    for root in (*stated, Path.home() / "nltk_data"):
        for path in (root / "corpora" / f"{corpus.nltk}.zip", root / "corpora" / corpus.nltk):
            if corpus.nltk and path.exists():
                return path
    return None
