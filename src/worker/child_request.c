/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* child_request.c - requests for the children of a worker: by its kind, by the YAML of the user, by
 * manual calls. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/reserved.h"
#include "base/text.h"
#include "worker/worker_tree.h"

/* Frees one request; its list of children is empty. */
static void free_one(struct det_workers *workers, struct det_child_request *request)
{
    det_user_spec_deinit(&request->spec);
    det_free_string(workers->allocator, request->states);
    DET_DELETE(workers->allocator, request);
}

void det_child_request_free(struct det_workers *workers, struct det_child_request *request)
{
    det_child_requests_free(workers, &request->children);
    free_one(workers, request);
}

/* Children have lists of their own, so freeing needs no recursion: they are moved to the front of
 * the remaining list. */
void det_child_requests_free(struct det_workers *workers, struct det_list *list)
{
    while (!det_list_is_empty(list)) {
        struct det_child_request *request =
            DET_CONTAINER(list->next, struct det_child_request, node);

        det_list_remove(&request->node);
        while (!det_list_is_empty(&request->children)) {
            struct det_list *child = request->children.next;

            det_list_remove(child);
            det_list_prepend(list, child);
        }
        free_one(workers, request);
    }
}

static struct det_child_request *make(
    struct det_workers *workers, enum det_child_request_origin origin)
{
    struct det_child_request *request = DET_NEW(workers->allocator, struct det_child_request);

    if (!request)
        return NULL;
    det_list_init(&request->node);
    det_list_init(&request->children);
    det_assert(origin <= DET_REQUEST_MANUAL);
    request->origin = origin;
    request->is_changed = true;
    return request;
}

static uint64_t mix(uint64_t hash, uint64_t more)
{
    return (hash ^ more) * 0x9e3779b97f4a7c15U + (hash >> 29);
}

static uint64_t mix_text(uint64_t hash, const char *text)
{
    do
        hash = mix(hash, (unsigned char)*text);
    while (*text++);
    return hash;
}

static void seal(struct det_child_request *request)
{
    bool is_disabled = request->is_disabled || request->is_stateless;

    request->hash = mix(mix(mix(1, request->spec.hash), request->run_in), is_disabled);
    request->hash = mix_text(mix_text(request->hash, request->name), request->kind);
}

uint64_t det_child_requests_hash(const struct det_list *list)
{
    uint64_t hash = 1;

    for (struct det_list *node = list->next; node != list; node = node->next)
        hash = mix(hash, DET_CONTAINER(node, struct det_child_request, node)->hash);
    return hash;
}

int det_child_request_new(
    struct det_workers *workers, const struct det_child_spec *spec,
    enum det_child_request_origin origin, struct det_child_request **ret, struct det_error *reterr)
{
    struct det_child_request *request;
    int r;

    if (!spec->name || !det_name_is_valid(spec->name) || strlen(spec->name) > DET_WORKER_NAME_MAX)
        return det_error_set(
            reterr, DET_ERR_INVALID,
            "the name of a worker has 1 to %d bytes of [A-Za-z0-9._-], found \"%.80s\"",
            DET_WORKER_NAME_MAX, spec->name ? spec->name : "");
    if (!spec->kind || !*spec->kind || strlen(spec->kind) > DET_WORKER_NAME_MAX)
        return det_error_set(
            reterr, DET_ERR_INVALID, "worker %s has no kind, or its name is too long", spec->name);
    r = det_reserved_check(spec->reserved, "a worker", reterr);
    if (r < 0)
        return r;
    request = make(workers, origin);
    if (!request)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory");
    det_text_copy(request->name, sizeof request->name, spec->name);
    det_text_copy(request->kind, sizeof request->kind, spec->kind);
    request->run_in = spec->run_in;
    request->is_disabled = spec->is_disabled;
    r = det_user_spec_init(&request->spec, workers->allocator, spec, reterr);
    /* Specs from a kind come from code, which writes them in the same order each time. */
    if (r == 0 && origin != DET_REQUEST_KIND)
        r = det_user_spec_parse_config(&request->spec);
    if (r < 0) {
        det_child_request_free(workers, request);
        return r;
    }
    seal(request);
    *ret = request;
    return 0;
}

bool det_child_request_can_run(
    const struct det_child_request *request, const struct det_worker_kind *parent,
    struct det_error *reterr)
{
    if (parent->state_count >= 64 || !(request->run_in >> parent->state_count))
        return true;
    det_error_set(
        reterr, DET_ERR_INVALID,
        "worker %s: its run_in has a state that its parent, of the kind %s with %u state%s, lacks",
        request->name, parent->name, parent->state_count, det_plural(parent->state_count));
    return false;
}

int det_child_request_name_states(
    struct det_workers *workers, struct det_child_request *request,
    const struct det_worker_kind *parent)
{
    struct det_buffer names;
    int r;

    if (!request->run_in || request->states)
        return 0;
    det_buffer_init(&names, workers->allocator);
    for (uint16_t i = 0; i < parent->state_count; i++)
        if (request->run_in >> i & 1)
            det_buffer_format(&names, "%s\n", parent->states[i].name);
    r = det_buffer_status(&names);
    request->states = r ? NULL : det_string_copy(workers->allocator, det_buffer_text(&names));
    det_buffer_deinit(&names);
    return request->states ? 0 : DET_ERR_NO_MEMORY;
}

static void report_unknown_state(
    struct det_worker *parent, const struct det_child_request *request, const char *state,
    size_t size)
{
    char name[DET_WORKER_NAME_MAX + 1], text[2 * DET_WORKER_REASON_MAX];

    size = size < sizeof name ? size : sizeof name - 1;
    memcpy(name, state, size);
    name[size] = '\0';
    snprintf(
        text, sizeof text,
        "child %s: its run_in has %s, which is not a state of %.64s; put the child again",
        request->name, name, parent->kind->name);
    det_worker_publish(
        parent, (struct det_worker_event){ .kind = DET_WORKER_EVENT_CHILD_REFUSED,
                                           .code = DET_ERR_NOT_FOUND,
                                           .reason = text });
}

static uint64_t find_state(const struct det_worker_kind *kind, const char *name, size_t size)
{
    for (uint16_t i = 0; i < kind->state_count; i++)
        if (strlen(kind->states[i].name) == size && !memcmp(kind->states[i].name, name, size))
            return DET_IN(i);
    return 0;
}

void det_child_request_find_states(struct det_worker *parent, struct det_child_request *request)
{
    const char *end;

    if (!request->states)
        return;
    request->run_in = 0;
    for (const char *at = request->states; (end = strchr(at, '\n')); at = end + 1) {
        uint64_t state = find_state(parent->kind, at, (size_t)(end - at));

        if (!state)
            report_unknown_state(parent, request, at, (size_t)(end - at));
        request->run_in |= state;
    }
    request->is_stateless = !request->run_in;
    seal(request);
}

/* Resolves state names of the parent; impossible if the parent's kind is unknown. */
static int of_child(
    struct det_workers *workers, struct det_spec_child *child, const struct det_worker_kind *parent,
    struct det_child_request **ret, struct det_error *reterr)
{
    struct det_child_request *request = make(workers, DET_REQUEST_YAML);
    int r = 0;

    if (!request)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory");
    det_text_copy(request->name, sizeof request->name, child->name);
    det_text_copy(request->kind, sizeof request->kind, child->kind);
    request->is_disabled = child->is_disabled;
    if (parent != NULL && child->run_in_count > 0)
        r = det_spec_run_in(child, parent, &request->run_in, reterr);
    if (r < 0) {
        det_child_request_free(workers, request);
        return r;
    }
    request->spec = child->spec;
    memset(&child->spec, 0, sizeof child->spec);
    seal(request);
    *ret = request;
    return 0;
}

int det_child_requests_of_spec(
    struct det_workers *workers, struct det_spec *spec, struct det_list *ret,
    struct det_error *reterr)
{
    struct det_child_request **requests =
        DET_NEW_ARRAY(workers->allocator, spec->count + 1, struct det_child_request *);
    int r = 0;

    if (!requests)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory");
    for (uint32_t i = 0; i < spec->count && r == 0; i++) {
        struct det_spec_child *child = &spec->children[i];
        bool is_top = child->parent == DET_SPEC_ROOT;
        const char *kind = is_top ? det_application()->name : requests[child->parent]->kind;

        det_assert(is_top || child->parent < i);
        r = of_child(workers, child, det_workers_kind(workers, kind), &requests[i], reterr);
        if (r == 0)
            det_list_append(is_top ? ret : &requests[child->parent]->children, &requests[i]->node);
    }
    DET_DELETE_ARRAY(workers->allocator, requests, spec->count + 1);
    if (r < 0)
        det_child_requests_free(workers, ret);
    return r;
}

/* Problems of an unchanged request are not reported again. */
static void keep_refused(struct det_list *old, struct det_list *requests)
{
    for (struct det_list *node = old->next; node != old; node = node->next) {
        const struct det_child_request *before =
            DET_CONTAINER(node, struct det_child_request, node);

        if (!before->is_refused)
            continue;
        for (struct det_list *other = requests->next; other != requests; other = other->next) {
            struct det_child_request *request =
                DET_CONTAINER(other, struct det_child_request, node);

            request->is_refused = request->is_refused || request->hash == before->hash;
        }
    }
}

void det_child_requests_take(
    struct det_worker *worker, enum det_child_request_origin origin, struct det_list *requests)
{
    struct det_list old, *place = &worker->requests.all;

    det_list_init(&old);
    for (struct det_list *node = worker->requests.all.next, *next; node != &worker->requests.all;
         node = next) {
        struct det_child_request *request = DET_CONTAINER(node, struct det_child_request, node);

        next = node->next;
        if (request->origin == origin) {
            det_child_requests_remove(worker, request);
            det_list_append(&old, node);
        }
    }
    keep_refused(&old, requests);
    /* In the order of origins, so that ticks are in the order of the specs. */
    for (struct det_list *node = worker->requests.all.next; node != &worker->requests.all;
         node = node->next)
        if (DET_CONTAINER(node, struct det_child_request, node)->origin > origin) {
            place = node;
            break;
        }
    while (!det_list_is_empty(requests)) {
        struct det_child_request *request =
            DET_CONTAINER(requests->next, struct det_child_request, node);

        det_list_remove(&request->node);
        det_child_requests_insert(worker, place, request);
    }
    det_child_requests_free(worker->workers, &old);
    worker->attention |= DET_CHECK_REQUESTS;
}
