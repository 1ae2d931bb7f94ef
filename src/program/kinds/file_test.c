/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* file_test.c - a file in its desired state: in virtual time, and on a real disk. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kinds/bench_test.h"
#include "kinds/file_place.h"
#include "kinds/kinds.h"

static struct det_sim *sim;
static char *folder;

static int set_up(void **state)
{
    (void)state;
    return det_sim_open(NULL, &sim, NULL);
}

static int tear_down(void **state)
{
    (void)state;
    det_sim_close(sim);
    return 0;
}

static int set_up_folder(void **state)
{
    (void)state;
    folder = det_test_folder();
    return folder == NULL;
}

static int tear_down_folder(void **state)
{
    (void)state;
    det_test_folder_remove(folder);
    return 0;
}

static void set_arguments(struct file_desired *config, const char *path, const char *content)
{
    *config = (struct file_desired){ .has_content = content != NULL };
    if (folder && *path != '/')
        (void)snprintf(config->path, sizeof config->path, "%s/%s", folder, path);
    else
        (void)snprintf(config->path, sizeof config->path, "%s", path);
    (void)snprintf(config->content, sizeof config->content, "%s", content ? content : "");
}

static const struct file_observed *seen_of(const struct bench *bench)
{
    return bench->observed;
}

/* derive() */

static void config_errors_name_the_field_and_a_remedy(void **state)
{
    static struct file_desired config;

    (void)state;
    assert_refused(&file_kind, &config, "path is missing: add the path of the file");
    set_arguments(&config, "/etc/motd", NULL);
    assert_refused(&file_kind, &config, "content is missing: add content: or source:");
    set_arguments(&config, "/etc/motd", "hello");
    PUT(config.source, "/etc/issue");
    assert_refused(&file_kind, &config, "content and source exclude each other: remove one");
    set_arguments(&config, "/etc/motd", "hello");
    config.absent = true;
    assert_refused(&file_kind, &config, "absent is true, but there is a content");
    set_arguments(&config, "/etc/motd", NULL);
    PUT(config.source, "issue");
    assert_refused(&file_kind, &config, "source 'issue' is relative");
    set_arguments(&config, "/etc/", "hello");
    assert_refused(&file_kind, &config, "path '/etc/' is a folder: name the file in it");
    set_arguments(&config, "/etc/motd", "hello");
    PUT(config.mode, "0a8");
    assert_refused(&file_kind, &config, "mode '0a8' is not a mode: three or four digits");
    PUT(config.mode, "64");
    assert_refused(&file_kind, &config, "mode '64' is not a mode");
    set_arguments(&config, "/etc/motd", "hello");
    PUT(config.sha256, "00");
    assert_refused(&file_kind, &config, "sha256 is computed from the content");
}

static void absent_fields_have_defaults(void **state)
{
    static struct file_desired config;

    (void)state;
    set_arguments(&config, "/etc/motd", "");
    assert_derived(&file_kind, &config);
    assert_string_equal(config.mode, "0644");
    assert_string_equal(
        config.sha256, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    set_arguments(&config, "/etc/motd", "");
    PUT(config.mode, "600");
    assert_derived(&file_kind, &config);
    assert_string_equal(config.mode, "0600");
}

static void the_content_is_not_shown(void **state)
{
    static struct file_desired config;
    char text[4096];

    (void)state;
    set_arguments(&config, "/etc/motd", "hunter2");
    (void)det_record_print(file_desired_record(), &config, 0, text, sizeof text);
    assert_null(strstr(text, "hunter2"));
}

/* In virtual time. */

static void assert_content(struct det_world *world, const char *path, const char *wanted)
{
    char *data;
    size_t size;

    assert_int_equal(det_file_load(world, NULL, path, 1000, &data, &size), 0);
    assert_string_equal(data, wanted);
    free(data);
}

static void file_is_written_and_drift_corrected_and_reported(void **state)
{
    static struct file_desired desired;
    struct det_world *world = det_sim_world(sim);
    struct bench bench;

    (void)state;
    set_arguments(&desired, "/etc/motd", "hello");
    assert_derived(&file_kind, &desired);
    bench_open(&bench, &file_kind, sim, &desired);
    bench_step(&bench);
    bench_step(&bench);
    assert_reason(&bench, "the file does not exist");
    bench_run(&bench, DET_SECOND);
    assert_state(&bench, "in_place");
    assert_content(world, "/etc/motd", "hello");
    assert_int_equal(bench.actions[FILE_WRITE], 1);
    assert_int_equal(seen_of(&bench)->size, 5);
    bench_run(&bench, DET_MINUTE);
    assert_int_equal(bench.actions[FILE_WRITE], 1);
    /* Somebody else. */
    assert_int_equal(det_file_replace(world, "/etc/motd", "hallo!", 6), 0);
    bench_step(&bench);
    assert_state(&bench, "drifted");
    assert_reason(&bench, "its content differs: 6 bytes, sha256 ");
    bench_run(&bench, DET_SECOND);
    assert_state(&bench, "in_place");
    assert_content(world, "/etc/motd", "hello");
    assert_int_equal(seen_of(&bench)->drifts, 1);
    assert_int_equal(det_file_remove(world, "/etc/motd"), 0);
    bench_step(&bench);
    assert_state(&bench, "drifted");
    assert_reason(&bench, "the file does not exist");
    bench_run(&bench, DET_SECOND);
    assert_int_equal(seen_of(&bench)->drifts, 2);
    bench_stop(&bench);
    assert_content(world, "/etc/motd", "hello");
    bench_close(&bench);
}

static void changed_config_is_not_drift(void **state)
{
    static struct file_desired desired;
    struct bench bench;

    (void)state;
    set_arguments(&desired, "/etc/motd", "hello");
    assert_derived(&file_kind, &desired);
    bench_open(&bench, &file_kind, sim, &desired);
    bench_run(&bench, DET_SECOND);
    set_arguments(&desired, "/etc/motd", "bye");
    assert_derived(&file_kind, &desired);
    bench_step(&bench);
    assert_state(&bench, "writing");
    bench_run(&bench, DET_SECOND);
    assert_content(det_sim_world(sim), "/etc/motd", "bye");
    set_arguments(&desired, "/etc/motd", NULL);
    desired.absent = true;
    assert_derived(&file_kind, &desired);
    bench_run(&bench, DET_SECOND);
    assert_state(&bench, "in_place");
    assert_reason(&bench, "it is absent, as configured");
    assert_false(seen_of(&bench)->exists);
    assert_int_equal(bench.actions[FILE_REMOVE], 1);
    assert_int_equal(seen_of(&bench)->drifts, 0);
    bench_stop(&bench);
    bench_close(&bench);
}

static void a_copy_follows_its_source(void **state)
{
    static struct file_desired desired;
    struct det_world *world = det_sim_world(sim);
    struct bench bench;

    (void)state;
    set_arguments(&desired, "/etc/motd", NULL);
    PUT(desired.source, "/srv/motd");
    assert_derived(&file_kind, &desired);
    bench_open(&bench, &file_kind, sim, &desired);
    bench_run(&bench, DET_SECOND);
    assert_state(&bench, "blocked");
    assert_reason(&bench, "its source cannot be read: ");
    assert_int_equal(det_file_replace(world, "/srv/motd", "one", 3), 0);
    bench_run(&bench, DET_SECOND);
    assert_state(&bench, "in_place");
    assert_content(world, "/etc/motd", "one");
    assert_int_equal(det_file_replace(world, "/srv/motd", "two", 3), 0);
    bench_run(&bench, DET_SECOND);
    assert_content(world, "/etc/motd", "two");
    assert_int_equal(seen_of(&bench)->drifts, 0);
    bench_stop(&bench);
    bench_close(&bench);
}

static void failing_disk_is_reported_and_retried(void **state)
{
    static struct file_desired desired;
    struct det_sim_disk_faults faults = { .no_space = 1000000 };
    struct bench bench;

    (void)state;
    set_arguments(&desired, "/etc/motd", "hello");
    assert_derived(&file_kind, &desired);
    bench_open(&bench, &file_kind, sim, &desired);
    det_sim_set_disk_faults(sim, &faults);
    bench_run(&bench, DET_SECOND);
    assert_state(&bench, "writing");
    assert_non_null(strstr(bench.failure, "/etc/motd could not be written: "));
    faults.no_space = 0;
    det_sim_set_disk_faults(sim, &faults);
    bench_run(&bench, DET_SECOND);
    assert_state(&bench, "in_place");
    bench_close(&bench);
}

static void allocation_failure_leaves_the_file_unchanged(void **state)
{
    static struct file_desired desired;
    struct det_world *world = det_sim_world(sim);
    bool has_failed = true;

    (void)state;
    set_arguments(&desired, "/etc/motd", NULL);
    PUT(desired.source, "/srv/motd");
    assert_derived(&file_kind, &desired);
    assert_int_equal(det_file_replace(world, "/srv/motd", "new", 3), 0);
    for (uint64_t n = 1; has_failed; n++) {
        struct det_test_memory memory;
        struct bench bench;

        assert_int_equal(det_file_replace(world, "/etc/motd", "old", 3), 0);
        det_test_memory_init(&memory);
        bench_open(&bench, &file_kind, sim, &desired);
        bench.context.allocator = &memory.allocator;
        (void)det_test_memory_fail(&memory, n, false);
        bench_act(&bench, FILE_WRITE);
        has_failed = det_test_memory_fail(&memory, 0, false);
        assert_true(bench.view.last_action.code == 0 || has_failed);
        assert_content(world, "/etc/motd", bench.view.last_action.code < 0 ? "old" : "new");
        bench_run(&bench, DET_SECOND);
        assert_state(&bench, "in_place");
        bench_close(&bench);
        det_test_memory_deinit(&memory);
    }
}

/* An unreadable file in its desired state has not drifted. */
static void allocation_failure_is_not_reported_as_drift(void **state)
{
    static struct file_desired desired;
    struct det_world *world = det_sim_world(sim);
    struct det_test_memory memory;
    struct bench bench;

    (void)state;
    set_arguments(&desired, "/etc/motd", NULL);
    PUT(desired.source, "/srv/motd");
    assert_derived(&file_kind, &desired);
    assert_int_equal(det_file_replace(world, "/srv/motd", "new", 3), 0);
    det_test_memory_init(&memory);
    bench_open(&bench, &file_kind, sim, &desired);
    bench.context.allocator = &memory.allocator;
    bench_run(&bench, DET_SECOND);
    assert_state(&bench, "in_place");
    /* The source, then the file. */
    for (uint64_t n = 1; n <= 2; n++) {
        (void)det_test_memory_fail(&memory, n, false);
        assert_int_equal(
            file_kind.collect(&bench.context, bench.deps, &desired, bench.observed),
            DET_ERR_NO_MEMORY);
        assert_true(det_test_memory_fail(&memory, 0, false));
    }
    bench_run(&bench, DET_SECOND);
    assert_state(&bench, "in_place");
    assert_int_equal(((const struct file_observed *)bench.observed)->drifts, 0);
    bench_close(&bench);
    det_test_memory_deinit(&memory);
}

/* On a real disk. */

static mode_t mode_of(const char *path)
{
    struct stat status;

    assert_int_equal(lstat(path, &status), 0);
    return status.st_mode;
}

static void a_real_file_has_its_mode(void **state)
{
    static struct file_desired desired;
    struct bench bench;

    (void)state;
    set_arguments(&desired, "secret", "hello");
    PUT(desired.mode, "0600");
    assert_derived(&file_kind, &desired);
    bench_open(&bench, &file_kind, NULL, &desired);
    bench_settle(&bench);
    assert_state(&bench, "in_place");
    assert_int_equal(mode_of(desired.path), S_IFREG | 0600);
    assert_content(det_world_real(), desired.path, "hello");
    assert_int_equal(chmod(desired.path, 0666), 0);
    bench_step(&bench);
    assert_state(&bench, "drifted");
    assert_reason(&bench, "its mode is 0666, not 0600");
    bench_settle(&bench);
    assert_int_equal(mode_of(desired.path), S_IFREG | 0600);
    assert_int_equal(bench.actions[FILE_WRITE], 2);
    bench_close(&bench);
}

static void a_link_is_replaced_and_never_followed(void **state)
{
    static struct file_desired desired;
    struct bench bench;
    char target[1024], temporary[1100];

    (void)state;
    (void)snprintf(target, sizeof target, "%s/target", folder);
    det_test_write_file(target, "kept", 4);
    set_arguments(&desired, "link", "hello");
    assert_derived(&file_kind, &desired);
    assert_int_equal(symlink(target, desired.path), 0);
    (void)snprintf(temporary, sizeof temporary, "%s.tmp", desired.path);
    assert_int_equal(symlink(target, temporary), 0);
    bench_open(&bench, &file_kind, NULL, &desired);
    bench_step(&bench);
    bench_step(&bench);
    assert_reason(&bench, "it is a symbolic link");
    bench_settle(&bench);
    assert_state(&bench, "in_place");
    assert_true(S_ISREG(mode_of(desired.path)));
    assert_content(det_world_real(), target, "kept");
    /* Nor when it is to go. */
    assert_int_equal(unlink(desired.path), 0);
    assert_int_equal(symlink(target, desired.path), 0);
    set_arguments(&desired, "link", NULL);
    desired.absent = true;
    assert_derived(&file_kind, &desired);
    bench_settle(&bench);
    assert_int_equal(access(desired.path, F_OK), -1);
    assert_content(det_world_real(), target, "kept");
    bench_close(&bench);
}

static void folder_at_the_path_is_not_replaced(void **state)
{
    static struct file_desired desired;
    struct bench bench;

    (void)state;
    set_arguments(&desired, "place", "hello");
    assert_derived(&file_kind, &desired);
    assert_int_equal(mkdir(desired.path, 0700), 0);
    bench_open(&bench, &file_kind, NULL, &desired);
    bench_settle(&bench);
    assert_state(&bench, "blocked");
    assert_reason(&bench, "there is a folder at its path: move it away");
    bench_act(&bench, FILE_WRITE);
    assert_int_equal(bench.view.last_action.code, DET_ERR_EXISTS);
    bench_act(&bench, FILE_REMOVE);
    assert_int_equal(bench.view.last_action.code, DET_ERR_EXISTS);
    assert_true(S_ISDIR(mode_of(desired.path)));
    assert_int_equal(rmdir(desired.path), 0);
    bench_settle(&bench);
    assert_state(&bench, "in_place");
    /* A pipe would let a reader hang. */
    assert_int_equal(unlink(desired.path), 0);
    assert_int_equal(mkfifo(desired.path, 0600), 0);
    bench_settle(&bench);
    assert_reason(&bench, "there is a device, pipe or socket at its path");
    bench_close(&bench);
}

static void impossible_file_config_is_reported(void **state)
{
    static struct file_desired desired;
    struct bench bench;

    (void)state;
    set_arguments(&desired, "no/such/place", "hello");
    assert_derived(&file_kind, &desired);
    bench_open(&bench, &file_kind, NULL, &desired);
    bench_settle(&bench);
    assert_state(&bench, "writing");
    assert_non_null(strstr(bench.failure, "check that its folder exists"));
    set_arguments(&desired, "place", "hello");
    PUT(desired.user, "no_such_user");
    assert_derived(&file_kind, &desired);
    bench_settle(&bench);
    assert_string_equal(bench.failure, "there is no user 'no_such_user'");
    set_arguments(&desired, "place", "hello");
    PUT(desired.group, "no_such_group");
    assert_derived(&file_kind, &desired);
    bench_settle(&bench);
    assert_string_equal(bench.failure, "there is no group 'no_such_group'");
    assert_int_equal(access(desired.path, F_OK), -1);
    bench_close(&bench);
}

/* Ours, so that it works without being root. */
static void file_owner_is_checked(void **state)
{
    static struct file_desired desired;
    struct bench bench;

    (void)state;
    set_arguments(&desired, "place", "hello");
    file_user_name(getuid(), desired.user, sizeof desired.user);
    file_group_name(getgid(), desired.group, sizeof desired.group);
    assert_derived(&file_kind, &desired);
    bench_open(&bench, &file_kind, NULL, &desired);
    bench_settle(&bench);
    assert_state(&bench, "in_place");
    assert_string_equal(seen_of(&bench)->user, desired.user);
    PUT(desired.user, "somebody");
    bench_step(&bench);
    assert_reason(&bench, "it belongs to ");
    bench_close(&bench);
}

#define IN_SIM(test)  cmocka_unit_test_setup_teardown(test, set_up, tear_down)
#define ON_DISK(test) cmocka_unit_test_setup_teardown(test, set_up_folder, tear_down_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(config_errors_name_the_field_and_a_remedy),
        cmocka_unit_test(absent_fields_have_defaults),
        cmocka_unit_test(the_content_is_not_shown),
        IN_SIM(file_is_written_and_drift_corrected_and_reported),
        IN_SIM(changed_config_is_not_drift),
        IN_SIM(a_copy_follows_its_source),
        IN_SIM(failing_disk_is_reported_and_retried),
        IN_SIM(allocation_failure_leaves_the_file_unchanged),
        IN_SIM(allocation_failure_is_not_reported_as_drift),
        ON_DISK(a_real_file_has_its_mode),
        ON_DISK(a_link_is_replaced_and_never_followed),
        ON_DISK(folder_at_the_path_is_not_replaced),
        ON_DISK(impossible_file_config_is_reported),
        ON_DISK(file_owner_is_checked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
