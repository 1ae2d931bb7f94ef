/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* table.c - states by key and their changelog; see table.h. */
#include "flow/table.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/hash.h"
#include "base/memory.h"

/* Rows of the changelog that do no harm however few keys there are. */
#define SLACK 64
/* Positions in the log since the oldest state, for each key and altogether, that do no harm: the
 * log has other rows, too. */
#define POSITIONS_PER_KEY 16
#define POSITIONS_SLACK   65536

struct det_flow_table {
    const struct det_allocator *allocator;
    const struct det_record *record;
    size_t value_size, value_max;
    struct det_table_entry **chains;
    size_t capacity; /* power of two */
    uint64_t count;
    struct det_list all, order, changed;
    struct det_list gone;   /* removed, not written yet: linked by `changed` */
    uint64_t rows_written;  /* rows of the changelog, with the turn under way */
    uint64_t last_position; /* not after the rows of the turn under way */
};

int det_table_open(
    const struct det_allocator *allocator, const struct det_record *record,
    struct det_flow_table **ret)
{
    struct det_flow_table *table = DET_NEW(allocator, struct det_flow_table);

    if (!table)
        return DET_ERR_NO_MEMORY;
    table->allocator = allocator;
    table->record = record;
    table->value_size = record->size;
    table->value_max = det_record_encoded_max(record);
    table->capacity = 16;
    table->last_position = 1;
    det_list_init(&table->all);
    det_list_init(&table->order);
    det_list_init(&table->changed);
    det_list_init(&table->gone);
    table->chains = DET_NEW_ARRAY(allocator, table->capacity, struct det_table_entry *);
    if (!table->chains) {
        DET_DELETE(allocator, table);
        return DET_ERR_NO_MEMORY;
    }
    *ret = table;
    return 0;
}

static size_t entry_size(const struct det_flow_table *table, size_t key_size)
{
    return ((sizeof(struct det_table_entry) + 15) & ~(size_t)15) +
           ((table->value_size + 15) & ~(size_t)15) + key_size + 1;
}

static void free_entry(struct det_flow_table *table, struct det_table_entry *entry)
{
    det_free(table->allocator, entry, entry_size(table, entry->key_size));
}

void det_table_close(struct det_flow_table *table)
{
    struct det_list *link;

    if (!table)
        return;
    while ((link = det_list_take(&table->all)))
        free_entry(table, DET_CONTAINER(link, struct det_table_entry, all));
    while ((link = det_list_take(&table->gone)))
        free_entry(table, DET_CONTAINER(link, struct det_table_entry, changed));
    DET_DELETE_ARRAY(table->allocator, table->chains, table->capacity);
    DET_DELETE(table->allocator, table);
}

uint64_t det_table_count(const struct det_flow_table *table)
{
    return table->count;
}

static uint64_t hash_key(struct det_view key)
{
    return det_hash64(key.data, key.size, 0);
}

static struct det_table_entry **chain_of(const struct det_flow_table *table, uint64_t hash)
{
    return &table->chains[hash & (table->capacity - 1)];
}

static struct det_table_entry *find_entry(
    const struct det_flow_table *table, struct det_view key, uint64_t hash)
{
    struct det_table_entry *entry = *chain_of(table, hash);

    while (entry && (entry->hash != hash || entry->key_size != key.size ||
                     memcmp(entry->key, key.data, key.size) != 0))
        entry = entry->next;
    return entry;
}

struct det_table_entry *det_table_get(const struct det_flow_table *table, struct det_view key)
{
    return find_entry(table, key, hash_key(key));
}

/* Without memory the chains get longer. */
static void grow_chains(struct det_flow_table *table)
{
    size_t old_capacity = table->capacity;
    struct det_table_entry **old = table->chains;
    struct det_table_entry **chains;

    chains = DET_NEW_ARRAY(table->allocator, 2 * old_capacity, struct det_table_entry *);
    if (!chains)
        return;
    table->chains = chains;
    table->capacity = 2 * old_capacity;
    DET_LIST_EACH(link, &table->all)
    {
        struct det_table_entry *entry = DET_CONTAINER(link, struct det_table_entry, all);
        struct det_table_entry **chain = chain_of(table, entry->hash);

        entry->next = *chain;
        *chain = entry;
    }
    DET_DELETE_ARRAY(table->allocator, old, old_capacity);
}

struct det_table_entry *det_table_put(struct det_flow_table *table, struct det_view key)
{
    struct det_table_entry *entry, **chain;
    unsigned char *memory;
    char *copy;

    memory = det_alloc_zero(table->allocator, entry_size(table, key.size));
    if (!memory)
        return NULL;
    if (table->count >= table->capacity)
        grow_chains(table);
    entry = (struct det_table_entry *)(void *)memory;
    entry->value = memory + ((sizeof *entry + 15) & ~(size_t)15);
    copy = (char *)entry->value + ((table->value_size + 15) & ~(size_t)15);
    if (key.size > 0)
        memcpy(copy, key.data, key.size);
    entry->key = copy;
    entry->key_size = (uint32_t)key.size;
    entry->hash = hash_key(key);
    chain = chain_of(table, entry->hash);
    entry->next = *chain;
    *chain = entry;
    det_list_append(&table->all, &entry->all);
    det_list_init(&entry->order);
    det_list_init(&entry->changed);
    table->count++;
    return entry;
}

void det_table_change(struct det_flow_table *table, struct det_table_entry *entry)
{
    det_list_remove(&entry->all);
    det_list_append(&table->all, &entry->all);
    if (entry->is_changed)
        return;
    entry->is_changed = true;
    det_list_append(&table->changed, &entry->changed);
}

static void unlink_chain(struct det_flow_table *table, struct det_table_entry *entry)
{
    struct det_table_entry **link = chain_of(table, entry->hash);

    while (*link != entry)
        link = &(*link)->next;
    *link = entry->next;
}

void det_table_remove(struct det_flow_table *table, struct det_table_entry *entry)
{
    unlink_chain(table, entry);
    det_list_remove(&entry->all);
    det_list_remove(&entry->order);
    det_list_remove(&entry->changed);
    table->count--;
    if (entry->written_row == 0)
        free_entry(table, entry);
    else
        det_list_append(&table->gone, &entry->changed);
}

struct det_table_entry *det_table_after(
    const struct det_flow_table *table, const struct det_table_entry *entry)
{
    struct det_list *next = entry ? entry->all.next : table->all.next;

    return next == &table->all ? NULL : DET_CONTAINER(next, struct det_table_entry, all);
}

static struct det_view key_of(const struct det_table_entry *entry)
{
    return det_view_of(entry->key, entry->key_size);
}

static int write_entry(
    struct det_flow_table *table, struct det_flow_turn *turn, uint16_t stream,
    struct det_table_entry *entry)
{
    struct det_state_row row = {
        .key = key_of(entry),
        .rows = entry->rows,
        .position = entry->position,
        .correlation = entry->correlation,
    };
    size_t size;
    int64_t more;
    int r;

    r = det_flow_turn_reserve(turn, det_state_row_max(row.key.size, table->value_max));
    if (r < 0)
        return r;
    size = det_state_row_write(&row, turn->bytes + turn->size);
    more = det_record_encode(
        table->record, entry->value, turn->bytes + turn->size + size, table->value_max, NULL);
    if (more < 0)
        return (int)more;
    (void)det_flow_turn_add(turn, stream, DET_ROW_STATE, size + (size_t)more);
    entry->written_row = ++table->rows_written;
    entry->written_at = table->last_position;
    entry->is_changed = false;
    det_list_remove(&entry->changed);
    det_list_remove(&entry->order);
    det_list_append(&table->order, &entry->order);
    return 0;
}

static int write_gone(
    struct det_flow_table *table, struct det_flow_turn *turn, uint16_t stream,
    const struct det_table_entry *entry)
{
    int r;

    r = det_flow_turn_reserve(turn, det_gone_row_max(entry->key_size));
    if (r < 0)
        return r;
    (void)det_flow_turn_add(
        turn, stream, DET_ROW_GONE, det_gone_row_write(key_of(entry), turn->bytes + turn->size));
    table->rows_written++;
    return 0;
}

static struct det_table_entry *oldest_of(const struct det_flow_table *table)
{
    if (det_list_is_empty(&table->order))
        return NULL;
    return DET_CONTAINER(table->order.next, struct det_table_entry, order);
}

static bool is_too_old(const struct det_flow_table *table, const struct det_table_entry *entry)
{
    return table->rows_written - entry->written_row > 2 * table->count + SLACK ||
           table->last_position - entry->written_at >
               POSITIONS_PER_KEY * table->count + POSITIONS_SLACK;
}

int det_table_write(
    struct det_flow_table *table, struct det_flow_turn *turn, uint16_t stream, uint64_t end)
{
    struct det_list *link;
    size_t before = turn->count, rewritten;
    int r = 0;

    table->last_position = end + 1;
    while (r == 0 && (link = det_list_take(&table->gone))) {
        struct det_table_entry *entry = DET_CONTAINER(link, struct det_table_entry, changed);

        r = write_gone(table, turn, stream, entry);
        free_entry(table, entry);
    }
    while (r == 0 && !det_list_is_empty(&table->changed))
        r = write_entry(
            table, turn, stream,
            DET_CONTAINER(table->changed.next, struct det_table_entry, changed));
    rewritten = before == turn->count ? 0 : turn->count - before + 1;
    for (struct det_table_entry *oldest = oldest_of(table);
         r == 0 && rewritten > 0 && oldest && is_too_old(table, oldest);
         oldest = oldest_of(table), rewritten--)
        r = write_entry(table, turn, stream, oldest);
    return r;
}

static uint64_t first_needed(const struct det_flow_table *table)
{
    const struct det_table_entry *oldest = oldest_of(table);

    return oldest ? oldest->written_at : table->last_position;
}

void det_table_progress(const struct det_flow_table *table, struct det_flow_progress *progress)
{
    progress->state_rows = table->rows_written;
    progress->state_from = first_needed(table);
}

void det_table_published(const struct det_flow_table *table, struct det_stage_kept *kept)
{
    kept->state_rows = table->rows_written;
    kept->state_from = first_needed(table);
}

static int restore_state(
    struct det_flow_table *table, const struct det_journal_row *row, struct det_error *reterr)
{
    struct det_state_row state;
    struct det_table_entry *entry;
    int r;

    r = det_state_row_read(row->data, row->size, &state);
    if (r < 0)
        return det_error_set(
            reterr, r, "row %llu is not a state", (unsigned long long)row->position);
    entry = det_table_get(table, state.key);
    if (!entry)
        entry = det_table_put(table, state.key);
    if (!entry)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory for the states of a stage");
    r = det_record_decode(table->record, state.state, state.state_size, entry->value, reterr);
    if (r < 0)
        return r;
    entry->rows = state.rows;
    entry->position = state.position;
    entry->correlation = state.correlation;
    entry->written_row = ++table->rows_written;
    entry->written_at = row->position;
    det_list_remove(&entry->order);
    det_list_append(&table->order, &entry->order);
    return 0;
}

int det_table_restore(
    struct det_flow_table *table, const struct det_journal_row *row, struct det_error *reterr)
{
    struct det_table_entry *entry;
    struct det_view key;
    int r;

    table->last_position = row->position + 1;
    if (row->kind == DET_ROW_STATE)
        return restore_state(table, row, reterr);
    if (row->kind != DET_ROW_GONE)
        return 0;
    r = det_gone_row_read(row->data, row->size, &key);
    if (r < 0)
        return det_error_set(
            reterr, r, "row %llu is not a state", (unsigned long long)row->position);
    table->rows_written++;
    entry = det_table_get(table, key);
    if (!entry)
        return 0;
    entry->written_row = 0;
    det_table_remove(table, entry);
    return 0;
}

static int compare_positions(const void *a, const void *b)
{
    const struct det_table_entry *const *left = a, *const *right = b;

    return ((*left)->position > (*right)->position) - ((*left)->position < (*right)->position);
}

/* The order in the log is another one: old states were written again. */
static int sort_by_position(struct det_flow_table *table)
{
    struct det_table_entry **entries;
    struct det_list *link;
    size_t count = 0;

    entries = DET_NEW_ARRAY(table->allocator, table->count, struct det_table_entry *);
    if (!entries)
        return DET_ERR_NO_MEMORY;
    while ((link = det_list_take(&table->all)))
        entries[count++] = DET_CONTAINER(link, struct det_table_entry, all);
    if (count > 0)
        qsort(entries, count, sizeof *entries, compare_positions);
    for (size_t i = 0; i < count; i++)
        det_list_append(&table->all, &entries[i]->all);
    DET_DELETE_ARRAY(table->allocator, entries, count);
    return 0;
}

/* Numbers of rows were counted from the first one that was read. */
int det_table_restored(struct det_flow_table *table, const struct det_stage_kept *kept)
{
    uint64_t before =
        kept->state_rows > table->rows_written ? kept->state_rows - table->rows_written : 0;

    DET_LIST_EACH(link, &table->order)
    DET_CONTAINER(link, struct det_table_entry, order)->written_row += before;
    table->rows_written += before;
    return sort_by_position(table);
}
