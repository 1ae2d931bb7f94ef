/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* damage_test.c - rows that somebody else has changed: who meets them is told, and who
 * does not goes on. */
#include "store/postgres/postgres_test.h"

static int do_load(struct pad *pad)
{
    struct found found;

    return look_up(pad, "p", &found);
}

static int do_answer(struct pad *pad)
{
    struct det_store_answer answer;

    return pad->store->ops->answer(pad->store, pad->instance, "id-2", &answer);
}

static int no_event(void *context, const struct det_store_event *row)
{
    (void)context;
    (void)row;
    return 0;
}

static int do_events(struct pad *pad)
{
    return pad->store->ops->events(pad->store, pad->instance, 0, no_event, NULL);
}

static int do_start(struct pad *pad)
{
    uint64_t data;
    struct det_store_start began = { .data = &data };

    return pad->store->ops->start(pad->store, pad->instance, &began);
}

static int no_listed(void *context, const struct det_store_listed *row)
{
    (void)context;
    (void)row;
    return 0;
}

static int do_list(struct pad *pad)
{
    return pad->store->ops->list(
        pad->store, pad->machine, &(struct det_store_query){ 0 }, no_listed, NULL);
}

/* Three events, a timer, an effect and a deferred event. */
static struct pad *desk_of_all(void)
{
    struct pad *pad = desk_open();
    struct pad_event value = { .kind = SMALL };
    struct det_store_timer_change timer = timer_change(DET_STORE_SET, 0, 5, &value);
    struct det_store_effect_change effect = {
        DET_STORE_SET, { .sequence = 1, .next = 5, .data = &pad->data, .event = &value }
    };
    struct det_store_deferred_change deferred = { DET_STORE_SET, { 1, &value } };

    begin(pad);
    pad->commit.timers = &timer;
    pad->commit.effects = &effect;
    pad->commit.deferred = &deferred;
    pad->commit.timer_count = pad->commit.effect_count = pad->commit.deferred_count = 1;
    assert_int_equal(commit(pad), 0);
    for (int i = 1; i <= 3; i++) {
        char id[8];

        snprintf(id, sizeof id, "id-%d", i);
        assert_int_equal(send(pad, BARE, id), 0);
    }
    return pad;
}

static void damaged_row_is_reported_by_the_operation_that_reads_it(void **state)
{
    static const struct {
        const char *damage;
        int (*run)(struct pad *pad);
        int code;
    } cases[] = {
        { "UPDATE @instances SET hash = '\\x01'", do_load, DET_ERR_CORRUPT },
        { "UPDATE @timers SET name = 'gone'", do_load, DET_ERR_CORRUPT },
        { "UPDATE @timers SET event = 'GONE'", do_load, DET_ERR_CORRUPT },
        { "UPDATE @timers SET payload = '\\x0102'", do_load, DET_ERR_CORRUPT },
        { "UPDATE @outbox SET effect = 'gone'", do_load, DET_ERR_CORRUPT },
        { "UPDATE @outbox SET data = '\\x0102'", do_load, DET_ERR_CORRUPT },
        { "UPDATE @deferred SET event = 'GONE'", do_load, DET_ERR_CORRUPT },
        { "UPDATE @deferred SET payload = '\\x0102'", do_load, DET_ERR_CORRUPT },
        { "UPDATE @answers SET outcome = 'gone'", do_answer, DET_ERR_CORRUPT },
        { "UPDATE @answers SET state = 'gone'", do_answer, DET_ERR_CORRUPT },
        { "UPDATE @events SET outcome = 'gone'", do_events, DET_ERR_VERSION },
        { "UPDATE @starts SET data = '\\x0102'", do_start, DET_ERR_CORRUPT },
        { "UPDATE @starts SET state = 'gone'", do_start, DET_ERR_CORRUPT },
        { "UPDATE @instances SET state = 'gone'", do_list, DET_ERR_VERSION },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pad *pad = desk_of_all();
        int r;

        assert_int_equal(cases[i].run(pad), 0);
        free(sql(pad->store, cases[i].damage));
        r = cases[i].run(pad);
        if (r != cases[i].code)
            fail_msg("%s: %s", cases[i].damage, det_error_text(r));
        desk_close(pad);
    }
}

static void unknown_past_state_ends_the_history(void **state)
{
    struct pad *pad = desk_of_all();
    struct found found;

    (void)state;
    assert_int_equal(look_up(pad, "p", &found), 0);
    assert_int_equal(found.loaded.history_count, 3);
    free(sql(pad->store, "UPDATE @events SET from_state = 'gone' WHERE sequence = 2"));
    assert_int_equal(look_up(pad, "p", &found), 0);
    assert_int_equal(found.loaded.history_count, 1);
    desk_close(pad);
}

static int enough(void *context, const struct det_store_finding *row)
{
    assert_non_null(strstr(row->text, context));
    return 42;
}

/* After any kind of finding. */
static void visitor_ends_the_check_at_any_finding(void **state)
{
    static const struct {
        const char *damage, *words;
    } cases[] = {
        { "UPDATE @events SET to_state = 'B' WHERE sequence = 2", "was changed" },
        { "DELETE FROM @starts; DELETE FROM @events WHERE sequence < 2", "no snapshot covers" },
        { "UPDATE @instances SET reason = 'none'", "the head is damaged" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pad *pad = desk_of_all();
        char words[40];

        free(sql(pad->store, cases[i].damage));
        snprintf(words, sizeof words, "%s", cases[i].words);
        assert_int_equal(pad->store->ops->check(pad->store, enough, NULL, words), 42);
        desk_close(pad);
    }
}

static void empty_commit_succeeds(void **state)
{
    struct pad *pad = desk_open();

    (void)state;
    assert_int_equal(pad->store->ops->commit(pad->store, NULL, 0), 0);
    desk_close(pad);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damaged_row_is_reported_by_the_operation_that_reads_it),
        cmocka_unit_test(unknown_past_state_ends_the_history),
        cmocka_unit_test(visitor_ends_the_check_at_any_finding),
        cmocka_unit_test(empty_commit_succeeds),
    };

    return cmocka_run_group_tests(tests, open_server, close_server);
}
