/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* flow_section.c - the flows of detent.yaml. */
#include <string.h>

#include "base/assert.h"
#include "config/config_internal.h"

#define RETAIN_MIN  ((uint64_t)1 << 20)
#define RETAIN_MAX  ((uint64_t)1 << 50)
#define WINDOW_MAX  1048576
#define THREADS_MAX 256

static int take_retain(
    struct cli_reader *reader, const struct det_datum *node, const struct config_key *key,
    void *target)
{
    static const struct config_key keys[] = {
        CONFIG_RANGE(
            "size", config_take_size, offsetof(struct config_flow, retain_size), RETAIN_MIN,
            RETAIN_MAX),
        CONFIG_RANGE(
            "age", config_take_span, offsetof(struct config_flow, retain_age), DET_SECOND, 0),
    };

    (void)key;
    return config_take_mapping(reader, node, CONFIG_TABLE("'retain'", keys), target, NULL);
}

static int take_stage(
    struct cli_reader *reader, const struct det_datum *node, struct config_flow_stage *stage)
{
    stage->name = node->key;
    stage->settings = node;
    return reader_both(
        config_check_name(reader, node),
        reader_want(reader, node, DET_DATUM_MAP, "the settings of a stage"));
}

static int take_stages(
    struct cli_reader *reader, const struct det_datum *node, const struct config_key *key,
    void *target)
{
    struct config_flow *flow = target;
    int r;

    (void)key;
    flow->stages = reader_array(reader, node, "'stages'", sizeof *flow->stages, &r);
    READER_EACH (item, node, reader, r)
        r = reader_both(r, take_stage(reader, item, &flow->stages[flow->stage_count++]));
    return r;
}

enum { FILE_KEY, MODULE, DURABILITY, START, RETAIN, WINDOW, THREADS, STAGES, STOP_TIMEOUT };
enum { RESTART = STOP_TIMEOUT + 1, RETRIES, BACKOFF };

#define IN(member) offsetof(struct config_flow, member)
static const char *const durabilities[] = { "disk", "os", "memory", NULL };
static const char *const starts[] = { "auto", "manual", NULL };
static const char *const restarts[] = { "never", "on-failure", NULL };

static const struct config_key flow_keys[] = {
    [FILE_KEY] = CONFIG_KEY("file", config_take_text, IN(file)),
    [MODULE] = CONFIG_KEY("module", config_take_text, IN(module)),
    [DURABILITY] = CONFIG_CHOICE("durability", IN(durability), 0, durabilities),
    [START] = CONFIG_CHOICE("start", IN(is_manual), 0, starts),
    [RETAIN] = CONFIG_KEY("retain", take_retain, 0),
    [WINDOW] = CONFIG_RANGE("window", config_take_number, IN(window), 1, WINDOW_MAX),
    [THREADS] = CONFIG_RANGE("threads", config_take_number, IN(threads), 1, THREADS_MAX),
    [STAGES] = CONFIG_KEY("stages", take_stages, 0),
    [STOP_TIMEOUT] =
        CONFIG_RANGE("stop_timeout", config_take_span, IN(stop_timeout), DET_MILLISECOND, 0),
    [RESTART] = CONFIG_CHOICE("restart", IN(policy.restart), DET_RESTART_NEVER, restarts),
    [RETRIES] = CONFIG_RANGE_OR(
        "retries", config_take_number, IN(policy.retries_max), 1, 1000000, "unlimited",
        DET_RETRIES_UNLIMITED),
    [BACKOFF] = CONFIG_KEY("backoff", config_take_backoff, IN(policy.backoff)),
};
#undef IN

int config_take_flow(
    struct cli_reader *reader, const struct det_datum *node, struct config_flow *flow)
{
    const struct det_datum *nodes[sizeof flow_keys / sizeof *flow_keys];
    int r = config_check_name(reader, node);

    flow->name = node->key;
    flow->node = node;
    r = reader_both(
        r, config_take_mapping(reader, node, CONFIG_TABLE("a flow", flow_keys), flow, nodes));
    if (node->kind != DET_DATUM_MAP || r == DET_ERR_NO_MEMORY)
        return r;
    flow->file_node = nodes[FILE_KEY];
    flow->module_node = nodes[MODULE];
    if (nodes[RETRIES] && flow->policy.restart == DET_RESTART_NEVER)
        r = reader_both(
            r,
            reader_fail_key(reader, nodes[RETRIES], "'retries' does not go with 'restart: never'"));
    if (nodes[RETAIN] && flow->durability == CONFIG_DURABILITY_MEMORY)
        r = reader_both(
            r, reader_fail_key(
                   reader, nodes[RETAIN],
                   "'retain' does not go with 'durability: memory': nothing is on disk"));
    if (!flow->file)
        flow->file = det_arena_format(reader->arena, "%s" CONFIG_FLOW_SUFFIX, node->key);
    return flow->file ? r : reader_no_memory(reader, node);
}
