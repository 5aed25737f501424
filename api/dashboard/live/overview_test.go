package live_test

import (
	"encoding/csv"
	"fmt"
	"html"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/parley-voice/parley/api/dashboard/dashtest"
)

var (
	numberLink = regexp.MustCompile(`<a href="([^"]*/calls\?[^"]*)">([^<]*)</a>`)
	chartLink  = regexp.MustCompile(`<a href="([^"]*/calls\?[^"]*)" aria-label="([^"]*)"`)
	rowLink    = regexp.MustCompile(`<th scope="row"><a (class="row" )?href="[^"]*/calls/call_`)
	nextLink   = regexp.MustCompile(`<a class="button" href="([^"]*)" rel="next">`)
	callCount  = regexp.MustCompile(`\n([0-9,]+) calls?(\n|$)`)
)

// countListed counts the calls of a list on all of its pages.
func countListed(t *testing.T, b *dashtest.Browser, path string) (n int) {
	t.Helper()
	for path != "" {
		a := b.Get(path)
		if a.Status != http.StatusOK || strings.Contains(a.Body, `class="refused"`) {
			t.Fatalf("%s: %d %s", path, a.Status, a.Text())
		}
		n += len(rowLink.FindAllString(a.Body, -1))
		next := nextLink.FindStringSubmatch(a.Body)
		path = ""
		if next != nil {
			path = html.UnescapeString(next[1])
		}
	}
	return n
}

// TestNumbersOpenTheirCalls follows each number of the Overview page: the list has as many calls.
func TestNumbersOpenTheirCalls(t *testing.T) {
	h := dashtest.New(t)
	h.Exec(t, "UPDATE organizations SET timezone = 'America/New_York' WHERE id = $1", h.Acme)
	h.Furnish(t, "sales")
	h.FurnishFigures(t, 150)
	b := h.SignIn(t, "vera")
	listed := map[string]int{}
	count := func(href string) int {
		n, ok := listed[href]
		if !ok {
			n = countListed(t, b, html.UnescapeString(href))
			listed[href] = n
		}
		return n
	}
	kinds := map[string]bool{}
	for _, period := range []string{"day", "week", "month"} {
		page := b.Get("overview?period=" + period).Body
		check := func(href, text string) {
			want, err := strconv.Atoi(strings.ReplaceAll(text, ",", ""))
			got := count(href)
			if err == nil && !strings.Contains(href, "response_time") && !strings.Contains(text, ".") {
				if got != want && !strings.Contains(href, "outcome=connected") { // minutes look like a number of calls
					t.Errorf("%s: %d calls, and the page says %s: %s", period, got, text, href)
				}
				return
			}
			if got == 0 {
				t.Errorf("%s: no calls behind %s: %s", period, text, href)
			}
		}
		for _, m := range numberLink.FindAllStringSubmatch(page, -1) {
			check(m[1], m[2])
			for _, kind := range []string{"status", "outcome", "success", "has", "agent_id", "campaign_id=none", "campaign_id=cmp_"} {
				kinds[kind] = kinds[kind] || strings.Contains(m[1], kind)
			}
		}
		for _, m := range chartLink.FindAllStringSubmatch(page, -1) {
			if n := callCount.FindStringSubmatch(html.UnescapeString(m[2])); n != nil {
				check(m[1], n[1])
				kinds["weekday"] = kinds["weekday"] || strings.Contains(m[1], "weekday")
			}
		}
		if !strings.Contains(page, "calls</p>") {
			t.Errorf("%s: no tiles", period)
		}
	}
	for _, kind := range []string{"status", "outcome", "success", "has", "agent_id", "campaign_id=none", "campaign_id=cmp_", "weekday"} {
		if !kinds[kind] {
			t.Errorf("no number has the filter %s: the test is ineffective", kind)
		}
	}
}

// TestConnectedCalls checks the numbers of calls with a conversation, which TestNumbersOpenTheirCalls leaves out.
func TestConnectedCalls(t *testing.T) {
	h := dashtest.New(t)
	h.Furnish(t, "sales")
	h.FurnishFigures(t, 150)
	b := h.SignIn(t, "vera")
	m := regexp.MustCompile(`in <a href="([^"]*outcome=connected[^"]*)">([0-9]+)</a> calls`).FindStringSubmatch(b.Get("overview?period=month").Body)
	if m == nil {
		t.Fatal("no such number")
	}
	if n := countListed(t, b, html.UnescapeString(m[1])); fmt.Sprint(n) != m[2] {
		t.Errorf("%d calls, and the page says %s", n, m[2])
	}
}

// TestOverviewExport checks that the parts of an export add up, and that spreadsheets read names as text.
func TestOverviewExport(t *testing.T) {
	h := dashtest.New(t)
	h.Furnish(t, "sales")
	h.FurnishFigures(t, 150)
	h.Exec(t, "UPDATE campaigns SET name = '=1+1' WHERE id = 'cmp_spring'")
	a := h.SignIn(t, "vera").Get("overview/export?period=month")
	if a.Status != http.StatusOK || !strings.HasPrefix(a.Header.Get("Content-Disposition"), `attachment; filename="overview-month-`) {
		t.Fatalf("%d %v", a.Status, a.Header)
	}
	all, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(a.Body, "\ufeff"))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	column := map[string]int{}
	for i, name := range all[0] {
		column[name] = i
	}
	sums := map[string]int{}
	names := map[string]bool{}
	for _, line := range all[1:] {
		n, fault := strconv.Atoi(line[column["calls"]])
		if fault != nil {
			t.Fatalf("%q: %v", line, fault)
		}
		if cost, currency := line[column["cost"]], line[column["currency"]]; (cost != "") != (currency == "USD") {
			t.Errorf("%s costs %q in %q", line[0], cost, currency)
		}
		sums[line[0]] += n
		names[line[1]] = true
	}
	inPeriod := h.Count(t, "SELECT sum(calls) FROM call_rollups WHERE org_id = $1 AND hour >= (date_trunc('day', now() AT TIME ZONE 'UTC') - interval '29 days') AT TIME ZONE 'UTC'", h.Acme)
	for _, kind := range []string{"period", "time", "weekday and hour", "agent", "campaign"} {
		if sums[kind] != inPeriod || inPeriod == 0 {
			t.Errorf("%s: %d calls, want %d", kind, sums[kind], inPeriod)
		}
	}
	if !names["'=1+1"] || names["=1+1"] || !names["No campaign"] || !names["Deleted agent"] || !names["renewals"] {
		t.Errorf("names: %v", names)
	}
}

// TestFirstRun checks that a new organization sees what to do next, and figures after its first call.
func TestFirstRun(t *testing.T) {
	h := dashtest.New(t)
	b := h.SignIn(t, "ada")
	if to := b.Get("/dashboard").Location(); !strings.HasSuffix(to, "/overview") {
		t.Errorf("the start page is %s", to)
	}
	if text := b.Get("overview").Text(); !strings.Contains(text, "No calls yet") || strings.Contains(text, "done") || strings.Contains(text, "Answer rate") {
		t.Errorf("%s", text)
	}
	h.AddSales(t, "us", true)
	if text := b.Get("overview").Text(); strings.Count(text, " done ") != 2 {
		t.Errorf("%s", text)
	}
	h.Furnish(t, "other")
	if text := b.Get("overview").Text(); strings.Contains(text, "No calls yet") || !strings.Contains(text, "Answer rate – ") {
		t.Errorf("%s", text)
	}
}
