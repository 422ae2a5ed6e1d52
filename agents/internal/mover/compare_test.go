// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"bandwidthbroker/agents/internal/datachannel"
	"bandwidthbroker/agents/internal/failure"
)

// put writes a file where the receiver is to bring one.
func (p *pair) put(content []byte) {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.receive, "x"), content, 0o600); err != nil {
		p.t.Fatal(err)
	}
}

func (p *pair) content() []byte {
	p.t.Helper()
	content, err := os.ReadFile(filepath.Join(p.serve, "x"))
	if err != nil {
		p.t.Fatal(err)
	}
	return content
}

// alone says that nothing but the destination is there.
func (p *pair) alone() {
	p.t.Helper()
	if entries, _ := os.ReadDir(p.receive); len(entries) != 1 {
		p.t.Errorf("left over: %v", entries)
	}
}

// What is there with the right size and content is what was asked for: asked for twice, or brought by a run that crashed between giving
// it its name and remembering so (there is no journal then). Nothing is written again.
func TestTheRightFileIsThereAlready(t *testing.T) {
	for name, unchecked := range map[string]bool{"verified": false, "not verified": true} {
		for _, size := range []int{0, 3*chunkSize - 1} {
			t.Run(name, func(t *testing.T) {
				p := newPair(t, size)
				p.orders.Unchecked = unchecked
				p.put(p.content())
				before, _ := os.Stat(filepath.Join(p.receive, "x"))
				r := p.receiver()
				p.sender()
				p.received.wait(t, "finished")
				p.sent.wait(t, "sent")
				want := checksum(sha(p.content()))
				if unchecked {
					want = ""
				}
				if got := p.received.checksums[len(p.received.checksums)-1]; got != want {
					t.Errorf("finished with checksum %q, want %q", got, want)
				}
				if got := r.Progress().Bytes; got != int64(size) {
					t.Errorf("%d bytes are done, want %d", got, size)
				}
				after, _ := os.Stat(filepath.Join(p.receive, "x"))
				if !os.SameFile(before, after) || !before.ModTime().Equal(after.ModTime()) {
					t.Error("it was written again")
				}
				p.alone()
			})
		}
	}
}

func TestAnotherFileIsThere(t *testing.T) {
	spoil := map[string]func(p *pair){
		"another byte": func(p *pair) {
			content := p.content()
			content[len(content)-1] ^= 1
			p.put(content)
		},
		"longer":  func(p *pair) { p.put(append(p.content(), 1)) },
		"shorter": func(p *pair) { p.put(p.content()[1:]) },
		"a link to the same": func(p *pair) {
			p.put(p.content())
			_ = os.Rename(filepath.Join(p.receive, "x"), filepath.Join(p.receive, "y"))
			_ = os.Symlink("y", filepath.Join(p.receive, "x"))
		},
		"a folder": func(p *pair) { _ = os.Mkdir(filepath.Join(p.receive, "x"), 0o755) },
	}
	for name, put := range spoil {
		for _, unchecked := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				p := newPair(t, 5000)
				p.orders.Unchecked = unchecked
				put(p)
				before, _ := os.ReadFile(filepath.Join(p.receive, "x"))
				p.receiver()
				p.sender()
				p.received.wait(t, "failed "+failure.DestinationExists)
				p.sent.wait(t, "failed "+failure.DestinationExists)
				if after, _ := os.ReadFile(filepath.Join(p.receive, "x")); !bytes.Equal(before, after) {
					t.Error("what was there is not there any more")
				}
			})
		}
	}
}

// A sender that does not know what is wanted says the digest of nothing again, and is refused as it always was.
func TestAnOlderSenderThatHashesNothing(t *testing.T) {
	p := newPair(t, 5000)
	p.orders.Unchecked = true
	p.put(p.content())
	p.receiver()
	first, _, _, _, err := p.tryDial()
	if said, ok := err.(datachannel.Error); !ok || said.Code != datachannel.ChecksumWanted {
		t.Fatalf("%v", err)
	}
	_ = first.conn.Close()
	c, hello, challenge, offset := p.dial()
	if offset != 5000 {
		t.Fatalf("RESUME at %d", offset)
	}
	nothing := sha(nil)
	mac := datachannel.EndMAC(datachannel.Key(p.orders.Key), hello, challenge, 5000, nothing)
	_ = c.write(datachannel.End{Volume: 5000, Digest: nothing, MAC: mac})
	p.received.wait(t, "failed "+failure.DestinationExists)
}

// Somebody else's transfer of the same file was quicker.
func TestTheNameIsTakenWhileTheTransferRuns(t *testing.T) {
	for name, change := range map[string]byte{"by the same": 0, "by another": 1} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, 1000)
			r := p.receiver()
			content := p.content()
			c, hello, challenge, _ := p.dial()
			there := bytes.Clone(content)
			there[0] ^= change
			p.put(there)
			frame := make([]byte, datachannel.DataPrefix+1000)
			datachannel.PutData(frame, 0, 1000)
			copy(frame[datachannel.DataPrefix:], content)
			_, _ = c.conn.Write(frame)
			digest := sha(content)
			mac := datachannel.EndMAC(datachannel.Key(p.orders.Key), hello, challenge, 1000, digest)
			_ = c.write(datachannel.End{Volume: 1000, Digest: digest, MAC: mac})
			if change == 0 {
				p.received.wait(t, "finished")
			} else {
				p.received.wait(t, "failed "+failure.DestinationExists)
			}
			r.Stop(true) // as when the broker lists it no more
			p.alone()
		})
	}
}
