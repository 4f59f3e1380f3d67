"""List the schema versions of the SQLite database by name. Only ever append; a shipped version stays as it is."""

from __future__ import annotations

MIGRATIONS: tuple[tuple[str, str], ...] = (
    (
        "circuits, log, audit, notices",
        """
        CREATE TABLE circuits (
            id TEXT PRIMARY KEY, kind TEXT NOT NULL, phase TEXT NOT NULL, state TEXT NOT NULL,
            version INTEGER NOT NULL, kept INTEGER NOT NULL DEFAULT 0, other INTEGER NOT NULL DEFAULT 0,
            updated REAL NOT NULL
        ) WITHOUT ROWID;
        CREATE TABLE log (
            seq INTEGER PRIMARY KEY, circuit TEXT NOT NULL, slot INTEGER NOT NULL, at REAL NOT NULL,
            kind TEXT NOT NULL, name TEXT NOT NULL, text TEXT NOT NULL, session TEXT, value REAL NOT NULL,
            effect TEXT NOT NULL, UNIQUE (circuit, slot)
        );
        CREATE TABLE audit (
            seq INTEGER PRIMARY KEY, circuit TEXT NOT NULL, at REAL NOT NULL, source TEXT NOT NULL,
            target TEXT NOT NULL, cause TEXT NOT NULL, reason TEXT NOT NULL, actor TEXT NOT NULL
        );
        CREATE INDEX audit_of_circuit ON audit (circuit);
        CREATE TABLE notices (seq INTEGER PRIMARY KEY, at REAL NOT NULL, text TEXT NOT NULL, seen INTEGER NOT NULL);
        CREATE TABLE migrations (name TEXT PRIMARY KEY, applied_to INTEGER NOT NULL);
        """,
    ),
    (
        "memories of detectors",
        """
        CREATE TABLE memories (name TEXT PRIMARY KEY, data TEXT NOT NULL, updated REAL NOT NULL) WITHOUT ROWID
        """,
    ),
    (
        "what agents did in sessions",
        """
        CREATE TABLE doings (
            seq INTEGER PRIMARY KEY, session TEXT NOT NULL, agent TEXT NOT NULL, at REAL NOT NULL,
            kind TEXT NOT NULL, tool TEXT NOT NULL, text TEXT NOT NULL, value REAL NOT NULL
        );
        CREATE INDEX doings_of_session ON doings (session)
        """,
    ),
    (
        "answers that were no plain allow",
        """
        CREATE TABLE decisions (
            seq INTEGER PRIMARY KEY, code TEXT NOT NULL UNIQUE, at REAL NOT NULL, session TEXT NOT NULL,
            kind TEXT NOT NULL, rule TEXT NOT NULL, data TEXT NOT NULL
        )
        """,
    ),
    (
        "what sessions spent",
        """
        CREATE TABLE spent (
            source TEXT NOT NULL, session TEXT NOT NULL, at INTEGER NOT NULL, branch TEXT NOT NULL,
            model TEXT NOT NULL, helper TEXT NOT NULL, task TEXT NOT NULL, project TEXT NOT NULL, agent TEXT NOT NULL,
            usd REAL NOT NULL, input INTEGER NOT NULL, output INTEGER NOT NULL, cache_read INTEGER NOT NULL,
            cache_write INTEGER NOT NULL, cache_write_1h INTEGER NOT NULL, web_search INTEGER NOT NULL,
            calls INTEGER NOT NULL, starts INTEGER NOT NULL, version INTEGER NOT NULL,
            PRIMARY KEY (source, session, at, branch, model, helper, task)
        ) WITHOUT ROWID;
        CREATE INDEX spent_version ON spent (version);
        CREATE INDEX spent_at ON spent (at)
        """,
    ),
)

LATEST = len(MIGRATIONS)
