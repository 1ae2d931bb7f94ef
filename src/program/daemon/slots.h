/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* slots.h - slots: their list, submissions, and jobs of durable slots.
 *
 * Functions run on the loop's thread, unless a comment says otherwise. */
#ifndef DET_DAEMON_SLOTS_H
#define DET_DAEMON_SLOTS_H

#include <detent/driver/jobs.h>
#include <detent/slot.h>

#include "daemon/loop_request.h"

struct det_durable;
struct up_slots;

struct up_variable {
    const char *name, *value;
};

/* A job that a client submits. */
struct up_submission {
    const char *slot;        /* NULL: a separate new slot */
    const char *name;        /* NULL: named after its program */
    const char *key;         /* Idempotency-Key; NULL: none */
    const char *const *argv; /* NULL at the end */
    /* Added to the environment of this process; NULL: none. */
    const struct up_variable *environment;
    size_t environment_count;
    const char *folder; /* relative to the project; NULL: the project */
    det_time timeout;   /* of one attempt; 0: none */
    uint64_t retries;
    enum det_admission admission;
    bool creates_slot;
    /* The client also waits for the end of the job: the second part of the answer. */
    bool wait_wanted;
    /* Set before the first part of the answer: a durable job of this name existed already. */
    bool is_repeated;
};

/* Called with each slot while the list is written; `user` is passed to it. */
struct up_slots_viewer {
    void (*see)(void *user, const struct det_slot_info *info); /* may be NULL */
    void *user;
};

/* Opens durable slots and their store. Call up_slots_close() even after an error. */
DET_MUST_CHECK int up_slots_open(struct up *up, struct det_error *reterr);
/* Starts no more jobs of durable slots. */
void up_slots_drain(struct up *up);
/* Call before closing the tasks; turns the loop. */
void up_slots_close(struct up *up);
size_t up_durable_count(const struct up *up);
/* 1 if there is a slot of this name, 0 if not, or an error. */
DET_MUST_CHECK int up_slot_exists(struct up *up, const char *name);
/* The queue of a durable slot; NULL: not a durable slot. Any thread. */
struct det_durable *up_durable_find(const struct up *up, const char *slot);
/* The store of durable slots; NULL: none. Any thread. */
struct det_store *up_slots_store(const struct up *up);
/* The job of a task: "import", or "import, attempt 2". Returned once, when the task starts; NULL:
 * none. */
const char *up_durable_take_job(struct up *up, const char *task, char *target, size_t size);

/* Submits a task of this process. Meanwhile up_slots_submitting() is the name of the task. */
DET_MUST_CHECK int up_slot_submit(
    struct up *up, const struct det_submission *submission, struct det_admitted *ret,
    struct det_error *reterr);
/* NULL: no task is being submitted. */
const char *up_slots_submitting(const struct up *up);

/* Each slot is one part of the answer; jobs of durable slots are counted in the store. */
void up_list_slots(struct up *up, struct up_request *request, const struct up_slots_viewer *viewer);
/* The submission must outlive the request. */
void up_submit(struct up *up, struct up_request *request, struct up_submission *submission);
/* Retries or cancels a job of a durable slot. */
void up_change_job(struct up *up, struct up_request *request, const struct det_job_change *change);

#endif
