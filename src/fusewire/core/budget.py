"""Define a budget: how much may be spent for what it is per, and how that is said."""

from __future__ import annotations

from fusewire.core.events import Noun

#: What can be counted, and what it is per: a stretch of time, and whose spend it is.
COUNTED = ("usd", "tokens", "calls", "starts")
PERIODS = ("window", "day", "week", "month")
SCOPES = ("task", "session", "branch", "project", "user")

_WORDS = {
    "task": "this task",
    "session": "this session",
    "branch": "this branch",
    "project": "this project",
    "user": "all projects",
    "window": "this 5-hour window",
    "day": "today",
    "week": "this week",
    "month": "this month",
}


class SpendBudget(Noun):
    """A limit on what is spent; plain data, for the compiled rules."""

    name: str
    per: tuple[str, ...]
    #: of COUNTED: how much of it
    limits: tuple[tuple[str, float], ...]
    #: the share of a limit from which on it is told
    warn: float = 0.8
    #: of this agent only
    agent: str = ""
    #: whether it is set in the person's own file; one of a project counts that project only
    is_persons: bool = False

    @property
    def period(self) -> str:
        return next((one for one in PERIODS if one in self.per), "")

    @property
    def scopes(self) -> tuple[str, ...]:
        """Whose spend it counts, the widest first."""
        found = tuple(one for one in ("project", "branch", "task", "session") if one in self.per)
        needs_project = "branch" in found or not self.is_persons
        return ("project", *found) if needs_project and "project" not in found else found

    def setting(self, what: str) -> str:
        return f"budgets.{self.name}.{what}"

    def where(self) -> str:
        """Whose spend, in words: `in this project today`."""
        scopes = [one for one in self.scopes if one != "project" or "project" in self.per or len(self.scopes) == 1]
        whose = " ".join(f"{'on' if one == 'branch' else 'in'} {_WORDS[one]}" for one in scopes[-1:] or ["user"])
        agent = f" by {self.agent}" if self.agent else ""
        return f"{whose}{f' {_WORDS[self.period]}' if self.period else ''}{agent}".replace(" this 5", " in this 5")


class BudgetUse(Noun):
    """How far one limit of a budget is used."""

    budget: SpendBudget
    #: names what is counted together: the budget with its project, branch, day
    bucket: str
    what: str
    spent: float
    limit: float
    granted: float = 0.0
    #: since when it counts; 0 for always
    since: float = 0.0
    until: float = 0.0

    @property
    def is_reached(self) -> bool:
        return round(self.spent, 6) >= self.limit + self.granted

    @property
    def share(self) -> float:
        return self.spent / (self.limit + self.granted)

    def words(self) -> str:
        """`$5.10 spent in this project today (limit $5)`."""
        limit = amount(self.what, self.limit)
        more = f", and {amount(self.what, self.granted)} granted" if self.granted else ""
        verb = "spent" if self.what == "usd" else "used"
        return f"{amount(self.what, self.spent)} {verb} {self.budget.where()} (limit {limit}{more})"


def raise_command(use: BudgetUse) -> str:
    """How a person raises it."""
    more = {"usd": "5", "tokens": "1000000"}.get(use.what, "10")
    kind = "" if use.what == "usd" else f" --{use.what}"
    return f'fusewire grant {more}{kind} --budget {use.budget.name} --reason "..."'


def amount(what: str, number: float) -> str:
    """`$5.10`, `1,200 tokens`, `1 start`."""
    if what == "usd":
        return f"${number:,.2f}"
    return f"{round(number):,} {what.removesuffix('s') if number == 1 else what}"
