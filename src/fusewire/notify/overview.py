"""Collect the targets of a project: what each of them is told, how it fares, and what waits for it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fusewire.config.notify_addresses import shown_address
from fusewire.config.rulebook import read_rulebook
from fusewire.notify.cursor import health_of
from fusewire.notify.delivery import cursor_for, is_wanted
from fusewire.notify.news import news
from fusewire.util.durations import show_time

if TYPE_CHECKING:
    from fusewire.config.notify_targets import Target
    from fusewire.engine.breaker import Breaker
    from fusewire.notify.cursor import Health


@dataclass(frozen=True, slots=True)
class TargetStatus:
    """One target at one moment."""

    target: Target
    health: Health
    waiting: int
    paused: bool

    def to_json(self) -> dict[str, Any]:
        target, health = self.target, self.health
        return {
            "name": target.name,
            "address": shown_address(target),
            "from": target.source,
            "circuits": list(target.circuits),
            "severity": target.severity,
            "enabled": target.enabled,
            "waiting": self.waiting,
            "sent": health.sent,
            "last_sent": show_time(health.last_sent),
            "lost": health.lost,
            "lost_in_a_row": health.lost_in_a_row,
            "last_failure": show_time(health.failed_at),
            "problem": health.problem or None,
            "paused_until": show_time(health.paused_until) if self.paused else None,
        }


@dataclass(frozen=True, slots=True)
class Overview:
    """All of them, and the settings that they share."""

    targets: list[TargetStatus]
    dedup: str
    attempts: int
    per_minute: int

    def to_json(self) -> dict[str, Any]:
        return {
            "targets": [one.to_json() for one in self.targets],
            "dedup": self.dedup,
            "attempts": self.attempts,
            "per_minute": self.per_minute,
        }


def overview(breaker: Breaker) -> Overview:
    """Nothing is written and nobody is asked."""
    book = read_rulebook(Path(breaker.root or "."))
    written = book.values["notify"].written
    targets = [_status(breaker, target) for target in book.targets.usable()]
    return Overview(targets, written["dedup"], written["attempts"], written["per_minute"])


def _status(breaker: Breaker, target: Target) -> TargetStatus:
    now = breaker.engine.clock()
    health = health_of(breaker.store, target.name)
    items = news(breaker, cursor_for(breaker, target).upto) if target.enabled else []
    return TargetStatus(target, health, sum(is_wanted(item, target) for item in items), health.is_paused(now))
