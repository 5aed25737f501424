package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-voice/parley/bench/demo"
	"github.com/parley-voice/parley/control/config"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
	"github.com/parley-voice/parley/pipeline/provider/endpoints"
	"github.com/parley-voice/parley/sip/siptest"
)

// languageRecorder forwards requests to fake providers and records the languages of recognizer requests.
type languageRecorder struct {
	mu  sync.Mutex
	all []string
}

func (l *languageRecorder) serve(t testing.TB, target string) string {
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: target})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if language := r.URL.Query().Get("language"); language != "" {
			l.mu.Lock()
			l.all = append(l.all, language)
			l.mu.Unlock()
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	return strings.TrimPrefix(srv.URL, "http://")
}

func (l *languageRecorder) languages() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Compact(slices.Clone(l.all))
}

// TestLanguages checks that Azure, Yandex and Soniox recognize and answer calls in Russian, in Kazakh and in both. The
// language of a contact overrides the language of the agent.
func TestLanguages(t *testing.T) {
	t.Parallel()
	inTime(t, testLanguages)
}

func testLanguages(t testing.TB) {
	fakes, err := fakeprovider.Start(t.Context(), "127.0.0.1:0", fakeprovider.Typical())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fakes.Close() })
	var recorder languageRecorder
	azure := recorder.serve(t, fakes.Addr())
	lines := map[string]string{ // languages by number
		"+12025550121": "когда придёт заказ", "+12025550122": "тапсырысым қайда", "+12025550123": "сәлеметсіз бе где мой заказ",
		"+77012349921": "когда придёт заказ",
	}
	c := carrier(t, &siptest.Carrier{Answer: func(in siptest.Invite) siptest.Script {
		return siptest.Script{Status: http.StatusOK, Talk: func(ctx context.Context, leg media.Leg) {
			siptest.Person{Lines: []string{lines["+"+strings.TrimPrefix(in.To, "+")]}}.Talk(ctx, leg)
		}}
	}})
	srv, api := startServer(t, c.Addr().String(), func(c *config.Config) {
		c.Endpoints.Named = map[string]endpoints.Endpoint{
			"azure": {Kind: "azure", Key: "k", URL: "ws://" + azure}, "yandex": {Kind: "yandex", Key: "k", URL: "http://" + fakes.Addr()},
			"soniox": {Kind: "soniox", Key: "k", URL: "ws://" + fakes.Addr()},
		}
	})
	srv.applyFile(t, `organizations: [{name: demo, timezone: Asia/Almaty, market: kz, disclosures: {enabled: false},
		calling_window: {days: [0, 1, 2, 3, 4, 5, 6], start: "00:00", end: "24:00"}, agents: [
		{name: ru, published: true, greeting: Hello., language: ru-RU, speech: {asr: {provider: azure}, llm: {provider: fake}, tts: {provider: azure}}},
		{name: kk, published: true, greeting: Hello., language: kk-KZ, speech: {asr: {provider: yandex}, llm: {provider: fake}, tts: {provider: yandex}}},
		{name: both, published: true, greeting: Hello., language: kk, speech: {asr: {provider: soniox, languages: [kk, ru]}, llm: {provider: fake}, tts: {provider: soniox}}},
		{name: contacts, published: true, greeting: Hello., language: kk-KZ, speech: {asr: {provider: azure}, llm: {provider: fake}, tts: {provider: azure}}}],
		trunks: [{name: demo, subgroups: [{name: default, allowed_destinations: ["1", "7"], agents: [ru, kk, both, contacts], calls_per_minute: 100}]}]}]`)
	id := campaign(t, api, map[string]any{
		"agent_id": "contacts", "planned_calls": []map[string]any{{"phone": "+77012349921", "language": "ru-RU"}},
	})
	placed := map[string]string{}
	for number, agent := range map[string]string{"+12025550121": "ru", "+12025550122": "kk", "+12025550123": "both"} {
		var call apiCall
		post(t, api, "/v1/calls/phone", map[string]any{"agent_id": agent, "to_number": number}, &call)
		placed[call.CallID] = number
	}
	for id, number := range placed {
		checkEcho(t, api, number, id, lines[number])
	}
	eventuallyWithin(t, 30*time.Second, "the campaign has ended", func() bool { return readProgress(t, api, id).Status == "completed" })
	var calls struct {
		Calls []apiCall `json:"calls"`
	}
	get(t, api, "/v1/calls?campaign_id="+id, &calls)
	if len(calls.Calls) != 1 {
		t.Fatalf("%d calls", len(calls.Calls))
	}
	checkEcho(t, api, "contacts", calls.Calls[0].CallID, lines["+77012349921"])
	if got := recorder.languages(); !slices.Equal(got, []string{"ru-RU"}) {
		t.Errorf("for a Russian agent and a Russian contact, Azure was asked for %q", got)
	}
}

// checkEcho checks that words were recognized and that the model's answer repeats them.
func checkEcho(t testing.TB, api *demo.Client, name, id, words string) {
	t.Helper()
	call, _ := waitEnded(t, api, id)
	var heard, said []string
	for _, l := range call.Transcript {
		if l.Role == "caller" {
			heard = append(heard, l.Text)
		} else {
			said = append(said, l.Text)
		}
	}
	if strings.Join(heard, " ") != words || !strings.Contains(strings.Join(said, " "), words) {
		t.Errorf("%s: heard %q, said %q, want %q; it ended by %s", name, heard, said, words, call.Reason)
	}
}
