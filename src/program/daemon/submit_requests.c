/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* submit_requests.c - the verb submit: a job for a slot. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/text.h"
#include "daemon/verbs.h"

/* Names that are tried for "did you mean". */
#define NEAR_MAX 512
/* Bytes of a program that its jobs are named after. */
#define PROGRAM_MAX 64

/* A job while it is read; its texts are the request's or the arena's. */
struct job {
    struct up *up;
    struct det_arena arena;
    struct det_task_spec spec;
    struct det_process_spec process;
    enum det_admission admission;
    const char *slot;
};

static int no_memory(struct det_error *reterr)
{
    return det_error_set(reterr, DET_ERR_NO_MEMORY, "there is no memory left");
}

static int read_program(
    struct job *job, const struct socket_request *request, struct det_error *reterr)
{
    json_t *run = up_argument(request, "run");
    size_t count = json_array_size(run);
    const char **argv;

    if (count == 0)
        return det_error_set(reterr, DET_ERR_INVALID, "'submit' needs 'run', the program");
    argv = det_arena_array(&job->arena, count + 1, sizeof *argv);
    if (!argv)
        return no_memory(reterr);
    for (size_t i = 0; i < count; i++)
        argv[i] = json_string_value(json_array_get(run, i));
    if (*argv[0] == '\0')
        return det_error_set(reterr, DET_ERR_INVALID, "the program in 'run' has no name");
    job->process.argv = argv;
    return 0;
}

/* Whether the mapping has the variable of "NAME=value". */
static bool has_variable(json_t *mapping, const char *variable)
{
    size_t size = strcspn(variable, "=");
    const char *key;
    json_t *value;

    json_object_foreach(mapping, key, value)
    {
        if (strlen(key) == size && memcmp(key, variable, size) == 0)
            return true;
    }
    return false;
}

static const char *join_variable(struct det_arena *arena, const char *name, const char *value)
{
    size_t size = strlen(name) + strlen(value) + 2;
    char *text = det_arena_array(arena, size, 1);

    if (text)
        snprintf(text, size, "%s=%s", name, value);
    return text;
}

static int read_environment(
    struct job *job, const struct socket_request *request, struct det_error *reterr)
{
    json_t *mapping = up_argument(request, "environment"), *value;
    size_t count = 0, own_count = 0;
    const char **all, *key;

    if (!mapping)
        return 0;
    while (environ[own_count])
        own_count++;
    all = det_arena_array(&job->arena, own_count + json_object_size(mapping) + 1, sizeof *all);
    if (!all)
        return no_memory(reterr);
    for (char **own = environ; *own; own++) {
        if (!has_variable(mapping, *own))
            all[count++] = *own;
    }
    json_object_foreach(mapping, key, value)
    {
        all[count] = join_variable(&job->arena, key, json_string_value(value));
        if (!all[count++])
            return no_memory(reterr);
    }
    job->process.environment = all;
    return 0;
}

static int read_folder(
    struct job *job, const struct socket_request *request, struct det_error *reterr)
{
    const char *folder = up_argument_text(request, "folder");
    const char *project = job->up->project;
    size_t size = strlen(project) + strlen(folder ? folder : "") + 2;
    char *path = det_arena_array(&job->arena, size, 1);

    if (!path)
        return no_memory(reterr);
    if (folder && *folder == '/')
        snprintf(path, size, "%s", folder);
    else
        snprintf(path, size, "%s%s%s", project, folder ? "/" : "", folder ? folder : "");
    job->process.folder = path;
    return 0;
}

/* "sleep" of "/bin/sleep"; what no name can have becomes '_'. */
static void name_program(const struct job *job, char target[PROGRAM_MAX + 1])
{
    const char *program = strrchr(job->process.argv[0], '/');
    size_t size = 0;

    program = program ? program + 1 : job->process.argv[0];
    program += strspn(program, "._-");
    for (; *program && size < PROGRAM_MAX; program++)
        target[size++] =
            isalnum((unsigned char)*program) || strchr("._-", *program) ? *program : '_';
    target[size] = '\0';
    if (!config_is_name(target))
        snprintf(target, PROGRAM_MAX + 1, "job");
}

/* "import-20260131T100000Z-7413a9c2-1". A store takes a name once, so no two submissions may share
 * one, also of several processes and before and after a restart: the number is drawn by chance for
 * this process, and the last one counts in it (read_name() has counted this job). */
static void name_durable(const struct job *job, char id[DET_ID_MAX + 1])
{
    det_time now = det_world_now(job->up->cli->world, DET_CLOCK_WALL);
    char program[PROGRAM_MAX + 1], time[DET_TIME_TEXT];

    while (!job->up->job_tag)
        job->up->job_tag = (uint32_t)det_world_random_u64(job->up->cli->world);
    name_program(job, program);
    snprintf(
        id, DET_ID_MAX + 1, "%s-%s-%08x-%llu", program,
        det_format_time_basic(now - now % DET_SECOND, time, sizeof time),
        (unsigned)job->up->job_tag, (unsigned long long)job->up->job_count);
}

/* "sleep-1" of "/bin/sleep". */
static int read_name(
    struct job *job, const struct socket_request *request, struct det_error *reterr)
{
    char *name = det_arena_array(&job->arena, DET_TASK_NAME_MAX + 1, 1);
    char program[PROGRAM_MAX + 1];

    job->spec.name = up_argument_text(request, "name");
    if (job->spec.name && !config_is_name(job->spec.name))
        return det_error_set(reterr, DET_ERR_INVALID, "'%.100s' " CONFIG_NAME_RULE, job->spec.name);
    if (job->spec.name)
        return 0;
    if (!name)
        return no_memory(reterr);
    name_program(job, program);
    do {
        snprintf(
            name, DET_TASK_NAME_MAX + 1, "%s-%llu", program,
            (unsigned long long)++job->up->job_count);
    } while (det_tasks_find(job->up->tasks, name) != 0);
    job->spec.name = name;
    return 0;
}

static int read_admission(
    struct job *job, const struct socket_request *request, struct det_error *reterr)
{
    static const char *const words[] = {
        [DET_ADMIT_QUEUE] = "queue",
        [DET_ADMIT_REPLACE] = "replace",
        [DET_ADMIT_DROP_IF_RUNNING] = "drop",
        [DET_ADMIT_REPLACE_ALL] = "replace-all",
    };
    const char *word = up_argument_text(request, "admission");

    if (!word)
        return 0;
    if (!up_argument_text(request, "slot") && strcmp(word, words[DET_ADMIT_QUEUE]) != 0)
        return det_error_set(reterr, DET_ERR_INVALID, "'admission' needs 'slot'");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(words[i], word) == 0) {
            job->admission = (enum det_admission)i;
            return 0;
        }
    }
    return det_error_set(
        reterr, DET_ERR_INVALID,
        "'admission' is one of queue, replace, drop, replace-all; not '%.100s'", word);
}

static int read_policy(
    struct job *job, const struct socket_request *request, struct det_error *reterr)
{
    uint64_t retries = up_argument_count(request, "retries", 0);
    uint64_t timeout = up_argument_count(request, "timeout_ns", 0);

    if (retries >= DET_RETRIES_UNLIMITED)
        return det_error_set(reterr, DET_ERR_INVALID, "'retries' is too large");
    job->spec.policy.restart = retries ? DET_RESTART_ON_FAILURE : DET_RESTART_NEVER;
    job->spec.policy.retries_max = (uint32_t)retries;
    job->spec.policy.timeout = timeout ? (det_time)timeout : DET_NO_TIMEOUT;
    return 0;
}

/* A slot that nobody knows is more often a slip than a wish. */
static int read_slot(
    struct job *job, const struct socket_request *request, struct det_error *reterr)
{
    const struct config *config = &job->up->file.config;
    const char *near[NEAR_MAX];
    size_t count = 0;
    int nearest, r;

    job->slot = up_argument_text(request, "slot");
    if (!job->slot || up_argument_is_set(request, "new_slot"))
        return 0;
    r = up_is_slot(job->up, job->slot);
    if (r != 0)
        return r < 0 ? det_error_set(reterr, r, "there is no memory left") : 0;
    for (size_t i = 0; i < config->slot_count && count < NEAR_MAX; i++)
        near[count++] = config->slots[i].name;
    nearest = det_text_nearest(job->slot, near, count);
    return det_error_set(
        reterr, DET_ERR_NOT_FOUND, "there is no slot '%.100s'%s%s%s --new-slot makes it.",
        job->slot, nearest >= 0 ? "; did you mean '" : "", nearest >= 0 ? near[nearest] : "",
        nearest >= 0 ? "'?" : ".");
}

static int read_job(struct job *job, const struct socket_request *request, struct det_error *reterr)
{
    static int (*const readers[])(
        struct job * job, const struct socket_request *request, struct det_error *reterr) = {
        read_program, read_environment, read_folder, read_name,
        read_slot,    read_admission,   read_policy,
    };
    int r = 0;

    for (size_t i = 0; i < sizeof readers / sizeof *readers && r == 0; i++)
        r = readers[i](job, request, reterr);
    job->spec.process = &job->process;
    job->process.ends_with_us = true;
    return r;
}

static json_t *submitted(const struct job *job, const struct det_admitted *admitted)
{
    return json_pack(
        "{s:s, s:I, s:s, s:b, s:I}", "kind", "submitted", "id", (json_int_t)admitted->id, "name",
        job->spec.name, "started", admitted->is_started, "depth", (json_int_t)admitted->depth);
}

/* What was asked for and is not for a durable slot, and why not. NULL: nothing. */
static const char *not_durable(const struct job *job)
{
    if (job->admission != DET_ADMIT_QUEUE)
        return "--replace, --replace-all and --drop are not for it: it only queues";
    if (job->process.environment)
        return "an environment is not for it: its jobs have that of the detent up that runs them";
    return NULL;
}

/* A job with a name is submitted once, however often; one without gets a name that is
 * made from its program, or has its idempotency key as that. */
static void submit_durable(
    struct job *job, const struct socket_request *request, struct socket_call *call)
{
    const char *name = up_argument_text(request, "name"), *why = not_durable(job);
    const char *key = up_argument_text(request, "key");
    char id[DET_ID_MAX + 1];

    if (!name && !key)
        name_durable(job, id);
    if (key && name && strcmp(key, name) != 0)
        why = "the name of a job is its key; leave one of the two out";
    if (why) {
        socket_call_fail(call, DET_ERR_INVALID, "slot '%.100s' is durable: %s", job->slot, why);
        return;
    }
    if (!name)
        name = key;
    up_jobs_submit(
        job->up, call, job->slot, name ? name : id, up_argument_is_set(request, "wait"),
        up_durable_body(
            json_incref(up_argument(request, "run")), job->process.folder,
            job->spec.policy.retries_max, (det_time)up_argument_count(request, "timeout_ns", 0)));
}

static void submit(struct job *job, struct socket_call *call, bool shall_wait)
{
    struct det_admitted admitted = { 0 };
    struct det_error error = { 0 };
    struct up_wait *wait = NULL;
    int r;

    if (shall_wait) {
        wait = up_wait_open(job->up, call, UP_WAIT_JOB, NULL, NULL);
        if (!wait)
            return;
    }
    job->up->submitting = job->spec.name;
    r = det_slot_submit(
        job->up->tasks,
        &(struct det_submission){
            .slot = job->slot, .admission = job->admission, .task = &job->spec },
        NULL, &admitted, &error);
    job->up->submitting = NULL;
    if (r < 0) {
        if (wait)
            up_wait_cancel(wait);
        socket_call_fail(call, r, "%s", error.text);
        return;
    }
    if (!wait) {
        socket_call_answer(call, submitted(job, &admitted));
        return;
    }
    (void)socket_call_send(call, submitted(job, &admitted));
    up_wait_arm_job(wait, admitted.id);
}

void up_run_submit(void *context, const struct socket_request *request, struct socket_call *call)
{
    static const struct up_argument table[] = {
        { "slot", UP_TEXT },        { "admission", UP_TEXT }, { "name", UP_TEXT },
        { "run", UP_TEXTS },        { "folder", UP_TEXT },    { "environment", UP_MAPPING },
        { "timeout_ns", UP_COUNT }, { "retries", UP_COUNT },  { "wait", UP_BOOLEAN },
        { "new_slot", UP_BOOLEAN }, { "key", UP_TEXT },       { NULL, UP_TEXT },
    };
    struct job job = { .up = context };
    struct det_error error = { 0 };
    int r;

    if (!up_arguments_check(request, call, table))
        return;
    if (job.up->state != UP_RUNNING) {
        socket_call_fail(call, DET_ERR_CLOSED, "detent is stopping and admits nothing more");
        return;
    }
    det_arena_init(&job.arena, job.up->cli->allocator);
    r = read_job(&job, request, &error);
    if (r < 0)
        socket_call_fail(call, r, "%s", error.text);
    else if (up_durable_find(job.up, job.slot))
        submit_durable(&job, request, call);
    else if (up_argument_text(request, "key"))
        socket_call_fail(
            call, DET_ERR_REFUSED, "slot '%.100s' is not durable, and keeps no key", job.slot);
    else
        submit(&job, call, up_argument_is_set(request, "wait"));
    det_arena_deinit(&job.arena);
}
