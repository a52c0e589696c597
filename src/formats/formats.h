/* SPDX-License-Identifier: Apache-2.0 */
/*
 * formats: bytes <-> plain structs. Knows file formats, no model.
 *
 *   formats_elem         element types and conversions to and from f32
 *   formats_safetensors  safetensors files (mapped reader, shards, streaming writer)
 *   formats_torch        torch.save's files as the same view, without running their pickle
 *   formats_npy          .npy and .npz arrays
 *   formats_moments      mean and covariance of features: .npz of pytorch-fid and others
 *   formats_image        PNG, JPEG, BMP, WebP -> 8-bit RGB; PNG and JPEG back, text in PNG files
 *   formats_archive      members of tar/zip archives, decompressed files
 *   formats_json         JSON through jansson (whose json_t is the tree every caller uses)
 *   formats_yaml         YAML 1.2 core scalars <-> json_t
 *   formats_events       TensorBoard event files
 *   formats_protobuf     fields of protocol buffers, written: event files and ONNX
 *   formats_lines        CSV and JSON-lines logs: append, cut back, read
 *
 * Every reader treats its input as hostile: sizes are checked before use and a bad file is
 * LW_EFORMAT with one line that names the file, the place and the reason; a missing one is LW_EIO.
 */
#ifndef LW_FORMATS_H
#define LW_FORMATS_H

#include "formats/formats_archive.h"
#include "formats/formats_elem.h"
#include "formats/formats_events.h"
#include "formats/formats_moments.h"
#include "formats/image/formats_image.h"
#include "formats/text/formats_json.h"
#include "formats/text/formats_lines.h"
#include "formats/formats_npy.h"
#include "formats/formats_protobuf.h"
#include "formats/formats_safetensors.h"
#include "formats/text/formats_yaml.h"

#endif
