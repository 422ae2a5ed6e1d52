// SPDX-License-Identifier: Apache-2.0

package local

import (
	"fmt"
	"os"
	"path/filepath"
)

// maxPath is what the kernel takes as the name of a socket (sun_path has 108 bytes).
const maxPath = 100

// Path of the socket in a state folder.
func Path(stateDir string) string { return filepath.Join(stateDir, "agent.sock") }

// short is a name for the socket that is not too long, good until done is called: a long folder is entered by number.
func short(path string) (address string, done func(), err error) {
	if len(path) <= maxPath {
		return path, func() {}, nil
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return "", nil, err
	}
	address = fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), filepath.Base(path))
	return address, func() { _ = folder.Close() }, nil
}
