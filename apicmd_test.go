package main

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"github.com/parley-voice/parley/bench/demo"
	"github.com/parley-voice/parley/control/db/dbtest"
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

	if code, _, errs := srv.parleyAs(t, []string{"PARLEY_API_URL=http://127.0.0.1:" + freePort(t), "PARLEY_API_KEY=k"}, "call", "list"); code != 1 ||
		!strings.Contains(errs, "start parley serve there, or set PARLEY_API_URL") || strings.Contains(errs, "Get ") {
		t.Errorf("without a server: %d %s", code, errs)
	}
	do(" UTC ", "call", "list")
	for args, want := range map[string]string{
		"agent list --org dmeo":                 `organization "dmeo": unknown; organizations: demo`,
		"agent list --org dem":                  `organization "dem": unknown; did you mean demo? organizations: demo`,
		"agent diff --org demo demos":           `agent "demos": no such agent; did you mean demo?`,
		"call place --agent demos +12025550123": `no agent "demos" in this organization (agents: demo)`,
	} {
		if code, _, errs := srv.parleyAs(t, environ, strings.Fields(args)...); code != 1 || !strings.Contains(errs, want) {
			t.Errorf("parley %s: %d %s", args, code, errs)
		}
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
	if v := object("export"); v["organizations"] == nil {
		t.Errorf("%v", v)
	}
	if v := object("key", "create", "--org", "demo"); v["id"] == nil || v["secret"] == nil {
		t.Errorf("%v", v)
	}
	if v := object("failover", "status"); v["open"] != true {
		t.Errorf("%v", v)
	}
	list("dnc", "status")
	list("providers", "check", "--agents")
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

// TestCommandsWithoutDatabase runs commands in a folder without a database. None of them may create one.
func TestCommandsWithoutDatabase(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	file := writeFile(t, "parley.yaml", `
organizations:
- name: main
  agents: [{name: assistant, speech: {asr: {provider: fake}, llm: {provider: fake}, tts: {provider: fake}}}]
  trunks: [{name: out, proxy: "sip:192.0.2.9", caller_numbers: ["+12025550100"], subgroups: [{name: default, agents: [assistant], allowed_destinations: [US]}]}]
`)
	unfinished := writeFile(t, "new.yaml", `organizations: [{name: main, trunks: [{name: out, proxy: "sip:192.0.2.9", password: change-me}]}]`)
	empty := []string{"PARLEY_DATABASE_URL=" + dbtest.Empty(t)}
	for _, row := range []struct {
		environ []string
		args    string
		code    int
		want    string
	}{
		{nil, "export", 2, "no database in " + dir + "/data: name the settings of the server with --config FILE"},
		{nil, "key list", 2, "no database in"},
		{nil, "agent list --org main", 2, "no database in"},
		{nil, "campaign reopen cmp_1", 2, "no database in"},
		{nil, "apply --dry-run -f " + unfinished, 2, "still contains change-me; enter your values:\n  organizations[main].trunks[out].password\n"},
		{nil, "apply -f " + unfinished, 2, "organizations[main].trunks[out].password"},
		{
			nil, "apply --dry-run -f " + file, 0,
			"+ organizations[main]\n+ organizations[main].agents[assistant]\n+ organizations[main].trunks[out]\n+ organizations[main].trunks[out].subgroups[default]\n4 created",
		},
		{empty, "export", 1, "the database has no tables yet: start parley serve"},
		{empty, "apply --dry-run -f " + file, 0, "4 created, 0 changed, 0 removed"},
		{empty, "export", 1, "the database has no tables yet"},
	} {
		var out bytes.Buffer
		environ := append([]string{"PARLEY_DATA_DIR=" + dir + "/data"}, row.environ...)
		code := run(&env{Context: t.Context(), out: &out, errs: &out, environ: environ}, strings.Fields(row.args))
		if code != row.code || !strings.Contains(out.String(), row.want) {
			t.Errorf("parley %s exits with %d: %s\nwant %d %q", row.args, code, &out, row.code, row.want)
		}
	}
	if _, err := os.Stat(dir + "/data"); !os.IsNotExist(err) {
		t.Errorf("a command created the data directory: %v", err)
	}
}

// TestJSON checks that each command that shows or creates something has --json.
func TestJSON(t *testing.T) {
	none := map[string]string{
		"init": "asks questions", "serve": "logs", "demo": "for people", "docs build": "writes files", "completion": "prints a script", "health": "an exit code",
		"audit": "always JSON", "replay": "prints a log", "dnc reassigned export": "prints a file", "secrets generate": "prints one value",
		"bench compare": "compares files", "bench gate": "an exit code", "bench report": "writes a file", "bench scenarios": "prints names", "bench vad": "prints curves", "bench endings": "prints a table",
		"bench providers": "a server", "bench all": "stores a result",
	}
	changes := map[string]bool{} // commands that print at most how many objects they changed
	for command := range strings.SplitSeq("key set,key revoke,operator create,operator set,operator release,operator delete,agent publish,agent unpublish,"+
		"webhook replay,webhook test,links rotate,secrets rotate,call recount,campaign reopen,campaign disclosures,dnc load,dnc reassigned import,"+
		"market install,failover release,failover hold,erase", ",") {
		changes[command] = true
	}
	walkCommands(model(t), "", func(n *kong.Node, path string) {
		if len(n.Children) > 0 {
			return
		}
		has := slices.ContainsFunc(flags(n), func(f *kong.Flag) bool { return f.Name == "json" })
		if _, listed := none[path]; has == (listed || changes[path]) {
			t.Errorf("%s: has --json: %t", path, has)
		}
		if !strings.HasPrefix(path, "bench ") && len(examples[path]) == 0 {
			t.Errorf("%s has no example", path)
		}
	})
}
