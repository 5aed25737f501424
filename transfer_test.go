package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/bench/demo"
	"github.com/parley-voice/parley/control/config"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
	"github.com/parley-voice/parley/sip/siptest"
)

// TestTransfer transfers a callee whose carrier refuses REFER. A second leg must ring the target, and the server must
// bridge the two legs. A busy target must be reported to the caller.
func TestTransfer(t *testing.T) {
	t.Parallel()
	inTime(t, testTransfer)
}

func testTransfer(t testing.TB) {
	script := fakeprovider.Typical()
	script.Call = func(messages []fakeprovider.Message) (name, arguments string) {
		if last := messages[len(messages)-1]; last.Role == "user" && strings.Contains(last.Content, "person") {
			return "transfer_call", `{"to":"support"}`
		}
		return "", ""
	}
	script.Reply = func([]fakeprovider.Message) string { return "well." }
	providers, err := fakeprovider.Start(t.Context(), "127.0.0.1:0", script)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = providers.Close() })
	c := carrier(t, &siptest.Carrier{Answer: func(in siptest.Invite) siptest.Script {
		switch {
		case strings.HasSuffix(in.To, "0111"):
			return siptest.Script{Status: http.StatusOK, Talk: listenFor(2 * time.Second)}
		case strings.HasSuffix(in.To, "0112"):
			return siptest.Script{Status: 486}
		}
		return siptest.Script{Status: http.StatusOK, Talk: func(ctx context.Context, leg media.Leg) {
			siptest.Person{Lines: []string{"give me a person"}}.Talk(ctx, leg)
			listenFor(5*time.Second)(ctx, leg)
		}}
	}})
	srv, api := startServer(t, c.Addr().String(), func(c *config.Config) { c.Endpoints.Fake = providers.Addr() })
	for _, row := range []struct{ number, reason, status string }{
		{"+12025550111", "transferred", "answered"},
		{"+12025550112", "", "failed"},
		{"+442071838750", "", "failed"}, // the subgroup does not allow the number
	} {
		srv.applyFile(t, fmt.Sprintf(`organizations: [{name: demo, agents: [{name: demo, published: true, voicemail: continue,
			tools: [{type: transfer_call, destinations: [{label: support, number: %q}]}]}]}]`, row.number))
		var call struct {
			apiCall
			Transfer struct {
				To      string `json:"to"`
				Status  string `json:"status"`
				Bridged bool   `json:"bridged"`
			} `json:"transfer"`
		}
		post(t, api, "/v1/calls/phone", map[string]any{"agent_id": "demo", "to_number": demo.Number}, &call)
		talked, _ := waitEnded(t, api, call.CallID)
		var said []string
		for _, l := range talked.Transcript {
			said = append(said, l.Role+": "+l.Text)
		}
		get(t, api, "/v1/calls/"+call.CallID, &call)
		if call.Transfer.To != row.number || call.Transfer.Status != row.status || call.Transfer.Bridged != (row.status == "answered") ||
			call.Status != "ended" || row.reason != "" && call.Reason != row.reason {
			t.Errorf("%s: %+v, after %q", row.number, call, said)
		}
		ids := map[string]bool{}
		for _, e := range c.Journal() {
			if strings.HasSuffix(row.number, e.To) || strings.HasSuffix(e.To, strings.TrimPrefix(row.number, "+")) {
				ids[e.ID] = true
			}
		}
		if want := !strings.HasPrefix(row.number, "+44"); want != (len(ids) == 1) {
			t.Errorf("%s was called by the attempts %v", row.number, ids)
		}
	}
	var alive int
	if err := srv.db.Pool.QueryRow(t.Context(), "SELECT count(*) FROM attempts WHERE state NOT IN ('ended')").Scan(&alive); err != nil || alive != 0 {
		t.Errorf("%d attempts have not ended: %v", alive, err)
	}
}
