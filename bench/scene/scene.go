// Package scene reads what a scenario file says: what a caller does on a call,
// over which network, with which providers, and what must be seen of it. It
// decides nothing else: bench/scenario plays it.
package scene

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
	"github.com/parley-voice/parley/bench/strict"
)

// A Scene is a scenario. It has the keys of its file.
type Scene struct {
	Name  string `yaml:"-"`
	About string `yaml:"about"` // in one line
	// Like names a shipped scenario that this one is but for what it says.
	Like  string `yaml:"like"`
	Calls int    `yaml:"calls"` // at a time
	// Exchanges are how many there are in all, Each on one call.
	Exchanges int    `yaml:"exchanges"`
	Each      int    `yaml:"each"`
	Words     int    `yaml:"words"` // of each answer of the fake model
	Steps     []Step `yaml:"steps"` // again and again
	// First has the caller speak before it is greeted.
	First bool `yaml:"speaks_first"`
	// Echo is how late the line sends back what the caller hears, 20 dB softer.
	Echo  *Range `yaml:"echo"`
	Noise *Noise `yaml:"noise"`
	// Peer is by what the caller talks.
	Peer Peer `yaml:"peer"`
	// Codec is what the caller's side speaks: PCMU, PCMA or G722; empty is PCMU
	// over SIP, and all of them over WebRTC.
	Codec string        `yaml:"codec"`
	Ptime time.Duration `yaml:"ptime"` // of packets both ways, 10ms to 60ms
	// The network, of the caller's packets and of those to the caller.
	From Path `yaml:"from_caller"`
	To   Path `yaml:"to_caller"`

	Providers providers.Script `yaml:"providers"`
	Agent     Agent            `yaml:"agent"`
	// Hear are the words that the caller must hear on every call, in this order.
	Hear []string `yaml:"hear"`
	// Expect are what must hold, such as "turn_ms.p95<=490".
	Expect []string `yaml:"expect"`

	kind string
}

// Noise is heard behind the caller.
type Noise struct {
	Kind string  `yaml:"kind"` // white, pink, hum or music
	SNR  float64 `yaml:"snr"`  // dB below the caller's words
}

// An Agent is what the agent may do beside talking.
type Agent struct {
	// Voicemail is what to do when a machine answers: hangup, leave_message or
	// continue; empty: nobody looks who answers.
	Voicemail string `yaml:"voicemail"`
	Message   string `yaml:"message"` // to leave
	// Transfer is whether it hands over a caller who asks for a colleague.
	Transfer bool `yaml:"transfer"`
}

// A Peer is by what callers talk.
type Peer string

// Peers.
const (
	SIP Peer = "sip" // and RTP: they are called
	Web Peer = "web" // WebRTC: they visit
)

// Check says what a peer may be.
func (p Peer) Check() error {
	if p != SIP && p != Web {
		return fmt.Errorf("peer %q: accepted are sip and web", p)
	}
	return nil
}

// By is the scene with callers of a peer.
func (s *Scene) By(p Peer) (*Scene, error) {
	other := *s
	other.Peer = p
	if err := errors.Join(p.Check(), other.checkPeer()); err != nil {
		return nil, fmt.Errorf("scenario %s: %w", s.Name, err)
	}
	return &other, nil
}

// Codecs are those that the caller's side offers; none for all that it has.
func (s *Scene) Codecs() []string {
	switch {
	case s.Codec != "":
		return []string{s.Codec}
	case s.Peer == Web:
		return nil
	default:
		return []string{"PCMU"}
	}
}

// checkPeer says what a caller of a web call cannot play.
func (s *Scene) checkPeer() error {
	if s.Peer != Web {
		return nil
	}
	no := func(format string, args ...any) error {
		return fmt.Errorf(format+": a web peer cannot play it, only one of SIP", args...)
	}
	switch {
	case s.Ptime != 0 && s.Ptime != 20*time.Millisecond:
		return no("ptime %v", s.Ptime)
	case s.From != Path{} || s.To != Path{}:
		return no("from_caller, to_caller: a network between")
	case s.Agent.Voicemail != "":
		return no("voicemail %s: an answering machine", s.Agent.Voicemail)
	case s.Agent.Transfer:
		return no("transfer: a colleague on the line")
	}
	for i, st := range s.Steps {
		if st.Press != "" {
			return no("step %d: press %q", i+1, st.Press)
		}
	}
	return nil
}

// Kind is the shipped scenario that the scene is counted as.
func (s *Scene) Kind() string { return s.kind }

// Straight tells whether packets go from end to end with nothing between.
func (s *Scene) Straight() bool {
	return s.From == Path{} && s.To == Path{} && (s.Ptime == 0 || s.Ptime == 20*time.Millisecond)
}

// Defaults of a scene.
func base() Scene {
	return Scene{Calls: 4, Exchanges: 8, Each: 4, Words: 5, Peer: SIP, Providers: providers.Typical(), kind: "plain"}
}

// Parse reads a scene.
func Parse(name string, b []byte) (*Scene, error) { return parse(name, b, 0) }

// depth is how many scenes may be like each other.
const depth = 3

func parse(name string, b []byte, deep int) (*Scene, error) {
	var first Scene
	if err := strict.Read(b, &first); err != nil {
		return nil, fmt.Errorf("scenario %s: %w", name, err)
	}
	s := base()
	if first.Like != "" {
		if deep == depth {
			return nil, fmt.Errorf("scenario %s: like %s: too many are like each other", name, first.Like)
		}
		model, err := shipped.ReadFile("shipped/" + first.Like + ".yaml")
		if err != nil {
			return nil, fmt.Errorf("scenario %s: like %q: there is no such scenario; there are %s", name, first.Like, strings.Join(Names(), ", "))
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
	if err := strict.Read(b, &s); err != nil {
		return nil, fmt.Errorf("scenario %s: %w", name, err)
	}
	s.Name = name
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("scenario %s: %w", name, err)
	}
	return &s, nil
}

// Find reads the shipped scene of a name, or the one of a file.
func Find(name string) (*Scene, error) {
	if slices.Contains(Names(), name) {
		b, err := shipped.ReadFile("shipped/" + name + ".yaml")
		if err != nil {
			return nil, err
		}
		return Parse(name, b)
	}
	b, err := os.ReadFile(name) //nolint:gosec // the user's own
	if errors.Is(err, os.ErrNotExist) && !strings.ContainsAny(name, "./") {
		return nil, fmt.Errorf("scenario %q: neither a file nor one of %s", name, strings.Join(Names(), ", "))
	}
	if err != nil {
		return nil, err
	}
	return Parse(strings.TrimSuffix(filepath.Base(name), filepath.Ext(name)), b)
}

// check says what of a scene makes no sense.
func (s *Scene) check() error {
	switch {
	case len(s.Steps) == 0:
		return errors.New("no steps, and like no other scenario")
	case s.Calls < 1 || s.Calls > 500 || s.Exchanges < 1 || s.Exchanges > 100_000 || s.Each < 1 || s.Each > 20:
		return fmt.Errorf("calls %d, exchanges %d, each %d: want 1 to 500, 1 to 100000, 1 to 20", s.Calls, s.Exchanges, s.Each)
	case s.Words < 3 || s.Words > 26:
		return fmt.Errorf("words %d: want 3 to 26", s.Words)
	case s.Echo != nil && s.Echo.High > 500*time.Millisecond:
		return fmt.Errorf("echo %v: want 0s to 500ms", *s.Echo)
	case !slices.Contains([]string{"", "hangup", "leave_message", "continue"}, s.Agent.Voicemail):
		return fmt.Errorf("voicemail %q: accepted are hangup, leave_message and continue", s.Agent.Voicemail)
	}
	return errors.Join(s.checkSound(), s.checkParts(), s.Peer.Check(), s.checkPeer())
}

func (s *Scene) checkSound() error {
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

func (s *Scene) checkParts() error {
	texts := map[string]bool{}
	for i, st := range s.Steps {
		if err := st.check(); err != nil {
			return fmt.Errorf("step %d: %w", i+1, err)
		}
		if st.Say != "" && (texts[st.Say] || s.Each > 1) {
			return fmt.Errorf("step %d: %q is said twice on a call, and could not be told apart: say something else, or have each: 1", i+1, st.Say)
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

// A Range is a time, or one between two: "300ms" or "300ms..2s".
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

// String is the range as a file has it.
func (r Range) String() string {
	if r.Low == r.High {
		return r.Low.String()
	}
	return r.Low.String() + ".." + r.High.String()
}
