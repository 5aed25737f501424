package signaling_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/webrtc/ice"
	"github.com/parley-voice/parley/webrtc/leg"
)

// A reply is a response without its body.
type reply struct {
	status int
	header http.Header
}

func TestWHIP(t *testing.T) {
	s := newFixture(t)
	s.server.Servers = ice.Servers{STUN: []string{"stun:stun.example:3478"}, TURN: []string{"turn:turn.example:3478?transport=udp"}, Secret: "canary"}
	web := httptest.NewServer(http.HandlerFunc(s.server.ServeWHIP))
	defer web.Close()
	joinToken := tokenFor("call_a")
	request := func(method, path, body string, headers ...string) (reply, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(s.ctx(), method, web.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		resp, err := web.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return reply{resp.StatusCode, resp.Header}, string(text)
	}
	l := &leg.Leg{Connector: s.browsers, Clock: s.clock, LossTimeout: time.Minute}
	if err := l.Open(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Hangup(media.LocalHangup) }()
	offer, err := l.CreateOffer(s.ctx())
	if err != nil {
		t.Fatal(err)
	}
	const kind, of = "Content-Type", "application/sdp"
	for name, tt := range map[string]struct {
		method, path, body string
		headers            []string
		want               int
	}{
		"no token":      {"POST", "/rtc/whip", offer, []string{kind, of}, 401},
		"another type":  {"POST", "/rtc/whip", offer, []string{kind, "text/plain", "Authorization", "Bearer " + joinToken}, 415},
		"no offer":      {"POST", "/rtc/whip", "v=0", []string{kind, of, "Authorization", "Bearer " + joinToken}, 400},
		"too long":      {"POST", "/rtc/whip", strings.Repeat("x", 65<<10), []string{kind, of, "Authorization", "Bearer " + joinToken}, 413},
		"read":          {"GET", "/rtc/whip", "", nil, 405},
		"not a session": {"DELETE", "/rtc/whip/x", "", nil, 404},
		"preflight":     {"OPTIONS", "/rtc/whip", "", nil, 204},
	} {
		if resp, text := request(tt.method, tt.path, tt.body, tt.headers...); resp.status != tt.want {
			t.Errorf("%s: %d %s, want %d", name, resp.status, text, tt.want)
		}
	}
	resp, answer := request("POST", "/rtc/whip", offer, kind, of, "Authorization", "Bearer "+joinToken)
	at, tag := resp.header.Get("Location"), resp.header.Get("ETag")
	links := strings.Join(resp.header.Values("Link"), "\n")
	if resp.status != 201 || resp.header.Get(kind) != of || at == "" || tag == "" || !strings.Contains(links, "stun:stun.example:3478") || !strings.Contains(links, `username="`) || strings.Contains(links, "canary") {
		t.Fatalf("%d %v %s", resp.status, resp.header, answer)
	}
	if err = l.AcceptAnswer(answer); err != nil {
		t.Fatal(err)
	}
	if err = l.WaitConnected(s.ctx()); err != nil {
		t.Fatal(err)
	}
	s.waitTone(l)
	if got, _ := request("POST", "/rtc/whip", offer, kind, of, "Authorization", "Bearer "+joinToken); got.status != 401 {
		t.Errorf("a used token: %d", got.status)
	}
	auth, by := "Authorization", "Bearer "+joinToken
	const part = "application/trickle-ice-sdpfrag"
	candidate := "m=audio 9 UDP/TLS/RTP/SAVPF 0\r\na=mid:0\r\na=candidate:1 1 udp 2130706431 127.0.0.1 9 typ host\r\n"
	for want, headers := range map[int][]string{
		204: {kind, part, "If-Match", tag, auth, by}, 428: {kind, part, auth, by}, 412: {kind, part, "If-Match", `"old"`, auth, by}, 415: {kind, of, "If-Match", tag, auth, by},
		401: {kind, part, "If-Match", tag, "Authorization", "Bearer another"},
	} {
		if got, text := request("PATCH", at, candidate, headers...); got.status != want {
			t.Errorf("%d %s, want %d", got.status, text, want)
		}
	}
	again, err := l.CreateRestartOffer(s.ctx())
	if err != nil {
		t.Fatal(err)
	}
	resp, ours := request("PATCH", at, again, kind, part, "If-Match", "*", auth, by)
	if resp.status != 200 || resp.header.Get("ETag") == tag || !strings.Contains(ours, "a=ice-ufrag:") || !strings.Contains(ours, "a=candidate:") {
		t.Fatalf("%d %v %s", resp.status, resp.header, ours)
	}
	// Merge the fragment into the previous answer, as clients do.
	var whole strings.Builder
	for line := range strings.Lines(answer) {
		for _, name := range []string{"a=ice-ufrag:", "a=ice-pwd:"} {
			if strings.HasPrefix(line, name) {
				for fresh := range strings.Lines(ours) {
					if strings.HasPrefix(fresh, name) {
						line = fresh
					}
				}
			}
		}
		whole.WriteString(line)
	}
	if err := l.AcceptAnswer(whole.String()); err != nil {
		t.Fatal(err)
	}
	s.waitTone(l)
	for _, token := range [][]string{nil, {auth, "Bearer another"}, {auth, ""}} {
		if got, _ := request("DELETE", at, "", token...); got.status != 401 || got.header.Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("by %q: %d", token, got.status)
		}
	}
	s.waitTone(l)
	if got, _ := request("DELETE", at, "", "Authorization", "Bearer "+joinToken); got.status != 200 {
		t.Errorf("%d", got.status)
	}
	for began := time.Now(); s.session("call_a") != nil && time.Since(began) < 5*time.Second; {
		<-time.After(5 * time.Millisecond)
	}
	if s.ended["call_a"] != media.RemoteHangup {
		t.Errorf("ended by %q", s.ended["call_a"])
	}
	if got, _ := request("DELETE", at, ""); got.status != 404 {
		t.Errorf("an ended call: %d", got.status)
	}
}
