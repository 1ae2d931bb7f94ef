/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* child_request.c - who wants which workers below one: its kind, the YAML of the user, calls by
 * hand. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "worker/tree.h"

/* Without its children. */
static void free_one(struct det_workers *workers, struct det_wish *wish)
{
    det_user_spec_deinit(&wish->spec);
    det_free_string(workers->allocator, wish->states);
    DET_DELETE(workers->allocator, wish);
}

void det_wish_free(struct det_workers *workers, struct det_wish *wish)
{
    det_wishes_free(workers, &wish->children);
    free_one(workers, wish);
}

/* Children stand in lists of their own, so that freeing needs no recursion: they are put in front
 * of what is left. */
void det_wishes_free(struct det_workers *workers, struct det_list *list)
{
    while (!det_list_is_empty(list)) {
        struct det_wish *wish = DET_CONTAINER(list->next, struct det_wish, node);

        det_list_remove(&wish->node);
        while (!det_list_is_empty(&wish->children)) {
            struct det_list *child = wish->children.next;

            det_list_remove(child);
            det_list_prepend(list, child);
        }
        free_one(workers, wish);
    }
}

static struct det_wish *make(struct det_workers *workers, enum det_wish_origin origin)
{
    struct det_wish *wish = DET_NEW(workers->allocator, struct det_wish);

    if (!wish)
        return NULL;
    det_list_init(&wish->node);
    det_list_init(&wish->children);
    wish->origin = origin;
    wish->is_changed = true;
    return wish;
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

static void seal(struct det_wish *wish)
{
    bool is_disabled = wish->is_disabled || wish->is_stateless;

    wish->hash = mix(mix(mix(1, wish->spec.hash), wish->run_in), is_disabled);
    wish->hash = mix_text(mix_text(wish->hash, wish->name), wish->kind);
}

uint64_t det_wishes_hash(const struct det_list *list)
{
    uint64_t hash = 1;

    for (struct det_list *node = list->next; node != list; node = node->next)
        hash = mix(hash, DET_CONTAINER(node, struct det_wish, node)->hash);
    return hash;
}

int det_wish_new(
    struct det_workers *workers, const struct det_child_spec *spec, enum det_wish_origin origin,
    struct det_wish **ret, struct det_error *reterr)
{
    struct det_wish *wish;
    int r;

    if (!spec->name || !det_name_is_valid(spec->name) || strlen(spec->name) > DET_WORKER_NAME_MAX)
        return det_error_set(
            reterr, DET_ERR_INVALID,
            "the name of a worker is 1 to %d bytes of [A-Za-z0-9._-], not \"%.80s\"",
            DET_WORKER_NAME_MAX, spec->name ? spec->name : "");
    if (!spec->kind || !*spec->kind || strlen(spec->kind) > DET_WORKER_NAME_MAX)
        return det_error_set(
            reterr, DET_ERR_INVALID, "worker %s has no kind, or its name is too long", spec->name);
    wish = make(workers, origin);
    if (!wish)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "there is no memory left");
    det_text_copy(wish->name, sizeof wish->name, spec->name);
    det_text_copy(wish->kind, sizeof wish->kind, spec->kind);
    wish->run_in = spec->run_in;
    wish->is_disabled = spec->is_disabled;
    r = det_user_spec_init(&wish->spec, workers->allocator, spec, reterr);
    /* What a kind says comes from code, which writes it in the same order each time. */
    if (r == 0 && origin != DET_WISH_KIND)
        r = det_user_spec_parse_config(&wish->spec);
    if (r < 0) {
        det_wish_free(workers, wish);
        return r;
    }
    seal(wish);
    *ret = wish;
    return 0;
}

bool det_wish_can_run(
    const struct det_wish *wish, const struct det_worker_kind *parent, struct det_error *reterr)
{
    if (parent->state_count >= 64 || !(wish->run_in >> parent->state_count))
        return true;
    det_error_set(
        reterr, DET_ERR_INVALID,
        "worker %s is to run in a state that its parent, of the kind %s with %u state%s, has not",
        wish->name, parent->name, parent->state_count, det_plural(parent->state_count));
    return false;
}

int det_wish_name_states(
    struct det_workers *workers, struct det_wish *wish, const struct det_worker_kind *parent)
{
    struct det_buffer names;
    int r;

    if (!wish->run_in || wish->states)
        return 0;
    det_buffer_init(&names, workers->allocator);
    for (uint16_t i = 0; i < parent->state_count; i++)
        if (wish->run_in >> i & 1)
            det_buffer_format(&names, "%s\n", parent->states[i].name);
    r = det_buffer_status(&names);
    wish->states = r ? NULL : det_string_copy(workers->allocator, det_buffer_text(&names));
    det_buffer_deinit(&names);
    return wish->states ? 0 : DET_ERR_NO_MEMORY;
}

static void tell_unknown_state(
    struct det_worker *parent, const struct det_wish *wish, const char *state, size_t size)
{
    char name[DET_WORKER_NAME_MAX + 1], text[2 * DET_WORKER_REASON_MAX];

    size = size < sizeof name ? size : sizeof name - 1;
    memcpy(name, state, size);
    name[size] = '\0';
    snprintf(
        text, sizeof text, "child %s is to run in %s, which is no state of a %.64s: put it anew",
        wish->name, name, parent->kind->name);
    det_tell(
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

void det_wish_find_states(struct det_worker *parent, struct det_wish *wish)
{
    const char *end;

    if (!wish->states)
        return;
    wish->run_in = 0;
    for (const char *at = wish->states; (end = strchr(at, '\n')); at = end + 1) {
        uint64_t state = find_state(parent->kind, at, (size_t)(end - at));

        if (!state)
            tell_unknown_state(parent, wish, at, (size_t)(end - at));
        wish->run_in |= state;
    }
    wish->is_stateless = !wish->run_in;
    seal(wish);
}

/* States of the parent by name; where the parent's kind is not known, nothing can be said. */
static int of_child(
    struct det_workers *workers, struct det_spec_child *child, const struct det_worker_kind *parent,
    struct det_wish **ret, struct det_error *reterr)
{
    struct det_wish *wish = make(workers, DET_WISH_YAML);
    int r = 0;

    if (!wish)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "there is no memory left");
    det_text_copy(wish->name, sizeof wish->name, child->name);
    det_text_copy(wish->kind, sizeof wish->kind, child->kind);
    wish->is_disabled = child->is_disabled;
    if (parent != NULL && child->run_in_count > 0)
        r = det_spec_run_in(child, parent, &wish->run_in, reterr);
    if (r < 0) {
        det_wish_free(workers, wish);
        return r;
    }
    wish->spec = child->spec;
    memset(&child->spec, 0, sizeof child->spec);
    seal(wish);
    *ret = wish;
    return 0;
}

int det_wishes_of_spec(
    struct det_workers *workers, struct det_spec *spec, struct det_list *ret,
    struct det_error *reterr)
{
    struct det_wish **wishes =
        DET_NEW_ARRAY(workers->allocator, spec->count + 1, struct det_wish *);
    int r = 0;

    if (!wishes)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "there is no memory left");
    for (uint32_t i = 0; i < spec->count && r == 0; i++) {
        struct det_spec_child *child = &spec->children[i];
        bool is_top = child->parent == DET_SPEC_ROOT;
        const char *kind = is_top ? det_application()->name : wishes[child->parent]->kind;

        r = of_child(workers, child, det_workers_kind(workers, kind), &wishes[i], reterr);
        if (r == 0)
            det_list_append(is_top ? ret : &wishes[child->parent]->children, &wishes[i]->node);
    }
    DET_DELETE_ARRAY(workers->allocator, wishes, spec->count + 1);
    if (r < 0)
        det_wishes_free(workers, ret);
    return r;
}

/* What was told about a wish that has not changed is not told again. */
static void keep_refused(struct det_list *old, struct det_list *wishes)
{
    for (struct det_list *node = old->next; node != old; node = node->next) {
        const struct det_wish *before = DET_CONTAINER(node, struct det_wish, node);

        if (!before->is_refused)
            continue;
        for (struct det_list *other = wishes->next; other != wishes; other = other->next) {
            struct det_wish *wish = DET_CONTAINER(other, struct det_wish, node);

            wish->is_refused = wish->is_refused || wish->hash == before->hash;
        }
    }
}

void det_wishes_take(
    struct det_worker *worker, enum det_wish_origin origin, struct det_list *wishes)
{
    struct det_list old, *place = &worker->wishes.all;

    det_list_init(&old);
    for (struct det_list *node = worker->wishes.all.next, *next; node != &worker->wishes.all;
         node = next) {
        struct det_wish *wish = DET_CONTAINER(node, struct det_wish, node);

        next = node->next;
        if (wish->origin == origin) {
            det_wishes_remove(worker, wish);
            det_list_append(&old, node);
        }
    }
    keep_refused(&old, wishes);
    /* In the order of origins, so that the ticks are in the order of the specs. */
    for (struct det_list *node = worker->wishes.all.next; node != &worker->wishes.all;
         node = node->next)
        if (DET_CONTAINER(node, struct det_wish, node)->origin > origin) {
            place = node;
            break;
        }
    while (!det_list_is_empty(wishes)) {
        struct det_wish *wish = DET_CONTAINER(wishes->next, struct det_wish, node);

        det_list_remove(&wish->node);
        det_wishes_insert(worker, place, wish);
    }
    det_wishes_free(worker->workers, &old);
    worker->attention |= DET_LOOK_WISHES;
}
