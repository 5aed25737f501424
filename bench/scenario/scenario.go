// Package scenario reads scenario files, which define the caller's steps, the network, the
// providers and the expected results. From a scenario and a seed it plans the calls of a run.
package scenario

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/parley-voice/parley/bench/providers"
	"github.com/parley-voice/parley/bench/result"
	"github.com/parley-voice/parley/bench/yamlstrict"
	"github.com/parley-voice/parley/pipeline"
)

// A Scenario is a parsed scenario file. The YAML keys are those of the file.
type Scenario struct {
	Name  string `yaml:"-"`
	About string `yaml:"about"` // description in one line
	// Like names a shipped scenario from which this one inherits, except About, Hear and Expect.
	Like  string `yaml:"like"`
	Calls int    `yaml:"calls"` // concurrent calls
	// Exchanges is the total number of exchanges or pauses. Each is their number per call.
	Exchanges int    `yaml:"exchanges"`
	Each      int    `yaml:"each"`
	Words     int    `yaml:"words"` // words per answer of the fake model
	Steps     []Step `yaml:"steps"` // steps of a call, repeated until it has Each exchanges
	// First lets the caller speak before the greeting.
	First bool `yaml:"speaks_first"`
	// Echo is the delay of an echo of the agent's audio, 20 dB softer; nil means no echo.
	Echo  *Range `yaml:"echo"`
	Noise *Noise `yaml:"noise"`
	// Peer is the transport of the caller.
	Peer Peer `yaml:"peer"`
	// Codec is PCMU, PCMA or G722; empty means PCMU over SIP, all codecs over
	// WebRTC.
	Codec string        `yaml:"codec"`
	Ptime time.Duration `yaml:"ptime"` // packet time in both directions, 10ms to 60ms
	// From is the network from the caller to the agent, To the way back.
	From Path `yaml:"from_caller"`
	To   Path `yaml:"to_caller"`

	Providers providers.Script `yaml:"providers"`
	Agent     Agent            `yaml:"agent"`
	// Hear are lines that the caller must hear on every call, in this order.
	Hear []string `yaml:"hear"`
	// Expect are bounds, such as "turn_ms.p95<=490".
	Expect []string `yaml:"expect"`

	kind string
}

// Noise is background noise of the caller.
type Noise struct {
	Kind string  `yaml:"kind"` // white, pink, hum or music
	SNR  float64 `yaml:"snr"`  // dB below the level of the caller's words
}

// An Agent configures what the agent may do besides talking.
type Agent struct {
	// Voicemail is the reaction to an answering machine: hangup, leave_message or
	// continue; empty disables detection.
	Voicemail string `yaml:"voicemail"`
	Message   string `yaml:"message"` // message for leave_message
	// Patience is how long the agent waits in a pause; empty means balanced.
	Patience pipeline.Patience `yaml:"patience"`
	// Transfer allows the agent to transfer a caller who asks for a colleague.
	Transfer bool `yaml:"transfer"`
}

// A Peer is the transport of callers.
type Peer string

// Transports.
const (
	SIP Peer = "sip" // SIP and RTP; the agent calls the callers
	Web Peer = "web" // WebRTC; the callers join calls
)

// Check validates the peer.
func (p Peer) Check() error {
	if p != SIP && p != Web {
		return fmt.Errorf("peer %q: accepted are sip and web", p)
	}
	return nil
}

// By returns the scenario with transport p.
func (s *Scenario) By(p Peer) (*Scenario, error) {
	other := *s
	other.Peer = p
	if err := errors.Join(p.Check(), other.checkPeer()); err != nil {
		return nil, fmt.Errorf("scenario %s: %w", s.Name, err)
	}
	return &other, nil
}

// Codecs returns the codecs that the caller offers; nil means all.
func (s *Scenario) Codecs() []string {
	switch {
	case s.Codec != "":
		return []string{s.Codec}
	case s.Peer == Web:
		return nil
	default:
		return []string{"PCMU"}
	}
}

// checkPeer rejects settings that web calls do not support.
func (s *Scenario) checkPeer() error {
	if s.Peer != Web {
		return nil
	}
	no := func(format string, args ...any) error {
		return fmt.Errorf(format+": not supported on web calls", args...)
	}
	switch {
	case s.Ptime != 0 && s.Ptime != 20*time.Millisecond:
		return no("ptime %v", s.Ptime)
	case s.From != Path{} || s.To != Path{}:
		return no("from_caller, to_caller: network emulation")
	case s.Agent.Voicemail != "":
		return no("voicemail %s", s.Agent.Voicemail)
	case s.Agent.Patience != "":
		return no("patience %s", s.Agent.Patience)
	case s.Agent.Transfer:
		return no("transfer")
	}
	for i, st := range s.Steps {
		if st.Press != "" {
			return no("step %d: press %q", i+1, st.Press)
		}
	}
	return nil
}

// Kind returns the standard scenario whose metrics count the results.
func (s *Scenario) Kind() string { return s.kind }

// Straight reports whether the scenario needs no network emulation.
func (s *Scenario) Straight() bool {
	return s.From == Path{} && s.To == Path{} && (s.Ptime == 0 || s.Ptime == 20*time.Millisecond)
}

func base() Scenario {
	return Scenario{Calls: 4, Exchanges: 8, Each: 4, Words: 5, Peer: SIP, Providers: providers.Typical(), kind: "plain"}
}

// Parse parses a scenario.
func Parse(name string, b []byte) (*Scenario, error) { return parse(name, b, 0) }

// depth is the maximum nesting of Like.
const depth = 3

func parse(name string, b []byte, deep int) (*Scenario, error) {
	var first Scenario
	if err := yamlstrict.Read(b, &first); err != nil {
		return nil, fmt.Errorf("scenario %s: %w", name, err)
	}
	s := base()
	if first.Like != "" {
		if deep == depth {
			return nil, fmt.Errorf("scenario %s: like %s: nested too deeply", name, first.Like)
		}
		model, err := shipped.ReadFile("shipped/" + first.Like + ".yaml")
		if err != nil {
			return nil, fmt.Errorf("scenario %s: like %q: unknown scenario; accepted are %s", name, first.Like, strings.Join(Names(), ", "))
		}
		like, err := parse(first.Like, model, deep+1)
		if err != nil {
			return nil, err
		}
		s = *like
		s.Expect, s.Hear, s.About = nil, nil, ""
	} else if slices.Contains(Standard(), name) {
		s.kind = name
	}
	if err := yamlstrict.Read(b, &s); err != nil {
		return nil, fmt.Errorf("scenario %s: %w", name, err)
	}
	s.Name = name
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("scenario %s: %w", name, err)
	}
	return &s, nil
}

// Find returns the shipped scenario with a name, or else reads the file with that name.
func Find(name string) (*Scenario, error) {
	if slices.Contains(Names(), name) {
		b, err := shipped.ReadFile("shipped/" + name + ".yaml")
		if err != nil {
			return nil, err
		}
		return Parse(name, b)
	}
	b, err := os.ReadFile(name) //nolint:gosec // the user's own
	if errors.Is(err, os.ErrNotExist) && !strings.ContainsAny(name, "./") {
		return nil, fmt.Errorf("scenario %q: neither a file nor a scenario name: accepted are %s", name, strings.Join(Names(), ", "))
	}
	if err != nil {
		return nil, err
	}
	return Parse(strings.TrimSuffix(filepath.Base(name), filepath.Ext(name)), b)
}

// check validates the scenario.
func (s *Scenario) check() error {
	switch {
	case len(s.Steps) == 0:
		return errors.New("steps or like is required")
	case s.Calls < 1 || s.Calls > 500 || s.Exchanges < 1 || s.Exchanges > 100_000 || s.Each < 1 || s.Each > 20:
		return fmt.Errorf("calls %d, exchanges %d, each %d: want 1 to 500, 1 to 100000, 1 to 20", s.Calls, s.Exchanges, s.Each)
	case s.Words < 3 || s.Words > 26:
		return fmt.Errorf("words %d: want 3 to 26", s.Words)
	case s.Echo != nil && s.Echo.High > 500*time.Millisecond:
		return fmt.Errorf("echo %v: want 0s to 500ms", *s.Echo)
	case s.Agent.Patience != "" && !slices.Contains(pipeline.Patiences(), string(s.Agent.Patience)):
		return fmt.Errorf("patience %q: accepted are %s", s.Agent.Patience, strings.Join(pipeline.Patiences(), ", "))
	case !slices.Contains([]string{"", "hangup", "leave_message", "continue"}, s.Agent.Voicemail):
		return fmt.Errorf("voicemail %q: accepted are hangup, leave_message and continue", s.Agent.Voicemail)
	}
	return errors.Join(s.checkSound(), s.checkParts(), s.Peer.Check(), s.checkPeer())
}

func (s *Scenario) checkSound() error {
	switch {
	case !slices.Contains([]string{"", "PCMU", "PCMA", "G722"}, s.Codec):
		return fmt.Errorf("codec %q: accepted are PCMU, PCMA and G722", s.Codec)
	case s.Ptime != 0 && (s.Ptime < 10*time.Millisecond || s.Ptime > 60*time.Millisecond || s.Ptime%(10*time.Millisecond) != 0):
		return fmt.Errorf("ptime %v: want 10ms to 60ms in steps of 10ms", s.Ptime)
	case s.Noise != nil && !slices.Contains([]string{"white", "pink", "hum", "music"}, s.Noise.Kind):
		return fmt.Errorf("noise of kind %q: accepted are white, pink, hum and music", s.Noise.Kind)
	case s.Noise != nil && !(s.Noise.SNR >= -10 && s.Noise.SNR <= 60):
		return fmt.Errorf("noise snr %v: want -10 to 60", s.Noise.SNR)
	default:
		return nil
	}
}

func (s *Scenario) checkParts() error {
	texts := map[string]bool{}
	for i, st := range s.Steps {
		if err := st.check(); err != nil {
			return fmt.Errorf("step %d: %w", i+1, err)
		}
		if st.Say != "" && (texts[st.Say] || s.Each > 1) {
			return fmt.Errorf("step %d: %q occurs twice in a call and cannot be distinguished: change it, or set each: 1", i+1, st.Say)
		}
		texts[st.Say] = true
	}
	from, to := s.From.Relay(), s.To.Relay()
	if err := errors.Join(named("from_caller", from.Check()), named("to_caller", to.Check()), s.Providers.Check()); err != nil {
		return err
	}
	for _, e := range s.Expect {
		if _, _, _, err := result.ParseBound(e); err != nil {
			return fmt.Errorf("expect: %w", err)
		}
	}
	return nil
}

func named(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", name, err)
}

// A Range is a range of durations, written as "300ms" or "300ms..2s".
type Range struct{ Low, High time.Duration }

// UnmarshalYAML implements yaml.Unmarshaler.
func (r *Range) UnmarshalYAML(n *yaml.Node) error {
	low, high, two := strings.Cut(n.Value, "..")
	if !two {
		high = low
	}
	var err error
	if r.Low, err = time.ParseDuration(low); err == nil {
		r.High, err = time.ParseDuration(high)
	}
	if err != nil || r.Low < 0 || r.High < r.Low || r.High > time.Minute {
		return fmt.Errorf("line %d: %q: want a time such as 300ms, or two such as 300ms..2s, up to 1m", n.Line, n.Value)
	}
	return nil
}

// String returns the notation of the file.
func (r Range) String() string {
	if r.Low == r.High {
		return r.Low.String()
	}
	return r.Low.String() + ".." + r.High.String()
}
