"""Shared fixtures and settings: no network, a separate cache, property tests without deadlines."""

from __future__ import annotations

import gc
import os
import shutil
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import is_hypothesis_test, settings

from tests import real_data
from tests.real_data import MINIATURE, extents

if "PYTEST_XDIST_WORKER" in os.environ:
    # Each worker has one core; more threads would only slow each other down.
    os.environ.setdefault("OMP_NUM_THREADS", "1")

# What is imported stays; the collector of garbage would look through it again and again.
gc.disable()

# Before any test imports ``datasets``, which reads them once.
os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", HF_HUB_DISABLE_PROGRESS_BARS="1")

settings.register_profile("kbprobe", deadline=None, derandomize=True, max_examples=20)
settings.register_profile("slow", settings.get_profile("kbprobe"), max_examples=100)

# Its workers are forked, and limited as POSIX systems can.
collect_ignore = [] if os.name == "posix" else ["reliability"]

SOME_LETTERS = "KNQV"
"""The letters of GCIDE used in tests: the whole dictionary takes 40 seconds to compile."""

Make = Callable[[Path], object]

ENGLISH_SAMPLE = "english-sample"
"""The name of the ConceptNet sample, as in the manifests kept with the tests."""

WIKIDATA_LICENCE = "CC-BY-4.0 AND MIT AND BSD-3-Clause"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--run-slow", action="store_true", help="also run the tests marked slow")


def pytest_configure(config: pytest.Config) -> None:
    """Try properties on more examples in the slow part, before tests take their settings."""
    settings.load_profile("slow" if config.getoption("--run-slow") else "kbprobe")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip slow tests unless requested, and tests that this system cannot run."""
    for item in items:
        if is_hypothesis_test(getattr(item, "obj", None)):
            item.add_marker("properties")
        for marker in item.iter_markers("needs"):
            if find_spec(marker.args[0]) is None:
                reason = f"{marker.args[0]} is not installed: pip install '.[test-all]'"
                item.add_marker(pytest.mark.skip(reason=reason))
    if os.name != "posix":
        for item in items:
            if item.get_closest_marker("posix"):
                item.add_marker(pytest.mark.skip(reason="signals, permissions or links of POSIX"))
    if config.getoption("--run-slow"):
        return
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.skip(reason="slow; run it with --run-slow"))


def pytest_collection_finish() -> None:
    """Spare the collector of garbage what was imported: with torch, each collection takes long."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def session_cache(new_cache: Callable[[], Path]) -> Iterator[None]:
    """Set a private cache for this process, never the user's own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KBPROBE_CACHE", str(new_cache()))
        yield


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return the module of the command that measures the figures on the pages."""
    monkeypatch.syspath_prepend(Path(__file__).resolve().parents[1] / ".ci" / "site")
    return import_module("figures")


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of all processes of a test run."""
    own = tmp_path_factory.getbasetemp()
    parent = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "shared"
    parent.mkdir(exist_ok=True)
    return parent


@pytest.fixture(scope="session")
def new_cache(shared_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """Return a function that makes a cache; tables derived from snapshots are in all of them."""
    derived = shared_folder / "derived"
    derived.mkdir(exist_ok=True)

    def made() -> Path:
        cache = tmp_path_factory.mktemp("cache")
        if os.name == "posix":
            (cache / "derived").symlink_to(derived, target_is_directory=True)
        return cache

    return made


@pytest.fixture(scope="session")
def shared(shared_folder: Path) -> Callable[[str, Make], Path]:
    """Return a function that makes a folder once for all processes of a test run."""
    from kbprobe.files.locks import locked

    parent = shared_folder

    def folder_of(name: str, make: Make) -> Path:
        """Return the folder of a name, written by ``make`` as a whole or not at all."""
        folder = parent / name
        if not folder.is_dir():
            with locked(parent / f"{name}.lock", f"making {name}", timeout=600):
                if not folder.is_dir():
                    make(folder)
        return folder

    return folder_of


@pytest.fixture(scope="session")
def install(
    session_cache: None, shared: Callable[[str, Make], Path]
) -> Callable[[str, Make, Path | None], None]:
    """Return a function that installs a shared entry into a cache."""
    from kb_cache import store

    def into(name: str, make: Make, cache: Path | None = None) -> None:
        folder = cache / "snapshots" / name if cache else store.entry_path(name)
        if not folder.is_dir():
            shutil.copytree(shared(name, make), folder)

    return into


@pytest.fixture(scope="session")
def open_wordnet(install: Callable[..., None]) -> Callable[[Path | None], str]:
    """Return a function that puts the miniature WordNet into a cache and returns its name."""
    from tests import miniature_wordnet as miniature

    def compiled(cache: Path | None = None) -> str:
        install(f"wordnet-{miniature.NAME}", miniature.write_miniature, cache)
        return miniature.NAME

    return compiled


@pytest.fixture(scope="session")
def open_gcide(
    install: Callable[..., None], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[], str]:
    """Return a function that compiles a part of the installed GCIDE and returns its name."""
    from kb_cache.fetching import fetch
    from kb_cache.gcide.source import installed_package

    def make(folder: Path) -> None:
        part = tmp_path_factory.mktemp("gcide")
        for letter in SOME_LETTERS:
            shutil.copy(installed_package() / f"words_{letter}.json", part)
        fetch("gcide", source=part, name=MINIATURE, output=folder)

    def compiled() -> str:
        install(f"gcide-{MINIATURE}", make)
        return MINIATURE

    return compiled


@pytest.fixture(scope="session")
def open_whole_gcide(install: Callable[..., None]) -> Callable[[], None]:
    """Return a function that compiles the whole installed GCIDE, as default builds use it."""
    from kb_cache.fetching import fetch
    from kb_cache.gcide.source import installed_package, package_entry

    def compiled() -> None:
        source, name = installed_package(), package_entry()
        install(name, lambda folder: fetch("gcide", source=source, name=name, output=folder))

    return compiled


@pytest.fixture(scope="session", params=extents())
def extent(request: pytest.FixtureRequest) -> str:
    """Return which real data a test uses; tests that use any run on each."""
    return str(request.param)


@pytest.fixture(scope="session")
def open_conceptnet(install: Callable[..., None]) -> Callable[[str], str]:
    """Return a function that compiles ConceptNet of some extent, once, and returns its name."""
    from kb_cache.fetching import fetch

    def compiled(extent: str) -> str:
        name = {real_data.SAMPLE: ENGLISH_SAMPLE}.get(extent, extent)
        source = real_data.conceptnet_file(extent)
        install(
            f"conceptnet-{name}",
            lambda folder: fetch("conceptnet", source=source, name=name, output=folder),
        )
        return name

    return compiled


@pytest.fixture(scope="session")
def conceptnet(extent: str, open_conceptnet: Callable[[str], str]) -> str:
    """Return the name of a compiled ConceptNet."""
    return open_conceptnet(extent)


@pytest.fixture(scope="session")
def open_wikidata(install: Callable[..., None]) -> Callable[[str], str]:
    """Return a function that loads Wikidata of some extent, once, and returns its name."""
    from kb_cache.fetching import fetch

    def load(extent: str) -> str:
        source = real_data.wikidata_file(extent)

        def make(folder: Path) -> None:
            fetch(
                "wikidata",
                source=source,
                name=extent,
                licence=WIKIDATA_LICENCE,
                attribution="Contains the part of Wikidata that the kbprobe tests use.",
                language="en",
                output=folder,
            )

        install(f"wikidata-{extent}", make)
        return extent

    return load


@pytest.fixture(scope="session")
def wikidata(extent: str, open_wikidata: Callable[[str], str]) -> str:
    """Return the name of a Wikidata in the cache, to be asked in process."""
    return open_wikidata(extent)


@pytest.fixture(scope="session")
def wikidata_file(extent: str) -> Path:
    """Return the file that `wikidata` is loaded from."""
    return real_data.wikidata_file(extent)


@pytest.fixture(scope="session")
def oxigraph_server(wikidata_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the query URL of a real SPARQL server over the triples of `wikidata`.

    Its store is built by the server itself, so that equal answers are evidence for ours.
    """
    from tests.oxigraph import load, serving

    folder = tmp_path_factory.mktemp("oxigraph")
    load(wikidata_file, folder)
    with serving(folder) as url:
        yield url
