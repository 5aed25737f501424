package dashboard_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-voice/parley/api/dashboard/dashtest"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/admission"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/store"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/recorder"
	"github.com/parley-voice/parley/pipeline"
)

func status(t *testing.T, h *dashtest.Env, id string) string {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/campaigns/"+id, nil)
	r.SetPathValue("id", id)
	w := httptest.NewRecorder()
	if err := h.Dashboard.Campaigns.Get(w, r, apikeys.Key{OrgID: h.Acme}); err != nil {
		t.Fatal(err)
	}
	var shown struct{ Status string }
	if err := json.Unmarshal(w.Body.Bytes(), &shown); err != nil {
		t.Fatal(err)
	}
	return shown.Status
}

// TestCampaignInBrowser uploads a list, maps columns, fixes a failed check, launches,
// watches and pauses the campaign, and reads its report.
func TestCampaignInBrowser(t *testing.T) {
	h := dashtest.New(t)
	h.AddSales(t, "us", false)
	b := h.Chrome(t)
	b.SignIn("oscar")
	b.Go("campaigns")
	b.Press("Create campaign")
	b.Run(`(() => { const file = new DataTransfer();
		file.items.add(new File(["Mobile;Backup;Who;City\n+1 212 555 0101;1;Ada;Rome\nnonsense;2;Eve;\n+1 212 555 0102;3;Bob;Oslo\n"], "rows.csv"));
		document.querySelector("[name=rows]").files = file.files; })()`)
	b.Press("Continue")
	b.Run(`document.querySelector("[aria-label='Who maps to']").value = "name"; document.querySelector("[aria-label='Backup maps to']").value = "-"`)
	b.Press("Check again")
	if text := b.Text(); !strings.Contains(text, "2\nWill be called") || !strings.Contains(text, "Not a telephone number") {
		t.Errorf("the preview says %s", text)
	}
	b.Press("Continue")
	b.Fill("[name=name]", "Spring")
	b.Run(`for (const box of document.querySelectorAll("[name=days]")) box.checked = false`)
	b.Press("Create draft")
	id := dashtest.Read[string](b, "location.pathname.split('/').pop()")
	if text := b.Text(); !strings.Contains(text, "The agent is not published") || !strings.Contains(text, "Resolve the failed check above to launch") {
		t.Fatalf("the page says %s", text)
	}
	b.Press("Publish the agent")
	b.Press("sales")
	b.Press("Publish draft")
	b.Go("campaigns/" + id)
	list := func(sql string) {
		t.Helper()
		h.Exec(t, sql, h.Acme)
		b.Go("campaigns/" + id)
	}
	list("INSERT INTO suppressions (org_id, number) VALUES ($1, '12125550102')")
	// without a reload
	b.Until("document.querySelector('#h-screen').parentNode.innerText.includes('1 number is on a do-not-call list') && document.querySelector('[name=dnc]')")
	list("DELETE FROM suppressions WHERE org_id = $1")
	b.Until("document.querySelector('[name=launch]') && !document.querySelector('[name=dnc]')")
	b.Run(`document.querySelector("[name=attest]").checked = true`)
	b.Press("Launch")
	if text := b.Text(); !strings.Contains(text, "Campaign launched.") || status(t, h, id) != "running" {
		t.Fatalf("the campaign is %s; the page says %s", status(t, h, id), text)
	}
	for n := range 2 { // as the dialer does
		_, err := h.DB.Pool.Exec(t.Context(), `INSERT INTO contact_attempts (contact_id, n, org_id, campaign_id, number, call_id, outcome, began_at, ended_at)
			SELECT id, 1, org_id, campaign_id, number, 'call_x' || ($2::int)::text, 'answered', now(), now() FROM contacts WHERE campaign_id = $1 ORDER BY id OFFSET $2::int LIMIT 1`, id, n)
		if err != nil {
			t.Fatal(err)
		}
	}
	b.Until("document.querySelector('#h-pace').textContent.includes('2 calls in the last minute; requested: 20 per minute')") // without a reload
	b.Until("document.querySelector('#h-outcomes')?.nextElementSibling.textContent.includes('Answered by a person')")
	list(`INSERT INTO contact_attempts (contact_id, n, org_id, campaign_id, number, call_id, began_at)
		SELECT id, 2, org_id, campaign_id, number, 'call_y', now() FROM contacts WHERE org_id = $1 ORDER BY id LIMIT 1`)
	if hours := dashtest.Read[string](b, "document.querySelector('#h-hours').parentNode.innerHTML"); !strings.Contains(hours, "2 dialed, 2 answered by a person") {
		t.Errorf("hours with an active call: %s", hours)
	}
	b.Press("Pause")
	if text := b.Text(); !strings.Contains(text, "Paused: no new calls.") || status(t, h, id) != "paused" {
		t.Errorf("the campaign is %s; the page says %s", status(t, h, id), text)
	}
	report := dashtest.Read[string](b, `fetch(document.querySelector("a[href*='format=csv']").href).then((r) => r.text())`)
	if !strings.Contains(report, "+12125550101") || !strings.Contains(report, "phone_invalid") || !strings.Contains(report, "var:City") || strings.Contains(report, "Backup") {
		t.Errorf("the report is %s", report)
	}
	b.Press("Resume")
	if got := status(t, h, id); got != "running" {
		t.Errorf("after resume: %s", got)
	}
	b.Press("Cancel campaign")
	b.Press("Cancel campaign")
	if got := status(t, h, id); got != "cancelled" {
		t.Errorf("after cancel: %s", got)
	}
	if faults := b.Faults(); len(faults) > 0 {
		t.Errorf("%q", faults)
	}
	if log := h.Text(t, "SELECT string_agg(action, ' ' ORDER BY id) FROM audit_log WHERE action LIKE 'campaign.%'"); log != "campaign.create campaign.launch campaign.pause campaign.resume campaign.cancel" {
		t.Errorf("the audit log has %s", log)
	}
}

// TestCallInBrowser checks that a click seeks the recording, the current line is marked, and a
// delivery is replayed.
func TestCallInBrowser(t *testing.T) {
	h := dashtest.New(t)
	h.Furnish(t, "sales")
	b := h.Chrome(t)
	b.SignIn("oscar")
	b.Go("calls")
	b.Fill("[name=to_number]", "202-555-0123")
	b.Press("Search")
	b.Go("calls/call_1")
	b.Until("document.querySelector('audio').readyState > 0")
	if seconds := dashtest.Read[float64](b, "document.querySelector('audio').duration"); seconds != 2 {
		t.Errorf("the recording has %v s", seconds)
	}
	b.Run("document.querySelector('#transcript button').click()")
	b.Until("document.querySelector('audio').currentTime >= 1")
	b.Until("document.querySelector('#transcript li').getAttribute('aria-current') === 'true'")
	if text := b.Text(); !strings.Contains(text, "The callee hung up.") || !strings.Contains(text, "interrupted by the caller · complete sentence") || !strings.Contains(text, "INVITE sip:") || !strings.Contains(text, "12 packets from other addresses") {
		t.Errorf("the page says %s", text)
	}
	b.Press("Replay call_ended to https://hooks.example.com/…")
	if text := b.Text(); !strings.Contains(text, "Delivery queued again") {
		t.Errorf("the page says %s", text)
	}
	if state := h.Text(t, "SELECT state FROM webhook_deliveries WHERE id = 'evt_1'"); state != "pending" {
		t.Errorf("the delivery is %s", state)
	}
	if faults := b.Faults(); len(faults) > 0 {
		t.Errorf("%q", faults)
	}
}

// TestWaveform checks that the browser draws the waveform of a compressed recording, that the page says so if it cannot,
// and that a download has the name of its format. The browser recognizes the format, whatever the name says.
func TestWaveform(t *testing.T) {
	h := dashtest.New(t)
	h.Furnish(t, "sales")
	const key = "recordings/call_1.opus"
	h.Exec(t, "UPDATE calls SET recording_key = $1 WHERE id = 'call_1'", key)
	store := func(audio []byte) {
		t.Helper()
		if err := h.Dashboard.Bucket.Put(t.Context(), key, bytes.NewReader(audio)); err != nil {
			t.Fatal(err)
		}
	}
	second := make([]byte, 8000*recorder.SampleLen)
	for i := range second {
		second[i] = byte(i * 7)
	}
	store(append(recorder.Header(8000, uint32(len(second))), second...))
	b := h.Chrome(t)
	b.SignIn("vera")
	b.Go("calls/call_1")
	b.Until("document.querySelector('svg.lanes.has-wave')")
	if name := dashtest.Read[string](b, "document.querySelector('a[download]').download"); name != "call_1.opus" {
		t.Errorf("the download is named %s", name)
	}
	store([]byte("not audio"))
	b = h.Chrome(t) // without the first recording in its cache
	b.SignIn("vera")
	b.Go("calls/call_1")
	b.Until("!document.querySelector('[data-no-wave]').hidden && !document.querySelector('svg.lanes.has-wave')")
}

// TestUploadInBrowser checks that an upload shows its progress, a rejected file its reason, and
// an accepted one a notice on the next page.
func TestUploadInBrowser(t *testing.T) {
	h := dashtest.New(t)
	b := h.Chrome(t)
	b.SignIn("oscar")
	b.Go("do-not-call/upload")
	send := func(text, until string) {
		t.Helper()
		b.Run(`(() => { const file = new DataTransfer();
			file.items.add(new File([` + text + `], "numbers.txt"));
			document.querySelector("[name=file]").files = file.files;
			document.querySelector("form.form .button.first").click(); })()`)
		b.Until("document.readyState === 'complete' && document.body.innerText.includes('" + until + "')")
	}
	send(`"nonsense 1\n"`, "not a list of numbers")
	if text := b.Text(); !strings.Contains(text, "Upload list") {
		t.Errorf("the page says %s", text)
	}
	b.Run(`window.sends = XMLHttpRequest.prototype.send; window.broken = 0;
		XMLHttpRequest.prototype.send = function () {
			broken++;
			this.upload.dispatchEvent(new ProgressEvent("progress", {lengthComputable: true, loaded: 5, total: 10}));
			this.dispatchEvent(new ProgressEvent("error"));
		}`)
	send(`"12125550001\n"`, "Connection lost")
	if n := dashtest.Read[int](b, "broken"); n != 1 {
		t.Errorf("%d requests were sent", n)
	}
	b.Run(`document.querySelector(".sending button").click()`)
	b.Until("broken === 2 && document.querySelectorAll('.sending button').length === 1")
	b.Run(`XMLHttpRequest.prototype.send = sends`)
	h.Exec(t, "UPDATE operator_sessions SET seen_at = seen_at - interval '1 day'")
	send(`"rubbish 1\n".repeat(100000)`, "Sign in in another tab") // a list that is too large: nothing of it is sent
	if at := dashtest.Read[string](b, "location.pathname"); !strings.HasSuffix(at, "/do-not-call/upload") {
		t.Errorf("the address is %s", at)
	}
	h.Exec(t, "UPDATE operator_sessions SET seen_at = now()")
	b.Run(`document.querySelector(".sending button").click()`)
	b.Until("document.readyState === 'complete' && document.body.innerText.includes('rubbish')")
	b.Run(`window.shown = []; new MutationObserver(() => shown.push(document.querySelector(".sending span").textContent)).observe(document.querySelector(".sending"), {subtree: true, childList: true, characterData: true});
		addEventListener("pagehide", () => sessionStorage.setItem("shown", shown.join("|")))`)
	send(`Array.from({length: 20000}, (_, i) => "1212" + String(5550000 + i).padStart(7, "0") + "\n").join("")`, "20,000 numbers added")
	if shown := dashtest.Read[string](b, "sessionStorage.getItem('shown') ?? ''"); !strings.Contains(shown, "Processing") {
		t.Errorf("progress shown: %q", shown)
	}
	if faults := b.Faults(); len(faults) > 0 {
		t.Errorf("%q", faults)
	}
}

// TestHangUpInBrowser checks that a new call appears on the live page, opens in the side panel, which follows it, and is
// hung up there.
func TestHangUpInBrowser(t *testing.T) {
	h := dashtest.New(t)
	h.AddSales(t, "", true)
	startNode(t, h)
	b := h.Chrome(t)
	b.SignIn("oscar")
	b.Go("live")
	b.Until("document.body.innerText.includes('No active calls')")
	admitter := &admission.Controller{Pool: h.DB.Pool, Store: h.Dashboard.Store}
	place := func(number string) control.Call {
		c, err := admitter.Place(t.Context(), h.Acme, admission.Order{Agent: "sales", To: number}, func(*db.Batch, control.Call) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	call := place("+12025550123")
	b.Until("document.querySelector('#calls tbody').innerText.includes('Hello there.')")
	b.Run("window.stays = true; document.querySelector('#calls td').click()") // anywhere on the row
	b.Until("document.querySelector('#panel svg.bar') && document.querySelector('#panel').innerText.includes('Hello there.')")
	b.Run(`document.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }))`)
	b.Until("!document.querySelector('.call-panel') && document.activeElement.id.startsWith('row-')")
	b.Run("document.activeElement.click()")
	b.Until("stays && document.activeElement.matches('#panel h2') && document.querySelector('#calls tr.chosen') && location.search.includes('call=')")
	b.Run(`document.querySelector("#panel summary").click()`)
	b.Until("document.querySelector('#panel .sure').open")
	// An update during a press must not replace the button. The press moves the focus.
	b.Run(`document.querySelector("#panel summary").focus();
		window.other = new EventSource(document.querySelector("[data-stream]").dataset.stream + location.search);
		other.addEventListener("calls", (e) => { window.arrived = e.data.includes("555 0124"); })`)
	release := b.Hold(`[...document.querySelectorAll("#panel button")].find((e) => e.textContent.trim() === "Yes, hang up")`)
	place("+12025550124")
	b.Until("arrived")
	b.Until("held.isConnected && !document.querySelector('#calls tbody').innerText.includes('555 0124')")
	release()
	b.Until("document.querySelector('#calls tbody').innerText.includes('555 0124') && document.querySelector('#panel .state').textContent === 'ended'")
	after, err := h.Dashboard.Store.Call(t.Context(), h.Acme, call.ID)
	if err != nil || after.Status != control.Ended || after.Reason != "api_hangup" {
		t.Errorf("the call is %s, %s, %v", after.Status, after.Reason, err)
	}
	if faults := b.Faults(); len(faults) > 0 {
		t.Errorf("%q", faults)
	}
}

// TestPauseAllInBrowser pauses all campaigns from the Live page in two steps.
func TestPauseAllInBrowser(t *testing.T) {
	h := dashtest.New(t)
	id := h.Furnish(t, "sales")["campaigns"]
	b := h.Chrome(t)
	b.SignIn("oscar")
	b.Press("Live")
	b.Press("Stop calls")
	if text := b.Text(); !strings.Contains(text, "1 campaign will be paused.") || status(t, h, id) != "running" {
		t.Fatalf("the first step: the campaign is %s, and the page says %s", status(t, h, id), text)
	}
	b.Press("Pause 1 campaign")
	if text := b.Text(); !strings.Contains(text, "1 campaign paused. Active calls continue.") || strings.Contains(text, "just now") || status(t, h, id) != "paused" {
		t.Errorf("the campaign is %s, and the page says %s", status(t, h, id), text)
	}
	b.Press("sales") // its page
	b.Press("Resume")
	if faults := b.Faults(); len(faults) > 0 || status(t, h, id) != "running" {
		t.Errorf("%q, %s", faults, status(t, h, id))
	}
}

// startNode starts a node whose calls are answered by a silent callee.
func startNode(t *testing.T, h *dashtest.Env) {
	t.Helper()
	listener := &db.Listener{Pool: h.DB.Pool}
	n := &control.Node{
		ID: control.NodeID{Owner: control.NewID("node_", time.Now()), Home: "here"}, Queue: h.Dashboard.Store, Lease: 6 * time.Second, Poll: 50 * time.Millisecond,
		Wake: listener.Subscribe(store.ChannelQueue), WakeEnds: listener.Subscribe(store.ChannelEnds),
		Runner: &control.Runner{Attempts: h.Dashboard.Store, Dialer: silent{}, Talker: silent{}, Live: &control.Live{}, Margin: time.Second},
	}
	ctx, cancel := context.WithCancel(t.Context())
	var over sync.WaitGroup
	over.Go(func() { listener.Run(ctx) })
	n.Start(ctx)
	t.Cleanup(func() {
		now, done := context.WithCancel(context.Background())
		done()
		n.Stop(now)
		cancel()
		over.Wait()
	})
}

// silent is a carrier that answers, an agent that greets and waits, and their leg.
type silent struct{}

func (silent) Dial(_ context.Context, _ media.Target, progress func(media.Progress)) (media.Leg, error) {
	progress(media.Sent)
	progress(media.Ringing)
	return silent{}, nil
}

func (silent) Talk(ctx context.Context, _ media.Leg, b pipeline.SessionConfig) (pipeline.Outcome, error) {
	b.Observer.OnLine(pipeline.Line{Role: pipeline.RoleAgent, Text: "Hello there.", End: time.Second})
	b.Observer.OnTurn(pipeline.Turn{Spans: []pipeline.Span{{Phase: pipeline.PhaseTTS, For: 120 * time.Millisecond}, {Phase: pipeline.PhaseOut, For: 10 * time.Millisecond}}, Ending: pipeline.Answered})
	<-ctx.Done()
	return pipeline.Outcome{Reason: pipeline.Stopped}, nil
}

func (silent) Rate() int                   { return 8000 }
func (silent) ReadFrame(media.Frame) error { return io.EOF }
func (silent) Play(media.Feed)             {}
func (silent) Digits() <-chan rune         { return nil }
func (silent) Hangup(media.Cause) error    { return nil }
func (silent) Cause() media.Cause          { return media.LocalHangup }

// TestNoStreamWhileStopping checks that a server that is about to stop accepts no stream.
func TestNoStreamWhileStopping(t *testing.T) {
	h := dashtest.New(t, func(h *dashtest.Env) { h.Dashboard.Stopping = func() bool { return true } })
	if a := h.SignIn(t, "vera").Get("live/events"); a.Status != http.StatusServiceUnavailable {
		t.Errorf("%d", a.Status)
	}
}
