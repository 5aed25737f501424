package turn

import "time"

// Policy is how patient the machine is. The zero value is not useful; start
// from DefaultPolicy.
type Policy struct {
	// Sustained is how long the caller must speak into the agent's speech
	// before the agent pauses; SustainedGreeting, into its first words;
	// SustainedReadBack, while it reads digits back.
	Sustained, SustainedGreeting, SustainedReadBack time.Duration
	// Insist is how much voiced sound takes back an answer that was not heard
	// yet, or just began; Content, one that the caller was listening to. Words
	// do so sooner.
	Insist, Content time.Duration
	// Resume is how long after the caller's last sound a paused agent goes on,
	// where nothing was understood.
	Resume time.Duration
	// Merge is for how long after its first sound an answer of which no more
	// than MergeWords were heard is taken back by a caller who goes on.
	Merge      time.Duration
	MergeWords int
	// NoMerge has a caller who goes on begin a new turn.
	NoMerge bool
	// Speculations is how many answers are begun before a turn is committed,
	// at most; 0 for none.
	Speculations int
	// Held has the agent wait for a Floor before its first word.
	Held bool
	// Uninterruptible: the greeting is said to its end.
	Uninterruptible bool
	// Classifier is how long the external classifier is waited for; 0 where
	// there is none.
	Classifier time.Duration
	// Deaf is how long after the caller's last sound the recognizer's answer
	// is waited for; Final, where there are words to go on with.
	Deaf, Final time.Duration
	// Filler is how long after the caller's last sound the line may stay
	// silent before a filler is said.
	Filler time.Duration
	// GiveUp is how long after the commit an answer is waited for.
	GiveUp time.Duration
	// Wordless is how long the caller may keep the floor with sound that the
	// recognizer makes no words of.
	Wordless time.Duration
	// Keys is how long after a key the next one is waited for.
	Keys time.Duration
	// Idle is how long both sides may be silent before the agent asks for the
	// caller; after Nudges of those it leaves.
	Idle   time.Duration
	Nudges int
	// Failures in a row after which the agent leaves.
	Failures int
	// Language is what the caller speaks, BCP 47.
	Language string
}

// DefaultPolicy holds the times of production.
func DefaultPolicy() Policy {
	return Policy{
		Sustained:         160 * time.Millisecond,
		SustainedGreeting: 800 * time.Millisecond,
		SustainedReadBack: 400 * time.Millisecond,
		Insist:            480 * time.Millisecond,
		Content:           2 * time.Second,
		Resume:            700 * time.Millisecond,
		Merge:             600 * time.Millisecond,
		MergeWords:        3,
		Speculations:      3,
		Deaf:              2 * time.Second,
		Final:             900 * time.Millisecond,
		Filler:            2200 * time.Millisecond,
		GiveUp:            5500 * time.Millisecond,
		Wordless:          3 * time.Second,
		Keys:              1500 * time.Millisecond,
		Idle:              10 * time.Second,
		Nudges:            2,
		Failures:          3,
	}
}

const (
	dictation   = 700 * time.Millisecond  // more patience with what is dictated
	mostPatient = 2500 * time.Millisecond // of all
	perCutOff   = 20 * time.Millisecond   // more patience for each time the caller was cut off
	mostCutOffs = 4
	adapting    = 3                       // cut-offs after which the caller's own pauses count
	forgiven    = 2                       // turns without one that make up for a cut-off
	slowest     = 1000 * time.Millisecond // that the caller's own pauses ask for
	shortPause  = 200 * time.Millisecond  // pauses that tell of the caller
	longPause   = 3 * time.Second
	spokenOver  = 1500 * time.Millisecond // into an answer: its caller had not finished

	// ahead is how long before a late commit its answer is begun.
	ahead = 600 * time.Millisecond
	// growing is how long after a transcript grew it is waited for more.
	growing = 400 * time.Millisecond
	// patientDeaf is how much longer than Wordless a caller keeps the floor, to
	// whom a recognizer listens that tells no words before it is asked.
	patientDeaf = 5
	// returnTime is how late an echo may come back.
	returnTime = 400 * time.Millisecond
	// grace is how long after the commit nothing is said in place of an answer.
	grace = 800 * time.Millisecond
)

// patience is how long after the caller's last sound the turn is committed, by
// the probability that the caller has finished.
func patience(p float64) time.Duration {
	switch {
	case p >= 0.9:
		return 220 * time.Millisecond
	case p >= 0.6:
		return 400 * time.Millisecond
	case p >= 0.3:
		return 800 * time.Millisecond
	case p >= 0.2:
		return 1600 * time.Millisecond
	default:
		return 2400 * time.Millisecond
	}
}
