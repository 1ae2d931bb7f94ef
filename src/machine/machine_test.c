/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* machine_test.c - queries on a machine that was not made by a builder. */
#include <detent/machine.h>
#include <detent/tool/machine.h>

#include "lib/test.h"

struct count {
    uint32_t value;
    uint32_t sum;
};

struct event {
    unsigned kind;
    struct count count;
};

static void add(void *data, const void *event)
{
    struct count *count = data;

    count->sum += count->value + ((const struct event *)event)->count.value;
}

static const struct det_record count_record = { .name = "count",
                                                .version = 1,
                                                .size = sizeof(struct count) };

static const struct det_record *get_count_record(void)
{
    return &count_record;
}

static const struct det_update_def adding = { "add", add }, unbound = { "unbound", NULL };
static const struct det_keep keep_value = { "value", offsetof(struct event, count.value),
                                            offsetof(struct count, value), sizeof(uint32_t),
                                            false };
static const struct det_timeout within = { .after = DET_SECOND };
static const struct det_transition_more keeping = { .keeps = &keep_value,
                                                    .keep_count = 1,
                                                    .update = &adding };
static const struct det_transition_more keeping_unbound = { .keeps = &keep_value,
                                                            .keep_count = 1,
                                                            .update = &unbound };
static const struct det_transition_more hurrying = { .within = &within };
static const struct det_transition table[] = {
    { DET_OUTCOME_GOTO, 1, 1, &keeping },
    { DET_OUTCOME_GOTO, 1, 2, &hurrying },
    { DET_OUTCOME_STAY, 1, 3, &keeping_unbound },
    { DET_OUTCOME_GOTO, 0, 4, NULL },
};
static const struct det_state_def states[] = {
    { .name = "idle", .flags = DET_STATE_INITIAL },
    { .name = "busy", .timeout = { .after = DET_MINUTE } },
};
static const struct det_event_def events[] = {
    { .name = "add",
      .payload_offset = offsetof(struct event, count),
      .payload = { .get = get_count_record } },
    { .name = "rest" },
};
static const struct det_effect_def effects[] = { { .name = "print" }, { .name = "mail" } };
static const struct det_timer_def timers[] = { { .name = "bell" } };
static const struct det_machine machine = { .name = "adder",
                                            .version = 1,
                                            .state_count = 2,
                                            .event_count = 2,
                                            .effect_count = 2,
                                            .timer_count = 1,
                                            .event_size = sizeof(struct event),
                                            .table = table,
                                            .states = states,
                                            .events = events,
                                            .effects = effects,
                                            .timers = timers };

static void step_is_a_table_lookup(void **context)
{
    (void)context;
    assert_ptr_equal(det_machine_step(&machine, 0, 0), &table[0]);
    assert_ptr_equal(det_machine_step(&machine, 1, 1), &table[3]);
    assert_int_equal(det_event_kind(&(struct event){ .kind = 1 }), 1);
}

static void keep_runs_before_the_update(void **context)
{
    struct count data = { .value = 1, .sum = 100 };
    struct event event = { 0, { .value = 5 } };

    (void)context;
    assert_int_equal(det_machine_apply(&machine, &table[0], &data, &event, NULL), 0);
    assert_int_equal(data.value, 5);
    assert_int_equal(data.sum, 110);
}

static void a_transition_with_nothing_more_changes_no_data(void **context)
{
    struct count data = { 1, 2 };
    struct event event = { 1, { 7, 7 } };

    (void)context;
    assert_int_equal(det_machine_apply(&machine, &table[3], &data, &event, NULL), 0);
    assert_int_equal(det_machine_apply(&machine, &table[1], &data, &event, NULL), 0);
    assert_int_equal(data.value, 1);
    assert_int_equal(data.sum, 2);
}

static void an_update_that_is_only_a_name_fails_and_keeps_nothing(void **context)
{
    struct count data = { 1, 2 };
    struct event event = { 0, { 7, 7 } };
    struct det_error error;

    (void)context;
    assert_int_equal(
        det_machine_apply(&machine, &table[2], &data, &event, &error), DET_ERR_UNBOUND);
    assert_int_equal(error.code, DET_ERR_UNBOUND);
    assert_non_null(strstr(error.text, "the update unbound of adder"));
    assert_int_equal(data.value, 1);
    assert_int_equal(det_machine_apply(&machine, &table[2], &data, &event, NULL), DET_ERR_UNBOUND);
}

/* The fields of a parcel have other offsets in the stock, like their presence and count. */
struct parcel {
    bool has_weight;
    uint64_t weight;
    uint32_t lines_count;
    uint16_t lines[2];
    uint8_t floor;
};

struct stock {
    uint8_t floor;
    uint16_t lines[2];
    uint32_t lines_count;
    uint64_t weight;
    bool has_weight;
};

#define PARCEL_FIELDS(type)                                                  \
    {                                                                        \
        { .name = "weight",                                                  \
          .flags = DET_FIELD_OPTIONAL,                                       \
          .offset = offsetof(type, weight),                                  \
          .size = 8,                                                         \
          .presence = offsetof(type, has_weight) },                          \
            { .name = "lines",                                               \
              .flags = DET_FIELD_ARRAY,                                      \
              .offset = offsetof(type, lines),                               \
              .size = 2,                                                     \
              .count_max = 2,                                                \
              .presence = offsetof(type, lines_count) },                     \
            { .name = "floor", .offset = offsetof(type, floor), .size = 1 }, \
    }
#define BARE(member)                                                                  \
    {                                                                                 \
#member, offsetof(struct parcel, member) + 8, offsetof(struct stock, member), \
            sizeof(((struct stock *)0)->member), true                                 \
    }

static void bare_keep_copies_the_presence_or_count_of_a_field(void **context)
{
    const struct det_field parcel_fields[] = PARCEL_FIELDS(struct parcel);
    const struct det_field stock_fields[] = PARCEL_FIELDS(struct stock);
    const struct det_record parcel = { "parcel", 1, sizeof(struct parcel), parcel_fields, 3 };
    const struct det_record stock = { "stock", 1, sizeof(struct stock), stock_fields, 3 };
    const struct det_event_def event = { .payload_offset = 8, .payload = { .record = &parcel } };
    const struct det_keep keeps[] = { BARE(weight), BARE(lines), BARE(floor) };
    const struct det_transition_more more = { .keeps = keeps, .keep_count = 3 };
    const struct det_transition transition = { .outcome = DET_OUTCOME_STAY, .more = &more };
    const struct det_machine store = {
        .state_count = 1, .event_count = 1, .events = &event, .data = { .record = &stock }
    };
    struct {
        unsigned kind;
        _Alignas(8) struct parcel parcel;
    } sent = { 0, { true, 7, 2, { 3, 4 }, 9 } };
    struct stock data = { 0 };

    (void)context;
    assert_int_equal(det_machine_apply(&store, &transition, &data, &sent, NULL), 0);
    assert_true(data.has_weight);
    assert_int_equal(data.weight, 7);
    assert_int_equal(data.lines_count, 2);
    assert_int_equal(data.lines[1], 4);
    assert_int_equal(data.floor, 9);
    sent.parcel.has_weight = false;
    assert_int_equal(det_machine_apply(&store, &transition, &data, &sent, NULL), 0);
    assert_false(data.has_weight);
}

static void names_on_disk_are_found(void **context)
{
    (void)context;
    assert_int_equal(det_machine_find_state(&machine, "idle"), 0);
    assert_int_equal(det_machine_find_state(&machine, "busy"), 1);
    assert_int_equal(det_machine_find_state(&machine, "BUSY"), -1);
    assert_int_equal(det_machine_find_event(&machine, "rest"), 1);
    assert_int_equal(det_machine_find_event(&machine, "busy"), -1);
    assert_int_equal(det_machine_find_effect(&machine, "mail"), 1);
    assert_int_equal(det_machine_find_effect(&machine, ""), -1);
    assert_int_equal(det_machine_find_timer(&machine, "bell"), 0);
    assert_int_equal(det_machine_find_timer(&machine, "bel"), -1);
}

static void a_group_has_its_members_only(void **context)
{
    static const uint16_t members[] = { 4, 2 };
    const struct det_group_def group = { "even", members, 2 }, empty = { "none", NULL, 0 };

    (void)context;
    assert_true(det_machine_group_has(&group, 2));
    assert_true(det_machine_group_has(&group, 4));
    assert_false(det_machine_group_has(&group, 3));
    assert_false(det_machine_group_has(&empty, 0));
}

static void event_without_payload_has_the_empty_record(void **context)
{
    (void)context;
    assert_ptr_equal(det_machine_payload(&machine, 0), &count_record);
    assert_ptr_equal(det_machine_payload(&machine, 1), det_empty_record());
    assert_ptr_equal(det_machine_data(&machine), det_empty_record());
}

static void entering_arms_within_or_else_the_timeout_of_the_state(void **context)
{
    (void)context;
    assert_ptr_equal(det_machine_timeout(&machine, &table[0]), &states[1].timeout);
    assert_ptr_equal(det_machine_timeout(&machine, &table[1]), &within);
    assert_null(det_machine_timeout(&machine, &table[2]));
    assert_null(det_machine_timeout(&machine, &table[3]));
}

static void ask_for_a_wrong_event(void *argument)
{
    (void)argument;
    (void)det_machine_payload(&machine, 2);
}

static void apply_a_foreign_transition(void *argument)
{
    (void)argument;
    (void)det_machine_timeout(
        &machine, &(struct det_transition){ .outcome = DET_OUTCOME_GOTO, .to = 2 });
}

static void ids_of_another_machine_are_a_mistake_of_the_program(void **context)
{
    (void)context;
    assert_true(det_test_aborts(ask_for_a_wrong_event, NULL, "event_count"));
    assert_true(det_test_aborts(apply_a_foreign_transition, NULL, "state_count"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(step_is_a_table_lookup),
        cmocka_unit_test(keep_runs_before_the_update),
        cmocka_unit_test(a_transition_with_nothing_more_changes_no_data),
        cmocka_unit_test(an_update_that_is_only_a_name_fails_and_keeps_nothing),
        cmocka_unit_test(bare_keep_copies_the_presence_or_count_of_a_field),
        cmocka_unit_test(names_on_disk_are_found),
        cmocka_unit_test(a_group_has_its_members_only),
        cmocka_unit_test(event_without_payload_has_the_empty_record),
        cmocka_unit_test(entering_arms_within_or_else_the_timeout_of_the_state),
        cmocka_unit_test(ids_of_another_machine_are_a_mistake_of_the_program),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
