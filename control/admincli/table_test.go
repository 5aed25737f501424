package admincli

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"time"
)

func TestTable(t *testing.T) {
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	table := NewTable("ID", "LAST USED", "SCOPES", "LIMIT")
	table.Add("key_1", &at, []string{"read", "calls"}, 7)
	table.Add("key_22", (*time.Time)(nil), []string{}, 0)
	var text, list bytes.Buffer
	if err := table.Print(&text, false); err != nil {
		t.Fatal(err)
	}
	const want = "ID      LAST USED             SCOPES      LIMIT\n" +
		"key_1   2026-03-04 05:06 UTC  read,calls  7\n" +
		"key_22  –                     –           0\n"
	if text.String() != want {
		t.Errorf("got\n%swant\n%s", &text, want)
	}
	if err := table.Print(&list, true); err != nil {
		t.Fatal(err)
	}
	var got []map[string]any
	if err := json.Unmarshal(list.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, []map[string]any{
		{"id": "key_1", "last_used": "2026-03-04T05:06:07Z", "scopes": []any{"read", "calls"}, "limit": 7.0},
		{"id": "key_22", "last_used": nil, "scopes": []any{}, "limit": 0.0},
	}) {
		t.Errorf("%v", got)
	}
}
