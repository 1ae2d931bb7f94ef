/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* task_section.c - one task of detent.yaml. */
#include <ctype.h>
#include <signal.h>
#include <string.h>

#include "base/assert.h"
#include "base/text.h"
#include "config/config_internal.h"

/* The keys of a task; those of its policy come first. */
enum {
    KEY_RUN = CONFIG_POLICY_KEYS,
    KEY_FOLDER,
    KEY_ENVIRONMENT,
    KEY_USER,
    KEY_STOP_SIGNAL,
    KEY_DEPENDS_ON,
    KEY_READY,
    KEY_HEALTH,
    KEY_SCHEDULE,
    KEY_GROUP,
    KEY_SLOT,
    KEY_ADMISSION,
    KEY_SUCCESS_CODES,
    KEY_FATAL_CODES,
    KEY_OUTPUT_LIMIT,
    KEY_ENDS_WITH_US,
    KEY_ENV_FILE,
    KEY_LIMITS,
    KEY_LOG,
    KEY_COUNT
};

bool config_is_variable(const char *name)
{
    size_t length = strlen(name), used = 0;

    while (used < length && (isalnum((unsigned char)name[used]) || name[used] == '_'))
        used++;
    return length && used == length && !isdigit((unsigned char)*name);
}

int config_take_environment(
    struct cli_reader *reader, const struct det_datum *node, const struct config_key *key,
    void *target)
{
    const char *const **ret = target;
    const char **variables;
    size_t count = 0;
    int r;

    (void)key;
    r = reader_want(reader, node, DET_DATUM_MAP, "'environment'");
    if (r < 0)
        return r;
    variables = det_arena_array(reader->arena, node->count + 1, sizeof *variables);
    if (!variables)
        return reader_no_memory(reader, node);
    for (const struct det_datum *item = node->first; item; item = item->next) {
        int bad = reader_want(reader, item, DET_DATUM_TEXT, "the value of a variable");

        if (bad == 0 && !config_is_variable(item->key))
            bad = reader_fail_key(
                reader, item, "'%s' is not the name of a variable: letters, digits and '_'",
                item->key);
        r = reader_both(r, bad);
        if (bad < 0)
            continue;
        variables[count] = det_arena_format(reader->arena, "%s=%s", item->key, item->text);
        if (!variables[count++])
            return reader_no_memory(reader, item);
    }
    *ret = variables;
    return r;
}

static int take_signal(
    struct cli_reader *reader, const struct det_datum *node, const struct config_key *key,
    void *target)
{
    static const char *const names[] = { "TERM", "INT",   "QUIT", "HUP",  "USR1",
                                         "USR2", "WINCH", "ABRT", "KILL", NULL };
    static const int numbers[] = { SIGTERM, SIGINT,   SIGQUIT, SIGHUP, SIGUSR1,
                                   SIGUSR2, SIGWINCH, SIGABRT, SIGKILL };
    struct config_key choice = { .name = key->name, .words = names };
    struct det_datum bare = *node;
    int *ret = target, index = 0;
    int r;

    if (det_datum_is_scalar(node) && strncmp(node->text, "SIG", 3) == 0)
        bare.text += 3;
    r = config_take_choice(reader, &bare, &choice, &index);
    det_assert((size_t)index < sizeof numbers / sizeof *numbers);
    if (r == 0)
        *ret = numbers[index];
    return r;
}

static int take_dependency(
    struct cli_reader *reader, const struct det_datum *item, struct det_dependency *ret)
{
    static const char *const conditions[] = { "running", "healthy", "completed", NULL };
    static const struct config_key condition = { .name = "depends_on",
                                                 .value = DET_WHEN_RUNNING,
                                                 .words = conditions };
    int when = DET_WHEN_HEALTHY;
    int r = item->key ? config_take_choice(reader, item, &condition, &when)
                      : reader_want(reader, item, DET_DATUM_TEXT, "a dependency");

    ret->name = item->key ? item->key : item->text;
    ret->when = (enum det_condition_kind)when;
    return r;
}

static int take_dependencies(
    struct cli_reader *reader, const struct det_datum *node, const struct config_key *key,
    void *target)
{
    struct config_task *task = target;
    struct det_dependency *items;
    size_t count = 0;
    int r = 0;

    (void)key;
    if (det_datum_is_scalar(node))
        return reader_fail(
            reader, node, "'depends_on' is a sequence or a mapping: depends_on: [%s]", node->text);
    items = det_arena_array(reader->arena, node->count + 1, sizeof *items);
    task->edges = det_arena_array(reader->arena, node->count + 1, sizeof(struct det_datum *));
    if (!items || !task->edges)
        return reader_no_memory(reader, node);
    for (const struct det_datum *item = node->first; item; item = item->next) {
        int bad = take_dependency(reader, item, &items[count]);

        r = reader_both(r, bad);
        if (bad == 0)
            task->edges[count++] = item;
    }
    det_assert(count <= node->count && (r < 0 || count == node->count));
    task->spec.depends_on = items;
    task->spec.depends_on_count = count;
    return r;
}

/* The keys of a check, with which the tables of 'health' and 'ready' begin. */
#define IN_CHECK(member) offsetof(struct det_check, member)
#define CHECK_KEYS                                                                        \
    CONFIG_KEY("check", config_take_argv, IN_CHECK(argv)),                                \
        CONFIG_RANGE("every", config_take_span, IN_CHECK(every), DET_MILLISECOND, 0),     \
        CONFIG_RANGE("timeout", config_take_span, IN_CHECK(timeout), DET_MILLISECOND, 0), \
        CONFIG_RANGE("fails", config_take_number, IN_CHECK(fails_max), 1, 1000000)
enum { CHECK_ARGV, CHECK_KEY_COUNT = 4 };

static int take_health(
    struct cli_reader *reader, const struct det_datum *node, const struct config_key *key,
    void *target)
{
    static const struct config_key keys[] = { CHECK_KEYS };
    const struct det_datum *nodes[CHECK_KEY_COUNT];
    struct config_task *task = target;
    int r;

    (void)key;
    r = config_take_mapping(reader, node, CONFIG_TABLE("'health'", keys), &task->health, nodes);
    if (node->kind == DET_DATUM_MAP && !nodes[CHECK_ARGV])
        r = reader_both(r, reader_fail(reader, node, "'health' needs 'check'"));
    task->check_node = nodes[CHECK_ARGV];
    return r;
}

static const char *const ready_words[] = { "started", "notify", "health", NULL };

/* The mapping of `ready`; `when` is an index of ready_words, 0 if absent. */
struct ready {
    struct det_check check;
    det_time within;
    int when;
};

static int take_ready_mapping(
    struct cli_reader *reader, const struct det_datum *node, struct config_task *task)
{
    enum { WITHIN = CHECK_KEY_COUNT, WHEN, KEYS };
    static const struct config_key keys[KEYS] = {
        CHECK_KEYS,
        [WITHIN] = CONFIG_RANGE_OR(
            "within", config_take_span, offsetof(struct ready, within), DET_MILLISECOND, 0,
            "forever", DET_NEVER),
        [WHEN] = CONFIG_CHOICE("when", offsetof(struct ready, when), 1, ready_words + 1),
    };
    const struct det_datum *nodes[KEYS];
    struct ready ready = { .when = 0 };
    int r;

    r = config_take_mapping(reader, node, CONFIG_TABLE("'ready'", keys), &ready, nodes);
    for (size_t i = 0; r == 0 && nodes[WHEN] && i < CHECK_KEY_COUNT; i++) {
        if (nodes[i])
            r = reader_fail_key(reader, nodes[i], "'%s' does not go with 'when'", nodes[i]->key);
    }
    if (r == 0 && !nodes[WHEN] && !nodes[CHECK_ARGV])
        r = reader_fail(reader, node, "'ready' needs 'check' or 'when'");
    task->spec.readiness = (struct det_readiness){
        .by = ready.when == 1 ? DET_READY_BY_NOTIFY : DET_READY_BY_CHECK,
        .within = ready.within,
        .check = ready.check,
    };
    task->check_node = nodes[CHECK_ARGV] ? nodes[CHECK_ARGV] : task->check_node;
    return r;
}

static int take_ready(
    struct cli_reader *reader, const struct det_datum *node, const struct config_key *key,
    void *target)
{
    static const enum det_ready_by bys[] = { DET_READY_WHEN_STARTED, DET_READY_BY_NOTIFY,
                                             DET_READY_BY_CHECK };
    struct config_key choice = { .name = key->name, .words = ready_words };
    struct config_task *task = target;
    int index = 0;
    int r;

    if (node->kind == DET_DATUM_MAP)
        return take_ready_mapping(reader, node, task);
    r = config_take_choice(reader, node, &choice, &index);
    det_assert((size_t)index < sizeof bys / sizeof *bys);
    task->spec.readiness.by = bys[index];
    return r;
}

#define IN_SCHEDULE(member) (offset + offsetof(struct det_schedule, member))

void config_schedule_keys(struct config_key *keys, size_t offset)
{
    static const char *const misses[] = { "skip", "once", "all", NULL };

    const struct config_key table[CONFIG_SCHEDULE_KEYS] = {
        [CONFIG_SCHEDULE_EVERY] =
            CONFIG_RANGE("every", config_take_span, IN_SCHEDULE(every), DET_DELAY_FLOOR, 0),
        [CONFIG_SCHEDULE_CRON] = CONFIG_KEY("cron", config_take_text, IN_SCHEDULE(cron)),
        [CONFIG_SCHEDULE_MISSED] =
            CONFIG_CHOICE("missed", IN_SCHEDULE(missed), DET_MISSED_SKIP, misses),
        [CONFIG_SCHEDULE_ZONE] = CONFIG_KEY("timezone", config_take_zone, IN_SCHEDULE(zone)),
    };

    memcpy(keys, table, sizeof table);
}

int config_check_schedule(
    struct cli_reader *reader, const struct det_datum *node, const struct det_datum *const *nodes)
{
    if (nodes[CONFIG_SCHEDULE_ZONE] && !nodes[CONFIG_SCHEDULE_CRON])
        return reader_fail_key(
            reader, nodes[CONFIG_SCHEDULE_ZONE], "'timezone' needs 'cron', such as 0 9 * * *");
    if (!nodes[CONFIG_SCHEDULE_EVERY] != !nodes[CONFIG_SCHEDULE_CRON])
        return 0;
    return reader_fail(reader, node, "'%s' has either 'every' or 'cron'", node->key);
}

static int take_schedule(
    struct cli_reader *reader, const struct det_datum *node, const struct config_key *key,
    void *target)
{
    const struct det_datum *nodes[CONFIG_SCHEDULE_KEYS + 1];
    struct config_key keys[CONFIG_SCHEDULE_KEYS + 1];
    struct config_task *task = target;
    int r;

    (void)key;
    config_schedule_keys(keys, 0);
    keys[CONFIG_SCHEDULE_KEYS] = (struct config_key)CONFIG_KEY(
        "spread", config_take_span, offsetof(struct det_schedule, spread));
    r = config_take_mapping(
        reader, node, CONFIG_TABLE("'schedule'", keys), &task->spec.schedule, nodes);
    if (r == 0)
        r = config_check_schedule(reader, node, nodes);
    task->cron_node = nodes[CONFIG_SCHEDULE_CRON];
    return r;
}

static int take_code(struct cli_reader *reader, const struct det_datum *node, int *ret)
{
    uint64_t code;

    if (!det_datum_is_scalar(node) || det_parse_u64(det_view_text(node->text), &code) < 0 ||
        code < 1 || code > 255)
        return reader_fail(reader, node, "an exit code must be a whole number from 1 to 255");
    *ret = (int)code;
    return 0;
}

static int take_codes(
    struct cli_reader *reader, const struct det_datum *node, const struct config_key *key,
    void *target)
{
    struct det_process_spec *process = target;
    size_t count = 0;
    int *codes, r = 0;

    if (node->kind != DET_DATUM_LIST)
        return reader_fail(reader, node, "'%s' is a sequence of numbers", key->name);
    codes = det_arena_array(reader->arena, node->count + 1, sizeof *codes);
    if (!codes)
        return reader_no_memory(reader, node);
    for (const struct det_datum *item = node->first; item; item = item->next)
        r = reader_both(r, take_code(reader, item, &codes[count++]));
    if (strcmp(key->name, "fatal_codes") == 0) {
        process->fatal_codes = codes;
        process->fatal_code_count = count;
    } else {
        process->success_codes = codes;
        process->success_code_count = count;
    }
    return r;
}

static const char *const admissions[] = { "queue", "replace", "drop-if-running", "replace-all",
                                          NULL };

static const struct config_key task_keys[KEY_COUNT - CONFIG_POLICY_KEYS] = {
#define AT(key)       [key - CONFIG_POLICY_KEYS]
#define IN_TASK(path) offsetof(struct config_task, path)
    AT(KEY_RUN) = CONFIG_KEY("run", config_take_argv, IN_TASK(process.argv)),
    AT(KEY_FOLDER) = CONFIG_KEY("folder", config_take_text, IN_TASK(process.folder)),
    AT(KEY_ENVIRONMENT) = CONFIG_KEY("environment", config_take_environment, IN_TASK(environment)),
    AT(KEY_USER) = CONFIG_KEY("user", config_take_text, IN_TASK(process.user)),
    AT(KEY_STOP_SIGNAL) = CONFIG_KEY("stop_signal", take_signal, IN_TASK(process.stop_signal)),
    AT(KEY_DEPENDS_ON) = CONFIG_KEY("depends_on", take_dependencies, 0),
    AT(KEY_READY) = CONFIG_KEY("ready", take_ready, 0),
    AT(KEY_HEALTH) = CONFIG_KEY("health", take_health, 0),
    AT(KEY_SCHEDULE) = CONFIG_KEY("schedule", take_schedule, 0),
    AT(KEY_GROUP) = CONFIG_KEY("group", config_take_text, IN_TASK(spec.group)),
    AT(KEY_SLOT) = CONFIG_KEY("slot", config_take_text, IN_TASK(slot)),
    AT(KEY_ADMISSION) = CONFIG_CHOICE("admission", IN_TASK(admission), DET_ADMIT_QUEUE, admissions),
    AT(KEY_SUCCESS_CODES) = CONFIG_KEY("success_codes", take_codes, IN_TASK(process)),
    AT(KEY_FATAL_CODES) = CONFIG_KEY("fatal_codes", take_codes, IN_TASK(process)),
    AT(KEY_OUTPUT_LIMIT) = CONFIG_RANGE(
        "output_limit", config_take_size, IN_TASK(process.bytes_per_second_max), 1024, 1ULL << 30),
    AT(KEY_ENDS_WITH_US) =
        CONFIG_KEY("ends_with_us", config_take_bool, IN_TASK(process.ends_with_us)),
    AT(KEY_ENV_FILE) = CONFIG_KEY("env_file", config_take_paths, IN_TASK(env_files)),
    AT(KEY_LIMITS) = CONFIG_KEY("limits", config_take_limits, IN_TASK(process)),
    AT(KEY_LOG) = CONFIG_KEY("log", config_take_log_file, IN_TASK(log)),
#undef AT
#undef IN_TASK
};

/* Settles the one check for readiness and health. */
static int settle_readiness(
    struct cli_reader *reader, const struct det_datum *const *nodes, struct config_task *task)
{
    struct det_readiness *readiness = &task->spec.readiness;
    bool has_check = readiness->by == DET_READY_BY_CHECK && readiness->check.argv;

    task->process.has_notify = readiness->by == DET_READY_BY_NOTIFY;
    if (has_check && nodes[KEY_HEALTH])
        return reader_fail_key(
            reader, nodes[KEY_HEALTH],
            "a task has one check: keep 'health' and write 'ready: health' for both");
    if (readiness->by == DET_READY_BY_CHECK && !has_check && !nodes[KEY_HEALTH])
        return reader_fail(reader, nodes[KEY_READY], "there is no 'health' to wait for");
    det_assert(!has_check || !nodes[KEY_HEALTH]);
    readiness->check.only_readiness = has_check;
    if (nodes[KEY_HEALTH])
        readiness->check = task->health;
    return 0;
}

static int check_codes(
    struct cli_reader *reader, const struct det_datum *node, const struct det_process_spec *process)
{
    for (size_t i = 0; i < process->fatal_code_count; i++) {
        for (size_t k = 0; k < process->success_code_count; k++) {
            if (process->fatal_codes[i] == process->success_codes[k])
                return reader_fail_key(
                    reader, node, "%d is both in 'success_codes' and in 'fatal_codes'",
                    process->fatal_codes[i]);
        }
    }
    return 0;
}

int config_take_task(
    struct cli_reader *reader, const struct det_datum *node, const struct config *config,
    struct config_task *task)
{
    const struct det_datum *nodes[KEY_COUNT];
    struct config_key keys[KEY_COUNT];
    int r;

    task->node = node;
    task->spec.name = node->key;
    task->spec.process = &task->process;
    task->process.ends_with_us = true;
    config_policy_keys(keys, offsetof(struct config_task, spec.policy));
    memcpy(keys + CONFIG_POLICY_KEYS, task_keys, sizeof task_keys);
    r = config_check_name(reader, node);
    r = reader_both(
        r, config_take_mapping(reader, node, CONFIG_TABLE("a task", keys), task, nodes));
    if (node->kind != DET_DATUM_MAP || r == DET_ERR_NO_MEMORY)
        return r;
    task->run_node = nodes[KEY_RUN];
    task->folder_node = nodes[KEY_FOLDER];
    task->user_node = nodes[KEY_USER];
    task->env_node = nodes[KEY_ENV_FILE];
    task->log_node = nodes[KEY_LOG];
    if (!nodes[KEY_RUN])
        r = reader_fail_key(reader, node, "'%s' needs 'run'", node->key);
    if (nodes[KEY_ADMISSION] && !nodes[KEY_SLOT])
        r = reader_fail_key(reader, nodes[KEY_ADMISSION], "'admission' needs 'slot'");
    if (nodes[KEY_SCHEDULE] && nodes[KEY_SLOT])
        r = reader_fail_key(
            reader, nodes[KEY_SCHEDULE],
            "'schedule' does not go with 'slot': until its next time it would keep others out of "
            "the slot; leave out 'slot', and write run: detent submit %s -- ...",
            task->slot ? task->slot : "SLOT");
    if (nodes[KEY_FATAL_CODES])
        r = reader_both(r, check_codes(reader, nodes[KEY_FATAL_CODES], &task->process));
    /* Consequences of a mistake are not reported. */
    if (r < 0)
        return r;
    det_assert(task->process.argv && task->spec.name == node->key);
    r = settle_readiness(reader, nodes, task);
    return reader_both(
        r, config_check_policy(reader, nodes, &task->spec.policy, &config->defaults));
}
