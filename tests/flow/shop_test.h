/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* shop_test.h - a flow with one of everything: a fan-out to a stateful stage, a transform with any
 * number of outputs and an asynchronous one, a join with a finite reference, buffered and
 * asynchronous sinks. Every chain of it is deterministic, so two logs of it are equal whatever
 * happened in between.
 *
 *     numbers --> sum (by key, every 3) ------------> keep_sums
 *        +------> copy (0, 1 or 2 of each) ---------> keep_copies (buffered, on the pool)
 *        +------> slow (on the pool, 3 at a time) --> named (join) --> keep_named
 *     names --------------------------------reference--^ */
#ifndef DET_TESTS_FLOW_SHOP_TEST_H
#define DET_TESTS_FLOW_SHOP_TEST_H

#include "base/hash.h"
#include "flow/flow_test.h"

enum { NUMBERS, NAMES, SUM, COPY, SLOW, NAMED, KEEP_SUMS, KEEP_COPIES, KEEP_NAMED, SHOP_STAGES };
#define SHOP_EDGES     8
#define SHOP_ROWS      90
#define SHOP_NAMES     4
#define SHOP_POSITIONS 16384

struct shop {
    struct det_stage stages[SHOP_STAGES];
    struct det_edge edges[SHOP_EDGES];
    struct det_flow flow;
    struct det_sim *sim; /* NULL: the real world */
    struct det_pipeline *pipeline;
    uint64_t rows;
    uint32_t trouble; /* millionths: chance of a power cut in each function */
    bool has_cut;
    uint64_t seed, run;
    FILE *output; /* of the sinks; NULL: `delivered` */
    /* By position: what a sink got first; 0: nothing. */
    uint64_t delivered[SHOP_POSITIONS];
    uint64_t deliveries, unflushed, flushed;
};

/* A power cut can come at any call of any function. */
static inline void shop_trouble(struct det_stage_call *call)
{
    struct shop *shop = call->user;

    if (!shop->sim || shop->trouble == 0 || shop->has_cut)
        return;
    if (!det_sim_chance(shop->sim, shop->trouble))
        return;
    shop->has_cut = true;
    det_sim_power_cut(shop->sim);
}

static inline int shop_next_number(struct det_stage_call *call, void *cursor)
{
    const struct shop *shop = call->user;
    struct place *place = cursor;
    struct number number;
    int r;

    shop_trouble(call);
    if (place->next == shop->rows)
        return DET_SOURCE_DONE;
    for (int i = 0; i < 4 && place->next < shop->rows; i++) {
        number = (struct number){ .value = ++place->next, .key = (uint32_t)(place->next % 5) };
        r = det_stage_emit(call, &number);
        if (r < 0)
            return r;
    }
    return DET_SOURCE_MORE;
}

static inline int shop_next_name(struct det_stage_call *call, void *cursor)
{
    struct place *place = cursor;
    struct name name;

    shop_trouble(call);
    if (place->next == SHOP_NAMES)
        return DET_SOURCE_DONE;
    name = (struct name){ .key = (uint32_t)place->next++ };
    snprintf(name.text, sizeof name.text, "name %u", (unsigned)name.key);
    return det_stage_emit(call, &name) < 0 ? DET_ERR_IO : DET_SOURCE_MORE;
}

static inline int shop_add(struct det_stage_call *call, void *state, const void *in)
{
    const struct number *number = in;
    struct total *total = state;

    shop_trouble(call);
    if (number->value % 17 == 0)
        return det_stage_reject(call, DET_REJECT_DOMAIN, "17 divides it");
    total->key = number->key;
    total->count++;
    total->sum += number->value;
    return 0;
}

static inline int shop_emit(struct det_stage_call *call, void *state)
{
    shop_trouble(call);
    return det_stage_emit(call, state);
}

static inline int shop_copy(struct det_stage_call *call, const void *in)
{
    const struct number *number = in;
    int r = 0;

    shop_trouble(call);
    for (uint64_t i = 0; i < number->value % 3 && r == 0; i++)
        r = det_stage_emit(call, number);
    if (number->value % 13 == 0)
        return det_stage_reject(call, DET_REJECT_TIMEOUT, "13 divides it");
    return r;
}

static inline int shop_slow(struct det_stage_call *call, const void *in)
{
    shop_trouble(call);
    (void)det_stage_wait(call, det_world_now(call->world, DET_CLOCK_MONOTONIC) + 1000);
    return det_stage_emit(call, in);
}

static inline int shop_join(struct det_stage_call *call, const void *reference, const void *in)
{
    const struct number *number = in;
    struct name name = { .key = (uint32_t)number->value };

    shop_trouble(call);
    if (reference)
        name = *(const struct name *)reference;
    name.key = (uint32_t)number->value;
    return det_stage_emit(call, &name);
}

/* The value of a position never changes, and it is acknowledged before it is seen. */
static inline void shop_note(struct det_stage_call *call, uint64_t value)
{
    struct shop *shop = call->user;
    uint64_t position = call->row.position, *first;

    if (shop->output) {
        fprintf(
            shop->output, "%llu %s %llu %llu\n", (unsigned long long)call->run, call->stage->name,
            (unsigned long long)position, (unsigned long long)value);
        return;
    }
    first = &shop->delivered[position];
    assert_true(position > 0 && position < SHOP_POSITIONS);
    if (position > det_journal_acknowledged(det_pipeline_journal(shop->pipeline)))
        fail_msg("position %llu was delivered early", (unsigned long long)position);
    if (*first != 0 && *first != value)
        fail_msg(
            "seed %llu: position %llu of %s is %llu, but %llu was delivered",
            (unsigned long long)shop->seed, (unsigned long long)position, call->stage->name,
            (unsigned long long)value, (unsigned long long)*first);
    *first = value;
    shop->deliveries++;
}

static inline int shop_keep_total(struct det_stage_call *call, void *cursor, const void *in)
{
    const struct total *total = in;

    (void)cursor;
    shop_trouble(call);
    shop_note(call, total->sum);
    return 0;
}

static inline int shop_keep_number(struct det_stage_call *call, void *cursor, const void *in)
{
    const struct number *number = in;

    (void)cursor;
    shop_trouble(call);
    shop_note(call, number->value);
    return 0;
}

static inline int shop_flush(struct det_stage_call *call, void *cursor)
{
    (void)cursor;
    shop_trouble(call);
    return 0;
}

static inline int shop_keep_name(struct det_stage_call *call, void *cursor, const void *in)
{
    const struct name *name = in;

    shop_trouble(call);
    ((struct place *)cursor)->next++;
    shop_note(call, name->key);
    return 0;
}

static const struct det_stage_functions shop_functions[SHOP_STAGES] = {
    [NUMBERS] = { .next = shop_next_number },
    [NAMES] = { .next = shop_next_name },
    [SUM] = { .accumulate = shop_add, .emit = shop_emit },
    [COPY] = { .process = shop_copy },
    [SLOW] = { .process = shop_slow },
    [NAMED] = { .join = shop_join },
    [KEEP_SUMS] = { .deliver = shop_keep_total },
    [KEEP_COPIES] = { .deliver = shop_keep_number, .flush = shop_flush },
    [KEEP_NAMED] = { .deliver = shop_keep_name },
};

static const struct det_edge shop_edges[SHOP_EDGES] = {
    { NUMBERS, SUM, 0 },
    { NUMBERS, COPY, 0 },
    { NUMBERS, SLOW, 0 },
    { SLOW, NAMED, 0 },
    { NAMES, NAMED, DET_EDGE_REFERENCE },
    { SUM, KEEP_SUMS, 0 },
    { COPY, KEEP_COPIES, 0 },
    { NAMED, KEEP_NAMED, 0 },
};

static inline void shop_init(struct shop *shop, struct det_sim *sim)
{
    static const struct det_stage stages[SHOP_STAGES] = {
        [NUMBERS] = { .name = "numbers",
                      .kind = DET_STAGE_SOURCE,
                      .out = { .get = number_record },
                      .cursor = { .get = place_record } },
        [NAMES] = { .name = "names",
                    .kind = DET_STAGE_SOURCE,
                    .out = { .get = name_record },
                    .cursor = { .get = place_record } },
        [SUM] = { .name = "sum",
                  .kind = DET_STAGE_STATEFUL,
                  .in = { .get = number_record },
                  .out = { .get = total_record },
                  .state = { .get = total_record },
                  .key = "key",
                  .emission = { DET_EMIT_EVERY, .rows = 3 } },
        [COPY] = { .name = "copy",
                   .kind = DET_STAGE_TRANSFORM,
                   .in = { .get = number_record },
                   .out = { .get = number_record } },
        [SLOW] = { .name = "slow",
                   .kind = DET_STAGE_TRANSFORM,
                   .flags = DET_STAGE_ASYNC,
                   .in = { .get = number_record },
                   .out = { .get = number_record },
                   .concurrency = 3 },
        [NAMED] = { .name = "named",
                    .kind = DET_STAGE_JOIN,
                    .in = { .get = number_record },
                    .reference = { .get = name_record },
                    .out = { .get = name_record },
                    .key = "key",
                    .reference_key = "key",
                    .join = DET_JOIN_LEFT },
        [KEEP_SUMS] = { .name = "keep_sums",
                        .kind = DET_STAGE_SINK,
                        .in = { .get = total_record } },
        [KEEP_COPIES] = { .name = "keep_copies",
                          .kind = DET_STAGE_SINK,
                          .flags = DET_STAGE_ASYNC | DET_STAGE_BUFFERED,
                          .in = { .get = number_record } },
        [KEEP_NAMED] = { .name = "keep_named",
                         .kind = DET_STAGE_SINK,
                         .in = { .get = name_record },
                         .cursor = { .get = place_record } },
    };
    *shop = (struct shop){ .sim = sim, .rows = SHOP_ROWS };
    memcpy(shop->stages, stages, sizeof stages);
    memcpy(shop->edges, shop_edges, sizeof shop_edges);
    for (int i = 0; i < SHOP_STAGES; i++)
        shop->stages[i].functions = &shop_functions[i];
    shop->flow = (struct det_flow){
        .name = "shop",
        .stages = shop->stages,
        .edges = shop->edges,
        .stage_count = SHOP_STAGES,
        .edge_count = SHOP_EDGES,
    };
}

/* A hash of the rows of each stage: kinds and bytes, in the order of their stream, without
 * positions. What the sinks hold of a row is what the log has. */
struct shop_log {
    uint64_t rows[2 * SHOP_STAGES], hashes[2 * SHOP_STAGES];
};

static inline void shop_read_stream(
    const struct shop *shop, struct det_journal *journal, const char *name, uint64_t *rows,
    uint64_t *hash)
{
    struct det_journal_reader_options options = { .one_stream = true, .unacknowledged = true };
    DET_SCOPED(journal_reader) reader = NULL;
    struct det_journal_row row;

    (void)shop;
    *rows = *hash = 0;
    assert_int_equal(det_journal_stream(journal, name, &options.stream, NULL), 0);
    assert_int_equal(det_journal_reader_open(journal, &options, &reader, NULL), 0);
    while (det_journal_reader_next(reader, &row, NULL) > 0) {
        if (row.kind > 3)
            continue;
        if (row.kind == 2 && *(const uint8_t *)row.data == DET_END_TRUNCATED)
            continue;
        ++*rows;
        *hash = det_hash_mix(*hash, row.kind);
        *hash = det_hash_mix(*hash, det_hash64(row.data, row.size, 0));
    }
}

static inline struct shop_log shop_read(const struct shop *shop, struct det_journal *journal)
{
    struct shop_log log = { 0 };
    char name[64];

    for (int i = 0; i < SHOP_STAGES; i++) {
        shop_read_stream(shop, journal, shop->stages[i].name, &log.rows[i], &log.hashes[i]);
        snprintf(name, sizeof name, "%s.errors", shop->stages[i].name);
        shop_read_stream(
            shop, journal, name, &log.rows[SHOP_STAGES + i], &log.hashes[SHOP_STAGES + i]);
    }
    return log;
}

/* For a failing test: where everything is. */
static inline void shop_print(const struct shop *shop)
{
    struct det_stage_status stages[SHOP_STAGES];
    struct det_edge_status edges[SHOP_EDGES];
    size_t stage_count = SHOP_STAGES, edge_count = SHOP_EDGES;

    (void)det_pipeline_status(shop->pipeline, stages, &stage_count, edges, &edge_count);
    print_error("%s\n", det_pipeline_state_name(det_pipeline_state(shop->pipeline)));
    for (size_t i = 0; i < stage_count; i++)
        print_error(
            "%s: %s %s, in %llu, out %llu\n", stages[i].name, stages[i].state, stages[i].reason,
            (unsigned long long)stages[i].rows_in, (unsigned long long)stages[i].rows_out);
    for (size_t i = 0; i < edge_count; i++)
        print_error(
            "%s to %s: %llu of %llu\n", stages[edges[i].from].name, stages[edges[i].to].name,
            (unsigned long long)edges[i].read, (unsigned long long)edges[i].written);
}

#endif
