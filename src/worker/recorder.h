/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* recorder.h - writes documents (driver/documents.h) on a separate thread, so that the loop never
 * waits for a disk.
 *
 *     submit submit submit ...     the loop
 *         |  copied once
 *         v
 *     one queue  -->  all that wait, up to 512 saves or 8 MiB: one save() of the store
 *                                  |
 *     done(argument, recorded)  <--+  posted to the loop
 *
 * The saves of one recording are one commit: all or none. Recordings are saved, and their `done`
 * called, in the order of submission. Several share a commit; if that is refused with
 * DET_ERR_INVALID or DET_ERR_CONFLICT, it is repeated in smaller ones, down to a single recording,
 * so that an invalid document affects only its own recording.
 *
 * Errors are not retried: when the store fails, each recording of that call gets the error, and
 * later ones are saved as usual. A caller that saves again after an error must save the current
 * content, not the old one: a later recording of the same document may have been saved
 * meanwhile. */
#ifndef DET_WORKER_RECORDER_H
#define DET_WORKER_RECORDER_H

#include <detent/driver/documents.h>
#include <detent/driver/loop.h>
#include <detent/loop.h>

#include "base/list.h"

#define DET_RECORDER_SAVES_MAX 512 /* limit of one call of the store */
#define DET_RECORDER_BYTES_MAX \
    8388608 /* bytes of texts in one call, unless one recording has
                                        * more */

struct det_recorder;

/* The result; valid during the call of `done`. */
struct det_recorded {
    int code;                               /* 0: saved, and durable */
    const struct det_error *error;          /* NULL: code is 0 */
    const struct det_document_saved *saved; /* of each save, in order; NULL: code is not 0 */
    size_t count;
};

/* Saves for one commit: for example the documents of one worker. Submit copies everything,
 * including texts. */
struct det_recording {
    const struct det_document_save *saves;
    size_t count; /* 1 to DET_RECORDER_SAVES_MAX */
    void (*done)(void *argument, const struct det_recorded *recorded); /* on the loop; NULL: none */
    void *argument;
};

/* Private to the recorder: an item of the queue. */
struct det_recorder_item {
    struct det_list node;
    bool is_job;
};

/* Another operation on the recorder's thread: a list, deltas, compact. In the submitter's memory
 * until `done` is called. Executed in the order of submission. */
struct det_recorder_job {
    int (*run)(void *argument, struct det_store *store);
    void (*done)(void *argument, int code); /* on the loop, with the return value of run() */
    void *argument;
    /* Private to the recorder. */
    struct det_recorder_item item;
    int code;
    struct det_post post;
};

/* The store is borrowed; DET_ERR_UNSUPPORTED: it does not support documents. NULL, only if inline:
 * everything succeeds, and nothing is kept. `is_inline`: no thread. Submit saves at once and then
 * posts `done`; for a memory store, where time must not pass by itself. */
DET_MUST_CHECK int det_recorder_open(
    struct det_world *world, const struct det_allocator *allocator, struct det_store *store,
    struct det_loop *loop, bool is_inline, struct det_recorder **ret);
/* Saves everything submitted, runs the jobs, and waits. Every `done` is posted, and may run after
 * this has returned, so close the loop later. Accepts NULL. */
void det_recorder_close(struct det_recorder *recorder);

/* Any thread; never waits for the store (unless it is inline). DET_ERR_NO_MEMORY: no room for the
 * copy; nothing is saved, `done` is not called. */
DET_MUST_CHECK int det_recorder_submit(
    struct det_recorder *recorder, const struct det_recording *wanted);
/* Any thread; never fails. */
void det_recorder_send(struct det_recorder *recorder, struct det_recorder_job *job);

/* Reads on the calling thread, which waits: for the start, before anything is submitted. Like
 * det_store_documents_list(); use a job to get the position. */
DET_MUST_CHECK int det_recorder_load(
    struct det_recorder *recorder, const struct det_document_query *query,
    int (*visit)(void *context, const struct det_document *document), void *context);

/* Submitted and unfinished work, which grows if the store is too slow. Any thread. */
struct det_recorder_waiting {
    uint64_t count; /* recordings and jobs */
    size_t bytes;   /* bytes of memory */
};
void det_recorder_waiting(struct det_recorder *recorder, struct det_recorder_waiting *ret);

#endif
