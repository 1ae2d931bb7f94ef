/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* journal_segment.c - fuzz target: bytes as the frames of a segment of a journal, with checksums
 * that are right. Opening refuses them, or they are rows in order; the journal goes on after
 * them. */
#include <stdlib.h>
#include <string.h>

#include <detent/journal.h>
#include <detent/sim.h>

#include "base/hash.h"
#include "journal/frame.h"
#include "os/os.h"

#define FOLDER        "log"
#define SEGMENT       FOLDER "/segment-00000001"
#define SIZE_MAX_READ 65536u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint8_t used;

static void require(bool fact)
{
    if (!fact)
        abort();
}

static struct det_journal *open_log(struct det_world *world, bool is_read_only, bool accepts_loss)
{
    struct det_journal_options options = {
        .world = world,
        .is_read_only = is_read_only,
        .accepts_loss = accepts_loss,
    };
    struct det_journal *journal = NULL;
    struct det_error error;

    return det_journal_open("file:" FOLDER, &options, &journal, &error) == 0 ? journal : NULL;
}

/* The seed of the checksums of the log in this world. */
static uint32_t seed_of(struct det_world *world)
{
    struct det_file *file;
    char head[80];

    require(det_file_open(world, FOLDER "/head", DET_FILE_READ, &file) == 0);
    require(det_file_read(world, file, 0, head, sizeof head) == (int64_t)sizeof head);
    det_file_close(world, file);
    return det_crc32c(0, head + 16, 16);
}

static void seal_frames(char *data, size_t size, uint32_t seed)
{
    struct det_frame frame;

    for (size_t at = 0; det_frame_get_head(data + at, size - at, &frame); at += frame.size) {
        if (frame.size > size - at)
            break;
        det_frame_seal(data + at, frame.size, seed);
    }
}

static void write_frames(struct det_world *world, const uint8_t *data, size_t size)
{
    struct det_file *file;
    char *sealed = malloc(size + 1);

    require(sealed != NULL);
    memcpy(sealed, data, size);
    seal_frames(sealed, size, seed_of(world));
    require(det_file_open(world, SEGMENT, DET_FILE_WRITE, &file) == 0);
    require(det_file_truncate(world, file, 4096) == 0);
    require(det_file_write(world, file, 4096, sealed, size) == 0);
    det_file_close(world, file);
    require(det_file_remove(world, FOLDER "/mark") == 0);
    free(sealed);
}

static void read_rows(struct det_journal *journal)
{
    struct det_journal_reader *reader;
    struct det_journal_row row;
    struct det_error error;
    uint64_t last = 0;
    uint8_t sum = 0;

    if (!journal)
        return;
    require(det_journal_reader_open(journal, NULL, &reader, &error) == 0);
    while (det_journal_reader_next(reader, &row, &error) == 1) {
        require(row.position > last && row.position <= det_journal_end(journal));
        require(row.size <= DET_JOURNAL_ROW_MAX);
        for (uint32_t i = 0; i < row.size; i++)
            sum ^= ((const uint8_t *)row.data)[i];
        last = row.position;
    }
    used = sum;
    det_journal_reader_close(reader);
    det_journal_close(journal);
}

static void go_on(struct det_journal *journal)
{
    struct det_journal_row row = { .data = "more", .size = 4 };
    uint64_t at;

    if (!journal)
        return;
    if (det_journal_append(journal, &row, 1, &at, NULL) == 0)
        require(det_journal_wait(journal, at, DET_NEVER) == 0);
    det_journal_close(journal);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct det_sim *sim;
    struct det_world *world;

    if (size > SIZE_MAX_READ)
        return 0;
    require(det_sim_open(NULL, &sim, NULL) == 0);
    world = det_sim_world(sim);
    det_journal_close(open_log(world, false, false));
    write_frames(world, data, size);
    read_rows(open_log(world, true, false));
    read_rows(open_log(world, true, true));
    read_rows(open_log(world, false, false));
    go_on(open_log(world, false, false));
    go_on(open_log(world, false, true));
    read_rows(open_log(world, false, true));
    det_sim_close(sim);
    return 0;
}
