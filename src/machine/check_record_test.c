/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* check_record_test.c - the fields that a payload may keep, and their copies in
 * every layout. */
#include <detent/tool/machine.h>

#include "machine/builder_test.h"

/* The same fields as in struct payment, in another order and at other distances. */
struct order_data {
    char tag;
    bool has_note;
    char note[9];
    uint64_t cents;
    uint32_t lines_count;
    uint64_t lines[3];
    bool has_big;
    uint64_t big;
};

#define NUMBER(type, member, bytes)                                                   \
    {                                                                                 \
        .name = #member, .kind = DET_KIND_UNSIGNED, .offset = offsetof(type, member), \
        .size = bytes                                                                 \
    }
#define NOTE(type)                                                          \
    {                                                                       \
        .name = "note", .kind = DET_KIND_TEXT, .flags = DET_FIELD_OPTIONAL, \
        .offset = offsetof(type, note), .size = 9, .capacity = 8,           \
        .presence = offsetof(type, has_note)                                \
    }
#define LINES(type)                                                                          \
    {                                                                                        \
        .name = "lines", .kind = DET_KIND_UNSIGNED, .flags = DET_FIELD_ARRAY,                \
        .offset = offsetof(type, lines), .size = 8, .presence = offsetof(type, lines_count), \
        .count_max = 3                                                                       \
    }
#define BIG(type)                                                                     \
    {                                                                                 \
        .name = "big", .kind = DET_KIND_UNSIGNED, .flags = DET_FIELD_OPTIONAL,        \
        .offset = offsetof(type, big), .size = 8, .presence = offsetof(type, has_big) \
    }

static const struct det_field data_fields[] = {
    NUMBER(struct order_data, tag, 1), NOTE(struct order_data), NUMBER(struct order_data, cents, 8),
    LINES(struct order_data),          BIG(struct order_data),
};
static const struct det_record data_record = { .name = "order_data",
                                               .version = 1,
                                               .size = sizeof(struct order_data),
                                               .fields = data_fields,
                                               .field_count = 5 };

/* Presence and value stand closer together here than in the data. */
struct parcel {
    uint32_t number;
    uint32_t lines_count;
    uint64_t lines[3];
    uint32_t weight;
    uint16_t height;
    char letter;
    bool has_big;
    uint64_t big;
};
static const struct det_field parcel_fields[] = {
    NUMBER(struct parcel, number, 4), LINES(struct parcel),
    NUMBER(struct parcel, weight, 4), NUMBER(struct parcel, height, 2),
    NUMBER(struct parcel, letter, 1), BIG(struct parcel),
};
static const struct det_record parcel_record = { .name = "parcel",
                                                 .version = 1,
                                                 .size = sizeof(struct parcel),
                                                 .fields = parcel_fields,
                                                 .field_count = 6 };

struct event_with_payment {
    unsigned kind;
    _Alignas(8) struct payment payment;
};

struct event_with_parcel {
    unsigned kind;
    _Alignas(8) struct parcel parcel;
};

static struct det_machine_builder *open_shop(void)
{
    struct det_machine_builder *b = open_order();

    det_machine_builder_data(b, &data_record);
    EVENT(b, "SEND", .payload = &parcel_record);
    return b;
}

static void a_kept_field_is_copied_with_its_presence(void **context)
{
    struct det_machine_builder *b = open_shop();
    struct order_data data = { .tag = 't', .cents = 1, .note = "old", .has_note = true };
    struct event_with_payment event = { 0, { .cents = 1999, .has_note = true, .note = "gift" } };
    struct det_machine *machine;
    const struct det_transition *transition;

    (void)context;
    STAY(b, "PAID", DET_LIST("SEND"));
    STAY(b, "CHARGING", DET_LIST("PAY"), .keeps = DET_LIST("cents", "note"));
    machine = expect_machine(b, "", NULL, NULL);
    transition = det_machine_step(machine, 1, 0);
    assert_int_equal(
        machine->events[0].payload_offset, offsetof(struct event_with_payment, payment));
    assert_true(machine->event_size >= sizeof event);
    assert_int_equal(transition->more->keep_count, 2);
    assert_string_equal(transition->more->keeps[0].name, "cents");
    assert_int_equal(det_machine_apply(machine, transition, &data, &event, NULL), 0);
    assert_int_equal(data.cents, 1999);
    assert_string_equal(data.note, "gift");
    assert_int_equal(data.tag, 't');
    event.payment.has_note = false;
    assert_int_equal(det_machine_apply(machine, transition, &data, &event, NULL), 0);
    assert_false(data.has_note);
    det_machine_close(machine);
}

static void field_and_presence_at_different_offsets_copy_separately(void **context)
{
    struct det_machine_builder *b = open_shop();
    struct order_data data = { .tag = 't', .cents = 7 };
    struct event_with_parcel event = {
        11, { .lines_count = 2, .lines = { 5, 6, 0 }, .has_big = true, .big = UINT64_MAX }
    };
    struct det_machine *machine;
    const struct det_transition *transition;

    (void)context;
    STAY(b, "PAID", DET_LIST("SEND"), .keeps = DET_LIST("lines", "big"));
    machine = expect_machine(b, "", NULL, NULL);
    transition = det_machine_step(machine, 2, 6);
    assert_int_equal(transition->more->keep_count, 4);
    assert_int_equal(det_machine_apply(machine, transition, &data, &event, NULL), 0);
    assert_int_equal(data.lines_count, 2);
    assert_memory_equal(data.lines, event.parcel.lines, sizeof data.lines);
    assert_true(data.has_big);
    assert_true(data.big == UINT64_MAX);
    assert_int_equal(data.cents, 7);
    det_machine_close(machine);
}

static void every_event_of_a_row_keeps_from_its_own_payload(void **context)
{
    static const struct det_field fields[] = { NUMBER(struct order_data, cents, 8) };
    static const struct det_record far_away = { .name = "far_away",
                                                .version = 1,
                                                .size = sizeof(struct order_data),
                                                .fields = fields,
                                                .field_count = 1 };
    struct det_machine_builder *b = open_order();
    const struct det_transition *by_pay, *by_move;
    struct det_machine *machine;

    (void)context;
    det_machine_builder_data(b, &data_record);
    EVENT(b, "MOVE", .payload = &far_away);
    ON_LISTS(
        b, .from = DET_LIST("CHARGING", "SHIPPED"), .events = DET_LIST("PAY", "MOVE"),
        .outcome = DET_OUTCOME_STAY, .keeps = DET_LIST("cents"));
    machine = expect_machine(b, "", NULL, NULL);
    by_pay = det_machine_step(machine, 1, 0);
    by_move = det_machine_step(machine, 1, 6);
    assert_int_equal(by_pay->more->keeps[0].event_offset, 8 + offsetof(struct payment, cents));
    assert_int_equal(by_move->more->keeps[0].event_offset, 8 + offsetof(struct order_data, cents));
    assert_ptr_equal(det_machine_step(machine, 3, 0)->more, by_pay->more);
    det_machine_close(machine);
}

static void keeping_needs_data_and_a_payload(void **context)
{
    struct det_machine_builder *b = open_order();

    (void)context;
    STAY(b, "CHARGING", DET_LIST("PAY"), .keeps = DET_LIST("cents"));
    expect(b, "bad-keep@21", "cents cannot be kept: order has no data", NULL);
    b = open_shop();
    STAY(b, "PAID", DET_LIST("SEND"));
    STAY(b, "CHARGING", DET_LIST("SHIP"), .keeps = DET_LIST("cents"));
    expect(b, "bad-keep@23", "cents cannot be kept: SHIP of order has no payload", NULL);
}

static void keeping_needs_the_field_on_both_sides(void **context)
{
    struct det_machine_builder *b = open_shop();

    (void)context;
    STAY(b, "PAID", DET_LIST("SEND"));
    STAY(b, "CHARGING", DET_LIST("PAY"), .keeps = DET_LIST("lines"));
    expect(
        b, "bad-keep@23", "lines cannot be kept on PAY of order: payment has no such field", NULL);
    b = open_shop();
    STAY(b, "PAID", DET_LIST("SEND"), .keeps = DET_LIST("weight"));
    expect(
        b, "bad-keep@22", "weight cannot be kept on SEND of order: order_data has no such field",
        NULL);
    /* One finding a field, however many events the row has. */
    b = open_shop();
    ON_LISTS(
        b, .from = DET_LIST("CHARGING"), .events = DET_LIST("PAY", "SEND"),
        .outcome = DET_OUTCOME_STAY, .keeps = DET_LIST("weight"));
    expect(b, "bad-keep@22", NULL, NULL);
}

static void keeping_needs_one_type(void **context)
{
    struct det_field other = { .name = "cents", .kind = DET_KIND_UNSIGNED, .size = 4 };
    struct det_record record = {
        .name = "coin", .version = 1, .size = 64, .fields = &other, .field_count = 1
    };
    struct det_machine_builder *b;

    (void)context;
    for (int i = 0; i < 3; i++) {
        other.size = i == 0 ? 4 : 8;
        other.kind = i == 1 ? DET_KIND_SIGNED : DET_KIND_UNSIGNED;
        other.offset = 8;
        other.flags = i == 2 ? DET_FIELD_OPTIONAL : 0;
        b = open_shop();
        EVENT(b, "TOSS", .payload = &record);
        ON_LISTS(
            b, .from = DET_LIST("PAID"), .events = DET_LIST("SEND", "TOSS"),
            .outcome = DET_OUTCOME_STAY);
        STAY(b, "CHARGING", DET_LIST("TOSS"), .keeps = DET_LIST("cents"));
        expect(
            b, "bad-keep@24",
            "cents cannot be kept on TOSS of order: it has one type in coin and another in "
            "order_data",
            NULL);
    }
}

static void keeping_needs_the_same_enum(void **context)
{
    static const struct det_enum_value values[] = { { "none", 0 } };
    static const struct det_enum first = { "first", values, 1 }, second = { "second", values, 1 };
    static const struct det_enum again = { "first", values, 1 };
    struct det_field ours = {
        .name = "x", .kind = DET_KIND_ENUM, .size = 4, .enumeration = { .enumeration = &first }
    };
    struct det_field theirs = ours;
    struct det_record data = { "data", 1, 4, &ours, 1 }, payload = { "payload", 1, 4, &theirs, 1 };
    const struct det_enum *const tried[] = { &first, &again, &second };

    (void)context;
    for (int i = 0; i < 3; i++) {
        struct det_machine_builder *b = open_order();

        theirs.enumeration.enumeration = tried[i];
        det_machine_builder_data(b, &data);
        EVENT(b, "TOSS", .payload = &payload);
        STAY(b, "CHARGING", DET_LIST("TOSS"), .keeps = DET_LIST("x"));
        expect(b, i < 2 ? "" : "bad-keep@22", NULL, NULL);
    }
}

static void keeping_needs_the_same_record(void **context)
{
    static const struct det_record coin = { .name = "coin",
                                            .version = 1,
                                            .size = sizeof(struct payment),
                                            .fields = payment_fields,
                                            .field_count = 2 };
    struct det_field ours = { .name = "x",
                              .kind = DET_KIND_RECORD,
                              .size = sizeof(struct payment),
                              .record = { .record = &payment_record } };
    struct det_field theirs = ours;
    struct det_record data = { "data", 1, sizeof(struct payment), &ours, 1 };
    struct det_record payload = { "payload", 1, sizeof(struct payment), &theirs, 1 };

    (void)context;
    for (int i = 0; i < 2; i++) {
        struct det_machine_builder *b = open_order();

        theirs.record.record = i == 0 ? &payment_record : &coin;
        det_machine_builder_data(b, &data);
        EVENT(b, "TOSS", .payload = &payload);
        STAY(b, "CHARGING", DET_LIST("TOSS"), .keeps = DET_LIST("x"));
        expect(b, i == 0 ? "" : "bad-keep@22", NULL, NULL);
    }
}

static void records_are_checked_once_each_even_with_equal_names(void **context)
{
    static const struct det_record namesake = { .name = "payment", .version = 1 };
    struct det_machine_builder *b = open_order();

    (void)context;
    EVENT(b, "A", .payload = &payment_record);
    EVENT(b, "B", .payload = &namesake);
    ON_LISTS(
        b, .from = DET_LIST("PAID"), .events = DET_LIST("A", "B"), .outcome = DET_OUTCOME_STAY);
    expect(b, "bad-record@22", NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kept_field_is_copied_with_its_presence),
        cmocka_unit_test(field_and_presence_at_different_offsets_copy_separately),
        cmocka_unit_test(every_event_of_a_row_keeps_from_its_own_payload),
        cmocka_unit_test(keeping_needs_data_and_a_payload),
        cmocka_unit_test(keeping_needs_the_field_on_both_sides),
        cmocka_unit_test(keeping_needs_one_type),
        cmocka_unit_test(keeping_needs_the_same_enum),
        cmocka_unit_test(keeping_needs_the_same_record),
        cmocka_unit_test(records_are_checked_once_each_even_with_equal_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
