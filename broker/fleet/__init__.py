# SPDX-License-Identifier: Apache-2.0
"""Access and agents: tokens, enrolment, what each agent shall do, and what it reports."""
