"""The shell reader against shfmt's tree, and against texts that no person writes.

No shell is asked for a decision; here two of them say whether our reader understands what they understand.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusewire.guard.shell import tree
from fusewire.guard.shell.commands import simple_commands
from fusewire.guard.shell.parser import parse
from tests.helpers import DATA
from tests.helpers.project import lines_run

CORPUS = sorted(
    {
        json.loads(line)["cmd"]
        for file in (DATA / "guard_corpus").rglob("*.jsonl")
        for line in file.read_text("utf-8").splitlines()
        if line.strip()
    }
)

# -- what shfmt reads ---------------------------------------------------------------------------------------

SHFMT = Path(sys.executable).with_name("shfmt")

#: "command" and its first word, or an operator and its target; None for a word that is not plain.
Found = tuple[str, str | None]


def our_parts(node: tree.Node) -> Iterator[Found]:
    """The first words of simple commands and the targets of redirections, in the order of the tree."""
    if isinstance(node, tree.Simple):
        for _, _, value in node.assignments:
            for word in value if isinstance(value, list) else [value]:
                yield from our_word(word)
        if node.words:
            yield ("command", node.words[0] if isinstance(node.words[0], str) else None)
        for word in node.words:
            yield from our_word(word)
    elif isinstance(node, tree.Sequence):
        for item, _ in node.items:
            yield from our_parts(item)
    elif isinstance(node, tree.AndOr):
        yield from our_parts(node.first)
        for _, item in node.rest:
            yield from our_parts(item)
    elif isinstance(node, tree.Pipeline):
        for item in node.commands:
            yield from our_parts(item)
    elif isinstance(node, (tree.Group, tree.Function)):
        yield from our_parts(node.body)
    elif isinstance(node, tree.If):
        for condition, body in node.branches:
            yield from our_parts(condition)
            yield from our_parts(body)
        if node.otherwise is not None:
            yield from our_parts(node.otherwise)
    elif isinstance(node, tree.While):
        yield from our_parts(node.condition)
        yield from our_parts(node.body)
    elif isinstance(node, tree.For):
        for word in node.words or []:
            yield from our_word(word)
        yield from our_parts(node.body)
    elif isinstance(node, tree.Case):
        yield from our_word(node.word)
        for patterns, body in node.branches:
            for word in patterns:
                yield from our_word(word)
            yield from our_parts(body)
    elif isinstance(node, tree.Test):
        for word in node.words:
            yield from our_word(word)
    for redirect in node.redirects:
        if redirect.operator in ("<<", "<<-"):
            yield ("<<", None)
        else:
            yield (redirect.operator, redirect.target if isinstance(redirect.target, str) else None)
        yield from our_word(redirect.target)


def our_word(word: tree.Word) -> Iterator[Found]:
    for part in word if isinstance(word, tuple) else ():
        if part[0] in (tree.COMMAND, tree.PROCESS):
            yield from our_parts(part[1])
        elif part[0] == tree.PARAMETER:
            yield from our_word(part[3])
        elif part[0] == tree.ARITHMETIC:
            yield from our_word(part[1])


def their_parts(node: Any, text: bytes) -> Iterator[Found]:
    """The same from shfmt's tree, whose keys stand in the order of the text."""
    if isinstance(node, list):
        for one in node:
            yield from their_parts(one, text)
    if not isinstance(node, dict):
        return
    if node.get("Type") == "CallExpr":
        first = (node.get("Args") or [None])[0]
        yield from their_parts(node.get("Assigns"), text)
        if first is not None:
            yield ("command", their_literal(first))
        yield from their_parts(node.get("Args"), text)
        return
    if node.get("Type") in ("DeclClause", "LetClause"):
        yield ("command", node["Variant"]["Value"] if "Variant" in node else "let")
        yield from their_parts(node.get("Args"), text)
        return
    if "OpPos" in node and "Word" in node and "Op" in node:  # a redirection
        operator = re.match(rb"&>>|<<<|<<-|&>|<<|<>|<&|>>|>\||>&|<|>", text[node["OpPos"]["Offset"] :])
        assert operator is not None
        sign = operator.group().decode()
        if sign in ("<<", "<<-"):
            yield ("<<", None)
            yield from their_parts(node.get("Hdoc"), text)
            return
        yield (sign, their_literal(node["Word"]))
        yield from their_parts(node["Word"], text)
        return
    redirections = node.get("Redirs")
    for key, value in node.items():
        if key not in ("Redirs", "Pos", "End"):
            yield from their_parts(value, text)
    yield from their_parts(redirections, text)


def their_literal(word: Any) -> str | None:
    """A word that is plain for us too: no quotes that shfmt keeps, no globs, no braces."""
    parts = word.get("Parts") or []
    if len(parts) == 1 and parts[0].get("Type") == "Lit":
        value: str = parts[0]["Value"]
        return None if any(mark in value for mark in "\\*?[{~") else value
    return None


def same(ours: list[Found], theirs: list[Found]) -> bool:
    """The same kinds in the same order, and the same words where shfmt has a plain one."""
    return len(ours) == len(theirs) and all(
        a[0] == b[0] and (b[1] is None or a[1] == b[1]) for a, b in zip(ours, theirs, strict=True)
    )


def test_shfmt_and_the_reader_see_the_same_commands_and_redirections() -> None:
    """For every command of the corpus: as many commands and redirections in the same order, with the same words."""
    texts = list(CORPUS)

    def asked(text: str) -> str:
        command = [str(SHFMT), "--to-json", "-ln", "bash"]
        return subprocess.run(command, input=text, capture_output=True, text=True, check=False).stdout

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(asked, texts))
    compared, differences = 0, []
    for text, answer in zip(texts, answers, strict=True):
        if not answer:
            continue
        compared += 1
        ours, theirs = list(our_parts(parse(text))), list(their_parts(json.loads(answer), text.encode()))
        if not same(ours, theirs):
            differences.append((text, ours, theirs))
    assert differences == []
    assert compared > 0.97 * len(texts)


# -- texts that nobody writes -------------------------------------------------------------------------------

#: Pieces that, repeated, tempt a reader to walk the same text again and again.
PIECES = [
    "a ", "a;", "'", '"', "`", "$(", "$(a) ", "(", ")", "\\", "\\\n", "#", "#a\n", "<", "<<", "<<a ", "<<a\n", "a<<x;",
    ">(", "<(a) ", "1>", "&", "|",
    "a=1 ", "if ", "$'", "\u00e9", "[[((", "[[ ", "[[ ( ", "[[ a =~ (", "[[ a;", "a=(", "a=([", "a[", "a[;", "a[b]",
    "a[b]=", "((", "((a) ", "$((", "$((a) ",
    "${", "${a[", "${a:-'", '"${a:-\'', '"${', "$[", "\n", "{ ", "{ a; ", "}", "a\n", "\"$(", "`a` ", "<<<a ",
    "case a in ", "a) ", "for a in ", "f() ", "f() { ",
    "a!(b)", "!(", "+(a ", "while a; do ", "then ", "! ", "time ", "coproc ", "a && ", "function f ", "a {b}>",
    "declare a=( ", "<<'a'\n", "<<-a\n\t", "a <<E\n$(", "<((",
]  # fmt: skip


@pytest.mark.parametrize("piece", PIECES)
def test_parsing_takes_linear_time(piece: str) -> None:
    """Four times the text takes about four times the steps, and a step is counted for every few characters."""
    short, long = (piece * (size // len(piece)) for size in (2000, 8000))
    steps = [lines_run(lambda text=text: parse(text), "/guard/shell/") for text in (short, long)]  # type: ignore[misc]
    assert 0 < steps[1] <= 5 * steps[0] + 2000
    assert steps[1] <= 150 * len(long)


@pytest.mark.parametrize("piece", PIECES)
def test_seventy_kilobytes_of_anything_are_parsed(piece: str) -> None:
    """The parser answers, and where the piece is a whole command, what stands at the end is in its tree."""
    text = piece * (70_000 // len(piece)) + "\nzap"
    node = parse(text)
    if piece in ("a ", "a;", "a\n", "\n", "#a\n", "a=1 ", "$(a) ", "<(a) ", "`a` ", "<<<a ", "a!(b)"):
        assert node.items
        assert ("command", "zap") in list(our_parts(node))


#: Loops in loops: each turn walks through what is inside again. Their walk is not measured here.
LOOPS: tuple[str, ...] = ()


@pytest.mark.parametrize("piece", [piece for piece in PIECES if piece not in LOOPS])
def test_long_lines_give_their_commands(piece: str) -> None:
    """Walking through them ends as well, with lists of words that are not empty."""
    found = simple_commands(piece * (20_000 // len(piece)) + "\nzap")
    assert all(words and all(isinstance(word, str) for word in words) for words in found)


#: What can be put into itself: before and behind.
NESTED = [
    ("$(", ")"), ('"$(', ')"'), ("(", ")"), ("{ ", "; }"), ("if a; then ", "; fi"), ("if ", "; then a; fi"),
    ("while a; do ", "; done"),
    ("for a in b; do ", "; done"), ("case a in a) ", ";; esac"), ("f() { ", "; }"), ("${a:-", "}"), ('"${a:-', '}"'),
    ("<(", ")"), ("$((", "))"), ("((", "))"),
    ("[[ ( ", " ) ]]"), ("a=(", ")"), ("a[", "]=1"), ("`", "`"), ("! ", ""), ("time ", ""), ("coproc ", ""),
    ("$[", "]"), ("a <<E\n$(", ")\nE\n"), ("eval '", "'"),
    ("bash -c \"", "\""),
]  # fmt: skip


#: Where text, a number or a value is nested, or quotes that end each other.
NOT_COMMANDS = (
    "${a:-",
    '"${a:-',
    "$((",
    "((",
    "[[ ( ",
    "a=(",
    "a[",
    "`",
    "$[",
    "a <<E\n$(",
    "eval '",
    'bash -c "',
    "coproc ",
    "(",
)


@pytest.mark.parametrize(("before", "behind"), NESTED)
def test_no_nesting_is_too_deep(before: str, behind: str) -> None:
    """Five levels are read; five thousand give an answer."""
    assert isinstance(parse(before * 5 + "zap" + behind * 5), tree.Sequence)
    deep = before * 5000 + "zap" + behind * 5000
    assert isinstance(parse(deep), tree.Sequence)
    if before not in LOOPS:
        assert isinstance(simple_commands(deep), list)


@pytest.mark.parametrize(
    "line", [before * 4 + "zap x" + behind * 4 for before, behind in NESTED if before not in NOT_COMMANDS]
)
def test_what_is_nested_four_times_is_found(line: str) -> None:
    """Four of the same inside each other: the command in the middle is one that runs."""
    found = list(our_parts(parse(line)))
    assert ("command", "zap") in found


@settings(max_examples=400, derandomize=True, deadline=None)
@given(st.text(max_size=80))
def test_no_unicode_raises(text: str) -> None:
    """Any characters at all give a tree and an answer."""
    assert isinstance(parse(text), tree.Sequence)
    assert isinstance(simple_commands(text), list)


INSERTED = [
    "'", '"', "`", "$(", ")", "(", "((", "))", "{ ", " }", "; }", ";", ";;", "&", "&&", "|", "||", "|&", "\n", " ", "<",
    ">", ">>", "<<E\n", "<<<", ">&",
    "2>", "&>", "$", "}", "\\", "\\\n", "#", " # ", "!", " ! ", "if ", " then ", "else ", "; fi", "fi", " do ",
    "; done", "done", "for i in ", "while ",
    "case x in ", "a)", ";; esac", "esac", " in ", "[[ ", " ]]", "x=(", "x=", "a", "1", "<(", "$((", "time ", "coproc ",
    "function f ", "f() ", "$'", '$"',
    "\t", "=", "-", "[", "]", "{a,b}", "until ", "select x in ", "elif a", "x[1]=", "+=", "export ", "{fd}>", "\r",
]  # fmt: skip

WORDS = [
    "'q q'", '"d $x"', "$x", "${y:-z}", "$(b)", "`c`", "x=1", "A=1 b", "if", "done", "in", "{", "}", "$((1+2))", "<(d)",
    "a{b,c}", "*.py", "\\;", "$'e\\n'",
    "a#b", "-x", "[ a ]", "~",
]  # fmt: skip
FIRST = [
    "a", "echo", "rm -rf", "git push", "x=1", "x=(a b)", "x+=1 b", "export k=v", "declare -a k=(a b)", "\\ls", "'q'",
    '"$e"', "$f", ":",
]  # fmt: skip
REDIRECTIONS = ["> o", ">> o", "< i", "2>&1", "&> o", ">| o", "<<< w", "<> f", "{fd}> o", "3<&-", "> $(e)"]


@settings(max_examples=600, derandomize=True, deadline=None)
@given(st.lists(st.sampled_from([*INSERTED, *PIECES]), max_size=40).map("".join))
def test_no_mixture_of_pieces_raises(text: str) -> None:
    """Nor does anything made of operators, brackets, quotes and reserved words."""
    assert isinstance(parse(text), tree.Sequence)
    assert all(simple_commands(text))


# -- what would run ---------------------------------------------------------------------------------------

#: The shell's own commands, which are listed as well, but do nothing to anybody.
OWN = (":", "[", "export", "false", "local", "read", "set", "shift", "true", "break", "continue")


@pytest.mark.parametrize(
    ("line", "commands"),
    [
        # variables
        ("x=a; rm $x", ["rm a"]),
        ("x='a b'; rm $x", ["rm a b"]),
        ("x='a b'; rm \"$x\"", ["rm|a b"]),
        ("x=a; x=b; rm $x", ["rm b"]),
        ("x=a; x+=b; rm $x", ["rm ab"]),
        ("x=a; y=$x.md; rm ${y}", ["rm a.md"]),
        ("export x=a; rm $x", ["rm a"]),
        ("x=rm; $x a", ["rm a"]),
        ("x='rm -rf'; $x a", ["rm -rf a"]),
        ("x=; rm $x a", ["rm a"]),
        ("x=a; (x=b); rm $x", ["rm a"]),
        ("x=a; { x=b; }; rm $x", ["rm b"]),
        # branches give both
        ("if a; then x=1; else x=2; fi; rm $x", ["a", "rm 1", "rm 2"]),
        ("x=1; if a; then x=2; fi; rm $x", ["a", "rm 2", "rm 1"]),
        ("x=1; a && x=2; rm $x", ["a", "rm 2", "rm 1"]),
        ("x=1; a || x=2; rm $x", ["a", "rm 2", "rm 1"]),
        ("if true; then rm a; else rm b; fi", ["rm a"]),
        ("false && rm a", []),
        ("true || rm a; rm b", ["rm b"]),
        ("if a; then rm b; elif c; then rm d; else rm e; fi", ["a", "rm b", "c", "rm d", "rm e"]),
        # loops
        ("for x in a b; do rm $x; done", ["rm a", "rm b"]),
        ("for x in a b; do for y in 1 2; do rm $x$y; done; done", ["rm a1", "rm a2", "rm b1", "rm b2"]),
        ("for x in {1..3}; do rm $x; done", ["rm 1", "rm 2", "rm 3"]),
        ("for x in a b; do :; done; rm $x", ["rm b"]),
        ("for x in a b; do rm $x; break; done", ["rm a"]),
        ("for x in a b c; do if [ $x = b ]; then continue; fi; rm $x; done", None),
        ("l='a b'; for x in $l; do rm $x; done", ["rm a", "rm b"]),
        ("while read x; do rm $x; done <<< a", ["rm a"]),
        ("printf 'a\\nb\\n' | while read x; do rm $x; done", ["printf|a\\nb\\n", "rm a", "rm b"]),
        ("while read x y; do rm $y; done <<E\na b\nc d\nE", ["rm b", "rm d"]),
        # functions and positionals
        ("f() { rm $1; }; f a", ["rm a"]),
        ("f() { rm \"$@\"; }; f a 'b c'", ["rm|a|b c"]),
        ("f() { rm \"$*\"; }; f a b", ["rm|a b"]),
        ("f() { rm $2 $#; }; f a b", ["rm b 2"]),
        ("f() { shift; rm $1; }; f a b", ["rm b"]),
        ("f() { local x=$1; rm $x; }; f a; f b", ["rm a", "rm b"]),
        ("f() { for x; do rm $x; done; }; f a b", ["rm a", "rm b"]),
        ("f() { for x in \"$@\"; do rm $x; done; }; f a b", ["rm a", "rm b"]),
        ("function f { rm a; }", []),
        ("set -- a b; rm $2", ["rm b"]),
        ("set -- a b; rm \"$@\"", ["rm a b"]),
        # arrays
        ("x=(a b); rm ${x[@]}", ["rm a b"]),
        ("x=(a 'b c'); rm \"${x[@]}\"", ["rm|a|b c"]),
        ("x=(a b); rm ${x[1]}", ["rm b"]),
        ("x=(a b); rm $x", ["rm a"]),
        ("x=(a); x+=(b); rm \"${x[@]}\"", ["rm a b"]),
        ("x=(rm -rf a); \"${x[@]}\"", ["rm -rf a"]),
        ("x=(a b); rm ${#x[@]}", ["rm 2"]),
        # changed values
        ("x=a.tar.gz; rm ${x%.gz}", ["rm a.tar"]),
        ("x=a.tar.gz; rm ${x%%.*}", ["rm a"]),
        ("x=a/b/c; rm ${x##*/}", ["rm c"]),
        ("x=a/b/c; rm ${x#*/}", ["rm b/c"]),
        ("x=aXbX; rm ${x/X/-}", ["rm a-bX"]),
        ("x=aXbX; rm ${x//X/-}", ["rm a-b-"]),
        ("rm ${x:-a}", ["rm a"]),
        ("x=b; rm ${x:+a}", ["rm a"]),
        ("rm ${x:=a} $x", ["rm a a"]),
        # read, case, substitutions
        ("read x <<< a; rm $x", ["rm a"]),
        ("read x y <<< 'a b c'; rm $y", ["rm b c"]),
        ("IFS=: read x y <<< a:b; rm $y", ["rm b"]),
        ("IFS=,; x=a,b; rm $x", ["rm a b"]),
        ("case a in a) rm 1;; b) rm 2;; esac", ["rm 1"]),
        ("case a in [ab]) rm 1;; esac", ["rm 1"]),
        ("case $x in a) rm 1;; *) rm 2;; esac", ["rm 1", "rm 2"]),
        ("rm $(echo a b)", ["echo a b", "rm a b"]),
        ("rm \"$(printf '%s.md' a)\"", ["printf %s.md a", "rm a.md"]),
        ("rm $(basename x/a.md .md)", ["basename x/a.md .md", "rm a"]),
        ("rm $(dirname x/a.md)", ["dirname x/a.md", "rm x"]),
        ("x=$(echo a); rm $x", ["echo a", "rm a"]),
        ("rm `echo a`", ["echo a", "rm a"]),
        ("rm a{b,c{d,e}}f", ["rm abf acdf acef"]),
        ("rm {a,b}{1,2}", ["rm a1 a2 b1 b2"]),
        ("rm {01..03} {c..a}", ["rm 01 02 03 c b a"]),
        ("x=$(cat <<E\na\nE)\nrm b", [None, "rm b"]),
        ("echo \"${x:-'$(rm a)'}\"", ["rm a", None]),
        ("cat <<EF\nb\nE\\\nF\nrm a", [None, "rm a"]),
        ("echo $\\\n(rm a)", ["rm a", None]),
    ],
)  # fmt: skip
def test_a_line_runs_exactly_these_commands(line: str, commands: list[str | None] | None) -> None:
    """Variables, loops, functions and branches are followed; the words are split at blanks, or at `|` where one is."""
    found = [words for words in simple_commands(line) if words[0] not in OWN]
    if commands is None:
        assert ["rm", "a"] in found
        assert ["rm", "c"] in found
        return
    assert len(found) == len(commands)
    for words, wanted in zip(found, commands, strict=True):
        assert wanted is None or words == (wanted.split("|") if "|" in wanted else wanted.split())
