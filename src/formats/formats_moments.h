/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mean and covariance of features in files, as programs that compute Frechet distances keep them.
 *
 *   .npz          mu [d], sigma [d,d]: pytorch-fid, clean-fid, ADM's reference batches, whose spatial
 *                 features mu_s, sigma_s are the set "s" (their pictures, arr_0, are passed over)
 *   .safetensors  NAME.mu, NAME.cov, as many sets as one likes; or mu, cov
 *
 * Covariances have divisor n - 1 (numpy.cov). Files written here also hold how many rows there were
 * (count) and how they came about (contract); numpy and the programs named above do not mind.
 */
#ifndef LW_FORMATS_MOMENTS_H
#define LW_FORMATS_MOMENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/formats_elem.h"

typedef struct lw_moments {
    int32_t dim;
    int64_t count;  /* rows; 0: the file does not say */
    lw_elem dtype;  /* of the numbers in the file; saved as F64 whatever it is */
    double *mean;   /* [dim] */
    double *cov;    /* [dim][dim], symmetric to the bit */
    char *contract; /* how the features were made, as their writer put it; NULL: not said */
} lw_moments;

void lw_moments_clear(lw_moments *s); /* accepts a zeroed struct; fits LW_CLEANUP */
/*
 * set: NULL or "" for the one without a name, or the only one. LW_EFORMAT, in one line, for a file
 * without statistics or with several and none named, shapes that are not [d] and [d,d], numbers
 * that are not finite, a variance below zero, and a covariance that is off symmetry by more than
 * 1e-5 of the geometric mean of its two variances (rounding of f32 is evened out).
 */
int lw_moments_load(const char *path, const char *set, lw_moments *out);
/* Whether an array of that name is the mean that this set begins with there; set NULL or "": of any. */
bool lw_moments_is_mean(const char *path, const char *set, const char *name);
/* By the path's ending, .npz or .safetensors; atomic. */
int lw_moments_save(const char *path, const lw_moments *s);

/*
 * What clean-fid says of statistics in their file's name, NAME_MODE[_MODEL]_SPLIT_RES.npz: mode
 * "clean", "legacy_pytorch" or "legacy_tensorflow" (its three resizes), model "" for Inception-v3,
 * resolution "na" where none was asked for. False for any other name.
 */
typedef struct lw_clean_fid_name {
    char name[64], mode[24], model[32], split[24], resolution[8];
} lw_clean_fid_name;
int lw_clean_fid_parse(const char *path, lw_clean_fid_name *out); /* 1: it is one, 0: it is not */

#endif
