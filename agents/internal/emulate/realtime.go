// SPDX-License-Identifier: Apache-2.0

package emulate

import (
	"fmt"
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Realtime says whether the emulator shall come before all ordinary processes (SCHED_FIFO).
type Realtime string

// What can be wished for.
const (
	Ordinary  Realtime = "no"
	IfAllowed Realtime = "try"
	Required  Realtime = "yes"
)

// priority is above what tests give to what they measure, and below the kernel's own threads.
const priority = 20

// apply returns whether this process is a real-time one now. All of its threads are, and those that they will start: a thread
// that carries packets would otherwise wait for an ordinary one, for a lock, or for Go's scheduler, and that one for a processor.
func (r Realtime) apply() (bool, error) {
	if r == Ordinary {
		return false, nil
	}
	// Twice: a thread that is started while we look is listed the second time.
	for range 2 {
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return false, err
		}
		for _, thread := range threads {
			if err := raise(thread.Name()); err != nil {
				if r == Required {
					return false, err
				}
				return false, nil
			}
		}
	}
	return true, nil
}

func raise(thread string) error {
	id, err := strconv.Atoi(thread)
	if err != nil {
		return err
	}
	attributes := unix.SchedAttr{Size: uint32(unsafe.Sizeof(unix.SchedAttr{})), Policy: unix.SCHED_FIFO, Priority: priority}
	if err := unix.SchedSetAttr(id, &attributes, 0); err != nil && err != unix.ESRCH {
		return fmt.Errorf("--realtime is not allowed here: %w (it needs root, CAP_SYS_NICE, or a limit: `ulimit -r %d`)", err, priority)
	}
	return nil
}
