"""Every option of a study, given wrong values: refused in plain words, before anything runs."""

import re
import shlex
from functools import cache

import click
import pytest

from evaluation.cli import main, study_command
from evaluation.studies.registry import STUDIES
from kbprobe.cli import HELP, run

VALUES = ("", " ", "x", "-1", "0", "1e999", "nan", "inf", "9" * 400, "1,,x", "a=b", "[1]", "\u0663")
RAW = re.compile(
    r"Input should|input should|validation error|type=|pydantic|Traceback|unexpected [A-Z]|"
    r"NoneType|unable to parse|ensure this|value is not|<class|\binf\b is|regex"
)


@cache
def options() -> dict[str, list[str]]:
    """Return options that take a value and say what is done, not where or with what, by study.

    What several studies have is tried with the first of them.
    """
    met = {"models", "output", "tag", "folders", "probes"}
    new = {}
    for study in STUDIES:
        new[study.name] = [
            parameter
            for parameter in study_command(study).params
            if isinstance(parameter, click.Option)
            and not parameter.is_flag
            and (parameter.name, parameter.help) not in met
            and parameter.name not in met
        ]
        met |= {(parameter.name, parameter.help) for parameter in new[study.name]}
    return {name: [one.opts[0] for one in some] for name, some in new.items()}


@pytest.fixture(autouse=True)
def in_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("study", STUDIES.names())
def test_wrong_values_are_refused_in_plain_words(study, capsys):
    takes_probes = STUDIES.get(study).expand is not None
    command = study_command(STUDIES.get(study))
    for name in options()[study]:
        for value in VALUES:
            words = ["nowhere", f"{name}={value}", *(["--model", "none"] if takes_probes else [])]
            code = run(command, words, "evaluate-probe")
            said = capsys.readouterr().err
            # Where the value is possible, the probe or folder that is not there is refused.
            assert code == 2, (shlex.join(words), said)
            assert not RAW.search(said), (shlex.join(words), said)
            assert len(said) < 1500, shlex.join(words)


@pytest.mark.parametrize("study", ["", *STUDIES.names(), "report", "cache"])
def test_help_is_there_for_every_command(study, capsys):
    flag = HELP["help_option_names"][-1]
    with pytest.raises(SystemExit) as done:
        main([*([study] if study not in ("", "zero_shot") else []), flag])
    assert not done.value.code
    assert capsys.readouterr().out.startswith("Usage: evaluate-probe")


def test_metavars_say_what_a_value_is():
    for study in STUDIES:
        for parameter in study_command(study).params:
            if isinstance(parameter, click.Option) and not parameter.is_flag:
                name = parameter.metavar or ""
                assert name not in ("", "ON", "IN", "PATH", "CHECKPOINT", "ORIGINAL"), (
                    parameter.opts
                )
