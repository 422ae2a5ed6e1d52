# SPDX-License-Identifier: Apache-2.0
"""Celery: what happens by the clock, and long jobs (re-optimisation, simulation). Each task is a few lines; the work is elsewhere."""
