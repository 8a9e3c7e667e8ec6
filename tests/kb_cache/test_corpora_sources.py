"""Reading corpora in each format, and what is said of malformed ones."""

from __future__ import annotations

import gzip
import json
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb_cache.base import find_kind
from kb_cache.corpora.conllu import read_conllu
from kb_cache.corpora.kind import KNOWN
from kb_cache.corpora.load import load_corpora, load_corpus
from kb_cache.corpora.reading import Skipped, decoded
from kb_cache.corpora.rows import corpus_of
from kb_cache.corpora.source import tsv_rows
from kb_cache.corpora.tagged import read_tagged
from kb_cache.corpora.types import Corpus
from kb_cache.fetching import fetch
from kb_cache.snapshot import read_info
from kbprobe.errors import KbprobeError, MissingDependencyError, SourceError, UsageError
from tests.kb_cache.conftest import RunCli
from tests.real_data import MINIATURES

FILES = MINIATURES / "corpora"
MASC = FILES / "masc_tagged"
EWT = FILES / "ewt-miniature.conllu"


def fetched(source: Path | str, name: str = "x", **options: object) -> Corpus:
    """Compile a source into the cache and load it; splitting goes by spaCy's rules alone."""
    fetch("corpus", source=Path(source), name=name, **{"pipeline": "blank:en", **options})
    return load_corpus(name)


def notes(name: str = "x") -> str:
    from kb_cache.store import find

    return " ".join(read_info(find(name, "corpus").folder).source.notes)


# ---- Formats


def test_tagged_text_is_read_with_paragraphs_genres_and_tags(cache: Path) -> None:
    corpus = fetched(MASC, "masc-miniature")
    assert corpus.document_ids == ["written/110CYL067", "written/audubon1", "written/blog-jet-lag"]
    assert corpus.document_genre.of(slice(None)) == ["letters", "letters", "blog"]
    assert corpus.has_paragraphs.all()
    assert corpus.layers == {"corpus-masc-miniature": {"upos", "xpos"}}
    texts = corpus.sentences.text.to_pylist()
    assert texts[:2] == [
        "December 1998",
        "Your contribution to Goodwill will mean more than you may know.",
    ]
    assert "\"I was sad when I couldn't go to the snack bar to buy a soda." in texts
    # The mark that closes a quotation has gone back to the sentence that it ends.
    assert "If I wasn't working here... I would be sad...\"" in texts
    assert corpus.sentences.upos.of(slice(2, 6)) == ["PRON", "NOUN", "PART", "PROPN"]
    assert corpus.attribution == KNOWN["masc"].attribution
    assert corpus.sentence_paragraph[0] == corpus.sentence_paragraph[1]


def test_genres_can_be_chosen(cache: Path) -> None:
    corpus = fetched(MASC, "masc-blog", genre=("blog",))
    assert corpus.document_ids == ["written/blog-jet-lag"]
    assert "2 documents of other genres were left out" in notes("masc-blog")


def test_conllu_keeps_text_documents_paragraphs_and_trees(cache: Path) -> None:
    corpus = fetched(EWT, "ewt-miniature")
    lines = EWT.read_text(encoding="utf-8").splitlines()
    stated = [line.removeprefix("# text = ") for line in lines if line.startswith("# text = ")]
    assert corpus.sentences.text.to_pylist() == stated
    assert len(corpus.document_ids) == sum(line.startswith("# newdoc") for line in lines)
    assert len(corpus.paragraph_document) == sum(line.startswith("# newpar") for line in lines)
    # Words of contractions are tokens each; empty nodes ("8.1") are none.
    rows = [line.split("\t") for line in lines if line[:1].isdigit()]
    plain = [row for row in rows if row[0].isdigit()]
    assert corpus.sentences.forms.of(slice(None)) == [row[1] for row in plain]
    lemmas = [row[2] if row[2] != "_" else "" for row in plain]
    assert corpus.sentences.lemma.of(slice(None)) == lemmas
    assert corpus.sentences.deprel.of(slice(None)) == [row[7] for row in plain]
    heads = [int(row[6]) - 1 if row[6] != "0" else int(row[0]) - 1 for row in plain]
    assert corpus.sentences.head.tolist() == heads
    assert corpus.licence == "CC-BY-SA-4.0"


def test_a_contraction_whose_words_are_not_in_the_text_is_one_token() -> None:
    rows = [
        "# text = Il parle du chat.", "1\tIl\til\tPRON\t_\t_\t2\tnsubj\t_\t_",
        "2\tparle\tparler\tVERB\t_\t_\t0\troot\t_\t_", "3-4\tdu\t_\t_\t_\t_\t_\t_\t_\t_",
        "3\tde\tde\tADP\t_\t_\t5\tcase\t_\t_", "4\tle\tle\tDET\t_\t_\t5\tdet\t_\t_",
        "5\tchat\tchat\tNOUN\t_\t_\t2\tobl\t_\tSpaceAfter=No",
        "6\t.\t.\tPUNCT\t_\t_\t2\tpunct\t_\t_",
    ]  # fmt: skip
    corpus = corpus_of(read_conllu("x", "\n".join(rows), Skipped()))
    assert corpus.sentences.words(0) == ["Il", "parle", "du", "chat", "."]
    assert corpus.sentences.upos.of(slice(None)) == ["PRON", "VERB", "ADP", "NOUN", "PUNCT"]
    assert corpus.sentences.head.tolist() == [1, 1, 3, 1, 1]
    assert not corpus.has_paragraphs[0]


def test_conllu_without_its_text_is_put_together_by_its_spaces() -> None:
    rows = ["1\tNo\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No", "2\t!\t_\t_\t_\t_\t_\t_\t_\t_"]
    corpus = corpus_of(read_conllu("x", "\n".join(rows) + "\n\n", Skipped()))
    assert corpus.sentences.text.to_pylist() == ["No!"]
    assert corpus.layers == {"corpus-given": set()}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "ids", "labels"),
    [
        ("rte-miniature.xml", ["rte-miniature-1", "rte-miniature-2", "rte-miniature-3"],
         ["YES", "NO", "TRUE"]),
        ("snli-miniature.jsonl", ["1.jpg#0r1n", "1.jpg#1r1e"], ["neutral", ""]),
        ("mnli-miniature.tsv", ["1n", "2e"], ["contradiction", "neutral"]),
    ],
)  # fmt: skip
def test_pairs_are_read_in_each_format(
    cache: Path, file: str, ids: list[str], labels: list[str]
) -> None:
    corpus = fetched(FILES / file)
    assert corpus.pairs.id.to_pylist() == ids
    assert corpus.pairs.label.of(slice(None)) == labels
    premise = int(corpus.pairs.premise[0])
    words = corpus.pairs.passages.words(premise)
    assert len(words) > 5
    assert words[-1] == "."
    assert len(corpus.sentences) == 0
    assert "by rules alone" in notes()


@pytest.mark.needs("spacy")
def test_columns_may_be_named(cache: Path, tmp_path: Path) -> None:
    rows = [{"context": "It rains.", "claim": "It is wet.", "gold": "yes"}, {"context": ""}]
    file = tmp_path / "claims.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    columns = ("premise=context", "hypothesis=claim", "label=gold")
    corpus = fetched(file, columns=columns)
    assert corpus.pairs.label.of(slice(None)) == ["yes"]
    assert "1 pairs lack a premise or a hypothesis" in notes()
    with pytest.raises(UsageError, match="--columns takes NAME=COLUMN"):
        fetched(file, columns=("context",))
    with pytest.raises(SourceError, match="has no column 'claims'; it has context, claim, gold"):
        fetched(file, columns=("premise=context", "hypothesis=claims"))


@pytest.mark.needs("spacy")
def test_plain_text_and_json_lines_are_split_by_spacy(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("It rains\nhere. Dogs bark.\n\nNew paragraph.\n")
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress("One naïve sentence.".encode()))
    (tmp_path / "c.jsonl").write_text(
        '{"id": "first", "text": "Yes. No."}\n{"text": ["One.", "Two."], "genre": "list"}\n'
    )
    corpus = fetched(tmp_path)
    assert corpus.document_ids == ["a", "b", "first", "c-2"]
    assert corpus.has_paragraphs.tolist() == [True, False, False, True]
    assert corpus.sentences.text.to_pylist() == [
        "It rains here.", "Dogs bark.", "New paragraph.", "One naïve sentence.", "Yes.", "No.",
        "One.", "Two.",
    ]  # fmt: skip
    assert corpus.sentence_paragraph.tolist() == [0, 0, 1, 2, 3, 3, 4, 5]
    assert corpus.sentences.words(0) == ["It", "rains", "here", "."]
    assert corpus.layers == {"corpus-x": frozenset()}
    assert corpus.licence == "LicenseRef-unstated"
    assert "No licence was stated" in notes()


@pytest.mark.needs("spacy")
def test_an_installed_pipeline_tags_and_parses(cache: Path, tmp_path: Path) -> None:
    import spacy

    models = [name for name in spacy.util.get_installed_models() if name.startswith("en_")]
    if not models:
        pytest.skip("no English pipeline is installed: python -m spacy download en_core_web_sm")
    (tmp_path / "a.txt").write_text("The dogs didn't bark. They slept.")
    corpus = fetched(tmp_path / "a.txt", pipeline=models[0])
    sentences = corpus.sentences
    assert sentences.text.to_pylist() == ["The dogs didn't bark.", "They slept."]
    assert sentences.words(0) == ["The", "dogs", "did", "n't", "bark", "."]
    assert sentences.xpos.of(slice(0, 2)) == ["DT", "NNS"]
    assert sentences.lemma[1] == "dog"
    assert sentences.head.tolist()[:6] == [1, 4, 4, 4, 4, 4]
    assert corpus.layers["corpus-x"] == {"upos", "xpos", "lemma", "deprel", "head"}


def test_corpora_can_be_loaded_together(cache: Path) -> None:
    fetched(MASC, "masc-miniature")
    fetched(EWT, "ewt-miniature")
    both = load_corpora(["masc-miniature", "ewt-miniature"])
    assert len(both.document_ids) == 3 + len(load_corpus("ewt-miniature").document_ids)
    assert both.licence == "LicenseRef-MASC AND CC-BY-SA-4.0"
    assert both.layers["corpus-masc-miniature"] == {"upos", "xpos"}


def test_an_extract_of_masc_comes_with_the_package(cache: Path) -> None:
    corpus = load_corpus()
    assert corpus.name == "corpus-masc-extract"
    assert len(corpus.sentences) > 20_000
    assert corpus.has_paragraphs.mean() > 0.9
    assert set(corpus.layers["corpus-masc-extract"]) == {"upos", "xpos"}
    assert not {"newspaper", "email", "spam"} & set(corpus.document_genre.names)


# ---- The Hub


@pytest.mark.needs("spacy")
def test_a_dataset_of_the_hub_is_read_by_its_columns(cache: Path, tmp_path: Path) -> None:
    from datasets import ClassLabel, Dataset, Features, Value

    features = Features(
        {
            "premise": Value("string"),
            "hypothesis": Value("string"),
            "label": ClassLabel(names=["entailment", "neutral", "contradiction"]),
        }
    )
    rows = [
        {"premise": "It rains.", "hypothesis": "It is wet.", "label": 0},
        {"premise": "It snows.", "hypothesis": "It is hot.", "label": 2},
        {"premise": "It hails.", "hypothesis": "It is late.", "label": -1},
    ]
    folder = tmp_path / "nli"
    folder.mkdir()
    Dataset.from_list(rows, features).to_parquet(str(folder / "train-00000-of-00001.parquet"))
    corpus = fetched(f"hub:{folder}::train", "nli")
    assert corpus.pairs.label.of(slice(None)) == ["entailment", "contradiction", ""]
    assert corpus.pairs.passages.text.to_pylist()[:2] == ["It rains.", "It is wet."]
    documents = tmp_path / "documents"
    documents.mkdir()
    Dataset.from_dict({"text": ["One. Two.", ""]}).to_parquet(str(documents / "train.parquet"))
    assert fetched(f"hub:{documents}", "documents").sentences.text.to_pylist() == ["One.", "Two."]
    assert "1 empty documents were left out" in notes("documents")


def test_without_a_network_it_says_what_to_do(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path)
    with pytest.raises(SourceError, match=r"'no-such/dataset' cannot be loaded.*--from"):
        fetched("hub:no-such/dataset")


# ---- What cannot be read


@pytest.mark.needs("spacy")
def test_a_missing_pipeline_is_named_with_what_installs_it(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("It rains.")
    with pytest.raises(MissingDependencyError, match="python -m spacy download en_no_such"):
        fetched(tmp_path / "a.txt", pipeline="en_no_such")


def test_a_missing_spacy_is_named_with_its_extra(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kbprobe.errors.find_spec", lambda package: None)
    (tmp_path / "a.txt").write_text("It rains.")
    with pytest.raises(MissingDependencyError, match=r"pip install '\.\[corpora\]'"):
        fetched(tmp_path / "a.txt")


BAD = {
    "empty.txt": (b"  \n\n", "holds no sentence and no pair.*1 empty files were left out"),
    "no-xml.xml": (b"<entailment-corpus><pair>", "no-xml.xml is not well-formed XML"),
    "other.xml": (b"<html></html>", "no corpus of the RTE challenges: its root is <html>"),
    "headerless.tsv": (
        b"tt-0\tAnn has only visited Rome\tBob did not visit Bonn\tNEUTRAL\n",
        "headerless.tsv has no header: its first row is one of data .tt-0.* its 4 columns first",
    ),
    "numbers.tsv": (b"0\tIt is.\tIt was.\n", "numbers.tsv has no header"),
    "other.tsv": (b"a\tb\n1\t2\n", "has neither the columns of pairs.*it has a, b.*--columns"),
    "other.jsonl": (b'{"a": 1}\n', "it has a. Say which are which with --columns text=NAME"),
    "no-json.jsonl": (b"hello\n[1]\n", "no line of it is a JSON object"),
    "cut.zip": (b"PK\x03\x04 cut off", "damaged or truncated.*Get it again"),
    "cut.txt.gz": (gzip.compress(b"It rains. " * 99)[:-20], "damaged or truncated"),
    "words.conllu": (b"It rains.\n", "sentences are malformed"),
    "untagged.txt": (b"_NN _VB _DT\n", "holds no sentence"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_read_is_explained_and_leaves_nothing(
    cache: Path, tmp_path: Path, run_cli: RunCli, name: str
) -> None:
    content, message = BAD[name]
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(KbprobeError, match=message):
        fetched(file)
    done = run_cli("fetch", "corpus", "x", "--from", str(file), "--pipeline", "blank:en")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert not list((cache / "snapshots").glob("*x*"))


def test_a_truncated_zip_of_masc_is_refused(cache: Path, tmp_path: Path) -> None:
    whole = tmp_path / "whole.zip"
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(MASC.rglob("*.txt")):
            archive.write(file, file.relative_to(FILES))
    assert len(fetched(whole, "masc-whole").document_ids) == 3
    cut = tmp_path / "masc_tagged.zip"
    cut.write_bytes(whole.read_bytes()[:-400])
    with pytest.raises(SourceError, match="damaged or truncated"):
        fetched(cut)
    flipped = bytearray(whole.read_bytes())
    flipped[2000] ^= 0xFF
    cut.write_bytes(flipped)
    with pytest.raises(SourceError, match="damaged or truncated"):
        fetched(cut)


def test_mixed_encodings_lose_nothing_and_are_counted(cache: Path, tmp_path: Path) -> None:
    lines = ["café_NN ._.".encode(), "“café”_NN ._.".encode("cp1252"), b"\xef\xbb\xbfx_NN \x00y_NN"]
    file = tmp_path / "a.txt"
    file.write_bytes(b"\r\n".join(lines))
    corpus = fetched(file)
    assert corpus.sentences.text.to_pylist() == ["café.", "“café”.", "x y"]
    assert "1 lines are not UTF-8 and were read as Windows-1252 (first: a.txt, line 2)" in notes()
    file.write_bytes("né_NN".encode("utf-16"))
    assert fetched(file).sentences.text.to_pylist() == ["né"]


def test_one_sentence_is_a_corpus(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("It_PRP rains_VBZ ._.")
    corpus = fetched(tmp_path / "a.txt")
    assert corpus.sentences.text.to_pylist() == ["It rains."]
    assert not corpus.has_paragraphs[0]


@pytest.mark.slow
def test_a_line_of_ten_megabytes_is_left_out_and_counted(cache: Path, tmp_path: Path) -> None:
    long = "word_NN " * 1_300_000
    (tmp_path / "a.txt").write_text(f"One_CD ._.\n{long}\nTwo_CD ._.\n")
    corpus = fetched(tmp_path / "a.txt")
    assert corpus.sentences.text.to_pylist() == ["One.", "Two."]
    assert "1 sentences of more than 10,000 characters were left out" in notes()
    # They are no neighbours: something stood between them.
    assert corpus.sentence_paragraph.tolist() == [0, 1]


@pytest.mark.slow
def test_ten_megabytes_of_plain_text_in_one_line_are_divided(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("It rains here. " * 20_000 + "x" * 9_700_000)
    corpus = fetched(tmp_path / "a.txt")
    assert corpus.sentences.text.unique().to_pylist() == ["It rains here."]
    assert len(corpus.sentences) == 20_000
    assert "paragraphs of more than 100,000 characters were divided" in notes()
    assert "1 words of more than 10,000 characters were left out" in notes()
    (tmp_path / "a.txt").write_text("no end " * 20_000)
    with pytest.raises(SourceError, match="sentences of more than 10,000 characters"):
        fetched(tmp_path / "a.txt")


def test_rows_with_other_columns_are_counted() -> None:
    skipped = Skipped()
    rows = list(tsv_rows("x.tsv", "a\tb\n1\t2\n1\n\n3\t4\t5", skipped))
    assert [row for _, row in rows] == [{"a": "1", "b": "2"}]
    assert skipped.counts.total() == 2
    assert "x.tsv, line 3" in skipped.notes()[0]


@pytest.mark.needs("spacy")
def test_repeated_ids_are_made_different(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"id": "1", "text": "Yes."}\n{"id": "1", "text": "No."}')
    assert fetched(tmp_path).document_ids == ["1", "1#2"]


# ---- The command


@pytest.mark.posix
def test_known_corpora_need_no_path(
    cache: Path, run_cli: RunCli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "nltk" / "corpora"
    folder.mkdir(parents=True)
    (folder / "masc_tagged").symlink_to(MASC)
    monkeypatch.setenv("NLTK_DATA", str(tmp_path / "nltk"))
    assert run_cli("fetch", "corpus").stdout.startswith("corpus-masc: ")
    assert run_cli("fetch", "corpus", "masc").stdout.startswith("corpus-masc: ")
    assert load_corpus("masc").licence == "LicenseRef-MASC"
    assert run_cli("verify", "corpus-masc").stdout == "corpus-masc: sound\n"
    missing = run_cli("fetch", "corpus", "mine")
    assert missing.returncode == 2
    assert "kb-cache fetch corpus mine needs the source: give it with --from PATH" in missing.stderr
    twice = run_cli("fetch", "corpus", "masc", "--name", "other")
    assert twice.returncode == 2
    assert "the name is given twice" in twice.stderr
    with pytest.raises(UsageError, match="Add one with: kb-cache fetch corpus rte"):
        load_corpus("rte")


def test_own_text_is_credited_as_stated(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("It_PRP rains_VBZ ._.")
    corpus = fetched(
        tmp_path, "rte-mine", licence="CC-BY-4.0", attribution="By Ann.", language="en-GB"
    )
    assert (corpus.licence, corpus.attribution) == ("CC-BY-4.0", "By Ann.")
    assert (corpus.citation, corpus.language) == ("", "en-GB")


def test_known_corpora_are_credited() -> None:
    for name, corpus in KNOWN.items():
        assert corpus.citation.startswith("@")
        assert corpus.attribution
        if corpus.download:
            assert find_kind("corpus").fetch_command(name).startswith("kb-cache fetch corpus")


# ---- Properties

tokens = st.tuples(
    st.text(st.characters(exclude_categories=["Z", "C"]), min_size=1, max_size=6),
    st.sampled_from(["NN", "VBZ", ".", "''", "-", ":"]),
)


@given(st.lists(st.lists(tokens, min_size=1, max_size=8), min_size=1, max_size=5))
def test_tagged_text_gives_its_words_and_tags_back(sentences: list[list[tuple[str, str]]]) -> None:
    text = "\n".join(" ".join(f"{word}_{tag}" for word, tag in line) for line in sentences)
    document = read_tagged("x", text, {}, Skipped())
    assert document
    read = [s for paragraph in document.paragraphs for s in paragraph]
    assert [tag for s in read for tag in s.xpos] == [tag for line in sentences for _, tag in line]
    corpus = corpus_of([document])
    assert "".join(corpus.sentences.forms.of(slice(None))) == "".join(
        {"``": '"', "''": '"'}.get(word, word) for line in sentences for word, _ in line
    )


@given(st.binary(max_size=300))
def test_any_bytes_can_be_decoded_and_read(content: bytes) -> None:
    text = decoded(content, "x", Skipped())
    assert "\r" not in text
    document = read_tagged("x", text, {}, Skipped())
    documents = [*([document] if document else []), *read_conllu("x", text, Skipped())]
    corpus = corpus_of(documents)
    assert len(corpus.document_ids) == len(documents)


@pytest.mark.parametrize(
    ("form", "tag", "said"),
    [("___", "NN", "1 of 1 sentences have hidden forms"), ("dog", "SG-NOM", "such as SG-NOM")],
)
def test_treebanks_that_probes_cannot_use_are_named_at_fetch(
    cache: Path, tmp_path: Path, form: str, tag: str, said: str
) -> None:
    path = tmp_path / "x.conllu"
    path.write_text(f"1\t{form}\t_\tNOUN\t{tag}\t_\t0\troot\t_\t_\n", encoding="utf-8")
    fetched(path)
    assert said in notes()
