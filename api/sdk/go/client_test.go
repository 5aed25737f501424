package parley

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestDelay(t *testing.T) {
	lost := errors.New("connection reset")
	for name, tt := range map[string]struct {
		err   error
		safe  bool
		again bool
		least time.Duration
	}{
		"lost":                 {lost, true, true, 0},
		"lost, unsafe":         {lost, false, false, 0},
		"500":                  {&Error{Status: 500}, true, true, 0},
		"500, unsafe":          {&Error{Status: 500}, false, false, 0},
		"503 with Retry-After": {&Error{Status: 503, RetryAfter: 20 * time.Second}, true, true, 20 * time.Second},
		"501":                  {&Error{Status: 501}, true, false, 0},
		"429":                  {&Error{Status: 429, RetryAfter: time.Minute}, false, true, time.Minute},
		"429 by concurrency":   {&Error{Status: 429, Code: "subgroup_concurrency_limit"}, true, false, 0},
		"409 in flight":        {&Error{Status: 409, Code: "idempotency_key_in_flight"}, true, true, 0},
		"409":                  {&Error{Status: 409, Code: "campaign_closed"}, true, false, 0},
		"502 after a draft":    {&Error{Status: 502, Code: "contact_file_storage_unavailable"}, true, false, 0},
		"404":                  {&Error{Status: 404}, true, false, 0},
	} {
		for attempt := 1; attempt <= 20; attempt++ {
			wait, again := request{safe: tt.safe}.delay(tt.err, attempt)
			if again != tt.again || again && (wait < tt.least || wait > max(tt.least, 9*time.Second)) {
				t.Errorf("%s, attempt %d: %v %v", name, attempt, wait, again)
			}
		}
	}
}

// serve returns a client of a server that answers by the scripts, in order, and the Idempotency-Keys that it got.
func serve(t *testing.T, options []Option, scripts ...http.HandlerFunc) (*Client, *[]string) {
	t.Helper()
	keys := &[]string{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*keys = append(*keys, r.Header.Get("Idempotency-Key"))
		scripts[min(len(*keys), len(scripts))-1](w, r)
	}))
	t.Cleanup(s.Close)
	c, err := NewClient(s.URL, "parley_key", options...)
	if err != nil {
		t.Fatal(err)
	}
	return c, keys
}

func answer(status int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func TestRetriesUseOneKey(t *testing.T) {
	c, keys := serve(t, nil, answer(500, ""), answer(202, `{"call_id":"call_1"}`))
	for range 2 {
		if call, err := c.CreatePhoneCall(context.Background(), PhoneCallRequest{}); err != nil || call.CallID != "call_1" {
			t.Fatal(call, err)
		}
	}
	if k := *keys; len(k) != 3 || k[0] == "" || k[0] != k[1] || k[2] == k[0] {
		t.Errorf("keys %q", k)
	}
}

func TestLimitsOfRetries(t *testing.T) {
	c, keys := serve(t, []Option{WithRetries(2, time.Minute)}, answer(500, ""))
	if _, err := c.GetCall(context.Background(), "call_1"); err == nil || len(*keys) != 2 {
		t.Errorf("%d attempts, %v", len(*keys), err)
	}
	c, keys = serve(t, []Option{WithRetries(9, time.Minute)}, answer(429, "", "Retry-After", "61"))
	var e *Error
	if _, err := c.GetCall(context.Background(), "call_1"); !errors.As(err, &e) || e.RetryAfter != 61*time.Second || len(*keys) != 1 {
		t.Errorf("%d attempts, %v", len(*keys), err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	c, keys = serve(t, nil, answer(429, "", "Retry-After", "50"))
	if _, err := c.GetCall(ctx, "call_1"); !errors.As(err, &e) || len(*keys) != 1 {
		t.Errorf("%d attempts, %v", len(*keys), err)
	}
}

func TestErrors(t *testing.T) {
	c, _ := serve(t, nil, answer(422, `{"error":{"type":"invalid_request_error","code":"invalid_request","status":422,
		"message":[{"type":"missing","loc":["body","agent_id"],"msg":"Field required","input":{}}]}}`, "X-Request-Id", "req_1"))
	_, err := c.CreatePhoneCall(context.Background(), PhoneCallRequest{})
	if err == nil || err.Error() != "parley: 422 invalid_request; body.agent_id: Field required (request req_1)" {
		t.Error(err)
	}
	c, _ = serve(t, nil, answer(302, "", "Location", "https://parley.invalid/"))
	var e *Error
	if _, err = c.GetCall(context.Background(), "call_1"); !errors.As(err, &e) || e.Status != 302 || e.Type != APIError {
		t.Error(err)
	}
	for _, id := range []string{"", ".", ".."} {
		if _, err = c.GetCall(context.Background(), id); err == nil || errors.As(err, &e) && e.Status != 0 && !strings.Contains(err.Error(), "id") {
			t.Errorf("id %q: %v", id, err)
		}
	}
	for _, base := range []string{"", "parley.example", "ftp://parley.example"} {
		if _, err = NewClient(base, "key"); err == nil {
			t.Errorf("%q is accepted", base)
		}
	}
}

func TestPages(t *testing.T) {
	c, _ := serve(t, nil, func(w http.ResponseWriter, r *http.Request) {
		body := `{"calls":[{"call_id":"a"},{"call_id":"b"}],"has_more":true,"next_cursor":"n"}`
		if q := r.URL.Query(); q.Get("cursor") == "n" && q.Get("limit") == "2" {
			body = `{"calls":[{"call_id":"c"}],"has_more":false,"next_cursor":null}`
		}
		_, _ = io.WriteString(w, body)
	})
	var ids []string
	for call, err := range c.ListCalls(context.Background(), ListCallsParams{Limit: 2}) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, call.CallID)
	}
	if !slices.Equal(ids, []string{"a", "b", "c"}) {
		t.Error(ids)
	}
}

// TestVerifyWebhook uses the example of Standard Webhooks, with an event as body.
func TestVerifyWebhook(t *testing.T) {
	const secret, body = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", `{"test": 2432232314}`
	at := time.Unix(1614265330, 0)
	h := http.Header{}
	h.Set("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek")
	h.Set("webhook-timestamp", "1614265330")
	h.Set("webhook-signature", "v1,AAAA v2,x v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
	if _, err := VerifyWebhook(secret, h, []byte(body), at.Add(WebhookTolerance)); err != nil {
		t.Error(err)
	}
	for name, err := range map[string]error{
		"late":         verify(secret, h, body, at.Add(WebhookTolerance+time.Second)),
		"early":        verify(secret, h, body, at.Add(-WebhookTolerance-time.Second)),
		"other body":   verify(secret, h, body+" ", at),
		"other secret": verify("whsec_"+base64.StdEncoding.EncodeToString(make([]byte, 24)), h, body, at),
		"no headers":   verify(secret, http.Header{}, body, at),
	} {
		if !errors.Is(err, ErrWebhook) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := verify("secret", h, body, at); err == nil || errors.Is(err, ErrWebhook) {
		t.Errorf("a malformed secret: %v", err)
	}
}

func verify(secret string, h http.Header, body string, now time.Time) error {
	_, err := VerifyWebhook(secret, h, []byte(body), now)
	return err
}

// endless is a file that notes how far it was read.
type endless struct{ read atomic.Int64 }

func (e *endless) ReadAt(p []byte, off int64) (int, error) {
	e.read.Store(max(e.read.Load(), off+int64(len(p))))
	return len(p), nil
}

// TestUpload checks that a file is sent as it is read, once per attempt, with one key.
func TestUpload(t *testing.T) {
	const size = 64 << 20
	file := &endless{}
	var sent []int64
	c, keys := serve(t, nil, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.CopyN(io.Discard, r.Body, 1<<20)
		if read := file.read.Load(); len(sent) == 0 && read > size/2 {
			t.Errorf("%d bytes were read when the server had 1 MiB", read)
		}
		n, _ := io.Copy(io.Discard, r.Body)
		if sent = append(sent, n+1<<20); len(sent) == 1 {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		_, _ = io.WriteString(w, `{"campaign_id":"cmp_1"}`)
	})
	got, err := c.CreateCampaignFromFile(context.Background(), CampaignRequest{Name: "Spring"}, ContactFile{file, size})
	if err != nil || got.CampaignID != "cmp_1" || len(sent) != 2 || sent[0] != sent[1] || sent[0] < size {
		t.Errorf("%v, %v, %d bytes", got, err, sent)
	}
	if k := *keys; k[0] == "" || k[0] != k[1] {
		t.Errorf("keys %q", k)
	}
	if _, err = c.CreateCampaignFromFile(context.Background(), CampaignRequest{}, ContactFile{}); err == nil {
		t.Error("a file without content is accepted")
	}
}
