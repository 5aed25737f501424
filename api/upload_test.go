package api_test

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
)

func (h *env) upload(key, more string, parts ...string) response {
	h.t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for i := 0; i+1 < len(parts); i += 2 {
		var err error
		if parts[i] == "campaign" {
			err = form.WriteField("campaign", `{"name":"Spring","agent_id":"sales","calls_per_minute":20`+more+`}`)
		} else {
			w, fault := form.CreateFormFile(parts[i], "rows.csv")
			if err = fault; err == nil {
				_, err = w.Write([]byte(parts[i+1]))
			}
		}
		if err != nil {
			h.t.Fatal(err)
		}
	}
	if err := form.Close(); err != nil {
		h.t.Fatal(err)
	}
	return h.do("POST", "/v1/campaigns", body.String(), "Idempotency-Key", key, "Content-Type", form.FormDataContentType())
}

// TestUpload creates a campaign from a file.
func TestUpload(t *testing.T) {
	h := newEnv(t)
	h.setMarket("us")
	const list = "\ufeffPhone Number;Name;first_name\n2125550123;Ada;Ada\n=1+1;Eve;\n2125550124;Bob;Bob\n"
	a := h.upload("k1", `,"attestation":{"confirmed":true}`, "campaign", "", "rows", list)
	if a.status != http.StatusCreated {
		t.Fatalf("%d %s", a.status, a.body)
	}
	c := a.json(t)
	i, _ := c["import"].(map[string]any)
	if got := fmt.Sprint(c["status"], i["kind"], i["rows_seen"], i["accepted"], i["rejected"], i["source_rows_projected"]); got != "runningfile3 2 1 true" {
		t.Errorf("%s\n%s", got, a.body)
	}
	var variables string
	if err := h.db.Pool.QueryRow(t.Context(), "SELECT variables::text FROM contacts WHERE number = '+12125550123'").Scan(&variables); err != nil || variables != `{"first_name":"Ada"}` {
		t.Errorf("%s, %v", variables, err)
	}
	var rules string
	if err := h.db.Pool.QueryRow(t.Context(), "SELECT rules FROM imports").Scan(&rules); err != nil || !strings.HasPrefix(rules, "us-") {
		t.Errorf("read by %q, %v", rules, err)
	}
	if again := h.upload("k1", `,"attestation":{"confirmed":true}`, "campaign", "", "rows", list); !bytes.Equal(again.body, a.body) || again.status != http.StatusCreated {
		t.Errorf("again: %d %s", again.status, again.body)
	}
	if other := h.upload("k1", `,"attestation":{"confirmed":true}`, "campaign", "", "rows", list+"2125550125;x;\n"); other.code() != "idempotency_key_reuse" {
		t.Errorf("another file: %d %s", other.status, other.body)
	}
	h.setMarket("kz")
	kz := h.upload("k2", "", "campaign", "", "rows", "\u0442\u0435\u043b\u0435\u0444\u043e\u043d\t\u0438\u043c\u044f\n87012345678\t\u0410\u0434\u0430\n").json(t)
	if i, _ := kz["import"].(map[string]any); fmt.Sprint(i["accepted"], kz["market"]) != "1kz" {
		t.Errorf("in Kazakhstan: %v", kz)
	}
}

func TestUploadErrors(t *testing.T) {
	h := newEnv(t)
	h.setMarket("us")
	h.campaigns.MaxFileRows = 3
	row := "2125550123\n"
	for name, c := range map[string]struct {
		more  string
		parts []string
		code  string
	}{
		"an old spreadsheet": {"", []string{"campaign", "", "rows", "\xd0\xcf\x11\xe0\xa1\xb1"}, "invalid_request"},
		"half a spreadsheet": {"", []string{"campaign", "", "rows", "PK\x03\x04"}, "invalid_request"},
		"an empty file":      {"", []string{"campaign", "", "rows", ""}, "invalid_request"},
		"no file":            {"", []string{"campaign", ""}, "invalid_request"},
		"the file first":     {"", []string{"rows", "phone\n" + row, "campaign", ""}, "invalid_request"},
		"nothing":            {"", nil, "invalid_request"},
		"rows twice":         {`,"planned_calls":[{"phone":"2125550123"}]`, []string{"campaign", "", "rows", "phone\n" + row}, "invalid_request"},
		"a wrong type":       {`,"name":5`, []string{"campaign", "", "rows", "phone\n" + row}, "invalid_request"},
		"too many rows":      {"", []string{"campaign", "", "rows", "phone\n" + strings.Repeat(row, 4)}, "campaign_spec_invalid"},
	} {
		a := h.upload("k "+name, c.more, c.parts...)
		if a.status != http.StatusUnprocessableEntity || a.code() != c.code {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	if n := h.count("SELECT (SELECT count(*) FROM campaigns) + (SELECT count(*) FROM idempotency_keys)"); n != 0 {
		t.Errorf("%d campaigns or keys were stored", n)
	}
}
