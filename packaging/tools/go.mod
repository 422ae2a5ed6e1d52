// SPDX-License-Identifier: Apache-2.0
// Tools that packages are built with, apart from the agent's own module so that nothing of them reaches its lists.
module bandwidthbroker/packaging/tools

go 1.26.0
