/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* crash_sim_test.c - lives of a flow that end by power cuts in any function, by failing disks, by
 * stops: in the end its log is that of an undisturbed run, row for row. SIM_SEEDS sets the number
 * of seeds; each runs twice, and must do the same. */
#include "base/hash.h"

#include "flow/shop_test.h"

#define LIVES_MAX 60

static uint64_t seed_count(uint64_t count)
{
    const char *text = getenv("SIM_SEEDS");

    return text ? strtoull(text, NULL, 10) : count;
}

static struct shop shop;

static int open_shop(struct det_error *error)
{
    struct det_pipeline_options options = {
        .journal = "file:shop",
        .world = det_sim_world(shop.sim),
        .user = &shop,
        .window = 16,
        .threads = 3,
    };

    return det_pipeline_open(&shop.flow, &options, &shop.pipeline, error);
}

static const struct det_sim_disk_faults none;
static const struct det_sim_disk_faults faulty = {
    .write_error = 3000,
    .sync_error = 3000,
    .no_space = 1000,
};

static void wait_for_end(struct det_pipeline_end *ret)
{
    int r;

    r = det_pipeline_wait(shop.pipeline, DET_NEVER, ret);
    if (r < 0)
        shop_print(&shop);
    assert_int_equal(r, 0);
}

static struct shop_log read_log(void)
{
    struct det_journal_options options = { .world = det_sim_world(shop.sim) };
    DET_SCOPED(journal) journal = NULL;
    struct det_error error;

    char url[64];

    snprintf(url, sizeof url, "file:shop/%06u", (unsigned)shop.run);
    if (det_journal_open(url, &options, &journal, &error) < 0)
        fail_msg("%s", error.text);
    return shop_read(&shop, journal);
}

/* Of an undisturbed run. */
static struct shop_log run_quietly(void)
{
    struct det_error error;
    struct det_pipeline_end end;
    struct shop_log log;

    assert_int_equal(det_sim_open(NULL, &shop.sim, NULL), 0);
    shop_init(&shop, shop.sim);
    assert_int_equal(open_shop(&error), 0);
    shop.run = 1;
    wait_for_end(&end);
    assert_int_equal(end.outcome, DET_PIPELINE_COMPLETED);
    det_pipeline_close(shop.pipeline);
    log = read_log();
    det_sim_close(shop.sim);
    return log;
}

/* Asks it to stop at some time; most runs end before. */
static void stop_some_time(struct det_sim *sim)
{
    if (!det_sim_chance(sim, 300000))
        return;
    (void)!det_sim_advance(sim, (det_time)det_sim_random_below(sim, 60) * DET_MICROSECOND);
    if (det_sim_chance(sim, 500000))
        assert_int_equal(det_pipeline_drain(shop.pipeline, 0), 0);
    else
        assert_int_equal(det_pipeline_cancel(shop.pipeline), 0);
}

/* Whether the run is complete. */
static bool live_once(struct det_sim *sim, uint64_t seed, unsigned life)
{
    bool is_last = life == LIVES_MAX - 1;
    struct det_pipeline_end end;
    struct det_error error;
    int r;

    shop.has_cut = false;
    shop.trouble = is_last ? 0 : 3000;
    det_sim_set_disk_faults(sim, is_last || seed % 3 ? &none : &faulty);
    r = open_shop(&error);
    if (r < 0) {
        det_sim_set_disk_faults(sim, &none);
        if (r != DET_ERR_IO && r != DET_ERR_NO_SPACE)
            fail_msg("seed %llu, life %u: %s", (unsigned long long)seed, life, error.text);
        return false;
    }
    /* The last run has completed, but the disk failed before it said so. */
    if (shop.run == 0)
        shop.run = det_pipeline_run_number(shop.pipeline);
    if (det_pipeline_run_number(shop.pipeline) != shop.run) {
        det_sim_set_disk_faults(sim, &none);
        shop.trouble = 0;
        det_pipeline_close(shop.pipeline);
        return true;
    }
    stop_some_time(sim);
    wait_for_end(&end);
    if (end.outcome == DET_PIPELINE_HAS_FAILED && end.code != DET_ERR_IO &&
        end.code != DET_ERR_NO_SPACE)
        fail_msg("seed %llu, life %u: %s", (unsigned long long)seed, life, end.reason);
    det_pipeline_close(shop.pipeline);
    if (end.outcome == DET_PIPELINE_COMPLETED)
        return true;
    if (det_sim_chance(sim, 300000))
        det_sim_power_cut(sim);
    return false;
}

static uint64_t run_lives(uint64_t seed, const struct shop_log *expected)
{
    struct shop_log log;
    uint64_t hash;
    unsigned life = 0;

    assert_int_equal(det_sim_open(&(struct det_sim_options){ .seed = seed }, &shop.sim, NULL), 0);
    shop_init(&shop, shop.sim);
    shop.seed = seed;
    while (!live_once(shop.sim, seed, life))
        assert_true(++life < LIVES_MAX);
    det_sim_set_disk_faults(shop.sim, &none);
    log = read_log();
    for (int i = 0; i < 2 * SHOP_STAGES; i++) {
        if (log.rows[i] != expected->rows[i] || log.hashes[i] != expected->hashes[i])
            fail_msg(
                "seed %llu: stage %s has %llu rows instead of %llu, or others",
                (unsigned long long)seed, shop.stages[i % SHOP_STAGES].name,
                (unsigned long long)log.rows[i], (unsigned long long)expected->rows[i]);
    }
    hash = det_sim_hash(shop.sim);
    det_sim_close(shop.sim);
    return hash;
}

static void every_input_has_its_outputs_once_whatever_happens(void **state)
{
    struct shop_log expected = run_quietly();

    (void)state;
    assert_int_equal(expected.rows[NUMBERS], SHOP_ROWS + 1);
    for (uint64_t seed = 1; seed <= seed_count(100); seed++) {
        uint64_t hash = run_lives(seed, &expected);

        assert_int_equal(hash, run_lives(seed, &expected));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_input_has_its_outputs_once_whatever_happens),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
