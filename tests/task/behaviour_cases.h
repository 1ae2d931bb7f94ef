/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* behaviour_cases.h - what holds when many threads use one supervisor at once, in every world:
 * behaviour_crowd_test.c runs it over the seeds of a simulation, behaviour_threads_test.c on real
 * threads. The suite that includes this says how a laboratory is opened. */
#ifndef DET_TASK_BEHAVIOUR_CASES_H
#define DET_TASK_BEHAVIOUR_CASES_H

#include "task/behaviour_test.h"

#define CROWD_MAX 64

static struct lab *crowd_lab(const struct det_tasks_options *options);

/* One of the crowd. */
struct member {
    struct lab *lab;
    void (*run)(struct member *member);
    struct det_thread *thread;
    unsigned number;
    struct script script;
    struct det_admitted admitted;
    struct det_waiter *waiter;
    struct det_task_end end;
    struct det_error error;
    det_task_id target, found;
    int result;
};

struct crowd {
    struct lab *lab;
    size_t count, done; /* how many have come to their end, under the lab's mutex */
    struct member members[CROWD_MAX];
};

static inline void member_main(void *argument)
{
    struct member *member = argument;
    struct lab *lab = member->lab;
    struct crowd *crowd =
        (struct crowd
             *)(void *)((char *)(member - member->number) - offsetof(struct crowd, members));

    member->run(member);
    det_mutex_lock(lab->world, lab->mutex);
    crowd->done++;
    det_condition_broadcast(lab->world, lab->changed);
    det_mutex_unlock(lab->world, lab->mutex);
}

static inline struct crowd *crowd_start(
    struct lab *lab, size_t count, const char *acts, void (*run)(struct member *),
    det_task_id target)
{
    struct crowd *crowd = calloc(1, sizeof *crowd);

    assert_non_null(crowd);
    crowd->lab = lab;
    crowd->count = count;
    for (unsigned i = 0; i < count; i++) {
        struct member *member = &crowd->members[i];

        *member = (struct member){ .lab = lab, .run = run, .number = i, .target = target };
        member->script = (struct script){ .acts = acts, .lab = lab, .kind = LAB_STEP };
        assert_int_equal(
            det_thread_start(lab->world, "member", member_main, member, &member->thread), 0);
    }
    return crowd;
}

static inline void crowd_await(struct crowd *crowd, size_t done)
{
    struct lab *lab = crowd->lab;
    int r = 0;

    det_mutex_lock(lab->world, lab->mutex);
    while (crowd->done < done && r == 0)
        r = det_condition_wait(lab->world, lab->changed, lab->mutex, DET_NEVER);
    det_mutex_unlock(lab->world, lab->mutex);
    assert_int_equal(r, 0);
}

static inline void crowd_join(struct crowd *crowd)
{
    for (size_t i = 0; i < crowd->count; i++)
        det_thread_join(crowd->lab->world, crowd->members[i].thread);
}

static inline size_t crowd_count(const struct crowd *crowd, int result)
{
    size_t count = 0;

    for (size_t i = 0; i < crowd->count; i++)
        count += crowd->members[i].result == result;
    return count;
}

static inline unsigned crowd_runs(const struct crowd *crowd, unsigned *ret_released)
{
    unsigned runs = 0;

    *ret_released = 0;
    for (size_t i = 0; i < crowd->count; i++) {
        runs += crowd->members[i].script.runs;
        *ret_released += crowd->members[i].script.released;
    }
    return runs;
}

static inline void member_name(const struct member *member, char target[16])
{
    snprintf(target, 16, "m%u", member->number);
}

/* What members do. */

static inline void add_own_name(struct member *member)
{
    char name[16];
    struct det_task_spec spec;

    member_name(member, name);
    spec = script_spec(&member->script, name, &lab_once);
    member->result =
        det_tasks_add(member->lab->tasks, &spec, &member->waiter, &member->script.id, NULL);
}

static inline void try_own_name(struct member *member)
{
    char name[16];
    struct det_task_spec spec;

    member_name(member, name);
    spec = script_spec(&member->script, name, &lab_once);
    member->result = det_tasks_try_add(member->lab->tasks, &spec, NULL, &member->script.id, NULL);
}

static inline void try_submit_own(struct member *member)
{
    char name[16];
    struct det_task_spec spec;

    member_name(member, name);
    spec = script_spec(&member->script, name, &lab_once);
    member->result = det_slot_try_submit(
        member->lab->tasks,
        &(struct det_submission){ .slot = "slot", .admission = DET_ADMIT_QUEUE, .task = &spec },
        NULL, &member->admitted, NULL);
}

static inline void add_same_name(struct member *member)
{
    struct det_task_spec spec = script_spec(&member->script, "same", &lab_once);

    member->result =
        det_tasks_add(member->lab->tasks, &spec, NULL, &member->script.id, &member->error);
}

static inline void remove_target(struct member *member)
{
    member->result = det_tasks_remove(member->lab->tasks, member->target);
}

static inline void cancel_target(struct member *member)
{
    member->result = det_tasks_stop(member->lab->tasks, member->target, DET_NEVER);
    member->found = det_tasks_find(member->lab->tasks, "target");
}

static inline void replace_own(struct member *member)
{
    char name[16];

    member_name(member, name);
    member->result = lab_submit(
        member->lab, "slot", DET_ADMIT_REPLACE, &member->script, name, &member->admitted);
}

static inline void drop_own(struct member *member)
{
    char name[16];

    member_name(member, name);
    member->result = lab_submit(
        member->lab, "slot", DET_ADMIT_DROP_IF_RUNNING, &member->script, name, &member->admitted);
}

static inline void shut_down(struct member *member)
{
    member->result = member->number == 0 ? det_tasks_run(member->lab->tasks, &member->error)
                                         : det_tasks_shutdown(member->lab->tasks, &member->error);
}

static inline void wait_for_own_end(struct member *member)
{
    add_own_name(member);
    if (member->result == 0)
        member->result = det_waiter_wait(member->waiter, DET_NEVER, &member->end);
}

/* The cases. */

static void concurrent_adds_all_register_and_can_be_removed(void **unused)
{
    struct lab *lab = crowd_lab(NULL);
    struct crowd *crowd = crowd_start(lab, CROWD_MAX, "h", add_own_name, 0);

    (void)unused;
    crowd_join(crowd);
    assert_int_equal(crowd_count(crowd, 0), CROWD_MAX);
    assert_int_equal(det_tasks_counts(lab->tasks).registered, CROWD_MAX);
    for (size_t i = 0; i < CROWD_MAX; i++)
        for (size_t n = 0; n < i; n++)
            assert_true(crowd->members[i].script.id != crowd->members[n].script.id);
    for (size_t i = 0; i < CROWD_MAX; i++) {
        assert_int_equal(det_tasks_stop(lab->tasks, crowd->members[i].script.id, DET_NEVER), 1);
        det_waiter_close(crowd->members[i].waiter);
    }
    assert_int_equal(det_tasks_counts(lab->tasks).registered, 0);
    lab_close(lab);
    free(crowd);
}

static void exactly_one_concurrent_add_of_a_name_is_accepted(void **unused)
{
    struct lab *lab = crowd_lab(NULL);
    struct crowd *crowd = crowd_start(lab, CROWD_MAX, "h", add_same_name, 0);
    unsigned released;

    (void)unused;
    crowd_join(crowd);
    assert_int_equal(crowd_count(crowd, 0), 1);
    assert_int_equal(crowd_count(crowd, DET_ERR_EXISTS), CROWD_MAX - 1);
    lab_await(lab, DET_TASK_EVENT_ATTEMPT_STARTING, "same", 1);
    assert_int_equal(det_tasks_shutdown(lab->tasks, NULL), 0);
    assert_int_equal(lab_count(lab, DET_TASK_EVENT_TASK_ADD_FAILED, "same"), CROWD_MAX - 1);
    assert_int_equal(lab_count(lab, DET_TASK_EVENT_TASK_ADDED, "same"), 1);
    assert_int_equal(crowd_runs(crowd, &released), 1);
    assert_int_equal(released, CROWD_MAX);
    lab_close(lab);
    free(crowd);
}

static void exactly_one_concurrent_removal_of_an_id_succeeds(void **unused)
{
    (void)unused;
    FOR_EACH_KIND(kind)
    {
        for (unsigned waits = 0; waits < 2; waits++) {
            struct lab *lab = crowd_lab(NULL);
            struct script script = { .acts = "h", .kind = kind };
            struct det_waiter *waiter = lab_add(lab, &script, "target", &lab_once);
            struct crowd *crowd =
                crowd_start(lab, 16, "h", waits ? cancel_target : remove_target, script.id);

            crowd_join(crowd);
            assert_int_equal(crowd_count(crowd, 1), 1);
            assert_int_equal(crowd_count(crowd, 0), 15);
            for (size_t i = 0; i < 16; i++)
                assert_int_equal(crowd->members[i].found, 0);
            assert_int_equal(lab_end(waiter).outcome, DET_TASK_OUTCOME_CANCELLED);
            assert_int_equal(det_tasks_shutdown(lab->tasks, NULL), 0);
            assert_int_equal(lab_count(lab, DET_TASK_EVENT_TASK_FINISHED, "target"), 1);
            assert_int_equal(lab_count(lab, DET_TASK_EVENT_TASK_REMOVED, "target"), 1);
            lab_close(lab);
            free(crowd);
        }
    }
}

/* The loop stands still, and one call fills the intake: of those who only try, one gets in. */
static void only_one_gets_in(void (*try)(struct member *), enum det_task_event_kind requested)
{
    struct lab *lab = crowd_lab(&(struct det_tasks_options){ .intake_max = 1 });
    struct script blocker = { .acts = "b", .kind = LAB_STEP };
    struct det_waiter *waiter = lab_add(lab, &blocker, "blocker", &lab_once);
    struct crowd *crowd;
    unsigned released;
    size_t before;

    lab_await(lab, DET_TASK_EVENT_ATTEMPT_STARTING, "blocker", 1);
    before = lab_count(lab, requested, NULL);
    crowd = crowd_start(lab, 16, "o", try, 0);
    crowd_await(crowd, 15);
    lab_report(lab, &blocker);
    crowd_join(crowd);
    assert_int_equal(crowd_count(crowd, 0), 1);
    assert_int_equal(crowd_count(crowd, DET_ERR_BUSY), 15);
    (void)lab_end(waiter);
    lab_await_ends(lab, 2);
    assert_int_equal(det_tasks_shutdown(lab->tasks, NULL), 0);
    assert_int_equal(lab_count(lab, requested, NULL), before + 1);
    assert_int_equal(crowd_runs(crowd, &released), 1);
    assert_int_equal(released, 16);
    lab_close(lab);
    free(crowd);
}

static void a_nonblocking_add_to_a_full_intake_is_busy_and_publishes_nothing(void **unused)
{
    (void)unused;
    only_one_gets_in(try_own_name, DET_TASK_EVENT_TASK_ADD_REQUESTED);
}

static void a_blocking_add_waits_for_room_in_the_intake(void **unused)
{
    struct lab *lab = crowd_lab(&(struct det_tasks_options){ .intake_max = 1 });
    struct script blocker = { .acts = "b", .kind = LAB_STEP };
    struct det_waiter *waiter = lab_add(lab, &blocker, "blocker", &lab_once);
    struct crowd *crowd;
    unsigned released;

    (void)unused;
    lab_await(lab, DET_TASK_EVENT_ATTEMPT_STARTING, "blocker", 1);
    crowd = crowd_start(lab, 16, "o", add_own_name, 0);
    lab_report(lab, &blocker);
    crowd_join(crowd);
    assert_int_equal(crowd_count(crowd, 0), 16);
    (void)lab_end(waiter);
    for (size_t i = 0; i < 16; i++)
        assert_int_equal(lab_end(crowd->members[i].waiter).outcome, DET_TASK_OUTCOME_COMPLETED);
    assert_int_equal(crowd_runs(crowd, &released), 16);
    assert_int_equal(released, 16);
    lab_close(lab);
    free(crowd);
}

static void concurrent_shutdown_calls_get_the_same_result(void **unused)
{
    struct lab *lab = crowd_lab(&(struct det_tasks_options){ .grace = 20 * DET_MILLISECOND });
    struct script stubborn = { .acts = "s", .kind = LAB_STEP };
    struct det_error late = { 0 };
    struct crowd *crowd;

    (void)unused;
    det_waiter_close(lab_add(lab, &stubborn, "stubborn", NULL));
    lab_await(lab, DET_TASK_EVENT_ATTEMPT_STARTING, "stubborn", 1);
    crowd = crowd_start(lab, 8, "h", shut_down, 0);
    crowd_join(crowd);
    assert_int_equal(crowd_count(crowd, DET_ERR_TIMEOUT), 8);
    assert_int_equal(det_tasks_shutdown(lab->tasks, &late), DET_ERR_TIMEOUT);
    for (size_t i = 0; i < 8; i++)
        assert_string_equal(crowd->members[i].error.text, late.text);
    assert_int_equal(lab_count(lab, DET_TASK_EVENT_SHUTDOWN_REQUESTED, NULL), 1);
    assert_int_equal(lab_count(lab, DET_TASK_EVENT_GRACE_EXCEEDED, NULL), 1);
    assert_int_equal(lab_count(lab, DET_TASK_EVENT_ALL_STOPPED, NULL), 0);
    lab_close(lab);
    free(crowd);
}

static void a_shutdown_ends_every_wait_for_a_task(void **unused)
{
    struct lab *lab = crowd_lab(NULL);
    struct crowd *crowd = crowd_start(lab, 16, "h", wait_for_own_end, 0);

    (void)unused;
    lab_await(lab, DET_TASK_EVENT_ATTEMPT_STARTING, NULL, 16);
    assert_int_equal(det_tasks_shutdown(lab->tasks, NULL), 0);
    crowd_join(crowd);
    for (size_t i = 0; i < 16; i++) {
        assert_int_equal(crowd->members[i].result, 0);
        assert_int_equal(crowd->members[i].end.outcome, DET_TASK_OUTCOME_CANCELLED);
        det_waiter_close(crowd->members[i].waiter);
    }
    lab_close(lab);
    free(crowd);
}

struct one_slot {
    unsigned count;
    uint32_t depth, owners;
    det_task_id owner;
};

static int see_slot(void *user, const struct det_slot_info *info)
{
    struct one_slot *seen = user;

    seen->count++;
    seen->depth = info->depth;
    seen->owners = info->owner_count;
    seen->owner = info->owner;
    return 0;
}

static void concurrent_replacements_leave_one_running_task(void **unused)
{
    struct lab *lab = crowd_lab(NULL);
    struct crowd *crowd = crowd_start(lab, 50, "h", replace_own, 0);
    struct one_slot seen = { 0 };
    unsigned cancelled = 0, superseded = 0;

    (void)unused;
    crowd_join(crowd);
    assert_int_equal(crowd_count(crowd, 0), 50);
    lab_await_ends(lab, 49);
    assert_int_equal(det_slots_each(lab->tasks, see_slot, &seen), 0);
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.owners, 1);
    assert_int_equal(seen.depth, 0);
    for (size_t i = 0; i < 50; i++) {
        struct det_task_end end;

        if (crowd->members[i].script.id == seen.owner)
            continue;
        end = lab_end_of(lab, crowd->members[i].script.id);
        cancelled += end.outcome == DET_TASK_OUTCOME_CANCELLED;
        superseded += end.rejection == DET_REJECTION_SUPERSEDED;
    }
    assert_int_equal(cancelled + superseded, 49);
    assert_int_equal(det_tasks_shutdown(lab->tasks, NULL), 0);
    assert_int_equal(lab_count(lab, DET_TASK_EVENT_TASK_REMOVED, NULL), cancelled + 1);
    lab_close(lab);
    free(crowd);
}

static void one_of_concurrent_drop_if_running_submissions_runs(void **unused)
{
    struct lab *lab = crowd_lab(NULL);
    struct crowd *crowd = crowd_start(lab, 40, "h", drop_own, 0);
    unsigned released;

    (void)unused;
    crowd_join(crowd);
    assert_int_equal(crowd_count(crowd, 0), 1);
    assert_int_equal(crowd_count(crowd, DET_ERR_REFUSED), 39);
    for (size_t i = 0; i < 40; i++)
        assert_int_equal(
            crowd->members[i].admitted.rejection,
            crowd->members[i].result == 0 ? DET_REJECTION_NONE : DET_REJECTION_SLOT_BUSY);
    lab_await(lab, DET_TASK_EVENT_ATTEMPT_STARTING, NULL, 1);
    assert_int_equal(det_tasks_shutdown(lab->tasks, NULL), 0);
    assert_int_equal(lab_count(lab, DET_TASK_EVENT_SLOT_REJECTED, "slot"), 39);
    assert_int_equal(crowd_runs(crowd, &released), 1);
    assert_int_equal(released, 40);
    lab_close(lab);
    free(crowd);
}

static void a_nonblocking_submission_to_a_full_intake_is_busy(void **unused)
{
    (void)unused;
    only_one_gets_in(try_submit_own, DET_TASK_EVENT_SLOT_SUBMITTED);
}

#define CROWD_CASES                                                                         \
    cmocka_unit_test(concurrent_adds_all_register_and_can_be_removed),                      \
        cmocka_unit_test(exactly_one_concurrent_add_of_a_name_is_accepted),                 \
        cmocka_unit_test(exactly_one_concurrent_removal_of_an_id_succeeds),                 \
        cmocka_unit_test(a_nonblocking_add_to_a_full_intake_is_busy_and_publishes_nothing), \
        cmocka_unit_test(a_blocking_add_waits_for_room_in_the_intake),                      \
        cmocka_unit_test(concurrent_shutdown_calls_get_the_same_result),                    \
        cmocka_unit_test(a_shutdown_ends_every_wait_for_a_task),                            \
        cmocka_unit_test(concurrent_replacements_leave_one_running_task),                   \
        cmocka_unit_test(one_of_concurrent_drop_if_running_submissions_runs),               \
        cmocka_unit_test(a_nonblocking_submission_to_a_full_intake_is_busy)

#endif
