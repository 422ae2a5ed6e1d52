# SPDX-License-Identifier: Apache-2.0
"""Access and agents: tokens, enrolment, the assignments of each agent, and its reports."""
