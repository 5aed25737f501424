package dashboard_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/api/dashboard/dashtest"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/media"
)

// A person does tasks in a tab by clicks and keys, and counts them. A key counts as a click.
type person struct {
	dashtest.Tab

	t              *testing.T
	clicks, fields int
}

// press clicks a button or link that leads to another page.
func (p *person) press(text string) {
	p.t.Helper()
	p.clicks++
	p.Press(text)
}

// open clicks the first element that matches a selector and leads to another page.
func (p *person) open(css string) {
	p.t.Helper()
	p.clicks++
	p.Run(`(() => { const e = document.querySelector(` + strconv.Quote(css) + `);
		if (!e?.getClientRects().length) throw new Error("nothing to click: " + document.body.innerText);
		window.left = true; setTimeout(() => e.click()); })()`)
	p.Until("!window.left && document.readyState === 'complete'")
}

// hit clicks an element that stays on the page.
func (p *person) hit(css string) {
	p.t.Helper()
	p.clicks++
	p.Run("document.querySelector(" + strconv.Quote(css) + ").click()")
}

func (p *person) fill(name, text string) {
	p.t.Helper()
	p.fields++
	p.Fill("[name="+strconv.Quote(name)+"]", text)
}

func (p *person) choose(name, value string) {
	p.t.Helper()
	p.fields++
	p.Run(`document.querySelector("[name='` + name + `']").value = ` + strconv.Quote(value))
}

// upload chooses a file. Its dialog counts as one click.
func (p *person) upload(name, text string) {
	p.t.Helper()
	p.clicks++
	p.Run(`(() => { const file = new DataTransfer(); file.items.add(new File([` + strconv.Quote(text) + `], "rows.csv"));
		document.querySelector("[name=` + name + `]").files = file.files; })()`)
}

func (p *person) says(text string) {
	p.t.Helper()
	p.Until("document.readyState === 'complete' && document.querySelector('main').innerText.includes(" + strconv.Quote(text) + ")")
}

// do does a task, logs what it took, and fails if it took more clicks than it may.
func (p *person) do(task string, most int, steps func()) {
	p.t.Helper()
	p.clicks, p.fields = 0, 0
	began := time.Now()
	steps()
	p.t.Logf("| %-40s | %2d clicks | %d fields | %4.1f s |", task, p.clicks, p.fields, time.Since(began).Seconds())
	if p.clicks > most {
		p.t.Errorf("%s takes %d clicks, at most %d", task, p.clicks, most)
	}
	if faults := p.Faults(); len(faults) > 0 {
		p.t.Errorf("%s: %q", task, faults)
	}
}

// reachable is a carrier that answers OPTIONS, for an organization whose providers are not tested.
type reachable struct{}

func (reachable) Propose(string) agents.Definition {
	d := agents.Default()
	d.Greeting, d.Speech.ASR.Provider, d.Speech.LLM.Provider, d.Speech.TTS.Provider = "Hello.", "fake", "fake", "fake"
	return d
}

func (reachable) Tested(context.Context, db.Querier, string, agents.Definition) (bool, error) {
	return true, nil
}

func (reachable) Carrier(context.Context, media.Trunk, bool) (state, reason string) { return "up", "" }

// TestTasks does five tasks of operators. The section "Five tasks" of docs/dashboard.md has the table that it logs.
func TestTasks(t *testing.T) {
	t.Run("first call", firstCallTask)
	h := dashtest.New(t)
	id := h.Furnish(t, "sales")["campaigns"]
	furnishTalk(t, h)
	h.Exec(t, "UPDATE call_turns SET item = jsonb_set(item::jsonb, '{metrics,turn_ms}', '4321')::json WHERE call_id = 'call_1' AND n = 2")
	h.Exec(t, `UPDATE calls SET created_at = x.at, answered_at = x.at, ended_at = x.at + interval '28 s'
		FROM (SELECT date_trunc('day', now(), 'UTC') - interval '12 hours' AS at) x WHERE id = 'call_1'`)
	h.FurnishFigures(t, 2000)
	h.Exec(t, "DELETE FROM agents WHERE id = 'agt_renewals'")
	h.Exec(t, "INSERT INTO route_breakers (subgroup_id, open, why, since, probe_at) SELECT id, true, 'failures', now(), now() + interval '1 hour' FROM subgroups")
	p := &person{Tab: h.Chrome(t), t: t}
	p.SetViewport("light", 1440)
	p.SignIn("oscar")
	p.do("why a campaign is idle", 0, func() { p.says("no contact can be called now") })
	p.do("the slowest turn of yesterday", 4, func() {
		p.open(".tile .second a")
		p.press("Yesterday")
		p.open("a.row")
		p.Until("location.pathname.endsWith('/calls/call_1') && location.hash === '#slowest'")
		p.hit("#slowest")
		p.Until("!document.querySelector('audio').paused && document.querySelector('audio').currentTime > 1")
	})
	if text := p.Text(); !strings.Contains(text, "Play slowest response: 4,321 ms") {
		t.Errorf("the page says %s", text)
	}
	p.do("upload a list and launch the campaign", 8, func() {
		p.press("Campaigns")
		p.says("no contact can be called now")
		p.press("New campaign")
		p.upload("rows", "phone,name\n+12125550101,Ada\n+12125550102,Bob\n")
		p.press("Continue")
		p.Until("document.querySelector('h1').textContent === 'Map columns'")
		p.press("Continue")
		p.fill("name", "Spring")
		p.press("Create draft")
		p.Until("document.querySelector('[name=attest]')")
		p.hit("[name=attest]")
		p.press("Launch")
		p.says("Campaign launched.")
	})
	p.do("stop everything", 2, func() {
		p.press("Stop calls")
		p.press("Pause all and hang up")
		p.says("2 campaigns paused. Hanging up 1 call.")
	})
	if got := status(t, h, id); got != "paused" || h.Count(t, "SELECT count(*) FROM calls WHERE status = 'ongoing' AND end_requested_at IS NULL") > 0 {
		t.Errorf("the campaign is %s, and calls go on", got)
	}
	p.SetViewport("light", 390)
	p.do("on a phone, the page that stops calls", 2, func() {
		p.hit(".menu summary")
		p.press("Stop calls")
		p.says("No campaign is running.")
	})
}

// firstCallTask sets up an organization without anything, up to a test call that is answered.
func firstCallTask(t *testing.T) {
	h := dashtest.New(t, func(h *dashtest.Env) { h.Dashboard.Checks = reachable{} })
	startNode(t, h)
	p := &person{Tab: h.Chrome(t), t: t}
	p.SetViewport("light", 1440)
	p.Go("/dashboard/sign-in")
	p.do("first call, from signing in", 12, func() {
		p.fill("email", "ada@example.com")
		p.fill("password", string(dashtest.Password))
		p.press("Sign in")
		p.press("Set up calling")
		p.press("Choose rules")
		p.choose("rules", "us")
		p.press("Use these rules")
		p.press("Choose a carrier")
		p.press("Connect Telnyx SIP Trunking")
		p.fill("username", "u")
		p.fill("password", "secret")
		p.fill("caller_numbers", "+12025550100")
		p.press("Connect")
		p.press("Create a first agent")
		p.press("Publish assistant")
		p.press("Publish draft")
		p.press("Test call")
		p.fill("to", "+12025550123")
		p.press("Call now")
		for n := 0; h.Count(t, "SELECT count(*) FROM calls WHERE answered_at IS NOT NULL") == 0; n++ {
			if n == 200 {
				t.Fatalf("the call is not answered: %s", p.Text())
			}
			p.Run("new Promise((r) => setTimeout(r, 50))")
		}
	})
}
