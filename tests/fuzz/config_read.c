/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* config_read.c - fuzz target: a detent.yaml into tasks. Whatever is read, there are tasks in an
 * order in which each can be added, or problems with places in the text. */
#include <stdlib.h>
#include <string.h>

#include "config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
    if (!fact)
        abort();
}

static bool is_before(const struct config *config, const char *name, size_t end)
{
    for (size_t i = 0; i < end; i++) {
        if (strcmp(config->order[i]->spec.name, name) == 0)
            return true;
    }
    for (size_t i = 0; i < config->group_count; i++) {
        if (strcmp(config->groups[i].spec.name, name) == 0)
            return true;
    }
    return false;
}

static void check_config(const struct config *config)
{
    require(!config->is_bare);
    for (size_t i = 0; i < config->task_count; i++) {
        const struct config_task *task = config->order[i];

        require(task && task->process.argv && task->process.argv[0] && task->process.argv[0][0]);
        require(task->spec.policy.timeout >= 0 && task->spec.policy.grace >= 0);
        for (size_t k = 0; k < task->spec.depends_on_count; k++)
            require(is_before(config, task->spec.depends_on[k].name, i));
    }
    for (size_t i = 0; i < config->group_count; i++)
        require(config->group_order[i] != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct det_yaml_error error;
    struct cli_problems problems;
    struct det_datum *root;
    struct det_arena arena;
    struct config config = { 0 };
    int r;

    det_arena_init(&arena, NULL);
    if (det_yaml_read(&arena, (const char *)data, size, &root, &error) == 0) {
        r = config_read(&arena, root, &config, &problems);
        require((r == 0) == (problems.count == 0));
        for (size_t i = 0; i < problems.count; i++)
            require(problems.items[i].line > 0 && problems.items[i].text[0]);
        if (r == 0)
            check_config(&config);
    }
    det_arena_deinit(&arena);
    return 0;
}
