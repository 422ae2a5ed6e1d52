// SPDX-License-Identifier: Apache-2.0

package brokerapi

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const document = `{"host": "dtn-a", "revision": 17, "server_time": "2026-01-01T00:00:00.000000Z", "fallback_rate_bps": 1000000,
 "assignments": [{"transfer_id": "tr_1", "role": "send", "mode": "managed", "state": "RESERVED", "plan_revision": 3,
   "volume_bytes": 400000000, "source_path": "run7/x.h5", "destination_path": null, "overwrite": false,
   "segments": [{"begin": "2026-01-01T00:00:10.5Z", "end": "2026-01-01T00:00:18.500001Z", "rate_bps": 400000000}],
   "deadline": null, "paused": false, "mechanism": "pacing",
   "peer": {"host": "dtn-b", "data_address": "192.0.2.8:7411", "tls_fingerprint": null},
   "key": "` + "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef" + `"}]}`

func TestTheDocumentOfTheProtocolPage(t *testing.T) {
	doc, refused, err := ParseAssignments([]byte(document))
	if err != nil || len(refused) != 0 || len(doc.Assignments) != 1 {
		t.Fatalf("%+v %v %v", doc, refused, err)
	}
	a := doc.Assignments[0]
	if a.TransferID != "tr_1" || a.Role != Send || *a.SourcePath != "run7/x.h5" || a.DestinationPath != nil || a.PlanRevision != 3 {
		t.Errorf("%+v", a)
	}
	if s := a.Segments[0]; s.End.Sub(s.Begin) != 8*time.Second+time.Microsecond || s.RateBps != 400_000_000 {
		t.Errorf("%+v", s)
	}
}

func TestABadAssignmentDoesNotHideTheOthers(t *testing.T) {
	good := document[strings.Index(document, `{"transfer_id"`):strings.LastIndex(document, "]}")]
	for why, edit := range map[string][2]string{
		"is not a plain name": {`"tr_1"`, `"../tr_2"`},
		"role":                {`"send"`, `"both"`},
		"without source_path": {`"run7/x.h5"`, `null`},
		"key is not 64 hex":   {"0123456789abcdef", "xyz"},
		"segment 0":           {`"end": "2026-01-01T00:00:18`, `"end": "2026-01-01T00:00:09`},
		"volume_bytes -1":     {"400000000, \"source", "-1, \"source"},
		"listed twice":        {"", ""},
	} {
		bad := strings.Replace(good, edit[0], edit[1], 1)
		raw := strings.Replace(document, good, good+","+bad, 1)
		doc, refused, err := ParseAssignments([]byte(raw))
		if err != nil || len(doc.Assignments) != 1 || len(refused) != 1 {
			t.Errorf("%s: %d good, refused %v, %v", why, len(doc.Assignments), refused, err)
		}
		for _, reason := range refused {
			if !strings.Contains(reason.Error(), why) || strings.Contains(reason.Error(), "xyz") {
				t.Errorf("%s: %v", why, reason)
			}
		}
	}
}

func FuzzParseAssignments(f *testing.F) {
	f.Add([]byte(document))
	f.Add([]byte(`{"host":"a","assignments":[{"segments":[{"begin":"9999-12-31T23:59:59Z","end":"0001-01-01T00:00:00Z","rate_bps":-1}]}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		doc, _, err := ParseAssignments(raw)
		if err != nil {
			return
		}
		for _, a := range doc.Assignments {
			if filepath.Base(a.TransferID) != a.TransferID || strings.HasPrefix(a.TransferID, ".") || a.VolumeBytes < 0 || len(a.Key) != 64 {
				t.Errorf("taken: %+v", a)
			}
			for _, s := range a.Segments {
				if !s.Begin.Before(s.End) || s.RateBps < 0 {
					t.Errorf("taken: %+v", s)
				}
			}
		}
	})
}

// The generated types are what the contract generates now.
func TestGeneratedTypesHaveNotDrifted(t *testing.T) {
	const contract = "../../../api-spec/openapi.yaml"
	if _, err := os.Stat(contract); err != nil {
		t.Skipf("SKIPPED, drift not checked: %v", err)
	}
	out := filepath.Join(t.TempDir(), "types.gen.go")
	if text, err := exec.Command("go", "tool", "oapi-codegen", "-config", "codegen.yaml", "-o", out, contract).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	want, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if have, _ := os.ReadFile("types.gen.go"); string(have) != string(want) {
		t.Error("types.gen.go is not what api-spec/openapi.yaml generates: run `go generate ./internal/brokerapi`")
	}
}
