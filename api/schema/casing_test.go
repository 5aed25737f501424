package schema

import (
	"errors"
	"testing"

	"github.com/parley-voice/parley/api/response"
)

// TestKeysMatchExactly checks that a key in another case is an unknown key.
func TestKeysMatchExactly(t *testing.T) {
	for _, more := range []string{
		`,"TO_NUMBER":"+12025550199"`, `,"To_Number":5`, `,"Record":"yes","VARIABLES":[],"Metadata":7`, `,"\u017fubgroup_id":"x"`,
	} {
		o, err := order(t, more)
		if err != nil || o.To != "+12025550123" || o.RouteID != "" {
			t.Errorf("%s: dials %q on %q, %v", more, o.To, o.RouteID, err)
		}
	}
	b, err := read(t, `{"AGENT_ID":"sales","to_number":"1"}`)
	if err != nil {
		t.Fatal(err)
	}
	_, err = NewSet().PhoneOrder(b)
	if invalid, ok := errors.AsType[*response.InvalidError](err); !ok || len(invalid.Issues) != 1 || invalid.Issues[0].Type != "missing" {
		t.Errorf("a missing key in another case: %v", err)
	}
}

// TestDecodeErrorIsInvalid checks that a body that matches the schema but not the type is a client error.
func TestDecodeErrorIsInvalid(t *testing.T) {
	b, err := read(t, `{"agent_id":"sales","to_number":"1","ring_duration":45.5}`)
	if err != nil {
		t.Fatal(err)
	}
	var v struct {
		Ring int `json:"ring_duration"`
	}
	err = NewSet().Check(b, "PhoneCall", &v)
	if invalid, ok := errors.AsType[*response.InvalidError](err); !ok || len(invalid.Issues) != 1 {
		t.Errorf("%v", err)
	}
}
