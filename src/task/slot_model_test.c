/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* slot_model_test.c - slots against a model of their table: random submissions, completions,
 * removals, stops, purges, widths, depths and shutdowns, and after each of them all visible state
 * is compared. A failure prints its sequence, whose number is its seed. */
#include "lib/test.h"

#include <detent/sim.h>

#include "os/sim/seeds_cases.h"
#include "task/slot_model_test.h"

#define STEPS 24
#define BATCH 20 /* sequences for each supervisor */

#if defined(__SANITIZE_ADDRESS__)
#define SEQUENCES 10000
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SEQUENCES 10000
#endif
#endif
#ifndef SEQUENCES
#define SEQUENCES 100000
#endif

/* The work itself. */
struct job {
    struct board *board;
    det_task_id id;
    bool is_prompt, reported;
    unsigned start_order, ends, released;
    enum det_task_outcome outcome;
    enum det_rejection rejection;
};

/* The observations of one sequence of operations on the real slots. */
struct board {
    struct det_sim *sim;
    struct det_loop *loop;
    struct det_tasks *tasks;
    struct job jobs[TASKS_MAX];
    struct model model;
    uint64_t number, seed;
    char slot_names[SLOTS][32], task_names[TASKS_MAX][32];
    unsigned starts, step;
    bool is_done; /* all sequences, without a difference */
    char trace[STEPS][48];
};

/* The real thing. */

static int job_step(struct det_task_context *context, void *argument)
{
    struct job *job = argument;

    if (job->start_order == 0)
        job->start_order = ++job->board->starts;
    if (job->reported)
        return DET_STEP_DONE;
    return job->is_prompt && det_task_is_cancelled(context) ? DET_ERR_CANCELLED : DET_STEP_WAIT;
}

static void job_release(void *argument)
{
    struct job *job = argument;

    job->released++;
}

static void note_end(void *user, const struct det_task_end *end)
{
    struct board *board = user;

    for (unsigned i = 0; i < board->model.count; i++) {
        if (board->jobs[i].id == end->id) {
            board->jobs[i].ends++;
            board->jobs[i].outcome = end->outcome;
            board->jobs[i].rejection = end->rejection;
        }
    }
}

static void settle(struct board *board)
{
    int ran;

    do
        ran = det_loop_turn(board->loop, 0);
    while (ran > 0);
    assert_int_equal(ran, 0);
}

static void board_open(struct board *board)
{
    struct det_tasks_options options = { .on_end = note_end, .user = board, .bus_capacity = 16 };

    assert_int_equal(det_loop_open(det_sim_world(board->sim), NULL, &board->loop), 0);
    options.world = det_sim_world(board->sim);
    options.loop = board->loop;
    options.pool_threads = 1;
    assert_int_equal(det_tasks_open(&options, &board->tasks, NULL), 0);
}

static void board_close(struct board *board)
{
    det_tasks_close(board->tasks);
    det_loop_close(board->loop);
    board->tasks = NULL;
    board->loop = NULL;
}

/* Slots and tasks of each sequence have names of their own, since configured ones stay. */
static void name_all(struct board *board)
{
    for (unsigned i = 0; i < SLOTS; i++)
        snprintf(
            board->slot_names[i], sizeof board->slot_names[i], "%c-%llu", 'a' + (int)i,
            (unsigned long long)board->number);
    for (unsigned i = 0; i < TASKS_MAX; i++)
        snprintf(
            board->task_names[i], sizeof board->task_names[i], "t%u-%llu", i,
            (unsigned long long)board->number);
}

/* Comparing. */

struct look {
    struct board *board;
    unsigned found[SLOTS];
};

static int inspect(void *user, const struct det_slot_info *info)
{
    struct look *look = user;
    const struct model *model = &look->board->model;

    for (unsigned at = 0; at < SLOTS; at++) {
        const struct model_slot *slot = &model->slots[at];
        const char *state = model->is_closed                    ? "closing"
                            : model_is_terminating(model, slot) ? "terminating"
                            : slot->owner_count > 0             ? "running"
                                                                : "idle";

        if (strcmp(info->name, look->board->slot_names[at]) != 0)
            continue;
        look->found[at]++;
        assert_string_equal(info->state, state);
        assert_int_equal(info->owner_count, slot->owner_count);
        assert_int_equal(info->depth, slot->depth);
        assert_int_equal(info->width, slot->width);
        assert_int_equal(info->started, slot->started);
        assert_int_equal(info->rejected, slot->rejected);
        assert_int_equal(info->replaced, slot->replaced);
        assert_int_equal(
            info->owner, slot->owner_count > 0 ? look->board->jobs[slot->owners[0]].id : 0);
        if (slot->owner_count > 0)
            assert_string_equal(info->owner_name, look->board->task_names[slot->owners[0]]);
    }
    return 0;
}

static void compare_tasks(struct board *board)
{
    const struct model *model = &board->model;

    for (unsigned i = 0; i < model->count; i++) {
        const struct model_task *task = &model->tasks[i];
        const struct job *job = &board->jobs[i];

        assert_int_equal(job->start_order, task->start_order);
        assert_int_equal(job->ends, task->fate == FATE_ENDED);
        assert_int_equal(job->released, task->fate == FATE_ENDED || task->fate == FATE_REFUSED);
        if (task->fate == FATE_ENDED) {
            assert_int_equal(job->outcome, task->outcome);
            assert_int_equal(job->rejection, task->rejection);
        }
        assert_int_equal(
            det_tasks_find(board->tasks, board->task_names[i]),
            task->fate == FATE_OWNER ? job->id : 0);
    }
}

static void compare(struct board *board)
{
    struct look look = { .board = board };

    assert_int_equal(det_slots_each(board->tasks, inspect, &look), 0);
    if (!board->model.is_closed)
        for (unsigned at = 0; at < SLOTS; at++)
            assert_int_equal(look.found[at], board->model.slots[at].is_there);
    compare_tasks(board);
}

/* Operations, on both. */

static void trace(struct board *board, const char *what, unsigned subject, unsigned more)
{
    if (board->step < STEPS)
        snprintf(
            board->trace[board->step], sizeof board->trace[0], "%s %u (%u)", what, subject, more);
}

static void submit_both(struct board *board, unsigned at, enum det_admission admission)
{
    struct model *model = &board->model;
    unsigned task = model->count;
    struct job *job = &board->jobs[task];
    struct det_task_spec spec = {
        .name = board->task_names[task], .step = job_step, .argument = job, .release = job_release
    };
    struct det_admitted admitted = { 0 };
    enum det_rejection why;
    int r;

    if (task == TASKS_MAX)
        return;
    trace(board, "submit to slot", at, (unsigned)admission);
    spec.policy.restart = DET_RESTART_NEVER;
    spec.policy.grace = DET_NEVER;
    *job = (struct job){ .board = board, .is_prompt = det_test_random(&board->seed) % 2 };
    model->count++;
    model->tasks[task] = (struct model_task){ .slot = at, .is_prompt = job->is_prompt };
    r = det_slot_submit(
        board->tasks,
        &(struct det_submission){
            .slot = board->slot_names[at], .admission = admission, .task = &spec },
        NULL, &admitted, NULL);
    job->id = admitted.id;
    if (model->is_closed) {
        model->tasks[task].fate = FATE_REFUSED;
        assert_int_equal(r, DET_ERR_CLOSED);
        return;
    }
    why = model_submit(model, at, admission, task);
    assert_int_equal(r, why ? DET_ERR_REFUSED : 0);
    assert_int_equal(admitted.rejection, why);
    assert_int_equal(admitted.is_started, model->tasks[task].fate == FATE_OWNER);
    assert_int_equal(admitted.depth, model->slots[at].depth);
    if (why) {
        model->tasks[task].fate = FATE_REFUSED;
        model->slots[at].rejected++;
    }
    model_advance(model, &model->slots[at]);
}

static void complete_both(struct board *board, unsigned task)
{
    struct model *model = &board->model;
    bool was_stopped = model->tasks[task].is_stopping;

    if (model->tasks[task].fate != FATE_OWNER)
        return;
    trace(board, "complete task", task, was_stopped);
    board->jobs[task].reported = true;
    assert_int_equal(det_tasks_wake(board->tasks, board->jobs[task].id), 1);
    model_end(model, task, was_stopped ? DET_TASK_OUTCOME_CANCELLED : DET_TASK_OUTCOME_COMPLETED);
}

static void remove_both(struct board *board, unsigned task)
{
    trace(board, "remove task", task, 0);
    assert_int_equal(
        det_tasks_remove(board->tasks, board->jobs[task].id), model_remove(&board->model, task));
}

static void configure_both(struct board *board, unsigned at)
{
    static const uint32_t depths[] = { 1, 2, 5, UINT32_MAX };
    struct det_slot_options options = { .width = (uint32_t)(1 + det_test_random(&board->seed) % 3),
                                        .depth_max = depths[det_test_random(&board->seed) % 4] };
    struct model_slot *slot = &board->model.slots[at];
    int r = det_slot_configure(board->tasks, board->slot_names[at], &options, NULL);

    trace(board, "configure slot", at, options.width);
    if (board->model.is_closed) {
        assert_true(r == 0 || r == DET_ERR_CLOSED);
        return;
    }
    assert_int_equal(r, 0);
    slot->is_there = slot->is_kept = true;
    slot->width = options.width;
    slot->depth_max = options.depth_max == UINT32_MAX ? 0 : options.depth_max;
    model_advance(&board->model, slot);
}

static void shut_down_both(struct board *board)
{
    trace(board, "shut down", 0, 0);
    det_tasks_begin_shutdown(board->tasks);
    model_shut_down(&board->model);
}

static void by_hand_both(struct board *board, unsigned at, unsigned which)
{
    struct model *model = &board->model;
    const char *slot = board->slot_names[at];
    int r, expected;

    trace(board, "stop, purge, both: slot", at, which);
    if (which == 0) {
        r = det_slot_cancel(board->tasks, slot);
        expected = model_stop_slot(model, at);
    } else if (which == 1) {
        r = det_slot_purge(board->tasks, slot);
        expected = model_purge(model, at, DET_REJECTION_PURGED);
    } else {
        r = det_slot_cancel_and_purge(board->tasks, slot);
        (void)model_purge(model, at, DET_REJECTION_PURGED);
        expected = model_stop_slot(model, at);
    }
    assert_int_equal(r, expected);
}

static void step_both(struct board *board)
{
    struct model *model = &board->model;
    unsigned choice = (unsigned)(det_test_random(&board->seed) % 100);
    unsigned at = (unsigned)(det_test_random(&board->seed) % SLOTS);
    unsigned other = (unsigned)det_test_random(&board->seed);
    unsigned task = model->count > 0 ? other % model->count : 0;

    if (choice < 48)
        submit_both(board, at, (enum det_admission)(other % 4));
    else if (choice < 73 && model->count > 0)
        complete_both(board, task);
    else if (choice < 83 && model->count > 0)
        remove_both(board, task);
    else if (choice < 92)
        by_hand_both(board, at, other % 3);
    else if (choice < 96 || board->number % BATCH != 0)
        configure_both(board, at);
    else if (!model->is_closed)
        shut_down_both(board);
    settle(board);
    model_settle(model);
    compare(board);
}

static void begin(struct board *board, uint64_t number)
{
    board->number = number;
    board->seed = number;
    name_all(board);
    board->starts = 0;
    memset(board->jobs, 0, sizeof board->jobs);
    memset(board->trace, 0, sizeof board->trace);
    board->model = (struct model){ 0 };
    for (unsigned at = 0; at < SLOTS; at++) {
        board->model.slots[at].width = 1;
        board->model.slots[at].depth_max = 100;
    }
}

/* Ends what is left, so that the next sequence finds nothing. */
static void finish(struct board *board)
{
    for (unsigned round = 0; round < TASKS_MAX; round++) {
        for (unsigned i = 0; i < board->model.count; i++) {
            if (board->model.tasks[i].fate != FATE_OWNER)
                continue;
            complete_both(board, i);
            settle(board);
        }
    }
    compare(board);
    assert_int_equal(det_tasks_counts(board->tasks).registered, 0);
    assert_int_equal(det_tasks_counts(board->tasks).queued, 0);
}

static struct board *board;

static void slots_match_the_model(void **unused)
{
    uint64_t count = seeds_count(SEQUENCES);

    (void)unused;
    for (uint64_t number = 1; number <= count; number++) {
        if (board->tasks == NULL)
            board_open(board);
        begin(board, number);
        for (board->step = 0; board->step < STEPS; board->step++)
            step_both(board);
        finish(board);
        if (number % BATCH == 0)
            board_close(board);
    }
    board->is_done = true;
}

static int set_up(void **unused)
{
    (void)unused;
    board = calloc(1, sizeof *board);
    return board == NULL || det_sim_open(NULL, &board->sim, NULL) < 0 ? -1 : 0;
}

/* Prints a failed sequence: its number is its seed. */
static int tear_down(void **unused)
{
    (void)unused;
    if (!board->is_done) {
        print_error("sequence %llu, step %u\n", (unsigned long long)board->number, board->step);
        for (unsigned i = 0; i <= board->step && i < STEPS; i++)
            print_error("    %s\n", board->trace[i]);
        return 0;
    }
    if (board->tasks != NULL)
        board_close(board);
    det_sim_close(board->sim);
    free(board);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(slots_match_the_model, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
