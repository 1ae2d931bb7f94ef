/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* import.h - instances of an export on their way into a store.
 *
 *     instance(line) -> new, or partly stored --> event(line) ... --> finish -+
 *                    -> stored already: its events are skipped                |
 *                                                                             v
 *     a group of instances, written together: each as it was before its first event, then the
 *     events, in batches; with the last one, and only then, what is pending
 *
 * Writing is by commits of the store's own. Those of different instances go in one call, since each
 * call waits for the disk once; those of one instance follow each other. */
#ifndef DET_TRANSFER_IMPORT_H
#define DET_TRANSFER_IMPORT_H

#include "base/buffer.h"
#include "inspect/store_url.h"
#include "json/object.h"

/* Instances in a group, and events that wait in all of it. */
#define IMPORT_GROUP_MAX  256
#define IMPORT_EVENTS_MAX 4096

/* An event, and the answer to its id, if it has one. */
struct import_event {
    struct det_store_event row;
    struct det_store_answer answer;
};

/* An instance that is not written completely. */
struct incoming {
    struct det_machine *machine;
    struct det_arena arena;        /* of the instance */
    struct det_arena events_arena; /* of the events that wait */
    const char *id;
    struct det_store_instance *handle;
    bool is_there; /* in the store, with this handle */
    /* The complete instance. */
    struct det_store_head head;
    const char *reason;
    void *data;
    struct det_store_start start; /* data NULL: it is not known */
    uint16_t history[DET_HISTORY_MAX];
    size_t history_count;
    struct det_store_timer_change *timers;
    struct det_store_effect_change *effects;
    struct det_store_deferred_change *deferred;
    size_t timer_count, effect_count, deferred_count;
    uint64_t first; /* event; 0: none */
    uint64_t moves; /* how many of the events are gotos */
    /* The progress of its import. */
    struct det_store_head at;
    bool is_passed;            /* it exists already */
    struct det_buffer events;  /* struct det_store_event, those that wait */
    struct det_buffer answers; /* struct det_store_answer of each: what its id is answered with */
    size_t written;            /* of them */
    uint64_t seen;             /* the sequence of the last one */
};

struct import {
    struct cli_store *store;
    char origin[DET_ORIGIN_SIZE]; /* the store that was exported; "": it says none */
    struct det_machine *machine;  /* of the next instances */
    struct incoming *group[IMPORT_GROUP_MAX];
    size_t group_count;
    size_t waiting;           /* events in the group */
    struct incoming *current; /* which receives events: the last of the group; NULL: none */
    uint64_t instances, events, passed; /* counts of the instances and events in the store */
    uint64_t jobs, schedules, passed_jobs;
    uint64_t documents, passed_documents;
    char wrong[DET_ERROR_TEXT_MAX]; /* the reason why the line is invalid */
};

void import_init(struct import *import, struct cli_store *store);
void import_deinit(struct import *import);
/* Reads the first line, which names the exported store. */
void import_head(struct import *import, struct det_json_object *members);
/* Reads the line of an instance, or of one of its events: 0; DET_ERR_MALFORMED with the reason in
 * `wrong`; DET_ERR_EXISTS if a different instance exists; or an error of the store. */
DET_MUST_CHECK int import_instance(struct import *import, struct det_view line);
DET_MUST_CHECK int import_event(struct import *import, struct det_view line);
/* Ends an instance: all its events must have been read. */
DET_MUST_CHECK int import_finish(struct import *import);
/* Writes the waiting events. */
DET_MUST_CHECK int import_flush(struct import *import);

/* import_jobs.c: the same of a job and a schedule, into a store that keeps them. */
DET_MUST_CHECK int import_job(struct import *import, struct det_json_object *members);
DET_MUST_CHECK int import_schedule(struct import *import, struct det_json_object *members);
/* import_documents.c: of a document. */
DET_MUST_CHECK int import_document(struct import *import, struct det_json_object *members);

/* import_read.c: lines into structs; 0, DET_ERR_MALFORMED or DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int import_read_instance(
    struct import *import, struct incoming *incoming, struct det_view line);
DET_MUST_CHECK int import_read_event(
    struct import *import, struct incoming *incoming, struct det_view line,
    struct import_event *ret);

/* Imports the file at `path`. Complains, and returns an exit code. */
DET_MUST_CHECK int store_import(struct cli_store *store, const char *path);
/* Only checks that the file is complete and valid; needs no store. */
DET_MUST_CHECK int store_import_validate(struct cli_store *store, const char *path);

#endif
