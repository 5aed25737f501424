package selftest

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/asr"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
	"github.com/parley-voice/parley/pipeline/llm"
	"github.com/parley-voice/parley/pipeline/tts"
)

// run tests the providers "good" and "bad". "bad" has the fault.
func run(t *testing.T, fault fakeprovider.Fault, test Test) (results []Result, ok bool) {
	t.Helper()
	good, bad := fakeprovider.NewNet(), fakeprovider.NewNet()
	script := fakeprovider.Typical()
	fakes := fakeprovider.Serve(good, script)
	script.Fault = func(fakeprovider.Provider, int) fakeprovider.Fault { return fault }
	faulty := fakeprovider.Serve(bad, script)
	defer func() { _, _ = fakes.Close(), faulty.Close() }()
	test.Recognizers, test.Models, test.Voices = map[string]pipeline.Recognizer{}, map[string]pipeline.Model{}, map[string]pipeline.Voice{}
	for name, n := range map[string]*fakeprovider.Net{"good": good, "bad": bad} {
		client := &http.Client{Transport: &http.Transport{DialContext: n.Dial}}
		defer client.CloseIdleConnections()
		test.Recognizers[name] = asr.Deepgram{URL: "ws://fake/v1/listen", Dial: n.Dial}
		test.Models[name] = llm.OpenAI{URL: "http://fake/v1", Client: client}
		test.Voices[name] = tts.ElevenLabs{URL: "ws://fake", Dial: n.Dial}
	}
	ok = test.Run(t.Context(), func(r Result) { results = append(results, r) })
	slices.SortFunc(results, func(a, b Result) int {
		return cmp.Or(strings.Compare(a.Serves, b.Serves), strings.Compare(a.Name, b.Name))
	})
	return results, ok
}

// TestListen checks that recognizers hear what voices said, and that a failing provider
// fails alone, with the reason.
func TestListen(t *testing.T) {
	for fault, want := range map[fakeprovider.Fault]string{
		fakeprovider.None: "", fakeprovider.Refuse: "503", fakeprovider.Absent: "404", fakeprovider.Hang: "", fakeprovider.Stall: "", fakeprovider.Freeze: "",
	} {
		synctest.Test(t, func(t *testing.T) {
			results, ok := run(t, fault, Test{Listen: true})
			if len(results) != 6 || ok != (fault == fakeprovider.None) {
				t.Fatalf("%s: %d results, %v", fault, len(results), ok)
			}
			for _, r := range results {
				if fault != fakeprovider.None && r.Name == "bad" {
					if r.Err == nil || !strings.Contains(r.Err.Error(), want) {
						t.Errorf("%s: %s: %v, want %q", fault, r.Serves, r.Err, want)
					}
					continue
				}
				if r.Err != nil || r.Latency <= 0 || r.Serves == "asr" && r.Detail != "hello, this is a test of the voice." {
					t.Errorf("%s: %+v", fault, r)
				}
			}
		})
	}
}

// TestNames checks that a run may be restricted, and that without options no sentence is
// spoken.
func TestNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		results, ok := run(t, fakeprovider.Refuse, Test{Names: []string{"good"}})
		if !ok || len(results) != 3 || results[0].Detail != "stream opened" || !strings.HasSuffix(results[2].Detail, "s of speech") {
			t.Errorf("%v, %+v", ok, results)
		}
	})
}
