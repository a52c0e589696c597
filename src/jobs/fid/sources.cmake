# SPDX-License-Identifier: Apache-2.0
set(SOURCES fid_probe.c fid_read.c fid_run.c fid_set.c fid_verdict.c fid_view.c)
