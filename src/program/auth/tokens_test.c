/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* tokens_test.c - tokens of a project, in real files and with a clock of the test's own. */
#include "auth/tokens_test.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "auth/tokens_internal.h"

static void a_token_is_known_again_with_its_scopes(void **state)
{
    struct fixture *fixture = *state;
    char text[TOKENS_TEXT_SIZE + 1];
    struct token token = make(fixture, "ci", TOKENS_READ | TOKENS_SEND, DET_HOUR, text);
    struct tokens_answer answer;

    assert_int_equal(strlen(text), TOKENS_TEXT_SIZE);
    assert_memory_equal(text, "det_", 4);
    assert_memory_equal(text + 4, token.id, TOKENS_ID_SIZE);
    assert_int_equal(token.created, here.wall - 5);
    assert_int_equal(token.expires, here.wall - 5 + DET_HOUR);
    tokens_check(fixture->tokens, text, "unix", &answer);
    assert_int_equal(answer.verdict, TOKENS_GOOD);
    assert_int_equal(answer.scopes, TOKENS_READ | TOKENS_SEND);
    assert_string_equal(answer.token.name, "ci");
    assert_int_equal(answer.wait, 0);
    assert_int_equal(tokens_count(fixture->tokens), 1);
}

static void admin_scope_includes_all_scopes(void **state)
{
    char text[TOKENS_TEXT_SIZE + 1];
    struct tokens_answer answer;

    make(*state, "root", TOKENS_ADMIN, 0, text);
    tokens_check(((struct fixture *)*state)->tokens, text, "unix", &answer);
    assert_int_equal(answer.scopes, TOKENS_ALL);
    assert_int_equal(answer.token.scopes, TOKENS_ADMIN);
}

static void a_token_survives_a_restart_and_its_secret_is_nowhere(void **state)
{
    struct fixture *fixture = *state;
    char text[TOKENS_TEXT_SIZE + 1], *file;
    struct det_error error;
    struct stat status;

    make(fixture, "ci", TOKENS_READ, 0, text);
    assert_int_equal(open_again(fixture, &error), 0);
    assert_int_equal(check(fixture, text), TOKENS_GOOD);
    assert_int_equal(stat(fixture->path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    file = det_test_read_file(fixture->path, NULL);
    assert_null(strstr(file, text + TOKENS_TEXT_SIZE - TOKENS_SECRET_SIZE));
    free(file);
}

static void malformed_and_foreign_tokens_are_refused(void **state)
{
    struct fixture *fixture = *state;
    char text[TOKENS_TEXT_SIZE + 1], other[TOKENS_TEXT_SIZE + 2];

    make(fixture, "ci", TOKENS_READ, 0, text);
    assert_int_equal(check(fixture, ""), TOKENS_MALFORMED);
    assert_int_equal(check(fixture, "det_"), TOKENS_MALFORMED);
    snprintf(other, sizeof other, "%.*s", TOKENS_TEXT_SIZE - 1, text);
    assert_int_equal(check(fixture, other), TOKENS_MALFORMED);
    snprintf(other, sizeof other, "%sa", text);
    assert_int_equal(check(fixture, other), TOKENS_MALFORMED);
    snprintf(other, sizeof other, "%s", text);
    other[4 + TOKENS_ID_SIZE] = '-';
    assert_int_equal(check(fixture, other), TOKENS_MALFORMED);
    /* Each letter of the secret counts, and each of the id. */
    for (size_t i = 4; i < TOKENS_TEXT_SIZE; i++) {
        snprintf(other, sizeof other, "%s", text);
        other[i] = other[i] == 'x' ? 'y' : 'x';
        if (i != 4 + TOKENS_ID_SIZE && check(fixture, other) != TOKENS_UNKNOWN)
            fail_msg("letter %zu does not count", i);
    }
    assert_int_equal(check(fixture, text), TOKENS_GOOD);
}

static void a_token_ends_when_it_expires(void **state)
{
    struct fixture *fixture = *state;
    char text[TOKENS_TEXT_SIZE + 1];
    struct token token = make(fixture, "ci", TOKENS_READ, DET_HOUR, text);

    here.wall = token.expires - 1;
    assert_int_equal(check(fixture, text), TOKENS_GOOD);
    here.wall = token.expires;
    assert_int_equal(check(fixture, text), TOKENS_EXPIRED);
    assert_int_equal(tokens_count(fixture->tokens), 0);
}

static void a_revoked_token_is_unknown(void **state)
{
    struct fixture *fixture = *state;
    char first[TOKENS_TEXT_SIZE + 1], second[TOKENS_TEXT_SIZE + 1];
    struct token token = make(fixture, "a", TOKENS_READ, 0, first), revoked, left;
    struct det_error error;

    make(fixture, "b", TOKENS_READ, 0, second);
    assert_int_equal(tokens_revoke(fixture->tokens, token.id, &revoked, &error), 0);
    assert_string_equal(revoked.name, "a");
    assert_int_equal(check(fixture, first), TOKENS_UNKNOWN);
    assert_int_equal(check(fixture, second), TOKENS_GOOD);
    assert_true(tokens_at(fixture->tokens, 0, &left));
    assert_string_equal(left.name, "b");
    assert_false(tokens_at(fixture->tokens, 1, &left));
    assert_int_equal(tokens_revoke(fixture->tokens, token.id, &revoked, &error), DET_ERR_NOT_FOUND);
    assert_int_equal(tokens_revoke(fixture->tokens, "x", &revoked, &error), DET_ERR_NOT_FOUND);
}

static void valid_token_can_be_checked_again_by_id(void **state)
{
    struct fixture *fixture = *state;
    char text[TOKENS_TEXT_SIZE + 1];
    struct token read = make(fixture, "r", TOKENS_READ, DET_MINUTE, text), gone;
    struct token admin = make(fixture, "a", TOKENS_ADMIN, 0, text);
    struct det_error error;

    assert_true(tokens_is_good(fixture->tokens, read.id, TOKENS_READ));
    assert_false(tokens_is_good(fixture->tokens, read.id, TOKENS_SEND));
    assert_true(tokens_is_good(fixture->tokens, admin.id, TOKENS_SEND));
    assert_false(tokens_is_good(fixture->tokens, "aaaaaaaa", TOKENS_READ));
    here.wall += DET_MINUTE;
    assert_false(tokens_is_good(fixture->tokens, read.id, TOKENS_READ));
    assert_int_equal(tokens_revoke(fixture->tokens, admin.id, &gone, &error), 0);
    assert_false(tokens_is_good(fixture->tokens, admin.id, TOKENS_READ));
}

static void two_openings_see_what_the_other_one_changes(void **state)
{
    struct fixture *fixture = *state;
    struct tokens_options options = options_of(fixture);
    char mine[TOKENS_TEXT_SIZE + 1], its[TOKENS_TEXT_SIZE + 1];
    struct fixture other = { .folder = fixture->folder };
    struct det_error error;
    struct token token, gone;

    make(fixture, "mine", TOKENS_READ, 0, mine);
    assert_int_equal(tokens_open(&options, &other.tokens, &error), 0);
    token = make(&other, "its", TOKENS_READ, 0, its);
    /* A new one counts at once, one that is gone within a second. */
    assert_int_equal(check(fixture, its), TOKENS_GOOD);
    assert_int_equal(tokens_revoke(other.tokens, token.id, &gone, &error), 0);
    assert_int_equal(check(fixture, its), TOKENS_GOOD);
    here.monotonic += DET_SECOND;
    assert_int_equal(check(fixture, its), TOKENS_UNKNOWN);
    token = make(&other, "its", TOKENS_READ, 0, its);
    assert_int_equal(check(fixture, its), TOKENS_GOOD);
    /* A change begins with the newest file. */
    assert_int_equal(tokens_revoke(fixture->tokens, token.id, &gone, &error), 0);
    make(&other, "third", TOKENS_READ, 0, its);
    assert_int_equal(tokens_count(other.tokens), 2);
    here.monotonic += DET_SECOND;
    assert_int_equal(check(fixture, mine), TOKENS_GOOD);
    assert_int_equal(tokens_count(fixture->tokens), 2);
    tokens_close(other.tokens);
}

/* Whoever guesses does not make us look at the file each time. */
static void new_token_is_valid_within_a_second_despite_guesses(void **state)
{
    static const char wrong[] = "det_aaaaaaaa_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    struct fixture *fixture = *state;
    struct tokens_options options = options_of(fixture);
    struct fixture other = { .folder = fixture->folder };
    char first[TOKENS_TEXT_SIZE + 1], second[TOKENS_TEXT_SIZE + 1];
    struct det_error error;

    assert_int_equal(tokens_open(&options, &other.tokens, &error), 0);
    for (int i = 0; i < 7; i++)
        assert_int_equal(check(fixture, wrong), TOKENS_UNKNOWN);
    make(&other, "first", TOKENS_READ, 0, first);
    assert_int_equal(check(fixture, first), TOKENS_GOOD);
    make(&other, "second", TOKENS_READ, 0, second);
    assert_int_equal(check(fixture, second), TOKENS_UNKNOWN);
    here.monotonic += DET_SECOND;
    assert_int_equal(check(fixture, second), TOKENS_GOOD);
    tokens_close(other.tokens);
}

/* A lack of descriptors is not a defect of the file. */
static void out_of_descriptors_keeps_the_tokens_read_before(void **state)
{
    struct fixture *fixture = *state;
    struct tokens_options options = options_of(fixture);
    struct fixture other = { .folder = fixture->folder };
    char first[TOKENS_TEXT_SIZE + 1], second[TOKENS_TEXT_SIZE + 1];
    struct rlimit before, none;
    struct det_error error;

    make(fixture, "first", TOKENS_READ, 0, first);
    assert_int_equal(tokens_open(&options, &other.tokens, &error), 0);
    make(&other, "second", TOKENS_READ, 0, second);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){ 0, before.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    for (int i = 0; i < 3; i++) {
        here.monotonic += DET_SECOND;
        assert_int_equal(check(fixture, first), TOKENS_GOOD);
    }
    assert_int_equal(check(fixture, second), TOKENS_UNKNOWN);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(fixture->incidents, 1);
    assert_false(fixture->is_closed);
    here.monotonic += DET_SECOND;
    assert_int_equal(check(fixture, second), TOKENS_GOOD);
    tokens_close(other.tokens);
}

static void removed_token_file_makes_tokens_unknown(void **state)
{
    struct fixture *fixture = *state;
    char text[TOKENS_TEXT_SIZE + 1];

    make(fixture, "ci", TOKENS_READ, 0, text);
    assert_int_equal(unlink(fixture->path), 0);
    here.monotonic += DET_SECOND;
    assert_int_equal(check(fixture, text), TOKENS_UNKNOWN);
    assert_int_equal(fixture->incidents, 0);
}

/* Opening fails with this code. Where the file is open already, no token is valid, which is
 * reported once. */
static void expect_refused(struct fixture *fixture, const char *good, int code, const char *part)
{
    struct tokens_options options = options_of(fixture);
    struct tokens *other = NULL;
    struct det_error error = { 0 };

    assert_int_equal(tokens_open(&options, &other, &error), code);
    if (!strstr(error.text, part) || !strstr(error.text, fixture->path))
        fail_msg("no '%s' and '%s' in: %s", part, fixture->path, error.text);
    fixture->incidents = 0;
    for (int i = 0; i < 3; i++) {
        here.monotonic += DET_SECOND;
        assert_int_equal(check(fixture, good), TOKENS_CLOSED);
        assert_int_equal(check(fixture, "wrong"), TOKENS_CLOSED);
        assert_int_equal(fixture->incidents, 1);
    }
    assert_non_null(strstr(fixture->problem, part));
    assert_true(fixture->is_closed);
}

static void token_file_readable_by_others_is_refused(void **state)
{
    struct fixture *fixture = *state;
    char text[TOKENS_TEXT_SIZE + 1];

    make(fixture, "ci", TOKENS_READ, 0, text);
    for (unsigned bit = 1; bit < 0100; bit <<= 1) {
        assert_int_equal(chmod(fixture->path, 0600 | bit), 0);
        expect_refused(fixture, text, DET_ERR_REFUSED, "chmod 600");
        assert_int_equal(chmod(fixture->path, 0600), 0);
        here.monotonic += DET_SECOND;
        assert_int_equal(check(fixture, text), TOKENS_GOOD);
    }
    assert_int_equal(unlink(fixture->path), 0);
    assert_int_equal(symlink("/dev/null", fixture->path), 0);
    expect_refused(fixture, text, DET_ERR_IO, "cannot be read");
}

static void write_private(struct fixture *fixture, const char *data, size_t size)
{
    (void)unlink(fixture->path);
    det_test_write_file(fixture->path, data, size);
    assert_int_equal(chmod(fixture->path, 0600), 0);
}

static void every_changed_byte_makes_the_file_invalid(void **state)
{
    struct fixture *fixture = *state;
    struct tokens_options options = options_of(fixture);
    char text[TOKENS_TEXT_SIZE + 1], *copy;
    struct det_error error;
    size_t size;

    make(fixture, "ci", TOKENS_READ | TOKENS_METRICS, DET_HOUR, text);
    make(fixture, "b", TOKENS_ADMIN, 0, text);
    copy = det_test_read_file(fixture->path, &size);
    for (size_t i = 0; i < size; i++) {
        struct tokens *other = NULL;
        int r;

        copy[i] ^= 1;
        write_private(fixture, copy, size);
        copy[i] ^= 1;
        r = tokens_open(&options, &other, &error);
        if (r != DET_ERR_CORRUPT && r != DET_ERR_VERSION)
            fail_msg("byte %zu does not count: %d", i, r);
    }
    /* So does every missing end. */
    for (size_t i = 0; i < size; i++) {
        struct tokens *other = NULL;
        bool is_line = i && copy[i - 1] == '\n';
        int r;

        write_private(fixture, copy, i);
        r = tokens_open(&options, &other, &error);
        if (r != (is_line ? 0 : DET_ERR_CORRUPT))
            fail_msg("%zu bytes: %d", i, r);
        tokens_close(other);
    }
    free(copy);
}

static void damaged_and_newer_token_files_are_reported(void **state)
{
    struct fixture *fixture = *state;
    char text[TOKENS_TEXT_SIZE + 1], *copy;
    struct tokens_grant grant = { "x", TOKENS_READ, 0 };
    struct det_error error;
    struct token token;
    size_t size;

    make(fixture, "ci", TOKENS_READ, 0, text);
    copy = det_test_read_file(fixture->path, &size);
    copy[size - 20] ^= 1;
    write_private(fixture, copy, size);
    expect_refused(fixture, text, DET_ERR_CORRUPT, "line 2 is damaged");
    /* Nothing is written over it. */
    assert_int_equal(tokens_add(fixture->tokens, &grant, text, &token, &error), DET_ERR_CORRUPT);
    assert_int_equal(text[0], '\0');
    free(copy);
    copy = det_test_read_file(fixture->path, NULL);
    assert_int_equal(strlen(copy), size);
    free(copy);
    write_private(fixture, "{\"tokens\":2}\n", 13);
    assert_int_equal(open_again(fixture, &error), DET_ERR_VERSION);
    assert_non_null(strstr(error.text, "newer detent"));
}

static void names_scopes_and_spans_are_checked(void **state)
{
    static const struct tokens_grant wrong[] = {
        { "", TOKENS_READ, 0 },
        { "a b", TOKENS_READ, 0 },
        { "a\"b", TOKENS_READ, 0 },
        { "12345678901234567890123456789012345678901234567890123456789012345", TOKENS_READ, 0 },
        { "a", 0, 0 },
        { "a", 16, 0 },
        { "a", TOKENS_READ, -1 },
    };
    struct fixture *fixture = *state;
    char text[TOKENS_TEXT_SIZE + 1];
    struct det_error error;
    struct token token;
    unsigned scopes;

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(
            tokens_add(fixture->tokens, &wrong[i], text, &token, &error), DET_ERR_INVALID);
    assert_int_equal(tokens_count(fixture->tokens), 0);
    assert_true(tokens_parse_scopes("metrics,read", &scopes));
    assert_int_equal(scopes, TOKENS_READ | TOKENS_METRICS);
    assert_false(tokens_parse_scopes("", &scopes));
    assert_false(tokens_parse_scopes("read,", &scopes));
    assert_false(tokens_parse_scopes("write", &scopes));
}

/* A file with so many tokens, as the file has them. */
static void write_many(struct fixture *fixture, size_t count)
{
    struct tokens_set set = { .rows = calloc(count, sizeof *set.rows),
                              .count = count,
                              .capacity = count };
    struct det_buffer text;

    assert_non_null(set.rows);
    for (size_t i = 0; i < count; i++) {
        set.rows[i].token = (struct token){ .name = "x", .scopes = TOKENS_READ };
        snprintf(set.rows[i].token.id, sizeof set.rows[i].token.id, "a%07zu", i);
    }
    det_buffer_init(&text, NULL);
    tokens_file_format(&text, &set);
    write_private(fixture, text.data, text.size);
    det_buffer_deinit(&text);
    free(set.rows);
}

static void number_of_tokens_is_limited(void **state)
{
    struct fixture *fixture = *state;
    struct tokens_grant grant = { "x", TOKENS_READ, 0 };
    char text[TOKENS_TEXT_SIZE + 1];
    struct det_error error;
    struct token token;

    write_many(fixture, TOKENS_MAX + 1);
    assert_int_equal(open_again(fixture, &error), DET_ERR_LIMIT);
    write_many(fixture, TOKENS_MAX);
    assert_int_equal(open_again(fixture, &error), 0);
    assert_int_equal(tokens_add(fixture->tokens, &grant, text, &token, &error), DET_ERR_LIMIT);
    assert_int_equal(open_again(fixture, &error), 0);
    assert_int_equal(tokens_count(fixture->tokens), TOKENS_MAX);
}

static void wrong_tokens_back_off_exponentially(void **state)
{
    struct fixture *fixture = *state;
    char text[TOKENS_TEXT_SIZE + 1];
    struct tokens_answer answer;
    det_time expected = DET_MILLISECOND;

    make(fixture, "ci", TOKENS_READ, 0, text);
    for (int i = 0; i < 13; i++) {
        char peer[40];

        /* Another port is the same peer. */
        snprintf(peer, sizeof peer, "10.0.0.1:%d", 4000 + i);
        tokens_check(fixture->tokens, "wrong", peer, &answer);
        assert_int_equal(answer.wait, expected < DET_SECOND ? expected : DET_SECOND);
        expected *= 2;
    }
    tokens_check(fixture->tokens, "wrong", "10.0.0.2:4000", &answer);
    assert_int_equal(answer.wait, DET_MILLISECOND);
    tokens_check(fixture->tokens, "wrong", "[fd00::1]:4000", &answer);
    tokens_check(fixture->tokens, "wrong", "[fd00::1]:4001", &answer);
    assert_int_equal(answer.wait, 2 * DET_MILLISECOND);
    /* All that one host may have is one peer. */
    tokens_check(fixture->tokens, "wrong", "[fd00::2]:4001", &answer);
    assert_int_equal(answer.wait, 4 * DET_MILLISECOND);
    tokens_check(fixture->tokens, "wrong", "[fd00:0:0:1::1]:4001", &answer);
    assert_int_equal(answer.wait, DET_MILLISECOND);
    /* A right one never waits, and forgives nothing: others may guess from the same address. */
    tokens_check(fixture->tokens, text, "10.0.0.1:4000", &answer);
    assert_int_equal(answer.wait, 0);
    tokens_check(fixture->tokens, "wrong", "10.0.0.1:4000", &answer);
    assert_int_equal(answer.wait, DET_SECOND);
    tokens_check(fixture->tokens, "wrong", "10.0.0.1:4000", &answer);
    here.monotonic += DET_MINUTE + 1;
    tokens_check(fixture->tokens, "wrong", "10.0.0.1:4000", &answer);
    assert_int_equal(answer.wait, DET_MILLISECOND);
}

static void many_peers_are_forgotten_rather_than_remembered(void **state)
{
    struct fixture *fixture = *state;
    struct tokens_answer answer;

    for (int i = 0; i < 20000; i++) {
        char peer[40];

        here.monotonic++;
        snprintf(peer, sizeof peer, "10.%d.%d.%d:1", i >> 16, i >> 8 & 255, i & 255);
        tokens_check(fixture->tokens, "wrong", peer, &answer);
        assert_true(answer.wait >= DET_MILLISECOND);
    }
    tokens_check(fixture->tokens, "wrong", "10.0.78.31:7", &answer);
    assert_int_equal(answer.wait, 2 * DET_MILLISECOND);
}

static void guessing_peer_is_not_evicted_by_single_failures(void **state)
{
    struct fixture *fixture = *state;
    struct tokens_answer answer;

    for (int i = 0; i < 12; i++)
        tokens_check(fixture->tokens, "wrong", "10.9.9.9:1", &answer);
    assert_int_equal(answer.wait, DET_SECOND);
    for (int i = 0; i < 20000; i++) {
        char peer[40];

        here.monotonic++;
        snprintf(peer, sizeof peer, "10.%d.%d.%d:1", i >> 16, i >> 8 & 255, i & 255);
        tokens_check(fixture->tokens, "wrong", peer, &answer);
    }
    tokens_check(fixture->tokens, "wrong", "10.9.9.9:1", &answer);
    assert_int_equal(answer.wait, DET_SECOND);
    /* Once it was silent for long its place is free. */
    here.monotonic += DET_MINUTE + 1;
    tokens_check(fixture->tokens, "wrong", "10.9.9.9:1", &answer);
    assert_int_equal(answer.wait, DET_MILLISECOND);
}

/* Else anybody could find addresses that share their places. */
static void peer_hash_is_keyed_randomly(void **state)
{
    struct fixture *fixture = *state;
    struct tokens_options options = options_of(fixture);
    struct tokens *other;
    struct det_error error;

    assert_int_equal(tokens_open(&options, &other, &error), 0);
    assert_true(other->peers.key != fixture->tokens->peers.key);
    tokens_close(other);
}

static void token_folder_is_created_or_its_error_reported(void **state)
{
    struct fixture *fixture = *state;
    struct tokens_options options = options_of(fixture);
    struct tokens_grant grant = { "x", TOKENS_READ, 0 };
    char folder[400], text[TOKENS_TEXT_SIZE + 1], *longest;
    struct tokens *other;
    struct det_error error;
    struct token token;

    snprintf(folder, sizeof folder, "%s/.detent", fixture->folder);
    options.folder = folder;
    assert_int_equal(tokens_open(&options, &other, &error), 0);
    assert_int_equal(tokens_add(other, &grant, text, &token, &error), 0);
    tokens_close(other);
    snprintf(folder, sizeof folder, "%s/no/such", fixture->folder);
    assert_int_equal(tokens_open(&options, &other, &error), 0);
    assert_int_equal(tokens_add(other, &grant, text, &token, &error), DET_ERR_IO);
    tokens_close(other);
    longest = calloc(1, DET_PATH_MAX + 1);
    memset(longest, 'a', DET_PATH_MAX);
    options.folder = longest;
    assert_int_equal(tokens_open(&options, &other, &error), DET_ERR_LIMIT);
    free(longest);
}

/* Removes the tokens that a failed run has left, since each one makes reading allocate more. */
static void revoke_left(struct fixture *fixture)
{
    struct tokens_options options = options_of(fixture);
    struct tokens *tokens;
    struct det_error error;
    struct token token;
    size_t index = 0;

    assert_int_equal(tokens_open(&options, &tokens, &error), 0);
    while (tokens_at(tokens, index, &token)) {
        if (strcmp(token.name, "x") != 0)
            index++;
        else
            assert_int_equal(tokens_revoke(tokens, token.id, &token, &error), 0);
    }
    tokens_close(tokens);
}

static int live(struct det_test_memory *memory, void *argument)
{
    struct fixture *fixture = argument;
    struct tokens_options options = options_of(fixture);
    struct tokens_grant grant = { "x", TOKENS_READ, 0 };
    char text[TOKENS_TEXT_SIZE + 1];
    struct tokens *tokens = NULL;
    struct tokens_answer answer;
    struct det_error error;
    struct token token;
    int r;

    options.allocator = &memory->allocator;
    r = tokens_open(&options, &tokens, &error);
    if (r == 0)
        r = tokens_add(tokens, &grant, text, &token, &error);
    if (r == 0) {
        tokens_check(tokens, text, "unix", &answer);
        assert_int_equal(answer.verdict, TOKENS_GOOD);
        r = tokens_revoke(tokens, token.id, &token, &error);
    }
    tokens_close(tokens);
    revoke_left(fixture);
    return r;
}

static void every_failed_allocation_is_survived(void **state)
{
    char text[TOKENS_TEXT_SIZE + 1];

    make(*state, "ci", TOKENS_READ, 0, text);
    det_test_each_failure(live, *state);
    assert_int_equal(check(*state, text), TOKENS_GOOD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_token_is_known_again_with_its_scopes),
        TEST(admin_scope_includes_all_scopes),
        TEST(a_token_survives_a_restart_and_its_secret_is_nowhere),
        TEST(malformed_and_foreign_tokens_are_refused),
        TEST(a_token_ends_when_it_expires),
        TEST(a_revoked_token_is_unknown),
        TEST(valid_token_can_be_checked_again_by_id),
        TEST(two_openings_see_what_the_other_one_changes),
        TEST(new_token_is_valid_within_a_second_despite_guesses),
        TEST(out_of_descriptors_keeps_the_tokens_read_before),
        TEST(removed_token_file_makes_tokens_unknown),
        TEST(token_file_readable_by_others_is_refused),
        TEST(every_changed_byte_makes_the_file_invalid),
        TEST(damaged_and_newer_token_files_are_reported),
        TEST(names_scopes_and_spans_are_checked),
        TEST(number_of_tokens_is_limited),
        TEST(wrong_tokens_back_off_exponentially),
        TEST(many_peers_are_forgotten_rather_than_remembered),
        TEST(guessing_peer_is_not_evicted_by_single_failures),
        TEST(peer_hash_is_keyed_randomly),
        TEST(token_folder_is_created_or_its_error_reported),
        TEST(every_failed_allocation_is_survived),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
