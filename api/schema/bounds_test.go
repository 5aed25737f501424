package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/api/response"
	"github.com/parley-voice/parley/control"
)

const campaignHead = `{"name":"Spring","agent_id":"sales","calls_per_minute":20,"planned_calls":`

func readCampaign(t *testing.T, text string) (*Body, error) {
	t.Helper()
	return ReadUpTo(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), "POST", "/", strings.NewReader(text)), MaxCampaign)
}

func list(element string, n int) string {
	return "[" + strings.TrimSuffix(strings.Repeat(element+",", n), ",") + "]"
}

// TestBodyBounds checks that values and members are counted exactly while a body is read.
func TestBodyBounds(t *testing.T) {
	object := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"k%d":0,`, i)
		}
		return "{" + strings.TrimSuffix(b.String(), ",") + "}"
	}
	for name, tt := range map[string]struct {
		text string
		code control.Code // CodeInternal means that the body is accepted
	}{
		"a million values":         {`{"a":` + list("0", maxValues-2) + `}`, control.CodeInternal},
		"one more":                 {`{"a":` + list("0", maxValues-1) + `}`, control.CodeRequestTooLarge},
		"empty objects":            {list("{ }", maxValues-1), control.CodeInternal},
		"one empty object more":    {list("{ }", maxValues), control.CodeRequestTooLarge},
		"commas in a string":       {`"` + strings.Repeat(`,\",`, maxValues) + `"`, control.CodeInternal},
		"10,000 members":           {object(maxMembers), control.CodeInternal},
		"one member more":          {`[` + object(maxMembers+1) + `]`, control.CodeRequestTooLarge},
		"a million values, no end": {strings.Repeat("0,", 16<<20), control.CodeRequestTooLarge},
		"more bytes than declared": {strings.Repeat(" ", MaxCampaign+1), control.CodeRequestTooLarge},
	} {
		_, err := readCampaign(t, tt.text)
		if control.CodeOf(err) != tt.code || tt.code == control.CodeInternal && err != nil {
			t.Errorf("%s: %v, want %s", name, err, tt.code)
		}
	}
}

// TestExcessRowsAreNotParsed checks that a body with too many rows matches its schema; the row limit is checked later.
func TestExcessRowsAreNotParsed(t *testing.T) {
	set := NewSet()
	b, err := readCampaign(t, campaignHead+list(`{"a":0}`, 400_000)+"}")
	if err != nil {
		t.Fatal(err)
	}
	o, err := set.CampaignOrder(b)
	if err != nil || len(o.Rows) != usualRows+1 {
		t.Fatalf("%d rows, %v", len(o.Rows), err)
	}
	set.MaxRows = 5
	if o, err = set.CampaignOrder(b); err != nil || len(o.Rows) != 6 || string(o.Rows[0]) != `{"a":0}` {
		t.Errorf("%d rows, %v", len(o.Rows), err)
	}
	for _, tt := range []struct{ rows, typ, where string }{
		{list(`{"a":0}`, 400_000)[:len(list(`{"a":0}`, 400_000))-1] + `,5]`, "dict_type", ".body.planned_calls.400000"},
		{`[{"a":` + list("0", maxMemberValues) + `}]`, "too_long", ".body.planned_calls.0"},
		{`[{},{"a":["\u0000"]}]`, "value_error", ".body.planned_calls.1.a.0"},
		{`{}`, "list_type", ".body.planned_calls"},
		{`[],"working_hours":` + list("0", maxMemberValues), "too_long", ".body.working_hours"},
	} {
		b, err := readCampaign(t, campaignHead+tt.rows+"}")
		if err != nil {
			t.Fatal(err)
		}
		_, err = set.CampaignOrder(b)
		invalid, ok := errors.AsType[*response.InvalidError](err)
		if !ok || len(invalid.Issues) != 1 || invalid.Issues[0].Type != tt.typ || spot(invalid.Issues[0]) != tt.where {
			t.Errorf("%.40s: %v, want %s at %s", tt.rows, err, tt.typ, tt.where)
		}
	}
}

// TestBodyMemory checks that parsing a body allocates a small multiple of its size.
func TestBodyMemory(t *testing.T) {
	const size = 31 << 20
	set := NewSet()
	for _, element := range []string{`0`, `{}`, `{"a":0}`, `[]`, `""`, `{"a":"` + strings.Repeat("x", 600) + `"}`, `"` + strings.Repeat(`\"`, 1<<20) + `"`} {
		text := campaignHead + list(element, size/(len(element)+1)) + "}"
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began := time.Now()
		b, err := readCampaign(t, text)
		if err == nil {
			_, err = set.CampaignOrder(b)
			b.Fingerprint()
		}
		took := time.Since(began)
		runtime.ReadMemStats(&after)
		grown := (after.TotalAlloc - before.TotalAlloc) >> 20
		t.Logf("%.20s: %d MiB allocated in %v: %.60v", element, grown, took.Round(time.Millisecond), err)
		if grown > 200 {
			t.Errorf("%.20s: %d MiB were allocated", element, grown)
		}
	}
}

// viaTree returns a value re-encoded by encoding/json: the expected canonical form.
func viaTree(text []byte) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

func FuzzCanonical(f *testing.F) {
	for _, seed := range []string{
		`{"b":[1, 2.50,{"z":null,"a":{}}],"a":"\u0041<é\u2028","b":true}`, ` [ ] `, `{}`, `"\ud800x"`, "\"\xff\"", `-0.0e5`, `{"a":{"c":1,"b":[{}]},"\u0061":2}`, `[{"a":"\\"},"\\\""]`, "\"\u2029\"",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if !json.Valid(text) || (&counter{}).add(text) != nil {
			return
		}
		want, err := viaTree(text)
		if err != nil {
			return
		}
		if got := canonical(nil, text); !bytes.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
		b, err := Parse(text)
		if err != nil || b.bad != nil {
			return
		}
		plain, err := Parse(want)
		if err != nil || !bytes.Equal(plain.Fingerprint(), b.Fingerprint()) {
			t.Errorf("%q and %q have different fingerprints: %v", text, want, err)
		}
	})
}
