/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* recorder.h - writes documents (driver/documents.h) on a thread of its own, so that the loop never
 * waits for a disk.
 *
 *     submit submit submit ...     the loop
 *         |  copied once
 *         v
 *     one queue  -->  all that wait, up to 512 saves or 8 MiB: one save() of the store
 *                                  |
 *     done(argument, recorded)  <--+  posted to the loop
 *
 * What one recording has is saved in one commit: all of it or nothing. Recordings are saved, and
 * their `done` runs, in the order submitted. Several go into one commit; when that is refused with
 * DET_ERR_INVALID or DET_ERR_CONFLICT it is tried in smaller ones, down to one recording alone, so
 * that a bad document spoils only its own recording.
 *
 * Nothing is tried again: when the store fails, each recording of that call is answered with its
 * error, and those after it are tried as if nothing had been. So who saves again after an error
 * saves what is to be now, not what was to be then: a later one of the same document may have been
 * saved meanwhile. */
#ifndef DET_WORKER_RECORDER_H
#define DET_WORKER_RECORDER_H

#include <detent/driver/documents.h>
#include <detent/driver/loop.h>
#include <detent/loop.h>

#include "base/list.h"

#define DET_RECORDER_SAVES_MAX 512     /* of one call of the store */
#define DET_RECORDER_BYTES_MAX 8388608 /* of texts in one call, unless one recording has more */

struct det_recorder;

/* How it went; for the call of `done` only. */
struct det_recorded {
    int code;                               /* 0: saved, and durable */
    const struct det_error *error;          /* NULL: code is 0 */
    const struct det_document_saved *saved; /* of each save, in their order; NULL: code is not 0 */
    size_t count;
};

/* What is to be saved in one commit: documents of one worker, say. All of it is copied by submit,
 * texts too. */
struct det_recording {
    const struct det_document_save *saves;
    size_t count; /* 1 to DET_RECORDER_SAVES_MAX */
    void (*done)(void *argument, const struct det_recorded *recorded); /* on the loop; NULL: none */
    void *argument;
};

/* What stands in the queue; the recorder's. */
struct det_recorder_item {
    struct det_list node;
    bool is_job;
};

/* Something else to be done with the store on the recorder's thread: a list, deltas, compact. In
 * the submitter's memory until `done` is called. It has its turn after what was submitted before,
 * and before what was submitted later. */
struct det_recorder_job {
    int (*run)(void *argument, struct det_store *store);
    void (*done)(void *argument, int code); /* on the loop, with the answer of run() */
    void *argument;
    /* The recorder's. */
    struct det_recorder_item item;
    int code;
    struct det_post post;
};

/* The store is borrowed; DET_ERR_UNSUPPORTED when it keeps no documents. NULL, only when inline:
 * all is answered as saved, and nothing is kept. `is_inline`: there is no thread. Submit saves at
 * once and then posts `done`; for a store in memory, where time must not pass by itself. */
DET_MUST_CHECK int det_recorder_open(
    struct det_world *world, const struct det_allocator *allocator, struct det_store *store,
    struct det_loop *loop, bool is_inline, struct det_recorder **ret);
/* Saves what was submitted, runs what jobs there are, and waits for it. Every `done` is posted,
 * and may run after this has returned, so the loop is closed later. Takes NULL. */
void det_recorder_close(struct det_recorder *recorder);

/* From any thread; never waits for the store (unless it is inline). DET_ERR_NO_MEMORY: there was no
 * room for the copy, and nothing is saved, nobody told. */
DET_MUST_CHECK int det_recorder_submit(
    struct det_recorder *recorder, const struct det_recording *wanted);
/* From any thread; never fails. */
void det_recorder_send(struct det_recorder *recorder, struct det_recorder_job *job);
/* Waits until all that was submitted before has had its turn, well or not; DET_ERR_TIMEOUT at the
 * monotonic deadline. Their `done` is posted then, but need not have run. Not from a job. */
DET_MUST_CHECK int det_recorder_flush(struct det_recorder *recorder, det_time deadline);

/* On the calling thread, which waits: for the start, when nothing is submitted yet. As
 * det_store_documents_list(); who wants to know the position sends a job. */
DET_MUST_CHECK int det_recorder_load(
    struct det_recorder *recorder, const struct det_document_query *query,
    int (*visit)(void *context, const struct det_document *document), void *context);

/* What was submitted and has not had its turn; a store that is slower than what comes is seen
 * here. From any thread. */
struct det_recorder_waiting {
    uint64_t count; /* recordings and jobs */
    size_t bytes;   /* of memory */
};
void det_recorder_waiting(struct det_recorder *recorder, struct det_recorder_waiting *ret);

#endif
