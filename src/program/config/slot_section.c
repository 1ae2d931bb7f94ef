/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* slot_section.c - the slots of detent.yaml, and the schedules that submit to durable ones. */
#include <string.h>

#include "base/assert.h"
#include "config/config_internal.h"

#define COUNT_MAX 1000000
/* The limit of det_durable_open(), which uses a thread for each. */
#define DURABLE_WIDTH_MAX 256

enum { SLOT_WIDTH, SLOT_DEPTH, SLOT_DURABLE, SLOT_SCHEDULES };

/* Keys of a schedule of a slot; those of every schedule come first. */
enum {
    KEY_RUN = CONFIG_SCHEDULE_KEYS,
    KEY_FOLDER,
    KEY_RETRIES,
    KEY_TIMEOUT,
    KEY_COUNT,
};

#define IN_JOB(member) offsetof(struct config_job, member)
static const struct config_key job_keys[] = {
    CONFIG_KEY("run", config_take_argv, IN_JOB(argv)),
    CONFIG_KEY("folder", config_take_text, IN_JOB(folder)),
    CONFIG_RANGE("retries", config_take_number, IN_JOB(retries), 1, COUNT_MAX),
    CONFIG_RANGE("timeout", config_take_span, IN_JOB(timeout), DET_MILLISECOND, 0),
};

static int take_job(
    struct cli_reader *reader, const struct det_datum *node, const char *slot,
    struct config_job *job)
{
    const struct det_datum *nodes[KEY_COUNT];
    struct config_key keys[KEY_COUNT];
    int r = config_check_name(reader, node);

    config_schedule_keys(keys, IN_JOB(schedule));
    memcpy(&keys[KEY_RUN], job_keys, sizeof job_keys);
    job->node = node;
    r = reader_both(
        r, config_take_mapping(reader, node, CONFIG_TABLE("a schedule", keys), job, nodes));
    if (node->kind != DET_DATUM_MAP || r == DET_ERR_NO_MEMORY)
        return r;
    job->run_node = nodes[KEY_RUN];
    job->folder_node = nodes[KEY_FOLDER];
    job->cron_node = nodes[CONFIG_SCHEDULE_CRON];
    if (!nodes[KEY_RUN])
        r = reader_fail_key(reader, node, "'%s' needs 'run'", node->key);
    if (r == 0)
        r = config_check_schedule(reader, node, nodes);
    if (strlen(slot) + strlen(node->key) >= CONFIG_JOB_NAME_MAX)
        r = reader_fail_key(
            reader, node, "the names of a slot and of its schedule have %d letters at most",
            CONFIG_JOB_NAME_MAX - 1);
    job->name = det_arena_format(reader->arena, "%s.%s", slot, node->key);
    return job->name ? r : reader_no_memory(reader, node);
}

/* Into a struct config_slot. */
static int take_jobs(
    struct cli_reader *reader, const struct det_datum *node, const struct config_key *key,
    void *target)
{
    struct config_slot *slot = target;
    int r;

    (void)key;
    slot->jobs = reader_array(reader, node, "'schedules'", sizeof *slot->jobs, &r);
    READER_EACH (item, node, reader, r)
        r = reader_both(r, take_job(reader, item, slot->name, &slot->jobs[slot->job_count++]));
    det_assert(slot->job_count <= node->count);
    return r;
}

int config_take_slot(
    struct cli_reader *reader, const struct det_datum *node, struct config_slot *slot)
{
    static const char *const words[] = { "no", "yes", NULL };
    static const struct config_key keys[] = {
        [SLOT_WIDTH] = CONFIG_RANGE(
            "width", config_take_number, offsetof(struct config_slot, options.width), 1, COUNT_MAX),
        [SLOT_DEPTH] = CONFIG_RANGE(
            "depth", config_take_number, offsetof(struct config_slot, options.depth_max), 0,
            COUNT_MAX),
        [SLOT_DURABLE] =
            CONFIG_CHOICE("durable", offsetof(struct config_slot, is_durable), 0, words),
        [SLOT_SCHEDULES] = CONFIG_KEY("schedules", take_jobs, 0),
    };
    const struct det_datum *nodes[sizeof keys / sizeof *keys];
    int r = config_check_name(reader, node);

    slot->name = node->key;
    slot->node = node;
    r = reader_both(
        r, config_take_mapping(reader, node, CONFIG_TABLE("a slot", keys), slot, nodes));
    /* In the task layer 0 means unspecified. */
    if (nodes[SLOT_DEPTH] && slot->options.depth_max == 0)
        slot->options.depth_max = UINT32_MAX;
    if (slot->is_durable && slot->options.width > DURABLE_WIDTH_MAX)
        r = reader_both(
            r,
            reader_fail(
                reader, nodes[SLOT_WIDTH], "a durable slot is at most %d wide", DURABLE_WIDTH_MAX));
    if (nodes[SLOT_SCHEDULES] && !slot->is_durable && r == 0)
        r = reader_fail_key(
            reader, nodes[SLOT_SCHEDULES],
            "'schedules' needs 'durable: yes': their times are kept in the store");
    det_assert(r < 0 || !slot->job_count || slot->is_durable);
    return r;
}

bool config_has_durable(const struct config *config)
{
    for (size_t i = 0; i < config->slot_count; i++) {
        if (config->slots[i].is_durable)
            return true;
    }
    return false;
}

static const struct config_slot *find_slot(const struct config *config, const char *name)
{
    for (size_t i = 0; name && i < config->slot_count; i++) {
        if (strcmp(config->slots[i].name, name) == 0)
            return &config->slots[i];
    }
    return NULL;
}

int config_check_durable(struct cli_reader *reader, const struct config *config, bool has_store)
{
    int r = 0;

    for (size_t i = 0; i < config->slot_count; i++) {
        if (config->slots[i].is_durable && !has_store)
            r = reader_both(
                r, reader_fail_key(
                       reader, config->slots[i].node,
                       "a durable slot needs a 'store', such as store: sqlite:detent.db"));
    }
    for (size_t i = 0; i < config->task_count; i++) {
        const struct config_slot *slot = find_slot(config, config->tasks[i].slot);

        if (slot && slot->is_durable)
            r = reader_both(
                r, reader_fail_key(
                       reader, config->tasks[i].node,
                       "'%s' is a durable slot: it is for detent submit and for its own "
                       "'schedules', not for tasks of the file",
                       slot->name));
    }
    return r;
}
