"""Which files and packages a contract's text refers to.

A text is mostly prose, so what is no clear reference is none: code blocks, routes (`/users`), media types, addresses,
words with a slash between them, and sentences that say what must not be touched.
"""

from __future__ import annotations

import re

from fusewire.breakers.attempt.scope.patterns import ENDINGS, ending

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+|\s*\|")
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_ADDRESS = re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s`)>\]]+", re.IGNORECASE)
_SPAN = re.compile(r"(`+)([^`]+)\1")
_LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]+)[^)]*\)")
_PACKAGES = re.compile(
    r"\bpackages?\b[\s:*_]*(?P<names>`[^`\s]+`(?:(?:\s*,\s*|\s+)(?:and\s+|or\s+|&\s+)?`[^`\s]+`)*)", re.IGNORECASE
)
_WORD = re.compile(r"[\w.@+*?\[\]/-]+")
_TOP_LEVEL = re.compile(r"[\w-]+(?:\.[\w-]+)*\.(?:com|dev|io|net|org)")
_BRAND = re.compile(r"[A-Z][A-Za-z]*\.(?:js|ts|io)")

_VERBS = r"(?:touch|modify|change|edit|alter|write|create|delete|remove|rename|move)"
_DONE = r"(?:touched|modified|changed|edited|altered|written|created|deleted|removed|renamed|moved)"
_FORBIDDEN = re.compile(
    rf"(?:\bnot|n't|\bnever)\s+{_VERBS}\b(?:\s+(?:to|the|any|anything|file|files|folder|package|code|in|of))*"
    rf"\s+[`*_\[]*[\w.@-]+[/.]\w"
    rf"|(?:\bnot|n't|\bnever)\s+be\s+{_DONE}\b"
    r"|\bwithout\s+(?:touching|modifying|changing|editing)\b"
    r"|\bout[- ]of[- ]scope\b|\bnot\s+(?:in|within|part\s+of)\s+(?:the\s+)?(?:scope|slice)\b"
    r"|\boutside\s+(?:of\s+)?(?:the\s+|this\s+)?(?:scope|slice)\b|\boff[- ]limits\b"
    r"|\b(?:remains?|stays?|left|leave\s+\S+)\s+(?:as\s+(?:it|they)\b|unchanged|untouched|alone)",
    re.IGNORECASE,
)

_MEDIA = frozenset(("application", "audio", "font", "image", "message", "model", "multipart", "text", "video"))
_NAMES = frozenset(("Dockerfile", "Makefile", "Rakefile", "Gemfile", "Procfile", "Justfile", "Jenkinsfile"))


def prose(lines: list[str]) -> list[str]:
    """The lines without blocks of code."""
    kept = []
    fence = ""
    for line in lines:
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and fence and mark[1].startswith(fence):
            fence = ""
        elif not fence:
            kept.append(line)
    return kept


def references(lines: list[str]) -> tuple[list[str], list[str]]:
    """The paths and the packages that lines of prose refer to, as they are written there."""
    paths: dict[str, None] = {}
    packages: dict[str, None] = {}
    for sentence in _sentences(lines):
        if _FORBIDDEN.search(sentence):
            continue
        for found in _PACKAGES.finditer(sentence):
            packages |= dict.fromkeys(name for name in found["names"].split("`")[1::2] if _WORD.fullmatch(name))
        sentence = _PACKAGES.sub(" ", sentence)
        for span in _SPAN.finditer(sentence):
            path = _path(span[2].strip(), quoted=True)
            if path:
                paths[path] = None
        rest = _LINK.sub(r" \1 \2 ", _SPAN.sub(" ", sentence))
        for word in re.split(r"[\s,;|]+", rest):
            path = _path(word.lstrip("(\"'[<*_").rstrip(".:!?)\"'>*_"), quoted=False)
            if path:
                paths[path] = None
    return list(paths), list(packages)


def _sentences(lines: list[str]) -> list[str]:
    """Lines that belong together as one, and then apart again where a sentence ends."""
    paragraphs = [""]
    for line in lines:
        if not line.strip() or _ITEM.match(line):
            paragraphs.append("")
        paragraphs[-1] += f" {_ADDRESS.sub(' ', line).strip()}"
    return [sentence for paragraph in paragraphs for sentence in _SENTENCE.split(paragraph) if sentence.strip()]


def _path(word: str, *, quoted: bool) -> str:
    """The path that a word is; empty if it is none."""
    word = word.partition("#")[0].partition("::")[0]
    word = re.sub(r"(?::\d+)+$", "", word).removeprefix("./")
    if not _WORD.fullmatch(word) or word.startswith(("/", "-", "@")) or ".." in word.split("/"):
        return ""
    parts = [part for part in word.split("/") if part]
    known = ending(word) in ENDINGS or (bool(parts) and parts[-1] in _NAMES)
    if "/" not in word:
        if quoted:
            return word if known else ""
        return word if known and len(ending(word)) > 1 and not _BRAND.fullmatch(word) else ""
    if not parts or parts[0] in _MEDIA or _TOP_LEVEL.fullmatch(parts[0]):
        return ""
    if known or word.endswith("/") or "*" in word:
        return word
    return word if quoted and not word.isupper() and not parts[0].isdigit() else ""
