/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session: what a user named, opened and ready to run: a device, a model folder with its store and plans, a generator
 * with its sampler, features of pictures batch by batch. Jobs and trainers stand on it.
 *
 * Read: session_device.h, session_forward.h (rows through any network, batch by batch), then
 * session_generator.h and session_sampler.h (pictures from a trained generator),
 * session_translator.h (frames of video through a network).
 */
#ifndef LW_SESSION_H
#define LW_SESSION_H

#include "session/session_adversarial.h"
#include "session/session_battery.h"
#include "session/session_contract.h"
#include "session/session_decoding.h"
#include "session/session_device.h"
#include "session/session_diffusion.h"
#include "session/session_features.h"
#include "session/session_flow.h"
#include "session/session_forward.h"
#include "session/session_generator.h"
#include "session/session_last_layer.h"
#include "session/session_latents.h"
#include "session/session_machine.h"
#include "session/session_machine_gpu.h"
#include "session/session_passes.h"
#include "session/session_planted.h"
#include "session/session_quantization.h"
#include "session/session_sampler.h"
#include "session/session_sampler_turns.h"
#include "session/session_translator.h"
#include "session/session_tuned.h"
#include "session/session_unet.h"
#include "session/session_verdict.h"
#include "session/session_verdict_text.h"

#endif
