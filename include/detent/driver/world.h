/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* driver/world.h - what a world must be able to do. For those who write another one; everybody
 * else includes world.h.
 *
 * Rules for all operations: every open has its close; objects belong to the world that opened them;
 * a failed open leaves nothing behind; deadlines are absolute on DET_CLOCK_MONOTONIC, DET_NEVER
 * waits for ever. Blocking operations are: thread_join, mutex_lock, condition_wait, poller_wait,
 * process_wait, process_close. A simulated world switches to another thread in these, and may do so
 * in every other operation but now, random, thread_self and the opens and closes. */
#ifndef DETENT_DRIVER_WORLD_H
#define DETENT_DRIVER_WORLD_H

#include <detent/world.h>

DET_BEGIN

struct det_thread;
struct det_mutex;
struct det_condition;
struct det_poller;
struct det_file;
struct det_process;

typedef void det_thread_fn(void *argument);

/* How a file is opened; combine with |. Files are opened close-on-exec, created with mode 0600. */
enum det_file_flags {
    DET_FILE_READ = 1,
    DET_FILE_WRITE = 2,
    DET_FILE_CREATE = 4,    /* create it when it is not there */
    DET_FILE_EXCLUSIVE = 8, /* with CREATE: DET_ERR_EXISTS when it is there */
    DET_FILE_NO_LINK = 16,  /* DET_ERR_IO when it is a symbolic link */
};

enum det_poll_events {
    DET_POLL_READ = 1,
    DET_POLL_WRITE = 2,
    DET_POLL_HANGUP = 4, /* always reported, never asked for */
};

struct det_poll_event {
    void *tag;
    unsigned events; /* enum det_poll_events */
};

/* How to start a process. Its standard streams are the given descriptors, or /dev/null where -1. */
struct det_process_options {
    const char *const *argv;        /* NULL-terminated; argv[0] is sought in PATH if it has no / */
    const char *const *environment; /* NULL-terminated "NAME=value"; NULL: the caller's own */
    const char *folder;             /* working directory; NULL: the caller's own */
    const char *user;               /* by name; NULL: the caller's own */
    const struct det_process_limit *limits; /* may be NULL */
    size_t limit_count;
    int input, output, error; /* descriptors, borrowed; -1: /dev/null */
    bool new_group;           /* leads a group of its own, and a kill reaches all of it; what
                                       is left of the group when it ends is killed */
    bool has_streams;         /* output and error are for process_read(), not the above */
    bool has_notify;          /* has NOTIFY_SOCKET; what it sends is for process_read() */
    bool ends_with_us;        /* killed when our process is gone, by whatever; what it has
                                       started itself, too, in the world of a guard (guard.h) */
};

/* What process_read() reads. */
enum det_process_stream {
    DET_PROCESS_OUTPUT,
    DET_PROCESS_ERROR,
    DET_PROCESS_NOTIFY, /* one message a read; one that does not fit is not delivered */
};
#define DET_PROCESS_STREAMS 3

/* The signals that the library sends by itself. */
enum det_process_signal {
    DET_PROCESS_SIGKILL = 9,
    DET_PROCESS_SIGTERM = 15,
    DET_PROCESS_SIGCONT = 18,
};

struct det_process_end {
    int code;   /* exit code, or -1 when a signal ended it */
    int signal; /* the signal, or 0 */
};

/* Changes when the table below does; asserted where a loop or a store is opened. */
#define DET_WORLD_VERSION 1

struct det_world_ops {
    unsigned version; /* DET_WORLD_VERSION */
    const char *name; /* "real", "sim" */
    det_time (*now)(struct det_world *world, enum det_clock clock);
    void (*random)(struct det_world *world, void *target, size_t size);

    int (*thread_start)(
        struct det_world *world, const char *name, det_thread_fn *run, void *argument,
        struct det_thread **ret);
    /* Waits for its end and frees it. */
    void (*thread_join)(struct det_world *world, struct det_thread *thread);
    /* Tells the calling thread from every other one that lives; good for nothing but comparing. */
    const void *(*thread_self)(struct det_world *world);
    /* A place where another thread may get ahead of this one, between two steps on shared atomics
     * that a simulation could not tell apart otherwise. NULL where threads run by themselves. */
    void (*preempt)(struct det_world *world);

    int (*mutex_open)(struct det_world *world, struct det_mutex **ret);
    void (*mutex_close)(struct det_world *world, struct det_mutex *mutex);
    void (*mutex_lock)(struct det_world *world, struct det_mutex *mutex);
    void (*mutex_unlock)(struct det_world *world, struct det_mutex *mutex);

    int (*condition_open)(struct det_world *world, struct det_condition **ret);
    void (*condition_close)(struct det_world *world, struct det_condition *condition);
    /* 0 when woken (perhaps for nothing), DET_ERR_TIMEOUT at the deadline, DET_ERR_DEADLOCK in a
     * simulated world where nothing could ever wake it. */
    int (*condition_wait)(
        struct det_world *world, struct det_condition *condition, struct det_mutex *mutex,
        det_time deadline);
    void (*condition_signal)(struct det_world *world, struct det_condition *condition);
    void (*condition_broadcast)(struct det_world *world, struct det_condition *condition);

    int (*poller_open)(struct det_world *world, struct det_poller **ret);
    void (*poller_close)(struct det_world *world, struct det_poller *poller);
    /* Watches a descriptor, or changes what is watched; events 0 stops it. */
    int (*poller_watch)(
        struct det_world *world, struct det_poller *poller, int descriptor, unsigned events,
        void *tag);
    /* Waits until something is ready, poller_wake() was called, the wall clock was set (or the
     * machine woke from sleep), or the deadline; returns how many events it wrote, or a negative
     * error (DET_ERR_DEADLOCK as above). */
    int (*poller_wait)(
        struct det_world *world, struct det_poller *poller, struct det_poll_event *events,
        int capacity, det_time deadline);
    /* From any thread: the current or next wait returns. Several wakes may count as one. */
    void (*poller_wake)(struct det_world *world, struct det_poller *poller);
    /* A descriptor that is readable when poller_wait() would return at once, for foreign loops;
     * -1 in a simulated world. */
    int (*poller_descriptor)(struct det_world *world, struct det_poller *poller);

    int (*file_open)(
        struct det_world *world, const char *path, unsigned flags, struct det_file **ret);
    void (*file_close)(struct det_world *world, struct det_file *file);
    /* As many bytes as there are up to `size`; fewer only at the end of the file. */
    int64_t (*file_read)(
        struct det_world *world, struct det_file *file, uint64_t offset, void *target, size_t size);
    /* All of it, or an error after which any part of it may have been written. */
    int (*file_write)(
        struct det_world *world, struct det_file *file, uint64_t offset, const void *data,
        size_t size);
    /* Data and size are on the disk when this returns 0. After an error they may never get there:
     * a second call proves nothing. */
    int (*file_sync)(struct det_world *world, struct det_file *file);
    int (*file_truncate)(struct det_world *world, struct det_file *file, uint64_t size);
    int64_t (*file_size)(struct det_world *world, struct det_file *file);
    int (*file_rename)(struct det_world *world, const char *from, const char *to);
    int (*file_remove)(struct det_world *world, const char *path);
    /* Makes the entries of a folder durable: after create, rename, remove. */
    int (*folder_sync)(struct det_world *world, const char *path);
    int (*folder_make)(struct det_world *world, const char *path);
    /* Until it is closed, no other opening of the file, in this process or another one, can lock
     * it: DET_ERR_BUSY. Does not wait. */
    int (*file_lock)(struct det_world *world, struct det_file *file);
    /* What memory holds of the file and need not be written is read from the disk again. A hint. */
    void (*file_forget)(struct det_world *world, struct det_file *file);
    /* Gives it the owner and the mode of what is at the path, of a folder only the owner, as far as
     * this process may: a file that stands beside another one is for the same people. Open it with
     * NO_LINK or EXCLUSIVE: else whoever may write to its folder chooses what is given away. */
    void (*file_share)(struct det_world *world, struct det_file *file, const char *path);
    /* Whether what is at this path, or would be, is known to be on another machine. */
    bool (*path_is_remote)(struct det_world *world, const char *path);
    /* The number of this process. */
    int64_t (*self_number)(struct det_world *world);

    int (*process_start)(
        struct det_world *world, const struct det_process_options *options,
        struct det_process **ret, struct det_error *reterr);
    /* DET_ERR_NOT_FOUND once its end was waited for. Signal 0 only asks. */
    int (*process_kill)(struct det_world *world, struct det_process *process, int signal);
    /* 0 and the end (again and again, once it is known), or DET_ERR_TIMEOUT; another error: it has
     * ended, but nobody knows how. If it leads a group, what is left of that is killed first, while
     * the number of the group cannot be anybody else's. */
    int (*process_wait)(
        struct det_world *world, struct det_process *process, det_time deadline,
        struct det_process_end *ret);
    int64_t (*process_number)(struct det_world *world, struct det_process *process);
    /* A descriptor that becomes readable when it ends (pidfd). In a simulated world, as below, a
     * number that only its pollers know. */
    int (*process_descriptor)(struct det_world *world, struct det_process *process);
    /* A descriptor that is readable when process_read() has something to say; -1: not asked for. */
    int (*process_stream)(
        struct det_world *world, struct det_process *process, enum det_process_stream stream);
    /* Does not wait: how many bytes it read, 0 at the end of the stream, DET_ERR_BUSY when there is
     * nothing now. */
    int64_t (*process_read)(
        struct det_world *world, struct det_process *process, enum det_process_stream stream,
        void *target, size_t size);
    /* Only after its end was waited for, or after a kill: waits and reaps if need be. */
    void (*process_close)(struct det_world *world, struct det_process *process);
};

struct det_world {
    const struct det_world_ops *ops;
};

DET_END
#endif
