"""Manual pages of the programs, from their help texts as cli_page.py reads them, and from the tables of docs/cli.md."""

import re
import sys
import textwrap

DATE = "2026-11-23"  # of the pages; a release sets it
TABLES = {"EXIT STATUS": "### Exit status", "ENVIRONMENT": "### Environment"}
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


WIDTH = 78


def roff(text):
    """Plain text as roff: what it would take for its own, and dashes that are those of options."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "").replace("^", "\\(ha").replace("~", "\\(ti")
    return "\\&" + text if text.startswith(".") else text


def prose(text):
    """Lines of a paragraph. One that begins with a dot would be a request."""
    return [("\\&" if line.startswith(".") else "") + line
            for line in textwrap.wrap(roff(text), WIDTH, break_long_words=False, break_on_hyphens=False)]


def plain(markdown):
    return LINK.sub(r"\1", markdown).replace("`", "").replace("\\|", "|").replace("\\*", "*")


def table_rows(page, heading):
    """The rows of the first table below a heading of docs/cli.md, without its head."""
    lines = page.split(heading + "\n", 1)[1].splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("|"))
    end = next((i for i in range(first, len(lines)) if not lines[i].startswith("|")), len(lines))
    behind = next((line for line in lines[end:] if line), "")
    if behind.startswith("|"):
        sys.exit(f"cli_man: {heading}: an empty line cuts the table before {behind!r}")
    return [[plain(cell.strip()) for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[first + 2:end]]


def option_lines(option):
    names = ", ".join(f"\\fB{roff(name)}\\fR" if name.startswith("-") else f"\\fI{roff(name)}\\fR" for name in option.names)
    value = f" \\fI{roff(option.value)}\\fR" if option.value and option.names[0].startswith("-") else ""
    notes = ", ".join(filter(None, ["required" if option.required else "", option.note]))
    return [".TP", names + value, *prose(option.text + (f" ({notes})" if notes else ""))]


def footer_lines(footer):
    """(sentences, examples)"""
    first = next((i for i, line in enumerate(footer) if line.startswith("Examples")), len(footer))
    return " ".join(footer[:first]), [line for line in footer[first:] if line]


def sections(help_text):
    lines = []
    for heading, options in help_text.sections.items():
        if heading == "Subcommands":
            continue
        title = {"Positionals": "ARGUMENTS", "Options": "OPTIONS"}.get(heading)
        lines.append(f".SH {title}" if title else f".SS \"{roff(heading)}\"")
        for option in options:
            lines += option_lines(option)
    return lines


def page(name, title, usage, purpose, help_text, version, tables, commands, others):
    """`commands`: name -> purpose, of the page of a program that has some; `others`: the pages it names."""
    sentences, examples = footer_lines(help_text.footer)
    if sentences.startswith("Exit status"):  # a table says it
        sentences = ""
    synopsis = name if title == "TARN-CONVERT" else name.replace("tarn-", "tarn ")
    lines = [".\\\" tools/dev/cli_page.py makes it from the help texts.", f'.TH "{title}" 1 "{DATE}" "tarn {version}" "tarn manual"',
             ".SH NAME", *prose(f"{name} @ {purpose}"), ".SH SYNOPSIS",
             f"\\fB{roff(synopsis)}\\fR {roff(usage)}"]
    lines[3] = lines[3].replace("@", "\\-", 1)
    if sentences:
        lines += [".SH DESCRIPTION", *prose(sentences)]
    if commands:
        lines.append(".SH COMMANDS")
        for command, text in commands.items():
            lines += [".TP", f"\\fB{roff(command)}\\fR", *prose(text)]
    lines += sections(help_text)
    if examples:
        lines += [".SH EXAMPLES", *prose(examples[0].removeprefix("Examples").strip(" :")), ".EX",
                  *(roff(line.removeprefix("  ")) for line in examples[1:]), ".EE"]
    for heading, rows in tables.items():
        lines.append(f".SH \"{heading}\"")
        for row in rows:
            lines += [".TP", f"\\fB{roff(row[0])}\\fR", *prose(row[-1])]
    lines += [".SH \"SEE ALSO\"", ",\n".join(f".BR {roff(other)} (1)" for other in others).replace(",\n.BR", " ,\n.BR")]
    return "\n".join(lines) + "\n"


def pages(program, summary, helps, version, cli_page):
    """File name -> text: a page for the program, and one for each command."""
    tables = {heading: [row for row in table_rows(cli_page, below) if heading != "ENVIRONMENT" or row[1] == program]
              for heading, below in TABLES.items()}
    names = [name for name in helps if name]
    all_pages = ["tarn", *(f"tarn-{name}" for name in names), "tarn-convert"] if names else ["tarn"]
    commands = {name: helps[name].purpose for name in names}
    usage = summary.usage.removeprefix(program).strip()
    tables = {heading: rows for heading, rows in tables.items() if rows}
    found = {f"{program}.1": page(program, program.upper(), usage, summary.purpose.rstrip("."), summary, version, tables, commands,
                                  [other for other in all_pages if other != program])}
    for name in names:
        usage = helps[name].usage.removeprefix(f"{program} {name}").strip()
        found[f"{program}-{name}.1"] = page(f"{program}-{name}", f"{program}-{name}".upper(), usage, helps[name].purpose.rstrip("."),
                                            helps[name], version, {}, {}, ["tarn"])
    return found
