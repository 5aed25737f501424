package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/parley-voice/parley/bench/relay"
)

// A Step is one action of a caller. Exactly one field of the first block is set.
type Step struct {
	Say    string        `yaml:"say"`   // words to say
	Draw   string        `yaml:"draw"`  // kind of randomly drawn words: one of Draws
	Cough  *Range        `yaml:"cough"` // a cough of this length
	Press  string        `yaml:"press"` // DTMF keys
	Beep   time.Duration `yaml:"beep"`  // a tone of 1 kHz
	Wait   time.Duration `yaml:"wait"`  // how long to listen
	HangUp bool          `yaml:"hang_up"`

	// Into is how long after the start of the previous answer the action starts; nil waits for its end.
	Into *Range `yaml:"into"`
	// Answered tells whether an answer is expected. If it is nil, an answer is expected for Say,
	// Press and Draw, except for Draw command and listening.
	Answered *bool `yaml:"answered"`
	// Think is how long the agent must be silent before the next step.
	Think time.Duration `yaml:"think"`
	// Ends means that the agent should end the call during Wait.
	Ends bool `yaml:"ends"`
}

// Draws returns the accepted values of Draw.
func Draws() []string { return []string{"plain", "paused", "content", "command", "listening"} }

func (st Step) check() error {
	n := 0
	for _, is := range []bool{st.Say != "", st.Draw != "", st.Cough != nil, st.Press != "", st.Beep != 0, st.Wait != 0, st.HangUp} {
		if is {
			n++
		}
	}
	if n != 1 {
		return fmt.Errorf("%d actions: want one of say, draw, cough, press, beep, wait, hang_up", n)
	}
	return errors.Join(st.checkWords(), st.checkTimes())
}

func (st Step) checkWords() error {
	switch {
	case st.Draw != "" && !slices.Contains(Draws(), st.Draw):
		return fmt.Errorf("draw %q: accepted are %s", st.Draw, strings.Join(Draws(), ", "))
	case strings.ContainsFunc(st.Say, func(r rune) bool { return (r < 'a' || r > 'z') && r != ' ' && r != '\'' }):
		return fmt.Errorf("say %q: accepted are lower-case letters, apostrophes and spaces", st.Say)
	case strings.ContainsFunc(st.Press, func(r rune) bool { return !strings.ContainsRune("0123456789*#ABCD,", r) }):
		return fmt.Errorf("press %q: accepted are 0-9 * # A-D, and commas for pauses", st.Press)
	default:
		return nil
	}
}

func (st Step) checkTimes() error {
	within := func(d, most time.Duration) bool { return d >= 0 && d <= most }
	switch {
	case st.Cough != nil && (st.Cough.Low < 20*time.Millisecond || st.Cough.High > 3*time.Second):
		return fmt.Errorf("cough %v: want 20ms to 3s", *st.Cough)
	case !within(st.Beep, 3*time.Second) || !within(st.Wait, 10*time.Minute) || !within(st.Think, time.Minute):
		return errors.New("accepted are a beep of up to 3s, a wait of up to 10m, and a think of up to 1m")
	case st.Ends && st.Wait == 0:
		return errors.New("ends requires wait")
	case st.HangUp && st.Answered != nil && *st.Answered:
		return errors.New("answered: a step with hang_up has no answer")
	default:
		return nil
	}
}

// IsAnswered reports whether an answer is expected.
func (st Step) IsAnswered() bool {
	if st.Answered != nil {
		return *st.Answered
	}
	return st.Say != "" || st.Press != "" || st.Draw != "" && st.Draw != "command" && st.Draw != "listening"
}

// A Path is one direction of the network. Shares are from 0 to 1.
type Path struct {
	Loss      float64       `yaml:"loss"`
	Burst     float64       `yaml:"burst"` // mean number of packets lost in a row
	Delay     time.Duration `yaml:"delay"`
	Jitter    time.Duration `yaml:"jitter"`
	Spread    string        `yaml:"spread"` // distribution of jitter: even, normal or tailed
	Reorder   float64       `yaml:"reorder"`
	Duplicate float64       `yaml:"duplicate"`
	Rate      int           `yaml:"rate"`     // bits per second
	SkewPPM   float64       `yaml:"skew_ppm"` // by how many millionths the sender's clock is fast; negative means slow
	DTX       bool          `yaml:"dtx"`      // the sender does not send silence
}

// Relay returns the path as package relay defines it. An unknown Spread becomes an invalid value.
func (p Path) Relay() *relay.Path {
	spreads := map[string]relay.Spread{"": relay.Even, "even": relay.Even, "normal": relay.Normal, "tailed": relay.Tailed}
	spread, ok := spreads[p.Spread]
	if !ok {
		spread = relay.Tailed + 1
	}
	return &relay.Path{
		Loss: p.Loss, Burst: p.Burst, Delay: p.Delay, Jitter: p.Jitter, Spread: spread, Reorder: p.Reorder, Duplicate: p.Duplicate,
		Rate: p.Rate, Skew: p.SkewPPM, DTX: p.DTX,
	}
}
