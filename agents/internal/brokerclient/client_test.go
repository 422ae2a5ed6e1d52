// SPDX-License-Identifier: Apache-2.0

package brokerclient

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestStreamEvents(t *testing.T) {
	var heard []int64
	lives := 0
	text := ": hello\n\nevent: revision\ndata: {\"revision\": 4}\n\nevent: other\ndata: {\"revision\": 5}\n\n" +
		"event: revision\r\ndata: not json\r\n\r\nevent:revision\ndata:{\"revision\":6}\n\nevent: revision\ndata: {\"revision\": 7}"
	err := readEvents(strings.NewReader(text), func() { lives++ }, func(r int64) { heard = append(heard, r) })
	if err == nil || !slices.Equal(heard, []int64{4, 6}) || lives == 0 {
		t.Errorf("heard %v, %v", heard, err)
	}
	if err := readEvents(strings.NewReader(strings.Repeat("x", 1<<20)), func() {}, nil); err == nil {
		t.Error("an endless line was read")
	}
}

// FuzzStream: no stream makes the reader panic.
func FuzzStream(f *testing.F) {
	f.Add("event: revision\ndata: {\"revision\": 4}\n\n")
	f.Fuzz(func(_ *testing.T, text string) {
		_ = readEvents(strings.NewReader(text), func() {}, func(int64) {})
	})
}

func TestErrorsCarryNoToken(t *testing.T) {
	c, err := New(Options{Broker: "http://127.0.0.1:1", Token: "bwb_secret"})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, _, err = c.Assignments(t.Context(), "a", ""); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
	if StatusOf(errors.New("x")) != 0 || RetryAfterOf(&Problem{RetryAfter: time.Second}) != time.Second {
		t.Error("the parts of a problem are not found")
	}
}
