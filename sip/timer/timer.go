// Package timer decides how long a session lives without being refreshed, and
// who refreshes it (RFC 4028). It is pure.
package timer

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

const (
	// Default is the interval that we ask for (section 7.1).
	Default = 1800 * time.Second
	// Least is the shortest interval that anybody takes (section 4).
	Least = 90 * time.Second
	// longest bounds what a peer may ask for, which is then as good as none.
	longest = 24 * time.Hour
)

// A Refresher is the side that refreshes a session.
type Refresher string

// Refreshers, seen from the request that they stand in.
const (
	Unsaid Refresher = ""
	UAC    Refresher = "uac" // who sends the request
	UAS    Refresher = "uas" // who answers it
)

// An Interval is the value of a Session-Expires header.
type Interval struct {
	Length    time.Duration
	Refresher Refresher
}

// String is the value of the header.
func (i Interval) String() string {
	text := strconv.Itoa(int(i.Length / time.Second))
	if i.Refresher != Unsaid {
		text += ";refresher=" + string(i.Refresher)
	}
	return text
}

// Parse reads the value of a Session-Expires header.
func Parse(value string) (Interval, error) {
	number, params, _ := strings.Cut(value, ";")
	length, err := seconds(number)
	if err != nil {
		return Interval{}, fmt.Errorf("session interval: %w", err)
	}
	i := Interval{Length: length}
	for p := range strings.SplitSeq(params, ";") {
		name, v, _ := strings.Cut(p, "=")
		if !strings.EqualFold(strings.TrimSpace(name), "refresher") {
			continue
		}
		switch r := Refresher(strings.ToLower(strings.TrimSpace(v))); r {
		case UAC, UAS:
			i.Refresher = r
		default:
			return Interval{}, errors.New("session interval: refresher is neither uac nor uas")
		}
	}
	return i, nil
}

// ParseLeast reads the value of a Min-SE header.
func ParseLeast(value string) (time.Duration, error) {
	number, _, _ := strings.Cut(value, ";")
	least, err := seconds(number)
	if err != nil {
		return 0, fmt.Errorf("least session interval: %w", err)
	}
	return least, nil
}

func seconds(text string) (time.Duration, error) {
	n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 32)
	if err != nil {
		return 0, errors.New("not a number of seconds")
	}
	return min(time.Duration(n)*time.Second, longest), nil
}

// A Term is what two sides agreed on.
type Term struct {
	Length time.Duration // 0: the session lives until it is ended
	Ours   bool          // we refresh it
}

// Refresh is how long after its last refresh a session is to be refreshed by
// us (section 7.2).
func (t Term) Refresh() time.Duration { return t.Length / 2 }

// Expiry is how long after its last refresh a session is over, unless the peer
// refreshes it: a third before its end, 32 seconds at most (section 10). Where
// the refreshing is ours, it is the full length.
func (t Term) Expiry() time.Duration {
	if t.Ours {
		return t.Length
	}
	return t.Length - min(32*time.Second, t.Length/3)
}

// Answered is the term of a session whose request was ours, from the
// Session-Expires of the 2xx: header is nil where it has none. least is what
// the request's Min-SE said, below which no peer may go.
func Answered(header *Interval, least time.Duration) Term {
	if header == nil {
		return Term{}
	}
	return Term{Length: max(header.Length, least), Ours: header.Refresher != UAS}
}

// Answer decides on a request of the peer: header is its Session-Expires, nil
// where it has none; supported is whether it knows timers. ok is false where
// the interval is shorter than least, which a 422 with Min-SE says. The interval
// returned goes into the 2xx, unless its Length is 0.
func Answer(header *Interval, supported bool, least time.Duration) (i Interval, t Term, ok bool) {
	switch {
	case header == nil:
		return Interval{}, Term{}, true
	case header.Length < least && supported:
		return Interval{}, Term{}, false
	}
	i = *header
	i.Length = max(i.Length, least) // a proxy asked on behalf of a peer that knows no 422
	if i.Refresher == Unsaid || !supported {
		i.Refresher = UAS // section 9: we, who answer, where the peer cannot
		if supported {
			i.Refresher = UAC
		}
	}
	return i, Term{Length: i.Length, Ours: i.Refresher == UAS}, true
}
