/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* export_test.c - exports of a store that others work with: what is sealed can be imported. */
#include <fcntl.h>

#include "store/jobs_test.h"
#include "transfer/export.h"
#include "transfer/export_test.h"
#include "transfer/hash_chain.h"
#include "transfer/import.h"
#include "transfer/race_test.h"

static struct shop *shop_of_all;

/* "a" and "z" are there so that something is before and behind. */
static void open_shop(struct shop *shop, int events)
{
    shop_open(shop);
    shop_start(shop, shop->order, "a");
    shop_send(shop, "a", "pay");
    shop_start(shop, shop->order, "long");
    race_send(shop, "long", events);
    shop_start(shop, shop->order, "z");
    shop_of_all = shop;
    race_begin(shop);
}

static void close_shop(struct shop *shop)
{
    race_end(shop);
    shop_close(shop);
}

/* Returns the export, and the number of transitions of "long" before its first stored event. */
static uint64_t import_into_another(const char *printed)
{
    struct det_store_snapshot snapshot = { .taken_at = 0 };
    struct instance instance;
    struct shop target;
    char data[64];

    shop_open_with(&target, NULL);
    shop_advance(&target, DET_DAY);
    assert_int_equal(store_import(&target.store, path), CLI_OK);
    assert_string_equal(shop_printed(&target), printed);
    assert_int_equal(instance_find(&target.store, "long", &instance), CLI_OK);
    snapshot.loaded.data = data;
    assert_int_equal(
        target.store.ops->snapshot(target.store.store, instance.loaded.instance, &snapshot), 0);
    instance_close(&instance);
    shop_close(&target);
    return snapshot.loaded.head.transition_count;
}

static void events_deleted_during_an_export_leave_no_gap(void **state)
{
    struct shop shop;

    (void)state;
    open_shop(&shop, 20);
    /* Each has two walks; those of "long" are the third and the fourth. */
    race_hole(4, 5, 15);
    assert_int_equal(store_export(&shop.store, path), CLI_OK);
    assert_string_equal(shop_printed(&shop), "3 instances and 7 events exported\n");
    assert_int_equal(import_into_another("3 instances and 7 events imported\n"), 8);
    close_shop(&shop);
}

static void export_is_complete_when_all_seen_events_are_deleted(void **state)
{
    struct shop shop;

    (void)state;
    open_shop(&shop, 20);
    race_hole(4, 5, 21);
    assert_int_equal(store_export(&shop.store, path), CLI_OK);
    assert_string_equal(shop_printed(&shop), "3 instances and 1 event exported\n");
    assert_int_equal(import_into_another("3 instances and 1 event imported\n"), 10);
    close_shop(&shop);
}

static void import_what_is_left(const char *printed)
{
    struct instance instance;
    struct shop target;

    shop_open_with(&target, NULL);
    shop_advance(&target, DET_DAY);
    assert_int_equal(store_import(&target.store, path), CLI_OK);
    assert_string_equal(shop_printed(&target), printed);
    assert_int_equal(instance_find(&target.store, "z", &instance), CLI_OK);
    instance_close(&instance);
    assert_int_equal(instance_find(&target.store, "long", &instance), CLI_NOT_FOUND);
    shop_close(&target);
}

static void instance_with_gaps_is_reported_and_skipped(void **state)
{
    struct shop shop;
    const char *printed;

    (void)state;
    open_shop(&shop, 20);
    race_hole(4, 5, 15);
    race.is_lasting = true;
    assert_int_equal(store_export(&shop.store, path), CLI_FAILURE);
    printed = shop_printed(&shop);
    assert_non_null(strstr(printed, "order 'long': events are missing, whenever it is read"));
    assert_non_null(strstr(printed, "2 instances and 1 event exported\n"));
    assert_non_null(strstr(printed, "1 instance was left out"));
    import_what_is_left(
        "2 instances and 1 event imported\n1 damaged instance is not in the export\n");
    close_shop(&shop);
}

/* The damage is seen when it is loaded, when its events are counted, and when they are written. */
static void damaged_instance_is_reported_and_skipped(void **state)
{
    struct shop shop;
    const char *printed;

    (void)state;
    for (unsigned place = 0; place < 3; place++) {
        open_shop(&shop, 20);
        race.at = 2 + place;
        race.load_error = place == 0 ? DET_ERR_VERSION : 0;
        race.error = place == 0 ? 0 : DET_ERR_CORRUPT;
        assert_int_equal(store_export(&shop.store, path), CLI_FAILURE);
        printed = shop_printed(&shop);
        assert_non_null(strstr(
            printed, place == 0 ? "order 'long' has names that this definition does not know"
                                : "order 'long' is damaged"));
        assert_non_null(strstr(printed, "2 instances and 1 event exported\n"));
        import_what_is_left(
            "2 instances and 1 event imported\n1 damaged instance is not in the export\n");
        assert_int_equal(remove(path), 0);
        close_shop(&shop);
    }
}

/* An error that is not damage is no reason to skip an instance. */
static void an_export_fails_when_the_store_does(void **state)
{
    struct shop shop;

    (void)state;
    open_shop(&shop, 20);
    race.at = 4;
    race.error = DET_ERR_IO;
    assert_int_equal(store_export(&shop.store, path), CLI_FAILURE);
    assert_null(strstr(shop_printed(&shop), "exported"));
    assert_false(cli_is_there(path));
    close_shop(&shop);
}

/* Printed output cannot be withdrawn. */
static void an_export_that_cannot_be_written_again_fails_at_once(void **state)
{
    struct shop shop;

    (void)state;
    open_shop(&shop, 20);
    race_hole(4, 5, 15);
    assert_int_equal(store_export(&shop.store, NULL), CLI_FAILURE);
    assert_non_null(strstr(shop_printed(&shop), "export it to a file, or again"));
    race.walk = 0;
    race.error = DET_ERR_CORRUPT;
    assert_int_equal(store_export(&shop.store, NULL), CLI_FAILURE);
    assert_non_null(strstr(shop_printed(&shop), "export it to a file, which leaves it out"));
    close_shop(&shop);
}

/* Opened as by >> of a shell: the previous content must not be truncated. */
static void appended_export_truncates_nothing(void **state)
{
    struct shop shop;
    size_t size;
    char *text;
    FILE *out;

    (void)state;
    open_shop(&shop, 20);
    race_hole(4, 5, 15);
    det_test_write_file(path, "precious\n", 9);
    out = shop.cli.out;
    shop.cli.out = fdopen(open(path, O_WRONLY | O_APPEND | O_CLOEXEC), "w");
    assert_non_null(shop.cli.out);
    assert_int_equal(store_export(&shop.store, NULL), CLI_FAILURE);
    assert_int_equal(fclose(shop.cli.out), 0);
    shop.cli.out = out;
    text = det_test_read_file(path, &size);
    assert_memory_equal(text, "precious\n{\"kind\":\"store\"", 24);
    free(text);
    close_shop(&shop);
}

static void send_more(unsigned walk)
{
    if (walk == 3)
        race_send(shop_of_all, "long", 8);
}

/* Stores in memory keep 64 events, so what is added takes the first ones away. */
static void events_added_during_an_export_are_not_exported(void **state)
{
    struct shop shop;

    (void)state;
    open_shop(&shop, 100);
    race.before = send_more;
    assert_int_equal(store_export(&shop.store, path), CLI_OK);
    assert_string_equal(shop_printed(&shop), "3 instances and 57 events exported\n");
    assert_int_equal(import_into_another("3 instances and 57 events imported\n"), 22);
    close_shop(&shop);
}

static void send_very_many(unsigned walk)
{
    if (walk == 3)
        race_send(shop_of_all, "long", 80);
}

static void export_reloads_an_instance_whose_events_were_replaced(void **state)
{
    struct shop shop;

    (void)state;
    open_shop(&shop, 100);
    race.before = send_very_many;
    assert_int_equal(store_export(&shop.store, path), CLI_OK);
    assert_string_equal(shop_printed(&shop), "3 instances and 65 events exported\n");
    assert_int_equal(import_into_another("3 instances and 65 events imported\n"), 58);
    close_shop(&shop);
}

/* Jobs and schedules. */

static int end_it(void *context, const struct det_job_row *row)
{
    *(struct det_job_end *)context = (struct det_job_end){
        .key = row->key, .token = row->attempts, .state = DET_JOB_FAILED, .reason = "\"why\""
    };
    return 0;
}

/* One that has failed, one that runs, one that waits for its time, and one with any bytes. */
static void fill_jobs(struct det_store *store)
{
    const struct det_job_ops *ops = store->ops->jobs;
    const struct det_job_claim claim = { "q", 9, DET_HOUR };
    struct det_job_put put = { "q", "failed", "work", "{}", 2, 0 };
    struct det_job_place place;
    struct det_job_end how;
    det_time next;

    assert_int_equal(det_jobs_put(store, &put, &place), 0);
    assert_int_equal(det_jobs_claim(store, &claim, end_it, &how, &next), 0);
    assert_int_equal(det_jobs_end(store, "q", &how), 0);
    put.id = "runs";
    assert_int_equal(det_jobs_put(store, &put, &place), 0);
    assert_int_equal(det_jobs_claim(store, &claim, end_it, &how, &next), 0);
    put = (struct det_job_put){ "q", "late", "work", "\0\xff\n\"", 4, DET_DAY * 40000 };
    assert_int_equal(det_jobs_put(store, &put, &place), 0);
    put = (struct det_job_put){ "other", "runs", "work", NULL, 0, 0 };
    assert_int_equal(det_jobs_put(store, &put, &place), 0);
    assert_int_equal(ops->fire(store, &(struct det_job_firing){ "a", 0, 10, 5, NULL }), 0);
    assert_int_equal(ops->fire(store, &(struct det_job_firing){ "b", 0, DET_NEVER, 0, NULL }), 0);
}

struct copy {
    char text[4096];
};

static int note_job(void *context, const struct det_job_row *row)
{
    struct copy *copy = context;
    size_t length = strlen(copy->text);

    length += (size_t)snprintf(
        copy->text + length, sizeof copy->text - length,
        "%s/%s %s %d %lld %u %u %lld %lld %s %zu:", row->queue, row->id, row->task, (int)row->state,
        (long long)row->due_at, row->attempts, row->lost, (long long)row->submitted_at,
        (long long)row->ended_at, row->reason, row->body_size);
    for (size_t i = 0; i < row->body_size; i++)
        length += (size_t)snprintf(
            copy->text + length, sizeof copy->text - length, " %d",
            ((const unsigned char *)row->body)[i]);
    snprintf(copy->text + length, sizeof copy->text - length, "\n");
    return 0;
}

static int note_schedule(void *context, const char *name, const struct det_job_schedule *schedule)
{
    struct copy *copy = context;
    size_t length = strlen(copy->text);

    snprintf(
        copy->text + length, sizeof copy->text - length, "%s %lld %lld\n", name,
        (long long)schedule->next_at, (long long)schedule->last_at);
    return 0;
}

static void read_jobs(struct det_store *store, struct copy *copy)
{
    const struct det_job_query all = { .limit = 99 };

    copy->text[0] = 0;
    assert_int_equal(store->ops->jobs->list(store, &all, note_job, copy), 0);
    assert_int_equal(store->ops->jobs->schedules(store, note_schedule, copy), 0);
}

/* As it is in another store: what ran is queued. */
static void put_back(struct det_store *store)
{
    struct det_job_end how = { .key = 2, .token = 1, .state = DET_JOB_DELAYED };

    assert_int_equal(det_jobs_end(store, "q", &how), 0);
}

static void jobs_and_schedules_go_through_an_export(void **state)
{
    struct shop shop, target;
    struct copy before, after;

    (void)state;
    open_shop(&shop, 1);
    fill_jobs(shop.store.store);
    assert_int_equal(store_export(&shop.store, path), CLI_OK);
    assert_string_equal(
        shop_printed(&shop),
        "3 instances and 2 events exported\n4 jobs and 2 schedules exported\n");
    put_back(shop.store.store);
    read_jobs(shop.store.store, &before);
    shop_open_with(&target, NULL);
    shop_advance(&target, DET_DAY);
    assert_int_equal(store_import(&target.store, path), CLI_OK);
    assert_string_equal(
        shop_printed(&target),
        "3 instances and 2 events imported\n4 jobs and 2 schedules imported\n");
    read_jobs(target.store.store, &after);
    assert_string_equal(before.text, after.text);
    /* Again, it is all there. */
    assert_int_equal(store_import(&target.store, path), CLI_OK);
    assert_string_equal(
        shop_printed(&target), "0 instances and 0 events imported\n"
                               "3 instances already existed\n"
                               "0 jobs and 0 schedules imported\n"
                               "6 of the jobs and schedules already existed\n");
    read_jobs(target.store.store, &after);
    assert_string_equal(before.text, after.text);
    shop_close(&target);
    close_shop(&shop);
}

static void more_jobs_than_a_page_go_through_an_export(void **state)
{
    struct shop shop, target;
    struct det_job_place place;
    char id[16];

    (void)state;
    open_shop(&shop, 1);
    for (int i = 0; i < 200; i++) {
        snprintf(id, sizeof id, "j%d", i);
        assert_int_equal(
            det_jobs_put(
                shop.store.store, &(struct det_job_put){ "q", id, "work", "x", 1, 0 }, &place),
            0);
    }
    assert_int_equal(store_export(&shop.store, path), CLI_OK);
    assert_non_null(strstr(shop_printed(&shop), "200 jobs and 0 schedules exported\n"));
    shop_open_with(&target, NULL);
    assert_int_equal(store_import(&target.store, path), CLI_OK);
    assert_non_null(strstr(shop_printed(&target), "200 jobs and 0 schedules imported\n"));
    shop_close(&target);
    close_shop(&shop);
}

/* A line, sealed behind a head and before its end. */
static void write_lines_behind(const char *head, const char *line)
{
    const char *const around[] = {
        head,
        NULL,
        strstr(line, "schedule")
            ? "\"kind\":\"end\",\"instances\":0,\"events\":0,\"jobs\":0,\"schedules\":1"
            : "\"kind\":\"end\",\"instances\":0,\"events\":0,\"jobs\":1",
    };
    struct seal seal = { 0 };
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    for (int i = 0; i < 3; i++) {
        struct det_json_writer out;

        det_json_writer_init(&out, NULL);
        det_buffer_format(&out.text, "{%s", around[i] ? around[i] : line);
        out.needs_comma = true;
        seal_close(&seal, &out);
        fprintf(file, "%s\n", det_buffer_text(&out.text));
        det_json_writer_deinit(&out);
    }
    fclose(file);
}

static void write_lines(const char *line)
{
    write_lines_behind("\"kind\":\"store\",\"format\":1,\"program\":\"0.1\"", line);
}

static void lines_of_jobs_that_do_not_fit_are_refused(void **state)
{
#define JOB "\"kind\":\"job\",\"queue\":\"q\",\"task\":\"t\",\"attempts\":0,\"lost\":0,"
#define AT  ",\"submitted_at\":\"2026-01-01T00:00:00Z\""
    static const char *const bad[] = {
        JOB "\"id\":\"a\",\"body\":\"0\",\"state\":\"queued\"" AT,
        JOB "\"id\":\"a\",\"body\":\"0x\",\"state\":\"queued\"" AT,
        JOB "\"id\":\"a\",\"body\":\"\",\"state\":\"gone\"" AT,
        JOB "\"id\":\"a\",\"body\":\"\",\"state\":\"done\"" AT,
        JOB "\"id\":\"a b\",\"body\":\"\",\"state\":\"queued\"" AT,
        JOB "\"id\":\"a\",\"body\":\"\",\"state\":\"queued\"",
        "\"kind\":\"schedule\",\"name\":\"s\"",
        "\"kind\":\"schedule\",\"name\":\"\",\"next_at\":\"2026-01-01T00:00:00Z\"",
    };
    struct copy copy;
    struct shop shop;

    (void)state;
    shop_open_with(&shop, NULL);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_lines(bad[i]);
        assert_int_equal(store_import(&shop.store, path), CLI_USAGE);
        read_jobs(shop.store.store, &copy);
        assert_string_equal(copy.text, "");
    }
    write_lines(JOB "\"id\":\"a\",\"body\":\"6f\",\"state\":\"queued\"" AT);
    assert_int_equal(store_import(&shop.store, path), CLI_OK);
    shop_close(&shop);
}

/* A program that only knew the first format would pass over jobs. */
static void export_header_states_its_format(void **state)
{
    struct shop shop;
    size_t size;
    char *text;

    (void)state;
    open_shop(&shop, 1);
    assert_int_equal(store_export(&shop.store, path), CLI_OK);
    text = det_test_read_file(path, &size);
    assert_ptr_equal(strstr(text, "{\"kind\":\"store\",\"format\":6,"), text);
    free(text);
    close_shop(&shop);
}

static void formats_and_kinds_that_are_not_known_are_refused(void **state)
{
    static const struct {
        const char *head, *line, *text;
    } cases[] = {
        { "\"kind\":\"store\",\"format\":7,\"program\":\"9.8\"", "\"kind\":\"job\"",
          ":1: the export is of format 7, and this program reads those up to 6; import it with the "
          "program that wrote it, detent 9.8, or a newer one\n" },
        { "\"kind\":\"store\",\"format\":7", "\"kind\":\"job\"",
          "with the program that wrote it, or a newer one\n" },
        { "\"kind\":\"store\"", "\"kind\":\"job\"", ":1: this is not an export of a store\n" },
        { "\"kind\":\"store\",\"format\":3", "\"kind\":\"dream\"",
          ":2: unknown kind of line in an export; nothing was imported\n" },
        { "\"kind\":\"store\",\"format\":3", "\"kind\":\"store\",\"format\":3",
          ":2: unknown kind of line" },
    };
    struct shop shop;

    (void)state;
    shop_open_with(&shop, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_lines_behind(cases[i].head, cases[i].line);
        assert_int_equal(store_import(&shop.store, path), CLI_USAGE);
        assert_non_null(strstr(shop_printed(&shop), cases[i].text));
    }
    write_lines_behind(
        "\"kind\":\"store\",\"format\":3",
        JOB "\"id\":\"a\",\"body\":\"\",\"state\":\"queued\"" AT);
    assert_int_equal(store_import(&shop.store, path), CLI_OK);
    shop_close(&shop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(events_deleted_during_an_export_leave_no_gap),
        TEST(export_is_complete_when_all_seen_events_are_deleted),
        TEST(instance_with_gaps_is_reported_and_skipped),
        TEST(damaged_instance_is_reported_and_skipped),
        TEST(an_export_fails_when_the_store_does),
        TEST(an_export_that_cannot_be_written_again_fails_at_once),
        TEST(appended_export_truncates_nothing),
        TEST(events_added_during_an_export_are_not_exported),
        TEST(export_reloads_an_instance_whose_events_were_replaced),
        TEST(jobs_and_schedules_go_through_an_export),
        TEST(more_jobs_than_a_page_go_through_an_export),
        TEST(lines_of_jobs_that_do_not_fit_are_refused),
        TEST(export_header_states_its_format),
        TEST(formats_and_kinds_that_are_not_known_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
