/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* http_ingest_source_test.c - requests over real sockets: when they are answered, and with what. */
/* test: threads */
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/hex.h"
#include "connectors/harness_test.h"
#include "connectors/http_ingest.h"
#include "http/client.h"

static const struct det_stage stage = { .out = { .get = tagged_record } };
static unsigned port;

#define ROW(id) "{\"id\":" #id ",\"text\":\"x\",\"tags\":[],\"numbers\":[]}"

/* Tests run at the same time: the port comes from the process. */
static void open_ingest(struct harness *harness, const char *more)
{
    static char settings[512];

    for (int i = 0;; i++) {
        port = 20000 + ((unsigned)getpid() * 7 + (unsigned)i * 131) % 12000;
        (void)snprintf(settings, sizeof settings, "{listen: '127.0.0.1:%u'%s}", port, more);
        harness_init(harness, &http_ingest_source, stage, settings);
        if (harness_start(harness) == 0)
            return;
        if (i == 50)
            fail_msg("%s", harness->failure.text);
        harness_deinit(harness);
    }
}

struct post {
    struct http_client *client;
    struct http_lines lines;
    struct http_call call;
    struct http_result result;
    struct det_buffer body;
    char url[128];
    int r;
};

static void begin_post(struct post *post, const char *path, const char *body, const char *header)
{
    *post = (struct post){ .r = 1 };
    det_buffer_init(&post->body, NULL);
    (void)snprintf(post->url, sizeof post->url, "http://127.0.0.1:%u%s", port, path);
    assert_int_equal(http_client_open(&(struct http_client_options){ 0 }, &post->client), 0);
    if (header)
        assert_true(http_lines_add_line(&post->lines, header));
    post->call = (struct http_call){ .url = post->url,
                                     .lines = &post->lines,
                                     .send = body,
                                     .send_size = body ? strlen(body) : 0,
                                     .timeout = DET_TEST_HANG,
                                     .body = &post->body };
    http_client_begin(post->client, &post->call, &post->result);
}

/* Lets the client work for a moment; returns true if the answer has come. */
static bool turn_post(struct post *post)
{
    if (post->r == 1)
        post->r = http_client_wait(
            post->client, det_world_now(det_world_real(), DET_CLOCK_MONOTONIC) + DET_MILLISECOND);
    return post->r != 1;
}

static void end_post(struct post *post, unsigned status, const char *text)
{
    while (!turn_post(post))
        ;
    assert_int_equal(post->r, 0);
    if (post->result.status != status || !strstr(det_buffer_text(&post->body), text))
        fail_msg("%u %s", post->result.status, det_buffer_text(&post->body));
    http_lines_deinit(&post->lines);
    http_client_close(post->client);
    det_buffer_deinit(&post->body);
}

/* A request that is answered without the pipeline. */
static void expect(
    const char *path, const char *body, const char *header, unsigned status, const char *text)
{
    struct post post;

    begin_post(&post, path, body, header);
    end_post(&post, status, text);
}

static void acknowledge(struct harness *harness)
{
    harness->connector->functions.acknowledged(&harness->call, harness->row_count);
}

static void a_request_is_answered_when_its_rows_are_acknowledged(void **state)
{
    struct harness harness;
    struct post one, two;

    (void)state;
    open_ingest(&harness, "");
    begin_post(&one, "/", ROW(1), NULL);
    while (harness.row_count < 1) {
        (void)turn_post(&one);
        assert_int_equal(harness_next(&harness), DET_SOURCE_IDLE);
    }
    begin_post(&two, "/", "[" ROW(2) "," ROW(3) "]", NULL);
    while (harness.row_count < 3) {
        (void)turn_post(&two);
        assert_int_equal(harness_next(&harness), DET_SOURCE_IDLE);
    }
    for (int i = 0; i < 20; i++) {
        assert_false(turn_post(&one));
        assert_false(turn_post(&two));
    }
    /* Not even a part of the second one. */
    harness.connector->functions.acknowledged(&harness.call, 2);
    end_post(&one, 200, "{\"accepted\":1,\"rejected\":0}");
    assert_false(turn_post(&two));
    acknowledge(&harness);
    end_post(&two, 200, "{\"accepted\":2,\"rejected\":0}");
    assert_int_equal(((const struct tagged *)harness_row(&harness, 2))->id, 3);
    harness_deinit(&harness);
}

static void requests_are_checked_in_order(void **state)
{
    struct harness harness;
    char *large = malloc(2000);

    (void)state;
    assert_non_null(large);
    memset(large, 'x', 1999);
    large[1999] = 0;
    assert_int_equal(setenv("INGEST_TEST_SECRET", "open sesame", 1), 0);
    open_ingest(
        &harness, ", path: /in, auth: bearer, secret_environment: INGEST_TEST_SECRET, body_max: "
                  "1000, batch_max: 2, queue_max: 2");
    expect("/in", large, NULL, 413, "");
    expect("/in", "{", NULL, 401, "the secret is missing or wrong");
    expect("/in", "{", "Authorization: Bearer open", 401, "");
    expect("/other", "{", NULL, 404, "");
    expect("/in", NULL, NULL, 405, "");
    expect("/in", "{", "Authorization: Bearer open sesame", 400, "");
    expect("/in", "7", "Authorization: Bearer open sesame", 400, "neither an object nor an array");
    expect(
        "/in", "[" ROW(1) "," ROW(1) "," ROW(1) "]", "Authorization: Bearer open sesame", 400,
        "send at most 2");
    expect("/in", "{\"id\":1}", "Authorization: Bearer open sesame", 400, "row 0: tagged.text");
    expect("/in", "[]", "Authorization: Bearer open sesame", 200, "{\"accepted\":0,");
    assert_int_equal(harness_next(&harness), DET_SOURCE_IDLE);
    assert_int_equal(harness.row_count, 0);
    harness_deinit(&harness);
    free(large);
}

static void a_full_queue_and_a_drain_are_503(void **state)
{
    struct harness harness;
    struct post post;

    (void)state;
    open_ingest(&harness, ", queue_max: 2");
    begin_post(&post, "/", "[" ROW(1) "," ROW(2) "]", NULL);
    while (harness.row_count < 2) {
        (void)turn_post(&post);
        assert_int_equal(harness_next(&harness), DET_SOURCE_IDLE);
    }
    expect("/", ROW(3), NULL, 503, "too many rows wait");
    acknowledge(&harness);
    end_post(&post, 200, "\"accepted\":2");
    begin_post(&post, "/", ROW(4), NULL);
    while (!turn_post(&post) && !harness_wait_until(&harness, 0))
        ;
    harness.call.row.sequence = harness.row_count;
    assert_int_equal(harness.connector->functions.drain(&harness.call), 0);
    assert_int_equal(harness.row_count, 3);
    expect("/", ROW(5), NULL, 503, "the flow is stopping");
    acknowledge(&harness);
    end_post(&post, 200, "\"accepted\":1");
    harness_deinit(&harness);
}

static void valid_rows_of_a_batch_are_accepted(void **state)
{
    struct harness harness;
    struct post post;

    (void)state;
    open_ingest(&harness, "");
    begin_post(&post, "/", "[" ROW(1) ",{\"id\":2}," ROW(3) ",7]", NULL);
    while (harness.row_count < 2) {
        (void)turn_post(&post);
        assert_int_equal(harness_next(&harness), DET_SOURCE_IDLE);
    }
    acknowledge(&harness);
    end_post(
        &post, 200,
        "{\"accepted\":2,\"rejected\":2,\"error\":\"row 1: tagged.text: the field is missing");
    harness_deinit(&harness);
}

static void sign(const char *secret, uint64_t seconds, const char *body, char target[128])
{
    unsigned char digest[32];
    unsigned size = sizeof digest;
    char text[512], hex[65];

    (void)snprintf(text, sizeof text, "%llu.%s", (unsigned long long)seconds, body);
    assert_non_null(HMAC(
        EVP_sha256(), secret, (int)strlen(secret), (const unsigned char *)text, strlen(text),
        digest, &size));
    det_hex_write(digest, sizeof digest, hex);
    (void)snprintf(target, 128, "X-Signature: t=%llu,v1=%s", (unsigned long long)seconds, hex);
}

static void signatures_are_checked_with_their_age(void **state)
{
    uint64_t now = (uint64_t)(det_world_now(det_world_real(), DET_CLOCK_WALL) / DET_SECOND);
    struct harness harness;
    struct post post;
    char header[128];

    (void)state;
    assert_int_equal(setenv("INGEST_TEST_SECRET", "s3", 1), 0);
    open_ingest(
        &harness, ", auth: hmac, secret_environment: INGEST_TEST_SECRET, replay_window: 1m");
    sign("s3", now - 120, ROW(1), header);
    expect("/", ROW(1), header, 401, "too old");
    sign("s3", now + 120, ROW(1), header);
    expect("/", ROW(1), header, 401, "too old");
    sign("other", now, ROW(1), header);
    expect("/", ROW(1), header, 401, "");
    sign("s3", now, ROW(2), header);
    expect("/", ROW(1), header, 401, "");
    expect("/", ROW(1), "X-Signature: t=1", 401, "");
    expect("/", ROW(1), NULL, 401, "");
    sign("s3", now, ROW(1), header);
    begin_post(&post, "/", ROW(1), header);
    while (harness.row_count < 1) {
        (void)turn_post(&post);
        assert_int_equal(harness_next(&harness), DET_SOURCE_IDLE);
    }
    acknowledge(&harness);
    end_post(&post, 200, "");
    harness_deinit(&harness);
}

/* Rows of a client that has gone are emitted; a close with open requests frees everything. */
static void a_client_may_leave_before_its_answer(void **state)
{
    struct harness harness;
    struct post post;

    (void)state;
    open_ingest(&harness, "");
    begin_post(&post, "/", ROW(1), NULL);
    while (!turn_post(&post) && !harness_wait_until(&harness, 0))
        ;
    http_client_end(post.client);
    http_lines_deinit(&post.lines);
    http_client_close(post.client);
    det_buffer_deinit(&post.body);
    assert_int_equal(harness_next(&harness), DET_SOURCE_IDLE);
    assert_int_equal(harness.row_count, 1);
    acknowledge(&harness);
    begin_post(&post, "/", ROW(2), NULL);
    while (!turn_post(&post) && !harness_wait_until(&harness, 0))
        ;
    harness_deinit(&harness);
    http_client_end(post.client);
    http_lines_deinit(&post.lines);
    http_client_close(post.client);
    det_buffer_deinit(&post.body);
}

static void wrong_settings_are_refused(void **state)
{
    (void)state;
    harness_refuses(&http_ingest_source, stage, "{}", "listen is missing: add it");
    harness_refuses(
        &http_ingest_source, stage, "{listen: '0.0.0.0:1'}", "reachable from other machines: add");
    harness_refuses(
        &http_ingest_source, stage, "{listen: '127.0.0.1:1', auth: bearer}",
        "the secret is missing");
    harness_refuses(
        &http_ingest_source, stage, "{listen: '127.0.0.1:1', path: in}", "path must begin with /");
    harness_refuses(
        &http_ingest_source, stage, "{listen: '127.0.0.1:1', secret_file: x}", "needs auth");
}

static int read_body(struct det_test_memory *memory, void *argument)
{
    struct det_error error;
    struct ingest_rows rows;
    int r;

    r = ingest_rows_read(
        &rows, &memory->allocator, tagged_record(), 0, det_view_text(argument), 10, &error);
    if (r < 0)
        return r;
    assert_int_equal(rows.count, 2);
    ingest_rows_free(&rows, &memory->allocator);
    return 0;
}

static void every_failing_allocation_of_a_body_is_reported(void **state)
{
    static char body[] = "[" ROW(1) "," ROW(2) "]";

    (void)state;
    det_test_each_failure(read_body, body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_is_answered_when_its_rows_are_acknowledged),
        cmocka_unit_test(requests_are_checked_in_order),
        cmocka_unit_test(a_full_queue_and_a_drain_are_503),
        cmocka_unit_test(valid_rows_of_a_batch_are_accepted),
        cmocka_unit_test(signatures_are_checked_with_their_age),
        cmocka_unit_test(a_client_may_leave_before_its_answer),
        cmocka_unit_test(wrong_settings_are_refused),
        cmocka_unit_test(every_failing_allocation_of_a_body_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
