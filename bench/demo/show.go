package demo

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"time"
)

// A Client calls the HTTP API.
type Client struct{ URL, Key string }

// Do calls the API and decodes the response.
func (c *Client) Do(ctx context.Context, method, path string, body, answer any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, c.URL+path, bytes.NewReader(b))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+c.Key)
	req.Header.Set("Content-Type", "application/json")
	if method == http.MethodPost {
		req.Header.Set("Idempotency-Key", rand.Text())
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, got)
	}
	return json.Unmarshal(got, answer)
}

// A Call holds the displayed fields of a call.
type Call struct {
	CallID     string  `json:"call_id"`
	Status     string  `json:"status"`
	CreatedAt  float64 `json:"created_at"`
	RingingAt  float64 `json:"ringing_at"`
	AnsweredAt float64 `json:"answered_at"`
	EndedAt    float64 `json:"ended_at"`
	Reason     string  `json:"disconnection_reason"`
	Recording  string  `json:"recording_status"`
	Analysis   struct {
		Summary string `json:"summary"`
	} `json:"call_analysis"`
	AnalysisStatus string `json:"analysis_status"`
	Transcript     []struct {
		Role  string  `json:"role"`
		Text  string  `json:"text"`
		Start float64 `json:"start_s"`
		Turn  int     `json:"turn"`
	} `json:"transcript"`
}

// A Turn holds the displayed fields of a turn.
type Turn struct {
	Turn    int            `json:"turn"`
	Metrics map[string]any `json:"metrics"`
}

// A Show prints a call while it happens.
type Show struct {
	Out io.Writer
	// Color enables ANSI colors.
	Color bool

	status string
	lines  int
	turns  int // number of turns that were printed
	spoken int // number of the last turn whose answer was printed
}

func (s *Show) print(format string, args ...any) { fmt.Fprintf(s.Out, format, args...) }

// paint colors text if Color is set.
func (s *Show) paint(code, text string) string {
	if !s.Color {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Title prints the heading.
func (s *Show) Title(dir string) {
	s.print("\n  %s  one real phone call on this machine, over SIP and RTP\n\n", s.paint("1", "parley demo"))
	s.print("  data      %s\n", dir)
}

// Participants prints the participants.
func (s *Show) Participants(carrier, url string) {
	s.print("  carrier   sip:%s (a scripted callee)\n", carrier)
	s.print("  api       %s\n\n", url)
}

// Call places the call and prints it until its end.
func (s *Show) Call(ctx context.Context, c *Client, receiver *Receiver, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	var call Call
	err := c.Do(ctx, http.MethodPost, "/v1/calls/phone", map[string]any{"agent_id": "demo", "to_number": Number}, &call)
	if err != nil {
		return err
	}
	s.print("  %s  POST /v1/calls/phone → 202 %s\n", s.paint("2", " 0.00"), call.CallID)
	s.spoken = -1
	for tick := time.NewTicker(50 * time.Millisecond); ; {
		if err := s.look(ctx, c, &call); err != nil {
			return err
		}
		if call.Status == "ended" || call.Status == "failed" {
			tick.Stop()
			break
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%w: status %s", ErrUnfinished, call.Status)
		}
	}
	if call.Status != "ended" || s.turns < 4 {
		return fmt.Errorf("%w: %s, %s, %d turns", ErrUnfinished, call.Status, call.Reason, s.turns)
	}
	s.print("\n")
	for analyzed := false; !analyzed; {
		select {
		case h := <-receiver.hooks:
			if !h.verified {
				return fmt.Errorf("%w: the webhook's signature is wrong", ErrUnfinished)
			}
			s.print("  webhook   %s delivered to http://%s/hook, signature verified (%s)\n", h.kind, receiver.Addr(), h.id)
			analyzed = h.kind == "call_analyzed"
		case <-ctx.Done():
			return fmt.Errorf("%w: no webhook was received", ErrUnfinished)
		}
	}
	if err := c.Do(ctx, http.MethodGet, "/v1/calls/"+call.CallID, nil, &call); err != nil {
		return err
	}
	s.print("  analysis  %s: %s\n", call.AnalysisStatus, readable(call.Analysis.Summary))
	s.print("  recording %s\n            stereo: the caller left, the agent right\n\n",
		filepath.Join(dir, "bucket", "recordings", call.CallID+".wav"))
	return nil
}

// look reads the call and prints what is new.
func (s *Show) look(ctx context.Context, c *Client, call *Call) error {
	if err := c.Do(ctx, http.MethodGet, "/v1/calls/"+call.CallID, nil, call); err != nil {
		return err
	}
	var turns []Turn
	if err := c.Do(ctx, http.MethodGet, "/v1/calls/"+call.CallID+"/turns", nil, &turns); err != nil {
		return err
	}
	over := call.Status == "ended" || call.Status == "failed"
	if call.RingingAt > 0 && s.status == "" {
		s.status = "ringing"
		s.print("  %s  ringing\n", s.at(call.RingingAt-call.CreatedAt))
	}
	if call.AnsweredAt > 0 && s.status == "ringing" {
		s.status = "answered"
		s.print("  %s  answered\n", s.at(call.AnsweredAt-call.CreatedAt))
	}
	for ; s.lines < len(call.Transcript); s.lines++ {
		l := call.Transcript[s.lines]
		s.printTurns(turns)
		who := s.paint("36", "caller")
		if l.Role == "agent" {
			who, s.spoken = s.paint("33", "agent "), l.Turn
		}
		s.print("  %s  %s  %s\n", s.at(call.AnsweredAt-call.CreatedAt+l.Start), who, readable(l.Text))
	}
	s.printTurns(turns)
	if over {
		for ; s.turns < len(turns); s.turns++ {
			s.turn(turns[s.turns])
		}
		s.print("  %s  %s: %s\n", s.at(call.EndedAt-call.CreatedAt), call.Status, call.Reason)
	}
	return nil
}

// readable removes the "~" with which the fake recognizer marks damaged audio, and a letter that
// is repeated after it.
func readable(text string) string {
	var b strings.Builder
	last, marked := rune(0), false
	for _, c := range text {
		if c == '~' {
			marked = true
			continue
		}
		if !marked || c != last {
			b.WriteRune(c)
		}
		last, marked = c, false
	}
	return b.String()
}

// printTurns prints the phases of each turn whose answer has been printed.
func (s *Show) printTurns(turns []Turn) {
	for ; s.turns < len(turns) && turns[s.turns].Turn <= s.spoken; s.turns++ {
		s.turn(turns[s.turns])
	}
}

func (s *Show) at(seconds float64) string { return s.paint("2", fmt.Sprintf("%5.2f", seconds)) }

// phases returns the displayed phases of a turn and their colors.
func phases() []struct{ key, name, color string } {
	return []struct{ key, name, color string }{
		{"jitter_ms", "jitter", "37"},
		{"vad_ms", "vad", "34"},
		{"asr_ms", "asr", "36"},
		{"eou_wait_ms", "eou", "35"},
		{"llm_ms", "llm", "32"},
		{"tts_ms", "tts", "33"},
		{"out_ms", "out", "31"},
	}
}

// turn prints the phases of a turn as a waterfall chart. One cell is 20 ms.
func (s *Show) turn(t Turn) {
	total, ok := t.Metrics["turn_ms"].(float64)
	if !ok {
		return
	}
	var parts []string
	var bar strings.Builder
	cells, sum := 0, 0.0
	for _, p := range phases() {
		ms, ok := t.Metrics[p.key].(float64)
		if !ok {
			continue
		}
		sum += ms
		parts = append(parts, s.paint(p.color, fmt.Sprintf("%s %.0f", p.name, ms)))
		upTo := int(sum/20 + 0.5)
		bar.WriteString(s.paint(p.color, strings.Repeat("█", max(0, upTo-cells))))
		cells = max(cells, upTo)
	}
	s.print("         %s turn %d  %s = %s\n", s.paint("2", "└"), t.Turn, strings.Join(parts, " · "),
		s.paint("1", fmt.Sprintf("%.0f ms", total)))
	s.print("           %s\n", bar.String())
}

// Pages holds the web pages of the service other than the API.
type Pages struct {
	Talk               bool
	Notice             []string // says which parts of the agents of /talk are real
	Operator, Password string   // login of the dashboard; empty without a dashboard
}

// NextSteps prints what the user can try next. p.Talk means that calls from a browser are possible.
func (s *Show) NextSteps(url string, p Pages, metrics, key string) {
	s.print("  The server keeps running until you press Ctrl-C:\n\n")
	if p.Password != "" {
		s.print("  dashboard %s/dashboard\n            sign in as %s with the password %s\n", url, p.Operator, p.Password)
	}
	if p.Talk {
		s.print("  talk      %s/talk (talk with an agent in the browser, by voice or by text)\n", url)
		for _, line := range p.Notice {
			s.print("            %s\n", line)
		}
	}
	s.print("  guide     %s/docs/guide\n", url)
	s.print("  explorer  %s/docs\n", url)
	s.print("  metrics   %s\n", metrics)
	s.print("  key       %s\n\n", key)
	s.print("  Place another call:\n\n")
	s.print("  curl -s %s/v1/calls/phone \\\n    -H 'Authorization: Bearer %s' \\\n    -H 'Content-Type: application/json' \\\n", url, key)
	s.print("    -d '{\"agent_id\":\"demo\",\"to_number\":\"%s\"}'\n\n", Number)
}
