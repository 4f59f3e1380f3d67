"""Work that only looks like a loop. Each scene is one of the false trips that users of such tools have reported,
or a habit of good agents that a counter of calls would punish. Nothing here may be blocked."""

from __future__ import annotations

from collections.abc import Callable

from phrases import (
    act,
    agent,
    bash,
    edit,
    edit_misses,
    finished,
    git_commit,
    git_status,
    glob,
    grep,
    missing,
    patch,
    pytest_fails,
    pytest_passes,
    read,
    run,
    todo,
    write,
)
from recorded import Call, Session

#: name -> the format it is written in, and the scene
SCENES: dict[str, tuple[str, Callable[[Session], None]]] = {}


def scene(form: str) -> Callable[[Callable[[Session], None]], Callable[[Session], None]]:
    def register(tell: Callable[[Session], None]) -> Callable[[Session], None]:
        SCENES[tell.__name__] = form, tell
        return tell

    return register


NAMES = (
    *(
        "basket",
        "cart",
        "checkout",
        "coupon",
        "customer",
        "delivery",
        "discount",
        "invoice",
        "items",
        "ledger",
        "login",
    ),
    *("mail", "order", "payment", "price", "product", "profile", "receipt", "refund", "report", "review", "search"),
    *("session", "shipping", "stock", "supplier", "tax", "token", "voucher", "wishlist"),
)


# -- many files, many pages -------------------------------------------------------------------------------


@scene("claude")
def batch_edit(s: Session) -> None:
    s.asked("Add the licence header to every module in src/shop.")
    s.does(glob("src/shop/*.py", *(f"src/shop/{name}.py" for name in NAMES[:25])))
    for name in NAMES[:13]:
        s.does(read(f"src/shop/{name}.py", f'"""{name.title()}."""\n\nVALUE = {len(name)}\n'))
        s.does(edit(f"src/shop/{name}.py", '"""', '# SPDX-License-Identifier: MIT\n"""'))
    s.does(*(edit(f"src/shop/{name}.py", '"""', '# SPDX-License-Identifier: MIT\n"""') for name in NAMES[13:25]))
    s.does(bash("grep -L SPDX src/shop/*.py", "", failed=True))
    s.does(pytest_passes(s, 112))
    s.ends("All 25 modules carry the header.")


@scene("claude")
def refactor_many_edits(s: Session) -> None:
    s.asked("Rename get_user to fetch_user everywhere.")
    s.does(grep("get_user", *(f"src/{name}.py" for name in NAMES)))
    for at in range(0, len(NAMES), 6):
        s.does(*(edit(f"src/{name}.py", "get_user(", "fetch_user(") for name in NAMES[at : at + 6]))
    s.does(grep("get_user"))
    s.does(pytest_passes(s, 240))
    s.ends("Renamed in 30 files.")


@scene("claude")
def paging_one_file(s: Session) -> None:
    s.asked("Read the whole of docs/protocol.md and tell me what it says about retries.")
    for page in range(24):
        text = "\n".join(f"{page * 100 + at}. Clause {s.hexadecimal(4)} of the protocol." for at in range(6))
        s.does(read("docs/protocol.md", text, offset=page * 100 + 1, limit=100))
    s.ends("Retries are in clause 1,204.")


@scene("codex")
def paging_with_sed(s: Session) -> None:
    s.asked("Explain src/engine.c.")
    for page in range(22):
        body = "\n".join(f"static int step_{page}_{at}(struct engine *e);" for at in range(5))
        s.does(run(f"sed -n '{page * 200 + 1},{page * 200 + 200}p' src/engine.c", body))
    s.ends("The engine is a state machine.")


@scene("claude")
def paging_with_a_cursor(s: Session) -> None:
    s.asked("List all open issues that mention the importer.")
    cursor = ""
    for page in range(22):
        after = s.hexadecimal(10)
        result = f'{{"issues": [{{"number": {900 - page * 2}}}, {{"number": {899 - page * 2}}}], "next": "{after}"}}'
        s.does(Call("mcp__github__list_issues", {"state": "open", "cursor": cursor}, result))
        cursor = after
    s.ends("Eleven issues mention it.")


# -- looking around ---------------------------------------------------------------------------------------


@scene("claude")
def exploration_with_misses(s: Session) -> None:
    s.asked("Where is the rate limit configured?")
    s.does(missing("config/limits.yaml"), missing("config/settings.yaml"))
    s.does(glob("**/limits*"), says="Not where I expected it.")
    s.does(missing("src/config.py"))
    s.does(grep("rate_limit"), grep("RATE_LIMIT"), grep("rateLimit"))
    s.does(bash("ls config", "ls: cannot access 'config': No such file or directory", failed=True, code=2))
    s.does(bash("ls src/settings", "ls: cannot access 'src/settings': No such file or directory", failed=True, code=2))
    s.does(missing("pyproject.cfg"))
    s.does(bash("ls", "Makefile\nREADME.md\napp\ndeploy\ntests"))
    s.does(bash("ls app", "__init__.py\nhttp\nlimits\nmain.py"), bash("ls deploy", "base\nproduction\nstaging"))
    s.does(grep("throttle"), grep("throttle", "app/http/middleware.py", "app/limits/bucket.py", path="app"))
    s.does(read("app/limits/bucket.py"), read("app/http/middleware.py"))
    s.does(missing("app/limits/config.py"))
    s.does(grep("BUCKET_SIZE", path="deploy"))
    s.does(grep("bucket", "deploy/base/limits.env", path="deploy"))
    s.does(read("deploy/base/limits.env", "BUCKET_SIZE=40\nBUCKET_REFILL=2/s\n"))
    s.ends("In deploy/base/limits.env: 40, refilled with 2 a second.")


@scene("codex")
def exploration_by_shell(s: Session) -> None:
    s.asked("Which tests cover the scheduler?")
    for word in ("scheduler", "Scheduler", "schedule_job", "sched", "cron", "periodic", "beat", "next_run"):
        s.does(run(f"rg -n {word} tests", "", failed=True, takes=0.1))
    for name in ("tests/unit/jobs", "tests/jobs", "tests/scheduler"):
        s.does(run(f"ls {name}", f"ls: cannot access '{name}': No such file or directory\n", failed=True, takes=0.1))
    s.does(run("ls tests", "api\nconftest.py\nworker\n"))
    s.does(run("rg -ln 'run_at|due' tests", "tests/worker/test_due.py\ntests/worker/test_queue.py\n"))
    for name in ("test_due", "test_queue"):
        s.does(run(f"sed -n '1,120p' tests/worker/{name}.py", f"def {name}_in_order():\n    ...\n"))
        s.does(run(f"pytest -q tests/worker/{name}.py", f"......\n6 passed in {s.seconds(0.2, 0.9)}s\n"))
    for word in ("due", "run_at", "enqueue", "requeue", "drain"):
        s.does(run(f"rg -c {word} tests/worker", f"tests/worker/test_due.py:{len(word)}\n"))
    s.ends("tests/worker/test_due.py and test_queue.py.")


@scene("claude")
def read_edit_read(s: Session) -> None:
    s.asked("Tidy up src/report.py step by step, and look at it after every step.")
    body = [f"def part_{at}(rows):\n    return list(rows)" for at in range(10)]
    for at in range(10):
        s.does(read("src/report.py", "\n\n".join(body)))
        body[at] = body[at].replace("list(rows)", f"sorted(rows)[:{at + 1}]")
        s.does(edit("src/report.py", f"def part_{at}(rows):\n    return list(rows)", body[at]))
        if at % 3 == 2:
            s.does(bash("ruff check src/report.py", "All checks passed!"))
    s.does(read("src/report.py", "\n\n".join(body)))
    s.ends("Tidy.")


# -- waiting ----------------------------------------------------------------------------------------------


@scene("claude")
def polling_a_build(s: Session) -> None:
    s.asked("Push, wait for CI, and tell me when it is green.")
    s.does(
        bash("git push origin feature", "To github.com:acme/shop.git\n   1f0c2aa..9b3de11  feature -> feature", takes=3)
    )
    for _ in range(20):
        s.does(bash("sleep 60 && gh run view 8123441 --json status -q .status", "in_progress", takes=61))
    s.does(bash("sleep 60 && gh run view 8123441 --json status -q .status", "completed", takes=61))
    s.does(bash("gh run view 8123441 --json conclusion -q .conclusion", "success"))
    s.ends("Green.")


@scene("claude")
def polling_a_build_without_sleeping(s: Session) -> None:
    """The model itself is slow: half a minute passes between two looks, and the command does not say that it waits."""
    s.asked("Tell me when the build is through.")
    for minute in range(20):
        text = f"tests\tpending\t{minute}m{s.dice.randint(0, 59)}s\thttps://github.com/acme/shop/actions/runs/8123441"
        s.does(bash("gh pr checks 41", text, failed=True, code=8), after=32)
    s.does(bash("gh pr checks 41", "tests\tpass\t20m4s\thttps://github.com/acme/shop/actions/runs/8123441"), after=32)
    s.ends("It passed.")


@scene("claude")
def polling_for_most_of_an_hour(s: Session) -> None:
    """A slow pipeline: 45 looks, a minute apart, before it has ended."""
    s.asked("Wait for the nightly pipeline and tell me how it ended.")
    for _ in range(45):
        s.does(bash("sleep 60; glab ci status --branch main", "(running) • nightly • pipeline 55120", takes=61))
    s.does(bash("sleep 60; glab ci status --branch main", "(success) • nightly • pipeline 55120", takes=61))
    s.ends("It ended well.")


@scene("claude")
def waiting_for_a_background_task(s: Session) -> None:
    s.asked("Run the full benchmark in the background and report.")
    s.does(bash("make bench-full", "Command running in background with ID: b7f31"))
    for _ in range(15):
        text = "<status>running</status>\n\n<timestamp>" + f"2026-11-16T10:{s.dice.randint(10, 59)}:12.113Z</timestamp>"
        s.does(Call("BashOutput", {"bash_id": "b7f31"}, text, takes=0.1), after=30)
    done = "<status>completed</status>\n<exit_code>0</exit_code>\n<stdout>\np50 1.2 ms\np99 4.0 ms\n</stdout>"
    s.does(Call("BashOutput", {"bash_id": "b7f31"}, done, takes=0.1), after=30)
    for name in NAMES[:4]:
        s.does(read(f"bench/{name}.txt", f"{name} {s.seconds(1, 4)} ms\n"))
    s.ends("p99 is 4 ms.")


@scene("claude")
def server_until_it_is_up(s: Session) -> None:
    s.asked("Start the server and check that /health answers.")
    s.does(read("Makefile", "serve:\n\tuvicorn app.main:app --port 8000\n"))
    s.does(bash("make serve > server.log 2>&1 &", ""))
    refused = "curl: (7) Failed to connect to localhost port 8000 after {} ms: Couldn't connect to server"
    for _ in range(5):
        text = refused.format(s.dice.randint(0, 3))
        s.does(bash("sleep 3; curl -sS localhost:8000/health", text, failed=True, code=7, takes=3))
    s.does(bash("sleep 3; curl -sS localhost:8000/health", '{"status": "ok"}', takes=3))
    for name in ("items", "basket", "orders", "users", "prices"):
        s.does(bash(f"curl -sS localhost:8000/{name}", f'{{"{name}": []}}'))
    s.does(bash("tail -3 server.log", "INFO:     Application startup complete.\nINFO:     127.0.0.1 - GET /health 200"))
    s.does(bash("docker compose up -d db", "Container shop-db-1  Started", takes=4))
    for _ in range(6):
        s.does(bash("sleep 5; docker inspect -f '{{.State.Health.Status}}' shop-db-1", "starting", takes=5))
    s.does(bash("sleep 5; docker inspect -f '{{.State.Health.Status}}' shop-db-1", "healthy", takes=5))
    s.ends("Both are up.")


@scene("claude")
def retries_that_succeed(s: Session) -> None:
    s.asked("Install the dependencies and publish the branch.")
    lost = "npm error code ETIMEDOUT\nnpm error network request to the registry failed, reason: connect ETIMEDOUT"
    for at in range(2):
        s.does(bash("npm ci", lost, failed=True, takes=30), after=5 + 10 * at)
    s.does(bash("npm ci", f"added 412 packages in {s.dice.randint(8, 20)}s", takes=15))
    s.does(bash("npm test", "Tests: 48 passed, 48 total", takes=6))
    for name in NAMES[:6]:
        s.does(read(f"src/{name}.ts", f"export const {name} = 1\n"))
    gone = "fatal: unable to access 'https://github.com/acme/shop.git/': Could not resolve host: github.com"
    for at in range(2):
        s.does(bash("git push", gone, failed=True, code=128, takes=5), after=5 + 20 * at)
    s.does(bash("git push", "   1f0c2aa..9b3de11  feature -> feature", takes=3))
    for name in NAMES[6:14]:
        s.does(read(f"src/{name}.ts", f"export const {name} = 2\n"))
    s.ends("Published.")


# -- tests and checks -------------------------------------------------------------------------------------


@scene("claude")
def test_fix_cycles(s: Session) -> None:
    s.asked("Make the suite green.")
    for at in range(10):
        left, name = 10 - at, NAMES[at]
        error = f"AssertionError: assert {name}_total == {at * 3}"
        s.does(pytest_fails(s, f"tests/test_{name}.py::test_{name}", error, line=12 + at, failed=left, passed=90 + at))
        s.does(read(f"src/{name}.py", f"def {name}_total():\n    return {at}\n"))
        s.does(edit(f"src/{name}.py", f"return {at}", f"return {at * 3}"))
    s.does(pytest_passes(s, 100))
    s.ends("Green.")


@scene("claude")
def a_hard_bug(s: Session) -> None:
    """One test, one message, six real attempts, then it passes. Five times red is how hard bugs look."""
    s.asked("tests/test_cache.py::test_evicts_oldest fails. Fix it.")
    fails = ("tests/test_cache.py::test_evicts_oldest", "AssertionError: assert 'a' not in cache")
    s.does(pytest_fails(s, *fails, line=31))
    s.does(read("src/cache.py"), read("tests/test_cache.py"))
    attempts = (
        ("self.order.append(key)", "self.order.remove(key)\n        self.order.append(key)"),
        ("oldest = self.order[-1]", "oldest = self.order[0]"),
        ("if len(self.items) > self.size:", "while len(self.items) > self.size:"),
        ("return self.items[key]", "self.touch(key)\n        return self.items[key]"),
        ("self.items.pop(oldest)", "self.items.pop(oldest, None)\n        self.order.pop(0)"),
        ("size: int = 0", "size: int = 128"),
    )
    for at, (old, new) in enumerate(attempts):
        s.does(edit("src/cache.py", old, new), says="Next idea.")
        if at % 2:
            s.does(read("src/cache.py", f"# {at}\n{new}\n"))
        if at < len(attempts) - 1:
            s.does(pytest_fails(s, *fails, line=31 + at % 2))
    s.does(pytest_passes(s, 21))
    for name in NAMES[:8]:
        s.does(grep(f"cache.{name}", f"src/{name}.py"))
    s.ends("The default size was 0.")


@scene("claude")
def a_hard_bug_edit_by_edit(s: Session) -> None:
    """The same without looking in between: edit, test, edit, test. Three red runs fit into five turns."""
    s.asked("The parser drops the last token. Fix it.")
    fails = ("tests/test_parser.py::test_last", "AssertionError: assert ['a', 'b'] == ['a', 'b', 'c']")
    s.does(read("src/parser.py"), read("tests/test_parser.py"))
    s.does(pytest_fails(s, *fails, line=12, command="pytest -q tests/test_parser.py"))
    for at in range(6):
        s.does(edit("src/parser.py", f"step_{at}(tokens)", f"step_{at}(tokens, last=True)"))
        if at < 5:
            s.does(pytest_fails(s, *fails, line=12, command="pytest -q tests/test_parser.py"))
    s.does(pytest_passes(s, 6, "pytest -q tests/test_parser.py"))
    for name in NAMES[:8]:
        s.does(read(f"src/{name}.py", f"from parser import {name}\n"))
    s.ends("The loop ended one step early.")


@scene("claude")
def checks_that_pass_again(s: Session) -> None:
    s.asked("Rename the fields of Order one by one; run the checks after each.")
    for name in NAMES[:11]:
        s.does(edit("src/order.py", f"self.{name}_", f"self.{name}"))
        s.does(
            bash("ruff check", "All checks passed!"), bash("mypy src", "Success: no issues found in 31 source files")
        )
        s.does(pytest_passes(s, 64))
    s.ends("Eleven fields renamed.")


@scene("codex")
def edits_by_shell(s: Session) -> None:
    """No tool but the shell: files are changed with sed, heredocs and scripts, and checked in the same two ways."""
    s.asked("Replace the old logger in every module; keep the checks green.")
    for at, name in enumerate(NAMES[:9]):
        if at % 3 == 0:
            s.does(run(f"sed -i 's/old_log/log/' src/{name}.py"))
        elif at % 3 == 1:
            s.does(run(f"cat > src/{name}.py <<'EOF'\nfrom log import log\n\n{name} = log('{name}')\nEOF"))
        else:
            s.does(run(f"python3 - <<'EOF'\nimport re, pathlib\np = pathlib.Path('src/{name}.py')\nEOF"))
        s.does(run("ruff check src", "All checks passed!\n"))
        s.does(run("pytest -q", f"{'.' * 40}\n40 passed in {s.seconds(0.8, 3)}s\n", takes=3))
    s.ends("Replaced.")


@scene("claude")
def image_that_fails_after_edits(s: Session) -> None:
    """Building an image is slow, changes things and fails with the same last line, whatever was wrong before it."""
    s.asked("Make the image build.")
    last = 'ERROR: failed to solve: process "/bin/sh -c pip install ." did not complete successfully: exit code: 1'
    s.does(read("Dockerfile", "FROM python:3.12-slim\nRUN pip install .\n"))
    for old, new in (
        ("slim", "bookworm"),
        ("RUN pip", "RUN apt-get install -y gcc\nRUN pip"),
        ("COPY .", "COPY src ."),
    ):
        s.does(bash("docker build -t shop .", last, failed=True, takes=40))
        s.does(edit("Dockerfile", old, new))
    s.does(bash("docker build -t shop .", last, failed=True, takes=40))
    s.does(bash("docker build -t shop . --progress plain 2>&1 | tail -5", "error: libpq-fe.h: No such file", takes=40))
    s.does(edit("Dockerfile", "gcc", "gcc libpq-dev"))
    s.does(bash("docker build -t shop .", "naming to docker.io/library/shop done", takes=60))
    for name in NAMES[:12]:
        s.does(bash(f"docker run --rm shop python -m shop.{name} --help", f"usage: {name} [-h]"))
    s.ends("It builds.")


@scene("claude")
def flaky_test(s: Session) -> None:
    s.asked("CI says test_upload is flaky. Is it?")
    fails = ("tests/test_upload.py::test_upload", "TimeoutError: no answer from the fake server")
    again = "pytest -q tests/test_upload.py"
    s.does(read("tests/test_upload.py"))
    s.does(
        pytest_fails(s, *fails, line=44, passed=0, command=again), says="It fails. Again, to see whether it is flaky."
    )
    s.does(pytest_fails(s, *fails, line=44, passed=0, command=again), says="Twice. Once more.")
    s.does(pytest_passes(s, 1, again), says="Now it passes: flaky.")
    s.does(grep("sleep", "tests/test_upload.py", path="tests"))
    s.does(edit("tests/test_upload.py", "timeout=0.01", "timeout=5"))
    s.does(bash(f"for i in 1 2 3 4 5; do {again} || break; done", "\n".join(["1 passed in 0.31s"] * 5), takes=4))
    for name in NAMES[:14]:
        s.does(read(f"tests/test_{name}.py", f"def test_{name}():\n    assert {name}\n"))
    s.ends("It was the time-out.")


@scene("claude")
def experiments_in_python(s: Session) -> None:
    s.asked("Find out how the old date parser behaves.")
    lines = (
        ("parse('')", "ValueError: empty text"),
        ("parse(None)", "TypeError: expected str, got NoneType"),
        ("parse('2026')", "ValueError: day is missing"),
        ("parse('2026-02-30')", "ValueError: day is out of range for month"),
        ("parse('1.2.')", "IndexError: list index out of range"),
        ("parse('tomorrow')", "KeyError: 'tomorrow'"),
        ("parse('10:00')", "ValueError: no date before the time"),
        ("parse(b'2026-01-01')", "TypeError: a bytes-like object is not a text"),
    )
    for code, error in lines:
        trace = f'Traceback (most recent call last):\n  File "<string>", line 1, in <module>\n{error}'
        s.does(bash(f'python -c "from dates import parse; print({code})"', trace, failed=True))
    for day in range(1, 14):
        s.does(bash(f"python -c \"from dates import parse; print(parse('{day}.3.2026'))\"", f"2026-03-{day:02}"))
    s.ends("It takes only full dates.")


@scene("claude")
def noisy_build(s: Session) -> None:
    s.asked("Build everything, and mend the warnings about error_t.")
    for name in NAMES[:11]:
        warns = f"src/{name}.c:{s.dice.randint(10, 400)}:9: warning: 'error_t' is deprecated: error: use status_t"
        s.does(bash(f"make {name}", f"cc -c src/{name}.c\n{warns}\n0 errors, 1 warning generated.", takes=9))
        s.does(edit(f"src/{name}.c", "error_t", "status_t"))
    s.does(bash("make", "cc -o shop *.o\nBuild finished: 0 errors, 0 warnings", takes=20))
    s.ends("No warnings left.")


@scene("codex")
def compile_errors_shrink(s: Session) -> None:
    s.asked("Port the crate to the new API.")
    for left in range(11, 0, -1):
        errors = f"error[E0308]: mismatched types\n  --> src/lib.rs:{40 + left * 7}:13\n"
        summary = f"error: could not compile `shop` (lib) due to {left} previous errors"
        s.does(
            run("cargo check", f"    Checking shop v0.1.0 ({'/home/dev/project'})\n{errors}\n{summary}", failed=True)
        )
        s.does(patch("src/lib.rs", f"let v{left}: u32 = old();", f"let v{left}: u64 = new();"))
    s.does(run("cargo check", f"    Finished `dev` profile in {s.seconds(1, 3)}s"))
    s.ends("Ported.")


# -- the rhythm of a day ----------------------------------------------------------------------------------


@scene("claude")
def git_rhythm(s: Session) -> None:
    s.asked("Commit each module on its own.")
    for name in NAMES[:9]:
        s.does(edit(f"src/{name}.py", "TODO", "done"))
        s.does(git_status(f"src/{name}.py"))
        s.does(bash("git add -A", ""))
        s.does(git_commit(s, f"Finish {name}", 1))
        s.does(git_status())
    s.ends("Nine commits.")


@scene("claude")
def todo_updates(s: Session) -> None:
    s.asked("Work through the plan.")
    tasks = [f"Write {name}" for name in NAMES[:12]]
    s.does(todo(*tasks, done=0))
    for at, name in enumerate(NAMES[:12]):
        s.does(write(f"src/{name}.py", f"def {name}() -> None: ...\n"))
        s.does(todo(*tasks, done=at + 1))
    s.ends("Done.")


@scene("claude")
def three_tasks_completed(s: Session) -> None:
    s.asked("Close what is finished on the board.")
    s.does(Call("mcp__board__list", {"state": "review"}, "[101, 102, 103, 104]"))
    for number in (101, 102, 103, 104):
        s.does(bash(f"pytest -q tests/test_{number}.py", f"3 passed in {s.seconds(0.1, 0.5)}s"))
    for number in (101, 102, 103, 104):
        s.does(Call("mcp__board__task_complete", {"task": number}, "ok"))
    for name in NAMES[:12]:
        s.does(Call("mcp__board__comment", {"task": 101, "text": f"See {name}."}, "ok"))
    s.ends("Four tasks closed.")


@scene("claude")
def messages_with_the_same_beginning(s: Session) -> None:
    for name in NAMES[:7]:
        s.asked(f"Now do the same for {name}.")
        s.does(git_status())
        s.does(read("PLAN.md", "1. one module at a time\n2. tests first\n"), read("CLAUDE.md", "Be careful.\n"))
        s.does(bash("git log --oneline -3", "9b3de11 Finish basket\n1f0c2aa Begin\n0a0a0a1 Initial commit"))
        s.does(write(f"src/{name}.py", f"def {name}() -> None: ...\n"))
        s.ends(f"{name} is done.")


@scene("claude")
def agents_side_by_side(s: Session) -> None:
    """Four sub-agents begin alike: each reads the same documents once. Together that is four times the same call."""
    s.asked("Review the four packages in parallel.")
    agents = {f"a{at}f93c0de{at}": name for at, name in enumerate(("api", "core", "jobs", "web"))}
    s.does(*(agent(f"Review {name}", f"Review src/{name}.", one) for one, name in agents.items()))
    for one in agents:
        s.does(read("CLAUDE.md", "Be careful.\n"), agent=one, after=1)
    for one in agents:
        s.does(bash("git log --oneline -3", "9b3de11 Finish\n1f0c2aa Begin\n0a0a0a1 Initial"), agent=one, after=1)
    for one in agents:
        s.does(bash("ruff check", "All checks passed!"), agent=one, after=1)
    for at in range(5):
        for one, name in agents.items():
            s.does(read(f"src/{name}/{NAMES[at]}.py", f"def {name}_{at}(): ...\n"), agent=one, after=1)
    for one, name in agents.items():
        s.does(grep("TODO", path=f"src/{name}"), agent=one, after=1)
    for one, name in agents.items():
        s.does(says=f"src/{name} is in order.", agent=one, after=1)
        s.notified(finished(one, f"Review {name}"))
        s.ends(f"{name} is in order.")


@scene("claude")
def refused_twice_then_otherwise(s: Session) -> None:
    """Refused, asked for once more, understood. The second time is how an agent finds out that it was meant."""
    s.asked("Clean the build folder.")
    no = "Permission to use Bash with command rm -rf build has been denied."
    s.does(Call("Bash", {"command": "rm -rf build", "description": "Clean"}, no, failed=True))
    s.does(Call("Bash", {"command": "rm -rf build", "description": "Clean the build folder"}, no, failed=True))
    s.does(bash("make clean", "cleaned build/"))
    s.does(edit_misses("Makefile", "clean :", "clean:"))
    s.does(read("Makefile", "clean:\n\t@python tools/clean.py\n"))
    s.does(edit("Makefile", "@python", "python"))
    for name in NAMES[:16]:
        s.does(bash(f"make {name}", f"cc -c src/{name}.c"))
    s.ends("Clean.")


# -- SWE-agent --------------------------------------------------------------------------------------------


def _shown(path: str, *lines: str) -> str:
    numbered = "\n".join(f"{at:6}\t{line}" for at, line in enumerate(lines, 1))
    return f"Here's the result of running `cat -n` on {path}:\n{numbered}\n"


@scene("swe-agent")
def traj_of_a_fix(s: Session) -> None:
    s.asked("Fix the issue: separability_matrix does not compute nested models correctly.")
    s.does(act("find /testbed -name '*separable*'", "/testbed/modeling/separable.py\n"))
    s.does(act("str_replace_editor view /testbed/modeling/separable.py", _shown("separable.py", "def _cstack(a, b):")))
    s.does(act("str_replace_editor create /testbed/reproduce.py --file_text 'import m'", "File created successfully"))
    wrong = "[[ True False]\n [ True  True]]\n"
    s.does(act("cd /testbed && python reproduce.py", wrong))
    for at in range(4):
        replaced = f"str_replace_editor str_replace /testbed/modeling/separable.py --old_str 'a{at}' --new_str 'b{at}'"
        s.does(act(replaced, f"The file /testbed/modeling/separable.py has been edited. {_shown('s.py', f'b{at}')}"))
        s.does(act("cd /testbed && python reproduce.py", wrong if at < 3 else "[[ True False]\n [False  True]]\n"))
    for name in NAMES[:9]:
        s.does(act(f"cd /testbed && python -m pytest -q tests/test_{name}.py", f"12 passed in {s.seconds(0.3, 2)}s\n"))
    s.does(act("rm /testbed/reproduce.py", ""))
    s.does(act("submit", "diff --git a/modeling/separable.py b/modeling/separable.py\n"))


@scene("swe-agent")
def traj_of_a_search(s: Session) -> None:
    s.asked("Fix the issue: the admin page raises for an empty inline.")
    for name in NAMES[:12]:
        s.does(act(f"cd /testbed && grep -rn '{name}' django/contrib/admin", ""))
    s.does(act("cd /testbed && grep -rn 'inline' django/contrib/admin | head", "options.py:1912: for inline in i:\n"))
    for page in range(10):
        start = 1 + page * 60
        view = f"str_replace_editor view /testbed/django/contrib/admin/options.py --view_range {start} {start + 59}"
        s.does(act(view, _shown("options.py", f"line {start}")))
    s.does(act("cd /testbed && python tests/runtests.py admin_inlines", f"Ran 88 tests in {s.seconds(2, 5)}s\nOK\n"))
    s.does(act("submit", "diff --git a/options.py b/options.py\n"))


@scene("claude")
def rename_that_leaves_nothing_behind(s: Session) -> None:
    """After each edit a search proves that the old name is gone: it finds nothing, as it should."""
    s.asked("Rename the helpers of every module.")
    for name in NAMES[:16]:
        s.does(edit(f"src/{name}.py", f"old_{name}", f"new_{name}"))
        s.does(grep(f"old_{name}"))


@scene("claude")
def is_it_used_anywhere(s: Session) -> None:
    """Which of these names are dead? Most are: eight searches in a row find nothing, then one does."""
    s.asked("Which functions of the shop are never called?")
    for at, name in enumerate(NAMES[:24]):
        s.does(grep(f"{name}_helper", *([f"src/{name}.py"] if at % 9 == 8 else [])))
        if at % 3 == 2:
            s.does(read(f"src/{name}.py", f"def {name}_helper(): ...\n"))


@scene("claude")
def a_tool_that_is_installed_at_last(s: Session) -> None:
    s.asked("Build the service.")
    missing_tool = "/bin/bash: line 1: mvn: command not found"
    for goal in ("--version", "-q compile", "-v"):
        s.does(bash(f"mvn {goal}", missing_tool, failed=True, code=127))
    s.does(bash("which mvn java", "/usr/bin/java"))
    s.does(bash("apt-get install -y maven", "Setting up maven (3.8.7-1) ..."))
    for name in NAMES[:12]:
        s.does(bash(f"mvn -q -pl {name} package", f"BUILD SUCCESS of {name}"))
    for goal in ("compile", "test", "package"):
        s.does(bash(f"mvn -q {goal}", f"BUILD SUCCESS of {goal}"))


@scene("claude")
def the_same_files_after_each_edit(s: Session) -> None:
    """A reviewer who looks at everything again after every change."""
    s.asked("Tidy up, and check the whole of it each time.")
    for at in range(4):
        s.does(edit("src/app.py", f"step_{at}", f"step_{at + 1}"))
        for name in NAMES[:7]:
            s.does(read(f"src/{name}.py", f"def {name}(): ...\n"))


# -- a long day -------------------------------------------------------------------------------------------


@scene("claude")
def long_session(s: Session) -> None:
    """About 400 calls of ordinary work in one task: look, change, check, commit, with some red tests on the way."""
    s.asked("Migrate all modules to the new storage layer, one commit each.")
    s.does(read("PLAN.md", "one module at a time\n"), git_status())
    for name in NAMES:
        s.does(grep(f"import {name}", f"src/{name}.py", "src/app.py"))
        s.does(read(f"src/{name}.py", f"import old\n\n\ndef {name}():\n    return old.load('{name}')\n"))
        s.does(read(f"tests/test_{name}.py", f"def test_{name}():\n    assert {name}()\n"))
        s.does(edit(f"src/{name}.py", "import old", "import storage"))
        s.does(edit(f"src/{name}.py", f"old.load('{name}')", f"storage.get('{name}')"))
        test = f"tests/test_{name}.py"
        if s.dice.random() < 0.5:
            error = f"AttributeError: module 'storage' has no attribute '{name}'"
            s.does(pytest_fails(s, f"{test}::test_{name}", error, line=9, passed=0, command=f"pytest -q {test}"))
            s.does(edit("src/storage.py", "# tables", f"# tables\n{name} = table()"))
        s.does(pytest_passes(s, 4, f"pytest -q {test}"))
        s.does(bash("ruff check", "All checks passed!"))
        s.does(bash("git add -A", ""))
        s.does(git_commit(s, f"Move {name} to the storage layer", 2))
        if s.dice.random() < 0.5:
            s.does(git_status())
    for at in range(42):
        name = s.dice.choice(NAMES)
        s.does(grep(f"{name}_{at}", f"src/{name}.py"))
        s.does(read(f"src/{name}.py", f"import storage\n\n\ndef {name}():\n    return storage.get('{name}')\n"))
    s.does(pytest_passes(s, 240))
    s.ends("All 30 modules are migrated.")
