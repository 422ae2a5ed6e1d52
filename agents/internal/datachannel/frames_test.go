// SPDX-License-Identifier: Apache-2.0

package datachannel

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
)

var (
	nonceA = Nonce{1, 2, 3}
	nonceB = Nonce{4, 5, 6}
	key    = Key(strings.Repeat("k", 32))
)

type frame interface{ Append([]byte) []byte }

// parse reads one message with the parser of its kind.
func parse(b []byte) (frame, error) {
	scratch := make([]byte, MaxControl)
	kind, body, err := ReadControl(bytes.NewReader(b), scratch)
	if err != nil {
		return nil, err
	}
	switch kind {
	case KindHello:
		return ParseHello(body)
	case KindChallenge:
		return ParseChallenge(body)
	case KindProof:
		return ParseProof(body)
	case KindResume:
		return ParseResume(body)
	case KindEnd:
		return ParseEnd(body)
	case KindProgress:
		return ParseProgress(body)
	case KindDone:
		return ParseDone(body)
	}
	return ParseError(body)
}

var examples = []frame{
	Hello{nonceA, "tr_1"},
	Hello{nonceB, strings.Repeat("x", MaxTransferID)},
	Challenge{nonceB, ReceiverMAC(key, nonceA, nonceB, "tr_1")},
	Proof{SenderMAC(key, nonceA, nonceB, "tr_1"), 1 << 40},
	Resume{12345},
	End{7, Digest{9}, EndMAC(key, nonceA, nonceB, 7, Digest{9})},
	Progress{10, 5},
	Done{Digest{8}},
	Error{"disk_full", "no space left"},
	Error{ChecksumWanted, "the destination exists, and is to be compared"},
	Error{"", ""},
	Error{strings.Repeat("c", 255), strings.Repeat("d", maxDetail)},
}

func TestFramesComeBackAsTheyWent(t *testing.T) {
	for _, f := range examples {
		got, err := parse(f.Append(nil))
		if err != nil || !reflect.DeepEqual(got, f) {
			t.Errorf("%T: got %+v, %v; want %+v", f, got, err, f)
		}
	}
}

func TestOnTheWire(t *testing.T) {
	got := Progress{0x0102, 3}.Append(nil)
	want := []byte{7, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 3}
	if !bytes.Equal(got, want) {
		t.Errorf("% x", got)
	}
	prefix := make([]byte, DataPrefix)
	PutData(prefix, 0x01020304, 5)
	if want := []byte{5, 0, 0, 0, 13, 0, 0, 0, 0, 1, 2, 3, 4}; !bytes.Equal(prefix, want) {
		t.Errorf("% x", prefix)
	}
}

func TestLengthsAreBounded(t *testing.T) {
	for _, b := range [][]byte{
		{0, 0, 0, 0, 1}, {10, 0, 0, 0, 1}, {1, 0xff, 0xff, 0xff, 0xff}, {4, 0, 0, 0, 7}, {4, 0, 0, 0, 9},
		{5, 0, 0, 0, 8}, {5, 0, 0x10, 0, 9}, {9, 0, 0, 0, 0}, {9, 0, 0, 5, 1},
	} {
		if h, err := ParseHeader(b); err == nil {
			t.Errorf("% x was taken as %+v", b, h)
		}
	}
	if _, err := ParseHeader([]byte{5, 0, 0x10, 0, 8}); err != nil {
		t.Errorf("the largest DATA: %v", err)
	}
}

func TestMACsAreNotInterchangeable(t *testing.T) {
	seen := map[MAC]string{}
	for name, m := range map[string]MAC{
		"receiver":       ReceiverMAC(key, nonceA, nonceB, "tr_1"),
		"sender":         SenderMAC(key, nonceA, nonceB, "tr_1"),
		"swapped nonces": SenderMAC(key, nonceB, nonceA, "tr_1"),
		"other transfer": SenderMAC(key, nonceA, nonceB, "tr_2"),
		"other key":      SenderMAC(Key("x"), nonceA, nonceB, "tr_1"),
		"end":            EndMAC(key, nonceA, nonceB, 1, Digest{}),
		"other volume":   EndMAC(key, nonceA, nonceB, 2, Digest{}),
	} {
		if other, twice := seen[m]; twice {
			t.Errorf("%s and %s are the same", name, other)
		}
		seen[m] = name
	}
}

func TestErrorTextIsHarmless(t *testing.T) {
	b := Error{"co\nde", "a\x1b[31m\x00b\xff"}.Append(nil)
	got, err := parse(b)
	if want := (Error{"code", "a[31mb"}); err != nil || got != want {
		t.Errorf("%+q %v", got, err)
	}
}

// FuzzParse: no input makes a parser panic, and what it takes means what it says when written again.
func FuzzParse(f *testing.F) {
	for _, e := range examples {
		f.Add(e.Append(nil))
	}
	f.Add([]byte{9, 0, 0, 0, 1, 255})
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := parse(b)
		if err != nil {
			return
		}
		again, err := parse(got.Append(nil))
		if err != nil || !reflect.DeepEqual(again, got) {
			t.Fatalf("%+v became %+v, %v", got, again, err)
		}
	})
}

func FuzzData(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 1}, uint32(9))
	f.Fuzz(func(t *testing.T, b []byte, length uint32) {
		offset, n, err := ParseData(b, length)
		if err != nil {
			return
		}
		if n < 1 || n > MaxPayload {
			t.Fatalf("payload of %d", n)
		}
		prefix := make([]byte, DataPrefix)
		PutData(prefix, offset, n)
		h, err := ParseHeader(prefix)
		if err != nil || h.Length != length {
			t.Fatalf("%+v %v", h, err)
		}
	})
}
