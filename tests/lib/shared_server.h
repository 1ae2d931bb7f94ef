/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* shared_server.h - the server of shared_store.h, as its two files share it. All but open, close
 * and looking is with the mutex held. */
#ifndef DET_TEST_SHARED_SERVER_H
#define DET_TEST_SHARED_SERVER_H

#include "base/list.h"
#include "lib/shared_store.h"
#include "os/os.h"

/* Who owns a timer or an effect. */
struct row {
    struct det_list link;
    const char *machine;
    char id[DET_ID_MAX + 1];
    bool is_timer, is_dead;
    uint64_t sequence; /* of an effect */
    uint16_t number;   /* of an effect, or of a timer */
    uint64_t visit;    /* of a timer */
    det_time armed;    /* of a timer: when it was to fire first */
    det_time due;
    char owner[33];
};

/* A lease by name, or an instance with its lock. */
struct held {
    struct det_list link;
    const char *machine; /* NULL: a lease */
    char name[DET_ID_MAX + 1];
    struct det_store_lease lease;
};

struct det_shared {
    struct det_sim *sim;
    struct det_world *world;
    struct det_store *inner;
    struct det_mutex *mutex;
    struct det_condition *changed;
    struct det_list rows, held, nodes;
    det_time offset; /* of its clock from BOOT */
    unsigned opened;
    struct det_shared_faults faults;
    struct det_shared_counts counts;
};

struct node {
    struct det_store store;
    struct det_shared *shared;
    struct det_list link;
    bool is_paused, is_dead;
    unsigned failing;
    bool fails_before;
    void (*wake)(void *context);
    void *context;
    unsigned waking; /* calls of `wake` under way */
};

static inline void det_shared_lock(struct det_shared *shared)
{
    det_mutex_lock(shared->world, shared->mutex);
}

static inline void det_shared_unlock(struct det_shared *shared)
{
    det_mutex_unlock(shared->world, shared->mutex);
}

struct row *det_shared_find_row(
    const struct det_shared *shared, const char *machine, const char *id, bool is_timer,
    uint64_t sequence, uint16_t number);
void det_shared_own(struct row *row, const struct node *node);
/* The next row of the node in the order of time; after NULL: the first. */
struct row *det_shared_next_due(
    struct node *node, const struct det_machine *machine, const struct row *after);
/* The first row whose owner's lease has lapsed or is gone; NULL: there is none. */
struct row *det_shared_first_left(struct det_shared *shared, const struct det_machine *machine);
struct held *det_shared_find_held(struct det_shared *shared, const char *machine, const char *name);
struct held *det_shared_add_held(struct det_shared *shared, const char *machine, const char *name);
/* When it has lapsed nobody holds it. */
bool det_shared_is_free(const struct det_shared *shared, const struct held *held);
int det_shared_change_held(
    struct det_shared *shared, struct held *held, const struct det_store_lease_change *change);
void det_shared_commit_one(struct node *node, struct det_store_commit *commit);

/* shared_store.c: the way to the server and back. After 0 the mutex is held, until it is left. */
int det_shared_enter(struct node *node);
int det_shared_leave(struct node *node, int r);
/* shared_jobs.c */
extern const struct det_job_ops det_shared_jobs;

#endif
