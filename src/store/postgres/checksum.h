/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* checksum.h - the checksums of rows as SQL expressions, since many rows are derived from other
 * rows: the first 8 bytes of SHA-256 over the row as text. docs/formats/sql_schema.md has the
 * columns. `from` is the alias of the row's columns, with a dot; `tried` is the alias of the
 * columns about attempts. A time from the clock must be a single value, not an expression that is
 * evaluated again. */
#ifndef DET_STORE_POSTGRES_CHECKSUM_H
#define DET_STORE_POSTGRES_CHECKSUM_H

#define POSTGRES_SUM(columns) "substr(sha256(convert_to(ROW(" columns ")::text, 'UTF8')), 1, 8)"
#define POSTGRES_HEX(column)  "encode(" column ", 'hex')"

#define POSTGRES_SUM_DEFINITIONS(from)                                                         \
    POSTGRES_SUM("'definitions', " from "machine, " from "version, " from "fingerprint, " from \
                 "spec, " from "served_at")
#define POSTGRES_SUM_STARTS(from)                                                       \
    POSTGRES_SUM("'starts', " from "instance, " from "position, " from "version, " from \
                 "state, " POSTGRES_HEX(from "data") ", " from "at")
#define POSTGRES_SUM_TIMERS(key, from, tried, dead_at)                                            \
    POSTGRES_SUM(                                                                                 \
        "'timers', " key ", " from "name, " from "machine, " from "visit, " from "due, " from     \
        "event, " POSTGRES_HEX(from "payload") ", " tried "attempts, " tried "last_error, " tried \
                                               "next_at, " tried "reason, " dead_at)
#define POSTGRES_EFFECT_COLUMNS(key, from, tried)                                       \
    key ", " from "sequence, " from "number, " from "effect, " from "from_state, " from \
        "to_state, " from "visit, " from "asked, " from "at, " tried "attempts, " tried \
        "last_error, " tried                                                            \
        "next_at, " POSTGRES_HEX(from "data") ", " from "event, " POSTGRES_HEX(         \
            from "payload") ", " tried "reason, " POSTGRES_HEX(from "trace") ", " from "origin"
#define POSTGRES_SUM_OUTBOX(key, from, tried) \
    POSTGRES_SUM("'outbox', " POSTGRES_EFFECT_COLUMNS(key, from, tried))
#define POSTGRES_SUM_DEAD(key, from, tried, dead_at) \
    POSTGRES_SUM("'dead_letters', " POSTGRES_EFFECT_COLUMNS(key, from, tried) ", " dead_at)
#define POSTGRES_SUM_DEFERRED(key, from)                        \
    POSTGRES_SUM("'deferred', " key ", " from "sequence, " from \
                 "event, " POSTGRES_HEX(from "payload"))
#define POSTGRES_SUM_ANSWERS(key, from, at)                                                    \
    POSTGRES_SUM("'answers', " key ", " from "event_id, " from "outcome, " from "state, " from \
                 "sequence, " from "visit, " at ", " from "event, " from "request")
#define POSTGRES_SUM_RENAMES(from)                                                 \
    POSTGRES_SUM("'renames', " from "number, " from "machine, " from "kind, " from \
                 "old_name, " from "new_name, " from "batch, " from "position")
/* Covers the content of a job, not its progress, which changes several times per job. */
#define POSTGRES_SUM_JOBS(queue, id, task, body) \
    POSTGRES_SUM("'jobs', " queue ", " id ", " task ", " POSTGRES_HEX(body))
#define POSTGRES_SUM_SCHEDULES(name, next_at, last_at, token) \
    POSTGRES_SUM("'schedules', " name ", " next_at ", " last_at ", " token)
#define POSTGRES_SUM_DOCUMENTS(from)                                                        \
    POSTGRES_SUM("'documents', " from "id, " from "kind, " from "role, " from "sync, " from \
                 "version, " from "created_at, " from "updated_at, " from "text")
#define POSTGRES_SUM_DELTAS(from)                                                      \
    POSTGRES_SUM("'deltas', " from "sync, " from "at, " from "kind, " from "id, " from \
                 "role, " from "change, " from "version, " from "size, " from "text")

#endif
