# SPDX-License-Identifier: Apache-2.0
"""The whole broker on one machine with nothing configured: what `bwb up` does.

`supervisor` starts the parts in order and keeps them running; `home` is the state directory, `child` a supervised process,
`postgres` and `redis` know how to start their servers, `orphans` ends what a killed `bwb up` left behind, and `prepare` is what the
API does first: migrations and the first token.
"""


class UpError(Exception):
    """`bwb up` cannot go on; the message is for the person who started it and says what to do."""
