/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* session_code_test.c - codes, their tokens, and requests during a write to the disk. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "auth/tokens_test.h"

static void login_code_is_valid_once_and_creates_a_token(void **state)
{
    struct fixture *fixture = *state;
    char code[TOKENS_CODE_SIZE + 1];
    struct tokens_login login, again;
    struct tokens_answer answer;
    struct det_error error;

    tokens_code_new(fixture->tokens, code);
    assert_int_equal(strlen(code), TOKENS_CODE_SIZE);
    assert_int_equal(tokens_code_redeem(fixture->tokens, code, "unix", &login, &error), 0);
    assert_string_equal(login.token.name, TOKENS_CONSOLE);
    assert_int_equal(login.token.expires - login.token.created, TOKENS_LOGIN_SPAN);
    assert_int_equal(
        tokens_code_redeem(fixture->tokens, code, "unix", &again, &error), DET_ERR_NOT_FOUND);
    assert_int_equal(again.wait, DET_MILLISECOND);
    assert_int_equal(open_again(fixture, &error), 0);
    tokens_check(fixture->tokens, login.text, "unix", &answer);
    assert_int_equal(answer.verdict, TOKENS_GOOD);
    assert_int_equal(answer.scopes, TOKENS_ALL);
}

static void login_codes_expire_and_the_oldest_is_evicted(void **state)
{
    struct fixture *fixture = *state;
    char codes[17][TOKENS_CODE_SIZE + 1];
    struct tokens_login login;
    struct det_error error;

    assert_int_equal(
        tokens_code_redeem(fixture->tokens, "", "unix", &login, &error), DET_ERR_NOT_FOUND);
    assert_int_equal(
        tokens_code_redeem(fixture->tokens, "AAAAAAAAAAAAAAAAAAAAAA", "unix", &login, &error),
        DET_ERR_NOT_FOUND);
    for (int i = 0; i < 17; i++) {
        here.monotonic++;
        tokens_code_new(fixture->tokens, codes[i]);
    }
    assert_int_equal(
        tokens_code_redeem(fixture->tokens, codes[0], "unix", &login, &error), DET_ERR_NOT_FOUND);
    here.monotonic += TOKENS_CODE_SPAN - 1;
    assert_int_equal(tokens_code_redeem(fixture->tokens, codes[16], "unix", &login, &error), 0);
    assert_int_equal(
        tokens_code_redeem(fixture->tokens, codes[15], "unix", &login, &error), DET_ERR_NOT_FOUND);
}

static void login_code_stays_valid_if_its_token_is_not_saved(void **state)
{
    struct fixture *fixture = *state;
    char code[TOKENS_CODE_SIZE + 1], path[400];
    struct tokens_login login;
    struct det_error error;
    int lock;

    tokens_code_new(fixture->tokens, code);
    snprintf(path, sizeof path, "%s/tokens.lock", fixture->folder);
    lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(flock(lock, LOCK_EX), 0);
    assert_int_equal(
        tokens_code_redeem(fixture->tokens, code, "unix", &login, &error), DET_ERR_BUSY);
    close(lock);
    assert_int_equal(tokens_code_redeem(fixture->tokens, code, "unix", &login, &error), 0);
}

static void old_logins_leave_the_file(void **state)
{
    struct fixture *fixture = *state;
    char code[TOKENS_CODE_SIZE + 1], text[TOKENS_TEXT_SIZE + 1];
    struct tokens_login login;
    struct det_error error;
    struct token token;

    make(fixture, "ci", TOKENS_READ, DET_HOUR, text);
    for (int i = 0; i < 3; i++) {
        tokens_code_new(fixture->tokens, code);
        assert_int_equal(tokens_code_redeem(fixture->tokens, code, "unix", &login, &error), 0);
        here.wall += TOKENS_LOGIN_SPAN;
    }
    assert_true(tokens_at(fixture->tokens, 0, &token));
    assert_string_equal(token.name, "ci");
    assert_true(tokens_at(fixture->tokens, 1, &token));
    assert_string_equal(token.id, login.token.id);
    assert_false(tokens_at(fixture->tokens, 2, &token));
}

/* The disk is at it, and somebody asks. */
static struct {
    struct fixture *fixture;
    const char *good;
    unsigned asked;
} meanwhile;

static int slow_sync(struct det_world *world, struct det_file *file)
{
    assert_int_equal(check(meanwhile.fixture, meanwhile.good), TOKENS_GOOD);
    assert_int_equal(tokens_count(meanwhile.fixture->tokens), 1);
    meanwhile.asked++;
    return det_world_real()->ops->file_sync(world, file);
}

static void token_check_does_not_wait_for_a_change(void **state)
{
    struct fixture *fixture = *state;
    char good[TOKENS_TEXT_SIZE + 1], more[TOKENS_TEXT_SIZE + 1], code[TOKENS_CODE_SIZE + 1];
    struct tokens_login login;
    struct det_error error;
    struct token token;

    make(fixture, "ci", TOKENS_READ, 0, good);
    meanwhile.fixture = fixture;
    meanwhile.good = good;
    meanwhile.asked = 0;
    here.ops.file_sync = slow_sync;
    token = make(fixture, "more", TOKENS_READ, 0, more);
    assert_int_equal(meanwhile.asked, 1);
    here.ops.file_sync = det_world_real()->ops->file_sync;
    assert_int_equal(tokens_revoke(fixture->tokens, token.id, &token, &error), 0);
    tokens_code_new(fixture->tokens, code);
    here.ops.file_sync = slow_sync;
    assert_int_equal(tokens_code_redeem(fixture->tokens, code, "unix", &login, &error), 0);
    assert_int_equal(meanwhile.asked, 2);
}

/* The lock that a change finds when a process is started at the same time: a fork has all
 * descriptors until it calls exec. */
static struct {
    pid_t child;
    int gate[2];
} forked;

static int fork_at_sync(struct det_world *world, struct det_file *file)
{
    char byte;

    if (!forked.child) {
        assert_int_equal(pipe2(forked.gate, O_CLOEXEC), 0);
        forked.child = fork();
        assert_true(forked.child >= 0);
        if (forked.child == 0) {
            close(forked.gate[1]);
            _exit(read(forked.gate[0], &byte, 1) == 0 ? 0 : 1);
        }
    }
    return det_world_real()->ops->file_sync(world, file);
}

static void a_process_that_is_being_started_does_not_keep_the_lock(void **state)
{
    char text[TOKENS_TEXT_SIZE + 1];
    int status;

    forked.child = 0;
    here.ops.file_sync = fork_at_sync;
    make(*state, "first", TOKENS_READ, 0, text);
    make(*state, "second", TOKENS_READ, 0, text);
    close(forked.gate[0]);
    close(forked.gate[1]);
    assert_int_equal(waitpid(forked.child, &status, 0), forked.child);
    assert_int_equal(status, 0);
}

/* Somebody puts a link in the place of the folder after it was checked. */
static struct {
    const char *folder;
    char aside[300], elsewhere[300];
} swapped;

static int swap_at_open(
    struct det_world *world, const char *path, unsigned flags, struct det_file **ret)
{
    assert_int_equal(rename(swapped.folder, swapped.aside), 0);
    assert_int_equal(symlink(swapped.elsewhere, swapped.folder), 0);
    return det_world_real()->ops->file_open(world, path, flags, ret);
}

static void a_link_in_the_place_of_the_checked_folder_gets_nothing(void **state)
{
    struct fixture *fixture = *state;
    char text[TOKENS_TEXT_SIZE + 1], path[320];

    swapped.folder = fixture->folder;
    snprintf(swapped.aside, sizeof swapped.aside, "%s.aside", fixture->folder);
    snprintf(swapped.elsewhere, sizeof swapped.elsewhere, "%s.elsewhere", fixture->folder);
    assert_int_equal(mkdir(swapped.elsewhere, 0700), 0);
    here.ops.file_open = swap_at_open;
    make(fixture, "ci", TOKENS_READ, 0, text);
    here.ops.file_open = det_world_real()->ops->file_open;
    /* It is still empty. */
    assert_int_equal(rmdir(swapped.elsewhere), 0);
    snprintf(path, sizeof path, "%s/" TOKENS_FILE_NAME, swapped.aside);
    assert_int_equal(access(path, R_OK), 0);
    assert_int_equal(unlink(fixture->folder), 0);
    assert_int_equal(rename(swapped.aside, fixture->folder), 0);
    assert_int_equal(check(fixture, text), TOKENS_GOOD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(login_code_is_valid_once_and_creates_a_token),
        TEST(login_codes_expire_and_the_oldest_is_evicted),
        TEST(login_code_stays_valid_if_its_token_is_not_saved),
        TEST(old_logins_leave_the_file),
        TEST(token_check_does_not_wait_for_a_change),
        TEST(a_process_that_is_being_started_does_not_keep_the_lock),
        TEST(a_link_in_the_place_of_the_checked_folder_gets_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
