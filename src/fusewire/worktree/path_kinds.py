"""Classify files by their paths: a test, a by-product that no one wrote by hand, or neither."""

from __future__ import annotations

import re

#: Folders that hold what programs left behind: they are not searched for repositories or files either.
CACHES = frozenset(
    ".cache .eggs .fusewire .git .gradle .hg .hypothesis .mypy_cache .next .nox .nuxt .nyc_output .parcel-cache"
    " .pytest_cache .ruff_cache .svelte-kit .svn .terraform .tox .turbo .venv .yarn __pycache__ bower_components"
    " htmlcov node_modules target venv".split()
)

#: Folders of output at the top; further below they may hold sources.
_OUTPUT = frozenset("build coverage dist log logs out temp tmp".split())

_LOCKS = frozenset(
    "package-lock.json npm-shrinkwrap.json pnpm-lock.yaml bun.lockb go.sum go.work.sum gradle.lockfile"
    " packages.lock.json project.assets.json .terraform.lock.hcl package.resolved cartfile.resolved".split()
)
_BY_PRODUCT = re.compile(
    r".*(?:\.lock|\.log|\.log\.\d+|\.py[cod]|\.sw[a-p]|\.tmp|\.temp|~|\.orig|\.rej|\.bak|\.o|\.class|\.pid"
    r"|[.-]min\.(?:js|css|mjs)|\.map|_pb2(?:_grpc)?\.pyi?|\.pb\.go|\.tsbuildinfo)"
    r"|\.coverage(?:\..*)?|\.ds_store|thumbs\.db|\.#.*|\.eslintcache|coverage\.xml|lcov\.info|nohup\.out",
    re.DOTALL,
)

_TEST_FOLDERS = frozenset("__tests__ e2e spec test tests".split())
_TEST_NAME = re.compile(
    r"test_.*\.pyi?|.*_test\.(?:py|go|exs?|dart|cc|cpp|c|rb|clj|lua)|conftest\.py|.*[._-](?:test|spec)\.[cm]?[jt]sx?"
    r"|(?:Test\w*|\w+(?:Test|Tests|Spec|IT))\.(?:java|kt|kts|scala|groovy|cs|fs|swift|php)|.*_spec\.(?:rb|lua)|.*\.bats"
    r"|test_.*\.(?:c|cc|cpp|rb|sh|rs|jl|lua)|.*_tests?\.rs",
    re.DOTALL,
)
#: Text about tests, and specifications, are no tests.
_DOCUMENTS = (".md", ".mdx", ".rst", ".adoc")


def is_test(path: str) -> bool:
    *folders, name = path.split("/")
    if name.lower().endswith(_DOCUMENTS):
        return False
    return not _TEST_FOLDERS.isdisjoint(folders) or _TEST_NAME.fullmatch(name) is not None


def is_by_product(path: str) -> bool:
    """Whether the path names a lock file, a log, a cache, an artefact or generated code."""
    *folders, name = path.split("/")
    if not CACHES.isdisjoint(folders) or not _OUTPUT.isdisjoint(folders[:1]):
        return True
    name = name.lower()
    return name in _LOCKS or _BY_PRODUCT.fullmatch(name) is not None


def is_state(path: str) -> bool:
    """Whether it is our own state, or git's, or what agents remember and log beside their work."""
    return not {".fusewire", ".git", ".prp-session"}.isdisjoint(path.split("/")) or "/.claude/memory/" in f"/{path}"
