/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* log.c - reads rows of the log and events, for both SQL drivers. */
#include <detent/tool/store.h>

#include "store/sql/log.h"

#include "store/sql/renames.h"

/* Columns of the statements that read the log. */
enum {
    LOGGED_POSITION = DET_SQL_LOGGED_POSITION,
    LOGGED_INSTANCE = DET_SQL_LOGGED_INSTANCE,
    LOGGED_MACHINE,
    LOGGED_ID,
    LOGGED_IS_START,
    LOGGED_SEQUENCE,
    LOGGED_VISIT,
    LOGGED_VERSION,
    LOGGED_FROM,
    LOGGED_TO,
    LOGGED_EVENT,
    LOGGED_OUTCOME,
    LOGGED_CHOICE,
    LOGGED_IS_TIMEOUT,
    LOGGED_AT,
    LOGGED_EVENT_ID,
    LOGGED_CAUSE,
    LOGGED_PAYLOAD,
    LOGGED_TRACE,
};

/* Columns of EVENT_READ, EVENT_SCAN, EVENTS_AFTER and CHECK_EVENTS. */
enum {
    EVENT_SEQUENCE = 1,
    EVENT_VERSION,
    EVENT_VISIT,
    EVENT_FROM,
    EVENT_TO,
    EVENT_EVENT,
    EVENT_OUTCOME,
    EVENT_CHOICE,
    EVENT_IS_TIMEOUT,
    EVENT_AT,
    EVENT_ID,
    EVENT_CAUSE,
    EVENT_PAYLOAD,
    EVENT_HASH,
};

struct det_store_logged det_sql_logged_read(
    const struct det_store *store, const struct det_sql_row *row, struct det_trace_context *trace)
{
    struct det_chain_bytes payload = det_sql_bytes(row, LOGGED_PAYLOAD);
    bool has_trace = det_trace_context_read(det_sql_bytes(row, LOGGED_TRACE), trace);
    int64_t position = det_sql_number(row, LOGGED_POSITION);
    struct det_store_logged logged = {
        .position = (uint64_t)position,
        .machine = det_sql_text_or_null(row, LOGGED_MACHINE),
        .id = det_sql_text_or_null(row, LOGGED_ID),
        .is_start = det_sql_flag(row, LOGGED_IS_START),
        .sequence = det_sql_count(row, LOGGED_SEQUENCE),
        .visit = det_sql_count(row, LOGGED_VISIT),
        .version = (uint32_t)det_sql_number(row, LOGGED_VERSION),
        .from = det_sql_text_or_null(row, LOGGED_FROM),
        .to = det_sql_text(row, LOGGED_TO),
        .event = det_sql_text_or_null(row, LOGGED_EVENT),
        .outcome = det_sql_text(row, LOGGED_OUTCOME),
        .choice = (uint16_t)det_sql_number(row, LOGGED_CHOICE),
        .is_timeout = det_sql_flag(row, LOGGED_IS_TIMEOUT),
        .at = det_sql_number(row, LOGGED_AT),
        .event_id = det_sql_text_or_null(row, LOGGED_EVENT_ID),
        .cause = det_sql_text_or_null(row, LOGGED_CAUSE),
        .payload = payload.data,
        .payload_size = payload.size,
        .trace = has_trace ? trace : NULL,
    };

    /* Without the instance the machine of the names is unknown. */
    if (!logged.machine)
        return logged;
    logged.from = det_sql_renamed(store, logged.machine, DET_NAME_STATE, position, logged.from);
    logged.to = det_sql_renamed(store, logged.machine, DET_NAME_STATE, position, logged.to);
    logged.event = det_sql_renamed(store, logged.machine, DET_NAME_EVENT, position, logged.event);
    return logged;
}

struct det_chain_event det_sql_event_read(
    const struct det_sql_row *row, struct det_chain_bytes *ret_hash)
{
    *ret_hash = det_sql_bytes(row, EVENT_HASH);
    return (struct det_chain_event){
        .sequence = det_sql_count(row, EVENT_SEQUENCE),
        .version = det_sql_count(row, EVENT_VERSION),
        .visit = det_sql_count(row, EVENT_VISIT),
        .from = det_sql_text(row, EVENT_FROM),
        .to = det_sql_text(row, EVENT_TO),
        .event = det_sql_text_or_null(row, EVENT_EVENT),
        .outcome = det_sql_text(row, EVENT_OUTCOME),
        .choice = det_sql_count(row, EVENT_CHOICE),
        .is_timeout = det_sql_flag(row, EVENT_IS_TIMEOUT),
        .at = det_sql_number(row, EVENT_AT),
        .event_id = det_sql_text_or_null(row, EVENT_ID),
        .cause = det_sql_text_or_null(row, EVENT_CAUSE),
        .payload = det_sql_bytes(row, EVENT_PAYLOAD),
    };
}
