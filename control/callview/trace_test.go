package callview

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/media"
)

func ladder() []media.Message {
	at := time.Date(2026, 3, 4, 5, 6, 7, 89_000_000, time.UTC)
	return []media.Message{
		{At: at, Out: true, Peer: "192.0.2.1:5060/UDP", Line: "INVITE sip:12025550123@192.0.2.1:5060", Note: "1 INVITE, m=audio 20000 RTP/AVP 0"},
		{At: at.Add(20 * time.Millisecond), Peer: "192.0.2.1:5060/UDP", Line: "100 Trying", Note: "1 INVITE"},
		{At: at.Add(61 * time.Second), Peer: "[2001:db8::1]:5061/TLS", Line: "603 \x1b[2J\u009b1mNo\ttabs"},
	}
}

func TestWriteTrace(t *testing.T) {
	var out bytes.Buffer
	if err := WriteTrace(&out, ladder()); err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{
		"2026-03-04 05:06:07.089 UTC",
		"   +0.000  →  192.0.2.1:5060/UDP      INVITE sip:12025550123@192.0.2.1:5060  1 INVITE, m=audio 20000 RTP/AVP 0",
		"   +0.020  ←  192.0.2.1:5060/UDP      100 Trying                             1 INVITE",
		"  +61.000  ←  [2001:db8::1]:5061/TLS  603 �[2J�1mNo�tabs",
		"",
	}, "\n")
	if out.String() != want {
		t.Errorf("\n%s, want\n%s", out.String(), want)
	}
	out.Reset()
	if err := WriteTrace(&out, nil); err != nil || out.Len() != 0 {
		t.Errorf("of nothing: %q, %v", out.String(), err)
	}
	if err := WriteTrace(brokenWriter{}, ladder()); !errors.Is(err, errBroken) {
		t.Errorf("to nowhere: %v", err)
	}
}

var errBroken = errors.New("broken")

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func TestWriteTraceJSON(t *testing.T) {
	var out bytes.Buffer
	if err := WriteTraceJSON(&out, ladder()); err != nil {
		t.Fatal(err)
	}
	var rungs []Rung
	if err := json.Unmarshal(out.Bytes(), &rungs); err != nil {
		t.Fatal(err)
	}
	if got := Ladder(rungs); !reflect.DeepEqual(got, ladder()) {
		t.Errorf("%+v", got)
	}
	out.Reset()
	if err := WriteTraceJSON(&out, nil); err != nil || out.String() != "[]\n" {
		t.Errorf("of nothing: %q, %v", out.String(), err)
	}
}
