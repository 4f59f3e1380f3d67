"""What lies beyond a limit of the reader is unknown, not safe: it stops what destroys, and never what reads."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from fusewire.core.messages import message
from fusewire.guard import disk, protected
from fusewire.guard.check import check_command
from fusewire.guard.programs import files, git_repo, rsync
from fusewire.guard.protected import DOCUMENT, Protected
from tests.helpers.project import Project


def fill(folder: Path, count: int, ending: str) -> None:
    folder.mkdir()
    for number in range(count):
        os.close(os.open(folder / f"{number:06}{ending}", os.O_CREAT))


@pytest.fixture
def crowded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """More names in one folder than a glob is followed into; the protected one comes last."""
    monkeypatch.setattr(disk, "MOST", 100)
    fill(tmp_path / "many", 105, ".txt")
    fill(tmp_path / "logs", 105, ".log")
    (tmp_path / "many" / "zz.txt").write_text("the plan\n")
    return tmp_path


def judged(root: Path, line: str, *places: str) -> tuple[str, str]:
    guarded = Protected(str(root), tuple((place, DOCUMENT) for place in places))
    verdict = check_command(line, cwd=str(root), root=str(root), protected=guarded, environment={}, lists=False)
    return ("ALLOWED" if verdict.allowed else "BLOCKED"), message(verdict)


@pytest.mark.parametrize(
    "line",
    [
        "rm many/*",
        "rm -f many/*.txt",
        "rm -- many/??????????",
        "mv many/* /elsewhere/",
        "sed -i s/a/b/ many/*.txt",
        "truncate -s 0 many/*",
        "chmod 000 many/*",
        "cd many && rm *",
        "shopt -s globstar; rm **/*.txt",
        "rm */zz*",
        "ls many/* | xargs rm",
    ],
)
def test_what_destroys_is_refused_where_its_glob_was_cut(crowded: Path, line: str) -> None:
    assert judged(crowded, line, "many/zz.txt")[0] == "BLOCKED"


def test_the_refusal_names_the_limit_and_the_way_on_and_a_reader_passes(project: Project) -> None:
    """The limit as it is, through the hook: 20,000 names are looked at within its time."""
    fill(project.root / "pages", disk.MOST + 1, ".txt")
    (project.root / "pages" / "zz.txt").write_text("the plan\n")
    (project.root / "fusewire.toml").write_text('[guard]\nalso_documents = ["pages/zz.txt"]\n')
    refused = project.hook(project.bash("rm pages/*"))
    assert refused.returncode == 2
    assert b"20,000 names or more" in refused.stderr
    assert b"name the files, or use a narrower pattern" in refused.stderr
    assert project.hook(project.bash("cat pages/*")).returncode == 0


@pytest.mark.parametrize(
    "line",
    [
        "cat many/*",
        "wc -l many/*.txt",
        "ls many/*",
        "grep -c plan many/*",
        "for f in many/*; do echo $f; done",
        "md5sum many/* | sort",
        "rm logs/*",
        "rm -f logs/*.log",
        "sed -i s/a/b/ logs/*.log",
        "rm many/00001*",
        "cp logs/* /elsewhere/",
        "git add many/*",
    ],
)
def test_what_reads_or_cannot_reach_a_protected_file_passes(crowded: Path, line: str) -> None:
    """A folder with as many files and nothing protected in it may be emptied."""
    verdict, text = judged(crowded, line, "many/zz.txt")
    assert verdict == "ALLOWED", text


def test_braces_beyond_their_limit_are_unknown(crowded: Path) -> None:
    assert judged(crowded, "rm -f many/{1..3000}.txt", "many/2500.txt")[0] == "ALLOWED", "there is no such file"
    (crowded / "many" / "2500.txt").touch()
    assert judged(crowded, "rm -f many/{1..3000}.txt", "many/2500.txt")[0] == "BLOCKED"
    assert judged(crowded, "touch many/{1..3000}.new", "many/zz.txt")[0] == "ALLOWED"


@pytest.fixture
def tree(project: Project, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Limits that a small tree exceeds, so that the test need not write thousands of files."""
    for module, name in ((files, "MOST"), (rsync, "MOST"), (protected, "_MOST_BELOW")):
        monkeypatch.setattr(module, name, 5)
    for folder in ("source", "other"):
        for number in range(20):
            path = project.root / folder / f"{number:02}" / "file.md"
            path.parent.mkdir(parents=True)
            path.write_text("x\n")
    (project.root / "target").mkdir()
    (project.root / "target" / "zz.md").write_text("kept\n")
    (project.root / "source" / "19" / "zz.md").write_text("new\n")
    return project.root


@pytest.mark.parametrize(
    ("line", "places", "verdict"),
    [
        ("cp -r source/. target", ("target/zz.md",), "BLOCKED"),
        ("cp -r source/. elsewhere", ("target/zz.md",), "ALLOWED"),
        ("rsync -a source/ target/", ("target/zz.md",), "BLOCKED"),
        ("rsync -a source/ elsewhere/", ("target/zz.md",), "ALLOWED"),
        ("rm -rf source", ("source/**/zz.md",), "BLOCKED"),
        ("rm -rf target", ("source/**/zz.md",), "ALLOWED"),
        ("ls -R source", ("source/**/zz.md",), "ALLOWED"),
    ],
)
def test_folders_beyond_their_limit_are_unknown(tree: Path, line: str, places: tuple[str, ...], verdict: str) -> None:
    assert judged(tree, line, *places)[0] == verdict


@pytest.mark.parametrize(
    ("line", "verdict"),
    [
        ("git checkout -- .", "BLOCKED"),
        ("git restore source other target", "BLOCKED"),
        ("git stash -u", "ALLOWED"),  # git is asked about the protected file alone
        ("git reset --hard", "ALLOWED"),
        ("git add .", "ALLOWED"),
        ("git status --short", "ALLOWED"),
        ("git diff", "ALLOWED"),
    ],
)
def test_an_answer_of_git_that_was_cut_is_unknown(
    tree: Path, monkeypatch: pytest.MonkeyPatch, line: str, verdict: str
) -> None:
    """Git prints more than is read: what the command would overwrite is not known."""
    author = "-c user.name=a -c user.email=a@b"
    line_of_git = f"git add . && git {author} commit -qm x && for f in source/*/* other/*/*; do echo y > $f; done"
    subprocess.run(["sh", "-c", line_of_git], cwd=tree, check=True)
    monkeypatch.setattr(git_repo, "_OUTPUT_LIMIT", 100)
    assert judged(tree, line, "target/zz.md")[0] == verdict
