package dashboard_test

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/parley-voice/parley/api"
	"github.com/parley-voice/parley/api/dashboard/dashtest"
	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/api/docs"
	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/uploads"
	"github.com/parley-voice/parley/control/identity"
	"github.com/parley-voice/parley/control/operator"
	"github.com/parley-voice/parley/media"
)

// signingIn shows the sign-in with an identity provider, with one-time codes, and refused.
func signingIn(t *testing.T) (*dashtest.Env, []scene) {
	t.Helper()
	answer := "" // of the provider, instead of a code
	var provider *httptest.Server
	provider = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/.well-known/openid-configuration":
			at := provider.URL
			_, _ = w.Write([]byte(`{"issuer": "` + at + `", "authorization_endpoint": "` + at + `/authorize", "token_endpoint": "` + at + `/token", "jwks_uri": "` + at + `/keys", "end_session_endpoint": "` + at + `/end"}`))
		case "/authorize":
			q := r.URL.Query()
			http.Redirect(w, r, q.Get("redirect_uri")+"?state="+q.Get("state")+"&"+answer, http.StatusFound)
		default:
			http.Error(w, "", http.StatusInternalServerError)
		}
	}))
	t.Cleanup(provider.Close)
	h := dashtest.New(t, func(h *dashtest.Env) {
		h.Dashboard.Identity = &identity.Provider{
			Settings: identity.Settings{Issuer: provider.URL, ClientID: "parley"}, Redirect: h.URL + ui.CallbackPath, Key: h.Dashboard.Key,
		}
	})
	known := h.Dashboard.Identity
	submit := func(b dashtest.Tab, email, password string) {
		b.Fill("#email", email)
		b.Fill("#password", password)
		b.Press("Sign in")
	}
	visit := func(path string) func(dashtest.Tab) {
		return func(b dashtest.Tab) { b.Go("/dashboard/sign-in" + path) }
	}
	all := []scene{
		{"provider", func(b dashtest.Tab) {
			h.Exec(t, "DELETE FROM operator_sessions")
			h.Exec(t, "DELETE FROM operator_tries")
			known.Only = false
			b.Go("/dashboard/sign-in")
		}},
		{"wrong_password", func(b dashtest.Tab) { submit(b, "ada@example.com", "wrong") }},
		{"too_many", func(b dashtest.Tab) {
			b.Run(`(async () => { for (let i = 0; i < 20; i++) await fetch("/dashboard/sign-in", { method: "POST", body: new URLSearchParams({ email: "eve@example.com", password: "x" }) }); })()`)
			submit(b, "eve@example.com", "wrong")
			h.Exec(t, "DELETE FROM operator_tries")
		}},
		{"lost", visit("?lost=yes")},
		{"left", visit("?left")},
		{"link_refused", func(b dashtest.Tab) {
			b.Go("/dashboard/sign-in")
			link := known.Link(identity.Identity{Person: operator.Person{Issuer: provider.URL, Subject: "1"}, Email: "ada@example.com"})
			b.Run(`document.querySelector("form.sign").insertAdjacentHTML("beforeend", "<input type=hidden name=link value='` + link + `'>")`)
			submit(b, "ada@example.com", "wrong")
		}},
		{"provider_refused", func(b dashtest.Tab) {
			answer = "error=access_denied"
			b.Go("/dashboard/sign-in/provider")
		}},
		{"provider_down", func(b dashtest.Tab) {
			answer = "code=1"
			b.Go("/dashboard/sign-in/provider")
		}},
		{"provider_only", func(b dashtest.Tab) {
			known.Only = true
			b.Go("/dashboard/sign-in")
			known.Only = false
		}},
	}
	return h, append(all, codeScenes(t, h, submit)...)
}

// codeScenes turn one-time codes on and sign in with one.
func codeScenes(t *testing.T, h *dashtest.Env, submit func(b dashtest.Tab, email, password string)) []scene {
	t.Helper()
	key := ""
	code := func(steps int) string {
		c, err := operator.CurrentCode(media.Secret(key), time.Now().Add(time.Duration(steps)*30*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	page := func(path string) func(dashtest.Tab) { return func(b dashtest.Tab) { b.Go(path) } }
	return []scene{
		{"codes_off", func(b dashtest.Tab) {
			h.Exec(t, "UPDATE operators SET totp_secret = '', totp_step = 0")
			h.Exec(t, "DELETE FROM operator_recovery_codes")
			b.SignIn("ada")
			b.Go("account")
		}},
		{"codes_new", page("account/codes")},
		{"codes_new_refused", func(b dashtest.Tab) {
			b.Fill("#f-code", "000000")
			b.Fill("#f-current_password", "wrong")
			b.Run(`document.querySelector("#f-code").form.requestSubmit()`)
			b.Until(`document.body.innerText.includes("Wrong password.")`)
		}},
		{"codes_recovery", func(b dashtest.Tab) {
			key = dashtest.Read[string](b, `document.querySelector("[name=key]").value`)
			b.Fill("#f-code", code(-1))
			b.Fill("#f-current_password", string(dashtest.Password)+"\r")
			b.Until(`document.querySelector(".codes")`)
		}},
		{"codes_on", page("account")},
		{"operators", page("operators")},
		{"code", func(b dashtest.Tab) {
			h.Exec(t, "DELETE FROM operator_sessions")
			b.Go("/dashboard/sign-in")
			submit(b, "ada@example.com", string(dashtest.Password))
		}},
		{"code_refused", func(b dashtest.Tab) {
			b.Fill("#code", "000000")
			b.Press("Sign in")
		}},
		{"codes_turn_off", func(b dashtest.Tab) {
			b.Fill("#code", code(0))
			b.Press("Sign in")
			b.Go("account/codes")
		}},
	}
}

// tickets issues join tokens that no server accepts.
type tickets struct{}

func (tickets) Ticket(string, time.Time, time.Time) map[string]any { return map[string]any{} }

// talking shows test calls in the browser. The client of the page needs no server.
func talking(t *testing.T) (*dashtest.Env, []scene) {
	t.Helper()
	h := dashtest.New(t, func(h *dashtest.Env) {
		h.Dashboard.Calls.Tickets = tickets{}
		h.Outer = func(pages http.Handler) http.Handler {
			mux := http.NewServeMux()
			mux.Handle("/", pages)
			mux.HandleFunc("/rtc/parley.js", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, "../talkpage/testdata/client.js") })
			return mux
		}
	})
	id := h.Furnish(t, "sales")["agents"]
	at := "agents/" + id + "/talk"
	start := func(b dashtest.Tab, typed bool) {
		b.Go(at)
		if typed {
			b.Run(`document.querySelector("#f-typed").click()`)
		}
		b.Fill("[name='variable.first_name']", "Ada")
		b.Run(`window.call = null; window.fetch = async () => new Response('{"call_id": "call_1"}', { status: 201, headers: { "Content-Type": "application/json" } })`)
		b.Run(`document.querySelector("[data-start]").click()`)
		b.Until(`window.call`)
		b.Run(`new Promise((r) => setTimeout(r, 50)).then(() => {
			const said = (role, text, final = true) => call.emit("transcript", { role, text, final });
			said("agent", "Hello Ada, this is Anna from the book shop. I am an automated assistant. Is this a good time?");
			said("caller", "Yes, go ahead.");
			said("agent", "The atlas that you ordered has arrived. Shall we send it, or would you like to pick it up?");
			call.emit("state", { state: "listening" });
		})`)
	}
	return h, []scene{
		{"unpublished", func(b dashtest.Tab) {
			h.Exec(t, "DELETE FROM operator_sessions")
			b.SignIn("oscar")
			h.Exec(t, "UPDATE agents SET published_version = NULL WHERE id = $1", id)
			b.Go(at)
			h.Exec(t, "UPDATE agents SET published_version = 1 WHERE id = $1", id)
		}},
		{"agent", func(b dashtest.Tab) { b.Go("agents/" + id) }},
		{"ready", func(b dashtest.Tab) { b.Go(at) }},
		{"refused", func(b dashtest.Tab) {
			h.Exec(t, "UPDATE agents SET published_version = NULL WHERE id = $1", id)
			b.Fill("[name='variable.first_name']", "Ada")
			b.Run(`document.querySelector("[data-start]").click()`)
			b.Until(`!document.querySelector(".refused").hidden`)
			h.Exec(t, "UPDATE agents SET published_version = 1 WHERE id = $1", id)
		}},
		{"speaking", func(b dashtest.Tab) {
			start(b, false)
			b.Run(`call.emit("transcript", { role: "caller", text: "keep it for me please", final: false }); call.emit("state", { state: "hearing" })`)
		}},
		{"muted", func(b dashtest.Tab) { b.Run(`document.querySelector("[data-mute]").click()`) }},
		{"typing", func(b dashtest.Tab) { start(b, true) }},
		{"fault", func(b dashtest.Tab) {
			b.Run(`call.emit("state", { state: "reconnecting" }); call.emit("error", { message: "The connection was lost." })`)
		}},
		{"ended", func(b dashtest.Tab) {
			start(b, false)
			b.Run(`document.querySelector("[data-hangup]").click()`)
			b.Until(`document.querySelector("[data-state]").textContent === "Ended"`)
		}},
	}
}

// documentation shows pages of the guide, the reference and the API explorer.
func documentation(t *testing.T) (*dashtest.Env, []scene) {
	t.Helper()
	files := fstest.MapFS{}
	source := os.DirFS("../..")
	for _, name := range []string{"docs", "CHANGELOG.md", "CONTRIBUTING.md"} {
		err := fs.WalkDir(source, name, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := fs.ReadFile(source, name)
			files[name] = &fstest.MapFile{Data: text}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	h := dashtest.New(t, func(h *dashtest.Env) {
		h.Outer = func(pages http.Handler) http.Handler {
			s := &api.Server{Calls: h.Dashboard.Calls, Campaigns: h.Dashboard.Campaigns, Dashboard: pages, Docs: docs.New(files), PublicURL: h.URL}
			all, err := s.Handler()
			if err != nil {
				t.Fatal(err)
			}
			return all
		}
	})
	var all []scene
	for _, path := range []string{
		"guide", "guide/quickstart", "guide/first-call", "guide/campaign", "guide/law", "guide/troubleshooting", "guide/reference/dashboard", "guide/reference/configuration",
		"guide/reference/glossary", "guide/reference/metrics", "guide/adr", "changelog",
	} {
		all = append(all, scene{strings.ReplaceAll(path, "/", "_"), func(b dashtest.Tab) { b.Go("/docs/" + path) }})
	}
	search := func(text string) func(dashtest.Tab) {
		return func(b dashtest.Tab) {
			b.Go("/docs/guide")
			b.Fill("[type=search]", text)
			b.Run("new Promise((r) => setTimeout(r, 500))")
		}
	}
	return h, append(all,
		scene{"guide_found", search("recording")}, scene{"guide_not_found", search("zzzz")},
		scene{"explorer", func(b dashtest.Tab) { b.Go("/docs") }},
		scene{"explorer_open", func(b dashtest.Tab) {
			b.Go("/dashboard/sign-in") // or only the fragment changes
			b.Go("/docs#create-phone-call")
			b.Until("document.querySelector('#create-phone-call').open")
		}},
		scene{"explorer_refused", func(b dashtest.Tab) {
			b.Go("/docs")
			b.Run("for (const d of document.querySelectorAll('.operation')) d.open = d.id === 'list-calls'; document.querySelector('#list-calls .try button').click()")
			b.Until("document.querySelector('#list-calls output pre')")
		}},
	)
}

// furtherStates shows imports, campaigns and calls in states that the other sets lack.
func furtherStates(t *testing.T) (*dashtest.Env, []scene) {
	t.Helper()
	h, imports := dashtest.NewWithImports(t)
	ids := h.Furnish(t, "sales")
	spring := createLarge(t, h, 200, "Spring", true)
	simulateCalls(t, h, spring.Campaign.ID)
	waiting, err := imports.Add(t.Context(), h.DB.Pool, uploads.Import{OrgID: h.Acme, Upload: "u", Columns: map[string]string{}, Spec: campaigns.Spec{Name: "Summer"}})
	if err != nil {
		t.Fatal(err)
	}
	var all []scene
	add := func(name string, do func(b dashtest.Tab)) { all = append(all, scene{name, do}) }
	add("overview_viewer", func(b dashtest.Tab) {
		h.Exec(t, "DELETE FROM operator_sessions")
		b.SignIn("vera")
	})
	add("call_viewer", func(b dashtest.Tab) { b.Go("calls/call_1") })
	add("campaign_viewer", func(b dashtest.Tab) { b.Go("campaigns/" + spring.Campaign.ID) })
	add("call_ongoing", func(b dashtest.Tab) {
		h.Exec(t, "DELETE FROM operator_sessions")
		b.SignIn("oscar")
		b.Go("calls/call_2")
	})
	for name, set := range map[string]string{
		"queued":    "status = 'queued'",
		"ringing":   "status = 'ringing', dialed_at = now()",
		"busy":      "status = 'failed', dialed_at = now(), ended_at = now(), disconnection_reason = 'busy', sip_status = 486, sip_reason = 'Busy Here'",
		"forbidden": "status = 'failed', dialed_at = now(), ended_at = now(), disconnection_reason = 'auth_failed', sip_status = 403, sip_reason = 'Forbidden'",
		"voicemail": "status = 'ended', dialed_at = now() - interval '40 s', answered_at = now() - interval '30 s', ended_at = now(), answered_by = 'voicemail', disconnection_reason = 'voicemail_reached', recording_status = 'failed', analysis_status = 'failed', analysis_error = 'the provider refuses the key'",
		"web":       "call_type = 'web', to_number = '', from_number = '', dial_number = '', status = 'ended', answered_at = now() - interval '95 s', ended_at = now(), disconnection_reason = 'agent_hangup', recording_status = 'finalizing', analysis_status = 'pending'",
	} {
		id := "call_" + name
		h.Exec(t, `INSERT INTO calls (id, org_id, call_type, status, agent_id, agent_name, agent_version, to_number, from_number, dial_number, trunk_id, route_id, ring_seconds, created_at)
			SELECT $1, org_id, call_type, 'queued', agent_id, agent_name, 1, '12025550145', from_number, '12025550145', trunk_id, route_id, 45, now() - interval '2 minutes' FROM calls WHERE id = 'call_1'`, id)
		h.Exec(t, "UPDATE calls SET "+set+" WHERE id = $1", id)
		add(id, func(b dashtest.Tab) { b.Go("calls/" + id) })
	}
	all = append(all, pages("calls", "live", "calls?created_after=nonsense", "calls?status=ended&answered_by=voicemail&min_duration_s=5", "campaigns/pause")...)
	add("calls_columns", func(b dashtest.Tab) {
		b.Go("calls")
		b.Run(`document.querySelector("details.choose").open = true; document.querySelector("details.more-filters").open = true`)
	})
	for name, set := range map[string]string{
		"queued": "state = 'queued'", "reading": "state = 'running', stage = 'reading', rows_done = 3000", "writing": "state = 'running', stage = 'writing', rows_done = 30000, rows_all = 50000",
		"failed": "state = 'failed', message = 'the file has no column of phone numbers'",
	} {
		add("import_"+name, func(b dashtest.Tab) {
			h.Exec(t, "UPDATE list_imports SET stage = '', rows_done = 0, rows_all = 0, message = '' WHERE id = $1", waiting)
			h.Exec(t, "UPDATE list_imports SET "+set+" WHERE id = $1", waiting)
			b.Go("campaigns/importing?id=" + waiting)
		})
	}
	return h, append(all, campaignStates(t, h, ids, spring.Campaign.ID)...)
}

// campaignStates shows the campaign id in several states, and a draft that is blocked and then launched.
func campaignStates(t *testing.T, h *dashtest.Env, ids map[string]string, id string) (all []scene) {
	t.Helper()
	for name, set := range map[string]string{
		"budget":    "status = 'running', budget_nano = 25000000000",
		"scheduled": "status = 'scheduled', starts_at = now() + interval '3 days'",
		"completed": "status = 'completed'",
		"canceled":  "status = 'cancelled'",
	} {
		all = append(all, scene{"campaign_" + name, func(b dashtest.Tab) {
			h.Exec(t, "UPDATE campaigns SET status = 'running', budget_nano = NULL, starts_at = NULL WHERE id = $1", id)
			h.Exec(t, "UPDATE campaigns SET "+set+" WHERE id = $1", id)
			b.Go("campaigns/" + id)
			h.Exec(t, "UPDATE campaigns SET status = 'running' WHERE id = $1", id)
		}})
	}
	menu := func(css string) func(dashtest.Tab) {
		return func(b dashtest.Tab) {
			b.Go("campaigns/" + id)
			b.Run(`document.querySelector("` + css + `").open = true`)
		}
	}
	draft := ""
	return append(all, scene{"campaign_menu", menu("#more-actions")},
		scene{"contacts_number", func(b dashtest.Tab) { b.Go("campaigns/" + id + "/contacts?number=2122000010") }},
		scene{"contacts_none", func(b dashtest.Tab) { b.Go("campaigns/" + id + "/contacts?number=2129999999") }},
		scene{"draft_blocked", func(b dashtest.Tab) {
			draft = createLarge(t, h, 20, "Autumn", false).Campaign.ID
			h.Exec(t, "UPDATE agents SET published_version = NULL WHERE id = $1", ids["agents"])
			h.Exec(t, "DELETE FROM subgroup_agents")
			b.Go("campaigns/" + draft)
			h.Exec(t, "UPDATE agents SET published_version = 1 WHERE id = $1", ids["agents"])
			h.Exec(t, "INSERT INTO subgroup_agents (org_id, subgroup_id, agent_id) VALUES ($1, $2, $3)", h.Acme, ids["subgroups"], ids["agents"])
		}},
		scene{"launched", func(b dashtest.Tab) {
			b.Go("campaigns/" + draft)
			b.Run(`for (const box of document.querySelectorAll("#launch-form [type=checkbox]")) box.checked = true; document.querySelector("#launch-form").requestSubmit()`)
			b.Until(`document.body.innerText.includes("Campaign launched")`)
		}},
		scene{"paused_all", func(b dashtest.Tab) {
			b.Go("campaigns/pause")
			b.Run(`document.querySelector("main form button:not([name])").click()`)
			b.Until(`document.querySelector(".flash")`)
			h.Exec(t, "UPDATE campaigns SET status = 'running' WHERE status = 'paused'")
		}},
		scene{"webhook_tested", func(b dashtest.Tab) {
			b.Go("webhooks/" + ids["webhooks"])
			b.Run(`document.querySelector("form[action$=test] button").click()`)
			b.Until(`document.querySelector(".flash")`)
		}},
		scene{"agent_restored", func(b dashtest.Tab) {
			b.Go("agents/" + ids["agents"] + "/versions/1")
			b.Press("Restore as draft")
		}},
		scene{"agent_text_refused", func(b dashtest.Tab) {
			b.Go("agents/" + ids["agents"] + "/text")
			b.Fill("textarea", "greeting: [1]\nunknown: x")
			b.Run(`document.querySelector("textarea").form.requestSubmit()`)
			b.Until(`document.querySelector("[aria-invalid=true]")`)
		}},
		scene{"agent_tool_refused", func(b dashtest.Tab) {
			b.Go("agents/" + ids["agents"] + "/tool?type=http")
			b.Run(`const f = document.querySelector("main form.form"); f.noValidate = true; f.requestSubmit()`)
			b.Until(`document.querySelector("[aria-invalid=true]")`)
		}},
		scene{"settings_saved", func(b dashtest.Tab) {
			h.Exec(t, "DELETE FROM operator_sessions")
			b.SignIn("ada")
			b.Go("settings/edit")
			b.Press("Save")
		}},
	)
}
