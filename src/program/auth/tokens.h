/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* tokens.h - the tokens of a project, which authorize requests to the HTTP API
 * (docs/formats/tokens.md), and the one-time codes of the console.
 *
 *     tokens_add() ----> the file <---- tokens_code_redeem() <---- a code of tokens_code_new()
 *                          |
 *                     checked once a second
 *                          |
 *     tokens_check() <-----+----> the verdict, or how long to delay it
 *
 * Invariants
 *   1. A secret is returned once, at its creation; it is neither in the file nor kept in memory.
 *   2. Memory holds a complete valid file. While the file is invalid, no token is valid: its change
 *      may have been meant to revoke one.
 *   3. A change is in the file, synced, before it takes effect.
 *
 * Any thread may call. Only a change writes; a check examines the file once a second, and for an
 * unknown token, with a rate limit, and never waits for a change. */
#ifndef DET_AUTH_TOKENS_H
#define DET_AUTH_TOKENS_H

#include <detent/world.h>

/* SCOPE(bit, name, word) */
#define TOKENS_SCOPES(SCOPE) \
    SCOPE(0, READ, "read")   \
    SCOPE(1, SEND, "send")   \
    SCOPE(2, ADMIN, "admin") \
    SCOPE(3, METRICS, "metrics")

enum tokens_scope {
#define SCOPE(bit, name, word) TOKENS_##name = 1 << (bit),
    TOKENS_SCOPES(SCOPE)
#undef SCOPE
};
#define TOKENS_SCOPE_COUNT 4
#define TOKENS_ALL         ((1u << TOKENS_SCOPE_COUNT) - 1)

#define TOKENS_ID_SIZE     8
#define TOKENS_SECRET_SIZE 43
#define TOKENS_TEXT_SIZE   (4 + TOKENS_ID_SIZE + 1 + TOKENS_SECRET_SIZE)
#define TOKENS_CODE_SIZE   22
#define TOKENS_NAME_MAX    64
#define TOKENS_MAX         1000
#define TOKENS_FILE_NAME   "tokens"
#define TOKENS_CONSOLE     "console"
#define TOKENS_CODE_SPAN   (10 * DET_MINUTE)
#define TOKENS_LOGIN_SPAN  (12 * DET_HOUR)

struct tokens;

/* The public properties of a token. */
struct token {
    char id[TOKENS_ID_SIZE + 1];
    char name[TOKENS_NAME_MAX + 1];
    unsigned scopes;  /* as given */
    det_time created; /* wall */
    det_time expires; /* wall; 0: never */
};

struct tokens_options {
    const struct det_allocator *allocator;
    struct det_world *world;
    const char *folder; /* folder of the file; created when necessary */
    /* How long a change waits for one of another process. 0: not at all, for event-loop threads. */
    det_time patience;
    /* Reports that the file is invalid (`is_closed`) or temporarily unreadable, and why; once,
     * until that changes. May be NULL. Called on the thread that detected it; it must not call
     * back. */
    void (*problem)(void *user, const char *text, bool is_closed);
    /* Reports that a token was added or removed since the last read. May be NULL; as `problem`. */
    void (*changed)(void *user, const struct token *token, bool is_new);
    void *user;
};

/* Reads the file, if it exists. DET_ERR_REFUSED: others can read or write it, or it belongs to
 * another user; DET_ERR_CORRUPT; DET_ERR_VERSION; DET_ERR_LIMIT; DET_ERR_IO; DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int tokens_open(
    const struct tokens_options *options, struct tokens **ret, struct det_error *reterr);
void tokens_close(struct tokens *tokens);

enum tokens_verdict {
    TOKENS_GOOD,
    TOKENS_MALFORMED, /* it cannot be a token */
    TOKENS_UNKNOWN,   /* not or no longer one of ours */
    TOKENS_EXPIRED,
    TOKENS_CLOSED, /* the file is invalid: no token can be checked */
};
/* A sentence for the client, which reveals nothing about valid tokens. */
const char *tokens_verdict_text(enum tokens_verdict verdict);

struct tokens_answer {
    enum tokens_verdict verdict;
    struct token token; /* TOKENS_GOOD, TOKENS_EXPIRED */
    unsigned scopes;    /* its rights: `admin` includes all */
    det_time wait;      /* otherwise: how long to delay the answer */
};
/* `peer` is an address, with or without its port, or "unix". */
void tokens_check(
    struct tokens *tokens, const char *text, const char *peer, struct tokens_answer *ret);

struct tokens_grant {
    const char *name;
    unsigned scopes;
    det_time span; /* its lifetime; 0: unlimited */
};
/* Creates a token and writes it to the file. `text` (TOKENS_TEXT_SIZE + 1 bytes) is the secret:
 * wipe it. DET_ERR_INVALID: the name or the scopes; DET_ERR_LIMIT: too many tokens; DET_ERR_BUSY:
 * another process is changing them; and those of tokens_open(). */
DET_MUST_CHECK int tokens_add(
    struct tokens *tokens, const struct tokens_grant *grant, char text[TOKENS_TEXT_SIZE + 1],
    struct token *ret, struct det_error *reterr);
/* DET_ERR_NOT_FOUND: no such id; and those of tokens_add(). */
DET_MUST_CHECK int tokens_revoke(
    struct tokens *tokens, const char *id, struct token *ret, struct det_error *reterr);
/* Returns the number of tokens that have not expired. */
size_t tokens_count(struct tokens *tokens);
/* Returns the token at this index, in order of creation; false at the end. */
bool tokens_at(struct tokens *tokens, size_t index, struct token *ret);

/* Returns the token with this id, expired or not; false if there is none. */
bool tokens_find(struct tokens *tokens, const char *id, struct token *ret);
/* Returns true if the token with this id, which was valid once, still grants one of these
 * rights. */
bool tokens_is_good(struct tokens *tokens, const char *id, unsigned needed);

/* Creates a one-time code, valid for TOKENS_CODE_SPAN; the oldest one is dropped when there are too
 * many. */
void tokens_code_new(struct tokens *tokens, char code[TOKENS_CODE_SIZE + 1]);
struct tokens_login {
    char text[TOKENS_TEXT_SIZE + 1]; /* the secret: wipe it */
    struct token token;
    det_time wait; /* delay of the answer to a wrong code; written in any case */
};
/* Exchanges a code for a token. DET_ERR_NOT_FOUND: unknown, used, or too old. Otherwise as
 * tokens_add(): then the code stays valid. */
DET_MUST_CHECK int tokens_code_redeem(
    struct tokens *tokens, const char *code, const char *peer, struct tokens_login *ret,
    struct det_error *reterr);

/* Parses "read,send" to bits; false if a scope is unknown, or the text is empty. */
bool tokens_parse_scopes(const char *text, unsigned *ret);
/* Returns the word of the scope at this index; NULL at the end. */
const char *tokens_scope_word(size_t index);

#endif
