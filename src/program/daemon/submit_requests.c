/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* submit_requests.c - submits a job to a slot, and waits for its end. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/text.h"
#include "daemon/slots_internal.h"
#include "daemon/tasks.h"

/* Names compared for "did you mean". */
#define NEAR_MAX 512
/* Bytes of the program in the name of a job. */
#define PROGRAM_MAX 64

/* A submission that becomes a task; texts belong to the submission or to the arena. */
struct job {
    struct up *up;
    struct up_submission *submission;
    struct det_arena arena;
    struct det_task_spec spec;
    struct det_process_spec process;
};

static int no_memory(struct det_error *reterr)
{
    return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory");
}

static int read_program(struct job *job, struct det_error *reterr)
{
    const char *const *argv = job->submission->argv;

    if (!argv || !argv[0])
        return det_error_set(reterr, DET_ERR_INVALID, "a submission needs 'run', the program");
    if (*argv[0] == '\0')
        return det_error_set(reterr, DET_ERR_INVALID, "the program in 'run' has no name");
    job->process.argv = argv;
    return 0;
}

/* True if the submission sets the variable of "NAME=value". */
static bool has_variable(const struct up_submission *submission, const char *variable)
{
    struct det_view name = det_view_of(variable, strcspn(variable, "="));

    for (size_t i = 0; i < submission->environment_count; i++) {
        if (det_view_is(name, submission->environment[i].name))
            return true;
    }
    return false;
}

static int read_environment(struct job *job, struct det_error *reterr)
{
    const struct up_submission *submission = job->submission;
    size_t count = 0, own_count = 0;
    const char **all;

    if (!submission->environment)
        return 0;
    while (environ[own_count])
        own_count++;
    all = det_arena_array(&job->arena, own_count + submission->environment_count + 1, sizeof *all);
    if (!all)
        return no_memory(reterr);
    for (char **own = environ; *own; own++) {
        if (!has_variable(submission, *own))
            all[count++] = *own;
    }
    for (size_t i = 0; i < submission->environment_count; i++) {
        const struct up_variable *variable = &submission->environment[i];

        all[count] = det_arena_format(&job->arena, "%s=%s", variable->name, variable->value);
        if (!all[count++])
            return no_memory(reterr);
    }
    all[count] = NULL;
    job->process.environment = all;
    return 0;
}

static int read_folder(struct job *job, struct det_error *reterr)
{
    const char *folder = job->submission->folder, *project = up_folder(job->up);

    if (!folder)
        job->process.folder = project;
    else if (*folder == '/')
        job->process.folder = folder;
    else
        job->process.folder = det_arena_format(&job->arena, "%s/%s", project, folder);
    return job->process.folder ? 0 : no_memory(reterr);
}

/* "sleep" of "/bin/sleep"; characters that a name cannot have become '_'. */
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

/* "import-20260131T100000Z-7413a9c2-1". A store accepts a name once, so names must be unique across
 * processes and restarts: one number is random for this process, the last one counts its jobs
 * (read_name() has counted this one). */
static void name_durable(const struct job *job, char id[DET_ID_MAX + 1])
{
    struct det_world *world = up_cli(job->up)->world;
    struct up_slots *slots = up_slots(job->up);
    det_time now = det_world_now(world, DET_CLOCK_WALL);
    char program[PROGRAM_MAX + 1], time[DET_TIME_TEXT];

    while (!slots->job_tag)
        slots->job_tag = (uint32_t)det_world_random_u64(world);
    name_program(job, program);
    snprintf(
        id, DET_ID_MAX + 1, "%s-%s-%08x-%llu", program,
        det_format_time_basic(now - now % DET_SECOND, time, sizeof time), (unsigned)slots->job_tag,
        (unsigned long long)slots->job_count);
}

/* "sleep-1" of "/bin/sleep". */
static int read_name(struct job *job, struct det_error *reterr)
{
    struct up_slots *slots = up_slots(job->up);
    const char *given = job->submission->name;
    char program[PROGRAM_MAX + 1], *name;

    if (given && !config_is_name(given))
        return det_error_set(reterr, DET_ERR_INVALID, "'%.100s' " CONFIG_NAME_RULE, given);
    job->spec.name = given;
    if (given)
        return 0;
    name = det_arena_array(&job->arena, DET_TASK_NAME_MAX + 1, 1);
    if (!name)
        return no_memory(reterr);
    name_program(job, program);
    do {
        snprintf(
            name, DET_TASK_NAME_MAX + 1, "%s-%llu", program,
            (unsigned long long)++slots->job_count);
    } while (det_tasks_find(up_tasks_supervisor(job->up), name) != 0);
    job->spec.name = name;
    return 0;
}

static int read_policy(struct job *job, struct det_error *reterr)
{
    const struct up_submission *submission = job->submission;

    if (submission->retries >= DET_RETRIES_UNLIMITED)
        return det_error_set(reterr, DET_ERR_INVALID, "'retries' is too large");
    job->spec.policy.restart = submission->retries ? DET_RESTART_ON_FAILURE : DET_RESTART_NEVER;
    job->spec.policy.retries_max = (uint32_t)submission->retries;
    job->spec.policy.timeout = submission->timeout ? submission->timeout : DET_NO_TIMEOUT;
    return 0;
}

/* An unknown slot is more often a typing error than a new slot. */
static int read_slot(struct job *job, struct det_error *reterr)
{
    const struct config *config = up_config(job->up);
    const char *slot = job->submission->slot, *near[NEAR_MAX];
    size_t count = 0;
    int nearest, r;

    if (!slot || job->submission->creates_slot)
        return 0;
    r = up_slot_exists(job->up, slot);
    if (r != 0)
        return r < 0 ? det_error_set(reterr, r, "out of memory") : 0;
    for (size_t i = 0; i < config->slot_count && count < NEAR_MAX; i++)
        near[count++] = config->slots[i].name;
    nearest = det_text_nearest(slot, near, count);
    return det_error_set(
        reterr, DET_ERR_NOT_FOUND, "there is no slot '%.100s'%s%s%s --new-slot creates it.", slot,
        nearest >= 0 ? "; did you mean '" : "", nearest >= 0 ? near[nearest] : "",
        nearest >= 0 ? "'?" : ".");
}

static int read_job(struct job *job, struct det_error *reterr)
{
    static int (*const readers[])(struct job * job, struct det_error * reterr) = {
        read_program, read_environment, read_folder, read_name, read_slot, read_policy,
    };
    int r = 0;

    for (size_t i = 0; i < sizeof readers / sizeof *readers && r == 0; i++)
        r = readers[i](job, reterr);
    job->spec.process = &job->process;
    job->process.ends_with_us = true;
    return r;
}

/* For a durable slot. */

/* The member of the submission that a durable slot does not support; NULL: none. */
static const char *not_durable(const struct job *job)
{
    const struct up_submission *submission = job->submission;
    const char *folder = job->process.folder;

    if (submission->key && submission->name && strcmp(submission->key, submission->name) != 0)
        return "the name of a job is its idempotency key; give only one of the two";
    if (submission->admission != DET_ADMIT_QUEUE)
        return "it does not support --replace, --replace-all and --drop: it only queues";
    if (job->process.environment)
        return "it does not support an environment: its jobs have that of the detent up that "
               "runs them";
    if (det_utf8_check(folder, strlen(folder)) != strlen(folder))
        return "the path of the folder is not UTF-8, and cannot be stored";
    return NULL;
}

/* A job with a name is submitted once, even if the request is repeated. Without a name, its name is
 * the idempotency key, or made from its program. */
static void submit_durable(struct job *job, struct up_request *request)
{
    struct up_submission *submission = job->submission;
    const char *id = submission->name ? submission->name : submission->key;
    const char *why = not_durable(job);
    char made[DET_ID_MAX + 1];
    struct det_json_writer body;

    if (why) {
        up_request_fail(
            request, DET_ERR_INVALID, "slot '%.100s' is durable: %s", submission->slot, why);
        return;
    }
    if (!id)
        name_durable(job, made);
    det_json_writer_init(&body, up_allocator(job->up));
    up_write_durable_body(
        &body, &(struct up_durable_body){ .argv = job->process.argv,
                                          .folder = job->process.folder,
                                          .retries = job->spec.policy.retries_max,
                                          .timeout = submission->timeout });
    if (det_buffer_status(&body.text) < 0)
        up_request_fail_memory(request);
    else
        up_submit_durable(
            job->up, request, submission, id ? id : made, det_buffer_text(&body.text));
    det_json_writer_deinit(&body);
}

/* For any other slot. */

int up_slot_submit(
    struct up *up, const struct det_submission *submission, struct det_admitted *ret,
    struct det_error *reterr)
{
    struct up_slots *slots = up_slots(up);
    int r;

    slots->submitting = submission->task->name;
    r = det_slot_submit(up_tasks_supervisor(up), submission, NULL, ret, reterr);
    slots->submitting = NULL;
    return r;
}

const char *up_slots_submitting(const struct up *up)
{
    return up_slots(up) ? up_slots(up)->submitting : NULL;
}

static void write_submitted(
    struct det_json_writer *json, const struct job *job, const struct det_admitted *admitted)
{
    det_json_open(json, NULL, '{');
    det_json_text(json, "kind", "submitted");
    det_json_number(json, "id", admitted->id);
    det_json_text(json, "name", job->spec.name);
    det_json_bool(json, "started", admitted->is_started);
    det_json_number(json, "depth", admitted->depth);
    det_json_close(json, '}');
}

static void submit_task(struct job *job, struct up_request *request)
{
    const struct up_submission *submission = job->submission;
    struct det_admitted admitted = { 0 };
    struct det_error error = { 0 };
    struct up_wait *wait = NULL;
    int r;

    if (submission->wait_wanted) {
        wait = up_wait_open(job->up, request, UP_WAIT_JOB, NULL, NULL);
        if (!wait)
            return;
    }
    r = up_slot_submit(
        job->up,
        &(struct det_submission){
            .slot = submission->slot, .admission = submission->admission, .task = &job->spec },
        &admitted, &error);
    if (r < 0) {
        if (wait)
            up_wait_cancel(wait);
        up_request_fail(request, r, "%s", error.text);
        return;
    }
    write_submitted(request->json, job, &admitted);
    if (!wait) {
        up_request_end(request);
        return;
    }
    up_request_part(request);
    up_wait_arm_job(wait, admitted.id);
}

void up_submit(struct up *up, struct up_request *request, struct up_submission *submission)
{
    struct job job = { .up = up, .submission = submission };
    struct det_error error = { 0 };
    int r;

    if (!up_is_running(up) || !up_slots(up)) {
        up_request_fail(request, DET_ERR_CLOSED, "detent is stopping and admits no more jobs");
        return;
    }
    det_arena_init(&job.arena, up_allocator(up));
    r = read_job(&job, &error);
    if (r < 0)
        up_request_fail(request, r, "%s", error.text);
    else if (up_durable_find(up, submission->slot))
        submit_durable(&job, request);
    else if (submission->key)
        up_request_fail(
            request, DET_ERR_REFUSED, "slot '%.100s' is not durable, so it cannot keep a key",
            submission->slot ? submission->slot : job.spec.name);
    else
        submit_task(&job, request);
    det_arena_deinit(&job.arena);
}
