"""A hook of MkDocs: the README as the first page of the site, and files outside of docs/ that documents link to."""

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
AT_THE_ROOT = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"]
LINK = re.compile(r"(?<=\]\()([^)\s#:]+)")


def place(path: str) -> str:
    """Where a file of the repository lies in the sources of the site."""
    if path == "README.md":
        return "index.md"
    return path.removeprefix("docs/") if path.startswith("docs/") else f"repository/{path}"


def target(link: str, source: str) -> str:
    """The file of the repository to which a link of a document leads, empty if there is none."""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), link))
    return path if (ROOT / path).is_file() else ""


def on_config(config: MkDocsConfig) -> None:
    """Replace `folder/*` in the navigation by the documents of the folder."""

    def listed(entry: object) -> object:
        if isinstance(entry, dict):
            return {title: listed(below) for title, below in entry.items()}
        if isinstance(entry, list):
            return [each for one in entry for each in (documents(one) if str(one).endswith("*") else [listed(one)])]
        return entry

    def documents(pattern: str) -> list[str]:
        folder = Path(config.docs_dir)
        return sorted(path.relative_to(folder).as_posix() for path in folder.glob(f"{pattern}.md"))

    config.nav = listed(config.nav)


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Add the README, and every file outside of docs/ to which a document links, or one that was added so."""
    waiting = [*AT_THE_ROOT, *(f"docs/{file.src_uri}" for file in files.documentation_pages())]
    while waiting:
        source = waiting.pop()
        if not files.get_file_from_path(place(source)):
            files.append(File.generated(config, place(source), abs_src_path=str(ROOT / source)))
        if source.endswith(".md"):
            linked = {target(link, source) for link in LINK.findall((ROOT / source).read_text(encoding="utf-8"))}
            waiting += [path for path in linked if path and not files.get_file_from_path(place(path))]


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links to where the files lie in the site."""
    source = Path(str(page.file.abs_src_path)).relative_to(ROOT).as_posix()

    def moved(link: re.Match[str]) -> str:
        path = target(link[0], source)
        return posixpath.relpath(place(path), posixpath.dirname(page.file.src_uri)) if path else link[0]

    return LINK.sub(moved, markdown)
