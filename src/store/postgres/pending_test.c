/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* pending_test.c - timers, effects and deferred events of an instance on PostgreSQL, as commits
 * change them. */
#include "store/postgres/postgres_test.h"

static void timers_are_set_replaced_and_cleared(void **state)
{
    struct pad *pad = desk_open();
    struct pad_event value = { .kind = SMALL, .as.small = 11 };
    struct det_store_timer_change changes[2];
    struct found found;

    (void)state;
    changes[0] = timer_change(DET_STORE_SET, DET_STATE_TIMER, 1000, &value);
    changes[1] = timer_change(DET_STORE_SET, 0, 2000, NULL);
    assert_int_equal(with_timers(pad, changes, 2), 0);
    assert_int_equal(look_up(pad, "p", &found), 0);
    assert_int_equal(found.timer_count, 2);
    assert_int_equal(found.timers[0].timer, DET_STATE_TIMER);
    assert_int_equal(found.timers[0].due, 1000);
    assert_int_equal(found.timers[0].event, SMALL);
    assert_int_equal(found.timers[0].visit, 1);
    assert_int_equal(found.timer_values[0], 11);
    assert_int_equal(found.timers[1].timer, 0);
    assert_null(found.timers[1].value);
    changes[0] = timer_change(DET_STORE_SET, 0, 3000, NULL);
    changes[1] = timer_change(DET_STORE_CLEAR, DET_STATE_TIMER, 0, NULL);
    assert_int_equal(with_timers(pad, changes, 2), 0);
    assert_int_equal(look_up(pad, "p", &found), 0);
    assert_int_equal(found.timer_count, 1);
    assert_int_equal(found.timers[0].due, 3000);
    /* Again, though there is nothing. */
    assert_int_equal(with_timers(pad, changes + 1, 1), 0);
    desk_close(pad);
}

static void last_of_several_changes_to_one_timer_wins(void **state)
{
    struct pad *pad = desk_open();
    struct det_store_timer_change changes[3];
    struct found found;

    (void)state;
    changes[0] = timer_change(DET_STORE_SET, 0, 1000, NULL);
    changes[1] = timer_change(DET_STORE_CLEAR, 0, 0, NULL);
    changes[2] = timer_change(DET_STORE_SET, 0, 2000, NULL);
    assert_int_equal(with_timers(pad, changes, 3), 0);
    assert_int_equal(look_up(pad, "p", &found), 0);
    assert_int_equal(found.timer_count, 1);
    assert_int_equal(found.timers[0].due, 2000);
    changes[0] = timer_change(DET_STORE_TAKE, 0, 2000, NULL);
    changes[1] = timer_change(DET_STORE_SET, 0, 3000, NULL);
    assert_int_equal(with_timers(pad, changes, 2), 0);
    assert_int_equal(look_up(pad, "p", &found), 0);
    assert_int_equal(found.timers[0].due, 3000);
    desk_close(pad);
}

static void timer_is_taken_once_only_if_due_and_unchanged(void **state)
{
    struct pad *pad = desk_open();
    det_time now = pad->store->ops->now(pad->store);
    struct det_store_timer_change set = timer_change(DET_STORE_SET, 0, 1000, NULL);
    struct det_store_timer_change late =
        timer_change(DET_STORE_SET, DET_STATE_TIMER, now + DET_HOUR, NULL);
    struct det_store_timer_change take = timer_change(DET_STORE_TAKE, 0, 1000, NULL);
    struct det_store_timer_change other = timer_change(DET_STORE_TAKE, 0, 1001, NULL);
    struct det_store_timer_change early =
        timer_change(DET_STORE_TAKE, DET_STATE_TIMER, now + DET_HOUR, NULL);
    struct found found;
    struct pad before;

    (void)state;
    assert_int_equal(with_timers(pad, &set, 1), 0);
    assert_int_equal(with_timers(pad, &late, 1), 0);
    before = *pad;
    assert_int_equal(with_timers(pad, &other, 1), DET_ERR_NOT_FOUND);
    *pad = before;
    assert_int_equal(with_timers(pad, &early, 1), DET_ERR_EARLY);
    *pad = before;
    assert_int_equal(look_up(pad, "p", &found), 0);
    assert_int_equal(found.timer_count, 2);
    assert_int_equal(found.loaded.head.sequence, 2);
    assert_int_equal(with_timers(pad, &take, 1), 0);
    assert_int_equal(with_timers(pad, &take, 1), DET_ERR_NOT_FOUND);
    assert_int_equal(look_up(pad, "p", &found), 0);
    assert_int_equal(found.timer_count, 1);
    desk_close(pad);
}

static struct det_store_effect some_effect(const struct pad *pad, uint16_t index)
{
    return (struct det_store_effect){ .sequence = pad->head.sequence,
                                      .index = index,
                                      .from = 0,
                                      .to = 1,
                                      .visit = 4,
                                      .asked = 5,
                                      .at = 6,
                                      .next = 7,
                                      .data = &pad->data,
                                      .event = &pad->value };
}

/* Changes to effects, with or without an event. */
static int with_effects(
    struct pad *pad, bool has_event, const struct det_store_effect_change *changes, size_t count)
{
    begin(pad);
    if (has_event)
        add_event(pad, SMALL);
    pad->commit.effects = changes;
    pad->commit.effect_count = count;
    return commit(pad);
}

static int ask_two(struct pad *pad)
{
    struct det_store_effect_change changes[2];

    pad->data = 21;
    pad->value = (struct pad_event){ .kind = SMALL, .as.small = 22 };
    pad->head.sequence++;
    changes[0] = (struct det_store_effect_change){ DET_STORE_SET, some_effect(pad, 0) };
    changes[1] = (struct det_store_effect_change){ DET_STORE_SET, some_effect(pad, 1) };
    pad->head.sequence--;
    return with_effects(pad, true, changes, 2);
}

static void effects_are_stored_retried_and_removed(void **state)
{
    struct pad *pad = desk_open();
    struct det_store_effect_change change = { DET_STORE_UPDATE, { .sequence = 1, .index = 1 } };
    struct found found;

    (void)state;
    assert_int_equal(ask_two(pad), 0);
    assert_int_equal(look_up(pad, "p", &found), 0);
    assert_int_equal(found.effect_count, 2);
    assert_int_equal(found.effects[0].index, 0);
    assert_int_equal(found.effects[1].index, 1);
    assert_int_equal(found.effects[0].from, 0);
    assert_int_equal(found.effects[0].to, 1);
    assert_int_equal(found.effects[0].visit, 4);
    assert_int_equal(found.effects[0].asked, 5);
    assert_int_equal(found.effects[0].at, 6);
    assert_int_equal(found.effects[0].next, 7);
    assert_int_equal(found.effect_data[0], 21);
    assert_int_equal(found.effect_events[0], 22);
    change.effect.attempts = 3;
    change.effect.last_error = DET_ERR_IO;
    change.effect.next = 900;
    assert_int_equal(with_effects(pad, false, &change, 1), 0);
    assert_int_equal(look_up(pad, "p", &found), 0);
    assert_int_equal(found.loaded.head.sequence, 1);
    assert_int_equal(found.effects[1].attempts, 3);
    assert_int_equal(found.effects[1].last_error, DET_ERR_IO);
    assert_int_equal(found.effects[1].next, 900);
    change.kind = DET_STORE_TAKE;
    assert_int_equal(with_effects(pad, true, &change, 1), 0);
    assert_int_equal(with_effects(pad, false, &change, 1), DET_ERR_NOT_FOUND);
    assert_int_equal(look_up(pad, "p", &found), 0);
    assert_int_equal(found.effect_count, 1);
    desk_close(pad);
}

static int becomes(struct pad *pad, uint16_t index, bool is_dead, uint32_t attempts)
{
    const struct det_store_effect_change change = {
        DET_STORE_UPDATE,
        { .sequence = 1, .index = index, .is_dead = is_dead, .attempts = attempts }
    };

    return with_effects(pad, false, &change, 1);
}

static void dead_effect_is_revived(void **state)
{
    struct pad *pad = desk_open();
    struct det_store_effect_change take = { DET_STORE_TAKE, { .sequence = 1, .index = 0 } };
    struct found found;

    (void)state;
    assert_int_equal(ask_two(pad), 0);
    assert_int_equal(becomes(pad, 0, true, 8), 0);
    assert_int_equal(look_up(pad, "p", &found), 0);
    assert_int_equal(found.effect_count, 2);
    assert_true(found.effects[0].is_dead);
    assert_int_equal(found.effects[0].attempts, 8);
    assert_int_equal(found.effect_data[0], 21);
    assert_false(found.effects[1].is_dead);
    assert_int_equal(becomes(pad, 0, true, 9), 0);
    assert_int_equal(becomes(pad, 0, false, 0), 0);
    assert_int_equal(look_up(pad, "p", &found), 0);
    assert_false(found.effects[0].is_dead);
    assert_int_equal(found.effects[0].attempts, 0);
    assert_int_equal(becomes(pad, 0, true, 1), 0);
    assert_int_equal(with_effects(pad, false, &take, 1), 0);
    assert_int_equal(look_up(pad, "p", &found), 0);
    assert_int_equal(found.effect_count, 1);
    assert_int_equal(becomes(pad, 0, false, 0), DET_ERR_NOT_FOUND);
    desk_close(pad);
}

static void only_the_newest_dead_effects_are_kept(void **state)
{
    struct pad *pad = desk_open();
    struct det_store_effect_change changes[80];
    char *count;

    (void)state;
    pad->head.sequence = 1;
    for (uint16_t i = 0; i < 80; i++)
        changes[i] = (struct det_store_effect_change){ DET_STORE_SET, some_effect(pad, i) };
    pad->head.sequence = 0;
    assert_int_equal(with_effects(pad, true, changes, 80), 0);
    for (uint16_t i = 0; i < 80; i++)
        assert_int_equal(becomes(pad, i, true, 1), 0);
    count = sql(pad->store, "SELECT count(*) || ' ' || min(number) FROM @dead_letters");
    assert_string_equal(count, "64 16");
    free(count);
    desk_close(pad);
}

static void events_are_deferred_and_taken(void **state)
{
    struct pad *pad = desk_open();
    struct pad_event value = { .kind = SMALL, .as.small = 5 };
    struct det_store_deferred_change change = { DET_STORE_SET, { 1, &value } };
    struct found found;

    (void)state;
    begin(pad);
    add_event(pad, SMALL);
    pad->commit.deferred = &change;
    pad->commit.deferred_count = 1;
    assert_int_equal(commit(pad), 0);
    assert_int_equal(look_up(pad, "p", &found), 0);
    assert_int_equal(found.deferred_count, 1);
    assert_int_equal(found.deferred[0], 1);
    assert_int_equal(found.deferred_values[0], 5);
    change.kind = DET_STORE_TAKE;
    for (int i = 0; i < 2; i++) {
        begin(pad);
        add_event(pad, SMALL);
        pad->commit.deferred = &change;
        pad->commit.deferred_count = 1;
        assert_int_equal(commit(pad), i == 0 ? 0 : DET_ERR_NOT_FOUND);
    }
    assert_int_equal(look_up(pad, "p", &found), 0);
    assert_int_equal(found.deferred_count, 0);
    desk_close(pad);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(timers_are_set_replaced_and_cleared),
        cmocka_unit_test(last_of_several_changes_to_one_timer_wins),
        cmocka_unit_test(timer_is_taken_once_only_if_due_and_unchanged),
        cmocka_unit_test(effects_are_stored_retried_and_removed),
        cmocka_unit_test(dead_effect_is_revived),
        cmocka_unit_test(only_the_newest_dead_effects_are_kept),
        cmocka_unit_test(events_are_deferred_and_taken),
    };

    return cmocka_run_group_tests(tests, open_server, close_server);
}
