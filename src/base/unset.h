/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* unset.h - marks a large variable on a hot path that is written field by field; hardened builds
 * zero every other variable first. */
#ifndef DET_BASE_UNSET_H
#define DET_BASE_UNSET_H

#if defined(__has_attribute)
#if __has_attribute(uninitialized)
#define DET_UNSET __attribute__((uninitialized))
#endif
#endif
#ifndef DET_UNSET
#define DET_UNSET
#endif

#endif
