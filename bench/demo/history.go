package demo

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// The demo's past: pastCalls calls over pastDays days. Of them, reminders are those of the finished campaign.
const (
	pastCalls = 200
	pastDays  = 14
	reminders = 80
	seed      = 20260301
)

// FinishedCampaign and RunningCampaign are the names of the demo's campaigns.
const (
	FinishedCampaign = "Appointment reminders"
	RunningCampaign  = "Reading survey"
)

// A Past is a call of the demo's history.
type Past struct {
	Agent    string
	Campaign bool // a call of the finished campaign
	At       time.Time
	To, Name string
	// Outcome is the disconnection reason as the call object has it.
	Outcome  string
	Scene    string // name of the scene; empty for calls that nobody answered
	Rings    time.Duration
	Response []time.Duration // response time of each answer of the agent after the first
	MOS      float64
}

// History returns the demo's past calls, oldest first, until the day before now. All calls
// are between 10:00 and 19:00 of the callee's local time.
func History(now time.Time) []Past {
	r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a demonstration, not a secret
	var all []Past
	for i := range pastCalls {
		to, local := number(i, 0)
		p := Past{Campaign: i < reminders, To: to, Name: name(r), Agent: "clinic", Rings: time.Duration(4+r.IntN(14)) * time.Second}
		day := 1 + r.IntN(pastDays-1)
		switch {
		case p.Campaign:
			day = 8 + r.IntN(2) // two days in a row
		case i%5 < 3:
			p.Agent = "bookshop"
		default:
			p.Agent = "survey"
		}
		today, hour := now.In(local), 10+(r.IntN(9)+r.IntN(9))/2
		p.At = time.Date(today.Year(), today.Month(), today.Day()-day, hour, r.IntN(60), r.IntN(60), 0, local)
		p.settle(r)
		all = append(all, p)
	}
	slices.SortStableFunc(all, func(a, b Past) int { return a.At.Compare(b.At) })
	return all
}

// settle chooses the outcome of the call.
func (p *Past) settle(r *rand.Rand) {
	switch n := r.IntN(100); {
	case n < 14:
		p.Outcome = "no_answer"
		p.Rings = 45 * time.Second
		return
	case n < 19:
		p.Outcome = "busy"
		return
	case n < 22:
		p.Outcome = "declined"
		return
	case n < 24:
		p.Outcome = "invalid_number"
		return
	case n < 38:
		p.Outcome, p.Scene = "voicemail_reached", VoicemailScene().Name
	default:
		scene := choose(r, p.Agent)
		p.Scene, p.Outcome = scene.Name, "callee_hangup"
		if r.IntN(4) == 0 {
			p.Outcome = "agent_hangup"
		}
		for range len(scene.Lines)/2 - 1 {
			p.Response = append(p.Response, time.Duration(560+r.IntN(380)+r.IntN(3)/2*r.IntN(900))*time.Millisecond)
		}
	}
	p.MOS = float64(405+r.IntN(35)) / 100
}

// choose returns a scene of an agent by the weights of its scenes.
func choose(r *rand.Rand, agent string) Scene {
	var all []Scene
	for _, s := range Scenes() {
		for range s.Weight {
			if s.Agent == agent {
				all = append(all, s)
			}
		}
	}
	return all[r.IntN(len(all))]
}

// number returns a fictional number (NANP 555-0100 to 555-0199) and its time zone. The area codes lie in five zones, so
// that somebody may be called at most hours.
func number(i, first int) (string, *time.Location) {
	codes := []struct {
		area string
		utc  int // hours of standard time
	}{
		{"212", -5}, {"617", -5}, {"305", -5}, {"312", -6}, {"512", -6}, {"303", -7}, {"602", -7}, {"213", -8}, {"206", -8}, {"808", -10},
	}
	code := codes[i%len(codes)]
	return fmt.Sprintf("+1%s55501%02d", code.area, first+i/len(codes)), time.FixedZone("", code.utc*3600)
}

func name(r *rand.Rand) string {
	first, last := people()
	return first[r.IntN(len(first))] + " " + last[r.IntN(len(last))]
}

// A Contact is a row of a campaign's list.
type Contact struct {
	Phone string `json:"phone"`
	Name  string `json:"name"`
}

// RunningContacts returns the list of the running campaign. None of its numbers is in History or Blocked.
func RunningContacts() []Contact {
	r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // see History
	all := make([]Contact, 300)
	for i := range all {
		to, _ := number(i, 30)
		all[i] = Contact{to, name(r)}
	}
	return all
}

// Blocked returns numbers for the organization's do-not-call list.
func Blocked() []string {
	all := make([]string, 12)
	for i := range all {
		all[i], _ = number(i*7, 70)
	}
	return all
}
