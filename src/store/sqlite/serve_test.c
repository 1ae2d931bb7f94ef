/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* serve_test.c - definitions that fit the stored rows and those that do not; due work and lists in
 * a file with several machines. */
#include "store/sqlite/sqlite_test.h"

#include <detent/tool/spec.h>

/* A machine of the same name with fewer names in it. */
struct lack {
    bool state, event, effect, timer;
};

static struct det_machine *lacking(struct lack lack)
{
    const char *bare = lack.event ? "SMALL" : "BARE";
    struct det_machine_builder *b;
    struct det_diagnostics diagnostics;
    struct det_machine *machine = NULL;

    assert_int_equal(det_machine_builder_open("pad", NULL, &b), 0);
    det_machine_builder_version(b, 2);
    det_machine_builder_data(b, &pad_data_record);
    det_machine_builder_state(
        b, &(struct det_state_row){ .name = "A", .flags = DET_STATE_INITIAL });
    det_machine_builder_state(b, &(struct det_state_row){ .name = lack.state ? "C" : "B" });
    det_machine_builder_event(
        b, &(struct det_event_row){ .name = "SMALL", .payload = &small_record });
    if (!lack.event)
        det_machine_builder_event(b, &(struct det_event_row){ .name = "BARE" });
    det_machine_builder_effect(
        b, &(struct det_effect_row){ .name = lack.effect ? "toll" : "ring", .run = done });
    det_machine_builder_timer(
        b, &(struct det_timer_row){ .name = lack.timer ? "soon" : "later",
                                    .timeout = { DET_HOUR, bare, NULL } });
    for (int i = 0; i < 2; i++)
        det_machine_builder_on(
            b, &(struct det_on_row){ .from = DET_LIST(i ? (lack.state ? "C" : "B") : "A"),
                                     .events =
                                         lack.event ? DET_LIST("SMALL") : DET_LIST("SMALL", "BARE"),
                                     .outcome = DET_OUTCOME_GOTO,
                                     .to = i            ? "A"
                                           : lack.state ? "C"
                                                        : "B",
                                     .effects = DET_LIST(lack.effect ? "toll" : "ring"),
                                     .arms = DET_LIST(lack.timer ? "soon" : "later") });
    assert_int_equal(det_machine_builder_build(b, &machine, &diagnostics), 0);
    det_machine_builder_close(b);
    return machine;
}

/* The instance is in B, has a timer that sends BARE, and an effect that has not ended. */
static struct shelf *busy_shelf(void)
{
    struct shelf *shelf = shelf_new();
    struct pad *pad = &shelf->pad;
    uint64_t data = 0;
    struct pad_event value = { .kind = SMALL };
    struct det_store_timer_change timer = { DET_STORE_SET,
                                            { .timer = 0, .event = BARE, .visit = 2, .due = 500 } };
    struct det_store_effect_change effect = {
        DET_STORE_SET, { .sequence = 1, .data = &data, .event = &value, .next = 300 }
    };

    begin(pad);
    add_event(pad, SMALL);
    pad->commit.timers = &timer;
    pad->commit.effects = &effect;
    pad->commit.timer_count = pad->commit.effect_count = 1;
    assert_int_equal(commit(pad), 0);
    return shelf;
}

static void definition_missing_a_used_name_is_refused_with_it(void **state)
{
    static const struct {
        struct lack lack;
        const char *words;
    } cases[] = {
        { { .state = true }, "state \"B\", but the store has instances in it: 1;" },
        { { .event = true }, "event \"BARE\", but the store has armed timers that send it: 1;" },
        { { .effect = true }, "effect \"ring\", but the store has some that have not ended: 1;" },
        { { .timer = true }, "timer \"later\", but the store has some that are armed: 1;" },
    };
    struct shelf *shelf = busy_shelf();
    struct det_store *store = shelf->pad.store;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct det_machine *machine = lacking(cases[i].lack);

        memset(&shelf->error, 0, sizeof shelf->error);
        assert_int_equal(store->ops->serve(store, machine, &shelf->error), DET_ERR_VERSION);
        if (!strstr(shelf->error.text, cases[i].words))
            fail_msg("%s", shelf->error.text);
        assert_non_null(strstr(shelf->error.text, "detent diff"));
        assert_int_equal(store->ops->serve(store, machine, NULL), DET_ERR_VERSION);
        det_machine_close(machine);
    }
    assert_int_equal(shelf_ask(shelf, "SELECT count(*) FROM definitions"), 1);
    shelf_free(shelf);
}

struct seen {
    size_t count;
    char names[256];
};

static int see_machine(void *context, const char *name, uint32_t version, const char *spec)
{
    struct seen *seen = context;
    size_t length = strlen(seen->names);

    seen->count++;
    snprintf(
        seen->names + length, sizeof seen->names - length, "%s %u %s;", name, version,
        strstr(spec, "FSM_NAME pad") ? "spec" : "none");
    return seen->count == 3 ? 33 : 0;
}

static void fitting_definition_is_stored_and_listed(void **state)
{
    struct shelf *shelf = busy_shelf();
    struct det_store *store = shelf->pad.store;
    struct det_machine *machine = lacking((struct lack){ 0 });
    struct seen seen = { 0 };

    (void)state;
    assert_int_equal(store->ops->serve(store, machine, NULL), 0);
    assert_int_equal(store->ops->serve(store, shelf->machine, NULL), 0);
    assert_int_equal(store->ops->serve(store, machine, NULL), 0);
    assert_int_equal(shelf_ask(shelf, "SELECT count(*) FROM definitions"), 2);
    shelf_exec(
        shelf, "INSERT INTO instances SELECT 50, 'alien', id, 7, state, sequence, visit,"
               " transitions, started_at, moved_at, stopped, reason, data, hash, 0, 0, 0, NULL,"
               " NULL, 0, NULL FROM instances");
    assert_int_equal(store->ops->machines(store, see_machine, &seen), 0);
    assert_string_equal(seen.names, "alien 7 none;pad 2 spec;");
    seen.count = 2;
    assert_int_equal(store->ops->machines(store, see_machine, &seen), 33);
    det_machine_close(machine);
    shelf_free(shelf);
}

static int serve_scarce(struct det_test_memory *memory, void *argument)
{
    struct shelf *shelf = argument;
    int r;

    r = shelf_open_with(shelf, &(struct det_store_options){ .allocator = &memory->allocator });
    if (r < 0)
        assert_true(shelf->error.text[0]);
    shelf_close(shelf);
    return r;
}

static void definition_is_not_stored_without_memory(void **state)
{
    struct shelf *shelf = busy_shelf();

    (void)state;
    shelf_close(shelf);
    shelf_exec(shelf, "DELETE FROM definitions");
    det_test_each_failure(serve_scarce, shelf);
    assert_int_equal(shelf_ask(shelf, "SELECT count(*) FROM definitions"), 1);
    shelf_free(shelf);
}

static int see_due(void *context, const struct det_store_due *row)
{
    struct seen *seen = context;
    size_t length = strlen(seen->names);

    seen->count++;
    snprintf(
        seen->names + length, sizeof seen->names - length, "%s %d%s;", row->id, (int)row->due,
        row->is_timer ? " timer" : "");
    return seen->count == 9 ? 99 : 0;
}

static void due_rows_are_ordered_and_the_next_time_is_known(void **state)
{
    struct shelf *shelf = busy_shelf();
    struct det_store *store = shelf->pad.store;
    const struct det_machine *machine = shelf->machine;
    struct det_machine other = *machine;
    struct seen seen = { 0 };
    det_time next = 1;

    (void)state;
    assert_int_equal(
        store->ops->due(
            store, machine, &(struct det_store_due_query){ .before = 200, .limit = 10 }, see_due,
            &seen, &next),
        0);
    assert_int_equal(next, 300);
    assert_int_equal(
        store->ops->due(
            store, machine, &(struct det_store_due_query){ .before = 300, .limit = 10 }, see_due,
            &seen, &next),
        0);
    assert_int_equal(next, 500);
    assert_int_equal(
        store->ops->due(
            store, machine, &(struct det_store_due_query){ .before = 900, .limit = 1 }, see_due,
            &seen, &next),
        0);
    assert_int_equal(next, 500);
    assert_int_equal(
        store->ops->due(
            store, machine, &(struct det_store_due_query){ .before = 900, .limit = 2 }, see_due,
            &seen, &next),
        0);
    assert_int_equal(next, DET_NEVER);
    assert_string_equal(seen.names, "p 300;p 300;p 300;p 500 timer;");
    other.name = "other";
    assert_int_equal(
        store->ops->due(
            store, &other, &(struct det_store_due_query){ .before = 900, .limit = 2 }, see_due,
            &seen, &next),
        0);
    assert_int_equal(next, DET_NEVER);
    next = 7;
    seen.count = 8;
    assert_int_equal(
        store->ops->due(
            store, machine, &(struct det_store_due_query){ .before = 900, .limit = 2 }, see_due,
            &seen, &next),
        99);
    assert_int_equal(next, 7);
    shelf_free(shelf);
}

static int see_listed(void *context, const struct det_store_listed *row)
{
    struct seen *seen = context;

    seen->count++;
    return row->state == 1 ? 55 : 0;
}

static void unknown_state_ends_the_list(void **state)
{
    struct shelf *shelf = busy_shelf();
    struct det_store *store = shelf->pad.store;
    struct seen seen = { 0 };

    (void)state;
    assert_int_equal(store->ops->list(store, shelf->machine, NULL, see_listed, &seen), 55);
    shelf_exec(shelf, "UPDATE instances SET state = 'gone'");
    assert_int_equal(
        store->ops->list(store, shelf->machine, NULL, see_listed, &seen), DET_ERR_VERSION);
    assert_int_equal(seen.count, 1);
    shelf_free(shelf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(definition_missing_a_used_name_is_refused_with_it),
        cmocka_unit_test(fitting_definition_is_stored_and_listed),
        cmocka_unit_test(definition_is_not_stored_without_memory),
        cmocka_unit_test(due_rows_are_ordered_and_the_next_time_is_known),
        cmocka_unit_test(unknown_state_ends_the_list),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
