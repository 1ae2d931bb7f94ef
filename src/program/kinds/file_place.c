/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* file_place.c - inspects paths of the real world without following links. */
#include "kinds/file_place.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <openssl/evp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/hex.h"
#include "base/memory.h"
#include "base/text.h"
#include "os/os.h"
#include "os/real.h"

#define ENTRY_SIZE 4096 /* of a line about a user or a group */

static void to_hex(const unsigned char *hash, size_t length, char target[FILE_HASH_MAX])
{
    det_assert(2 * length + 1 == FILE_HASH_MAX);
    det_hex_write(hash, length, target);
}

void file_hash(const void *data, size_t size, char target[FILE_HASH_MAX])
{
    unsigned char hash[EVP_MAX_MD_SIZE];
    unsigned length = 0;

    target[0] = '\0';
    if (EVP_Digest(data, size, hash, &length, EVP_sha256(), NULL))
        to_hex(hash, length, target);
}

static int look_simulated(
    struct det_world *world, const struct det_allocator *allocator, const char *path,
    struct file_place *ret)
{
    char *data;
    size_t size;
    int r = det_file_load(world, allocator, path, FILE_SIZE_MAX, &data, &size);

    if (r == DET_ERR_NOT_FOUND)
        return 0;
    if (det_error_is_shortage(r))
        return r;
    ret->type = FILE_TYPE_FILE;
    if (r < 0)
        return 0;
    ret->size = size;
    file_hash(data, size, ret->sha256);
    det_free(allocator, data, size + 1);
    return 0;
}

/* Hashes a file in pieces, so that it needs no memory of its size. */
static void hash_descriptor(int descriptor, char target[FILE_HASH_MAX])
{
    unsigned char chunk[4096], hash[EVP_MAX_MD_SIZE];
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool is_good = context && EVP_DigestInit_ex(context, EVP_sha256(), NULL);
    unsigned length = 0;
    size_t size = 0;
    ssize_t count = 1;

    /* detent: allow action-cancel because it ends after 4 MiB of a file */
    while (is_good && count > 0 && size <= FILE_SIZE_MAX) {
        count = read(descriptor, chunk, sizeof chunk);
        is_good = count >= 0 && EVP_DigestUpdate(context, chunk, (size_t)count);
        size += (size_t)(count > 0 ? count : 0);
    }
    if (is_good && count == 0 && EVP_DigestFinal_ex(context, hash, &length))
        to_hex(hash, length, target);
    EVP_MD_CTX_free(context);
}

static enum file_type type_of(mode_t mode)
{
    if (S_ISREG(mode))
        return FILE_TYPE_FILE;
    if (S_ISDIR(mode))
        return FILE_TYPE_FOLDER;
    return S_ISLNK(mode) ? FILE_TYPE_LINK : FILE_TYPE_OTHER;
}

static void take_status(const struct stat *status, struct file_place *ret)
{
    ret->type = type_of(status->st_mode);
    ret->size = ret->type == FILE_TYPE_FILE ? (uint64_t)status->st_size : 0;
    ret->has_owner = true;
    ret->mode = status->st_mode & 07777;
    ret->user = status->st_uid;
    ret->group = status->st_gid;
}

/* Inspects the opened file again: the path may lead to another one by now. */
static int look_real(const char *path, struct file_place *ret)
{
    struct stat status;
    int descriptor;

    if (lstat(path, &status) < 0)
        return errno == ENOMEM ? DET_ERR_NO_MEMORY : 0;
    take_status(&status, ret);
    if (ret->type != FILE_TYPE_FILE)
        return 0;
    descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (descriptor < 0)
        return det_errno_is_shortage(errno) ? det_real_error(errno) : 0;
    if (fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode)) {
        take_status(&status, ret);
        hash_descriptor(descriptor, ret->sha256);
    }
    close(descriptor);
    return 0;
}

int file_place_inspect(
    struct det_world *world, const struct det_allocator *allocator, const char *path,
    struct file_place *ret)
{
    *ret = (struct file_place){ .type = FILE_TYPE_NOTHING };
    if (world == det_world_real())
        return look_real(path, ret);
    return look_simulated(world, allocator, path, ret);
}

/* (uid_t)-1, which changes nothing, for "". */
static int find_user(const char *name, uid_t *ret, struct det_error *reterr)
{
    char memory[ENTRY_SIZE];
    struct passwd entry, *found = NULL;

    *ret = (uid_t)-1;
    if (!*name)
        return 0;
    (void)getpwnam_r(name, &entry, memory, sizeof memory, &found);
    if (!found)
        return det_error_set(reterr, DET_ERR_NOT_FOUND, "there is no user '%s'", name);
    *ret = found->pw_uid;
    return 0;
}

static int find_group(const char *name, gid_t *ret, struct det_error *reterr)
{
    char memory[ENTRY_SIZE];
    struct group entry, *found = NULL;

    *ret = (gid_t)-1;
    if (!*name)
        return 0;
    (void)getgrnam_r(name, &entry, memory, sizeof memory, &found);
    if (!found)
        return det_error_set(reterr, DET_ERR_NOT_FOUND, "there is no group '%s'", name);
    *ret = found->gr_gid;
    return 0;
}

/* The mode last: a change of the owner takes bits of it away. */
static int make_temporary(
    const char *path, uint32_t mode, uid_t user, gid_t group, struct det_error *reterr)
{
    int descriptor, number = 0;

    det_assert((mode & ~07777U) == 0);
    (void)unlink(path);
    descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (descriptor < 0)
        return det_error_set(
            reterr, det_real_error(errno),
            "cannot create %s (%s): check that its folder exists and is writable", path,
            strerrordesc_np(errno));
    if (fchown(descriptor, user, group) < 0 || fchmod(descriptor, mode) < 0) {
        number = errno;
        (void)unlink(path);
    }
    close(descriptor);
    if (!number)
        return 0;
    return det_error_set(
        reterr, det_real_error(number),
        "cannot set its owner or mode (%s): changing the owner requires root",
        strerrordesc_np(number));
}

int file_place_prepare(
    struct det_world *world, const struct file_desired *desired, struct det_error *reterr)
{
    char temporary[DET_PATH_MAX];
    uid_t user;
    gid_t group;
    int r;

    if (world != det_world_real())
        return 0;
    r = find_user(desired->user, &user, reterr);
    if (r < 0)
        return r;
    r = find_group(desired->group, &group, reterr);
    if (r < 0)
        return r;
    (void)snprintf(temporary, sizeof temporary, "%s.tmp", desired->path);
    return make_temporary(
        temporary, (uint32_t)strtoul(desired->mode, NULL, 8), user, group, reterr);
}

void file_user_name(uint32_t number, char *target, size_t capacity)
{
    char memory[ENTRY_SIZE];
    struct passwd entry, *found = NULL;

    (void)getpwuid_r(number, &entry, memory, sizeof memory, &found);
    if (found)
        (void)det_text_copy(target, capacity, found->pw_name);
    else
        (void)snprintf(target, capacity, "%u", number);
}

void file_group_name(uint32_t number, char *target, size_t capacity)
{
    char memory[ENTRY_SIZE];
    struct group entry, *found = NULL;

    (void)getgrgid_r(number, &entry, memory, sizeof memory, &found);
    if (found)
        (void)det_text_copy(target, capacity, found->gr_name);
    else
        (void)snprintf(target, capacity, "%u", number);
}
