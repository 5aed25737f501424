package gateway

import (
	"strings"
	"testing"
)

func TestWithout(t *testing.T) {
	if _, err := PolicyWithout([]string{"thinking"}); err == nil || !strings.Contains(err.Error(), "speculation and merging") {
		t.Errorf("%v", err)
	}
	if _, err := (Job{Policy: []byte(`{"Nonsense":1}`)}).policy(); err == nil || !strings.Contains(err.Error(), "Nonsense") {
		t.Errorf("%v", err)
	}
	if p, err := (Job{Policy: []byte(`{"Nudges":7}`)}).policy(); err != nil || p.Nudges != 7 || p.Idle == 0 {
		t.Errorf("got %+v, %v", p, err)
	}
}
