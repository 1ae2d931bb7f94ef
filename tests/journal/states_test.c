/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* states_test.c - every state in which a power cut may leave the files of a journal: the operations
 * of a scenario are recorded; after each one, any subset of what was not synced may be on the disk,
 * and the last write may be torn. JOURNAL_STATES sets how many of the last operations are tried in
 * all combinations.
 *
 *     operations:  open write write sync | write rename write ...      | crash
 *                  durable ............. | each one kept or lost       |
 */
#include "journal/disk_test.h"

#define NAMES_MAX      24
#define NODES_MAX      40
#define OPERATIONS_MAX 4000
#define NODE_SIZE_MAX  (1u << 20)

enum kind { WRITE, TRUNCATE, NAME, SYNC, FOLDER_SYNC, ACKNOWLEDGE };

struct operation {
    enum kind kind;
    int node, name; /* NAME: the name leads to the node; -1: to none */
    uint64_t offset, size;
    char *data;
    uint64_t acknowledged, appended; /* positions, so far */
};

struct node {
    char *data;
    uint64_t size;
};

struct recorder {
    struct det_world_ops ops; /* the first member: the world's ops lead here */
    struct det_world *world;
    const struct det_world_ops *real;
    struct operation operations[OPERATIONS_MAX];
    size_t count;
    char names[NAMES_MAX][64];
    int current[NAMES_MAX]; /* node of each name */
    size_t name_count, node_count;
    struct det_file *files[64];
    int file_nodes[64];
    uint64_t acknowledged, appended;
};

static struct recorder *recorder_of(struct det_world *world)
{
    return (struct recorder *)(uintptr_t)world->ops;
}

static struct operation *record(struct recorder *recorder, enum kind kind, int node)
{
    struct operation *operation = &recorder->operations[recorder->count++];

    assert_true(recorder->count < OPERATIONS_MAX);
    *operation = (struct operation){
        .kind = kind,
        .node = node,
        .acknowledged = recorder->acknowledged,
        .appended = recorder->appended,
    };
    return operation;
}

static int name_of(struct recorder *recorder, const char *path)
{
    size_t i = 0;

    while (i < recorder->name_count && strcmp(recorder->names[i], path) != 0)
        i++;
    if (i == recorder->name_count) {
        assert_true(i < NAMES_MAX);
        (void)snprintf(recorder->names[i], sizeof recorder->names[i], "%s", path);
        recorder->current[i] = -1;
        recorder->name_count++;
    }
    return (int)i;
}

static void set_name(struct recorder *recorder, int name, int node)
{
    record(recorder, NAME, node)->name = name;
    recorder->current[name] = node;
}

static int node_of(struct recorder *recorder, const struct det_file *file)
{
    for (int i = 0; i < 64; i++) {
        if (recorder->files[i] == file)
            return recorder->file_nodes[i];
    }
    fail_msg("an operation on an unknown file");
    return -1;
}

static int record_open(
    struct det_world *world, const char *path, unsigned flags, struct det_file **ret)
{
    struct recorder *recorder = recorder_of(world);
    int name = name_of(recorder, path), i = 0;
    int r;

    r = recorder->real->file_open(world, path, flags, ret);
    if (r < 0)
        return r;
    if (recorder->current[name] < 0) {
        assert_true(recorder->node_count < NODES_MAX);
        set_name(recorder, name, (int)recorder->node_count++);
    }
    while (recorder->files[i])
        assert_true(++i < 64);
    recorder->files[i] = *ret;
    recorder->file_nodes[i] = recorder->current[name];
    return 0;
}

static void record_close(struct det_world *world, struct det_file *file)
{
    struct recorder *recorder = recorder_of(world);

    for (int i = 0; i < 64; i++) {
        if (recorder->files[i] == file)
            recorder->files[i] = NULL;
    }
    recorder->real->file_close(world, file);
}

static int record_write(
    struct det_world *world, struct det_file *file, uint64_t offset, const void *data, size_t size)
{
    struct recorder *recorder = recorder_of(world);
    struct operation *operation = record(recorder, WRITE, node_of(recorder, file));

    operation->offset = offset;
    operation->size = size;
    operation->data = malloc(size);
    assert_non_null(operation->data);
    memcpy(operation->data, data, size);
    return recorder->real->file_write(world, file, offset, data, size);
}

static int record_truncate(struct det_world *world, struct det_file *file, uint64_t size)
{
    struct recorder *recorder = recorder_of(world);

    record(recorder, TRUNCATE, node_of(recorder, file))->size = size;
    return recorder->real->file_truncate(world, file, size);
}

static int record_sync(struct det_world *world, struct det_file *file)
{
    struct recorder *recorder = recorder_of(world);

    (void)record(recorder, SYNC, node_of(recorder, file));
    return recorder->real->file_sync(world, file);
}

static int record_rename(struct det_world *world, const char *from, const char *to)
{
    struct recorder *recorder = recorder_of(world);
    int source = name_of(recorder, from), target = name_of(recorder, to);
    int r;

    r = recorder->real->file_rename(world, from, to);
    if (r < 0)
        return r;
    /* Both changes of a rename are one: kept or lost together. */
    record(recorder, NAME, recorder->current[source])->name = target;
    recorder->operations[recorder->count - 1].offset = 1 + (uint64_t)source;
    recorder->current[target] = recorder->current[source];
    recorder->current[source] = -1;
    return 0;
}

static int record_remove(struct det_world *world, const char *path)
{
    struct recorder *recorder = recorder_of(world);
    int r;

    r = recorder->real->file_remove(world, path);
    if (r == 0)
        set_name(recorder, name_of(recorder, path), -1);
    return r;
}

static int record_folder_sync(struct det_world *world, const char *path)
{
    struct recorder *recorder = recorder_of(world);

    (void)record(recorder, FOLDER_SYNC, -1);
    return recorder->real->folder_sync(world, path);
}

static void recorder_open(struct recorder *recorder, struct det_world *world)
{
    recorder->ops = *world->ops;
    recorder->world = world;
    recorder->real = world->ops;
    recorder->ops.file_open = record_open;
    recorder->ops.file_close = record_close;
    recorder->ops.file_write = record_write;
    recorder->ops.file_truncate = record_truncate;
    recorder->ops.file_sync = record_sync;
    recorder->ops.file_rename = record_rename;
    recorder->ops.file_remove = record_remove;
    recorder->ops.folder_sync = record_folder_sync;
    world->ops = &recorder->ops;
}

/* The disk at a crash. */
struct state {
    struct node nodes[NODES_MAX];
    int names[NAMES_MAX];
};

static void apply(struct state *state, const struct operation *operation, uint64_t size)
{
    struct node *node = operation->node < 0 ? NULL : &state->nodes[operation->node];

    switch (operation->kind) {
    case WRITE:
        assert_true(operation->offset + size <= NODE_SIZE_MAX);
        if (size > 0)
            memcpy(node->data + operation->offset, operation->data, size);
        if (operation->offset + size > node->size)
            node->size = operation->offset + size;
        break;
    case TRUNCATE:
        if (operation->size < node->size)
            memset(node->data + operation->size, 0, node->size - operation->size);
        node->size = operation->size;
        break;
    case NAME:
        state->names[operation->name] = operation->node;
        if (operation->offset > 0)
            state->names[operation->offset - 1] = -1;
        break;
    case SYNC:
    case FOLDER_SYNC:
    case ACKNOWLEDGE:
        break;
    }
}

/* Which operations are not synced at the crash; returns their number. */
static size_t find_unsynced(const struct recorder *recorder, size_t crash, size_t *ret)
{
    size_t count = 0;

    for (size_t i = 0; i < crash; i++) {
        const struct operation *operation = &recorder->operations[i];
        bool is_name = operation->kind == NAME, is_synced = false;

        if (!is_name && operation->kind != WRITE && operation->kind != TRUNCATE)
            continue;
        for (size_t j = i + 1; j < crash && !is_synced; j++) {
            const struct operation *later = &recorder->operations[j];

            is_synced = is_name ? later->kind == FOLDER_SYNC
                                : later->kind == SYNC && later->node == operation->node;
        }
        if (!is_synced)
            ret[count++] = i;
    }
    return count;
}

static void check_state(
    const struct recorder *recorder, const struct state *state, const struct operation *last)
{
    struct det_journal_options options = { .segment_size = 65536, .buffer_size = 4096 };
    struct det_sim *sim = open_sim(1);
    struct det_world *world = det_sim_world(sim);
    struct det_journal *journal;
    uint64_t end;

    for (size_t i = 0; i < recorder->name_count; i++) {
        const struct node *node = &state->nodes[state->names[i] < 0 ? 0 : state->names[i]];

        if (state->names[i] >= 0)
            store_bytes(
                world, recorder->names[i] + strlen(FOLDER) + 1, node->data, (size_t)node->size);
    }
    journal = must_open(world, &options);
    end = det_journal_end(journal);
    assert_true(end >= last->acknowledged);
    assert_true(end <= last->appended);
    assert_int_equal(end + 1, read_numbers(journal, 0));
    append_groups(journal, 2, 2);
    assert_int_equal(end + 4, read_numbers(journal, 0));
    det_journal_close(journal);
    det_sim_close(sim);
}

static void copy_state(const struct recorder *recorder, struct state *to, const struct state *from)
{
    memcpy(to->names, from->names, sizeof to->names);
    for (size_t i = 0; i < recorder->node_count; i++) {
        if (to->nodes[i].size > from->nodes[i].size)
            memset(
                to->nodes[i].data + from->nodes[i].size, 0,
                to->nodes[i].size - from->nodes[i].size);
        memcpy(to->nodes[i].data, from->nodes[i].data, from->nodes[i].size);
        to->nodes[i].size = from->nodes[i].size;
    }
}

/* All states of one crash; returns their number. */
static uint64_t check_crash(
    const struct recorder *recorder, size_t crash, size_t deep, struct state *base,
    struct state *state)
{
    static size_t unsynced[OPERATIONS_MAX];
    const struct operation *last = &recorder->operations[crash - 1];
    size_t count = find_unsynced(recorder, crash, unsynced), next = 0;
    size_t tail = count < deep ? count : deep;
    uint64_t states = 0;

    /* Older unsynced operations: all kept, or none. */
    for (int keeps_old = 0; keeps_old < (count > tail ? 2 : 1); keeps_old++) {
        for (uint64_t subset = 0; subset < (uint64_t)1 << tail; subset++) {
            copy_state(recorder, state, base);
            for (size_t i = next = 0; i < crash; i++) {
                const struct operation *operation = &recorder->operations[i];
                bool is_unsynced = next < count && unsynced[next] == i;
                size_t place = is_unsynced ? next++ : 0;
                bool is_kept =
                    !is_unsynced ||
                    (place < count - tail ? keeps_old == 1
                                          : (subset >> (place - (count - tail)) & 1) != 0);
                bool is_torn = is_unsynced && !is_kept && place + 1 == count && subset % 2 == 1;

                if (is_kept)
                    apply(state, operation, operation->size);
                else if (is_torn && operation->kind == WRITE)
                    apply(state, operation, operation->size / 1024 * 512);
            }
            check_state(recorder, state, last);
            states++;
        }
    }
    return states;
}

static void run_scenario(struct recorder *recorder)
{
    struct det_journal_options options = { .segment_size = 65536, .buffer_size = 4096 };
    struct det_journal *journal;
    uint64_t at;

    for (int life = 0; life < 2; life++) {
        journal = must_open(recorder->world, &options);
        for (unsigned i = 0; i < 34; i++) {
            /* Small groups at first; then segments are filled and dropped. */
            recorder->appended += i % 17 < 4 ? 2 : 60;
            assert_int_equal(0, append_numbers(journal, i % 17 < 4 ? 2 : 60, &at));
            assert_int_equal(0, det_journal_wait(journal, at, DET_NEVER));
            recorder->acknowledged = at;
            (void)record(recorder, ACKNOWLEDGE, -1);
            if (i % 17 == 2)
                assert_int_equal(0, det_journal_release(journal, at));
        }
        det_journal_close(journal);
        (void)record(recorder, ACKNOWLEDGE, -1);
    }
}

static void journal_survives_a_power_cut_after_each_operation(void **state)
{
    const char *text = getenv("JOURNAL_STATES");
    size_t deep = text ? strtoul(text, NULL, 10) : 3;
    struct recorder *recorder = calloc(1, sizeof *recorder);
    struct state base = { .names = { 0 } }, made = { .names = { 0 } };
    struct det_sim *sim = open_sim(1);
    uint64_t states = 0;

    (void)state;
    assert_non_null(recorder);
    recorder_open(recorder, det_sim_world(sim));
    run_scenario(recorder);
    recorder->world->ops = recorder->real;
    for (size_t i = 0; i < recorder->node_count; i++) {
        base.nodes[i].data = calloc(1, NODE_SIZE_MAX);
        made.nodes[i].data = calloc(1, NODE_SIZE_MAX);
    }
    memset(base.names, -1, sizeof base.names);
    for (size_t crash = 1; crash <= recorder->count; crash += text ? 1 : 3)
        states += check_crash(recorder, crash, deep, &base, &made);
    print_message(
        "             %zu operations, %llu states\n", recorder->count, (unsigned long long)states);
    assert_true(states > 500);
    for (size_t i = 0; i < recorder->node_count; i++) {
        free(base.nodes[i].data);
        free(made.nodes[i].data);
    }
    for (size_t i = 0; i < recorder->count; i++)
        free(recorder->operations[i].data);
    free(recorder);
    det_sim_close(sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(journal_survives_a_power_cut_after_each_operation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
