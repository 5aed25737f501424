package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/parley-voice/parley/"

// floors is the plan of the house. A package may import packages of its own
// wing (the first folder of its path) and of the wings named here, nothing else.
var floors = map[string][]string{
	"media":     {},
	"sip":       {"media"},
	"webrtc":    {"media"},
	"pipeline":  {"media"},
	"control":   {"media", "pipeline"},
	"campaigns": {"control"},
	"api":       {"media", "control", "campaigns"},
	"bench":     {"media", "sip", "webrtc", "pipeline"},
}

// rooms holds some packages to less than their wing may.
var rooms = map[string][]string{
	"media":               {},
	"pipeline/turn":       {"pipeline/eot"},        // pure
	"pipeline/eot":        {"pipeline/eot/ending"}, // pure
	"pipeline/eot/ending": {},
	"control/db":          {},
	"control/breaker":     {}, // pure
	"campaigns/rows":      {"campaigns/market"},
	"campaigns/market":    {}, // pure
	"campaigns/registry":  {},
	"campaigns/retry":     {}, // pure
	"campaigns/checks":    {}, // pure
}

// outside says where some foreign modules may be known.
var outside = map[string][]string{
	"github.com/pion/":               {"media", "webrtc", "bench"},
	"github.com/emiago/":             {"sip", "bench"},
	"github.com/jackc/pgx/":          {"control", "campaigns", "bench"},
	"github.com/danielgtaylor/huma/": {"api"},
	"github.com/gorilla/websocket":   {"pipeline", "webrtc", "bench"},
	"github.com/prometheus/":         {"control"},
	"github.com/minio/":              {"control"},
}

// pure packages decide; the clock, the network and the disk stand outside.
var pure = map[string][]string{
	"pipeline/turn":       {"net", "net/http", "os", "io", "database/sql", "math/rand", "context"},
	"pipeline/amd":        {"net", "net/http", "os", "io", "database/sql", "math/rand", "context"},
	"control/breaker":     {"net", "net/http", "os", "database/sql", "math/rand", "context"},
	"campaigns/market":    {"net", "net/http", "os", "database/sql", "math/rand", "context"},
	"campaigns/retry":     {"net", "net/http", "os", "database/sql", "math/rand", "context"},
	"campaigns/checks":    {"net", "net/http", "os", "database/sql", "math/rand", "context"},
	"pipeline/eot":        {"net", "net/http", "os", "io", "database/sql", "math/rand", "context"},
	"pipeline/eot/ending": {"net", "net/http", "os", "io", "database/sql", "math/rand", "context"},
}

// The caps of a room.
const (
	packageCap = 1500 // lines of code
	fileCap    = 400  // lines
	funcCap    = 70   // lines
	cycloCap   = 15
)

// source is one parsed Go file of the house.
type source struct {
	name, pkg string // slash-separated, from the root
	file      *ast.File
	fset      *token.FileSet
	text      []byte
}

func sources(t *testing.T) []source {
	t.Helper()
	var all []source
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "bin" || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, name, text, parser.ParseComments)
		if err != nil || ast.IsGenerated(f) {
			return err
		}
		slash := filepath.ToSlash(name)
		all = append(all, source{slash, path.Dir(slash), f, fset, text})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 10 {
		t.Fatalf("found %d Go files: the test does not see the house", len(all))
	}
	return all
}

func TestTopLevel(t *testing.T) {
	allowed := []string{"media", "sip", "webrtc", "pipeline", "control", "api", "campaigns", "bench", "docs", "bin"}
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") && !slices.Contains(allowed, e.Name()) {
			t.Errorf("folder %s: the house has %v only", e.Name(), allowed)
		}
	}
}

func TestFloors(t *testing.T) {
	for _, s := range sources(t) {
		for _, spec := range s.file.Imports {
			imp, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if to, ours := strings.CutPrefix(imp, module); ours {
				checkFloor(t, s, to)
				continue
			}
			wing, _, _ := strings.Cut(s.pkg, "/")
			for prefix, may := range outside {
				if strings.HasPrefix(imp, prefix) && !slices.Contains(may, wing) {
					t.Errorf("%s imports %s: it is known to %v only", s.name, imp, may)
				}
			}
			if slices.Contains(pure[s.pkg], imp) {
				t.Errorf("%s imports %s: %s is pure", s.name, imp, s.pkg)
			}
		}
	}
}

func checkFloor(t *testing.T, s source, to string) {
	t.Helper()
	wing, _, _ := strings.Cut(s.pkg, "/")
	toWing, _, _ := strings.Cut(to, "/")
	switch may, held := rooms[s.pkg]; {
	case s.pkg == ".": // main stands above all
	case held && !slices.Contains(may, to):
		t.Errorf("%s imports %s: %s may import %v only", s.name, to, s.pkg, may)
	case !held && wing != toWing && !slices.Contains(floors[wing], toWing):
		t.Errorf("%s imports %s: %s may import %v only", s.name, to, wing, floors[wing])
	}
}

func TestCaps(t *testing.T) {
	lines := map[string]int{}
	for _, s := range sources(t) {
		if n := strings.Count(string(s.text), "\n"); n > fileCap {
			t.Errorf("%s has %d lines, cap %d: split it by job", s.name, n, fileCap)
		}
		lines[s.pkg] += codeLines(s)
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			from, to := s.fset.Position(f.Pos()).Line, s.fset.Position(f.End()).Line
			if n := to - from + 1; n > funcCap {
				t.Errorf("%s:%d %s has %d lines, cap %d", s.name, from, f.Name.Name, n, funcCap)
			}
			if n := cyclomatic(f); n > cycloCap {
				t.Errorf("%s:%d %s has cyclomatic complexity %d, cap %d", s.name, from, f.Name.Name, n, cycloCap)
			}
		}
	}
	for pkg, n := range lines {
		if n > packageCap {
			t.Errorf("%s has %d lines of code, cap %d: split it by job", pkg, n, packageCap)
		}
	}
}

// codeLines counts the lines that are neither blank nor comment alone.
func codeLines(s source) int {
	comment := map[int]bool{}
	for _, g := range s.file.Comments {
		for l := s.fset.Position(g.Pos()).Line; l <= s.fset.Position(g.End()).Line; l++ {
			comment[l] = true
		}
	}
	n := 0
	for i, l := range strings.Split(string(s.text), "\n") {
		l = strings.TrimSpace(l)
		if l == "" || comment[i+1] && (strings.HasPrefix(l, "//") || strings.HasPrefix(l, "/*") || strings.HasPrefix(l, "*")) {
			continue
		}
		n++
	}
	return n
}

func cyclomatic(f *ast.FuncDecl) int {
	n := 1
	ast.Inspect(f, func(node ast.Node) bool {
		switch v := node.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			n++
		case *ast.CaseClause:
			if v.List != nil {
				n++
			}
		case *ast.CommClause:
			if v.Comm != nil {
				n++
			}
		case *ast.BinaryExpr:
			if v.Op == token.LAND || v.Op == token.LOR {
				n++
			}
		}
		return true
	})
	return n
}

func TestPackageComments(t *testing.T) {
	has := map[string]bool{}
	for _, s := range sources(t) {
		has[s.pkg] = has[s.pkg] || s.file.Doc != nil && (strings.HasPrefix(s.file.Doc.Text(), "Package ") || s.pkg == ".")
	}
	for pkg, ok := range has {
		if !ok {
			t.Errorf("package %s has no comment that begins with \"Package %s\"", pkg, path.Base(pkg))
		}
	}
}

// TestNoTestCodeInProduction keeps the testing package out of the binary.
func TestNoTestCodeInProduction(t *testing.T) {
	for _, s := range sources(t) {
		if strings.HasSuffix(path.Base(s.pkg), "test") && s.pkg != "sip/siptest" {
			continue // mediatest, webrtctest and their like serve tests
		}
		for _, spec := range s.file.Imports {
			if spec.Path.Value == `"testing"` || strings.HasSuffix(spec.Path.Value, `/mediatest"`) {
				t.Errorf("%s imports %s", s.name, spec.Path.Value)
			}
		}
	}
}
