/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* trace_cases.c - the trace context of a sender: stored with events, and with effects until they
 * have ended. */
#include <detent/tool/store.h>

#include "conform/conform.h"

#define MANY 20

static struct det_trace_context trace_of(unsigned number)
{
    struct det_trace_context trace = { .flags = (uint8_t)number };

    memset(trace.trace_id, (int)number, sizeof trace.trace_id);
    memset(trace.span_id, (int)number + 1, sizeof trace.span_id);
    return trace;
}

static void assert_trace(const struct det_trace_context *trace, unsigned number)
{
    struct det_trace_context expected = trace_of(number);

    assert_non_null(trace);
    assert_memory_equal(trace, &expected, sizeof expected);
}

/* The event with the sequence n has the trace n, those above 9 none. */
static int check_event(void *context, const struct det_store_event *row)
{
    unsigned *count = context;

    ++*count;
    if (row->sequence < 10)
        assert_trace(row->trace, (unsigned)row->sequence);
    else
        assert_null(row->trace);
    return 0;
}

static int check_logged(void *context, const struct det_store_logged *row)
{
    unsigned *count = context;

    ++*count;
    if (!row->is_start && row->sequence < 10)
        assert_trace(row->trace, (unsigned)row->sequence);
    else
        assert_null(row->trace);
    return 0;
}

static void events_have_the_traces_of_their_senders(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    unsigned count = 0;
    uint64_t next;

    for (unsigned i = 1; i < 12; i++) {
        struct det_trace_context trace = trace_of(i);
        struct draft draft;

        draft_init(&draft, subject);
        draft_event(&draft, PARCEL_COUNT, DET_OUTCOME_STAY, PARCEL_CREATED)->trace =
            i < 10 ? &trace : NULL;
        assert_int_equal(draft_commit(&draft), 0);
    }
    if (!box->driver->is_kept || box->driver->is_stand_in)
        return;
    box_reopen(box);
    subject->store = box->store;
    subject_load(subject);
    assert_int_equal(
        box->store->ops->events(box->store, subject->instance, 0, check_event, &count), 0);
    assert_int_equal(count, 11);
    if (!box->store->ops->log)
        return;
    assert_int_equal(det_store_log(box->store, NULL, check_logged, &count, &next), 0);
    assert_int_equal(count, 23);
}

static int check_first(void *context, const struct det_store_logged *row)
{
    unsigned *count = context;

    if (!row->is_start)
        assert_trace(row->trace, (unsigned)strtoul(row->id + 1, NULL, 10));
    *count += !row->is_start;
    return 0;
}

static void each_commit_of_one_call_has_its_own_trace(void **state)
{
    struct box *box = *state;
    struct det_trace_context traces[MANY];
    struct draft drafts[MANY], *pointers[MANY];
    unsigned count = 0;
    uint64_t next;

    for (unsigned i = 0; i < MANY; i++) {
        char id[8];

        snprintf(id, sizeof id, "p%u", i);
        traces[i] = trace_of(i);
        draft_init(&drafts[i], subject_start(box, id));
        draft_event(&drafts[i], PARCEL_COUNT, DET_OUTCOME_STAY, PARCEL_CREATED)->trace = &traces[i];
        pointers[i] = &drafts[i];
    }
    draft_commit_all(pointers, MANY);
    if (!box->store->ops->log)
        return;
    assert_int_equal(det_store_log(box->store, NULL, check_first, &count, &next), 0);
    assert_int_equal(count, MANY);
}

struct seen {
    unsigned count;
    bool is_dead;
};

/* The effect with the index n has the trace n; 0 has none. */
static int check_effect(void *context, const struct det_store_effect *row)
{
    const struct seen *wanted = context;
    struct seen *seen = context;

    assert_int_equal(row->is_dead, wanted->is_dead);
    if (row->index)
        assert_trace(row->trace, row->index);
    else
        assert_null(row->trace);
    seen->count++;
    return 0;
}

static void assert_effects(struct box *box, bool is_dead)
{
    struct seen seen = { .is_dead = is_dead };
    const struct det_store_rows rows = { .context = &seen, .effect = check_effect };
    struct parcel_data data;
    struct det_store_loaded loaded = { .data = &data };

    assert_int_equal(box->store->ops->load(box->store, box->machine, "p", &rows, &loaded), 0);
    box->store->ops->release(box->store, loaded.instance);
    assert_int_equal(seen.count, 3);
}

static void update_all(struct subject *subject, bool is_dead)
{
    struct draft draft;

    draft_init(&draft, subject);
    for (uint16_t i = 0; i < 3; i++)
        draft_effect(&draft, DET_STORE_UPDATE, 1, i)->is_dead = is_dead;
    assert_int_equal(draft_commit(&draft), 0);
}

static void effects_keep_their_trace_dead_or_alive(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct det_trace_context traces[3];
    struct draft draft;

    for (int dead = 0; dead < 2; dead++) {
        draft_init(&draft, subject);
        draft_event(&draft, PARCEL_COUNT, DET_OUTCOME_STAY, PARCEL_CREATED);
        for (uint16_t i = 0; i < 3; i++) {
            struct det_store_effect *effect = draft_effect(&draft, DET_STORE_SET, 1, i);

            traces[i] = trace_of(i);
            effect->trace = i ? &traces[i] : NULL;
            effect->is_dead = dead;
        }
        assert_int_equal(draft_commit(&draft), 0);
        memset(traces, 0, sizeof traces);
        subject_load(subject);
        assert_effects(box, dead);
        subject_load(subject);
        update_all(subject, false);
        assert_effects(box, false);
        subject_load(subject);
        update_all(subject, true);
        assert_effects(box, true);
        box_reopen(box);
        subject->store = box->store;
        assert_effects(box, true);
        subject_load(subject);
    }
}

static const struct CMUnitTest traces[] = {
    CASE(events_have_the_traces_of_their_senders),
    CASE(each_commit_of_one_call_has_its_own_trace),
    CASE(effects_keep_their_trace_dead_or_alive),
};
const struct group trace_cases = GROUP_OF(traces);
