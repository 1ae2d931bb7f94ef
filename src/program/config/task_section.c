/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* task_section.c - one task of detent.yaml. */
#include <ctype.h>
#include <signal.h>
#include <string.h>

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
                reader, item, "'%s' is no name of a variable: letters, digits and '_'", item->key);
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
    task->spec.depends_on = items;
    task->spec.depends_on_count = count;
    return r;
}

/* Adds the keys of a check to a table that begins with others. */
static size_t check_keys(struct config_key *keys)
{
    static const struct config_key table[] = {
        { .name = "check", .take = config_take_argv, .offset = offsetof(struct det_check, argv) },
        { .name = "every",
          .take = config_take_span,
          .offset = offsetof(struct det_check, every),
          .least = (uint64_t)DET_MILLISECOND },
        { .name = "timeout",
          .take = config_take_span,
          .offset = offsetof(struct det_check, timeout),
          .least = (uint64_t)DET_MILLISECOND },
        { .name = "fails",
          .take = config_take_number,
          .offset = offsetof(struct det_check, fails_max),
          .least = 1,
          .most = 1000000 },
    };

    memcpy(keys, table, sizeof table);
    return sizeof table / sizeof *table;
}

static int take_health(
    struct cli_reader *reader, const struct det_datum *node, const struct config_key *key,
    void *target)
{
    struct config_task *task = target;
    const struct det_datum *nodes[CONFIG_KEYS_MAX];
    struct config_key keys[CONFIG_KEYS_MAX];
    struct config_table table = { "'health'", keys, check_keys(keys) };
    int r;

    (void)key;
    r = config_take_mapping(reader, node, &table, &task->health, nodes);
    if (node->kind == DET_DATUM_MAP && !nodes[0])
        r = reader_both(r, reader_fail(reader, node, "'health' needs 'check'"));
    task->check_node = nodes[0];
    return r;
}

static const char *const ready_words[] = { "started", "notify", "health", NULL };

/* Of `ready: {...}`; `when` is an index of ready_words, 0 where it is not said. */
struct ready {
    struct det_check check;
    det_time within;
    int when;
};

static int take_ready_mapping(
    struct cli_reader *reader, const struct det_datum *node, struct config_task *task)
{
    const struct det_datum *nodes[CONFIG_KEYS_MAX];
    struct config_key keys[CONFIG_KEYS_MAX];
    size_t count = check_keys(keys);
    struct ready ready = { .when = 0 };
    int r;

    keys[count++] = (struct config_key){ .name = "within",
                                         .take = config_take_span,
                                         .offset = offsetof(struct ready, within),
                                         .least = (uint64_t)DET_MILLISECOND,
                                         .word = "forever",
                                         .value = DET_NEVER };
    keys[count++] = (struct config_key){ .name = "when",
                                         .take = config_take_choice,
                                         .offset = offsetof(struct ready, when),
                                         .value = 1,
                                         .words = ready_words + 1 };
    r = config_take_mapping(
        reader, node, &(struct config_table){ "'ready'", keys, count }, &ready, nodes);
    for (size_t i = 0; r == 0 && nodes[count - 1] && i < count - 2; i++) {
        if (nodes[i])
            r = reader_fail_key(reader, nodes[i], "'%s' does not go with 'when'", nodes[i]->key);
    }
    if (r == 0 && !nodes[count - 1] && !nodes[0])
        r = reader_fail(reader, node, "'ready' needs 'check' or 'when'");
    task->spec.readiness = (struct det_readiness){
        .by = ready.when == 1 ? DET_READY_BY_NOTIFY : DET_READY_BY_CHECK,
        .within = ready.within,
        .check = ready.check,
    };
    task->check_node = nodes[0] ? nodes[0] : task->check_node;
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
    task->spec.readiness.by = bys[index];
    return r;
}

void config_schedule_keys(struct config_key *keys, size_t offset)
{
    static const char *const misses[] = { "skip", "once", "all", NULL };

    keys[CONFIG_SCHEDULE_EVERY] =
        (struct config_key){ .name = "every",
                             .take = config_take_span,
                             .offset = offset + offsetof(struct det_schedule, every),
                             .least = (uint64_t)DET_DELAY_FLOOR };
    keys[CONFIG_SCHEDULE_CRON] =
        (struct config_key){ .name = "cron",
                             .take = config_take_text,
                             .offset = offset + offsetof(struct det_schedule, cron) };
    keys[CONFIG_SCHEDULE_MISSED] =
        (struct config_key){ .name = "missed",
                             .take = config_take_choice,
                             .offset = offset + offsetof(struct det_schedule, missed),
                             .value = DET_MISSED_SKIP,
                             .words = misses };
    keys[CONFIG_SCHEDULE_ZONE] =
        (struct config_key){ .name = "timezone",
                             .take = config_take_zone,
                             .offset = offset + offsetof(struct det_schedule, zone) };
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
    keys[CONFIG_SCHEDULE_KEYS] = (struct config_key){
        .name = "spread", .take = config_take_span, .offset = offsetof(struct det_schedule, spread)
    };
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
        return reader_fail(reader, node, "an exit code is a whole number from 1 to 255");
    *ret = (int)code;
    return 0;
}

static int take_codes(
    struct cli_reader *reader, const struct det_datum *node, const struct config_key *key,
    const int **ret, size_t *ret_count)
{
    int *codes, r = 0;

    if (node->kind != DET_DATUM_LIST)
        return reader_fail(reader, node, "'%s' is a sequence of numbers", key->name);
    codes = det_arena_array(reader->arena, node->count + 1, sizeof *codes);
    if (!codes)
        return reader_no_memory(reader, node);
    *ret = codes;
    for (const struct det_datum *item = node->first; item; item = item->next)
        r = reader_both(r, take_code(reader, item, &codes[(*ret_count)++]));
    return r;
}

static int take_success_codes(
    struct cli_reader *reader, const struct det_datum *node, const struct config_key *key,
    void *target)
{
    struct det_process_spec *process = target;

    return take_codes(reader, node, key, &process->success_codes, &process->success_code_count);
}

static int take_fatal_codes(
    struct cli_reader *reader, const struct det_datum *node, const struct config_key *key,
    void *target)
{
    struct det_process_spec *process = target;

    return take_codes(reader, node, key, &process->fatal_codes, &process->fatal_code_count);
}

static const char *const admissions[] = { "queue", "replace", "drop-if-running", "replace-all",
                                          NULL };

static const struct config_key task_keys[KEY_COUNT - CONFIG_POLICY_KEYS] = {
#define AT(key)       [key - CONFIG_POLICY_KEYS]
#define IN_TASK(path) offsetof(struct config_task, path)
    AT(KEY_RUN) = { "run", config_take_argv, IN_TASK(process.argv), 0, 0, NULL, 0, NULL },
    AT(KEY_FOLDER) = { "folder", config_take_text, IN_TASK(process.folder), 0, 0, NULL, 0, NULL },
    AT(KEY_ENVIRONMENT) = { "environment", config_take_environment, IN_TASK(environment), 0, 0,
                            NULL, 0, NULL },
    AT(KEY_USER) = { "user", config_take_text, IN_TASK(process.user), 0, 0, NULL, 0, NULL },
    AT(KEY_STOP_SIGNAL) = { "stop_signal", take_signal, IN_TASK(process.stop_signal), 0, 0, NULL, 0,
                            NULL },
    AT(KEY_DEPENDS_ON) = { "depends_on", take_dependencies, 0, 0, 0, NULL, 0, NULL },
    AT(KEY_READY) = { "ready", take_ready, 0, 0, 0, NULL, 0, NULL },
    AT(KEY_HEALTH) = { "health", take_health, 0, 0, 0, NULL, 0, NULL },
    AT(KEY_SCHEDULE) = { "schedule", take_schedule, 0, 0, 0, NULL, 0, NULL },
    AT(KEY_GROUP) = { "group", config_take_text, IN_TASK(spec.group), 0, 0, NULL, 0, NULL },
    AT(KEY_SLOT) = { "slot", config_take_text, IN_TASK(slot), 0, 0, NULL, 0, NULL },
    AT(KEY_ADMISSION) = { "admission", config_take_choice, IN_TASK(admission), 0, 0, NULL,
                          DET_ADMIT_QUEUE, admissions },
    AT(KEY_SUCCESS_CODES) = { "success_codes", take_success_codes, IN_TASK(process), 0, 0, NULL, 0,
                              NULL },
    AT(KEY_FATAL_CODES) = { "fatal_codes", take_fatal_codes, IN_TASK(process), 0, 0, NULL, 0,
                            NULL },
    AT(KEY_OUTPUT_LIMIT) = { "output_limit", config_take_size,
                             IN_TASK(process.bytes_per_second_max), 1024, 1ULL << 30, NULL, 0,
                             NULL },
    AT(KEY_ENDS_WITH_US) = { "ends_with_us", config_take_bool, IN_TASK(process.ends_with_us), 0, 0,
                             NULL, 0, NULL },
    AT(KEY_ENV_FILE) = { "env_file", config_take_paths, IN_TASK(env_files), 0, 0, NULL, 0, NULL },
    AT(KEY_LIMITS) = { "limits", config_take_limits, IN_TASK(process), 0, 0, NULL, 0, NULL },
    AT(KEY_LOG) = { "log", config_take_log_file, IN_TASK(log), 0, 0, NULL, 0, NULL },
#undef AT
#undef IN_TASK
};

/* One check serves both, and says for how long. */
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
    /* What follows from a mistake is not told. */
    if (r < 0)
        return r;
    r = settle_readiness(reader, nodes, task);
    return reader_both(
        r, config_check_policy(reader, nodes, &task->spec.policy, &config->defaults));
}
