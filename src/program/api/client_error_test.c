/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* client_error_test.c - errors as clients see them, and the log entry. */
#include "lib/test.h"

#include <detent/sim.h>

#include "api/api_internal.h"
#include "daemon/daemon.h"
#include "daemon/run.h"

static void text_with_the_store_address_is_detected_when_truncated(void **state)
{
    static const char address[] = "sqlite:/srv/shop/data/orders.db?sync=full";
    char path[400] = "/srv/", cut[256];

    (void)state;
    assert_true(api_names_store("/srv/shop/data/orders.db: disk I/O error", address, NULL));
    assert_true(api_names_store("cannot open sqlite:/srv/shop/data/orders.db", address, NULL));
    assert_true(api_names_store("in \"/srv/shop/data/orders.db-wal\"", address, NULL));
    assert_true(api_names_store("x.db: is damaged", "sqlite:x.db", NULL));
    assert_true(api_names_store("PostgreSQL: connection to server at \"db\" failed", NULL, NULL));
    assert_true(api_names_store(
        "the store cannot be reached: PostgreSQL: password authentication failed", "p://x", NULL));
    assert_true(api_names_store("postgres://me@host/db: no", "p://x", "postgres://me@host/db"));
    memset(path + 5, 'd', 390);
    snprintf(cut, sizeof cut, "%.200s: disk I/O error", path);
    assert_true(api_names_store(cut, path, NULL));
}

static void errors_without_the_store_url_are_shown(void **state)
{
    (void)state;
    assert_false(api_names_store("order o-1 does not take pay", "sqlite:/srv/orders.db", NULL));
    assert_false(api_names_store("max.db", "sqlite:x.db", NULL));
    assert_false(api_names_store("any text", "memory:", NULL));
    assert_false(api_names_store("any text", NULL, NULL));
}

struct stage {
    struct cli cli;
    struct up up;
    struct up_options options;
    struct api api;
    struct det_sim *sim;
    char *printed;
    size_t printed_size;
};

static void open_stage(struct stage *stage)
{
    assert_int_equal(det_sim_open(&(struct det_sim_options){ .seed = 1 }, &stage->sim, NULL), 0);
    stage->cli.world = det_sim_world(stage->sim);
    stage->cli.out = stage->cli.err = open_memstream(&stage->printed, &stage->printed_size);
    stage->up.cli = stage->up.output.outer = &stage->cli;
    stage->up.options = &stage->options;
    assert_int_equal(up_log_open(&stage->up), 0);
    assert_int_equal(det_loop_open(stage->cli.world, NULL, &stage->up.loop), 0);
    assert_int_equal(up_store_watch_open(&stage->up), 0);
    stage->api = (struct api){ .up = &stage->up, .source.address = "sqlite:a.db" };
}

static void close_stage(struct stage *stage)
{
    up_log_close(&stage->up);
    det_loop_close(stage->up.loop);
    up_store_watch_free(&stage->up);
    det_sim_close(stage->sim);
    fclose(stage->cli.out);
    free(stage->printed);
    free(stage);
}

static void expect_line(struct stage *stage, const char *text, const char *shown)
{
    struct det_error error = { .code = DET_ERR_IO };
    struct det_json_writer json;

    snprintf(error.text, sizeof error.text, "%s", text);
    det_json_writer_init(&json, NULL);
    det_json_open(&json, NULL, '{');
    api_error_line(&stage->api, &json, DET_ERR_IO, &error);
    det_json_close(&json, '}');
    assert_non_null(strstr(det_buffer_text(&json.text), shown));
    det_json_writer_deinit(&json);
}

/* The daemon logs one in ten seconds. */
static void clients_get_a_sentence_and_the_log_gets_the_reason(void **state)
{
    struct stage *stage = calloc(1, sizeof *stage);

    (void)state;
    assert_non_null(stage);
    open_stage(stage);
    expect_line(stage, "order o-1 is ill", "\"text\":\"order o-1 is ill\"");
    expect_line(stage, "there is no 'o-9' in sqlite:a.db", "\"text\":\"there is no 'o-9'\"");
    expect_line(
        stage, "a.db: disk I/O error",
        "\"text\":\"the store: input or output failed; see the log of detent up\"");
    expect_line(stage, "a.db: another error", "see the log of detent up");
    assert_true(det_loop_turn(stage->up.loop, 0) >= 0);
    prefix_flush(up_prefix(&stage->up));
    fflush(stage->cli.out);
    assert_non_null(strstr(stage->printed, "store: a.db: disk I/O error"));
    assert_null(strstr(stage->printed, "another error"));
    assert_null(strstr(stage->printed, "there is no"));
    close_stage(stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_with_the_store_address_is_detected_when_truncated),
        cmocka_unit_test(errors_without_the_store_url_are_shown),
        cmocka_unit_test(clients_get_a_sentence_and_the_log_gets_the_reason),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
