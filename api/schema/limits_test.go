package schema

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/parley-voice/parley/api/response"
	"github.com/parley-voice/parley/control/admission"
)

func order(t *testing.T, more string) (admission.Order, error) {
	t.Helper()
	b, err := read(t, `{"agent_id":"sales","to_number":"+12025550123"`+more+`}`)
	if err != nil {
		return admission.Order{}, err
	}
	return NewSet().PhoneOrder(b)
}

func TestVariablesAreBounded(t *testing.T) {
	many := func(n int) string {
		var members []string
		for i := range n {
			members = append(members, fmt.Sprintf(`"v%d":%d`, i, i))
		}
		return strings.Join(members, ",")
	}
	for _, tt := range []struct{ name, variables, where string }{
		{"none", ``, ``},
		{"scalars", `"a":"x","b":1.50,"c":true,"d":null,"_e1":""`, ``},
		{"64 keys", many(64), ``},
		{"65 keys", many(65), `variables`},
		{"a long key", `"` + strings.Repeat("k", 64) + `":1`, ``},
		{"too long a key", `"` + strings.Repeat("k", 65) + `":1`, `variables`},
		{"an invalid name", `"1a":1`, `variables`},
		{"an empty key", `"":1`, `variables`},
		{"2,000 characters", `"a":"` + strings.Repeat("é", 2000) + `"`, ``},
		{"2,001 characters", `"a":"` + strings.Repeat("é", 2001) + `"`, `variables.a`},
		{"a number of 2,001 digits", `"a":0.` + strings.Repeat("1", 2000), `variables.a`},
		{"nested", `"a":{"b":["` + strings.Repeat("x", 8000) + `"]}`, ``},
		{"nested over 8 KiB", `"a":["` + strings.Repeat("x", 4100) + `"],"b":["` + strings.Repeat("x", 4100) + `"]`, `variables`},
		{"many tiny numbers", `"a":[` + strings.TrimSuffix(strings.Repeat("1e-16000,", 70000), ",") + `]`, `variables`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := order(t, `,"variables":{`+tt.variables+`}`)
			if tt.where == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			invalid, ok := errors.AsType[*response.InvalidError](err)
			if !ok || len(invalid.Issues) != 1 {
				t.Fatalf("%v", err)
			}
			if got := spot(invalid.Issues[0]); got != ".body."+tt.where || invalid.Issues[0].Msg == "" {
				t.Errorf("%s %s, want it at %s", got, invalid.Issues[0].Msg, tt.where)
			}
		})
	}
}

func TestIssuesAreBounded(t *testing.T) {
	_, err := order(t, `,"variables":{"a":[`+strings.TrimSuffix(strings.Repeat(`"\u0000",`, 9000), ",")+`]}`)
	invalid, ok := errors.AsType[*response.InvalidError](err)
	if !ok || len(invalid.Issues) != response.MaxIssues {
		t.Fatalf("%T", err)
	}
}
