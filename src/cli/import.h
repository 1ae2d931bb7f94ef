/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* import.h - an instance of an export on its way into a store.
 *
 *     begin(line) -> new, or known in part --> event(line) ... --> end
 *                 -> there already: its events are passed over
 *
 * It is written by commits of the store's own: the instance as it was before its first event, then
 * the events, in batches; with the last one, and only then, what is pending. */
#ifndef DET_CLI_IMPORT_H
#define DET_CLI_IMPORT_H

#include "cli/members.h"
#include "cli/store_url.h"

struct import {
    struct cli_store *store;
    struct det_machine *machine;
    struct det_arena arena;        /* of the instance */
    struct det_arena events_arena; /* of the batch */
    const char *id;
    struct det_store_instance *handle; /* NULL: none */
    /* As it will be. */
    struct det_store_head head;
    const char *reason;
    void *data;
    uint16_t history[DET_HISTORY_MAX];
    size_t history_count;
    struct det_store_timer_change *timers;
    struct det_store_effect_change *effects;
    struct det_store_deferred_change *deferred;
    size_t timer_count, effect_count, deferred_count;
    uint64_t first; /* event; 0: none */
    uint64_t moves; /* how many of the events are gotos */
    /* As it is so far. */
    struct det_store_head at;
    bool is_passed; /* it is there already */
    struct det_store_event batch[DET_BATCH_MAX];
    size_t batch_count;
    uint64_t instances, events, passed; /* counts */
    char wrong[DET_ERROR_TEXT_MAX];     /* what is wrong with the line */
};

void import_init(struct import *import, struct cli_store *store);
void import_deinit(struct import *import);
/* The line of an instance, or of an event of it: 0; DET_ERR_MALFORMED and `wrong` says why;
 * DET_ERR_EXISTS when another instance is in the way; or an error of the store. */
DET_MUST_CHECK int import_instance(struct import *import, struct det_view line);
DET_MUST_CHECK int import_event(struct import *import, struct det_view line);
/* The instance is complete: all its events must have come. */
DET_MUST_CHECK int import_finish(struct import *import);

/* import_read.c: lines into structs; 0, DET_ERR_MALFORMED or DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int import_read_instance(struct import *import, struct det_view line);
DET_MUST_CHECK int import_read_event(
    struct import *import, struct det_view line, struct det_store_event *ret);

#endif
