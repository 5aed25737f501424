package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
)

// A subject is one client under test.
type subject struct {
	pipeline.Model
	signer  string            // model that signs its tool calls; empty if none does
	options pipeline.Options  // options that make the model sign
	paths   map[string]string // path of each option in the JSON of a request
	refuses bool              // the protocol transmits the text of a model's refusal
}

// subjects returns the clients under test. They send their requests by client.
func subjects(client *http.Client) map[string]subject {
	chat := map[string]string{"temperature": "temperature", "max_tokens": "max_tokens", "reasoning_effort": "reasoning_effort", "top_p": "top_p"}
	return map[string]subject{
		"openai": {
			Model:  OpenAI{URL: "http://fake/v1", Key: "canary-key", Client: client, Parameters: new(ParameterCache)},
			signer: "gemini-4", paths: chat, refuses: true,
		},
		"azure": {
			Model: OpenAI{
				URL: "http://fake/?x=1", Key: "canary-key", KeyHeader: "api-key", APIVersion: "2024-10-21",
				Client: client, Parameters: new(ParameterCache),
			},
			signer: "gemini-4", paths: chat, refuses: true,
		},
		"responses": {
			Model:  Responses{URL: "http://fake/v1", Key: "canary-key", Client: client, Parameters: new(ParameterCache)},
			signer: "gpt-6-luna", options: pipeline.Options{ReasoningEffort: "low"}, refuses: true,
			paths: map[string]string{
				"temperature": "temperature", "max_tokens": "max_output_tokens", "reasoning_effort": "reasoning.effort", "top_p": "top_p",
			},
		},
		"gemini": {
			Model:  Gemini{URL: "http://fake/v1beta?x=1", Key: "canary-key", Client: client, Parameters: new(ParameterCache)},
			signer: "gemini-3.8-flash",
			paths: map[string]string{
				"temperature": "generationConfig.temperature", "max_tokens": "generationConfig.maxOutputTokens",
				"reasoning_effort": "generationConfig.thinkingConfig.thinkingLevel", "top_p": "generationConfig.topP",
			},
		},
		"anthropic": {
			Model:  Anthropic{URL: "http://fake", Key: "canary-key", Client: client, Parameters: new(ParameterCache)},
			signer: "claude-haiku-5-5", options: pipeline.Options{ReasoningEffort: "low"},
			paths: map[string]string{
				"temperature": "temperature", "max_tokens": "max_tokens", "reasoning_effort": "output_config.effort", "top_p": "top_p",
			},
		},
	}
}

// A lab is a client under test. It records the requests that the client sends.
type lab struct {
	subject
	dials atomic.Int32
	mu    sync.Mutex
	sent  []sentRequest
}

type sentRequest struct {
	*http.Request
	body object
}

func (s sentRequest) text() string { return fmt.Sprint(s.body) }

func (l *lab) requests() []sentRequest {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.sent)
}

type trip func(*http.Request) (*http.Response, error)

func (f trip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// each runs test once per client, each time in a synctest bubble.
func each(t *testing.T, script fakeprovider.Script, test func(t *testing.T, l *lab)) {
	t.Helper()
	eachOf(t, script, slices.Sorted(maps.Keys(subjects(nil))), test)
}

func eachOf(t *testing.T, script fakeprovider.Script, names []string, test func(t *testing.T, l *lab)) {
	t.Helper()
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := fakeprovider.NewNet()
				fakes := fakeprovider.Serve(n, script)
				defer func() { _ = fakes.Close() }()
				l := &lab{}
				wire := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
					l.dials.Add(1)
					return n.Dial(ctx, network, addr)
				}}
				defer wire.CloseIdleConnections()
				l.subject = subjects(&http.Client{Transport: trip(func(r *http.Request) (*http.Response, error) {
					b, err := io.ReadAll(r.Body)
					one := sentRequest{Request: r, body: object{}}
					if err = errors.Join(err, json.Unmarshal(b, &one.body)); err != nil {
						return nil, err
					}
					l.mu.Lock()
					l.sent = append(l.sent, one)
					l.mu.Unlock()
					r = r.Clone(r.Context())
					r.Body = io.NopCloser(strings.NewReader(string(b)))
					return wire.RoundTrip(r)
				})})[name]
				test(t, l)
			})
		})
	}
}

type talk struct {
	text  string
	calls []pipeline.ToolCall
	usage []pipeline.Usage
	took  time.Duration // time until the first delta
	err   error
}

func ask(ctx context.Context, m pipeline.Model, p pipeline.Prompt) (got talk) {
	began := time.Now()
	for d, err := range m.Reply(ctx, p) {
		if got.took == 0 {
			got.took = time.Since(began)
		}
		if err != nil {
			got.err = err
			return got
		}
		got.text += d.Text
		got.calls = append(got.calls, d.Calls...)
		if d.Usage != nil {
			got.usage = append(got.usage, *d.Usage)
		}
	}
	return got
}

func hello() pipeline.Prompt {
	return pipeline.Prompt{
		Instructions: "be very kind",
		Messages: []pipeline.Message{
			{Role: pipeline.RoleCaller, Text: "hi"},
			{Role: pipeline.RoleAgent, Text: "good day"},
			{Role: pipeline.RoleNote, Text: "the caller pressed 5"},
		},
	}
}

func weather() pipeline.Tool {
	return pipeline.Tool{Name: "weather", Description: "tells it", Parameters: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}}}`)}
}

func TestAnswers(t *testing.T) {
	each(t, fakeprovider.Typical(), func(t *testing.T, l *lab) {
		t.Helper()
		got := ask(t.Context(), l, hello())
		want := pipeline.Usage{PromptTokens: 10, CompletionTokens: 6, CachedTokens: 3}
		if got.text != "you said [the caller pressed 5]" || got.err != nil || !slices.Equal(got.usage, []pipeline.Usage{want}) || got.calls != nil {
			t.Errorf("%+v", got)
		}
		if got.took < 200*time.Millisecond || got.took > 250*time.Millisecond {
			t.Errorf("first text after %v", got.took)
		}
	})
}

// TestConnection checks that successive answers use the same connection.
func TestConnection(t *testing.T) {
	each(t, fakeprovider.Typical(), func(t *testing.T, l *lab) {
		t.Helper()
		for range 3 {
			if got := ask(t.Context(), l, hello()); got.err != nil {
				t.Errorf("%+v", got)
			}
		}
		if n := l.dials.Load(); n != 1 {
			t.Errorf("%d connections", n)
		}
	})
}

// TestToolRoundTrip checks that later requests contain a tool call, its result and the provider's data, and that the
// data goes only to the model that it came from. The fake providers refuse invalid histories.
func TestToolRoundTrip(t *testing.T) {
	script := fakeprovider.Typical()
	script.Reply = func(m []fakeprovider.Message) string {
		if last := m[len(m)-1]; last.Role == "tool" {
			return "it is " + last.Content
		}
		return "let me look"
	}
	script.Call = func(m []fakeprovider.Message) (string, string) {
		if m[len(m)-1].Role == "tool" {
			return "", ""
		}
		return "weather", `{"city":"Almaty"}`
	}
	const signed = "c2lnbmF0dXJlIG9m" // prefix of the fake providers' signatures
	each(t, script, func(t *testing.T, l *lab) {
		t.Helper()
		p := hello()
		p.Model, p.Options, p.Tools = l.signer, l.options, []pipeline.Tool{weather()}
		for range 2 {
			got := ask(t.Context(), l, p)
			if got.err != nil || len(got.calls) != 1 || got.text != "let me look" {
				t.Fatalf("%+v", got)
			}
			call := got.calls[0]
			if call.Name != "weather" || string(call.Arguments) != `{"city":"Almaty"}` || call.ID == "" || len(call.Extra) == 0 {
				t.Fatalf("%+v", call)
			}
			p.Messages = append(p.Messages,
				pipeline.Message{Role: pipeline.RoleAgent, Text: got.text, Calls: got.calls},
				pipeline.Message{Role: pipeline.RoleTool, CallID: call.ID, Text: "sunny"})
			if got = ask(t.Context(), l, p); got.err != nil || got.text != "it is sunny" {
				t.Fatalf("%+v", got)
			}
			p.Messages = append(p.Messages,
				pipeline.Message{Role: pipeline.RoleAgent, Text: got.text}, pipeline.Message{Role: pipeline.RoleCaller, Text: "and now"})
		}
		p.Model, p.Options = "another-model", pipeline.Options{}
		if got := ask(t.Context(), l, p); got.err != nil {
			t.Errorf("another model: %v", got.err)
		}
		all := l.requests()
		if first, last := all[1].text(), all[len(all)-1].text(); !strings.Contains(first, signed) || strings.Contains(last, signed) {
			t.Errorf("the provider's data is missing, or was sent to another model:\n%s\n%s", first, last)
		}
	})
}

// TestTwoResults checks that the model receives the results of two parallel tool calls if the
// conversation begins with those calls.
func TestTwoResults(t *testing.T) {
	each(t, fakeprovider.Typical(), func(t *testing.T, l *lab) {
		t.Helper()
		call := func(id string) pipeline.ToolCall {
			return pipeline.ToolCall{ID: id, Name: "weather", Arguments: json.RawMessage(`{}`)}
		}
		got := ask(t.Context(), l, pipeline.Prompt{Tools: []pipeline.Tool{weather()}, Messages: []pipeline.Message{
			{Role: pipeline.RoleAgent, Calls: []pipeline.ToolCall{call("a"), call("b.1")}},
			{Role: pipeline.RoleTool, CallID: "a", Text: "sunny"},
			{Role: pipeline.RoleTool, CallID: "b.1", Text: ""},
			{Role: pipeline.RoleCaller, Text: "thanks"},
		}})
		if got.text != "you said thanks" || got.err != nil {
			t.Errorf("%+v", got)
		}
	})
}

func TestForcedTool(t *testing.T) {
	each(t, fakeprovider.Typical(), func(t *testing.T, l *lab) {
		t.Helper()
		got := ask(t.Context(), l, pipeline.Prompt{
			Tools: []pipeline.Tool{weather()}, ToolChoice: "weather", Messages: []pipeline.Message{{Role: pipeline.RoleCaller, Text: "hi"}},
		})
		if got.err != nil || len(got.calls) != 1 || string(got.calls[0].Arguments) != `{"city":null}` {
			t.Errorf("%+v", got)
		}
	})
}

// TestBareConversations checks that the model answers a conversation without words of the caller.
func TestBareConversations(t *testing.T) {
	each(t, fakeprovider.Typical(), func(t *testing.T, l *lab) {
		t.Helper()
		for _, messages := range [][]pipeline.Message{nil, {{Role: pipeline.RoleAgent, Text: "good day"}}, {{Role: pipeline.RoleCaller}}} {
			if got := ask(t.Context(), l, pipeline.Prompt{Messages: messages}); got.text == "" || got.err != nil {
				t.Errorf("%+v: %+v", messages, got)
			}
		}
	})
}

// TestEarlyEnds checks answers that the model ends early. The client yields the text, the usage and an
// error, but no tool calls.
func TestEarlyEnds(t *testing.T) {
	const text = "I cannot help with that"
	for finish, want := range map[fakeprovider.Finish]error{
		fakeprovider.FinishLength: pipeline.ErrLength, fakeprovider.FinishFilter: pipeline.ErrContentFilter, fakeprovider.FinishRefusal: nil,
	} {
		script := fakeprovider.Typical()
		script.Reply = func([]fakeprovider.Message) string { return text }
		script.Finish = func([]fakeprovider.Message) fakeprovider.Finish { return finish }
		if want != nil {
			script.Call = func([]fakeprovider.Message) (string, string) { return "weather", "{}" }
		}
		each(t, script, func(t *testing.T, l *lab) {
			t.Helper()
			got := ask(t.Context(), l, hello())
			if len(got.usage) != 1 || got.calls != nil || !errors.Is(got.err, pipeline.ErrUnusable) {
				t.Errorf("%s: %+v", finish, got)
			}
			var refusal *pipeline.RefusalError
			switch {
			case want != nil && (!errors.Is(got.err, want) || got.text != text):
				t.Errorf("%s: %+v", finish, got)
			case want == nil && l.refuses && (!errors.As(got.err, &refusal) || refusal.Text != text || got.text != ""):
				t.Errorf("%s: %+v", finish, got)
			case want == nil && !l.refuses && !errors.Is(got.err, pipeline.ErrContentFilter):
				t.Errorf("%s: %+v", finish, got)
			}
		})
	}
}

func TestFaults(t *testing.T) {
	late := context.DeadlineExceeded.Error()
	for fault, want := range map[fakeprovider.Fault]string{
		fakeprovider.Refuse: "503 Service Unavailable: scripted refusal", fakeprovider.Absent: "404 Not Found: no such model",
		fakeprovider.Busy: "429 Too Many Requests: scripted limit",
		fakeprovider.Drop: "EOF", fakeprovider.Reset: "EOF", fakeprovider.Garble: "not JSON",
		fakeprovider.Hang: late, fakeprovider.Stall: late, fakeprovider.Freeze: late, fakeprovider.HalfOpen: late,
		fakeprovider.Late: "", fakeprovider.Mute: "", // faults of recognizers have no effect here
	} {
		script := fakeprovider.Typical()
		script.Fault = func(fakeprovider.Provider, int) fakeprovider.Fault { return fault }
		each(t, script, func(t *testing.T, l *lab) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			got := ask(ctx, l, hello())
			if !errorMatches(got.err, want) || strings.Contains(fmt.Sprint(got.err), "canary") {
				t.Errorf("%s: %v, want %q", fault, got.err, want)
			}
			silent := []fakeprovider.Fault{fakeprovider.Refuse, fakeprovider.Absent, fakeprovider.Busy, fakeprovider.Garble, fakeprovider.Hang, fakeprovider.Stall}
			if slices.Contains(silent, fault) != (got.text == "") || len(l.requests()) != 1 {
				t.Errorf("%s: %q, %d requests", fault, got.text, len(l.requests()))
			}
			var refused *pipeline.RefusedError
			if errors.As(got.err, &refused) && refused.IsRequestFault() != (fault == fakeprovider.Absent) {
				t.Errorf("%s: %v, a fault of the request: %v", fault, got.err, refused.IsRequestFault())
			}
			if fault == fakeprovider.Busy && (refused == nil || refused.RetryAfter != 2*time.Second) {
				t.Errorf("busy: %v", got.err)
			}
		})
	}
}

// TestSlow checks that a late first token is not an error.
func TestSlow(t *testing.T) {
	script := fakeprovider.Script{LateBy: 2 * time.Second, Fault: func(fakeprovider.Provider, int) fakeprovider.Fault { return fakeprovider.Slow }}
	each(t, script, func(t *testing.T, l *lab) {
		t.Helper()
		got := ask(t.Context(), l, hello())
		if got.text == "" || got.err != nil || got.took < 2*time.Second || got.took > 2100*time.Millisecond {
			t.Errorf("%+v", got)
		}
	})
}

// TestCancel checks that an answer ends at once when its context ends or its consumer stops.
func TestCancel(t *testing.T) {
	script := fakeprovider.Typical()
	script.TokenGap = time.Second
	each(t, script, func(t *testing.T, l *lab) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
		defer cancel()
		began := time.Now()
		if got := ask(ctx, l, hello()); !errors.Is(got.err, context.DeadlineExceeded) || got.text == "" || time.Since(began) != 700*time.Millisecond {
			t.Errorf("%+v after %v", got, time.Since(began))
		}
		began = time.Now()
		for d, err := range l.Reply(t.Context(), hello()) {
			if err != nil || d.Text == "" {
				t.Errorf("%+v, %v", d, err)
			}
			break
		}
		if d := time.Since(began); d > 300*time.Millisecond {
			t.Errorf("stopped after %v", d)
		}
	})
}

// at returns the value at a path such as "generationConfig.topP".
func at(body object, path string) any {
	var v any = body
	for name := range strings.SplitSeq(path, ".") {
		m, ok := v.(object)
		if !ok {
			return nil
		}
		v = m[name]
	}
	return v
}

func TestOptions(t *testing.T) {
	temperature := 0.5
	values := map[string]any{"temperature": temperature, "max_tokens": 77.0, "reasoning_effort": "low", "top_p": 0.9}
	each(t, fakeprovider.Typical(), func(t *testing.T, l *lab) {
		t.Helper()
		rules := l.Model.(pipeline.RuledProvider).OptionRules() //nolint:forcetypeassert // all are
		topP := l.paths["top_p"][strings.LastIndex(l.paths["top_p"], ".")+1:]
		extra := map[string]any{topP: 0.9}
		for _, name := range rules.Reserved {
			extra[name] = "evil"
			if _, err := rules.Check(pipeline.Options{Extra: map[string]any{name: 1}}); err == nil {
				t.Errorf("%s is not refused", name)
			}
		}
		for _, name := range rules.Known {
			if warnings, err := rules.Check(pipeline.Options{Extra: map[string]any{name: 1}}); err != nil || warnings != nil {
				t.Errorf("%s: %q, %v", name, warnings, err)
			}
		}
		options := pipeline.Options{Temperature: &temperature, MaxTokens: 77, ReasoningEffort: "low"}
		if warnings, err := rules.Check(options); err != nil || warnings != nil {
			t.Errorf("%q, %v", warnings, err)
		}
		p := hello()
		p.Model, p.Options, p.MaxTokens = "plain", options, 77
		p.Options.Extra = extra
		got := ask(t.Context(), l, p)
		sent := l.requests()
		if got.err != nil || len(sent) != 1 {
			t.Fatalf("%+v, %d requests", got, len(sent))
		}
		for name, path := range l.paths {
			if v := at(sent[0].body, path); fmt.Sprint(v) != fmt.Sprint(values[name]) {
				t.Errorf("%s is %v at %s", name, v, path)
			}
		}
		if strings.Contains(sent[0].text(), "evil") {
			t.Errorf("a reserved parameter was sent: %s", sent[0].text())
		}
	})
}

// TestSecrets checks that no error contains the key or the URL, even if the provider repeats the key.
func TestSecrets(t *testing.T) {
	for name := range subjects(nil) {
		body := `{"type":"error","error":{"message":"bad key canary-key ` + strings.Repeat("x", 300) + `","type":"invalid_request_error","code":400}}`
		for _, status := range []int{http.StatusOK, http.StatusBadRequest} {
			data := body
			if status == http.StatusOK {
				data = "data: " + body + "\n\n"
			}
			s := subjects(&http.Client{Transport: trip(func(r *http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(data)), Request: r}, nil
			})})[name]
			err := ask(t.Context(), s, hello()).err
			var refused *pipeline.RefusedError
			if !errors.As(err, &refused) || refused.Status != http.StatusBadRequest || len(refused.Text) > 200 || strings.Contains(err.Error(), "canary") {
				t.Errorf("%s, %d: %v", name, status, err)
			}
		}
		s := subjects(&http.Client{Transport: trip(func(*http.Request) (*http.Response, error) { return nil, errors.New("no route") })})[name]
		if err := ask(t.Context(), s, hello()).err; err == nil || strings.Contains(err.Error(), "http://") || !strings.Contains(err.Error(), "no route") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
