/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* dead_letter_test.c - events of the loop that are never accepted become dead letters: names
 * without a function at once, limits after as many attempts as an effect has.
 *
 *     A --go, arms the timer--> B --open, or the product--> C
 *     A --tick after a day, a hook that is only a name--> B */
#include "lib/shared_store.h"
#include "runtime/runtime_test.h"

enum { GO, TICK, LATER, WORK, DONE, OPEN, MORE };

static int work(struct det_effect_call *call, const void *data, const void *event, void *ret)
{
    struct order_control *control = call->move.user;

    (void)data;
    (void)event;
    memcpy(ret, &control->product, sizeof control->product);
    return control->effect_result;
}

static void name_all(struct det_machine_builder *b)
{
    static const struct det_event_row events[] = {
        { .name = "GO" },
        { .name = "TICK" },
        { .name = "LATER", .unhandled = DET_UNHANDLED_DEFER },
        { .name = "WORK" },
        { .name = "DONE" },
        { .name = "OPEN" },
        { .name = "MORE", .unhandled = DET_UNHANDLED_DEFER },
    };

    det_machine_builder_state(
        b, &(struct det_state_row){ .name = "A", .flags = DET_STATE_INITIAL });
    det_machine_builder_state(b, &(struct det_state_row){ .name = "B" });
    det_machine_builder_state(b, &(struct det_state_row){ .name = "C" });
    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++)
        det_machine_builder_event(b, &events[i]);
    det_machine_builder_hook(b, "unknown", NULL);
    det_machine_builder_effect(
        b, &(struct det_effect_row){
               .name = "work", .run = work, .produces = DET_LIST("DONE", "LATER") });
    det_machine_builder_timer(
        b, &(struct det_timer_row){ .name = "late",
                                    .timeout = { .after = DET_HOUR, .event = "LATER" } });
}

static void row(struct det_machine_builder *b, struct det_on_row on)
{
    det_machine_builder_on(b, &on);
}

static struct det_machine *poison_machine(void)
{
    struct det_machine_builder *b;

    assert_int_equal(det_machine_builder_open("poison", NULL, &b), 0);
    name_all(b);
    row(b, (struct det_on_row){ .from = DET_LIST("A"),
                                .events = DET_LIST("GO"),
                                .outcome = DET_OUTCOME_GOTO,
                                .to = "B",
                                .arms = DET_LIST("late") });
    row(b, (struct det_on_row){ .from = DET_LIST("A"),
                                .events = DET_LIST("TICK"),
                                .outcome = DET_OUTCOME_GOTO,
                                .to = "B",
                                .hook = "unknown" });
    row(b, (struct det_on_row){ .from = DET_LIST("B"),
                                .events = DET_LIST("WORK"),
                                .outcome = DET_OUTCOME_STAY,
                                .effects = DET_LIST("work") });
    row(b, (struct det_on_row){ .from = DET_LIST("B"),
                                .events = DET_LIST("DONE"),
                                .outcome = DET_OUTCOME_GOTO,
                                .to = "C",
                                .hook = "unknown" });
    row(b, (struct det_on_row){ .from = DET_LIST("B"),
                                .events = DET_LIST("OPEN"),
                                .outcome = DET_OUTCOME_GOTO,
                                .to = "C" });
    row(b, (struct det_on_row){ .from = DET_LIST("C"),
                                .events = DET_LIST("LATER"),
                                .outcome = DET_OUTCOME_STAY,
                                .hook = "unknown" });
    row(b, (struct det_on_row){ .from = DET_LIST("C"),
                                .events = DET_LIST("MORE"),
                                .outcome = DET_OUTCOME_STAY,
                                .effects = DET_LIST("work") });
    det_machine_builder_after(
        b, DET_LIST("A"), &(struct det_timeout_row){ .after = DET_DAY, .event = "TICK" });
    return built(b);
}

/* All tests once in memory, and once as a node of a shared store. */
static bool is_shared;
static struct det_shared *shared;

/* In the fixture's own machine's place. */
static struct fixture *poison_open(void)
{
    const struct det_runtime_options options = { .effects = { .jitter_percent = UINT32_MAX } };
    struct fixture *f = fixture_open(options);

    if (is_shared) {
        det_runtime_close(f->runtime);
        f->runtime = NULL;
        det_store_close(f->store);
        shared = det_shared_open(f->sim, NULL);
        f->store = det_shared_node(shared);
        fixture_reopen(f, options);
    }
    det_machine_close(f->order);
    f->order = poison_machine();
    f->control.effect_result = DET_EFFECT_DONE;
    assert_int_equal(start(f, "o-1"), 0);
    return f;
}

static void poison_close(struct fixture *f)
{
    det_runtime_close(f->runtime);
    f->runtime = NULL;
    if (shared) {
        det_store_close(f->store);
        f->store = NULL;
        det_shared_close(shared);
        shared = NULL;
    }
    fixture_close(f);
}

static int send_bare(struct fixture *f, unsigned kind)
{
    struct order_event event = { .kind = kind };

    return det_runtime_send(f->runtime, f->order, "o-1", &event, NULL, &f->sent, NULL);
}

static void a_timer_whose_hook_is_only_a_name_is_a_dead_letter_at_once(void **state)
{
    struct fixture *f = poison_open();

    (void)state;
    advance(f, 2 * DET_DAY);
    assert_int_equal(f->control.incidents, 1);
    assert_int_equal(f->control.incident.kind, DET_INCIDENT_TIMEOUT_REJECTED);
    assert_int_equal(f->control.incident.code, DET_ERR_UNBOUND);
    assert_true(f->control.incident.is_dead);
    assert_int_equal(counts(f).timeouts_rejected, 1);
    assert_int_equal(timers(f, "o-1")->count, 1);
    poison_close(f);
}

static void fill_deferred(struct fixture *f)
{
    assert_int_equal(send_bare(f, GO), 0);
    for (int i = 0; i < DET_DEFERRED_MAX; i++)
        assert_int_equal(send_bare(f, LATER), 0);
}

static void a_timer_that_meets_a_limit_is_a_dead_letter_after_the_last_attempt(void **state)
{
    struct fixture *f = poison_open();

    (void)state;
    fill_deferred(f);
    advance(f, DET_HOUR);
    assert_int_equal(f->control.incidents, 1);
    assert_int_equal(f->control.incident.code, DET_ERR_LIMIT);
    assert_int_equal(timers(f, "o-1")->count, 1);
    advance(f, DET_DAY);
    assert_int_equal(f->control.incidents, 8);
    assert_int_equal(f->control.incident.attempt, 8);
    assert_int_equal(f->control.incident.code, DET_ERR_LIMIT);
    assert_string_equal(
        f->control.incident_text,
        "timer late of poison o-1 is rejected, and a dead letter: poison o-1 has 16 deferred "
        "events already");
    assert_int_equal(counts(f).timeouts_rejected, 1);
    assert_int_equal(timers(f, "o-1")->count, 1);
    poison_close(f);
}

static void a_product_whose_hook_is_only_a_name_is_a_dead_letter_at_once(void **state)
{
    struct fixture *f = poison_open();

    (void)state;
    assert_int_equal(send_bare(f, GO), 0);
    f->control.product = DONE;
    f->control.effect_result = DET_EFFECT_PRODUCED;
    assert_int_equal(send_bare(f, WORK), 0);
    advance(f, DET_MINUTE);
    assert_int_equal(f->control.incidents, 1);
    assert_int_equal(f->control.incident.kind, DET_INCIDENT_PRODUCT_REJECTED);
    assert_int_equal(f->control.incident.code, DET_ERR_UNBOUND);
    assert_int_equal(counts(f).products_rejected, 1);
    assert_int_equal(effects(f, "o-1")->first.state, DET_EFFECT_STATE_DEAD);
    poison_close(f);
}

static void a_product_that_meets_a_limit_is_a_dead_letter_after_the_last_attempt(void **state)
{
    struct fixture *f = poison_open();

    (void)state;
    fill_deferred(f);
    f->control.product = LATER;
    f->control.effect_result = DET_EFFECT_PRODUCED;
    assert_int_equal(send_bare(f, WORK), 0);
    settle(f);
    assert_int_equal(f->control.incidents, 1);
    assert_int_equal(get(f, "o-1").effects_pending, 1);
    advance(f, 10 * DET_MINUTE);
    assert_int_equal(f->control.incidents, 8);
    assert_int_equal(f->control.incident.kind, DET_INCIDENT_PRODUCT_REJECTED);
    assert_int_equal(f->control.incident.code, DET_ERR_LIMIT);
    assert_int_equal(f->control.incident.attempt, 1);
    assert_int_equal(counts(f).products_rejected, 1);
    assert_int_equal(get(f, "o-1").effects_pending, 0);
    assert_int_equal(effects(f, "o-1")->first.last_error, DET_ERR_LIMIT);
    poison_close(f);
}

static void a_deferred_event_whose_hook_is_only_a_name_is_a_dead_letter(void **state)
{
    struct fixture *f = poison_open();

    (void)state;
    assert_int_equal(send_bare(f, GO), 0);
    assert_int_equal(send_bare(f, LATER), 0);
    assert_int_equal(send_bare(f, MORE), 0);
    assert_int_equal(send_bare(f, OPEN), 0);
    assert_int_equal(get(f, "o-1").deferred_count, 0);
    assert_int_equal(f->control.incidents, 1);
    assert_int_equal(f->control.incident.kind, DET_INCIDENT_EVENT_DEAD);
    assert_int_equal(f->control.incident.code, DET_ERR_UNBOUND);
    assert_string_equal(f->control.incident.name, "LATER");
    assert_string_equal(
        f->control.incident_text, "event LATER of poison o-1 is a dead letter: hook unknown of "
                                  "poison is only a name; bind it");
    /* It is recorded, and the one after it was accepted. */
    assert_int_equal(get(f, "o-1").sequence, 6);
    poison_close(f);
}

/* As many effects as an instance may have, all of which wait for their next attempt. */
static void fill_effects(struct fixture *f)
{
    static const struct order_event event = { .kind = WORK };
    const void *events[DET_BATCH_MAX];

    for (size_t i = 0; i < DET_BATCH_MAX; i++)
        events[i] = &event;
    f->control.effect_result = DET_ERR_IO;
    for (int i = 0; i < DET_EFFECTS_PENDING / DET_BATCH_MAX; i++)
        assert_int_equal(
            det_runtime_send_all(
                f->runtime, f->order, "o-1", events, DET_BATCH_MAX, NULL, &f->sent, NULL),
            0);
}

static void a_deferred_event_that_meets_a_limit_is_a_dead_letter_after_the_last_attempt(
    void **state)
{
    struct fixture *f = poison_open();

    (void)state;
    assert_int_equal(send_bare(f, GO), 0);
    assert_int_equal(send_bare(f, MORE), 0);
    fill_effects(f);
    assert_int_equal(get(f, "o-1").effects_pending, DET_EFFECTS_PENDING);
    assert_int_equal(send_bare(f, OPEN), 0);
    assert_int_equal(get(f, "o-1").deferred_count, 1);
    advance(f, DET_MINUTE);
    assert_int_equal(f->control.incident_counts[DET_INCIDENT_EVENT_FAILED], 7);
    assert_int_equal(f->control.incident_counts[DET_INCIDENT_EVENT_DEAD], 1);
    assert_int_equal(get(f, "o-1").deferred_count, 0);
    poison_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_timer_whose_hook_is_only_a_name_is_a_dead_letter_at_once),
        cmocka_unit_test(a_timer_that_meets_a_limit_is_a_dead_letter_after_the_last_attempt),
        cmocka_unit_test(a_product_whose_hook_is_only_a_name_is_a_dead_letter_at_once),
        cmocka_unit_test(a_product_that_meets_a_limit_is_a_dead_letter_after_the_last_attempt),
        cmocka_unit_test(a_deferred_event_whose_hook_is_only_a_name_is_a_dead_letter),
        cmocka_unit_test(
            a_deferred_event_that_meets_a_limit_is_a_dead_letter_after_the_last_attempt),
    };

    int failed = cmocka_run_group_tests_name("in memory", tests, NULL, NULL);

    is_shared = true;
    return failed + cmocka_run_group_tests_name("on a shared store", tests, NULL, NULL);
}
