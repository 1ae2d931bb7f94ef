/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* strict.h - turns the warnings that this library's types rely on into errors, whatever the
 * compiler flags. Include it last. */
#ifndef DETENT_STRICT_H
#define DETENT_STRICT_H

#pragma GCC diagnostic error "-Wreturn-type"
#pragma GCC diagnostic error "-Wunused-result"
#pragma GCC diagnostic error "-Wenum-compare"
#ifndef __cplusplus
#pragma GCC diagnostic error "-Wint-conversion"
#pragma GCC diagnostic error "-Wincompatible-pointer-types"
#pragma GCC diagnostic error "-Wenum-conversion"
#pragma GCC diagnostic error "-Wimplicit-function-declaration"
#endif

#endif
