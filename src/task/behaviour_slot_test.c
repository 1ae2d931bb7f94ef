/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* behaviour_slot_test.c - one at a time per key: every cell of the table in slot.h, and the ways a
 * slot could be freed too early, too late or twice. */
#include "task/behaviour_test.h"

struct slot_look {
    const char *want;
    bool was_found;
    char name[16], state[16], owner_name[16];
    uint32_t width, depth, depth_max, owner_count;
    det_task_id owner;
    det_time since;
    uint64_t started, rejected, replaced;
    char order[256];
};

static int look_at_slot(void *user, const struct det_slot_info *info)
{
    struct slot_look *look = user;
    size_t used = strlen(look->order);

    snprintf(look->order + used, sizeof look->order - used, "%s ", info->name);
    if (look->want == NULL || strcmp(look->want, info->name) != 0)
        return 0;
    look->was_found = true;
    snprintf(look->name, sizeof look->name, "%s", info->name);
    snprintf(look->state, sizeof look->state, "%s", info->state);
    snprintf(
        look->owner_name, sizeof look->owner_name, "%s", info->owner_name ? info->owner_name : "-");
    look->width = info->width;
    look->depth = info->depth;
    look->depth_max = info->depth_max;
    look->owner_count = info->owner_count;
    look->owner = info->owner;
    look->since = info->since;
    look->started = info->started;
    look->rejected = info->rejected;
    look->replaced = info->replaced;
    return 0;
}

static struct slot_look look_at(struct lab *lab, const char *slot)
{
    struct slot_look look = { .want = slot };

    assert_int_equal(det_slots_each(lab->tasks, look_at_slot, &look), 0);
    return look;
}

static void submit_ok(
    struct lab *lab, const char *slot, enum det_admission admission, struct script *script,
    const char *name)
{
    struct det_admitted admitted;

    assert_int_equal(lab_submit(lab, slot, admission, script, name, &admitted), 0);
    assert_int_equal(admitted.rejection, DET_REJECTION_NONE);
    lab_settle(lab);
}

static void refuse(
    struct lab *lab, const char *slot, enum det_admission admission, struct script *script,
    const char *name, enum det_rejection rejection)
{
    size_t before = lab_count(lab, DET_EVENT_SLOT_REJECTED, slot);
    struct det_task_event event;
    struct det_admitted admitted;

    assert_int_equal(lab_submit(lab, slot, admission, script, name, &admitted), DET_ERR_REFUSED);
    assert_int_equal(admitted.rejection, rejection);
    assert_true(admitted.id > 0);
    assert_false(admitted.is_started);
    lab_settle(lab);
    assert_int_equal(lab_count(lab, DET_EVENT_SLOT_REJECTED, slot), before + 1);
    event = lab_event(lab, DET_EVENT_SLOT_REJECTED, slot, before);
    assert_int_equal(event.id, admitted.id);
    assert_int_equal(event.rejection, rejection);
    assert_int_equal(script->runs, 0);
    assert_int_equal(script->released, 1);
}

static void tell_and_settle(struct lab *lab, struct script *script)
{
    lab_tell(lab, script);
    lab_settle(lab);
}

/* A step that runs until it is told, unless it says otherwise. */
static struct script step_of(const char *acts)
{
    return (struct script){ .acts = acts, .kind = LAB_STEP };
}

static void b50_three_in_one_slot_run_one_after_the_other(void **unused)
{
    (void)unused;
    FOR_EACH_KIND(kind)
    {
        struct lab *lab = lab_open(NULL);
        struct script scripts[3];
        struct det_admitted admitted;
        char name[8];

        for (size_t i = 0; i < 3; i++) {
            scripts[i] = (struct script){ .acts = "s", .kind = kind };
            snprintf(name, sizeof name, "t%zu", i);
            assert_int_equal(
                lab_submit(lab, "a", DET_ADMIT_QUEUE, &scripts[i], name, &admitted), 0);
            assert_int_equal(admitted.is_started, i == 0);
            assert_int_equal(admitted.depth, i);
        }
        for (size_t i = 0; i < 3; i++) {
            lab_settle(lab);
            for (size_t n = 0; n < 3; n++)
                assert_int_equal(scripts[n].runs, n <= i);
            assert_int_equal(look_at(lab, "a").owner, scripts[i].id);
            tell_and_settle(lab, &scripts[i]);
            assert_int_equal(lab_end_of(lab, scripts[i].id).outcome, DET_OUTCOME_COMPLETED);
        }
        assert_int_equal(lab->active_peak, 1);
        assert_false(look_at(lab, "a").was_found);
        lab_close(lab);
    }
}

static void b50_distinct_slots_run_at_the_same_time(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct script *scripts = calloc(128, sizeof *scripts);
    char name[8];

    (void)unused;
    assert_non_null(scripts);
    for (unsigned i = 0; i < 128; i++) {
        scripts[i] = step_of("s");
        snprintf(name, sizeof name, "t%u", i);
        submit_ok(lab, NULL, DET_ADMIT_QUEUE, &scripts[i], name);
    }
    assert_int_equal(lab->active, 128);
    assert_int_equal(det_tasks_counts(lab->tasks).running, 128);
    /* Without a name of its own a slot has that of its task. */
    assert_string_equal(look_at(lab, "t77").state, "running");
    lab_close(lab);
    free(scripts);
}

static void b51_a_replacement_on_an_idle_slot_is_a_plain_start(void **unused)
{
    static const enum det_admission all[] = { DET_ADMIT_REPLACE, DET_ADMIT_REPLACE_ALL,
                                              DET_ADMIT_QUEUE, DET_ADMIT_DROP_IF_RUNNING };

    (void)unused;
    for (size_t i = 0; i < 4; i++) {
        struct lab *lab = lab_open(NULL);
        struct script script = step_of("s");

        submit_ok(lab, "a", all[i], &script, "one");
        assert_int_equal(script.runs, 1);
        assert_string_equal(look_at(lab, "a").state, "running");
        for (size_t n = 0; n < lab_count(lab, DET_EVENT_SLOT_CHANGED, "a"); n++)
            assert_null(
                strstr(lab_event(lab, DET_EVENT_SLOT_CHANGED, "a", n).reason, "terminating"));
        assert_int_equal(lab_count(lab, DET_EVENT_SLOT_SUBMITTED, "a"), 1);
        assert_int_equal(lab_event(lab, DET_EVENT_SLOT_SUBMITTED, "a", 0).id, script.id);
        lab_close(lab);
    }
}

static void b51_a_replacement_starts_when_the_old_one_is_gone(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct script old = step_of("s"), new = step_of("s");
    size_t changes;

    (void)unused;
    submit_ok(lab, "a", DET_ADMIT_QUEUE, &old, "old");
    changes = lab_count(lab, DET_EVENT_SLOT_CHANGED, "a");
    submit_ok(lab, "a", DET_ADMIT_REPLACE, &new, "new");
    assert_string_equal(look_at(lab, "a").state, "terminating");
    assert_true(lab_count(lab, DET_EVENT_SLOT_CHANGED, "a") > changes);
    assert_int_equal(new.runs, 0);
    assert_true(lab_look(lab, old.id).is_removing);
    tell_and_settle(lab, &old);
    assert_int_equal(new.runs, 1);
    assert_int_equal(lab_end_of(lab, old.id).outcome, DET_OUTCOME_CANCELLED);
    assert_true(
        lab_event(lab, DET_EVENT_TASK_REMOVED, "old", 0).sequence <
        lab_event(lab, DET_EVENT_ATTEMPT_STARTING, "new", 0).sequence);
    assert_string_equal(look_at(lab, "a").state, "running");
    lab_close(lab);
}

/* Head replace: the latest wins, those behind it keep their order and their place. */
static void b52_the_latest_replacement_wins_and_the_queue_behind_it_stays(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct script owner = step_of("s"), n = step_of("s"), a = step_of("s"), b = step_of("s"),
                  c = step_of("s");

    (void)unused;
    submit_ok(lab, "x", DET_ADMIT_QUEUE, &owner, "owner");
    submit_ok(lab, "x", DET_ADMIT_QUEUE, &n, "n");
    submit_ok(lab, "x", DET_ADMIT_QUEUE, &a, "a");
    submit_ok(lab, "x", DET_ADMIT_QUEUE, &b, "b");
    submit_ok(lab, "x", DET_ADMIT_REPLACE, &c, "c");
    assert_int_equal(look_at(lab, "x").depth, 3);
    assert_int_equal(lab_end_of(lab, n.id).outcome, DET_OUTCOME_REJECTED);
    assert_int_equal(lab_end_of(lab, n.id).rejection, DET_REJECTION_SUPERSEDED);
    tell_and_settle(lab, &owner);
    assert_int_equal(look_at(lab, "x").owner, c.id);
    tell_and_settle(lab, &c);
    assert_int_equal(look_at(lab, "x").owner, a.id);
    tell_and_settle(lab, &a);
    assert_int_equal(look_at(lab, "x").owner, b.id);
    assert_int_equal(n.runs, 0);
    assert_int_equal(n.released, 1);
    assert_int_equal(lab_count(lab, DET_EVENT_TASK_REMOVE_REQUESTED, "owner"), 1);
    lab_close(lab);
}

static void b52_replace_all_flushes_the_queue(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct script owner = step_of("s"), a = step_of("s"), b = step_of("s"), c = step_of("s"),
                  d = step_of("s");

    (void)unused;
    submit_ok(lab, "x", DET_ADMIT_QUEUE, &owner, "owner");
    submit_ok(lab, "x", DET_ADMIT_QUEUE, &a, "a");
    submit_ok(lab, "x", DET_ADMIT_QUEUE, &b, "b");
    submit_ok(lab, "x", DET_ADMIT_REPLACE_ALL, &c, "c");
    assert_int_equal(lab_end_of(lab, a.id).rejection, DET_REJECTION_PURGED);
    assert_int_equal(lab_end_of(lab, b.id).rejection, DET_REJECTION_PURGED);
    assert_int_equal(look_at(lab, "x").depth, 1);
    /* And again while it terminates. */
    submit_ok(lab, "x", DET_ADMIT_REPLACE_ALL, &d, "d");
    assert_int_equal(lab_end_of(lab, c.id).rejection, DET_REJECTION_PURGED);
    tell_and_settle(lab, &owner);
    assert_int_equal(look_at(lab, "x").owner, d.id);
    assert_int_equal(look_at(lab, "x").depth, 0);
    assert_int_equal(a.runs + b.runs + c.runs, 0);
    lab_close(lab);
}

static void b54_drop_if_running_is_refused_when_busy_and_starts_when_idle(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct script owner = step_of("s"), first = step_of("s"), second = step_of("s"),
                  third = step_of("s"), next = step_of("s");

    (void)unused;
    submit_ok(lab, "a", DET_ADMIT_DROP_IF_RUNNING, &owner, "owner");
    refuse(lab, "a", DET_ADMIT_DROP_IF_RUNNING, &first, "first", DET_REJECTION_SLOT_BUSY);
    assert_string_equal(lab_look(lab, owner.id).state, "running");
    submit_ok(lab, "a", DET_ADMIT_REPLACE, &next, "next");
    refuse(lab, "a", DET_ADMIT_DROP_IF_RUNNING, &second, "second", DET_REJECTION_SLOT_BUSY);
    tell_and_settle(lab, &owner);
    tell_and_settle(lab, &next);
    submit_ok(lab, "a", DET_ADMIT_DROP_IF_RUNNING, &third, "third");
    assert_int_equal(third.runs, 1);
    lab_close(lab);
}

static void depth_of(uint32_t limit)
{
    struct lab *lab = lab_open(&(struct det_tasks_options){ .slot_depth_max = limit });
    struct script owner = step_of("s"), scripts[12], last = step_of("s");
    struct det_admitted admitted;
    char name[8];

    submit_ok(lab, "a", DET_ADMIT_QUEUE, &owner, "owner");
    for (uint32_t i = 0; i < limit; i++) {
        scripts[i] = step_of("s");
        snprintf(name, sizeof name, "t%u", i);
        assert_int_equal(lab_submit(lab, "a", DET_ADMIT_QUEUE, &scripts[i], name, &admitted), 0);
        assert_int_equal(admitted.depth, i + 1);
    }
    scripts[limit] = step_of("s");
    refuse(lab, "a", DET_ADMIT_QUEUE, &scripts[limit], "more", DET_REJECTION_QUEUE_FULL);
    /* A replacement is never refused for the depth. */
    submit_ok(lab, "a", DET_ADMIT_REPLACE, &last, "last");
    assert_int_equal(look_at(lab, "a").depth, limit);
    scripts[limit] = step_of("s");
    refuse(lab, "a", DET_ADMIT_QUEUE, &scripts[limit], "more", DET_REJECTION_QUEUE_FULL);
    lab_close(lab);
}

static void b55_the_depth_of_a_queue_is_a_limit_for_all_but_a_replacement(void **unused)
{
    (void)unused;
    depth_of(1);
    depth_of(3);
    depth_of(10);
}

static void b55_a_slot_where_none_may_wait_still_takes_a_replacement(void **unused)
{
    struct lab *lab = lab_open(&(struct det_tasks_options){ .intake_max = 1 });
    struct script owner = step_of("s"), queued = step_of("s"), next = step_of("s"),
                  latest = step_of("s");

    (void)unused;
    assert_int_equal(
        det_slot_configure(
            lab->tasks, "a", &(struct det_slot_options){ .depth_max = UINT32_MAX }, NULL),
        0);
    submit_ok(lab, "a", DET_ADMIT_QUEUE, &owner, "owner");
    refuse(lab, "a", DET_ADMIT_QUEUE, &queued, "queued", DET_REJECTION_QUEUE_FULL);
    submit_ok(lab, "a", DET_ADMIT_REPLACE, &next, "next");
    submit_ok(lab, "a", DET_ADMIT_REPLACE, &latest, "latest");
    assert_int_equal(look_at(lab, "a").depth, 1);
    assert_int_equal(lab_end_of(lab, next.id).rejection, DET_REJECTION_SUPERSEDED);
    tell_and_settle(lab, &owner);
    assert_int_equal(latest.runs, 1);
    lab_close(lab);
}

static void b56_after_a_shutdown_a_submission_is_refused_as_closed(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct script script = { .acts = "s", .lab = lab };
    struct det_admitted admitted;
    struct det_task_spec spec = script_spec(&script, "late", NULL);

    (void)unused;
    assert_int_equal(det_tasks_shutdown(lab->tasks, NULL), 0);
    assert_int_equal(
        lab_submit(lab, "a", DET_ADMIT_QUEUE, &script, "late", &admitted), DET_ERR_CLOSED);
    assert_int_equal(
        det_slot_try_submit(lab->tasks, "a", DET_ADMIT_REPLACE, &spec, NULL, &admitted, NULL),
        DET_ERR_CLOSED);
    assert_int_equal(script.released, 2);
    assert_int_equal(script.runs, 0);
    lab_close(lab);
}

static void b57_a_queued_id_is_taken_out_once_and_never_starts(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct script owner = step_of("s"), a = step_of("s"), b = step_of("s"), c = step_of("s"),
                  direct = step_of("h");
    struct det_waiter *waiter;

    (void)unused;
    submit_ok(lab, "x", DET_ADMIT_QUEUE, &owner, "owner");
    submit_ok(lab, "x", DET_ADMIT_QUEUE, &a, "a");
    submit_ok(lab, "x", DET_ADMIT_QUEUE, &b, "b");
    submit_ok(lab, "x", DET_ADMIT_QUEUE, &c, "c");
    assert_int_equal(det_tasks_remove(lab->tasks, b.id), 1);
    assert_int_equal(det_tasks_remove(lab->tasks, b.id), 0);
    assert_int_equal(det_tasks_cancel(lab->tasks, a.id, DET_NEVER), 1);
    assert_int_equal(det_tasks_cancel(lab->tasks, a.id, DET_NEVER), 0);
    lab_settle(lab);
    assert_int_equal(lab_end_of(lab, a.id).outcome, DET_OUTCOME_REJECTED);
    assert_int_equal(lab_end_of(lab, a.id).rejection, DET_REJECTION_REMOVED);
    assert_int_equal(lab_end_of(lab, b.id).rejection, DET_REJECTION_REMOVED);
    assert_int_equal(look_at(lab, "x").depth, 1);
    tell_and_settle(lab, &owner);
    assert_int_equal(look_at(lab, "x").owner, c.id);
    assert_int_equal(a.runs + b.runs, 0);
    assert_int_equal(a.released + b.released, 2);
    waiter = lab_add(lab, &direct, "direct", &lab_once);
    assert_int_equal(det_tasks_cancel(lab->tasks, direct.id, DET_NEVER), 1);
    (void)lab_end(waiter);
    lab_close(lab);
}

static void b59_a_stale_removal_frees_nobody_and_starts_nobody(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct script first = step_of("s"), second = step_of("s"), third = step_of("s");

    (void)unused;
    submit_ok(lab, "x", DET_ADMIT_QUEUE, &first, "same");
    submit_ok(lab, "x", DET_ADMIT_QUEUE, &second, "same");
    submit_ok(lab, "x", DET_ADMIT_QUEUE, &third, "same");
    tell_and_settle(lab, &first);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(det_tasks_remove(lab->tasks, first.id), 0);
        assert_int_equal(det_tasks_cancel(lab->tasks, first.id, DET_NEVER), 0);
        lab_settle(lab);
    }
    assert_int_equal(look_at(lab, "x").owner, second.id);
    assert_int_equal(third.runs, 0);
    /* Terminating until it is gone, however often it is asked. */
    assert_int_equal(det_slot_stop(lab->tasks, "x"), 1);
    assert_int_equal(det_slot_stop(lab->tasks, "x"), 0);
    assert_int_equal(det_tasks_remove(lab->tasks, second.id), 0);
    lab_settle(lab);
    assert_string_equal(look_at(lab, "x").state, "terminating");
    assert_int_equal(third.runs, 0);
    tell_and_settle(lab, &second);
    assert_int_equal(look_at(lab, "x").owner, third.id);
    assert_int_equal(third.runs, 1);
    lab_close(lab);
}

static void b60_the_next_one_may_have_the_name_of_the_owner(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct script first = step_of("s"), second = step_of("s");

    (void)unused;
    submit_ok(lab, NULL, DET_ADMIT_QUEUE, &first, "same");
    submit_ok(lab, NULL, DET_ADMIT_REPLACE, &second, "same");
    tell_and_settle(lab, &first);
    assert_int_equal(second.runs, 1);
    assert_int_equal(det_tasks_find(lab->tasks, "same"), second.id);
    lab_close(lab);
}

static void b60_a_head_whose_name_is_taken_is_skipped(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct script direct = step_of("h"), owner = step_of("s"), head = step_of("s"),
                  next = step_of("s");
    struct det_waiter *waiter = lab_add(lab, &direct, "taken", &lab_once);

    (void)unused;
    submit_ok(lab, "x", DET_ADMIT_QUEUE, &owner, "owner");
    submit_ok(lab, "x", DET_ADMIT_QUEUE, &head, "taken");
    submit_ok(lab, "x", DET_ADMIT_QUEUE, &next, "next");
    tell_and_settle(lab, &owner);
    assert_int_equal(lab_end_of(lab, head.id).outcome, DET_OUTCOME_REJECTED);
    assert_int_equal(lab_end_of(lab, head.id).rejection, DET_REJECTION_ALREADY_EXISTS);
    assert_int_equal(head.runs, 0);
    assert_int_equal(look_at(lab, "x").owner, next.id);
    assert_int_equal(det_tasks_find(lab->tasks, "taken"), direct.id);
    det_waiter_close(waiter);
    lab_close(lab);
}

static void b60_a_taken_name_at_the_door_is_refused_and_leaves_no_slot(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct script direct = step_of("h"), script = step_of("s");
    struct det_waiter *waiter = lab_add(lab, &direct, "taken", &lab_once);
    struct det_admitted admitted;
    int r;

    (void)unused;
    r = lab_submit(lab, "x", DET_ADMIT_QUEUE, &script, "taken", &admitted);
    assert_true(r == DET_ERR_EXISTS || r == DET_ERR_REFUSED);
    assert_int_equal(admitted.rejection, DET_REJECTION_ALREADY_EXISTS);
    lab_settle(lab);
    assert_false(look_at(lab, "x").was_found);
    assert_int_equal(script.runs, 0);
    assert_int_equal(script.released, 1);
    det_waiter_close(waiter);
    lab_close(lab);
}

static void b61_nothing_that_is_queued_starts_once_a_shutdown_has_begun(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct script owners[4], queued[4];
    char slot[8], name[8];

    (void)unused;
    for (size_t i = 0; i < 4; i++) {
        owners[i] = step_of("h");
        queued[i] = step_of("o");
        snprintf(slot, sizeof slot, "s%zu", i);
        snprintf(name, sizeof name, "o%zu", i);
        submit_ok(lab, slot, DET_ADMIT_QUEUE, &owners[i], name);
        snprintf(name, sizeof name, "q%zu", i);
        submit_ok(lab, slot, i % 2 ? DET_ADMIT_QUEUE : DET_ADMIT_REPLACE, &queued[i], name);
    }
    assert_int_equal(det_tasks_shutdown(lab->tasks, NULL), 0);
    for (size_t i = 1; i < 4; i += 2) {
        assert_int_equal(queued[i].runs, 0);
        assert_int_equal(lab_end_of(lab, queued[i].id).outcome, DET_OUTCOME_REJECTED);
        assert_int_equal(lab_end_of(lab, queued[i].id).rejection, DET_REJECTION_SHUTTING_DOWN);
    }
    assert_int_equal(lab->end_count, 8);
    assert_string_equal(look_at(lab, "s0").order, "");
    lab_close(lab);
}

static void b63_a_look_shows_state_owner_depth_and_time_sorted_by_name(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct script a = step_of("s"), b = step_of("s"), c = step_of("s");
    det_time wall;
    struct slot_look look;

    (void)unused;
    submit_ok(lab, "zebra", DET_ADMIT_QUEUE, &a, "za");
    submit_ok(lab, "ant", DET_ADMIT_QUEUE, &b, "an");
    wall = det_world_now(lab->world, DET_CLOCK_WALL);
    lab_advance(lab, DET_MINUTE);
    submit_ok(lab, "ant", DET_ADMIT_QUEUE, &c, "next");
    assert_int_equal(
        det_slot_configure(lab->tasks, "idle", &(struct det_slot_options){ 0 }, NULL), 0);
    look = look_at(lab, "ant");
    assert_string_equal(look.order, "ant idle zebra ");
    assert_string_equal(look.state, "running");
    assert_string_equal(look.owner_name, "an");
    assert_int_equal(look.owner, b.id);
    assert_int_equal(look.owner_count, 1);
    assert_int_equal(look.depth, 1);
    assert_int_equal(look.width, 1);
    assert_int_equal(look.depth_max, 100);
    assert_int_equal(look.since, wall);
    assert_int_equal(look.started, 1);
    assert_string_equal(look_at(lab, "idle").state, "idle");
    assert_int_equal(look_at(lab, "idle").owner, 0);
    /* An owner that somebody else removes makes the slot terminating too. */
    assert_int_equal(det_tasks_remove(lab->tasks, b.id), 1);
    lab_settle(lab);
    assert_string_equal(look_at(lab, "ant").state, "terminating");
    assert_int_equal(look_at(lab, "ant").since, wall + DET_MINUTE);
    lab_close(lab);
}

/* Whatever comes first, nothing is lost: the replacement runs, and the slot is its own. */
static void b64_a_replacement_that_meets_the_natural_end_is_not_lost(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct lab *lab = lab_open_seed(seed, NULL);
        struct script old = { .acts = "s", .kind = seed % 2 ? LAB_STEP : LAB_FUNCTION };
        struct script new = step_of("s");
        struct det_admitted admitted;

        submit_ok(lab, "x", DET_ADMIT_QUEUE, &old, "old");
        lab_tell(lab, &old);
        assert_int_equal(lab_submit(lab, "x", DET_ADMIT_REPLACE, &new, "new", &admitted), 0);
        lab_settle(lab);
        assert_int_equal(new.runs, 1);
        assert_int_equal(look_at(lab, "x").owner, new.id);
        assert_int_equal(look_at(lab, "x").depth, 0);
        assert_string_equal(look_at(lab, "x").state, "running");
        (void)lab_end_of(lab, old.id);
        lab_close(lab);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(b50_three_in_one_slot_run_one_after_the_other),
        cmocka_unit_test(b50_distinct_slots_run_at_the_same_time),
        cmocka_unit_test(b51_a_replacement_on_an_idle_slot_is_a_plain_start),
        cmocka_unit_test(b51_a_replacement_starts_when_the_old_one_is_gone),
        cmocka_unit_test(b52_the_latest_replacement_wins_and_the_queue_behind_it_stays),
        cmocka_unit_test(b52_replace_all_flushes_the_queue),
        cmocka_unit_test(b54_drop_if_running_is_refused_when_busy_and_starts_when_idle),
        cmocka_unit_test(b55_the_depth_of_a_queue_is_a_limit_for_all_but_a_replacement),
        cmocka_unit_test(b55_a_slot_where_none_may_wait_still_takes_a_replacement),
        cmocka_unit_test(b56_after_a_shutdown_a_submission_is_refused_as_closed),
        cmocka_unit_test(b57_a_queued_id_is_taken_out_once_and_never_starts),
        cmocka_unit_test(b59_a_stale_removal_frees_nobody_and_starts_nobody),
        cmocka_unit_test(b60_the_next_one_may_have_the_name_of_the_owner),
        cmocka_unit_test(b60_a_head_whose_name_is_taken_is_skipped),
        cmocka_unit_test(b60_a_taken_name_at_the_door_is_refused_and_leaves_no_slot),
        cmocka_unit_test(b61_nothing_that_is_queued_starts_once_a_shutdown_has_begun),
        cmocka_unit_test(b63_a_look_shows_state_owner_depth_and_time_sorted_by_name),
        cmocka_unit_test(b64_a_replacement_that_meets_the_natural_end_is_not_lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
