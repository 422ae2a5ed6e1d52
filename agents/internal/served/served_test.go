// SPDX-License-Identifier: Apache-2.0

package served

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"bandwidthbroker/agents/internal/failure"
)

func folder(t *testing.T) (*Folder, string) {
	t.Helper()
	dir := t.TempDir()
	f, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return f, dir
}

func code(f *failure.Failure) string {
	if f == nil {
		return ""
	}
	return f.Code
}

func TestOnlyRegularFilesInsideAreSent(t *testing.T) {
	f, dir := folder(t)
	outside := filepath.Join(t.TempDir(), "outside")
	for _, err := range []error{
		os.WriteFile(outside, []byte("secret"), 0o600),
		os.WriteFile(filepath.Join(dir, "plain"), []byte("data"), 0o600),
		os.Mkdir(filepath.Join(dir, "sub"), 0o700),
		os.Symlink("plain", filepath.Join(dir, "inside")),
		os.Symlink(outside, filepath.Join(dir, "leads-out")),
		os.Symlink("..", filepath.Join(dir, "sub", "up")),
		os.Symlink("loop", filepath.Join(dir, "loop")),
		unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{
		"plain": "", "./plain": "", "sub/../plain": "", "inside": "", "sub/up/plain": "",
		"leads-out": failure.PathRefused, "../outside": failure.PathRefused, outside: failure.PathRefused, "": failure.PathRefused,
		"a\x00b": failure.PathRefused, "sub/up/../../x": failure.PathRefused, "plain/": failure.PathRefused, ".": failure.PathRefused,
		"nothing": failure.FileMissing, "sub": failure.FileUnreadable, "pipe": failure.FileUnreadable, "loop": failure.PathRefused,
	} {
		file, _, fail := f.OpenSource(name)
		if code(fail) != want {
			t.Errorf("%q: %v, want %q", name, fail, want)
		}
		if file != nil {
			_ = file.Close()
		}
	}
}

func TestCommitDoesNotOverwrite(t *testing.T) {
	f, dir := folder(t)
	in, fail := f.Begin("tr_1", "deep/er/x", false)
	if fail != nil {
		t.Fatal(fail)
	}
	defer in.Close()
	if _, err := in.File.WriteString("new"); err != nil {
		t.Fatal(err)
	}
	final := filepath.Join(dir, "deep/er/x")
	if err := os.WriteFile(final, []byte("old"), 0o600); err != nil { // appears meanwhile
		t.Fatal(err)
	}
	if fail := in.Commit(false); code(fail) != failure.DestinationExists {
		t.Errorf("commit over an existing file: %v", fail)
	}
	if have, _ := os.ReadFile(final); string(have) != "old" {
		t.Errorf("it holds %q now", have)
	}
	if fail := in.Commit(true); fail != nil {
		t.Error(fail)
	}
	if have, _ := os.ReadFile(final); string(have) != "new" {
		t.Errorf("it holds %q now", have)
	}
	if f.HasPartial(PartialPath("tr_1", "deep/er/x")) {
		t.Error("the partial file is still there")
	}
	if _, fail := f.Begin("tr_2", "deep/er/x", false); code(fail) != failure.DestinationExists {
		t.Errorf("begin: %v", fail)
	}
	if _, fail := f.Begin("tr_2", "deep/er", true); code(fail) != failure.DestinationExists {
		t.Errorf("begin over a folder: %v", fail)
	}
}

func TestAPartialFileThatIsALinkIsNotFollowed(t *testing.T) {
	f, dir := folder(t)
	victim := filepath.Join(dir, "victim")
	if err := os.WriteFile(victim, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("victim", filepath.Join(dir, PartialName("tr_1"))); err != nil {
		t.Fatal(err)
	}
	if in, fail := f.Begin("tr_1", "x", false); fail == nil {
		in.Close()
		t.Error("the link was followed")
	}
}

func TestWhatDoesNotFitIsRefusedEarly(t *testing.T) {
	f, _ := folder(t)
	in, fail := f.Begin("tr_1", "x", false)
	if fail != nil {
		t.Fatal(fail)
	}
	defer in.Close()
	if fail := in.Reserve(1 << 55); code(fail) != failure.DiskFull {
		t.Errorf("32 PiB: %v", fail)
	}
	if fail := in.Reserve(1 << 20); fail != nil {
		t.Error(fail)
	}
	if info, _ := in.File.Stat(); info.Size() != 0 {
		t.Errorf("reserving changed the size to %d", info.Size())
	}
}

// What is written to while it is compared is not what was compared.
func TestAnExistingFileThatChanges(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"nothing": func(string) error { return nil },
		"written, and its time set back": func(path string) error {
			info, err := os.Stat(path)
			return errors.Join(err, os.WriteFile(path, []byte("other"), 0o600), os.Chtimes(path, info.ModTime(), info.ModTime()))
		},
		"replaced": func(path string) error {
			return errors.Join(os.WriteFile(path+"2", []byte("thing"), 0o600), os.Rename(path+"2", path))
		},
		"removed": os.Remove,
	} {
		dir := t.TempDir()
		folder, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "x")
		if err := os.WriteFile(path, []byte("thing"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, found := folder.Existing("x", 4); found {
			t.Error("another size is worth a comparison")
		}
		there, found := folder.Existing("x", 5)
		if !found {
			t.Fatal("not found")
		}
		if err := change(path); err != nil {
			t.Fatal(err)
		}
		if fail := there.Settle(); (fail == nil) != (name == "nothing") {
			t.Errorf("%s: %v", name, fail)
		}
		there.Close()
	}
}
