/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* cut_test.c - every operation of the driver, while the way to the server ends after so
 * many bytes of its answers, and there is no other.
 *
 *   1. What is read is what is there, or it is refused in time, as something that did not answer.
 *   2. When the way is there again, the same store reads as before.
 *
 *     store --- TCP ---> proxy (a thread) --- socket ---> server
 *                 <-- so many bytes, then none --  */
/* test: sanitized */
#include "store/postgres/postgres_test.h"

#include "base/buffer.h"
#include "lib/patience.h"
#include "lib/proxy.h"
#include "store/jobs_test.h"

/* In how many places the answers of each operation are cut. */
#define CUTS UINT64_C(9)

struct operation {
    const char *name;
    int (*run)(struct pad *pad, struct det_buffer *message);
};

static int do_load(struct pad *pad, struct det_buffer *message)
{
    struct found found;
    int r = look_up(pad, "p", &found);

    if (r == 0)
        det_buffer_format(
            message, "%d %d timers %d effects %d", (int)found.loaded.head.sequence, (int)found.data,
            (int)found.timer_count, (int)found.effect_count);
    return r;
}

static int do_answer(struct pad *pad, struct det_buffer *message)
{
    struct det_store_answer answer;
    int r = pad->store->ops->answer(pad->store, pad->instance, "id-2", &answer);

    if (r == 0)
        det_buffer_format(message, "%d %d", answer.state, (int)answer.sequence);
    return r;
}

static int print_event(void *context, const struct det_store_event *row)
{
    det_buffer_format(context, "%d:%d>%d; ", (int)row->sequence, row->from, row->to);
    return 0;
}

static int do_events(struct pad *pad, struct det_buffer *message)
{
    return pad->store->ops->events(pad->store, pad->instance, 0, print_event, message);
}

static int print_listed(void *context, const struct det_store_listed *row)
{
    det_buffer_format(context, "%s %d; ", row->id, (int)row->sequence);
    return 0;
}

static int do_list(struct pad *pad, struct det_buffer *message)
{
    return pad->store->ops->list(
        pad->store, pad->machine, &(struct det_store_query){ 0 }, print_listed, message);
}

static int print_due(void *context, const struct det_store_due *row)
{
    det_buffer_format(context, "%s %d; ", row->id, (int)row->due);
    return 0;
}

static int do_due(struct pad *pad, struct det_buffer *message)
{
    det_time next;

    return pad->store->ops->due(
        pad->store, pad->machine, &(struct det_store_due_query){ .before = 1000, .limit = 10 },
        print_due, message, &next);
}

static int do_snapshot(struct pad *pad, struct det_buffer *message)
{
    uint64_t data;
    struct det_store_snapshot snapshot = { .loaded.data = &data };
    int r = pad->store->ops->snapshot(pad->store, pad->instance, &snapshot);

    if (r == 0)
        det_buffer_format(message, "%d", (int)snapshot.loaded.head.sequence);
    return r;
}

static int do_start(struct pad *pad, struct det_buffer *message)
{
    uint64_t data;
    struct det_store_start began = { .data = &data };
    int r = pad->store->ops->start(pad->store, pad->instance, &began);

    if (r == 0)
        det_buffer_format(message, "%d %d", (int)began.at, began.state);
    return r;
}

static int print_machine(void *context, const char *name, uint32_t version, const char *spec)
{
    det_buffer_format(context, "%s %d %d; ", name, (int)version, (int)strlen(spec));
    return 0;
}

static int do_machines(struct pad *pad, struct det_buffer *message)
{
    return pad->store->ops->machines(pad->store, print_machine, message);
}

static int print_finding(void *context, const struct det_store_finding *row)
{
    det_buffer_format(context, "%s: %s; ", row->id ? row->id : "", row->text);
    return 0;
}

static int do_check(struct pad *pad, struct det_buffer *message)
{
    return pad->store->ops->check(pad->store, print_finding, NULL, message);
}

static int do_serve(struct pad *pad, struct det_buffer *message)
{
    struct det_error error = { 0 };
    int r = pad->store->ops->serve(pad->store, pad->machine, &error);

    (void)message;
    assert_true(r == 0 || error.text[0]);
    return r;
}

/* Names that nothing has, so that nothing is changed by it, however often. */
static int do_migrate(struct pad *pad, struct det_buffer *message)
{
    static const struct det_rename renames[] = { { DET_NAME_STATE, "none", "A" },
                                                 { DET_NAME_EVENT, "WORD", "BARE" } };
    struct det_error error = { 0 };
    uint64_t changed;
    int r = pad->store->ops->migrate(pad->store, pad->machine, renames, 2, &changed, &error);

    (void)message;
    assert_true(r == 0 || error.text[0]);
    return r;
}

static int do_lease(struct pad *pad, struct det_buffer *message)
{
    struct det_store_lease lease;

    (void)message;
    return pad->store->ops->lease(
        pad->store, &(struct det_store_lease_change){ DET_LEASE_READ, "leader", NULL, 0, 0 },
        &lease);
}

static int do_prune(struct pad *pad, struct det_buffer *message)
{
    uint64_t gone;

    (void)message;
    return pad->store->ops->prune(pad->store, pad->instance, 0, 0, &gone);
}

static int print_job(void *context, const struct det_job_row *row)
{
    det_buffer_format(context, "%s %s; ", row->queue, row->id);
    return 0;
}

static int do_jobs(struct pad *pad, struct det_buffer *message)
{
    return pad->store->ops->jobs->list(
        pad->store, &(struct det_job_query){ .limit = 100 }, print_job, message);
}

static int do_put(struct pad *pad, struct det_buffer *message)
{
    struct det_job_put job = { "q", "again", "work", "body", 4, 0 };
    struct det_job_place place;
    int r = det_jobs_put(pad->store, &job, &place);

    if (r == 0)
        det_buffer_format(message, "%d", (int)place.key);
    return r;
}

static const struct operation deeds[] = {
    { "load", do_load },   { "answer", do_answer }, { "events", do_events },
    { "list", do_list },   { "due", do_due },       { "snapshot", do_snapshot },
    { "start", do_start }, { "check", do_check },   { "machines", do_machines },
    { "serve", do_serve }, { "lease", do_lease },   { "prune", do_prune },
    { "put", do_put },     { "jobs", do_jobs },     { "migrate", do_migrate },
};

/* A store with something in it, and a pad on it through the proxy. */
struct line {
    struct det_test_proxy *proxy;
    char *url, *through;
    struct pad *near, *pad;
    struct det_buffer message, truth;
};

static void line_open(struct line *line)
{
    memset(line, 0, sizeof *line);
    line->proxy = det_test_proxy_open(server);
    line->url = det_test_postgres_url(server, NULL);
    line->through = det_test_proxy_url(line->proxy, line->url);
    line->near = desk_at(line->url, NULL);
    for (int i = 1; i <= 3; i++) {
        char id[8];

        snprintf(id, sizeof id, "id-%d", i);
        assert_int_equal(send(line->near, BARE, id), 0);
    }
    begin(line->near);
    line->near->commit.is_snapshot = true;
    assert_int_equal(commit(line->near), 0);
    line->pad = neighbour(line->near, line->through);
}

static void line_close(struct line *line)
{
    desk_close(line->pad);
    desk_close(line->near);
    det_test_proxy_close(line->proxy);
    det_buffer_deinit(&line->message);
    det_buffer_deinit(&line->truth);
    free(line->through);
    free(line->url);
}

static bool is_true(const struct line *line)
{
    return line->message.size == line->truth.size &&
           (line->message.size == 0 ||
            memcmp(line->message.data, line->truth.data, line->message.size) == 0);
}

/* How many bytes the answers of an operation have. */
static uint64_t measure(struct line *line, const struct operation *operation)
{
    det_buffer_clear(&line->truth);
    assert_int_equal(operation->run(line->pad, &line->truth), 0);
    det_buffer_clear(&line->truth);
    det_test_proxy_arm(line->proxy, 0, 0);
    assert_int_equal(operation->run(line->pad, &line->truth), 0);
    return det_test_proxy_passed(line->proxy);
}

static void cut(struct line *line, const struct operation *operation, uint64_t after)
{
    struct postgres_store *store = postgres_store_of(line->pad->store);
    det_time timeout = store->timeout;
    int r;

    store->timeout = 40 * DET_MILLISECOND;
    det_buffer_clear(&line->message);
    det_test_proxy_cut(line->proxy, after);
    r = operation->run(line->pad, &line->message);
    det_test_proxy_cut(line->proxy, UINT64_MAX);
    store->timeout = timeout;
    if (r == 0 ? !is_true(line) : r != DET_ERR_IO && r != DET_ERR_TIMEOUT)
        fail_msg("%s, cut after %d: %s", operation->name, (int)after, det_error_text(r));
    det_buffer_clear(&line->message);
    r = operation->run(line->pad, &line->message);
    if (r != 0 || !is_true(line))
        fail_msg(
            "%s, after it was cut after %d: %s", operation->name, (int)after, det_error_text(r));
}

static void reads_over_a_cut_connection_are_right_or_refused(void **state)
{
    struct line line;

    (void)state;
    line_open(&line);
    for (size_t i = 0; i < sizeof deeds / sizeof deeds[0]; i++) {
        uint64_t size = measure(&line, &deeds[i]);

        assert_true(size > 0);
        for (uint64_t k = 0; k < CUTS; k++)
            cut(&line, &deeds[i], size * k / CUTS);
    }
    line_close(&line);
}

/* There is no connection left, and none to be had. */
static void reads_fail_until_the_connection_is_back(void **state)
{
    struct postgres_store *store;
    struct line line;
    det_time timeout;

    (void)state;
    line_open(&line);
    store = postgres_store_of(line.pad->store);
    timeout = store->timeout;
    for (size_t i = 0; i < sizeof deeds / sizeof deeds[0]; i++) {
        int r;

        (void)measure(&line, &deeds[i]);
        store->timeout = 40 * DET_MILLISECOND;
        det_test_proxy_cut(line.proxy, 0);
        for (int k = 0; k < 2; k++) {
            r = deeds[i].run(line.pad, &line.message);
            if (r != DET_ERR_IO && r != DET_ERR_TIMEOUT)
                fail_msg("%s, cut off: %s", deeds[i].name, det_error_text(r));
        }
        det_test_proxy_cut(line.proxy, UINT64_MAX);
        store->timeout = timeout;
        det_buffer_clear(&line.message);
        assert_int_equal(deeds[i].run(line.pad, &line.message), 0);
        assert_true(is_true(&line));
    }
    line_close(&line);
}

/* The first attempt was sent, so it may have happened; the next one is given up. */
static void job_put_with_an_unknown_result_is_not_closed(void **state)
{
    const struct operation put = { "put", do_put };
    struct line line;
    uint64_t size;

    (void)state;
    line_open(&line);
    size = measure(&line, &put);
    for (uint64_t k = 1; k < CUTS; k++) {
        det_test_proxy_cut(line.proxy, size * k / CUTS);
        det_store_cancel(line.pad->store, 100 * DET_MILLISECOND);
        assert_int_equal(do_put(line.pad, &line.message), DET_ERR_CANCELLED);
        /* This one was not sent. */
        assert_int_equal(do_put(line.pad, &line.message), DET_ERR_CLOSED);
        det_store_cancel(line.pad->store, DET_NEVER);
        det_test_proxy_cut(line.proxy, UINT64_MAX);
        assert_int_equal(do_put(line.pad, &line.message), 0);
    }
    line_close(&line);
}

static void open_over_a_cut_connection_reports_it(void **state)
{
    const struct det_store_options options = { .timeout = 60 * DET_MILLISECOND };
    struct det_store *store;
    struct line line;
    uint64_t size;
    int r;

    (void)state;
    line_open(&line);
    det_test_proxy_arm(line.proxy, 0, 0);
    det_store_close(store_at(line.through, NULL));
    size = det_test_proxy_passed(line.proxy);
    for (uint64_t k = 0; k < 4 * CUTS; k++) {
        struct det_error error = { 0 };

        det_test_proxy_cut(line.proxy, size * k / (4 * CUTS));
        r = det_store_open_with(line.through, &options, &store, &error);
        if (r != DET_ERR_IO && r != DET_ERR_TIMEOUT)
            fail_msg("cut after %d: %s", (int)(size * k / (4 * CUTS)), det_error_text(r));
        assert_true(error.text[0]);
    }
    det_test_proxy_cut(line.proxy, UINT64_MAX);
    det_store_close(store_at(line.through, NULL));
    line_close(&line);
}

static void open_times_out_on_any_unanswered_query(void **state)
{
    static const char *const words[] = { "string_to_array", "identity, schema", "format_type",
                                         "has_table_privilege" };
    const struct det_store_options options = { .timeout = 300 * DET_MILLISECOND * det_test_load() };
    struct det_store *store;
    struct line line;

    (void)state;
    line_open(&line);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        struct det_error error = { 0 };

        det_test_proxy_mute(line.proxy, words[i]);
        if (det_store_open_with(line.through, &options, &store, &error) != DET_ERR_TIMEOUT)
            fail_msg("%s: %s", words[i], error.text);
        assert_true(det_test_proxy_was_mute(line.proxy));
        assert_true(error.text[0]);
        det_test_proxy_mute(line.proxy, NULL);
        det_store_close(store_at(line.through, NULL));
    }
    line_close(&line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_over_a_cut_connection_are_right_or_refused),
        cmocka_unit_test(reads_fail_until_the_connection_is_back),
        cmocka_unit_test(job_put_with_an_unknown_result_is_not_closed),
        cmocka_unit_test(open_over_a_cut_connection_reports_it),
        cmocka_unit_test(open_times_out_on_any_unanswered_query),
    };

    return cmocka_run_group_tests(tests, open_server, close_server);
}
