/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* store_commands_test.c - the commands on a store, each with every allocation failing once, on a
 * SQLite file. What they print is for tests/e2e/machines.py. */
/* test: sanitized */
#include <sqlite3.h>
#include <unistd.h>

#include "inspect/store_test.h"
#include "store/jobs_test.h"
#include "store/sqlite/sqlite.h"
#include "terminal/args.h"

struct place {
    char *folder;
    char url[1100], spec[1024], base[1024], path[1024], lines[1024];
    bool is_damaged;
};

/* A whole command line; `words` ends with NULL. */
static int run_in(const struct det_allocator *allocator, const char *const *words)
{
    const struct cli_command *command = cli_command_find(words[0]);
    struct cli cli = { .allocator = allocator, .world = det_world_real() };
    struct det_error error;
    struct cli_args args;
    char *text = NULL;
    size_t size;
    int code = CLI_FAILURE, r;

    cli.out = open_memstream(&text, &size);
    assert_non_null(cli.out);
    cli.err = cli.out;
    cli.in = cli.out;
    r = cli_args_read(command, words + 1, allocator, &args, &error);
    if (r == 0) {
        cli.is_json = args.wants_json;
        code = command->run(&cli, &args);
        cli_args_deinit(&args, allocator);
    }
    if (cli.has_failed)
        code = CLI_FAILURE;
    fclose(cli.out);
    free(text);
    return code;
}

static void copy_file(const char *from, const char *to)
{
    size_t size;
    char *data = det_test_read_file(from, &size);

    det_test_write_file(to, data, size);
    free(data);
}

/* One that has failed, and one that waits. */
static void put_jobs(const char *url)
{
    struct det_job_put put = { "batch", "failed", "work", "{}", 2, 0 };
    struct det_job_change cancel = { DET_JOB_CANCEL, "batch", "failed", "why" };
    struct det_job_place place;
    struct det_store *store;
    struct det_error error;

    assert_int_equal(det_store_open(url, &store, &error), 0);
    assert_int_equal(det_jobs_put(store, &put, &place), 0);
    assert_int_equal(store->ops->jobs->change(store, &cancel), 0);
    put.id = "waits";
    assert_int_equal(det_jobs_put(store, &put, &place), 0);
    det_store_close(store);
}

static void change(const char *path, const char *statement)
{
    sqlite3 *database;

    assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
    assert_int_equal(det_sqlite_checksum_open(database), SQLITE_OK);
    assert_int_equal(sqlite3_exec(database, statement, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(database), SQLITE_OK);
}

static int open_place(void **state)
{
    static struct place place;

    place.is_damaged = false;
    place.folder = det_test_folder();
    snprintf(place.base, sizeof place.base, "%s/base.db", place.folder);
    snprintf(place.path, sizeof place.path, "%s/orders.db", place.folder);
    snprintf(place.spec, sizeof place.spec, "%s/order.fsm", place.folder);
    snprintf(place.lines, sizeof place.lines, "%s/all.jsonl", place.folder);
    snprintf(place.url, sizeof place.url, "sqlite:%s", place.base);
    det_test_write_file(place.spec, ORDER_SPEC, strlen(ORDER_SPEC));
    assert_int_equal(chdir(place.folder), 0);
#define RUN(...) assert_int_equal(run_in(NULL, (const char *const[]){ __VA_ARGS__, NULL }), 0)
    RUN("start", place.spec, "o-1", "--store", place.url);
    RUN("send", "o-1", "pay", "--payload", "{\"card\":\"4\",\"cents\":3}", "--store", place.url);
    RUN("send", "o-1", "ship", "--store", place.url);
    RUN("start", "order", "o-2", "--store", place.url);
    RUN("store", "export", place.lines, "--store", place.url);
#undef RUN
    put_jobs(place.url);
    change(
        place.base,
        "UPDATE instances SET lock_owner = 'a', lock_until = 9000000000000000000 WHERE id = 'o-1';"
        "UPDATE instances SET lock_checksum = row_checksum('lock', key, fence, lock_owner,"
        " lock_until) WHERE id = 'o-1'");
    snprintf(place.url, sizeof place.url, "sqlite:%s", place.path);
    *state = &place;
    return 0;
}

static int close_place(void **state)
{
    struct place *place = *state;

    assert_int_equal(chdir("/"), 0);
    det_test_folder_remove(place->folder);
    return 0;
}

struct scenario {
    const struct place *place;
    const char *words[8];
};

/* Each run finds the same store. */
static int run_scenario(struct det_test_memory *memory, void *argument)
{
    static const char *const suffixes[] = { "-wal", "-shm", ".mark" };
    const struct scenario *scenario = argument;
    const char *words[12] = { NULL };
    size_t count = 0;

    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        char name[1100];

        snprintf(name, sizeof name, "%s%s", scenario->place->path, suffixes[i]);
        (void)remove(name);
    }
    copy_file(scenario->place->base, scenario->place->path);
    if (scenario->place->is_damaged)
        change(scenario->place->path, "UPDATE instances SET visit = 9");
    while (scenario->words[count]) {
        words[count] = scenario->words[count];
        count++;
    }
    words[count++] = "--store";
    words[count] = scenario->place->url;
    return run_in(&memory->allocator, words) == CLI_OK ? 0 : DET_ERR_NO_MEMORY;
}

static void store_commands_report_every_failed_allocation(void **state)
{
    const struct place *place = *state;
    struct scenario scenarios[] = {
        { place, { "get", "o-1", NULL } },
        { place, { "list", "--state", "pending", NULL } },
        { place, { "timers", NULL } },
        { place, { "locks", NULL } },
        { place, { "locks", "--json", NULL } },
        { place, { "retry", "--list", NULL } },
        { place, { "store", "info", NULL } },
        { place, { "send", "o-1", "ping", NULL } },
        { place, { "jobs", NULL } },
        { place, { "jobs", "--json", NULL } },
        { place, { "jobs", "retry", "failed", NULL } },
        { place, { "jobs", "cancel", "waits", "--json", NULL } },
    };

    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++) {
        print_message("%s\n", scenarios[i].words[0]);
        det_test_each_failure(run_scenario, &scenarios[i]);
    }
}

static void store_repair_reports_every_failed_allocation(void **state)
{
    struct place *place = *state;
    struct scenario scenarios[] = {
        { place, { "store", "repair", NULL } },
        { place, { "store", "repair", "--dry-run", "--json", NULL } },
        { place, { "store", "repair", "o-2", NULL } },
    };

    place->is_damaged = true;
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
        det_test_each_failure(run_scenario, &scenarios[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            store_commands_report_every_failed_allocation, open_place, close_place),
        cmocka_unit_test_setup_teardown(
            store_repair_reports_every_failed_allocation, open_place, close_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
