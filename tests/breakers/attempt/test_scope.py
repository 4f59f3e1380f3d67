"""The scope lock: where a scope comes from, what is in it, what broken sources say, and what can be justified."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusewire.breakers.attempt.scope.boundary import covers
from fusewire.breakers.attempt.scope.contracts import prose, references
from fusewire.breakers.attempt.scope.lock import ScopeLock, session_of
from fusewire.breakers.attempt.scope.sources import NoScope
from fusewire.breakers.attempt.scope.state import BLANKS, KEPT, Unjustifiable
from fusewire.cli.app import main
from fusewire.engine.breaker import Breaker
from fusewire.util.errors import FusewireError
from fusewire.util.globs import path_matches
from tests.helpers import ROOT
from tests.helpers.project import Project

WHY = {
    "test": "TestUserRegistration_ReturnsConflictOnDuplicateEmail",
    "reason": "Error factory function needed to standardise the error key",
    "relationship": "The contract (C-12) references the error shape",
}


@pytest.fixture
def lock(project: Project) -> Iterator[ScopeLock]:
    with Breaker.open(project=project.root) as breaker:
        yield ScopeLock(breaker)


def write(project: Project, name: str, content: object) -> Path:
    """A file of the project; what is no text becomes JSON."""
    path = project.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def graph(project: Project, name: str = "GRAPH.json", **entry: Any) -> None:
    write(project, name, {"slices": [{"id": "S-2", "packages": ["other"]}, {"id": "S-1", **entry}]})


def patterns(lock: ScopeLock, slice: str = "S-1") -> set[str]:
    return {pattern for pattern, _ in lock.scope(slice).entries}


def decisions(lock: ScopeLock, *paths: str, slice: str = "S-1") -> list[str]:
    return [answer.decision for answer in lock.check(slice, paths, cwd=lock.root)]


def refused(act: Any, *words: str) -> str:
    """One line with what, where and what is allowed."""
    with pytest.raises(FusewireError) as caught:
        act()
    text = str(caught.value)
    assert "\n" not in text
    for word in words:
        assert word in text, text
    return text


def git(project: Project, *words: str) -> None:
    subprocess.run(["git", "-c", "user.name=d", "-c", "user.email=d@x", *words], cwd=project.root, check=True)


# -- priority -------------------------------------------------------------------------------------------------


def test_the_priority_of_the_sources(project: Project, lock: ScopeLock) -> None:
    """What the orchestrator gives counts alone; without it, contracts and graph count together."""
    write(project, "CONTRACTS.md", "# C-12 Users\n\nCreate `src/users/service.ts`.\n")
    graph(project, packages=["lib/users"], deliverables=["docs/users.md"], contracts=["C-12"])
    assert patterns(lock) == {"src/users/service.ts", "lib/users", "docs/users.md"}
    assert not lock.scope("S-1").explicit
    graph(project, packages=["lib/users"], contracts=["C-12"], files_in_scope=["src/only.ts"])
    assert patterns(lock) == {"src/only.ts"}
    assert lock.scope("S-1").explicit
    lock.set("S-1", ["src/given.ts", "./src/given.ts", "tests/"])
    assert patterns(lock) == {"src/given.ts", "tests/"}
    assert lock.scope("S-1").explicit
    assert patterns(lock, "S-2") == {"other", "src/other", "other.py", "src/other.py"}
    lock.set("S-1", [])
    assert patterns(lock) == {"src/only.ts"}


def test_what_was_given_needs_no_other_source(project: Project, lock: ScopeLock) -> None:
    """A broken graph is none of its business."""
    write(project, "GRAPH.json", "{")
    lock.set("S-9", ["src/a.py"])
    assert decisions(lock, "src/a.py", "src/b.py", slice="S-9") == ["IN_SCOPE", "BLOCKED"]


def test_the_source_of_every_answer_is_named(project: Project, lock: ScopeLock) -> None:
    write(project, ".greenlight/contracts/C-12.md", "# Users\n\nCreate `src/users/service.ts`.\n")
    graph(project, ".greenlight/GRAPH.json", packages=["lib/users"], deliverables=["docs/*.md"], contracts=["C-12"])
    answers = lock.check("S-1", ["src/users/service.ts", "lib/users/a.ts", "docs/x.md", "src/x.ts"], cwd=lock.root)
    assert [(answer.source, answer.reason) for answer in answers] == [
        (".greenlight/contracts/C-12.md: Users", ""),
        (".greenlight/GRAPH.json: packages lib/users", ""),
        (".greenlight/GRAPH.json: deliverables docs/*.md", ""),
        ("", "outside the scope of S-1"),
    ]


# -- GRAPH.json -----------------------------------------------------------------------------------------------


def test_slices_may_be_a_list_or_an_object(project: Project, lock: ScopeLock) -> None:
    for slices in ([{"id": "S-1", "packages": ["a/b"]}], {"S-1": {"packages": ["a/b"]}}):
        write(project, "GRAPH.json", {"slices": slices})
        assert patterns(lock) == {"a/b"}


@pytest.mark.parametrize(
    ("package", "inside", "outside"),
    [
        (
            "internal/users",
            ["internal/users/a.go", "internal/users/x/b.go", "internal/users"],
            ["internal/users2/a.go"],
        ),
        ("src/users/", ["src/users/a.ts"], ["users/a.ts", "src/users.ts", "lib/src/users/a.ts"]),
        ("./internal/users/...", ["internal/users/a.go"], ["internal/a.go"]),
        ("app.users", ["app/users/a.py", "src/app/users/a.py", "app/users.py", "src/app/users.py"], ["app/a.py"]),
        ("users", ["users/a.py", "src/users/a.py", "users.py"], ["lib/users/a.py", "users.ts"]),
        ("packages/*/users/", ["packages/api/users/a.ts"], ["packages/users/a.ts", "packages/a/b/users/c.ts"]),
        (".", ["anything/at/all.c"], []),
    ],
)
def test_packages(project: Project, lock: ScopeLock, package: str, inside: list[str], outside: list[str]) -> None:
    graph(project, packages=[package])
    assert decisions(lock, *inside) == ["IN_SCOPE"] * len(inside)
    assert decisions(lock, *outside) == ["BLOCKED"] * len(outside)


@pytest.mark.parametrize(
    ("deliverable", "inside", "outside"),
    [
        ("src/a.ts", ["src/a.ts"], ["src/a.tsx", "a.ts", "x/src/a.ts"]),
        ("README.md", ["README.md"], ["docs/README.md"]),
        ("docs", ["docs/a.md", "docs/b/c.md"], ["docs2/a.md", "x/docs/a.md"]),
        ("src/*.ts", ["src/a.ts"], ["src/b/a.ts", "src/a.js"]),
        ("src/**/*.ts", ["src/a.ts", "src/b/c/a.ts"], ["lib/a.ts", "src/a.js"]),
        ("src/*", ["src/a"], ["src/a/b"]),
        ("tests/**", ["tests/a/b.py", "tests/c.py"], ["test/a.py"]),
        ("app/[id]/page.tsx", ["app/[id]/page.tsx"], ["app/x/page.tsx"]),
        ("**/migrations/", ["a/b/migrations/1.sql", "migrations/1.sql"], ["migration/1.sql"]),
    ],
)
def test_deliverables(
    project: Project, lock: ScopeLock, deliverable: str, inside: list[str], outside: list[str]
) -> None:
    graph(project, deliverables=[deliverable])
    assert decisions(lock, *inside) == ["IN_SCOPE"] * len(inside)
    assert decisions(lock, *outside) == ["BLOCKED"] * len(outside)


def test_an_absolute_path_inside_the_project_is_as_good(project: Project, lock: ScopeLock) -> None:
    graph(project, deliverables=[f"{project.root}/src/a.ts"])
    assert patterns(lock) == {"src/a.ts"}


BROKEN: list[tuple[object, list[str]]] = [
    ("{", ["GRAPH.json", "not JSON"]),
    ("", ["GRAPH.json", "not JSON"]),
    ("[" * 200_000, ["GRAPH.json", "not JSON"]),
    ("[]", ["GRAPH.json: slices", "allowed:"]),
    ('"text"', ["GRAPH.json: slices", "allowed:"]),
    ({"slices": 3}, ["GRAPH.json: slices = 3", "allowed: a list of objects"]),
    ({"slices": ["S-1"]}, ["slices[0] = 'S-1'", 'a text "id"']),
    ({"slices": [{"id": 1}]}, ["slices[0]", 'a text "id"']),
    ({"slices": {"S-1": []}}, ["slice S-1 = []", "an object"]),
    ({"slices": [{"id": "S-1", "packages": "src"}]}, ["slice S-1: packages = 'src'", "a list of texts"]),
    ({"slices": [{"id": "S-1", "packages": [3]}]}, ["packages = [3]", "a list of texts"]),
    ({"slices": [{"id": "S-1", "deliverables": {"a": 1}}]}, ["deliverables", "a list of texts"]),
    ({"slices": [{"id": "S-1", "deliverables": [""]}]}, ["deliverables", "a list of texts"]),
    ({"slices": [{"id": "S-1", "deliverables": ["../x"]}]}, ["'../x' leaves the project", "slice S-1: deliverables"]),
    ({"slices": [{"id": "S-1", "deliverables": ["a/../../x"]}]}, ["leaves the project"]),
    ({"slices": [{"id": "S-1", "packages": ["/etc"]}]}, ["'/etc' leaves the project", "slice S-1: packages"]),
    ({"slices": [{"id": "S-1", "files_in_scope": ["~/x"]}]}, ["leaves the project"]),
    ({"slices": [{"id": "S-1", "files_in_scope": []}]}, ["files_in_scope = []", "at least one path"]),
    ({"slices": [{"id": "S-1", "files_in_scope": ["a\nb"]}]}, ["one line"]),
    ({"slices": [{"id": "S-1", "contracts": "C-12"}]}, ["contracts = 'C-12'", "a list of texts"]),
    ({"slices": [{"id": "S-1", "contracts": ["C-12"], "packages": ["a/b"]}]}, ["contract 'C-12'", "CONTRACTS.md"]),
    (
        {"slices": [{"id": "S-2"}, {"id": "S-3"}]},
        ["there is no slice S-1; allowed: one of its slices (S-2, S-3), or", "fusewire scope set S-1"],
    ),
    ({"slices": {f"X-{n}": {} for n in range(12)}}, ["X-8, X-9 and 2 more)"]),
    ({"slices": []}, ["there is no slice S-1; allowed: (it has none), or"]),
    ({"slices": [{"id": "S-1"}, {"id": "S-1"}]}, ["S-1 is there 2 times"]),
]


@pytest.mark.parametrize(("content", "words"), BROKEN)
def test_a_broken_graph_is_an_error_and_no_empty_scope(
    project: Project, lock: ScopeLock, content: object, words: list[str]
) -> None:
    write(project, "GRAPH.json", content)
    refused(lambda: lock.scope("S-1"), *words)
    refused(lambda: lock.check("S-1", ["src/a.py"]), *words)
    with pytest.raises(FusewireError) as caught:
        lock.scope("S-1")
    assert not isinstance(caught.value, NoScope)
    (told,) = lock.violations("S-1", ["src/a.py"]) or []
    assert told["justification"].startswith("the scope cannot be told: ")


def test_a_graph_that_cannot_be_read(project: Project, lock: ScopeLock) -> None:
    (project.root / "GRAPH.json").mkdir()
    refused(lambda: lock.scope("S-1"), "GRAPH.json", "cannot be read")
    (project.root / "GRAPH.json").rmdir()
    (project.root / "GRAPH.json").symlink_to("nowhere")
    refused(lambda: lock.scope("S-1"), "GRAPH.json", "cannot be read")
    (project.root / "GRAPH.json").unlink()
    (project.root / "GRAPH.json").write_bytes(b"\xff\xfe{")
    refused(lambda: lock.scope("S-1"), "GRAPH.json", "not JSON")
    graph(project, ".greenlight/GRAPH.json", packages=["a/b"])
    refused(lambda: lock.scope("S-1"), "GRAPH.json and .greenlight/GRAPH.json", "one of them")


def test_no_source_at_all_names_the_three_ways(project: Project, lock: ScopeLock) -> None:
    text = refused(
        lambda: lock.scope("S-1"), "no scope is defined for S-1", "scope set S-1", "CONTRACTS.md", "GRAPH.json"
    )
    assert "src" not in text
    graph(project, title="only a title")
    with pytest.raises(NoScope):
        lock.scope("S-1")
    assert lock.violations("S-1", ["a.py"]) is None


@pytest.mark.parametrize("name", ["", "-x", "a b", "../x", "a/b", "x" * 65, "é", "S-1\n"])
def test_a_name_that_no_slice_has(lock: ScopeLock, name: str) -> None:
    for act in (lock.scope, lock.sessions, lock.deactivate, lock.justifications):
        refused(lambda act=act: act(name), "no name of a slice", "S-1")  # type: ignore[misc]


# -- contracts ------------------------------------------------------------------------------------------------

CONTRACTS = """\
# Contracts

Everything about `src/everything.ts`.

## C-12: User registration

**Slice:** S-1

Create `src/users/service.ts` and src/users/repository.ts. Answers with `application/json` and/or text,
see https://example.com/docs/a.md. Route: `POST /users`, `/users/:id`.

```ts
import { x } from "src/code/block.ts"
```

Do not modify `src/shared/errors.ts`. Nor is anything in `src/billing/` to be changed; it must not be touched.

### Storage

The package `app.store` and the packages `internal/db`, `internal/cache`.

### Out of scope

- `src/later.ts`

## C-13: Invoices (S-2)

`src/invoices/a.ts`

## C-14: S-10

`src/ten.ts`
"""


def test_the_contracts_of_a_slice_are_its_own_sections(project: Project, lock: ScopeLock) -> None:
    """By a label below the heading, by a word of the heading, or by the graph; a section reaches to the next one."""
    write(project, "CONTRACTS.md", CONTRACTS)
    assert patterns(lock) == {
        *("src/users/service.ts", "src/users/repository.ts", "internal/db", "internal/cache"),
        *("app/store", "src/app/store", "app/store.py", "src/app/store.py"),
    }
    assert patterns(lock, "S-2") == {"src/invoices/a.ts"}
    assert patterns(lock, "S-10") == {"src/ten.ts"}
    with pytest.raises(NoScope):
        lock.scope("S-3")
    write(project, "GRAPH.json", {"slices": [{"id": "S-3", "contracts": ["C-13"]}]})
    assert patterns(lock, "S-3") == {"src/invoices/a.ts"}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("contracts/S-1.md", "Create `src/a.ts`.\n"),
        ("contracts/users.md", "# Users for S-1\n\nCreate `src/a.ts`.\n\n## Details\n\nmore\n"),
        ("contracts/users.md", "---\nslice: S-1\n---\n# Users\n\nCreate `src/a.ts`.\n"),
        ("contracts/users.md", "---\nslices:\n  - S-0\n  - S-1\n---\n# Users\n\nCreate `src/a.ts`.\n"),
        (".greenlight/contracts/users.md", "# Users\n\n- Slices: S-0, S-1\n\n## Files\n\n- `src/a.ts`\n"),
        (".greenlight/CONTRACTS.md", "## Users\n| Slice | S-1 |\n\nCreate [the service](src/a.ts).\n"),
    ],
)
def test_where_contracts_may_be(project: Project, lock: ScopeLock, name: str, text: str) -> None:
    write(project, name, text)
    assert patterns(lock) == {"src/a.ts"}


@pytest.mark.parametrize(
    "text",
    [
        "# Users\n\nUnlike S-1 this creates `src/a.ts`.\n",
        "# S-10 and S-1.2, XS-1, S-1-b\n\n`src/a.ts`\n",
        "# Both: S-1\n\n## For S-2\n\n`src/a.ts`\n",
        "# Both: S-1\n\n## Other\n\nSlice: S-2\n\n`src/a.ts`\n",
        "```\n# S-1\n```\n\n`src/a.ts`\n",
        "# S-1\n\n## Non-goals\n\n### Files\n\n`src/a.ts`\n",
        "# Out of scope of S-1\n\n`src/a.ts`\n",
    ],
)
def test_what_is_no_contract_of_the_slice(project: Project, lock: ScopeLock, text: str) -> None:
    write(project, "contracts/a.md", text)
    with pytest.raises(NoScope):
        lock.scope("S-1")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Create `src/users/service.ts`.", ["src/users/service.ts"]),
        (
            "See src/users/service.ts:12, (lib/a.go) and **docs/a.md**.",
            ["src/users/service.ts", "lib/a.go", "docs/a.md"],
        ),
        (
            "`src/users/`, `src/users`, src/lib/ and `tests/**/*.py`",
            ["src/users/", "src/users", "tests/**/*.py", "src/lib/"],
        ),
        ("`./src/a.py::test_x` and `src/b.py#L3`", ["src/a.py", "src/b.py"]),
        ("Update README.md, `package.json` and the `Makefile`", ["package.json", "Makefile", "README.md"]),
        ("`.github/workflows/ci.yml`", [".github/workflows/ci.yml"]),
        ("`src/users/service.ts` must not throw and must never return null.", ["src/users/service.ts"]),
        ("`src/a.ts` must not create duplicates", ["src/a.ts"]),
        # prose
        ("Answer yes/no, and/or read/write, client/server, 200/409, TCP/IP, n/a", []),
        ("`application/json`, `text/html`, `GET/POST`, `/users/:id`, `POST /users`, `@acme/users`", []),
        ("Node.js, Vue.js and e.g. i.e. users.email `res.status` `app.users`", []),
        ("https://example.com/src/a.py and `github.com/acme/users`", []),
        ("`../shared/a.ts`, `/etc/passwd`, `~/x.md`, `--out/a.md`, `a b/c.ts`", []),
        ("Do not modify `src/a.ts`. Don't touch the file src/b.ts.", []),
        ("Do not\nchange `src/a.ts`", []),
        ("`src/a.ts` must not be changed; `src/b.ts` stays unchanged; without touching `src/c.ts`", []),
        ("`src/a.ts` is out of scope", []),
    ],
)
def test_references(text: str, expected: list[str]) -> None:
    assert references(prose(text.splitlines()))[0] == expected


def test_packages_in_prose_stand_behind_the_word(project: Project, lock: ScopeLock) -> None:
    text = ["The package `app.users`, packages: `a`, `b` and `c/d`. The `x.y` thing; package manager `npm`."]
    assert references(text)[1] == ["app.users", "a", "b", "c/d"]
    write(project, "CONTRACTS.md", "# S-1\n\nThe package `../elsewhere` and `src/a.ts`.\n")
    assert patterns(lock) == {"src/a.ts"}


def test_contracts_that_cannot_be_read(project: Project, lock: ScopeLock) -> None:
    (project.root / "CONTRACTS.md").mkdir()
    refused(lambda: lock.scope("S-1"), "CONTRACTS.md", "cannot be read", "Markdown")
    (project.root / "CONTRACTS.md").rmdir()
    (project.root / "CONTRACTS.md").write_bytes(b"# S-1\n\xff\n")
    refused(lambda: lock.scope("S-1"), "CONTRACTS.md", "not UTF-8")


@settings(max_examples=60, deadline=None)
@given(st.text(st.characters(codec="utf-8"), max_size=200))
def test_no_text_breaks_the_reader(text: str) -> None:
    """And whatever it finds stands in the text."""
    paths, packages = references(prose(text.splitlines()))
    joined = " ".join(text.split())
    assert all(found in joined for found in (*paths, *packages))


_PART = st.sampled_from(["a", "b.py", "*", "a*", "**", "[id]"])


@settings(max_examples=150, deadline=None)
@given(st.lists(_PART, min_size=1, max_size=4), st.lists(st.sampled_from(["a", "b.py", "ab", "[id]"]), min_size=1))
def test_a_pattern_covers_what_it_matches_and_what_is_below_what_it_names(pattern: list[str], path: list[str]) -> None:
    written, name = "/".join(pattern), "/".join(path)
    if path_matches(f"/{name}", f"/{written}"):
        assert covers(written, name)
    if covers(written, name) and not any(mark in written for mark in "*["):
        assert name == written or name.startswith(f"{written}/")
    if covers(written, name) and "*" not in pattern[-1] and "[" not in pattern[-1]:
        assert covers(written, f"{name}/more.txt")


# -- paths ----------------------------------------------------------------------------------------------------


def test_paths_are_what_they_lead_to(project: Project, lock: ScopeLock, tmp_path: Path) -> None:
    """A link in scope to a file outside of it is outside; one from outside into the scope is inside."""
    lock.set("S-1", ["src/users"])
    write(project, "src/users/a.py", "a")
    write(project, "src/billing/b.py", "b")
    (tmp_path / "far.py").write_text("far")
    (project.root / "src/users/link.py").symlink_to("../billing/b.py")
    (project.root / "src/users/far.py").symlink_to(tmp_path / "far.py")
    (project.root / "src/users/folder").symlink_to("../billing")
    (project.root / "alias").symlink_to("src/users")
    (project.root / "src/users/loop").symlink_to("loop")
    answers = lock.check(
        "S-1",
        [
            *("src/users/link.py", "src/users/far.py", "src/users/folder/new.py", "alias/a.py"),
            *(
                f"{project.root}/src/users/a.py",
                "src/users/../billing/b.py",
                str(tmp_path / "far.py"),
                "../x",
                "src/users",
            ),
        ],
        cwd=lock.root,
    )
    assert [(answer.path, answer.decision, answer.reason) for answer in answers] == [
        ("src/billing/b.py", "BLOCKED", "outside the scope of S-1"),
        ("src/users/far.py", "BLOCKED", "outside the project"),
        ("src/billing/new.py", "BLOCKED", "outside the scope of S-1"),
        ("src/users/a.py", "IN_SCOPE", ""),
        ("src/users/a.py", "IN_SCOPE", ""),
        ("src/billing/b.py", "BLOCKED", "outside the scope of S-1"),
        (str(tmp_path / "far.py"), "BLOCKED", "outside the project"),
        ("../x", "BLOCKED", "outside the project"),
        ("src/users", "IN_SCOPE", ""),
    ]
    assert decisions(lock, "src/users/loop") == ["IN_SCOPE"]


def test_a_project_behind_a_link(project: Project, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(project.root)
    with Breaker.open(project=tmp_path / "alias") as breaker:
        lock = ScopeLock(breaker)
        lock.set("S-1", [f"{tmp_path}/alias/src/a.py"])
        assert decisions(lock, f"{project.root}/src/a.py", f"{tmp_path}/alias/src/a.py", "src/a.py") == ["IN_SCOPE"] * 3


def test_relative_paths_are_meant_from_here_or_from_the_project(project: Project, lock: ScopeLock) -> None:
    lock.set("S-1", ["src/users/a.py", "src/users/new.py"])
    write(project, "src/users/a.py", "a")
    here = str(project.root / "src/users")
    assert [one.decision for one in lock.check("S-1", ["a.py", "new.py", "src/users/a.py", "b.py"], cwd=here)] == [
        *("IN_SCOPE", "IN_SCOPE", "IN_SCOPE", "BLOCKED")
    ]
    refused(lambda: lock.check("S-1", ["a\0b"]), "no path")


def test_what_defines_a_scope_is_never_in_it(project: Project, lock: ScopeLock) -> None:
    """Also if it is git-ignored, or if everything is in scope: whoever may change it could let himself in."""
    lock.set("S-1", [".", "GRAPH.json"])
    write(project, ".gitignore", ".greenlight/\n")
    names = ("GRAPH.json", ".greenlight/GRAPH.json", "CONTRACTS.md", "contracts/a.md", ".greenlight/contracts/b.md")
    for answer in lock.check("S-1", names, cwd=lock.root):
        assert answer.decision == "BLOCKED"
        assert "only a person" in answer.reason
    assert decisions(lock, "contracts/Token.sol", "src/GRAPH.json") == ["IN_SCOPE", "IN_SCOPE"]


def test_what_git_ignores_is_free(project: Project, lock: ScopeLock) -> None:
    lock.set("S-1", ["src/a.py"])
    write(project, ".gitignore", "build/\n*.log\n")
    write(project, "build/kept.py", "tracked")
    git(project, "add", "-f", "build/kept.py")
    answers = lock.check("S-1", ["build/out.o", "x.log", "build/kept.py", "src/b.py"], cwd=lock.root)
    assert [(answer.decision, answer.source) for answer in answers] == [
        *[("IN_SCOPE", "a by-product, or ignored by git")] * 2,
        *[("BLOCKED", "")] * 2,
    ]


def test_what_is_outside_the_project_is_not_free_because_somebody_ignores_it(project: Project, lock: ScopeLock) -> None:
    """Nor is it because the project ignores a file of the same name."""
    subprocess.run(["git", "init", "-q", str(project.root.parent)], check=True)
    (project.root.parent / ".gitignore").write_text("*.log\n")
    write(project, ".gitignore", "*.log\n")
    lock.set("S-1", ["src/a.py"])
    outside = str(project.root.parent / "x.log")
    assert decisions(lock, "../x.log", outside, "x.log") == ["BLOCKED", "BLOCKED", "IN_SCOPE"]
    Path(outside).write_text("there")
    here, there = lock.check("S-1", [str(project.root / "x.log"), "x.log"], cwd=str(project.root.parent))
    assert (here.decision, there.decision, here.path, there.path) == ("IN_SCOPE", "BLOCKED", "x.log", "x.log")


def test_without_git_everything_is_as_strict(tmp_path: Path) -> None:
    with Breaker.open(project=tmp_path) as breaker:
        lock = ScopeLock(breaker)
        lock.set("S-1", ["src/a.py"])
        assert decisions(lock, "src/a.py", "src/b.py") == ["IN_SCOPE", "BLOCKED"]
    with Breaker.open("memory:") as bare:
        refused(lambda: ScopeLock(bare), "a scope needs a project")


# -- justifications -------------------------------------------------------------------------------------------


def test_a_justification_lets_exactly_that_file_pass(project: Project, lock: ScopeLock) -> None:
    lock.set("S-1", ["src/users"])
    lock.set("S-2", ["src/other"])
    record = lock.justify("S-1", "src/shared/errors.ts", **WHY, cwd=lock.root)
    assert record == {"file": "src/shared/errors.ts", **WHY, "at": record["at"]}
    assert decisions(lock, "src/shared/errors.ts", "src/shared/errors.tsx", "src/shared") == [
        *("JUSTIFIED", "BLOCKED", "BLOCKED")
    ]
    assert decisions(lock, "src/shared/errors.ts", slice="S-2") == ["BLOCKED"]
    assert lock.justifications("S-1") == [record]
    assert lock.violations("S-1", ["src/users/a.ts", "src/shared/errors.ts", "src/x.ts"]) == [
        {"file": "src/shared/errors.ts", "justification": f"{WHY['reason']} — {WHY['relationship']}"},
        {"file": "src/x.ts", "justification": "none given"},
    ]
    assert lock.violations("S-1", ["src/users/a.ts"]) == []


def test_justifications_outlive_another_scope(lock: ScopeLock) -> None:
    lock.set("S-1", ["src/users"])
    lock.justify("S-1", "src/a.ts", **WHY, cwd=lock.root)
    lock.set("S-1", ["src/others"])
    assert [record["file"] for record in lock.justifications("S-1")] == ["src/a.ts"]
    lock.set("S-1", [])
    assert [record["file"] for record in lock.justifications("S-1")] == ["src/a.ts"]


def test_the_same_file_again_replaces_and_the_oldest_are_forgotten(lock: ScopeLock) -> None:
    lock.set("S-1", ["src/users"])
    for number in range(KEPT + 5):
        lock.justify("S-1", f"lib/{number}.ts", **WHY, cwd=lock.root)
    lock.justify("S-1", "lib/100.ts", **{**WHY, "reason": "Another reason altogether"}, cwd=lock.root)
    files = [record["file"] for record in lock.justifications("S-1")]
    assert len(files) == len(set(files)) == KEPT
    assert (files[0], files[-1]) == ("lib/5.ts", "lib/100.ts")
    assert lock.justifications("S-1")[-1]["reason"] == "Another reason altogether"


@pytest.mark.parametrize("field", ["test", "reason", "relationship"])
@pytest.mark.parametrize(
    "text", ["", "  ", "n/a", "N/A.", "-", "--", "none", "TBD", "...", "foo foo foo", "a A a", "<why>"]
)
def test_a_field_that_says_nothing_is_refused(lock: ScopeLock, field: str, text: str) -> None:
    lock.set("S-1", ["src/users"])
    with pytest.raises(Unjustifiable, match="unjustifiable"):
        lock.justify("S-1", "src/a.ts", **{**WHY, field: text}, cwd=lock.root)
    assert lock.justifications("S-1") == []


def test_the_blanks_of_our_own_command_are_no_justification(lock: ScopeLock) -> None:
    lock.set("S-1", ["src/users"])
    for name, blank in BLANKS.items():
        with pytest.raises(Unjustifiable):
            lock.justify("S-1", "src/a.ts", **{**WHY, name: blank}, cwd=lock.root)
    with pytest.raises(Unjustifiable, match="the same"):
        lock.justify(
            "S-1", "src/a.ts", test="test_a", reason="It is needed", relationship="it is needed!", cwd=lock.root
        )
    refused(lambda: lock.justify("S-1", "a.ts", **{**WHY, "reason": "long " * 300}, cwd=lock.root), "--reason", "1000")


@pytest.mark.parametrize(
    "name",
    [
        "GRAPH.json",
        "contracts/a.md",
        ".greenlight/CONTRACTS.md",
        "fusewire.toml",
        ".fusewire/scope.bin",
        ".prp-session/circuit-breaker.json",
        ".claude/x.json",
        ".git/config",
        "vendor/lib/.git/config",
    ],
)
def test_some_files_no_justification_opens(lock: ScopeLock, name: str) -> None:
    lock.set("S-1", ["src/users"])
    with pytest.raises(Unjustifiable, match=r"only a person|Fusewire's own, and|git's own data"):
        lock.justify("S-1", name, **WHY, cwd=lock.root)
    with pytest.raises(Unjustifiable, match="outside the project"):
        lock.justify("S-1", "/etc/hosts", **WHY, cwd=lock.root)


def test_a_link_to_a_protected_file_is_not_opened_either(project: Project, lock: ScopeLock) -> None:
    lock.set("S-1", ["src/users"])
    write(project, "GRAPH.json", {"slices": []})
    (project.root / "notes.json").symlink_to("GRAPH.json")
    with pytest.raises(Unjustifiable, match=r"GRAPH\.json"):
        lock.justify("S-1", "notes.json", **WHY, cwd=lock.root)


def test_what_needs_no_justification(project: Project, lock: ScopeLock) -> None:
    with pytest.raises(NoScope):
        lock.justify("S-1", "a.ts", **WHY, cwd=lock.root)
    lock.set("S-1", ["src/users"])
    refused(lambda: lock.justify("S-1", "src/users/a.ts", **WHY, cwd=lock.root), "in scope", "already")
    (project.root / "lib").mkdir()
    refused(lambda: lock.justify("S-1", "lib", **WHY, cwd=lock.root), "folder", "one file")


def test_what_can_be_given_has_limits(lock: ScopeLock) -> None:
    refused(lambda: lock.set("S-1", [f"a/{number}" for number in range(501)]), "501", "500")
    for bad in ("../x", "/etc", "", "a\nb"):
        refused(lambda bad=bad: lock.set("S-1", [bad]), "scope set", "allowed")  # type: ignore[misc]
    with pytest.raises(NoScope):
        lock.scope("S-1")


def test_the_session_of_an_agents_process() -> None:
    assert session_of({}) is None
    assert session_of({"CLAUDE_CODE_SESSION_ID": "", "CODEX_THREAD_ID": "t"}) == "t"
    assert session_of({"CLAUDE_CODE_SESSION_ID": "s", "CODEX_THREAD_ID": "t"}) == "s"


def test_damage_in_the_store_is_said(project: Project, lock: ScopeLock) -> None:
    """It neither becomes an empty scope nor a traceback, and a person can write it anew."""
    with lock.breaker.store.transact() as transaction:
        transaction.remember("scope:S-1", {"patterns": "src", "justifications": [1, {"file": 2}]}, 1.0)
    refused(lambda: lock.scope("S-1"), "the scope of S-1 is damaged", "fusewire scope set S-1")
    lock.set("S-1", [])
    lock.set("S-1", ["src/a.py"])
    assert patterns(lock) == {"src/a.py"}
    assert lock.justifications("S-1") == []
    with lock.breaker.store.transact() as transaction:
        transaction.remember("scope:S-1", {"patterns": ["src/a.py"], "justifications": 5}, 1.0)
    assert decisions(lock, "src/a.py", "src/b.py") == ["IN_SCOPE", "BLOCKED"]


# -- the command ----------------------------------------------------------------------------------------------


@pytest.fixture
def here(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """In the project's folder, so that commands can run in this process."""
    monkeypatch.chdir(project.root)
    return project


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["scope", *arguments])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_check_says_it_for_every_path(here: Project, capsys: pytest.CaptureFixture[str]) -> None:
    graph(here, packages=["src/users"])
    code, out, err = run(capsys, "check", "S-1", "src/users/service.py", "src/b.py", "/etc/hosts")
    assert code == 3
    assert out.splitlines() == [
        "IN SCOPE src/users/service.py (GRAPH.json: packages src/users)",
        "BLOCKED src/b.py: outside the scope of S-1",
        "BLOCKED /etc/hosts: outside the project",
    ]
    assert "fusewire scope justify S-1 src/b.py --test '<failing test>' --reason" in err
    assert "fusewire attempt arch-stop S-1 --reason" in err
    assert run(capsys, "check", "S-1", "src/users/service.py") == (
        *(0, "IN SCOPE src/users/service.py (GRAPH.json: packages src/users)\n", ""),
    )


def test_check_as_json(here: Project, capsys: pytest.CaptureFixture[str]) -> None:
    graph(here, packages=["src/users"])
    code, out, _ = run(capsys, "check", "S-1", "src/users/a.py", "src/b.py", "--json")
    assert code == 3
    data = json.loads(out)
    assert (data["slice"], data["rule"], data["decision"]) == ("S-1", "scope.S-1", "BLOCKED")
    assert data["paths"] == [
        {"path": "src/users/a.py", "decision": "IN_SCOPE", "source": "GRAPH.json: packages src/users", "reason": ""},
        {"path": "src/b.py", "decision": "BLOCKED", "source": None, "reason": "outside the scope of S-1"},
    ]
    assert any("scope justify S-1 src/b.py" in step for step in data["next"])
    data = json.loads(run(capsys, "check", "S-1", "src/users/a.py", "--json")[1])
    assert (data["decision"], data["next"]) == ("ALLOWED", [])


def test_check_takes_what_is_staged(here: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """New, changed, deleted, both ends of a rename, links as what they are; not what is unstaged."""
    for name in ("src/users/a.py", "src/old/moved.py", "src/old/gone.py", "src/old/kept.py"):
        write(here, name, f"{name}\n" * 20)
    git(here, "add", "-A")
    git(here, "commit", "-qm", "x")
    graph(here, packages=["src/users"])
    assert run(capsys, "check", "S-1", "--staged") == (0, "", "nothing is staged\n")
    git(here, "mv", "src/old/moved.py", "src/users/moved.py")
    git(here, "rm", "-q", "src/old/gone.py")
    write(here, "src/users/ü name.py", "new\n")
    (here.root / "src/users/link.py").symlink_to("../old/kept.py")
    git(here, "add", "src/users")
    write(here, "src/old/kept.py", "changed, not staged\n")
    code, out, _ = run(capsys, "check", "S-1", "--staged", "--json")
    assert code == 3
    assert {one["path"]: one["decision"] for one in json.loads(out)["paths"]} == {
        "src/users/ü name.py": "IN_SCOPE",
        "src/users/moved.py": "IN_SCOPE",
        "src/users/link.py": "IN_SCOPE",
        "src/old/moved.py": "BLOCKED",
        "src/old/gone.py": "BLOCKED",
    }
    git(here, "reset", "-q")
    git(here, "add", "src/users/ü name.py")
    assert run(capsys, "check", "S-1", "--staged")[0] == 0


def test_staged_needs_a_repository(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(Project(tmp_path), "GRAPH.json", {"slices": {"S-1": {"packages": ["a/b"]}}})
    code, out, err = run(capsys, "check", "S-1", "--staged", "--project", str(tmp_path))
    assert (code, out) == (1, "")
    assert err.startswith("Error: the staged files cannot be listed")
    assert err.count("\n") == 1


def test_since_the_checkpoint(here: Project, capsys: pytest.CaptureFixture[str]) -> None:
    from fusewire.breakers.attempt.tracker import Attempts

    graph(here, packages=["src/users"])
    write(here, "src/b.py", "b\n")
    git(here, "add", "-A")
    git(here, "commit", "-qm", "x")
    code, out, err = run(capsys, "check", "S-1", "--since-checkpoint")
    assert (code, out, err.count("\n")) == (1, "", 1)
    with Breaker.open(project=here.root) as breaker:
        Attempts(breaker).start("S-1", "test_a")
    write(here, "src/users/new.py", "new\n")
    assert run(capsys, "check", "S-1", "--since-checkpoint")[:2] == (
        *(0, "IN SCOPE src/users/new.py (GRAPH.json: packages src/users)\n"),
    )
    write(here, "src/b.py", "changed\n")
    code, out, _ = run(capsys, "check", "S-1", "--since-checkpoint")
    assert code == 3
    assert "BLOCKED src/b.py: outside the scope of S-1\n" in out


def test_justify_prints_the_protocols_block(here: Project, capsys: pytest.CaptureFixture[str]) -> None:
    graph(here, packages=["src/users"])
    fields = [word for name, text in WHY.items() for word in (f"--{name}", text)]
    assert run(capsys, "justify", "S-1", "src/shared/errors.ts", *fields) == (
        0,
        "File: src/shared/errors.ts\n"
        "Failing test: TestUserRegistration_ReturnsConflictOnDuplicateEmail\n"
        "Reason: Error factory function needed to standardise the error key\n"
        "Relationship: The contract (C-12) references the error shape\n",
        "",
    )
    assert run(capsys, "check", "S-1", "src/shared/errors.ts") == (
        0,
        f"JUSTIFIED src/shared/errors.ts (needed by {WHY['test']})\n",
        "",
    )
    data = json.loads(run(capsys, "justify", "S-1", "src/c.ts", *fields, "--json")[1])
    assert (data["decision"], data["file"], data["at"][-1]) == ("JUSTIFIED", "src/c.ts", "Z")
    code, out, err = run(capsys, "justify", "S-1", "GRAPH.json", *fields)
    assert (code, out) == (3, "")
    assert err.startswith("BLOCKED scope.S-1: GRAPH.json defines what is in scope")
    assert "arch-stop S-1" in err
    code, out, _ = run(
        capsys, "justify", "S-1", "src/d.ts", "--test", "t", "--reason", "n/a", "--relationship", "r", "--json"
    )
    assert (code, json.loads(out)["decision"]) == (3, "BLOCKED")
    assert run(capsys, "justify", "S-1", "src/d.ts", "--test", "t", "--reason", "r")[0] == 2


def test_set_is_for_a_person(
    here: Project, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(capsys, "set", "S-1", "src/a.py", "tests/")[:2] == (
        0,
        "S-1: only these are in scope now: src/a.py, tests/\n",
    )
    code, _, err = run(capsys, "set", "S-1")
    assert (code, "give at least one PATTERN, or --clear" in err) == (2, True)
    code, _, err = run(capsys, "set", "S-1", "--clear", "x")
    assert (code, "give no PATTERN with it" in err) == (2, True)
    monkeypatch.setenv("CLAUDECODE", "1")
    for words in (("set", "S-1", "."), ("set", "S-1", "--clear")):
        code, out, err = run(capsys, *words)
        assert (code, out) == (3, "")
        assert "for a person" in err
    assert run(capsys, "check", "S-1", "src/b.py")[0] == 3
    monkeypatch.delenv("CLAUDECODE")
    assert json.loads(run(capsys, "set", "S-1", "--clear", "--json")[1]) == {"slice": "S-1", "files_in_scope": []}
    code, out, err = run(capsys, "check", "S-1", "src/b.py")
    assert (code, out) == (1, "")
    assert err.startswith("Error: no scope is defined for S-1: ")


def test_set_warns_of_what_matches_nothing_now(here: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """It is accepted all the same: the slice may be there to make it."""
    write(here, "src/a.py", "a\n")
    write(here, "node_modules/x.ts", "x\n")
    given = ("src/a.py", "src/", "src/*.py", "**/*.ts", "nonexist/", "src/new.py", ".")
    code, out, err = run(capsys, "set", "S-1", *given, "--json")
    assert (code, json.loads(out)["files_in_scope"]) == (0, list(given))
    assert err.splitlines() == [
        f"Warning: nothing is there now that {pattern} matches" for pattern in ("**/*.ts", "nonexist/", "src/new.py")
    ]
    assert run(capsys, "set", "S-1", "src/")[2] == ""


def test_our_own_state_is_nobodys_change(here: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """Left out of a diff; blocked by name, and no justification is offered."""
    from fusewire.breakers.attempt.tracker import Attempts

    graph(here, packages=["src/users"])
    git(here, "add", "-A")
    git(here, "commit", "-qm", "x")
    own = (
        ".fusewire/notes.txt",
        ".prp-session/circuit-breaker.json",
        ".prp-session/circuit-breaker.json.edited-1",
        ".prp-session/circuit-breaker.20260101T000000Z.json",
        ".prp-session/.gitignore",
        "docs/constraints/.circuit-state.json",
        "docs/constraints/.circuit-state-archive.json",
    )
    with Breaker.open(project=here.root) as breaker:
        Attempts(breaker).start("S-1", "test_a")
        for name in own:
            write(here, name, "{}\n")
        assert ScopeLock(breaker).violations("S-1", [*own, "src/b.py"]) == [
            {"file": "src/b.py", "justification": "none given"}
        ]
    git(here, "add", "-Af", *own)
    assert run(capsys, "check", "S-1", "--staged", "--since-checkpoint")[:2] == (0, "")
    write(here, ".prp-session/plan.md", "work\n")
    git(here, "add", "-Af", ".prp-session/plan.md")
    assert "BLOCKED .prp-session/plan.md: outside" in run(capsys, "check", "S-1", "--staged")[1]
    for name in own:
        code, out, err = run(capsys, "check", "S-1", name)
        assert (code, out) == (3, f"BLOCKED {name}: it is Fusewire's own, and nobody else changes it\n")
        assert "scope justify" not in err
        assert "leave it alone" in err


def test_gits_own_data_belongs_to_no_slice(here: Project, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "set", "S-1", ".")
    code, out, err = run(capsys, "check", "S-1", ".git/config", "src/x.py", ".gitignore")
    assert (code, out.splitlines()[0]) == (3, "BLOCKED .git/config: it is git's own data, and belongs to no slice")
    assert out.count("IN SCOPE") == 2
    assert "scope justify" not in err


def test_a_folder_is_asked_for_file_by_file(here: Project, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("src/users/a.py", "src/billing/tax.py", "src/billing/deep/x.py", "src/billing/a.log", "empty/x.log"):
        write(here, name, "x\n")
    graph(here, packages=["src/users"])
    code, out, err = run(capsys, "check", "S-1", "src", "src/billing", "empty")
    assert code == 3
    assert out.splitlines() == [
        "BLOCKED src: a folder, and src/billing/tax.py in it is outside the scope of S-1",
        "BLOCKED src/billing: a folder, and src/billing/tax.py in it is outside the scope of S-1",
        "BLOCKED empty: outside the scope of S-1 as a folder; ask for one file at a time",
    ]
    assert err.count("fusewire scope justify") == err.count("justify S-1 src/billing/tax.py --test") == 1
    code, out, err = run(capsys, "check", "S-1", ".")
    assert (
        out == "BLOCKED .: a folder, and GRAPH.json in it defines what is in scope, and only a person may change it\n"
    )
    assert "scope justify" not in err


@pytest.mark.parametrize("name", [b"lib/a\nb.py", b"lib/\xff1.py", b"lib/it's \\ a\tb\x01\xc3\xbc.py", b"-x.py"])
def test_the_command_that_is_suggested_runs_in_bash_whatever_the_name_is(
    here: Project, capsys: pytest.CaptureFixture[str], name: bytes
) -> None:
    graph(here, packages=["src/users"])
    git(here, "add", "GRAPH.json")
    git(here, "commit", "-qm", "x")
    path = os.path.join(os.fsencode(here.root), name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(b"x\n")
    git(here, "add", "-A")
    code, out, err = run(capsys, "check", "S-1", "--staged")
    assert (code, out.count("\n")) == (3, 1)
    line = next(line for line in err.splitlines() if "scope justify" in line).removeprefix("Next: fusewire")
    for blank, text in zip(BLANKS.values(), WHY.values(), strict=True):
        line = line.replace(f"'{blank}'", f"'{text}'")
    shell = ["bash", "-c", f"exec {sys.executable} -m fusewire{line} --json"]
    result = subprocess.run(shell, cwd=here.root, capture_output=True, timeout=60, check=False)
    assert result.returncode == 0, result.stderr
    assert os.fsencode(json.loads(result.stdout)["file"]) == name
    code, out, err = run(capsys, "check", "S-1", "--staged")
    assert (code, out.startswith("JUSTIFIED "), out.count("\n")) == (0, True, 1)
    data = json.loads(run(capsys, "check", "S-1", "--staged", "--json")[1])
    assert os.fsencode(data["paths"][0]["path"]) == name
    assert f"File: {out[len('JUSTIFIED ') :].rpartition(' (')[0]}\n" in run(capsys, "show", "S-1")[1]


def test_ignored_names_with_a_line_break_are_free_too(project: Project, lock: ScopeLock) -> None:
    lock.set("S-1", ["src/a.py"])
    write(project, ".gitignore", "build/\n")
    assert decisions(lock, "build/a\nb.o", "src/a\nb.o2") == ["IN_SCOPE", "BLOCKED"]


def test_show(here: Project, capsys: pytest.CaptureFixture[str]) -> None:
    graph(here, packages=["src/users"], deliverables=["docs/users.md"])
    fields = [word for name, text in WHY.items() for word in (f"--{name}", text)]
    run(capsys, "justify", "S-1", "src/c.ts", *fields)
    code, out, _ = run(capsys, "show", "S-1")
    assert code == 0
    assert out.startswith(
        "In scope of S-1\n  src/users  (GRAPH.json: packages src/users)\n  docs/users.md  (GRAPH.json"
    )
    assert "  File: src/c.ts\n" in out
    assert "Not under way" in out
    with Breaker.open(project=here.root) as breaker:
        ScopeLock(breaker).activate("S-1", "abc")
    data = json.loads(run(capsys, "show", "S-1", "--json")[1])
    assert data["scope"][0] == {"pattern": "src/users", "source": "GRAPH.json: packages src/users"}
    assert (data["explicit"], data["under_way"], data["sessions"]) == (False, True, ["abc"])
    assert data["justifications"][0]["file"] == "src/c.ts"
    assert "Under way in session abc" in run(capsys, "show", "S-1")[1]


def test_the_real_program_from_a_subfolder(project: Project) -> None:
    """One process for all: the group is registered, and paths are meant from where one stands."""
    graph(project, packages=["src/users"])
    write(project, "src/users/a.py", "a")
    result = subprocess.run(
        [sys.executable, "-m", "fusewire", "scope", "check", "S-1", "a.py", "../b.py"],
        cwd=project.root / "src/users",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 3, result.stderr
    first, second = result.stdout.splitlines()
    assert first.startswith("IN SCOPE src/users/a.py")
    assert second == "BLOCKED src/b.py: outside the scope of S-1"


def test_the_examples_of_the_documentation_hold(project: Project, lock: ScopeLock) -> None:
    text = (ROOT / "docs" / "scope.md").read_text()
    write(project, "GRAPH.json", text.split("```json\n")[1].split("```")[0])
    write(project, "CONTRACTS.md", text.split("```markdown\n")[1].split("```")[0])
    contract = {"src/users/service.ts", "app/store", "src/app/store", "app/store.py", "src/app/store.py"}
    packages = {"internal/users", "src/users/", "app/users", "src/app/users", "app/users.py", "src/app/users.py"}
    assert patterns(lock) == contract | packages | {"docs/users.md", "migrations/*_users.sql"}
    assert patterns(lock, "S-2") == {"src/billing/pay.py"}
    compile(text.split("```python\n")[1].split("```")[0], "docs/scope.md", "exec")
