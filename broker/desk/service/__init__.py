# SPDX-License-Identifier: Apache-2.0
"""The desk that takes commands, locks what they need, decides and commits; its queue and its timers."""
