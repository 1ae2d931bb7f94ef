/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* process.c - simulated processes: registered programs, each on its own thread.
 *
 * A process ends when its program returns or when it is killed; either way all of its threads end
 * where they are and its files are closed, as the kernel does. A killed program is always at an
 * operation that may switch, because otherwise its killer would not be running.
 *
 * Its descriptors are four consecutive numbers, far from any that the kernel assigns: the end,
 * output, error, messages. They and the number of a process are never reused. */
#include <detent/driver/sim.h>
#include <signal.h>
#include <string.h>

#include "base/arena.h"
#include "base/assert.h"
#include "base/memory.h"
#include "os/sim/simulation.h"
#include "os/sim/stream.h"

#define NUMBER_FIRST     1000
#define DESCRIPTOR_FIRST (1 << 30)
#define DESCRIPTORS      4
#define SIGNAL_MAX       63

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
    int index; /* number of processes started before it */
    struct det_sim_stream streams[DET_PROCESS_STREAMS];
    struct det_list signal_waiters; /* its own threads */
    uint64_t caught;                /* signals that do not end it */
    uint64_t pending;               /* caught signals that have arrived */
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
    det_sim_pollers_forget(process->sim, process);
    det_list_remove(&process->link);
    for (int i = 0; i < DET_PROCESS_STREAMS; i++)
        det_sim_stream_deinit(&process->streams[i]);
    det_arena_deinit(&process->memory);
    DET_DELETE(process->sim->allocator, process);
}

/* Ends all threads of the process except the running one, and wakes its waiters. */
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
    det_sim_pollers_notify(sim);
}

static void process_main(void *argument)
{
    struct det_process *process = argument;
    int code = process->run(&process->sim->world, process->argc, process->argv);

    /* Like the kernel: a parent sees only the low eight bits. */
    end_process(process, code & 0xff, 0);
}

static void init_process(
    struct det_process *process, struct det_sim *sim, const struct det_process_options *options)
{
    process->sim = sim;
    process->index = sim->processes_started++;
    det_list_init(&process->waiters);
    det_list_init(&process->signal_waiters);
    det_list_append(&sim->processes, &process->link);
    det_arena_init(&process->memory, sim->allocator);
    for (int i = 0; i < DET_PROCESS_STREAMS; i++)
        det_sim_stream_init(
            &process->streams[i], sim->allocator,
            i == DET_PROCESS_NOTIFY ? options->has_notify : options->has_streams);
}

int det_sim_process_start(
    struct det_world *world, const struct det_process_options *options, struct det_process **ret,
    struct det_error *reterr)
{
    struct det_sim *sim = det_sim_of(world);
    const struct program *program = find_program(sim, options->argv[0]);
    struct det_process *process;
    struct det_thread *thread;
    int r;

    if (!program)
        return det_error_set(
            reterr, DET_ERR_NOT_FOUND,
            "cannot start \"%.64s\": the simulation has no such program; register it with "
            "det_sim_program()",
            options->argv[0]);
    process = DET_NEW(sim->allocator, struct det_process);
    if (!process)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory for a simulated process");
    init_process(process, sim, options);
    process->run = program->run;
    r = copy_arguments(process, options->argv);
    if (r == 0)
        r = det_schedule_start(sim, process_main, process, process, &thread);
    if (r < 0) {
        free_process(process);
        return det_error_set(reterr, r, "out of memory for a simulated process");
    }
    *ret = process;
    det_schedule_preempt(sim);
    return 0;
}

static uint64_t bit_of(int signal)
{
    det_assert(signal > 0 && signal <= SIGNAL_MAX);
    return UINT64_C(1) << signal;
}

/* Default actions: ignored; or stop and continue, which is not simulated. */
static bool is_harmless(int signal)
{
    static const int harmless[] = { SIGCHLD, SIGCONT, SIGURG,  SIGWINCH,
                                    SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU };

    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
        if (harmless[i] == signal)
            return true;
    return false;
}

int det_sim_process_kill(struct det_world *world, struct det_process *process, int signal)
{
    struct det_sim *sim = det_sim_of(world);

    det_schedule_preempt(sim);
    if (process->was_waited_for)
        return DET_ERR_NOT_FOUND;
    if (signal < 0 || signal > SIGNAL_MAX)
        return DET_ERR_INVALID;
    if (signal == 0 || process->has_ended)
        return 0;
    if (process->caught & bit_of(signal)) {
        det_sim_trace(sim, TRACE_PROCESS, (uint64_t)process->index, (uint64_t)signal);
        process->pending |= bit_of(signal);
        det_schedule_wake_all(sim, &process->signal_waiters);
        return 0;
    }
    if (is_harmless(signal))
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

int64_t det_sim_process_number(struct det_world *world, struct det_process *process)
{
    (void)world;
    return NUMBER_FIRST + process->index;
}

int det_sim_process_descriptor(struct det_world *world, struct det_process *process)
{
    (void)world;
    return DESCRIPTOR_FIRST + DESCRIPTORS * process->index;
}

int det_sim_process_stream(
    struct det_world *world, struct det_process *process, enum det_process_stream stream)
{
    if (!process->streams[stream].is_open)
        return -1;
    return det_sim_process_descriptor(world, process) + 1 + (int)stream;
}

struct det_process *det_sim_process_of(struct det_sim *sim, int descriptor)
{
    int index = (descriptor - DESCRIPTOR_FIRST) / DESCRIPTORS;

    if (descriptor < DESCRIPTOR_FIRST)
        return NULL;
    DET_LIST_EACH(link, &sim->processes)
    {
        struct det_process *process = DET_CONTAINER(link, struct det_process, link);

        if (process->index == index)
            return process;
    }
    return NULL;
}

bool det_sim_process_is_readable(const struct det_process *process, int descriptor)
{
    int which = (descriptor - DESCRIPTOR_FIRST) % DESCRIPTORS;

    /* The end of a process is also the end of its pipes; a message socket has no end. */
    if (process->has_ended && which != 1 + DET_PROCESS_NOTIFY)
        return true;
    return which > 0 && det_sim_stream_size(&process->streams[which - 1]) > 0;
}

int64_t det_sim_process_read(
    struct det_world *world, struct det_process *process, enum det_process_stream stream,
    void *target, size_t size)
{
    struct det_sim *sim = det_sim_of(world);
    struct det_sim_stream *source = &process->streams[stream];
    size_t count;

    det_assert(source->is_open && size > 0);
    det_schedule_preempt(sim);
    if (stream == DET_PROCESS_NOTIFY) {
        count = det_sim_stream_receive(sim, source, target, size);
        return count ? (int64_t)count : DET_ERR_BUSY;
    }
    count = det_sim_stream_read(sim, source, target, size);
    return count || process->has_ended ? (int64_t)count : DET_ERR_BUSY;
}

/* Returns the process whose program calls. */
static struct det_process *self_of(struct det_world *world)
{
    struct det_process *process = det_sim_of(world)->current->process;

    det_assert(process);
    return process;
}

void det_sim_catch(struct det_world *world, int signal)
{
    det_assert(signal != SIGKILL && signal != SIGSTOP);
    self_of(world)->caught |= bit_of(signal);
}

int det_sim_caught(struct det_world *world)
{
    struct det_process *process = self_of(world);
    int signal = 1;

    det_schedule_preempt(process->sim);
    if (!process->pending)
        return 0;
    while (!(process->pending & bit_of(signal)))
        signal++;
    process->pending &= ~bit_of(signal);
    return signal;
}

int det_sim_wait_caught(struct det_world *world, det_time deadline)
{
    struct det_process *process = self_of(world);
    int r;

    while (!process->pending) {
        r = det_schedule_wait(process->sim, &process->signal_waiters, WAIT_PROCESS, deadline);
        if (r < 0)
            return r;
    }
    return det_sim_caught(world);
}

int det_sim_print(struct det_world *world, int descriptor, const char *text)
{
    struct det_process *process = self_of(world);
    enum det_process_stream stream = descriptor == 1 ? DET_PROCESS_OUTPUT : DET_PROCESS_ERROR;

    det_assert(descriptor == 1 || descriptor == 2);
    det_schedule_preempt(process->sim);
    return det_sim_stream_write(process->sim, &process->streams[stream], text, strlen(text));
}

int det_sim_notify(struct det_world *world, const char *message)
{
    struct det_process *process = self_of(world);

    det_schedule_preempt(process->sim);
    return det_sim_stream_send(
        process->sim, &process->streams[DET_PROCESS_NOTIFY], message, strlen(message));
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
