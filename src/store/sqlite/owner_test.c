/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* owner_test.c - the owner of the files of a store created by root, and links in their place. */
#include "store/sqlite/sqlite_test.h"

/* A user and a group that need no names: only root can be them for a while. */
enum { OWNER = 65534, OWNER_GROUP = 65533 };

static void need_root(void)
{
    if (geteuid() == 0)
        return;
    print_message("skipped: only root can give a file to another user\n");
    skip();
}

static void become(uid_t user)
{
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(seteuid(user), 0);
}

static void assert_owner(const char *path, const char *suffix, uid_t user, gid_t group)
{
    char whole[300];
    struct stat status;

    snprintf(whole, sizeof whole, "%s%s", path, suffix);
    if (lstat(whole, &status) < 0)
        fail_msg("%s is not there", whole);
    if (status.st_uid != user || status.st_gid != group || (status.st_mode & 07777) != 0600)
        fail_msg(
            "%s: user %u, group %u, mode %o", whole, status.st_uid, status.st_gid, status.st_mode);
}

static void a_store_that_root_makes_belongs_to_the_owner_of_its_folder(void **state)
{
    static const char *const suffixes[] = { "", "-wal", "-shm", ".lock", ".mark" };
    struct shelf shelf;
    struct found found;

    (void)state;
    need_root();
    shelf_init(&shelf);
    assert_int_equal(chown(shelf.folder, OWNER, OWNER_GROUP), 0);
    assert_int_equal(shelf_open(&shelf), 0);
    assert_int_equal(shelf_start(&shelf), 0);
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++)
        assert_owner(shelf.path, suffixes[i], OWNER, OWNER_GROUP);
    shelf_close(&shelf);
    become(OWNER);
    assert_int_equal(shelf_reopen(&shelf, &found), 0);
    shelf_close(&shelf);
    become(0);
    shelf_deinit(&shelf);
}

static void existing_files_keep_their_owner(void **state)
{
    char link[300], target[300];
    struct shelf shelf;

    (void)state;
    need_root();
    shelf_init(&shelf);
    det_test_write_file(shelf.path, "", 0);
    assert_int_equal(chmod(shelf.path, 0600), 0);
    assert_int_equal(chown(shelf.folder, OWNER, OWNER_GROUP), 0);
    assert_int_equal(shelf_open(&shelf), 0);
    shelf_close(&shelf);
    assert_owner(shelf.path, "", 0, 0);
    /* The owner of the folder says which file is made, and must not get it. */
    snprintf(link, sizeof link, "%s/link.db", shelf.folder);
    snprintf(target, sizeof target, "%s/target.db", shelf.folder);
    snprintf(shelf.url, sizeof shelf.url, "sqlite:%s", link);
    assert_int_equal(symlink(target, link), 0);
    assert_int_equal(shelf_open(&shelf), 0);
    shelf_close(&shelf);
    assert_owner(target, "", 0, 0);
    shelf_deinit(&shelf);
}

static void a_link_in_place_of_the_lock_or_mark_is_not_followed(void **state)
{
    static const char text[] = "a letter to somebody";
    char letter[300], beside[300], *after;
    struct shelf shelf;
    size_t size;

    (void)state;
    shelf_init(&shelf);
    snprintf(letter, sizeof letter, "%s/letter", shelf.folder);
    det_test_write_file(letter, text, sizeof text);
    assert_int_equal(chmod(letter, 0400), 0);
    snprintf(beside, sizeof beside, "%s.lock", shelf.path);
    assert_int_equal(symlink(letter, beside), 0);
    assert_int_equal(shelf_open(&shelf), geteuid() == 0 ? DET_ERR_IO : DET_ERR_READ_ONLY);
    assert_non_null(strstr(shelf.error.text, beside));
    assert_int_equal(unlink(beside), 0);
    snprintf(beside, sizeof beside, "%s.mark", shelf.path);
    assert_int_equal(symlink(letter, beside), 0);
    assert_int_equal(shelf_open(&shelf), 0);
    shelf_close(&shelf);
    after = det_test_read_file(letter, &size);
    assert_int_equal(size, sizeof text);
    assert_memory_equal(after, text, size);
    free(after);
    shelf_deinit(&shelf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_store_that_root_makes_belongs_to_the_owner_of_its_folder),
        cmocka_unit_test(existing_files_keep_their_owner),
        cmocka_unit_test(a_link_in_place_of_the_lock_or_mark_is_not_followed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
