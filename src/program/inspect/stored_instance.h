/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* stored_instance.h - an instance in a store with its pending work, and how it, its events, timers
 * and effects are printed. */
#ifndef DET_INSPECT_STORED_INSTANCE_H
#define DET_INSPECT_STORED_INSTANCE_H

#include "inspect/store_url.h"
#include "terminal/table.h"
#include "json/writer.h"

struct instance_timer {
    struct instance_timer *next;
    struct det_store_timer row;
};
/* Activity of an effect; only the program that serves it knows: see activity.h. */
enum instance_activity { INSTANCE_UNKNOWN, INSTANCE_RUNNING, INSTANCE_QUEUED };
struct instance_effect {
    struct instance_effect *next;
    struct det_store_effect row;
    enum instance_activity activity;
    uint32_t attempt; /* that is RUNNING */
    det_time began;   /* wall; the same */
};
struct instance_deferred {
    struct instance_deferred *next;
    struct det_store_deferred row;
};

/* Pending work is in the order of the store: timers by name, the others oldest first. */
struct instance {
    struct cli_store *store;
    const struct det_machine *machine;
    const char *id; /* borrowed */
    struct det_arena arena;
    struct det_store_loaded loaded;
    struct instance_timer *timers;
    struct instance_effect *effects; /* including dead letters */
    struct instance_deferred *deferred;
    det_time now;                       /* by the store's clock, when it was read */
    uint32_t threads_used, threads_max; /* of effects, if the activity is known */
};

/* Reads it. Complains, and returns an exit code; after CLI_OK call instance_close(). */
DET_MUST_CHECK int instance_open(
    struct cli_store *store, const struct det_machine *machine, const char *id,
    struct instance *ret);
/* Like instance_open() without reports: 0 or an error; and the report of that error. */
DET_MUST_CHECK int instance_load(
    struct cli_store *store, const struct det_machine *machine, const char *id,
    struct instance *ret);
int instance_report_error(struct cli_store *store, const char *machine, const char *id, int r);
/* Finds its machine. */
DET_MUST_CHECK int instance_find(struct cli_store *store, const char *id, struct instance *ret);
/* Reads it again: 0, or an error, which leaves it unchanged. */
DET_MUST_CHECK int instance_refresh(struct instance *instance);
void instance_close(struct instance *instance);
/* Reports that it is damaged, with the remedy; returns the exit code. */
int instance_report_damaged(struct cli_store *store, const char *machine, const char *id);

/* Returns the name of its state, and whether it is running. */
const char *instance_state(const struct instance *instance);
bool instance_is_final(const struct instance *instance);
/* Counts dead or live ones. */
size_t instance_timer_count(const struct instance *instance, bool is_dead);
size_t instance_effect_count(const struct instance *instance, bool is_dead);

/* Names; `timer` is "" for the state's own timer. */
const char *instance_timer_name(const struct det_machine *machine, uint16_t timer);
/* Idempotency key of an effect: "3f9a0c27b81e44d0/order/order-42/3/0". */
#define INSTANCE_KEY_TEXT (DET_ID_MAX + 256)
const char *instance_key(
    const struct det_store *store, const struct det_machine *machine, const char *id,
    const struct det_store_effect *row, char target[INSTANCE_KEY_TEXT]);
/* Key of a dead timer: "order/order-42/timer/reminder". */
const char *instance_timer_key(
    const struct det_machine *machine, const char *id, const struct det_store_timer *row,
    char target[INSTANCE_KEY_TEXT]);
/* Why the last attempt of an effect failed: "ACTION_FAILED: exit code 1", or the error alone. */
#define INSTANCE_WHY_TEXT (DET_REASON_MAX + 32)
const char *instance_why(int last_error, const char *reason, char target[INSTANCE_WHY_TEXT]);

/* Opens an object with "type" (NULL: without), "machine" and "id". */
void instance_item_begin(
    struct det_json_writer *json, const char *type, const char *machine, const char *id);
/* Writes its counters, times and history as members of an open object, without state and data. */
void instance_head_line(struct det_json_writer *json, const struct instance *instance);
/* Writes it as members of an open object. */
void instance_line(struct det_json_writer *json, const struct instance *instance);
void instance_timer_line(
    struct det_json_writer *json, const struct det_machine *machine,
    const struct det_store_timer *row);
/* Writes the results of its attempts, if any. */
void instance_attempts_line(struct det_json_writer *json, const struct det_store_timer *row);
/* A dead timer, with the members of an effect. */
void instance_dead_timer_line(
    struct det_json_writer *json, const struct det_machine *machine, const char *id,
    const struct det_store_timer *row);
void instance_effect_line(
    struct det_json_writer *json, const struct det_store *store, const struct det_machine *machine,
    const char *id, const struct det_store_effect *row);
void instance_start_line(
    struct det_json_writer *json, const struct det_machine *machine,
    const struct det_store_start *start);
void instance_event_line(
    struct det_json_writer *json, const struct det_machine *machine,
    const struct det_store_event *row);

/* Writes an entry of a list as a whole object. */
void instance_row_line(
    struct det_json_writer *json, const struct det_machine *machine,
    const struct det_store_listed *row);

/* "in 29m", "now". */
#define INSTANCE_WHEN_TEXT 48
const char *instance_when(det_time at, det_time now, char target[INSTANCE_WHEN_TEXT]);
/* "2026-11-15 11:30:00", without fractions. */
#define INSTANCE_TIME_TEXT 40
const char *instance_time(det_time at, char target[INSTANCE_TIME_TEXT]);
/* Prints a record, truncated if too long; sensitive fields are hidden. "" for an empty one. */
#define INSTANCE_RECORD_TEXT 1024
const char *instance_record(
    const struct det_record *record, const void *value, char target[INSTANCE_RECORD_TEXT]);
/* Returns the payload inside an event struct. For an event without payload returns an empty one of
 * our own, which may be written to as well. */
void *instance_payload_in(const struct det_machine *machine, void *event);
const void *instance_payload_of(const struct det_machine *machine, const void *event);
/* Prints the payload of an event struct; "" without one. */
const char *instance_payload(
    const struct det_machine *machine, const void *event, char target[INSTANCE_RECORD_TEXT]);
/* Sender of an event: "timer", the key of an effect, an event id; "" otherwise. */
const char *instance_sender(const struct det_store_event *row);

#endif
