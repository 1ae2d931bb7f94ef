/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* commands.c - the cost of a command of the program with many instances in the SQLite file: get,
 * send, and list --state, each a process that opens the file, with 1,000 to 1,000,000 instances.
 * The time of the process is shown, which other programs on the machine change little. Two kinds of
 * list: of a state with nearly all instances, which ends after 100 of them; and of a state with
 * few, which reads all instances. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "book_file.h"

#define COMMANDS      20
#define WORDS_MAX     6
#define INSTANCES_MIN 1000

struct file {
    uint64_t instances;
    char path[BENCH_PATH_MAX]; /* "": not created yet */
    uint32_t next;             /* the number of the instance that gets the next event */
};

/* Shared by all commands. */
static struct file files[] = { { .instances = 1000 },
                               { .instances = 100000 },
                               { .instances = 1000000 } };

struct setup {
    struct file *file;
    const char *words[WORDS_MAX]; /* "ID" is replaced by that of an instance */
};

static int run_one(struct bench_lap *lap, const struct setup *setup)
{
    struct file *file = setup->file;
    char id[BOOK_ID_MAX], url[BENCH_PATH_MAX + 16];
    const char *words[WORDS_MAX + 4] = { BENCH_PROGRAM };
    size_t count = 1;
    int code = 0, r;

    book_id(file->next++, id);
    (void)snprintf(url, sizeof url, "sqlite:%s", file->path);
    for (size_t i = 0; i < WORDS_MAX && setup->words[i]; i++)
        words[count++] = strcmp(setup->words[i], "ID") == 0 ? id : setup->words[i];
    words[count++] = "--store";
    words[count++] = url;
    r = bench_child_run(words, NULL, &code);
    if (r < 0 || code != 0)
        return bench_lap_fail(
            lap, r < 0 ? r : DET_ERR_IO, "%s: exit code %d", setup->words[0], code);
    return 0;
}

/* Fewer commands use fewer instances. */
static int run_command(struct bench_lap *lap)
{
    const struct setup *setup = lap->argument;
    struct file *file = setup->file;
    uint64_t instances = file->instances * lap->operations / COMMANDS;
    char name[48];
    int r = 0;

    if (!file->path[0]) {
        (void)snprintf(name, sizeof name, "commands-%" PRIu64 ".db", file->instances);
        r = book_file_make(
            lap, name, instances < INSTANCES_MIN ? INSTANCES_MIN : instances, 0, file->path);
    }
    bench_lap_begin(lap);
    for (uint64_t i = 0; i < lap->operations && r == 0; i++)
        r = run_one(lap, setup);
    bench_lap_end(lap);
    return r;
}

#define SETUPS(name, ...)                     \
    static const struct setup name[] = {      \
        { &files[0], { __VA_ARGS__, NULL } }, \
        { &files[1], { __VA_ARGS__, NULL } }, \
        { &files[2], { __VA_ARGS__, NULL } }, \
    }
SETUPS(get, "get", "ID");
SETUPS(send, "send", "ID", "lend");
SETUPS(list, "list", "--state", "open", "--limit", "100");
SETUPS(list_few, "list", "--state", "waiting");

/* Flat; or, if all instances are read, at most this many nanoseconds. */
#define CASES(title, name, goal)                                                    \
    { title ", 1,000 instances",                                                    \
      BENCH_OURS,                                                                   \
      run_command,                                                                  \
      &name[0],                                                                     \
      COMMANDS,                                                                     \
      .clock = BENCH_CHILDREN,                                                      \
      .against = "",                                                                \
      .has_no_allocations = true },                                                 \
        { title ", 100,000 instances",                                              \
          BENCH_OURS,                                                               \
          run_command,                                                              \
          &name[1],                                                                 \
          COMMANDS,                                                                 \
          .clock = BENCH_CHILDREN,                                                  \
          .against = title ", 1,000 instances",                                     \
          .has_no_allocations = true },                                             \
    {                                                                               \
        title ", 1,000,000 instances", BENCH_OURS, run_command, &name[2], COMMANDS, \
            .clock = BENCH_CHILDREN, .against = title ", 1,000 instances",          \
            .has_no_allocations = true, .goals = {                                  \
                goal                                                                \
            }                                                                       \
    }
#define FLAT                       \
    {                              \
        BENCH_RATIO_MAX, 1.5, NULL \
    }
#define ONE_SECOND              \
    {                           \
        BENCH_NS_MAX, 1e9, NULL \
    }

static const struct bench_case cases[] = {
    CASES("get", get, FLAT),
    CASES("send", send, FLAT),
    CASES("list, nearly all", list, FLAT),
    CASES("list, few", list_few, ONE_SECOND),
};

extern const struct bench bench_commands;
const struct bench bench_commands = {
    .title = "commands on a SQLite file with more and more instances",
    .operation = "command",
    .is_slow = true,
    .rounds = 5,
    .has_no_warm_up = true,
    .cases = cases,
    .case_count = sizeof cases / sizeof cases[0],
};
