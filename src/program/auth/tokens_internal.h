/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* tokens_internal.h - shared by the files of tokens.
 *
 *     tokens.c         opens, refreshes, checks, changes
 *     token_file.c     the lines of the file, its owner and mode, its lock
 *     guess_delay.c    delays the answers to wrong tokens
 *     session_code.c   one-time codes of the console */
#ifndef DET_AUTH_TOKENS_INTERNAL_H
#define DET_AUTH_TOKENS_INTERNAL_H

#include "auth/tokens.h"
#include "base/buffer.h"
#include "os/os.h"

#define TOKENS_HASH_SIZE 32
#define TOKENS_FILE_MAX  (512 << 10)

struct tokens_row {
    struct token token;
    unsigned char hash[TOKENS_HASH_SIZE];
};

/* The content of a file, with room for one more. */
struct tokens_set {
    struct tokens_row *rows;
    size_t count, capacity;
};
void tokens_set_free(const struct det_allocator *allocator, struct tokens_set *set);

/* Parses the whole text. DET_ERR_CORRUPT, DET_ERR_VERSION, DET_ERR_LIMIT, DET_ERR_NO_MEMORY, with
 * the line number. */
DET_MUST_CHECK int tokens_file_parse(
    const struct det_allocator *allocator, const struct det_buffer *text, struct tokens_set *ret,
    struct det_error *reterr);
void tokens_file_format(struct det_buffer *buffer, const struct tokens_set *set);

/* Identity of a file (number, time, size) and who may read it: a changed file has another one. */
struct tokens_stamp {
    uint64_t device, number;
    int64_t size, seconds, nanoseconds;
    uint32_t mode, owner;
    bool is_there;
};
/* Opens the folder and checks it by the descriptor through which all files are then opened: a
 * folder that replaces it later has no effect. DET_ERR_REFUSED for a link, another user's folder,
 * or one that others may write to. Creates a missing folder if `is_made`; otherwise `ret` is -1. */
DET_MUST_CHECK int tokens_folder_open(
    const char *path, bool is_made, int *ret, struct det_error *reterr);
/* Examines the file, `name` below `folder`; a missing file is not an error. */
DET_MUST_CHECK int tokens_file_check(
    int folder, const char *name, struct tokens_stamp *ret, struct det_error *reterr);
/* Reads all of it, after checking its owner and mode. */
DET_MUST_CHECK int tokens_file_read(
    int folder, struct det_buffer *ret, struct tokens_stamp *ret_stamp, struct det_error *reterr);
DET_MUST_CHECK int tokens_file_write(
    struct det_world *world, int folder, const struct det_buffer *text, struct det_error *reterr);
/* Returns a descriptor that holds the lock of the folder; DET_ERR_BUSY. */
DET_MUST_CHECK int tokens_file_lock(
    int folder, det_time patience, int *ret, struct det_error *reterr);
/* Releases the lock and closes the descriptor. A close alone is not enough: a forked process that
 * has not called exec yet shares the descriptor, and with it the lock. */
void tokens_file_unlock(int lock);

/* Addresses that sent wrong tokens: a small table in which each address has four possible slots, by
 * a hash with a secret key. A new address replaces a forgotten one, otherwise the one with the
 * shortest delay, among those the longest silent: so a client cannot escape a long delay by failing
 * from other addresses. */
#define TOKENS_PEERS 256
#define TOKENS_WAYS  4
struct tokens_peer {
    uint64_t hash;     /* of the address; 0: free */
    unsigned failures; /* in a row */
    det_time at;       /* monotonic: of the last one */
};
struct tokens_peers {
    uint64_t key; /* random */
    struct tokens_peer items[TOKENS_PEERS];
};
/* Counts a failure; returns the delay. */
det_time tokens_peer_failed(struct tokens_peers *peers, const char *peer, det_time now);

#define TOKENS_CODES 16
struct tokens_code {
    char text[TOKENS_CODE_SIZE + 1];
    det_time until; /* monotonic; 0: free */
};

struct tokens {
    const struct det_allocator *allocator;
    struct det_world *world;
    struct det_mutex *changing; /* held during a change of the file; taken before the other one */
    struct det_mutex *mutex;    /* guards everything from `set` on; never held during a write */
    char folder[DET_PATH_MAX], path[DET_PATH_MAX + sizeof TOKENS_FILE_NAME];
    det_time patience;
    void (*problem)(void *user, const char *text, bool is_closed);
    void (*changed)(void *user, const struct token *token, bool is_new);
    void *user;

    struct tokens_set set;
    struct tokens_stamp stamp;         /* of the file that was read last, valid or not */
    bool is_closed;                    /* the file is invalid */
    char reported[DET_ERROR_TEXT_MAX]; /* the last report; "": none */
    det_time inspected;                /* monotonic */
    det_time next_check_at;            /* monotonic; limits the rate of looks for unknown tokens */
    struct tokens_peers peers;
    struct tokens_code codes[TOKENS_CODES];
};

#endif
