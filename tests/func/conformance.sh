#!/bin/bash
# SPDX-License-Identifier: MIT
# libiscsi's conformance suite, every test of it.
exec "$(dirname "$0")/../../scripts/conformance"
