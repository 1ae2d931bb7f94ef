/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* served.c - the machines of a runtime. A machine is served from its first use: the store gets its
 * definition, and pending work of its instances continues. */
#include <detent/tool/machine.h>
#include <string.h>

#include "base/assert.h"
#include "base/hash.h"
#include "base/memory.h"
#include "runtime/node.h"
#include "runtime/quick.h"
#include "runtime/turn.h"

#define ALIGNMENT ((size_t)16)

static size_t aligned(size_t size)
{
    return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static size_t bucket_of(const struct det_machine *machine)
{
    return (size_t)(det_hash_mix(0, (uint64_t)(uintptr_t)machine) % DET_SERVED_BUCKETS);
}

uint64_t det_served_hash(const struct det_runtime *runtime, const char *id)
{
    return det_hash64(id, strlen(id), runtime->seed);
}

static bool has_within(const struct det_transition *transition)
{
    return transition->more && transition->more->within;
}

static bool has_own_timers(const struct det_machine *machine)
{
    size_t cells = (size_t)machine->state_count * machine->event_count;

    for (size_t i = 0; i < machine->state_count; i++) {
        if (machine->states[i].timeout.after)
            return true;
    }
    for (size_t i = 0; i < cells; i++) {
        if (has_within(&machine->table[i]))
            return true;
    }
    for (size_t i = 0; i < machine->choice_count; i++) {
        if (has_within(&machine->choices[i].transition))
            return true;
    }
    return false;
}

/* Lays out the parts of a resident after the struct: hot ones first. */
static void lay_out(const struct det_runtime *runtime, struct det_served *served)
{
    size_t at = aligned(sizeof(struct det_resident));

    served->history_offset = at;
    at += aligned(runtime->options.history_kept * sizeof(uint16_t));
    if (has_own_timers(served->machine)) {
        served->own_offset = at;
        at += aligned(sizeof(struct det_armed));
    }
    served->data_offset = at;
    served->id_offset = at + aligned(served->data_size);
}

/* A record of numbers only is always valid: NULL skips its check. */
static const struct det_record *unless_harmless(const struct det_record *record)
{
    for (size_t i = 0; i < record->field_count; i++) {
        const struct det_field *field = &record->fields[i];

        if (field->flags & (DET_FIELD_OPTIONAL | DET_FIELD_ARRAY))
            return record;
        if (field->kind != DET_KIND_UNSIGNED && field->kind != DET_KIND_SIGNED &&
            field->kind != DET_KIND_TIME)
            return record;
    }
    return NULL;
}

static size_t cells_of(const struct det_machine *machine)
{
    return (size_t)machine->state_count * machine->event_count;
}

static void served_close(struct det_runtime *runtime, struct det_served *served)
{
    struct det_resident *resident;

    for (uint32_t i = 0; served->residents && i <= runtime->shard_mask; i++) {
        for (size_t cursor = 0; (resident = det_index_next(&served->residents[i], &cursor));)
            det_resident_close(runtime, resident);
        det_index_deinit(&served->residents[i]);
    }
    det_recover_deinit(served);
    if (served->residents)
        DET_DELETE_ARRAY(runtime->allocator, served->residents, runtime->shard_mask + 1);
    if (served->payloads)
        DET_DELETE_ARRAY(runtime->allocator, served->payloads, served->machine->event_count);
    if (served->send_paths)
        DET_DELETE_ARRAY(runtime->allocator, served->send_paths, cells_of(served->machine));
    if (served->running)
        DET_DELETE_ARRAY(runtime->allocator, served->running, served->machine->effect_count);
    DET_DELETE(runtime->allocator, served);
}

/* With alternatives only the guard decides the path: that needs a turn. */
static void find_transitions(struct det_served *served)
{
    const struct det_machine *machine = served->machine;

    for (size_t i = 0; i < cells_of(machine); i++) {
        unsigned state = (unsigned)(i / machine->event_count);

        served->send_paths[i] = (uint8_t)det_quick_path(machine, state, &machine->table[i]);
    }
    for (size_t i = 0; i < machine->choice_count; i++) {
        const struct det_choice *choice = &machine->choices[i];

        served->send_paths[(size_t)choice->state * machine->event_count + choice->event] =
            DET_SEND_PATH_TURN;
    }
}

static struct det_served *served_open(
    struct det_runtime *runtime, const struct det_machine *machine)
{
    struct det_served *served = DET_NEW(runtime->allocator, struct det_served);

    if (!served)
        return NULL;
    served->runtime = runtime;
    served->machine = machine;
    served->data = unless_harmless(det_machine_data(machine));
    served->data_size = det_machine_data(machine)->size;
    lay_out(runtime, served);
    served->payloads =
        DET_NEW_ARRAY(runtime->allocator, machine->event_count, const struct det_record *);
    served->residents =
        DET_NEW_ARRAY(runtime->allocator, runtime->shard_mask + 1, struct det_index);
    served->send_paths = DET_NEW_ARRAY(runtime->allocator, cells_of(machine), uint8_t);
    if (machine->effect_count)
        served->running = DET_NEW_ARRAY(runtime->allocator, machine->effect_count, atomic_uint);
    if (!served->payloads || !served->residents || !served->send_paths ||
        (machine->effect_count && !served->running)) {
        served_close(runtime, served);
        return NULL;
    }
    for (unsigned i = 0; i < machine->event_count; i++)
        served->payloads[i] = unless_harmless(det_machine_payload(machine, i));
    find_transitions(served);
    for (uint32_t i = 0; i <= runtime->shard_mask; i++)
        det_index_init(&served->residents[i], runtime->allocator);
    return served;
}

static struct det_served *find_served(
    struct det_runtime *runtime, const struct det_machine *machine)
{
    struct det_served *served =
        atomic_load_explicit(&runtime->served[bucket_of(machine)], memory_order_acquire);

    while (served && served->machine != machine)
        served = served->next;
    return served;
}

static bool is_name_taken(struct det_runtime *runtime, const char *name)
{
    for (size_t i = 0; i < DET_SERVED_BUCKETS; i++) {
        for (const struct det_served *s = atomic_load(&runtime->served[i]); s; s = s->next) {
            if (strcmp(s->machine->name, name) == 0)
                return true;
        }
    }
    return false;
}

static int add(
    struct det_runtime *runtime, const struct det_machine *machine, struct det_error *reterr,
    struct det_served **ret)
{
    size_t bucket = bucket_of(machine);
    struct det_served *served;
    int r;

    if (is_name_taken(runtime, machine->name))
        return det_error_set(
            reterr, DET_ERR_INVALID,
            "another definition of %s is in use; a runtime serves one definition per name",
            machine->name);
    r = runtime->ops->serve(runtime->store, machine, reterr);
    if (r < 0)
        return r;
    served = served_open(runtime, machine);
    if (!served)
        return DET_ERR_NO_MEMORY;
    r = det_node_serve(runtime, machine);
    if (r < 0) {
        served_close(runtime, served);
        return r;
    }
    atomic_init(&served->store_next, DET_NEVER);
    served->next = atomic_load(&runtime->served[bucket]);
    atomic_store_explicit(&runtime->served[bucket], served, memory_order_release);
    *ret = served;
    return 0;
}

/* Pending work of its instances continues from now. */
static int resume(struct det_runtime *runtime, struct det_served *served)
{
    if (runtime->options.is_passive)
        return 0;
    if (runtime->ops->is_quick)
        return det_recover_all(served);
    det_recover_at(served, det_runtime_now(runtime));
    return 0;
}

static int get_slowly(
    struct det_runtime *runtime, const struct det_machine *machine, struct det_error *reterr,
    struct det_served **ret)
{
    struct det_served *served;
    int r = 0;

    det_mutex_lock(runtime->world, runtime->mutex);
    served = find_served(runtime, machine);
    if (!served)
        r = add(runtime, machine, reterr, &served);
    det_assert(r < 0 || served);
    if (r == 0 && !atomic_load(&served->is_ready)) {
        r = resume(runtime, served);
        atomic_store(&served->is_ready, r == 0);
    }
    det_mutex_unlock(runtime->world, runtime->mutex);
    if (r == 0)
        *ret = served;
    return r;
}

int det_served_get(
    struct det_runtime *runtime, const struct det_machine *machine, struct det_error *reterr,
    struct det_served **ret)
{
    struct det_served *served = find_served(runtime, machine);

    if (!served || !atomic_load_explicit(&served->is_ready, memory_order_acquire))
        return get_slowly(runtime, machine, reterr, ret);
    *ret = served;
    return 0;
}

void det_served_list_again(struct det_runtime *runtime, const struct det_machine *machine)
{
    struct det_served *served = find_served(runtime, machine);

    /* A machine that is just being served lists its work anyway. */
    if (served)
        det_recover_at(served, det_runtime_now(runtime));
}

void det_served_close_all(struct det_runtime *runtime)
{
    for (size_t i = 0; i < DET_SERVED_BUCKETS; i++) {
        struct det_served *served = atomic_load(&runtime->served[i]), *next;

        for (; served; served = next) {
            next = served->next;
            served_close(runtime, served);
        }
    }
}
