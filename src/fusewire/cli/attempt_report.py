"""`fusewire attempt report`: the diagnostic report, and the thoughts that it needs: options, a file, or questions."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from fusewire.breakers.attempt.report_text import yaml_text
from fusewire.cli.common import print_json, project_command, read_input
from fusewire.cli.streams import tell_text
from fusewire.util.errors import FusewireError
from fusewire.util.text import in_line

if TYPE_CHECKING:
    from fusewire.engine.breaker import Breaker


@click.command("report")
@click.argument("slice_id", metavar="SLICE")
@click.option("--test", help="Only this test; the fields below are about it.")
@click.option("--test-expectation", help="What the test expects: the behaviour, not the syntax.")
@click.option("--best-hypothesis", help="The best theory of the root cause.")
@click.option("--specific-question", help="The question whose answer would unblock the work.")
@click.option("--from", "source", metavar="FILE", help="The fields as YAML or JSON, or {test: fields} (- reads stdin).")
@project_command
def report_command(
    breaker: Breaker, slice_id: str, test: str | None, source: str | None, as_json: bool, **fields: str | None
) -> int:
    """The structured diagnostic report of each failing test: 8 fields, as YAML (or --json).

    Five are filled from what was recorded. The other three need a mind: give them as options or in a file; at a
    terminal they are asked for. What was given once is remembered. `not applicable` needs its reason.
    """
    from fusewire.breakers.attempt.report import fill_in, missing, reports, to_report
    from fusewire.breakers.attempt.tracker import Attempts

    attempts = Attempts(breaker)
    tests = to_report(attempts, slice_id, test)
    given: dict[str, dict[str, Any]] = _from_file(source, tests) if source else {}
    told = {name: value for name, value in fields.items() if value is not None}
    if told:
        if len(tests) > 1:
            raise click.UsageError(f"say which test they are about: --test ({', '.join(tests)})")
        given[tests[0]] = {**given.get(tests[0], {}), **told}
    if given:
        fill_in(attempts, slice_id, given)
    lacking = missing(attempts, slice_id, tests)
    if lacking and sys.stdin.isatty() and sys.stderr.isatty():
        for about, names in lacking.items():
            for name in names:
                fill_in(attempts, slice_id, {about: {name: _asked(about, name)}})
    made = reports(attempts, slice_id, tests)
    if as_json:
        print_json({"slice_id": slice_id, "reports": made})
    else:
        tell_text("---\n".join(yaml_text(one) for one in made), nl=False)
    return 0


def _from_file(source: str, tests: list[str]) -> dict[str, dict[str, Any]]:
    """The fields of one test, or {test: fields}."""
    import yaml

    from fusewire.breakers.attempt.report import MIND

    text = read_input(source, "the fields of the report")
    try:
        data = yaml.safe_load(text.decode("utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise FusewireError(f"{source} is neither YAML nor JSON: {' '.join(str(error).split())[:200]}") from error
    if not isinstance(data, dict) or not data:
        raise FusewireError(f"{source} must be a mapping of fields ({', '.join(MIND)}), or of tests to such mappings")
    if all(isinstance(value, dict) for value in data.values()):
        return {str(test): {str(key): value for key, value in fields.items()} for test, fields in data.items()}
    if len(tests) > 1:
        raise FusewireError(f"{source} has the fields of one test, but these fail: {', '.join(tests)}; say --test")
    return {tests[0]: {str(key): value for key, value in data.items()}}


def _asked(test: str, name: str) -> str:
    """What a person says at the terminal; asked again until it can be taken."""
    from fusewire.breakers.attempt.report import MIND, check_field

    def checked(text: str) -> str:
        try:
            return check_field(name, text)
        except FusewireError as error:
            raise click.UsageError(str(error)) from error

    answer: str = click.prompt(f"{in_line(test)}\n{MIND[name]}", err=True, prompt_suffix="\n> ", value_proc=checked)
    return answer
