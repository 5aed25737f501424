package main

import (
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/api/dashboard/dashtest"
	"github.com/parley-voice/parley/bench/demo"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/operator"
	"github.com/parley-voice/parley/media/recorder"
	"github.com/parley-voice/parley/sip/siptest"
)

// TestSetupInBrowser sets up an empty organization in Chromium: market, carrier, providers, agent, a call that a scripted
// callee answers and whose recording has both voices, and the draft of a campaign.
func TestSetupInBrowser(t *testing.T) {
	t.Parallel()
	carrier := siptest.Carrier{Listen: "127.0.0.1:0", Answer: func(siptest.Invite) siptest.Script {
		return siptest.Script{Status: http.StatusOK, Talk: siptest.Person{Lines: demo.Lines()[:1]}.Talk}
	}}
	if err := carrier.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = carrier.Close() })
	c := testConfig(t)
	c.Dashboard = true
	srv := runServer(t, c, slog.New(slog.DiscardHandler))
	org, err := apikeys.EnsureOrganization(t.Context(), srv.db.Pool, "acme")
	if err != nil {
		t.Fatal(err)
	}
	env := &dashtest.Env{DB: srv.db, URL: srv.publicURL, Acme: org}
	env.AddOperator(t, "ada@example.com", org, operator.Owner)
	b := env.Chrome(t)
	done := func(n int) {
		t.Helper()
		b.Until(fmt.Sprintf("document.body.innerText.includes('%d of 6 steps done')", n))
	}
	b.SignIn("ada")
	b.Press("Set up calling")
	done(0)
	b.Press("Choose rules")
	b.Run("document.querySelector('[name=rules]').value = 'us'")
	b.Press("Use these rules")
	done(1)
	b.Press("Choose a carrier")
	b.Press("Asterisk 16 or later (PJSIP)")
	b.Fill("[name=proxy]", fmt.Sprintf("sip:%s;transport=udp", carrier.Addr()))
	b.Fill("[name=username]", "parley")
	b.Fill("[name=password]", "canary-of-setup")
	b.Fill("[name=caller_numbers]", "+12025550100")
	b.Press("Connect")
	done(2) // OPTIONS is sent without a click
	b.Press("Test providers")
	done(3)
	b.Press("Create a first agent")
	b.Press("Publish assistant")
	b.Press("Publish draft")
	done(4)
	b.Press("Test call")
	b.Fill("[name=to]", demo.Number)
	b.Press("Call now")
	for range 6 { // the call takes about 10 s, and the page follows it
		if b.Text(); dashtest.Read[bool](b, "document.body.innerText.includes('5 of 6')") {
			break
		}
		b.Run("new Promise((r) => setTimeout(r, 5000))")
	}
	done(5)
	if strings.Contains(dashtest.Read[string](b, "document.documentElement.outerHTML"), "canary") {
		t.Error("the page shows the password")
	}
	b.Press("Open the newest call")
	b.Until("document.querySelector('audio')?.duration > 3")
	b.Go("overview")
	b.Press("Continue")
	b.Press("New campaign")
	b.Fill("[name=lines]", "+12125550123, Ada")
	b.Press("Continue")
	b.Press("Continue")
	b.Fill("[name=name]", "Spring renewals")
	b.Press("Create draft")
	b.Go("start")
	done(6)
	if faults := b.Faults(); len(faults) > 0 {
		t.Errorf("%q", faults)
	}
	compareVoices(t, c.DataDir)
}

// compareVoices checks that the only recording has the words of callee and agent.
func compareVoices(t *testing.T, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "bucket", "recordings", "*.wav"))
	for deadline := time.Now().Add(10 * time.Second); len(files) == 0 && time.Now().Before(deadline); {
		time.Sleep(50 * time.Millisecond)
		files, err = filepath.Glob(filepath.Join(dir, "bucket", "recordings", "*.wav"))
	}
	if err != nil || len(files) != 1 {
		t.Fatalf("recordings %v, %v", files, err)
	}
	left, right, rate, err := recorder.Read(files[0])
	if err != nil {
		t.Fatal(err)
	}
	// on a late machine, letters and short words are damaged
	if got := decodeSpeech(left, rate); !strings.HasPrefix(got, demo.Lines()[0][:10]) {
		t.Errorf("the callee says %q", got)
	}
	if got := decodeSpeech(right, rate); !strings.Contains(got, "automated assistant") {
		t.Errorf("the agent says %q", got)
	}
}
