"""What every store must hold. A new store proves itself with a five-line subclass at the end of this file."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fusewire.stores import open_store
from fusewire.stores.rows import (
    AUDIT_ROWS,
    CIRCUITS,
    DECISIONS,
    DOINGS,
    KEPT_ROWS,
    LOG_ROWS,
    OTHER_ROWS,
    TRIM_EVERY,
    AuditRow,
    CircuitRow,
    DecisionRow,
    Doing,
    LogRow,
    SpendRow,
)
from fusewire.stores.scoped import ScopedStore

if TYPE_CHECKING:
    from fusewire.stores import Store, Transaction
    from tests.helpers.postgres import PostgresServer

STATE = {"since": 100.0, "phase": "open", "opened_at": 100.0, "meters": {"violations": [100.0]}}


def log_row(circuit: str, at: float, text: str = "an action", *, session: str | None = None) -> LogRow:
    return LogRow(circuit, at, "bad", "violation", text, session, 1, "counted")


def audit_row(circuit: str, at: float, reason: str = "because") -> AuditRow:
    return AuditRow(circuit, at, "closed", "open", "tripped", reason, "somebody")


def spend_row(session: str, usd: float, *, at: int = 0, model: str = "m") -> SpendRow:
    return SpendRow(session, at, "main", model, "", "", "claude", usd, (10, 20, 0, 0, 0, 0), calls=1)


def write_with_every_verb(transaction: Transaction) -> None:
    transaction.save("kept", "constraint", "open", STATE, 2.0)
    transaction.save("new", "constraint", "open", STATE, 2.0)
    transaction.log(log_row("kept", 2.0), kept=True)
    transaction.log(log_row("new", 2.0), kept=False)
    transaction.audit(audit_row("new", 2.0), STATE)
    transaction.acknowledge()
    transaction.notice("never said", 2.0)
    transaction.remove("kept")
    transaction.remember("loop", {"iteration": 2}, 2.0)
    transaction.happened(Doing("s", "", 2.0, "ok", "Bash", "never done"))
    transaction.decided(DecisionRow(2.0, "s", "refused", "r", {"call": "never made"}))


class StoreConformance:
    """The contract of `Store` and `Transaction`; subclasses say how to open one."""

    def open(self, folder: Path) -> Store:
        raise NotImplementedError

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[Store]:
        store = self.open(tmp_path)
        yield store
        store.close()

    # -- states -------------------------------------------------------------------------------------

    def test_a_new_store_is_empty_and_healthy(self, store: Store) -> None:
        """Nothing is known before anything was written, and reading is no error."""
        assert store.circuits() == []
        assert store.circuit("a") is None
        assert store.log_of("a") == []
        assert store.audit_of(None) == []
        assert store.notices() == []
        assert store.verify() == []
        assert store.moves() == store.logs() == store.doings("s") == []
        assert store.last_move() == 0

    def test_moves_have_numbers_that_go_on(self, store: Store) -> None:
        """Whoever has seen the trail up to a number gets what came behind it, in order, and no more than asked for."""
        with store.transact() as transaction:
            for at in (1.0, 2.0, 3.0):
                transaction.audit(audit_row(f"c{at:.0f}", at))
        first, second, third = store.moves()
        assert [row.circuit for _, row in (first, second, third)] == ["c1", "c2", "c3"]
        assert first[0] < second[0] < third[0] == store.last_move()
        assert store.moves(first[0]) == [second, third]
        assert store.moves(first[0], 1) == [second]
        assert store.moves(third[0]) == store.moves(third[0] + 5) == []

    def test_numbers_of_moves_survive_trimming(self, store: Store) -> None:
        """Rows that are forgotten take their numbers with them."""
        for at in range(AUDIT_ROWS + 2 * TRIM_EVERY):
            with store.transact() as transaction:
                transaction.audit(audit_row("a", float(at)))
        last = store.last_move()
        assert store.moves(last - 1) == [(last, audit_row("a", AUDIT_ROWS + 2 * TRIM_EVERY - 1.0))]
        assert last == AUDIT_ROWS + 2 * TRIM_EVERY

    def test_the_logs_of_all_circuits_come_in_order(self, store: Store) -> None:
        """By what happened first, whichever circuit it reached."""
        for at, circuit in enumerate(("b", "a", "b"), 1):
            with store.transact() as transaction:
                transaction.save(circuit, "constraint", "closed", {"since": 1.0}, at, log=log_row(circuit, float(at)))
        assert [(row.circuit, row.at) for row in store.logs()] == [("b", 1.0), ("a", 2.0), ("b", 3.0)]
        assert [row.at for row in store.logs(since=2.0)] == [2.0, 3.0]

    def test_what_a_session_did_is_told_apart_and_bounded(self, store: Store) -> None:
        """Each session has its own; of all together the newest are kept."""
        mine = Doing("mine", "helper", 1.0, "failed", "Bash(pytest)", "pytest -q")
        with store.transact() as transaction:
            transaction.happened(mine)
            transaction.happened(Doing("other", "", 2.0, "spend", "", "", 1.25))
        assert store.doings("mine") == [mine]
        assert store.doings("mine", since=1.5) == []
        assert store.doings("other")[0].value == 1.25
        with store.transact() as transaction:
            for at in range(DOINGS + TRIM_EVERY):
                transaction.happened(Doing("busy", "", float(at), "ok", "Read", ""))
        assert DOINGS <= len(store.doings("busy")) <= DOINGS + TRIM_EVERY
        assert store.doings("mine") == []

    def test_answers_that_were_no_plain_allow_have_numbers_that_go_on_and_codes(self, store: Store) -> None:
        """Behind a number come those that are newer; the code that a row was given is the one that it has."""
        rows = [
            DecisionRow(1.0, "s", "refused", "guard.rm", {"call": "rm -rf /", "evidence": ["a", "b"]}),
            DecisionRow(2.0, "t", "logged", "tool.repetition", {}),
            DecisionRow(2.0, "t", "logged", "tool.repetition", {}),
        ]
        codes = []
        for row in rows:
            with store.transact() as transaction:
                codes.append(transaction.decided(row))
        found = store.decisions()
        assert [one for _, one in found] == [row.replace(code=code) for row, code in zip(rows, codes, strict=True)]
        assert len(set(codes)) == 3
        assert all(len(code) == 5 and not set(code) & set("01ILOU") for code in codes)
        assert store.decisions(found[0][0]) == found[1:]
        assert store.decisions(found[2][0]) == []
        assert store.last_decision() == found[2][0]

    def test_answers_that_were_no_plain_allow_are_bounded_and_the_newest_stay(self, store: Store) -> None:
        """A refused call is no reason to grow; each of them keeps its number."""
        with store.transact() as transaction:
            for at in range(DECISIONS + 2 * TRIM_EVERY):
                transaction.decided(DecisionRow(float(at), "s", "told", "r", {}))
        found = store.decisions()
        assert DECISIONS <= len(found) <= DECISIONS + TRIM_EVERY
        assert [number for number, _ in found] == sorted(number for number, _ in found)
        assert found[-1][1].at == DECISIONS + 2 * TRIM_EVERY - 1
        assert store.last_decision() == found[-1][0]
        assert len({row.code for _, row in found}) == len(found)

    def test_the_version_changes_with_every_commit(self, store: Store) -> None:
        """Whoever polls learns of a write, and of nothing else."""
        with store.transact() as transaction:
            transaction.remember("a", {}, 1.0)
        before = store.version()
        assert store.version() == before
        with store.transact() as transaction:
            transaction.remember("a", {"b": 1}, 2.0)
        assert store.version() != before

    def test_who_wants_to_hear_of_news_does_after_the_commit(self, store: Store) -> None:
        """Once for each commit that has some, when its rows are there and the lock is free; never if rolled back."""
        heard: list[tuple[int, int, int]] = []
        store.after_news = lambda: heard.append(
            (store.last_move(), len(store.notices_after()), len(store.answers()))  # each is there when it is told
        )
        with store.transact() as transaction:
            transaction.save("a", "constraint", "closed", {"since": 1.0}, 1.0, log=log_row("a", 1.0))
            transaction.happened(Doing("s", "", 1.0, "refused", "Bash", "ls"))
            transaction.remember("a", {}, 1.0)
        with store.transact() as transaction:
            transaction.audit(audit_row("a", 1.0))
            transaction.audit(audit_row("b", 1.0))
            assert heard == []
        with suppress(RuntimeError), store.transact() as transaction:
            transaction.audit(audit_row("c", 1.0))
            raise RuntimeError
        assert heard == [(2, 0, 0)]
        with store.transact() as transaction:
            transaction.notice("a person should look", 1.0)
        with store.transact() as transaction:
            transaction.happened(Doing("s", "", 1.0, "halted", "Bash", "ls"))
        with store.transact() as transaction:
            transaction.happened(Doing("s", "", 1.0, "told", "Bash", "ls"))
        assert heard == [(2, 0, 0), (2, 1, 0), (2, 1, 1), (2, 1, 2)]

    def test_notices_and_answers_have_numbers_that_go_on(self, store: Store) -> None:
        """Behind a number come those that are newer; of notices those that nobody has acknowledged."""
        answers = [Doing("s", "", at, kind, "Bash", "ls") for at, kind in ((1.0, "told"), (2.0, "halted"))]
        for answer in answers:
            with store.transact() as transaction:
                transaction.happened(answer)
                transaction.happened(Doing("s", "", answer.at, "refused", "Bash", "ls"))
                transaction.notice(f"at {answer.at}", answer.at)
        first, second = store.answers()
        assert [first[1], second[1]] == answers
        assert store.answers(first[0]) == [second]
        assert store.answers(second[0]) == []
        early, late = store.notices_after()
        assert [early[1:], late[1:]] == [(1.0, "at 1.0"), (2.0, "at 2.0")]
        assert store.notices_after(early[0]) == [late]
        with store.transact() as transaction:
            transaction.acknowledge()
            transaction.notice("at 3.0", 3.0)
        ((number, at, text),) = store.notices_after()
        assert (number > late[0], at, text) == (True, 3.0, "at 3.0")

    def test_what_was_saved_is_loaded(self, store: Store) -> None:
        """A state comes back equal, inside a later transaction and outside of any, and the last one wins."""
        with store.transact() as transaction:
            assert transaction.load("a") is None
            transaction.save("a", "constraint", "closed", {"since": 1.0}, 1.0)
        with store.transact() as transaction:
            assert transaction.load("a") == {"since": 1.0}
            transaction.save("a", "constraint", "open", STATE, 100.0)
        assert store.circuit("a") == CircuitRow("a", "constraint", "open", STATE)
        assert store.circuits() == [CircuitRow("a", "constraint", "open", STATE)]

    def test_a_saved_state_cannot_be_changed_from_outside(self, store: Store) -> None:
        """Whoever saved a state or was given one may go on using it without touching what is stored."""
        mine = {"since": 1.0, "meters": {"violations": [1.0]}}
        with store.transact() as transaction:
            transaction.save("a", "constraint", "closed", mine, 1.0)
            mine["meters"]["violations"].append(2.0)  # type: ignore[index]
            given = transaction.load("a")
            assert given is not None
            given["since"] = 9.0
        assert store.circuits()[0].state == {"since": 1.0, "meters": {"violations": [1.0]}}

    def test_circuits_come_in_the_order_of_their_ids(self, store: Store) -> None:
        """A listing does not depend on what happened when."""
        names = ["b", "a", "tool/x/é", "tool/x/z", "Z", "tool/x/𝄞", "tool/x/\uffee"]
        with store.transact() as transaction:
            for at, name in enumerate(names):
                transaction.save(name, "constraint", "closed", {"since": 1.0}, at)
        assert [row.id for row in store.circuits()] == sorted(names)

    def test_what_a_detector_remembered_is_recalled(self, store: Store) -> None:
        """Inside a later transaction and outside of any; the last one wins, and a name of its own has its own."""
        assert store.recall("loop") is None
        with store.transact() as transaction:
            assert transaction.recall("loop") is None
            mine = {"iteration": 1, "seen": ["a"]}
            transaction.remember("loop", mine, 1.0)
            mine["seen"].append("b")  # type: ignore[attr-defined]
            transaction.remember("other", {}, 1.0)
        with store.transact() as transaction:
            assert transaction.recall("loop") == {"iteration": 1, "seen": ["a"]}
            transaction.remember("loop", {"iteration": 2}, 2.0)
        assert store.recall("loop") == {"iteration": 2}
        assert store.recall("other") == {}

    def test_what_is_remembered_can_be_listed_and_forgotten(self, store: Store) -> None:
        """By the beginning of its name, the newest first; what was written since stays, and so do other names."""
        with store.transact() as transaction:
            for name, at in (
                ("session/a", 1.0),
                ("session/b", 3.0),
                ("session/b/x", 2.0),
                ("session", 1.0),
                ("spend", 1.0),
            ):
                transaction.remember(name, {"at": at}, at)
        assert store.remembered("session/") == [("session/b", 3.0), ("session/b/x", 2.0), ("session/a", 1.0)]
        assert store.remembered("none/") == []
        with store.transact() as transaction:
            assert transaction.forget("session/", 3.0) == 2
            assert transaction.forget("session/", 3.0) == 0
        assert store.remembered("session/") == [("session/b", 3.0)]
        assert store.recall("session/a") is None
        assert store.recall("session") == {"at": 1.0}
        assert store.recall("spend") == {"at": 1.0}
        with store.transact() as transaction:
            transaction.remember("session/b/", {}, 3.0)
            transaction.drop("session/b")
            transaction.drop("none")
        assert store.remembered("session/") == [("session/b/", 3.0)]
        with store.transact() as transaction:
            transaction.drop("session/b/")
            transaction.remember("session/b", {"at": 3.0}, 3.0)
        with pytest.raises(ZeroDivisionError), store.transact() as transaction:
            assert transaction.forget("session/", 9.0) / 0
        assert store.recall("session/b") == {"at": 3.0}

    # -- all or nothing -----------------------------------------------------------------------------

    @pytest.mark.parametrize("failure", [RuntimeError, KeyboardInterrupt])
    def test_an_exception_leaves_nothing_behind(self, store: Store, failure: type[BaseException]) -> None:
        """Every verb is undone when the transaction ends in an exception, which comes through unchanged."""
        with store.transact() as transaction:
            transaction.save("kept", "constraint", "closed", {"since": 1.0}, 1.0)
            transaction.log(log_row("kept", 1.0), kept=True)
            transaction.notice("read me", 1.0)

        def fail_in_the_middle() -> None:
            with store.transact() as transaction:
                write_with_every_verb(transaction)
                raise failure("in the middle")

        with pytest.raises(failure, match="in the middle"):
            fail_in_the_middle()
        assert store.circuits() == [CircuitRow("kept", "constraint", "closed", {"since": 1.0})]
        assert [row.at for row in store.log_of("kept")] == [1.0]
        assert store.log_of("new") == []
        assert store.audit_of(None) == []
        assert store.notices() == ["read me"]
        assert store.recall("loop") is None
        assert store.decisions() == []
        with store.transact() as transaction:  # and the store still works
            transaction.save("kept", "constraint", "closed", {"since": 3.0}, 3.0)
        assert store.circuits()[0].state == {"since": 3.0}

    def test_a_transaction_reads_what_it_has_written(self, store: Store) -> None:
        """Inside a transaction the state, the log and the audit trail already hold its own writes."""
        with store.transact() as transaction:
            transaction.save("a", "constraint", "open", STATE, 1.0)
            transaction.log(log_row("a", 1.0), kept=True)
            transaction.audit(audit_row("a", 1.0), STATE)
            assert transaction.load("a") == STATE
            assert [row.at for row in transaction.log_of("a")] == [1.0]
            assert [row.at for row in transaction.audit_of("a")] == [1.0]
            transaction.remove("a")
            assert transaction.load("a") is None
            assert transaction.log_of("a") == []

    def test_reading_while_a_transaction_is_open(self, store: Store) -> None:
        """The thread that holds a transaction may look at the store; that neither hangs nor ends the transaction."""
        with store.transact() as transaction:
            transaction.save("a", "constraint", "closed", {"since": 1.0}, 1.0)
        with store.transact() as transaction:
            assert [row.id for row in store.circuits()] == ["a"]
            assert store.circuit("a") is not None
            assert store.log_of("a") == []
            assert store.audit_of(None) == []
            assert store.notices() == []
            transaction.save("a", "constraint", "open", STATE, 2.0)
        assert store.circuits()[0].state == STATE

    def test_two_threads_never_hold_a_transaction_at_once(self, store: Store) -> None:
        """Read, add one, write: with 4 threads and 50 rounds each the sum is 200."""
        with store.transact() as transaction:
            transaction.save("sum", "constraint", "closed", {"since": 0.0}, 0.0)

        def add() -> None:
            for _ in range(50):
                with store.transact() as transaction:
                    state = transaction.load("sum") or {}
                    transaction.save("sum", "constraint", "closed", {"since": state["since"] + 1}, 0.0)

        threads = [threading.Thread(target=add) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert store.circuits()[0].state == {"since": 200.0}

    # -- the log ------------------------------------------------------------------------------------

    def test_the_rings_keep_the_newest_rows(self, store: Store) -> None:
        """A circuit keeps its last KEPT_ROWS rows that mattered and its last OTHER_ROWS that did not, in order."""
        with store.transact() as transaction:
            transaction.save("a", "constraint", "closed", {"since": 1.0}, 1.0)
            for number in range(KEPT_ROWS + 30):
                transaction.log(log_row("a", number, f"kept {number}"), kept=True)
                if number % 3 == 0:
                    transaction.log(log_row("a", number, f"other {number}"), kept=False)
        rows = store.log_of("a")
        kept = [row.text for row in rows if row.text.startswith("kept")]
        other = [row.text for row in rows if row.text.startswith("other")]
        assert kept == [f"kept {number}" for number in range(30, KEPT_ROWS + 30)]
        newest = range(0, KEPT_ROWS + 30, 3)[-OTHER_ROWS:]
        assert other == [f"other {number}" for number in newest]
        assert [row.at for row in rows] == sorted(row.at for row in rows)

    def test_refusals_do_not_push_out_violations(self, store: Store) -> None:
        """Any number of rows that changed nothing leave the one violation where it is."""
        with store.transact() as transaction:
            transaction.save("a", "constraint", "closed", {"since": 1.0}, 1.0)
            transaction.log(log_row("a", 1.0, "the violation"), kept=True)
            for number in range(2 * OTHER_ROWS):
                transaction.log(log_row("a", 2.0 + number, "refused"), kept=False)
        rows = store.log_of("a")
        assert rows[0].text == "the violation"
        assert len(rows) == 1 + OTHER_ROWS

    def test_rings_are_separate_by_circuit(self, store: Store) -> None:
        """A noisy circuit does not touch the log of another."""
        with store.transact() as transaction:
            for name in ("quiet", "noisy"):
                transaction.save(name, "constraint", "closed", {"since": 1.0}, 1.0)
            transaction.log(log_row("quiet", 1.0), kept=True)
            for number in range(KEPT_ROWS + 10):
                transaction.log(log_row("noisy", number), kept=True)
        assert len(store.log_of("quiet")) == 1
        assert len(store.log_of("noisy")) == KEPT_ROWS

    def test_a_log_may_be_read_from_a_moment_on(self, store: Store) -> None:
        """`since` is included; what is older is left out."""
        with store.transact() as transaction:
            transaction.save("a", "constraint", "closed", {"since": 1.0}, 1.0)
            for at in (1.0, 2.0, 3.0):
                transaction.log(log_row("a", at), kept=True)
        assert [row.at for row in store.log_of("a", 2.0)] == [2.0, 3.0]

    def test_all_logs_together_are_bounded(self, store: Store) -> None:
        """However many circuits there are, all their rows stay near LOG_ROWS, and the newest are the ones kept."""
        circuits = LOG_ROWS // KEPT_ROWS + 4
        with store.transact() as transaction:
            for number in range(circuits):
                transaction.save(f"c{number:02}", "constraint", "closed", {"since": 1.0}, 1.0)
        for number in range(circuits):
            for part in range(5):
                with store.transact() as transaction:
                    for row in range(KEPT_ROWS // 5):
                        at = number * KEPT_ROWS + part * KEPT_ROWS // 5 + row
                        transaction.log(log_row(f"c{number:02}", at), kept=True)
        sizes = [len(store.log_of(f"c{number:02}")) for number in range(circuits)]
        assert LOG_ROWS - TRIM_EVERY <= sum(sizes) <= LOG_ROWS + TRIM_EVERY
        assert sizes[0] == 0
        assert sizes[-1] == KEPT_ROWS

    def test_a_row_of_the_log_comes_back_as_it_was(self, store: Store) -> None:
        """Every field survives, also the empty ones and fractions."""
        row = LogRow("a", 1234.5678, "ask", "action", "", None, 0.25, "refused")
        with store.transact() as transaction:
            transaction.save("a", "constraint", "closed", {"since": 1.0}, 1.0)
            transaction.log(row, kept=False)
        assert store.log_of("a") == [row]

    # -- what was spent -----------------------------------------------------------------------------

    def test_what_was_spent_adds_up_and_is_found_behind_a_number(self, store: Store) -> None:
        """A row that grows gets a new number; one that does not is found once."""
        for row in (spend_row("a", 1.0), spend_row("b", 2.0, model="m2"), spend_row("a", 0.5)):
            with store.transact() as transaction:
                transaction.spend([row])
        assert [(row.session, row.usd, row.calls) for row in store.spent_after(0)] == [("b", 2.0, 1), ("a", 1.5, 2)]
        last = store.spent_after(0)[-1].version
        assert store.spent_after(last) == []
        assert store.spent(("session",))[0] == ("a", 1.5, 20, 40, 0, 0, 0, 0, 2, 0)
        assert store.spent() == [(3.5, 30, 60, 0, 0, 0, 0, 3, 0)]

    def test_sums_are_asked_for_by_time_and_by_column(self, store: Store) -> None:
        """From a moment up to another one; what a column must be, or must not be."""
        with store.transact() as transaction:
            transaction.spend([spend_row("a", 1.0, at=900), spend_row("a", 2.0, at=1800), spend_row("b", 4.0)])
        assert store.spent(since=900, until=1800)[0][0] == 1.0
        assert store.spent(where={"session": "b"})[0][0] == 4.0
        assert store.spent(where={"not session": "b"})[0][0] == 3.0
        assert store.spent(where={"session": "nobody"})[0][0] == 0.0
        with pytest.raises(ValueError, match="dimension"):
            store.spent(("usd; DROP TABLE spent",))

    def test_an_error_takes_back_what_was_spent(self, store: Store) -> None:
        with suppress(RuntimeError), store.transact() as transaction:
            transaction.spend([spend_row("a", 1.0)])
            raise RuntimeError
        assert store.spent_after(0) == []

    # -- the audit trail ----------------------------------------------------------------------------

    def test_the_audit_trail_is_in_the_order_of_writing(self, store: Store) -> None:
        """Oldest first, of one circuit or of all, from a moment on; a clock set back does not reorder it."""
        rows = [audit_row("a", 5.0), audit_row("b", 3.0), audit_row("a", 4.0), audit_row("b", 6.0)]
        for row in rows:
            with store.transact() as transaction:
                transaction.audit(row, STATE)
        assert store.audit_of(None) == rows
        assert store.audit_of("a") == [rows[0], rows[2]]
        assert store.audit_of(None, 5.0) == [rows[0], rows[3]]
        assert store.audit_of("c") == []

    def test_the_audit_trail_is_bounded(self, store: Store) -> None:
        """It keeps about the newest AUDIT_ROWS rows."""
        total = AUDIT_ROWS + 3 * TRIM_EVERY
        with store.transact() as transaction:
            for number in range(total):
                transaction.audit(audit_row("a", number))
        rows = store.audit_of("a")
        assert AUDIT_ROWS <= len(rows) <= AUDIT_ROWS + TRIM_EVERY
        assert [row.at for row in rows] == list(range(total - len(rows), total))

    # -- removing and trimming ----------------------------------------------------------------------

    def test_a_removed_circuit_is_forgotten_but_not_its_audit_trail(self, store: Store) -> None:
        """State and log are gone, the trail stays, other circuits are not touched."""
        with store.transact() as transaction:
            for name in ("a", "b"):
                transaction.save(name, "constraint", "open", STATE, 1.0)
                transaction.log(log_row(name, 1.0), kept=True)
                transaction.audit(audit_row(name, 1.0), STATE)
        with store.transact() as transaction:
            transaction.remove("a")
            transaction.remove("never there")
        assert [row.id for row in store.circuits()] == ["b"]
        assert store.log_of("a") == []
        assert len(store.log_of("b")) == 1
        assert len(store.audit_of("a")) == 1

    def test_a_circuit_may_be_replaced_in_one_transaction(self, store: Store) -> None:
        """Removed and saved again: the new log is all there is, as an import expects it."""
        with store.transact() as transaction:
            transaction.save("a", "constraint", "open", STATE, 1.0)
            transaction.log(log_row("a", 1.0, "old"), kept=True)
        with store.transact() as transaction:
            transaction.remove("a")
            transaction.save("a", "constraint", "closed", {"since": 2.0}, 2.0)
            transaction.log(log_row("a", 2.0, "new"), kept=True)
        assert store.circuit("a") == CircuitRow("a", "constraint", "closed", {"since": 2.0})
        assert [row.text for row in store.log_of("a")] == ["new"]

    def test_a_log_row_written_before_the_removal_is_removed_too(self, store: Store) -> None:
        """The order of the verbs inside a transaction is kept."""
        with store.transact() as transaction:
            transaction.save("a", "constraint", "open", STATE, 1.0)
            transaction.log(log_row("a", 1.0), kept=True)
            transaction.remove("a")
        assert store.log_of("a") == []
        assert store.circuit("a") is None

    def test_idle_circuits_are_trimmed_but_never_constraints_nor_open_ones(self, store: Store) -> None:
        """Of sessions long gone the oldest go, with their logs; a constraint and whatever is not closed stays."""
        with store.transact() as transaction:
            transaction.save("rule", "constraint", "closed", {"since": 0.0}, 0.0)
            for phase in ("open", "probe", "watch"):
                transaction.save(f"tool/{phase}", "tool", phase, {"since": 0.0}, 0.0)
            transaction.save("tool/idle", "tool", "closed", {"since": 0.0}, 0.0)
            transaction.log(log_row("tool/idle", 0.0), kept=True)
        with store.transact() as transaction:
            for number in range(CIRCUITS + 20):
                transaction.save(f"tool/{number:05}", "tool", "closed", {"since": 1.0}, 1.0 + number)
        names = {row.id for row in store.circuits()}
        assert len(names) == CIRCUITS
        assert {"rule", "tool/open", "tool/probe", "tool/watch"} <= names
        assert "tool/idle" not in names
        assert store.log_of("tool/idle") == []
        assert {f"tool/{number:05}" for number in range(CIRCUITS + 20)[-900:]} <= names

    def test_constraints_are_never_dropped_however_many_there_are(self, store: Store) -> None:
        """More constraints than the limit of circuits: all of them stay."""
        with store.transact() as transaction:
            for number in range(CIRCUITS + 10):
                transaction.save(f"rule-{number}", "constraint", "closed", {"since": 1.0}, 1.0)
        assert len(store.circuits()) == CIRCUITS + 10

    def test_the_circuit_just_written_is_not_the_one_that_is_dropped(self, store: Store) -> None:
        """Also when the clock was set back, a new circuit is kept: otherwise it could never count to its limit."""
        with store.transact() as transaction:
            for number in range(CIRCUITS):
                transaction.save(f"tool/{number:05}", "tool", "closed", {"since": 1.0}, 1_000_000.0 + number)
        with store.transact() as transaction:
            transaction.save("tool/new", "tool", "closed", {"since": 1.0}, 5.0)
        assert store.circuit("tool/new") is not None
        assert len(store.circuits()) == CIRCUITS

    # -- notices ------------------------------------------------------------------------------------

    def test_notices_are_shown_until_they_are_acknowledged(self, store: Store) -> None:
        """In their order, again and again; acknowledging says how many, and later ones are shown again."""
        with store.transact() as transaction:
            transaction.notice("first", 1.0)
        with store.transact() as transaction:
            transaction.notice("second", 2.0)
        assert store.notices() == ["first", "second"]
        assert store.notices() == ["first", "second"]
        with store.transact() as transaction:
            assert transaction.acknowledge() == 2
        assert store.notices() == []
        with store.transact() as transaction:
            assert transaction.acknowledge() == 0
            transaction.notice("third", 3.0)
        assert store.notices() == ["third"]

    def test_notices_are_bounded_and_the_newest_stay(self, store: Store) -> None:
        """A thousand warnings nobody reads do not fill the store."""
        with store.transact() as transaction:
            for number in range(1000):
                transaction.notice(f"notice {number}", number)
        notices = store.notices()
        assert len(notices) <= 200
        assert notices[-1] == "notice 999"

    # -- text ---------------------------------------------------------------------------------------

    @pytest.mark.parametrize(
        "text",
        [
            "a\0b",
            "emoji 🧯 and é and 漢字",
            "line\nbreak\r\n\ttab\x1b[31m",
            "x" * 10_240,
            "'; DROP TABLE circuits; --",
            "\ufeff\u202e\u2028",
        ],
        ids=["nul", "emoji", "control", "10KB", "quotes", "format"],
    )
    def test_any_text_comes_back_as_it_was(self, store: Store, text: str) -> None:
        """In the log, the audit trail, notices, states and the names of circuits."""
        name = f"tool/x/{text}"
        state = {"since": 1.0, "reason": text}
        with store.transact() as transaction:
            transaction.save(name, "tool", "closed", state, 1.0)
            transaction.log(log_row(name, 1.0, text, session=text), kept=True)
            transaction.audit(audit_row(name, 1.0, text), state)
            transaction.notice(text, 1.0)
        assert store.circuit(name) == CircuitRow(name, "tool", "closed", state)
        assert store.log_of(name) == [log_row(name, 1.0, text, session=text)]
        assert store.audit_of(name) == [audit_row(name, 1.0, text)]
        assert store.notices() == [text]

    def test_lone_surrogates_in_texts_are_taken_and_read_back_as_real_text(self, store: Store) -> None:
        """JSON may carry half a character; it is stored without an error, and what is read can be printed."""
        text = "half \ud83d of it"
        with store.transact() as transaction:
            transaction.save("a", "constraint", "closed", {"since": 1.0, "evidence": text}, 1.0)
            transaction.log(log_row("a", 1.0, text, session=text), kept=True)
            transaction.audit(audit_row("a", 1.0, text), {"since": 1.0, "evidence": text})
            transaction.notice(text, 1.0)
        (row,) = store.log_of("a")
        (move,) = store.audit_of("a")
        (notice,) = store.notices()
        for read in (row.text, row.session or "", move.reason, notice):
            assert read.startswith("half ")
            assert read.endswith(" of it")
            read.encode("utf-8")
        assert store.circuits()[0].state is not None

    def test_lone_surrogates_in_names_are_taken(self, store: Store) -> None:
        """The key of a circuit comes from outside too (a tool's name): the same name finds it again."""
        name = "tool/tool_failure/\udcff"
        with store.transact() as transaction:
            transaction.save(name, "tool", "closed", {"since": 1.0}, 1.0)
            transaction.log(log_row(name, 1.0), kept=True)
            transaction.audit(audit_row(name, 1.0))
            assert transaction.load(name) == {"since": 1.0}
        assert store.circuit(name) is not None
        assert len(store.log_of(name)) == 1
        assert len(store.audit_of(name)) == 1

    def test_a_state_that_is_no_json_is_refused_and_nothing_is_written(self, store: Store) -> None:
        """NaN and objects would make a row that nobody can read again."""
        for value in (float("nan"), object()):
            with suppress(ValueError, TypeError), store.transact() as transaction:
                transaction.save("a", "constraint", "closed", {"since": value}, 1.0)
                raise AssertionError(f"{value!r} was taken")
        assert store.circuits() == []

    # -- closing ------------------------------------------------------------------------------------

    def test_closing_twice_is_no_error(self, store: Store) -> None:
        """And a closed store that is used again simply opens again."""
        with store.transact() as transaction:
            transaction.save("a", "constraint", "closed", {"since": 1.0}, 1.0)
        store.close()
        store.close()
        assert [row.id for row in store.circuits()] == ["a"]


class TestMemoryStore(StoreConformance):
    """`memory:`"""

    def open(self, folder: Path) -> Store:
        return open_store("memory:")


class TestSqliteStore(StoreConformance):
    """`sqlite:PATH`"""

    def open(self, folder: Path) -> Store:
        return open_store(f"sqlite:{folder / '.fusewire' / 'state.db'}")


class TestScopedStore(StoreConformance):
    """A worktree's own store beside the one that it shares, whose circuits are not among these."""

    def open(self, folder: Path) -> Store:
        for name in ("own", "shared"):
            (folder / name).mkdir(exist_ok=True)
        own, shared = (open_store(f"sqlite:{folder / name / '.fusewire' / 'state.db'}") for name in ("own", "shared"))
        return ScopedStore(own, lambda: shared, lambda circuit: circuit.startswith("shared/"))


@pytest.mark.postgresql
class TestPostgresStore(StoreConformance):
    """`postgresql://...`"""

    @pytest.fixture(autouse=True)
    def _url(self, postgres: PostgresServer) -> None:
        self.url = postgres.url(postgres.schema())

    def open(self, folder: Path) -> Store:
        return open_store(self.url)
