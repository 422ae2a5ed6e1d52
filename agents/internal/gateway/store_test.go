// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// TestStoreIsAQueue: the bytes come back as they went in, whatever the sizes, through wraps and growth.
func TestStoreIsAQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store := NewStore(rapid.IntRange(0, 300).Draw(t, "size"))
		var queue [][]byte
		for step := range rapid.IntRange(1, 200).Draw(t, "steps") {
			if len(queue) > 0 && rapid.Bool().Draw(t, "out") {
				if got := store.Front(len(queue[0])); !bytes.Equal(got, queue[0]) {
					t.Fatalf("got %x, want %x", got, queue[0])
				}
				store.Release(len(queue[0]))
				queue = queue[1:]
				continue
			}
			length := rapid.IntRange(0, 100).Draw(t, "length")
			room := store.Room(100)
			if len(room) != 100 {
				t.Fatalf("room for %d bytes, want 100", len(room))
			}
			packet := bytes.Repeat([]byte{byte(step)}, length)
			copy(room, packet)
			if rapid.Bool().Draw(t, "kept") {
				store.Keep(length)
				queue = append(queue, packet)
			}
		}
	})
}

func TestStoreGrowsOnlyAsNeeded(t *testing.T) {
	store := NewStore(4000)
	if allocated := testing.AllocsPerRun(1000, func() {
		for range 2 {
			store.Room(1500)
			store.Keep(1500)
		}
		store.Release(1500)
		store.Release(1500)
	}); allocated > 0 {
		t.Errorf("%v allocations a packet", allocated)
	}
}
