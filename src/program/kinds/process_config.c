/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* process_config.c - checks the config of a program that is kept running. Pure. */
#include <signal.h>
#include <string.h>

#include "base/text.h"
#include "kinds/process.h"

#define GRACE_MS     4000
#define STEADY_MS    10000
#define DELAY_MS     1000
#define DELAY_MAX_MS 60000
#define HOUR_MS      3600000

int process_signal(const char *name)
{
    static const int numbers[] = { SIGTERM, SIGINT,   SIGQUIT, SIGHUP, SIGUSR1,
                                   SIGUSR2, SIGWINCH, SIGABRT, SIGKILL };

    if (strncmp(name, "SIG", 3) == 0)
        name += 3;
    /* detent: allow action-cancel because these are a few words in memory */
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strcmp(sigabbrev_np(numbers[i]), name) == 0)
            return numbers[i];
    return 0;
}

static int check_environment(struct det_derive *derive, const struct process_desired *config)
{
    static const char name[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";

    for (uint32_t i = 0; i < config->environment_count; i++) {
        const char *item = config->environment[i];
        size_t size = strspn(item, name);

        /* The value is not shown: it may be a secret. */
        if (!size || item[size] != '=' || (*item >= '0' && *item <= '9'))
            return derive->refuse(
                derive,
                "environment[%u] is not NAME=value: a name has letters, digits and '_', such as "
                "PORT=8080",
                i);
    }
    return 0;
}

static int check_paths(struct det_derive *derive, const struct process_desired *config)
{
    if (!config->argv_count || !*config->argv[0])
        return derive->refuse(
            derive,
            "argv is missing: add the program and its arguments, such as argv: [/bin/sleep, "
            "\"60\"]");
    if (*config->folder && *config->folder != '/')
        return derive->refuse(
            derive, "folder '%s' is relative: write an absolute path, from / on", config->folder);
    for (uint32_t i = 0; i < config->reload_files_count; i++)
        if (*config->reload_files[i] != '/')
            return derive->refuse(
                derive, "reload_files[%u] '%s' is relative: write an absolute path, from / on", i,
                config->reload_files[i]);
    return 0;
}

static int check_signal(struct det_derive *derive, const char *field, const char *name)
{
    if (process_signal(name))
        return 0;
    return derive->refuse(
        derive, "%s '%s' is unknown: use TERM, INT, QUIT, HUP, USR1, USR2, WINCH, ABRT or KILL",
        field, name);
}

static int check_times(struct det_derive *derive, const struct process_desired *config)
{
    if (config->grace_ms > HOUR_MS || config->steady_ms > HOUR_MS || config->delay_max_ms > HOUR_MS)
        return derive->refuse(
            derive, "grace_ms, steady_ms and delay_max_ms are at most %u: one hour", HOUR_MS);
    if (config->delay_ms > config->delay_max_ms)
        return derive->refuse(
            derive, "delay_ms %u is more than delay_max_ms %u: make the second one larger",
            config->delay_ms, config->delay_max_ms);
    return 0;
}

int process_settle(
    struct det_derive *derive, const struct process_desired *config,
    struct process_desired *desired)
{
    int r;

    *desired = *config;
    if (!*desired->stop_signal)
        (void)det_text_copy(desired->stop_signal, sizeof desired->stop_signal, "TERM");
    desired->grace_ms = desired->grace_ms ? desired->grace_ms : GRACE_MS;
    desired->steady_ms = desired->steady_ms ? desired->steady_ms : STEADY_MS;
    desired->delay_ms = desired->delay_ms ? desired->delay_ms : DELAY_MS;
    desired->delay_max_ms = desired->delay_max_ms ? desired->delay_max_ms : DELAY_MAX_MS;
    r = check_paths(derive, desired);
    if (r == 0)
        r = check_environment(derive, desired);
    if (r == 0)
        r = check_signal(derive, "stop_signal", desired->stop_signal);
    if (r == 0 && *desired->reload_signal)
        r = check_signal(derive, "reload_signal", desired->reload_signal);
    return r < 0 ? r : check_times(derive, desired);
}
