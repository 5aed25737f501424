package main

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/apikeys"
)

// TestDashboardTalk signs an operator in and talks with an agent from the dashboard: typed, then by microphone.
func TestDashboardTalk(t *testing.T) {
	c := openChrome(t)
	c.server.operatorClient(t)
	org, err := apikeys.FindOrganization(t.Context(), c.server.db.Pool, "demo")
	if err != nil {
		t.Fatal(err)
	}
	agent, err := agents.Find(t.Context(), c.server.db.Pool, org, "demo")
	if err != nil {
		t.Fatal(err)
	}
	p := c.open(t, c.server.publicURL+"/dashboard/sign-in", map[string]any{})
	p.run(`(() => { document.querySelector("#email").value = "ada@example.com"; document.querySelector("#password").value = "correct horse battery"; document.querySelector("form button").click(); })()`)
	p.untilAt("/overview")
	p.do(chromedp.Navigate(c.server.publicURL + "/dashboard/" + org + "/agents/" + agent.ID + "/talk"))
	for _, typed := range []bool{true, false} {
		if typed {
			p.run(`document.querySelector("#f-typed").click()`)
		}
		p.run(`document.querySelector("[data-start]").click()`)
		p.until("the state of a call", `["Listening", "Speaking", "Hearing you", "Thinking"].includes(document.querySelector("[data-state]").textContent)`)
		if typed {
			p.until("the greeting", `document.querySelector(".chat-lines .agent")`)
			p.run(`(() => { const m = document.querySelector("#f-text"); m.value = "when do you open"; m.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true })); })()`)
		}
		if !typed {
			p.until("the end of the greeting", `document.querySelector("[data-state]").textContent === "Listening" && document.querySelector(".chat-lines .agent:not(.waiting)")`)
			p.say("when do you open")
		}
		p.until("what the caller said", `[...document.querySelectorAll(".chat-lines .caller:not(.waiting)")].some((l) => l.innerText.includes("open"))`)
		p.until("an answer", `document.querySelectorAll(".chat-lines .agent:not(.waiting)").length > 1`)
		if !typed {
			p.run(`document.querySelector("[data-mute]").click()`)
			p.until("a muted page", `document.querySelector("[data-state]").textContent === "You are muted" && document.querySelector("[data-mute]").ariaPressed === "true"`)
		}
		id := eval[string](p, `document.querySelector("[data-call]").href.split("/").pop()`)
		p.run(`document.querySelector("[data-hangup]").click()`)
		c.checkHungUp(t, id)
		p.until("the end", `document.querySelector("[data-state]").textContent === "Ended" && !document.querySelector("[data-start]").hidden`)
		if eval[string](p, `document.querySelector("[data-mute]").ariaPressed`) != "false" {
			t.Error("the next call would look muted")
		}
		if said := eval[string](p, `document.querySelector(".refused").textContent`); said != "" {
			t.Errorf("the page says %q", said)
		}
		if typed {
			p.run(`document.querySelector("#f-typed").click()`)
		}
	}
	var to []string
	rows, err := c.server.db.Pool.Query(t.Context(), "SELECT after->>'to' FROM audit_log WHERE action = 'call.place'")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var x string
		if err = rows.Scan(&x); err != nil {
			t.Fatal(err)
		}
		to = append(to, x)
	}
	if strings.Join(to, " ") != "browser browser" {
		t.Errorf("the audit log has calls to %q", to)
	}
}
