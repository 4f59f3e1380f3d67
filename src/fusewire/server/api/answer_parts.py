"""The shapes inside of the answers: a circuit, an iteration, a session, a slice, the memory folder."""

from __future__ import annotations

from fusewire.server.api.schemas import (
    COUNT,
    KIND,
    MOMENT,
    NUMBER,
    PHASE,
    SECONDS,
    STATE,
    TEXT,
    TEXTS,
    TIME,
    USD,
    WHOLE,
    YES_NO,
    Schema,
    fields,
    maybe,
    one_of,
    rows,
    told,
)

# -- circuits ---------------------------------------------------------------------------------------------

CIRCUIT = fields(
    id=TEXT,
    kind=KIND,
    state=STATE,
    phase=PHASE,
    rule=TEXT,
    level=NUMBER,
    threshold=NUMBER,
    opened_at=maybe(TIME),
    retry_after=maybe(SECONDS),
    reason=maybe(TEXT),
    evidence=maybe(TEXT),
    trips=COUNT,
    total=COUNT,
    last_trip=maybe(TIME),
    last_reset=maybe(TIME),
    override_until=maybe(TIME),
)
CARD = fields(
    **CIRCUIT["properties"],
    title=TEXT,
    window=told(TEXT, "what counts, in words; empty where time forgets nothing"),
    measure=told(TEXT, "how full it is, in words"),
    full=told(NUMBER, "from 0 to 1"),
    near=told(YES_NO, "the next one may open it"),
    next=told(TEXTS, "what to do now"),
    acts=told(rows(one_of("reset", "grant", "resolve")), "what a person may do here"),
    session=told(maybe(TEXT), "the session whose circuit it is"),
)
SETTINGS = rows(fields(key=TEXT, value={}, source=TEXT))
ENTRY = fields(
    timestamp=TIME,
    kind=TEXT,
    signal=TEXT,
    action=TEXT,
    session=maybe(TEXT),
    effect=maybe(TEXT),
    in_window=YES_NO,
)
STEP = {
    "from": told(TEXT, "CLOSED, HALF_OPEN or OPEN"),
    "to": told(TEXT, "likewise, or `removed`"),
    "from_phase": told(TEXT, "closed, watch, open or probe"),
    "to_phase": told(TEXT, "likewise, or `removed`"),
    "cause": TEXT,
    "reason": TEXT,
    "actor": maybe(TEXT),
}
HISTORY = {
    "window_start": maybe(TIME),
    "entries": told(rows(ENTRY), "newest first"),
    "transitions": told(rows(fields(timestamp=TIME, **STEP)), "newest first"),
}
MOVE = {"at": TIME, "circuit": TEXT, **STEP}
METER = fields(
    name=TEXT,
    counts=TEXT,
    level=NUMBER,
    trip=NUMBER,
    trip_by=TEXT,
    warn=maybe(NUMBER),
    window=TEXT,
    measure=TEXT,
    full=NUMBER,
    refuses=YES_NO,
)
COOLDOWN = fields(
    schedule=TEXT,
    steps=rows(SECONDS),
    in_a_row=COUNT,
    began=maybe(TIME),
    until=maybe(TIME),
    seconds=maybe(SECONDS),
    left=maybe(SECONDS),
    next_seconds=maybe(SECONDS),
    words=TEXT,
)
TRIP = fields(
    opened_at=TIME,
    closed_at=maybe(TIME),
    seconds=maybe(SECONDS),
    cause=maybe(TEXT),
    method=TEXT,
    reason=TEXT,
    in_a_row=COUNT,
)

# -- the loop ---------------------------------------------------------------------------------------------

RISK = one_of("LOW", "MEDIUM", "HIGH")


def iteration(at: Schema) -> Schema:
    return fields(
        number=COUNT,
        at=at,
        state=STATE,
        kind=TEXT,
        ended=TEXT,
        score=WHOLE,
        points=told({"type": "object", "additionalProperties": WHOLE}, "what the score is made of"),
        tasks=COUNT,
        files=COUNT,
        names=TEXTS,
        commits=COUNT,
        tests=maybe(told(rows(COUNT), "passed, failed, skipped, errors")),
        errors=TEXTS,
        error=maybe(TEXT),
        blocked=TEXT,
        lines=maybe(COUNT),
        calls=COUNT,
        calls_left=COUNT,
        cost=maybe(USD),
        seconds=SECONDS,
        risk=RISK,
        trips=told(TEXTS, "circuits that it has opened"),
    )


LESSON = fields(
    at=MOMENT,
    iteration=COUNT,
    circuit=TEXT,
    pattern=TEXT,
    cause=TEXT,
    tried=TEXTS,
    helped=maybe(TEXT),
    times=COUNT,
    text=TEXT,
)
LOOP = {
    "state": STATE,
    "iterations": COUNT,
    "running": COUNT,
    "risk": RISK,
    "score": told(WHOLE, "of the last three iterations"),
    "trend": TEXT,
    "scores": rows(WHOLE),
    "sparkline": TEXT,
    "calls_left": COUNT,
    "calls_limit": COUNT,
    "retry_after": maybe(SECONDS),
    "cost": USD,
    "metrics": rows(fields(metric=TEXT, value={"type": ["number", "string"]}, threshold=TEXT, alert=YES_NO)),
    "lessons": rows(LESSON),
}
TOTALS = fields(iterations=COUNT, tasks=COUNT, files=COUNT, calls=COUNT, cost=USD, seconds=SECONDS, since_task=COUNT)

# -- sessions ---------------------------------------------------------------------------------------------

STANDING = {
    "state": told(one_of("running", "silent", "halted", "ended"), "silent: nothing was heard of it for an hour"),
    "heard": maybe(TIME),
    "ended": maybe(TIME),
    "halted": told(maybe(TEXT), "why it was halted"),
    "needs": told(maybe(one_of("message", "grant")), "what a halted one needs of a person to go on"),
}
SESSION_LINE = fields(
    id=TEXT,
    **STANDING,
    usd=USD,
    agents=told(COUNT, "helpers that run"),
)
SESSION_COUNTS = told(
    fields(all=COUNT, running=COUNT, silent=COUNT, halted=COUNT, ended=COUNT, agents=COUNT),
    "sessions by state, and helpers that run",
)
ACTIVE = fields(
    id=TEXT,
    breaker=TEXT,
    key=maybe(TEXT),
    agent=maybe(TEXT),
    state=STATE,
    phase=PHASE,
    reason=TEXT,
    evidence=maybe(TEXT),
    cooldown_seconds=maybe(SECONDS),
    trips=COUNT,
    last_trip=maybe(fields(turn=maybe(COUNT), at=maybe(TIME), reason=TEXT)),
    next_attempt=maybe(fields(turn=COUNT, at=maybe(TIME))),
)
USAGE = {
    "folder": TEXT,
    "exists": YES_NO,
    "total_bytes": COUNT,
    "limit_bytes": COUNT,
    "share": NUMBER,
    "telemetry": rows(fields(name=TEXT, lines=COUNT, bytes=COUNT, share=NUMBER)),
    "telemetry_max_lines": COUNT,
    "telemetry_max_bytes": COUNT,
    "sessions_active": COUNT,
    "sessions_limit": COUNT,
    "archives": fields(count=COUNT, bytes=COUNT),
    "files": rows(fields(name=TEXT, kind=TEXT, bytes=COUNT)),
    "unknown": TEXTS,
    "next_cleanup": TEXT,
    "report": TEXTS,
}
BUDGET = fields(usd=USD, limit_usd=USD, granted_usd=USD)
RESOURCES = fields(
    agents=fields(running=COUNT, limit=COUNT, session_limit=COUNT, names=TEXTS),
    api_calls=fields(this_minute=COUNT, limit_per_minute=COUNT, this_session=COUNT, session_limit=COUNT),
    cost=fields(
        usd=USD,
        warn_usd=USD,
        limit_usd=USD,
        granted_usd=USD,
        unknown_models=TEXTS,
        problem=maybe(TEXT),
        day=BUDGET,
        project=BUDGET,
    ),
)
INCIDENTS = fields(
    since=TIME,
    circuit_trips=COUNT,
    by_breaker={"type": "object", "additionalProperties": COUNT},
    memory_cleanups=COUNT,
    resource_exhaustions=COUNT,
)
DOING = fields(
    at=TIME,
    agent=maybe(TEXT),
    kind=one_of("ok", "failed", "told", "refused", "halted", "prompt", "spend"),
    tool=TEXT,
    text=TEXT,
    value=NUMBER,
)
COUNTS = fields(calls=COUNT, ok=COUNT, failed=COUNT, told=COUNT, refused=COUNT, halted=COUNT, prompts=COUNT)

# -- slices and memory ------------------------------------------------------------------------------------

DECISION = fields(
    decision=one_of("ALLOWED", "WARN", "BLOCKED"),
    id=maybe(TEXT),
    state=STATE,
    phase=PHASE,
    rule=maybe(TEXT),
    reason=TEXT,
    evidence=TEXTS,
    retry_after=maybe(SECONDS),
    next=TEXTS,
    lease=maybe(TEXT),
    tripped=YES_NO,
    alert=YES_NO,
)
OUTSIDE = fields(file=TEXT, justification=TEXT)
REPORT = fields(
    slice_id=TEXT,
    test_name=TEXT,
    test_expectation=TEXT,
    actual_error=TEXT,
    attempt_log=rows(fields(attempt=COUNT, strategy=TEXT, files=TEXTS, result=TEXT)),
    cumulative_files_modified={"anyOf": [TEXTS, TEXT]},
    scope_violations={"anyOf": [rows(OUTSIDE), TEXT]},
    best_hypothesis=TEXT,
    specific_question=TEXT,
    recovery_options=rows(fields(option=TEXT, risk=TEXT)),
)
REPORT["properties"]["infrastructure_errors"] = rows(fields(kind=TEXT, reason=TEXT))
TEST = fields(
    name=TEXT,
    state=one_of("stopped", "failing", "passed", "infra", "started"),
    attempts=COUNT,
    limit=COUNT,
    began=maybe(TIME),
    passed_at=maybe(TIME),
    description=TEXT,
    files=TEXTS,
    error=TEXT,
    log=rows(fields(attempt=COUNT, at=maybe(TIME), strategy=TEXT, error=TEXT, files=TEXTS, output=maybe(TEXT))),
    report=maybe(REPORT),
    report_text=maybe(TEXT),
    report_lacks=TEXTS,
)
SLICE_COUNTS = told(fields(all=COUNT, stopped=COUNT, under_way=COUNT, waiting=COUNT, finished=COUNT), "slices by state")
CLEANUP = {
    "dry_run": YES_NO,
    "files_rotated": COUNT,
    "sessions_pruned": COUNT,
    "ledgers_truncated": COUNT,
    "archives_removed": COUNT,
    "bytes_freed": COUNT,
    "actions": TEXTS,
    "problems": TEXTS,
    "failures": COUNT,
    "report": TEXT,
    "actions_left_out": COUNT,
}

# -- a project -------------------------------------------------------------------------------------------

PROJECT = fields(
    name=told(TEXT, "as it stands in addresses"),
    root=TEXT,
    problem=told(maybe(TEXT), "why its state cannot be read"),
    headline=told(maybe(TEXT), "one sentence"),
    open=maybe(COUNT),
    half_open=maybe(COUNT),
    closed=maybe(COUNT),
)
