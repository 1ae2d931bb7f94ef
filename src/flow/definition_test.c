/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* definition_test.c - flows made by a program: det_flow_check() refuses what the reader refuses;
 * the template gives the flow that the reader reads; the fingerprint. */
#include "lib/test.h"

#include <detent/tool/flow_spec.h>

#define FLOW_LOCAL
#define FLOW_SPEC "flow/definition_test.flow"
#include <detent/flow/declare.h>
#define FLOW_LOCAL
#define FLOW_SPEC "flow/definition_test.flow"
#include <detent/flow/define.h>

#include "flow/topology.h"

#define PATH DET_SOURCE_DIR "/src/flow/definition_test.flow"

/* What the functions were called with. */
static struct {
    int calls;
    uint64_t value;
    det_time at;
} seen;

static int take_order(struct det_stage_call *call, const void *value, det_time at)
{
    const struct order *order = value;

    (void)call;
    seen.calls++;
    seen.value = order->cents;
    seen.at = at;
    return 0;
}

static int read_orders(struct det_stage_call *call, struct place *cursor)
{
    cursor->offset++;
    return read_orders_emit(call, (struct order){ .cents = cursor->offset });
}

static void read_orders_acknowledged(struct det_stage_call *call, uint64_t sequence)
{
    (void)call;
    seen.value = sequence;
}

static int check(struct det_stage_call *call, const struct order *in)
{
    return check_emit_at(call, *in, 7);
}

static int check_open(struct det_stage_call *call)
{
    (void)call;
    seen.calls++;
    return 0;
}

static void check_close(struct det_stage_call *call)
{
    (void)call;
    seen.calls++;
}

static int check_drain(struct det_stage_call *call)
{
    (void)call;
    return 3;
}

static int sum(struct det_stage_call *call, struct place *state, const struct order *in)
{
    (void)call;
    state->offset += in->cents;
    return 0;
}

static int sum_result(struct det_stage_call *call, struct place *state)
{
    return sum_emit(call, (struct order){ .cents = state->offset });
}

static int match(struct det_stage_call *call, const struct order *reference, const struct order *in)
{
    return match_emit(call, (struct order){ .cents = in->cents - (reference ? 1 : 0) });
}

static int store(struct det_stage_call *call, struct place *cursor, const struct order *in)
{
    (void)call;
    cursor->offset = in->cents;
    return 0;
}

static int store_begin(struct det_stage_call *call, struct place *cursor)
{
    (void)call;
    cursor->offset = 100;
    return 0;
}

static int store_flush(struct det_stage_call *call, struct place *cursor)
{
    (void)call;
    return (int)cursor->offset;
}

static const struct det_stage_functions *functions_of(const char *name)
{
    unsigned i = 0;

    while (strcmp(shop_flow.stages[i].name, name) != 0)
        i++;
    return shop_flow.stages[i].functions;
}

static void functions_of_a_template_get_typed_arguments(void **state)
{
    static const struct det_stage_calls calls = { .emit = take_order };
    struct det_stage_call call = { .calls = &calls };
    const struct order order = { .cents = 5 };
    struct place place = { .offset = 40 };

    (void)state;
    assert_int_equal(functions_of("read_orders")->next(&call, &place), 0);
    assert_int_equal(seen.value, 41);
    assert_int_equal(seen.at, 0);
    functions_of("read_orders")->acknowledged(&call, 9);
    assert_int_equal(seen.value, 9);
    assert_int_equal(functions_of("check")->process(&call, &order), 0);
    assert_int_equal(seen.value, 5);
    assert_int_equal(seen.at, 7);
    assert_int_equal(functions_of("check")->drain(&call), 3);
    seen.calls = 0;
    assert_int_equal(functions_of("check")->open(&call), 0);
    functions_of("check")->close(&call);
    assert_int_equal(seen.calls, 2);
    assert_int_equal(functions_of("sum")->accumulate(&call, &place, &order), 0);
    assert_int_equal(functions_of("sum")->emit(&call, &place), 0);
    assert_int_equal(seen.value, 46);
    assert_int_equal(functions_of("match")->join(&call, NULL, &order), 0);
    assert_int_equal(seen.value, 5);
    assert_int_equal(functions_of("match")->join(&call, &order, &order), 0);
    assert_int_equal(seen.value, 4);
    assert_int_equal(functions_of("store")->begin(&call, &place), 0);
    assert_int_equal(functions_of("store")->flush(&call, &place), 100);
    assert_int_equal(functions_of("store")->deliver(&call, &place, &order), 0);
    assert_int_equal(place.offset, 5);
    assert_null(functions_of("tariffs"));
}

static void same_text(const char *a, const char *b)
{
    assert_int_equal(a == NULL, b == NULL);
    if (a != NULL)
        assert_string_equal(a, b);
}

static void same_record(struct det_record_ref a, struct det_record_ref b)
{
    const struct det_record *one = det_record_of(a), *other = det_record_of(b);

    assert_int_equal(one == NULL, other == NULL);
    if (one != NULL)
        assert_true(det_topology_is_same_record(one, other));
}

static void same_stage(const struct det_stage *a, const struct det_stage *b)
{
    same_text(a->name, b->name);
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->flags, b->flags);
    same_record(a->in, b->in);
    same_record(a->reference, b->reference);
    same_record(a->out, b->out);
    same_record(a->cursor, b->cursor);
    same_record(a->state, b->state);
    same_text(a->key, b->key);
    same_text(a->reference_key, b->reference_key);
    assert_int_equal(a->join, b->join);
    assert_int_equal(a->emission.kind, b->emission.kind);
    assert_int_equal(a->emission.rows, b->emission.rows);
    assert_int_equal(a->emission.time, b->emission.time);
    assert_int_equal(a->concurrency, b->concurrency);
    assert_int_equal(a->reference_batch, b->reference_batch);
    assert_int_equal(a->window, b->window);
    same_text(a->use, b->use);
    same_text(a->settings, b->settings);
    assert_int_equal(a->with == NULL, b->with == NULL);
    for (size_t i = 0; a->with != NULL && (i == 0 || a->with[i - 1] != NULL); i++)
        same_text(a->with[i], b->with[i]);
}

static void template_and_reader_give_the_same_flow(void **state)
{
    size_t size;
    char *text = det_test_read_file(PATH, &size);
    const struct det_flow *read;
    struct det_flow_spec *spec;
    struct det_error error;

    (void)state;
    assert_int_equal(det_flow_spec_read(PATH, text, size, NULL, &spec), 0);
    read = det_flow_spec_flow(spec);
    assert_non_null(read);
    assert_int_equal(read->stage_count, shop_flow.stage_count);
    assert_int_equal(read->edge_count, shop_flow.edge_count);
    for (unsigned i = 0; i < read->stage_count; i++)
        same_stage(&read->stages[i], &shop_flow.stages[i]);
    for (unsigned i = 0; i < read->edge_count; i++)
        assert_memory_equal(&read->edges[i], &shop_flow.edges[i], sizeof read->edges[i]);
    assert_int_equal(det_flow_check(&shop_flow, &error), 0);
    assert_int_equal(det_flow_fingerprint(read), det_flow_fingerprint(&shop_flow));
    det_flow_spec_close(spec);
    free(text);
}

/* A copy of the flow that a test changes. */
struct copy {
    struct det_flow flow;
    struct det_stage stages[16];
    struct det_edge edges[16];
};

static void copy_flow(struct copy *ret)
{
    ret->flow = shop_flow;
    memcpy(ret->stages, shop_flow.stages, shop_flow.stage_count * sizeof *ret->stages);
    memcpy(ret->edges, shop_flow.edges, shop_flow.edge_count * sizeof *ret->edges);
    ret->flow.stages = ret->stages;
    ret->flow.edges = ret->edges;
}

static void refused(const struct copy *copy, const char *part)
{
    struct det_error error;

    assert_int_equal(det_flow_check(&copy->flow, &error), DET_ERR_DEFINITION);
    if (strstr(error.text, part) == NULL)
        fail_msg("'%s' does not say '%s'", error.text, part);
    assert_int_equal(det_flow_check(&copy->flow, NULL), DET_ERR_DEFINITION);
}

static void broken_definitions_are_refused(void **state)
{
    static const struct det_field fields[] = {
        { .name = "cents", .kind = DET_KIND_UNSIGNED, .size = 4 },
    };
    static const struct det_record other = { "order", 1, 8, fields, 1 };
    static const struct det_record unsound = { "x", 1, 0, NULL, 0 };
    struct copy copy;

#define BREAK(part, ...)      \
    do {                      \
        copy_flow(&copy);     \
        __VA_ARGS__;          \
        refused(&copy, part); \
    } while (0)

    (void)state;
    BREAK("cannot be the name of a flow", copy.flow.name = "Shop");
    BREAK("cannot be the name of a flow", copy.flow.name = NULL);
    BREAK("more than 512 stages", copy.flow.stage_count = DET_FLOW_STAGES_MAX + 1);
    BREAK("more than 512 stages", copy.flow.edge_count = DET_FLOW_EDGES_MAX + 1);
    BREAK("edge 0 is of a stage that does not exist", copy.edges[0].to = 99);
    BREAK("cannot be the name of a stage", copy.stages[1].name = "");
    BREAK("cannot be the name of a stage", copy.stages[1].name = NULL);
    BREAK("two stages of the name read_orders", copy.stages[1].name = "read_orders");
    BREAK("the unknown kind 9", copy.stages[1].kind = (enum det_stage_kind)9);
    BREAK("has no record 'out'", copy.stages[0].out.get = NULL);
    BREAK("stage check: in: ", copy.stages[1].in = (struct det_record_ref){ .record = &unsound });
    BREAK("the window is larger", copy.stages[1].window = DET_PIPELINE_WINDOW_MAX + 1);
    BREAK("the concurrency is more", copy.stages[1].concurrency = DET_PIPELINE_THREADS_MAX + 1);
    BREAK("the rows of EMIT_EVERY are 0", copy.stages[2].emission.rows = 0);
    BREAK(
        "the time of EMIT_WITHIN",
        copy.stages[2].emission = (struct det_emission){ .kind = DET_EMIT_WITHIN });
    BREAK("check is a TRANSFORM and has no key", copy.stages[1].key = "cents");
    BREAK("the key \"cent\": column 1:", copy.stages[2].key = "cent");
    BREAK("a key on one side only", copy.stages[4].key = NULL);
    BREAK("the key is bool, but the key of the reference is int", copy.stages[4].key = "cents > 3");
    BREAK("check makes order, but sum takes order", copy.stages[2].in.get = NULL;
          copy.stages[2].in.record = &other);
    BREAK("leads from check to itself", copy.edges[1].to = copy.edges[1].from);
    BREAK("no edge leads out of", copy.flow.edge_count--);
    BREAK("flow shop: the flow has no SOURCE", copy.flow.stage_count = 0; copy.flow.edge_count = 0);
#undef BREAK
}

static void fingerprint_depends_on_the_graph_but_not_on_its_order(void **state)
{
    uint64_t fingerprint = det_flow_fingerprint(&shop_flow);
    struct copy copy;

    (void)state;
    copy_flow(&copy);
    for (unsigned i = 0; i < copy.flow.stage_count; i++)
        copy.stages[i] = shop_flow.stages[copy.flow.stage_count - 1 - i];
    for (unsigned i = 0; i < copy.flow.edge_count; i++) {
        const struct det_edge *edge = &shop_flow.edges[copy.flow.edge_count - 1 - i];

        copy.edges[i] = (struct det_edge){
            .from = (uint16_t)(copy.flow.stage_count - 1 - edge->from),
            .to = (uint16_t)(copy.flow.stage_count - 1 - edge->to),
            .flags = edge->flags,
        };
    }
    assert_int_equal(det_flow_check(&copy.flow, NULL), 0);
    assert_int_equal(det_flow_fingerprint(&copy.flow), fingerprint);

#define DIFFERS(is_other, ...)                                                       \
    do {                                                                             \
        copy_flow(&copy);                                                            \
        __VA_ARGS__;                                                                 \
        assert_int_equal(det_flow_fingerprint(&copy.flow) != fingerprint, is_other); \
    } while (0)
    DIFFERS(true, copy.stages[1].name = "checks");
    DIFFERS(true, copy.stages[1].kind = DET_STAGE_STATEFUL);
    DIFFERS(true, copy.stages[2].key = "cents + 1");
    DIFFERS(true, copy.stages[1].out.get = place_record);
    DIFFERS(true, copy.edges[1].to = 3);
    DIFFERS(true, copy.edges[1].flags = DET_EDGE_BACK);
    DIFFERS(false, copy.flow.name = "store");
    DIFFERS(false, copy.stages[1].window = 3);
    DIFFERS(false, copy.stages[1].use = "map");
    DIFFERS(false, copy.stages[1].with = NULL);
#undef DIFFERS
}

/* The value is part of the format: runs on disk carry it. */
static void fingerprint_is_the_same_in_every_version(void **state)
{
    (void)state;
    assert_int_equal(det_flow_fingerprint(&shop_flow), UINT64_C(0x325f0e5295367e05));
}

static void permitted_change_of_a_record_keeps_its_hash(void **state)
{
    static const struct det_field old_fields[] = {
        { .name = "text", .kind = DET_KIND_TEXT, .size = 9, .capacity = 8 },
    };
    static const struct det_field new_fields[] = {
        { .name = "text", .kind = DET_KIND_TEXT, .size = 17, .capacity = 16 },
        { .name = "more", .kind = DET_KIND_UNSIGNED, .size = 1, .offset = 17, .since = 2 },
    };
    static const struct det_field renamed[] = {
        { .name = "word", .kind = DET_KIND_TEXT, .size = 9, .capacity = 8 },
    };
    static const struct det_record before = { "note", 1, 9, old_fields, 1 };
    static const struct det_record after = { "note", 2, 18, new_fields, 2 };
    static const struct det_record other = { "note", 1, 9, renamed, 1 };

    (void)state;
    assert_int_equal(
        det_topology_hash_record(&before, false), det_topology_hash_record(&after, false));
    assert_int_not_equal(
        det_topology_hash_record(&before, true), det_topology_hash_record(&after, true));
    assert_int_not_equal(
        det_topology_hash_record(&before, false), det_topology_hash_record(&other, false));
    assert_false(det_topology_is_same_record(&before, &after));
    assert_int_equal(det_topology_hash_record(NULL, true), 0);
}

/* What is reached from what, by the definition. */
static void close_paths(const struct det_flow *flow, bool (*reaches)[16])
{
    memset(reaches, 0, 16 * sizeof *reaches);
    for (unsigned i = 0; i < flow->edge_count; i++)
        reaches[flow->edges[i].from][flow->edges[i].to] = true;
    for (unsigned k = 0; k < flow->stage_count; k++) {
        for (unsigned i = 0; i < flow->stage_count; i++) {
            for (unsigned j = 0; j < flow->stage_count; j++)
                reaches[i][j] |= reaches[i][k] && reaches[k][j];
        }
    }
}

static void components_are_those_of_the_definition(void **state)
{
    static struct det_stage stages[16];
    struct det_edge edges[32];
    struct det_flow flow = { .name = "random", .stages = stages, .edges = edges };
    uint16_t components[16];
    bool reaches[16][16];
    uint64_t seed = 1;

    (void)state;
    for (unsigned round = 0; round < 2000; round++) {
        flow.stage_count = (uint16_t)(1 + det_test_random(&seed) % 16);
        flow.edge_count = (uint16_t)(det_test_random(&seed) % 32);
        for (unsigned i = 0; i < flow.edge_count; i++)
            edges[i] = (struct det_edge){
                .from = (uint16_t)(det_test_random(&seed) % flow.stage_count),
                .to = (uint16_t)(det_test_random(&seed) % flow.stage_count),
            };
        close_paths(&flow, reaches);
        assert_true(det_topology_components(&flow, 0, components) <= flow.stage_count);
        for (unsigned i = 0; i < flow.stage_count; i++) {
            for (unsigned j = 0; j < flow.stage_count; j++)
                assert_int_equal(
                    components[i] == components[j], i == j || (reaches[i][j] && reaches[j][i]));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_of_a_template_get_typed_arguments),
        cmocka_unit_test(template_and_reader_give_the_same_flow),
        cmocka_unit_test(broken_definitions_are_refused),
        cmocka_unit_test(fingerprint_depends_on_the_graph_but_not_on_its_order),
        cmocka_unit_test(fingerprint_is_the_same_in_every_version),
        cmocka_unit_test(permitted_change_of_a_record_keeps_its_hash),
        cmocka_unit_test(components_are_those_of_the_definition),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
