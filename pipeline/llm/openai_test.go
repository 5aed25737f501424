package llm

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/fake"
)

func read(body string) (string, *pipeline.Usage, error) {
	var text strings.Builder
	var usage *pipeline.Usage
	err := stream(strings.NewReader(body), func(d pipeline.Delta, _ error) bool {
		text.WriteString(d.Text)
		if d.Usage != nil {
			usage = d.Usage
		}
		return true
	})
	return text.String(), usage, err
}

func TestStream(t *testing.T) {
	const hello = `data: {"choices":[{"delta":{"content":"Hel"}}]}` + "\n\n" + `data: {"choices":[{"delta":{"content":"lo"}}]}` + "\n\n"
	for name, c := range map[string]struct{ body, text, err string }{
		"plain":             {hello + "data: [DONE]\n\n", "Hello", ""},
		"carriage returns":  {strings.ReplaceAll(hello, "\n", "\r\n") + "data: [DONE]\r\n\r\n", "Hello", ""},
		"comments":          {": ping\n\nevent: x\nid: 1\n" + hello + "data:[DONE]\n\n", "Hello", ""},
		"usage at the end":  {hello + `data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}}` + "\n\ndata: [DONE]\n\n", "Hello", ""},
		"role first":        {`data: {"choices":[{"delta":{"role":"assistant","content":null}}]}` + "\n\n" + hello + "data: [DONE]\n\n", "Hello", ""},
		"broken off":        {hello, "Hello", "before [DONE]"},
		"not JSON":          {"data: {garbled\n\n", "", "not JSON"},
		"error in mid-flow": {hello + `data: {"error":{"message":"overloaded"}}` + "\n\n", "Hello", "overloaded"},
		"endless line":      {"data: " + strings.Repeat("x", longestEvent+1), "", "too long"},
	} {
		text, usage, err := read(c.body)
		if text != c.text || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %q, %v", name, text, err)
		}
		if name == "usage at the end" && (usage == nil || usage.PromptTokens != 3 || usage.CompletionTokens != 2) {
			t.Errorf("usage %+v", usage)
		}
	}
}

func ask(ctx context.Context, script fake.Script) (string, error) {
	n := fake.NewNet()
	fakes := fake.Serve(n, script)
	defer func() { _ = fakes.Close() }()
	client := &http.Client{Transport: &http.Transport{DialContext: n.Dial}}
	defer client.CloseIdleConnections()
	model := OpenAI{URL: "http://fake/v1/", Key: "canary", Client: client}
	var text strings.Builder
	for d, err := range model.Reply(ctx, pipeline.Prompt{Messages: []pipeline.Message{{Role: pipeline.RoleCaller, Text: "hi"}}}) {
		if err != nil {
			return text.String(), err
		}
		text.WriteString(d.Text)
	}
	return text.String(), nil
}

func TestReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if text, err := ask(t.Context(), fake.Typical()); text != "you said hi" || err != nil {
			t.Errorf("%q, %v", text, err)
		}
	})
}

func TestFaults(t *testing.T) {
	for fault, want := range map[fake.Fault]string{
		fake.Refuse: "503", fake.Drop: "EOF", fake.Garble: "not JSON", fake.Stall: context.DeadlineExceeded.Error(),
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			_, err := ask(ctx, fake.Script{Fault: func(fake.Provider, int) fake.Fault { return fault }})
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "canary") {
				t.Errorf("%s: %v, want %q", fault, err, want)
			}
			if fault == fake.Stall && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("stall: %v", err)
			}
		})
	}
}

func FuzzStream(f *testing.F) {
	f.Add("data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\ndata: [DONE]\n\n")
	f.Fuzz(func(_ *testing.T, body string) { _, _, _ = read(body) })
}
