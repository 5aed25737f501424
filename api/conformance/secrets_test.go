package conformance_test

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/sip/siptest"
)

// TestSecrets covers data that must not be stored in plain text.
func TestSecrets(t *testing.T) {
	checkAll(t, "S", []statement{
		{1, "keys, passwords, secrets and card numbers of a call appear in no log, event, metric, file or row of the database", canaries},
	})
}

const (
	canaryPassword = "canary-password-of-a-trunk"
	canaryProvider = "canary-key-of-a-provider"
	canaryHeader   = "canary-header-of-a-tool"
	canaryCard     = "4929123456781234"
)

// An echoModel is a model provider that first calls a tool with the card number and then rejects the key, with
// the key in its error.
type echoModel struct {
	*httptest.Server

	keySeen, cardSeen, toolCalls, refused atomic.Int64
}

func newEchoModel(t *testing.T) *echoModel {
	t.Helper()
	g := &echoModel{}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.URL.Path == "/tool" {
			if r.Header.Get("X-Key") == canaryHeader {
				g.toolCalls.Add(1)
			}
			fmt.Fprintf(w, `{"found":%q}`, canaryCard)
			return
		}
		if r.Header.Get("Authorization") == "Bearer "+canaryProvider {
			g.keySeen.Add(1)
		}
		if strings.Contains(string(body), canaryCard) && g.cardSeen.Add(1) == 1 {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c1\",\"function\":{\"name\":\"look_up\",\"arguments\":\"{\\\"card\\\":\\\"%s\\\"}\"}}]}}]}\n\n", canaryCard)
			fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n")
			return
		}
		g.refused.Add(1)
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, `{"error":{"message":"Incorrect API key provided: %s","type":"invalid_request_error","code":"invalid_api_key"}}`, r.Header.Get("Authorization"))
	}))
	t.Cleanup(g.Close)
	return g
}

const secretsYAML = `
organizations:
- name: %s
  agents:
  - name: sales
    tools:
    - {type: http, name: look_up, description: Looks a card up., url: %q, method: POST, headers: {X-Key: %s}, parameters: {type: object, properties: {card: {type: string}}}}
    speech: {asr: {provider: fake}, llm: {provider: openai, fallback: {provider: fake}}, tts: {provider: fake}}
    published: true
  trunks:
  - {name: main, username: acme, password: %s}
`

// enterCard is a callee who enters a card number and waits for the result.
func enterCard(g *echoModel) func(context.Context, media.Leg) {
	return func(ctx context.Context, leg media.Leg) {
		pad, ok := leg.(media.Keypad)
		if !ok {
			return
		}
		wait := func(d time.Duration) {
			select {
			case <-time.After(d):
			case <-ctx.Done():
			}
		}
		wait(2 * time.Second) // wait for the greeting
		_ = pad.Press(canaryCard + "#")
		for range 100 {
			if wait(200 * time.Millisecond); ctx.Err() != nil || g.refused.Load() > 0 && g.toolCalls.Load() > 0 {
				break
			}
		}
		wait(4 * time.Second) // the fallback model repeats its input
	}
}

func canaries(t *testing.T, s *service) {
	g := newEchoModel(t)
	logs := t.TempDir()
	host := strings.TrimPrefix(g.URL, "http://")
	o := s.isolated(t, "PARLEY_OPENAI_API_KEY="+canaryProvider, "PARLEY_OPENAI_URL="+g.URL+"/v1", "PARLEY_TOOL_HOSTS="+host, "PARLEY_TURN_LOGS="+logs)
	hook := o.addWebhook(t, "", nil)
	o.apply(t, fmt.Sprintf(secretsYAML, o.name, g.URL+"/tool", canaryHeader, canaryPassword))
	number := s.phone(siptest.Script{
		Challenge: &siptest.Challenge{Realm: "carrier.example", Username: "acme", Password: canaryPassword, Proxy: true},
		Status:    http.StatusOK, Talk: enterCard(g),
	})
	a := o.do(t, "POST", "/v1/calls/phone", fmt.Sprintf(`{"agent_id":"sales","to_number":%q}`, number), "Idempotency-Key", "once").want(t, 202)
	id := a.object(t)["call_id"].(string)
	call := o.await(t, id, "ended", "failed")
	if call["status"] != "ended" {
		t.Fatalf("the call failed: %v", call)
	}
	deliveries := hook.waitFor(t, 2)
	wantError(t, o.do(t, "GET", "/v1/calls", "", "Authorization", "Bearer "+o.key+"0"), 401, "api_key_unknown")

	// The test requires that every secret was used.
	took := s.invitesTo(number)
	if n := len(took); n != 2 || !took[n-1].Credentials || g.keySeen.Load() == 0 || g.cardSeen.Load() == 0 || g.toolCalls.Load() == 0 || g.refused.Load() == 0 {
		t.Errorf("%d INVITEs; provider key seen %d times, card %d, tool header %d, requests refused %d", n, g.keySeen.Load(), g.cardSeen.Load(), g.toolCalls.Load(), g.refused.Load())
	}
	found := map[string]string{
		"the log": o.s.logged(), "the metrics": scrape(t, o.s.metrics), "the webhooks": fmt.Sprint(deliveries), "the database": dump(t, o.s),
		"the files": files(t, logs) + files(t, o.s.dir),
		"the API": string(o.do(t, "GET", "/v1/calls/"+id, "").body) + string(o.do(t, "GET", "/v1/calls/"+id+"/turns", "").body) +
			string(o.do(t, "GET", "/v1/dialing-routes?agent_id=sales", "").body),
	}
	for where, known := range map[string]string{
		"the log": "parley ready", "the metrics": "parley_calls_total", "the webhooks": id, "the database": o.name, "the files": `"kind":"key"`, "the API": "[pressed 17 keys]",
	} {
		if !strings.Contains(found[where], known) {
			t.Errorf("%s has no %q: the test is ineffective", where, known)
		}
	}
	secrets := map[string]string{
		"the API key": strings.TrimPrefix(o.key, "parley_"), "the trunk's password": canaryPassword, "the provider's key": canaryProvider,
		"the webhook's secret": strings.TrimPrefix(hookSecret, "whsec_"), "the tool's header": canaryHeader, "the card": canaryCard,
	}
	for where, text := range found {
		for what, secret := range secrets {
			if n := strings.Count(text, secret); n > 0 {
				at := strings.Index(text, secret)
				t.Errorf("%s occurs in %s %d times: …%s…", what, where, n, text[max(0, at-300):min(len(text), at+60)])
			}
		}
	}
}

func scrape(t *testing.T, url string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// dump returns all rows of all tables, with bytes as text.
func dump(t *testing.T, s *service) string {
	t.Helper()
	var all strings.Builder
	err := pgx.BeginFunc(t.Context(), s.db.Pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(t.Context(), "SELECT set_config('bytea_output', 'escape', true)")
		if err != nil {
			return err
		}
		rows.Close()
		rows, err = tx.Query(t.Context(), "SELECT table_name::text FROM information_schema.tables WHERE table_schema = 'public'")
		if err != nil {
			return err
		}
		tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return err
		}
		for _, table := range tables {
			rows, err := tx.Query(t.Context(), "SELECT x::text FROM "+pgx.Identifier{table}.Sanitize()+" x")
			if err != nil {
				return err
			}
			lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
			if err != nil {
				return err
			}
			all.WriteString(table + "\n" + strings.Join(lines, "\n") + "\n")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

func files(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		all.WriteString(name + "\n" + string(text) + "\n")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}
