/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* driver/world.h - operations of a world, for authors of another one; others include world.h.
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

/* Flags for opening a file; combine with |. Files are opened close-on-exec and created with mode
 * 0600. */
enum det_file_flags {
    DET_FILE_READ = 1,
    DET_FILE_WRITE = 2,
    DET_FILE_CREATE = 4,    /* create the file if it does not exist */
    DET_FILE_EXCLUSIVE = 8, /* with CREATE: DET_ERR_EXISTS if the file exists */
    DET_FILE_NO_LINK = 16,  /* DET_ERR_IO if the path is a symbolic link */
};

enum det_poll_events {
    DET_POLL_READ = 1,
    DET_POLL_WRITE = 2,
    DET_POLL_HANGUP = 4, /* always reported, never requested */
};

struct det_poll_event {
    void *tag;
    unsigned events; /* enum det_poll_events */
};

/* How to start a process. Its standard streams are the given descriptors; -1: /dev/null. */
struct det_process_options {
    const char *const *argv;        /* NULL-terminated; argv[0] is searched in PATH if it has no
                                     * / */
    const char *const *environment; /* NULL-terminated "NAME=value"; NULL: the caller's own */
    const char *folder;             /* working directory; NULL: the caller's own */
    const char *user;               /* by name; NULL: the caller's own */
    const struct det_process_limit *limits; /* may be NULL */
    size_t limit_count;
    int input, output, error; /* descriptors, borrowed; -1: /dev/null */
    bool new_group;           /* make the process the leader of a new group: kills reach the whole
                               * group, and the rest of the group is killed when the process ends */
    bool has_streams;         /* connect output and error to process_read() instead of the
                               * descriptors above */
    bool has_notify;          /* set NOTIFY_SOCKET; process_read() receives the messages */
    bool ends_with_us;        /* kill the process when ours ends for any reason; in the world of a
                               * guard (process_guard.h) also kill its descendants */
};

/* Streams of process_read(). */
enum det_process_stream {
    DET_PROCESS_OUTPUT,
    DET_PROCESS_ERROR,
    DET_PROCESS_NOTIFY, /* one message per read; a message that does not fit is dropped */
};
#define DET_PROCESS_STREAMS 3

/* Signals that the library itself sends. */
enum det_process_signal {
    DET_PROCESS_SIGKILL = 9,
    DET_PROCESS_SIGTERM = 15,
    DET_PROCESS_SIGCONT = 18,
};

struct det_process_end {
    int code;   /* exit code, or -1 when a signal ended it */
    int signal; /* the signal, or 0 */
};

/* Changes with the table below; asserted when a loop or a store is opened. */
#define DET_WORLD_VERSION 1

struct det_world_ops {
    unsigned version; /* DET_WORLD_VERSION */
    const char *name; /* "real", "sim" */
    det_time (*now)(struct det_world *world, enum det_clock clock);
    void (*random)(struct det_world *world, void *target, size_t size);

    int (*thread_start)(
        struct det_world *world, const char *name, det_thread_fn *run, void *argument,
        struct det_thread **ret);
    /* Waits for the end of the thread and frees it. */
    void (*thread_join)(struct det_world *world, struct det_thread *thread);
    /* Identifies the calling thread among all live threads; only for comparison. */
    const void *(*thread_self)(struct det_world *world);
    /* A possible thread switch between two steps on shared atomics, which a simulation cannot see
     * otherwise. NULL if threads run by themselves. */
    void (*preempt)(struct det_world *world);

    int (*mutex_open)(struct det_world *world, struct det_mutex **ret);
    void (*mutex_close)(struct det_world *world, struct det_mutex *mutex);
    void (*mutex_lock)(struct det_world *world, struct det_mutex *mutex);
    void (*mutex_unlock)(struct det_world *world, struct det_mutex *mutex);

    int (*condition_open)(struct det_world *world, struct det_condition **ret);
    void (*condition_close)(struct det_world *world, struct det_condition *condition);
    /* 0: woken, perhaps spuriously; DET_ERR_TIMEOUT at the deadline; DET_ERR_DEADLOCK in a
     * simulated world if no thread can wake it. */
    int (*condition_wait)(
        struct det_world *world, struct det_condition *condition, struct det_mutex *mutex,
        det_time deadline);
    void (*condition_signal)(struct det_world *world, struct det_condition *condition);
    void (*condition_broadcast)(struct det_world *world, struct det_condition *condition);

    int (*poller_open)(struct det_world *world, struct det_poller **ret);
    void (*poller_close)(struct det_world *world, struct det_poller *poller);
    /* Watches a descriptor, or changes the watched events; events 0 ends watching. */
    int (*poller_watch)(
        struct det_world *world, struct det_poller *poller, int descriptor, unsigned events,
        void *tag);
    /* Waits until a descriptor is ready, poller_wake() is called, the wall clock is set (or the
     * machine wakes from sleep), or the deadline. Returns the number of events written, or a
     * negative error (DET_ERR_DEADLOCK as above). */
    int (*poller_wait)(
        struct det_world *world, struct det_poller *poller, struct det_poll_event *events,
        int capacity, det_time deadline);
    /* Any thread: ends the current or next wait. Several wakes may count as one. */
    void (*poller_wake)(struct det_world *world, struct det_poller *poller);
    /* A descriptor that is readable when poller_wait() would return at once, for foreign loops;
     * -1 in a simulated world. */
    int (*poller_descriptor)(struct det_world *world, struct det_poller *poller);

    int (*file_open)(
        struct det_world *world, const char *path, unsigned flags, struct det_file **ret);
    void (*file_close)(struct det_world *world, struct det_file *file);
    /* Reads up to `size` bytes; fewer only at the end of the file. */
    int64_t (*file_read)(
        struct det_world *world, struct det_file *file, uint64_t offset, void *target, size_t size);
    /* Writes all bytes, or returns an error after which any part may have been written. */
    int (*file_write)(
        struct det_world *world, struct det_file *file, uint64_t offset, const void *data,
        size_t size);
    /* Data and size are on the disk when this returns 0. After an error the data may never reach
     * the disk; a later success proves nothing. */
    int (*file_sync)(struct det_world *world, struct det_file *file);
    int (*file_truncate)(struct det_world *world, struct det_file *file, uint64_t size);
    int64_t (*file_size)(struct det_world *world, struct det_file *file);
    int (*file_rename)(struct det_world *world, const char *from, const char *to);
    int (*file_remove)(struct det_world *world, const char *path);
    /* Makes changes of a folder's entries durable: after create, rename, remove. */
    int (*folder_sync)(struct det_world *world, const char *path);
    int (*folder_make)(struct det_world *world, const char *path);
    /* Locks the file against other openings, in this process or others, until it is closed;
     * DET_ERR_BUSY. Does not wait. */
    int (*file_lock)(struct det_world *world, struct det_file *file);
    /* A hint: drop clean cached pages of the file, so that later reads go to the disk. */
    void (*file_forget)(struct det_world *world, struct det_file *file);
    /* Gives the file the owner and mode of the object at the path, of a folder only the owner,
     * as far as this process may, so that the same users can access both. Open the file with
     * NO_LINK or EXCLUSIVE: otherwise a user who may write to its folder chooses which file is
     * given away. */
    void (*file_share)(struct det_world *world, struct det_file *file, const char *path);
    /* True if the path is, or would be, on a file system of another machine. */
    bool (*path_is_remote)(struct det_world *world, const char *path);
    /* The process id of this process. */
    int64_t (*self_number)(struct det_world *world);

    int (*process_start)(
        struct det_world *world, const struct det_process_options *options,
        struct det_process **ret, struct det_error *reterr);
    /* DET_ERR_NOT_FOUND after its end was waited for. Signal 0 only checks that the process
     * exists. */
    int (*process_kill)(struct det_world *world, struct det_process *process, int signal);
    /* Returns 0 and how the process ended (repeatable once known), or DET_ERR_TIMEOUT; another
     * error: it has ended in an unknown way. If the process leads a group, the rest of the group is
     * killed first, while the number of the group cannot be reused. */
    int (*process_wait)(
        struct det_world *world, struct det_process *process, det_time deadline,
        struct det_process_end *ret);
    int64_t (*process_number)(struct det_world *world, struct det_process *process);
    /* A descriptor that becomes readable when the process ends (pidfd). In a simulated world this
     * and process_stream() return numbers that only its pollers know. */
    int (*process_descriptor)(struct det_world *world, struct det_process *process);
    /* A descriptor that is readable when process_read() has data; -1: the stream was not
     * requested. */
    int (*process_stream)(
        struct det_world *world, struct det_process *process, enum det_process_stream stream);
    /* Does not wait: returns the number of bytes, 0 at the end of the stream, DET_ERR_BUSY if there
     * is no data now. */
    int64_t (*process_read)(
        struct det_world *world, struct det_process *process, enum det_process_stream stream,
        void *target, size_t size);
    /* Call this after the end was waited for, or after a kill: waits and reaps if necessary. */
    void (*process_close)(struct det_world *world, struct det_process *process);
};

struct det_world {
    const struct det_world_ops *ops;
};

DET_END
#endif
