// SPDX-License-Identifier: Apache-2.0

package signal

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"testing"

	"pgregory.net/rapid"
)

var rewrite = flag.Bool("rewrite", false, "write the golden vectors anew")

const vectorFile = "../../../api-spec/vectors/signal/frames.json"

// vector is one frame as text; whoever speaks the protocol in another language tests against the same file.
type vector struct {
	Kind             string `json:"kind"`
	Cause            string `json:"cause"`
	Predecessor      string `json:"predecessor"`
	Successor        string `json:"successor"`
	Number           uint32 `json:"number"`
	RemainingUs      uint32 `json:"remaining_us"`
	PredecessorNonce string `json:"predecessor_nonce"`
	SuccessorNonce   string `json:"successor_nonce"`
	Key              string `json:"key"`
	Datagram         string `json:"datagram"`
}

func samples() (frames []Frame, key Key) {
	var ours, theirs Nonce
	for i := range ours {
		ours[i], theirs[i] = byte(i), byte(0xf0+i)
	}
	for i := range key {
		key[i] = byte(3 * i)
	}
	pair := Pair{"tr_0001", "tr_0002"}
	return []Frame{
		{Kind: Hold, Pair: pair, Number: 1, Remaining: 999_000, PredecessorNonce: ours},
		{Kind: Held, Pair: pair, Number: 1, PredecessorNonce: ours, SuccessorNonce: theirs},
		{Kind: Hold, Pair: pair, Number: 2, Remaining: 949_000, PredecessorNonce: ours, SuccessorNonce: theirs},
		{Kind: Go, Cause: Done, Pair: pair, Number: 3, PredecessorNonce: ours, SuccessorNonce: theirs},
		{Kind: Go, Cause: Overrun, Pair: Pair{"a", "tr_long-name.with.dots"}, Number: 4_000_000_000, PredecessorNonce: ours, SuccessorNonce: theirs},
		{Kind: Started, Pair: pair, Number: 3, PredecessorNonce: ours, SuccessorNonce: theirs},
	}, key
}

func text(f Frame, key Key) vector {
	return vector{
		Kind: f.Kind.String(), Cause: f.Cause.String(), Predecessor: f.Predecessor, Successor: f.Successor, Number: f.Number,
		RemainingUs: f.Remaining, PredecessorNonce: hex.EncodeToString(f.PredecessorNonce[:]),
		SuccessorNonce: hex.EncodeToString(f.SuccessorNonce[:]), Key: hex.EncodeToString(key[:]),
		Datagram: hex.EncodeToString(f.Append(nil, key)),
	}
}

func TestGoldenVectors(t *testing.T) {
	frames, key := samples()
	var made []vector
	for _, f := range frames {
		made = append(made, text(f, key))
	}
	want, err := json.MarshalIndent(made, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if *rewrite {
		if err := os.WriteFile(vectorFile, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(vectorFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(golden, want) {
		t.Errorf("frames differ from %s: another agent would not understand them", vectorFile)
	}
	for i, f := range frames {
		raw, _ := hex.DecodeString(made[i].Datagram)
		if got := open(t, raw, key); got != f {
			t.Errorf("%s came back as %+v", f.Kind, got)
		}
	}
}

func open(t *testing.T, raw []byte, key Key) Frame {
	t.Helper()
	sealed, err := Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	f, ok := sealed.Open(key)
	if !ok {
		t.Fatal("not believed")
	}
	return f
}

// Whatever is changed on the way, the frame is refused: no byte is outside of the MAC.
func TestEveryBitCounts(t *testing.T) {
	frames, key := samples()
	for _, f := range frames {
		raw := f.Append(nil, key)
		for bit := range 8 * len(raw) {
			raw[bit/8] ^= 1 << (bit % 8)
			if sealed, err := Parse(raw); err == nil {
				if _, ok := sealed.Open(key); ok {
					t.Fatalf("%s with bit %d turned was believed", f.Kind, bit)
				}
			}
			raw[bit/8] ^= 1 << (bit % 8)
		}
	}
}

// A frame that is sent back to its maker under the answer's type does not verify: the direction is signed too.
func TestNoReflection(t *testing.T) {
	frames, key := samples()
	held := frames[1].Append(nil, key)
	signed := held[:len(held)-len(MAC{})]
	mac := sign(key, Hold, signed)
	if sealed, err := Parse(append(bytes.Clone(signed), mac[:]...)); err != nil {
		t.Fatal(err)
	} else if _, ok := sealed.Open(key); ok {
		t.Error("a HELD signed for the other direction was believed")
	}
}

func drawFrame(t *rapid.T) Frame {
	id := rapid.StringMatching(`[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}`)
	f := Frame{
		Kind:             Kind(rapid.IntRange(1, 4).Draw(t, "kind")),
		Pair:             Pair{id.Draw(t, "predecessor"), id.Draw(t, "successor")},
		Number:           rapid.Uint32().Draw(t, "number"),
		PredecessorNonce: Nonce(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "ours")),
		SuccessorNonce:   Nonce(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "theirs")),
	}
	switch f.Kind {
	case Hold:
		f.Remaining = rapid.Uint32().Draw(t, "remaining")
	case Go:
		f.Cause = Cause(rapid.IntRange(1, 5).Draw(t, "cause"))
	}
	return f
}

func TestFramesComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFrame(t)
		key := Key(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "key"))
		raw := f.Append([]byte("before"), key)[len("before"):]
		if len(raw) > MaxFrame {
			t.Fatalf("%d bytes", len(raw))
		}
		sealed, err := Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := sealed.Open(key); !ok || got != f {
			t.Fatalf("%+v came back as %+v", f, got)
		}
		other := key
		other[rapid.IntRange(0, 31).Draw(t, "byte")]++
		if _, ok := sealed.Open(other); ok {
			t.Fatal("believed under another key")
		}
		if _, err := Parse(raw[:rapid.IntRange(0, len(raw)-1).Draw(t, "cut")]); err == nil {
			t.Fatal("a part of a frame was read")
		}
	})
}

func FuzzParse(f *testing.F) {
	frames, key := samples()
	for _, s := range frames {
		f.Add(s.Append(nil, key))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		sealed, err := Parse(raw)
		if err != nil {
			return
		}
		// What can be read is written in one way only; the MAC is whatever came.
		again := sealed.frame.Append(nil, key)
		if n := len(raw) - len(MAC{}); !bytes.Equal(again[:n], raw[:n]) {
			t.Errorf("%x is written as %x", raw[:n], again[:n])
		}
	})
}
