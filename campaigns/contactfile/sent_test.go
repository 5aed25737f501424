package contactfile

import (
	"fmt"
	"strings"
	"testing"
)

// TestZeroByte: a zero byte rejects its row, not the list: Postgres accepts none.
func TestZeroByte(t *testing.T) {
	l, err := Check(FromJSON(parseArray(t, `[{"phone":"212555\u00000123"},{"phone":"2125550124"}]`)), options(t, "us"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := summary(l), "1 rejected  phone_invalid:phone\n2 accepted +12125550124\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if strings.ContainsRune(l.Rows[0].Phone, 0) {
		t.Error("the zero byte is still there")
	}
}

// TestIssuesKeepOrder: the issues of a row's variables are sorted by name.
func TestIssuesKeepOrder(t *testing.T) {
	want := "1 rejected +12125550123"
	var variables []string
	for i := range 20 {
		name := fmt.Sprintf("v%02d", i)
		variables = append(variables, fmt.Sprintf("%q:%d", name, i))
		want += " variables_invalid:variables." + name
	}
	list := `[{"phone":"2125550123","variables":{` + strings.Join(variables, ",") + `}}]`
	for range 3 {
		l, err := Check(FromJSON(parseArray(t, list)), options(t, "us"))
		if err != nil {
			t.Fatal(err)
		}
		if got := summary(l); got != want+"\nno_usable_rows" {
			t.Fatalf("%s\nwant %s", got, want)
		}
	}
}
