/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* socket_place_test.c - where the local socket is, and who may make it. */
#include "terminal/folder_test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "config/socket_place.h"

static void make_folder(struct fixture *fixture, const char *name)
{
    assert_int_equal(mkdir(path_of(fixture, name), 0755), 0);
}

static void project_is_the_nearest_folder_upwards(void **state)
{
    struct fixture *fixture = *state;
    char found[DET_PATH_MAX], *real;
    struct det_error error;

    make_folder(fixture, "a");
    make_folder(fixture, "a/b");
    make_folder(fixture, "a/b/c");
    assert_int_equal(socket_find(path_of(fixture, "a/b"), found, &error), DET_ERR_NOT_FOUND);
    assert_non_null(strstr(error.text, "there is no detent.yaml here or in a folder above"));
    put_text(fixture, "a/detent.yaml", "");
    /* A folder with that name does not count. */
    make_folder(fixture, "a/b/detent.yaml");
    assert_int_equal(socket_find(path_of(fixture, "a/b/c"), found, &error), 0);
    real = realpath(path_of(fixture, "a"), NULL);
    assert_string_equal(found, real);
    free(real);
    assert_int_equal(socket_find(path_of(fixture, "none"), found, &error), DET_ERR_IO);
    assert_int_equal(socket_find("/", found, &error), DET_ERR_NOT_FOUND);
}

static void one_daemon_listens_and_others_connect(void **state)
{
    struct fixture *fixture = *state;
    struct socket_listener listener, second;
    struct det_error error = { 0 };
    struct stat status;
    uid_t peer = 12345;
    int descriptor;

    assert_int_equal(socket_connect(fixture->folder, &descriptor, &error), DET_ERR_NOT_FOUND);
    assert_non_null(strstr(error.text, ": no detent is running here; start it with `detent up`"));
    assert_int_equal(socket_listen(fixture->folder, &listener, &error), 0);
    assert_int_equal(stat(path_of(fixture, ".detent"), &status), 0);
    assert_int_equal(status.st_mode & 0777, 0700);
    assert_int_equal(stat(path_of(fixture, ".detent/detent.sock"), &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    assert_int_equal(socket_connect(fixture->folder, &descriptor, &error), 0);
    assert_int_equal(socket_peer(descriptor, &peer), 0);
    assert_int_equal(peer, geteuid());
    assert_int_equal(socket_peer(listener.lock, &peer), DET_ERR_IO);
    close(descriptor);
    assert_int_equal(socket_listen(fixture->folder, &second, &error), DET_ERR_EXISTS);
    assert_non_null(
        strstr(error.text, ": a detent is running here already; `detent stop` ends it"));
    socket_unlisten(&listener);
    assert_false(cli_is_there(path_of(fixture, ".detent/detent.sock")));
    assert_int_equal(socket_listen(fixture->folder, &listener, &error), 0);
    socket_unlisten(&listener);
}

static void socket_of_a_killed_daemon_is_replaced(void **state)
{
    struct fixture *fixture = *state;
    struct socket_listener listener;
    struct det_error error = { 0 };
    int descriptor;

    assert_int_equal(socket_listen(fixture->folder, &listener, &error), 0);
    /* As the kernel does it: all is closed, nothing is removed. */
    close(listener.descriptor);
    close(listener.lock);
    close(listener.folder);
    assert_int_equal(socket_connect(fixture->folder, &descriptor, &error), DET_ERR_NOT_FOUND);
    assert_int_equal(socket_listen(fixture->folder, &listener, &error), 0);
    assert_int_equal(socket_connect(fixture->folder, &descriptor, &error), 0);
    close(descriptor);
    socket_unlisten(&listener);
}

static void live_socket_without_the_lock_is_not_replaced(void **state)
{
    struct fixture *fixture = *state;
    struct socket_listener listener, second;
    struct det_error error = { 0 };

    assert_int_equal(socket_listen(fixture->folder, &listener, &error), 0);
    assert_int_equal(flock(listener.lock, LOCK_UN), 0);
    assert_int_equal(socket_listen(fixture->folder, &second, &error), DET_ERR_EXISTS);
    socket_unlisten(&listener);
}

static void a_folder_may_have_a_long_name(void **state)
{
    struct fixture *fixture = *state;
    struct socket_listener listener;
    struct det_error error = { 0 };
    char name[201] = "";
    int descriptor;

    memset(name, 'n', sizeof name - 1);
    make_folder(fixture, name);
    assert_int_equal(socket_listen(path_of(fixture, name), &listener, &error), 0);
    assert_int_equal(socket_connect(path_of(fixture, name), &descriptor, &error), 0);
    close(descriptor);
    socket_unlisten(&listener);
}

static void obstacles_to_the_socket_are_reported(void **state)
{
    struct fixture *fixture = *state;
    struct socket_listener listener;
    struct det_error error = { 0 };
    char longest[DET_PATH_MAX + 1] = "";
    int descriptor;

    memset(longest, 'x', sizeof longest - 1);
    assert_int_equal(socket_listen(longest, &listener, &error), DET_ERR_IO);
    assert_int_equal(socket_listen(path_of(fixture, "none"), &listener, &error), DET_ERR_IO);
    assert_int_equal(error.cause, ENOENT);
    put_text(fixture, ".detent", "");
    assert_int_equal(socket_listen(fixture->folder, &listener, &error), DET_ERR_IO);
    assert_non_null(strstr(error.text, "cannot create the folder .detent"));
    assert_int_equal(socket_connect(fixture->folder, &descriptor, &error), DET_ERR_IO);
    assert_int_equal(unlink(path_of(fixture, ".detent")), 0);
    make_folder(fixture, ".detent");
    make_folder(fixture, ".detent/detent.lock");
    assert_int_equal(socket_listen(fixture->folder, &listener, &error), DET_ERR_IO);
    assert_non_null(strstr(error.text, "cannot make .detent/detent.lock"));
    assert_int_equal(rmdir(path_of(fixture, ".detent/detent.lock")), 0);
    make_folder(fixture, ".detent/detent.sock");
    assert_int_equal(socket_listen(fixture->folder, &listener, &error), DET_ERR_IO);
    assert_non_null(strstr(error.text, "cannot remove the old socket"));
}

static void listen_fails_without_descriptors(void **state)
{
    struct fixture *fixture = *state;
    struct socket_listener listener;
    struct rlimit before, less;
    struct det_error error;
    int next = dup(STDERR_FILENO), r;

    close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    less = before;
    /* For the folder and the lock. */
    less.rlim_cur = (rlim_t)next + 2;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &less), 0);
    r = socket_listen(fixture->folder, &listener, &error);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(r, DET_ERR_IO);
    assert_int_equal(error.cause, EMFILE);
    assert_int_equal(socket_listen(fixture->folder, &listener, &error), 0);
    socket_unlisten(&listener);
}

static void only_the_owner_and_root_may_connect(void **state)
{
    (void)state;
    assert_true(socket_is_allowed(1000, 1000));
    assert_true(socket_is_allowed(0, 1000));
    assert_true(socket_is_allowed(0, 0));
    assert_false(socket_is_allowed(1001, 1000));
    assert_false(socket_is_allowed(1000, 0));
    assert_true(socket_is_trusted(1000, 1000));
    assert_true(socket_is_trusted(0, 1000));
    assert_true(socket_is_trusted(1000, 0));
    assert_false(socket_is_trusted(1001, 1000));
}

/* Users that need no names: only root can be them for a while. */
enum { OWNER = 65533, OTHER = 65534 };

static void become(uid_t user)
{
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(seteuid(user), 0);
}

static void project_above_owned_by_another_user_is_not_used(void **state)
{
    struct fixture *fixture = *state;
    char found[DET_PATH_MAX];
    struct det_error error;

    if (geteuid() != 0)
        skip();
    make_folder(fixture, "open");
    make_folder(fixture, "open/mine");
    put_text(fixture, "open/detent.yaml", "");
    assert_int_equal(chmod(fixture->folder, 0755), 0);
    assert_int_equal(lchown(path_of(fixture, "open/detent.yaml"), OTHER, (gid_t)-1), 0);
    become(OWNER);
    assert_int_equal(socket_find(path_of(fixture, "open/mine"), found, &error), DET_ERR_REFUSED);
    assert_non_null(
        strstr(error.text, "open/detent.yaml belongs to another user; go to its folder"));
    assert_int_equal(socket_find(path_of(fixture, "open"), found, &error), 0);
    become(OTHER);
    assert_int_equal(socket_find(path_of(fixture, "open/mine"), found, &error), 0);
    become(0);
    assert_int_equal(socket_find(path_of(fixture, "open/mine"), found, &error), DET_ERR_REFUSED);
}

static void socket_of_another_user_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct socket_listener listener;
    struct det_error error;
    int descriptor;

    if (geteuid() != 0)
        skip();
    assert_int_equal(chmod(fixture->folder, 0777), 0);
    become(OTHER);
    assert_int_equal(socket_listen(fixture->folder, &listener, &error), 0);
    become(OWNER);
    assert_int_equal(socket_connect(fixture->folder, &descriptor, &error), DET_ERR_REFUSED);
    become(0);
    assert_int_equal(chmod(path_of(fixture, ".detent"), 0755), 0);
    assert_int_equal(chmod(path_of(fixture, ".detent/detent.sock"), 0666), 0);
    become(OWNER);
    assert_int_equal(socket_connect(fixture->folder, &descriptor, &error), DET_ERR_REFUSED);
    assert_non_null(strstr(error.text, ": the detent that runs here belongs to another user"));
    become(0);
    assert_int_equal(socket_connect(fixture->folder, &descriptor, &error), 0);
    close(descriptor);
    socket_unlisten(&listener);
}

static void listen_is_refused_in_a_folder_others_can_write(void **state)
{
    struct fixture *fixture = *state;
    struct socket_listener listener;
    struct det_error error;

    make_folder(fixture, ".detent");
    assert_int_equal(chmod(path_of(fixture, ".detent"), 0770), 0);
    assert_int_equal(socket_listen(fixture->folder, &listener, &error), DET_ERR_REFUSED);
    assert_non_null(
        strstr(error.text, "/.detent belongs to another user, or others may write to it"));
    assert_int_equal(chmod(path_of(fixture, ".detent"), 0755), 0);
    assert_int_equal(socket_listen(fixture->folder, &listener, &error), 0);
    socket_unlisten(&listener);
    if (geteuid() != 0)
        return;
    assert_int_equal(chmod(fixture->folder, 0755), 0);
    become(OTHER);
    assert_int_equal(socket_listen(fixture->folder, &listener, &error), DET_ERR_REFUSED);
    become(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(project_is_the_nearest_folder_upwards),
        TEST(one_daemon_listens_and_others_connect),
        TEST(socket_of_a_killed_daemon_is_replaced),
        TEST(live_socket_without_the_lock_is_not_replaced),
        TEST(a_folder_may_have_a_long_name),
        TEST(obstacles_to_the_socket_are_reported),
        TEST(listen_fails_without_descriptors),
        TEST(only_the_owner_and_root_may_connect),
        TEST(project_above_owned_by_another_user_is_not_used),
        TEST(socket_of_another_user_is_refused),
        TEST(listen_is_refused_in_a_folder_others_can_write),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
