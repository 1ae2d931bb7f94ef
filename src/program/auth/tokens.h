/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* tokens.h - who may ask what of the HTTP API: the tokens of a project (docs/formats/tokens.md),
 * and the codes by which a console comes to one.
 *
 *     tokens_add() ----> the file <---- tokens_code_redeem() <---- a code of tokens_code_new()
 *                          |
 *                     looked at once a second
 *                          |
 *     tokens_check() <-----+----> the answer, or how long to wait with it
 *
 * Invariants
 *   1. A secret is told once, by who makes it; it is neither in the file nor kept in memory.
 *   2. What is in memory is a whole file that was right. While the file is not, no token counts:
 *      whoever has changed it may have wanted to take one back.
 *   3. A change is in the file, synced, before it counts.
 *
 * Any thread may call. Only a change writes; a check looks at the file once a second, and when it
 * does not know a token, if that is not too often, and never waits for a change. */
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

/* What everybody may see of one. */
struct token {
    char id[TOKENS_ID_SIZE + 1];
    char name[TOKENS_NAME_MAX + 1];
    unsigned scopes;  /* as given */
    det_time created; /* wall */
    det_time expires; /* the same; 0: never */
};

struct tokens_options {
    const struct det_allocator *allocator;
    struct det_world *world;
    const char *folder; /* of the file; made when something is to be kept and it is not there */
    /* How long a change waits for one of another process. 0: not at all, for who runs a loop. */
    det_time patience;
    /* The file is not right any more (`is_closed`), or cannot be read for now, and why; once, until
     * that changes. May be NULL. From the thread that has found out; it must not call back. */
    void (*trouble)(void *user, const char *text, bool is_closed);
    /* One is new, or gone, since the file was read before. May be NULL; as `trouble`. */
    void (*changed)(void *user, const struct token *token, bool is_new);
    void *user;
};

/* Reads the file; that there is none is no error. DET_ERR_REFUSED: others can read or write it, or
 * it is another user's; DET_ERR_CORRUPT; DET_ERR_VERSION; DET_ERR_LIMIT; DET_ERR_IO;
 * DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int tokens_open(
    const struct tokens_options *options, struct tokens **ret, struct det_error *reterr);
void tokens_close(struct tokens *tokens);
/* Looks at the file now, whenever that was done last. An error is that of tokens_open(): no token
 * counts then. */
DET_MUST_CHECK int tokens_reload(struct tokens *tokens, struct det_error *reterr);

enum tokens_verdict {
    TOKENS_GOOD,
    TOKENS_MALFORMED, /* it cannot be a token */
    TOKENS_UNKNOWN,   /* it is none of ours, or no more */
    TOKENS_EXPIRED,
    TOKENS_CLOSED, /* the file is not right: nobody knows who may */
};
/* A sentence for who has given it, which tells nothing of what would be right. */
const char *tokens_verdict_text(enum tokens_verdict verdict);

struct tokens_answer {
    enum tokens_verdict verdict;
    struct token token; /* TOKENS_GOOD, TOKENS_EXPIRED */
    unsigned scopes;    /* what it gives the right to: `admin` is all */
    det_time wait;      /* of the others: how long the answer is to be kept back */
};
/* `peer` is an address, with or without its port, or "unix". */
void tokens_check(
    struct tokens *tokens, const char *text, const char *peer, struct tokens_answer *ret);

struct tokens_wish {
    const char *name;
    unsigned scopes;
    det_time span; /* how long it lasts; 0: for ever */
};
/* Makes one and writes it down. `text` (TOKENS_TEXT_SIZE + 1 bytes) is the secret: wipe it.
 * DET_ERR_INVALID: the name or the scopes; DET_ERR_LIMIT: there are too many; DET_ERR_BUSY: another
 * process changes them; and those of tokens_open(). */
DET_MUST_CHECK int tokens_add(
    struct tokens *tokens, const struct tokens_wish *wish, char text[TOKENS_TEXT_SIZE + 1],
    struct token *ret, struct det_error *reterr);
/* DET_ERR_NOT_FOUND: there is none of this id; and those of tokens_add(). */
DET_MUST_CHECK int tokens_revoke(
    struct tokens *tokens, const char *id, struct token *ret, struct det_error *reterr);
/* How many there are that have not expired. */
size_t tokens_count(struct tokens *tokens);
/* The one at this place, in order of their creation; false: there are fewer. */
bool tokens_at(struct tokens *tokens, size_t index, struct token *ret);

/* The one of this id, whether it has expired or not; false: there is none. */
bool tokens_find(struct tokens *tokens, const char *id, struct token *ret);
/* Whether the one of this id, which was good once, still gives one of these rights. */
bool tokens_is_good(struct tokens *tokens, const char *id, unsigned needed);

/* A code that is good once, for TOKENS_CODE_SPAN; the oldest one goes when there are too many. */
void tokens_code_new(struct tokens *tokens, char code[TOKENS_CODE_SIZE + 1]);
struct tokens_login {
    char text[TOKENS_TEXT_SIZE + 1]; /* the secret: wipe it */
    struct token token;
    det_time wait; /* of one that is not good: as of an answer, written in any case */
};
/* A token for it. DET_ERR_NOT_FOUND: it is none, was used, or is too old. Else as tokens_add(): the
 * code stays good then. */
DET_MUST_CHECK int tokens_code_redeem(
    struct tokens *tokens, const char *code, const char *peer, struct tokens_login *ret,
    struct det_error *reterr);

/* "read,send" into bits; false: one of them is no scope, or it is empty. */
bool tokens_parse_scopes(const char *text, unsigned *ret);
/* The word of the scope at this place; NULL: there are fewer. */
const char *tokens_scope_word(size_t index);

#endif
