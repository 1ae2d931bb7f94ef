/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* conform.c - runs the suite over one kind of store: conform_test [--real] SCHEME [GROUP...].
 * --real selects the real world with real threads, also for drivers that support the simulation. */
#include "conform/conform.h"

static const struct group *const groups[] = {
    &commit_cases,        &timer_cases, &effect_cases,     &answer_cases,    &due_cases,
    &lease_cases,         &job_cases,   &job_change_cases, &job_batch_cases, &lock_cases,
    &snapshot_cases,      &start_cases, &atomic_cases,     &keep_cases,      &damage_cases,
    &list_cases,          &model_cases, &serve_cases,      &shared_cases,    &thread_cases,
    &walk_cases,          &log_cases,   &count_cases,      &trace_cases,     &document_cases,
    &document_look_cases,
};

static const struct driver *const drivers[] = { &driver_memory, &driver_shared, &driver_sqlite,
                                                &driver_postgres, &driver_pooled };

static const struct driver *driver_find(const char *scheme)
{
    for (size_t i = 0; i < sizeof drivers / sizeof drivers[0]; i++) {
        if (strcmp(drivers[i]->scheme, scheme) == 0)
            return drivers[i];
    }
    return NULL;
}

static int run(const struct group *group)
{
    char name[80];

    snprintf(name, sizeof name, "%s over %s", group->name, box_driver->scheme);
    return _cmocka_run_group_tests(name, group->tests, group->count, NULL, NULL);
}

/* All groups are run if none is named. */
static bool is_wanted(const struct group *group, char *const *names)
{
    bool is_named = !*names;

    for (; *names && !is_named; names++)
        is_named = strcmp(*names, group->name) == 0;
    return is_named;
}

int main(int argc, char **argv)
{
    bool is_real = argc > 1 && strcmp(argv[1], "--real") == 0;
    const char *scheme = argv[is_real + 1];
    struct driver chosen;
    int failed = 0;

    box_driver = scheme ? driver_find(scheme) : NULL;
    if (!box_driver) {
        fprintf(stderr, "conform_test [--real] SCHEME [GROUP...]: which kind of store?\n");
        return 2;
    }
    chosen = *box_driver;
    chosen.is_simulated = chosen.is_simulated && !is_real;
    box_driver = &chosen;
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        if (is_wanted(groups[i], argv + is_real + 2))
            failed += run(groups[i]);
    }
    return failed ? 1 : 0;
}
