"""MkDocs hooks of `make docs`: the repository's Markdown, which is written for a Git host, as a site.

README.md is the first page, docs/README.md the list of pages and the navigation. What a page links to outside docs/ is part of the
site, too: Markdown as a page, text as a page with one block, a directory as its README or a list, everything else as a copy.
"""

import os
import pathlib
import posixpath
import re
import subprocess

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

ROOT = pathlib.Path(__file__).resolve().parents[2]
LANGUAGES = {".c": "c", ".cc": "cpp", ".cmake": "cmake", ".diff": "diff", ".fbs": "text", ".h": "c", ".java": "java", ".json": "json",
             ".kt": "kotlin", ".md": "markdown", ".py": "python", ".service": "ini", ".sh": "bash", ".txt": "text", ".xml": "xml",
             ".yml": "yaml"}
FENCE = re.compile(r"^(\s*)(`{3,}|~{3,})")
LIST_ITEM = re.compile(r"^(\s*)((?:[-*+]|\d+[.)])\s+)")
LINK = re.compile(r"(\]\(\s*<?)([^)\s>]+)|(\b(?:src|href)=\")([^\"]+)")
REMOTE = re.compile(r"<(?:script|img|iframe)[^>]*\bsrc=\"?https?:|<link[^>]*\brel=\"?(?:stylesheet|preconnect)[^>]*\bhref=\"?https?:"
                    r"|@import[^;]*https?:")

paths = {}  # page of the site -> path in the repository


def tracked():
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    return [name for name in subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout.split("\0") if name]


def page_of(path):
    """Where the site has a file or directory of the repository, as a source of MkDocs."""
    if path == "README.md":
        return "index.md"
    if path in ("docs", "docs/README.md"):
        return "pages.md"
    if (ROOT / path).is_dir():
        readme = posixpath.join(path, "README.md")
        return page_of(readme) if (ROOT / readme).exists() else f"repository/{path}/index.md"
    if path.startswith("docs/"):
        return path[len("docs/"):]
    is_page = path.endswith(".md") or pathlib.Path(path).suffix not in LANGUAGES
    return f"repository/{path}" if is_page else f"repository/{path}.md"


def target_of(page, link):
    """(path in the repository, #anchor) of a link, or None if it leads out of it."""
    name, mark, anchor = link.partition("#")
    if not name or re.match(r"[a-z][a-z0-9+.-]*:|//", link):
        return None
    path = posixpath.normpath(posixpath.join(posixpath.dirname(paths[page]), name))
    if path.startswith("..") or not (ROOT / path).exists():
        raise PluginError(f"{paths[page]}: {link}: does not exist in the repository")
    return path, mark + anchor


def outside_code(line, change):
    """Applies a function to the parts of a line that are no code spans."""
    parts = re.split(r"((`+)(?!`).*?(?<!`)\2(?!`))", line)
    parts[::3] = map(change, parts[::3])
    del parts[2::3]
    return "".join(parts)


def targets(page, text):
    """What a page links to, as paths in the repository."""
    fenced, found = False, []

    def collect(part):
        found.extend(target_of(page, link[1] or link[3]) for link in LINK.findall(part))
        return part

    for line in text.splitlines():
        fenced ^= bool(FENCE.match(line))
        if not fenced:
            outside_code(line, collect)
    return [target[0] for target in found if target]


def rewrite(page, part):
    """Links of a line as links between pages of the site."""
    def change(link):
        before, name = (link[1], link[2]) if link[1] else (link[3], link[4])
        target = target_of(page, name)
        if not target:
            return link[0]
        to = posixpath.relpath(page_of(target[0]), posixpath.dirname(page) or ".")
        return before + (to if link[1] else re.sub(r"\.md$", ".html", to)) + target[1]
    return LINK.sub(change, part)


def indentation(line, columns):
    """Python-Markdown wants four columns a level of a list, where others take the column of the item's text. Updates the columns."""
    indent = len(line) - len(line.lstrip())
    while columns and indent < columns[-1]:
        columns.pop()
    level = len(columns)
    item = LIST_ITEM.match(line)
    if item:
        columns.append(len(item[0]))
    return " " * 4 * level


def for_python_markdown(page, text):
    """Links between pages of the site, lists by Python-Markdown's rules: indented by fours, after an empty line."""
    lines, columns, fence, before = [], [], None, ""
    for line in text.splitlines():
        start = FENCE.match(line)
        if fence:
            lines.append(fence[0] + (line[len(fence[1]):] if line.startswith(fence[1]) else line.lstrip()) if line.strip() else "")
            if start and line.strip() == start[2] and start[2].startswith(fence[2]):
                fence = None
            continue
        if not line.strip():
            lines.append("")
        elif columns and before.strip() and not start and not LIST_ITEM.match(line):
            lines.append(" " * 4 * len(columns) + outside_code(line.lstrip(), lambda part: rewrite(page, part)))
        else:
            inside = bool(columns)
            lead = indentation(line, columns)
            begins = LIST_ITEM.match(line) and not inside or line.startswith("|") and not before.startswith("|")
            if begins and before.strip() or inside and not columns and before.strip():
                lines.append("")
            lines.append(lead + outside_code(line.lstrip(), lambda part: rewrite(page, part)))
            if start:
                fence = lead, start[1], start[2]
        before = line
    return "\n".join(lines) + "\n"


def source_page(path):
    """A page that shows a file, or the files of a directory; search does not look into it."""
    head = f"---\nsearch:\n  exclude: true\n---\n# {path}\n\n"
    if (ROOT / path).is_dir():
        names = [name for name in tracked() if name.startswith(path + "/")]
        return head + "".join(f"- [{name}]({posixpath.relpath(name, path)})\n" for name in names), names
    text = (ROOT / path).read_text(encoding="utf-8")
    return head + f"````{LANGUAGES[pathlib.Path(path).suffix]}\n{text.rstrip()}\n````\n", []


def add(files, config, path):
    """Adds what a page links to; returns paths that this one links to in turn."""
    page = page_of(path)
    if files.get_file_from_path(page):
        return []
    if (ROOT / path / "README.md").exists():
        path = posixpath.join(path, "README.md")
    paths[page] = path
    if path.endswith(".md"):
        text = (ROOT / path).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=text))
        return targets(page, text)
    if page.endswith(".md"):
        if (ROOT / path).is_dir():
            paths[page] = posixpath.join(path, "README.md")  # links are relative to the directory
        text, names = source_page(path)
        files.append(File.generated(config, page, content=text))
        return names
    files.append(File.generated(config, page, abs_src_path=str(ROOT / path)))
    return []


def on_config(config):
    """The navigation: sections of docs/README.md, and what their first links on each line lead to."""
    paths.update({"index.md": "README.md", "pages.md": "docs/README.md"})
    navigation = [{"Overview": "index.md"}, {"All pages": "pages.md"}]
    section = navigation
    for line in (ROOT / "docs/README.md").read_text(encoding="utf-8").splitlines():
        heading = re.match(r"## (.+)", line)
        entry = re.match(r"(?:\||[-*])\s*\[([^\]]+)\]\(([^)#]+)\)", line)
        if heading:
            section = []
            navigation.append({heading[1]: section})
        elif entry:
            section.append({entry[1]: page_of(target_of("pages.md", entry[2])[0])})
    config.nav = navigation
    return config


def on_files(files, config):
    own = files.get_file_from_path("README.md")
    if own:
        files.remove(own)
    for file in files.documentation_pages():
        paths[file.src_uri] = posixpath.join("docs", file.src_uri)
    wanted = ["README.md", "docs/README.md"]
    for file in list(files.documentation_pages()):
        wanted += targets(file.src_uri, (ROOT / paths[file.src_uri]).read_text(encoding="utf-8"))
    while wanted:
        wanted += add(files, config, wanted.pop())
    return files


def on_page_markdown(markdown, page, **_):
    return for_python_markdown(page.file.src_uri, markdown)


def on_post_build(config):
    """Nothing of the site may come from elsewhere: it is read without a network."""
    for file in pathlib.Path(config.site_dir).rglob("*.html"):
        found = REMOTE.search(file.read_text(encoding="utf-8"))
        if found:
            raise PluginError(f"{os.path.relpath(file, config.site_dir)}: loads from elsewhere: {found[0]}")
