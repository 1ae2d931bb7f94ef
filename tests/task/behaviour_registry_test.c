/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* behaviour_registry_test.c - who is there: admission, names, ids, removal, limits. What many
 * threads do at once stands in behaviour_cases.h. */
#include "task/behaviour_test.h"
#include "task/bus.h"

static size_t add_failures(struct lab *lab, const char *name, enum det_rejection rejection)
{
    size_t count = lab_count(lab, DET_TASK_EVENT_TASK_ADD_FAILED, name), found = 0;

    for (size_t i = 0; i < count; i++)
        found += lab_event(lab, DET_TASK_EVENT_TASK_ADD_FAILED, name, i).rejection == rejection;
    return found;
}

static void a_duplicate_name_is_refused_and_its_function_does_not_run(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct script first = { .acts = "h" }, second = { .acts = "o", .lab = lab };
    struct det_waiter *waiter = lab_add(lab, &first, "same", &lab_once);
    struct det_task_spec spec = script_spec(&second, "same", &lab_once);
    struct det_waiter *none = NULL;
    struct det_error error = { 0 };
    det_task_id id = 0;

    (void)unused;
    assert_int_equal(det_tasks_add(lab->tasks, &spec, &none, &id, &error), DET_ERR_EXISTS);
    assert_int_equal(error.code, DET_ERR_EXISTS);
    assert_non_null(strstr(error.text, "same"));
    assert_null(none);
    assert_int_equal(id, 0);
    assert_int_equal(second.released, 1);
    assert_int_equal(add_failures(lab, "same", DET_REJECTION_ALREADY_EXISTS), 1);
    assert_int_equal(lab_count(lab, DET_TASK_EVENT_TASK_ADDED, "same"), 1);
    lab_advance(lab, DET_HOUR);
    assert_int_equal(second.runs, 0);
    det_waiter_close(waiter);
    lab_close(lab);
}

static void a_batch_with_a_duplicate_is_refused_as_a_whole(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct script there = { .acts = "h" }, scripts[3] = { 0 };
    struct det_waiter *waiter = lab_add(lab, &there, "taken", &lab_once);
    static const char *const names[] = { "new1", "taken", "new2" };
    struct det_task_spec specs[3];
    struct det_error error = { 0 };

    (void)unused;
    for (size_t i = 0; i < 3; i++) {
        scripts[i] = (struct script){ .acts = "o", .lab = lab };
        specs[i] = script_spec(&scripts[i], names[i], &lab_once);
    }
    assert_int_equal(det_tasks_add_batch(lab->tasks, specs, 3, NULL, &error), DET_ERR_EXISTS);
    assert_non_null(strstr(error.text, "taken"));
    lab_settle(lab);
    assert_int_equal(lab_count(lab, DET_TASK_EVENT_TASK_ADDED, NULL), 1);
    assert_int_equal(add_failures(lab, "taken", DET_REJECTION_ALREADY_EXISTS), 1);
    assert_int_equal(add_failures(lab, "new1", DET_REJECTION_BATCH_REJECTED), 1);
    assert_int_equal(add_failures(lab, "new2", DET_REJECTION_BATCH_REJECTED), 1);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(scripts[i].runs, 0);
        assert_int_equal(scripts[i].released, 1);
    }
    /* It can still be used, and the names are free. */
    assert_int_equal(det_tasks_find(lab->tasks, "new1"), 0);
    assert_int_equal(
        lab_run(lab, &scripts[0], "new1", &lab_once).outcome, DET_TASK_OUTCOME_COMPLETED);
    det_waiter_close(waiter);
    lab_close(lab);
}

static void a_repeated_name_within_a_batch_is_a_duplicate(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct script scripts[2] = { { .acts = "o", .lab = lab }, { .acts = "o", .lab = lab } };
    struct det_task_spec specs[2];

    (void)unused;
    for (size_t i = 0; i < 2; i++)
        specs[i] = script_spec(&scripts[i], "twin", &lab_once);
    assert_int_equal(det_tasks_add_batch(lab->tasks, specs, 2, NULL, NULL), DET_ERR_EXISTS);
    lab_settle(lab);
    assert_int_equal(scripts[0].runs + scripts[1].runs, 0);
    assert_int_equal(scripts[0].released + scripts[1].released, 2);
    lab_close(lab);
}

static void an_empty_batch_has_no_effect(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct script script = { .acts = "o", .lab = lab };
    struct det_task_spec spec = script_spec(&script, "unasked", &lab_once);
    struct det_error error = { 0 };
    det_task_id id = 7;

    (void)unused;
    lab_settle(lab);
    lab->memory.fail_at = lab->memory.calls + 1;
    assert_int_equal(det_tasks_add_batch(lab->tasks, &spec, 0, &id, &error), 0);
    lab->memory.fail_at = 0;
    assert_false(lab->memory.failed);
    lab_settle(lab);
    assert_int_equal(id, 7);
    assert_int_equal(error.code, 0);
    assert_int_equal(script.runs + script.released, 0);
    assert_int_equal(lab_count(lab, DET_TASK_EVENT_TASK_ADD_REQUESTED, NULL), 0);
    lab_close(lab);
}

static void a_batch_is_admitted_before_any_task_of_it_starts(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct script scripts[8];
    struct det_task_spec specs[8];
    det_task_id ids[8] = { 0 };
    char names[8][8];

    (void)unused;
    for (size_t i = 0; i < 8; i++) {
        scripts[i] = (struct script){ .acts = "o", .lab = lab };
        snprintf(names[i], sizeof names[i], "n%zu", i);
        specs[i] = script_spec(&scripts[i], names[i], &lab_once);
    }
    assert_int_equal(det_tasks_add_batch(lab->tasks, specs, 8, ids, NULL), 0);
    lab_settle(lab);
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(scripts[i].runs, 1);
        assert_true(i == 0 || ids[i] > ids[i - 1]);
        assert_int_equal(lab_event(lab, DET_TASK_EVENT_TASK_ADDED, names[i], 0).id, ids[i]);
        assert_true(
            lab_event(lab, DET_TASK_EVENT_TASK_ADDED, names[i], 0).sequence <
            lab_event(lab, DET_TASK_EVENT_ATTEMPT_STARTING, NULL, 0).sequence);
    }
    lab_close(lab);
}

static void run_permits_one_call(void **unused)
{
    struct lab *lab = lab_open(NULL);

    (void)unused;
    assert_int_equal(det_tasks_run(lab->tasks, NULL), 0);
    assert_int_equal(det_tasks_run(lab->tasks, NULL), DET_ERR_BUSY);
    lab_close(lab);
}

static void a_removed_task_is_listed_until_its_end(void **unused)
{
    (void)unused;
    FOR_EACH_KIND(kind)
    {
        struct lab *lab = lab_open(NULL);
        struct script script = { .acts = "s", .kind = kind };
        struct det_waiter *waiter = lab_add(lab, &script, "one", &lab_once);

        lab_settle(lab);
        assert_int_equal(det_tasks_remove(lab->tasks, script.id), 1);
        assert_int_equal(det_tasks_remove(lab->tasks, script.id), 0);
        lab_settle(lab);
        assert_true(lab_inspect(lab, script.id).is_removing);
        assert_int_equal(det_tasks_counts(lab->tasks).registered, 1);
        assert_int_equal(det_tasks_remove(lab->tasks, script.id), 0);
        lab_report(lab, &script);
        (void)lab_end(waiter);
        lab_settle(lab);
        assert_false(lab_inspect(lab, script.id).was_found);
        assert_int_equal(lab_count(lab, DET_TASK_EVENT_TASK_REMOVE_REQUESTED, "one"), 1);
        assert_int_equal(lab_count(lab, DET_TASK_EVENT_TASK_FINISHED, "one"), 1);
        assert_int_equal(lab_count(lab, DET_TASK_EVENT_TASK_REMOVED, "one"), 1);
        lab_close(lab);
    }
}

static void a_name_is_taken_until_its_task_is_fully_removed(void **unused)
{
    (void)unused;
    FOR_EACH_KIND(kind)
    {
        struct lab *lab = lab_open(NULL);
        struct script old = { .acts = "s", .kind = kind };
        struct script new = { .acts = "o", .kind = kind, .lab = lab };
        struct det_waiter *waiter = lab_add(lab, &old, "one", &lab_once);
        struct det_task_spec spec = script_spec(&new, "one", &lab_once);
        det_task_id id = 0;

        lab_settle(lab);
        assert_int_equal(det_tasks_remove(lab->tasks, old.id), 1);
        assert_int_equal(det_tasks_add(lab->tasks, &spec, NULL, &id, NULL), DET_ERR_EXISTS);
        lab_report(lab, &old);
        (void)lab_end(waiter);
        assert_int_equal(det_tasks_add(lab->tasks, &spec, NULL, &id, NULL), 0);
        assert_true(id > old.id);
        lab_close(lab);
    }
}

/* on_end() comes after the removal: there the name is free. */
struct readd {
    struct lab *lab;
    struct script *script;
    int result;
    unsigned ends;
};

static void add_again(void *user, const struct det_task_end *end)
{
    struct readd *readd = user;
    struct det_task_spec spec = script_spec(readd->script, "same", &lab_once);
    det_task_id id = 0;

    (void)end;
    if (readd->ends++ == 0)
        readd->result = det_tasks_add(readd->lab->tasks, &spec, NULL, &id, NULL);
}

static void the_name_is_free_in_on_end(void **unused)
{
    struct lab *lab = lab_new(1);
    struct script script = { .acts = "o", .lab = lab };
    struct readd readd = { .lab = lab, .script = &script, .result = 1 };
    struct det_tasks_options options = { .world = lab->world, .on_end = add_again, .user = &readd };
    struct det_task_spec spec = script_spec(&script, "same", &lab_once);
    det_task_id id;

    (void)unused;
    assert_int_equal(det_tasks_open(&options, &lab->tasks, NULL), 0);
    assert_int_equal(det_tasks_add(lab->tasks, &spec, NULL, &id, NULL), 0);
    assert_int_equal(det_tasks_run(lab->tasks, NULL), 0);
    assert_int_equal(readd.result, 0);
    assert_int_equal(readd.ends, 2);
    assert_int_equal(script.runs, 2);
    det_tasks_close(lab->tasks);
    det_sim_close(lab->sim);
    free(lab);
}

static void the_removal_of_an_unknown_id_publishes_no_event(void **unused)
{
    struct lab *lab = lab_open(NULL);
    size_t before;

    (void)unused;
    lab_settle(lab);
    before = lab->event_count;
    assert_int_equal(det_tasks_remove(lab->tasks, 12345), 0);
    assert_int_equal(det_tasks_remove(lab->tasks, 0), 0);
    assert_int_equal(det_tasks_stop(lab->tasks, 12345, DET_NEVER), 0);
    assert_int_equal(det_tasks_restart(lab->tasks, 12345), 0);
    assert_int_equal(det_tasks_wake(lab->tasks, 12345), 0);
    lab_settle(lab);
    assert_int_equal(lab_count(lab, DET_TASK_EVENT_TASK_REMOVED, NULL), 0);
    assert_int_equal(lab_count(lab, DET_TASK_EVENT_TASK_FINISHED, NULL), 0);
    assert_int_equal(lab->event_count, before);
    lab_close(lab);
}

static void a_forged_event_removes_no_task(void **unused)
{
    static const enum det_task_event_kind forged[] = {
        DET_TASK_EVENT_ATTEMPT_SUCCEEDED,
        DET_TASK_EVENT_TASK_FINISHED,
        DET_TASK_EVENT_TASK_REMOVED,
        DET_TASK_EVENT_ALL_STOPPED,
    };
    struct lab *lab = lab_open_on_loop(NULL);
    struct script script = { .acts = "h", .kind = LAB_STEP };
    struct det_waiter *waiter = lab_add(lab, &script, "one", &lab_once);

    (void)unused;
    lab_settle(lab);
    for (size_t i = 0; i < sizeof forged / sizeof forged[0]; i++) {
        struct det_task_event event = { .kind = forged[i], .id = script.id, .name = "one" };

        det_bus_publish(det_tasks_bus(lab->tasks), &event);
        lab_settle(lab);
    }
    assert_string_equal(lab_inspect(lab, script.id).state, "running");
    assert_int_equal(det_tasks_counts(lab->tasks).registered, 1);
    det_waiter_close(waiter);
    lab_close(lab);
}

static void a_slow_observer_does_not_change_results(void **unused)
{
    for (uint32_t capacity = 1; capacity <= 2; capacity++) {
        struct lab *lab = lab_open(&(struct det_tasks_options){ .bus_capacity = capacity });
        struct script scripts[20], holds = { .acts = "h" };
        struct det_task_spec specs[20];
        struct det_waiter *waiter;
        char names[20][8];

        (void)unused;
        for (size_t i = 0; i < 20; i++) {
            scripts[i] = (struct script){ .acts = "ffo", .lab = lab };
            snprintf(names[i], sizeof names[i], "n%zu", i);
            specs[i] = script_spec(&scripts[i], names[i], NULL);
        }
        waiter = lab_add(lab, &holds, "holds", NULL);
        assert_int_equal(det_tasks_add_batch(lab->tasks, specs, 20, NULL, NULL), 0);
        assert_int_equal(det_tasks_stop(lab->tasks, holds.id, DET_NEVER), 1);
        assert_int_equal(lab_end(waiter).outcome, DET_TASK_OUTCOME_CANCELLED);
        assert_int_equal(det_tasks_run(lab->tasks, NULL), 0);
        for (size_t i = 0; i < 20; i++)
            assert_int_equal(scripts[i].runs, 3);
        assert_int_equal(det_tasks_counts(lab->tasks).registered, 0);
        lab_close(lab);
    }
}

static int see_order(void *user, const struct det_task_info *info)
{
    det_task_id *before = user;

    if (info->id <= *before)
        return DET_ERR_CONFLICT;
    *before = info->id;
    return 0;
}

static int stop_looking(void *user, const struct det_task_info *info)
{
    (void)user;
    (void)info;
    return -4711;
}

static void tasks_are_listed_by_id_and_every_event_has_an_id(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct script scripts[10], again = { .acts = "o" };
    struct det_waiter *waiters[10];
    det_task_id last = 0;
    char name[8];

    (void)unused;
    for (size_t i = 0; i < 10; i++) {
        scripts[i] = (struct script){ .acts = "h", .kind = LAB_STEP };
        snprintf(name, sizeof name, "n%zu", 9 - i);
        waiters[i] = lab_add(lab, &scripts[i], name, &lab_once);
    }
    assert_int_equal(det_tasks_each(lab->tasks, see_order, &last), 0);
    assert_int_equal(last, scripts[9].id);
    assert_int_equal(det_tasks_each(lab->tasks, stop_looking, NULL), -4711);
    for (size_t i = 0; i < 10; i++) {
        assert_int_equal(det_tasks_remove(lab->tasks, scripts[i].id), 1);
        (void)lab_end(waiters[i]);
    }
    (void)lab_run(lab, &again, "n9", &lab_once);
    assert_true(again.id > scripts[9].id);
    lab_settle(lab);
    for (size_t i = 0; i < lab->event_count; i++) {
        const struct det_task_event *event = &lab->events[i];
        size_t number = (size_t)(event->name[1] - '0');

        assert_int_equal(event->name[0], 'n');
        assert_true(event->id == scripts[9 - number].id || (number == 9 && event->id == again.id));
    }
    lab_close(lab);
}

static void no_task_is_admitted_after_a_shutdown(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct script script = { .acts = "o", .lab = lab };
    struct det_task_spec spec = script_spec(&script, "late", &lab_once);
    struct det_task_group_spec group = { .name = "group" };
    det_task_id id = 0;

    (void)unused;
    assert_int_equal(det_tasks_shutdown(lab->tasks, NULL), 0);
    assert_int_equal(det_tasks_add(lab->tasks, &spec, NULL, &id, NULL), DET_ERR_CLOSED);
    assert_int_equal(det_tasks_try_add(lab->tasks, &spec, NULL, &id, NULL), DET_ERR_CLOSED);
    assert_int_equal(det_tasks_add_batch(lab->tasks, &spec, 1, NULL, NULL), DET_ERR_CLOSED);
    assert_int_equal(det_tasks_add_batch(lab->tasks, NULL, 0, NULL, NULL), 0);
    assert_int_equal(det_tasks_add_group(lab->tasks, &group, NULL), DET_ERR_CLOSED);
    assert_int_equal(script.released, 3);
    assert_int_equal(script.runs, 0);
    lab_close(lab);
}

static void the_limit_of_concurrent_tasks_is_reached_and_not_exceeded(void **unused)
{
    (void)unused;
    FOR_EACH_KIND(kind)
    {
        struct lab *lab =
            lab_open(&(struct det_tasks_options){ .concurrent_max = 4, .pool_threads = 16 });
        struct script *scripts = calloc(100, sizeof *scripts);
        struct det_tasks_counts counts;
        char name[8];

        assert_non_null(scripts);
        for (unsigned i = 0; i < 100; i++) {
            scripts[i] = (struct script){ .acts = "w", .span = DET_SECOND, .kind = kind };
            snprintf(name, sizeof name, "n%u", i);
            det_waiter_close(lab_add(lab, &scripts[i], name, &lab_once));
        }
        lab_settle(lab);
        counts = det_tasks_counts(lab->tasks);
        assert_int_equal(counts.registered, 100);
        assert_int_equal(counts.running, 4);
        assert_int_equal(counts.waiting, 96);
        assert_int_equal(lab->active, 4);
        lab_advance(lab, 10 * DET_SECOND + DET_MILLISECOND);
        assert_int_equal(det_tasks_counts(lab->tasks).registered, 60);
        assert_int_equal(lab->active_peak, 4);
        /* First come, first served. */
        for (unsigned i = 0; i < 44; i++) {
            snprintf(name, sizeof name, "n%u", i);
            assert_string_equal(
                lab_event(lab, DET_TASK_EVENT_ATTEMPT_STARTING, NULL, i).name, name);
        }
        assert_int_equal(det_tasks_shutdown(lab->tasks, NULL), 0);
        assert_int_equal(lab->active_peak, 4);
        assert_int_equal(lab_count(lab, DET_TASK_EVENT_TASK_REMOVED, NULL), 100);
        lab_close(lab);
        free(scripts);
    }
}

/* The permit is given back before any delay. */
static void a_task_in_backoff_holds_no_permit(void **unused)
{
    struct lab *lab = lab_open(&(struct det_tasks_options){ .concurrent_max = 1 });
    struct script fails = { .acts = "f" }, other = { .acts = "o" };
    struct det_policy policy = { .backoff = { .first = DET_HOUR, .max = DET_HOUR } };
    struct det_waiter *waiter = lab_add(lab, &fails, "fails", &policy);
    det_time began = lab_now(lab);

    (void)unused;
    lab_await(lab, DET_TASK_EVENT_BACKOFF_SCHEDULED, "fails", 1);
    (void)lab_run(lab, &other, "other", &lab_once);
    assert_int_equal(lab_now(lab), began);
    det_waiter_close(waiter);
    lab_close(lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_duplicate_name_is_refused_and_its_function_does_not_run),
        cmocka_unit_test(a_batch_with_a_duplicate_is_refused_as_a_whole),
        cmocka_unit_test(a_repeated_name_within_a_batch_is_a_duplicate),
        cmocka_unit_test(an_empty_batch_has_no_effect),
        cmocka_unit_test(a_batch_is_admitted_before_any_task_of_it_starts),
        cmocka_unit_test(run_permits_one_call),
        cmocka_unit_test(a_removed_task_is_listed_until_its_end),
        cmocka_unit_test(a_name_is_taken_until_its_task_is_fully_removed),
        cmocka_unit_test(the_name_is_free_in_on_end),
        cmocka_unit_test(the_removal_of_an_unknown_id_publishes_no_event),
        cmocka_unit_test(a_forged_event_removes_no_task),
        cmocka_unit_test(a_slow_observer_does_not_change_results),
        cmocka_unit_test(tasks_are_listed_by_id_and_every_event_has_an_id),
        cmocka_unit_test(no_task_is_admitted_after_a_shutdown),
        cmocka_unit_test(the_limit_of_concurrent_tasks_is_reached_and_not_exceeded),
        cmocka_unit_test(a_task_in_backoff_holds_no_permit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
