"""The documentation is kept true by tests."""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

import fusewire
from tests.helpers import ROOT, SOURCE


def generator():  # type: ignore[no-untyped-def]
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["cli.md", "configuration.md", "public-api.txt"])
def test_the_generated_pages_are_current(name: str) -> None:
    """Every --help and every setting stands in docs/; `make docs` writes them anew."""
    assert (ROOT / "docs" / name).read_text() == generator().PAGES[name]()


def test_the_readme_names_both_commands_right_after_its_first_sentences() -> None:
    lines = (ROOT / "README.md").read_text().splitlines()
    assert lines[6].split()[:2] == ["make", "run"]
    assert lines[7].split()[:2] == ["make", "test"]


def test_links_in_the_readme_lead_somewhere() -> None:
    text = (ROOT / "README.md").read_text()
    links = [part.split(")")[0] for part in text.split("](")[1:]]
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_the_readme_example_is_python() -> None:
    text = (ROOT / "README.md").read_text()
    ast.parse(text.split("```python\n")[1].split("```")[0])


#: `guard/check.py`, `src/fusewire/testruns/`, `tests/data/payloads/`: our own files, as pages name them.
OWN_FILE = re.compile(
    r"`((?:src/fusewire|tests|e2e|bench|"
    + "|".join(one.name for one in SOURCE.iterdir() if one.is_dir())
    + r")/[\w/.-]+)`"
)


@pytest.mark.parametrize("page", sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]), ids=lambda page: page.name)
def test_files_of_ours_that_a_page_names_exist(page: Path) -> None:
    if page.name == "CHANGELOG.md":
        return  # it tells of the past, too
    names = [name.rstrip("/") for name in OWN_FILE.findall(page.read_text())]
    places = {name: [start / f"{name}{end}" for start in (ROOT, SOURCE) for end in ("", ".py")] for name in names}
    assert [name for name, where in places.items() if not any(place.exists() for place in where)] == []


def python_blocks(page: Path) -> list[str]:
    return [part.split("```")[0] for part in page.read_text().split("```python\n")[1:]]


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.name)
def test_no_page_imports_a_private_module(page: Path) -> None:
    """What a page shows is what `from fusewire import ...` promises."""
    assert "from fusewire." not in "\n".join(python_blocks(page))
    assert "import fusewire." not in "\n".join(python_blocks(page))


@pytest.mark.parametrize("number", range(len(python_blocks(ROOT / "docs" / "api-python.md"))))
def test_the_examples_of_the_python_page_run(number: int, tmp_path: Path) -> None:
    script = python_blocks(ROOT / "docs" / "api-python.md")[number]
    result = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout


def test_the_python_page_names_every_public_name() -> None:
    page = (ROOT / "docs" / "api-python.md").read_text()
    assert [name for name in fusewire.__all__ if f"`{name}`" not in page] == []


def test_what_a_public_method_returns_is_public() -> None:
    """A program can write down the type of whatever it is given."""
    classes = {
        node.name
        for path in (ROOT / "src").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
    }
    returned = {
        word
        for line in generator().PAGES["public-api.txt"]().splitlines()
        for word in re.findall(r"\w+", line.rpartition("->")[2] if "->" in line else "")
    }
    assert sorted(returned & classes - set(fusewire.__all__)) == []
