"""Builders: from a knowledge base to a probe dataset.

>>> import builders
>>> probe = builders.build("wordnet_hypernymy", max_hops=2, limit=100)  # doctest: +SKIP
>>> probe["test"][0]["question"]  # doctest: +SKIP
'Given the context "an agony of doubt", "agony" is a special case of'
"""

from __future__ import annotations

from contextlib import ExitStack
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kbprobe.errors import naming_extras

if TYPE_CHECKING:
    from builders.engine.listing import ProbeList
    from kbprobe.format.in_memory import ProbeSplits

__all__ = ["build", "list_probes", "names"]


@naming_extras()
def build(
    name: str | None = None,
    *,
    output: str | Path | None = None,
    seed: int = 0,
    template: str | Path | None = None,
    audit: bool = True,
    overwrite: bool = False,
    config: str = "default",
    **options: Any,
) -> ProbeSplits:
    """Build a probe and return it as a ``datasets.DatasetDict``.

    Args:
        name: the probe's name (:func:`names` lists them), or the file of a table or
            an ontology (``facts.csv``, ``go.obo:hyponymy``). It can be left out where ``table`` is
            given: facts of your own, such as a DataFrame.
        output: folder to also write the probe to (Parquet, card and manifest); if None, it stays in
            memory.
        seed: seed of every draw. The same knowledge base, options and seed give the same rows.
        template: a file that extends or replaces the built-in wordings.
        audit: whether to run the audit. Its report is stored in the manifest and card in ``output``
            and with the dataset, so that evaluation can show its baselines.
        overwrite: replace another probe in ``output``.
        config: which config to return: ``default``, or a control such as ``no_language``, whose
            rows have the same ids. All of them are written.
        **options: the probe's options, as ``build-probe NAME --help`` lists them, with
            underscores.

    Raises:
        UsageError: an unknown probe, config or option, an impossible value, a faulty template, or
            an ``output`` that holds something else.
    """
    from datasets import Dataset, NamedSplit

    from builders.engine import pipeline
    from builders.engine.options import with_snapshots
    from builders.engine.own_files import own_file
    from builders.engine.probe import find_probe
    from builders.engine.registry import FACTS
    from builders.engine.request import Request
    from kbprobe.errors import optional_path, wrong_argument
    from kbprobe.files.targets import taking
    from kbprobe.format.dataset import load
    from kbprobe.format.in_memory import ProbeSplits, dataset_info
    from kbprobe.format.items import plain

    if name is None and "table" in options:
        name = FACTS
    if not isinstance(name, str):
        accepted = "the name of a probe, or FILE.py:function. Several are built one after another"
        raise wrong_argument("build(name=...)", name, accepted)
    if own := own_file(name):
        name, options = own.probe, {**own.options, **options}
    probe = find_probe(name)
    file = optional_path("build(template=...)", template, "a YAML file of wordings, or None")
    folder = optional_path("build(output=...)", output)
    if isinstance(seed, bool) or not isinstance(seed, Integral):
        raise wrong_argument("build(seed=...)", seed, "a whole number")
    if not isinstance(config, str):
        raise wrong_argument("build(config=...)", config, "the name of a config, such as default")
    chosen = with_snapshots(probe.options.parse(options, name), name)
    request = Request(probe, chosen, int(seed), file, audit=audit)
    request.check_config(config)
    with ExitStack() as held:
        if folder is not None and request.is_in(
            folder, held.enter_context(taking(folder, overwrite))
        ):
            return load(folder, config)
        built = pipeline.build(request)
        if folder is not None:
            pipeline.write(built, folder)
    info = dataset_info(built.manifest, config)
    splits = built.configs[config].items()
    return ProbeSplits(
        {split: Dataset(plain(items.table()), info, NamedSplit(split)) for split, items in splits}
    )


def names() -> list[str]:
    """Return the names of all probes, including those of other installed packages."""
    from builders.engine.probe import summaries

    return list(summaries())


def list_probes() -> ProbeList:
    """Return all probes: what each asks and needs, its number of rows, and whether it can be built.

    >>> import kbprobe
    >>> [one.name for one in kbprobe.list_probes() if one.state == "ready"][0]
    'age_comparison'
    """
    from builders.engine.listing import ProbeList, listed_probes

    return ProbeList(listed_probes())
