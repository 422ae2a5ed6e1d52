// SPDX-License-Identifier: Apache-2.0

package tclinux

// Abandon is what the kernel does for a process that dies: it closes its sockets, and nothing else.
func (s *Shaper) Abandon() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return s.system.Close()
}
