"""Options of recording: one table, and the same answer wherever a value is said."""

import json
from pathlib import Path

import pytest

from strobe.cli.main import main
from strobe.model.option import Option
from strobe.record.options.all_options import OPTIONS, PRESET_OPTIONS, combined, given_in_python
from strobe.record.options.filters import anchored_options
from strobe.record.options.recorder_options import (
    Setting,
    moment,
    share,
    size,
)
from strobe.record.options.session_settings import Session
from strobe.record.options.value_sources import settle

pytestmark = pytest.mark.every_python

HOME = {"HOME": "/nowhere"}


def texts(settings: dict[str, Setting]) -> dict[str, str]:
    """The values without their origins."""
    return {name: setting.text for name, setting in settings.items()}


def test_each_place_counts_before_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, project = tmp_path / "home", tmp_path / "project/inner"
    for folder in (home / ".config", project):
        folder.mkdir(parents=True)
    user = home / ".config/strobe.toml"
    user.write_text('keep = 1\nsummary = "none"\nquiet = true\npreset = "light"\n')
    shared = tmp_path / "project/pyproject.toml"
    shared.write_text(
        '[tool.other]\nkeep = 99\n[tool.strobe]\nkeep = 2\nsummary = "short"\ninclude = ["./lib", "name", "/abs"]\n'
    )
    (project / "pyproject.toml").write_text("[project]\nname = 'speaks of strobe, but has no table'\n")
    environment = {"HOME": str(home), "STROBE_KEEP": "3", "STROBE_JSON": ""}

    def origin(name: str, given: dict[str, str]) -> tuple[str, str]:
        setting = settle(given, environment, str(project))[name]
        return setting.text, setting.origin

    assert origin("keep", {"keep": "4"}) == ("4", "command line")
    assert origin("keep", {}) == ("3", "STROBE_KEEP in the environment")
    environment["STROBE_KEEP"] = ""
    assert origin("keep", {}) == ("2", str(shared))
    assert origin("summary", {}) == ("short", str(shared))
    assert origin("quiet", {}) == ("yes", str(user))
    assert origin("json", {}) == ("no", "default")
    assert origin("include", {})[0].split(":") == [str(tmp_path / "project/lib"), "name", "/abs"]
    monkeypatch.setitem(PRESET_OPTIONS, "light", {"output": "of-preset"})
    assert origin("output", {}) == ("of-preset", "preset light")
    assert origin("output", {"preset": "auto"}) == ("", "default")
    (project / "strobe.toml").write_text("keep = 'all'")
    assert origin("keep", {}) == ("all", str(project / "strobe.toml"))


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("strobe.toml", "kept = 3", "strobe.toml: 'kept' is not an option. Options: preset, trace"),
        (
            "strobe.toml",
            "keep = 'few'",
            "strobe.toml: keep: 'few' is not a number of iterations. Use a whole number",
        ),
        ("strobe.toml", "keep = 1.5", "strobe.toml: keep: '1.5' is not a number of iterations"),
        ("strobe.toml", "quiet = 2020-02-02", "strobe.toml: quiet: date is not a value of 'quiet'"),
        ("strobe.toml", "[keep]\nkeep = 3", "strobe.toml: keep: dict is not a value of 'keep'"),
        ("strobe.toml", "keep = ", "strobe.toml is not valid TOML: Invalid value"),
        ("pyproject.toml", "[tool]\nstrobe = 3", "pyproject.toml: tool.strobe is not a table"),
        (
            "pyproject.toml",
            '[tool.strobe]\ntrace = "+java"',
            "pyproject.toml: trace: 'java' is not an adapter.",
        ),
    ],
)
def test_a_wrong_file_is_one_sentence_with_file_and_key(
    name: str,
    content: str,
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / name).write_text(content)
    monkeypatch.chdir(tmp_path)
    for words in (["config"], ["run", "-c", "print(1)"]):
        assert main(words) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith(f"strobe: {tmp_path}/{sentence}")
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_config_prints_value_and_origin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("STROBE_TRACE", "-python")
    monkeypatch.setenv("STROBE_KEEPS", "3")
    monkeypatch.delenv("STROBE_KEEP", raising=False)
    (tmp_path / "strobe.toml").write_text("keep = 7")
    assert main(["config", "--json"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert list(found["options"]) == list(OPTIONS)
    assert found["options"]["keep"]["value"] == 7
    assert found["options"]["keep"]["origin"] == str(tmp_path / "strobe.toml")
    assert "python_calls" not in found["adapters"]
    assert "torch_ops" in found["adapters"]
    assert err == "strobe: STROBE_KEEPS in the environment is not an option of strobe\n"
    assert main(["config", "keep"]) == 0
    assert capsys.readouterr().out.split() == [
        "how",
        "much",
        "to",
        "record",
        "keep",
        "7",
        str(tmp_path / "strobe.toml"),
    ]


def test_python_says_the_same_by_the_same_names(monkeypatch: pytest.MonkeyPatch) -> None:
    said = given_in_python({"keep": 5, "trace": ["+mpi", "-python"], "include": [Path("/a"), "b"], "quiet": None})
    assert texts(said) == {"keep": "5", "trace": "+mpi,-python", "include": "/a:b"}
    with pytest.raises(TypeError, match=r"'keeps' is not an option\. Options: "):
        given_in_python({"keeps": 5})
    with pytest.raises(ValueError, match="keep: '-5' is not a number of iterations"):
        given_in_python({"keep": -5})
    with pytest.raises(ValueError, match="keep: list is not a value of 'keep'"):
        given_in_python({"keep": [5]})


def test_every_text_survives_the_way_into_the_program() -> None:
    options = texts(combined([]))
    options["output"] = "a\nfolder=/elsewhere\\n=x\\\\"
    session = Session.from_text(Session("/f", ("itt",), options, supervisor=7).to_text())
    assert (session.folder, session.adapters, session.options, session.supervisor) == ("/f", ("itt",), options, 7)


@pytest.mark.parametrize("option", OPTIONS.values(), ids=list(OPTIONS))
def test_rows_of_the_table_are_sound(option: Option) -> None:
    option.read(option.default_text)
    assert option.name == option.name.lower()
    assert "_" not in option.name
    assert option.help[0].isupper()
    assert option.help.endswith("."), "a sentence"


def test_moments_sizes_and_shares_are_read() -> None:
    read = {text: moment(text) for text in ("step:7", "sec:1.5", "250ms", "call:a.b.c", "call:f:3", "paused")}
    assert {text: (each.kind, each.number, each.name) for text, each in read.items()} == {
        "step:7": ("step", 7, ""),
        "sec:1.5": ("sec", 1_500_000_000, ""),
        "250ms": ("sec", 250_000_000, ""),
        "call:a.b.c": ("call", 1, "a.b.c"),
        "call:f:3": ("call", 3, "__main__.f"),
        "paused": ("paused", 0, ""),
    }
    assert [size(text) for text in ("2000000", "2048k", "2G", "1.5MiB")] == [2_000_000, 2 << 20, 2 << 30, 3 << 19]
    assert [share(text) for text in ("5%", "0.5%")] == [0.05, 0.005]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *(("start", text) for text in ("step:", "step:-1", "call:", "call:f:0", "later", "sec:x", "-5s")),
        *(("for", text) for text in ("5 hours", "nan", "-1", "0s")),
        *(("max-size", text) for text in ("2", "64K", "big", "-2G", "2X", "nan")),
        *(("max-overhead", text) for text in ("0", "-5%", "many", "nan", "0.05", "5%%")),
        *(("min-duration", text) for text in ("10", "-1us", "us")),
        ("counters", "cpu,gpu"),
        ("signal", "KILL"),
    ],
)
def test_what_is_no_value_is_refused_in_a_sentence(name: str, text: str) -> None:
    with pytest.raises(ValueError, match=f"'{text}'|'gpu'|'x'"):
        OPTIONS[name].read(text)


def test_a_window_that_ends_before_it_begins_is_refused() -> None:
    def window(start: str, stop: str) -> dict[str, str]:
        return texts(combined([given_in_python({"start": start, "stop": stop})]))

    for start, stop in (("step:10", "step:5"), ("step:5", "step:5"), ("sec:1", "500ms")):
        with pytest.raises(ValueError, match=f"--stop {stop} does not come after --start {start}"):
            window(start, stop)
    assert window("step:9", "sec:5")["stop"] == "sec:5"


def test_a_word_that_is_no_moment_is_told_what_there_is() -> None:
    with pytest.raises(ValueError, match=r"step:100, sec:30 .*call:module.function, or paused"):
        OPTIONS["start"].read("nonsense")


def test_a_filter_file_is_looked_for_where_its_name_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "SCOREP_REGION_NAMES_BEGIN\nEXCLUDE x\nSCOREP_REGION_NAMES_END\n"
    for folder in ("project/inner", "home"):
        (tmp_path / folder).mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for where, name in (("project", "f.filt"), ("home", "~/f.filt")):
        (tmp_path / where / "f.filt").write_text(text)
        (tmp_path / "project/strobe.toml").write_text(f'filter = "{name}"\n')
        setting = settle({}, {}, str(tmp_path / "project/inner"))["filter"]
        assert setting.text == str(tmp_path / where / "f.filt")
        assert anchored_options({"filter": name}, str(tmp_path / "project"))["filter"] == setting.text
