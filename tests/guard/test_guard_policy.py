"""What is protected: the lists, their layers, globs, roots, links, and what a wrong value does."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from fusewire.guard.baseline import unpack
from fusewire.guard.calls import folder_of
from fusewire.guard.check import check_command
from fusewire.guard.policy import protected_of
from fusewire.guard.tools import check_tool
from tests.helpers.project import Project

DEFAULTS = ("IMPLEMENTATION_PLAN.md", "AGENTS.md", "CLAUDE.md", "specs/a.md", "memory/a.md")
CONFIGURATION = (".ralph/a", ".ralphrc", ".claude/a")
OWN = (
    ".fusewire/a",
    "fusewire.toml",
    "docs/constraints/a.md",
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".codex/hooks.json",
    ".codex/config.toml",
    ".gemini/settings.json",
    ".github/hooks/a",
    "~/.claude/settings.json",
    "~/.claude/settings.local.json",
    "~/.codex/hooks.json",
    "~/.gemini/settings.json",
    "~/.config/fusewire/config.toml",
)


def guard(project: Project, text: str) -> None:
    """The project's [guard] table."""
    (project.root / "fusewire.toml").write_text(f"[guard]\n{text}\n")


def user_config() -> Path:
    path = Path(os.environ["XDG_CONFIG_HOME"]) / "fusewire" / "config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def blocked(project: Project, command: str, cwd: str = "") -> bool:
    root = str(project.root)
    verdict = check_command(command, cwd=os.path.join(root, cwd), root=root, protected=protected_of(root))
    return not verdict.allowed


def refused(project: Project, path: str, tool: str = "Edit", change: str = "update") -> bool:
    root = str(project.root)
    verdict = check_tool(tool, (os.path.expanduser(path),), root=root, protected=protected_of(root), change=change)
    return not verdict.allowed


def kind(project: Project, path: str) -> str:
    """free, document or configuration: by a shell that writes, and by a tool that updates."""
    by_shell, by_tool = blocked(project, f"echo x > {path}"), refused(project, path)
    assert by_shell or not by_tool, path
    return "configuration" if by_tool else "document" if by_shell else "free"


def make(project: Project, *names: str) -> None:
    for name in names:
        path = project.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{name}\n")


def warnings_of(project: Project) -> list[str]:
    """What `fusewire status` says on standard error."""
    result = project.run("status")
    assert result.returncode == 0
    assert "Traceback" not in result.stderr
    return result.stderr.splitlines()


# -- defaults -----------------------------------------------------------------------------------------------


def test_the_defaults_are_two_lists_and_our_own_files(project: Project) -> None:
    """Whether the files are there or not."""
    for exists in (False, True):
        if exists:
            make(project, *DEFAULTS, *CONFIGURATION)
        assert {name: kind(project, name) for name in DEFAULTS} == dict.fromkeys(DEFAULTS, "document")
        for names in (CONFIGURATION, OWN):
            assert {name: kind(project, name) for name in names} == dict.fromkeys(names, "configuration")


@pytest.mark.parametrize(
    "name",
    [
        "src/specs/a.md",
        "packages/x/AGENTS.md",
        "packages/x/.claude/a",
        "docs/memory/a.md",
        "specs.md",
        "specs2/a.md",
        "AGENTS.md.bak",
        "xAGENTS.md",
        ".ralphrc.old",
        ".ralph2/a",
        ".claude.json",
        "docs/constraints.md",
        "docs/a.md",
        "README.md",
        "~/AGENTS.md",
        "~/specs/a.md",
        "/tmp/AGENTS.md",
    ],
)
def test_names_are_anchored_at_the_root_of_the_project(project: Project, name: str) -> None:
    """The same names deeper down, longer names, and other folders are free."""
    assert kind(project, name) == "free"


def test_the_installed_package_is_protected_except_where_it_is_developed(project: Project) -> None:
    """An agent must not edit the guard that judges it; whoever works on Fusewire itself may."""
    package = Path(protected_of.__code__.co_filename).parents[1]
    assert kind(project, str(package / "gate.py")) == "configuration"
    assert kind(Project(package.parents[1]), str(package / "gate.py")) == "free"


# -- the lists and their layers -----------------------------------------------------------------------------


def test_documents_and_configuration_replace_the_defaults(project: Project) -> None:
    """What is not named any more is free; the other list stays; our own files stay whatever is written."""
    guard(project, 'documents = ["plan.txt"]')
    assert kind(project, "plan.txt") == "document"
    assert kind(project, "AGENTS.md") == "free"
    assert kind(project, ".ralphrc") == "configuration"
    guard(project, 'configuration = ["deploy/"]\ndocuments = []')
    assert kind(project, "deploy/x/y") == "configuration"
    assert kind(project, ".ralphrc") == "free"
    assert kind(project, ".claude/commands/x.md") == "free"
    for name in OWN:
        assert kind(project, name) == "configuration", name


def test_the_also_lists_add_to_them(project: Project) -> None:
    """Beside the defaults, and beside lists that replace them."""
    guard(project, 'also_documents = ["TODO.md"]\nalso_configuration = ["deploy/"]')
    assert [kind(project, name) for name in ("TODO.md", "AGENTS.md", "deploy/x", ".ralphrc")] == [
        "document",
        "document",
        "configuration",
        "configuration",
    ]
    guard(project, 'documents = ["a.md"]\nalso_documents = ["b.md"]')
    assert [kind(project, name) for name in ("a.md", "b.md", "AGENTS.md")] == ["document", "document", "free"]


def test_what_is_in_both_lists_is_configuration(project: Project) -> None:
    """The stricter one counts."""
    guard(project, 'also_configuration = ["AGENTS.md", "specs/locked/"]')
    assert kind(project, "AGENTS.md") == "configuration"
    assert kind(project, "specs/locked/x.md") == "configuration"
    assert kind(project, "specs/a.md") == "document"


def test_the_projects_file_covers_the_users_key_by_key(project: Project) -> None:
    """A key that only the user has stays in force; one that both have is the project's."""
    user_config().write_text('[guard]\nalso_documents = ["user.md"]\nalso_configuration = ["user/"]\n')
    assert [kind(project, name) for name in ("user.md", "user/x", "project.md")] == [
        "document",
        "configuration",
        "free",
    ]
    guard(project, 'also_documents = ["project.md"]')
    assert [kind(project, name) for name in ("user.md", "user/x", "project.md")] == [
        "free",
        "configuration",
        "document",
    ]


def test_pyproject_serves_where_there_is_no_fusewire_toml(project: Project) -> None:
    """`[tool.fusewire.guard]`."""
    (project.root / "pyproject.toml").write_text('[tool.fusewire.guard]\nalso_documents = ["x.md"]\n')
    assert kind(project, "x.md") == "document"


def test_a_changed_list_is_in_force_at_once(project: Project) -> None:
    """For the program and for the hook, which keeps compiled rules."""
    call = project.bash("rm x.md")
    assert project.hook(call).returncode == 0
    guard(project, 'also_documents = ["x.md"]')
    make(project, "x.md")
    assert project.hook(call).returncode == 2
    assert project.run("guard", "check", "--command", "rm x.md").returncode == 3
    guard(project, "also_documents = []")
    assert project.hook(call).returncode == 0
    assert project.run("guard", "check", "--command", "rm x.md").returncode == 0


# -- globs --------------------------------------------------------------------------------------------------

GLOBS = [
    ("**/AGENTS.md", ("AGENTS.md", "a/AGENTS.md", "a/b/c/AGENTS.md"), ("a/AGENTS.md2", "a/xAGENTS.md")),
    ("docs/adr/*.md", ("docs/adr/1.md",), ("docs/adr/1.txt", "docs/adr/deep/1.md", "src/docs/adr/1.md", "docs/1.md")),
    ("docs/adr/**/*.md", ("docs/adr/1.md", "docs/adr/a/b/1.md"), ("docs/adr/1.txt", "docs/1.md")),
    ("*.lock", ("yarn.lock", ".lock"), ("a/yarn.lock", "yarn.lock2", "lock")),
    ("**/*.lock", ("yarn.lock", "a/b/yarn.lock"), ("yarn.lock2",)),
    ("packages/*/AGENTS.md", ("packages/a/AGENTS.md",), ("packages/AGENTS.md", "packages/a/b/AGENTS.md")),
    ("**/specs/", ("specs/x", "a/specs/x", "a/b/specs/c/x"), ("a/specs2/x", "specs2/x")),
    ("config?.toml", ("config1.toml",), ("config.toml", "config12.toml")),
    ("[ab].txt", ("a.txt", "b.txt"), ("c.txt", "ab.txt")),
    ("deploy", ("deploy/x", "deploy/a/b"), ("deploy2", "a/deploy")),
    ("deploy/", ("deploy/x", "deploy/a/b"), ("deploy2/x", "a/deploy/x")),
    ("./deploy/x", ("deploy/x",), ("deploy/y",)),
    ("a b.md", (), ("a",)),
]


@pytest.mark.parametrize(("pattern", "fits", "misses"), GLOBS, ids=[one[0] for one in GLOBS])
def test_globs_mean_what_they_say(
    project: Project, pattern: str, fits: tuple[str, ...], misses: tuple[str, ...]
) -> None:
    """`*` stays within a folder, `**` crosses, a folder protects all that is in it; for files that are there or not."""
    guard(project, f'documents = []\nconfiguration = []\nalso_configuration = ["{pattern}"]')
    for exists in (False, True):
        if exists:
            make(project, *fits, *misses)
        assert {name: kind(project, name) for name in fits} == dict.fromkeys(fits, "configuration")
        assert {name: kind(project, name) for name in misses} == dict.fromkeys(misses, "free")


def test_what_a_glob_protects_is_found_below_a_folder_that_is_removed(project: Project) -> None:
    """`rm -rf packages`, `git clean`, `find -delete`, `mv` of a folder above."""
    guard(project, 'also_documents = ["**/AGENTS.md", "docs/adr/*.md"]')
    make(project, "packages/x/AGENTS.md", "packages/y/b.md", "docs/adr/1.md", "docs/free.md")
    for command in ("rm -rf packages", "rm -rf packages/x", "mv packages old", "find packages -type f -delete"):
        assert blocked(project, command), command
    for command in ("rm -rf docs", "rm -rf docs/adr", "rm docs/adr/*", "git clean -fd", "git clean -fd docs"):
        assert blocked(project, command), command
    for command in ("rm -rf packages/y", "rm docs/free.md", "rm docs/*.md", "git clean -fd packages/y"):
        assert not blocked(project, command), command


# -- roots --------------------------------------------------------------------------------------------------


def test_each_root_has_such_files_of_its_own(project: Project) -> None:
    """Documents, configuration and our own; other folders are free; without "." the project's own folder is no root."""
    guard(project, 'roots = [".", "services/billing", "apps/web/"]')
    for base in ("", "services/billing/", "apps/web/"):
        assert kind(project, f"{base}AGENTS.md") == "document"
        assert kind(project, f"{base}specs/a.md") == "document"
        assert kind(project, f"{base}.ralphrc") == "configuration"
    assert kind(project, "services/AGENTS.md") == "free"
    assert kind(project, "services/billing/src/specs/a.md") == "free"
    guard(project, 'roots = ["services/billing"]')
    assert kind(project, "services/billing/AGENTS.md") == "document"
    assert kind(project, "AGENTS.md") == "free"


def test_our_own_files_stay_protected_whatever_the_roots_are(project: Project) -> None:
    """Roots say where a project has its plans; Fusewire's state and the hooks are always the project's own."""
    guard(project, 'roots = ["services/billing"]')
    for name in (".fusewire/x", "fusewire.toml", "docs/constraints/a.md", ".claude/settings.json"):
        assert kind(project, name) == "configuration", name


# -- outside the project ------------------------------------------------------------------------------------


def test_places_outside_are_named_by_absolute_paths_and_by_tildes(project: Project, tmp_path: Path) -> None:
    """Files, folders and globs; by the shell and by tools; relative ways out lead there as well."""
    outside = tmp_path / "outside"
    outside.mkdir()
    guard(project, f'also_configuration = ["{outside}/", "~/.ssh/", "~/*.secret", "/etc/hosts"]')
    home = os.environ["HOME"]
    for path in (f"{outside}/x", "~/.ssh/config", f"{home}/.ssh/id", "~/my.secret", "/etc/hosts", "../outside/x"):
        assert kind(project, path) == "configuration", path
    for path in (f"{outside}2/x", "~/.sshx", "~/a/my.secret", "/etc/hostname"):
        assert kind(project, path) == "free", path
    make(project, "x")
    (Path(home) / ".ssh").mkdir()
    (Path(home) / ".ssh/id").write_text("key")
    assert blocked(project, "rm -rf ~")
    assert blocked(project, 'rm -rf "$HOME/.ssh"')
    assert blocked(project, "rm -rf ~/.s*")


def test_roots_do_not_multiply_places_outside(project: Project) -> None:
    """An absolute pattern is the same place for every root."""
    guard(project, 'roots = [".", "a"]\nalso_documents = ["/srv/plan.md"]')
    assert kind(project, "/srv/plan.md") == "document"
    assert kind(project, "a/srv/plan.md") == "free"


# -- links --------------------------------------------------------------------------------------------------


def test_a_protected_path_that_is_a_link_is_protected_at_both_ends(project: Project) -> None:
    """Writing through it, at its target, deleting either: all refused."""
    make(project, "shared/rules.md", "README.md")
    (project.root / "AGENTS.md").symlink_to("shared/rules.md")
    for command in (
        "echo x > AGENTS.md",
        "echo x > shared/rules.md",
        "rm AGENTS.md",
        "rm shared/rules.md",
        "rm -rf shared",
        "ln -sf README.md AGENTS.md",
        "cp README.md shared/rules.md",
        "mv shared old",
    ):
        assert blocked(project, command), command
    assert not blocked(project, "cat AGENTS.md shared/rules.md")
    assert not blocked(project, "echo x > shared/other.md")
    assert not refused(project, "shared/rules.md")
    assert refused(project, "shared/rules.md", change="delete")


def test_a_protected_folder_that_is_a_link_protects_where_it_leads(project: Project, tmp_path: Path) -> None:
    """Inside the project and outside of it."""
    make(project, "docs/specs/a.md")
    (project.root / "specs").symlink_to("docs/specs")
    outside = tmp_path / "notes"
    outside.mkdir()
    (outside / "a.md").write_text("x")
    (project.root / "memory").symlink_to(outside)
    for path in ("specs/a.md", "docs/specs/a.md", "memory/a.md", f"{outside}/a.md", "../notes/a.md"):
        assert kind(project, path) == "document", path
    for command in ("rm specs", "rm -rf docs", f"rm -rf {outside}", "rm -r memory/"):
        assert blocked(project, command), command


def test_a_link_to_something_protected_is_no_way_round(project: Project) -> None:
    """Links to a file, to a folder, to the project; made before or by the line itself."""
    make(project, "AGENTS.md", "specs/a.md", "src/x")
    (project.root / "src/a").symlink_to("../AGENTS.md")
    (project.root / "src/s").symlink_to("../specs")
    (project.root / "src/up").symlink_to("..")
    for command in (
        "echo x > src/a",
        "rm src/s/a.md",
        "rm -rf src/s/",
        "rm src/up/AGENTS.md",
        "cd src/s && rm a.md",
        "ln -s specs t && rm t/a.md",
        "ln -s AGENTS.md t; echo x > t",
    ):
        assert blocked(project, command), command
    assert not blocked(project, "rm src/a src/s")
    assert not blocked(project, "rm -rf src")


def test_hard_links_are_the_same_file(project: Project) -> None:
    """Writing into the other name is refused; removing that name leaves the file where it is."""
    make(project, "AGENTS.md", ".ralphrc", "other.md")
    os.link(project.root / "AGENTS.md", project.root / "twin.md")
    os.link(project.root / ".ralphrc", project.root / "twin.rc")
    assert blocked(project, "echo x > twin.md")
    assert blocked(project, "sed -n p other.md > twin.md")
    assert blocked(project, "ln AGENTS.md t.md && echo x > t.md")
    assert not blocked(project, "rm twin.md")
    assert not blocked(project, "echo x > other.md")
    assert refused(project, "twin.rc")
    assert not refused(project, "twin.md")


# -- ignore and allow ---------------------------------------------------------------------------------------


def test_ignore_wins_over_every_list(project: Project) -> None:
    """Below a protected folder, by glob, and a whole entry; what is beside stays protected."""
    guard(project, 'ignore = ["memory/scratch/**", "specs/*.tmp", "CLAUDE.md"]\nalso_configuration = ["specs/x.tmp"]')
    make(project, "memory/scratch/a", "memory/b.md", "specs/x.tmp", "specs/y.md", "CLAUDE.md")
    for name in ("memory/scratch/a", "memory/scratch/b/c", "specs/x.tmp", "CLAUDE.md"):
        assert kind(project, name) == "free", name
    for name in ("memory/b.md", "specs/y.md", "specs/deep/y.md", "AGENTS.md"):
        assert kind(project, name) == "document", name
    assert not blocked(project, "rm -rf memory/scratch")
    assert not blocked(project, "rm -f specs/*.tmp CLAUDE.md")
    assert blocked(project, "rm -rf memory")
    assert blocked(project, "rm -rf specs")


def test_a_folder_of_which_everything_is_ignored_may_go(project: Project) -> None:
    """Nothing in it is protected any more."""
    guard(project, 'ignore = ["memory/"]')
    make(project, "memory/a.md")
    assert kind(project, "memory/a.md") == "free"
    assert not blocked(project, "rm -rf memory")


def test_our_own_files_cannot_be_ignored(project: Project) -> None:
    """Fusewire's own are a person's, always: no list of a project makes them an agent's."""
    guard(project, 'ignore = [".fusewire/", "fusewire.toml", "docs/constraints/", ".claude/"]')
    for name in (".fusewire/x", "fusewire.toml", "docs/constraints/a.md", ".claude/settings.json"):
        assert kind(project, name) == "configuration", name
    assert kind(project, ".claude/commands/x.md") == "free"


def test_allow_grants_a_named_tool_a_named_path(project: Project) -> None:
    """To update it; not to delete or empty it, not another tool, not another path, and not the shell."""
    guard(project, 'allow = ["mcp__ralph__*: .ralph/", "mcp__notes__write_note: .ralphrc"]')
    make(project, ".ralph/state.json", ".ralphrc")
    assert not refused(project, ".ralph/state.json", "mcp__ralph__update_state")
    assert not refused(project, ".ralphrc", "mcp__notes__write_note")
    for path, tool in (
        (".ralph/state.json", "mcp__other__update_state"),
        (".ralph/state.json", "Edit"),
        (".ralphrc", "mcp__ralph__update_state"),
        (".claude/x", "mcp__ralph__update_state"),
        (".ralphrc", "mcp__notes__write_note2"),
    ):
        assert refused(project, path, tool), (path, tool)
    for change in ("delete", "empty"):
        assert refused(project, ".ralph/state.json", "mcp__ralph__update_state", change), change
    assert blocked(project, "echo x > .ralph/state.json")
    payload = project.bash("", tool_name="mcp__ralph__update_state", tool_input={"path": ".ralph/state.json"})
    assert project.hook(payload).returncode == 0
    payload = project.bash("", tool_name="mcp__ralph__delete_state", tool_input={"path": ".ralph/state.json"})
    assert project.hook(payload).returncode == 2


# -- wrong values -------------------------------------------------------------------------------------------

#: a line of the table -> words that its one warning must have
WRONG = {
    'documents = "AGENTS.md"': ("documents", "AGENTS.md", "list of paths"),
    "documents = 5": ("documents", "5", "list of paths"),
    "documents = true": ("documents", "True", "list of paths"),
    'documents = ["a.md", 7]': ("documents", "7", "list of paths"),
    'documents = ["a.md", ""]': ("documents", "list of paths"),
    'documents = ["  "]': ("documents", "list of paths"),
    'documents = ["/"]': ("documents", "list of paths"),
    'documents = [["a.md"]]': ("documents", "list of paths"),
    'configuration = ["a\\u0000b"]': ("configuration", "list of paths"),
    'roots = [""]': ("roots", "list of paths"),
    'ignore = "memory/"': ("ignore", "memory/", "list of paths"),
    'allow = ["mcp__x"]': ("allow", "mcp__x", "TOOL: PATTERN"),
    'allow = [": memory/"]': ("allow", "TOOL: PATTERN"),
    'allow = ["mcp__x: "]': ("allow", "TOOL: PATTERN"),
    'document = ["a.md"]': ("document", "no such setting", "did you mean documents?"),
    'also_docs = ["a.md"]': ("also_docs", "no such setting", "also_documents"),
    'documents.more = ["a.md"]': ("documents", "more", "list of paths"),
}


@pytest.mark.parametrize("line", WRONG)
def test_a_wrong_value_is_one_warning_and_the_layer_below_stays_in_force(project: Project, line: str) -> None:
    """The file, the key, the value and what is allowed; the user's own lists and the defaults still protect."""
    user_config().write_text('[guard]\nalso_documents = ["user.md"]\n')
    guard(project, f'{line}\nalso_configuration = ["good/"]')
    (warning,) = warnings_of(project)
    for word in ("fusewire.toml", "[guard]", *WRONG[line]):
        assert word in warning
    assert kind(project, "AGENTS.md") == "document"
    assert kind(project, ".ralphrc") == "configuration"
    assert kind(project, "user.md") == "document"
    assert kind(project, "good/x") == "configuration"
    assert refused(project, ".ralphrc", "mcp__x")


def test_a_wrong_value_leaves_the_users_list_in_force(project: Project) -> None:
    """Not the default, but the layer right below."""
    user_config().write_text('[guard]\ndocuments = ["user.md"]\n')
    guard(project, "documents = 7")
    (warning,) = warnings_of(project)
    assert "user.md" in warning
    assert kind(project, "user.md") == "document"
    assert kind(project, "AGENTS.md") == "free"


def test_a_list_that_is_too_long_is_refused_with_a_short_warning(project: Project) -> None:
    """501 entries; 500 are fine; the warning does not repeat them all."""
    names = [f"file-{number}.md" for number in range(501)]
    guard(project, f"also_documents = {names[:500]}")
    assert warnings_of(project) == []
    assert kind(project, "file-499.md") == "document"
    guard(project, f"also_documents = {names}")
    (warning,) = warnings_of(project)
    assert "also_documents" in warning
    assert len(warning) < 1000
    assert kind(project, "file-1.md") == "free"


def test_an_unknown_table_is_named_with_the_right_one(project: Project) -> None:
    """`[gaurd]`."""
    (project.root / "fusewire.toml").write_text('[gaurd]\nalso_documents = ["x.md"]\n')
    (warning,) = warnings_of(project)
    assert "gaurd" in warning
    assert "guard" in warning.replace("gaurd", "")


def test_the_program_and_the_hook_agree_on_the_configuration(project: Project) -> None:
    """The same lists through `guard check`, the hook and a snapshot."""
    guard(project, 'also_documents = ["docs/adr/*.md"]\nignore = ["memory/scratch/"]\nroots = [".", "web"]')
    make(project, "docs/adr/1.md", "memory/scratch/x", "memory/y.md", "web/AGENTS.md", "free.md")
    wanted = {
        "rm docs/adr/1.md": 3,
        "rm -r memory/scratch": 0,
        "rm memory/y.md": 3,
        "rm web/AGENTS.md": 3,
        "rm free.md": 0,
    }
    for command, code in wanted.items():
        assert project.run("guard", "check", "--command", command).returncode == code, command
        assert project.hook(project.bash(command)).returncode == (2 if code else 0), command
    assert project.run("guard", "snapshot").returncode == 0
    recorded = unpack((Path(folder_of(str(project.root))) / "manifest.bin").read_bytes())["files"]
    assert {"docs/adr/1.md", "memory/y.md", "web/AGENTS.md"} <= set(recorded)
    assert not {"memory/scratch/x", "free.md"} & set(recorded)
    subprocess.run(["rm", "-r", "docs/adr", "memory/scratch"], cwd=project.root, check=True)
    findings = project.json("guard", "verify")["findings"]
    assert [one["path"] for one in findings] == ["docs/adr/1.md"]
