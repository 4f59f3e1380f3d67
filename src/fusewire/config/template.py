"""Write the file that `fusewire config init` makes: every setting with its default, behind a `#`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from fusewire.config.notify_targets import target_settings
from fusewire.config.own_breakers import own_file
from fusewire.config.settings import TABLES, Setting, read_policy_file
from fusewire.util.durations import show_duration

#: Columns of a line, unless one word alone is longer.
_WIDTH = 120

_HEAD = """\
## Fusewire: {what}. Every setting stands here with its default, behind one #.
## Take the # away and change the value; whatever you leave as it is may go. Lines behind ## are words and examples.
## What is in force, and from which file: fusewire config show. A schema for editors: fusewire config schema
"""

#: Tables whose names are a person's own: (why, what stands in it).
_EXAMPLES = """
## A rule, or a pattern of rules, that is only logged, or off:
[rules]
##"tool.repetition" = "log"  # off, log or enforce

## How much may be spent, by a name of your own: docs/spend.md
##[budgets.NAME]
##per = ["project", "day"]  # task, session, branch, project or user; window, day, week or month
##usd = 20                  # or tokens, calls, starts: at least one of them
##warn = 0.8                # the share of it from which on agents are told

## What a model costs, in dollars per million tokens:
##[prices."my-model"]
##input = 3.0
##output = 15.0
"""


_PLAN = """
## Your subscription:
##[plan]
##name = "max-5x"
##window_tokens = 500000    # and week_tokens, if you know them
"""


def commented_file(what: str, *, is_persons: bool = False) -> str:
    """The text; `what` says whose settings they are. A plan is only in the person's own file."""
    parts = [_HEAD.format(what=what), *_lines({"profile": read_policy_file("tool").settings["profile"]})]
    for table in TABLES:
        settings = {key: one for key, one in read_policy_file(table).settings.items() if key != "profile"}
        parts += _table(table, settings) if settings else ()
    parts += ["", "## Where messages are sent; NAME is yours:"]
    parts += _lines(target_settings(), "##[notify.targets.NAME]", "##")
    parts += ["", "## A breaker of your own, the circuit own/NAME:"]
    parts += _lines(own_file().settings, "##[breakers.NAME]", "##")
    return "\n".join(parts) + "\n" + _EXAMPLES + _PLAN * is_persons


def _table(table: str, settings: Mapping[str, Setting]) -> Iterator[str]:
    """The settings of a table, and those of each table in it."""
    sections: dict[str, dict[str, Setting]] = {"": {}}
    for key, setting in settings.items():
        section, _, name = key.rpartition(".")
        sections.setdefault(section, {})[name] = setting
    for section, inner in sections.items():
        if inner:
            yield ""
            yield from _lines(inner, f"[{table}{'.' * bool(section)}{section}]")


def _lines(settings: Mapping[str, Setting], head: str = "", mark: str = "#") -> Iterator[str]:
    if head:
        yield head
    for name, setting in settings.items():
        line = f"{mark}{name} = {json.dumps(setting.default, ensure_ascii=False)}"  # it is TOML as well
        words = f"{setting.help} ({_allowed(setting)})"
        if len(f"{line}  # {words}") <= _WIDTH:
            yield f"{line}  # {words}"
        else:
            yield f"## {words}"
            yield line


def _allowed(setting: Setting) -> str:
    """The same as `Setting.allowed`, shorter where the value beside it shows the form."""
    lowest, highest = setting.bounds
    match setting.type:
        case "count" | "turns":
            return f"{lowest:g} to {highest:g}"
        case "size":
            return "1 or more"
        case "duration":
            return f"at least {show_duration(setting.least)}" if setting.least else "a duration"
        case "days" | "hours" | "seconds":
            return f"{setting.type}, {'0 or more' if setting.least == 0 else 'above 0'}"
        case "paths":
            return "paths or globs"
        case "path" | "texts":
            return "a path" if setting.type == "path" else "texts"
    return setting.allowed
