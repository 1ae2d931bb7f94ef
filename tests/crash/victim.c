/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* victim.c - a process that is killed while it executes a plan on a store in a file, and the one
 * that checks the store afterwards.
 *
 *     crash_victim run FILE SEED STEPS FROM    executes the steps after FROM; before each it
 *                                              writes "b N" and a newline, "a N" once answered
 *     crash_victim check FILE SEED STEPS BEGUN ANSWERED
 *                                              compares the store, and prints "at N", its step
 *
 * A failed commit is reported as "f N", and retried once: the cause decides whether the retry may
 * be acknowledged. Exit code 0: success; 1: a fault, described in words; 3: the store ended the
 * plan with an error. A line is written in one call, so it is complete or missing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "crash/run.h"

static void print(char letter, size_t number)
{
    char line[32];
    int size = snprintf(line, sizeof line, "%c %zu\n", letter, number);

    if (write(STDOUT_FILENO, line, (size_t)size) != size)
        _exit(1);
}

static unsigned version_at(const struct crash_plan *plan, size_t step)
{
    return step ? plan->steps[step - 1].version : 1;
}

static int run_step(struct crash_run *run, const struct crash_plan *plan, size_t number)
{
    const struct crash_step *step = &plan->steps[number - 1];
    int r;

    print('b', number);
    r = crash_run_step(run, step);
    if (r < 0 && step->kind == CRASH_STEP_COMMIT) {
        print('f', number);
        r = crash_run_step(run, step);
    }
    if (r == 0)
        print('a', number);
    return r;
}

static int run_plan(struct crash_run *run, const struct crash_plan *plan, size_t from)
{
    int r;

    r = crash_run_open(run, version_at(plan, from));
    for (size_t i = from + 1; i <= plan->step_count && r == 0; i++)
        r = run_step(run, plan, i);
    if (r < 0)
        fprintf(stderr, "%d: %s\n", r, run->text);
    crash_run_close(run);
    return r < 0 ? 3 : 0;
}

/* New names change nothing in the model except the version that fits. */
static size_t stands_at(
    const struct crash_run *run, const struct crash_plan *plan, size_t begun, size_t answered,
    const struct crash_model *found)
{
    bool is_begun = memcmp(found, &plan->models[begun], sizeof *found) == 0;

    return is_begun && run->version == version_at(plan, begun) ? begun : answered;
}

static int check_store(
    struct crash_run *run, const struct crash_plan *plan, size_t begun, size_t answered)
{
    struct crash_model *found = calloc(1, sizeof *found);
    struct crash_faults faults = { 0 };
    unsigned findings = 0;
    char text[512] = "";
    int r = 1;

    if (!found ||
        crash_run_recover(run, version_at(plan, answered), version_at(plan, begun), found) < 0 ||
        crash_run_check(run, &findings) < 0 || findings)
        printf("the store cannot be read: %s\n", run->text);
    else if (!crash_model_check(
                 found, &plan->models[answered], &plan->models[begun], &faults, text, sizeof text))
        printf("%s: %s\n", faults.lost ? "lost" : faults.doubled ? "doubled" : "differs", text);
    else
        r = 0;
    if (r == 0)
        printf("at %zu\n", stands_at(run, plan, begun, answered, found));
    crash_run_close(run);
    free(found);
    return r;
}

int main(int argc, char **argv)
{
    struct crash_plan_options options = { .reopen_every = 9 };
    struct crash_plan *plan;
    struct crash_run run;
    char url[512];
    size_t first, second;
    int r;

    if (argc < 6 || argc > 7) {
        fprintf(stderr, "see the head of victim.c\n");
        return 2;
    }
    snprintf(url, sizeof url, "sqlite:%s", argv[2]);
    options.seed = strtoull(argv[3], NULL, 10);
    options.steps = strtoull(argv[4], NULL, 10);
    first = strtoull(argv[5], NULL, 10);
    second = argc == 7 ? strtoull(argv[6], NULL, 10) : 0;
    plan = crash_plan_open(&options);
    crash_run_init(&run, url, &(struct det_store_options){ .connections = 1 });
    r = argc == 6 ? run_plan(&run, plan, first) : check_store(&run, plan, first, second);
    crash_run_deinit(&run);
    crash_plan_close(plan);
    return r;
}
