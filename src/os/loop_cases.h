/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* loop_cases.h - requirements on a loop in every world. See common_cases.h. */
#ifndef DET_OS_LOOP_CASES_H
#define DET_OS_LOOP_CASES_H

#include <detent/driver/loop.h>
#include <detent/loop.h>

#include "os/common_cases.h"

#define DIARY_MAX 32

/* Records what ran in which order: one letter for each message and timer. */
struct diary {
    struct det_loop *loop;
    char text[DIARY_MAX];
    size_t length;
};

struct entry {
    struct diary *diary;
    struct det_post post;
    struct det_timer timer;
    struct entry *other; /* the object that this one acts on */
    det_time again;      /* when to arm it again */
    int result;
    char letter;
};

static inline void write_letter(void *argument)
{
    struct entry *entry = argument;

    if (entry->diary->length < DIARY_MAX - 1)
        entry->diary->text[entry->diary->length++] = entry->letter;
}

static inline void diary_open(struct diary *diary, struct det_world *world)
{
    *diary = (struct diary){ 0 };
    assert_int_equal(0, det_loop_open(world, NULL, &diary->loop));
}

static inline void entries_init(struct entry *entries, size_t count, struct diary *diary)
{
    for (size_t i = 0; i < count; i++)
        entries[i] = (struct entry){
            .diary = diary,
            .letter = (char)('a' + i),
            .post = { .run = write_letter, .argument = &entries[i] },
            .timer = { .run = write_letter, .argument = &entries[i] },
        };
}

static inline void arm(struct entry *entry, det_time deadline)
{
    assert_int_equal(0, det_loop_timer_set(entry->diary->loop, &entry->timer, deadline));
}

static void messages_run_in_the_order_posted(void **state)
{
    struct world_fixture *fixture = *state;
    struct diary diary;
    struct entry entries[5];

    diary_open(&diary, fixture->world);
    entries_init(entries, 5, &diary);
    assert_int_equal(DET_NEVER, det_loop_deadline(diary.loop));
    for (int i = 0; i < 5; i++)
        det_loop_post(diary.loop, &entries[i].post);
    assert_int_equal(0, det_loop_deadline(diary.loop));
    assert_int_equal(5, det_loop_turn(diary.loop, DET_NEVER));
    assert_string_equal("abcde", diary.text);
    assert_int_equal(0, det_loop_turn(diary.loop, 0));
    assert_ptr_equal(fixture->world, det_loop_world(diary.loop));
    det_loop_close(diary.loop);
}

static void find_owner(void *argument)
{
    struct diary *diary = argument;

    diary->text[0] = det_loop_is_mine(diary->loop) ? 'y' : 'n';
}

static void a_loop_that_is_claimed_is_not_of_another_thread(void **state)
{
    struct world_fixture *fixture = *state;
    struct det_thread *thread;
    struct diary diary;

    diary_open(&diary, fixture->world);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(0, det_thread_start(fixture->world, "asks", find_owner, &diary, &thread));
        det_thread_join(fixture->world, thread);
        assert_int_equal(i == 0 ? 'y' : 'n', diary.text[0]);
        assert_true(det_loop_is_mine(diary.loop));
        det_loop_claim(diary.loop);
    }
    det_loop_close(diary.loop);
}

static void post_other(void *argument)
{
    struct entry *entry = argument;

    write_letter(entry);
    det_loop_post(entry->diary->loop, &entry->other->post);
}

static void post_from_a_callback_runs_in_the_next_turn(void **state)
{
    struct world_fixture *fixture = *state;
    struct diary diary;
    struct entry entries[1];

    diary_open(&diary, fixture->world);
    entries_init(entries, 1, &diary);
    entries[0].post.run = post_other;
    entries[0].other = &entries[0];
    det_loop_post(diary.loop, &entries[0].post);
    assert_int_equal(1, det_loop_turn(diary.loop, 0));
    assert_int_equal(1, det_loop_turn(diary.loop, DET_NEVER));
    assert_string_equal("aa", diary.text);
    entries[0].post.run = write_letter;
    det_loop_close(diary.loop);
    assert_string_equal("aaa", diary.text);
}

static void timers_run_by_deadline_and_then_by_insertion(void **state)
{
    struct world_fixture *fixture = *state;
    det_time now = monotonic(fixture->world);
    struct diary diary;
    struct entry entries[6];

    diary_open(&diary, fixture->world);
    entries_init(entries, 6, &diary);
    arm(&entries[0], now - 1);
    arm(&entries[1], now - 3);
    arm(&entries[2], now - 2);
    arm(&entries[3], now - 3);
    arm(&entries[4], now + DET_HOUR);
    det_loop_post(diary.loop, &entries[5].post);
    assert_int_equal(5, det_loop_turn(diary.loop, DET_NEVER));
    assert_string_equal("fbdca", diary.text);
    assert_int_equal(now + DET_HOUR, det_loop_deadline(diary.loop));
    assert_false(entries[0].timer.internal.is_set);
    assert_true(entries[4].timer.internal.is_set);
    det_loop_close(diary.loop);
    assert_false(entries[4].timer.internal.is_set);
}

static void a_timer_can_be_moved_and_cancelled(void **state)
{
    struct world_fixture *fixture = *state;
    det_time now = monotonic(fixture->world);
    struct diary diary;
    struct entry entries[3];

    diary_open(&diary, fixture->world);
    entries_init(entries, 3, &diary);
    arm(&entries[0], now - 5);
    arm(&entries[1], now - 4);
    arm(&entries[2], now - 3);
    arm(&entries[0], now - 1);
    det_loop_timer_cancel(diary.loop, &entries[1].timer);
    det_loop_timer_cancel(diary.loop, &entries[1].timer);
    assert_int_equal(2, det_loop_turn(diary.loop, 0));
    assert_string_equal("ca", diary.text);
    det_loop_close(diary.loop);
}

static void cancel_other(void *argument)
{
    struct entry *entry = argument;

    write_letter(entry);
    det_loop_timer_cancel(entry->diary->loop, &entry->other->timer);
}

static void a_timer_cancelled_by_another_does_not_run(void **state)
{
    struct world_fixture *fixture = *state;
    det_time now = monotonic(fixture->world);
    struct diary diary;
    struct entry entries[3];

    diary_open(&diary, fixture->world);
    entries_init(entries, 3, &diary);
    entries[0].timer.run = cancel_other;
    entries[0].other = &entries[1];
    for (int i = 0; i < 3; i++)
        arm(&entries[i], now - 3 + i);
    assert_int_equal(2, det_loop_turn(diary.loop, 0));
    assert_string_equal("ac", diary.text);
    det_loop_close(diary.loop);
}

static void arm_again(void *argument)
{
    struct entry *entry = argument;

    write_letter(entry);
    entry->result = det_loop_timer_set(entry->diary->loop, &entry->timer, entry->again);
}

static void a_timer_armed_again_by_itself_runs_once_a_turn(void **state)
{
    struct world_fixture *fixture = *state;
    det_time now = monotonic(fixture->world);
    struct diary diary;
    struct entry entries[2];

    diary_open(&diary, fixture->world);
    entries_init(entries, 2, &diary);
    entries[0].timer.run = arm_again;
    entries[0].again = now - 1;
    arm(&entries[0], now - 2);
    arm(&entries[1], now - 1);
    assert_int_equal(2, det_loop_turn(diary.loop, DET_NEVER));
    assert_int_equal(1, det_loop_turn(diary.loop, DET_NEVER));
    assert_int_equal(1, det_loop_turn(diary.loop, DET_NEVER));
    assert_string_equal("abaa", diary.text);
    assert_int_equal(0, entries[0].result);
    det_loop_close(diary.loop);
}

static void a_timer_is_late_rather_than_early(void **state)
{
    struct world_fixture *fixture = *state;
    struct diary diary;
    struct entry entries[2];
    det_time deadline;

    diary_open(&diary, fixture->world);
    entries_init(entries, 2, &diary);
    deadline = det_loop_now(diary.loop) + 2 * DET_MILLISECOND;
    arm(&entries[0], deadline);
    arm(&entries[1], DET_NEVER);
    /* Turns that end before the timer is due do not run it. */
    while (det_loop_turn(diary.loop, det_loop_now(diary.loop) + DET_MILLISECOND / 4) == 0)
        assert_true(det_loop_now(diary.loop) < deadline);
    assert_true(det_loop_now(diary.loop) >= deadline);
    assert_int_equal(DET_NEVER, det_loop_deadline(diary.loop));
    assert_string_equal("a", diary.text);
    det_loop_close(diary.loop);
}

static void wall_timer_runs_at_its_wall_time(void **state)
{
    struct world_fixture *fixture = *state;
    struct diary diary;
    struct entry entries[3];
    det_time wall;

    diary_open(&diary, fixture->world);
    entries_init(entries, 3, &diary);
    wall = det_world_now(fixture->world, DET_CLOCK_WALL);
    assert_int_equal(
        0, det_loop_timer_set_wall(diary.loop, &entries[0].timer, wall + DET_MILLISECOND));
    assert_int_equal(0, det_loop_timer_set_wall(diary.loop, &entries[1].timer, wall + DET_HOUR));
    assert_int_equal(0, det_loop_timer_set_wall(diary.loop, &entries[2].timer, DET_NEVER));
    assert_int_equal(1, det_loop_turn(diary.loop, DET_NEVER));
    assert_true(det_world_now(fixture->world, DET_CLOCK_WALL) >= wall + DET_MILLISECOND);
    assert_true(det_loop_deadline(diary.loop) > det_loop_now(diary.loop) + DET_HOUR / 2);
    /* From one clock to the other and back. */
    arm(&entries[1], 0);
    assert_int_equal(1, det_loop_turn(diary.loop, DET_NEVER));
    arm(&entries[2], DET_NEVER);
    assert_int_equal(DET_NEVER, det_loop_deadline(diary.loop));
    assert_int_equal(0, det_loop_timer_set_wall(diary.loop, &entries[2].timer, wall));
    assert_int_equal(1, det_loop_turn(diary.loop, DET_NEVER));
    assert_string_equal("abc", diary.text);
    assert_int_equal(0, det_loop_timer_set_wall(diary.loop, &entries[2].timer, wall));
    det_loop_timer_cancel(diary.loop, &entries[2].timer);
    assert_int_equal(0, det_loop_turn(diary.loop, 0));
    det_loop_close(diary.loop);
}

static void a_turn_with_nothing_to_do_ends_at_its_deadline(void **state)
{
    struct world_fixture *fixture = *state;
    struct diary diary;
    det_time deadline;

    diary_open(&diary, fixture->world);
    deadline = monotonic(fixture->world) + DET_MILLISECOND;
    assert_int_equal(0, det_loop_turn(diary.loop, deadline));
    assert_true(monotonic(fixture->world) >= deadline);
    det_loop_close(diary.loop);
}

static void break_loop(void *argument)
{
    struct entry *entry = argument;

    write_letter(entry);
    det_loop_break(entry->diary->loop);
}

static void a_break_from_inside_ends_the_run_after_the_turn(void **state)
{
    struct world_fixture *fixture = *state;
    struct diary diary;
    struct entry entries[2];

    diary_open(&diary, fixture->world);
    entries_init(entries, 2, &diary);
    entries[0].post.run = break_loop;
    det_loop_post(diary.loop, &entries[0].post);
    det_loop_post(diary.loop, &entries[1].post);
    assert_int_equal(0, det_loop_run(diary.loop));
    assert_string_equal("ab", diary.text);
    det_loop_close(diary.loop);
}

static void a_stop_that_comes_early_is_not_lost(void **state)
{
    struct world_fixture *fixture = *state;
    struct diary diary;

    diary_open(&diary, fixture->world);
    det_loop_stop(diary.loop);
    assert_int_equal(0, det_loop_run(diary.loop));
    det_loop_break(diary.loop);
    assert_int_equal(0, det_loop_run(diary.loop));
    det_loop_close(diary.loop);
}

#define POSTERS  3
#define MESSAGES 100

/* A thread that posts numbered messages, and what arrived of them. */
struct poster {
    struct det_loop *loop;
    struct gate *gate;
    struct numbered {
        struct det_post post;
        struct poster *poster;
        int number;
    } messages[MESSAGES];
    int arrived; /* received in order so far; -1 after the first that was not */
};

static inline void arrive_numbered(void *argument)
{
    struct numbered *message = argument;
    struct poster *poster = message->poster;

    poster->arrived = poster->arrived == message->number ? message->number + 1 : -1;
    if (message->number == MESSAGES - 1)
        gate_add(poster->gate, 1);
}

static inline void post_all(void *argument)
{
    struct poster *poster = argument;

    for (int i = 0; i < MESSAGES; i++)
        det_loop_post(poster->loop, &poster->messages[i].post);
}

static inline void poster_init(struct poster *poster, struct det_loop *loop, struct gate *gate)
{
    *poster = (struct poster){ .loop = loop, .gate = gate };
    for (int i = 0; i < MESSAGES; i++)
        poster->messages[i] = (struct numbered){
            .post = { .run = arrive_numbered, .argument = &poster->messages[i] },
            .poster = poster,
            .number = i,
        };
}

static void messages_of_each_thread_arrive_in_order(void **state)
{
    struct world_fixture *fixture = *state;
    struct det_thread *threads[POSTERS];
    struct poster *posters = calloc(POSTERS, sizeof *posters);
    struct det_loop *loop;
    struct gate gate;

    gate_init(&gate, fixture->world);
    assert_int_equal(0, det_loop_open(fixture->world, NULL, &loop));
    assert_int_equal(0, det_loop_start(loop, "loop"));
    for (int i = 0; i < POSTERS; i++) {
        poster_init(&posters[i], loop, &gate);
        threads[i] = start(fixture->world, post_all, &posters[i]);
    }
    gate_wait(&gate, POSTERS);
    det_loop_stop(loop);
    for (int i = 0; i < POSTERS; i++) {
        det_thread_join(fixture->world, threads[i]);
        assert_int_equal(MESSAGES, posters[i].arrived);
    }
    det_loop_close(loop);
    gate_deinit(&gate);
    free(posters);
}

static void a_loop_can_be_started_again(void **state)
{
    struct world_fixture *fixture = *state;
    struct diary diary;
    struct entry entries[1];

    diary_open(&diary, fixture->world);
    entries_init(entries, 1, &diary);
    entries[0].post.run = break_loop;
    assert_int_equal(0, det_loop_start(diary.loop, "one"));
    det_loop_stop(diary.loop);
    det_loop_stop(diary.loop);
    assert_int_equal(0, det_loop_start(diary.loop, "two"));
    det_loop_post(diary.loop, &entries[0].post);
    det_loop_stop(diary.loop);
    /* The message may run before or after the stop, but it does run. */
    det_loop_close(diary.loop);
    assert_string_equal("a", diary.text);
}

struct runner {
    struct det_loop *loop;
    struct gate *gate;
    int result;
};

static inline void run_loop(void *argument)
{
    struct runner *runner = argument;

    gate_add(runner->gate, 1);
    runner->result = det_loop_run(runner->loop);
}

static void a_stop_waits_for_a_run_on_a_thread_of_ours(void **state)
{
    struct world_fixture *fixture = *state;
    struct runner runner = { .result = 1 };
    struct det_thread *thread;
    struct gate gate;

    gate_init(&gate, fixture->world);
    runner.gate = &gate;
    assert_int_equal(0, det_loop_open(fixture->world, NULL, &runner.loop));
    thread = start(fixture->world, run_loop, &runner);
    gate_wait(&gate, 1);
    /* It runs, or is about to: the stop counts in either case. */
    det_loop_stop(runner.loop);
    det_thread_join(fixture->world, thread);
    assert_int_equal(0, runner.result);
    det_loop_close(runner.loop);
    gate_deinit(&gate);
}

static void a_break_ends_a_run_on_another_thread(void **state)
{
    struct world_fixture *fixture = *state;
    struct runner runner = { .result = 1 };
    struct det_thread *thread;
    struct gate gate;

    gate_init(&gate, fixture->world);
    runner.gate = &gate;
    assert_int_equal(0, det_loop_open(fixture->world, NULL, &runner.loop));
    thread = start(fixture->world, run_loop, &runner);
    gate_wait(&gate, 1);
    det_loop_break(runner.loop);
    det_thread_join(fixture->world, thread);
    assert_int_equal(0, runner.result);
    det_loop_close(runner.loop);
    gate_deinit(&gate);
}

static inline void open_gate(void *argument)
{
    struct entry *entry = argument;

    det_loop_break(entry->diary->loop);
    gate_add((struct gate *)(void *)entry->other, 1);
}

static void a_loop_that_stopped_itself_is_joined_by_the_next_start_and_by_close(void **state)
{
    struct world_fixture *fixture = *state;
    struct entry entry = { .post = { .run = open_gate, .argument = &entry } };
    struct diary diary;
    struct gate gate;

    diary_open(&diary, fixture->world);
    gate_init(&gate, fixture->world);
    entry.diary = &diary;
    entry.other = (struct entry *)(void *)&gate;
    for (int i = 1; i <= 3; i++) {
        assert_int_equal(0, det_loop_start(diary.loop, "loop"));
        det_loop_post(diary.loop, &entry.post);
        gate_wait(&gate, i);
    }
    det_loop_close(diary.loop);
    gate_deinit(&gate);
}

static void closing_runs_what_was_posted_and_what_that_posts(void **state)
{
    struct world_fixture *fixture = *state;
    struct diary diary;
    struct entry entries[2];

    diary_open(&diary, fixture->world);
    entries_init(entries, 2, &diary);
    entries[0].post.run = post_other;
    entries[0].other = &entries[1];
    det_loop_post(diary.loop, &entries[0].post);
    arm(&entries[1], 0);
    det_loop_close(diary.loop);
    assert_string_equal("ab", diary.text);
    det_loop_close(NULL);
}

#define LOOP_CASES                                                                       \
    WORLD_CASE(messages_run_in_the_order_posted),                                        \
        WORLD_CASE(post_from_a_callback_runs_in_the_next_turn),                          \
        WORLD_CASE(timers_run_by_deadline_and_then_by_insertion),                        \
        WORLD_CASE(a_timer_can_be_moved_and_cancelled),                                  \
        WORLD_CASE(a_timer_cancelled_by_another_does_not_run),                           \
        WORLD_CASE(a_timer_armed_again_by_itself_runs_once_a_turn),                      \
        WORLD_CASE(a_timer_is_late_rather_than_early),                                   \
        WORLD_CASE(wall_timer_runs_at_its_wall_time),                                    \
        WORLD_CASE(a_turn_with_nothing_to_do_ends_at_its_deadline),                      \
        WORLD_CASE(a_break_from_inside_ends_the_run_after_the_turn),                     \
        WORLD_CASE(a_stop_that_comes_early_is_not_lost),                                 \
        WORLD_CASE(a_loop_that_is_claimed_is_not_of_another_thread),                     \
        WORLD_CASE(messages_of_each_thread_arrive_in_order),                             \
        WORLD_CASE(a_loop_can_be_started_again),                                         \
        WORLD_CASE(a_stop_waits_for_a_run_on_a_thread_of_ours),                          \
        WORLD_CASE(a_break_ends_a_run_on_another_thread),                                \
        WORLD_CASE(a_loop_that_stopped_itself_is_joined_by_the_next_start_and_by_close), \
        WORLD_CASE(closing_runs_what_was_posted_and_what_that_posts)

#endif
