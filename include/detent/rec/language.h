/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* language.h - explains in one sentence that the templates are for C; a compiler of another
 * language would print hundreds of errors. The template then omits itself. */
#if defined __cplusplus || !defined __STDC_VERSION__
#define REC__IS_C11 0
#elif __STDC_VERSION__ < 201112L
#define REC__IS_C11 0
#else
#define REC__IS_C11 1
#endif

#if !REC__IS_C11
#error "a spec becomes code in C11 or later only: include its header and its tables in C files"
#endif
