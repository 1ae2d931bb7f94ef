/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* tree_random_test.c - random trees under random crashes and commands, over many seeds, each run
 * twice; and the same tree when memory runs out.
 *
 * Watched on every event
 *   1. no task starts below a group between its restart, failure or stop and its next start, except
 *      those before the culprit of rest-for-one;
 *   2. direct members that a restart stops are stopped in reverse order;
 * and at the end
 *   3. a task without an unmet dependency runs: none is forgotten;
 *   4. all that were added have ended, dependents before what they depend on. */
#include "os/sim/seeds_cases.h"
#include "task/tree_test.h"

#define GROUPS_MAX 6
#define TASKS_MAX  24

struct watched_group {
    char name[8];
    int parent; /* -1: the top */
    enum det_strategy strategy;
    int order; /* in its parent */
    int next_order;
    bool is_closed;
    int closed_from; /* members from this order on */
    int last_stopped;
    bool is_repairing;
};

struct watched_task {
    int group;
    int order;
    int need; /* -1: none */
    enum det_condition_kind when;
    bool is_alive;
    bool is_touched; /* by a command, since its last start */
};

struct wild {
    struct stage stage;
    struct watched_group groups[GROUPS_MAX];
    struct watched_task tasks[TASKS_MAX];
    int group_count, task_count;
    bool is_ending;
    uint64_t hash;
    unsigned added;
};

static struct wild wild;

static uint64_t below(uint64_t bound)
{
    return det_sim_random_below(wild.stage.sim, bound);
}

static int number_of(const char *name)
{
    return (int)strtol(name + 1, NULL, 10);
}

/* The direct member of `group` by which this task is below it; -1: it is not. */
static int order_below(const struct watched_task *task, int group)
{
    int order = task->order;

    for (int g = task->group; g >= 0; g = wild.groups[g].parent) {
        if (g == group)
            return order;
        order = wild.groups[g].order;
    }
    return -1;
}

static void see_start(int number)
{
    struct watched_task *task = &wild.tasks[number];

    task->is_touched = false;
    for (int g = 0; g < wild.group_count; g++) {
        const struct watched_group *group = &wild.groups[g];
        int order = order_below(task, g);

        if (order >= 0 && group->is_closed && order >= group->closed_from)
            fail_msg("t%d starts while %s is closed", number, group->name);
    }
}

static void see_stop(int number)
{
    const struct watched_task *task = &wild.tasks[number];
    struct watched_group *group = task->group >= 0 ? &wild.groups[task->group] : NULL;

    if (!group || !group->is_repairing || task->is_touched || wild.is_ending)
        return;
    if (task->order >= group->last_stopped)
        fail_msg("t%d stops after one that was added before it", number);
    group->last_stopped = task->order;
}

static int culprit_order(const char *reason)
{
    int number = number_of(reason);

    return reason[0] == 't' ? wild.tasks[number].order : wild.groups[number].order;
}

static void see_group(int number, const struct det_task_event *event)
{
    struct watched_group *group = &wild.groups[number];

    group->is_repairing = event->kind == DET_TASK_EVENT_GROUP_RESTARTING;
    group->is_closed = event->kind != DET_TASK_EVENT_GROUP_STARTED;
    group->closed_from = 0;
    group->last_stopped = 1000000;
    if (group->is_repairing && group->strategy == DET_STRATEGY_REST_FOR_ONE)
        group->closed_from = culprit_order(event->reason);
}

static int watch(void *user, const struct det_task_event *event)
{
    (void)user;
    wild.hash = wild.hash * 1099511628211u ^ (uint64_t)event->kind ^ event->id << 8;
    if (event->kind == DET_TASK_EVENT_ATTEMPT_STARTING)
        see_start(number_of(event->name));
    else if (event->kind == DET_TASK_EVENT_ATTEMPT_CANCELLED)
        see_stop(number_of(event->name));
    else if (
        event->kind >= DET_TASK_EVENT_GROUP_STARTED && event->kind <= DET_TASK_EVENT_GROUP_STOPPED)
        see_group(number_of(event->name), event);
    else if (event->kind == DET_TASK_EVENT_TASK_REMOVED)
        wild.tasks[number_of(event->name)].is_alive = false;
    return 0;
}

static void add_group(void)
{
    int number = wild.group_count;
    struct watched_group *group = &wild.groups[number];
    struct det_task_group_spec spec = { .name = group->name };

    *group = (struct watched_group){ .parent = -1, .last_stopped = 1000000 };
    snprintf(group->name, sizeof group->name, "g%d", number);
    group->strategy = (enum det_strategy)below(3);
    if (number > 0 && below(2)) {
        group->parent = (int)below((uint64_t)number);
        group->order = wild.groups[group->parent].next_order++;
        spec.parent = wild.groups[group->parent].name;
    }
    spec.strategy = group->strategy;
    spec.intensity.count = (uint32_t)below(8) + 1;
    spec.intensity.window = (det_time)(below(60) + 1) * DET_SECOND;
    wild.group_count++;
    assert_int_equal(det_tasks_add_group(wild.stage.tasks, &spec, NULL), 0);
}

static int see_failed(void *user, const struct det_task_group_info *info)
{
    int *failed = user;

    if (strcmp(info->state, "failed") == 0)
        failed[number_of(info->name)] = 1;
    return 0;
}

static bool is_any_failed(int group)
{
    int failed[GROUPS_MAX] = { 0 };

    assert_int_equal(det_tasks_each_group(wild.stage.tasks, see_failed, failed), 0);
    for (; group >= 0; group = wild.groups[group].parent)
        if (failed[group])
            return true;
    return false;
}

static void add_task(void)
{
    int number = wild.task_count;
    struct watched_task *task = &wild.tasks[number];
    char name[8];
    struct det_dependency need = { .when = (enum det_condition_kind)below(3) };
    struct det_task_spec spec;
    char need_name[8];

    snprintf(name, sizeof name, "t%d", number);
    *task = (struct watched_task){ .group = (int)below((uint64_t)wild.group_count + 1) - 1,
                                   .need = -1,
                                   .when = need.when };
    if (task->group >= 0 && is_any_failed(task->group))
        return;
    spec = stage_spec(&wild.stage, name, task->group >= 0 ? wild.groups[task->group].name : NULL);
    if (number > 0 && below(3) == 0) {
        task->need = (int)below((uint64_t)number);
        if (!wild.tasks[task->need].is_alive)
            return;
        snprintf(need_name, sizeof need_name, "t%d", task->need);
        need.name = need_name;
        spec.depends_on = &need;
        spec.depends_on_count = 1;
    }
    if (task->group >= 0)
        task->order = wild.groups[task->group].next_order++;
    stage_player(&wild.stage, name)->stops_in = (det_time)below(4) * DET_SECOND;
    task->is_alive = true;
    wild.task_count++;
    wild.added++;
    if (stage_try_add(&wild.stage, &spec) < 0)
        fail_msg("%s", wild.stage.text);
}

static void disturb_task(int number)
{
    static const enum part parts[] = { PART_FAIL, PART_FAIL,  PART_FAIL,
                                       PART_FAIL, PART_FATAL, PART_SUCCEED };
    struct player *player = &wild.stage.players[number];
    uint64_t what = below(20);

    if (!wild.tasks[number].is_alive)
        return;
    if (what == 0) {
        wild.tasks[number].is_touched = true;
        (void)!det_tasks_remove(wild.stage.tasks, player->id);
    } else if (what < 3) {
        wild.tasks[number].is_touched = true;
        (void)!det_tasks_restart(wild.stage.tasks, player->id);
    } else {
        player->part = parts[below(6)];
        (void)!det_tasks_wake(wild.stage.tasks, player->id);
    }
}

static void disturb(void)
{
    uint64_t what = below(10);
    const char *group;

    if (what < 6 && wild.task_count > 0) {
        disturb_task((int)below((uint64_t)wild.task_count));
    } else if (what < 8 && wild.task_count < TASKS_MAX) {
        add_task();
    } else if (what == 8) {
        group = wild.groups[below((uint64_t)wild.group_count)].name;
        (void)!(
            below(2) ? det_tasks_group_cancel(wild.stage.tasks, group)
                     : det_tasks_group_start(wild.stage.tasks, group));
    }
    stage_pass(&wild.stage, (det_time)below(3) * (DET_SECOND / 2));
}

/* After a long time without crashes, each task that may run runs. */
static void expect_all_run(void)
{
    char state[DET_ERROR_TEXT_MAX], other[8];

    for (int i = 0; i < wild.task_count; i++)
        wild.stage.players[i].part = PART_RUN;
    for (int g = 0; g < wild.group_count; g++)
        assert_int_equal(det_tasks_group_start(wild.stage.tasks, wild.groups[g].name), 1);
    stage_pass(&wild.stage, DET_HOUR);
    for (int i = 0; i < wild.task_count; i++) {
        const struct watched_task *task = &wild.tasks[i];

        if (!task->is_alive)
            continue;
        snprintf(state, sizeof state, "%s", stage_state(&wild.stage, wild.stage.players[i].name));
        if (strcmp(state, "running") == 0)
            continue;
        snprintf(other, sizeof other, "t%d", task->need);
        if (task->need < 0 || strncmp(state, "held t", 6) != 0)
            fail_msg("t%d is %s", i, state);
        if (task->when != DET_WHEN_COMPLETED && wild.tasks[task->need].is_alive)
            assert_string_not_equal(stage_state(&wild.stage, other), "running");
    }
}

static uint64_t run_seed(uint64_t seed)
{
    struct det_subscription *subscription;
    uint64_t hash;

    memset(&wild, 0, sizeof wild);
    assert_int_equal(
        stage_try_open(
            &wild.stage, seed,
            (struct det_tasks_options){ .concurrent_max = seed % 4 == 0 ? 5 : 0 }),
        0);
    assert_int_equal(
        det_bus_subscribe(
            det_tasks_bus(wild.stage.tasks),
            &(struct det_subscriber){ .delivery = DET_DELIVER_LOSSLESS, .on_event = watch },
            &subscription, NULL),
        0);
    for (uint64_t i = below(GROUPS_MAX) + 1; i > 0; i--)
        add_group();
    for (int i = 0; i < 6; i++)
        add_task();
    for (uint64_t i = below(60) + 20; i > 0; i--)
        disturb();
    if (seed % 4 != 0) /* else some wait for a permit for ever */
        expect_all_run();
    wild.is_ending = true;
    assert_int_equal(det_tasks_shutdown(wild.stage.tasks, NULL), 0);
    assert_int_equal(wild.stage.end_count, wild.added);
    hash = wild.hash ^ det_sim_hash(wild.stage.sim);
    stage_close(&wild.stage);
    return hash;
}

static void random_task_trees_keep_their_invariants(void **state)
{
    uint64_t seeds = seeds_count(400);

    (void)state;
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        uint64_t first;

        print_message("\r%llu", (unsigned long long)seed);
        first = run_seed(seed);
        assert_true(run_seed(seed) == first);
    }
    print_message("\r");
}

/* Memory. */

static int quick_check(struct det_task_context *context, void *argument)
{
    (void)context;
    (void)argument;
    return 0;
}

static int build(struct stage *stage)
{
    struct det_dependency need = { .name = "db", .when = DET_WHEN_HEALTHY };
    struct det_task_spec specs[2];
    int r;

    r = det_tasks_add_group(
        stage->tasks,
        &(struct det_task_group_spec){ .name = "g", .strategy = DET_STRATEGY_ALL_FOR_ONE }, NULL);
    if (r == 0)
        r = det_tasks_add_group(
            stage->tasks, &(struct det_task_group_spec){ .name = "in", .parent = "g" }, NULL);
    if (r < 0)
        return r;
    specs[0] = stage_spec(stage, "web", "in");
    specs[0].depends_on = &need;
    specs[0].depends_on_count = 1;
    specs[1] = stage_spec(stage, "db", "g");
    specs[1].readiness =
        (struct det_readiness){ .by = DET_READY_BY_CHECK, .check = { .run = quick_check } };
    return det_tasks_add_batch(stage->tasks, specs, 2, NULL, NULL);
}

static int without_memory(struct det_test_memory *memory, void *argument)
{
    static struct stage stage;
    int r;

    (void)argument;
    r = stage_try_open(&stage, 1, (struct det_tasks_options){ .allocator = &memory->allocator });
    if (r == 0)
        r = build(&stage);
    if (r == 0) {
        stage_pass(&stage, 3 * DET_SECOND);
        stage_player(&stage, "web")->part = PART_FAIL;
        (void)!det_tasks_wake(stage.tasks, det_tasks_find(stage.tasks, "web"));
        stage_pass(&stage, 3 * DET_SECOND);
        (void)!det_tasks_group_cancel(stage.tasks, "g");
        stage_pass(&stage, DET_SECOND);
        (void)!det_tasks_group_start(stage.tasks, "g");
        stage_pass(&stage, 30 * DET_SECOND);
        r = det_tasks_shutdown(stage.tasks, NULL);
    }
    stage_close(&stage);
    return r;
}

static void a_tree_without_memory_fails_cleanly(void **state)
{
    (void)state;
    det_test_each_failure(without_memory, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_task_trees_keep_their_invariants),
        cmocka_unit_test(a_tree_without_memory_fails_cleanly),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
