// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestAForgedKeyIsRefused(t *testing.T) {
	l := newLab(t)
	a, b := l.agent("a", "--peer-timeout", "1s"), l.agent("b")
	j := l.job(a, b, 1_000_000, steps(300*time.Millisecond, 5, 10)...)
	j.keyTo = strings.Repeat("ab", 32)
	j.assign()
	j.failed(10*time.Second, a, "authentication")
	if entries, _ := os.ReadDir(filepath.Join(b.receive)); len(entries) != 0 {
		t.Errorf("something was written: %v", entries)
	}
}

func TestPathsStayInside(t *testing.T) {
	l := newLab(t)
	a, b := l.agent("a"), l.agent("b")
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, make([]byte, 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(a.serve, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Dir(secret), filepath.Join(b.receive, "out")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"../secret", "/etc/passwd", "a/../../secret", "link", ""} {
		j := l.job(a, b, 1000, steps(0, 5, 10)...)
		j.name = path
		j.assign()
		j.failed(10*time.Second, a, "path_refused")
	}
	for _, path := range []string{"../x", "/tmp/x", "out/x", "out/deep/x", ".bwb-tr_1.part"} {
		j := l.job(a, b, 1000, steps(0, 5, 10)...)
		j.destination = path
		j.assign()
		j.failed(10*time.Second, b, "path_refused")
	}
	entries, _ := os.ReadDir(filepath.Dir(secret))
	if len(entries) != 1 {
		t.Errorf("something was written outside: %v", entries)
	}
}

func TestFilesThatCannotBeSent(t *testing.T) {
	l := newLab(t)
	a, b := l.agent("a"), l.agent("b")
	for code, spoil := range map[string]func(path string) error{
		"file_missing": os.Remove,
		"file_size":    func(path string) error { return os.Truncate(path, 999) },
		"file_unreadable": func(path string) error {
			_ = os.Remove(path)
			return unix.Mkfifo(path, 0o600)
		},
	} {
		j := l.job(a, b, 1000, steps(0, 5, 10)...)
		if err := spoil(filepath.Join(a.serve, j.name)); err != nil {
			t.Fatal(err)
		}
		j.assign()
		j.failed(10*time.Second, a, code)
		_ = os.Remove(filepath.Join(a.serve, j.name))
	}
}

func TestFilesThatChangeOnTheWay(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"shrinks": func(path string) error { return os.Truncate(path, 3_000_000) },
		"grows":   func(path string) error { return os.Truncate(path, 5_000_001) },
		"modified": func(path string) error {
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = f.WriteAt([]byte("x"), 10)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			a, b := l.agent("a"), l.agent("b")
			j := l.job(a, b, 5_000_000, steps(200*time.Millisecond, 3, 20)...)
			j.assign()
			j.await(5*time.Second, a, "started")
			if err := change(filepath.Join(a.serve, j.name)); err != nil {
				t.Fatal(err)
			}
			j.failed(10*time.Second, a, "file_changed")
			if _, err := os.Stat(filepath.Join(b.receive, j.destination)); err == nil {
				t.Error("the file arrived all the same")
			}
		})
	}
}

func TestAnExistingFileIsNotOverwritten(t *testing.T) {
	l := newLab(t)
	a, b := l.agent("a"), l.agent("b")
	j := l.job(a, b, 100_000, steps(0, 5, 10)...)
	existing := filepath.Join(b.receive, j.destination)
	if err := os.MkdirAll(filepath.Dir(existing), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(existing, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	j.assign()
	j.failed(10*time.Second, b, "destination_exists")
	if kept, _ := os.ReadFile(existing); string(kept) != "mine" {
		t.Error("it was overwritten")
	}
	over := l.job(a, b, 100_000, steps(0, 5, 10)...)
	over.overwrite = true
	over.assign()
	over.arrived(10 * time.Second)
}

// The same file asked for twice is there twice over, although only once on the wire; one of the same size and another content is not it.
func TestTheSameTransferTwice(t *testing.T) {
	l := newLab(t)
	a, b := l.agent("a"), l.agent("b")
	first := l.job(a, b, 3_000_000, steps(0, 5, 100)...)
	first.assign()
	first.arrived(10 * time.Second)
	before, err := os.Stat(filepath.Join(b.receive, first.destination))
	if err != nil {
		t.Fatal(err)
	}
	content, _ := os.ReadFile(filepath.Join(a.serve, first.name))

	again := l.job(a, b, 3_000_000, steps(0, 5, 1)...) // at this rate it would take 24 s
	if err := os.WriteFile(filepath.Join(a.serve, again.name), content, 0o644); err != nil {
		t.Fatal(err)
	}
	again.assign()
	again.arrived(10 * time.Second)
	after, err := os.Stat(filepath.Join(b.receive, first.destination))
	if err != nil || !os.SameFile(before, after) || !before.ModTime().Equal(after.ModTime()) {
		t.Errorf("the file was written again: %v", err)
	}
	for _, r := range l.broker.Reports() {
		if r.TransferID == again.id && r.Kind == "started" {
			t.Error("something was sent again")
		}
	}

	other := l.job(a, b, 3_000_000, steps(0, 5, 100)...) // of other random content
	other.assign()
	other.failed(10*time.Second, b, "destination_exists")
	other.failed(10*time.Second, a, "destination_exists")
	if kept, _ := os.ReadFile(filepath.Join(b.receive, first.destination)); !bytes.Equal(kept, content) {
		t.Error("what was there is not there any more")
	}
}

func TestAFullDisk(t *testing.T) {
	small := t.TempDir()
	if err := unix.Mount("tmpfs", small, "tmpfs", 0, "size=4m"); err != nil {
		t.Skipf("SKIPPED, a full disk was not tried: mounting a tmpfs: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(small, unix.MNT_DETACH) })
	l := newLab(t)
	a, b := l.agent("a"), l.agent("b", "--receive", small)
	b.receive = small

	early := l.job(a, b, 10_000_000, steps(0, 10, 40)...)
	early.assign()
	r := early.failed(10*time.Second, b, "disk_full")
	if !strings.Contains(r.Detail, "needs 10000000 bytes more") {
		t.Errorf("detail: %s", r.Detail)
	}
	early.failed(10*time.Second, a, "disk_full")
	early.noLeftovers()

	// What fits goes through.
	fits := l.job(a, b, 1_000_000, steps(0, 10, 40)...)
	fits.assign()
	fits.arrived(10 * time.Second)
}

func TestAReceiverThatNeverAnswers(t *testing.T) {
	deaf, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts, nobody speaks
	if err != nil {
		t.Fatal(err)
	}
	defer deaf.Close()
	l := newLab(t)
	a, b := l.agent("a", "--peer-timeout", "2s"), l.agent("b")
	dead, silent := l.job(a, b, 1000, steps(0, 5, 10)...), l.job(a, b, 1000, steps(0, 5, 10)...)
	dead.address, silent.address = freeAddress(t), deaf.Addr().String()
	l.broker.Assign("a", dead.sender(), silent.sender())
	dead.failed(15*time.Second, a, "peer_unreachable")
	silent.failed(20*time.Second, a, "peer_unreachable")
}
