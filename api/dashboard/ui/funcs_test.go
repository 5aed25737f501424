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

func TestNamesAreApart(t *testing.T) {
	if got := JoinNames([]string{"<b>", "حملة"}); got != "<bdi>&lt;b&gt;</bdi>, <bdi>حملة</bdi>" {
		t.Errorf("%s", got)
	}
}
