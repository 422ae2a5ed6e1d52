// SPDX-License-Identifier: Apache-2.0

// Package atomicfile replaces small files so that a reader, or a restart after a crash, finds the old content or the new.
package atomicfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Durability says what a write survives: Crash of the process only, or PowerLoss too (which costs an fsync).
type Durability bool

// The two durabilities.
const (
	Crash     Durability = false
	PowerLoss Durability = true
)

// Write replaces the file at path.
func Write(path string, data []byte, mode fs.FileMode, d Durability) (err error) {
	temp := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".new")
	f, err := os.OpenFile(temp, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil && d == PowerLoss {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		_ = os.Remove(temp)
		return err
	}
	if d == PowerLoss {
		return SyncDir(filepath.Dir(path))
	}
	return nil
}

// WriteJSON replaces the file with a value.
func WriteJSON(path string, value any, mode fs.FileMode, d Durability) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return Write(path, append(data, '\n'), mode, d)
}

// ReadJSON reads a value; found is false when there is no such file.
func ReadJSON(path string, value any) (found bool, err error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := json.Unmarshal(data, value); err != nil {
		return false, fmt.Errorf("%s: %w", path, err)
	}
	return true, nil
}

// SyncDir makes renames and removals in a folder survive a power loss.
func SyncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
