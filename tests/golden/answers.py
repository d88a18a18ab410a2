"""Golden traces and their answers on disk: `traces/` and `answers/` stay as they are, `texts/` may be worded anew.

A file of answers is a text: a line `=== QUESTION` for each question, then the answer. Questions with equal answers
share it.
"""

from __future__ import annotations

import lzma
import tarfile
from pathlib import Path

from tests.golden.questions import Answer, ask_all

HERE = Path(__file__).parent
TRACES, ANSWERS, TEXTS = HERE / "traces", HERE / "answers", HERE / "texts"
_MARK = "=== "


def names() -> list[str]:
    """Return the names of all golden traces."""
    return sorted(path.name.removesuffix(".tar.xz") for path in TRACES.glob("*.tar.xz"))


def ask(name: str, folder: Path) -> dict[str, Answer]:
    """Unpack a golden trace into an empty folder and ask it everything."""
    with tarfile.open(TRACES / f"{name}.tar.xz") as packed:
        packed.extractall(folder, filter="data")
    scratch = folder / "scratch"
    scratch.mkdir()
    return dict(ask_all(folder / f"{name}.strobe", scratch))


def expected(name: str) -> dict[str, Answer]:
    """Return the answers that a golden trace gave when it was made, with the sentences as they were last reviewed."""
    frozen = _read(lzma.decompress((ANSWERS / f"{name}.txt.xz").read_bytes()).decode())
    sentences = _read((TEXTS / f"{name}.txt").read_text(encoding="utf-8"))
    return {question: Answer(text, sentences.get(question, "")) for question, text in frozen.items()}


def freeze(name: str, answers: dict[str, Answer]) -> None:
    """Write the answers of a new trace. Raises FileExistsError where it has some: they are not to change."""
    ANSWERS.mkdir(exist_ok=True)
    text = _written({question: answer.frozen for question, answer in answers.items()})
    with (ANSWERS / f"{name}.txt.xz").open("xb") as file:
        file.write(lzma.compress(text.encode(), preset=9))


def word(name: str, answers: dict[str, Answer]) -> None:
    """Write the sentences in the answers of a trace."""
    TEXTS.mkdir(exist_ok=True)
    text = _written({question: answer.sentences for question, answer in answers.items() if answer.sentences})
    (TEXTS / f"{name}.txt").write_text(text, encoding="utf-8")


def _written(texts: dict[str, str]) -> str:
    questions: dict[str, list[str]] = {}
    for question, text in texts.items():
        questions.setdefault(text, []).append(f"{_MARK}{question}\n")
    return "".join("".join(asked) + text for text, asked in questions.items())


def _read(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    asked: list[str] = []
    lines: list[str] = []
    for line in [*(f"{each}\n" for each in text.removesuffix("\n").split("\n")), _MARK]:
        if line.startswith(_MARK):
            if lines:
                found |= dict.fromkeys(asked, "".join(lines))
                asked, lines = [], []
            asked.append(line.removeprefix(_MARK).rstrip("\n"))
        else:
            lines.append(line)
    return found
