/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* pipeline_test.c - connectors in flows that run: from a file to a file, and from HTTP to disk. */
/* test: threads */
#include "connectors/connectors.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "http/client.h"
#include "lib/patience.h"
#include "lib/test.h"

#define REC_SPEC "connectors/harness_test.rec"
#include <detent/rec/declare.h>

static char *folder;

static int make_folder(void **state)
{
    (void)state;
    folder = det_test_folder();
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    det_test_folder_remove(folder);
    return 0;
}

static void open_flow(const struct det_flow *flow, const char *journal, struct det_pipeline **ret)
{
    struct det_pipeline_options options = { .journal = journal,
                                            .connectors = det_connectors_all(),
                                            .folder = folder };
    struct det_error error = { 0 };

    if (det_flow_check(flow, &error) < 0 || det_pipeline_open(flow, &options, ret, &error) < 0)
        fail_msg("%s", error.text);
}

static void run_flow(const struct det_flow *flow, uint64_t errors)
{
    struct det_pipeline_end end;
    struct det_pipeline *pipeline;

    open_flow(flow, NULL, &pipeline);
    assert_int_equal(
        det_pipeline_wait(
            pipeline, det_world_now(det_world_real(), DET_CLOCK_MONOTONIC) + DET_TEST_HANG, &end),
        0);
    if (end.state != DET_PIPELINE_DRAINED)
        fail_msg("state %d: %s", end.state, end.reason);
    assert_int_equal(end.errors, errors);
    det_pipeline_close(pipeline);
}

static char *read_output(const char *name)
{
    char path[512];

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    return det_test_read_file(path, NULL);
}

static void write_input(const char *name, const char *text)
{
    char path[512];

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    det_test_write_file(path, text, strlen(text));
}

#define RECORD_OF(name)      \
    {                        \
        .get = name##_record \
    }

static void a_csv_file_becomes_filtered_lines_of_json(void **state)
{
    static const struct det_stage stages[] = {
        { .name = "read",
          .kind = DET_STAGE_SOURCE,
          .use = "csv",
          .settings = "{path: in.csv}",
          .out = RECORD_OF(sale) },
        { .name = "large",
          .kind = DET_STAGE_TRANSFORM,
          .use = "filter",
          .settings = "{where: total > 10}",
          .in = RECORD_OF(sale),
          .out = RECORD_OF(sale) },
        { .name = "double",
          .kind = DET_STAGE_TRANSFORM,
          .use = "map",
          .settings = "{set: {total: total * 2}}",
          .in = RECORD_OF(sale),
          .out = RECORD_OF(sale) },
        { .name = "write",
          .kind = DET_STAGE_SINK,
          .use = "jsonl",
          .settings = "{path: out.jsonl}",
          .in = RECORD_OF(sale) },
    };
    static const struct det_edge edges[] = { { 0, 1, 0 }, { 1, 2, 0 }, { 2, 3, 0 } };
    static const struct det_flow flow = { "sales", stages, edges, 4, 3 };
    char *output;

    (void)state;
    write_input(
        "in.csv", "number,name,total,amount\n1,a,5,1\n2,b,20,2\nx,c,30,3\n3,\"d,e\",30.5,3\n");
    run_flow(&flow, 1);
    output = read_output("out.jsonl");
    assert_string_equal(
        output, "{\"number\":2,\"name\":\"b\",\"total\":40,\"amount\":2}\n"
                "{\"number\":3,\"name\":\"d,e\",\"total\":61,\"amount\":3}\n");
    free(output);
}

static void generated_rows_reach_a_sink(void **state)
{
    static const struct det_stage stages[] = {
        { .name = "make",
          .kind = DET_STAGE_SOURCE,
          .use = "generate",
          .settings = "{count: 20000, fields: {id: n, text: text(n)}}",
          .out = RECORD_OF(tagged) },
        { .name = "drop", .kind = DET_STAGE_SINK, .use = "null", .in = RECORD_OF(tagged) },
    };
    static const struct det_edge edges[] = { { 0, 1, 0 } };
    static const struct det_flow flow = { "made", stages, edges, 2, 1 };

    (void)state;
    run_flow(&flow, 0);
}

/* 1 2 3 1 2 3 ... with room for all keys, and for two. */
static void repeated_keys_are_dropped(void **state)
{
    static const uint64_t wanted[] = { 3, 12 };

    (void)state;
    for (int i = 0; i < 2; i++) {
        const struct det_stage stages[] = {
            { .name = "make",
              .kind = DET_STAGE_SOURCE,
              .use = "generate",
              .settings = "{count: 12, fields: {id: n, text: text(n % 3)}}",
              .out = RECORD_OF(tagged) },
            { .name = "once",
              .kind = DET_STAGE_STATEFUL,
              .use = "dedupe",
              .key = "text",
              .settings = i ? "{keys: 2}" : "{}",
              .in = RECORD_OF(tagged),
              .out = RECORD_OF(tagged) },
            { .name = "write",
              .kind = DET_STAGE_SINK,
              .use = "jsonl",
              .settings = i ? "{path: some}" : "{path: all}",
              .in = RECORD_OF(tagged) },
        };
        const struct det_edge edges[] = { { 0, 1, 0 }, { 1, 2, 0 } };
        const struct det_flow flow = { "once", stages, edges, 3, 2 };
        uint64_t lines = 0;
        char *output;

        run_flow(&flow, 0);
        output = read_output(i ? "some" : "all");
        for (const char *at = output; (at = strchr(at, '\n')); at++)
            lines++;
        assert_int_equal(lines, wanted[i]);
        free(output);
    }
}

/* 2 of 5 times 2,000,000,000 fit a u32; the others are rejected. */
static void a_sum_that_overflows_rejects_its_row_alone(void **state)
{
    static const struct det_stage stages[] = {
        { .name = "make",
          .kind = DET_STAGE_SOURCE,
          .use = "generate",
          .settings = "{count: 10, fields: {id: n % 2, number: \"if n % 2 == 0 then 3 else "
                      "2000000000\"}}",
          .out = RECORD_OF(counted) },
        { .name = "add",
          .kind = DET_STAGE_STATEFUL,
          .use = "aggregate",
          .key = "id",
          .settings = "{set: {tag: \"'sum'\", place: sum(number)}}",
          .emission = { .kind = DET_EMIT_EVERY, .rows = 2 },
          .in = RECORD_OF(counted),
          .out = RECORD_OF(tag) },
        { .name = "write",
          .kind = DET_STAGE_SINK,
          .use = "jsonl",
          .settings = "{path: sums}",
          .in = RECORD_OF(tag) },
    };
    static const struct det_edge edges[] = { { 0, 1, 0 }, { 1, 2, 0 } };
    static const struct det_flow flow = { "sums", stages, edges, 3, 2 };
    char *output;

    (void)state;
    run_flow(&flow, 3);
    output = read_output("sums");
    assert_string_equal(
        output, "{\"id\":1,\"tag\":\"sum\",\"place\":4000000000}\n"
                "{\"id\":0,\"tag\":\"sum\",\"place\":6}\n"
                "{\"id\":0,\"tag\":\"sum\",\"place\":12}\n"
                "{\"id\":0,\"tag\":\"sum\",\"place\":15}\n");
    free(output);
}

static void posted_rows_are_answered_when_they_are_on_disk(void **state)
{
    static char settings[64];
    static struct det_stage stages[] = {
        { .name = "take",
          .kind = DET_STAGE_SOURCE,
          .use = "http_ingest",
          .settings = settings,
          .out = RECORD_OF(text_row) },
        { .name = "write",
          .kind = DET_STAGE_SINK,
          .use = "jsonl",
          .settings = "{path: posted}",
          .in = RECORD_OF(text_row) },
    };
    static const struct det_edge edges[] = { { 0, 1, 0 } };
    static const struct det_flow flow = { "posted", stages, edges, 2, 1 };
    det_time hang = det_world_now(det_world_real(), DET_CLOCK_MONOTONIC) + DET_TEST_HANG;
    unsigned port = 20000 + ((unsigned)getpid() * 7 + 65) % 12000;
    char journal[512], url[64], *output;

    (void)state;
    (void)snprintf(settings, sizeof settings, "{listen: '127.0.0.1:%u'}", port);
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%u/", port);
    (void)snprintf(journal, sizeof journal, "file:%s/log", folder);
    /* Twice: the second time the stream has rows already. */
    for (int run = 0; run < 2; run++) {
        struct det_pipeline_end end;
        struct det_pipeline *pipeline;
        struct http_client *client;

        open_flow(&flow, journal, &pipeline);
        assert_int_equal(det_pipeline_wait_state(pipeline, DET_PIPELINE_RUNNING, hang), 0);
        assert_int_equal(http_client_open(&(struct http_client_options){ 0 }, &client), 0);
        for (int i = 0; i < 3; i++) {
            struct http_call call = { .url = url, .timeout = DET_TEST_HANG };
            struct http_result result;

            call.send = i == 1 ? "[{\"text\":\"b\"},{\"text\":\"c\"}]" : "{\"text\":\"a\"}";
            call.send_size = strlen(call.send);
            assert_int_equal(http_client_call(client, &call, &result), 0);
            assert_int_equal(result.status, 200);
        }
        http_client_close(client);
        assert_int_equal(det_pipeline_cancel(pipeline), 0);
        assert_int_equal(det_pipeline_wait(pipeline, hang, &end), 0);
        det_pipeline_close(pipeline);
    }
    output = read_output("posted");
    assert_true(strlen(output) <= 8 * strlen("{\"text\":\"a\"}\n"));
    free(output);
}

struct poster {
    const char *url;
    atomic_uint accepted;
};

/* Until a request is refused, or finds nobody. */
static void *post_rows(void *argument)
{
    struct poster *poster = argument;
    struct http_client *client;
    struct http_result result;
    int r;

    assert_int_equal(http_client_open(&(struct http_client_options){ 0 }, &client), 0);
    do {
        struct http_call call = { .url = poster->url,
                                  .timeout = DET_TEST_HANG,
                                  .send = "{\"text\":\"x\"}",
                                  .send_size = 12 };

        r = http_client_call(client, &call, &result);
        if (r == 0 && result.status == 200)
            atomic_fetch_add(&poster->accepted, 1);
    } while (r == 0 && result.status == 200);
    http_client_close(client);
    return NULL;
}

/* A drain answers what was received: the client knows of every row. */
static void a_drain_answers_every_row_that_it_keeps(void **state)
{
    static char settings[64];
    static struct det_stage stages[] = {
        { .name = "take",
          .kind = DET_STAGE_SOURCE,
          .use = "http_ingest",
          .settings = settings,
          .out = RECORD_OF(text_row) },
        { .name = "write",
          .kind = DET_STAGE_SINK,
          .use = "jsonl",
          .settings = "{path: drained}",
          .in = RECORD_OF(text_row) },
    };
    static const struct det_edge edges[] = { { 0, 1, 0 } };
    static const struct det_flow flow = { "drained", stages, edges, 2, 1 };
    det_time hang = det_world_now(det_world_real(), DET_CLOCK_MONOTONIC) + DET_TEST_HANG;
    unsigned port = 20000 + ((unsigned)getpid() * 7 + 33) % 12000, lines = 0;
    char journal[512], url[64], *output;
    struct poster poster = { .url = url };
    struct det_pipeline_end end;
    struct det_pipeline *pipeline;
    pthread_t thread;

    (void)state;
    (void)snprintf(settings, sizeof settings, "{listen: '127.0.0.1:%u'}", port);
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%u/", port);
    (void)snprintf(journal, sizeof journal, "file:%s/drained_log", folder);
    open_flow(&flow, journal, &pipeline);
    assert_int_equal(det_pipeline_wait_state(pipeline, DET_PIPELINE_RUNNING, hang), 0);
    assert_int_equal(pthread_create(&thread, NULL, post_rows, &poster), 0);
    while (atomic_load(&poster.accepted) < 5)
        (void)poll(NULL, 0, 1);
    assert_int_equal(det_pipeline_drain(pipeline, 0), 0);
    assert_int_equal(det_pipeline_wait(pipeline, hang, &end), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    det_pipeline_close(pipeline);
    output = read_output("drained");
    for (const char *at = output; (at = strchr(at, '\n')); at++)
        lines++;
    assert_int_equal(lines, atomic_load(&poster.accepted));
    free(output);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_csv_file_becomes_filtered_lines_of_json),
        cmocka_unit_test(generated_rows_reach_a_sink),
        cmocka_unit_test(repeated_keys_are_dropped),
        cmocka_unit_test(a_sum_that_overflows_rejects_its_row_alone),
        cmocka_unit_test(posted_rows_are_answered_when_they_are_on_disk),
        cmocka_unit_test(a_drain_answers_every_row_that_it_keeps),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
