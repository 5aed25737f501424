package turn

import "time"

// Policy sets the times and limits of the machine. Start from DefaultPolicy: the zero
// value is not usable. The field names are part of the turn log.
type Policy struct {
	// Sustained is how long the caller must speak before the agent pauses its speech.
	// SustainedGreeting applies during the agent's first words, SustainedReadBack while it reads
	// digits back.
	Sustained, SustainedGreeting, SustainedReadBack time.Duration
	// Insist is the duration of voiced sound that retracts an answer that is not audible yet or has just begun.
	// Content is the duration that stops any other speech. Recognized words may do both sooner.
	Insist, Content time.Duration
	// Resume is how long after the caller's last sound a paused agent continues
	// if no words were recognized.
	Resume time.Duration
	// Merge is how long after its first sound an answer can be retracted, if the
	// caller heard at most MergeWords of it.
	Merge      time.Duration
	MergeWords int
	// NoMerge disables retracting: a caller who continues begins a new turn.
	NoMerge bool
	// Speculations is the maximum number of answers prepared before a commit; 0
	// disables it.
	Speculations int
	// Held makes the agent wait for a Floor before its first word.
	Held bool
	// Uninterruptible plays the greeting to its end.
	Uninterruptible bool
	// Waits are the waits for the end of a turn; the zero value means BalancedWaits.
	Waits Waits `json:",omitzero"`
	// Classifier is the longest wait for the external classifier; 0 disables it.
	Classifier time.Duration
	// Deaf is the longest wait for the recognizer's answer after the caller's last sound. Final
	// replaces it if there already are words.
	Deaf, Final time.Duration
	// Filler is how long after the caller's last sound a filler is played.
	Filler time.Duration
	// GiveUp is the longest wait for an answer after the commit.
	GiveUp time.Duration
	// Wordless is how long the caller may keep the floor with sound in which no words are
	// recognized.
	Wordless time.Duration
	// Keys is the longest wait for the next key.
	Keys time.Duration
	// Idle is how long both sides may be silent before the agent asks whether the caller is there.
	// After Nudges such questions the agent leaves.
	Idle   time.Duration
	Nudges int
	// Failures is the number of consecutive failures after which the agent leaves.
	Failures int
	// Language is the caller's language, BCP 47.
	Language string
}

// DefaultPolicy returns the policy used in production.
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
	dictation   = 700 * time.Millisecond  // extra wait for dictated text
	mostPatient = 2500 * time.Millisecond // longest wait
	mostCutOffs = 2                       // number of cut-offs that count
	forgiven    = 2                       // number of replies without a cut-off after which one cut-off no longer counts
	slowest     = 660 * time.Millisecond  // longest wait that the caller's own pauses can cause
	shortPause  = 200 * time.Millisecond  // shortest pause that counts for the mean of the caller's pauses
	longPause   = 3 * time.Second         // longest pause that counts
	spokenOver  = 800 * time.Millisecond  // speech within this time after the answer began is a cut-off; later speech is an interruption

	// ahead is how long before the end of a long wait the answer is prepared.
	ahead = 600 * time.Millisecond
	// growing is how long after its last change a transcript may still grow.
	growing = 400 * time.Millisecond
	// patientDeaf multiplies Wordless for a recognizer that sends only final text.
	patientDeaf = 5
	// returnTime is the longest delay of an echo.
	returnTime = 400 * time.Millisecond
	// grace is the minimum time from the commit to a filler.
	grace = 800 * time.Millisecond
	// earlyAnswer is how long before the end of the agent's question the caller may already answer it.
	earlyAnswer = 1500 * time.Millisecond
)

// Waits holds how long after the caller's last sound the turn is committed, by the probability that the caller has
// finished: at least 0.9, 0.6, 0.3 and 0.2, and less.
type Waits [5]time.Duration

// QuickWaits returns waits for callers who seldom pause after a complete clause.
func QuickWaits() Waits { return waitsOf(180, 250, 600, 1600, 2400) }

// BalancedWaits returns the default waits.
func BalancedWaits() Waits { return waitsOf(220, 400, 800, 1600, 2400) }

// CarefulWaits returns waits for callers who think aloud.
func CarefulWaits() Waits { return waitsOf(350, 900, 1400, 2000, 2500) }

func waitsOf(milliseconds ...int) (w Waits) {
	for i, ms := range milliseconds {
		w[i] = time.Duration(ms) * time.Millisecond
	}
	return w
}

// at returns the wait for a probability.
func (w Waits) at(p float64) time.Duration {
	if w == (Waits{}) {
		w = BalancedWaits()
	}
	for i, least := range [...]float64{0.9, 0.6, 0.3, 0.2} {
		if p >= least {
			return w[i]
		}
	}
	return w[len(w)-1]
}
