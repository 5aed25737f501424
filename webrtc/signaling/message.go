package signaling

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pion/webrtc/v4"

	"github.com/parley-voice/parley/webrtc/ice"
)

// A Code is the reason for a refusal.
type Code string

// Codes.
const (
	TokenInvalid  Code = "token_invalid"
	TokenExpired  Code = "token_expired"
	TokenUsed     Code = "token_used"
	CallEnded     Code = "call_ended"
	WrongCall     Code = "wrong_call"
	ResumeUnknown Code = "resume_unknown"
	SDPInvalid    Code = "sdp_invalid"
	BadMessage    Code = "message_invalid"
	TooMany       Code = "too_many_messages"
	JoinTimeout   Code = "join_timeout"
	Unavailable   Code = "unavailable"
)

// A RefusedError is an error that the browser receives.
type RefusedError struct {
	Code    Code
	Message string
}

// Error implements error.
func (r *RefusedError) Error() string { return string(r.Code) + ": " + r.Message }

type request struct {
	Type      string          `json:"type"`
	Token     string          `json:"token"`
	Resume    string          `json:"resume"`
	CallID    string          `json:"call_id"`
	SDP       string          `json:"sdp"`
	Candidate json.RawMessage `json:"candidate"`
	Text      string          `json:"text"`
}

// MaxText is the maximum number of characters of one text message.
const MaxText = 1000

// words returns the words of a text message, separated by single spaces.
func (r request) words() (string, error) {
	text := strings.Join(strings.Fields(r.Text), " ")
	if n := utf8.RuneCountInString(text); n == 0 || n > MaxText {
		return "", &RefusedError{BadMessage, fmt.Sprintf("text must have 1 to %d characters; it has %d", MaxText, n)}
	}
	if strings.ContainsFunc(text, unicode.IsControl) {
		return "", &RefusedError{BadMessage, "text must not contain control characters"}
	}
	return text, nil
}

// candidate parses the candidate of a request. nil means that no more candidates follow.
func (r request) candidate() (*webrtc.ICECandidateInit, error) {
	if len(r.Candidate) == 0 || string(r.Candidate) == "null" {
		return nil, nil //nolint:nilnil // nil is the last
	}
	c := &webrtc.ICECandidateInit{}
	if err := json.Unmarshal(r.Candidate, c); err != nil {
		return nil, err
	}
	return c, nil
}

// Messages to a browser.
type (
	answerMessage struct {
		Type       string       `json:"type"`
		SDP        string       `json:"sdp"`
		CallID     string       `json:"call_id"`
		Resume     string       `json:"resume"`
		ICEServers []ice.Server `json:"ice_servers"`
	}
	readyMessage struct {
		Type string `json:"type"`
	}
	stateMessage struct {
		Type  string `json:"type"`
		Event string `json:"event"`
		State string `json:"state"`
	}
	transcriptMessage struct {
		Type  string `json:"type"`
		Event string `json:"event"`
		Role  string `json:"role"`
		Text  string `json:"text"`
		Final bool   `json:"final"`
		Turn  int    `json:"turn"`
	}
	turnMessage struct {
		Type  string          `json:"type"`
		Event string          `json:"event"`
		Turn  json.RawMessage `json:"turn"`
	}
	byeMessage struct {
		Type   string `json:"type"`
		Reason string `json:"reason"`
	}
	errorMessage struct {
		Type    string `json:"type"`
		Code    Code   `json:"code"`
		Message string `json:"message"`
	}
)
