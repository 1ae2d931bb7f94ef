/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* migrate_cases.h - migrates a store with instances to a definition with other names: one suite for
 * the stores that can migrate. The including file defines place(), which writes the URL of a new
 * store, leave(), which removes it, and spoil(), which makes the checksums of a table wrong. */
#ifndef DET_STORE_MIGRATE_CASES_H
#define DET_STORE_MIGRATE_CASES_H

#define URL_MAX 600
static void place(char url[URL_MAX]);
static void leave(void);
static void spoil(const char *url, const char *table);

#include <detent/driver/store.h>
#include <detent/runtime.h>
#include <detent/tool/machine.h>
#include <detent/tool/spec.h>
#include <detent/tool/store.h>

#include "lib/test.h"

/* Two definitions that differ in all four kinds of names. */
#define SPEC(waiting, paid, remind, label, bell, gong)                                            \
    "#define FSM_NAME order\n#define FSM_PREFIX ORDER\n#define FSM_DATA basket\n"                 \
    "RECORD(basket) FIELD(cents, u64) END\n"                                                      \
    "STATE(PENDING, pending, INITIAL) STATE(WAITING, " waiting ") STATE(PAID, " paid ")\n"        \
    "EVENT(CHECK, check) EVENT(REMIND, " remind ") EVENT(PAY, pay, basket) EVENT(LATER, later)\n" \
    "EFFECT(" label ") TIMER(" bell ", DAYS(1), REMIND) TIMER(" gong ", DAYS(2), REMIND)\n"       \
    "UNHANDLED(LATER, DEFER)\n"                                                                   \
    "ON(PENDING, CHECK, WAITING, ARM(" bell ", " gong ")) STAY(WAITING, REMIND)\n"                \
    "ON(WAITING, PAY, PAID, KEEP(cents), DO(" label "))\n"                                        \
    "ON(PAID, CHECK, WAITING) STAY(PAID, ANY(LATER, REMIND)) STAY(PENDING, REMIND)\n"
#define OLD SPEC("waiting", "paid", "remind", "print", "bell", "gong")
#define NEW SPEC("settling", "settled", "nag", "stamp", "alarm", "gong")
/* The two states exchanged, and the two timers. */
#define SWAPPED SPEC("paid", "waiting", "remind", "print", "gong", "bell")

static const struct det_rename renames[] = {
    { DET_NAME_STATE, "waiting", "settling" }, { DET_NAME_STATE, "paid", "settled" },
    { DET_NAME_EVENT, "remind", "nag" },       { DET_NAME_EFFECT, "print", "stamp" },
    { DET_NAME_TIMER, "bell", "alarm" },
};
static const struct det_rename swaps[] = {
    { DET_NAME_STATE, "waiting", "paid" },
    { DET_NAME_STATE, "paid", "waiting" },
    { DET_NAME_TIMER, "bell", "gong" },
    { DET_NAME_TIMER, "gong", "bell" },
};

enum { PENDING, WAITING, PAID };
enum { CHECK, REMIND, PAY, LATER };

struct basket_event {
    unsigned kind;
    uint64_t cents __attribute__((aligned(8)));
};

struct fixture {
    char url[URL_MAX];
    struct det_spec *old, *new;
    struct det_store *store;
    struct det_runtime *runtime;
};

static struct det_spec *read_spec(const char *text)
{
    const struct det_spec_options options = { 0 };
    struct det_spec *spec;

    assert_int_equal(det_spec_read("order.fsm", text, strlen(text), &options, &spec), 0);
    if (det_spec_machine(spec) == NULL)
        fail_msg("%s", det_spec_diagnostics(spec)->items[0].text);
    return spec;
}

static void open_store(struct fixture *f, bool is_read_only)
{
    const struct det_store_options options = { .is_read_only = is_read_only };
    struct det_error error = { 0 };
    struct det_store *store;

    if (det_store_open_with(f->url, &options, &store, &error) < 0)
        fail_msg("%s", error.text);
    f->store = store;
}

static void close_store(struct fixture *f)
{
    det_runtime_close(f->runtime);
    f->runtime = NULL;
    det_store_close(f->store);
    f->store = NULL;
}

static void send(
    struct fixture *f, const struct det_machine *machine, const char *id, unsigned kind)
{
    struct basket_event event = { .kind = kind, .cents = 42 };

    assert_int_equal(det_runtime_send(f->runtime, machine, id, &event, NULL, NULL, NULL), 0);
}

static void open_runtime(struct fixture *f)
{
    const struct det_runtime_options options = { .is_passive = true };

    assert_int_equal(det_runtime_open(f->store, &options, &f->runtime, NULL), 0);
}

/* o-1 waits with two timers; o-2 has paid, and its effect has not ended; o-3 has a deferred event
 * and a snapshot, and its first events are gone. */
static void fill(struct fixture *f)
{
    const struct det_machine *old = det_spec_machine(f->old);
    uint64_t count;

    open_runtime(f);
    assert_int_equal(det_runtime_start(f->runtime, old, "o-1", NULL, NULL, NULL, NULL), 0);
    assert_int_equal(det_runtime_start(f->runtime, old, "o-2", NULL, NULL, NULL, NULL), 0);
    assert_int_equal(det_runtime_start(f->runtime, old, "o-3", NULL, NULL, NULL, NULL), 0);
    send(f, old, "o-1", CHECK);
    send(f, old, "o-2", CHECK);
    send(f, old, "o-2", PAY);
    send(f, old, "o-2", REMIND);
    send(f, old, "o-3", CHECK);
    send(f, old, "o-3", PAY);
    send(f, old, "o-3", CHECK);
    send(f, old, "o-3", LATER);
    assert_int_equal(det_runtime_snapshot(f->runtime, old, "o-3", NULL), 0);
    assert_int_equal(det_runtime_prune(f->runtime, old, "o-3", 3, &count, NULL), 0);
    assert_int_equal(count, 3);
    close_store(f);
}

static struct fixture *open_fixture(const char *new_text)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    place(f->url);
    f->old = read_spec(OLD);
    f->new = read_spec(new_text);
    open_store(f, false);
    fill(f);
    return f;
}

static void close_fixture(struct fixture *f)
{
    close_store(f);
    det_spec_close(f->old);
    det_spec_close(f->new);
    leave();
    free(f);
}

static int migrate(
    struct fixture *f, const struct det_rename *by, size_t count, uint64_t *ret,
    struct det_error *reterr)
{
    return f->store->ops->migrate(f->store, det_spec_machine(f->new), by, count, ret, reterr);
}

static void migrate_fully(struct fixture *f, const struct det_rename *by, size_t count)
{
    struct det_error error = { 0 };
    uint64_t rows = 0;

    open_store(f, false);
    if (migrate(f, by, count, &rows, &error) < 0)
        fail_msg("%s", error.text);
    assert_true(rows > 0);
}

static unsigned state_of(struct fixture *f, const char *id)
{
    struct det_instance instance;

    assert_int_equal(
        det_runtime_get(f->runtime, det_spec_machine(f->new), id, &instance, NULL, NULL), 0);
    return instance.state;
}

static int add_drift(void *context, const struct det_drift *drift)
{
    (void)context;
    fail_msg("%s", drift->text);
    return 1;
}

static int count_finding(void *context, const struct det_store_finding *row)
{
    (void)context;
    fail_msg("%s", row->text);
    return 1;
}

/* When the timers of a machine are due, by their ids. */
struct dues {
    const struct det_machine *machine;
    det_time at[2];
};

static int take_timer(void *context, const struct det_timer_record *row)
{
    struct dues *dues = context;
    int id = det_machine_find_timer(dues->machine, row->name);

    assert_true(id == 0 || id == 1);
    assert_int_equal(row->event, REMIND);
    dues->at[id] = row->due;
    return 0;
}

static int take_effect(void *context, const struct det_pending_effect *row)
{
    (void)snprintf(context, 100, "%s", row->name);
    return 0;
}

static int count_logged(void *context, const struct det_store_logged *row)
{
    (void)row;
    ++*(uint64_t *)context;
    return 0;
}

static int check_logged(void *context, const struct det_store_logged *row)
{
    const struct det_machine *machine = *(const struct det_machine *const *)context;

    assert_true(!row->from || det_machine_find_state(machine, row->from) >= 0);
    assert_true(det_machine_find_state(machine, row->to) >= 0);
    assert_true(!row->event || det_machine_find_event(machine, row->event) >= 0);
    if (row->event && strcmp(row->event, "pay") == 0) {
        assert_int_equal(det_machine_find_state(machine, row->from), WAITING);
        assert_int_equal(det_machine_find_state(machine, row->to), PAID);
    }
    return 0;
}

/* The log has the current names. */
static void check_log(struct det_store *store, const struct det_machine *machine)
{
    const struct det_store_log_query query = { .state = machine->states[WAITING].name };
    uint64_t next = 0, found = 0;

    assert_int_equal(det_store_log(store, NULL, check_logged, &machine, &next), 0);
    assert_true(next > 10);
    assert_int_equal(det_store_log(store, &query, count_logged, &found, &next), 0);
    assert_int_equal(found, 3);
}

/* All rows are there under the new names, and the instances continue. */
static void check_all(struct fixture *f)
{
    const struct det_machine *new = det_spec_machine(f->new);
    struct dues dues = { .machine = new };
    char effect[100] = "";
    struct det_instance instance;
    uint64_t steps;

    check_log(f->store, new);
    open_runtime(f);
    assert_int_equal(det_runtime_serve(f->runtime, new, NULL), 0);
    assert_int_equal(state_of(f, "o-1"), WAITING);
    assert_int_equal(state_of(f, "o-2"), PAID);
    assert_int_equal(state_of(f, "o-3"), WAITING);
    assert_int_equal(det_runtime_timers(f->runtime, new, "o-1", take_timer, &dues, NULL), 0);
    assert_int_equal(dues.at[1] - dues.at[0], DET_DAY);
    assert_int_equal(det_runtime_effects(f->runtime, new, "o-2", take_effect, effect, NULL), 0);
    assert_string_equal(effect, new->effects[0].name);
    for (int i = 1; i <= 3; i++) {
        char id[8];

        (void)snprintf(id, sizeof id, "o-%d", i);
        assert_int_equal(det_runtime_verify(f->runtime, new, id, add_drift, NULL, &steps, NULL), 0);
    }
    /* Previous states, from the events and from the snapshot. */
    assert_int_equal(det_runtime_get(f->runtime, new, "o-2", &instance, NULL, NULL), 0);
    assert_int_equal(instance.history[0], WAITING);
    assert_int_equal(det_runtime_get(f->runtime, new, "o-3", &instance, NULL, NULL), 0);
    assert_int_equal(instance.history_count, 3);
    assert_int_equal(instance.history[0], PAID);
    assert_int_equal(instance.history[1], WAITING);
    /* They continue: the deferred event of o-3 is accepted when it has paid. */
    send(f, new, "o-1", PAY);
    assert_int_equal(state_of(f, "o-1"), PAID);
    send(f, new, "o-3", PAY);
    assert_int_equal(det_runtime_get(f->runtime, new, "o-3", &instance, NULL, NULL), 0);
    assert_int_equal(instance.deferred_count, 0);
    assert_int_equal(det_runtime_verify(f->runtime, new, "o-3", add_drift, NULL, &steps, NULL), 0);
    det_runtime_close(f->runtime);
    f->runtime = NULL;
    assert_int_equal(f->store->ops->check(f->store, count_finding, NULL, NULL), 0);
}

static void migration_renames_everything_stored(void **state)
{
    struct fixture *f = open_fixture(NEW);

    (void)state;
    migrate_fully(f, renames, 5);
    check_all(f);
    close_fixture(f);
}

/* Two openings that did not migrate; in a shared store the second one also writes. */
static void log_reader_sees_renames_since_it_was_opened(void **state)
{
    struct fixture *f = open_fixture(SWAPPED), reader = *f;

    (void)state;
    open_store(&reader, true);
    migrate_fully(f, swaps, 4);
    check_log(reader.store, det_spec_machine(f->new));
    close_store(&reader);
    close_fixture(f);
}

static void names_may_be_exchanged(void **state)
{
    struct fixture *f = open_fixture(SWAPPED);

    (void)state;
    migrate_fully(f, swaps, 4);
    check_all(f);
    close_fixture(f);
}

static void renames_are_known_after_a_reopen(void **state)
{
    struct fixture *f = open_fixture(SWAPPED);

    (void)state;
    migrate_fully(f, swaps, 4);
    close_store(f);
    open_store(f, false);
    check_all(f);
    close_store(f);
    open_store(f, true);
    assert_int_equal(f->store->ops->serve(f->store, det_spec_machine(f->new), NULL), 0);
    close_fixture(f);
}

static void names_may_change_again_and_back(void **state)
{
    struct fixture *f = open_fixture(NEW);
    static const struct det_rename back[] = {
        { DET_NAME_STATE, "settling", "waiting" }, { DET_NAME_STATE, "settled", "paid" },
        { DET_NAME_EVENT, "nag", "remind" },       { DET_NAME_EFFECT, "stamp", "print" },
        { DET_NAME_TIMER, "alarm", "bell" },
    };
    struct det_spec *new = f->new;

    (void)state;
    migrate_fully(f, renames, 5);
    close_store(f);
    f->new = f->old;
    migrate_fully(f, back, 5);
    close_store(f);
    f->new = new;
    migrate_fully(f, renames, 5);
    check_all(f);
    close_fixture(f);
}

#define BORN(one, two)                                   \
    "#define FSM_NAME order\n#define FSM_PREFIX ORDER\n" \
    "STATE(ONE, " one ", INITIAL) STATE(TWO, " two ") EVENT(GO, go)\nON(ONE, GO, TWO)\n"

static const struct det_rename exchange[] = { { DET_NAME_STATE, "a", "b" },
                                              { DET_NAME_STATE, "b", "a" } };

/* Opens a store with o-1, which has just started. */
static struct fixture *open_born(void)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    place(f->url);
    f->old = read_spec(BORN("a", "b"));
    f->new = read_spec(BORN("b", "a"));
    open_store(f, false);
    open_runtime(f);
    assert_int_equal(
        det_runtime_start(f->runtime, det_spec_machine(f->old), "o-1", NULL, NULL, NULL, NULL), 0);
    return f;
}

static void close_born(struct fixture *f)
{
    det_runtime_close(f->runtime);
    f->runtime = NULL;
    assert_int_equal(f->store->ops->check(f->store, count_finding, NULL, NULL), 0);
    close_fixture(f);
}

/* No instance has an event yet, so only the start has the first state. */
static void instances_started_before_and_after_a_rename_differ(void **state)
{
    struct fixture *f = open_born();
    const struct det_machine *new = det_spec_machine(f->new);
    uint64_t steps;

    (void)state;
    close_store(f);
    migrate_fully(f, exchange, 2);
    open_runtime(f);
    assert_int_equal(det_runtime_start(f->runtime, new, "o-2", NULL, NULL, NULL, NULL), 0);
    for (uint64_t i = 0; i < 2; i++) {
        assert_int_equal(
            det_runtime_verify(f->runtime, new, "o-1", add_drift, NULL, &steps, NULL), 0);
        assert_int_equal(
            det_runtime_verify(f->runtime, new, "o-2", add_drift, NULL, &steps, NULL), 0);
        assert_int_equal(steps, i);
        if (i == 1)
            break;
        send(f, new, "o-1", 0);
        send(f, new, "o-2", 0);
        close_store(f);
        open_store(f, false);
        open_runtime(f);
    }
    close_born(f);
}

/* The events before it were deleted with their positions. */
static void pruned_instance_counts_as_started_before_a_rename(void **state)
{
    struct fixture *f = open_born();
    const struct det_machine *old = det_spec_machine(f->old), *new = det_spec_machine(f->new);
    uint64_t count;

    (void)state;
    send(f, old, "o-1", 0);
    assert_int_equal(det_runtime_start(f->runtime, old, "o-2", NULL, NULL, NULL, NULL), 0);
    assert_int_equal(det_runtime_snapshot(f->runtime, old, "o-1", NULL), 0);
    assert_int_equal(det_runtime_prune(f->runtime, old, "o-1", 1, &count, NULL), 0);
    assert_int_equal(count, 1);
    close_store(f);
    migrate_fully(f, exchange, 2);
    open_runtime(f);
    send(f, new, "o-2", 0);
    assert_int_equal(det_runtime_start(f->runtime, new, "o-3", NULL, NULL, NULL, NULL), 0);
    assert_int_equal(det_runtime_verify(f->runtime, new, "o-2", add_drift, NULL, &count, NULL), 0);
    assert_int_equal(det_runtime_verify(f->runtime, new, "o-3", add_drift, NULL, &count, NULL), 0);
    close_born(f);
}
#undef BORN

static int take_machine(void *context, const char *name, uint32_t version, const char *spec)
{
    char *text = context;

    assert_string_equal(name, "order");
    assert_int_equal(version, 1);
    (void)snprintf(text, 4000, "%s", spec);
    return 0;
}

static void the_definition_is_the_newest_from_then_on(void **state)
{
    struct fixture *f = open_fixture(NEW);
    char spec[4000] = "";

    (void)state;
    migrate_fully(f, renames, 5);
    assert_int_equal(f->store->ops->machines(f->store, take_machine, spec), 0);
    assert_non_null(strstr(spec, "settling"));
    close_fixture(f);
}

static void migration_that_does_not_fit_changes_nothing(void **state)
{
    struct fixture *f = open_fixture(NEW);
    struct det_error error = { 0 };
    uint64_t rows = 7;

    (void)state;
    open_store(f, false);
    assert_int_equal(migrate(f, renames, 4, &rows, &error), DET_ERR_VERSION);
    assert_non_null(strstr(error.text, "bell"));
    assert_int_equal(rows, 7);
    close_store(f);
    open_store(f, false);
    assert_int_equal(f->store->ops->serve(f->store, det_spec_machine(f->old), NULL), 0);
    assert_int_equal(
        f->store->ops->serve(f->store, det_spec_machine(f->new), &error), DET_ERR_VERSION);
    assert_int_equal(f->store->ops->check(f->store, count_finding, NULL, NULL), 0);
    close_store(f);
    open_store(f, true);
    assert_int_equal(migrate(f, renames, 5, &rows, &error), DET_ERR_READ_ONLY);
    close_fixture(f);
}

static void damaged_instance_is_not_renamed(void **state)
{
    struct fixture *f = open_fixture(NEW);
    struct det_error error = { 0 };
    uint64_t rows;

    (void)state;
    spoil(f->url, "instances");
    open_store(f, false);
    assert_int_equal(migrate(f, renames, 5, &rows, &error), DET_ERR_CORRUPT);
    assert_non_null(strstr(error.text, "is damaged"));
    assert_int_equal(f->store->ops->serve(f->store, det_spec_machine(f->old), NULL), 0);
    close_fixture(f);
}

static int note_finding(void *context, const struct det_store_finding *row)
{
    assert_string_equal(row->id, "o-3");
    assert_non_null(strstr(row->text, "snapshot"));
    ++*(unsigned *)context;
    return 0;
}

/* A damaged snapshot is not used: the head has the same content. */
static void a_damaged_snapshot_is_left_as_it_is(void **state)
{
    struct fixture *f = open_fixture(NEW);
    unsigned count = 0;

    (void)state;
    spoil(f->url, "snapshots");
    migrate_fully(f, renames, 5);
    assert_int_equal(f->store->ops->check(f->store, note_finding, NULL, &count), 0);
    assert_true(count > 0);
    open_runtime(f);
    assert_int_equal(state_of(f, "o-3"), WAITING);
    send(f, det_spec_machine(f->new), "o-3", PAY);
    assert_int_equal(state_of(f, "o-3"), PAID);
    close_fixture(f);
}

static void heads_are_unchanged_when_no_state_is_renamed(void **state)
{
    struct fixture *f = open_fixture(SPEC("waiting", "paid", "nag", "print", "bell", "gong"));

    (void)state;
    migrate_fully(f, &renames[2], 1);
    check_all(f);
    close_fixture(f);
}

static void events_after_a_rename_have_the_new_names(void **state)
{
    struct fixture *f = open_fixture(SWAPPED);
    const struct det_machine *new = det_spec_machine(f->new);
    uint64_t count, steps;

    (void)state;
    migrate_fully(f, swaps, 4);
    open_runtime(f);
    /* All events go, and so do the positions that they had; the next ones must not be taken for
     * old ones. */
    for (int i = 1; i <= 3; i++) {
        char id[8];

        (void)snprintf(id, sizeof id, "o-%d", i);
        assert_int_equal(det_runtime_snapshot(f->runtime, new, id, NULL), 0);
        assert_int_equal(det_runtime_prune(f->runtime, new, id, 99, &count, NULL), 0);
    }
    close_store(f);
    open_store(f, false);
    open_runtime(f);
    send(f, new, "o-1", PAY);
    assert_int_equal(state_of(f, "o-1"), PAID);
    assert_int_equal(det_runtime_verify(f->runtime, new, "o-1", add_drift, NULL, &steps, NULL), 0);
    assert_int_equal(steps, 1);
    close_fixture(f);
}

/* A run in which memory fails leaves the store unchanged or migrated. */
static int migrate_poorly(struct det_test_memory *memory, void *argument)
{
    struct fixture *f = argument;
    const struct det_store_options options = { .allocator = &memory->allocator };
    struct det_store *store;
    uint64_t rows;
    int r = det_store_open_with(f->url, &options, &store, NULL);

    if (r < 0)
        return r;
    r = store->ops->migrate(store, det_spec_machine(f->new), swaps, 4, &rows, NULL);
    det_store_close(store);
    return r;
}

static void failed_allocation_leaves_no_partial_change(void **state)
{
    struct fixture *f = open_fixture(SWAPPED);

    (void)state;
    /* Every run that succeeds exchanges the names once more. */
    det_test_each_failure(migrate_poorly, f);
    open_store(f, false);
    assert_int_equal(f->store->ops->check(f->store, count_finding, NULL, NULL), 0);
    close_fixture(f);
}

static const struct CMUnitTest migrate_cases[] = {
    cmocka_unit_test(migration_renames_everything_stored),
    cmocka_unit_test(log_reader_sees_renames_since_it_was_opened),
    cmocka_unit_test(names_may_be_exchanged),
    cmocka_unit_test(renames_are_known_after_a_reopen),
    cmocka_unit_test(names_may_change_again_and_back),
    cmocka_unit_test(instances_started_before_and_after_a_rename_differ),
    cmocka_unit_test(pruned_instance_counts_as_started_before_a_rename),
    cmocka_unit_test(the_definition_is_the_newest_from_then_on),
    cmocka_unit_test(migration_that_does_not_fit_changes_nothing),
    cmocka_unit_test(damaged_instance_is_not_renamed),
    cmocka_unit_test(a_damaged_snapshot_is_left_as_it_is),
    cmocka_unit_test(heads_are_unchanged_when_no_state_is_renamed),
    cmocka_unit_test(events_after_a_rename_have_the_new_names),
    cmocka_unit_test(failed_allocation_leaves_no_partial_change),
};

#endif
