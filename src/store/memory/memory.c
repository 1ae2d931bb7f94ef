/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* memory.c - the store in memory: opening, machines, loading. */
#include <detent/tool/machine.h>

#include "store/contract.h"
#include "store/memory/memory.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/hash.h"
#include "base/memory.h"
#include "os/os.h"
#include "store/store.h"

#define KEPT_DEFAULT 64u
#define KEPT_MAX     65536u

static uint32_t data_size(const struct det_machine *machine)
{
    return det_machine_data(machine)->size;
}

static uint64_t mix_name(uint64_t hash, const char *name)
{
    return det_hash_mix(hash, det_hash64(name, strlen(name), 0));
}

static uint64_t mix_record(uint64_t hash, const struct det_record *record)
{
    hash = det_hash_mix(hash, record->size);
    for (size_t i = 0; i < record->field_count; i++) {
        const struct det_field *field = &record->fields[i];

        hash = mix_name(hash, field->name);
        hash = det_hash_mix(hash, field->kind);
        hash = det_hash_mix(hash, ((uint64_t)field->offset << 32) | field->size);
    }
    return hash;
}

/* Instances are structs, with states, events, effects and timers by number: they fit only a
 * definition with the same names in the same places. */
static uint64_t shape_of(const struct det_machine *machine)
{
    uint64_t hash = det_hash_mix(machine->version, machine->event_size);

    for (unsigned i = 0; i < machine->state_count; i++)
        hash = mix_name(hash, machine->states[i].name);
    hash = det_hash_mix(hash, machine->state_count);
    for (unsigned i = 0; i < machine->event_count; i++) {
        const struct det_record *payload = det_machine_payload(machine, i);

        hash = mix_name(hash, machine->events[i].name);
        hash = det_hash_mix(hash, payload->field_count ? machine->events[i].payload_offset : 0);
        hash = mix_record(hash, payload);
    }
    for (unsigned i = 0; i < machine->effect_count; i++)
        hash = mix_name(hash, machine->effects[i].name);
    hash = det_hash_mix(hash, machine->effect_count);
    for (unsigned i = 0; i < machine->timer_count; i++)
        hash = mix_name(hash, machine->timers[i].name);
    return mix_record(hash, det_machine_data(machine));
}

static void machine_close(struct memory_store *store, struct memory_machine *known)
{
    struct memory_instance *instance;

    for (size_t cursor = 0; (instance = det_map_next(&known->instances, &cursor));)
        det_memory_instance_close(store, instance);
    det_map_deinit(&known->instances);
    det_memory_list_close(store, known);
    if (known->inline_size)
        DET_DELETE_ARRAY(store->store.allocator, known->inline_size, known->event_count);
    det_free_string(store->store.allocator, known->name);
    DET_DELETE(store->store.allocator, known);
}

static struct memory_machine *machine_open(
    struct memory_store *store, const struct det_machine *machine)
{
    struct memory_machine *known = DET_NEW(store->store.allocator, struct memory_machine);

    if (!known)
        return NULL;
    *known = (struct memory_machine){
        .name = det_string_copy(store->store.allocator, machine->name),
        .machine = machine,
        .shape = shape_of(machine),
        .version = machine->version,
        .data_size = data_size(machine),
        .event_size = machine->event_size,
        .event_count = machine->event_count,
        .timer_count = machine->timer_count,
    };
    det_map_init(
        &known->instances, store->store.allocator, store->seed,
        offsetof(struct memory_instance, id));
    if (!known->name || det_memory_rows_measure(store, known) < 0) {
        machine_close(store, known);
        return NULL;
    }
    return known;
}

static void memory_close(struct det_store *store)
{
    struct memory_store *memory = memory_store_of(store);
    struct memory_machine *known;
    struct memory_lease *lease;

    for (size_t cursor = 0; (known = det_map_next(&memory->machines, &cursor));)
        machine_close(memory, known);
    for (size_t cursor = 0; (lease = det_map_next(&memory->leases, &cursor));)
        det_memory_lease_close(memory, lease);
    det_map_deinit(&memory->machines);
    det_map_deinit(&memory->leases);
    det_memory_jobs_deinit(memory);
    det_memory_documents_deinit(memory);
    det_mutex_close(store->world, memory->mutex);
    DET_DELETE(store->allocator, memory);
}

static int serve_locked(
    struct memory_store *store, const struct det_machine *machine, struct det_error *reterr)
{
    struct memory_machine *known = det_map_get(&store->machines, machine->name);
    int r;

    if (known && known->shape != shape_of(machine))
        return det_error_set(
            reterr, DET_ERR_VERSION,
            "%s has instances of version %u in this store, with other names or records; a memory "
            "store cannot convert them",
            machine->name, known->version);
    if (known) {
        known->machine = machine;
        return 0;
    }
    known = machine_open(store, machine);
    if (!known)
        return DET_ERR_NO_MEMORY;
    r = det_map_put(&store->machines, known);
    if (r < 0)
        machine_close(store, known);
    return r;
}

static int memory_serve(
    struct det_store *store, const struct det_machine *machine, struct det_error *reterr)
{
    struct memory_store *memory = memory_store_of(store);
    int r;

    det_mutex_lock(store->world, memory->mutex);
    r = serve_locked(memory, machine, reterr);
    det_mutex_unlock(store->world, memory->mutex);
    return r;
}

static int load_timer(
    const struct memory_timer *timer, uint16_t number, const struct det_store_rows *rows)
{
    if (!timer->is_armed || !rows->timer)
        return 0;
    return rows->timer(
        rows->context,
        &(struct det_store_timer){ .timer = number,
                                   .event = timer->event,
                                   .visit = timer->visit,
                                   .due = timer->due,
                                   .next = timer->is_dead ? timer->due : timer->next,
                                   .is_dead = timer->is_dead,
                                   .attempts = timer->attempts,
                                   .last_error = timer->last_error,
                                   .reason = timer->reason,
                                   .value = timer->has_value ? timer->value : NULL });
}

static int load_rows(const struct memory_instance *instance, const struct det_store_rows *rows)
{
    const struct memory_more *more = instance->more;
    int r;

    r = load_timer(&instance->state_timer, DET_STATE_TIMER, rows);
    if (!more)
        return r;
    for (uint16_t i = 0; r == 0 && more->timers && i < instance->machine->timer_count; i++)
        r = load_timer(&more->timers[i], i, rows);
    if (r == 0 && more->timers)
        r = load_timer(&more->timers[instance->machine->timer_count], DET_DEFERRED_TIMER, rows);
    for (struct det_list *node = more->effects.next;
         r == 0 && rows->effect && node != &more->effects; node = node->next)
        r = rows->effect(rows->context, &DET_CONTAINER(node, struct memory_effect, node)->row);
    for (struct det_list *node = more->deferred.next;
         r == 0 && rows->deferred && node != &more->deferred; node = node->next)
        r = rows->deferred(rows->context, &DET_CONTAINER(node, struct memory_deferred, node)->row);
    return r;
}

struct memory_machine *det_memory_machine_find(
    struct memory_store *store, const struct det_machine *machine)
{
    struct memory_machine *known;

    det_mutex_lock(store->store.world, store->mutex);
    known = det_map_get(&store->machines, machine->name);
    det_mutex_unlock(store->store.world, store->mutex);
    det_assert(known);
    return known;
}

struct memory_instance *det_memory_find(
    struct memory_store *store, const struct det_machine *machine, const char *id)
{
    struct det_world *world = store->store.world;
    struct memory_machine *known;
    struct memory_instance *instance;

    det_mutex_lock(world, store->mutex);
    known = det_map_get(&store->machines, machine->name);
    det_assert(known);
    instance = det_map_get(&known->instances, id);
    det_mutex_unlock(world, store->mutex);
    return instance;
}

static int memory_load(
    struct det_store *store, const struct det_machine *machine, const char *id,
    const struct det_store_rows *rows, struct det_store_loaded *ret)
{
    struct memory_instance *instance = det_memory_find(memory_store_of(store), machine, id);
    uint64_t count;

    det_contract_load(machine, id, ret);
    if (!instance)
        return DET_ERR_NOT_FOUND;
    count = instance->head.transition_count;
    ret->instance = (struct det_store_instance *)(void *)instance;
    ret->head = instance->head;
    ret->history_count = count < DET_HISTORY_MAX ? (size_t)count : DET_HISTORY_MAX;
    for (size_t i = 0; i < ret->history_count; i++)
        ret->history[i] = instance->history[(count - 1 - i) % DET_HISTORY_MAX];
    ret->reason[0] = 0;
    if (instance->more)
        memcpy(ret->reason, instance->more->reason, sizeof ret->reason);
    memcpy(ret->data, instance->data, instance->machine->data_size);
    return load_rows(instance, rows);
}

static void memory_release(struct det_store *store, struct det_store_instance *instance)
{
    (void)store;
    (void)instance;
}

static int memory_answer(
    struct det_store *store, struct det_store_instance *instance, const char *event_id,
    struct det_store_answer *ret)
{
    const struct memory_answer *answer =
        det_memory_answer_find(memory_instance_of(instance), event_id);

    (void)store;
    if (!answer)
        return DET_ERR_NOT_FOUND;
    *ret = answer->answer;
    return 0;
}

det_time det_memory_now(struct det_store *store)
{
    return det_world_now(store->world, DET_CLOCK_WALL);
}

static const struct det_store_ops memory_ops = {
    .is_quick = true,
    .close = memory_close,
    .now = det_memory_now,
    .serve = memory_serve,
    .commit = det_memory_commit,
    .load = memory_load,
    .release = memory_release,
    .answer = memory_answer,
    .events = det_memory_events,
    .list = det_memory_list,
    .due = det_memory_due,
    .lease = det_memory_lease,
    .lock = det_memory_lock,
    .snapshot = det_memory_snapshot,
    .start = det_memory_start,
    .prune = det_memory_prune,
    .check = det_memory_check,
    .machines = det_memory_machines,
    .count = det_memory_count,
    .jobs = &det_memory_jobs,
    .documents = &det_memory_documents,
};

static int check_options(
    const char *rest, const struct det_store_options *options, struct det_error *reterr)
{
    if (rest[0])
        return det_error_set(
            reterr, DET_ERR_INVALID,
            "\"memory:%s\": remove the text after the colon; a memory store has no name", rest);
    if (options->events_kept > KEPT_MAX || options->event_ids_kept > KEPT_MAX)
        return det_error_set(
            reterr, DET_ERR_INVALID,
            "a memory store keeps at most %u events and event ids per instance", KEPT_MAX);
    if (options->is_read_only)
        return det_error_set(
            reterr, DET_ERR_INVALID,
            "a memory store is empty when it is opened; open it for writing");
    if (options->identity && options->identity[0])
        return det_error_set(
            reterr, DET_ERR_FOREIGN,
            "a memory store is new when it is opened; it cannot have the identity %s",
            options->identity);
    return 0;
}

/* Every store has its own identity, which the keys of its effects contain. External services see
 * these keys, so the identity must not reveal the seed of the maps. */
static void make_identity(struct memory_store *memory)
{
    unsigned long long first = det_world_random_u64(memory->store.world);
    unsigned long long second = det_world_random_u64(memory->store.world);

    (void)snprintf(
        memory->store.identity, sizeof memory->store.identity, "%016llx%016llx", first, second);
}

static int memory_open(
    const char *rest, const struct det_store_options *options, struct det_store **ret,
    struct det_error *reterr)
{
    struct memory_store *memory;
    int r;

    r = check_options(rest, options, reterr);
    if (r < 0)
        return r;
    memory = DET_NEW(options->allocator, struct memory_store);
    if (!memory)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory for a store");
    memory->store.ops = &memory_ops;
    memory->store.world = options->world;
    memory->store.allocator = options->allocator;
    memory->seed = det_world_random_u64(options->world);
    make_identity(memory);
    memory->events_kept = options->events_kept ? options->events_kept : KEPT_DEFAULT;
    memory->event_ids_kept = options->event_ids_kept ? options->event_ids_kept : KEPT_DEFAULT;
    det_map_init(
        &memory->machines, options->allocator, memory->seed, offsetof(struct memory_machine, name));
    det_map_init(
        &memory->leases, options->allocator, memory->seed, offsetof(struct memory_lease, name));
    det_memory_jobs_init(memory);
    det_memory_documents_init(memory);
    r = det_mutex_open(options->world, &memory->mutex);
    if (r < 0) {
        DET_DELETE(options->allocator, memory);
        return det_error_set(reterr, r, "no mutex for a store");
    }
    *ret = &memory->store;
    return 0;
}

const struct det_store_driver det_store_driver_memory = {
    .version = DET_STORE_DRIVER_VERSION,
    .scheme = "memory",
    .summary = "this process only, gone when it is closed",
    .open = memory_open,
};
