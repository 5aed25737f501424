package ui

import "testing"

// TestCSVText checks that no part of a cell begins like a formula.
func TestCSVText(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "a-b = c@d; e": "a-b = c@d; e", "=1": "'=1", " @a": " '@a", "\t1": "'\t1", "a;=1": "a;'=1", "vip; -1": "vip; '-1",
		"a\t+1": "a\t'+1", "a\r\n =1": "a\r\n '=1", `a;"=1"`: `a;"'=1"`, "é;;@": "é;;'@",
	} {
		if got := CSVText(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestBreakable checks that addresses break after @ and slashes, and that they are escaped.
func TestBreakable(t *testing.T) {
	for text, want := range map[string]string{
		"Spring": "Spring", "ada@example.com": "ada@<wbr>example.com", "<b>": "&lt;b&gt;",
		"https://example.com/a/b": "https://<wbr>example.com/<wbr>a/<wbr>b",
	} {
		if got := string(breakable(text)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestAmount(t *testing.T) {
	for units, want := range map[float64]string{0: "0.00", 1e-9: "<0.0001", 0.00005: "0.0001", 0.0251: "0.0251", 0.5: "0.5000", 1: "1.00", 12.345: "12.35", 1234567.8: "1,234,567.80"} {
		if got := Amount(units); got != want {
			t.Errorf("%g: %q, want %q", units, got, want)
		}
	}
}

func TestNamesAreApart(t *testing.T) {
	if got := JoinNames([]string{"<b>", "حملة"}); got != "<bdi>&lt;b&gt;</bdi>, <bdi>حملة</bdi>" {
		t.Errorf("%s", got)
	}
}
