/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* real_process.h - shared by the files of real processes: spawning, error messages, user rights,
 * and the notify socket. */
#ifndef DET_OS_REAL_PROCESS_H
#define DET_OS_REAL_PROCESS_H

#include <sys/types.h>

#include "os/real.h"

/* Input, output, error. */
#define DET_SPAWN_STREAMS 3

/* Another user's rights. */
struct det_real_user {
    uid_t user;
    gid_t group;
    gid_t *groups; /* all of them */
    size_t group_capacity;
    int group_count;
};

/* Returns 1 and the user; 0 if we already are that user; DET_ERR_NOT_FOUND, DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int det_real_user_init(
    struct det_real_user *user, const struct det_allocator *allocator, const char *name);
void det_real_user_deinit(struct det_real_user *user, const struct det_allocator *allocator);
/* Switches to this user in a forked child; only system calls. Returns 0, or -1 with errno. */
int det_real_user_become(const struct det_real_user *user);

struct det_process_guard_slot;

/* The stage at which a spawn failed. posix_spawn() does not report it. */
enum det_spawn_stage {
    DET_SPAWN_SOMEWHERE,
    DET_SPAWN_US, /* before there was a child */
    DET_SPAWN_LIMITS,
    DET_SPAWN_USER,
    DET_SPAWN_FOLDER,
    DET_SPAWN_PROGRAM,
};

struct det_spawn_failure {
    enum det_spawn_stage stage;
    int number; /* errno */
};

struct det_spawn {
    const struct det_process_options *options;
    const char *const *environment;
    int streams[DET_SPAWN_STREAMS]; /* of the child; none below DET_SPAWN_STREAMS; -1: /dev/null */
    const struct det_real_user *user;    /* NULL: ours */
    pid_t parent;                        /* us */
    struct det_process_guard_slot *slot; /* slot that it fills; NULL: not recorded */
    int cgroup;                          /* cgroup that it joins, with a slot; -1: none */
};

/* Uses posix_spawn(), which shares memory with us until the exec: fast, but cannot change users.
 * Returns 0, or -1 with the failure. */
int det_real_spawn(const struct det_spawn *spawn, pid_t *ret, struct det_spawn_failure *failure);
/* Uses fork() and exec; a child that must end with us may be forked by another thread. */
int det_real_spawn_as(const struct det_spawn *spawn, pid_t *ret, struct det_spawn_failure *failure);
/* Fills an error for users: the program, the cause, the remedy. Returns its code. */
int det_real_spawn_error(
    const struct det_process_options *options, const struct det_spawn_failure *failure,
    struct det_error *reterr);

/* real_forker.c */

/* Forks. Returns as fork() does in the parent, and never in the child. */
typedef pid_t det_real_fork_fn(const void *argument);
/* Forks on a thread that lives as long as the program: this one if it is the first, else a
 * dedicated one. */
pid_t det_real_fork_by_forker(det_real_fork_fn *run, const void *argument);

/* "NOTIFY_SOCKET=@" and the few letters that the kernel chooses. */
#define DET_NOTIFY_VARIABLE      "NOTIFY_SOCKET="
#define DET_NOTIFY_VARIABLE_SIZE 64
/* Opens a socket without a file; `variable` receives the environment entry. Returns the descriptor
 * or a negative error. */
DET_MUST_CHECK int det_real_notify_open(char variable[DET_NOTIFY_VARIABLE_SIZE]);

/* Allowed senders: the process, its group, or an already exited process of its user. */
struct det_notify_sender {
    pid_t number;
    bool is_group;
    uid_t user;
};
/* Returns the next message of such a sender, as process_read() does. */
int64_t det_real_notify_read(
    int descriptor, const struct det_notify_sender *expected, void *target, size_t size);

/* descriptors.c */

/* Returns true if children need their descriptor limit restored, which posix_spawn() cannot do. */
bool det_descriptors_are_raised(void);
/* Restores the limit in a forked child; only system calls. */
int det_descriptors_restore(void);

#endif
