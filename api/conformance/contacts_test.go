package conformance_test

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xuri/excelize/v2"
)

// TestWithdrawal covers POST /v1/contacts/withdraw.
func TestWithdrawal(t *testing.T) {
	checkAll(t, "CW", []statement{
		{1, "the response always has five lists", fiveLists},
		{2, "pending and awaiting contacts are suppressed with withdrawn_by_client", withdraws},
		{3, "a number as text or integer matches by its last ten digits in all live campaigns, duplicates included", lastTenDigits},
		{4, "drafts and closed campaigns are not changed", onlyLiveCampaigns},
		{5, "a contact may be withdrawn by its id", byContactID},
		{6, "contacts that are in a call, done, exhausted or suppressed are not_withdrawable with the reason", notWithdrawable},
		{7, "a withdrawn contact is already_withdrawn and listed once per request", alreadyWithdrawn},
		{8, "unreadable addresses are listed in invalid, unmatched ones in not_found, as sent; neither fails the request", invalidAndUnknown},
		{9, "a request has 1 to 1000 addresses: addresses_required, addresses_too_many", addressBounds},
		{10, "no Idempotency-Key is required", withdrawalNeedsNoKey},
		{11, "only a new batch adds a withdrawn number again", batchAfterWithdrawal},
	})
}

// TestImports covers /v1/imports.
func TestImports(t *testing.T) {
	checkAll(t, "CI", []statement{
		{1, "GET /v1/imports/{id} returns the import with its screen", readImport},
		{2, "the report has a line per row; the default format is CSV", reportLines},
		{3, "the xlsx report has the same cells, with phones as text", reportSheet},
		{4, "only=dnc_match returns the rows on do-not-call lists", reportMatches},
		{5, "errors are reported in the documented order", orderOfReportChecks},
		{6, "cells that a spreadsheet would run as formulas are escaped, except phones", escapedCells},
	})
}

func (o *organization) withdraw(t *testing.T, body string) map[string]any {
	t.Helper()
	return o.do(t, "POST", "/v1/contacts/withdraw", body).want(t, 200).object(t)
}

// listLengths returns the length of each list of a withdrawal.
func listLengths(w map[string]any) string {
	var all []string
	for _, name := range []string{"withdrawn", "already_withdrawn", "not_withdrawable", "invalid", "not_found"} {
		all = append(all, fmt.Sprint(len(w[name].([]any))))
	}
	return strings.Join(all, " ")
}

func fiveLists(t *testing.T, s *service) {
	o := s.empty(t)
	w := o.withdraw(t, `{"phones":["2125550101"]}`)
	if got := slices.Sorted(maps.Keys(w)); !slices.Equal(got, []string{"already_withdrawn", "invalid", "not_found", "not_withdrawable", "withdrawn"}) || listLengths(w) != "0 0 0 0 1" {
		t.Errorf("%v", w)
	}
}

func withdraws(t *testing.T, s *service) {
	o := usOrganization(t, s)
	c := o.campaign(t, confirmed, `"planned_calls":[{"phone":"2125550101"},{"phone":"2125550102"},{"phone":"2125550103"}]`)
	o.setContact(t, "+12125550102", "state = 'awaiting'")
	w := o.withdraw(t, `{"phones":["2125550101","2125550102"]}`)
	if listLengths(w) != "2 0 0 0 0" {
		t.Errorf("%v", w)
	}
	x := w["withdrawn"].([]any)[0].(map[string]any)
	if x["campaign_id"] != c["campaign_id"] || !strings.HasPrefix(fmt.Sprint(x["contact_id"]), "con_") || !strings.HasPrefix(fmt.Sprint(x["phone"]), "+1212555") || x["reason"] != nil {
		t.Errorf("%v", x)
	}
	hasMembers(t, o.progress(t, c), map[string]any{"by_state": map[string]any{"pending": 1, "suppressed": 2}, "suppressed_reasons": map[string]any{"withdrawn_by_client": 2}})
}

func lastTenDigits(t *testing.T, s *service) {
	o := usOrganization(t, s)
	for _, sent := range []string{`"2125550101"`, `2125550101`, `"+1 (212) 555-0101"`, `12125550101`, `"00 7 212 555 01 01"`} {
		a, b := o.campaign(t, confirmed, oneRow), o.campaign(t, confirmed, oneRow)
		o.add(t, a, "k", oneCall).want(t, 201)
		o.act(t, b, "pause").want(t, 200)
		later := o.campaign(t, confirmed, oneRow, fmt.Sprintf(`"starts_at":%d`, epoch(time.Hour)))
		for _, name := range []string{"phones", "numbers"} {
			w := o.withdraw(t, fmt.Sprintf(`{%q:[%s]}`, name, sent))
			if want := map[string]int{"phones": 4, "numbers": 0}[name]; len(w["withdrawn"].([]any)) != want {
				t.Errorf("%s by %s: %v", sent, name, w)
			}
		}
		for _, c := range []map[string]any{a, b, later} {
			o.act(t, c, "cancel")
		}
	}
}

func onlyLiveCampaigns(t *testing.T, s *service) {
	o := usOrganization(t, s)
	draft, closed := o.campaign(t, oneRow), o.campaign(t, oneRow, confirmed)
	o.act(t, closed, "cancel").want(t, 200)
	if w := o.withdraw(t, `{"phones":["2125550101"]}`); listLengths(w) != "0 0 0 0 1" {
		t.Errorf("%v", w)
	}
	for _, c := range []map[string]any{draft, closed} {
		hasMembers(t, o.progress(t, c), map[string]any{"by_state": map[string]any{"pending": 1}})
	}
}

func (o *organization) contact(t *testing.T, number string) (id string) {
	t.Helper()
	if err := o.s.db.Pool.QueryRow(t.Context(), "SELECT id FROM contacts WHERE org_id = $1 AND number = $2", o.id, number).Scan(&id); err != nil {
		t.Fatal(err)
	}
	return id
}

func byContactID(t *testing.T, s *service) {
	o, other := usOrganization(t, s), usOrganization(t, s)
	o.campaign(t, oneRow, confirmed)
	other.campaign(t, oneRow, confirmed)
	id, foreign := o.contact(t, "+12125550101"), other.contact(t, "+12125550101")
	w := o.withdraw(t, fmt.Sprintf(`{"contact_ids":[%q,%q,"con_00000000000000000000000000","x"],"phones":["2125550101"]}`, id, foreign))
	if listLengths(w) != "1 0 0 0 3" || w["withdrawn"].([]any)[0].(map[string]any)["contact_id"] != id || w["not_found"].([]any)[0] != foreign {
		t.Errorf("%v", w)
	}
}

func notWithdrawable(t *testing.T, s *service) {
	o := usOrganization(t, s)
	c := o.campaign(t, confirmed, `"planned_calls":[{"phone":"2125550100"},{"phone":"2125550101"},{"phone":"2125550102"},{"phone":"2125550103"},{"phone":"+14165550104"}]`)
	o.setContact(t, "+12125550101", "state = 'in_call'")
	o.setContact(t, "+12125550102", "state = 'done'")
	o.setContact(t, "+12125550103", "state = 'exhausted'")
	w := o.withdraw(t, `{"phones":["2125550101","2125550102","2125550103","4165550104"]}`)
	want := map[string]string{"+12125550101": "in_call", "+12125550102": "done", "+12125550103": "exhausted", "+14165550104": "already_suppressed"}
	for _, x := range w["not_withdrawable"].([]any) {
		m := x.(map[string]any)
		if m["reason"] != want[m["phone"].(string)] || m["campaign_id"] != c["campaign_id"] || m["contact_id"] == "" {
			t.Errorf("%v", m)
		}
	}
	if listLengths(w) != "0 0 4 0 0" {
		t.Errorf("%v", w)
	}
	o.setContact(t, "+12125550101", "state = 'pending'")
	hasMembers(t, o.progress(t, c), map[string]any{"suppressed_reasons": map[string]any{"geo_rejected": 1}})
}

func alreadyWithdrawn(t *testing.T, s *service) {
	o := usOrganization(t, s)
	o.campaign(t, confirmed, `"planned_calls":[{"phone":"2125550101"},{"phone":"2125550102"}]`)
	id := o.contact(t, "+12125550101")
	body := fmt.Sprintf(`{"phones":["2125550101","+12125550101",12125550101],"contact_ids":[%q,%[1]q]}`, id)
	if w := o.withdraw(t, body); listLengths(w) != "1 0 0 0 0" {
		t.Errorf("%v", w)
	}
	if w := o.withdraw(t, body); listLengths(w) != "0 1 0 0 0" || w["already_withdrawn"].([]any)[0].(map[string]any)["contact_id"] != id {
		t.Errorf("%v", w)
	}
}

func invalidAndUnknown(t *testing.T, s *service) {
	o := usOrganization(t, s)
	o.campaign(t, oneRow, confirmed)
	a := o.do(t, "POST", "/v1/contacts/withdraw", `{"phones":["", "call me", true, null, {"phone":"2125550101"}, 1.5, [1], -5, "555", 555, 12125559999000000017, "2125550101"],"contact_ids":["", " ", 7, null, "con_x"]}`).want(t, 200)
	w := a.object(t)
	if listLengths(w) != "1 0 0 12 4" {
		t.Errorf("%s", a.body)
	}
	for _, part := range []string{`"invalid":["","call me",true,null,{"phone":"2125550101"},1.5,[1],-5,""," ",7,null]`, `"not_found":["555",555,12125559999000000017,"con_x"]`} {
		if !bytes.Contains(a.body, []byte(part)) {
			t.Errorf("no %s in %s", part, a.body)
		}
	}
	a = o.do(t, "POST", "/v1/contacts/withdraw", `{"phones":["\u0000","555\u0000","212\u00005550101"],"contact_ids":["con_\u0000",{"\u0000":1}]}`).want(t, 200)
	if w = a.object(t); listLengths(w) != "0 1 0 2 2" {
		t.Errorf("%s", a.body)
	}
	for _, part := range []string{`"invalid":["\u0000",{"\u0000":1}]`, `"not_found":["555\u0000","con_\u0000"]`} {
		if !bytes.Contains(a.body, []byte(part)) {
			t.Errorf("no %s in %s", part, a.body)
		}
	}
}

func addressBounds(t *testing.T, s *service) {
	o := s.empty(t)
	for _, body := range []string{`{}`, `{"phones":[]}`, `{"phones":null,"contact_ids":[]}`} {
		wantError(t, o.do(t, "POST", "/v1/contacts/withdraw", body), 422, "addresses_required")
	}
	many := strings.TrimSuffix(strings.Repeat(`"x",`, 600), ",")
	wantError(t, o.do(t, "POST", "/v1/contacts/withdraw", `{"phones":[`+many+`],"contact_ids":[`+many+`]}`), 422, "addresses_too_many")
	thousand := strings.TrimSuffix(strings.Repeat(`"2125550101",`, 1000), ",")
	o.do(t, "POST", "/v1/contacts/withdraw", `{"phones":[`+thousand+`]}`).want(t, 200)
	for _, body := range []string{`{"phones":"2125550101"}`, `{"contact_ids":7}`, `[]`, `{`} {
		wantError(t, o.do(t, "POST", "/v1/contacts/withdraw", body), 422, "invalid_request")
	}
}

func withdrawalNeedsNoKey(t *testing.T, s *service) {
	s.empty(t).do(t, "POST", "/v1/contacts/withdraw", `{"phones":[1]}`).want(t, 200)
}

func batchAfterWithdrawal(t *testing.T, s *service) {
	o := usOrganization(t, s)
	c := o.campaign(t, oneRow, confirmed, fmt.Sprintf(`"accepts_call_additions":true,"ends_at":%d`, epoch(week)))
	o.withdraw(t, `{"phones":["2125550101"]}`)
	o.add(t, c, "k", oneCall).want(t, 201)
	hasMembers(t, o.progress(t, c), map[string]any{"by_state": map[string]any{"pending": 1, "suppressed": 1}})
	if w := o.withdraw(t, `{"phones":["2125550101"]}`); listLengths(w) != "1 1 0 0 0" {
		t.Errorf("%v", w)
	}
}

func readImport(t *testing.T, s *service) {
	o := usOrganization(t, s)
	for _, more := range []string{confirmed, `"dnc":"block"`} {
		c := o.campaign(t, oneRow, more)
		want := c["import"].(map[string]any)
		got := o.do(t, "GET", fmt.Sprintf("/v1/imports/%v", want["import_id"]), "").want(t, 200).object(t)
		// Each read screens a draft again.
		got["dnc_screen"].(map[string]any)["screened_at"], want["dnc_screen"].(map[string]any)["screened_at"] = 0, 0
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
	wantError(t, o.do(t, "GET", "/v1/imports/imp_00000000000000000000000000", ""), 404, "import_not_found")
}

func (o *organization) report(t *testing.T, id any, query string) [][]string {
	t.Helper()
	a := o.do(t, "GET", fmt.Sprintf("/v1/imports/%v/report%s", id, query), "").want(t, 200)
	if a.header.Get("Content-Type") != "text/csv; charset=utf-8" || a.header.Get("Content-Disposition") != fmt.Sprintf(`attachment; filename="%v.csv"`, id) {
		t.Errorf("%v", a.header)
	}
	text, marked := bytes.CutPrefix(a.body, []byte("\xef\xbb\xbf"))
	all, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil || !marked {
		t.Fatalf("%v: %s", err, a.body)
	}
	return all
}

const manyRows = `"planned_calls":[{"phone":"2125550101","name":"Ada","variables":{"city":"Bern","a":"1"}},{"phone":"x"},{"phone":"+14165550101"},{"phone":"2125550102","timezone":"America/New_York"},{"phone":"+1 212 555 0102"}],"duplicate_action":"keep_first"`

func reportLines(t *testing.T, s *service) {
	o := usOrganization(t, s)
	c := o.campaign(t, confirmed, manyRows)
	id := c["import"].(map[string]any)["import_id"]
	for _, query := range []string{"", "?format=csv"} {
		all := o.report(t, id, query)
		if got := strings.Join(all[0], ","); got != "row,phone,phone_normalized,name,timezone,status,codes,messages,contact_state,registry,var:a,var:city" {
			t.Errorf("%s", got)
		}
		var got []string
		for _, line := range all[1:] {
			line[7] = "" // messages may change at any time
			got = append(got, strings.Join(line, "|"))
		}
		want := []string{
			"1|2125550101|+12125550101|Ada||accepted|||pending||1|Bern",
			"2|x||||rejected|phone_invalid|||||",
			"3|+14165550101|+14165550101|||warned|phone_country_unsupported||suppressed|||",
			"4|2125550102|+12125550102||America/New_York|accepted|||pending|||",
			"5|'+1 212 555 0102|+12125550102|||duplicate|duplicate_phone|||||",
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s", strings.Join(got, "\n"))
		}
	}
}

func reportSheet(t *testing.T, s *service) {
	o := usOrganization(t, s)
	id := o.campaign(t, confirmed, manyRows)["import"].(map[string]any)["import_id"]
	a := o.do(t, "GET", fmt.Sprintf("/v1/imports/%v/report?format=xlsx", id), "").want(t, 200)
	if got := a.header.Get("Content-Type"); got != "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet" {
		t.Errorf("%s", got)
	}
	book, err := excelize.OpenReader(bytes.NewReader(a.body))
	if err != nil {
		t.Fatal(err)
	}
	defer book.Close() //nolint:errcheck // its temporary files
	got, err := book.GetRows("Sheet1")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range o.report(t, id, "") {
		line := append(got[i], make([]string, len(want)-len(got[i]))...) // empty cells at the end are omitted
		if !slices.Equal(line, want) {
			t.Errorf("%q, want %q", line, want)
		}
	}
}

func reportMatches(t *testing.T, s *service) {
	o := usOrganization(t, s)
	o.suppress(t, "2125550102")
	rows := `"planned_calls":[{"phone":"2125550101"},{"phone":"2125550102"}]`
	for _, more := range []string{`"dnc":"block"`, `"dnc":"skip",` + confirmed} {
		c := o.campaign(t, rows, more)
		all := o.report(t, c["import"].(map[string]any)["import_id"], "?only=dnc_match")
		if len(all) != 2 || all[1][0] != "2" || all[1][5] != "dnc_match" || all[1][9] != "org_suppression" {
			t.Errorf("%s: %v", more, all)
		}
	}
	c := o.campaign(t, oneRow, confirmed)
	if all := o.report(t, c["import"].(map[string]any)["import_id"], "?only=dnc_match"); len(all) != 1 {
		t.Errorf("%v", all)
	}
}

func orderOfReportChecks(t *testing.T, s *service) {
	o := s.empty(t)
	const path = "/v1/imports/imp_00000000000000000000000000/report"
	for _, bad := range []string{"pdf", "", "CSV"} {
		wantError(t, o.do(t, "GET", path+"?only=x&format="+bad, ""), 422, "report_format_invalid")
	}
	for _, bad := range []string{"x", "", "accepted"} {
		wantError(t, o.do(t, "GET", path+"?only="+bad, ""), 422, "report_filter_invalid")
	}
	wantError(t, o.do(t, "GET", path+"?only=dnc_match&format=xlsx", ""), 404, "import_not_found")
}

func escapedCells(t *testing.T, s *service) {
	o := usOrganization(t, s)
	c := o.campaign(t, confirmed, `"planned_calls":[{"phone":"+12125550101","name":"=1+1","variables":{"v":"@x","w":"-1","x":"+1a"}}]`)
	line := o.report(t, c["import"].(map[string]any)["import_id"], "")[1]
	if got := strings.Join(slices.Concat(line[1:4], line[10:]), " "); got != "+12125550101 +12125550101 '=1+1 '@x '-1 '+1a" {
		t.Errorf("%s", got)
	}
}
