/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* import_test.c - a store exported and imported is the same store. */
#include "transfer/export.h"
#include "transfer/import.h"

#include "transfer/export_test.h"

static void stop_runtime(struct shop *shop)
{
    det_runtime_close(shop->runtime);
    shop->runtime = NULL;
}

/* Something of everything. */
static void fill(struct shop *shop)
{
    shop_start(shop, shop->order, "charging");
    shop_send_with(shop, "charging", "pay", "{\"card\":\"4\",\"cents\":9007199254740993}", "p-1");
    shop_send(shop, "charging", "ship");
    shop_start(shop, shop->order, "fresh");
    shop_start(shop, shop->order, "long");
    for (int i = 0; i < 60; i++) {
        shop_advance(shop, DET_MILLISECOND + 1);
        shop_send(shop, "long", i % 3 ? "ping" : i % 2 ? "ping" : "pay");
    }
    shop_start(shop, shop->order, "stopped");
    shop_send(shop, "stopped", "pay");
    shop_send(shop, "stopped", "halt");
    shop_start(shop, shop->parcel, "charging");
}

/* Without what differs by right: when it was exported, where from, and so the hashes. */
static void strip(char *text)
{
    char *to = text;

    for (char *from = text; *from;) {
        if (strncmp(from, ",\"hash\":\"", 9) == 0)
            from += 9 + 64 + 1;
        *to++ = *from++;
    }
    *to = '\0';
}

static void assert_same(char *left, char *right)
{
    strip(left);
    strip(right);
    /* The first line says when it was written. */
    assert_string_equal(strchr(left, '\n'), strchr(right, '\n'));
}

static void open_target(struct shop *target)
{
    shop_open_with(target, NULL);
    shop_advance(target, DET_DAY);
}

static void export_and_import_preserve_a_store(void **state)
{
    struct shop shop, target;
    char *before, *after;

    (void)state;
    shop_open(&shop);
    fill(&shop);
    stop_runtime(&shop);
    before = export_text(&shop);
    open_target(&target);
    assert_int_equal(store_import(&target.store, path), CLI_OK);
    assert_string_equal(shop_printed(&target), "5 instances and 64 events imported\n");
    after = export_text(&target);
    assert_same(before, after);
    free(before);
    free(after);
    shop_close(&target);
    shop_close(&shop);
}

/* Exports an instance with events, and one whose events are all deleted. */
static void export_failed(struct shop *shop, const char *printed, bool is_dead, bool has_events)
{
    struct instance instance;
    uint64_t count;

    shop_open(shop);
    shop_start(shop, shop->order, "o-1");
    shop_send(shop, "o-1", "pay");
    assert_int_equal(det_runtime_snapshot(shop->runtime, shop->order, "o-1", NULL), 0);
    stop_runtime(shop);
    shop_fail_effect(shop, "o-1", 3, DET_ERR_IO, printed, is_dead);
    if (!has_events) {
        assert_int_equal(instance_find(&shop->store, "o-1", &instance), CLI_OK);
        assert_int_equal(
            shop->store.ops->prune(shop->store.store, instance.loaded.instance, 1, 0, &count), 0);
        assert_int_equal(count, 1);
        instance_close(&instance);
    }
    free(export_text(shop));
}

static void dead_letters_and_their_reasons_survive_an_export(void **state)
{
    static const char *const printed[] = { "status 503", "exit code 1: \"no\"", NULL };

    (void)state;
    for (unsigned i = 0; i < 12; i++) {
        const char *reason = printed[i % 3];
        bool is_dead = i % 2, has_events = i < 6;
        struct instance instance;
        struct shop shop, target;

        export_failed(&shop, reason, is_dead, has_events);
        open_target(&target);
        assert_int_equal(store_import(&target.store, path), CLI_OK);
        assert_int_equal(instance_find(&target.store, "o-1", &instance), CLI_OK);
        assert_int_equal(instance_effect_count(&instance, is_dead), 1);
        assert_int_equal(instance_effect_count(&instance, !is_dead), 0);
        assert_int_equal(instance.effects->row.attempts, 3);
        assert_true(instance.effects->row.next < DET_NEVER);
        if (reason)
            assert_string_equal(instance.effects->row.reason, reason);
        else
            assert_null(instance.effects->row.reason);
        instance_close(&instance);
        shop_close(&target);
        shop_close(&shop);
    }
}

/* Stores in memory keep 64 events; the history before those is only in a snapshot. */
static void pruned_instance_continues_after_import(void **state)
{
    struct det_store_snapshot snapshot = { .taken_at = 0 };
    struct instance instance;
    struct shop shop, target;
    char data[64];

    (void)state;
    shop_open(&shop);
    shop_start(&shop, shop.order, "long");
    for (int i = 0; i < 100; i++)
        shop_send(&shop, "long", i % 4 == 0 ? "pay" : "ping");
    stop_runtime(&shop);
    free(export_text(&shop));
    open_target(&target);
    assert_int_equal(store_import(&target.store, path), CLI_OK);
    assert_string_equal(shop_printed(&target), "1 instance and 64 events imported\n");
    assert_int_equal(instance_find(&target.store, "long", &instance), CLI_OK);
    assert_int_equal(instance.loaded.head.sequence, 100);
    assert_int_equal(instance.loaded.head.transition_count, 50);
    snapshot.loaded.data = data;
    assert_int_equal(
        target.store.ops->snapshot(target.store.store, instance.loaded.instance, &snapshot), 0);
    assert_int_equal(snapshot.loaded.head.sequence, 36);
    assert_int_equal(snapshot.loaded.head.transition_count, 18);
    assert_int_equal(snapshot.loaded.history_count, 18);
    instance_close(&instance);
    shop_close(&target);
    shop_close(&shop);
}

static void an_import_can_be_repeated(void **state)
{
    struct shop shop, target;
    char *before, *after;

    (void)state;
    shop_open(&shop);
    fill(&shop);
    stop_runtime(&shop);
    before = export_text(&shop);
    open_target(&target);
    assert_int_equal(store_import(&target.store, path), CLI_OK);
    (void)shop_printed(&target);
    assert_int_equal(store_import(&target.store, path), CLI_OK);
    assert_string_equal(
        shop_printed(&target), "0 instances and 0 events imported\n5 instances already existed\n");
    after = export_text(&target);
    assert_same(before, after);
    free(before);
    free(after);
    shop_close(&target);
    shop_close(&shop);
}

/* A store that fails once a number of commits was made. */
static uint64_t commits_left;
static struct det_store_ops failing_ops;
static int (*real_commit)(
    struct det_store *store, struct det_store_commit *const *commits, size_t count);

static int fail_commit(
    struct det_store *store, struct det_store_commit *const *commits, size_t count)
{
    return commits_left-- == 0 ? DET_ERR_IO : real_commit(store, commits, count);
}

static void make_failing(struct shop *shop, uint64_t after)
{
    failing_ops = *shop->store.store->ops;
    real_commit = failing_ops.commit;
    failing_ops.commit = fail_commit;
    commits_left = after;
    shop->store.ops = &failing_ops;
}

/* Behind each of its commits; how many it has. */
static uint64_t break_off_everywhere(struct shop *shop)
{
    char *before = export_text(shop), *after, *copy;
    struct shop target;
    int code = CLI_FAILURE;
    uint64_t count = 0;

    for (uint64_t i = 0; code != CLI_OK; i++) {
        open_target(&target);
        make_failing(&target, i);
        code = store_import(&target.store, path);
        assert_true(code == CLI_OK || code == CLI_FAILURE);
        target.store.ops = target.store.store->ops;
        assert_int_equal(store_import(&target.store, path), CLI_OK);
        after = export_text(&target);
        copy = strdup(before);
        assert_non_null(copy);
        assert_same(copy, after);
        free(copy);
        free(after);
        shop_close(&target);
        assert_true(i < 20);
        det_test_write_file(path, before, strlen(before));
        count = i;
    }
    free(before);
    return count;
}

static void an_import_that_was_broken_off_is_completed(void **state)
{
    struct shop shop;

    (void)state;
    shop_open(&shop);
    fill(&shop);
    stop_runtime(&shop);
    assert_true(break_off_everywhere(&shop) > 1);
    shop_close(&shop);
}

/* The first commit of one without events makes it look complete: so it has to be the only one. */
static void interrupted_import_loses_no_failed_effects(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        bool is_dead = i % 2, has_events = i < 2;
        struct shop shop;

        export_failed(&shop, "status 503", is_dead, has_events);
        assert_int_equal(break_off_everywhere(&shop), has_events ? 2 : 1);
        shop_close(&shop);
    }
}

static void ids_of_events_are_known_in_the_new_store(void **state)
{
    struct shop shop, target;
    struct det_store_answer answer;
    struct instance instance;

    (void)state;
    shop_open(&shop);
    fill(&shop);
    stop_runtime(&shop);
    free(export_text(&shop));
    open_target(&target);
    assert_int_equal(store_import(&target.store, path), CLI_OK);
    target.store.wanted = "order";
    assert_int_equal(instance_find(&target.store, "charging", &instance), CLI_OK);
    assert_int_equal(
        target.store.ops->answer(target.store.store, instance.loaded.instance, "p-1", &answer), 0);
    assert_int_equal(answer.sequence, 1);
    assert_int_equal(answer.outcome, DET_OUTCOME_GOTO);
    assert_string_equal(instance.machine->states[answer.state].name, "charging");
    instance_close(&instance);
    shop_close(&target);
    shop_close(&shop);
}

static void import_of_a_different_history_is_a_conflict(void **state)
{
    struct shop shop, target;

    (void)state;
    shop_open(&shop);
    fill(&shop);
    stop_runtime(&shop);
    free(export_text(&shop));
    open_target(&target);
    target.order = shop_define(&target, "order", ORDER_SPEC);
    shop_run(&target);
    shop_start(&target, target.order, "charging");
    stop_runtime(&target);
    assert_int_equal(store_import(&target.store, path), CLI_CONFLICT);
    assert_non_null(strstr(
        shop_printed(&target),
        "order 'charging' exists with a different history; it stays unchanged, "
        "and the rest was not imported\n"));
    shop_close(&target);
    shop_close(&shop);
}

static void instances_before_a_conflict_are_imported(void **state)
{
    struct shop shop, target;
    struct instance instance;

    (void)state;
    shop_open(&shop);
    fill(&shop);
    stop_runtime(&shop);
    free(export_text(&shop));
    open_target(&target);
    target.order = shop_define(&target, "order", ORDER_SPEC);
    shop_run(&target);
    shop_start(&target, target.order, "fresh");
    stop_runtime(&target);
    assert_int_equal(store_import(&target.store, path), CLI_CONFLICT);
    assert_int_equal(instance_open(&target.store, target.order, "charging", &instance), CLI_OK);
    assert_int_equal(instance.loaded.head.sequence, 2);
    instance_close(&instance);
    assert_int_equal(instance_open(&target.store, target.order, "long", &instance), CLI_NOT_FOUND);
    shop_close(&target);
    shop_close(&shop);
}

static void many_instances_share_commits(void **state)
{
    struct shop shop, target;
    char *before, *after, id[16];

    (void)state;
    shop_open(&shop);
    for (int i = 0; i < 600; i++) {
        snprintf(id, sizeof id, "o-%03d", i);
        shop_start(&shop, shop.order, id);
        if (i % 2)
            shop_send(&shop, id, "ping");
    }
    stop_runtime(&shop);
    before = export_text(&shop);
    open_target(&target);
    make_failing(&target, 100);
    assert_int_equal(store_import(&target.store, path), CLI_OK);
    /* Two rounds for each group of 256. */
    assert_int_equal(commits_left, 94);
    assert_string_equal(shop_printed(&target), "600 instances and 300 events imported\n");
    after = export_text(&target);
    assert_same(before, after);
    free(before);
    free(after);
    shop_close(&target);
    shop_close(&shop);
}

static int import_text(struct shop *target, const char *text)
{
    (void)remove(path);
    det_test_write_file(path, text, strlen(text));
    return store_import(&target->store, path);
}

static void a_damaged_export_changes_nothing(void **state)
{
    struct shop shop, target;
    char *text, *copy;

    (void)state;
    shop_open(&shop);
    fill(&shop);
    stop_runtime(&shop);
    text = export_text(&shop);
    copy = strdup(text);
    assert_non_null(copy);
    open_target(&target);
    *strstr(copy, "\"cents\":9007") = ' ';
    assert_int_equal(import_text(&target, copy), CLI_USAGE);
    assert_non_null(strstr(shop_printed(&target), "export.jsonl:3: "));
    memcpy(copy, text, strlen(text) + 1);
    memcpy(strstr(copy, "9007199254740993"), "9007199254740992", 16);
    assert_int_equal(import_text(&target, copy), CLI_USAGE);
    assert_non_null(strstr(shop_printed(&target), ":3: the hash chain is broken"));
    memcpy(copy, text, strlen(text) + 1);
    *strstr(copy, "{\"kind\":\"end\"") = '\0';
    assert_int_equal(import_text(&target, copy), CLI_USAGE);
    assert_non_null(strstr(shop_printed(&target), "the end is missing: the file was cut off"));
    assert_int_equal(import_text(&target, "hello\n"), CLI_USAGE);
    assert_non_null(strstr(shop_printed(&target), ":1: this is not an export of a store"));
    assert_int_equal(import_text(&target, ""), CLI_USAGE);
    assert_non_null(strstr(shop_printed(&target), "this is not an export of a store"));
    assert_int_equal(store_import(&target.store, "/nowhere/at/all"), CLI_NOT_FOUND);
    assert_null(target.store.machines);
    free(copy);
    free(text);
    shop_close(&target);
    shop_close(&shop);
}

static int through(struct det_test_memory *memory, void *argument)
{
    struct shop *shop = argument, target;
    int code;

    (void)remove(path);
    shop->cli.allocator = &memory->allocator;
    code = store_export(&shop->store, path);
    shop->cli.allocator = NULL;
    open_target(&target);
    target.cli.allocator = &memory->allocator;
    det_arena_deinit(&target.store.arena);
    det_arena_init(&target.store.arena, &memory->allocator);
    if (code == CLI_OK)
        code = store_import(&target.store, path);
    cli_store_close(&target.store);
    det_sim_close(target.sim);
    fclose(target.cli.out);
    free(target.text);
    return code == CLI_OK ? 0 : DET_ERR_NO_MEMORY;
}

static void put_job(struct det_store *store)
{
    const struct det_job_put put = { "q", "j", "work", "body", 4, 0 };
    const struct det_job_firing firing = { "s", 0, 10, 5, &put };

    assert_int_equal(store->ops->jobs->fire(store, &firing), 0);
}

static void import_reports_every_failed_allocation(void **state)
{
    struct shop shop;

    (void)state;
    shop_open(&shop);
    shop_start(&shop, shop.order, "o-1");
    shop_send(&shop, "o-1", "pay");
    shop_send(&shop, "o-1", "ship");
    put_job(shop.store.store);
    stop_runtime(&shop);
    det_test_each_failure(through, &shop);
    shop_close(&shop);
}

static void export_does_not_overwrite_a_file(void **state)
{
    struct shop shop;
    char *text;
    size_t size;

    (void)state;
    shop_open(&shop);
    stop_runtime(&shop);
    det_test_write_file(path, "precious", 8);
    assert_int_equal(store_export(&shop.store, path), CLI_CONFLICT);
    text = det_test_read_file(path, &size);
    assert_string_equal(text, "precious");
    free(text);
    assert_int_equal(store_export(&shop.store, "/nowhere/at/all"), CLI_FAILURE);
    (void)shop_printed(&shop);
    assert_int_equal(store_export(&shop.store, NULL), CLI_OK);
    assert_non_null(
        strstr(shop_printed(&shop), "{\"kind\":\"end\",\"instances\":0,\"events\":0,\"jobs\":0,"));
    shop_close(&shop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(export_and_import_preserve_a_store),
        TEST(dead_letters_and_their_reasons_survive_an_export),
        TEST(pruned_instance_continues_after_import),
        TEST(an_import_can_be_repeated),
        TEST(an_import_that_was_broken_off_is_completed),
        TEST(interrupted_import_loses_no_failed_effects),
        TEST(ids_of_events_are_known_in_the_new_store),
        TEST(import_of_a_different_history_is_a_conflict),
        TEST(instances_before_a_conflict_are_imported),
        TEST(many_instances_share_commits),
        TEST(a_damaged_export_changes_nothing),
        TEST(import_reports_every_failed_allocation),
        TEST(export_does_not_overwrite_a_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
