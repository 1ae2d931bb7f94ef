/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* disk_test.h - files of a journal on a simulated disk: images of them, and operations that
 * fail. */
#ifndef DET_JOURNAL_DISK_TEST_H
#define DET_JOURNAL_DISK_TEST_H

#include "base/memory.h"
#include "journal/journal_test.h"

/* The content of a file; NULL: it does not exist. */
struct image {
    char *data;
    size_t size;
};

static inline struct image load_image(struct det_world *world, const char *name)
{
    struct image image = { 0 };
    char path[128];
    int r;

    (void)snprintf(path, sizeof path, FOLDER "/%s", name);
    r = det_file_load(world, NULL, path, (size_t)1 << 30, &image.data, &image.size);
    assert_true(r == 0 || r == DET_ERR_NOT_FOUND);
    return image;
}

static inline void free_image(struct image *image)
{
    if (image->data)
        det_free(NULL, image->data, image->size + 1);
    *image = (struct image){ 0 };
}

static inline void store_bytes(
    struct det_world *world, const char *name, const char *data, size_t size)
{
    struct det_file *file = NULL;
    char path[128];

    (void)snprintf(path, sizeof path, FOLDER "/%s", name);
    if (!data) {
        (void)det_file_remove(world, path);
        return;
    }
    assert_int_equal(0, det_file_open(world, path, DET_FILE_WRITE | DET_FILE_CREATE, &file));
    assert_int_equal(0, det_file_truncate(world, file, 0));
    if (size > 0)
        assert_int_equal(0, det_file_write(world, file, 0, data, size));
    assert_int_equal(0, det_file_sync(world, file));
    det_file_close(world, file);
}

static inline void store_image(struct det_world *world, const char *name, const struct image *image)
{
    store_bytes(world, name, image->data, image->size);
}

/* Files of a whole journal. */
static const char *const file_names[] = {
    "head", "mark", "segment-00000001", "segment-00000002", "segment-00000003", "segment-00000004",
};
#define FILES (sizeof file_names / sizeof file_names[0])

struct images {
    struct image files[FILES];
};

static inline struct images load_images(struct det_world *world)
{
    struct images images;

    for (size_t i = 0; i < FILES; i++)
        images.files[i] = load_image(world, file_names[i]);
    return images;
}

static inline void store_images(struct det_world *world, const struct images *images)
{
    for (size_t i = 0; i < FILES; i++)
        store_image(world, file_names[i], &images->files[i]);
}

static inline void free_images(struct images *images)
{
    for (size_t i = 0; i < FILES; i++)
        free_image(&images->files[i]);
}

/* Opens a journal on the simulated disk; NULL with its error. */
static inline struct det_journal *try_open(
    struct det_world *world, const struct det_journal_options *options, struct det_error *reterr)
{
    struct det_journal_options filled = options ? *options : (struct det_journal_options){ 0 };
    struct det_journal *journal = NULL;

    filled.world = world;
    *reterr = (struct det_error){ 0 };
    return det_journal_open("file:" FOLDER, &filled, &journal, reterr) == 0 ? journal : NULL;
}

static inline struct det_journal *must_open(
    struct det_world *world, const struct det_journal_options *options)
{
    struct det_error error;
    struct det_journal *journal = try_open(world, options, &error);

    if (!journal)
        print_error("%s\n", error.text);
    assert_non_null(journal);
    return journal;
}

/* Appends groups of one to `size` rows, each acknowledged before the next. */
static inline void append_groups(struct det_journal *journal, unsigned count, size_t size)
{
    uint64_t at = 0;

    for (unsigned i = 0; i < count; i++) {
        assert_int_equal(0, append_numbers(journal, i % size + 1, &at));
        assert_int_equal(0, det_journal_wait(journal, at, DET_NEVER));
    }
}

/* Reads rows up to the first error; returns the position after the last one, and the error. */
static inline uint64_t read_as_far_as_possible(struct det_journal *journal, int *ret)
{
    struct det_journal_reader *reader = NULL;
    struct det_journal_row row;
    struct det_error error = { 0 };
    uint64_t next = det_journal_begin(journal);
    int r;

    assert_int_equal(0, det_journal_reader_open(journal, NULL, &reader, NULL));
    while ((r = det_journal_reader_next(reader, &row, &error)) == 1) {
        assert_int_equal(next, row.position);
        assert_number(&row);
        next++;
    }
    det_journal_reader_close(reader);
    *ret = r;
    return next;
}

/* A world in which a file operation fails. */
struct fault_world {
    struct det_world_ops ops; /* the first member: the world's ops lead here */
    struct det_world *world;
    const struct det_world_ops *real;
    uint64_t count, fail_at; /* operations; 0: none fails */
    bool is_sticky, has_failed;
    int code;
};

static inline int draw_fault(struct det_world *world)
{
    struct fault_world *fault = (struct fault_world *)(uintptr_t)world->ops;

    fault->count++;
    if (fault->fail_at == 0 || fault->count < fault->fail_at ||
        (fault->count > fault->fail_at && !fault->is_sticky))
        return 0;
    fault->has_failed = true;
    return fault->code;
}

static inline const struct det_world_ops *real_ops(struct det_world *world)
{
    return ((const struct fault_world *)(uintptr_t)world->ops)->real;
}

static inline int fault_open(
    struct det_world *world, const char *path, unsigned flags, struct det_file **ret)
{
    int r = draw_fault(world);

    return r < 0 ? r : real_ops(world)->file_open(world, path, flags, ret);
}

static inline int fault_write(
    struct det_world *world, struct det_file *file, uint64_t offset, const void *data, size_t size)
{
    int r = draw_fault(world);

    if (r < 0 && size > 1)
        (void)real_ops(world)->file_write(world, file, offset, data, size / 2);
    return r < 0 ? r : real_ops(world)->file_write(world, file, offset, data, size);
}

static inline int64_t fault_read(
    struct det_world *world, struct det_file *file, uint64_t offset, void *target, size_t size)
{
    int r = draw_fault(world);

    return r < 0 ? r : real_ops(world)->file_read(world, file, offset, target, size);
}

static inline int fault_sync(struct det_world *world, struct det_file *file)
{
    int r = draw_fault(world);

    return r < 0 ? r : real_ops(world)->file_sync(world, file);
}

static inline int fault_truncate(struct det_world *world, struct det_file *file, uint64_t size)
{
    int r = draw_fault(world);

    return r < 0 ? r : real_ops(world)->file_truncate(world, file, size);
}

static inline int64_t fault_size(struct det_world *world, struct det_file *file)
{
    int r = draw_fault(world);

    return r < 0 ? r : real_ops(world)->file_size(world, file);
}

static inline int fault_rename(struct det_world *world, const char *from, const char *to)
{
    int r = draw_fault(world);

    return r < 0 ? r : real_ops(world)->file_rename(world, from, to);
}

static inline int fault_remove(struct det_world *world, const char *path)
{
    int r = draw_fault(world);

    return r < 0 ? r : real_ops(world)->file_remove(world, path);
}

static inline int fault_folder_sync(struct det_world *world, const char *path)
{
    int r = draw_fault(world);

    return r < 0 ? r : real_ops(world)->folder_sync(world, path);
}

static inline int fault_folder_make(struct det_world *world, const char *path)
{
    int r = draw_fault(world);

    return r < 0 ? r : real_ops(world)->folder_make(world, path);
}

static inline int fault_lock(struct det_world *world, struct det_file *file)
{
    int r = draw_fault(world);

    return r < 0 ? r : real_ops(world)->file_lock(world, file);
}

static inline void fault_world_open(
    struct fault_world *fault, struct det_world *world, uint64_t fail_at, int code, bool is_sticky)
{
    *fault = (struct fault_world){ .ops = *world->ops, .world = world, .real = world->ops };
    fault->ops.file_open = fault_open;
    fault->ops.file_write = fault_write;
    fault->ops.file_read = fault_read;
    fault->ops.file_sync = fault_sync;
    fault->ops.file_truncate = fault_truncate;
    fault->ops.file_size = fault_size;
    fault->ops.file_rename = fault_rename;
    fault->ops.file_remove = fault_remove;
    fault->ops.folder_sync = fault_folder_sync;
    fault->ops.folder_make = fault_folder_make;
    fault->ops.file_lock = fault_lock;
    fault->fail_at = fail_at;
    fault->code = code;
    fault->is_sticky = is_sticky;
    world->ops = &fault->ops;
}

static inline void fault_world_close(struct fault_world *fault)
{
    fault->world->ops = fault->real;
}

#endif
