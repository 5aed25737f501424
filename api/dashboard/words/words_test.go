package words

import "testing"

func TestNamesAreApart(t *testing.T) {
	if got := Names([]string{"<b>", "حملة"}); got != "<bdi>&lt;b&gt;</bdi>, <bdi>حملة</bdi>" {
		t.Errorf("%s", got)
	}
}
