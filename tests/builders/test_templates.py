"""Template files, the sandbox that they run in, and rendering in bulk."""

from __future__ import annotations

import re
import subprocess
import sys
import tracemalloc
from pathlib import Path

import jinja2
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from builders.engine.render import jinja as render
from builders.engine.render.jinja import TemplateError, check_source, render_batch
from builders.engine.render.template_file import Template, load_template, names
from kbprobe.errors import UsageError

QUESTION_FIELDS = ("sentence", "kind", "word", "lemma", "gloss", "pos")
CHOICE_FIELDS = ("lemma", "others", "lemmas", "pos", "gloss")
WORDNET = [
    "wordnet_definitions",
    "wordnet_hypernymy",
    "wordnet_hyponymy",
    "wordnet_synonymy",
]

VALID = """\
probe: demo
about: A demonstration.
question:
  - id: one
    text: 'In {{ sentence | quoted }}, {{ word }} is a type of'
    key_words: [type of]
choice: '{{ lemma }}'
arguments: [word]
"""


def load(path: Path, override: Path | None = None) -> Template:
    return load_template(
        "demo",
        question_fields=QUESTION_FIELDS,
        choice_fields=CHOICE_FIELDS,
        builtin=path,
        override=override,
    )


def write(folder: Path, text: str, name: str = "demo.yaml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


# The built-in templates


@pytest.mark.parametrize("probe", WORDNET)
def test_builtin_templates_load(probe: str) -> None:
    template = load_template(probe, question_fields=QUESTION_FIELDS, choice_fields=CHOICE_FIELDS)
    assert template.questions[0].id == "paper"
    assert 8 <= len(template.questions) <= 13
    assert all(wording.key_words for wording in template.questions)
    assert template.arguments
    assert template.sources == (f"templates/{probe}.yaml",)
    assert re.fullmatch("[0-9a-f]{64}", template.digest)


@pytest.mark.parametrize("probe", WORDNET)
def test_no_punctuation_piles_up(probe: str) -> None:
    template = load_template(probe, question_fields=QUESTION_FIELDS, choice_fields=CHOICE_FIELDS)
    row = {
        "sentence": ["Who goes there?"],
        "word": ["goes"],
        "lemma": ["go"],
        "gloss": ["walk etc."],
    }
    for wording in template.questions:
        for pos in ("noun", "verb", "adjective", "adverb"):
            [text] = render_batch(
                wording.text, row | {"pos": [pos], "kind": ["sentence"]}, wording.id
            )
            assert not re.search(r"\?\"[?.,]|\.\"[.,]|  ", text), text
            assert text == text.strip()


def test_names_lists_every_file_and_reads_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "open", lambda *_: pytest.fail("a template was opened"))
    assert set(WORDNET) <= set(names())
    assert names() == sorted(names())


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (
            {"lemma": "sit", "others": ["sit down"], "pos": "verb", "gloss": "be seated"},
            'to sit (or sit down), defined as "be seated"',
        ),
        (
            {"lemma": "dog", "others": [], "pos": "noun", "gloss": 'a "man\'s best friend"'},
            "dog, defined as 'a \"man's best friend\"'",
        ),
        (
            {"lemma": "a", "others": ["b", "c"], "pos": "noun", "gloss": "d"},
            'a (or b or c), defined as "d"',
        ),
    ],
)
def test_isa_choice(fields: dict[str, object], expected: str) -> None:
    for probe in ("wordnet_hypernymy", "wordnet_hyponymy"):
        choice = load_template(
            probe, question_fields=QUESTION_FIELDS, choice_fields=CHOICE_FIELDS
        ).choice
        assert render_batch(choice, {k: [v] for k, v in fields.items()}, "choice") == [expected]


# Errors of files: each names file, line and key


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("choice:", "chioce:", 7, "unknown key 'chioce'. Did you mean 'choice'?"),
        ("    key_words:", "    keywords:", 6, "question[0]: unknown key 'keywords'. Did you mean"),
        ("{{ word }}", "{{ wrod }}", 5, "question[0].text: unknown field 'wrod'. Did you mean"),
        ("quoted", "quotd", 5, "unknown filter 'quotd'. Did you mean 'quoted'?"),
        ("{{ word }}", "{{ word", 5, "question[0].text: not valid Jinja"),
        ("{{ lemma }}", "{{ word }}", 7, "choice: unknown field 'word'"),
        ("[type of]", "[kind of]", 6, "key_words[0]: 'kind of' does not occur"),
        ("[type of]", "[word]", 6, "key_words[0]: 'word' does not occur"),
        ("[type of]", "[type, ty]", 6, "key_words[1]: 'ty' does not occur"),
        ("[type of]", "type of", 6, "key_words: expected a list of words"),
        ("[word]", "[wrd]", 8, "arguments[0]: unknown field 'wrd'. Did you mean 'word'?"),
        ("id: one", "id: 1", 4, "question[0].id: expected a text"),
        ("id: one", "id: One!", 4, "question[0].id: 'One!' is no id"),
        ("id: one\n    text", "text", 4, "question[0]: the key 'id' is missing"),
        ("A demonstration.", "", 2, "about: expected a text"),
        ("A demonstration.", "' '", 2, "about: the text is empty"),
        ("A demonstration.", "!!python/name:os.system x", 2, "about: expected a text"),
        ("A demonstration.", "yes", 2, "about: expected a text"),
        ("about: A", "probe: demo\nabout: A", 2, "the key 'probe' is given twice"),
        ("probe: demo", "probe: other", 1, "this file is for the probe 'other', not for 'demo'"),
        ("arguments: [word]", "", 1, "the key 'arguments' is missing"),
        ("arguments: [word]", "extends: maybe", 8, "extends: expected true or false"),
        ("choice: '{{ lemma }}'", "choice: '{{ lemma }}", 9, "not valid YAML"),
        ("choice: '{{ lemma }}'", "choice: \0", 7, "not valid YAML"),
        ("choice: '{{ lemma }}'", "choice: [a]", 7, "choice: expected a text"),
    ],
)
def test_errors_tell_where(tmp_path: Path, old: str, new: str, line: int, message: str) -> None:
    assert VALID.count(old) == 1
    path = write(tmp_path, VALID.replace(old, new))
    with pytest.raises(TemplateError) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}:{line}: "), caught.value
    assert message in str(caught.value)
    assert isinstance(caught.value, UsageError)


@pytest.mark.parametrize(
    "scalar",
    [
        "|\n      First line of\n      {{ word }} and\n      {{ wrod }} in it",
        ">-\n      First line of\n      {{ word }} and\n      {{ wrod }} in it",
        "\n      First line of\n      {{ word }} and {{\n      wrod }} in it",
    ],
    ids=["literal", "folded", "plain"],
)
def test_errors_find_the_line_within_a_block(tmp_path: Path, scalar: str) -> None:
    path = write(tmp_path, re.sub("'In.*'", lambda _: scalar, VALID))
    with pytest.raises(TemplateError, match=r":8: question\[0\]\.text: unknown field 'wrod'"):
        load(path)


def test_duplicate_ids_and_no_question(tmp_path: Path) -> None:
    wording = VALID[VALID.index("  - id") : VALID.index("choice")]
    with pytest.raises(TemplateError, match=r":7: question\[1\]\.id: the id 'one' is given twice"):
        load(write(tmp_path, VALID.replace(wording, wording * 2)))
    with pytest.raises(TemplateError, match="question: at least one question is needed"):
        load(write(tmp_path, VALID.replace("question:\n" + wording, "question: []\n")))


@pytest.mark.slow
@pytest.mark.parametrize("content", [b"", b"- 1", b"\xff\xfe", b"[" * 50_000, b"#" * 300_000])
def test_files_that_are_no_template(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(content)
    with pytest.raises(TemplateError, match=re.escape(str(path))):
        load(path)


def test_missing_file_and_unknown_probe(tmp_path: Path) -> None:
    with pytest.raises(TemplateError, match="No such file"):
        load(tmp_path / "none.yaml")
    with pytest.raises(TemplateError, match="Did you mean 'wordnet_hypernymy'"):
        load_template("wordnet_hypernimy", question_fields=(), choice_fields=())


# Overrides


def test_override_replaces_what_it_gives(tmp_path: Path) -> None:
    base = write(tmp_path, VALID)
    override = write(
        tmp_path,
        "question:\n- {id: two, text: 'What is {{ word }}?', key_words: []}\n",
        "mine.yaml",
    )
    built_in, merged = load(base), load(base, override)
    assert [wording.id for wording in merged.questions] == ["two"]
    assert (merged.choice, merged.arguments) == (built_in.choice, built_in.arguments)
    assert merged.sources == (str(base), str(override))
    assert merged.digest != built_in.digest


def test_override_extends(tmp_path: Path) -> None:
    base = write(tmp_path, VALID)
    override = write(
        tmp_path,
        "extends: true\nprobe: demo\nchoice: '{{ gloss }}'\nquestion:\n"
        "- {id: one, text: 'Changed {{ word }}', key_words: [Changed]}\n"
        "- {id: two, text: 'What is {{ word }}?', key_words: []}\n",
        "mine.yaml",
    )
    merged = load(base, override)
    assert [wording.text[:7] for wording in merged.questions] == ["Changed", "What is"]
    assert merged.choice == "{{ gloss }}"


def test_override_for_another_probe(tmp_path: Path) -> None:
    override = write(tmp_path, "about: x\nprobe: other\n", "mine.yaml")
    with pytest.raises(TemplateError, match=r"mine\.yaml:2: probe: .* not for 'demo'"):
        load(write(tmp_path, VALID), override)


def test_digest_is_of_the_content(tmp_path: Path) -> None:
    content = yaml.safe_load(VALID)
    other = write(tmp_path, "# a comment\n" + yaml.safe_dump(content), "other.yaml")
    assert load(write(tmp_path, VALID)).digest == load(other).digest
    changed = write(tmp_path, VALID.replace("type of", "sort of"), "changed.yaml")
    assert load(changed).digest != load(other).digest


# The sandbox

ATTACKS = [
    "{{ word.__class__.__mro__[1].__subclasses__() }}",
    "{{ ''.__class__ }}",
    "{{ word['__class__'] }}",
    "{{ word | attr('__class__') }}",
    "{{ self.__init__.__globals__ }}",
    "{{ self }}",
    "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
    "{{ lipsum.__globals__['os'].popen('id').read() }}",
    "{{ config.items() }}",
    "{{ request.application }}",
    "{{ joiner() }}",
    "{{ namespace(x=1) }}",
    "{{ word.format(1) }}",
    "{{ '%999999999d' % 1 }}",
    "{{ '%0999999999d' | format(1) }}",
    "{{ word * 999999999 }}",
    "{{ 9 ** 9 ** 9 }}",
    "{{ word | center(999999999) }}",
    "{{ word | indent(999999999) }}",
    "{{ word | replace('', word) }}",
    "{{ word | map('upper') }}",
    "{{ word | join(word) }}",
    "{{ word | default(word) }}",
    "{{ word[0:1] }}",
    "{% for x in range(10 ** 9) %}{% endfor %}",
    "{% for x in 'abc' %}{% endfor %}",
    "{% for x in word %}{% for y in word %}{% endfor %}{% endfor %}",
    "{% for x in word recursive %}{{ loop(x) }}{% endfor %}",
    "{% for x in word %}{{ loop.__class__ }}{% endfor %}",
    "{% for x in word %}{{ loop }}{% endfor %}",
    "{% for x, y in word %}{% endfor %}",
    "{% for word in word %}{% endfor %}",
    "{% set x = word ~ word %}{{ x }}",
    "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "{% include '/etc/passwd' %}",
    "{% import 'os' as os %}",
    "{% from 'os' import path %}",
    "{% extends 'x' %}",
    "{% block x %}{% endblock %}",
    "{% call f() %}{% endcall %}",
    "{% filter upper %}{% endfilter %}",
    "{% with x = 1 %}{% endwith %}",
    "{% autoescape true %}{% endautoescape %}",
    "{{ {'a': 1} }}",
    "{{ " + "(" * 1900 + "1" + ")" * 1900 + " }}",
    "{{ " + "not " * 900 + "1 }}",
    "{% if word %}" * 60 + "{% endif %}" * 60,
    "x" * 4001,
    "{{ " + "9" * 3990 + " ** 9}}",
]


@pytest.mark.parametrize("source", ATTACKS, ids=lambda source: source[:40])
def test_attacks_are_refused_when_read(source: str) -> None:
    with pytest.raises(TemplateError):
        check_source(source, ["word"])


def test_refusals_name_the_construct_and_its_line() -> None:
    with pytest.raises(TemplateError, match="a call such as") as caught:
        check_source("one\n{{ word }}\n{{ word() }}", ["word"])
    assert caught.value.line == 3
    with pytest.raises(TemplateError, match="arithmetic"):
        check_source("{{ word * 2 }}", ["word"])


def test_no_chain_of_joins_multiplies() -> None:
    chain = " | join('" + "x" * 300 + "')"
    tracemalloc.start()
    with pytest.raises(TemplateError, match="'join' takes a list, not a str"):
        render_batch("{{ lemmas" + chain * 8 + " }}", {"lemmas": [["a"] * 300]}, "test")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50_000_000


SYNTAX = "{{ }} {% %} {# #} {%- -%} . | ( ) [ ] ' \" 0 1 ** * + ~ , == \x1e \n"
WORDS = (
    "if else endif for in endfor set raw endraw x word lemmas loop not and or is none join first "
    "upper quoted default length trim lower a-b __class__ loop.last text é"
)
PIECES = st.sampled_from([*SYNTAX.split(" "), *WORDS.split()])
SOURCES = st.one_of(
    st.text(max_size=40),
    st.lists(PIECES, max_size=16).map(" ".join),
    st.lists(PIECES, max_size=6).map(lambda parts: "{{ " + " ".join(parts) + " }}"),
)
ROWS: dict[str, list[object]] = {
    "word": ["dog", "", "a\x1eb"],
    "lemmas": [["dog", "hound"], [], ["x"]],
}


@settings(max_examples=200)
@given(SOURCES)
def test_any_template_renders_or_is_refused(source: str) -> None:
    try:
        texts = render_batch(source, ROWS, "test")
    except TemplateError:
        return
    assert len(texts) == 3


# Rendering in bulk


def naive(source: str, rows: list[dict[str, object]]) -> list[str]:
    environment = jinja2.Environment()
    environment.filters |= {name: given.function for name, given in render.FILTERS.items()}
    template = environment.from_string(source)
    return [template.render(row).strip(" \t\r\n") for row in rows]


@pytest.mark.parametrize(
    "source",
    [
        "{{ word }}",
        "fixed",
        "In {{ word | quoted }}: {{ word }}{% if lemmas %} ({{ lemmas | join(', ') }}){% endif %}",
        "{% for x in lemmas if x != word %}{{ loop.index }}{{ x }}{{ '' if loop.last else ', ' }}"
        "{% else %}none{% endfor %}",
        "{{ lemmas | length }}{{ lemmas | first if lemmas else word | default('-') }} {{ 'x' -}} ",
        "a\x1e{{ word }}",
        "{% raw %}{{ {% endraw %}{{ word ~ word }}",
    ],
)
@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.text(), st.lists(st.text(), max_size=3)), min_size=1, max_size=9))
def test_equals_rendering_row_by_row(source: str, rows: list[tuple[str, list[str]]]) -> None:
    fields: dict[str, list[object]] = {
        "word": [row[0] for row in rows],
        "lemmas": [row[1] for row in rows],
    }
    expected = naive(source, [{"word": word, "lemmas": lemmas} for word, lemmas in rows])
    assert render_batch(source, fields, "test") == expected


def test_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(render, "CHUNK", 3)
    words = [str(i) for i in range(10)]
    assert render_batch("<{{ word }}>", {"word": words}, "x") == [f"<{word}>" for word in words]
    lists = [["x"]] * 7 + [[]] * 3
    with pytest.raises(TemplateError, match=r"first.*row 7"):
        render_batch("{{ lemmas | first }}", {"lemmas": lists}, "x")


def test_white_space() -> None:
    source = "  one\n   two {{ word }}\n"
    assert render_batch(source, {"word": ["a  b\nc"]}, "x") == ["one two a  b\nc"]


def test_no_rows_and_unequal_columns() -> None:
    assert render_batch("{{ word }}", {"word": []}, "x") == []
    with pytest.raises(ValueError, match="one common length"):
        render_batch("{{ a }}", {"a": ["x"], "b": []}, "x")


@pytest.mark.parametrize(
    ("expression", "value", "expected"),
    [
        ("quoted", "it's", '"it\'s"'),
        ("quoted", 'say "no"', "'say \"no\"'"),
        ("a", "dog", "a dog"),
        ("a", "hour", "an hour"),
        ("a", "unicorn", "a unicorn"),
        ("a", "", ""),
        ("plural", "child", "children"),
        ("plural", "mother-in-law", "mothers-in-law"),
        ("capitalize_first", "the USA", "The USA"),
        ("upper", "x", "X"),
        ("lower", "X", "x"),
        ("trim", " x ", "x"),
        ("length", "abc", "3"),
        ("default('none')", "", "none"),
    ],
)
def test_filters(expression: str, value: str, expected: str) -> None:
    assert render_batch("{{ v | " + expression + " }}", {"v": [value]}, "x") == [expected]


def test_heavy_imports_wait_until_needed() -> None:
    code = (
        "import sys\n"
        "from builders.engine.render import jinja, template_file\n"
        "template_file.names()\n"
        "heavy = {'jinja2', 'yaml', 'inflect', 'pyarrow'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
        "assert jinja.render_batch('{{ x | quoted }}', {'x': ['y']}, 'x') == ['\"y\"']\n"
        "assert 'inflect' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
