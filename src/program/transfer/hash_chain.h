/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* hash_chain.h - lines that each carry the hash of all lines before them (docs/formats/export.md).
 */
#ifndef DET_TRANSFER_HASH_CHAIN_H
#define DET_TRANSFER_HASH_CHAIN_H

#include "store/chain.h"
#include "json/writer.h"

/* The hash of the last line. Zero before the first. */
struct seal {
    struct det_chain_hash hash;
};

/* Adds the last member to an object, and closes it. */
void seal_close(struct seal *seal, struct det_json_writer *json);
/* Returns true if the line, without its newline, continues the chain, and advances it. */
DET_MUST_CHECK bool seal_check(struct seal *seal, const char *text, size_t size);

#endif
