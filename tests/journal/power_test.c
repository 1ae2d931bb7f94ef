/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* power_test.c - lives of a journal that end by power cuts, failing disks, or just so: what was
 * acknowledged is there, what is there is a prefix. JOURNAL_SEEDS sets the number of seeds. */
#include "journal/disk_test.h"

#define LIVES 8

static uint64_t seeds(uint64_t count)
{
    const char *text = getenv("JOURNAL_SEEDS");

    return text ? strtoull(text, NULL, 10) : count;
}

static const struct det_sim_disk_faults none;
static const struct det_sim_disk_faults faulty = {
    .read_error = 2000,
    .write_error = 10000,
    .sync_error = 20000,
    .no_space = 5000,
};

/* What a test knows. */
struct facts {
    uint64_t acknowledged, appended;
    bool may_restart; /* streams may be gone */
    bool has_released;
};

static bool is_fault(int r)
{
    return r == DET_ERR_IO || r == DET_ERR_NO_SPACE;
}

/* Appends, waits now and then, releases; until the disk fails or the test has enough. */
static void live_once(struct det_sim *sim, struct det_journal *journal, struct facts *facts)
{
    bool is_long = det_sim_chance(sim, 60000); /* several segments, whose files are used again */
    uint64_t turns = det_sim_random_below(sim, is_long ? 200 : 30), at = 0;
    int r;

    for (uint64_t i = 0; i < turns; i++) {
        bool is_large = is_long || det_sim_chance(sim, 200000);
        size_t count = 1 + (size_t)det_sim_random_below(sim, is_large ? 60 : 5);

        r = append_numbers(journal, count, &at);
        if (r == 0)
            facts->appended = at;
        if (r == 0 && det_sim_chance(sim, 600000))
            r = det_journal_wait(journal, at, DET_NEVER);
        if (r < 0) {
            assert_true(is_fault(r));
            assert_int_equal(r, det_journal_failure(journal, NULL));
            assert_int_equal(r, append_numbers(journal, 1, NULL));
            break;
        }
        if (det_sim_chance(sim, 50000))
            assert_int_equal(0, det_sim_advance(sim, 5 * DET_MILLISECOND));
        if (det_sim_chance(sim, 20000))
            facts->has_released = det_journal_release(journal, at > 300 ? at - 300 : 1) == 0;
    }
    /* Dropping opens files: a thread that does it after the power cut would find the disk alive. */
    if (facts->has_released)
        assert_int_equal(0, det_sim_settle(sim));
    facts->acknowledged = det_journal_acknowledged(journal);
}

/* A prefix of what was appended, with all that was acknowledged; every row as it was. */
static void check_journal(struct det_journal *journal, struct facts *facts)
{
    uint64_t end = det_journal_end(journal), sequence, position;

    assert_true(end >= facts->acknowledged);
    assert_true(end <= facts->appended);
    assert_int_equal(end + 1, read_numbers(journal, 0));
    assert_int_equal(0, det_journal_last(journal, 0, &sequence, &position));
    assert_true(facts->may_restart || (sequence == end && position == end));
    facts->acknowledged = facts->appended = end;
}

static uint64_t run_lives(uint64_t seed, const struct det_journal_options *options, bool has_cuts)
{
    struct det_sim *sim = open_sim(seed);
    struct det_world *world = det_sim_world(sim);
    struct facts facts = { 0 };
    uint64_t hash;

    for (unsigned life = 0; life < LIVES; life++) {
        struct det_journal *journal;
        struct det_error error;

        det_sim_set_disk_faults(sim, seed % 3 ? &faulty : &none);
        journal = try_open(world, options, &error);
        if (!journal && !is_fault(error.code))
            print_error("seed %llu, life %u: %s\n", (unsigned long long)seed, life, error.text);
        assert_true(journal || is_fault(error.code));
        det_sim_set_disk_faults(sim, &none);
        if (journal)
            check_journal(journal, &facts);
        det_sim_set_disk_faults(sim, seed % 3 ? &faulty : &none);
        facts.has_released = false;
        if (journal)
            live_once(sim, journal, &facts);
        if (has_cuts && det_sim_chance(sim, 600000))
            det_sim_power_cut(sim);
        det_journal_close(journal);
        if (has_cuts && det_sim_chance(sim, 300000))
            det_sim_power_cut(sim);
    }
    det_sim_set_disk_faults(sim, &none);
    for (int i = 0; i < 2; i++) {
        struct det_journal *journal = must_open(world, options);

        check_journal(journal, &facts);
        det_journal_close(journal);
        if (has_cuts)
            det_sim_power_cut(sim);
    }
    hash = det_sim_hash(sim);
    det_sim_close(sim);
    return hash;
}

static void no_acknowledged_row_is_lost_by_power_cuts_and_failing_disks(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= seeds(300); seed++) {
        struct det_journal_options options = {
            .segment_size = seed % 2 ? 65536 : 0,
            .buffer_size = seed % 5 ? 4096 : 65536,
        };
        uint64_t hash = run_lives(seed, &options, true);

        if (seed % 20 == 0)
            assert_int_equal(hash, run_lives(seed, &options, true));
    }
}

static void no_row_in_the_page_cache_is_lost_by_the_end_of_the_process(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= seeds(150); seed++) {
        struct det_journal_options options = {
            .durability = seed % 4 ? DET_JOURNAL_OS : DET_JOURNAL_DISK,
            .segment_size = 65536,
            .buffer_size = 4096,
        };

        (void)run_lives(seed, &options, false);
    }
}

/* After a power failure a journal with durability OS is a prefix, and it can be opened. If all
 * segments are gone, the streams begin again. */
static void journal_with_durability_os_is_a_prefix_after_a_power_cut(void **state)
{
    struct det_journal_options options = {
        .durability = DET_JOURNAL_OS,
        .segment_size = 65536,
        .buffer_size = 4096,
    };

    (void)state;
    for (uint64_t seed = 1; seed <= seeds(150); seed++) {
        struct det_sim *sim = open_sim(seed);
        struct det_world *world = det_sim_world(sim);
        struct facts facts = { .may_restart = true };

        for (int life = 0; life < 6; life++) {
            struct det_journal *journal = must_open(world, &options);

            facts.acknowledged = 0;
            facts.has_released = false;
            check_journal(journal, &facts);
            for (int i = 0; i < 5; i++)
                live_once(sim, journal, &facts);
            det_sim_power_cut(sim);
            det_journal_close(journal);
            det_sim_jump_wall(sim, DET_MINUTE); /* the machine starts again */
        }
        det_sim_close(sim);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_acknowledged_row_is_lost_by_power_cuts_and_failing_disks),
        cmocka_unit_test(no_row_in_the_page_cache_is_lost_by_the_end_of_the_process),
        cmocka_unit_test(journal_with_durability_os_is_a_prefix_after_a_power_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
