/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* tokens_test.h - tokens in a folder of their own, with a clock of the test's. */
#ifndef DET_AUTH_TOKENS_TEST_H
#define DET_AUTH_TOKENS_TEST_H

#include "auth/tokens_internal.h"
#include "lib/test.h"
#include "os/os.h"
#include "os/real.h"

/* The real world, but for its clocks. */
static struct {
    struct det_world_ops ops;
    struct det_real_world world;
    det_time monotonic, wall;
} here;

static inline det_time now(struct det_world *world, enum det_clock clock)
{
    (void)world;
    return clock == DET_CLOCK_WALL ? here.wall : here.monotonic;
}

struct fixture {
    char *folder;
    char path[300];
    struct tokens *tokens;
    char problem[DET_ERROR_TEXT_MAX];
    unsigned incidents;
    bool is_closed;
};

static inline void on_incident(void *user, const char *text, bool is_closed)
{
    struct fixture *fixture = user;

    snprintf(fixture->problem, sizeof fixture->problem, "%s", text);
    fixture->incidents++;
    fixture->is_closed = is_closed;
}

static inline struct tokens_options options_of(struct fixture *fixture)
{
    return (struct tokens_options){
        .world = &here.world.world,
        .folder = fixture->folder,
        .problem = on_incident,
        .user = fixture,
    };
}

static inline int open_again(struct fixture *fixture, struct det_error *reterr)
{
    struct tokens_options options = options_of(fixture);

    tokens_close(fixture->tokens);
    fixture->tokens = NULL;
    return tokens_open(&options, &fixture->tokens, reterr);
}

static inline int set_up(void **state)
{
    static struct fixture fixture;
    struct det_error error;

    here.ops = *det_world_real()->ops;
    here.ops.now = now;
    /* The operations take the world that they are given for the real one. */
    here.world = (struct det_real_world){ .world = { .ops = &here.ops } };
    here.monotonic = DET_HOUR;
    here.wall = INT64_C(1800000000) * DET_SECOND + 5;
    fixture = (struct fixture){ .folder = det_test_folder() };
    snprintf(fixture.path, sizeof fixture.path, "%s/" TOKENS_FILE_NAME, fixture.folder);
    assert_int_equal(open_again(&fixture, &error), 0);
    *state = &fixture;
    return 0;
}

static inline int tear_down(void **state)
{
    struct fixture *fixture = *state;

    tokens_close(fixture->tokens);
    det_test_folder_remove(fixture->folder);
    return 0;
}

static inline struct token make(
    struct fixture *fixture, const char *name, unsigned scopes, det_time span, char *text)
{
    struct tokens_grant grant = { name, scopes, span };
    struct det_error error = { 0 };
    struct token token;
    int r = tokens_add(fixture->tokens, &grant, text, &token, &error);

    if (r < 0)
        fail_msg("%s", error.text);
    return token;
}

static inline enum tokens_verdict check(struct fixture *fixture, const char *text)
{
    struct tokens_answer answer;

    tokens_check(fixture->tokens, text, "127.0.0.1:40000", &answer);
    return answer.verdict;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
