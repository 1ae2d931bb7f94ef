/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* check.c - verifies the invariants of a memory store. A finding is a bug of the program, since
 * there is no disk to damage the store. */
#include <string.h>

#include "os/os.h"
#include "store/memory/memory.h"

struct findings {
    int (*visit)(void *context, const struct det_store_finding *row);
    void *context;
    struct memory_instance *instance;
};

static int note_finding(
    struct findings *findings, bool is_right, uint64_t sequence, const char *text)
{
    if (is_right)
        return 0;
    return findings->visit(
        findings->context, &(struct det_store_finding){ findings->instance->machine->name,
                                                        findings->instance->id, sequence, text });
}

static int check_head(struct findings *findings)
{
    const struct memory_instance *instance = findings->instance;
    const struct det_store_head *head = &instance->head;
    uint32_t listed = head->state | (uint32_t)head->is_stopped << 16;
    int r;

    r = note_finding(
        findings, head->state < instance->machine->machine->state_count, 0,
        "its state is not in the definition");
    if (r == 0)
        r = note_finding(
            findings,
            instance->listed == listed && instance->listed_sequence == head->sequence &&
                instance->listed_moved_at == head->last_transition_at,
            0, "lists show another state than its own");
    if (r == 0)
        r = note_finding(
            findings, instance->row_count <= head->sequence, 0, "more events than its sequence");
    return r;
}

struct walk {
    struct findings *findings;
    bool has_state;
    uint16_t state;
    uint64_t visit, sequence;
};

static int check_event(void *context, const struct det_store_event *row)
{
    struct walk *walk = context;
    bool is_next = !walk->has_state || (row->from == walk->state && row->visit >= walk->visit);

    walk->has_state = true;
    walk->state = row->to;
    walk->visit = row->visit;
    walk->sequence = row->sequence;
    return note_finding(
        walk->findings, is_next, row->sequence,
        "an event does not start in the state of the previous one");
}

static int check_events(struct det_store *store, struct findings *findings)
{
    struct memory_instance *instance = findings->instance;
    struct walk walk = { .findings = findings };
    int r;

    r = det_memory_events(
        store, (struct det_store_instance *)(void *)instance, 0, check_event, &walk);
    if (r != 0 || !walk.has_state)
        return r;
    return note_finding(
        findings, walk.state == instance->head.state && walk.visit == instance->head.visit,
        walk.sequence, "the last event does not lead to its state");
}

static int check_more(struct findings *findings)
{
    const struct memory_more *more = findings->instance->more;
    uint64_t last = findings->instance->head.sequence, effect = 0, deferred = 0;
    bool is_right = true;

    DET_LIST_EACH(node, &more->effects)
    {
        uint64_t sequence = DET_CONTAINER(node, struct memory_effect, node)->row.sequence;

        is_right = is_right && sequence >= effect && sequence <= last;
        effect = sequence;
    }
    DET_LIST_EACH(node, &more->deferred)
    {
        uint64_t sequence = DET_CONTAINER(node, struct memory_deferred, node)->row.sequence;

        is_right = is_right && sequence > deferred && sequence <= last;
        deferred = sequence;
    }
    if (more->snapshot)
        is_right = is_right && more->snapshot->head.sequence <= last;
    return note_finding(
        findings, is_right, 0, "effects, deferred events or a snapshot without an event");
}

static int check_instance(struct det_store *store, struct findings *findings)
{
    int r;

    r = check_head(findings);
    if (r == 0)
        r = check_events(store, findings);
    if (r == 0 && findings->instance->more)
        r = check_more(findings);
    return r;
}

static uint64_t count_all(const struct memory_store *store)
{
    const struct memory_machine *machine;
    uint64_t total = 0;

    for (size_t cursor = 0; (machine = det_map_next(&store->machines, &cursor));)
        total += machine->instances.count;
    return total;
}

int det_memory_check(
    struct det_store *store, int (*visit)(void *context, const struct det_store_finding *row),
    void (*progress)(void *context, uint64_t done, uint64_t total), void *context)
{
    struct memory_store *memory = memory_store_of(store);
    struct findings findings = { visit, context, NULL };
    uint64_t done = 0, total = count_all(memory);
    const struct memory_machine *machine;
    int r = 0;

    for (size_t cursor = 0; r == 0 && (machine = det_map_next(&memory->machines, &cursor));) {
        for (findings.instance = machine->newest; r == 0 && findings.instance;
             findings.instance = findings.instance->older) {
            r = check_instance(store, &findings);
            if (progress)
                progress(context, ++done, total);
        }
    }
    return r;
}

int det_memory_machines(
    struct det_store *store,
    int (*visit)(void *context, const char *name, uint32_t version, const char *spec),
    void *context)
{
    const struct memory_machine *machine;
    int r = 0;

    for (size_t cursor = 0;
         r == 0 && (machine = det_map_next(&memory_store_of(store)->machines, &cursor));)
        r = visit(context, machine->name, machine->version, NULL);
    return r;
}
