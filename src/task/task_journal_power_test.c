/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* task_journal_power_test.c - what a turn has promised, on a disk that forgets and fails. */
#include "task/task_journal_test.h"

#define SEEDS 200

/* The acknowledged events of a test: of each life of the program, up to which sequence. */
#define LIVES 12
struct promises {
    uint64_t acknowledged[LIVES];
    uint64_t tried[LIVES];
};

/* True if the text (NULL: none) begins with this key and a number; writes the number. */
static bool number_after(const char *text, const char *key, uint64_t *ret)
{
    size_t size = strlen(key);
    char *end;

    if (!text || strncmp(text, key, size) != 0)
        return false;
    *ret = strtoull(text + size, &end, 10);
    return end != text + size;
}

/* The lines of the file are in order, without gaps, and reach at least as far as was promised. */
static void assert_kept(struct det_world *world, const struct promises *promises)
{
    uint64_t found[LIVES] = { 0 };
    struct content content = load(world);

    for (size_t at = 0, size; at < content.size; at += size) {
        const char *newline = memchr(content.data + at, '\n', content.size - at);
        char line[DET_TASK_JOURNAL_LINE_MAX + 1];
        uint64_t sequence = 0, id = 0;

        assert_non_null(newline);
        size = (size_t)(newline - (content.data + at)) + 1;
        assert_true(size < sizeof line);
        memcpy(line, content.data + at, size);
        line[size] = 0;
        if (!number_after(line, "{\"sequence\":", &sequence))
            continue;
        assert_true(number_after(strstr(line, "\"id\":"), "\"id\":", &id));
        assert_true(id >= 1 && id <= LIVES);
        assert_int_equal(found[id - 1] + 1, sequence);
        found[id - 1] = sequence;
    }
    for (int life = 0; life < LIVES; life++) {
        assert_true(found[life] >= promises->acknowledged[life]);
        assert_true(found[life] <= promises->tried[life]);
    }
    unload(content);
}

/* One life: turns of some events each, until the disk fails or the test has enough. */
static void live(
    struct det_sim *sim, struct det_task_journal *journal, unsigned life, struct promises *promises)
{
    uint64_t turns = det_sim_random_below(sim, 8), sequence = 0;
    int r = 0;

    for (uint64_t i = 0; i < turns; i++) {
        uint64_t events = det_sim_random_below(sim, 40);

        if (det_sim_chance(sim, 50000))
            events += 700; /* more than the buffer holds */
        while (events-- > 0)
            assert_int_equal(0, append(journal, life + 1, ++sequence));
        promises->tried[life] = sequence;
        if (i + 1 == turns && det_sim_chance(sim, 500000))
            return;
        /* A failure is one for good. */
        assert_true(r == 0 || turn(journal) == r);
        r = r == 0 ? turn(journal) : r;
        if (r == 0)
            promises->acknowledged[life] = sequence;
    }
}

/* Power cuts, programs that just end, and a disk that fails, in one file's history. */
static void synced_journal_lines_survive_power_cuts_and_faults(void **state)
{
    static const struct det_sim_disk_faults none;
    static const struct det_sim_disk_faults faulty = {
        .read_error = 20000,
        .write_error = 50000,
        .sync_error = 50000,
        .no_space = 20000,
    };

    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct det_sim *sim = open_sim(seed);
        struct det_world *world = det_sim_world(sim);
        struct promises promises = { { 0 }, { 0 } };

        for (unsigned life = 0; life < LIVES; life++) {
            struct det_task_journal *journal = NULL;
            struct det_error error;
            int r;

            det_sim_set_disk_faults(sim, seed % 3 ? &faulty : &none);
            r = det_task_journal_open(world, PATH, NULL, &journal, &error);
            assert_true(r == 0 || r == DET_ERR_IO || r == DET_ERR_NO_SPACE);
            if (r == 0)
                live(sim, journal, life, &promises);
            if (det_sim_chance(sim, 600000))
                det_sim_power_cut(sim);
            det_task_journal_close(journal);
        }
        det_sim_set_disk_faults(sim, &none);
        assert_int_equal(0, try_open(world, NULL));
        assert_kept(world, &promises);
        det_sim_power_cut(sim);
        assert_int_equal(0, try_open(world, NULL));
        assert_kept(world, &promises);
        det_sim_close(sim);
    }
}

static void journal_writes_every_event_and_reports_a_failed_sync_once(void **state)
{
    static struct watcher watcher;
    struct det_sim_disk_faults faults = { .sync_error = 1000000 };
    struct bus_fixture fixture;
    struct det_task_journal *journal;
    struct det_subscriber subscriber;
    struct det_subscription *subscription;
    struct content content;

    (void)state;
    memset(&watcher, 0, sizeof watcher);
    fixture_open(&fixture, 1, 4);
    assert_int_equal(
        0, det_task_journal_open(fixture.world, PATH, &fixture.memory.allocator, &journal, NULL));
    subscriber = det_task_journal_subscriber(journal);
    assert_int_equal(0, det_bus_subscribe(fixture.bus, &subscriber, &subscription, NULL));
    subscribe(&fixture, &watcher, "watcher", DET_DELIVER_LOOP, 0);
    publish_many(&fixture, 50);
    settle(&fixture);
    content = load(fixture.world);
    assert_non_null(strstr(content.data, "{\"sequence\":1,"));
    assert_non_null(strstr(content.data, "{\"sequence\":50,"));
    unload(content);
    det_sim_set_disk_faults(fixture.sim, &faults);
    for (int i = 0; i < 5; i++) {
        publish_many(&fixture, 1);
        settle(&fixture);
    }
    assert_int_equal(1, count_kind(&watcher, DET_TASK_EVENT_RUNTIME_FAILURE));
    assert_int_equal(0, count_kind(&watcher, DET_TASK_EVENT_SUBSCRIBER_FAILED));
    assert_string_equal("journal", watcher.seen[atomic_load(&watcher.count) - 5].name);
    assert_int_equal(DET_ERR_IO, det_subscription_stop(subscription, DET_NEVER));
    det_task_journal_close(journal);
    fixture_close(&fixture);
}

/* No subscriber gets it in time, but a reader of the ring does. */
static void failed_sync_at_the_end_is_reported(void **state)
{
    struct det_sim_disk_faults faults = { .write_error = 1000000 };
    struct bus_fixture fixture;
    struct det_task_journal *journal;
    struct det_subscriber subscriber;
    struct det_task_event event;
    uint64_t cursor = 1, lost;

    (void)state;
    fixture_open(&fixture, 1, 4);
    assert_int_equal(0, det_task_journal_open(fixture.world, PATH, NULL, &journal, NULL));
    subscriber = det_task_journal_subscriber(journal);
    assert_int_equal(0, det_bus_subscribe(fixture.bus, &subscriber, NULL, NULL));
    publish_many(&fixture, 1);
    det_sim_set_disk_faults(fixture.sim, &faults);
    assert_int_equal(0, det_bus_end(fixture.bus, DET_NEVER));
    assert_int_equal(1, det_bus_read(fixture.bus, &cursor, &event, &lost));
    assert_int_equal(DET_TASK_EVENT_RUNTIME_FAILURE, event.kind);
    det_task_journal_close(journal);
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(synced_journal_lines_survive_power_cuts_and_faults),
        cmocka_unit_test(journal_writes_every_event_and_reports_a_failed_sync_once),
        cmocka_unit_test(failed_sync_at_the_end_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
