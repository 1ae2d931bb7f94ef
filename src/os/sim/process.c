/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* process.c - simulated processes: registered programs, each on a thread of its own.
 *
 * A process ends when its program returns or when it is killed; either way all of its threads end
 * where they stand and its files are closed, as the kernel would do it. A killed program is always
 * at an operation that may switch, because otherwise the killer would not be running. */
#include <string.h>

#include "base/arena.h"
#include "base/assert.h"
#include "base/memory.h"
#include "os/sim/simulation.h"

struct program {
    struct det_list link;
    char *name;
    det_sim_program_fn *run;
};

struct det_process {
    struct det_list link;
    struct det_list waiters;
    struct det_sim *sim;
    struct det_arena memory; /* of the arguments */
    det_sim_program_fn *run;
    int argc;
    const char **argv;
    bool has_ended;
    bool was_waited_for;
    struct det_process_end end;
};

static struct program *find_program(struct det_sim *sim, const char *name)
{
    DET_LIST_EACH(link, &sim->programs)
    {
        struct program *program = DET_CONTAINER(link, struct program, link);

        if (strcmp(program->name, name) == 0)
            return program;
    }
    return NULL;
}

int det_sim_program(struct det_sim *sim, const char *name, det_sim_program_fn *run)
{
    struct program *program;

    if (find_program(sim, name))
        return DET_ERR_EXISTS;
    program = DET_NEW(sim->allocator, struct program);
    if (!program)
        return DET_ERR_NO_MEMORY;
    program->name = det_string_copy(sim->allocator, name);
    if (!program->name) {
        DET_DELETE(sim->allocator, program);
        return DET_ERR_NO_MEMORY;
    }
    program->run = run;
    det_list_append(&sim->programs, &program->link);
    return 0;
}

static int copy_arguments(struct det_process *process, const char *const *argv)
{
    int argc = 0;

    while (argv[argc])
        argc++;
    process->argc = argc;
    process->argv = det_arena_array(&process->memory, (size_t)argc + 1, sizeof(const char *));
    if (!process->argv)
        return DET_ERR_NO_MEMORY;
    for (int i = 0; i < argc; i++) {
        process->argv[i] = det_arena_copy(&process->memory, argv[i]);
        if (!process->argv[i])
            return DET_ERR_NO_MEMORY;
    }
    return 0;
}

static void free_process(struct det_process *process)
{
    det_list_remove(&process->link);
    det_arena_deinit(&process->memory);
    DET_DELETE(process->sim->allocator, process);
}

/* Ends all threads of the process but the running one, and tells who waits. */
static void end_process(struct det_process *process, int code, int signal)
{
    struct det_sim *sim = process->sim;

    process->has_ended = true;
    process->end = (struct det_process_end){ .code = code, .signal = signal };
    det_sim_trace(sim, TRACE_PROCESS, (uint64_t)code, (uint64_t)signal);
    DET_LIST_EACH(link, &sim->threads)
    {
        struct det_thread *thread = DET_CONTAINER(link, struct det_thread, all);

        if (thread->process == process && thread != sim->current)
            det_schedule_drop(sim, thread);
    }
    det_sim_files_close(sim, process);
    det_schedule_wake_all(sim, &process->waiters);
}

static void process_main(void *argument)
{
    struct det_process *process = argument;
    int code = process->run(&process->sim->world, process->argc, process->argv);

    /* As the kernel does it: a parent sees no more than the low eight bits. */
    end_process(process, code & 0xff, 0);
}

int det_sim_process_start(
    struct det_world *world, const struct det_process_options *options, struct det_process **ret)
{
    struct det_sim *sim = det_sim_of(world);
    const struct program *program = find_program(sim, options->argv[0]);
    struct det_process *process;
    struct det_thread *thread;
    int r;

    if (!program)
        return DET_ERR_NOT_FOUND;
    process = DET_NEW(sim->allocator, struct det_process);
    if (!process)
        return DET_ERR_NO_MEMORY;
    process->sim = sim;
    process->run = program->run;
    det_list_init(&process->waiters);
    det_list_append(&sim->processes, &process->link);
    det_arena_init(&process->memory, sim->allocator);
    r = copy_arguments(process, options->argv);
    if (r == 0)
        r = det_schedule_start(sim, process_main, process, process, &thread);
    if (r < 0) {
        free_process(process);
        return r;
    }
    *ret = process;
    det_schedule_preempt(sim);
    return 0;
}

int det_sim_process_kill(struct det_world *world, struct det_process *process, int signal)
{
    struct det_sim *sim = det_sim_of(world);

    det_schedule_preempt(sim);
    if (process->was_waited_for)
        return DET_ERR_NOT_FOUND;
    if (signal == 0 || process->has_ended)
        return 0;
    end_process(process, -1, signal);
    if (sim->current->process == process)
        det_schedule_leave(sim);
    return 0;
}

int det_sim_process_wait(
    struct det_world *world, struct det_process *process, det_time deadline,
    struct det_process_end *ret)
{
    struct det_sim *sim = det_sim_of(world);
    int r;

    det_schedule_preempt(sim);
    while (!process->has_ended) {
        r = det_schedule_wait(sim, &process->waiters, WAIT_PROCESS, deadline);
        if (r < 0)
            return r;
    }
    process->was_waited_for = true;
    *ret = process->end;
    return 0;
}

int det_sim_process_descriptor(struct det_world *world, struct det_process *process)
{
    (void)world;
    (void)process;
    return -1;
}

static void free_threads(struct det_process *process)
{
    struct det_sim *sim = process->sim;
    struct det_list *next;

    for (struct det_list *link = sim->threads.next; link != &sim->threads; link = next) {
        struct det_thread *thread = DET_CONTAINER(link, struct det_thread, all);

        next = link->next;
        if (thread->process == process)
            det_schedule_free(sim, thread);
    }
}

void det_sim_process_close(struct det_world *world, struct det_process *process)
{
    struct det_process_end end;

    if (det_sim_process_wait(world, process, DET_NEVER, &end) < 0)
        return; /* The simulation has failed; closing it frees the process. */
    free_threads(process);
    free_process(process);
}

void det_sim_programs_free(struct det_sim *sim)
{
    struct det_list *link;

    while (!det_list_is_empty(&sim->processes))
        free_process(DET_CONTAINER(sim->processes.next, struct det_process, link));
    while ((link = det_list_take(&sim->programs))) {
        struct program *program = DET_CONTAINER(link, struct program, link);

        det_free_string(sim->allocator, program->name);
        DET_DELETE(sim->allocator, program);
    }
}
