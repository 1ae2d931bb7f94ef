/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* config.c - reads detent.yaml: its sections, groups, slots and limits. */
#include "config/config.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/text.h"
#include "config/config_internal.h"

enum {
    FILE_VERSION,
    FILE_TASKS,
    FILE_GROUPS,
    FILE_SLOTS,
    FILE_DEFAULTS,
    FILE_LIMITS,
    FILE_STORE,
    FILE_MACHINES,
    FILE_HTTP,
    FILE_LOG,
    FILE_TRACES,
    FILE_WORKERS,
    FILE_FLOWS,
    FILE_KEYS
};

static const char *const file_words[FILE_KEYS] = {
    "version",  "tasks", "groups", "slots",  "defaults", "limits", "store",
    "machines", "http",  "log",    "traces", "workers",  "flows",
};

#define COUNT_MAX 1000000

static int take_version(struct cli_reader *reader, const struct det_datum *node)
{
    if (det_datum_is_scalar(node) && strcmp(node->text, "1") == 0)
        return 0;
    return reader_fail(reader, node, "this program reads version 1");
}

static int take_defaults(
    struct cli_reader *reader, const struct det_datum *node, struct config *config)
{
    const struct det_datum *nodes[CONFIG_POLICY_KEYS];
    struct config_key keys[CONFIG_POLICY_KEYS];
    int r;

    config_policy_keys(keys, 0);
    r = config_take_mapping(
        reader, node, CONFIG_TABLE("'defaults'", keys), &config->defaults, nodes);
    return r < 0 ? r : config_check_policy(reader, nodes, &config->defaults, &config->defaults);
}

static int take_limits(
    struct cli_reader *reader, const struct det_datum *node, struct config *config)
{
#define LIMIT(member) offsetof(struct config, limits.member)
    static const struct config_key keys[] = {
        CONFIG_RANGE("concurrent", config_take_number, LIMIT(concurrent_max), 1, COUNT_MAX),
        CONFIG_RANGE("tasks", config_take_number, LIMIT(tasks_max), 1, COUNT_MAX),
        CONFIG_RANGE("slot_depth", config_take_number, LIMIT(slot_depth_max), 1, COUNT_MAX),
        CONFIG_RANGE("effects", config_take_number, LIMIT(effects_max), 1, CONFIG_EFFECTS_MAX),
        CONFIG_KEY("shutdown", config_take_span, LIMIT(grace)),
    };
#undef LIMIT

    return config_take_mapping(reader, node, CONFIG_TABLE("'limits'", keys), config, NULL);
}

uint32_t config_effects(const struct config *config)
{
    det_assert(config->limits.effects_max <= CONFIG_EFFECTS_MAX);
    return config->limits.effects_max ? config->limits.effects_max : CONFIG_EFFECTS;
}

int config_take_intensity(
    struct cli_reader *reader, const struct det_datum *node, const struct config_key *key,
    void *target)
{
    static const struct config_key keys[] = {
        CONFIG_RANGE(
            "count", config_take_number, offsetof(struct det_intensity, count), 1,
            DET_INTENSITY_MAX),
        CONFIG_RANGE(
            "window", config_take_span, offsetof(struct det_intensity, window), DET_MILLISECOND, 0),
    };

    (void)key;
    return config_take_mapping(reader, node, CONFIG_TABLE("'intensity'", keys), target, NULL);
}

static int take_group(
    struct cli_reader *reader, const struct det_datum *node, struct config_group *group)
{
    static const char *const strategies[] = { "one-for-one", "all-for-one", "rest-for-one", NULL };
    static const struct config_key keys[] = {
        CONFIG_CHOICE(
            "strategy", offsetof(struct det_task_group_spec, strategy), DET_STRATEGY_ONE_FOR_ONE,
            strategies),
        CONFIG_KEY(
            "intensity", config_take_intensity, offsetof(struct det_task_group_spec, intensity)),
        CONFIG_KEY("parent", config_take_text, offsetof(struct det_task_group_spec, parent)),
    };
    int r = config_check_name(reader, node);

    group->node = node;
    group->spec.name = node->key;
    return reader_both(
        r, config_take_mapping(reader, node, CONFIG_TABLE("a group", keys), &group->spec, NULL));
}

static int take_groups(
    struct cli_reader *reader, const struct det_datum *node, struct config *config)
{
    int r;

    config->groups = reader_array(reader, node, "'groups'", sizeof *config->groups, &r);
    READER_EACH (item, node, reader, r)
        r = reader_both(r, take_group(reader, item, &config->groups[config->group_count++]));
    return r;
}

static int take_slots(
    struct cli_reader *reader, const struct det_datum *node, struct config *config)
{
    int r;

    config->slots = reader_array(reader, node, "'slots'", sizeof *config->slots, &r);
    READER_EACH (item, node, reader, r)
        r = reader_both(r, config_take_slot(reader, item, &config->slots[config->slot_count++]));
    return r;
}

static int take_tasks(
    struct cli_reader *reader, const struct det_datum *node, struct config *config)
{
    int r;

    config->tasks = reader_array(reader, node, "'tasks'", sizeof *config->tasks, &r);
    if (r == 0 && !node->first)
        r = reader_fail(reader, node, "there are no tasks");
    READER_EACH (item, node, reader, r) {
        struct config_task *task = &config->tasks[config->task_count++];

        r = reader_both(r, config_take_task(reader, item, config, task));
    }
    if (config->limits.tasks_max && config->task_count > config->limits.tasks_max)
        r = reader_both(
            r, reader_fail_key(
                   reader, node, "there are %zu task%s, and 'limits' has room for %u",
                   config->task_count, det_plural(config->task_count), config->limits.tasks_max));
    return r;
}

static int take_store(
    struct cli_reader *reader, const struct det_datum *node, struct config *config)
{
    int r;

    r = reader_want(reader, node, DET_DATUM_TEXT, "'store'");
    if (r < 0)
        return r;
    if (!strchr(node->text, ':'))
        return reader_fail(
            reader, node, "'store' is a URL, such as sqlite:detent.db or postgres://host/database");
    config->store = node->text;
    config->store_node = node;
    return 0;
}

static int take_machines(
    struct cli_reader *reader, const struct det_datum *node, struct config *config)
{
    int r;

    config->lists_machines = true;
    /* None at all can be written either way. */
    if (node->kind == DET_DATUM_LIST && !node->first)
        return 0;
    config->machines = reader_array(reader, node, "'machines'", sizeof *config->machines, &r);
    READER_EACH (item, node, reader, r)
        r = reader_both(
            r, config_take_machine(reader, item, &config->machines[config->machine_count++]));
    return r;
}

static int take_http(struct cli_reader *reader, const struct det_datum *node, struct config *config)
{
    return config_take_http(reader, node, &config->http);
}

static int take_log(struct cli_reader *reader, const struct det_datum *node, struct config *config)
{
    return config_take_log(reader, node, &config->log);
}

static int take_traces(
    struct cli_reader *reader, const struct det_datum *node, struct config *config)
{
    return config_take_traces(reader, node, &config->traces);
}

static int take_workers(
    struct cli_reader *reader, const struct det_datum *node, struct config *config)
{
    return config_take_workers(reader, node, &config->workers);
}

static int take_flows(
    struct cli_reader *reader, const struct det_datum *node, struct config *config)
{
    int r;

    config->flows = reader_array(reader, node, "'flows'", sizeof *config->flows, &r);
    READER_EACH (item, node, reader, r)
        r = reader_both(r, config_take_flow(reader, item, &config->flows[config->flow_count++]));
    return r;
}

typedef int take_section_fn(
    struct cli_reader *reader, const struct det_datum *node, struct config *config);

static int take_sections(
    struct cli_reader *reader, const struct det_datum *const *nodes, struct config *config)
{
    static const struct {
        int key;
        take_section_fn *take;
    } sections[] = {
        { FILE_DEFAULTS, take_defaults }, { FILE_LIMITS, take_limits },
        { FILE_GROUPS, take_groups },     { FILE_SLOTS, take_slots },
        { FILE_TASKS, take_tasks },       { FILE_STORE, take_store },
        { FILE_MACHINES, take_machines }, { FILE_HTTP, take_http },
        { FILE_LOG, take_log },           { FILE_TRACES, take_traces },
        { FILE_WORKERS, take_workers },   { FILE_FLOWS, take_flows },
    };
    int r = 0;

    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
        const struct det_datum *node = nodes[sections[i].key];

        if (node && reader_can_continue(reader, r))
            r = reader_both(r, sections[i].take(reader, node, config));
    }
    if (reader_can_continue(reader, r))
        r = reader_both(r, config_check_durable(reader, config, nodes[FILE_STORE] != NULL));
    return r;
}

const struct reader_example config_examples[] = {
    { "'defaults'", "{restart: on-failure, timeout: 1h}" },
    { "'limits'", "{shutdown: 30s}" },
    { "'tasks'", "{web: {run: ./server}}" },
    { "a task", "{run: ./server}" },
    { "'environment'", "{PORT: 8080}" },
    { "'backoff'", "{first: 1s, max: 1m}" },
    { "'health'", "{check: ./is-well}" },
    { "'schedule'", "{every: 1h}" },
    { "'limits' of a task", "{memory: 1GiB, open_files: 1024}" },
    { "'log' of a task", "{path: web.log}" },
    { "'machines'", "{order: {}}" },
    { "a machine", "{spec: order.fsm}" },
    { "'effects'", "{charge: {command: ./charge}}" },
    { "an effect", "{command: ./charge}" },
    { "'exits'", "{3: declined}" },
    { "'statuses'", "{402: declined}" },
    { "'headers'", "{Accept: application/json}" },
    { "'secret'", "{Authorization: file:token}" },
    { "'groups'", "{web: {strategy: all-for-one}}" },
    { "a group", "{strategy: all-for-one}" },
    { "'intensity'", "{count: 5, window: 10s}" },
    { "'slots'", "{builds: {width: 2}}" },
    { "a slot", "{width: 2}" },
    { "'schedules'", "{nightly: {cron: '0 3 * * *', run: ./job}}" },
    { "a schedule", "{cron: '0 3 * * *', run: ./job}" },
    { "'flows'", "{readings: {file: readings.flow}}" },
    { "a flow", "{file: readings.flow}" },
    { "'stages'", "{read: {path: a.csv}}" },
    { "the settings of a stage", "{path: a.csv}" },
    { "'retain'", "{size: 1GiB, age: 7d}" },
    { "'workers'", "{children: [{name: pump, kind: process}]}" },
    { "'variables'", "{port: 8080}" },
    { "'globals'", "{site: north}" },
    { "'limits' of 'workers'", "{tick: 100ms}" },
    { "'http'", "{listen: '127.0.0.1:7788'}" },
    { "'tls'", "{certificate: a.pem, key: a.key}" },
    { "'limits' of 'http'", "{connections_max: 1024}" },
    { "'log'", "{level: info}" },
    { "'traces'", "{endpoint: 'http://localhost:4318'}" },
    { NULL, NULL },
};

/* Keys that other tools use for the same thing. */
static const struct reader_synonym synonyms[] = {
    { "command", "run" },
    { "run", "command" },
    { "url", "http" },
    { "retries", "attempts" },
    { "cmd", "run" },
    { "exec", "run" },
    { "script", "run" },
    { "env", "environment" },
    { "cwd", "folder" },
    { "dir", "folder" },
    { "working_dir", "folder" },
    { "directory", "folder" },
    { "after", "depends_on" },
    { "needs", "depends_on" },
    { "requires", "depends_on" },
    { "healthcheck", "health" },
    { "readiness", "ready" },
    { "cron", "schedule" },
    { "every", "schedule" },
    { "max_restarts", "retries" },
    { "stop_grace_period", "grace" },
    { "services", "tasks" },
    { "programs", "tasks" },
    { "processes", "tasks" },
    { "max_failures", "fails" },
    { "bind", "listen" },
    { "address", "listen" },
    { "port", "listen" },
    { "cert", "certificate" },
    { NULL, NULL },
};

static int by_place(const void *a, const void *b)
{
    const struct det_yaml_error *left = a, *right = b;

    if (left->line != right->line)
        return left->line < right->line ? -1 : 1;
    return left->column < right->column ? -1 : left->column > right->column;
}

/* The list is not longer than it can be, and in order of place. */
static void assert_problems(const struct cli_problems *problems)
{
    det_assert(problems->count <= CLI_PROBLEMS_MAX);
    det_assert(!problems->is_cut || problems->count == CLI_PROBLEMS_MAX);
    for (size_t i = 1; i < problems->count; i++)
        det_assert(by_place(&problems->items[i - 1], &problems->items[i]) <= 0);
}

/* A file without problems has what its counts promise. */
static void assert_config(const struct config *config)
{
    det_assert(!config->task_count || (config->tasks && config->order));
    det_assert(!config->group_count || config->groups);
    det_assert(!config->slot_count || config->slots);
    det_assert(!config->machine_count || (config->machines && config->lists_machines));
    det_assert(!config->machine_count || config->store);
    det_assert(!config->workers.node || (config->workers.spec && config->store));
    det_assert(!config->flow_count || config->flows);
    det_assert(
        !config->is_bare || (!config->task_count && !config->machine_count && !config->flow_count));
}

int config_read(
    struct det_arena *arena, const struct det_datum *root, struct config *ret,
    struct cli_problems *reterr)
{
    struct cli_reader reader = {
        .arena = arena, .problems = reterr, .synonyms = synonyms, .examples = config_examples
    };
    const struct det_datum *nodes[FILE_KEYS];
    struct config config = { .may_be_bare = ret->may_be_bare, .owner = ret->owner };
    bool is_misspelt;
    int r;

    *reterr = (struct cli_problems){ 0 };
    config_http_init(&config.http);
    r = reader_keys(&reader, root, file_words, FILE_KEYS, nodes, CONFIG_FILE_NAME);
    is_misspelt = r < 0;
    if (root->kind == DET_DATUM_MAP && !nodes[FILE_VERSION])
        r = reader_fail(&reader, root, CONFIG_FILE_NAME " needs 'version: 1'");
    if (nodes[FILE_VERSION])
        r = reader_both(r, take_version(&reader, nodes[FILE_VERSION]));
    r = reader_both(r, take_sections(&reader, nodes, &config));
    config.is_bare = !nodes[FILE_TASKS] && !nodes[FILE_WORKERS] &&
                     (!nodes[FILE_FLOWS] || (r == 0 && !config.flow_count)) &&
                     (!nodes[FILE_MACHINES] || (r == 0 && !config.machine_count)) &&
                     (!nodes[FILE_SLOTS] || (r == 0 && !config_has_durable(&config)));
    /* A missing key may be the misspelt one. */
    if (root->kind == DET_DATUM_MAP && config.is_bare && !is_misspelt &&
        (!config.may_be_bare || config.lists_machines))
        r = reader_both(
            r, reader_fail(
                   &reader, root,
                   CONFIG_FILE_NAME " needs 'tasks', 'machines', 'workers', 'flows' or a "
                                    "durable slot"));
    if (nodes[FILE_TASKS] && r != DET_ERR_NO_MEMORY)
        r = reader_both(r, config_link(&reader, &config));
    if (reterr->count && r != DET_ERR_NO_MEMORY)
        qsort(reterr->items, reterr->count, sizeof *reterr->items, by_place);
    if ((config.machine_count || config.workers.node) && !config.store)
        config.store = CONFIG_STORE_DEFAULT;
    det_assert((r == 0) == (reterr->count == 0));
    if (r != DET_ERR_NO_MEMORY)
        assert_problems(reterr);
    if (r < 0)
        return r;
    assert_config(&config);
    *ret = config;
    return 0;
}
