/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* config_test.h - a detent.yaml in memory: for the tests of its readers. */
#ifndef DET_CONFIG_CONFIG_TEST_H
#define DET_CONFIG_CONFIG_TEST_H

#include "lib/test.h"

#include "config/config.h"

struct project {
    struct det_arena arena;
    struct config config;
    struct cli_problems problems;
};

static inline int open_project_n(
    struct project *project, const struct det_allocator *allocator, const char *text, size_t size)
{
    struct det_datum *root = NULL;
    int r;

    *project = (struct project){ 0 };
    det_arena_init(&project->arena, allocator);
    r = det_yaml_read(&project->arena, text, size, &root, &project->problems.items[0]);
    project->problems.count = r < 0;
    return r < 0 ? r : config_read(&project->arena, root, &project->config, &project->problems);
}

static inline int open_project(
    struct project *project, const struct det_allocator *allocator, const char *text)
{
    return open_project_n(project, allocator, text, strlen(text));
}

static inline void close_project(struct project *project)
{
    det_arena_deinit(&project->arena);
}

/* It is right. */
static inline void open_right(struct project *project, const char *text)
{
    int r = open_project(project, NULL, text);

    for (size_t i = 0; i < project->problems.count; i++)
        print_message(
            "%u:%u: %s\n", project->problems.items[i].line, project->problems.items[i].column,
            project->problems.items[i].text);
    assert_int_equal(r, 0);
}

/* It is wrong, and this is the first problem. */
static inline void expect_wrong(const char *text, unsigned line, unsigned column, const char *part)
{
    struct project project;

    if (open_project(&project, NULL, text) != DET_ERR_MALFORMED)
        fail_msg("it is taken: %s", text);
    assert_true(project.problems.count >= 1);
    if (!strstr(project.problems.items[0].text, part))
        fail_msg("no '%s' in: %s", part, project.problems.items[0].text);
    if (project.problems.items[0].line != line || project.problems.items[0].column != column)
        fail_msg(
            "%u:%u: %s: not at %u:%u", project.problems.items[0].line,
            project.problems.items[0].column, project.problems.items[0].text, line, column);
    close_project(&project);
}

#define HEAD "version: 1\ntasks:\n"

#endif
