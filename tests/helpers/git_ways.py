"""The ways by which a repository, or an agent that can write to it, gets git to start a program.

Each is data: settings of `.git/config`, files, variables of the caller, and lines of a shell that are run in the
repository before. `@` stands for the canary, `%` for the folder above the repository.
"""

from __future__ import annotations

from typing import NamedTuple


class Way(NamedTuple):
    #: lines of `.git/config`
    config: str = ""
    files: dict[str, str] = {}
    environment: dict[str, str] = {}
    before: str = ""
    #: a command of git that runs the canary if nothing is done against it; empty where none of ours is like it
    control: str = ""


CLEAN = '[filter "x"]\n\tclean = @ clean\n\tsmudge = @ smudge\n\trequired = true\n'
TEXTCONV = '[diff "x"]\n\ttextconv = @ textconv\n\tcachetextconv = true\n'
MAKE_INNER = (
    "git init -q sub && cd sub && git config user.name a && git config user.email nobody && echo 1 > in.txt &&"
    " git add . && git commit -qm sub"
)

WAYS: dict[str, Way] = {
    "clean and smudge by .gitattributes": Way(CLEAN, {".gitattributes": "* filter=x\n"}, control="git status"),
    "clean by info/attributes": Way(CLEAN, {".git/info/attributes": "* filter=x\n"}, control="git diff"),
    "clean by core.attributesFile": Way(
        f"{CLEAN}[core]\n\tattributesFile = %/attributes\n", {"../attributes": "* filter=x\n"}, control="git status"
    ),
    "a filter process": Way(
        '[filter "x"]\n\tprocess = @ process\n', {".gitattributes": "* filter=x\n"}, control="git status"
    ),
    "textconv": Way(TEXTCONV, {".gitattributes": "* diff=x\n"}, control="git diff"),
    "a command of a diff driver": Way(
        '[diff "x"]\n\tcommand = @ command\n', {".gitattributes": "* diff=x\n"}, control="git diff"
    ),
    "diff.external": Way("[diff]\n\texternal = @ external\n", control="git diff"),
    "GIT_EXTERNAL_DIFF": Way(environment={"GIT_EXTERNAL_DIFF": "@ variable"}, control="git diff"),
    "a file system monitor": Way("[core]\n\tfsmonitor = @\n", control="git status"),
    "core.hooksPath": Way(
        "[core]\n\thooksPath = %/hooks\n",
        before="mkdir ../hooks; for n in post-index-change reference-transaction pre-commit post-checkout pre-auto-gc;"
        " do ln -s @ ../hooks/$n; done",
        control="git update-ref refs/x HEAD",
    ),
    ".git/hooks": Way(
        before="mkdir -p .git/hooks; for n in post-index-change reference-transaction pre-commit post-checkout"
        " pre-auto-gc fsmonitor-watchman; do ln -s @ .git/hooks/$n; done",
        control="git update-ref refs/x HEAD",
    ),
    "pagers": Way(
        "[core]\n\tpager = @ pager\n[pager]\n\tstatus = @ status\n\tdiff = @ diff\n[interactive]\n\tdiffFilter = @\n",
        environment={"GIT_PAGER": "@", "PAGER": "@", "GIT_PAGER_IN_USE": "1"},
    ),
    "editors and askers": Way(
        "[core]\n\teditor = @ editor\n\taskPass = @\n[sequence]\n\teditor = @\n[credential]\n\thelper = @\n"
        "[commit]\n\tgpgSign = true\n",
        environment={"GIT_EDITOR": "@", "GIT_SEQUENCE_EDITOR": "@", "GIT_ASKPASS": "@", "EDITOR": "@", "VISUAL": "@"},
    ),
    "a promisor that is reached by ssh": Way(
        "[core]\n\trepositoryformatversion = 1\n\tsshCommand = @ ssh\n[extensions]\n\tpartialClone = origin\n"
        '[remote "origin"]\n\turl = ssh://localhost/x\n\tpromisor = true\n\tpartialclonefilter = blob:none\n',
        before="rm -f .git/objects/$(git rev-parse HEAD:src/x.py | sed 's|^..|&/|')",
        environment={"GIT_SSH_COMMAND": "@", "GIT_SSH": "@"},
        control="git cat-file -p HEAD:src/x.py",
    ),
    "a promisor that is a command": Way(
        "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tpartialClone = origin\n[protocol]\n\tallow = always\n"
        '[remote "origin"]\n\turl = "ext::@ %S"\n\tpromisor = true\n',
        before="rm -f .git/objects/$(git rev-parse HEAD:src/x.py | sed 's|^..|&/|')",
        control="git cat-file -p HEAD:src/x.py",
    ),
    "an include": Way(
        "[include]\n\tpath = ../evil.config\n",
        {"evil.config": CLEAN, ".gitattributes": "* filter=x\n"},
        control="git status",
    ),
    "a conditional include": Way(
        '[includeIf "gitdir:%/"]\n\tpath = %/evil.config\n',
        {"../evil.config": "[core]\n\tfsmonitor = @\n"},
        control="git status",
    ),
    "an include that includes itself": Way("[include]\n\tpath = config\n[core]\n\tfsmonitor = @\n"),
    "a configuration of the worktree": Way(
        "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tworktreeConfig = true\n",
        {".git/config.worktree": "[core]\n\tfsmonitor = @\n"},
        control="git status",
    ),
    "aliases": Way("[alias]\n\tstatus = !@\n\tx = !@ x\n\tdiff-files = !@\n", control="git x"),
    "a working tree elsewhere": Way("[core]\n\tworktree = %/elsewhere\n\tfsmonitor = @\n", before="mkdir ../elsewhere"),
    "a submodule with settings and hooks of its own": Way(
        before=f"({MAKE_INNER}) && git add sub && git commit -qm 'with sub' && cd sub && echo 2 > in.txt &&"
        f" echo '* filter=x diff=x' > .gitattributes && printf '{CLEAN}{TEXTCONV}' >> .git/config &&"
        " git config core.fsmonitor @ && mkdir -p .git/hooks && ln -s @ .git/hooks/post-index-change",
        files={".gitmodules": '[submodule "sub"]\n\tpath = sub\n\turl = ./sub\n\tignore = none\n'},
        control="git status",
    ),
    "a nested repository": Way(
        before=f"{MAKE_INNER} && git config core.fsmonitor @ && git config core.hooksPath %/hooks",
        control="git -C sub status",
    ),
    "a .git that is a file": Way(
        before="mv .git ../moved && echo 'gitdir: ../moved' > .git && git config core.fsmonitor @",
        control="git status",
    ),
    "a .git that is a link": Way(before="mv .git ../moved && ln -s ../moved .git && git config core.fsmonitor @"),
    "a .git that is a FIFO": Way(before="mv .git ../moved && mkfifo .git"),
    "a .git that is a loop": Way(before="mv .git ../moved && ln -s .git .git"),
    "a .git that names itself": Way(before="mv .git ../moved && echo 'gitdir: .git' > .git"),
    "a config that is a FIFO": Way(before="rm .git/config && mkfifo .git/config"),
    "a common directory elsewhere": Way(
        before="cp -r .git ../other && git config core.fsmonitor @ && mv .git/config ../other/config &&"
        " echo ../../other > .git/commondir",
    ),
    "signatures": Way("[gpg]\n\tprogram = @\n[log]\n\tshowSignature = true\n[commit]\n\tgpgSign = true\n"),
    "a merge driver": Way('[merge "x"]\n\tdriver = @ %A\n', {".gitattributes": "* merge=x\n"}),
    "commands of the other side": Way(
        "[core]\n\talternateRefsCommand = @\n\tgitProxy = @\n[uploadpack]\n\tpackObjectsHook = @\n"
        '[remote "origin"]\n\turl = %/project\n\tuploadpack = @\n\treceivepack = @\n\tvcs = x\n',
    ),
    "traces into a file": Way(
        "[trace2]\n\tnormalTarget = %/canary.log\n\teventTarget = %/canary.log\n",
        environment=dict.fromkeys(("GIT_TRACE", "GIT_TRACE_SETUP", "GIT_TRACE2", "GIT_TRACE2_EVENT"), "%/canary.log"),
        control="git status",
    ),
    "settings in variables": Way(
        environment={
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "core.fsmonitor",
            "GIT_CONFIG_VALUE_0": "@",
            "GIT_CONFIG_PARAMETERS": "'core.fsmonitor=@'",
        },
        control="git status",
    ),
    "programs of git in variables": Way(
        before="mkdir ../exec && for n in git git-status git-gc git-pack-refs; do ln -s @ ../exec/$n; done",
        environment={"GIT_EXEC_PATH": "%/exec", "GIT_TEMPLATE_DIR": "%/exec"},
    ),
    "alternates that loop": Way(
        files={".git/objects/info/alternates": "%/project/.git/objects\n../objects\n/dev/null\n"}
    ),
    "programs in the repository": Way(
        before="mkdir bin && for n in git ps sh env bash notify-send claude; do ln -s @ $n; ln -s @ bin/$n; done",
        environment={"PATH": ".::%/project/bin:%/project:{PATH}"},
    ),
    "modules in the repository": Way(
        before="mkdir fusewire && for n in sqlite3 subprocess json re click sitecustomize usercustomize"
        " fusewire/__init__ fusewire/__main__; do echo 'import os; os.system(\"@ module\")' > $n.py; done",
    ),
    "names with newlines and escapes": Way(
        before="f=$(printf 'specs/a\\n\\033[31m.md'); echo x > \"$f\"; mkdir -p ' -x'; echo > ' -x/--help';"
        " ln -s loop loop; ln -s ../.. up; mkfifo fifo; git add -A specs ' -x'; git commit -qm names; echo y > \"$f\"",
    ),
}
