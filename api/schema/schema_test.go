package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/parley-voice/parley/api/response"
)

func TestKind(t *testing.T) {
	for _, tt := range []struct {
		msg   string
		value any
		want  string
	}{
		{"expected string", 1.0, "string_type"},
		{"expected integer", "5", "int_type"},
		{"expected integer", 5.5, "int_from_float"},
		{"expected integer", true, "int_type"},
		{"expected number", "x", "float_type"},
		{"expected boolean", 1.0, "bool_type"},
		{"expected array", 1.0, "list_type"},
		{"expected object", 1.0, "dict_type"},
		{"expected required property phone to be present", nil, "missing"},
		{`expected value to be one of "a, b"`, "c", "literal_error"},
		{"expected number >= 30", 1.0, "greater_than_equal"},
		{"expected number <= 7200", 1e9, "less_than_equal"},
		{"expected length >= 1", "", "string_too_short"},
		{"expected length <= 200", "x", "string_too_long"},
		{"something else", nil, "value_error"},
	} {
		if got, text := kind(tt.msg, tt.value); got != tt.want || text == "" {
			t.Errorf("%s of %v: %s %q, want %s", tt.msg, tt.value, got, text, tt.want)
		}
	}
}

func TestLocation(t *testing.T) {
	got, err := json.Marshal(location("body.rows[3].phone"))
	if err != nil || string(got) != `["body","rows",3,"phone"]` {
		t.Errorf("%s %v", got, err)
	}
}

func read(t *testing.T, text string) (*Body, error) {
	t.Helper()
	return Read(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), "POST", "/", strings.NewReader(text)))
}

func TestFingerprint(t *testing.T) {
	same := func(a, b string) bool {
		x, err1 := read(t, a)
		y, err2 := read(t, b)
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		return bytes.Equal(x.Fingerprint(), y.Fingerprint())
	}
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{`{"a":1,"b":[2]}`, ` { "b" : [2], "a":1 }`, true},
		{`{"a":"\u0041"}`, `{"a":"A"}`, true},
		{`{"a":1}`, `{"a":2}`, false},
		{`{"a":[1,2]}`, `{"a":[2,1]}`, false},
		{`{"a":9007199254740993}`, `{"a":9007199254740992}`, false},
		{`{bad`, `{bad`, true},
		{`{bad`, `{bad `, false},
		{``, ``, true},
	} {
		if same(tt.a, tt.b) != tt.want {
			t.Errorf("%s and %s: want same %v", tt.a, tt.b, tt.want)
		}
	}
}

func TestTooDeep(t *testing.T) {
	for text, want := range map[string]bool{
		strings.Repeat("[", 64): false, strings.Repeat("[", 65): true, strings.Repeat(`{"a":`, 65): true, `"` + strings.Repeat("[", 100) + `"`: false,
		`"\"` + strings.Repeat("[", 100) + `"`: false, strings.Repeat("[]", 100): false, strings.Repeat("[", 100000): true,
	} {
		if over := (&counter{}).add([]byte(text)); (over != nil && over.deep) != want {
			t.Errorf("%.20s…: %v", text, over)
		}
	}
}

// FuzzPhoneOrder checks that any input yields an order that can be stored, or a list of errors that can be written.
func FuzzPhoneOrder(f *testing.F) {
	for _, seed := range []string{
		``, `[]`, `{"agent_id":"a","to_number":"+12025550123"}`, `{"agent_id":"a","to_number":"1","metadata":{"a":[1e5,null,{"b":"\u0000"}]}}`,
		`{"agent_id":"a","to_number":"1","ring_duration":1e300,"max_duration_s":60.0,"variables":{"x":9007199254740993}}`, `{"agent_id":1,"":{}}`, `{"AGENT_ID":"a"}`,
	} {
		f.Add(seed)
	}
	set := NewSet()
	f.Fuzz(func(t *testing.T, text string) {
		b, err := read(t, text)
		if err == nil {
			b.Fingerprint()
			_, err = set.PhoneOrder(b)
		}
		if err == nil {
			return
		}
		invalid, ok := errors.AsType[*response.InvalidError](err)
		if !ok || len(invalid.Issues) == 0 {
			t.Fatalf("%q: %v", text, err)
		}
		for _, i := range invalid.Issues {
			if i.Type == "" || i.Msg == "" || len(i.Loc) == 0 {
				t.Errorf("%q: %+v", text, i)
			}
		}
		if _, err := json.Marshal(invalid.Issues); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	})
}

// TestEpoch checks that times keep their milliseconds, whichever floating-point number is nearest to them.
func TestEpoch(t *testing.T) {
	for ms := range int64(1000) {
		want := 1795900000_000 + ms
		sent := float64(want) / 1000
		if at := epoch(&sent); at.UnixMilli() != want {
			t.Errorf("%v is read as %d ms, want %d", sent, at.UnixMilli(), want)
		}
	}
}
