/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* descriptor_budget_test.c - descriptors that the tasks and workers of a file leave to
 * connections. */
#include "daemon/descriptor_budget.h"

#include <sys/resource.h>

#include "http/protocol_tables.h"
#include "lib/test.h"

#define LIMIT   2048
#define WORKERS 100

/* The limit of connections beside this number of workers of a kind. */
static uint32_t connections_beside(const char *kind, int count, bool is_isolated)
{
    static char spec[WORKERS * 64];
    struct config_kinds module = { .path = "kinds.so", .is_isolated = is_isolated };
    struct config config = { .workers = { .modules = &module, .module_count = 1 } };
    struct det_yaml_error error;
    struct det_datum *root = NULL;
    struct det_arena arena;
    struct http_limits limits = { .connections_max = UINT32_MAX,
                                  .local_connections_max = UINT32_MAX };
    int used = snprintf(spec, sizeof spec, count ? "children:\n" : "children: []\n");

    for (int i = 0; i < count; i++)
        used += snprintf(
            spec + used, sizeof spec - (size_t)used, "  - {name: w%d, kind: %s}\n", i, kind);
    det_arena_init(&arena, NULL);
    assert_int_equal(det_yaml_read(&arena, spec, (size_t)used, &root, &error), 0);
    config.workers.spec = root;
    up_descriptors_clamp(&config, &limits);
    det_arena_deinit(&arena);
    return limits.connections_max + limits.local_connections_max;
}

static void workers_of_the_file_have_their_descriptors(void **state)
{
    struct rlimit limit = { LIMIT, LIMIT };
    uint32_t all;

    (void)state;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    all = connections_beside("process", 0, false);
    assert_int_equal(all, connections_beside("process", WORKERS, false) + 3 * WORKERS);
    assert_int_equal(all, connections_beside("http_check", WORKERS, false) + 4 * WORKERS);
    assert_int_equal(all, connections_beside("mqtt_link", WORKERS, false) + 4 * WORKERS);
    assert_int_equal(all, connections_beside("communicator", WORKERS, false) + 4 * WORKERS);
    assert_int_equal(all, connections_beside("own", WORKERS, false) + WORKERS);
    assert_int_equal(all, connections_beside("own", WORKERS, true) + 3 * WORKERS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workers_of_the_file_have_their_descriptors),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
