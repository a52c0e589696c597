/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checkpoints: RUN/checkpoints/step_0010000/{config.json, WEIGHTS, ema/{config.json, WEIGHTS},
 * optimizer.safetensors, state.json} and RUN/checkpoints/last -> step_0010000. WEIGHTS is
 * diffusion_pytorch_model.safetensors unless said otherwise; beside config.json may be files that
 * other programs look for. Without an average there is no ema/: it would be WEIGHTS again.
 *
 * A step directory is written under a temporary name, every file and directory fsynced, then
 * renamed, then `last` is replaced: at any moment `last` names a whole checkpoint or does not
 * exist. Raw f32, so that a resumed run continues bit for bit.
 */
#ifndef LW_STORE_CHECKPOINT_H
#define LW_STORE_CHECKPOINT_H

#include "store/store_file.h"

#define LW_WEIGHTS_DIFFUSERS "diffusion_pytorch_model.safetensors"
#define LW_WEIGHTS_HF "model.safetensors"

/* A state.json that says more than this was not written by a training. */
#define LW_MAX_STEPS INT64_C(1000000000000)
#define LW_MAX_IMAGES INT64_C(1000000000000000000)
#define LW_MAX_SECONDS 1e10

typedef struct lw_checkpoint {
    int64_t step; /* finished steps: the next one is number `step` */
    uint64_t seed;
    int64_t images; /* seen so far */
    double train_seconds;
    const char *isa; /* lw_isa_name of the training; load: NULL when unknown, owned by `state` */
    json_t *config;  /* config.json; save: borrowed. load: owned, see lw_checkpoint_clear */
    json_t *extra;   /* any object under "extra" of state.json, or NULL; as config */
    json_t *state;   /* load: the whole state.json, owned */
    const char *weights; /* file name of the weights; NULL: LW_WEIGHTS_DIFFUSERS */
    bool averaged;       /* save: ema/ is wanted, also where it still equals the weights */
    const json_t *files; /* save: {name: content} of JSON files beside config.json; NULL: none */
} lw_checkpoint;

/* Writes run/checkpoints/step_<step>. Leftovers of interrupted saves are removed first. An existing
 * checkpoint of the same step is replaced. LW_EIO leaves older checkpoints and `last` as
 * they were. */
int lw_checkpoint_save(const char *run, const lw_store *s, const lw_checkpoint *c);
/* Points run/checkpoints/best at a step directory, which must be whole; step < 0: removes it. */
int lw_checkpoint_best(const char *run, int64_t step);
/* Points `last` at a step directory, which must be whole, as a save does: a process may end between the two. */
int lw_checkpoint_last(const char *run, int64_t step);
/* Reads a step directory into a fixed store of the same model and *out (on success only; clear it).
 * LW_EFORMAT: incomplete, damaged, or of another model. Restores PARAM, EMA, M and V. */
int lw_checkpoint_load(const char *dir, lw_store *s, lw_checkpoint *out);
/* Same without the store: config and state only, to build the model from. */
int lw_checkpoint_peek(const char *dir, lw_checkpoint *out);
/* state.json alone. LW_EFORMAT: a field is missing, or a number is none that a training has. */
int lw_checkpoint_state(const char *path, lw_checkpoint *out);
void lw_checkpoint_clear(lw_checkpoint *c); /* what load and peek own; accepts a zeroed struct */

/* The newest whole checkpoint of a run: where `last` points, else the highest whole step. dir is
 * replaced. LW_EFORMAT: there is none; LW_EIO: no such directory. */
int lw_checkpoint_latest(const char *run, lw_str *dir);
/* Removes all but the newest `keep` (>= 1) step directories; never the one `last` or `best` points
 * at. keep < 1: none. */
int lw_checkpoint_prune(const char *run, int keep);

/* ---- SOURCE -> model ------------------------------------------------------------------------- */

/* What can stand where a user names a model. */
typedef enum lw_place_kind {
    LW_PLACE_FILE,     /* a file: of weights, where it is a model's */
    LW_PLACE_RUN,      /* a run directory, with checkpoints/ */
    LW_PLACE_MODEL,    /* a model folder or checkpoint, with config.json */
    LW_PLACE_PIPELINE, /* a folder of diffusers, whose model is in unet/ */
    LW_PLACE_WEIGHTS   /* a folder of weights without a config.json */
} lw_place_kind;
/* LW_EIO: there is nothing; LW_EFORMAT: a folder of other things. */
int lw_place_look(const char *path, lw_place_kind *out);

typedef struct lw_model_place {
    lw_place_kind kind; /* of SOURCE */
    lw_str path;        /* its model folder, or the file */
    json_t *config;     /* its config.json or open_clip_config.json; NULL: weights alone */
    lw_str config_path;
} lw_model_place;
/* SOURCE of the command line -> model: the newest checkpoint of a run, and with `ema` the averaged
 * weights where there are any. */
int lw_model_find(const char *source, bool ema, lw_model_place *out);
void lw_model_place_clear(lw_model_place *p); /* accepts a zeroed struct */
/* The weights file in a model folder: diffusers' name, Hugging Face's, or an index of shards; of a
 * file the file itself. path is replaced. */
int lw_model_weights_find(const char *dir, lw_str *path);
/* A model folder of one store: config.json and weights (weights NULL: LW_WEIGHTS_DIFFUSERS). */
int lw_model_folder_save(const char *dir, const lw_store *s, lw_slab slab, const json_t *config,
                         const char *weights);

#endif
