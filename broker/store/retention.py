# SPDX-License-Identifier: Apache-2.0
"""Deletion of old rows that are no longer needed. Versions and heads stay, so ledgers continue."""

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

# Keys need to outlive every sensible retry, but not longer.
_KEYS_US = 7 * 86_400 * 1_000_000

_STATEMENTS = {
    # The rows of a booking and of its release are deleted together: only for ended transfers whose whole booking lies in the past.
    "ledger": """DELETE FROM ledger WHERE transfer_id IN (
        SELECT t.id FROM transfers t JOIN ledger g ON g.transfer_id = t.id
        WHERE t.state NOT IN ('HELD', 'RESERVED', 'ACTIVE') AND t.updated_us < :before
        GROUP BY t.id HAVING max(g.end_us) < :before)""",
    "reports": "DELETE FROM reports WHERE received_us < :before",
    "events": "DELETE FROM events WHERE at_us < :before",
    "idempotency_keys": "DELETE FROM idempotency_keys WHERE created_us < :keys_before",
    "enrolment_tokens": "DELETE FROM enrolment_tokens WHERE expires_us < :before",
    "refusals": "DELETE FROM refusals WHERE at_us < :before",
    "sessions": "DELETE FROM sessions WHERE expires_us < :now",
    "audits": "DELETE FROM audits WHERE at_us < :before",
    "jobs": "DELETE FROM jobs WHERE finished_us < :before",
    "link_windows": "DELETE FROM link_windows WHERE end_us < :before",
}


async def prune(connection: AsyncConnection, now_us: int, retention_us: int) -> dict[str, int]:
    """Delete rows older than `retention_us`, old keys and expired sessions; returns the number per table. Transfers are kept."""
    values = {"before": now_us - retention_us, "keys_before": now_us - _KEYS_US, "now": now_us}
    gone = {}
    for table, statement in _STATEMENTS.items():
        used = {name: value for name, value in values.items() if f":{name}" in statement}
        gone[table] = int((await connection.execute(text(statement), used)).rowcount)
    return gone
