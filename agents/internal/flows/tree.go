// SPDX-License-Identifier: Apache-2.0

// Package flows finds the TCP connections of a process tree and holds on to duplicates of them, so that they can be
// paced and counted from outside, whatever program made them. Linux only; nothing here needs a privilege for processes
// of the same user.
package flows

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Tree lists the descendants of a process, itself left out, parents before children. Orphans are found again
// when the root is a subreaper (PR_SET_CHILD_SUBREAPER): then they are its children. A process that ends meanwhile is
// no error.
func Tree(root int) ([]int, error) {
	if _, err := os.Stat(fmt.Sprintf("/proc/%d/task/%d/children", root, root)); err != nil {
		return byParent(root)
	}
	var found []int
	for queue := []int{root}; len(queue) > 0; queue = queue[1:] {
		children := children(queue[0])
		found = append(found, children...)
		queue = append(queue, children...)
	}
	return found, nil
}

// children of all threads of a process.
func children(pid int) []int {
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil
	}
	var found []int
	for _, thread := range threads {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, thread.Name()))
		if err != nil {
			continue
		}
		for _, word := range strings.Fields(string(raw)) {
			if child, err := strconv.Atoi(word); err == nil {
				found = append(found, child)
			}
		}
	}
	return found
}

// byParent is the long way, for kernels without CONFIG_PROC_CHILDREN: every process of the host is looked at.
func byParent(root int) ([]int, error) {
	entries, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	of := map[int][]int{}
	for _, entry := range entries {
		raw, err := os.ReadFile(entry)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if pid, parent, ok := parents(string(raw)); ok {
			of[parent] = append(of[parent], pid)
		}
	}
	var found []int
	for queue := []int{root}; len(queue) > 0; queue = queue[1:] {
		found = append(found, of[queue[0]]...)
		queue = append(queue, of[queue[0]]...)
	}
	return found, nil
}

// parents reads a line of /proc/PID/stat. The name of the program stands in parentheses and may contain any character,
// parentheses too: what counts stands behind the last one.
func parents(stat string) (pid, parent int, ok bool) {
	head, _, opened := strings.Cut(stat, " (")
	at := strings.LastIndex(stat, ") ")
	if !opened || at < 0 {
		return 0, 0, false
	}
	rest := strings.Fields(stat[at+2:])
	if len(rest) < 2 {
		return 0, 0, false
	}
	pid, err := strconv.Atoi(head)
	parent, also := strconv.Atoi(rest[1])
	return pid, parent, err == nil && also == nil
}
