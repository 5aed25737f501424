package dialog

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

const (
	// DefaultSessionInterval is the interval we request (section 7.1).
	DefaultSessionInterval = 1800 * time.Second
	// MinSessionInterval is the shortest interval allowed (section 4).
	MinSessionInterval = 90 * time.Second
	// maxSessionInterval bounds parsed intervals; longer ones make no difference.
	maxSessionInterval = 24 * time.Hour
)

// A Refresher is the side that refreshes the session.
type Refresher string

// Refreshers, seen from the request.
const (
	Unspecified Refresher = ""
	UAC         Refresher = "uac" // the sender of the request
	UAS         Refresher = "uas" // the sender of the response
)

// SessionExpires is the value of a Session-Expires header.
type SessionExpires struct {
	Length    time.Duration
	Refresher Refresher
}

// String returns the header value.
func (i SessionExpires) String() string {
	text := strconv.Itoa(int(i.Length / time.Second))
	if i.Refresher != Unspecified {
		text += ";refresher=" + string(i.Refresher)
	}
	return text
}

// ParseSessionExpires reads the value of a Session-Expires header.
func ParseSessionExpires(value string) (SessionExpires, error) {
	number, params, _ := strings.Cut(value, ";")
	length, err := seconds(number)
	if err != nil {
		return SessionExpires{}, fmt.Errorf("session interval: %w", err)
	}
	i := SessionExpires{Length: length}
	for p := range strings.SplitSeq(params, ";") {
		name, v, _ := strings.Cut(p, "=")
		if !strings.EqualFold(strings.TrimSpace(name), "refresher") {
			continue
		}
		switch r := Refresher(strings.ToLower(strings.TrimSpace(v))); r {
		case UAC, UAS:
			i.Refresher = r
		default:
			return SessionExpires{}, errors.New("session interval: refresher is neither uac nor uas")
		}
	}
	return i, nil
}

// ParseMinSE reads the value of a Min-SE header.
func ParseMinSE(value string) (time.Duration, error) {
	number, _, _ := strings.Cut(value, ";")
	least, err := seconds(number)
	if err != nil {
		return 0, fmt.Errorf("min-se: %w", err)
	}
	return least, nil
}

func seconds(text string) (time.Duration, error) {
	n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 32)
	if err != nil {
		return 0, errors.New("not a number of seconds")
	}
	return min(time.Duration(n)*time.Second, maxSessionInterval), nil
}

// A RefreshSchedule is the negotiated session timer.
type RefreshSchedule struct {
	Length      time.Duration // 0 means that there is no timer
	IsRefresher bool          // we refresh the session
}

// RefreshAfter is the time from the last refresh to our next (section 7.2).
func (t RefreshSchedule) RefreshAfter() time.Duration { return t.Length / 2 }

// ExpireAfter is the time from the last refresh until the session is over: a
// third before its end, but at most 32 s (section 10). If we refresh, it is the
// full length.
func (t RefreshSchedule) ExpireAfter() time.Duration {
	if t.IsRefresher {
		return t.Length
	}
	return t.Length - min(32*time.Second, t.Length/3)
}

// ScheduleFromResponse returns the schedule after a 2xx to our request. header is its
// Session-Expires, or nil. least is the Min-SE of the request.
func ScheduleFromResponse(header *SessionExpires, least time.Duration) RefreshSchedule {
	if header == nil {
		return RefreshSchedule{}
	}
	return RefreshSchedule{Length: max(header.Length, least), IsRefresher: header.Refresher != UAS}
}

// NegotiateTimer answers a peer's request. header is its Session-Expires, or nil;
// supported reports that the peer supports timers. ok is false if a 422 with
// Min-SE is needed. The returned interval goes into the 2xx unless its Length is
// 0.
func NegotiateTimer(header *SessionExpires, supported bool, least time.Duration) (i SessionExpires, t RefreshSchedule, ok bool) {
	switch {
	case header == nil:
		return SessionExpires{}, RefreshSchedule{}, true
	case header.Length < least && supported:
		return SessionExpires{}, RefreshSchedule{}, false
	}
	i = *header
	i.Length = max(i.Length, least) // a proxy may have added the header for a peer that does not understand 422
	if i.Refresher == Unspecified || !supported {
		i.Refresher = UAS // section 9: we refresh if the peer cannot
		if supported {
			i.Refresher = UAC
		}
	}
	return i, RefreshSchedule{Length: i.Length, IsRefresher: i.Refresher == UAS}, true
}
