"""Measure a test file: how many tests and assertions it has, and how many skip marks.

Counted by patterns, for the common languages. The number alone means little; that it fell, with nothing in its place,
means that something is tested no longer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

Shape = tuple[int, int, int]

NOTHING: Shape = (0, 0, 0)

_C_COMMENT = r"^[ \t]*(?://.*$|/\*[\s\S]*?\*/)"
_HASH_COMMENT = r"^[ \t]*#(?!\[).*$"
_SCRIPT_TEST = r"\b(?:it|test|specify|fit|Deno\.test)(?:\.\w+)*\s*(?:\(|`)"

#: suffixes -> comments, tests, assertions, skips. An assertion of a constant asserts nothing.
_LANGUAGES: dict[str, tuple[str, str, str, str]] = {
    "py pyi": (
        _HASH_COMMENT,
        r"^[ \t]*(?:async[ \t]+)?def[ \t]+test\w*[ \t]*\(",
        r"^[ \t]*assert\b(?![ \t]*\(?(?:True|1)\)?[ \t]*(?:,.*|#.*|;.*)?$)|\.assert[A-Z_]\w*\((?!True\))"
        r"|\bpytest\.(?:raises|warns|approx|fail)\b|\bassert_\w+\(",
        r"\bpytest\.(?:mark\.)?(?:skip|skipif|xfail|importorskip)\b|\bskip(?:If|Unless|Test)?\(|@(?:unittest\.)?skip\b"
        r"|\bexpectedFailure\b|^[ \t]*collect_ignore",
    ),
    "js jsx mjs cjs ts tsx mts cts": (
        _C_COMMENT,
        _SCRIPT_TEST,
        r"\bexpect(?:\.\w+)?\s*\((?!\s*true\s*\))|\bassert(?:\.\w+)*\s*\((?!\s*true\s*\))|\.should\b",
        r"\b(?:it|test|describe|context|suite)\.(?:\w+\.)*(?:skip|skipIf|only|todo|failing|fails|fixme)\b"
        r"|\b(?:xit|xtest|xdescribe|xcontext|fit|fdescribe)\s*\(",
    ),
    "go": (
        _C_COMMENT,
        r"^func (?:Test|Benchmark|Fuzz|Example)\w*\(|\bt\.Run\(",
        r"\b[tb]\.(?:Error|Errorf|Fatal|Fatalf|Fail|FailNow)\(|\b(?:assert|require|is|qt)\.\w+\(",
        r"\b[tb]\.Skip(?:f|Now)?\(|^//go:build ignore",
    ),
    "rs": (
        _C_COMMENT,
        r"#\[(?:\w+::)*(?:test|rstest|quickcheck|proptest)\b|#\[case\b",
        r"\b(?:debug_|prop_)?assert(?:_\w+)?!\s*\((?!\s*true\s*\))|#\[should_panic",
        r"#\[ignore\b",
    ),
    "java kt kts scala groovy cs fs": (
        _C_COMMENT,
        r"@(?:Test|ParameterizedTest|RepeatedTest|TestFactory|Property)\b|\[(?:Fact|Theory|Test|TestMethod|TestCase)\b"
        r"|^[ \t]*(?:test|it)\s*\(\"",
        r"\b[aA]ssert\w*\s*[.({](?!\s*true\s*\))|\bverify\w*\s*\(|\bshould\w*\b|\bExpect\w*\s*\(",
        r"@(?:Disabled|Ignore|Ignored)\b|\bSkip\s*=|\[Ignore\b|\bassume\w*\s*\(",
    ),
    "rb": (
        _HASH_COMMENT,
        r"^[ \t]*(?:it|specify|test|scenario|example|fit)\b\s*[('\"{d]|^[ \t]*def test_",
        r"\bexpect\b\s*[({]|\bassert\w*\b|\brefute\w*\b|\bis_expected\b|\.(?:should|must_|wont_)",
        r"^[ \t]*(?:xit|xdescribe|xcontext|xspecify|skip|pending|fit|fdescribe|fcontext)\b|,\s*:?(?:skip|pending)\b",
    ),
    "php": (
        _C_COMMENT,
        r"\bfunction test\w*\s*\(|#\[Test\]|@test\b|^[ \t]*(?:it|test)\(",
        r"(?:->|::)assert\w+\((?!\s*true\s*\))|\bexpect\(|->expectException\w*\(",
        r"\bmarkTest(?:Skipped|Incomplete)\b|->(?:skip|todo|only)\(",
    ),
    "c cc cpp cxx h hpp": (
        _C_COMMENT,
        r"\b(?:TEST|TEST_F|TEST_P|TYPED_TEST|TEST_CASE|SCENARIO|SUBCASE|SECTION|BOOST_\w*TEST_CASE|START_TEST)\s*\("
        r"|^(?:static )?(?:void|int) test_\w+\(",
        r"\b(?:ASSERT|EXPECT|CHECK|REQUIRE|BOOST_TEST|BOOST_CHECK|BOOST_REQUIRE|TEST_ASSERT)(?:_\w+)?\s*\("
        r"|\bassert\w*\s*\((?!\s*(?:true|1)\s*\))|\bck_assert\w*\(",
        r"\bGTEST_SKIP\b|\bDISABLED_|\bTEST_IGNORE\b|\bSKIP\(",
    ),
    "ex exs": (
        _HASH_COMMENT,
        r"^[ \t]*(?:test|property)\s+\"",
        r"\b(?:assert|refute)(?:_\w+)?\b(?! true$)",
        r"@(?:module|describe)?tag :?(?:skip|pending)",
    ),
    "swift": (
        _C_COMMENT,
        r"\bfunc test\w*\(|@Test\b",
        r"\bXCT(?:Assert\w*|Fail|Unwrap)\(|#(?:expect|require)\b",
        r"\bXCTSkip\w*|\.disabled\(",
    ),
    "sh bash bats": (
        _HASH_COMMENT,
        r"^[ \t]*@test\b|^[ \t]*(?:function )?test_?\w*\s*\(\)",
        r"^[ \t]*(?:assert\w*|refute\w*|\[\[?|test)\s",
        r"^[ \t]*skip\b",
    ),
}

_PATTERNS = {
    suffix: tuple(re.compile(pattern, re.MULTILINE) for pattern in patterns)
    for suffixes, patterns in _LANGUAGES.items()
    for suffix in suffixes.split()
}

#: Data that tests read: to drop one of these drops no test.
_DATA = frozenset(
    "bin cfg conf css csv db env gif golden gz html ico ini jpeg jpg json jsonl lock out pdf png snap sql svg toml tsv"
    " txt webp xml yaml yml zip".split()
)


def shape(path: str, text: str) -> Shape:
    """The tests, assertions and skips of a test file. One in a language that we cannot read counts as one test."""
    name, _, suffix = path.rpartition("/")[2].rpartition(".")
    patterns = _PATTERNS.get(suffix.lower())
    if patterns is None:
        return NOTHING if not name or suffix.lower() in _DATA or not text.strip() else (1, 0, 0)
    comment, *counted = patterns
    text = comment.sub("", text)
    tests, assertions, skips = (sum(1 for _ in pattern.finditer(text)) for pattern in counted)
    return tests, assertions, skips


def sums(shapes: Iterable[Shape]) -> Shape:
    tests, assertions, skips = map(sum, zip(NOTHING, *shapes, strict=True))
    return tests, assertions, skips


def is_weaker(new: Shape, old: Shape) -> bool:
    return new[0] < old[0] or new[1] < old[1] or new[2] > old[2]
