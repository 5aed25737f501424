package ui

import "testing"

func TestNamesAreApart(t *testing.T) {
	if got := JoinNames([]string{"<b>", "حملة"}); got != "<bdi>&lt;b&gt;</bdi>, <bdi>حملة</bdi>" {
		t.Errorf("%s", got)
	}
}
