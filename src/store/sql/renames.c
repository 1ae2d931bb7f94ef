/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* renames.c - reads and publishes the renames of a SQL store. */
#include "store/sql/renames.h"

#include "base/assert.h"
#include "os/os.h"

/* Columns of RENAME_LIST. */
enum {
    RENAME_MACHINE,
    RENAME_KIND,
    RENAME_OLD_NAME,
    RENAME_NEW_NAME,
    RENAME_BATCH,
    RENAME_POSITION,
    RENAME_COMPLETE,
};

int det_sql_renames_add(void *context, const struct det_sql_row *row)
{
    const struct det_rename_row rename = {
        .machine = det_sql_text(row, RENAME_MACHINE),
        .kind = det_sql_text(row, RENAME_KIND),
        .from = det_sql_text(row, RENAME_OLD_NAME),
        .to = det_sql_text(row, RENAME_NEW_NAME),
        .batch = det_sql_number(row, RENAME_BATCH),
        .position = det_sql_number(row, RENAME_POSITION),
    };
    int r;

    r = det_sql_check(row, RENAME_COMPLETE);
    return r < 0 ? r : det_renames_add(context, &rename);
}

static size_t count_renames(const struct det_renames *renames)
{
    return renames ? det_renames_count(renames) : 0;
}

size_t det_sql_renames_count(const struct det_store *store)
{
    return count_renames(det_sql_store_of(store)->renames);
}

/* Rows are only added: of two readers the one with more rows has the newer list. */
void det_sql_renames_publish(struct det_store *store, struct det_renames *renames_take)
{
    struct det_sql_store *sql = det_sql_store_of(store);
    bool is_newer;

    det_assert(renames_take != sql->renames);
    det_mutex_lock(store->world, sql->mutex);
    is_newer = count_renames(renames_take) > count_renames(sql->renames);
    if (is_newer) {
        det_renames_replace(renames_take, sql->renames);
        sql->renames = renames_take;
    }
    det_mutex_unlock(store->world, sql->mutex);
    if (!is_newer)
        det_renames_close(renames_take);
}

int det_sql_renames_read(struct det_store *store, struct det_error *reterr)
{
    struct det_renames *renames = det_renames_open(store->allocator);
    const struct det_sql_question question = { .statement = DET_SQL_RENAME_LIST,
                                               .read = det_sql_renames_add,
                                               .context = renames };
    int r;

    if (!renames)
        return DET_ERR_NO_MEMORY;
    r = det_sql_ask(store, &question, 1, reterr);
    if (r == 0) {
        det_sql_renames_publish(store, renames);
        return 0;
    }
    det_renames_close(renames);
    if (reterr && reterr->code != r)
        (void)det_error_set(
            reterr, r, "the renames of the store cannot be read: %s", det_error_text(r));
    return r;
}

void det_sql_renames_close(struct det_store *store)
{
    det_renames_close(det_sql_store_of(store)->renames);
}
