/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* schedule_test.c - simulated threads and clocks: one seed is one run, bugs of order are found,
 * and time moves only where it should. */
#include "os/sim/shared_cases.h"

#include <detent/driver/loop.h>
#include <detent/loop.h>

#include "os/pool.h"
#include "os/sim/seeds_cases.h"

/* Contends for the mutex, waits a little, writes to a disk that fails now and then. */
static void work(void *argument)
{
    struct shared *shared = argument;
    struct det_world *world = shared->world;
    struct det_file *file;

    for (int i = 0; i < 5; i++) {
        det_mutex_lock(world, shared->mutex);
        shared->value++;
        det_sim_note(shared->sim, &shared->value, sizeof shared->value);
        (void)det_condition_wait(
            world, shared->condition, shared->mutex,
            det_world_now(world, DET_CLOCK_MONOTONIC) +
                (det_time)(det_world_random_u64(world) % 1000));
        det_mutex_unlock(world, shared->mutex);
        if (det_file_open(world, "log", DET_FILE_WRITE | DET_FILE_CREATE, &file) < 0)
            continue;
        (void)det_file_write(world, file, (uint64_t)i * 100, "some bytes", 10);
        (void)det_file_sync(world, file);
        det_file_close(world, file);
        det_condition_signal(world, shared->condition);
    }
}

struct ticking {
    struct det_loop *loop;
    struct det_timer timer;
    struct det_sim *sim;
    int left;
    int result;
};

static void tick(void *argument)
{
    struct ticking *ticking = argument;
    det_time now = det_loop_now(ticking->loop);

    det_sim_note(ticking->sim, &now, sizeof now);
    if (--ticking->left > 0)
        ticking->result |= det_loop_timer_set(ticking->loop, &ticking->timer, now + 300);
}

static uint64_t hash_of_a_run(uint64_t seed)
{
    const struct det_sim_disk_faults faults = { 50000, 50000, 50000, 50000 };
    struct det_sim *sim = open_sim(seed);
    struct ticking ticking = { .sim = sim, .left = 5 };
    struct det_thread *threads[3];
    struct shared shared;
    uint64_t hash;

    det_sim_set_disk_faults(sim, &faults);
    shared_init(&shared, sim);
    assert_int_equal(0, det_loop_open(shared.world, NULL, &ticking.loop));
    ticking.timer = (struct det_timer){ .run = tick, .argument = &ticking };
    assert_int_equal(0, det_loop_timer_set(ticking.loop, &ticking.timer, 0));
    assert_int_equal(0, det_loop_start(ticking.loop, "ticks"));
    for (int i = 0; i < 3; i++)
        threads[i] = start(&shared, work);
    assert_int_equal(0, det_sim_advance(sim, DET_SECOND));
    det_sim_power_cut(sim);
    for (int i = 0; i < 3; i++)
        det_thread_join(shared.world, threads[i]);
    det_loop_stop(ticking.loop);
    det_loop_close(ticking.loop);
    assert_int_equal(0, ticking.left + ticking.result);
    assert_int_equal(15, shared.value);
    shared_deinit(&shared);
    hash = det_sim_hash(sim);
    det_sim_close(sim);
    return hash;
}

static int compare_hashes(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static void equal_seeds_repeat_a_run_and_others_differ(void **state)
{
    uint64_t count = seeds_count(300);
    uint64_t *hashes = calloc(count, sizeof *hashes);

    (void)state;
    assert_non_null(hashes);
    for (uint64_t seed = 0; seed < count; seed++) {
        hashes[seed] = hash_of_a_run(seed);
        assert_int_equal(hashes[seed], hash_of_a_run(seed));
    }
    qsort(hashes, count, sizeof *hashes, compare_hashes);
    for (uint64_t i = 1; i < count; i++)
        assert_int_not_equal(hashes[i - 1], hashes[i]);
    free(hashes);
}

static void produce(void *argument)
{
    struct shared *shared = argument;

    det_mutex_lock(shared->world, shared->mutex);
    shared->is_ready = true;
    det_condition_signal(shared->world, shared->condition);
    det_mutex_unlock(shared->world, shared->mutex);
}

static int consume(struct shared *shared)
{
    int r = 0;

    det_mutex_lock(shared->world, shared->mutex);
    while (!shared->is_ready && r == 0)
        r = det_condition_wait(shared->world, shared->condition, shared->mutex, DET_NEVER);
    det_mutex_unlock(shared->world, shared->mutex);
    return r;
}

/* The planted bug: an item produced between the check and the lock wakes no thread. */
static int consume_carelessly(struct shared *shared)
{
    int r = 0;

    while (!shared->is_ready && r == 0) {
        det_mutex_lock(shared->world, shared->mutex);
        r = det_condition_wait(shared->world, shared->condition, shared->mutex, DET_NEVER);
        det_mutex_unlock(shared->world, shared->mutex);
    }
    return r;
}

static int produce_and_consume(uint64_t seed, int (*consumer)(struct shared *))
{
    struct det_sim *sim = open_sim(seed);
    struct det_thread *thread;
    struct shared shared;
    int r;

    shared_init(&shared, sim);
    thread = start(&shared, produce);
    r = consumer(&shared);
    det_thread_join(shared.world, thread);
    shared_deinit(&shared);
    det_sim_close(sim);
    return r;
}

static void a_lost_wake_up_is_found_by_some_seed(void **state)
{
    uint64_t count = seeds_count(500), found = 0;

    (void)state;
    for (uint64_t seed = 0; seed < count; seed++) {
        int r = produce_and_consume(seed, consume_carelessly);

        assert_true(r == 0 || r == DET_ERR_DEADLOCK);
        found += r == DET_ERR_DEADLOCK;
        assert_int_equal(0, produce_and_consume(seed, consume));
    }
    print_message("             %d of %d seeds found it\n", (int)found, (int)count);
    assert_true(found > 0 && found < count);
}

static void condition_has_spurious_wakeups(void **state)
{
    struct det_sim *sim = open_sim(1);
    struct shared shared;
    int woken = 0;

    (void)state;
    shared_init(&shared, sim);
    det_mutex_lock(shared.world, shared.mutex);
    for (int i = 0; i < 2000; i++) {
        int r = det_condition_wait(
            shared.world, shared.condition, shared.mutex,
            det_world_now(shared.world, DET_CLOCK_MONOTONIC) + 1);

        assert_true(r == 0 || r == DET_ERR_TIMEOUT);
        woken += r == 0;
    }
    det_mutex_unlock(shared.world, shared.mutex);
    assert_in_range(woken, 1, 100);
    shared_deinit(&shared);
    det_sim_close(sim);
}

static void a_sleep_continues_after_a_wake_for_nothing(void **state)
{
    struct det_sim *sim;
    struct det_world *world;

    (void)state;
    /* So many preemptions that every sixteenth wait ends spuriously. */
    assert_int_equal(0, det_sim_open(&(struct det_sim_options){ .preempt = 1000000 }, &sim, NULL));
    world = det_sim_world(sim);
    for (int i = 1; i <= 100; i++) {
        det_time before = det_world_now(world, DET_CLOCK_MONOTONIC);

        assert_int_equal(0, det_world_sleep(world, DET_SECOND));
        assert_int_equal(before + DET_SECOND, det_world_now(world, DET_CLOCK_MONOTONIC));
    }
    det_sim_close(sim);
}

struct timed {
    struct det_timer timer;
    struct det_world *world;
    det_time ran_at;
};

static void note_time(void *argument)
{
    struct timed *timed = argument;

    timed->ran_at = det_world_now(timed->world, DET_CLOCK_MONOTONIC);
}

static void advancing_stops_at_every_deadline(void **state)
{
    struct det_sim *sim = open_sim(1);
    struct det_world *world = det_sim_world(sim);
    det_time began = det_world_now(world, DET_CLOCK_MONOTONIC);
    struct timed timed[10] = { 0 };
    struct det_loop *loop;

    (void)state;
    assert_int_equal(0, det_loop_open(world, NULL, &loop));
    for (int i = 0; i < 10; i++) {
        timed[i].world = world;
        timed[i].timer = (struct det_timer){ .run = note_time, .argument = &timed[i] };
        assert_int_equal(
            0, det_loop_timer_set(loop, &timed[i].timer, began + (i * 7 % 10 + 1) * DET_HOUR + i));
    }
    assert_int_equal(0, det_loop_start(loop, "loop"));
    assert_int_equal(0, det_sim_settle(sim));
    assert_int_equal(began, det_world_now(world, DET_CLOCK_MONOTONIC));
    assert_int_equal(0, det_sim_advance(sim, 5 * DET_HOUR + 30 * DET_MINUTE));
    assert_int_equal(
        began + 5 * DET_HOUR + 30 * DET_MINUTE, det_world_now(world, DET_CLOCK_MONOTONIC));
    for (int i = 0; i < 10; i++)
        assert_int_equal(
            i * 7 % 10 < 5 ? began + (i * 7 % 10 + 1) * DET_HOUR + i : 0, timed[i].ran_at);
    assert_int_equal(0, det_sim_advance(sim, 7 * DET_DAY));
    for (int i = 0; i < 10; i++)
        assert_int_equal(began + (i * 7 % 10 + 1) * DET_HOUR + i, timed[i].ran_at);
    assert_int_equal(
        began + 5 * DET_HOUR + 30 * DET_MINUTE + 7 * DET_DAY,
        det_world_now(world, DET_CLOCK_MONOTONIC));
    det_loop_stop(loop);
    det_loop_close(loop);
    det_sim_close(sim);
}

static void clocks_are(struct det_sim *sim, det_time now, det_time boot, det_time wall)
{
    struct det_world *world = det_sim_world(sim);

    assert_int_equal(now, det_world_now(world, DET_CLOCK_MONOTONIC));
    assert_int_equal(boot, det_world_now(world, DET_CLOCK_BOOT));
    assert_int_equal(wall, det_world_now(world, DET_CLOCK_WALL));
}

static void each_clock_moves_only_for_its_own_reasons(void **state)
{
    const det_time wall = 1767225600 * DET_SECOND;
    struct det_sim *sim = open_sim(1);
    det_time now = det_world_now(det_sim_world(sim), DET_CLOCK_MONOTONIC);
    uint64_t hash = det_sim_hash(sim);

    (void)state;
    clocks_are(sim, now, now, wall);
    det_sim_jump_wall(sim, -DET_DAY);
    clocks_are(sim, now, now, wall - DET_DAY);
    assert_int_not_equal(hash, det_sim_hash(sim));
    det_sim_jump_wall(sim, 3 * DET_DAY);
    clocks_are(sim, now, now, wall + 2 * DET_DAY);
    det_sim_suspend(sim, DET_HOUR);
    clocks_are(sim, now, now + DET_HOUR, wall + 2 * DET_DAY + DET_HOUR);
    assert_int_equal(0, det_sim_advance(sim, DET_MINUTE));
    clocks_are(
        sim, now + DET_MINUTE, now + DET_HOUR + DET_MINUTE,
        wall + 2 * DET_DAY + DET_HOUR + DET_MINUTE);
    det_sim_close(sim);
    assert_int_equal(
        0, det_sim_open(&(struct det_sim_options){ .wall = 5 * DET_SECOND }, &sim, NULL));
    clocks_are(sim, now, now, 5 * DET_SECOND);
    det_sim_close(sim);
}

static void options_that_make_no_sense_are_refused(void **state)
{
    const struct {
        struct det_sim_options options;
        int code;
    } cases[] = {
        { { .preempt = 1000001 }, DET_ERR_INVALID },
        { { .disk.read_error = 1000001 }, DET_ERR_INVALID },
        { { .disk.write_error = 1000001 }, DET_ERR_INVALID },
        { { .disk.sync_error = 1000001 }, DET_ERR_INVALID },
        { { .disk.no_space = 1000001 }, DET_ERR_INVALID },
        { { .wall = -1 }, DET_ERR_INVALID },
        { { .stack_size = SIZE_MAX }, DET_ERR_LIMIT },
    };
    struct det_sim *sim = NULL;
    struct det_error error;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        error.code = 0;
        assert_int_equal(cases[i].code, det_sim_open(&cases[i].options, &sim, &error));
        assert_int_equal(cases[i].code, error.code);
        assert_true(strlen(error.text) > 10);
        assert_null(sim);
    }
    det_sim_close(NULL);
}

static void do_nothing(void *argument)
{
    (void)argument;
}

static void without_preemption_a_thread_runs_until_it_waits(void **state)
{
    struct det_sim *sim;
    struct shared shared;
    struct det_thread *thread;

    (void)state;
    for (uint64_t seed = 0; seed < 100; seed++) {
        assert_int_equal(
            0, det_sim_open(
                   &(struct det_sim_options){ .seed = seed, .preempt = UINT32_MAX }, &sim, NULL));
        shared_init(&shared, sim);
        thread = start(&shared, produce);
        for (int i = 0; i < 50; i++) {
            det_mutex_lock(shared.world, shared.mutex);
            det_mutex_unlock(shared.world, shared.mutex);
            det_condition_signal(shared.world, shared.condition);
            det_condition_broadcast(shared.world, shared.condition);
            det_thread_preempt(shared.world);
        }
        assert_false(shared.is_ready);
        assert_int_equal(0, det_sim_settle(sim));
        assert_true(shared.is_ready);
        det_thread_join(shared.world, thread);
        shared_deinit(&shared);
        det_sim_close(sim);
    }
}

static void descriptors_are_unsupported_in_a_simulation(void **state)
{
    struct det_sim *sim = open_sim(1);
    struct det_watch watch = { .run = (void (*)(void *, unsigned))(void (*)(void))do_nothing };
    struct det_loop *loop;

    (void)state;
    assert_int_equal(0, det_loop_open(det_sim_world(sim), NULL, &loop));
    assert_int_equal(DET_ERR_UNSUPPORTED, det_loop_watch(loop, &watch, DET_POLL_READ));
    assert_int_equal(-1, det_loop_descriptor(loop));
    det_loop_close(loop);
    det_sim_close(sim);
}

static void run_job(void *argument)
{
    (void)argument;
}

static int use_everything(struct det_test_memory *memory, void *argument)
{
    struct det_job job = { .run = run_job, .done = run_job };
    struct det_timer timer = { .run = do_nothing };
    struct det_pool *pool = NULL;
    struct det_sim *sim = NULL;
    struct det_world *world;
    int r;

    (void)argument;
    r = det_sim_open(&(struct det_sim_options){ .allocator = &memory->allocator }, &sim, NULL);
    if (r < 0) {
        assert_null(sim);
        return r;
    }
    world = det_sim_world(sim);
    r = det_loop_open(world, &memory->allocator, &job.loop);
    if (r == 0)
        r = det_loop_timer_set(job.loop, &timer, 0);
    if (r == 0)
        r = det_loop_start(job.loop, "loop");
    if (r == 0)
        r = det_pool_open(world, &memory->allocator, 4, &pool);
    if (r == 0) {
        det_pool_submit(pool, &job);
        assert_int_equal(0, det_sim_settle(sim));
    }
    det_pool_close(pool);
    if (job.loop)
        det_loop_stop(job.loop);
    det_loop_close(job.loop);
    det_sim_close(sim);
    return r;
}

static void simulation_survives_every_failed_allocation(void **state)
{
    (void)state;
    det_test_each_failure(use_everything, NULL);
}

/* A loop on its own thread with one wall timer, an hour from the start. */
struct alarm_clock {
    struct det_sim *sim;
    struct det_loop *loop;
    struct det_timer timer;
    det_time wall;
    int rings;
};

static void ring(void *argument)
{
    struct alarm_clock *alarm = argument;

    alarm->rings++;
}

static void alarm_open(struct alarm_clock *alarm)
{
    const struct det_sim_options options = { .seed = 7 };

    *alarm = (struct alarm_clock){ .timer = { .run = ring, .argument = alarm } };
    assert_int_equal(0, det_sim_open(&options, &alarm->sim, NULL));
    assert_int_equal(0, det_loop_open(det_sim_world(alarm->sim), NULL, &alarm->loop));
    alarm->wall = det_world_now(det_sim_world(alarm->sim), DET_CLOCK_WALL);
    assert_int_equal(
        0, det_loop_timer_set_wall(alarm->loop, &alarm->timer, alarm->wall + DET_HOUR));
    assert_int_equal(0, det_loop_start(alarm->loop, "alarm"));
    assert_int_equal(0, det_sim_settle(alarm->sim));
}

static void alarm_close(struct alarm_clock *alarm)
{
    det_loop_stop(alarm->loop);
    det_loop_close(alarm->loop);
    det_sim_close(alarm->sim);
}

static void a_wall_timer_notices_that_the_clock_was_set_forward(void **state)
{
    struct alarm_clock alarm;

    (void)state;
    alarm_open(&alarm);
    det_sim_jump_wall(alarm.sim, DET_HOUR - 1);
    assert_int_equal(0, det_sim_settle(alarm.sim));
    assert_int_equal(0, alarm.rings);
    det_sim_jump_wall(alarm.sim, 1);
    assert_int_equal(0, det_sim_settle(alarm.sim));
    assert_int_equal(1, alarm.rings);
    alarm_close(&alarm);
}

static void a_wall_timer_waits_longer_when_the_clock_was_set_back(void **state)
{
    struct alarm_clock alarm;

    (void)state;
    alarm_open(&alarm);
    det_sim_jump_wall(alarm.sim, -DET_HOUR);
    assert_int_equal(0, det_sim_advance(alarm.sim, 2 * DET_HOUR - 1));
    assert_int_equal(0, alarm.rings);
    assert_int_equal(0, det_sim_advance(alarm.sim, 1));
    assert_int_equal(1, alarm.rings);
    alarm_close(&alarm);
}

static void a_wall_timer_is_due_after_the_machine_slept(void **state)
{
    struct alarm_clock alarm;
    uint64_t steps;

    (void)state;
    alarm_open(&alarm);
    steps = det_sim_steps(alarm.sim);
    assert_int_equal(0, det_sim_advance(alarm.sim, DET_HOUR / 2));
    /* No thread read a clock meanwhile. */
    assert_true(det_sim_steps(alarm.sim) <= steps + 2);
    det_sim_suspend(alarm.sim, DET_DAY);
    assert_int_equal(0, det_sim_settle(alarm.sim));
    assert_int_equal(1, alarm.rings);
    alarm_close(&alarm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_seeds_repeat_a_run_and_others_differ),
        cmocka_unit_test(a_lost_wake_up_is_found_by_some_seed),
        cmocka_unit_test(condition_has_spurious_wakeups),
        cmocka_unit_test(a_sleep_continues_after_a_wake_for_nothing),
        cmocka_unit_test(advancing_stops_at_every_deadline),
        cmocka_unit_test(each_clock_moves_only_for_its_own_reasons),
        cmocka_unit_test(options_that_make_no_sense_are_refused),
        cmocka_unit_test(without_preemption_a_thread_runs_until_it_waits),
        cmocka_unit_test(descriptors_are_unsupported_in_a_simulation),
        cmocka_unit_test(a_wall_timer_notices_that_the_clock_was_set_forward),
        cmocka_unit_test(a_wall_timer_waits_longer_when_the_clock_was_set_back),
        cmocka_unit_test(a_wall_timer_is_due_after_the_machine_slept),
        cmocka_unit_test(simulation_survives_every_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
