/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* worker_queries.c - looking at workers, and orders to them: on the loop, answered
 * at once. */
#include <detent/tool/workers.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "daemon/task_json.h"
#include "daemon/verbs.h"
#include "daemon/workers.h"

/* Whom it is about. */

struct up_workers *up_workers_of(struct up *up, struct socket_call *call)
{
    if (!up->workers || !up->workers->workers)
        socket_call_fail(
            call, DET_ERR_UNSUPPORTED,
            "this detent up has no workers; a section 'workers' of " CONFIG_FILE_NAME " has them");
    else if (up->state >= UP_STOPPING)
        socket_call_fail(call, DET_ERR_CLOSED, CLI_SHUTDOWN);
    else
        return up->workers;
    return NULL;
}

bool up_workers_resolve(
    struct up_workers *workers, const char *id, char target[DET_WORKER_PATH_MAX + 1])
{
    const size_t size = DET_WORKER_PATH_MAX + 1;
    size_t root = strlen(workers->name);
    struct det_worker_status status;

    if (det_text_copy(target, size, id) &&
        det_workers_get(workers->workers, target, &status, NULL, NULL) == 0)
        return true;
    if (strncmp(id, workers->name, root) == 0 && (id[root] == '/' || !id[root]))
        return false;
    return (size_t)snprintf(target, size, "%s/%s", workers->name, id) < size &&
           det_workers_get(workers->workers, target, &status, NULL, NULL) == 0;
}

struct near {
    struct det_arena *arena;
    size_t skip; /* of each id: the root, which was not said */
    const char **ids;
    size_t count, room;
};

static int add_id(void *user, const struct det_worker_status *status)
{
    struct near *near = user;

    if (strlen(status->id) <= near->skip)
        return 0;
    if (near->count < near->room)
        near->ids[near->count] = det_arena_copy(near->arena, status->id + near->skip);
    near->count += near->count < near->room && near->ids[near->count];
    return 0;
}

#define NEAR_MAX 1000
static void fail_unknown(struct up_workers *workers, struct socket_call *call, const char *id)
{
    const struct det_allocator *allocator = workers->up->output.outer->allocator;
    const char *ids[NEAR_MAX];
    struct det_arena arena;
    struct near near = { .arena = &arena, .ids = ids, .room = NEAR_MAX };
    size_t root = strlen(workers->name);
    int nearest;

    if (strncmp(id, workers->name, root) != 0)
        near.skip = root + 1;
    det_arena_init(&arena, allocator);
    (void)!det_workers_each(workers->workers, add_id, &near);
    nearest = det_text_nearest(id, ids, near.count);
    if (nearest >= 0)
        socket_call_fail(
            call, DET_ERR_NOT_FOUND, "there is no worker '%.200s'; did you mean '%s'?", id,
            ids[nearest]);
    else
        socket_call_fail(
            call, DET_ERR_NOT_FOUND, "there is no worker '%.200s'; 'detent workers' lists them",
            id);
    det_arena_deinit(&arena);
}

bool up_workers_take_id(
    struct up_workers *workers, const struct socket_request *request, struct socket_call *call,
    char target[DET_WORKER_PATH_MAX + 1])
{
    const char *id = up_argument_text(request, "id");

    if (!id)
        socket_call_fail(call, DET_ERR_INVALID, "'%s' needs 'id'", request->verb);
    else if (!up_workers_resolve(workers, id, target))
        fail_unknown(workers, call, id);
    else
        return true;
    return false;
}

/* Looking. */

static const char *freshness_word(enum det_freshness freshness)
{
    switch (freshness) {
    case DET_FRESHNESS_UNKNOWN:
        return "unknown";
    case DET_FRESHNESS_NEVER:
        return "never";
    case DET_FRESHNESS_STALE:
        return "stale";
    case DET_FRESHNESS_FRESH:
        return "fresh";
    }
    return "unknown";
}

static json_t *counts_of(const struct det_worker_counts *counts)
{
    return json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "transitions", (json_int_t)counts->transitions,
        "observations", (json_int_t)counts->observations, "startups", (json_int_t)counts->startups,
        "collector_restarts", (json_int_t)counts->collector_restarts, "restarts",
        (json_int_t)counts->restarts, "actions_done", (json_int_t)counts->actions_done,
        "actions_failed", (json_int_t)counts->actions_failed, "failures",
        (json_int_t)counts->failures);
}

/* Null of the root. */
static json_t *parent_of(const char *id)
{
    const char *slash = strrchr(id, '/');

    return slash ? json_stringn(id, (size_t)(slash - id)) : json_null();
}

static json_t *status_of(const struct det_worker_status *status)
{
    return json_pack(
        "{s:s, s:s, s:o, s:s, s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:s, s:o, s:o, s:I, s:I, s:b, "
        "s:b, s:b, s:b, s:b, s:b, s:o}",
        "kind", "worker", "id", status->id, "parent", parent_of(status->id), "path", status->path,
        "name", status->name, "worker_kind", status->kind, "state", status->state, "phase",
        det_phase_name(status->phase), "life", status->life, "reason",
        cli_json_text(status->reason), "degraded_by",
        *status->degraded_by ? cli_json_text(status->degraded_by) : json_null(), "freshness",
        freshness_word(status->freshness), "since", up_json_time(status->since), "observed_at",
        up_json_time(status->observed), "depth", (json_int_t)status->depth, "children",
        (json_int_t)status->child_count, "stop_wanted", status->stop_wanted, "shutdown_wanted",
        status->shutdown_wanted, "disabled", status->is_disabled, "circuit_open",
        status->is_circuit_open, "action_pending", status->is_action_pending, "by_hand",
        status->is_dynamic, "counts", counts_of(&status->counts));
}

void up_write_workers_figures(struct up *up, struct det_json_writer *json, const char *key)
{
    struct det_workers_summary summary = { 0 };

    if (!up_workers_are_over(up))
        det_workers_summary(up->workers->workers, &summary);
    det_json_open(json, key, '{');
    det_json_number(json, "count", summary.workers);
    det_json_number(json, "stale", summary.stale);
    det_json_number(json, "circuits_open", summary.circuits_open);
    det_json_number(json, "hung", summary.hung);
    for (size_t i = 0; i < sizeof summary.by_phase / sizeof *summary.by_phase; i++)
        det_json_number(json, det_phase_name((enum det_phase)i), summary.by_phase[i]);
    det_json_close(json, '}');
}

/* Which of them are wanted; a page of them, if there is a limit. */
struct listing {
    struct socket_call *call;
    const char *below, *phase, *kind; /* NULL: any */
    const char *after;                /* its last id; NULL: from the first */
    bool has_unwell, is_unwell;
    bool is_begun;         /* `after` was met, or there is none */
    uint64_t skip;         /* or, as that has gone, so many that fit are passed over */
    uint64_t limit;        /* 0: all */
    uint64_t passed, sent; /* those that fit */
    bool has_more;
};

static bool is_below(const char *id, const char *top)
{
    size_t size = strlen(top);

    return strncmp(id, top, size) == 0 && (!id[size] || id[size] == '/');
}

static bool fits(const struct listing *listing, const struct det_worker_status *status)
{
    return (!listing->below || is_below(status->id, listing->below)) &&
           (!listing->phase || strcmp(listing->phase, det_phase_name(status->phase)) == 0) &&
           (!listing->kind || strcmp(listing->kind, status->kind) == 0) &&
           (!listing->has_unwell || listing->is_unwell == up_workers_is_unwell(status));
}

static int send_status(void *user, const struct det_worker_status *status)
{
    struct listing *listing = user;
    bool was_begun = listing->is_begun;

    if (!was_begun && listing->after && strcmp(status->id, listing->after) == 0)
        listing->is_begun = true;
    if (!fits(listing, status))
        return 0;
    if (!was_begun && (listing->after || listing->passed < listing->skip)) {
        listing->passed++;
        return 0;
    }
    listing->is_begun = true;
    listing->has_more = listing->limit && listing->sent == listing->limit;
    if (listing->has_more)
        return 1;
    listing->sent++;
    return socket_call_send(listing->call, status_of(status));
}

static void finish(struct socket_call *call, int r)
{
    if (r < 0 && r != DET_ERR_CLOSED)
        socket_call_fail(call, r, "%s", det_error_text(r));
    else
        socket_call_end(call);
}

const struct up_argument up_workers_id[] = { { "id", UP_TEXT }, { NULL, UP_TEXT } };

/* Behind the workers of a page: how many fit before them, and whether there are more. */
static void finish_page(const struct listing *listing, int r)
{
    if (r >= 0 && listing->limit)
        r = socket_call_send(
            listing->call, json_pack(
                               "{s:s, s:I, s:b}", "kind", "workers_page", "passed",
                               (json_int_t)listing->passed, "has_more", listing->has_more));
    finish(listing->call, r);
}

void up_run_workers_list(
    void *context, const struct socket_request *request, struct socket_call *call)
{
    static const struct up_argument table[] = { { "id", UP_TEXT },        { "phase", UP_TEXT },
                                                { "kind", UP_TEXT },      { "after", UP_TEXT },
                                                { "skip", UP_COUNT },     { "limit", UP_COUNT },
                                                { "unwell", UP_BOOLEAN }, { NULL, UP_TEXT } };
    struct up_workers *workers;
    char id[DET_WORKER_PATH_MAX + 1];
    struct det_worker_status status;
    struct listing listing = { .call = call };

    if (!up_arguments_check(request, call, table))
        return;
    workers = up_workers_of(context, call);
    if (!workers || (up_argument(request, "id") && !up_workers_take_id(workers, request, call, id)))
        return;
    listing.below = up_argument(request, "id") ? id : NULL;
    listing.phase = up_argument_text(request, "phase");
    listing.kind = up_argument_text(request, "kind");
    listing.has_unwell = up_argument(request, "unwell") != NULL;
    listing.is_unwell = up_argument_is_set(request, "unwell");
    listing.limit = up_argument_count(request, "limit", 0);
    listing.skip = up_argument_count(request, "skip", 0);
    listing.after = up_argument_text(request, "after");
    if (listing.after && det_workers_get(workers->workers, listing.after, &status, NULL, NULL) < 0)
        listing.after = NULL;
    listing.is_begun = !listing.after && !listing.skip;
    finish_page(&listing, det_workers_each(workers->workers, send_status, &listing));
}

void up_run_workers_show(
    void *context, const struct socket_request *request, struct socket_call *call)
{
    struct up_workers *workers;
    char id[DET_WORKER_PATH_MAX + 1], *text = NULL;
    struct det_worker_status status;
    json_t *answer, *more;
    size_t size = 0;
    int r;

    if (!up_arguments_check(request, call, up_workers_id))
        return;
    workers = up_workers_of(context, call);
    if (!workers || !up_workers_take_id(workers, request, call, id))
        return;
    r = det_workers_get(workers->workers, id, &status, NULL, NULL);
    if (r == 0)
        r = det_workers_show(workers->workers, id, &text, &size);
    if (r < 0) {
        socket_call_fail(call, r, "%s: %s", id, det_error_text(r));
        return;
    }
    answer = status_of(&status);
    more = json_loadb(text, size, 0, NULL);
    if (!more) /* A number beyond 2^63, which is kept as well as can be. */
        more = json_loadb(text, size, JSON_DECODE_INT_AS_REAL, NULL);
    if (!more || json_object_update_missing(answer, more) < 0) {
        json_decref(answer);
        answer = NULL;
    }
    json_decref(more);
    det_free(workers->up->output.outer->allocator, text, size + 1);
    socket_call_answer(call, answer);
}

/* Lines of JSON, each a part of the answer. */
static int send_lines(struct socket_call *call, const char *text, size_t size)
{
    int r = 0;

    while (size && r == 0) {
        const char *end = memchr(text, '\n', size);
        size_t length = end ? (size_t)(end - text) : size;
        json_t *line = json_loadb(text, length, 0, NULL);

        if (line && json_object_set_new(line, "kind", json_string("worker_history")) < 0) {
            json_decref(line);
            line = NULL;
        }
        r = socket_call_send(call, line);
        length += end != NULL;
        text += length;
        size -= length;
    }
    return r;
}

static int write_history(
    struct det_workers *workers, const struct socket_request *request, const char *id, char **ret,
    size_t *ret_size)
{
    if (!up_argument(request, "after"))
        return det_workers_history(workers, id, ret, ret_size);
    return det_workers_history_after(
        workers, id, up_argument_count(request, "after", 0), ret, ret_size, NULL);
}

void up_run_workers_history(
    void *context, const struct socket_request *request, struct socket_call *call)
{
    static const struct up_argument table[] = { { "id", UP_TEXT },
                                                { "after", UP_COUNT },
                                                { NULL, UP_TEXT } };
    struct up_workers *workers;
    char id[DET_WORKER_PATH_MAX + 1], *text = NULL;
    size_t size = 0;
    int r;

    if (!up_arguments_check(request, call, table))
        return;
    workers = up_workers_of(context, call);
    if (!workers || !up_workers_take_id(workers, request, call, id))
        return;
    r = write_history(workers->workers, request, id, &text, &size);
    if (r == 0) {
        r = send_lines(call, text, size);
        det_free(workers->up->output.outer->allocator, text, size + 1);
    }
    finish(call, r);
}
