package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/bench/demo"
	"github.com/parley-voice/parley/sip/siptest"
)

// TestAPICommands places, shows and ends calls, and pauses a campaign, from the command line.
func TestAPICommands(t *testing.T) {
	t.Parallel()
	var r inviteCounter
	c := carrier(t, &siptest.Carrier{Answer: r.accept(3 * time.Second)})
	srv, api := startServer(t, c.Addr().String())
	srv.allowAnyHour(t)
	environ := []string{"PARLEY_API_URL=" + srv.publicURL, "PARLEY_ALLOW_INSECURE_WEBHOOKS=true", "PARLEY_API_KEY=" + api.Key}
	do := func(want string, args ...string) string {
		t.Helper()
		code, out, errs := srv.parleyAs(t, environ, args...)
		if code != 0 || !strings.Contains(out, want) {
			t.Fatalf("parley %s exits with %d: %s%s, want %q", strings.Join(args, " "), code, out, errs, want)
		}
		return out
	}
	object := func(args ...string) (v map[string]any) {
		t.Helper()
		if err := json.Unmarshal([]byte(do("", append(args, "--json")...)), &v); err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		return v
	}
	list := func(args ...string) (v []map[string]any) {
		t.Helper()
		if err := json.Unmarshal([]byte(do("", append(args, "--json")...)), &v); err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		return v
	}

	id := strings.TrimSpace(do("call_", "call", "place", "--agent", "demo", "--var", "first_name=Ada", demo.Number))
	waitEnded(t, api, id)
	do("12025550", "call", "show", id)
	if k := object("call", "show", id); k["call_id"] != id || k["variables"].(map[string]any)["first_name"] != "Ada" {
		t.Errorf("%v", k)
	}
	do(id, "call", "list", "--agent", "demo")
	if all := list("call", "list", "--limit", "1"); len(all) != 1 || all[0]["call_id"] != id {
		t.Errorf("%v", all)
	}
	if all := list("call", "list", "--agent", "none"); all == nil || len(all) > 0 {
		t.Errorf("%v", all)
	}
	do("ended", "call", "hangup", id)
	srv.waitTrace(t, id)
	do("queued: agent demo calls", "logs", id)
	if text := do("INVITE sip:", "logs", "--sip", id); !strings.Contains(text, "Hello, this is Parley") {
		t.Errorf("%s", text)
	}
	if all := list("logs", id); len(all) < 4 || all[0]["kind"] != "state" {
		t.Errorf("%v", all)
	}
	if code, _, errs := srv.parleyAs(t, environ, "call", "show", "call_none"); code != 1 || !strings.Contains(errs, "404") {
		t.Errorf("an unknown call: %d %s", code, errs)
	}
	if code, _, errs := srv.parleyAs(t, environ[:1], "call", "list"); code != 1 || !strings.Contains(errs, "PARLEY_API_KEY") {
		t.Errorf("without a key: %d %s", code, errs)
	}

	campaignID := campaign(t, api, map[string]any{"calls_per_minute": 1}, many(20)...)
	do(t.Name(), "campaign", "list")
	if all := list("campaign", "list", "--status", "running"); len(all) != 1 || all[0]["campaign_id"] != campaignID {
		t.Errorf("%v", all)
	}
	do("is paused", "campaign", "pause", campaignID)
	do("0 campaigns paused", "campaign", "pause", "--all")
	do("is running", "campaign", "resume", campaignID)
	do("1 campaign paused", "campaign", "pause", "--all")
	if k := object("campaign", "show", campaignID); k["progress"].(map[string]any)["status"] != "paused" {
		t.Errorf("%v", k)
	}
	do("is running", "campaign", "resume", campaignID)
	if all := list("campaign", "pause", "--all"); len(all) != 1 || all[0]["status"] != "paused" {
		t.Errorf("%v", all)
	}
	do("is running", "campaign", "resume", campaignID)
	if code, _, errs := srv.parleyAs(t, environ, "campaign", "pause"); code != 2 || !strings.Contains(errs, "a campaign id or --all") {
		t.Errorf("without an id: %d %s", code, errs)
	}
	if k := object("campaign", "show", campaignID); k["progress"].(map[string]any)["status"] != "running" {
		t.Errorf("%v", k)
	}
	do("ready now", "campaign", "show", campaignID)
	if k := object("campaign", "cancel", campaignID); k["status"] != "cancelled" {
		t.Errorf("%v", k)
	}

	do("demo", "agent", "list", "--org", "demo")
	do("no changes", "agent", "diff", "--org", "demo", "demo")
	srv.applyFile(t, `organizations: [{name: demo, agents: [{name: demo, greeting: Good day., tools: [{type: http, name: look, description: d, url: "https://x.example/", headers: {Key: `+canary+`}}]}]}]`)
	text := do(`~ greeting: "Hello, this is Parley. How can I help?" → "Good day."`, "agent", "diff", "--org", "demo", "demo")
	if !strings.Contains(text, "+ tools[look]") || strings.Contains(text, canary) {
		t.Errorf("%s", text)
	}
	file := do("organizations:", "export")
	if strings.Contains(file, canary) {
		t.Errorf("an export with a secret: %s", file)
	}
	do("no changes", "apply", "--dry-run", "-f", writeFile(t, "same.yaml", file))
	do(`~ organizations[demo].agents[demo].greeting: "Good day." → "Bye."`, "apply", "--dry-run", "-f",
		writeFile(t, "other.yaml", strings.Replace(file, "Good day.", "Bye.", 1)))
	do("no changes", "apply", "--dry-run", "-f", writeFile(t, "same.yaml", file))
	for _, command := range []string{"key list", "operator list", "webhook list", "webhook list --dead", "providers list", "market list", "dnc list", "agent list --org demo"} {
		list(strings.Fields(command)...)
	}
}
