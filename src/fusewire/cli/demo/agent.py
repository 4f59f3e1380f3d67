"""The bundled demo agent: no model, only a script of what such agents do on a good and on a bad night.

It is run like any other agent (`fusewire run ... -- python agent.py`), reads its prompt, works on the project in the
current folder and ends each answer with a status block.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

#: How many times it has been started; outside the project, so that it is no change of it.
COUNTER = Path(os.environ.get("FUSEWIRE_DEMO_COUNTER", ".demo-counter"))

SOLUTIONS = {
    "add": "def add(a, b):\n    return a + b\n",
    "subtract": "def subtract(a, b):\n    return a - b\n",
    "divide": "def divide(a, b):\n    if b == 0:\n        return None\n    return a / b\n",
    "power": "def power(a, b):\n    return a**b\n",
}


def main() -> None:
    prompt = sys.stdin.read()
    turn = int(COUNTER.read_text()) + 1 if COUNTER.exists() else 1
    COUNTER.write_text(str(turn))
    say(f"(demo agent, start {turn}) I have read a prompt of {len(prompt.split())} words.")
    if "Strategy" in prompt:
        recover(prompt)
    elif turn <= 2:
        implement(("add", "subtract")[turn - 1])
    elif turn == 3:
        clean_up()
    elif turn <= 6:
        get_stuck()
    else:
        finish()


def implement(name: str) -> None:
    """A good iteration: code, a ticked box, a commit."""
    say(f"I implement {name}() in calculator.py and tick its box.")
    write(name)
    done = run_tests()
    commit(f"Implement {name}")
    status("IN_PROGRESS", tasks=1, tests="PASSING" if done else "FAILING", approach=f"write {name}")


def clean_up() -> None:
    """An iteration that does harm: the specifications look like clutter."""
    say("This folder is cluttered. I run: rm -rf specs")
    shutil.rmtree("specs", ignore_errors=True)
    status("IN_PROGRESS", tasks=0, tests="NOT_RUN", approach="tidy up first")


def get_stuck() -> None:
    """The same failing step again and again, with confidence."""
    say("divide() must not crash. One more try will fix it: I run the tests again.")
    run_tests("test_divide")
    status("IN_PROGRESS", tasks=0, tests="FAILING", approach="run it again")


def recover(prompt: str) -> None:
    """Told why it was stopped and what to try, it does something else."""
    say("The circuit breaker says what to try:")
    for line in prompt.splitlines():
        if "Strategy" in line or "opened:" in line:
            say(f"  {line.strip('- ')}")
    say("So I look at it afresh: divide() by zero has to give None. I write that.")
    write("divide")
    done = run_tests()
    commit("Implement divide")
    status("IN_PROGRESS", tasks=1, tests="PASSING" if done else "FAILING", approach="analyse it afresh")


def finish() -> None:
    say("One box is left: power().")
    write("power")
    run_tests()
    commit("Implement power")
    status("COMPLETE", tasks=1, tests="PASSING", approach="write power", is_finished=True)


def write(name: str) -> None:
    with open("calculator.py", "a") as file:
        file.write(f"\n\n{SOLUTIONS[name]}")
    plan = Path("IMPLEMENTATION_PLAN.md")
    plan.write_text(plan.read_text().replace(f"- [ ] {name}", f"- [x] {name}"))


def run_tests(*names: str) -> bool:
    chosen = [f"test_calculator.Calculator.{name}" for name in names] or ["test_calculator"]
    command = [sys.executable, "-B", "-m", "unittest", *chosen]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    print("\n".join(done.stderr.splitlines()[-6:]))
    return done.returncode == 0


def commit(message: str) -> None:
    sys.path.append(str(Path(__file__).parents[3]))  # it was started without the folder of the package
    from fusewire.cli.demo import project

    project.commit(os.getcwd(), message)


def status(state: str, *, tasks: int, tests: str, approach: str, is_finished: bool = False) -> None:
    say(
        "---RALPH_STATUS---\n"
        f"STATUS: {state}\nTASKS_COMPLETED_THIS_LOOP: {tasks}\nFILES_MODIFIED: {2 * tasks}\nTESTS_STATUS: {tests}\n"
        f"WORK_TYPE: IMPLEMENTATION\nEXIT_SIGNAL: {str(is_finished).lower()}\nAPPROACH: {approach}\n"
        f"RECOMMENDATION: {'nothing is left' if is_finished else 'go on'}\n"
        "---END_RALPH_STATUS---"
    )


def say(text: str) -> None:
    print(text, flush=True)
    time.sleep(float(os.environ.get("FUSEWIRE_DEMO_PACE", "0.3")))


if __name__ == "__main__":
    main()
