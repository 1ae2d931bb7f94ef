/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* stored_instance.c - reads an instance from a store. */
#include <detent/tool/machine.h>

#include "inspect/stored_instance.h"

#include <string.h>

#include "base/assert.h"

/* Ends of the lists, to which load appends rows. */
struct loading {
    struct instance *instance;
    struct instance_timer **timer;
    struct instance_effect **effect;
    struct instance_deferred **deferred;
};

/* A copy of a struct; NULL stays NULL. False: no memory. */
static bool copy_value(struct instance *instance, const void **value, size_t size)
{
    void *copy;

    if (!*value)
        return true;
    copy = det_arena_alloc(&instance->arena, size);
    if (!copy)
        return false;
    memcpy(copy, *value, size);
    *value = copy;
    return true;
}

static int take_timer(void *context, const struct det_store_timer *row)
{
    struct loading *loading = context;
    struct instance *instance = loading->instance;
    struct instance_timer *timer = det_arena_alloc(&instance->arena, sizeof *timer);

    if (!timer)
        return DET_ERR_NO_MEMORY;
    timer->row = *row;
    if (row->reason) {
        timer->row.reason = det_arena_copy(&instance->arena, row->reason);
        if (!timer->row.reason)
            return DET_ERR_NO_MEMORY;
    }
    if (!copy_value(instance, &timer->row.value, instance->machine->event_size))
        return DET_ERR_NO_MEMORY;
    *loading->timer = timer;
    loading->timer = &timer->next;
    return 0;
}

static int take_effect(void *context, const struct det_store_effect *row)
{
    struct loading *loading = context;
    struct instance *instance = loading->instance;
    struct instance_effect *effect = det_arena_alloc(&instance->arena, sizeof *effect);
    const void *trace = row->trace;

    if (!effect)
        return DET_ERR_NO_MEMORY;
    effect->row = *row;
    if (row->reason) {
        effect->row.reason = det_arena_copy(&instance->arena, row->reason);
        if (!effect->row.reason)
            return DET_ERR_NO_MEMORY;
    }
    if (!copy_value(instance, &effect->row.data, det_machine_data(instance->machine)->size) ||
        !copy_value(instance, &effect->row.event, instance->machine->event_size) ||
        !copy_value(instance, &trace, sizeof *row->trace))
        return DET_ERR_NO_MEMORY;
    effect->row.trace = trace;
    *loading->effect = effect;
    loading->effect = &effect->next;
    return 0;
}

static int take_deferred(void *context, const struct det_store_deferred *row)
{
    struct loading *loading = context;
    struct instance *instance = loading->instance;
    struct instance_deferred *deferred = det_arena_alloc(&instance->arena, sizeof *deferred);

    if (!deferred)
        return DET_ERR_NO_MEMORY;
    deferred->row = *row;
    if (!copy_value(instance, &deferred->row.event, instance->machine->event_size))
        return DET_ERR_NO_MEMORY;
    *loading->deferred = deferred;
    loading->deferred = &deferred->next;
    return 0;
}

/* After an error nothing is allocated. */
static int load_instance(struct instance *instance)
{
    struct cli_store *store = instance->store;
    struct loading loading = { instance, &instance->timers, &instance->effects,
                               &instance->deferred };
    const struct det_store_rows rows = { &loading, take_timer, take_effect, take_deferred };
    int r = DET_ERR_NO_MEMORY;

    det_arena_init(&instance->arena, store->cli->allocator);
    instance->loaded.data =
        det_arena_alloc(&instance->arena, det_machine_data(instance->machine)->size);
    if (instance->loaded.data)
        r = store->ops->load(
            store->store, instance->machine, instance->id, &rows, &instance->loaded);
    if (r < 0) {
        det_arena_deinit(&instance->arena);
        return r;
    }
    det_assert(instance->loaded.head.state < instance->machine->state_count);
    instance->now = store->ops->now(store->store);
    return 0;
}

int instance_report_damaged(struct cli_store *store, const char *machine, const char *id)
{
    store->error = DET_ERR_CORRUPT;
    cli_report_error(
        store->cli,
        "%s '%s' is damaged; 'detent store verify' shows details%s%s%s; others are not affected",
        machine, id, store->ops->repair ? ", and 'detent store repair " : "",
        store->ops->repair ? id : "", store->ops->repair ? "' may restore it" : "");
    return CLI_FAILURE;
}

int instance_report_error(struct cli_store *store, const char *machine, const char *id, int r)
{
    det_assert(r < 0);
    store->error = r;
    if (r == DET_ERR_NOT_FOUND)
        cli_report_error(store->cli, "there is no %s '%s' in %s", machine, id, store->url);
    else if (r == DET_ERR_CORRUPT)
        return instance_report_damaged(store, machine, id);
    else if (r == DET_ERR_VERSION)
        cli_report_error(
            store->cli,
            "%s '%s' has names that this definition does not know; 'detent diff' shows "
            "what changed",
            machine, id);
    else
        return cli_report_store_error(store, r, NULL);
    return cli_exit_of(r);
}

int instance_load(
    struct cli_store *store, const struct det_machine *machine, const char *id,
    struct instance *ret)
{
    *ret = (struct instance){ .store = store, .machine = machine, .id = id };
    return load_instance(ret);
}

int instance_open(
    struct cli_store *store, const struct det_machine *machine, const char *id,
    struct instance *ret)
{
    int r = instance_load(store, machine, id, ret);

    return r < 0 ? instance_report_error(store, machine->name, id, r) : CLI_OK;
}

int instance_find(struct cli_store *store, const char *id, struct instance *ret)
{
    struct det_machine *machine;
    int code = cli_store_find(store, id, &machine);

    return code == CLI_OK ? instance_open(store, machine, id, ret) : code;
}

int instance_refresh(struct instance *instance)
{
    struct instance fresh = { .store = instance->store,
                              .machine = instance->machine,
                              .id = instance->id };
    int r;

    r = load_instance(&fresh);
    if (r < 0)
        return r;
    instance_close(instance);
    *instance = fresh;
    return 0;
}

void instance_close(struct instance *instance)
{
    struct cli_store *store = instance->store;

    store->ops->release(store->store, instance->loaded.instance);
    det_arena_deinit(&instance->arena);
}

const char *instance_state(const struct instance *instance)
{
    return instance->machine->states[instance->loaded.head.state].name;
}

bool instance_is_final(const struct instance *instance)
{
    return instance->machine->states[instance->loaded.head.state].flags & DET_STATE_FINAL;
}

size_t instance_timer_count(const struct instance *instance, bool is_dead)
{
    size_t count = 0;

    for (const struct instance_timer *t = instance->timers; t; t = t->next)
        count += t->row.is_dead == is_dead;
    return count;
}

size_t instance_effect_count(const struct instance *instance, bool is_dead)
{
    size_t count = 0;

    for (const struct instance_effect *e = instance->effects; e; e = e->next)
        count += e->row.is_dead == is_dead;
    return count;
}
