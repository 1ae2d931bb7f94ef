/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* slots_internal.h - slots, shared by their files. */
#ifndef DET_DAEMON_SLOTS_INTERNAL_H
#define DET_DAEMON_SLOTS_INTERNAL_H

#include <detent/durable.h>

#include "base/arena.h"
#include "base/list.h"
#include "daemon/daemon.h"
#include "daemon/slots.h"

/* A slot whose queue is in the store. */
struct up_durable {
    const struct config_slot *slot;
    struct det_process_spec process;
    struct det_task_spec spec;
    struct det_durable_work work;
    struct det_durable_schedule *schedules; /* as many as the slot has */
    struct det_durable *queue;
};

struct up_slots {
    struct det_arena arena; /* of durable slots and the bodies of schedules */
    struct up_durable *durables;
    size_t durable_count;
    struct det_store *store; /* of durable slots; NULL: none */
    bool has_own_store;
    struct det_pool *pool;     /* of requests to durable slots; NULL: none, or closing */
    struct det_list resting;   /* requests that poll the store */
    struct det_list beginning; /* jobs of durable slots whose tasks are being added */
    const char *submitting;    /* the task that is being added; NULL: none */
    uint64_t job_count;        /* jobs named so far */
    uint32_t job_tag;          /* of this process, in the names of durable jobs; 0: not set */
};

/* The stored form of a durable job: {"run": [...], "folder": ..., "retries": n, "timeout_ns":
 * n}. */
struct up_durable_body {
    const char *const *argv; /* NULL at the end */
    const char *folder;
    uint32_t retries;
    det_time timeout; /* 0: none */
};
void up_write_durable_body(struct det_json_writer *json, const struct up_durable_body *body);
/* Texts are in the arena. DET_ERR_MALFORMED: not a body. */
DET_MUST_CHECK int up_read_durable_body(
    struct det_arena *arena, struct det_view text, struct up_durable_body *ret);

/* Stores the job, then answers; `body` is from up_write_durable_body(). */
void up_submit_durable(
    struct up *up, struct up_request *request, struct up_submission *submission, const char *id,
    const char *body);
/* Fails the requests that wait for the end of a durable job. */
void up_jobs_close(struct up *up);

#endif
