package providers

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
	"github.com/parley-voice/parley/pipeline/llm"
)

func TestParseFault(t *testing.T) {
	f, err := ParseFault("asr=late,first=2,every=5,times=3,by=2s")
	if want := (Fault{fakeprovider.ASR, fakeprovider.Late, 2, 5, 3, 2 * time.Second}); err != nil || f != want {
		t.Errorf("got %+v, %v", f, err)
	}
	for text, want := range map[string]string{
		"llm": "PROVIDER=FAULT", "llm=slow,twice": `unknown "twice"`, "llm=slow,every=x": `every is "x"`, "llm=slow,by=3": `by is "3"`,
	} {
		if _, err := ParseFault(text); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), text) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

func TestHits(t *testing.T) {
	for _, c := range []struct {
		f    Fault
		want string // faults of the first ten requests
	}{
		{Fault{}, "xxxxxxxxxx"},
		{Fault{First: 3}, "..xxxxxxxx"},
		{Fault{First: 2, Every: 3}, ".x..x..x.."},
		{Fault{First: 2, Every: 3, Times: 2}, ".x..x....."},
		{Fault{Times: 1}, "x........."},
	} {
		var got strings.Builder
		for n := range 10 {
			got.WriteByte(".x"[map[bool]int{true: 1}[c.f.hits(n)]])
		}
		if got.String() != c.want {
			t.Errorf("%+v: got %s, want %s", c.f, got.String(), c.want)
		}
	}
}

func TestRead(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x.yaml")
	write := func(text string) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("model: {first_token: 350ms}\nfaults:\n- {provider: llm, fault: slow, every: 4, by: 1s}\n")
	s, err := Read(name)
	if err != nil || s.Check() != nil || s.Model.FirstToken != 350*time.Millisecond || s.Recognizer.Final != 150*time.Millisecond || len(s.Faults) != 1 {
		t.Errorf("got %+v, %v", s, err)
	}
	write("model:\n  first_tokn: 350ms\n")
	if _, err := Read(name); err == nil || !strings.Contains(err.Error(), `x.yaml: line 2: model: unknown key "first_tokn": accepted are first_token, token`) {
		t.Error(err)
	}
	for text, want := range map[string]string{
		"faults: [{provider: stt, fault: drop}]":            "accepted are asr, llm and tts",
		"faults: [{provider: llm, fault: dorp}]":            "half-open",
		"faults: [{provider: llm, fault: late}]":            "late and mute apply to asr",
		"faults: [{provider: asr, fault: slow}]":            "slow applies to llm and tts",
		"faults: [{provider: asr, fault: drop, first: -1}]": "must not be negative",
		"faults: [{provider: asr, fault: drop, by: 1s}]":    "for late and slow only",
		"voice: {first_audio: -1s}":                         "first_audio",
	} {
		write(text)
		s, err := Read(name)
		if err == nil {
			err = s.Check()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

// TestServe checks that each provider serves on its own port, and that a scripted fault refuses
// every second model request.
func TestServe(t *testing.T) {
	s := Script{Faults: []Fault{{Provider: fakeprovider.LLM, Fault: fakeprovider.Refuse, First: 2, Every: 2}}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, w := io.Pipe()
	var served sync.WaitGroup
	var err error
	loopback := "127.0.0.1:0"
	served.Go(func() { err = Serve(ctx, w, Addrs{loopback, loopback, loopback}, s, Understanding{}); _ = w.Close() })
	b := make([]byte, 4096)
	n, _ := r.Read(b)
	printed := string(b[:n])
	addr := regexp.MustCompile(`http://(\S+)/v1/chat/completions`).FindStringSubmatch(printed)
	if addr == nil || !strings.Contains(printed, "fault: llm refuse, from request 2, every 2") || strings.Count(printed, "127.0.0.1:") < 10 {
		t.Fatalf("got %s", printed)
	}
	m := llm.OpenAI{URL: "http://" + addr[1] + "/v1"}
	for i, want := range []string{"you said hi", "503", "you said hi"} {
		var got strings.Builder
		for d, err := range m.Reply(t.Context(), pipeline.Prompt{Messages: []pipeline.Message{{Role: pipeline.RoleCaller, Text: "hi"}}}) {
			if got.WriteString(d.Text); err != nil {
				got.WriteString(err.Error())
			}
		}
		if !strings.Contains(got.String(), want) {
			t.Errorf("request %d: got %q, want %q", i+1, got.String(), want)
		}
	}
	cancel()
	served.Wait()
	if err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", addr[1]); err == nil {
		t.Error("server did not stop")
	}
}
