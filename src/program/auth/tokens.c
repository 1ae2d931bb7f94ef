/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* tokens.c - opens the tokens of a project, checks, creates and revokes them.
 *
 * A change is applied to the content of the file, written back, and only then replaces the set in
 * memory; under the lock of the file, since other processes change it too. All of that may take as
 * long as a disk takes, and happens under its own mutex: a check never waits for it. */
#include "auth/tokens.h"

#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <detent/machine.h>

#include "auth/tokens_internal.h"
#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"

#define PREFIX      "det_"
#define CHECK_EVERY DET_SECOND
#define CHECKS_MAX  8

/* Scopes. */

const char *tokens_scope_word(size_t index)
{
    static const char *const words[] = {
#define SCOPE(bit, name, word) [bit] = (word),
        TOKENS_SCOPES(SCOPE)
#undef SCOPE
    };

    return index < sizeof words / sizeof *words ? words[index] : NULL;
}

static unsigned scope_of(struct det_view word)
{
    for (size_t i = 0; i < TOKENS_SCOPE_COUNT; i++) {
        if (det_view_is(word, tokens_scope_word(i)))
            return 1u << i;
    }
    return 0;
}

bool tokens_parse_scopes(const char *text, unsigned *ret)
{
    unsigned scopes = 0;

    for (;;) {
        size_t size = strcspn(text, ",");
        unsigned scope = scope_of(det_view_of(text, size));

        if (!scope)
            return false;
        scopes |= scope;
        if (!text[size])
            break;
        text += size + 1;
    }
    *ret = scopes;
    return true;
}

/* Reading. */

static bool is_same(const struct tokens_stamp *a, const struct tokens_stamp *b)
{
    return a->is_there == b->is_there && a->device == b->device && a->number == b->number &&
           a->size == b->size && a->seconds == b->seconds && a->nanoseconds == b->nanoseconds &&
           a->mode == b->mode && a->owner == b->owner;
}

/* Adds the path of the file to an error. */
static int name_file(const struct tokens *tokens, int r, struct det_error *reterr)
{
    char text[DET_ERROR_TEXT_MAX];

    if (r >= 0 || !reterr)
        return r;
    snprintf(text, sizeof text, "%s", reterr->text);
    return det_error_set(reterr, r, "%.200s: %s", tokens->path, text);
}

/* Reads the file of an open folder, and its identity; -1: no file. Needs no mutex. */
static int read_set_in(
    const struct tokens *tokens, int folder, struct tokens_set *ret, struct tokens_stamp *ret_stamp,
    struct det_error *reterr)
{
    struct det_buffer text;
    int r = 0;

    *ret = (struct tokens_set){ 0 };
    *ret_stamp = (struct tokens_stamp){ 0 };
    if (folder >= 0)
        r = tokens_file_check(folder, TOKENS_FILE_NAME, ret_stamp, reterr);
    if (r == 0 && ret_stamp->is_there) {
        det_buffer_init(&text, tokens->allocator);
        r = tokens_file_read(folder, &text, ret_stamp, reterr);
        if (r == 0)
            r = tokens_file_parse(tokens->allocator, &text, ret, reterr);
        det_buffer_deinit(&text);
    }
    return name_file(tokens, r, reterr);
}

static int read_set(
    const struct tokens *tokens, struct tokens_set *ret, struct tokens_stamp *ret_stamp,
    struct det_error *reterr)
{
    int folder, r;

    *ret = (struct tokens_set){ 0 };
    *ret_stamp = (struct tokens_stamp){ .size = -1 };
    r = tokens_folder_open(tokens->folder, false, &folder, reterr);
    if (r < 0)
        return name_file(tokens, r, reterr);
    r = read_set_in(tokens, folder, ret, ret_stamp, reterr);
    if (folder >= 0)
        close(folder);
    return r;
}

static struct tokens_row *find_row(const struct tokens_set *set, const char *id)
{
    for (size_t i = 0; i < set->count; i++) {
        if (memcmp(set->rows[i].token.id, id, TOKENS_ID_SIZE) == 0)
            return &set->rows[i];
    }
    return NULL;
}

/* Reports tokens of `set` that are not in `other`. */
static void report_missing(
    const struct tokens *tokens, const struct tokens_set *set, const struct tokens_set *other,
    bool is_new)
{
    for (size_t i = 0; tokens->changed && i < set->count; i++) {
        if (!find_row(other, set->rows[i].token.id))
            tokens->changed(tokens->user, &set->rows[i].token, is_new);
    }
}

/* Makes the set effective. */
static void install_set(
    struct tokens *tokens, const struct tokens_set *set_take, const struct tokens_stamp *stamp)
{
    det_assert(set_take->count <= set_take->capacity);
    report_missing(tokens, &tokens->set, set_take, false);
    report_missing(tokens, set_take, &tokens->set, true);
    tokens_set_free(tokens->allocator, &tokens->set);
    tokens->set = *set_take;
    tokens->stamp = *stamp;
    tokens->is_closed = false;
    tokens->reported[0] = '\0';
}

/* Rejects all tokens until the file is valid again. A lack of memory or descriptors is not a
 * defect of the file: reading is retried. */
static void close_up(
    struct tokens *tokens, int r, const struct tokens_stamp *stamp, const char *text)
{
    bool is_new = strcmp(tokens->reported, text) != 0;

    det_assert(r < 0 && *text);
    tokens->stamp = r == DET_ERR_NO_MEMORY ? (struct tokens_stamp){ .size = -1 } : *stamp;
    tokens->is_closed |= r != DET_ERR_NO_MEMORY;
    snprintf(tokens->reported, sizeof tokens->reported, "%s", text);
    if (is_new && tokens->problem)
        tokens->problem(tokens->user, text, tokens->is_closed);
}

/* Reads the file if it has changed since the last look. */
static void load_file(struct tokens *tokens)
{
    struct det_error error = { 0 };
    struct tokens_stamp stamp;
    struct tokens_set set;
    int r;

    tokens->inspected = det_world_now(tokens->world, DET_CLOCK_MONOTONIC);
    if (tokens_file_check(AT_FDCWD, tokens->path, &stamp, &error) == 0 &&
        is_same(&stamp, &tokens->stamp))
        return;
    r = read_set(tokens, &set, &stamp, &error);
    if (r < 0)
        close_up(tokens, r, &stamp, error.text);
    else
        install_set(tokens, &set, &stamp);
}

static void check_again(struct tokens *tokens, det_time every)
{
    det_time now = det_world_now(tokens->world, DET_CLOCK_MONOTONIC);

    if (now - tokens->inspected >= every)
        load_file(tokens);
}

/* Returns true if an unknown token justifies another check of the file: one per second, with a
 * small burst. */
static bool is_worth_a_check(struct tokens *tokens)
{
    det_time now = det_world_now(tokens->world, DET_CLOCK_MONOTONIC);
    det_time next = (tokens->next_check_at > now ? tokens->next_check_at : now) + CHECK_EVERY;

    if (next - now > CHECKS_MAX * CHECK_EVERY)
        return false;
    tokens->next_check_at = next;
    return true;
}

/* A change, done with the lock of the file. */
typedef int change_fn(
    struct tokens *tokens, struct tokens_set *set, void *argument, struct det_error *reterr);

/* A set read from a file has room for one more; an empty one has none yet. */
static int make_room(struct tokens *tokens, struct tokens_set *set, struct det_error *reterr)
{
    if (set->rows)
        return 0;
    set->capacity = 1;
    set->rows = DET_NEW_ARRAY(tokens->allocator, set->capacity, struct tokens_row);
    if (!set->rows)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory");
    return 0;
}

static int write_set(
    struct tokens *tokens, int folder, const struct tokens_set *set, struct tokens_stamp *ret,
    struct det_error *reterr)
{
    struct det_error unseen;
    struct det_buffer text;
    int r;

    det_buffer_init(&text, tokens->allocator);
    tokens_file_format(&text, set);
    r = name_file(tokens, tokens_file_write(tokens->world, folder, &text, reterr), reterr);
    det_buffer_deinit(&text);
    /* Without a status, the next look reads the file again. */
    if (r == 0 && tokens_file_check(folder, TOKENS_FILE_NAME, ret, &unseen) < 0)
        *ret = (struct tokens_stamp){ .size = -1 };
    return r;
}

static int change_file(
    struct tokens *tokens, int folder, change_fn *run, void *argument, struct det_error *reterr)
{
    struct tokens_stamp stamp;
    struct tokens_set set;
    int r;

    r = read_set_in(tokens, folder, &set, &stamp, reterr);
    if (r == 0)
        r = make_room(tokens, &set, reterr);
    if (r == 0)
        r = run(tokens, &set, argument, reterr);
    if (r == 0)
        r = write_set(tokens, folder, &set, &stamp, reterr);
    if (r < 0) {
        tokens_set_free(tokens->allocator, &set);
        return r;
    }
    det_mutex_lock(tokens->world, tokens->mutex);
    install_set(tokens, &set, &stamp);
    det_mutex_unlock(tokens->world, tokens->mutex);
    return 0;
}

/* The change takes effect before the file lock is released: otherwise it could replace what another
 * process has written since. */
static int apply_change(
    struct tokens *tokens, change_fn *run, void *argument, struct det_error *reterr)
{
    int folder, lock, r;

    det_mutex_lock(tokens->world, tokens->changing);
    r = tokens_folder_open(tokens->folder, true, &folder, reterr);
    if (r == 0)
        r = tokens_file_lock(folder, tokens->patience, &lock, reterr);
    if (r == 0) {
        r = change_file(tokens, folder, run, argument, reterr);
        tokens_file_unlock(lock);
    }
    if (folder >= 0)
        close(folder);
    det_mutex_unlock(tokens->world, tokens->changing);
    return r;
}

/* Creating a token. */

static void make_id(struct tokens *tokens, const struct tokens_set *set, char *id)
{
    static const char letters[] = "abcdefghijkmnpqrstuvwxyz23456789";
    unsigned char bytes[TOKENS_ID_SIZE];

    do {
        det_world_random(tokens->world, bytes, sizeof bytes);
        for (size_t i = 0; i < TOKENS_ID_SIZE; i++)
            id[i] = letters[bytes[i] % (sizeof letters - 1)];
        id[TOKENS_ID_SIZE] = '\0';
    } while (find_row(set, id));
}

static void make_text(struct tokens *tokens, const char *id, char *text)
{
    unsigned char bytes[TOKENS_HASH_SIZE];
    int used = snprintf(text, TOKENS_TEXT_SIZE + 1, PREFIX "%s_", id);

    det_world_random(tokens->world, bytes, sizeof bytes);
    sodium_bin2base64(
        text + used, TOKENS_SECRET_SIZE + 1, bytes, sizeof bytes,
        sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    sodium_memzero(bytes, sizeof bytes);
}

static void hash_text(const char *text, unsigned char hash[TOKENS_HASH_SIZE])
{
    crypto_hash_sha256(
        hash, (const unsigned char *)text + TOKENS_TEXT_SIZE - TOKENS_SECRET_SIZE,
        TOKENS_SECRET_SIZE);
}

/* Drops expired logins. */
static void drop_old_logins(struct tokens_set *set, det_time now)
{
    size_t kept = 0;

    for (size_t i = 0; i < set->count; i++) {
        const struct token *token = &set->rows[i].token;

        if (strcmp(token->name, TOKENS_CONSOLE) != 0 || !token->expires || token->expires > now)
            set->rows[kept++] = set->rows[i];
    }
    set->count = kept;
}

struct addition {
    const struct tokens_grant *grant;
    char *text;
    struct token *token;
};

static int add_token(
    struct tokens *tokens, struct tokens_set *set, void *argument, struct det_error *reterr)
{
    struct addition *addition = argument;
    det_time now = det_world_now(tokens->world, DET_CLOCK_WALL) / DET_SECOND * DET_SECOND;
    struct tokens_row *row;

    det_assert(set->rows && set->count < set->capacity);
    if (strcmp(addition->grant->name, TOKENS_CONSOLE) == 0)
        drop_old_logins(set, now);
    if (set->count >= TOKENS_MAX)
        return det_error_set(
            reterr, DET_ERR_LIMIT, "the limit of %d tokens is reached; revoke some first",
            TOKENS_MAX);
    row = &set->rows[set->count];
    *row =
        (struct tokens_row){ .token = {
                                 .scopes = addition->grant->scopes,
                                 .created = now,
                                 .expires = addition->grant->span ? now + addition->grant->span : 0,
                             } };
    snprintf(row->token.name, sizeof row->token.name, "%s", addition->grant->name);
    make_id(tokens, set, row->token.id);
    make_text(tokens, row->token.id, addition->text);
    hash_text(addition->text, row->hash);
    *addition->token = row->token;
    set->count++;
    return 0;
}

int tokens_add(
    struct tokens *tokens, const struct tokens_grant *grant, char text[TOKENS_TEXT_SIZE + 1],
    struct token *ret, struct det_error *reterr)
{
    struct addition addition = { grant, text, ret };
    int r;

    if (!det_name_is_valid(grant->name) || strlen(grant->name) > TOKENS_NAME_MAX)
        return det_error_set(
            reterr, DET_ERR_INVALID,
            "the name of a token must be 1 to %d letters, digits, '.', '_' and '-'",
            TOKENS_NAME_MAX);
    if (!grant->scopes || grant->scopes & ~TOKENS_ALL || grant->span < 0 ||
        grant->span > DET_DELAY_MAX)
        return det_error_set(
            reterr, DET_ERR_INVALID, "a token needs scopes, and expires within ten years");
    r = apply_change(tokens, add_token, &addition, reterr);
    if (r < 0)
        sodium_memzero(text, TOKENS_TEXT_SIZE + 1);
    return r;
}

struct removal {
    const char *id;
    struct token *token;
};

static int drop_token(
    struct tokens *tokens, struct tokens_set *set, void *argument, struct det_error *reterr)
{
    struct removal *removal = argument;
    struct tokens_row *row =
        strlen(removal->id) == TOKENS_ID_SIZE ? find_row(set, removal->id) : NULL;

    (void)tokens;
    if (!row)
        return det_error_set(reterr, DET_ERR_NOT_FOUND, "there is no token '%.40s'", removal->id);
    *removal->token = row->token;
    det_assert(row >= set->rows && row < set->rows + set->count);
    set->count--;
    memmove(row, row + 1, (size_t)(&set->rows[set->count] - row) * sizeof *row);
    return 0;
}

/* Checking. */

const char *tokens_verdict_text(enum tokens_verdict verdict)
{
    switch (verdict) {
    case TOKENS_GOOD:
        return "the token is good";
    case TOKENS_MALFORMED:
        return "this is not a token; create one with `detent token new`";
    case TOKENS_UNKNOWN:
        return "the token is unknown or was revoked";
    case TOKENS_EXPIRED:
        return "the token has expired; `detent token new` creates a new one";
    case TOKENS_CLOSED:
        return "no token is valid while the token file is unusable: `detent token list` shows why";
    }
    return "";
}

static bool is_token(const char *text)
{
    const char *id = text + strlen(PREFIX);

    return strlen(text) == TOKENS_TEXT_SIZE && strncmp(text, PREFIX, strlen(PREFIX)) == 0 &&
           id[TOKENS_ID_SIZE] == '_' && memchr(id, '_', TOKENS_ID_SIZE) == NULL;
}

static bool has_expired(const struct tokens *tokens, const struct token *token)
{
    return token->expires && det_world_now(tokens->world, DET_CLOCK_WALL) >= token->expires;
}

static unsigned rights_of(const struct token *token)
{
    return token->scopes & TOKENS_ADMIN ? TOKENS_ALL : token->scopes;
}

/* Does the same work for an unknown id, so that the time reveals nothing. */
static enum tokens_verdict validate_token(
    struct tokens *tokens, const char *text, struct tokens_answer *answer)
{
    static const struct tokens_row nobody = { .token = { .id = "" } };
    unsigned char hash[TOKENS_HASH_SIZE];
    const struct tokens_row *row;
    bool is_same;

    if (tokens->is_closed)
        return TOKENS_CLOSED;
    if (!is_token(text))
        return TOKENS_MALFORMED;
    row = find_row(&tokens->set, text + strlen(PREFIX));
    hash_text(text, hash);
    is_same = sodium_memcmp(hash, row ? row->hash : nobody.hash, sizeof hash) == 0;
    sodium_memzero(hash, sizeof hash);
    if (!row || !is_same)
        return TOKENS_UNKNOWN;
    answer->token = row->token;
    if (has_expired(tokens, &row->token))
        return TOKENS_EXPIRED;
    answer->scopes = rights_of(&row->token);
    det_assert(answer->scopes && (answer->scopes & ~TOKENS_ALL) == 0);
    return TOKENS_GOOD;
}

void tokens_check(
    struct tokens *tokens, const char *text, const char *peer, struct tokens_answer *ret)
{
    *ret = (struct tokens_answer){ .scopes = 0 };
    det_mutex_lock(tokens->world, tokens->mutex);
    check_again(tokens, CHECK_EVERY);
    ret->verdict = validate_token(tokens, text, ret);
    /* It may have been created a moment ago. */
    if (ret->verdict == TOKENS_UNKNOWN && is_worth_a_check(tokens)) {
        check_again(tokens, 0);
        ret->verdict = validate_token(tokens, text, ret);
    }
    /* A valid token forgives no failures: a guesser may share the address of a user with a
     * token. */
    if (ret->verdict != TOKENS_GOOD && ret->verdict != TOKENS_CLOSED)
        ret->wait = tokens_peer_failed(
            &tokens->peers, peer, det_world_now(tokens->world, DET_CLOCK_MONOTONIC));
    det_mutex_unlock(tokens->world, tokens->mutex);
}

/* Public functions. */

int tokens_open(const struct tokens_options *options, struct tokens **ret, struct det_error *reterr)
{
    struct tokens *tokens;
    int r;

    if (strlen(options->folder) >= sizeof tokens->folder)
        return det_error_set(reterr, DET_ERR_LIMIT, "the path of the tokens is too long");
    if (sodium_init() < 0)
        return det_error_set(reterr, DET_ERR_UNSUPPORTED, "cannot initialize libsodium");
    tokens = DET_NEW(options->allocator, struct tokens);
    if (!tokens)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory");
    tokens->allocator = options->allocator;
    tokens->world = det_world_or_real(options->world);
    tokens->peers.key = det_world_random_u64(tokens->world);
    tokens->patience = options->patience;
    tokens->problem = options->problem;
    tokens->changed = options->changed;
    tokens->user = options->user;
    snprintf(tokens->folder, sizeof tokens->folder, "%s", options->folder);
    snprintf(tokens->path, sizeof tokens->path, "%s/" TOKENS_FILE_NAME, options->folder);
    r = det_mutex_open(tokens->world, &tokens->mutex);
    if (r == 0)
        r = det_mutex_open(tokens->world, &tokens->changing);
    if (r < 0)
        det_error_set(reterr, r, "%s", det_error_text(r));
    else
        r = read_set(tokens, &tokens->set, &tokens->stamp, reterr);
    if (r < 0)
        tokens_close(tokens);
    else
        *ret = tokens;
    return r;
}

void tokens_close(struct tokens *tokens)
{
    if (!tokens)
        return;
    tokens_set_free(tokens->allocator, &tokens->set);
    det_mutex_close(tokens->world, tokens->mutex);
    det_mutex_close(tokens->world, tokens->changing);
    sodium_memzero(tokens->codes, sizeof tokens->codes);
    DET_DELETE(tokens->allocator, tokens);
}

int tokens_revoke(
    struct tokens *tokens, const char *id, struct token *ret, struct det_error *reterr)
{
    struct removal removal = { id, ret };

    return apply_change(tokens, drop_token, &removal, reterr);
}

size_t tokens_count(struct tokens *tokens)
{
    det_time now = det_world_now(tokens->world, DET_CLOCK_WALL);
    size_t count = 0;

    det_mutex_lock(tokens->world, tokens->mutex);
    for (size_t i = 0; i < tokens->set.count; i++) {
        det_time expires = tokens->set.rows[i].token.expires;

        count += !expires || expires > now;
    }
    det_mutex_unlock(tokens->world, tokens->mutex);
    return count;
}

bool tokens_at(struct tokens *tokens, size_t index, struct token *ret)
{
    bool is_there;

    det_mutex_lock(tokens->world, tokens->mutex);
    is_there = index < tokens->set.count;
    if (is_there)
        *ret = tokens->set.rows[index].token;
    det_mutex_unlock(tokens->world, tokens->mutex);
    return is_there;
}

bool tokens_find(struct tokens *tokens, const char *id, struct token *ret)
{
    const struct tokens_row *row;

    det_mutex_lock(tokens->world, tokens->mutex);
    row = strlen(id) == TOKENS_ID_SIZE ? find_row(&tokens->set, id) : NULL;
    if (row)
        *ret = row->token;
    det_mutex_unlock(tokens->world, tokens->mutex);
    return row;
}

bool tokens_is_good(struct tokens *tokens, const char *id, unsigned needed)
{
    const struct tokens_row *row;
    bool is_good;

    det_mutex_lock(tokens->world, tokens->mutex);
    check_again(tokens, CHECK_EVERY);
    row = tokens->is_closed ? NULL : find_row(&tokens->set, id);
    is_good = row && !has_expired(tokens, &row->token) && (rights_of(&row->token) & needed);
    det_mutex_unlock(tokens->world, tokens->mutex);
    return is_good;
}
