/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* worker_requests.c - what is asked of workers and waits for the store.
 *
 *     verb (loop) --> ask --pool--> the supervisor, the store --loop--> answer
 *
 * Each ask has all it needs in one arena: the request is gone when the pool comes to it. */
#include <string.h>

#include <detent/tool/documents.h>

#include "base/memory.h"
#include "base/text.h"
#include "daemon/task_json.h"
#include "daemon/verbs.h"
#include "daemon/workers.h"
#include "inspect/document_read.h"
#include "worker/spec.h"

#define DUMP_DEFAULT 1000
#define DUMP_MAX     10000

struct ask {
    struct det_job job;
    struct up_workers *workers;
    struct socket_call *call; /* NULL: who asked went away */
    struct det_arena arena;   /* of the texts */
    void (*run)(struct ask *ask);
    const char *id, *parent;
    const char *word; /* of an order */
    enum det_worker_order order;
    struct det_child_spec spec;
    struct det_document_query query;
    json_t *answer;
    int result;
    struct det_error error;
};

static void run(void *argument)
{
    struct ask *ask = argument;

    ask->run(ask);
}

static void free_ask(struct ask *ask)
{
    const struct det_allocator *allocator = ask->arena.allocator;

    json_decref(ask->answer);
    det_arena_deinit(&ask->arena);
    DET_DELETE(allocator, ask);
}

static void done(void *argument)
{
    struct ask *ask = argument;
    json_t *answer;

    ask->workers->asks--;
    if (!ask->call)
        ;
    else if (ask->job.is_dropped)
        socket_call_fail(ask->call, DET_ERR_CLOSED, CLI_SHUTDOWN);
    else if (ask->result < 0)
        socket_call_fail(
            ask->call, ask->result, "%s",
            ask->error.text[0] ? ask->error.text : det_error_text(ask->result));
    else {
        /* Another thread may take it: it is not ours from then on. */
        answer = ask->answer;
        ask->answer = NULL;
        socket_call_answer(ask->call, answer);
    }
    free_ask(ask);
}

static void on_gone(void *user)
{
    struct ask *ask = user;

    ask->call = NULL;
}

/* NULL after it was said why not. */
static struct ask *open_ask(
    struct up_workers *workers, struct socket_call *call, void (*how)(struct ask *ask))
{
    const struct det_allocator *allocator = workers->up->output.outer->allocator;
    struct ask *ask = DET_NEW(allocator, struct ask);

    if (!ask) {
        socket_call_fail(call, DET_ERR_NO_MEMORY, "there is no memory left");
        return NULL;
    }
    det_arena_init(&ask->arena, allocator);
    ask->workers = workers;
    ask->call = call;
    ask->run = how;
    ask->job =
        (struct det_job){ .run = run, .done = done, .argument = ask, .loop = workers->up->loop };
    return ask;
}

static void submit(struct ask *ask)
{
    socket_call_keep(ask->call, on_gone, ask);
    ask->workers->asks++;
    det_pool_submit(ask->workers->pool, &ask->job);
}

static void refuse(struct ask *ask, int code, const char *text)
{
    socket_call_fail(ask->call, code, "%s", text);
    free_ask(ask);
}

/* Putting and taking away. */

static void upsert(struct ask *ask)
{
    ask->result = det_workers_upsert(ask->workers->workers, ask->parent, &ask->spec, &ask->error);
    ask->answer = json_pack("{s:s, s:s}", "kind", "worker_put", "id", ask->id);
}

static void take_away(struct ask *ask)
{
    ask->result = det_workers_delete(ask->workers->workers, ask->id, &ask->error);
    ask->answer = json_pack("{s:s, s:s}", "kind", "worker_deleted", "id", ask->id);
}

/* A copy; NULL stays NULL. */
static bool copy_text(
    struct ask *ask, const struct socket_request *request, const char *name, const char **ret)
{
    const char *text = up_argument_text(request, name);

    *ret = text ? det_arena_copy(&ask->arena, text) : NULL;
    return !text || *ret;
}

/* The states of the parent that were named. */
static int read_states(struct ask *ask, json_t *names)
{
    const struct det_worker_kind *kind;
    struct det_worker_status status;
    struct det_spec_child child = { .run_in_count = (uint32_t)json_array_size(names) };
    const char **all = det_arena_array(&ask->arena, child.run_in_count + 1, sizeof *all);

    if (!all)
        return det_error_set(&ask->error, DET_ERR_NO_MEMORY, "there is no memory left");
    for (uint32_t i = 0; i < child.run_in_count; i++)
        all[i] = json_string_value(json_array_get(names, i));
    child.run_in = all;
    child.name = ask->spec.name;
    if (det_workers_get(ask->workers->workers, ask->parent, &status, NULL, NULL) < 0)
        return det_error_set(
            &ask->error, DET_ERR_NOT_FOUND, "there is no worker '%.200s'", ask->parent);
    kind = up_workers_kind(ask->workers, status.kind);
    return kind ? det_spec_run_in(&child, kind, &ask->spec.run_in, &ask->error) : 0;
}

/* "plant/press/valve" is valve below plant/press. */
static int read_place(struct ask *ask, const char *id)
{
    char whole[DET_WORKER_PATH_MAX + 1];
    char *slash;

    (void)up_workers_resolve(ask->workers, id, whole);
    slash = strrchr(whole, '/');
    if (!slash || !slash[1])
        return det_error_set(
            &ask->error, DET_ERR_INVALID, "'%.200s' is not the id of a worker below another one",
            id);
    ask->id = det_arena_copy(&ask->arena, whole);
    *slash = '\0';
    ask->parent = det_arena_copy(&ask->arena, whole);
    ask->spec.name = ask->id ? strrchr(ask->id, '/') + 1 : NULL;
    return ask->id && ask->parent
               ? 0
               : det_error_set(&ask->error, DET_ERR_NO_MEMORY, "there is no memory left");
}

static int find_kind(struct ask *ask)
{
    const struct up_workers *workers = ask->workers;
    const char **names = det_arena_array(&ask->arena, workers->kind_count + 1, sizeof *names);
    int nearest;

    if (up_workers_kind(workers, ask->spec.kind))
        return 0;
    if (!names)
        return det_error_set(&ask->error, DET_ERR_NO_MEMORY, "there is no memory left");
    for (size_t i = 0; i < workers->kind_count; i++)
        names[i] = workers->kinds[i]->name;
    nearest = det_text_nearest(ask->spec.kind, names, workers->kind_count);
    return det_error_set(
        &ask->error, DET_ERR_NOT_FOUND, "there is no kind of worker '%.64s'%s%s%s", ask->spec.kind,
        nearest < 0 ? "" : "; did you mean '", nearest < 0 ? "" : names[nearest],
        nearest < 0 ? "" : "'?");
}

static int read_put(struct ask *ask, const struct socket_request *request)
{
    json_t *states = up_argument(request, "run_in");
    int r = read_place(ask, up_argument_text(request, "id"));

    if (r == 0 && (!copy_text(ask, request, "kind", &ask->spec.kind) ||
                   !copy_text(ask, request, "config", &ask->spec.config) ||
                   !copy_text(ask, request, "variables", &ask->spec.variables) ||
                   !copy_text(ask, request, "location", &ask->spec.location)))
        r = det_error_set(&ask->error, DET_ERR_NO_MEMORY, "there is no memory left");
    ask->spec.is_disabled = up_argument_is_set(request, "disabled");
    if (r == 0)
        r = find_kind(ask);
    return r == 0 && states && json_array_size(states) ? read_states(ask, states) : r;
}

void up_run_workers_upsert(
    void *context, const struct socket_request *request, struct socket_call *call)
{
    static const struct up_argument table[] = {
        { "id", UP_TEXT },          { "kind", UP_TEXT },     { "config", UP_TEXT },
        { "variables", UP_TEXT },   { "location", UP_TEXT }, { "run_in", UP_TEXTS },
        { "disabled", UP_BOOLEAN }, { NULL, UP_TEXT }
    };
    struct up_workers *workers;
    struct ask *ask;
    int r;

    if (!up_arguments_check(request, call, table))
        return;
    if (!up_argument(request, "id") || !up_argument(request, "kind")) {
        socket_call_fail(call, DET_ERR_INVALID, "'%s' needs 'id' and 'kind'", request->verb);
        return;
    }
    workers = up_workers_of(context, call);
    ask = workers ? open_ask(workers, call, upsert) : NULL;
    if (!ask)
        return;
    r = read_put(ask, request);
    if (r < 0)
        refuse(ask, r, ask->error.text);
    else
        submit(ask);
}

void up_run_workers_delete(
    void *context, const struct socket_request *request, struct socket_call *call)
{
    struct up_workers *workers;
    char id[DET_WORKER_PATH_MAX + 1];
    struct ask *ask;

    if (!up_arguments_check(request, call, up_workers_id))
        return;
    workers = up_workers_of(context, call);
    if (!workers || !up_workers_take_id(workers, request, call, id))
        return;
    ask = open_ask(workers, call, take_away);
    if (!ask)
        return;
    ask->id = det_arena_copy(&ask->arena, id);
    if (ask->id)
        submit(ask);
    else
        refuse(ask, DET_ERR_NO_MEMORY, "there is no memory left");
}

/* Orders. */

static void order(struct ask *ask)
{
    ask->result = det_workers_order(ask->workers->workers, ask->id, ask->order);
    if (ask->result == DET_ERR_REFUSED)
        det_error_set(
            &ask->error, ask->result,
            "%.200s is disabled by its spec: take `disabled` out of it, or put it again without",
            ask->id);
    else if (ask->result < 0)
        det_error_set(&ask->error, ask->result, "%.200s: %s", ask->id, det_error_text(ask->result));
    ask->answer =
        json_pack("{s:s, s:s, s:s}", "kind", "worker_order", "id", ask->id, "order", ask->word);
}

/* NULL after it was said what is wrong. */
static const char *find_order(
    const struct socket_request *request, struct socket_call *call, enum det_worker_order *ret)
{
    static const char *const words[] = { [DET_WORKER_ORDER_RESTART] = "restart",
                                         [DET_WORKER_ORDER_DISABLE] = "disable",
                                         [DET_WORKER_ORDER_ENABLE] = "enable" };
    const char *word = up_argument_text(request, "order");

    for (size_t i = 0; word && i < sizeof words / sizeof *words; i++) {
        *ret = (enum det_worker_order)i;
        if (strcmp(words[i], word) == 0)
            return words[i];
    }
    socket_call_fail(call, DET_ERR_INVALID, "'order' is restart, disable or enable");
    return NULL;
}

void up_run_workers_order(
    void *context, const struct socket_request *request, struct socket_call *call)
{
    static const struct up_argument table[] = { { "id", UP_TEXT },
                                                { "order", UP_TEXT },
                                                { NULL, UP_TEXT } };
    struct up_workers *workers;
    char id[DET_WORKER_PATH_MAX + 1];
    enum det_worker_order which;
    const char *word;
    struct ask *ask;

    if (!up_arguments_check(request, call, table))
        return;
    word = find_order(request, call, &which);
    workers = word ? up_workers_of(context, call) : NULL;
    if (!workers || !up_workers_take_id(workers, request, call, id))
        return;
    ask = open_ask(workers, call, order);
    if (!ask)
        return;
    ask->order = which;
    ask->word = word;
    ask->id = det_arena_copy(&ask->arena, id);
    if (ask->id)
        submit(ask);
    else
        refuse(ask, DET_ERR_NO_MEMORY, "there is no memory left");
}

/* What is on record. */

static json_t *or_null(json_t *value)
{
    return value ? value : json_null();
}

static int add_document(void *context, const struct det_document *document)
{
    json_t *list = context;
    bool may_show;
    json_t *object = cli_document_read(document, false, &may_show);

    return json_array_append_new(
               list,
               json_pack(
                   "{s:s, s:s, s:s, s:I, s:I, s:o, s:o, s:o}", "id", document->id, "worker_kind",
                   document->kind, "role", det_document_role_name(document->role), "sync",
                   (json_int_t)document->sync, "version", (json_int_t)document->version,
                   "created_at", up_json_time(document->created_at), "updated_at",
                   up_json_time(document->updated_at), "document", or_null(object))) < 0
               ? DET_ERR_NO_MEMORY
               : 0;
}

static int add_delta(void *context, const struct det_delta *delta)
{
    json_t *list = context;
    bool may_show;
    json_t *change = cli_delta_read(delta, false, &may_show);

    return json_array_append_new(
               list, json_pack(
                         "{s:I, s:o, s:s, s:s, s:s, s:s, s:I, s:o}", "sync",
                         (json_int_t)delta->sync, "at", up_json_time(delta->at), "id", delta->id,
                         "worker_kind", delta->kind, "role", det_document_role_name(delta->role),
                         "change", det_document_change_name(delta->change), "version",
                         (json_int_t)delta->version, "delta", or_null(change))) < 0
               ? DET_ERR_NO_MEMORY
               : 0;
}

/* One page of the deltas after a position, or of the documents after an id. */
static void dump(struct ask *ask)
{
    bool is_documents = ask->query.after_id != NULL;
    struct det_store *store = ask->workers->up->shared;
    struct det_document_position position = { 0 };
    json_t *list = json_array();
    int r;

    if (is_documents)
        r = det_store_documents_list(store, &ask->query, add_document, list, &position);
    else
        r = det_store_documents_deltas(store, &ask->query, add_delta, list, &position);
    ask->result = r;
    ask->answer = json_pack(
        "{s:s, s:I, s:I, s:b, s:o}", "kind", is_documents ? "documents" : "deltas", "latest",
        (json_int_t)position.latest, "oldest", (json_int_t)position.oldest, "has_more",
        json_array_size(list) >= ask->query.limit, is_documents ? "documents" : "deltas", list);
}

void up_run_workers_dump(
    void *context, const struct socket_request *request, struct socket_call *call)
{
    static const struct up_argument table[] = {
        { "after", UP_COUNT },   { "limit", UP_COUNT },       { "below", UP_TEXT },
        { "after_id", UP_TEXT }, { "documents", UP_BOOLEAN }, { NULL, UP_TEXT }
    };
    struct up_workers *workers;
    struct ask *ask;
    uint64_t limit;

    if (!up_arguments_check(request, call, table))
        return;
    workers = up_workers_of(context, call);
    ask = workers ? open_ask(workers, call, dump) : NULL;
    if (!ask)
        return;
    limit = up_argument_count(request, "limit", DUMP_DEFAULT);
    ask->query.after = up_argument_count(request, "after", 0);
    ask->query.limit = limit && limit < DUMP_MAX ? (size_t)limit : DUMP_MAX;
    if (!copy_text(ask, request, "below", &ask->query.below) ||
        !copy_text(ask, request, "after_id", &ask->query.after_id)) {
        refuse(ask, DET_ERR_NO_MEMORY, "there is no memory left");
        return;
    }
    if (up_argument_is_set(request, "documents") && !ask->query.after_id)
        ask->query.after_id = "";
    submit(ask);
}
