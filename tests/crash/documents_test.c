/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* documents_test.c - power cuts at every write and sync while documents are saved and their deltas
 * compacted: acknowledged calls are there, a call is there completely or not at all, and no sync id
 * is assigned again. */
#include <detent/tool/documents.h>

#include "crash/bed.h"
#include "crash/cut.h"
#include "lib/test.h"

#define STEPS     14
#define IDS       4
#define TEXT_MAX  64
#define LINES_MAX 2048

/* A store as text, and its position. */
struct image {
    char text[LINES_MAX];
    size_t size;
    uint64_t deltas; /* the last sync id */
    bool has_gap;
    struct det_document_position position;
};

struct scene {
    struct crash_bed bed;
    struct image images[STEPS + 1]; /* after each step */
    uint64_t states, ahead;
};

static struct det_store *open_store(struct scene *scene, unsigned level)
{
    struct det_store_options options = { .world = det_sim_world(scene->bed.sim), .connections = 1 };
    struct det_error error = { 0 };
    struct det_store *store = NULL;

    scene->bed.active = &scene->bed.disks[level];
    if (det_store_open_with(crash_bed_url(level), &options, &store, &error) < 0)
        fail_msg("%s", error.text);
    return store;
}

static int note_document(void *context, const struct det_document *row)
{
    struct image *image = context;

    image->size += (size_t)snprintf(
        image->text + image->size, LINES_MAX - image->size, "%s %llu %llu %.*s\n", row->id,
        (unsigned long long)row->sync, (unsigned long long)row->version, (int)row->size, row->text);
    assert_true(image->size < LINES_MAX);
    return 0;
}

static int note_delta(void *context, const struct det_delta *row)
{
    struct image *image = context;

    image->has_gap |= row->sync != image->deltas + 1;
    image->deltas = row->sync;
    return 0;
}

static void read_image(struct det_store *store, struct image *ret)
{
    *ret = (struct image){ 0 };
    assert_int_equal(det_store_documents_list(store, NULL, note_document, ret, &ret->position), 0);
    ret->deltas = ret->position.oldest - 1;
    assert_int_equal(det_store_documents_deltas(store, NULL, note_delta, ret, NULL), 0);
    assert_true(!ret->has_gap && ret->deltas == ret->position.latest);
}

static bool are_equal(const struct image *left, const struct image *right)
{
    return strcmp(left->text, right->text) == 0 &&
           left->position.latest == right->position.latest &&
           left->position.oldest == right->position.oldest;
}

/* Several documents in one call, one of them perhaps dropped; or a compaction. */
static int carry_out(struct det_store *store, unsigned step)
{
    struct det_document_save saves[IDS];
    char texts[IDS][TEXT_MAX], ids[IDS][8];
    uint64_t seed = step + 1;

    if (step % 5 == 4)
        return det_store_documents_compact(
            store, &(struct det_document_keep){ .count_max = 3 }, NULL);
    for (unsigned i = 0; i < IDS; i++) {
        uint64_t chance = det_test_random(&seed);

        snprintf(ids[i], sizeof ids[i], "w%u", i);
        snprintf(texts[i], TEXT_MAX, "{\"n\":%u,\"m\":%u}", step, (unsigned)(chance % 2));
        saves[i] = (struct det_document_save){ .kind = "link",
                                               .id = ids[i],
                                               .role = DET_DOCUMENT_OBSERVED,
                                               .is_drop = chance % 7 == 0,
                                               .text = texts[i],
                                               .size = strlen(texts[i]) };
    }
    return det_store_documents_save(store, saves, step % 2 ? IDS : 1, NULL, NULL);
}

static int inspect(void *context, const struct crash_cut *cut, struct crash_disk *disk)
{
    const struct det_document_save more = {
        .kind = "link", .id = "more", .role = DET_DOCUMENT_SPEC, .text = "{}", .size = 2
    };
    struct scene *scene = context;
    struct det_document_saved saved;
    struct det_store *store;
    struct image found;
    bool is_ahead;

    (void)disk;
    store = open_store(scene, 1);
    read_image(store, &found);
    is_ahead = !are_equal(&found, &scene->images[cut->mark]);
    if (is_ahead && (cut->mark == STEPS || !are_equal(&found, &scene->images[cut->mark + 1])))
        fail_msg("after step %u:\n%s", (unsigned)cut->mark, found.text);
    assert_int_equal(det_store_documents_save(store, &more, 1, &saved, NULL), 0);
    assert_int_equal(saved.sync, found.position.latest + 1);
    det_store_close(store);
    scene->states++;
    scene->ahead += is_ahead;
    return 0;
}

static void crash_keeps_answered_saves_and_whole_calls(void **state)
{
    struct crash_cut_options options = { .chances = 2, .seed = 1, .is_brief = true };
    struct scene *scene = calloc(1, sizeof *scene);
    struct crash_disk *disk;
    struct det_store *store;

    (void)state;
    assert_non_null(scene);
    crash_bed_open(&scene->bed, 1);
    disk = &scene->bed.disks[0];
    store = open_store(scene, 0);
    read_image(store, &scene->images[0]);
    crash_disk_mark(disk, 0);
    options.first = disk->op_count;
    for (unsigned step = 0; step < STEPS; step++) {
        assert_int_equal(carry_out(store, step), 0);
        crash_disk_mark(disk, step + 1);
        read_image(store, &scene->images[step + 1]);
    }
    det_store_close(store);
    (void)crash_cut_each(disk, &options, &scene->bed.disks[1], inspect, scene, NULL);
    print_message(
        "             %llu states, %llu ahead of what was answered\n",
        (unsigned long long)scene->states, (unsigned long long)scene->ahead);
    assert_true(scene->states > 50);
    crash_bed_close(&scene->bed);
    free(scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crash_keeps_answered_saves_and_whole_calls),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
