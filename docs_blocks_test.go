package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os/exec"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
	"go.yaml.in/yaml/v3"

	"github.com/parley-voice/parley/control/apply"
)

// block is a code block of the documentation.
type block struct {
	page, language, text string
	line                 int
}

func (b block) String() string { return fmt.Sprintf("%s:%d", b.page, b.line) }

// blocks returns the code blocks of the documentation, the README and the embedded pages.
func blocks(t *testing.T) (all []block) {
	t.Helper()
	add := func(page string, source []byte) {
		root := goldmark.DefaultParser().Parse(text.NewReader(source))
		err := ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
			b := block{page: page}
			switch n := n.(type) {
			case *ast.FencedCodeBlock:
				b.language = string(n.Language(source))
			case *ast.CodeBlock:
			default:
				return ast.WalkContinue, nil
			}
			if entering && n.Lines().Len() > 0 {
				b.text = string(n.Lines().Value(source))
				b.line = 1 + bytes.Count(source[:n.Lines().At(0).Start], []byte("\n"))
				all = append(all, b)
			}
			return ast.WalkContinue, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	err := fs.WalkDir(documentation, ".", func(name string, _ fs.DirEntry, err error) error {
		if err == nil && path.Ext(name) == ".md" {
			var source []byte
			if source, err = documentation.ReadFile(name); err == nil {
				add(name, source)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	add("README.md", []byte(read(t, "README.md")))
	if len(all) < 90 {
		t.Fatalf("%d code blocks", len(all))
	}
	return all
}

// unchecked lists code blocks that no parser checks, by page and first word, with the reason.
var unchecked = map[string]string{
	"docs/answering-machines.md answered": "printed by bench amd",
	"docs/api.md Deprecation:":            "headers; TestDeprecatedRoute checks them",
	"docs/architecture.md audio":          "diagram",
	"docs/architecture.md 6":              "layers; TestFloors checks them",
	"docs/backup.md archive_mode":         "settings of PostgreSQL; TestRestore runs a server with them",
	"docs/benchmarks.md calls":            "printed by a benchmark",
	"docs/benchmarks.md 1,015":            "printed by a benchmark",
	"docs/benchmarks.md request":          "printed by a benchmark",
	"docs/benchmarks.md 25":               "printed by a benchmark",
	"docs/benchmarks.md 20":               "printed by a benchmark",
	"docs/benchmarks.md 680":              "printed by a benchmark",
	"docs/calls.md queued":                "diagram",
	"docs/calls.md 2026-11-21":            "printed by call trace",
	"docs/guide/prompt.md You":            "text of a prompt",
	"docs/metrics.md #":                   "expressions of Prometheus; a test of deploy evaluates them",
	"docs/sizing.md $":                    "printed by plan",
	"docs/states.md stateDiagram-v2":      "diagram; TestStatesAreDocumented compares it with the code",
	"docs/traces.md call":                 "printed by a trace",
	"docs/upgrading.md --":                "form of a migration; tests of control/db check every migration",
	"docs/vad.md 8":                       "printed by bench vad",
	"README.md POST":                      "diagram",
}

// TestDocsBlocks checks every code block of the documentation by a parser of its language.
func TestDocsBlocks(t *testing.T) {
	t.Parallel()
	used, programs := map[string]bool{}, 0
	for _, b := range blocks(t) {
		first := strings.Fields(b.text)
		key := b.page + " " + first[0]
		if _, listed := unchecked[key]; listed {
			used[key] = true
			continue
		}
		language := b.language
		if language == "" {
			language = guess(b.text)
		}
		check, known := checks[language]
		if !known {
			t.Errorf("%s: no check of %q; add one, or %q to unchecked with a reason", b, language, key)
			continue
		}
		if err := check(t, b.text); err != nil {
			t.Errorf("%s: %v", b, err)
		}
		if language == "sh" {
			programs += len(command.FindAllString(b.text, -1))
		}
	}
	if programs < 60 {
		t.Errorf("found %d command lines of the program", programs)
	}
	for key := range unchecked {
		if !used[key] {
			t.Errorf("unchecked names %q, which does not exist", key)
		}
	}
}

// guess returns the language of an indented block.
func guess(text string) string {
	switch {
	case regexp.MustCompile(`^(organizations|providers|speech):`).MatchString(text):
		return "yaml"
	case strings.HasPrefix(text, "{"):
		return "json"
	case strings.HasPrefix(text, "import "):
		return "js"
	default:
		return "sh"
	}
}

var checks = map[string]func(t *testing.T, text string) error{
	"sh":   checkShell,
	"yaml": checkYAML,
	"json": func(_ *testing.T, text string) error { return jsonError(text) },
	"csv": func(_ *testing.T, text string) error {
		_, err := csv.NewReader(strings.NewReader(text)).ReadAll()
		return err
	},
	"xml": checkXML,
	"ini": checkINI,
	"go": func(_ *testing.T, text string) error {
		_, err := parser.ParseFile(token.NewFileSet(), "", text, 0)
		return err
	},
	"python": checkPython,
	"js":     checkScript,
	"ts":     checkScript,
	"html":   checkPage,
}

func jsonError(text string) error {
	var v any
	return json.Unmarshal([]byte(text), &v)
}

func checkXML(_ *testing.T, text string) error {
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func checkINI(_ *testing.T, text string) error {
	line := regexp.MustCompile(`^(\[[\w-]+\]|\w+ ?=>? ?\S.*|)$`)
	for l := range strings.Lines(text) {
		if !line.MatchString(strings.TrimSpace(l)) {
			return fmt.Errorf("no section and no setting: %s", l)
		}
	}
	return nil
}

// pipe runs a program with text as its input. It succeeds if the program is not installed.
func pipe(t *testing.T, text, program string, args ...string) error {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Logf("%s is not installed: a block is not checked", program)
		return nil //nolint:nilerr // as documented
	}
	c := exec.CommandContext(t.Context(), program, args...)
	c.Stdin = strings.NewReader(text)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", program, err, out)
	}
	return nil
}

func checkPython(t *testing.T, text string) error {
	t.Helper()
	return pipe(t, text, "python3", "-c", "import ast, sys; ast.parse(sys.stdin.read())")
}

// checkScript checks JavaScript and TypeScript.
func checkScript(t *testing.T, text string) error {
	t.Helper()
	return pipe(t, untyped(text), "node", "--input-type=module", "--check")
}

func checkPage(t *testing.T, text string) error {
	t.Helper()
	if strings.Contains(text, `<script type="module" src="`) {
		return nil
	}
	_, script, ok := strings.Cut(text, `<script type="module">`)
	if script, _, _ = strings.Cut(script, "</script>"); !ok {
		return errors.New("no script")
	}
	return checkScript(t, script)
}

// annotation matches the types of parameters and results that the guide uses.
var annotation = regexp.MustCompile(`: (string|boolean|Buffer)\b`)

// untyped returns a TypeScript program as JavaScript.
func untyped(text string) string { return annotation.ReplaceAllString(text, "") }

// checkYAML checks operator's files, and parts of them, by their parser. Other files must be YAML.
func checkYAML(_ *testing.T, text string) error {
	if strings.HasPrefix(text, "speech:") {
		text = "organizations:\n- name: a\n  agents:\n  - name: b\n" + regexp.MustCompile(`(?m)^`).ReplaceAllString(text, "    ")
	}
	var keys map[string]any
	if err := yaml.Unmarshal([]byte(text), &keys); err != nil {
		return err
	}
	if _, endpoints := keys["providers"].([]any); keys["organizations"] == nil && !endpoints {
		return nil
	}
	_, err := apply.Parse(strings.NewReader(text))
	return err
}

// command matches a command line of the program, also one that runs in a container or as another user, up to the end of
// the shell command.
var command = regexp.MustCompile(`(?m)(?:^|[;&|(])\s*(?:[A-Z_]+=\S* )*(?:sudo (?:-u \w+ )?)?(?:(?:docker|kubectl) .*? parley(?:-0 --)? )?` +
	`(?:bin/)?parley ((?:'[^']*'|"[^"]*"|[^|&;<>()'"#\n])*)`)

// checkShell checks the syntax of a script, and each command line of the program in it by the program's parser.
func checkShell(t *testing.T, text string) error {
	t.Helper()
	if err := pipe(t, text, "bash", "-n"); err != nil {
		return err
	}
	text = strings.ReplaceAll(text, "\\\n", " ")
	for _, m := range command.FindAllStringSubmatch(text, -1) {
		if err := parseCommand(words(m[1])); err != nil && !errors.Is(err, fs.ErrNotExist) { // files of the reader
			return fmt.Errorf("parley %s: %w", m[1], err)
		}
	}
	return nil
}

// words splits a command line.
func words(line string) (all []string) {
	for _, w := range regexp.MustCompile(`(?:'[^']*'|"[^"]*"|\S)+`).FindAllString(line, -1) {
		all = append(all, strings.NewReplacer("'", "", `"`, "").Replace(w))
	}
	return all
}

func parseCommand(args []string) error {
	var c commands
	p, err := (&env{out: io.Discard, errs: io.Discard}).parser(&c, func(int) {})
	if err == nil {
		_, err = p.Parse(arguments(args))
	}
	return err
}
