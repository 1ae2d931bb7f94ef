/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* recorder_office_cases.h - for suites of the recorder: a store that only counts, and waits and
 * fails on request; and an office, which submits and checks the results. */
#ifndef DET_WORKER_RECORDER_OFFICE_CASES_H
#define DET_WORKER_RECORDER_OFFICE_CASES_H

#include <detent/driver/store.h>

#include "os/common_cases.h"
#include "worker/recorder.h"

#define CALLS_MAX 4096
#define IDS_MAX   64

/* A document is {number}: a plain number, the kind is "k", the id is one letter and a number below
 * IDS_MAX. An id that begins with "i" is invalid, one with "c" is in conflict. */
struct fake_store {
    struct det_store store; /* first */
    struct gate gate;       /* a call waits until it is open */
    struct gate called;     /* how many calls there were */
    int fail;               /* what the next calls answer; 0: well */
    int fails_left;
    bool is_silent; /* it fails without words */
    size_t calls, saves_of[CALLS_MAX], bytes_of[CALLS_MAX];
    uint64_t latest, last_of[IDS_MAX];
    unsigned out_of_order;
    const void *saved_on;
};

static inline int fake_validate(const struct det_document_save *save, struct det_error *reterr)
{
    if (save->id[0] == 'i')
        return det_error_set(reterr, DET_ERR_INVALID, "%s is invalid; make it valid", save->id);
    if (save->id[0] == 'c')
        return det_error_set(reterr, DET_ERR_CONFLICT, "%s was changed; read it", save->id);
    return 0;
}

static inline int fake_fail(struct fake_store *fake, struct det_error *reterr)
{
    fake->fails_left--;
    if (!fake->is_silent)
        return det_error_set(reterr, fake->fail, "the disk is on fire; buy another one");
    return fake->fail;
}

static inline void fake_apply(
    struct fake_store *fake, const struct det_document_save *save, struct det_document_saved *ret)
{
    uint64_t number = strtoull(save->text, NULL, 10);
    uint64_t *last = &fake->last_of[strtoull(save->id + 1, NULL, 10) % IDS_MAX];

    fake->out_of_order += number < *last;
    *last = number;
    *ret = (struct det_document_saved){ .is_changed = true,
                                        .sync = ++fake->latest,
                                        .version = number };
}

static inline int fake_save(
    struct det_store *store, const struct det_document_save *saves, size_t count,
    struct det_document_saved *ret, struct det_error *reterr)
{
    struct fake_store *fake = (struct fake_store *)store;
    size_t bytes = 0;
    int r = 0;

    gate_add(&fake->called, 1);
    gate_wait(&fake->gate, 1);
    fake->saved_on = det_thread_self(store->world);
    for (size_t i = 0; i < count; i++)
        bytes += saves[i].size;
    if (fake->calls < CALLS_MAX) {
        fake->saves_of[fake->calls] = count;
        fake->bytes_of[fake->calls] = bytes;
    }
    fake->calls++;
    if (fake->fails_left > 0)
        return fake_fail(fake, reterr);
    for (size_t i = 0; i < count && r == 0; i++)
        r = fake_validate(&saves[i], reterr);
    for (size_t i = 0; i < count && r == 0; i++)
        fake_apply(fake, &saves[i], &ret[i]);
    return r;
}

static inline int fake_list(
    struct det_store *store, const struct det_document_query *query,
    int (*visit)(void *context, const struct det_document *document), void *context,
    struct det_document_position *ret)
{
    struct fake_store *fake = (struct fake_store *)store;

    if (ret)
        *ret = (struct det_document_position){ .latest = fake->latest };
    return visit(
        context, &(struct det_document){ .kind = query->kind, .id = "a0", .sync = fake->latest });
}

static inline void fake_init(struct fake_store *fake, struct det_world *world)
{
    static const struct det_document_ops documents = { .save = fake_save, .list = fake_list };
    static const struct det_store_ops ops = { .documents = &documents };

    *fake = (struct fake_store){ .store = { .ops = &ops, .world = world } };
    gate_init(&fake->gate, world);
    gate_init(&fake->called, world);
    gate_add(&fake->gate, 1);
}

static inline void fake_deinit(struct fake_store *fake)
{
    gate_deinit(&fake->called);
    gate_deinit(&fake->gate);
}

/* A recorder over such a store, with a loop that the test turns, and its results. */
struct office {
    struct det_world *world;
    struct det_loop *loop;
    struct det_recorder *recorder;
    struct fake_store fake;
    uint64_t submitted, reported;
    unsigned wrong; /* results out of order, or wrong ones */
    unsigned invalid, conflicts, failed;
    char text[DET_ERROR_TEXT_MAX]; /* of the last failure */
};

/* The callback of one recording; the argument is its number. */
struct sheet {
    struct office *office;
    uint64_t number;
    char kind;
};

static inline void office_init(struct office *office, struct det_world *world, bool is_inline)
{
    *office = (struct office){ .world = world };
    fake_init(&office->fake, world);
    assert_int_equal(0, det_loop_open(world, NULL, &office->loop));
    assert_int_equal(
        0, det_recorder_open(
               world, NULL, &office->fake.store, office->loop, is_inline, &office->recorder));
}

static inline void office_deinit(struct office *office)
{
    det_recorder_close(office->recorder);
    det_loop_close(office->loop);
    fake_deinit(&office->fake);
    assert_int_equal(office->submitted, office->reported);
    assert_int_equal(0, office->wrong);
    assert_int_equal(0, office->fake.out_of_order);
}

static inline void office_hold(struct office *office)
{
    gate_add(&office->fake.gate, -1);
}

static inline void office_go_on(struct office *office)
{
    gate_add(&office->fake.gate, 1);
}

static inline bool is_as_it_should(const struct sheet *sheet, const struct det_recorded *recorded)
{
    if (recorded->code < 0)
        return !recorded->saved && recorded->error && recorded->error->code == recorded->code &&
               recorded->error->text[0];
    return sheet->kind == 'a' && !recorded->error && recorded->saved[0].version == sheet->number;
}

static inline void office_reported(void *argument, const struct det_recorded *recorded)
{
    struct sheet *sheet = argument;
    struct office *office = sheet->office;

    office->wrong += sheet->number != ++office->reported || !is_as_it_should(sheet, recorded);
    if (recorded->code == DET_ERR_INVALID)
        office->invalid++;
    else if (recorded->code == DET_ERR_CONFLICT)
        office->conflicts++;
    else if (recorded->code < 0)
        office->failed++;
    if (recorded->code < 0)
        memcpy(office->text, recorded->error->text, sizeof office->text);
    free(sheet);
}

/* `count` saves of documents of this kind, each of `size` bytes at least, all in memory that is
 * gone when this returns. */
static inline int office_write(struct office *office, char kind, size_t count, size_t size)
{
    struct det_document_save saves[4];
    struct sheet *sheet = malloc(sizeof *sheet);
    char *text = calloc(1, size + 32), id[32];
    int length, r;

    assert_true(sheet && text && count <= 4);
    *sheet = (struct sheet){ office, office->submitted + 1, kind };
    memset(text, ' ', size + 31);
    length = snprintf(text, 32, "%llu", (unsigned long long)sheet->number);
    text[length] = ' ';
    (void)snprintf(id, sizeof id, "%c%u", kind, (unsigned)(sheet->number % IDS_MAX));
    for (size_t i = 0; i < count; i++)
        saves[i] = (struct det_document_save){
            .kind = "k", .id = id, .text = text, .size = size ? size : (size_t)length
        };
    r = det_recorder_submit(
        office->recorder,
        &(struct det_recording){
            .saves = saves, .count = count, .done = office_reported, .argument = sheet });
    if (r == 0)
        office->submitted++;
    else
        free(sheet);
    memset(text, 'x', size + 32);
    free(text);
    return r;
}

static inline void write_many(struct office *office, char kind, int count)
{
    for (int i = 0; i < count; i++)
        assert_int_equal(0, office_write(office, kind, 1, 0));
}

static inline void turn_until_reported(struct office *office)
{
    while (office->reported < office->submitted)
        assert_true(det_loop_turn(office->loop, DET_NEVER) > 0);
}

#endif
