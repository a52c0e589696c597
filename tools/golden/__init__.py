# SPDX-License-Identifier: Apache-2.0
"""Parts of gen_golden.py: reference values for the tests, made with PyTorch and numpy."""
