package dashboard_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/parley-voice/parley/api/dashboard/dashtest"
	"github.com/parley-voice/parley/control/operator"
	"github.com/parley-voice/parley/media/recorder"
)

type scene struct {
	name string
	do   func(b dashtest.Tab)
}

// TestPictures writes screenshots of every page in both themes and several widths to the
// folder PARLEYTEST_PICTURES: with one of everything, with nothing, with much data in
// several scripts, during the set-up, with an agent whose draft changed, in further states,
// of the sign-in, of a test call in the browser, and of the documentation.
func TestPictures(t *testing.T) {
	dir := os.Getenv("PARLEYTEST_PICTURES")
	if dir == "" {
		t.Skip("PARLEYTEST_PICTURES names a folder")
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	sets := map[string]func(*testing.T) (*dashtest.Env, []scene){
		"one": oneOfEverything, "none": nothingYet, "many": manyOfEverything, "figures": figures, "setup": settingUp, "agent": agentAtWork,
		"states": furtherStates, "signin": signingIn, "talk": talking, "docs": documentation,
	}
	for name, open := range sets {
		t.Run(name, func(t *testing.T) {
			h, scenes := open(t)
			b := h.Chrome(t)
			for _, theme := range []string{"light", "dark"} {
				for _, width := range widths(name) {
					b.SetViewport(theme, width)
					for _, p := range scenes {
						p.do(b)
						// a sticky bar would cover the middle of the picture
						b.Run(`scrollTo(0, 0); for (const end of document.querySelectorAll(".form-end")) end.style.position = "static"`)
						file := fmt.Sprintf("%s-%s-%s-%d.png", name, p.name, theme, width)
						if err := os.WriteFile(filepath.Join(dir, file), b.Picture(), 0o600); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
		})
	}
}

func widths(name string) []int64 {
	switch name {
	case "figures", "docs":
		return []int64{1440, 390, 2560}
	case "many", "agent", "talk":
		return []int64{1280, 390, 2560}
	}
	return []int64{1280, 390}
}

// figures is the Overview page of an organization with many calls, and what it leads to.
func figures(t *testing.T) (*dashtest.Env, []scene) {
	t.Helper()
	h := dashtest.New(t)
	h.Exec(t, "UPDATE organizations SET timezone = 'America/New_York' WHERE id = $1", h.Acme)
	h.Furnish(t, "sales")
	h.FurnishFigures(t, 8000)
	furnishTalk(t, h)
	all := []scene{{"overview_day", func(b dashtest.Tab) {
		h.Exec(t, "DELETE FROM operator_sessions")
		b.SignIn("ada")
	}}}
	all = append(all, pages("overview?period=week", "overview?period=month", "calls?outcome=answered&weekday=0&hour=18", "calls", "calls?q=atlas", "calls/call_1", "live", "live?call=call_2")...)
	return h, append(all, scene{"overview_tip", func(b dashtest.Tab) {
		b.Go("overview?period=month")
		b.Run(`document.querySelector(".as-table").open = true; document.querySelector(".stacks a[tabindex='0']").dispatchEvent(new PointerEvent("pointerover", { bubbles: true }))`)
	}})
}

// furnishTalk gives call_1 a conversation with recording, response times, score, tags and notes.
func furnishTalk(t *testing.T, h *dashtest.Env) {
	t.Helper()
	const rate = 8000
	lines := []string{
		"agent: Hello, this is Anna from the book shop. I am an automated assistant. Is this a good time?", "caller: Yes, go ahead.",
		"agent: The atlas that you ordered has arrived. Shall we send it, or would you like to pick it up?", "caller: Keep it for me, please. I will come on Saturday at ten.",
		"agent: Good, the atlas is put aside until Saturday evening.", "caller: Thank you. Goodbye.", "agent: Goodbye!",
	}
	h.Say(t, "call_1", lines...)
	h.Exec(t, "UPDATE call_lines SET item = (item::jsonb || jsonb_build_object('start', n * 4000000000, 'end', n * 4000000000 + 3200000000, 'turn', (n + 1) / 2))::json WHERE call_id = 'call_1'")
	h.Exec(t, "DELETE FROM call_turns WHERE call_id = 'call_1'")
	h.Exec(t, `INSERT INTO call_turns (call_id, n, item) SELECT 'call_1', n, jsonb_build_object('turn', n, 'ending', 'answered', 'reason', 'sentence_ended', 'metrics', jsonb_build_object('vad_ms', 180, 'asr_ms', 40, 'eou_wait_ms', 60 + 50 * n, 'llm_ms', 300, 'tts_ms', 110, 'turn_ms', 690 + 50 * n)) FROM generate_series(1, 3) n`)
	audio := recorder.Header(rate, uint32(len(lines))*4*rate*recorder.SampleLen)
	for i := range len(lines) * 4 * rate {
		v := 0
		if i%(4*rate) < 3*rate {
			v = (i*7919%9000 - 4500) * (i / 400 % 9) / 4
		}
		sides := [2]int{}
		sides[1-i/(4*rate)%2] = v
		for _, side := range sides {
			audio = binary.LittleEndian.AppendUint16(audio, uint16(int16(side)))
		}
	}
	if err := h.Dashboard.Bucket.Put(t.Context(), "recordings/call_1.wav", bytes.NewReader(audio)); err != nil {
		t.Fatal(err)
	}
	h.Exec(t, "UPDATE calls SET answered_at = ended_at - interval '28 s', name = 'Grace Hopper', call_analysis = '{\"success\": true, \"sentiment\": \"positive\", \"summary\": \"The customer picks the atlas up on Saturday at ten.\"}' WHERE id = 'call_1'")
	h.Exec(t, "INSERT INTO call_tags (call_id, tag, org_id, author) SELECT 'call_1', unnest(ARRAY['pick up', 'saturday']), $1, 'oscar@example.com'", h.Acme)
	h.Exec(t, "INSERT INTO call_scores (call_id, score, org_id, author) VALUES ('call_1', 4, $1, 'oscar@example.com')", h.Acme)
	h.Exec(t, "INSERT INTO call_notes (id, call_id, note, author) VALUES ('note_1', 'call_1', 'Good call. The greeting could be shorter.', 'ada@example.com')")
}

// idOf matches ids in paths.
var idOf = regexp.MustCompile(`[a-z]+_[0-9a-zA-Z]{20,}`)

func pages(paths ...string) (all []scene) {
	for _, path := range paths {
		name := strings.NewReplacer("call_1", "id", "evt_1", "id", "12025550123", "number", "/", "_", "?", "_").Replace(idOf.ReplaceAllString(path, "id"))
		all = append(all, scene{name, func(b dashtest.Tab) { b.Go(path) }})
	}
	return all
}

func signInScenes(t *testing.T, h *dashtest.Env) []scene {
	t.Helper()
	return []scene{
		{"sign-in", func(b dashtest.Tab) {
			h.Exec(t, "DELETE FROM operator_sessions")
			b.Go("/dashboard/sign-in")
		}},
		{"sign-in_refused", func(b dashtest.Tab) {
			b.Fill("#email", "unknown@example.com")
			b.Fill("#password", "wrong")
			b.Press("Sign in")
		}},
		{"overview", func(b dashtest.Tab) { b.SignIn("ada") }},
		{"live", func(b dashtest.Tab) { b.Go("live") }},
	}
}

func upload(b dashtest.Tab, path, field, text string) {
	b.Go(path)
	b.Run(`(() => { const file = new DataTransfer(); file.items.add(new File([` + "`" + text + "`" + `], "rows.csv")); document.querySelector("[name=` + field + `]").files = file.files; })()`)
}

// rows is a list with some rows that cannot be called.
const rows = "Reached at;Reserve;First name;Город;ملاحظات;Contract end;Preferred language\n" +
	"+1 212 555 0101;yes;Ada;Нью-Йорк;عميل مهم يتصل به صباحا;2026-12-31;en\n+1 212 555 0101;no;Ada;Нью-Йорк;;2026-12-31;en\nnonsense;no;Eve;;;;\n" +
	"+1 310 555 0102;no;Bartholomew Featherstonehaugh the Younger;Лос-Анджелес;;2027-01-31;ru\n+1 312 555 0103;no;Владимир;Чикаго;;2027-02-28;ru\n"

// oneOfEverything covers all routes, intermediate steps and rejected forms.
func oneOfEverything(t *testing.T) (*dashtest.Env, []scene) {
	t.Helper()
	h := dashtest.New(t, func(h *dashtest.Env) { h.Dashboard.Root = "acme" }) // also pages of the root organization
	h.AddOperator(t, "ada@example.com", h.Globex, operator.Viewer)            // an organization to lend to
	var paths []string
	var edit, rotate, running string
	for _, r := range routes(t, h, "sales") {
		switch {
		case r.Show == nil:
			continue
		case r.Path == "campaigns/columns":
			paths = append(paths, r.Path+"?upload=gone")
		default:
			paths = append(paths, r.Path)
		}
		switch {
		case strings.HasPrefix(r.Path, "agents/") && strings.HasSuffix(r.Path, "/edit"):
			edit = r.Path
		case strings.HasSuffix(r.Path, "/secret"):
			rotate = r.Path
		case strings.HasPrefix(r.Path, "campaigns/") && strings.HasSuffix(r.Path, "/cancel"):
			running = strings.TrimSuffix(r.Path, "/cancel")
		}
	}
	draft, spring := createLarge(t, h, 200, "Autumn", false), createLarge(t, h, 200, "Spring", true)
	simulateCalls(t, h, spring.Campaign.ID)
	var all []scene
	add := func(name string, do func(b dashtest.Tab)) { all = append(all, scene{name, do}) }
	all = append(all, signInScenes(t, h)...)
	all = append(all, pages(paths...)...)
	add("campaigns_draft_made", func(b dashtest.Tab) { b.Go("campaigns/" + draft.Campaign.ID) })
	add("campaigns_at_work", func(b dashtest.Tab) { b.Go("campaigns/" + spring.Campaign.ID) })
	all = append(all, pages("campaigns/"+spring.Campaign.ID+"/contacts", "campaigns/"+spring.Campaign.ID+"/contacts?show=ready",
		"campaigns/"+spring.Campaign.ID+"/contacts?show=waiting")...)
	add("imports_draft", func(b dashtest.Tab) { b.Go("imports/" + draft.Import.ID) })
	all = append(all, pages("nothing", edit[:len(edit)-len("edit")]+"publish", "do-not-call?number=2025550123", "do-not-call?number=77", "calls?answered_by=human&status=ended", "calls?agent_id=agt_1&to_number=77",
		"campaigns?name=zzz", "audit?action=zzz", "audit?who=ada")...)
	add("menu", func(b dashtest.Tab) {
		b.Go("audit")
		b.Run(`document.querySelector(".menu").open = true; document.querySelector(".switch").open = true; document.querySelectorAll("main details").forEach((d) => { d.open = true })`)
	})
	add("hang_up", func(b dashtest.Tab) {
		b.Go("live?call=call_2")
		b.Run(`document.querySelector("details.sure").open = true`)
	})
	add("campaigns_columns", func(b dashtest.Tab) {
		upload(b, "campaigns/new", "rows", rows)
		b.Press("Continue")
	})
	add("campaigns_columns_chosen", func(b dashtest.Tab) {
		b.Run(`document.querySelector("[name=c0]").value = "phone"; document.querySelector("[name=c2]").value = "name"`)
		b.Press("Check again")
	})
	add("campaigns_draft_of_a_list", func(b dashtest.Tab) { b.Press("Continue") })
	add("campaigns_columns_without_a_market", func(b dashtest.Tab) {
		h.Exec(t, `UPDATE organizations SET settings = settings - 'market' WHERE id = $1`, h.Acme)
		upload(b, "campaigns/new", "rows", rows)
		b.Press("Continue")
		h.Exec(t, `UPDATE organizations SET settings = settings || '{"market":"us"}' WHERE id = $1`, h.Acme)
	})
	add("campaigns_new_refused", func(b dashtest.Tab) {
		b.Go("campaigns/new")
		b.Run(`document.querySelector("form.form .button.first").click()`)
		b.Until("document.body.innerText.includes('Choose a file or enter numbers.')")
	})
	add("campaigns_paused", func(b dashtest.Tab) {
		b.Go(running)
		b.Press("Pause")
	})
	add("campaigns_resumed", func(b dashtest.Tab) { b.Press("Resume") })
	add("campaigns_withdrawn", func(b dashtest.Tab) {
		b.Go("campaigns/withdraw")
		b.Fill("[name=numbers]", "+1 212 200 0001\n+1 202 555 7777\nnonsense\n")
		b.Press("Withdraw numbers")
	})
	add("do-not-call_refused", func(b dashtest.Tab) {
		b.Go("do-not-call/add")
		b.Fill("[name=number]", "77")
		b.Press("Add number")
	})
	add("keys_issued", func(b dashtest.Tab) {
		b.Go("keys/new")
		b.Fill("[name=name]", "CRM")
		b.Press("Create key")
	})
	add("keys_new_refused", func(b dashtest.Tab) {
		b.Go("keys/new")
		b.Run("document.querySelector('[name=name]').removeAttribute('required')")
		b.Press("Create key")
	})
	add("operators_added", func(b dashtest.Tab) {
		h.Exec(t, "DELETE FROM operators WHERE email = 'new@example.com'")
		b.Go("operators/new")
		b.Fill("[name=email]", "new@example.com")
		b.Press("Add operator")
	})
	add("webhooks_secret", func(b dashtest.Tab) {
		b.Go(rotate)
		b.Press("Rotate secret")
	})
	add("webhooks_rotating", func(b dashtest.Tab) { b.Go(strings.TrimSuffix(rotate, "/secret")) })
	add("agents_id_edit_newer", func(b dashtest.Tab) {
		b.Go(edit)
		b.Run("document.querySelector('[name=seen]').value = 'x'; document.querySelector('[name=greeting]').value = 'Hello.'")
		b.Press("Save draft")
	})
	add("sign-in_again", func(b dashtest.Tab) {
		b.Go("settings/edit")
		h.Exec(t, "DELETE FROM operator_sessions")
		b.Press("Save")
	})
	add("viewer", func(b dashtest.Tab) { b.SignIn("vera") })
	for _, p := range pages("campaigns", "campaigns/"+draft.Campaign.ID, "keys", "webhooks", "keys/new") {
		add("viewer_"+p.name, p.do)
	}
	return h, all
}

// nothingYet is a new organization.
func nothingYet(t *testing.T) (*dashtest.Env, []scene) {
	t.Helper()
	h := dashtest.New(t)
	return h, append(signInScenes(t, h), pages("campaigns", "campaigns/new", "campaigns/draft", "calls", "agents", "trunks", "do-not-call", "do-not-call/numbers", "keys", "webhooks", "settings", "market", "market/use", "operators", "audit")...)
}

// manyOfEverything is an organization with much data.
func manyOfEverything(t *testing.T) (*dashtest.Env, []scene) {
	t.Helper()
	h := dashtest.New(t)
	ids := h.FurnishMany(t)
	all := append(signInScenes(t, h), pages("campaigns", "calls", "agents", "trunks", "do-not-call", "do-not-call/numbers", "keys", "webhooks", "operators", "audit", "campaigns/draft")...)
	for _, path := range []string{"campaigns", "calls", "agents", "trunks", "webhooks"} {
		all = append(all, scene{path + "_id", func(b dashtest.Tab) { b.Go(path + "/" + ids[path]) }})
	}
	for _, path := range []string{
		"subgroups/" + ids["subgroups"] + "/edit", "trunks/" + ids["trunks"] + "/call", "agents/" + ids["agents"] + "/delete", "agents/" + ids["agents"] + "/edit",
		"campaigns/" + ids["campaigns"] + "/contacts", "campaigns/new", "settings", "settings/edit", "overview?period=week",
	} {
		all = append(all, pages(path)...)
	}
	return h, all
}
