"""Writes the generated pages of docs/: every command and every setting. `make docs`; a test keeps them current."""

from __future__ import annotations

import inspect
import sys
import typing
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import click

import fusewire as fusewire_library
from fusewire.cli.app import COMMANDS, fusewire
from fusewire.config.notify_targets import target_settings
from fusewire.config.own_breakers import own_file
from fusewire.config.settings import TABLES, Setting, read_policy_file
from fusewire.core.events import Noun

DOCS = Path(__file__).parent

CLI_HEAD = """\
# Commands

Standard output is data, standard error is talk. `--json` on every command that prints; `--project DIR` names the
project, before or behind the command (`install` and `uninstall`: only before it, since behind them `--project` means
the project's settings; default: the git top level above the current folder, else the current folder; on
the way up, the first folder that has constraints).
`NO_COLOR` is honoured. Nothing ever prompts when there is no terminal.

What an agent wrote (names of programs, command lines, reasons, titles) is shown as text: control characters and marks
that turn text around are written as their numbers, such as `[U+001B]`, and a line end in it makes no line. `--json`,
`export`, and the output of a command that is passed on (`run`, `attempt run`, `wrap`) are as they are.

| exit | meaning |
|---|---|
| 0 | done, or allowed |
| 1 | an error: unknown id, bad input, broken store; one clear line on standard error |
| 2 | wrong usage |
| 3 | blocked: a circuit is open, or a person is needed |
| 4 | a loop ended at its own cap without finishing |
| 5 | blocked on a human: a question was asked, and only a person can answer it |
| 130 | interrupted |

A circuit's id is a constraint's bare id (`git-safety-force-push`) or `kind/name[/key]`: `loop/no_progress`,
`phase/GREEN`, `tool/tool_failure/Bash(pytest)`, `attempt/S-1/test_login`, `attempt/S-1`, `own/payments`. Those of
providers (`provider/anthropic`, see [limits.md](limits.md)) are the same in all projects of a person.
"""

SETTINGS_HEAD = """\
# Configuration

Later layers win: the defaults below < `$XDG_CONFIG_HOME/fusewire/config.toml` < the project's `fusewire.toml` (or
`[tool.fusewire]` in `pyproject.toml`) < `circuit_breaker:` in a constraint's front matter. Between the user's and the
project's file, `.claude/memory/circuit_breaker_config.json` is a layer for `[tool]`.

    fusewire config show                         # the layers, and what differs from the defaults
    fusewire config show tool.repetition         # a rule as messages name it, a circuit, a table, a setting
    fusewire config show loop --origin           # with the file of every value, and what it covers
    fusewire config init                         # a fusewire.toml with every setting, commented out (--user: your own)
    fusewire config schema > fusewire.schema.json

```toml
[constraint]
violation_threshold = 3

[tool.tool_failure]
threshold = 4
```

A key that nobody knows, or a value that cannot be used, leaves the layer below in force, and the rest of the file too.
Every command names it in one line, with the nearest name, until it is mended.

For completion and checks in an editor, save the schema beside `fusewire.toml` and begin that file with the line
`#:schema ./fusewire.schema.json` (Even Better TOML, taplo).
"""


def all_commands() -> Iterator[tuple[str, click.Command]]:
    """Every command, and those of a group behind it."""
    for name in COMMANDS:
        command = fusewire.get_command(click.Context(fusewire), name)
        assert command is not None
        yield name, command
        for inner, of_group in command.commands.items() if isinstance(command, click.Group) else ():
            yield f"{name} {inner}", of_group


def cli_page() -> str:
    parts = [CLI_HEAD]
    for name, command in all_commands():
        arguments = " ".join(
            (p.metavar or f"[{p.name}]".upper()) for p in command.params if isinstance(p, click.Argument)
        )
        help_text = "\n\n".join(_paragraph(part) for part in inspect.cleandoc(command.help or "").split("\n\n"))
        parts.append(f"\n## `fusewire {name}{' ' + arguments if arguments else ''}`\n\n{help_text}\n")
        options = [p for p in command.params if isinstance(p, click.Option)]
        if options:
            parts.append("\n| option | meaning |\n|---|---|\n")
        for option in options:
            names = ", ".join(option.opts) + "".join(f" / {other}" for other in option.secondary_opts)
            choices = "\\|".join(getattr(option.type, "choices", ()))
            value = "" if option.is_flag else f" {option.metavar or choices or option.type.name.upper()}"
            parts.append(f"| `{names}{value}` | {option.help} |\n")
    return "".join(parts)


def _paragraph(text: str) -> str:
    """A paragraph of a help text; one that click must not wrap is code."""
    return "```\n" + text.removeprefix("\b\n") + "\n```" if text.startswith("\b\n") else text


def settings_page() -> str:
    parts = [SETTINGS_HEAD]
    for kind in TABLES:
        policy = read_policy_file(kind)
        if not policy.settings:
            continue
        parts.append(f"\n## `[{kind}]`\n\n")
        parts += settings_table(policy.settings)
        for key, value in policy.locked.items():
            parts.append(f"- `{key}` is locked at {value}.\n")
    parts.append(
        "\n## `[breakers.NAME]`\n\n"
        "A breaker of your own, the circuit `own/NAME` (see [api-python.md](api-python.md)).\n\n"
    )
    parts += settings_table(own_file().settings)
    parts.append("\n## `[notify.targets.NAME]`\n\n")
    parts += settings_table(target_settings())
    return "".join(parts)


def settings_table(settings: Mapping[str, Setting]) -> Iterator[str]:
    if settings:
        yield "| setting | default | allowed | meaning |\n|---|---|---|---|\n"
    for setting in settings.values():
        default = str(setting.default).lower() if isinstance(setting.default, bool) else setting.default
        yield f"| `{setting.key}` | {default} | {setting.allowed} | {setting.help} |\n"


def public_api() -> str:
    """Every public name with its signature, its fields and its methods."""
    return "".join(f"{line}\n" for name in sorted(fusewire_library.__all__) for line in _describe(name))


def _describe(name: str) -> Iterator[str]:
    thing = getattr(fusewire_library, name)
    if not inspect.isclass(thing):
        yield f"{name}{_signature(thing)}"
        return
    if issubclass(thing, Exception):
        yield f"{name}({thing.__mro__[1].__name__})"
        return
    if typing.is_typeddict(thing):
        keys = ", ".join(f"{key}: {kind.__forward_arg__}" for key, kind in thing.__annotations__.items())
        yield f"{name}(TypedDict): {keys}"
        return
    yield f"{name}{_signature(thing)}"
    for member, value in sorted(vars(thing).items()):
        if member.startswith("_"):
            continue
        bound = isinstance(value, (classmethod, staticmethod))
        function = value.__func__ if bound else value.fget if isinstance(value, property) else value
        if not inspect.isfunction(function):
            continue
        if isinstance(value, property):
            yield f"  {name}.{member}: {function.__annotations__['return']}"
        elif "transaction" not in inspect.signature(function).parameters:  # for our own packages
            yield f"  {name}.{member}{_signature(function)}"


def _signature(thing: Callable[..., object]) -> str:
    signature = inspect.signature(thing)
    if inspect.isclass(thing) and issubclass(thing, Noun):
        signature = signature.replace(parameters=[_field(thing, name) for name in thing.fields])
    given = [each.replace(annotation=_unquoted(each.annotation)) for each in signature.parameters.values()]
    typed = signature.replace(parameters=given, return_annotation=_unquoted(signature.return_annotation))
    return str(typed).replace("<built-in function time>", "time.time")


def _field(noun: type[Noun], name: str) -> inspect.Parameter:
    default = getattr(noun, name, inspect.Parameter.empty)
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Parameter(name, kind, default=default, annotation=noun.__annotations__[name])


def _unquoted(annotation: object) -> object:
    return _Text(annotation) if isinstance(annotation, str) else annotation


class _Text(str):
    """An annotation as it is written in the source: shown without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


PAGES = {"cli.md": cli_page, "configuration.md": settings_page, "public-api.txt": public_api}


def main() -> None:
    for name, page in PAGES.items():
        (DOCS / name).write_text(page())
        sys.stdout.write(f"docs/{name}\n")


if __name__ == "__main__":
    main()
