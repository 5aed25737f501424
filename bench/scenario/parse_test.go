package scenario

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/bench/relay"
)

// TestShipped checks that every shipped scenario is valid and has a description and expectations.
// Each key of the format must occur in one of them.
func TestShipped(t *testing.T) {
	names := Names()
	if len(names) < 35 || !slices.Equal(names[:8], Standard()) {
		t.Errorf("%q", names)
	}
	said := map[string]bool{}
	for _, name := range names {
		s, err := Find(name)
		if err != nil {
			t.Error(err)
			continue
		}
		if s.Name != name || s.About == "" || len(s.Expect) == 0 || !slices.Contains(Standard(), s.Kind()) {
			t.Errorf("%s: got %+v", name, s)
		}
		for _, c := range s.Codecs() {
			said[c] = true
		}
		said["peer "+string(s.Peer)], said[s.Agent.Voicemail] = true, true
		for _, f := range s.Providers.Faults {
			said[string(f.Provider)] = true
		}
		if s.From.DTX {
			said["dtx"] = true
		}
	}
	for _, what := range []string{"PCMU", "PCMA", "G722", "leave_message", "asr", "llm", "tts", "dtx", "peer sip", "peer web"} {
		if !said[what] {
			t.Errorf("no shipped scenario uses %s", what)
		}
	}
}

func TestLike(t *testing.T) {
	s, err := Parse("mine", []byte("about: mine\nlike: loss\ncalls: 9\nfrom_caller: {jitter: 10ms}\nexpect: [dead_turns.times<=1]\n"))
	if err != nil {
		t.Fatal(err)
	}
	loss, err := Find("loss")
	if err != nil {
		t.Fatal(err)
	}
	if s.Calls != 9 || s.Kind() != "plain" || s.From.Loss != loss.From.Loss || s.From.Jitter != 10*time.Millisecond || s.To != loss.To ||
		len(s.Expect) != 1 || len(s.Steps) != 1 || s.Straight() {
		t.Errorf("%+v", s)
	}
	if plain, err := Find("plain"); err != nil || !plain.Straight() {
		t.Errorf("got %+v, %v", plain, err)
	}
}

func TestSteps(t *testing.T) {
	s, err := Parse("mine", []byte(`
each: 1
steps:
- {say: are you open, think: 1s}
- {cough: 100ms..300ms, into: 500ms}
- {press: "1#", answered: false}
- {wait: 20s, ends: true}
providers: {model: {first_token: 350ms}}
to_caller: {loss: 0.5, spread: tailed, skew_ppm: -100, dtx: true}
`))
	if err != nil {
		t.Fatal(err)
	}
	var answered []bool
	for _, st := range s.Steps {
		answered = append(answered, st.IsAnswered())
	}
	if !slices.Equal(answered, []bool{true, false, false, false}) || s.Steps[1].Cough.String() != "100ms..300ms" || s.Steps[1].Into.String() != "500ms" {
		t.Errorf("got %v, %+v", answered, s.Steps)
	}
	if s.Providers.Model.FirstToken != 350*time.Millisecond || s.Providers.Model.Token != 10*time.Millisecond {
		t.Errorf("%+v", s.Providers)
	}
	if p := s.To.Relay(); p.Loss != 0.5 || p.Spread != relay.Tailed || p.Skew != -100 || !p.DTX {
		t.Errorf("%+v", p)
	}
}

func TestErrors(t *testing.T) {
	const plain = "steps: [{draw: plain}]\n"
	for text, want := range map[string]string{
		"about: x":                          "steps or like is required",
		"like: nothing":                     "unknown scenario; accepted are plain, pauses",
		plain + "clals: 3":                  `line 2: the file: unknown key "clals": accepted are about, like, calls`,
		plain + "calls: 0":                  "1 to 500",
		plain + "words: 99":                 "3 to 26",
		plain + "codec: opus":               "PCMU, PCMA and G722",
		plain + "peer: fax":                 "accepted are sip and web",
		plain + "peer: web\nptime: 40ms":    "ptime 40ms: not supported on web calls",
		"like: loss\npeer: web":             "from_caller, to_caller: network emulation: not supported on web calls",
		"like: keys\npeer: web":             "press",
		"like: voicemail\npeer: web":        "voicemail leave_message: not supported on web calls",
		"like: transfer\npeer: web":         "transfer: not supported on web calls",
		plain + "ptime: 25ms":               "10ms to 60ms",
		plain + "noise: {kind: loud}":       "white, pink, hum and music",
		plain + "echo: 2s":                  "0s to 500ms",
		plain + "echo: 300ms..200ms":        "want a time such as",
		plain + "agent: {voicemail: shout}": "leave_message",
		plain + "agent: {patience: slow}":   "quick, balanced, careful",
		plain + "from_caller: {loss: 2}":    "from_caller: loss of 2: want 0 to 1",
		plain + "to_caller: {spread: wide}": "to_caller: unknown spread",
		plain + "expect: [fast]":            `bound "fast"`,
		plain + "providers: {faults: [{provider: llm, fault: off}]}": "unknown fault",
		"steps: [{say: hi, draw: plain}]":                            "step 1: 2 actions: want one of",
		"steps: [{into: 1s}]":                                        "step 1: 0 actions: want one of",
		"steps: [{draw: jokes}]":                                     "plain, paused, content",
		"each: 1\nsteps: [{say: Hi there!}]":                         "lower-case letters",
		"steps: [{say: hi}]":                                         "occurs twice",
		"each: 1\nsteps: [{say: hi}, {say: hi}]":                     "occurs twice",
		"steps: [{press: xyz}]":                                      "0-9 * #",
		"steps: [{cough: 1ms}]":                                      "20ms to 3s",
		"steps: [{draw: plain, ends: true}]":                         "ends requires wait",
		"steps: [{hang_up: true, answered: true}]":                   "hang_up has no answer",
		"steps: [{wait: 1h}]":                                        "up to 10m",
	} {
		if _, err := Parse("x", []byte(text)); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "scenario x: ") {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

// TestBy checks that a scenario runs on another transport if that transport supports it.
func TestBy(t *testing.T) {
	wide, err := Find("g722")
	if err != nil {
		t.Fatal(err)
	}
	web, err := wide.By(Web)
	if err != nil || web.Peer != Web || wide.Peer != SIP || !slices.Equal(web.Codecs(), []string{"G722"}) {
		t.Errorf("got %+v, %v", web, err)
	}
	loss, err := Find("loss")
	if err != nil {
		t.Fatal(err)
	}
	if _, err = loss.By(Web); err == nil || !strings.Contains(err.Error(), "scenario loss: ") {
		t.Error(err)
	}
}

func TestFind(t *testing.T) {
	name := filepath.Join(t.TempDir(), "mine.yaml")
	if err := os.WriteFile(name, []byte("like: plain"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := Find(name); err != nil || s.Name != "mine" {
		t.Errorf("got %+v, %v", s, err)
	}
	if _, err := Find("plian"); err == nil || !strings.Contains(err.Error(), "neither a file nor a scenario name: accepted are plain") {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range Names() {
		b, err := shipped.ReadFile("shipped/" + name + ".yaml")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := Parse("x", b)
		if err == nil && (len(s.Steps) == 0 || s.From.Relay().Check() != nil || s.Kind() == "") {
			t.Errorf("got %+v, want an error", s)
		}
	})
}
