/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* pending_test.c - what is pending, page by page: in order, each once, also where many are due at
 * the same moment, and where some cannot be read. */
#include "inspect/store_test.h"

#include "inspect/pending.h"

#define MOST 32

/* The places of all pages, in order. */
struct pages {
    struct pending_place places[MOST];
    char ids[MOST][DET_ID_MAX + 1];
    size_t count, pages, left_out;
};

/* A place as the next page gets it: as text, and read again. */
static void pass_on(const struct pending_place *place, struct det_arena *arena, const char **text)
{
    struct pending_place again;
    struct det_json_writer json;
    char *end;

    det_json_writer_init(&json, NULL);
    pending_place_line(&json, NULL, place);
    assert_int_equal(det_buffer_status(&json.text), 0);
    *text = det_arena_copy_n(arena, det_buffer_text(&json.text) + 1, json.text.size - 2);
    assert_non_null(*text);
    end = strchr(*text, '"');
    assert_null(end);
    assert_true(pending_place_read(*text, arena, &again));
    assert_int_equal(pending_place_compare(&again, place), 0);
    det_json_writer_deinit(&json);
}

/* The page behind `after`; where it ends, or NULL. */
static const char *turn(
    struct shop *shop, enum det_store_due_kind kind, size_t limit, const char *after,
    struct det_arena *arena, struct pages *pages)
{
    const struct pending *all;
    struct pending_place last;
    struct pending_list list;
    const char *next = NULL;
    size_t count;

    pending_init(&list, &shop->store, NULL, kind, limit);
    if (after)
        assert_true(pending_place_read(after, arena, &list.after));
    assert_int_equal(cli_store_each(&shop->store, pending_of_machine, &list), CLI_OK);
    all = pending_sort(&list, &count);
    for (size_t i = 0; i < count && i < limit; i++) {
        struct pending_place *place = &pages->places[pages->count];

        assert_true(pages->count < MOST);
        last = *place = all[i].place;
        place->id = pages->ids[pages->count];
        snprintf(pages->ids[pages->count], sizeof pages->ids[0], "%s", all[i].place.id);
        place->machine = place->machine[0] == 'o' ? "order" : "parcel";
        place->timer = kind == DET_DUE_TIMERS && *place->timer ? "reminder" : "";
        pages->count++;
    }
    if (count <= limit)
        last = (struct pending_place){ list.until, "", "", "", 0, 0 };
    if (count > limit || list.until != DET_NEVER)
        pass_on(&last, arena, &next);
    pages->left_out += list.left_out;
    pending_deinit(&list);
    return next;
}

static void read_pages(
    struct shop *shop, enum det_store_due_kind kind, size_t limit, struct pages *ret)
{
    struct det_arena arena;
    const char *after = NULL;

    *ret = (struct pages){ .count = 0 };
    det_arena_init(&arena, NULL);
    do {
        after = turn(shop, kind, limit, after, &arena, ret);
        assert_true(++ret->pages < 2 * MOST);
    } while (after);
    det_arena_deinit(&arena);
    for (size_t i = 1; i < ret->count; i++)
        assert_true(pending_place_compare(&ret->places[i - 1], &ret->places[i]) < 0);
}

/* Eight that are due together, two that are due a minute later, and five that have paid: each of
 * those has a reminder, due together too, and an effect. */
static void fill(struct shop *shop)
{
    char id[8];

    shop_open(shop);
    for (int i = 0; i < 10; i++) {
        snprintf(id, sizeof id, "o-%d", (i * 7) % 10);
        if (i == 8)
            shop_advance(shop, DET_MINUTE);
        shop_start(shop, shop->order, id);
    }
    for (int i = 0; i < 5; i++) {
        snprintf(id, sizeof id, "p-%d", i);
        shop_start(shop, shop->order, id);
        shop_send(shop, id, "pay");
    }
    shop_start(shop, shop->parcel, "without");
}

static void pages_of_any_size_give_the_same_list(void **state)
{
    static const enum det_store_due_kind kinds[] = { DET_DUE_TIMERS, DET_DUE_EFFECTS };
    static const size_t counts[] = { 15, 5 };
    struct pages whole, pages;
    struct shop shop;

    (void)state;
    fill(&shop);
    for (size_t k = 0; k < 2; k++) {
        read_pages(&shop, kinds[k], 100, &whole);
        assert_int_equal(whole.count, counts[k]);
        assert_int_equal(whole.pages, 1);
        for (size_t limit = 1; limit <= counts[k] + 1; limit++) {
            read_pages(&shop, kinds[k], limit, &pages);
            assert_int_equal(pages.count, whole.count);
            assert_int_equal(pages.pages, (counts[k] + limit - 1) / limit);
            for (size_t i = 0; i < whole.count; i++)
                assert_int_equal(pending_place_compare(&pages.places[i], &whole.places[i]), 0);
        }
    }
    shop_close(&shop);
}

static int unreadable;

/* Half of them cannot be read, or have gone. */
static int load_badly(
    struct det_store *store, const struct det_machine *machine, const char *id,
    const struct det_store_rows *rows, struct det_store_loaded *ret)
{
    if (id[strlen(id) - 1] % 2)
        return unreadable;
    return store->ops->load(store, machine, id, rows, ret);
}

static void unreadable_instances_are_skipped_in_the_list(void **state)
{
    static const int errors[] = { DET_ERR_CORRUPT, DET_ERR_VERSION, DET_ERR_NOT_FOUND };
    struct det_store_ops ops;
    struct pages pages;
    struct shop shop;

    (void)state;
    fill(&shop);
    ops = *shop.store.ops;
    ops.load = load_badly;
    shop.store.ops = &ops;
    for (size_t i = 0; i < 3; i++) {
        unreadable = errors[i];
        for (size_t limit = 1; limit < 12; limit += 3) {
            read_pages(&shop, DET_DUE_TIMERS, limit, &pages);
            assert_int_equal(pages.count, 8);
            if (unreadable == DET_ERR_NOT_FOUND)
                assert_int_equal(pages.left_out, 0);
            else
                assert_true(pages.left_out >= 7);
        }
    }
    shop.store.ops = shop.store.store->ops;
    shop_close(&shop);
}

static void an_error_of_the_store_ends_the_list(void **state)
{
    struct det_store_ops ops;
    struct pending_list list;
    struct shop shop;

    (void)state;
    fill(&shop);
    ops = *shop.store.ops;
    ops.load = load_badly;
    shop.store.ops = &ops;
    unreadable = DET_ERR_IO;
    pending_init(&list, &shop.store, NULL, DET_DUE_TIMERS, 3);
    assert_int_equal(cli_store_each(&shop.store, pending_of_machine, &list), CLI_FAILURE);
    assert_int_equal(shop.store.error, DET_ERR_IO);
    pending_deinit(&list);
    shop.store.ops = shop.store.store->ops;
    shop_close(&shop);
}

static int list_all(struct det_test_memory *memory, void *argument)
{
    struct shop *shop = argument;
    struct pending_list list;
    int code;

    shop->cli.has_failed = false;
    pending_init(&list, &shop->store, &memory->allocator, DET_DUE_EFFECTS, 3);
    code = cli_store_each(&shop->store, pending_of_machine, &list);
    if (code == CLI_OK && (shop->cli.has_failed || det_buffer_status(&list.found) < 0))
        code = CLI_FAILURE;
    pending_deinit(&list);
    return code == CLI_OK ? 0 : DET_ERR_NO_MEMORY;
}

static void failed_allocation_ends_the_list(void **state)
{
    struct shop shop;

    (void)state;
    fill(&shop);
    shop_fail_effect(&shop, "p-1", 1, DET_ERR_IO, "because", false);
    det_test_each_failure(list_all, &shop);
    shop_close(&shop);
}

/* Two timers, whose names are not in the order of the definition, the one of the state, and two
 * effects; a store may give them in any order. One timer and one effect are alive. */
static const struct det_timer_def dead_timers[] = { { .name = "zeta" },
                                                    { .name = "beta" },
                                                    { .name = "alpha" } };
static const struct det_machine dead_machine = { .name = "order",
                                                 .timers = dead_timers,
                                                 .timer_count = 3 };

static size_t count_dead_pages(const char **names)
{
    struct instance_timer timers[] = {
        { &timers[1], { .timer = 2, .is_dead = true } },
        { &timers[2], { .timer = 1 } },
        { &timers[3], { .timer = 0, .is_dead = true } },
        { NULL, { .timer = DET_STATE_TIMER, .is_dead = true } },
    };
    struct instance_effect effects[] = {
        { .next = &effects[1], .row = { .sequence = 7, .index = 1, .is_dead = true } },
        { .next = &effects[2], .row = { .sequence = 8 } },
        { .row = { .sequence = 7, .is_dead = true } },
    };
    struct instance instance = { .machine = &dead_machine, .timers = timers, .effects = effects };
    struct pending_place after = { .machine = "", .id = "", .timer = "" };
    const struct pending_dead *all;
    size_t pages = 0, left;

    det_arena_init(&instance.arena, NULL);
    do {
        all = pending_dead_of(&instance, "o-1", &after, &left);
        assert_non_null(all);
        if (left)
            names[pages++] = all->timer ? all->place.timer : all->effect->index ? "1" : "0";
        after = all->place;
    } while (left);
    det_arena_deinit(&instance.arena);
    return pages;
}

static void dead_letters_are_paged_one_at_a_time(void **state)
{
    static const char *const expected[] = { "", "0", "1", "alpha", "zeta" };
    const char *names[8];

    (void)state;
    assert_int_equal(count_dead_pages(names), 5);
    for (size_t i = 0; i < 5; i++)
        assert_string_equal(names[i], expected[i]);
}

static void malformed_page_positions_are_refused(void **state)
{
    static const char *const wrong[] = {
        "",
        "1",
        "1~order~o-1~~0",
        "1~order~o-1~~0~0~",
        "1~order~o-1~~0~0~0",
        "-1~order~o-1~~0~0",
        "x~order~o-1~~0~0",
        "1~order~o-1~~x~0",
        "1~order~o-1~~0~x",
        "9223372036854775808~order~o-1~~0~0",
        "1~order~~~0~0",
        "1~order~o 1~~0~0",
    };
    struct pending_place place;
    struct det_arena arena;

    (void)state;
    det_arena_init(&arena, NULL);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(pending_place_read(wrong[i], &arena, &place));
    assert_true(pending_place_read("1~~~~0~0", &arena, &place));
    assert_true(pending_place_read("0~order~o-1~~7~2", &arena, &place));
    assert_int_equal(place.sequence, 7);
    assert_int_equal(place.index, 2);
    det_arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_of_any_size_give_the_same_list),
        cmocka_unit_test(unreadable_instances_are_skipped_in_the_list),
        cmocka_unit_test(an_error_of_the_store_ends_the_list),
        cmocka_unit_test(failed_allocation_ends_the_list),
        cmocka_unit_test(dead_letters_are_paged_one_at_a_time),
        cmocka_unit_test(malformed_page_positions_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
