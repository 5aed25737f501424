// Package callview converts calls to the JSON form of the API and the webhooks. It also prints the SIP messages of a
// call.
package callview

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"time"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/pricing"
	"github.com/parley-voice/parley/pipeline"
)

// View converts calls to their form in the API.
type View struct {
	// Link returns the URL of a call's recording. The URL is valid for at least a week. If Link is nil, calls have no
	// recording URL.
	Link func(callID, key string) string
}

// Summary is a call as an item of a list. Every key is always present.
type Summary struct {
	CallID             string                     `json:"call_id"`
	CallType           string                     `json:"call_type"`
	Direction          string                     `json:"direction"`
	Status             control.Status             `json:"status"`
	AgentID            string                     `json:"agent_id"`
	AgentVersion       int                        `json:"agent_version"`
	ToNumber           string                     `json:"to_number"`
	FromNumber         string                     `json:"from_number"`
	TrunkID            *string                    `json:"trunk_id"`
	RouteID            *string                    `json:"route_id"`
	CampaignID         *string                    `json:"campaign_id"`
	ContactID          *string                    `json:"contact_id"`
	Attempt            int                        `json:"attempt"`
	Metadata           map[string]any             `json:"metadata"`
	CreatedAt          Epoch                      `json:"created_at" nullable:"false"`
	DialedAt           Epoch                      `json:"dialed_at"`
	RingingAt          Epoch                      `json:"ringing_at"`
	AnsweredAt         Epoch                      `json:"answered_at"`
	EndedAt            Epoch                      `json:"ended_at"`
	DurationS          *float64                   `json:"duration_s"`
	RingS              *float64                   `json:"ring_s"`
	AnsweredBy         *string                    `json:"answered_by"`
	DisconnectionCause *control.Reason            `json:"disconnection_reason"`
	HangupBy           *control.Side              `json:"hangup_by"`
	SIPStatus          *int                       `json:"sip_status"`
	SIPReason          *string                    `json:"sip_reason"`
	Transfer           JSON[control.Transfer]     `json:"transfer"`
	Quality            JSON[control.AudioQuality] `json:"quality"`
	RecordingURL       *string                    `json:"recording_url"`
	RecordingChannels  int                        `json:"recording_channels"`
	RecordingStatus    control.RecordingStatus    `json:"recording_status"`
	RecordingTruncated bool                       `json:"recording_truncated"`
	CallAnalysis       JSON[map[string]any]       `json:"call_analysis"`
	AnalysisStatus     string                     `json:"analysis_status"`
	AnalysisError      *string                    `json:"analysis_error"`
}

// Call is a call with all its details.
type Call struct {
	Summary
	AMD        JSON[control.AMD]     `json:"amd"`
	Variables  map[string]any        `json:"variables"`
	Transcript []Line                `json:"transcript"`
	Latency    Latency               `json:"latency"`
	Usage      JSON[[]pricing.Usage] `json:"usage"` // use of the providers during the call
	Cost       JSON[pricing.Cost]    `json:"cost"`
}

// Line is one line of a transcript.
type Line struct {
	Role        pipeline.Role `json:"role"`
	Text        string        `json:"text"`
	StartS      float64       `json:"start_s"`
	EndS        float64       `json:"end_s"`
	Turn        int           `json:"turn"`
	Interrupted bool          `json:"interrupted"`
	Words       []Word        `json:"words,omitempty"`
}

// Word is one word of a line.
type Word struct {
	Text   string  `json:"text"`
	StartS float64 `json:"start_s"`
	EndS   float64 `json:"end_s"`
}

// JSON is the JSON of a T as the database stores it. Empty JSON is written as null.
type JSON[T any] json.RawMessage

// MarshalJSON implements json.Marshaler.
func (j JSON[T]) MarshalJSON() ([]byte, error) {
	if len(j) == 0 {
		return []byte("null"), nil
	}
	return j, nil
}

// Content returns the type T, for the schema of responses.
func (JSON[T]) Content() reflect.Type { return reflect.TypeFor[T]() }

// Epoch is a time in seconds since 1970, rounded to milliseconds. The zero time is null in JSON.
type Epoch time.Time

// MarshalJSON implements json.Marshaler. It writes whole seconds without a fraction.
func (e Epoch) MarshalJSON() ([]byte, error) {
	t := time.Time(e)
	if t.IsZero() {
		return []byte("null"), nil
	}
	return json.Marshal(float64(t.UnixMilli()) / 1000)
}

// Summary returns a call as an item of a list.
func (v View) Summary(c control.Call) Summary {
	s := Summary{
		CallID: c.ID, CallType: c.Type, Direction: "outbound", Status: c.Status,
		AgentID: c.AgentName, AgentVersion: c.AgentVersion, ToNumber: e164(c.To), FromNumber: c.From,
		TrunkID: orNull(c.TrunkID), RouteID: orNull(c.RouteID), CampaignID: orNull(c.CampaignID), ContactID: orNull(c.ContactID),
		Attempt: c.Attempt, Metadata: orEmpty(c.Metadata),
		CreatedAt: Epoch(c.CreatedAt), DialedAt: Epoch(c.DialedAt), RingingAt: Epoch(c.RingingAt),
		AnsweredAt: Epoch(c.AnsweredAt), EndedAt: Epoch(c.EndedAt),
		DurationS: between(c.AnsweredAt, c.EndedAt), RingS: between(c.RingingAt, ringEnd(c)),
		AnsweredBy: orNull(c.AnsweredBy), DisconnectionCause: orNull(c.Reason), HangupBy: orNull(c.HangupBy),
		SIPStatus: orNull(c.SIPStatus), SIPReason: orNull(c.SIPReason),
		Transfer: JSON[control.Transfer](c.Transfer), Quality: JSON[control.AudioQuality](c.Quality),
		RecordingChannels: 2, RecordingStatus: c.RecordingStatus, RecordingTruncated: c.Truncated,
		CallAnalysis: JSON[map[string]any](c.Analysis), AnalysisStatus: c.AnalysisStatus, AnalysisError: orNull(c.AnalysisError),
	}
	if c.RecordingStatus == control.RecordingReady && v.Link != nil {
		s.RecordingURL = orNull(v.Link(c.ID, c.RecordingKey))
	}
	return s
}

// Call returns a call with all its details and its transcript.
func (v View) Call(c control.Call, w control.Transcript) Call {
	out := Call{
		Summary: v.Summary(c), AMD: JSON[control.AMD](c.AMD), Variables: orEmpty(c.Variables),
		Transcript: make([]Line, len(w.Lines)), Latency: latency(w.Turns),
		Usage: JSON[[]pricing.Usage](c.Usage), Cost: JSON[pricing.Cost](c.Cost),
	}
	for i, l := range w.Lines {
		out.Transcript[i] = Line{
			Role: l.Role, Text: l.Text, StartS: seconds(l.Start), EndS: seconds(l.End),
			Turn: l.Turn, Interrupted: l.Interrupted,
		}
		for _, word := range l.Words {
			out.Transcript[i].Words = append(out.Transcript[i].Words, Word{word.Text, seconds(word.Start), seconds(word.End)})
		}
	}
	return out
}

// e164 adds a + to international numbers: 11 to 15 digits that start with neither 0 nor 8.
func e164(digits string) string {
	if len(digits) >= 11 && len(digits) <= 15 && digits[0] != '0' && !strings.HasPrefix(digits, "8") {
		return "+" + digits
	}
	return digits
}

// ringEnd returns the time at which ringing ended.
func ringEnd(c control.Call) time.Time {
	if c.AnsweredAt.IsZero() {
		return c.EndedAt
	}
	return c.AnsweredAt
}

func between(from, to time.Time) *float64 {
	if from.IsZero() || to.IsZero() {
		return nil
	}
	s := seconds(max(to.Sub(from), 0))
	return &s
}

func seconds(d time.Duration) float64 { return math.Round(d.Seconds()*1000) / 1000 }

func orNull[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

func orEmpty(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return m
}
