/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* pending.h - what will happen by itself in a store, the first due first: timers, or effects that
 * are to be tried; for the command and, page by page, for the HTTP API.
 *
 * All have one order: by time, machine, id, then by the timer's name or the effect's number. A
 * place in it is written as "DUE~MACHINE~ID~TIMER~SEQUENCE~INDEX", and a page is what stands behind
 * such a place. Dead letters, effects or timers, are due never more: theirs have the time 0, and
 * come first. */
#ifndef DET_INSPECT_PENDING_H
#define DET_INSPECT_PENDING_H

#include "inspect/stored_instance.h"

#define PENDING_MAX 100000

struct pending_place {
    det_time due;
    const char *machine, *id;
    const char *timer;        /* "": of the state, or it is an effect */
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
    bool is_dead;                 /* timers that were given up, in place of those that are armed */
    size_t limit;
    struct pending_place after; /* only what stands behind it */
    struct det_arena arena;
    struct det_buffer found; /* struct pending */
    struct det_buffer ids;   /* of one machine */
    size_t id_count;         /* of them that count */
    det_time until;          /* what is due then or later is not all there; DET_NEVER: all is */
    size_t left_out;         /* instances that cannot be read */
};

void pending_init(
    struct pending_list *list, struct cli_store *store, const struct det_allocator *allocator,
    enum det_store_due_kind kind, size_t limit);
void pending_deinit(struct pending_list *list);
/* Adds those of an instance, or the first ones of a machine; the context is the list. Complains,
 * and returns an exit code. */
void pending_of(struct pending_list *list, const struct instance *instance);
DET_MUST_CHECK int pending_of_machine(void *context, struct det_machine *machine);
/* Those that stand behind `after`, in order; the first `limit` of them are the page. There may be
 * more of them, and when `until` is a time there are. To be called once. */
const struct pending *pending_sort(struct pending_list *list, size_t *ret_count);
void pending_timer_line(struct det_json_writer *json, const struct pending *timer);

/* A dead letter: either a timer or an effect. */
struct pending_dead {
    struct pending_place place;
    const struct det_store_timer *timer;
    const struct det_store_effect *effect;
};
/* Those of an instance that stand behind `after`, in order, in its arena; their places have this
 * id. NULL: no memory. */
const struct pending_dead *pending_dead_of(
    struct instance *instance, const char *id, const struct pending_place *after,
    size_t *ret_count);

int pending_place_compare(const struct pending_place *left, const struct pending_place *right);
/* Places as text. False: it is none. What `ret` points to is of the arena. */
void pending_place_line(
    struct det_json_writer *json, const char *key, const struct pending_place *place);
bool pending_place_read(const char *text, struct det_arena *arena, struct pending_place *ret);

#endif
