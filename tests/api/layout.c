/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the members of the public structs lie (64-bit): programs compiled with an older leeway.h have these numbers
 * in them. Members are only added, at the end; a line that does not compile any more is a broken interface, not
 * a test to mend. lw_session_rows lies in arrays of the caller's, so that nothing can be added to it at all.
 */
#include <stddef.h>

#include "leeway.h"

#define PIN(type, member, at) \
    _Static_assert(offsetof(type, member) == (at), #type "." #member " has moved")

#if defined(__LP64__)
PIN(lw_callbacks, size, 0);
PIN(lw_callbacks, self, 8);
PIN(lw_callbacks, progress, 16);
PIN(lw_callbacks, cancel, 24);
PIN(lw_callbacks, preview, 32);
PIN(lw_device_options, size, 0);
PIN(lw_device_options, threads, 8);
PIN(lw_device_options, isa, 16);
PIN(lw_model_info, size, 0);
PIN(lw_model_info, kind, 8);
PIN(lw_model_info, network, 16);
PIN(lw_model_info, parameters, 24);
PIN(lw_model_info, channels, 32);
PIN(lw_model_info, image_size, 36);
PIN(lw_model_info, classes, 40);
PIN(lw_model_info, latent, 44);
PIN(lw_model_info, method, 48);
PIN(lw_model_info, noise_size, 56);
PIN(lw_session_options, size, 0);
PIN(lw_session_options, batch, 8);
PIN(lw_session_options, height, 12);
PIN(lw_session_options, width, 16);
PIN(lw_session_options, output, 24);
PIN(lw_tensor_info, size, 0);
PIN(lw_tensor_info, name, 8);
PIN(lw_tensor_info, is_output, 16);
PIN(lw_tensor_info, element, 20);
PIN(lw_tensor_info, rank, 24);
PIN(lw_tensor_info, shape, 32);
PIN(lw_tensor_info, bytes, 64);
PIN(lw_session_rows, name, 0);
PIN(lw_session_rows, in, 8);
PIN(lw_session_rows, out, 16);
PIN(lw_sampler_options, size, 0);
PIN(lw_sampler_options, batch, 8);
PIN(lw_sampler_options, steps, 12);
PIN(lw_sampler_options, sampler, 16);
PIN(lw_sampler_options, seed, 24);
PIN(lw_sampler_options, precision, 32);
PIN(lw_sampler_info, size, 0);
PIN(lw_sampler_info, sampler, 8);
PIN(lw_sampler_info, evaluations, 16);
PIN(lw_sampler_info, channels, 20);
PIN(lw_sampler_info, height, 24);
PIN(lw_sampler_info, width, 28);
PIN(lw_sampler_info, classes, 32);
PIN(lw_field_request, size, 0);
PIN(lw_field_request, groups, 8);
PIN(lw_field_request, slots, 16);
PIN(lw_field_request, channels, 24);
PIN(lw_field_request, generated, 32);
PIN(lw_field_request, positives, 40);
PIN(lw_field_request, unconditional, 48);
PIN(lw_field_request, x, 56);
PIN(lw_field_request, positive, 64);
PIN(lw_field_request, uncond, 72);
PIN(lw_field_request, uncond_weight, 80);
PIN(lw_field_request, temperatures, 88);
PIN(lw_field_request, temperature_count, 96);
PIN(lw_field_request, rows_only, 100);
PIN(lw_field_request, variant, 104);
PIN(lw_field_request, field, 112);
PIN(lw_field_request, gradient, 120);
PIN(lw_field_report, size, 0);
PIN(lw_field_report, temperature_count, 8);
PIN(lw_field_report, scale, 16);
PIN(lw_field_report, sigma, 24);
PIN(lw_field_report, loss, 32);
PIN(lw_field_report, lambda, 40);
PIN(lw_field_report, raw_mean_v2, 104);
_Static_assert(sizeof(lw_session_rows) == 24, "lw_session_rows has grown");
#endif
