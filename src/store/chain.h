/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* chain.h - the hash of an event and the checksum of a row, as specified in
 * docs/formats/sql_schema.md. All values are in their stored form: names, not ids; bytes, not
 * structs. Allocates nothing. */
#ifndef DET_STORE_CHAIN_H
#define DET_STORE_CHAIN_H

#include <detent/base.h>

#define DET_CHAIN_SIZE 32

struct det_chain_hash {
    uint8_t bytes[DET_CHAIN_SIZE];
};

/* A text or a blob; a NULL pointer is NULL in the table. */
struct det_chain_bytes {
    const void *data;
    size_t size;
};

/* An event in its stored form. */
struct det_chain_event {
    const char *machine, *id; /* of the instance */
    uint64_t version, sequence, visit;
    const char *from, *to;
    const char *event; /* NULL: a manual stop */
    const char *outcome;
    uint64_t choice;
    bool is_timeout;
    det_time at;
    const char *event_id, *cause; /* NULL: none */
    struct det_chain_bytes payload;
};

/* The start of an instance. */
struct det_chain_start {
    const char *machine, *id;
    det_time at;
    uint64_t version;
    const char *state; /* NULL: the start is not recorded; version and data are then unset */
    struct det_chain_bytes data;
};

/* The stored head of an instance or of a snapshot. */
struct det_chain_head {
    const char *machine, *id;
    uint64_t version;
    const char *state;
    uint64_t sequence, visit, transitions;
    det_time started_at, moved_at;
    bool is_stopped;
    const char *reason; /* NULL: none */
    struct det_chain_bytes data;
    struct det_chain_hash hash;
};

/* Enables the hash instructions of this processor, which are three times as fast. May be called
 * repeatedly, from any thread; the results are the same without it. */
void det_chain_prepare(void);
/* The hash of a new instance. */
struct det_chain_hash det_chain_start(const struct det_chain_start *start);
/* The hash of an event that follows `previous`. */
struct det_chain_hash det_chain_next(
    const struct det_chain_hash *previous, const struct det_chain_event *event);
uint32_t det_chain_head_checksum(const struct det_chain_head *head);
/* `history`: the names, separated by one space. */
uint32_t det_chain_snapshot_checksum(
    const struct det_chain_head *head, const char *history, det_time taken_at);
/* The hash of any bytes that follow `previous`: for chains of lines in a file. */
struct det_chain_hash det_chain_bytes(
    const struct det_chain_hash *previous, struct det_chain_bytes bytes);
/* The fingerprint of a definition: 32 hexadecimal digits and a final 0, from its canonical text. */
void det_chain_fingerprint(const char *spec, char target[33]);

#endif
