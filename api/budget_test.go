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

// order is the body of a creation with so many planned calls, each the same.
func order(call string, n int, more string) string {
	return `{"name":"Spring","agent_id":"sales","calls_per_minute":20` + more + `,"planned_calls":[` + strings.TrimSuffix(strings.Repeat(call+",", n), ",") + `]}`
}

// TestTooManyRowsKeepTheirPlace: too many planned calls are refused where the contract
// has it, after all that comes before.
func TestTooManyRowsKeepTheirPlace(t *testing.T) {
	h := newHouse(t)
	h.install("us")
	for name, tt := range map[string]struct {
		more, call, key, code string
		n                     int
	}{
		"no key":             {"", `{}`, "", "idempotency_key_required", 60_000},
		"a decision":         {`,"dnc":"no"`, `{}`, "a", "dnc_decision_invalid", 60_000},
		"the window":         {`,"starts_at":2000000000,"ends_at":1000000000`, `{}`, "b", "campaign_window_invalid", 60_000},
		"the agent":          {`,"agent_id":"nobody"`, `{}`, "c", "campaign_agent_unknown", 60_000},
		"nothing else":       {"", `{"phone":"2125550123"}`, "d", "campaign_spec_invalid", 60_000},
		"a row that is none": {"", `5`, "e", "invalid_request", 60_000},
		"a million values":   {"", `0`, "", "request_too_large", 1_000_000},
	} {
		a := h.do("POST", "/v1/campaigns", order(tt.call, tt.n, tt.more), "Idempotency-Key", tt.key)
		if a.code() != tt.code {
			t.Errorf("%s: %d %.200s, want %s", name, a.status, a.body, tt.code)
		}
		checkEnvelope(t, a)
	}
}

// slow sends the head of a large request and a part of its body, and waits for the
// rest until it is closed.
func (h *house) slow(key string, declared int64) (stop func()) {
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

// TestRequestBudget: the bodies that are read at once are bounded for each
// organization, which is said before the Idempotency-Key is looked at; small ones
// always pass.
func TestRequestBudget(t *testing.T) {
	h := newHouse(t)
	h.install("us")
	_, other := h.organization("globex")
	stop := h.slow(h.key, schema.MaxCampaign)
	large := order(`{"phone":"2125550123","name":"`+strings.Repeat("x", 150)+`"}`, 20_000, "")
	var a answer
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
	if a = h.do("POST", "/v1/campaigns", order(`{"phone":"2125550123"}`, 10, ""), "Idempotency-Key", "small"); a.status != http.StatusCreated {
		t.Errorf("a small request: %d %.200s", a.status, a.body)
	}
	stop()
	for until := time.Now().Add(10 * time.Second); time.Now().Before(until); {
		if a = h.do("POST", "/v1/campaigns", large); a.code() != "request_budget_exceeded" {
			break
		}
	}
	if a.code() != "idempotency_key_required" {
		t.Errorf("after the first is gone: %d %.200s", a.status, a.body)
	}
}

// bomb is a spreadsheet of a megabyte that unpacks to a gigabyte.
func bomb(tb testing.TB, parts int) []byte {
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

// TestSheetBombIsRefused: a spreadsheet that unpacks to far more than it is is 422.
func TestSheetBombIsRefused(t *testing.T) {
	h := newHouse(t)
	h.install("us")
	if a := h.upload("k", "", "campaign", "", "rows", string(bomb(t, 9))); a.status != http.StatusUnprocessableEntity || a.code() != "invalid_request" {
		t.Errorf("%d %s", a.status, a.body)
	}
}
