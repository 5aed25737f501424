package api_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/api/schema"
)

// campaignBody is the body of a creation with n equal planned calls.
func campaignBody(call string, n int, more string) string {
	return `{"name":"Spring","agent_id":"sales","calls_per_minute":20` + more + `,"planned_calls":[` + strings.TrimSuffix(strings.Repeat(call+",", n), ",") + `]}`
}

// TestRowLimitOrder checks that the row limit is checked after everything that precedes it in the contract.
func TestRowLimitOrder(t *testing.T) {
	h := newEnv(t)
	h.setMarket("us")
	for name, tt := range map[string]struct {
		more, call, key, code string
		n                     int
	}{
		"no key":           {"", `{}`, "", "idempotency_key_required", 60_000},
		"dnc decision":     {`,"dnc":"no"`, `{}`, "a", "dnc_decision_invalid", 60_000},
		"window":           {`,"starts_at":2000000000,"ends_at":1000000000`, `{}`, "b", "campaign_window_invalid", 60_000},
		"agent":            {`,"agent_id":"unknown"`, `{}`, "c", "campaign_agent_unknown", 60_000},
		"row limit":        {"", `{"phone":"2125550123"}`, "d", "campaign_spec_invalid", 60_000},
		"invalid row":      {"", `5`, "e", "invalid_request", 60_000},
		"a million values": {"", `0`, "", "request_too_large", 1_000_000},
	} {
		a := h.do("POST", "/v1/campaigns", campaignBody(tt.call, tt.n, tt.more), "Idempotency-Key", tt.key)
		if a.code() != tt.code {
			t.Errorf("%s: %d %.200s, want %s", name, a.status, a.body, tt.code)
		}
		checkEnvelope(t, a)
	}
}

// startUpload sends the start of a large request and leaves it unfinished until stop.
func (h *env) startUpload(key string, declared int64) (stop func()) {
	r, w := io.Pipe()
	req, err := http.NewRequestWithContext(h.t.Context(), http.MethodPost, h.web.URL+"/v1/campaigns", r)
	if err != nil {
		h.t.Fatal(err)
	}
	req.ContentLength = declared
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "application/json")
	over := make(chan struct{})
	go func() {
		defer close(over)
		if res, err := http.DefaultClient.Do(req); err == nil {
			_ = res.Body.Close()
		}
	}()
	if _, err := w.Write(make([]byte, 1<<20)); err != nil {
		h.t.Fatal(err)
	}
	return func() {
		_ = w.CloseWithError(io.ErrUnexpectedEOF)
		<-over
	}
}

// TestRequestBudget checks that the memory of concurrent bodies is limited per organization before the
// Idempotency-Key is checked, and that small bodies always pass.
func TestRequestBudget(t *testing.T) {
	h := newEnv(t)
	h.setMarket("us")
	_, other := h.organization("globex")
	stop := h.startUpload(h.key, schema.MaxCampaign)
	large := campaignBody(`{"phone":"2125550123","name":"`+strings.Repeat("x", 150)+`"}`, 20_000, "")
	var a response
	for until := time.Now().Add(10 * time.Second); time.Now().Before(until); {
		if a = h.do("POST", "/v1/campaigns", large); a.code() == "request_budget_exceeded" {
			break
		}
	}
	if a.status != http.StatusTooManyRequests || a.code() != "request_budget_exceeded" || a.header.Get("Retry-After") == "" {
		t.Fatalf("a second large request: %d %.200s", a.status, a.body)
	}
	checkEnvelope(t, a)
	if a = h.do("POST", "/v1/campaigns", large, "Authorization", "Bearer "+other); a.code() != "idempotency_key_required" {
		t.Errorf("another organization: %d %.200s", a.status, a.body)
	}
	if a = h.do("POST", "/v1/campaigns", campaignBody(`{"phone":"2125550123"}`, 10, ""), "Idempotency-Key", "small"); a.status != http.StatusCreated {
		t.Errorf("a small request: %d %.200s", a.status, a.body)
	}
	stop()
	for until := time.Now().Add(10 * time.Second); time.Now().Before(until); {
		if a = h.do("POST", "/v1/campaigns", large); a.code() != "request_budget_exceeded" {
			break
		}
	}
	if a.code() != "idempotency_key_required" {
		t.Errorf("after the end of the first: %d %.200s", a.status, a.body)
	}
}

// zipBomb is a spreadsheet that unpacks to parts of 16 MiB.
func zipBomb(tb testing.TB, parts int) []byte {
	tb.Helper()
	blanks := []byte(strings.Repeat(" ", 16<<20))
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := range parts {
		w, err := z.Create(fmt.Sprintf("xl/media/x%d.xml", i))
		if err == nil {
			_, err = w.Write(blanks)
		}
		if err != nil {
			tb.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

func TestZipBombIsRejected(t *testing.T) {
	h := newEnv(t)
	h.setMarket("us")
	if a := h.upload("k", "", "campaign", "", "rows", string(zipBomb(t, 9))); a.status != http.StatusUnprocessableEntity || a.code() != "invalid_request" {
		t.Errorf("%d %s", a.status, a.body)
	}
}
