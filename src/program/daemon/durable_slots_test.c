/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* durable_slots_test.c - the stored form of a job: its bytes, and malformed ones. */
#include "daemon/slots_internal.h"

#include "lib/test.h"

/* A repeated submission is compared with the stored bytes, so they must not change. */
static void a_job_is_stored_in_these_bytes(void **state)
{
    static const char *const argv[] = { "sh", "-c", "echo \"\xc3\xa4/\n\"", NULL };
    struct det_json_writer json;

    (void)state;
    det_json_writer_init(&json, NULL);
    up_write_durable_body(
        &json, &(struct up_durable_body){
                   .argv = argv, .folder = "/srv/shop", .retries = 3, .timeout = DET_SECOND });
    assert_string_equal(
        det_buffer_text(&json.text),
        "{\"run\":[\"sh\",\"-c\",\"echo \\\"\xc3\xa4/\\n\\\"\"],\"folder\":\"/srv/shop\","
        "\"retries\":3,\"timeout_ns\":1000000000}");
    det_json_writer_deinit(&json);
}

static int read_text(struct det_arena *arena, const char *text, struct up_durable_body *ret)
{
    return up_read_durable_body(arena, det_view_text(text), ret);
}

static void a_stored_job_is_read(void **state)
{
    struct up_durable_body body = { 0 };
    struct det_arena arena;

    (void)state;
    det_arena_init(&arena, NULL);
    assert_int_equal(
        read_text(
            &arena, "{\"run\":[\"a\",\"\"],\"folder\":\"/\",\"retries\":2,\"timeout_ns\":5}",
            &body),
        0);
    assert_string_equal(body.argv[0], "a");
    assert_string_equal(body.argv[1], "");
    assert_null(body.argv[2]);
    assert_string_equal(body.folder, "/");
    assert_int_equal(body.retries, 2);
    assert_int_equal(body.timeout, 5);
    /* Members that an older detent did not store. */
    assert_int_equal(read_text(&arena, "{\"run\":[\"a\"]}", &body), 0);
    assert_null(body.folder);
    assert_int_equal(body.retries, 0);
    assert_int_equal(body.timeout, 0);
    det_arena_deinit(&arena);
}

static void malformed_jobs_are_rejected(void **state)
{
    static const char *const texts[] = {
        "", "[]", "{}", "{\"run\":[]}", "{\"run\":\"a\"}", "{\"run\":[1]}", "{\"run\":[\"a\"]",
    };
    struct up_durable_body body;
    struct det_arena arena;

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        det_arena_init(&arena, NULL);
        assert_int_equal(read_text(&arena, texts[i], &body), DET_ERR_MALFORMED);
        det_arena_deinit(&arena);
    }
}

static void allocation_failure_is_not_reported_as_damage(void **state)
{
    struct det_test_memory memory;
    struct up_durable_body body;
    struct det_arena arena;
    int r = DET_ERR_NO_MEMORY;

    (void)state;
    det_test_memory_init(&memory);
    for (uint64_t n = 1; r != 0; n++) {
        memory.fail_at = memory.calls + n;
        det_arena_init(&arena, &memory.allocator);
        r = read_text(&arena, "{\"run\":[\"a\",\"b\"],\"folder\":\"/\"}", &body);
        assert_true(r == 0 || r == DET_ERR_NO_MEMORY);
        det_arena_deinit(&arena);
        memory.fail_at = 0;
    }
    det_test_memory_deinit(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_is_stored_in_these_bytes),
        cmocka_unit_test(a_stored_job_is_read),
        cmocka_unit_test(malformed_jobs_are_rejected),
        cmocka_unit_test(allocation_failure_is_not_reported_as_damage),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
