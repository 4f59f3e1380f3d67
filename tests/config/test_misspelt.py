"""A misspelt key or value is one short line with the nearest name, in every table; what stands beside it holds."""

from __future__ import annotations

import pytest

from tests.helpers.project import Project

#: Characters of a warning that a person reads at every command; a path in front of it comes on top.
LONGEST = 250

#: (content of fusewire.toml, what its one warning must say)
MISSPELT = {
    "a setting": ("[loop]\nno_progres = 4\n", "(did you mean no_progress?)"),
    "a setting of a breaker": ("[tool.tool_failure]\ntreshold = 4\n", "(did you mean tool_failure.threshold?)"),
    "a breaker, with all that is in it": (
        "[tool.tool_failur]\nthreshold = 4\nenabled = false\nwindow_turns = 9\n",
        "[tool] tool_failur = ",
    ),
    "a setting in capitals": ("[loop]\nNO_PROGRESS = 4\n", "(did you mean no_progress?)"),
    "a table": ("[lop]\nno_progress = 4\n", "[lop] = '...' is refused: no such table (did you mean loop?)"),
    "a breaker without its table": ("[tool_failure]\nthreshold = 4\n", "(did you mean tool.tool_failure?)"),
    "a setting without its table": ("max_calls_per_hour = 4\n", "(did you mean loop.max_calls_per_hour?)"),
    "the profile": ('profil = "attended"\n', "(did you mean profile?)"),
    "a value of the profile": ('profile = "unatended"\n', "(did you mean unattended?)"),
    "a mode of the sandbox": ('sandbox = "requier"\n', "(did you mean require?)"),
    "a setting of the sandbox": ('[sandbox]\noutsid = ["make"]\n', "(did you mean outside?)"),
    "a rule": ('[rules]\n"tool.repetitoin" = "log"\n', "(did you mean tool.repetition?)"),
    "a mode of a rule": ('[rules]\n"tool.repetition" = "logg"\n', "(did you mean log?)"),
    "a price": ('[prices."my-model"]\ninput = 1\noutput = 2\ncache_reed = 1\n', "(did you mean cache_read?)"),
    "a price of long prompts": (
        '[prices."my-model"]\ninput = 1\noutput = 2\nabove_input_tokens = 5\nlong = { inptu = 3 }\n',
        "(did you mean input?)",
    ),
    "a setting of notify": ('[notify]\ndedupe = "1m"\n', "(did you mean dedup?)"),
    "the targets": ('[notify.target.me]\nurl = "desktop:"\n', "(did you mean targets?)"),
    "a setting of a target": ('[notify.targets.me]\nurl = "desktop:"\nseverty = "trip"\n', "(did you mean severity?)"),
    "a severity": ('[notify.targets.me]\nurl = "desktop:"\nseverity = "alrt"\n', "(did you mean alert?)"),
    "a setting of one's own breaker": ("[breakers.pay]\nfailure = 2\n", "(did you mean failures?)"),
    "a setting of the guard": ('[guard]\nalso_document = ["x"]\n', "(did you mean also_documents?)"),
    "nothing that anybody could mean": ("[tool]\nxyzzy = 1\n", "no such setting; allowed: what `fusewire config show`"),
}


@pytest.mark.parametrize(("content", "says"), MISSPELT.values(), ids=MISSPELT)
def test_one_line_names_what_was_meant_and_the_rest_of_the_file_holds(
    project: Project, content: str, says: str
) -> None:
    (project.root / "fusewire.toml").write_text(f"{content}\n[phase.GREEN]\nno_progress_threshold = 4\n")
    result = project.run("config", "phase/GREEN")
    (warning,) = result.stderr.splitlines()
    assert says in warning
    assert len(warning) <= LONGEST
    assert "GREEN.no_progress_threshold  4  fusewire.toml" in result.stdout
    doctor = project.run("doctor")
    assert (doctor.stdout.count(says), doctor.stderr) == (1, "")


#: (a line of front matter, what its one warning must say)
MISSPELT_KEYS = {
    "circuit_braker: {violation_threshold: 3}": "(did you mean circuit_breaker?)",
    "severty: HIGH": "(did you mean severity?)",
    "violation_threshold: 3": "(did you mean circuit_breaker: violation_threshold?)",
    "mach: {command: git push}": "(did you mean match?)",
    "matches: [{command: git push}]": "(did you mean match?)",
    "mode: blok": "(did you mean block?)",
    "circuit_breaker: {violation_treshold: 3}": "(did you mean violation_threshold?)",
}


@pytest.mark.parametrize(("line", "says"), MISSPELT_KEYS.items())
def test_a_misspelt_key_of_front_matter_is_named(project: Project, line: str, says: str) -> None:
    """A rule whose `match` is misspelt forbids nothing, which nobody would notice."""
    project.constraint("rule", f"{line}\n")
    (warning,) = project.run("status").stderr.splitlines()
    assert says in warning
    assert "docs/constraints/rule.md" in warning


def test_front_matter_may_have_keys_that_are_not_ours(project: Project) -> None:
    """Other tools keep theirs there; near in letters is not enough where the value is another one."""
    project.constraint(
        "rule", "title: x\nname: y\nmodel: opus\npath: a/b\nbatch: 3\npatch: [1]\nstate: draft\ntags: [a]\n"
    )
    assert project.run("status").stderr == ""


def test_a_table_that_nobody_knows_is_named_without_what_is_in_it(project: Project) -> None:
    """It may be one of notify's, whose URLs are secrets."""
    for table in ("notfy.targets.me", "tool.notify.targets.me"):
        (project.root / "fusewire.toml").write_text(f'[{table}]\nurl = "ntfy://S3CRET"\n')
        (warning,) = project.run("status").stderr.splitlines()
        assert "S3CRET" not in warning


def test_many_of_them_do_not_bury_what_a_command_says(project: Project) -> None:
    """Ten are named by every command, all of them by the doctor."""
    (project.root / "fusewire.toml").write_text("[loop]\n" + "".join(f"no_progress_{n} = 1\n" for n in range(50)))
    lines = project.run("status").stderr.splitlines()
    assert (len(lines), lines[-1]) == (11, "Warning: and 40 more settings that cannot be used: fusewire doctor")
    assert project.run("doctor").stdout.count("no such setting") == 50


def test_a_misspelt_constraint_in_the_rules_is_named_and_one_of_elsewhere_is_not(project: Project) -> None:
    """A pack that is not switched on, and a constraint of another project in a person's own file, are no mistakes."""
    project.constraint("git-safety")
    rules = '[rules]\n"constraint:git-safty" = "off"\n"constraint:cloud-delete" = "off"\n"constraint:git-*" = "log"\n'
    (project.root / "fusewire.toml").write_text(rules)
    (warning,) = project.run("status").stderr.splitlines()
    assert "(did you mean constraint:git-safety?)" in warning
