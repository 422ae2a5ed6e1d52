// SPDX-License-Identifier: Apache-2.0

package flows

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"
)

func TestParentsOfAnyName(t *testing.T) {
	for line, want := range map[string][2]int{
		"12 (sh) S 7 12 12 0": {12, 7}, "13 (a) b) R 1) Z 8 1": {13, 8}, "14 (() S 9": {14, 9},
	} {
		if pid, parent, ok := parents(line); !ok || pid != want[0] || parent != want[1] {
			t.Errorf("%q: %d, %d, %v", line, pid, parent, ok)
		}
	}
	for _, line := range []string{"", "x", "1 (a", "1 (a)", "1 (a) S", "x (a) S 1"} {
		if _, _, ok := parents(line); ok {
			t.Errorf("%q was taken", line)
		}
	}
}

func FuzzParents(f *testing.F) {
	f.Add("12 (sh) S 7 12 12 0")
	f.Fuzz(func(_ *testing.T, line string) { parents(line); socketInode(line) })
}

func TestTheTreeHasGrandchildren(t *testing.T) {
	child := exec.Command("sh", "-c", "sleep 60 & sleep 60 & wait")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = child.Process.Kill(); _ = child.Wait() }()
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		found, err := Tree(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(found, child.Process.Pid) && len(found) >= 3 {
			for _, pid := range found {
				if pid != child.Process.Pid {
					if p, err := os.FindProcess(pid); err == nil {
						defer p.Kill() //nolint:errcheck // it may be gone
					}
				}
			}
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("found only %v", found)
		}
	}
	slow, err := byParent(os.Getpid())
	if err != nil || !slices.Contains(slow, child.Process.Pid) {
		t.Errorf("the long way: %v, %v", slow, err)
	}
}

// pair is a connection of which a child process, beside us, has the sending end as descriptor 3.
func pair(t *testing.T, command ...string) (child *exec.Cmd, receiver net.Conn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	sender, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	file, err := sender.(*net.TCPConn).File()
	if err != nil {
		t.Fatal(err)
	}
	_ = sender.Close()
	child = exec.Command(command[0], command[1:]...)
	child.ExtraFiles = []*os.File{file}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	_ = file.Close()
	receiver, err = listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = child.Process.Kill(); _ = child.Wait(); _ = receiver.Close() })
	return child, receiver
}

func TestADuplicateCountsUntilTheEnd(t *testing.T) {
	child, receiver := pair(t, "sh", "-c", "read go; head -c 100000 /dev/zero >&3")
	// The shell waits for a word that never comes: it reads the end of its input at once.
	socket, err := Grab(child.Process.Pid, 3)
	if errors.Is(err, os.ErrPermission) {
		t.Skipf("NOT SHOWN: %v (kernel.yama.ptrace_scope above 1, or a seccomp profile: run on a host)", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	if socket.Remote().Port() == 0 || !socket.Local().Addr().IsLoopback() {
		t.Error(socket.Local(), socket.Remote())
	}
	found, err := Descriptors(child.Process.Pid)
	here := Descriptor{child.Process.Pid, 3, socket.Inode()}
	if err != nil || (!slices.Contains(found, here) && here.Holds()) {
		t.Error(found, err)
	}
	if err := child.Wait(); err != nil {
		t.Fatal(err)
	}
	if here.Holds() {
		t.Error("a dead process holds a socket")
	}
	// The command has ended, but the connection is open as long as we hold it: it must be shut for the receiver to see it.
	if err := socket.Shut(); err != nil {
		t.Fatal(err)
	}
	got, err := io.Copy(io.Discard, receiver)
	if err != nil || got != 100_000 {
		t.Errorf("%d bytes arrived, %v", got, err)
	}
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		counts, err := socket.Counts()
		if err != nil {
			t.Fatal(err)
		}
		if counts.Acked == 100_000 && counts.Sent == 100_000 && counts.State != FinWait1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%+v", counts)
		}
	}
}

func TestWhatIsNotTCP(t *testing.T) {
	child := exec.Command("sleep", "60")
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = child.Process.Kill(); _ = child.Wait() }()
	if _, err := Grab(child.Process.Pid, 0); !errors.Is(err, ErrNotTCP) && !errors.Is(err, os.ErrPermission) {
		t.Error(err)
	}
	if _, err := Grab(child.Process.Pid, 77); err == nil {
		t.Error("a descriptor that is not open was grabbed")
	}
	if _, err := Grab(1<<22+5, 0); err == nil {
		t.Error("a process that does not exist was grabbed")
	}
	if _, err := Tree(1 << 22); err != nil {
		t.Error(err)
	}
	if fmt.Sprint(Descriptors(1<<22)) != "[] <nil>" {
		t.Error("descriptors of nobody")
	}
}

func TestAnAbortIsNotTurnedIntoAnEnd(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).SetLinger(0); err != nil {
		t.Fatal(err)
	}
	file, err := conn.(*net.TCPConn).File()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	socket, err := Grab(os.Getpid(), int(file.Fd()))
	if err != nil {
		t.Skipf("NOT SHOWN: %v", err)
	}
	defer socket.Close()
	if err := socket.Shut(); err == nil {
		t.Error("SO_LINGER 0 was ended in order")
	}
}
