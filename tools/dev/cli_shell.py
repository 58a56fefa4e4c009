"""Completions of the programs for bash, zsh and fish, from their help texts as cli_page.py reads them.

A program is a name and its commands: name -> Help; a program without commands has one of the name "".
"""

import re

MADE = "# {what} for {program}. tools/dev/cli_page.py makes it from the help texts.\n"
KERNELS = "tarn inspect --cpu 2>/dev/null | sed -n 's/^kernels *//p'"


def kind_of(option, commands):
    """What completes the value of an option or a positional: flag, models, files, directories, kernels, none, or a list of words."""
    if option.names[0].startswith("-") and not option.value:
        return "flag"
    if "|" in option.value:
        return option.value.split("|")
    if "--isa" in option.names:
        return "kernels"
    if option.names == ["command"]:
        return commands
    if "model" in option.names or "--model" in option.names or option.value == "MODEL":
        return "models"
    return {"FILE": "files", "PATH": "files", "DIR": "directories"}.get(option.value, "none")


def options_of(help_text):
    """(options of all headings, word or None, positional or None): the word is one of a list, and what follows it is positional."""
    options, positionals = [], []
    for heading, entries in help_text.sections.items():
        if heading == "Positionals":
            positionals = entries
        elif heading != "Subcommands":
            options += entries
    word = positionals[0] if len(positionals) > 1 and "|" in positionals[0].value else None
    return options, word, positionals[-1] if positionals else None


def brief(text):
    """The first statement of a description."""
    return re.split(r"; | \(default: |: ", text)[0]


# ---- bash ----

BASH_VALUES = """\
  case $kind in
    words) mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current") ;;
    models) mapfile -t COMPREPLY < <(compgen -f -X '!*.tarn' -- "$current"; compgen -d -- "$current") ;;
    files) mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
    directories) mapfile -t COMPREPLY < <(compgen -d -- "$current") ;;
  esac
  [[ $kind == words ]] || compopt -o filenames 2>/dev/null
"""


def bash_kind(kind):
    if isinstance(kind, list):
        return f"kind=words words='{' '.join(kind)}'"
    return f'kind=words words=$({KERNELS})' if kind == "kernels" else f"kind={kind}"


def bash_command(name, help_text, commands, indent):
    options, word, positional = options_of(help_text)
    names = " ".join(name for option in options for name in option.names if name.startswith("--"))
    lines = [f"names='{names}'", "case $option in"]
    kinds = {}
    for option in options:
        kind = kind_of(option, commands)
        if kind != "flag":
            kinds.setdefault(bash_kind(kind), []).extend(option.names)
    lines += [f"  {' | '.join(found)}) {kind} ;;" for kind, found in kinds.items()]
    if word:
        lines.append(f"  {name}) {bash_kind(kind_of(word, commands))} value= ;;")
    rest = bash_kind(kind_of(positional, commands)) if positional else "kind=none"
    lines += [f"  *) {rest} value= ;;", "esac"]
    return "".join(f"{indent}{line}\n" for line in lines)


def bash(program, helps):
    commands = [name for name in helps if name]
    function = "_" + program.replace("-", "_")
    text = MADE.format(what="bash completion", program=program)
    text += f"""
{function}() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} option=${{COMP_WORDS[COMP_CWORD - 1]}} kind=none words= names= value=1
  # bash cuts --option=value into three words.
  if [[ $current == = ]]; then
    current=
  elif [[ $option == = ]]; then
    option=${{COMP_WORDS[COMP_CWORD - 2]}}
  fi
  COMPREPLY=()
"""
    if commands:
        text += f"""\
  if ((COMP_CWORD == 1)); then
    mapfile -t COMPREPLY < <(compgen -W '{' '.join(commands)} --help --version' -- "$current")
    return
  fi
  case ${{COMP_WORDS[1]}} in
"""
        for name in commands:
            text += f"    {name})\n" + bash_command(name, helps[name], commands, "      ") + "      ;;\n"
        text += "  esac\n"
    else:
        text += bash_command("", helps[""], commands, "  ")
    text += f"""\
  # What begins with a dash and is no value is an option.
  [[ -n $value || $current != -* ]] || kind=words words=$names
{BASH_VALUES}}}

complete -F {function} {program}
"""
    return text


# ---- zsh ----


def zsh_quote(text):
    return text.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]").replace(":", "\\:").replace("'", "'\\''")


def zsh_value(option, commands):
    kind = kind_of(option, commands)
    if kind == "flag":
        return ""
    action = {"models": '_files -g "*.tarn"', "files": "_files", "directories": "_files -/", "kernels": "_tarn_kernels",
              "none": " "}.get(kind) if isinstance(kind, str) else f"({' '.join(kind)})"
    return f":{zsh_quote((option.value or option.names[0]).split('|')[0] if isinstance(kind, str) else 'value')}:{action}"


def zsh_option(option, commands):
    value = zsh_value(option, commands)
    several = "repeatable" in option.text or "may be several" in option.text
    lead = "*" if several else f"({' '.join(option.names)})" if len(option.names) > 1 else ""
    names = [name + ("" if not value else "=" if name.startswith("--") else "+") for name in option.names]
    listed = "{" + ",".join(names) + "}" if len(names) > 1 else names[0]
    return f"'{lead}'{listed}'[{zsh_quote(brief(option.text))}]{value}'"


def zsh_command(help_text, commands):
    options, word, positional = options_of(help_text)
    specs = [zsh_option(option, commands) for option in options]
    if word:
        specs.append(f"'1{zsh_value(word, commands)}'")
    if positional:
        several = word or "several" in positional.text
        specs.append(f"'{'*' if several else '1'}{zsh_value(positional, commands)}'")
    return " \\\n        ".join(["_arguments -s -S", *specs])


def zsh(program, helps):
    commands = [name for name in helps if name]
    function = "_" + program
    text = f"#compdef {program}\n" + MADE.format(what="zsh completion", program=program)
    text += f"""
(( $+functions[_tarn_kernels] )) || _tarn_kernels() {{
  local -a kernels=(${{=$({KERNELS})}})
  compadd -a kernels
}}

{function}() {{
"""
    if not commands:
        return text + "  " + zsh_command(helps[""], commands) + f"\n}}\n\n{function} \"$@\"\n"
    text += """\
  local curcontext=$curcontext state line
  typeset -A opt_args
  _arguments -C '--help[Show the help]' '--version[Show the version]' '1:command:->command' '*::argument:->arguments'
  case $state in
    command)
      local -a commands=(
"""
    text += "".join(f"        '{name}:{zsh_quote(brief(helps[name].purpose))}'\n" for name in commands)
    text += """\
      )
      _describe command commands
      ;;
    arguments)
      case $words[1] in
"""
    for name in commands:
        text += f"      {name})\n        " + zsh_command(helps[name], commands) + "\n        ;;\n"
    return text + f"      esac\n      ;;\n  esac\n}}\n\n{function} \"$@\"\n"


# ---- fish ----


def fish_quote(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def fish_value(kind):
    if isinstance(kind, list):
        return f" -x -a {fish_quote(' '.join(kind))}"
    kernels = fish_quote("(" + KERNELS + " | string split ' ')")
    return {"flag": "", "files": " -r -F", "directories": " -x -a '(__fish_complete_directories)'", "kernels": f" -x -a {kernels}",
            "models": " -r -k -a '(__fish_complete_suffix .tarn)'", "none": " -x"}[kind]


def fish(program, helps):
    commands = [name for name in helps if name]
    lines = [MADE.format(what="fish completion", program=program), f"complete -c {program} -f"]
    for name in commands:
        lines.append(f"complete -c {program} -n __fish_use_subcommand -a {name} -d {fish_quote(brief(helps[name].purpose))}")
    if commands:
        lines.append(f"complete -c {program} -n __fish_use_subcommand -l version -d 'Show the version'")
        lines.append(f"complete -c {program} -n __fish_use_subcommand -l help -d 'Show the help'")
    for name, help_text in helps.items():
        when = f" -n '__fish_seen_subcommand_from {name}'" if name else ""
        options, word, positional = options_of(help_text)
        for option in options:
            names = "".join(f" -l {one[2:]}" if one.startswith("--") else f" -s {one[1:]}" for one in option.names)
            lines.append(f"complete -c {program}{when}{names}{fish_value(kind_of(option, commands))} -d {fish_quote(brief(option.text))}")
        if word:
            words = " ".join(kind_of(word, commands))
            given = f"__fish_seen_subcommand_from {name}; and %s__fish_seen_subcommand_from {words}"
            lines.append(f"complete -c {program} -n {fish_quote(given % 'not ')} -a {fish_quote(words)}")
            when = f" -n {fish_quote(given % '')}"
        if positional:
            kind = kind_of(positional, commands)
            value = {"models": " -k -a '(__fish_complete_suffix .tarn)'", "files": " -F"}.get(kind) if isinstance(kind, str) else \
                f" -a {fish_quote(' '.join(kind))}"
            lines.append(f"complete -c {program}{when}{value}")
    return "\n".join(lines) + "\n"
