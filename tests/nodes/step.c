/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* step.c - the operations of a store with a place to stop before and after each. */
#include "nodes/step.h"

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <detent/driver/store.h>

#define NAME_MAX_SIZE 32

static const struct det_store_ops *inner;
static struct det_store_ops outer;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char armed[NAME_MAX_SIZE] = "none";
static const char *bug;

void step_print(const char *format, ...)
{
    char line[512];
    va_list arguments;
    int size;

    va_start(arguments, format);
    size = vsnprintf(line, sizeof line - 1, format, arguments);
    va_end(arguments);
    if (size >= (int)sizeof line - 1)
        size = (int)sizeof line - 2;
    line[size] = '\n';
    if (write(STDOUT_FILENO, line, (size_t)size + 1) != size + 1)
        _exit(1);
}

void step_arm(const char *name)
{
    pthread_mutex_lock(&mutex);
    snprintf(armed, sizeof armed, "%s", name);
    pthread_mutex_unlock(&mutex);
}

void step_reach(const char *name, const char *side)
{
    char full[NAME_MAX_SIZE];

    snprintf(full, sizeof full, "%s.%s", name, side);
    pthread_mutex_lock(&mutex);
    if (strcmp(full, armed) == 0) {
        snprintf(armed, sizeof armed, "none");
        step_print("stopped %s", full);
        /* To this thread, which then does not come a step further; the others stop with it. */
        (void)raise(SIGSTOP);
    }
    pthread_mutex_unlock(&mutex);
}

/* What a batch is, by the first of its commits that is more than a plain send: the firing of a
 * timer, the end of an effect, or something else under a lock. */
static const char *kind_of(struct det_store_commit *const *commits, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < commits[i]->timer_count; k++) {
            if (commits[i]->timers[k].kind == DET_STORE_TAKE)
                return "fire";
        }
        for (size_t k = 0; k < commits[i]->effect_count; k++) {
            if (commits[i]->effects[k].kind == DET_STORE_TAKE)
                return "product";
        }
        if (commits[i]->fence)
            return "locked";
    }
    return "commit";
}

static bool has_bug(const char *name)
{
    return bug && strcmp(bug, name) == 0;
}

/* As if the store asked for no fence: whatever would be let in now. */
static void forge(struct det_store *store, struct det_store_commit *commit)
{
    const struct det_store_lease_change inspect = { .verb = DET_LEASE_READ, .name = commit->id };
    struct det_store_lease found;

    if (commit->fence && inner->lock(store, commit->machine, &inspect, &found) == 0)
        commit->fence = found.owner[0] ? found.token : 0;
}

static int commit_badly(
    struct det_store *store, struct det_store_commit *const *commits, size_t count)
{
    static atomic_uint calls;

    for (size_t i = 0; i < count; i++) {
        if (has_bug("id"))
            commits[i]->event_id = NULL;
        if (has_bug("fence"))
            forge(store, commits[i]);
        if (has_bug("early"))
            commits[i]->result = 0;
    }
    if (has_bug("early") && !commits[0]->is_new && atomic_fetch_add(&calls, 1) % 8 == 7)
        return 0;
    return inner->commit(store, commits, count);
}

static int commit(struct det_store *store, struct det_store_commit *const *commits, size_t count)
{
    const char *kind = kind_of(commits, count);
    int r;

    step_reach(kind, "before");
    r = commit_badly(store, commits, count);
    step_reach(kind, "after");
    return r;
}

static int load(
    struct det_store *store, const struct det_machine *machine, const char *id,
    const struct det_store_rows *rows, struct det_store_loaded *ret)
{
    int r;

    step_reach("load", "before");
    r = inner->load(store, machine, id, rows, ret);
    step_reach("load", "after");
    return r;
}

static int answer(
    struct det_store *store, struct det_store_instance *instance, const char *event_id,
    struct det_store_answer *ret)
{
    int r;

    step_reach("answer", "before");
    r = inner->answer(store, instance, event_id, ret);
    step_reach("answer", "after");
    return r;
}

static int due(
    struct det_store *store, const struct det_machine *machine,
    const struct det_store_due_query *query,
    int (*visit)(void *context, const struct det_store_due *row), void *context, det_time *ret_next)
{
    int r;

    step_reach("due", "before");
    r = inner->due(store, machine, query, visit, context, ret_next);
    step_reach("due", "after");
    return r;
}

static int adopt(
    struct det_store *store, const struct det_machine *machine, size_t limit, size_t *ret)
{
    int r;

    step_reach("adopt", "before");
    r = inner->adopt(store, machine, limit, ret);
    step_reach("adopt", "after");
    return r;
}

/* "node" is this node's own, "sweeper" the leader's. */
static int lease(
    struct det_store *store, const struct det_store_lease_change *change,
    struct det_store_lease *ret)
{
    const char *name = strncmp(change->name, "node/", 5) == 0 ? "node" : "sweeper";
    int r;

    step_reach(name, "before");
    r = inner->lease(store, change, ret);
    step_reach(name, "after");
    return r;
}

static int lock(
    struct det_store *store, const struct det_machine *machine,
    const struct det_store_lease_change *change, struct det_store_lease *ret)
{
    static const char *const names[] = { [DET_LEASE_ACQUIRE] = "acquire",
                                         [DET_LEASE_RENEW] = "renew",
                                         [DET_LEASE_RELEASE] = "release",
                                         [DET_LEASE_READ] = "look" };
    int r;

    step_reach(names[change->verb], "before");
    r = inner->lock(store, machine, change, ret);
    step_reach(names[change->verb], "after");
    return r;
}

void step_watch(struct det_store *store)
{
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): nobody changes it. */
    bug = getenv("NODES_BUG");
    inner = store->ops;
    outer = *inner;
    outer.commit = commit;
    outer.load = load;
    outer.answer = answer;
    outer.due = due;
    outer.adopt = adopt;
    outer.lease = lease;
    outer.lock = lock;
    store->ops = &outer;
}
