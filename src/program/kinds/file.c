/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* file.c - keeps one file in its desired state.
 *
 * It never follows the path: a link there is replaced by a file, and anything else that is not a
 * file is left alone. New content replaces the old atomically. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/text.h"
#include "kinds/file_place.h"
#include "kinds/kinds.h"
#include "os/os.h"

struct file_deps {
    uint64_t settled; /* fingerprint when it last was in its desired state; 0: never */
    uint64_t drifts;
    bool is_drifted;
};

#define WORKER_SPEC "kinds/file.worker"
#include <detent/worker/define.h>

#define MODE "0644"

/* Faults to repair, the worst first. */
enum fault {
    FAULT_NONE,
    FAULT_NOT_A_FILE, /* must not be touched */
    FAULT_SOURCE,     /* the desired content is unknown */
    FAULT_THERE,
    FAULT_MISSING,
    FAULT_LINK,
    FAULT_CONTENT,
    FAULT_MODE,
    FAULT_OWNER,
};

static const char *wanted_hash(
    const struct file_desired *desired, const struct file_observed *observed)
{
    return *desired->source ? observed->source_sha256 : desired->sha256;
}

static bool is_owner_wrong(const struct file_desired *desired, const struct file_observed *observed)
{
    return (*desired->user && observed->has_user && strcmp(desired->user, observed->user) != 0) ||
           (*desired->group && observed->has_group && strcmp(desired->group, observed->group) != 0);
}

static enum fault fault_of(const struct file_desired *desired, const struct file_observed *observed)
{
    if (observed->type == FILE_TYPE_FOLDER || observed->type == FILE_TYPE_OTHER)
        return FAULT_NOT_A_FILE;
    if (desired->absent)
        return observed->exists ? FAULT_THERE : FAULT_NONE;
    if (*observed->source_error)
        return FAULT_SOURCE;
    if (!observed->exists)
        return FAULT_MISSING;
    if (observed->type == FILE_TYPE_LINK)
        return FAULT_LINK;
    if (strcmp(wanted_hash(desired, observed), observed->sha256) != 0)
        return FAULT_CONTENT;
    if (observed->has_mode && strcmp(desired->mode, observed->mode) != 0)
        return FAULT_MODE;
    return is_owner_wrong(desired, observed) ? FAULT_OWNER : FAULT_NONE;
}

static uint64_t mix_text(uint64_t hash, const char *text)
{
    return det_hash64(text, strlen(text) + 1, hash);
}

/* A fingerprint of the desired state, not 0, that fits JSON readers with 63 bits. */
static uint64_t digest_of(const struct file_desired *desired, const struct file_observed *observed)
{
    uint64_t hash = mix_text(desired->absent, desired->path);

    hash = mix_text(mix_text(hash, desired->mode), wanted_hash(desired, observed));
    return mix_text(mix_text(hash, desired->user), desired->group) >> 1 | 1;
}

static const char *fault_reason(const struct file_view *view, enum fault fault)
{
    const struct file_observed *seen = view->observed;

    switch (fault) {
    case FAULT_NOT_A_FILE:
        return det_reason(
            view->all, "there is a %s at its path: move it away, or use another path",
            seen->type == FILE_TYPE_FOLDER ? "folder" : "device, pipe or socket");
    case FAULT_SOURCE:
        return det_reason(view->all, "its source cannot be read: %s", seen->source_error);
    case FAULT_THERE:
        return "the file exists, but 'absent' is set";
    case FAULT_MISSING:
        return "the file does not exist";
    case FAULT_LINK:
        return "it is a symbolic link";
    case FAULT_CONTENT:
        return det_reason(
            view->all, "its content differs: %llu byte%s, sha256 %.12s",
            (unsigned long long)seen->size, det_plural(seen->size),
            *seen->sha256 ? seen->sha256 : "unknown");
    case FAULT_MODE:
        return det_reason(view->all, "its mode is %s, not %s", seen->mode, view->desired->mode);
    case FAULT_OWNER:
        return det_reason(view->all, "it belongs to %s:%s", seen->user, seen->group);
    case FAULT_NONE:
        break;
    }
    return view->desired->absent ? "it is absent, as configured" : "it is as configured";
}

static bool is_blocked(enum fault fault)
{
    return fault == FAULT_NOT_A_FILE || fault == FAULT_SOURCE;
}

/* Decides in the states that repair. */
static struct file_next mend_file(const struct file_view *view)
{
    enum fault fault = fault_of(view->desired, view->observed);

    if (is_blocked(fault))
        return file_goto(FILE_BLOCKED, fault_reason(view, fault));
    if (fault == FAULT_NONE)
        return file_goto(FILE_IN_PLACE, fault_reason(view, fault));
    return file_do(fault == FAULT_THERE ? FILE_REMOVE : FILE_WRITE, fault_reason(view, fault));
}

static struct file_next file_in_stopped(const struct file_view *view)
{
    (void)view;
    return file_goto(FILE_WRITING, "must be in place");
}

static struct file_next file_in_writing(const struct file_view *view)
{
    return mend_file(view);
}

/* A changed config is not a drift. */
static struct file_next file_in_in_place(const struct file_view *view)
{
    enum fault fault = fault_of(view->desired, view->observed);
    bool is_same_request = view->observed->settled == digest_of(view->desired, view->observed);

    if (fault == FAULT_NONE)
        return file_hold(fault_reason(view, fault));
    if (is_blocked(fault))
        return file_goto(FILE_BLOCKED, fault_reason(view, fault));
    return file_goto(is_same_request ? FILE_DRIFTED : FILE_WRITING, fault_reason(view, fault));
}

static struct file_next file_in_drifted(const struct file_view *view)
{
    return mend_file(view);
}

static struct file_next file_in_blocked(const struct file_view *view)
{
    enum fault fault = fault_of(view->desired, view->observed);

    if (is_blocked(fault))
        return file_hold(fault_reason(view, fault));
    return file_goto(FILE_WRITING, fault_reason(view, fault));
}

static int inspect_source(
    struct det_worker_context *context, const struct file_desired *desired,
    struct file_observed *observed)
{
    char *data;
    size_t size;
    int r = det_file_load(
        context->world, context->allocator, desired->source, FILE_SIZE_MAX, &data, &size);

    if (det_error_is_shortage(r))
        return r;
    if (r < 0) {
        (void)det_text_copy(
            observed->source_error, sizeof observed->source_error, det_error_text(r));
        return 0;
    }
    file_hash(data, size, observed->source_sha256);
    det_free(context->allocator, data, size + 1);
    return 0;
}

static int inspect_path(
    struct det_worker_context *context, const struct file_desired *desired,
    struct file_observed *observed)
{
    struct file_place place;
    int r;

    r = file_place_inspect(context->world, context->allocator, desired->path, &place);
    if (r < 0)
        return r;
    observed->type = place.type;
    observed->exists = place.type != FILE_TYPE_NOTHING;
    observed->size = place.size;
    memcpy(observed->sha256, place.sha256, sizeof observed->sha256);
    if (!place.has_owner)
        return 0;
    observed->has_mode = observed->has_user = observed->has_group = true;
    (void)snprintf(observed->mode, sizeof observed->mode, "%04o", place.mode & 07777U);
    file_user_name(place.user, observed->user, sizeof observed->user);
    file_group_name(place.group, observed->group, sizeof observed->group);
    return 0;
}

static int file_collect(
    struct det_worker_context *context, struct file_deps *deps, const struct file_desired *desired,
    struct file_observed *observed)
{
    uint64_t digest;
    bool is_good;
    int r;

    r = *desired->source ? inspect_source(context, desired, observed) : 0;
    if (r == 0)
        r = inspect_path(context, desired, observed);
    if (r < 0)
        return det_worker_fail(context, r, "it could not be inspected: %s", det_error_text(r));
    digest = digest_of(desired, observed);
    is_good = fault_of(desired, observed) == FAULT_NONE;
    det_worker_lock(context);
    if (is_good)
        deps->settled = digest;
    else if (deps->settled == digest && !deps->is_drifted)
        deps->drifts++;
    deps->is_drifted = !is_good;
    det_assert(digest != 0 && (deps->settled != 0 || deps->drifts == 0));
    observed->settled = deps->settled;
    observed->drifts = deps->drifts;
    det_worker_unlock(context);
    return 0;
}

/* The last check, right before the change. */
static int refuse_unless_file(
    struct det_worker_context *context, const struct file_desired *desired)
{
    struct file_place place;
    int r;

    r = file_place_inspect(context->world, context->allocator, desired->path, &place);
    if (r < 0)
        return det_worker_fail(
            context, r, "%s could not be inspected: %s", desired->path, det_error_text(r));
    if (place.type != FILE_TYPE_FOLDER && place.type != FILE_TYPE_OTHER)
        return 0;
    return det_worker_fail(
        context, DET_ERR_EXISTS, "%s is not a file, and stays unchanged: move it away",
        desired->path);
}

static int replace_file(
    struct det_worker_context *context, const struct file_desired *desired, const char *data,
    size_t size)
{
    struct det_error error = { 0 };
    int r;

    r = file_place_prepare(context->world, desired, &error);
    if (r < 0)
        return det_worker_fail(context, r, "%s", error.text);
    r = det_file_replace(context->world, desired->path, data, size);
    if (r < 0)
        return det_worker_fail(
            context, r, "%s could not be written: %s", desired->path, det_error_text(r));
    det_worker_count(context, "writes", 1);
    return 0;
}

static int replace_by_source(struct det_worker_context *context, const struct file_desired *desired)
{
    char *data;
    size_t size;
    int r = det_file_load(
        context->world, context->allocator, desired->source, FILE_SIZE_MAX, &data, &size);

    if (r < 0)
        return det_worker_fail(
            context, r, "the source %s cannot be read: %s", desired->source, det_error_text(r));
    r = replace_file(context, desired, data, size);
    det_free(context->allocator, data, size + 1);
    return r;
}

static int file_do_write(
    struct det_worker_context *context, struct file_deps *deps, const struct file_desired *desired)
{
    int r;

    (void)deps;
    r = refuse_unless_file(context, desired);
    if (r < 0)
        return r;
    if (*desired->source)
        return replace_by_source(context, desired);
    return replace_file(context, desired, desired->content, strlen(desired->content));
}

static int file_do_remove(
    struct det_worker_context *context, struct file_deps *deps, const struct file_desired *desired)
{
    char folder[DET_PATH_MAX];
    int r;

    (void)deps;
    r = refuse_unless_file(context, desired);
    if (r < 0)
        return r;
    r = det_file_remove(context->world, desired->path);
    if (r == 0 && det_file_folder(desired->path, folder) == 0)
        r = det_folder_sync(context->world, folder);
    if (r == 0 || r == DET_ERR_NOT_FOUND)
        return 0;
    return det_worker_fail(
        context, r, "%s could not be removed: %s", desired->path, det_error_text(r));
}

static int file_open(struct det_worker_context *context, struct file_deps *deps)
{
    (void)context;
    (void)deps;
    return 0;
}

static void file_close(struct file_deps *deps)
{
    (void)deps;
}

static int check_path(struct det_derive *derive, const char *field, const char *path)
{
    if (*path != '/')
        return derive->refuse(
            derive, "%s '%s' is relative: write an absolute path, from / on", field, path);
    if (path[strlen(path) - 1] == '/')
        return derive->refuse(derive, "%s '%s' is a folder: name the file in it", field, path);
    return 0;
}

static int check_content(struct det_derive *derive, const struct file_desired *config)
{
    bool has_source = *config->source != '\0';

    if (*config->sha256)
        return derive->refuse(derive, "sha256 is computed from the content: remove it");
    if (config->absent && (config->has_content || has_source))
        return derive->refuse(
            derive, "absent is true, but there is a %s: remove one of the two",
            has_source ? "source" : "content");
    if (!config->absent && config->has_content == has_source)
        return derive->refuse(
            derive, has_source ? "content and source exclude each other: remove one of the two"
                               : "content is missing: add content: or source:, or absent: true");
    return has_source ? check_path(derive, "source", config->source) : 0;
}

static int settle_mode(struct det_derive *derive, struct file_desired *desired)
{
    size_t size;

    if (!*desired->mode)
        (void)det_text_copy(desired->mode, sizeof desired->mode, MODE);
    size = strspn(desired->mode, "01234567");
    if (desired->mode[size] || size < 3)
        return derive->refuse(
            derive, "mode '%s' is not a mode: three or four digits from 0 to 7 in quotes, \"0640\"",
            desired->mode);
    if (size == 3) {
        memmove(desired->mode + 1, desired->mode, 4);
        desired->mode[0] = '0';
    }
    det_assert(strlen(desired->mode) == sizeof MODE - 1);
    return 0;
}

static int file_derive(
    struct det_derive *derive, const struct file_desired *config, struct file_desired *desired)
{
    int r;

    *desired = *config;
    if (!*config->path)
        return derive->refuse(
            derive, "path is missing: add the path of the file, such as path: /etc/motd");
    r = check_path(derive, "path", config->path);
    if (r == 0)
        r = check_content(derive, config);
    if (r == 0)
        r = settle_mode(derive, desired);
    if (r == 0 && config->has_content)
        file_hash(config->content, strlen(config->content), desired->sha256);
    return r;
}
