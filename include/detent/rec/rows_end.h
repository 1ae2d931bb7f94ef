/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* rows_end.h - no row of a record is a macro any more. */
#undef RECORD
#undef FIELD
#undef OPTIONAL
#undef ARRAY
#undef ENUM
#undef VALUE
#undef END
