/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* tokens.c - opens the tokens of a project, checks them, makes and revokes them.
 *
 * A change is made to a copy, which is written to the file and takes the place of the old set only
 * then; under the lock of the file, whose newest content is read first: others change it too. */
#include "console/tokens.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <detent/machine.h>

#include "base/memory.h"
#include "base/text.h"
#include "console/tokens_parts.h"

#define PREFIX     "det_"
#define LOOK_EVERY DET_SECOND

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
           a->size == b->size && a->seconds == b->seconds && a->nanoseconds == b->nanoseconds;
}

/* The file as it is now, if it is another one than the last that was looked at. */
static int load(struct tokens *tokens, bool is_forced, struct det_error *reterr)
{
    struct tokens_stamp stamp;
    struct tokens_set set = { .count = 0 };
    struct det_buffer text;
    int r;

    tokens->looked_at = det_world_now(tokens->world, DET_CLOCK_MONOTONIC);
    r = tokens_file_look(tokens->path, &stamp, reterr);
    if (r < 0 || (!is_forced && is_same(&stamp, &tokens->stamp)))
        return r;
    tokens->stamp = stamp;
    det_buffer_init(&text, tokens->allocator);
    if (stamp.is_there)
        r = tokens_file_read(tokens->path, &text, &tokens->stamp, reterr);
    if (r == 0 && stamp.is_there)
        r = tokens_file_parse(tokens->allocator, &text, &set, reterr);
    det_buffer_deinit(&text);
    /* What there was no memory for is tried again. */
    if (r == DET_ERR_NO_MEMORY)
        tokens->stamp = (struct tokens_stamp){ .size = -1 };
    if (r < 0)
        return r;
    tokens_set_free(tokens->allocator, &tokens->set);
    tokens->set = set;
    return 0;
}

/* Says which file it is about. */
static int name_file(const struct tokens *tokens, int r, struct det_error *reterr)
{
    char text[DET_ERROR_TEXT_MAX];

    if (r >= 0 || !reterr)
        return r;
    snprintf(text, sizeof text, "%s", reterr->text);
    return det_error_set(reterr, r, "%.200s: %s", tokens->path, text);
}

static void look_again(struct tokens *tokens, det_time every)
{
    det_time now = det_world_now(tokens->world, DET_CLOCK_MONOTONIC);
    struct det_error error;

    if (now - tokens->looked_at < every)
        return;
    if (name_file(tokens, load(tokens, false, &error), &error) < 0 && tokens->trouble)
        tokens->trouble(tokens->user, error.text);
}

/* A set for a change: with room for one more, as the file has it now. */
static int copy_set(struct tokens *tokens, struct tokens_set *ret)
{
    struct tokens_set set = { .count = tokens->set.count, .capacity = tokens->set.count + 1 };

    set.rows = DET_NEW_ARRAY(tokens->allocator, set.capacity, struct tokens_row);
    if (!set.rows)
        return DET_ERR_NO_MEMORY;
    if (set.count)
        memcpy(set.rows, tokens->set.rows, set.count * sizeof *set.rows);
    *ret = set;
    return 0;
}

/* Writes the set, which takes the place of ours; frees it otherwise. */
static int keep_set(struct tokens *tokens, struct tokens_set *set_take, struct det_error *reterr)
{
    struct det_error unseen;
    struct det_buffer text;
    int r;

    det_buffer_init(&text, tokens->allocator);
    tokens_file_format(&text, set_take);
    r = tokens_file_write(tokens->world, tokens->path, &text, reterr);
    det_buffer_deinit(&text);
    if (r < 0) {
        tokens_set_free(tokens->allocator, set_take);
        return r;
    }
    tokens_set_free(tokens->allocator, &tokens->set);
    tokens->set = *set_take;
    /* What cannot be looked at now is looked at again in a second. */
    (void)!tokens_file_look(tokens->path, &tokens->stamp, &unseen);
    return 0;
}

/* A change, done with the lock of the file. */
typedef int change_fn(
    struct tokens *tokens, struct tokens_set *set, void *argument, struct det_error *reterr);

static int change(struct tokens *tokens, change_fn *run, void *argument, struct det_error *reterr)
{
    struct tokens_set set;
    int lock, r;

    r = tokens_file_lock(tokens->folder, tokens->patience, &lock, reterr);
    if (r < 0)
        return r;
    r = name_file(tokens, load(tokens, true, reterr), reterr);
    if (r == 0) {
        r = copy_set(tokens, &set);
        if (r < 0)
            det_error_set(reterr, r, "%s", det_error_text(r));
    }
    if (r == 0) {
        r = run(tokens, &set, argument, reterr);
        if (r < 0)
            tokens_set_free(tokens->allocator, &set);
        else
            r = name_file(tokens, keep_set(tokens, &set, reterr), reterr);
    }
    close(lock);
    return r;
}

/* Making one. */

static struct tokens_row *find(const struct tokens_set *set, const char *id)
{
    for (size_t i = 0; i < set->count; i++) {
        if (memcmp(set->rows[i].token.id, id, TOKENS_ID_SIZE) == 0)
            return &set->rows[i];
    }
    return NULL;
}

static void make_id(struct tokens *tokens, const struct tokens_set *set, char *id)
{
    static const char letters[] = "abcdefghijkmnpqrstuvwxyz23456789";
    unsigned char bytes[TOKENS_ID_SIZE];

    do {
        det_world_random(tokens->world, bytes, sizeof bytes);
        for (size_t i = 0; i < TOKENS_ID_SIZE; i++)
            id[i] = letters[bytes[i] % (sizeof letters - 1)];
        id[TOKENS_ID_SIZE] = '\0';
    } while (find(set, id));
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

/* Logins of which nobody knows any more. */
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
    const struct tokens_wish *wish;
    char *text;
    struct token *token;
};

static int add(
    struct tokens *tokens, struct tokens_set *set, void *argument, struct det_error *reterr)
{
    struct addition *addition = argument;
    det_time now = det_world_now(tokens->world, DET_CLOCK_WALL) / DET_SECOND * DET_SECOND;
    struct tokens_row *row;

    if (strcmp(addition->wish->name, TOKENS_CONSOLE) == 0)
        drop_old_logins(set, now);
    if (set->count >= TOKENS_MAX)
        return det_error_set(
            reterr, DET_ERR_LIMIT, "there are %d tokens; revoke some first", TOKENS_MAX);
    row = &set->rows[set->count];
    *row =
        (struct tokens_row){ .token = {
                                 .scopes = addition->wish->scopes,
                                 .created = now,
                                 .expires = addition->wish->span ? now + addition->wish->span : 0,
                             } };
    snprintf(row->token.name, sizeof row->token.name, "%s", addition->wish->name);
    make_id(tokens, set, row->token.id);
    make_text(tokens, row->token.id, addition->text);
    hash_text(addition->text, row->hash);
    *addition->token = row->token;
    set->count++;
    return 0;
}

int tokens_make(
    struct tokens *tokens, const struct tokens_wish *wish, char text[TOKENS_TEXT_SIZE + 1],
    struct token *ret, struct det_error *reterr)
{
    struct addition addition = { wish, text, ret };
    int r;

    if (!det_name_is_valid(wish->name) || strlen(wish->name) > TOKENS_NAME_MAX)
        return det_error_set(
            reterr, DET_ERR_INVALID,
            "a name of a token is 1 to %d letters, digits, '.', '_' and '-'", TOKENS_NAME_MAX);
    if (!wish->scopes || wish->scopes & ~TOKENS_ALL || wish->span < 0 || wish->span > DET_DELAY_MAX)
        return det_error_set(reterr, DET_ERR_INVALID, "a token has scopes, and at most ten years");
    r = change(tokens, add, &addition, reterr);
    if (r < 0)
        sodium_memzero(text, TOKENS_TEXT_SIZE + 1);
    return r;
}

struct removal {
    const char *id;
    struct token *token;
};

static int drop(
    struct tokens *tokens, struct tokens_set *set, void *argument, struct det_error *reterr)
{
    struct removal *removal = argument;
    struct tokens_row *row = strlen(removal->id) == TOKENS_ID_SIZE ? find(set, removal->id) : NULL;

    (void)tokens;
    if (!row)
        return det_error_set(reterr, DET_ERR_NOT_FOUND, "there is no token '%.40s'", removal->id);
    *removal->token = row->token;
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
        return "this is no token: they are made by `detent token new`";
    case TOKENS_UNKNOWN:
        return "the token is not known here, or was revoked";
    case TOKENS_EXPIRED:
        return "the token has expired; `detent token new` makes another one";
    }
    return "";
}

static bool is_token(const char *text)
{
    const char *id = text + strlen(PREFIX);

    return strlen(text) == TOKENS_TEXT_SIZE && strncmp(text, PREFIX, strlen(PREFIX)) == 0 &&
           id[TOKENS_ID_SIZE] == '_' && memchr(id, '_', TOKENS_ID_SIZE) == NULL;
}

/* As much is done for an id that there is not. */
static enum tokens_verdict judge(
    struct tokens *tokens, const char *text, struct tokens_answer *answer)
{
    static const struct tokens_row nobody = { .token = { .id = "" } };
    unsigned char hash[TOKENS_HASH_SIZE];
    const struct tokens_row *row;
    bool is_same;

    if (!is_token(text))
        return TOKENS_MALFORMED;
    row = find(&tokens->set, text + strlen(PREFIX));
    hash_text(text, hash);
    is_same = sodium_memcmp(hash, row ? row->hash : nobody.hash, sizeof hash) == 0;
    sodium_memzero(hash, sizeof hash);
    if (!row || !is_same)
        return TOKENS_UNKNOWN;
    answer->token = row->token;
    if (row->token.expires && det_world_now(tokens->world, DET_CLOCK_WALL) >= row->token.expires)
        return TOKENS_EXPIRED;
    answer->scopes = row->token.scopes & TOKENS_ADMIN ? TOKENS_ALL : row->token.scopes;
    return TOKENS_GOOD;
}

void tokens_check(
    struct tokens *tokens, const char *text, const char *peer, struct tokens_answer *ret)
{
    *ret = (struct tokens_answer){ .scopes = 0 };
    det_mutex_lock(tokens->world, tokens->mutex);
    look_again(tokens, LOOK_EVERY);
    ret->verdict = judge(tokens, text, ret);
    /* It may have been made a moment ago; whether the file has changed costs little. */
    if (ret->verdict == TOKENS_UNKNOWN) {
        look_again(tokens, 0);
        ret->verdict = judge(tokens, text, ret);
    }
    /* A good one forgives nothing: whoever guesses may share an address with who need not. */
    if (ret->verdict != TOKENS_GOOD)
        ret->wait = tokens_peer_failed(
            &tokens->peers, peer, det_world_now(tokens->world, DET_CLOCK_MONOTONIC));
    det_mutex_unlock(tokens->world, tokens->mutex);
}

/* The rest of the interface. */

int tokens_open(const struct tokens_options *options, struct tokens **ret, struct det_error *reterr)
{
    struct tokens *tokens;
    int r;

    if (strlen(options->folder) >= sizeof tokens->folder)
        return det_error_set(reterr, DET_ERR_LIMIT, "the path of the tokens is too long");
    if (sodium_init() < 0)
        return det_error_set(reterr, DET_ERR_UNSUPPORTED, "libsodium does not work here");
    tokens = DET_NEW(options->allocator, struct tokens);
    if (!tokens)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "there is no memory left");
    tokens->allocator = options->allocator;
    tokens->world = det_world_or_real(options->world);
    tokens->patience = options->patience;
    tokens->trouble = options->trouble;
    tokens->user = options->user;
    snprintf(tokens->folder, sizeof tokens->folder, "%s", options->folder);
    snprintf(tokens->path, sizeof tokens->path, "%s/" TOKENS_FILE_NAME, options->folder);
    r = det_mutex_open(tokens->world, &tokens->mutex);
    if (r < 0)
        det_error_set(reterr, r, "%s", det_error_text(r));
    else
        r = name_file(tokens, load(tokens, true, reterr), reterr);
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
    sodium_memzero(tokens->codes, sizeof tokens->codes);
    DET_DELETE(tokens->allocator, tokens);
}

int tokens_reload(struct tokens *tokens, struct det_error *reterr)
{
    int r;

    det_mutex_lock(tokens->world, tokens->mutex);
    r = name_file(tokens, load(tokens, true, reterr), reterr);
    det_mutex_unlock(tokens->world, tokens->mutex);
    return r;
}

int tokens_add(
    struct tokens *tokens, const struct tokens_wish *wish, char text[TOKENS_TEXT_SIZE + 1],
    struct token *ret, struct det_error *reterr)
{
    int r;

    det_mutex_lock(tokens->world, tokens->mutex);
    r = tokens_make(tokens, wish, text, ret, reterr);
    det_mutex_unlock(tokens->world, tokens->mutex);
    return r;
}

int tokens_revoke(
    struct tokens *tokens, const char *id, struct token *ret, struct det_error *reterr)
{
    struct removal removal = { id, ret };
    int r;

    det_mutex_lock(tokens->world, tokens->mutex);
    r = change(tokens, drop, &removal, reterr);
    det_mutex_unlock(tokens->world, tokens->mutex);
    return r;
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
    row = strlen(id) == TOKENS_ID_SIZE ? find(&tokens->set, id) : NULL;
    if (row)
        *ret = row->token;
    det_mutex_unlock(tokens->world, tokens->mutex);
    return row;
}
