/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* pending.h - lists the pending work of a store by due time: timers, or effects to be attempted;
 * for the command and, page by page, for the HTTP API.
 *
 * The order is: time, machine, id, then the timer's name or the effect's number. A position is
 * written as "DUE~MACHINE~ID~TIMER~SEQUENCE~INDEX", and a page begins after a position. Dead
 * letters, effects or timers, are never due: they have the time 0, and come first. */
#ifndef DET_INSPECT_PENDING_H
#define DET_INSPECT_PENDING_H

#include "inspect/stored_instance.h"

#define PENDING_MAX 100000
/* Instances that are due, in one answer of the API. */
#define PENDING_DUE_MAX (3 * PENDING_MAX)

struct pending_place {
    det_time due;
    const char *machine, *id;
    const char *timer;        /* "": the state's own, or an effect */
    uint64_t sequence, index; /* of an effect */
};

struct pending {
    struct pending_place place;
    const struct det_machine *machine;
    const char *event;              /* of a timer */
    uint64_t visit;                 /* of a timer */
    struct det_store_effect effect; /* without data and event */
    struct det_store_timer timer;   /* without its value */
};

struct pending_list {
    struct cli_store *store;
    enum det_store_due_kind kind; /* of the one or of the other */
    bool is_dead;                 /* dead letters, instead of armed timers */
    size_t limit;
    struct pending_place after; /* only entries after it */
    struct det_arena arena;
    struct det_buffer found; /* struct pending */
    struct det_buffer ids;   /* of one machine */
    size_t id_count;         /* number of them that count */
    det_time until;          /* entries due then or later are incomplete; DET_NEVER: complete */
    size_t left_out;         /* instances that could not be read */
};

void pending_init(
    struct pending_list *list, struct cli_store *store, const struct det_allocator *allocator,
    enum det_store_due_kind kind, size_t limit);
void pending_deinit(struct pending_list *list);
/* Adds the work of an instance, or the first entries of a machine; the context is the list.
 * Complains, and returns an exit code. */
void pending_of(struct pending_list *list, const struct instance *instance);
DET_MUST_CHECK int pending_of_machine(void *context, struct det_machine *machine);
/* Returns the entries after `after`, in order; the first `limit` of them are the page. There may be
 * more; if `until` is a time there are. Call it once. */
const struct pending *pending_sort(struct pending_list *list, size_t *ret_count);
void pending_timer_line(struct det_json_writer *json, const struct pending *timer);

/* A dead letter: a timer or an effect. */
struct pending_dead {
    struct pending_place place;
    const struct det_store_timer *timer;
    const struct det_store_effect *effect;
};
/* Returns the dead letters of an instance after `after`, in order, in its arena; their positions
 * have this id. NULL: no memory. */
const struct pending_dead *pending_dead_of(
    struct instance *instance, const char *id, const struct pending_place *after,
    size_t *ret_count);

int pending_place_compare(const struct pending_place *left, const struct pending_place *right);
/* Positions as text. Returns false if it is malformed. `ret` points into the arena. */
void pending_place_line(
    struct det_json_writer *json, const char *key, const struct pending_place *place);
bool pending_place_read(const char *text, struct det_arena *arena, struct pending_place *ret);

#endif
