/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* cut.c - goes through a log and builds, for each place, the disks that a power cut may leave.
 *
 * Invariants
 *   1. `durable` and `named` are common to every state of this place.
 *   2. `pending` has the numbers of the operations since, in order; one fate for each of them makes
 *      a state. */
#include "crash/cut.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/test.h"

#define SECTORS_MAX 63 /* of one write */
#define KEPT        ((UINT64_C(1) << SECTORS_MAX) - 1)
#define STRETCHED   (UINT64_C(1) << SECTORS_MAX) /* lost, but the file has its length */

struct walk {
    const struct crash_disk *log;
    const struct crash_cut_options *options;
    struct crash_disk *scratch;
    crash_cut_fn *visit;
    void *context;
    struct crash_bytes *durable; /* per node */
    int named[CRASH_NAMES];      /* the node of each name, -1: none */
    size_t *pending;
    uint64_t *fates; /* of each pending one: its sectors, or STRETCHED; other kinds: 0 or not */
    size_t pending_count;
    uint64_t syncs; /* identifies the durable part */
    struct crash_cut cut;
    uint64_t seed;
    unsigned shards;
    uint64_t *seen; /* a hash set of the states that were returned; 0 is an empty place */
    size_t seen_count, seen_capacity;
};

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t seed = a ^ (b + UINT64_C(0x9e3779b97f4a7c15) + (a << 6) + (a >> 2));

    return det_test_random(&seed);
}

static void *must(void *memory)
{
    if (!memory)
        abort();
    return memory;
}

static size_t seen_place(const uint64_t *seen, size_t capacity, uint64_t state)
{
    size_t at = (size_t)state & (capacity - 1);

    while (seen[at] && seen[at] != state)
        at = (at + 1) & (capacity - 1);
    return at;
}

static void seen_grow(struct walk *walk)
{
    size_t capacity = walk->seen_capacity ? 2 * walk->seen_capacity : 4096;
    uint64_t *seen = must(calloc(capacity, sizeof *seen));

    for (size_t i = 0; i < walk->seen_capacity; i++)
        if (walk->seen[i])
            seen[seen_place(seen, capacity, walk->seen[i])] = walk->seen[i];
    free(walk->seen);
    walk->seen = seen;
    walk->seen_capacity = capacity;
}

/* True the first time. */
static bool seen_add(struct walk *walk, uint64_t state)
{
    size_t at;

    if (2 * (walk->seen_count + 1) > walk->seen_capacity)
        seen_grow(walk);
    at = seen_place(walk->seen, walk->seen_capacity, state);
    if (walk->seen[at])
        return false;
    walk->seen[at] = state;
    walk->seen_count++;
    return true;
}

static bool is_of_folder(const struct crash_op *op)
{
    return op->kind == CRASH_CREATE || op->kind == CRASH_DELETE;
}

static size_t sector_count(const struct crash_op *op)
{
    size_t first = (size_t)(op->offset / CRASH_SECTOR);
    size_t end = (size_t)((op->offset + op->size + CRASH_SECTOR - 1) / CRASH_SECTOR);

    if (op->kind != CRASH_WRITE)
        return 1;
    return end - first < SECTORS_MAX ? end - first : SECTORS_MAX;
}

/* The sectors of a write that were kept; the last bit represents all sectors without a bit. */
static void apply_write(struct crash_bytes *bytes, const struct crash_op *op, uint64_t fate)
{
    size_t done = 0;
    size_t count = sector_count(op);

    if (fate == STRETCHED) {
        if (op->offset + op->size > bytes->size)
            crash_bytes_resize(bytes, op->offset + op->size);
        return;
    }
    if (fate == KEPT) {
        crash_bytes_write(bytes, op->offset, op->data, op->size);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        size_t room = CRASH_SECTOR - (size_t)((op->offset + done) % CRASH_SECTOR);
        size_t size = op->size - done < room || i == count - 1 ? op->size - done : room;

        if (fate >> i & 1)
            crash_bytes_write(bytes, op->offset + done, op->data + done, size);
        done += size;
    }
}

static void apply(struct crash_bytes *bytes, const struct crash_op *op, uint64_t fate)
{
    if (op->kind == CRASH_WRITE)
        apply_write(bytes, op, fate);
    else
        crash_bytes_resize(bytes, op->offset);
}

static void apply_to_folder(int *named, const struct crash_op *op)
{
    named[op->name] = op->kind == CRASH_CREATE ? (int)op->node : -1;
}

/* Builds the disk of the fates in the scratch disk. */
static void build(struct walk *walk)
{
    struct crash_disk *disk = walk->scratch;
    int named[CRASH_NAMES];
    unsigned name;

    memcpy(named, walk->named, sizeof named);
    for (size_t i = 0; i < walk->pending_count; i++)
        if (walk->fates[i] && is_of_folder(&walk->log->ops[walk->pending[i]]))
            apply_to_folder(named, &walk->log->ops[walk->pending[i]]);
    crash_disk_clear(disk);
    for (unsigned i = 0; i < walk->log->name_count; i++) {
        if (named[i] < 0)
            continue;
        name = crash_disk_name(disk, walk->log->names[i].path);
        crash_disk_create(disk, name);
        crash_bytes_copy(&disk->nodes[disk->names[name].node], &walk->durable[named[i]]);
        for (size_t j = 0; j < walk->pending_count; j++) {
            const struct crash_op *op = &walk->log->ops[walk->pending[j]];

            if (walk->fates[j] && !is_of_folder(op) && op->node == (unsigned)named[i])
                apply(&disk->nodes[disk->names[name].node], op, walk->fates[j]);
        }
    }
}

/* Calls the visitor with the state of these fates, unless it was returned before or is another
 * shard's. */
static int give(struct walk *walk)
{
    uint64_t state = mix(walk->syncs, walk->cut.mark);

    for (size_t i = 0; i < walk->pending_count; i++) {
        const struct crash_op *op = &walk->log->ops[walk->pending[i]];
        uint64_t whole = (UINT64_C(1) << sector_count(op)) - 1;

        if (walk->fates[i] != STRETCHED && (walk->fates[i] & whole) == whole)
            walk->fates[i] = KEPT;
        if (walk->fates[i])
            state = mix(state, mix(walk->pending[i], walk->fates[i]));
    }
    if (state % walk->shards != walk->options->shard || !seen_add(walk, state ? state : 1))
        return 0;
    build(walk);
    walk->cut.state = state;
    return walk->visit(walk->context, &walk->cut, walk->scratch);
}

static void fill(struct walk *walk, uint64_t fate)
{
    for (size_t i = 0; i < walk->pending_count; i++)
        walk->fates[i] = fate;
}

/* All but one, and only one. If there are too many, those at both ends. */
static int give_singles(struct walk *walk)
{
    size_t count = walk->pending_count;
    size_t most = walk->options->singles_max ? walk->options->singles_max : 64;
    int r = 0;

    for (size_t i = 0; i < count && r == 0; i++) {
        if (count > most && i >= most / 2 && i < count - most / 2)
            continue;
        fill(walk, KEPT);
        walk->fates[i] = 0;
        r = give(walk);
        if (r == 0) {
            fill(walk, 0);
            walk->fates[i] = KEPT;
            r = give(walk);
        }
    }
    return r;
}

/* The last write torn at each sector, with all others and without them. */
static int give_torn(struct walk *walk)
{
    size_t last = walk->pending_count - 1;
    const struct crash_op *op = &walk->log->ops[walk->pending[last]];
    int r = 0;

    if (op->kind != CRASH_WRITE)
        return 0;
    for (size_t cut = 1; cut < sector_count(op) && r == 0; cut++) {
        uint64_t part = (UINT64_C(1) << cut) - 1;

        fill(walk, KEPT);
        walk->fates[last] = part;
        r = give(walk);
        walk->fates[last] = KEPT & ~part;
        if (r == 0)
            r = give(walk);
    }
    if (r == 0) {
        fill(walk, KEPT);
        walk->fates[last] = STRETCHED;
        r = give(walk);
    }
    return r;
}

static uint64_t random_fate(struct walk *walk)
{
    uint64_t chance = det_test_random(&walk->seed);

    switch (chance & 7) {
    case 0:
    case 1:
    case 2:
        return KEPT;
    case 3:
    case 4:
        return 0;
    case 5:
        return STRETCHED;
    default:
        return det_test_random(&walk->seed) & KEPT;
    }
}

static int give_chances(struct walk *walk)
{
    int r = 0;

    for (unsigned i = 0; i < walk->options->chances && r == 0; i++) {
        for (size_t j = 0; j < walk->pending_count; j++) {
            uint64_t fate = random_fate(walk);

            if (walk->log->ops[walk->pending[j]].kind != CRASH_WRITE)
                fate = fate & 1 ? KEPT : 0;
            walk->fates[j] = fate;
        }
        r = give(walk);
    }
    return r;
}

/* All states of one place. */
static int give_place(struct walk *walk)
{
    int r;

    fill(walk, 0);
    r = give(walk);
    if (r == 0) {
        fill(walk, KEPT);
        r = give(walk);
    }
    if (r == 0 && !walk->options->is_brief)
        r = give_singles(walk);
    if (r == 0 && !walk->options->is_brief && walk->pending_count > 0)
        r = give_torn(walk);
    if (r == 0)
        r = give_chances(walk);
    return r;
}

/* The pending operations of one file, or of the folder, become durable or are dropped. */
static void settle(struct walk *walk, const struct crash_op *sync, size_t number)
{
    size_t left = 0;

    for (size_t i = 0; i < walk->pending_count; i++) {
        const struct crash_op *op = &walk->log->ops[walk->pending[i]];

        if (sync->kind == CRASH_FOLDER_SYNC ? !is_of_folder(op)
                                            : is_of_folder(op) || op->node != sync->node)
            walk->pending[left++] = walk->pending[i];
        else if (sync->kind == CRASH_FOLDER_SYNC)
            apply_to_folder(walk->named, op);
        else if (sync->kind == CRASH_SYNC)
            apply(&walk->durable[op->node], op, KEPT);
    }
    if (left < walk->pending_count)
        walk->syncs = mix(walk->syncs, number);
    walk->pending_count = left;
}

static void take(struct walk *walk, size_t number)
{
    const struct crash_op *op = &walk->log->ops[number];

    switch (op->kind) {
    case CRASH_WRITE:
    case CRASH_TRUNCATE:
    case CRASH_CREATE:
    case CRASH_DELETE:
        walk->pending[walk->pending_count++] = number;
        break;
    case CRASH_SYNC:
    case CRASH_DROP:
    case CRASH_FOLDER_SYNC:
        settle(walk, op, number + 1);
        break;
    case CRASH_MARK:
        walk->cut.mark = op->offset;
        break;
    }
}

static void walk_free(struct walk *walk)
{
    for (unsigned i = 0; i < CRASH_NODES; i++)
        free(walk->durable[i].data);
    free(walk->durable);
    free(walk->pending);
    free(walk->fates);
    free(walk->seen);
}

static bool is_wanted(const struct crash_cut_options *options, size_t place, size_t last)
{
    return options->stride == 0 || place == last || (place + options->seed) % options->stride == 0;
}

int crash_cut_each(
    const struct crash_disk *log, const struct crash_cut_options *options,
    struct crash_disk *scratch, crash_cut_fn *visit, void *context, uint64_t *ret)
{
    struct walk walk = { .log = log,
                         .options = options,
                         .scratch = scratch,
                         .visit = visit,
                         .context = context,
                         .seed = options->seed,
                         .shards = options->shard_count ? options->shard_count : 1 };
    int r = 0;

    walk.durable = must(calloc(CRASH_NODES, sizeof *walk.durable));
    walk.pending = must(calloc(log->op_count + 1, sizeof *walk.pending));
    walk.fates = must(calloc(log->op_count + 1, sizeof *walk.fates));
    for (unsigned i = 0; i < CRASH_NAMES; i++)
        walk.named[i] = -1;
    for (size_t i = 0; i <= log->op_count && r == 0; i++) {
        walk.cut.place = i;
        if (i >= options->first && is_wanted(options, i, log->op_count))
            r = give_place(&walk);
        if (i < log->op_count)
            take(&walk, i);
    }
    if (ret)
        *ret = walk.seen_count;
    walk_free(&walk);
    return r;
}
