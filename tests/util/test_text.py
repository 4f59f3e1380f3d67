"""The small readers and writers of text: durations, globs, JSON, command lines."""

from __future__ import annotations

import fnmatch
import json
import math
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fusewire.guard.shell.commands import simple_commands
from fusewire.util import fast_json as quickjson
from fusewire.util.durations import UNITS, number, parse_duration, parse_time, show_duration, show_time
from fusewire.util.globs import matches, path_matches
from tests.helpers.project import lines_run

# -- durations ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("1h 30m", 5400),
        ("1h30m", 5400),
        ("30d", 30 * 86400),
        ("2w", 14 * 86400),
        ("1.5h", 5400),
        ("250ms", 0.25),
        (" 5m ", 300),
        ("0s", 0),
    ],
)
def test_a_duration_is_read_as_people_write_it(text: str, seconds: float) -> None:
    """Numbers with units, together or apart."""
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text",
    ["", " ", "5", "h", "-5m", "5 m", "1h-", "5M", "5 minutes", "1.2.3s", ".s", "1e3s", "٣s", "²s", "5m;", "inf"],
)
def test_what_is_no_duration_is_a_value_error(text: str) -> None:
    """No unit, an unknown one, a sign, another script's digits."""
    with pytest.raises(ValueError, match=r".*"):
        parse_duration(text)


@given(st.text(alphabet="0123456789.smhdw e-", max_size=12))
def test_a_text_is_a_duration_or_a_value_error(text: str) -> None:
    """Never another error, never a negative time."""
    try:
        assert parse_duration(text) >= 0
    except ValueError:
        pass


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (-3, "0s"),
        (0.25, "0.25s"),
        (5, "5s"),
        (9.5, "9.5s"),
        (45, "45s"),
        (60, "1m"),
        (61, "1m 1s"),
        (3600, "1h"),
        (3661, "1h 1m"),
        (86399, "23h 59m"),
        (30 * 86400, "30d"),
        (90000, "1d 1h"),
        (86400 + 59, "1d"),
    ],
)
def test_a_duration_is_shown_in_its_two_largest_units(seconds: float, text: str) -> None:
    """Two units at most, and none that is zero."""
    assert show_duration(seconds) == text


@given(st.integers(0, 400 * 86400))
def test_a_shown_duration_reads_back_as_nearly_the_same(seconds: int) -> None:
    """What is lost is less than the smaller of the two units that are shown."""
    text = show_duration(seconds)
    back = parse_duration(text)
    order = ["d", "h", "m", "s"]
    largest = order.index(text.split()[0][-1])
    unit = UNITS[order[min(largest + 1, 3)]]
    assert back <= seconds < back + unit


@given(st.floats(0, 59.999))
@example(59.97)
def test_less_than_a_minute_is_never_shown_as_sixty_seconds(seconds: float) -> None:
    """Rounding does not produce a number that its unit does not have."""
    assert show_duration(seconds) != "60s"


@given(st.floats(0.001, 1e6))
def test_a_number_is_shown_without_an_exponent_and_close_to_what_it_is(value: float) -> None:
    """5 and not 5.0, 1234.5 and not 1.23e+03."""
    text = number(value)
    assert "e" not in text
    assert math.isclose(float(text), value, rel_tol=0.01)


@given(st.integers(0, 4_000_000_000_000).map(lambda ms: ms / 1000))
def test_a_moment_reads_back_as_itself(moment: float) -> None:
    """ISO 8601 in UTC, to the millisecond."""
    text = show_time(moment)
    assert text is not None
    assert text.endswith("Z")
    assert abs(parse_time(text) - moment) < 0.0005


def test_moments_are_shown_in_utc_with_milliseconds_only_where_there_are_any() -> None:
    """The seeds' own way of writing a time."""
    assert show_time(1770892200.0) == "2026-02-12T10:30:00Z"
    assert show_time(1770892200.25) == "2026-02-12T10:30:00.250Z"
    assert show_time(None) is None
    assert parse_time("2026-02-12T10:30:00Z") == parse_time("2026-02-12T10:30:00") == 1770892200.0
    assert parse_time("2026-02-12T12:30:00+02:00") == 1770892200.0


# -- globs ----------------------------------------------------------------------------------------------


@settings(max_examples=400)
@given(st.text(alphabet="ab.", max_size=8), st.text(alphabet="ab.*?", max_size=8))
def test_stars_and_question_marks_match_as_fnmatch_does(text: str, pattern: str) -> None:
    """The same answer as the standard library's, without its regular expressions."""
    assert matches(text, pattern) is fnmatch.fnmatchcase(text, pattern)


SETS = st.lists(
    st.sampled_from(
        ["a", "b", "c", "*", "?", "[ab]", "[!ab]", "[a-c]", "[!a-b]", "[-a]", "[a-]", "[c-a]", "[*]", "[?]"]
    ),
    max_size=5,
).map("".join)


@settings(max_examples=300)
@given(st.text(alphabet="abc-*?", max_size=6), SETS)
def test_sets_match_as_fnmatch_does(text: str, pattern: str) -> None:
    """Members, ranges, negation, and marks that mean themselves inside a set."""
    assert matches(text, pattern) is fnmatch.fnmatchcase(text, pattern)


@settings(max_examples=400)
@given(st.text(alphabet="a[]!-", max_size=5), st.text(alphabet="a[]!-*", max_size=7))
def test_odd_brackets_match_as_fnmatch_does(text: str, pattern: str) -> None:
    """Brackets that are unclosed, empty, or hold a bracket themselves."""
    assert matches(text, pattern) is fnmatch.fnmatchcase(text, pattern)


def test_many_stars_are_matched_without_exploding() -> None:
    """A pattern that ruins backtracking matchers takes a bounded number of steps."""
    text, pattern = "a" * 2000, "*a" * 60 + "b"
    assert lines_run(lambda: matches(text, pattern), "globs.py") < 20 * len(text) * 20


@pytest.mark.parametrize(
    ("path", "pattern", "fits"),
    [
        ("a.py", "*.py", True),
        ("src/a.py", "*.py", True),
        ("src/a.py", "src/*.py", True),
        ("src/x/a.py", "src/*.py", False),
        ("src/x/a.py", "src/**/*.py", True),
        ("src/a.py", "src/**/*.py", True),
        ("src/x/y/a.py", "src/**", True),
        ("specs/a/b.md", "specs/", True),
        ("x/specs/a.md", "specs/", True),
        ("specs.md", "specs/", False),
        ("a/b", "b", True),
        ("a/bc", "b", False),
        ("a/b/c", "b", False),
        ("x/a/b", "a/b", False),
        ("a/b", "/a/b", False),
        ("/a/b", "/a/b", True),
        (".env", ".env*", True),
        (".env.local", ".env*", True),
        ("a/b/c/d", "**/c/*", True),
        ("a", "**", True),
    ],
)
def test_a_path_fits_a_pattern_as_in_gitignore(path: str, pattern: str, fits: bool) -> None:
    """One star stays within a folder, two cross, a trailing slash means all below."""
    assert path_matches(path, pattern) is fits


# -- quick JSON -----------------------------------------------------------------------------------------

MAKERS = [pytest.param(quickjson._from_c, id="c"), pytest.param(quickjson._from_json, id="json")]
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(), max_size=10),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=15,
)


@pytest.mark.parametrize("make", MAKERS)
@given(value=VALUES)
def test_quick_json_is_json(make: Any, value: Any) -> None:
    """The same text as the standard library's compact, sorted one, and the same value back."""
    loads, dumps, _ = make()
    text = dumps(value)
    assert text == json.dumps(value, separators=(",", ":"), sort_keys=True)
    assert loads(text) == value
    assert loads(f" \n\t{json.dumps(value, indent=2)}\r\n ") == value


@pytest.mark.parametrize("make", MAKERS)
@given(text=st.text(alphabet='{}[]",:0123456789.eE+-truefalsn \n\\u\x00é', max_size=20))
def test_quick_json_takes_exactly_what_json_takes(make: Any, text: str) -> None:
    """Any other text is a ValueError, as it is for the standard library."""
    loads, *_ = make()
    try:
        expected: Any = json.loads(text)
    except ValueError:
        with pytest.raises(ValueError, match=r".*"):
            loads(text)
    else:
        assert loads(text) == expected


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize(
    "text",
    ["", " ", "{", "[1,]", "{'a':1}", "nul", "1 2", "NaN", "[Infinity]", "-Infinity", '"\n"', "\ufeff{}", '"\\x"'],
)
def test_what_is_no_json_is_a_value_error(make: Any, text: str) -> None:
    """Also the constants that JavaScript has and JSON has not."""
    loads, *_ = make()
    with pytest.raises(ValueError, match=r".*"):
        loads(text)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "[" * 100_000 + "]" * 100_000])
def test_json_that_is_nested_beyond_reason_is_a_value_error(make: Any, text: str) -> None:
    """Hook input is bad input, however it is bad: no other error escapes."""
    loads, *_ = make()
    with pytest.raises(ValueError, match=r".*"):
        loads(text)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, [math.nan]])
def test_no_number_is_written_that_json_has_not(make: Any, value: Any) -> None:
    """A state with a broken number is refused when it is written, not when it is read."""
    _, dumps, _ = make()
    with pytest.raises(ValueError, match=r".*"):
        dumps(value)


@pytest.mark.parametrize("make", MAKERS)
def test_what_has_no_json_is_a_type_error(make: Any) -> None:
    """Objects and sets are a programming mistake."""
    _, dumps, _ = make()
    for value in (object(), {1, 2}, b"x"):
        with pytest.raises(TypeError):
            dumps(value)


# -- command lines --------------------------------------------------------------------------------------

PUSH = ["git", "push", "-f"]

#: Command lines that run `git push -f` somewhere.
RUNS = [
    "git push -f",
    "  git   push\t-f ",
    "cd x && git push -f",
    "cd x; git push -f",
    "false || git push -f",
    "true | git push -f",
    "true |& git push -f",
    "sleep 1 & git push -f",
    "git push -f &",
    "echo a\ngit push -f",
    "(git push -f)",
    "(cd x && git push -f)",
    "{ git push -f; }",
    "! git push -f",
    "time git push -f",
    "time -p git push -f",
    "if git push -f; then echo; fi",
    "if true; then git push -f; fi",
    "if a; then b; else git push -f; fi",
    "for x in 1 2; do git push -f; done",
    "while git push -f; do :; done",
    "case $x in a) git push -f;; esac",
    '[ "$1" = main ] && git push -f',
    'if [ -z "$x" ]; then git push -f; fi',
    "for f in -f -u; do git push $f; done",
    "bash -c 'git push $0' -f",
    "p() { git push $1; }; p -f",
    "echo 'git push -f' | cat | bash",
    "echo -f | xargs git push",
    "x=push; if a; then x=pull; fi; git $x -f",
    "f() { git push -f; }; f",
    "function f { git push -f; }; f",
    "A=1 git push -f",
    "A=1 B='x y' git push -f",
    "A+=1 git push -f",
    "git 'push' \"-f\"",
    "g'i't p\"us\"h -f",
    "\\git push -f",
    "git pu\\\nsh -f",
    "git push \\\n -f",
    "git push -f # why not",
    "git push -f > out 2>&1",
    "2>/dev/null git push -f",
    "git push 2>/dev/null -f",
    "git push -f &>log",
    "git push -f >&2",
    "git push -f < /dev/null",
    "git push -f>out",
    # substitutions
    "echo $(git push -f)",
    'echo "$(git push -f)"',
    'echo "a $(echo "$(git push -f)") b"',
    "echo `git push -f`",
    'echo "`git push -f`"',
    "x=$(git push -f)",
    "echo ${x:-$(git push -f)}",
    "diff <(git push -f) x",
    "tee >(git push -f)",
    "while read x; do :; done < <(git push -f)",
    "echo $(echo ')' && git push -f)",
    # wrappers
    "sudo git push -f",
    "sudo -u root git push -f",
    "sudo --user root git push -f",
    "sudo -n -E A=1 git push -f",
    "doas git push -f",
    "env A=1 B=2 git push -f",
    "env -i -u HOME git push -f",
    "env -S 'git push -f'",
    "/usr/bin/env git push -f",
    "nohup git push -f &",
    "timeout 10 git push -f",
    "timeout -s KILL 10 git push -f",
    "timeout --signal=KILL 10s git push -f",
    "nice -n 5 git push -f",
    "nice git push -f",
    "ionice -c 3 git push -f",
    "setsid git push -f",
    "stdbuf -oL git push -f",
    "command git push -f",
    "exec git push -f",
    "exec -a x git push -f",
    "echo x | xargs git push -f",
    "echo x | xargs -n 1 -I {} git push -f",
    "sudo nohup timeout 5 git push -f",
    "sudo -- git push -f",
    "watch -n 5 git push -f",
    # shells
    "bash -c 'git push -f'",
    'sh -c "git push -f"',
    "bash -lc 'cd x && git push -f'",
    "bash -x -c 'git push -f'",
    "bash --norc -c 'git push -f'",
    "bash -o pipefail -c 'git push -f'",
    "bash -euo pipefail -c 'git push -f'",
    "/bin/bash -c 'git push -f'",
    "sudo bash -c 'git push -f'",
    "bash -c \"bash -c 'git push -f'\"",
    "eval git push -f",
    "eval 'git push -f'",
    "bash <<EOF\ngit push -f\nEOF",
    "bash <<'EOF'\ngit push -f\nEOF",
    "bash -s <<-EOF\n\tgit push -f\n\tEOF",
    "sudo bash <<EOF\ngit push -f\nEOF",
    "cat <<EOF | bash\ngit push -f\nEOF",
    "bash <<< 'git push -f'",
    # here-documents that end
    "cat <<EOF\nx\nEOF\ngit push -f",
    "cat <<EOF > file && git push -f\nx\nEOF",
    "cat <<'A' <<\"B\"\nx\nA\ny\nB\ngit push -f",
    "cat <<-EOF\n\tx\n\tEOF\ngit push -f",
    "cat <<EOF\r\nx\r\nEOF\r\ngit push -f",
    "cat <<EOF\n$(git push -f)\nEOF",
    "git commit -m \"$(cat <<'EOF'\nfix it\nEOF\n)\" && git push -f",
    "git commit -m \"$(cat <<'EOF'\ndon't break it\nEOF\n)\" && git push -f",
    # quotes that end
    "echo 'a'\\''b'; git push -f",
    "echo $'it\\'s'; git push -f",
    'echo "a \\" b"; git push -f',
    "# don't\ngit push -f",
    "echo a#b; git push -f",
    "((n = 1<<2))\ngit push -f",
    "echo $((1<<2)); git push -f",
    "[[ a < b ]] && git push -f",
    # found by an adversary
    "if ((1<<2)); then\ngit push -f\nfi",
    "for ((i=1<<2; i<3; i++)); do git push -f; done",
    "echo ${x:- # }; git push -f",
    'echo "${x%\'"\'}"; git push -f',
    "((git push -f); true)",
    "echo $((git push -f); true)",
    "(( x = '(' )); git push -f",
    "echo $(case x in x) git push -f;; esac)",
    "echo a\r#; git push -f",
    "cat <<E\nE\r\ncat <<F\nE\ngit push -f\nF",
    "{fd}>/dev/null git push -f",
    "if [[ 1 ]] then git push -f; fi",
    "time { git push -f; }",
    "time A=1 git push -f",
    'git push $"-f"',
    "git push $'-f\\0x'",
    "git push -{f,u}",
    "git push -f$x",
    "git push -f$(true)",
    "git$x push -f",
    "git push ${x:--f}",
    "f=-f; git push $f",
    "G='git push -f'; $G",
    "export F=-f; git push ${F}",
    'eval "$(echo git push -f)"',
    "$(echo git push -f)",
    "bash -c \"$(cat <<'E'\ngit push -f\nE\n)\"",
    "bash - <<< 'git push -f'",
    "bash /dev/stdin <<< 'git push -f'",
    "trap 'git push -f' EXIT",
    "flock x git push -f",
    "flock x -c 'git push -f'",
    "timeout -- 10 git push -f",
    "find . -exec env git push -f \\;",
    "env -S'git push -f'",
    "eval -- git push -f",
    "echo 'git push -f' | sh",
    # found by a second one
    "grep '[[' f; git push -f",
    'echo "[["; git push -f',
    'echo "$(case x in x) echo 1;; esac)"; git push -f',
    'f="$(case "$(uname)" in\nLinux) echo 1;;\nesac)"\ngit push -f',
    'echo "$(echo case)"; git push -f',
    'echo "$(if true; then case x in a) :;; x) git push -f;; esac; fi)"',
    'echo "$( (true); git push -f)"',
    'echo "$(f() { git push -f; }; f)"',
    'echo "${x%%{*}"; git push -f',
    "a=(\n # don't\n x\n)\ngit push -f",
    "((true); true)\n((x=1<<2))\ngit push -f",
    'git push -f"$x"',
    '"git$x" push -f',
    "x=$(cat <<A)\nx\nA\ngit push -f",
    "if { true; } then git push -f; fi",
    "time -- git push -f",
    "trap -- 'git push -f' EXIT",
    "git push `echo -f`",
    "F=; git push ${F:--f}",
    "a=(push -f); git ${a[@]}",
    "x='git push'; x+=' -f'; $x",
]

#: Command lines that merely mention it.
SAYS = [
    "git commit -m 'git push -f'",
    'git commit -m "git push -f"',
    'git commit -m "never; git push -f"',
    "git commit -m 'never && git push -f && x'",
    "echo git push -f",
    "echo 'a; git push -f'",
    "printf '%s\\n' 'git push -f'",
    "grep -r 'git push -f' .",
    "# git push -f",
    "ls # git push -f",
    "ls # ; git push -f",
    "echo a\\; git push -f",
    "cat <<EOF\ngit push -f\nEOF",
    "cat <<'EOF'\n$(git push -f)\nEOF",
    "cat <<'EOF' > notes.md\ngit push -f\nEOF\nls",
    "git commit -m \"$(cat <<'EOF'\ngit push -f\nEOF\n)\"",
    "git commit -F - <<EOF\ngit push -f\nEOF",
    "python3 - <<EOF\ngit push -f\nEOF",
    "echo '$(git push -f)'",
    "echo '`git push -f`'",
    'echo "\\$(git push -f)"',
    'echo "\\`git push -f\\`"',
    "cmd=(git push -f)",
    "cmd='git push -f'",
    "alias p='git push -f'",
    "command -v git push -f",
    "cat < 'git push -f'",
    "echo > 'git push -f'",
    "[ \"$x\" = 'git push -f' ]",
    "bash script.sh -c 'git push -f'",
    "bash --version && cat > n.md <<'E'\ngit push -f\nE",
    "bash -n <<'E'\ngit push -f\nE",
    "echo 'git push -f' | bash -n",
    "echo hello 'git push -f' | bash",
    "[[ $x =~ ^(git push -f)$ ]]",
    "echo ${x//(git push -f)/}",
    "echo then git push -f",
    "x='git push -f'; echo $x",
    'git commit -m "$(echo git push -f)"',
    "ls && echo done",
    "git push",
    "git push -u origin x",
    "",
    "   ",
]


@pytest.mark.parametrize("line", RUNS)
def test_what_a_line_would_run_is_found(line: str) -> None:
    """Behind separators, keywords, quotes, wrappers, shells, substitutions and here-documents."""
    assert PUSH in [words[:3] for words in simple_commands(line)]


@pytest.mark.parametrize("line", SAYS)
def test_what_a_line_merely_says_is_not_found(line: str) -> None:
    """In quotes, comments, arguments, here-documents for another program."""
    assert PUSH not in [words[:3] for words in simple_commands(line)]


@pytest.mark.parametrize(
    ("line", "commands"),
    [
        ("cd x && sudo git push -f", [["cd", "x"], ["sudo", "git", "push", "-f"], ["git", "push", "-f"]]),
        ("a | b; c", [["a"], ["b"], ["c"]]),
        ("echo $(date) x", [["date"], ["echo", "$(date)", "x"]]),
        ("A=1 make -j4 > log 2>&1", [["make", "-j4"]]),
        ("A=1", []),
        ("rm -rf 'a b' c\\ d", [["rm", "-rf", "a b", "c d"]]),
        ("echo '' \"\" x", [["echo", "", "", "x"]]),
        ("echo \"a\\nb\" 'c\\nd'", [["echo", "a\\nb", "c\\nd"]]),
        ("ls *.py ~/x $HOME", [["ls", "*.py", "~/x", "$HOME"]]),
        ("timeout 5 ls", [["timeout", "5", "ls"], ["ls"]]),
    ],
)
def test_a_line_becomes_exactly_these_commands(line: str, commands: list[list[str]]) -> None:
    """In the order in which they would run, words without quotes, nothing unknown expanded."""
    assert simple_commands(line) == commands


@settings(max_examples=300)
@given(st.text(alphabet="ab \n\t\r;&|()<>'\"\\`$#-={}!E0\u00e9", max_size=60))
def test_no_text_breaks_the_reader(text: str) -> None:
    """Whatever the line, the answer is a list of lists of words, none of them empty."""
    assert all(words and all(isinstance(word, str) for word in words) for words in simple_commands(text))


def test_a_variable_that_doubles_itself_is_not_followed() -> None:
    """Sixty short assignments would otherwise make a value of an exabyte."""
    assert simple_commands("a=x;" + "a=$a$a;" * 60 + "git push -f")[-1] == PUSH


@given(st.text(max_size=80))
def test_no_unicode_breaks_the_reader(text: str) -> None:
    """Any characters at all."""
    assert isinstance(simple_commands(text), list)


#: Pieces that, repeated, tempt a reader to walk the same text again and again.
PIECES = [
    "a ", "a;", "'", '"', "`", "$(", "$(a) ", "(", ")", "\\", "\\\n", "#", "#a\n", "<", "<<", "<<a ", "<<a\n", "a<<x;",
    ">(", "<(a) ", "1 ", "1>", "11111", "&", "|", "a=1 ", "if ", "sudo ", "env ", "eval ", "sh -c ", "xargs ",
    "timeout 1 ", "$'", "é",
    "[[((", "[[ ((a))", "[[ a;", "a [[ ;", "bash <<<a;[[ ", "a=(", "find -exec ", "((", "${",
    "\n", "{ ", "a\n", "\"$(", "`a` ", "'a' ", "<<<a ",
]  # fmt: skip


@pytest.mark.parametrize("piece", PIECES)
def test_reading_takes_linear_time_and_space(piece: str) -> None:
    """Four times the text takes about four times the steps, and gives at most a bounded number of words a character."""
    short, long = piece * (1000 // len(piece)), piece * (4000 // len(piece))
    steps = [lines_run(lambda text=text: simple_commands(text + "\n"), "/guard/shell/") for text in (short, long)]
    assert steps[1] <= 5 * steps[0] + 500
    assert sum(map(len, simple_commands(long))) <= 13 * len(long)


@pytest.mark.parametrize("piece", ["a ", "a;", "$(", '"', "'", "<<a\n", "x\n", "\\", "`", "1>", "echo 'x' | cat && "])
def test_seventy_kilobytes_are_read(piece: str) -> None:
    """A long line is read to its end: what stands there is found, or is inside the quote that nobody closed."""
    line = piece * (70_000 // len(piece))
    found = simple_commands(line + "\ngit push -f")
    if piece in ("a ", "a;", "x\n", "echo 'x' | cat && ", "1>"):
        assert PUSH in found
    else:
        assert isinstance(found, list)
