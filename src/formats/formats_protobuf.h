/* SPDX-License-Identifier: Apache-2.0 */
/* Protocol buffers, written field by field: a message is a string of its encoded fields, and goes into
 * another one as a field of it. Where memory ends, `failed` of the string says so. */
#ifndef LW_FORMATS_PROTOBUF_H
#define LW_FORMATS_PROTOBUF_H

#include "base/base.h"

void lw_pb_varint(lw_str *s, uint64_t v);
void lw_pb_int(lw_str *s, unsigned field, int64_t v);
void lw_pb_double(lw_str *s, unsigned field, double v);
void lw_pb_float(lw_str *s, unsigned field, float v);
/* Tag and length of n bytes, which the caller adds. */
void lw_pb_head(lw_str *s, unsigned field, size_t n);
void lw_pb_bytes(lw_str *s, unsigned field, const void *bytes, size_t n);
void lw_pb_text(lw_str *s, unsigned field, const char *text);
void lw_pb_message(lw_str *s, unsigned field, const lw_str *m);

#endif
