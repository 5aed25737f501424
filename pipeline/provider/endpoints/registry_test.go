package endpoints

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/llm"
	"github.com/parley-voice/parley/pipeline/safedial"
	"github.com/parley-voice/parley/pipeline/tts"
)

// TestUpdate checks that an update replaces only the clients whose settings changed, and returns their IDs.
func TestUpdate(t *testing.T) {
	set := func(key string, more ...string) Set {
		s := Set{
			Named:         map[string]Endpoint{"a": {Kind: "cartesia", Key: "k"}, "dg": {Kind: "deepgram", Key: "k"}},
			Organizations: map[string]map[string]Endpoint{"org": {"a": {Kind: "chat", URL: "https://there", Key: "own", Header: http.Header{"X": {"y"}}}}},
		}
		s.Named["b"] = Endpoint{Kind: "cartesia", Key: "k"}
		if key != "" {
			s.Named["b"] = Endpoint{Kind: "cartesia", Key: "k" + "2"}
		}
		for _, name := range more {
			delete(s.Named, name)
			delete(s.Organizations, name)
		}
		return s
	}
	r := set("").Open(safedial.Rules{})
	defer func() { _ = r.Close() }()
	before := r.Current()
	for _, tt := range []struct {
		set  Set
		want []string
	}{
		{set(""), nil},
		{set("2"), []string{"b"}},
		{set("2", "dg"), []string{"dg", "dg-flux"}},
		{set("2", "dg", "org"), []string{"org/a"}},
		{set("2", "dg", "org"), nil},
		{set("2"), []string{"dg", "dg-flux", "org/a"}},
	} {
		if got := r.Update(tt.set); !slices.Equal(got, tt.want) {
			t.Errorf("changed: %q, want %q", got, tt.want)
		}
	}
	after := r.Current()
	if before.Voices["a"] != after.Voices["a"] || before.Voices["b"] == after.Voices["b"] {
		t.Error("want a new client for b, and the same for a")
	}
	if v, ok := after.Voices["b"].(*tts.Cartesia); !ok || v.Key != "k2" {
		t.Errorf("%+v", v)
	}
	if m, ok := after.Organizations["org"].Models["a"].(llm.OpenAI); !ok || m.Key != "own" || m.Client != r.guarded {
		t.Errorf("%+v", m)
	}
	if after.Models["a"] != nil || len(after.Organizations) != 1 {
		t.Errorf("the operator has the endpoint of an organization: %+v", after)
	}
}

// TestInvalid checks that an organization does not use the operator's endpoint in place of its own invalid endpoint
// with the same name.
func TestInvalid(t *testing.T) {
	r := Set{
		Named:         map[string]Endpoint{"a": {Kind: "chat", URL: "https://there"}},
		Organizations: map[string]map[string]Endpoint{"org": {"a": {}}},
	}.Open(safedial.Rules{})
	defer func() { _ = r.Close() }()
	for orgID, want := range map[string]string{"org": `speech.llm.provider: the organization's endpoint "a" has invalid settings`, "other": ""} {
		err := r.Current().CheckModel(pipeline.Engine{OrgID: orgID, Provider: "a"})
		if (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%s: %v", orgID, err)
		}
	}
}

// TestEgress checks that a client of an organization's endpoint reaches an address of this machine only if the
// operator allows the host. The operator's endpoints are not restricted.
func TestEgress(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:9")
	var reached atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		reached.Add(1)
		http.Error(w, "reached", http.StatusTeapot)
	}))
	defer srv.Close()
	sockets := "ws" + strings.TrimPrefix(srv.URL, "http")
	for _, tt := range []struct {
		org   bool
		hosts []string
		want  bool
	}{{true, nil, false}, {true, []string{"127.0.0.1"}, true}, {false, nil, true}} {
		own := map[string]Endpoint{}
		for kind, k := range Kinds() {
			own[kind] = Endpoint{Kind: kind, Key: "k", Model: "m", URL: srv.URL}
			if k.schemes[0] == "ws" {
				own[kind] = Endpoint{Kind: kind, Key: "k", URL: sockets}
			}
		}
		s := Set{Named: own}
		if tt.org {
			s = Set{Organizations: map[string]map[string]Endpoint{"org": own}}
		}
		r := s.Open(safedial.Rules{Hosts: tt.hosts})
		c := r.Current()
		if tt.org {
			c = c.Organizations["org"]
		}
		check := func(name string, request func() error) {
			reached.Store(0)
			if err := request(); err == nil || errors.Is(err, safedial.ErrNotPublic) == tt.want || (reached.Load() > 0) != tt.want {
				t.Errorf("%+v: %s: reached %d times, %v", tt, name, reached.Load(), err)
			}
		}
		for name, m := range c.Models {
			check("model "+name, func() error {
				for _, err := range m.Reply(t.Context(), pipeline.Prompt{Messages: []pipeline.Message{{Role: pipeline.RoleCaller, Text: "hi"}}}) {
					if err != nil {
						return err
					}
				}
				return nil
			})
		}
		for name, v := range c.Voices {
			if name != "espeak" {
				check("voice "+name, func() error { return speak(t.Context(), v) })
			}
		}
		for name, v := range c.Recognizers {
			check("recognizer "+name, func() error { return hear(t.Context(), v) })
		}
		_ = r.Close()
	}
}

func speak(ctx context.Context, v pipeline.Voice) error {
	s, err := v.Open(ctx, pipeline.Style{Rate: 8000, Language: "en"})
	if err != nil {
		return err
	}
	defer s.Close()
	if err = errors.Join(s.Write("hello"), s.Flush()); err != nil {
		return err
	}
	for _, err := range s.Audio() {
		if err != nil {
			return err
		}
	}
	return nil
}

func hear(ctx context.Context, v pipeline.Recognizer) error {
	s := pipeline.Stream{Rate: 8000, Language: "en"}
	if p, ok := v.(pipeline.Prober); ok {
		return p.Probe(ctx, s)
	}
	r, err := v.Recognize(ctx, s)
	if err != nil {
		return err
	}
	for more := true; more; { // until the provider's refusal closes the channel
		_, more = <-r.Results()
	}
	return r.Close()
}
