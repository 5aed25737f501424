package budget

import (
	"bytes"
	"io"
	"testing"

	"github.com/parley-voice/parley/control"
)

func body(b *Budget, org string, size int, declared bool) *Body {
	n := int64(-1)
	if declared {
		n = int64(size)
	}
	return b.Body(io.NopCloser(bytes.NewReader(make([]byte, size))), org, n, 32<<20)
}

// TestBodies checks the limits for large bodies, per organization and in total, and that small bodies always fit.
func TestBodies(t *testing.T) {
	for _, declared := range []bool{true, false} {
		b := &Budget{}
		read := func(org string, size int) (*Body, error) {
			x := body(b, org, size, declared)
			_, err := io.Copy(io.Discard, x)
			return x, err
		}
		first, err := read("a", 20<<20)
		if err != nil {
			t.Fatal(err)
		}
		for _, tt := range []struct {
			org  string
			size int
			fits bool
		}{{"a", 20 << 20, false}, {"a", 60 << 10, true}, {"b", 31 << 20, true}, {"c", 31 << 20, false}, {"c", 4 << 20, true}, {"c", 60 << 10, true}} {
			x, err := read(tt.org, tt.size)
			if (err == nil) != tt.fits || err != nil && control.CodeOf(err) != control.CodeRequestBudget {
				t.Errorf("declared %v: %s, %d bytes: %v", declared, tt.org, tt.size, err)
			}
			if tt.org != "b" {
				x.Release()
			} else {
				defer x.Release()
			}
		}
		first.Release()
		if x, err := read("a", 10<<20); err != nil {
			t.Errorf("after the release: %v", err)
		} else {
			x.Release()
		}
	}
}

// TestFullOrganizationsLeaveRoom checks that another organization still gets memory while others are at their limit.
func TestFullOrganizationsLeaveRoom(t *testing.T) {
	b := &Budget{}
	for _, org := range []string{"a", "b", "c", "d"} {
		for n := int64(32 << 20); n > 64<<10; n /= 2 { // takes as much as the budget gives
			b.take(org, n)
		}
	}
	x := body(b, "e", 200<<10, true)
	if _, err := io.Copy(io.Discard, x); err != nil {
		t.Error(err)
	}
	x.Release()
}

// TestLists checks that an organization reads one list at a time, and all organizations together two.
func TestLists(t *testing.T) {
	b := &Budget{}
	first, err := b.List("a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err = b.List("a"); control.CodeOf(err) != control.CodeRequestBudget {
		t.Errorf("a second list of one organization: %v", err)
	}
	if _, err = b.List("b"); err != nil {
		t.Error(err)
	}
	if _, err = b.List("c"); control.CodeOf(err) != control.CodeRequestBudget {
		t.Errorf("a third list: %v", err)
	}
	first()
	first()
	if _, err = b.List("c"); err != nil {
		t.Errorf("after the first: %v", err)
	}
}
