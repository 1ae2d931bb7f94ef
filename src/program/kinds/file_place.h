/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* file_place.h - examines a path without following links; and the temporary file that later
 * replaces it. In a simulated world files have no mode and no owner. */
#ifndef DET_KINDS_FILE_PLACE_H
#define DET_KINDS_FILE_PLACE_H

#define WORKER_SPEC "kinds/file.worker"
#include <detent/worker/declare.h>

#define FILE_SIZE_MAX (4 << 20) /* maximum bytes of a file that is compared or copied */
#define FILE_HASH_MAX 65        /* of a SHA-256 in hex, with its final NUL */

struct file_place {
    enum file_type type;
    uint64_t size;
    char sha256[FILE_HASH_MAX]; /* "" if it is not a file, is too large or cannot be read */
    bool has_owner;
    uint32_t mode, user, group;
};

/* Returns the SHA-256 of the bytes, in hex. */
void file_hash(const void *data, size_t size, char target[FILE_HASH_MAX]);
/* An unreadable path counts as nothing, except for DET_ERR_NO_MEMORY, DET_ERR_LIMIT: our own
 * process is short of memory or descriptors, which says nothing about the path. */
DET_MUST_CHECK int file_place_inspect(
    struct det_world *world, const struct det_allocator *allocator, const char *path,
    struct file_place *ret);
/* Creates the empty file that det_file_replace() of the path will write into, so that the new file
 * has its mode and its owner (names; "": ours) from its first byte on. Replaces an existing
 * temporary file. DET_ERR_NOT_FOUND with the name in `reterr`: no such user or group, or no
 * folder. */
DET_MUST_CHECK int file_place_prepare(
    struct det_world *world, const struct file_desired *desired, struct det_error *reterr);
/* Returns the name of a user or group; its number if it has no name. */
void file_user_name(uint32_t number, char *target, size_t capacity);
void file_group_name(uint32_t number, char *target, size_t capacity);

#endif
