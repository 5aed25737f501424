package control

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/parley-voice/parley/pipeline"
)

// TestEndReasonCoversAllReasons checks that a call keeps the reason for which its conversation ended, except if the
// process stops.
func TestEndReasonCoversAllReasons(t *testing.T) {
	all := reasons(t)
	if len(all) < 11 {
		t.Fatalf("found only %d reasons: %v", len(all), all)
	}
	for _, why := range all {
		if got, by := endReason(why, errEndRequested); got != Reason(why) || by == "" {
			t.Errorf("%s became %s by %q", why, got, by)
		}
	}
}

// reasons reads the constants of type pipeline.Reason from the source files, so that the test covers new constants.
func reasons(t *testing.T) []pipeline.Reason {
	t.Helper()
	files, err := filepath.Glob("../pipeline/*.go")
	if err != nil {
		t.Fatal(err)
	}
	var all []pipeline.Reason
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			if of, ok := spec.Type.(*ast.Ident); !ok || of.Name != "Reason" {
				return true
			}
			for _, v := range spec.Values {
				lit, ok := v.(*ast.BasicLit)
				if !ok {
					t.Fatalf("%s: a Reason is not a literal", name)
				}
				text, err := strconv.Unquote(lit.Value)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, pipeline.Reason(text))
			}
			return true
		})
	}
	return all
}

func TestTransferJSON(t *testing.T) {
	at := time.UnixMilli(1795222586123)
	for want, h := range map[string]*pipeline.TransferResult{
		"": nil,
		`{"type":"cold","to":"+12025550111","status":"answered","bridged":true,"at":1795222586.123}`: {To: "+12025550111", Bridged: true, Answered: true, At: at},
		`{"type":"cold","to":"+12025550111","status":"failed","bridged":false,"at":1795222586}`:      {To: "+12025550111", At: at.Truncate(time.Second)},
	} {
		if got := transferJSON(h); string(got) != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
