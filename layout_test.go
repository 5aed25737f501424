package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

const module = "github.com/parley-voice/parley/"

// floors lists the folders from which the packages of a top-level folder may import, besides their own folder. The
// folders form layers.
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

// narrower lists packages that may import less than floors permits.
var narrower = map[string][]string{
	"media":                  {},
	"pipeline/turn":          {"pipeline/eot"},       // pure package
	"pipeline/eot":           {"pipeline/eot/model"}, // pure package
	"pipeline/eot/model":     {},
	"control/db":             {},
	"control/circuitbreaker": {}, // pure package
	"campaigns/contactfile":  {"campaigns/market"},
	"campaigns/market":       {"control/phonenumber"}, // pure package
	"campaigns/dnc/registry": {"control/phonenumber"},
	"control/phonenumber":    {}, // pure package
	"campaigns/retry":        {}, // pure package
	"campaigns/launchcheck":  {}, // pure package
}

// outside lists the folders that may import third-party modules, by the prefix of the module.
var outside = map[string][]string{
	"github.com/pion/":               {"media", "webrtc", "bench"},
	"github.com/emiago/":             {"sip", "bench"},
	"github.com/jackc/pgx/":          {"control", "campaigns", "bench"},
	"github.com/danielgtaylor/huma/": {"api"},
	"github.com/gorilla/websocket":   {"pipeline", "webrtc", "bench"},
	"github.com/prometheus/":         {"control"},
	"github.com/minio/":              {"control"},
	"go.opentelemetry.io/":           {"control"},
}

// pure lists packages without side effects, and the imports that are forbidden because they give access to a clock, a
// network or a disk.
var pure = map[string][]string{
	"pipeline/turn":          {"net", "net/http", "os", "io", "database/sql", "math/rand", "context"},
	"sip/health":             {"net", "net/http", "os", "io", "database/sql", "math/rand", "context"},
	"sip/dialog":             {"net", "net/http", "os", "io", "database/sql", "math/rand", "context"},
	"pipeline/amd":           {"net", "net/http", "os", "io", "database/sql", "math/rand", "context"},
	"control/circuitbreaker": {"net", "net/http", "os", "database/sql", "math/rand", "context"},
	"control/pricing":        {"net", "net/http", "os", "database/sql", "math/rand", "context"},
	"control/phonenumber":    {"net", "net/http", "os", "io", "database/sql", "math/rand", "context"},
	"campaigns/market":       {"net", "net/http", "os", "database/sql", "math/rand", "context"},
	"campaigns/retry":        {"net", "net/http", "os", "database/sql", "math/rand", "context"},
	"campaigns/launchcheck":  {"net", "net/http", "os", "database/sql", "math/rand", "context"},
	"pipeline/eot":           {"net", "net/http", "os", "io", "database/sql", "math/rand", "context"},
	"pipeline/eot/model":     {"net", "net/http", "os", "io", "database/sql", "math/rand", "context"},
}

// Limits for non-test code.
const (
	fileCap   = 500 // lines of a file
	lineCap   = 140 // characters of a line, outside raw strings
	funcCap   = 70  // lines of a function
	cycloCap  = 15
	methodCap = 40 // methods of a type
	fieldCap  = 40 // fields of a struct type that has methods
)

// manyFields lists the types that may have methods and more than fieldCap fields. They are plain records, whose fields
// are the columns of a table or the settings of a process.
var manyFields = map[string]string{
	"control.Call":          "the columns of the table calls",
	"control/config.Config": "the settings of a process",
}

// source is one parsed Go file that is not a test.
type source struct {
	name, pkg string // path from the root of the repository, with slashes
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
		t.Fatalf("found %d Go files: the test does not see the project", len(all))
	}
	return all
}

// TestTablesNamePackages fails if a table in this file, or a path in a build file, names a package that does not exist.
// Otherwise a rename could disable a rule.
func TestTablesNamePackages(t *testing.T) {
	exists := map[string]bool{}
	for _, s := range sources(t) {
		for dir := s.pkg; dir != "."; dir = path.Dir(dir) {
			exists[dir] = true
		}
	}
	check := func(where, name string) {
		if !exists[name] {
			t.Errorf("%s names %s, which is no package", where, name)
		}
	}
	for _, table := range []struct {
		name string
		rows map[string][]string
		own  bool // the values are packages of this module
	}{{"floors", floors, true}, {"narrower", narrower, true}, {"outside", outside, true}, {"pure", pure, false}} {
		for key, values := range table.rows {
			if table.name != "outside" {
				check(table.name, key)
			}
			for _, v := range values {
				if table.own {
					check(table.name, v)
				}
			}
		}
	}
	for file, pattern := range map[string]string{
		"Makefile":      `\./([a-z][a-z0-9/]+)`,
		".golangci.yml": `(?:parley-voice/parley/|\*\*/|path: \^)([a-z][a-z0-9/]+)`,
	} {
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(read(t, file), -1) {
			check(file, strings.TrimSuffix(m[1], "/"))
		}
	}
	for file, variable := range map[string]string{".ci/calm": "long", ".ci/quick": "slow"} {
		lists := regexp.MustCompile(`(?m)^`+variable+`\+?='\|?(.*)'$`).FindAllStringSubmatch(read(t, file), -1)
		if lists == nil {
			t.Fatalf("%s has no line %s='…'", file, variable)
		}
		for _, list := range lists {
			for name := range strings.SplitSeq(strings.ReplaceAll(list[1], "(/.*)?", ""), "|") {
				check(file, name)
			}
		}
	}
}

func TestTopLevel(t *testing.T) {
	allowed := []string{"media", "sip", "webrtc", "pipeline", "control", "api", "campaigns", "bench", "deploy", "docs", "bin"}
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") && !slices.Contains(allowed, e.Name()) {
			t.Errorf("folder %s: only %v are allowed", e.Name(), allowed)
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
			folder, _, _ := strings.Cut(s.pkg, "/")
			for prefix, may := range outside {
				if strings.HasPrefix(imp, prefix) && !slices.Contains(may, folder) {
					t.Errorf("%s imports %s: only %v may import it", s.name, imp, may)
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
	folder, _, _ := strings.Cut(s.pkg, "/")
	toFolder, _, _ := strings.Cut(to, "/")
	switch may, held := narrower[s.pkg]; {
	case s.pkg == ".": // main may import everything
	case held && !slices.Contains(may, to):
		t.Errorf("%s imports %s: %s may import %v only", s.name, to, s.pkg, may)
	case !held && folder != toFolder && !slices.Contains(floors[folder], toFolder):
		t.Errorf("%s imports %s: %s may import %v only", s.name, to, folder, floors[folder])
	}
}

func TestCaps(t *testing.T) {
	for _, s := range sources(t) {
		if n := strings.Count(string(s.text), "\n"); n > fileCap {
			t.Errorf("%s has %d lines, cap %d: split it by job", s.name, n, fileCap)
		}
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
}

// wordLists lists files of words and phrases. Their lines may be longer than lineCap.
var wordLists = []string{"pipeline/amd/phrases.go", "pipeline/eot/english.go", "pipeline/eot/lexicon.go"}

func TestLines(t *testing.T) {
	for _, s := range sources(t) {
		if slices.Contains(wordLists, s.name) {
			continue
		}
		raw := map[int]bool{}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING && strings.HasPrefix(lit.Value, "`") {
				for l := s.fset.Position(lit.Pos()).Line; l <= s.fset.Position(lit.End()).Line; l++ {
					raw[l] = true
				}
			}
			return true
		})
		n := 0
		for line := range strings.Lines(string(s.text)) {
			n++
			if length := utf8.RuneCountInString(strings.TrimRight(line, "\n")); length > lineCap && !raw[n] {
				t.Errorf("%s:%d has %d characters, cap %d", s.name, n, length, lineCap)
			}
		}
	}
}

func TestTypes(t *testing.T) {
	methods, fields := map[string]int{}, map[string]int{}
	for _, s := range sources(t) {
		for _, d := range s.file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv != nil {
					methods[s.pkg+"."+receiver(d.Recv.List[0].Type)]++
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if ts, ok := spec.(*ast.TypeSpec); ok {
						if st, ok := ts.Type.(*ast.StructType); ok {
							fields[s.pkg+"."+ts.Name.Name] = st.Fields.NumFields()
						}
					}
				}
			}
		}
	}
	for name, n := range methods {
		if n > methodCap {
			t.Errorf("type %s has %d methods, cap %d: split it by the state it owns", name, n, methodCap)
		}
		if fields[name] > fieldCap && manyFields[name] == "" {
			t.Errorf("type %s has %d fields, cap %d: group those that are used together", name, fields[name], fieldCap)
		}
	}
	for name := range manyFields {
		if fields[name] <= fieldCap || methods[name] == 0 {
			t.Errorf("manyFields names %s, which needs no exception", name)
		}
	}
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
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

// TestNoTestCodeInProduction checks that non-test code does not import the testing package.
func TestNoTestCodeInProduction(t *testing.T) {
	for _, s := range sources(t) {
		if strings.HasSuffix(path.Base(s.pkg), "test") && s.pkg != "sip/siptest" {
			continue // packages such as mediatest and webrtctest serve tests
		}
		for _, spec := range s.file.Imports {
			if spec.Path.Value == `"testing"` || strings.HasSuffix(spec.Path.Value, `/mediatest"`) {
				t.Errorf("%s imports %s", s.name, spec.Path.Value)
			}
		}
	}
}
