/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* complete_history_test.c - events one behind the other, of a store that others work with. */
#include "transfer/complete_history.h"
#include "transfer/race_test.h"

struct seen {
    uint64_t first, last, count;
    int answer;
};

static int see(void *context, const struct det_store_event *row)
{
    struct seen *seen = context;

    if (!seen->count++)
        seen->first = row->sequence;
    seen->last = row->sequence;
    return seen->answer;
}

static void open_shop(struct shop *shop, struct instance *instance)
{
    shop_open(shop);
    shop_start(shop, shop->order, "o");
    race_send(shop, "o", 20);
    race_begin(shop);
    assert_int_equal(instance_find(&shop->store, "o", instance), CLI_OK);
}

static void close_shop(struct shop *shop, struct instance *instance)
{
    instance_close(instance);
    race_end(shop);
    shop_close(shop);
}

static int walk(const struct shop *shop, const struct instance *instance, struct seen *seen)
{
    const struct history_visit history_visit = {
        .loaded = &instance->loaded, .first = seen->first, .visit = see, .context = seen
    };

    return complete_events(&shop->store, &history_visit);
}

static void events_that_came_later_are_not_shown(void **state)
{
    struct seen seen = { 0 };
    struct instance instance;
    struct shop shop;

    (void)state;
    open_shop(&shop, &instance);
    shop_send(&shop, "o", "pay");
    assert_int_equal(walk(&shop, &instance, &seen), 0);
    assert_true(seen.first == 1 && seen.last == 20 && seen.count == 20);
    seen = (struct seen){ .answer = 7 };
    assert_int_equal(walk(&shop, &instance, &seen), 7);
    assert_int_equal(seen.count, 1);
    close_shop(&shop, &instance);
}

static void a_hole_is_found_wherever_it_is(void **state)
{
    static const struct {
        uint64_t low, high, first;
    } holes[] = { { 5, 15, 0 }, { 5, 21, 0 }, { 0, 15, 1 }, { 0, 21, 1 } };
    struct instance instance;
    struct shop shop;

    (void)state;
    open_shop(&shop, &instance);
    race.is_lasting = true;
    for (size_t i = 0; i < sizeof holes / sizeof *holes; i++) {
        struct seen seen = { .first = holes[i].first };

        race_hole(1, holes[i].low, holes[i].high);
        assert_int_equal(walk(&shop, &instance, &seen), DET_ERR_BUSY);
        assert_int_equal(seen.count, holes[i].low);
    }
    close_shop(&shop, &instance);
}

static void history_without_events_is_complete_until_newer_ones_exist(void **state)
{
    struct seen seen = { 0 };
    struct instance instance;
    struct shop shop;

    (void)state;
    open_shop(&shop, &instance);
    race_hole(1, 0, 21);
    assert_int_equal(walk(&shop, &instance, &seen), 0);
    assert_int_equal(seen.count, 0);
    shop_send(&shop, "o", "pay");
    assert_int_equal(walk(&shop, &instance, &seen), DET_ERR_BUSY);
    close_shop(&shop, &instance);
}

static void gaps_in_a_history_may_be_allowed(void **state)
{
    struct seen seen = { 0 };
    struct instance instance;
    struct shop shop;

    (void)state;
    open_shop(&shop, &instance);
    race_hole(1, 5, 15);
    assert_int_equal(
        complete_events(
            &shop.store,
            &(struct history_visit){
                .loaded = &instance.loaded, .allows_holes = true, .visit = see, .context = &seen }),
        0);
    assert_true(seen.count == 11 && seen.last == 20);
    close_shop(&shop, &instance);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_that_came_later_are_not_shown),
        cmocka_unit_test(a_hole_is_found_wherever_it_is),
        cmocka_unit_test(history_without_events_is_complete_until_newer_ones_exist),
        cmocka_unit_test(gaps_in_a_history_may_be_allowed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
