# SPDX-License-Identifier: Apache-2.0
"""Celery: periodic jobs now, long ones (re-optimisation, simulation) later. Each task is a few lines; the work is elsewhere."""
