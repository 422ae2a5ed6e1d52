// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"crypto/sha256"

	"bandwidthbroker/agents/internal/datachannel"
)

func sha(b []byte) datachannel.Digest { return sha256.Sum256(b) }
