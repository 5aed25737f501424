package response

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestInvalidResponsesAreBounded checks that a response with issues has at most 100 KiB.
func TestInvalidResponsesAreBounded(t *testing.T) {
	long := strings.Repeat("é", 1<<16)
	deep := map[string]any{}
	for range 8 {
		deep = map[string]any{long: []any{deep, long}}
	}
	var issues []Issue
	for range 20 {
		issues = append(issues,
			Issue{Type: "value_error", Loc: []any{"body", long, 5}, Msg: "Value error, " + long, Input: long},
			Issue{Type: "missing", Loc: []any{"body"}, Msg: "Field required", Input: deep},
			Issue{Type: "int_type", Loc: []any{"body"}, Msg: "no", Input: json.Number(strings.Repeat("1", 1<<16))},
			Issue{Type: "int_type", Loc: []any{"body"}, Msg: "no", Input: []any{1.5, nil, true, "x"}},
		)
	}
	w := httptest.NewRecorder()
	err := errors.Join(&InvalidError{Issues: issues})
	Error(w, httptest.NewRequestWithContext(t.Context(), "POST", "/", nil), slog.New(slog.DiscardHandler), err)
	if n := w.Body.Len(); w.Code != 422 || n > 100<<10 {
		t.Fatalf("%d, %d bytes", w.Code, n)
	}
	var e struct{ Error struct{ Message []Issue } }
	if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil {
		t.Fatal(err)
	}
	got := e.Error.Message
	if len(got) != MaxIssues {
		t.Fatalf("%d issues", len(got))
	}
	if text, _ := got[0].Input.(string); !strings.HasPrefix(text, "éé") || !strings.HasSuffix(text, "…") {
		t.Errorf("a long text is echoed as %.80v", got[0].Input)
	}
	if list, _ := got[3].Input.([]any); len(list) != 4 {
		t.Errorf("a short input is echoed as %v", got[3].Input)
	}
	if len(issues[0].Msg) < 1<<16 {
		t.Error("the error itself was changed")
	}
}
