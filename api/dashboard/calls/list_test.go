package calls_test

import (
	"encoding/csv"
	"fmt"
	"html"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/parley-voice/parley/api/dashboard/dashtest"
)

// TestSearchByWord finds a call by a word, and shows the line with the word marked.
func TestSearchByWord(t *testing.T) {
	h := dashtest.New(t)
	h.Furnish(t, "sales")
	h.Say(t, "call_1", "agent: We ship the atlas on Friday.", "caller: Good, <b>thank</b> you.")
	b := h.SignIn(t, "vera")
	a := b.Get("calls?q=atlases")
	for _, want := range []string{"We ship the <mark>atlas</mark> on Friday.", "/calls/call_1?q=atlases#line-0\""} {
		if !strings.Contains(a.Body, want) {
			t.Errorf("no %q in %s", want, a.Body)
		}
	}
	if a = b.Get("calls?q=thank"); !strings.Contains(a.Body, "&lt;b&gt;<mark>thank</mark>&lt;/b&gt;") {
		t.Errorf("a line with markup: %s", a.Text())
	}
	if a = b.Get("calls/call_1?q=atlases"); !strings.Contains(a.Body, `/calls?q=atlases"`) || !strings.Contains(a.Body, `id="line-0"`) {
		t.Errorf("the page of the call: %s", a.Body)
	}
	for query, want := range map[string]string{"zebra": "No calls match", "the": "Said: enter at least one word", strings.Repeat("x", 201): "Said: use at most 200 characters"} {
		if a = b.Get("calls?q=" + query); a.Status != http.StatusOK || !strings.Contains(a.Text(), want) {
			t.Errorf("%s: %d %s", query, a.Status, a.Text())
		}
	}
}

// TestRanges lists the calls of a range of days in the organization's time zone.
func TestRanges(t *testing.T) {
	h := dashtest.New(t)
	h.Furnish(t, "sales")
	h.Exec(t, "UPDATE organizations SET timezone = 'Asia/Almaty' WHERE id = $1", h.Acme)
	const midnight = "date_trunc('day', now(), 'Asia/Almaty')"
	b := h.SignIn(t, "vera")
	for at, want := range map[string]string{
		midnight: "today week month", midnight + " - interval '1 s'": "yesterday week month", midnight + " - interval '6 days'": "week month",
		midnight + " - interval '6 days 1 s'": "month", midnight + " - interval '29 days'": "month", midnight + " - interval '29 days 1 s'": "",
	} {
		h.Exec(t, "UPDATE calls SET created_at = "+at)
		var in []string
		for _, days := range []string{"today", "yesterday", "week", "month"} {
			if strings.Contains(b.Get("calls?range="+days).Body, "/calls/call_1?range="+days) {
				in = append(in, days)
			}
		}
		if got := strings.Join(in, " "); got != want {
			t.Errorf("%s is in %q, want %q", at, got, want)
		}
	}
	a := b.Get("calls?range=today&created_after=2020-01-01T00%3A00&status=ended")
	if !strings.Contains(a.Body, "/calls/call_1?") || strings.Contains(a.Body, `name="range"`) || !strings.Contains(a.Body, `/calls?range=week&amp;status=ended"`) {
		t.Errorf("own dates do not take precedence: %s", a.Body)
	}
	if a = b.Get("calls?range=century"); !strings.Contains(a.Text(), "Date: choose one of the ranges") {
		t.Errorf("an unknown range: %s", a.Text())
	}
}

// TestColumns chooses the columns of the list. The filters stay.
func TestColumns(t *testing.T) {
	h := dashtest.New(t)
	h.Furnish(t, "sales")
	b := h.SignIn(t, "vera")
	if text := b.Get("calls").Text(); !strings.Contains(text, "Number State Agent Started Duration Response p95 Cost Score Tags Recording End reason") || !strings.Contains(text, "0.0251 USD") {
		t.Errorf("the usual columns: %s", text)
	}
	a := b.Post("calls/columns", "filters", "?status=ended", "column", "campaign", "column", "sentiment", "column", "nonsense")
	if a.Status != http.StatusSeeOther || !strings.HasSuffix(a.Location(), "/calls?status=ended") {
		t.Fatalf("%d %s", a.Status, a.Location())
	}
	a = b.Get("calls")
	if text := a.Text(); !strings.Contains(text, "Number Campaign Sentiment ") || strings.Contains(text, "0.0251") {
		t.Errorf("chosen columns: %s", text)
	}
	id := h.Text(t, "SELECT campaign_id FROM calls WHERE id = 'call_1'")
	h.Exec(t, "UPDATE campaigns SET name = 'Spring renewals' WHERE id = $1", id)
	if text := b.Get("calls").Text(); !strings.Contains(text, "Spring renewals") || strings.Contains(text, id) {
		t.Errorf("the list does not name the campaign: %s", text)
	}
	if text := b.Get("calls/call_1").Text(); !strings.Contains(text, "Campaign Spring renewals") || strings.Contains(text, id) {
		t.Errorf("the page of a call does not name the campaign: %s", text)
	}
	if a = b.Post("calls/columns", "filters", "//evil.example"); strings.Contains(a.Location(), "evil") {
		t.Errorf("leads to %s", a.Location())
	}
}

// TestExport exports the calls that the search finds.
func TestExport(t *testing.T) {
	h := dashtest.New(t)
	h.Furnish(t, "=cmd()")
	h.FurnishFigures(t, 1200)
	a := h.SignIn(t, "vera").Get("calls/export?status=ended%2Cfailed")
	lines, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(a.Body, "\ufeff"))).ReadAll()
	if want := h.Count(t, "SELECT count(*) FROM calls WHERE status IN ('ended', 'failed') AND org_id = $1", h.Acme); err != nil || len(lines) != want+1 {
		t.Fatalf("%d lines of %d calls, %v", len(lines), want, err)
	}
	seen, responses := map[string]bool{}, 0
	for _, l := range lines[1:] {
		seen[l[0]] = true
		if l[15] != "" {
			responses++
		}
		if l[0] == "call_1" && (l[8] != "'=cmd()" || l[16] != "0.0251" || l[17] != "USD" || l[6] != "12025550123") {
			t.Errorf("%q", l)
		}
	}
	if len(seen) != len(lines)-1 || responses < 100 {
		t.Errorf("%d different calls, %d with response times", len(seen), responses)
	}
	if a = h.SignIn(t, "gus").Get("calls/export"); strings.Count(a.Body, "\n") != 1 {
		t.Errorf("another organization exports %s", a.Body)
	}
	if a = h.SignIn(t, "vera").Get("calls/export?q=the"); a.Status != http.StatusUnprocessableEntity {
		t.Errorf("%d %s", a.Status, fmt.Sprint(a.Text()))
	}
}

// TestSlowestFirst lists the calls with a response time by the slowest one, page by page, and moves from call to call.
func TestSlowestFirst(t *testing.T) {
	h := dashtest.New(t)
	h.Furnish(t, "sales")
	h.FurnishFigures(t, 400)
	want := strings.Fields(h.Text(t, `SELECT string_agg(c.id, ' ' ORDER BY (SELECT max((item->'metrics'->>'turn_ms')::float8) FROM call_turns WHERE call_id = c.id) DESC, c.id DESC)
		FROM calls c WHERE id = 'call_1' OR answered_by = 'human' AND right(id, 1) <> '7'`))
	b := h.SignIn(t, "vera")
	link := regexp.MustCompile(`<a class="row" href="[^"]*/calls/(call_[^"?]*)\?order=slowest#slowest"`)
	next := regexp.MustCompile(`<a class="button" href="([^"]*)" rel="next">`)
	var got []string
	for path := "calls?order=slowest"; path != ""; {
		page := b.Get(path).Body
		for _, m := range link.FindAllStringSubmatch(page, -1) {
			got = append(got, m[1])
		}
		path = ""
		if m := next.FindStringSubmatch(page); m != nil {
			path = html.UnescapeString(m[1])
		}
	}
	if len(want) < 105 || !slices.Equal(got, want) {
		t.Fatalf("%d calls, want %d: %q, want %q", len(got), len(want), got[:min(len(got), 3)], want[:3])
	}
	for from, to := range map[string]string{want[0] + "/next": want[1], want[70] + "/previous": want[69], want[0] + "/previous": want[0], want[len(want)-1] + "/next": want[len(want)-1]} {
		if a := b.Get("calls/" + from + "?order=slowest"); !strings.HasSuffix(a.Location(), "/calls/"+to+"?order=slowest#slowest") {
			t.Errorf("%s leads to %q, want %s", from, a.Location(), to)
		}
	}
	page := b.Get("calls?order=slowest&agent_id=agt_renewals&range=month")
	if text := page.Text(); !strings.Contains(text, "Slowest response") || !strings.Contains(page.Body, `aria-sort="descending"`) {
		t.Errorf("the list of an agent: %s", text)
	}
	h.Exec(t, "UPDATE calls SET erased_at = now() WHERE id = $1", want[0]) // the statistics still have it
	if m := link.FindStringSubmatch(b.Get("calls?order=slowest").Body); m == nil || m[1] != want[1] {
		t.Errorf("an erased call is listed: %q", m)
	}
}
