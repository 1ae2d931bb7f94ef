/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* payload_test.c - payloads that are made by a fill, or not at all, and payloads with a list. */
#include "runtime/runtime_test.h"

enum { NAG_GO, NAG_REMIND };

/* B has a timeout whose event is filled in. */
static struct det_machine *nag_machine(det_fill_fn *fill)
{
    struct det_machine_builder *b;

    assert_int_equal(det_machine_builder_open("nag", NULL, &b), 0);
    det_machine_builder_data(b, &order_data_record);
    det_machine_builder_state(
        b, &(struct det_state_row){ .name = "A", .flags = DET_STATE_INITIAL });
    det_machine_builder_state(b, &(struct det_state_row){ .name = "B" });
    det_machine_builder_event(b, &(struct det_event_row){ .name = "GO" });
    det_machine_builder_event(
        b, &(struct det_event_row){ .name = "REMIND", .payload = &payment_record });
    det_machine_builder_fill(b, "since", fill);
    order_on(b, "A", "GO", "B");
    order_on(b, "B", "REMIND", "A");
    det_machine_builder_after(
        b, DET_LIST("B"),
        &(struct det_timeout_row){ .after = DET_MINUTE, .event = "REMIND", .fill = "since" });
    return built(b);
}

static void the_timeout_of_a_state_is_filled_when_it_is_armed(void **state)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });
    struct order_data data = { .cents = 41 };
    const struct recorded *all;

    (void)state;
    det_machine_close(f->order);
    f->order = nag_machine(order_since);
    assert_int_equal(det_runtime_start(f->runtime, f->order, "n", &data, NULL, NULL, NULL), 0);
    assert_int_equal(send_kind(f, "n", NAG_GO), 0);
    advance(f, DET_MINUTE);
    all = events_after(f, "n", 1);
    assert_int_equal(all->count, 1);
    assert_int_equal(all->rows[0].event, NAG_REMIND);
    assert_true(all->rows[0].is_timeout);
    assert_int_equal(all->rows[0].value.as.remind.cents, 42);
    fixture_close(f);
}

static void unbound_fill_refuses_the_transition(void **state)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });

    (void)state;
    det_machine_close(f->order);
    f->order = nag_machine(NULL);
    assert_int_equal(start(f, "n"), 0);
    assert_int_equal(send_kind(f, "n", NAG_GO), DET_ERR_UNBOUND);
    assert_string_equal(f->error.text, "since of nag is only a name; bind it");
    assert_int_equal(get(f, "n").sequence, 0);
    assert_int_equal(timers(f, "n")->count, 0);
    fixture_close(f);
}

static void fill_in_no_text(const struct det_move *move, const void *data, void *event)
{
    struct order_event *filled = event;

    (void)move;
    (void)data;
    memcpy(filled->as.remind.card, "\xff", 2);
}

static void fill_in_another_event(const struct det_move *move, const void *data, void *event)
{
    struct order_event *filled = event;

    (void)move;
    (void)data;
    filled->kind = NAG_GO;
}

static void fill_of_an_invalid_event_refuses_the_transition(void **state)
{
    static det_fill_fn *const fills[] = { fill_in_no_text, fill_in_another_event };

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct fixture *f = fixture_open((struct det_runtime_options){ 0 });

        det_machine_close(f->order);
        f->order = nag_machine(fills[i]);
        assert_int_equal(start(f, "n"), 0);
        assert_int_equal(send_kind(f, "n", NAG_GO), DET_ERR_INVALID);
        assert_int_equal(f->error.code, DET_ERR_INVALID);
        assert_int_equal(get(f, "n").sequence, 0);
        assert_int_equal(timers(f, "n")->count, 0);
        fixture_close(f);
    }
}

/* Numbers, of which only their count can be wrong. */
struct cart {
    uint32_t count;
    uint32_t items[4];
};

struct cart_event {
    unsigned kind;
    struct cart cart __attribute__((aligned(8))); /* as a builder lays events out */
};

static const struct det_field cart_fields[] = {
    { .name = "items",
      .kind = DET_KIND_UNSIGNED,
      .flags = DET_FIELD_ARRAY,
      .offset = offsetof(struct cart, items),
      .size = 4,
      .presence = offsetof(struct cart, count),
      .count_max = 4 },
};
static const struct det_record cart_record = {
    .name = "cart", .size = sizeof(struct cart), .fields = cart_fields, .field_count = 1
};

static void a_list_of_more_than_it_may_hold_is_refused(void **state)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });
    struct cart_event event = { .cart = { .count = 5 } };
    struct det_machine_builder *b;

    (void)state;
    det_machine_close(f->order);
    assert_int_equal(det_machine_builder_open("till", NULL, &b), 0);
    det_machine_builder_state(
        b, &(struct det_state_row){ .name = "A", .flags = DET_STATE_INITIAL });
    det_machine_builder_event(b, &(struct det_event_row){ .name = "BUY", .payload = &cart_record });
    order_on(b, "A", "BUY", NULL);
    f->order = built(b);
    assert_int_equal(start(f, "t"), 0);
    assert_int_equal(
        det_runtime_send(f->runtime, f->order, "t", &event, NULL, NULL, NULL), DET_ERR_INVALID);
    event.cart.count = 4;
    assert_int_equal(det_runtime_send(f->runtime, f->order, "t", &event, NULL, NULL, NULL), 0);
    assert_int_equal(get(f, "t").sequence, 1);
    fixture_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_timeout_of_a_state_is_filled_when_it_is_armed),
        cmocka_unit_test(unbound_fill_refuses_the_transition),
        cmocka_unit_test(fill_of_an_invalid_event_refuses_the_transition),
        cmocka_unit_test(a_list_of_more_than_it_may_hold_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
